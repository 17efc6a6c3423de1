// The virtual machine: its memory, its vCPUs, and what was found out about the host by trying.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "guest-agent/agent.h"
#include "hypervisor/guest_memory.h"
#include "hypervisor/kvm.h"
#include "shadow-pages/page_states.h"

namespace trapline {

// What must be known about the host before code can run on it; found by trying, never from a name.
struct HostKind {
  bool syscall_arrives_in_ring0 =
      false;                           // hardware rules; false: SYSCALL stays in ring 3 (kvm_pvm)
  unsigned tss_type = 0;               // 9 or 11: the type with which ring-3 `out` exits
  bool guest_tsc_is_host_tsc = false;  // then the host's vDSO is right inside the guest
  std::uint64_t exit_nanoseconds = 0;  // from the guest to the monitor and back
  std::uint32_t exit_in_pauses = 0;    // ... and how many `pause` instructions take as long
  // A page fault without a gate leaves the guest by KVM_EXIT_SHUTDOWN, the vCPU as it was and CR2
  // set. That spares one entry: of a gate's slot, which leaves at once.
  bool faults_shut_down = false;
  bool reads_fs_base = false;  // ring 3 can read the base of FS, and write it
};

// What a thread sees of the program's memory; each is a page table of its own.
enum class View : std::uint8_t {
  kWhole,  // everything, as the program mapped it: nothing is tracked, or one access is let through
  kClosed,  // only the pages the thread need not be checked on: tracked code runs here
  kOpen,    // everything, but tracked code cannot run: untracked code (libc) runs here
};
inline constexpr unsigned kViews = 3;

// Memory that every page table shows, beside the program's.
struct SystemPages {
  GuestPhysical agent, shared, idt, tss;
  // What the guest has at the monitor's own addresses, from `start` on, in blocks of so many bytes.
  static constexpr std::uint64_t kBlock = 32u << 20;
  struct Window {
    std::uint64_t start = 0;
    std::vector<GuestPhysical> blocks;
  };
  std::optional<Window> code_cache;     // and what belongs to it; nothing: there is none
  std::optional<Window> repeat_tables;  // nothing: repeats (repeats.h) are not looked for
};

// A page of the program is open for everyone at its own address plus this (docs/translator.md),
// modulo 2^64. The first 512 GiB of the upper half cannot be used: kvm_pvm has them itself (an
// access faults for ever, whatever the page table says). So the mirror begins further up, and what
// lies at 0x600000000000 and above is mirrored in the lower half.
inline constexpr std::uint64_t kMirrorOffset = 0xffffa00000000000;
// From here on.
inline constexpr std::uint64_t kMirroredLow = std::uint64_t{0} - kMirrorOffset;
// The part of that mirror where programs mostly have memory: the monitor keeps it free of anything
// else.
inline constexpr std::uint64_t kLowMirrorStart = 0x780000000000 + kMirrorOffset;
inline constexpr std::uint64_t kLowMirrorEnd = 0x800000000000 + kMirrorOffset;

// A vCPU with what belongs to it: page tables and a thread page. Reused by one guest thread after
// another.
class Carrier {
 public:
  Carrier(const Kvm& kvm, const Vm& vm, GuestMemory& memory, const SystemPages& system,
          unsigned number);

  unsigned number() const { return number_; }
  Vcpu& vcpu() { return *vcpu_; }
  // Made when first asked for. Once the carrier is in use: with AddressSpace's mutex held, for its
  // thread and others may ask at once, and an unfinished table would be run on.
  PageTable& view(View view);
  // The entry of an address' mirror, 0 when absent.
  std::uint64_t MirrorEntry(std::uint64_t address) {
    return view(View::kClosed).Lookup({address + kMirrorOffset});
  }
  // Makes the mirror of [start, end) absent. Returns which of these pages were used by it.
  UsedPages ClearMirror(std::uint64_t start, std::uint64_t end);
  // Makes [start, end) and its mirror absent in View::kClosed, if there is that. Returns which of
  // these pages were used there.
  UsedPages ClearClosed(std::uint64_t start, std::uint64_t end);
  // Marks the mirror of [start, end) as neither used nor written, if there is View::kClosed.
  // Returns which of these pages were used by it.
  UsedPages ForgetMirrorUse(std::uint64_t start, std::uint64_t end);
  // Likewise, and the pages themselves there as not used; `written`: nor written. Returns whether
  // they were used at their own addresses, and which were at either.
  std::pair<bool, UsedPages> ForgetUse(std::uint64_t start, std::uint64_t end, bool written);
  // Calls `visit` for the views there are.
  void ForEachView(const std::function<void(View, PageTable&)>& visit);
  agent::ThreadPage& thread_page() { return *thread_page_; }
  // The monitor's view of an address in the thread page region.
  void* ThreadRegion(std::uint64_t guest_address) {
    return reinterpret_cast<char*>(thread_page_) + (guest_address - TRAPLINE_THREAD_PAGE);
  }
  // The number that the next event of any thread gets (agent::QueuedEvent::sequence).
  std::uint64_t next_event() {
    return __atomic_load_n(reinterpret_cast<std::uint64_t*>(shared_page()), __ATOMIC_ACQUIRE);
  }
  // Takes that number, for an event that is in no queue.
  std::uint64_t take_number() {
    return __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(shared_page()), 1, __ATOMIC_SEQ_CST);
  }
  // The monitor's view of TRAPLINE_SHARED_PAGE.
  char* shared_page() { return static_cast<char*>(memory_.HostPointer(system_.shared)); }
  char* vector_state() { return static_cast<char*>(ThreadRegion(TRAPLINE_VECTOR_STATE)); }
  // The frame the processor left for `vector`, error code (or garbage) before it. See agent.S.
  agent::InterruptFrame& InterruptFrameOf(bool page_fault);

