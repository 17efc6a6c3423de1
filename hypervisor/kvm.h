// Thin typed wrappers over /dev/kvm: the only place with KVM ioctl numbers.
//
// Errors are KvmError (std::system_error): what was tried, and errno. None of the objects is
// thread-safe, except that vCPUs of one VM may be used from different threads at once.
#pragma once

#include <linux/kvm.h>
#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "hypervisor/file_descriptor.h"
#include "shadow-pages/address.h"

namespace trapline {

class KvmError : public std::system_error {
 public:
  KvmError(int error, const std::string& what)
      : std::system_error(error, std::generic_category(), what) {}
};

// Opens a descriptor with `open` (which returns -1 and sets errno on failure; repeated on EINTR)
// and moves it to a number the program will not meet: at or above its own descriptor limit, else as
// high as possible. Works when the program has used up its limit. Invalid, and errno set, on
// failure.
FileDescriptor OpenOutOfTheWay(const std::function<int()>& open);

// Moves an open descriptor there. Returns its new number; the old one if it cannot be moved.
int MoveOutOfTheWay(int descriptor);

// Raises the soft descriptor limit a little for as long as it lives, or until Restore().
class DescriptorRoom {
 public:
  DescriptorRoom();
  ~DescriptorRoom() { Restore(); }
  DescriptorRoom(const DescriptorRoom&) = delete;
  DescriptorRoom& operator=(const DescriptorRoom&) = delete;
  void Restore() const;

 private:
  rlimit before_{};
};

// True for descriptors OpenOutOfTheWay handed out and that are still open; the program must not
// close them.
bool IsMonitorDescriptor(int fd);
// All of them, ascending.
std::vector<int> MonitorDescriptors();
void ForgetMonitorDescriptor(int fd);
// Around fork, so that the list is whole in the child.
void LockDescriptors();
void UnlockDescriptors();

struct CpuidTable {
  std::vector<kvm_cpuid_entry2> entries;
  const kvm_cpuid_entry2* Find(std::uint32_t leaf, std::uint32_t subleaf = 0) const;
};

// The system handle.
class Kvm {
 public:
  // Opens /dev/kvm (or $TRAPLINE_KVM_DEVICE), or takes over `inherited`, a descriptor of it. Throws
  // KvmError.
  explicit Kvm(int inherited = -1);
  // Lets the descriptor survive execve, or not: the next monitor may not be allowed, or not able,
  // to open the device.
  void KeepAcrossExec(bool keep) const;
  int ApiVersion() const;
  int CheckExtension(int capability) const;
  std::size_t RunAreaSize() const;  // bytes of a vCPU's shared area
  CpuidTable SupportedCpuid() const;
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

class Vm {
 public:
  explicit Vm(const Kvm& kvm);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;
  // Gives the descriptor up without closing it: a parent process shares the descriptor table.
  void Abandon();
  int CheckExtension(int capability) const;
  // Lets the guest see [host, host + size) of this process at `physical`. Never removed.
  void AddSlot(unsigned slot, GuestPhysical physical, const void* host, std::uint64_t size);
  bool TryAddSlot(unsigned slot, GuestPhysical physical, const void* host, std::uint64_t size);
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

// A vCPU and its shared run area. One thread at a time may use it.
class Vcpu {
 public:
  Vcpu(const Kvm& kvm, const Vm& vm, unsigned number);
  ~Vcpu();
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;
  void Abandon();  // see Vm::Abandon

  // Enters the guest. Returns 0 at an exit, else errno (EINTR: a host signal; EFAULT: see run()).
  int Run();

  kvm_run& run() { return *run_; }
  // Registers in the shared area (KVM_CAP_SYNC_REGS): valid after each exit, written back at the
  // next Run() after MarkRegistersDirty().
  kvm_regs& registers() { return run_->s.regs.regs; }
  kvm_sregs& special_registers() { return run_->s.regs.sregs; }
  void MarkRegistersDirty() { run_->kvm_dirty_regs |= KVM_SYNC_X86_REGS; }
  void MarkSpecialRegistersDirty() { run_->kvm_dirty_regs |= KVM_SYNC_X86_SREGS; }

  // After Run() returned EINTR or EFAULT the shared area may be stale: reads both sets by ioctl.
  void FetchRegisters();
  void StoreRegisters();            // writes registers() now
  void StoreSpecialRegisters();     // writes special_registers() now; throws when KVM refuses them
  bool TryStoreSpecialRegisters();  // likewise, but then returns false

  void SetCpuid(const CpuidTable& table);
  // Makes KVM start the thread it keeps in the process for a VM (Linux 6.13 and later do so at the
  // first run), although the user may have no process left below the soft limit. Throws KvmError.
  void StartVm();
  void SetMsr(std::uint32_t index, std::uint64_t value);
  bool TrySetXcr0(std::uint64_t value);
  // Makes the guest's time stamp counter equal the host's. False: not supported.
  bool TryAlignTimeStampCounter();
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  kvm_run* run_ = nullptr;
  std::size_t run_size_ = 0;
};

}  // namespace trapline
