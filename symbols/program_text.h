// All sources that a module was built from, as one text: what of it may be hidden behind names, and
// whether and where there are fences, which leave no trace in x86-64 code.
#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/source_text.h"

namespace trapline {

// Not thread-safe.
class ProgramText {
 public:
  // The files that debug info names, absolute, and what they include: by quotes relative to
  // themselves, else in `directories` or those above them, or where compilers look. All were
  // written by `built`, when the module was.
  ProgramText(const std::vector<std::string>& files, const std::vector<std::string>& directories,
              std::time_t built);
  ProgramText(const ProgramText&) = delete;
  ProgramText& operator=(const ProgramText&) = delete;

  // Whether all of it could be read and is not younger than the module.
  bool complete() const { return complete_; }
  // What the fences that may be in it order.
  StatedOrder fences() const { return fences_; }

  // Whether threads may go on with what others have begun, or be interrupted to begin something
  // else: where it names coroutines, contexts of execution, or signal handlers.
  bool MixesThreads();
  // Whether it does atomic operations by GCC's builtins, fences aside.
  bool CallsAtomicBuiltins() const { return calls_atomic_builtins_; }
  // Whether it has that file.
  bool Contains(const std::string& file) const { return TextOf(file) != nullptr; }

  // Whether the file is one of the program's own, not of an installed library.
  bool Owns(const std::string& file) const;

  // What the operations called `name` (empty: all C functions and builtins) in the statements on
  // that line have for an order, together. kBoth where anything is unclear: there are none, they
  // may stand behind macros, or not be the only atomic accesses there.
  StatedOrder OrderAt(const std::string& file, int line, std::string_view name);

  // Which of the program's stores the one is that is called `name` on that line (as in OrderAt).
  struct Store {
    bool known = false;  // false: it may be any of them
    // Not 0: every fence of this text that may release something comes after it: whoever runs one
    // has, in the same call of their function, executed this store before, the first line of whose
    // statement this is. And it always stores to the same object, which is nobody's local variable,
    // so that no compiler does without it.
    int before_fences = 0;
  };
  Store StoreAt(const std::string& file, int line, std::string_view name);

  // Whether the statements on that line may contain atomic accesses, by whatever name, or may rely
  // on OpenMP's flushes. True where that is not clear.
  bool MayBeAtomic(const std::string& file, int line);

  // The order of all operations named there that are loads, or may hide some; nothing: there are
  // none.
  std::optional<StatedOrder> LoadsAt(const std::string& file, int line);

 private:
  // Words that stand for one another's kind: names of types and macros, and what is declared by
  // them.
  struct Declared {
    std::set<std::string_view, std::less<>> types, names;
  };

  const SourceText* Read(const std::string& path, bool system);
  void ReadIncludes(const std::string& path, const SourceText& text, bool system);
  // All files that an include may mean: where compilers were told to look is not in debug info.
  std::vector<std::string> Find(std::string_view name, bool quoted, const std::string& from);
  // Macros of the compiler's and the libraries' headers, which are read only if somebody asks.
  void ReadSystem();
  void AddMacros(const SourceText& text);
  template <class IsType>
  Declared DeclaredBy(IsType&& is_type) const;
  // Those of macros_ that hide something, once somebody has asked.
  using Macros = std::optional<std::set<std::string_view, std::less<>>>;
  // Whether it is a macro that stands for something that is_it, directly or not, or that cannot be
  // known.
  bool Hides(std::string_view word, bool (*is_it)(std::string_view), Macros& hiding);
  bool HidesAtomic(std::string_view word);
  bool HidesJump(std::string_view word);
  void NoteFences(const SourceText& text);
  // Whether such a statement, from token `begin` on to before `end`, precedes all of
  // releasing_fences_ in its function.
  bool PrecedesFences(const std::string& path, const SourceText& text, std::size_t begin,
                      std::size_t end);
  // Whether the function, of the fenced file, does what it seems to, whatever the preprocessor or a
  // jump could change.
  bool IsPlainFunction(const SourceText& text, Tokens function);
  // Whether some file includes one of that name.
  bool IsIncluded(const std::string& path) const;
  const SourceText* TextOf(const std::string& file) const;
  // Whether there may be atomic accesses besides those operations; where C's are looked at, also to
  // variables that are of atomic type. The first that an operation is about is its own.
  bool HasOthers(Tokens statements, const std::vector<NamedOperation>& operations, bool variables);

  const std::time_t built_;
  const std::vector<std::string> standard_directories_;
  std::set<std::string> directories_;
  std::map<std::string, std::vector<std::string>, std::less<>> found_;  // by what was included
  std::map<std::string, std::unique_ptr<SourceText>> files_;  // by normal path; the program's own
  std::map<std::string, std::unique_ptr<SourceText>> system_files_;
  std::set<std::string> system_wanted_;
  std::map<std::string_view, std::set<std::string_view>> macros_;  // the words of their bodies
  Macros hiding_, jumping_;
  std::set<std::string_view> own_macros_;  // of those, what no system's header defines
  Declared atomic_, volatile_;
  std::size_t size_ = 0;
  bool complete_ = true, system_read_ = false, system_complete_ = true, has_flushes_ = false;
  bool calls_atomic_builtins_ = false;
  StatedOrder fences_ = StatedOrder::kNeither;
  // The fences that may release something, if all of them are calls in one file, as tokens.
  const SourceText* fenced_file_ = nullptr;
  std::vector<std::size_t> releasing_fences_;
  std::map<std::size_t, bool> precede_fences_;   // by a statement's first token in that file
  std::map<std::size_t, bool> plain_functions_;  // by their first tokens there
  bool fences_anywhere_ = false;                 // they are not
  std::optional<bool> mixes_threads_;
};

}  // namespace trapline
