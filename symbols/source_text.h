// The text of one C, C++ or assembler source, as tokens without comments, and what its statements
// say of atomic operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

struct Token {
  std::string_view text;  // a word, a number, a string with its quotes, or an operator
  int line = 0;           // from 1

  bool IsWord() const;
  bool IsString() const { return text.front() == '"'; }
};
using Tokens = std::span<const Token>;

// What a memory order makes of an atomic operation; kBoth also where it is not known. The values
// are sets, so that | gives what any of several orders does, & what both do.
enum class StatedOrder : std::uint8_t { kNeither = 0, kAcquires = 1, kReleases = 2, kBoth = 3 };
constexpr StatedOrder operator|(StatedOrder a, StatedOrder b) {
  return static_cast<StatedOrder>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr StatedOrder operator&(StatedOrder a, StatedOrder b) {
  return static_cast<StatedOrder>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr bool Includes(StatedOrder order, StatedOrder part) { return (order | part) == order; }

// The order by the number that it has in C and C++ (memory_order_relaxed is 0).
StatedOrder OrderOfConstant(std::uint64_t value);

// A word that starts the name of a compiler's or C's atomic operation; of a type, too.
bool IsAtomicWord(std::string_view word);
// What std::atomic calls its operations.
bool IsMemberOperation(std::string_view word);

// The word that inline assembly begins with.
bool IsAssembler(std::string_view word);

// What may be a fence: anything that orders accesses without being one of them.
struct Fence {
  std::size_t at = 0;  // the token that says so
  StatedOrder order = StatedOrder::kBoth;
  bool is_call = false;  // right there, of a function that is known to be a fence and no more
};
std::vector<Fence> AllFencesIn(Tokens tokens);
// What all of them order.
StatedOrder FencesIn(Tokens tokens);

// Not thread-safe.
class SourceText {
 public:
  explicit SourceText(std::string text);
  SourceText(const SourceText&) = delete;
  SourceText& operator=(const SourceText&) = delete;

  // A line that begins with #, with those that continue it; after the #.
  struct Directive {
    int line = 0;
    std::vector<Token> tokens;
    std::string_view text;
  };

  Tokens tokens() const { return tokens_; }
  const std::vector<Directive>& directives() const { return directives_; }
  // The index in tokens() of the first of `part`, which is part of them.
  std::size_t IndexOf(Tokens part) const {
    return static_cast<std::size_t>(part.data() - tokens_.data());
  }
  bool HasDirectiveIn(int first_line, int last_line) const;

  // A function that is no member of a class and no template, as tokens.
  struct Function {
    std::size_t begin = 0, open = 0, close = 0;  // its first one, and its body's braces
  };
  // The function that has the token `at` in its body, outside all braces in there. Nothing where
  // that is not clear.
  std::optional<Function> FunctionAround(std::size_t at) const;
  // Whether it is one of those.
  bool IsDirectlyIn(const Function& function, std::size_t at) const {
    const Braces* const inner = BracesAround(at);
    return inner != nullptr && inner->open == function.open;
  }

  // All statements of which something stands on that line, as one run of tokens. They end at
  // semicolons and braces.
  Tokens StatementsAt(int line) const;
  // Calls use(statement) for each statement.
  template <class Use>
  void ForEachStatement(Use&& use) const;

 private:
  // The tokens of text_ from `at` to `end`.
  void Tokenise(std::size_t at, std::size_t end, int line, std::vector<Token>& tokens);

  // A pair of braces, by its tokens, and the pair around it, by its number.
  static constexpr std::size_t kNoBraces = ~std::size_t{0};
  struct Braces {
    std::size_t open, close, outer;
  };
  struct AllBraces {
    std::vector<Braces> pairs;  // ascending by `open`
    bool match;                 // else there are others
  };
  const AllBraces& braces() const;
  // The innermost ones; null: there are none, or it is not clear.
  const Braces* BracesAround(std::size_t at) const;
  const Braces* BracesAround(const Braces& inner) const {
    return inner.outer == kNoBraces ? nullptr : &braces().pairs[inner.outer];
  }

  std::string text_;
  std::vector<Token> tokens_;
  std::vector<Directive> directives_;
  mutable std::optional<AllBraces> braces_;  // once somebody has asked
};

bool EndsStatement(const Token& token);

// "x.h" or <x.h> of an include; empty: it is none, or given by a macro.
std::string_view IncludedBy(const SourceText::Directive& directive, bool& is_include, bool& quoted);

// A call of an atomic operation by name.
struct NamedOperation {
  std::string_view name;
  std::size_t begin = 0, end = 0;  // the tokens of the call, from the name to its closing bracket
  std::vector<Tokens> arguments;
  StatedOrder order = StatedOrder::kBoth;
};

// The calls in `tokens` of what has that name, or, if it is empty, of all that IsAtomicWord.
// Calls that do not end there are known by their name alone.
std::vector<NamedOperation> OperationsIn(Tokens tokens, std::string_view name);

template <class Use>
void SourceText::ForEachStatement(Use&& use) const {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= tokens_.size(); ++i) {
    if (i < tokens_.size() && !EndsStatement(tokens_[i])) continue;
    if (i > begin) use(Tokens(tokens_).subspan(begin, i - begin));
    begin = i + 1;
  }
}

}  // namespace trapline
