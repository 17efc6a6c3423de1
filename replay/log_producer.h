// The side of the recording that runs in the workload: threads append events to chunks in shared
// memory; a drain (log_drain.h) writes the chunks to the file, from another thread or process.
//
// Freestanding and inline: plain pointers into the segment, no library call, exception, allocation
// or thread-local variable. Nothing here waits: where there is no room, the caller is told so.
//
// Protocol. A chunk is free, or being filled by one thread, or full. A producer takes a free chunk
// by compare-and-swap, appends, publishes each record by storing `committed`, and at last marks the
// chunk full; only the drain makes it free again. So each field has one writer at a time, and a
// process killed at any instruction leaves every committed record readable.
#pragma once

#include <atomic>
#include <cstdint>

#include "detector/event.h"
#include "replay/event_encoder.h"
#include "replay/log_format.h"

namespace trapline {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

enum class ChunkState : std::uint32_t { kFree, kFilling, kFull };

// One per chunk; the chunk's bytes are elsewhere.
struct alignas(64) ChunkControl {
  std::atomic<ChunkState> state;
  // 1 while the producer holds a sequence number it has not committed. Stored before the number is
  // drawn (by a locked instruction, which no earlier store passes on x86), thus a drain that reads
  // the counter and then finds 0 here knows that all numbers drawn so far are committed.
  std::atomic<std::uint32_t> busy;
  std::atomic<std::uint32_t> committed;  // bytes of whole records
  std::atomic<std::uint32_t> ready;      // 1 once the three fields below are valid
  ThreadId thread;
  std::uint32_t number;   // of the chunk in its thread's stream, from 0
  Sequence base;          // coding state's sequence number at the start
  std::uint32_t drained;  // the drain's own: bytes already in the file
};
static_assert(sizeof(ChunkControl) == 64);

// The first bytes of the shared memory segment.
struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x314753504c505254;  // "TRPLPSG1"

  std::atomic<std::uint64_t> magic;  // stored last by the creator
  std::uint64_t total_bytes;
  std::uint32_t chunk_bytes;
  std::uint32_t chunk_count;
  std::uint64_t control_offset;   // bytes from the segment's start to ChunkControl[chunk_count]
  std::uint64_t data_offset;      // ... to chunk_count * chunk_bytes bytes
  std::uint64_t metadata_offset;  // ... to JSON objects, each after its length (32 bits)
  std::uint32_t metadata_capacity;
  std::uint32_t reserved;  // 0
  std::uint64_t recording_low;
  std::uint64_t recording_high;
  std::uint64_t start_ns;  // CLOCK_MONOTONIC when the recording began
  std::int32_t producer_pid;
  std::int32_t padding;
  std::uint64_t producer_start;  // when that process began, in clock ticks since boot

  alignas(64) std::atomic<Sequence> sequence;  // last number drawn
  alignas(64) std::atomic<std::uint32_t> chunk_hint;
  std::atomic<std::uint32_t> next_stack;  // last index given to a call stack
  std::atomic<std::uint32_t> metadata_bytes;
  std::atomic<std::uint32_t> closed;  // the producer has ended in order
  std::atomic<Sequence> lost_from;    // kNoSequence, or no event above it may be missing
  std::atomic<std::uint64_t> lost_events;
  alignas(64) std::atomic<std::uint64_t> drain_beats;  // grows while a drain is alive
  std::atomic<std::int32_t> drain_errno;               // why the drain cannot write; 0 = it can
  std::atomic<std::uint32_t> executing;  // 1 = the producer has called execve, which has not failed
};

// What all producers of a process know of the segment, as pointers into their own mapping.
struct ProducerView {
  SegmentHeader* header;
  ChunkControl* controls;
  std::uint8_t* data;

  static ProducerView Of(void* base) {
    auto* header = static_cast<SegmentHeader*>(base);
    auto* bytes = static_cast<std::uint8_t*>(base);
    return {header, reinterpret_cast<ChunkControl*>(bytes + header->control_offset),
            bytes + header->data_offset};
  }
};

// One logical thread's end of the recording. Used by that thread only (by its carriers in turn).
// Plain memory; Open() makes it valid.
class ThreadLog {
 public:
  // Where a finished stream may go on, in this object or another one.
  struct Position {
    std::uint32_t chunks = 0;  // taken so far
    Sequence base = 0;         // of the latest event
  };

  // Makes no room yet: a thread without events costs no chunk.
  void Open(const ProducerView& view, ThreadId thread) { Open(view, thread, Position()); }
  void Open(const ProducerView& view, ThreadId thread, const Position& from) {
    view_ = view;
    thread_ = thread;
    control_ = nullptr;
    position_ = from;
  }
  // Valid after Finish.
  const Position& position() const { return position_; }

