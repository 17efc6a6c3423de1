// What the executables' command lines have in common.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace trapline {

// As env(1) and timeout(1) have it: also where the command line is wrong.
inline constexpr int kMonitorFailure = 125;

// Says it on standard error. If that cannot be written to, the exit status has to do; fmt::print
// would throw.
template <class... Arguments>
void Complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

// What is printed may be all that was asked for. False: it got lost, and that has been said.
inline bool FlushOutput() {
  if (std::fflush(stdout) == 0) return true;
  Complain("trapline: cannot write to standard output; is there room?\n");
  return false;
}

// Whether two names mean one file, which may be still to be made; not a terminal or the like.
inline bool IsSameFile(const std::string& one, const std::string& other) {
  std::error_code error;
  if (std::filesystem::equivalent(one, other, error))
    return std::filesystem::is_regular_file(one, error);
  if (std::filesystem::exists(one, error)) return false;
  const auto whole = [&error](const std::string& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name, error), error);
  };
  return !one.empty() && !other.empty() && whole(one) == whole(other);
}

// For options with numbers: `nan` is in every range.
inline CLI::Validator IsNumber() {
  return {[](const std::string& text) {
            double value = 0;
            return CLI::detail::lexical_cast(text, value) && !std::isnan(value)
                       ? std::string()
                       : text + " is no number";
          },
          ""};
}

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
