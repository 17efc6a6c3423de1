#include "symbols/conditional_groups.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace trapline {
namespace {

// Of which the compilers for Linux on x86-64 define none, and a program must not.
constexpr std::array<std::string_view, 26> kOfOthers = {
    "_WIN32",      "_WIN64",   "_MSC_VER",    "__MINGW32__", "__MINGW64__",    "__CYGWIN__",
    "__APPLE__",   "__MACH__", "__FreeBSD__", "__NetBSD__",  "__OpenBSD__",    "__DragonFly__",
    "__sun",       "__sun__",  "_AIX",        "__ANDROID__", "__EMSCRIPTEN__", "__HAIKU__",
    "__Fuchsia__", "__arm__",  "__aarch64__", "__powerpc__", "__s390x__",      "__sparc__",
    "__mips__",    "__riscv"};
constexpr std::array<std::string_view, 6> kOurs = {"__linux__", "__linux",    "__unix__",
                                                   "__ELF__",   "__x86_64__", "__GNUC__"};

// Whether it holds.
enum class Truth { kNo, kYes, kMaybe };

Truth IsDefined(std::string_view name) {
  if (std::find(kOfOthers.begin(), kOfOthers.end(), name) != kOfOthers.end()) return Truth::kNo;
  if (std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end()) return Truth::kYes;
  return Truth::kMaybe;
}

Truth Not(Truth truth) {
  return truth == Truth::kMaybe ? truth : truth == Truth::kNo ? Truth::kYes : Truth::kNo;
}
Truth And(Truth a, Truth b) {
  if (a == Truth::kNo || b == Truth::kNo) return Truth::kNo;
  return a == Truth::kYes ? b : a;
}
Truth Or(Truth a, Truth b) { return Not(And(Not(a), Not(b))); }

// What an #if asks: terms with one kind of operator between them.
class Condition {
 public:
  explicit Condition(Tokens tokens) : tokens_(tokens) {}

  Truth Value() {
    Truth value = Term();
    if (!known_ || at_ == tokens_.size()) return known_ ? value : Truth::kMaybe;
    const std::string_view operation = tokens_[at_].text;
    if (operation != "||" && operation != "&&") return Truth::kMaybe;
    while (Is(operation)) {
      ++at_;
      const Truth other = Term();
      value = operation == "||" ? Or(value, other) : And(value, other);
    }
    return known_ && at_ == tokens_.size() ? value : Truth::kMaybe;
  }

 private:
  Truth Term() {
    bool negates = false;
    for (; Is("!"); ++at_) negates = !negates;
    const Truth truth = Question();
    return negates ? Not(truth) : truth;
  }

  Truth Question() {
    if (Is("0") || Is("1")) return tokens_[at_++].text == "1" ? Truth::kYes : Truth::kNo;
    const bool asks = Is("defined");
    if (asks) ++at_;
    const bool in_brackets = asks && Is("(");
    if (in_brackets) ++at_;
    if (at_ >= tokens_.size() || !tokens_[at_].IsWord()) {
      known_ = false;
      return Truth::kMaybe;
    }
    const Truth truth = IsDefined(tokens_[at_++].text);
    if (in_brackets && !Is(")")) known_ = false;
    if (in_brackets) ++at_;
    // By its value: what is not defined is 0, and what is may be anything.
    return asks || truth == Truth::kNo ? truth : Truth::kMaybe;
  }

  bool Is(std::string_view text) const { return at_ < tokens_.size() && tokens_[at_].text == text; }

  Tokens tokens_;
  std::size_t at_ = 0;
  bool known_ = true;
};

}  // namespace

void ConditionalGroups::Pass(const SourceText::Directive& directive) {
  const Tokens tokens = directive.tokens;
  if (tokens.empty()) return;
  const std::string_view name = tokens[0].text;
  const Truth asked_name = tokens.size() == 2 ? IsDefined(tokens[1].text) : Truth::kMaybe;
  Truth holds = Truth::kMaybe;
  if (name == "if" || name == "elif") holds = Condition(tokens.subspan(1)).Value();
  if (name == "ifdef" || name == "elifdef") holds = asked_name;
  if (name == "ifndef" || name == "elifndef") holds = Not(asked_name);
  if (name == "else") holds = Truth::kYes;
  if (name == "if" || name == "ifdef" || name == "ifndef") {
    groups_.emplace_back();
  } else if (groups_.empty() || (name != "else" && !name.starts_with("elif"))) {
    if (name == "endif" && !groups_.empty()) groups_.pop_back();
    return;
  }
  Group& group = groups_.back();
  group.left_out = group.was_in || holds == Truth::kNo;
  group.was_in = group.was_in || holds == Truth::kYes;
}

bool ConditionalGroups::left_out() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.left_out; });
}

}  // namespace trapline
