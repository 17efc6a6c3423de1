// Whose accesses do not count.
#include <gtest/gtest.h>

#include "hypervisor/process.h"

namespace trapline {
namespace {

TEST(UntrackedModules, RuntimesAndNoOthers) {
  const TrackOptions options;
  for (const char* const name : {"libpthread.so.0", "libpthread-2.31.so", "libc.so.6",
                                 "libc-2.31.so", "ld-linux-x86-64.so.2", "libstdc++.so.6.0.30"}) {
    EXPECT_TRUE(IsUntrackedModule(options, std::string("/lib/x86_64-linux-gnu/") + name)) << name;
  }
  for (const char* const name : {"libpthreadpool.so.0", "libcrypto.so.3", "libmount.so.1"})
    EXPECT_FALSE(IsUntrackedModule(options, std::string("/usr/lib/") + name)) << name;
}

}  // namespace
}  // namespace trapline
