// `trapline log`: what is in a trap log, and making logs out of logs.
#pragma once

namespace CLI {
class App;
}

namespace trapline {

// Adds the subcommand `log` to `app`. When it runs, it sets `exit_status` (0 success, 1 failure).
// Both must outlive the parse.
void AddLogCommand(CLI::App& app, int& exit_status);

}  // namespace trapline
