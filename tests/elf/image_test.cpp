#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>

#include "hypervisor/elf/elf_image.h"
#include "tests/elf/elf_file.h"

namespace trapline {
namespace {

using testing::ImageDefect;
using testing::MakeTinyElf;
using testing::OpenBytes;
using testing::TinyElf;
using Result = Expected<ElfImage, ElfError>;

Result ReadBytes(const std::vector<uint8_t>& bytes, ElfRole role = ElfRole::kProgram) {
  const int fd = OpenBytes(bytes);
  EXPECT_GE(fd, 0);
  Result result = ReadElfImage(fd, role);
  close(fd);
  return result;
}

Result ReadPath(const char* path, ElfRole role = ElfRole::kProgram) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  EXPECT_GE(fd, 0) << path;
  Result result = ReadElfImage(fd, role);
  close(fd);
  return result;
}

// The tiny program after `change`.
Result ReadChanged(const std::function<void(TinyElf&)>& change, uint16_t type = ET_EXEC,
                   ElfRole role = ElfRole::kProgram) {
  TinyElf elf = MakeTinyElf(type);
  change(elf);
  return ReadBytes(elf.Bytes(), role);
}

#define EXPECT_REFUSED(result, number)                                                        \
  do {                                                                                        \
    const Result refused_result = (result);                                                   \
    ASSERT_FALSE(refused_result);                                                             \
    EXPECT_EQ(refused_result.error().outcome, ElfError::Outcome::kRefused)                    \
        << refused_result.error().message;                                                    \
    EXPECT_EQ(refused_result.error().error_number, number) << refused_result.error().message; \
  } while (false)

#define EXPECT_LOST(result, number)                                                     \
  do {                                                                                  \
    const Result lost_result = (result);                                                \
    ASSERT_FALSE(lost_result);                                                          \
    EXPECT_EQ(lost_result.error().outcome, ElfError::Outcome::kLostImage)               \
        << lost_result.error().message;                                                 \
    EXPECT_EQ(lost_result.error().error_number, number) << lost_result.error().message; \
  } while (false)

TEST(ElfImage, DynamicPie) {
  const Result image = ReadPath("/bin/true");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(ImageDefect(*image), "");
  EXPECT_EQ(image->kind, ElfImage::Kind::kPie);
  EXPECT_EQ(image->low, 0U);
  EXPECT_EQ(image->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(image->program_headers_address, sizeof(Elf64_Ehdr));
  EXPECT_FALSE(image->executable_stack);
  ASSERT_GE(image->segments.size(), 2U);
}

TEST(ElfImage, Interpreter) {
  const Result image = ReadPath("/lib64/ld-linux-x86-64.so.2", ElfRole::kInterpreter);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(ImageDefect(*image), "");
  EXPECT_EQ(image->kind, ElfImage::Kind::kPie);
  EXPECT_FALSE(image->interpreter);
  EXPECT_NE(image->entry, 0U);
}

TEST(ElfImage, StaticFixed) {
  const Result image = ReadPath(SAMPLE_STATIC);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(ImageDefect(*image), "");
  EXPECT_EQ(image->kind, ElfImage::Kind::kFixed);
  EXPECT_EQ(image->low, 0x400000U);
  EXPECT_FALSE(image->interpreter);
  EXPECT_EQ(image->program_headers_address, 0x400000U + sizeof(Elf64_Ehdr));
  bool entry_is_code = false;
  for (const ElfSegment& segment : image->segments) {
    entry_is_code |= segment.executable && image->entry >= segment.address &&
                     image->entry < segment.address + segment.file_size;
  }
  EXPECT_TRUE(entry_is_code);
}

TEST(ElfImage, StaticPie) {
  const Result image = ReadPath(SAMPLE_STATIC_PIE);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(ImageDefect(*image), "");
  EXPECT_EQ(image->kind, ElfImage::Kind::kPie);
  EXPECT_FALSE(image->interpreter);
}

TEST(ElfImage, DynamicFixedWithExecutableStack) {
  const Result image = ReadPath(SAMPLE_FIXED);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->kind, ElfImage::Kind::kFixed);
  EXPECT_TRUE(image->interpreter);
  EXPECT_TRUE(image->executable_stack);
  // data, then 20,000 bytes of bss that are not in the file.
  const ElfSegment& data = image->segments.back();
  EXPECT_TRUE(data.writable);
  EXPECT_GE(data.memory_size, data.file_size + 20000);
  EXPECT_GE(data.End(), data.FileEnd() + 4 * kElfPageSize);
}

// The image read from this very program agrees with what the kernel told it about itself.
TEST(ElfImage, AgreesWithTheKernelAboutThisProgram) {
  const Result image = ReadPath("/proc/self/exe");
  ASSERT_TRUE(image) << image.error().message;
  const uint64_t bias = getauxval(AT_PHDR) - image->program_headers_address;
  EXPECT_EQ(bias % kElfPageSize, 0U);
  EXPECT_EQ(getauxval(AT_ENTRY), image->entry + bias);
  EXPECT_EQ(getauxval(AT_PHNUM), image->program_header_count);
  EXPECT_EQ(getauxval(AT_PHENT), image->program_header_size);
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  size_t loads = 0;
  for (unsigned i = 0; i < image->program_header_count; ++i) loads += headers[i].p_type == PT_LOAD;
  EXPECT_EQ(loads, image->segments.size());
}

TEST(ElfImage, TinySegments) {
  const Result image = ReadBytes(MakeTinyElf(ET_EXEC).Bytes());
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(ImageDefect(*image), "");
  EXPECT_EQ(image->entry, 0x400200U);
  EXPECT_EQ(image->low, 0x400000U);
  EXPECT_EQ(image->high, 0x405000U);
  EXPECT_EQ(image->program_headers_address, 0x400040U);
  ASSERT_EQ(image->segments.size(), 2U);
  const ElfSegment& data = image->segments[1];
  EXPECT_EQ(data.FileStart(), 0x402000U);
  EXPECT_EQ(data.FileOffset(), 0x1000U);
  EXPECT_EQ(data.PaddingStart(), 0x402080U);
  EXPECT_EQ(data.FileEnd(), 0x403000U);
  EXPECT_EQ(data.ZeroStart(), 0x403000U);
  EXPECT_EQ(data.End(), 0x405000U);
  EXPECT_TRUE(data.readable && data.writable && !data.executable);
}

TEST(ElfImage, SegmentWithoutFileBytesStartsAtItsPage) {
  const Result image = ReadChanged([](TinyElf& elf) {
    elf.program_headers[1].p_filesz = 0;
    elf.program_headers[1].p_vaddr += 0x234;
    elf.program_headers[1].p_memsz = 0x1000;
  });
  ASSERT_TRUE(image) << image.error().message;
  const ElfSegment& data = image->segments[1];
  EXPECT_EQ(data.FileStart(), data.FileEnd());
  EXPECT_EQ(data.ZeroStart(), 0x402000U);
  EXPECT_EQ(data.PaddingStart(), 0x402000U);
  EXPECT_EQ(data.End(), 0x404000U);
}

TEST(ElfImage, NotElf) {
  EXPECT_REFUSED(ReadBytes({}), ENOEXEC);
  EXPECT_REFUSED(ReadBytes({'#', '!', '\n'}), ENOEXEC);
  EXPECT_REFUSED(ReadBytes(std::vector<uint8_t>(8192, 0x7f)), ENOEXEC);
  EXPECT_REFUSED(ReadPath("/etc/passwd"), ENOEXEC);
  EXPECT_REFUSED(ReadPath("/"), EACCES);
  EXPECT_REFUSED(ReadPath("/dev/null"), EACCES);
  EXPECT_REFUSED(ReadElfImage(-1), EBADF);
}

TEST(ElfImage, WrongMachineOrType) {
  for (int machine : {EM_NONE, EM_386, EM_AARCH64, EM_RISCV}) {
    EXPECT_REFUSED(
        ReadChanged([=](TinyElf& elf) { elf.header.e_machine = static_cast<uint16_t>(machine); }),
        ENOEXEC);
  }
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_type = ET_REL; }), ENOEXEC);
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_type = ET_CORE; }), ENOEXEC);
}

