#!/usr/bin/python3
"""Runs the C and C++ programs of a checkout of DataRaceBench under trapline and compares verdicts, pairs of lines included.

Prints a line for each program, compiler and number of threads, then precision and recall, and last `N passed, N failed,
N skipped`; writes the table as Markdown and JSON. README.md says how a verdict comes about.
"""

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "races"))

import harness  # noqa: E402
import reports  # noqa: E402

COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
POLYBENCH = ["-DPOLYBENCH_NO_FLUSH_CACHE", "-DPOLYBENCH_TIME", "-D_POSIX_C_SOURCE=200112L"]
FOUND, NONE, OTHER = "race", "none", "other pair"


@dataclass
class Program:
    source: Path
    racy: bool
    pairs: set            # of sorted pairs of lines; empty if there is no race
    outside: str = ""     # why no detector of threads' races can judge it
    note: str = ""        # why the verdict is wrong
    why: str = ""         # why the pairs are not the header's
    arguments: list = field(default_factory=list)

    @property
    def number(self):
        return self.source.name[:6]


@dataclass
class Row:
    """One program, built by one compiler, with one number of threads."""

    program: Program
    compiler: str
    threads: int
    found: str = ""       # FOUND, NONE, OTHER, or what went wrong
    verdict: str = ""     # right, wrong, outside, not run
    runs: int = 0
    seconds: float = 0
    lines: set = field(default_factory=set)  # the pairs that were reported
    detail: str = ""

    @property
    def name(self):
        return f"{self.program.source.stem}.{self.compiler}.{self.threads}"


def pairs_of(text):
    """The pairs of lines that a program's header names: `a[i]@64:5:W vs. a[i+1]@64:10:R`, or two sets of accesses."""
    header = "\n".join(re.findall(r"/\*.*?\*/", text, re.S))
    pairs = set()
    for first, one, second, other in re.findall(
            r"@\s*(\d+):\d+(?::([RW]))?\s*,?\s+(?:vs\.?|and)\s[^@\n]*@\s*(\d+):\d+(?::([RW]))?", header):
        pairs.add(tuple(sorted((int(first), int(second)))))
        # Each thread does both: a write races with itself in another thread, too.
        pairs |= {(int(line), int(line)) for line, access in ((first, one), (second, other)) if access == "W"}
    sets = {name: [int(line) for line in re.findall(r"@(\d+):", body)]
            for name, body in re.findall(r"(Write_set|Read_set)\s*=\s*\{([^}]*)\}", header)}
    for write in sets.get("Write_set", []):
        for other in sets["Write_set"] + sets.get("Read_set", []):
            pairs.add(tuple(sorted((write, other))))
    return pairs


def read_programs(directory, notes):
    unused = set(notes)
    for source in sorted([*directory.glob("DRB*.c"), *directory.glob("DRB*.cpp")]):
        racy = source.stem.endswith("-yes")
        program = Program(source, racy, pairs_of(source.read_text(errors="replace")) if racy else set())
        if program.number in notes:
            unused.discard(program.number)
            entry = notes[program.number]
            program.outside, program.note, program.why = (entry.get(key, "") for key in ("outside", "note", "why"))
            program.arguments = entry.get("arguments", [])
            program.pairs |= {tuple(sorted(pair)) for pair in entry.get("pairs", [])}
        if racy and not program.pairs and not program.outside:
            raise ValueError(f"{source.name}: no pair of lines in its header")
        yield program
    if unused:
        raise ValueError("notes about programs that do not exist: " + " ".join(sorted(unused)))


