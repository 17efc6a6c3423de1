// The `trapline` command.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "hypervisor/error_output.h"
#include "hypervisor/kvm.h"
#include "hypervisor/link_target.h"
#include "hypervisor/proc_files.h"
#include "hypervisor/process.h"
#include "replay/json_text.h"
#include "tools/command_line.h"
#include "tools/doctor.h"
#include "tools/execution_events.h"
#include "tools/log_recording.h"
#include "tools/race_detection.h"

namespace trapline {
namespace {

// As env(1) and timeout(1) have it.
constexpr int kNotFound = 127, kNotExecutable = 126;

// What watches the execution.
struct Observation {
  std::unique_ptr<ExecutionEvents> events;  // null: nothing is tracked
  LogRecording* recording = nullptr;        // one of its sinks
};

constexpr std::array kPolicies = {"exact", "shared", "adaptive", "write-shared"};  // SharingPolicy

// `json`: absent options are as if the user had not given any.
template <class Options>
Options OptionsOf(const nlohmann::json& json) {
  return json.is_object() ? json.get<Options>() : Options();
}

LogMetadata Describe(const RunOptions& options, const LogRecordingOptions& log,
                     const AtomicPlacesOptions& atomics, const std::string& program,
                     const std::vector<std::string>& arguments) {
  LogMetadata metadata;
  metadata.program = program;
  metadata.arguments = arguments;
  metadata.policy = kPolicies[static_cast<std::size_t>(options.tracking.policy)];
  metadata.clock = "monotonic";
  metadata.plain = atomics.plain;
  metadata.filter = nlohmann::json(log.filter).get<std::string>();
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32] = {};
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(text, sizeof text, "%FT%TZ", &utc);
  metadata.started = text;
  return metadata;
}

// Throws std::runtime_error where the user asked for something that cannot be. `initial`: this is
// the first program of `trapline run`; a later one goes on without what cannot be.
Observation Observe(const RunOptions& options, const std::string& program,
                    const std::vector<std::string>& arguments, bool initial) {
  Observation observation;
  if (options.tracking.track == Track::kNone) return observation;
  const auto json = nlohmann::json::parse(options.observer_options, nullptr, false);
  const AtomicPlacesOptions atomics =
      json.contains(AtomicPlacesOptions::kName)
          ? OptionsOf<AtomicPlacesOptions>(json[AtomicPlacesOptions::kName])
          : AtomicPlacesOptions();
  observation.events = std::make_unique<ExecutionEvents>(
      [rules = options.tracking](const std::string& file) {
        return IsUntrackedModule(rules, file);
      },
      options.tracking.track_modules, options.tracking.untrack_modules, atomics);
  ExecutionEvents& events = *observation.events;
  if (initial) events.TellUnmetPlaces();
  const auto check = [initial](const Status& status) {
    if (status.ok()) return;
    if (initial) throw std::runtime_error(status.message());
    Complain("trapline: {}\n", status.message());
  };
  // The log comes first: it has everything that the detector has seen.
  if (json.contains(LogRecording::kOptionsName)) {
    const auto log = OptionsOf<LogRecordingOptions>(json[LogRecording::kOptionsName]);
    auto recording = std::make_unique<LogRecording>(
        log, events, Describe(options, log, atomics, program, arguments));
    check(recording->Open());
    observation.recording = recording.get();
    events.AddSink(std::move(recording));
  }
  if (json.contains(RaceDetection::kOptionsName)) {
    auto detection = std::make_unique<RaceDetection>(
        OptionsOf<RaceDetectionOptions>(json[RaceDetection::kOptionsName]), events);
    check(detection->OpenJson(initial));
    events.AddSink(std::move(detection));
  }
  return observation;
}

// Whether the loader that the program asks for is musl's, with which the library that tells of
// calls to the C library cannot be loaded.
bool IsLoadedByMusl(const Executable& executable) {
  const std::optional<std::string>& loader = executable.image.interpreter;
  return loader && loader->substr(loader->rfind('/') + 1).starts_with("ld-musl");
}

int FailOnHost(const std::exception& failure) {
  Complain("trapline: {}\ntrapline: `trapline doctor` says what this host lacks\n", failure.what());
  return kMonitorFailure;
}

int Run(RunOptions options, const std::string& path, const std::vector<std::string>& arguments,
        bool initial) {
  // Until the program runs, its own descriptor limit must not stop the monitor.
  const DescriptorRoom room;
  // One for each thread holds much that others have freed: who drains differs from time to time.
  mallopt(M_ARENA_MAX, 1);
  KeepErrorOutput();
  auto executable = OpenExecutable(path, arguments);
  LoadError error;
  if (!executable) {
    error = executable.error();
  } else if (executable->native_only) {
    error = {ENOEXEC, fmt::format("cannot run '{}': only 64-bit x86 programs that may be read and "
                                  "are not set-user-id run "
                                  "under the monitor",
                                  executable->image_path)};
  } else {
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment.emplace_back(*variable);
    // Before it, files are not written over for nothing.
    if (initial) {
      try {
        static_cast<void>(Kvm());
      } catch (const std::exception& failure) {
        return FailOnHost(failure);
      }
    }
    if (options.tracking.track != Track::kNone && IsLoadedByMusl(*executable)) {
      const std::string what =
          fmt::format("'{}' is linked dynamically against musl, whose threads cannot be followed",
                      executable->image_path);
      if (initial) {
        Complain("trapline: {}; link it statically, or run it unchecked, by --track=none\n", what);
        return kMonitorFailure;
      }
      Complain("trapline: {}: it runs unchecked\n", what);
      options.tracking.track = Track::kNone;
    }
    Observation observation;
    try {
      observation = Observe(options, path, arguments, initial);
    } catch (const std::exception& failure) {
      Complain("trapline: {}\n", failure.what());
      return kMonitorFailure;
    }
    try {
      // Never destroyed: its threads may outlive this one.
      auto* process = new Process(options, observation.events.release());
      if (observation.recording != nullptr) {
        observation.recording->SetHostKind(
            process->machine().host().syscall_arrives_in_ring0 ? "hardware" : "shadow paging");
      }
      error = process->RunProgram(std::move(*executable), environment, room);
    } catch (const std::exception& failure) {
      return FailOnHost(failure);
    }
  }
  Complain("trapline: {}\n", error.message);
  // Not the program's fault.
  if (error.error_number == EMFILE || error.error_number == ENFILE) return kMonitorFailure;
  return error.error_number == ENOENT ? kNotFound : kNotExecutable;
}

// Which detectors keep up with a running program, and are worth its time; all others replay.
constexpr std::array kOnlineDetectors = {"fasttrack", "acculock"};

// What is wrong with these options taken together; empty: nothing.
std::string Contradiction(const RaceDetectionOptions& detection, const std::string& log,
                          bool record_only) {
  if (record_only && log.empty())
    return "--record-only needs --log FILE, or nothing would come of the run";
  if (record_only && (!detection.json_path.empty() || detection.error_exit_code >= 0))
    return "with --record-only no race is found that --json or --error-exitcode could tell; leave "
           "them out, or leave --record-only out";
  const std::string& name = detection.detector;
  if (std::find(kOnlineDetectors.begin(), kOnlineDetectors.end(), name) != kOnlineDetectors.end())
    return {};
  const std::string online = fmt::format("{}", fmt::join(kOnlineDetectors, " and "));
  if (MakeDetector(name) == nullptr)
    return fmt::format(
        "there is no detector '{}'; {} run online, `trapline replay --help` tells "
        "of the others",
        name, online);
  return fmt::format(
      "the detector '{0}' works on recorded executions only ({1} run online): record with "
      "`trapline run --log FILE --record-only -- PROGRAM`, then `trapline replay FILE --detector "
      "{0}`",
      name, online);
}

// What is wrong with the files that results are to be written to; empty: nothing.
std::string Overwritten(const RaceDetectionOptions& detection, const std::string& log,
                        const std::string& program) {
  const auto clash = [](const char* option, const std::string& file, const std::string& other,
                        const char* what) {
    return !file.empty() && IsSameFile(file, other)
               ? fmt::format("cannot write {} {}: it is {}; give another file", option, file, what)
               : std::string();
  };
  for (const std::string& what :
       {clash("--json", detection.json_path, program, "the program"),
        clash("--json", detection.json_path, detection.suppressions, "that of --suppressions"),
        clash("--log", log, program, "the program"),
        clash("--log", log, detection.suppressions, "that of --suppressions"),
        clash("--log", log, detection.json_path, "that of --json")}) {
    if (!what.empty()) return what;
  }
  return {};
}

int HandOn(char** argv) {
  const std::string other = OwnExecutable() + "-replay";
  execv(other.c_str(), argv);
  Complain("trapline: cannot run '{}', which `trapline {}` needs: {}\n", other, argv[1],
           std::strerror(errno));
  return kMonitorFailure;
}

}  // namespace
}  // namespace trapline

