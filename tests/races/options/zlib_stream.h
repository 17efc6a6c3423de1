// zlib without its headers: a stream to uncompress, as its version 1 has it.
#ifndef TRAPLINE_TESTS_RACES_OPTIONS_ZLIB_STREAM_H_
#define TRAPLINE_TESTS_RACES_OPTIONS_ZLIB_STREAM_H_

#include "race.h"

int inflateInit_(void* stream, const char* version, int size);
int inflateReset(void* stream);

static void* MakeStream(void) {
  const int size = 112;
  void* const stream = calloc(1, size);
  Check(stream != NULL && inflateInit_(stream, "1", size) == 0);
  return stream;
}

#endif  // TRAPLINE_TESTS_RACES_OPTIONS_ZLIB_STREAM_H_
