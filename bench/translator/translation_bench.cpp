// What translation costs: all functions of libraries, and what they branch to, translated with what
// a guest's code is translated with. Without arguments the C and the C++ library; else ELF files.
#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hypervisor/virtual_tables.h"
#include "translator/code_cache.h"

namespace trapline {
namespace {

// Processor time of the thread, so that other programs' time does not count.
double Now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The code of an ELF file, where a shared library might lie.
class Code {
 public:
  explicit Code(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (file_.size() < sizeof(Elf64_Ehdr)) {
      std::fprintf(stderr, "%s cannot be read\n", path.c_str());
      std::exit(1);
    }
    const auto header = At<Elf64_Ehdr>(0);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      const auto segment = At<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) segments_.push_back(segment);
    }
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto section = At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB) AddFunctions(section);
    }
    std::sort(functions_.begin(), functions_.end());
    functions_.erase(std::unique(functions_.begin(), functions_.end()), functions_.end());
  }

  const std::vector<std::uint64_t>& functions() const { return functions_; }

  std::size_t Read(std::uint64_t address, std::uint8_t* to, std::size_t size) const {
    for (const Elf64_Phdr& segment : segments_) {
      const std::uint64_t offset = address - kBase - segment.p_vaddr;
      if (offset >= segment.p_filesz) continue;
      size = std::min<std::size_t>(size, segment.p_filesz - offset);
      std::memcpy(to, file_.data() + segment.p_offset + offset, size);
      return size;
    }
    return 0;
  }

 private:
  static constexpr std::uint64_t kBase = 0x7f1234000000;

  template <class Record>
  Record At(std::uint64_t offset) const {
    Record record;
    std::memcpy(&record, file_.data() + offset, sizeof record);
    return record;
  }

  void AddFunctions(const Elf64_Shdr& section) {
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(section.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
        functions_.push_back(kBase + symbol.st_value);
    }
  }

  std::vector<char> file_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<std::uint64_t> functions_;
};

