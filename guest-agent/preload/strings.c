/* str* and their kin: what the caller reads and writes by them, terminators included, up to the
 * byte that decides the result. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "guest-agent/preload/allocation.h"
#include "guest-agent/preload/runtime.h"

/* -- Lengths, in bytes that are looked at -- */

static size_t Whole(const char* text) { return real.strlen(text) + 1; }

static size_t WholeUpTo(const char* text, size_t limit) {
  size_t length = real.strnlen(text, limit);
  return length < limit ? length + 1 : limit;
}

/* Through the character at `found`; all of it if nothing was found. */
static size_t Through(const char* text, const char* found) {
  return found ? (size_t)(found - text) + 1 : Whole(text);
}

static int Same(char c) { return (unsigned char)c; }
static int Folded(char c) { return tolower((unsigned char)c); }

static size_t Compared(const char* a, const char* b, size_t limit, int (*key)(char)) {
  size_t i = 0;
  while (i < limit && a[i] && key(a[i]) == key(b[i])) ++i;
  return i < limit ? i + 1 : limit;
}

static size_t Smaller(size_t a, size_t b) { return a < b ? a : b; }

/* -- Reading -- */

WRAPPER size_t strlen(const char* text) {
  if (!Ready()) {
    size_t length = 0;
    while (text[length]) ++length;
    return length;
  }
  struct Site site = SITE;
  size_t length = real.strlen(text);
  if (site.agent) Reads(site, text, length + 1);
  return length;
}

WRAPPER size_t strnlen(const char* text, size_t limit) {
  struct Site site = SITE;
  size_t length = real.strnlen(text, limit);
  if (site.agent) Reads(site, text, length < limit ? length + 1 : limit);
  return length;
}

static void ReportCompared(struct Site site, const char* a, const char* b, size_t compared) {
  Reads(site, a, compared);
  Reads(site, b, compared);
}

WRAPPER int strcmp(const char* a, const char* b) {
  if (!Ready()) {
    size_t i = 0;
    while (a[i] && a[i] == b[i]) ++i;
    return (unsigned char)a[i] - (unsigned char)b[i];
  }
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, Compared(a, b, SIZE_MAX, Same));
  return real.strcmp(a, b);
}

WRAPPER int strncmp(const char* a, const char* b, size_t limit) {
  if (!Ready()) {
    size_t i = 0;
    while (i < limit && a[i] && a[i] == b[i]) ++i;
    return i < limit ? (unsigned char)a[i] - (unsigned char)b[i] : 0;
  }
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, Compared(a, b, limit, Same));
  return real.strncmp(a, b, limit);
}

WRAPPER int strcasecmp(const char* a, const char* b) {
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, Compared(a, b, SIZE_MAX, Folded));
  return real.strcasecmp(a, b);
}

WRAPPER int strncasecmp(const char* a, const char* b, size_t limit) {
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, Compared(a, b, limit, Folded));
  return real.strncasecmp(a, b, limit);
}

WRAPPER int strcoll(const char* a, const char* b) {
  struct Site site = SITE;
  if (site.agent) {
    Reads(site, a, Whole(a));
    Reads(site, b, Whole(b));
  }
  return real.strcoll(a, b);
}

WRAPPER char* strchr(const char* text, int c) {
  struct Site site = SITE;
  char* found = real.strchr(text, c);
  if (site.agent) Reads(site, text, Through(text, found));
  return found;
}

WRAPPER char* index(const char* text, int c) {
  struct Site site = SITE;
  char* found = real.strchr(text, c);
  if (site.agent) Reads(site, text, Through(text, found));
  return found;
}

WRAPPER char* strchrnul(const char* text, int c) {
  struct Site site = SITE;
  char* found = real.strchrnul(text, c);
  if (site.agent) Reads(site, text, Through(text, found));
  return found;
}

WRAPPER char* strrchr(const char* text, int c) {
  struct Site site = SITE;
  if (site.agent) Reads(site, text, Whole(text));
  return real.strrchr(text, c);
}

WRAPPER char* rindex(const char* text, int c) {
  struct Site site = SITE;
  if (site.agent) Reads(site, text, Whole(text));
  return real.strrchr(text, c);
}

static void ReportSearched(struct Site site, const char* text, const char* part,
                           const char* found) {
  size_t length = real.strlen(part);
  Reads(site, text, found ? (size_t)(found - text) + length : Whole(text));
  Reads(site, part, length + 1);
}

