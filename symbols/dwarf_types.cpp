#include "symbols/dwarf_types.h"

#include <dwarf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace trapline {
namespace {

constexpr int kMaxTypeDepth = 64;  // of types made of types; a corrupt file may have circles

bool Number(Dwarf_Die& die, unsigned name, std::uint64_t& value) {
  Dwarf_Attribute attribute;
  Dwarf_Word word = 0;
  if (dwarf_attr_integrate(&die, name, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &word) != 0) {
    return false;
  }
  value = word;
  return true;
}

// A bound of an array. Forms that say nothing of signs are taken for unsigned: libdw would take 199
// in one byte for -57.
bool Bound(Dwarf_Die& die, unsigned name, std::int64_t& value) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(&die, name, &attribute) == nullptr) return false;
  const unsigned form = dwarf_whatform(&attribute);
  if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
    Dwarf_Sword word = 0;
    if (dwarf_formsdata(&attribute, &word) != 0) return false;
    value = word;
    return true;
  }
  std::uint64_t word = 0;
  if (!Number(die, name, word)) return false;
  value = static_cast<std::int64_t>(word);
  return true;
}

int LanguageOf(Dwarf_Die& die) {
  Dwarf_Die unit;
  return dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr ? dwarf_srclang(&unit) : -1;
}

bool IsFortran(int language) {
  return language == DW_LANG_Fortran77 || language == DW_LANG_Fortran90 ||
         language == DW_LANG_Fortran95 || language == DW_LANG_Fortran03 ||
         language == DW_LANG_Fortran08;
}

// DWARF 5, 5.13: where a bound is not said.
std::int64_t DefaultLowerBound(int language) {
  switch (language) {
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_Modula2:
    case DW_LANG_Pascal83:
    case DW_LANG_PLI:
    case DW_LANG_Julia:
      return 1;
    default:
      return IsFortran(language) ? 1 : 0;
  }
}

struct Dimension {
  std::int64_t first = 0;
  std::uint64_t length = 0;  // 0: not known, or none

  // Damaged files have any numbers.
  std::int64_t At(std::uint64_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + index);
  }
};

// In the order of the source.
std::vector<Dimension> Dimensions(Dwarf_Die& array) {
  std::vector<Dimension> dimensions;
  const std::int64_t lowest = DefaultLowerBound(LanguageOf(array));
  Dwarf_Die die;
  if (dwarf_child(&array, &die) != 0) return dimensions;
  do {
    if (dwarf_tag(&die) != DW_TAG_subrange_type) continue;
    Dimension dimension{lowest, 0};
    Bound(die, DW_AT_lower_bound, dimension.first);
    std::int64_t last = 0;
    if (!Number(die, DW_AT_count, dimension.length) && Bound(die, DW_AT_upper_bound, last) &&
        last >= dimension.first) {
      dimension.length =
          static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(dimension.first) + 1;
    }
    dimensions.push_back(dimension);
  } while (NextSibling(die));
  return dimensions;
}

// "[2][3]"; of Fortran "(2,3)". `texts`: by dimension.
std::string InBrackets(const std::vector<std::string>& texts, bool is_fortran) {
  if (!is_fortran) return texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, "]["));
  return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, ","));
}

bool EndsWithComponent(std::string_view path, std::string_view tail) {
  return path.ends_with(tail) &&
         (path.size() == tail.size() || path[path.size() - tail.size() - 1] == '/');
}

bool IsQualifier(int tag) {
  return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
         tag == DW_TAG_restrict_type;
}

