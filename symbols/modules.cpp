#include "symbols/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>

namespace trapline {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kStillMapped = std::numeric_limits<std::uint32_t>::max();
// Bounds on what a file that nobody vouches for may make us read.
constexpr std::size_t kMaxProgramHeaders = 512;
constexpr std::uint64_t kMaxNotes = 64 * 1024;

constexpr std::uint64_t PageFloor(std::uint64_t value) { return value & ~(kPage - 1); }
constexpr std::uint64_t PageCeiling(std::uint64_t value) { return PageFloor(value + kPage - 1); }

std::string ReadWholeFile(const char* path) {
  std::string text;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  char buffer[16384];
  for (ssize_t size = 0; (size = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(size));
  close(descriptor);
  return text;
}

// Takes a number off the front of `text`, and the character `end` behind it.
bool TakeNumber(std::string_view& text, int base, char end, std::uint64_t& value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || at == text.data() + text.size() || *at != end) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
  return true;
}

// The kernel writes a newline in a path as \012 and leaves all else as it is.
std::string Unescape(std::string_view path) {
  std::string plain;
  while (!path.empty()) {
    const std::size_t at = std::min(path.find("\\012"), path.size());
    plain += path.substr(0, at);
    path.remove_prefix(at);
    if (path.empty()) break;
    plain += '\n';
    path.remove_prefix(4);
  }
  return plain;
}

bool ParseLine(std::string_view line, Mapping& mapping) {
  std::uint64_t major = 0, minor = 0;
  if (!TakeNumber(line, 16, '-', mapping.begin) || !TakeNumber(line, 16, ' ', mapping.end))
    return false;
  if (mapping.begin >= mapping.end || line.size() < 5 || line[4] != ' ') return false;
  mapping.readable = line[0] == 'r';
  mapping.writable = line[1] == 'w';
  mapping.executable = line[2] == 'x';
  mapping.shared = line[3] == 's';
  line.remove_prefix(5);
  if (!TakeNumber(line, 16, ' ', mapping.offset) || !TakeNumber(line, 16, ':', major) ||
      !TakeNumber(line, 16, ' ', minor)) {
    return false;
  }
  mapping.device = major << 32 | (minor & 0xffffffff);
  // The inode is the last field of a mapping without a path.
  const auto [at, error] =
      std::from_chars(line.data(), line.data() + line.size(), mapping.inode, 10);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(at - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view kDeleted = " (deleted)";
  if (line.ends_with(kDeleted)) {
    mapping.deleted = true;
    line.remove_suffix(kDeleted.size());
  }
  mapping.path = Unescape(line);
  return true;
}

std::string Hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The GNU build id among ELF notes (gABI, "Note Section"); empty if it is not there.
std::string BuildIdInNotes(const std::string& notes, std::uint64_t alignment) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    at += sizeof header;
    const std::uint64_t name_size = (header.n_namesz + unit - 1) & ~(unit - 1);
    if (name_size > notes.size() - at || header.n_descsz > notes.size() - at - name_size) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + at, "GNU", 4) == 0) {
      return Hexadecimal(reinterpret_cast<const unsigned char*>(notes.data() + at + name_size),
                         header.n_descsz);
    }
    at += name_size + ((header.n_descsz + unit - 1) & ~(unit - 1));
  }
  return {};
}

bool ReadProgramHeaders(std::uint64_t base, const MemoryReader& read,
                        std::vector<Elf64_Phdr>& headers) {
  Elf64_Ehdr file{};
  if (!read(base, &file, sizeof file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
      file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_ident[EI_DATA] != ELFDATA2LSB ||
      file.e_machine != EM_X86_64 || (file.e_type != ET_DYN && file.e_type != ET_EXEC) ||
      file.e_phentsize != sizeof(Elf64_Phdr) || file.e_phnum == 0 ||
      file.e_phnum > kMaxProgramHeaders) {
    return false;
  }
  headers.resize(file.e_phnum);
  return read(base + file.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr));
}

// Fills in what the ELF headers in memory say. False if `base` is no module's start.
bool ReadModule(std::uint64_t base, const MemoryReader& read, Module& module) {
  std::vector<Elf64_Phdr> headers;
  if (!ReadProgramHeaders(base, read, headers)) return false;
  const auto first = std::find_if(headers.begin(), headers.end(), [](const Elf64_Phdr& header) {
    return header.p_type == PT_LOAD && PageFloor(header.p_offset) == 0;
  });
  if (first == headers.end()) return false;
  module.bias = base - PageFloor(first->p_vaddr);
  module.begin = base;
  module.end = base;
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD) {
      const std::uint64_t begin = module.bias + PageFloor(header.p_vaddr);
      const std::uint64_t end = module.bias + PageCeiling(header.p_vaddr + header.p_memsz);
      if (begin < base || end < begin) return false;
      module.end = std::max(module.end, end);
    }
    if (header.p_type == PT_NOTE && module.build_id.empty() && header.p_memsz <= kMaxNotes) {
      std::string notes(header.p_memsz, '\0');
      if (read(module.bias + header.p_vaddr, notes.data(), notes.size()))
        module.build_id = BuildIdInNotes(notes, header.p_align);
    }
  }
  return module.end > module.begin;
}

