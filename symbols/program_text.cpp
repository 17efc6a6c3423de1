#include "symbols/program_text.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "symbols/conditional_groups.h"
#include "symbols/source_files.h"
#include "symbols/standing_names.h"

namespace trapline {
namespace {

constexpr std::size_t kLargestText =
    24 << 20;  // bytes in all files; their tokens take five times that

constexpr std::array<std::string_view, 44> kKeywords = {
    "auto",   "bool",   "break",    "case",     "char",    "const",  "continue", "default",
    "delete", "do",     "double",   "else",     "extern",  "false",  "float",    "for",
    "goto",   "if",     "inline",   "int",      "long",    "new",    "nullptr",  "operator",
    "public", "return", "short",    "signed",   "sizeof",  "static", "struct",   "switch",
    "this",   "true",   "typename", "template", "typedef", "union",  "unsigned", "using",
    "void",   "while",  "std",      "class"};

bool IsKeyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

// Where compilers look for headers.
std::vector<std::string> StandardDirectories() {
  std::vector<std::string> directories = {"/usr/local/include", "/usr/include/x86_64-linux-gnu",
                                          "/usr/include"};
  const auto add_below = [&](const std::string& parent, const std::string& rest) {
    DIR* const listing = opendir(parent.c_str());
    if (listing == nullptr) return;
    while (const dirent* entry = readdir(listing)) {
      if (entry->d_name[0] != '.')
        directories.push_back(fmt::format("{}/{}{}", parent, entry->d_name, rest));
    }
    closedir(listing);
  };
  add_below("/usr/lib/gcc/x86_64-linux-gnu", "/include");
  add_below("/usr/include/c++", "");
  add_below("/usr/include/x86_64-linux-gnu/c++", "");
  add_below("/usr/lib/clang", "/include");
  return directories;
}

bool Has(Tokens tokens, std::string_view word) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const Token& token) { return token.text == word; });
}

bool IsAtomicType(Tokens tokens, std::size_t at) {
  const std::string_view word = tokens[at].text;
  return word == "_Atomic" ||
         (word.starts_with("atomic_") && (at + 1 == tokens.size() || tokens[at + 1].text != "("));
}

bool IsVolatile(Tokens tokens, std::size_t at) {
  const std::string_view word = tokens[at].text;
  return word == "volatile" || word == "__volatile__" || word == "__volatile";
}

// Whether the word is a variable of which only the address is taken, as an argument.
bool IsAddressOf(Tokens tokens, std::size_t at) {
  return at >= 2 && at + 1 < tokens.size() && tokens[at - 1].text == "&" &&
         (tokens[at - 2].text == "(" || tokens[at - 2].text == ",") &&
         (tokens[at + 1].text == ")" || tokens[at + 1].text == ",");
}

// A declaration without a value: of variables, or of a function's parameters.
bool IsAtomicDeclaration(Tokens tokens) {
  bool has_type = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) has_type = has_type || IsAtomicType(tokens, i);
  return has_type && !Has(tokens, "=");
}

// "counter = counter + 1", "counter++": whatever it may be, no atomic load.
bool IsPlainUpdate(Tokens statement) {
  std::string_view variable;
  std::size_t uses = 0;
  bool changes = false;
  for (const Token& token : statement) {
    if (token.IsWord()) {
      if (uses++ == 0) variable = token.text;
      if (token.text != variable) return false;
    }
    changes = changes || token.text == "++" || token.text == "--" ||
              (token.text.size() == 2 && token.text[1] == '=' &&
               std::string_view("+-*/|&^%").find(token.text[0]) != std::string_view::npos);
  }
  return changes || (uses > 1 && Has(statement, "="));
}

// Whether the word stands for something that makes a thread go on with another one's work, or
// interrupts it.
bool MixesThreadsBy(Tokens tokens, std::size_t at) {
  const std::string_view word = tokens[at].text;
  for (const std::string_view whole : {"co_await", "co_yield", "co_return", "swapcontext",
                                       "setcontext", "makecontext", "sigaction", "sigset"}) {
    if (word == whole) return true;
  }
  for (const std::string_view part :
       {"fiber", "Fiber", "coroutine", "Coroutine", "fcontext", "ucontext"}) {
    if (word.find(part) != std::string_view::npos) return true;
  }
  return word == "signal" && at + 1 < tokens.size() && tokens[at + 1].text == "(";
}

// Whether the tokens are the name of one object: x, x.y, ns::x.
bool IsFixedObject(Tokens tokens) {
  if (!tokens.empty() && tokens.front().text == "::") tokens = tokens.subspan(1);
  if (tokens.size() % 2 == 0) return false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (i % 2 == 0 ? !tokens[i].IsWord() || text == "this" : text != "." && text != "::")
      return false;
  }
  return true;
}