bool IsAggregate(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool IsAtomicClass(Dwarf_Die& type) {
  const char* name = dwarf_diename(&type);
  if (name == nullptr) return false;
  const std::string_view text = name;
  const char* file = DeclarationFile(type);
  if (file != nullptr && IsAtomicHeader(file)) {
    return text.starts_with("atomic<") || text.starts_with("__atomic_base<") ||
           text.starts_with("atomic_flag") || text.starts_with("__atomic_float<");
  }
  // Rust's types say nothing of their file.
  return LanguageOf(type) == DW_LANG_Rust && text.starts_with("Atomic");
}

std::string NameAt(Dwarf_Die& type, int depth) {
  if (depth == kMaxTypeDepth) return "?";
  const int tag = dwarf_tag(&type);
  const auto inner = [&] {
    Dwarf_Die next;
    return TypeOf(type, next) ? NameAt(next, depth + 1) : std::string("void");
  };
  // Of an array the elements are qualified, and the array once more.
  const auto qualified = [&](const char* qualifier) {
    Dwarf_Die next;
    const bool is_array = TypeOf(type, next) && dwarf_tag(&next) == DW_TAG_array_type;
    return is_array ? inner() : qualifier + inner();
  };
  switch (tag) {
    case DW_TAG_pointer_type:
      return inner() + "*";
    case DW_TAG_reference_type:
      return inner() + "&";
    case DW_TAG_rvalue_reference_type:
      return inner() + "&&";
    case DW_TAG_const_type:
      return qualified("const ");
    case DW_TAG_volatile_type:
      return qualified("volatile ");
    case DW_TAG_atomic_type:
      return "_Atomic " + inner();
    case DW_TAG_restrict_type:
      return inner() + " restrict";
    case DW_TAG_array_type: {
      const int language = LanguageOf(type);
      const bool is_fortran = IsFortran(language);
      std::vector<std::string> lengths;
      for (const Dimension& dimension : Dimensions(type)) {
        const bool says_first = dimension.first != DefaultLowerBound(language);
        const std::int64_t last = dimension.At(dimension.length - 1);
        lengths.push_back(dimension.length == 0      ? std::string(is_fortran ? ":" : "")
                          : is_fortran && says_first ? fmt::format("{}:{}", dimension.first, last)
                                                     : std::to_string(dimension.length));
      }
      return inner() + InBrackets(lengths, is_fortran);
    }
    case DW_TAG_subroutine_type:
      return "function";
    default:
      break;
  }
  const char* name = dwarf_diename(&type);
  if (name != nullptr) return name;
  switch (tag) {
    case DW_TAG_structure_type:
      return "struct";
    case DW_TAG_class_type:
      return "class";
    case DW_TAG_union_type:
      return "union";
    case DW_TAG_enumeration_type:
      return "enum";
    default:
      return "?";
  }
}

std::uint64_t SizeAt(Dwarf_Die& type, int depth) {
  std::uint64_t size = 0;
  if (depth == kMaxTypeDepth) return 0;
  if (Number(type, DW_AT_byte_size, size)) return size;
  const int tag = dwarf_tag(&type);
  if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
      tag == DW_TAG_rvalue_reference_type) {
    return 8;
  }
  Dwarf_Die inner;
  if (!TypeOf(type, inner)) return 0;
  if (tag != DW_TAG_array_type)
    return IsQualifier(tag) || tag == DW_TAG_atomic_type ? SizeAt(inner, depth + 1) : 0;
  size = SizeAt(inner, depth + 1);
  for (const Dimension& dimension : Dimensions(type)) size *= dimension.length;
  return size;
}

bool HoldsAtomicAt(Dwarf_Die& type, int depth) {
  const int tag = dwarf_tag(&type);
  if (depth == kMaxTypeDepth || tag == DW_TAG_atomic_type) return true;
  Dwarf_Die inner;
  if (IsQualifier(tag) || tag == DW_TAG_array_type)
    return TypeOf(type, inner) && HoldsAtomicAt(inner, depth + 1);
  if (!IsAggregate(tag)) return false;
  if (IsAtomicClass(type)) return true;
  Dwarf_Die die;
  if (dwarf_child(&type, &die) != 0) return false;
  do {
    const int member = dwarf_tag(&die);
    Dwarf_Attribute attribute;
    if ((member == DW_TAG_member || member == DW_TAG_inheritance) &&
        dwarf_attr(&die, DW_AT_external, &attribute) == nullptr && TypeOf(die, inner) &&
        HoldsAtomicAt(inner, depth + 1)) {
      return true;
    }
  } while (NextSibling(die));
  return false;
}

