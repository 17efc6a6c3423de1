/* Does to itself what the first argument names. Every outcome is the kernel's and the processor's
 * business alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER_END 0x7ffffffff000ul

static void report(const char* what, long result) {
  printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

static void* sleeper(void* unused) {
  for (;;) pause();
  return unused;
}

static void* spinner(void* unused) {
  for (volatile long i = 0;; i++) {
  }
  return unused;
}

static long in_thread(pthread_attr_t* attributes, void* (*function)(void*)) {
  pthread_t thread;
  errno = pthread_create(&thread, attributes, function, 0);
  return errno ? -1 : 0;
}

static void* leaves_last(void* unused) {
  usleep(100000);
  puts("the last thread");
  exit(5);
  return unused;
}

static void on_signal(int number) {
  if (write(1, "handled\n", 8) != 8) _exit(9);
  _exit(number);
}

/* Calls no system call that ends, stops or replaces the process, creates one, changes the machine,
 * or is known to differ (rseq is refused under the monitor). */
static int is_spared(int number) {
  static const int spared[] = {SYS_rt_sigreturn,
                               SYS_pause,
                               SYS_fork,
                               SYS_vfork,
                               SYS_exit,
                               SYS_exit_group,
                               SYS_vhangup,
                               SYS_sync,
                               SYS_reboot,
                               SYS_rseq,
                               SYS_msgget,  // these three leave objects behind for the next run
                               SYS_semget,
                               SYS_shmget,
                               SYS_swapoff,
                               SYS_swapon,
                               SYS_acct,
                               SYS_clone,
                               SYS_clone3,
                               SYS_kexec_load,
                               SYS_init_module,
                               SYS_delete_module,
                               SYS_setsid,
                               SYS_umask,
                               SYS_personality,
                               SYS_io_uring_setup,
                               SYS_userfaultfd,
                               SYS_sched_yield,
                               SYS_restart_syscall,
                               SYS_bpf,
                               SYS_perf_event_open,
                               335,
                               336 /* the kernel's probes: SIGILL */};
  for (size_t i = 0; i < sizeof spared / sizeof *spared; i++)
    if (spared[i] == number) return 1;
  return 0;
}

