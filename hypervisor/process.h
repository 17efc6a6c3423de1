// One program under the monitor: its machine, address space, threads, and what happens to it as a
// whole.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hypervisor/address_space.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/machine.h"
#include "hypervisor/observer.h"
#include "hypervisor/program_loader.h"
#include "hypervisor/signals.h"
#include "hypervisor/tracking.h"

namespace trapline {

// What runs for accesses to be checked.
enum class Track : std::uint8_t { kNone, kAll };

// How code that touches tracked pages runs: an instruction at a time under the monitor's eyes, or
// instrumented from the code cache.
enum class Engine : std::uint8_t { kStep, kCache };

// What the program's execution is watched for; handed on to the programs it starts.
struct TrackOptions {
  Track track = Track::kNone;
  Engine engine = Engine::kStep;
  // Every access is told of; else the code cache may leave out those that a thread has made before
  // in the same epoch.
  bool every_access = false;
  SharingPolicy policy = SharingPolicy::kExact;
  // SharingPolicy::kAdaptive: after so many checked accesses a thread's code counts as hot, and
  // after at least this many when it has met a shared page; 0: as is best.
  std::uint32_t hot_after = 0;
  CodeCacheSize cache_size;
  // How often code must be asked for before it is translated, under policies with native code, at
  // most CacheAdmission::kMost; 0: as is best.
  std::uint32_t translate_after = 0;
  bool repeats = true;  // accesses that a thread repeats need not be told (repeats.h)
  // The search for repeats begins when so many accesses have been told. Programs that share less do
  // not need it, and have no memory for it: 6 MiB, and up to 20 for each thread.
  std::uint32_t repeats_after = 1 << 17;
  // With repeats and SharingPolicy::kAdaptive: hot code need not tell of settled sectors
  // (sector_use.h).
  bool sector_uses = true;
  std::uint32_t settle_after = 20;  // ms; 0, for tests: at once, and all code is hot
  RedirectRule redirects = RedirectRule::kWherePaying;
  // With sector_uses and without redirects.
  PartialCode partial_code = PartialCode::kLongStays;
  bool from_start = false;  // tracking begins with the first thread, not with the second one
  // Globs on the names of modules whose accesses do (not) count, beside the built-in list.
  std::vector<std::string> track_modules, untrack_modules;
};

// What stands in the way of loading Trapline's part of the runtime (guest-agent/preload) into
// programs, in a sentence; empty: nothing.
std::string WhyRuntimeIsUnusable();

// Whether the glob matches the name of the file at `path`, with or without its directory.
bool NamesFile(const std::string& glob, const std::string& path);

// The same for any of several globs.
template <class Globs>
bool AnyNamesFile(const Globs& globs, const std::string& path) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return NamesFile(glob, path); });
}

// Whether the file at `path` is one whose code makes and ends threads, which can never count: the C
// library, the dynamic linker, Trapline's own library.
bool MakesThreads(const std::string& path);

// Whether the code of the file at `path` does not count under these options.
bool IsUntrackedModule(const TrackOptions& options, const std::string& path);

struct RunOptions {
  bool stats = false;           // print counters at the end
  bool follow_children = true;  // programs started with execve run under a monitor of their own
  TrackOptions tracking;
  // For whoever observes the execution; opaque here. What the next program's monitor gets is the
  // observer's own choice (ExecutionObserver::OnExecute).
  std::string observer_options;
  // Inherited from the monitor that called execve: /dev/kvm, and the monitor's own executable. This
  // process may have neither the right nor the path to open them again.
  int kvm_descriptor = -1;
  int executable_descriptor = -1;
  // Who traces the monitor itself: a debugger the user started it under. 0: nobody.
  pid_t outer_tracer = 0;
  // One word, for a monitor that execve starts (main's --exec).
  std::string Encode() const;
  static RunOptions Decode(const std::string& text);
};

// Arguments of clone(2)/clone3(2), whichever was called.
struct CloneArguments {
  std::uint64_t flags = 0;  // without the exit signal
  std::uint64_t pidfd = 0, child_tid = 0, parent_tid = 0;
  std::uint64_t exit_signal = 0;
  std::uint64_t stack_pointer = 0;  // 0: the parent's
  std::uint64_t stack_start = 0;    // clone3 tells; 0: not known
  std::uint64_t tls = 0;
};

class Process {
 public:
  // `observer` must outlive the process; null: nothing is tracked.
  explicit Process(const RunOptions& options, ExecutionObserver* observer = nullptr);

  // Loads the program and runs it on the calling thread, which must be the process's only one. Does
  // not return when the program ends; returns an error when it cannot be loaded.
  LoadError RunProgram(Executable executable, const std::vector<std::string>& environment,
                       const DescriptorRoom& room);

