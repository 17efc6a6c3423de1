#include "hypervisor/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <semaphore>
#include <thread>

#include "hypervisor/error_output.h"
#include "hypervisor/futexes.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/link_target.h"
#include "hypervisor/proc_files.h"

extern "C" long trapline_clone_with_stack(std::uint64_t flags, void* stack_top,
                                          void (*entry)(void*), void* argument, std::uint64_t pidfd,
                                          std::uint32_t* clear_tid);

// The C library's own, which only code that is linked statically can call, as the monitor is; null
// elsewhere. Other threads may be in malloc, with none of the monitor's locks.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] void __malloc_fork_lock_parent();
[[gnu::weak, gnu::visibility("hidden")]] void __malloc_fork_unlock_parent();
[[gnu::weak, gnu::visibility("hidden")]] void __malloc_fork_unlock_child();
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace trapline {
namespace {

constexpr std::uint64_t kCloneClearSignalHandlers = 0x100000000ull;  // CLONE_CLEAR_SIGHAND
constexpr int kSetxidSignal =
    33;  // SIGSETXID: the C library's, the program's as well as the monitor's
// Flags the monitor acts on itself; the rest is the kernel's.
constexpr std::uint64_t kTidFlags =
    CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | CLONE_SETTLS;
constexpr int kMonitorFailure = 125;
constexpr std::size_t kHostStackSize = 256 * 1024;

bool IsProcessLeader() { return syscall(SYS_gettid) == getpid(); }

// Program name as the kernel would set it: the last part of the path.
void SetCommandName(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  prctl(PR_SET_NAME, path.c_str() + (slash == std::string::npos ? 0 : slash + 1));
}

// 0, or the error execve gives for such an array.
int ReadStringArray(std::uint64_t address, std::vector<std::string>& strings) {
  if (address == 0) return 0;
  constexpr std::size_t kLongest = 32 * kPageSize;  // MAX_ARG_STRLEN
  for (;; address += sizeof(std::uint64_t)) {
    std::uint64_t pointer = 0;
    if (!ReadGuest(address, pointer)) return EFAULT;
    if (pointer == 0) return 0;
    auto text = ReadGuestString(pointer, kLongest);
    char last = 0;
    if (!text) return ReadGuest(pointer + kLongest - 1, last) ? E2BIG : EFAULT;
    strings.push_back(std::move(*text));
  }
}

// A path for an open file: its name where it still has one, else the descriptor duplicated without
// close-on-exec.
std::string DescriptorPath(int fd) {
  const std::string link = DescriptorLink(fd);
  std::string target = LinkTarget(link);
  struct stat by_name {
  }, by_descriptor{};
  if (stat(target.c_str(), &by_name) == 0 && fstat(fd, &by_descriptor) == 0 &&
      by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev) {
    return target;
  }
  const int kept = dup(fd);
  return kept >= 0 ? DescriptorLink(kept) : link;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (auto& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Tells those who wait for the end of the thread, if it was started with CLONE_CHILD_CLEARTID or
// has called set_tid_address.
void ClearChildTid(const GuestThread& thread) {
  const std::uint32_t zero = 0;
  if (thread.clear_child_tid != 0 && WriteGuest(thread.clear_child_tid, zero))
    syscall(SYS_futex, thread.clear_child_tid, FUTEX_WAKE, 1, 0, 0, 0);
}

}  // namespace

// Whose accesses do not count (LARD's rule 1): the C and C++ runtimes, and ours. Those of the first
// ones cannot: they make a thread before it is one, and end it when it is none any more.
static constexpr const char* kThreadModules[] = {"ld-linux*",         "libc.so*",
                                                 "libc-[0-9]*",       "libpthread.so*",
                                                 "libpthread-[0-9]*", "libtrapline-preload.so*"};
static constexpr const char* kRuntimeModules[] = {
    "libm.so*",      "libdl.so*",       "librt.so*",    "libstdc++.so*", "libc++.so*",
    "libc++abi.so*", "libgcc_s.so*",    "libobjc.so*",  "libgomp.so*",   "libomp.so*",
    "libresolv.so*", "libnss_*",        "libasan.so*",  "libtsan.so*",   "libubsan.so*",
    "liblsan.so*",   "libjemalloc.so*", "libtcmalloc*", "libmimalloc*"};

bool NamesFile(const std::string& glob, const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  return fnmatch(glob.c_str(), path.c_str() + name, 0) == 0 ||
         fnmatch(glob.c_str(), path.c_str(), 0) == 0;
}

bool MakesThreads(const std::string& path) { return AnyNamesFile(kThreadModules, path); }

bool IsUntrackedModule(const TrackOptions& options, const std::string& path) {
  if (MakesThreads(path)) return true;
  if (AnyNamesFile(options.track_modules, path)) return false;
  return AnyNamesFile(options.untrack_modules, path) || AnyNamesFile(kRuntimeModules, path);
}

namespace {

// AddressSanitizer's run-time library, if the program needs it: it refuses to start behind a
// preloaded one. Its name stands among the dynamic strings, near the start of the file.
std::string LibraryToComeFirst(int file) {
  std::string text(1 << 20, 0);
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t at = text.find("libasan.so.");
  return at == std::string::npos ? std::string() : std::string(text.c_str() + at);
}

std::string RuntimeLibrary() {
  std::string library = OwnExecutable();
  library.erase(library.rfind('/') + 1);
  return library + "libtrapline-preload.so";
}

// The environment with our library in front of what the program preloads itself. It takes its name
// out again when it is loaded. Unchanged where it is out of sight, as after chroot.
std::vector<std::string> WithPreload(const std::vector<std::string>& environment, int program) {
  if (!WhyRuntimeIsUnusable().empty()) return environment;
  std::string library = RuntimeLibrary();
  if (const std::string first = LibraryToComeFirst(program); !first.empty())
    library.insert(0, first + ":");
  constexpr const char* kVariable = "LD_PRELOAD=";
  std::vector<std::string> changed = environment;
  for (std::string& variable : changed) {
    if (!variable.starts_with(kVariable)) continue;
    variable.insert(std::strlen(kVariable), library + ":");
    return changed;
  }
  changed.push_back(kVariable + library);
  return changed;
}

bool Tracks(const RunOptions& options, const ExecutionObserver* observer) {
  return observer != nullptr && options.tracking.track != Track::kNone;
}

// With tracking it is asked of page states, once there are several threads; before, huge pages are
// worth more than the count.
bool CountsPageUse(const RunOptions& options, const ExecutionObserver* observer) {
  return options.stats && !Tracks(options, observer);
}

}  // namespace

std::string WhyRuntimeIsUnusable() {
  const std::string library = RuntimeLibrary();
  if (library.find_first_of(": ") != std::string::npos) {
    return fmt::format(
        "'{}' cannot be preloaded, for its name has a space or a colon; move trapline and its "
        "library to another directory",
        library);
  }
  if (access(library.c_str(), R_OK) != 0) {
    return fmt::format(
        "'{}': {}; without it locks and threads would go unseen. It belongs beside trapline",
        library, std::strerror(errno));
  }
  return {};
}

std::string RunOptions::Encode() const {
  std::string text = fmt::format(
      "stats={},follow={},kvm={},exe={},track={},policy={},engine={},every={},hot={},"
      "cache={},blocks={},asked={},start={},again={},after={},settles={},settle={},redirect={},"
      "partial={},tracer={}",
      stats ? 1 : 0, follow_children ? 1 : 0, kvm_descriptor, executable_descriptor,
      static_cast<int>(tracking.track), static_cast<int>(tracking.policy),
      static_cast<int>(tracking.engine), tracking.every_access ? 1 : 0, tracking.hot_after,
      tracking.cache_size.bytes, tracking.cache_size.blocks, tracking.translate_after,
      tracking.from_start ? 1 : 0, tracking.repeats ? 1 : 0, tracking.repeats_after,
      tracking.sector_uses ? 1 : 0, tracking.settle_after, static_cast<int>(tracking.redirects),
      static_cast<int>(tracking.partial_code), outer_tracer);
  // Lengths, because names may contain anything.
  const auto add = [&text](char key, const std::string& value) {
    text += fmt::format("\n{}{}:{}", key, value.size(), value);
  };
  for (const std::string& name : tracking.track_modules) add('t', name);
  for (const std::string& name : tracking.untrack_modules) add('u', name);
  if (!observer_options.empty()) add('o', observer_options);
  return text;
}

RunOptions RunOptions::Decode(const std::string& encoded) {
  RunOptions options;
  const std::string text = encoded.substr(0, encoded.find('\n'));
  for (std::size_t at = text.size(); at < encoded.size();) {
    const char key = encoded[at + 1];
    std::size_t used = 0;
    const std::size_t length = std::stoul(encoded.substr(at + 2, 20), &used);
    const std::size_t start = at + 2 + used + 1;
    const std::string value = encoded.substr(start, length);
    if (key == 't') options.tracking.track_modules.push_back(value);
    if (key == 'u') options.tracking.untrack_modules.push_back(value);
    if (key == 'o') options.observer_options = value;
    at = start + length;
  }
  options.stats = text.find("stats=1") != std::string::npos;
  options.follow_children = text.find("follow=0") == std::string::npos;
  const auto number_after = [&text](const char* key) {
    const std::size_t at = text.find(key);
    return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + std::strlen(key));
  };
  options.kvm_descriptor = number_after("kvm=");
  options.executable_descriptor = number_after("exe=");
  options.outer_tracer = number_after("tracer=");
  options.tracking.track = number_after("track=") == 1 ? Track::kAll : Track::kNone;
  options.tracking.policy = static_cast<SharingPolicy>(std::clamp(number_after("policy="), 0, 3));
  options.tracking.hot_after = static_cast<std::uint32_t>(std::max(number_after("hot="), 0));
  options.tracking.cache_size.bytes =
      std::clamp(static_cast<std::uint64_t>(std::max(number_after("cache="), 0)),
                 CodeCacheSize::kLeast, CodeCacheSize::kMost);
  options.tracking.cache_size.blocks = static_cast<unsigned>(std::max(number_after("blocks="), 0));
  options.tracking.translate_after =
      static_cast<std::uint32_t>(std::max(number_after("asked="), 0));
  options.tracking.every_access = number_after("every=") == 1;
  options.tracking.from_start = number_after("start=") == 1;
  options.tracking.repeats = number_after("again=") == 1;
  options.tracking.repeats_after = static_cast<std::uint32_t>(std::max(number_after("after="), 0));
  options.tracking.sector_uses = number_after("settles=") == 1;
  options.tracking.settle_after = static_cast<std::uint32_t>(std::max(number_after("settle="), 0));
  options.tracking.redirects =
      static_cast<RedirectRule>(std::clamp(number_after("redirect="), 0, 2));
  options.tracking.partial_code =
      static_cast<PartialCode>(std::clamp(number_after("partial="), 0, 2));
  options.tracking.engine = number_after("engine=") == 1 ? Engine::kCache : Engine::kStep;
  return options;
}

Process::Process(const RunOptions& options, ExecutionObserver* observer)
    : options_(options),
      machine_(options.kvm_descriptor),
      address_space_(machine_, inherited_limits_, CountsPageUse(options, observer)) {
  const int inherited = options.executable_descriptor;
  own_executable_ = OpenOutOfTheWay([inherited] {
    return inherited >= 0 ? dup(inherited) : open("/proc/self/exe", O_PATH | O_CLOEXEC);
  });
  if (inherited >= 0) close(inherited);
  if (Tracks(options_, observer)) {
    tracking_ = std::make_unique<Tracking>(
        address_space_, options_.tracking.policy, *observer,
        [this](const std::string& path) { return IsUntrackedModule(options_.tracking, path); });
    tracking_->SetThreadNumbers([this] { return next_thread_++; });
    if (options_.tracking.from_start) tracking_->SetFromStart();
  }
}

LoadError Process::RunProgram(Executable executable, const std::vector<std::string>& environment,
                              const DescriptorRoom& room) {
  // Nothing of the program's may fail for want of room the monitor took.
  const auto program = LoadProgram(address_space_, executable,
                                   tracking_ && executable.image.interpreter
                                       ? WithPreload(environment, executable.file.get())
                                       : environment,
                                   machine_.host().guest_tsc_is_host_tsc);
  if (!program) return program.error();
  if (tracking_ && !executable.image.interpreter)
    tracking_->SetStaticRuntime(StaticRuntime::Read(executable.file.get(), program->bias));
  if (tracking_ && options_.tracking.engine == Engine::kCache) {
    GuestCodeCache::Rules rules;
    rules.filter = !options_.tracking.every_access;
    rules.repeats =
        rules.filter && options_.tracking.repeats && tracking_->observer().TakesRepeats();
    rules.repeats_after = options_.tracking.repeats_after;
    rules.settle_after = options_.tracking.settle_after;
    rules.sector_uses = rules.repeats && options_.tracking.sector_uses &&
                        tracking_->static_runtime() == nullptr &&
                        options_.tracking.policy == SharingPolicy::kAdaptive;
    rules.biased_locks = rules.sector_uses && tracking_->observer().TakesLateReleases();
    rules.redirects = options_.tracking.redirects;
    // Under this policy it is decided at each meeting whether the page is given to who met it.
    if (rules.redirects == RedirectRule::kWherePaying &&
        options_.tracking.policy == SharingPolicy::kAdaptive)
      rules.redirects = RedirectRule::kNever;
    rules.partial_code = rules.sector_uses && rules.redirects == RedirectRule::kNever
                             ? options_.tracking.partial_code
                             : PartialCode::kNever;
    rules.size = options_.tracking.cache_size;
    rules.translate_after = options_.tracking.translate_after;
    rules.is_atomic = [this](std::uint64_t rip) { return tracking_->IsAtomicCode(rip); };
    rules.drain = [this] { tracking_->DrainAll(); };
    // The runtime's calls in a statically linked program are seen by stepping through them.
    if (const StaticRuntime* const runtime = tracking_->static_runtime())
      rules.refuses = [runtime](std::uint64_t rip) { return runtime->IsRuntime(rip); };
    tracking_->SetCodeCache(
        std::make_unique<GuestCodeCache>(machine_, address_space_, std::move(rules)));
  } else if (tracking_ && options_.tracking.policy == SharingPolicy::kAdaptive) {
    address_space_.ShareEveryPage();  // stepping is never hot
  }
  program_file_ = OpenOutOfTheWay([&] { return dup(executable.file.get()); });
  executable.file.Close();
  SetCommandName(executable.path);

  SignalMask mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask);
  signal_actions_.Inherit();

  Carrier& carrier = machine_.Acquire();
  GuestThread thread(*this, signal_actions_, carrier, next_thread_++);
  kvm_regs registers{};
  registers.rip = program->entry;
  registers.rsp = program->stack_pointer;
  registers.rflags = 0x202;
  thread.StartDetached(registers);
  thread.starts_process = true;
  thread.set_mask(mask);
  InitializeVectorState(carrier.vector_state(), machine_.vector_state_size());
  room.Restore();
  AddThread(thread);
  RunThread(thread);
  // The initial thread ended by exit(2) alone; when it was not the last one, the process lives on
  // without it, and this host thread must end in the same way.
  syscall(SYS_exit, thread.exit_status());
  __builtin_unreachable();
}

void Process::AddThread(GuestThread& thread) {
  const std::lock_guard lock(threads_mutex_);
  live_threads_[thread.logical_number()] = &thread;
  most_threads_ = std::max(most_threads_, live_threads_.size());
}

void Process::RunThread(GuestThread& thread) {
  thread.Run();
  EndOfThread(thread);
}

void Process::Record(GuestThread& thread) {
  constexpr std::size_t kListed = 32;
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  const agent::ThreadPage& page = thread.carrier().thread_page();
  if (ended_.size() < kListed) {
    ended_.push_back({page.logical_thread, static_cast<pid_t>(page.tid), name, page.counters});
    return;
  }
  ++ended_rest_count_;
  ended_rest_.counters.Add(page.counters);
}

// What the kernel does for a thread that dies with robust mutexes
// (Documentation/locking/robust-futexes.rst): each futex on its list that it owns is marked, and
// one waiter is woken.
void Process::HandleRobustList(GuestThread& thread) {
  struct Head {
    std::uint64_t next;
    std::int64_t futex_offset;
    std::uint64_t pending;
  } head{};
  const std::uint64_t head_at = thread.robust_list_head;
  if (head_at == 0 || !ReadGuest(head_at, head)) return;
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  const auto release = [&](std::uint64_t entry) {
    const std::uint64_t futex = (entry & ~1ull) + static_cast<std::uint64_t>(head.futex_offset);
    std::uint32_t value = 0;
    if (futex % 4 != 0 || !ReadGuest(futex, value) || (value & FUTEX_TID_MASK) != tid) return;
    auto* word = reinterpret_cast<std::uint32_t*>(futex);
    std::uint32_t expected = value;
    while ((expected & FUTEX_TID_MASK) == tid &&
           !__atomic_compare_exchange_n(word, &expected,
                                        (expected & FUTEX_WAITERS) | FUTEX_OWNER_DIED, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    if ((expected & FUTEX_WAITERS) != 0) syscall(SYS_futex, futex, FUTEX_WAKE, 1, 0, 0, 0);
  };
  constexpr int kLimit = 2048;  // ROBUST_LIST_LIMIT
  std::uint64_t entry = head.next;
  for (int i = 0; i < kLimit && (entry & ~1ull) != head_at; ++i) {
    std::uint64_t next = 0;
    const bool readable = ReadGuest(entry & ~1ull, next);
    if (entry != head.pending) release(entry);
    if (!readable) break;
    entry = next;
  }
  if (head.pending != 0) release(head.pending);
  syscall(SYS_set_robust_list, nullptr, 24);
}

void Process::EndOfThread(GuestThread& thread) {
  // First: who is handed a lock by the list comes after all that this thread has done.
  if (tracking_) tracking_->OnThreadEnd(thread.carrier(), thread.clear_child_tid);
  HandleRobustList(thread);
  bool last = false;
  {
    const std::lock_guard lock(threads_mutex_);
    Record(thread);
    live_threads_.erase(thread.logical_number());
    last = live_threads_.empty();
    if (IsProcessLeader()) leader_status_ = thread.exit_status();
  }
  if (last) {
    PrintStatistics();
    // The process ends as its initial thread did. Not left to this thread's own end: KVM may keep a
    // worker thread in the process for as long as the virtual machine is open.
    if (tracking_) leader_status_ = tracking_->OnExit(leader_status_);
    syscall(SYS_exit_group, leader_status_);
  }
  machine_.Release(thread.carrier());
  ClearChildTid(thread);
}

void Process::ExitGroup(GuestThread& thread, int status) {
  if (!thread.is_vfork_child) {
    PrintStatistics();
    if (tracking_) status = tracking_->OnExit(status);
  } else {
    ClearChildTid(thread);
  }
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

void Process::BeforeDeath(const GuestThread& thread) {
  if (thread.is_vfork_child) return;  // what it would tell of is its parent's
  PrintStatistics();
  if (tracking_) tracking_->OnExit(0);
}

void Process::Fatal(const std::string& message) {
  WriteError(fmt::format("trapline: internal error: {}\n", message));
  syscall(SYS_exit_group, kMonitorFailure);
  __builtin_unreachable();
}

void Process::Warn(const std::string& message) {
  const std::lock_guard lock(warnings_mutex_);
  if (std::find(warnings_.begin(), warnings_.end(), message) != warnings_.end()) return;
  warnings_.push_back(message);
  WriteError(fmt::format("trapline: {}\n", message));
}

bool Process::IsGuestTid(pid_t tid) {
  const std::lock_guard lock(threads_mutex_);
  return std::any_of(live_threads_.begin(), live_threads_.end(), [tid](const auto& entry) {
    return static_cast<pid_t>(entry.second->carrier().thread_page().tid) == tid;
  });
}

std::size_t Process::LiveThreads() {
  const std::lock_guard lock(threads_mutex_);
  return live_threads_.size();
}

std::string Process::executable_link() const { return DescriptorLink(program_file_.get()); }

std::string Process::executable_path() const { return LinkTarget(executable_link()); }

// --- clone

long Process::Clone(GuestThread& parent, const CloneArguments& arguments) {
  const std::uint64_t flags = arguments.flags;
  if ((flags & CLONE_THREAD) != 0) {
    if ((flags & CLONE_SIGHAND) == 0 || (flags & CLONE_VM) == 0) return -EINVAL;
    return CloneThread(parent, arguments);
  }
  if ((flags & CLONE_SIGHAND) != 0 && (flags & CLONE_VM) == 0) return -EINVAL;
  if ((flags & CLONE_VM) == 0) return CloneProcess(parent, arguments);
  return CloneSharingMemory(parent, arguments);
}

void Process::TakeAfter(GuestThread& child, GuestThread& parent, const CloneArguments& arguments) {
  kvm_regs context = parent.context();
  context.rax = 0;
  if (arguments.stack_pointer != 0) context.rsp = arguments.stack_pointer;
  child.StartDetached(context);
  child.set_mask(parent.mask());
  if ((arguments.flags & CLONE_CHILD_CLEARTID) != 0) child.clear_child_tid = arguments.child_tid;
  std::memcpy(child.carrier().vector_state(), parent.carrier().vector_state(),
              machine_.vector_state_size());
}

struct Process::ThreadStart {
  Process* process;
  GuestThread* thread;
  CloneArguments arguments;
  std::uint64_t fs_base, gs_base;
  pid_t tid = 0;
  std::binary_semaphore ready{0};
};

void* Process::ThreadMain(void* argument) {
  auto& start = *static_cast<ThreadStart*>(argument);
  Process& process = *start.process;
  const std::unique_ptr<GuestThread> thread(start.thread);
  const CloneArguments& arguments = start.arguments;
  start.tid = static_cast<pid_t>(syscall(SYS_gettid));
  if ((arguments.flags & CLONE_PARENT_SETTID) != 0) WriteGuest(arguments.parent_tid, start.tid);
  if ((arguments.flags & CLONE_CHILD_SETTID) != 0) WriteGuest(arguments.child_tid, start.tid);
  thread->SetFsBase(start.fs_base);
  thread->SetGsBase(start.gs_base);
  process.AddThread(*thread);
  start.ready.release();  // `start` is the parent's: gone from here on
  process.RunThread(*thread);
  // After a fork in this thread it is its process's initial thread, and must end like one.
  if (IsProcessLeader()) syscall(SYS_exit, thread->exit_status());
  return nullptr;
}

long Process::CloneThread(GuestThread& parent, const CloneArguments& arguments) {
  Carrier* carrier = nullptr;
  try {
    carrier = &machine_.Acquire(address_space_.counts_page_use());
  } catch (const std::exception& error) {
    Warn(fmt::format(
        "no vCPU for another thread, the program gets EAGAIN: {} (this host allows {} vCPUs)",
        error.what(), machine_.kvm().CheckExtension(KVM_CAP_MAX_VCPUS)));
    return -EAGAIN;
  }
  parent.Detach();
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(threads_mutex_);
    number = next_thread_++;
  }
  auto thread = std::make_unique<GuestThread>(*this, parent.signal_actions(), *carrier, number);
  TakeAfter(*thread, parent, arguments);
  ThreadStart start{this, thread.get(), arguments,
                    (arguments.flags & CLONE_SETTLS) != 0 ? arguments.tls : parent.fs_base(),
                    parent.gs_base()};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kHostStackSize);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The new host thread starts with everything blocked; GuestThread::Run sets the program's mask.
  SetHostMask(kAllSignals);
  if (tracking_) {
    // What ends with the thread: its stack and, where the C library puts it, the block of its
    // thread-local variables right above.
    std::uint64_t stack_end = arguments.stack_pointer;
    // That ends with the C library's descriptor of the thread, of 0x900 bytes (glibc 2.36), or
    // less, in the last page. Above may be anything.
    constexpr std::uint64_t kThreadDescriptor = 0x900, kFarthest = 1 << 20;
    const std::uint64_t tls = (arguments.flags & CLONE_SETTLS) != 0 ? arguments.tls : 0;
    if (tls >= stack_end && tls - stack_end < kFarthest)
      stack_end = std::min(tls + kThreadDescriptor, AlignUp(tls + 1, kPageSize));
    const bool starts = tracking_->OnClone(
        parent.carrier(), parent.Registers(), static_cast<ThreadId>(number), arguments.stack_start,
        arguments.stack_start != 0 ? stack_end : 0, tls, arguments.stack_pointer);
    parent.EnterView(View::kClosed);
    if (starts) parent.StartTracked();
  }
  pthread_t host_thread{};
  const int error = pthread_create(&host_thread, &attributes, &Process::ThreadMain, &start);
  // The C library may just have installed its own handler for the signal its setuid(3) family uses.
  parent.signal_actions().Reapply(kSetxidSignal);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    if (tracking_) tracking_->OnCloneFailed(static_cast<ThreadId>(number));
    machine_.Release(*carrier);
    if (!parent.signal_pending()) SetHostMask(parent.mask());
    return -error;
  }
  static_cast<void>(thread.release());  // the host thread owns it
  start.ready.acquire();
  if (!parent.signal_pending()) SetHostMask(parent.mask());
  return start.tid;
}

long Process::CloneProcess(GuestThread& parent, const CloneArguments& arguments) {
  SetHostMask(kAllSignals);
  if (parent.signal_pending()) return kRestart;
  parent.Detach();
  const kvm_sregs special = parent.carrier().vcpu().special_registers();
  const std::uint64_t other_flags = arguments.flags & ~kTidFlags;

  // Nothing of the monitor may be half changed in the child, which has only this thread.
  if (tracking_) tracking_->LockBeforeFork();
  threads_mutex_.lock();
  warnings_mutex_.lock();
  address_space_.mutex().lock();
  if (tracking_) tracking_->LockForFork();
  machine_.mutex().lock();
  machine_.memory().mutex().lock();
  LockDescriptors();
  long child = 0;
  if (other_flags == 0 && arguments.exit_signal == SIGCHLD) {
    child = fork();
    if (child < 0) child = -errno;
  } else {
    // Flags fork(3) cannot pass on. The kernel's own fork, with what fork(3) does about malloc.
    const bool locks_malloc = __malloc_fork_lock_parent != nullptr;
    if (locks_malloc) __malloc_fork_lock_parent();
    child = syscall(SYS_clone, (other_flags & 0xffffffffull) | arguments.exit_signal, 0,
                    arguments.pidfd, 0, 0);
    if (child < 0) child = -errno;
    if (locks_malloc) child == 0 ? __malloc_fork_unlock_child() : __malloc_fork_unlock_parent();
  }
  UnlockDescriptors();
  machine_.memory().mutex().unlock();
  machine_.mutex().unlock();
  if (tracking_) tracking_->UnlockAfterFork();
  address_space_.mutex().unlock();
  warnings_mutex_.unlock();
  threads_mutex_.unlock();

  if (child == 0) {
    try {
      const bool shared_descriptors = (arguments.flags & CLONE_FILES) != 0;
      address_space_.OnForkedChild(shared_descriptors);
      machine_.Rebuild(parent.carrier(), special, shared_descriptors);
    } catch (const std::exception& error) {
      Fatal(fmt::format("no virtual machine for a child process: {}", error.what()));
    }
    ForgetFutexWaiters(parent.carrier());
    parent.EnterView(View::kWhole);
    if (tracking_) {
      tracking_->OnForkedChild(parent.carrier(), static_cast<pid_t>(syscall(SYS_gettid)));
      if (options_.tracking.from_start) {
        tracking_->StartAlone(parent.carrier());
        parent.EnterView(View::kClosed);
        parent.StartTracked();
      }
    }
    live_threads_.clear();
    ended_.clear();
    ended_rest_ = {};
    ended_rest_count_ = 0;
    live_threads_[parent.logical_number()] = &parent;
    most_threads_ = 1;
    statistics_printed_ = false;
    for (auto& count : counts_) count = 0;
    parent.counters() = {};
    parent.is_vfork_child = false;
    const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
    parent.carrier().thread_page().tid = static_cast<std::uint64_t>(tid);
    parent.clear_child_tid =
        (arguments.flags & CLONE_CHILD_CLEARTID) != 0 ? arguments.child_tid : 0;
    if ((arguments.flags & CLONE_CHILD_SETTID) != 0) WriteGuest(arguments.child_tid, tid);
    if ((arguments.flags & CLONE_SETTLS) != 0) parent.SetFsBase(arguments.tls);
    if ((arguments.flags & kCloneClearSignalHandlers) != 0) {
      for (int signal = 1; signal <= 64; ++signal) {
        if (signal_actions_.HasHandler(signal)) signal_actions_.Set(signal, {});
      }
    }
    if (arguments.stack_pointer != 0) parent.context().rsp = arguments.stack_pointer;
  } else if (child > 0 && (arguments.flags & CLONE_PARENT_SETTID) != 0) {
    WriteGuest(arguments.parent_tid, static_cast<pid_t>(child));
  }
  if (!parent.signal_pending()) SetHostMask(parent.mask());
  return child;
}

// vfork, posix_spawn, and clone with CLONE_VM alone: a process of its own on this very memory, and
// so on this very virtual machine. The child runs the monitor's code with the thread-local storage
// of the host thread that cloned it, which is safe because that one does nothing until the child
// has ended or runs another program: it is the parent thread itself for vfork, which natively waits
// too, else a host thread made for this.
struct Process::MemorySharingChild {
  Process* process;
  Carrier* carrier;
  SignalActions actions;
  std::unique_ptr<GuestThread> thread;
  CloneArguments arguments;
  std::uint64_t fs_base, gs_base;
  void* stack;
  // Without CLONE_VFORK: the kernel clears `running` when the child gives up the memory.
  std::uint32_t running = 1;
  long pid = 0;
  std::binary_semaphore started{0};
};

void Process::MemorySharingChildMain(void* argument) {
  auto& child = *static_cast<MemorySharingChild*>(argument);
  GuestThread& thread = *child.thread;
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  if ((child.arguments.flags & CLONE_CHILD_SETTID) != 0) WriteGuest(child.arguments.child_tid, tid);
  thread.SetFsBase(child.fs_base);
  thread.SetGsBase(child.gs_base);
  thread.Run();
  child.process->ExitGroup(thread, thread.exit_status());
}

void Process::RunMemorySharingChild(MemorySharingChild& child) {
  const std::uint64_t flags = child.arguments.flags & ~kTidFlags & 0xffffffffull;
  const bool vfork = (flags & CLONE_VFORK) != 0;
  GuestThread* const self = GuestThread::Current();
  child.pid = trapline_clone_with_stack(
      flags | (vfork ? 0 : CLONE_CHILD_CLEARTID) | child.arguments.exit_signal,
      static_cast<char*>(child.stack) + kHostStackSize, &MemorySharingChildMain, &child,
      child.arguments.pidfd, &child.running);
  const bool failed = child.pid < 0;
  if (!vfork) {
    child.started.release();
    while (!failed && __atomic_load_n(&child.running, __ATOMIC_ACQUIRE) != 0) {
      syscall(SYS_futex, &child.running, FUTEX_WAIT, 1, nullptr, 0, 0);
    }
  }
  GuestThread::SetCurrent(self);
  munmap(child.stack, kHostStackSize);
  machine_.Release(*child.carrier);
}

long Process::CloneSharingMemory(GuestThread& parent, const CloneArguments& arguments) {
  SetHostMask(kAllSignals);
  if (parent.signal_pending()) return kRestart;
  const auto child = std::make_shared<MemorySharingChild>();
  child->process = this;
  child->arguments = arguments;
  child->stack = mmap(nullptr, kHostStackSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (child->stack == MAP_FAILED) {
    SetHostMask(parent.mask());
    return -ENOMEM;
  }
  try {
    child->carrier = &machine_.Acquire();
  } catch (const std::exception& error) {
    Warn(fmt::format("no vCPU for a child process, the program gets EAGAIN: {}", error.what()));
    munmap(child->stack, kHostStackSize);
    SetHostMask(parent.mask());
    return -EAGAIN;
  }
  parent.Detach();
  child->actions.CopyFrom(parent.signal_actions());
  child->fs_base = (arguments.flags & CLONE_SETTLS) != 0 ? arguments.tls : parent.fs_base();
  child->gs_base = parent.gs_base();
  child->thread = std::make_unique<GuestThread>(*this, child->actions, *child->carrier,
                                                parent.logical_number());
  TakeAfter(*child->thread, parent, arguments);
  child->thread->is_vfork_child = true;
  child->thread->alternate_stack = parent.alternate_stack;

  long pid = 0;
  if ((arguments.flags & CLONE_VFORK) != 0) {
    RunMemorySharingChild(*child);
    pid = child->pid;
  } else {
    std::thread([this, child] { RunMemorySharingChild(*child); }).detach();
    child->started.acquire();
    pid = child->pid;
  }
  if (pid > 0 && (arguments.flags & CLONE_PARENT_SETTID) != 0) {
    WriteGuest(arguments.parent_tid, static_cast<pid_t>(pid));
  }
  SetHostMask(parent.mask());
  return pid;
}

// --- namespaces

namespace {

// Whether children to come are in another PID namespace than the process: then it can have no new
// thread, nor a new virtual machine.
bool HasLeftPids() {
  struct stat own;
  struct stat of_children;  // ENOENT until there is one
  return stat("/proc/self/ns/pid", &own) == 0 &&
         (stat("/proc/self/ns/pid_for_children", &of_children) != 0 ||
          own.st_ino != of_children.st_ino);
}

}  // namespace

long Process::ChangeNamespaces(GuestThread& thread, long number, const std::uint64_t arguments[6]) {
  const long result = thread.Interruptible(number, arguments);
  unsigned users = 0;  // a process that shares this memory has a vCPU too
  machine_.ForEachCarrier([&users](const Carrier& carrier) { users += carrier.in_use ? 1 : 0; });
  // EUSERS: of a time namespace.
  const auto has_threads = [](long error) { return error == -EINVAL || error == -EUSERS; };
  if (!has_threads(result) || thread.is_vfork_child || users != 1 || HasLeftPids()) return result;
  // Not the program's fault if it is the thread KVM keeps in the process for a virtual machine:
  // without one for a moment it is gone. Or the one that drains.
  SetHostMask(kAllSignals);
  if (thread.signal_pending()) return kRestart;
  thread.Detach();
  thread.EnterView(View::kWhole);
  if (tracking_) tracking_->idle_drain().Stop();
  const kvm_sregs special = thread.carrier().vcpu().special_registers();
  // Who has left a PID namespace to its children to come makes no threads any more, not for KVM
  // either: that comes last. Alone it is allowed with threads.
  const bool leaves_pids = number == SYS_unshare && (arguments[0] & CLONE_NEWPID) != 0;
  const std::uint64_t first = arguments[0] & ~(leaves_pids ? std::uint64_t{CLONE_NEWPID} : 0);
  long changed = 0;
  const auto change = [&] {
    constexpr int kMostWaits =
        100;  // of a millisecond: the thread is told to end and not waited for
    for (int i = 0; i < kMostWaits; ++i) {
      changed = syscall(number, first, arguments[1]);
      if (changed < 0) changed = -errno;
      if (!has_threads(changed)) return;
      usleep(1000);
    }
  };
  try {
    machine_.Rebuild(thread.carrier(), special, false, change);
  } catch (const std::exception& error) {
    Fatal(fmt::format("no new virtual machine: {}", error.what()));
  }
  if (leaves_pids && changed == 0 && unshare(CLONE_NEWPID) != 0) changed = -errno;
  if (tracking_ && tracking_->active()) thread.EnterView(View::kClosed);
  if (!thread.signal_pending()) SetHostMask(thread.mask());
  return changed;
}

// --- execve

long Process::Execute(GuestThread& thread, int directory, const std::string& path,
                      std::uint64_t argv, std::uint64_t envp, int flags) {
  std::vector<std::string> arguments, environment;
  if (const int error = ReadStringArray(argv, arguments); error != 0) return -error;
  if (const int error = ReadStringArray(envp, environment); error != 0) return -error;
  if ((flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0) return -EINVAL;
  // A name that is still good in the monitor that comes after: descriptors may be close-on-exec.
  std::string file = path;
  if (path.empty() || (path[0] != '/' && directory != AT_FDCWD)) {
    struct stat status {};
    if (directory != AT_FDCWD && fstat(directory, &status) != 0) return -errno;
    if (path.empty() && (flags & AT_EMPTY_PATH) == 0) return -ENOENT;
    if (!path.empty() && !S_ISDIR(status.st_mode)) return -ENOTDIR;
    file = DescriptorPath(directory);
    if (!path.empty()) file += "/" + path;
  } else if (ClassifyProcPath(path) == OwnProcFile::kExecutable) {
    file = DescriptorPath(program_file_.get());
  }
  struct stat status {};
  if ((flags & AT_SYMLINK_NOFOLLOW) != 0 && lstat(file.c_str(), &status) == 0 &&
      S_ISLNK(status.st_mode))
    return -ELOOP;
  auto executable = OpenExecutable(file, arguments);
  bool native = !options_.follow_children;
  if (!executable) {
    // What natively is found out too late is found out too late here as well.
    if (!executable.error().lost_image) return -executable.error().error_number;
    native = true;
  } else {
    // A debugger among the programs must find the program itself in its child, not a monitor.
    const pid_t tracer = TracerOfThisThread();
    native = native || executable->native_only || (tracer != 0 && tracer != options_.outer_tracer);
  }
  SetHostMask(kAllSignals);
  if (thread.signal_pending()) return kRestart;
  std::vector<char*> environment_pointers = Pointers(environment);
  SetHostMask(thread.mask());
  if (thread.signal_pending()) return kRestart;
  int error = 0;
  address_space_.limits().Apply(false);
  ExecutionObserver::Handover handover;
  if (tracking_) handover = tracking_->OnExecute();
  if (native) {
    std::vector<char*> argument_pointers = Pointers(arguments);
    if (directory == AT_FDCWD && flags == 0) {  // what a debugger of the process expects to see
      execve(path.c_str(), argument_pointers.data(), environment_pointers.data());
    } else {
      syscall(SYS_execveat, directory, path.c_str(), argument_pointers.data(),
              environment_pointers.data(), flags);
    }
    error = errno;
  } else {
    RunOptions handed_on = options_;
    if (tracking_) handed_on.observer_options = std::move(handover.options);
    const std::vector<int>& kept = handover.descriptors;
    handed_on.kvm_descriptor = machine_.kvm().fd();
    handed_on.executable_descriptor = own_executable_.get();
    machine_.kvm().KeepAcrossExec(true);
    fcntl(own_executable_.get(), F_SETFD, 0);
    for (const int descriptor : kept) fcntl(descriptor, F_SETFD, 0);
    std::vector<std::string> command{"trapline", "--exec", handed_on.Encode(), file};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<char*> command_pointers = Pointers(command);
    syscall(SYS_execveat, own_executable_.get(), "", command_pointers.data(),
            environment_pointers.data(), AT_EMPTY_PATH);
    error = errno;
    machine_.kvm().KeepAcrossExec(false);
    fcntl(own_executable_.get(), F_SETFD, FD_CLOEXEC);
    for (const int descriptor : kept) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  if (tracking_) tracking_->OnExecuteFailed();
  address_space_.limits().Apply(true);
  return -error;
}

// --- statistics

void Process::PrintStatistics() {
  if (!options_.stats || statistics_printed_.exchange(true)) return;
  std::string text;
  const auto line = [&](const std::string& what) { text += fmt::format("trapline: {}\n", what); };
  const std::optional<PageUse> use = address_space_.CountPageUse();

  const std::lock_guard lock(threads_mutex_);
  std::vector<ThreadRecord> records = ended_;
  for (const auto& [number, thread] : live_threads_) {
    const agent::ThreadPage& page = thread->carrier().thread_page();
    std::string name;
    if (FILE* comm = std::fopen(fmt::format("/proc/self/task/{}/comm", page.tid).c_str(), "re")) {
      char buffer[32] = {};
      if (std::fgets(buffer, sizeof buffer, comm) != nullptr)
        name.assign(buffer, std::strcspn(buffer, "\n"));
      std::fclose(comm);
    }
    records.push_back({number, static_cast<pid_t>(page.tid), name, page.counters});
  }
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  line(fmt::format("statistics of {} (process {})", executable_path(), getpid()));
  line(fmt::format("threads: {} started, at most {} at once",
                   ended_.size() + ended_rest_count_ + live_threads_.size(), most_threads_));
  if (use)
    line(fmt::format("pages touched: {} by one thread, {} by several", use->single, use->several));
  line(fmt::format("{:>8} {:>8} {:<16} {:>12} {:>12} {:>11} {:>13} {:>8} {:>8}", "thread", "tid",
                   "name", "system calls", "page faults", "exceptions", "interruptions", "signals",
                   "other"));
  agent::ThreadCounters total = ended_rest_.counters;
  const auto row = [&](const std::string& number, const std::string& tid, const std::string& name,
                       const agent::ThreadCounters& c) {
    line(fmt::format("{:>8} {:>8} {:<16} {:>12} {:>12} {:>11} {:>13} {:>8} {:>8}", number, tid,
                     name, c.system_calls, c.page_faults, c.exceptions, c.interruptions, c.signals,
                     c.other_exits));
  };
  for (const ThreadRecord& record : records) {
    row(std::to_string(record.number), std::to_string(record.tid), record.name, record.counters);
    total.Add(record.counters);
  }
  if (ended_rest_count_ != 0)
    row(fmt::format("+{}", ended_rest_count_), "", "(others)", ended_rest_.counters);
  row("all", "", "", total);
  if (tracking_) {
    const TrackingStatistics tracking = tracking_->statistics();
    line(fmt::format(
        "tracking: {} private and {} shared pages; {} accesses checked, {} repeats not, {} "
        "instructions not",
        address_space_.CountPages(PageState::kPrivate),
        address_space_.CountPages(PageState::kShared), tracking.checks, tracking.repeats,
        tracking.unchecked));
    line(fmt::format("queues drained while a processor had nothing else to do: {} times",
                     tracking.idle_drains));
    if (GuestCodeCache* const cache = tracking_->code_cache()) {
      const CodeCacheStatistics code = cache->statistics();
      line(fmt::format(
          "code cache: {} blocks with {} instructions translated, {} of them to be stepped; {} KiB "
          "now; full {} times, {} times without room for more, {} times run natively first for "
          "want of it",
          code.translated.blocks, code.translated.instructions, code.translated.stepped,
          code.translated.code_bytes / 1024, code.flushes, code.refused, code.declined));
      line(fmt::format("futex calls answered without leaving the guest: {} waits, {} wakes",
                       total.futex_waits, total.futex_wakes));
    }
    if (GuestCodeCache* const cache = tracking_->code_cache();
        cache != nullptr && cache->partial_code() != PartialCode::kNever) {
      line(fmt::format(
          "partial code: {} stays, {} times in full code meanwhile; {} instructions met "
          "shared pages",
          total.partial_stays, total.partial_leaves, cache->sharing()));
    }
    if (GuestCodeCache* const cache = tracking_->code_cache();
        cache != nullptr && cache->leaves_out_settled_sectors()) {
      line(fmt::format(
          "settled sectors, of which hot code did not tell: {} of one thread, {} only read",
          tracking.settled.own, tracking.settled.read));
    }
    if (GuestCodeCache* const cache = tracking_->code_cache();
        cache != nullptr && cache->biases_locks()) {
      line(
          fmt::format("locks given back, of which was not told since no other thread had to do "
                      "with them: {} times",
                      tracking.untold_locks));
    }
    if (options_.tracking.policy != SharingPolicy::kExact) {
      constexpr double kSecond = 1e9;
      timespec used{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
      line(fmt::format(
          "native code on private pages: {:.3f} s of {:.3f} s processor time, {} times until a "
          "shared page was met, {} of them without leaving the guest; {} shared pages became "
          "private or read-only; {:.3f} s waited for "
          "pages that others had on lease; pages used natively were lost {} times, which {}",
          static_cast<double>(total.native_time) / kSecond,
          static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / kSecond,
          total.returns, total.redirects, address_space_.reopened_pages(),
          static_cast<double>(total.lease_time) / kSecond, address_space_.unseen_losses(),
          address_space_.may_order_unseen() || address_space_.unseen_losses() == 0
              ? "orders their next owner after all that was done before"
              : "orders nothing: no code of the program's but the runtime's synchronises"));
    }
  }

  std::vector<std::pair<std::uint64_t, std::size_t>> calls;
  for (std::size_t i = 0; i <= kCountedCalls; ++i) {
    if (counts_[i] != 0) calls.emplace_back(counts_[i], i);
  }
  std::sort(calls.rbegin(), calls.rend());
  std::string most = "most frequent system calls (number: count):";
  for (std::size_t i = 0; i < calls.size() && i < 10; ++i) {
    most += calls[i].second == kCountedCalls
                ? fmt::format(" unknown: {}", calls[i].first)
                : fmt::format(" {}: {}", calls[i].second, calls[i].first);
  }
  line(most);
  if (unenforced_filters_ != 0) {
    line(fmt::format("{} seccomp filters accepted and not enforced", unenforced_filters_.load()));
  }
  WriteError(text);
}

}  // namespace trapline
