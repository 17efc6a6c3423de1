// Reads an executable's headers the way execve(2) does, trusting none of them.
//
// What Linux accepts is accepted, what it refuses is refused with the same errno (facts: the
// behaviour of Linux 6.x on x86-64, checked against the running kernel by tests/elf). Only libelf's
// conversions are used and not its file handles: those refuse files for their class, byte order or
// section headers, which execve(2) does not look at.
#ifndef TRAPLINE_HYPERVISOR_ELF_ELF_IMAGE_H_
#define TRAPLINE_HYPERVISOR_ELF_ELF_IMAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hypervisor/expected.h"

namespace trapline {

inline constexpr uint64_t kElfPageSize = 4096;
// First address a 64-bit program cannot use (four-level paging): segments end at or below it.
inline constexpr uint64_t kElfUserLimit = 0x7ffffffff000;

// Why a file cannot be loaded.
struct ElfError {
  // What native execve(2) makes of the file.
  enum class Outcome : uint8_t {
    kRefused,   // execve returns -1 with `error_number`; the calling program lives on
    kLostImage  // execve has already discarded the old program when it finds out: death by SIGSEGV
  };
  Outcome outcome;
  // A positive errno: ENOEXEC, EACCES, EIO, EINVAL, ELIBBAD, EFAULT or EPERM.
  int error_number;
  // What is wrong with the file, for the user; without the file's name.
  std::string message;
};

// One PT_LOAD header; addresses before the load bias is added. All sums below were checked not to
// overflow.
struct ElfSegment {
  // p_vaddr: the bytes [address, address + memory_size) belong to the segment.
  uint64_t address;
  // Congruent to `address` modulo the page size if file_size != 0.
  uint64_t file_offset;
  // <= memory_size. May reach beyond the file's end: such pages raise SIGBUS when touched.
  uint64_t file_size;
  uint64_t memory_size;
  bool readable;
  bool writable;
  bool executable;

  // The pages that come from the file: [FileStart, FileEnd), mapped MAP_PRIVATE with the segment's
  // protection from FileOffset. Empty if file_size is 0.
  uint64_t FileStart() const;
  uint64_t FileEnd() const;
  uint64_t FileOffset() const;
  // Pages of zeros after them, up to End(): always readable and writable whatever the segment says,
  // and executable if the segment is. Only if memory_size > file_size; otherwise empty.
  uint64_t ZeroStart() const { return FileEnd(); }
  uint64_t End() const;
  // Bytes to be zeroed at the end of the last page from the file: [PaddingStart, FileEnd). Empty
  // unless memory_size > file_size. In a segment that is not writable Linux leaves them as they are
  // in the file.
  uint64_t PaddingStart() const;
};

// An executable or an ELF interpreter whose headers passed every check.
struct ElfImage {
  enum class Kind : uint8_t {
    kFixed,  // ET_EXEC: the addresses are final
    kPie     // ET_DYN: a bias of the loader's choice is added to every address
  };
  Kind kind = Kind::kFixed;
  // Before the bias. May lie outside every segment (death by SIGSEGV at the first instruction).
  uint64_t entry = 0;
  // AT_PHDR before the bias: where the header table lies in memory; 0 if no segment contains it.
  uint64_t program_headers_address = 0;
  uint16_t program_header_count = 0;  // AT_PHNUM
  uint16_t program_header_size = 0;   // AT_PHENT: 56
  // In header order, possibly unsorted and overlapping: mapped in this order with MAP_FIXED, a
  // later one replaces an earlier one as under Linux. May be empty in a program (which dies by
  // SIGSEGV at its first instruction).
  std::vector<ElfSegment> segments;
  // PT_INTERP up to its first NUL; so it may be empty, which execve takes for
  // the working directory: EACCES.
  std::optional<std::string> interpreter;
  // Page-rounded span of all segments: [low, high); both 0 without segments.
  uint64_t low = 0;
  uint64_t high = 0;
  // The largest p_align that is a power of two, at least a page; may be absurdly large.
  uint64_t alignment = 0;
  // PT_GNU_STACK asks for it; without such a header the stack is not executable.
  bool executable_stack = false;

  uint64_t Span() const { return high - low; }
};

// In which part a file is loaded: decides the errno of refusals.
enum class ElfRole : uint8_t {
  kProgram,     // named in execve
  kInterpreter  // named in PT_INTERP (its own PT_INTERP is ignored)
};

// Reads the headers of the regular file open for reading on `fd`. The descriptor stays the
// caller's; its file offset is neither used nor relied on. Reads only the headers (at most ~70
// KiB), never maps: a file that shrinks meanwhile is an error and not a SIGBUS. Thread-safe. Does
// not check permissions: see CheckExecutable.
Expected<ElfImage, ElfError> ReadElfImage(int fd, ElfRole role = ElfRole::kProgram);

// The checks execve(2) makes on the file itself before looking into it: a regular file, on a file
// system not mounted noexec, that the process (effective ids) may execute. Returns 0 or EACCES or
// an errno of fstat. `fd` may be O_PATH.
int CheckExecutable(int fd);

}  // namespace trapline

#endif  // TRAPLINE_HYPERVISOR_ELF_ELF_IMAGE_H_
