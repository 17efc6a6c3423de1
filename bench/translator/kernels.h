// Small pieces of what programs do, single-threaded and without allocation: what the code cache is
// measured with besides loops of one kind of access.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trapline {

// `memory`: at least 16 MiB, 64-byte aligned, zeroed, the kernel's own from the first call on.
// Returns a checksum.
using Kernel = std::uint64_t (*)(std::uint64_t* memory, std::uint64_t rounds);

struct NamedKernel {
  const char* name;
  Kernel run;
  std::uint64_t rounds;  // about 10 to 50 ms natively
};

// Gravity by a tree of bodies (as barnes), a scene of patches with lists (as radiosity), look-ups
// in a balanced tree, sorting, a sparse matrix times a vector, words of a text.
extern const NamedKernel kKernels[];
extern const std::size_t kKernelCount;

}  // namespace trapline
