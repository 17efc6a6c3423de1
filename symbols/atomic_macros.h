// Macros of a program's own sources that stand for atomic operations, which leave no other trace: a
// store by one is a plain `mov` on a line that does not name the operation.
#pragma once

#include <ctime>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Not thread-safe.
class AtomicMacros {
 public:
  // All that `files`, absolute paths, and what they include define, written by `built`: by quotes
  // relative to themselves, else in `directories`, those above them, or a directory there that is
  // called include, inc or src. Those of the compiler's and the C and C++ libraries are left out,
  // and so is what cannot be found, or comes after the first 8 MiB, or for which more places than
  // kMostLookups would have to be looked at.
  AtomicMacros(const std::vector<std::string>& files, const std::vector<std::string>& directories,
               std::time_t built);

  static constexpr unsigned kMostLookups = 20'000;

  bool empty() const { return names_.empty(); }
  // Whether one is used on that line of the file. False if the file cannot be read, or is younger.
  bool AreUsedAt(const std::string& file, int line);

 private:
  using Words = std::map<std::string, std::set<std::string>, std::less<>>;  // by macro: of its body

  void Read(const std::string& path, Words& bodies);
  // Of the library that has this header.
  void AddMacrosOf(std::string_view header);
  // All files that an include may mean.
  std::vector<std::string> Find(std::string_view name, bool quoted, const std::string& from);
  bool IsFile(const std::string& path);
  std::set<int> LinesIn(const std::string& file) const;

  const std::time_t built_;
  std::vector<std::string> directories_, below_;  // of sources and those above; in these
  std::map<std::string, std::vector<std::string>, std::less<>> found_;  // by what was included
  unsigned lookups_ = 0;
  std::set<std::string> read_;
  std::size_t size_ = 0;  // bytes
  std::set<std::string, std::less<>> names_;
  std::map<std::string, std::set<int>> lines_;  // by file, of those that were asked for
};

}  // namespace trapline
