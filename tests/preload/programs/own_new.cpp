// Replaces operator new and delete, but not the array and nothrow forms, which must end up here.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

namespace {
int allocated = 0;
int released = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocated;
  if (size > (std::size_t{1} << 40)) throw std::bad_alloc();
  return std::malloc(size);
}

void operator delete(void* block) noexcept {
  ++released;
  std::free(block);
}

void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

int main() {
  delete new int(1);
  delete[] new int[10];
  operator delete(operator new(5, std::nothrow), std::nothrow);
  std::printf("%d %d\n", allocated, released);
  volatile std::size_t huge = std::size_t{1} << 50;
  try {
    std::printf("%p\n", operator new(huge));
  } catch (const std::bad_alloc&) {
    std::puts("bad_alloc");
  }
  std::set_new_handler([] {
    std::puts("handler");
    std::set_new_handler(nullptr);
  });
  std::printf("%d\n", operator new[](huge, std::nothrow) == nullptr);
  return 0;
}
