#include "hypervisor/system_call_effects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hypervisor/guest_copy.h"
#include "hypervisor/kvm.h"
#include "hypervisor/link_target.h"
#include "hypervisor/process.h"
#include "hypervisor/socket_keys.h"
#include "hypervisor/uring_requests.h"

namespace trapline {
namespace {

// --- memory

enum class Size : std::uint8_t {
  kFixed,        // `amount` bytes
  kArgument,     // the value of argument `amount`
  kResult,       // what the call returned
  kCount,        // the value of argument `amount`, times `unit`
  kResultCount,  // what the call returned, times `unit`
  kString,       // up to and including the zero
  kVector,       // an array of iovec, of argument `amount` elements
  kMessage,      // a msghdr
};

// One buffer of one system call.
struct Buffer {
  long number;
  int argument;  // that points to it
  bool write;    // by the kernel, after success; else read, before
  Size size;
  unsigned amount = 0;
  unsigned unit = 1;
};

constexpr unsigned kTimespec = 16, kStat = sizeof(struct stat);

// Arguments that are structures of the kernel's or plain data; man pages of section 2.
constexpr Buffer kBuffers[] = {
    {SYS_read, 1, true, Size::kResult},
    {SYS_pread64, 1, true, Size::kResult},
    {SYS_readv, 1, true, Size::kVector, 2},
    {SYS_preadv, 1, true, Size::kVector, 2},
    {SYS_preadv2, 1, true, Size::kVector, 2},
    {SYS_recvfrom, 1, true, Size::kResult},
    {SYS_recvmsg, 1, true, Size::kMessage},
    {SYS_readlink, 1, true, Size::kResult},
    {SYS_readlinkat, 2, true, Size::kResult},
    {SYS_getcwd, 0, true, Size::kResult},
    {SYS_getrandom, 0, true, Size::kResult},
    {SYS_getdents64, 1, true, Size::kResult},
    {SYS_write, 1, false, Size::kArgument, 2},
    {SYS_pwrite64, 1, false, Size::kArgument, 2},
    {SYS_writev, 1, false, Size::kVector, 2},
    {SYS_pwritev, 1, false, Size::kVector, 2},
    {SYS_pwritev2, 1, false, Size::kVector, 2},
    {SYS_sendto, 1, false, Size::kArgument, 2},
    {SYS_sendmsg, 1, false, Size::kMessage},
    {SYS_stat, 0, false, Size::kString},
    {SYS_stat, 1, true, Size::kFixed, kStat},
    {SYS_lstat, 0, false, Size::kString},
    {SYS_lstat, 1, true, Size::kFixed, kStat},
    {SYS_fstat, 1, true, Size::kFixed, kStat},
    {SYS_newfstatat, 1, false, Size::kString},
    {SYS_newfstatat, 2, true, Size::kFixed, kStat},
    {SYS_statx, 4, true, Size::kFixed, 256},
    {SYS_open, 0, false, Size::kString},
    {SYS_openat, 1, false, Size::kString},
    {SYS_access, 0, false, Size::kString},
    {SYS_unlink, 0, false, Size::kString},
    {SYS_mkdir, 0, false, Size::kString},
    {SYS_rename, 0, false, Size::kString},
    {SYS_rename, 1, false, Size::kString},
    {SYS_clock_gettime, 1, true, Size::kFixed, kTimespec},
    {SYS_gettimeofday, 0, true, Size::kFixed, 16},
    {SYS_nanosleep, 0, false, Size::kFixed, kTimespec},
    {SYS_clock_nanosleep, 2, false, Size::kFixed, kTimespec},
    {SYS_pipe, 0, true, Size::kFixed, 8},
    {SYS_pipe2, 0, true, Size::kFixed, 8},
    {SYS_socketpair, 3, true, Size::kFixed, 8},
    {SYS_bind, 1, false, Size::kArgument, 2},
    {SYS_connect, 1, false, Size::kArgument, 2},
    {SYS_poll, 0, false, Size::kCount, 1, sizeof(pollfd)},
    {SYS_poll, 0, true, Size::kCount, 1, sizeof(pollfd)},
    {SYS_ppoll, 0, false, Size::kCount, 1, sizeof(pollfd)},
    {SYS_ppoll, 0, true, Size::kCount, 1, sizeof(pollfd)},
    {SYS_epoll_wait, 1, true, Size::kResultCount, 0, sizeof(epoll_event)},
    {SYS_epoll_pwait, 1, true, Size::kResultCount, 0, sizeof(epoll_event)},
    {SYS_epoll_ctl, 3, false, Size::kFixed, sizeof(epoll_event)},
    {SYS_uname, 0, true, Size::kFixed, sizeof(utsname)},
    {SYS_sysinfo, 0, true, Size::kFixed, sizeof(struct sysinfo)},
    {SYS_times, 0, true, Size::kFixed, sizeof(tms)},
    {SYS_getrusage, 1, true, Size::kFixed, sizeof(rusage)},
    {SYS_getrlimit, 1, true, Size::kFixed, sizeof(rlimit)},
    {SYS_setrlimit, 1, false, Size::kFixed, sizeof(rlimit)},
    {SYS_wait4, 1, true, Size::kFixed, 4},
    {SYS_timerfd_settime, 2, false, Size::kFixed, 32},
    {SYS_timerfd_gettime, 1, true, Size::kFixed, 32},
};

void ReportRange(GuestThread& thread, bool write, std::uint64_t address, std::uint64_t size,
                 const RegisterFile& registers) {
  if (address == 0 || size == 0) return;
  thread.process().tracking()->CheckSystemCall(thread.carrier(), write, address, size, registers);
}

// `bytes`: how many were transferred; more than all buffers hold: all of them.
void ReportVector(GuestThread& thread, bool write, std::uint64_t vector, std::uint64_t count,
                  std::uint64_t bytes, const RegisterFile& registers) {
  constexpr std::uint64_t kMost = 1024;  // IOV_MAX
  ReportRange(thread, false, vector, std::min(count, kMost) * sizeof(iovec), registers);
  for (std::uint64_t i = 0; i < std::min(count, kMost) && bytes > 0; ++i) {
    iovec part{};
    if (!ReadGuest(vector + i * sizeof part, part)) return;
    const std::uint64_t size = std::min<std::uint64_t>(part.iov_len, bytes);
    ReportRange(thread, write, reinterpret_cast<std::uint64_t>(part.iov_base), size, registers);
    bytes -= size;
  }
}

void ReportBuffers(GuestThread& thread, const SystemCall& call, bool after, long result) {
  const RegisterFile registers = thread.Registers();
  const auto moved = after ? static_cast<std::uint64_t>(result) : ~std::uint64_t{0};
  for (const Buffer& buffer : kBuffers) {
    if (buffer.number != call.number || buffer.write != after) continue;
    const std::uint64_t address = call.arguments[buffer.argument];
    switch (buffer.size) {
      case Size::kFixed:
        ReportRange(thread, buffer.write, address, buffer.amount, registers);
        break;
      case Size::kArgument:
      case Size::kCount:
        ReportRange(thread, buffer.write, address, call.arguments[buffer.amount] * buffer.unit,
                    registers);
        break;
      case Size::kResult:
      case Size::kResultCount:
        ReportRange(thread, buffer.write, address, moved * buffer.unit, registers);
        break;
      case Size::kString:
        if (const auto text = ReadGuestString(address))
          ReportRange(thread, false, address, text->size() + 1, registers);
        break;
      case Size::kVector:
        ReportVector(thread, buffer.write, address, call.arguments[buffer.amount], moved,
                     registers);
        break;
      case Size::kMessage: {
        msghdr header{};
        if (!ReadGuest(address, header)) break;
        ReportRange(thread, false, address, sizeof header, registers);
        ReportVector(thread, buffer.write, reinterpret_cast<std::uint64_t>(header.msg_iov),
                     header.msg_iovlen, moved, registers);
        break;
      }
    }
  }
}

// --- order

// Keys that no address of the program can have.
constexpr std::uint64_t kFileKeys = 1ull << 56, kSignalKeys = 3ull << 56,
                        kSemaphoreKeys = 4ull << 56, kMessageKeys = 5ull << 56,
                        kEventKeys = 6ull << 56, kChildKey = 8ull << 56, kTerminalKeys = 9ull << 56,
                        kNumberKeys = 10ull << 56;
constexpr std::uint64_t kCounterBit = 1ull << 55;

// A socket address of the program's, of `length` bytes; of no family: there is none.
sockaddr_storage AddressAt(std::uint64_t name, std::uint64_t length) {
  sockaddr_storage address{};
  length = std::min<std::uint64_t>(length, sizeof address);
  return ReadGuest(name, &address, length) ? address : sockaddr_storage{};
}

sockaddr_storage AddressToConnect(const SystemCall& call) {
  return AddressAt(call.arguments[1], call.arguments[2]);
}

// The number the kernel gave an event counter, the same for all of its descriptors (Linux 5.2);
// nothing if it is none.
std::optional<std::uint64_t> EventCounter(int fd) {
  std::ifstream information(fmt::format("/proc/thread-self/fdinfo/{}", fd));
  for (std::string name; information >> name;) {
    std::uint64_t number = 0;
    if (name == "eventfd-id:" && information >> number) return number;
  }
  return std::nullopt;
}

std::uint64_t FileKey(const struct stat& status) {
  return kFileKeys | Mix(status.st_ino + status.st_dev);
}

// Of a pseudo terminal, the same at both ends; 0: it is none.
std::uint64_t TerminalKey(int fd, dev_t device) {
  constexpr unsigned kFirstSlaves = 136, kLastSlaves = 143;  // pts(4)
  const unsigned kind = major(device);
  unsigned number = minor(device);
  if (kind >= kFirstSlaves && kind <= kLastSlaves)
    return kTerminalKeys | ((kind - kFirstSlaves) << 8) | number;
  const bool is_master = device == makedev(5, 2) && ioctl(fd, TIOCGPTN, &number) == 0;
  return is_master ? kTerminalKeys | number : 0;
}

// The argument that is a descriptor.
int DescriptorIn(const SystemCall& call, unsigned argument) {
  return static_cast<int>(call.arguments[argument]);
}

// The object behind a descriptor that carries data from one thread to another; 0: none.
std::uint64_t DescriptorKey(int fd, Way way) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return 0;
  if (S_ISFIFO(status.st_mode)) return FileKey(status);
  if (S_ISSOCK(status.st_mode)) return SocketKey(fd, status.st_ino, way);
  if (S_ISCHR(status.st_mode)) return TerminalKey(fd, status.st_rdev);
  // Event counters and the like are inodes without a type.
  if ((status.st_mode & S_IFMT) == 0) {
    if (const auto counter = EventCounter(fd)) return kEventKeys | kCounterBit | *counter;
    const bool tells_of_process =
        way == Way::kIn && LinkTarget(DescriptorLink(fd)) == "anon_inode:[pidfd]";
    return tells_of_process ? kChildKey : kEventKeys | static_cast<std::uint64_t>(fd);
  }
  return 0;
}

// Of a POSIX message queue, which looks like a file.
std::uint64_t MessageQueueKey(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? FileKey(status) : 0;
}

// Locks on files that belong to whoever opened the file, and so may keep threads from each other
// (fcntl(2), "Open file description locks"): 0: the call is none. Those of fcntl's older kind
// belong to the process.
enum class FileLock : std::uint8_t { kNone, kTaken, kTakenForReading, kGivenBack };

FileLock FileLockOf(const SystemCall& call) {
  if (call.number == SYS_flock) {
    switch (call.arguments[1] & ~static_cast<std::uint64_t>(LOCK_NB)) {
      case LOCK_EX:
        return FileLock::kTaken;
      case LOCK_SH:
        return FileLock::kTakenForReading;
      default:
        return FileLock::kGivenBack;
    }
  }
  struct flock lock {};
  if (call.number != SYS_fcntl ||
      (call.arguments[1] != F_OFD_SETLK && call.arguments[1] != F_OFD_SETLKW) ||
      !ReadGuest(call.arguments[2], lock)) {
    return FileLock::kNone;
  }
  return lock.l_type == F_WRLCK   ? FileLock::kTaken
         : lock.l_type == F_RDLCK ? FileLock::kTakenForReading
                                  : FileLock::kGivenBack;
}

// Whether such a lock was ever taken: only then is the end of a descriptor the end of one.
std::atomic<bool> files_are_locked{false};

std::uint64_t FileLockKey(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? FileKey(status) : 0;
}

// The address that a message is sent to by its own name; of several messages the first one's. Of no
// family: there is none.
sockaddr_storage NamedAddress(const SystemCall& call) {
  std::uint64_t name = call.arguments[4], length = call.arguments[5];
  if (call.number != SYS_sendto) {  // an mmsghdr begins with a msghdr
    msghdr header{};
    if (!ReadGuest(call.arguments[1], header)) return {};
    name = reinterpret_cast<std::uint64_t>(header.msg_name);
    length = header.msg_namelen;
  }
  return AddressAt(name, length);
}

// What the call gives data to; 0: nothing that hands it on.
std::uint64_t KeySentTo(const SystemCall& call) {
  switch (call.number) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_vmsplice:
    case SYS_shutdown:
    case SYS_epoll_ctl:
    case SYS_timerfd_settime:
    case SYS_io_uring_enter:
      return DescriptorKey(DescriptorIn(call, 0), Way::kOut);
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg: {
      const std::uint64_t key = DescriptorKey(DescriptorIn(call, 0), Way::kOut);
      return key != 0 ? key : DatagramKey(NamedAddress(call));
    }
    case SYS_connect:
      return MeetingKey(AddressToConnect(call));
    case SYS_listen:
      return OwnListeningKey(DescriptorIn(call, 0));
    case SYS_tee:
      return DescriptorKey(DescriptorIn(call, 1), Way::kOut);
    case SYS_splice:
      return DescriptorKey(DescriptorIn(call, 2), Way::kOut);
    case SYS_mq_timedsend:
      return MessageQueueKey(DescriptorIn(call, 0));
    default:
      return 0;
  }
}

