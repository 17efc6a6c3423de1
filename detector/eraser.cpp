#include "detector/eraser.h"

namespace trapline {

bool LocksetCell::OnAccess(const Event& event, LocksetId lockset, LocksetTable* table) {
  if (!IsWrite(event.kind)) lockset = table->Add(lockset, kReadersLock);
  candidates = accessed ? table->Intersect(candidates, lockset) : lockset;
  accessed = true;
  return candidates == kEmptyLockset;
}

}  // namespace trapline
