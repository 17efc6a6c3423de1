#include "hypervisor/machine.h"

#include <cpuid.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "guest-agent/redirect.h"
#include "guest-agent/repeats.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

constexpr unsigned kDoubleFault = 8, kPageFault = 14;

constexpr std::uint64_t kUserPage = PageEntry::kUser | PageEntry::kAccessed | PageEntry::kDirty;
constexpr std::uint64_t kSupervisorData =
    PageEntry::kWritable | PageEntry::kAccessed | PageEntry::kDirty | PageEntry::kNoExecute;

constexpr std::uint32_t kMsrStar = 0xc0000081, kMsrLstar = 0xc0000082, kMsrFmask = 0xc0000084;

constexpr std::uint64_t kRepeatSize = AlignUp(sizeof(agent::RepeatMemory), kPageSize);

// Control register bits, Intel SDM vol. 3, 2.5.
constexpr std::uint64_t kCr0 = 0x80050033;  // PG AM WP NE ET MP PE
constexpr std::uint64_t kCr4 = 0x620;       // OSXMMEXCPT OSFXSR PAE
constexpr std::uint64_t kCr4FsGsBase = 1u << 16, kCr4OsXsave = 1u << 18;
constexpr std::uint64_t kEfer = 0xd01;  // NXE LMA LME SCE

// XSAVE components kept in signal frames: x87, SSE, AVX, the AVX-512 three and PKRU. AMX tiles need
// a permission the program would have to ask for, and are 8 KiB.
constexpr std::uint64_t kKnownVectorComponents = 0x2e7;

std::uint64_t ReadXcr0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | (static_cast<std::uint64_t>(high) << 32);
}

// KVM leaves empty what it does not need: the processor's name and, on AMD's, the first-level caches,
// whose lines and sizes programs ask sysconf for.
void TellNameAndCaches(CpuidTable& table) {
  for (kvm_cpuid_entry2& entry : table.entries) {
    if (entry.function < 0x80000002 || entry.function > 0x80000006) continue;
    __cpuid(entry.function, entry.eax, entry.ebx, entry.ecx, entry.edx);
  }
}

// kvm_pvm runs ring 3 with the host's own XCR0, but offers the guest no XSAVE. Where it can
// intercept CPUID (Intel's processors) programs would take it at its word, and do without AVX: they
// are told what the processor has, but for what only kernels use and kvm_pvm emulates, and for AMX,
// for which KVM wants a permission (arch_prctl(ARCH_REQ_XCOMP_GUEST_PERM)): EPERM without it.
void TellOfTheProcessor(CpuidTable& table) {
  constexpr unsigned kPcid = 1u << 17, kInvpcid = 1u << 10, kFiveLevels = 1u << 16;
  constexpr unsigned kAmx = 1u << 22 | 1u << 24 | 1u << 25;       // of leaf 7.0, EDX
  constexpr unsigned kAmxFp16 = 1u << 21, kAmxComplex = 1u << 8;  // of leaf 7.1, EAX and EDX
  for (kvm_cpuid_entry2& entry : table.entries) {
    const unsigned leaf = entry.function;
    const bool told = leaf == 1 || leaf == 7 || leaf == 0xd || leaf == 0x80000001;
    if (!told) continue;
    const unsigned own = entry.ebx;
    __cpuid_count(leaf, entry.index, entry.eax, entry.ebx, entry.ecx, entry.edx);
    if (leaf == 1) {
      entry.ebx = own;  // numbers of the processor asked
      entry.ecx &= ~kPcid;
    } else if (leaf == 7 && entry.index == 0) {
      entry.ebx &= ~kInvpcid;
      entry.ecx &= ~kFiveLevels;
      entry.edx &= ~kAmx;
    } else if (leaf == 7 && entry.index == 1) {
      entry.eax &= ~kAmxFp16;
      entry.edx &= ~kAmxComplex;
    } else if (leaf == 0xd && entry.index == 0) {
      entry.eax &= kKnownVectorComponents;
      entry.edx = 0;
    }
  }
}

kvm_segment UserSegment(std::uint16_t selector, std::uint8_t type, bool code) {
  kvm_segment segment{};
  segment.selector = selector;
  segment.limit = 0xffffffff;
  segment.type = type;
  segment.present = 1;
  segment.dpl = 3;
  segment.s = 1;
  segment.l = code ? 1 : 0;
  segment.db = code ? 0 : 1;
  segment.g = 1;
  return segment;
}

}  // namespace

