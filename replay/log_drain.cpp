#include "replay/log_drain.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace trapline {
namespace {

constexpr std::size_t kPadding = kMaxEventRecordBytes + kChunkSlackBytes;

}  // namespace

LogDrain::LogDrain(LogSegment& segment) : segment_(segment), scratch_(512) {
  const SegmentHeader& header = segment.header();
  if (ProcessStart(header.producer_pid) == header.producer_start) {
    producer_ = static_cast<int>(syscall(SYS_pidfd_open, header.producer_pid, 0));
  }
}

LogDrain::~LogDrain() {
  if (producer_ >= 0) close(producer_);
}

std::uint64_t LogDrain::Now() const { return MonotonicNs() - segment_.header().start_ns; }

Status LogDrain::Open(const std::string& path) {
  LogIndex index;
  if (index.Open(path).ok() && index.recording() == segment_.recording()) {
    if (index.finished()) {
      return status_ = Status::Error(fmt::format(
                 "{} is the finished log of this recording already; give another file", path));
    }
    status_ = Resume(path, index);
  } else {
    status_ = file_.Create(path, segment_.recording());
    StartAnew();
  }
  if (status_.ok()) WriteMetadata();
  segment_.header().drain_errno.store(status_.ok() ? 0 : file_.error_number());
  return status_;
}

Status LogDrain::Resume(const std::string& path, const LogIndex& index) {
  // Every metadata object in the file came from the segment, in its order. Modules are the ones
  // that may come late; writing one twice would show it twice.
  std::uint32_t skip = index.metadata_blocks();
  while (skip-- > 0 && !segment_.NextMetadata(&metadata_position_).empty()) {
  }
  events_ = index.events();
  last_sequence_ = index.last_sequence();
  checkpoint_ = index.complete_up_to();
  for (const auto& [thread, blocks] : index.threads()) {
    if (blocks.empty()) continue;
    const LogIndex::ThreadEnd& end = index.thread_end(thread);
    ThreadState& state = threads_[thread];
    state.chunk = end.chunk + 1;  // unless the chunk is still in memory
    state.sequence = end.sequence;
  }
  for (std::uint32_t i = 0; i < segment_.header().chunk_count; ++i) {
    ChunkControl& control = segment_.view().controls[i];
    if (control.ready.load(std::memory_order_acquire) == 0) continue;
    control.drained = 0;
    if (!index.threads().contains(control.thread)) continue;
    const LogIndex::ThreadEnd& end = index.thread_end(control.thread);
    if (control.number == end.chunk) {
      control.drained = end.offset;
      threads_[control.thread].chunk = end.chunk;
    }
  }
  return file_.Resume(path, index.valid_bytes());
}

void LogDrain::StartAnew() {
  SegmentHeader& header = segment_.header();
  if (header.drain_beats.load() == 0) return;
  successor_ = true;
  header.lost_from.store(0);
  for (std::uint32_t i = 0; i < header.chunk_count; ++i) segment_.view().controls[i].drained = 0;
}

void LogDrain::WriteMetadata() {
  for (;;) {
    const std::string_view text = segment_.NextMetadata(&metadata_position_);
    if (text.empty()) return;
    if (Status status = file_.Append(BlockType::kMetadata, text, Now()); !status.ok()) Fail(status);
  }
}

void LogDrain::Fail(const Status& status) {
  if (!status_.ok()) return;
  status_ = status;
  segment_.header().drain_errno.store(file_.error_number() != 0 ? file_.error_number() : EIO);
}

bool LogDrain::Settled(Sequence* upper) const {
  constexpr int kTries = 1000;  // a producer is busy for nanoseconds, unless it was preempted
  *upper = segment_.header().sequence.load();
  for (std::uint32_t i = 0; i < segment_.header().chunk_count; ++i) {
    const ChunkControl& control = segment_.view().controls[i];
    if (control.state.load() != ChunkState::kFilling) continue;
    int tries = 0;
    while (control.busy.load(std::memory_order_acquire) != 0) {
      if (++tries == kTries) return false;
    }
  }
  return true;
}

