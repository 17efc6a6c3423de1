#include "symbols/bare_code.h"

#include <algorithm>

#include "symbols/debug_info.h"
#include "symbols/elf_symbols.h"
#include "symbols/module_image.h"
#include "symbols/synchronising_function.h"

namespace trapline {

bool BareCodeFinder::HasRustMark(const ElfFile& file) {
  if (!has_rust_mark_) {
    // Distributions leave the compiler's name out; the places where Rust's library panics stay.
    has_rust_mark_ =
        file.HasText(".comment", "rustc version") || file.HasText(".rodata", "library/core/src/");
  }
  return *has_rust_mark_;
}

bool BareCodeFinder::NeedsTbb(const ElfFile& file) {
  if (!needs_tbb_) needs_tbb_ = file.HasText(".dynstr", "libtbb.so.");
  return *needs_tbb_;
}

bool BareCodeFinder::MayFind(const ElfFile& file, const ElfSymbols* symbols) {
  if (HasRustMark(file) || NeedsTbb(file)) return true;
  return symbols != nullptr &&
         std::ranges::any_of(symbols->functions(), [](const ElfSymbols::Symbol& function) {
           return IsRustFunction(function.name);
         });
}

BareCode BareCodeFinder::At(const ElfFile& file, const ElfSymbols* symbols, DebugInfo* debug_info,
                            std::uint64_t offset) {
  if (debug_info != nullptr) {
    const SourceFrame line = debug_info->LineOf(offset);
    if (!line.file.empty()) return line.line == 0 ? BareCode::kNoLine : BareCode::kNo;
    // What the compiler adds has no line, though its function has debug info.
    if (!debug_info->Frames(offset).empty()) return BareCode::kNo;
  }
  const ElfSymbols::Symbol* const function =
      symbols != nullptr ? symbols->FindFunction(offset) : nullptr;
  if (function != nullptr ? IsRustFunction(function->name) : HasRustMark(file))
    return BareCode::kRust;
  if (!NeedsTbb(file)) return BareCode::kAny;
  if (function == nullptr) return BareCode::kTbb;
  if (IsParallelOr(function->name)) return BareCode::kParallelOr;
  return IsTbbFunction(function->name) ? BareCode::kTbb : BareCode::kMayInlineTbb;
}

}  // namespace trapline
