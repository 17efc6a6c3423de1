// The program's address space against the kernel: a second range of the same addresses modulo an
// offset gets the same system calls natively. Results must be equal, and after each call the
// regions must say what /proc/self/maps says, and no page-table entry may permit more.
#include "hypervisor/address_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace trapline {
namespace {

// Far from where the kernel puts mappings of its own choice, so that nobody else's appear there.
constexpr std::uint64_t kArena = 0x200000000000, kTwin = 0x300000000000;
constexpr std::uint64_t kArenaPages = 2048;  // four large pages
constexpr std::uint64_t kArenaEnd = kArena + kArenaPages * kPageSize;

struct HostPage {
  int protection;
  bool shared;
  bool operator==(const HostPage&) const = default;
};
using Pages = std::map<std::uint64_t, HostPage>;

// What the kernel says about [start, end), page by page.
Pages HostPages(std::uint64_t start, std::uint64_t end) {
  Pages pages;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0, to = 0;
    char bits[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &from, &to, bits) != 3) std::abort();
    const HostPage page{(bits[0] == 'r' ? PROT_READ : 0) | (bits[1] == 'w' ? PROT_WRITE : 0) |
                            (bits[2] == 'x' ? PROT_EXEC : 0),
                        bits[3] == 's'};
    for (std::uint64_t at = std::max<std::uint64_t>(from, start);
         at < std::min<std::uint64_t>(to, end); at += kPageSize)
      pages[at] = page;
  }
  return pages;
}

class AddressSpaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      machine_ = std::make_unique<Machine>();
    } catch (const KvmError& error) {
      GTEST_SKIP() << "no usable KVM on this machine: " << error.what();
    }
    MakeSpace(false);
    for (int i = 0; i < 2; ++i) carriers_.push_back(&machine_->Acquire());
  }
  void TearDown() override {
    if (machine_ == nullptr) return;
    munmap(Pointer(kArena), kArenaPages * kPageSize);
    munmap(Pointer(kTwin), kArenaPages * kPageSize);
    FreeAgentRange();
  }

  void MakeSpace(bool count_page_use) {
    if (space_ != nullptr) FreeAgentRange();
    space_ = std::make_unique<AddressSpace>(*machine_, MemoryLimits{}, count_page_use);
  }
  // A program has one address space for life, so nothing but its end frees the range.
  static void FreeAgentRange() {
    munmap(Pointer(TRAPLINE_AGENT_BASE), TRAPLINE_AGENT_END - TRAPLINE_AGENT_BASE);
  }

  static void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
  static long Native(long number, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0,
                     std::uint64_t d = 0, std::uint64_t e = 0, std::uint64_t f = 0) {
    const long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
  }
  std::uint64_t MapFixed(std::uint64_t address, std::uint64_t pages, int protection,
                         int kind = MAP_PRIVATE) {
    const long result = space_->Mmap(address, pages * kPageSize, protection,
                                     kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    EXPECT_EQ(result, static_cast<long>(address));
    return address;
  }

  Pages RegionPages(std::uint64_t start, std::uint64_t end) const {
    Pages pages;
    std::uint64_t last_end = 0;
    for (const auto& [from, region] : space_->Regions()) {
      EXPECT_LT(from, region.end);
      EXPECT_GE(from, last_end) << "regions overlap";
      last_end = region.end;
      for (std::uint64_t at = std::max(from, start); at < std::min(region.end, end);
           at += kPageSize)
        pages[at] = {region.protection, region.shared};
    }
    return pages;
  }

  static std::string Difference(const Pages& a, const Pages& b, const char* name_a,
                                const char* name_b, std::uint64_t offset = 0) {
    const auto text = [](const std::optional<HostPage>& page) {
      return page ? "protection " + std::to_string(page->protection) +
                        (page->shared ? " shared" : " private")
                  : std::string("nothing");
    };
    for (std::uint64_t at = kArena; at < kArenaEnd; at += kPageSize) {
      std::optional<HostPage> in_a, in_b;
      if (const auto it = a.find(at); it != a.end()) in_a = it->second;
      if (const auto it = b.find(at + offset); it != b.end()) in_b = it->second;
      if (in_a != in_b)
        return "page " + std::to_string((at - kArena) / kPageSize) + ": " + name_a + " " +
               text(in_a) + ", " + name_b + " " + text(in_b);
    }
    return "";
  }

  static int Readable(int protection) {
    return (protection & (PROT_WRITE | PROT_EXEC)) != 0 ? protection | PROT_READ : protection;
  }

  static Pages TwinPages() {
    Pages pages = HostPages(kTwin, kTwin + kArenaEnd - kArena);
    for (auto& [at, page] : pages) page.protection = Readable(page.protection);
    return pages;
  }

  // Regions, host and page tables of the arena agree.
  void ExpectConsistent() {
    const Pages host = HostPages(kArena, kArenaEnd);
    Pages regions = RegionPages(kArena, kArenaEnd);
    // KVM must be able to read what it maps: the host's pages are readable where the program's may
    // be executed or written only.
    for (auto& [at, page] : regions) page.protection = Readable(page.protection);
    ASSERT_EQ(Difference(regions, host, "region", "host"), "");
    machine_->ForEachCarrier([&](Carrier& carrier) {
      carrier.view(View::kWhole)
          .ForEach({0}, kUserAddressEnd,
                   [&](GuestVirtual address, std::uint64_t length, std::uint64_t entry) {
                     if (address.value >= TRAPLINE_AGENT_BASE && address.value < TRAPLINE_AGENT_END)
                       return;
                     for (std::uint64_t at = 0; at < length; at += kPageSize)
                       CheckEntry(regions, address.value + at, {(entry & PageEntry::kAddress) + at},
                                  entry);
                   });
    });
  }

  void CheckEntry(const Pages& regions, std::uint64_t address, GuestPhysical physical,
                  std::uint64_t entry) {
    const auto it = regions.find(address);
    ASSERT_NE(it, regions.end()) << "an entry without a region: " << std::hex << address;
    const int protection = it->second.protection;
    ASSERT_NE(protection, PROT_NONE) << std::hex << address;
    ASSERT_NE(entry & PageEntry::kUser, 0u);
    if ((protection & PROT_WRITE) == 0) {
      ASSERT_EQ(entry & PageEntry::kWritable, 0u) << std::hex << address;
    }
    if ((protection & PROT_EXEC) == 0) {
      ASSERT_NE(entry & PageEntry::kNoExecute, 0u) << std::hex << address;
    }
    // One guest-virtual address keeps one guest-physical address, in every page table.
    const auto known = physical_.try_emplace(address, physical).first;
    ASSERT_EQ(known->second.value, physical.value) << std::hex << address;
    ASSERT_EQ(machine_->memory().VirtualOf(physical), GuestVirtual{address});
  }

  // The verdict on an access must be the one the protection asks for, and the entry must be there
  // afterwards.
  void Access(Carrier& carrier, std::uint64_t address, bool write, bool fetch) {
    const auto region = space_->Find(address);
    FaultVerdict expected = FaultVerdict::kMapped;
    if (!region) {
      expected = FaultVerdict::kNotMapped;
    } else if (region->protection == PROT_NONE ||
               (write && (region->protection & PROT_WRITE) == 0) ||
               (fetch && (region->protection & PROT_EXEC) == 0)) {
      expected = FaultVerdict::kNotPermitted;
    }
    ASSERT_EQ(space_->Resolve(carrier, View::kWhole, {address}, write, fetch, 0), expected)
        << std::hex << address;
    if (expected != FaultVerdict::kMapped) return;
    const std::uint64_t entry = carrier.view(View::kWhole).Lookup({address});
    ASSERT_NE(entry & PageEntry::kPresent, 0u);
    if (write) {
      ASSERT_NE(entry & PageEntry::kWritable, 0u);
    }
    if (fetch) {
      ASSERT_EQ(entry & PageEntry::kNoExecute, 0u);
    }
  }

  std::unique_ptr<Machine> machine_;
  std::unique_ptr<AddressSpace> space_;
  std::vector<Carrier*> carriers_;
  std::map<std::uint64_t, GuestPhysical> physical_;
};

