// How a guest thread uses the code cache: into it, out of it to native code, and what it leaves it
// for.
#include <cstring>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/clock.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/page_leases.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

// More than a single instruction has, each of which is counted: 64 elements.
constexpr std::int64_t kMostAccesses = 66;

}  // namespace

// Whether the program's registers can be told at the present exit.
bool GuestThread::AtProgramBoundary() {
  GuestCodeCache* const cache = code_cache();
  if (detached_ || cache == nullptr || cache_pause_) return true;
  const kvm_regs registers = RegistersAtExit();
  if (cache->Contains(registers.rip))
    return cache->Recover(ToRegisterFile(registers), GuestCodeCache::ThreadOf(*carrier_))
        .has_value();
  return !IsInSlowPath(registers.rip);
}

// Lets the thread run on, to the end of the slow path or else step by step, until the program's
// registers can be told.
void GuestThread::RequestLeave() {
  carrier_->vcpu().run().immediate_exit = 0;
  leaving_ = true;
  GuestCodeCache::ThreadOf(*carrier_).leave_requested = 1;
  SetTrapFlag(!IsInSlowPath(RegistersAtExit().rip));
}

void GuestThread::FinishLeave() {
  leaving_ = false;
  GuestCodeCache::ThreadOf(*carrier_).leave_requested = 0;
  SetTrapFlag(false);
}

// Whether the thread has been in the code cache for so long that native code is worth a try: where
// it meets no page that other threads use, it stays there (docs/detection.md, "Hot code").
bool GuestThread::PrefersNative() {
  return adaptive_ && !carrier_->native() && view_ == View::kClosed && !step_ &&
         GuestCodeCache::ThreadOf(*carrier_).leave_after <= 0;
}

// Asked once the thread may leave. True: it has told of the access for which it came, and not made
// it yet. Natively that would fail again if the page stays shared whoever uses it, for ever if one
// access is more than the thread's patience; so it stays for the whole instruction.
bool GuestThread::OwesAccess() {
  const std::uint64_t returned_at = std::exchange(returned_at_, 0);
  if (returned_at == 0 || Registers().rip != returned_at) return false;
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  thread.leave_requested = 0;
  thread.leave_after = kMostAccesses;
  return true;
}

void GuestThread::StartTracked() {
  const TrackOptions& options = process_->options().tracking;
  const SharingPolicy policy = process_->address_space().policy();
  const bool native = policy == SharingPolicy::kShared || policy == SharingPolicy::kWriteShared;
  if (native) process_->tracking()->OnNative(*carrier_);
  carrier_->SetNative(native);
  if (adaptive_) {
    GuestCodeCache::ThreadOf(*carrier_).leave_after =
        adaptive_->Start(ProcessorTime(), options.hot_after);
    process_->tracking()->CountWrites(*carrier_, adaptive_->most_writes());
  }
}

void GuestThread::GoNative() {
  if (view_ != View::kClosed) return;
  if (code_cache()->Contains(InterruptedAt())) {
    if (place_ == Place::kProgram) {
      carrier_->vcpu().registers() = ProgramRegisters();
      carrier_->vcpu().MarkRegistersDirty();
      code_cache()->Leave(GuestCodeCache::ThreadOf(*carrier_));
    } else {
      Detach();
    }
  }
  process_->address_space().OpenOwn(*carrier_);
  process_->tracking()->OnNative(*carrier_);
  carrier_->SetNative(true);
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  thread.leave_requested = 0;
  adaptive_->BeginStint(ProcessorTime(), thread.leave_after, carrier_->thread_page().repeats);
  BeginLease(*carrier_);
}

