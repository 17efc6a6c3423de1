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

bool ReadAll(int descriptor, std::string& text) {
  text.clear();
  char buffer[65536];
  for (;;) {
    const ssize_t size = pread(descriptor, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

// One write where the kernel takes it whole, so that there is hardly a moment at which the file is
// not one form or the other.
bool WriteAll(int descriptor, std::string_view text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t size =
        pwrite(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<std::size_t>(size);
  }
  return ftruncate(descriptor, static_cast<off_t>(text.size())) == 0;
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
std::string Text(const json& form) {
  return form.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

bool IsForm(const json& form) {
  return form.is_object() && form.value("version", json()) == 1 && form.contains("races") &&
         form["races"].is_array() && form.contains("processes") && form["processes"].is_array();
}

void RemoveFrom(json& list, const json& process) {
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i].is_object() && list[i].value("process", json()) == process["process"] &&
        list[i].value("instance", json()) == process["instance"]) {
      list.erase(i);
    }
  }
}

void Summarise(json& form) {
  std::uint64_t occurrences = 0, suppressed = 0;
  for (const json& process : form["processes"]) {
    if (!process.is_object()) continue;
    occurrences += process.value("occurrences", std::uint64_t{0});
    suppressed += process.value("suppressed", std::uint64_t{0});
  }
  form["summary"] = {{"races", form["races"].size()},
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
  if (!WriteAll(descriptor, Text(EmptyForm(program)))) {
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
  const std::unique_lock lock(mutex_);
  const auto failed = [&](const char* why) {
    return Status::Error(fmt::format("cannot add the races of process {} to '{}': {}",
                                     process["process"]["process"].dump(), path_, why));
  };
  const FileLock file_lock(descriptor_);
  if (file_lock.error() == ETIMEDOUT)
    return failed("another process has kept it locked for half a minute");
  if (file_lock.error() != 0) return failed(std::strerror(file_lock.error()));
  std::string before;
  if (!ReadAll(descriptor_, before)) return failed(std::strerror(errno));
  json form = json::parse(before, nullptr, false);
  if (!IsForm(form)) return failed("it is not, or no longer, what Trapline wrote there");
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
  Summarise(form);
  if (!WriteAll(descriptor_, Text(form))) {
    const int error = errno;
    // Such as a full disk: what was there before took no more room than it has.
    static_cast<void>(WriteAll(descriptor_, before));
    return failed(std::strerror(error));
  }
  return {};
}

}  // namespace trapline