// --- random sequences against the kernel

class AddressSpaceRandom : public AddressSpaceTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  void SetUp() override {
    AddressSpaceTest::SetUp();
    random_.seed(GetParam());
    char name[] = "/tmp/trapline-address-space-XXXXXX";
    writable_file_ = mkstemp(name);
    ASSERT_GE(writable_file_, 0);
    ASSERT_EQ(ftruncate(writable_file_, kArenaPages * kPageSize), 0);
    readable_file_ = open(name, O_RDONLY | O_CLOEXEC);
    ASSERT_GE(readable_file_, 0);
    unlink(name);
  }
  void TearDown() override {
    close(writable_file_);
    close(readable_file_);
    AddressSpaceTest::TearDown();
  }

  std::uint64_t Pick(std::uint64_t limit) { return random_() % limit; }
  // A range within the arena; short, long, or of whole large pages. Sometimes not aligned.
  Range PickRange() {
    std::uint64_t first = Pick(kArenaPages), count = 1 + Pick(12);
    switch (Pick(4)) {
      case 0:
        count = 1 + Pick(kArenaPages);
        break;
      case 1:
        first = AlignDown(first, 512);
        count = 512 * (1 + Pick(3));
        break;
      default:
        // Close together, so that calls meet each other's remains.
        first = Pick(2) * 1000 + Pick(40);
    }
    count = std::min(count, kArenaPages - first);
    std::uint64_t start = kArena + first * kPageSize, end = start + count * kPageSize;
    if (Pick(20) == 0) end -= Pick(kPageSize);
    if (Pick(40) == 0) start += 1 + Pick(kPageSize - 1);
    return {start, std::max(start, end)};
  }
  int PickProtection() {
    constexpr int kProtections[] = {PROT_NONE,
                                    PROT_READ,
                                    PROT_READ | PROT_WRITE,
                                    PROT_READ | PROT_WRITE,
                                    PROT_READ | PROT_EXEC,
                                    PROT_READ | PROT_WRITE | PROT_EXEC,
                                    PROT_WRITE};
    return kProtections[Pick(std::size(kProtections))];
  }

  // Results are equal, except that addresses in the arena become the twin's.
  static long Translate(long result) {
    const auto address = static_cast<std::uint64_t>(result);
    if (result > 0 && address >= kArena && address < kArenaEnd)
      return result + static_cast<long>(kTwin - kArena);
    return result;
  }

  void Step() {
    const Range range = PickRange();
    const std::uint64_t start = range.start, length = range.end - range.start;
    const std::uint64_t twin = start - kArena + kTwin;
    long result = 0, native = 0;
    switch (Pick(10)) {
      case 0:
      case 1:
      case 2: {
        const int protection = PickProtection();
        int flags = MAP_FIXED | (Pick(3) == 0 ? MAP_SHARED : MAP_PRIVATE), fd = -1;
        if (Pick(6) == 0) flags ^= MAP_FIXED | MAP_FIXED_NOREPLACE;
        std::uint64_t offset = 0;
        if (file_mappings_ && Pick(3) == 0) {
          fd = Pick(2) == 0 ? readable_file_ : writable_file_;
          offset = Pick(64) * kPageSize;
        } else {
          flags |= MAP_ANONYMOUS;
        }
        what_ = "mmap protection " + std::to_string(protection) + " flags " +
                std::to_string(flags) + " fd " + std::to_string(fd);
        result = space_->Mmap(start, length, protection, flags, fd, offset);
        native = Native(SYS_mmap, twin, length, protection, flags, fd, offset);
        break;
      }
      case 3:
      case 4:
        what_ = "munmap";
        result = space_->Munmap(start, length);
        native = Native(SYS_munmap, twin, length);
        break;
      case 5:
      case 6: {
        const int protection = PickProtection();
        what_ = "mprotect " + std::to_string(protection);
        result = space_->Mprotect(start, length, protection);
        native = Native(SYS_mprotect, twin, length, protection);
        break;
      }
      case 7: {
        constexpr int kAdvice[] = {MADV_DONTNEED, MADV_NORMAL, MADV_FREE, MADV_WILLNEED, 4711};
        const int advice = kAdvice[Pick(std::size(kAdvice))];
        what_ = "madvise " + std::to_string(advice);
        result = space_->Madvise(start, length, advice);
        native = Native(SYS_madvise, twin, length, advice);
        break;
      }
      default: {
        // Always to a chosen place, or not moving: where else is the kernel's choice.
        const Range target = PickRange();
        const std::uint64_t new_length =
            Pick(3) == 0 ? length : std::min(length + Pick(8) * kPageSize, kArenaEnd - start);
        int flags = 0;
        std::uint64_t to = 0, to_twin = 0;
        std::uint64_t size = Pick(4) == 0 ? length / 2 : new_length;
        if (Pick(2) == 0) {
          flags = MREMAP_MAYMOVE | MREMAP_FIXED;
          to = target.start;
          to_twin = to - kArena + kTwin;
          size = std::min(size, kArenaEnd - to);
        }
        // The monitor's rules for more than one mapping are simpler than the kernel's: only since
        // Linux 6.17 several can be moved at once.
        const auto region = space_->Find(start);
        if (!everything_ && (!region || region->end < range.end)) return;
        if (flags != 0 && (!region || region->end < start + std::min(length, size))) return;
        what_ = "mremap to size " + std::to_string(size) + " flags " + std::to_string(flags) +
                " at page " + std::to_string((to - kArena) / kPageSize);
        result = space_->Mremap(start, length, size, flags, to);
        native = Native(SYS_mremap, twin, length, size, flags, to_twin);
      }
    }
    what_ += " page " + std::to_string((start - kArena) / kPageSize) + " length " +
             std::to_string(length);
    if (everything_ || result >= 0 || native >= 0) {
      ASSERT_EQ(Translate(result), native) << what_;
    }
  }

  void RunSequence(int steps) {
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(step);
      Step();
      if (HasFatalFailure()) return;
      SCOPED_TRACE(what_);
      ExpectConsistent();
      if (HasFatalFailure()) return;
      ASSERT_EQ(Difference(HostPages(kArena, kArenaEnd), TwinPages(), "host", "native twin",
                           kTwin - kArena),
                "");
      for (int i = 0; i < 6; ++i) {
        const std::uint64_t address =
            kArena + (Pick(2) == 0 ? Pick(2) * 1000 + Pick(50) : Pick(kArenaPages)) * kPageSize +
            Pick(kPageSize);
        Access(*carriers_[Pick(carriers_.size())], address, Pick(2) == 0, Pick(4) == 0);
        if (HasFatalFailure()) return;
      }
      ExpectConsistent();
      if (HasFatalFailure()) return;
    }
  }

  std::mt19937_64 random_;
  std::string what_;
  int writable_file_ = -1, readable_file_ = -1;
  bool file_mappings_ = false;
  // Which of two errors it is, and calls whose results are known to differ.
  bool everything_ = false;
};

TEST_P(AddressSpaceRandom, AgreesWithTheKernel) { RunSequence(150); }

TEST_P(AddressSpaceRandom, AgreesWithTheKernelWithFiles) {
  file_mappings_ = true;
  RunSequence(150);
}

TEST_P(AddressSpaceRandom, AgreesWithTheKernelOnEverything) {
  file_mappings_ = everything_ = true;
  RunSequence(150);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AddressSpaceRandom, ::testing::Range(1u, 9u));

