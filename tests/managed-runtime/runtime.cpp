#include "runtime.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace managed {

Runtime* Runtime::instance = nullptr;

// Green threads go from carrier to carrier, so the compiler may not keep the address.
[[gnu::noinline]] Runtime::Carrier*& Runtime::This() {
  static thread_local Carrier* carrier = nullptr;
  asm volatile("");
  return carrier;
}

Runtime::Fiber& Runtime::Current() { return *This()->current; }

// --- what is the runtime's

void Runtime::Begin() const {
  if (reports_.accesses) trapline_ignore_begin(TRAPLINE_READS_AND_WRITES);
  if (reports_.synchronisation) trapline_ignore_sync_begin();
}

void Runtime::End() const {
  if (reports_.synchronisation) trapline_ignore_sync_end();
  if (reports_.accesses) trapline_ignore_end(TRAPLINE_READS_AND_WRITES);
}

class Runtime::Scope {
 public:
  explicit Scope(const Runtime& runtime) : runtime_(runtime) { runtime_.Begin(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { runtime_.End(); }

 private:
  const Runtime& runtime_;
};

Local::Local(Runtime& runtime) : runtime_(runtime) {
  const Runtime::Scope scope(runtime_);
  Local*& top = Runtime::Current().locals;
  outer_ = top;
  top = this;
}

Local::~Local() {
  const Runtime::Scope scope(runtime_);
  Runtime::Current().locals = outer_;
}

Runtime::Runtime(Collector collector, unsigned carriers, const Reports& reports)
    : collector_(collector), reports_(reports) {
  instance = this;
  for (unsigned i = 0; i < carriers; ++i) carriers_.push_back(std::make_unique<Carrier>());
  if (collector_ == Collector::kMarkSweep) {
    for (std::size_t at = heap_.size(); at > 0; at -= kCell)
      free_.push_back(reinterpret_cast<Object*>(heap_.data() + (at - kCell)));
  }
}

// --- green threads

void Runtime::FiberMain() {
  Fiber* fiber;
  {
    const Scope scope(*instance);
    fiber = &Current();
  }
  if (!instance->reports_.identity) trapline_happens_after(fiber);
  fiber->body();
  instance->Begin();
  instance->SwitchOut(After::kEnded);
}

// In a scope; a scope never lasts through a switch of stacks, for it is whose stack that is.
void Runtime::SwitchOut(After after) {
  Carrier& carrier = *This();
  Fiber& fiber = *carrier.current;
  fiber.ended = after == After::kEnded;
  ucontext_t* const from = &fiber.context;
  ucontext_t* const to = &carrier.context;
  const bool identity = reports_.identity;
  const bool* const ended = after == After::kEnded ? &fiber.ended : nullptr;
  End();
  if (ended != nullptr) trapline_happens_before(ended);  // for Join
  if (identity) trapline_fiber_switch(nullptr);
  swapcontext(from, to);
  Begin();
}

void Runtime::CarrierMain(Carrier& carrier) {
  Begin();
  This() = &carrier;
  for (;;) {
    Fiber* fiber = nullptr;
    {
      std::unique_lock lock(mutex_);
      --running_;
      changed_.notify_all();
      changed_.wait(lock,
                    [&] { return !stop_requested_ && (!carrier.ready.empty() || live_ == 0); });
      if (carrier.ready.empty()) break;
      ++running_;
      fiber = carrier.ready.front();
      carrier.ready.pop_front();
    }
    carrier.current = fiber;
    ucontext_t* const from = &carrier.context;
    ucontext_t* const to = &fiber->context;
    const bool identity = reports_.identity;
    End();
    if (identity) trapline_fiber_switch(fiber);
    swapcontext(from, to);
    Begin();
    const std::lock_guard lock(mutex_);
    carrier.current = nullptr;
    if (fiber->ended) {
      --live_;
      if (identity) trapline_fiber_destroy(fiber);
    } else {
      carriers_[fiber->carrier]->ready.push_back(fiber);
    }
    changed_.notify_all();
  }
  End();
}

Runtime::Fiber& Runtime::MakeFiber(unsigned carrier, std::function<void()> body) {
  constexpr std::size_t kStack = 128 << 10;
  Fiber& fiber = fibers_.emplace_back();
  by_id_.push_back(&fiber);
  fiber.body = std::move(body);
  fiber.stack = std::make_unique<char[]>(kStack);
  fiber.carrier = carrier;
  // The paper's detectors leave stacks out. With fibers known there is no need to.
  if (!reports_.identity) trapline_untrack(fiber.stack.get(), kStack);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  makecontext(&fiber.context, &FiberMain, 0);
  return fiber;
}

Runtime::FiberId Runtime::Spawn(unsigned carrier, std::function<void()> body) {
  Fiber* fiber;
  FiberId id;
  {
    const Scope scope(*this);
    const std::lock_guard lock(mutex_);
    id = static_cast<FiberId>(by_id_.size());
    fiber = &MakeFiber(carrier, std::move(body));
  }
  // Of the language: before the new thread's first step.
  if (reports_.identity) {
    trapline_fiber_create(fiber);
  } else {
    trapline_happens_before(fiber);
  }
  const Scope scope(*this);
  const std::lock_guard lock(mutex_);
  ++live_;
  carriers_[carrier]->ready.push_back(fiber);
  changed_.notify_all();
  return id;
}

void Runtime::Join(FiberId id) {
  Fiber* fiber;
  {
    const Scope scope(*this);
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        fiber = by_id_[id];
        if (fiber->ended) break;
      }
      LetOthersRun();
    }
  }
  trapline_happens_after(&fiber->ended);
}

