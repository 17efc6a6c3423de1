// What requests say that the program hands to the kernel by io_uring_enter(2): from which
// descriptors their completions take something, and to which they give something.
//
// Not known: requests that the kernel takes by itself (IORING_SETUP_SQPOLL), rings and files that
// are registered, and rings in the program's own memory (IORING_SETUP_NO_MMAP). Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "hypervisor/system_calls.h"

namespace trapline {

struct UringRequest {
  enum class Kind : std::uint8_t {
    kTakes,    // from `descriptor`, or finds it ready
    kGives,    // to `descriptor`
    kAccepts,  // a connection of the listening `descriptor`
  };
  Kind kind = Kind::kTakes;
  int descriptor = -1;
};

// io_uring_setup has made a ring.
void NoteUring(const SystemCall& call, long result);
// The requests that io_uring_enter is about to hand in.
std::vector<UringRequest> UringRequests(const SystemCall& call);

}  // namespace trapline
