// Destructors reset the table pointer that another thread's virtual call reads.
// ONE-OF read-write - a b
// ONE-OF read-write - a d
// MAY-MISS shared: each place runs once
#include <new>
#include <thread>

#include "race.h"

struct Base {
  virtual void Call() { Use(1); }
  virtual ~Base() { Escape(this); }  // [d]
};

struct Derived : Base {
  void Call() override { Use(2); }
  ~Derived() override { Escape(this); }  // [b]
};

alignas(Derived) char storage[sizeof(Derived)];

int main() {
  Base* object = new (storage) Derived;
  std::thread caller([object] {
    object->Call();  // [a]
  });
  object->~Base();
  caller.join();
  return Done();
}
