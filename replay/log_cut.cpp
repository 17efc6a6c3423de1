#include "replay/log_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "replay/log_reader.h"
#include "replay/log_writer.h"

namespace trapline {
namespace {

bool Holds(const LogPart& part, ThreadId thread) {
  return part.all_threads || std::binary_search(part.threads.begin(), part.threads.end(), thread);
}

std::vector<ThreadId> ThreadsOf(const LogIndex& index) {
  std::vector<ThreadId> threads;
  for (const auto& [thread, blocks] : index.threads()) threads.push_back(thread);
  return threads;
}

LogPart Intersection(const LogPart& a, const LogPart& b) {
  LogPart both;
  both.first = std::max(a.first, b.first);
  both.last = std::min(a.last, b.last);
  both.all_threads = a.all_threads && b.all_threads;
  const std::vector<ThreadId>& threads = a.all_threads ? b.threads : a.threads;
  for (const ThreadId thread : threads) {
    if (Holds(a, thread) && Holds(b, thread)) both.threads.push_back(thread);
  }
  return both;
}

// `part` with the numbers before the log's first event or after its last one that no event has, so
// that pieces cut at the numbers of events are together the whole.
LogPart Widened(LogPart part, const LogIndex& index) {
  Sequence first = kLastSequence;
  for (const auto& [thread, blocks] : index.threads()) {
    if (!blocks.empty()) first = std::min(first, blocks.front().first_sequence);
  }
  if (part.first <= first) part.first = 0;
  if (index.missing().empty() && part.last >= index.last_sequence() && part.first <= part.last)
    part.last = kLastSequence;
  return part;
}

LogEnd EndOf(const LogIndex& index) {
  LogEnd end;
  end.orderly = index.finished() && index.end().orderly;
  end.lost_events = index.end().lost_events;
  end.reason = index.end().reason;
  if (!end.orderly && end.reason.empty()) end.reason = "the log it was taken from has no end";
  return end;
}

// The call stacks that the copied events refer to, each appended once, at the end.
class StackCopy {
 public:
  void Note(const Event& event) {
    if (event.stack == 0 || event.stack == latest_) return;
    latest_ = event.stack;
    used_.insert(event.stack);
  }
  void Write(const StackTable& stacks, ThreadId thread, LogWriter& writer) {
    for (auto used = used_.begin(); used != used_.end();) {
      const auto stack = stacks.find(*used);
      if (stack == stacks.end()) {
        ++used;
        continue;
      }
      writer.AppendStack(thread, stack->first, stack->second);
      used = used_.erase(used);
    }
  }

 private:
  std::set<std::uint32_t> used_;
  std::uint32_t latest_ = 0;
};

// One input of a merge, with the next events at hand.
struct Piece {
  LogIndex index;
  std::unique_ptr<LogReader> reader;
  std::array<Event, 512> events;
  std::array<Sequence, 512> sequences;
  std::size_t next = 0;
  std::size_t count = 0;

