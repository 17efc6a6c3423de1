#include "detector/empty.h"

#include "detector/factory.h"

namespace trapline {

std::vector<Statistic> Empty::statistics() const {
  return {{"reads", reads_},
          {"writes", writes_},
          {"atomic accesses", atomics_},
          {"synchronisation events", synchronisations_}};
}

template std::unique_ptr<Detector> Make<Empty>(const DetectorOptions&);

}  // namespace trapline
