#include "symbols/source_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace trapline {
namespace {

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

constexpr std::array<std::string_view, 20> kOperators = {
    "->", "++", "--", "==", "!=", "<=", ">=", "+=", "-=", "*=",
    "/=", "|=", "&=", "^=", "%=", "<<", "::", "&&", "||", "##"};

// Where the string or character at `at` ends.
std::size_t EndOfQuoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Whether a string right behind this token is a raw one.
bool IsRawPrefix(std::string_view token) {
  for (const std::string_view prefix : {"R", "LR", "uR", "UR", "u8R"}) {
    if (token == prefix) return true;
  }
  return false;
}

// Where R"x(...)x" ends, whose first quote is at `at`.
std::size_t EndOfRaw(std::string_view text, std::size_t at) {
  const std::size_t open = text.find_first_of("( )\\\t\v\f\n", at);
  if (open == std::string_view::npos || text[open] != '(') return EndOfQuoted(text, at);
  const std::string end = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t found = text.find(end, open);
  return found == std::string_view::npos ? text.size() : found + end.size();
}

std::string Lower(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A word that may name a fence, called or not.
bool NamesFence(std::string_view word, bool called) {
  const std::string lower = Lower(word);
  if (Contains(lower, "fence")) return !Contains(lower, "atomic_signal_fence");
  for (const std::string_view part :
       {"sync_synchronize", "memory_barrier", "memorybarrier", "mem_barrier", "membar"}) {
    if (Contains(lower, part)) return true;
  }
  if (!called) return false;
  for (const std::string_view end : {"_mb", "_rmb", "_wmb", "_barrier"}) {
    if (lower.ends_with(end)) return true;
  }
  // Not the classes that are called Barrier.
  return lower == "mb" || lower == "rmb" || lower == "wmb" || word == "barrier" ||
         word == "BARRIER";
}

// Whether inline assembly, whose word is at `at`, may order anything. What only keeps the compiler
// from knowing a value does not.
bool AssemblerOrders(Tokens tokens, std::size_t at) {
  for (++at; at < tokens.size() && tokens[at].IsWord(); ++at) {
  }
  if (at == tokens.size() || tokens[at].text != "(") return true;
  std::string code;
  for (++at; at < tokens.size() && tokens[at].IsString(); ++at) {
    const std::string_view text = tokens[at].text;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (!IsSpace(text[i]) && text[i] != ';') {
        code += text[i];
      }
    }
  }
  if (code == "pause" || code == "repnop" || code == "nop") return false;
  if (!code.empty()) return true;
  for (; at < tokens.size() && tokens[at].text != ")"; ++at) {
    if (tokens[at].text == "(") return false;  // an operand
    if (tokens[at].text == "\"memory\"") return true;
  }
  return false;
}

// Functions that do nothing else.
bool IsFenceFunction(std::string_view word) {
  return word == "atomic_thread_fence" || word == "__atomic_thread_fence" ||
         word == "__c11_atomic_thread_fence" || word == "__sync_synchronize";
}

// Whether braces that come after `head` leave names what they are outside: those of a namespace,
// or of extern "C".
bool IsTransparent(Tokens head) {
  if (head.empty()) return false;
  const std::string_view first = head.front().text;
  return first == "namespace" ||
         (head.size() > 1 && first == "inline" && head[1].text == "namespace") ||
         (head.size() == 2 && first == "extern" && head.back().IsString());
}

// Whether braces that come after `head` are the body of a function that is no member, template or
// lambda.
bool IsFunctionHead(Tokens head) {
  if (!head.empty() && head.back().text == "noexcept") head = head.first(head.size() - 1);
  if (head.empty() || head.back().text != ")") return false;
  std::size_t open = head.size() - 1;
  for (int depth = 1; depth > 0 && open > 0;) {
    const std::string_view text = head[--open].text;
    depth += text == ")" ? 1 : text == "(" ? -1 : 0;
  }
  // A type, a name, and the parameters; no other brackets.
  if (open < 2 || !head[open - 1].IsWord() || head[open - 2].text == "::") return false;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const std::string_view text = head[i].text;
    for (const std::string_view other : {"if", "for", "while", "switch", "catch", "else", "do",
                                         "return", "template", "operator", "auto", "requires"}) {
      if (text == other) return false;
    }
    if (i < open && (text == "(" || text == "[" || text == "=")) return false;
  }
  return true;
}

