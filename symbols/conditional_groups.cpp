#include "symbols/conditional_groups.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trapline {
namespace {

// Of which the compilers for Linux on x86-64 define none, and a program must not, or has no reason
// to: what is for them only may be missing.
constexpr std::string_view kOfOthers[] = {"AMIGA",
                                          "MSDOS",
                                          "OS2",
                                          "VMS",
                                          "WIN32",
                                          "WIN64",
                                          "WINCE",
                                          "WINDOWS",
                                          "_AIX",
                                          "_MSC_VER",
                                          "_WIN32",
                                          "_WIN32_WCE",
                                          "_WIN64",
                                          "_WINDOWS",
                                          "__ANDROID__",
                                          "__ARM_ARCH",
                                          "__ARM_NEON",
                                          "__ARM_NEON__",
                                          "__APPLE__",
                                          "__BEOS__",
                                          "__BORLANDC__",
                                          "__CYGWIN__",
                                          "__DJGPP__",
                                          "__DragonFly__",
                                          "__EMSCRIPTEN__",
                                          "__FreeBSD__",
                                          "__Fuchsia__",
                                          "__HAIKU__",
                                          "__MACH__",
                                          "__MINGW32__",
                                          "__MINGW64__",
                                          "__MSDOS__",
                                          "__MVS__",
                                          "__NT__",
                                          "__NetBSD__",
                                          "__OS2__",
                                          "__OpenBSD__",
                                          "__QNXNTO__",
                                          "__QNX__",
                                          "__TURBOC__",
                                          "__VMS",
                                          "__VXWORKS__",
                                          "__WATCOMC__",
                                          "__WIN32__",
                                          "__WINDOWS__",
                                          "__aarch64__",
                                          "__amigaos__",
                                          "__arm64__",
                                          "__arm__",
                                          "__hpux",
                                          "__hppa__",
                                          "__ia64__",
                                          "__mips__",
                                          "__osf__",
                                          "__powerpc__",
                                          "__powerpc64__",
                                          "__riscv",
                                          "__s390x__",
                                          "__sgi",
                                          "__sparc__",
                                          "__sun",
                                          "__sun__",
                                          "__vxworks",
                                          "__wasm__",
                                          "_hpux",
                                          "hpux",
                                          "macintosh",
                                          "sgi",
                                          "sun"};
constexpr std::string_view kOurs[] = {"__linux__", "__linux",    "__unix__",
                                      "__ELF__",   "__x86_64__", "__GNUC__"};

// Whether it holds.
enum class Truth { kNo, kYes, kMaybe };

Truth IsDefined(std::string_view name) {
  if (std::ranges::find(kOfOthers, name) != std::ranges::end(kOfOthers)) return Truth::kNo;
  if (std::ranges::find(kOurs, name) != std::ranges::end(kOurs)) return Truth::kYes;
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

// What an #if asks.
class Condition {
 public:
  explicit Condition(Tokens tokens) : tokens_(tokens) {}

  Truth Value() {
    const Truth value = Any();
    return known_ && at_ == tokens_.size() ? value : Truth::kMaybe;
  }

 private:
  Truth Any() {
    Truth truth = All();
    for (; Is("||"); truth = Or(truth, All())) ++at_;
    return truth;
  }

  Truth All() {
    Truth truth = Term();
    for (; Is("&&"); truth = And(truth, Term())) ++at_;
    return truth;
  }

  Truth Term() {
    bool negates = false;
    for (; Is("!"); ++at_) negates = !negates;
    const Truth truth = Question();
    if (truth == Truth::kNo && !negates && IsPositive()) return Truth::kNo;
    if (SkipRest()) return Truth::kMaybe;
    return negates ? Not(truth) : truth;
  }

  // Whether the rest of a term asks that it be some number above 0; behind that.
  bool IsPositive() {
    if (!Is(">=") && !Is("==")) return false;
    const std::string_view number = at_ + 1 < tokens_.size() ? tokens_[at_ + 1].text : "";
    if (!TermEndsAt(at_ + 2) || number.empty() || number[0] < '1' || number[0] > '9') return false;
    at_ += 2;
    return true;
  }

  bool TermEndsAt(std::size_t at) const {
    if (at >= tokens_.size()) return true;
    const std::string_view text = tokens_[at].text;
    return text == "&&" || text == "||" || text == ")";
  }

  // Comparisons, sums, what a macro is given. False: there is none of it.
  bool SkipRest() {
    const std::size_t start = at_;
    for (int depth = 0; at_ < tokens_.size(); ++at_) {
      if (depth == 0 && TermEndsAt(at_)) break;
      depth += Is("(") ? 1 : Is(")") ? -1 : 0;
    }
    return at_ != start;
  }

  Truth Question() {
    if (Is("0") || Is("1")) return tokens_[at_++].text == "1" ? Truth::kYes : Truth::kNo;
    if (Is("(") && depth_ < kMostDepth) {
      ++at_;
      ++depth_;
      const Truth truth = Any();
      --depth_;
      TakeBracket();
      return truth;
    }
    const bool asks = Is("defined");
    if (asks) ++at_;
    const bool in_brackets = asks && Is("(");
    if (in_brackets) ++at_;
    if (at_ >= tokens_.size() || !tokens_[at_].IsWord()) {
      known_ = known_ && !asks;
      return Truth::kMaybe;
    }
    const Truth truth = IsDefined(tokens_[at_++].text);
    if (in_brackets) TakeBracket();
    // By its value: what is not defined is 0, and what is may be anything.
    return asks || truth == Truth::kNo ? truth : Truth::kMaybe;
  }

  void TakeBracket() {
    known_ = known_ && Is(")");
    ++at_;
  }

  bool Is(std::string_view text) const { return at_ < tokens_.size() && tokens_[at_].text == text; }

  static constexpr int kMostDepth =
      32;  // of brackets in brackets; a condition of more is not known

  Tokens tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
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
