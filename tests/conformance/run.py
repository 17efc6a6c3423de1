#!/usr/bin/python3
"""Runs the race tests of valgrind (helgrind, drd), GCC and LLVM, unchanged, natively and under trapline, and compares verdicts.

fetch.sh brings the sources into the build folder. Prints a line for each test, percentages, and last
`N passed, N failed, N skipped`; writes the table as Markdown and JSON. README.md says what expected verdicts come from.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402
from suites import ANNOTATIONS_C, CONFIG_H, NONE, OUTSIDE, RACE, read_tests  # noqa: E402


@dataclass
class Row:
    """One line of the table."""

    test: object
    found: str = ""     # race, none, or what went wrong
    verdict: str = ""   # right, wrong, outside, not run
    native: str = ""    # how it ended natively
    seconds: float = 0
    races: int = 0
    detail: str = ""


class Suite:
    def __init__(self, options):
        self.options = options
        self.results = harness.Results("conformance")
        self.binaries = options.build / ("bin-tsan" if options.oracle == "tsan" else "bin")
        self.binaries.mkdir(parents=True, exist_ok=True)
        self.locks = {}
        self.lock = threading.Lock()

    def build(self, test):
        """The compiler's complaint, or nothing."""
        own = self.options.oracle == "tsan"  # which brings its own runtime
        sanitize = ["-fsanitize=thread", "-Wno-tsan"] if own else []
        runtime, name, link = ((), "", ()) if own or not test.runtime else test.runtime
        steps = [(runtime, name)] if runtime else []
        steps += [([*command, *link, *sanitize], name) for command, name in [*test.shared, (test.build, test.binary)]]
        for command, name in steps:
            with self.lock:
                lock = self.locks.setdefault(name, threading.Lock())
            with lock:
                target = self.binaries / name
                if target.exists():
                    continue
                command = [word.format(binaries=self.binaries) for word in command]
                try:
                    result = subprocess.run([*command, "-o", str(target)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                            timeout=900, check=False)
                except FileNotFoundError:
                    return f"no {command[0]}"
                if result.returncode != 0:
                    return result.stdout or f"status {result.returncode}"
        return ""

    def run(self, test, prefix, limit, scratch):
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": scratch, "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
        arguments = [str(self.binaries / "dlopen_lib.so") if word == "./dlopen_lib.so" else word for word in test.arguments]
        return harness.run([*prefix, str(self.binaries / test.binary), *arguments], cwd=scratch, env=env, timeout=limit,
                           marker=f"conformance-{os.getpid()}-{test.full_name}", patience=1)

    def by_trapline(self, row, scratch):
        report = Path(scratch, "report.json")
        command = [str(self.options.trapline), "run", f"--policy={self.options.policy}", f"--json={report}", "--"]
        outcome = self.run(row.test, command, self.options.limit, scratch)
        row.seconds = outcome.seconds
        stderr = outcome.stderr.decode(errors="replace")
        row.detail = stderr[-6000:]
        races = None
        if report.exists():
            try:
                races = len(json.loads(report.read_text())["races"])
            except (ValueError, KeyError, TypeError) as error:
                row.detail = f"unusable JSON report: {error}\n" + row.detail
        if outcome.timed_out and "trapline: data race" in stderr:
            row.found = RACE  # reported before its time was up
        elif outcome.timed_out:
            row.found = f"more than {self.options.limit:.0f} s"
        elif races is None:
            row.found = f"no report, {outcome.status_text()}"
        else:
            row.races = races
            row.found = RACE if races else NONE
            if outcome.status_text() != row.native:
                row.detail = f"under trapline {outcome.status_text()}, natively {row.native}\n" + row.detail

    def by_oracle(self, row, scratch):
        test = row.test
        prefix = {
            "tsan": ["setarch", "-R"],
            "helgrind": ["valgrind", "--tool=helgrind", "--free-is-write=yes"],
            "drd": ["valgrind", "--tool=drd", "--check-stack-var=yes", "--free-is-write=yes"],
        }[self.options.oracle]
        outcome = self.run(test, prefix, self.options.limit, scratch)
        text = outcome.stderr.decode(errors="replace")
        row.detail = text[:3000]
        row.seconds = outcome.seconds
        signs = ("ThreadSanitizer: data race", "ThreadSanitizer: heap-use-after-free", "Possible data race", "Conflicting load",
                 "Conflicting store")
        row.found = RACE if any(sign in text for sign in signs) else outcome.status_text() if outcome.timed_out else NONE

    def test(self, row):
        test = row.test
        if test.expected == OUTSIDE:
            row.verdict = "outside"
            return row
        complaint = self.build(test)
        if complaint:
            row.verdict, row.found, row.detail = "not run", "does not compile", complaint
            return row
        with tempfile.TemporaryDirectory(prefix="trapline-conformance-") as scratch:
            if self.options.oracle:
                self.by_oracle(row, scratch)
            else:
                native = self.run(test, [], self.options.limit, scratch)
                row.native = native.status_text()
                if native.timed_out:
                    row.verdict, row.found = "not run", "natively " + native.status_text()
                    return row
                if not self.options.trapline:
                    row.verdict, row.seconds = "not run", native.seconds
                    return row
                self.by_trapline(row, scratch)
        row.verdict = "right" if row.found == test.expected else "wrong"
        return row

    def tell(self, row):
        test = row.test
        note = f"expected {test.expected}, found {row.found or '-'} ({row.seconds:.1f} s)"
        if row.verdict == "outside":
            self.results.skips(test.full_name, f"outside: {test.reason}")
        elif row.verdict == "not run" and (self.options.trapline or self.options.oracle or row.found):
            self.results.skips(test.full_name, f"not run: {row.found}" + (f"; {test.note}" if test.note else ""))
            if self.options.verbose:
                print(row.detail)
        elif row.verdict == "wrong" and not (test.note and not self.options.oracle):
            self.results.fails(test.full_name, note, row.detail if self.options.verbose else "")
        elif row.verdict == "wrong":
            self.results.skips(test.full_name, f"{note}; {test.note}")
        else:
            self.results.passes(test.full_name, note + ("; its note is out of date" if test.note and row.verdict == "right" else ""))


def percent(part, whole):
    return f"{100 * part / whole:.1f}%" if whole else "-"


def write_tables(rows, options):
    """table.md and table.json; returns the summary's lines."""
    summary = []
    for suite in ("helgrind", "drd", "gcc", "llvm", "all"):
        of_suite = [row for row in rows if suite in ("all", row.test.suite)]
        judged = [row for row in of_suite if row.verdict in ("right", "wrong")]
        right = sum(row.verdict == "right" for row in judged)
        missed = sum(row.test.expected == RACE for row in judged if row.verdict == "wrong")
        alarms = sum(row.test.expected == NONE and row.found == RACE for row in judged)
        others = len(judged) - right - missed - alarms
        summary.append({"suite": suite, "tests": len(judged), "right": right, "percent": percent(right, len(judged)),
                        "races not found": missed, "false alarms": alarms, "clean but not finished": others,
                        "outside": sum(row.verdict == "outside" for row in of_suite),
                        "not run": sum(row.verdict == "not run" for row in of_suite)})
    keys = list(summary[0])
    lines = ["# Verdicts on the race tests of valgrind, GCC and LLVM", "",
             f"Policy `{options.policy}`, time limit {options.limit:.0f} s each.", "",
             "| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(str(entry[key]) for key in keys) + " |" for entry in summary]
    lines += ["", "| test | expected | found | right? | notes |", "|---|---|---|---|---|"]
    for row in rows:
        test = row.test
        notes = [test.reason] if test.reason else []
        if row.verdict == "wrong":
            notes.append(test.note or "not explained yet")
        if test.also:
            notes.append("the same run: " + ", ".join(test.also))
        found = f"{row.found} ({row.races})" if row.found == RACE and row.races else row.found
        lines.append(f"| {test.full_name} | {test.expected} | {found or '-'} | {row.verdict} | {'; '.join(notes)} |")
    options.build.mkdir(parents=True, exist_ok=True)
    (options.build / "table.md").write_text("\n".join(lines) + "\n")
    (options.build / "table.json").write_text(json.dumps({
        "policy": options.policy, "limit_seconds": options.limit, "summary": summary,
        "tests": [{"test": row.test.full_name, "also": row.test.also, "expected": row.test.expected, "found": row.found,
                   "verdict": row.verdict, "races": row.races, "seconds": round(row.seconds, 2), "reason": row.test.reason,
                   "note": row.test.note} for row in rows]}, indent=1) + "\n")
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, help="the trapline command; without it only the native runs are made")
    parser.add_argument("--policy", default="adaptive", help="trapline's policy (default: adaptive)")
    parser.add_argument("--filter", default="*", help="only tests that match one of these patterns, as 'gcc/*,drd/fp_race'")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each run (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="tests to run at once (default: 2)")
    parser.add_argument("--build", type=Path, default=harness.ROOT / "build" / "conformance",
                        help="where sources, programs and tables go")
    parser.add_argument("--verbose", action="store_true", help="show the end of standard error of wrong runs")
    parser.add_argument("--oracle", choices=["tsan", "helgrind", "drd"], help="ask another detector instead, to check expectations")
    options = parser.parse_args()
    if options.trapline:
        if not os.access(options.trapline, os.X_OK):
            sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
        options.trapline = options.trapline.resolve()
    options.build = options.build.resolve()
    sources = options.build / "sources"
    if subprocess.run([str(HERE / "fetch.sh"), str(sources)], timeout=1800, check=False).returncode != 0:
        sys.exit(1)
    (sources / "valgrind" / "config.h").write_text(CONFIG_H)
    (sources / "annotations.c").write_text(ANNOTATIONS_C)
    with (HERE / "notes.toml").open("rb") as file:
        notes = tomllib.load(file)
    patterns = options.filter.split(",")
    tests = [test for test in read_tests(sources, notes) if any(fnmatch.fnmatch(test.full_name, pattern) for pattern in patterns)]
    if not tests:
        sys.exit("no test matches")
    suite = Suite(options)
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(suite.test, [Row(test) for test in tests]):
            suite.tell(row)
            rows.append(row)
    if options.trapline:
        for entry in write_tables(rows, options):
            print(", ".join(f"{key} {value}" for key, value in entry.items()))
        print(f"table: {options.build / 'table.md'}")
    disk = subprocess.run(["du", "-sh", str(options.build)], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    print("disk use: " + disk.stdout.split("\t")[0])
    return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