// What it takes data from.
std::uint64_t KeyReceivedFrom(const SystemCall& call, long result) {
  switch (call.number) {
    case SYS_accept:
    case SYS_accept4:
      return OwnMeetingKey(result >= 0 ? static_cast<int>(result) : DescriptorIn(call, 0));
    case SYS_connect:
      return ListeningKey(AddressToConnect(call));
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_splice:
    case SYS_tee:
      return DescriptorKey(DescriptorIn(call, 0),
                           Way::kIn);  // also of nothing: it was closed before
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      // Who hears that nobody will read it comes after the end.
      return result < 0 ? DescriptorKey(DescriptorIn(call, 0), Way::kIn) : 0;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return result > 0 ? DescriptorKey(DescriptorIn(call, 0), Way::kIn) : 0;
    case SYS_io_uring_enter:
      // It was to wait for completions.
      return call.arguments[2] > 0 ? DescriptorKey(DescriptorIn(call, 0), Way::kIn) : 0;
    case SYS_sendfile:
      return DescriptorKey(DescriptorIn(call, 1), Way::kIn);
    case SYS_ioctl: {
      // How much there is to be read: something.
      int size = 0;
      const bool tells = call.arguments[1] == FIONREAD && ReadGuest(call.arguments[2], size);
      return tells && size > 0 ? DescriptorKey(DescriptorIn(call, 0), Way::kIn) : 0;
    }
    case SYS_mq_timedreceive:
      return MessageQueueKey(DescriptorIn(call, 0));
    default:
      return 0;
  }
}

