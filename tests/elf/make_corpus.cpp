// Writes the broken files into a directory: seeds for the fuzz targets.
#include <elf.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/elf/elf_file.h"

namespace {

void WriteFile(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    (void)std::fputs("usage: elf_corpus DIRECTORY\n", stderr);
    return 1;
  }
  const std::filesystem::path directory = argv[1];
  std::filesystem::create_directories(directory);
  using trapline::testing::MakeTinyElf;
  int written = 0;
  for (const auto& elf : {MakeTinyElf(ET_EXEC), MakeTinyElf(ET_DYN, "/lib/ld.so")}) {
    for (auto mutate : {trapline::testing::FieldMutations, trapline::testing::Truncations}) {
      for (const auto& broken : mutate(elf)) {
        WriteFile(directory / fmt::format("elf{:04}", written++), broken.bytes);
      }
    }
  }
  const std::vector<std::string> scripts = {"#!",
                                            "#!\n",
                                            "#! \t\n",
                                            "#!/bin/sh\n",
                                            "#! /bin/sh -e -x \n",
                                            "#!/bin/sh",
                                            "#!/bin/sh ",
                                            "#!" + std::string(254, 'a'),
                                            "#!" + std::string(253, 'a') + "\n",
                                            "#!/bin/sh " + std::string(300, 'b')};
  for (const std::string& script : scripts) {
    WriteFile(directory / fmt::format("script{:04}", written++), {script.begin(), script.end()});
  }
  return 0;
}
