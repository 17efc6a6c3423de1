#include "hypervisor/system_calls.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "hypervisor/futexes.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/link_target.h"
#include "hypervisor/proc_files.h"
#include "hypervisor/process.h"

namespace trapline {
namespace {

using Arguments = const std::uint64_t (&)[6];

// --- signals

long Sigaction(GuestThread& thread, Arguments a) {
  const auto signal = static_cast<int>(a[0]);
  if (a[3] != sizeof(SignalMask) || signal < 1 || signal > 64) return -EINVAL;
  if (a[1] != 0 && (signal == SIGKILL || signal == SIGSTOP)) return -EINVAL;
  KernelSigaction action;
  if (a[1] != 0 && !ReadGuest(a[1], action)) return -EFAULT;
  const KernelSigaction old = thread.signal_actions().Get(signal);
  if (a[1] != 0) {
    action.mask &= ~kUnblockable;
    thread.signal_actions().Set(signal, action);
  }
  if (a[2] != 0 && !WriteGuest(a[2], old)) return -EFAULT;
  return 0;
}

long Sigprocmask(GuestThread& thread, Arguments a) {
  // The host thread's mask is the program's, so the kernel does the work; only the copy here must
  // follow.
  SignalMask set = 0;
  if (a[1] != 0 && a[3] == sizeof set && !ReadGuest(a[1], set)) return -EFAULT;
  const SignalMask old = thread.mask();
  const long result = thread.Interruptible(SYS_rt_sigprocmask, a);
  // A bad pointer for the old mask is noticed after the new one is set.
  if ((result == 0 || result == -EFAULT) && a[1] != 0 && a[3] == sizeof set) {
    switch (static_cast<int>(a[0])) {
      case SIG_BLOCK:
        thread.set_mask(old | set);
        break;
      case SIG_UNBLOCK:
        thread.set_mask(old & ~set);
        break;
      default:
        thread.set_mask(set);
        break;
    }
  }
  return result;
}

long Sigaltstack(GuestThread& thread, Arguments a) {
  struct StackT {
    std::uint64_t sp;
    std::int32_t flags, padding;
    std::uint64_t size;
  };
  AlternateStack& stack = thread.alternate_stack;
  const std::uint64_t rsp = thread.carrier().vcpu().registers().rsp;
  const int state = (stack.flags & SS_DISABLE) != 0 ? SS_DISABLE
                    : stack.Contains(rsp)           ? SS_ONSTACK
                                                    : 0;
  const StackT old{stack.sp, state | (stack.flags & kAutoDisarm), 0, stack.size};
  if (a[0] != 0) {
    StackT wanted{};
    if (!ReadGuest(a[0], wanted)) return -EFAULT;
    if (const int error = stack.Replace(wanted.sp, wanted.flags, wanted.size, rsp); error != 0)
      return -error;
  }
  if (a[1] != 0 && !WriteGuest(a[1], old)) return -EFAULT;
  return 0;
}

bool Sigreturn(GuestThread& thread) {
  Machine& machine = thread.process().machine();
  thread.Detach();
  SignalMask mask = 0;
  kvm_regs context = thread.context();
  if (!PopSignalFrame(context, mask, thread.alternate_stack, thread.carrier().vector_state(),
                      machine.vector_state_size(), machine.vector_mask())) {
    return false;
  }
  thread.context() = context;
  thread.set_mask(mask);
  if (!thread.signal_pending()) SetHostMask(thread.mask());
  return true;
}

// --- threads and processes

CloneArguments FromClone(Arguments a) {
  CloneArguments arguments;
  arguments.flags = a[0] & 0xffffffffull & ~0xffull;
  arguments.exit_signal = a[0] & 0xff;
  arguments.stack_pointer = a[1];
  arguments.parent_tid = arguments.pidfd = a[2];
  arguments.child_tid = a[3];
  arguments.tls = a[4];
  return arguments;
}

long Clone3(GuestThread& thread, Arguments a) {
  struct {
    std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
  } fields{};
  if (a[1] < CLONE_ARGS_SIZE_VER0) return -EINVAL;
  if (a[1] > kPageSize) return -E2BIG;
  if (!ReadGuest(a[0], &fields, std::min<std::size_t>(a[1], sizeof fields))) return -EFAULT;
  // Fields that are not known must not be used.
  for (std::uint64_t at = sizeof fields; at < a[1]; ++at) {
    char byte = 0;
    if (!ReadGuest(a[0] + at, byte)) return -EFAULT;
    if (byte != 0) return -E2BIG;
  }
  if (fields.set_tid_size != 0 || (fields.flags & CLONE_INTO_CGROUP) != 0 ||
      (fields.flags & 0xff) != 0 || fields.exit_signal > 64 ||
      (fields.stack == 0) != (fields.stack_size == 0)) {
    return -EINVAL;
  }
  CloneArguments arguments;
  arguments.flags = fields.flags;
  arguments.pidfd = fields.pidfd;
  arguments.child_tid = fields.child_tid;
  arguments.parent_tid = fields.parent_tid;
  arguments.exit_signal = fields.exit_signal;
  arguments.stack_pointer = fields.stack == 0 ? 0 : fields.stack + fields.stack_size;
  arguments.stack_start = fields.stack;
  arguments.tls = fields.tls;
  if ((arguments.flags & CLONE_PIDFD) != 0 && (arguments.flags & CLONE_THREAD) != 0) return -EINVAL;
  return thread.process().Clone(thread, arguments);
}

long Execve(GuestThread& thread, int directory, std::uint64_t path, std::uint64_t argv,
            std::uint64_t envp, int flags) {
  const auto name = ReadGuestString(path);
  char last = 0;
  if (!name) return ReadGuest(path + 4095, last) ? -ENAMETOOLONG : -EFAULT;
  if (name->empty() && (flags & AT_EMPTY_PATH) == 0) return -ENOENT;
  return thread.process().Execute(thread, directory, *name, argv, envp, flags);
}

long ArchPrctl(GuestThread& thread, Arguments a) {
  const std::uint64_t value = a[1];
  switch (a[0]) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
      if (value >= kUserAddressEnd) return -EPERM;
      if (a[0] == ARCH_SET_FS) {
        thread.SetFsBase(value);
      } else {
        thread.SetGsBase(value);
      }
      return 0;
    case ARCH_GET_FS:
      return WriteGuest(value, thread.fs_base()) ? 0 : -EFAULT;
    case ARCH_GET_GS:
      return WriteGuest(value, thread.gs_base()) ? 0 : -EFAULT;
    case 0x1011:
      return 1;  // ARCH_GET_CPUID: the instruction works
    case 0x1012:
      return -ENODEV;  // ARCH_SET_CPUID
    case 0x1021:       // ARCH_GET_XCOMP_SUPP
    case 0x1022:       // ARCH_GET_XCOMP_PERM
    case 0x1024: {     // ARCH_GET_XCOMP_GUEST_PERM
      std::uint64_t features = 0;
      if (const long result = syscall(SYS_arch_prctl, a[0], &features); result < 0) return -errno;
      constexpr std::uint64_t kTiles = 3ull << 17;
      return WriteGuest(value, features & ~kTiles) ? 0 : -EFAULT;
    }
    case 0x1023:  // ARCH_REQ_XCOMP_PERM: AMX is not offered
      return -EOPNOTSUPP;
    default:
      return -EINVAL;  // shadow stacks: not offered
  }
}

// A program's own system call filter would bind the monitor, whose calls the host thread makes too:
// it is accepted and not enforced. What is wrong with the call is told, for programs ask in this
// way what there is.
long Seccomp(GuestThread& thread, std::uint64_t operation, std::uint64_t flags,
             std::uint64_t filter) {
  if (operation == SECCOMP_SET_MODE_STRICT) {
    if (flags != 0 || filter != 0) return -EINVAL;
  } else {
    // Without SECCOMP_FILTER_FLAG_NEW_LISTENER: nobody would be told.
    constexpr std::uint64_t kKnown = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
                                     SECCOMP_FILTER_FLAG_SPEC_ALLOW |
                                     SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    if ((flags & ~kKnown) != 0) return -EINVAL;
    sock_fprog program{};
    if (!ReadGuest(filter, program)) return -EFAULT;
    if (program.len == 0 || program.len > BPF_MAXINSNS) return -EINVAL;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 && geteuid() != 0) return -EACCES;
    if (program.filter == nullptr) return -EINVAL;
    std::vector<sock_filter> instructions(program.len);
    if (!ReadGuest(reinterpret_cast<std::uint64_t>(program.filter), instructions.data(),
                   instructions.size() * sizeof(sock_filter))) {
      return -EFAULT;
    }
  }
  thread.process().NoteUnenforcedFilter();
  return 0;
}

