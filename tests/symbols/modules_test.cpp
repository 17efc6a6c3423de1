#include "symbols/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/symbols/loaded_file.h"

namespace trapline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ParseMapsTest, AllFields) {
  const auto mappings = ParseMaps(
      "00400000-0040b000 r-xp 00001000 fd:01 123456                             /bin/a b\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:05 42 /dev/shm/x (deleted)\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "7ffd00000000-7ffd00001000 ---p 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
  ASSERT_THAT(mappings, SizeIs(5));
  Mapping expected;
  expected.begin = 0x400000;
  expected.end = 0x40b000;
  expected.offset = 0x1000;
  expected.readable = expected.executable = true;
  expected.device = 0xfd00000001;
  expected.inode = 123456;
  expected.path = "/bin/a b";
  EXPECT_EQ(mappings[0], expected);
  EXPECT_TRUE(mappings[1].deleted && mappings[1].shared && mappings[1].writable);
  EXPECT_EQ(mappings[1].path, "/dev/shm/x");
  EXPECT_EQ(mappings[2].path, "[stack]");
  EXPECT_EQ(mappings[3].path, "");
  EXPECT_FALSE(mappings[3].readable || mappings[3].executable);
  EXPECT_EQ(mappings[4].end, 0xffffffffff601000);
}

TEST(ParseMapsTest, OddLines) {
  EXPECT_THAT(ParseMaps(""), SizeIs(0));
  EXPECT_THAT(ParseMaps("\n\n\n"), SizeIs(0));
  EXPECT_THAT(ParseMaps("1000-2000"), SizeIs(0));
  EXPECT_THAT(ParseMaps("2000-1000 r-xp 0 0:0 0 x"), SizeIs(0));
  EXPECT_THAT(ParseMaps("1000-2000 r-xp 0 0:0 0"), SizeIs(1));
  EXPECT_THAT(ParseMaps("1000-2000 rx 0 0:0 0 y"), SizeIs(0));
  EXPECT_THAT(ParseMaps("11112222333344445-2 r-xp 0 0:0 0"), SizeIs(0));
  EXPECT_THAT(ParseMaps("garbage\n1000-2000 r-xp 0 0:0 7 /x\ngarbage"), SizeIs(1));
  EXPECT_EQ(ParseMaps("1000-2000 r-xp 0 0:0 7 /with\\012line\\012\n")[0].path, "/with\nline\n");
  EXPECT_EQ(ParseMaps("1000-2000 r-xp 0 0:0 7 /a\\040b")[0].path, "/a\\040b");
  EXPECT_EQ(ParseMaps("1000-2000 r-xp 0 0:0 7 /x (deleted) (deleted)")[0].path, "/x (deleted)");
}

TEST(ParseMapsTest, ThisProcess) {
  std::ifstream file("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(ParseMaps(text),
              SizeIs(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'))));
}

void FunctionOfThisProgram() {}

TEST(ModulesTest, ThisProcess) {
  Modules modules;
  const auto address = reinterpret_cast<std::uint64_t>(&FunctionOfThisProgram);
  const Module* own = modules.Find(address);
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->name(), "modules_test");
  EXPECT_TRUE(own->is_main_program);
  EXPECT_TRUE(modules.IsExecutable(address));
  EXPECT_EQ(own->build_id, BuildIdOfFile("/proc/self/exe"));
  int on_stack = 0;
  EXPECT_EQ(modules.Find(reinterpret_cast<std::uint64_t>(&on_stack)), nullptr);
  EXPECT_FALSE(modules.IsExecutable(reinterpret_cast<std::uint64_t>(&on_stack)));
  const Module* c_library = modules.Find(reinterpret_cast<std::uint64_t>(&getpid));
  ASSERT_NE(c_library, nullptr);
  EXPECT_THAT(c_library->path, HasSubstr("libc.so"));
  EXPECT_FALSE(c_library->is_main_program);
  const Module* vdso = modules.Find(getauxval(AT_SYSINFO_EHDR));
  ASSERT_NE(vdso, nullptr);
  EXPECT_TRUE(vdso->is_vdso());
  EXPECT_EQ(modules.Find(0), nullptr);
  EXPECT_EQ(modules.Find(~0ull), nullptr);
  // The program's data lies in it as well.
  static int data;
  EXPECT_EQ(modules.Find(reinterpret_cast<std::uint64_t>(&data)), own);
}

// As the kernel places a static-pie program now and then.
TEST(ModulesTest, MainProgramAboveVdso) {
  constexpr std::uint64_t kBelowAll = 0x10000;
  static const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  ASSERT_NE(vdso, 0u);
  ModulesOptions options;
  options.read_maps = [] {
    std::ifstream file("/proc/self/maps");
    return "10000-11000 r-xp 00000000 00:00 0 [vdso]\n" +
           std::string(std::istreambuf_iterator<char>(file), {});
  };
  options.memory.read = [](void*, std::uint64_t address, void* out, std::size_t size) {
    const bool moved = address - kBelowAll < 0x2000;
    return OwnMemory()(moved ? address - kBelowAll + vdso : address, out, size);
  };
  Modules modules(options);
  const Module* own = modules.Find(reinterpret_cast<std::uint64_t>(&FunctionOfThisProgram));
  ASSERT_NE(own, nullptr);
  EXPECT_TRUE(own->is_main_program);
  const Module* below = modules.Find(kBelowAll);
  ASSERT_NE(below, nullptr);
  EXPECT_FALSE(below->is_main_program);
}

// LLVM's linker puts segments behind each other in the file, so that a page of it may be mapped by
// two of them: also its first one, with the ELF header.
TEST(ModulesTest, FirstPageMappedTwice) {
  constexpr std::uint64_t kPage = 0x1000, kBase = 0x10000, kFirstSize = 0xda0;
  static const std::vector<char> first_page = [] {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Elf64_Phdr segments[2] = {};
    segments[0].p_type = segments[1].p_type = PT_LOAD;
    segments[0].p_filesz = segments[0].p_memsz = kFirstSize;
    segments[1].p_offset = kFirstSize;
    segments[1].p_vaddr = kPage + kFirstSize;
    segments[1].p_filesz = segments[1].p_memsz = 0x100;
    std::vector<char> page(kPage);
    std::memcpy(page.data(), &header, sizeof header);
    std::memcpy(page.data() + sizeof header, segments, sizeof segments);
    return page;
  }();
  ModulesOptions options;
  options.read_maps = [] {
    return "10000-11000 r--p 00000000 fd:01 7 /program\n"
           "11000-12000 r-xp 00000000 fd:01 7 /program\n";
  };
  options.memory.read = [](void*, std::uint64_t address, void* out, std::size_t size) {
    if (address < kBase || address >= kBase + 2 * kPage || address % kPage + size > kPage)
      return false;
    std::memcpy(out, first_page.data() + address % kPage, size);
    return true;
  };
  Modules modules(options);
  const Module* const program = modules.Find(kBase + kPage + kFirstSize);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->bias, kBase);
  EXPECT_EQ(program, modules.Find(kBase));
}

TEST(ModulesTest, ExcludedFiles) {
  char path[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", path, sizeof path - 1), 0);
  ModulesOptions options;
  options.excluded_paths = {path};
  Modules modules(options);
  EXPECT_EQ(modules.Find(reinterpret_cast<std::uint64_t>(&FunctionOfThisProgram)), nullptr);
  EXPECT_NE(modules.Find(reinterpret_cast<std::uint64_t>(&getpid)), nullptr);
}

// A file that is mapped as data is no module, although it is an ELF file.
TEST(ModulesTest, DataFiles) {
  std::ifstream file(NAMES_DIRECTORY "/names_O2", std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(file.tellg());
  const int descriptor = open(NAMES_DIRECTORY "/names_O2", O_RDONLY);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  Modules modules;
  const auto address = reinterpret_cast<std::uint64_t>(mapped);
  EXPECT_EQ(modules.Find(address), nullptr);
  const auto mapping = modules.FindMapping(address + 100);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->path, NAMES_DIRECTORY "/names_O2");
  munmap(mapped, size);
  close(descriptor);
}

// A process whose modules come and go.
class Changing {
 public:
  Changing() {
    options_.read_maps = [this] { return reads_++, text_; };
  }

  void Load(LoadedFile& file) {
    text_ = file.MapsText();
    options_.memory = file.Options().memory;
    file_ = &file;
  }
  void Unload() { text_.clear(); }
  ModulesOptions Options() {
    ModulesOptions options = options_;
    options.memory = {[](void* self, std::uint64_t address, void* out, std::size_t size) {
                        const MemoryReader reader =
                            static_cast<Changing*>(self)->file_->Options().memory;
                        return reader(address, out, size);
                      },
                      this};
    return options;
  }
  int reads() const { return reads_; }

 private:
  ModulesOptions options_;
  std::string text_;
  LoadedFile* file_ = nullptr;
  int reads_ = 0;
};

TEST(ModulesTest, OldStacksStayKnown) {
  constexpr std::uint64_t kBias = 0x7f1234560000;
  LoadedFile first(NAMES_DIRECTORY "/names_O2", kBias), second(NAMES_DIRECTORY "/names_O0", kBias);
  Changing process;
  process.Load(first);
  Modules modules(process.Options());
  const std::uint64_t address = first.Symbol("main").first;

  const Module* before = modules.Find(address);
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->name(), "names_O2");
  EXPECT_EQ(before->bias, kBias);
  const std::uint32_t generation = modules.generation();
  EXPECT_EQ(modules.Find(address), before);
  EXPECT_EQ(process.reads(), 1);

  process.Load(second);
  modules.OnUnmap(before->begin, before->end);
  const Module* after = modules.Find(address);
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->name(), "names_O0");
  EXPECT_GT(modules.generation(), generation);
  EXPECT_EQ(modules.Find(address, generation), before);
  EXPECT_EQ(modules.Find(address, modules.generation()), after);
  EXPECT_EQ(process.reads(), 2);

