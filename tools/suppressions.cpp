#include "tools/suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace trapline {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// For messages: no control characters, not too long.
std::string Quotable(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string plain(text.substr(0, kLongest));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return text.size() > kLongest ? plain + "..." : plain;
}

// Where the names in a demangled function name begin, and where its parameter list does.
struct NameParts {
  std::vector<std::size_t> begins;  // of the whole and of each tail after "::" or a return type
  std::size_t end = 0;
};

// Just behind the parenthesis that closes the one at `at`.
std::size_t AfterParentheses(std::string_view name, std::size_t at) {
  int depth = 0;
  for (; at < name.size(); ++at) {
    if (name[at] == '(') ++depth;
    if (name[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

NameParts PartsOf(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  NameParts parts;
  parts.begins.push_back(0);
  int depth = 0;  // of template arguments and lambdas
  std::size_t at = 0;
  while (at < name.size()) {
    const std::string_view rest = name.substr(at);
    if (rest.starts_with(kOperator) && rest.size() > kOperator.size() &&
        std::strchr("<>=-+*/%^&|~!,([", rest[kOperator.size()]) != nullptr) {
      at += kOperator.size();
      // operator() has its parameter list behind that.
      if (name[at] == '(') at += 2;
      at = std::min(name.find('(', at), name.size());
    } else if (rest[0] == '(' && depth == 0) {
      // "(anonymous namespace)::" and "Outer()::" go on.
      const std::size_t after = AfterParentheses(name, at);
      const bool goes_on =
          name.substr(after).starts_with("::") || name.substr(after).starts_with(" const::");
      if (!goes_on) break;
      at = name.find("::", after);
    } else if (rest.starts_with("::") && depth == 0) {
      at += 2;
      parts.begins.push_back(at);
    } else {
      if (rest[0] == ' ' && depth == 0) parts.begins.push_back(at + 1);
      if (rest[0] == '<' || rest[0] == '{') ++depth;
      if ((rest[0] == '>' || rest[0] == '}') && depth > 0) --depth;
      ++at;
    }
  }
  parts.end = at;
  return parts;
}

bool FunctionMatches(std::string_view pattern, std::string_view name) {
  if (name.empty()) return false;
  if (GlobMatches(pattern, name)) return true;
  const NameParts parts = PartsOf(name);
  return std::any_of(parts.begins.begin(), parts.begins.end(), [&](std::size_t begin) {
    return begin < parts.end && GlobMatches(pattern, name.substr(begin, parts.end - begin));
  });
}

bool PathMatches(std::string_view pattern, std::string_view path) {
  if (path.empty()) return false;
  if (GlobMatches(pattern, path)) return true;
  for (std::size_t at = 0; (at = path.find('/', at)) != std::string_view::npos;) {
    if (GlobMatches(pattern, path.substr(++at))) return true;
  }
  return false;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text) {
  // On a mismatch the last star takes one character more; earlier ones need not be tried again.
  std::size_t in_pattern = 0, in_text = 0;
  std::size_t star = std::string_view::npos, taken = 0;
  while (in_text < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      taken = in_text;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == text[in_text])) {
      ++in_pattern;
      ++in_text;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      in_text = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

Status Suppressions::Parse(std::string_view text, std::string_view name) {
  std::vector<Rule> rules;
  int number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t colon = line.find(':');
    const std::string_view type = Trimmed(line.substr(0, colon));
    if (colon == std::string_view::npos || type != "race") {
      return Status::Error(fmt::format(
          "{}:{}: '{}' is no suppression; write race:NAME, where NAME is a function, source file "
          "or module and may contain * and ?",
          name, number, Quotable(line)));
    }
    const std::string_view pattern = Trimmed(line.substr(colon + 1));
    if (pattern.empty()) {
      return Status::Error(fmt::format(
          "{}:{}: nothing after 'race:'; write the name of a function, source file or module", name,
          number));
    }
    rules.push_back({std::string(pattern), number});
  }
  rules_.insert(rules_.end(), rules.begin(), rules.end());
  return {};
}

Status Suppressions::ReadFile(const std::string& path) {
  const auto failed = [&] {
    return Status::Error(
        fmt::format("cannot read the suppressions in '{}': {}", path, std::strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) return failed();
  std::string text;
  char buffer[4096];
  for (std::size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;)
    text.append(buffer, size);
  if (std::ferror(file.get()) != 0) return failed();
  return Parse(text, path);
}

bool Suppressions::Matches(std::string_view function, std::string_view file,
                           std::string_view module) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return FunctionMatches(rule.pattern, function) || PathMatches(rule.pattern, file) ||
           PathMatches(rule.pattern, module);
  });
}

}  // namespace trapline
