// What many programs here include, for they would take most of their time to compile it.
#ifndef TRAPLINE_TESTS_RACES_CPP_PRECOMPILED_H_
#define TRAPLINE_TESTS_RACES_CPP_PRECOMPILED_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#endif  // TRAPLINE_TESTS_RACES_CPP_PRECOMPILED_H_
