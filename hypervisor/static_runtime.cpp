#include "hypervisor/static_runtime.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "hypervisor/file_descriptor.h"
#include "translator/instruction.h"

namespace trapline {
namespace {

struct ElfDeleter {
  void operator()(Elf* elf) const { elf_end(elf); }
};
struct DwarfDeleter {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfDeleter>;

ElfHandle OpenElf(int fd) {
  elf_version(EV_CURRENT);
  return ElfHandle(elf_begin(fd, ELF_C_READ, nullptr));
}

// Calls `visit(symbol, name)` for each symbol of the section of type `type`. False: there is none.
template <typename Visit>
bool ForEachSymbol(Elf* elf, unsigned type, Visit visit) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != type) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr) return false;
    const int count = static_cast<int>(data->d_size / sizeof(Elf64_Sym));
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr) break;
      const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name != nullptr && *name != 0) visit(symbol, std::string_view(name));
    }
    return true;
  }
  return false;
}

// --- the program's file

struct Code {
  std::uint64_t begin = 0, end = 0;  // addresses before the bias
  bool is_text = false;              // where the compiler puts functions, unlike .init or .plt
  std::vector<std::uint8_t> bytes;
};

struct Symbol {
  std::uint64_t address = 0;
  std::string name;
  bool is_local = false, is_weak = false, is_resolver = false;
  unsigned file = 0;  // which of the source files the local symbols are of
};

struct Program {
  std::vector<Code> code;       // executable sections, lowest first
  std::vector<Symbol> symbols;  // of functions, lowest first
  std::vector<std::pair<std::uint64_t, std::uint64_t>> compiled;  // what debug info describes
  bool has_debug_info = false;

  const Code* CodeAt(std::uint64_t address) const {
    const auto after = std::upper_bound(
        code.begin(), code.end(), address,
        [](std::uint64_t value, const Code& section) { return value < section.begin; });
    if (after == code.begin() || address >= std::prev(after)->end) return nullptr;
    return &*std::prev(after);
  }
  bool IsCompiled(std::uint64_t address) const {
    const auto after =
        std::upper_bound(compiled.begin(), compiled.end(), std::pair{address, ~std::uint64_t{0}});
    return after != compiled.begin() && address < std::prev(after)->second;
  }
};

bool IsStaticProgram(Elf* elf) {
  GElf_Ehdr header;
  if (elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr ||
      header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

void ReadCode(Elf* elf, Program& program) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS ||
        (header.sh_flags & SHF_EXECINSTR) == 0 || (header.sh_flags & SHF_ALLOC) == 0)
      continue;
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const char* const name = elf_strptr(elf, names, header.sh_name);
    const auto* const bytes = static_cast<const std::uint8_t*>(data->d_buf);
    const std::string_view view = name != nullptr ? name : "";
    const bool is_text = view != ".init" && view != ".fini" && !view.starts_with(".plt") &&
                         view != ".iplt" && !view.starts_with("__libc_");
    program.code.push_back({header.sh_addr, header.sh_addr + data->d_size, is_text,
                            std::vector<std::uint8_t>(bytes, bytes + data->d_size)});
  }
  std::sort(program.code.begin(), program.code.end(),
            [](const Code& a, const Code& b) { return a.begin < b.begin; });
}

bool ReadSymbols(Elf* elf, Program& program) {
  unsigned file = 0;
  const bool found =
      ForEachSymbol(elf, SHT_SYMTAB, [&](const GElf_Sym& symbol, std::string_view name) {
        const unsigned type = GELF_ST_TYPE(symbol.st_info);
        if (type == STT_FILE) ++file;
        if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) return;
        if (program.CodeAt(symbol.st_value) == nullptr) return;
        program.symbols.push_back(
            {symbol.st_value, std::string(name), GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
             GELF_ST_BIND(symbol.st_info) == STB_WEAK, type == STT_GNU_IFUNC, file});
      });
  std::sort(program.symbols.begin(), program.symbols.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.address, a.name) < std::tie(b.address, b.name);
  });
  return found && !program.symbols.empty();
}

