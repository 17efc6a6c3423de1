#include "symbols/symbolizer.h"

#include <cxxabi.h>
#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "symbols/atomic_macros.h"
#include "symbols/debug_info.h"
#include "symbols/dwarf_types.h"
#include "symbols/elf_symbols.h"
#include "symbols/imports.h"
#include "symbols/module_image.h"
#include "symbols/program_text.h"
#include "symbols/source_lines.h"
#include "symbols/synchronising_function.h"

namespace trapline {
namespace {

// Answers remembered for addresses of data; more are worked out again.
constexpr std::size_t kMaxRememberedAddresses = 1 << 16;
constexpr std::size_t kMaxLoadedHeaders = 512;
// So often the files of a library are given back: reading them again takes a tenth of a second.
constexpr unsigned kMostReleases = 8;
constexpr std::uint64_t kMaxThreadModules = 4096;  // entries of a dtv that are looked at

constexpr std::uint64_t PageOf(std::uint64_t address) { return address & ~std::uint64_t{4095}; }

// The system's libraries, and what Trapline itself brings along.
bool IsSystemLibrary(const std::string& path) {
  return path.starts_with("/usr/lib") || path.starts_with("/lib") ||
         path.find("/libtrapline-") != std::string::npos;
}

// Whether it is a header of the compiler's or the C++ library: which of those do atomic operations
// is known (IsAtomicHeader).
bool IsOfCompiler(const std::string& file) {
  return file.find("/include/c++/") != std::string::npos ||
         file.find("/x86_64-linux-gnu/c++/") != std::string::npos ||
         file.find("/lib/gcc/") != std::string::npos ||
         file.find("/lib/clang/") != std::string::npos;
}

bool IsMangled(const char* name) { return std::strncmp(name, "_Z", 2) == 0; }

// "counter.0" as compilers call a C function's static variable.
std::string WithoutNumber(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == 0 || dot == std::string::npos || dot + 1 == name.size() ||
      name.find_first_not_of("0123456789", dot + 1) != std::string::npos) {
    return name;
  }
  return name.substr(0, dot);
}

// The registers of a frame that are known.
FrameRegisters RegistersOf(const StackFrame& frame) {
  FrameRegisters registers{};
  registers[kRbp] = frame.rbp;
  registers[kRsp] = frame.rsp;
  return registers;
}

// The PT_TLS segment of the module; size 0: none.
Elf64_Phdr ThreadLocalSegment(const Module& module, const MemoryReader& memory) {
  Elf64_Ehdr header;
  Elf64_Phdr segment{};
  if (!memory(module.begin, &header, sizeof header) || header.e_phnum > kMaxLoadedHeaders)
    return segment;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr candidate;
    if (!memory(module.begin + header.e_phoff + i * sizeof candidate, &candidate,
                sizeof candidate)) {
      break;
    }
    if (candidate.p_type == PT_TLS) return candidate;
  }
  return segment;
}

// The first word of the link map (link.h, struct r_debug) by the main program's dynamic section; 0:
// there is none.
std::uint64_t FirstLink(const Module& main, const MemoryReader& memory) {
  Elf64_Ehdr header;
  if (!memory(main.begin, &header, sizeof header) || header.e_phnum > kMaxLoadedHeaders) return 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!memory(main.begin + header.e_phoff + i * sizeof segment, &segment, sizeof segment)) break;
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_memsz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!memory(main.bias + segment.p_vaddr + at, &entry, sizeof entry)) break;
      if (entry.d_tag != DT_DEBUG) continue;
      std::uint64_t first = 0;
      return memory(entry.d_un.d_ptr + 8, &first, sizeof first) ? first : 0;
    }
  }
  return 0;
}

// A variable from what debug info and symbol table say of it.
std::optional<DataPlace> Combine(const Module* module, std::uint64_t offset,
                                 const std::optional<DebugInfo::Variable>& variable,
                                 const ElfSymbols::Symbol* symbol) {
  if (!variable && symbol == nullptr) return std::nullopt;
  DataPlace place;
  place.module = module;
  if (symbol != nullptr) {
    place.symbol = Demangle(symbol->name);
    place.offset = offset - symbol->begin;
    place.size = symbol->end - symbol->begin;
  }
  if (variable) {
    // A mangled name says more than the one declared.
    if (symbol == nullptr || place.symbol == symbol->name) place.symbol = variable->name;
    place.offset = offset - variable->begin;
    place.size = variable->size;
    place.expression = variable->expression;
    place.type = variable->type;
    place.file = variable->file;
    place.line = variable->line;
  } else {
    place.symbol = WithoutNumber(place.symbol);
  }
  return place;
}

}  // namespace

