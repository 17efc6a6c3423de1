// The part of the code cache's slow path that tells of instructions with masks, vector indices and
// bit strings, element by element (translator/elements.h). Freestanding, copied into the guest with
// repeats.cpp: no library, no data, general registers only.
#include "translator/elements.h"

#include "guest-agent/agent.h"
#include "guest-agent/repeats.h"
#include "translator/access_site.h"
#include "translator/cache_thread.h"

static_assert(trapline::AccessSite::kElements == TRAPLINE_SITE_ELEMENTS);

namespace trapline::agent {
namespace {

CacheThread& Cache() { return *reinterpret_cast<CacheThread*>(TRAPLINE_CACHE_THREAD); }

// What the thread need not tell of the subsector.
unsigned RightsTo(std::uint64_t address) {
  const auto& page = *reinterpret_cast<const ThreadPage*>(TRAPLINE_THREAD_PAGE);
  return page.need_not_tell[Repeats().sectors.subsectors[SectorMemory::SubsectorOf(address)]];
}

// What the code cache does of other accesses before its slow path (docs/translator.md,
// "Instrumented instructions"): whether this one need not be told of.
bool NeedNotTell(const AccessSite& site, std::uint64_t address) {
  if (site.atomic) return false;
  // Without settled memory there is no table of it.
  if (site.leaves_out != 0 &&
      (RightsTo(address) & RightsTo(address + site.size - 1) & site.leaves_out) != 0) {
    return true;
  }
  const CacheThread& thread = Cache();
  return thread.filter[site.write ? 1 : 0][CacheThread::FilterOffset(address, site.size) / 8] ==
         thread.signature[CacheThread::SignatureIndex(site.size)] + address;
}

}  // namespace
}  // namespace trapline::agent

// `tell`: trapline_agent_cache_access.
[[gnu::section("trapline_repeats"), gnu::flatten]] void trapline_agent_elements(
    const trapline::AccessSite* site, const trapline::RegisterFile* registers,
    void (*tell)(const trapline::AccessSite*, std::uint64_t, const trapline::RegisterFile*)) {
  using namespace trapline;
  using namespace trapline::agent;
  const auto& sites = *reinterpret_cast<const ElementSites*>(site);
  const MemoryOperand& operand = sites.operand;
  const VectorState vectors(Cache().xsave, sites.layout);
  const auto access = [tell](const AccessSite& one, std::uint64_t address) {
    if (!NeedNotTell(one, address)) tell(&one, address, nullptr);
  };
  unsigned count = 0;
  std::uint64_t first = 0;
  if (sites.whole.size != 0) {
    ForEachElement(operand, *registers, sites.next_rip, vectors, [&](std::uint64_t address) {
      if (count++ == 0) first = address;
    });
    if (count == operand.element_count) {
      access(sites.whole, first);
      return;
    }
  }
  ForEachElement(operand, *registers, sites.next_rip, vectors,
                 [&](std::uint64_t address) { access(sites.element, address); });
}
