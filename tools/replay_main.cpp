// `trapline-replay`: the commands `trapline log` and `trapline replay`, which `trapline` hands on
// to.
#include <CLI/CLI.hpp>

#include "tools/log_command.h"
#include "tools/replay_command.h"

int main(int argc, char** argv) {
  CLI::App app("Inspects trap logs and replays them through race detectors.", "trapline");
  app.require_subcommand(1);
  int exit_status = 0;
  trapline::AddLogCommand(app, exit_status);
  trapline::AddReplayCommand(app, exit_status);
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
