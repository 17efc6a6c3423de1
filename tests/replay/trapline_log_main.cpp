// A command with nothing but `log` and `replay`, for tests of these two.
#include <CLI/CLI.hpp>

#include "tools/log_command.h"
#include "tools/replay_command.h"

int main(int argc, char** argv) {
  CLI::App app("trap logs and their replay", "trapline-log");
  app.require_subcommand(1);
  int exit_status = 0;
  trapline::AddLogCommand(app, exit_status);
  trapline::AddReplayCommand(app, exit_status);
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
