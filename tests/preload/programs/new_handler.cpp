// The handler of the C++ library's own operator new runs, allocates, and gives up by an exception.
#include <cstdio>
#include <memory>
#include <new>
#include <string>

int main() {
  static int calls = 0;
  std::set_new_handler([] {
    std::puts(std::make_unique<std::string>(40, 'h')->c_str());
    if (++calls == 3) throw std::bad_alloc();
  });
  volatile std::size_t huge = std::size_t{1} << 60;
  try {
    std::printf("%p\n", operator new(huge));
  } catch (const std::bad_alloc&) {
    std::puts("given up");
  }
  return 0;
}
