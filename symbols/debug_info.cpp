#include "symbols/debug_info.h"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <tuple>

#include "symbols/dwarf_types.h"

namespace trapline {
namespace {

constexpr int kMaxDepth = 64;  // of nested DIEs
// Beyond this an index of all variables would take minutes; symbols have to do.
constexpr std::uint64_t kMaxIndexed = 512ull << 20;

std::string LinkageName(Dwarf_Die& die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, name, &attribute) == nullptr) continue;
    const char* text = dwarf_formstring(&attribute);
    if (text != nullptr) return text;
  }
  return {};
}

// The DIE that has the name: an instance refers to what it is an instance of, a definition to its
// declaration.
Dwarf_Die Named(Dwarf_Die die) {
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&die, DW_AT_name, &attribute) != nullptr) break;
    Dwarf_Die next;
    if ((dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == nullptr &&
         dwarf_attr(&die, DW_AT_specification, &attribute) == nullptr) ||
        dwarf_formref_die(&attribute, &next) == nullptr) {
      break;
    }
    die = next;
  }
  return die;
}

std::string FileOfDeclaration(Dwarf_Die& die) {
  const char* file = DeclarationFile(die);
  return file != nullptr ? file : "";
}

// Headers of the standard libraries of C++ in which user code may be inlined only together with
// theirs: what one walks through on the way from an instruction to the function that was called.
bool IsLibraryHeader(std::string_view file) {
  return file.find("/c++/") != std::string_view::npos ||
         file.find("/boost/") != std::string_view::npos ||
         file.find("/core/src/") != std::string_view::npos;
}

// Whether the function makes an object of std::atomic or its bases, which is no atomic operation
// ([atomics.types.operations]).
bool IsAtomicConstructor(Dwarf_Die& function) {
  const char* const name = dwarf_diename(&function);
  if (name == nullptr) return false;
  const std::string_view bare(name);
  return (bare == "atomic" || bare.starts_with("atomic<") || bare == "__atomic_base" ||
          bare.starts_with("__atomic_base<") || bare == "__atomic_float" ||
          bare == "atomic_flag") &&
         IsAtomicHeader(FileOfDeclaration(function));
}

// Whether it is std::atomic's compare_exchange: the operation itself is an instruction with a lock
// prefix, all else is about `expected`, which is memory like any other
// ([atomics.types.operations]).
bool IsCompareExchange(Dwarf_Die& function) {
  const char* const name = dwarf_diename(&function);
  if (name == nullptr ||
      std::string_view(name).find("compare_exchange") == std::string_view::npos) {
    return false;
  }
  const std::string file = FileOfDeclaration(function);
  return file.ends_with("/atomic") || file.ends_with("/bits/atomic_base.h") ||
         file.find("/__atomic/") != std::string::npos;
}

// The functions that count shared_ptr's references: their plain loads are atomic too. Not the
// constructors.
bool IsReferenceCount(std::string_view mangled) {
  return (mangled.starts_with("_ZNSt16_Sp_counted_base") ||
          mangled.starts_with("_ZNKSt16_Sp_counted_base")) &&
         mangled.find("EEC1E") == std::string_view::npos &&
         mangled.find("EEC2E") == std::string_view::npos;
}

// A walk through a tree of DIEs, parents before children, meets ever larger offsets. In a damaged
// file it might meet the same ones over and over.
bool Progress(Dwarf_Die& die, Dwarf_Off& walked_to) {
  const Dwarf_Off offset = dwarf_dieoffset(&die);
  if (offset <= walked_to) return false;
  walked_to = offset;
  return true;
}

bool IsScope(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_common_block:
      return true;
    default:
      return false;
  }
}

// "outer::" and "outer::inner::" inside a namespace or class.
std::string InnerScope(const std::string& scope, Dwarf_Die& die) {
  const char* name = dwarf_diename(&die);
  switch (dwarf_tag(&die)) {
    case DW_TAG_namespace:
      return scope + (name != nullptr ? name : "(anonymous namespace)") + "::";
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
      return name != nullptr ? scope + name + "::" : scope;
    default:
      return scope;
  }
}

