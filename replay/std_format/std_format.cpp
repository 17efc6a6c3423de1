#include "replay/std_format/std_format.h"

#include <algorithm>
#include <charconv>
#include <istream>
#include <iterator>

namespace trapline {
namespace {

constexpr std::uint64_t kWordSize = 8;
constexpr std::uint64_t kFirstVariable = 0x10000000;  // address of the first variable met
constexpr std::uint64_t kFirstLock = 0x700000000000;  // address of the first lock met
constexpr std::uint64_t kLongestAccess = 1 << 20;     // larger ones are cut off (Write)
constexpr std::size_t kShownText = 40;

struct Operation {
  std::string_view name;
  EventKind kind;
};
constexpr Operation kOperations[] = {
    {"r", EventKind::kRead},      {"w", EventKind::kWrite},   {"acq", EventKind::kAcquire},
    {"rel", EventKind::kRelease}, {"fork", EventKind::kFork}, {"join", EventKind::kJoin},
};

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, kShownText)) quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > kShownText ? "...'" : "'");
}

bool IsName(std::string_view text) {
  return !text.empty() && text.find_first_of("|()") == std::string_view::npos;
}

}  // namespace

bool StdReader::Fail(const std::string& why) {
  error_ = "line " + std::to_string(line_) + ": " + why;
  return false;
}

StdReader::Result StdReader::Next(Event* event) {
  if (!error_.empty()) return Result::kError;
  std::string line;
  while (std::getline(*in_, line)) {
    ++line_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    bool skip = false;
    if (!Parse(line, event, &skip)) return Result::kError;
    if (!skip) return Result::kEvent;
  }
  if (in_->bad()) {
    ++line_;
    Fail("cannot read the trace any further");
    return Result::kError;
  }
  return Result::kEnd;
}

std::string_view StdReader::ThreadName(ThreadId thread) const {
  return thread < thread_names_.size() ? std::string_view(thread_names_[thread]) : "";
}

bool StdReader::Parse(std::string_view line, Event* event, bool* skip) {
  const std::size_t first = line.find('|');
  const std::size_t second = first == line.npos ? line.npos : line.find('|', first + 1);
  if (second == line.npos) return Fail("expected thread|operation|location, found " + Quoted(line));
  const std::string_view thread = line.substr(0, first);
  const std::string_view action = line.substr(first + 1, second - first - 1);
  const std::string_view location = line.substr(second + 1);

  *event = {};
  if (!ThreadOf(thread, &event->thread)) return false;

  const auto [end, code] =
      std::from_chars(location.data(), location.data() + location.size(), event->ip);
  if (code != std::errc() || end != location.data() + location.size()) {
    return Fail("the location must be a decimal number below 2^64, found " + Quoted(location));
  }

  const std::size_t open = action.find('(');
  const std::string_view name = action.substr(0, open);
  std::string_view operand;
  if (open != action.npos) {
    if (action.back() != ')') return Fail("no closing parenthesis in " + Quoted(action));
    operand = action.substr(open + 1, action.size() - open - 2);
  }
  if (name == "begin" || name == "end") {
    *skip = true;
    return true;
  }
  const auto* const operation =
      std::find_if(std::begin(kOperations), std::end(kOperations),
                   [&](const Operation& candidate) { return candidate.name == name; });
  if (operation == std::end(kOperations)) {
    return Fail("unknown operation " + Quoted(name) +
                "; known are r, w, acq, rel, fork, join, begin, end");
  }
  if (!IsName(operand)) {
    return Fail("operation " + std::string(name) + " needs a name in parentheses, found " +
                Quoted(action));
  }
  event->kind = operation->kind;
  switch (event->kind) {
    case EventKind::kRead:
    case EventKind::kWrite:
      event->address = kFirstVariable + kWordSize * NumberOf(operand, &variables_);
      event->size = kWordSize;
      break;
    case EventKind::kFork:
    case EventKind::kJoin:
      if (!ThreadOf(operand, &event->other)) return false;
      break;
    default:
      event->address = kFirstLock + kWordSize * NumberOf(operand, &locks_);
      break;
  }
  return true;
}

bool StdReader::ThreadOf(std::string_view name, ThreadId* thread) {
  if (!IsName(name)) return Fail("no thread's name: " + Quoted(name));
  const std::uint64_t number = NumberOf(name, &threads_);
  if (number >= kMaxThreads) {
    return Fail("more than " + std::to_string(kMaxThreads) + " threads");
  }
  if (number == thread_names_.size()) thread_names_.emplace_back(name);
  *thread = static_cast<ThreadId>(number);
  return true;
}

std::uint64_t StdReader::NumberOf(std::string_view name, Names* names) {
  return names->try_emplace(std::string(name), names->size()).first->second;
}

template <class Visit>
void StdWriter::ForEachVariable(std::uint64_t address, std::uint64_t size, Visit&& visit) {
  const std::uint64_t end = address + std::min(size, kLongestAccess);
  while (address < end) {
    const Word& word = words_[address / kWordSize];
    const std::uint64_t step = word.layout == kWhole ? 8 : word.layout == kHalves ? 4 : 1;
    const std::uint64_t start = address / step * step;
    visit(start, word.generation[start % kWordSize]);
    address = start + step;
  }
}

