// The code cache: copies of program code in which memory accesses are instrumented.
// docs/translator.md says how.
//
// Not thread-safe: callers hold a lock around every member but the code itself, which any number of
// threads may run while it grows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "translator/access_site.h"
#include "translator/address_map.h"
#include "translator/cache_thread.h"
#include "translator/constant_registers.h"
#include "translator/instruction.h"
#include "translator/memory_access.h"

namespace trapline {

class Emitter;

// Called on the slow path's stack with the System V calling convention, once for each access the
// filter did not skip. `registers` are the program's for a site with `instruction`, else null.
using AccessHandler = void (*)(const AccessSite* site, std::uint64_t address,
                               const RegisterFile* registers);

// What becomes of an instruction that touches memory.
enum class Instrument : std::uint8_t {
  kNone,    // copied as it is
  kMirror,  // reaches memory through the mirror, unchecked
  kCheck,   // ... after its accesses were checked
};

enum class ExitKind : std::uint64_t {
  kNone,
  kLink,    // a direct branch whose target is not translated; argument: number of the link
  kLookup,  // an indirect branch whose target is not in the table; CacheThread::target
  kStep,    // the instruction at `argument` cannot be run from the cache
};

// Addresses of the cache's memory, all below 2 GiB, zeroed and page-aligned, mapped by whoever
// makes the cache; the code executable. `thread` may be other memory for each thread that runs in
// the cache, and need not be readable here.
struct CacheMemory {
  static constexpr std::size_t kTableSize = (65536 + 8) * 16;
  static constexpr std::size_t kSitesSize = 4u << 20;

  std::uint64_t code = 0;    // TranslatorOptions::code_size bytes
  std::uint64_t table = 0;   // kTableSize; 65,536 pairs {-program address, cache address}
  std::uint64_t sites = 0;   // kSitesSize
  std::uint64_t thread = 0;  // sizeof(CacheThread), at a multiple of its alignment
};

// Accesses that are not looked at any further: `uses[address << 32 >> 32 >> sector_bits]` says what
// the memory is used for, and `need_not_tell` at that what the thread need not tell of it; bits of
// AccessSite::leaves_out. A sector is as long as any access. Of what crosses the end of a sector by
// less than 16 bytes the first sector decides. Of accesses that lie together, `area_uses` is asked
// first, if it is there, by larger parts of memory; it is never less strict.
struct LeavingOut {
  std::uint64_t uses, need_not_tell;  // addresses of arrays of bytes, below 2 GiB
  std::uint8_t sector_bits;           // log2 of the bytes that one byte stands for
  std::int16_t cold_checks;           // AccessSite::cold
  std::uint64_t area_uses = 0;        // 0: none
  std::uint8_t area_bits = 0;
};

struct TranslatorOptions {
  CodeReader read_code;
  // What the instruction at `rip` needs; kCheck for every one if empty.
  std::function<Instrument(std::uint64_t rip)> instrument;
  // Whether the plain load, store or update at `rip` is one, or two, of the atomic operations; none
  // if empty.
  std::function<bool(std::uint64_t rip)> is_atomic;
  // Where a store of such a pointer changes nothing, it counts as a load; none if empty.
  TablePointers table_pointers;
  // With `leaving_out`: AccessSite::cold of the instruction at `rip`, in place of its cold_checks.
  std::function<std::int16_t(std::uint64_t rip)> cold_checks;
  // Atomic operations call the handler a second time when they are done, with a site whose `done`
  // is set.
  bool after_atomic = false;
  AccessHandler handler = nullptr;
  // Code to be run before that for a plain access of `size` bytes that the filter does not skip,
  // position-independent: jumped to on the slow path's stack, with the address to return to and
  // then the site there. It returns itself (popping the site, all registers as they were; no flag
  // is of use to anybody) if the handler need not be called, else reaches its end. Empty: none.
  std::function<std::span<const std::uint8_t>(std::uint32_t size, bool write)> shortcut;
  // Own address + mirror_offset is where a page is open for everyone. GS base must hold it.
  std::uint64_t mirror_offset = 0;
  bool filter = false;  // CacheThread::filter is in use; else every access goes to the handler
  // With `filter`, what hot code need not tell (guest-agent/sector_use.h).
  std::optional<LeavingOut> leaving_out;
  // What is jumped to in place of SYSCALL, with the address to return to in rcx; it leaves the
  // flags in r11, all else as SYSCALL would. 0: SYSCALL itself is run.
  std::uint64_t system_call_entry = 0;
  // In place of this instruction of two bytes the handler is called, with all registers.
  std::uint64_t report_at = 0;
  // Calls and returns keep CacheThread::frames.
  bool shadow_stack = false;
  bool save_vector_state =
      false;  // the handler, or what runs between entries, uses vector registers
  std::uint32_t code_size = 16u << 20;  // bytes
  // Without it the cache maps its own, and Run can be called.
  std::optional<CacheMemory> memory;
  // How the cache is left when `memory` is set: by `out %al` to this port, all registers being the
  // program's.
  std::uint8_t exit_port = 0;
  unsigned max_instructions = 1024;  // in one region
  unsigned max_blocks = 0;           // the cache is full when it has so many; 0: any number
};

struct CacheStatistics {
  std::uint64_t regions = 0;
  std::uint64_t blocks = 0;        // basic blocks in them
  std::uint64_t instructions = 0;  // translated
  std::uint64_t instrumented = 0;
  std::uint64_t stepped = 0;  // translated to an exit, because they cannot be run from the cache
  std::uint64_t links = 0;
  std::uint64_t exits = 0;
  std::uint64_t flushes = 0;
  std::uint64_t code_bytes = 0;
};

class RegionBuilder;

class CodeCache {
 public:
  // Throws std::bad_alloc when there is no memory below 2 GiB.
  explicit CodeCache(TranslatorOptions options);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // Of a cache with its own memory.
  CacheThread& thread() { return *thread_; }