Carrier::Carrier(const Kvm& kvm, const Vm& vm, GuestMemory& memory, const SystemPages& system,
                 unsigned number)
    : number_(number),
      vcpu_(std::make_unique<Vcpu>(kvm, vm, number)),
      memory_(memory),
      system_(system),
      region_(memory.AllocatePages(TRAPLINE_THREAD_PAGES + 1)) {
  thread_page_ = static_cast<agent::ThreadPage*>(memory.HostPointer(region_));
  gdt_ =
      static_cast<std::uint64_t*>(memory.HostPointer(region_ + TRAPLINE_THREAD_PAGES * kPageSize));
  gdt_[2] = 0x00af9b000000ffff;  // 0x10 kernel code
  gdt_[3] = 0x00cf93000000ffff;  // 0x18 kernel data
  gdt_[4] = 0x00cffb000000ffff;  // 0x20 user code, 32 bit
  gdt_[5] = 0x00cff3000000ffff;  // 0x28 user data
  gdt_[6] = 0x00affb000000ffff;  // 0x30 user code, 64 bit
  thread_page_->carrier = number;
}

PageTable& Carrier::view(View view) {
  auto& table = views_[static_cast<unsigned>(view)];
  if (table) return *table;
  table = std::make_unique<PageTable>(memory_);
  table->Map({TRAPLINE_AGENT_CODE}, system_.agent, AlignUp(agent::CodeSize(), kPageSize),
             kUserPage);
  table->Map({TRAPLINE_SHARED_PAGE}, system_.shared, kPageSize,
             kUserPage | PageEntry::kWritable | PageEntry::kNoExecute);
  table->Map({TRAPLINE_THREAD_PAGE}, region_, TRAPLINE_THREAD_PAGES * kPageSize,
             kUserPage | PageEntry::kWritable | PageEntry::kNoExecute);
  table->Map({TRAPLINE_GDT}, region_ + TRAPLINE_THREAD_PAGES * kPageSize, kPageSize,
             kSupervisorData);
  table->Map({TRAPLINE_IDT}, system_.idt, kPageSize, kSupervisorData);
  table->Map({TRAPLINE_TSS}, system_.tss, kPageSize, kSupervisorData);
  // `size` bytes of a window, at `offset` from their place.
  const auto map = [&](const SystemPages::Window& window, std::uint64_t start, std::uint64_t size,
                       std::uint64_t flags, std::uint64_t offset = 0) {
    // Large pages, that a new thread need not wait for tens of thousands of entries.
    constexpr std::uint64_t kBlock = SystemPages::kBlock, kLarge = 2 << 20;
    for (std::uint64_t at = start; at < start + size;) {
      const GuestPhysical physical = window.blocks[(at - window.start) / kBlock] + at % kBlock;
      const std::uint64_t end = std::min(start + size, AlignDown(at, kLarge) + kLarge);
      const bool large = end - at == kLarge && (offset + at) % kLarge == 0 &&
                         table->MapLarge({offset + at}, physical, flags);
      if (!large) table->Map({offset + at}, physical, end - at, flags);
      at = end;
    }
  };
  constexpr std::uint64_t kShared = kUserPage | PageEntry::kWritable | PageEntry::kNoExecute;
  // For trapline_agent_event, while accesses are tracked, and to its end if they are no longer.
  if (view != View::kClosed && system_.repeat_tables)
    map(*system_.code_cache, TRAPLINE_REPEATS, kRepeatSize, kShared);
  if (view == View::kClosed && system_.code_cache) {
    const SystemPages::Window& cache = *system_.code_cache;
    map(cache, TRAPLINE_PARTIAL_CODE, TRAPLINE_PARTIAL_CODE_SIZE, kUserPage);
    map(cache, TRAPLINE_PARTIAL_TABLE, TRAPLINE_PARTIAL_DATA_END - TRAPLINE_PARTIAL_TABLE, kShared);
    map(cache, TRAPLINE_CACHE_CODE, TRAPLINE_CACHE_CODE_SIZE, kUserPage);
    map(cache, TRAPLINE_CACHE_TABLE, TRAPLINE_CACHE_DATA_END - TRAPLINE_CACHE_TABLE, kShared);
    if (system_.repeat_tables) {
      map(cache, TRAPLINE_REPEATS, kRepeatSize, kShared);
      map(cache, TRAPLINE_REPEATS, kRepeatSize, kShared, kMirrorOffset);
      map(*system_.repeat_tables, TRAPLINE_REPEAT_TABLES,
          TRAPLINE_REPEAT_TABLES_END - TRAPLINE_REPEAT_TABLES, kShared);
    }
    // The agent's code runs from the cache, too.
    table->Map({kMirrorOffset + TRAPLINE_AGENT_CODE}, system_.agent,
               AlignUp(agent::CodeSize(), kPageSize), kUserPage | PageEntry::kNoExecute);
    table->Map({kMirrorOffset + TRAPLINE_SHARED_PAGE}, system_.shared, kPageSize,
               kUserPage | PageEntry::kWritable | PageEntry::kNoExecute);
    table->Map({kMirrorOffset + TRAPLINE_THREAD_PAGE}, region_, TRAPLINE_THREAD_PAGES * kPageSize,
               kUserPage | PageEntry::kWritable | PageEntry::kNoExecute);
  }
  return *table;
}