// Whether what it takes from one descriptor goes to another.
bool HandsOn(long number) { return number == SYS_splice || number == SYS_tee; }

// What epoll_wait says of a descriptor that is ready is the data that epoll_ctl was told: those of
// each descriptor, and the descriptors by them, for each epoll instance.
struct EpollInstance {
  std::map<int, std::uint64_t> data;
  std::map<std::uint64_t, std::set<int>> descriptors;
};
std::mutex epoll_mutex;
std::map<std::uint64_t, EpollInstance> epoll_instances;

// A descriptor that is taken out or closed stays until it is put in again: another thread may be
// about to ask, and at worst too much is ordered.
void NoteEpollControl(const SystemCall& call) {
  epoll_event event{};
  if (call.number != SYS_epoll_ctl || static_cast<int>(call.arguments[1]) == EPOLL_CTL_DEL ||
      !ReadGuest(call.arguments[3], event)) {
    return;
  }
  const std::uint64_t key = DescriptorKey(DescriptorIn(call, 0), Way::kIn);
  const auto descriptor = static_cast<int>(call.arguments[2]);
  const std::uint64_t data = event.data.u64;
  const std::lock_guard lock(epoll_mutex);
  EpollInstance& instance = epoll_instances[key];
  const auto [known, is_new] = instance.data.try_emplace(descriptor, data);
  if (!is_new && known->second != data) {
    const auto former = instance.descriptors.find(known->second);
    former->second.erase(descriptor);
    if (former->second.empty()) instance.descriptors.erase(former);
    known->second = data;
  }
  instance.descriptors[data].insert(descriptor);
}

