// The program's system calls about its memory, and the limits that they keep.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

#include "hypervisor/address_space.h"
#include "hypervisor/client_requests.h"
#include "hypervisor/host_mappings.h"
#include "hypervisor/link_target.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace trapline {
namespace {

long Host(long result) { return result < 0 ? -errno : result; }

bool ValidRange(std::uint64_t address, std::uint64_t length) {
  return length <= kUserAddressEnd && address <= kUserAddressEnd - length;
}

// The file behind a descriptor, by name; empty when it has none.
std::string FileOf(int fd) { return LinkTarget(DescriptorLink(fd)); }

// Region::object of System V's segments, with their number.
constexpr std::uint64_t kSegments = std::uint64_t{1} << 62;

}  // namespace

bool AddressSpace::ExceedsLimits(std::uint64_t bytes, int protection, bool shared) const {
  // Linux takes a soft limit of 0 for data for none (mm/mmap.c, may_expand_vm: Valgrind sets it).
  const rlimit& of_data = limits_.data;
  const std::uint64_t most = limits_.address_space.rlim_cur;
  const std::uint64_t most_data = of_data.rlim_cur != 0 ? of_data.rlim_cur : of_data.rlim_max;
  if (most == RLIM_INFINITY && most_data == RLIM_INFINITY) return false;
  const auto is_data = [](int bits, bool is_shared) {
    return (bits & PROT_WRITE) != 0 && !is_shared;
  };
  std::uint64_t all = bytes;
  std::uint64_t data = is_data(protection, shared) ? bytes : 0;
  for (const auto& [start, region] : regions_) {
    all += region.end - start;
    if (is_data(region.protection, region.shared) && !region.grows_down) data += region.end - start;
  }
  return all > most || (is_data(protection, shared) && data > most_data);
}

bool AddressSpace::IsOwnLimit(int resource) {
  return resource == RLIMIT_AS || resource == RLIMIT_DATA;
}

MemoryLimits AddressSpace::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

rlimit AddressSpace::GetLimit(int resource) {
  const std::lock_guard lock(mutex_);
  return resource == RLIMIT_AS ? limits_.address_space : limits_.data;
}

long AddressSpace::SetLimit(int resource, const rlimit& limit) {
  const std::lock_guard lock(mutex_);
  rlimit& current = resource == RLIMIT_AS ? limits_.address_space : limits_.data;
  if (limit.rlim_cur > limit.rlim_max) return -EINVAL;
  if (limit.rlim_max > current.rlim_max && geteuid() != 0) return -EPERM;
  current = limit;
  return 0;
}

long AddressSpace::Mmap(std::uint64_t address, std::uint64_t length, int protection, int flags,
                        int fd, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  const bool fixed =
      (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE;
  std::uint64_t added = size;
  if (fixed && ValidRange(address, size)) {  // what is replaced does not count twice
    for (const Range& part : CoveredParts(address, address + size)) added -= part.end - part.start;
  }
  if (ExceedsLimits(added, protection, (flags & MAP_TYPE) != MAP_PRIVATE)) return -ENOMEM;
  if (ValidRange(address, size) && CollidesWithMonitor(address, size, protection)) {
    if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) return -ENOMEM;
    address = 0;  // it was a wish
  }
  std::vector<Range> claimed;
  if (fixed && length != 0 && size != 0 && address % kPageSize == 0 && ValidRange(address, size)) {
    if (Borrowed(address, address + size) || !ClaimGaps(address, address + size, claimed))
      return -ENOMEM;
    EndShared(address, address + size);
    Freshen(address, address + size);
    ClearEntries(address, address + size);
  }
  // The host's own growing mappings would grow behind our back: growth is done in TryGrow.
  const long result = Host(syscall(SYS_mmap, address, length, HostProtection(protection),
                                   flags & ~MAP_GROWSDOWN, fd, offset));
  if (result < 0) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    return result;
  }
  const auto start = static_cast<std::uint64_t>(result);
  Region region;
  std::string path;
  std::uint64_t end = start + size;
  if ((flags & MAP_HUGETLB) != 0) {  // length is rounded to the huge page size
    int shift = (flags >> MAP_HUGE_SHIFT) & 0x3f;
    if (shift == 0) shift = 21;
    end = start + AlignUp(length, 1ull << shift);
  }
  region.end = end;
  region.protection = protection & (PROT_READ | PROT_WRITE | PROT_EXEC);
  region.shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  if (states_ && fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    path = FileOf(fd);
    region.untracked_code = rules_.is_untracked_module(path);
    struct stat file {};
    // Of a device, each mapping may be other memory.
    if (region.shared && fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
      region.object = (file.st_dev << 40 ^ file.st_ino) + 1;
      region.offset = offset;
      watches_aliases_ |= ++objects_[region.object] > 1;
    }
  }
  // Mapped once more by mremap alone.
  if (states_ && region.shared && region.object == 0) region.object = ~++own_objects_;
  if ((flags & MAP_GROWSDOWN) != 0) {
    region.grows_down = true;
    region.growth_limit = kPageSize * 16;
  }
  Insert(start, region);
  if (!path.empty() && (region.protection & PROT_EXEC) != 0)
    NoteCode(start, region, path, static_cast<std::uint64_t>(offset));
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && HasClientRequests(region))
    ArmClientRequests(start, end, HostProtection(protection));
  return result;
}

