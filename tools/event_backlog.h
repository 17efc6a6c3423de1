// Batches of events that one thread makes and that another one, which would wait for it otherwise,
// may hand on meanwhile.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "detector/event.h"

namespace trapline {

// Every batch is handed to `feed` once, in the order of Add, and never two at a time. The owner,
// one thread at a time, calls Add and Finish; any others call HelpUntil and Wake.
class EventBacklog {
 public:
  using Feed = std::function<void(std::span<const Event>)>;
  explicit EventBacklog(Feed feed) : feed_(std::move(feed)) {}

  // The owner. Feeds the batch at once, and answers true, unless somebody helps and either the
  // batch is long or earlier ones are left; then it may be fed later, by whoever.
  bool Add(std::span<const Event> batch);
  // The owner. All batches have been fed when it returns. Whether one had been left by Add.
  bool Finish();
  // Feeds batches as they come, until `done`, which is asked after each of them and after Wake. It
  // must answer true once the owner is not going to call Add or Finish any more.
  void HelpUntil(const std::function<bool()>& done);
  // What HelpUntil's `done` looks at may have changed.
  void Wake();
  // From within `feed`: does the work while the owner is in Add or Finish.
  void Alone(const std::function<void()>& work);

 private:
  static constexpr std::size_t kMost = 32;              // batches: 400 KiB, 1 ms
  static constexpr std::size_t kWorthHandingOver = 64;  // events: 8 us, as to wake a thread takes

  // With the lock held, but not while the batch is fed.
  void FeedFirst(std::unique_lock<std::mutex>& lock);
  // The owner: feeds, or waits for the helper that does, until at most `most` batches are left and
  // nobody feeds.
  void Reduce(std::unique_lock<std::mutex>& lock, std::size_t most);
  // The owner: lets the helper that waits in Alone work.
  void LetWork(std::unique_lock<std::mutex>& lock);

  const Feed feed_;
  std::mutex mutex_;
  std::condition_variable to_owner_, to_helpers_;
  std::array<std::vector<Event>, kMost> batches_;  // a ring
  std::size_t first_ = 0, count_ = 0;
  unsigned helpers_ = 0;
  bool feeds_ = false;         // the first batch is being fed
  bool helper_feeds_ = false;  // by a helper
  bool owner_waits_ = false;
  std::size_t owner_waits_for_ = 0;  // so many batches
  bool wants_alone_ = false, alone_ = false;
  bool outstanding_ = false;  // the owner's: there may be something to finish
};

}  // namespace trapline