  process.Unload();
  modules.OnUnmap(before->begin, before->end);
  EXPECT_EQ(modules.Find(address), nullptr);
  EXPECT_EQ(modules.Find(address, generation), before);
  EXPECT_THAT(modules.Loaded(), SizeIs(0));
  EXPECT_THAT(modules.Gone(), ElementsAre(before, after));
}

// A library that is unloaded and loaded over and over is one module, unless another one was there
// in between.
TEST(ModulesTest, OneThatComesBackIsTheSame) {
  constexpr std::uint64_t kBias = 0x7f1234560000;
  LoadedFile first(NAMES_DIRECTORY "/names_O2", kBias), second(NAMES_DIRECTORY "/names_O0", kBias);
  Changing process;
  process.Load(first);
  Modules modules(process.Options());
  const std::uint64_t address = first.Symbol("main").first;
  const Module* const before = modules.Find(address);
  ASSERT_NE(before, nullptr);
  ASSERT_NE(before->build_id, "");
  const auto replace_by = [&](LoadedFile* file) {
    process.Unload();
    if (file != nullptr) process.Load(*file);
    modules.OnUnmap(before->begin, before->end);
    return modules.Find(address);
  };
  EXPECT_EQ(replace_by(nullptr), nullptr);
  const std::uint32_t without = modules.generation();
  EXPECT_EQ(replace_by(&first), before);
  EXPECT_GT(modules.generation(), without);
  EXPECT_THAT(modules.Gone(), SizeIs(0));

  const std::uint32_t of_first = modules.generation();
  const Module* const between = replace_by(&second);
  ASSERT_NE(between, nullptr);
  const std::uint32_t of_second = modules.generation();
  const Module* const last = replace_by(&first);
  ASSERT_NE(last, nullptr);
  EXPECT_NE(last, before);
  EXPECT_EQ(modules.Find(address, of_first), before);
  EXPECT_EQ(modules.Find(address, of_second), between);
  EXPECT_EQ(modules.Find(address, modules.generation()), last);
}

// What did change is looked at again, and if it is as it was, nothing is new.
TEST(ModulesTest, SameAgain) {
  LoadedFile file(NAMES_DIRECTORY "/names_O2", 0x7f1234560000);
  Changing process;
  process.Load(file);
  Modules modules(process.Options());
  const std::uint64_t address = file.Symbol("main").first;
  const Module* module = modules.Find(address);
  const std::uint32_t generation = modules.generation();
  modules.OnUnmap(address, address + 1);
  EXPECT_EQ(modules.Find(address), module);
  EXPECT_EQ(modules.generation(), generation);
  EXPECT_EQ(process.reads(), 2);
  // Elsewhere: nothing to read.
  modules.OnUnmap(0x1000, 0x2000);
  EXPECT_EQ(modules.Find(address), module);
  EXPECT_EQ(process.reads(), 2);
}

TEST(ModulesTest, ManyThreads) {
  Modules modules;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto address = i % 2 == 0 ? reinterpret_cast<std::uint64_t>(&FunctionOfThisProgram)
                                      : reinterpret_cast<std::uint64_t>(&getpid);
      for (int round = 0; round < 300; ++round) {
        if (i == 3) modules.OnUnmap(address, address + 1);
        EXPECT_NE(modules.Find(address), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace trapline
