#include "hypervisor/agent_code.h"

#include "guest-agent/agent.h"
#include "guest-agent/repeats.h"

namespace trapline {

bool IsAt(std::uint64_t rip, std::uint64_t out_instruction) {
  return rip == out_instruction || rip == out_instruction + agent::kOutLength;
}

bool IsAt(std::uint64_t rip, const char* out_instruction) {
  return IsAt(rip, agent::GuestAddressOf(out_instruction));
}

bool IsInSlowPath(std::uint64_t rip) {
  return (rip >= agent::GuestAddressOf(trapline_agent_cache_access) &&
          rip <= agent::GuestAddressOf(trapline_agent_cache_many) + agent::kOutLength) ||
         rip - TRAPLINE_AGENT_REPEATS < agent::RepeatsSize();
}

bool IsInFutexCall(std::uint64_t rip) {
  return rip >= agent::GuestAddressOf(trapline_agent_futex) &&
         rip <= agent::GuestAddressOf(trapline_agent_futex_leave);
}

bool IsInFutexAnswer(std::uint64_t rip) {
  return rip >= agent::GuestAddressOf(trapline_agent_futex_answer) &&
         rip <= agent::GuestAddressOf(trapline_agent_futex_answered);
}

bool IsInRedirect(std::uint64_t rip) {
  return rip >= agent::GuestAddressOf(trapline_agent_redirect) &&
         rip < agent::GuestAddressOf(trapline_agent_redirect_end);
}

bool RestartsEvent(std::uint64_t rip) {
  return rip >= agent::GuestAddressOf(trapline_agent_event) &&
         rip < agent::GuestAddressOf(trapline_agent_event_held) &&
         (rip <= agent::GuestAddressOf(trapline_agent_event_commit) ||
          rip >= agent::GuestAddressOf(trapline_agent_event_full));
}

std::optional<unsigned> SlotOf(std::uint64_t rip) {
  const std::uint64_t first = agent::GuestAddressOf(trapline_agent_exceptions);
  if (rip < first || rip >= first + TRAPLINE_VECTORS * TRAPLINE_SLOT_SIZE) return std::nullopt;
  return static_cast<unsigned>((rip - first) / TRAPLINE_SLOT_SIZE);
}

}  // namespace trapline
