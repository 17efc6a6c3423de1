// Where in the agent's code (guest-agent/agent.S) an instruction pointer is: what a thread that was
// interrupted there has done, and has still to do.
#pragma once

#include <cstdint>
#include <optional>

namespace trapline {

// At the `out` instruction, or right behind it: whether RIP is past it at the exit differs by host.
bool IsAt(std::uint64_t rip, std::uint64_t out_instruction);
bool IsAt(std::uint64_t rip, const char* out_instruction);

// In the agent's part of the code cache's slow path, which ends by leaving if that is asked for.
bool IsInSlowPath(std::uint64_t rip);

// In the agent's code for futex calls. Also on the first instruction of its way out: KVM may
// deliver a fault of the code before only there.
bool IsInFutexCall(std::uint64_t rip);
bool IsInFutexAnswer(std::uint64_t rip);

// Inside trapline_agent_event: nothing has happened that could not be done again. A thread that is
// interrupted there starts over. Behind `commit`, and where it holds a lock untold, only `ret` is
// left.
bool RestartsEvent(std::uint64_t rip);

// In #PF's gate to the code cache. A thread that is interrupted there, or faults, starts over.
bool IsInRedirect(std::uint64_t rip);

// The exception slot RIP is in, if it is in one.
std::optional<unsigned> SlotOf(std::uint64_t rip);

}  // namespace trapline
