#include "detector/empty.h"

namespace trapline {

std::vector<Statistic> Empty::statistics() const {
  return {{"reads", reads_},
          {"writes", writes_},
          {"atomic accesses", atomics_},
          {"synchronisation events", synchronisations_}};
}

}  // namespace trapline