// change(GuestVirtual, length) for the parts of the mirror of [start, end), which returns which of
// its pages were used. So does this, by the addresses that they are the mirrors of.
template <class Change>
UsedPages Carrier::ChangeMirror(std::uint64_t start, std::uint64_t end, Change&& change) {
  UsedPages all;
  const auto change_mirror = [&](std::uint64_t at, std::uint64_t length) {
    const UsedPages used = change(GuestVirtual{at}, length);
    if (used.any()) all.Add({used.first - kMirrorOffset, used.last - kMirrorOffset});
  };
  if (start < kMirroredLow)
    change_mirror(kMirrorOffset + start, std::min(end, kMirroredLow) - start);
  // In the lower half, where the agent and the code cache are.
  const auto change_low = [&](std::uint64_t from, std::uint64_t to) {
    from = std::max(from, std::max(start, kMirroredLow) - kMirroredLow);
    to = std::min(to, end - kMirroredLow);
    if (from < to) change_mirror(from, to - from);
  };
  if (end <= kMirroredLow) return all;
  change_low(0, TRAPLINE_CACHE_BASE);
  change_low(TRAPLINE_CACHE_END, TRAPLINE_AGENT_BASE);
  change_low(TRAPLINE_AGENT_END, end);
  return all;
}

UsedPages Carrier::ClearMirror(std::uint64_t start, std::uint64_t end) {
  PageTable& table = view(View::kClosed);
  return ChangeMirror(
      start, end, [&](GuestVirtual at, std::uint64_t length) { return table.Clear(at, length); });
}

UsedPages Carrier::ClearClosed(std::uint64_t start, std::uint64_t end) {
  const auto& table = views_[static_cast<unsigned>(View::kClosed)];
  if (!table) return {};
  UsedPages used = table->Clear({start}, end - start);
  used.Add(ClearMirror(start, end));
  return used;
}

UsedPages Carrier::ForgetMirrorUse(std::uint64_t start, std::uint64_t end) {
  const auto& table = views_[static_cast<unsigned>(View::kClosed)];
  if (!table) return {};
  return ChangeMirror(start, end, [&](GuestVirtual at, std::uint64_t length) {
    return table->ForgetUse(at, length, PageEntry::kAccessed | PageEntry::kDirty);
  });
}

std::pair<bool, UsedPages> Carrier::ForgetUse(std::uint64_t start, std::uint64_t end,
                                              bool written) {
  constexpr std::uint64_t kUsed = PageEntry::kAccessed, kWritten = PageEntry::kDirty;
  UsedPages used =
      view(View::kClosed).ForgetUse({start}, end - start, written ? kUsed | kWritten : kUsed);
  const bool natively = used.any();
  used.Add(ForgetMirrorUse(start, end));
  return {natively, used};
}

