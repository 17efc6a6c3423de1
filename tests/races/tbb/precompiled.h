// What the programs here include, for they would take most of their time to compile it.
#ifndef TRAPLINE_TESTS_RACES_TBB_PRECOMPILED_H_
#define TRAPLINE_TESTS_RACES_TBB_PRECOMPILED_H_

#include <tbb/tbb.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#endif  // TRAPLINE_TESTS_RACES_TBB_PRECOMPILED_H_