  // Makes sure that the next record of up to `bytes` bytes finds room. False: all chunks wait for
  // the drain; nothing has changed, ask again later or call Lose(). Call it before taking any lock
  // under which Append is called.
  bool Reserve(std::uint32_t bytes = kMaxEventRecordBytes) {
    if (control_ != nullptr) {
      if (static_cast<std::uint32_t>(limit_ - next_) >= bytes) return true;
      Finish();
    }
    return TakeChunk();
  }

  // Appends `event` with a sequence number of its own: later than every ordered event appended
  // before, by any thread. Ask Reserve first. Release-like events are appended before the operation
  // takes effect, acquire-like ones after it, accesses while the detector's cell is held.
  void AppendOrdered(const Event& event) {
    control_->busy.store(1, std::memory_order_relaxed);
    const Sequence sequence = view_.header->sequence.fetch_add(1) + 1;
    Commit(encoder_.Encode(next_, event, sequence));
    control_->busy.store(0, std::memory_order_release);
  }

  // The same for `count` events, which get consecutive numbers; stacks[i] is the call stack of
  // *events[i]. Ask Reserve for room for all of them.
  void AppendOrdered(const Event* const* events, const std::uint32_t* stacks, std::uint32_t count) {
    control_->busy.store(1, std::memory_order_relaxed);
    Sequence sequence = view_.header->sequence.fetch_add(count);
    std::uint8_t* end = next_;
    for (std::uint32_t i = 0; i < count; ++i)
      end = encoder_.Encode(end, *events[i], stacks[i], ++sequence);
    Commit(end);
    control_->busy.store(0, std::memory_order_release);
  }

  // Appends an access that needs no place among other threads' events but between this thread's
  // ordered ones: one whose bytes no other thread has touched since this thread's latest ordered
  // event (a same-epoch access). Costs no shared memory traffic.
  void AppendLocal(const Event& event) {
    // A thread's very first event has no ordered one to follow: it must not come before the fork.
    if (encoder_.sequence() == 0) return AppendOrdered(event);
    Commit(encoder_.Encode(next_, event, encoder_.sequence()));
  }

  // Appends an event whose number is known already (import, merge): not below the one before.
  void AppendAt(const Event& event, Sequence sequence) {
    Commit(encoder_.Encode(next_, event, sequence));
  }

  // Makes a call stack known; returns its index, which is unique in the recording. Ask
  // Reserve(kMaxStackRecordBytes) first.
  std::uint32_t AppendStack(const std::uint64_t* frames, std::uint32_t count) {
    const std::uint32_t id = view_.header->next_stack.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint32_t known = count < kMaxStackFrames ? count : kMaxStackFrames;
    Commit(encoder_.EncodeStack(next_, id, frames, known));
    return id;
  }

  // Says that so many events had to be dropped. What comes after it cannot be trusted to be
  // complete, and the log says so.
  void Lose(std::uint64_t events = 1) {
    SegmentHeader& header = *view_.header;
    header.lost_events.fetch_add(events, std::memory_order_relaxed);
    const Sequence now = header.sequence.load();
    Sequence from = header.lost_from.load();
    while (now < from && !header.lost_from.compare_exchange_weak(from, now)) {
    }
  }

  // The thread has ended, or pauses: hands over what there is. Appending again needs Reserve.
  void Finish() {
    if (control_ == nullptr) return;
    position_.base = encoder_.sequence();
    if (next_ == begin_) --position_.chunks;  // an empty chunk leaves no trace in the file
    control_->state.store(ChunkState::kFull, std::memory_order_release);
    control_ = nullptr;
  }

 private:
  void Commit(std::uint8_t* end) {
    next_ = end;
    control_->committed.store(static_cast<std::uint32_t>(end - begin_), std::memory_order_release);
  }

  bool TakeChunk() {
    SegmentHeader& header = *view_.header;
    const std::uint32_t count = header.chunk_count;
    const std::uint32_t start = header.chunk_hint.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t index = (start + i) % count;
      ChunkControl& control = view_.controls[index];
      ChunkState expected = ChunkState::kFree;
      if (control.state.load(std::memory_order_relaxed) != ChunkState::kFree ||
          !control.state.compare_exchange_strong(expected, ChunkState::kFilling)) {
        continue;
      }
      header.chunk_hint.store((index + 1) % count, std::memory_order_relaxed);
      control.thread = thread_;
      control.number = position_.chunks++;
      control.base = position_.base;
      control.ready.store(1, std::memory_order_release);
      control_ = &control;
      begin_ = next_ = view_.data + std::uint64_t{index} * header.chunk_bytes;
      limit_ = begin_ + header.chunk_bytes - kChunkSlackBytes;
      encoder_.Reset(position_.base);
      return true;
    }
    return false;
  }

  ProducerView view_;
  ChunkControl* control_;  // the chunk being filled; null = none
  std::uint8_t* begin_;
  std::uint8_t* next_;
  std::uint8_t* limit_;
  ThreadId thread_;
  Position position_;
  EventEncoder encoder_;
};

}  // namespace trapline
