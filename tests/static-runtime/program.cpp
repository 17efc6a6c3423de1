// A statically linked program whose functions have all sorts of names.
#include <pthread.h>
#include <semaphore.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

__attribute__((noinline)) int LocalFunction(int value) { return value * 3 + std::rand(); }

struct Derived : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

// Names the C library could have.
extern "C" {
__attribute__((noinline)) int __looks_reserved(int value) { return LocalFunction(value) + 1; }
__attribute__((noinline)) int _IO_of_mine(int value) { return __looks_reserved(value) + 2; }
__attribute__((noinline)) int index_of_mine(int value) { return _IO_of_mine(value) + 3; }
}

template <typename T>
__attribute__((noinline)) T TemplateFunction(T value) {
  std::vector<T> values(static_cast<std::size_t>(LocalFunction(1) % 7 + 1), value);
  return values.back();
}

static void* Start(void* mutex) {
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
  pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
  return nullptr;
}

int main(int argc, char** argv) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread;
  pthread_create(&thread, nullptr, Start, &mutex);
  pthread_join(thread, nullptr);
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  sem_wait(&semaphore);
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_rdlock(&rwlock);
  pthread_rwlock_unlock(&rwlock);
  std::thread([] { std::puts("thread"); }).join();
  try {
    throw Derived(argv[0]);
  } catch (const std::exception& error) {
    std::printf("%s %d\n", error.what(), index_of_mine(argc));
  }
  char* const copy = strdup(argv[0]);
  std::printf("%zu %f\n", std::strlen(copy), TemplateFunction(1.5 * argc));
  std::free(copy);
  return 0;
}
