// What one thread owns while it runs in the code cache: memory at one fixed address below 2 GiB (in
// the guest part of the thread page region, other memory in each page table), reached by absolute
// operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "translator/register_file.h"

namespace trapline {

// A call whose return has not been seen: the caller's frames, for whoever reports an access. Calls
// push, returns pop when they meet their own; what longjmp and its like leave behind is skipped by
// who reads it, since it lies below the stack pointer.
struct ShadowFrame {
  std::uint64_t inverse_slot;    // complement of the address where the return address lies
  std::uint64_t return_address;  // the reader may set the top bit
};

struct CacheThread {
  static constexpr std::size_t kXsaveSize = 12288;
  static constexpr std::size_t kStackSize = 32768;
  static constexpr unsigned kShadowFrames = 4096;
  static constexpr std::uint64_t kFilterCells = 32768;
  static constexpr unsigned kSignatureShift = 47;

  // Offset in filter[i] of the cell of an access: neighbours have neighbouring cells, whatever
  // their size.
  static constexpr std::uint64_t kFilterMask = (kFilterCells - 1) * sizeof(std::uint64_t);
  static constexpr unsigned FilterShift(std::uint32_t size) {
    // Computed, since the agent has no tables.
    const bool is_small_power = size - 1 < 7 && (size & (size - 1)) == 0;
    return is_small_power ? 3 - static_cast<unsigned>(__builtin_ctz(size)) : 0;
  }
  // Of an access's size in `signature`.
  static constexpr unsigned SignatureIndex(std::uint32_t size) {
    const bool is_power = (size & (size - 1)) == 0 && size - 1 < 64;
    return is_power ? static_cast<unsigned>(__builtin_ctz(size)) : 7;
  }
  static constexpr std::uint64_t FilterOffset(std::uint64_t address, std::uint32_t size) {
    return address << FilterShift(size) & kFilterMask;
  }

  // A ring; calls go upwards.
  alignas(65536) ShadowFrame frames[kShadowFrames];
  // Cells for reads and for writes: signature of the access that need not be checked again, plus
  // its address.
  std::uint64_t filter[2][kFilterCells];

  // Program registers that a scratch register of the cache has taken the place of.
  std::uint64_t saved[16];
  std::uint64_t program_rsp;     // while the slow path's stack is in use
  std::uint64_t access_address;  // argument of the slow path
  std::uint64_t target;          // program address an indirect branch goes to
  std::uint64_t jump;            // cache address it was found to have
  std::uint64_t exit_kind;       // ExitKind
  std::uint64_t exit_argument;
  std::uint64_t fs_base;  // the program's; kept by whoever runs the thread
  std::uint64_t gs_base;
  // What a cell of the filter holds for an access of 1 << i bytes that this thread need
  // not check again is signature[i] + address; index 7: other sizes. Signatures are multiples of
  // 1 << kSignatureShift, above all addresses, and differ by epoch and size; 0 is none.
  std::uint64_t signature[8];
  std::uint64_t next_frame;  // where in `frames` the next call's frame goes
  // Not zero: the slow path leaves the cache after the access, by `out` (CodeCache::leave_address).
  std::uint64_t leave_requested;
  // The handler's: so many accesses more, then it sets leave_requested.
  std::int64_t leave_after;
  std::uint64_t lookup;    // cache address where `jump` was last not found at once
  RegisterFile registers;  // in native runs all of them at entry and exit; in full slow calls too
  std::uint64_t host_rsp;
  alignas(64) unsigned char xsave[kXsaveSize];
  alignas(64) unsigned char stack[kStackSize];
};
static_assert(sizeof(ShadowFrame) * CacheThread::kShadowFrames == 65536);  // 16-bit arithmetic

}  // namespace trapline
