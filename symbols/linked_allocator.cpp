#include "symbols/linked_allocator.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "symbols/module_image.h"

namespace trapline {
namespace {

// So many functions of its own tell an allocator. One or two names anybody may come upon.
constexpr std::size_t kEnough = 4;

// --- jemalloc: in most builds its functions have a prefix, chosen when it is built

constexpr std::array<std::string_view, 24> kJemallocFunctions = {"arena_boot",
                                                                 "arena_choose_hard",
                                                                 "arena_dalloc_small",
                                                                 "arena_extent_alloc_large",
                                                                 "arena_init",
                                                                 "arena_malloc_hard",
                                                                 "arena_ralloc",
                                                                 "arena_tcache_fill_small",
                                                                 "base_boot",
                                                                 "ctl_byname",
                                                                 "ctl_bymib",
                                                                 "extent_alloc_wrapper",
                                                                 "extent_dalloc_wrapper",
                                                                 "ehooks_default_alloc_impl",
                                                                 "large_dalloc",
                                                                 "malloc_conf_init_helper",
                                                                 "malloc_init_hard",
                                                                 "malloc_mutex_lock_slow",
                                                                 "rtree_leaf_elem_lookup_hard",
                                                                 "tcache_alloc_small_hard",
                                                                 "tcache_arena_associate",
                                                                 "tcache_bin_flush_small",
                                                                 "tcache_event_hard",
                                                                 "tsd_fetch_slow"};

// What its functions begin with, behind the prefix. Only where one without a prefix must be told
// from the functions that lie around it.
constexpr std::array<std::string_view, 52> kJemallocModules = {
    "arena_",    "arenas_",       "background_thread",
    "base_",     "batch_alloc",   "bin_",
    "bitmap_",   "buf_writer",    "cache_bin_",
    "ckh_",      "config_",       "ctl_",
    "decay_",    "div_init",      "do_rallocx",
    "eset_",     "ecache_",       "edata_",
    "ehooks_",   "emap_",         "exp_grow_",
    "extent_",   "fxp_",          "hpa_",
    "hpdata_",   "inspect_",      "jemalloc_",
    "large_",    "malloc_",       "narenas_",
    "nstime_",   "opt_",          "pa_",
    "pac_",      "pages_",        "pai_",
    "peak_",     "prof_",         "psset_",
    "rtree_",    "safety_check_", "san_",
    "sdallocx_", "sec_",          "stats_",
    "sz_",       "tcache_",       "te_",
    "thread_",   "ticker_",       "tsd_",
    "witness_"};

// --- the others

struct Kind {
  std::string_view name;
  std::vector<std::string_view> entries;   // must all be there
  std::vector<std::string_view> signs;     // what kEnough functions must begin with
  std::vector<std::string_view> prefixes;  // what its functions begin with, once it is known
};

const std::vector<Kind>& Kinds() {
  static const auto* const kKinds = new std::vector<Kind>{
      {"mimalloc", {"mi_malloc", "mi_free"}, {"_mi_"}, {"mi_", "_mi_"}},
      {"rpmalloc",
       {"rpmalloc", "rpfree"},
       {"rpmalloc", "_rpmalloc"},
       {"rpmalloc", "_rpmalloc", "rpfree", "rpcalloc", "rprealloc", "rpaligned", "rpmemalign",
        "rpposix_"}},
      {"tcmalloc",
       {},
       {"_ZN8tcmalloc", "_ZNK8tcmalloc", "TCMallocInternal"},
       {"_ZN8tcmalloc", "_ZNK8tcmalloc", "TCMalloc", "MallocExtension_", "MallocHook_", "tc_",
        "_ZN10MallocHook", "_ZN15MallocExtension", "_ZN22TCMallocImplementation",
        "_ZN13TCMallocGuard", "_ZN8SpinLock", "_ZN16LowLevelAlloc"}},
      {"snmalloc",
       {},
       {"_ZN8snmalloc", "_ZNK8snmalloc"},
       {"_ZN8snmalloc", "_ZNK8snmalloc", "sn_", "rust_sn"}}};
  return *kKinds;
}

// What any allocator may define, and a program as well, in front of one.
constexpr std::array<std::string_view, 27> kAllocation = {"malloc",
                                                          "calloc",
                                                          "realloc",
                                                          "reallocarray",
                                                          "free",
                                                          "cfree",
                                                          "memalign",
                                                          "valloc",
                                                          "pvalloc",
                                                          "aligned_alloc",
                                                          "posix_memalign",
                                                          "malloc_usable_size",
                                                          "free_sized",
                                                          "free_aligned_sized",
                                                          "mallocx",
                                                          "rallocx",
                                                          "xallocx",
                                                          "sallocx",
                                                          "dallocx",
                                                          "sdallocx",
                                                          "nallocx",
                                                          "mallctl",
                                                          "mallctlnametomib",
                                                          "mallctlbymib",
                                                          "malloc_stats_print",
                                                          "batch_alloc",
                                                          "smallocx"};

// Source files whose first or last functions lie next to the program's, without what comes behind
// the first point: there may be ".c", ".pic.o".
constexpr std::array<std::string_view, 4> kOutermostFiles = {"jemalloc", "jemalloc_cpp", "tcmalloc",
                                                             "rpmalloc"};

template <class List>
bool StartsWithOne(std::string_view name, const List& prefixes) {
  return std::ranges::any_of(prefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// "f" of "f.cold", "f.part.0", "f.llvm.123".
std::string_view WithoutSuffix(std::string_view name) { return name.substr(0, name.find('.', 1)); }

bool IsAllocation(std::string_view name) {
  constexpr std::string_view kLibc = "__libc_";
  if (name.starts_with(kLibc)) name.remove_prefix(kLibc.size());
  if (name == "__posix_memalign") return true;
  return std::ranges::find(kAllocation, name) != kAllocation.end() || name.starts_with("_Znw") ||
         name.starts_with("_Zna") || name.starts_with("_Zdl") || name.starts_with("_Zda");
}

// Functions that may be anybody's by their names: those of one file alone, the ones that every
// allocator defines, and what C++ makes of templates.
bool MayBeAnybodys(const FunctionSymbol& function) {
  const std::string_view name = WithoutSuffix(function.name);
  if (IsAllocation(name) || StartsWithOne(name, std::array<std::string_view, 4>{
                                                    "_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx"}))
    return true;
  const bool is_cxx = name.starts_with("_Z") || name.starts_with("_R");
  return function.is_local && name != "main" &&
         (!is_cxx || name.starts_with("_ZL") || name.starts_with("_ZN12_GLOBAL__N_1"));
}

// One allocator that is there.
struct Found {
  std::string_view name;
  std::vector<std::string> prefixes;  // of its functions
  bool has_plain_names = false;       // jemalloc's without a prefix

  // How much a name tells.
  enum class Claim : std::uint8_t { kNone, kWeak, kSure };
  Claim ClaimOn(std::string_view function, bool is_local) const {
    if (StartsWithOne(function, prefixes)) return Claim::kSure;
    if (!has_plain_names) return Claim::kNone;
    if (std::ranges::find(kJemallocFunctions, function) != kJemallocFunctions.end())
      return Claim::kSure;
    return is_local && StartsWithOne(function, kJemallocModules) ? Claim::kWeak : Claim::kNone;
  }
};

std::vector<Found> FindJemalloc(std::span<const FunctionSymbol> functions) {
  // Prefix -> the functions that have it.
  std::map<std::string_view, std::set<std::string_view>> known;
  for (const FunctionSymbol& function : functions) {
    const std::string_view name = WithoutSuffix(function.name);
    if (name.starts_with("_Z") || name.starts_with("_R")) continue;
    for (const std::string_view own : kJemallocFunctions) {
      if (!name.ends_with(own)) continue;
      const std::string_view prefix = name.substr(0, name.size() - own.size());
      if (prefix.empty() || prefix.ends_with('_')) known[prefix].insert(own);
    }
  }
  std::vector<Found> found;
  for (const auto& [prefix, names] : known) {
    if (names.size() < kEnough) continue;
    Found& one = found.emplace_back();
    one.name = "jemalloc";
    one.has_plain_names = prefix.empty();
    one.prefixes = {"jemalloc_"};
    if (prefix.empty()) continue;
    one.prefixes.emplace_back(prefix);
    // "_rjem_je_arena_init" is for "_rjem_malloc".
    constexpr std::string_view kPrivate = "je_";
    if (prefix.size() > kPrivate.size() && prefix.ends_with(kPrivate))
      one.prefixes.emplace_back(prefix.substr(0, prefix.size() - kPrivate.size()));
  }
  return found;
}

std::vector<Found> Find(std::span<const FunctionSymbol> functions) {
  std::vector<Found> found = FindJemalloc(functions);
  for (const Kind& kind : Kinds()) {
    std::set<std::string_view> entries, signs;
    for (const FunctionSymbol& function : functions) {
      const std::string_view name = WithoutSuffix(function.name);
      if (std::ranges::find(kind.entries, name) != kind.entries.end()) entries.insert(name);
      if (signs.size() < kEnough && StartsWithOne(name, kind.signs)) signs.insert(name);
    }
    if (signs.size() < kEnough || entries.size() < kind.entries.size()) continue;
    found.push_back({kind.name, {kind.prefixes.begin(), kind.prefixes.end()}});
  }
  return found;
}

// --- whose the functions are, of which names tell no more

enum class Owner : std::uint8_t { kUnknown, kAllocator, kOther };

struct Function {
  const FunctionSymbol* symbol = nullptr;
  std::uint64_t end = 0;
  Owner owner = Owner::kUnknown;
  bool is_sure = false;
  bool is_part = false;  // the unlikely part of another one: those lie elsewhere, all together
};

// Sorted by address, one for each; the names of one address together tell whose it is.
std::vector<Function> Sorted(std::span<const FunctionSymbol> symbols, const Found& allocator) {
  std::vector<const FunctionSymbol*> sorted;
  sorted.reserve(symbols.size());
  for (const FunctionSymbol& symbol : symbols) sorted.push_back(&symbol);
  std::ranges::stable_sort(sorted, {}, &FunctionSymbol::begin);
  std::vector<Function> functions;
  for (const FunctionSymbol* const symbol : sorted) {
    const std::string_view name = WithoutSuffix(symbol->name);
    if (functions.empty() || functions.back().symbol->begin != symbol->begin) {
      if (!functions.empty() && functions.back().end == functions.back().symbol->begin)
        functions.back().end = symbol->begin;
      functions.push_back(
          {.symbol = symbol, .end = symbol->end, .is_part = symbol->name.ends_with(".cold")});
    }
    Function& function = functions.back();
    function.end = std::max(function.end, symbol->end);
    const Found::Claim claim = allocator.ClaimOn(name, symbol->is_local);
    if (claim != Found::Claim::kNone) {
      if (function.owner != Owner::kAllocator) function.symbol = symbol;
      function.owner = Owner::kAllocator;
      function.is_sure |= claim == Found::Claim::kSure;
    } else if (function.owner == Owner::kUnknown && !MayBeAnybodys(*symbol)) {
      function.symbol = symbol;
      function.owner = Owner::kOther;
    }
  }
  return functions;
}

// The source files with functions of others right amid their local ones: compiled together with the
// program.
std::set<unsigned> MixedFiles(const std::vector<Function>& functions) {
  std::set<unsigned> mixed;
  unsigned last = 0;  // file of a local function
  bool others_since = false;
  for (const Function& function : functions) {
    if (function.is_part) continue;
    others_since |= function.owner == Owner::kOther;
    if (!function.symbol->is_local || function.symbol->file == 0) continue;
    if (others_since && last == function.symbol->file) mixed.insert(last);
    last = function.symbol->file;
    others_since = false;
  }
  return mixed;
}

void Decide(std::vector<Function>& functions) {
  const std::set<unsigned> mixed = MixedFiles(functions);
  const auto is_mixed = [&](const Function& function) {
    return function.symbol->is_local && mixed.contains(function.symbol->file);
  };
  // There even a name that begins as the allocator's may be the program's.
  for (Function& function : functions) {
    if (function.owner == Owner::kAllocator && !function.is_sure && is_mixed(function))
      function.owner = Owner::kOther;
  }
  const std::size_t count = functions.size();
  std::vector<Owner> before(count), after(count);
  Owner nearest = Owner::kOther;
  for (std::size_t i = 0; i < count; ++i) {
    before[i] = nearest;
    if (functions[i].owner != Owner::kUnknown && !functions[i].is_part)
      nearest = functions[i].owner;
  }
  nearest = Owner::kOther;
  for (std::size_t i = count; i-- > 0;) {
    after[i] = nearest;
    if (functions[i].owner != Owner::kUnknown && !functions[i].is_part)
      nearest = functions[i].owner;
  }
  std::set<std::string_view> own, others;
  for (std::size_t i = 0; i < count; ++i) {
    Function& function = functions[i];
    const std::string_view name = WithoutSuffix(function.symbol->name);
    if (function.owner == Owner::kUnknown && !function.is_part) {
      const bool follows = before[i] == Owner::kAllocator, leads = after[i] == Owner::kAllocator;
      const std::string_view file = WithoutSuffix(function.symbol->file_name);
      const bool is_outermost =
          IsAllocation(name) || std::ranges::find(kOutermostFiles, file) != kOutermostFiles.end();
      const bool is_own = is_outermost ? follows || leads : follows && leads && !is_mixed(function);
      function.owner = is_own ? Owner::kAllocator : Owner::kOther;
    }
    if (!function.is_part) (function.owner == Owner::kAllocator ? own : others).insert(name);
  }
  for (Function& function : functions) {
    const std::string_view name = WithoutSuffix(function.symbol->name);
    if (function.is_part && function.owner == Owner::kUnknown)
      function.owner =
          own.contains(name) && !others.contains(name) ? Owner::kAllocator : Owner::kOther;
  }
}

}  // namespace

std::vector<LinkedAllocator> FindLinkedAllocators(std::span<const FunctionSymbol> functions) {
  std::vector<LinkedAllocator> allocators;
  for (const Found& found : Find(functions)) {
    std::vector<Function> sorted = Sorted(functions, found);
    Decide(sorted);
    LinkedAllocator& allocator = allocators.emplace_back();
    allocator.name = found.name;
    bool goes_on = false;  // the function before is the allocator's, too
    for (const Function& function : sorted) {
      const bool is_own = function.owner == Owner::kAllocator;
      const bool follows = std::exchange(goes_on, is_own);
      if (!is_own || function.end <= function.symbol->begin) continue;
      // Between the functions of one file lies nothing but padding.
      constexpr std::uint64_t kPadding = 64;
      std::vector<LinkedAllocator::Range>& code = allocator.code;
      if (follows && !code.empty() && function.symbol->begin <= code.back().end + kPadding) {
        code.back().end = std::max(code.back().end, function.end);
      } else {
        code.push_back({function.symbol->begin, function.end});
      }
    }
  }
  return allocators;
}

std::vector<LinkedAllocator> FindLinkedAllocators(const Module& module, const MemoryReader& memory,
                                                  const std::string& debug_directory) {
  const auto image = ModuleImage::Open(module, memory, debug_directory);
  if (image == nullptr) return {};
  GElf_Shdr header;
  const ElfFile* file = &image->file();
  Elf_Scn* section = file->SectionOfType(SHT_SYMTAB, header);
  if (section == nullptr && image->debug_file() != nullptr) {
    file = image->debug_file();
    section = file->SectionOfType(SHT_SYMTAB, header);
  }
  Elf_Data* const data = section != nullptr ? elf_getdata(section, nullptr) : nullptr;
  if (data == nullptr || data->d_buf == nullptr) return {};
  std::vector<FunctionSymbol> functions;
  unsigned files = 0, number = 0;
  const char* file_name = "";
  const std::size_t count = data->d_size / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const char* const name = elf_strptr(file->elf(), header.sh_link, symbol.st_name);
    const unsigned type = GELF_ST_TYPE(symbol.st_info);
    // Behind a file without a name GNU ld has what is local by its visibility alone.
    if (type == STT_FILE) {
      file_name = name != nullptr ? name : "";
      number = *file_name != '\0' ? ++files : 0;
    }
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
        name == nullptr || *name == '\0') {
      continue;
    }
    const bool is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
    functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name, is_local,
                         is_local ? number : 0, is_local ? file_name : ""});
  }
  return FindLinkedAllocators(functions);
}

}  // namespace trapline
