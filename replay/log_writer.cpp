#include "replay/log_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "replay/json_text.h"

namespace trapline {

// One thread's chunk under construction.
struct LogWriter::Stream {
  ThreadId thread = 0;
  std::uint32_t chunk = 0;    // number of the current chunk
  std::uint32_t flushed = 0;  // bytes of it in the file
  std::uint32_t events = 0;   // since `flushed`
  Sequence base = 0;          // at `flushed`
  Sequence first = 0;         // of the first event since
  Sequence last = 0;
  std::uint8_t* next = nullptr;
  std::vector<std::uint8_t> bytes;
  EventEncoder encoder;
};

LogWriter::LogWriter() = default;
LogWriter::~LogWriter() = default;

Status LogWriter::Create(const std::string& path, const RecordingId& recording,
                         const LogMetadata& metadata, const LogWriterOptions& options) {
  options_ = options;
  options_.chunk_bytes = std::clamp(options.chunk_bytes, 4U << 10, kMaxChunkBytes);
  status_ = file_.Create(path, recording);
  if (status_.ok()) status_ = file_.Append(BlockType::kMetadata, JsonText(metadata.ToJson()));
  return status_;
}

LogWriter::Stream& LogWriter::StreamOf(ThreadId thread) {
  if (latest_ != nullptr && latest_->thread == thread) return *latest_;
  std::unique_ptr<Stream>& stream = streams_[thread];
  if (stream == nullptr) {
    stream = std::make_unique<Stream>();
    stream->thread = thread;
    if (const auto ended = ended_.find(thread); ended != ended_.end()) {
      stream->chunk = ended->second;
      stream->base = sequence_;
    }
    stream->bytes.resize(options_.chunk_bytes);
    stream->next = stream->bytes.data();
    stream->encoder.Reset(stream->base);
  }
  latest_ = stream.get();
  return *latest_;
}

void LogWriter::MakeRoom(Stream& stream, std::uint32_t bytes) {
  const std::uint8_t* limit = stream.bytes.data() + stream.bytes.size() - kChunkSlackBytes;
  if (limit - stream.next >= static_cast<std::ptrdiff_t>(bytes)) return;
  Flush(stream);
  ++stream.chunk;
  stream.flushed = 0;
  stream.next = stream.bytes.data();
  stream.encoder.Reset(stream.base);
}

void LogWriter::AppendAt(const Event& event, Sequence sequence) {
  Stream& stream = StreamOf(event.thread);
  MakeRoom(stream, kMaxEventRecordBytes);
  stream.next = stream.encoder.Encode(stream.next, event, sequence);
  if (stream.events++ == 0) stream.first = sequence;
  stream.last = sequence;
  sequence_ = sequence;
  ++events_;
  if (event.kind == EventKind::kThreadEnd) {
    Flush(stream);
    ended_[event.thread] = stream.chunk + 1;
    streams_.erase(event.thread);
    latest_ = nullptr;
  }
  if (events_ % options_.checkpoint_events == 0) Checkpoint();
}

void LogWriter::AppendStack(ThreadId thread, std::uint32_t id,
                            const std::vector<std::uint64_t>& frames) {
  Stream& stream = StreamOf(thread);
  MakeRoom(stream, kMaxStackRecordBytes);
  const auto count = std::min<std::size_t>(frames.size(), kMaxStackFrames);
  stream.next =
      stream.encoder.EncodeStack(stream.next, id, frames.data(), static_cast<std::uint32_t>(count));
}

void LogWriter::Flush(Stream& stream) {
  const auto filled = static_cast<std::uint32_t>(stream.next - stream.bytes.data());
  if (filled == stream.flushed) return;
  BlockHeader header{};
  header.type = BlockType::kEvents;
  header.thread = stream.thread;
  header.events = stream.events;
  header.chunk = stream.chunk;
  header.offset = stream.flushed;
  header.base_sequence = stream.base;
  header.first_sequence = stream.events == 0 ? stream.base : stream.first;
  header.last_sequence = stream.events == 0 ? stream.base : stream.last;
  const Status appended =
      file_.Append(header, {stream.bytes.data() + stream.flushed, filled - stream.flushed});
  if (status_.ok()) status_ = appended;
  stream.flushed = filled;
  stream.base = header.last_sequence;
  stream.events = 0;
}

void LogWriter::Checkpoint(std::uint64_t time_ns) {
  // By thread number, so that the same events give the same file.
  std::vector<Stream*> streams;
  for (const auto& [thread, stream] : streams_) streams.push_back(stream.get());
  std::sort(streams.begin(), streams.end(),
            [](const Stream* a, const Stream* b) { return a->thread < b->thread; });
  for (Stream* stream : streams) Flush(*stream);
  BlockHeader header{};
  header.type = BlockType::kCheckpoint;
  header.last_sequence = sequence_;
  header.time_ns = time_ns;
  const Status appended = file_.Append(header, {});
  if (status_.ok()) status_ = appended;
}

Status LogWriter::Finish() {
  LogEnd end;
  end.orderly = true;
  return Finish(end);
}

Status LogWriter::Finish(LogEnd end) {
  Checkpoint();
  end.events = events_;
  end.last_sequence = sequence_;
  if (status_.ok()) status_ = file_.Append(BlockType::kEnd, EndToText(end));
  const Status closed = file_.Close();
  if (status_.ok()) status_ = closed;
  return status_;
}

}  // namespace trapline
