#include "tools/race_json_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "hypervisor/signal_held_back.h"
#include "replay/json_text.h"

namespace trapline {
namespace {

using nlohmann::json;

// An exclusive lock on the whole file, until destroyed.
class FileLock {
 public:
  // Gives up after a while: a process that was stopped in the middle must not stop all others.
  explicit FileLock(int descriptor) : descriptor_(descriptor) {
    constexpr int kTries = 30'000;
    constexpr timespec kPause = {0, 1'000'000};
    for (int i = 0; i < kTries; ++i) {
      error_ = fcntl(descriptor_, F_SETLK, Description(F_WRLCK)) == 0 ? 0 : errno;
      if (error_ != EAGAIN && error_ != EACCES && error_ != EINTR) return;
      nanosleep(&kPause, nullptr);
    }
    error_ = ETIMEDOUT;
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (error_ == 0) fcntl(descriptor_, F_SETLK, Description(F_UNLCK));
  }

  int error() const { return error_; }

 private:
  const struct flock* Description(short type) {
    description_ = {};
    description_.l_type = type;
    description_.l_whence = SEEK_SET;
    return &description_;
  }

  int descriptor_;
  int error_ = 0;
  struct flock description_ = {};
};

constexpr const char* kNotOurs = "it is not, or no longer, what Trapline wrote there";

bool ReadFrom(int descriptor, std::uint64_t start, std::string& text) {
  text.clear();
  char buffer[65536];
  for (;;) {
    const ssize_t size =
        pread(descriptor, buffer, sizeof buffer, static_cast<off_t>(start + text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

// Makes `text` what the file holds from `start` on. One write where the kernel takes it whole, so
// that there is hardly a moment at which the file is not one form or the other.
bool WriteFrom(int descriptor, std::uint64_t start, std::string_view text) {
  const SignalHeldBack signal(SIGXFSZ);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t size = pwrite(descriptor, text.data() + done, text.size() - done,
                                static_cast<off_t>(start + done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<std::size_t>(size);
  }
  return ftruncate(descriptor, static_cast<off_t>(start + text.size())) == 0;
}

// Puts `after` in place of `before`, which ends the file. Null, or what failed.
const char* Replace(int descriptor, std::uint64_t start, const std::string& before,
                    const std::string& after) {
  if (WriteFrom(descriptor, start, after)) return nullptr;
  const int error = errno;
  // Such as a full disk: what was there before took no more room than it has.
  static_cast<void>(WriteFrom(descriptor, start, before));
  return std::strerror(error);
}

json EmptyForm(const std::string& program) {
  return {{"version", 1},
          {"program", program},
          {"summary", {{"races", 0}, {"occurrences", 0}, {"suppressed", 0}, {"processes", 0}}},
          {"processes", json::array()},
          {"races", json::array()},
          {"shared_memory", json::array()}};
}

// Function and path names may be of any bytes.
std::string Dump(const json& part) { return JsonText(part, 1); }

// The races come first, and all else after this line, which there is no second time: another race
// can be added without a look at those that are there.
constexpr std::string_view kEndOfRaces = "\n],\n";

// `rest`: the form without the races.
std::string TextAfterRaces(const json& rest) {
  constexpr std::string_view kOpening = "{\n";
  return std::string(kEndOfRaces) + Dump(rest).substr(kOpening.size()) + '\n';
}

std::string Text(json form) {
  const json races = std::exchange(form["races"], json());
  form.erase("races");
  std::string text = "{\n\"races\": [";
  for (std::size_t i = 0; i < races.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    text += Dump(races[i]);
  }
  return text + TextAfterRaces(form);
}

// The form, or what is after its races.
bool IsForm(const json& form, bool with_races) {
  return form.is_object() && form.value("version", json()) == 1 && form.contains("processes") &&
         form["processes"].is_array() &&
         (!with_races || (form.contains("races") && form["races"].is_array()));
}

void RemoveFrom(json& list, const json& process) {
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i].is_object() && list[i].value("process", json()) == process["process"] &&
        list[i].value("instance", json()) == process["instance"]) {
      list.erase(i);
    }
  }
}

void Summarise(json& form, std::size_t races) {
  std::uint64_t occurrences = 0, suppressed = 0;
  for (const json& process : form["processes"]) {
    if (!process.is_object()) continue;
    occurrences += process.value("occurrences", std::uint64_t{0});
    suppressed += process.value("suppressed", std::uint64_t{0});
  }
  form["summary"] = {{"races", races},
                     {"occurrences", occurrences},
                     {"suppressed", suppressed},
                     {"processes", form["processes"].size()}};
}

}  // namespace

RaceJsonFile::~RaceJsonFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status RaceJsonFile::Create(const std::string& path, const std::string& program) {
  const std::unique_lock lock(mutex_);
  const auto failed = [&](const std::string& why) {
    return Status::Error(fmt::format(
        "cannot write the races to '{}': {}; give --json a file that can be written", path, why));
  };
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK, 0666);
  if (descriptor < 0) return failed(std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return failed("not a regular file, which several processes could add to");
  }
  if (!WriteFrom(descriptor, 0, Text(EmptyForm(program)))) {
    const int error = errno;
    close(descriptor);
    return failed(std::strerror(error));
  }
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
  path_ = path;
  return {};
}

void RaceJsonFile::Adopt(int descriptor, const std::string& path) {
  const std::unique_lock lock(mutex_);
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
  path_ = path;
}

Status RaceJsonFile::Merge(const json& process) {
  return Change(process, [&] { return MergeLocked(process); });
}

Status RaceJsonFile::Append(const json& process) {
  return Change(process, [&] { return AppendLocked(process); });
}

Status RaceJsonFile::Change(const json& process, const std::function<const char*()>& change) {
  const std::unique_lock lock(mutex_);
  const FileLock file_lock(descriptor_);
  const char* why = nullptr;
  if (file_lock.error() == ETIMEDOUT) {
    why = "another process has kept it locked for half a minute";
  } else {
    why = file_lock.error() != 0 ? std::strerror(file_lock.error()) : change();
  }
  if (why == nullptr) return {};
  return Status::Error(fmt::format("cannot add the races of process {} to '{}': {}",
                                   JsonText(process["process"]["process"]), path_, why));
}

const char* RaceJsonFile::MergeLocked(const json& process) {
  std::string before;
  if (!ReadFrom(descriptor_, 0, before)) return std::strerror(errno);
  json form = json::parse(before, nullptr, false);
  if (!IsForm(form, true)) return kNotOurs;
  const json& own = process["process"];
  RemoveFrom(form["races"], own);
  RemoveFrom(form["processes"], own);
  form["processes"].push_back(own);
  for (const json& race : process["races"]) form["races"].push_back(race);
  // Told once in a run, and never taken back.
  json& shared = form["shared_memory"];
  for (const json& use : process.value("shared_memory", json::array())) {
    if (std::find(shared.begin(), shared.end(), use) == shared.end()) shared.push_back(use);
  }
  Summarise(form, form["races"].size());
  return Replace(descriptor_, 0, before, Text(std::move(form)));
}

const char* RaceJsonFile::AppendLocked(const json& process) {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) return std::strerror(errno);
  // What is after the races is short.
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::string before;
  std::uint64_t start = size;
  std::size_t end = std::string::npos;
  for (std::uint64_t length = 4096; end == std::string::npos && start > 0; length *= 4) {
    start = size - std::min(size, length);
    if (!ReadFrom(descriptor_, start, before)) return std::strerror(errno);
    end = before.find(kEndOfRaces);
    if (end == 0 && start > 0) end = std::string::npos;  // what is before it is to be seen, too
  }
  if (end == std::string::npos || end == 0) return kNotOurs;
  const bool is_first = before[end - 1] == '[';
  before.erase(0, end);
  json rest = json::parse("{" + before.substr(kEndOfRaces.size()), nullptr, false);
  if (!IsForm(rest, false) || !rest.contains("summary") || !rest["summary"].is_object())
    return kNotOurs;
  std::string text;
  for (const json& race : process["races"])
    text += (is_first && text.empty() ? "\n" : ",\n") + Dump(race);
  RemoveFrom(rest["processes"], process["process"]);
  rest["processes"].push_back(process["process"]);
  Summarise(rest, rest["summary"].value("races", std::size_t{0}) + process["races"].size());
  return Replace(descriptor_, start + end, before, text + TextAfterRaces(rest));
}

}  // namespace trapline
