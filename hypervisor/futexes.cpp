#include "hypervisor/futexes.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace trapline {
namespace {

static_assert(TRAPLINE_FUTEX_CALL == SYS_futex && TRAPLINE_FUTEX_EAGAIN == EAGAIN);
static_assert(TRAPLINE_FUTEX_WAIT == FUTEX_WAIT && TRAPLINE_FUTEX_WAKE == FUTEX_WAKE &&
              TRAPLINE_FUTEX_WAIT_BITSET == FUTEX_WAIT_BITSET &&
              TRAPLINE_FUTEX_WAKE_BITSET == FUTEX_WAKE_BITSET &&
              TRAPLINE_FUTEX_PRIVATE == FUTEX_PRIVATE_FLAG &&
              TRAPLINE_FUTEX_REALTIME == FUTEX_CLOCK_REALTIME);

// Names that Debian 12's headers lack.
constexpr long kFutexWaitv = 449, kFutexWait = 455, kFutexRequeue = 456;
constexpr std::uint64_t kLockPi2 = 13;

enum class Wait : std::uint8_t { kNone, kAtFirstArgument, kUnknown };

Wait WaitOf(const SystemCall& call) {
  switch (call.number) {
    case SYS_futex:
      break;
    case SYS_io_uring_setup:
    case SYS_io_uring_enter:
    case kFutexWaitv:
    case kFutexWait:
    case kFutexRequeue:
      return Wait::kUnknown;
    default:
      return Wait::kNone;
  }
  switch (call.arguments[1] & FUTEX_CMD_MASK & 0xffffffff) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case kLockPi2:
      return Wait::kAtFirstArgument;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI:
      return Wait::kNone;
    default:
      return Wait::kUnknown;
  }
}

std::uint32_t* InSharedPage(Carrier& carrier, std::uint64_t guest_address) {
  return reinterpret_cast<std::uint32_t*>(carrier.shared_page() +
                                          (guest_address - TRAPLINE_SHARED_PAGE));
}

// That this thread may run on.
std::uint32_t Processors() {
  cpu_set_t processors;
  return sched_getaffinity(0, sizeof processors, &processors) == 0
             ? static_cast<std::uint32_t>(CPU_COUNT(&processors))
             : 2;
}

void AddToCrowd(Carrier& carrier, int number) {
  __atomic_fetch_add(InSharedPage(carrier, TRAPLINE_FUTEX_CROWD), number, __ATOMIC_RELAXED);
}

}  // namespace

// Who wakes writes the word and looks at the count; who waits is counted and looks at the word, in
// the kernel. So one of the two sees the other.
FutexWaiter::FutexWaiter(Carrier& carrier, const SystemCall& call) {
  switch (WaitOf(call)) {
    case Wait::kNone:
      return;
    case Wait::kUnknown:
      __atomic_exchange_n(InSharedPage(carrier, TRAPLINE_FUTEX_UNKNOWN_WAITERS), 1,
                          __ATOMIC_SEQ_CST);
      return;
    case Wait::kAtFirstArgument:
      count_ = InSharedPage(
          carrier, TRAPLINE_FUTEX_WAITERS + (call.arguments[0] & TRAPLINE_FUTEX_WAITERS_MASK));
      __atomic_fetch_add(count_, 1, __ATOMIC_SEQ_CST);
  }
}

FutexWaiter::~FutexWaiter() {
  if (count_ != nullptr) __atomic_fetch_sub(count_, 1, __ATOMIC_SEQ_CST);
}

CountedThread::CountedThread(Carrier& carrier, int number) : carrier_(carrier), number_(number) {
  AddToCrowd(carrier_, number_);
}

CountedThread::~CountedThread() { AddToCrowd(carrier_, -number_); }

void ForgetFutexWaiters(Carrier& carrier) {
  std::memset(InSharedPage(carrier, TRAPLINE_FUTEX_WAITERS), 0,
              TRAPLINE_FUTEX_WAITERS_MASK + sizeof(std::uint32_t));
  __atomic_store_n(InSharedPage(carrier, TRAPLINE_FUTEX_CROWD), 0 - Processors(), __ATOMIC_RELAXED);
}

void StartFutexes(Carrier& carrier, const HostKind& host) {
  const bool alone = Processors() == 1;
  agent::FutexState& futex = carrier.thread_page().futex;
  futex = {};
  futex.answers = 1;
  // What a wait costs that leaves: two ways out, for whoever wakes leaves too, and a processor that
  // must be woken. And the others wait less for this thread the less it leaves. By trying.
  constexpr std::uint32_t kExits = 8;
  futex.spins = alone ? 0 : host.exit_in_pauses * kExits;
}

void FinishFutexAnswer(Carrier& carrier) {
  kvm_regs& registers = carrier.vcpu().registers();
  const agent::FutexState& futex = carrier.thread_page().futex;
  const auto& saved =
      *static_cast<const agent::FutexRegisters*>(carrier.ThreadRegion(agent::kFutexStack));
  registers.r8 = saved.r8;
  registers.r9 = saved.r9;
  registers.rflags = registers.r11 = saved.rflags;
  registers.rax = futex.result;
  registers.rsp = futex.rsp;
  registers.rip = registers.rcx;
  carrier.vcpu().MarkRegistersDirty();
}

}  // namespace trapline
