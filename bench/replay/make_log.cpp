// Writes a trap log of a made-up program, of any length: what the benchmarks replay.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "replay/log_writer.h"
#include "tests/replay/synthetic_program.h"

int main(int argc, char** argv) {
  CLI::App app("write the trap log of a made-up parallel program", "make-log");
  trapline::SyntheticOptions options;
  options.events = 100'000'000;
  std::string path;
  app.add_option("LOG", path)->required();
  app.add_option("--events", options.events)->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--burst", options.burst, "mean number of events before another thread's turn")
      ->capture_default_str();
  app.add_option("--loops", options.loops)->capture_default_str();
  app.add_option("--array", options.array_bytes)->capture_default_str();
  app.add_option("--table", options.table_bytes)->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  trapline::SyntheticProgram program(options);
  trapline::LogMetadata metadata;
  metadata.program = "synthetic";
  metadata.host_kind = "none";
  metadata.policy = "exact";
  metadata.filter = "all";
  metadata.clock = "none";
  trapline::LogWriter writer;
  trapline::Status status = writer.Create(path, trapline::RecordingId::Random(), metadata);
  std::vector<trapline::Event> events;
  std::uint64_t accesses = 0;
  while (status.ok() && program.Next(&events)) {
    for (const trapline::Event& event : events) {
      writer.Append(event);
      accesses += trapline::IsAccess(event.kind) ? 1 : 0;
    }
    events.clear();
    status = writer.status();
  }
  if (status.ok()) status = writer.Finish();
  if (!status.ok()) {
    fmt::print(stderr, "make-log: {}\n", status.message());
    return 1;
  }
  fmt::print("{} events, {} of them accesses, {:.2f} bytes each before compression\n",
             writer.events(), accesses,
             static_cast<double>(writer.raw_bytes()) / static_cast<double>(writer.events()));
  return 0;
}
