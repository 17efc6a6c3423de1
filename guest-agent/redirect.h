// Redirects: where native code that meets a shared page goes on in the code cache, found by #PF's
// gate without leaving the guest (trapline_agent_redirect in agent.S; docs/monitor.md,
// "Redirects"). Ring 3 is not told the address that faulted: the instruction decides. The call
// stack, which accesses in the cache are told with, was found by the monitor when it last led the
// thread from there into the cache; it is the same stack if the same return addresses lie in the
// same places.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest-agent/layout.h"

namespace trapline::agent {

struct RedirectFrame {
  std::uint64_t offset;  // of where the return address lies, from the stack pointer
  std::uint64_t return_address;
};

// Written by the monitor, but for `hits`. The first word last, and only where it was 0 since
// `version` changed last.
struct Redirect {
  std::uint64_t rip;           // of the program's instruction; 0: none
  std::uint32_t cached;        // where it goes on; 0: by leaving the guest
  std::uint32_t frames;        // address of its RedirectFrames, the innermost one's first
  std::uint32_t frame_count;   // at most kMostFrames
  std::uint32_t hits, misled;  // how often it was taken; how often to no shared page
};

// At TRAPLINE_REDIRECTS.
struct RedirectMemory {
  static constexpr unsigned kSets = 1 << TRAPLINE_REDIRECT_SET_BITS;
  static constexpr unsigned kWays = TRAPLINE_REDIRECT_WAYS;
  static constexpr std::uint32_t kMostFrames = 64;
  static constexpr std::size_t kFrames = 24000;

  // Changes when redirects become invalid. A thread that has found one and then still finds the
  // version with which it began to look may take it.
  std::uint64_t version;
  std::uint64_t generation;     // of the code that they lead to
  std::uint64_t reads_fs_base;  // whether ring 3 can do that, and so can have changed it
  alignas(128) Redirect sets[kSets][kWays];
  // A thread that is told a wrong count meanwhile reads past the last one.
  RedirectFrame frames[kFrames + kMostFrames];

  static unsigned SetOf(std::uint64_t rip) { return (rip ^ rip >> 10) & (kSets - 1); }
};

static_assert(offsetof(RedirectMemory, version) == 0);
static_assert(offsetof(RedirectMemory, generation) ==
              TRAPLINE_REDIRECT_GENERATION - TRAPLINE_REDIRECTS);
static_assert(offsetof(RedirectMemory, reads_fs_base) ==
              TRAPLINE_REDIRECT_READS_FS_BASE - TRAPLINE_REDIRECTS);
static_assert(offsetof(RedirectMemory, sets) == TRAPLINE_REDIRECT_SETS - TRAPLINE_REDIRECTS);
static_assert(sizeof(RedirectMemory::sets[0]) == 1 << TRAPLINE_REDIRECT_SET_SIZE_BITS);
static_assert(TRAPLINE_REDIRECT_SETS % sizeof(RedirectMemory::sets[0]) == 0);
static_assert(sizeof(Redirect) == TRAPLINE_REDIRECT_SIZE);
static_assert(offsetof(Redirect, cached) == TRAPLINE_REDIRECT_CACHED);
static_assert(offsetof(Redirect, frames) == TRAPLINE_REDIRECT_FRAMES);
static_assert(offsetof(Redirect, frame_count) == TRAPLINE_REDIRECT_FRAME_COUNT);
static_assert(offsetof(Redirect, hits) == TRAPLINE_REDIRECT_HITS);
static_assert(sizeof(RedirectFrame) == 16);
static_assert(TRAPLINE_REDIRECTS + sizeof(RedirectMemory) <= TRAPLINE_REDIRECTS_END);

inline RedirectMemory& Redirects() {
  return *reinterpret_cast<RedirectMemory*>(TRAPLINE_REDIRECTS);
}

}  // namespace trapline::agent
