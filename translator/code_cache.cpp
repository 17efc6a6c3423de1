#include "translator/code_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "translator/emitter.h"
#include "translator/region_builder.h"

namespace trapline {
namespace {

constexpr std::uint64_t kTablePairs = 65536;
constexpr unsigned kProbes = 8;
constexpr std::uint64_t kCodePage = 4096;
// So many lookups whose target has no place in the table, each an exit, cost as much as a flush.
constexpr std::uint64_t kMostUnplaced = 4096;
static_assert(CacheMemory::kTableSize == (kTablePairs + kProbes) * 16);

// At a multiple of `alignment`, a power of two of at least a page.
void* MapLow(std::uint64_t size, int protection, std::uint64_t alignment = 4096) {
  size = (size + 4095) & ~std::uint64_t{4095};
  auto* const memory =
      static_cast<char*>(mmap(nullptr, size + alignment, protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0));
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::uint64_t before = -reinterpret_cast<std::uint64_t>(memory) & (alignment - 1);
  if (before != 0) munmap(memory, before);
  munmap(memory + before + size, alignment - before);
  return memory + before;
}

// Bytes of sites that an instruction has: three at most, or those of its elements.
constexpr std::uint64_t kMostSites = std::max(3 * sizeof(AccessSite), sizeof(ElementSites));

// x87, SSE, AVX and AVX-512 state.
constexpr std::uint32_t kVectorComponents = 0xe7;

// Keeps the caller's floating-point control words over a run of the program, which may leave x87
// exceptions pending.
class NativeFloatControl {
 public:
  NativeFloatControl() { asm volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr_), "=m"(x87_)); }
  ~NativeFloatControl() { asm volatile("ldmxcsr %0; fninit; fldcw %1" ::"m"(mxcsr_), "m"(x87_)); }
  NativeFloatControl(const NativeFloatControl&) = delete;
  NativeFloatControl& operator=(const NativeFloatControl&) = delete;

 private:
  std::uint32_t mxcsr_ = 0;
  std::uint16_t x87_ = 0;
};

}  // namespace

CodeCache::CodeCache(TranslatorOptions options)
    : options_(std::move(options)), region_limit_(options_.max_instructions) {
  if (options_.memory) {
    memory_ = *options_.memory;
  } else {
    memory_.code = AddressOf(MapLow(options_.code_size, PROT_READ | PROT_WRITE | PROT_EXEC));
    memory_.table = AddressOf(MapLow(CacheMemory::kTableSize, PROT_READ | PROT_WRITE));
    memory_.sites = AddressOf(MapLow(CacheMemory::kSitesSize, PROT_READ | PROT_WRITE));
    thread_ =
        new (MapLow(sizeof(CacheThread), PROT_READ | PROT_WRITE, alignof(CacheThread))) CacheThread;
    thread_->next_frame = AddressOf(thread_->frames);
    thread_->registers.xsave = thread_->xsave;
    memory_.thread = AddressOf(thread_);
  }
  EmitStubs();
  code_used_ = stubs_size_;
  // Elsewhere zero stands for it: as a key it is that of address 0, which is looked for here only.
  auto* const pairs = reinterpret_cast<std::uint64_t*>(memory_.table);
  for (std::uint64_t number = 0; number < kProbes; ++number) pairs[2 * number] = kNoKey;
}

CodeCache::~CodeCache() {
  if (options_.memory) return;
  munmap(reinterpret_cast<void*>(memory_.code), options_.code_size);
  munmap(reinterpret_cast<void*>(memory_.table), CacheMemory::kTableSize);
  munmap(reinterpret_cast<void*>(memory_.sites), CacheMemory::kSitesSize);
  munmap(thread_, sizeof(CacheThread));
}

void CodeCache::EmitProbe(Emitter& out) const {
  const auto slot = [&](std::size_t offset) { return SlotAddress(offset); };
  const auto saved = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, saved)) + 8u * reg;
  };
  out.Bytes({0x48, 0x8b, 0x0c, 0xd5});  // mov table(,%rdx,8), %rcx
  out.Imm32(memory_.table);
  out.LeaSum(kRcx, kRcx, kRax);
  out.Bytes({0xe3, 2, 0xeb, 0});  // jrcxz over the jump to the end
  const std::uint32_t skip = out.offset();
  out.Bytes({0x48, 0x8b, 0x04, 0xd5});  // mov table + 8(,%rdx,8), %rax
  out.Imm32(memory_.table + 8);
  out.StoreAbsolute(kRax, slot(offsetof(CacheThread, jump)));
  out.LoadAbsolute(kRax, saved(kRax));
  out.LoadAbsolute(kRcx, saved(kRcx));
  out.LoadAbsolute(kRdx, saved(kRdx));
  out.JumpThroughAbsolute(slot(offsetof(CacheThread, jump)));
  out.SetByte(skip - 1, static_cast<std::uint8_t>(out.offset() - skip));
}

