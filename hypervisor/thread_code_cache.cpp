// How a guest thread uses the code cache: into it, out of it to native code, and what it leaves it
// for.
#include <x86intrin.h>

#include <algorithm>
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
// it meets no page that other threads use, it stays there (docs/detection.md, "Hot code"). Or, for
// the moment in full code, so long that partial code is. Not where GS has a base of the program's
// own: natively it would be that of the mirror.
bool GuestThread::PrefersNative() {
  if (!adaptive_ || view_ != View::kClosed || step_ || gs_base() != 0) return false;
  return (!carrier_->native() || carrier_->partial) &&
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
  carrier_->leaves_soon = false;
  carrier_->partial = false;
  if (adaptive_) {
    GuestCodeCache::ThreadOf(*carrier_).leave_after =
        adaptive_->Start(ProcessorTime(), options.hot_after);
    process_->tracking()->CountWrites(*carrier_, adaptive_->most_writes());
  }
  if (native && adaptive_) {
    const std::uint64_t now = ProcessorTime();
    adaptive_->BeginStint(now, GuestCodeCache::ThreadOf(*carrier_).leave_after, 0);
    NoteNativeEntry(now);
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
  const bool ran_full_code = !carrier_->native();
  carrier_->SetNative(true);
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  thread.leave_requested = 0;
  if (carrier_->partial && ran_full_code) {
    thread.leave_after = partial_left_;
    EnterPartial();
    return;
  }
  carrier_->partial = false;
  const std::uint64_t now = ProcessorTime();
  adaptive_->BeginStint(now, thread.leave_after, carrier_->thread_page().repeats);
  NoteNativeEntry(now);
  BeginLease(*carrier_);
}

// The program, which comes from outside with these registers, goes on at the result's address of
// the cache, where the thread now counts as being. Address 0: its code cannot run there.
GuestThread::CacheEntry GuestThread::EnterCacheAt(const RegisterFile& registers,
                                                  Coverage coverage) {
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  Tracking& tracking = *process_->tracking();
  const std::uint64_t address = code_cache()->Enter(thread, registers.rip, coverage);
  if (address == 0) return {};
  if (tracking.static_runtime() != nullptr) runtime_calls_.InProgram(tracking, registers.gpr[kRsp]);
  thread.fs_base = fs_base();
  thread.gs_base = gs_base();
  RegisterFile caller = registers;
  if (agent::Contains(registers.rip) && ReadGuest(registers.gpr[kRsp], caller.rip))
    caller.gpr[kRsp] += sizeof caller.rip;
  return {address, tracking.SetFrames(*carrier_, caller)};
}

// The program, which is out of the cache, goes on in partial code; natively where it cannot, until
// it meets a shared page.
void GuestThread::EnterPartial() {
  if (detached_ || place_ != Place::kProgram) return;
  kvm_regs& registers = carrier_->vcpu().registers();
  if (agent::Contains(registers.rip) || (registers.rflags & kFlagTrap) != 0) return;
  const CacheEntry entry = EnterCacheAt(ToRegisterFile(registers), Coverage::kPartial);
  if (entry.address == 0) return;
  registers.rip = entry.address;
  carrier_->vcpu().MarkRegistersDirty();
}

// The program, out of the guest because of an exception, goes on in the code cache. False: the
// instruction it is at cannot be run there.
bool GuestThread::EnterCache() {
  const bool busy = std::exchange(carrier_->met_busy, false);
  GuestCodeCache* const cache = code_cache();
  if (cache == nullptr || detached_ || place_ != Place::kException || step_) return false;
  const RegisterFile registers = Registers();
  if ((registers.rflags & kFlagTrap) != 0) return false;
  Redirects* const redirects = cache->redirects();
  const std::uint64_t version = redirects != nullptr ? redirects->version() : 0;
  const bool was_native = adaptive_ && carrier_->native();
  const Coverage coverage = was_native && busy && (carrier_->partial || PrefersPartial())
                                ? Coverage::kPartial
                                : Coverage::kFull;
  if (coverage == Coverage::kPartial) {
    cache->UpdatePartial();
    cache->NoteSharing(registers.rip);
  }
  const CacheEntry entry = EnterCacheAt(registers, coverage);
  if (entry.address == 0) return false;
  if (redirects != nullptr && was_native && view_ == View::kClosed &&
      exception_vector_ == kVectorPageFault && !agent::Contains(registers.rip))
    cache->Redirect(version, registers.rip, registers.gpr[kRsp], entry.address, entry.frames);
  EnterView(View::kClosed);
  if (was_native) BeginStay(coverage, registers.rip);
  carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault).rip = entry.address;
  return true;
}

