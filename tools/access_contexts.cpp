#include "tools/access_contexts.h"

#include "detector/hash.h"

namespace trapline {

std::size_t AccessContexts::LockSetHash::operator()(const std::vector<HeldLock>& locks) const {
  std::uint64_t hash = locks.size();
  for (const HeldLock& lock : locks) hash = HashOf(hash, lock.address + lock.shared, lock.ip);
  return hash;
}

std::size_t AccessContexts::ContextHash::operator()(const AccessContext& context) const {
  return HashOf(context.generation, std::uint64_t{context.lock_set} << 32 | context.stack);
}

std::size_t AccessContexts::FrameHash::operator()(const Frame& frame) const {
  return HashOf(frame.caller, frame.return_address);
}

AccessContexts::AccessContexts() : cached_(std::size_t{1} << kCachedBits) {}

std::vector<std::uint64_t> AccessContexts::stack(std::uint32_t number) const {
  std::vector<std::uint64_t> stack;
  for (; number != 0 && stack.size() < kDeepestStack; number = frames_[number].caller)
    stack.push_back(frames_[number].return_address);
  return stack;
}

std::uint32_t AccessContexts::CallerOf(std::uint32_t stack, std::uint64_t return_address) const {
  while (stack != 0 && frames_[stack].return_address != return_address)
    stack = frames_[stack].caller;
  return stack != 0 ? frames_[stack].caller : 0;
}

std::uint32_t AccessContexts::Of(std::span<const std::uint64_t> stack, std::uint32_t lock_set,
                                 std::uint32_t generation) {
  std::uint32_t number = 0;
  for (std::size_t i = stack.size(); i-- > 0;) number = frames_.Add({number, stack[i]});
  return contexts_.Add({number, lock_set, generation});
}

std::uint32_t AccessContexts::AddPlacesOf(const std::vector<HeldLock>& locks) {
  places_ = locks;
  for (HeldLock& lock : places_) lock.address = 0;
  return lock_sets_.Add(places_);
}

[[gnu::noinline]] std::uint32_t AccessContexts::Make(Cached& cached, std::uint64_t ip,
                                                     std::uint32_t frame, std::uint32_t lock_set,
                                                     std::uint32_t generation) {
  const std::uint32_t number = contexts_.Add({frames_.Add({frame, ip}), lock_set, generation});
  cached = {frame, lock_set, generation, number, ip};
  return number;
}

}  // namespace trapline
