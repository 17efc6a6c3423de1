// Makes KVM notice that entries of the guest's page tables are gone: it drops what it has cached of
// a page only when the host kernel's notifiers tell of a change to that page's mapping
// (docs/cost.md).
#pragma once

#include <cstdint>

#include "hypervisor/file_descriptor.h"

namespace trapline {

// Fires the notifiers for parts of the program's memory and leaves the mappings as they are.
//
// The way to do it is to lift userfaultfd's write protection from pages that have none: the kernel
// tells of exactly those pages (change_protection). A pair of mprotect calls does it, too, but
// splits the mapping for a moment, and at a split the kernel tells of the 2 MiB around each end,
// huge page or not (__split_huge_pmd, Linux 6.18). What other threads use there has then to be
// faulted in anew, at 37 us a page on kvm_pvm. It is what is done where userfaultfd cannot be used.
//
// Not thread-safe.
class MmuNotifier {
 public:
  // For [start, end), whole pages of the program's mapping [mapping_start, mapping_end), which has
  // that protection (PROT_ bits, not PROT_NONE).
  void Fire(std::uint64_t start, std::uint64_t end, std::uint64_t mapping_start,
            std::uint64_t mapping_end, int protection);

  // The program wants memory of its own watched by userfaultfd, which only one can do.
  void LeaveToProgram();
  // In a child of fork, whose descriptors may be its parent's, too.
  void OnForkedChild(bool shared_descriptors);

 private:
  bool Open();
  bool FireByUserfaultfd(std::uint64_t start, std::uint64_t end, std::uint64_t mapping_start,
                         std::uint64_t mapping_end);
  void Close();

  FileDescriptor userfaultfd_;  // opened at the first use
  bool usable_ = true;
};

}  // namespace trapline