bool IsEpollWait(long number) {
  return number == SYS_epoll_wait || number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

// The descriptors a call found ready: who sent what makes them so came before.
std::vector<int> ReadyDescriptors(const SystemCall& call, long result) {
  std::vector<int> ready;
  if (result <= 0) return ready;
  constexpr std::uint64_t kMost = 4096;
  if (IsEpollWait(call.number)) {
    std::vector<epoll_event> events(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(result), kMost));
    if (!ReadGuest(call.arguments[1], events.data(), events.size() * sizeof(epoll_event)))
      return ready;
    const std::uint64_t key = DescriptorKey(DescriptorIn(call, 0), Way::kIn);
    const std::lock_guard lock(epoll_mutex);
    const auto instance = epoll_instances.find(key);
    if (instance == epoll_instances.end()) return ready;
    for (const epoll_event& event : events) {
      const auto known = instance->second.descriptors.find(event.data.u64);
      if (known != instance->second.descriptors.end())
        ready.insert(ready.end(), known->second.begin(), known->second.end());
    }
    return ready;
  }
  if (call.number == SYS_poll || call.number == SYS_ppoll) {
    std::vector<pollfd> entries(std::min<std::uint64_t>(call.arguments[1], kMost));
    if (!ReadGuest(call.arguments[0], entries.data(), entries.size() * sizeof(pollfd)))
      return ready;
    for (const pollfd& entry : entries) {
      if (entry.revents != 0) ready.push_back(entry.fd);
    }
  } else if ((call.number == SYS_select || call.number == SYS_pselect6) && call.arguments[1] != 0) {
    constexpr std::uint64_t kBits = 64;
    std::vector<std::uint64_t> set(std::min((call.arguments[0] + kBits - 1) / kBits, kMost));
    if (!ReadGuest(call.arguments[1], set.data(), set.size() * sizeof set[0])) return ready;
    for (std::uint64_t fd = 0; fd < set.size() * kBits; ++fd) {
      if ((set[fd / kBits] >> fd % kBits & 1) != 0) ready.push_back(static_cast<int>(fd));
    }
  }
  return ready;
}

