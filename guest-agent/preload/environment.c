/* The monitor puts this library's name into the LD_PRELOAD of every program that is executed. Once
 * loaded, it takes the name out again, so that the program sees the environment it was given, and
 * so do the programs it starts. */
#include "guest-agent/preload/runtime.h"

/* The length of the entry at `list`; entries end at a colon or a space. */
static size_t EntryLength(const char* list) {
  size_t length = 0;
  while (list[length] && list[length] != ':' && list[length] != ' ') ++length;
  return length;
}

static int IsThisLibrary(const char* entry, size_t length) {
  static const char kName[] = "libtrapline-preload.so";
  size_t name_length = sizeof(kName) - 1;
  if (length < name_length || (length > name_length && entry[length - name_length - 1] != '/'))
    return 0;
  for (size_t i = 0; i < name_length; ++i)
    if (entry[length - name_length + i] != kName[i]) return 0;
  return 1;
}

/* Takes this library, with the separator behind it, out of a list. Returns whether it was all there
 * was: then there was no such variable before. */
static int RemoveFromList(char* list) {
  size_t length = EntryLength(list);
  if (IsThisLibrary(list, length) && !list[length]) return 1;
  char* to = list;
  for (const char* from = list; *from;) {
    length = EntryLength(from);
    size_t with_separator = from[length] ? length + 1 : length;
    if (!IsThisLibrary(from, length))
      for (size_t i = 0; i < with_separator; ++i) *to++ = from[i];
    from += with_separator;
  }
  *to = 0;
  return 0;
}

void RestoreEnvironment(char** environment) {
  static const char kVariable[] = "LD_PRELOAD=";
  for (char** at = environment; *at; ++at) {
    size_t same = 0;
    while (kVariable[same] && (*at)[same] == kVariable[same]) ++same;
    if (kVariable[same]) continue;
    if (RemoveFromList(*at + same))
      for (; *at; ++at) at[0] = at[1];
    return;
  }
}
