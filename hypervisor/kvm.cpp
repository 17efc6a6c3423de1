#include "hypervisor/kvm.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>

namespace trapline {
namespace {

// <linux/kvm.h> of Debian 12, read as C++, gives structs with flexible arrays a wrong size, and so
// the ioctl numbers made from them are wrong: spelled out here with the sizes the kernel uses.
constexpr unsigned long kGetSupportedCpuid = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x05, 8);
constexpr unsigned long kSetMsrs = _IOC(_IOC_WRITE, KVMIO, 0x89, 8);
constexpr unsigned long kSetCpuid2 = _IOC(_IOC_WRITE, KVMIO, 0x90, 8);

// Kernel headers of Debian 12 (6.1) and later agree on these.
constexpr std::uint32_t kMaxCpuidEntries = 256;

struct CpuidBuffer {
  std::uint32_t count, padding;
  kvm_cpuid_entry2 entries[kMaxCpuidEntries];
};

std::mutex descriptor_mutex;
std::set<int>& Descriptors() {
  static std::set<int> set;
  return set;
}

int RetryIoctl(int fd, unsigned long request, unsigned long argument) {
  for (;;) {
    const int result = ioctl(fd, request, argument);
    if (result >= 0 || errno != EINTR) return result;
  }
}

int Checked(int fd, unsigned long request, unsigned long argument, const char* what) {
  const int result = RetryIoctl(fd, request, argument);
  if (result < 0) throw KvmError(errno, what);
  return result;
}

template <typename T>
unsigned long AddressOf(T* pointer) {
  return reinterpret_cast<unsigned long>(pointer);
}

}  // namespace

FileDescriptor OpenOutOfTheWay(const std::function<int()>& open) {
  const std::lock_guard lock(descriptor_mutex);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // A descriptor keeps its number when the limit sinks below it again: numbers from the program's
  // own soft limit upwards are ones it can never get.
  constexpr rlim_t kRoom = 4096;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_cur + kRoom;
  raised.rlim_max = std::max(limit.rlim_max, raised.rlim_cur);
  bool changed = limit.rlim_cur != RLIM_INFINITY && setrlimit(RLIMIT_NOFILE, &raised) == 0;
  if (!changed && limit.rlim_cur < limit.rlim_max) {
    raised.rlim_cur = raised.rlim_max = limit.rlim_max;
    changed = setrlimit(RLIMIT_NOFILE, &raised) == 0;
  }
  FileDescriptor low;
  int moved = -1;
  int error = 0;
  for (;;) {
    low = FileDescriptor(open());
    error = errno;
    if (low.valid() || error != EINTR) break;
  }
  if (low.valid()) {
    if (changed) moved = fcntl(low.get(), F_DUPFD_CLOEXEC, static_cast<int>(limit.rlim_cur));
    const rlim_t ceiling = std::min<rlim_t>(limit.rlim_cur, 1u << 20);
    for (rlim_t base = ceiling > 64 ? ceiling - 64 : 0; moved < 0; base /= 2) {
      moved = fcntl(low.get(), F_DUPFD_CLOEXEC, static_cast<int>(base));
      error = errno;
      if (base == 0) break;
    }
    low.Close();
  }
  if (changed) setrlimit(RLIMIT_NOFILE, &limit);
  if (moved >= 0) Descriptors().insert(moved);
  errno = error;
  return FileDescriptor(moved);
}

int MoveOutOfTheWay(int descriptor) {
  const int moved = OpenOutOfTheWay([descriptor] { return dup(descriptor); }).Release();
  if (moved < 0) return descriptor;
  close(descriptor);
  return moved;
}