// What any unit of debug info describes. Debian's static libraries have none.
void ReadUnits(Elf* elf, Program& program) {
  const std::unique_ptr<Dwarf, DwarfDeleter> dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
  if (!dwarf) return;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  std::uint8_t type = 0;
  while (dwarf_get_units(dwarf.get(), unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
      // What the linker left out is described at address 0 or so.
      if (begin < end && program.CodeAt(begin) != nullptr)
        program.compiled.emplace_back(begin, end);
    }
  }
  std::sort(program.compiled.begin(), program.compiled.end());
  program.has_debug_info = !program.compiled.empty();
}

// --- names

// The names the system's runtimes export.
const std::unordered_set<std::string>& ExportedNames() {
  static const auto* const kNames = [] {
    auto* const names = new std::unordered_set<std::string>;
    for (const char* library : {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}) {
      for (const char* directory : {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/",
                                    "/lib64/", "/usr/lib64/", "/usr/lib/"}) {
        const FileDescriptor file(
            open((std::string(directory) + library).c_str(), O_RDONLY | O_CLOEXEC));
        if (file.get() < 0) continue;
        const ElfHandle elf = OpenElf(file.get());
        if (!elf) continue;
        ForEachSymbol(elf.get(), SHT_DYNSYM, [&](const GElf_Sym& symbol, std::string_view name) {
          if (symbol.st_shndx != SHN_UNDEF) names->emplace(name);
        });
        break;
      }
    }
    return names;
  }();
  return *kNames;
}

bool IsCxxName(std::string_view name) { return name.starts_with("_Z"); }

// Of the C++ library's own namespaces; also what it instantiates for the program.
bool IsCxxLibraryName(std::string_view name) {
  for (const std::string_view scope :
       {"_ZNSt", "_ZNKSt", "_ZSt", "_ZNSs", "_ZNKSs", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
        "_ZN10__cxxabiv1", "_ZNK10__cxxabiv1"}) {
    if (name.starts_with(scope)) return true;
  }
  return IsCxxName(name) && (name.starts_with("_ZThn") || name.starts_with("_ZTv0"));
}

// Names that ISO C keeps for the implementation where they are a file's own or global (C11 7.1.3).
bool IsReservedName(std::string_view name) { return name.starts_with('_') && !IsCxxName(name); }

// Names that glibc gives to functions of one file only.
bool IsGnuLibcName(std::string_view name) {
  return name.starts_with("__libc_") || name.starts_with("_IO_") || name.starts_with("_dl_") ||
         name.starts_with("_nl_") || name.starts_with("__nptl_");
}

// Of every program, from the compiler's start files.
bool IsStartFileName(std::string_view name) {
  return name == "_start" || name == "_init" || name == "_fini" || name == "frame_dummy" ||
         name == "deregister_tm_clones" || name == "register_tm_clones" ||
         name == "__do_global_dtors_aux" || name == "_dl_relocate_static_pie";
}

// --- whose code it is

enum class Evidence : std::uint8_t { kNone, kReservedName, kLibrary, kProgram };

struct Function {
  std::uint64_t address = 0;
  Evidence evidence = Evidence::kNone;
  bool is_library = false;
  bool is_cxx = false;
  bool in_text = true;
  std::string_view name;
  unsigned file = 0;  // 0: not known, or global
};

// "f" of "f.cold", "f.part.0", "f.constprop.0".
std::string_view BaseName(std::string_view name) { return name.substr(0, name.find('.', 1)); }

Evidence EvidenceOf(const Symbol& symbol, const Program& program) {
  if (IsStartFileName(symbol.name)) return Evidence::kLibrary;
  const bool exported = ExportedNames().contains(symbol.name);
  if (symbol.is_local) return Evidence::kNone;
  if (exported) return Evidence::kLibrary;
  if (IsReservedName(symbol.name)) return Evidence::kReservedName;
  if (IsCxxLibraryName(symbol.name)) return Evidence::kNone;
  // Weak names need not keep to C's rules (clone3).
  if (symbol.is_weak && !IsCxxName(symbol.name)) return Evidence::kNone;
  // Without the shared libraries to compare with, a name of its own says nothing: the libraries'
  // code is then what has no debug info.
  if (program.has_debug_info && ExportedNames().empty()) return Evidence::kNone;
  return Evidence::kProgram;
}

bool IsDecided(Evidence evidence) {
  return evidence == Evidence::kLibrary || evidence == Evidence::kProgram;
}