class Suite:
    def __init__(self, options):
        self.options = options
        self.results = harness.Results("dataracebench")

    def binary(self, program, compiler):
        return self.options.build / compiler / program.source.stem

    def build(self, program, compiler):
        """The compiler's complaint, or nothing."""
        target = self.binary(program, compiler)
        if target.exists() and target.stat().st_mtime > program.source.stat().st_mtime:
            return ""
        target.parent.mkdir(parents=True, exist_ok=True)
        directory = program.source.parent
        command = [COMPILERS[compiler][program.source.suffix == ".cpp"], "-g", "-fopenmp", "-w", "-I", str(directory),
                   "-I", str(directory / "utilities")]
        if "polybench" in program.source.read_text(errors="replace"):
            command += [*POLYBENCH, "-I", str(directory / "polybench"), str(directory / "utilities" / "polybench.c")]
        command += [str(program.source), "-o", str(target), "-lm", "-pthread"]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        except FileNotFoundError:
            return f"no {command[0]}"
        return "" if result.returncode == 0 else result.stdout or f"status {result.returncode}"

    def once(self, row, scratch):
        """One run: whether it is known now what is found."""
        program, options = row.program, self.options
        report = Path(scratch, "report.json")
        report.unlink(missing_ok=True)
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": scratch, "OMP_NUM_THREADS": str(row.threads),
               "OMP_WAIT_POLICY": "passive"}
        prefix = [str(options.trapline), "run", f"--policy={options.policy}", f"--json={report}", "--"] if options.trapline else []
        outcome = harness.run([*prefix, str(self.binary(program, row.compiler)), *program.arguments], cwd=scratch, env=env, timeout=options.limit,
                              marker=f"dataracebench-{os.getpid()}-{row.name}", patience=1)
        row.runs += 1
        row.seconds = max(row.seconds, outcome.seconds)
        stderr = outcome.stderr.decode(errors="replace")
        if not options.trapline:
            row.found = outcome.status_text()
            return True
        case = SimpleNamespace(program=SimpleNamespace(source=program.source), strip=None)
        try:  # what was found before the time was up counts
            races = reports.from_json(json.loads(report.read_text()), case) if report.exists() or not outcome.timed_out else []
        except (OSError, ValueError, KeyError, TypeError) as error:
            row.found, row.detail = f"no report, {outcome.status_text()}", f"{error}\n{stderr[-3000:]}"
            return True
        row.lines |= {race.lines for race in races}
        if row.lines & program.pairs:
            row.found = FOUND
        elif outcome.timed_out and not row.lines:
            row.found, row.detail = f"more than {options.limit:.0f} s", stderr[-3000:]
            return True
        elif row.lines:
            row.found = OTHER if program.racy else FOUND
            row.detail = row.detail or stderr[-6000:]
        else:
            row.found = NONE
        return row.found == FOUND

    def test(self, row):
        program = row.program
        if program.outside:
            row.verdict = "outside"
            return row
        complaint = self.build(program, row.compiler)
        if complaint:
            row.verdict, row.found, row.detail = "not run", "does not compile", complaint
            return row
        with tempfile.TemporaryDirectory(prefix="trapline-dataracebench-") as scratch:
            for _ in range(self.options.runs):
                if self.once(row, scratch):
                    break
        if not self.options.trapline:
            row.verdict = "not run"
            return row
        row.verdict = "right" if row.found == (FOUND if program.racy else NONE) else "wrong"
        return row

    def tell(self, row):
        program = row.program
        expected = FOUND if program.racy else NONE
        note = f"expected {expected}, found {row.found or '-'} ({row.runs} runs, {row.seconds:.1f} s)"
        if row.verdict == "wrong" and program.racy:
            note += f"; header {sorted(program.pairs)}, reported {sorted(row.lines)}"
        elif row.verdict == "wrong":
            note += f"; reported {sorted(row.lines)}"
        if row.verdict == "outside":
            self.results.skips(row.name, f"outside: {program.outside}")
        elif row.verdict == "not run" and self.options.trapline:
            self.results.skips(row.name, f"not run: {row.found}")
        elif row.verdict == "wrong" and not program.note:
            self.results.fails(row.name, note, row.detail if self.options.verbose else "")
        elif row.verdict == "wrong":
            self.results.skips(row.name, f"{note}; {program.note}")
        else:
            self.results.passes(row.name, note)


def ratio(part, whole):
    return f"{100 * part / whole:.1f}%" if whole else "-"


def counts_of(rows):
    judged = [row for row in rows if row.verdict in ("right", "wrong")]
    hits = sum(row.program.racy and row.verdict == "right" for row in judged)
    misses = sum(row.program.racy and row.verdict == "wrong" for row in judged)
    # A report of another pair than the header's is a miss and counts as a false alarm too.
    alarms = sum(row.found == OTHER or (row.found == FOUND and not row.program.racy) for row in judged)
    clean = sum(not row.program.racy and row.verdict == "right" for row in judged)
    return {"judged": len(judged), "races found": hits, "races missed": misses, "clean": clean, "false alarms": alarms,
            "precision": ratio(hits, hits + alarms), "recall": ratio(hits, hits + misses),
            "right": ratio(hits + clean, len(judged)),
            "outside": sum(row.verdict == "outside" for row in rows), "not run": sum(row.verdict == "not run" for row in rows)}


