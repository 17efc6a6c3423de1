// Signals of a guest thread, from when the host's handler records one to where the program's
// begins.
#include <sys/syscall.h>
#include <unistd.h>

#include "hypervisor/guest_thread.h"
#include "hypervisor/proc_files.h"
#include "hypervisor/process.h"
#include "hypervisor/system_call_effects.h"
#include "hypervisor/tracking.h"

namespace trapline {

bool GuestThread::RecordSignal(int signal, const siginfo_t& info) {
  if (!signal_actions().HasHandler(signal)) return false;
  recorded_signal_ = signal;
  recorded_info_ = info;
  signal_pending_ = 1;
  carrier_->vcpu().run().immediate_exit = 1;
  return true;
}

void GuestThread::DeliverPendingSignals() {
  while (signal_pending_) {
    SignalDelivery delivery;
    delivery.signal = recorded_signal_;
    delivery.info = recorded_info_;
    signal_pending_ = 0;
    carrier_->vcpu().run().immediate_exit = 0;
    const KernelSigaction action = signal_actions().Get(delivery.signal);
    if (action.handler > 1) {
      Detach();
      Deliver(delivery, action);
    } else {
      // The action changed between recording and now: let the kernel apply the new one.
      if (action.handler == 0) {
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), delivery.signal,
                &delivery.info);
      }
      if (restart_system_call_) Detach();
    }
    SetHostMask(mask_);  // may record the next one
  }
}

void GuestThread::Deliver(const SignalDelivery& delivery, const KernelSigaction& action) {
  ++counters().signals;
  repeated_memory_errors_ = 0;
  if (Tracking* const tracking = process_->tracking(); tracking != nullptr && !is_vfork_child) {
    tracking->OnEdge(*carrier_, EventKind::kHappensAfter, SignalKey(delivery.signal));
    if (IsOfKernel(delivery.info))
      tracking->OnEdge(*carrier_, EventKind::kHappensAfter, kKernelSignalKey);
  }
  Machine& machine = process_->machine();
  if (!PushSignalFrame(context_, delivery, action, mask_, alternate_stack, carrier_->vector_state(),
                       machine.vector_state_size(), machine.vector_mask())) {
    DieOf(SIGSEGV);
    return;
  }
  InitializeVectorState(carrier_->vector_state(), machine.vector_state_size());
  SignalMask mask = mask_ | action.mask;
  if ((action.flags & SA_NODEFER) == 0) mask |= MaskOf(delivery.signal);
  set_mask(mask);
  if ((action.flags & SA_RESETHAND) != 0) {
    KernelSigaction by_default;
    signal_actions().Set(delivery.signal, by_default);
  }
}

void GuestThread::ForceSignal(const SignalDelivery& delivery) {
  SetHostMask(kAllSignals);
  const KernelSigaction action = signal_actions().Get(delivery.signal);
  if (action.handler <= 1 || (mask_ & MaskOf(delivery.signal)) != 0) {
    DieOf(delivery.signal);
    return;
  }
  Deliver(delivery, action);
  if (!signal_pending_) SetHostMask(mask_);
}

void GuestThread::DieOf(int signal) {
  process_->BeforeDeath(*this);
  signal_actions().SetHostDefault(signal);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
  SetHostMask(~MaskOf(signal));
  // Only a signal whose default is not death, or that a debugger keeps back, gets here.
  if (TracerOfThisThread() == 0) syscall(SYS_exit_group, 128 + signal);
  signal_actions().Set(signal, {});
  set_mask(mask_ & ~MaskOf(signal));
  SetHostMask(mask_);
}

}  // namespace trapline
