// Programs choose their code by what the processor has: the same as natively.
#include <cpuid.h>

#include "guest.h"

static bool Has(unsigned leaf, int which, unsigned bit) {
  unsigned words[4] = {0};
  if (!__get_cpuid_count(leaf, 0, &words[0], &words[1], &words[2], &words[3])) return false;
  return (words[which] >> bit & 1) != 0;
}

int main(void) {
  static const struct {
    const char* name;
    unsigned leaf;
    int word;  // eax, ebx, ecx, edx
    unsigned bit;
  } kFeatures[] = {{"pclmulqdq", 1, 2, 1}, {"fma", 1, 2, 12},          {"sse4.2", 1, 2, 20},
                   {"movbe", 1, 2, 22},    {"popcnt", 1, 2, 23},       {"aes", 1, 2, 25},
                   {"xsave", 1, 2, 26},    {"osxsave", 1, 2, 27},      {"avx", 1, 2, 28},
                   {"f16c", 1, 2, 29},     {"rdrand", 1, 2, 30},       {"bmi1", 7, 1, 3},
                   {"avx2", 7, 1, 5},      {"bmi2", 7, 1, 8},          {"avx512f", 7, 1, 16},
                   {"adx", 7, 1, 19},      {"lzcnt", 0x80000001, 2, 5}};
  for (size_t i = 0; i < sizeof(kFeatures) / sizeof(kFeatures[0]); ++i) {
    const bool has = Has(kFeatures[i].leaf, kFeatures[i].word, kFeatures[i].bit);
    Fact(true, "%s %s", has ? "has" : "has no", kFeatures[i].name);
  }
  // AMX, which no program is offered under the monitor, needs a permission natively.
  enum { kFirst = 2, kTiles = 17 };
  unsigned eax, ebx, ecx, edx, room, size = 576;  // x87 and SSE
  __cpuid_count(0xd, 0, eax, room, ecx, edx);
  for (unsigned i = kFirst; i < kTiles; ++i) {
    if ((eax >> i & 1) == 0) continue;
    unsigned bytes, offset;
    __cpuid_count(0xd, i, bytes, offset, ecx, edx);
    if (offset + bytes > size) size = offset + bytes;
  }
  Fact(room >= size, "room for %u bytes of vector state", size);
  __cpuid_count(7, 0, eax, ebx, ecx, edx);
  Fact((edx >> 24 & 1) == 0 || syscall(SYS_arch_prctl, 0x1023, kTiles + 1) == 0,
       "what is said to have AMX may use it");
  char brand[49] = {0};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* words = (unsigned*)(void*)(brand + 16 * i);
    __cpuid(0x80000002 + i, words[0], words[1], words[2], words[3]);
  }
  Fact(true, "a processor called %s", brand);
  Fact(true, "a first-level data cache of %ld bytes in lines of %ld",
       sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL1_DCACHE_LINESIZE));
  return Done();
}
