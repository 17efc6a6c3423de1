#include "hypervisor/client_requests.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "guest-agent/events.h"

namespace trapline {
namespace {

constexpr std::array<unsigned char, 19> kSequence = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7,
                                                     0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1,
                                                     0xc7, 0x33, 0x48, 0x87, 0xdb};
constexpr std::size_t kSize = (std::size_t{1} << 20) + (std::size_t{1} << 16);

class Code {
 public:
  Code()
      : bytes_(static_cast<unsigned char*>(
            mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(bytes_, 0x90, kSize);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { munmap(bytes_, kSize); }

  void Put(std::size_t at) { std::copy(kSequence.begin(), kSequence.end(), bytes_ + at); }
  void Arm() {
    mprotect(bytes_, kSize, PROT_READ | PROT_EXEC);
    ArmClientRequests(start(), start() + kSize, PROT_READ | PROT_EXEC);
  }
  std::uint64_t start() const { return reinterpret_cast<std::uint64_t>(bytes_); }
  unsigned char at(std::size_t offset) const { return bytes_[offset]; }

 private:
  unsigned char* const bytes_;
};

TEST(ClientRequests, FindsEverySequence) {
  // At the start, back to back, across pages, across the pieces that are read at once, at the end.
  const std::vector<std::size_t> places = {
      0, 19, 4096 - 17, 8192 - 18, (1 << 20) - 10, (1 << 20) + 30, kSize - 19};
  Code code;
  for (const std::size_t place : places) code.Put(place);
  code.Arm();
  for (const std::size_t place : places) {
    EXPECT_EQ(code.at(place + 16), 0xcc) << place;
    EXPECT_EQ(code.at(place + 17), 0x90) << place;
    EXPECT_EQ(code.at(place + 18), 0x90) << place;
    EXPECT_TRUE(IsClientRequest(code.start() + place + 17)) << place;
  }
}

TEST(ClientRequests, LeavesOtherCodeAlone) {
  Code code;
  code.Put(100);
  code.Put(kSize - 19);
  Code untouched;
  std::memset(reinterpret_cast<void*>(untouched.start() + 200), 0xcc,
              1);  // a breakpoint of its own
  code.Arm();
  untouched.Arm();
  for (std::size_t at = 0; at < 100; ++at) ASSERT_EQ(code.at(at), 0x90);
  EXPECT_EQ(code.at(100), 0x48);
  EXPECT_FALSE(IsClientRequest(untouched.start() + 201));
  EXPECT_FALSE(IsClientRequest(code.start() + 18));
  EXPECT_FALSE(IsClientRequest(8));
}

using Told = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

std::vector<Told> Handle(ClientRequests& requests, std::array<std::uint64_t, 6> words) {
  std::vector<Told> told;
  requests.Handle(reinterpret_cast<std::uint64_t>(words.data()),
                  [&](std::uint64_t kind, std::uint64_t address, std::uint64_t size) {
                    told.emplace_back(kind, address, size);
                  });
  return told;
}

TEST(ClientRequests, MeansWhatTheHeadersSay) {
  ClientRequests requests;
  EXPECT_EQ(Handle(requests, {0x48470121, 7}),
            (std::vector<Told>{{TRAPLINE_HAPPENS_BEFORE, 7, 0}}));
  EXPECT_EQ(Handle(requests, {0x48470122, 7}), (std::vector<Told>{{TRAPLINE_HAPPENS_AFTER, 7, 0}}));
  EXPECT_EQ(Handle(requests, {0x44520006, 0}), (std::vector<Told>{{TRAPLINE_IGNORE_BEGIN, 0, 1}}));
  EXPECT_EQ(Handle(requests, {0x44520007, 1}), (std::vector<Told>{{TRAPLINE_IGNORE_END, 0, 2}}));
  EXPECT_EQ(Handle(requests, {0x44520002, 64, 4}),
            (std::vector<Told>{{TRAPLINE_BENIGN_RACE, 64, 4}}));
  EXPECT_TRUE(Handle(requests, {0x1001}).empty());
}

TEST(ClientRequests, ReleasesTheSideThatWasTaken) {
  ClientRequests requests;
  const std::uint64_t lock = 64, annotated = TRAPLINE_LOCK_ANNOTATED;
  EXPECT_EQ(Handle(requests, {0x48470111, lock, 1}),
            (std::vector<Told>{{TRAPLINE_ACQUIRE, lock, annotated}}));
  EXPECT_EQ(Handle(requests, {0x48470112, lock, 0}),
            (std::vector<Told>{{TRAPLINE_RELEASE, lock, annotated}}));
  EXPECT_EQ(Handle(requests, {0x48470111, lock, 0}),
            (std::vector<Told>{{TRAPLINE_ACQUIRE_SHARED, lock, annotated}}));
  EXPECT_EQ(Handle(requests, {0x48470112, lock, 1}),
            (std::vector<Told>{{TRAPLINE_RELEASE_SHARED, lock, annotated}}));
}

}  // namespace
}  // namespace trapline
