// LARD: a low-level vector-clock detector that a language runtime tells what its memory and its
// threads mean (Wood, Ceze and Grossman, ASPLOS 2014; sections 3 and 4.1).
//
// Every detector here honours that interface (detector/runtime_scopes.h). LARD is FastTrack's
// analysis behind it, and the ablations of section 5.2 switch its extensions off, one by one or all
// at once.
#pragma once

#include <memory>
#include <span>

#include "detector/detector.h"
#include "detector/runtime_scopes.h"

namespace trapline {

struct LardVariant {
  std::string_view name;  // "lard", "lard-allmem", ...
  std::string_view description;
  RuntimeInterface interface;
};

// LARD itself, then AllMem, AllSync, NoClear, NoCopy, Naive.
std::span<const LardVariant> LardVariants();

std::unique_ptr<Detector> MakeLard(const LardVariant& variant, const DetectorOptions& options);

}  // namespace trapline
