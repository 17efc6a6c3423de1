#include "symbols/imports.h"

#include <elf.h>
#include <gelf.h>

namespace trapline {

namespace {

// Calls visit(const GElf_Rela&, const GElf_Shdr& section), until it returns false.
template <class Visit>
void ForEachRelocation(const ElfFile& file, Visit&& visit) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA) continue;
    Elf_Data* const relocations = elf_getdata(section, nullptr);
    if (relocations == nullptr || relocations->d_buf == nullptr) continue;
    const std::size_t count = relocations->d_size / sizeof(Elf64_Rela);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Rela relocation;
      if (gelf_getrela(relocations, static_cast<int>(i), &relocation) == nullptr) break;
      if (!visit(relocation, header)) return;
    }
  }
}

}  // namespace

Imports::Imports(const ElfFile& file) {
  ForEachRelocation(file, [&](const GElf_Rela& relocation, const GElf_Shdr& section) {
    const auto type = GELF_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) return true;
    Elf_Scn* const linked = elf_getscn(file.elf(), section.sh_link);
    GElf_Shdr header;
    if (linked == nullptr || gelf_getshdr(linked, &header) == nullptr ||
        header.sh_type != SHT_DYNSYM) {
      return true;
    }
    Elf_Data* const symbols = elf_getdata(linked, nullptr);
    GElf_Sym symbol;
    if (symbols == nullptr ||
        gelf_getsym(symbols, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr) {
      return true;
    }
    const char* const name = elf_strptr(file.elf(), header.sh_link, symbol.st_name);
    if (name != nullptr) names_.emplace(relocation.r_offset, name);
    return true;
  });
}

StoredAddress Imports::At(const ElfFile& file, std::uint64_t bias, std::uint64_t slot) const {
  StoredAddress stored;
  if (const auto name = names_.find(slot - bias); name != names_.end()) {
    stored.name = name->second;
    return stored;
  }
  // There may be a million of these: they are not kept.
  ForEachRelocation(file, [&](const GElf_Rela& relocation, const GElf_Shdr&) {
    if (relocation.r_offset != slot - bias || GELF_R_TYPE(relocation.r_info) != R_X86_64_RELATIVE)
      return true;
    stored.address = bias + static_cast<std::uint64_t>(relocation.r_addend);
    return false;
  });
  return stored;
}

}  // namespace trapline