// The operations of a variable's place at `pc`; empty: not known there.
std::span<const Dwarf_Op> LocationAt(Dwarf_Die& die, unsigned name, std::uint64_t pc) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_attr_integrate(&die, name, &attribute) == nullptr ||
      dwarf_getlocation_addr(&attribute, pc, &operations, &count, 1) != 1) {
    return {};
  }
  return {operations, count};
}

std::string Absolute(Dwarf_Die& unit, const std::string& file) {
  Dwarf_Attribute attribute;
  if (file.starts_with('/') || dwarf_attr(&unit, DW_AT_comp_dir, &attribute) == nullptr)
    return file;
  const char* const directory = dwarf_formstring(&attribute);
  return directory != nullptr ? std::string(directory) + "/" + file : file;
}

std::uint64_t AddressOf(Dwarf_Line* line) {
  Dwarf_Addr address = 0;
  static_cast<void>(dwarf_lineaddr(line, &address));
  return address;
}

// The first of the `count` lines that begins after `address`; `count`: none does.
std::size_t LineAfter(Dwarf_Lines* lines, std::size_t count, std::uint64_t address) {
  std::size_t low = 0, high = count;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (AddressOf(dwarf_onesrcline(lines, middle)) > address) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// How a unit was compiled; null: not known.
const char* Producer(Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  if (dwarf_attr(&unit, DW_AT_producer, &attribute) == nullptr) return nullptr;
  return dwarf_formstring(&attribute);
}

// What compiled a unit, as far as it matters to what its line table means.
bool IsMadeBy(Dwarf_Die& unit, std::string_view compiler) {
  const char* const producer = Producer(unit);
  return producer == nullptr || std::string_view(producer).find(compiler) != std::string_view::npos;
}

// Whether the function was compiled with optimisation. True if that is not known.
bool IsOptimised(Dwarf_Die& unit, Dwarf_Die& function) {
  const char* const producer = Producer(unit);
  if (producer == nullptr) return true;
  const std::string_view text = producer;
  if (text.find("clang") != std::string_view::npos) {
    // It does not say how it was called. Only if it optimises it tells of calls, or does without a
    // frame pointer.
    if (dwarf_hasattr(&function, DW_AT_call_all_calls) != 0 ||
        dwarf_hasattr(&function, DW_AT_GNU_all_call_sites) != 0) {
      return true;
    }
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    return dwarf_attr(&function, DW_AT_frame_base, &attribute) == nullptr ||
           dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1 ||
           operations[0].atom != DW_OP_reg6;
  }
  for (std::size_t at = 0; (at = text.find(" -O", at)) != std::string_view::npos; at += 3) {
    if (text.substr(at, 4) != " -O0") return true;
  }
  return false;
}

// The value of a parameter at `pc`, if it is a constant there.
std::optional<Dwarf_Word> ConstantAt(Dwarf_Die& parameter, std::uint64_t pc) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&parameter, DW_AT_const_value, &attribute) != nullptr)
    return dwarf_formudata(&attribute, &value) == 0 ? std::optional(value) : std::nullopt;
  const auto operations = LocationAt(parameter, DW_AT_location, pc);
  if (operations.size() != 2 || operations[1].atom != DW_OP_stack_value) return std::nullopt;
  const unsigned atom = operations[0].atom;
  if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return atom - DW_OP_lit0;
  if (atom == DW_OP_const1u || atom == DW_OP_const1s || atom == DW_OP_constu ||
      atom == DW_OP_consts) {
    return operations[0].number;
  }
  return std::nullopt;
}

// The name of a function, without the arguments of a template; empty: it has none.
std::string_view FunctionName(Dwarf_Die& function) {
  const char* const name = dwarf_diename(&function);
  const std::string_view text = name != nullptr ? name : "";
  return text.substr(0, text.find('<'));
}