long Prctl(GuestThread& thread, Arguments a) {
  switch (static_cast<int>(a[0])) {
    case PR_GET_TID_ADDRESS:
      return WriteGuest(a[1], thread.clear_child_tid) ? 0 : -EFAULT;
    case PR_SET_SECCOMP:
      if (a[1] == SECCOMP_MODE_STRICT) return Seccomp(thread, SECCOMP_SET_MODE_STRICT, 0, 0);
      if (a[1] == SECCOMP_MODE_FILTER) return Seccomp(thread, SECCOMP_SET_MODE_FILTER, 0, a[2]);
      return -EINVAL;
    case PR_SET_TSC:
      return a[1] == PR_TSC_ENABLE ? 0 : -EINVAL;  // would hit the monitor
    case 59:
      return a[1] == 0 ? 0 : -EINVAL;  // PR_SET_SYSCALL_USER_DISPATCH: likewise
    case PR_SET_MM:
      return -EPERM;
    default:
      return thread.Interruptible(SYS_prctl, a);
  }
}

// --- descriptors and files

long Close(GuestThread& thread, Arguments a) {
  if (IsMonitorDescriptor(static_cast<int>(a[0]))) return -EBADF;
  return thread.Interruptible(SYS_close, a);
}

long Dup(GuestThread& thread, long number, Arguments a) {
  if (IsMonitorDescriptor(static_cast<int>(a[0])) || IsMonitorDescriptor(static_cast<int>(a[1])))
    return -EBADF;
  return thread.Interruptible(number, a);
}

