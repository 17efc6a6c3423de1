#include "tests/preload/recorder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "tests/preload/order.h"

namespace trapline::preload {
namespace {

constexpr std::array<const char*, TRAPLINE_EVENT_KINDS> kNames = {"",
                                                                  "acquire",
                                                                  "release",
                                                                  "acquire shared",
                                                                  "release shared",
                                                                  "happens before",
                                                                  "happens after",
                                                                  "barrier enter",
                                                                  "barrier leave",
                                                                  "join",
                                                                  "sync destroyed",
                                                                  "allocate",
                                                                  "free",
                                                                  "clear history",
                                                                  "ignore begin",
                                                                  "ignore end",
                                                                  "ignore sync begin",
                                                                  "ignore sync end",
                                                                  "benign race",
                                                                  "untrack",
                                                                  "track",
                                                                  "thread name",
                                                                  "read",
                                                                  "write",
                                                                  "atomic read",
                                                                  "atomic write",
                                                                  "atomic update"};

// The double is called from inside malloc and the like, so it uses none of them.
std::array<Report, 1 << 16> reports;
std::atomic<std::size_t> report_count = 0;
std::atomic<bool> recording = false;
std::atomic<bool> tracking = false;
std::atomic<std::uint64_t> next_thread = 0;
thread_local std::uint64_t thread_number = ~std::uint64_t{0};

void Append(const Report& report) {
  if (!recording) return;
  const std::size_t i = report_count.fetch_add(1);
  if (i < reports.size()) reports[i] = report;
}

std::uint64_t Thread() {
  if (thread_number == ~std::uint64_t{0}) thread_number = next_thread.fetch_add(1);
  return thread_number;
}

void OnEvent(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t ip) {
  Append({kind, reinterpret_cast<const void*>(address), size, Thread(), ip, 0});
}

void OnAccess(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t ip,
              std::uint64_t stack_pointer) {
  Append({kind, reinterpret_cast<const void*>(address), size, Thread(), ip, stack_pointer});
}

std::uint64_t OnTracking() { return tracking ? 1 : 0; }

constexpr trapline_agent_interface kDouble = {TRAPLINE_AGENT_INTERFACE_VERSION,
                                              sizeof(trapline_agent_interface),
                                              OnEvent,
                                              OnAccess,
                                              Thread,
                                              OnTracking};

// Before main: the number of the initial thread is asked for when the double is set.
const bool installed = [] {
  using Setter = void (*)(const trapline_agent_interface*);
  const auto set = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "trapline_preload_set_interface"));
  if (set != nullptr) set(&kDouble);
  return set != nullptr;
}();

What KindOf(std::uint64_t kind) {
  switch (kind) {
    case TRAPLINE_ALLOCATE:
    case TRAPLINE_FREE:
      return What::kAllocation;
    case TRAPLINE_READ:
    case TRAPLINE_WRITE:
    case TRAPLINE_ATOMIC_READ:
    case TRAPLINE_ATOMIC_WRITE:
    case TRAPLINE_ATOMIC_UPDATE:
      return What::kAccesses;
    case TRAPLINE_CLEAR_HISTORY:
    case TRAPLINE_IGNORE_BEGIN:
    case TRAPLINE_IGNORE_END:
    case TRAPLINE_IGNORE_SYNC_BEGIN:
    case TRAPLINE_IGNORE_SYNC_END:
    case TRAPLINE_BENIGN_RACE:
    case TRAPLINE_UNTRACK:
    case TRAPLINE_TRACK:
    case TRAPLINE_THREAD_NAME:
    case TRAPLINE_COPY_HISTORY:
    case TRAPLINE_COPY_HISTORIES:
    case TRAPLINE_AFTER_ALL:
    case TRAPLINE_FIBER_CREATE:
    case TRAPLINE_FIBER_SWITCH:
    case TRAPLINE_FIBER_DESTROY:
    case TRAPLINE_FIBER_NAME:
      return What::kAnnotations;
    default:
      return What::kSynchronisation;
  }
}

}  // namespace

bool IsInThisProgram(std::uint64_t address) {
  Dl_info info;
  Dl_info here;
  return dladdr(reinterpret_cast<const void*>(address), &info) != 0 &&
         dladdr(reinterpret_cast<const void*>(&IsInThisProgram), &here) != 0 &&
         info.dli_fbase == here.dli_fbase;
}

void Step(const char* name) {
  Append({kStepReport, name, 0, Thread(), reinterpret_cast<std::uint64_t>(&Step), 0});
}

std::uint64_t NumberOfThisThread() { return Thread(); }

std::ostream& operator<<(std::ostream& out, const Report& report) {
  if (report.kind < kNames.size()) {
    out << kNames.at(report.kind);
  } else {
    out << "kind " << report.kind;
  }
  return out << ' ' << const_cast<const void*>(report.address) << " size " << report.size
             << " thread " << report.thread;
}

void SetTracking(bool value) { tracking = value; }

std::vector<Report> RecordFromAnywhere(What what, const std::function<void()>& action) {
  EXPECT_TRUE(installed) << "the program needs LD_PRELOAD=libtrapline-preload.so";
  report_count = 0;
  recording = true;
  action();
  recording = false;
  const std::size_t count = report_count;
  EXPECT_LE(count, reports.size());
  std::vector<Report> found;
  for (std::size_t i = 0; i < count && i < reports.size(); ++i)
    if (KindOf(reports.at(i).kind) == what) found.push_back(reports.at(i));
  return found;
}

std::vector<Report> Record(What what, const std::function<void()>& action) {
  std::vector<Report> found = RecordFromAnywhere(what, action);
  for (const Report& report : found)
    EXPECT_TRUE(IsInThisProgram(report.ip)) << report << " comes from elsewhere";
  return found;
}

std::vector<Report> OfThread(const std::vector<Report>& reports_of_all, std::uint64_t thread) {
  std::vector<Report> found;
  for (const Report& report : reports_of_all)
    if (report.thread == thread) found.push_back(report);
  return found;
}

std::vector<Report> About(const std::vector<Report>& reports_of_all, const volatile void* object) {
  std::vector<Report> found;
  for (const Report& report : reports_of_all)
    if (report.address == object) found.push_back(report);
  return found;
}

}  // namespace trapline::preload
