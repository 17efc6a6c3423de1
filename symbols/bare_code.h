// Code that no debug info tells the source of: who may have compiled it.
#pragma once

#include <cstdint>
#include <optional>

namespace trapline {

class DebugInfo;
class ElfFile;
class ElfSymbols;

// kNo: there is debug info, or no file. kNoLine: there is, but it gives the code line 0, as clang
// does where it has made one of several places'. Else: whether it was Rust (by the name of the
// function, or, without symbols, by the compiler's marks), or oneTBB's headers may be inlined there
// (the file needs the library), or the code lies in a function of theirs, or in one that may be,
// for want of symbols; or in one that IsParallelOr.
enum class BareCode : std::uint8_t { kNo, kNoLine, kAny, kRust, kMayInlineTbb, kTbb, kParallelOr };
constexpr bool LacksDebugInfo(BareCode code) {
  return code != BareCode::kNo && code != BareCode::kNoLine;
}

// Of one file. Not thread-safe.
class BareCodeFinder {
 public:
  // Whether there may be code of the file's that At answers with kRust or one of oneTBB's for.
  bool MayFind(const ElfFile& file, const ElfSymbols* symbols);
  // `offset`: an address as the file has it. `file`: always the same one. Null: it has none.
  BareCode At(const ElfFile& file, const ElfSymbols* symbols, DebugInfo* debug_info,
              std::uint64_t offset);

 private:
  bool HasRustMark(const ElfFile& file);
  bool NeedsTbb(const ElfFile& file);

  std::optional<bool> has_rust_mark_, needs_tbb_;
};

}  // namespace trapline