long CloseRange(GuestThread& thread, Arguments a) {
  const auto first = static_cast<unsigned>(a[0]);
  const auto last = static_cast<unsigned>(a[1]);
  if (first > last) return -EINVAL;
  unsigned at = first;
  for (const int kept : MonitorDescriptors()) {
    const auto number = static_cast<unsigned>(kept);
    if (number < at || number > last) continue;
    if (number > at) {
      const long result = thread.Interruptible(SYS_close_range, at, number - 1, a[2]);
      if (result < 0) return result;
    }
    at = number + 1;
  }
  return at <= last ? thread.Interruptible(SYS_close_range, at, last, a[2]) : 0;
}

long ReadlinkResult(long number, Arguments a, const std::string& target) {
  const std::uint64_t buffer = number == SYS_readlink ? a[1] : a[2];
  const int size = static_cast<int>(number == SYS_readlink ? a[2] : a[3]);
  if (size <= 0) return -EINVAL;
  const std::size_t length = std::min<std::size_t>(target.size(), static_cast<std::size_t>(size));
  return WriteGuest(buffer, target.data(), length) ? static_cast<long>(length) : -EFAULT;
}

// A write to a file, which may be the process' own memory in /proc: some just-in-time compilers
// write code there that is read-only to themselves.
long WriteFile(GuestThread& thread, long number, Arguments a) {
  const long result = thread.Interruptible(number, a);
  if (result <= 0 || !thread.process().may_have_memory_file()) return result;
  const int fd = static_cast<int>(a[0]);
  const std::string link = LinkTarget(DescriptorLink(fd));
  if (!link.starts_with(fmt::format("/proc/{}/", getpid())) || !link.ends_with("/mem"))
    return result;
  const auto written = static_cast<std::uint64_t>(result);
  const bool at_offset = number == SYS_pwrite64 || number == SYS_pwritev ||
                         (number == SYS_pwritev2 && a[3] != ~std::uint64_t{0});
  const std::uint64_t start =
      at_offset ? a[3] : static_cast<std::uint64_t>(lseek(fd, 0, SEEK_CUR)) - written;
  thread.process().address_space().OnCodeWritten(start, start + written);
  return result;
}