// Where the local functions of one source file lie, and whose functions lie among them: those are
// of the same file.
struct Extent {
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  bool program = false, library = false;
};

std::map<unsigned, Extent> FilesOf(const std::vector<Function>& functions) {
  std::map<unsigned, Extent> files;
  for (const Function& function : functions) {
    // The unlikely parts of functions lie elsewhere, all together.
    if (function.file == 0 || function.name.ends_with(".cold")) continue;
    Extent& file = files[function.file];
    file.begin = std::min(file.begin, function.address);
    file.end = std::max(file.end, function.address);
    file.library = file.library || IsGnuLibcName(function.name);
  }
  for (auto& [number, file] : files) {
    auto at = std::lower_bound(
        functions.begin(), functions.end(), file.begin,
        [](const Function& function, std::uint64_t address) { return function.address < address; });
    for (; at != functions.end() && at->address <= file.end; ++at) {
      file.program = file.program || at->evidence == Evidence::kProgram;
      file.library = file.library || at->evidence == Evidence::kLibrary;
    }
  }
  return files;
}

std::vector<Function> Classify(const Program& program) {
  std::vector<Function> functions;
  std::unordered_map<std::string_view, bool> cold;  // name of the whole function -> is_library
  for (const Symbol& symbol : program.symbols) {
    if (functions.empty() || functions.back().address != symbol.address) {
      functions.emplace_back().address = symbol.address;
      functions.back().in_text = program.CodeAt(symbol.address)->is_text;
      if (program.IsCompiled(symbol.address)) functions.back().evidence = Evidence::kProgram;
    }
    Function& function = functions.back();
    if (function.name.empty() || !symbol.is_local) function.name = symbol.name;
    function.file = symbol.is_local ? symbol.file : 0;
    function.is_cxx = function.is_cxx || IsCxxName(symbol.name) ||
                      symbol.name.starts_with("__cxa_") || symbol.name.starts_with("__gxx_");
    if (program.IsCompiled(symbol.address)) continue;
    const Evidence evidence = EvidenceOf(symbol, program);
    // Among the names of one address, one that a library exports decides.
    if (evidence == Evidence::kLibrary || function.evidence == Evidence::kNone ||
        (evidence == Evidence::kReservedName && function.evidence == Evidence::kProgram))
      function.evidence = evidence;
  }
  // A function of which nothing is known belongs to those around it: the linker puts the program's
  // files first and then the libraries'.
  const std::map<unsigned, Extent> files = FilesOf(functions);
  std::vector<Evidence> before(functions.size()), after(functions.size());
  // The start files come before the program.
  std::vector<bool> after_start_files(functions.size());
  Evidence nearest = Evidence::kNone;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    before[i] = nearest;
    after_start_files[i] =
        i > 0 && functions[i - 1].in_text &&
        (IsDecided(functions[i - 1].evidence) ? IsStartFileName(functions[i - 1].name)
                                              : after_start_files[i - 1]);
    if (IsDecided(functions[i].evidence)) nearest = functions[i].evidence;
  }
  nearest = Evidence::kNone;
  for (std::size_t i = functions.size(); i-- > 0;) {
    after[i] = nearest;
    if (IsDecided(functions[i].evidence)) nearest = functions[i].evidence;
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Function& function = functions[i];
    // NOLINTNEXTLINE(bugprone-branch-clone): one rule after the other
    if (!function.in_text) {
      function.is_library = true;
    } else if (IsDecided(function.evidence)) {
      function.is_library = function.evidence == Evidence::kLibrary;
    } else if (before[i] == Evidence::kProgram && after[i] == Evidence::kProgram) {
      function.is_library = false;
    } else if (before[i] != Evidence::kProgram && after[i] != Evidence::kProgram &&
               (program.has_debug_info || !after_start_files[i])) {
      function.is_library = true;
    } else if (const auto file = files.find(function.file);
               file != files.end() && file->second.program != file->second.library) {
      function.is_library = file->second.library;
    } else if (before[i] == Evidence::kProgram) {
      // Behind the program. With debug info everything of it is known already.
      function.is_library = program.has_debug_info || IsReservedName(function.name);
    } else {
      function.is_library = !after_start_files[i] || IsGnuLibcName(function.name);
    }
    if (function.name.find('.', 1) == std::string_view::npos)
      cold.emplace(function.name, function.is_library);
  }
  // The unlikely parts of functions lie elsewhere, all together.
  for (Function& function : functions) {
    if (!function.in_text || function.evidence != Evidence::kNone) continue;
    const std::string_view base = BaseName(function.name);
    const auto whole = cold.find(base);
    if (base != function.name && whole != cold.end()) function.is_library = whole->second;
  }
  return functions;
}

