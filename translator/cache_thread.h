// What one thread owns while it runs in the code cache: memory at one fixed address below 2 GiB (in
// the guest part of the thread page region, other memory in each page table), reached by absolute
// operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "translator/memory_access.h"

namespace trapline {

struct CacheThread {
  static constexpr std::size_t kXsaveSize = 12288;
  static constexpr std::size_t kStackSize = 32768;

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
  // The filter: cell = plane[kind] + (address & ~7), and what it holds for an access of 1 << i
  // bytes that this thread need not check again is signature[i] + address. Multiples of 64 plus 8 *
  // i; 0 matches nothing. Index 7: other sizes.
  std::uint64_t plane[2];  // 0: reads, 1: writes
  std::uint64_t signature[8];
  RegisterFile registers;  // in native runs all of them at entry and exit; in full slow calls too
  std::uint64_t host_rsp;
  alignas(64) unsigned char xsave[kXsaveSize];
  alignas(64) unsigned char stack[kStackSize];
};

}  // namespace trapline