// brk(2) moves the end within what a model says.
TEST_P(AddressSpaceRandom, BreakFollowsItsRules) {
  const std::uint64_t start = kArena + 16 * kPageSize;
  space_->SetBreak(start);
  EXPECT_EQ(space_->break_start(), start);
  std::uint64_t current = start;
  for (int step = 0; step < 200; ++step) {
    SCOPED_TRACE(step);
    std::uint64_t wanted = start + Pick(700 * kPageSize);
    if (Pick(10) == 0) wanted = start - 1 - Pick(kPageSize);
    if (Pick(10) == 0) wanted = 0;
    if (Pick(20) == 0) wanted = kUserAddressEnd + Pick(5);
    if (Pick(20) == 0) wanted = ~std::uint64_t{0} - Pick(9000);
    if (wanted >= start && wanted < kUserAddressEnd) current = wanted;
    ASSERT_EQ(space_->Brk(wanted), static_cast<long>(current));
    Pages expected;
    for (std::uint64_t at = start; at < AlignUp(current, kPageSize); at += kPageSize)
      expected[at] = {PROT_READ | PROT_WRITE, false};
    ASSERT_TRUE(RegionPages(kArena, kArenaEnd) == expected);
    Access(*carriers_[0], start + Pick(700 * kPageSize), Pick(2) == 0, false);
    ExpectConsistent();
    if (HasFatalFailure()) return;
  }
  // Somebody else's mapping is in the way.
  ASSERT_EQ(space_->Brk(start), static_cast<long>(start));
  MapFixed(start + 8 * kPageSize, 1, PROT_READ);
  EXPECT_EQ(space_->Brk(start + 20 * kPageSize), static_cast<long>(start));
  EXPECT_EQ(space_->Brk(start + 2 * kPageSize), static_cast<long>(start + 2 * kPageSize));
  ExpectConsistent();
}

// --- windows

TEST_P(AddressSpaceRandom, WindowsAreForEver) {
  GuestMemory& memory = machine_->memory();
  const std::size_t slots_before = memory.slots_used();
  std::map<std::uint64_t, std::uint64_t> seen, reverse;
  std::set<std::uint64_t> blocks;
  const std::uint64_t bases[] = {kArena, kTwin, 0x10000, kUserAddressEnd - (64ull << 20),
                                 0x555500000000};
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t base = bases[Pick(std::size(bases))];
    const std::uint64_t address =
        std::min(base + AlignDown(Pick(Pick(2) == 0 ? 64ull << 20 : 3ull << 30), kPageSize),
                 kUserAddressEnd - kPageSize);
    const std::uint64_t around = Pick(2) == 0 ? kPageSize : 2ull << 30;
    const GuestPhysical physical =
        memory.PhysicalOf({address}, address > around ? address - around : 0,
                          std::min(address + around, kUserAddressEnd));
    blocks.insert(AlignDown(address, 32ull << 20));
    ASSERT_EQ(physical.value % kPageSize, 0u);
    ASSERT_LT(physical.value >> machine_->physical_bits(), 1u);
    // Large pages need both addresses equal modulo 2 MiB.
    ASSERT_EQ((physical.value ^ address) % kLargePageSize, 0u);
    ASSERT_EQ(seen.try_emplace(address, physical.value).first->second, physical.value);
    ASSERT_EQ(reverse.try_emplace(physical.value, address).first->second, address);
    ASSERT_EQ(memory.VirtualOf(physical), GuestVirtual{address});
  }
  for (const auto& [address, physical] : seen)
    ASSERT_EQ(memory.PhysicalOf({address}, address, address + kPageSize).value, physical);
  EXPECT_FALSE(memory.VirtualOf({0}));
  // At least 32 MiB each, so that the host's limit is never near.
  EXPECT_LE(memory.slots_used(), slots_before + blocks.size());
}

// --- single rules

TEST_F(AddressSpaceTest, LargePagesWhereABlockIsWhole) {
  MapFixed(kArena, 3 * 512, PROT_READ | PROT_WRITE);
  Access(*carriers_[0], kArena + kLargePageSize + 5, true, false);
  const std::uint64_t entry = carriers_[0]->view(View::kWhole).Lookup({kArena + kLargePageSize});
  EXPECT_NE(entry & PageEntry::kLarge, 0u);
  ExpectConsistent();
  // One page less: the large page is gone at once.
  ASSERT_EQ(space_->Mprotect(kArena + kLargePageSize + 3 * kPageSize, kPageSize, PROT_READ), 0);
  EXPECT_EQ(carriers_[0]->view(View::kWhole).Lookup({kArena + kLargePageSize}), 0u);
  Access(*carriers_[0], kArena + kLargePageSize, true, false);
  EXPECT_EQ(carriers_[0]->view(View::kWhole).Lookup({kArena + kLargePageSize}) & PageEntry::kLarge,
            0u);
  ExpectConsistent();
}

TEST_F(AddressSpaceTest, MonitorsMemoryIsOutOfReach) {
  void* own = mmap(Pointer(kArena + 8 * kPageSize), kPageSize, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(own, Pointer(kArena + 8 * kPageSize));
  *static_cast<volatile char*>(own) = 42;
  const std::uint64_t length = 64 * kPageSize;
  EXPECT_EQ(space_->Mmap(kArena, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            -ENOMEM);
  EXPECT_EQ(space_->Munmap(kArena, length), 0);
  EXPECT_EQ(space_->Mprotect(kArena + 8 * kPageSize, kPageSize, PROT_NONE), -ENOMEM);
  EXPECT_EQ(space_->Madvise(kArena, length, MADV_DONTNEED), -ENOMEM);
  EXPECT_EQ(space_->Mremap(kArena + 8 * kPageSize, kPageSize, kPageSize,
                           MREMAP_MAYMOVE | MREMAP_FIXED, kArena),
            -EFAULT);
  MapFixed(kArena + 100 * kPageSize, 1, PROT_READ);
  EXPECT_EQ(space_->Mremap(kArena + 100 * kPageSize, kPageSize, 4 * kPageSize,
                           MREMAP_MAYMOVE | MREMAP_FIXED, kArena + 6 * kPageSize),
            -ENOMEM);
  EXPECT_EQ(*static_cast<volatile char*>(own), 42);
  EXPECT_EQ(HostPages(kArena, kArena + length).size(), 1u) << "a failed call left a reservation";
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {kArena + 8 * kPageSize}, false, false, 0),
            FaultVerdict::kNotMapped);
  EXPECT_EQ(space_->Mmap(TRAPLINE_AGENT_BASE, kPageSize, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            -ENOMEM);
  EXPECT_EQ(space_->Munmap(TRAPLINE_AGENT_BASE, TRAPLINE_AGENT_END - TRAPLINE_AGENT_BASE), 0);
  EXPECT_FALSE(AddressSpace::IsFree(TRAPLINE_AGENT_BASE, TRAPLINE_AGENT_END));
}

// A length that leaves the address space: natively everything above is advised, here that would be
// the monitor's memory. In a child, because it might be.
TEST_F(AddressSpaceTest, AdviceOnEverything) {
  const pid_t child = fork();
  if (child == 0) {
    void* own =
        mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* word = static_cast<volatile char*>(own);
    *word = 42;
    const auto before = reinterpret_cast<std::uint64_t>(own);
    space_->Madvise(AlignDown(before, kPageSize), kUserAddressEnd, MADV_DONTNEED);
    _exit(*word == 42 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "died of signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the monitor's memory was thrown away";
}

TEST_F(AddressSpaceTest, StackGrowsToItsLimit) {
  const std::uint64_t limit = 1 << 20;
  const std::uint64_t top = space_->CreateStack(limit, 0, false);
  ASSERT_NE(top, 0u);
  EXPECT_EQ(space_->stack().end, top);
  const std::uint64_t start = space_->stack().start;
  EXPECT_GT(start, top - limit);
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {start - 5 * kPageSize}, true, false, 0),
            FaultVerdict::kMapped);
  EXPECT_EQ(space_->stack().start, start - 5 * kPageSize);
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {top - limit}, true, false, 0),
            FaultVerdict::kMapped);
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {top - limit - 1}, true, false, 0),
            FaultVerdict::kNotMapped);
  const Pages host = HostPages(top - limit, top);
  EXPECT_EQ(host.size(), limit / kPageSize);
  for (const auto& [at, page] : host) EXPECT_EQ(page.protection, PROT_READ | PROT_WRITE);
  EXPECT_EQ(RegionPages(top - limit, top), host);
}

