// Call stacks from registers and memory, by the call frame information of the program's files
// (.eh_frame, .debug_frame; DWARF 5 section 6.4), with frame pointers where there is none.
//
// The rule for each pc is worked out once (libdw, microseconds) and kept in 8 bytes, so that a
// frame seen before costs a table lookup and one read of memory. bench/symbols measures it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "symbols/memory_reader.h"
#include "symbols/modules.h"

namespace trapline {

// The general registers of x86-64, in the order of their DWARF numbers (psABI figure 3.36); rip
// stands where DWARF has the return address.
struct UnwindRegisters {
  std::uint64_t rax = 0, rdx = 0, rcx = 0, rbx = 0, rsi = 0, rdi = 0, rbp = 0, rsp = 0;
  std::uint64_t r8 = 0, r9 = 0, r10 = 0, r11 = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0;
  std::uint64_t rip = 0;
};

// One frame of a stack that is looked at while it is live.
struct StackFrame {
  std::uint64_t pc = 0;   // the instruction, or the return address if `is_return_address`
  std::uint64_t cfa = 0;  // canonical frame address: rsp before the call; 0: not known
  std::uint64_t rbp = 0;  // in this frame
  std::uint64_t rsp = 0;
  bool is_return_address = false;

  // An address inside the instruction the frame is at: what to look up.
  std::uint64_t lookup_pc() const { return is_return_address ? pc - 1 : pc; }
};

// Thread-safe: any number of threads may unwind at once, and only a pc seen for the first time
// takes a lock.
class Unwinder {
 public:
  // `modules` must outlive this object.
  explicit Unwinder(Modules& modules);
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;
  ~Unwinder();

  // The stack that `registers` stand on, innermost frame first, at most pcs.size() frames. pcs[0]
  // is registers.rip itself, all others are return addresses: the call lies before them. (A frame
  // that was interrupted by a signal has its pc + 1, so that this holds for it too.) Returns the
  // number of frames: at least one unless pcs is empty. Reads nothing but through `memory`; ends
  // where it cannot go on.
  std::size_t Unwind(const UnwindRegisters& registers, const MemoryReader& memory,
                     std::span<std::uint64_t> pcs);

  // The same with what is needed to find variables in the frames.
  std::size_t UnwindFrames(const UnwindRegisters& registers, const MemoryReader& memory,
                           std::span<StackFrame> frames);

  // The code in [begin, end) was unmapped or replaced. Calls Modules::OnUnmap too.
  void OnUnmap(std::uint64_t begin, std::uint64_t end);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace trapline
