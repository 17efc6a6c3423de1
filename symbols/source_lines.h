// What the text of the program's sources says of single lines.
#pragma once

#include <ctime>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace trapline {

// The numbers (from 1) of the lines of a C, C++ or Fortran source on which a plain load or store
// may be an atomic operation that leaves no other trace in debug info: a compiler's or C11's atomic
// function is called there by its name, or the line belongs to the statement after `#pragma omp
// atomic`, in any of that directive's spellings, or after `!$omp atomic`.
// Comments and strings are not told from code.
std::set<int> AtomicLines(std::string_view text);

// Whether the text names such a function.
bool NamesOperation(std::string_view text);

// The lines on which an atomic operation is named of which a compiler may make a store: an exchange
// whose result nobody wants.
std::set<int> ExchangeLines(std::string_view text);

// Not thread-safe.
class SourceLines {
 public:
  // The same for a line of a file that is not younger than `built`, when the program was built from
  // it. False if the file cannot be read. Files are read once.
  bool IsAtomic(const std::string& file, int line, std::time_t built);
  // Whether one of the lines in [begin, end) is in ExchangeLines; else the same.
  bool HasExchange(const std::string& file, int begin, int end, std::time_t built);
  // Whether either is so for any line of the file.
  bool HasAtomic(const std::string& file, std::time_t built);

 private:
  struct File {
    std::time_t modified = 0;
    std::set<int> atomic_lines, exchange_lines;
  };

  const File& Read(const std::string& file);

  std::unordered_map<std::string, File> files_;
};

}  // namespace trapline
