// Functions whose plain loads and stores are atomic operations, and variables to which all are, by
// their names: for code without debug info, where the compiler has left nothing but these.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline {

// Whether `name`, as the compiler mangles it, is that of an atomic operation of the C++ or Rust
// library that was not inlined, or of std::barrier and its like, or of a function that is
// synchronisation itself and runs nothing of its user's but copies: of crossbeam (legacy mangling),
// of the containers, mutexes and flow graphs of oneTBB's headers, or GLib's atomic operations and
// its once.
bool IsSynchronisingFunction(std::string_view name);

// Whether `name`, as the compiler mangles it, is that of a function of oneTBB's headers, though
// tasks and the bodies of loops may be inlined there.
bool IsTbbFunction(std::string_view name);

// Whether `name` is that of such a function for which libstdc++'s parallel algorithms look whether
// any element is what they look for (any_of, equal, is_sorted and the like), or of one that they
// have for it.
bool IsParallelOr(std::string_view name);

// How many bytes of the variable of that name are used by atomic operations only: the guard of a
// static variable, the state of a grace period of userspace RCU's. 0: none that is known.
std::uint64_t AtomicBytesOfVariable(std::string_view name);

// Whether `name` is one that rustc gives to a Rust function: of the legacy or the v0 mangling.
bool IsRustFunction(std::string_view name);

}  // namespace trapline
