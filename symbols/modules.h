// Which ELF file is mapped where: from /proc/PID/maps to modules with load bias and build id, also
// of the past.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/memory_reader.h"

namespace trapline {

// One line of /proc/PID/maps (proc(5)).
struct Mapping {
  std::uint64_t begin = 0;  // [begin, end)
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file, bytes
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t device = 0;  // major << 32 | minor
  std::uint64_t inode = 0;   // 0: no file
  std::string path;          // "" anonymous; "[vdso]" and the like; else a file's
  bool deleted = false;      // the file has no name any more; `path` is the one it had

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// The mappings of a maps file, in its order. Lines that are not of the format are left out; any
// bytes are allowed.
std::vector<Mapping> ParseMaps(std::string_view text);

// An ELF file mapped by a loader. Never changes.
struct Module {
  std::uint32_t index = 0;  // dense, in order of discovery
  std::string path;         // as in the maps file; "[vdso]"
  bool deleted = false;
  bool is_main_program = false;
  std::uint64_t begin = 0;  // [begin, end): all its segments, as mapped
  std::uint64_t end = 0;
  std::uint64_t first_end = 0;  // [begin, first_end): its first mapping
  std::uint64_t bias = 0;    // address in the process - address in the file (p_vaddr), modulo 2^64
  std::uint64_t device = 0;  // of the file, as in Mapping
  std::uint64_t inode = 0;
  std::string build_id;  // hexadecimal; empty if it has none

  bool is_vdso() const { return path == "[vdso]"; }
  // "libc.so.6" of "/lib/libc.so.6".
  std::string_view name() const { return std::string_view(path).substr(path.rfind('/') + 1); }
};

struct ModulesOptions {
  // The text of the maps file; by default of /proc/thread-self/maps, which
  // outlasts the initial thread.
  std::function<std::string()> read_maps;
  // Reads the program's memory (ELF headers, build ids); by default OwnMemory().
  MemoryReader memory;
  // Files whose mappings do not count, by their path in the maps file: the monitor's own
  // executable.
  std::vector<std::string> excluded_paths;
  // The program's executable; empty: whatever file's module is mapped lowest.
  std::string main_program;
};

// The modules of one process. Thread-safe. The pointers handed out stay valid as long as this
// object.
class Modules {
 public:
  explicit Modules(ModulesOptions options = {});
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;
  ~Modules();

  // The module that covers `address` now, or null. Reads the maps again if there is memory
  // at `address` but it lies in no mapping known so far, or in one that OnUnmap took away.
  const Module* Find(std::uint64_t address);

  // The same, but never reads the maps for an address outside all modules known so far: for heaps
  // and stacks, whose mappings come and go. Code that runs is known by then.
  const Module* FindKnown(std::uint64_t address);

  // The module that covered `address` in that generation. A stack that is kept for later is kept
  // together with generation() at the time it was taken.
  const Module* Find(std::uint64_t address, std::uint32_t generation);

  // The mapping (file or not) that covers `address` now, as of the last look at the maps.
  std::optional<Mapping> FindMapping(std::uint64_t address);

  // Whether there is executable memory at `address`; same knowledge as Find.
  bool IsExecutable(std::uint64_t address);

  // Grows whenever a module appears or goes away; from 1.
  std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

  // The program unmapped or replaced [begin, end), or changed its rights: what is known of it is
  // looked up again when asked for. To be called before another file can come to lie there.
  void OnUnmap(std::uint64_t begin, std::uint64_t end);

  // Looks at the maps now.
  void Refresh();

  // Those mapped when last looked at, lowest first.
  std::vector<const Module*> Loaded();

  // Those that were mapped before and are not any more.
  std::vector<const Module*> Gone();

  // As given in the options.
  const MemoryReader& memory() const { return options_.memory; }

 private:
  struct Entry {
    std::unique_ptr<const Module> module;
    std::uint32_t end_generation;  // the first one without it since it was there last
  };

  bool HasMemoryAt(std::uint64_t address) const;

  // All with the lock held.
  const Mapping* KnownMapping(std::uint64_t address) const;
  const Module* FindLoaded(std::uint64_t address) const;
  Entry* FindGone(const Module& module);
  void RefreshLocked();

  template <typename Answer>
  auto WithKnowledgeOf(std::uint64_t address, Answer answer);

  ModulesOptions options_;
  const bool reads_own_memory_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Mapping> mappings_;      // by begin
  std::map<std::uint64_t, const Module*> loaded_;  // by begin
  std::vector<Entry> entries_;                     // by index
  std::atomic<std::uint32_t> generation_ = 1;      // changes with the lock held
};

// The ELF note NT_GNU_BUILD_ID of the file `path` in hexadecimal; empty if there is none.
std::string BuildIdOfFile(const std::string& path);

}  // namespace trapline
