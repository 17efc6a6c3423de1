// Program addresses to names, with this very program as the module.
#include "replay/symbolizer.h"

#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <string>

#include "symbols/modules.h"

namespace trapline {

// Something to find. External, so that it has a name in the symbol table.
__attribute__((noinline)) int FunctionToBeNamed(int argument) { return argument * 3 + 1; }

namespace {

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
  EXPECT_NE(place.function.find("FunctionToBeNamed(int)"), std::string::npos) << place.function;
  EXPECT_NE(place.file.find("symbolizer_test.cpp"), std::string::npos) << place.file;
  EXPECT_EQ(place.offset, address - module.bias);
  EXPECT_NE(PlaceText(place).find("FunctionToBeNamed"), std::string::npos);
}

TEST(LogSymbolizer, AnotherFileOfThatNameIsNotUsed) {
  LogModule module = ThisProgram();
  module.build_id[0] = module.build_id[0] == '0' ? '1' : '0';
  LogSymbolizer symbolizer({module}, true);
  const Place& place = symbolizer.Resolve(reinterpret_cast<std::uint64_t>(&FunctionToBeNamed));
  EXPECT_EQ(place.function, "");
  EXPECT_EQ(PlaceText(place).find("exe+0x"), 0U) << PlaceText(place);
}

TEST(LogSymbolizer, WithoutFilesOnlyOffsets) {
  LogSymbolizer symbolizer({ThisProgram()}, false);
  EXPECT_EQ(symbolizer.Resolve(reinterpret_cast<std::uint64_t>(&FunctionToBeNamed)).function, "");
}

TEST(LogSymbolizer, OutsideAllModules) {
  LogSymbolizer symbolizer({}, true);
  EXPECT_EQ(PlaceText(symbolizer.Resolve(0x1234)), "0x1234");
}

}  // namespace
}  // namespace trapline
