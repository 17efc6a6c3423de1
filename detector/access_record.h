// What shadow memory keeps of an access. Freestanding.
#pragma once

#include <cstdint>

#include "detector/detector.h"
#include "detector/epoch.h"

namespace trapline {

// All that a report says of an access but its thread, in 24 bytes. Addresses are kept in 48 bits
// and sign-extended, event positions in 48; sizes are below 2^16 (detectors work on pieces of
// 2^15).
struct AccessDetails {
  std::uint64_t ip_size = 0;         // 48 bits of the instruction's address, 16 of the size
  std::uint64_t address_stack = 0;   // 48 bits of the address, the stack's low half
  std::uint64_t position_stack = 0;  // 48 bits of the position in the stream, the stack's high half

  friend bool operator==(const AccessDetails&, const AccessDetails&) = default;
};

// And when it happened.
struct AccessRecord {
  Epoch epoch;
  AccessDetails details;

  friend bool operator==(const AccessRecord&, const AccessRecord&) = default;

  static AccessRecord Make(Epoch epoch, const Event& event, std::uint64_t index) {
    return {epoch,
            {event.ip << 16 | (event.size & 0xffff), event.address << 16 | (event.stack & 0xffff),
             index << 16 | event.stack >> 16}};
  }

  Access Unpack(EventKind kind) const {
    return {.index = details.position_stack >> 16,
            .address = SignExtend(details.address_stack),
            .size = details.ip_size & 0xffff,
            .ip = SignExtend(details.ip_size),
            .stack = static_cast<std::uint32_t>((details.position_stack & 0xffff) << 16 |
                                                (details.address_stack & 0xffff)),
            .thread = epoch.thread(),
            .kind = kind};
  }

 private:
  static std::uint64_t SignExtend(std::uint64_t field) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(field) >> 16);
  }
};
static_assert(sizeof(AccessRecord) == 32);

}  // namespace trapline
