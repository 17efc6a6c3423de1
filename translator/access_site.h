// What the slow path of the code cache is told of an access.
#pragma once

#include <cstdint>

#include "translator/elements.h"

namespace trapline {

struct Instruction;

// One instrumented operand, or one instrumented instruction whose accesses only its registers tell
// (`instruction` is set). Lives as long as the cache, below 2 GiB.
struct AccessSite {
  std::uint64_t rip = 0;   // of the program's instruction
  std::uint32_t size = 0;  // bytes; 0 with `instruction`
  bool read = false;
  bool write = false;
  bool atomic = false;
  bool locked = false;    // by an atomic instruction; else only debug info calls it atomic
  bool done = false;      // the access has been carried out (TranslatorOptions::after_atomic)
  bool exchange = false;  // an instruction by which locks are taken, as opposed to those that count
  bool report = false;    // no access: TranslatorOptions::report_at
  // Of rep movs, stos and lods, which read, write or both: 1 + log2 of the size of an element.
  // kElements: it is the first one of ElementSites.
  std::uint8_t repeated = 0;
  static constexpr std::uint8_t kElements = 255;
  // The monitor's: what the site does to words that are not known as atomic is a plain access that
  // counts (guest-agent/repeats.h).
  mutable bool plain = false;
  // Hot code need not tell of all it does (guest-agent/sector_use.h): what this site leaves out,
  // once it is hot, and so many checks that the filter does not skip before that.
  mutable std::uint8_t leaves_out = 0;
  mutable std::int16_t cold = 0;
  const Instruction* instruction = nullptr;
};

// Of an instruction whose only operand HasElements. The agent finds out which of them it touches.
struct ElementSites {
  // `one`: an access to the operand, whatever its size.
  ElementSites(const MemoryOperand& its_operand, const VectorLayout& its_layout,
               std::uint64_t its_next_rip, const AccessSite& its_all, const AccessSite& one)
      : all(its_all),
        element(one),
        whole(one),
        operand(its_operand),
        layout(its_layout),
        next_rip(its_next_rip) {
    all.repeated = AccessSite::kElements;
    element.size = ElementSize(operand);
    whole.size = HasLooseElements(operand) ? 0 : operand.element_count * element.size;
  }

  AccessSite all;      // has the instruction
  AccessSite element;  // an access to one of them
  // One to all of them side by side, where they are. Size 0: that may be elsewhere.
  AccessSite whole;
  MemoryOperand operand;
  VectorLayout layout;
  std::uint64_t next_rip;  // of the program's next instruction
};

}  // namespace trapline
