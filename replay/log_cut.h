// Cutting a trap log into pieces and putting pieces of one recording together again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/log_index.h"
#include "replay/log_metadata.h"
#include "replay/status.h"

namespace trapline {

// Writes to `output` the events of `index` that lie in `part`, with their sequence numbers, all
// call stacks, and a note of what the piece holds. Replaying a piece reports the races inside it:
// what went before is unknown to it.
Status CutLog(const LogIndex& index, const LogPart& part, const std::string& output);

// Writes to `output` what the logs `inputs` hold together. They must be pieces of one recording and
// have no event in common. What no piece holds is missing in the result, which says so.
Status MergeLogs(const std::vector<std::string>& inputs, const std::string& output);

// The sequence number of time `ns` after the start: the last one of the latest checkpoint not after
// it. Nothing if the log has no clock.
std::optional<Sequence> SequenceAt(const LogIndex& index, std::uint64_t ns);

// The parts of a log that `parts` leave out, given the threads it has: empty if they cover all.
std::vector<LogPart> Uncovered(const std::vector<LogPart>& parts,
                               const std::vector<ThreadId>& threads);

}  // namespace trapline