// Whether a function is an operation of the C++ library's atomics that takes its order as a
// parameter.
bool IsOperation(Dwarf_Die& function) {
  const char* const file = DeclarationFile(function);
  const std::string_view text = FunctionName(function);
  if (file == nullptr || !IsAtomicHeader(file)) return false;
  return IsMemberOperation(text) || (text.starts_with("atomic_") && text.ends_with("_explicit")) ||
         text.starts_with("__cxx_atomic_");  // what LLVM's call
}

// All orders that a call of the operation gives it, if they are constants at `pc`.
std::optional<StatedOrder> OrderParameter(Dwarf_Die& function, std::uint64_t pc) {
  std::optional<StatedOrder> order;
  Dwarf_Die die, type;
  if (dwarf_child(&function, &die) != 0) return std::nullopt;
  do {
    if (dwarf_tag(&die) != DW_TAG_formal_parameter || !TypeOf(die, type) ||
        TypeName(type) != "memory_order") {
      continue;
    }
    const auto value = ConstantAt(die, pc);
    if (!value) return std::nullopt;
    order = order.value_or(StatedOrder::kNeither) | OrderOfConstant(*value);
  } while (NextSibling(die));
  return order;
}

bool IsLoad(std::string_view function) {
  return function.find("load") != std::string_view::npos || function == "test";
}

}  // namespace

DebugInfo::DebugInfo(Dwarf* dwarf) {
  Dwarf_CU* cu = nullptr;
  Dwarf_CU* next = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die die, subdie;
  while (dwarf_get_units(dwarf, cu, &next, &version, &type, &die, &subdie) == 0) {
    cu = next;
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    Unit unit;
    unit.lines_die = die;
    unit.die = type == DW_UT_skeleton && subdie.addr != nullptr ? subdie : die;
    const std::size_t index = units_.size();
    units_.push_back(unit);
    Dwarf_Addr base = 0, low = 0, high = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0;) {
      // Code that the linker dropped is left at address 0.
      if (low != 0 && low < high) ranges_.push_back({low, high, index});
    }
    information_size_ = std::max<std::uint64_t>(information_size_, dwarf_dieoffset(&die));
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.low < b.low; });
  Elf* const elf = dwarf_getelf(dwarf);
  std::size_t segments = 0;
  if (elf_getphdrnum(elf, &segments) != 0) return;
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_TLS)
      continue;
    thread_local_begin_ = segment.p_vaddr;
    thread_local_size_ = segment.p_memsz;
  }
}

DebugInfo::Unit* DebugInfo::UnitOf(std::uint64_t address) {
  auto at =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.low; });
  if (at == ranges_.begin() || address >= std::prev(at)->high) return nullptr;
  Unit& unit = units_[std::prev(at)->unit];
  Index(unit);
  return &unit;
}

void DebugInfo::Index(Unit& unit) {
  if (unit.indexed) return;
  unit.indexed = true;
  walked_to_ = dwarf_dieoffset(&unit.die);
  IndexChildren(unit, unit.die, {}, 0);
  std::sort(unit.functions.begin(), unit.functions.end(),
            [](const Function& a, const Function& b) { return a.low < b.low; });
}

void DebugInfo::IndexChildren(Unit& unit, Dwarf_Die& parent, const std::string& scope, int depth) {
  Dwarf_Die die;
  if (depth == kMaxDepth || dwarf_child(&parent, &die) != 0) return;
  do {
    if (!Progress(die, walked_to_)) return;
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_subprogram) {
      Dwarf_Addr base = 0, low = 0, high = 0;
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0;) {
        if (low != 0 && low < high) unit.functions.push_back({low, high, die});
      }
    }
    if (tag == DW_TAG_subprogram && !scope.empty() && dwarf_hasattr(&die, DW_AT_name) != 0 &&
        dwarf_hasattr(&die, DW_AT_linkage_name) == 0) {
      scopes_.emplace(dwarf_dieoffset(&die), scope);
    }
    if (tag == DW_TAG_variable || tag == DW_TAG_member) AddVariable(die);
    if (IsScope(tag)) IndexChildren(unit, die, InnerScope(scope, die), depth + 1);
  } while (NextSibling(die));
}