// Linux goes by the machine alone.
TEST(ElfImage, ClassByteOrderAndVersionDoNotMatter) {
  for (size_t i : {size_t{EI_CLASS}, size_t{EI_DATA}, size_t{EI_VERSION}}) {
    for (const uint8_t value : std::initializer_list<uint8_t>{0, 1, 2, 255}) {
      EXPECT_TRUE(ReadChanged([=](TinyElf& elf) { elf.header.e_ident[i] = value; }));
    }
  }
}

TEST(ElfImage, BadInterpreterImage) {
  const auto wrong_machine = [](TinyElf& elf) { elf.header.e_machine = EM_386; };
  EXPECT_REFUSED(ReadChanged(wrong_machine, ET_DYN, ElfRole::kInterpreter), ELIBBAD);
  EXPECT_REFUSED(ReadBytes(std::vector<uint8_t>(100, 'x'), ElfRole::kInterpreter), ELIBBAD);
  EXPECT_REFUSED(ReadBytes(std::vector<uint8_t>(63, 'x'), ElfRole::kInterpreter), EIO);
  EXPECT_LOST(
      ReadChanged([](TinyElf& elf) { elf.header.e_type = ET_REL; }, ET_DYN, ElfRole::kInterpreter),
      EPERM);
  EXPECT_LOST(
      ReadChanged(
          [](TinyElf& elf) { elf.header.e_phnum = 1, elf.program_headers[0].p_type = PT_NULL; },
          ET_DYN, ElfRole::kInterpreter),
      EINVAL);
}

