#include "symbols/module_image.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace trapline {
namespace {

// An image in memory larger than this is not copied.
constexpr std::uint64_t kMaxMemoryImage = 256ull << 20;
// What of a file's start is compared with the memory: ELF and program headers.
constexpr std::size_t kHeaderBytes = 1024;

// Whether the file's ELF and program headers are those in memory at the module's start.
bool IsMapped(const ElfFile& file, const Module& module, const MemoryReader& memory) {
  GElf_Ehdr header;
  if (gelf_getehdr(file.elf(), &header) == nullptr || header.e_phoff != sizeof(Elf64_Ehdr))
    return false;
  const std::size_t size =
      std::min<std::size_t>(kHeaderBytes, sizeof(Elf64_Ehdr) + header.e_phnum * sizeof(Elf64_Phdr));
  char bytes[kHeaderBytes], mapped[kHeaderBytes];
  return file.Read(0, bytes, size) && memory(module.begin, mapped, size) &&
         std::memcmp(bytes, mapped, size) == 0;
}

// The file as far as it is mapped: its segments, each at its offset, no section headers. The vDSO
// is there as a whole.
std::vector<char> ImageInMemory(const Module& module, const MemoryReader& memory) {
  std::vector<char> image;
  if (module.is_vdso()) {
    image.resize(module.end - module.begin);
    if (!memory(module.begin, image.data(), image.size())) image.clear();
    return image;
  }
  Elf64_Ehdr header;
  if (!memory(module.begin, &header, sizeof header) || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return image;
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!memory(module.begin + header.e_phoff, segments.data(),
              segments.size() * sizeof(Elf64_Phdr))) {
    return image;
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || segment.p_offset > kMaxMemoryImage ||
        segment.p_filesz > kMaxMemoryImage) {
      continue;
    }
    image.resize(std::max<std::size_t>(image.size(), segment.p_offset + segment.p_filesz));
    // A hole stays zero: whoever reads it finds nothing there.
    memory(module.bias + segment.p_vaddr, image.data() + segment.p_offset, segment.p_filesz);
  }
  if (image.size() < sizeof header) return {};
  header.e_shoff = 0;
  header.e_shnum = 0;
  header.e_shstrndx = SHN_UNDEF;
  std::memcpy(image.data(), &header, sizeof header);
  return image;
}

std::string Directory(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// The checksum of .gnu_debuglink: CRC-32 as in ISO 3309, bit-reversed, polynomial 0x04c11db7.
std::uint32_t Crc32(const char* bytes, std::size_t size) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0);
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i)
    crc = kTable[(crc ^ static_cast<unsigned char>(bytes[i])) & 255] ^ (crc >> 8);
  return ~crc;
}

int (*descriptor_mover)(int descriptor) = nullptr;

}  // namespace

void SetDescriptorMover(int (*move)(int descriptor)) { descriptor_mover = move; }

std::unique_ptr<ElfFile> ElfFile::Open(const std::string& path) {
  elf_version(EV_CURRENT);
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->descriptor_ < 0) return nullptr;
  if (descriptor_mover != nullptr) file->descriptor_ = descriptor_mover(file->descriptor_);
  if (struct stat status = {}; fstat(file->descriptor_, &status) == 0)
    file->modified_ = status.st_mtime;
  // Read, not mapped: a file that is truncated while it is mapped would raise SIGBUS.
  file->elf_ = elf_begin(file->descriptor_, ELF_C_READ, nullptr);
  if (file->elf_ == nullptr || elf_kind(file->elf_) != ELF_K_ELF) return nullptr;
  return file;
}

std::unique_ptr<ElfFile> ElfFile::OfBytes(std::vector<char> bytes) {
  elf_version(EV_CURRENT);
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->bytes_ = std::move(bytes);
  file->elf_ = elf_memory(file->bytes_.data(), file->bytes_.size());
  if (file->elf_ == nullptr || elf_kind(file->elf_) != ELF_K_ELF) return nullptr;
  return file;
}

ElfFile::~ElfFile() {
  elf_end(elf_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool ElfFile::Read(std::uint64_t offset, void* out, std::size_t size) const {
  return pread(descriptor_, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::optional<ElfFile::Loaded> ElfFile::LoadedAt(std::uint64_t address) const {
  std::size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr) return std::nullopt;
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
        address - segment.p_vaddr >= segment.p_filesz) {
      continue;
    }
    const std::uint64_t within = address - segment.p_vaddr;
    return Loaded{segment.p_offset + within, segment.p_filesz - within};
  }
  return std::nullopt;
}

std::size_t ElfFile::ReadLoaded(std::uint64_t address, void* out, std::size_t size) const {
  const auto loaded = LoadedAt(address);
  if (!loaded) return 0;
  size = std::min<std::size_t>(size, loaded->size);
  return Read(loaded->offset, out, size) ? size : 0;
}

std::string ElfFile::BuildId() const {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Nhdr note;
    std::size_t name = 0, description = 0;
    for (std::size_t at = 0;
         data != nullptr && (at = gelf_getnote(data, at, &note, &name, &description)) > 0;) {
      const char* bytes = static_cast<const char*>(data->d_buf);
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof "GNU" ||
          std::memcmp(bytes + name, "GNU", sizeof "GNU") != 0) {
        continue;
      }
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(bytes[description + i]));
      return id;
    }
  }
  return {};
}

