// Text of JSON values made of what the program said: paths and arguments may be any bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trapline {

// On one line, or indented. Bytes that are no UTF-8 become U+FFFD. `ascii`: everything else is
// escaped.
inline std::string JsonText(const nlohmann::json& value, int indent = -1, bool ascii = false) {
  return value.dump(indent, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

}  // namespace trapline