void Runtime::Run(std::function<void()> body) {
  running_ = carriers();
  Fiber& first = MakeFiber(0, std::move(body));
  if (reports_.identity) trapline_fiber_create(&first);
  ++live_;
  carriers_[0]->ready.push_back(&first);
  for (const auto& carrier : carriers_)
    carrier->thread = std::thread([this, &carrier = *carrier] { CarrierMain(carrier); });
  for (const auto& carrier : carriers_) carrier->thread.join();
  for (const Fiber& fiber : fibers_) trapline_happens_after(&fiber.ended);
}

void Runtime::HopTo(unsigned carrier) {
  const Scope scope(*this);
  Current().carrier = carrier;
  SwitchOut(After::kReady);
}

// In a scope.
void Runtime::LetOthersRun() {
  constexpr useconds_t kPause = 300;
  usleep(kPause);
  SwitchOut(After::kReady);
}

void Runtime::Yield() {
  const Scope scope(*this);
  SwitchOut(After::kReady);
}

void Runtime::WaitForTurn(int turn) {
  const Scope scope(*this);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (turn_ >= turn) return;
    }
    LetOthersRun();
  }
}

void Runtime::NextTurn() {
  const Scope scope(*this);
  const std::lock_guard lock(mutex_);
  ++turn_;
  changed_.notify_all();
}

void Runtime::Lock(const Local& object) {
  Monitor* monitor;
  {
    const Scope scope(*this);
    {
      const std::lock_guard lock(mutex_);
      if (object->monitor == nullptr) object->monitor = &monitors_.emplace_back();
      monitor = object->monitor;
    }
    while (monitor->held.exchange(1) != 0) LetOthersRun();
  }
  trapline_lock_acquired(monitor);
}

void Runtime::Unlock(const Local& object) {
  Monitor* monitor;
  {
    const Scope scope(*this);
    monitor = object->monitor;
  }
  trapline_lock_releasing(monitor);
  const Scope scope(*this);
  monitor->held.store(0);
}

// --- stopping the world

void Runtime::Park(std::unique_lock<std::mutex>& lock) {
  --running_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !stop_requested_; });
  ++running_;
}

void Runtime::StopTheWorld(std::unique_lock<std::mutex>& lock) {
  while (stop_requested_) Park(lock);
  stop_requested_ = true;
  changed_.wait(lock, [&] { return running_ == 1; });
}