void Machine::ShowCodeCache(bool repeats) {
  const auto reserve = [](std::uint64_t start, std::uint64_t end, int protection) {
    void* const at = reinterpret_cast<void*>(start);
    void* const memory =
        mmap(at, end - start, protection,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED && errno != EEXIST)
      throw KvmError(errno, "no address space for the code cache (see ulimit -v)");
    if (memory != at) {
      if (memory != MAP_FAILED) munmap(memory, end - start);
      throw KvmError(EEXIST, "the code cache's address range is taken");
    }
    madvise(memory, end - start, MADV_DONTDUMP);
  };
  const auto show = [&](std::uint64_t start, std::uint64_t end) {
    reserve(start, end, PROT_READ | PROT_WRITE);
    SystemPages::Window window{start, {}};
    for (std::uint64_t block = start; block < end; block += SystemPages::kBlock)
      window.blocks.push_back(memory_->PhysicalOf({block}, start, end));
    return window;
  };
  reserve(kLowMirrorStart, kLowMirrorEnd, PROT_NONE);
  system_.code_cache = show(TRAPLINE_CACHE_BASE, TRAPLINE_CACHE_END);
  // Little of that is used, here and there, and large pages make no difference to the code.
  madvise(reinterpret_cast<void*>(TRAPLINE_CACHE_BASE),
          TRAPLINE_CACHE_DATA_END - TRAPLINE_CACHE_BASE, MADV_NOHUGEPAGE);  // a wish
  if (repeats) system_.repeat_tables = show(TRAPLINE_REPEAT_TABLES, TRAPLINE_REPEAT_TABLES_END);
}

void Carrier::ForEachView(const std::function<void(View, PageTable&)>& visit) {
  for (unsigned i = 0; i < kViews; ++i) {
    if (views_[i]) visit(static_cast<View>(i), *views_[i]);
  }
}

agent::InterruptFrame& Carrier::InterruptFrameOf(bool page_fault) {
  const std::uint64_t top = page_fault ? TRAPLINE_FAULT_STACK_TOP : TRAPLINE_EXCEPTION_STACK_TOP;
  return *static_cast<agent::InterruptFrame*>(ThreadRegion(top - sizeof(agent::InterruptFrame)));
}

void Carrier::PublishCpu(unsigned cpu, unsigned node) {
  if (cpu == published_cpu_) return;
  published_cpu_ = cpu;
  // A read-only data segment whose limit, in bytes, is the answer; present, DPL 3.
  const std::uint64_t limit = (node << 12 | cpu) & 0xfffff;
  const std::uint64_t descriptor =
      (limit & 0xffff) | (0xf5ull << 40) | ((limit >> 16) << 48) | (1ull << 54);
  __atomic_store_n(&gdt_[TRAPLINE_CPU_NUMBER_SELECTOR >> 3], descriptor, __ATOMIC_RELAXED);
}

Machine::Machine(int inherited_kvm)
    : kvm_(inherited_kvm), vm_(std::make_unique<Vm>(kvm_)), cpuid_(kvm_.SupportedCpuid()) {
  const kvm_cpuid_entry2* sizes = cpuid_.Find(0x80000008);
  physical_bits_ = sizes != nullptr ? sizes->eax & 0xff : 36;
  const int slots = kvm_.CheckExtension(KVM_CAP_NR_MEMSLOTS);
  if (kvm_.CheckExtension(KVM_CAP_SYNC_REGS) == 0 ||
      kvm_.CheckExtension(KVM_CAP_IMMEDIATE_EXIT) == 0) {
    throw KvmError(ENOTSUP,
                   "this KVM lacks synchronised registers or immediate exit (Linux 4.18 has them)");
  }
  memory_ = std::make_unique<GuestMemory>(*vm_, physical_bits_, slots > 0 ? unsigned(slots) : 32u);

  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) {
    throw KvmError(ENOTSUP, "this processor has no XSAVE");
  }
  kvm_offers_xsave_ = GuestHas(bit_XSAVE);
  const kvm_cpuid_entry2* extended = cpuid_.Find(7);
  kvm_offers_fs_gs_base_ = extended != nullptr && (extended->ebx & bit_FSGSBASE) != 0;
  TellNameAndCaches(cpuid_);
  if (!kvm_offers_xsave_) TellOfTheProcessor(cpuid_);
  vector_mask_ = ReadXcr0() & kKnownVectorComponents;
  if (const kvm_cpuid_entry2* xsave = cpuid_.Find(0xd); xsave != nullptr && GuestHas(bit_XSAVE)) {
    vector_mask_ &= xsave->eax | (static_cast<std::uint64_t>(xsave->edx) << 32);
  }
  // Standard (non-compacted) layout: the image ends where the last enabled component ends.
  vector_size_ = 576;
  for (unsigned component = 2; component < 63; ++component) {
    if ((vector_mask_ >> component & 1) == 0) continue;
    __cpuid_count(0xd, component, a, b, c, d);
    vector_size_ = std::max<std::size_t>(vector_size_, a + b);
  }
  if (vector_size_ > TRAPLINE_VECTOR_STATE_SIZE)
    throw KvmError(ENOTSUP, "vector state larger than expected");

  SetUpSystemTables();
  TryHost();
}