  // The cache address of the program's instruction at `rip`, translated if need be; 0 if its bytes
  // cannot be read, are no instruction that Decode knows, or one whose effects are not known.
  std::uint64_t Translate(std::uint64_t rip);
  // The same without translating.
  std::uint64_t Find(std::uint64_t rip) const;

  // Lets a direct branch reach its target's copy without an exit from now on. `link` as in
  // ExitKind::kLink; the answer is the cache address to go on at, 0 as for Translate.
  std::uint64_t FollowLink(std::uint64_t link);
  std::uint64_t LinkTarget(std::uint64_t link) const;
  // The same for an indirect branch to `rip`.
  std::uint64_t FollowLookup(std::uint64_t rip);
  // The program address of the indirect branch that the thread has left the cache for.
  std::optional<std::uint64_t> BranchOf(const CacheThread& thread) const;

  // The program's registers, given those at a cache address: what it would have natively before the
  // instruction that was interrupted. Nothing if the address is not in a region (a stub, or not the
  // cache).
  // `thread` is the memory of the thread that was interrupted.
  std::optional<RegisterFile> Recover(const RegisterFile& registers,
                                      const CacheThread& thread) const;

  // Removes all regions that hold an instruction with a byte in [start, end). Threads inside leave
  // at their next branch.
  void Invalidate(std::uint64_t start, std::uint64_t end);
  // Removes everything in the same way. The bytes are used again after Flush, for which every
  // thread must have been outside since, so that none runs in them.
  void RemoveAll();
  void Flush();
  // New regions have at most so many instructions from now on, and TranslatorOptions' if that is
  // less.
  void LimitRegions(unsigned instructions) {
    region_limit_ = std::min(instructions, options_.max_instructions);
  }
  // There is no room for another region, or none in the lookup table for too many of its targets.
  bool full() const;

