// Copies to and from the program's memory: they fail where the program itself would fault.
#include "hypervisor/guest_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "shadow-pages/address.h"

namespace trapline {
namespace {

// Four pages: readable and writable, readable and writable, read-only, none; nothing after them.
class GuestCopy : public ::testing::Test {
 protected:
  void SetUp() override {
    void* area =
        mmap(nullptr, 5 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(area, MAP_FAILED);
    memory_ = static_cast<char*>(area);
    std::memset(memory_, 'x', 4 * kPageSize);
    ASSERT_EQ(mprotect(memory_ + 2 * kPageSize, kPageSize, PROT_READ), 0);
    ASSERT_EQ(mprotect(memory_ + 3 * kPageSize, kPageSize, PROT_NONE), 0);
    ASSERT_EQ(munmap(memory_ + 4 * kPageSize, kPageSize), 0);
  }
  void TearDown() override { munmap(memory_, 4 * kPageSize); }

  std::uint64_t At(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory_) + offset;
  }

  static constexpr std::uint64_t kReadOnly = 2 * kPageSize, kNone = 3 * kPageSize,
                                 kUnmapped = 4 * kPageSize;
  char* memory_ = nullptr;
};

TEST_F(GuestCopy, ReadsWhatIsReadable) {
  std::memcpy(memory_ + kPageSize - 3, "across", 6);
  std::array<char, 6> text{};
  EXPECT_TRUE(ReadGuest(At(kPageSize - 3), text));
  EXPECT_EQ(std::string(text.data(), 6), "across");
  std::vector<char> all(3 * kPageSize);
  EXPECT_TRUE(ReadGuest(At(0), all.data(), all.size()));
  EXPECT_EQ(std::memcmp(all.data(), memory_, all.size()), 0);
}

TEST_F(GuestCopy, RefusesWhatIsNot) {
  std::uint64_t word = 0;
  for (const std::uint64_t address :
       {At(kNone), At(kNone) - 4, At(kUnmapped), std::uint64_t{0}, std::uint64_t{1} << 47,
        (std::uint64_t{1} << 47) - kPageSize - 4, std::uint64_t{0xffffffff81000000},
        ~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{0x8000000000000000}}) {
    EXPECT_FALSE(ReadGuest(address, word)) << std::hex << address;
    EXPECT_FALSE(WriteGuest(address, word)) << std::hex << address;
  }
  EXPECT_FALSE(ReadGuest(At(0), &word, ~std::size_t{0} - 1));
}

TEST_F(GuestCopy, LargestSize) {
  char byte = 0;
  EXPECT_FALSE(ReadGuest(At(0), &byte, ~std::size_t{0}));
  EXPECT_FALSE(WriteGuest(At(0), &byte, ~std::size_t{0}));
}

TEST_F(GuestCopy, WritesOnlyWhatIsWritable) {
  const std::uint64_t word = 0x1122334455667788;
  EXPECT_TRUE(WriteGuest(At(kPageSize - 4), word));
  std::uint64_t back = 0;
  EXPECT_TRUE(ReadGuest(At(kPageSize - 4), back));
  EXPECT_EQ(back, word);
  EXPECT_FALSE(WriteGuest(At(kReadOnly), word));
  EXPECT_FALSE(WriteGuest(At(kReadOnly) - 4, word));
  EXPECT_EQ(memory_[kReadOnly], 'x');
}

TEST_F(GuestCopy, StringsUpToABorder) {
  // Ends with the last readable byte.
  ASSERT_EQ(mprotect(memory_ + kReadOnly, kPageSize, PROT_READ | PROT_WRITE), 0);
  memory_[kNone - 1] = 0;
  memory_[kNone - 4] = 'a';
  EXPECT_EQ(ReadGuestString(At(kNone - 4)), "axx");
  EXPECT_EQ(ReadGuestString(At(kNone - 1)), "");
  // No end before the border.
  memory_[kNone - 1] = 'x';
  EXPECT_EQ(ReadGuestString(At(kNone - 4)), std::nullopt);
  EXPECT_EQ(ReadGuestString(At(kNone)), std::nullopt);
  EXPECT_EQ(ReadGuestString(At(kUnmapped)), std::nullopt);
  EXPECT_EQ(ReadGuestString(0), std::nullopt);
  EXPECT_EQ(ReadGuestString(~std::uint64_t{0}), std::nullopt);
}

TEST_F(GuestCopy, StringsAcrossPages) {
  for (const std::uint64_t before : {1u, 2u, 255u, 256u, 257u, 4000u}) {
    for (const std::uint64_t after : {0u, 1u, 256u, 3000u}) {
      std::memset(memory_, 'y', 2 * kPageSize);
      memory_[kPageSize + after] = 0;
      EXPECT_EQ(ReadGuestString(At(kPageSize - before), 8192), std::string(before + after, 'y'))
          << before << " " << after;
    }
  }
}

// The limit counts the terminating NUL.
TEST_F(GuestCopy, StringLimit) {
  for (const std::size_t limit : {1u, 2u, 255u, 256u, 257u, 512u, 4096u, 5000u}) {
    std::memset(memory_, 'y', 2 * kPageSize);
    memory_[limit - 1] = 0;
    EXPECT_EQ(ReadGuestString(At(0), limit), std::string(limit - 1, 'y')) << limit;
    EXPECT_EQ(ReadGuestString(At(0), limit - 1), std::nullopt) << limit;
  }
}

// Any range and direction agrees with what a look at the pages' protections says.
TEST_F(GuestCopy, RandomRanges) {
  std::mt19937_64 random(11);
  std::vector<char> buffer(5 * kPageSize);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t start = random() % (4 * kPageSize);
    const std::uint64_t size = 1 + random() % (5 * kPageSize - start);
    const std::uint64_t end = start + size;
    EXPECT_EQ(ReadGuest(At(start), buffer.data(), size), end <= kNone) << start << " " << size;
    EXPECT_EQ(WriteGuest(At(start), buffer.data(), size), end <= kReadOnly) << start << " " << size;
  }
}

}  // namespace
}  // namespace trapline
