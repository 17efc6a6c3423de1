/* mem* and their kin: what the caller reads and writes by them. Up to the byte that decides the
 * result, where there is one.
 *
 * Other libraries may call these before the loader has relocated this one (in the resolvers of
 * their own indirect functions): then plain loops do the work. */
#include <string.h>
#include <strings.h>

#include "guest-agent/preload/runtime.h"

static void* CopyForwards(char* to, const char* from, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = from[i];
  return to;
}

static void* CopyBackwards(char* to, const char* from, size_t size) {
  for (size_t i = size; i-- > 0;) to[i] = from[i];
  return to;
}

static void* Fill(char* to, char value, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = value;
  return to;
}

/* Bytes that memcmp looks at: up to the first difference. */
static size_t Compared(const char* a, const char* b, size_t size) {
  size_t i = 0;
  while (i < size && a[i] == b[i]) ++i;
  return i < size ? i + 1 : size;
}

static int Compare(const unsigned char* a, const unsigned char* b, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return a[i] - b[i];
  return 0;
}

#define COPIES(to, from, size)     \
  do {                             \
    struct Site site = SITE;       \
    if (site.agent) {              \
      Reads(site, (from), (size)); \
      Writes(site, (to), (size));  \
    }                              \
  } while (0)

/* memmove's work is right for both: binaries older than glibc 2.14 rely on it for memcpy. */
WRAPPER void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  if (!Ready()) return CopyForwards(to, from, size);
  COPIES(to, from, size);
  return real.memmove(to, from, size);
}

WRAPPER void* memmove(void* to, const void* from, size_t size) {
  if (!Ready())
    return (uint64_t)to < (uint64_t)from ? CopyForwards(to, from, size)
                                         : CopyBackwards(to, from, size);
  COPIES(to, from, size);
  return real.memmove(to, from, size);
}

WRAPPER void* mempcpy(void* restrict to, const void* restrict from, size_t size) {
  if (!Ready()) return (char*)CopyForwards(to, from, size) + size;
  COPIES(to, from, size);
  return real.mempcpy(to, from, size);
}

WRAPPER void bcopy(const void* from, void* to, size_t size) {
  Ready();
  COPIES(to, from, size);
  real.memmove(to, from, size);
}

WRAPPER void* __memcpy_chk(void* restrict to, const void* restrict from, size_t size,
                           size_t capacity) {
  Ready();
  COPIES(to, from, size < capacity ? size : capacity);
  return real.__memcpy_chk(to, from, size, capacity);
}

WRAPPER void* __memmove_chk(void* to, const void* from, size_t size, size_t capacity) {
  Ready();
  COPIES(to, from, size < capacity ? size : capacity);
  return real.__memmove_chk(to, from, size, capacity);
}

WRAPPER void* __mempcpy_chk(void* restrict to, const void* restrict from, size_t size,
                            size_t capacity) {
  Ready();
  COPIES(to, from, size < capacity ? size : capacity);
  return real.__mempcpy_chk(to, from, size, capacity);
}

WRAPPER void* memset(void* to, int value, size_t size) {
  if (!Ready()) return Fill(to, (char)value, size);
  struct Site site = SITE;
  if (site.agent) Writes(site, to, size);
  return real.memset(to, value, size);
}

WRAPPER void* __memset_chk(void* to, int value, size_t size, size_t capacity) {
  struct Site site = SITE;
  if (site.agent) Writes(site, to, size < capacity ? size : capacity);
  return real.__memset_chk(to, value, size, capacity);
}

WRAPPER void bzero(void* to, size_t size) {
  struct Site site = SITE;
  if (site.agent) Writes(site, to, size);
  real.memset(to, 0, size);
}

WRAPPER void explicit_bzero(void* to, size_t size) {
  struct Site site = SITE;
  if (site.agent) Writes(site, to, size);
  real.explicit_bzero(to, size);
}

static void ReportCompared(struct Site site, const void* a, const void* b, size_t size) {
  size_t compared = Compared(a, b, size);
  Reads(site, a, compared);
  Reads(site, b, compared);
}

WRAPPER int memcmp(const void* a, const void* b, size_t size) {
  if (!Ready()) return Compare(a, b, size);
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, size);
  return real.memcmp(a, b, size);
}

WRAPPER int bcmp(const void* a, const void* b, size_t size) {
  struct Site site = SITE;
  if (site.agent) ReportCompared(site, a, b, size);
  return real.memcmp(a, b, size);
}

/* Bytes from `begin` to `found`, both included; `otherwise` if nothing was found. */
static size_t Through(const void* begin, const void* found, size_t otherwise) {
  return found ? (size_t)((const char*)found - (const char*)begin) + 1 : otherwise;
}

WRAPPER void* memchr(const void* block, int value, size_t size) {
  struct Site site = SITE;
  void* found = real.memchr(block, value, size);
  if (site.agent) Reads(site, block, Through(block, found, size));
  return found;
}

WRAPPER void* memrchr(const void* block, int value, size_t size) {
  struct Site site = SITE;
  const char* found = real.memrchr(block, value, size);
  if (site.agent) {
    const char* lowest = found ? found : block;
    Reads(site, lowest, (size_t)((const char*)block + size - lowest));
  }
  return (void*)found;
}

WRAPPER void* rawmemchr(const void* block, int value) {
  struct Site site = SITE;
  void* found = real.rawmemchr(block, value);
  if (site.agent) Reads(site, block, Through(block, found, 0));
  return found;
}

WRAPPER void* memccpy(void* restrict to, const void* restrict from, int value, size_t size) {
  struct Site site = SITE;
  if (site.agent) {
    size_t copied = Through(from, real.memchr(from, value, size), size);
    Reads(site, from, copied);
    Writes(site, to, copied);
  }
  return real.memccpy(to, from, value, size);
}

WRAPPER void* memmem(const void* block, size_t size, const void* part, size_t part_size) {
  struct Site site = SITE;
  void* found = real.memmem(block, size, part, part_size);
  if (site.agent) {
    size_t before = found ? (size_t)((const char*)found - (const char*)block) : 0;
    Reads(site, block, found ? before + part_size : size);
    Reads(site, part, part_size);
  }
  return found;
}
