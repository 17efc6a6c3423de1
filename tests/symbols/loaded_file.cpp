#include "tests/symbols/loaded_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace trapline {
namespace {

constexpr std::uint64_t kPage = 4096;

template <typename T>
T At(const std::string& bytes, std::uint64_t offset) {
  T value;
  if (offset + sizeof value > bytes.size()) throw std::runtime_error("beyond the file's end");
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<Elf64_Phdr> Segments(const std::string& bytes) {
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = At<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD) segments.push_back(segment);
  }
  return segments;
}

}  // namespace

LoadedFile::LoadedFile(std::string path, std::uint64_t bias) : path_(std::move(path)), bias_(bias) {
  std::ifstream file(path_, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  if (bytes_.empty()) throw std::runtime_error("cannot read " + path_);
}

std::string LoadedFile::MapsText() const {
  struct stat status;
  if (stat(path_.c_str(), &status) != 0) throw std::runtime_error("cannot stat " + path_);
  std::string text;
  for (const Elf64_Phdr& segment : Segments(bytes_)) {
    const std::uint64_t begin = bias_ + (segment.p_vaddr & ~(kPage - 1));
    const std::uint64_t end =
        bias_ + ((segment.p_vaddr + segment.p_memsz + kPage - 1) & ~(kPage - 1));
    text += fmt::format("{:x}-{:x} {}{}{}p {:08x} {:02x}:{:02x} {} {}\n", begin, end,
                        (segment.p_flags & PF_R) != 0 ? 'r' : '-',
                        (segment.p_flags & PF_W) != 0 ? 'w' : '-',
                        (segment.p_flags & PF_X) != 0 ? 'x' : '-', segment.p_offset & ~(kPage - 1),
                        major(status.st_dev), minor(status.st_dev), status.st_ino, path_);
  }
  return text;
}

ModulesOptions LoadedFile::Options() {
  ModulesOptions options;
  options.read_maps = [this] { return MapsText(); };
  options.memory = {[](void* self, std::uint64_t address, void* out, std::size_t size) {
                      const auto& file = *static_cast<LoadedFile*>(self);
                      for (const Elf64_Phdr& segment : Segments(file.bytes_)) {
                        const std::uint64_t begin = file.bias_ + (segment.p_vaddr & ~(kPage - 1));
                        const std::uint64_t offset = segment.p_offset & ~(kPage - 1);
                        const std::uint64_t length = segment.p_offset + segment.p_filesz - offset;
                        const std::uint64_t room = segment.p_offset + segment.p_memsz - offset;
                        if (address < begin || address + size > begin + room) continue;
                        std::memset(out, 0, size);  // beyond the file's part
                        if (address - begin < length) {
                          std::memcpy(out, file.bytes_.data() + offset + (address - begin),
                                      std::min<std::uint64_t>(size, length - (address - begin)));
                        }
                        return true;
                      }
                      return false;
                    },
                    this};
  return options;
}

std::pair<std::uint64_t, std::uint64_t> LoadedFile::Symbol(const std::string& name) const {
  const auto header = At<Elf64_Ehdr>(bytes_, 0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto table = At<Elf64_Shdr>(bytes_, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = At<Elf64_Shdr>(bytes_, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (std::uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(bytes_, table.sh_offset + at);
      if (name == bytes_.c_str() + names.sh_offset + symbol.st_name)
        return {bias_ + symbol.st_value, symbol.st_size};
    }
  }
  throw std::runtime_error("no symbol " + name + " in " + path_);
}

}  // namespace trapline