  // A thread of the program runs on it (Machine::Acquire to Release).
  bool in_use = false;
  // The logical thread that ended on it and has orphaned pages there (AddressSpace::Seal). Changed
  // while it is in use only.
  std::optional<std::uint64_t> orphaned_by;
  // Bytes that its thread has inherited, and of these those for which others came. With
  // AddressSpace's mutex held.
  std::uint64_t inherited = 0, inherited_in_vain = 0;
  // How many threads in a row have inherited before.
  unsigned generation = 0;

  // Another thread begins: none of the following is known of it.
  void StartThread() {
    thread_page_->native = 0;
    thread_page_->redirect = {};
    was_native_ = false;
    lease_end = 0;
    leased.clear();
    reopened = watched = {};
    to_open.clear();
    taken.clear();
    met_busy = partial = false;
  }
  // Policies under which pages have owners: whether the thread runs natively until it meets a
  // shared page, instead of in the code cache; and whether it ever did.
  bool native() const { return thread_page_->native != 0; }
  bool was_native() const { return was_native_; }
  void SetNative(bool native) {
    thread_page_->native = native ? TRAPLINE_NATIVE_CODE : 0;
    was_native_ = was_native_ || native;
  }
  // Whether the thread, which counts as native, is about to run partial code (guest_code_cache.h),
  // where the runtime's accesses are checked.
  void SetInPartialCode(bool in) {
    if (native()) thread_page_->native = in ? TRAPLINE_NATIVE_PARTIAL_CODE : TRAPLINE_NATIVE_CODE;
  }
  // Until then (CLOCK_MONOTONIC, nanoseconds) others leave the thread the pages that it has on
  // lease (AwaitLease). Set by its own thread, read by any.
  std::atomic<std::uint64_t> lease_end = 0;
  // Those that it has got many at once since it runs natively.
  std::vector<PageRun> leased;
  // What AddressSpace::Reopen has given the thread, and watches anew because of it.
  Neighbourhood reopened, watched;
  // Pages that its thread has used and has hidden from all, to see who uses them again.
  std::uint64_t rewatched = 0;
  // Pages that the thread may use natively, or will (AddressSpace::OpenOwn), of which that is to be
  // told. Its own thread's alone, as is `taken`: pages that it has taken while in the code cache.
  std::vector<PageRun> to_open, taken;
  // Whether the thread's present stay in the code cache is one in partial code
  // (guest_code_cache.h); then it counts as native, but for the few accesses that it makes in full
  // code now and then. And whether the shared page that it has met last is one of those that stay
  // shared.
  bool partial = false, met_busy = false;
  // Whether the thread, which is in the code cache, will stay for a short time only.
  bool leaves_soon = false;

  // Set by AddressSpace::Distrust: this many page faults to come are checked against the host, and
  // map one page each.
  unsigned distrusted_faults = 0;

  // What LSL on the CPU-number segment answers (getcpu in the vDSO).
  void PublishCpu(unsigned cpu, unsigned node);

 private:
  friend class Machine;

  template <class Change>
  UsedPages ChangeMirror(std::uint64_t start, std::uint64_t end, Change&& change);

  unsigned number_;
  bool was_native_ = false;
  std::unique_ptr<Vcpu> vcpu_;
  GuestMemory& memory_;
  const SystemPages& system_;
  GuestPhysical region_;  // the thread page region, then the GDT
  std::array<std::unique_ptr<PageTable>, kViews> views_;
  agent::ThreadPage* thread_page_;
  std::uint64_t* gdt_;
  unsigned published_cpu_ = ~0u;
};

