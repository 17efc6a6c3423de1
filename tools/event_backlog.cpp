#include "tools/event_backlog.h"

#include <utility>

namespace trapline {

bool EventBacklog::Add(std::span<const Event> batch) {
  {
    std::unique_lock lock(mutex_);
    if (wants_alone_) LetWork(lock);
    // Of few events the other thread would not have begun before this one is done.
    if (helpers_ != 0 && (feeds_ || count_ != 0 || batch.size() >= kWorthHandingOver)) {
      if (count_ == kMost) Reduce(lock, kMost / 2);
      batches_[(first_ + count_++) % kMost].assign(batch.begin(), batch.end());
      outstanding_ = true;
      if (!feeds_) to_helpers_.notify_one();
      return false;
    }
  }
  Finish();
  feed_(batch);
  return true;
}

bool EventBacklog::Finish() {
  if (!std::exchange(outstanding_, false)) return false;
  std::unique_lock lock(mutex_);
  Reduce(lock, 0);
  return true;
}

void EventBacklog::Reduce(std::unique_lock<std::mutex>& lock, std::size_t most) {
  while (count_ > most || (most == 0 && feeds_)) {
    if (wants_alone_) {
      LetWork(lock);
    } else if (feeds_) {
      owner_waits_ = true;
      owner_waits_for_ = most;
      to_owner_.wait(lock);
      owner_waits_ = false;
    } else {
      FeedFirst(lock);
    }
  }
}

void EventBacklog::HelpUntil(const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  ++helpers_;
  while (!done()) {
    if (count_ == 0 || feeds_) {
      to_helpers_.wait(lock);
      continue;
    }
    helper_feeds_ = true;
    FeedFirst(lock);
    helper_feeds_ = false;
    if (owner_waits_ && count_ <= owner_waits_for_) to_owner_.notify_one();
  }
  --helpers_;
  if (owner_waits_) to_owner_.notify_one();
  // It may be this one that Add has woken.
  if (helpers_ != 0 && count_ != 0 && !feeds_) to_helpers_.notify_one();
}

void EventBacklog::Wake() {
  const std::lock_guard lock(mutex_);
  if (helpers_ != 0) to_helpers_.notify_all();
}

void EventBacklog::Alone(const std::function<void()>& work) {
  {
    std::unique_lock lock(mutex_);
    if (helper_feeds_) {
      wants_alone_ = true;
      to_owner_.notify_one();
      to_helpers_.wait(lock, [this] { return alone_; });
    }
  }
  work();
  const std::lock_guard lock(mutex_);
  if (std::exchange(wants_alone_, false)) to_owner_.notify_one();
}

void EventBacklog::FeedFirst(std::unique_lock<std::mutex>& lock) {
  std::vector<Event>& place = batches_[first_];
  std::vector<Event> batch;
  batch.swap(place);
  first_ = (first_ + 1) % kMost;
  --count_;
  feeds_ = true;
  lock.unlock();
  feed_(batch);
  lock.lock();
  feeds_ = false;
  if (place.capacity() == 0) place = std::move(batch);  // its memory, to use again
}

void EventBacklog::LetWork(std::unique_lock<std::mutex>& lock) {
  alone_ = true;
  to_helpers_.notify_all();
  to_owner_.wait(lock, [this] { return !wants_alone_; });
  alone_ = false;
}

}  // namespace trapline