// The order that an argument is, if it is a constant by name.
std::optional<StatedOrder> ConstantOf(Tokens argument) {
  if (argument.empty()) return std::nullopt;
  for (std::size_t i = 0; i + 1 < argument.size(); ++i) {
    if (!argument[i].IsWord() && argument[i].text != "::") return std::nullopt;
  }
  std::string_view name = argument.back().text;
  if (name.starts_with("memory_order_")) {
    name.remove_prefix(std::string_view("memory_order_").size());
  } else if (!name.starts_with("__ATOMIC_") &&
             (argument.size() < 3 || argument[argument.size() - 2].text != "::" ||
              argument[argument.size() - 3].text != "memory_order")) {
    return std::nullopt;
  }
  constexpr std::array<std::array<std::string_view, 2>, 6> kNames = {
      {{"relaxed", "__ATOMIC_RELAXED"},
       {"consume", "__ATOMIC_CONSUME"},
       {"acquire", "__ATOMIC_ACQUIRE"},
       {"release", "__ATOMIC_RELEASE"},
       {"acq_rel", "__ATOMIC_ACQ_REL"},
       {"seq_cst", "__ATOMIC_SEQ_CST"}}};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i][0] || name == kNames[i][1]) return OrderOfConstant(i);
  }
  return std::nullopt;
}

// The order of a call by its last arguments: of a compare-and-exchange the last two, of which the
// second is for when it fails; if there is but one, it is for both.
StatedOrder OrderOfCall(std::string_view name, const std::vector<Tokens>& arguments) {
  if (arguments.empty()) return StatedOrder::kBoth;
  const auto last = ConstantOf(arguments.back());
  if (!last) return StatedOrder::kBoth;
  if (!Contains(name, "compare_exchange")) return *last;
  constexpr std::size_t kWithOneOrder = 3;  // expected, desired, order
  if (arguments.size() == kWithOneOrder) return *last;
  const auto success = ConstantOf(arguments[arguments.size() - 2]);
  return success ? *last | *success : StatedOrder::kBoth;
}

}  // namespace

bool Token::IsWord() const { return IsWordCharacter(text.front()) && !IsDigit(text.front()); }

StatedOrder OrderOfConstant(std::uint64_t value) {
  switch (value) {
    case 0:
      return StatedOrder::kNeither;
    case 1:
    case 2:
      return StatedOrder::kAcquires;
    case 3:
      return StatedOrder::kReleases;
    default:
      return StatedOrder::kBoth;
  }
}

bool IsAtomicWord(std::string_view word) {
  for (const std::string_view start :
       {"__atomic_", "__c11_atomic_", "__sync_", "__scoped_atomic_", "atomic_"}) {
    if (word.starts_with(start)) return true;
  }
  return false;
}

bool IsAssembler(std::string_view word) {
  return word == "asm" || word == "__asm" || word == "__asm__";
}

bool IsMemberOperation(std::string_view word) {
  for (const std::string_view name : {"load", "store", "exchange", "compare_exchange_weak",
                                      "compare_exchange_strong", "test_and_set", "test", "clear"}) {
    if (word == name) return true;
  }
  return word.starts_with("fetch_");
}

std::vector<Fence> AllFencesIn(Tokens tokens) {
  std::vector<Fence> fences;
  std::optional<std::vector<NamedOperation>> operations;
  const auto order_of_call = [&](std::size_t at) {
    if (!operations) operations = OperationsIn(tokens, {});
    const auto call = std::ranges::lower_bound(*operations, at, {}, &NamedOperation::begin);
    return call != operations->end() && call->begin == at ? call->order : StatedOrder::kBoth;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    if (!tokens[i].IsWord()) continue;
    if (IsAssembler(word)) {
      if (AssemblerOrders(tokens, i)) fences.push_back({i, StatedOrder::kBoth, false});
      continue;
    }
    const bool called = i + 1 < tokens.size() && tokens[i + 1].text == "(";
    if (!NamesFence(word, called)) continue;
    const bool takes_order = word == "atomic_thread_fence" || word == "__atomic_thread_fence";
    // A consume fence is an acquire fence.
    const StatedOrder order = called && takes_order ? order_of_call(i) : StatedOrder::kBoth;
    fences.push_back({i, order, called && IsFenceFunction(word)});
  }
  return fences;
}

