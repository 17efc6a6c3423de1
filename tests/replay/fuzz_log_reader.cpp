// Fuzz target: any bytes as a trap log. The first byte says whether the checksums are made right
// first, so that the fuzzer gets past them to the decoder.
//
// With clang and TRAPLINE_FUZZ it is a libFuzzer target; otherwise it runs over the files it is
// given.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "replay/checksum.h"
#include "replay/event_source.h"
#include "replay/log_index.h"
#include "replay/log_reader.h"

namespace trapline {
namespace {

void RepairChecksums(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < sizeof(FileHeader)) return;
  FileHeader file;
  std::memcpy(&file, bytes.data(), sizeof(file));
  std::memcpy(file.magic, kFileMagic, sizeof(kFileMagic));
  file.version = kLogVersion;
  file.header_bytes = sizeof(file);
  file.reserved = 0;
  file.checksum = Crc32c(&file, offsetof(FileHeader, checksum));
  std::memcpy(bytes.data(), &file, sizeof(file));
  for (std::size_t at = sizeof(FileHeader); at + sizeof(BlockHeader) <= bytes.size();) {
    BlockHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    const std::size_t payload = at + sizeof(header);
    if (header.stored_bytes > bytes.size() - payload) {
      header.stored_bytes = static_cast<std::uint32_t>(bytes.size() - payload);
    }
    header.magic = kBlockMagic;
    header.payload_checksum = Crc32c(bytes.data() + payload, header.stored_bytes);
    header.header_checksum = Crc32c(&header, offsetof(BlockHeader, header_checksum));
    std::memcpy(bytes.data() + at, &header, sizeof(header));
    at = payload + header.stored_bytes;
  }
}

void Read(const std::vector<std::uint8_t>& bytes) {
  const int file = memfd_create("fuzz", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    abort();
  }
  LogIndex index;
  if (index.Open("/proc/self/fd/" + std::to_string(file)).ok()) {
    // Incomplete logs too are read to their last whole block.
    LogReader reader(index, 0, kLastSequence);
    std::vector<Event> events(64);
    std::vector<Sequence> sequences(events.size());
    Sequence before = 0;
    std::uint64_t read = 0;
    while (const std::size_t count = reader.Read(events.data(), sequences.data(), events.size())) {
      for (std::size_t i = 0; i < count; ++i) {
        if (sequences[i] < before) abort();  // the order is total, whatever the bytes
        before = sequences[i];
      }
      read += count;
    }
    EventSource straight(index, kLastSequence, true);
    while (straight.Read(events.data(), events.size()) != 0) {
    }
    if (straight.position() > read) abort();  // each late repeat has one place at most
    if (read > index.events() || (reader.status().ok() && read != index.events())) abort();
  } else if (index.events() != 0) {
    abort();
  }
  close(file);
}

}  // namespace
}  // namespace trapline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  if (data[0] % 2 == 1) trapline::RepairChecksums(bytes);
  trapline::Read(bytes);
  return 0;
}