TEST_F(AddressSpaceTest, BeyondTheEndOfAFile) {
  char name[] = "/tmp/trapline-address-space-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  ASSERT_EQ(ftruncate(fd, 100), 0);
  ASSERT_EQ(space_->Mmap(kArena, 2 * kPageSize, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
            static_cast<long>(kArena));
  for (const auto& [page, verdict] :
       {std::pair{0, FaultVerdict::kMapped}, std::pair{1, FaultVerdict::kBusError}}) {
    const std::uint64_t address = kArena + page * kPageSize;
    ASSERT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {address}, false, false, 0),
              FaultVerdict::kMapped);
    const std::uint64_t entry = carriers_[0]->view(View::kWhole).Lookup({address});
    space_->Distrust(*carriers_[0], GuestPhysical{entry & PageEntry::kAddress});
    EXPECT_EQ(carriers_[0]->view(View::kWhole).Lookup({address}), 0u);
    EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {address}, false, false, 0), verdict);
  }
  close(fd);
}

TEST_F(AddressSpaceTest, SharedMemorySegments) {
  const int id = shmget(IPC_PRIVATE, 3 * kPageSize, IPC_CREAT | 0600);
  if (id < 0) GTEST_SKIP() << "no System V shared memory here: " << std::strerror(errno);
  EXPECT_EQ(space_->Shmat(id, kArena, 0), static_cast<long>(kArena));
  EXPECT_EQ(space_->Shmat(id, kArena, 0), -EINVAL) << "taken";
  EXPECT_EQ(space_->Shmat(id, kArena + 16 * kPageSize, SHM_RDONLY),
            static_cast<long>(kArena + 16 * kPageSize));
  shmctl(id, IPC_RMID, nullptr);
  ExpectConsistent();
  Access(*carriers_[0], kArena, true, false);
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kWhole, {kArena + 16 * kPageSize}, true, false, 0),
            FaultVerdict::kNotPermitted);
  EXPECT_EQ(space_->Shmdt(kArena + kPageSize), -EINVAL);
  EXPECT_EQ(space_->Shmdt(kArena), 0);
  EXPECT_EQ(space_->Shmdt(kArena), -EINVAL);
  EXPECT_EQ(space_->Shmdt(kArena + 16 * kPageSize), 0);
  ExpectConsistent();
}

// Another mapping in a segment's place stays when the segment goes.
TEST_F(AddressSpaceTest, ShmdtLeavesOthers) {
  const int id = shmget(IPC_PRIVATE, 3 * kPageSize, IPC_CREAT | 0600);
  if (id < 0) GTEST_SKIP() << "no System V shared memory here: " << std::strerror(errno);
  EXPECT_EQ(space_->Shmat(id, kArena, 0), static_cast<long>(kArena));
  shmctl(id, IPC_RMID, nullptr);
  MapFixed(kArena + kPageSize, 1, PROT_READ | PROT_WRITE);
  EXPECT_EQ(space_->Shmdt(kArena), 0);
  ExpectConsistent();
}

// Two mappings that only the monitor takes for one: the kernel refuses to move them, and has
// unmapped the target by then on some versions.
TEST_F(AddressSpaceTest, MovingTwoMappingsAtOnce) {
  char name[] = "/tmp/trapline-address-space-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  ASSERT_EQ(ftruncate(fd, kPageSize), 0);
  MapFixed(kArena, 1, PROT_READ);
  ASSERT_EQ(space_->Mmap(kArena + kPageSize, kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0),
            static_cast<long>(kArena + kPageSize));
  MapFixed(kArena + 64 * kPageSize, 4, PROT_READ | PROT_WRITE);
  const long result = space_->Mremap(kArena, 2 * kPageSize, 3 * kPageSize,
                                     MREMAP_MAYMOVE | MREMAP_FIXED, kArena + 64 * kPageSize);
  EXPECT_EQ(result, -EFAULT);
  ExpectConsistent();
  close(fd);
}