void Machine::SetGate(unsigned vector, std::uint64_t entry, unsigned stack) {
  auto* gates = static_cast<std::uint64_t*>(memory_->HostPointer(system_.idt));
  // int3 and into may come from ring 3 as instructions; the others only from the processor (DPL 0).
  const std::uint64_t attributes = vector == 3 || vector == 4 ? 0xee : 0x8e;
  gates[2 * vector] = (entry & 0xffff) | (std::uint64_t{TRAPLINE_USER_CS} << 16) |
                      (std::uint64_t{stack} << 32) | (attributes << 40) |
                      ((entry >> 16 & 0xffff) << 48);
  gates[2 * vector + 1] = entry >> 32;
}

void Machine::SetExceptionGates() {
  for (unsigned vector = 0; vector < TRAPLINE_VECTORS; ++vector) {
    SetGate(vector, agent::EntryOf(vector), vector == kPageFault ? 1 : 2);
  }
}

// Nor can the double fault that this makes be delivered.
void Machine::RemovePageFaultGate() {
  auto* gates = static_cast<std::uint64_t*>(memory_->HostPointer(system_.idt));
  for (const unsigned vector : {kDoubleFault, kPageFault})
    gates[2 * vector] = gates[2 * vector + 1] = 0;
}

void Machine::SetUpSystemTables() {
  const auto pages = static_cast<unsigned>(AlignUp(agent::CodeSize(), kPageSize) / kPageSize);
  system_.agent = memory_->AllocatePages(pages);
  agent::CopyCode(static_cast<char*>(memory_->HostPointer(system_.agent)));
  system_.shared = memory_->AllocatePages(1);
  system_.idt = memory_->AllocatePages(1);
  system_.tss = memory_->AllocatePages(1);

  SetExceptionGates();

  auto* tss = static_cast<char*>(memory_->HostPointer(system_.tss));
  const std::uint64_t fault_stack = TRAPLINE_FAULT_STACK_TOP;
  const std::uint64_t exception_stack = TRAPLINE_EXCEPTION_STACK_TOP;
  std::memcpy(tss + 36, &fault_stack, 8);
  std::memcpy(tss + 44, &exception_stack, 8);
  // I/O permission bitmap: only our ports are open (0); the byte after the last one must be all
  // ones.
  constexpr std::size_t kBitmap = 104;
  const std::uint16_t offset = kBitmap;
  std::memcpy(tss + 102, &offset, 2);
  std::memset(tss + kBitmap, 0xff, 0x20 + 1);
  tss[kBitmap + TRAPLINE_PORT_FIRST / 8] = 0;
  static_assert(TRAPLINE_PORT_COUNT == 8 && TRAPLINE_PORT_FIRST % 8 == 0);
}

// Whether the host offers the guest a feature of CPUID leaf 1, ECX.
bool Machine::GuestHas(unsigned feature) const {
  const kvm_cpuid_entry2* features = cpuid_.Find(1);
  return features != nullptr && (features->ecx & feature) != 0;
}

