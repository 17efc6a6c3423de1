#!/usr/bin/env python3
"""Runs the guest programs natively and under the monitor, and compares.

Natively a program must end as list.txt says and every line it prints must be a fact that holds. Under the monitor
(--trapline) its standard output and its exit status must be the same as natively. One PASS, FAIL or SKIP line for
each program, then the line `N passed, N failed, N skipped`; exit status 0 only if none failed.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import fnmatch
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))

import harness  # noqa: E402

SKIPPED = 77  # kSkipped of guest.h


@dataclasses.dataclass
class Case:
    name: str
    tags: list
    expected: int  # exit status, or minus the signal, as subprocess has it


@dataclasses.dataclass
class Outcome:
    status: object  # int, or None if it ran out of time
    output: bytes
    errors: bytes
    seconds: float


def read_list(path):
    """The cases of list.txt: lines of name, tags, expected exit, variants."""
    cases = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, tags, expected, variants = line.split()
        status = -signal.Signals[expected].value if expected.startswith("SIG") else int(expected)
        for variant in variants.split(","):
            suffix = "" if variant == "dynamic" else "." + variant
            cases.append(Case(name + suffix, tags.split(",") + [variant], status))
    return cases


def run(command, seconds):
    """Runs a command in a session of its own; on time-out kills the session's process group."""
    # Files and not pipes: a child left behind must not keep us waiting.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        taken = time.monotonic() - start
        output.seek(0)
        errors.seek(0)
        return Outcome(status, output.read(), errors.read(), taken)


def describe(status):
    if status is None:
        return "out of time"
    if status < 0:
        return "death by " + harness.signal_name(-status)
    return f"exit {status}"


def tail(errors):
    text = errors.decode(errors="replace").strip()
    return [f"      stderr: {line}" for line in text.splitlines()[-5:]]


def check_natively(case, outcome):
    """What is wrong with the native run, as lines; empty if nothing is."""
    problems = []
    if outcome.status != case.expected:
        problems.append(f"natively {describe(outcome.status)}, listed {describe(case.expected)}")
    problems += [
        "natively: " + line
        for line in outcome.output.decode(errors="replace").splitlines()
        if line.startswith("NOT ")
    ]
    return problems + (tail(outcome.errors) if problems else [])


def compare(native, monitored):
    problems = []
    if monitored.status != native.status:
        problems.append(
            f"under the monitor {describe(monitored.status)}, natively {describe(native.status)}"
        )
    if monitored.output != native.output:
        lines = difflib.unified_diff(
            native.output.decode(errors="replace").splitlines(),
            monitored.output.decode(errors="replace").splitlines(),
            "natively", "under the monitor", n=0, lineterm="",
        )
        problems += ["      " + line for line in list(lines)[2:14]]
    return problems + (tail(monitored.errors) if problems else [])


def test(case, options):
    """One case, as often as asked; (verdict, line, details)."""
    program = str(options.directory / case.name)
    if not os.access(program, os.X_OK):
        return "FAIL", f"FAIL {case.name}: {program} is missing; build the target `guest`", []
    for _ in range(options.repeat):
        native = run([program], options.time_limit)
        if native.status == SKIPPED:
            reason = native.output.decode(errors="replace").splitlines()[-1]
            return "SKIP", f"SKIP {case.name}: {reason}", []
        problems = check_natively(case, native)
        times = f"{native.seconds:.2f} s"
        if not problems and options.trapline:
            command = [options.trapline, *shlex.split(options.arguments), program]
            monitored = run(command, options.time_limit)
            problems = compare(native, monitored)
            times += f", under the monitor {monitored.seconds:.2f} s"
        if problems and "limit" in case.tags and not check_natively(case, native):
            return "SKIP", f"SKIP {case.name}: differs under the monitor; a limit README names", []
        if problems:
            return "FAIL", f"FAIL {case.name} ({times})", problems
    return "PASS", f"PASS {case.name} ({times})", []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--directory", type=pathlib.Path,
                        default=here.parent.parent / "build/bin/guest", help="where the programs are")
    parser.add_argument("--trapline", help="the trapline command; without it only the native runs are made")
    parser.add_argument("--arguments", default="run --track=none --",
                        help="what stands between the command and the program (default: %(default)s)")
    parser.add_argument("--filter", default="*", help="only programs that match this pattern, as signals_*")
    parser.add_argument("--tags", default="", help="only programs with all of these tags, as fast,static")
    parser.add_argument("--time-limit", type=float, default=30, help="seconds for each run")
    parser.add_argument("--repeat", type=int, default=1, help="times to run each program")
    parser.add_argument("--jobs", type=int, default=1, help="programs to run at once")
    parser.add_argument("--attempts", type=int, default=1,
                        help="a difference counts if it is there this many times; the earlier ones are printed")
    options = parser.parse_args()
    options.directory = options.directory.resolve()

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = set(filter(None, options.tags.split(",")))
    cases = [
        case for case in read_list(here / "list.txt")
        if fnmatch.fnmatch(case.name, options.filter) and wanted <= set(case.tags)
    ]
    counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    def judge(case):
        verdict, line, details = test(case, options)
        for _ in range(1, options.attempts):
            if verdict != "FAIL":
                break
            first = [line, *details]
            verdict, line, details = test(case, options)
            line += " (not the first attempt)"
            details = details or ["the first attempt: " + first[0], *first[1:]]
        return verdict, line, details

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for verdict, line, details in pool.map(judge, cases):
            counts[verdict] += 1
            print("\n".join([line, *("    " + detail for detail in details)]), flush=True)
    print(f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped")
    # A filter that matches nothing is a mistake and no success.
    return 0 if counts["FAIL"] == 0 and sum(counts.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
