// The last owner of an object finds out by one load of both of its counts, of which another thread
// has changed the second one; without debug info, too.
// CLEAN
// BUILD O0 O2 gcc-O2-nodebug clang-O2-nodebug stripped
// TAGS fast
#include <memory>
#include <thread>

#include "race.h"

int main() {
  auto object = std::make_shared<long>(1);
  std::thread observer([weak = std::weak_ptr<long>(object)]() mutable { weak.reset(); });
  usleep(Opaque(2000));
  object.reset();
  observer.join();
  return Done();
}
