// How the registry makes a detector without knowing its class, whose code is compiled only in the
// detector's own file.
#pragma once

#include <memory>

#include "detector/detector.h"

namespace trapline {

template <class Concrete>
std::unique_ptr<Detector> Make(const DetectorOptions& options) {
  return std::make_unique<Concrete>(options);
}

class AccuLock;
class BasicVc;
class DjitPlus;
class Empty;
class Eraser;
class FastTrack;
class Goldilocks;
class Hybrid;
class LiteRace;
class Lockset;
class MultiRace;
class Pacer;
class RaceTrack;

extern template std::unique_ptr<Detector> Make<AccuLock>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<BasicVc>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<DjitPlus>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Empty>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Eraser>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<FastTrack>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Goldilocks>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Hybrid>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<LiteRace>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Lockset>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<MultiRace>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<Pacer>(const DetectorOptions&);
extern template std::unique_ptr<Detector> Make<RaceTrack>(const DetectorOptions&);

}  // namespace trapline