std::string Demangle(const std::string& name) {
  if (!IsMangled(name.c_str())) return name;
  int error = 0;
  // Parts and copies of a function have suffixes: ".cold", ".isra.0".
  const std::string whole = name.substr(0, name.find('.'));
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &error), &std::free);
  if (error != 0) return name;
  std::string text = plain.get();
  // Rust's older names carry a hash: "::h" and 16 digits.
  constexpr std::size_t kHash = 19;
  if (text.size() > kHash && text.compare(text.size() - kHash, 3, "::h") == 0 &&
      text.find_first_not_of("0123456789abcdef", text.size() - 16) == std::string::npos) {
    text.resize(text.size() - kHash);
  }
  return text;
}

std::optional<DataPlace> VariableAt(DebugInfo* debug_info, const ElfSymbols* symbols,
                                    std::uint64_t offset) {
  std::optional<DebugInfo::Variable> variable;
  if (debug_info != nullptr) variable = debug_info->FindStatic(offset);
  return Combine(nullptr, offset, variable,
                 symbols != nullptr ? symbols->FindObject(offset) : nullptr);
}

std::vector<SourceFrame> NamesAt(DebugInfo* debug_info, const ElfSymbols* symbols,
                                 std::uint64_t offset) {
  std::vector<SourceFrame> frames;
  if (debug_info != nullptr) frames = debug_info->Frames(offset);
  if (frames.empty()) frames.emplace_back();
  const ElfSymbols::Symbol* symbol = symbols != nullptr ? symbols->FindFunction(offset) : nullptr;
  // Debug information has no linkage names of what is local to a file.
  std::string& function = frames.back().function;
  if (symbol != nullptr &&
      (function.empty() || (IsMangled(symbol->name) && !IsMangled(function.c_str())))) {
    function = symbol->name;
  }
  for (SourceFrame& frame : frames) frame.function = Demangle(frame.function);
  return frames;
}

class Symbolizer::Implementation {
 public:
  Implementation(Modules& modules, SymbolizerOptions options)
      : modules_(modules), options_(std::move(options)) {}

  CodePlace ResolveCode(const Module* module, std::uint64_t address) {
    CodePlace place;
    place.address = address;
    place.module = module;
    if (module != nullptr) {
      place.offset = address - module->bias;
      const std::unique_lock lock(mutex_);
      place.frames = IsSystemLibrary(module->path) ? LibraryFramesLocked(*module, place.offset)
                                                   : FramesLocked(*module, place.offset);
    } else {
      place.frames.emplace_back();
    }
    return place;
  }

  std::optional<DataPlace> ResolveData(std::uint64_t address) {
    const Module* module = modules_.Find(address);
    if (module == nullptr) return std::nullopt;
    const std::unique_lock lock(mutex_);
    Contents& contents = ContentsOf(*module);
    auto place =
        VariableAt(contents.debug_info ? &*contents.debug_info : nullptr,
                   contents.symbols ? &*contents.symbols : nullptr, address - module->bias);
    if (place) place->module = module;
    return place;
  }

  std::optional<DataPlace> ResolveThreadLocal(std::uint64_t address, std::uint64_t thread_pointer,
                                              const MemoryReader& memory) {
    std::uint64_t offset = 0;
    const Module* module = ThreadLocalModule(address, thread_pointer, memory, offset);
    if (module == nullptr) return std::nullopt;
    const std::unique_lock lock(mutex_);
    Contents& contents = ContentsOf(*module);
    std::optional<DebugInfo::Variable> variable;
    if (contents.debug_info) variable = contents.debug_info->FindThreadLocal(offset);
    const ElfSymbols::Symbol* symbol =
        contents.symbols ? contents.symbols->FindThreadLocal(offset) : nullptr;
    DataPlace nameless;
    nameless.module = module;
    nameless.offset = offset;
    return Combine(module, offset, variable, symbol).value_or(nameless);
  }

