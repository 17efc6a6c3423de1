// `trapline doctor`: can `trapline run` work here, and if not, what to do.
#pragma once

namespace trapline {

// Prints its findings; returns 0 only if `trapline run` can work, else 1.
int Doctor(bool json);

}  // namespace trapline
