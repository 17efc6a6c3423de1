#include "hypervisor/elf/elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <span>
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

struct ElfCloser {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using UniqueElf = std::unique_ptr<Elf, ElfCloser>;

Unexpected<ElfError> Refused(int error_number, std::string message) {
  return Unexpected{ElfError{ElfError::Outcome::kRefused, error_number, std::move(message)}};
}

Unexpected<ElfError> LostImage(int error_number, std::string message) {
  return Unexpected{ElfError{ElfError::Outcome::kLostImage, error_number, std::move(message)}};
}

// A libelf handle owns what it returned, so the headers are used while the reader lives.
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
    [[maybe_unused]] static const unsigned version = elf_version(EV_CURRENT);
    struct stat status;
    if (fstat(fd_, &status) != 0) {
      return Refused(errno, fmt::format("cannot be examined: {}", std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) return Refused(EACCES, "not a regular file");
    file_size_ = static_cast<uint64_t>(status.st_size);
    if (role_ == ElfRole::kInterpreter && file_size_ < sizeof(Elf64_Ehdr)) {
      return Refused(EIO, "shorter than an ELF header");
    }
    elf_.reset(elf_begin(fd_, ELF_C_READ, nullptr));
    if (elf_ == nullptr) {
      return Refused(malformed_, fmt::format("not readable as ELF: {}", elf_errmsg(-1)));
    }
    if (elf_kind(elf_.get()) != ELF_K_ELF) return Refused(malformed_, "not an ELF file");
    return std::nullopt;
  }

  Failure ReadHeader() {
    if (gelf_getclass(elf_.get()) != ELFCLASS64) {
      return Refused(malformed_, "not a 64-bit ELF file; only x86-64 programs can be run");
    }
    if (gelf_getehdr(elf_.get(), &header_) == nullptr) {
      return Refused(malformed_, fmt::format("unreadable ELF header: {}", elf_errmsg(-1)));
    }
    if (header_.e_ident[EI_DATA] != ELFDATA2LSB || header_.e_machine != EM_X86_64) {
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

  // Bytes [offset, offset + size) of the file, converted from `type`; null if they are not all in
  // the file.
  const void* Chunk(uint64_t offset, size_t size, Elf_Type type) {
    if (size > file_size_ || offset > file_size_ - size) return nullptr;
    Elf_Data* data = elf_getdata_rawchunk(elf_.get(), static_cast<int64_t>(offset), size, type);
    return data != nullptr && data->d_size == size ? data->d_buf : nullptr;
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
    const void* table = Chunk(header_.e_phoff, size, ELF_T_PHDR);
    if (table == nullptr) {
      return Refused(malformed_, fmt::format("program headers at offset {:#x} are not in the file "
                                             "(size {:#x}); is it truncated?",
                                             header_.e_phoff, file_size_));
    }
    program_headers_ = std::span(static_cast<const Elf64_Phdr*>(table), header_.e_phnum);
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
    const auto* name = static_cast<const char*>(Chunk(found->p_offset, size, ELF_T_BYTE));
    if (name == nullptr) {
      return Refused(EIO, fmt::format("interpreter name at offset {:#x} is not in the file (size "
                                      "{:#x}); is it truncated?",
                                      found->p_offset, file_size_));
    }
    if (name[size - 1] != '\0') return Refused(ENOEXEC, "interpreter name without end");
    image_.interpreter.emplace(name);
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
  UniqueElf elf_;
  GElf_Ehdr header_ = {};
  std::span<const Elf64_Phdr> program_headers_;
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