int main(int argc, char** argv) {
  using trapline::AtomicPlacesOptions;
  using trapline::LogRecording;
  using trapline::LogRecordingOptions;
  using trapline::RaceDetection;
  using trapline::RaceDetectionOptions;
  using trapline::RunOptions;
  using trapline::SharingPolicy;
  using trapline::Track;
  // A program under the monitor called execve: `trapline --exec OPTIONS FILE ARG...`. No parsing
  // that could misread a program's arguments.
  if (argc >= 4 && std::strcmp(argv[1], "--exec") == 0) {
    return trapline::Run(RunOptions::Decode(argv[2]), argv[3],
                         std::vector<std::string>(argv + 4, argv + argc), false);
  }

  // Logs and replay need no KVM; they live in an executable of their own next to this one.
  if (argc >= 2 && (std::strcmp(argv[1], "log") == 0 || std::strcmp(argv[1], "replay") == 0)) {
    return trapline::HandOn(argv);
  }

  CLI::App app(
      "Finds data races in unmodified multi-threaded programs, by running them under a small KVM "
      "monitor.");
  app.require_subcommand(1);
  app.set_version_flag("--version", "trapline " TRAPLINE_VERSION);

  bool json = false;
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Say whether `trapline run` can work on this host, and what to do");
  doctor->add_flag("--json", json, "Print the findings as JSON");

  RunOptions options;
  RaceDetectionOptions detection;
  LogRecordingOptions log;
  AtomicPlacesOptions atomics;
  std::string log_filter = "all";
  bool record_only = false;
  std::string policy, engine, redirects = "where-paying", partial_code = "long-stays",
                              follow = "all";
  std::vector<std::string> track, untrack;
  std::vector<std::string> command;
  // For the help text only.
  app.add_subcommand("log", "Inspect, check, cut, merge and convert trap logs");
  app.add_subcommand("replay", "Replay a trap log through race detectors");
  CLI::App* run = app.add_subcommand("run", "Run a program under the monitor");
  run->add_option(
         "--track", track,
         "Also check the code of this MODULE (a file name, may be a glob) and of an allocator "
         "linked into it, or this part of what --untrack names; none: check nothing; repeatable")
      ->allow_extra_args(false);
  run->add_option(
         "--untrack", untrack,
         "Do not check the code of this MODULE, the code or variable of this SYMBOL (a glob), "
         "or these bytes, ADDRESS+LENGTH; repeatable")
      ->allow_extra_args(false);
  run->add_option(
         "--atomic", atomics.atomic,
         "Take the plain loads and stores of this PLACE for atomic operations: the code or "
         "variable "
         "of a symbol, the code of a source file (globs), or bytes, ADDRESS+LENGTH; those of a "
         "shared library (a glob with .so) order threads and are no accesses besides; repeatable")
      ->allow_extra_args(false);
  run->add_option("--plain", atomics.plain,
                  "Take none of this PLACE's plain loads and stores for atomic; repeatable")
      ->allow_extra_args(false);
  run->add_flag("--explain", atomics.explain,
                "Print at the end which plain loads and stores were taken for atomic, and why");
  run->add_option(
         "--engine", engine,
         "How checked code runs: cache (instrumented; the default) or step (an instruction "
         "at a time, for every policy but adaptive)")
      ->check(CLI::IsMember({"step", "cache"}));
  run->add_option(
         "--policy", policy,
         "exact (the default with --log and with --engine=step): every access once there are two "
         "threads; adaptive "
         "(the default): but those of hot code on pages that only its thread uses; shared: "
         "a page's accesses from its second thread on; write-shared: from its first write "
         "after that on")
      ->take_last()
      ->check(CLI::IsMember(
          std::vector<std::string>(trapline::kPolicies.begin(), trapline::kPolicies.end())));
  run->add_option(
         "--hot-after", options.tracking.hot_after,
         "For --policy=adaptive: how many accesses of a thread are checked before its code "
         "counts as hot; 0: as is best")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(0, 1 << 30));
  run->add_option(
         "--cache-size", options.tracking.cache_size.bytes,
         "How much code the code cache holds, as 8M; all of it is given up when it is full")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(trapline::CodeCacheSize::kLeast, trapline::CodeCacheSize::kMost));
  run->add_option("--cache-blocks", options.tracking.cache_size.blocks,
                  "The same in basic blocks, for tests; 0: as many as there is room for")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1u << 20));
  run->add_option("--translate-after", options.tracking.translate_after,
                  "How often a thread must come to code before it is translated, for all policies "
                  "but exact; 0: at once, or more often where the code in use has no room in the "
                  "code cache")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(0u, trapline::CacheAdmission::kMost));
  run->add_flag_callback(
      "--tell-repeats", [&options] { options.tracking.repeats = false; },
      "Tell the detector of every access anew after each synchronisation, even of those that a "
      "thread repeats undisturbed: the same races, 2 to 5 times slower; for comparison");
  run->add_flag_callback(
      "--tell-settled", [&options] { options.tracking.sector_uses = false; },
      "For --policy=adaptive: in the code cache check hot code, too, where it uses memory that its "
      "thread alone has used for some time, or that all have only read; for comparison");
  run->add_option("--settle-after", options.tracking.settle_after,
                  "After how many milliseconds such memory need not be checked; 0, for tests: at "
                  "once, and all code counts as hot")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(0, 1 << 30));
  run->add_option("--repeats-after", options.tracking.repeats_after,
                  "How many accesses are told before repeats are looked for; for tests")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(0, 1 << 30));
  run->add_option("--redirects", redirects,
                  "For --policy=shared and write-shared: whether native code that meets a shared "
                  "page goes over to the code cache without leaving the guest; never, where-paying "
                  "or, for tests and under any policy, always")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::IsMember({"never", "where-paying", "always"}));
  run->add_option(
         "--partial-code", partial_code,
         "For --policy=adaptive: in which stays in the code cache hot code is checked only "
         "where it meets shared pages; never, long-stays or, for tests, always")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::IsMember({"never", "long-stays", "always"}));
  run->add_flag("--from-start", options.tracking.from_start,
                "Check from the program's start on, not from its second thread; for tests");
  run->add_option("--detector", detection.detector,
                  "The race detector: fasttrack or acculock; others replay a log")
      ->capture_default_str();
  run->add_option("--log", log.path,
                  "Record the execution into this file, for `trapline replay`; further processes' "
                  "go to FILE.PID");
  run->add_option("--log-filter", log_filter,
                  "all accesses, only the first of each thread, place and epoch, or what fasttrack "
                  "needs, which costs least")
      ->check(CLI::IsMember({"all", "first", "fasttrack"}))
      ->capture_default_str();
  run->add_flag("--record-only", record_only, "Record, and detect nothing meanwhile");
  run->add_option("--json", detection.json_path, "Write the races into this file too");
  run->add_option("--suppressions", detection.suppressions,
                  "Do not report races that match this file's lines `race:GLOB`");
  run->add_option("--error-exitcode", detection.error_exit_code,
                  "End with this status if a race was found")
      ->check(CLI::Range(0, 255));
  run->add_flag("--verbose", detection.verbose, "Print a summary even if no race was found");
  run->add_flag("--stats", options.stats,
                "Print what the monitor saw, per thread, when the program ends");
  run->add_option("--follow", follow,
                  "Programs it starts: all (each under a monitor of its own) or none (natively)")
      ->check(CLI::IsMember({"all", "none"}))
      ->capture_default_str();
  run->add_option("PROGRAM", command, "The program and its arguments, after --");

  const std::string unknown =
      trapline::UnknownCommand(app, "trapline", argc > 1 ? argv[1] : nullptr);
  if (!unknown.empty()) {
    trapline::Complain("{}", unknown);
    return trapline::kMonitorFailure;
  }
  // What follows the first `--` is the program's alone.
  char** const separator = std::find_if(
      argv + 1, argv + argc, [](const char* text) { return std::strcmp(text, "--") == 0; });
  try {
    app.parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : trapline::kMonitorFailure;
  }
  if (separator != argv + argc) command.insert(command.end(), separator + 1, argv + argc);
  if (doctor->parsed()) return trapline::Doctor(json);

  options.follow_children = follow == "all";
  options.outer_tracer = trapline::TracerOfThisThread();
  options.tracking.track = Track::kAll;
  for (const std::string& module : track) {
    if (module == "none") options.tracking.track = Track::kNone;
  }
  std::erase_if(track, [](const std::string& name) { return name == "none" || name == "all"; });
  for (const auto* names : {&track, &untrack, &atomics.atomic, &atomics.plain}) {
    for (const std::string& name : *names) {
      const bool meant =
          !name.empty() && name[0] >= '0' && name[0] <= '9' && name.find('+') != std::string::npos;
      if (!meant || trapline::ParseAddressRange(name)) continue;
      trapline::Complain(
          "trapline: '{}' is no ADDRESS+LENGTH in a program's memory; an example: "
          "0x7f0012345000+0x1000\n",
          name);
      return trapline::kMonitorFailure;
    }
  }
  if (const auto name = std::ranges::find_if(track, trapline::MakesThreads); name != track.end()) {
    trapline::Complain(
        "trapline: --track={}: the code of the C library and the dynamic linker, which make the "
        "threads, cannot be checked\n",
        *name);
    return trapline::kMonitorFailure;
  }
  options.tracking.track_modules = track;
  options.tracking.untrack_modules = untrack;
  options.tracking.engine = engine == "step" ? trapline::Engine::kStep : trapline::Engine::kCache;
  options.tracking.every_access = !log.path.empty() && log_filter == "all";
  using trapline::PartialCode;
  using trapline::RedirectRule;
  options.tracking.partial_code = partial_code == "never"    ? PartialCode::kNever
                                  : partial_code == "always" ? PartialCode::kAlways
                                                             : PartialCode::kLongStays;
  options.tracking.redirects = redirects == "never"    ? RedirectRule::kNever
                               : redirects == "always" ? RedirectRule::kAlways
                                                       : RedirectRule::kWherePaying;
  if (policy.empty()) policy = log.path.empty() && engine != "step" ? "adaptive" : "exact";
  options.tracking.policy = static_cast<SharingPolicy>(
      std::find(trapline::kPolicies.begin(), trapline::kPolicies.end(), policy) -
      trapline::kPolicies.begin());
  if (options.tracking.policy == SharingPolicy::kAdaptive && engine == "step") {
    trapline::Complain(
        "trapline: --policy=adaptive is about leaving the code cache, which "
        "--engine=step does not use; leave one of them out\n");
    return trapline::kMonitorFailure;
  }
  const std::string contradiction = trapline::Contradiction(detection, log.path, record_only);
  if (!contradiction.empty()) {
    trapline::Complain("trapline: {}\n", contradiction);
    return trapline::kMonitorFailure;
  }
  if (log.path.empty() && log_filter != "all") {
    trapline::Complain("trapline: --log-filter needs --log FILE\n");
    return trapline::kMonitorFailure;
  }
  if (options.tracking.track == Track::kNone && !log.path.empty()) {
    trapline::Complain("trapline: --log has nothing to record with --track=none\n");
    return trapline::kMonitorFailure;
  }
  if (command.empty()) {
    trapline::Complain(
        "trapline: no program given; usage: trapline run [OPTIONS] -- PROGRAM [ARG...]\n");
    return trapline::kMonitorFailure;
  }
  const std::string path = trapline::FindInPath(command[0]);
  if (path.empty()) {
    trapline::Complain("trapline: cannot run '{}': not found in PATH\n", command[0]);
    return trapline::kNotFound;
  }
  if (options.tracking.track != trapline::Track::kNone) {
    if (const std::string why = trapline::WhyRuntimeIsUnusable(); !why.empty()) {
      trapline::Complain("trapline: {}\n", why);
      return trapline::kMonitorFailure;
    }
  }
  if (const std::string why = trapline::Overwritten(detection, log.path, path); !why.empty()) {
    trapline::Complain("trapline: {}\n", why);
    return trapline::kMonitorFailure;
  }
  detection.program = path;
  if (!detection.json_path.empty())
    detection.json_path = std::filesystem::absolute(detection.json_path).string();
  if (!detection.suppressions.empty())
    detection.suppressions = std::filesystem::absolute(detection.suppressions).string();
  nlohmann::json observer = nlohmann::json::object();
  observer[AtomicPlacesOptions::kName] = atomics;
  if (!record_only) observer[RaceDetection::kOptionsName] = detection;
  if (!log.path.empty()) {
    log.path = std::filesystem::absolute(log.path).string();
    log.filter = nlohmann::json(log_filter).get<trapline::LogFilter>();
    observer[LogRecording::kOptionsName] = log;
  }
  options.observer_options = trapline::JsonText(observer, -1, true);
  return trapline::Run(options, path, command, true);
}