// --- where calls are recognised

constexpr std::uint32_t Bit(std::uint8_t number) { return std::uint32_t{1} << number; }
constexpr std::uint8_t kArgumentRegisters[] = {kRdi, kRsi, kRdx, kRcx, 8, 9};

// The stack and the thread's own block are memory that always traps; other memory may be read-only.
bool SurelyTraps(const Instruction& instruction) {
  const auto operands = instruction.memory();
  return std::any_of(operands.begin(), operands.end(), [](const MemoryOperand& operand) {
    return operand.base == kRsp || operand.base == kRbp || operand.segment == Segment::kFs;
  });
}

// The instruction at `address`; nothing if there is none.
std::optional<Instruction> DecodeAt(const Program& program, std::uint64_t address) {
  const Code* const code = program.CodeAt(address);
  if (code == nullptr) return std::nullopt;
  const std::size_t offset = address - code->begin;
  return Decode(
      std::span(code->bytes)
          .subspan(offset, std::min(kMaximumInstructionLength, code->bytes.size() - offset)),
      address);
}

// Follows all ways from the start of a function to their first accesses.
class EntryFinder {
 public:
  EntryFinder(const Program& program, const RuntimeFunction& function)
      : program_(program), function_(function) {
    for (unsigned i = 0; i < function.arguments; ++i) needed_ |= Bit(kArgumentRegisters[i]);
  }

  // Address -> depth of rsp.
  std::map<std::uint64_t, std::uint64_t> Find(std::uint64_t start) {
    ways_.push_back({start, 0});
    for (int budget = kMostInstructions; !ways_.empty() && budget > 0; --budget) {
      const Way way = ways_.front();
      ways_.pop_front();
      if (seen_.insert(way.at).second) Step(way);
    }
    return std::move(entries_);
  }

 private:
  static constexpr int kMostInstructions = 200;
  struct Way {
    std::uint64_t at, depth;
  };

  void Step(const Way& way) {
    const auto instruction = DecodeAt(program_, way.at);
    if (!instruction) return;
    if (!instruction->memory().empty()) {
      entries_.emplace(way.at, way.depth);
      if (SurelyTraps(*instruction) || instruction->branch != Branch::kNone) return;
    }
    const std::uint32_t changed = ChangedRegisters(*instruction);
    if ((changed & needed_) != 0) return;
    std::uint64_t depth = way.depth;
    if ((changed & Bit(kRsp)) != 0) {
      const bool subtracts = (instruction->opcode == 0x83 || instruction->opcode == 0x81) &&
                             (instruction->modrm >> 3 & 7) == 5;
      if (!subtracts) return;
      depth += Immediate(*instruction, way.at);
    }
    const std::uint64_t next = way.at + instruction->length;
    switch (instruction->branch) {
      case Branch::kNone:
        ways_.push_back({next, depth});
        break;
      case Branch::kJump:
        ways_.push_back({instruction->target, depth});
        break;
      case Branch::kConditional:
        ways_.push_back({next, depth});
        ways_.push_back({instruction->target, depth});
        break;
      default:
        break;
    }
  }

  std::uint64_t Immediate(const Instruction& instruction, std::uint64_t address) const {
    const Code& code = *program_.CodeAt(address);
    const std::uint8_t* const at =
        code.bytes.data() + (address - code.begin) + instruction.immediate_offset;
    if (instruction.immediate_size == 1) return *at;
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  const Program& program_;
  const RuntimeFunction& function_;
  std::uint32_t needed_ = 0;
  std::deque<Way> ways_;
  std::set<std::uint64_t> seen_;
  std::map<std::uint64_t, std::uint64_t> entries_;
};

// The functions that must be seen whoever calls them, and those they jump to instead of returning:
// start -> end.
class WatchedFunctions {
 public:
  WatchedFunctions(const Program& program, const std::vector<Function>& functions)
      : program_(program), functions_(functions) {}

