// The C and C++ runtimes inside a statically linked program: which of its code is theirs, and where
// the calls that matter can be recognised.
//
// In a dynamically linked program the runtimes are modules of their own and a preload library
// reports what the program asks of them. A statically linked program has neither; what is known
// here comes from its symbol table and its debug info.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hypervisor/runtime_functions.h"

namespace trapline {

// Whose code an address is.
enum class CodeOwner : std::uint8_t {
  kProgram,
  kLibrary,     // the C library and the compiler's support library
  kCxxLibrary,  // the C++ library: it calls the C library in the program's name
};

// Where a call of a known function is recognised: at its first instruction that touches memory. At
// that point the arguments are still in their registers.
struct RuntimeEntry {
  const RuntimeFunction* function = nullptr;
  std::uint64_t depth = 0;  // bytes between rsp there and the return address
};

// Never changes once read; safe from any thread. Addresses are the process's.
class StaticRuntime {
 public:
  // Of the program in file `fd`, loaded at `bias`. Null: it is no x86-64 program, asks for a
  // dynamic loader, or has no symbol table. Not for a program that already runs: reads the file and
  // the system's shared libraries. `fd` stays the caller's.
  static std::unique_ptr<const StaticRuntime> Read(int fd, std::uint64_t bias);

  CodeOwner OwnerOf(std::uint64_t address) const;
  bool IsRuntime(std::uint64_t address) const { return OwnerOf(address) != CodeOwner::kProgram; }

  // Null: no call is recognised at `address`.
  const RuntimeEntry* EntryAt(std::uint64_t address) const;

  struct Range {
    std::uint64_t begin = 0, end = 0;
    CodeOwner owner = CodeOwner::kProgram;
  };
  // All of the program's functions, lowest first; neighbours of one owner are one range.
  const std::vector<Range>& ranges() const { return ranges_; }

  // Whole pages of runtime code that may run without being watched: no call that must be seen
  // begins or ends there when it is made by the runtime itself. Lowest first.
  const std::vector<Range>& unwatched_pages() const { return unwatched_pages_; }

  // The C library is musl, whose objects are not laid out as glibc's are.
  bool is_musl() const { return is_musl_; }

  // Known functions that are there, but whose calls cannot be recognised.
  const std::vector<std::string>& unrecognised() const { return unrecognised_; }

 private:
  std::vector<Range> ranges_;
  std::unordered_map<std::uint64_t, RuntimeEntry> entries_;
  std::vector<Range> unwatched_pages_;
  std::vector<std::string> unrecognised_;
  bool is_musl_ = false;
};

// The general registers (bit i: the register encoded as i) that `instruction` may change, implicit
// ones included; calls and system calls are not looked into.
std::uint32_t ChangedRegisters(const struct Instruction& instruction);

}  // namespace trapline
