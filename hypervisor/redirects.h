// The monitor's side of redirects (guest-agent/redirect.h): which there are, whether page faults go
// by way of their gate (docs/monitor.md, "Redirects").
#pragma once

#include <cstdint>
#include <span>

#include "guest-agent/redirect.h"
#include "hypervisor/machine.h"
#include "hypervisor/observer.h"

namespace trapline {

// When page faults go by way of the gate that redirects.
enum class RedirectRule : std::uint8_t {
  kNever,
  kWherePaying,  // while most faults are, or would be, redirected
  kAlways,       // from the first redirect on; for tests
};

// Of a process with a code cache. Thread-safe where the mutex, GuestCodeCache's, is not named.
class Redirects {
 public:
  Redirects(Machine& machine, RedirectRule rule);

  // Changes when redirects become invalid.
  std::uint64_t version() const { return __atomic_load_n(&memory_.version, __ATOMIC_SEQ_CST); }

  // With the mutex held: forgets all; those to come lead to code of that generation. When this
  // returns, who takes one of those forgotten has said so in RedirectState::entered.
  void Clear(std::uint64_t generation);

  // With the mutex held: native code that faults at `rip`, with these frames on its stack,
  // innermost first, goes on at `cached`. `version`: as it was before `cached` was found; if it has
  // changed since, nothing happens, and neither does where there is no room.
  void Add(std::uint64_t version, std::uint64_t rip, std::uint64_t rsp, std::uint64_t cached,
           std::span<const CallFrame> frames);

  // With the mutex held: the monitor has been told of a page fault, or a thread was redirected
  // without it. Now and then the gate is opened or closed.
  void CountFault();
  void CountRedirect();

  // What a thread met by way of the redirect at that address was no page that others use, or the
  // redirect could not be taken.
  void CountMisled(std::uint64_t by);

 private:
  using Memory = agent::RedirectMemory;
  static bool Has(const agent::Redirect& redirect, std::uint64_t rsp,
                  std::span<const CallFrame> frames);
  void OpenGate(bool open);

  Machine& machine_;
  const RedirectRule rule_;
  Memory& memory_ = agent::Redirects();
  std::size_t frames_used_ = 0;
  unsigned refused_ = 0;  // for want of room, since Clear
  // Of the last page faults; how many of them were redirected, or would have been.
  std::uint32_t faults_ = 0, led_ = 0;
  bool open_ = false;
};

}  // namespace trapline
