// Tiny ELF files made byte by byte, whole and broken.
#ifndef TRAPLINE_TESTS_ELF_ELF_FILE_H_
#define TRAPLINE_TESTS_ELF_ELF_FILE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hypervisor/elf/elf_image.h"

namespace trapline::testing {

// A program of two segments that exits with kTinyExitStatus if its code, data and bss are where the
// headers say. Headers: PT_LOAD (code), PT_LOAD (data and bss), PT_GNU_STACK, and PT_INTERP if
// there is an interpreter.
struct TinyElf {
  Elf64_Ehdr header;
  std::vector<Elf64_Phdr> program_headers;
  std::string interpreter;  // without NUL; empty: none
  std::vector<uint8_t> Bytes() const;
  size_t HeaderBytes() const {
    return sizeof(header) + program_headers.size() * sizeof(Elf64_Phdr);
  }
};
inline constexpr int kTinyExitStatus = 42;

// `type` is ET_EXEC or ET_DYN.
TinyElf MakeTinyElf(uint16_t type, const std::string& interpreter = "");

// Broken variants of a file: every header field set to each of a list of telling values, every
// header byte changed in several ways, and the file cut off at every offset within the headers and
// at some beyond.
struct BrokenElf {
  std::string what;
  std::vector<uint8_t> bytes;
};
std::vector<BrokenElf> FieldMutations(const TinyElf& elf);
std::vector<BrokenElf> ByteMutations(const TinyElf& elf);
std::vector<BrokenElf> Truncations(const TinyElf& elf);

// A descriptor, open for reading only, of an unnamed executable file with these contents; -1 and
// errno on failure.
int OpenBytes(const std::vector<uint8_t>& bytes);

// What a caller relies on in an accepted image; empty if all is well, otherwise what is wrong.
std::string ImageDefect(const ElfImage& image);

}  // namespace trapline::testing

#endif  // TRAPLINE_TESTS_ELF_ELF_FILE_H_