long AddressSpace::Munmap(std::uint64_t address, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  if (address % kPageSize != 0 || size == 0 || !ValidRange(address, size)) return -EINVAL;
  return MunmapLocked(address, address + size);
}

void AddressSpace::EndShared(std::uint64_t start, std::uint64_t end) {
  if (!rules_.on_shared_memory_ends) return;
  auto region = FindRegion(start);
  if (region == regions_.end()) region = regions_.lower_bound(start);
  for (; region != regions_.end() && region->first < end; ++region) {
    if (region->second.shared) rules_.on_shared_memory_ends(region->first, region->second.end);
  }
}

long AddressSpace::MunmapLocked(std::uint64_t address, std::uint64_t end) {
  EndShared(address, end);
  for (const Range& part : CoveredParts(address, end)) {
    Freshen(part.start, part.end);
    for (const Range& own : OwnParts(part.start, part.end)) {
      ClearEntries(own.start, own.end);
      const long result = Host(munmap(Pointer(own.start), own.end - own.start));
      if (result < 0) return result;
    }
    ClearEntries(part.start, part.end);
    Remove(part.start, part.end);
  }
  return 0;
}

long AddressSpace::MprotectLocked(std::uint64_t address, std::uint64_t end, int protection) {
  if (CollidesWithMonitor(address, end - address, protection)) return -ENOMEM;
  ClearEntries(address, end);
  const long result = Host(mprotect(Pointer(address), end - address, HostProtection(protection)));
  if (result < 0) return result;
  const int bits = protection & (PROT_READ | PROT_WRITE | PROT_EXEC);
  Split(address);
  Split(end);
  auto it = regions_.lower_bound(address);
  while (it != regions_.end() && it->first < end) {
    const std::uint64_t start = it->first;
    Region changed = it->second;
    changed.protection = bits;
    if (changed.grows_down) {
      ClearCollisions(start, changed);
      it->second = changed;
      ++it;
      continue;
    }
    ++it;
    Insert(start, changed);
    it = regions_.upper_bound(start);
  }
  return 0;
}

long AddressSpace::Mprotect(std::uint64_t address, std::uint64_t length, int protection) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  if (address % kPageSize != 0) return -EINVAL;
  if (length == 0) return 0;
  if (size == 0 || !ValidRange(address, size)) return -ENOMEM;
  if ((protection & (PROT_GROWSDOWN | PROT_GROWSUP)) != 0) {
    const auto it = FindRegion(address);
    if (it == regions_.end() || !it->second.grows_down) return -EINVAL;
    return MprotectLocked(it->first, address + size, protection & ~PROT_GROWSDOWN);
  }
  const auto parts = CoveredParts(address, address + size);
  if (parts.empty() || parts[0].start != address) return -ENOMEM;
  if (Borrowed(address, address + size)) return -EACCES;
  // Region by region, as the kernel does: what comes before a refusal stays changed.
  for (const Range& own : OwnParts(address, parts[0].end)) {
    // Space that becomes data counts as it (mprotect_fixup).
    const Region& region = FindRegion(own.start)->second;
    const auto exceeds = [&](int bits) {
      return ExceedsLimits(own.end - own.start, bits, region.shared || region.grows_down);
    };
    if ((protection & PROT_WRITE) != 0 && exceeds(protection) && !exceeds(region.protection))
      return -ENOMEM;
    const long result = MprotectLocked(own.start, own.end, protection);
    if (result < 0) return result;
  }
  return parts[0].end == address + size ? 0 : -ENOMEM;
}

