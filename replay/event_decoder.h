// Bytes to events: the inverse of EventEncoder, for bytes that may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "detector/event.h"
#include "replay/log_format.h"

namespace trapline {

// Call stacks by their index: frames are program addresses, innermost first. Index 0 is "none".
using StackTable = std::map<std::uint32_t, std::vector<std::uint64_t>>;

// Decodes the chunks of one thread. Not thread-safe.
class EventDecoder {
 public:
  // `stacks` receives the call stacks that the stream defines; may be null. Must outlive this.
  EventDecoder(ThreadId thread, StackTable* stacks);

  // Takes up the payload of a block: `data` must have kMaxEventRecordBytes + kChunkSlackBytes
  // readable bytes behind it and stay until the next Begin. `fresh`: the block starts a chunk;
  // otherwise it goes on where the block before stopped.
  void Begin(std::span<const std::uint8_t> data, Sequence base, bool fresh);

  // Next events with a sequence number of at most `limit` (<= kLastSequence), at most `capacity` of
  // them, to `events`, their numbers to `sequences` if that is not null. Returns how many. Fewer
  // than `capacity`: end of the block, limit, or failed().
  std::size_t Decode(Event* events, Sequence* sequences, std::size_t capacity, Sequence limit);

  // Sequence number of the next event; kNoSequence at the end of the block or after a failure. Call
  // stacks on the way are taken in.
  Sequence NextSequence() { return known_next_ != kNoSequence ? known_next_ : FindNextSequence(); }

  // True once the bytes were not what an encoder writes; error() says what was wrong.
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  Sequence sequence() const { return sequence_; }  // of the latest event

 private:
  Sequence FindNextSequence();
  // A long record whose head has been read. Returns false if it was no event, or is malformed.
  bool DecodeLong(std::uint16_t token, std::uint64_t address_code, Event* event);
  bool DecodeStack();
  bool Varint(std::uint64_t* value);
  void Fail(const std::string& what);

  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  Sequence sequence_ = 0;
  std::uint64_t long_address_ = 0;
  std::uint64_t long_ip_ = 0;
  ThreadId thread_;
  StackTable* stacks_;
  std::string error_;
  // Templates: the next event of the slot, but for the address. The addresses are apart, since
  // copying a template just after writing to it would stall the processor (no store forwarding).
  std::vector<Event> sites_;
  std::vector<std::uint64_t> addresses_;
  Sequence known_next_ = kNoSequence;  // the next event's number, if Decode came across it
};

}  // namespace trapline