WRAPPER char* strstr(const char* text, const char* part) {
  struct Site site = SITE;
  char* found = real.strstr(text, part);
  if (site.agent) ReportSearched(site, text, part, found);
  return found;
}

WRAPPER char* strcasestr(const char* text, const char* part) {
  struct Site site = SITE;
  char* found = real.strcasestr(text, part);
  if (site.agent) ReportSearched(site, text, part, found);
  return found;
}

WRAPPER size_t strspn(const char* text, const char* set) {
  struct Site site = SITE;
  size_t length = real.strspn(text, set);
  if (site.agent) {
    Reads(site, text, length + 1);
    Reads(site, set, Whole(set));
  }
  return length;
}

WRAPPER size_t strcspn(const char* text, const char* set) {
  struct Site site = SITE;
  size_t length = real.strcspn(text, set);
  if (site.agent) {
    Reads(site, text, length + 1);
    Reads(site, set, Whole(set));
  }
  return length;
}

WRAPPER char* strpbrk(const char* text, const char* set) {
  struct Site site = SITE;
  char* found = real.strpbrk(text, set);
  if (site.agent) {
    Reads(site, text, Through(text, found));
    Reads(site, set, Whole(set));
  }
  return found;
}

/* -- Copying -- */

static size_t ReportCopied(struct Site site, char* to, const char* from, size_t size) {
  Reads(site, from, size);
  Writes(site, to, size);
  return size;
}

/* strncpy fills up to the limit. */
static void ReportFilled(struct Site site, char* to, const char* from, size_t limit) {
  Reads(site, from, WholeUpTo(from, limit));
  Writes(site, to, limit);
}

static void ReportAppended(struct Site site, char* to, const char* from, size_t limit) {
  size_t length = real.strlen(to);
  size_t appended = real.strnlen(from, limit);
  Reads(site, to, length + 1);
  Reads(site, from, WholeUpTo(from, limit));
  Writes(site, to + length, appended + 1);
}

WRAPPER char* strcpy(char* restrict to, const char* restrict from) {
  struct Site site = SITE;
  if (site.agent) ReportCopied(site, to, from, Whole(from));
  return real.strcpy(to, from);
}

WRAPPER char* stpcpy(char* restrict to, const char* restrict from) {
  struct Site site = SITE;
  if (site.agent) ReportCopied(site, to, from, Whole(from));
  return real.stpcpy(to, from);
}

WRAPPER char* strncpy(char* restrict to, const char* restrict from, size_t limit) {
  struct Site site = SITE;
  if (site.agent) ReportFilled(site, to, from, limit);
  return real.strncpy(to, from, limit);
}

WRAPPER char* stpncpy(char* restrict to, const char* restrict from, size_t limit) {
  struct Site site = SITE;
  if (site.agent) ReportFilled(site, to, from, limit);
  return real.stpncpy(to, from, limit);
}

WRAPPER char* strcat(char* restrict to, const char* restrict from) {
  struct Site site = SITE;
  if (site.agent) ReportAppended(site, to, from, SIZE_MAX);
  return real.strcat(to, from);
}

WRAPPER char* strncat(char* restrict to, const char* restrict from, size_t limit) {
  struct Site site = SITE;
  if (site.agent) ReportAppended(site, to, from, limit);
  return real.strncat(to, from, limit);
}

/* The checked variants end the program before they write beyond `capacity`. */
WRAPPER char* __strcpy_chk(char* restrict to, const char* restrict from, size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportCopied(site, to, from, Smaller(Whole(from), capacity));
  return real.__strcpy_chk(to, from, capacity);
}

WRAPPER char* __stpcpy_chk(char* restrict to, const char* restrict from, size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportCopied(site, to, from, Smaller(Whole(from), capacity));
  return real.__stpcpy_chk(to, from, capacity);
}

WRAPPER char* __strncpy_chk(char* restrict to, const char* restrict from, size_t limit,
                            size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportFilled(site, to, from, Smaller(limit, capacity));
  return real.__strncpy_chk(to, from, limit, capacity);
}

WRAPPER char* __stpncpy_chk(char* restrict to, const char* restrict from, size_t limit,
                            size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportFilled(site, to, from, Smaller(limit, capacity));
  return real.__stpncpy_chk(to, from, limit, capacity);
}

WRAPPER char* __strcat_chk(char* restrict to, const char* restrict from, size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportAppended(site, to, from, SIZE_MAX);
  return real.__strcat_chk(to, from, capacity);
}