  std::optional<StackVariable> ResolveStack(std::uint64_t address,
                                            std::span<const StackFrame> frames) {
    // A frame's variables lie below its CFA; parameters on the stack lie above it, in what is the
    // caller's frame otherwise.
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::uint64_t cfa = frames[i].cfa;
      if (cfa == 0) continue;
      if (auto variable = LocalOf(frames[i], address)) {
        variable->frame = i;
        return variable;
      }
      if (address < cfa) break;
    }
    return std::nullopt;
  }

  bool IsAtomicByDebugInfo(std::uint64_t pc) {
    {
      const std::shared_lock lock(answers_mutex_);
      const auto known = atomic_code_.find(pc);
      if (known != atomic_code_.end()) return known->second;
    }
    const Module* module = modules_.Find(pc);
    if (module == nullptr) return false;
    bool answer = false;
    {
      const std::unique_lock lock(mutex_);
      Contents& contents = ContentsOf(*module);
      answer = contents.debug_info && (contents.debug_info->IsAtomic(pc - module->bias) ||
                                       IsAtomicBySourceLocked(*module, contents, pc));
      if (!answer) answer = IsAtomicByName(contents, pc - module->bias);
    }
    const std::unique_lock lock(answers_mutex_);
    atomic_code_[pc] = answer;
    answer_pages_.insert(PageOf(pc));
    return answer;
  }

  bool IsAtomicBySource(std::uint64_t pc) {
    const Module* module = modules_.Find(pc);
    if (module == nullptr) return false;
    const std::unique_lock lock(mutex_);
    return IsAtomicBySourceLocked(*module, ContentsOf(*module), pc);
  }

  bool IsAtomicVariable(std::uint64_t address, std::uint64_t size) {
    {
      const std::shared_lock lock(answers_mutex_);
      const auto known = atomic_data_.find(address);
      if (known != atomic_data_.end()) return size <= known->second;
    }
    const Module* module = modules_.FindKnown(address);
    if (module == nullptr) return false;
    std::uint64_t answer = 0;
    {
      const std::unique_lock lock(mutex_);
      Contents& contents = ContentsOf(*module);
      const std::uint64_t offset = address - module->bias;
      if (contents.symbols) {
        const auto* symbol = contents.symbols->FindObject(offset);
        if (symbol != nullptr) answer = AtomicBytesOfVariable(symbol->name);
      }
      if (answer == 0 && contents.debug_info) {
        const auto variable = contents.debug_info->FindStatic(offset);
        if (variable) answer = variable->atomic_bytes;
      }
    }
    const std::unique_lock lock(answers_mutex_);
    if (atomic_data_.size() >= kMaxRememberedAddresses) atomic_data_.clear();
    atomic_data_[address] = answer;
    answer_pages_.insert(PageOf(address));
    return size <= answer;
  }

  bool MayHoldAtomics(const Module& module) {
    const std::unique_lock lock(mutex_);
    Contents& contents = ContentsOf(module);
    if (contents.image == nullptr) return true;
    // Guards of static variables are tested by plain loads.
    const ElfFile& file = contents.image->file();
    if (file.HasText(".dynstr", "__cxa_guard_release")) return true;
    if (contents.bare_code.MayFind(file, contents.symbols ? &*contents.symbols : nullptr))
      return true;
    const auto any = [](const std::vector<ElfSymbols::Symbol>& symbols, auto&& is) {
      return std::ranges::any_of(symbols,
                                 [&](const ElfSymbols::Symbol& symbol) { return is(symbol.name); });
    };
    if (contents.symbols && (any(contents.symbols->functions(), &IsSynchronisingFunction) ||
                             any(contents.symbols->objects(), &AtomicBytesOfVariable))) {
      return true;
    }
    if (!contents.debug_info) return false;
    if (contents.debug_info->MayHoldAtomics()) return true;
    constexpr std::size_t kMostFiles = 512;
    const DebugInfo::Sources sources = contents.debug_info->SourceFiles();
    const std::time_t built = BuiltAt(contents);
    if (sources.files.size() > kMostFiles || built == 0 || !MacrosOf(contents).empty()) {
      return true;
    }
    return std::ranges::any_of(sources.files, [&](const std::string& source) {
      return !IsOfCompiler(source) && sources_.HasAtomic(source, built);
    });
  }

  OrderAnswer OrderOf(std::span<const std::uint64_t> stack, bool writes, bool reads) {
    if (!options_.use_files || stack.empty()) return OrderAnswer::Unknown(writes);
    const std::unique_lock lock(mutex_);
    // Other modules may have brought fences.
    if (const auto now = modules_.generation(); std::exchange(orders_generation_, now) != now)
      orders_.clear();
    const auto known = orders_.find(stack[0]);
    if (known != orders_.end()) return known->second;
    std::string function;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const std::uint64_t pc = i == 0 ? stack[0] : stack[i] - 1;
      OrderAnswer answer = OrderAnswer::Unknown(writes);
      const bool is_callers = !OrderAtLocked(pc, !reads && i == 0, function, answer);
      if (is_callers) continue;
      if (i == 0) orders_[pc] = answer;
      return answer;
    }
    return OrderAnswer::Unknown(writes);
  }

  bool IsPlainBySource(std::uint64_t pc) {
    return Remembered(plain_code_, pc, [&](const Module& module) {
      return IsPlainLocked(module, ContentsOf(module), pc);
    });
  }

  BareCode BareCodeAt(std::uint64_t pc) {
    return Remembered(bare_code_, pc, [&](const Module& module) {
      Contents& contents = ContentsOf(module);
      if (contents.image == nullptr) return BareCode::kNo;
      return contents.bare_code.At(
          contents.image->file(), contents.symbols ? &*contents.symbols : nullptr,
          contents.debug_info ? &*contents.debug_info : nullptr, pc - module.bias);
    });
  }

  bool IsOpenMpByDebugInfo(std::uint64_t pc) {
    const std::unique_lock lock(mutex_);
    const Module* const module = modules_.Find(pc);
    if (!options_.use_files || module == nullptr) return false;
    Contents& contents = ContentsOf(*module);
    return contents.debug_info && contents.debug_info->IsOpenMp(pc - module->bias);
  }

  StoredAddress ImportAt(std::uint64_t slot) {
    const std::unique_lock lock(mutex_);
    const Module* const module = modules_.Find(slot);
    if (!options_.use_files || module == nullptr) return {};
    Contents& contents = ContentsOf(*module);
    if (contents.image == nullptr) return {};
    if (!contents.imports) contents.imports.emplace(contents.image->file());
    return contents.imports->At(contents.image->file(), module->bias, slot);
  }

  void OnUnmap(std::uint64_t begin, std::uint64_t end) {
    {
      const std::unique_lock lock(mutex_);
      bare_code_.erase(bare_code_.lower_bound(begin), bare_code_.lower_bound(end));
      orders_.erase(orders_.lower_bound(begin), orders_.lower_bound(end));
      plain_code_.erase(plain_code_.lower_bound(begin), plain_code_.lower_bound(end));
    }
    const std::unique_lock lock(answers_mutex_);
    const auto page = answer_pages_.lower_bound(PageOf(begin));
    if (page == answer_pages_.end() || *page >= end) return;
    answer_pages_.erase(page, answer_pages_.lower_bound(end));
    const auto is_gone = [&](const auto& answer) {
      return answer.first >= begin && answer.first < end;
    };
    std::erase_if(atomic_code_, is_gone);
    std::erase_if(atomic_data_, is_gone);
  }

  void ReleaseLibraries() {
    const std::unique_lock lock(mutex_);
    std::erase_if(contents_, [this](const auto& entry) {
      const auto& [index, contents] = entry;
      return contents.debug_info && !contents.text && contents.image->has_separate_debug_info() &&
             contents.is_system_library && ++releases_[index] <= kMostReleases;
    });
  }

  Modules& modules() { return modules_; }

 private:
  // What a module's files say.
  struct Contents {
    bool is_system_library = false;
    std::unique_ptr<ModuleImage> image;
    std::optional<ElfSymbols> symbols;
    std::optional<DebugInfo> debug_info;
    std::unique_ptr<ProgramText> text;   // made when first asked for
    std::optional<AtomicMacros> macros;  // likewise
    BareCodeFinder bare_code;
    std::optional<Imports> imports;  // made when first asked for
  };

  std::vector<SourceFrame> FramesLocked(const Module& module, std::uint64_t offset) {
    Contents& contents = ContentsOf(module);
    return NamesAt(contents.debug_info ? &*contents.debug_info : nullptr,
                   contents.symbols ? &*contents.symbols : nullptr, offset);
  }

  // Remembered.
  std::vector<SourceFrame> LibraryFramesLocked(const Module& module, std::uint64_t offset) {
    const std::pair key(module.index, offset);
    const auto known = library_frames_.find(key);
    if (known != library_frames_.end()) return known->second;
    std::vector<SourceFrame> frames = FramesLocked(module, offset);
    if (library_frames_.size() < kMaxRememberedAddresses) library_frames_[key] = frames;
    return frames;
  }

  // False: the function that `pc` lies in is the operation `function`, whose order its caller
  // knows. `is_store`: the instruction there does not read.
  bool OrderAtLocked(std::uint64_t pc, bool is_store, std::string& function, OrderAnswer& answer) {
    const Module* const module = modules_.Find(pc);
    if (module == nullptr) return true;
    Contents& contents = ContentsOf(*module);
    if (!contents.debug_info) return true;
    DebugInfo& debug_info = *contents.debug_info;
    const std::uint64_t offset = pc - module->bias;
    if (debug_info.IsWaiterCount(offset)) {
      // What the threads wait for orders them; this would order all of them, wherever they meet.
      answer = OrderAnswer();
      answer.of_waiters = true;
      answer.order = answer.first_order = StatedOrder::kNeither;
      return true;
    }
    int next = 0;
    if (is_store && debug_info.MayLackPlace(offset, next)) return true;
    const auto operation = debug_info.OperationAt(offset, function);
    if (!operation) return true;
    if (operation->is_function) {
      function = operation->function;
      return false;
    }
    // What the libraries do among themselves is left alone.
    const SourceFrame& statement = operation->statement;
    ProgramText* const text = TextOf(contents);
    if (text == nullptr || !text->Owns(statement.file)) return true;
    // Whatever its order: it may be the first of several copies of the statement.
    const bool is_certain =
        operation->is_certain || (operation->is_only_store && !text->CallsAtomicBuiltins());
    if (answer.early_store == OrderAnswer::kAnyStore && is_certain)
      answer.early_store = EarlyStoreAt(*text, statement, operation->function);
    StatedOrder order = StatedOrder::kBoth;
    if (operation->order) {
      order = *operation->order;
    } else {
      order = text->OrderAt(statement.file, statement.line, operation->function);
      // It may stand for another load of the same function.
      if (order != StatedOrder::kBoth && operation->function.empty() &&
          text->LoadsAt(statement.file, statement.line)) {
        for (const SourceFrame& place : debug_info.MergedLines(offset)) {
          order = order | (IsAtomicHeader(place.file)
                               ? StatedOrder::kBoth
                               : text->LoadsAt(place.file, place.line).value_or(order));
        }
      }
      answer.by_text = true;
      answer.statement = statement;
    }
    if (order == StatedOrder::kBoth) return true;
    const StatedOrder fences = FencesLocked();
    answer.order = answer.first_order = order | fences;
    if (answer.early_store != 0 && answer.early_store != OrderAnswer::kAnyStore &&
        FencesAreInLocked(*module, statement.file)) {
      answer.first_order = order | (fences & StatedOrder::kAcquires);
    }
    return true;
  }

  // OrderAnswer::early_store of a store there.
  std::uint16_t EarlyStoreAt(ProgramText& text, const SourceFrame& statement,
                             const std::string& function) {
    const ProgramText::Store store = text.StoreAt(statement.file, statement.line, function);
    if (!store.known) return OrderAnswer::kAnyStore;
    if (store.before_fences == 0) return 0;
    std::string file = std::filesystem::path(statement.file).lexically_normal().string();
    const auto [at, is_new] =
        early_stores_.try_emplace({std::move(file), store.before_fences}, early_stores_.size() + 1);
    return at->second < OrderAnswer::kAnyStore ? static_cast<std::uint16_t>(at->second) : 0;
  }

  // Whether the module's code from `file` is the only code of the program that may run release
  // fences, or ever was, and whether threads run only what they have begun themselves.
  bool FencesAreInLocked(const Module& fenced, const std::string& file) {
    for (const Module* module : modules_.Gone()) {
      if (!IsSystemLibrary(module->path)) return false;
    }
    for (const Module* module : modules_.Loaded()) {
      if (module->is_vdso() || IsSystemLibrary(module->path)) continue;
      Contents& contents = ContentsOf(*module);
      if (!contents.debug_info) continue;
      ProgramText* const text = TextOf(contents);
      if (text == nullptr || text->MixesThreads()) return false;
      if (module != &fenced &&
          (text->Contains(file) || Includes(text->fences(), StatedOrder::kReleases))) {
        return false;
      }
    }
    return true;
  }

  // What the fences order that the program may have, in whatever module.
  StatedOrder FencesLocked() {
    StatedOrder fences = StatedOrder::kNeither;
    for (const Module* module : modules_.Loaded()) {
      if (module->is_vdso() || IsSystemLibrary(module->path)) continue;
      Contents& contents = ContentsOf(*module);
      if (!contents.debug_info) continue;
      const ProgramText* const text = TextOf(contents);
      fences = fences | (text != nullptr ? text->fences() : StatedOrder::kBoth);
    }
    return fences;
  }

  // Null: not all of it can be read.
  ProgramText* TextOf(Contents& contents) {
    if (contents.text == nullptr) {
      DebugInfo::Sources sources = contents.debug_info->SourceFiles();
      contents.text = std::make_unique<ProgramText>(sources.files, sources.directories,
                                                    sources.all ? BuiltAt(contents) : 0);
    }
    return contents.text->complete() ? contents.text.get() : nullptr;
  }

  bool IsPlainLocked(const Module& module, Contents& contents, std::uint64_t pc) {
    if (!contents.debug_info) return false;
    DebugInfo& debug_info = *contents.debug_info;
    const std::uint64_t offset = pc - module.bias;
    if (debug_info.IsAtomic(offset) || IsAtomicBySourceLocked(module, contents, pc)) return false;
    const SourceFrame line = debug_info.LineOf(offset);
    ProgramText* const text = TextOf(contents);
    if (text == nullptr || text->MayBeAtomic(line.file, line.line)) return false;
    const std::vector<SourceFrame> merged = debug_info.MergedLines(offset);
    return std::none_of(merged.begin(), merged.end(), [&](const SourceFrame& place) {
      return IsAtomicHeader(place.file) ? debug_info.InlinesAtomicLoad(offset)
                                        : text->LoadsAt(place.file, place.line).has_value();
    });
  }

  bool IsAtomicBySourceLocked(const Module& module, Contents& contents, std::uint64_t pc) {
    if (!contents.debug_info || !options_.use_files) return false;
    const SourceFrame line = contents.debug_info->LineOf(pc - module.bias);
    const std::time_t built = BuiltAt(contents);
    if (line.line == 0 || built == 0) return false;
    if (sources_.IsAtomic(line.file, line.line, built) ||
        MacrosOf(contents).AreUsedAt(line.file, line.line)) {
      return true;
    }
    int next = 0;
    if (!contents.debug_info->MayLackPlace(pc - module.bias, next)) return false;
    constexpr int kNear = 2;  // where the code goes on before that line
    return sources_.HasExchange(line.file, line.line, next > line.line ? next : line.line + kNear,
                                built);
  }

  // When the program was made, as its sources must have been before; 0: not known. The file may
  // have no name any more.
  static std::time_t BuiltAt(const Contents& contents) {
    return contents.image != nullptr ? contents.image->file().modified() : 0;
  }

  // There must be debug info. Sources of the system's libraries are not there.
  static AtomicMacros& MacrosOf(Contents& contents) {
    if (!contents.macros) {
      const DebugInfo::Sources sources =
          contents.is_system_library ? DebugInfo::Sources() : contents.debug_info->SourceFiles();
      contents.macros.emplace(sources.files, sources.directories, BuiltAt(contents));
    }
    return *contents.macros;
  }

  static bool IsAtomicByName(Contents& contents, std::uint64_t offset) {
    if (!contents.symbols) return false;
    const ElfSymbols::Symbol* const function = contents.symbols->FindFunction(offset);
    return function != nullptr && IsSynchronisingFunction(function->name) &&
           (!contents.debug_info || contents.debug_info->LineOf(offset).file.empty());
  }

  // What decide(module) answers for the code at `pc`, kept in `answers`. Answer() without its file.
  template <class Answer, class Decide>
  Answer Remembered(std::map<std::uint64_t, Answer>& answers, std::uint64_t pc, Decide&& decide) {
    if (!options_.use_files) return Answer();
    const std::unique_lock lock(mutex_);
    const auto known = answers.find(pc);
    if (known != answers.end()) return known->second;
    const Module* const module = modules_.Find(pc);
    return answers[pc] = module != nullptr ? decide(*module) : Answer();
  }

  Contents& ContentsOf(const Module& module) {
    const auto [at, is_new] = contents_.try_emplace(module.index);
    Contents& contents = at->second;
    if (!is_new || !options_.use_files) return contents;
    contents.is_system_library = IsSystemLibrary(module.path);
    contents.image = ModuleImage::Open(module, modules_.memory(), options_.debug_directory);
    if (contents.image == nullptr) return contents;
    contents.symbols.emplace(*contents.image);
    if (Dwarf* dwarf = contents.image->dwarf(); dwarf != nullptr)
      contents.debug_info.emplace(dwarf);
    return contents;
  }

  std::optional<StackVariable> LocalOf(const StackFrame& frame, std::uint64_t address) {
    const Module* module = modules_.Find(frame.lookup_pc());
    if (module == nullptr) return std::nullopt;
    const std::unique_lock lock(mutex_);
    Contents& contents = ContentsOf(*module);
    if (!contents.debug_info) return std::nullopt;
    const FrameRegisters registers = RegistersOf(frame);
    EvaluationContext context{.registers = registers, .memory = modules_.memory()};
    context.known_registers = 1u << kRbp | 1u << kRsp;
    context.cfa = frame.cfa;
    std::string function;
    const auto variable = contents.debug_info->FindLocal(frame.lookup_pc() - module->bias, address,
                                                         context, function);
    if (!variable) return std::nullopt;
    StackVariable found;
    found.function = Demangle(function);
    found.name = variable->name;
    found.type = variable->type;
    found.offset = address - variable->begin;
    found.expression = variable->expression;
    found.file = variable->file;
    found.line = variable->line;
    return found;
  }

  // The module in whose thread-local block `address` lies, and the offset in it.
  const Module* ThreadLocalModule(std::uint64_t address, std::uint64_t thread_pointer,
                                  const MemoryReader& memory, std::uint64_t& offset) {
    const std::vector<const Module*> loaded = modules_.Loaded();
    const auto main = std::find_if(loaded.begin(), loaded.end(),
                                   [](const Module* module) { return module->is_main_program; });
    if (main == loaded.end()) return nullptr;
    // The main program's block ends at the thread pointer (ELF Handling for TLS, variant II).
    const Elf64_Phdr own = ThreadLocalSegment(**main, memory);
    if (own.p_memsz != 0) {
      const std::uint64_t alignment = std::max<std::uint64_t>(own.p_align, 1);
      const std::uint64_t begin =
          thread_pointer - (own.p_memsz + alignment - 1) / alignment * alignment;
      if (address >= begin && address < thread_pointer) {
        offset = address - begin;
        return *main;
      }
    }
    // The others by the thread's vector of blocks: module numbers are given in the order of the
    // link map.
    std::uint64_t number = own.p_memsz != 0 ? 1 : 0;
    std::uint64_t vector = 0;
    if (!memory(thread_pointer + 8, &vector, sizeof vector)) return nullptr;
    std::uint64_t link = FirstLink(**main, memory);
    for (std::uint64_t i = 0; link != 0 && i < kMaxThreadModules; ++i) {
      std::uint64_t map[4];  // l_addr, l_name, l_ld, l_next
      if (!memory(link, map, sizeof map)) return nullptr;
      link = map[3];
      const Module* module = modules_.Find(map[2]);
      if (module == nullptr || module == *main) continue;
      const Elf64_Phdr segment = ThreadLocalSegment(*module, memory);
      if (segment.p_memsz == 0) continue;
      ++number;
      std::uint64_t block = 0;
      if (!memory(vector + 16 * number, &block, sizeof block)) continue;
      if (address >= block && address - block < segment.p_memsz) {
        offset = address - block;
        return module;
      }
    }
    return nullptr;
  }

  Modules& modules_;
  const SymbolizerOptions options_;
  std::mutex mutex_;
  std::map<std::uint32_t, Contents> contents_;  // by module index
  // Of the system's libraries, by module index and offset: what outlasts their contents.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<SourceFrame>> library_frames_;
  std::map<std::uint32_t, unsigned> releases_;  // by module index
  std::shared_mutex answers_mutex_;
  std::unordered_map<std::uint64_t, bool> atomic_code_;
  std::unordered_map<std::uint64_t, std::uint64_t> atomic_data_;  // bytes; 0: none
  std::set<std::uint64_t> answer_pages_;                          // with answers
  std::map<std::uint64_t, OrderAnswer> orders_;
  std::uint32_t orders_generation_ = 0;
  // Numbers of statements, by file and line; OrderAnswer::early_store.
  std::map<std::pair<std::string, int>, std::size_t> early_stores_;
  std::map<std::uint64_t, bool> plain_code_;
  std::map<std::uint64_t, BareCode> bare_code_;
  SourceLines sources_;
};

