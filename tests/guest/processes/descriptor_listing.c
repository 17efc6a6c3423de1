// /proc/self/fd shows the program's own descriptors and no others.
#include <dirent.h>

#include "guest.h"

int main(void) {
  const int file = open("/dev/null", O_RDONLY);
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) return 1;
  bool only_own = true;
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    ++count;
    const int fd = atoi(entry->d_name);
    only_own = only_own && (fd <= 2 || fd == file || fd == dirfd(directory));
  }
  closedir(directory);
  Fact(only_own, "0, 1, 2 and what the program opened");
  Fact(count == 5, "five of them");
  return Done();
}
