// The `trapline` command.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hypervisor/proc_files.h"
#include "hypervisor/process.h"
#include "tools/doctor.h"
#include "tools/race_detection.h"

namespace trapline {
namespace {

// As env(1) and timeout(1) have it.
constexpr int kNotFound = 127, kNotExecutable = 126, kMonitorFailure = 125;

int Run(const RunOptions& options, const std::string& path, std::vector<std::string> arguments) {
  // Until the program runs, its own descriptor limit must not stop the monitor.
  const DescriptorRoom room;
  auto executable = OpenExecutable(path, std::move(arguments));
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
    try {
      RunOptions handed_on = options;
      std::unique_ptr<RaceDetection> detection;
      if (options.tracking.track != Track::kNone) {
        auto detect = RaceDetectionOptions::Decode(options.observer_options);
        const bool first_process = detect.json_descriptor < 0;
        detection = std::make_unique<RaceDetection>(
            detect, [rules = options.tracking](const std::string& file) {
              return IsUntrackedModule(rules, file);
            });
        if (const Status status = detection->OpenJson(first_process); !status.ok()) {
          fmt::print(stderr, "trapline: {}\n", status.message());
          return kMonitorFailure;
        }
        detect.json_descriptor = detection->json_descriptor();
        handed_on.observer_options = detect.Encode();
        if (detect.json_descriptor >= 0) handed_on.kept_descriptors = {detect.json_descriptor};
      }
      // Never destroyed: its threads may outlive this one.
      auto* process = new Process(handed_on, detection.release());
      error = process->RunProgram(std::move(*executable), environment, room);
    } catch (const std::exception& failure) {
      fmt::print(stderr, "trapline: {}\ntrapline: `trapline doctor` says what this host lacks\n",
                 failure.what());
      return kMonitorFailure;
    }
  }
  fmt::print(stderr, "trapline: {}\n", error.message);
  // Not the program's fault.
  if (error.error_number == EMFILE || error.error_number == ENFILE) return kMonitorFailure;
  return error.error_number == ENOENT ? kNotFound : kNotExecutable;
}

int HandOn(char** argv) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string other(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  other += "-replay";
  execv(other.c_str(), argv);
  fmt::print(stderr, "trapline: cannot run '{}', which `trapline {}` needs: {}\n", other, argv[1],
             std::strerror(errno));
  return kMonitorFailure;
}

}  // namespace
}  // namespace trapline

int main(int argc, char** argv) {
  using trapline::RaceDetectionOptions;
  using trapline::RunOptions;
  using trapline::SharingPolicy;
  using trapline::Track;
  // A program under the monitor called execve: `trapline --exec OPTIONS FILE ARG...`. No parsing
  // that could misread a program's arguments.
  if (argc >= 4 && std::strcmp(argv[1], "--exec") == 0) {
    return trapline::Run(RunOptions::Decode(argv[2]), argv[3],
                         std::vector<std::string>(argv + 4, argv + argc));
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
  std::string policy = "exact", follow = "all";
  std::vector<std::string> track, untrack;
  std::vector<std::string> command;
  // For the help text only.
  app.add_subcommand("log", "Inspect, check, cut, merge and convert trap logs");
  app.add_subcommand("replay", "Replay a trap log through race detectors");
  CLI::App* run = app.add_subcommand("run", "Run a program under the monitor");
  run->add_option("--track", track,
                  "Also check the code of this MODULE (a file name, may be a glob); none: check "
                  "nothing; repeatable")
      ->allow_extra_args(false);
  run->add_option("--untrack", untrack, "Do not check the code of this MODULE; repeatable")
      ->allow_extra_args(false);
  run->add_option("--policy", policy,
                  "exact: every access once there are two threads; shared: a page's accesses from "
                  "its second thread on")
      ->check(CLI::IsMember({"exact", "shared"}))
      ->capture_default_str();
  run->add_option("--detector", detection.detector, "The race detector (see `trapline replay`)")
      ->capture_default_str();
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
  options.tracking.track_modules = track;
  options.tracking.untrack_modules = untrack;
  options.tracking.policy = policy == "exact" ? SharingPolicy::kExact : SharingPolicy::kShared;
  if (command.empty()) {
    fmt::print(stderr,
               "trapline: no program given; usage: trapline run [OPTIONS] -- PROGRAM [ARG...]\n");
    return 125;
  }
  const std::string path = trapline::FindInPath(command[0]);
  if (path.empty()) {
    fmt::print(stderr, "trapline: cannot run '{}': not found in PATH\n", command[0]);
    return 127;
  }
  detection.program = path;
  if (!detection.json_path.empty())
    detection.json_path = std::filesystem::absolute(detection.json_path).string();
  if (!detection.suppressions.empty())
    detection.suppressions = std::filesystem::absolute(detection.suppressions).string();
  options.observer_options = detection.Encode();
  return trapline::Run(options, path, command);
}
