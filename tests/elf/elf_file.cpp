#include "tests/elf/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>

namespace trapline::testing {
namespace {

constexpr uint64_t kBase = 0x400000;
constexpr size_t kCodeOffset = 0x200;
constexpr size_t kInterpreterOffset = 0x180;
constexpr size_t kDataOffset = 0x1000;
constexpr uint64_t kDataAddress = 0x2000;  // from the base
constexpr size_t kDataSize = 0x80;
constexpr uint64_t kDataMemorySize = 0x2800;

// exit(data[0] + bss[...] of the same page + bss of the last page). RIP-relative, so that it runs
// at any bias.
constexpr std::array<uint8_t, 32> kCode = {
    0x8b, 0x3d, 0xfa, 0x1d, 0x00, 0x00,  // mov edi, [rip + 0x1dfa]: 0x206 + 0x1dfa = 0x2000
    0x03, 0x3d, 0xf4, 0x2d, 0x00, 0x00,  // add edi, [rip + 0x2df4]: 0x20c + 0x2df4 = 0x3000
    0x03, 0x3d, 0xe6, 0x45, 0x00, 0x00,  // add edi, [rip + 0x45e6]: 0x212 + 0x45e6 = 0x47f8
    0x89, 0x3d, 0xe0, 0x45, 0x00, 0x00,  // mov [rip + 0x45e0], edi: 0x218 + 0x45e0 = 0x47f8
    0xb8, 0x3c, 0x00, 0x00, 0x00,        // mov eax, 60
    0x0f, 0x05,                          // syscall
    0xf4,                                // hlt
};

// A header field: `width` bytes at `offset` of the file.
struct Field {
  std::string name;
  size_t offset;
  size_t width;
};

#define EHDR_FIELD(member) \
  Field { #member, offsetof(Elf64_Ehdr, member), sizeof(Elf64_Ehdr::member) }
#define PHDR_FIELD(member) \
  Field { #member, offsetof(Elf64_Phdr, member), sizeof(Elf64_Phdr::member) }

std::vector<Field> Fields(const TinyElf& elf) {
  std::vector<Field> fields = {
      EHDR_FIELD(e_type),      EHDR_FIELD(e_machine), EHDR_FIELD(e_version),   EHDR_FIELD(e_entry),
      EHDR_FIELD(e_phoff),     EHDR_FIELD(e_shoff),   EHDR_FIELD(e_flags),     EHDR_FIELD(e_ehsize),
      EHDR_FIELD(e_phentsize), EHDR_FIELD(e_phnum),   EHDR_FIELD(e_shentsize), EHDR_FIELD(e_shnum),
      EHDR_FIELD(e_shstrndx),
  };
  const std::array<Field, 8> per_segment = {
      PHDR_FIELD(p_type),  PHDR_FIELD(p_flags),  PHDR_FIELD(p_offset), PHDR_FIELD(p_vaddr),
      PHDR_FIELD(p_paddr), PHDR_FIELD(p_filesz), PHDR_FIELD(p_memsz),  PHDR_FIELD(p_align),
  };
  for (size_t i = 0; i < elf.program_headers.size(); ++i) {
    for (const Field& field : per_segment) {
      fields.push_back({"ph" + std::to_string(i) + "." + field.name,
                        sizeof(Elf64_Ehdr) + i * sizeof(Elf64_Phdr) + field.offset, field.width});
    }
  }
  return fields;
}

#undef EHDR_FIELD
#undef PHDR_FIELD

std::string Hex(uint64_t value) {
  std::array<char, 20> text;
  (void)snprintf(text.data(), text.size(), "%#llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

std::vector<uint8_t> TinyElf::Bytes() const {
  std::vector<uint8_t> bytes(kDataOffset + kDataSize);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), program_headers.data(),
              program_headers.size() * sizeof(Elf64_Phdr));
  std::memcpy(bytes.data() + kInterpreterOffset, interpreter.data(), interpreter.size());
  std::memcpy(bytes.data() + kCodeOffset, kCode.data(), kCode.size());
  bytes[kDataOffset] = kTinyExitStatus;
  return bytes;
}

TinyElf MakeTinyElf(uint16_t type, const std::string& interpreter) {
  const uint64_t base = type == ET_EXEC ? kBase : 0;
  TinyElf elf = {};
  std::memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.header.e_ident[EI_VERSION] = EV_CURRENT;
  elf.header.e_type = type;
  elf.header.e_machine = EM_X86_64;
  elf.header.e_version = EV_CURRENT;
  elf.header.e_entry = base + kCodeOffset;
  elf.header.e_phoff = sizeof(Elf64_Ehdr);
  elf.header.e_ehsize = sizeof(Elf64_Ehdr);
  elf.header.e_phentsize = sizeof(Elf64_Phdr);
  elf.header.e_shentsize = sizeof(Elf64_Shdr);
  // type, flags, offset, vaddr, paddr, filesz, memsz, align
  elf.program_headers = {
      {PT_LOAD, PF_R | PF_X, 0, base, base, kCodeOffset + kCode.size(), kCodeOffset + kCode.size(),
       0x1000},
      {PT_LOAD, PF_R | PF_W, kDataOffset, base + kDataAddress, base + kDataAddress, kDataSize,
       kDataMemorySize, 0x1000},
      {PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16},
  };
  if (!interpreter.empty()) {
    elf.interpreter = interpreter;
    elf.program_headers.insert(elf.program_headers.begin(),
                               {PT_INTERP, PF_R, kInterpreterOffset, 0, 0, interpreter.size() + 1,
                                interpreter.size() + 1, 1});
  }
  elf.header.e_phnum = static_cast<uint16_t>(elf.program_headers.size());
  return elf;
}

std::vector<BrokenElf> FieldMutations(const TinyElf& elf) {
  const std::vector<uint8_t> whole = elf.Bytes();
  std::vector<BrokenElf> result;
  for (const Field& field : Fields(elf)) {
    uint64_t original = 0;
    std::memcpy(&original, whole.data() + field.offset, field.width);
    const std::vector<uint64_t> values = {0,
                                          1,
                                          2,
                                          3,
                                          4,
                                          6,
                                          7,
                                          0x3f,
                                          0x40,
                                          0xfff,
                                          0x1000,
                                          0x1001,
                                          1170,
                                          1171,
                                          0x8000,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x7fffffffe000,
                                          kElfUserLimit - 1,
                                          kElfUserLimit,
                                          0x800000000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xfffffffffffff000,
                                          0xffffffffffffffff,
                                          original + 1,
                                          original - 1,
                                          original + 0x1000,
                                          original - 0x1000,
                                          original + 0x100000,
                                          original * 2,
                                          original ^ 0x40};
    for (uint64_t value : values) {
      BrokenElf broken{field.name + " = " + Hex(value), whole};
      std::memcpy(broken.bytes.data() + field.offset, &value, field.width);
      if (broken.bytes != whole) result.push_back(std::move(broken));
    }
  }
  return result;
}

std::vector<BrokenElf> ByteMutations(const TinyElf& elf) {
  const std::vector<uint8_t> whole = elf.Bytes();
  std::vector<BrokenElf> result;
  for (size_t i = 0; i < elf.HeaderBytes(); ++i) {
    const uint8_t byte = whole[i];
    for (int value : {0, 0xff, byte ^ 0x80, byte + 1}) {
      BrokenElf broken{"byte " + std::to_string(i) + " = " + std::to_string(value & 0xff), whole};
      broken.bytes[i] = static_cast<uint8_t>(value);
      if (broken.bytes != whole) result.push_back(std::move(broken));
    }
  }
  return result;
}

std::vector<BrokenElf> Truncations(const TinyElf& elf) {
  const std::vector<uint8_t> whole = elf.Bytes();
  std::vector<BrokenElf> result;
  const auto cut = [&](size_t size) {
    result.push_back({"cut to " + std::to_string(size) + " bytes",
                      {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}});
  };
  for (size_t size = 0; size <= elf.HeaderBytes(); ++size) cut(size);
  for (size_t size = elf.HeaderBytes() + 1; size < whole.size(); size += 61) cut(size);
  for (size_t size : {kInterpreterOffset + 1, kCodeOffset, kDataOffset - 1, kDataOffset,
                      kDataOffset + 1, whole.size() - 1}) {
    cut(size);
  }
  return result;
}

int OpenBytes(const std::vector<uint8_t>& bytes) {
  const int writer = memfd_create("elf", MFD_CLOEXEC);
  if (writer < 0) return -1;
  int reader = -1;
  if (write(writer, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    const std::string path = "/proc/self/fd/" + std::to_string(writer);
    reader = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  close(writer);  // a file open for writing cannot be executed
  return reader;
}

std::string ImageDefect(const ElfImage& image) {
  if (!std::has_single_bit(image.alignment) || image.alignment < kElfPageSize) return "alignment";
  if (image.program_header_size != sizeof(Elf64_Phdr)) return "program header size";
  if (image.program_header_count == 0) return "program header count";
  if (image.low > image.high || image.high > kElfUserLimit) return "span";
  if (image.low % kElfPageSize != 0 || image.high % kElfPageSize != 0) return "span alignment";
  if (image.interpreter && image.interpreter->size() >= 4096) return "interpreter";
  for (const ElfSegment& segment : image.segments) {
    if (segment.file_size > segment.memory_size) return "file size";
    if (segment.FileStart() > segment.FileEnd() || segment.FileEnd() > segment.End()) {
      return "segment order";
    }
    if (segment.FileStart() < image.low || segment.End() > image.high) return "segment in span";
    if (segment.file_size != 0 && segment.FileOffset() % kElfPageSize != 0) return "offset";
    if (segment.file_size != 0 &&
        segment.FileOffset() > INT64_MAX - (segment.FileEnd() - segment.FileStart())) {
      return "offset range";
    }
    if (segment.PaddingStart() > segment.FileEnd() ||
        segment.FileEnd() - segment.PaddingStart() >= kElfPageSize) {
      return "padding";
    }
    if (segment.memory_size != 0 && (segment.address < segment.FileStart() ||
                                     segment.address + segment.memory_size > segment.End())) {
      return "segment coverage";
    }
  }
  return "";
}

}  // namespace trapline::testing
