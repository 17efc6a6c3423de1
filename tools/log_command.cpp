#include "tools/log_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/event_source.h"
#include "replay/log_cut.h"
#include "replay/log_drain.h"
#include "replay/log_index.h"
#include "replay/log_reader.h"
#include "replay/log_segment.h"
#include "replay/log_writer.h"
#include "replay/std_format/std_format.h"
#include "tools/command_line.h"

namespace trapline {
namespace {

constexpr std::array<const char*, kEventKinds> kKindNames = {
    "read",          "write",         "atomic-read",    "atomic-write",   "atomic-rmw",
    "acquire",       "release",       "acquire-shared", "release-shared", "happens-before",
    "happens-after", "fork",          "join",           "thread-end",     "barrier-enter",
    "barrier-leave", "clear-history", "copy-history",   "identity",       "track",
    "untrack",       "track-thread",  "untrack-thread", "sampling-begin", "sampling-end",
    "missing-begin", "missing-end",   "moment",         "earlier-read",   "earlier-write",
    "join-begin"};
constexpr std::array<const char*, 5> kOrderNames = {"relaxed", "acquire", "release", "acq-rel",
                                                    "seq-cst"};

int Fail(const std::string& message) {
  Complain("trapline log: {}\n", message);
  return 1;
}
int Check(const Status& status) { return status.ok() ? 0 : Fail(status.message()); }

int FailSameFile(const std::string& output) {
  return Fail(
      fmt::format("cannot write {}: it is the file to be read; give another output", output));
}

// Empty if all of `wanted` are threads of the recording.
std::string UnknownThread(const LogIndex& index, const std::vector<ThreadId>& wanted) {
  const std::vector<ThreadId>& recorded = index.metadata().threads;  // only where there are parts
  for (const ThreadId thread : wanted) {
    if (index.threads().contains(thread) ||
        std::find(recorded.begin(), recorded.end(), thread) != recorded.end())
      continue;
    return fmt::format("{} has no thread {}; `trapline log dump` shows those it has", index.path(),
                       thread);
  }
  return {};
}

std::string PartText(const LogPart& part) {
  std::string text =
      fmt::format("sequence {} to {}", part.first,
                  part.last == kLastSequence ? "the end" : fmt::to_string(part.last));
  if (part.all_threads) return text + ", all threads";
  text += part.threads.size() == 1 ? ", thread" : ", threads";
  for (const ThreadId thread : part.threads) text += fmt::format(" {}", thread);
  return text;
}

int Info(const std::string& path) {
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) return Fail(status.message());
  const LogMetadata& metadata = index.metadata();
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) fmt::print("{:<12}{}\n", name, value);
  };
  line("log", path);
  line("format", fmt::format("version {}", index.version()));
  line("recording", fmt::format("{:016x}{:016x}", index.recording().high, index.recording().low));
  line("program", metadata.program);
  std::string arguments;
  for (const std::string& argument : metadata.arguments) {
    arguments += (arguments.empty() ? "" : " ") + argument;
  }
  line("arguments", arguments);
  line("started", metadata.started);
  line("host kind", metadata.host_kind);
  line("policy", metadata.policy);
  line("accesses", metadata.filter);
  line("clock", metadata.clock);
  line("duration", fmt::format("{:.3f} s", static_cast<double>(index.duration_ns()) / 1e9));
  line("threads", fmt::to_string(index.threads().size()));
  const auto events = static_cast<double>(std::max<std::uint64_t>(index.events(), 1));
  line("events", fmt::format("{}, {:.2f} bytes each before compression, {:.2f} after",
                             index.events(), static_cast<double>(index.raw_bytes()) / events,
                             static_cast<double>(index.valid_bytes()) / events));
  line("sequence", fmt::format("up to {}", index.last_sequence()));
  line("blocks", fmt::to_string(index.blocks()));
  for (const LogModule& module : metadata.modules) {
    line("module", fmt::format("{:#x}-{:#x} {} {}", module.begin, module.end, module.path,
                               module.build_id.empty() ? "(no build id)" : module.build_id));
  }
  for (const LogPart& part : metadata.parts) line("holds", PartText(part));
  if (!metadata.parts.empty()) {
    for (const LogPart& gap : Uncovered(metadata.parts, metadata.threads)) {
      line("not here", PartText(gap));
    }
  }
  line("missing", index.missing().empty() ? "nothing" : index.missing());
  return 0;
}

