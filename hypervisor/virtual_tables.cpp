#include "hypervisor/virtual_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "hypervisor/guest_copy.h"
#include "hypervisor/host_mappings.h"

namespace trapline {
namespace {

// The classes of which the type information of a class with virtual functions is an object,
// mangled.
constexpr std::array<std::string_view, 3> kClassTypes = {"N10__cxxabiv117__class_type_infoE",
                                                         "N10__cxxabiv120__si_class_type_infoE",
                                                         "N10__cxxabiv121__vmi_class_type_infoE"};

constexpr std::uint64_t kWord = 8;

// Of an std::type_info object: its own pointer to a table, and its name.
struct TypeInfo {
  std::uint64_t table = 0;
  std::uint64_t name = 0;
};

// Copies the bytes there if they are in memory: tables are, and what is none must not come there
// because it was looked at, above all not if the program itself is asked for it (userfaultfd).
bool ReadResident(std::uint64_t address, void* out, std::size_t size) {
  return IsInMemory(address, size) && ReadGuest(address, out, size);
}

// The type information that a table has in front of where objects point.
bool ReadTypeInfo(std::uint64_t table, TypeInfo& info) {
  std::uint64_t at = 0;
  return table % kWord == 0 && table > kWord && ReadResident(table - kWord, &at, sizeof at) &&
         at != 0 && at % kWord == 0 && ReadResident(at, &info, sizeof info);
}

bool IsClassType(std::uint64_t name) {
  constexpr std::size_t kLongest = kClassTypes[2].size() + 1;
  for (const std::string_view type : kClassTypes) {
    std::array<char, kLongest> text{};
    if (ReadResident(name, text.data(), type.size() + 1) && type == text.data()) return true;
  }
  return false;
}

// The pointers to such tables that the access is to; false: something else is there.
bool ReadTables(const MemoryAccess& access, std::array<std::uint64_t, 2>& there) {
  if ((access.size != kWord && access.size != sizeof there) ||
      !ReadGuest(access.address, there.data(), access.size)) {
    return false;
  }
  return std::all_of(there.begin(), there.begin() + access.size / kWord, IsVirtualTable);
}

}  // namespace

bool IsVirtualTable(std::uint64_t address) {
  TypeInfo of_object, of_type;
  return ReadTypeInfo(address, of_object) && ReadTypeInfo(of_object.table, of_type) &&
         IsClassType(of_type.name);
}

TablePointers PointersToVirtualTables() {
  return {[](std::uint64_t address, std::uint64_t& word) {
            return ReadResident(address, &word, sizeof word);
          },
          IsVirtualTable};
}

bool StoresVectorOverTables(const Instruction& instruction, const RegisterFile& registers) {
  if (!StoredBy(instruction, {}).in_vector()) return false;
  const MemoryAccess access = Accesses(instruction, registers)[0];
  std::array<std::uint64_t, 2> there{};
  return ReadTables(access, there);
}

bool StoresVirtualTablesAgain(const Instruction& instruction, const RegisterFile& registers,
                              const MemoryAccess& access) {
  std::array<std::uint64_t, 2> there{};
  std::array<std::uint8_t, kMaximumInstructionLength> code{};
  if (!access.write || access.read || !ReadTables(access, there) ||
      !ReadGuest(registers.rip, code.data(), instruction.length)) {
    return false;
  }
  const StoredValue stored = StoredBy(instruction, code);
  std::array<std::uint64_t, 2> words{};
  switch (stored.source) {
    case StoredValue::Source::kNone:
      return false;
    case StoredValue::Source::kImmediate:
      words[0] = stored.immediate;
      break;
    case StoredValue::Source::kGeneral:
      words[0] = registers.gpr[stored.reg];
      break;
    default: {
      if (registers.xsave == nullptr) return false;
      constexpr std::size_t kVectors = 160, kVector = 16;  // SDM vol. 1, 10.5.1
      const std::size_t high = stored.source == StoredValue::Source::kVectorHigh ? 8 : 0;
      std::memcpy(words.data(), registers.xsave + kVectors + stored.reg * kVector + high,
                  access.size);
    }
  }
  return words == there;
}

}  // namespace trapline