// Makes sure that no variable reaches across the ends of [address, address+size).
void StdWriter::Cut(std::uint64_t address, std::uint64_t size) {
  for (const std::uint64_t edge : {address, address + size}) {
    if (edge % kWordSize == 0) continue;
    Word& word = words_[edge / kWordSize];
    word.layout = std::max(word.layout, edge % 4 == 0 ? kHalves : kBytes);
  }
}

void StdWriter::Renew(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t end = address + size;
  for (auto word = words_.lower_bound(address / kWordSize);
       word != words_.end() && word->first * kWordSize < end; ++word) {
    for (std::uint64_t byte = 0; byte < kWordSize; ++byte) {
      const std::uint64_t at = word->first * kWordSize + byte;
      if (at >= address && at < end) ++word->second.generation[byte];
    }
  }
}

void StdWriter::Scan(const Event& event) {
  if (IsAccess(event.kind)) {
    Cut(event.address, std::min(event.size, kLongestAccess));
  } else if (event.kind == EventKind::kClearHistory || event.kind == EventKind::kCopyHistory) {
    Cut(event.address, event.size);
    copies_ |= event.kind == EventKind::kCopyHistory;
  } else if (event.kind == EventKind::kAcquireShared) {
    std::vector<ThreadId>& readers = readers_[event.address];
    if (std::find(readers.begin(), readers.end(), event.thread) == readers.end()) {
      readers.push_back(event.thread);
    }
  }
}

std::string StdWriter::Location(std::uint64_t ip) {
  if (!number_locations_ || ip == 0) return std::to_string(ip);
  const auto [place, is_new] = location_numbers_.try_emplace(ip, locations_.size() + 1);
  if (is_new) locations_.push_back(ip);
  return std::to_string(place->second);
}

void StdWriter::Line(const Event& event, std::string_view operation, const std::string& operand,
                     std::string* out) {
  *out += 'T' + std::to_string(event.thread) + '|';
  *out += operation;
  *out += '(' + operand + ")|" + Location(event.ip) + '\n';
}

void StdWriter::Accesses(const Event& event, std::string* out) {
  ForEachVariable(event.address, event.size, [&](std::uint64_t address, std::uint32_t generation) {
    std::string variable = 'V' + std::to_string(address);
    if (generation > 0) variable += '.' + std::to_string(generation);
    if (event.kind != EventKind::kWrite && event.kind != EventKind::kAtomicWrite) {
      Line(event, "r", variable, out);
    }
    if (IsWrite(event.kind)) Line(event, "w", variable, out);
  });
}

void StdWriter::Section(const Event& event, const std::string& lock, std::string* out) {
  Line(event, "acq", lock, out);
  Line(event, "rel", lock, out);
}

void StdWriter::Write(const Event& event, std::string* out) {
  const std::string object = std::to_string(event.address);
  const std::string lock = 'L' + object;
  const auto reader_lock = [&](ThreadId reader) { return lock + ".T" + std::to_string(reader); };
  const auto readers = readers_.find(event.address);
  switch (event.kind) {
    case EventKind::kRead:
    case EventKind::kWrite:
      Accesses(event, out);
      break;
    case EventKind::kAtomicRead:
    case EventKind::kAtomicWrite:
    case EventKind::kAtomicRmw: {
      // One mutex for each word touched, in ascending order. Atomics that move take along what they
      // published, so with copies one mutex stands for all.
      const std::uint64_t size = std::clamp<std::uint64_t>(event.size, 1, kLongestAccess);
      const std::uint64_t first = copies_ ? 0 : event.address / kWordSize;
      const std::uint64_t last = copies_ ? 0 : (event.address + size - 1) / kWordSize;
      for (std::uint64_t word = first; word <= last; ++word) {
        Line(event, "acq", 'A' + std::to_string(word * kWordSize), out);
      }
      Accesses(event, out);
      for (std::uint64_t word = last + 1; word > first; --word) {
        Line(event, "rel", 'A' + std::to_string((word - 1) * kWordSize), out);
      }
      break;
    }
    case EventKind::kAcquire:
      Line(event, "acq", lock, out);
      if (readers == readers_.end()) break;
      for (const ThreadId reader : readers->second) Line(event, "acq", reader_lock(reader), out);
      break;
    case EventKind::kRelease:
      if (readers != readers_.end()) {
        for (auto reader = readers->second.rbegin(); reader != readers->second.rend(); ++reader) {
          Line(event, "rel", reader_lock(*reader), out);
        }
      }
      Line(event, "rel", lock, out);
      break;
    case EventKind::kAcquireShared:
      Line(event, "acq", reader_lock(event.thread), out);
      break;
    case EventKind::kReleaseShared:
      Line(event, "rel", reader_lock(event.thread), out);
      break;
    case EventKind::kHappensBefore:
    case EventKind::kHappensAfter:
      Section(event, 'K' + object, out);
      break;
    case EventKind::kBarrierEnter:
    case EventKind::kBarrierLeave:
      Section(event, 'B' + object, out);
      break;
    case EventKind::kFork:
      Line(event, "fork", 'T' + std::to_string(event.other), out);
      break;
    case EventKind::kJoin:
      Line(event, "join", 'T' + std::to_string(event.other), out);
      break;
    case EventKind::kClearHistory:
    case EventKind::kCopyHistory:
      Renew(event.address, event.size);
      break;
    default:  // the format has no word for it, and what it means for others, kJoinBegin, say
      break;
  }
}

}  // namespace trapline
