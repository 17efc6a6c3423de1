#include "replay/replayer.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "replay/event_source.h"
#include "replay/log_segment.h"
#include "replay/sharded_detector.h"

namespace trapline {
namespace {

// Enough to make calls and measurements cheap, and little enough to stay in the second-level cache.
constexpr std::size_t kBatch = 2048;
constexpr std::size_t kLongBatch = 16384;  // where a batch costs barriers or measurements
constexpr std::size_t kGroup = 64;         // events that most often are all short plain accesses
constexpr std::uint64_t kMaxAccessBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kProgressEvents = 1 << 20;

std::uint64_t HeapBytes() {
  const struct mallinfo2 information = mallinfo2();
  return information.uordblks + information.hblkhd;
}

std::uint64_t Scaled(std::uint64_t ns, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(ns) * share);
}

// Whether a multiple of ShardMap::kGranule lies inside the event's range.
bool Crosses(const Event& event) {
  return event.address % ShardMap::kGranule + event.size > ShardMap::kGranule;
}

// One detector of the replay, split or not.
class Lane {
 public:
  Lane(std::string name, std::vector<std::unique_ptr<Detector>> detectors, std::uint64_t heap,
       bool shares_heap, const OrderingRule& rule)
      : name_(std::move(name)), heap_(heap), shares_heap_(shares_heap) {
    for (const auto& detector : detectors) {
      if (!rule) break;
      detector->SetOrderingRule([this, &rule](const Access& first, const Access& second) {
        const std::lock_guard lock(rule_mutex_);
        const Meeting meeting = rule(first, second);
        orders_ = orders_ || Orders(meeting);
        return meeting;
      });
    }
    if (detectors.size() == 1) {
      whole_ = std::move(detectors.front());
    } else {
      split_ = std::make_unique<ShardedDetector>(std::move(detectors));
    }
  }

  // `crossing`: positions in `events` of the accesses that cross a multiple of ShardMap::kGranule.
  void OnEvents(std::span<const Event> events, std::uint64_t first_index,
                const std::vector<std::size_t>& crossing) {
    Measured([&] {
      if (split_ != nullptr) return split_->OnEvents(events, first_index);
      std::size_t done = 0;
      for (const std::size_t at : crossing) {
        whole_->OnEvents(events.subspan(done, at - done), first_index + done);
        OnPieces(events[at], first_index + at);
        done = at + 1;
      }
      whole_->OnEvents(events.subspan(done), first_index + done);
    });
  }

  void Finish() {
    Measured([&] {
      if (whole_ != nullptr) return whole_->Finish();
      split_->Finish();
    });
    if (!shares_heap_) memory_bytes_ = static_cast<std::int64_t>(HeapBytes() - heap_);
    result_.name = name_;
    result_.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(memory_bytes_, 0));
    const auto add = [this](const Detector& detector) {
      result_.races.insert(result_.races.end(), detector.races().begin(), detector.races().end());
      result_.race_count += detector.race_count();
      AddStatistics(detector.statistics(), &result_.statistics);
    };
    if (whole_ != nullptr) {
      add(*whole_);
    } else {
      result_.shards = static_cast<unsigned>(split_->detectors().size());
      for (const auto& detector : split_->detectors()) add(*detector);
    }
  }

  // Memory cannot be split: it was moved, or what one shard saw has ordered its threads.
  bool ambiguous() const { return split_ != nullptr && (split_->ambiguous() || orders_); }
  bool takes_repeats() const {
    return (whole_ != nullptr ? whole_ : split_->detectors().front())->TakesRepeats();
  }

  // What was found, but for the time, which ScaleTime says: of that which passed, `cpu_share` is
  // how much this thread had a processor.
  DetectorResult& result() { return result_; }
  void ScaleTime(double cpu_share) {
    result_.cpu_ns = Scaled(wall_ns_, cpu_share) + (split_ == nullptr ? 0 : split_->cpu_ns());
  }

 private:
  void OnPieces(Event event, std::uint64_t index) {
    std::uint64_t left = event.size;
    while (left > 0) {
      event.size = std::min(left, ShardMap::kGranule - event.address % ShardMap::kGranule);
      whole_->OnEvent(event, index);
      left -= event.size;
      event.address += event.size;
    }
  }

