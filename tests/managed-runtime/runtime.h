// A small managed runtime, as the guest of a race detector: objects in a heap that is collected by
// copying (semispace) or by mark and sweep, and green threads on carrier threads. It tells the
// detector what LARD asks a runtime to tell (section 3 of the paper), by trapline/client.h; each of
// the five can be left out, as in the ablations of its section 5.2.
//
// To the programs on it, only these are accesses: uses of an object's fields. Only these order
// green threads: Spawn before what is spawned, that before Join, and Unlock before Lock. All that
// the runtime does itself is neither. A collection may happen in any function of Runtime; elsewhere
// objects stay where they are.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trapline/client.h"

namespace managed {

enum class Collector { kMarkSweep, kSemispace };

// What the detector is told.
struct Reports {
  bool accesses = true;         // off: AllMem
  bool synchronisation = true;  // off: AllSync
  bool clear = true;            // off: NoClear
  bool copy = true;             // off: NoCopy
  bool identity = true;         // off: green threads are their carriers
};

struct Monitor {
  std::atomic<int> held{0};
};

union Field {
  std::int64_t number;
  struct Object* object;
};

struct Object {
  // The runtime's.
  std::uint32_t references;  // how many of the fields, the first ones, name objects
  std::uint32_t fields;
  Object* moved_to;  // during a copying collection
  Monitor* monitor;  // outside the heap; null: never locked
  bool marked, in_use;
  // The program's.
  Field field[];
};

class Runtime;

// A green thread's variable that names an object. Collections find it and follow the object. Used
// as a stack: what is made later is destroyed earlier.
class Local {
 public:
  explicit Local(Runtime& runtime);
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  ~Local();
  Object* operator->() const { return object_; }
  Object* get() const { return object_; }
  void Set(Object* object) { object_ = object; }

 private:
  friend class Runtime;
  Runtime& runtime_;
  Object* object_ = nullptr;
  Local* outer_;
};

class Runtime {
 public:
  static constexpr std::uint32_t kMostFields = 10;

  // `carriers` > 0. The calling thread is none of them.
  Runtime(Collector collector, unsigned carriers, const Reports& reports);

  // Runs `body` as the first green thread, on carrier 0; returns when all have ended.
  void Run(std::function<void()> body);

  // --- for green threads
  using FiberId = unsigned;
  // Starts a green thread on a carrier.
  FiberId Spawn(unsigned carrier, std::function<void()> body);
  void Join(FiberId fiber);
  // A fresh object, fields zero. `references` <= `fields` <= kMostFields.
  Object* Allocate(std::uint32_t references, std::uint32_t fields);
  void Lock(const Local& object);
  void Unlock(const Local& object);
  // Goes on on another carrier: nothing of the language.
  void HopTo(unsigned carrier);
  // Lets others run.
  void Yield();
  // Waits until `turn` has come, and makes the next one come: a schedule for tests. To the language
  // nothing happens, as when a thread is just slow.
  void WaitForTurn(int turn);
  void NextTurn();
  void Collect();

  unsigned carriers() const { return static_cast<unsigned>(carriers_.size()); }
  unsigned collections() const { return collections_; }

 private:
  friend class Local;

  struct Fiber {
    ucontext_t context{};
    std::function<void()> body;
    std::unique_ptr<char[]> stack;
    Local* locals = nullptr;
    unsigned carrier = 0;
    bool ended = false;
  };
  struct Carrier {
    std::thread thread;
    ucontext_t context{};
    std::deque<Fiber*> ready;
    Fiber* current = nullptr;
  };
  // In between, what the calling thread does is the runtime's.
  class Scope;
  enum class After { kReady, kEnded };

  static Runtime* instance;
  static Carrier*& This();
  static Fiber& Current();
  static void FiberMain();

  void Begin() const;
  void End() const;
  void CarrierMain(Carrier& carrier);
  Fiber& MakeFiber(unsigned carrier, std::function<void()> body);
  void SwitchOut(After after);
  void LetOthersRun();
  void Park(std::unique_lock<std::mutex>& lock);
  void StopTheWorld(std::unique_lock<std::mutex>& lock);
  void StartTheWorld();

  Object* TryAllocate(std::uint32_t size);
  void CollectStopped();
  void ForEachRoot(const std::function<void(Object*&)>& visit);
  void Copy();
  void MarkAndSweep();
  void Mark(Object* object);

  const Collector collector_;
  const Reports reports_;
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::list<Fiber> fibers_;
  std::vector<Fiber*> by_id_;

  std::mutex mutex_;  // everything below, and the carriers' queues
  std::condition_variable changed_;
  bool stop_requested_ = false;
  unsigned running_ = 0;  // carriers that are neither parked nor without work
  unsigned live_ = 0;     // green threads
  int turn_ = 0;
  std::deque<Monitor> monitors_;

  static constexpr std::size_t kSpace = 32 << 10, kCell = 128;  // bytes
  alignas(kCell) std::array<char, 2 * kSpace> heap_;            // mark-sweep uses both halves
  char* space_ = heap_.data();
  std::size_t used_ = 0;        // semispace: bytes of the present half
  std::vector<Object*> free_;   // mark-sweep
  std::vector<Object*> moved_;  // semispace: what was copied, old places
  unsigned collections_ = 0;
};

}  // namespace managed