void PrintEvent(const Event& event, Sequence sequence) {
  std::string text = fmt::format("{} T{} {}", sequence, event.thread,
                                 kKindNames[static_cast<std::size_t>(event.kind)]);
  if (event.order != MemoryOrder::kRelaxed) {
    text += fmt::format(" {}", kOrderNames[static_cast<std::size_t>(event.order)]);
  }
  if (event.kind == EventKind::kFork || event.kind == EventKind::kJoin ||
      event.kind == EventKind::kJoinBegin) {
    text += fmt::format(" T{}", event.other);
  } else {
    text += fmt::format(" {:#x}", event.address);
    if (event.size != 0) text += fmt::format("+{}", event.size);
    if (event.other != 0) text += fmt::format(" other {}", event.other);
  }
  if (HasValue(event)) {
    text += fmt::format(" value {:#x}", event.aux);
  } else if (event.aux != 0) {
    text += fmt::format(" aux {:#x}", event.aux);
  }
  if (event.ip != 0) text += fmt::format(" ip {:#x}", event.ip);
  if (event.stack != 0) text += fmt::format(" stack {}", event.stack);
  fmt::print("{}\n", text);
}

struct Range {
  std::vector<std::uint64_t> sequence;  // first, last
  std::vector<double> seconds;          // first, last
  std::vector<ThreadId> threads;

  LogPart Part() const {
    LogPart part;
    if (sequence.size() == 2) {
      part.first = sequence[0];
      part.last = std::min<Sequence>(sequence[1], kLastSequence);
    }
    part.all_threads = threads.empty();
    part.threads = threads;
    std::sort(part.threads.begin(), part.threads.end());
    return part;
  }

  // What is wrong with it; empty: nothing.
  std::string Fault() const {
    const auto reversed = [](const char* option, const auto& values) {
      return values.size() == 2 && values[1] < values[0]
                 ? fmt::format("{} {} {} ends before it begins", option, values[0], values[1])
                 : std::string();
    };
    const std::string fault = reversed("--sequence", sequence);
    return fault.empty() ? reversed("--time", seconds) : fault;
  }
};

int Dump(const std::string& path, const Range& range, bool past_gap) {
  if (const std::string fault = range.Fault(); !fault.empty()) return Fail(fault);
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) return Fail(status.message());
  const LogPart part = range.Part();
  if (const std::string unknown = UnknownThread(index, part.threads); !unknown.empty())
    return Fail(unknown);
  LogReader reader(index, part.first,
                   past_gap ? part.last : std::min(part.last, index.complete_up_to()));
  std::array<Event, 512> events;
  std::array<Sequence, 512> sequences;
  while (const std::size_t count = reader.Read(events.data(), sequences.data(), events.size())) {
    for (std::size_t i = 0; i < count; ++i) {
      if (part.all_threads ||
          std::binary_search(part.threads.begin(), part.threads.end(), events[i].thread)) {
        PrintEvent(events[i], sequences[i]);
      }
    }
  }
  if (!reader.status().ok()) return Fail(reader.status().message());
  if (!index.missing().empty()) {
    Complain("trapline log: {} is not complete: {}\n", path, index.missing());
  }
  return 0;
}

int CheckLog(const std::string& path) {
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) return Fail(status.message());
  LogReader reader(index, 0, kLastSequence);
  std::vector<Event> events(4096);
  while (reader.Read(events.data(), nullptr, events.size()) != 0) {
  }
  if (!reader.status().ok()) return Fail(reader.status().message());
  if (reader.position() != index.events()) {
    return Fail(fmt::format("{} should hold {} events, but {} were read; it is damaged", path,
                            index.events(), reader.position()));
  }
  if (!index.missing().empty()) {
    return Fail(fmt::format("{} holds {} readable events, but is not complete: {}", path,
                            index.events(), index.missing()));
  }
  fmt::print("{}: {} events of {} threads, all readable\n", path, index.events(),
             index.threads().size());
  return 0;
}

void AddRange(CLI::App* command, Range& range) {
  command->add_option("--sequence", range.sequence, "first and last sequence number")
      ->expected(2)
      ->delimiter(',');
  command->add_option("--threads", range.threads, "these threads only")->delimiter(',');
}