  template <class Work>
  void Measured(Work&& work) {
    // Asking malloc takes time in proportion to its free lists.
    const std::uint64_t heap = shares_heap_ ? HeapBytes() : 0;
    const std::uint64_t started = MonotonicNs();
    work();
    wall_ns_ += MonotonicNs() - started;
    if (shares_heap_) memory_bytes_ += static_cast<std::int64_t>(HeapBytes() - heap);
  }

  // Shards have the same statistics in the same order. Each counts the synchronisation it saw.
  static void AddStatistics(const std::vector<Statistic>& from, std::vector<Statistic>* to) {
    if (to->empty()) {
      *to = from;
      return;
    }
    for (std::size_t i = 0; i < std::min(to->size(), from.size()); ++i) {
      (*to)[i].value += from[i].value;
      (*to)[i].whole += from[i].whole;
    }
  }

  std::string name_;
  std::uint64_t heap_;  // in use before the detector was made
  bool shares_heap_;    // with other detectors
  std::unique_ptr<Detector> whole_;
  std::unique_ptr<ShardedDetector> split_;
  std::mutex rule_mutex_;
  bool orders_ = false;  // the rule has ordered threads
  std::uint64_t wall_ns_ = 0;
  std::int64_t memory_bytes_ = 0;
  DetectorResult result_;
};

Status MakeLane(const std::string& name, const ReplayOptions& options,
                std::vector<std::unique_ptr<Lane>>* lanes) {
  const std::string full = options.filter.empty() ? name : options.filter + "+" + name;
  const unsigned shards = Shardable(full) ? std::clamp(options.shards, 1U, 256U) : 1;
  const std::uint64_t heap = HeapBytes();
  std::vector<std::unique_ptr<Detector>> detectors;
  for (unsigned i = 0; i < shards; ++i) {
    detectors.push_back(MakeDetector(full, options.detector_options));
    if (detectors.back() == nullptr) {
      return Status::Error(
          fmt::format("there is no detector {}; choose from {}", full, DetectorNames()));
    }
  }
  lanes->push_back(std::make_unique<Lane>(full, std::move(detectors), heap,
                                          options.detectors.size() > 1, options.ordering_rule));
  return {};
}

// Detectors and shards see accesses across a granule in pieces, and parts of memory that moved or
// is untracked. What a report shows is the whole access, so that it does not depend on how memory
// was split.
class WholeAccesses {
 public:
  // An access of which detectors see pieces. Of one pass in ascending order of `index`.
  void Remember(std::uint64_t index, const Event& event) {
    if (crossing_.size() < kMostCrossing) {
      crossing_.push_back({index, event});
    } else {
      forgotten_ = true;
    }
  }

  // `all`: any access of a race may be a part of one. Accesses that are not remembered are looked
  // up by one more pass over what make_source() gives.
  template <class MakeSource>
  Status Find(const std::vector<Lane*>& lanes, bool all, MakeSource&& make_source) {
    std::set<std::uint64_t> wanted;
    for (Lane* const lane : lanes) {
      for (const Race& race : lane->result().races) {
        for (const Access& access : {race.first, race.second}) {
          if (all || MaybePiece(access)) wanted.insert(access.index);
        }
      }
    }
    if (all || forgotten_) {
      const std::unique_ptr<EventSource> source = make_source();
      return LookUp(wanted, *source);
    }
    for (const auto& [at, event] : crossing_) {
      if (wanted.contains(at)) found_[at] = event;
    }
    return {};
  }

  void Restore(Access* access) const {
    const auto at = found_.find(access->index);
    if (at == found_.end()) return;
    const Event& event = at->second;
    // Not some other event of a late repeat's epoch.
    if (event.ip != access->ip || event.kind != access->kind) return;
    access->address = event.address;
    access->size = event.size;
  }

 private:
  // A second pass over a log costs a third of the first one; this many accesses fit into 4 MiB.
  static constexpr std::size_t kMostCrossing = 65536;

