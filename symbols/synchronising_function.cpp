#include "symbols/synchronising_function.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace trapline {
namespace {

// In namespace tbb::detail. Not here are those into which the bodies of tasks and loops are inlined
// (start_for, function_task, ...).
constexpr std::array<std::string_view, 25> kTbb = {
    "aggregator",        "apply_body_task", "atomic_",         "broadcast_cache",
    "buffer_node",       "collaborative_",  "concurrent_",     "continue_",
    "ets_base",          "finish_scan",     "fold_tree",       "forward_task",
    "function_input",    "function_node",   "function_output", "graph",
    "hash_map_base",     "item_buffer",     "micro_queue",     "queue_node",
    "round_robin_cache", "segment_table",   "spawn_in_graph",  "successor_cache",
    "sum_node"};
// Mutexes, and what waits for them.
constexpr std::array<std::string_view, 7> kTbbWaits = {
    "mutex", "queuing_", "rw_", "spin_", "unique_scoped_lock", "wait_context", "waitable_"};

// In namespace absl: its mutexes and what is built on them, and the functions of its mutex.cc. Not
// here are those that call their user's conditions.
constexpr std::array<std::string_view, 22> kAbsl = {"Barrier",
                                                    "BlockingCounter",
                                                    "CheckForMutexCorruption",
                                                    "CondVar",
                                                    "CondVarEnqueue",
                                                    "DeadlockCheck",
                                                    "Dequeue",
                                                    "DequeueAllWakeable",
                                                    "Enqueue",
                                                    "EnsureSynchEvent",
                                                    "ForgetSynchEvent",
                                                    "GetGraphId",
                                                    "GetGraphIdLocked",
                                                    "GetSynchEvent",
                                                    "LockEnter",
                                                    "LockLeave",
                                                    "Mutex",
                                                    "Notification",
                                                    "PostSynchEvent",
                                                    "ReleasableMutexLock",
                                                    "UnrefSynchEvent",
                                                    "synchronization_internal"};

// In C: GLib (what GOnce runs for its user is a function of that one's), Concurrency Kit's and
// userspace RCU's atomic operations, which are assembly or volatile. In D: core.atomic's.
constexpr std::array<std::string_view, 9> kOthers = {
    "g_atomic_", "g_once_",        "ck_pr_",
    "uatomic_",  "_uatomic_",      "urcu_",
    "_urcu_",    "_D4core6atomic", "_D4core8internal6atomic"};

template <std::size_t kSize>
bool StartsWithOne(std::string_view text, const std::array<std::string_view, kSize>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [text](std::string_view start) { return text.starts_with(start); });
}

// Itanium C++ ABI, 5.1.3: a name's length comes before it. Empty: there is none.
std::string_view TakeName(std::string_view* text) {
  std::size_t length = 0;
  const char* const end = text->data() + text->size();
  const auto [after, error] = std::from_chars(text->data(), end, length);
  if (error != std::errc() || length > static_cast<std::size_t>(end - after)) return {};
  text->remove_prefix(static_cast<std::size_t>(after - text->data()));
  const std::string_view name = text->substr(0, length);
  text->remove_prefix(length);
  return name;
}

// What comes before the names of a mangled one. False: it is not mangled.
bool TakePrefix(std::string_view* name) {
  if (!name->starts_with("_Z")) return false;
  name->remove_prefix(2);
  if (name->starts_with("N")) name->remove_prefix(1);
  while (name->starts_with("V") || name->starts_with("K")) name->remove_prefix(1);
  return true;
}

// The namespaces inside tbb of what the headers bring along.
bool TakeDetail(std::string_view* name) {
  if (TakeName(name) != "detail") return false;
  const std::string_view version = TakeName(name);
  return version.size() == 2 && version[0] == 'd';
}

// A name, behind what says that it is of one file alone.
std::string_view TakeLocalName(std::string_view* text) {
  if (text->starts_with("L")) text->remove_prefix(1);
  std::string_view name = TakeName(text);
  if (name == "_GLOBAL__N_1") name = TakeName(text);
  return name;
}

// What comes behind namespace absl.
bool IsOfAbsl(std::string_view name) {
  std::string_view of = TakeLocalName(&name);
  // The inline namespace of a release or a distribution.
  if (of.starts_with("lts_") || of.starts_with("debian")) of = TakeLocalName(&name);
  if (of != "base_internal") return std::ranges::find(kAbsl, of) != kAbsl.end();
  // What is called once may be inlined there, its user's or one of its own lambdas.
  return TakeLocalName(&name) != "CallOnceImpl" || name.starts_with("IZNS");
}

}  // namespace

bool IsTbbFunction(std::string_view name) {
  return TakePrefix(&name) && TakeName(&name) == "tbb" && TakeDetail(&name);
}

bool IsParallelOr(std::string_view name) {
  return name.find("10__internal13__parallel_orI") != std::string_view::npos;
}

std::uint64_t AtomicBytesOfVariable(std::string_view name) {
  constexpr std::uint64_t kGuard = 8;         // Itanium C++ ABI, section 3.3.3
  constexpr std::uint64_t kGracePeriod = 16;  // struct urcu_gp: a counter, and a futex's word
  if (name.starts_with("_ZGV")) return kGuard;
  return name.starts_with("urcu_") && name.ends_with("_gp") ? kGracePeriod : 0;
}

bool IsSynchronisingFunction(std::string_view name) {
  if (StartsWithOne(name, kOthers)) return true;
  if (!TakePrefix(&name)) return false;
  if (name.starts_with("St")) {
    name.remove_prefix(2);
    const std::string_view of = TakeName(&name);
    if (of.starts_with("atomic") || of.starts_with("__atomic")) return true;
    // What atomics, latches and semaphores wait with, into which their loads are inlined.
    if (of == "__detail") return TakeName(&name).starts_with("__wait");
    // Of barriers those that run no function of their user's when all have come.
    if (of == "barrier" || of == "__tree_barrier")
      return name.starts_with("ISt18__empty_completionE");
    return of == "latch" || of == "counting_semaphore";
  }
  std::string_view outermost = TakeName(&name);
  if (outermost == "tbb") {
    if (!TakeDetail(&name)) return false;
    const std::string_view of = TakeName(&name);
    return StartsWithOne(of, kTbb) || StartsWithOne(of, kTbbWaits);
  }
  if (outermost == "absl") return IsOfAbsl(name);
  if (outermost == "core") return TakeName(&name) == "sync" && TakeName(&name) == "atomic";
  // A type stands for its methods of a trait: _$LT$crossbeam_channel..Receiver...
  constexpr std::string_view kType = "_$LT$", kCrossbeam = "crossbeam_";
  if (outermost.starts_with(kType)) outermost.remove_prefix(kType.size());
  return outermost.starts_with(kCrossbeam);
}

bool IsRustFunction(std::string_view name) {
  if (name.starts_with("_R")) return name.size() > 2;
  // A hash of 16 digits is the last part; ".llvm.1234" and the like may follow. There may be points
  // in the parts before.
  constexpr std::string_view kHash = "17h";
  constexpr std::size_t kDigits = 16;
  const std::size_t hash = name.rfind(kHash);
  if (!name.starts_with("_ZN") || hash == std::string_view::npos) return false;
  name.remove_prefix(hash + kHash.size());
  const std::string_view rest = name.substr(std::min(kDigits, name.size()));
  return name.find_first_not_of("0123456789abcdef") == kDigits &&
         (rest == "E" || rest.starts_with("E."));
}

}  // namespace trapline
