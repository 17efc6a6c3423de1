// Requests as the headers of valgrind's tools compile them: a sequence that does nothing on a
// processor.
#ifndef TRAPLINE_TESTS_RACES_ANNOTATIONS_VALGRIND_REQUESTS_H_
#define TRAPLINE_TESTS_RACES_ANNOTATIONS_VALGRIND_REQUESTS_H_

#include <stdint.h>

enum {
  kRwlockAcquired = 0x48470111,
  kRwlockReleased = 0x48470112,
  kHappensBefore = 0x48470121,
  kHappensAfter = 0x48470122,
  kIgnoreRange = 0x44520002,
  kRecordReads = 0x44520006,
  kRunningOnValgrind = 0x1001,
};

// Returns the answer; 0 without a tool.
__attribute__((unused)) static inline uint64_t Request(uint64_t code, const volatile void* object,
                                                       uint64_t second) {
  volatile uint64_t words[6] = {code, (uint64_t)object, second, 0, 0, 0};
  uint64_t answer = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words)
      : "cc", "memory");
  return answer;
}

#endif  // TRAPLINE_TESTS_RACES_ANNOTATIONS_VALGRIND_REQUESTS_H_