// Where a member begins, in bytes from the object's start on. DWARF 2 says it by an expression.
// Members of a union say nothing.
std::uint64_t BeginOf(Dwarf_Die& member) {
  std::uint64_t begin = 0;
  if (Number(member, DW_AT_data_member_location, begin)) return begin;
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(&member, DW_AT_data_member_location, &attribute) != nullptr &&
      dwarf_getlocation(&attribute, &operations, &count) == 0 && count == 1 &&
      operations[0].atom == DW_OP_plus_uconst) {
    return operations[0].number;
  }
  return 0;
}

// Where a bit-field begins and how long it is, in bits from the object's start on; none: the member
// is no bit-field. DWARF 4, 5.5.6; older ones count from the other end of its type.
std::optional<std::pair<std::uint64_t, std::uint64_t>> BitsOf(Dwarf_Die& member) {
  std::uint64_t size = 0, begin = 0, from_top = 0, storage = 0;
  if (!Number(member, DW_AT_bit_size, size)) return std::nullopt;
  if (Number(member, DW_AT_data_bit_offset, begin)) return std::pair{begin, size};
  begin = BeginOf(member);
  if (!Number(member, DW_AT_byte_size, storage)) storage = SizeOfVariable(member);
  if (Number(member, DW_AT_bit_offset, from_top)) {
    if (8 * storage < from_top + size) return std::nullopt;
    return std::pair{8 * (begin + storage) - from_top - size, size};
  }
  return std::pair{8 * begin, size};
}

struct Member {
  Dwarf_Die die{};
  std::uint64_t offset = 0;  // in it
  std::string name;          // empty: base classes and anonymous members are not written
};

// The member or base class that covers `offset`. A base class does not end where it would as an
// object of its own, so of several that do the one that begins last, the first in a union. Of
// bit-fields that share a byte all are named.
std::optional<Member> FindMember(Dwarf_Die& aggregate, std::uint64_t offset) {
  Dwarf_Die die;
  std::optional<Member> found;
  std::vector<std::string> bit_fields;
  if (dwarf_child(&aggregate, &die) != 0) return std::nullopt;
  do {
    const int tag = dwarf_tag(&die);
    Dwarf_Attribute attribute;
    // A static member has no place in the object, and nobody knows here where a virtual base class
    // has.
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_attr(&die, DW_AT_external, &attribute) != nullptr ||
        (tag == DW_TAG_inheritance && dwarf_attr(&die, DW_AT_virtuality, &attribute) != nullptr)) {
      continue;
    }
    const char* const own_name = tag == DW_TAG_member ? dwarf_diename(&die) : nullptr;
    const std::string name = own_name != nullptr ? own_name : "";
    std::uint64_t begin = 0;
    if (const auto bits = BitsOf(die)) {
      const auto [first, size] = *bits;
      if (first >= 8 * (offset + 1) || first + size <= 8 * offset) continue;
      if (!name.empty()) bit_fields.push_back(name);
      begin = first / 8;
    } else {
      begin = BeginOf(die);
      if (offset < begin || offset - begin >= SizeOfVariable(die)) continue;
    }
    if (found && begin <= offset - found->offset) continue;
    found = Member{die, offset - begin, name};
  } while (NextSibling(die));
  if (found && bit_fields.size() > 1)
    found->name = fmt::format("{{{}}}", fmt::join(bit_fields, ","));
  return found;
}

}  // namespace

bool HoldsAtomic(Dwarf_Die& type) { return HoldsAtomicAt(type, 0); }

bool IsAtomicHeader(std::string_view file) {
  // The last two are Concurrency Kit's and Rust's.
  constexpr std::array<std::string_view, 10> kHeaders = {"atomic",
                                                         "bits/atomic_base.h",
                                                         "bits/atomic_wait.h",
                                                         "bits/atomic_timed_wait.h",
                                                         "bits/atomic_futex.h",
                                                         "bits/shared_ptr_atomic.h",
                                                         "ext/atomicity.h",
                                                         "stdatomic.h",
                                                         "ck_pr.h",
                                                         "sync/atomic.rs"};
  for (const std::string_view header : kHeaders) {
    if (EndsWithComponent(file, header)) return true;
  }
  return file.find("/__atomic/") != std::string_view::npos ||
         file.find("/boost/atomic/") != std::string_view::npos ||
         file.find("/urcu/static/") != std::string_view::npos ||
         file.find("/urcu/uatomic/") != std::string_view::npos ||
         file.find("/boost/smart_ptr/detail/sp_counted_base") != std::string_view::npos;
}