static void sweep(void) {
  for (int number = 0; number < 700; number++) {
    if (is_spared(number)) continue;
    errno = 0;
    long result = syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
    printf("%d %s\n", number, result == -1 ? strerror(errno) : "ok");
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  long page = sysconf(_SC_PAGESIZE);
  setvbuf(stdout, 0, _IONBF, 0);
  puts("started");
#define IS(name) (strcmp(what, name) == 0)
  if (IS("ud2")) __asm__ volatile("ud2");
  if (IS("hlt")) __asm__ volatile("hlt");
  if (IS("jump-null")) ((void (*)(void))0)();
  if (IS("noncanonical")) *(volatile char*)(1ul << 62) = 1;
  if (IS("bad-stack")) __asm__ volatile("mov $0x1000, %%rsp; push %%rax" ::: "memory");
  if (IS("munmap-all")) return (int)syscall(SYS_munmap, 0, USER_END);
  if (IS("munmap-stack")) {
    unsigned long here = (unsigned long)&page & -page;
    return (int)syscall(SYS_munmap, here - 64 * page, 200 * page);
  }
  if (IS("munmap-libc"))
    return (int)syscall(SYS_munmap, (unsigned long)&printf & ~0xffffful, 1l << 21);
  if (IS("mprotect-all")) {
    for (unsigned long at = (unsigned long)&main & -page;; at += page)
      syscall(SYS_mprotect, at, page, PROT_NONE);
  }
  if (IS("mprotect-code"))
    return (int)syscall(SYS_mprotect, (unsigned long)&main & -page, page, PROT_READ);
  if (IS("map-over-all"))
    return (int)syscall(SYS_mmap, 0x10000, USER_END - 0x20000, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (IS("huge-mmap")) {
    for (int bits = 36; bits < 64; bits++) {
      void* p = mmap(0, 1ul << bits, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (bits < 45 || bits > 46)
        printf("%d bits: %s\n", bits, p == MAP_FAILED ? strerror(errno) : "ok");
      if (p != MAP_FAILED) munmap(p, 1ul << bits);
    }
  }
  if (IS("huge-mmap-touch")) {
    unsigned long size = 1ul << 42;
    char* p =
        mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 1;
    for (unsigned long at = 0; at < size; at += size / 64) p[at] = 1;
    puts("touched");
    report("munmap", munmap(p, size));
  }
  if (IS("negative-mmap")) {
    report("length 0", (long)mmap(0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    report("length -1", (long)mmap(0, -1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    report("kernel half", (long)mmap((void*)0xffff800000000000, page, PROT_READ,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    report("mirror half", (long)mmap((void*)0x8000000000000000, page, PROT_READ,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    report("address 1",
           (long)mmap((void*)1, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    report("last page", (long)mmap((void*)USER_END, page, PROT_READ,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    report("wrong flags", (long)mmap(0, page, PROT_READ, 0, -1, 0));
    report("offset", (long)mmap(0, page, PROT_READ, MAP_PRIVATE, 0, 1));
    report("munmap odd", munmap((void*)1, page));
    report("munmap wraps", munmap((void*)(-page * 2), page * 4));
    report("mprotect hole", mprotect((void*)0x10000, page, PROT_READ));
    report("mremap hole", (long)mremap((void*)0x10000, page, 2 * page, MREMAP_MAYMOVE));
    report("madvise hole", madvise((void*)0x10000, page, MADV_DONTNEED));
    report("madvise odd", madvise((void*)0x10001, page, MADV_DONTNEED));
  }
  if (IS("wild-pointers")) {
    unsigned long wild[] = {0,         1,         0x1000,    USER_END - 1,       USER_END,
                            1ul << 47, 1ul << 50, 1ul << 63, 0xffff800000000000, -4096ul,
                            -1ul};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
      report("write", syscall(SYS_write, 1, wild[i], 10));
      report("read", syscall(SYS_read, 0, wild[i], 10));
      report("open", syscall(SYS_open, wild[i], 0));
      report("sigaction", syscall(SYS_rt_sigaction, SIGUSR1, wild[i], wild[i], 8) * (wild[i] != 0));
      report("sigprocmask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, wild[i], 0, 8) * (wild[i] != 0));
      report("sigaltstack", syscall(SYS_sigaltstack, wild[i], wild[i]) * (wild[i] != 0));
      report("clock_gettime", syscall(SYS_clock_gettime, 0, wild[i]));
      report("futex", syscall(SYS_futex, wild[i], 0, 5, 0, 0, 0));
      report("execve", syscall(SYS_execve, wild[i], wild[i], wild[i]));
      report("clone3", syscall(SYS_clone3, wild[i], 88));
      report("uname", syscall(SYS_uname, wild[i]));
      report("nanosleep", syscall(SYS_nanosleep, wild[i], 0));
    }
  }
  if (IS("signal-bad-stack")) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    stack_t stack = {.ss_sp = (void*)0x10000, .ss_size = 65536};
    report("sigaltstack", sigaltstack(&stack, 0));
    *(volatile char*)8 = 1;
  }
  if (IS("exit-in-thread-leader")) {
    in_thread(0, leaves_last);
    pthread_exit(0);
  }
  if (IS("robust-list-wild")) {
    report("set_robust_list", syscall(SYS_set_robust_list, 0x10, 24));
    report("set_tid_address", syscall(SYS_set_tid_address, 0x20));
    syscall(SYS_exit, 3);
  }
  if (IS("kill-self-9")) kill(getpid(), SIGKILL);
  if (IS("stop-deep")) {
    pid_t child = fork();
    if (child == 0) {
      raise(SIGSTOP);
      _exit(6);
    }
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    printf("stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    printf("ended %d\n", WEXITSTATUS(status));
  }
  if (IS("close-all")) {
    syscall(SYS_close_range, 3, ~0u, 0);
    for (int fd = 3; fd < 70000; fd++) close(fd);
    pid_t child = fork();
    if (child == 0) _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    report("thread", in_thread(0, sleeper));
    printf("child %d, next descriptor %d\n", WEXITSTATUS(status), dup(1));
  }
  if (IS("rlimit-as")) {
    struct rlimit limit = {1l << 20, 1l << 20};
    report("setrlimit", setrlimit(RLIMIT_AS, &limit));
    report("mmap", (long)mmap(0, 1 << 24, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    report("thread", in_thread(0, sleeper));
  }
  if (IS("sigreturn-garbage")) {
    static char garbage[4096];
    memset(garbage, 0x5a, sizeof garbage);
    __asm__ volatile("lea %0, %%rsp; add $1024, %%rsp; mov $15, %%eax; syscall"
                     :
                     : "m"(garbage)
                     : "memory");
  }
  if (IS("read-into-readonly")) {
    int pipes[2];
    if (pipe(pipes) || write(pipes[1], "x", 1) != 1) return 1;
    report("read", read(pipes[0], (void*)((unsigned long)&main & -page), 1));
  }
  if (IS("syscall-sweep")) sweep();
  if (IS("allocate")) {
    long blocks = 0;
    for (char* p; (p = malloc(16 << 20)); blocks++) memset(p, 1, 4096);
    printf("malloc failed in the end: %s\n",
           blocks > 5 && errno == ENOMEM ? "ENOMEM" : "too early");
    return 3;
  }
  if (IS("threads")) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    int created = 0;
    while (created < 1200 && in_thread(&attributes, sleeper) == 0) created++;
    printf("created %d, then %s\n", created, created < 1200 ? strerror(errno) : "stopped asking");
    return 0;
  }
  if (IS("spin-threads")) {
    for (int i = 0; i < 3; i++) in_thread(0, i ? sleeper : spinner);
    spinner(0);
  }
  return 0;
}
