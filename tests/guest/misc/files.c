#include <dirent.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "guest.h"

int main(void) {
  char directory[] = "/tmp/guest-XXXXXX";
  Fact(mkdtemp(directory) != NULL && chdir(directory) == 0, "a directory to work in");
  int fd = open("one", O_RDWR | O_CREAT | O_EXCL, 0640);
  Fact(fd >= 0 && open("one", O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST, "created once");
  struct iovec parts[3] = {{(char*)"scat", 4}, {(char*)"", 0}, {(char*)"tered", 5}};
  Fact(writev(fd, parts, 3) == 9 && lseek(fd, -5, SEEK_END) == 4, "writev and lseek");
  char text[64] = "";
  Fact(read(fd, text, sizeof(text)) == 5 && strcmp(text, "tered") == 0, "read");
  Fact(rename("one", "two") == 0 && access("one", F_OK) == -1 && access("two", R_OK) == 0,
       "rename");
  Fact(link("two", "three") == 0 && symlink("two", "four") == 0, "links");
  struct stat status;
  Fact(fstat(fd, &status) == 0 && status.st_nlink == 2 && status.st_size == 9 &&
           (status.st_mode & 0777) == 0640,
       "fstat");
  Fact(lstat("four", &status) == 0 && S_ISLNK(status.st_mode) &&
           readlink("four", text, sizeof(text)) == 3,
       "symlink");
  const int copy = open("five", O_RDWR | O_CREAT, 0600);
  off_t offset = 0;
  Fact(sendfile(copy, fd, &offset, 9) == 9, "sendfile");
  DIR* listing = opendir(".");
  int entries = 0;
  for (struct dirent* entry; listing != NULL && (entry = readdir(listing)) != NULL;)
    entries += entry->d_name[0] != '.';
  Fact(entries == 4, "four files");
  if (listing != NULL) closedir(listing);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  Fact(fcntl(fd, F_SETLK, &lock) == 0, "locked");
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(fd, F_SETLK, &lock) == -1 && errno == EAGAIN ? 0 : 1);
  Fact(Reap(child) == 0, "locked for a child");
  Fact(unlink("two") == 0 && unlink("three") == 0 && unlink("four") == 0 && unlink("five") == 0,
       "removed");
  Fact(chdir("/") == 0 && rmdir(directory) == 0, "and the directory");
  FILE* stream = tmpfile();
  Fact(stream != NULL && fprintf(stream, "%d %s\n", 42, "text") == 8, "stdio");
  rewind(stream);
  int number = 0;
  Fact(fscanf(stream, "%d %63s", &number, text) == 2 && number == 42 && strcmp(text, "text") == 0,
       "and back");
  fclose(stream);
  return Done();
}
