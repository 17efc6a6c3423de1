// A value, or the reason why there is none: for functions whose caller can act on the error.
#ifndef TRAPLINE_HYPERVISOR_EXPECTED_H_
#define TRAPLINE_HYPERVISOR_EXPECTED_H_

#include <cstddef>
#include <utility>
#include <variant>

namespace trapline {

// Wraps an error on its way into an Expected, so that T and E may be the same type.
template <typename E>
struct Unexpected {
  E error;
};
template <typename E>
Unexpected(E) -> Unexpected<E>;

// Holds either a T or an E. Reading the one that is not there is a programming error and aborts.
// Thread-safety is that of T and E.
template <typename T, typename E>
class [[nodiscard]] Expected {
 public:
  // Implicit, so that a function can `return value;` or `return Unexpected{error};`.
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT
  Expected(Unexpected<E> unexpected)                                       // NOLINT
      : state_(std::in_place_index<1>, std::move(unexpected.error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  const T& value() const& { return Get<0>(state_); }
  T& value() & { return Get<0>(state_); }
  T&& value() && { return std::move(Get<0>(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const E& error() const { return Get<1>(state_); }

 private:
  template <std::size_t I, typename Variant>
  static auto& Get(Variant& state) {
    auto* held = std::get_if<I>(&state);
    if (held == nullptr) __builtin_trap();
    return *held;
  }

  std::variant<T, E> state_;
};

}  // namespace trapline

#endif  // TRAPLINE_HYPERVISOR_EXPECTED_H_
