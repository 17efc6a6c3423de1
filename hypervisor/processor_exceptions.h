// The processor's exceptions (Intel SDM vol. 3, chapter 6), and the signals that Linux makes of
// them.
#pragma once

#include <cstdint>

#include "hypervisor/signals.h"

namespace trapline {

inline constexpr unsigned kVectorDebug = 1, kVectorBreakpoint = 3, kVectorInvalidOpcode = 6,
                          kVectorStack = 12, kVectorProtection = 13, kVectorPageFault = 14;
// Of a page fault's error code.
inline constexpr std::uint64_t kPresent = 1, kWrite = 2, kUser = 4, kFetch = 16;

bool PushesErrorCode(unsigned vector);

// What a program is sent that has raised an exception, other than a page fault, at `rip`.
// `vector_state`: its XSAVE image, which tells of arithmetic errors.
SignalDelivery DescribeException(unsigned vector, std::uint64_t error_code, std::uint64_t rip,
                                 const char* vector_state);

}  // namespace trapline
