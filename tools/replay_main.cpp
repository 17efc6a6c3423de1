// `trapline-replay`: the commands `trapline log` and `trapline replay`, which `trapline` hands on
// to.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "tools/command_line.h"
#include "tools/log_command.h"
#include "tools/replay_command.h"

int main(int argc, char** argv) {
  CLI::App app("Inspects trap logs and replays them through race detectors.", "trapline");
  app.require_subcommand(1);
  int exit_status = 0;
  trapline::AddLogCommand(app, exit_status);
  trapline::AddReplayCommand(app, exit_status);
  const bool of_log = argc > 2 && std::strcmp(argv[1], "log") == 0;
  const std::string unknown =
      of_log ? trapline::UnknownCommand(*app.get_subcommand("log"), "trapline log", argv[2])
             : trapline::UnknownCommand(app, "trapline", argc > 1 ? argv[1] : nullptr);
  if (!unknown.empty()) {
    trapline::Complain("{}", unknown);
    return trapline::kMonitorFailure;
  }
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : trapline::kMonitorFailure;
    }
    if (trapline::FlushOutput()) return exit_status;
  } catch (const std::system_error& error) {  // fmt::print
    trapline::Complain("trapline: standard output: {}\n", error.what());
  }
  return 1;
}
