#include "replay/event_decoder.h"

#include <fmt/format.h>

#include <cstring>

namespace trapline {
namespace {

constexpr auto kNoKind = static_cast<EventKind>(0xff);
constexpr std::size_t kMaxStacks = std::size_t{1} << 24;

std::uint64_t Load(const std::uint8_t* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, 8);
  return word;
}

// Lengths and masks by code, so that the common record is decoded without a branch on its shape.
// The lengths are computed: where the next record begins is what decoding waits for, and a table
// would be one more load on the way.
constexpr unsigned GapBytes(unsigned gap_code) { return 0x4100U >> (4 * gap_code) & 7; }
static_assert(GapBytes(kGapOne) == 0 && GapBytes(kGapNone) == 0 && GapBytes(kGapByte) == 1 &&
              GapBytes(kGapWord) == 4);
constexpr unsigned AddressBytes(unsigned address_code) {
  return address_code + (address_code + 1) / 8;
}
static_assert(AddressBytes(0) == kAddressBytes[0] && AddressBytes(6) == kAddressBytes[6] &&
              AddressBytes(7) == kAddressBytes[7]);
constexpr std::uint64_t kGapMask[4] = {0, 0, 0xff, 0xffffffff};
constexpr std::uint64_t kGapBase[4] = {1, 0, 0, 0};
constexpr std::uint64_t kAddressMask[8] = {
    0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, ~std::uint64_t{0}};

}  // namespace

EventDecoder::EventDecoder(ThreadId thread, StackTable* stacks)
    : thread_(thread), stacks_(stacks), sites_(kSites), addresses_(kSites) {
  for (Event& site : sites_) site.kind = kNoKind;
}

void EventDecoder::Begin(std::span<const std::uint8_t> data, Sequence base, bool fresh) {
  begin_ = next_ = data.data();
  known_next_ = kNoSequence;
  end_ = begin_ + data.size();
  if (fresh) {
    for (Event& site : sites_) site.kind = kNoKind;
    long_address_ = 0;
    long_ip_ = 0;
    sequence_ = base;
  }
  if (base > kLastSequence) {
    Fail("the sequence number overflows");
  } else if (base != sequence_) {
    Fail(fmt::format("the block continues sequence {}, but its thread is at {}", base, sequence_));
  }
}

void EventDecoder::Fail(const std::string& what) {
  error_ = fmt::format("thread {}, byte {} of the block: {}", thread_, next_ - begin_, what);
  next_ = end_;
}

bool EventDecoder::Varint(std::uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && next_ < end_; shift += 7) {
    const std::uint8_t byte = *next_++;
    *value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  Fail("a number is malformed");
  return false;
}

std::size_t EventDecoder::Decode(Event* events, Sequence* sequences, std::size_t capacity,
                                 Sequence limit) {
  std::size_t count = 0;
  known_next_ = kNoSequence;
  const std::uint8_t* next = next_;
  const std::uint8_t* const end = end_;
  Event* const sites = sites_.data();
  std::uint64_t* const addresses = addresses_.data();
  Sequence sequence = sequence_;
  while (count < capacity && next < end) {
    const std::uint64_t head = Load(next);
    const unsigned gap_code = (head >> kSequenceCodeShift) & 3;
    // Within a turn one number follows the other, and to guess that is quicker than to compute
    // where the record goes on.
    Sequence at = sequence + 1;
    unsigned gap_bytes = 0;
    if (gap_code != kGapOne) {
      at = sequence + ((head >> 16) & kGapMask[gap_code]);
      gap_bytes = GapBytes(gap_code);
    }
    if (at > limit) {
      if ((head & kLongForm) == 0 && at <= kLastSequence) known_next_ = at;
      break;
    }
    sequence = at;
    next += 2 + gap_bytes;
    const unsigned address_code = (head >> kAddressCodeShift) & 7;
    const std::uint64_t address = Load(next) & kAddressMask[address_code];
    next += AddressBytes(address_code);
    Event& event = events[count];
    bool has_value = false;
    if ((head & kLongForm) == 0) [[likely]] {
      const std::size_t slot = head & kSlotMask;
      const Event& site = sites[slot];
      if (site.kind == kNoKind) [[unlikely]] {
        next_ = next;
        Fail("a record refers to an undefined site");
        break;
      }
      const std::uint64_t latest = addresses[slot] + UnZigZag(address);
      addresses[slot] = latest;
      has_value = (site.flags & kHasValue) != 0;
      event = site;
      event.address = latest;
    } else {
      next_ = next;
      sequence_ = sequence;
      const bool is_event = DecodeLong(static_cast<std::uint16_t>(head), address, &event);
      if (failed()) break;
      next = next_;
      sequence = sequence_;
      if (!is_event) continue;
      has_value = (event.flags & kHasValue) != 0;
    }
    if (has_value) [[unlikely]] {
      const std::uint32_t bytes = ValueBytes(event.size);
      event.aux = 0;
      std::memcpy(&event.aux, next, bytes);
      next += bytes;
    }
    if (next > end) [[unlikely]] {
      Fail("the last record is cut short");
      break;
    }
    if (sequences != nullptr) sequences[count] = sequence;
    ++count;
  }
  if (!failed()) {
    next_ = next;
    sequence_ = sequence;
  }
  return count;
}

