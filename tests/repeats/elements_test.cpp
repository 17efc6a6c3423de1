// What the agent tells of instructions with masks and vector indices (trapline_agent_elements), for
// every encoding of them and random registers: the bytes that Accesses() says.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "guest-agent/agent.h"
#include "guest-agent/layout.h"
#include "tests/translator/corpus.h"
#include "translator/access_site.h"
#include "translator/cache_thread.h"
#include "translator/instruction.h"
#include "translator/memory_access.h"

namespace trapline {
namespace {

CacheThread& Thread() { return *reinterpret_cast<CacheThread*>(TRAPLINE_CACHE_THREAD); }
std::uint8_t& UseOfSubsector(std::uint64_t address) {
  return reinterpret_cast<std::uint8_t*>(
      TRAPLINE_SUBSECTOR_USE)[static_cast<std::uint32_t>(address) >> TRAPLINE_SUBSECTOR_BITS];
}
std::uint8_t& RightsTo(std::uint8_t use) {
  return reinterpret_cast<std::uint8_t*>(TRAPLINE_THREAD_NEED_NOT_TELL)[use];
}

void Map(std::uint64_t start, std::uint64_t size) {
  const std::uint64_t from = start & ~std::uint64_t{4095};
  void* const memory =
      mmap(reinterpret_cast<void*>(from), start + size - from, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory != reinterpret_cast<void*>(from)) std::abort();
}

void MapAgentMemory() {
  static const bool mapped = [] {
    Map(TRAPLINE_CACHE_THREAD, sizeof(CacheThread));
    Map(TRAPLINE_SUBSECTOR_USE, std::uint64_t{1} << (32 - TRAPLINE_SUBSECTOR_BITS));
    Map(TRAPLINE_THREAD_PAGE, 4096);
    return true;
  }();
  EXPECT_TRUE(mapped);
  std::memset(Thread().filter, 0, sizeof Thread().filter);
  for (std::uint64_t i = 0; i < 8; ++i)
    Thread().signature[i] = (8 + i) << CacheThread::kSignatureShift;
}

// The address, size and kind of what was told.
using Told = std::set<std::tuple<std::uint64_t, bool, bool>>;  // byte, read, write
Told* told;
unsigned calls;

void Tell(const AccessSite* site, std::uint64_t address, const RegisterFile* registers) {
  ++calls;
  EXPECT_EQ(registers, nullptr);
  EXPECT_NE(site->size, 0U);
  for (std::uint64_t i = 0; i < site->size; ++i)
    told->emplace(address + i, site->read, site->write);
}

ElementSites SitesOf(const Instruction& instruction, std::uint64_t rip) {
  AccessSite all, one;
  all.instruction = &instruction;
  one.rip = rip;
  one.read = instruction.operands[0].reads;
  one.write = instruction.operands[0].writes;
  return {instruction.operands[0], LayoutOfVectors(), rip + instruction.length, all, one};
}

// All general registers and vector registers at random, indices small.
void Fill(std::mt19937_64& random, RegisterFile& registers) {
  for (std::uint64_t& reg : registers.gpr) reg = random() % (std::uint64_t{1} << 40);
  registers.fs_base = random() % (std::uint64_t{1} << 40);
  registers.gs_base = random() % (std::uint64_t{1} << 40);
  constexpr std::size_t kUsed = 4096;  // all that there is up to AVX-512
  for (std::size_t at = 0; at < kUsed; at += sizeof(std::uint64_t)) {
    const std::uint64_t value = random();
    std::memcpy(Thread().xsave + at, &value, sizeof value);
  }
  // Masks: all lanes, none, or some.
  const auto pick = random() % 4;
  if (pick < 2) {
    const VectorLayout& layout = LayoutOfVectors();
    const int value = pick == 0 ? 0xff : 0;
    std::memset(Thread().xsave + 160, value, 256);
    for (const std::uint32_t at : {layout.avx, layout.opmask, layout.zmm_high})
      if (at != 0) std::memset(Thread().xsave + at, value, at == layout.opmask ? 64 : 256);
  }
  // Which components the image has.
  constexpr std::uint64_t kAll = 0xe7;
  const std::uint64_t present = random() % 4 == 0 ? random() & kAll : kAll;
  std::memcpy(Thread().xsave + 512, &present, sizeof present);
  registers.xsave = Thread().xsave;
}

TEST(Elements, AreThoseThatTheInstructionTouches) {
  MapAgentMemory();
  std::mt19937_64 random(20261125);
  std::uint64_t instructions = 0, whole = 0, some = 0, none = 0;
  const auto check = [&](const EncodedBytes& bytes) {
    constexpr std::uint64_t kRip = 0x401000;
    const auto instruction = Decode(std::span(bytes).first(kMaximumInstructionLength), kRip);
    if (!instruction || instruction->memory().size() != 1) return;
    if (!HasElements(instruction->operands[0])) return;
    ++instructions;
    const ElementSites sites = SitesOf(*instruction, kRip);
    for (int i = 0; i < 4; ++i) {
      RegisterFile registers;
      registers.rip = kRip;
      Fill(random, registers);
      Told expected, got;
      for (const MemoryAccess& access : Accesses(*instruction, registers)) {
        for (std::uint64_t byte = 0; byte < access.size; ++byte)
          expected.emplace(access.address + byte, access.read, access.write);
      }
      told = &got;
      calls = 0;
      trapline_agent_elements(&sites.all, &registers, Tell);
      ASSERT_EQ(got, expected) << "opcode " << int{instruction->opcode} << " of map "
                               << int{instruction->map};
      if (expected.empty()) {
        ++none;
        EXPECT_EQ(calls, 0U);
      } else if (sites.whole.size != 0 && expected.size() == sites.whole.size) {
        ++whole;
        EXPECT_EQ(calls, 1U);
      } else {
        ++some;
      }
    }
  };
  ForEachVexEncoding(check);
  ForEachEvexEncoding(check);
  ForEachLegacyEncoding(check);
  EXPECT_GT(instructions, 1000U);
  EXPECT_GT(whole, 1000U);
  EXPECT_GT(some, 1000U);
  EXPECT_GT(none, 1000U);
}

// vpgatherdd (%rdi, %xmm1, 4), %xmm0 with mask %xmm2
Instruction Gather() {
  constexpr std::uint8_t kCode[] = {0xc4, 0xe2, 0x69, 0x90, 0x04, 0x8f};
  return *Decode(kCode, 0x401000);
}

struct GatherOfFour {
  GatherOfFour() {
    MapAgentMemory();
    std::memset(Thread().xsave, 0, sizeof Thread().xsave);
    Thread().xsave[512] = 2;
    registers.rip = 0x401000;
    registers.gpr[kRdi] = 0x100000;
    registers.xsave = Thread().xsave;
    std::memset(Thread().xsave + 160 + 2 * 16, 0xff, 16);
    const std::uint32_t indices[] = {0, 1, 0x1000, 0x2000};
    std::memcpy(Thread().xsave + 160 + 16, indices, sizeof indices);
  }
  unsigned Calls() {
    Told got;
    told = &got;
    calls = 0;
    trapline_agent_elements(&sites.all, &registers, Tell);
    return calls;
  }
  Instruction instruction = Gather();
  ElementSites sites = SitesOf(instruction, 0x401000);
  RegisterFile registers;
};

TEST(Elements, AreToldOnceInAnEpoch) {
  GatherOfFour gather;
  EXPECT_EQ(gather.Calls(), 4U);
  const std::uint64_t second = 0x100004;
  Thread().filter[0][CacheThread::FilterOffset(second, 4) / 8] = Thread().signature[2] + second;
  EXPECT_EQ(gather.Calls(), 3U);
  Thread().signature[2] += std::uint64_t{1} << 50;
  EXPECT_EQ(gather.Calls(), 4U);
}

// btsq %rax, (%rdi), and the same with a lock prefix
TEST(Elements, OfBitStringsAreToldOnceInAnEpochUnlessAtomic) {
  MapAgentMemory();
  for (const bool atomic : {false, true}) {
    constexpr std::uint8_t kCode[] = {0xf0, 0x48, 0x0f, 0xab, 0x07};
    const Instruction instruction =
        *Decode(atomic ? std::span(kCode) : std::span(kCode).subspan(1), 0x401000);
    ElementSites sites = SitesOf(instruction, 0x401000);
    sites.element.atomic = atomic;
    RegisterFile registers;
    registers.gpr[kRdi] = 0x100000;
    registers.gpr[kRax] = static_cast<std::uint64_t>(std::int64_t{-65});
    Told got;
    told = &got;
    calls = 0;
    trapline_agent_elements(&sites.all, &registers, Tell);
    EXPECT_EQ(calls, 1U);
    constexpr std::uint64_t kWord = 0x100000 - 16;
    EXPECT_EQ(got.size(), 8U);
    EXPECT_EQ(*got.begin(), std::tuple(kWord, true, true));
    Thread().filter[1][CacheThread::FilterOffset(kWord, 8) / 8] = Thread().signature[3] + kWord;
    trapline_agent_elements(&sites.all, &registers, Tell);
    EXPECT_EQ(calls, atomic ? 2U : 1U);
  }
}

TEST(Elements, InSettledMemoryAreNotTold) {
  GatherOfFour gather;
  constexpr std::uint8_t kUse = 3, kReads = 1;
  UseOfSubsector(0x100000) = kUse;
  RightsTo(kUse) = kReads;
  EXPECT_EQ(gather.Calls(), 4U) << "the place is not hot";
  gather.sites.element.leaves_out = kReads;
  EXPECT_EQ(gather.Calls(), 2U);
  RightsTo(kUse) = 0;
  EXPECT_EQ(gather.Calls(), 4U);
}

}  // namespace
}  // namespace trapline