DescriptorRoom::DescriptorRoom() {
  getrlimit(RLIMIT_NOFILE, &before_);
  constexpr rlim_t kRoom = 64;
  rlimit raised = before_;
  raised.rlim_cur = before_.rlim_cur + kRoom;
  raised.rlim_max = std::max(raised.rlim_max, raised.rlim_cur);
  if (before_.rlim_cur == RLIM_INFINITY || setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised.rlim_cur = raised.rlim_max = before_.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
}

void DescriptorRoom::Restore() const { setrlimit(RLIMIT_NOFILE, &before_); }

bool IsMonitorDescriptor(int fd) {
  const std::lock_guard lock(descriptor_mutex);
  return Descriptors().contains(fd);
}

std::vector<int> MonitorDescriptors() {
  const std::lock_guard lock(descriptor_mutex);
  return {Descriptors().begin(), Descriptors().end()};
}

void ForgetMonitorDescriptor(int fd) {
  const std::lock_guard lock(descriptor_mutex);
  Descriptors().erase(fd);
}

void LockDescriptors() { descriptor_mutex.lock(); }
void UnlockDescriptors() { descriptor_mutex.unlock(); }

const kvm_cpuid_entry2* CpuidTable::Find(std::uint32_t leaf, std::uint32_t subleaf) const {
  for (const auto& entry : entries) {
    if (entry.function == leaf && entry.index == subleaf) return &entry;
  }
  return nullptr;
}

Kvm::Kvm(int inherited) {
  const char* device = std::getenv("TRAPLINE_KVM_DEVICE");
  if (device == nullptr) device = "/dev/kvm";
  if (inherited >= 0 && ioctl(inherited, KVM_GET_API_VERSION, 0) == KVM_API_VERSION) {
    fd_ = OpenOutOfTheWay([inherited] { return dup(inherited); });
    close(inherited);
  } else {
    fd_ = OpenOutOfTheWay([device] { return open(device, O_RDWR | O_CLOEXEC); });
  }
  if (!fd_.valid()) throw KvmError(errno, std::string("cannot open ") + device);
  if (ApiVersion() != KVM_API_VERSION) {
    throw KvmError(ENODEV,
                   std::string(device) +
                       " is not a KVM device, or speaks an unknown version of its interface");
  }
}

void Kvm::KeepAcrossExec(bool keep) const { fcntl(fd_.get(), F_SETFD, keep ? 0 : FD_CLOEXEC); }

int Kvm::ApiVersion() const { return RetryIoctl(fd_.get(), KVM_GET_API_VERSION, 0); }

int Kvm::CheckExtension(int capability) const {
  return RetryIoctl(fd_.get(), KVM_CHECK_EXTENSION, static_cast<unsigned long>(capability));
}

std::size_t Kvm::RunAreaSize() const {
  return static_cast<std::size_t>(
      Checked(fd_.get(), KVM_GET_VCPU_MMAP_SIZE, 0, "KVM_GET_VCPU_MMAP_SIZE"));
}

CpuidTable Kvm::SupportedCpuid() const {
  auto buffer = std::make_unique<CpuidBuffer>();
  buffer->count = kMaxCpuidEntries;
  Checked(fd_.get(), kGetSupportedCpuid, AddressOf(buffer.get()), "KVM_GET_SUPPORTED_CPUID");
  return {{buffer->entries, buffer->entries + buffer->count}};
}

Vm::Vm(const Kvm& kvm) {
  fd_ = OpenOutOfTheWay([&kvm] { return ioctl(kvm.fd(), KVM_CREATE_VM, 0); });
  if (!fd_.valid()) throw KvmError(errno, "cannot create a virtual machine");
  // Intel hosts without unrestricted guest keep a TSS and an identity map in guest-physical memory;
  // below 4 GiB nothing of ours lives. Elsewhere these calls do nothing.
  ioctl(fd_.get(), KVM_SET_TSS_ADDR, 0xfffbd000ul);
  std::uint64_t identity_map = 0xfffbc000ull;
  ioctl(fd_.get(), KVM_SET_IDENTITY_MAP_ADDR, &identity_map);
  // Where page tables are shadowed, KVM bounds the shadow pages by the size of the slots (2 %), far
  // too few for a thousand page tables: kvm_pvm then drops shadow pages that are in use, and the
  // guest dies of a triple fault. An upper bound only; pages are made as needed.
  constexpr unsigned long kMaximumShadowPages = 1ul << 19;
  ioctl(fd_.get(), KVM_SET_NR_MMU_PAGES, kMaximumShadowPages);
}

int Vm::CheckExtension(int capability) const {
  return RetryIoctl(fd_.get(), KVM_CHECK_EXTENSION, static_cast<unsigned long>(capability));
}

bool Vm::TryAddSlot(unsigned slot, GuestPhysical physical, const void* host, std::uint64_t size) {
  kvm_userspace_memory_region region{};
  region.slot = slot;
  region.guest_phys_addr = physical.value;
  region.memory_size = size;
  region.userspace_addr = AddressOf(host);
  return RetryIoctl(fd_.get(), KVM_SET_USER_MEMORY_REGION, AddressOf(&region)) == 0;
}

void Vm::AddSlot(unsigned slot, GuestPhysical physical, const void* host, std::uint64_t size) {
  if (!TryAddSlot(slot, physical, host, size)) {
    throw KvmError(errno, "KVM_SET_USER_MEMORY_REGION: cannot show memory to the guest");
  }
}

Vcpu::Vcpu(const Kvm& kvm, const Vm& vm, unsigned number) {
  fd_ = OpenOutOfTheWay([&vm, number] {
    return ioctl(vm.fd(), KVM_CREATE_VCPU, static_cast<unsigned long>(number));
  });
  if (!fd_.valid()) throw KvmError(errno, "cannot create a vCPU");
  run_size_ = kvm.RunAreaSize();
  void* area = mmap(nullptr, run_size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (area == MAP_FAILED) throw KvmError(errno, "cannot map a vCPU's shared area");
  run_ = static_cast<kvm_run*>(area);
  run_->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
}

Vm::~Vm() {
  if (fd_.valid()) ForgetMonitorDescriptor(fd_.get());
}

void Vm::Abandon() {
  ForgetMonitorDescriptor(fd_.get());
  static_cast<void>(fd_.Release());
}

void Vcpu::Abandon() {
  ForgetMonitorDescriptor(fd_.get());
  static_cast<void>(fd_.Release());
}

Vcpu::~Vcpu() {
  if (run_ != nullptr) munmap(run_, run_size_);
  if (fd_.valid()) ForgetMonitorDescriptor(fd_.get());
}

int Vcpu::Run() { return ioctl(fd_.get(), KVM_RUN, 0) == 0 ? 0 : errno; }

void Vcpu::FetchRegisters() {
  Checked(fd_.get(), KVM_GET_REGS, AddressOf(&registers()), "KVM_GET_REGS");
  Checked(fd_.get(), KVM_GET_SREGS, AddressOf(&special_registers()), "KVM_GET_SREGS");
}

void Vcpu::StoreRegisters() {
  Checked(fd_.get(), KVM_SET_REGS, AddressOf(&registers()), "KVM_SET_REGS");
}

void Vcpu::StoreSpecialRegisters() {
  Checked(fd_.get(), KVM_SET_SREGS, AddressOf(&special_registers()), "KVM_SET_SREGS");
}

bool Vcpu::TryStoreSpecialRegisters() {
  return RetryIoctl(fd_.get(), KVM_SET_SREGS, AddressOf(&special_registers())) == 0;
}

void Vcpu::SetCpuid(const CpuidTable& table) {
  auto buffer = std::make_unique<CpuidBuffer>();
  buffer->count =
      static_cast<std::uint32_t>(std::min<std::size_t>(table.entries.size(), kMaxCpuidEntries));
  std::copy_n(table.entries.begin(), buffer->count, buffer->entries);
  Checked(fd_.get(), kSetCpuid2, AddressOf(buffer.get()), "KVM_SET_CPUID2");
}

void Vcpu::StartVm() {
  run_->immediate_exit = 1;
  int error = Run();
  rlimit limit{};
  if (error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NPROC, &raised);
    error = Run();
    setrlimit(RLIMIT_NPROC, &limit);
  }
  run_->immediate_exit = 0;
  if (error == EAGAIN) {
    throw KvmError(error, "KVM's own thread in this process is one too many for `ulimit -u`");
  }
  // pid_namespaces(7): it may make no threads any more.
  if (error == EINVAL) {
    throw KvmError(error,
                   "KVM cannot have its own thread in a process that has left its PID namespace to "
                   "its children (`unshare --pid` without --fork)");
  }
}

void Vcpu::SetMsr(std::uint32_t index, std::uint64_t value) {
  struct {
    std::uint32_t count, padding;
    kvm_msr_entry entry;
  } one{1, 0, {index, 0, value}};
  if (Checked(fd_.get(), kSetMsrs, AddressOf(&one), "KVM_SET_MSRS") != 1) {
    throw KvmError(
        EINVAL, "KVM_SET_MSRS: the host refuses model-specific register " + std::to_string(index));
  }
}

bool Vcpu::TrySetXcr0(std::uint64_t value) {
  kvm_xcrs xcrs{};
  xcrs.nr_xcrs = 1;
  xcrs.xcrs[0].xcr = 0;
  xcrs.xcrs[0].value = value;
  return RetryIoctl(fd_.get(), KVM_SET_XCRS, AddressOf(&xcrs)) == 0;
}

bool Vcpu::TryAlignTimeStampCounter() {
  std::uint64_t offset = 0;
  kvm_device_attr attribute{};
  attribute.group = KVM_VCPU_TSC_CTRL;
  attribute.attr = KVM_VCPU_TSC_OFFSET;
  attribute.addr = AddressOf(&offset);
  return RetryIoctl(fd_.get(), KVM_SET_DEVICE_ATTR, AddressOf(&attribute)) == 0;
}

}  // namespace trapline