  bool Fill() {
    if (next < count) return true;
    next = 0;
    count = reader->Read(events.data(), sequences.data(), events.size());
    return count != 0;
  }
};

}  // namespace

Status CutLog(const LogIndex& index, const LogPart& asked_for, const std::string& output) {
  LogMetadata metadata = index.metadata();
  const LogPart part = Widened(asked_for, index);
  if (metadata.threads.empty()) metadata.threads = ThreadsOf(index);
  std::vector<LogPart> parts;
  if (metadata.parts.empty()) metadata.parts.push_back({});
  for (const LogPart& known : metadata.parts) {
    LogPart both = Intersection(known, part);
    if (both.first <= both.last && (both.all_threads || !both.threads.empty())) {
      parts.push_back(std::move(both));
    }
  }
  if (parts.empty() || (index.missing().empty() && part.first > index.last_sequence())) {
    return Status::Error(fmt::format(
        "nothing to cut: {} holds no event of the range asked for; see `trapline log info`",
        index.path()));
  }
  metadata.parts = std::move(parts);
  LogWriter writer;
  if (Status status = writer.Create(output, index.recording(), metadata); !status.ok()) {
    return status;
  }
  LogReader reader(index, part.first, std::min(part.last, index.complete_up_to()));
  std::array<Event, 512> events;
  std::array<Sequence, 512> sequences;
  StackCopy stacks;
  ThreadId thread = 0;
  auto checkpoint = std::find_if(
      index.checkpoints().begin(), index.checkpoints().end(),
      [&part](const LogCheckpoint& at) { return at.sequence >= part.first && at.time_ns != 0; });
  while (const std::size_t count = reader.Read(events.data(), sequences.data(), events.size())) {
    for (std::size_t i = 0; i < count; ++i) {
      for (; checkpoint != index.checkpoints().end() && checkpoint->sequence < sequences[i];
           ++checkpoint) {
        writer.Checkpoint(checkpoint->time_ns);
      }
      if (!Holds(part, events[i].thread)) continue;
      thread = events[i].thread;
      stacks.Note(events[i]);
      writer.AppendAt(events[i], sequences[i]);
    }
  }
  if (!reader.status().ok()) return reader.status();
  if (writer.events() != 0) stacks.Write(reader.stacks(), thread, writer);
  return writer.Finish(EndOf(index));
}

Status MergeLogs(const std::vector<std::string>& inputs, const std::string& output) {
  std::vector<std::unique_ptr<Piece>> pieces;
  LogMetadata metadata;
  LogEnd end;
  end.orderly = true;
  std::vector<LogCheckpoint> checkpoints;
  for (const std::string& input : inputs) {
    auto piece = std::make_unique<Piece>();
    if (Status status = piece->index.Open(input); !status.ok()) return status;
    const LogIndex& index = piece->index;
    if (!pieces.empty() && !(index.recording() == pieces.front()->index.recording())) {
      return Status::Error(fmt::format("cannot merge: {} and {} are of different recordings",
                                       inputs.front(), input));
    }
    if (pieces.empty()) {
      metadata = index.metadata();
      metadata.parts.clear();
    }
    if (index.metadata().parts.empty()) metadata.parts.push_back({});
    metadata.parts.insert(metadata.parts.end(), index.metadata().parts.begin(),
                          index.metadata().parts.end());
    if (metadata.threads.empty()) metadata.threads = ThreadsOf(index);
    const LogEnd this_end = EndOf(index);
    end.orderly = end.orderly && this_end.orderly;
    if (end.reason.empty()) end.reason = this_end.reason;
    end.lost_events = std::max(end.lost_events, this_end.lost_events);
    checkpoints.insert(checkpoints.end(), index.checkpoints().begin(), index.checkpoints().end());
    piece->reader = std::make_unique<LogReader>(index);
    pieces.push_back(std::move(piece));
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const LogCheckpoint& a, const LogCheckpoint& b) { return a.sequence < b.sequence; });
  if (Uncovered(metadata.parts, metadata.threads).empty()) {
    metadata.parts.clear();
    metadata.threads.clear();
  }
  LogWriter writer;
  const RecordingId recording = pieces.front()->index.recording();
  if (Status status = writer.Create(output, recording, metadata); !status.ok()) {
    return status;
  }
  StackCopy stacks;
  ThreadId thread = 0;
  auto checkpoint = checkpoints.begin();
  for (;;) {
    Piece* first = nullptr;
    for (const auto& piece : pieces) {
      if (!piece->Fill()) {
        if (!piece->reader->status().ok()) return piece->reader->status();
        continue;
      }
      if (first == nullptr) {
        first = piece.get();
        continue;
      }
      const std::pair key{piece->sequences[piece->next], piece->events[piece->next].thread};
      const std::pair least{first->sequences[first->next], first->events[first->next].thread};
      if (key == least) {
        return Status::Error(fmt::format(
            "cannot merge: {} and {} both hold sequence {} of thread {}; give pieces that do not "
            "overlap",
            first->index.path(), piece->index.path(), key.first, key.second));
      }
      if (key < least) first = piece.get();
    }
    if (first == nullptr) break;
    const std::size_t i = first->next++;
    for (; checkpoint != checkpoints.end() && checkpoint->sequence < first->sequences[i];
         ++checkpoint) {
      if (checkpoint->time_ns != 0) writer.Checkpoint(checkpoint->time_ns);
    }
    thread = first->events[i].thread;
    stacks.Note(first->events[i]);
    writer.AppendAt(first->events[i], first->sequences[i]);
  }
  if (writer.events() != 0) {
    for (const auto& piece : pieces) stacks.Write(piece->reader->stacks(), thread, writer);
  }
  return writer.Finish(end);
}

std::optional<Sequence> SequenceAt(const LogIndex& index, std::uint64_t ns) {
  std::optional<Sequence> sequence;
  for (const LogCheckpoint& checkpoint : index.checkpoints()) {
    if (checkpoint.time_ns == 0) continue;
    if (!sequence) sequence = 0;
    if (checkpoint.time_ns <= ns) sequence = checkpoint.sequence;
  }
  return sequence;
}

std::vector<LogPart> Uncovered(const std::vector<LogPart>& parts,
                               const std::vector<ThreadId>& threads) {
  std::vector<LogPart> gaps;
  for (const ThreadId thread : threads) {
    std::vector<std::pair<Sequence, Sequence>> ranges;
    for (const LogPart& part : parts) {
      if (Holds(part, thread)) ranges.emplace_back(part.first, part.last);
    }
    std::sort(ranges.begin(), ranges.end());
    Sequence next = 0;
    const auto add = [&gaps, thread](Sequence first, Sequence last) {
      // The same gap in the next thread makes one part of both.
      for (LogPart& gap : gaps) {
        if (gap.first == first && gap.last == last) return gap.threads.push_back(thread);
      }
      gaps.push_back({first, last, false, {thread}});
    };
    for (const auto& [first, last] : ranges) {
      if (first > next) add(next, first - 1);
      next = std::max(next, last + 1);
    }
    if (next <= kLastSequence) add(next, kLastSequence);
  }
  return gaps;
}

}  // namespace trapline
