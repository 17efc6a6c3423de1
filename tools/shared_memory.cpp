#include "tools/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "hypervisor/kvm.h"
#include "replay/file_size_room.h"
#include "symbols/modules.h"

namespace trapline {
namespace {

constexpr std::uint64_t kPage = 4096;  // bytes

// A file that is open for a moment, where the program does not see it.
class ProcFile {
 public:
  explicit ProcFile(const char* path)
      : descriptor_(OpenOutOfTheWay([path] { return open(path, O_RDONLY | O_CLOEXEC); })) {}
  ~ProcFile() {
    if (descriptor_.valid()) ForgetMonitorDescriptor(descriptor_.get());
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  bool valid() const { return descriptor_.valid(); }
  int get() const { return descriptor_.get(); }

 private:
  FileDescriptor descriptor_;
};

// Whether a page of [start, end) is in the process's page table, in memory or swapped out:
// Documentation/admin-guide/mm/pagemap.rst.
bool IsUsed(std::uint64_t start, std::uint64_t end) {
  constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;
  const ProcFile pages("/proc/thread-self/pagemap");
  if (!pages.valid()) return false;
  std::array<std::uint64_t, 4096> entries{};
  for (std::uint64_t page = start / kPage; page < end / kPage; page += entries.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(entries.size(), end / kPage - page);
    const ssize_t size = pread(pages.get(), entries.data(), count * sizeof(entries[0]),
                               static_cast<off_t>(page * sizeof(entries[0])));
    if (size <= 0) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size) / sizeof(entries[0]); ++i) {
      if ((entries[i] & kPresentOrSwapped) != 0) return true;
    }
  }
  return false;
}

// The shared mapping at `address`, if that is the process's own to use.
std::optional<Mapping> MappingAt(std::uint64_t address) {
  const ProcFile maps("/proc/thread-self/maps");
  if (!maps.valid()) return std::nullopt;
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t size = read(maps.get(), buffer.data(), buffer.size());
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const std::vector<Mapping> mappings = ParseMaps(text);
  const auto mapping = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& each) {
    return address >= each.begin && address < each.end;
  });
  if (mapping == mappings.end() || !mapping->shared) return std::nullopt;
  return *mapping;
}

// What a user knows the memory by.
std::string NameOf(const std::string& path) {
  constexpr std::string_view kMemfd = "/memfd:", kSystemV = "/SYSV";
  if (path.empty() || path == "/dev/zero") return "an anonymous shared mapping";
  if (path.starts_with(kMemfd)) return "memfd '" + path.substr(kMemfd.size()) + "'";
  if (path.starts_with(kSystemV)) return "a System V shared memory segment";
  return "'" + path + "'";
}

}  // namespace

// One use of one piece of memory by one process.
struct SharedMemoryTable::Entry {
  std::atomic<bool> complete;
  std::atomic<bool> writable;
  std::atomic<bool> told;  // in the first entry of the memory
  pid_t process;
  std::uint64_t device, inode;
};

struct SharedMemoryTable::Table {
  static constexpr std::uint32_t kEntries = 1 << 14;  // further uses are not noted
  std::atomic<std::uint32_t> used;
  std::array<Entry, kEntries> entries;
};

SharedMemoryTable::~SharedMemoryTable() {
  if (table_ != nullptr) munmap(table_, sizeof(Table));
  if (descriptor_ < 0) return;
  ForgetMonitorDescriptor(descriptor_);
  close(descriptor_);
}

void SharedMemoryTable::Open(int inherited) {
  const FileSizeRoom room;
  descriptor_ = OpenOutOfTheWay([inherited, &room] {
                  if (inherited >= 0) return dup(inherited);
                  if (!room.Has(sizeof(Table))) return -1;
                  const int made = memfd_create("trapline", MFD_CLOEXEC);
                  if (made >= 0 && ftruncate(made, sizeof(Table)) == 0) return made;
                  if (made >= 0) close(made);
                  return -1;
                }).Release();
  if (inherited >= 0) close(inherited);
  if (descriptor_ < 0) return;
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  void* const memory =
      mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory != MAP_FAILED) table_ = static_cast<Table*>(memory);
}

std::optional<SharedMemoryUse> SharedMemoryTable::Note(std::uint64_t start, std::uint64_t end,
                                                       pid_t process) {
  if (table_ == nullptr || !IsUsed(start, end)) return std::nullopt;
  const std::optional<Mapping> mapping = MappingAt(start);
  if (!mapping) return std::nullopt;
  const auto count = [&] {
    return std::min(table_->used.load(std::memory_order_acquire), Table::kEntries);
  };
  const auto visit = [&](auto&& visitor) {
    for (std::uint32_t i = 0; i < count(); ++i) {
      Entry& entry = table_->entries[i];
      if (entry.complete.load(std::memory_order_acquire) && entry.device == mapping->device &&
          entry.inode == mapping->inode) {
        visitor(entry);
      }
    }
  };
  bool known = false;
  visit([&](Entry& entry) {
    if (entry.process != process) return;
    known = true;
    if (mapping->writable) entry.writable = true;
  });
  if (!known) {
    const std::uint32_t slot = table_->used.fetch_add(1);
    if (slot >= Table::kEntries) {
      table_->used = Table::kEntries;
      return std::nullopt;
    }
    Entry& entry = table_->entries[slot];
    entry.process = process;
    entry.device = mapping->device;
    entry.inode = mapping->inode;
    entry.writable = mapping->writable;
    entry.complete.store(true, std::memory_order_release);
  }
  Entry* first = nullptr;
  pid_t other = 0;
  bool writable = false;
  visit([&](Entry& entry) {
    if (first == nullptr) first = &entry;
    if (entry.process != process && other == 0) other = entry.process;
    writable = writable || entry.writable;
  });
  if (other == 0 || !writable || first->told.exchange(true)) return std::nullopt;
  return SharedMemoryUse{NameOf(mapping->path), end - start, other, process};
}

}  // namespace trapline
