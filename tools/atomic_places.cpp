#include "tools/atomic_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "symbols/linked_library.h"

namespace trapline {
namespace {

constexpr std::size_t kMostAnswers = 1 << 20;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsLibrarys(const SourceFrame& frame) { return IsLibraryFunction(frame.function); }

// The first frame of the program's own: operations of <atomic> are inlined there.
std::string DescribeCode(const CodePlace& place) {
  const auto own = std::find_if(place.frames.begin(), place.frames.end(),
                                [](const SourceFrame& frame) { return !IsLibrarys(frame); });
  const SourceFrame& frame = own != place.frames.end() ? *own : place.frames.front();
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += fmt::format(" {}:{}", BaseName(frame.file), frame.line);
  if (place.module != nullptr)
    text += fmt::format(" ({}+0x{:x})", BaseName(place.module->path), place.offset);
  return text;
}

}  // namespace

AtomicPlaces::Said AtomicPlaces::OfName(const std::string& name) const {
  const bool atomic = atomic_.Match(name);
  if (plain_.Match(name)) return Said::kPlain;
  return atomic ? Said::kAtomic : Said::kNothing;
}

AtomicPlaces::Said AtomicPlaces::OfByte(std::uint64_t address) const {
  if (plain_.Cover(address, address + 1)) return Said::kPlain;
  return atomic_.Cover(address, address + 1) ? Said::kAtomic : Said::kNothing;
}

AtomicPlaces::Said AtomicPlaces::OfCode(std::uint64_t ip) {
  if (empty()) return Said::kNothing;
  if (const auto known = code_.find(ip); known != code_.end()) return known->second;
  Said said = Said::kNothing;
  for (const SourceFrame& frame : symbolizer_.ResolveCode(ip).frames) {
    for (const std::string& name : {frame.function, frame.file, BaseName(frame.file)})
      said = std::max(said, OfName(name));
  }
  if (code_.size() >= kMostAnswers) code_.clear();
  return code_[ip] = said;
}

AtomicPlaces::Said AtomicPlaces::OfData(std::uint64_t address) {
  if (empty()) return Said::kNothing;
  if (const auto known = data_.find(address); known != data_.end()) return known->second;
  const auto variable = symbolizer_.ResolveData(address);
  const Said said = std::max(variable ? OfName(variable->symbol) : Said::kNothing, OfByte(address));
  if (data_.size() >= kMostAnswers) data_.clear();
  return data_[address] = said;
}

bool AtomicPlaces::Presume(std::uint64_t ip, Presumption why) {
  const bool was_told = IsPresumed(ip);
  Presumption& known = presumed_.try_emplace(ip, why).first->second;
  if (was_told) return false;
  known = why;
  return why != Presumption::kTbbRelaxed;
}

void AtomicPlaces::Note(std::uint64_t ip, EventKind kind, std::uint64_t address,
                        std::uint64_t size) {
  if (!options_.explain) return;
  Noted& noted = noted_[ip];
  noted.store = kind == EventKind::kAtomicWrite;
  noted.address = address;
  noted.size = size;
  ++noted.count;
}

std::string AtomicPlaces::Reason(std::uint64_t ip, const Noted& noted) {
  if (OfCode(ip) == Said::kAtomic) return "--atomic names its code";
  if (OfData(noted.address) == Said::kAtomic) return "--atomic names what it accesses";
  const auto variable = symbolizer_.ResolveData(noted.address);
  const std::string name = !variable                      ? ""
                           : variable->expression.empty() ? variable->symbol
                                                          : variable->expression;
  if (symbolizer_.IsAtomicByDebugInfo(ip)) {
    const CodePlace place = symbolizer_.ResolveCode(ip);
    const SourceFrame& frame = place.frames.front();
    // The library's own lines name such operations, too.
    if (!IsLibrarys(frame) && symbolizer_.IsAtomicBySource(ip))
      return "source: its line names an atomic operation";
    return fmt::format("debug info: it comes from {} in {}",
                       frame.function.empty() ? "code" : frame.function, frame.file);
  }
  if (symbolizer_.IsAtomicVariable(noted.address, 1))
    return fmt::format("debug info: '{}' is atomic ({})", name,
                       variable && !variable->type.empty() ? variable->type : "a guard");
  if (const auto presumed = presumed_.find(ip); presumed != presumed_.end()) {
    switch (presumed->second) {
      case Presumption::kRust:
        return "Rust without debug info: it met an access that nothing orders, which safe code "
               "cannot";
      case Presumption::kMetAtomic:
        return "no debug info: it met an atomic operation on the word that nothing orders";
      case Presumption::kMergedStore:
        return "line 0 in debug info: it met an atomic operation on the word that nothing orders";
      case Presumption::kWaitedFor:
        return "no debug info: a loop that does nothing else waits for the word";
      case Presumption::kOrderSwitch:
        return "no debug info: clang's code for any order, not optimised";
      case Presumption::kTbbRelaxed:
        return "oneTBB without debug info: a relaxed operation of its headers or of libstdc++'s "
               "parallel algorithms, by the instruction's form";
    }
  }
  const std::string what = name.empty() ? "the word" : fmt::format("'{}'", name);
  if (noted.store) return what + " is given back by a thread that exchanged it before";
  return what + " was only written by atomic instructions";
}

void AtomicPlaces::NoteOrder(std::uint64_t ip, EventKind kind, MemoryOrder order,
                             const Symbolizer::OrderAnswer& why) {
  if (!options_.explain) return;
  const bool first_only = why.first_order != why.order;
  orders_.insert(fmt::format(
      "{}, {}{}: {}\n    {}{}\n",
      kind == EventKind::kAtomicRead    ? "load"
      : kind == EventKind::kAtomicWrite ? "store"
                                        : "read-modify-write",
      order == MemoryOrder::kRelaxed   ? "relaxed"
      : order == MemoryOrder::kAcquire ? "acquire only"
                                       : "release only",
      first_only ? " the first time in a thread" : "", DescribeCode(symbolizer_.ResolveCode(ip)),
      why.by_text
          ? fmt::format("source: {}:{} says so", BaseName(why.statement.file), why.statement.line)
      : why.of_waiters ? "libstdc++ counts waiting threads, and orders nothing by that"
                       : "debug info: the order is a constant",
      first_only ? ", and all release fences come after it in its function" : ""));
}

void AtomicPlaces::Explain() {
  for (const auto& [ip, noted] : noted_) {
    const std::string line =
        fmt::format("{} of {} bytes: {}\n    {}", noted.store ? "store" : "load ", noted.size,
                    DescribeCode(symbolizer_.ResolveCode(ip)), Reason(ip, noted));
    explained_[line] += noted.count;
  }
  noted_.clear();
}

std::string AtomicPlaces::Explanation() {
  if (!options_.explain) return {};
  Explain();
  std::string text =
      fmt::format("trapline: plain instructions taken for atomic ones: {}\n", explained_.size());
  for (const auto& [line, count] : explained_) {
    const std::size_t end = line.find('\n');
    text += fmt::format("  {}, {} time{}{}\n", line.substr(0, end), count, count == 1 ? "" : "s",
                        line.substr(end));
  }
  if (!orders_.empty()) {
    text += fmt::format(
        "trapline: atomic operations with a weaker order than their instruction's, which no fence "
        "in the sources makes up for: {}\n",
        orders_.size());
  }
  for (const std::string& line : orders_) text += "  " + line;
  return text;
}

void AtomicPlaces::OnUnmap(std::uint64_t start, std::uint64_t end) {
  code_.clear();
  data_.clear();
  presumed_.erase(presumed_.lower_bound(start), presumed_.lower_bound(end));
}

}  // namespace trapline
