#include "tools/race_render.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace trapline {
namespace {

using nlohmann::json;

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string Hexadecimal(std::uint64_t value) { return fmt::format("{:#x}", value); }

std::string Bytes(std::uint64_t count) {
  return fmt::format("{} byte{}", count, count == 1 ? "" : "s");
}

const char* OperationName(AccessOperation operation) {
  switch (operation) {
    case AccessOperation::kRead:
      return "read";
    case AccessOperation::kWrite:
      return "write";
    case AccessOperation::kAtomic:
      return "atomic";
  }
  return "";
}

std::string ThreadText(const ReportThread& thread) {
  std::string text = fmt::format("thread {}", thread.id);
  if (!thread.name.empty()) text += fmt::format(" '{}'", thread.name);
  if (thread.id == 0) text += " (initial)";
  return text;
}

std::string PlaceInSource(const std::string& file, int line) {
  if (file.empty()) return {};
  return line != 0 ? fmt::format("{}:{}", file, line) : file;
}

void AppendStack(const ResolvedStack& stack, std::string_view indent, std::string& text) {
  if (stack.empty()) {
    text += fmt::format("{}(call stack not known)\n", indent);
    return;
  }
  int number = 0;
  for (const ResolvedFrame& frame : stack) {
    text += fmt::format("{}#{}", indent, number++);
    if (!frame.source.function.empty()) text += " " + frame.source.function;
    const std::string place = PlaceInSource(frame.source.file, frame.source.line);
    if (!place.empty()) text += " " + place;
    if (frame.source.inlined) {
      text += " (inlined)";
    } else if (frame.module.empty()) {
      text += " " + Hexadecimal(frame.address);
    } else if (frame.source.function.empty() && place.empty()) {
      text += fmt::format(" {}+{:#x}", frame.module, frame.offset);
    } else {
      text += fmt::format(" ({}+{:#x})", FileName(frame.module), frame.offset);
    }
    text += '\n';
  }
}

std::string VariableText(const ResolvedLocation& location) {
  const std::string& name = location.expression.empty() ? location.symbol : location.expression;
  return name.empty() ? std::string() : fmt::format("'{}'", name);
}

// For the headline: what it is, in a few words.
std::string ShortLocation(const ResolvedLocation& location) {
  const std::string variable = VariableText(location);
  if (location.kind == "global") {
    if (!variable.empty()) return "global " + variable;
    if (!location.module.empty())
      return fmt::format("global data of {}", FileName(location.module));
  } else if (location.kind == "heap") {
    return fmt::format("a {}heap block of {}", location.freed ? "freed " : "",
                       Bytes(location.size));
  } else if (location.kind == "stack") {
    const std::string owner = location.owner ? ThreadText(location.owner->thread) : "a thread";
    return variable.empty() ? "the stack of " + owner
                            : fmt::format("{} on the stack of {}", variable, owner);
  } else if (location.kind == "tls") {
    const std::string owner = location.owner ? ThreadText(location.owner->thread) : "a thread";
    return fmt::format("thread-local {} of {}", variable.empty() ? "data" : variable, owner);
  } else if (location.kind == "mapping" && !location.path.empty()) {
    return "a mapping of " + location.path;
  } else if (location.kind == "mapping") {
    return "mapped memory";
  }
  return "memory at " + Hexadecimal(location.address);
}

// The paragraph on the address.
void AppendLocation(const ResolvedLocation& location, std::string& text) {
  const std::string address = Hexadecimal(location.address);
  if (location.kind == "heap") {
    text += fmt::format("  {} is {} into a heap block of {} at {:#x}, allocated", address,
                        Bytes(location.offset), Bytes(location.size), location.start);
    if (location.allocated_by) text += " by " + ThreadText(location.allocated_by->thread);
    text += " at\n";
    AppendStack(location.allocation, "    ", text);
    if (!location.freed) return;
    text += "  and freed";
    if (location.freed_by) text += " by " + ThreadText(location.freed_by->thread);
    text += " at\n";
    AppendStack(location.release, "    ", text);
    return;
  }
  std::string what;
  if (!location.symbol.empty()) {
    what = fmt::format("{}+{:#x}", location.symbol, location.offset);
    std::string more;
    const auto add = [&](const std::string& part) {
      if (!part.empty()) more += (more.empty() ? "" : ", ") + part;
    };
    add(location.type);
    if (location.size != 0) add(Bytes(location.size));
    if (!location.function.empty()) add("in " + location.function);
    add(PlaceInSource(location.file, location.line));
    if (!location.module.empty()) add(std::string(FileName(location.module)));
    if (!more.empty()) what += fmt::format(" ({})", more);
  } else if (!location.module.empty()) {
    what = fmt::format("{}+{:#x}", location.module, location.offset);
  } else if (location.kind == "mapping" && !location.path.empty()) {
    what = fmt::format("offset {:#x} of {}", location.offset, location.path);
  } else if (location.kind == "mapping") {
    what = fmt::format("{:#x} bytes into an anonymous mapping", location.offset);
  }
  if (location.kind == "stack" && location.owner)
    what += (what.empty() ? "" : ", ") + ("on the stack of " + ThreadText(location.owner->thread));
  if (location.kind == "tls" && location.owner)
    what += (what.empty() ? "" : ", ") + ("thread-local of " + ThreadText(location.owner->thread));
  if (!what.empty()) text += fmt::format("  {} is {}\n", address, what);
}

void AppendAccess(const ResolvedAccess& resolved, const char* when, std::string& text) {
  const ReportAccess& access = resolved.access;
  text += fmt::format("  {} {}{} of {} at {:#x} by {}\n", when, OperationName(access.operation),
                      access.operation == AccessOperation::kAtomic ? " access" : "",
                      Bytes(access.size), access.address, ThreadText(access.thread));
  AppendStack(resolved.stack, "    ", text);
  for (const ResolvedLock& held : resolved.locks) {
    text += fmt::format("    holding {}", held.lock.kind);
    if (held.lock.address != 0) text += fmt::format(" {:#x}", held.lock.address);
    if (held.acquired.empty()) {
      text += '\n';
      continue;
    }
    text += ", taken at\n";
    AppendStack(held.acquired, "      ", text);
  }
}

json StackJson(const ResolvedStack& stack) {
  json frames = json::array();
  for (const ResolvedFrame& frame : stack) {
    frames.push_back({{"function", frame.source.function},
                      {"file", frame.source.file},
                      {"line", frame.source.line},
                      {"inlined", frame.source.inlined},
                      {"module", frame.module},
                      {"offset", Hexadecimal(frame.offset)},
                      {"address", Hexadecimal(frame.address)}});
  }
  return frames;
}

json ThreadJson(const ResolvedThread& resolved) {
  const ReportThread& thread = resolved.thread;
  json object = {{"id", thread.id}, {"name", thread.name}, {"tid", thread.tid}};
  if (thread.id != 0) {
    object["parent"] = thread.parent;
    object["created"] = StackJson(resolved.created);
  }
  return object;
}

json LocationJson(const ResolvedLocation& location) {
  json object = {{"kind", location.kind},
                 {"address", Hexadecimal(location.address)},
                 {"symbol", location.symbol},
                 {"offset", location.offset}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) object[key] = text;
  };
  add("expression", location.expression);
  add("type", location.type);
  add("function", location.function);
  add("file", location.file);
  if (location.line != 0) object["line"] = location.line;
  add("module", location.module);
  add("path", location.path);
  if (location.size != 0) object["size"] = location.size;
  if (location.owner) object["thread"] = ThreadJson(*location.owner);
  if (location.kind == "heap") {
    object["start"] = Hexadecimal(location.start);
    object["size"] = location.size;
    object["allocation"] = {{"stack", StackJson(location.allocation)}};
    if (location.allocated_by) object["allocation"]["thread"] = ThreadJson(*location.allocated_by);
    object["freed"] = location.freed;
    if (location.freed) {
      object["free"] = {{"stack", StackJson(location.release)}};
      if (location.freed_by) object["free"]["thread"] = ThreadJson(*location.freed_by);
    }
  }
  return object;
}

