#include "symbols/dwarf_types.h"

#include <dwarf.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
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

// The lengths of an array's dimensions; 0: not known.
std::vector<std::uint64_t> Dimensions(Dwarf_Die& array) {
  std::vector<std::uint64_t> lengths;
  Dwarf_Die die;
  if (dwarf_child(&array, &die) != 0) return lengths;
  do {
    if (dwarf_tag(&die) != DW_TAG_subrange_type) continue;
    std::uint64_t value = 0;
    if (Number(die, DW_AT_count, value)) {
      lengths.push_back(value);
    } else {
      // An array of no elements has its upper bound at -1, or none.
      lengths.push_back(Number(die, DW_AT_upper_bound, value) ? value + 1 : 0);
    }
  } while (NextSibling(die));
  return lengths;
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
  Dwarf_Die unit;
  return dwarf_diecu(&type, &unit, nullptr, nullptr) != nullptr &&
         dwarf_srclang(&unit) == DW_LANG_Rust && text.starts_with("Atomic");
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
      std::string name = inner();
      for (const std::uint64_t length : Dimensions(type))
        name += length != 0 ? fmt::format("[{}]", length) : "[]";
      return name;
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
  for (const std::uint64_t length : Dimensions(type)) size *= length;
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

// The member or base class that covers `offset`, which becomes relative to it.
bool FindMember(Dwarf_Die& aggregate, std::uint64_t& offset, Dwarf_Die& member) {
  Dwarf_Die die;
  if (dwarf_child(&aggregate, &die) != 0) return false;
  do {
    const int tag = dwarf_tag(&die);
    Dwarf_Attribute attribute;
    // A static member has no place in the object.
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_attr(&die, DW_AT_external, &attribute) != nullptr) {
      continue;
    }
    std::uint64_t begin = 0;
    Number(die, DW_AT_data_member_location, begin);  // members of a union have none
    if (offset >= begin && offset - begin < SizeOfVariable(die)) {
      offset -= begin;
      member = die;
      return true;
    }
  } while (NextSibling(die));
  return false;
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
  return dwarf_attr_integrate(&die, DW_AT_type, &attribute) != nullptr &&
         dwarf_formref_die(&attribute, &type) != nullptr;
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
      const std::vector<std::uint64_t> lengths = Dimensions(at);
      std::uint64_t stride = element;
      for (const std::uint64_t length : lengths) stride *= length;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        // A flexible array has no length, and nothing to divide by.
        stride = lengths[i] != 0 ? stride / lengths[i] : element;
        if (stride == 0) stride = element;
        path.suffix += fmt::format("[{}]", offset / stride);
        offset %= stride;
      }
    } else if (IsAggregate(tag)) {
      if (IsAtomicClass(at)) {
        path.atomic_bytes = BytesFrom(at, offset);
        break;
      }
      Dwarf_Die member;
      if (!FindMember(at, offset, member) || !TypeOf(member, next)) break;
      const char* name = dwarf_diename(&member);
      // Base classes and anonymous members are not written.
      if (dwarf_tag(&member) == DW_TAG_member && name != nullptr)
        path.suffix += std::string(".") + name;
    } else {
      break;
    }
    at = next;
  }
  return path;
}

}  // namespace trapline
