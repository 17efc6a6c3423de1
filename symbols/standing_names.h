// Names of macros and types that stand for something, if only by way of others.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace trapline {

// Of `definitions`, which give names the words that they are defined by: those names of which a
// word is_such(word), or one that is among the result. Takes time in proportion to all words.
template <class Definitions, class IsSuch>
std::set<typename Definitions::key_type, std::less<>> NamesStandingFor(
    const Definitions& definitions, IsSuch&& is_such) {
  using Definition = typename Definitions::const_iterator;
  std::set<typename Definitions::key_type, std::less<>> names;
  std::vector<Definition> found;  // whose users have not been looked at
  std::map<typename Definitions::key_type, std::vector<Definition>, std::less<>> users;
  const auto add = [&](Definition definition) {
    if (names.insert(definition->first).second) found.push_back(definition);
  };
  for (Definition definition = definitions.begin(); definition != definitions.end(); ++definition) {
    bool is = false;
    for (const auto& word : definition->second) {
      is = is || is_such(word);
      if (const auto used = definitions.find(word); used != definitions.end())
        users[used->first].push_back(definition);
    }
    if (is) add(definition);
  }
  while (!found.empty()) {
    const Definition definition = found.back();
    found.pop_back();
    if (const auto those = users.find(definition->first); those != users.end()) {
      for (const Definition user : those->second) add(user);
    }
  }
  return names;
}

}  // namespace trapline
