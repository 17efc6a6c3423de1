// What reports say about the order of the program's steps: a happens-before relation by vector
// clocks, written for tests, apart from the product's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/preload/recorder.h"

namespace trapline::preload {

// Marks a step of the calling thread, among the reports that are being recorded. Names need not be
// unique: a statement about a name is about all its steps.
void Step(const char* name);

class Order {
 public:
  // `reports`: of kind What::kSynchronisation, with the steps among them.
  explicit Order(const std::vector<Report>& reports);

  // Whether every step called `first` happens before every step called `second` (of another
  // occurrence). There must be at least one of each.
  bool Before(const std::string& first, const std::string& second) const;

  // Whether some step called `first` and some step called `second` in another thread are unordered.
  bool SomeUnordered(const std::string& first, const std::string& second) const;

  std::size_t Count(const std::string& name) const;

 private:
  using Clock = std::map<std::uint64_t, std::uint64_t>;
  struct Occurrence {
    std::string name;
    std::uint64_t thread;
    Clock clock;
  };
  static bool HappensBefore(const Occurrence& a, const Occurrence& b);

  std::vector<Occurrence> steps_;
};

}  // namespace trapline::preload