void DebugInfo::AddVariable(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  // Not integrated: a declaration would count once more for each of its definitions.
  if (dwarf_attr(&die, DW_AT_location, &attribute) == nullptr ||
      dwarf_getlocation(&attribute, &operations, &count) != 0 || count == 0 || count > 2) {
    return;
  }
  const Dwarf_Op& first = operations[0];
  std::uint64_t place = first.number;
  if (first.atom == DW_OP_addrx || first.atom == DW_OP_GNU_addr_index ||
      first.atom == DW_OP_constx || first.atom == DW_OP_GNU_const_index) {
    Dwarf_Attribute indirect;
    Dwarf_Addr value = 0;
    if (dwarf_getlocation_attr(&attribute, &first, &indirect) != 0 ||
        (dwarf_formaddr(&indirect, &value) != 0 && dwarf_formudata(&indirect, &value) != 0)) {
      return;
    }
    place = value;
  }
  const bool is_address =
      first.atom == DW_OP_addr || first.atom == DW_OP_addrx || first.atom == DW_OP_GNU_addr_index;
  if (count == 1 && is_address && place != 0) {
    statics_.push_back({place, SizeOfVariable(die), die});
  } else if (count == 2 && (operations[1].atom == DW_OP_form_tls_address ||
                            operations[1].atom == DW_OP_GNU_push_tls_address)) {
    // With split DWARF gcc gives the address in the file for the offset in the segment.
    if (place >= thread_local_size_ && place - thread_local_begin_ < thread_local_size_)
      place -= thread_local_begin_;
    thread_locals_.push_back({place, SizeOfVariable(die), die});
  }
}

void DebugInfo::IndexAll() {
  if (all_indexed_) return;
  all_indexed_ = true;
  if (information_size_ <= kMaxIndexed) {
    for (Unit& unit : units_) Index(unit);
  }
  const auto by_begin = [](const Static& a, const Static& b) { return a.begin < b.begin; };
  std::stable_sort(statics_.begin(), statics_.end(), by_begin);
  std::stable_sort(thread_locals_.begin(), thread_locals_.end(), by_begin);
}

std::optional<DebugInfo::Variable> DebugInfo::Find(std::vector<Static>* statics,
                                                   std::uint64_t address) {
  IndexAll();
  const auto after = std::upper_bound(
      statics->begin(), statics->end(), address,
      [](std::uint64_t value, const Static& variable) { return value < variable.begin; });
  if (after == statics->begin()) return std::nullopt;
  const Static& found = *std::prev(after);
  if (address - found.begin >= std::max<std::uint64_t>(found.size, 1)) return std::nullopt;
  Dwarf_Die die = found.die;
  return Described(die, found.begin, address);
}

DebugInfo::Variable DebugInfo::Described(Dwarf_Die& die, std::uint64_t begin,
                                         std::uint64_t address) {
  Variable variable;
  const char* name = nullptr;
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(&die, DW_AT_name, &attribute) != nullptr)
    name = dwarf_formstring(&attribute);
  variable.name = name != nullptr ? name : "";
  variable.begin = begin;
  variable.size = SizeOfVariable(die);
  variable.file = FileOfDeclaration(die);
  static_cast<void>(dwarf_decl_line(&die, &variable.line));
  Dwarf_Die type;
  if (TypeOf(die, type)) {
    variable.type = TypeName(type);
    const TypePath path = Descend(type, address - begin);
    variable.expression = variable.name + path.suffix;
    variable.atomic_bytes = path.atomic_bytes;
  }
  return variable;
}

std::vector<Dwarf_Die> DebugInfo::Chain(Unit& unit, std::uint64_t address) {
  std::vector<Dwarf_Die> chain;
  auto at = std::upper_bound(
      unit.functions.begin(), unit.functions.end(), address,
      [](std::uint64_t value, const Function& function) { return value < function.low; });
  if (at == unit.functions.begin() || address >= std::prev(at)->high) return chain;
  Dwarf_Die scope = std::prev(at)->die;
  chain.push_back(scope);
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Dwarf_Die die;
    bool found = false;
    if (dwarf_child(&scope, &die) != 0) break;
    do {
      const int tag = dwarf_tag(&die);
      if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
          dwarf_haspc(&die, address) != 1) {
        continue;
      }
      if (tag == DW_TAG_inlined_subroutine) chain.push_back(die);
      scope = die;
      found = true;
      break;
    } while (NextSibling(die));
    if (!found) break;
  }
  return chain;
}