Symbolizer::Symbolizer(Modules& modules, SymbolizerOptions options)
    : implementation_(std::make_unique<Implementation>(modules, std::move(options))) {}

Symbolizer::~Symbolizer() = default;

CodePlace Symbolizer::ResolveCode(std::uint64_t address) {
  return implementation_->ResolveCode(implementation_->modules().Find(address), address);
}

CodePlace Symbolizer::ResolveCode(std::uint64_t address, std::uint32_t generation) {
  return implementation_->ResolveCode(implementation_->modules().Find(address, generation),
                                      address);
}

const Module* Symbolizer::FindModule(std::uint64_t address, std::uint32_t generation) {
  Modules& modules = implementation_->modules();
  return generation == 0 ? modules.Find(address) : modules.Find(address, generation);
}

std::optional<DataPlace> Symbolizer::ResolveData(std::uint64_t address) {
  return implementation_->ResolveData(address);
}

std::optional<DataPlace> Symbolizer::ResolveThreadLocal(std::uint64_t address,
                                                        std::uint64_t thread_pointer,
                                                        const MemoryReader& memory) {
  return implementation_->ResolveThreadLocal(address, thread_pointer, memory);
}

std::optional<StackVariable> Symbolizer::ResolveStack(std::uint64_t address,
                                                      std::span<const StackFrame> frames) {
  return implementation_->ResolveStack(address, frames);
}

