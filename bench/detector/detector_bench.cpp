// Events per second of each detector, on one core and from memory.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/detector/workload.h"
#include "detector/detector.h"

namespace trapline {
namespace {

const std::vector<Event>& Typical() {
  static const std::vector<Event> events = MakeWorkload({});
  return events;
}

// Little locality: a working set far beyond the caches, and a change of thread every few events.
const std::vector<Event>& Hard() {
  static const std::vector<Event> events =
      MakeWorkload({.threads = 16, .working_set = 64 << 20, .burst = 20});
  return events;
}

void Replay(benchmark::State& state, const std::string& name,
            const std::vector<Event>& (*trace)()) {
  const std::vector<Event>& events = trace();
  DetectorOptions options;
  options.sampling_rate = 0.03;  // PACER
  std::uint64_t races = 0;
  while (state.KeepRunning()) {
    const auto detector = MakeDetector(name, options);
    detector->OnEvents(events, 0);
    detector->Finish();
    races = detector->race_count();
  }
  state.counters["races"] = static_cast<double>(races);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * events.size()));
}

// One detector over a long execution, the same events again and again: what replaying a long log
// costs once the memory it touches is known.
void Steady(benchmark::State& state, const std::string& name,
            const std::vector<Event>& (*trace)()) {
  const std::vector<Event>& events = trace();
  const auto detector = MakeDetector(name);
  std::uint64_t index = 0;
  while (state.KeepRunning()) {
    detector->OnEvents(events, index);
    index += events.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * events.size()));
}

}  // namespace
}  // namespace trapline

int main(int argc, char** argv) {
  using trapline::Hard;
  using trapline::Typical;
  const auto add = [](const std::string& title, auto function, const std::string& name,
                      auto trace) {
    benchmark::RegisterBenchmark(title.c_str(), function, name, trace)
        ->Unit(benchmark::kMillisecond);
  };
  for (const trapline::DetectorInfo& info : trapline::Detectors()) {
    const std::string name(info.name);
    if (name.starts_with("lard")) continue;  // FastTrack's analysis
    add("typical/" + name, trapline::Replay, name, Typical);
  }
  for (const char* filter : {"tree+", "tree-spans+", "tree-exact+"}) {
    const std::string name = std::string(filter) + "fasttrack";
    add("typical/" + name, trapline::Replay, name, Typical);
  }
  for (const char* name : {"empty", "fasttrack", "acculock"}) {
    add(std::string("hard/") + name, trapline::Replay, name, Hard);
    add(std::string("typical-long/") + name, trapline::Steady, name, Typical);
    add(std::string("hard-long/") + name, trapline::Steady, name, Hard);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
