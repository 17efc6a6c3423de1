// Fuzz target: any bytes as a maps file. With clang and TRAPLINE_FUZZ it is a libFuzzer target;
// otherwise it runs over the files it is given.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "symbols/modules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trapline::Mapping;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Mapping& mapping : trapline::ParseMaps(text)) {
    if (mapping.begin >= mapping.end) abort();
  }
  // And what is made of it, with the same bytes as the memory of every address.
  trapline::ModulesOptions options;
  options.read_maps = [&] { return text; };
  options.memory = {[](void* bytes, std::uint64_t address, void* out, std::size_t length) {
                      const auto& all = *static_cast<const std::string*>(bytes);
                      const std::uint64_t at = address % 4096;
                      if (at > all.size() || length > all.size() - at) return false;
                      std::memcpy(out, all.data() + at, length);
                      return true;
                    },
                    const_cast<std::string*>(&text)};
  trapline::Modules modules(options);
  for (const std::uint64_t address : {0ull, 0x400000ull, 0x7f0000000000ull, ~0ull}) {
    const trapline::Module* module = modules.Find(address);
    if (module != nullptr && (address < module->begin || address >= module->end)) abort();
    modules.OnUnmap(address, address + 1);
  }
  return 0;
}
