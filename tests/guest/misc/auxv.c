#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "guest.h"

extern const char __ehdr_start[] __attribute__((weak));

int main(int argc, char** argv, char** environment) {
  (void)argc;
  Fact(getauxval(AT_PAGESZ) == kPage, "AT_PAGESZ");
  const unsigned char* random = (const unsigned char*)getauxval(AT_RANDOM);
  unsigned sum = 0;
  for (int i = 0; random != NULL && i < 16; ++i) sum |= random[i];
  Fact(sum != 0, "AT_RANDOM: 16 bytes, not all zero");
  const char* name = (const char*)getauxval(AT_EXECFN);
  Fact(name != NULL && strcmp(name, argv[0]) == 0, "AT_EXECFN is the program's path");
  const ElfW(Phdr)* headers = (const ElfW(Phdr)*)getauxval(AT_PHDR);
  Fact(headers != NULL && getauxval(AT_PHENT) == sizeof(ElfW(Phdr)), "AT_PHENT");
  uintptr_t bias = (uintptr_t)__ehdr_start;
  bool entry_in_code = false;
  bool text_in_code = false;
  for (unsigned long i = 0; i < getauxval(AT_PHNUM); ++i) {
    if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0) bias -= headers[i].p_vaddr;
  }
  for (unsigned long i = 0; i < getauxval(AT_PHNUM); ++i) {
    if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X)) continue;
    const uintptr_t low = bias + headers[i].p_vaddr;
    entry_in_code = entry_in_code ||
                    (getauxval(AT_ENTRY) >= low && getauxval(AT_ENTRY) < low + headers[i].p_memsz);
    text_in_code =
        text_in_code || ((uintptr_t)main >= low && (uintptr_t)main < low + headers[i].p_memsz);
  }
  Fact(entry_in_code, "AT_ENTRY lies in the code");
  Fact(text_in_code, "main lies in the code AT_PHDR tells of");
  Fact((uintptr_t)headers ==
           (uintptr_t)__ehdr_start + ((const ElfW(Ehdr)*)(const void*)__ehdr_start)->e_phoff,
       "AT_PHDR is the program's header table");
  Fact(getauxval(AT_UID) == getuid() && getauxval(AT_EUID) == geteuid() &&
           getauxval(AT_GID) == getgid() && getauxval(AT_EGID) == getegid(),
       "AT_UID and the like");
  Fact(getauxval(AT_SECURE) == 0, "AT_SECURE");
  Fact(getauxval(AT_CLKTCK) == (unsigned long)sysconf(_SC_CLK_TCK), "AT_CLKTCK");
  Fact(getauxval(AT_PLATFORM) != 0 && strcmp((const char*)getauxval(AT_PLATFORM), "x86_64") == 0,
       "AT_PLATFORM");
  Fact(getauxval(AT_FLAGS) == 0, "AT_FLAGS");
  char local;
  Fact((uintptr_t)name > (uintptr_t)&local && (char*)environment > &local &&
           (uintptr_t)argv % 8 == 0,
       "all above the stack pointer");
  const unsigned long minimum = getauxval(51);  // AT_MINSIGSTKSZ
  Fact(minimum == 0 || (minimum >= 512 && minimum < 65536), "AT_MINSIGSTKSZ makes sense");
  return Done();
}
