#include "tools/bare_access.h"

#include <gtest/gtest.h>

namespace trapline {
namespace {

constexpr std::uint64_t kWord = 0x1000;

Access AccessOf(EventKind kind) {
  return {.address = kWord, .size = 4, .ip = 0x400000, .kind = kind};
}

BareAccess BareStoreOf(BareCode code) { return {.code = code, .writes = true, .size = 4}; }

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

TEST(JudgeMeeting, OperationsByMacrosOrderAmongThemselvesAndWithAtomicOnes) {
  const BareAccess store = BareStoreOf(BareCode::kMacro);
  const BareAccess load = {.code = BareCode::kMacro, .size = 4};
  for (const Judgement judgement :
       {JudgeMeeting(AccessOf(EventKind::kRead), load, AccessOf(EventKind::kWrite), store),
        JudgeMeeting(AccessOf(EventKind::kWrite), store, AccessOf(EventKind::kWrite), store),
        JudgeMeeting(AccessOf(EventKind::kAtomicRmw), {}, AccessOf(EventKind::kRead), load)}) {
    EXPECT_EQ(judgement.meeting, Meeting::kMutualOrder);
    EXPECT_EQ(judgement.why, Presumption::kMacro);
  }
  EXPECT_EQ(
      JudgeMeeting(AccessOf(EventKind::kRead), {}, AccessOf(EventKind::kWrite), store).meeting,
      Meeting::kRace);
}

TEST(JudgeMeeting, SourcesAreAskedOnlyWhereThereIsARaceOtherwise) {
  int asked = 0;
  const auto judge = [&](BareCode code) {
    return JudgeMeeting(
               AccessOf(EventKind::kAtomicRead), AccessOf(EventKind::kWrite),
               [code](const Access& access) {
                 return IsWrite(access.kind) ? BareStoreOf(code) : BareAccess();
               },
               [&asked](const Access& access) {
                 EXPECT_FALSE(IsAtomic(access.kind));
                 ++asked;
                 return BareStoreOf(BareCode::kMacro);
               })
        .why;
  };
  EXPECT_EQ(judge(BareCode::kNoLine), Presumption::kMergedStore);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(judge(BareCode::kNo), Presumption::kMacro);
  EXPECT_EQ(asked, 1);
}

TEST(JudgeMeeting, StoreWithoutDebugInfoThatMeetsAnAtomicLoadRaces) {
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kAtomicRead), {}, AccessOf(EventKind::kWrite),
                         BareStoreOf(BareCode::kAny))
                .meeting,
            Meeting::kRace);
}

}  // namespace
}  // namespace trapline
