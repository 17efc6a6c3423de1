#include "symbols/imports.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <span>

namespace trapline {

namespace {

// Calls visit(relocations, section) for the sections that have some.
template <class Visit>
void ForEachTable(const ElfFile& file, Visit&& visit) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA) continue;
    Elf_Data* const relocations = elf_getdata(section, nullptr);
    if (relocations == nullptr || relocations->d_buf == nullptr) continue;
    const std::size_t count = relocations->d_size / sizeof(Elf64_Rela);
    // libelf has them in memory as this machine does.
    visit(std::span(static_cast<const Elf64_Rela*>(relocations->d_buf), count), header);
  }
}

}  // namespace

Imports::Imports(const ElfFile& file) {
  ForEachTable(file, [&](std::span<const Elf64_Rela> relocations, const GElf_Shdr& section) {
    Elf_Scn* const linked = elf_getscn(file.elf(), section.sh_link);
    GElf_Shdr header;
    if (linked == nullptr || gelf_getshdr(linked, &header) == nullptr ||
        header.sh_type != SHT_DYNSYM) {
      return;
    }
    Elf_Data* const symbols = elf_getdata(linked, nullptr);
    if (symbols == nullptr) return;
    for (const Elf64_Rela& relocation : relocations) {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      GElf_Sym symbol;
      if (gelf_getsym(symbols, static_cast<int>(ELF64_R_SYM(relocation.r_info)), &symbol) ==
          nullptr) {
        continue;
      }
      const char* const name = elf_strptr(file.elf(), header.sh_link, symbol.st_name);
      if (name != nullptr) names_.emplace(relocation.r_offset, name);
    }
  });
}

StoredAddress Imports::At(const ElfFile& file, std::uint64_t bias, std::uint64_t slot) const {
  StoredAddress stored;
  const std::uint64_t offset = slot - bias;
  if (const auto name = names_.find(offset); name != names_.end()) {
    stored.name = name->second;
    return stored;
  }
  // There may be a million of these. Linkers put them first, by their offsets.
  const auto is_relative = [](const Elf64_Rela& relocation) {
    return ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE;
  };
  ForEachTable(file, [&](std::span<const Elf64_Rela> relocations, const GElf_Shdr&) {
    const auto found = std::ranges::partition_point(relocations, [&](const Elf64_Rela& each) {
      return is_relative(each) && each.r_offset < offset;
    });
    if (found != relocations.end() && is_relative(*found) && found->r_offset == offset)
      stored.address = bias + static_cast<std::uint64_t>(found->r_addend);
  });
  return stored;
}

}  // namespace trapline
