#!/usr/bin/python3
"""Builds the programs of this directory, runs them natively and under trapline, and compares verdicts.

A program's comments say which races a report must name (both places by line) or that it is clean: README.md. Exit
status and standard output must be the native ones. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402
import reports  # noqa: E402
from expectations import BadProgram, Program, read_programs  # noqa: E402

COMMON = ["-g", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-dangling-pointer", "-fno-ipa-icf",
          "-I", str(HERE), "-I", str(harness.ROOT / "guest-agent" / "include")]
# GCC's and clang's two levels.
VARIANTS = {f"{compiler}-{level}": [f"-{level}"] for compiler in ("gcc", "clang") for level in ("O0", "O2")}
PRECOMPILED = tuple(VARIANTS)  # variants of many programs: for them what all programs of a directory include is compiled once
VARIANTS |= {
    "static": ["-O2", "-static"],
    "musl": ["-O2", "-static"],
    "libcxx": ["-O2", "-stdlib=libc++"],
    "fixed": ["-O2", "-fno-pie", "-no-pie"],
    "rust-O2": ["-Copt-level=2"],
    "tsan": ["-O1", "-fsanitize=thread", "-Wno-tsan", "-Wno-maybe-uninitialized"],
}
STRIP = {"stripped": ["--strip-all", "--remove-section=.comment"], "nodebug": ["-g"]}  # what is taken out of a program, whose whole is kept beside it
# The two levels once more, with no debug info but the symbol table, and without that.
VARIANTS |= {f"{variant}-{suffix}": VARIANTS[variant] for variant in (*PRECOMPILED, "rust-O2") for suffix in STRIP}
ALIASES = {"O0": "gcc-O0", "O2": "gcc-O2", "stripped": "gcc-O2-stripped"}
VARIANTS |= {alias: VARIANTS[variant] for alias, variant in ALIASES.items()}
NOT_CLANGS = ("-Wno-dangling-pointer", "-fno-ipa-icf")
OUTPUT = 4000  # characters of standard error shown of a failed run


@dataclass
class Case:
    program: Program
    variant: str
    directory: Path  # where programs are built

    @property
    def name(self):
        return f"{self.program.name}.{self.variant}"

    @property
    def built_as(self):
        return ALIASES.get(self.variant, self.variant)

    @property
    def strip(self):
        """How the program is stripped, None if it is not."""
        return STRIP.get(self.built_as.rpartition("-")[2])

    @property
    def whole_variant(self):
        """What the program is stripped from, itself if it is not."""
        return self.built_as if self.strip is None else self.built_as.rpartition("-")[0]

    @property
    def binary(self):
        return self.directory / f"{self.program.name}.{self.built_as}"

    @property
    def whole(self):
        """The program as it was before it was stripped."""
        return self.directory / f"{self.program.name}.{self.whole_variant}"

    @property
    def header(self):
        """What the programs beside it include, if there is such a file."""
        return self.program.source.parent / "precompiled.h"

    @property
    def precompiled(self):
        """The header, compiled for the variant; None: the program is compiled without."""
        if self.program.source.suffix != ".cpp" or self.whole_variant not in PRECOMPILED or self.program.flags or not self.header.exists():
            return None
        return self.binary.with_name(f"precompiled.{self.whole_variant}.h.gch")


def compiler_command(case):
    """The compiler of C and C++ with the case's flags."""
    compiler = ["gcc", "-std=gnu11"] if case.program.source.suffix == ".c" else ["g++", "-std=gnu++20"]
    common = COMMON
    if compiler_of(case) == "clang":
        compiler[0] = {"gcc": "clang", "g++": "clang++"}[compiler[0]]
        common = [flag for flag in COMMON if flag not in NOT_CLANGS]
    if case.variant == "musl":
        compiler[0] = "musl-gcc"
    return [*compiler, *common, *VARIANTS[case.variant], *case.program.flags]


def compiler_of(case):
    if case.program.source.suffix == ".rs":
        return "rustc"
    if case.variant.startswith("clang") or case.variant == "libcxx":
        return "clang"
    return "musl-gcc" if case.variant == "musl" else "gcc"


def compile_command(case):
    source, output = str(case.program.source), str(case.whole)
    if case.program.source.suffix == ".rs":
        return ["rustc", "--edition=2021", "-g", *VARIANTS[case.variant], *case.program.flags, source, "-o", output]
    included = []
    if case.precompiled and case.variant.startswith("clang"):
        included = ["-include-pch", str(case.precompiled)]
    elif case.precompiled:
        included = ["-Winvalid-pch", "-include", str(case.precompiled.with_suffix(""))]
    return [*compiler_command(case), *included, source, "-o", output, "-ldl", "-lrt", *case.program.link]