long AddressSpace::Mremap(std::uint64_t address, std::uint64_t old_length, std::uint64_t new_length,
                          int flags, std::uint64_t new_address) {
  const std::lock_guard lock(mutex_);
  std::uint64_t old_size = AlignUp(old_length, kPageSize);
  const std::uint64_t new_size = AlignUp(new_length, kPageSize);
  if (address % kPageSize != 0 || new_size == 0 || !ValidRange(address, old_size) ||
      !ValidRange(0, new_size)) {
    return -EINVAL;
  }
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ||
      ((flags & MREMAP_MAYMOVE) == 0 && flags != 0)) {
    return -EINVAL;
  }
  if (to_fixed && (new_address % kPageSize != 0 || !ValidRange(new_address, new_size) ||
                   (new_address < address + old_size && address < new_address + new_size))) {
    return -EINVAL;
  }
  const auto source = FindRegion(address);
  const bool shrinks = old_size >= new_size && (flags & MREMAP_DONTUNMAP) == 0;
  if (source != regions_.end() && shrinks && !to_fixed) {
    // What is too much goes, whatever it is made of.
    const long result = MunmapLocked(address + new_size, address + old_size);
    return result < 0 ? result : static_cast<long>(address);
  }
  const std::uint64_t kept = std::min(old_size, new_size);
  // Linux 6.17 and later move several mappings at once; here that is the error it used to be.
  if (source == regions_.end() ||
      (old_size != 0 && source->second.end < address + (shrinks ? kept : old_size))) {
    return -EFAULT;
  }
  const Region region = source->second;
  const std::uint64_t into = address - source->first;
  if (region.borrowed) return -EINVAL;
  if (new_size > old_size && ExceedsLimits(new_size - old_size, region.protection, region.shared))
    return -ENOMEM;
  std::vector<Range> claimed;
  if (to_fixed) {
    if (CollidesWithMonitor(new_address, new_size, region.protection)) return -ENOMEM;
    if (Borrowed(new_address, new_address + new_size)) return -ENOMEM;
    if (!ClaimGaps(new_address, new_address + new_size, claimed)) return -ENOMEM;
    Freshen(new_address, new_address + new_size);
    ClearEntries(new_address, new_address + new_size);
    if (shrinks) {
      MunmapLocked(address + new_size, address + old_size);
      old_size = new_size;
    }
  }
  if (old_size != 0) ClearEntries(address, address + old_size);
  const long result = Host(syscall(SYS_mremap, address, old_size, new_length, flags, new_address));
  if (result < 0) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    // Linux before 6.17 looks at the source only when what was at the destination is gone.
    if (to_fixed) {
      for (const Range& own : OwnParts(new_address, new_address + new_size)) {
        unsigned char there = 0;
        if (mincore(Pointer(own.start), kPageSize, &there) != 0) Remove(own.start, own.end);
      }
    }
    return result;
  }
  if (states_ && old_size != 0) {
    const auto to = static_cast<std::uint64_t>(result);
    if (to != address) {
      // Other views of the same memory take the history over (FindAliases).
      for (const Range& part : watches_aliases_ ? OnlyViews(address, address + kept)
                                                : std::vector<Range>{{address, address + kept}}) {
        rules_.on_moved(part.start, to + (part.start - address), part.end - part.start);
      }
      states_->Move(address, to, kept);
    }
    if (kept < old_size) Freshen(address + kept, address + old_size);
  }
  if (old_size != 0 && (flags & MREMAP_DONTUNMAP) == 0) Remove(address, address + old_size);
  Region moved = region;
  moved.grows_down = false;
  moved.offset += into;
  if (old_size == 0 && moved.object != 0) {
    ++objects_[moved.object];
    watches_aliases_ = true;
  }
  moved.end = static_cast<std::uint64_t>(result) + new_size;
  Insert(static_cast<std::uint64_t>(result), moved);
  return result;
}

