// An ELF file as if a loader had mapped it: a maps text and its memory, without running it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "symbols/modules.h"

namespace trapline {

class LoadedFile {
 public:
  // At `bias`; programs at fixed addresses want 0.
  LoadedFile(std::string path, std::uint64_t bias);
  LoadedFile(const LoadedFile&) = delete;
  LoadedFile& operator=(const LoadedFile&) = delete;

  // For a Modules that sees this file alone. This object must outlive it.
  ModulesOptions Options();
  std::string MapsText() const;

  // Start and size of a function or variable by its name in .symtab, in the process.
  std::pair<std::uint64_t, std::uint64_t> Symbol(const std::string& name) const;

  std::uint64_t bias() const { return bias_; }

 private:
  std::string path_, bytes_;
  std::uint64_t bias_;
};

}  // namespace trapline
