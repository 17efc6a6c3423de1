#!/usr/bin/python3
"""Real parallel programs: natively, under Trapline, and under other race detectors, side by side.

Builds programs of Splash-3 and PARSEC from checkouts, runs each with every tool by turns, and prints Markdown tables of
time and memory as ratios to native runs of the same session, and of distinct races; --json writes all of it.
"""

import argparse
import hashlib
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from catalogue import PROGRAMS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MIB = 1024  # of the kibibytes in which memory is measured
EMULATED_MEMORY = 8192  # MiB; fft under ThreadSanitizer has 3,900, and files are in memory, too


# Building


def build_sources(program, checkout, directory):
    """Copies the sources and carries out their macros, unless that was done before."""
    if directory.exists():
        return
    if not checkout:
        sys.exit(f"{program.name} needs --{program.suite}")
    shutil.copytree(checkout / program.directory, directory)
    if program.suite == "splash":
        macros = checkout / "pthread_macros" / "pthread.m4.stougie"
        headers = sorted(directory.glob("*.h.in"), key=lambda path: "\ninclude(" in path.read_text())  # those that include others last
        expansions = [(path, path.with_suffix("")) for path in [*headers, *directory.glob("*.c.in")]]
        expand = ["m4", "-Ulen", "-Uindex", macros]
    else:
        macros = directory / "c.m4.pthreads"
        expansions = [(directory / "blackscholes.c", directory / "blackscholes.m4.cpp")] if macros.exists() else []
        expand = ["m4", macros]
    for source, target in expansions:
        with open(target, "wb") as out:
            subprocess.run([*expand, source], cwd=directory, stdout=out, check=True, timeout=60)


def build(program, directory, output, flags):
    """Compiles a program's sources, all at once, unless that was done before."""
    if output.exists():
        return
    sources = [path.relative_to(directory) for pattern in program.sources for path in sorted(directory.glob(pattern))]
    compiler = "g++" if program.suite == "parsec" else "gcc"
    if compiler == "g++":
        flags = [*flags, "-std=gnu++11"]
    subprocess.run([compiler, "-O2", "-g", "-w", "-pthread", *program.flags, *flags, *sources, "-o", output, "-lm"],
                   cwd=directory, check=True, timeout=600)


# Races: each tool's report becomes a set of places, or of pairs of places


def place(file, line, otherwise):
    return f"{os.path.basename(file)}:{line}" if file and line else otherwise


def trapline_races(report, _text):
    races = set()
    for race in json.loads(report.read_text())["races"]:
        frames = [access["stack"][0] for access in race["accesses"]]
        races.add(" / ".join(sorted(place(frame["file"], frame["line"], f"{os.path.basename(frame['module'])}+{frame['offset']}")
                                    for frame in frames)))
    return races


def thread_sanitizer_races(_report, text):
    races = set()
    for warning in re.findall(r"WARNING: ThreadSanitizer: data race.*?(?=\n={10})", text, re.S):
        tops = re.findall(r"^ +#0 (\S+).*?(?: (\S+?):(\d+)(?::\d+)?)? \(", warning.split("\n  Location", maxsplit=1)[0], re.M)
        races.add(" / ".join(sorted(place(file, line, function) for function, file, line in tops[:2])))
    return races


def valgrind_races(report, _text):
    races = set()
    text = report.read_text(errors="replace")
    if "</valgrindoutput>" not in text:
        text += "</valgrindoutput>"
    for error in ElementTree.fromstring(text).iter("error"):
        if error.findtext("kind") in ("Race", "ConflictingAccess"):
            stacks = error.findall("stack")[: 2 if error.findtext("kind") == "Race" else 1]
            tops = [stack.find("frame") for stack in stacks]
            races.add(" / ".join(sorted(place(top.findtext("file"), top.findtext("line"), top.findtext("fn") or top.findtext("ip"))
                                        for top in tops)))
    return races


@dataclass(frozen=True)
class Tool:
    name: str
    prefix: list  # words before the program; {report} is a file of the run's own
    races: object = None  # from (report file, output) to a set of strings
    sanitized: bool = False  # runs the program's other build


def tools_of(options):
    tools = {"native": Tool("native", [])}
    for policy in options.policies.split(","):
        tools[policy] = Tool(policy, [str(options.trapline), "run", f"--policy={policy}", "--json={report}", "--"], trapline_races)
    valgrind = ["valgrind", "--xml=yes", "--xml-file={report}", "--error-limit=no", "--child-silent-after-fork=yes"]
    others = {
        "tsan": Tool("tsan", ["setarch", "-R"], thread_sanitizer_races, sanitized=True),
        "helgrind": Tool("helgrind", [*valgrind, "--tool=helgrind"], valgrind_races),
        "drd": Tool("drd", [*valgrind, "--tool=drd"], valgrind_races),
    }
    return tools | {name: others[name] for name in options.tools.split(",") if name}


# Running