StatedOrder FencesIn(Tokens tokens) {
  StatedOrder order = StatedOrder::kNeither;
  for (const Fence& fence : AllFencesIn(tokens)) order = order | fence.order;
  return order;
}

SourceText::SourceText(std::string text) : text_(std::move(text)) {
  Tokenise(0, text_.size(), 1, tokens_);
}

void SourceText::Tokenise(std::size_t at, std::size_t end, int line, std::vector<Token>& tokens) {
  const std::string_view text = std::string_view(text_).substr(0, end);
  const bool in_directive = &tokens != &tokens_;
  bool line_begins = true;
  while (at < end) {
    const char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
      line_begins = true;
    } else if (IsSpace(c) || c == '\\') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), end);
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t close = std::min(text.find("*/", at + 2), end);
      line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                          text.begin() + static_cast<std::ptrdiff_t>(close), '\n'));
      at = std::min(close + 2, end);
    } else if (c == '#' && line_begins && !in_directive) {
      // Up to the end of a line that no backslash continues.
      std::size_t stop = at;
      do {
        stop = std::min(text.find('\n', stop + 1), end);
      } while (stop < end &&
               (text[stop - 1] == '\\' || (text[stop - 1] == '\r' && text[stop - 2] == '\\')));
      Directive directive{line, {}, text.substr(at + 1, stop - at - 1)};
      Tokenise(at + 1, stop, line, directive.tokens);
      directives_.push_back(std::move(directive));
      line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                          text.begin() + static_cast<std::ptrdiff_t>(stop), '\n'));
      at = stop;
    } else {
      line_begins = false;
      std::size_t stop = at + 1;
      if (c == '"') {
        const bool adjoins = !tokens.empty() && tokens.back().text.end() == text.begin() + at;
        const bool raw = adjoins && IsRawPrefix(tokens.back().text);
        stop = raw ? EndOfRaw(text, at) : EndOfQuoted(text, at);
      } else if (c == '\'') {
        stop = EndOfQuoted(text, at);
      } else if (IsDigit(c)) {
        while (stop < end &&
               (IsWordCharacter(text[stop]) || text[stop] == '.' ||
                (text[stop] == '\'' && stop + 1 < end && IsWordCharacter(text[stop + 1])))) {
          ++stop;
        }
      } else if (IsWordCharacter(c)) {
        while (stop < end && IsWordCharacter(text[stop])) ++stop;
      } else if (std::find(kOperators.begin(), kOperators.end(), text.substr(at, 2)) !=
                 kOperators.end()) {
        stop = at + 2;
      }
      stop = std::min(stop, end);
      tokens.push_back({text.substr(at, stop - at), line});
      line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                          text.begin() + static_cast<std::ptrdiff_t>(stop), '\n'));
      at = stop;
    }
  }
}

bool EndsStatement(const Token& token) {
  return token.text == ";" || token.text == "{" || token.text == "}";
}

Tokens SourceText::StatementsAt(int line) const {
  const auto before = [](const Token& token, int value) { return token.line < value; };
  auto first = std::lower_bound(tokens_.begin(), tokens_.end(), line, before);
  auto last = std::lower_bound(first, tokens_.end(), line + 1, before);
  if (first == last) return {};
  while (first != tokens_.begin() && !EndsStatement(*std::prev(first))) --first;
  if (!EndsStatement(*std::prev(last))) {
    while (last != tokens_.end() && !EndsStatement(*last)) ++last;
  }
  return {first, last};
}

bool SourceText::HasDirectiveIn(int first_line, int last_line) const {
  return std::any_of(directives_.begin(), directives_.end(), [&](const Directive& directive) {
    return directive.line >= first_line && directive.line <= last_line;
  });
}