Elf_Data* ElfFile::Section(const char* name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* own = elf_strptr(elf_, names, header.sh_name);
    if (own != nullptr && std::strcmp(own, name) == 0) return elf_getdata(section, nullptr);
  }
  return nullptr;
}

bool ElfFile::HasText(const char* section, std::string_view text) const {
  const Elf_Data* const bytes = Section(section);
  return bytes != nullptr &&
         std::string_view(static_cast<const char*>(bytes->d_buf), bytes->d_size).find(text) !=
             std::string_view::npos;
}

Elf_Scn* ElfFile::SectionOfType(unsigned type, GElf_Shdr& header) const {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) return section;
  }
  return nullptr;
}

std::unique_ptr<ModuleImage> ModuleImage::Open(const Module& module, const MemoryReader& memory,
                                               const std::string& debug_directory) {
  std::unique_ptr<ModuleImage> image(new ModuleImage);
  image->path_ = module.path;
  image->build_id_ = module.build_id;
  image->debug_directory_ = debug_directory;
  if (!module.is_vdso()) {
    // A file without a name can still be had where the kernel lists the mappings as links.
    const std::string names[] = {module.path, fmt::format("/proc/{}/map_files/{:x}-{:x}", gettid(),
                                                          module.begin, module.first_end)};
    for (const std::string& name : names) {
      image->file_ = ElfFile::Open(name);
      if (image->file_ == nullptr) continue;
      if (IsMapped(*image->file_, module, memory) && BuildIdOfFile(name) == module.build_id) {
        return image;
      }
    }
  }
  image->file_ = ElfFile::OfBytes(ImageInMemory(module, memory));
  if (image->file_ == nullptr) return nullptr;
  return image;
}

std::unique_ptr<ModuleImage> ModuleImage::OpenFile(const std::string& path,
                                                   const std::string& build_id,
                                                   const std::string& debug_directory) {
  std::unique_ptr<ModuleImage> image(new ModuleImage);
  image->path_ = path;
  image->build_id_ = build_id;
  image->debug_directory_ = debug_directory;
  image->file_ = ElfFile::Open(path);
  if (image->file_ == nullptr || BuildIdOfFile(path) != build_id) return nullptr;
  return image;
}

ModuleImage::~ModuleImage() { dwarf_end(dwarf_); }

std::unique_ptr<ElfFile> ModuleImage::FindDebugFile() const {
  if (build_id_.size() > 2) {
    const std::string path = fmt::format("{}/.build-id/{}/{}.debug", debug_directory_,
                                         build_id_.substr(0, 2), build_id_.substr(2));
    if (auto file = ElfFile::Open(path); file != nullptr && file->BuildId() == build_id_)
      return file;
  }
  const Elf_Data* link = file_->Section(".gnu_debuglink");
  if (link == nullptr || link->d_buf == nullptr || link->d_size < 8) return nullptr;
  const char* text = static_cast<const char*>(link->d_buf);
  const std::string name(text, strnlen(text, link->d_size - 4));
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, text + link->d_size - sizeof checksum, sizeof checksum);
  const std::string directory = Directory(path_);
  for (const std::string& folder :
       {directory, directory + ".debug/", debug_directory_ + directory}) {
    const std::string path = folder + name;
    auto file = ElfFile::Open(path);
    if (file == nullptr) continue;
    // A build id says more than the checksum, and costs less to compare.
    if (!build_id_.empty()) {
      if (file->BuildId() == build_id_) return file;
      continue;
    }
    std::size_t size = 0;
    const char* bytes = elf_rawfile(file->elf(), &size);
    if (bytes != nullptr && Crc32(bytes, size) == checksum) return file;
  }
  return nullptr;
}

const ElfFile* ModuleImage::debug_file() {
  if (!debug_file_sought_) {
    debug_file_sought_ = true;
    debug_file_ = FindDebugFile();
  }
  return debug_file_.get();
}

bool ModuleImage::HasDebugFrame() {
  const auto has = [](const ElfFile& file) {
    return file.Section(".debug_frame") != nullptr || file.Section(".zdebug_frame") != nullptr;
  };
  return has(*file_) || (debug_file() != nullptr && has(*debug_file()));
}

Dwarf* ModuleImage::dwarf() {
  if (dwarf_sought_) return dwarf_;
  dwarf_sought_ = true;
  // A file of its own debug information needs no other, and most have none elsewhere.
  const auto has_debug_info = [](const ElfFile& file) {
    return file.Section(".debug_info") != nullptr || file.Section(".zdebug_info") != nullptr;
  };
  const ElfFile* const file = has_debug_info(*file_) ? file_.get() : debug_file();
  if (file == nullptr) return nullptr;
  dwarf_ = dwarf_begin_elf(file->elf(), DWARF_C_READ, nullptr);
  // libdw 0.188 looks for the end of a file's name beyond that of its section.
  const auto ends = [file](const char* section) {
    const Elf_Data* const strings = file->Section(section);
    return strings == nullptr || strings->d_size == 0 ||
           static_cast<const char*>(strings->d_buf)[strings->d_size - 1] == 0;
  };
  if (!ends(".debug_str") || !ends(".debug_line_str")) {
    dwarf_end(dwarf_);
    dwarf_ = nullptr;
  }
  return dwarf_;
}

}  // namespace trapline