class Machine {
 public:
  // Opens KVM (or takes over a descriptor of it), makes the VM and tries the host out. Throws
  // KvmError.
  explicit Machine(int inherited_kvm = -1);

  // A vCPU for a guest thread: an idle one if there is one, of those with orphaned pages the one
  // whose thread began first, for threads that do the same parts of work over and over are made in
  // the same order. Throws KvmError when the host's limit is reached. `prefer_new`: make a new one
  // while there are few, so that page-use statistics tell threads apart.
  Carrier& Acquire(bool prefer_new = false);
  void Release(Carrier& carrier);

  // Calls `visit` for every carrier, idle ones too: their page tables live on.
  void ForEachCarrier(const std::function<void(Carrier&)>& visit);

  // Makes a new VM that shows the same memory, and gives `survivor` a vCPU of it; all other
  // carriers are gone. For a child after fork, where only the calling thread is left and a VM
  // cannot be inherited; and for a program with one thread that must do something, `between`,
  // while there is no VM. `special`: the survivor's special registers (in a child the shared area
  // is the parent's). `shared_descriptors`: a parent has the same descriptor table (CLONE_FILES),
  // so nothing may be closed.
  void Rebuild(Carrier& survivor, const kvm_sregs& special, bool shared_descriptors,
               const std::function<void()>& between = {});

  const HostKind& host() const { return host_; }
  std::uint64_t vector_mask() const { return vector_mask_; }      // XCR0 bits the monitor saves
  std::size_t vector_state_size() const { return vector_size_; }  // bytes of an XSAVE image
  GuestMemory& memory() { return *memory_; }
  const Kvm& kvm() const { return kvm_; }
  Vm& vm() { return *vm_; }
  std::mutex& mutex() { return mutex_; }  // held across fork

  // Maps the code cache's memory, for the monitor and for the View::kClosed of carriers that have
  // not made theirs yet. Throws KvmError.
  // `repeats`: with the tables of guest-agent/repeats.h.
  void ShowCodeCache(bool repeats);
  // Without it there are no mirrors.
  bool shows_code_cache() const { return system_.code_cache.has_value(); }

  // What `carrier`, which runs no program, has in view from now on.
  void EnterView(Carrier& carrier, View view);
  // Runs a probe of agent.S on `carrier`; returns false when it did not exit by
  // TRAPLINE_PORT_PROBE.
  bool RunProbe(Carrier& carrier, const char* entry, std::uint64_t rdi);

  // Medians, in nanoseconds: an exit to the monitor and back; an exception that is taken and
  // returned from inside the guest, without an exit. `carrier` must be idle otherwise.
  std::uint64_t MeasureExit(Carrier& carrier);
  std::uint64_t MeasureFault(Carrier& carrier);
  // ... that leads on somewhere else (RedirectPageFaults), with a call stack of `frames` frames. 0:
  // it did not. Throws KvmError.
  std::uint64_t MeasureRedirect(Carrier& carrier, unsigned frames);

  // From now on page faults of all threads go by way of trapline_agent_redirect, or no longer. At
  // any time.
  void RedirectPageFaults(bool on);
  // Has the special registers, which may have been changed, written at the next entry.
  void MarkSegmentsDirty(Vcpu& vcpu) const;
  // An exception's entry on hardware has no stack segment: the one that the program has.
  static void SetProgramStackSegment(kvm_sregs& special);

  unsigned physical_bits() const { return physical_bits_; }

 private:
  Carrier& Create();
  void SetUpSystemTables();
  void SetGate(unsigned vector, std::uint64_t entry, unsigned stack);
  void SetExceptionGates();
  void RemovePageFaultGate();
  // Whether HostKind::faults_shut_down holds; if so, page faults have no gate any more.
  bool FaultsShutDown(Carrier& carrier);
  void SetUpVcpu(Carrier& carrier);
  bool GuestHas(unsigned feature) const;
  void TryHost();

  Kvm kvm_;
  std::unique_ptr<Vm> vm_;
  std::unique_ptr<GuestMemory> memory_;
  CpuidTable cpuid_;
  bool kvm_offers_xsave_ = false, kvm_offers_fs_gs_base_ = false;
  unsigned physical_bits_ = 0;
  HostKind host_;
  std::uint64_t vector_mask_ = 0;
  std::size_t vector_size_ = 0;
  SystemPages system_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<Carrier*> idle_;
};

}  // namespace trapline
