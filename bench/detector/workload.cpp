#include "bench/detector/workload.h"

#include <random>

namespace trapline {
namespace {

constexpr std::uint64_t kPrivate = 0x100000000;
constexpr std::uint64_t kTable = 0x200000000;
constexpr std::uint64_t kTableSize = 1 << 20;
constexpr std::uint64_t kRecords = 0x300000000;
constexpr std::uint64_t kRecordSize = 256;
constexpr std::uint64_t kLocks = 0x400000000;
constexpr std::uint64_t kLockCount = 64;

// Elements of `size` bytes in the tenths [from, to) of a thread's data.
struct Array {
  std::uint64_t size, from, to;
};

class Builder {
 public:
  explicit Builder(const Workload& workload)
      : workload_(workload), random_(workload.seed), cursors_(workload.threads) {}

  std::vector<Event> Run() {
    events_.reserve(workload_.events + 256);
    for (std::uint64_t a = 0; a < kTableSize; a += 8) Access(EventKind::kWrite, 0, kTable + a, 8);
    for (int t = 1; t < workload_.threads; ++t) {
      Event fork{};
      fork.kind = EventKind::kFork;
      fork.other = static_cast<ThreadId>(t);
      events_.push_back(fork);
    }
    while (events_.size() < workload_.events) {
      const auto t = static_cast<ThreadId>(Below(workload_.threads));
      const std::uint64_t length = 1 + Below(2 * workload_.burst);
      for (std::uint64_t i = 0; i < length;) i += Chunk(t);
    }
    return std::move(events_);
  }

 private:
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }

  void Access(EventKind kind, ThreadId t, std::uint64_t address, std::uint64_t size) {
    Event event{};
    event.kind = kind;
    event.thread = t;
    event.address = address;
    event.size = size;
    event.ip = 0x400000 + 4 * (address >> 4 & 0xfff);
    events_.push_back(event);
  }

  void Lock(EventKind kind, ThreadId t, std::uint64_t lock) {
    Event event{};
    event.kind = kind;
    event.thread = t;
    event.address = kLocks + 8 * lock;
    events_.push_back(event);
  }

  // Fields of an object in a loop: the accesses that make most of a program's same-epoch ones.
  void UseObject(ThreadId t, std::uint64_t object) {
    Access(EventKind::kRead, t, object, 8);
    Access(EventKind::kRead, t, object + 8, 8);
    if (Below(3) == 0) Access(EventKind::kWrite, t, object + 16, 8);
  }

  // A few events of one thread that belong together; returns how many.
  std::uint64_t Chunk(ThreadId t) {
    const std::size_t before = events_.size();
    const std::uint64_t share =
        workload_.working_set / static_cast<std::uint64_t>(workload_.threads);
    const std::uint64_t own = kPrivate + t * share;
    const std::uint64_t what = Below(100);
    // The object that the code is a method of.
    const std::uint64_t object = own + share - 64 * (1 + Below(16));
    if (what < 45) {  // sweep over an array of words, ints or characters
      static constexpr Array kArrays[] = {{8, 0, 6}, {8, 0, 6}, {8, 0, 6},
                                          {4, 6, 9}, {4, 6, 9}, {1, 9, 10}};
      const Array& array = kArrays[Below(6)];
      const std::uint64_t start = own + share / 10 * array.from / 8 * 8;
      const std::uint64_t elements = share / 10 * (array.to - array.from) / 8 * 8 / array.size;
      std::uint64_t& cursor = cursors_[t];
      for (std::uint64_t i = 0; i < 16; ++i) {
        cursor = (cursor + 1) % elements;
        const std::uint64_t address = start + cursor * array.size;
        Access(EventKind::kRead, t, address, array.size);
        if (i % 4 == 0) Access(EventKind::kWrite, t, address, array.size);
        UseObject(t, object);
      }
      if (array.size == 1 && Below(2) == 0) {  // and copy characters 16 at a time
        const std::uint64_t text = start + cursor / 16 * 16 % (elements - 256);
        for (std::uint64_t i = 0; i < 64; i += 16) {
          Access(EventKind::kRead, t, text + i, 16);
          Access(EventKind::kWrite, t, text + 128 + i, 16);
        }
      }
    } else if (what < 60) {  // jump around
      for (int i = 0; i < 16; ++i) {
        const std::uint64_t address = own + Below(share / 16) * 8;
        Access(EventKind::kRead, t, address, 8);
        if (i % 8 == 0) Access(EventKind::kWrite, t, address, 8);
        UseObject(t, object);
      }
    } else if (what < 80) {  // look something up
      for (int i = 0; i < 12; ++i) {
        Access(EventKind::kRead, t, kTable + Below(kTableSize / 8) * 8, 8);
        UseObject(t, object);
      }
    } else {  // update a record
      const std::uint64_t lock = Below(kLockCount);
      Lock(EventKind::kAcquire, t, lock);
      for (std::uint64_t i = 0; i < 8; ++i) {
        const std::uint64_t address = kRecords + lock * kRecordSize + Below(kRecordSize / 8) * 8;
        Access(EventKind::kRead, t, address, 8);
        if (i % 2 == 0) Access(EventKind::kWrite, t, address, 8);
      }
      Lock(EventKind::kRelease, t, lock);
    }
    return events_.size() - before;
  }

  Workload workload_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> cursors_;
  std::vector<Event> events_;
};

}  // namespace

std::vector<Event> MakeWorkload(const Workload& workload) { return Builder(workload).Run(); }

}  // namespace trapline