// Stubs lie at the start of the code and stay.
void CodeCache::EmitStubs() {
  Emitter out(memory_.code);
  const auto slot = [&](std::size_t offset) { return SlotAddress(offset); };
  const auto saved = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, saved)) + 8u * reg;
  };
  const auto gpr = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, gpr)) + 8u * reg;
  };
  const std::uint64_t flags =
      slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, rflags));
  const std::uint64_t stack_top = slot(offsetof(CacheThread, stack)) + CacheThread::kStackSize;
  const auto vector_state =
      [&](std::uint8_t extension) {            // xsave64 or xrstor64; changes rax, rdx and rcx
        out.MoveImm(kRax, kVectorComponents);  // x87, SSE, AVX, AVX-512
        out.MoveImm(kRdx, 0);
        out.Bytes({0x48, 0x0f, 0xae, static_cast<std::uint8_t>(0x04 | extension << 3), 0x25});
        out.Imm32(slot(offsetof(CacheThread, xsave)));
      };

  static constexpr std::uint8_t kCalleeSaved[] = {kRbp, kRbx, 12, 13, 14, 15};

  // Exit: all registers into the register file, then back to the caller of the entry.
  exit_stub_ = out.here();
  if (options_.memory) out.Bytes({0xe6, options_.exit_port, 0x0f, 0x0b});  // out %al, $port; ud2
  for (std::uint8_t reg = 0; reg < 16; ++reg) out.StoreAbsolute(reg, gpr(reg));
  out.MoveImm(kRsp, stack_top);
  out.Bytes({0x9c});  // pushfq
  out.PopAbsolute(flags);
  out.Bytes({0x68, 0x02, 0x02, 0, 0, 0x9d});  // push $0x202; popfq: neither trap nor direction flag
  if (options_.save_vector_state) vector_state(4);
  out.LoadAbsolute(kRsp, slot(offsetof(CacheThread, host_rsp)));
  for (std::size_t i = std::size(kCalleeSaved); i-- > 0;) out.Pop(kCalleeSaved[i]);
  out.Bytes({0xc3});

  leave_address_ = out.here();
  if (options_.memory) out.Bytes({0xe6, options_.exit_port});
  out.Bytes({0xc2, 8, 0});  // ret $8

  // Entry, a C function without arguments: jumps to CacheThread::jump.
  enter_stub_ = out.here();
  for (const std::uint8_t reg : kCalleeSaved) out.Push(reg);
  out.StoreAbsolute(kRsp, slot(offsetof(CacheThread, host_rsp)));
  if (options_.save_vector_state) vector_state(5);
  out.MoveImm(kRsp, stack_top);
  out.PushAbsolute(flags);
  out.Bytes({0x9d});  // popfq
  for (std::uint8_t reg = 0; reg < 16; ++reg) out.LoadAbsolute(reg, gpr(reg));
  out.JumpThroughAbsolute(slot(offsetof(CacheThread, jump)));

  // Slow paths: called on the slow stack with the site pushed before the return address.
  static constexpr std::uint8_t kCallerSaved[] = {kRax, kRcx, kRdx, kRsi, kRdi, 8, 9, 10, 11};
  const auto slow_path = [&](bool full, bool vector) {
    const std::uint64_t start = out.here();
    out.Bytes({0x9c});
    for (const std::uint8_t reg : kCallerSaved) out.Push(reg);
    // Ten words and two above: the stack is 16-aligned.
    if (full) {
      for (std::uint8_t reg = 0; reg < 16; ++reg) {
        if (reg != kRsp) out.StoreAbsolute(reg, gpr(reg));
      }
      out.LoadAbsolute(kRax, slot(offsetof(CacheThread, program_rsp)));
      out.StoreAbsolute(kRax, gpr(kRsp));
      out.WithBase(0x8b, kRax, kRsp, 8 * 9, false);
      out.StoreAbsolute(kRax, flags);
      for (const auto& [from, to] :
           {std::pair{offsetof(CacheThread, fs_base), offsetof(RegisterFile, fs_base)},
            std::pair{offsetof(CacheThread, gs_base), offsetof(RegisterFile, gs_base)}}) {
        out.LoadAbsolute(kRax, slot(from));
        out.StoreAbsolute(kRax, slot(offsetof(CacheThread, registers) + to));
      }
      out.WithBase(0x8b, kRax, kRsp, 8 * 11, false);
      out.WithBase(0x8b, kRax, kRax, offsetof(AccessSite, rip), false);
      out.StoreAbsolute(kRax, slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, rip)));
    }
    out.Bytes({0xfc});
    if (vector || options_.save_vector_state) vector_state(4);
    out.WithBase(0x8b, kRdi, kRsp, 8 * 11, false);
    out.LoadAbsolute(kRsi, slot(offsetof(CacheThread, access_address)));
    out.MoveImm(kRdx, full ? slot(offsetof(CacheThread, registers)) : 0);
    out.MoveImm(kRax, reinterpret_cast<std::uint64_t>(options_.handler));
    out.Bytes({0xff, 0xd0});  // call *%rax
    if (options_.save_vector_state) vector_state(5);
    out.LoadAbsolute(kRcx, slot(offsetof(CacheThread, leave_requested)));
    const auto back = [&] {
      for (std::size_t i = std::size(kCallerSaved); i-- > 0;) out.Pop(kCallerSaved[i]);
      out.Bytes({0x9d});  // popfq
    };
    out.Bytes({0xe3, 0});  // jrcxz to the usual end
    const std::uint32_t skip = out.offset();
    back();
    out.JumpTo(leave_address_);
    out.SetByte(skip - 1, static_cast<std::uint8_t>(out.offset() - skip));
    back();
    out.Bytes({0xc2, 8, 0});  // ret $8
    return start;
  };
  slow_stub_ = slow_path(false, false);
  for (unsigned log2 = 0; log2 < std::size(shortcut_stubs_); ++log2) {
    for (const bool write : {false, true}) {
      const auto shortcut = options_.shortcut ? options_.shortcut(1u << log2, write)
                                              : std::span<const std::uint8_t>();
      shortcut_stubs_[log2][write] = slow_stub_;
      if (shortcut.empty()) continue;
      shortcut_stubs_[log2][write] = out.here();
      out.Bytes(shortcut);
      out.JumpTo(slow_stub_);
    }
  }
  full_slow_stub_ = slow_path(true, false);
  vector_slow_stub_ = slow_path(true, true);

  // The pairs after the first, then out.
  probe_stub_ = out.here();
  for (unsigned i = 1; i < kProbes; ++i) {
    out.Bytes({0x8d, 0x52, 2});  // lea 2(%rdx), %edx
    EmitProbe(out);
  }
  for (const std::uint8_t reg : {kRax, kRcx, kRdx}) out.LoadAbsolute(reg, saved(reg));
  out.StoreAbsoluteImm(slot(offsetof(CacheThread, exit_kind)),
                       static_cast<std::uint32_t>(ExitKind::kLookup));
  out.JumpTo(exit_stub_);

  std::memcpy(reinterpret_cast<void*>(memory_.code), out.bytes().data(), out.bytes().size());
  stubs_size_ = (out.bytes().size() + 63) & ~std::uint64_t{63};
}

