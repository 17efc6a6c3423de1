// `trapline-replay`: the commands `trapline log` and `trapline replay`, which `trapline` hands on
// to.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <system_error>

#include "tools/log_command.h"
#include "tools/replay_command.h"

int main(int argc, char** argv) {
  CLI::App app("Inspects trap logs and replays them through race detectors.", "trapline");
  app.require_subcommand(1);
  int exit_status = 0;
  trapline::AddLogCommand(app, exit_status);
  trapline::AddReplayCommand(app, exit_status);
  try {
    CLI11_PARSE(app, argc, argv);
    // What is printed may be all that was asked for: that it got lost is a failure.
    if (std::fflush(stdout) == 0) return exit_status;
    fmt::print(stderr, "trapline: cannot write to standard output; is there room?\n");
  } catch (const std::system_error& error) {  // fmt::print
    fmt::print(stderr, "trapline: standard output: {}\n", error.what());
  }
  return 1;
}
