#include "tests/static-runtime/symbols.h"

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

namespace trapline {

std::map<std::string, std::uint64_t> FunctionsOf(const std::string& path) {
  std::map<std::string, std::uint64_t> functions;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(fd, ELF_C_READ, nullptr);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
        functions.emplace(elf_strptr(elf, header.sh_link, symbol.st_name), symbol.st_value);
    }
  }
  elf_end(elf);
  close(fd);
  return functions;
}

}  // namespace trapline
