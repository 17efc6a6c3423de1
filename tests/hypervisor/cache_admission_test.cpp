// Which code is translated where the code in use has no room in the code cache.
#include "hypervisor/cache_admission.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace trapline {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kCode = 0x401000;

unsigned RequestsFor(CacheAdmission& admission, std::uint64_t rip) {
  unsigned requests = 1;
  while (!admission.Admits(rip)) ++requests;
  return requests;
}

TEST(CacheAdmission, TranslatesAtOnceWhileThereIsRoom) {
  CacheAdmission admission;
  for (std::uint64_t rip = kCode; rip < kCode + 1000; ++rip) EXPECT_TRUE(admission.Admits(rip));
  EXPECT_EQ(admission.declined(), 0u);
}

TEST(CacheAdmission, ACacheThatIsFullOnceIsNoReason) {
  CacheAdmission admission;
  admission.OnFull(100 * kSecond);
  EXPECT_TRUE(admission.Admits(kCode));
  // Nor one that is full now and then.
  admission.OnFull(105 * kSecond);
  EXPECT_TRUE(admission.Admits(kCode));
}

TEST(CacheAdmission, AsksForMoreRequestsTheSoonerItIsFull) {
  CacheAdmission admission;
  std::uint64_t now = 100 * kSecond;
  admission.OnFull(now);
  for (const unsigned expected : {4u, 16u, 64u, 64u}) {
    admission.OnFull(now += kSecond);
    EXPECT_EQ(RequestsFor(admission, kCode), expected);
  }
  EXPECT_EQ(admission.declined(), 3u + 15 + 63 + 63);
  for (const unsigned expected : {16u, 4u, 1u, 1u}) {
    admission.OnFull(now += 20 * kSecond);
    EXPECT_EQ(RequestsFor(admission, kCode), expected);
  }
}

TEST(CacheAdmission, ForgetsRequestsWhenTheCacheIsEmptied) {
  CacheAdmission admission(4, 4);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(admission.Admits(kCode));
  admission.OnFull(kSecond);
  EXPECT_EQ(RequestsFor(admission, kCode), 4u);
}

TEST(CacheAdmission, StaysWithinItsBounds) {
  CacheAdmission admission(3, 3);
  for (std::uint64_t now = 0; now < 100; now += 20) admission.OnFull(now * kSecond);
  EXPECT_EQ(RequestsFor(admission, kCode), 3u);
  for (std::uint64_t now = 100; now < 105; ++now) admission.OnFull(now * kSecond);
  EXPECT_EQ(RequestsFor(admission, kCode), 3u);
}

TEST(CacheAdmission, CountsDifferentCodeByItself) {
  CacheAdmission admission(2, 2);
  unsigned admitted = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) admitted += admission.Admits(kCode + 16 * i) ? 1 : 0;
  EXPECT_LT(admitted, 50u);  // of those that share a number
}

}  // namespace
}  // namespace trapline