void Runtime::StartTheWorld() {
  stop_requested_ = false;
  changed_.notify_all();
}

// --- memory

Object* Runtime::TryAllocate(std::uint32_t size) {
  if (collector_ == Collector::kSemispace) {
    if (used_ + size > kSpace) return nullptr;
    auto* const object = reinterpret_cast<Object*>(space_ + used_);
    used_ += size;
    return object;
  }
  if (free_.empty()) return nullptr;
  Object* const object = free_.back();
  free_.pop_back();
  return object;
}

Object* Runtime::Allocate(std::uint32_t references, std::uint32_t fields) {
  const Scope scope(*this);
  const auto size = static_cast<std::uint32_t>(sizeof(Object) + fields * sizeof(Field));
  std::unique_lock lock(mutex_);
  while (stop_requested_) Park(lock);
  Object* object = TryAllocate(size);
  if (object == nullptr) {
    StopTheWorld(lock);
    CollectStopped();
    StartTheWorld();
    object = TryAllocate(size);
    if (object == nullptr) std::abort();
  }
  std::memset(static_cast<void*>(object), 0, size);
  object->references = references;
  object->fields = fields;
  object->in_use = true;
  return object;
}

void Runtime::Collect() {
  const Scope scope(*this);
  std::unique_lock lock(mutex_);
  StopTheWorld(lock);
  CollectStopped();
  StartTheWorld();
}

void Runtime::CollectStopped() {
  ++collections_;
  if (collector_ == Collector::kSemispace) {
    Copy();
  } else {
    MarkAndSweep();
  }
}

void Runtime::ForEachRoot(const std::function<void(Object*&)>& visit) {
  for (Fiber& fiber : fibers_) {
    for (Local* local = fiber.locals; local != nullptr; local = local->outer_) {
      if (local->object_ != nullptr) visit(local->object_);
    }
  }
}

void Runtime::Copy() {
  char* const old_space = space_;
  const std::size_t old_used = used_;
  space_ = space_ == heap_.data() ? heap_.data() + kSpace : heap_.data();
  used_ = 0;
  moved_.clear();
  const auto move = [&](Object*& reference) {
    Object* const object = reference;
    if (object->moved_to == nullptr) {
      const std::size_t size = sizeof(Object) + object->fields * sizeof(Field);
      auto* const copy = reinterpret_cast<Object*>(space_ + used_);
      used_ += size;
      std::memcpy(static_cast<void*>(copy), object, size);
      object->moved_to = copy;
      moved_.push_back(object);
    }
    reference = object->moved_to;
  };
  ForEachRoot(move);
  for (std::size_t next = 0; next < moved_.size(); ++next) {
    Object& object = *moved_[next]->moved_to;
    for (std::uint32_t i = 0; i < object.references; ++i) {
      if (object.field[i].object != nullptr) move(object.field[i].object);
    }
  }
  // All at once, while nobody runs: as the objects themselves.
  if (reports_.copy) {
    std::vector<trapline_history_move> moves;
    for (const Object* object : moved_)
      moves.push_back({object, object->moved_to, sizeof(Object) + object->fields * sizeof(Field)});
    trapline_copy_histories(moves.data(), moves.size());
  }
  if (reports_.clear) trapline_clear_history(old_space, old_used);
}

void Runtime::Mark(Object* object) {
  if (object->marked) return;
  object->marked = true;
  for (std::uint32_t i = 0; i < object->references; ++i) {
    if (object->field[i].object != nullptr) Mark(object->field[i].object);
  }
}

void Runtime::MarkAndSweep() {
  ForEachRoot([&](Object*& object) { Mark(object); });
  for (std::size_t at = heap_.size(); at > 0; at -= kCell) {
    auto* const object = reinterpret_cast<Object*>(heap_.data() + (at - kCell));
    if (object->in_use && !object->marked) {
      object->in_use = false;
      if (reports_.clear) trapline_clear_history(object, kCell);
      free_.push_back(object);
    }
    object->marked = false;
  }
}

}  // namespace managed