// mprotect(2) stops at the mapping that does not allow it; what comes before has changed.
TEST_F(AddressSpaceTest, ProtectionRefusedHalfWay) {
  char name[] = "/tmp/trapline-address-space-XXXXXX";
  const int writable = mkstemp(name);
  ASSERT_EQ(ftruncate(writable, kPageSize), 0);
  const int fd = open(name, O_RDONLY | O_CLOEXEC);
  unlink(name);
  MapFixed(kArena, 2, PROT_READ);
  ASSERT_EQ(
      space_->Mmap(kArena + 2 * kPageSize, kPageSize, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
      static_cast<long>(kArena + 2 * kPageSize));
  EXPECT_EQ(space_->Mprotect(kArena, 3 * kPageSize, PROT_READ | PROT_WRITE), -EACCES);
  ExpectConsistent();
  close(fd);
  close(writable);
}

TEST_F(AddressSpaceTest, PageUseTellsCarriersApart) {
  MakeSpace(true);
  Carrier& first = *carriers_[0];
  Carrier& second = machine_->Acquire(true);
  ASSERT_NE(&first, &second);
  MapFixed(kArena, 8, PROT_READ | PROT_WRITE);
  const auto touch = [&](Carrier& carrier, std::uint64_t address) {
    ASSERT_EQ(space_->Resolve(carrier, View::kWhole, {address}, false, false, 0),
              FaultVerdict::kMapped);
    // As the processor does on the access.
    const std::uint64_t entry = carrier.view(View::kWhole).Lookup({address});
    carrier.view(View::kWhole)
        .Map({address}, {entry & PageEntry::kAddress}, kPageSize,
             (entry & ~PageEntry::kAddress) | PageEntry::kAccessed);
  };
  touch(first, kArena);
  touch(second, kArena + kPageSize);
  PageUse use = space_->CountPageUse().value_or(PageUse{});
  EXPECT_EQ(use.single, 2u);
  EXPECT_EQ(use.several, 0u);
  touch(second, kArena);
  ASSERT_EQ(space_->Munmap(kArena, 4 * kPageSize), 0);
  use = space_->CountPageUse().value_or(PageUse{});
  EXPECT_EQ(use.single, 1u);
  EXPECT_EQ(use.several, 1u);
}

// A fault elsewhere in the 2 MiB block must not make accesses forgotten.
TEST_F(AddressSpaceTest, PageUseSurvivesNeighboursFaults) {
  MakeSpace(true);
  Carrier& carrier = *carriers_[0];
  MapFixed(kArena, 2, PROT_READ | PROT_WRITE);
  ASSERT_EQ(space_->Resolve(carrier, View::kWhole, {kArena}, false, false, 0),
            FaultVerdict::kMapped);
  const std::uint64_t entry = carrier.view(View::kWhole).Lookup({kArena});
  carrier.view(View::kWhole)
      .Map({kArena}, {entry & PageEntry::kAddress}, kPageSize,
           (entry & ~PageEntry::kAddress) | PageEntry::kAccessed);
  MapFixed(kArena + 64 * kPageSize, 1, PROT_READ);
  ASSERT_EQ(space_->Resolve(carrier, View::kWhole, {kArena + 64 * kPageSize}, false, false, 0),
            FaultVerdict::kMapped);
  EXPECT_EQ(space_->CountPageUse().value_or(PageUse{}).single, 1u);
}

// --- limits

// SharingPolicy::kAdaptive. The processor's part, the accessed and dirty bits, is played here.
class AdaptivePages : public AddressSpaceTest {
 protected:
  void SetUp() override {
    AddressSpaceTest::SetUp();
    if (machine_ == nullptr) return;
    TrackingRules rules;
    rules.policy = Policy();
    rules.is_untracked_module = [](const std::string&) { return false; };
    rules.on_fresh_memory = [](std::uint64_t, std::uint64_t) {};
    rules.catch_up = [this](bool claims) {
      if (!claims_more_) {
        EXPECT_EQ(claims, State() == PageState::kUntouched);
      }
      EXPECT_TRUE(space_->mutex().try_lock()) << "others can do nothing meanwhile";
      space_->mutex().unlock();
      ++caught_up_;
      if (on_catching_up_) on_catching_up_();
    };
    rules.is_catching_up = [this] { return caught_up_ <= others_catch_up_; };
    rules.on_ownership_lost = [this](std::uint64_t owner, const std::vector<PageRun>&,
                                     std::uint64_t load) {
      lost_.push_back(owner);
      losing_load_ = load;
    };
    rules.on_claimed = [](std::uint64_t, const PageRun&) {};
    rules.on_opened = [this](std::uint64_t thread, const PageRun& run) {
      if (!claims_more_) {
        EXPECT_LE(run.start, kPage);
        EXPECT_GT(run.end, kPage);
      }
      opened_.push_back(thread);
    };
    rules.on_moved = [](std::uint64_t, std::uint64_t, std::uint64_t) {};
    rules.time = [this] { return now_; };
    space_->SetTrackingRules(std::move(rules));
    MapFixed(kArena, 64, PROT_READ | PROT_WRITE);
    MapFixed(kCode, 1, PROT_READ | PROT_EXEC);
    for (std::size_t i = 0; i < carriers_.size(); ++i)
      carriers_[i]->thread_page().logical_thread = i;
  }

  virtual SharingPolicy Policy() const { return SharingPolicy::kAdaptive; }

  // Who has the page at its own address, who at its mirror, and who may write there.
  std::string Mapping() {
    std::string text;
    for (Carrier* carrier : carriers_) {
      const auto add = [&](std::uint64_t entry) {
        text += entry == 0 ? '-' : (entry & PageEntry::kWritable) != 0 ? 'w' : 'r';
      };
      add(carrier->view(View::kClosed).Lookup({kPage}));
      add(carrier->MirrorEntry(kPage));
      text += ' ';
    }
    return text;
  }
  PageState State() {
    for (const PageState state :
         {PageState::kShared, PageState::kReadOnly, PageState::kTaken, PageState::kPrivate}) {
      if (space_->CountPages(state) != 0) return state;
    }
    return PageState::kUntouched;
  }
  // Code of the thread in the cache uses the page.
  void UseMirror(std::size_t thread, bool write) { UseMirrorOf(thread, kPage, write); }
  void UseMirrorOf(std::size_t thread, std::uint64_t page, bool write) {
    Carrier& carrier = *carriers_[thread];
    const std::uint64_t old = carrier.MirrorEntry(page);
    if (old == 0 || (write && (old & PageEntry::kWritable) == 0)) {
      ASSERT_EQ(space_->ResolveMirror(carrier, {page}, write), FaultVerdict::kMapped);
    }
    Mark(carrier, page + kMirrorOffset, write);
  }
  // What is noted of that.
  std::string UseOf(std::size_t thread, std::uint64_t page) {
    const std::uint64_t entry = carriers_[thread]->MirrorEntry(page);
    return std::string((entry & PageEntry::kAccessed) != 0 ? "used " : "") +
           ((entry & PageEntry::kDirty) != 0 ? "written " : "");
  }
  // Native code of the thread does; false if it must go to the cache for that.
  bool UseNatively(std::size_t thread, bool write) {
    Carrier& carrier = *carriers_[thread];
    carrier.SetNative(true);
    const std::uint64_t old = carrier.view(View::kClosed).Lookup({kPage});
    if (old == 0 || (write && (old & PageEntry::kWritable) == 0)) {
      const FaultVerdict verdict =
          space_->Resolve(carrier, View::kClosed, {kPage}, write, false, kCode);
      if (verdict == FaultVerdict::kShared) return false;
      EXPECT_EQ(verdict, FaultVerdict::kMapped);
    }
    Mark(carrier, kPage, write);
    return true;
  }

  static constexpr std::uint64_t kPage = kArena + 32 * kPageSize;
  static constexpr std::uint64_t kCode = kArena + 100 * kPageSize;
  std::vector<std::uint64_t> lost_, opened_;  // by whom
  std::uint64_t losing_load_ = 0;
  bool claims_more_ = false;      // than the pages around kPage
  unsigned caught_up_ = 0;        // times
  unsigned others_catch_up_ = 0;  // at the same time as the thread's first
  std::function<void()> on_catching_up_;
  std::uint64_t now_ = 1000;  // ms

 private:
  static void Mark(Carrier& carrier, std::uint64_t address, bool write) {
    PageTable& table = carrier.view(View::kClosed);
    const std::uint64_t entry = table.Lookup({address});
    ASSERT_NE(entry, 0u);
    const std::uint64_t flags =
        (entry & ~PageEntry::kAddress) | PageEntry::kAccessed | (write ? PageEntry::kDirty : 0);
    table.Map({address}, {entry & PageEntry::kAddress}, kPageSize, flags);
  }
};

TEST_F(AdaptivePages, AThreadsTableIsMadeOnceForAllWhoAskAtOnce) {
  constexpr unsigned kRounds = 100;
  std::atomic<Carrier*> beginner = nullptr;
  std::atomic<unsigned> answered = 0;
  std::uint64_t others_root = 0;
  std::thread other([&] {
    for (unsigned round = 0; round < kRounds; ++round) {
      Carrier* carrier = nullptr;
      while ((carrier = beginner.exchange(nullptr)) == nullptr) {
      }
      others_root = space_->RootOf(*carrier, View::kClosed).value;
      ++answered;
    }
  });
  for (unsigned round = 0; round < kRounds; ++round) {
    Carrier& carrier = machine_->Acquire(true);
    beginner = &carrier;
    while (beginner != nullptr) {
    }
    const std::uint64_t root = space_->RootOf(carrier, View::kClosed).value;
    for (const std::uint64_t page :
         {std::uint64_t{TRAPLINE_AGENT_CODE}, std::uint64_t{TRAPLINE_THREAD_PAGE}, TRAPLINE_IDT}) {
      EXPECT_NE(carrier.view(View::kClosed).Lookup({page}), 0u);
    }
    while (answered != round + 1) {
    }
    EXPECT_EQ(others_root, root);
    machine_->Release(carrier);
  }
  other.join();
}

TEST_F(AdaptivePages, ColdCodeGoesToTheCacheAndHasItsPagesThere) {
  EXPECT_EQ(space_->Resolve(*carriers_[0], View::kClosed, {kPage}, true, false, kCode),
            FaultVerdict::kShared);
  UseMirror(0, true);
  EXPECT_EQ(State(), PageState::kPrivate);
  EXPECT_EQ(Mapping(), "-w -- ");
  EXPECT_TRUE(UseNatively(0, true));
  EXPECT_EQ(Mapping(), "ww -- ");
}

TEST_F(AdaptivePages, SecondThreadSharesWhatWasUsed) {
  UseMirror(0, true);
  UseMirror(1, false);
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(Mapping(), "-w -w ");
  EXPECT_EQ(UseOf(0, kPage), "") << "not yet as a shared one";
  EXPECT_EQ(UseOf(1, kPage), "used ");
  EXPECT_TRUE(lost_.empty()) << "everything was seen";
}

TEST_F(AdaptivePages, WhatWasQueuedIsDealtWithBeforePagesChangeHands) {
  UseMirror(0, true);
  EXPECT_EQ(caught_up_, 1u) << "it claims the page";
  UseMirror(0, true);
  EXPECT_TRUE(UseNatively(0, true));
  EXPECT_EQ(caught_up_, 1u) << "it is its own";
  UseMirror(1, true);
  EXPECT_EQ(caught_up_, 2u);
  EXPECT_EQ(State(), PageState::kShared);
  UseMirror(1, false);
  EXPECT_EQ(caught_up_, 2u) << "it is everybody's";
}

TEST_F(AdaptivePages, WhileOthersCatchUpPagesDoNotChangeHands) {
  others_catch_up_ = 2;
  UseMirror(0, true);
  EXPECT_EQ(caught_up_, 3u);
  others_catch_up_ = ~0u;
  UseMirror(1, true);
  EXPECT_EQ(State(), PageState::kShared) << "not for ever";
}

TEST_F(AdaptivePages, ThePageMayBecomeAnothersMeanwhile) {
  UseMirror(0, true);
  on_catching_up_ = [this] {
    on_catching_up_ = nullptr;
    space_->Munmap(kArena, 64 * kPageSize);
  };
  EXPECT_EQ(space_->ResolveMirror(*carriers_[1], {kPage}, true), FaultVerdict::kNotMapped);
}

TEST_F(AdaptivePages, NativeUseIsTold) {
  EXPECT_TRUE(UseNatively(0, true));
  UseMirror(1, false);
  EXPECT_EQ(Mapping(), "-- -w ");
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{0});
}

