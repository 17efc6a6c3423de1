// Code made by the program: functions that return a number.
#ifndef TRAPLINE_TESTS_GUEST_EMIT_H_
#define TRAPLINE_TESTS_GUEST_EMIT_H_

#include "guest.h"

typedef int (*Function)(void);

enum { kFunctionSize = 6 };

static void Emit(unsigned char* at, int value) {
  at[0] = 0xb8;  // mov eax, value; ret
  memcpy(at + 1, &value, 4);
  at[5] = 0xc3;
}

#endif  // TRAPLINE_TESTS_GUEST_EMIT_H_