// Where the program, which is detached, goes on: in the code cache if its code is to be checked
// there from the first instruction on, as a signal's handler is, or what it has interrupted.
std::uint64_t GuestThread::ResumeAddress() {
  if (code_cache() == nullptr || view_ != View::kClosed || step_ || carrier_->native() ||
      (context_.rflags & kFlagTrap) != 0) {
    return context_.rip;
  }
  const CacheEntry entry = EnterCacheAt(ToRegisterFile(context_), Coverage::kFull);
  return entry.address != 0 ? entry.address : context_.rip;
}

bool GuestThread::PrefersPartial() {
  const PartialCode rule = code_cache()->partial_code();
  return rule == PartialCode::kAlways ||
         (rule == PartialCode::kLongStays && adaptive_->prefers_partial());
}

// The thread, which ran natively or in partial code, goes on at the program's `rip` in the cache:
// a stint has ended, or an instruction of partial code has to be checked.
void GuestThread::BeginStay(Coverage coverage, std::uint64_t rip) {
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  if (!carrier_->partial) {
    thread.leave_after = EndStint(ProcessorTime());
    carrier_->partial = coverage == Coverage::kPartial || PrefersPartial();
    counters().partial_stays += carrier_->partial ? 1 : 0;
  }
  returned_at_ = rip;
  carrier_->lease_end = 0;
  if (coverage == Coverage::kPartial) return;
  carrier_->SetNative(false);
  if (!carrier_->partial) return;
  // What the page is used for is not known yet, or the instruction is seldom where it is shared.
  constexpr std::int64_t kBriefStay = 128;
  ++counters().partial_leaves;
  partial_left_ = std::exchange(thread.leave_after, kBriefStay);
}

// The thread runs in the code cache from `now` on (processor time). Returns how many accesses it
// makes there.
std::int64_t GuestThread::EndStint(std::uint64_t now) {
  counters().native_time += now - std::min(now, adaptive_->stint_began());
  ++counters().returns;
  const std::int64_t stay = adaptive_->EndStint(now, std::exchange(carrier_->rewatched, 0));
  process_->tracking()->CountWrites(*carrier_, adaptive_->most_writes());
  carrier_->leaves_soon = adaptive_->stays_briefly();
  return stay;
}

void GuestThread::NoteNativeEntry(std::uint64_t now) {
  entered_at_ = now;
  entered_at_count_ = __rdtsc();
}

// Before the guest is entered.
void GuestThread::MayBeRedirected() {
  if (!adaptive_ || code_cache()->redirects() == nullptr) return;
  agent::RedirectState& state = carrier_->thread_page().redirect;
  const bool again = std::exchange(abandoned_redirect_, false);
  state.enabled = carrier_->native() && view_ == View::kClosed && !step_ && !again ? 1 : 0;
  state.stay = adaptive_->next_stay();
  if (state.enabled != 0) GuestCodeCache::ThreadOf(*carrier_).gs_base = gs_base();
}