long AddressSpace::Madvise(std::uint64_t address, std::uint64_t length, int advice) {
  const std::uint64_t size = AlignUp(length, kPageSize);
  const bool wraps = size < length || address + size < address;
  const bool is_range = address % kPageSize == 0 && size != 0 && !wraps;
  const bool gives_back = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
  const bool serves = is_range && gives_back && serves_.load(std::memory_order_relaxed);
  if (is_range) {
    const std::lock_guard lock(mutex_);
    if (serves) ClearServed(address, address + size);
    if (gives_back) NoteChangedCode(address, address + size);
    if (states_ && gives_back) {
      for (const Range& part : CoveredParts(address, address + size)) {
        for (std::uint64_t at = part.start; at < part.end;) {
          const Region& region = FindRegion(at)->second;
          const std::uint64_t next = std::min(part.end, region.end);
          // Shared memory keeps what it holds; only MADV_REMOVE takes it out of the object.
          if (!region.shared || advice == MADV_REMOVE) {
            Freshen(at, next);
            ClearEntries(at, next);
          }
          at = next;
        }
      }
    }
    if (!Covered(address, address + size)) {
      // Advice must not reach the monitor's memory in the gaps. Natively the rest is done and
      // ENOMEM told. An empty range asks only whether the advice is known.
      if (const long known = Host(madvise(nullptr, 0, advice)); known < 0) return known;
      for (const Range& part : CoveredParts(address, address + size)) {
        const long result = Host(madvise(Pointer(part.start), part.end - part.start, advice));
        if (result < 0) return result;
      }
      return -ENOMEM;
    }
  }
  const long result = Host(madvise(Pointer(address), length, advice));
  if (serves) {
    // Others may have been shown once more what was about to go, and must be served anew.
    const std::lock_guard lock(mutex_);
    ClearServed(address, address + size);
  }
  return result;
}

void AddressSpace::SetBreak(std::uint64_t start) {
  const std::lock_guard lock(mutex_);
  break_start_ = break_ = start;
}

long AddressSpace::Brk(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (address < break_start_ || address >= kUserAddressEnd) return static_cast<long>(break_);
  const std::uint64_t old_end = AlignUp(break_, kPageSize);
  const std::uint64_t new_end = AlignUp(address, kPageSize);
  if (new_end > old_end) {
    if (ExceedsLimits(new_end - old_end, PROT_READ | PROT_WRITE, false))
      return static_cast<long>(break_);
    void* got = mmap(Pointer(old_end), new_end - old_end, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != Pointer(old_end)) {
      if (got != MAP_FAILED) munmap(got, new_end - old_end);
      return static_cast<long>(break_);
    }
    Region region;
    region.end = new_end;
    region.protection = PROT_READ | PROT_WRITE;
    Insert(old_end, region);
  } else if (new_end < old_end) {
    for (const Range& part : CoveredParts(new_end, old_end)) {
      Freshen(part.start, part.end);
      ClearEntries(part.start, part.end);
      munmap(Pointer(part.start), part.end - part.start);
      Remove(part.start, part.end);
    }
  }
  break_ = address;
  return static_cast<long>(break_);
}

long AddressSpace::Shmat(int id, std::uint64_t address, int flags) {
  const std::lock_guard lock(mutex_);
  shmid_ds info{};
  if (shmctl(id, IPC_STAT, &info) != 0) return -errno;
  const std::uint64_t size = AlignUp(info.shm_segsz, kPageSize);
  if (CollidesWithMonitor(address, size, PROT_READ)) return -EINVAL;
  std::vector<Range> claimed;
  if ((flags & SHM_REMAP) != 0) {
    if (!ValidRange(address, size) || !ClaimGaps(address, address + size, claimed)) return -EINVAL;
    ClearEntries(address, address + size);
  }
  const long result = Host(syscall(SYS_shmat, id, address, flags));
  if (result < 0 && result > -4096) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    return result;
  }
  Region region;
  const auto start = static_cast<std::uint64_t>(result);
  region.end = start + size;
  region.protection = PROT_READ | ((flags & SHM_RDONLY) != 0 ? 0 : PROT_WRITE) |
                      ((flags & SHM_EXEC) != 0 ? PROT_EXEC : 0);
  region.shared = true;
  if (states_) {
    region.object = kSegments | static_cast<std::uint32_t>(id);
    watches_aliases_ |= ++objects_[region.object] > 1;
  }
  Insert(start, region);
  shm_segments_[start] = size;
  return result;
}

long AddressSpace::Shmdt(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto segment = shm_segments_.find(address);
  if (segment == shm_segments_.end()) return -EINVAL;
  EndShared(address, address + segment->second);
  Freshen(address, address + segment->second);
  ClearEntries(address, address + segment->second);
  const long result = Host(syscall(SYS_shmdt, address));
  if (result < 0) return result;
  // Something else may lie in the segment's place by now; only what is free is gone.
  for (std::uint64_t page = address; page < address + segment->second; page += kPageSize) {
    if (IsFree(page, page + kPageSize)) Remove(page, page + kPageSize);
  }
  shm_segments_.erase(segment);
  return 0;
}

}  // namespace trapline