def write_tables(rows, options):
    """table.md and table.json; returns the summary's entries."""
    summary = []
    for compiler in options.compilers + ["all"]:
        for threads in options.threads if compiler != "all" else [0]:
            chosen = [row for row in rows if compiler in ("all", row.compiler) and threads in (0, row.threads)]
            summary.append({"compiler": compiler, "threads": str(threads or "all"), **counts_of(chosen)})
    keys = list(summary[0])
    lines = ["# Verdicts on DataRaceBench", "", f"Policy `{options.policy}`, up to {options.runs} runs, {options.limit:.0f} s each.", "",
             "| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(str(entry[key]) for key in keys) + " |" for entry in summary]
    lines += ["", "| program | expected | found | right? | notes |", "|---|---|---|---|---|"]
    for row in rows:
        program = row.program
        notes = [text for text in (program.outside, program.why, program.note if row.verdict == "wrong" else "") if text]
        lines.append(f"| {row.name} | {FOUND if program.racy else NONE} | {row.found or '-'} | {row.verdict} | {'; '.join(notes)} |")
    (options.build / "table.md").write_text("\n".join(lines) + "\n")
    (options.build / "table.json").write_text(json.dumps({
        "policy": options.policy, "runs": options.runs, "limit_seconds": options.limit, "summary": summary,
        "programs": [{"program": row.program.source.name, "compiler": row.compiler, "threads": row.threads, "racy": row.program.racy,
                      "pairs": sorted(row.program.pairs), "found": row.found, "reported": sorted(row.lines), "verdict": row.verdict,
                      "runs": row.runs, "seconds": round(row.seconds, 2), "outside": row.program.outside, "note": row.program.note}
                     for row in rows]}, indent=1) + "\n")
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", type=Path, help="a checkout of DataRaceBench")
    parser.add_argument("--trapline", type=Path, help="the trapline command; without it only the native runs are made")
    parser.add_argument("--policy", default="adaptive", help="trapline's policy (default: adaptive)")
    parser.add_argument("--compilers", default="gcc,clang", type=lambda text: text.split(","), help="default: gcc,clang")
    parser.add_argument("--threads", default="2,4", type=lambda text: [int(word) for word in text.split(",")], help="default: 2,4")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, until a race is found (default: 5)")
    parser.add_argument("--filter", default="*", help="only programs that match one of these patterns, as 'DRB01*,DRB1*-no'")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each run (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="programs to run at once (default: 2)")
    parser.add_argument("--build", type=Path, default=harness.ROOT / "build" / "dataracebench", help="where programs and tables go")
    parser.add_argument("--verbose", action="store_true", help="show the end of standard error of wrong runs")
    options = parser.parse_args()
    if options.trapline:
        if not os.access(options.trapline, os.X_OK):
            sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
        options.trapline = options.trapline.resolve()
    if set(options.compilers) - COMPILERS.keys():
        sys.exit("compilers: " + ", ".join(COMPILERS))
    directory = options.suite.resolve() / "micro-benchmarks"
    if not directory.is_dir():
        sys.exit(f"no {directory}: not a checkout of DataRaceBench")
    options.build = options.build.resolve()
    options.build.mkdir(parents=True, exist_ok=True)
    with (HERE / "notes.toml").open("rb") as file:
        notes = tomllib.load(file)
    patterns = options.filter.split(",")
    chosen = [program for program in read_programs(directory, notes)
              if any(fnmatch.fnmatch(program.source.stem, pattern) for pattern in patterns)]
    if not chosen:
        sys.exit("no program matches")
    suite = Suite(options)
    for compiler in options.compilers:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda program: program.outside or suite.build(program, compiler), chosen))
    rows = []
    work = [Row(program, compiler, threads) for compiler in options.compilers for program in chosen for threads in options.threads]
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(suite.test, work):
            suite.tell(row)
            rows.append(row)
    if options.trapline:
        for entry in write_tables(rows, options):
            print(", ".join(f"{key} {value}" for key, value in entry.items()))
        print(f"table: {options.build / 'table.md'}")
    return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
