// What the trap log costs: recording per event, bytes per access, replay in events per second of
// processor time of one thread.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "detector/detector.h"
#include "replay/log_index.h"
#include "replay/log_reader.h"
#include "replay/log_recorder.h"
#include "replay/log_segment.h"
#include "replay/log_writer.h"
#include "replay/replayer.h"
#include "replay/sharded_detector.h"
#include "tests/replay/synthetic_program.h"

namespace trapline {
namespace {

struct Settings {
  std::uint64_t events = 100'000'000;
  std::string directory = "/tmp";
  std::vector<std::string> detectors = {"empty", "fasttrack"};
};

double Seconds(std::uint64_t since) { return static_cast<double>(MonotonicNs() - since) / 1e9; }
double PeakMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

[[noreturn]] void Die(const std::string& message) {
  fmt::print(stderr, "replay-bench: {}\n", message);
  exit(1);
}

void MakeLog(const std::string& path, const SyntheticOptions& options) {
  SyntheticProgram program(options);
  LogWriter writer;
  Status status = writer.Create(path, RecordingId::Random(), {});
  std::vector<Event> events;
  std::uint64_t accesses = 0;
  while (status.ok() && program.Next(&events)) {
    for (const Event& event : events) {
      writer.Append(event);
      accesses += IsAccess(event.kind) ? 1 : 0;
    }
    events.clear();
    status = writer.status();
  }
  if (status.ok()) status = writer.Finish();
  if (!status.ok()) Die(status.message());
  fmt::print("  {:.2f} bytes per access before compression",
             static_cast<double>(writer.raw_bytes()) / static_cast<double>(accesses));
}

void ReplayOne(const std::string& name, const SyntheticOptions& options, const Settings& settings) {
  const std::string path = fmt::format("{}/trapline-bench-{}.log", settings.directory, getpid());
  fmt::print("{}: {} threads, turns of {} events, {} KiB of arrays, {} KiB of tables\n", name,
             options.threads, options.burst, options.threads * options.array_bytes * 8 >> 10,
             options.table_bytes >> 10);
  MakeLog(path, options);
  LogIndex index;
  const std::uint64_t opened = MonotonicNs();
  if (Status status = index.Open(path); !status.ok()) Die(status.message());
  const double verify = Seconds(opened);
  const auto events = static_cast<double>(index.events());
  fmt::print(", {:.2f} after\n", static_cast<double>(index.file_bytes()) / events);
  {
    const std::uint64_t started = ThreadCpuNs();
    LogReader reader(index);
    std::vector<Event> batch(2048);
    while (reader.Read(batch.data(), nullptr, batch.size()) != 0) {
    }
    const double seconds = static_cast<double>(ThreadCpuNs() - started) / 1e9;
    fmt::print("  {:<28}{:>8.1f} Mevent/s {:>6.1f} ns/event, peak memory {:.0f} MiB\n",
               "read and decode", events / seconds / 1e6, seconds * 1e9 / events, PeakMiB());
  }
  fmt::print("  {:<28}{:>8.1f} Mevent/s {:>6.1f} ns/event\n", "verify checksums",
             events / verify / 1e6, verify * 1e9 / events);
  for (const std::string& detector : settings.detectors) {
    ReplayOptions replay;
    replay.detectors = {detector};
    ReplayResult result;
    const std::uint64_t started = ThreadCpuNs();
    if (Status status = Replay(index, replay, &result); !status.ok()) Die(status.message());
    const double seconds = static_cast<double>(ThreadCpuNs() - started) / 1e9;
    fmt::print(
        "  {:<28}{:>8.1f} Mevent/s {:>6.1f} ns/event, of which {:.1f} reading; {} races, "
        "detector holds {:.0f} MiB\n",
        "replay " + detector, events / seconds / 1e6, seconds * 1e9 / events,
        static_cast<double>(result.read_ns) / events, result.detectors[0].races.size(),
        static_cast<double>(result.detectors[0].memory_bytes) / (1 << 20));
  }
  unlink(path.c_str());
}

// Appends made-up events as fast as possible, against the same loop with an online detector in its
// place.
void Record(unsigned threads, bool ordered, const Settings& settings) {
  const std::uint64_t each = std::min<std::uint64_t>(settings.events / 5, 20'000'000) / threads;
  SyntheticOptions options;
  options.threads = 2;
  options.events = 1 << 20;
  SyntheticProgram program(options);
  std::vector<Event> events;
  while (program.Next(&events)) {
  }
  const std::string path = fmt::format("{}/trapline-bench-{}.log", settings.directory, getpid());
  LogRecorder recorder;
  RecorderOptions recorder_options;
  recorder_options.segment.memory_bytes = 256 << 20;
  if (Status status = recorder.Start(path, {}, recorder_options); !status.ok())
    Die(status.message());
  std::vector<std::uint64_t> cpu(threads);
  const auto work = [&](ThreadId thread) {
    auto log = std::make_unique<ThreadLog>();
    log->Open(recorder.segment().view(), thread);
    std::uint64_t busy = 0;
    for (std::uint64_t done = 0; done < each;) {
      const std::uint64_t count = std::min<std::uint64_t>(each - done, 4096);
      const std::size_t from = done % (events.size() - 4096);
      const std::uint64_t started = MonotonicNs();
      for (std::uint64_t i = 0; i < count; ++i) {
        if (!log->Reserve() && !recorder.MakeRoom(*log)) continue;
        Event event = events[from + i];
        event.thread = thread;
        if (ordered || !IsAccess(event.kind)) {
          log->AppendOrdered(event);
        } else {
          log->AppendLocal(event);
        }
      }
      busy += MonotonicNs() - started;
      done += count;
    }
    log->Finish();
    cpu[thread] = busy;
  };
  const std::uint64_t started = MonotonicNs();
  std::vector<std::thread> workers;
  for (ThreadId thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);
  for (std::thread& worker : workers) worker.join();
  const double wall = Seconds(started);
  const std::uint64_t lost = recorder.lost_events();
  if (Status status = recorder.Stop(); !status.ok()) fmt::print(stderr, "{}\n", status.message());
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) Die(status.message());
  std::uint64_t busy = 0;
  for (const std::uint64_t ns : cpu) busy += ns;
  const auto all = static_cast<double>(each * threads);
  fmt::print(
      "record {:>2} threads, {:<8} {:>6.1f} ns/event in the workload, {:>6.1f} Mevent/s, {:.2f} "
      "bytes per event before compression, {} lost\n",
      threads, ordered ? "ordered" : "local", static_cast<double>(busy) / all, all / wall / 1e6,
      static_cast<double>(index.raw_bytes()) / static_cast<double>(index.events()), lost);
  unlink(path.c_str());
}

int Main(int argc, char** argv) {
  CLI::App app("costs of the trap log", "replay-bench");
  Settings settings;
  app.add_option("--events", settings.events)->capture_default_str();
  app.add_option("--directory", settings.directory)->capture_default_str();
  app.add_option("--detector", settings.detectors)->delimiter(',');
  CLI11_PARSE(app, argc, argv);

  SyntheticOptions options;
  options.events = settings.events;
  ReplayOne("usual", options, settings);
  options.burst = 1;
  ReplayOne("finely interleaved", options, settings);
  options.burst = 1000;
  options.threads = 2;
  ReplayOne("long turns", options, settings);
  options = {};
  options.events = settings.events;
  options.threads = 64;
  options.table_bytes = 64 << 20;
  options.array_bytes = 1 << 20;
  ReplayOne("much memory", options, settings);
  for (const unsigned threads : {1U, 2U}) {
    Record(threads, true, settings);
    Record(threads, false, settings);
  }
  return 0;
}

}  // namespace
}  // namespace trapline

int main(int argc, char** argv) { return trapline::Main(argc, argv); }