// What the requests handed to each ring take something from. They stay: a request may go on for
// ever, and at worst too much is ordered.
std::mutex uring_mutex;
std::map<int, std::set<std::uint64_t>> uring_sources;

// Returns what the requests give something to.
std::vector<std::uint64_t> NoteUringRequests(const SystemCall& call) {
  constexpr std::size_t kMostSources = 4096;
  std::vector<std::uint64_t> given;
  for (const auto& [kind, descriptor] : UringRequests(call)) {
    if (kind == UringRequest::Kind::kGives) {
      given.push_back(DescriptorKey(descriptor, Way::kOut));
      continue;
    }
    const std::uint64_t key = kind == UringRequest::Kind::kAccepts
                                  ? OwnMeetingKey(descriptor)
                                  : DescriptorKey(descriptor, Way::kIn);
    const std::lock_guard lock(uring_mutex);
    std::set<std::uint64_t>& sources = uring_sources[DescriptorIn(call, 0)];
    if (key != 0 && sources.size() < kMostSources) sources.insert(key);
  }
  return given;
}

// What came to the ring on which the call has waited for completions.
std::vector<std::uint64_t> UringSources(const SystemCall& call) {
  if (call.number != SYS_io_uring_enter || call.arguments[2] == 0) return {};
  const std::lock_guard lock(uring_mutex);
  const auto known = uring_sources.find(DescriptorIn(call, 0));
  if (known == uring_sources.end()) return {};
  return {known->second.begin(), known->second.end()};
}

// The signals that a read from a signal descriptor brought.
std::vector<int> SignalsRead(const SystemCall& call, long result) {
  std::vector<int> signals;
  if (call.number != SYS_read || result <= 0 || result % sizeof(signalfd_siginfo) != 0)
    return signals;
  if (LinkTarget(DescriptorLink(DescriptorIn(call, 0))) != "anon_inode:[signalfd]") return signals;
  std::vector<signalfd_siginfo> entries(static_cast<std::size_t>(result) /
                                        sizeof(signalfd_siginfo));
  if (!ReadGuest(call.arguments[1], entries.data(), static_cast<std::size_t>(result)))
    return signals;
  for (const signalfd_siginfo& entry : entries)
    signals.push_back(static_cast<int>(entry.ssi_signo));
  return signals;
}

// Whether the first argument is a descriptor that data goes through.
bool UsesDescriptor(long number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_splice:
    case SYS_shutdown:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
      return true;
    default:
      return false;
  }
}

