// The keys under which threads that talk through sockets are ordered.
//
// A key is no address that the program can have; 0 orders nobody. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace trapline {

// What is left of a key beside what tells its kind (system_call_effects.cpp has the others).
inline constexpr std::uint64_t kKeyBits = (1ull << 56) - 1;
inline constexpr std::uint64_t kSocketKeys = 2ull << 56;
std::uint64_t Mix(std::uint64_t value);  // within kKeyBits

// Data goes out of a descriptor, or comes in.
enum class Way : std::uint8_t { kOut, kIn };

// Of a socket that is open as `fd`: the same at both ends of a connection, also when that is over;
// of one that listens MeetingKey, of datagrams DatagramKey.
std::uint64_t SocketKey(int fd, std::uint64_t inode, Way way);
// The socket has just been connected.
void NoteConnection(int fd);
// The two descriptors are the ends of a socketpair.
void NoteSocketPair(int one, int other);
// The descriptor is about to be closed: what is known of its connection is not needed any more.
void ForgetConnection(int fd);

// A datagram is sent to a port, by sockets that need not be connected, to one that seldom is.
std::uint64_t DatagramKey(const sockaddr_storage& to);
// Where who connects to an address meets who accepts there.
std::uint64_t MeetingKey(const sockaddr_storage& address);
// That somebody listens there comes before who connects.
std::uint64_t ListeningKey(const sockaddr_storage& address);
// The same of the address that the socket has itself; 0: it has none.
std::uint64_t OwnMeetingKey(int fd);
std::uint64_t OwnListeningKey(int fd);

}  // namespace trapline
