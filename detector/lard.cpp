#include "detector/lard.h"

#include <array>

#include "detector/fasttrack.h"

namespace trapline {
namespace {

constexpr std::array<LardVariant, 7> kVariants{{
    {"lard", "what a runtime tells of its memory and threads is believed", {}},
    {"lard-allmem", "LARD, but untracked accesses count too", {.untracked_accesses = false}},
    {"lard-allsync",
     "LARD, but untracked synchronisation orders threads too",
     {.untracked_synchronisation = false}},
    {"lard-noclear", "LARD, but freed memory keeps its history", {.clear_history = false}},
    {"lard-nocopy", "LARD, but moved memory leaves its history behind", {.copy_history = false}},
    {"lard-noidentity", "LARD, but threads are what carries them", {.thread_identity = false}},
    {"lard-naive",
     "LARD with all of its extensions ignored",
     {.untracked_accesses = false,
      .untracked_synchronisation = false,
      .clear_history = false,
      .copy_history = false,
      .thread_identity = false}},
}};

}  // namespace

std::span<const LardVariant> LardVariants() { return kVariants; }

std::unique_ptr<Detector> MakeLard(const LardVariant& variant, const DetectorOptions& options) {
  return std::make_unique<FastTrack>(options, variant.interface, variant.name);
}

}  // namespace trapline