TEST_F(AdaptivePages, TheLoadForWhichAPageIsLostIsTold) {
  EXPECT_TRUE(UseNatively(0, true));
  ASSERT_EQ(space_->ResolveMirror(*carriers_[1], {kPage}, false, kCode + 8), FaultVerdict::kMapped);
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{0});
  EXPECT_EQ(losing_load_, kCode + 8);
}

TEST_F(AdaptivePages, NativelyTheLoadForWhichAPageIsLostIsToldButNoStore) {
  EXPECT_TRUE(UseNatively(0, true));
  EXPECT_FALSE(UseNatively(1, false));
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{0});
  EXPECT_EQ(losing_load_, kCode);
  lost_.clear();
  losing_load_ = 1;
  EXPECT_TRUE(UseNatively(1, true)) << "it is the only one that has used it since";
  now_ += 40;
  EXPECT_FALSE(UseNatively(0, true));
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{1});
  EXPECT_EQ(losing_load_, 0u);
}

TEST_F(AdaptivePages, WhatOnlyTheSystemUsedChangesHands) {
  EXPECT_EQ(space_->CheckedParts(*carriers_[0], kPage, 8, true).size(), 1u);
  UseMirror(1, true);
  EXPECT_EQ(State(), PageState::kPrivate);
  EXPECT_EQ(Mapping(), "-- -w ");
}

TEST_F(AdaptivePages, SharedPageIsGivenToItsOnlyUser) {
  UseMirror(0, true);
  UseMirror(1, true);
  EXPECT_TRUE(UseNatively(1, true)) << "the first thread has not been back";
  EXPECT_EQ(State(), PageState::kPrivate);
  EXPECT_EQ(opened_, std::vector<std::uint64_t>{1});
  EXPECT_EQ(Mapping(), "-- ww ");
  UseMirror(0, false);
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{1});
  EXPECT_EQ(Mapping(), "-w -w ");
}

TEST_F(AdaptivePages, WhatWasAnothersForLongIsTakenByWhoRunsNatively) {
  EXPECT_TRUE(UseNatively(0, true));
  now_ += 40;
  opened_.clear();
  EXPECT_FALSE(UseNatively(1, true)) << "the access is checked";
  EXPECT_EQ(State(), PageState::kTaken);
  EXPECT_EQ(Mapping(), "-- -w ");
  EXPECT_EQ(lost_, std::vector<std::uint64_t>{0});
  // As if it were shared, until it has been in the cache; for the system's accesses, too.
  EXPECT_EQ(space_->CheckedParts(*carriers_[1], kPage, 8, true).size(), 1u);
  EXPECT_TRUE(opened_.empty()) << "it comes after nothing yet";
  carriers_[1]->SetNative(false);
  UseMirror(1, true);
  space_->OpenOwn(*carriers_[1]);
  EXPECT_EQ(State(), PageState::kPrivate);
  EXPECT_EQ(opened_, std::vector<std::uint64_t>{1});
  EXPECT_EQ(Mapping(), "-- ww ");
}

TEST_F(AdaptivePages, WhatWasTakenAndThenSharedIsNotKept) {
  EXPECT_TRUE(UseNatively(0, true));
  opened_.clear();
  now_ += 40;
  EXPECT_FALSE(UseNatively(1, true));
  lost_.clear();
  UseMirror(0, true);
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_TRUE(lost_.empty()) << "everything was seen";
  space_->OpenOwn(*carriers_[1]);
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(Mapping(), "-w -w ");
  EXPECT_TRUE(opened_.empty());
}

TEST_F(AdaptivePages, WhoStaysInTheCacheTakesNothing) {
  UseMirror(0, true);
  now_ += 40;
  UseMirror(1, true);
  EXPECT_EQ(State(), PageState::kShared);
}

TEST_F(AdaptivePages, WhoRunsPartialCodeTakesNothing) {
  EXPECT_TRUE(UseNatively(0, true));
  now_ += 40;
  carriers_[1]->partial = true;
  EXPECT_FALSE(UseNatively(1, true)) << "the access is checked";
  EXPECT_EQ(State(), PageState::kShared);
}

TEST_F(AdaptivePages, WhoLeavesItSoonTakesWhatWasAnothersForLong) {
  carriers_[1]->leaves_soon = true;
  UseMirror(0, true);
  now_ += 40;
  UseMirror(1, true);
  EXPECT_EQ(State(), PageState::kTaken);
  EXPECT_EQ(Mapping(), "-- -w ");
  EXPECT_TRUE(lost_.empty()) << "everything was seen";
  // The page is met natively without having been kept, as a shared one may be.
  EXPECT_TRUE(UseNatively(1, true));
  EXPECT_EQ(State(), PageState::kPrivate);
  EXPECT_EQ(opened_, std::vector<std::uint64_t>{1});
}

TEST_F(AdaptivePages, PageInUseStaysShared) {
  UseMirror(0, true);
  UseMirror(1, true);
  UseMirror(0, true);
  EXPECT_FALSE(UseNatively(1, false));
  EXPECT_EQ(Mapping(), "-w -w ");
  EXPECT_EQ(UseOf(0, kPage), "") << "watched anew";
  UseMirror(0, true);
  EXPECT_FALSE(UseNatively(1, false));
  EXPECT_TRUE(UseNatively(1, false)) << "not used in between";
}

TEST_F(AdaptivePages, WhatWasUsedNativelyIsMarkedInTheMirror) {
  EXPECT_TRUE(UseNatively(0, false));
  UseMirrorOf(0, kPage + kPageSize, false);
  EXPECT_EQ(UseOf(0, kPage), "used written ") << "nobody asks who writes what is one thread's own";
  EXPECT_EQ(UseOf(0, kPage + 2 * kPageSize), "written ");
}

TEST_F(AdaptivePages, WhoComesForManyPagesIsToUseThem) {
  claims_more_ = true;
  for (unsigned page = 0; page < 64; ++page) UseMirrorOf(0, kArena + page * kPageSize, true);
  // One page, four, sixteen.
  UseMirrorOf(1, kArena, true);
  UseMirrorOf(1, kArena + 8 * kPageSize, true);
  UseMirrorOf(1, kArena + 32 * kPageSize, true);
  EXPECT_EQ(UseOf(1, kArena + 9 * kPageSize), "") << "these may be all that it comes for";
  EXPECT_EQ(UseOf(1, kArena + 47 * kPageSize), "used written ");
  UseMirrorOf(1, kArena + 60 * kPageSize, false);
  EXPECT_EQ(UseOf(1, kArena + 63 * kPageSize), "used ") << "the rest of all 64";
  EXPECT_EQ(UseOf(0, kArena + 63 * kPageSize), "");
}

