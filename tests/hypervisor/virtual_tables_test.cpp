#include "hypervisor/virtual_tables.h"

#include <gtest/gtest.h>

#include <cstring>

namespace trapline {
namespace {

struct Shape {
  virtual ~Shape() = default;
};
struct Named {
  virtual ~Named() = default;
  int number = 0;
};
struct Circle : Shape {};
struct Label : Circle, Named {};
struct Shared : virtual Shape {};

template <class Kind>
std::uint64_t TableOf(const Kind& object) {
  std::uint64_t table = 0;
  std::memcpy(&table, static_cast<const void*>(&object), sizeof table);
  return table;
}

TEST(VirtualTables, Found) {
  const Label label;
  EXPECT_TRUE(IsVirtualTable(TableOf(Shape())));
  EXPECT_TRUE(IsVirtualTable(TableOf(Circle())));
  EXPECT_TRUE(IsVirtualTable(TableOf(label)));
  EXPECT_TRUE(IsVirtualTable(TableOf(static_cast<const Named&>(label))));
  EXPECT_TRUE(IsVirtualTable(TableOf(Shared())));
}

TEST(VirtualTables, OthersAreNot) {
  static const std::uint64_t words[4] = {};
  const std::uint64_t table = TableOf(Circle());
  EXPECT_FALSE(IsVirtualTable(0));
  EXPECT_FALSE(IsVirtualTable(8));
  EXPECT_FALSE(IsVirtualTable(~std::uint64_t{7}));
  EXPECT_FALSE(IsVirtualTable(table + 1));
  EXPECT_FALSE(IsVirtualTable(table - 8));
  EXPECT_FALSE(IsVirtualTable(table + 8));
  EXPECT_FALSE(IsVirtualTable(reinterpret_cast<std::uint64_t>(words + 2)));
}

}  // namespace
}  // namespace trapline
