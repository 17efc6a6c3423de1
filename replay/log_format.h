// The trap log as bytes: what the producers, the drain and the reader agree on. docs/trap-log.md
// explains it; the numbers are here and nowhere else.
//
// Freestanding: no library, so that the guest agent can use it.
#pragma once

#include <cstdint>

#include "detector/event.h"

namespace trapline {

// The order of events: each carries a sequence number. Those of one thread never fall; an *ordered*
// event has a number of its own, which no other thread's event has; a *local* event repeats that of
// its thread's latest ordered event.
using Sequence = std::uint64_t;
inline constexpr Sequence kLastSequence = (Sequence{1} << 62) - 1;
inline constexpr Sequence kNoSequence = ~Sequence{0};

// Version 1 has no events later than kMissingEnd, version 2 none later than kEarlierWrite.
inline constexpr std::uint32_t kLogVersion = 3;
inline constexpr std::uint32_t kOldestLogVersion = 1;

// ---------------------------------------------------------------------------------------------
// File: one FileHeader, then blocks, each a BlockHeader and `stored_bytes` bytes.

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;   // sizeof(FileHeader)
  std::uint64_t recording_low;  // random; the same in all pieces of one recording
  std::uint64_t recording_high;
  std::uint32_t reserved;  // 0
  std::uint32_t checksum;  // CRC-32C of the bytes before it
};
static_assert(sizeof(FileHeader) == 40);
inline constexpr char kFileMagic[8] = {'\x89', 'T', 'R', 'A', 'P', 'L', 'O', 'G'};

enum class BlockType : std::uint8_t {
  kMetadata = 1,    // JSON text; later objects add to earlier ones
  kEvents = 2,      // a stretch of one thread's stream
  kCheckpoint = 3,  // no payload: every ordered event below last_sequence stands before this block
  kEnd = 4,         // JSON text: totals. The last block of a finished log
};

inline constexpr std::uint8_t kBlockCompressed = 1;  // payload is one zstd frame

struct BlockHeader {
  std::uint32_t magic;
  BlockType type;
  std::uint8_t flags;
  std::uint16_t reserved;      // 0
  std::uint32_t stored_bytes;  // payload in the file
  std::uint32_t raw_bytes;     // payload after decompression
  ThreadId thread;             // kEvents; else 0
  std::uint32_t events;        // kEvents: number of events
  std::uint32_t chunk;         // kEvents: number of the chunk in its thread's stream, from 0
  std::uint32_t offset;        // kEvents: place in the chunk; at 0 the coding state is fresh
  Sequence base_sequence;      // kEvents: number before the first event (state of the coding)
  Sequence first_sequence;     // kEvents: of the first event
  Sequence last_sequence;      // kEvents: of the last event; kCheckpoint: see there
  std::uint64_t time_ns;       // nanoseconds since the recording began, when the block was written
  std::uint32_t payload_checksum;  // CRC-32C of the stored payload
  std::uint32_t header_checksum;   // CRC-32C of the bytes before it
};
static_assert(sizeof(BlockHeader) == 72);
inline constexpr std::uint32_t kBlockMagic = 0x4b4c4254;  // "TBLK"

// Bounds that a reader enforces before it allocates anything.
inline constexpr std::uint32_t kMaxChunkBytes = 1U << 20;      // raw bytes of a chunk of events
inline constexpr std::uint32_t kMaxMetadataBytes = 16U << 20;  // raw bytes of a metadata block

// ---------------------------------------------------------------------------------------------
// Records inside a chunk. The coding state is a table of kSites event templates, the address and
// the instruction of the latest long record, and the latest sequence number.
//
//   token   16 bits: slot 0..9, address code 10..12, sequence code 13..14, long form 15
//   gap     0, 0, 1 or 4 bytes: sequence number minus the one before
//   address 0..8 bytes: zigzag difference, in a short record from the template's latest address,
//           in a long one from that of the latest long record
//   a long record goes on with: kind (KindByte), flags, then as LEB128 what the flags name
//   value   only after accesses with kHasValue: min(size, 8) bytes
inline constexpr std::uint32_t kSites = 1024;
inline constexpr std::uint16_t kSlotMask = kSites - 1;
inline constexpr int kAddressCodeShift = 10;
inline constexpr int kSequenceCodeShift = 13;
inline constexpr std::uint16_t kLongForm = 1U << 15;

inline constexpr std::uint8_t kAddressBytes[8] = {0, 1, 2, 3, 4, 5, 6, 8};
enum SequenceCode : std::uint8_t { kGapOne, kGapNone, kGapByte, kGapWord };

inline constexpr std::uint8_t kLongSize = 1;   // size follows, else 0
inline constexpr std::uint8_t kLongStack = 2;  // stack follows, else 0
inline constexpr std::uint8_t kLongAux = 4;    // aux follows, else 0
inline constexpr std::uint8_t kLongOther = 8;  // other follows, else 0
inline constexpr std::uint8_t kLongDefinesSite =
    16;                                            // the slot's template is this event from now on
inline constexpr std::uint8_t kLongHasValue = 32;  // an access with kHasValue

// Kinds that are no events, in the place of an EventKind of a long record.
inline constexpr std::uint8_t kRecordSkip = 30;   // adds a LEB128 number to the sequence
inline constexpr std::uint8_t kRecordStack = 31;  // call stack: id, number of frames, frames
inline constexpr std::uint8_t kEventKinds = static_cast<std::uint8_t>(EventKind::kJoinBegin) + 1;
static_assert(kEventKinds == 31, "the log's event kinds are part of its version");

inline constexpr std::uint8_t kKindMask = 31;
inline constexpr int kOrderShift = 5;

// Kind and memory order in a byte. The kinds from kRecordSkip on, which have no memory order, are
// kRecordSkip with their number from there, beginning with 1, in its place.
inline constexpr std::uint8_t KindByte(EventKind kind, MemoryOrder order) {
  const auto number = static_cast<unsigned>(kind);
  return static_cast<std::uint8_t>(number < kRecordSkip
                                       ? number | static_cast<unsigned>(order) << kOrderShift
                                       : kRecordSkip | (number - kRecordSkip + 1) << kOrderShift);
}
static_assert(kEventKinds - kRecordSkip < 1 << (8 - kOrderShift));
inline constexpr bool IsEvent(std::uint8_t kind_byte) {
  return kind_byte != kRecordSkip && (kind_byte & kKindMask) != kRecordStack;
}

inline constexpr std::uint32_t kMaxStackFrames = 64;
// Longest event record, value included: token 2, gap 4, address 8, kind 1, flags 1, LEB128 of ip
// 10, size 10, stack 5, aux 10, other 5, value 8.
inline constexpr std::uint32_t kMaxEventRecordBytes = 64;
inline constexpr std::uint32_t kMaxStackRecordBytes = 32 + 10 * kMaxStackFrames;
// The coder stores whole 8-byte words: a chunk keeps this much room behind its last record.
inline constexpr std::uint32_t kChunkSlackBytes = 16;

inline constexpr bool HasValue(const Event& event) {
  return (event.flags & kHasValue) != 0 && IsAccess(event.kind);
}
inline constexpr std::uint32_t ValueBytes(std::uint64_t size) {
  return size < 8 ? static_cast<std::uint32_t>(size) : 8;
}

inline constexpr std::uint64_t ZigZag(std::uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
inline constexpr std::uint64_t UnZigZag(std::uint64_t code) {
  return (code >> 1) ^ (0 - (code & 1));
}

}  // namespace trapline
