#include "symbols/container_code.h"

#include <algorithm>
#include <array>
#include <memory>

#include "symbols/module_image.h"

namespace trapline {
namespace {

// Formatted input and output are not among them: several threads may use the standard streams.
constexpr std::array<std::string_view, 7> kPrefixes = {"_ZNSt7__cxx1112basic_string",
                                                       "_ZNKSt7__cxx1112basic_string",
                                                       "_ZNSt3__112basic_string",
                                                       "_ZNKSt3__112basic_string",
                                                       "_ZNSt8__detail15_List_node_base",
                                                       "_ZNKSt8__detail20_Prime_rehash_policy",
                                                       "_ZSt11_Hash_bytes"};
// Operators that take such a string.
constexpr std::array<std::string_view, 3> kOperators = {"_ZStplI", "_ZSteqI", "_ZStlsI"};
constexpr std::string_view kTree = "_Rb_tree_", kString = "__cxx1112basic_string";

constexpr std::array<std::string_view, 6> kNames = {"std::__cxx11::basic_string<",
                                                    "std::__1::basic_string<",
                                                    "std::__detail::_List_node_base::",
                                                    "std::__detail::_Prime_rehash_policy::",
                                                    "std::_Hash_bytes",
                                                    "std::_Rb_tree_"};

// "_ZSt18_Rb_tree_increment..."
bool IsOfTrees(std::string_view mangled) {
  constexpr std::string_view kStd = "_ZSt";
  if (!mangled.starts_with(kStd)) return false;
  const std::size_t name = mangled.find_first_not_of("0123456789", kStd.size());
  return name != std::string_view::npos && name > kStd.size() &&
         mangled.substr(name).starts_with(kTree);
}

}  // namespace

bool IsContainerFunction(std::string_view mangled) {
  const auto begins = [mangled](std::string_view prefix) { return mangled.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) || IsOfTrees(mangled) ||
         (std::any_of(kOperators.begin(), kOperators.end(), begins) &&
          mangled.find(kString) != std::string_view::npos);
}

bool IsContainerFunctionByName(std::string_view name) {
  return std::any_of(kNames.begin(), kNames.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<CodePart> ContainerCodeOf(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (!name.starts_with("libstdc++.so") && !name.starts_with("libc++.so")) return {};
  const std::unique_ptr<ElfFile> file = ElfFile::Open(path);
  if (file == nullptr) return {};
  GElf_Shdr header;
  Elf_Scn* const section = file->SectionOfType(SHT_DYNSYM, header);
  Elf_Data* const data = section != nullptr ? elf_getdata(section, nullptr) : nullptr;
  if (data == nullptr || header.sh_entsize == 0) return {};
  std::vector<CodePart> parts;
  const auto count = static_cast<int>(data->d_size / header.sh_entsize);
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
        symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) {
      continue;
    }
    const char* const text = elf_strptr(file->elf(), header.sh_link, symbol.st_name);
    if (text == nullptr || !IsContainerFunction(text)) continue;
    if (const auto loaded = file->LoadedAt(symbol.st_value))
      parts.push_back({loaded->offset, loaded->offset + symbol.st_size});
  }
  std::sort(parts.begin(), parts.end(),
            [](const CodePart& a, const CodePart& b) { return a.begin < b.begin; });
  // Several names of one function, and functions with nothing but padding between them.
  constexpr std::uint64_t kPadding = 15;
  std::size_t last = 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].begin <= parts[last].end + kPadding) {
      parts[last].end = std::max(parts[last].end, parts[i].end);
    } else {
      parts[++last] = parts[i];
    }
  }
  if (!parts.empty()) parts.resize(last + 1);
  return parts;
}

}  // namespace trapline
