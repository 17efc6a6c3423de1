#include "detector/eraser.h"

#include "detector/factory.h"

namespace trapline {

bool LocksetCell::OnAccess(const Event& event, LocksetId lockset, LocksetTable* table) {
  if (!IsWrite(event.kind)) lockset = table->Add(lockset, kReadersLock);
  candidates = accessed ? table->Intersect(candidates, lockset) : lockset;
  accessed = true;
  return candidates == kEmptyLockset;
}

template std::unique_ptr<Detector> Make<Eraser>(const DetectorOptions&);
template std::unique_ptr<Detector> Make<Lockset>(const DetectorOptions&);

}  // namespace trapline
