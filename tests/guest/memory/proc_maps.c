// /proc/self/maps shows the program's own mappings as they are.
#include "guest.h"

// The line of the mapping that holds the address.
static bool Find(const void* address, char* permissions, char* name) {
  FILE* file = fopen("/proc/self/maps", "re");
  char line[4500];
  bool found = false;
  while (!found && file != NULL && fgets(line, sizeof(line), file) != NULL) {
    uintptr_t low;
    uintptr_t high;
    name[0] = '\0';
    sscanf(line, "%lx-%lx %4s %*s %*s %*s %4095[^\n]", &low, &high, permissions, name);
    found = (uintptr_t)address >= low && (uintptr_t)address < high;
  }
  if (file != NULL) fclose(file);
  return found;
}

static int data = 1;

int main(void) {
  char permissions[8];
  static char name[4096];
  char path[PATH_MAX] = "";
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) return 1;
  Fact(Find((const void*)(uintptr_t)main, permissions, name) && strcmp(permissions, "r-xp") == 0 &&
           strcmp(name, path) == 0,
       "main is in the program's r-xp mapping");
  Fact(
      Find(&data, permissions, name) && strcmp(permissions, "rw-p") == 0 && strcmp(name, path) == 0,
      "data is in the program's rw-p mapping");
  Fact(Find(permissions, permissions, name) && strcmp(permissions, "rw-p") == 0 &&
           strcmp(name, "[stack]") == 0,
       "a local variable is in [stack]");
  char* p = Map(4 * kPage, PROT_READ);
  Fact(Find(p, permissions, name) && strcmp(permissions, "r--p") == 0,
       "a read-only mapping is r--p");
  mprotect(p, kPage, PROT_NONE);
  Fact(Find(p, permissions, name) && strcmp(permissions, "---p") == 0, "---p after mprotect");
  Fact(Find(p + kPage, permissions, name) && strcmp(permissions, "r--p") == 0,
       "the next page still r--p");
  munmap(p, 4 * kPage);
  Fact(!Find(p, permissions, name), "gone after munmap");
  const int fd = memfd_create("named", 0);
  if (ftruncate(fd, kPage) != 0) return 1;
  p = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  Fact(Find(p, permissions, name) && strcmp(permissions, "rw-s") == 0 &&
           strncmp(name, "/memfd:named", 12) == 0,
       "a shared memfd is rw-s with its name");
  void* heap = sbrk(kPage);
  Fact(Find(heap, permissions, name) && strcmp(name, "[heap]") == 0, "the break is in [heap]");
  return Done();
}