json AccessJson(const ResolvedAccess& resolved) {
  json locks = json::array();
  for (const ResolvedLock& held : resolved.locks) {
    const std::uint64_t address = held.lock.address;
    locks.push_back({{"address", address != 0 ? json(Hexadecimal(address)) : json(nullptr)},
                     {"kind", held.lock.kind},
                     {"stack", StackJson(held.acquired)}});
  }
  const ReportAccess& access = resolved.access;
  return {{"thread", ThreadJson(resolved.thread)},
          {"op", OperationName(access.operation)},
          {"size", access.size},
          {"address", Hexadecimal(access.address)},
          {"stack", StackJson(resolved.stack)},
          {"locks", std::move(locks)}};
}

}  // namespace

std::string RaceText(const ResolvedRace& race) {
  std::string text =
      fmt::format("trapline: data race ({}) on {}\n", race.kind, ShortLocation(race.location));
  AppendAccess(race.accesses[1], "later  ", text);
  AppendAccess(race.accesses[0], "earlier", text);
  AppendLocation(race.location, text);
  // Each thread once, however many parts it plays.
  std::map<std::uint32_t, const ResolvedThread*> threads;
  const auto add = [&](const ResolvedThread& thread) {
    if (thread.thread.id != 0) threads.emplace(thread.thread.id, &thread);
  };
  for (const ResolvedAccess& access : race.accesses) add(access.thread);
  for (const auto* other :
       {&race.location.owner, &race.location.allocated_by, &race.location.freed_by}) {
    if (*other) add(**other);
  }
  for (const auto& [id, thread] : threads) {
    text += fmt::format("  {} (tid {}) was created by thread {} at\n", ThreadText(thread->thread),
                        thread->thread.tid, thread->thread.parent);
    AppendStack(thread->created, "    ", text);
  }
  return text + '\n';
}

json RaceJson(const ResolvedRace& race) {
  return {{"kind", race.kind},
          {"location", LocationJson(race.location)},
          {"accesses", {AccessJson(race.accesses[0]), AccessJson(race.accesses[1])}},
          {"process", race.process}};
}

}  // namespace trapline
