#include "hypervisor/socket_keys.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace trapline {
namespace {

// What a key of an address is for.
enum class Use : std::uint8_t { kMeeting = 1, kDatagrams, kListening };

std::mutex sockets_mutex;
// The two ends of a socketpair are one object.
std::map<std::uint64_t, std::uint64_t> socket_pairs;  // inode -> the other's
// A socket whose connection is over at both ends does not know its peer any more, and yet has data.
std::map<std::uint64_t, std::uint64_t> connections;  // inode -> key

bool IsOfInternet(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

// It has the same place in both kinds of addresses.
std::uint16_t PortOf(const sockaddr_storage& address) {
  std::uint16_t port = 0;
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port),
              sizeof port);
  return port;
}

// By the port alone: who listens or receives may do so at all of the machine's addresses.
std::uint64_t PortKey(Use use, const sockaddr_storage& address) {
  return kSocketKeys | Mix(static_cast<std::uint64_t>(use) << 32 | PortOf(address));
}

// A socket's own address, or its peer's, by getsockname and getpeername; nothing if it has none.
template <class Get>
std::optional<sockaddr_storage> AddressBy(Get get, int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return get(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? std::optional(address)
                                                                      : std::nullopt;
}

std::optional<sockaddr_storage> OwnAddress(int fd) {
  return AddressBy([](auto... a) { return getsockname(a...); }, fd);
}

std::optional<sockaddr_storage> PeerAddress(int fd) {
  return AddressBy([](auto... a) { return getpeername(a...); }, fd);
}

// An IPv4 address may be written as an IPv6 one: a server that listens for both sees its clients so
// (RFC 4291, 2.5.5.2).
std::uint64_t HashOfAddress(const sockaddr_storage& address) {
  std::array<unsigned char, 16> bytes{};
  if (address.ss_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr,
                bytes.size());
  } else {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
  std::uint64_t hash = PortOf(address);
  for (const unsigned char byte : bytes) hash = Mix(hash + byte + 1);
  return hash;
}

std::optional<std::uint64_t> InodeOf(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? std::optional(status.st_ino)
                                                             : std::nullopt;
}

}  // namespace

std::uint64_t Mix(std::uint64_t value) {
  value *= 0x9e3779b97f4a7c15ull;
  return (value ^ value >> 29) & kKeyBits;
}

std::uint64_t SocketKey(int fd, std::uint64_t inode, Way way) {
  {
    const std::lock_guard lock(sockets_mutex);
    const auto other = socket_pairs.find(inode);
    if (other != socket_pairs.end()) return kSocketKeys | Mix(std::min(inode, other->second));
  }
  // A local socket does not know its peer: all of them are one object, which orders too much
  // rather than too little.
  const auto own = OwnAddress(fd);
  if (!own || !IsOfInternet(*own)) return kSocketKeys;
  const auto peer = PeerAddress(fd);
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM) {
    const auto& to = way == Way::kIn ? own : peer;
    return to ? DatagramKey(*to) : 0;
  }
  const std::lock_guard lock(sockets_mutex);
  if (peer && IsOfInternet(*peer)) {
    // Both ends have the same two addresses, the other way round.
    const std::uint64_t key = kSocketKeys | Mix(HashOfAddress(*own) + HashOfAddress(*peer));
    connections[inode] = key;
    return key;
  }
  const auto known = connections.find(inode);
  return known != connections.end() ? known->second : MeetingKey(*own);
}

void NoteConnection(int fd) {
  if (const auto inode = InodeOf(fd)) SocketKey(fd, *inode, Way::kIn);
}

void NoteSocketPair(int one, int other) {
  const auto first = InodeOf(one), second = InodeOf(other);
  if (!first || !second) return;
  const std::lock_guard lock(sockets_mutex);
  socket_pairs[*first] = *second;
  socket_pairs[*second] = *first;
}

void ForgetConnection(int fd) {
  const auto inode = InodeOf(fd);
  if (!inode) return;
  const std::lock_guard lock(sockets_mutex);
  connections.erase(*inode);
}

std::uint64_t DatagramKey(const sockaddr_storage& to) {
  return IsOfInternet(to) ? PortKey(Use::kDatagrams, to) : 0;
}

std::uint64_t MeetingKey(const sockaddr_storage& address) {
  return IsOfInternet(address) ? PortKey(Use::kMeeting, address) : kSocketKeys;
}

std::uint64_t ListeningKey(const sockaddr_storage& address) {
  return IsOfInternet(address) ? PortKey(Use::kListening, address) : 0;
}

std::uint64_t OwnMeetingKey(int fd) {
  const auto own = OwnAddress(fd);
  return own ? MeetingKey(*own) : 0;
}

std::uint64_t OwnListeningKey(int fd) {
  const auto own = OwnAddress(fd);
  return own ? ListeningKey(*own) : 0;
}

}  // namespace trapline