std::string DebugInfo::NameOf(Dwarf_Die& die) const {
  std::string name = LinkageName(die);
  if (!name.empty()) return name;
  Dwarf_Die named = Named(die);
  const auto scope = scopes_.find(dwarf_dieoffset(&named));
  const char* own = dwarf_diename(&named);
  if (own == nullptr) return {};
  return scope != scopes_.end() ? scope->second + own : own;
}

void DebugInfo::TakeLine(Unit& unit, std::uint64_t address, SourceFrame& frame) {
  Dwarf_Line* line = dwarf_getsrc_die(&unit.lines_die, address);
  if (line == nullptr) return;
  const char* file = dwarf_linesrc(line, nullptr, nullptr);
  if (file != nullptr) frame.file = file;
  static_cast<void>(dwarf_lineno(line, &frame.line));
}

std::vector<SourceFrame> DebugInfo::Frames(std::uint64_t address) {
  std::vector<SourceFrame> frames;
  Unit* unit = UnitOf(address);
  if (unit == nullptr) return frames;
  SourceFrame frame;
  TakeLine(*unit, address, frame);
  std::vector<Dwarf_Die> chain = Chain(*unit, address);
  for (std::size_t i = chain.size(); i-- > 0;) {
    frame.function = NameOf(chain[i]);
    frame.inlined = i > 0;
    frames.push_back(frame);
    if (i == 0) break;
    // Where the inlined function was called is where its caller is.
    frame = CallOf(*unit, chain[i]);
  }
  if (frames.empty() && frame.line != 0) frames.push_back(frame);
  return frames;
}

SourceFrame DebugInfo::CallOf(Unit& unit, Dwarf_Die& inlined) {
  SourceFrame frame;
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  static_cast<void>(dwarf_getsrcfiles(&unit.lines_die, &files, &file_count));
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_attr(&inlined, DW_AT_call_file, &attribute) != nullptr &&
      dwarf_formudata(&attribute, &number) == 0 && number < file_count) {
    const char* file = dwarf_filesrc(files, number, nullptr, nullptr);
    if (file != nullptr) frame.file = file;
  }
  if (dwarf_attr(&inlined, DW_AT_call_line, &attribute) != nullptr &&
      dwarf_formudata(&attribute, &number) == 0) {
    frame.line = static_cast<int>(number);
  }
  return frame;
}

SourceFrame DebugInfo::LineOf(std::uint64_t address) {
  SourceFrame frame;
  Unit* const unit = UnitOf(address);
  if (unit == nullptr) return frame;
  TakeLine(*unit, address, frame);
  MakeAbsolute(*unit, frame);
  return frame;
}

// clang names files by their way from where it ran, and so does a compiler that was told so.
void DebugInfo::MakeAbsolute(Unit& unit, SourceFrame& frame) {
  if (frame.file.empty()) return;
  frame.file = Absolute(unit.lines_die, frame.file);
}