// After the guest was left, whatever for: the thread may have gone over to the code cache there,
// which is made up for.
void GuestThread::FollowRedirect() {
  redirected_by_ = 0;
  agent::RedirectState& state = carrier_->thread_page().redirect;
  if (state.entered == 0) return;
  // Not yet there. (In its first part it is for another fault.)
  const auto rip = InRedirect();
  if (rip && *rip >= agent::GuestAddressOf(trapline_agent_redirect_saved)) return;
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  code_cache()->OnRedirected(thread, state.entered);
  __atomic_store_n(&state.entered, 0, __ATOMIC_SEQ_CST);
  ++counters().redirects;
  redirected_by_ = state.by;
  std::uint64_t then = ProcessorTime();
  const std::uint64_t count = __rdtsc();
  if (process_->machine().host().guest_tsc_is_host_tsc && entered_at_ < then &&
      entered_at_count_ < state.time && state.time < count) {
    // As if it had had the processor all the time, or in equal shares before and after.
    const double share = static_cast<double>(state.time - entered_at_count_) /
                         static_cast<double>(count - entered_at_count_);
    then =
        entered_at_ + static_cast<std::uint64_t>(static_cast<double>(then - entered_at_) * share);
  }
  adaptive_->BeginExit(then);
  thread.leave_after += EndStint(then) - state.stay;
  returned_at_ = state.rip;
  if (thread.leave_after > 0) thread.leave_requested = 0;
}

// Where in #PF's gate to the code cache the thread is, if it is there; also if it has faulted
// there. An exception's entry can be interrupted, too.
std::optional<std::uint64_t> GuestThread::InRedirect() {
  const std::uint64_t rip = carrier_->vcpu().registers().rip;
  const std::uint64_t saved = agent::GuestAddressOf(trapline_agent_redirect_saved);
  const auto slot = SlotOf(rip);
  if (IsInRedirect(rip) && rip >= saved) return rip;
  if (!slot && !IsInRedirect(rip)) return std::nullopt;
  const std::uint64_t from = carrier_->InterruptFrameOf(!slot || *slot == kVectorPageFault).rip;
  if (IsInRedirect(from)) return from;
  return slot ? std::nullopt : std::optional(rip);
}

// The thread is out of the guest in the middle of #PF's gate to the code cache: back to the
// instruction that faulted, which it does once more. `faulted`: it was another fault that brought
// it out. False: it is elsewhere, or now at the exception's own entry, about to leave.
bool GuestThread::AbandonRedirect(bool faulted) {
  const auto rip = InRedirect();
  if (!rip) return false;
  Vcpu& vcpu = carrier_->vcpu();
  kvm_regs& registers = vcpu.registers();
  agent::RedirectState& state = carrier_->thread_page().redirect;
  const agent::InterruptFrame& frame = carrier_->InterruptFrameOf(true);
  if (*rip < agent::GuestAddressOf(trapline_agent_redirect_saved)) {
    // Nothing has been changed: as if there were no gate. It may be the code cache's fault, too.
    registers.rip = agent::EntryOf(kVectorPageFault);
    registers.rsp = TRAPLINE_FAULT_STACK_TOP - sizeof frame - sizeof(std::uint64_t);
    vcpu.MarkRegistersDirty();
    return false;
  }
  // Its stack is not in view, nor will it be soon. Else KVM may hold a fault of the gate's own,
  // which it delivers on top of whatever comes next, of the frame, too.
  if (faulted) code_cache()->redirects()->CountMisled(registers.rsi);
  may_hold_fault_ = !faulted;
  const auto& saved = reinterpret_cast<const agent::RedirectRegisters*>(
      reinterpret_cast<const char*>(&frame) - sizeof(std::uint64_t))[-1];
  registers.rax = saved.rax;
  registers.rcx = saved.rcx;
  registers.rdx = saved.rdx;
  registers.rsi = saved.rsi;
  registers.rdi = saved.rdi;
  registers.r8 = saved.r8;
  registers.r9 = saved.r9;
  registers.r10 = saved.r10;
  registers.r11 = saved.r11;
  registers.rip = state.rip;
  registers.rsp = state.rsp;
  registers.rflags = state.rflags;
  vcpu.MarkRegistersDirty();
  Machine::SetProgramStackSegment(vcpu.special_registers());
  MarkSegmentsDirty();
  carrier_->thread_page().native = 1;
  __atomic_store_n(&state.entered, 0, __ATOMIC_SEQ_CST);
  abandoned_redirect_ = true;
  place_ = Place::kProgram;
  return true;
}

