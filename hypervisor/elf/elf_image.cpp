#include "hypervisor/elf/elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

namespace trapline {
namespace {

// Linux reads at most this much of program headers.
constexpr size_t kMaxProgramHeaderBytes = 65536;

constexpr uint64_t PageStart(uint64_t address) { return address & ~(kElfPageSize - 1); }
constexpr uint64_t PageOffset(uint64_t address) { return address & (kElfPageSize - 1); }
// Valid for address <= 2^64 - page.
constexpr uint64_t PageAlign(uint64_t address) { return PageStart(address + kElfPageSize - 1); }

Unexpected<ElfError> Refused(int error_number, std::string message) {
  return Unexpected{ElfError{ElfError::Outcome::kRefused, error_number, std::move(message)}};
}

Unexpected<ElfError> LostImage(int error_number, std::string message) {
  return Unexpected{ElfError{ElfError::Outcome::kLostImage, error_number, std::move(message)}};
}

class ElfReader {
 public:
  ElfReader(int fd, ElfRole role)
      : fd_(fd), role_(role), malformed_(role == ElfRole::kProgram ? ENOEXEC : ELIBBAD) {}

  Expected<ElfImage, ElfError> Read() {
    if (auto error = Open()) return std::move(*error);
    if (auto error = ReadHeader()) return std::move(*error);
    if (auto error = ReadProgramHeaders()) return std::move(*error);
    if (auto error = ReadInterpreter()) return std::move(*error);
    // From here on Linux has discarded the program that called execve.
    if (auto error = ReadSegments()) return std::move(*error);
    if (auto error = CheckEntry()) return std::move(*error);
    return std::move(image_);
  }

 private:
  using Failure = std::optional<Unexpected<ElfError>>;