// Memory of a cache, at addresses that do not change from run to run.
CacheMemory MapMemory(std::uint32_t code_size) {
  constexpr std::uint64_t kStart = 0x60000000;
  constexpr std::uint64_t kTable = 0x62000000, kSites = 0x62400000, kThread = 0x62800000;
  const auto map = [](std::uint64_t address, std::uint64_t size) {
    void* const wanted = reinterpret_cast<void*>(address);
    munmap(wanted, size);
    if (mmap(wanted, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
      std::abort();
    return address;
  };
  return {map(kStart, code_size), map(kTable, (CacheMemory::kTableSize + 4095) & ~4095ull),
          map(kSites, CacheMemory::kSitesSize), kThread};
}

// As GuestCodeCache makes them. Partial code has short regions, in which every fourth instruction
// is checked.
TranslatorOptions OptionsOf(const Code& code, bool partial) {
  static constexpr std::uint8_t kShortcut[] = {0x0f, 0x1f, 0x00};
  constexpr std::uint32_t kSize = 16u << 20;
  TranslatorOptions options;
  options.read_code = [&code](std::uint64_t address, std::uint8_t* to, std::size_t size) {
    return code.Read(address, to, size);
  };
  options.instrument = [partial](std::uint64_t rip) {
    return partial && (rip * 0x9e3779b97f4a7c15 >> 62) != 0 ? Instrument::kNone
                                                            : Instrument::kCheck;
  };
  options.is_atomic = [](std::uint64_t) { return false; };
  options.table_pointers = PointersToVirtualTables();
  options.after_atomic = true;
  options.handler = [](const AccessSite*, std::uint64_t, const RegisterFile*) {};
  options.shortcut = [](std::uint32_t, bool) { return std::span(kShortcut); };
  options.mirror_offset = 0xffffa00000000000;
  options.filter = true;
  options.leaving_out = {0x10000000, 0x20000000, 6, 1024, 0x30000000, 9};
  options.system_call_entry = 0x40000000;
  options.shadow_stack = true;
  options.code_size = partial ? kSize / 2 : kSize;
  options.memory = MapMemory(options.code_size);
  options.exit_port = 1;
  options.max_instructions = partial ? 64 : 1024;
  return options;
}

// A cache that the code is translated into, and again from the start whenever it is full.
class Translation {
 public:
  Translation(const Code& code, bool partial)
      : code_(code), cache_(WithColdChecks(code, partial)) {}

  CodeCache& cache() { return cache_; }

  // All of it; `until_full`: as much as there is room for.
  void Run(bool until_full) {
    for (const std::uint64_t function : code_.functions()) {
      if (cache_.full()) {
        if (until_full) return;
        cache_.RemoveAll();
        cache_.Flush();
        links_before_ = cache_.statistics().links;
      }
      const std::uint64_t from = cache_.statistics().links - links_before_;
      cache_.Translate(function);
      const std::uint64_t to = cache_.statistics().links - links_before_;
      for (std::uint64_t link = from; link < to; ++link) cache_.FollowLink(link);
      // Every function is called by a pointer, too.
      cache_.FollowLookup(function);
    }
  }

 private:
  TranslatorOptions WithColdChecks(const Code& code, bool partial) {
    TranslatorOptions options = OptionsOf(code, partial);
    options.cold_checks = [this](std::uint64_t rip) {
      return cache_.ColdChecks(rip).value_or(1024);
    };
    return options;
  }

  const Code& code_;
  CodeCache cache_;
  std::uint64_t links_before_ = 0;
};

void MeasureTranslation(const Code& code, bool partial) {
  double best = 1e9;
  CacheStatistics statistics;
  for (int i = 0; i < 3; ++i) {
    Translation translation(code, partial);
    const double start = Now();
    translation.Run(false);
    best = std::min(best, Now() - start);
    statistics = translation.cache().statistics();
  }
  const auto instructions = static_cast<double>(statistics.instructions);
  std::printf("  %-8s %8.0f instructions %6.0f regions  %5.2f us an instruction  %6.1f a region\n",
              partial ? "partial" : "full", instructions, static_cast<double>(statistics.regions),
              best * 1e6 / instructions, best * 1e6 / static_cast<double>(statistics.regions));
}

// What a cache full of code is asked for while it is in use.
void MeasureUse(const Code& code, bool partial) {
  Translation translation(code, partial);
  translation.Run(true);
  CodeCache& cache = translation.cache();
  const auto instructions = static_cast<double>(cache.statistics().instructions);
  const auto bytes = static_cast<double>(cache.statistics().code_bytes);
  constexpr unsigned kCalls = 100;
  double start = Now();
  for (unsigned i = 0; i < kCalls; ++i) cache.TakeHot([](std::uint64_t) {});
  const double hot = (Now() - start) / kCalls;
  const auto& functions = code.functions();
  start = Now();
  for (unsigned i = 0; i < kCalls; ++i) {
    const std::uint64_t rip = functions[i * functions.size() / kCalls];
    cache.Invalidate(rip, rip + 1);
  }
  const double invalidate = (Now() - start) / kCalls;
  std::printf(
      "  %-8s with %.0f instructions (%.1f bytes each), %.0f regions: "
      "TakeHot %.0f us, Invalidate %.0f us\n",
      partial ? "partial" : "full", instructions, bytes / instructions,
      static_cast<double>(cache.statistics().regions), hot * 1e6, invalidate * 1e6);
}

std::string FileOf(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

int Main(std::vector<std::string> files) {
  if (files.empty()) {
    files = {FileOf(reinterpret_cast<const void*>(&gnu_get_libc_version)),
             FileOf(reinterpret_cast<const void*>(&std::terminate))};
  }
  for (const std::string& file : files) {
    const Code code(file);
    std::printf("%s\n", file.c_str());
    for (const bool partial : {false, true}) MeasureTranslation(code, partial);
    for (const bool partial : {false, true}) MeasureUse(code, partial);
  }
  return 0;
}

}  // namespace
}  // namespace trapline

int main(int argc, char** argv) { return trapline::Main({argv + 1, argv + argc}); }