  static bool MaybePiece(const Access& access) {
    return access.address % ShardMap::kGranule == 0 ||
           (access.address + access.size) % ShardMap::kGranule == 0;
  }

  Status LookUp(const std::set<std::uint64_t>& wanted, EventSource& reader) {
    std::vector<Event> events(kBatch);
    auto next = wanted.begin();
    while (next != wanted.end()) {
      const std::uint64_t first = reader.position();
      const std::size_t count = reader.Read(events.data(), events.size());
      if (count == 0) return reader.status();
      for (; next != wanted.end() && *next < first + count; ++next) {
        found_[*next] = events[*next - first];
      }
    }
    return {};
  }

  std::vector<std::pair<std::uint64_t, Event>> crossing_;
  bool forgotten_ = false;  // some of them
  std::map<std::uint64_t, Event> found_;
};

// Brings the races of all shards into the order of an unsplit detector, with one race for each pair
// of places.
void Unite(const WholeAccesses& whole, bool all_races, std::vector<Race>* races) {
  std::stable_sort(races->begin(), races->end(), [](const Race& a, const Race& b) {
    return std::tuple(a.second.index, a.address, a.first.index) <
           std::tuple(b.second.index, b.address, b.first.index);
  });
  std::vector<Race> united;
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> known;
  std::set<std::tuple<std::uint64_t, std::uint64_t, EventKind, std::uint64_t>> same_accesses;
  for (Race& race : *races) {
    // The same two accesses in another piece. Of a late repeat the index is that of any event of
    // its epoch, which may be another access.
    if (!same_accesses.emplace(race.first.index, race.first.ip, race.first.kind, race.second.index)
             .second) {
      continue;
    }
    const auto [low, high] = std::minmax(race.first.ip, race.second.ip);
    if (!all_races && !known.emplace(low, high, high == 0 ? race.address : 0).second) continue;
    whole.Restore(&race.first);
    whole.Restore(&race.second);
    const std::uint64_t begin = std::max(race.first.address, race.second.address);
    const std::uint64_t end =
        std::min(race.first.address + race.first.size, race.second.address + race.second.size);
    // Moved history: the earlier access was made at another address.
    if (begin < end) {
      race.address = begin;
      race.size = end - begin;
    } else {
      race.address = race.second.address;
      race.size = race.second.size;
    }
    united.push_back(race);
  }
  *races = std::move(united);
}