  // visit(rip) for each instruction that has become hot since the last call (AccessSite::cold): all
  // of it that is checked one access at a time.
  void TakeHot(const std::function<void(std::uint64_t rip)>& visit);
  // What has been checked so far is forgotten, of other code at the same addresses.
  void ForgetCold(const std::function<bool(std::uint64_t rip)>& changed);
  // AccessSite::cold of the instruction, unless it is not translated or has become hot.
  std::optional<std::int16_t> ColdChecks(std::uint64_t rip) const;

  // Runs the code at registers.rip natively until it returns to `stop` or meets an instruction that
  // must be stepped, whose address rip then is. All other registers are read from and left in
  // `registers`. If save_vector_state is set, so is the vector state: registers.xsave is an image
  // of CacheThread::kXsaveSize bytes to start with, or null for the caller's own, and the thread's
  // image afterwards.
  enum class RunResult { kStopped, kMustStep, kNoCode };
  RunResult Run(RegisterFile& registers, std::uint64_t stop);

  const CacheStatistics& statistics() const { return statistics_; }
  // Whether `address` is in the code, regions and stubs.
  bool Contains(std::uint64_t address) const {
    return address >= code_begin() && address < code_end();
  }
  // The `out` by which a thread leaves at the end of the slow path when
  // CacheThread::leave_requested is set; on the stack then are the address in a region where it
  // goes on and the site.
  std::uint64_t leave_address() const { return leave_address_; }
  std::uint64_t exit_address() const { return exit_stub_; }
  // Cache address range of the code, for tests and for telling where a signal hit.
  std::uint64_t code_begin() const { return memory_.code; }
  std::uint64_t code_end() const { return memory_.code + options_.code_size; }

 private:
  friend class RegionBuilder;  // makes regions
  struct Region;

  // A direct branch out of a region.
  struct Link {
    std::uint64_t displacement = 0;  // cache address of its rel32
    std::uint64_t stub = 0;          // its exit stub
    std::uint64_t target = 0;        // program address
    Region* region = nullptr;        // null: the region was removed
    bool linked = false;
    bool kept = false;  // leads to code that others cannot come to: only to that of its own region
  };

  // Registers as they are from a cache offset on. There are six for each instruction, so they are
  // small.
  struct Mapping {
    std::uint32_t offset = 0;
    std::uint16_t saved = 0;        // program registers that are in CacheThread::saved
    bool rsp_saved : 1 = false;     // rsp is in CacheThread::program_rsp
    bool flags_in_rax : 1 = false;  // lahf, seto
    bool rdi_is_mirror : 1 = false;
    bool rip_is_target : 1 = false;  // rip is in CacheThread::target
    bool rip_is_in_rax : 1 = false;
    bool unrecoverable : 1 = false;
    bool rcx_is_cache_address : 1 = false;  // right after syscall
    // Of repe and repne cmps and scas: an element is done but rcx not yet counted; counted but not
    // yet decided.
    bool element_done : 1 = false;
    bool compared : 1 = false;
    bool stops_when_equal : 1 = false;
    std::uint64_t rip = 0;
    std::uint8_t length = 0;      // of the instruction at rip, with the three above
    std::uint8_t rsp_behind = 0;  // bytes that rsp has yet to go up
    std::uint8_t rbp_in = kRbp;   // register that holds rbp
  };
  static_assert(sizeof(Mapping) == 24);

  std::span<const Mapping> MappingsUpTo(std::uint64_t address) const;

  // Bytes of the program's code.
  struct CodeRange {
    std::uint64_t first, last;
  };
  static void AddRange(std::vector<CodeRange>& ranges, std::uint64_t first, std::uint64_t last) {
    if (!ranges.empty() && ranges.back().last + 1 == first) {
      ranges.back().last = last;
    } else {
      ranges.push_back({first, last});
    }
  }

  // The copy of some code, [begin, end) in the cache.
  struct Region {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<Mapping> mappings;  // their offsets count from begin
    std::vector<CodeRange> made_from;
    std::vector<std::uint64_t> links;
    std::vector<std::uint64_t> linked_from;  // links of others that lead to it, or did
    bool removed = false;

