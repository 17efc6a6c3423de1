// What the slow path of the code cache is told of an access.
#pragma once

#include <cstdint>

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
  std::uint8_t repeated = 0;
  // The monitor's: what the site does to words that are not known as atomic is a plain access that
  // counts (guest-agent/repeats.h).
  mutable bool plain = false;
  // Hot code need not tell of all it does (guest-agent/sector_use.h): what this site leaves out,
  // once it is hot, and so many checks that the filter does not skip before that.
  mutable std::uint8_t leaves_out = 0;
  mutable std::int16_t cold = 0;
  const Instruction* instruction = nullptr;
};

}  // namespace trapline