  void Add(std::uint64_t address) {
    std::deque<std::uint64_t> todo{address};
    while (!todo.empty()) {
      const auto after = std::upper_bound(
          functions_.begin(), functions_.end(), todo.front(),
          [](std::uint64_t value, const Function& function) { return value < function.address; });
      todo.pop_front();
      if (after == functions_.begin()) continue;
      const std::uint64_t begin = std::prev(after)->address;
      const std::uint64_t section_end = program_.CodeAt(begin)->end;
      const std::uint64_t end =
          after != functions_.end() ? std::min(after->address, section_end) : section_end;
      if (!ranges_.emplace(begin, end).second) continue;
      for (const std::uint64_t target : JumpsOut(begin, end)) todo.push_back(target);
    }
  }

  bool Overlap(std::uint64_t begin, std::uint64_t end) const {
    const auto after = ranges_.lower_bound(end);
    return after != ranges_.begin() && std::prev(after)->second > begin;
  }

 private:
  std::vector<std::uint64_t> JumpsOut(std::uint64_t begin, std::uint64_t end) const {
    std::vector<std::uint64_t> out;
    std::set<std::uint64_t> seen;
    std::deque<std::uint64_t> ways{begin};
    while (!ways.empty()) {
      const std::uint64_t at = ways.front();
      ways.pop_front();
      if (at < begin || at >= end) {
        out.push_back(at);
        continue;
      }
      if (!seen.insert(at).second) continue;
      const auto instruction = DecodeAt(program_, at);
      if (!instruction) continue;
      const Branch branch = instruction->branch;
      if (branch == Branch::kJump || branch == Branch::kConditional)
        ways.push_back(instruction->target);
      if (branch != Branch::kJump && branch != Branch::kIndirectJump && branch != Branch::kReturn &&
          branch != Branch::kOther)
        ways.push_back(at + instruction->length);
    }
    return out;
  }