std::optional<DebugInfo::Operation> DebugInfo::OperationAt(std::uint64_t address,
                                                           std::string function) {
  Unit* const unit = UnitOf(address);
  if (unit == nullptr) return std::nullopt;
  std::vector<Dwarf_Die> chain = Chain(*unit, address);
  if (chain.empty()) return std::nullopt;
  Operation operation;
  const bool by_gcc = IsMadeBy(unit->lines_die, "GNU");
  const bool optimised = IsOptimised(unit->lines_die, chain[0]);
  std::size_t depth = chain.size();
  for (; depth > 0 && IsOperation(chain[depth - 1]); --depth) {
    Dwarf_Die& called = chain[depth - 1];
    function = FunctionName(called);
    if (const auto order = OrderParameter(called, address)) {
      Dwarf_Off walked_to = 0;
      // gcc makes one of equal loads in two branches.
      if (by_gcc && IsLoad(function) && HasOtherOrder(chain[0], called, *order, 0, walked_to)) {
        return std::nullopt;
      }
      operation.order = operation.order.value_or(StatedOrder::kNeither) | *order;
    }
  }
  operation.function = function;
  operation.is_function = depth == 0;
  if (operation.is_function) return operation;
  if (depth == chain.size()) {
    operation.statement = LineOf(address);
  } else {
    // Where gcc optimises, the place may be that of another call.
    operation.is_certain = !by_gcc || !optimised;
    if (!operation.order && !operation.is_certain) return std::nullopt;
    Dwarf_Off walked_to = 0;
    operation.is_only_store =
        operation.is_certain ||
        !Inlines(chain[0], false, dwarf_dieoffset(&chain[depth]), 0, walked_to);
    operation.statement = CallOf(*unit, chain[depth]);
    MakeAbsolute(*unit, operation.statement);
  }
  return operation;
}

bool DebugInfo::IsWaiterCount(std::uint64_t address) {
  Unit* const unit = UnitOf(address);
  if (unit == nullptr) return false;
  std::vector<Dwarf_Die> chain = Chain(*unit, address);
  if (chain.empty()) return false;
  const char* const file = DeclarationFile(chain.back());
  if (file == nullptr || !std::string_view(file).ends_with("/atomic_wait.h")) return false;
  const std::string_view function = FunctionName(chain.back());
  return function == "_M_enter_wait" || function == "_M_leave_wait" || function == "_M_waiting";
}

bool DebugInfo::IsOpenMp(std::uint64_t address) {
  Unit* const unit = UnitOf(address);
  const char* const producer = unit != nullptr ? Producer(unit->lines_die) : nullptr;
  return producer != nullptr &&
         std::string_view(producer).find(" -fopenmp") != std::string_view::npos;
}

bool DebugInfo::InlinesAtomicLoad(std::uint64_t address) {
  Unit* const unit = UnitOf(address);
  std::vector<Dwarf_Die> chain = unit != nullptr ? Chain(*unit, address) : std::vector<Dwarf_Die>();
  Dwarf_Off walked_to = 0;
  return chain.empty() || Inlines(chain[0], true, 0, 0, walked_to);
}

bool DebugInfo::Inlines(Dwarf_Die& function, bool loads, Dwarf_Off called, int depth,
                        Dwarf_Off& walked_to) {
  Dwarf_Die die;
  if (dwarf_child(&function, &die) != 0) return false;
  if (depth == kMaxDepth) return true;
  do {
    if (!Progress(die, walked_to)) return true;
    const int tag = dwarf_tag(&die);
    if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
        dwarf_dieoffset(&die) == called) {
      continue;
    }
    // One that was merged away is there, without an address.
    if (tag == DW_TAG_inlined_subroutine && IsOperation(die)) {
      if (IsLoad(FunctionName(die)) == loads) return true;
    } else if (Inlines(die, loads, called, depth + 1, walked_to)) {
      return true;
    }
  } while (NextSibling(die));
  return false;
}

bool DebugInfo::HasOtherOrder(Dwarf_Die& function, Dwarf_Die& called, StatedOrder order, int depth,
                              Dwarf_Off& walked_to) {
  Dwarf_Die die;
  if (depth == kMaxDepth || dwarf_child(&function, &die) != 0) return false;
  do {
    if (!Progress(die, walked_to)) return true;
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) continue;
    if (tag == DW_TAG_inlined_subroutine && FunctionName(die) == FunctionName(called) &&
        IsOperation(die)) {
      // Where it was merged away, nothing is known of it at any address.
      Dwarf_Addr low = 0;
      const auto other = dwarf_entrypc(&die, &low) == 0 ? OrderParameter(die, low) : std::nullopt;
      if (other != order) return true;
    }
    if (HasOtherOrder(die, called, order, depth + 1, walked_to)) return true;
  } while (NextSibling(die));
  return false;
}

