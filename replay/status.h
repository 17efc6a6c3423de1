// Success, or a message for the user: what happened, to what, and what to do.
#pragma once

#include <string>
#include <utility>

namespace trapline {

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Error(std::string message) {
    Status status;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  std::string message_;  // empty: success
};

}  // namespace trapline
