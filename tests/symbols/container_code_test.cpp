// Which code of the C++ library's is its caller's.
#include "symbols/container_code.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace trapline {
namespace {

TEST(ContainerCode, Names) {
  EXPECT_TRUE(
      IsContainerFunction("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm"));
  EXPECT_TRUE(
      IsContainerFunction("_ZNKSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE7compareERKS4_"));
  EXPECT_TRUE(IsContainerFunction("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base"));
  EXPECT_TRUE(IsContainerFunction("_ZNSt8__detail15_List_node_base7_M_hookEPS0_"));
  EXPECT_TRUE(IsContainerFunction(
      "_ZStlsIcSt11char_traitsIcESaIcEERSt13basic_ostreamIT_T0_ES7_RKNSt7__cxx1112basic_stringIS4_"
      "S5_T1_EE"));
  EXPECT_FALSE(IsContainerFunction("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc"));
  EXPECT_FALSE(
      IsContainerFunction("_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE8overflowEi"));
  EXPECT_FALSE(IsContainerFunction("_ZNSt6localeC1Ev"));
  EXPECT_FALSE(IsContainerFunction("_ZSt4cout"));
  EXPECT_FALSE(IsContainerFunction("_ZSt18"));
}

// The one that this program runs with.
TEST(ContainerCode, OfTheLibrary) {
  void* const hook = dlsym(RTLD_DEFAULT, "_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
  void* const locale = dlsym(RTLD_DEFAULT, "_ZNSt6localeC1Ev");
  Dl_info library{};
  ASSERT_NE(hook, nullptr);
  ASSERT_NE(locale, nullptr);
  ASSERT_NE(dladdr(hook, &library), 0);
  const auto parts = ContainerCodeOf(library.dli_fname);
  // Its file and its memory have the same distances.
  const auto has = [&](void* function) {
    const auto at = static_cast<std::uint64_t>(static_cast<char*>(function) -
                                               static_cast<char*>(library.dli_fbase));
    for (const CodePart& part : parts) {
      if (at >= part.begin && at < part.end) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(hook));
  EXPECT_FALSE(has(locale));
  for (std::size_t i = 1; i < parts.size(); ++i) EXPECT_LT(parts[i - 1].end, parts[i].begin);
}

TEST(ContainerCode, OtherFiles) {
  EXPECT_TRUE(ContainerCodeOf("/bin/true").empty());
  EXPECT_TRUE(ContainerCodeOf("/nonexistent/libstdc++.so.6").empty());
  EXPECT_TRUE(ContainerCodeOf("").empty());
}

}  // namespace
}  // namespace trapline