bool EventDecoder::DecodeLong(std::uint16_t token, std::uint64_t address_code, Event* event) {
  if (end_ - next_ < 2) {
    Fail("the last record is cut short");
    return false;
  }
  std::uint8_t kind = *next_ & kKindMask;
  std::uint8_t order = *next_ >> kOrderShift;
  const bool is_event = IsEvent(*next_);
  const std::uint8_t flags = next_[1];
  next_ += 2;
  if (kind == kRecordStack) return DecodeStack();
  std::uint64_t number = 0;
  if (!is_event) {  // kRecordSkip
    if (!Varint(&number)) return false;
    if (number > kLastSequence - sequence_) {
      Fail("the sequence number overflows");
      return false;
    }
    sequence_ += number;
    return false;
  }
  if (kind == kRecordSkip) {
    kind = static_cast<std::uint8_t>(kRecordSkip + order - 1);
    order = 0;
  }
  if (kind >= kEventKinds || order > static_cast<std::uint8_t>(MemoryOrder::kSeqCst)) {
    Fail(fmt::format("unknown event kind {} with memory order {}", kind, order));
    return false;
  }
  *event = Event{};
  event->kind = static_cast<EventKind>(kind);
  event->order = static_cast<MemoryOrder>(order);
  event->thread = thread_;
  if ((flags & kLongHasValue) != 0 && IsAccess(event->kind)) event->flags = kHasValue;
  long_address_ += UnZigZag(address_code);
  event->address = long_address_;
  if (!Varint(&number)) return false;
  long_ip_ += UnZigZag(number);
  event->ip = long_ip_;
  if ((flags & kLongSize) != 0 && !Varint(&event->size)) return false;
  if ((flags & kLongStack) != 0) {
    if (!Varint(&number)) return false;
    event->stack = static_cast<std::uint32_t>(number);
  }
  if ((flags & kLongAux) != 0 && !Varint(&event->aux)) return false;
  if ((flags & kLongOther) != 0) {
    if (!Varint(&number)) return false;
    event->other = static_cast<ThreadId>(number);
  }
  if ((flags & kLongDefinesSite) != 0) {
    sites_[token & kSlotMask] = *event;
    addresses_[token & kSlotMask] = event->address;
  }
  return true;
}

bool EventDecoder::DecodeStack() {
  std::uint64_t id = 0;
  std::uint64_t count = 0;
  if (!Varint(&id) || !Varint(&count)) return false;
  if (id > 0xffffffff || count > kMaxStackFrames) {
    Fail("a call stack is malformed");
    return false;
  }
  std::vector<std::uint64_t> frames(count);
  std::uint64_t frame = 0;
  for (std::uint64_t& at : frames) {
    std::uint64_t difference = 0;
    if (!Varint(&difference)) return false;
    frame += UnZigZag(difference);
    at = frame;
  }
  if (stacks_ != nullptr && stacks_->size() < kMaxStacks) {
    stacks_->emplace(static_cast<std::uint32_t>(id), std::move(frames));
  }
  return false;
}

Sequence EventDecoder::FindNextSequence() {
  // Stack definitions and skips come first; a limit below every event lets only them pass.
  for (;;) {
    if (next_ >= end_ || failed()) return kNoSequence;
    const std::uint64_t head = Load(next_);
    const unsigned gap_code = (head >> kSequenceCodeShift) & 3;
    const Sequence at = sequence_ + ((head >> 16) & kGapMask[gap_code]) + kGapBase[gap_code];
    if (at > kLastSequence) {
      Fail("the sequence number overflows");
      return kNoSequence;
    }
    if ((head & kLongForm) == 0) return at;
    const unsigned address_code = (head >> kAddressCodeShift) & 7;
    const std::uint8_t* body = next_ + 2 + GapBytes(gap_code) + AddressBytes(address_code);
    if (end_ - body < 2) {
      Fail("the last record is cut short");
      return kNoSequence;
    }
    if (IsEvent(*body)) return at;
    next_ = body;
    sequence_ = at;
    Event none;
    DecodeLong(static_cast<std::uint16_t>(head), 0, &none);
  }
}

}  // namespace trapline
