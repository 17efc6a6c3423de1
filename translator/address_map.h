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
    if (block == nullptr) block = LatestOf(address).block = &blocks_[address / kBlockSize];
    (*block)[address % kBlockSize] = number;
  }
  void Erase(std::uint64_t address) {
    if (Block* const block = BlockOf(address)) (*block)[address % kBlockSize] = 0;
  }
  void Clear() {
    blocks_.clear();
    latest_.fill({});
  }

 private:
  static constexpr std::uint64_t kBlockSize = 256;  // some 64 instructions
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
  using Block = std::array<std::uint32_t, kBlockSize>;

  // A block that was asked for lately, since most addresses are near others; null: there is none.
  struct Latest {
    std::uint64_t number = kNoBlock;
    Block* block = nullptr;
  };

  Latest& LatestOf(std::uint64_t address) const {
    return latest_[address / kBlockSize % latest_.size()];
  }
  Block* BlockOf(std::uint64_t address) const {
    Latest& latest = LatestOf(address);
    const std::uint64_t number = address / kBlockSize;
    if (number != latest.number) {
      const auto found = blocks_.find(number);
      latest = {number, found != blocks_.end() ? &found->second : nullptr};
    }
    return latest.block;
  }

  mutable std::unordered_map<std::uint64_t, Block> blocks_;
  mutable std::array<Latest, 16> latest_;
};

}  // namespace trapline
