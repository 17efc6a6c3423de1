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

TEST(JudgeMeeting, StoreWithoutDebugInfoThatMeetsAnAtomicLoadRaces) {
  EXPECT_EQ(JudgeMeeting(AccessOf(EventKind::kAtomicRead), {}, AccessOf(EventKind::kWrite),
                         BareStoreOf(BareCode::kAny))
                .meeting,
            Meeting::kRace);
}

}  // namespace
}  // namespace trapline