const SourceText::AllBraces& SourceText::braces() const {
  if (braces_) return *braces_;
  AllBraces& all = braces_.emplace(AllBraces{{}, true});
  std::size_t inner = kNoBraces;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].text == "{") {
      all.pairs.push_back({i, 0, inner});
      inner = all.pairs.size() - 1;
    } else if (tokens_[i].text == "}") {
      if (inner == kNoBraces) {
        all.match = false;
        return all;
      }
      all.pairs[inner].close = i;
      inner = all.pairs[inner].outer;
    }
  }
  all.match = inner == kNoBraces;
  return all;
}

const SourceText::Braces* SourceText::BracesAround(std::size_t at) const {
  // Braces that do not match, for instance in branches of #if, may hide any others.
  if (!braces().match) return nullptr;
  const auto behind = std::ranges::lower_bound(braces().pairs, at, {}, &Braces::open);
  if (behind == braces().pairs.begin()) return nullptr;
  const Braces* around = &*std::prev(behind);
  while (around != nullptr && around->close < at) around = BracesAround(*around);
  return around;
}

std::optional<SourceText::Function> SourceText::FunctionAround(std::size_t at) const {
  const auto head_of = [this](const Braces& pair) {
    std::size_t begin = pair.open;
    while (begin > 0 && !EndsStatement(tokens_[begin - 1])) --begin;
    return Tokens(tokens_).subspan(begin, pair.open - begin);
  };
  const Braces* const body = BracesAround(at);
  if (body == nullptr || !IsFunctionHead(head_of(*body))) return std::nullopt;
  for (const Braces* outer = BracesAround(*body); outer != nullptr; outer = BracesAround(*outer)) {
    if (!IsTransparent(head_of(*outer))) return std::nullopt;
  }
  return Function{IndexOf(head_of(*body)), body->open, body->close};
}

// In one go, for calls may be in one another as deeply as their file is long.
std::vector<NamedOperation> OperationsIn(Tokens tokens, std::string_view name) {
  std::vector<NamedOperation> operations;
  // One that is open: where the present argument in it begins, and the numbers of the operations
  // whose arguments these are.
  struct Bracket {
    std::size_t argument;
    std::vector<std::size_t> calls;
  };
  std::vector<Bracket> open;
  std::vector<std::size_t> begun;  // operations whose arguments begin with the next bracket
  const auto end_argument = [&](const Bracket& inner, std::size_t at) {
    if (at == inner.argument) return;
    for (const std::size_t call : inner.calls)
      operations[call].arguments.push_back(tokens.subspan(inner.argument, at - inner.argument));
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(") {
      open.push_back({i + 1, std::exchange(begun, {})});
    } else if (text == "[" || text == "{") {
      open.push_back({i + 1, {}});
    } else if (text == "," && !open.empty()) {
      end_argument(open.back(), i);
      open.back().argument = i + 1;
    } else if ((text == ")" || text == "]" || text == "}") && !open.empty()) {
      end_argument(open.back(), i);
      for (const std::size_t call : open.back().calls) {
        operations[call].end = i + 1;
        operations[call].order = OrderOfCall(operations[call].name, operations[call].arguments);
      }
      open.pop_back();
    } else if (tokens[i].IsWord() && (name.empty() ? IsAtomicWord(text) : text == name)) {
      const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : ";";
      const bool called = next == "(" || (!name.empty() && next == "<");
      // A type's name is no operation; a function's that is not called here may be anything.
      if (!called && name.empty()) continue;
      if (called) begun.push_back(operations.size());
      operations.push_back({text, i, called ? tokens.size() : i + 1, {}, StatedOrder::kBoth});
    }
  }
  for (const std::size_t call : begun) operations[call].end = operations[call].begin + 1;
  return operations;
}

std::string_view IncludedBy(const SourceText::Directive& directive, bool& is_include,
                            bool& quoted) {
  is_include = !directive.tokens.empty() && directive.tokens.front().text.starts_with("include");
  if (!is_include) return {};
  const std::size_t begin = directive.text.find_first_of("<\"");
  if (begin == std::string_view::npos) return {};
  quoted = directive.text[begin] == '"';
  const std::size_t end = directive.text.find(quoted ? '"' : '>', begin + 1);
  if (end == std::string_view::npos) return {};
  return directive.text.substr(begin + 1, end - begin - 1);
}

}  // namespace trapline