  Machine& machine() { return machine_; }
  AddressSpace& address_space() { return address_space_; }
  const RunOptions& options() const { return options_; }
  // Null: nothing is tracked.
  Tracking* tracking() { return tracking_.get(); }
  // What /proc/self/exe would show, and a path that opens it even when it was deleted.
  std::string executable_path() const;
  std::string executable_link() const;

  // --- system calls about threads and processes; results as Linux's
  long Clone(GuestThread& parent, const CloneArguments& arguments);
  long Execute(GuestThread& thread, int directory, const std::string& path, std::uint64_t argv,
               std::uint64_t envp, int flags);
  [[noreturn]] void ExitGroup(GuestThread& thread, int status);
  // unshare or setns, some uses of which the kernel allows only to a process with one thread.
  long ChangeNamespaces(GuestThread& thread, long number, const std::uint64_t arguments[6]);

  // Whether `tid` is one of the program's threads; KVM and the monitor may have others in the
  // process.
  bool IsGuestTid(pid_t tid);

  std::size_t LiveThreads();

  // --- ends
  // To be called when the process is about to die of a signal it caused: statistics are printed now
  // or never.
  void BeforeDeath(const GuestThread& thread);
  // The monitor cannot go on: says why and ends the process with status 125.
  [[noreturn]] void Fatal(const std::string& message);

  // Something the user should know once, although the program goes on.
  void Warn(const std::string& message);

  // The program installed a seccomp filter. It would bind the monitor, whose system calls the host
  // thread makes too, so it is accepted and not enforced; --stats says so.
  void NoteUnenforcedFilter() { unenforced_filters_.fetch_add(1, std::memory_order_relaxed); }

  // The program may have opened the file in /proc that is its memory.
  void NoteMemoryFile() { may_have_memory_file_ = true; }
  bool may_have_memory_file() const { return may_have_memory_file_; }

  void CountSystemCall(long number) {
    const auto index = static_cast<unsigned long>(number);
    counts_[index < kCountedCalls ? index : kCountedCalls].fetch_add(1, std::memory_order_relaxed);
  }

 private:
  struct ThreadRecord {
    std::uint64_t number;
    pid_t tid;
    std::string name;
    agent::ThreadCounters counters;
  };
  struct ThreadStart;

  static constexpr std::size_t kCountedCalls = 512;

  long CloneThread(GuestThread& parent, const CloneArguments& arguments);
  long CloneProcess(GuestThread& parent, const CloneArguments& arguments);
  long CloneSharingMemory(GuestThread& parent, const CloneArguments& arguments);
  // The child is to go on where its parent, which is detached, does.
  void TakeAfter(GuestThread& child, GuestThread& parent, const CloneArguments& arguments);
  static void* ThreadMain(void* start);
  struct MemorySharingChild;
  static void MemorySharingChildMain(void* child);
  void RunMemorySharingChild(MemorySharingChild& child);
  // The process lives on while it has threads; a new one counts before its creator goes on, who may
  // end at once.
  void AddThread(GuestThread& thread);
  void RunThread(GuestThread& thread);
  void EndOfThread(GuestThread& thread);
  void HandleRobustList(GuestThread& thread);
  void Record(GuestThread& thread);
  void PrintStatistics();

  const RunOptions options_;
  const MemoryLimits inherited_limits_ =
      MemoryLimits::TakeOver();  // before the machine maps anything
  Machine machine_;
  AddressSpace address_space_;
  std::unique_ptr<Tracking> tracking_;
  SignalActions signal_actions_;
  FileDescriptor program_file_;
  FileDescriptor own_executable_;  // to start monitors for execve

  std::mutex threads_mutex_;
  std::map<std::uint64_t, GuestThread*> live_threads_;
  std::vector<ThreadRecord> ended_;  // first of the ended ones, for the table
  ThreadRecord ended_rest_{};        // sum of the others
  std::uint64_t ended_rest_count_ = 0;
  std::atomic<std::uint64_t> next_thread_ = 0;
  std::size_t most_threads_ = 0;
  int leader_status_ = 0;  // what the initial thread gave to exit(2), if it ended before others
  std::atomic<bool> statistics_printed_ = false;
  std::atomic<unsigned> unenforced_filters_ = 0;
  std::atomic<bool> may_have_memory_file_ = false;
  std::array<std::atomic<std::uint64_t>, kCountedCalls + 1> counts_{};
  std::mutex warnings_mutex_;
  std::vector<std::string> warnings_;
};

}  // namespace trapline