bool Symbolizer::IsAtomicByDebugInfo(std::uint64_t pc) {
  return implementation_->IsAtomicByDebugInfo(pc);
}

bool Symbolizer::IsAtomicBySource(std::uint64_t pc) {
  return implementation_->IsAtomicBySource(pc);
}

Symbolizer::OrderAnswer Symbolizer::OrderOf(std::span<const std::uint64_t> stack, bool writes,
                                            bool reads) {
  return implementation_->OrderOf(stack, writes, reads);
}

BareCode Symbolizer::BareCodeAt(std::uint64_t pc) { return implementation_->BareCodeAt(pc); }

bool Symbolizer::IsOpenMpByDebugInfo(std::uint64_t pc) {
  return implementation_->IsOpenMpByDebugInfo(pc);
}

StoredAddress Symbolizer::ImportAt(std::uint64_t slot) { return implementation_->ImportAt(slot); }

bool Symbolizer::IsPlainBySource(std::uint64_t pc) { return implementation_->IsPlainBySource(pc); }

bool Symbolizer::MayHoldAtomics(const Module& module) {
  return implementation_->MayHoldAtomics(module);
}

bool Symbolizer::IsAtomicVariable(std::uint64_t address, std::uint64_t size) {
  return implementation_->IsAtomicVariable(address, size);
}

void Symbolizer::OnUnmap(std::uint64_t begin, std::uint64_t end) {
  implementation_->OnUnmap(begin, end);
}

void Symbolizer::ReleaseLibraries() { implementation_->ReleaseLibraries(); }

}  // namespace trapline
