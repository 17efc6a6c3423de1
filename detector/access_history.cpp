#include "detector/access_history.h"

namespace trapline {

const Access* LastAccesses::LatestConflict(const Access& access) const {
  const Access* latest = nullptr;
  for (const AccessHistory& history : histories_) {
    for (const TimedAccess& entry : history) {
      const Access& prior = entry.access;
      const bool conflict = prior.thread != access.thread &&
                            (IsWrite(prior.kind) || IsWrite(access.kind)) &&
                            !(IsAtomic(prior.kind) && IsAtomic(access.kind));
      if (conflict && (latest == nullptr || latest->index < prior.index)) latest = &prior;
    }
  }
  return latest;
}

}  // namespace trapline