// A call whose `path` argument may name the program's own entry in /proc. `flags`: index of the
// open flags.
long WithPath(GuestThread& thread, long number, Arguments a, int path, bool opens) {
  const auto name = ReadGuestString(a[path]);
  const OwnProcFile file = name ? ClassifyProcPath(*name) : OwnProcFile::kNone;
  if (opens && name && name->ends_with("mem")) thread.process().NoteMemoryFile();
  if (name && file == OwnProcFile::kNone && (number == SYS_readlink || number == SYS_readlinkat)) {
    if (const auto other = ProgramOfOther(*name)) return ReadlinkResult(number, a, *other);
  }
  const bool snapshot = file != OwnProcFile::kNone && file != OwnProcFile::kExecutable;
  if (file == OwnProcFile::kNone || (snapshot && !opens)) return thread.Interruptible(number, a);
  if (snapshot) {
    const bool close_on_exec = number == SYS_open     ? (a[1] & O_CLOEXEC) != 0
                               : number == SYS_openat ? (a[2] & O_CLOEXEC) != 0
                                                      : false;
    return OpenSnapshot(thread.process(), file, *name, close_on_exec);
  }
  const std::string executable = thread.process().executable_path();
  if (number == SYS_readlink || number == SYS_readlinkat) {
    return ReadlinkResult(number, a, executable);
  }
  std::uint64_t changed[6];
  std::copy(std::begin(a), std::end(a), changed);
  const std::string link = thread.process().executable_link();
  changed[path] = reinterpret_cast<std::uint64_t>(link.c_str());
  return thread.Interruptible(number, changed);
}

long GetDents(GuestThread& thread, Arguments a) {
  const long result = thread.Interruptible(SYS_getdents64, a);
  return result > 0 ? FilterOwnDirectory(thread.process(), static_cast<int>(a[0]), a[1], result)
                    : result;
}

long Prlimit(GuestThread& thread, long number, Arguments a) {
  const bool by_process = number == SYS_prlimit64;
  const int resource = static_cast<int>(a[by_process ? 1 : 0]);
  const bool own = !by_process || a[0] == 0 || static_cast<pid_t>(a[0]) == getpid();
  if (!own || !AddressSpace::IsOwnLimit(resource)) return thread.Interruptible(number, a);
  AddressSpace& space = thread.process().address_space();
  const std::uint64_t wanted_at = by_process ? a[2] : number == SYS_setrlimit ? a[1] : 0;
  const std::uint64_t old_at = by_process ? a[3] : number == SYS_getrlimit ? a[1] : 0;
  rlimit wanted{};
  if (wanted_at != 0 && !ReadGuest(wanted_at, wanted)) return -EFAULT;
  const rlimit old = space.GetLimit(resource);
  if (wanted_at != 0) {
    if (const long result = space.SetLimit(resource, wanted); result < 0) return result;
  }
  return old_at == 0 || WriteGuest(old_at, old) ? 0 : -EFAULT;
}

// The whole of the monitor must not be locked, only what is the program's.
long LockAll(GuestThread& thread, Arguments a) {
  constexpr std::uint64_t kOnFault = 4;
  if (a[0] == 0 || (a[0] & ~7ull) != 0 || a[0] == kOnFault) return -EINVAL;
  if ((a[0] & MCL_CURRENT) == 0) return 0;
  for (const auto& [start, region] : thread.process().address_space().Regions()) {
    if (region.protection == PROT_NONE) continue;
    if (mlock(reinterpret_cast<void*>(start), region.end - start) != 0 &&
        (errno == EPERM || errno == ENOMEM)) {
      return -errno;
    }
  }
  return 0;
}

// Whether the thread is about to send itself, by tkill or tgkill, a signal that kills the process
// at once, as abort() does: the kernel carries that out before the call returns.
bool KillsItself(GuestThread& thread, std::uint64_t target, std::uint64_t number) {
  constexpr SignalMask kNotDeadly = MaskOf(SIGCHLD) | MaskOf(SIGCONT) | MaskOf(SIGSTOP) |
                                    MaskOf(SIGTSTP) | MaskOf(SIGTTIN) | MaskOf(SIGTTOU) |
                                    MaskOf(SIGURG) | MaskOf(SIGWINCH);
  const int signal = static_cast<int>(number);
  if (signal < 1 || signal >= NSIG || thread.is_vfork_child ||
      static_cast<pid_t>(target) != syscall(SYS_gettid)) {
    return false;
  }
  const bool deadly = thread.signal_actions().Get(signal).handler == 0 &&
                      ((kNotDeadly | thread.mask()) & MaskOf(signal)) == 0;
  // The first process of a namespace does not die of it; a debugger may keep it back.
  return deadly && getpid() != 1 && TracerOfThisThread() == 0;
}

}  // namespace