@dataclass
class Run:
    status: str  # "ok", "timed out", or what went wrong
    seconds: float = 0.0
    processor: float = 0.0  # seconds, of all its threads
    kibibytes: int = 0
    races: set = field(default_factory=set)
    result: str = ""


def result_of(program, directory, out, text):
    """A digest of what the program computed; empty where that differs from run to run."""
    if program.result_lines:
        found = "\n".join(line for line in text.splitlines() if re.search(program.result_lines, line)).encode()
    elif program.result_file:
        path = out if program.result_file == "-" else directory / program.result_file
        found = path.read_bytes() if path.exists() else b""
    else:
        return ""
    return hashlib.sha256(found).hexdigest()


def run(tool, program, words, stdin, directory, options):
    """One run in a process group of its own, which the time limit kills."""
    report, peak, out, err = (directory / name for name in ("report", "peak", "out", "err"))
    for path in (report, peak, directory / program.result_file):
        if path.is_file():
            path.unlink()
    command = [options.build / "peak", peak, *[word.format(report=report) for word in tool.prefix], *map(str, words)]
    environment = dict(os.environ, TSAN_OPTIONS="exitcode=0")
    with open(out, "wb") as stdout, open(err, "wb") as stderr, open(directory / "stdin", "w+", encoding="ascii") as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(command, cwd=directory, env=environment, stdin=given, stdout=stdout, stderr=stderr,
                                   start_new_session=True)
        expired = threading.Event()

        def expire():
            expired.set()
            os.killpg(process.pid, signal.SIGKILL)

        limit = threading.Timer(options.timeout, expire)
        limit.start()
        try:
            process.wait()
        finally:
            limit.cancel()
            if process.poll() is None:  # interrupted
                os.killpg(process.pid, signal.SIGKILL)
    text = "" if program.result_file == "-" else out.read_text(errors="replace")
    text += err.read_text(errors="replace")
    if expired.is_set():
        return Run("timed out", float(options.timeout))
    seconds, processor, kibibytes, status = peak.read_text().split()
    code = os.waitstatus_to_exitcode(int(status))
    if code:
        return Run(f"exit {code}" if code > 0 else signal.Signals(-code).name)
    races = tool.races(report, text) if tool.races else set()
    return Run("ok", float(seconds), float(processor), int(kibibytes), races, result_of(program, directory, out, text))


def measure(program, threads, tools, options):
    """{tool: [Run, ...]}: by turns, each tool until it fails."""
    directory = options.build / f"run-{program.name}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    program.inputs(directory, options.scale)
    for name in program.needs:
        shutil.copy(options.build / program.name / name, directory)
    arguments, stdin = program.arguments(threads, options.scale), program.stdin(threads, options.scale)
    runs = {name: [] for name in tools}
    for _ in range(options.repeat):
        for name, tool in tools.items():
            if tool.sanitized and not program.suite or runs[name] and runs[name][-1].status != "ok":
                continue
            binary = options.build / (f"{program.name}.tsan" if tool.sanitized else program.name + ".native")
            made = run(tool, program, [binary if program.suite else program.directory, *arguments], stdin, directory, options)
            if made.status == "ok" and runs["native"] and made.result != runs["native"][0].result:
                made.status = "wrong result"
            runs[name].append(made)
            print(f"{program.name}, {threads} threads, {name}: {made.status}, {made.seconds:.2f} s, {made.processor:.2f} s of "
                  f"processor time, {made.kibibytes / MIB:.0f} MiB, {len(made.races)} races", file=sys.stderr, flush=True)
    return runs


# Results


def summary(runs, native):
    """What the tables and the JSON say of one tool's runs of one program; None if there were none."""
    if not runs:
        return None
    good = [entry for entry in runs if entry.status == "ok"]
    result = {"status": runs[-1].status, "runs": len(runs), "races": sorted(set().union(*(entry.races for entry in runs)))}
    result["race_count"] = len(result["races"])
    if runs[-1].status == "timed out" and native:
        result |= {"seconds": runs[-1].seconds, "ratio": runs[-1].seconds / native["seconds"]}
    elif runs[-1].status == "ok":
        seconds = statistics.median(entry.seconds for entry in good)
        processor = statistics.median(entry.processor for entry in good)
        kibibytes = statistics.median(entry.kibibytes for entry in good)
        result |= {"seconds": seconds, "processor_seconds": processor, "mebibytes": kibibytes / MIB}
        if native:
            result |= {"ratio": seconds / native["seconds"], "processor_ratio": processor / native["processor_seconds"],
                       "memory_ratio": kibibytes / MIB / native["mebibytes"],
                       "memory_added_mebibytes": kibibytes / MIB - native["mebibytes"]}
    return result


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def cell(found, text):
    """`text` of a run that ended; otherwise what became of it."""
    if found is None:
        return ""
    if found["status"] == "timed out":
        return f"> {found['ratio']:.1f}" if text == "{ratio:.1f}" else "timed out"
    return text.format(**found) if found["status"] == "ok" else found["status"]


