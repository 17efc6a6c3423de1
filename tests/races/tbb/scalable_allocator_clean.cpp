// Blocks of oneTBB's allocator that one thread gives back and another one gets.
// CLEAN
// NEEDS tbb
// LINK -ltbbmalloc -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <tbb/concurrent_queue.h>
#include <tbb/parallel_for.h>
#include <tbb/scalable_allocator.h>

#include <vector>

#include "tbb_race.h"

int main() {
  tbb::concurrent_queue<long*> queue;
  InArena([&] {
    tbb::parallel_for(0, 400, [&](int i) {
      std::vector<int, tbb::scalable_allocator<int>> own(i % 7 + 1, i);
      Check(own.back() == i);
      auto* const block = static_cast<long*>(scalable_malloc(48));
      block[0] = block[5] = i;
      queue.push(block);
      if (long* other = nullptr; queue.try_pop(other)) {
        other[1] = other[0];
        scalable_free(other);
      }
    });
  });
  for (long* left = nullptr; queue.try_pop(left);) scalable_free(left);
  return Done();
}
