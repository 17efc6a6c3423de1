#!/usr/bin/python3
"""CPython's own tests of threads, signals, processes and mappings: natively and under the monitor, test by test.

Every test must have the same result in both runs. Debian's /usr/bin/python3 and its package libpython3.11-testsuite.
"""

import argparse
import os
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402

PYTHON = "/usr/bin/python3"
MODULES = ["test_threading", "test_thread", "test_signal", "test_subprocess", "test_mmap", "test_fork1", "test_faulthandler",
           "test_asyncio"]


def results_of(report):
    """{test: passed, failed, error or skipped} from regrtest's JUnit file; empty if it was not written."""
    if not report.exists():
        return {}
    results = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("error") is not None:
            result = "error"
        elif case.find("failure") is not None:
            result = "failed"
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            result = "skipped"
        else:
            result = "passed"
        results[case.get("name") or "unnamed"] = result
    return results


def run_tests(prefix, module, base, limit, match=()):
    """Results by test, the outcome of the process, and the last lines of its output."""
    with tempfile.TemporaryDirectory(dir=base) as scratch:
        report = Path(scratch, "report.xml")
        arguments = [*prefix, PYTHON, "-m", "test", "-v", "-u", "cpu,network", "--junit-xml", str(report), "--tempdir", scratch]
        for name in match:
            arguments += ["--match", name]
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": scratch, "TMPDIR": scratch}
        outcome = harness.run([*arguments, module], cwd=scratch, env=env, timeout=limit, marker=f"python-{os.getpid()}-{module}",
                              patience=3.0)
        return results_of(report), outcome


def tail(outcome, lines=12):
    text = (outcome.stdout + outcome.stderr).decode(errors="replace").strip().split("\n")
    return "\n".join(line[:200] for line in text[-lines:])


def compare(module, options, base, results):
    prefix = [str(options.trapline), "run", "--track=none", "--"]
    native, native_outcome = run_tests([], module, base, options.limit)
    if not native:
        results.fails(module, f"natively: {native_outcome.status_text()} and no report", tail(native_outcome))
        return
    ours, outcome = run_tests(prefix, module, base, options.limit * 3)
    times = f"native {native_outcome.seconds:.0f} s, monitor {outcome.seconds:.0f} s"
    if not ours:
        results.fails(module, f"under the monitor: {outcome.status_text()} and no report; {times}", tail(outcome, 25))
        return
    different = sorted(name for name in native.keys() | ours.keys() if native.get(name) != ours.get(name))
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(ours.values()).items()))
    if not different:
        results.passes(module, f"{len(native)} tests alike ({counts}); {times}")
        return
    lines = [f"{name}: native {native.get(name, 'absent')}, monitor {ours.get(name, 'absent')}" for name in different]
    for name in different[:options.again]:  # alone and once more, to tell a bug from a time limit on a loaded machine
        again, again_outcome = run_tests(prefix, module, base, options.limit, [name])
        lines.append(f"--- {name} alone under the monitor: {again.get(name, again_outcome.status_text())}")
        if again.get(name) != native.get(name):
            lines += [line for line in tail(again_outcome, 25).split("\n") if line.strip()]
    results.fails(module, f"{len(different)} of {len(native)} tests differ; {times}", "\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE)
    parser.add_argument("--filter", default="", help="regular expression on the module names")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a module natively; three times that under the monitor")
    parser.add_argument("--again", type=int, default=8, help="how many differing tests are run once more alone")
    options = parser.parse_args()
    results = harness.Results("python-suite")
    chosen = [module for module in MODULES if re.search(options.filter, module)]
    missing = harness.installed(["python3", "libpython3.11-testsuite"])
    if missing:
        for module in chosen:
            results.skips(module, f"not installed: {' '.join(missing)}; tools/setup full installs them")
        return results.finish()
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
    options.trapline = options.trapline.resolve()
    with tempfile.TemporaryDirectory(prefix="trapline-python-") as base:
        for module in chosen:
            compare(module, options, base, results)
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
