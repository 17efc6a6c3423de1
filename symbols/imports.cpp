#include "symbols/imports.h"

#include <elf.h>
#include <gelf.h>

namespace trapline {

Imports::Imports(const ElfFile& file) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section)) != nullptr;) {
    GElf_Shdr header, symbols_header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA) continue;
    Elf_Scn* const linked = elf_getscn(file.elf(), header.sh_link);
    if (linked == nullptr || gelf_getshdr(linked, &symbols_header) == nullptr ||
        symbols_header.sh_type != SHT_DYNSYM) {
      continue;
    }
    Elf_Data* const relocations = elf_getdata(section, nullptr);
    Elf_Data* const symbols = elf_getdata(linked, nullptr);
    if (relocations == nullptr || relocations->d_buf == nullptr || symbols == nullptr) continue;
    const std::size_t count = relocations->d_size / sizeof(Elf64_Rela);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Rela relocation;
      GElf_Sym symbol;
      if (gelf_getrela(relocations, static_cast<int>(i), &relocation) == nullptr) break;
      const auto type = GELF_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      if (gelf_getsym(symbols, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr)
        continue;
      const char* const name = elf_strptr(file.elf(), symbols_header.sh_link, symbol.st_name);
      if (name != nullptr) names_.emplace(relocation.r_offset, name);
    }
  }
}

std::string Imports::At(std::uint64_t slot) const {
  const auto name = names_.find(slot);
  return name != names_.end() ? name->second : std::string();
}

}  // namespace trapline
