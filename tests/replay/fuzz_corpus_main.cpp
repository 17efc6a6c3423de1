// Runs a fuzz target over files and, one level deep, directories, where there is no libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

bool Run(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file && !file.eof()) return false;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files += Run(argv[i]) ? 1 : 0;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      files += entry.is_regular_file() && Run(entry.path()) ? 1 : 0;
    }
  }
  std::printf("%d inputs\n", files);
  return files == 0 ? 1 : 0;
}