template <class Sites>
const Sites* CodeCache::Place(const Sites& sites) {
  if (sites_used_ + sizeof(Sites) > CacheMemory::kSitesSize) throw std::bad_alloc();
  auto* const placed = new (reinterpret_cast<void*>(memory_.sites + sites_used_)) Sites(sites);
  sites_used_ += sizeof(Sites);
  return placed;
}
template const AccessSite* CodeCache::Place(const AccessSite&);
template const ElementSites* CodeCache::Place(const ElementSites&);

std::uint64_t CodeCache::Find(std::uint64_t rip) const { return entries_.Find(rip); }

bool CodeCache::full() const {
  // The largest instrumented instructions take some 250 bytes, with two sites and an exit.
  const std::uint64_t instructions = options_.max_instructions;
  return code_used_ + instructions * 512 > options_.code_size ||
         sites_used_ + instructions * kMostSites > CacheMemory::kSitesSize ||
         (options_.max_blocks != 0 && blocks_ >= options_.max_blocks) || unplaced_ > kMostUnplaced;
}

std::uint64_t CodeCache::Translate(std::uint64_t rip) {
  if (const std::uint64_t known = Find(rip); known != 0) return known;
  if (full()) {
    if (options_.memory) return 0;
    Flush();
  }
  if (builder_ == nullptr) builder_ = std::make_unique<RegionBuilder>(*this);
  builder_->Restart(memory_.code + code_used_);
  if (!builder_->Discover(rip)) return 0;
  builder_->Emit();
  const auto bytes = builder_->out().bytes();
  std::memcpy(reinterpret_cast<void*>(memory_.code + code_used_), bytes.data(), bytes.size());
  code_used_ += (bytes.size() + 63) & ~std::uint64_t{63};
  statistics_.code_bytes = code_used_;
  builder_->Publish();
  return Find(rip);
}

