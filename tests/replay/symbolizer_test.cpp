// Program addresses to names, with this very program as the module.
#include "replay/symbolizer.h"

#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "symbols/linked_library.h"
#include "symbols/modules.h"

namespace trapline {

// Something to find. External, so that it has a name in the symbol table.
__attribute__((noinline)) int FunctionToBeNamed(int argument) { return argument * 3 + 1; }
int array_to_be_named[4] = {1, 2, 3, 4};

namespace {

inline __attribute__((always_inline)) std::uint64_t AddressHere() {
  std::uint64_t address = 0;
  asm volatile("lea 0(%%rip), %0" : "=r"(address));
  return address - 1;  // inside the instruction
}

LogModule ThisProgram() {
  LogModule module;
  module.path = "/proc/self/exe";
  module.build_id = BuildIdOfFile(module.path);
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* out = static_cast<LogModule*>(data);
        out->bias = info->dlpi_addr;  // the first one is the program itself
        out->begin = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type == PT_LOAD) {
            out->end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
          }
        }
        return 1;
      },
      &module);
  return module;
}

TEST(LogSymbolizer, NamesFunctionAndLine) {
  EXPECT_EQ(FunctionToBeNamed(1), 4);
  const LogModule module = ThisProgram();
  ASSERT_FALSE(module.build_id.empty());
  const auto address = reinterpret_cast<std::uint64_t>(&FunctionToBeNamed);
  LogSymbolizer symbolizer({module}, true);
  const Place& place = symbolizer.Resolve(address);
  EXPECT_NE(place.frames[0].function.find("FunctionToBeNamed(int)"), std::string::npos)
      << place.frames[0].function;
  EXPECT_NE(place.frames[0].file.find("symbolizer_test.cpp"), std::string::npos)
      << place.frames[0].file;
  EXPECT_EQ(place.offset, address - module.bias);
  EXPECT_NE(PlaceText(place).find("FunctionToBeNamed"), std::string::npos);
}

TEST(LogSymbolizer, ReadsCodeFromTheFile) {
  const LogModule module = ThisProgram();
  const auto address = reinterpret_cast<std::uint64_t>(&FunctionToBeNamed);
  LogSymbolizer symbolizer({module}, true);
  unsigned char code[8] = {};
  EXPECT_EQ(symbolizer.ReadCode(address, code, sizeof code), sizeof code);
  EXPECT_EQ(std::memcmp(code, reinterpret_cast<const void*>(&FunctionToBeNamed), sizeof code), 0);
  EXPECT_EQ(symbolizer.BareCodeAt(address), BareCode::kNo);  // it has debug info
  EXPECT_EQ(symbolizer.ReadCode(module.end, code, sizeof code), 0U);
  LogSymbolizer without_files({module}, false);
  EXPECT_EQ(without_files.ReadCode(address, code, sizeof code), 0U);
}

__attribute__((noinline)) std::uint64_t CallerOfInlined() { return AddressHere(); }

TEST(LogSymbolizer, NamesWhatIsInlinedInnermostFirst) {
  LogSymbolizer symbolizer({ThisProgram()}, true);
  const Place& place = symbolizer.Resolve(CallerOfInlined());
  ASSERT_EQ(place.frames.size(), 2U) << PlaceText(place);
  EXPECT_NE(FrameText(place, 0).find("AddressHere"), std::string::npos) << FrameText(place, 0);
  EXPECT_NE(FrameText(place, 0).find("(inlined)"), std::string::npos) << FrameText(place, 0);
  EXPECT_NE(FrameText(place, 1).find("CallerOfInlined"), std::string::npos) << FrameText(place, 1);
  EXPECT_EQ(FrameText(place, 1).find("(inlined)"), std::string::npos) << FrameText(place, 1);
}

TEST(LogSymbolizer, NamesVariables) {
  const LogModule module = ThisProgram();
  const auto address = reinterpret_cast<std::uint64_t>(&array_to_be_named[2]);
  const auto variable = LogSymbolizer({module}, true).ResolveData(address);
  ASSERT_TRUE(variable);
  EXPECT_NE(variable->data.expression.find("array_to_be_named[2]"), std::string::npos)
      << variable->data.expression;
  EXPECT_EQ(VariableText(*variable).find("trapline::array_to_be_named+0x8 (int[4], 16 bytes, "), 0U)
      << VariableText(*variable);
  EXPECT_FALSE(LogSymbolizer({module}, false).ResolveData(address));
  EXPECT_FALSE(LogSymbolizer({module}, true).ResolveData(0x1234));
}

TEST(LogSymbolizer, AnotherFileOfThatNameIsNotUsed) {
  LogModule module = ThisProgram();
  module.build_id[0] = module.build_id[0] == '0' ? '1' : '0';
  LogSymbolizer symbolizer({module}, true);
  const Place& place = symbolizer.Resolve(reinterpret_cast<std::uint64_t>(&FunctionToBeNamed));
  EXPECT_EQ(place.frames[0].function, "");
  EXPECT_EQ(PlaceText(place).find("exe+0x"), 0U) << PlaceText(place);
}

TEST(LogSymbolizer, WithoutFilesOnlyOffsets) {
  LogSymbolizer symbolizer({ThisProgram()}, false);
  const Place& place = symbolizer.Resolve(reinterpret_cast<std::uint64_t>(&FunctionToBeNamed));
  EXPECT_EQ(place.frames[0].function, "");
}

// A program (1) with a library function (2) linked into it, and another module (3).
struct CodeOfTest {
  std::string module;
  std::vector<SourceFrame> frames;
};
CodeOfTest Resolve(std::uint64_t address) {
  switch (address) {
    case 1:
      return {"program", {{"Work()", "work.cpp", 3, false}}};
    case 2:
      return {"program", {{"std::ostream& std::ostream::_M_insert<long>(long)", "", 0, false}}};
    case 3:
      return {"other", {{"Caller()", "other.cpp", 1, false}}};
    case 4:
      return {"program", {{"Mine<std::pair<int, int> >(std::string)", "", 0, false}}};
    default:
      return {"", std::vector<SourceFrame>(1)};
  }
}

TEST(LinkedLibrary, IsToldByItsNameAndByItsCaller) {
  EXPECT_TRUE(IsLinkedLibrary({2, 1 + 1}, Resolve));
  EXPECT_TRUE(IsLinkedLibrary({2, 2 + 1, 3 + 1, 1 + 1}, Resolve));
  EXPECT_FALSE(IsLinkedLibrary({1, 1 + 1}, Resolve));
  EXPECT_FALSE(IsLinkedLibrary({2}, Resolve));         // stripped, for all that is known
  EXPECT_FALSE(IsLinkedLibrary({2, 3 + 1}, Resolve));  // in a file of its own
  EXPECT_FALSE(IsLinkedLibrary({4, 1 + 1}, Resolve));
  EXPECT_FALSE(IsLinkedLibrary({9, 1 + 1}, Resolve));
  EXPECT_FALSE(IsLinkedLibrary({}, Resolve));
}

TEST(LogSymbolizer, OutsideAllModules) {
  LogSymbolizer symbolizer({}, true);
  EXPECT_EQ(PlaceText(symbolizer.Resolve(0x1234)), "0x1234");
}

}  // namespace
}  // namespace trapline