// Runs `lanes` over the log, as it is or straight. `ambiguous`: memory cannot be split, and nothing
// of the result is to be used.
Status RunPass(const LogIndex& index, const ReplayOptions& options, bool straight,
               const std::vector<Lane*>& lanes, ReplayResult* result, bool* ambiguous) {
  const Sequence last = std::min(options.last, index.complete_up_to());
  const std::uint64_t opening = MonotonicNs();
  const auto make_source = [&] { return std::make_unique<EventSource>(index, last, straight); };
  const std::unique_ptr<EventSource> source = make_source();
  result->read_ns += MonotonicNs() - opening;
  std::vector<Event> events(options.shards > 1 || lanes.size() > 1 ? kLongBatch : kBatch);
  std::array<std::uint64_t, kEventKinds> kinds{};
  std::vector<std::size_t> crossing;
  WholeAccesses whole;
  std::uint64_t progress_at = 0;
  for (;;) {
    const std::uint64_t first = source->position();
    const std::uint64_t before = MonotonicNs();
    const std::size_t count = source->Read(events.data(), events.size());
    result->read_ns += MonotonicNs() - before;
    if (count == 0) break;
    const std::span<const Event> batch(events.data(), count);
    crossing.clear();
    for (std::size_t group = 0; group < count; group += kGroup) {
      const std::size_t end = std::min(count, group + kGroup);
      bool usual = true;
      std::uint64_t writes = 0;
      for (std::size_t i = group; i < end; ++i) {
        usual &= IsPlainAccess(batch[i].kind) & !Crosses(batch[i]);
        writes += static_cast<std::uint64_t>(batch[i].kind);
      }
      if (usual) [[likely]] {
        kinds[static_cast<std::size_t>(EventKind::kRead)] += end - group - writes;
        kinds[static_cast<std::size_t>(EventKind::kWrite)] += writes;
        continue;
      }
      for (std::size_t i = group; i < end; ++i) {
        const Event& event = batch[i];
        ++kinds[static_cast<std::size_t>(event.kind)];
        if (event.kind == EventKind::kFork)
          result->creations[event.other] = {event.thread, event.ip, event.stack};
        if (!(IsPlainAccess(event.kind) || IsEarlierAccess(event.kind)) || !Crosses(event))
          continue;
        if (event.size > kMaxAccessBytes) {
          return Status::Error(
              fmt::format("{}: event {} is an access of {} bytes, more than any "
                          "program can make; the log cannot be right",
                          index.path(), first + i, event.size));
        }
        crossing.push_back(i);
        whole.Remember(first + i, event);
      }
    }
    for (Lane* const lane : lanes) lane->OnEvents(batch, first, crossing);
    *ambiguous = std::ranges::any_of(lanes, [](const Lane* lane) { return lane->ambiguous(); });
    if (*ambiguous) return {};
    if (options.progress && first >= progress_at) {
      options.progress(first);
      progress_at = first + kProgressEvents;
    }
  }
  if (!source->status().ok()) return source->status();
  for (Lane* const lane : lanes) lane->Finish();
  const bool moves = kinds[static_cast<std::size_t>(EventKind::kCopyHistory)] != 0 ||
                     kinds[static_cast<std::size_t>(EventKind::kUntrack)] != 0;
  if (Status status = whole.Find(lanes, moves, make_source); !status.ok()) return status;
  for (Lane* const lane : lanes)
    Unite(whole, options.detector_options.all_races, &lane->result().races);
  result->stacks = source->stacks();
  if (result->events != 0) return {};  // they were counted before
  result->events = source->log_position();
  for (std::size_t kind = 0; kind < kEventKinds; ++kind) {
    if (kinds[kind] != 0) result->kinds[static_cast<EventKind>(kind)] = kinds[kind];
  }
  return {};
}

}  // namespace

bool Shardable(const std::string& detector) {
  // Left out: samplers and filters, which decide by all accesses, and what works on windows.
  static constexpr std::array kNames = {"empty",  "basicvc",   "djit+", "fasttrack", "eraser",
                                        "hybrid", "multirace", "lard",  "acculock"};
  return std::find(kNames.begin(), kNames.end(), detector) != kNames.end();
}

Status Replay(const LogIndex& index, const ReplayOptions& options, ReplayResult* result) {
  *result = {};
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const std::string& name : options.detectors) {
    if (Status status = MakeLane(name, options, &lanes); !status.ok()) return status;
  }
  const std::uint64_t started = MonotonicNs();
  const std::uint64_t cpu_started = ThreadCpuNs();
  const bool late = index.metadata().HasLateRepeats();
  // Detectors that take late repeats as they are get the log as it is.
  for (const bool straight : {false, true}) {
    std::vector<Lane*> chosen;
    for (const auto& lane : lanes) {
      if ((late && !lane->takes_repeats()) == straight) chosen.push_back(lane.get());
    }
    if (chosen.empty() && !(lanes.empty() && !straight)) continue;
    bool ambiguous = false;
    Status status = RunPass(index, options, straight, chosen, result, &ambiguous);
    if (!status.ok()) return status;
    if (ambiguous) {
      ReplayOptions unsplit = options;
      unsplit.shards = 1;
      return Replay(index, unsplit, result);
    }
  }
  // Phases are measured by the wall clock, since asking for processor time is a system call, and
  // scaled to the processor time of the whole.
  const double cpu_share = static_cast<double>(ThreadCpuNs() - cpu_started) /
                           static_cast<double>(std::max<std::uint64_t>(MonotonicNs() - started, 1));
  result->read_ns = Scaled(result->read_ns, cpu_share);
  for (const auto& lane : lanes) {
    lane->ScaleTime(cpu_share);
    result->detectors.push_back(lane->result());
  }
  result->wall_ns = MonotonicNs() - started;
  return {};
}

}  // namespace trapline