void CodeCache::StoreDisplacement(std::uint64_t at, std::uint64_t target) {
  const auto value = static_cast<std::uint32_t>(target - (at + 4));
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), value, __ATOMIC_RELEASE);
}

std::uint64_t CodeCache::LinkTarget(std::uint64_t link) const { return links_.at(link).target; }

std::uint64_t CodeCache::FollowLink(std::uint64_t number) {
  const std::uint64_t target = links_.at(number).target;
  const std::uint64_t flushes = statistics_.flushes;
  const std::uint64_t address = Translate(target);
  if (address == 0 || flushes != statistics_.flushes) return address;
  Link& link = links_[number];
  if (link.region != nullptr && !link.kept) {
    StoreDisplacement(link.displacement, address);
    link.linked = true;
    NoteLinked(number, address);
  }
  return address;
}

std::uint64_t CodeCache::FollowLookup(std::uint64_t rip) {
  const std::uint64_t address = Translate(rip);
  if (address != 0) SetTable(rip, address);
  return address;
}

// Between flushes a pair has one key only, so that no thread sees a key with another key's address.
void CodeCache::SetTable(std::uint64_t rip, std::uint64_t address) {
  auto* const pairs = reinterpret_cast<std::uint64_t*>(memory_.table);
  const auto set = [&](std::uint64_t number) {
    std::uint64_t* const pair = pairs + 2 * number;
    __atomic_store_n(&pair[1], address, __ATOMIC_RELEASE);
    __atomic_store_n(&pair[0], ~rip + 1, __ATOMIC_RELEASE);
  };
  if (const auto vacated = vacated_.extract(rip)) return set(vacated.mapped());
  for (std::uint64_t number = rip % kTablePairs, i = 0; i < kProbes; ++i, ++number) {
    const std::uint64_t* const pair = pairs + 2 * number;
    if (pair[0] == ~rip + 1) return;  // another thread has missed it, too
    if (pair[1] != 0) continue;
    placed_.push_back(static_cast<std::uint32_t>(number));
    return set(number);
  }
  ++unplaced_;
}

void CodeCache::ClearTable(std::uint64_t rip) {
  const auto* const pairs = reinterpret_cast<const std::uint64_t*>(memory_.table);
  const auto first = static_cast<std::uint32_t>(rip % kTablePairs);
  for (std::uint32_t number = first; number < first + kProbes; ++number) {
    if (pairs[2 * number] == ~rip + 1) Vacate(number);
  }
}

void CodeCache::Vacate(std::uint32_t number) {
  std::uint64_t* const key = reinterpret_cast<std::uint64_t*>(memory_.table) + 2 * number;
  vacated_[~*key + 1] = number;
  __atomic_store_n(key, kNoKey, __ATOMIC_RELEASE);
}

auto CodeCache::RegionAt(std::uint64_t address) const -> Region* {
  const auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  Region* const region = std::prev(after)->second.get();
  return address < region->end ? region : nullptr;
}

