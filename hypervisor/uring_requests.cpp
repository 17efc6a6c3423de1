#include "hypervisor/uring_requests.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "hypervisor/guest_copy.h"

namespace trapline {
namespace {

// Of later kernels than the headers'.
constexpr std::uint32_t kNoMmap = 1u << 14, kNoArray = 1u << 16;
constexpr std::uint8_t kSendZeroCopy = 47, kSendMessageZeroCopy = 48;
constexpr std::uint32_t kRegisteredRing = 1u << 4;

std::mutex rings_mutex;
std::map<int, io_uring_params> rings;

// For a moment: as long as it is mapped a ring does not end by being closed.
class RingMapping {
 public:
  RingMapping(int ring, std::size_t size, std::uint64_t what)
      : size_(size),
        memory_(mmap(nullptr, size, PROT_READ, MAP_SHARED, ring, static_cast<off_t>(what))) {}
  ~RingMapping() {
    if (valid()) munmap(memory_, size_);
  }
  RingMapping(const RingMapping&) = delete;
  RingMapping& operator=(const RingMapping&) = delete;

  bool valid() const { return memory_ != MAP_FAILED; }
  // Null: it would lie outside.
  template <class Value>
  const Value* At(std::size_t offset) const {
    return offset <= size_ && sizeof(Value) <= size_ - offset
               ? reinterpret_cast<const Value*>(static_cast<const char*>(memory_) + offset)
               : nullptr;
  }

 private:
  std::size_t size_;
  void* memory_;
};

void Add(const io_uring_sqe& entry, std::vector<UringRequest>& requests) {
  using Kind = UringRequest::Kind;
  if ((entry.flags & IOSQE_FIXED_FILE) != 0) return;
  switch (entry.opcode) {
    case IORING_OP_READ:
    case IORING_OP_READV:
    case IORING_OP_READ_FIXED:
    case IORING_OP_RECV:
    case IORING_OP_RECVMSG:
    case IORING_OP_POLL_ADD:
      requests.push_back({Kind::kTakes, entry.fd});
      break;
    case IORING_OP_WRITE:
    case IORING_OP_WRITEV:
    case IORING_OP_WRITE_FIXED:
    case IORING_OP_SEND:
    case IORING_OP_SENDMSG:
    case kSendZeroCopy:
    case kSendMessageZeroCopy:
    case IORING_OP_SHUTDOWN:
    case IORING_OP_CLOSE:
      requests.push_back({Kind::kGives, entry.fd});
      break;
    case IORING_OP_SPLICE:
    case IORING_OP_TEE:
      requests.push_back({Kind::kGives, entry.fd});
      if ((entry.splice_flags & SPLICE_F_FD_IN_FIXED) == 0)
        requests.push_back({Kind::kTakes, entry.splice_fd_in});
      break;
    case IORING_OP_ACCEPT:
      requests.push_back({Kind::kAccepts, entry.fd});
      break;
    default:
      break;
  }
}

}  // namespace

void NoteUring(const SystemCall& call, long result) {
  io_uring_params parameters{};
  if (call.number != SYS_io_uring_setup || result < 0 || !ReadGuest(call.arguments[1], parameters))
    return;
  const std::lock_guard lock(rings_mutex);
  rings[static_cast<int>(result)] = parameters;
}

std::vector<UringRequest> UringRequests(const SystemCall& call) {
  std::vector<UringRequest> requests;
  if (call.number != SYS_io_uring_enter || call.arguments[1] == 0 ||
      (call.arguments[3] & kRegisteredRing) != 0) {
    return requests;
  }
  const auto descriptor = static_cast<int>(call.arguments[0]);
  io_uring_params ring{};
  {
    const std::lock_guard lock(rings_mutex);
    const auto known = rings.find(descriptor);
    if (known == rings.end()) return requests;
    ring = known->second;
  }
  if ((ring.flags & (kNoMmap | IORING_SETUP_SQPOLL)) != 0 || ring.sq_entries == 0) return requests;
  const bool has_array = (ring.flags & kNoArray) == 0;
  const std::size_t entry_size = sizeof(io_uring_sqe)
                                 << ((ring.flags & IORING_SETUP_SQE128) != 0 ? 1 : 0);
  const std::size_t queue_size =
      has_array ? ring.sq_off.array + ring.sq_entries * sizeof(std::uint32_t)
                : std::max(ring.sq_off.head, ring.sq_off.tail) + sizeof(std::uint32_t);
  const RingMapping queue(descriptor, queue_size, IORING_OFF_SQ_RING);
  const RingMapping entries(descriptor, ring.sq_entries * entry_size, IORING_OFF_SQES);
  if (!queue.valid() || !entries.valid()) return requests;
  const auto* const head = queue.At<std::uint32_t>(ring.sq_off.head);
  const auto* const tail = queue.At<std::uint32_t>(ring.sq_off.tail);
  if (head == nullptr || tail == nullptr) return requests;
  const std::uint32_t first = __atomic_load_n(head, __ATOMIC_ACQUIRE);
  const std::uint64_t count =
      std::min<std::uint64_t>({call.arguments[1] & 0xffffffff,
                               __atomic_load_n(tail, __ATOMIC_ACQUIRE) - first, ring.sq_entries});
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t index = (first + i) % ring.sq_entries;  // a power of two
    if (has_array) {
      const auto* const place =
          queue.At<std::uint32_t>(ring.sq_off.array + index * sizeof(std::uint32_t));
      if (place == nullptr) break;
      index = *place;
    }
    if (const auto* const entry = entries.At<io_uring_sqe>(index * entry_size))
      Add(*entry, requests);
  }
  return requests;
}

}  // namespace trapline
