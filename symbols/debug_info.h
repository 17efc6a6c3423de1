// What the DWARF of one module says of its code and variables. All addresses are those in the file.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf_expression.h"
#include "symbols/memory_reader.h"
#include "symbols/source_text.h"
#include "symbols/symbolizer.h"

namespace trapline {

// Not thread-safe. Indexes a compilation unit when it is first asked about, and all of them for
// variables.
class DebugInfo {
 public:
  // `dwarf` must outlive this object.
  explicit DebugInfo(Dwarf* dwarf);
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // The functions at `address`, innermost first; empty if not known. Names are mangled where the
  // language mangles.
  std::vector<SourceFrame> Frames(std::uint64_t address);

  // File (with the directory in which it was compiled) and line by the line table alone; an empty
  // file: not known.
  SourceFrame LineOf(std::uint64_t address);

  // See Symbolizer::IsAtomicByDebugInfo.
  bool IsAtomic(std::uint64_t address);

  // What is known of the atomic operation whose instruction, or a call of which, lies at `address`.
  struct Operation {
    // The order, where debug info has it as a constant.
    std::optional<StatedOrder> order;
    // How the program calls it: a function of the C++ library, or empty where it is a builtin or C.
    std::string function;
    // Whether that is a function of its own there: its callers know more.
    bool is_function = false;
    // Else where the program does so.
    SourceFrame statement;
    bool is_certain = true;  // false: or at another call of the same function
    // Whether no other operation of <atomic> that may store is inlined in the code around it.
    bool is_only_store = false;
  };
  std::optional<Operation> OperationAt(std::uint64_t address, std::string function = {});

  // Whether the code at `address` belongs to libstdc++'s count of the threads that wait for an
  // atomic object, which tells only whether there is anybody to be woken.
  bool IsWaiterCount(std::uint64_t address);

  // Whether the code at `address` says that it was compiled with -fopenmp, as gcc's does.
  bool IsOpenMp(std::uint64_t address);

  // File and line of all that the function at `address` consists of, what is inlined there as well,
  // if its code may have been merged with other code of the same function: gcc makes one of equal
  // loads, and says the place of one. Otherwise empty.
  std::vector<SourceFrame> MergedLines(std::uint64_t address);

  // Whether an operation of <atomic> that only loads is inlined in the function at `address`.
  bool InlinesAtomicLoad(std::uint64_t address);

  // Whether a store at `address` may be an atomic exchange whose result nobody wants: clang gives
  // no place for it, so that the one before it is taken for its own. `next`: the line of the next
  // place; 0: not known.
  bool MayLackPlace(std::uint64_t address, int& next);

  // What the module was built from; absolute names. `all`: whether all of it is C, C++ or
  // assembler.
  struct Sources {
    std::vector<std::string> files, directories;
    bool all = true;
  };
  Sources SourceFiles();

  // Whether IsAtomic may be true of some address, or FindStatic may find an atomic variable.
  bool MayHoldAtomics();

  // A variable of static storage; for thread-local ones `address` is the offset in the TLS block.
  struct Variable {
    std::string name;         // as declared
    std::uint64_t begin = 0;  // address or TLS offset
    std::uint64_t size = 0;   // bytes
    std::string expression;   // "name[3].member" of the address asked for
    std::string type;         // of the whole
    std::string file;
    int line = 0;
    std::uint64_t atomic_bytes = 0;  // TypePath::atomic_bytes
  };
  std::optional<Variable> FindStatic(std::uint64_t address) { return Find(&statics_, address); }
  std::optional<Variable> FindThreadLocal(std::uint64_t offset) {
    return Find(&thread_locals_, offset);
  }

  // The local variable or parameter of the function at `pc` that lies at `address` in memory (of
  // the process). The context says what is known of the frame; its frame base is found here.
  // `function`: where it is declared.
  std::optional<Variable> FindLocal(std::uint64_t pc, std::uint64_t address,
                                    EvaluationContext context, std::string& function);

 private:
  struct Range {
    std::uint64_t low, high;  // [low, high)
    std::size_t unit;
  };
  struct Function {
    std::uint64_t low, high;
    Dwarf_Die die;
  };
  struct Unit {
    Dwarf_Die die;        // of the unit with the DIEs (with split DWARF not the skeleton's)
    Dwarf_Die lines_die;  // of the unit with the line table
    bool indexed = false;
    std::vector<Function> functions;  // sorted by low
  };
  struct Static {
    std::uint64_t begin, size;
    Dwarf_Die die;
  };

  Unit* UnitOf(std::uint64_t address);
  // File and line by the line table.
  static void TakeLine(Unit& unit, std::uint64_t address, SourceFrame& frame);
  void Index(Unit& unit);
  void IndexChildren(Unit& unit, Dwarf_Die& parent, const std::string& scope, int depth);
  void AddVariable(Dwarf_Die& die);
  void IndexAll();
  std::optional<Variable> Find(std::vector<Static>* statics, std::uint64_t address);
  static Variable Described(Dwarf_Die& die, std::uint64_t begin, std::uint64_t address);
  std::optional<Variable> FindLocalIn(Dwarf_Die& scope, std::uint64_t pc, std::uint64_t address,
                                      const EvaluationContext& context, bool everywhere, int depth,
                                      Dwarf_Off& walked_to, std::string& function) const;
  // Whether other code inlined in `function` calls the operation `called` with another order.
  static bool HasOtherOrder(Dwarf_Die& function, Dwarf_Die& called, StatedOrder order, int depth,
                            Dwarf_Off& walked_to);
  // Whether an operation that loads, or one that may store, is inlined in `function`, that at
  // `called` aside.
  static bool Inlines(Dwarf_Die& function, bool loads, Dwarf_Off called, int depth,
                      Dwarf_Off& walked_to);
  SourceFrame CallOf(Unit& unit, Dwarf_Die& inlined);
  static void MakeAbsolute(Unit& unit, SourceFrame& frame);
  // Mangled, or else with the scopes it is in.
  std::string NameOf(Dwarf_Die& die) const;
  // The function at `address` and what is inlined there, outermost first.
  std::vector<Dwarf_Die> Chain(Unit& unit, std::uint64_t address);
  // The function at an address and its unit's line table, `count` lines.
  struct OptimisedCode {
    Unit* unit = nullptr;
    Dwarf_Die function{};
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
  };
  // If `compiler` has made the code at `address`, optimising, as far as is known.
  std::optional<OptimisedCode> OptimisedBy(std::string_view compiler, std::uint64_t address);

  std::deque<Unit> units_;
  std::vector<Range> ranges_;  // sorted by low
  // Of functions that have no linkage name, by the offset of their DIE.
  std::unordered_map<Dwarf_Off, std::string> scopes_;
  Dwarf_Off walked_to_ = 0;  // in the unit that is being indexed
  bool all_indexed_ = false;
  std::uint64_t information_size_ = 0;  // bytes of .debug_info
  // Of the segment of thread-local variables, in the file.
  std::uint64_t thread_local_begin_ = 0, thread_local_size_ = 0;
  std::vector<Static> statics_, thread_locals_;  // sorted by begin once all is indexed
};

}  // namespace trapline
