// Addresses to source terms, from the ELF symbol tables and the DWARF of the program's files or of
// their separate debug files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbols/bare_code.h"
#include "symbols/imports.h"
#include "symbols/memory_reader.h"
#include "symbols/modules.h"
#include "symbols/source_text.h"
#include "symbols/unwinder.h"

namespace trapline {

class DebugInfo;
class ElfSymbols;

// One function at a code address. Empty strings and 0: not known.
struct SourceFrame {
  std::string function;  // demangled
  std::string file;
  int line = 0;
  bool inlined = false;  // into the next frame

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

// What is known of a code address.
struct CodePlace {
  std::uint64_t address = 0;
  const Module* module = nullptr;  // null: in none
  std::uint64_t offset = 0;        // in the module's file: address - bias
  // Innermost first: the inlined functions, then the one they were inlined into. At least one, of
  // which nothing may be known.
  std::vector<SourceFrame> frames;
};

// A variable with static or thread storage.
struct DataPlace {
  const Module* module = nullptr;
  std::string symbol;        // demangled name
  std::uint64_t offset = 0;  // of the address, from the symbol's start
  std::uint64_t size = 0;    // of the symbol; 0: not known
  std::string expression;    // as in C, down to the member or element: "table[3].next"; else empty
  std::string type;          // of the whole variable, as declared; empty: not known
  std::string file;          // where declared
  int line = 0;
};

// A variable of a live frame.
struct StackVariable {
  std::size_t frame = 0;  // index in the stack
  std::string function;
  std::string name;
  std::string type;
  std::uint64_t offset = 0;  // of the address, from the variable's start
  std::string expression;    // as in DataPlace
  std::string file;          // where declared
  int line = 0;
};

struct SymbolizerOptions {
  // Where separate debug files are looked for (by build id, and by .gnu_debuglink), besides the
  // directory of the file itself.
  std::string debug_directory = "/usr/lib/debug";
  // false: modules and offsets only.
  bool use_files = true;
};

// Thread-safe (one lock around everything but the cached answers of the two Is... functions).
class Symbolizer {
 public:
  // `modules` must outlive this object.
  explicit Symbolizer(Modules& modules, SymbolizerOptions options = {});
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;
  ~Symbolizer();

  // `address` lies inside an instruction (of a return address: minus 1). Without a generation: in
  // the modules of now.
  CodePlace ResolveCode(std::uint64_t address);
  CodePlace ResolveCode(std::uint64_t address, std::uint32_t generation);

  // The module alone; generation 0: of now.
  const Module* FindModule(std::uint64_t address, std::uint32_t generation);

  // The variable with static storage at `address`, if symbols or debug info tell.
  std::optional<DataPlace> ResolveData(std::uint64_t address);

  // The thread-local variable at `address` in the thread whose FS base is `thread_pointer`; without
  // a name if neither symbols nor debug info have one. Nothing: it is none. Knows the modules
  // loaded at start (psABI TLS variants I and II: static TLS) and those whose block the thread's
  // dtv lists.
  std::optional<DataPlace> ResolveThreadLocal(std::uint64_t address, std::uint64_t thread_pointer,
                                              const MemoryReader& memory);

  // The variable at `address` in one of `frames` (innermost first), which must be live.
  std::optional<StackVariable> ResolveStack(std::uint64_t address,
                                            std::span<const StackFrame> frames);

  // Whether the instruction at `pc` belongs to an atomic operation of the C++ or Rust library:
  // inlined from, or lying in, a function declared in <atomic> and its relatives; or is one by the
  // text of its source line. False without debug info. Remembered for each pc; a repeated question
  // costs some 10 ns.
  bool IsAtomicByDebugInfo(std::uint64_t pc);

  // Whether the source, if it can be read and is not younger than the program, names an atomic
  // operation on the line of the instruction at `pc`: see AtomicLines. Part of the answer of
  // IsAtomicByDebugInfo.
  bool IsAtomicBySource(std::uint64_t pc);

  // Whether the `size` bytes at `address` lie in one global variable, or a member or element of
  // one, of type _Atomic or std::atomic, or in the guard of a static local variable. What uses more
  // than that is no operation of it. False without debug info (the guard: without symbols).
  // Remembered. Knows modules of which some code was looked up before.
  bool IsAtomicVariable(std::uint64_t address, std::uint64_t size);

  // Whether there may be code or variables in the module of which the last two, BareCodeAt or the
  // sources say that they are atomic, or may be. True where its file cannot be read.
  bool MayHoldAtomics(const Module& module);

  // What order the atomic operation has that the instruction stack[0] belongs to; `stack` goes on
  // with return addresses. It is believed if it is a constant in debug info, or by name in the
  // text of the statement, and nothing that the program was built from can be a fence that makes
  // up for it; everything else is kBoth. `writes`, `reads`: what the instruction does.
  struct OrderAnswer {
    StatedOrder order = StatedOrder::kBoth;
    bool by_text = false;     // else by debug info
    bool of_waiters = false;  // libstdc++'s count of waiting threads, whose order is of no use
    SourceFrame statement;    // by_text: where
    // Not 0: the number of a statement that comes before all release fences there are (see
    // ProgramText::StoreAt; a statement may be many instructions). A thread that executes it for
    // the first time has run none of them, and then the order is `first_order`. Numbers are never
    // given to another statement. kAnyStore: it is not known whether it is one of them, or which.
    std::uint16_t early_store = 0;
    StatedOrder first_order = StatedOrder::kBoth;

    static constexpr std::uint16_t kAnyStore = 0xffff;
    static OrderAnswer Unknown(bool writes) {
      OrderAnswer answer;
      if (writes) answer.early_store = kAnyStore;
      return answer;
    }
  };
  OrderAnswer OrderOf(std::span<const std::uint64_t> stack, bool writes, bool reads);

  // Of the instruction at `pc`. Remembered.
  BareCode BareCodeAt(std::uint64_t pc);

  // Whether the code at `pc` says that it was compiled with -fopenmp. False without debug info, and
  // of clang's, which does not say.
  bool IsOpenMpByDebugInfo(std::uint64_t pc);

  // What the dynamic linker stores at `slot`, as the file of the module there says.
  StoredAddress ImportAt(std::uint64_t slot);

  // Whether the source, and all that it includes, shows that the load at `pc` is no atomic one.
  // False without debug info or source. Remembered.
  bool IsPlainBySource(std::uint64_t pc);

  // What was learnt of [begin, end) no longer holds (see Modules::OnUnmap, which must be called
  // before).
  void OnUnmap(std::uint64_t begin, std::uint64_t end);

  // Gives back what was read of the system's libraries that have separate debug files, 10 to 20 MiB
  // for libc, after a report. It is read again when it is asked for, a few times at most.
  void ReleaseLibraries();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// The functions at `offset` in the file that these belong to (either may be null), innermost first;
// at least one, of which nothing may be known.
std::vector<SourceFrame> NamesAt(DebugInfo* debug_info, const ElfSymbols* symbols,
                                 std::uint64_t offset);

// The variable with static storage at `offset` in that file, without its module.
std::optional<DataPlace> VariableAt(DebugInfo* debug_info, const ElfSymbols* symbols,
                                    std::uint64_t offset);

// The name as the language writes it; `name` itself if it is not a mangled one.
std::string Demangle(const std::string& name);

}  // namespace trapline
