#include "symbols/source_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <initializer_list>

namespace trapline {
namespace {

constexpr off_t kLargestFile = 8 << 20;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

// Whether the text begins with these words, with any spaces between them.
bool BeginsWith(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    text = Trimmed(text);
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
  }
  return text.empty() || !IsNameCharacter(text.front());
}

// `#pragma omp atomic`, with any clauses, or, anywhere in the line, `_Pragma("omp atomic")` or
// `[[omp::directive(atomic)]]`.
bool IsAtomicPragma(std::string_view line) {
  using Words = std::initializer_list<std::string_view>;
  if (BeginsWith(line, {"#", "pragma", "omp", "atomic"})) return true;
  for (const Words& words : {Words{"_Pragma", "(", "\"", "omp", "atomic"},
                             Words{"omp", "::", "directive", "(", "atomic"}}) {
    const std::string_view first = *words.begin();
    for (std::size_t at = line.find(first); at != line.npos; at = line.find(first, at + 1)) {
      if (BeginsWith(line.substr(at), words)) return true;
    }
  }
  return false;
}

// The line and the next ones that a backslash at its end joins to it; `rest` begins behind it.
std::string Joined(std::string_view line, std::string_view rest) {
  constexpr int kMostLines = 8;  // of a directive that has to do with one statement
  std::string joined(Trimmed(line));
  for (int lines = 1; joined.ends_with('\\') && !rest.empty() && lines < kMostLines; ++lines) {
    const std::size_t end = rest.find('\n');
    joined.back() = ' ';
    joined += Trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return joined;
}

// How many statements of Fortran's the line makes atomic. Directives begin with `!$omp` anywhere or
// `c$omp` in the first column, in any case (OpenMP 5.0, 2.1.1 and 2.1.2).
int FortranAtomicStatements(std::string_view line) {
  const std::string_view trimmed = Trimmed(line);
  if (trimmed.size() < 2 || trimmed[1] != '$') return 0;
  const bool in_first_column = line.front() == trimmed.front();
  const bool is_sentinel = std::string_view(in_first_column ? "!cC*" : "!").find(trimmed.front()) !=
                           std::string_view::npos;
  if (!is_sentinel) return 0;
  std::string directive;
  for (const char c : trimmed.substr(1))
    directive += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!BeginsWith(directive, {"$omp", "atomic"})) return 0;
  return directive.find("capture") == std::string::npos ? 1 : 2;
}

}  // namespace

bool NamesOperation(std::string_view text) {
  constexpr std::array<std::string_view, 7> kStarts = {
      "__atomic_load",        "__atomic_store",        "__c11_atomic_",   "__sync_lock_release",
      "atomic_load_explicit", "atomic_store_explicit", "__scoped_atomic_"};
  constexpr std::array<std::string_view, 5> kWhole = {
      "atomic_load", "atomic_store", "atomic_flag_clear", "atomic_flag_clear_explicit",
      "__atomic_clear"};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!IsNameCharacter(text[at]) || (at > 0 && IsNameCharacter(text[at - 1]))) continue;
    std::size_t end = at;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    for (const std::string_view start : kStarts) {
      if (word.starts_with(start)) return true;
    }
    for (const std::string_view whole : kWhole) {
      if (word == whole) return true;
    }
    at = end;
  }
  return false;
}

std::set<int> AtomicLines(std::string_view text) {
  std::set<int> lines;
  // Of the statement after the pragma: until its first semicolon, or the end of its block.
  bool continues = false, in_statement = false, defines = false;
  int depth = 0;
  int fortran_statements = 0;  // that are left of an atomic construct
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view trimmed = Trimmed(line);
    if (NamesOperation(line)) lines.insert(number);
    const bool is_directive = trimmed.starts_with('#');
    const bool is_joined = is_directive && trimmed.ends_with('\\');
    if (continues || (is_joined ? IsAtomicPragma(Joined(line, text)) : IsAtomicPragma(line))) {
      lines.insert(number);
      if (!continues) defines = BeginsWith(line, {"#", "define"});
      // But behind a directive, the statement may stand on the same line.
      in_statement = !defines && (continues || is_directive || !trimmed.ends_with(';'));
      continues = trimmed.ends_with('\\');
      depth = 0;
      continue;
    }
    if (const int statements = FortranAtomicStatements(line); statements > 0) {
      fortran_statements = statements;
      lines.insert(number);
      continue;
    }
    if (fortran_statements > 0 && !trimmed.empty() && trimmed.front() != '!') {
      lines.insert(number);
      if (!trimmed.ends_with('&')) --fortran_statements;
      continue;
    }
    if (!in_statement || trimmed.empty()) continue;
    lines.insert(number);
    for (const char c : trimmed) {
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if ((c == ';' && depth == 0) || (c == '}' && depth <= 0)) in_statement = false;
    }
  }
  return lines;
}

std::set<int> ExchangeLines(std::string_view text) {
  std::set<int> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    for (const std::string_view name : {"exchange", "fetch_and", "fetch_or"}) {
      const std::size_t at = line.find(name);
      if (at != std::string_view::npos && !line.substr(0, at).ends_with("compare_"))
        lines.insert(number);
    }
  }
  return lines;
}

const SourceLines::File& SourceLines::Read(const std::string& file) {
  const auto [known, added] = files_.try_emplace(file);
  File& source = known->second;
  if (!added) return source;
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size <= kLargestFile) {
    std::string text(static_cast<std::size_t>(status.st_size), 0);
    std::size_t length = 0;
    while (length < text.size()) {
      const ssize_t got = read(descriptor, text.data() + length, text.size() - length);
      if (got <= 0) break;
      length += static_cast<std::size_t>(got);
    }
    source.modified = status.st_mtime;
    text.resize(length);
    source.atomic_lines = AtomicLines(text);
    source.exchange_lines = ExchangeLines(text);
  }
  if (descriptor >= 0) close(descriptor);
  return source;
}

bool SourceLines::IsAtomic(const std::string& file, int line, std::time_t built) {
  if (file.empty() || line <= 0) return false;
  const File& source = Read(file);
  return source.modified <= built && source.atomic_lines.contains(line);
}

bool SourceLines::HasAtomic(const std::string& file, std::time_t built) {
  const File& source = Read(file);
  return source.modified <= built &&
         !(source.atomic_lines.empty() && source.exchange_lines.empty());
}

bool SourceLines::HasExchange(const std::string& file, int begin, int end, std::time_t built) {
  if (file.empty() || begin <= 0) return false;
  const File& source = Read(file);
  const auto found = source.exchange_lines.lower_bound(begin);
  return source.modified <= built && found != source.exchange_lines.end() && *found < end;
}

}  // namespace trapline