std::optional<DebugInfo::OptimisedCode> DebugInfo::OptimisedBy(std::string_view compiler,
                                                               std::uint64_t address) {
  OptimisedCode code;
  code.unit = UnitOf(address);
  if (code.unit == nullptr || !IsMadeBy(code.unit->lines_die, compiler)) return std::nullopt;
  const std::vector<Dwarf_Die> chain = Chain(*code.unit, address);
  if (chain.empty()) return std::nullopt;
  code.function = chain[0];
  if (!IsOptimised(code.unit->lines_die, code.function)) return std::nullopt;
  if (dwarf_getsrclines(&code.unit->lines_die, &code.lines, &code.count) != 0) code.count = 0;
  return code;
}

std::vector<SourceFrame> DebugInfo::MergedLines(std::uint64_t address) {
  std::vector<SourceFrame> places;
  std::optional<OptimisedCode> code = OptimisedBy("GNU", address);
  if (!code) return places;
  Dwarf_Addr base = 0, low = 0, high = 0;
  for (std::ptrdiff_t range = 0;
       (range = dwarf_ranges(&code->function, range, &base, &low, &high)) > 0;) {
    if (low == 0) continue;
    for (std::size_t i = LineAfter(code->lines, code->count, low - 1); i < code->count; ++i) {
      Dwarf_Line* const line = dwarf_onesrcline(code->lines, i);
      if (AddressOf(line) >= high) break;
      SourceFrame place;
      const char* const file = dwarf_linesrc(line, nullptr, nullptr);
      if (file != nullptr) place.file = file;
      static_cast<void>(dwarf_lineno(line, &place.line));
      MakeAbsolute(*code->unit, place);
      places.push_back(std::move(place));
    }
  }
  const auto before = [](const SourceFrame& a, const SourceFrame& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  };
  std::sort(places.begin(), places.end(), before);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

bool DebugInfo::MayLackPlace(std::uint64_t address, int& next) {
  next = 0;
  const std::optional<OptimisedCode> code = OptimisedBy("clang", address);
  if (!code) return false;
  const std::size_t after = LineAfter(code->lines, code->count, address);
  if (after > 0 && AddressOf(dwarf_onesrcline(code->lines, after - 1)) == address) return false;
  if (after < code->count)
    static_cast<void>(dwarf_lineno(dwarf_onesrcline(code->lines, after), &next));
  return true;
}

DebugInfo::Sources DebugInfo::SourceFiles() {
  Sources sources;
  for (Unit& unit : units_) {
    switch (dwarf_srclang(&unit.lines_die)) {
      case DW_LANG_C:
      case DW_LANG_C89:
      case DW_LANG_C99:
      case DW_LANG_C11:
      case DW_LANG_C_plus_plus:
      case DW_LANG_C_plus_plus_03:
      case DW_LANG_C_plus_plus_11:
      case DW_LANG_C_plus_plus_14:
      case DW_LANG_Mips_Assembler:
        break;
      default:
        sources.all = false;
    }
    const auto add = [&](std::vector<std::string>& names, const char* name) {
      if (name != nullptr) names.push_back(Absolute(unit.lines_die, name));
    };
    add(sources.files, dwarf_diename(&unit.lines_die));
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit.lines_die, &files, &count) != 0) {
      sources.all = false;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const char* const name = dwarf_filesrc(files, i, nullptr, nullptr);
      if (name != nullptr && std::strcmp(name, "???") != 0) add(sources.files, name);
    }
    const char* const* directories = nullptr;
    if (dwarf_getsrcdirs(files, &directories, &count) == 0) {
      for (std::size_t i = 0; i < count; ++i) add(sources.directories, directories[i]);
    }
  }
  for (auto* const names : {&sources.files, &sources.directories}) {
    std::sort(names->begin(), names->end());
    names->erase(std::unique(names->begin(), names->end()), names->end());
  }
  return sources;
}

