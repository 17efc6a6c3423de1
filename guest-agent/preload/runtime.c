#include "guest-agent/preload/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct Runtime runtime;
struct RealFunctions real;

/* For the library's tests: reports go to `agent` from now on, to nobody if it is null. Not for
 * programs: the monitor finds nothing through it. */
WRAPPER void trapline_preload_set_interface(const struct trapline_agent_interface* agent);

struct Function {
  const char* name;
  const char* version; /* null: the default one */
  size_t offset;       /* of its pointer in struct RealFunctions */
};

#define ENTRY(name, ...) {#name, NULL, offsetof(struct RealFunctions, name)},
#define ENTRY_VERSION(name, version) {#name, version, offsetof(struct RealFunctions, name)},
static const struct Function kLibc[] = {
    ALLOCATOR_FUNCTIONS(ENTRY, ENTRY_VERSION) THREAD_FUNCTIONS(ENTRY, ENTRY_VERSION)
        SYNCHRONISATION_FUNCTIONS(ENTRY, ENTRY_VERSION) MEMORY_FUNCTIONS(ENTRY, ENTRY_VERSION)
            STRING_FUNCTIONS(ENTRY, ENTRY_VERSION) STREAM_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kCxx[] = {CXX_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kLibcxx[] = {LIBCXX_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kGomp[] = {GOMP_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kKmp[] = {KMP_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kMimalloc[] = {MIMALLOC_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kJemalloc[] = {JEMALLOC_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kPrefixedJemalloc[] = {
    PREFIXED_JEMALLOC_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kTcmalloc[] = {TCMALLOC_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kOpenmpAllocator[] = {
    OPENMP_ALLOCATOR_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kKmpAllocator[] = {KMP_ALLOCATOR_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kAnnotations[] = {ANNOTATION_FUNCTIONS(ENTRY, ENTRY_VERSION)};
static const struct Function kTsan[] = {TSAN_FUNCTIONS(ENTRY, ENTRY_VERSION)};
#undef ENTRY
#undef ENTRY_VERSION

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Those of libraries. */
static const struct Group {
  const struct Function* functions;
  size_t count;
} kLibraries[] = {{kLibc, COUNT(kLibc)},
                  {kCxx, COUNT(kCxx)},
                  {kLibcxx, COUNT(kLibcxx)},
                  {kGomp, COUNT(kGomp)},
                  {kKmp, COUNT(kKmp)},
                  {kMimalloc, COUNT(kMimalloc)},
                  {kJemalloc, COUNT(kJemalloc)},
                  {kPrefixedJemalloc, COUNT(kPrefixedJemalloc)},
                  {kTcmalloc, COUNT(kTcmalloc)},
                  {kOpenmpAllocator, COUNT(kOpenmpAllocator)},
                  {kKmpAllocator, COUNT(kKmpAllocator)}};

/* dlsym, which this library stands in front of itself. */
static void* (*NextLookUp(void))(void*, const char*) {
  static void* (*next)(void*, const char*);
  if (!next) {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!found) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    *(void**)&next = found;
  }
  return next;
}

static void* LookUp(void* handle, const char* name) { return NextLookUp()(handle, name); }

void* FindNext(const char* name, const char* version) {
  void* found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
  return found ? found : LookUp(RTLD_NEXT, name);
}

static void** PointerOf(const struct Function* function) {
  return (void**)((char*)&real + function->offset);
}

static void FindAll(const struct Function* functions, size_t count) {
  for (size_t i = 0; i < count; ++i)
    *PointerOf(&functions[i]) = FindNext(functions[i].name, functions[i].version);
}

/* A lookup that fails costs microseconds, and most programs lack whole groups. */
static void FindGroup(const struct Function* functions, size_t count) {
  void* first = FindNext(functions[0].name, functions[0].version);
  if (first) FindAll(functions, count);
}

/* Before the library is relocated its references to other libraries lead nowhere. This pointer
 * is the one to tell: it holds the address only once the relocations have been applied. */
static const void* const volatile relocated_marker = &runtime;

static int IsRelocated(void) { return relocated_marker == &runtime; }

static int SameLibrary(const void* first, const void* second) {
  Dl_info of_first;
  Dl_info of_second;
  return dladdr(first, &of_first) && dladdr(second, &of_second) &&
         of_first.dli_fbase == of_second.dli_fbase;
}

/* Sanitizers' libraries define most of what is asked for here, but not this one. */
static int IsLibc(const void* address) {
  const char* (*of_libc)(void) = gnu_get_libc_version;
  return SameLibrary(address, *(void**)&of_libc);
}

struct Extent {
  uint64_t begin, end;
};

/* Of a library that lies at `bias`. */
static struct Extent ExtentOf(uint64_t bias, const ElfW(Phdr) * headers, size_t count) {
  struct Extent extent = {UINT64_MAX, 0};
  for (size_t i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_LOAD) continue;
    uint64_t begin = bias + headers[i].p_vaddr;
    uint64_t end = begin + headers[i].p_memsz;
    if (begin < extent.begin) extent.begin = begin;
    if (end > extent.end) extent.end = end;
  }
  return extent;
}

/* Widens *argument, which starts as some address twice, to the whole library around it. */
static int FindExtent(struct dl_phdr_info* library, size_t size, void* argument) {
  (void)size;
  struct Extent* found = argument;
  struct Extent extent = ExtentOf(library->dlpi_addr, library->dlpi_phdr, library->dlpi_phnum);
  if (found->begin < extent.begin || found->begin >= extent.end) return 0;
  *found = extent;
  return 1;
}

static int NameContains(const char* path, const char* part) {
  const char* name = path;
  for (; *path; ++path)
    if (*path == '/') name = path + 1;
  for (; *name; ++name) {
    size_t i = 0;
    while (part[i] && name[i] == part[i]) ++i;
    if (!part[i]) return 1;
  }
  return 0;
}

/* An allocator by its own library, such as libjemalloc or libtcmalloc; not a library of the program
 * that happens to define malloc among other things. */
static void FindAllocator(void) {
  void* allocate = *(void**)&real.malloc;
  runtime.allocator_is_libc = IsLibc(allocate);
  Dl_info info;
  if (runtime.allocator_is_libc || !dladdr(allocate, &info) || !info.dli_fname ||
      !NameContains(info.dli_fname, "malloc"))
    return;
  struct Extent extent = {(uint64_t)allocate, (uint64_t)allocate};
  dl_iterate_phdr(FindExtent, &extent);
  runtime.allocator_begin = extent.begin;
  runtime.allocator_size = extent.end - extent.begin;
}

/* By its own headers: a sanitizer that is not ready yet may stand before dl_iterate_phdr. */
static struct Extent ExtentAt(uint64_t base) {
  const ElfW(Ehdr)* header = (const ElfW(Ehdr)*)base;
  return ExtentOf(base, (const ElfW(Phdr)*)(base + header->e_phoff), header->e_phnum);
}

static void FindLoader(void) {
  uint64_t base = getauxval(AT_BASE);
  if (base == 0) return;
  struct Extent extent = ExtentAt(base);
  runtime.loader_begin = extent.begin;
  runtime.loader_size = extent.end - extent.begin;
}

static void FindSelf(void) {
  Dl_info info;
  if (!dladdr(&runtime, &info)) return;
  struct Extent extent = ExtentAt((uint64_t)info.dli_fbase);
  runtime.own_begin = extent.begin;
  runtime.own_size = extent.end - extent.begin;
}

static const Agent* FindAgent(void) {
  int saved_errno = errno;
  const Agent* agent = (const Agent*)getauxval(TRAPLINE_AT_AGENT);
  errno = saved_errno;
  if (!agent || agent->version != TRAPLINE_AGENT_INTERFACE_VERSION || agent->size < sizeof(Agent))
    return NULL;
  return agent;
}

void Initialise(void) {
  if (runtime.state != kRuntimeUnused || !IsRelocated()) return;
  runtime.state = kRuntimeInitialising;
  int saved_errno = errno;
  FindAll(kLibc, COUNT(kLibc));
  for (size_t i = 1; i < COUNT(kLibraries); ++i)
    FindGroup(kLibraries[i].functions, kLibraries[i].count);
  FindGroup(kAnnotations, COUNT(kAnnotations));
  FindGroup(kTsan, COUNT(kTsan));
  FindAllocator();
  FindLoader();
  FindSelf();
  runtime.c11_is_libc = IsLibc(*(void**)&real.thrd_create) && IsLibc(*(void**)&real.mtx_lock);
  runtime.agent = FindAgent();
  if (runtime.agent) RegisterInitialThread();
  errno = saved_errno;
  runtime.state = kRuntimeReady;
}

/* What was not found is no error of the program's. A look-up that succeeds takes the message back;
 * dlerror would first write it out in the program's heap. */
static void ForgetErrors(void) { LookUp(RTLD_NEXT, "malloc"); }

/* Initialise itself may run too early for messages: they are translated. */
__attribute__((constructor)) static void InitialiseAtStart(int argument_count, char** arguments,
                                                           char** environment) {
  (void)argument_count;
  (void)arguments;
  Initialise();
  ForgetErrors();
  if (FindAgent()) RestoreEnvironment(environment);
}

void trapline_preload_set_interface(const struct trapline_agent_interface* agent) {
  Initialise();
  runtime.agent = agent;
  if (agent) RegisterInitialThread();
}

static void* FindIn(const char* library, const char* name, const char* version) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return NULL;
  void* found = version ? dlvsym(handle, name, version) : NULL;
  if (!found) found = LookUp(handle, name);
  /* Kept open once something was found: the pointer must stay good. */
  if (found && !SameLibrary(found, &runtime)) return found;
  dlclose(handle);
  return NULL;
}

void* FindLate(const char* name, const char* version, uint64_t caller) {
  static const char* const kRuntimeLibraries[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1",
                                                  "libgomp.so.1", "libomp.so.5"};
  int saved_errno = errno;
  void* found = FindNext(name, version);
  Dl_info info;
  if (!found && dladdr((const void*)caller, &info) && info.dli_fname)
    found = FindIn(info.dli_fname, name, version);
  for (size_t i = 0; !found && i < COUNT(kRuntimeLibraries); ++i)
    found = FindIn(kRuntimeLibraries[i], name, version);
  ForgetErrors();
  errno = saved_errno;
  return found;
}

static void Complain(const char* text) {
  size_t length = 0;
  while (text[length]) ++length;
  if (write(STDERR_FILENO, text, length) < 0) return;
}

void* FindLateOrDie(const char* name, const char* version, uint64_t caller) {
  void* found = FindLate(name, version, caller);
  if (found) return found;
  Dl_info info;
  Complain(dladdr((const void*)caller, &info) && info.dli_fname ? info.dli_fname : "program");
  Complain(": symbol lookup error: undefined symbol: ");
  Complain(name);
  Complain(" (no loaded library other than libtrapline-preload.so defines it)\n");
  _exit(127);
}

/* Whether `address` is a function that this library stands in front of, by name. */
static int IsStoodInFrontOf(const void* address) {
  for (size_t group = 0; group < COUNT(kLibraries); ++group) {
    for (size_t i = 0; i < kLibraries[group].count; ++i)
      if (*PointerOf(&kLibraries[group].functions[i]) == address) return 1;
  }
  return 0;
}

/* Who looks a function up in a library of its choice (Free Pascal does for all of pthreads) gets
 * the one in front of it, too. But for a barrier: tests of race detectors look it up so to hide it,
 * for it is to let accesses meet and not to order them (GCC's tsan_barrier.h). The pseudo-handles
 * depend on who calls: that is who called this, since nothing is left to do here. */
WRAPPER void* dlsym(void* restrict handle, const char* restrict name) {
  if (!IsRelocated()) return NULL;
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !runtime.agent)
    return NextLookUp()(handle, name);
  void* const found = LookUp(handle, name);
  if (!found || found == *(void**)&real.pthread_barrier_wait || !IsStoodInFrontOf(found))
    return found;
  Dl_info own;
  void* const self = dladdr(&runtime, &own) ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  void* const in_front = self ? LookUp(self, name) : NULL;
  if (self) dlclose(self);
  if (in_front && SameLibrary(in_front, &runtime)) return in_front;
  ForgetErrors();
  return found;
}
