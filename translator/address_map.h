// Numbers by addresses of code, which lie close together. Not thread-safe, not even for look-ups.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace trapline {

class AddressMap {
 public:
  // 0: there is none.
  std::uint32_t Find(std::uint64_t address) const {
    const Block* const block = BlockOf(address);
    return block != nullptr ? (*block)[address % kBlockSize] : 0;
  }
  void Set(std::uint64_t address, std::uint32_t number) {
    Block* block = BlockOf(address);
    if (block == nullptr) block = latest_ = &blocks_[address / kBlockSize];
    (*block)[address % kBlockSize] = number;
  }
  void Erase(std::uint64_t address) {
    if (Block* const block = BlockOf(address)) (*block)[address % kBlockSize] = 0;
  }
  void Clear() {
    blocks_.clear();
    latest_ = nullptr;
    latest_number_ = kNoBlock;
  }

 private:
  static constexpr std::uint64_t kBlockSize = 256;  // some 64 instructions
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
  using Block = std::array<std::uint32_t, kBlockSize>;

  Block* BlockOf(std::uint64_t address) const {
    const std::uint64_t number = address / kBlockSize;
    if (number == latest_number_) return latest_;
    const auto found = blocks_.find(number);
    latest_number_ = number;
    return latest_ = found != blocks_.end() ? &found->second : nullptr;
  }

  mutable std::unordered_map<std::uint64_t, Block> blocks_;
  // The block that was asked for last, since the next address is mostly in it, too.
  mutable std::uint64_t latest_number_ = kNoBlock;
  mutable Block* latest_ = nullptr;
};

}  // namespace trapline
