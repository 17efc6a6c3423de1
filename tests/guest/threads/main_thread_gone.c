// Once the initial thread has ended, the others can do what they could before.
#include "guest.h"

static void* Increments(void* argument) {
  ++*(int*)argument;
  return NULL;
}

static void AwaitEndOfMain(void) {
  char state = 0;
  while (state != 'Z') {
    FILE* file = fopen("/proc/self/stat", "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
    if (file != NULL) fclose(file);
    if (state == '?') break;
    SleepMs(1);
  }
  Fact(state == 'Z', "the initial thread has ended");
}

static void* Last(void* argument) {
  (void)argument;
  AwaitEndOfMain();

  struct stat status;
  Fact(stat("/etc/passwd", &status) == 0 && status.st_size > 0, "a path is looked up");
  const int file = open("/etc/passwd", O_RDONLY);
  char byte = 0;
  Fact(read(file, &byte, 1) == 1 && byte != 0, "a file is read");
  const char* const view = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, file, 0);
  Fact(view != MAP_FAILED && view[0] == byte, "a file is mapped");
  close(file);
  char directory[PATH_MAX] = "";
  Fact(getcwd(directory, sizeof(directory)) != NULL && directory[0] == '/',
       "there is a current directory");

  int number = 1;
  pthread_t thread;
  Fact(pthread_create(&thread, NULL, Increments, &number) == 0, "a thread is created");
  Fact(pthread_join(thread, NULL) == 0 && number == 2, "it has run");

  const pid_t child = fork();
  if (child == 0) _exit(number == 2 ? 7 : 1);
  int ended = 0;
  Fact(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 7,
       "a child is created, and ends");

  char* const arguments[] = {"sh", "-c", "echo ok another program is executed", NULL};
  const int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
  if (Done() == 0) fexecve(shell, arguments, environ);
  Fact(false, "another program is executed");
  _exit(1);
}

int main(void) {
  Start(Last, NULL);
  syscall(SYS_exit, 3);
  return 1;
}