// The object that a statement stores to, if it is nothing but the call of an atomic store and that
// is clear; otherwise empty.
Tokens ObjectOfStore(Tokens statement, const NamedOperation& operation) {
  if (operation.end != statement.size() || operation.arguments.empty()) return {};
  const Tokens before = statement.first(operation.begin);
  const std::string_view name = operation.name;
  Tokens object;
  if (name == "store") {
    if (before.size() < 2 || before.back().text != ".") return {};
    object = before.first(before.size() - 1);
  } else {
    constexpr std::array<std::string_view, 4> kStores = {
        "atomic_store_explicit", "__atomic_store_n", "__atomic_store", "__c11_atomic_store"};
    if (std::find(kStores.begin(), kStores.end(), name) == kStores.end() || !before.empty())
      return {};
    object = operation.arguments.front();
    if (object.front().text != "&") return {};
    object = object.subspan(1);
  }
  return IsFixedObject(object) ? object : Tokens();
}

// Whether `name` may be declared among the tokens: stands where no expression would have it.
bool MayDeclare(Tokens tokens, std::string_view name) {
  constexpr std::array<std::string_view, 14> kBeforeUse = {
      "(", "!", "=", "==", "!=", "<=", ">=", "&&", "||", ";", "{", "}", "return", "+"};
  const auto is_before_use = [&](const Token& token) {
    return std::find(kBeforeUse.begin(), kBeforeUse.end(), token.text) != kBeforeUse.end();
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != name) continue;
    if (i == 0) return true;
    const bool is_address =
        i >= 2 && tokens[i - 1].text == "&" &&
        (tokens[i - 2].text == "(" || tokens[i - 2].text == "," || tokens[i - 2].text == "=");
    if (!is_address && !is_before_use(tokens[i - 1])) return true;
  }
  return false;
}

}  // namespace

ProgramText::ProgramText(const std::vector<std::string>& files,
                         const std::vector<std::string>& directories, std::time_t built)
    : built_(built), standard_directories_(StandardDirectories()) {
  const std::vector<std::string> own = WithThoseAbove(directories);
  directories_.insert(own.begin(), own.end());
  for (const std::string& file : files) {
    const std::string path = NormalPath(file);
    // <built-in> and the like are no files.
    const bool is_none = path.substr(path.rfind('/') + 1).starts_with('<');
    if (is_none || IsSystemFile(path)) continue;
    if (!complete_) return;
    Read(path, false);
  }
  for (const auto& [path, text] : files_) {
    AddMacros(*text);
    NoteFences(*text);
    const auto note_builtins = [&](Tokens tokens) {
      calls_atomic_builtins_ =
          calls_atomic_builtins_ || std::ranges::any_of(tokens, [](const Token& token) {
            const std::string_view word = token.text;
            return (word.starts_with("__atomic_") || word.starts_with("__sync_")) &&
                   !word.ends_with("_fence") && word != "__sync_synchronize";
          });
    };
    note_builtins(text->tokens());
    for (const SourceText::Directive& directive : text->directives()) {
      note_builtins(directive.tokens);
      has_flushes_ =
          has_flushes_ || (Has(directive.tokens, "omp") && Has(directive.tokens, "flush"));
    }
  }
  for (const auto& [name, words] : macros_) own_macros_.insert(name);
  atomic_ = DeclaredBy(&IsAtomicType);
  volatile_ = DeclaredBy(&IsVolatile);
}

const SourceText* ProgramText::Read(const std::string& path, bool system) {
  auto& files = system ? system_files_ : files_;
  bool& complete = system ? system_complete_ : complete_;
  const auto [at, is_new] = files.try_emplace(path);
  if (!is_new || !complete) return at->second.get();
  std::string text;
  if (!ReadSource(path, kLargestText - size_, built_, text)) {
    complete = false;
    files.erase(at);
    return nullptr;
  }
  size_ += text.size();
  at->second = std::make_unique<SourceText>(std::move(text));
  const SourceText* const read = at->second.get();
  ReadIncludes(path, *read, system);
  return read;
}

void ProgramText::ReadIncludes(const std::string& path, const SourceText& text, bool system) {
  ConditionalGroups groups;
  for (const SourceText::Directive& directive : text.directives()) {
    groups.Pass(directive);
    if (groups.left_out()) continue;
    bool is_include = false, quoted = false;
    const std::string_view name = IncludedBy(directive, is_include, quoted);
    if (!is_include) continue;
    const std::vector<std::string> found =
        name.empty() ? std::vector<std::string>() : Find(name, quoted, path);
    // What the system's headers ask for and is not there was not wanted: they know many systems.
    if (found.empty() && !system) complete_ = false;
    for (const std::string& file : found) {
      if (!system && IsSystemFile(file)) {
        system_wanted_.insert(file);
      } else {
        Read(file, system);
      }
    }
    if (!complete_) return;
  }
}

