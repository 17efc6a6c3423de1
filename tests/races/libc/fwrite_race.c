// fwrite reads the buffer it is given, fread and fgets write theirs.
// RACE read-write global:sent write store
// RACE write-write global:received read store_received
// RACE write-write global:line gets store_line
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char sent[8], received[8], line[8];

static void* Streams(void* argument) {
  char memory[16] = "";
  FILE* const stream = fmemopen(memory, sizeof memory, "w+");
  fwrite(sent, 1, 4, stream);  // [write]
  fputs("xyz\n", stream);
  rewind(stream);
  Check(fread(received, 1, 4, stream) == 4);        // [read]
  Check(fgets(line, sizeof line, stream) != NULL);  // [gets]
  fclose(stream);
  return argument;
}

static void* Stores(void* argument) {
  sent[1] = 'a';      // [store]
  received[1] = 'a';  // [store_received]
  line[1] = 'a';      // [store_line]
  return argument;
}

int main(void) {
  strcpy(sent, "abc");
  RunTwo(Streams, Stores);
  return Done();
}