TEST_F(AdaptivePages, PageThatIsOnlyReadIsReadNatively) {
  UseMirror(0, true);
  UseMirror(1, false);
  UseMirror(0, true);
  EXPECT_FALSE(UseNatively(1, false));
  UseMirror(0, false);
  EXPECT_TRUE(UseNatively(1, false));
  EXPECT_EQ(State(), PageState::kReadOnly);
  EXPECT_EQ(Mapping(), "-- r- ");
  EXPECT_TRUE(UseNatively(0, false));
  UseMirror(0, false);
  EXPECT_EQ(Mapping(), "rr r- ");
  EXPECT_EQ(opened_, (std::vector<std::uint64_t>{1, 0, 0})) << "what it claimed at first, too";
  EXPECT_FALSE(UseNatively(0, true));
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(Mapping(), "-w -- ") << "the cache's code will use it";
}

TEST_F(AdaptivePages, WriteInTheCacheEndsReadOnly) {
  UseMirror(0, false);
  UseMirror(1, false);
  UseMirror(0, false);
  EXPECT_TRUE(UseNatively(1, false));
  EXPECT_EQ(State(), PageState::kReadOnly);
  UseMirror(0, true);
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(Mapping(), "-w -- ");
}

class WriteSharedPages : public AdaptivePages {
 protected:
  SharingPolicy Policy() const override { return SharingPolicy::kWriteShared; }
};

TEST_F(WriteSharedPages, WhatIsOnlyReadIsReadNativelyUntilItIsWritten) {
  EXPECT_TRUE(UseNatively(0, false));
  EXPECT_TRUE(UseNatively(1, false));
  EXPECT_EQ(State(), PageState::kReadOnly);
  EXPECT_EQ(Mapping(), "-- r- ");
  EXPECT_TRUE(UseNatively(0, false));
  EXPECT_EQ(Mapping(), "r- r- ");
  EXPECT_FALSE(UseNatively(0, true));
  EXPECT_EQ(State(), PageState::kShared);
  EXPECT_EQ(Mapping(), "-- -- ");
  EXPECT_FALSE(UseNatively(1, false)) << "for good";
}

TEST_F(WriteSharedPages, WhatItsOwnerWroteIsShared) {
  EXPECT_TRUE(UseNatively(0, true));
  EXPECT_FALSE(UseNatively(1, false));
  EXPECT_EQ(State(), PageState::kShared);
}

TEST_F(AdaptivePages, QuietMomentHidesEverything) {
  UseMirror(0, false);
  UseMirror(1, false);
  UseMirror(0, false);
  EXPECT_TRUE(UseNatively(1, false));
  space_->ForgetStates();
  EXPECT_EQ(State(), PageState::kUntouched);
  EXPECT_EQ(Mapping(), "-- -- ");
}

// Many pages of a thread that ends are for the next one on its carrier.
class OrphanedPages : public AdaptivePages {
 protected:
  static constexpr std::uint64_t kPart = 256;  // pages that a thread walks through
  static constexpr std::uint64_t kParts = kArena + 16 * kLargePageSize;

  void SetUp() override {
    AdaptivePages::SetUp();
    if (machine_ == nullptr) return;
    claims_more_ = true;
    for (std::size_t part = 0; part < 2; ++part)
      MapFixed(PageOf(part), kPart, PROT_READ | PROT_WRITE);
  }
  static std::uint64_t PageOf(std::size_t part, std::uint64_t page = 0) {
    return kParts + (part * 2 * kPart + page) * kPageSize;  // apart: no claim crosses
  }
  void Touch(std::size_t thread, std::uint64_t address) {
    Carrier& carrier = *carriers_[thread];
    carrier.SetNative(true);
    if (IsMapped(thread, address)) return;
    EXPECT_EQ(space_->Resolve(carrier, View::kClosed, {address}, true, false, kCode),
              FaultVerdict::kMapped);
    ++faults_;
  }
  void Walk(std::size_t thread, std::size_t part) {
    for (std::uint64_t page = 0; page < kPart; ++page) Touch(thread, PageOf(part, page));
  }
  bool IsMapped(std::size_t thread, std::uint64_t address) {
    return space_->IsMapped(*carriers_[thread], View::kClosed, {address});
  }
  // A thread ends, and the next one begins on its carrier.
  void End(std::size_t thread, const Range& stack = {}) { space_->Seal(*carriers_[thread], stack); }
  void Begin(std::size_t thread) {
    Carrier& carrier = *carriers_[thread];
    carrier.thread_page().logical_thread += 10;
    carrier.StartThread();
    space_->Inherit(carrier);
  }

  unsigned faults_ = 0;
};

TEST_F(OrphanedPages, AreTheNextThreadsWithoutAFault) {
  Walk(0, 0);
  End(0);
  EXPECT_EQ(space_->CountPages(PageState::kOrphaned), kPart);
  EXPECT_EQ(space_->CountPages(PageState::kPrivate), 0u);
  space_->ForgetStates(carriers_[1]);
  Begin(0);
  EXPECT_EQ(space_->CountPages(PageState::kPrivate), kPart);
  const unsigned before = faults_;
  Walk(0, 0);
  EXPECT_EQ(faults_, before);
  space_->OpenOwn(*carriers_[0]);
  EXPECT_EQ(opened_.back(), 10u) << "it takes in what was released there";
  EXPECT_EQ(carriers_[0]->generation, 1u);
}

TEST_F(OrphanedPages, AreAnothersIfThatComesFirst) {
  Walk(0, 0);
  End(0);
  Walk(1, 0);
  EXPECT_EQ(space_->CountPages(PageState::kPrivate), kPart);
  EXPECT_FALSE(IsMapped(0, PageOf(0)));
  Begin(0);
  EXPECT_FALSE(IsMapped(0, PageOf(0)));
  EXPECT_FALSE(IsMapped(0, PageOf(0, kPart - 1)));
}

TEST_F(OrphanedPages, AreSharedOnceAnotherThreadComesForWhatIsInherited) {
  Walk(0, 0);
  End(0);
  Begin(0);
  Carrier& other = *carriers_[1];
  other.SetNative(true);
  EXPECT_EQ(space_->Resolve(other, View::kClosed, {PageOf(0, 64)}, true, false, kCode),
            FaultVerdict::kShared);
  EXPECT_EQ(space_->CountPages(PageState::kShared), 1u);
  EXPECT_FALSE(IsMapped(0, PageOf(0, 64)));
  EXPECT_TRUE(IsMapped(0, PageOf(0, 63)));
}

TEST_F(OrphanedPages, AreNeitherFewNorTheStack) {
  for (std::uint64_t page = 0; page < 64; page += 16) Touch(0, kArena + page * kPageSize);
  End(0);
  EXPECT_EQ(space_->CountPages(PageState::kOrphaned), 0u) << "few";
  Begin(0);
  EXPECT_EQ(carriers_[0]->generation, 0u);
  Walk(0, 0);
  End(0, {PageOf(0), PageOf(1)});
  EXPECT_EQ(space_->CountPages(PageState::kOrphaned), 0u);
  EXPECT_FALSE(IsMapped(0, PageOf(0)));
}

TEST_F(OrphanedPages, AreNoneForAWhileIfOthersCameForThem) {
  for (const unsigned pause : {16u, 32u}) {
    Walk(0, 0);
    End(0);
    ASSERT_EQ(space_->CountPages(PageState::kOrphaned), kPart);
    Begin(0);
    carriers_[1]->SetNative(true);
    for (std::uint64_t page = 0; page < kPart; ++page)
      space_->Resolve(*carriers_[1], View::kClosed, {PageOf(0, page)}, true, false, kCode);
    for (unsigned end = 0; end < pause; ++end) {
      Walk(0, 1);
      End(0);
      ASSERT_EQ(space_->CountPages(PageState::kOrphaned), 0u) << end << " of " << pause;
      Begin(0);
    }
    space_->ForgetStates();
  }
}

