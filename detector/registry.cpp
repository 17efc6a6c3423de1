// The detectors by name.
#include <array>
#include <string>
#include <utility>

#include "detector/detector.h"
#include "detector/factory.h"
#include "detector/lard.h"
#include "detector/tree_filter.h"

namespace trapline {
namespace {

using Maker = std::unique_ptr<Detector> (*)(const DetectorOptions&);

struct Entry {
  DetectorInfo info;
  Maker make;
};

constexpr std::array<Entry, 13> kPlain{{
    {{"empty", "no analysis: the cost of the event stream alone"}, Make<Empty>},
    {{"basicvc", "happens-before by vector clocks, every access checked"}, Make<BasicVc>},
    {{"djit+", "happens-before by vector clocks, first access of each epoch checked"},
     Make<DjitPlus>},
    {{"fasttrack", "happens-before by epochs: precise and fast"}, Make<FastTrack>},
    {{"lockset", "no common lock for all accesses: many false alarms"}, Make<Lockset>},
    {{"eraser", "no common lock, once shared and written: false alarms, some misses"},
     Make<Eraser>},
    {{"racetrack", "locksets of locations seen to be accessed concurrently"}, Make<RaceTrack>},
    {{"hybrid", "no common lock and not ordered by other means than locks"}, Make<Hybrid>},
    {{"multirace", "happens-before, checked only where Eraser would report"}, Make<MultiRace>},
    {{"goldilocks", "happens-before by sets of synchronisation devices: precise, slow"},
     Make<Goldilocks>},
    {{"acculock",
      "happens-before without lock edges and locksets: finds races of other schedules too"},
     Make<AccuLock>},
    {{"pacer", "happens-before of a sample: finds each race with the sampling rate's probability"},
     Make<Pacer>},
    {{"literace", "happens-before of a sample that favours cold code"}, Make<LiteRace>},
}};

struct Filter {
  std::string_view prefix;
  TreeMode mode;
};
constexpr std::array<Filter, 3> kFilters{{{"tree+", TreeMode::kThesis},
                                          {"tree-spans+", TreeMode::kSpans},
                                          {"tree-exact+", TreeMode::kExact}}};

}  // namespace

std::span<const DetectorInfo> Detectors() {
  static const std::vector<DetectorInfo> all = [] {
    std::vector<DetectorInfo> infos;
    infos.reserve(kPlain.size() + LardVariants().size());
    for (const Entry& entry : kPlain) infos.push_back(entry.info);
    for (const LardVariant& variant : LardVariants()) {
      infos.push_back({variant.name, variant.description});
    }
    return infos;
  }();
  return all;
}

std::string DetectorNames() {
  std::string names;
  for (const DetectorInfo& info : Detectors()) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

std::unique_ptr<Detector> MakeDetector(std::string_view name, const DetectorOptions& options) {
  for (const Filter& filter : kFilters) {
    if (!name.starts_with(filter.prefix)) continue;
    auto inner = MakeDetector(name.substr(filter.prefix.size()), options);
    if (inner == nullptr) return nullptr;
    return std::make_unique<TreeFilter>(std::move(inner), filter.mode);
  }
  for (const Entry& entry : kPlain) {
    if (entry.info.name == name) return entry.make(options);
  }
  for (const LardVariant& variant : LardVariants()) {
    if (variant.name == name) return MakeLard(variant, options);
  }
  return nullptr;
}

}  // namespace trapline