bool DebugInfo::IsAtomic(std::uint64_t address) {
  Unit* unit = UnitOf(address);
  if (unit == nullptr) return false;
  std::vector<Dwarf_Die> chain = Chain(*unit, address);
  if (!chain.empty() && (IsAtomicConstructor(chain.back()) || IsCompareExchange(chain.back())))
    return false;
  // Where there are lines only (-g1), or the inlined function was taken apart.
  SourceFrame innermost;
  TakeLine(*unit, address, innermost);
  if (IsAtomicHeader(innermost.file)) return true;
  for (std::size_t i = chain.size(); i-- > 0;) {
    const std::string file = FileOfDeclaration(chain[i]);
    if (IsAtomicHeader(file) || IsReferenceCount(LinkageName(chain[i]))) return true;
    // The program's own code, called back from the library: what it does is its own.
    if (!IsLibraryHeader(file)) return false;
  }
  return false;
}

bool DebugInfo::MayHoldAtomics() {
  if (information_size_ > kMaxIndexed) return true;
  for (Unit& unit : units_) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit.lines_die, &files, &count) != 0) return true;
    for (std::size_t i = 0; i < count; ++i) {
      const char* const name = dwarf_filesrc(files, i, nullptr, nullptr);
      // C's has types and macros only: to include it leaves no code.
      if (name != nullptr && IsAtomicHeader(name) &&
          !std::string_view(name).ends_with("stdatomic.h"))
        return true;
    }
  }
  IndexAll();
  return std::ranges::any_of(statics_, [](const Static& variable) {
    Dwarf_Die die = variable.die, type;
    return TypeOf(die, type) && HoldsAtomic(type);
  });
}

std::optional<DebugInfo::Variable> DebugInfo::FindLocal(std::uint64_t pc, std::uint64_t address,
                                                        EvaluationContext context,
                                                        std::string& function) {
  Unit* unit = UnitOf(pc);
  if (unit == nullptr) return std::nullopt;
  std::vector<Dwarf_Die> chain = Chain(*unit, pc);
  if (chain.empty()) return std::nullopt;
  if (const auto base = LocationAt(chain[0], DW_AT_frame_base, pc); !base.empty()) {
    std::uint64_t value = 0;
    bool is_value = false;
    if (EvaluateExpression(base, context, value, is_value)) context.frame_base = value;
  }
  // First where the function is now; then anywhere in it, for the ranges of blocks are not exact.
  for (const bool everywhere : {false, true}) {
    Dwarf_Off walked_to = 0;
    auto found = FindLocalIn(chain[0], pc, address, context, everywhere, 0, walked_to, function);
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<DebugInfo::Variable> DebugInfo::FindLocalIn(
    Dwarf_Die& scope, std::uint64_t pc, std::uint64_t address, const EvaluationContext& context,
    bool everywhere, int depth, Dwarf_Off& walked_to, std::string& function) const {
  Dwarf_Die die;
  if (depth == kMaxDepth || dwarf_child(&scope, &die) != 0) return std::nullopt;
  // Compilers give a place on the stack to one variable after another: the innermost scope tells
  // whose it is now.
  std::optional<DebugInfo::Variable> own;
  const int scope_tag = dwarf_tag(&scope);
  const bool is_function = scope_tag == DW_TAG_subprogram || scope_tag == DW_TAG_inlined_subroutine;
  do {
    if (!Progress(die, walked_to)) return std::nullopt;
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) {
      const auto location = LocationAt(die, DW_AT_location, pc);
      std::uint64_t begin = 0;
      bool is_value = false;
      if (!location.empty() && EvaluateExpression(location, context, begin, is_value) &&
          !is_value && address - begin < SizeOfVariable(die)) {
        if (!own) own = Described(die, begin, address);
        if (everywhere) break;
      }
    } else if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
               (everywhere || dwarf_haspc(&die, pc) == 1)) {
      auto found =
          FindLocalIn(die, pc, address, context, everywhere, depth + 1, walked_to, function);
      if (found) {
        if (is_function && function.empty()) function = NameOf(scope);
        return found;
      }
    }
  } while (NextSibling(die));
  if (own && is_function) function = NameOf(scope);
  return own;
}

}  // namespace trapline
