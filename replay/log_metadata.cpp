#include "replay/log_metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trapline {
namespace {

using nlohmann::json;

void Set(json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

void Get(const json& object, const char* key, std::string& value) {
  if (const auto at = object.find(key); at != object.end()) at->get_to(value);
}

json ToJson(const LogModule& module) {
  return {{"path", module.path},
          {"build_id", module.build_id},
          {"begin", module.begin},
          {"end", module.end},
          {"bias", module.bias}};
}

json ToJson(const LogPart& part) {
  json object = {{"first", part.first}, {"last", part.last}};
  if (!part.all_threads) object["threads"] = part.threads;
  return object;
}

LogPart PartFrom(const json& object) {
  LogPart part;
  object.at("first").get_to(part.first);
  object.at("last").get_to(part.last);
  if (const auto threads = object.find("threads"); threads != object.end()) {
    part.all_threads = false;
    threads->get_to(part.threads);
  }
  return part;
}

}  // namespace

json LogMetadata::ToJson() const {
  json object = json::object();
  Set(object, "program", program);
  if (!arguments.empty()) object["arguments"] = arguments;
  Set(object, "host_kind", host_kind);
  Set(object, "policy", policy);
  Set(object, "clock", clock);
  Set(object, "filter", filter);
  Set(object, "started", started);
  for (const LogModule& module : modules) object["modules"].push_back(trapline::ToJson(module));
  for (const LogPart& part : parts) object["parts"].push_back(trapline::ToJson(part));
  if (!plain.empty()) object["plain"] = plain;
  if (!threads.empty()) object["threads"] = threads;
  return object;
}

Status LogMetadata::Add(std::string_view text) {
  try {
    const json object = json::parse(text);
    if (!object.is_object()) return Status::Error("the metadata is no JSON object");
    LogMetadata next = *this;
    Get(object, "program", next.program);
    Get(object, "host_kind", next.host_kind);
    Get(object, "policy", next.policy);
    Get(object, "clock", next.clock);
    Get(object, "filter", next.filter);
    Get(object, "started", next.started);
    if (const auto at = object.find("arguments"); at != object.end()) at->get_to(next.arguments);
    for (const json& module : object.value("modules", json::array())) {
      next.modules.push_back({module.at("path"), module.value("build_id", ""), module.at("begin"),
                              module.at("end"), module.value("bias", std::uint64_t{0})});
    }
    for (const json& part : object.value("parts", json::array())) {
      next.parts.push_back(PartFrom(part));
    }
    if (const auto at = object.find("plain"); at != object.end()) at->get_to(next.plain);
    if (const auto at = object.find("threads"); at != object.end()) at->get_to(next.threads);
    *this = std::move(next);
    return {};
  } catch (const json::exception& error) {
    return Status::Error(fmt::format("the metadata cannot be understood ({})", error.what()));
  }
}

}  // namespace trapline