// libdw's dwarf_decl_file ends the process when the unit has no file table of its own (split
// DWARF).
const char* DeclarationFile(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &number) != 0 ||
      dwarf_cu_die(attribute.cu, &unit, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
          nullptr ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || number >= count) {
    return nullptr;
  }
  return dwarf_filesrc(files, number, nullptr, nullptr);
}

bool NextSibling(Dwarf_Die& die) {
  const Dwarf_Off before = dwarf_dieoffset(&die);
  return dwarf_siblingof(&die, &die) == 0 && dwarf_dieoffset(&die) > before;
}

bool TypeOf(Dwarf_Die& die, Dwarf_Die& type) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr ||
      dwarf_formref_die(&attribute, &type) == nullptr) {
    return false;
  }
  // The declaration of a type that has a unit of its own (-fdebug-types-section).
  Dwarf_Die whole;
  if (dwarf_attr(&type, DW_AT_signature, &attribute) != nullptr &&
      dwarf_formref_die(&attribute, &whole) != nullptr) {
    type = whole;
  }
  return true;
}

std::uint64_t SizeOfVariable(Dwarf_Die& die) {
  Dwarf_Die type;
  return TypeOf(die, type) ? SizeAt(type, 0) : 0;
}

std::string TypeName(Dwarf_Die& type) { return NameAt(type, 0); }

// What of an object of the type is left from `offset` on; not known: all.
static std::uint64_t BytesFrom(Dwarf_Die& type, std::uint64_t offset) {
  const std::uint64_t size = SizeAt(type, 0);
  return size > offset ? size - offset : ~std::uint64_t{0};
}

TypePath Descend(Dwarf_Die& type, std::uint64_t offset) {
  TypePath path;
  Dwarf_Die at = type;
  for (int depth = 0; depth < kMaxTypeDepth; ++depth) {
    const int tag = dwarf_tag(&at);
    Dwarf_Die next;
    if (tag == DW_TAG_atomic_type) {
      path.atomic_bytes = BytesFrom(at, offset);
      break;
    }
    if (IsQualifier(tag)) {
      if (!TypeOf(at, next)) break;
    } else if (tag == DW_TAG_array_type) {
      if (!TypeOf(at, next)) break;
      const std::uint64_t element = SizeAt(next, 0);
      if (element == 0) break;
      // Fortran's first index counts elements.
      const bool is_fortran = IsFortran(LanguageOf(at));
      std::vector<Dimension> dimensions = Dimensions(at);
      if (is_fortran) std::ranges::reverse(dimensions);
      std::uint64_t stride = element;
      for (const Dimension& dimension : dimensions) stride *= dimension.length;
      std::vector<std::string> indices;
      for (const Dimension& dimension : dimensions) {
        // A flexible array has no length, and nothing to divide by.
        stride = dimension.length != 0 ? stride / dimension.length : element;
        if (stride == 0) stride = element;
        indices.push_back(std::to_string(dimension.At(offset / stride)));
        offset %= stride;
      }
      if (is_fortran) std::ranges::reverse(indices);
      path.suffix += InBrackets(indices, is_fortran);
    } else if (IsAggregate(tag)) {
      if (IsAtomicClass(at)) {
        path.atomic_bytes = BytesFrom(at, offset);
        break;
      }
      std::optional<Member> member = FindMember(at, offset);
      if (!member || !TypeOf(member->die, next)) break;
      if (!member->name.empty())
        path.suffix += (IsFortran(LanguageOf(at)) ? '%' : '.') + member->name;
      offset = member->offset;
    } else {
      break;
    }
    at = next;
  }
  return path;
}

}  // namespace trapline
