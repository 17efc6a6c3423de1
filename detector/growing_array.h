// A growing array of plain values over an allocator policy, for code that has to live without a C
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace trapline {

// The allocator policy of host programs. A policy is stateless: Allocate gives memory aligned for
// any standard type or does not return null (it throws or ends the program), Free takes the same
// size back.
struct HostAllocator {
  static void* Allocate(std::size_t bytes) { return ::operator new(bytes); }
  static void Free(void* memory, std::size_t /*bytes*/) { ::operator delete(memory); }
};

// Values are copied bit by bit and start out as T{}. Not thread-safe.
template <class T, class Allocator = HostAllocator>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray& other) { Assign(other); }
  GrowingArray(GrowingArray&& other) noexcept { Swap(other); }
  GrowingArray& operator=(const GrowingArray& other) {
    if (this != &other) Assign(other);
    return *this;
  }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~GrowingArray() { Release(); }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::uint32_t i) { return data_[i]; }
  const T& operator[](std::uint32_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void Append(const T& value) {
    const T copy = value;  // `value` may lie in this array
    Reserve(size_ + 1);
    data_[size_++] = copy;
  }

  // Grows to at least `size` elements.
  void GrowTo(std::uint32_t size) {
    if (size <= size_) return;
    Reserve(size);
    for (std::uint32_t i = size_; i < size; ++i) data_[i] = T{};
    size_ = size;
  }

  void Prefetch() const { __builtin_prefetch(data_); }

  // Removes element i; the last one takes its place.
  void RemoveUnordered(std::uint32_t i) { data_[i] = data_[--size_]; }

  void Clear() { size_ = 0; }

  void Release() {
    if (data_ != nullptr) Allocator::Free(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  void Assign(const GrowingArray& other) {
    size_ = 0;
    Reserve(other.size_);
    for (std::uint32_t i = 0; i < other.size_; ++i) data_[i] = other.data_[i];
    size_ = other.size_;
  }

  void Swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  void Reserve(std::uint32_t wanted) {
    if (wanted <= capacity_) return;
    const std::uint32_t capacity = wanted < 2 * capacity_ ? 2 * capacity_ : wanted < 4 ? 4 : wanted;
    T* data = static_cast<T*>(Allocator::Allocate(capacity * sizeof(T)));
    for (std::uint32_t i = 0; i < size_; ++i) data[i] = data_[i];
    if (data_ != nullptr) Allocator::Free(data_, capacity_ * sizeof(T));
    data_ = data;
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

}  // namespace trapline
