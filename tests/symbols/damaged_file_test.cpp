// Whatever is wrong with a program's debug information and symbols, questions about its code and
// data are answered, if only by nothing. (What checks it is that this ends, and the sanitizers.)
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "symbols/modules.h"
#include "symbols/symbolizer.h"
#include "symbols/unwinder.h"
#include "tests/symbols/loaded_file.h"

namespace trapline {
namespace {

constexpr std::uint64_t kBias = 0x555500000000;

struct Section {
  std::string name;
  Elf64_Shdr header;
};

std::vector<Section> SectionsOf(const std::string& bytes) {
  Elf64_Ehdr file;
  std::memcpy(&file, bytes.data(), sizeof file);
  std::vector<Section> sections(file.e_shnum);
  for (unsigned i = 0; i < file.e_shnum; ++i) {
    std::memcpy(&sections[i].header, bytes.data() + file.e_shoff + i * sizeof(Elf64_Shdr),
                sizeof(Elf64_Shdr));
  }
  const Elf64_Shdr names = sections[file.e_shstrndx].header;
  for (Section& section : sections)
    section.name = bytes.c_str() + names.sh_offset + section.header.sh_name;
  return sections;
}

// Of those that tell of the program, but do not make it up.
bool IsTold(const Section& section) {
  return section.header.sh_size != 0 && section.header.sh_type != SHT_NOBITS &&
         (section.name.starts_with(".debug_") || section.name.starts_with(".eh_frame") ||
          section.name == ".symtab" || section.name == ".strtab" || section.name == ".rela.plt");
}

// Two or forty bytes of a section, or the headers of all, become others.
void Damage(std::string& bytes, const std::vector<Section>& sections, std::mt19937& random) {
  const auto change = [&](std::uint64_t begin, std::uint64_t size, unsigned count) {
    for (; count > 0; --count) {
      char& byte = bytes[begin + random() % size];
      byte = random() % 3 == 0 ? '\xff' : static_cast<char>(byte ^ (1 << random() % 8));
    }
  };
  if (random() % 16 == 0) {
    Elf64_Ehdr file;
    std::memcpy(&file, bytes.data(), sizeof file);
    change(file.e_shoff, sections.size() * sizeof(Elf64_Shdr), 2);
    return;
  }
  const Elf64_Shdr& header = sections[random() % sections.size()].header;
  change(header.sh_offset, header.sh_size, random() % 2 == 0 ? 2 : 40);
}

class DamagedFileTest : public testing::TestWithParam<const char*> {
 protected:
  DamagedFileTest() {
    char name[] = "/tmp/damaged_file_XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~DamagedFileTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

void AskEverything(Modules& modules, const MemoryReader& memory, const Elf64_Shdr& code,
                   const Elf64_Shdr& data) {
  Symbolizer symbolizer(modules);
  Unwinder unwinder(modules);
  const std::uint64_t first = kBias + code.sh_addr;
  constexpr std::uint64_t kStep = 23;  // some instructions
  for (std::uint64_t pc = first; pc < first + code.sh_size; pc += kStep) {
    symbolizer.ResolveCode(pc);
    symbolizer.IsAtomicByDebugInfo(pc);
    symbolizer.IsPlainBySource(pc);
    symbolizer.BareCodeAt(pc);
    const std::uint64_t stack[] = {pc, first + 1};
    symbolizer.OrderOf(stack, true, true);
    constexpr std::uint64_t kStack = 0x7000;
    const StackFrame frames[] = {{pc, kStack, kStack - 16, kStack - 256, false},
                                 {first + 1, kStack + 256, kStack + 128, kStack, true}};
    symbolizer.ResolveStack(kStack - 40, frames);
    UnwindRegisters registers;
    registers.rip = pc;
    registers.rsp = kBias + data.sh_addr;
    registers.rbp = registers.rsp + 16;
    std::uint64_t pcs[8];
    EXPECT_GE(unwinder.Unwind(registers, memory, pcs), 1u);
  }
  for (std::uint64_t at = kBias + data.sh_addr; at < kBias + data.sh_addr + data.sh_size; at += 4) {
    symbolizer.ResolveData(at);
    symbolizer.IsAtomicVariable(at, 4);
    symbolizer.ImportAt(at);
  }
  if (const Module* const module = modules.Find(first)) symbolizer.MayHoldAtomics(*module);
}

TEST_P(DamagedFileTest, QuestionsAreAnswered) {
  const std::string good = std::string(NAMES_DIRECTORY "/") + GetParam();
  std::ifstream file(good, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(bytes.empty()) << good;
  std::vector<Section> told;
  Elf64_Shdr code = {}, data = {};
  for (const Section& section : SectionsOf(bytes)) {
    if (IsTold(section)) told.push_back(section);
    if (section.name == ".text") code = section.header;
    if (section.name == ".data") data = section.header;
  }
  ASSERT_FALSE(told.empty());
  constexpr unsigned kTimes = 24;
  for (unsigned seed = 0; seed < kTimes; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string damaged = bytes;
    Damage(damaged, told, random);
    const std::string path = directory_ + "/" + GetParam();
    std::ofstream(path, std::ios::binary) << damaged;
    LoadedFile copy(path, kBias);
    ModulesOptions options = copy.Options();
    Modules modules(options);
    AskEverything(modules, options.memory, code, data);
  }
}

INSTANTIATE_TEST_SUITE_P(, DamagedFileTest,
                         testing::Values("names_O2", "names_dwarf4", "names_compressed"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace trapline
