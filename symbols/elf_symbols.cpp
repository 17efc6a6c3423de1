#include "symbols/elf_symbols.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace trapline {
namespace {

// One symbol and what decides between several of the same address.
struct Candidate {
  ElfSymbols::Symbol symbol;
  int binding_rank;  // less is better
  std::size_t underscores;
  bool has_size;
};

auto Rank(const Candidate& candidate) {
  return std::make_tuple(candidate.symbol.begin, !candidate.has_size, candidate.binding_rank,
                         candidate.underscores, std::strlen(candidate.symbol.name));
}

int BindingRank(unsigned binding) {
  if (binding == STB_GLOBAL) return 0;
  return binding == STB_WEAK ? 1 : 2;
}

// Sorted, the best of each address, and ends for those that have none.
std::vector<ElfSymbols::Symbol> Chosen(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return Rank(a) < Rank(b); });
  std::vector<ElfSymbols::Symbol> chosen;
  for (const Candidate& candidate : candidates) {
    if (!chosen.empty() && chosen.back().begin == candidate.symbol.begin) continue;
    // A label in assembler code reaches to the next one.
    if (!chosen.empty() && chosen.back().end == chosen.back().begin)
      chosen.back().end = candidate.symbol.begin;
    chosen.push_back(candidate.symbol);
  }
  return chosen;
}

}  // namespace

ElfSymbols::ElfSymbols(ModuleImage& image) {
  if (Read(image.file(), SHT_SYMTAB)) return;
  if (image.debug_file() != nullptr && Read(*image.debug_file(), SHT_SYMTAB)) return;
  Read(image.file(), SHT_DYNSYM);
}

bool ElfSymbols::Read(const ElfFile& file, unsigned section_type) {
  GElf_Shdr header;
  Elf_Scn* section = file.SectionOfType(section_type, header);
  Elf_Data* data = section != nullptr ? elf_getdata(section, nullptr) : nullptr;
  if (data == nullptr || data->d_buf == nullptr) return false;
  std::vector<Candidate> functions, objects, thread_locals;
  const std::size_t count = data->d_size / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    const char* name = elf_strptr(file.elf(), header.sh_link, symbol.st_name);
    if (name == nullptr || *name == '\0') continue;
    const Candidate candidate = {
        .symbol = {symbol.st_value, symbol.st_value + symbol.st_size, name},
        .binding_rank = BindingRank(GELF_ST_BIND(symbol.st_info)),
        .underscores = std::strspn(name, "_"),
        .has_size = symbol.st_size != 0};
    switch (GELF_ST_TYPE(symbol.st_info)) {
      case STT_FUNC:
      case STT_GNU_IFUNC:
        functions.push_back(candidate);
        break;
      case STT_OBJECT:
      case STT_COMMON:
        objects.push_back(candidate);
        break;
      case STT_TLS:
        thread_locals.push_back(candidate);
        break;
      case STT_NOTYPE: {
        GElf_Shdr own;
        Elf_Scn* of = elf_getscn(file.elf(), symbol.st_shndx);
        if (of == nullptr || gelf_getshdr(of, &own) == nullptr) break;
        const bool is_code = (own.sh_flags & SHF_EXECINSTR) != 0;
        // Data without a type is a marker of the linker's (_edata, __bss_start) more often than a
        // variable.
        if (is_code) functions.push_back(candidate);
        break;
      }
      default:
        break;
    }
  }
  functions_ = Chosen(functions);
  objects_ = Chosen(objects);
  thread_locals_ = Chosen(thread_locals);
  return !functions_.empty() || !objects_.empty() || !thread_locals_.empty();
}

const ElfSymbols::Symbol* ElfSymbols::Find(const std::vector<Symbol>& symbols,
                                           std::uint64_t address) {
  // A symbol may lie inside another; the innermost is among the few before the address.
  constexpr int kLookBack = 16;
  auto at = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](std::uint64_t value, const Symbol& symbol) { return value < symbol.begin; });
  for (int i = 0; i < kLookBack && at != symbols.begin(); ++i) {
    --at;
    if (address < at->end) return &*at;
  }
  return nullptr;
}

}  // namespace trapline