TEST(ElfImage, ProgramHeaderTable) {
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_phentsize = 32; }), ENOEXEC);
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_phnum = 0; }), ENOEXEC);
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_phnum = PN_XNUM; }), ENOEXEC);
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_phoff = 0x1000000; }), ENOEXEC);
  EXPECT_REFUSED(ReadChanged([](TinyElf& elf) { elf.header.e_phoff = UINT64_MAX; }), ENOEXEC);
  // The largest table Linux takes, and one entry more; the file is long enough for both.
  for (uint16_t count : {uint16_t{1170}, uint16_t{1171}}) {
    TinyElf elf = MakeTinyElf(ET_EXEC);
    elf.header.e_phnum = count;
    std::vector<uint8_t> bytes = elf.Bytes();
    bytes.resize(80000);
    // What the larger table takes in of the file are no valid headers: type 0 everywhere.
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(elf.HeaderBytes()), bytes.end(), uint8_t{0});
    if (count == 1170) {
      const Result image = ReadBytes(bytes);
      ASSERT_TRUE(image) << image.error().message;
      EXPECT_EQ(image->program_header_count, 1170);
    } else {
      EXPECT_REFUSED(ReadBytes(bytes), ENOEXEC);
    }
  }
}

TEST(ElfImage, SegmentRanges) {
  const auto change = [](auto member, uint64_t value) {
    return ReadChanged([=](TinyElf& elf) { elf.program_headers[1].*member = value; });
  };
  EXPECT_LOST(change(&Elf64_Phdr::p_filesz, 0x2801), EINVAL);  // more than memsz
  EXPECT_LOST(change(&Elf64_Phdr::p_memsz, UINT64_MAX), EINVAL);
  EXPECT_LOST(change(&Elf64_Phdr::p_memsz, kElfUserLimit), EINVAL);
  EXPECT_LOST(change(&Elf64_Phdr::p_vaddr, kElfUserLimit), EINVAL);
  EXPECT_LOST(change(&Elf64_Phdr::p_vaddr, UINT64_MAX - 0xfff), EINVAL);
  EXPECT_LOST(change(&Elf64_Phdr::p_vaddr, kElfUserLimit - 0x2000), EINVAL);
  EXPECT_LOST(change(&Elf64_Phdr::p_offset, 0x1001), EINVAL);  // not congruent
  EXPECT_LOST(change(&Elf64_Phdr::p_offset, 0x2000), EFAULT);  // padding not in the file
  EXPECT_LOST(change(&Elf64_Phdr::p_offset, 0x7ffffffffffff000), EINVAL);  // beyond any file
  EXPECT_TRUE(change(&Elf64_Phdr::p_vaddr, kElfUserLimit - 0x3000));
  EXPECT_TRUE(change(&Elf64_Phdr::p_memsz, kElfUserLimit - 0x402000));
}

TEST(ElfImage, SegmentBeyondTheFileIsAllowedUnlessItMustBePadded) {
  const Result image = ReadChanged([](TinyElf& elf) {
    elf.program_headers[1].p_offset = 0x10000;
    elf.program_headers[1].p_filesz = elf.program_headers[1].p_memsz;
  });
  EXPECT_TRUE(image);
}

TEST(ElfImage, UnsortedAndOverlappingSegmentsKeepTheirOrder) {
  const Result unsorted =
      ReadChanged([](TinyElf& elf) { std::swap(elf.program_headers[0], elf.program_headers[1]); });
  ASSERT_TRUE(unsorted) << unsorted.error().message;
  EXPECT_EQ(unsorted->segments[0].address, 0x402000U);
  EXPECT_EQ(unsorted->low, 0x400000U);
  EXPECT_EQ(ImageDefect(*unsorted), "");
  const Result overlapping =
      ReadChanged([](TinyElf& elf) { elf.program_headers[1].p_vaddr = 0x400000; });
  ASSERT_TRUE(overlapping) << overlapping.error().message;
  EXPECT_EQ(overlapping->high, 0x403000U);
}

TEST(ElfImage, NoSegments) {
  const Result image = ReadChanged([](TinyElf& elf) {
    elf.program_headers[0].p_type = elf.program_headers[1].p_type = PT_NOTE;
  });
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(image->segments.empty());
  EXPECT_EQ(image->low, image->high);
  EXPECT_EQ(image->program_headers_address, 0U);
}

