#include "replay/event_source.h"

#include <span>
#include <vector>

namespace trapline {

void EventSource::CollectLateRepeats(const LogIndex& index, Sequence last) {
  constexpr std::size_t kBatch = 2048;
  LogReader reader(index, 0, last);
  std::vector<Event> events(kBatch);
  while (const std::size_t count = reader.Read(events.data(), events.size()))
    late_.Note(std::span(events.data(), count));
  // What is wrong with the log, its second reader will find, too.
  static_cast<void>(late_.Finish());
}

}  // namespace trapline