  const Program& program_;
  const std::vector<Function>& functions_;
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

// Whether an instruction may lie on both sides of `boundary`.
bool IsStraddled(const Program& program, const std::vector<Function>& functions,
                 std::uint64_t boundary) {
  if (program.CodeAt(boundary) == nullptr) return false;
  const auto after = std::upper_bound(
      functions.begin(), functions.end(), boundary,
      [](std::uint64_t value, const Function& function) { return value < function.address; });
  if (after == functions.begin()) return true;
  std::uint64_t at = std::prev(after)->address;
  while (at < boundary) {
    const auto instruction = DecodeAt(program, at);
    if (!instruction) return true;
    at += instruction->length;
  }
  return at != boundary;
}

}  // namespace

std::uint32_t ChangedRegisters(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  const std::uint8_t group = instruction.modrm >> 3 & 7;
  const std::uint32_t reg = instruction.has_modrm ? Bit(instruction.reg()) : 0;
  const std::uint32_t rm =
      instruction.has_modrm && !instruction.modrm_is_memory() ? Bit(instruction.rm()) : 0;
  const std::uint32_t low = Bit(instruction.opcode_reg());
  const bool is_legacy = instruction.encoding == Encoding::kLegacy;
  const auto in = [opcode](unsigned first, unsigned last) {
    return opcode >= first && opcode <= last;
  };
  constexpr std::uint32_t kAll = 0xffff;
  if (is_legacy && instruction.map == kMapOneByte) {
    if (opcode < 0x40) {
      if (opcode >= 0x38) return 0;  // cmp
      const unsigned form = opcode & 7;
      return form < 2 ? rm : form < 4 ? reg : Bit(kRax);
    }
    if (in(0x50, 0x57)) return Bit(kRsp);
    if (in(0x58, 0x5f)) return low | Bit(kRsp);
    if (opcode == 0x63 || opcode == 0x69 || opcode == 0x6b || opcode == 0x8a || opcode == 0x8b ||
        opcode == 0x8d)
      return reg;
    if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c || opcode == 0x9d) return Bit(kRsp);
    if (in(0x70, 0x7f) || opcode == 0x84 || opcode == 0x85) return 0;
    if (in(0x80, 0x83)) return group == 7 ? 0 : rm;
    if (in(0x86, 0x87)) return reg | rm;
    if (in(0x88, 0x89) || opcode == 0xc6 || opcode == 0xc7) return rm;
    if (opcode == 0x8f) return rm | Bit(kRsp);
    if (opcode == 0x90) return (instruction.rex & 1) != 0 ? Bit(kRax) | Bit(8) : 0;
    if (in(0x91, 0x97)) return low | Bit(kRax);
    if (opcode == 0x98) return Bit(kRax);
    if (opcode == 0x99) return Bit(kRdx);
    if (in(0xa4, 0xa7) || in(0xaa, 0xaf)) return Bit(kRdi) | Bit(kRsi) | Bit(kRcx) | Bit(kRax);
    if (in(0xa8, 0xa9) || in(0xf8, 0xf9)) return 0;
    if (in(0xb0, 0xbf)) return low;
    if (in(0xc0, 0xc1) || in(0xd0, 0xd3)) return rm;
    if (in(0xe8, 0xe9) || opcode == 0xeb) return 0;
    if (in(0xf6, 0xf7)) return group < 2 ? 0 : group < 4 ? rm : Bit(kRax) | Bit(kRdx);
    if (in(0xfe, 0xff)) return group < 2 ? rm : group == 6 ? Bit(kRsp) : 0;
    return kAll;
  }
  if (is_legacy && instruction.map == kMap0F) {
    if (opcode == 0x0b || in(0x0d, 0x1f) || in(0x28, 0x2b) || in(0x2e, 0x2f)) return 0;
    if (opcode == 0x2c || opcode == 0x2d || opcode == 0x50 || opcode == 0xc5 || opcode == 0xd7)
      return reg;
    if (in(0x40, 0x4f) || opcode == 0xaf || in(0xb6, 0xb8) || in(0xbc, 0xbf)) return reg;
    if (opcode == 0x7e && instruction.mandatory != 0xf3) return rm;
    if (in(0x80, 0x8f) || opcode == 0xa3) return 0;
    if (in(0x90, 0x9f) || opcode == 0xa4 || opcode == 0xa5 || opcode == 0xab || opcode == 0xac ||
        opcode == 0xad || opcode == 0xb3 || opcode == 0xbb)
      return rm;
    if (opcode == 0xa2) return Bit(kRax) | Bit(kRcx) | Bit(kRdx) | Bit(kRbx);
    if (opcode == 0xae) return rm;  // fences; rdfsbase and the like
    if (in(0xb0, 0xb1)) return rm | Bit(kRax);
    if (opcode == 0xba) return group == 4 ? 0 : rm;
    if (in(0xc0, 0xc1)) return reg | rm;
    if (opcode == 0xc7) return kAll;
    if (in(0xc8, 0xcf)) return low;
    if (in(0x51, 0x7f) || in(0xc2, 0xc6) || in(0xd0, 0xff)) return 0;  // vectors
    return kAll;
  }
  if (is_legacy) {
    // crc32 and movbe; pextr. The rest are vectors.
    if (instruction.map == kMap0F38) return in(0xf0, 0xf1) || in(0xf6, 0xf6) ? reg | rm : 0;
    if (instruction.map == kMap0F3A) return in(0x14, 0x17) ? rm : 0;
    return kAll;
  }
  if (instruction.encoding == Encoding::kVex || instruction.encoding == Encoding::kEvex) {
    if (instruction.map == kMap0F) {
      if (opcode == 0x7e && instruction.mandatory != 0xf3) return rm;
      const bool to_general = opcode == 0x2c || opcode == 0x2d || opcode == 0x50 ||
                              opcode == 0xc5 || opcode == 0xd7 ||
                              (instruction.encoding == Encoding::kVex && opcode == 0x93);
      return to_general ? reg : 0;
    }
    if (instruction.map == kMap0F38) {
      if (!in(0xf0, 0xf7)) return 0;
      return reg | Bit(instruction.vvvv & 15);  // bit manipulation
    }
    if (instruction.map == kMap0F3A) {
      if (opcode == 0xf0) return reg;
      return in(0x14, 0x17) ? rm : 0;
    }
  }
  return kAll;
}