WRAPPER char* __strncat_chk(char* restrict to, const char* restrict from, size_t limit,
                            size_t capacity) {
  struct Site site = SITE;
  if (site.agent) ReportAppended(site, to, from, limit);
  return real.__strncat_chk(to, from, limit, capacity);
}

/* The copy is a fresh block: nobody else can know it yet. */
#define DUPLICATE(text, looked_at, duplicate)            \
  struct Site site = SITE;                               \
  if (site.agent) Reads(site, text, looked_at);          \
  struct Allocation outer = BeginAllocation(CALLER);     \
  char* copy = (duplicate);                              \
  size_t size = runtime.agent && copy ? Whole(copy) : 0; \
  EndAllocation(outer, copy, size, CALLER);              \
  return copy

WRAPPER char* strdup(const char* text) { DUPLICATE(text, Whole(text), real.strdup(text)); }

WRAPPER char* __strdup(const char* text) { DUPLICATE(text, Whole(text), real.strdup(text)); }

WRAPPER char* strndup(const char* text, size_t limit) {
  DUPLICATE(text, WholeUpTo(text, limit), real.strndup(text, limit));
}

/* -- Splitting -- */

WRAPPER char* strtok(char* restrict text, const char* restrict delimiters) {
  struct Site site = SITE;
  char* token = real.strtok(text, delimiters);
  if (site.agent) {
    Reads(site, delimiters, Whole(delimiters));
    if (token) Reads(site, token, Whole(token));
  }
  return token;
}

WRAPPER char* strtok_r(char* restrict text, const char* restrict delimiters, char** restrict rest) {
  struct Site site = SITE;
  const char* begin = text ? text : *rest;
  char* token = real.strtok_r(text, delimiters, rest);
  if (site.agent) {
    Reads(site, delimiters, Whole(delimiters));
    const char* end = token ? token + real.strlen(token) : *rest;
    if (begin) Reads(site, begin, (size_t)(end - begin) + 1);
    /* At the end of the text there is no delimiter to replace. */
    if (token && *rest != end) Writes(site, end, 1);
  }
  return token;
}

WRAPPER char* strsep(char** restrict rest, const char* restrict delimiters) {
  struct Site site = SITE;
  char* token = real.strsep(rest, delimiters);
  if (site.agent && token) {
    size_t size = Whole(token);
    Reads(site, delimiters, Whole(delimiters));
    Reads(site, token, size);
    if (*rest) Writes(site, token + size - 1, 1);
  }
  return token;
}

/* -- Numbers: through the first character that is no longer part of it. -- */

#define CONVERT(type, name)                                           \
  WRAPPER type name(const char* restrict text, char** restrict end) { \
    struct Site site = SITE;                                          \
    char* stopped = (char*)text;                                      \
    type value = real.name(text, &stopped);                           \
    if (site.agent) Reads(site, text, (size_t)(stopped - text) + 1);  \
    if (end) *end = stopped;                                          \
    return value;                                                     \
  }

#define CONVERT_INTEGER(type, name)                                             \
  WRAPPER type name(const char* restrict text, char** restrict end, int base) { \
    struct Site site = SITE;                                                    \
    char* stopped = (char*)text;                                                \
    type value = real.name(text, &stopped, base);                               \
    if (site.agent) Reads(site, text, (size_t)(stopped - text) + 1);            \
    if (end) *end = stopped;                                                    \
    return value;                                                               \
  }

#define CONVERT_WHOLE(type, name, convert)                           \
  WRAPPER type name(const char* text) {                              \
    struct Site site = SITE;                                         \
    char* stopped = (char*)text;                                     \
    type value = (type)convert;                                      \
    if (site.agent) Reads(site, text, (size_t)(stopped - text) + 1); \
    return value;                                                    \
  }

CONVERT(double, strtod)
CONVERT(float, strtof)
CONVERT(long double, strtold)
CONVERT_INTEGER(long, strtol)
CONVERT_INTEGER(unsigned long, strtoul)
CONVERT_INTEGER(long long, strtoll)
CONVERT_INTEGER(unsigned long long, strtoull)
CONVERT_WHOLE(int, atoi, real.strtol(text, &stopped, 10))
CONVERT_WHOLE(long, atol, real.strtol(text, &stopped, 10))
CONVERT_WHOLE(long long, atoll, real.strtoll(text, &stopped, 10))
CONVERT_WHOLE(double, atof, real.strtod(text, &stopped))
