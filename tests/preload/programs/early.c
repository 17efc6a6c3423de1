/* Prints what early_library.c did before main, and that it left no trace. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int early_answer(void);
const char* early_story(void);

int main(void) {
  int at_start = errno;
  const char* error = dlerror();
  printf("errno %d, dlerror %s\n", at_start, error ? error : "none");
  printf("%d %s\n", early_answer(), early_story());
  return 0;
}
