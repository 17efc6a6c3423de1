// `trapline replay`: race detectors over a trap log.
#pragma once

namespace CLI {
class App;
}

namespace trapline {

// Adds the subcommand `replay` to `app`. When it runs, it sets `exit_status` (0 success, 1
// failure). Both must outlive the parse.
void AddReplayCommand(CLI::App& app, int& exit_status);

}  // namespace trapline
