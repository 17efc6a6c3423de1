#include "hypervisor/string_instructions.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hypervisor/guest_copy.h"

namespace trapline {

bool CarryOutRepeats(const Instruction& instruction, std::uint64_t flags, kvm_regs& registers) {
  constexpr unsigned kDirectionFlag = 0x400;
  if (instruction.repeat != Repeat::kRep || instruction.address_size_prefix ||
      instruction.segment != Segment::kNone || instruction.operand_count == 0) {
    return false;
  }
  const bool stores = instruction.opcode == 0xaa || instruction.opcode == 0xab;
  const bool copies = instruction.opcode == 0xa4 || instruction.opcode == 0xa5;
  if (!stores && !copies) return false;
  const std::uint64_t element = instruction.operands[0].size;
  const std::uint64_t count = registers.rcx;
  constexpr std::uint64_t kMost = 1 << 20;  // bytes; a longer one is done in rounds
  if ((flags & kDirectionFlag) != 0 || count == 0) return false;
  const std::uint64_t elements = std::min(count, kMost / element);
  const std::uint64_t bytes = elements * element;
  // An overlapping copy forwards repeats what it has just written.
  if (copies && registers.rdi > registers.rsi && registers.rdi < registers.rsi + bytes)
    return false;
  std::vector<unsigned char> buffer(bytes);
  if (stores) {
    for (std::uint64_t at = 0; at < bytes; at += element)
      std::memcpy(buffer.data() + at, &registers.rax, element);
  } else if (!ReadGuest(registers.rsi, buffer.data(), bytes)) {
    return false;
  }
  if (!WriteGuest(registers.rdi, buffer.data(), bytes)) return false;
  registers.rdi += bytes;
  if (copies) registers.rsi += bytes;
  registers.rcx -= elements;
  return true;
}

}  // namespace trapline
