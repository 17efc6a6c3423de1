// Fuzz target: whatever the text, the reader ends, and what it accepted can be analysed and written
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "detector/detector.h"
#include "replay/std_format/std_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trapline::StdReader;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  StdReader reader(&in);
  std::vector<trapline::Event> events;
  trapline::Event event;
  StdReader::Result result;
  while ((result = reader.Next(&event)) == StdReader::Result::kEvent) events.push_back(event);
  if ((result == StdReader::Result::kError) == reader.error().empty()) std::abort();

  for (const char* name : {"fasttrack", "acculock", "tree+goldilocks"}) {
    trapline::MakeDetector(name)->OnEvents(events, 0);
  }

  trapline::StdWriter writer;
  for (const trapline::Event& e : events) writer.Scan(e);
  std::string text;
  for (const trapline::Event& e : events) writer.Write(e, &text);
  std::istringstream again(text);
  StdReader second(&again);
  std::size_t count = 0;
  while ((result = second.Next(&event)) == StdReader::Result::kEvent) ++count;
  if (result != StdReader::Result::kEnd || count != events.size()) std::abort();
  return 0;
}
