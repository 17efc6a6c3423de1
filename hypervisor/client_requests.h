// Valgrind's client requests (valgrind.h, helgrind.h, drd.h): what programs tell a tool by an
// instruction sequence that does nothing on a processor (docs/synchronisation.md).
//
// When code is mapped, the last instruction of each sequence becomes a breakpoint, so that the
// thread comes to the monitor there. Nothing else of the program changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace trapline {

// Puts breakpoints into the sequences in [start, end): code of the program in a private mapping
// with host protection `protection` (PROT_ bits) that no thread runs yet. Reads all of it once.
// What cannot be read or changed is left alone.
void ArmClientRequests(std::uint64_t start, std::uint64_t end, int protection);

// Whether a breakpoint that left `rip` behind is one of ours.
bool IsClientRequest(std::uint64_t rip);

// The requests of one thread. Not thread-safe.
class ClientRequests {
 public:
  // As TRAPLINE_* event (events.h).
  using Sink = std::function<void(std::uint64_t kind, std::uint64_t address, std::uint64_t size)>;

  // Tells what the request whose six words lie at `words` means. Unknown ones mean nothing, and
  // every request keeps its default answer: programs behave as without a tool.
  void Handle(std::uint64_t words, const Sink& sink);

 private:
  std::vector<std::uint64_t> written_;  // annotated locks the thread holds for writing
};

}  // namespace trapline