void CodeCache::Remove(Region& region) {
  region.removed = true;
  for (const std::uint64_t number : region.links) {
    Link& link = links_[number];
    StoreDisplacement(link.displacement, link.stub);
    link.linked = false;
    link.region = nullptr;
  }
  for (const std::uint64_t number : region.linked_from) {
    Link& link = links_[number];
    if (link.region == nullptr || !link.linked) continue;
    const std::uint64_t at = link.displacement;
    const auto target =
        at + 4 + static_cast<std::uint64_t>(std::int64_t{*reinterpret_cast<std::int32_t*>(at)});
    if (target < region.begin || target >= region.end) continue;
    StoreDisplacement(at, link.stub);
    link.linked = false;
  }
  for (const auto& [first, last] : region.made_from) {
    for (std::uint64_t rip = first; rip <= last; ++rip) {
      const std::uint64_t entry = entries_.Find(rip);
      if (entry < region.begin || entry >= region.end) continue;
      entries_.Erase(rip);
      ClearTable(rip);
    }
  }
}

void CodeCache::NoteMadeFrom(Region& region) {
  for (const auto& [first, last] : region.made_from) {
    for (std::uint64_t page = first / kCodePage; page <= last / kCodePage; ++page) {
      std::vector<Region*>& regions = made_from_[page];
      if (regions.empty() || regions.back() != &region) regions.push_back(&region);
    }
  }
}

void CodeCache::Invalidate(std::uint64_t start, std::uint64_t end) {
  for (auto page = made_from_.lower_bound(start / kCodePage);
       page != made_from_.end() && page->first * kCodePage < end; ++page) {
    std::erase_if(page->second, [&](Region* region) {
      if (!region->removed && region->IsMadeFrom(start, end)) Remove(*region);
      return region->removed;
    });
  }
}

void CodeCache::RemoveAll() {
  for (Link& link : links_) {
    if (link.region == nullptr) continue;
    StoreDisplacement(link.displacement, link.stub);
    link.linked = false;
    link.region = nullptr;
  }
  for (const auto& [begin, region] : regions_) region->removed = true;
  made_from_.clear();
  const auto* const pairs = reinterpret_cast<const std::uint64_t*>(memory_.table);
  for (const std::uint32_t number : placed_) {
    if (pairs[2 * number] != kNoKey) Vacate(number);
  }
  entries_.Clear();
}

void CodeCache::TakeHot(const std::function<void(std::uint64_t rip)>& visit) {
  std::erase_if(noted_, [&](const NotedSite& noted) {
    if (__atomic_load_n(&noted.site->cold, __ATOMIC_RELAXED) > 0) return false;  // the guest counts
    if (cold_.Find(noted.rip) == AddressOf(noted.site)) {
      cold_.Erase(noted.rip);
      visit(noted.rip);
    }
    return true;
  });
}

void CodeCache::ForgetCold(const std::function<bool(std::uint64_t rip)>& changed) {
  std::erase_if(noted_, [&](const NotedSite& noted) {
    const bool forgotten = changed(noted.rip);
    if (forgotten) cold_.Erase(noted.rip);
    return forgotten;
  });
}

std::optional<std::int16_t> CodeCache::ColdChecks(std::uint64_t rip) const {
  const std::uint64_t site = cold_.Find(rip);
  if (site == 0) return std::nullopt;
  return __atomic_load_n(&reinterpret_cast<const AccessSite*>(site)->cold, __ATOMIC_RELAXED);
}

void CodeCache::Flush() {
  cold_.Clear();
  noted_.clear();
  entries_.Clear();
  made_from_.clear();
  regions_.clear();
  links_.clear();
  site_instructions_.clear();
  sites_used_ = blocks_ = unplaced_ = 0;
  code_used_ = stubs_size_;
  auto* const pairs = reinterpret_cast<std::uint64_t*>(memory_.table);
  for (const std::uint32_t number : placed_) {
    pairs[2 * number] = kNoKey;
    pairs[2 * number + 1] = 0;
  }
  placed_.clear();
  vacated_.clear();
  ++statistics_.flushes;
}

// Those of a region from its begin to that which holds at a cache address, the last one.
std::span<const CodeCache::Mapping> CodeCache::MappingsUpTo(std::uint64_t address) const {
  const Region* const region = RegionAt(address);
  if (region == nullptr) return {};
  const auto offset = static_cast<std::uint32_t>(address - region->begin);
  const auto after = std::upper_bound(
      region->mappings.begin(), region->mappings.end(), offset,
      [](std::uint32_t value, const Mapping& mapping) { return value < mapping.offset; });
  return {region->mappings.begin(), after};
}