void Machine::SetUpVcpu(Carrier& carrier) {
  Vcpu& vcpu = carrier.vcpu();
  vcpu.FetchRegisters();
  kvm_sregs& special = vcpu.special_registers();
  special.cs = UserSegment(TRAPLINE_USER_CS, 0xb, true);
  special.ss = special.ds = special.es = special.fs = special.gs =
      UserSegment(TRAPLINE_USER_SS, 0x3, false);
  special.tr = {};
  special.tr.base = TRAPLINE_TSS;
  special.tr.limit = 104 + 0x20;
  special.tr.selector = TRAPLINE_TSS_SELECTOR;
  special.tr.type = static_cast<std::uint8_t>(host_.tss_type);
  special.tr.present = 1;
  special.gdt.base = TRAPLINE_GDT;
  special.gdt.limit = 0x7f;
  special.idt.base = TRAPLINE_IDT;
  special.idt.limit = TRAPLINE_VECTORS * 16 - 1;
  special.cr0 = kCr0;
  special.cr3 = carrier.view(View::kWhole).root().value;
  special.cr4 = kCr4;
  special.efer = kEfer;
  if (kvm_offers_fs_gs_base_) special.cr4 |= kCr4FsGsBase;
  special.cr4 |= kCr4OsXsave;
  const bool has_xsave = vcpu.TryStoreSpecialRegisters() && vcpu.TrySetXcr0(vector_mask_);
  if (!has_xsave) {
    if (kvm_offers_xsave_) throw KvmError(EINVAL, "KVM_SET_XCRS");
    // Ring 3 has the host's own XCR0 anyway.
    special.cr4 &= ~kCr4OsXsave;
    vcpu.StoreSpecialRegisters();
  }
  vcpu.SetMsr(kMsrStar, (0x23ull << 48) | (std::uint64_t{TRAPLINE_KERNEL_CS} << 32));
  vcpu.SetMsr(kMsrLstar,
              agent::GuestAddressOf(host_.syscall_arrives_in_ring0 ? trapline_agent_syscall_ring0
                                                                   : trapline_agent_syscall_ring3));
  // In ring 0 a set trap flag would raise #DB inside the entry, where no gate may lead out to
  // ring 3.
  vcpu.SetMsr(kMsrFmask, host_.syscall_arrives_in_ring0 ? kFlagTrap : 0);
  vcpu.TryAlignTimeStampCounter();

  vcpu.registers() = {};
  vcpu.registers().rflags = 0x2;
  vcpu.StoreRegisters();
}

Carrier& Machine::Create() {
  auto created = std::make_unique<Carrier>(kvm_, *vm_, *memory_, system_,
                                           static_cast<unsigned>(carriers_.size()));
  Carrier& carrier = *created;
  carrier.vcpu().SetCpuid(cpuid_);  // once: KVM refuses it after the first run
  if (carriers_.empty()) carrier.vcpu().StartVm();
  if (host_.tss_type != 0) SetUpVcpu(carrier);
  carriers_.push_back(std::move(created));
  return carrier;
}