std::unique_ptr<const StaticRuntime> StaticRuntime::Read(int fd, std::uint64_t bias) {
  const ElfHandle elf = OpenElf(fd);
  if (!elf || !IsStaticProgram(elf.get())) return nullptr;
  Program program;
  ReadCode(elf.get(), program);
  if (!ReadSymbols(elf.get(), program)) return nullptr;
  ReadUnits(elf.get(), program);

  auto runtime = std::make_unique<StaticRuntime>();
  std::vector<Range>& ranges = runtime->ranges_;
  const auto add = [&](std::uint64_t begin, std::uint64_t end, CodeOwner owner) {
    if (begin >= end) return;
    if (!ranges.empty() && ranges.back().end == begin + bias && ranges.back().owner == owner) {
      ranges.back().end = end + bias;
    } else {
      ranges.push_back({begin + bias, end + bias, owner});
    }
  };
  const std::vector<Function> functions = Classify(program);
  auto function = functions.begin();
  for (const Code& code : program.code) {
    if (function == functions.end() || function->address >= code.end) {
      // Linkage tables have no symbols.
      add(code.begin, code.end, code.is_text ? CodeOwner::kProgram : CodeOwner::kLibrary);
      continue;
    }
    add(code.begin, function->address, CodeOwner::kLibrary);
    for (; function != functions.end() && function->address < code.end; ++function) {
      const auto next = std::next(function);
      const std::uint64_t end =
          next != functions.end() ? std::min(next->address, code.end) : code.end;
      add(function->address, end,
          !function->is_library ? CodeOwner::kProgram
          : function->is_cxx    ? CodeOwner::kCxxLibrary
                                : CodeOwner::kLibrary);
    }
  }

  // A function's own start comes before a way that leads there from another one.
  std::map<std::uint64_t, const RuntimeFunction*> known;
  for (const Symbol& symbol : program.symbols) {
    if (symbol.is_resolver || !runtime->IsRuntime(symbol.address + bias)) continue;
    runtime->is_musl_ = runtime->is_musl_ || symbol.name == "__init_libc";
    const RuntimeFunction* const found = FindRuntimeFunction(symbol.name);
    if (found != nullptr) known.emplace(symbol.address, found);
  }
  for (const auto& [address, found] : known) {
    const auto entries = EntryFinder(program, *found).Find(address);
    if (entries.empty()) runtime->unrecognised_.emplace_back(found->name);
    for (const auto& [at, depth] : entries) {
      const auto owner = std::prev(known.upper_bound(at));
      const bool is_own = owner->first == address;
      const RuntimeEntry entry{found, depth};
      if (is_own) {
        runtime->entries_.insert_or_assign(at + bias, entry);
      } else {
        runtime->entries_.emplace(at + bias, entry);
      }
    }
  }

  WatchedFunctions watched(program, functions);
  for (const auto& [address, found] : known) {
    // What the runtime reads and writes for itself does not count.
    if (!found->IsAccess()) watched.Add(address);
  }
  constexpr std::uint64_t kPage = 4096;
  // What lies between the sections is not run.
  for (std::uint64_t page = program.code.front().begin / kPage * kPage;
       page < program.code.back().end; page += kPage) {
    if (watched.Overlap(page, page + kPage)) continue;
    const std::uint64_t begin = page + bias, end = begin + kPage;
    bool is_runtime = false, is_program = false;
    for (const Range& range : ranges) {
      if (range.begin >= end || range.end <= begin) continue;
      (range.owner == CodeOwner::kProgram ? is_program : is_runtime) = true;
    }
    if (is_program || !is_runtime) continue;
    std::vector<Range>& pages = runtime->unwatched_pages_;
    if (!pages.empty() && pages.back().end == begin) {
      pages.back().end = end;
    } else {
      pages.push_back({begin, end, CodeOwner::kLibrary});
    }
  }
  // An instruction that reaches into a watched page would find no view to run in.
  for (Range& pages : runtime->unwatched_pages_) {
    while (pages.begin < pages.end && IsStraddled(program, functions, pages.end - bias))
      pages.end -= kPage;
  }
  std::erase_if(runtime->unwatched_pages_,
                [](const Range& pages) { return pages.begin == pages.end; });
  return runtime;
}

CodeOwner StaticRuntime::OwnerOf(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin() || address >= std::prev(after)->end) return CodeOwner::kProgram;
  return std::prev(after)->owner;
}

const RuntimeEntry* StaticRuntime::EntryAt(std::uint64_t address) const {
  const auto found = entries_.find(address);
  return found != entries_.end() ? &found->second : nullptr;
}

}  // namespace trapline
