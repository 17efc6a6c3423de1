#include "replay/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace trapline {
namespace {

constexpr std::size_t kPayloadPadding = kMaxEventRecordBytes + kChunkSlackBytes;

}  // namespace

struct LogReader::Stream {
  ThreadId thread;
  const std::vector<BlockRef>* blocks;
  std::size_t block = 0;        // current one
  bool loaded = false;          // its payload is in `payload`, and `decoder` inside it
  std::uint64_t delivered = 0;  // events of the current block
  BlockHeader header{};
  std::unique_ptr<EventDecoder> decoder;
  std::vector<std::uint8_t> payload;
};

LogReader::LogReader(const LogIndex& index, Sequence first, Sequence last)
    : index_(index), last_(std::min(last, kLastSequence)) {
  for (const auto& [thread, blocks] : index.threads()) {
    if (blocks.empty()) continue;
    streams_.push_back(std::make_unique<Stream>());
    Stream& stream = *streams_.back();
    stream.thread = thread;
    stream.blocks = &blocks;
    heap_.push_back({blocks.front().first_sequence, thread, &stream});
  }
  std::make_heap(heap_.begin(), heap_.end(),
                 [](const Next& a, const Next& b) { return b.Before(a); });
  if (first > 0) SkipTo(first);
}

LogReader::~LogReader() = default;

void LogReader::SkipTo(Sequence first) {
  std::array<Event, 256> events;
  while (status_.ok() && !heap_.empty() && heap_.front().sequence < first) {
    Run(events.data(), nullptr, events.size(), first - 1);
  }
}

std::size_t LogReader::Run(Event* events, Sequence* sequences, std::size_t capacity,
                           Sequence last) {
  Next& top = heap_.front();
  Stream& stream = *top.stream;
  if (!stream.loaded && !Load(stream)) return 0;
  const std::uint64_t left = (*stream.blocks)[stream.block].events - stream.delivered;
  const std::size_t count = stream.decoder->Decode(
      events, sequences, std::min<std::uint64_t>(capacity, left), std::min(Limit(), last));
  stream.delivered += count;
  top.sequence = stream.decoder->NextSequence();
  // At the end of the block, or where its header says that the end is.
  if (top.sequence == kNoSequence || count == left) Advance();
  if (status_.ok()) SiftDown();
  return count;
}

Sequence LogReader::Limit() const {
  // The runner-up is one of the root's children.
  if (heap_.size() < 2) return kLastSequence;
  const Next& second = heap_.size() > 2 && heap_[2].Before(heap_[1]) ? heap_[2] : heap_[1];
  // Numbers from different threads are equal only in a hostile log; then the thread decides.
  return heap_[0].thread < second.thread ? second.sequence : second.sequence - 1;
}

void LogReader::SiftDown() {
  const std::size_t size = heap_.size();
  if (size < 2) return;
  const Next moved = heap_[0];
  std::size_t hole = 0;
  for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
    // Added, since which one it is cannot be guessed.
    if (child + 1 < size) child += heap_[child + 1].Before(heap_[child]) ? 1 : 0;
    if (!heap_[child].Before(moved)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = moved;
}

bool LogReader::Load(Stream& stream) {
  const BlockRef& block = (*stream.blocks)[stream.block];
  status_ =
      index_.ReadBlock(block.offset, &stream.header, &scratch_, &stream.payload, kPayloadPadding);
  if (!status_.ok()) return false;
  if (stream.decoder == nullptr) {
    stream.decoder = std::make_unique<EventDecoder>(stream.thread, &stacks_);
  }
  stream.decoder->Begin({stream.payload.data(), stream.header.raw_bytes},
                        stream.header.base_sequence, block.fresh);
  stream.loaded = true;
  stream.delivered = 0;
  const Sequence first = stream.decoder->NextSequence();
  if (first != (block.events == 0 ? kNoSequence : block.first_sequence) ||
      stream.decoder->failed()) {
    status_ = Status::Error(
        fmt::format("{} is damaged: the block at byte {} does not hold what its header says ({})",
                    index_.path(), block.offset,
                    stream.decoder->failed() ? stream.decoder->error() : "other sequence numbers"));
    return false;
  }
  return true;
}

void LogReader::Advance() {
  Stream& stream = *heap_.front().stream;
  const BlockRef& block = (*stream.blocks)[stream.block];
  if (stream.decoder->failed() || stream.decoder->NextSequence() != kNoSequence ||
      stream.delivered != block.events || stream.decoder->sequence() != block.last_sequence) {
    status_ = Status::Error(
        fmt::format("{} is damaged: the block at byte {} does not hold what its header says ({})",
                    index_.path(), block.offset,
                    stream.decoder->failed() ? stream.decoder->error() : "other events"));
    return;
  }
  stream.loaded = false;
  if (++stream.block < stream.blocks->size()) {
    heap_.front().sequence = (*stream.blocks)[stream.block].first_sequence;
    return;
  }
  stream.decoder.reset();
  stream.payload = {};
  heap_.front() = heap_.back();
  heap_.pop_back();
}

std::size_t LogReader::Read(Event* events, Sequence* sequences, std::size_t capacity) {
  std::size_t count = 0;
  while (count < capacity && status_.ok() && !heap_.empty() && heap_[0].sequence <= last_) {
    count += Run(events + count, sequences == nullptr ? nullptr : sequences + count,
                 capacity - count, last_);
  }
  position_ += count;
  return count;
}

}  // namespace trapline