// The program, out of the code cache by the indirect branch at `rip`, which the cache has carried
// out but for the jump: natively it is refused before anything has changed.
void GuestThread::RefuseBranch(std::uint64_t rip) {
  kvm_regs& registers = carrier_->vcpu().registers();
  registers.rip = rip;
  constexpr std::uint64_t kWord = 8;
  if (const auto branch = process_->tracking()->DecodeAt(rip)) {
    if (branch->branch == Branch::kIndirectCall) registers.rsp += kWord;
    if (branch->branch == Branch::kReturn) {
      std::uint16_t extra = 0;
      if (branch->immediate_size == sizeof extra) ReadGuest(rip + branch->immediate_offset, extra);
      registers.rsp -= kWord + extra;
    }
  }
  carrier_->vcpu().MarkRegistersDirty();
  Detach();
  ForceException(kVectorProtection, 0);
}

void GuestThread::HandleCacheExit() {
  GuestCodeCache& cache = *code_cache();
  Vcpu& vcpu = carrier_->vcpu();
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  const Coverage coverage = cache.CoverageOf(vcpu.registers().rip);
  auto [target, address, refused, declined] =
      cache.Follow(thread, vcpu.registers().rip, adaptive_ && view_ == View::kClosed);
  if (refused) return RefuseBranch(*refused);
  if (target == agent::GuestAddressOf(trapline_agent_event_full)) {
    process_->tracking()->MakeRoom(*carrier_);
    address = cache.Enter(thread, agent::GuestAddressOf(trapline_agent_event), coverage);
  }
  vcpu.registers().rip = address != 0 ? address : target;
  vcpu.MarkRegistersDirty();
  if (declined) {
    // Outside of partial code no access is checked by its place: pages have to be looked at as
    // often as for any native code (AddressSpace::Reopen).
    carrier_->partial = false;
    GoNative();
    if (!std::exchange(told_of_little_cache_, true) &&
        process_->options().tracking.translate_after == 0) {
      process_->Warn(
          "warning: the code that the program has in use is larger than the code cache: what it "
          "runs seldom is checked only where it meets shared pages. --policy=exact checks all of "
          "it, more slowly");
    }
    return;
  }
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

// Whether the instruction at `rip` of the code cache may touch the program's `address` without the
// mirror, as partial code does.
bool GuestThread::TouchesUnmirrored(std::uint64_t address, std::uint64_t rip) {
  return code_cache()->IsPartial(rip) && Touches(address);
}

// Whether a page fault in the code cache was for the mirror. Where that of high memory lies there
// may also be memory of the program's.
bool GuestThread::IsOfMirror(std::uint64_t address, std::uint64_t rip) {
  if (address - kMirrorOffset >= kUserAddressEnd) return false;
  return address >= kLowMirrorStart || !TouchesUnmirrored(address, rip);
}

// A page fault in the code cache at `rip`: `address` becomes the program's, if it is its mirror.
FaultVerdict GuestThread::ResolveCached(std::uint64_t& address, bool write, std::uint64_t rip) {
  AddressSpace& space = process_->address_space();
  if (IsOfMirror(address, rip)) {
    address -= kMirrorOffset;
    if (redirected_by_ != 0 && Registers().rip == returned_at_)
      code_cache()->redirects()->CountMisled(redirected_by_);
    const std::uint64_t since = adaptive_ ? ProcessorTime() : 0;
    const FaultVerdict verdict = space.ResolveMirror(*carrier_, {address}, write, Registers().rip);
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
  if (verdict == FaultVerdict::kShared || verdict == FaultVerdict::kUntrackedCode) {
    if (carrier_->native()) {
      LeavePartial();
    } else {
      Detach();
    }
  }
  return verdict;
}

// A page fault in partial code: as if it had been the program's own.
void GuestThread::LeavePartial() {
  kvm_regs& registers = carrier_->vcpu().registers();
  agent::InterruptFrame& frame = carrier_->InterruptFrameOf(true);
  kvm_regs program = ProgramRegisters();
  code_cache()->Leave(GuestCodeCache::ThreadOf(*carrier_));
  frame.rip = std::exchange(program.rip, registers.rip);
  frame.rsp = std::exchange(program.rsp, registers.rsp);
  frame.rflags = std::exchange(program.rflags, registers.rflags);
  registers = program;
  carrier_->vcpu().MarkRegistersDirty();
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