std::vector<std::string> ProgramText::Find(std::string_view name, bool quoted,
                                           const std::string& from) {
  const auto beside = [&](const std::string& directory) {
    const std::string path = NormalPath(directory + "/" + std::string(name));
    return IsRegularFile(path) ? path : std::string();
  };
  if (name.starts_with('/')) return {std::string(name)};
  if (quoted) {
    if (const std::string path = beside(from.substr(0, from.rfind('/'))); !path.empty())
      return {path};
  }
  const auto [known, is_new] = found_.try_emplace(std::string(name));
  std::vector<std::string>& found = known->second;
  if (!is_new) return found;
  for (const std::string& directory : directories_) {
    if (const std::string path = beside(directory); !path.empty()) found.push_back(path);
  }
  for (const std::string& directory : standard_directories_) {
    if (!found.empty()) break;
    if (const std::string path = beside(directory); !path.empty()) found.push_back(path);
  }
  return found;
}

void ProgramText::ReadSystem() {
  if (system_read_) return;
  system_read_ = true;
  for (const std::string& path : system_wanted_) Read(path, true);
  for (const auto& [path, text] : system_files_) AddMacros(*text);
  hiding_.reset();
  jumping_.reset();
}

void ProgramText::AddMacros(const SourceText& text) {
  for (const SourceText::Directive& directive : text.directives()) {
    const Tokens tokens = directive.tokens;
    if (tokens.size() < 3 || tokens[0].text != "define") continue;
    auto& words = macros_[tokens[1].text];
    for (const Token& token : tokens.subspan(2)) {
      if (token.IsWord() || token.text == "##") words.insert(token.text);
    }
  }
}

void ProgramText::NoteFences(const SourceText& text) {
  for (const Fence& fence : AllFencesIn(text.tokens())) {
    fences_ = fences_ | fence.order;
    if (!Includes(fence.order, StatedOrder::kReleases)) continue;
    if (fenced_file_ == nullptr) fenced_file_ = &text;
    fences_anywhere_ = fences_anywhere_ || !fence.is_call || fenced_file_ != &text;
    if (!fences_anywhere_) releasing_fences_.push_back(fence.at);
  }
  for (const SourceText::Directive& directive : text.directives()) {
    const StatedOrder order = FencesIn(directive.tokens);
    fences_ = fences_ | order;
    fences_anywhere_ = fences_anywhere_ || Includes(order, StatedOrder::kReleases);
  }
}

template <class IsType>
ProgramText::Declared ProgramText::DeclaredBy(IsType&& is_type) const {
  // By type, or macro: the words it is defined by; empty: such a type itself.
  std::map<std::string_view, std::vector<std::string_view>> definitions;
  const auto define = [&](std::string_view name, Tokens as) {
    auto& words = definitions[name];
    for (std::size_t i = 0; i < as.size(); ++i) {
      if (is_type(as, i)) words.emplace_back();
      if (as[i].IsWord()) words.push_back(as[i].text);
    }
  };
  for (const auto& [path, text] : files_) {
    for (const SourceText::Directive& directive : text->directives()) {
      const Tokens tokens = directive.tokens;
      if (tokens.size() > 2 && tokens[0].text == "define")
        define(tokens[1].text, tokens.subspan(2));
    }
    text->ForEachStatement([&](Tokens statement) {
      // The new name is the last one, or the first.
      const auto word = [](const Token& token) { return token.IsWord(); };
      if (statement.front().text == "using") {
        if (statement.size() > 1) define(statement[1].text, statement);
      } else if (statement.front().text == "typedef") {
        const auto last = std::find_if(statement.rbegin(), statement.rend(), word);
        if (last != statement.rend()) define(last->text, statement);
      }
    });
  }
  Declared declared{
      NamesStandingFor(definitions, [](std::string_view word) { return word.empty(); }), {}};
  const auto names_type = [&](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (is_type(tokens, i) || declared.types.contains(tokens[i].text)) return true;
    }
    return false;
  };
  for (const auto& [path, text] : files_) {
    text->ForEachStatement([&](Tokens statement) {
      const auto is_assembler = [](const Token& token) { return IsAssembler(token.text); };
      if (!names_type(statement) || std::any_of(statement.begin(), statement.end(), is_assembler))
        return;
      bool refers = false;
      for (std::size_t i = 0; i < statement.size(); ++i) {
        // What an atomic_ref refers to is not atomic itself.
        const std::string_view word = statement[i].text;
        if (refers && (word == "(" || word == "{" || word == "=")) break;
        refers = refers || word == "atomic_ref";
        // Not the functions that take or return such.
        const bool is_function = i + 1 < statement.size() && statement[i + 1].text == "(";
        if (statement[i].IsWord() && !is_function && !IsKeyword(statement[i].text))
          declared.names.insert(statement[i].text);
      }
    });
  }
  return declared;
}

