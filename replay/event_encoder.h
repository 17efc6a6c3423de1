// Events to bytes: one thread's stream as delta-coded records (the coding is in log_format.h).
//
// Freestanding and inline: no library call, exception, allocation or thread-local variable, so that
// the guest agent can record from any context. EventDecoder is its inverse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "detector/event.h"
#include "replay/log_format.h"

namespace trapline {

// Coding state of one thread. Belongs to that thread; plain memory, which Reset() makes valid.
class EventEncoder {
 public:
  // Starts a chunk after an event of sequence number `base`.
  void Reset(Sequence base) {
    for (Site& site : sites_) site.shape = kNoShape;
    sequence_ = base;
    long_address_ = 0;
    long_ip_ = 0;
  }

  // Writes the record of `event` at `out` and returns its end. `sequence` must not be below that of
  // the event before. Needs kMaxEventRecordBytes + kChunkSlackBytes of room.
  std::uint8_t* Encode(std::uint8_t* out, const Event& event, Sequence sequence) {
    return Encode(out, event, event.stack, sequence);
  }
  // The same with another call stack than the event's.
  std::uint8_t* Encode(std::uint8_t* out, const Event& event, std::uint32_t stack,
                       Sequence sequence) {
    if (sequence - sequence_ > 0xffffffff) [[unlikely]]
      out = Skip(out, sequence);
    const std::uint64_t slot = Slot(event, stack);
    const bool has_value = HasValue(event);
    Site& site = sites_[slot];
    if (site.ip == event.ip && site.shape == Shape(event) && site.size == event.size &&
        site.stack == stack && (event.aux == 0 || has_value) && event.other == 0) [[likely]] {
      out = Head(out, static_cast<std::uint16_t>(slot), sequence, event.address - site.address);
      site.address = event.address;
    } else {
      out = Long(out, event, stack, sequence, static_cast<std::uint16_t>(slot));
    }
    if (has_value) {
      Store(out, event.aux);
      out += ValueBytes(event.size);
    }
    return out;
  }

  // Writes the definition of call stack `id`, innermost frame first; `count` <= kMaxStackFrames.
  // Needs kMaxStackRecordBytes + kChunkSlackBytes of room.
  std::uint8_t* EncodeStack(std::uint8_t* out, std::uint32_t id, const std::uint64_t* frames,
                            std::uint32_t count) {
    out = Head(out, kLongForm, sequence_, 0);
    *out++ = kRecordStack;
    *out++ = 0;
    out = Varint(out, id);
    out = Varint(out, count);
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      out = Varint(out, ZigZag(frames[i] - before));
      before = frames[i];
    }
    return out;
  }

  Sequence sequence() const { return sequence_; }

 private:
  // Events that differ in the address alone share a site: one instruction, mostly.
  struct Site {
    std::uint64_t ip;
    std::uint64_t address;  // of the latest event
    std::uint32_t size;
    std::uint32_t stack;
    std::uint32_t shape;
  };
  static constexpr std::uint32_t kNoShape = ~0U;

  // Kind, order and flags, as they lie in the event.
  static std::uint32_t Shape(const Event& event) {
    static_assert(offsetof(Event, kind) == 0 && offsetof(Event, thread) == sizeof(std::uint32_t));
    std::uint32_t shape = 0;
    __builtin_memcpy(&shape, &event, sizeof shape);
    return shape;
  }

  // Call stacks are numbered as they come, and so code that runs together has neighbouring slots.
  static std::uint64_t Slot(const Event& event, std::uint32_t stack) {
    const std::uint64_t shape = static_cast<std::uint64_t>(event.kind) << 9;
    if (stack != 0) [[likely]]
      return (stack ^ shape) % kSites;
    const std::uint64_t key = event.ip + shape + (event.size << 48);
    return (key * 0x9e3779b97f4a7c15) >> 54;
  }
  static_assert(kSites == 1U << (64 - 54));

  static void Store(std::uint8_t* out, std::uint64_t word) { __builtin_memcpy(out, &word, 8); }

  static std::uint8_t* Varint(std::uint8_t* out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
    *out++ = static_cast<std::uint8_t>(value);
    return out;
  }

  // Token, gap and address: what all records begin with.
  [[gnu::always_inline]] std::uint8_t* Head(std::uint8_t* out, std::uint16_t token,
                                            Sequence sequence, std::uint64_t address_difference) {
    const std::uint64_t address = ZigZag(address_difference);
    const std::uint32_t bits = address == 0 ? 0 : 64 - __builtin_clzll(address | 1);
    const std::uint32_t bytes = (bits + 7) / 8;
    const std::uint32_t code = bytes - bytes / 8;  // of 7 bytes: that of 8
    const std::uint64_t gap = sequence - sequence_;
    sequence_ = sequence;
    SequenceCode gap_code = kGapWord;
    std::uint32_t gap_bytes = 4;
    if (gap == 1) {
      gap_code = kGapOne;
      gap_bytes = 0;
    } else if (gap == 0) {
      gap_code = kGapNone;
      gap_bytes = 0;
    } else if (gap <= 0xff) {
      gap_code = kGapByte;
      gap_bytes = 1;
    }
    const std::uint64_t head = token | (code << kAddressCodeShift) |
                               (static_cast<std::uint32_t>(gap_code) << kSequenceCodeShift);
    Store(out, head | (gap << 16));
    out += 2 + gap_bytes;
    Store(out, address);
    return out + code + (code + 1) / 8;
  }

  [[gnu::noinline]] std::uint8_t* Skip(std::uint8_t* out, Sequence sequence) {
    const std::uint64_t distance = sequence - sequence_;
    out = Head(out, kLongForm, sequence_, 0);
    *out++ = kRecordSkip;
    *out++ = 0;
    sequence_ = sequence;
    return Varint(out, distance);
  }

  [[gnu::noinline]] std::uint8_t* Long(std::uint8_t* out, const Event& event, std::uint32_t stack,
                                       Sequence sequence, std::uint16_t slot) {
    const bool has_value = HasValue(event);
    const bool has_aux = event.aux != 0 && !has_value;
    const bool defines = !has_aux && event.other == 0 && event.size <= 0xffffffff;
    out = Head(out, slot | kLongForm, sequence, event.address - long_address_);
    long_address_ = event.address;
    *out++ = KindByte(event.kind, event.order);
    *out++ = static_cast<std::uint8_t>(
        (event.size != 0 ? kLongSize : 0) | (stack != 0 ? kLongStack : 0) |
        (has_aux ? kLongAux : 0) | (event.other != 0 ? kLongOther : 0) |
        (defines ? kLongDefinesSite : 0) | (has_value ? kLongHasValue : 0));
    out = Varint(out, ZigZag(event.ip - long_ip_));
    long_ip_ = event.ip;
    if (event.size != 0) out = Varint(out, event.size);
    if (stack != 0) out = Varint(out, stack);
    if (has_aux) out = Varint(out, event.aux);
    if (event.other != 0) out = Varint(out, event.other);
    if (defines) {
      sites_[slot] = {event.ip, event.address, static_cast<std::uint32_t>(event.size), stack,
                      Shape(event)};
    }
    return out;
  }

  Site sites_[kSites];
  Sequence sequence_;
  std::uint64_t long_address_;
  std::uint64_t long_ip_;
};

}  // namespace trapline
