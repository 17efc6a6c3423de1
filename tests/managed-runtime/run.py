#!/usr/bin/python3
"""Runs programs on the managed runtime under trapline with each of LARD's extensions left out, and compares verdicts.

What each program's races are stands in workloads.cpp. Each case asks for what the paper (section 5.2) says of the extension:
which of false and missed races its absence must bring, and which it must not. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402

SOURCES = ["runtime.cpp", "workloads.cpp"]
COLLECTORS = ["mark-sweep", "semispace"]
VARIANTS = ["lard", "allmem", "allsync", "noclear", "nocopy", "noidentity", "naive"]
NEVER_FALSE = {"lard", "allsync", "nocopy"}
NEVER_MISSED = {"lard", "noclear"}
# (extension left out, collector or any) -> programs that must have at least one false, one missed race.
MUST_BE_FALSE = {("allmem", ""): ["bank", "counter", "reuse", "hop", "green", "list"], ("noclear", ""): ["reuse"],
                 ("noidentity", ""): ["hop"]}
MUST_BE_MISSED = {("allsync", ""): ["counter", "green", "list"], ("nocopy", "semispace"): ["counter", "list"],
                  ("noidentity", ""): ["green"], ("naive", ""): ["counter", "green", "list"]}
# Where there are hundreds of false races, which all are printed, fewer programs do.
FEWER = {"allmem": ["counter", "hop"], "noidentity": ["hop", "green"]}
LIMIT = 120  # seconds for one run


@dataclass
class Workload:
    races: set = field(default_factory=set)  # pairs of lines, in order
    lines: range = range(0)  # of its source


def read_workloads():
    """The programs by name, in the order of the source."""
    text = (HERE / "workloads.cpp").read_text().splitlines()
    tags = {match[1]: number for number, line in enumerate(text, 1) if (match := re.search(r"// \[([\w-]+)\]$", line))}
    workloads = {}
    current = None
    for number, line in enumerate(text, 1):
        if match := re.match(r"// WORKLOAD (\w+):", line):
            current = workloads[match[1]] = Workload()
        elif current and (match := re.match(r"// RACE (\S+) (\S+)$", line)):
            current.races.add(tuple(sorted((tags[match[1]], tags[match[2]]))))
        elif current and line.startswith("void "):
            first = number
        elif current and line == "}":
            current.lines = range(first, number)
            current = None
    return workloads


@dataclass
class Verdict:
    right: int = 0  # occurrences of the races that are there
    right_pairs: set = field(default_factory=set)
    false: int = 0
    false_pairs: int = 0
    missed_pairs: set = field(default_factory=set)


class Suite:
    def __init__(self, options):
        self.options = options
        self.results = harness.Results("managed-runtime")
        self.workloads = read_workloads()
        self.scratch = tempfile.TemporaryDirectory(prefix="trapline-managed-")
        self.binary = harness.ROOT / "build" / "managed-runtime" / "workloads"

    def build(self):
        self.binary.parent.mkdir(parents=True, exist_ok=True)
        command = ["g++", "-std=c++20", "-g", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread", "-I",
                   str(harness.ROOT / "guest-agent" / "include"), *[str(HERE / source) for source in SOURCES], "-o", str(self.binary)]
        inputs = [*HERE.glob("*.cpp"), *HERE.glob("*.h"), harness.ROOT / "guest-agent/include/trapline/client.h"]
        if self.binary.exists() and self.binary.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
            return ""
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        return "" if result.returncode == 0 else result.stdout or f"status {result.returncode}"

    def line(self, stack):
        """Of the innermost frame in a program, 0 if there is none."""
        for frame in stack:
            if os.path.basename(frame.get("file") or "") == "workloads.cpp":
                return int(frame["line"])
        return 0

    def run(self, collector, variant, names):
        """(verdict, what went wrong otherwise, seconds) of one run of the programs."""
        arguments = [str(self.binary), collector, variant, *names]
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        report = Path(self.scratch.name, "report.json")
        report.unlink(missing_ok=True)
        outcome = harness.run([str(self.options.trapline), "run", f"--policy={self.options.policy}", f"--json={report}", "--", *arguments],
                              cwd=self.scratch.name, env=environment, timeout=LIMIT * self.options.patience, marker=f"managed-{os.getpid()}")
        output = outcome.stderr.decode(errors="replace")[-3000:]
        if outcome.timed_out or outcome.status != 0 or not outcome.stdout.endswith(b"done\n"):
            return Verdict(), f"{outcome.status_text()}, output {outcome.stdout!r}\n{output}", outcome.seconds
        expected = set().union(*(self.workloads[name].races for name in names))
        verdict = Verdict()
        for race in json.loads(report.read_text())["races"]:
            pair = tuple(sorted(self.line(access["stack"]) for access in race["accesses"]))
            if pair in expected:
                verdict.right += race["occurrences"]
                verdict.right_pairs.add(pair)
            else:
                verdict.false += race["occurrences"]
                verdict.false_pairs += 1
        verdict.missed_pairs = expected - verdict.right_pairs
        if self.options.verbose:
            print(output)
        return verdict, "", outcome.seconds

    def judge(self, collector, variant, names, verdict):
        problems = []
        if variant in NEVER_FALSE and verdict.false:
            problems.append(f"{verdict.false_pairs} false races")
        if variant in NEVER_MISSED and verdict.missed_pairs:
            problems.append(f"missed: lines {sorted(verdict.missed_pairs)}")
        for (which, where), programs in MUST_BE_FALSE.items():
            if which == variant and where in ("", collector) and set(programs) & set(names) and not verdict.false:
                problems.append("no false race")
        for (which, where), programs in MUST_BE_MISSED.items():
            if which != variant or where not in ("", collector):
                continue
            for name in set(programs) & set(names):
                if not verdict.missed_pairs & self.workloads[name].races:
                    problems.append(f"missed no race of {name}")
        if variant == "nocopy" and collector == "mark-sweep" and verdict.missed_pairs:
            problems.append("missed a race though nothing moves")
        return problems

    def test(self, collector, variant, names):
        name = f"{collector}.{variant}" + (f".{names[0]}" if len(names) == 1 else "")
        for attempt in range(self.options.attempts):
            if attempt > 0:
                print(f"{name} is wrong, tried once more:\n    " + "\n    ".join(problems), flush=True)
            verdict, wrong, seconds = self.run(collector, variant, names)
            problems = [wrong] if wrong else self.judge(collector, variant, names, verdict)
            if not problems:
                break
        note = (f"({seconds:.1f} s) {len(verdict.right_pairs)} right, {verdict.false_pairs} false, "
                f"{len(verdict.missed_pairs)} missed")
        if problems:
            self.results.fails(name, note, "\n".join(problems))
        else:
            self.results.passes(name, note)
        return verdict

    def table(self):
        """As the paper's Table 3: occurrences and, in brackets, pairs of places."""
        rows = []
        for name in self.workloads:
            for collector in COLLECTORS:
                cells = [name, "MS" if collector == "mark-sweep" else "SS"]
                for variant in VARIANTS:
                    verdict = self.test(collector, variant, [name])
                    false = f"{verdict.false} ({verdict.false_pairs})"
                    missed = str(len(verdict.missed_pairs))
                    if variant == "lard":
                        cells.append(f"{verdict.right} ({len(verdict.right_pairs)})")
                    elif variant in NEVER_MISSED:
                        cells.append(false)
                    elif variant in NEVER_FALSE:
                        cells.append(missed)
                    else:
                        cells += [false, missed]
                rows.append(cells)
        header = ["program", "GC", "LARD", "AllMem false", "AllSync missed", "NoClear false", "NoCopy missed", "NoIdentity false",
                  "NoIdentity missed", "Naive false", "Naive missed"]
        print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
        for cells in rows:
            print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE)
    parser.add_argument("--policy", default="exact", help="under others hot code may go unseen")
    parser.add_argument("--attempts", type=int, default=1,
                        help="a wrong verdict counts if it comes this many times in a row; the earlier ones are printed")
    parser.add_argument("--patience", type=float, default=1, help="factor on the time limits")
    parser.add_argument("--build-only", action="store_true", help="build and run nothing")
    parser.add_argument("--table", action="store_true", help="each program by itself, and the table in Markdown")
    parser.add_argument("--filter", default="", help="only cases whose COLLECTOR.VARIANT begins with this")
    parser.add_argument("--workload", action="append", help="only this program")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.trapline = options.trapline.resolve()
    suite = Suite(options)
    complaint = suite.build()
    if complaint:
        suite.results.fails("build", "", complaint)
    elif options.build_only:
        suite.results.passes("build")
    elif options.table:
        suite.table()
    else:
        names = options.workload or list(suite.workloads)
        for collector in COLLECTORS:
            for variant in VARIANTS:
                if f"{collector}.{variant}".startswith(options.filter):
                    suite.test(collector, variant, options.workload or FEWER.get(variant, names))
    return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
