// An array of many values that grows without moving them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace trapline {

// In chunks of some 64 KiB, so that to grow takes neither a copy nor room for as much again.
// References are valid as long as the array. Not thread-safe.
template <class T>
class ChunkedArray {
 public:
  ChunkedArray() = default;
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;
  ~ChunkedArray() {
    for (std::size_t i = size_; i-- > 0;) std::destroy_at(&(*this)[i]);
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return chunks_[i / kChunk].get()[i % kChunk]; }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk].get()[i % kChunk]; }

  // Appends T(arguments...). Throws std::bad_alloc.
  template <class... Arguments>
  T& Add(Arguments&&... arguments) {
    if (size_ == chunks_.size() * kChunk) AddChunk();
    T* const added = std::construct_at(&(*this)[size_], std::forward<Arguments>(arguments)...);
    ++size_;
    return *added;
  }

 private:
  static constexpr std::size_t kChunk =
      std::bit_floor(std::max<std::size_t>((std::size_t{64} << 10) / sizeof(T), 1));

  struct FreeChunk {
    void operator()(T* chunk) const { std::allocator<T>().deallocate(chunk, kChunk); }
  };
  using Chunk = std::unique_ptr<T, FreeChunk>;  // memory for kChunk values

  void AddChunk() {
    Chunk chunk(std::allocator<T>().allocate(kChunk));
    chunks_.push_back(std::move(chunk));
  }

  std::vector<Chunk> chunks_;
  std::size_t size_ = 0;
};

}  // namespace trapline
