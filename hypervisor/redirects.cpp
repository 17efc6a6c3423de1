#include "hypervisor/redirects.h"

#include <algorithm>
#include <utility>

namespace trapline {
namespace {

constexpr std::uint32_t kDecision = 256;  // page faults, from one to the next
// When this many found no room all are forgotten: most are no longer in use.
constexpr unsigned kMostRefused = 64;
// Of those that a redirect has led to pages that were not shared it may be one in so many, after a
// few.
constexpr std::uint32_t kFewMisled = 4, kMisledShare = 4;

}  // namespace

Redirects::Redirects(Machine& machine, RedirectRule rule) : machine_(machine), rule_(rule) {
  memory_.reads_fs_base = machine.host().reads_fs_base ? 1 : 0;
}

void Redirects::Clear(std::uint64_t generation) {
  __atomic_fetch_add(&memory_.version, 1, __ATOMIC_SEQ_CST);
  for (auto& set : memory_.sets) {
    for (agent::Redirect& redirect : set) {
      if (redirect.rip != 0) redirect = {};
    }
  }
  frames_used_ = 0;
  refused_ = 0;
  __atomic_store_n(&memory_.generation, generation, __ATOMIC_SEQ_CST);
}

bool Redirects::Has(const agent::Redirect& redirect, std::uint64_t rsp,
                    std::span<const CallFrame> frames) {
  if (redirect.frame_count != frames.size()) return false;
  const auto* frame = reinterpret_cast<const agent::RedirectFrame*>(std::uint64_t{redirect.frames});
  return std::all_of(frames.begin(), frames.end(), [&](const CallFrame& of_stack) {
    const agent::RedirectFrame& known = *frame++;
    return known.offset == of_stack.slot - rsp && known.return_address == of_stack.return_address;
  });
}

void Redirects::Add(std::uint64_t version, std::uint64_t rip, std::uint64_t rsp,
                    std::uint64_t cached, std::span<const CallFrame> frames) {
  if (version != memory_.version || frames.size() > Memory::kMostFrames) return;
  auto& set = memory_.sets[Memory::SetOf(rip)];
  agent::Redirect* free = nullptr;
  for (agent::Redirect& redirect : set) {
    if (redirect.rip == 0) {
      free = &redirect;
      break;
    }
    if (redirect.rip != rip || !Has(redirect, rsp, frames)) continue;
    if (redirect.cached != 0) ++led_;
    return;
  }
  if (free == nullptr || frames_used_ + frames.size() > Memory::kFrames) {
    if (++refused_ >= kMostRefused) Clear(memory_.generation);
    return;
  }
  agent::RedirectFrame* frame = memory_.frames + frames_used_;
  free->frames = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(frame));
  free->frame_count = static_cast<std::uint32_t>(frames.size());
  for (const CallFrame& of_stack : frames)
    *frame++ = {of_stack.slot - rsp, of_stack.return_address};
  frames_used_ += frames.size();
  free->cached = static_cast<std::uint32_t>(cached);
  free->hits = free->misled = 0;
  __atomic_store_n(&free->rip, rip, __ATOMIC_RELEASE);
  if (rule_ == RedirectRule::kAlways) OpenGate(true);
}

void Redirects::CountFault() {
  // Where a fault without a gate shuts down, one that the gate does not redirect takes some 20 us
  // more, and one that it redirects 20 us less (docs/monitor.md).
  if (++faults_ < kDecision) return;
  if (rule_ == RedirectRule::kWherePaying) {
    if (led_ >= faults_ - faults_ / 4) OpenGate(true);
    if (led_ < faults_ / 2) OpenGate(false);
  }
  faults_ = led_ = 0;
}

void Redirects::CountRedirect() {
  ++led_;
  CountFault();
}

void Redirects::CountMisled(std::uint64_t by) {
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(&memory_.sets);
  if (by - first >= sizeof memory_.sets) return;
  auto& redirect = *reinterpret_cast<agent::Redirect*>(by);
  const std::uint32_t misled = __atomic_add_fetch(&redirect.misled, 1, __ATOMIC_RELAXED);
  if (misled > kFewMisled && misled > redirect.hits / kMisledShare)
    __atomic_store_n(&redirect.cached, 0, __ATOMIC_RELAXED);
}

void Redirects::OpenGate(bool open) {
  if (std::exchange(open_, open) != open) machine_.RedirectPageFaults(open);
}

}  // namespace trapline
