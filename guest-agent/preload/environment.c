/* The monitor puts this library's name in front of LD_PRELOAD. Once loaded, it takes the name out
 * again, so that the program sees the environment it was given, and so do the programs it starts.
 */
#include <stdlib.h>
#include <string.h>

#include "guest-agent/preload/runtime.h"

extern char** environ;

__attribute__((constructor)) static void RestoreEnvironment(void) {
  static const char variable[] = "LD_PRELOAD=";
  static const char name[] = "libtrapline-preload.so";
  Initialise();
  if (runtime.agent == NULL || environ == NULL) return;
  for (char** entry = environ; *entry != NULL; ++entry) {
    if (strncmp(*entry, variable, sizeof variable - 1) != 0) continue;
    char* value = *entry + sizeof variable - 1;
    char* end = strchr(value, ':');
    const size_t length = end != NULL ? (size_t)(end - value) : strlen(value);
    if (length < sizeof name - 1 ||
        strncmp(value + length - (sizeof name - 1), name, sizeof name - 1) != 0) {
      return;
    }
    if (end != NULL) {
      memmove(value, end + 1, strlen(end + 1) + 1);
    } else {
      for (char** rest = entry; *rest != NULL; ++rest) rest[0] = rest[1];
    }
    return;
  }
}