int Cut(const std::string& path, const Range& range, const std::string& output) {
  if (IsSameFile(path, output)) return FailSameFile(output);
  if (const std::string fault = range.Fault(); !fault.empty()) return Fail(fault);
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) return Fail(status.message());
  LogPart part = range.Part();
  if (const std::string unknown = UnknownThread(index, part.threads); !unknown.empty())
    return Fail(unknown);
  if (range.seconds.size() == 2) {
    const auto at = [&index](double seconds) {
      return SequenceAt(index, static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9));
    };
    const std::optional<Sequence> first = at(range.seconds[0]);
    const std::optional<Sequence> last = at(range.seconds[1]);
    if (!first || !last) {
      return Fail(fmt::format(
          "cannot cut {} by time: it was recorded without a clock; use --sequence", path));
    }
    // From behind one checkpoint to the other, so that neighbouring cuts do not overlap.
    part.first = std::max(part.first, range.seconds[0] <= 0 ? 0 : *first + 1);
    const bool to_the_end = range.seconds[1] * 1e9 >= static_cast<double>(index.duration_ns());
    if (!to_the_end) part.last = std::min(part.last, *last);
  }
  if (!index.missing().empty()) {
    Complain("trapline log: {} is not complete: {}\n", path, index.missing());
  }
  return Check(CutLog(index, part, output));
}

int Merge(const std::vector<std::string>& inputs, const std::string& output) {
  for (const std::string& input : inputs) {
    if (IsSameFile(input, output)) return FailSameFile(output);
  }
  return Check(MergeLogs(inputs, output));
}

int Import(const std::string& text, const std::string& output) {
  if (IsSameFile(text, output)) return FailSameFile(output);
  std::ifstream in(text);
  if (!in) return Fail(fmt::format("cannot open {}; is it there, and may you read it?", text));
  LogMetadata metadata;
  metadata.program = text;
  metadata.host_kind = "none";
  metadata.policy = "imported";
  metadata.clock = "none";
  metadata.filter = "all";
  StdReader reader(&in);
  Event event{};
  StdReader::Result result = reader.Next(&event);
  // What is no trace from its first line on leaves no log behind, nor destroys one.
  if (result == StdReader::Result::kError)
    return Fail(fmt::format("cannot import {}: {}", text, reader.error()));
  LogWriter writer;
  if (Status status = writer.Create(output, RecordingId::Random(), metadata); !status.ok()) {
    return Fail(status.message());
  }
  for (; result == StdReader::Result::kEvent; result = reader.Next(&event)) writer.Append(event);
  if (result == StdReader::Result::kError) {
    return Fail(fmt::format("cannot import {}: {}; {} holds what comes before", text,
                            reader.error(), output));
  }
  return Check(writer.Finish());
}

// Calls visit(event) for all events up to the first missing one, late repeats in their places.
template <class Visit>
Status ForEachEvent(const LogIndex& index, Visit&& visit) {
  EventSource source(index, index.complete_up_to(), true);
  std::vector<Event> events(1024);
  while (const std::size_t count = source.Read(events.data(), events.size())) {
    for (std::size_t i = 0; i < count; ++i) visit(events[i]);
  }
  return source.status();
}

int Export(const std::string& path, const std::string& output, const std::string& locations) {
  if (IsSameFile(path, output)) return FailSameFile(output);
  if (!locations.empty() && IsSameFile(path, locations)) return FailSameFile(locations);
  if (IsSameFile(output, locations))
    return Fail(fmt::format("{} cannot be both, the text and the list of locations", output));
  LogIndex index;
  if (Status status = index.Open(path); !status.ok()) return Fail(status.message());
  if (!index.missing().empty()) {
    Complain("trapline log: {} is not complete: {}\n", path, index.missing());
  }
  std::ofstream out(output);
  StdWriter writer(!locations.empty());
  Status status = ForEachEvent(index, [&writer](const Event& event) { writer.Scan(event); });
  if (!status.ok()) return Fail(status.message());
  std::string text;
  status = ForEachEvent(index, [&](const Event& event) {
    text.clear();
    writer.Write(event, &text);
    out << text;
  });
  if (!status.ok()) return Fail(status.message());
  out.close();
  if (!out)
    return Fail(fmt::format("cannot write {}; is there room, and may you write there?", output));
  if (locations.empty()) return 0;
  std::ofstream list(locations);
  std::size_t number = 0;
  for (const std::uint64_t address : writer.Locations()) {
    list << fmt::format("{} {:#x}\n", ++number, address);
  }
  list.close();
  return list ? 0 : Fail(fmt::format("cannot write {}; is there room?", locations));
}