    bool IsMadeFrom(std::uint64_t start, std::uint64_t end_of_range) const {
      return std::any_of(made_from.begin(), made_from.end(), [&](const CodeRange& range) {
        return range.first < end_of_range && range.last >= start;
      });
    }
  };

  static constexpr std::uint64_t kNoKey =
      1;  // in a pair of the table: never the negative of a program address

  std::uint64_t SlotAddress(std::size_t offset) const { return memory_.thread + offset; }
  void EmitStubs();
  // rdx: twice the number of a pair, rax: a target. Jumps to its copy if the pair is the target's,
  // else falls through.
  void EmitProbe(Emitter& out) const;
  void SetTable(std::uint64_t rip, std::uint64_t address);
  void ClearTable(std::uint64_t rip);
  // The pair with that number, which has a key, loses it.
  void Vacate(std::uint32_t number);
  void StoreDisplacement(std::uint64_t at, std::uint64_t target);
  void Remove(Region& region);
  // Null: the address is not in a region.
  Region* RegionAt(std::uint64_t address) const;
  void NoteMadeFrom(Region& region);
  // `link` leads to `address` from now on, in a region of others.
  void NoteLinked(std::uint64_t link, std::uint64_t address) {
    RegionAt(address)->linked_from.push_back(link);
  }
  const AccessSite* NewSite(const AccessSite& site) { return Place(site); }
  // `site` is that of the check which covers the instruction at `rip`.
  void NoteSite(std::uint64_t rip, const AccessSite* site) {
    cold_.Set(rip, static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(site)));
    noted_.push_back({rip, site});
  }
  const ElementSites* NewSites(const ElementSites& sites) { return Place(sites); }
  template <class Sites>
  const Sites* Place(const Sites& sites);
  // The slow path of a plain access whose address is all that has to be told.
  std::uint64_t StubFor(const AccessSite& site) const {
    const unsigned log2 = std::countr_zero(site.size);
    const bool known = std::has_single_bit(site.size) && log2 < std::size(shortcut_stubs_);
    return known ? shortcut_stubs_[log2][site.write] : slow_stub_;
  }

  TranslatorOptions options_;
  std::unique_ptr<RegionBuilder> builder_;  // its memory is used again for each region
  CacheThread* thread_ = nullptr;           // only with own memory
  CacheMemory memory_;
  unsigned region_limit_ = 0;  // instructions
  std::uint64_t code_used_ = 0;
  std::uint64_t stubs_size_ = 0;
  std::uint64_t sites_used_ = 0;
  std::uint64_t blocks_ = 0;    // since the last flush
  std::uint64_t unplaced_ = 0;  // lookups since then whose target found no room in the table

  std::uint64_t exit_stub_ = 0;  // leaves to whoever drives the cache; exit_kind is set
  std::uint64_t leave_address_ = 0;
  std::uint64_t slow_stub_ = 0;
  // By log2 of the size and whether the access writes: slow_stub_ after the shortcut.
  std::uint64_t shortcut_stubs_[8][2] = {};
  std::uint64_t full_slow_stub_ = 0;    // with all general registers
  std::uint64_t vector_slow_stub_ = 0;  // and the vector state
  std::uint64_t enter_stub_ = 0;
  std::uint64_t probe_stub_ = 0;

  AddressMap entries_;                                        // program -> cache address
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  // by first cache address
  // By pages of code, those that are made from it. Some may be removed.
  std::map<std::uint64_t, std::vector<Region*>> made_from_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> placed_;  // numbers of pairs in use
  // Pairs that lost their key since, by that.
  std::unordered_map<std::uint64_t, std::uint32_t> vacated_;
  std::vector<std::unique_ptr<Instruction>> site_instructions_;
  // Instructions not known to be hot, and the addresses of the sites that will tell.
  AddressMap cold_;
  struct NotedSite {
    std::uint64_t rip;
    const AccessSite* site;
  };
  std::vector<NotedSite> noted_;  // those, and others that have been replaced since
  CacheStatistics statistics_;
};

}  // namespace trapline
