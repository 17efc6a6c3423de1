#include "symbols/atomic_macros.h"

#include <algorithm>

#include "symbols/source_files.h"
#include "symbols/source_lines.h"
#include "symbols/source_text.h"
#include "symbols/standing_names.h"

namespace trapline {
namespace {

// 7 MiB in 2,400 files take 0.15 s (one of AMD's Zen 4), at the first access that is checked.
constexpr std::size_t kMostBytes = 8 << 20;

// The lines of directives, with those that continue them: all else need not be taken apart.
std::string DirectivesOf(std::string_view text) {
  std::string directives;
  bool continues = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    const std::size_t first = line.find_first_not_of(" \t");
    if (continues || (first != std::string_view::npos && line[first] == '#')) {
      directives += line;
      continues = line.ends_with("\\\n") || line.ends_with("\\\r\n");
    }
  }
  return directives;
}

// By its name, or where the rest of that is pasted to it.
bool IsOperation(std::string_view word) {
  return NamesOperation(word) || word == "__atomic_" || word == "__c11_atomic_" ||
         word == "atomic_";
}

}  // namespace

AtomicMacros::AtomicMacros(const std::vector<std::string>& files,
                           const std::vector<std::string>& directories, std::time_t built)
    : built_(built), directories_(WithThoseAbove(directories)) {
  for (const std::string& directory : directories_) {
    for (const char* const below : {"/include", "/inc", "/src"})
      below_.push_back(directory + below);
  }
  Words bodies;
  for (const std::string& file : files) Read(NormalPath(file), bodies);
  names_.merge(NamesStandingFor(bodies, &IsOperation));
}

void AtomicMacros::AddMacrosOf(std::string_view header) {
  // Userspace RCU's are accesses to volatile variables, in headers of the system's.
  if (!header.starts_with("urcu")) return;
  for (const char* const name :
       {"CMM_LOAD_SHARED", "CMM_STORE_SHARED", "rcu_assign_pointer", "rcu_dereference",
        "rcu_set_pointer", "uatomic_read", "uatomic_set"})
    names_.emplace(name);
}

void AtomicMacros::Read(const std::string& path, Words& bodies) {
  if (IsSystemFile(path) || !read_.insert(path).second) return;
  std::string whole;
  if (size_ >= kMostBytes || !ReadSource(path, kMostBytes - size_, built_, whole)) return;
  size_ += whole.size();
  const SourceText text(DirectivesOf(whole));
  for (const SourceText::Directive& directive : text.directives()) {
    const Tokens tokens = directive.tokens;
    if (tokens.size() > 2 && tokens[0].text == "define") {
      auto& words = bodies[std::string(tokens[1].text)];
      for (const Token& token : tokens.subspan(2)) {
        if (token.IsWord()) words.emplace(token.text);
        // What follows _Pragma("omp atomic") in the macro is an operation.
        if (token.text.starts_with("\"omp atomic")) words.emplace("__atomic_");
      }
    }
    bool is_include = false, quoted = false;
    const std::string_view name = IncludedBy(directive, is_include, quoted);
    if (!is_include || name.empty()) continue;
    AddMacrosOf(name);
    for (const std::string& included : Find(name, quoted, path)) Read(included, bodies);
  }
}

bool AtomicMacros::IsFile(const std::string& path) {
  return ++lookups_ <= kMostLookups && IsRegularFile(path);
}

std::vector<std::string> AtomicMacros::Find(std::string_view name, bool quoted,
                                            const std::string& from) {
  const auto in = [name](const std::string& directory) {
    return NormalPath(directory + "/" + std::string(name));
  };
  if (quoted) {
    const std::string beside = in(from.substr(0, from.rfind('/')));
    if (IsFile(beside)) return {beside};
  }
  const auto [known, is_new] = found_.try_emplace(std::string(name));
  std::vector<std::string>& found = known->second;
  if (!is_new) return found;
  for (const auto* const directories : {&directories_, &below_}) {
    for (const std::string& directory : *directories) {
      const std::string path = in(directory);
      if (IsFile(path)) found.push_back(path);
    }
    if (!found.empty()) break;
  }
  return found;
}

bool AtomicMacros::AreUsedAt(const std::string& file, int line) {
  if (empty() || file.empty() || line <= 0) return false;
  const auto [known, is_new] = lines_.try_emplace(file);
  if (is_new) known->second = LinesIn(file);
  return known->second.contains(line);
}

std::set<int> AtomicMacros::LinesIn(const std::string& file) const {
  std::set<int> lines;
  std::string whole;
  if (IsSystemFile(file) || !ReadSource(file, kMostBytes, built_, whole)) return lines;
  const SourceText text(std::move(whole));
  const Tokens tokens = text.tokens();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].IsWord() || !names_.contains(tokens[i].text)) continue;
    // To the end of the call, if it is one; longer ones are brackets that do not match.
    constexpr std::size_t kLongestCall = 4096;  // tokens
    const std::size_t end = std::min(tokens.size(), i + kLongestCall);
    int last = tokens[i].line, depth = 0;
    for (std::size_t at = i + 1; at < end; ++at) {
      if (tokens[at].text == "(") ++depth;
      if (depth == 0) break;
      last = tokens[at].line;
      if (tokens[at].text == ")" && --depth == 0) break;
    }
    for (int line = tokens[i].line; line <= last; ++line) lines.insert(line);
  }
  return lines;
}

}  // namespace trapline
