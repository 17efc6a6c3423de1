/* Trapline's header as C99 sees it; also a program of its own, which runs without the monitor. */
#include "guest-agent/include/trapline/client.h"

int header_c_running(void);
void header_c_report(const void* key);

int header_c_running(void) { return trapline_running(); }
void header_c_report(const void* key) { trapline_happens_before(key); }

#ifdef HEADER_PROGRAM
int main(void) {
  int object = 0;
  header_c_report(&object);
  trapline_ignore_begin(TRAPLINE_READS);
  trapline_ignore_end(TRAPLINE_READS);
  trapline_thread_name("alone");
  return header_c_running();
}
#endif
