#include "detector/goldilocks.h"

#include <algorithm>

#include "detector/factory.h"

namespace trapline {

bool Goldilocks::Lockset::Contains(const Device& device) const {
  return std::binary_search(devices.begin(), devices.end(), device);
}

void Goldilocks::Lockset::Add(const Device& device) {
  const auto place = std::lower_bound(devices.begin(), devices.end(), device);
  if (place == devices.end() || *place != device) devices.insert(place, device);
}

void Goldilocks::Lockset::Remove(const Device& device) {
  const auto place = std::lower_bound(devices.begin(), devices.end(), device);
  if (place != devices.end() && *place == device) devices.erase(place);
}

void Goldilocks::Lockset::Apply(const Transfer& transfer) {
  const auto in_range = [&](const Device& device, std::uint64_t start) {
    return device.kind == DeviceKind::kAtomic && device.id - start < transfer.size;
  };
  switch (transfer.effect) {
    case Transfer::Effect::kAdd:
      if (Contains(transfer.from)) Add(transfer.to);
      break;
    case Transfer::Effect::kReplace:
      if (Contains(transfer.from)) {
        Add(transfer.to);
      } else {
        Remove(transfer.to);
      }
      break;
    case Transfer::Effect::kClear:
      std::erase_if(devices,
                    [&](const Device& device) { return in_range(device, transfer.from.id); });
      break;
    case Transfer::Effect::kCopy: {
      std::vector<Device> copies;
      for (const Device& device : devices) {
        if (!in_range(device, transfer.from.id)) continue;
        copies.push_back({DeviceKind::kAtomic, device.id - transfer.from.id + transfer.to.id});
      }
      std::erase_if(devices,
                    [&](const Device& device) { return in_range(device, transfer.to.id); });
      for (const Device& copy : copies) Add(copy);
      break;
    }
  }
}

void Goldilocks::Start(ThreadId thread, std::uint64_t position) {
  if (thread >= lives_.size()) lives_.resize(thread + 1);
  if (!lives_[thread].known) lives_[thread] = {.known = true, .start = position};
}

void Goldilocks::End(ThreadId thread) {
  if (thread < lives_.size()) lives_[thread].end = std::min(lives_[thread].end, end_position());
}

void Goldilocks::NoteIfComplete(Lockset* lockset) const {
  for (ThreadId thread = 0; thread < lives_.size(); ++thread) {
    const Life& life = lives_[thread];
    const bool is_alive = life.start <= lockset->position && lockset->position < life.end;
    if (life.known && is_alive && !lockset->Contains(Thread(thread))) return;
  }
  lockset->complete = true;
}

void Goldilocks::ReopenSets() {
  for (const std::weak_ptr<Lockset>& weak : locksets_) {
    const auto lockset = weak.lock();
    if (!lockset || !lockset->complete) continue;
    // With all threads in it, it has whatever any of them has entered into its sets since then.
    std::erase_if(lockset->devices, [this](const Device& device) {
      return device.kind != DeviceKind::kThread && !entered_.contains(device);
    });
    for (const auto& [device, position] : entered_) {
      if (position >= lockset->position) lockset->Add(device);
    }
    for (ThreadId thread = 0; thread < lives_.size(); ++thread) {
      if (lives_[thread].known && lives_[thread].end > lockset->position)
        lockset->Add(Thread(thread));
    }
    lockset->complete = false;
    lockset->position = end_position();
  }
}

void Goldilocks::Append(const Transfer& transfer) {
  if (transfer.from.kind == DeviceKind::kThread && transfer.to.kind != DeviceKind::kThread)
    entered_[transfer.to] = end_position();
  list_.push_back(transfer);
  if (list_.size() >= kLongestList) CollectGarbage();
}

std::shared_ptr<Goldilocks::Lockset> Goldilocks::Current(ThreadId thread) {
  std::shared_ptr<Lockset>& current = current_[thread];
  if (!current) {
    current = std::make_shared<Lockset>();
    current->devices = {Thread(thread)};
    current->position = end_position();
    NoteIfComplete(current.get());
    locksets_.push_back(current);
  }
  return current;
}

void Goldilocks::Advance(Lockset* lockset) {
  while (!lockset->complete && lockset->position < end_position()) {
    const Transfer& transfer = list_[lockset->position++ - first_position_];
    ++transfers_;
    const std::size_t before = lockset->devices.size();
    lockset->Apply(transfer);
    if (transfer.to.kind == DeviceKind::kThread && lockset->devices.size() != before)
      NoteIfComplete(lockset);
  }
}

// Brings all sets up to date, so that the list may start anew.
void Goldilocks::CollectGarbage() {
  std::erase_if(locksets_, [](const std::weak_ptr<Lockset>& lockset) { return lockset.expired(); });
  for (const std::weak_ptr<Lockset>& weak : locksets_) {
    if (const auto lockset = weak.lock()) Advance(lockset.get());
  }
  first_position_ += list_.size();
  list_.clear();
}

bool Goldilocks::HappenedBefore(const Info& info, ThreadId thread) {
  ++checks_;
  if (info.access.thread == thread) {
    ++same_thread_;
    return true;
  }
  Advance(info.lockset.get());
  return info.lockset->complete || info.lockset->Contains(Thread(thread));
}

void Goldilocks::Check(const std::vector<Info>& infos, const Access& now, std::uint64_t address,
                       std::uint64_t size) {
  for (const Info& info : infos) {
    if (!HappenedBefore(info, now.thread)) race_log_.Report(info.access, now, address, size);
  }
}

void Goldilocks::Put(std::vector<Info>& infos, const Info& info) {
  for (Info& old : infos) {
    if (old.access.thread == info.access.thread) {
      old = info;
      return;
    }
  }
  infos.push_back(info);
}

void Goldilocks::OnPlain(const Event& event, std::uint64_t index) {
  Meet(event.thread);
  const Info now{Current(event.thread), MakeAccess(event, index)};
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    Check(cell.writes, now.access, address, size);
                    Check(cell.atomic_writes, now.access, address, size);
                    if (event.kind == EventKind::kRead) {
                      Put(cell.reads, now);
                      return;
                    }
                    Check(cell.reads, now.access, address, size);
                    Check(cell.atomic_reads, now.access, address, size);
                    // Whatever races with an earlier access from here on races with this one too.
                    cell = {};
                    cell.writes.push_back(now);
                  });
}