template <typename Map>
auto Covering(Map& map, std::uint64_t address) {
  auto at = map.upper_bound(address);
  return at == map.begin() ? map.end() : std::prev(at);
}

bool SameFile(const std::string& path, const Module& module) {
  if (path == module.path) return true;
  char real[PATH_MAX];
  return realpath(path.c_str(), real) != nullptr && module.path == real;
}

bool SameModule(const Module& a, const Module& b) {
  return a.path == b.path && a.begin == b.begin && a.end == b.end && a.bias == b.bias &&
         a.device == b.device && a.inode == b.inode && a.build_id == b.build_id;
}

}  // namespace

MemoryReader OwnMemory() {
  return {[](void*, std::uint64_t address, void* out, std::size_t size) {
            const iovec to = {out, size};
            const iovec from = {reinterpret_cast<void*>(address), size};
            return process_vm_readv(gettid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(size);
          },
          nullptr};
}

std::vector<Mapping> ParseMaps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (ParseLine(text.substr(0, length), mapping)) mappings.push_back(std::move(mapping));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return mappings;
}

Modules::Modules(ModulesOptions options)
    : options_(std::move(options)), reads_own_memory_(options_.memory.read == nullptr) {
  if (!options_.read_maps)
    options_.read_maps = [] { return ReadWholeFile("/proc/thread-self/maps"); };
  if (reads_own_memory_) options_.memory = OwnMemory();
}

Modules::~Modules() = default;

const Mapping* Modules::KnownMapping(std::uint64_t address) const {
  const auto at = Covering(mappings_, address);
  return at != mappings_.end() && address < at->second.end ? &at->second : nullptr;
}

// Own memory is not looked into: where the program serves its pages itself (userfaultfd), the
// thread that asks may be the one that is waited for.
bool Modules::HasMemoryAt(std::uint64_t address) const {
  if (!reads_own_memory_) {
    char byte = 0;
    return options_.memory(address, &byte, 1);
  }
  const auto page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address & ~(page_size - 1)), 1, &resident) == 0;
}

const Module* Modules::FindLoaded(std::uint64_t address) const {
  const auto at = Covering(loaded_, address);
  return at != loaded_.end() && address < at->second->end ? at->second : nullptr;
}

template <typename Answer>
auto Modules::WithKnowledgeOf(std::uint64_t address, Answer answer) {
  {
    const std::shared_lock lock(mutex_);
    if (KnownMapping(address) != nullptr) return answer();
  }
  // Reading the maps costs 100 us and more; whoever follows garbage asks for many addresses.
  const bool is_there = HasMemoryAt(address);
  const std::unique_lock lock(mutex_);
  if (!is_there) return answer();
  if (KnownMapping(address) == nullptr) RefreshLocked();
  return answer();
}

const Module* Modules::Find(std::uint64_t address) {
  return WithKnowledgeOf(address, [&]() -> const Module* {
    return KnownMapping(address) != nullptr ? FindLoaded(address) : nullptr;
  });
}

const Module* Modules::FindKnown(std::uint64_t address) {
  {
    const std::shared_lock lock(mutex_);
    if (FindLoaded(address) == nullptr) return nullptr;
  }
  return Find(address);
}

const Module* Modules::Find(std::uint64_t address, std::uint32_t generation) {
  {
    const std::shared_lock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (address >= entry.module->begin && address < entry.module->end &&
          entry.end_generation > generation) {
        return entry.module.get();  // entries are in order of discovery: the nearest
      }
    }
  }
  return Find(address);
}

std::optional<Mapping> Modules::FindMapping(std::uint64_t address) {
  return WithKnowledgeOf(address, [&]() -> std::optional<Mapping> {
    const Mapping* mapping = KnownMapping(address);
    return mapping != nullptr ? std::optional(*mapping) : std::nullopt;
  });
}

bool Modules::IsExecutable(std::uint64_t address) {
  return WithKnowledgeOf(address, [&] {
    const Mapping* mapping = KnownMapping(address);
    return mapping != nullptr && mapping->executable;
  });
}

void Modules::OnUnmap(std::uint64_t begin, std::uint64_t end) {
  const std::unique_lock lock(mutex_);
  auto at = Covering(mappings_, begin);
  if (at == mappings_.end()) at = mappings_.begin();
  while (at != mappings_.end() && at->first < end) {
    at = at->second.end > begin ? mappings_.erase(at) : std::next(at);
  }
}