bool LogDrain::Take(std::uint32_t index, std::uint32_t committed) {
  ChunkControl& control = segment_.view().controls[index];
  const std::uint32_t from = control.drained;
  if (committed <= from) return false;
  if (!status_.ok()) {
    control.drained = committed;
    return true;
  }
  // The producer's memory is not trusted more than a file: copy, then decode, then write.
  const std::uint32_t size = committed - from;
  copy_.resize(size + kPadding);
  const std::uint8_t* bytes =
      segment_.view().data + std::uint64_t{index} * segment_.header().chunk_bytes;
  ThreadState& state = threads_[control.thread];
  const bool fresh = from == 0;
  const bool behind = !fresh && state.decoder == nullptr;  // another drain took the first piece
  if (state.decoder == nullptr) {
    state.decoder = std::make_unique<EventDecoder>(control.thread, nullptr);
  }
  EventDecoder& decoder = *state.decoder;
  if (behind) {
    std::vector<std::uint8_t> before(from + kPadding);
    std::memcpy(before.data(), bytes, from);
    decoder.Begin({before.data(), from}, control.base, true);
    while (decoder.NextSequence() != kNoSequence) {
      decoder.Decode(scratch_.data(), nullptr, scratch_.size(), kLastSequence);
    }
  }
  std::memcpy(copy_.data(), bytes + from, size);
  BlockHeader header{};
  header.type = BlockType::kEvents;
  header.thread = control.thread;
  header.chunk = control.number;
  header.offset = from;
  header.base_sequence = fresh ? control.base : decoder.sequence();
  header.time_ns = Now();
  decoder.Begin({copy_.data(), size}, header.base_sequence, fresh);
  const Sequence first = decoder.NextSequence();
  std::size_t got = 0;
  do {
    got = decoder.Decode(scratch_.data(), nullptr, scratch_.size(), kLastSequence);
    header.events += static_cast<std::uint32_t>(got);
  } while (decoder.NextSequence() != kNoSequence);
  header.first_sequence = first == kNoSequence ? header.base_sequence : first;
  header.last_sequence = decoder.sequence();
  if (decoder.failed()) {
    Fail(
        Status::Error(fmt::format("the recorded program has overwritten its trap log: {}; the log "
                                  "is valid up to there",
                                  decoder.error())));
    return true;
  }
  if (Status written = file_.Append(header, {copy_.data(), size}); !written.ok()) {
    Fail(written);
    return true;
  }
  control.drained = committed;
  state.sequence = header.last_sequence;
  events_ += header.events;
  last_sequence_ = std::max(last_sequence_, header.last_sequence);
  return true;
}

void LogDrain::Release(std::uint32_t index) {
  ChunkControl& control = segment_.view().controls[index];
  control.committed.store(0, std::memory_order_relaxed);
  control.drained = 0;
  control.ready.store(0, std::memory_order_relaxed);
  control.state.store(ChunkState::kFree, std::memory_order_release);
}