TEST(ElfImage, Entry) {
  EXPECT_LOST(ReadChanged([](TinyElf& elf) { elf.header.e_entry = kElfUserLimit; }), EINVAL);
  EXPECT_LOST(ReadChanged([](TinyElf& elf) { elf.header.e_entry = UINT64_MAX; }), EINVAL);
  EXPECT_TRUE(ReadChanged([](TinyElf& elf) { elf.header.e_entry = 0; }));
  TinyElf elf = MakeTinyElf(ET_EXEC, "/lib/ld.so");
  elf.header.e_entry = UINT64_MAX;
  EXPECT_TRUE(ReadBytes(elf.Bytes()));
}

TEST(ElfImage, InterpreterName) {
  EXPECT_EQ(ReadBytes(MakeTinyElf(ET_DYN, "/a").Bytes())->interpreter, "/a");
  const auto change = [](auto member, uint64_t value) {
    TinyElf elf = MakeTinyElf(ET_DYN, "/lib/ld.so");
    elf.program_headers[0].*member = value;
    return ReadBytes(elf.Bytes());
  };
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, 0), ENOEXEC);
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, 1), ENOEXEC);
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, 5), ENOEXEC);  // no NUL
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, 4097), ENOEXEC);
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, UINT64_MAX), ENOEXEC);
  EXPECT_REFUSED(change(&Elf64_Phdr::p_filesz, 4096), EIO);  // beyond the file's end
  EXPECT_REFUSED(change(&Elf64_Phdr::p_offset, 0x7fffffff), EIO);
  EXPECT_REFUSED(change(&Elf64_Phdr::p_offset, UINT64_MAX), EINVAL);
  const Result empty = change(&Elf64_Phdr::p_offset, 0x1f0);
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->interpreter, "");
  // Only the first counts.
  TinyElf two = MakeTinyElf(ET_DYN, "/lib/ld.so");
  two.program_headers[3] = two.program_headers[0];
  two.program_headers[3].p_filesz = 0;
  EXPECT_EQ(ReadBytes(two.Bytes())->interpreter, "/lib/ld.so");
}

TEST(ElfImage, Stack) {
  const auto stack = [](uint32_t type, uint32_t flags) {
    return ReadChanged([=](TinyElf& elf) {
             elf.program_headers[2].p_type = type;
             elf.program_headers[2].p_flags = flags;
           })
        ->executable_stack;
  };
  EXPECT_FALSE(stack(PT_GNU_STACK, PF_R | PF_W));
  EXPECT_TRUE(stack(PT_GNU_STACK, PF_R | PF_W | PF_X));
  EXPECT_FALSE(stack(PT_NOTE, PF_R | PF_W | PF_X));
}

TEST(ElfImage, Alignment) {
  const auto alignment = [](uint64_t first, uint64_t second) {
    return ReadChanged(
               [=](TinyElf& elf) {
                 elf.program_headers[0].p_align = first;
                 elf.program_headers[1].p_align = second;
               },
               ET_DYN)
        ->alignment;
  };
  EXPECT_EQ(alignment(0, 0), 0x1000U);
  EXPECT_EQ(alignment(16, 0x200000), 0x200000U);
  EXPECT_EQ(alignment(0x300000, 0x2000), 0x2000U);  // no power of two: ignored
  EXPECT_EQ(alignment(uint64_t{1} << 63, 1), uint64_t{1} << 63);
}

TEST(ElfImage, EveryBrokenFileGivesAnErrorOrASoundImage) {
  int accepted = 0;
  int refused = 0;
  for (const TinyElf& elf :
       {MakeTinyElf(ET_EXEC), MakeTinyElf(ET_DYN), MakeTinyElf(ET_DYN, "/lib/ld.so")}) {
    for (auto mutate : {testing::FieldMutations, testing::ByteMutations, testing::Truncations}) {
      for (const auto& broken : mutate(elf)) {
        const Result image = ReadBytes(broken.bytes);
        if (image) {
          EXPECT_EQ(ImageDefect(*image), "") << broken.what;
          ++accepted;
        } else {
          EXPECT_GT(image.error().error_number, 0) << broken.what;
          EXPECT_NE(image.error().message, "") << broken.what;
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

TEST(ElfImage, CheckExecutable) {
  const auto check = [](const char* path) {
    const int fd = open(path, O_PATH | O_CLOEXEC);
    const int result = CheckExecutable(fd);
    close(fd);
    return result;
  };
  EXPECT_EQ(check("/bin/true"), 0);
  EXPECT_EQ(check("/"), EACCES);
  EXPECT_EQ(check("/dev/null"), EACCES);
  EXPECT_EQ(check("/etc/passwd"), EACCES);      // no x bit
  EXPECT_EQ(check("/proc/self/comm"), EACCES);  // noexec file system
  EXPECT_EQ(CheckExecutable(-1), EBADF);
}

}  // namespace
}  // namespace trapline
