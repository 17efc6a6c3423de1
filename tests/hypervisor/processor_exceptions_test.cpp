// Which signal an exception becomes.
#include "hypervisor/processor_exceptions.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>

namespace trapline {
namespace {

constexpr std::uint64_t kRip = 0x401000;

// The start of an XSAVE image, in which some arithmetic errors have happened, and are not masked.
struct Image {
  std::array<char, 512> bytes{};

  static Image OfX87(std::uint16_t status, std::uint16_t control) {
    Image image;
    std::memcpy(image.bytes.data(), &control, sizeof control);
    std::memcpy(image.bytes.data() + 2, &status, sizeof status);
    return image;
  }
  static Image OfMxcsr(std::uint32_t mxcsr) {
    Image image;
    std::memcpy(image.bytes.data() + 24, &mxcsr, sizeof mxcsr);
    return image;
  }
};

SignalDelivery Describe(unsigned vector, const Image& image = {}) {
  return DescribeException(vector, 0, kRip, image.bytes.data());
}

void ExpectSignal(const SignalDelivery& delivery, int signal, int code, std::uint64_t address) {
  EXPECT_EQ(delivery.signal, signal);
  EXPECT_EQ(delivery.info.si_signo, signal);
  EXPECT_EQ(delivery.info.si_code, code);
  EXPECT_EQ(delivery.info.si_addr, reinterpret_cast<void*>(address));
}

TEST(ProcessorExceptions, BecomeTheSignalsThatLinuxMakesOfThem) {
  ExpectSignal(Describe(0), SIGFPE, FPE_INTDIV, kRip);
  ExpectSignal(Describe(kVectorDebug), SIGTRAP, TRAP_TRACE, kRip);
  ExpectSignal(Describe(kVectorBreakpoint), SIGTRAP, SI_KERNEL, 0);
  ExpectSignal(Describe(6), SIGILL, ILL_ILLOPN, kRip);
  ExpectSignal(Describe(kVectorStack), SIGBUS, SI_KERNEL, 0);
  ExpectSignal(Describe(kVectorProtection), SIGSEGV, SI_KERNEL, 0);
  ExpectSignal(Describe(17), SIGBUS, BUS_ADRALN, 0);
}

TEST(ProcessorExceptions, TellTheirVectorAndErrorCode) {
  const Image image;
  const SignalDelivery delivery =
      DescribeException(kVectorProtection, 0x1234, kRip, image.bytes.data());
  EXPECT_EQ(delivery.trap_number, 13u);
  EXPECT_EQ(delivery.error_code, 0x1234u);
  EXPECT_EQ(delivery.fault_address, 0u);
}

TEST(ProcessorExceptions, X87ErrorsAreThoseThatAreNotMasked) {
  ExpectSignal(Describe(16, Image::OfX87(0x04, 0x00)), SIGFPE, FPE_FLTDIV, kRip);
  ExpectSignal(Describe(16, Image::OfX87(0x05, 0x01)), SIGFPE, FPE_FLTDIV, kRip);
  ExpectSignal(Describe(16, Image::OfX87(0x01, 0x00)), SIGFPE, FPE_FLTINV, kRip);
}

TEST(ProcessorExceptions, VectorErrorsAreThoseThatAreNotMasked) {
  ExpectSignal(Describe(19, Image::OfMxcsr(0x08)), SIGFPE, FPE_FLTOVF, kRip);
  ExpectSignal(Describe(19, Image::OfMxcsr(0x10 | 0x08 | 0x08 << 7)), SIGFPE, FPE_FLTUND, kRip);
  ExpectSignal(Describe(19, Image::OfMxcsr(0x20)), SIGFPE, FPE_FLTRES, kRip);
}

TEST(ProcessorExceptions, SomePushAnErrorCode) {
  for (const unsigned vector : {8u, 10u, 11u, 12u, 13u, 14u, 17u, 21u, 29u, 30u})
    EXPECT_TRUE(PushesErrorCode(vector)) << vector;
  for (const unsigned vector : {0u, 1u, 3u, 6u, 7u, 9u, 15u, 16u, 18u, 19u, 20u, 28u, 31u})
    EXPECT_FALSE(PushesErrorCode(vector)) << vector;
}

}  // namespace
}  // namespace trapline
