// Small programs on the managed runtime. What each shows stands before it: CLEAN, or the races that
// it has, as pairs of places; they are unordered in every schedule. run.py reads that.
//
//   workloads COLLECTOR REPORTS WORKLOAD...
//
// COLLECTOR: mark-sweep or semispace. REPORTS: lard, or what the runtime leaves out: allmem,
// allsync, noclear, nocopy, noidentity, naive (all but the last one's opposite: everything).
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "runtime.h"

namespace {

using managed::Collector;
using managed::Local;
using managed::Object;
using managed::Reports;
using managed::Runtime;

// WORKLOAD bank: accounts under locks, a lot of garbage, green threads that change carriers.
// CLEAN
void Bank(Runtime& runtime) {
  Local bank(runtime);
  bank.Set(runtime.Allocate(4, 4));
  for (int i = 0; i < 4; ++i) {
    Object* const account = runtime.Allocate(0, 2);
    bank->field[i].object = account;
  }
  const auto teller = [&](unsigned number) {
    Local account(runtime), receipt(runtime);
    for (unsigned i = 0; i < 6; ++i) {
      account.Set(bank->field[(number + i) % 4].object);
      receipt.Set(runtime.Allocate(1, 3));
      receipt->field[1].number = i;
      runtime.Lock(account);
      account->field[0].number += receipt->field[1].number;
      receipt->field[2].number = account->field[0].number;
      runtime.Unlock(account);
      receipt->field[0].object = account.get();
      if (i % 3 == number % 3) runtime.HopTo((number + i) % runtime.carriers());
      if (i == 3 && number % 2 == 0) runtime.Collect();
      receipt->field[2].number++;
    }
  };
  Runtime::FiberId tellers[4];
  for (unsigned i = 0; i < 4; ++i)
    tellers[i] = runtime.Spawn(i % runtime.carriers(), [&, i] { teller(i); });
  for (const Runtime::FiberId fiber : tellers) runtime.Join(fiber);
  std::int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += bank->field[i].object->field[0].number;
  std::printf("bank: %lld\n", static_cast<long long>(sum));
}

// WORKLOAD counter: two threads, one counter, no lock; a collection in between.
// RACE counter-first counter-second
void Counter(Runtime& runtime) {
  Local counter(runtime), garbage(runtime);
  garbage.Set(runtime.Allocate(0, 8));
  counter.Set(runtime.Allocate(0, 1));
  garbage.Set(nullptr);
  const auto first = runtime.Spawn(0, [&] {
    counter->field[0].number = 1;  // [counter-first]
    runtime.NextTurn();
  });
  const auto collector = runtime.Spawn(0, [&] {
    runtime.WaitForTurn(1);
    runtime.Collect();
    runtime.NextTurn();
  });
  const auto second = runtime.Spawn(1, [&] {
    runtime.WaitForTurn(2);
    counter->field[0].number = 2;  // [counter-second]
  });
  runtime.Join(first);
  runtime.Join(collector);
  runtime.Join(second);
}

// WORKLOAD reuse: one thread's objects die, and another one's are made of their memory.
// CLEAN
void Reuse(Runtime& runtime) {
  const auto use = [&](int value) {
    Local object(runtime);
    for (int i = 0; i < 12; ++i) {
      object.Set(runtime.Allocate(0, 10));
      for (int field = 0; field < 10; ++field) object->field[field].number = value;
    }
  };
  const auto first = runtime.Spawn(0, [&] {
    use(1);
    // The copying collector comes back to the same half.
    runtime.Collect();
    runtime.Collect();
    runtime.NextTurn();
  });
  const auto second = runtime.Spawn(1, [&] {
    runtime.WaitForTurn(1);
    use(2);
  });
  runtime.Join(first);
  runtime.Join(second);
}

// WORKLOAD hop: one thread goes from carrier to carrier with an object of its own.
// CLEAN
void Hop(Runtime& runtime) {
  const auto traveller = runtime.Spawn(0, [&] {
    Local luggage(runtime);
    luggage.Set(runtime.Allocate(0, 1));
    for (unsigned i = 0; i < 4; ++i) {
      luggage->field[0].number++;
      runtime.HopTo(i % runtime.carriers());
    }
  });
  runtime.Join(traveller);
}

// WORKLOAD green: two threads that never leave one carrier, without any order.
// RACE green-first green-second
void Green(Runtime& runtime) {
  Local shared(runtime);
  shared.Set(runtime.Allocate(0, 2));
  const auto first = runtime.Spawn(1, [&] {
    shared->field[1].number = 1;  // [green-first]
    runtime.NextTurn();
  });
  const auto second = runtime.Spawn(1, [&] {
    runtime.WaitForTurn(1);
    shared->field[1].number = 2;  // [green-second]
  });
  runtime.Join(first);
  runtime.Join(second);
}

// WORKLOAD list: a list that grows under a lock; one reader forgets it. The list moves meanwhile.
// RACE list-append list-peek
// RACE list-value list-sum
void List(Runtime& runtime) {
  Local list(runtime);
  list.Set(runtime.Allocate(1, 2));
  const auto writer = runtime.Spawn(0, [&] {
    Local node(runtime);
    for (int i = 0; i < 3; ++i) {
      node.Set(runtime.Allocate(1, 2));
      runtime.Lock(list);
      node->field[1].number = i;  // [list-value]
      node->field[0].object = list->field[0].object;
      list->field[0].object = node.get();  // [list-append]
      list->field[1].number++;
      runtime.Unlock(list);
      runtime.Allocate(0, 6);
    }
    runtime.NextTurn();
  });
  const auto collector = runtime.Spawn(0, [&] {
    runtime.WaitForTurn(1);
    runtime.Collect();
    runtime.NextTurn();
  });
  const auto reader = runtime.Spawn(1, [&] {
    runtime.WaitForTurn(2);
    const Object* const head = list->field[0].object;  // [list-peek]
    std::int64_t sum = head->field[1].number;          // [list-sum]
    runtime.Lock(list);
    sum += list->field[1].number;
    runtime.Unlock(list);
    std::printf("list: %lld\n", static_cast<long long>(sum));
  });
  runtime.Join(writer);
  runtime.Join(collector);
  runtime.Join(reader);
}

struct Workload {
  std::string_view name;
  void (*run)(Runtime& runtime);
};
constexpr Workload kWorkloads[] = {{"bank", Bank}, {"counter", Counter}, {"reuse", Reuse},
                                   {"hop", Hop},   {"green", Green},     {"list", List}};

struct Variant {
  std::string_view name;
  Reports reports;
};
constexpr Variant kVariants[] = {
    {"lard", {}},
    {"allmem", {.accesses = false}},
    {"allsync", {.synchronisation = false}},
    {"noclear", {.clear = false}},
    {"nocopy", {.copy = false}},
    {"noidentity", {.identity = false}},
    {"naive",
     {.accesses = false,
      .synchronisation = false,
      .clear = false,
      .copy = false,
      .identity = false}},
};

int Usage() {
  std::fputs("usage: workloads mark-sweep|semispace REPORTS WORKLOAD...\n", stderr);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return Usage();
  const std::string_view collector = arguments[1];
  const Variant* variant = nullptr;
  for (const Variant& known : kVariants) {
    if (known.name == arguments[2]) variant = &known;
  }
  if (variant == nullptr || (collector != "mark-sweep" && collector != "semispace")) return Usage();
  for (int i = 3; i < count; ++i) {
    const Workload* workload = nullptr;
    for (const Workload& known : kWorkloads) {
      if (known.name == arguments[i]) workload = &known;
    }
    if (workload == nullptr) return Usage();
    constexpr unsigned kCarriers = 2;
    const auto runtime = std::make_unique<Runtime>(
        collector == "semispace" ? Collector::kSemispace : Collector::kMarkSweep, kCarriers,
        variant->reports);
    runtime->Run([&] { workload->run(*runtime); });
  }
  std::puts("done");
  return 0;
}
