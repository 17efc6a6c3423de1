// fast_repeats.S as the monitor sees it.
#pragma once

#include <cstdint>
#include <span>

extern "C" {
extern const unsigned char trapline_fast_repeat_0_0[], trapline_fast_repeat_0_0_end[],
    trapline_fast_repeat_0_1[], trapline_fast_repeat_0_1_end[], trapline_fast_repeat_1_0[],
    trapline_fast_repeat_1_0_end[], trapline_fast_repeat_1_1[], trapline_fast_repeat_1_1_end[],
    trapline_fast_repeat_2_0[], trapline_fast_repeat_2_0_end[], trapline_fast_repeat_2_1[],
    trapline_fast_repeat_2_1_end[], trapline_fast_repeat_3_0[], trapline_fast_repeat_3_0_end[],
    trapline_fast_repeat_3_1[], trapline_fast_repeat_3_1_end[], trapline_fast_repeat_4_0[],
    trapline_fast_repeat_4_0_end[], trapline_fast_repeat_4_1[], trapline_fast_repeat_4_1_end[];
}

namespace trapline::agent {

// Code that finds the usual repeat of an access of `size` bytes, to be run before the slow path
// (TranslatorOptions::shortcut); empty: there is none.
inline std::span<const unsigned char> FastRepeat(std::uint32_t size, bool write) {
  switch (size) {
    case 1:
      return write ? std::span(trapline_fast_repeat_0_1, trapline_fast_repeat_0_1_end)
                   : std::span(trapline_fast_repeat_0_0, trapline_fast_repeat_0_0_end);
    case 2:
      return write ? std::span(trapline_fast_repeat_1_1, trapline_fast_repeat_1_1_end)
                   : std::span(trapline_fast_repeat_1_0, trapline_fast_repeat_1_0_end);
    case 4:
      return write ? std::span(trapline_fast_repeat_2_1, trapline_fast_repeat_2_1_end)
                   : std::span(trapline_fast_repeat_2_0, trapline_fast_repeat_2_0_end);
    case 8:
      return write ? std::span(trapline_fast_repeat_3_1, trapline_fast_repeat_3_1_end)
                   : std::span(trapline_fast_repeat_3_0, trapline_fast_repeat_3_0_end);
    case 16:
      return write ? std::span(trapline_fast_repeat_4_1, trapline_fast_repeat_4_1_end)
                   : std::span(trapline_fast_repeat_4_0, trapline_fast_repeat_4_0_end);
    default:
      return {};
  }
}

}  // namespace trapline::agent