std::optional<std::uint64_t> CodeCache::BranchOf(const CacheThread& thread) const {
  // From where the target is known on, mappings are of the target.
  const std::span<const Mapping> mappings = MappingsUpTo(thread.lookup);
  const auto of_branch = std::find_if(
      mappings.rbegin(), mappings.rend(),
      [](const Mapping& mapping) { return !mapping.rip_is_in_rax && !mapping.rip_is_target; });
  return of_branch != mappings.rend() ? std::optional(of_branch->rip) : std::nullopt;
}

std::optional<RegisterFile> CodeCache::Recover(const RegisterFile& registers,
                                               const CacheThread& thread) const {
  const std::span<const Mapping> mappings = MappingsUpTo(registers.rip);
  if (mappings.empty() || mappings.back().unrecoverable) return std::nullopt;
  const Mapping& mapping = mappings.back();
  RegisterFile result = registers;
  result.rip = mapping.rip;
  result.gpr[kRbp] = registers.gpr[mapping.rbp_in];
  if (mapping.flags_in_rax) {
    constexpr std::uint64_t kLahfFlags = 0xd5;
    constexpr std::uint64_t kOverflow = 1u << 11;
    const std::uint64_t rax = registers.gpr[kRax];
    result.rflags = (result.rflags & ~(kLahfFlags | kOverflow)) | (rax >> 8 & kLahfFlags) |
                    ((rax & 1) != 0 ? kOverflow : 0);
  }
  if (mapping.rip_is_in_rax) result.rip = registers.gpr[kRax];
  if (mapping.rip_is_target) result.rip = thread.target;
  for (unsigned reg = 0; reg < 16; ++reg) {
    if ((mapping.saved >> reg & 1) != 0) result.gpr[reg] = thread.saved[reg];
  }
  if (mapping.rsp_saved) result.gpr[kRsp] = thread.program_rsp;
  result.gpr[kRsp] += mapping.rsp_behind;
  if (mapping.rdi_is_mirror) result.gpr[kRdi] -= options_.mirror_offset;
  if (mapping.rcx_is_cache_address) result.gpr[kRcx] = mapping.rip;
  if (mapping.element_done) --result.gpr[kRcx];
  if (mapping.element_done || mapping.compared) {
    constexpr std::uint64_t kZeroFlag = 1u << 6;
    const bool equal = (result.rflags & kZeroFlag) != 0;
    if (result.gpr[kRcx] == 0 || equal == mapping.stops_when_equal) result.rip += mapping.length;
  }
  return result;
}

CodeCache::RunResult CodeCache::Run(RegisterFile& registers, std::uint64_t stop) {
  std::uint64_t address = thread_ == nullptr ? 0 : Translate(registers.rip);
  if (address == 0) return RunResult::kNoCode;
  thread_->fs_base = registers.fs_base;
  thread_->gs_base = registers.gs_base;
  std::memcpy(thread_->registers.gpr, registers.gpr, sizeof registers.gpr);
  thread_->registers.rflags = registers.rflags;
  const NativeFloatControl host_control;
  if (options_.save_vector_state && registers.xsave != nullptr) {
    std::memmove(thread_->xsave, registers.xsave, sizeof thread_->xsave);
  } else if (options_.save_vector_state) {
    asm volatile("xsave64 %0" : "+m"(thread_->xsave) : "a"(kVectorComponents), "d"(0) : "memory");
  }
  for (;;) {
    thread_->jump = address;
    reinterpret_cast<void (*)()>(enter_stub_)();
    ++statistics_.exits;
    std::memcpy(registers.gpr, thread_->registers.gpr, sizeof registers.gpr);
    registers.rflags = thread_->registers.rflags;
    if (options_.save_vector_state) registers.xsave = thread_->xsave;
    switch (static_cast<ExitKind>(thread_->exit_kind)) {
      case ExitKind::kLink:
        registers.rip = LinkTarget(thread_->exit_argument);
        if (registers.rip == stop) return RunResult::kStopped;
        address = FollowLink(thread_->exit_argument);
        break;
      case ExitKind::kLookup:
        registers.rip = thread_->target;
        if (registers.rip == stop) return RunResult::kStopped;
        address = FollowLookup(registers.rip);
        break;
      default:
        registers.rip = thread_->exit_argument;
        return RunResult::kMustStep;
    }
    if (address == 0) return RunResult::kNoCode;
  }
}

}  // namespace trapline