@lru_cache(maxsize=None)
def version_of(tool):
    return subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout.partition("\n")[0]


class Builds:
    """Builds every file once, if it is older than what it is made of. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.locks = {}  # by the file to be built
        self.done = {}  # what was said of it

    def build(self, case):
        """What a compiler said if it failed, else nothing."""
        headers = [*HERE.glob("*.h"), *case.program.source.parent.glob("*.h"), *case.program.source.parent.glob("*.inc"),
                   harness.ROOT / "guest-agent/include/trapline/client.h"]
        complaint = ""
        if case.precompiled:
            complaint = self.make(case.precompiled, [*compiler_command(case), "-x", "c++-header", str(case.header), "-o", str(case.precompiled)], headers)
        complaint = complaint or self.make(case.whole, compile_command(case), [case.program.source, *headers])
        if case.strip is not None:
            complaint = complaint or self.make(case.binary, ["strip", *case.strip, "-o", str(case.binary), str(case.whole)], [case.whole])
        return complaint

    def make(self, output, command, inputs):
        with self.lock:
            lock = self.locks.setdefault(output, threading.Lock())
        with lock:
            if output not in self.done:
                try:
                    self.done[output] = self.make_anew(output, command, inputs)
                except (OSError, subprocess.SubprocessError) as problem:
                    self.done[output] = str(problem)
            return self.done[output]

    @staticmethod
    def make_anew(output, command, inputs):
        stamp = output.with_name(output.name + ".command")
        made_by = f"{shlex.join(command)}\n{version_of(command[0])}\n"
        if (output.exists() and stamp.exists() and stamp.read_text() == made_by
                and output.stat().st_mtime > max(path.stat().st_mtime for path in inputs)):
            return ""
        output.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
        if result.returncode != 0:
            return result.stdout or f"status {result.returncode}"
        stamp.write_text(made_by)
        return ""


def lacking(case):
    """What the machine lacks for the program."""
    program = case.program
    compiler = compiler_of(case)
    if shutil.which(compiler) is None:
        return f"no {compiler}"
    for need in [*program.needs, *(["libcxx"] if case.variant == "libcxx" else [])]:
        lack = without_library(need, compiler) if need in LIBRARIES else "" if need in processor_flags() else f"this processor has no {need}"
        if lack:
            return lack
    return ""


@lru_cache(maxsize=None)
def processor_flags():
    return set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())


# What a program with the library takes, and what is said without: the compiler's arguments before and behind `-`, its input.
LIBRARIES = {
    "openmp": (["-fopenmp", "-x", "c"], [], "int main(void){}", "no OpenMP run-time library"),
    "libcxx": (["-x", "c++", "-stdlib=libc++"], ["-lc++"], "#include <mutex>\nint main() {}", "no libc++ (Debian's libc++-dev)"),
    "tbb": (["-x", "c++"], ["-ltbb", "-ltbbmalloc"], "#include <tbb/version.h>\nint main() {}", "no oneTBB (Debian's libtbb-dev)"),
    "jemalloc": (["-x", "c"], ["-l:libjemalloc_pic.a", "-lstdc++", "-lm"], "int main(void){}", "no static jemalloc (Debian's libjemalloc-dev)"),
}


@lru_cache(maxsize=None)
def without_library(need, compiler):
    """What is said if the compiler finds no such library, asked once and not for each program."""
    flags, libraries, text, lack = LIBRARIES[need]
    command = [compiler.replace("gcc", "g++") if need == "tbb" else compiler, *flags, "-", "-o", "/dev/null", *libraries]
    probe = subprocess.run(command, input=text, text=True, stderr=subprocess.DEVNULL, timeout=300, check=False)
    return lack if probe.returncode != 0 else ""


class Suite:
    def __init__(self, options):
        self.options = options
        self.results = harness.Results(options.programs.name)
        self.scratch = tempfile.TemporaryDirectory(prefix="trapline-races-")
        self.engine = [f"--engine={options.engine}"] if options.engine else []
        if options.hot_after:
            self.engine.append(f"--hot-after={options.hot_after}")
        self.agreed = 0  # runs whose verdict was right
        self.lock = threading.Lock()
        self.builds = Builds()
        self.missed = {}  # what a MAY-MISS excused: case: how often

    def run(self, case, prefix, seconds):
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "OMP_WAIT_POLICY": "passive"}
        if self.options.oracle:
            env["TSAN_OPTIONS"] = "exitcode=0 report_bugs=1 history_size=7 detect_deadlocks=0 report_thread_leaks=0"
            prefix = ["setarch", "-R", *prefix]
        return harness.run([*prefix, str(case.binary)], cwd=self.scratch.name, env=env, timeout=seconds,
                           marker=f"races-{os.getpid()}-{case.name}")

    def monitored(self, case, native):
        """One run under the monitor: what is wrong, as lines; seconds; races reported."""
        program = case.program
        report = Path(self.scratch.name, case.name.replace("/", "_") + ".json")
        report.unlink(missing_ok=True)
        command = [str(self.options.trapline), "run", f"--policy={self.options.policy}", f"--json={report}", *self.engine, *self.options.trapline_option, *program.options, "--"]
        outcome = self.run(case, command, program.seconds * self.options.patience)
        problems = []
        if outcome.timed_out or outcome.status != native.status:
            problems.append(f"under the monitor {outcome.status_text()}, natively {native.status_text()}")
        if outcome.stdout != native.stdout:
            problems.append(f"standard output {outcome.stdout[:200]!r}, natively {native.stdout[:200]!r}")
        if outcome.left_behind:
            problems.append("left behind: " + "; ".join(outcome.left_behind))
        said = outcome.stderr.decode(errors="replace").splitlines()
        # Hot code runs unseen: nothing is known of it.
        for start in program.says if not self.options.hot_after else []:
            if not any(line.lstrip().startswith(start.strip()) for line in said):
                problems.append(f"does not say: {start}")
        races = []
        if not report.exists():
            problems.append("no JSON report was written")
        else:
            try:
                written = json.loads(report.read_text())
                races = reports.from_json(written, case)
                shared = written["shared_memory"]
                if len(shared) != program.shared:
                    problems.append(f"{len(shared)} pieces of memory shared by processes, not {program.shared}: {shared}")
            except (ValueError, KeyError, TypeError, IndexError) as error:
                problems.append(f"unusable JSON report: {type(error).__name__}: {error}")
            else:
                found = program.judge(races, self.options.policy, case.variant)
                # What is missed is excused, and with nothing else wrong so is the list of what was reported.
                if not self.options.hot_after or any(not problem.startswith(("missed: ", "reported: ")) for problem in found):
                    problems += found
        if problems:
            problems += ["stderr: " + line for line in outcome.stderr.decode(errors="replace")[-OUTPUT:].splitlines()]
        return problems, outcome.seconds, races

    def judge_by_oracle(self, case):
        """The same verdicts from ThreadSanitizer: a check of the expectations, not of trapline."""
        outcome = self.run(case, [], case.program.seconds)
        races = reports.from_tsan(outcome.stderr.decode(errors="replace"), case)
        problems = case.program.judge(races, "exact", case.variant)
        if outcome.status != case.program.exit_status:
            problems.append(outcome.status_text())
        if problems and case.program.tsan_differs:
            self.results.skips(case.name, f"ThreadSanitizer: {case.program.tsan_differs}")
        elif problems:
            problems += ["stderr: " + line for line in outcome.stderr.decode(errors="replace")[:OUTPUT].splitlines()]
            self.results.fails(case.name, f"({outcome.seconds:.2f} s)", "\n".join(problems))
        else:
            self.results.passes(case.name, f"({outcome.seconds:.2f} s)")

    def test(self, case):
        options = self.options
        lack = next((reason for pattern, reason in options.leave_out if fnmatch.fnmatch(case.name, pattern)), "") or lacking(case)
        if lack:
            self.results.skips(case.name, lack)
            return
        complaint = self.builds.build(case)
        if complaint:
            self.results.fails(case.name, "does not compile", complaint)
            return
        if options.build_only:
            self.results.passes(case.name, "built")
            return
        if options.oracle:
            self.judge_by_oracle(case)
            return
        slowest = 0
        wrong = 0
        found_all = 0
        for attempt in range(options.repeat):
            native = self.run(case, [], case.program.seconds)
            if native.timed_out or native.status != case.program.exit_status or native.left_behind:
                self.results.fails(case.name, f"natively {native.status_text()}",
                                   native.stderr.decode(errors="replace")[-OUTPUT:])
                return
            slowest = max(slowest, native.seconds)
            if not options.trapline:
                continue
            for left in reversed(range(options.attempts)):
                problems, seconds, races = self.monitored(case, native)
                slowest = max(slowest, seconds)
                if not problems or left == 0:
                    break
                print(f"{self.results.suite}/{case.name} is wrong, tried once more:\n    " + "\n    ".join(problems), flush=True)
            if problems:
                wrong += 1
                first = wrong == 1 and (attempt, problems)
                if first:
                    details = first
            elif not case.program.clean and case.program.judge(races, "all of them", case.variant) == []:
                found_all += 1
        note = f"({slowest:.2f} s)"
        reason = case.program.limit(case.variant)
        if wrong:
            times = f"{wrong} of {options.repeat} runs wrong" if options.repeat > 1 else ""
            if reason:
                self.results.skips(case.name, f"known limit: {reason}")
            else:
                self.results.fails(case.name, f"{times} {note}".strip(), f"run {details[0] + 1}:\n" + "\n".join(details[1]))
            return
        if reason and options.trapline:
            note += " right, though its LIMIT says that it may not be"
        if options.trapline and case.program.may_be_missed(options.policy):
            note += f" found in {found_all} of {options.repeat} runs; may be missed"
        self.results.passes(case.name, note)


def cases_of(programs, options):
    wanted = set(filter(None, options.tags.split(",")))
    for program in programs:
        variants = ["tsan"] if options.oracle else options.variants or program.variants
        for variant in variants:
            if variant not in VARIANTS:
                raise BadProgram(f"{program.name}: unknown variant {variant}")
            name = f"{program.name}.{variant}"
            if wanted <= program.tags and any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(program.name, pattern)
                                              for pattern in options.filter.split(",")):
                yield Case(program, variant, options.directory)


@contextmanager
def compilers(count):
    """So many of them run meanwhile, one after the other each: they use memory, caches and short processes as plain loops do not."""
    is_over = threading.Event()
    source = HERE / "cpp" / "coroutines_clean.cpp"
    command = ["g++", "-std=c++20", "-O2", *COMMON, "-c", str(source), "-o", "/dev/null"]

    def compile_again():
        while not is_over.is_set():
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    with ThreadPoolExecutor(max(count, 1)) as pool:
        running = [pool.submit(compile_again) for _ in range(count)]
        try:
            yield
        finally:
            is_over.set()
            for each in running:
                each.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, help="the trapline command; without it only the native runs are made")
    parser.add_argument("--policy", default="adaptive", help="trapline's policy (default: adaptive)")
    parser.add_argument("--hot-after", type=int, help="trapline's --hot-after: races may be missed, but there must be no false alarm")
    parser.add_argument("--engine", choices=["cache", "step"], help="trapline's engine (default: the policy's)")
    parser.add_argument("--trapline-option", action="append", default=[], help="one more option of `trapline run`")
    parser.add_argument("--repeat", type=int, default=1, help="times to run each program")
    parser.add_argument("--attempts", type=int, default=1,
                        help="a wrong verdict counts if it comes this many times in a row; the earlier ones are printed")
    parser.add_argument("--filter", default="*", help="only programs that match one of these patterns, as 'sync/*,*.static'")
    parser.add_argument("--tags", default="", help="only programs with all of these tags, as fast")
    parser.add_argument("--leave-out", nargs=2, action="append", default=[], metavar=("PATTERN", "REASON"), help="skip these programs, and say why")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs to build and run at once")
    parser.add_argument("--beside", type=int, default=0, metavar="N",
                        help="so many compilers run beside all the time: rare false alarms show on a busy machine")
    parser.add_argument("--patience", type=float, default=1, help="factor on the time limits of runs under trapline")
    parser.add_argument("--directory", type=Path, help="where the programs are built (default: build/ and the name of their directory)")
    parser.add_argument("--build-only", action="store_true", help="build and run nothing")
    parser.add_argument("--programs", type=Path, default=HERE, help="the directory of programs (default: this one)")
    parser.add_argument("--variants", type=lambda text: text.split(","), help="build these instead of what the programs say")
    parser.add_argument("--oracle", choices=["tsan"], help="check the expectations against ThreadSanitizer instead of trapline")
    options = parser.parse_args()
    if options.trapline:
        if not os.access(options.trapline, os.X_OK):
            sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
        options.trapline = options.trapline.resolve()
    options.programs = options.programs.resolve()
    options.directory = (options.directory or harness.ROOT / "build" / options.programs.name).resolve()
    try:
        cases = list(cases_of(read_programs(options.programs), options))
    except BadProgram as error:
        sys.exit(str(error))
    if not cases:
        sys.exit("no program matches")
    suite = Suite(options)
    with compilers(options.beside), ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(suite.test, case) for case in cases]:
            future.result()
    return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