namespace {

// Runs `vcpu` from `entry` on to its first exit. Returns why it came (KVM_EXIT_...), 0 if KVM
// failed.
std::uint32_t RunToExit(Vcpu& vcpu, const char* entry, std::uint64_t rsp, std::uint64_t rdi) {
  kvm_regs& registers = vcpu.registers();
  registers = {};
  registers.rip = agent::GuestAddressOf(entry);
  registers.rsp = rsp;
  registers.rdi = rdi;
  registers.rflags = 0x202;
  vcpu.MarkRegistersDirty();
  int error = 0;
  do {
    error = vcpu.Run();
  } while (error == EINTR);
  return error == 0 ? vcpu.run().exit_reason : 0;
}

template <std::size_t kSamples = 101, typename Operation>
std::uint64_t MedianNanoseconds(Operation operation) {
  using Clock = std::chrono::steady_clock;
  std::array<std::int64_t, kSamples> samples{};
  for (auto& sample : samples) {
    const auto start = Clock::now();
    operation();
    sample = std::chrono::nanoseconds(Clock::now() - start).count();
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return static_cast<std::uint64_t>(samples[samples.size() / 2]);
}

}  // namespace

bool Machine::RunProbe(Carrier& carrier, const char* entry, std::uint64_t rdi) {
  Vcpu& vcpu = carrier.vcpu();
  return RunToExit(vcpu, entry, TRAPLINE_AGENT_STACK_TOP, rdi) == KVM_EXIT_IO &&
         vcpu.run().io.port == TRAPLINE_PORT_PROBE;
}

bool Machine::FaultsShutDown(Carrier& carrier) {
  constexpr std::uint64_t kStack = 0x123450;  // nothing is mapped without a program
  RemovePageFaultGate();
  Vcpu& vcpu = carrier.vcpu();
  const char* const entry = trapline_agent_probe_skip;
  bool shuts_down = true;
  // More than once: the first one must leave nothing behind.
  for (int i = 0; i < 3 && shuts_down; ++i) {
    shuts_down = RunToExit(vcpu, entry, kStack, 0) == KVM_EXIT_SHUTDOWN &&
                 vcpu.registers().rip == agent::GuestAddressOf(entry) &&
                 vcpu.registers().rsp == kStack && vcpu.special_registers().cr2 == kStack + 8;
  }
  shuts_down = shuts_down && RunProbe(carrier, trapline_agent_probe_out, 0);
  if (!shuts_down) {
    SetExceptionGates();
    SetUpVcpu(carrier);
  }
  return shuts_down;
}

void Machine::TryHost() {
  Carrier& carrier = Create();
  // Ring-3 `out` through the I/O bitmap: an emulated kvm_amd wants TSS type 9, VMX entry wants
  // type 11.
  for (const unsigned type : {9u, 11u}) {
    host_.tss_type = type;
    SetUpVcpu(carrier);
    if (RunProbe(carrier, trapline_agent_probe_out, 0)) break;
    host_.tss_type = 0;
  }
  if (host_.tss_type == 0) {
    throw KvmError(ENOTSUP,
                   "a ring-3 `out` does not leave the guest on this host (unknown kind of KVM)");
  }

  // Where SYSCALL arrives: with the ring-3 entry installed, the exit tells the ring.
  RunProbe(carrier, trapline_agent_probe_syscall, 0);
  if (carrier.vcpu().run().exit_reason != KVM_EXIT_IO ||
      carrier.vcpu().run().io.port != TRAPLINE_PORT_SYSTEM_CALL) {
    throw KvmError(ENOTSUP, "SYSCALL does not reach its entry on this host (unknown kind of KVM)");
  }
  host_.syscall_arrives_in_ring0 = (carrier.vcpu().special_registers().cs.selector & 3) == 0;
  SetUpVcpu(carrier);

  const std::uint64_t before = __rdtsc();
  if (RunProbe(carrier, trapline_agent_probe_tsc, 0)) {
    const kvm_regs& registers = carrier.vcpu().registers();
    const std::uint64_t inside = (registers.rax & 0xffffffff) | (registers.rdx << 32);
    host_.guest_tsc_is_host_tsc = before <= inside && inside <= __rdtsc();
  }
  // On hardware a shutdown may leave nothing of the vCPU's state.
  host_.faults_shut_down = !host_.syscall_arrives_in_ring0 && FaultsShutDown(carrier);
  host_.reads_fs_base = RunProbe(carrier, trapline_agent_probe_fs_base, 0);
  if (!host_.reads_fs_base) SetUpVcpu(carrier);
  host_.exit_nanoseconds =
      MedianNanoseconds<11>([&] { RunProbe(carrier, trapline_agent_probe_out, 0); });
  constexpr std::uint64_t kPauses = 200;
  const std::uint64_t pauses = MedianNanoseconds<5>([] {
    for (std::uint64_t i = 0; i < kPauses; ++i) _mm_pause();
  });
  constexpr std::uint64_t kLongest = 100'000;  // ns
  host_.exit_in_pauses = static_cast<std::uint32_t>(std::min(host_.exit_nanoseconds, kLongest) *
                                                    kPauses / std::max<std::uint64_t>(pauses, 1));
  idle_.push_back(&carrier);
}

std::uint64_t Machine::MeasureExit(Carrier& carrier) {
  return MedianNanoseconds([&] { RunProbe(carrier, trapline_agent_probe_out, 0); });
}

std::uint64_t Machine::MeasureFault(Carrier& carrier) {
  constexpr std::uint64_t kFaults = 200;
  // The #PF gate leads to an entry that only counts and skips the faulting instruction. Vectors are
  // the same for all carriers, so this is for a machine that runs nothing else.
  SetExceptionGates();
  SetGate(kPageFault, agent::GuestAddressOf(trapline_agent_probe_skip), 1);
  const std::uint64_t exit = MeasureExit(carrier);
  const std::uint64_t both =
      MedianNanoseconds([&] { RunProbe(carrier, trapline_agent_probe_fault, kFaults); });
  SetExceptionGates();
  if (host_.faults_shut_down) RemovePageFaultGate();
  return both > exit ? (both - exit) / kFaults : 0;
}

std::uint64_t Machine::MeasureRedirect(Carrier& carrier, unsigned frames) {
  constexpr std::uint64_t kFaults = 200;
  if (!system_.code_cache) ShowCodeCache(false);
  agent::RedirectMemory& memory = agent::Redirects();
  memory.version = 1;
  memory.generation = 1;
  memory.reads_fs_base = host_.reads_fs_base ? 1 : 0;
  frames = std::min(frames, agent::RedirectMemory::kMostFrames);
  for (unsigned i = 0; i < frames; ++i) {
    const std::uint64_t offset = 8 * i;
    memory.frames[i] = {0 - offset, i + 1};
    std::memcpy(carrier.ThreadRegion(TRAPLINE_AGENT_STACK_TOP - offset),
                &memory.frames[i].return_address, 8);
  }
  const std::uint64_t rip = agent::GuestAddressOf(trapline_agent_probe_redirect_fault);
  memory.sets[agent::RedirectMemory::SetOf(rip)][0] = {
      rip,
      static_cast<std::uint32_t>(agent::GuestAddressOf(trapline_agent_probe_redirected)),
      static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(memory.frames)),
      frames,
      0,
      0};
  EnterView(carrier, View::kClosed);
  RedirectPageFaults(true);
  const std::uint64_t exit = MeasureExit(carrier);
  bool redirected = true;
  const std::uint64_t all = MedianNanoseconds([&] {
    redirected = redirected && RunProbe(carrier, trapline_agent_probe_redirect, kFaults);
  });
  RedirectPageFaults(false);
  return redirected && all > exit ? (all - exit) / kFaults : 0;
}

