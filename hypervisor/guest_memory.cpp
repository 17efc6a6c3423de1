#include "hypervisor/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace trapline {
namespace {

constexpr std::uint64_t kSystemBase = 4ull << 30;  // guest-physical
constexpr std::uint64_t kSystemStep = 16ull << 20;
// A slot costs about 130 us plus 8.5 us a MiB on kvm_pvm (1 GiB: 8.7 ms). 32 MiB keeps
// both halves small; mappings of a GiB and more get GiB windows so that the slot limit is never
// near.
constexpr std::uint64_t kWindow = 32ull << 20;
constexpr std::uint64_t kLargeWindow = 1ull << 30;

}  // namespace

GuestMemory::GuestMemory(Vm& vm, unsigned physical_bits, unsigned max_slots)
    : vm_(&vm), physical_end_(1ull << std::min(physical_bits, 47u)), max_slots_(max_slots) {
  // Address space only, no memory. Under a small `ulimit -v` take what there is.
  for (system_size_ = 4ull << 30; system_size_ >= kSystemStep; system_size_ /= 2) {
    void* area = mmap(nullptr, system_size_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area != MAP_FAILED) {
      system_ = static_cast<char*>(area);
      break;
    }
  }
  if (system_ == nullptr)
    throw KvmError(ENOMEM, "no address space for guest page tables (see ulimit -v)");
  madvise(system_, system_size_,
          MADV_DONTDUMP);  // nothing of the program's: keeps core dumps small
  next_window_ = kSystemBase + system_size_;
}

GuestMemory::~GuestMemory() { munmap(system_, system_size_); }

void GuestMemory::AddSlot(GuestPhysical physical, std::uint64_t host, std::uint64_t size) {
  if (slots_.size() >= max_slots_ || physical.value + size > physical_end_) {
    throw KvmError(ENOMEM, "the program's memory is spread too widely for this host's KVM");
  }
  // reinterpret: host addresses are integers here because the guest's are the same ones
  vm_->AddSlot(static_cast<unsigned>(slots_.size()), physical, reinterpret_cast<void*>(host), size);
  slots_.push_back({physical, host, size});
}

GuestPhysical GuestMemory::AllocatePages(unsigned count) {
  const std::lock_guard lock(mutex_);
  if (count == 1 && !free_.empty()) {
    const GuestPhysical page = free_.back();
    free_.pop_back();
    std::memset(HostPointer(page), 0, kPageSize);
    return page;
  }
  const std::uint64_t size = count * kPageSize;
  while (system_used_ + size > system_shown_) {
    if (system_shown_ + kSystemStep > system_size_) throw std::bad_alloc();
    AddSlot({kSystemBase + system_shown_}, reinterpret_cast<std::uint64_t>(system_) + system_shown_,
            kSystemStep);
    system_shown_ += kSystemStep;
  }
  const GuestPhysical pages{kSystemBase + system_used_};
  system_used_ += size;
  return pages;
}

void GuestMemory::FreePage(GuestPhysical page) {
  const std::lock_guard lock(mutex_);
  retired_.push_back(page);
}

void* GuestMemory::HostPointer(GuestPhysical system_address) {
  return system_ + (system_address.value - kSystemBase);
}

GuestPhysical GuestMemory::PhysicalOf(GuestVirtual address, std::uint64_t mapping_start,
                                      std::uint64_t mapping_end) {
  const std::lock_guard lock(mutex_);
  auto next = windows_.upper_bound(address.value);
  if (next != windows_.begin()) {
    const Slot& slot = slots_[std::prev(next)->second];
    if (address.value - slot.host < slot.size) return slot.physical + (address.value - slot.host);
  }
  std::uint64_t size = kLargeWindow;
  std::uint64_t start = AlignDown(address.value, size);
  const bool room = next == windows_.end() || next->first >= start + size;
  const bool below_free = next == windows_.begin() ||
                          std::prev(next)->first + slots_[std::prev(next)->second].size <= start;
  if (!(mapping_start <= start && mapping_end >= start + size && room && below_free)) {
    size = kWindow;
    start = AlignDown(address.value, size);
  }
  size = std::min(size, kUserAddressEnd - start);
  const GuestPhysical physical{next_window_};
  AddSlot(physical, start, size);
  next_window_ += AlignUp(size, kLargePageSize);
  windows_[start] = slots_.size() - 1;
  return physical + (address.value - start);
}

std::optional<GuestVirtual> GuestMemory::VirtualOf(GuestPhysical physical) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [host, index] : windows_) {
    const Slot& slot = slots_[index];
    if (physical >= slot.physical && physical - slot.physical < slot.size) {
      return GuestVirtual{slot.host + (physical - slot.physical)};
    }
  }
  return std::nullopt;
}

void GuestMemory::AdoptVm(Vm& vm) {
  const std::lock_guard lock(mutex_);
  vm_ = &vm;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    vm_->AddSlot(static_cast<unsigned>(i), slots_[i].physical,
                 reinterpret_cast<void*>(slots_[i].host), slots_[i].size);
  }
  free_.insert(free_.end(), retired_.begin(), retired_.end());
  retired_.clear();
}

}  // namespace trapline