// Calls that return a descriptor of the kernel's choice.
bool MakesDescriptor(const SystemCall& call) {
  switch (call.number) {
    case SYS_open:
    case SYS_openat:
    case SYS_creat:
    case SYS_dup:
    case SYS_socket:
    case SYS_accept:
    case SYS_accept4:
    case SYS_eventfd:
    case SYS_eventfd2:
    case SYS_epoll_create:
    case SYS_epoll_create1:
    case SYS_timerfd_create:
    case SYS_signalfd:
    case SYS_signalfd4:
    case SYS_memfd_create:
    case SYS_inotify_init:
    case SYS_inotify_init1:
    case SYS_mq_open:
    case SYS_openat2:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd:
    case SYS_userfaultfd:
    case SYS_perf_event_open:
      return true;
    case SYS_fcntl:
      return call.arguments[1] == F_DUPFD || call.arguments[1] == F_DUPFD_CLOEXEC;
    default:
      return false;
  }
}

// The descriptors that the call closes.
std::vector<int> ClosedDescriptors(const SystemCall& call) {
  switch (call.number) {
    case SYS_close:
      return {DescriptorIn(call, 0)};
    case SYS_dup2:
    case SYS_dup3:
      if (DescriptorIn(call, 0) == DescriptorIn(call, 1)) return {};
      return {DescriptorIn(call, 1)};
    case SYS_close_range: {
      if ((call.arguments[2] & CLOSE_RANGE_CLOEXEC) != 0) return {};
      constexpr std::uint64_t kMost = 1 << 16;  // to look at each takes 0.1 us
      std::vector<int> closed;
      const std::uint64_t last =
          std::min<std::uint64_t>(static_cast<unsigned>(call.arguments[1]), kMost);
      for (std::uint64_t number = static_cast<unsigned>(call.arguments[0]); number <= last;
           ++number) {
        const auto fd = static_cast<int>(number);
        if (fcntl(fd, F_GETFD) >= 0 && !IsMonitorDescriptor(fd)) closed.push_back(fd);
      }
      return closed;
    }
    default:
      return {};
  }
}

// Who closes a descriptor comes before who gets its number next: servers have tables by numbers.
std::uint64_t NumberKey(int descriptor) {
  return kNumberKeys | static_cast<std::uint32_t>(descriptor);
}

// The descriptors that the call has made, of the kernel's choice.
std::vector<int> NewDescriptors(const SystemCall& call, long result) {
  if (MakesDescriptor(call)) return {static_cast<int>(result)};
  if (call.number != SYS_pipe && call.number != SYS_pipe2 && call.number != SYS_socketpair)
    return {};
  int ends[2] = {-1, -1};
  if (!ReadGuest(call.arguments[call.number == SYS_socketpair ? 3 : 0], ends)) return {};
  return {ends[0], ends[1]};
}

// Whether they are of the kinds that event loops wait for. Not files: whoever reads some would come
// after whoever read others before, by chance.
bool MakesForLoops(long number) {
  switch (number) {
    case SYS_accept:
    case SYS_accept4:
    case SYS_socket:
    case SYS_socketpair:
    case SYS_pipe:
    case SYS_pipe2:
    case SYS_eventfd:
    case SYS_eventfd2:
    case SYS_timerfd_create:
    case SYS_epoll_create:
    case SYS_epoll_create1:
      return true;
    default:
      return false;
  }
}

// Whether the error tells that the other end is gone, or the own one closed.
bool TellsOfEnd(long error) {
  return error == -EPIPE || error == -ECONNRESET || error == -ECONNABORTED || error == -EINVAL ||
         error == -EBADF;
}

std::uint64_t SemaphoreKey(const SystemCall& call) {
  return kSemaphoreKeys | (call.arguments[0] & kKeyBits);
}

bool SetsSemaphores(const SystemCall& call) {
  return call.number == SYS_semctl && (call.arguments[2] == SETVAL || call.arguments[2] == SETALL);
}

bool ReadsSemaphores(const SystemCall& call) {
  return call.number == SYS_semctl && (call.arguments[2] == GETVAL || call.arguments[2] == GETALL);
}

// Whether the kernel sends signals from now on when data come: for a message in a queue, or for
// what a descriptor becomes ready for. Who sends the data comes before the signal's handler then.
std::atomic<bool> kernel_may_signal{false};