def means(rows, tools, key):
    """Under each column the geometric mean of its programs and their number. Time-outs count as the limit: then it is a lower bound."""
    cells = []
    for tool in tools:
        found = [row[tool] for row in rows.values() if row.get(tool) and key in row[tool]]
        least = key == "ratio" and any(entry["status"] == "timed out" for entry in found)
        cells.append(f"{'> ' if least else ''}{geometric_mean([entry[key] for entry in found]):.1f} (of {len(found)})" if found else "")
    return cells


def table(title, rows, tools, native_text, text, mean_key=None):
    lines = [f"### {title}", "", f"| program | native | {' | '.join(tools)} |", "|---|" + "---|" * (len(tools) + 1)]
    for name, row in rows.items():
        cells = [cell(row["native"], native_text), *[cell(row[tool], text) for tool in tools]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if mean_key:
        lines.append(f"| geometric mean | | {' | '.join(means(rows, tools, mean_key))} |")
    return "\n".join(lines) + "\n"


def tables(rows, tools):
    return "\n".join([
        table("Time, as a ratio to native", rows, tools, "{seconds:.2f} s", "{ratio:.1f}", "ratio"),
        table("Processor time of all threads, as a ratio to native (little disturbed by what else the machine does)", rows, tools,
              "{processor_seconds:.2f} s", "{processor_ratio:.1f}", "processor_ratio"),
        table("Peak memory, as a ratio to native, and what is added", rows, tools, "{mebibytes:.0f} MiB",
              "{memory_ratio:.1f}, +{memory_added_mebibytes:.0f} MiB", "memory_ratio"),
        table("Distinct races", rows, tools, "", "{race_count}")])


# Without KVM


def run_emulated(options, runs):
    """Measures once more from the start, in the emulated machine, what is built by now. Does not return."""
    if options.build.is_relative_to("/tmp"):
        sys.exit(f"--build {options.build}: the emulated machine has a /tmp of its own; choose another directory")
    words = [word for word in sys.argv[1:] if word != "--emulated"]
    machine = ROOT / "tests" / "kvm-amd" / "machine.py"
    limit = 120 + int(runs * options.timeout)
    os.execv(machine, [str(machine), f"--timeout={limit}", f"--memory={EMULATED_MEMORY}", "--", str(HERE / "run.py"), *words])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--splash", type=Path, help="checkout of Splash-3")
    parser.add_argument("--parsec", type=Path, help="checkout of parsec-benchmark")
    parser.add_argument("--trapline", type=Path, default=ROOT / "build" / "bin" / "trapline")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench-programs", help="directory for what is built and run; what was built there is used again")
    parser.add_argument("--programs", default=",".join(program.name for program in PROGRAMS))
    parser.add_argument("--policies", default="adaptive,exact", help="of Trapline")
    parser.add_argument("--tools", default="tsan,helgrind,drd", help="beside Trapline")
    parser.add_argument("--threads", default="2", help="numbers of threads, powers of two: 2,4")
    parser.add_argument("--scale", type=float, default=1.0, help="of the work; 1 takes half a second or more natively")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120, help="seconds a run may take")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--emulated", action="store_true", help="build here, and run in the emulated machine, which has KVM: "
                        "ratios are rough, since what costs little on a processor may cost much there, and the other way round")
    options = parser.parse_args()
    if options.emulated and options.json:
        parser.error("--json: files written in the emulated machine are lost; take the tables from the output")
    options.build = options.build.resolve()
    options.trapline = options.trapline.resolve()
    names = options.programs.split(",")
    unknown = set(names) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    checkouts = {"splash": options.splash and options.splash.resolve() / "codes", "parsec": options.parsec and options.parsec.resolve()}
    tools = tools_of(options)
    others = [name for name in tools if name != "native"]

    options.build.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O1", "-o", options.build / "peak", HERE / "peak.c"], check=True, timeout=60)
    programs = [program for program in PROGRAMS if program.name in names]
    for program in [program for program in programs if program.suite]:
        directory = options.build / program.name
        build_sources(program, checkouts[program.suite], directory)
        build(program, directory, options.build / f"{program.name}.native", [])
        if "tsan" in tools:
            build(program, directory, options.build / f"{program.name}.tsan", ["-fsanitize=thread"])

    if options.emulated:
        run_emulated(options, len(programs) * len(tools) * options.repeat * len(options.threads.split(",")))

    results = {}
    for threads in [int(number) for number in options.threads.split(",")]:
        rows = results[threads] = {}
        for program in programs:
            runs = measure(program, threads, tools, options)
            native = summary(runs["native"], None)
            if native["status"] != "ok":
                sys.exit(f"{program.name} failed natively: {native['status']}; see {options.build}/run-{program.name}")
            rows[program.name] = {"native": native} | {name: summary(runs[name], native) for name in others}
            if options.json:
                options.json.write_text(json.dumps({"scale": options.scale, "repeat": options.repeat, "timeout": options.timeout,
                                                    "threads": results}, indent=1) + "\n")
        print(f"## {threads} threads\n\n{tables(rows, others)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
