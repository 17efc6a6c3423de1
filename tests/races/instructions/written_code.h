// Two threads by turns write code, and run it: what runs is what was written last.
#ifndef TRAPLINE_TESTS_RACES_INSTRUCTIONS_WRITTEN_CODE_H_
#define TRAPLINE_TESTS_RACES_INSTRUCTIONS_WRITTEN_CODE_H_

#include <string.h>
#include <sys/mman.h>

#include "race.h"

enum { kRounds = 300, kCodeSize = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char* executable;

// Puts the code where `executable` shows it.
static void WriteCode(unsigned char* code, int round);

static void* Run(void* argument) {
  for (int round = 0; round < kRounds; round++) {
    unsigned char code[kCodeSize] = {0xb8, (unsigned char)round, (unsigned char)(round >> 8), 0, 0,
                                     0xc3};  // mov $round,%eax; ret
    Check(pthread_mutex_lock(&mutex) == 0);
    WriteCode(code, round);
    int (*function)(void);
    memcpy(&function, &executable, sizeof function);
    Check(function() == round);
    Check(pthread_mutex_unlock(&mutex) == 0);
  }
  return argument;
}

#endif  // TRAPLINE_TESTS_RACES_INSTRUCTIONS_WRITTEN_CODE_H_