bool AsksForSignals(const SystemCall& call) {
  return call.number == SYS_mq_notify ||
         (call.number == SYS_fcntl && call.arguments[1] == F_SETFL &&
          (call.arguments[2] & O_ASYNC) != 0) ||
         (call.number == SYS_ioctl && call.arguments[1] == FIOASYNC);
}

// Whether the call makes a process rather than a thread.
bool MakesProcess(const SystemCall& call) {
  std::uint64_t flags = 0;
  if (call.number == SYS_clone) flags = call.arguments[0];
  if (call.number == SYS_clone3 && !ReadGuest(call.arguments[0], flags)) return false;
  return (flags & CLONE_THREAD) == 0;
}

// `key`: 0: there is none.
void TellEdge(GuestThread& thread, EventKind kind, std::uint64_t key) {
  if (key != 0) thread.process().tracking()->OnEdge(thread.carrier(), kind, key);
}

void ReportDescriptor(GuestThread& thread, const SystemCall& call) {
  Tracking& tracking = *thread.process().tracking();
  const bool closes = call.number == SYS_close;
  const bool uses = UsesDescriptor(call.number);
  const auto descriptor = DescriptorIn(call, 0);
  if ((closes || uses) && descriptor >= 0)
    tracking.CheckDescriptor(thread.carrier(), closes, descriptor, thread.Registers());
  // A use of the other number, as it is done on purpose where threads may use what it meant before,
  // but not where one may close it.
  const auto other = static_cast<int>(call.arguments[1]);
  if ((call.number == SYS_dup2 || call.number == SYS_dup3) && other != descriptor && other >= 0)
    tracking.CheckDescriptor(thread.carrier(), false, other, thread.Registers());
}

}  // namespace

std::uint64_t SignalKey(int signal) { return kSignalKeys | static_cast<std::uint64_t>(signal); }

bool IsOfKernel(const siginfo_t& info) {
  return info.si_code == SI_TIMER || info.si_code == SI_MESGQ || info.si_code == SI_ASYNCIO ||
         info.si_code == SI_KERNEL || (info.si_code > 0 && info.si_signo >= SIGIO);
}

void ReportBeforeSystemCall(GuestThread& thread, const SystemCall& call) {
  Tracking* const tracking = thread.process().tracking();
  if (tracking == nullptr || thread.is_vfork_child) return;
  NoteEpollControl(call);
  const std::vector<std::uint64_t> given_to_uring = NoteUringRequests(call);
  if (AsksForSignals(call)) kernel_may_signal = true;
  if (!tracking->active()) return;
  ReportBuffers(thread, call, false, 0);
  ReportDescriptor(thread, call);
  const auto publish = [&](std::uint64_t key) { TellEdge(thread, EventKind::kHappensBefore, key); };
  const auto send_to = [&](std::uint64_t key) {
    publish(key);
    if (key != 0 && kernel_may_signal) publish(kKernelSignalKey);
  };
  // What is there already is handed on with all that came before it.
  if (HandsOn(call.number)) TellEdge(thread, EventKind::kHappensAfter, KeyReceivedFrom(call, 0));
  send_to(KeySentTo(call));
  for (const std::uint64_t key : given_to_uring) send_to(key);
  for (const int closed : ClosedDescriptors(call)) {
    send_to(DescriptorKey(closed, Way::kOut));
    publish(NumberKey(closed));
    if (files_are_locked) publish(FileLockKey(closed));
    ForgetConnection(closed);
  }
  // A lock for reading may have been one for writing.
  if (const FileLock lock = FileLockOf(call);
      lock == FileLock::kGivenBack || lock == FileLock::kTakenForReading) {
    publish(FileLockKey(DescriptorIn(call, 0)));
  }
  switch (call.number) {
    case SYS_kill:
    case SYS_tkill:
    case SYS_rt_sigqueueinfo:
      publish(SignalKey(static_cast<int>(call.arguments[1])));
      // It may be the end of a child.
      if (call.number == SYS_kill && static_cast<pid_t>(call.arguments[0]) != getpid()) {
        publish(kChildKey);
        publish(SignalKey(SIGCHLD));
      }
      break;
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
      publish(SignalKey(static_cast<int>(call.arguments[2])));
      break;
    case SYS_futex: {
      const std::uint64_t operation = call.arguments[1] & FUTEX_CMD_MASK & 0xffffffff;
      if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET)
        tracking->OnWake(thread.carrier(), call.arguments[0]);
      if (operation == FUTEX_UNLOCK_PI) tracking->OnKernelLock(thread.carrier(), call.arguments[0]);
      if (operation == FUTEX_WAKE_OP) tracking->OnKernelLock(thread.carrier(), call.arguments[4]);
      break;
    }
    case SYS_alarm:
      publish(SignalKey(SIGALRM));
      break;
    case SYS_setitimer:
      publish(SignalKey(call.arguments[0] == ITIMER_REAL      ? SIGALRM
                        : call.arguments[0] == ITIMER_VIRTUAL ? SIGVTALRM
                                                              : SIGPROF));
      break;
    case SYS_timer_settime:
      publish(kKernelSignalKey);
      break;
    case SYS_pidfd_send_signal:
      publish(SignalKey(static_cast<int>(call.arguments[1])));
      break;
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
      if (MakesProcess(call)) {
        publish(kChildKey);
        publish(SignalKey(SIGCHLD));
      }
      break;
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_semctl:
      if (call.number != SYS_semctl || SetsSemaphores(call)) publish(SemaphoreKey(call));
      break;
    case SYS_msgsnd:
      publish(kMessageKeys | (call.arguments[0] & kKeyBits));
      break;
    default:
      break;
  }
}