// The program, out of the guest because of an exception, goes on in the code cache. False: the
// instruction it is at cannot be run there.
bool GuestThread::EnterCache() {
  GuestCodeCache* const cache = code_cache();
  if (cache == nullptr || detached_ || place_ != Place::kException || step_) return false;
  const RegisterFile registers = Registers();
  if ((registers.rflags & kFlagTrap) != 0) return false;
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  const std::uint64_t address = cache->Enter(thread, registers.rip);
  if (address == 0) return false;
  thread.fs_base = fs_base();
  thread.gs_base = gs_base();
  if (process_->tracking()->static_runtime() != nullptr)
    runtime_calls_.InProgram(*process_->tracking(), registers.gpr[kRsp]);
  RegisterFile caller = registers;
  if (agent::Contains(registers.rip) && ReadGuest(registers.gpr[kRsp], caller.rip))
    caller.gpr[kRsp] += sizeof caller.rip;
  process_->tracking()->SetFrames(*carrier_, caller);
  EnterView(View::kClosed);
  if (adaptive_ && carrier_->native()) {
    const std::uint64_t now = ProcessorTime();
    carrier_->SetNative(false);
    counters().native_time += now - adaptive_->stint_began();
    ++counters().returns;
    returned_at_ = registers.rip;
    thread.leave_after = adaptive_->EndStint(now, std::exchange(carrier_->rewatched, 0));
    process_->tracking()->CountWrites(*carrier_, adaptive_->most_writes());
  }
  carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault).rip = address;
  return true;
}

void GuestThread::HandleCacheExit() {
  GuestCodeCache& cache = *code_cache();
  Vcpu& vcpu = carrier_->vcpu();
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  auto [target, address] = cache.Follow(thread, vcpu.registers().rip);
  if (target == agent::GuestAddressOf(trapline_agent_event_full)) {
    process_->tracking()->MakeRoom(*carrier_);
    address = cache.Enter(thread, agent::GuestAddressOf(trapline_agent_event));
  }
  vcpu.registers().rip = address != 0 ? address : target;
  vcpu.MarkRegistersDirty();
  // What the cache cannot run is stepped, or runs natively if nothing is to be checked.
  if (address == 0 && !signal_pending_) StartStep(true, 0, false);
}

// The thread has left at the end of the slow path: back to where in a region that was called.
void GuestThread::ReturnToRegion() {
  kvm_regs& registers = carrier_->vcpu().registers();
  std::memcpy(&registers.rip, carrier_->ThreadRegion(registers.rsp), sizeof registers.rip);
  registers.rsp += 16;  // the site, too
  carrier_->vcpu().MarkRegistersDirty();
}

// An instruction whose accesses only its registers tell is about to run.
void GuestThread::HandleCacheCall() {
  const kvm_regs& registers = carrier_->vcpu().registers();
  const auto& site = *reinterpret_cast<const AccessSite*>(registers.rdi);
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  RegisterFile file = thread.registers;
  if (site.report) {
    HandleRuntimeAccess(file);
    return;
  }
  file.xsave = thread.xsave;
  process_->tracking()->CheckCached(*carrier_, site, file);
}

// A page fault in the code cache: `address` becomes the program's, if it is its mirror.
FaultVerdict GuestThread::ResolveCached(std::uint64_t& address, bool write) {
  AddressSpace& space = process_->address_space();
  if (address - kMirrorOffset < kUserAddressEnd) {
    address -= kMirrorOffset;
    const std::uint64_t since = adaptive_ ? ProcessorTime() : 0;
    const FaultVerdict verdict = space.ResolveMirror(*carrier_, {address}, write);
    // Pages change hands because threads run natively.
    if (adaptive_) adaptive_->CountCacheFault(ProcessorTime() - since);
    if (Tracking* const tracking = process_->tracking();
        verdict != FaultVerdict::kMapped && tracking != nullptr) {
      tracking->Retract(*carrier_, Registers().rip);
    }
    return verdict;
  }
  // An instruction that was copied as it is. If it has to be checked, it leaves the cache for that.
  const FaultVerdict verdict =
      space.Resolve(*carrier_, View::kClosed, {address}, write, false, Registers().rip);
  if (verdict == FaultVerdict::kShared || verdict == FaultVerdict::kUntrackedCode) Detach();
  return verdict;
}

// Back to the code cache from a system call, if the code that made it is still there.
void GuestThread::EndCachePause() {
  if (!cache_pause_) return;
  if (code_cache()->EndPause(GuestCodeCache::ThreadOf(*carrier_), *cache_pause_)) {
    cache_pause_.reset();
  } else {
    Detach();
  }
}

}  // namespace trapline