bool ProgramText::Hides(std::string_view word, bool (*is_it)(std::string_view), Macros& hiding) {
  if (!hiding) {
    hiding = NamesStandingFor(
        macros_, [is_it](std::string_view part) { return part == "##" || is_it(part); });
  }
  return hiding->contains(word);
}

bool ProgramText::HidesAtomic(std::string_view word) {
  const auto is_atomic = [](std::string_view part) {
    return IsAssembler(part) || part == "volatile" || part == "__volatile__" || part == "_Atomic" ||
           part == "_Pragma" || part.starts_with("__ATOMIC_") || part.starts_with("memory_order") ||
           IsAtomicWord(part) || IsMemberOperation(part);
  };
  return Hides(word, is_atomic, hiding_);
}

bool ProgramText::HidesJump(std::string_view word) {
  const auto is_jump = [](std::string_view part) {
    return part == "goto" || part == "switch" || part == "case" || part == "default" ||
           part == "_Pragma" || IsAssembler(part);
  };
  return Hides(word, is_jump, jumping_);
}

const SourceText* ProgramText::TextOf(const std::string& file) const {
  const auto found = files_.find(NormalPath(file));
  return found != files_.end() ? found->second.get() : nullptr;
}

bool ProgramText::Owns(const std::string& file) const {
  const std::string path = NormalPath(file);
  return !path.starts_with("/usr/include/") && !path.starts_with("/usr/local/include/") &&
         files_.contains(path);
}

StatedOrder ProgramText::OrderAt(const std::string& file, int line, std::string_view name) {
  const SourceText* const text = complete_ ? TextOf(file) : nullptr;
  if (text == nullptr) return StatedOrder::kBoth;
  const Tokens statements = text->StatementsAt(line);
  const std::vector<NamedOperation> operations = OperationsIn(statements, name);
  if (operations.empty()) return StatedOrder::kBoth;
  const auto is_assembler = [](const Token& token) { return IsAssembler(token.text); };
  if (std::any_of(statements.begin(), statements.end(), is_assembler) ||
      HasOthers(statements, operations, name.empty())) {
    return StatedOrder::kBoth;
  }
  StatedOrder order = StatedOrder::kNeither;
  for (const NamedOperation& operation : operations) order = order | operation.order;
  return order;
}

ProgramText::Store ProgramText::StoreAt(const std::string& file, int line, std::string_view name) {
  const SourceText* const text = complete_ ? TextOf(file) : nullptr;
  if (text == nullptr) return {};
  const Tokens statements = text->StatementsAt(line);
  const std::vector<NamedOperation> operations = OperationsIn(statements, name);
  if (operations.size() != 1) return {};
  Store store{true, 0};
  if (fences_anywhere_ || text != fenced_file_) return store;
  std::size_t begin = operations.front().begin;
  while (begin > 0 && !EndsStatement(statements[begin - 1])) --begin;
  std::size_t end = begin;
  while (end < statements.size() && !EndsStatement(statements[end])) ++end;
  const std::size_t first = text->IndexOf(statements);
  const auto [known, is_new] = precede_fences_.try_emplace(first + begin, false);
  if (is_new) known->second = PrecedesFences(NormalPath(file), *text, first + begin, first + end);
  if (known->second) store.before_fences = text->tokens()[first + begin].line;
  return store;
}

bool ProgramText::PrecedesFences(const std::string& path, const SourceText& text, std::size_t begin,
                                 std::size_t end) {
  const Tokens tokens = text.tokens();
  const Tokens statement = tokens.subspan(begin, end - begin);
  if (end == tokens.size() || tokens[end].text != ";") return false;
  const std::vector<NamedOperation> operations = OperationsIn(statement, {});
  std::vector<NamedOperation> members = OperationsIn(statement, "store");
  members.insert(members.end(), operations.begin(), operations.end());
  const Tokens object = members.size() == 1 ? ObjectOfStore(statement, members[0]) : Tokens();
  if (object.empty()) return false;
  const auto function = text.FunctionAround(begin);
  if (!function) return false;
  for (const std::size_t fence : releasing_fences_) {
    if (fence < end || !text.IsDirectlyIn(*function, fence)) return false;
  }
  const Tokens whole = tokens.subspan(function->begin, function->close + 1 - function->begin);
  const auto [known, is_new] = plain_functions_.try_emplace(function->begin, false);
  if (is_new) known->second = IsPlainFunction(text, whole);
  const Tokens above = whole.first(begin - function->begin);
  // What is included may be compiled several times, each time with an object of its own.
  return known->second && !MayDeclare(above, object.front().text) && !IsIncluded(path);
}