void ReportAfterSystemCall(GuestThread& thread, const SystemCall& call, long result) {
  Tracking* const tracking = thread.process().tracking();
  if (tracking == nullptr || thread.is_vfork_child) return;
  const auto join = [&](std::uint64_t key) { TellEdge(thread, EventKind::kHappensAfter, key); };
  if (result < 0) {
    if (tracking->active() && TellsOfEnd(result)) join(KeyReceivedFrom(call, result));
    return;
  }
  if (call.number == SYS_socketpair) {
    if (const auto ends = NewDescriptors(call, result); !ends.empty())
      NoteSocketPair(ends[0], ends[1]);
  }
  if (call.number == SYS_accept || call.number == SYS_accept4)
    NoteConnection(static_cast<int>(result));
  if (call.number == SYS_connect) NoteConnection(DescriptorIn(call, 0));
  NoteUring(call, result);
  const FileLock lock = FileLockOf(call);
  const bool locks = lock == FileLock::kTaken || lock == FileLock::kTakenForReading;
  if (locks) files_are_locked = true;
  if (!tracking->active()) return;
  for (const int descriptor : NewDescriptors(call, result)) {
    tracking->OnNewDescriptor(thread.carrier(), descriptor);
    if (MakesForLoops(call.number)) join(NumberKey(descriptor));
  }
  join(KeyReceivedFrom(call, result));
  for (const std::uint64_t key : UringSources(call)) join(key);
  // What came while it waited.
  if (HandsOn(call.number)) TellEdge(thread, EventKind::kHappensBefore, KeySentTo(call));
  if (locks) join(FileLockKey(DescriptorIn(call, 0)));
  for (const int descriptor : ReadyDescriptors(call, result))
    join(DescriptorKey(descriptor, Way::kIn));
  for (const int signal : SignalsRead(call, result)) {
    join(SignalKey(signal));
    join(kKernelSignalKey);
  }
  if (call.number == SYS_rt_sigtimedwait) {
    join(SignalKey(static_cast<int>(result)));
    join(kKernelSignalKey);
  }
  if (call.number == SYS_futex) {
    constexpr std::uint64_t kLockPi2 = 13;  // Linux 5.14
    const std::uint64_t operation = call.arguments[1] & FUTEX_CMD_MASK & 0xffffffff;
    if (operation == FUTEX_LOCK_PI || operation == FUTEX_TRYLOCK_PI || operation == kLockPi2)
      tracking->OnKernelLock(thread.carrier(), call.arguments[0]);
    if (operation == FUTEX_WAIT_REQUEUE_PI)
      tracking->OnKernelLock(thread.carrier(), call.arguments[4]);
  }
  if (call.number == SYS_semop || call.number == SYS_semtimedop || ReadsSemaphores(call))
    join(SemaphoreKey(call));
  if ((call.number == SYS_wait4 && result > 0) || call.number == SYS_waitid) join(kChildKey);
  if (call.number == SYS_msgrcv) join(kMessageKeys | (call.arguments[0] & kKeyBits));
  ReportBuffers(thread, call, true, result);
}

}  // namespace trapline