std::uint64_t LogDrain::Round(bool partial) {
  SegmentHeader& header = segment_.header();
  header.drain_beats.fetch_add(1, std::memory_order_relaxed);
  WriteMetadata();
  Sequence upper = 0;
  const bool settled = partial && (Settled(&upper) || quiet_);
  // A thread's chunks in their order. A thread fills one after the other, so that all but its
  // latest are full.
  order_.clear();
  for (std::uint32_t i = 0; i < header.chunk_count; ++i) {
    const ChunkControl& control = segment_.view().controls[i];
    const ChunkState state = control.state.load(std::memory_order_acquire);
    if (state == ChunkState::kFull || (partial && state == ChunkState::kFilling &&
                                       control.ready.load(std::memory_order_acquire) != 0)) {
      order_.push_back(i);
    }
  }
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const ChunkControl& first = segment_.view().controls[a];
    const ChunkControl& second = segment_.view().controls[b];
    return first.thread != second.thread ? first.thread < second.thread
                                         : first.number < second.number;
  });
  std::uint64_t taken = 0;
  for (const std::uint32_t index : order_) {
    ChunkControl& control = segment_.view().controls[index];
    ThreadState& state = threads_[control.thread];
    if (successor_ && control.number > state.chunk && !state.any) {
      state.chunk = control.number;
    }
    // Its predecessor may have become full after the search for full ones had passed it.
    if (control.number != state.chunk) continue;
    state.any = true;
    const bool full = control.state.load(std::memory_order_acquire) == ChunkState::kFull;
    const std::uint32_t committed =
        std::min(control.committed.load(std::memory_order_acquire), header.chunk_bytes);
    const std::uint32_t before = control.drained;
    if (Take(index, committed)) taken += committed - before;
    if (!full) continue;
    ++state.chunk;
    state.decoder.reset();
    Release(index);
  }
  upper = std::min(upper, header.lost_from.load());
  if (settled && upper > checkpoint_ && status_.ok()) {
    BlockHeader block{};
    block.type = BlockType::kCheckpoint;
    block.last_sequence = upper;
    block.time_ns = Now();
    if (Status status = file_.Append(block, {}); !status.ok()) Fail(status);
    checkpoint_ = upper;
  }
  return taken;
}

bool LogDrain::ProducerDead() const {
  if (producer_ < 0) return true;
  pollfd process{producer_, POLLIN, 0};
  return poll(&process, 1, 0) == 1;
}

bool LogDrain::ProducerExiting() const {
  constexpr unsigned kExiting = 4;  // PF_EXITING of the kernel's task flags
  std::ifstream file(fmt::format("/proc/{}/stat", segment_.header().producer_pid));
  std::string text;
  std::getline(file, text);
  // proc(5): the second field is the name in parentheses, the ninth the flags.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return true;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 9; ++i) fields >> field;
  unsigned flags = kExiting;
  fields >> flags;
  return (flags & kExiting) != 0;
}

bool LogDrain::ProducerGone() const {
  if (control_ < 0) return false;
  pollfd socket{control_, POLLIN, 0};
  return poll(&socket, 1, 0) == 1;
}

Status LogDrain::Run(const std::atomic<bool>& stop, std::chrono::microseconds interval) {
  constexpr int kPartialEvery = 10;
  std::string reason;
  for (int round = 0;; ++round) {
    // Asked before the round, so that the round sees all that was committed until then.
    const bool closed = segment_.header().closed.load() != 0;
    const bool stopped = stop.load();
    const bool gone = ProducerGone();
    char word = 0;
    const bool said_so = gone && read(control_, &word, 1) == 1;
    // Where the producer's number means nothing (another PID namespace), the socket tells. A
    // process that dies closes its descriptors before it is dead.
    const bool unexplained = gone && !said_so && !closed;
    const bool dead = producer_ < 0 && control_ >= 0
                          ? unexplained
                          : ProducerDead() || (unexplained && ProducerExiting());
    quiet_ = closed || dead || gone;
    const std::uint64_t taken = Round(round % kPartialEvery == 0);
    if (closed || stopped) break;
    // What ended may have been another program already.
    if (gone && segment_.header().executing.load() != 0) break;
    if (dead) {
      reason = "the recorded process was killed";
      break;
    }
    if (gone) break;  // another program runs in the process now
    if (taken == 0) std::this_thread::sleep_for(interval);
  }
  return Finish(reason);
}

Status LogDrain::Finish(const std::string& reason) {
  Round(true);
  LogEnd end;
  end.orderly = reason.empty();
  end.reason = reason;
  end.events = events_;
  end.lost_events = segment_.header().lost_events.load();
  end.last_sequence = last_sequence_;
  if (status_.ok()) {
    if (Status status = file_.Append(BlockType::kEnd, EndToText(end), Now()); !status.ok()) {
      Fail(status);
    }
  }
  if (Status status = file_.Close(); !status.ok()) Fail(status);
  return status_;
}

}  // namespace trapline