void Goldilocks::OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                          bool synchronises) {
  Meet(event.thread);
  const Device thread = Thread(event.thread);
  const bool reads = event.kind != EventKind::kAtomicWrite;
  const bool writes = event.kind != EventKind::kAtomicRead;
  if (synchronises && reads && Acquires(event.order)) {  // volatile read: v ∈ LS => add t
    for (std::uint64_t byte = 0; byte < event.size; ++byte) {
      Append({Transfer::Effect::kAdd, {DeviceKind::kAtomic, event.address + byte}, thread});
    }
  }
  if (access_counts) {
    const Info now{Current(event.thread), MakeAccess(event, index)};
    shadow_.ForEach(event.address, event.size,
                    [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                      Check(cell.writes, now.access, address, size);
                      if (writes) Check(cell.reads, now.access, address, size);
                      Put(writes ? cell.atomic_writes : cell.atomic_reads, now);
                    });
  }
  if (synchronises && writes && Releases(event.order)) {  // volatile write: t ∈ LS => add v
    const auto effect = reads ? Transfer::Effect::kAdd : Transfer::Effect::kReplace;
    for (std::uint64_t byte = 0; byte < event.size; ++byte) {
      Append({effect, thread, {DeviceKind::kAtomic, event.address + byte}});
    }
    EndSpan(event.thread);
  }
}

void Goldilocks::OnSynchronise(const Event& event, std::uint64_t /*index*/) {
  Meet(event.thread);
  const Device thread = Thread(event.thread);
  const Device lock{DeviceKind::kLock, event.address};
  const Device lock_shared{DeviceKind::kLockShared, event.address};
  const Device key{DeviceKind::kKey, event.address};
  const auto add = [&](const Device& from, const Device& to) {
    Append({Transfer::Effect::kAdd, from, to});
  };
  switch (event.kind) {
    case EventKind::kAcquire:
      add(lock, thread);
      add(lock_shared, thread);
      break;
    case EventKind::kAcquireShared:
      add(lock, thread);
      break;
    case EventKind::kRelease:
      add(thread, lock);
      EndSpan(event.thread);
      break;
    case EventKind::kReleaseShared:
      add(thread, lock_shared);
      EndSpan(event.thread);
      break;
    case EventKind::kHappensBefore:
      add(thread, key);
      EndSpan(event.thread);
      break;
    case EventKind::kHappensAfter:
      add(key, thread);
      break;
    case EventKind::kFork:
      add(thread, Thread(event.other));
      Start(event.other, end_position());
      EndSpan(event.thread);
      break;
    case EventKind::kJoin:
      add(Thread(event.other), thread);
      EndSpan(event.other);
      End(event.other);
      break;
    case EventKind::kThreadEnd:
      End(event.thread);
      break;
    case EventKind::kBarrierEnter: {
      const std::uint64_t round = rounds_.Enter(event.address, event.thread);
      add(thread, {DeviceKind::kBarrier, event.address, round});
      EndSpan(event.thread);
      break;
    }
    case EventKind::kBarrierLeave: {
      std::uint64_t round = 0;
      if (rounds_.Leave(event.address, event.thread, &round)) {
        add({DeviceKind::kBarrier, event.address, round}, thread);
      }
      break;
    }
    default:
      break;
  }
}

void Goldilocks::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  const Device first{DeviceKind::kAtomic, address};
  entered_.erase(entered_.lower_bound(first),
                 entered_.lower_bound({DeviceKind::kAtomic, address + size}));
  Append({Transfer::Effect::kClear, {DeviceKind::kAtomic, address}, {}, size});
}

void Goldilocks::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  // It is rare; what of it is in complete sets need not be followed then.
  ReopenSets();
  Append({Transfer::Effect::kCopy,
          {DeviceKind::kAtomic, source},
          {DeviceKind::kAtomic, destination},
          size});
}

std::vector<Statistic> Goldilocks::statistics() const {
  return {{"same thread", same_thread_, checks_},
          {"checks", checks_},
          {"lockset transfers", transfers_}};
}

template std::unique_ptr<Detector> Make<Goldilocks>(const DetectorOptions&);

}  // namespace trapline
