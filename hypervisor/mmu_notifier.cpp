#include "hypervisor/mmu_notifier.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "hypervisor/kvm.h"

namespace trapline {
namespace {

// Since Linux 6.7; allows every kind of mapping.
constexpr std::uint64_t kAsynchronousWriteProtection = 1 << 15;

FileDescriptor OpenWith(std::uint64_t features) {
  FileDescriptor descriptor = OpenOutOfTheWay(
      [] { return static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)); });
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (!descriptor.valid() || ioctl(descriptor.get(), UFFDIO_API, &api) == 0) return descriptor;
  ForgetMonitorDescriptor(descriptor.get());
  return {};
}

}  // namespace

void MmuNotifier::Fire(std::uint64_t start, std::uint64_t end, std::uint64_t mapping_start,
                       std::uint64_t mapping_end, int protection) {
  if (usable_ && FireByUserfaultfd(start, end, mapping_start, mapping_end)) return;
  // A file mapped from where nothing may be executed refuses the first; then nobody may write for a
  // moment.
  auto* const pages = reinterpret_cast<void*>(start);  // NOLINT(performance-no-int-to-ptr)
  if (mprotect(pages, end - start, protection ^ PROT_EXEC) != 0)
    mprotect(pages, end - start, PROT_READ);
  mprotect(pages, end - start, protection);
}

bool MmuNotifier::Open() {
  if (userfaultfd_.valid()) return true;
  userfaultfd_ = OpenWith(kAsynchronousWriteProtection);
  if (!userfaultfd_.valid()) userfaultfd_ = OpenWith(0);
  usable_ = userfaultfd_.valid();
  return usable_;
}

bool MmuNotifier::FireByUserfaultfd(std::uint64_t start, std::uint64_t end,
                                    std::uint64_t mapping_start, std::uint64_t mapping_end) {
  if (!Open()) return false;
  uffdio_writeprotect pages{};
  pages.range = {start, end - start};
  const auto fire = [&] {
    int result = 0;
    do {
      result = ioctl(userfaultfd_.get(), UFFDIO_WRITEPROTECT, &pages);
    } while (result != 0 && (errno == EAGAIN || errno == EINTR));
    return result == 0;
  };
  if (fire()) return true;
  // The mapping is new, or has grown.
  uffdio_register mapping{};
  mapping.range = {mapping_start, mapping_end - mapping_start};
  mapping.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(userfaultfd_.get(), UFFDIO_REGISTER, &mapping) == 0 && fire();
}

void MmuNotifier::Close() {
  if (!userfaultfd_.valid()) return;
  ForgetMonitorDescriptor(userfaultfd_.get());
  userfaultfd_.Close();
}

void MmuNotifier::LeaveToProgram() {
  Close();
  usable_ = false;
}

void MmuNotifier::OnForkedChild(bool shared_descriptors) {
  if (!userfaultfd_.valid()) return;
  ForgetMonitorDescriptor(userfaultfd_.get());
  if (shared_descriptors) {
    static_cast<void>(userfaultfd_.Release());
  } else {
    userfaultfd_.Close();
  }
}

}  // namespace trapline
