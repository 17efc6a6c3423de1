// Fuzz target: any bytes as a source file of the program's. With clang and TRAPLINE_FUZZ it is a
// libFuzzer target; otherwise it runs over the files it is given.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "symbols/program_text.h"
#include "symbols/source_text.h"

namespace {

using trapline::SourceText;
using trapline::Tokens;

void Expect(bool what) {
  if (!what) abort();
}

// All tokens are parts of the text, one after the other.
void CheckTokens(Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Expect(!tokens[i].text.empty() && tokens[i].line > 0);
    if (i == 0) continue;
    Expect(tokens[i - 1].text.data() + tokens[i - 1].text.size() <= tokens[i].text.data());
    Expect(tokens[i - 1].line <= tokens[i].line);
  }
}

void CheckOperations(Tokens tokens, std::string_view name) {
  for (const auto& operation : trapline::OperationsIn(tokens, name)) {
    Expect(operation.begin < operation.end && operation.end <= tokens.size());
    Expect(operation.name == tokens[operation.begin].text);
    for (const Tokens argument : operation.arguments) Expect(!argument.empty());
  }
}

void CheckText(const SourceText& text, int lines) {
  const Tokens tokens = text.tokens();
  CheckTokens(tokens);
  CheckOperations(tokens, {});
  CheckOperations(tokens, "store");
  for (const auto& fence : trapline::AllFencesIn(tokens)) Expect(fence.at < tokens.size());
  for (const auto& directive : text.directives()) {
    CheckTokens(directive.tokens);
    bool is_include = false, quoted = false;
    static_cast<void>(trapline::IncludedBy(directive, is_include, quoted));
    static_cast<void>(trapline::FencesIn(directive.tokens));
  }
  for (int line = 0; line <= lines; ++line) {
    const Tokens statements = text.StatementsAt(line);
    if (!statements.empty()) Expect(text.IndexOf(statements) + statements.size() <= tokens.size());
  }
  for (std::size_t at = 0; at < tokens.size(); at += 1 + tokens.size() / 8) {
    const auto function = text.FunctionAround(at);
    if (!function) continue;
    Expect(function->begin <= function->open && function->open < at && at <= function->close);
    Expect(function->close < tokens.size() && text.IsDirectlyIn(*function, at));
  }
}

// All that is asked of a program which consists of that file.
void CheckProgram(const std::string& path, int lines) {
  trapline::ProgramText program({path}, {}, std::numeric_limits<std::time_t>::max());
  static_cast<void>(program.MixesThreads());
  for (int line = 0; line <= lines; ++line) {
    static_cast<void>(program.MayBeAtomic(path, line));
    static_cast<void>(program.LoadsAt(path, line));
    static_cast<void>(program.OrderAt(path, line, {}));
    const auto store = program.StoreAt(path, line, "store");
    Expect(store.before_fences >= 0 && store.before_fences <= lines);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr int kMostLines = 64;
  const auto lines = static_cast<int>(
      std::min<std::ptrdiff_t>(kMostLines, 1 + std::count(text.begin(), text.end(), '\n')));
  CheckText(SourceText(text), lines);
  const int file = memfd_create("source", MFD_CLOEXEC);
  Expect(file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  CheckProgram("/proc/self/fd/" + std::to_string(file), lines);
  close(file);
  return 0;
}