  Failure Open() {
    struct stat status;
    if (fstat(fd_, &status) != 0) {
      return Refused(errno, fmt::format("cannot be examined: {}", std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) return Refused(EACCES, "not a regular file");
    file_size_ = static_cast<uint64_t>(status.st_size);
    return std::nullopt;
  }

  // Reads bytes [offset, offset + size) of the file; false if they are not all there.
  bool ReadAt(uint64_t offset, void* buffer, size_t size) const {
    auto* bytes = static_cast<char*>(buffer);
    while (size > 0) {
      if (offset > INT64_MAX - size) return false;
      const ssize_t got = pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      bytes += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<size_t>(got);
    }
    return true;
  }

  // Reads `count` file structures of `type` and converts them to this machine's form. The class,
  // byte order and version that the file claims play no part, as for Linux: only the machine
  // counts.
  bool ReadStructures(uint64_t offset, Elf_Type type, void* structures, size_t size) const {
    [[maybe_unused]] static const unsigned version = elf_version(EV_CURRENT);
    std::vector<char> raw(size);
    if (!ReadAt(offset, raw.data(), size)) return false;
    Elf_Data source = {};
    source.d_buf = raw.data();
    source.d_type = type;
    source.d_version = EV_CURRENT;
    source.d_size = size;
    Elf_Data target = source;
    target.d_buf = structures;
    return elf64_xlatetom(&target, &source, ELFDATA2LSB) != nullptr;
  }

  Failure ReadHeader() {
    if (!ReadStructures(0, ELF_T_EHDR, &header_, sizeof(header_))) {
      // The program headers cannot be in the file either, so Linux finds no ELF file at all.
      return role_ == ElfRole::kProgram ? Refused(ENOEXEC, "not an ELF file")
                                        : Refused(EIO, "shorter than an ELF header");
    }
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      return Refused(malformed_, "not an ELF file");
    }
    if (header_.e_machine != EM_X86_64) {
      return Refused(malformed_, fmt::format("made for another processor (ELF machine {}); only "
                                             "x86-64 programs can be run",
                                             header_.e_machine));
    }
    if (header_.e_type != ET_EXEC && header_.e_type != ET_DYN) {
      std::string message =
          fmt::format("neither a program nor a shared object (ELF type {})", header_.e_type);
      // Linux looks at an interpreter's type only when it maps it.
      return role_ == ElfRole::kProgram ? Refused(ENOEXEC, std::move(message))
                                        : LostImage(EPERM, std::move(message));
    }
    image_.kind = header_.e_type == ET_EXEC ? ElfImage::Kind::kFixed : ElfImage::Kind::kPie;
    image_.entry = header_.e_entry;
    image_.program_header_count = header_.e_phnum;
    image_.program_header_size = header_.e_phentsize;
    return std::nullopt;
  }

  Failure ReadProgramHeaders() {
    if (header_.e_phentsize != sizeof(Elf64_Phdr)) {
      return Refused(malformed_, fmt::format("program headers of {} bytes, not of {}",
                                             header_.e_phentsize, sizeof(Elf64_Phdr)));
    }
    const size_t size = header_.e_phnum * sizeof(Elf64_Phdr);
    if (size == 0) return Refused(malformed_, "no program headers");
    if (size > kMaxProgramHeaderBytes) {
      return Refused(malformed_,
                     fmt::format("{} program headers, more than the {} Linux takes",
                                 header_.e_phnum, kMaxProgramHeaderBytes / sizeof(Elf64_Phdr)));
    }
    program_headers_.resize(header_.e_phnum);
    if (!ReadStructures(header_.e_phoff, ELF_T_PHDR, program_headers_.data(), size)) {
      return Refused(malformed_, fmt::format("program headers at offset {:#x} are not in the file "
                                             "(size {:#x}); is it truncated?",
                                             header_.e_phoff, file_size_));
    }
    return std::nullopt;
  }

  Failure ReadInterpreter() {
    if (role_ == ElfRole::kInterpreter) return std::nullopt;
    const auto found = std::ranges::find(program_headers_, PT_INTERP, &Elf64_Phdr::p_type);
    if (found == program_headers_.end()) return std::nullopt;
    const uint64_t size = found->p_filesz;
    if (size > PATH_MAX || size < 2) {
      return Refused(ENOEXEC, fmt::format("interpreter name of {} bytes", size));
    }
    if (found->p_offset > INT64_MAX - size) {
      return Refused(EINVAL, fmt::format("interpreter name at offset {:#x}", found->p_offset));
    }
    std::string name(size, '\0');
    if (!ReadAt(found->p_offset, name.data(), size)) {
      return Refused(EIO, fmt::format("interpreter name at offset {:#x} is not in the file (size "
                                      "{:#x}); is it truncated?",
                                      found->p_offset, file_size_));
    }
    if (name.back() != '\0') return Refused(ENOEXEC, "interpreter name without end");
    image_.interpreter.emplace(name.c_str());
    return std::nullopt;
  }

  Failure ReadSegments() {
    uint64_t alignment = 0;
    for (const Elf64_Phdr& header : program_headers_) {
      if (header.p_type == PT_GNU_STACK) image_.executable_stack = (header.p_flags & PF_X) != 0;
      if (header.p_type != PT_LOAD) continue;
      if (auto error = CheckSegment(header)) return error;
      if (std::has_single_bit(header.p_align)) alignment = std::max(alignment, header.p_align);
      // The sum cannot overflow: the file's end was checked with the offset in mind.
      if (header.p_offset <= header_.e_phoff &&
          header_.e_phoff - header.p_offset < header.p_filesz) {
        image_.program_headers_address = header_.e_phoff - header.p_offset + header.p_vaddr;
      }
      image_.segments.push_back({.address = header.p_vaddr,
                                 .file_offset = header.p_offset,
                                 .file_size = header.p_filesz,
                                 .memory_size = header.p_memsz,
                                 .readable = (header.p_flags & PF_R) != 0,
                                 .writable = (header.p_flags & PF_W) != 0,
                                 .executable = (header.p_flags & PF_X) != 0});
    }
    image_.alignment = std::max(alignment, kElfPageSize);
    if (image_.segments.empty()) return CheckEmptyImage();
    image_.low = UINT64_MAX;
    for (const ElfSegment& segment : image_.segments) {
      image_.low = std::min(image_.low, PageStart(segment.address));
      image_.high = std::max(image_.high, segment.End());
    }
    return std::nullopt;
  }

  Failure CheckSegment(const Elf64_Phdr& header) const {
    const uint64_t address = header.p_vaddr;
    const auto describe = [&](std::string_view what) {
      return fmt::format("segment at {:#x} (offset {:#x}, {:#x} bytes of file, {:#x} of memory) {}",
                         address, header.p_offset, header.p_filesz, header.p_memsz, what);
    };
    if (address >= kElfUserLimit || header.p_memsz > kElfUserLimit ||
        kElfUserLimit - header.p_memsz < address) {
      return LostImage(EINVAL, describe("does not fit into the user address space"));
    }
    if (header.p_filesz > header.p_memsz) {
      return LostImage(EINVAL, describe("has more bytes in the file than in memory"));
    }
    if (header.p_filesz == 0) return std::nullopt;
    if (PageOffset(header.p_offset) != PageOffset(address)) {
      return LostImage(EINVAL, describe("is not aligned to the file's pages"));
    }
    if (header.p_offset > INT64_MAX - (header.p_filesz + 2 * kElfPageSize)) {
      return LostImage(EINVAL, describe("lies beyond any file's end"));
    }
    // Linux zeroes the rest of the last page at once, and that page must exist.
    const uint64_t file_end = header.p_offset + header.p_filesz;
    const bool padded = header.p_memsz > header.p_filesz && PageOffset(file_end) != 0;
    if (padded && (header.p_flags & PF_W) != 0 && PageStart(file_end) >= file_size_) {
      return LostImage(EFAULT, describe("ends beyond the file's end; is the file truncated?"));
    }
    return std::nullopt;
  }

  Failure CheckEmptyImage() const {
    // Linux starts a program without segments, which dies at its first instruction; it needs no
    // address for one.
    if (role_ == ElfRole::kProgram) return std::nullopt;
    return LostImage(EINVAL, "no loadable segment");
  }

  Failure CheckEntry() const {
    // With an interpreter the entry is only a number in the auxiliary vector.
    if (image_.interpreter.has_value() || image_.entry < kElfUserLimit) return std::nullopt;
    return LostImage(EINVAL, fmt::format("entry point {:#x} is no user address", image_.entry));
  }

  const int fd_;
  const ElfRole role_;
  const int malformed_;  // errno for a file that is not what it should be
  uint64_t file_size_ = 0;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Phdr> program_headers_;
  ElfImage image_ = {};
};

}  // namespace

uint64_t ElfSegment::FileStart() const { return PageStart(address); }
uint64_t ElfSegment::FileEnd() const {
  return file_size == 0 ? FileStart() : PageAlign(address + file_size);
}
uint64_t ElfSegment::FileOffset() const { return file_offset - PageOffset(address); }
uint64_t ElfSegment::End() const {
  return memory_size > file_size ? std::max(PageAlign(address + memory_size), FileEnd())
                                 : FileEnd();
}
uint64_t ElfSegment::PaddingStart() const {
  return memory_size > file_size && file_size != 0 ? address + file_size : FileEnd();
}

Expected<ElfImage, ElfError> ReadElfImage(int fd, ElfRole role) {
  return ElfReader(fd, role).Read();
}

int CheckExecutable(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EACCES;
  struct statvfs file_system;
  if (fstatvfs(fd, &file_system) != 0) return errno;
  if ((file_system.f_flag & ST_NOEXEC) != 0) return EACCES;
  return faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0 ? 0 : errno;
}

}  // namespace trapline
