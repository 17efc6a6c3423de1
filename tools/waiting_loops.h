// Loops that do nothing but wait until another thread changes what they load: synchronisation that
// a program without debug info gives away by its form alone (Jannesari and Tichy, "Identifying
// Ad-hoc Synchronization for Enhanced Race Detection", IPDPS 2010).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "symbols/imports.h"
#include "translator/instruction.h"

namespace trapline {

// Where code and names come from. Addresses are the program's.
struct CodeSource {
  // Copies `size` bytes, or as many as there are; returns how many, 0 if it is not known.
  std::function<std::size_t(std::uint64_t address, void* out, std::size_t size)> read;
  // The name of the function that begins at `address`; empty: it is not known.
  std::function<std::string(std::uint64_t address)> function_at;
  // What the dynamic linker stores at `slot`.
  std::function<StoredAddress(std::uint64_t slot)> import_at;
  // Another number whenever code has come or gone.
  std::function<std::uint32_t()> generation;
};

// Thread-safe.
class WaitingLoops {
 public:
  explicit WaitingLoops(CodeSource source) : source_(std::move(source)) {}

  // Whether the load at `ip` is repeated, from where it is on, by a loop
  // - that it can end: a branch soon behind it depends on what it loads;
  // - all of whose loads are from addresses that do not change in it;
  // - that stores nothing but what lies on its thread's stack, and calls nothing but functions that
  //   let time pass, tell it or yield the processor, or the kernel's futexes.
  // The loop may have other ways back that do more, taken now and then: to sleep after a while.
  // Loops that a compiler did not optimise mostly store, and are not found.
  bool Repeat(std::uint64_t ip);
  // False: they do not repeat it, by the little code, some 64 bytes, that begins with it. Much
  // cheaper.
  static bool MayRepeat(std::uint64_t ip, std::span<const unsigned char> code);

 private:
  friend class WaitingLoop;

  // Code that was read before: to read is a system call. With the rest of an instruction that
  // begins in it.
  static constexpr std::uint64_t kBlock = 1024;
  struct Block {
    std::uint64_t address = 1;
    std::size_t size = 0;
    std::array<unsigned char, kBlock + kMaximumInstructionLength - 1> bytes{};
  };

  std::optional<Instruction> InstructionAt(std::uint64_t ip);
  // The code of the instruction that was just read there, and what follows it.
  std::span<const unsigned char> CodeAt(std::uint64_t ip) const;

  const CodeSource source_;
  std::mutex mutex_;
  std::uint32_t generation_ = 0;
  std::array<Block, 16> blocks_;  // by address
};

}  // namespace trapline
