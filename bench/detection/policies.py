#!/usr/bin/python3
"""What each policy finds and what it costs, side by side: races of tests/races and tests/conformance, time of compressors.

A race counts as found if one run reports it. The programs of tests/conformance are fetched (its README) and may be left out;
the compressors are the distribution's, with two threads, natively and under each policy by turns.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "programs"))
from catalogue import write_text  # noqa: E402
SHOWN = 8  # names of cases
POLICIES = ("exact", "adaptive", "write-shared", "shared")
# name, arguments, MiB of text
COMPRESSORS = [("pigz", ["-p2", "-c"], 3), ("xz", ["-T2", "-0", "-c", "--block-size=256KiB"], 1), ("pbzip2", ["-p2", "-k", "-c", "-1"], 1)]
LINE = re.compile(r"\[ *[\d.]+s\] (PASS|FAIL|SKIP) races/(\S+)(.*)")


def run_suite(suite, options, policy, *arguments):
    """Its standard output; a suite fails where a verdict is wrong, which is what is counted here."""
    command = [ROOT / "tests" / suite / "run.py", "--trapline", options.trapline, "--policy", policy, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=7200, check=False)
    if not re.search(r"^\d+ passed, \d+ failed", done.stdout, re.MULTILINE):
        sys.exit(f"{suite} did not end:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def judge_races(options, policy):
    """{case with a race: whether it was found}, the clean ones with a false alarm."""
    found, alarms, case = {}, [], None
    arguments = [f"--filter={options.filter}"] if options.filter else []
    for line in run_suite("races", options, policy, "--jobs=2", *arguments).splitlines():
        match = LINE.match(line)
        if match:
            verdict, case, note = match.groups()
            if "_race." in case and verdict != "SKIP":
                found[case] = verdict == "PASS" and "found in 0 of" not in note
        elif "false alarm:" in line and case is not None and "_race." not in case:
            alarms.append(case)
            case = None  # once for each
    return found, alarms


def judge_conformance(options, policy):
    """{test with a race: whether it was found}, the others with a false alarm."""
    run_suite("conformance", options, policy)
    table = json.loads((ROOT / "build" / "conformance" / "table.json").read_text(encoding="utf-8"))["tests"]
    judged = [test for test in table if test["verdict"] in ("right", "wrong")]
    found = {test["test"]: test["found"] == "race" for test in judged if test["expected"] == "race"}
    return found, [test["test"] for test in judged if test["expected"] == "none" and test["found"] == "race"]


def time_of(command, text):
    started = time.perf_counter()
    with text.open("rb") as file:
        done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - started


def measure(options, scratch):
    """{compressor: {policy or None: seconds}}"""
    write_text(scratch, 0.25)
    text = Path(scratch, "text").read_bytes()
    times = {}
    for name, arguments, size in COMPRESSORS:
        path = Path(scratch, f"text-{size}")
        path.write_bytes(text[: size << 20])
        work = [f"/usr/bin/{name}", *arguments]
        if not os.access(work[0], os.X_OK):
            print(f"{name}: not installed, left out", flush=True)
            continue
        if name == "pbzip2":
            work.append(str(path))
        taken = {}
        for _ in range(options.repeat):
            for policy in (None, *options.policies):
                monitor = [options.trapline, "run", f"--policy={policy}", "--"] if policy else []
                taken.setdefault(policy, []).append(time_of([*monitor, *work], path))
        times[name] = {policy: statistics.median(seconds) for policy, seconds in taken.items()}
        print(f"{name}: measured", flush=True)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, default=ROOT / "build" / "bin" / "trapline")
    parser.add_argument("--policies", default=",".join(POLICIES), type=lambda names: names.split(","))
    parser.add_argument("--filter", help="of tests/races")
    parser.add_argument("--no-conformance", action="store_true", help="leave out what has to be fetched")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each compressor (default: 3)")
    options = parser.parse_args()
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
    options.trapline = options.trapline.resolve()

    with tempfile.TemporaryDirectory() as scratch:
        times = measure(options, Path(scratch))
    suites = {"tests/races": judge_races} | ({} if options.no_conformance else {"tests/conformance": judge_conformance})
    found, cells = {}, {policy: [] for policy in options.policies}
    for suite, judge in suites.items():
        for policy in options.policies:
            cases, alarms = judge(options, policy)
            found[suite, policy] = cases
            cells[policy].append(f"{sum(cases.values())} of {len(cases)}, {len(alarms)} false alarms")
            missed = [case for case in cases if not cases[case]]
            print(f"{suite}, {policy}: {cells[policy][-1]}", flush=True)
            for what, those in (("missed", missed), ("false alarm", alarms)):
                if those:
                    more = f" and {len(those) - SHOWN} more" if len(those) > SHOWN else ""
                    print(f"    {what}: {', '.join(those[:SHOWN])}{more}", flush=True)
    print()
    print("| policy | " + " | ".join([*suites, *(f"{name}, s" for name in times)]) + " |")
    print("|---" * (1 + len(suites) + len(times)) + "|")
    for policy in options.policies:
        print(f"| `{policy}` | " + " | ".join([*cells[policy], *(f"{times[name][policy]:.2f}" for name in times)]) + " |")
    print("| natively | " + " | ".join([""] * len(suites) + [f"{times[name][None]:.2f}" for name in times]) + " |")
    if {"exact", "adaptive"} <= set(options.policies):
        for suite in suites:
            exact, adaptive = found[suite, "exact"], found[suite, "adaptive"]
            missed = sorted(case for case in exact if exact[case] and not adaptive.get(case, False))
            print(f"{suite}: adaptive misses {len(missed)} of the {sum(exact.values())} that exact finds"
                  f"{': ' + ', '.join(missed) if missed else ''}; the aim is at most 2%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