bool ProgramText::IsPlainFunction(const SourceText& text, Tokens function) {
  if (text.HasDirectiveIn(function.front().line, function.back().line)) return false;
  ReadSystem();
  return system_complete_ && std::ranges::none_of(function, [this](const Token& token) {
           const std::string_view word = token.text;
           return word == "goto" || word == "_Pragma" || IsAssembler(word) ||
                  own_macros_.contains(word) || HidesJump(word);
         });
}

bool ProgramText::IsIncluded(const std::string& path) const {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  for (const auto& [including, text] : files_) {
    for (const SourceText::Directive& directive : text->directives()) {
      bool is_include = false, quoted = false;
      const std::string_view included = IncludedBy(directive, is_include, quoted);
      if (is_include && included.substr(included.rfind('/') + 1) == name) return true;
    }
  }
  return false;
}

bool ProgramText::MixesThreads() {
  if (mixes_threads_) return *mixes_threads_;
  const auto mixes = [](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (MixesThreadsBy(tokens, i)) return true;
    }
    return false;
  };
  mixes_threads_ = std::any_of(files_.begin(), files_.end(), [&](const auto& file) {
    const auto& directives = file.second->directives();
    return mixes(file.second->tokens()) ||
           std::any_of(directives.begin(), directives.end(),
                       [&](const auto& directive) { return mixes(directive.tokens); });
  });
  return *mixes_threads_;
}

bool ProgramText::HasOthers(Tokens statements, const std::vector<NamedOperation>& operations,
                            bool variables) {
  auto operation = operations.begin();
  bool seen_own = false;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const std::string_view word = statements[i].text;
    while (operation != operations.end() && i >= operation->end) {
      ++operation;
      seen_own = false;
    }
    const bool inside = operation != operations.end() && i >= operation->begin;
    if (!statements[i].IsWord() || (inside && i == operation->begin)) continue;
    if (HidesAtomic(word)) return true;
    if (!variables || !atomic_.names.contains(word) || IsAddressOf(statements, i)) continue;
    const bool is_first = inside && !operation->arguments.empty() &&
                          &statements[i] <= &operation->arguments.front().back();
    if (!is_first || seen_own) return true;
    seen_own = true;
  }
  return false;
}

std::optional<StatedOrder> ProgramText::LoadsAt(const std::string& file, int line) {
  const SourceText* const text = complete_ ? TextOf(file) : nullptr;
  if (text == nullptr) return std::nullopt;
  const Tokens statements = text->StatementsAt(line);
  const std::vector<NamedOperation> operations = OperationsIn(statements, {});
  if (HasOthers(statements, operations, !IsAtomicDeclaration(statements)))
    return StatedOrder::kBoth;
  std::optional<StatedOrder> order;
  for (const NamedOperation& operation : operations) {
    if (operation.name.find("load") != std::string_view::npos)
      order = order.value_or(StatedOrder::kNeither) | operation.order;
  }
  return order;
}

bool ProgramText::MayBeAtomic(const std::string& file, int line) {
  const SourceText* const text = complete_ ? TextOf(file) : nullptr;
  if (text == nullptr) return true;
  const Tokens statements = text->StatementsAt(line);
  if (statements.empty() || has_flushes_) return true;
  ReadSystem();
  if (!system_complete_) return true;
  const bool is_update = IsPlainUpdate(statements);
  // What is stored to is not loaded.
  const auto is_destination = [&](std::size_t at) {
    return (at == 0 || EndsStatement(statements[at - 1])) && at + 1 < statements.size() &&
           statements[at + 1].text == "=";
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const std::string_view word = statements[i].text;
    if (!statements[i].IsWord()) continue;
    if (IsAtomicWord(word) || IsAtomicType(statements, i) || IsVolatile(statements, i) ||
        IsAssembler(word) || HidesAtomic(word) || atomic_.names.contains(word) ||
        (volatile_.names.contains(word) && !is_update && !is_destination(i))) {
      return true;
    }
  }
  return false;
}

}  // namespace trapline