TEST_F(OrphanedPages, AreNobodysOnceTheyAreUnmapped) {
  Walk(0, 0);
  End(0);
  ASSERT_EQ(space_->Munmap(PageOf(0), kPart / 2 * kPageSize), 0);
  MapFixed(PageOf(0), kPart / 2, PROT_READ | PROT_WRITE);
  EXPECT_EQ(space_->CountPages(PageState::kOrphaned), kPart / 2);
  Begin(0);
  EXPECT_FALSE(IsMapped(0, PageOf(0)));
  EXPECT_TRUE(IsMapped(0, PageOf(0, kPart - 1)));
}

// Threads that do parts of the same work are made in the same order each time.
TEST_F(OrphanedPages, AreForThreadsInTheOrderInWhichTheirOwnersBegan) {
  for (std::size_t thread : {1, 0}) {
    Walk(thread, thread);
    End(thread);
    machine_->Release(*carriers_[thread]);
  }
  EXPECT_EQ(&machine_->Acquire(), carriers_[0]);
  EXPECT_EQ(&machine_->Acquire(), carriers_[1]);
  for (Carrier* const carrier : carriers_) carrier->orphaned_by.reset();
  for (std::size_t thread : {1, 0}) machine_->Release(*carriers_[thread]);
  EXPECT_EQ(&machine_->Acquire(), carriers_[0]) << "the last one otherwise";
}

class Limits : public AddressSpaceTest {
 protected:
  void Set(int resource, std::uint64_t pages) {
    ASSERT_EQ(space_->SetLimit(resource, {pages * kPageSize, RLIM_INFINITY}), 0);
  }
  long Map(std::uint64_t page, std::uint64_t pages, int protection, int kind = MAP_PRIVATE) {
    return space_->Mmap(kArena + page * kPageSize, pages * kPageSize, protection,
                        kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  static long At(std::uint64_t page) { return static_cast<long>(kArena + page * kPageSize); }
};

TEST_F(Limits, AreValuesOfTheProgram) {
  EXPECT_TRUE(AddressSpace::IsOwnLimit(RLIMIT_AS));
  EXPECT_TRUE(AddressSpace::IsOwnLimit(RLIMIT_DATA));
  EXPECT_FALSE(AddressSpace::IsOwnLimit(RLIMIT_STACK));
  EXPECT_FALSE(AddressSpace::IsOwnLimit(RLIMIT_NOFILE));
  rlimit before{}, after{};
  getrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(space_->SetLimit(RLIMIT_AS, {1 << 20, 1 << 21}), 0);
  EXPECT_EQ(space_->GetLimit(RLIMIT_AS).rlim_cur, 1u << 20);
  EXPECT_EQ(space_->GetLimit(RLIMIT_AS).rlim_max, 1u << 21);
  EXPECT_EQ(space_->GetLimit(RLIMIT_DATA).rlim_cur, RLIM_INFINITY);
  EXPECT_EQ(space_->limits().address_space.rlim_cur, 1u << 20);
  EXPECT_EQ(space_->SetLimit(RLIMIT_AS, {2, 1}), -EINVAL);
  EXPECT_EQ(space_->GetLimit(RLIMIT_AS).rlim_cur, 1u << 20);
  getrlimit(RLIMIT_AS, &after);
  EXPECT_EQ(before.rlim_cur, after.rlim_cur) << "the monitor's own must stay";
}

TEST_F(Limits, AddressSpaceCountsEverything) {
  Set(RLIMIT_AS, 10);
  EXPECT_EQ(Map(0, 6, PROT_READ | PROT_WRITE), At(0));
  EXPECT_EQ(Map(10, 5, PROT_NONE), -ENOMEM);
  EXPECT_EQ(Map(10, 4, PROT_READ, MAP_SHARED), At(10));
  EXPECT_EQ(Map(20, 1, PROT_NONE), -ENOMEM);
  EXPECT_EQ(space_->Mremap(kArena, 6 * kPageSize, 7 * kPageSize, 0, 0), -ENOMEM);
  EXPECT_EQ(space_->Munmap(kArena, 2 * kPageSize), 0);
  EXPECT_EQ(Map(20, 2, PROT_NONE), At(20));
  ExpectConsistent();
  space_->SetBreak(kArena + 100 * kPageSize);
  EXPECT_EQ(space_->Brk(kArena + 101 * kPageSize), At(100));
  Set(RLIMIT_AS, 11);
  EXPECT_EQ(space_->Brk(kArena + 101 * kPageSize), At(101));
  // Lower than what is mapped: nothing is taken away, nothing is added.
  Set(RLIMIT_AS, 1);
  EXPECT_EQ(Map(30, 1, PROT_NONE), -ENOMEM);
  EXPECT_EQ(space_->Munmap(kArena + 20 * kPageSize, kPageSize), 0);
  ExpectConsistent();
}

TEST_F(Limits, DataCountsPrivateWritable) {
  Set(RLIMIT_DATA, 4);
  EXPECT_EQ(Map(0, 100, PROT_READ), At(0));
  EXPECT_EQ(Map(200, 100, PROT_READ | PROT_WRITE, MAP_SHARED), At(200));
  EXPECT_EQ(Map(400, 5, PROT_READ | PROT_WRITE), -ENOMEM);
  EXPECT_EQ(Map(400, 4, PROT_READ | PROT_WRITE), At(400));
  EXPECT_EQ(Map(500, 1, PROT_WRITE), -ENOMEM);
  EXPECT_EQ(Map(500, 1, PROT_READ), At(500));
  ExpectConsistent();
}

// mmap(2) at the limit: what MAP_FIXED replaces counts no more.
TEST_F(Limits, ReplacingCountsOnce) {
  Set(RLIMIT_AS, 8);
  EXPECT_EQ(Map(0, 8, PROT_READ | PROT_WRITE), At(0));
  EXPECT_EQ(Map(2, 4, PROT_READ), At(2));
  ExpectConsistent();
}

// mprotect(2) makes data of what was not.
TEST_F(Limits, MakingWritableCountsAsData) {
  Set(RLIMIT_DATA, 4);
  EXPECT_EQ(Map(0, 10, PROT_READ), At(0));
  EXPECT_EQ(space_->Mprotect(kArena, 5 * kPageSize, PROT_READ | PROT_WRITE), -ENOMEM);
  EXPECT_EQ(space_->Mprotect(kArena, 4 * kPageSize, PROT_READ | PROT_WRITE), 0);
  ExpectConsistent();
}

}  // namespace

// Taken over from the host, lifted there, and put back for a program that inherits them.
TEST(MemoryLimitsTest, TakeOverAndApply) {
  const pid_t child = fork();  // the limits are the process's
  if (child == 0) {
    const rlimit low{4ull << 30, 6ull << 30};
    if (setrlimit(RLIMIT_AS, &low) != 0) _exit(1);
    const MemoryLimits limits = MemoryLimits::TakeOver();
    rlimit now{};
    if (limits.address_space.rlim_cur != low.rlim_cur) _exit(2);
    if (limits.address_space.rlim_max != low.rlim_max) _exit(3);
    getrlimit(RLIMIT_AS, &now);
    // Without the right to raise the hard limit, the soft one goes up to it.
    const rlim_t lifted = geteuid() == 0 ? RLIM_INFINITY : low.rlim_max;
    if (now.rlim_cur != lifted && now.rlim_cur != low.rlim_max) _exit(4);
    limits.Apply(false);
    getrlimit(RLIMIT_AS, &now);
    if (now.rlim_cur != low.rlim_cur || now.rlim_max != low.rlim_max) _exit(5);
    limits.Apply(true);
    getrlimit(RLIMIT_AS, &now);
    if (now.rlim_cur < low.rlim_max) _exit(6);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace trapline