void Modules::Refresh() {
  const std::unique_lock lock(mutex_);
  RefreshLocked();
}

// `module`, if it was there before, and no other one has been in its place since: for a program
// that loads and unloads a library over and over all that was read of it once still holds. Without
// a build id nobody knows whether the file has the same contents.
Modules::Entry* Modules::FindGone(const Module& module) {
  if (module.build_id.empty()) return nullptr;
  const auto latest = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
    return entry.module->begin < module.end && module.begin < entry.module->end;
  });
  return latest != entries_.rend() && SameModule(*latest->module, module) ? &*latest : nullptr;
}

void Modules::RefreshLocked() {
  std::vector<Mapping> mappings = ParseMaps(options_.read_maps());
  mappings_.clear();
  for (Mapping& mapping : mappings) {
    if (std::find(options_.excluded_paths.begin(), options_.excluded_paths.end(), mapping.path) ==
        options_.excluded_paths.end()) {
      const std::uint64_t begin = mapping.begin;
      mappings_[begin] = std::move(mapping);
    }
  }

  std::map<std::uint64_t, const Module*> loaded;
  bool changed = false;
  bool first_file = true;
  const Module* last = nullptr;
  for (const auto& [begin, mapping] : mappings_) {
    const bool vdso = mapping.path == "[vdso]";
    if (!vdso && (mapping.inode == 0 || mapping.offset != 0)) continue;
    // The second segment may begin on the file's first page, too (LLVM's linker).
    if (last != nullptr && begin < last->end && mapping.inode == last->inode &&
        mapping.device == last->device) {
      continue;
    }
    auto module = std::make_unique<Module>();
    if (!ReadModule(begin, options_.memory, *module)) continue;
    // A file that is only being read (by a linker, a debugger) has no code mapped.
    bool has_code = false;
    for (auto at = mappings_.lower_bound(begin);
         at != mappings_.end() && at->first < module->end && !has_code; ++at) {
      has_code = at->second.executable && at->second.inode == mapping.inode &&
                 at->second.device == mapping.device;
    }
    if (!has_code) continue;
    module->first_end = mapping.end;
    module->path = mapping.path;
    module->deleted = mapping.deleted;
    module->device = mapping.device;
    module->inode = mapping.inode;
    module->is_main_program = options_.main_program.empty()
                                  ? first_file && !vdso
                                  : SameFile(options_.main_program, *module);
    // A static-pie program may lie right above the vdso.
    if (!vdso) first_file = false;
    if (const auto old = loaded_.find(begin);
        old != loaded_.end() && SameModule(*old->second, *module)) {
      loaded.insert(*old);
      last = old->second;
      continue;
    }
    changed = true;
    if (Entry* const known = FindGone(*module)) {
      known->end_generation = kStillMapped;
      last = loaded[begin] = known->module.get();
      continue;
    }
    module->index = static_cast<std::uint32_t>(entries_.size());
    last = loaded[begin] = module.get();
    entries_.push_back({std::move(module), kStillMapped});
  }
  for (const auto& [begin, module] : loaded_) {
    const auto now = loaded.find(begin);
    if (now != loaded.end() && now->second == module) continue;
    entries_[module->index].end_generation = generation_ + 1;
    changed = true;
  }
  if (changed) ++generation_;
  loaded_ = std::move(loaded);
}

std::vector<const Module*> Modules::Loaded() {
  const std::shared_lock lock(mutex_);
  std::vector<const Module*> modules;
  for (const auto& [begin, module] : loaded_) modules.push_back(module);
  return modules;
}

std::vector<const Module*> Modules::Gone() {
  const std::shared_lock lock(mutex_);
  std::vector<const Module*> modules;
  for (const Entry& entry : entries_) {
    if (entry.end_generation != kStillMapped) modules.push_back(entry.module.get());
  }
  return modules;
}

std::string BuildIdOfFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  int context = descriptor;
  const MemoryReader file = {[](void* fd, std::uint64_t offset, void* out, std::size_t size) {
                               return pread(*static_cast<int*>(fd), out, size,
                                            static_cast<off_t>(offset)) ==
                                      static_cast<ssize_t>(size);
                             },
                             &context};
  std::string id;
  std::vector<Elf64_Phdr> headers;
  if (ReadProgramHeaders(0, file, headers)) {
    for (const Elf64_Phdr& header : headers) {
      if (header.p_type != PT_NOTE || header.p_filesz > kMaxNotes || !id.empty()) continue;
      std::string notes(header.p_filesz, '\0');
      if (file(header.p_offset, notes.data(), notes.size()))
        id = BuildIdInNotes(notes, header.p_align);
    }
  }
  close(descriptor);
  return id;
}

}  // namespace trapline