// `attended`: the producer is at the other end of standard input and output, and waits for a word
// once the log is open, and for another one when it is whole (log_recorder.cpp).
int Drain(const std::string& name, const std::string& path, bool attended) {
  const auto say = [attended](const char* word) {
    if (!attended) return;
    fmt::print("{}\n", word);
    static_cast<void>(std::fflush(stdout));
  };

  const auto failed = [attended](const Status& status) {
    if (!attended) return Fail(status.message());
    fmt::print("{}\n", status.message());  // the producer says who speaks
    return 1;
  };
  // A file size limit is to be an error like a full disk, not a signal.
  if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR) return Fail("cannot ignore SIGXFSZ");
  // The producer may be gone when it is told something.
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Fail("cannot ignore SIGPIPE");
  LogSegment segment;
  if (Status status = segment.Attach(name); !status.ok()) return failed(status);
  LogDrain drain(segment);
  if (Status status = drain.Open(path); !status.ok()) return failed(status);
  if (attended) drain.Watch(STDIN_FILENO);
  say("ready");
  const std::atomic<bool> stop{false};
  const Status status = drain.Run(stop);
  LogSegment::Remove(name);
  if (!status.ok()) return failed(status);
  say("done");
  return 0;
}

}  // namespace

void AddLogCommand(CLI::App& app, int& exit_status) {
  struct Arguments {
    std::string log;
    std::vector<std::string> inputs;
    std::string output;
    std::string segment;
    std::string locations;
    Range range;
    bool past_gap = false;
    bool attended = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* log = app.add_subcommand("log", "Look into trap logs, cut and merge them");
  log->require_subcommand(1);

  CLI::App* info = log->add_subcommand("info", "Say what was recorded, and whether it is complete");
  info->add_option("LOG", arguments->log, "the trap log")->required();
  info->callback([arguments, &exit_status] { exit_status = Info(arguments->log); });

  CLI::App* dump = log->add_subcommand("dump", "Print events in their observed order");
  dump->add_option("LOG", arguments->log, "the trap log")->required();
  AddRange(dump, arguments->range);
  dump->add_flag("--past-gap", arguments->past_gap,
                 "of an incomplete log, also what comes after the first missing event");
  dump->callback([arguments, &exit_status] {
    exit_status = Dump(arguments->log, arguments->range, arguments->past_gap);
  });

  CLI::App* check = log->add_subcommand("check", "Read all of a log and verify it");
  check->add_option("LOG", arguments->log, "the trap log")->required();
  check->callback([arguments, &exit_status] { exit_status = CheckLog(arguments->log); });

  CLI::App* cut = log->add_subcommand(
      "cut", "Copy a part of a log, by sequence numbers, time or threads, into a new log");
  cut->add_option("LOG", arguments->log, "the trap log to cut")->required();
  cut->add_option("-o,--output", arguments->output, "the log to write")->required();
  AddRange(cut, arguments->range);
  cut->add_option("--time", arguments->range.seconds,
                  "first and last second, as far apart as the log's checkpoints tell times")
      ->expected(2)
      ->delimiter(',')
      ->check(IsNumber());
  cut->callback([arguments, &exit_status] {
    exit_status = Cut(arguments->log, arguments->range, arguments->output);
  });

  CLI::App* merge =
      log->add_subcommand("merge", "Put pieces of one recording together into a new log");
  merge->add_option("LOGS", arguments->inputs, "the pieces, in any order")->required();
  merge->add_option("-o,--output", arguments->output, "the log to write")->required();
  merge->callback(
      [arguments, &exit_status] { exit_status = Merge(arguments->inputs, arguments->output); });

  CLI::App* imports = log->add_subcommand("import", "Make a log of a trace in the STD text format");
  imports->add_option("TRACE", arguments->log, "a text file, one event a line: thread|event|place")
      ->required();
  imports->add_option("-o,--output", arguments->output, "the log to write")->required();
  imports->callback(
      [arguments, &exit_status] { exit_status = Import(arguments->log, arguments->output); });

  CLI::App* exports = log->add_subcommand("export", "Write a log in the STD text format");
  exports->add_option("LOG", arguments->log, "the trap log")->required();
  exports->add_option("-o,--output", arguments->output, "the text file to write")->required();
  exports->add_option("--number-locations", arguments->locations,
                      "number the program addresses from 1 and list them in this file");
  exports->callback([arguments, &exit_status] {
    exit_status = Export(arguments->log, arguments->output, arguments->locations);
  });

  CLI::App* drain =
      log->add_subcommand("drain", "Write what a recording left in shared memory, until it ends");
  drain->add_option("SEGMENT", arguments->segment, "its name in /dev/shm")->required();
  drain->add_option("LOG", arguments->log, "a new log, or the unfinished one of this recording")
      ->required();
  drain->add_flag("--attended", arguments->attended)->group("");  // for `trapline run` alone
  drain->callback([arguments, &exit_status] {
    exit_status = Drain(arguments->segment, arguments->log, arguments->attended);
  });
}  // namespace trapline

}  // namespace trapline
