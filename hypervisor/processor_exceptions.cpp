#include "hypervisor/processor_exceptions.h"

#include <csignal>
#include <cstring>

namespace trapline {

bool PushesErrorCode(unsigned vector) {
  return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 ||
         vector == 29 || vector == 30;
}

SignalDelivery DescribeException(unsigned vector, std::uint64_t error_code, std::uint64_t rip,
                                 const char* vector_state) {
  SignalDelivery delivery;
  delivery.trap_number = vector;
  delivery.error_code = error_code;
  int signal = SIGSEGV, code = SI_KERNEL;
  std::uint64_t address = 0;
  switch (vector) {
    case 0:
      signal = SIGFPE;
      code = FPE_INTDIV;
      address = rip;
      break;
    case kVectorDebug:
      signal = SIGTRAP;
      code = TRAP_TRACE;
      address = rip;
      break;
    case kVectorBreakpoint:
      signal = SIGTRAP;
      code = SI_KERNEL;
      break;
    case kVectorInvalidOpcode:
      signal = SIGILL;
      code = ILL_ILLOPN;
      address = rip;
      break;
    case 10:
    case 11:
    case kVectorStack:
      signal = SIGBUS;
      code = SI_KERNEL;
      break;
    case 16:
    case 19: {
      // Which arithmetic error: status and control word, or MXCSR, tell (Intel SDM vol. 1, 8.5
      // and 11.5).
      signal = SIGFPE;
      address = rip;
      std::uint32_t flags = 0;
      const char* image = vector_state;
      if (vector == 16) {
        std::uint16_t control = 0, status = 0;
        std::memcpy(&control, image, 2);
        std::memcpy(&status, image + 2, 2);
        flags = static_cast<std::uint32_t>(status & ~control);
      } else {
        std::uint32_t mxcsr = 0;
        std::memcpy(&mxcsr, image + 24, 4);
        flags = ~(mxcsr >> 7) & mxcsr;
      }
      code = (flags & 1) != 0          ? FPE_FLTINV
             : (flags & 4) != 0        ? FPE_FLTDIV
             : (flags & 8) != 0        ? FPE_FLTOVF
             : (flags & (2 | 16)) != 0 ? FPE_FLTUND
             : (flags & 32) != 0       ? FPE_FLTRES
                                       : 0;
      break;
    }
    case 17:
      signal = SIGBUS;
      code = BUS_ADRALN;
      break;
    default:
      break;  // #GP and what the processor may invent: SIGSEGV, SI_KERNEL
  }
  delivery.signal = signal;
  delivery.info.si_signo = signal;
  delivery.info.si_code = code;
  delivery.info.si_addr = reinterpret_cast<void*>(address);
  return delivery;
}

}  // namespace trapline