namespace {

// Calls whose first argument is a descriptor the program would notice the monitor's by.
bool TakesDescriptor(long number) {
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_fstat:
    case SYS_lseek:
    case SYS_ioctl:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_dup:
    case SYS_fcntl:
    case SYS_fsync:
    case SYS_fchdir:
    case SYS_ftruncate:
    case SYS_newfstatat:
    case SYS_statx:
      return true;
    default:
      return false;
  }
}

}  // namespace

SystemCallResult DispatchSystemCall(GuestThread& thread, const SystemCall& call) {
  Process& process = thread.process();
  AddressSpace& space = process.address_space();
  Arguments a = call.arguments;
  process.CountSystemCall(call.number);
  if (TakesDescriptor(call.number) && IsMonitorDescriptor(static_cast<int>(a[0]))) return {-EBADF};
  const auto number32 = [&](int i) { return static_cast<int>(a[i]); };
  const FutexWaiter waiter(thread.carrier(), call);
  const CountedThread away(thread.carrier(), thread.is_vfork_child ? 0 : -1);
  switch (call.number) {
    // --- memory
    case SYS_mmap:
      return {space.Mmap(a[0], a[1], number32(2), number32(3), number32(4), a[5])};
    case SYS_munmap:
      return {space.Munmap(a[0], a[1])};
    case SYS_mprotect:
      return {space.Mprotect(a[0], a[1], number32(2))};
    // The guest has no protection keys, whatever the processor has: what the host keeps from the
    // monitor by one, KVM cannot show the guest.
    case SYS_pkey_mprotect:
      return {number32(3) == -1 ? space.Mprotect(a[0], a[1], number32(2)) : -EINVAL};
    case SYS_pkey_alloc:
      return {a[0] != 0 || (a[1] & ~std::uint64_t{PKEY_DISABLE_ACCESS | PKEY_DISABLE_WRITE}) != 0
                  ? -EINVAL
                  : -ENOSPC};
    case SYS_pkey_free:
      return {-EINVAL};
    case SYS_mremap:
      return {space.Mremap(a[0], a[1], a[2], number32(3), a[4])};
    case SYS_madvise:
      return {space.Madvise(a[0], a[1], number32(2))};
    case SYS_brk:
      return {space.Brk(a[0])};
    case SYS_shmat:
      return {space.Shmat(number32(0), a[1], number32(2))};
    case SYS_shmdt:
      return {space.Shmdt(a[0])};
    case SYS_userfaultfd:
      space.OnProgramWatchesMemory();
      return {thread.Interruptible(call.number, a)};
    case SYS_ioctl:
      // What /dev/userfaultfd is asked for a descriptor by.
      if (a[1] == USERFAULTFD_IOC_NEW) space.OnProgramWatchesMemory();
      if (uffdio_register served{}; a[1] == UFFDIO_REGISTER && ReadGuest(a[2], served))
        space.OnProgramServes(served.range.start, served.range.start + served.range.len);
      return {thread.Interruptible(call.number, a)};
    case SYS_getrlimit:
    case SYS_setrlimit:
    case SYS_prlimit64:
      return {Prlimit(thread, call.number, a)};
    case SYS_mlockall:
      return {LockAll(thread, a)};

    // --- signals
    case SYS_rt_sigaction:
      return {Sigaction(thread, a)};
    case SYS_rt_sigprocmask:
      return {Sigprocmask(thread, a)};
    case SYS_sigaltstack:
      return {Sigaltstack(thread, a)};
    case SYS_tkill:
      if (KillsItself(thread, a[0], a[1])) process.BeforeDeath(thread);
      return {thread.Interruptible(call.number, a)};
    case SYS_tgkill:
      if (number32(0) == getpid() && KillsItself(thread, a[1], a[2])) process.BeforeDeath(thread);
      return {thread.Interruptible(call.number, a)};
    case SYS_rt_sigreturn:
      if (!Sigreturn(thread)) {
        SignalDelivery delivery;
        delivery.signal = SIGSEGV;
        delivery.info.si_signo = SIGSEGV;
        delivery.info.si_code = SI_KERNEL;
        thread.ForceSignal(delivery);
      }
      return {0, true};

    // --- threads, processes, identity
    case SYS_clone:
      return {process.Clone(thread, FromClone(a))};
    case SYS_clone3:
      return {Clone3(thread, a)};
    case SYS_fork: {
      CloneArguments arguments;
      arguments.exit_signal = SIGCHLD;
      return {process.Clone(thread, arguments)};
    }
    case SYS_vfork: {
      CloneArguments arguments;
      arguments.flags = CLONE_VM | CLONE_VFORK;
      arguments.exit_signal = SIGCHLD;
      return {process.Clone(thread, arguments)};
    }
    case SYS_execve:
      return {Execve(thread, AT_FDCWD, a[0], a[1], a[2], 0)};
    case SYS_execveat:
      return {Execve(thread, number32(0), a[1], a[2], a[3], number32(4))};
    case SYS_exit:
      thread.RequestExit(number32(0));
      return {};
    case SYS_exit_group:
      process.ExitGroup(thread, number32(0));
    case SYS_set_tid_address:
      thread.clear_child_tid = a[0];
      return {syscall(SYS_gettid)};
    case SYS_set_robust_list:
      if (a[1] != 24) return {-EINVAL};
      thread.robust_list_head = a[0];
      // The kernel walks the list when the whole process is killed; Process does when a thread
      // ends.
      return {thread.Interruptible(call.number, a)};
    case SYS_get_robust_list:
      if (a[0] == 0 || static_cast<long>(a[0]) == syscall(SYS_gettid)) {
        const std::uint64_t size = 24;
        return {WriteGuest(a[1], thread.robust_list_head) && WriteGuest(a[2], size) ? 0 : -EFAULT};
      }
      return {thread.Interruptible(call.number, a)};
    case SYS_unshare:
    case SYS_setns:
      return {process.ChangeNamespaces(thread, call.number, a)};
    case SYS_arch_prctl:
      return {ArchPrctl(thread, a)};
    case SYS_prctl:
      return {Prctl(thread, a)};
    case SYS_memfd_secret:  // KVM cannot show such memory; wrong flags are for the kernel to tell
      return {(number32(0) & ~O_CLOEXEC) != 0 ? thread.Interruptible(call.number, a) : -ENOSYS};
    case SYS_rseq:
      return {-ENOSYS};  // would name the monitor's code, not the program's
    case SYS_seccomp:
      if (a[0] == SECCOMP_SET_MODE_FILTER || a[0] == SECCOMP_SET_MODE_STRICT)
        return {Seccomp(thread, a[0], a[1], a[2])};
      return {thread.Interruptible(call.number, a)};
    case SYS_modify_ldt:  // an empty table, and as a kernel without the call
      return {a[0] == 0 ? 0 : static_cast<long>(static_cast<std::uint32_t>(-ENOSYS))};
    case SYS_iopl:  // no port I/O is offered; wrong arguments are for the kernel to tell
      return {static_cast<std::uint32_t>(a[0]) > 3 ? thread.Interruptible(call.number, a)
                                                   : -ENOSYS};
    case SYS_ioperm: {
      const bool wrong = a[0] + a[1] <= a[0] || a[0] + a[1] > 65536;
      return {wrong ? thread.Interruptible(call.number, a) : -ENOSYS};
    }
    case SYS_restart_syscall:
      return {-EINTR};

    // --- descriptors and files
    case SYS_close:
      return {Close(thread, a)};
    case SYS_close_range:
      return {CloseRange(thread, a)};
    case SYS_dup2:
    case SYS_dup3:
      return {Dup(thread, call.number, a)};
    case SYS_open:
      return {WithPath(thread, call.number, a, 0, true)};
    case SYS_openat:
    case SYS_openat2:
      return {WithPath(thread, call.number, a, 1, true)};
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
      return {WriteFile(thread, call.number, a)};
    case SYS_readlink:
    case SYS_stat:
    case SYS_access:
      return {WithPath(thread, call.number, a, 0, false)};
    case SYS_readlinkat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_faccessat2:
      return {WithPath(thread, call.number, a, 1, false)};
    case SYS_getdents64:
      return {GetDents(thread, a)};

    default:
      return {thread.Interruptible(call.number, a)};
  }
}

}  // namespace trapline