void Machine::SetProgramStackSegment(kvm_sregs& special) {
  special.ss = UserSegment(TRAPLINE_USER_SS, 0x3, false);
}

void Machine::EnterView(Carrier& carrier, View view) {
  kvm_sregs& special = carrier.vcpu().special_registers();
  SetProgramStackSegment(special);
  special.cr3 = carrier.view(view).root().value;
  MarkSegmentsDirty(carrier.vcpu());
}

void Machine::MarkSegmentsDirty(Vcpu& vcpu) const {
  // kvm_amd reports the TSS as busy (type 11) whatever it was set to.
  vcpu.special_registers().tr.type = static_cast<std::uint8_t>(host_.tss_type);
  vcpu.MarkSpecialRegistersDirty();
}

void Machine::RedirectPageFaults(bool on) {
  if (!on && host_.faults_shut_down) {
    RemovePageFaultGate();
  } else {
    SetGate(kPageFault,
            on ? agent::GuestAddressOf(trapline_agent_redirect) : agent::EntryOf(kPageFault), 1);
  }
}

Carrier& Machine::Acquire(bool prefer_new) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kFewCarriers = 256;
  if (idle_.empty() || (prefer_new && carriers_.size() < kFewCarriers && carriers_.size() > 1)) {
    Carrier& created = Create();
    created.in_use = true;
    return created;
  }
  // Else the last one: the processor and KVM still know what it had in use.
  auto chosen = std::prev(idle_.end());
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    const auto& orphaned_by = (*it)->orphaned_by;
    if (orphaned_by && (!(*chosen)->orphaned_by || orphaned_by < (*chosen)->orphaned_by))
      chosen = it;
  }
  Carrier& carrier = **chosen;
  idle_.erase(chosen);
  carrier.in_use = true;
  return carrier;
}

void Machine::Release(Carrier& carrier) {
  const std::lock_guard lock(mutex_);
  carrier.in_use = false;
  idle_.push_back(&carrier);
}

void Machine::ForEachCarrier(const std::function<void(Carrier&)>& visit) {
  const std::lock_guard lock(mutex_);
  for (const auto& carrier : carriers_) visit(*carrier);
}

void Machine::Rebuild(Carrier& survivor, const kvm_sregs& special, bool shared_descriptors,
                      const std::function<void()>& between) {
  if (shared_descriptors) {
    for (const auto& carrier : carriers_) carrier->vcpu_->Abandon();
    vm_->Abandon();
  }
  for (const auto& carrier : carriers_) carrier->vcpu_.reset();
  idle_.clear();
  std::unique_ptr<Carrier> kept;
  for (auto& carrier : carriers_) {
    if (carrier.get() == &survivor) kept = std::move(carrier);
  }
  carriers_.clear();
  vm_.reset();
  if (between) between();
  vm_ = std::make_unique<Vm>(kvm_);
  memory_->AdoptVm(*vm_);
  kept->number_ = 0;
  kept->thread_page_->carrier = 0;
  kept->vcpu_ = std::make_unique<Vcpu>(kvm_, *vm_, 0);
  kept->vcpu().SetCpuid(cpuid_);
  kept->vcpu().StartVm();
  SetUpVcpu(*kept);
  Vcpu& vcpu = kept->vcpu();
  vcpu.special_registers().fs = special.fs;
  vcpu.special_registers().gs = special.gs;
  vcpu.StoreSpecialRegisters();
  carriers_.push_back(std::move(kept));
}

}  // namespace trapline
