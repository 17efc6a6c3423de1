// What the executables' command lines have in common.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace trapline {

// As env(1) and timeout(1) have it: also where the command line is wrong.
inline constexpr int kMonitorFailure = 125;

// What is wrong if `name` is none of the commands of `app`, called `path`; empty: nothing, or that
// is for the parser to say.
inline std::string UnknownCommand(const CLI::App& app, const std::string& path, const char* name) {
  if (name == nullptr || name[0] == '-') return {};
  std::string known;
  for (const CLI::App* const command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return {};
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return fmt::format("{}: there is no command '{}'; there are {}\n", path, name, known);
}

}  // namespace trapline
