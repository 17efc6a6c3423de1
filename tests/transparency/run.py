#!/usr/bin/python3
"""Runs every case of cases.py natively and under the monitor and compares all that a user could see.

Both runs start from equal copies of the same prepared directory, at the same path, one after the other.
"""

import argparse
import difflib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402
from cases import CASES  # noqa: E402

BASE_ENV = {
    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "SHELL": "/bin/sh",
    "USER": "user",
    "LOGNAME": "user",
    "PROGRAMS": str(HERE / "programs"),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tree_of(root):
    """{path: description} of all files below root: kind, mode, size, checksum or link target."""
    tree = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            relative = str(path.relative_to(root))
            mode = path.lstat().st_mode
            if path.is_symlink():
                tree[relative] = f"link to {os.readlink(path)}"
            elif path.is_file():
                tree[relative] = f"{mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]} {path.stat().st_size}"
            else:
                tree[relative] = f"{mode:o}"
    return tree


def normalised(data, case, port):
    text = data.decode("utf-8", "backslashreplace")
    for pattern, replacement in case.normalise:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return re.sub(rf"\b{port}\b", "PORT", text) if case.port else text


class Suite:
    def __init__(self, options):
        self.options = options
        self.results = harness.Results("transparency")
        self.base = Path(tempfile.mkdtemp(prefix="trapline-transparency-"))
        self.lock = threading.Lock()
        self.prepare_locks = {}
        self.times = {}
        self.tracking = ["--track=none"]
        if options.checked:
            # Everything runs in the code cache; what races were found is not the question.
            suppressions = self.base / "all-races"
            suppressions.write_text("race:*\n")
            self.tracking = ["--engine=cache", "--policy=exact", "--from-start", f"--suppressions={suppressions}"]

    def prepared(self, case):
        """The directory with the case's input; made once for all cases with the same preparation."""
        key = hashlib.sha256(case.prepare.encode()).hexdigest()[:16]
        with self.lock:
            mine = self.prepare_locks.setdefault(key, threading.Lock())
        with mine:
            template = self.base / f"input-{key}"
            if not template.exists():
                making = self.base / f"making-{key}"
                making.mkdir()
                outcome = harness.run(["/bin/bash", "-euo", "pipefail", "-c", case.prepare], cwd=making,
                                      env=dict(BASE_ENV, HOME=str(making)), timeout=300, marker=f"prepare-{key}")
                if outcome.status != 0 or outcome.timed_out:
                    raise RuntimeError(f"preparation: {outcome.status_text()}\n"
                                       + outcome.stderr.decode(errors="replace")[-2000:])
                making.rename(template)
            return template

    def run_once(self, case, template, work, prefix):
        if work.exists():
            shutil.rmtree(work)
        subprocess.run(["cp", "-a", "--reflink=auto", template, work], check=True)
        port = free_port() if case.port else 0
        env = dict(BASE_ENV, HOME=str(work), PORT=str(port), **case.env)
        command = case.command if isinstance(case.command, list) else ["bash", "-c", case.command]
        argv = [word.replace("$PROGRAMS", env["PROGRAMS"]) for word in command]
        if case.driver:  # the command is native and starts the program under test by itself, with $RUN
            env["RUN"] = " ".join(prefix)
        else:
            argv = [*prefix, *argv]
        patience = self.options.patience if prefix else 1
        outcome = harness.run(argv, cwd=work, env=env, timeout=case.timeout * patience, patience=0.3 * patience, stdin=case.stdin,
                              marker=f"{case.name}-{os.getpid()}")
        tree = {path: what for path, what in tree_of(work).items()
                if not any(fnmatch.fnmatch(path, pattern) for pattern in case.ignore)}
        return outcome, tree, port

    def differences(self, case, native, monitored):
        """A list of texts, empty if nobody could tell the two runs apart."""
        (outcome, tree, port), (outcome2, tree2, port2) = native, monitored
        found = []
        if outcome2.timed_out or outcome.status != outcome2.status:
            found.append(f"native: {outcome.status_text()}, monitor: {outcome2.status_text()}")
        for stream in ("stdout", "stderr"):
            if stream not in case.compare:
                continue
            a = normalised(getattr(outcome, stream), case, port)
            b = normalised(getattr(outcome2, stream), case, port2)
            if a != b:
                lines = list(difflib.unified_diff(a.splitlines(), b.splitlines(), f"native {stream}",
                                                  f"monitor {stream}", "", "", 1, ""))
                found.append("\n".join(line[:300] for line in lines[:30]))
        if "files" in case.compare and tree != tree2:
            wrong = sorted(path for path in tree.keys() | tree2.keys() if tree.get(path) != tree2.get(path))
            found.append("\n".join(f"file {path}: native {tree.get(path)}, monitor {tree2.get(path)}"
                                   for path in wrong[:10]))
        if len(outcome2.left_behind) > len(outcome.left_behind):
            found.append("left running: " + "; ".join(outcome2.left_behind[:5]))
        if found and "stderr" not in case.compare:
            found.append("monitor stderr: " + outcome2.stderr.decode(errors="replace")[-1500:])
        return found

    def run_case(self, case):
        for pattern, reason in self.options.leave_out:
            if re.search(pattern, case.name):
                self.results.skips(case.name, reason)
                return
        missing = harness.installed(case.packages)
        if missing:
            self.results.skips(case.name, f"not installed: {' '.join(missing)}; tools/setup installs them")
            return
        room = self.base / case.name
        room.mkdir()
        try:
            self.compare_runs(case, room)
        except (RuntimeError, OSError) as error:
            self.results.fails(case.name, "the test itself could not run", str(error))
        finally:
            if not self.options.keep:
                shutil.rmtree(room, ignore_errors=True)

    def compare_runs(self, case, room):
        tracking = [f"--json={room / 'races.json'}"] if self.options.races else self.tracking
        prefix = [str(self.options.trapline), "run", *tracking, *self.options.trapline_option, "--"]
        template = self.prepared(case)
        native_times, monitor_times = [], []
        attempts = self.options.attempts
        while len(native_times) < self.options.repeat:
            native = self.run_once(case, template, room / "work", [])
            problem = native_problem(case, native[0])
            if problem:
                self.results.fails(case.name, f"natively, without the monitor: {problem}",
                                   native[0].stderr.decode(errors="replace")[-1500:])
                return
            monitored = self.run_once(case, template, room / "work", prefix)
            found = self.differences(case, native, monitored)
            if self.options.races:
                found += races_in(room / "races.json")
            if found and attempts > 1:
                attempts -= 1
                with self.lock:
                    print(f"{case.name} differs, tried once more:\n    " + "\n    ".join(found), flush=True)
                continue
            native_times.append(native[0].seconds)
            monitor_times.append(monitored[0].seconds)
            if found:
                self.results.fails(case.name, f"native {native[0].seconds:.2f} s, monitor {monitored[0].seconds:.2f} s",
                                   "\n".join(found))
                return
        a, b = statistics.median(native_times), statistics.median(monitor_times)
        with self.lock:
            self.times[case.name] = (a, b)
        self.results.passes(case.name, f"native {a:.2f} s, monitor {b:.2f} s, x{b / max(a, 0.001):.1f}")

    def table(self):
        if not self.times:
            return
        print(f"\n{'case':<28}{'native s':>10}{'monitor s':>11}{'ratio':>8}")
        for name, (a, b) in sorted(self.times.items()):
            print(f"{name:<28}{a:>10.2f}{b:>11.2f}{b / max(a, 0.001):>8.1f}")
        print()


def races_in(report):
    """A text for each race of a report, which is read and gone."""
    races = json.loads(report.read_text()) if report.exists() else []
    report.unlink(missing_ok=True)
    return [f"race: {race['kind']} " + ", ".join(
        "{function} {file}:{line} ({module}+{offset})".format(**access["stack"][0]) for access in race["accesses"] if access["stack"])
        for race in (races if isinstance(races, list) else races["races"])]


def native_problem(case, outcome):
    """Why the native run cannot serve as the reference, or None."""
    if outcome.timed_out:
        return outcome.status_text()
    if outcome.status != case.status:
        return f"{outcome.status_text()}, the case expects {case.status}"
    if not re.search(case.expect.encode(), outcome.stdout):
        return f"standard output lacks {case.expect!r}: {outcome.stdout[-300:]!r}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE)
    parser.add_argument("--trapline-option", action="append", default=[], help="one more option of `trapline run`")
    parser.add_argument("--checked", action="store_true",
                        help="with everything checked in the code cache from the first instruction on")
    parser.add_argument("--patience", type=float, help="factor on the time limits of the monitor's runs: 3 with --races, else 1")
    parser.add_argument("--filter", default="", help="regular expression on the names")
    parser.add_argument("--leave-out", nargs=2, action="append", default=[], metavar=("REGEX", "REASON"), help="skip these cases, and say why")
    parser.add_argument("--tag", choices=["fast", "full"], default="full", help="fast: the part for CI")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--races", action="store_true",
                        help="watch for races, too: cases with the tag `clean` only, none of which may have a report")
    parser.add_argument("--attempts", type=int, default=1,
                        help="a difference counts if it is there this many times; the earlier ones are printed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--packages", action="store_true", help="print the Debian packages the cases need")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directories")
    options = parser.parse_args()
    if options.patience is None:
        options.patience = 3 if options.races else 1  # detection costs time
    chosen = [case for case in CASES
              if re.search(options.filter, case.name) and (options.tag == "full" or "fast" in case.tags)
              and (not options.races or "clean" in case.tags)]
    if options.packages:
        print("\n".join(sorted({package for case in chosen for package in case.packages})))
        return 0
    if options.list:
        for case in chosen:
            print(f"{case.name:<28}{' '.join(case.tags)}")
        return 0
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first (cmake --preset release && cmake --build build) "
                 "or say --trapline PATH")
    options.trapline = options.trapline.resolve()
    suite = Suite(options)
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(suite.run_case, chosen))
    finally:
        if options.keep:
            print(f"kept: {suite.base}")
        else:
            shutil.rmtree(suite.base, ignore_errors=True)
    suite.table()
    return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
