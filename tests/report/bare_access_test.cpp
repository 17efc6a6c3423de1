#include "tools/bare_access.h"

#include <gtest/gtest.h>

namespace trapline {
namespace {

constexpr std::uint64_t kWord = 0x1000;

Access AccessOf(EventKind kind) {
  return {.address = kWord, .size = 4, .ip = 0x400000, .kind = kind};
}

// Atomic updates as gcc makes them, up to the locked instruction; the labels are the first loads.
asm(R"(
.pushsection .text, "ax", @progbits
.p2align 6
by_address: mov 8(%rbx), %edx
  lea 8(%rbx), %rcx
  movd %edx, %xmm2
  addss %xmm1, %xmm2
  movd %xmm2, %esi
  mov %edi, %eax
  lock cmpxchg %esi, (%rcx)
  ret
by_value: mov 4(%rbx), %ecx
  mov %ecx, %eax
  lea 1(%rcx), %edx
  lock cmpxchg %edx, (%rsi)
  ret
by_name: mov counted(%rip), %rdx
  mov %rdx, %rax
  inc %rdx
  lock cmpxchg %rdx, counted(%rip)
  ret
of_other: mov 4(%rbx), %ecx
  mov 8(%rbx), %eax
  lock cmpxchg %ecx, 12(%rbx)
  ret
of_changed_base: mov 4(%rbx), %ecx
  add $8, %rbx
  lock cmpxchg %ecx, 4(%rbx)
  ret
with_branch: mov 4(%rbx), %eax
  test %eax, %eax
  je 1f
  lock cmpxchg %ecx, 4(%rbx)
1: ret
.fill 64, 1, 0x90
.popsection
.pushsection .data
.p2align 3
counted: .quad 0
.popsection
)");

extern "C" {
extern const unsigned char by_address[], by_value[], by_name[], of_other[], of_changed_base[],
    with_branch[];
}

bool Loads(const unsigned char* label) {
  return LoadsForExchange(std::span(label, 64), reinterpret_cast<std::uint64_t>(label));
}

TEST(LoadsForExchange, KnowsWhatIsChangedByItsAddressOrItsValue) {
  EXPECT_TRUE(Loads(by_address));
  EXPECT_TRUE(Loads(by_value));
  EXPECT_TRUE(Loads(by_name));
  EXPECT_FALSE(Loads(of_other));
  EXPECT_FALSE(Loads(of_changed_base));
  EXPECT_FALSE(Loads(with_branch));
}

BareAccess BareStoreOf(BareCode code) { return {.code = code, .writes = true, .size = 4}; }
BareAccess BareLoad(bool waits) { return {.code = BareCode::kAny, .waits = waits, .size = 4}; }

TEST(JudgeMeeting, StoreWithoutLineThatMeetsAnAtomicLoadOrders) {
  const Judgement judgement =
      JudgeMeeting(AccessOf(EventKind::kAtomicRead), {}, AccessOf(EventKind::kWrite),
                   BareStoreOf(BareCode::kNoLine));
  EXPECT_EQ(judgement.meeting, Meeting::kOrder);
  EXPECT_EQ(judgement.why, Presumption::kMergedStore);
}

TEST(JudgeMeeting, StoreWithoutLineThatMeetsAPlainLoadRaces) {
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kRead), {}, AccessOf(EventKind::kWrite),
                         BareStoreOf(BareCode::kNoLine))
                .meeting,
            Meeting::kRace);
}

TEST(JudgeMeeting, StoreWithoutDebugInfoThatMeetsAnAtomicLoadRaces) {
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kAtomicRead), {}, AccessOf(EventKind::kWrite),
                         BareStoreOf(BareCode::kAny))
                .meeting,
            Meeting::kRace);
}

TEST(JudgeMeeting, LoadThatMeetsAStoreKnownForOneIsOfAWordThatIsWaitedFor) {
  const Judgement judgement =
      JudgeMeeting(AccessOf(EventKind::kAtomicWrite), BareStoreOf(BareCode::kAny),
                   AccessOf(EventKind::kRead), BareLoad(false));
  EXPECT_EQ(judgement.meeting, Meeting::kOrder);
  EXPECT_EQ(judgement.why, Presumption::kWaitedFor);
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kAtomicWrite), {}, AccessOf(EventKind::kRead),
                         BareLoad(false))
                .why,
            Presumption::kMetAtomic)
      << "an exchange";
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kAtomicRead), BareLoad(true),
                         AccessOf(EventKind::kWrite), BareStoreOf(BareCode::kAny))
                .meeting,
            Meeting::kPolled);
}

}  // namespace
}  // namespace trapline
