#!/usr/bin/python3
"""Records programs while they run, replays the logs, and compares; breaks recordings in every way a user can meet.

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import fnmatch
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RACES = HERE.parent / "races"
sys.path[:0] = [str(HERE.parent / "harness"), str(RACES)]

import harness  # noqa: E402
import reports  # noqa: E402
from expectations import read_program, read_programs  # noqa: E402

_spec = importlib.util.spec_from_file_location("races_run", RACES / "run.py")
races_run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(races_run)

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "OMP_WAIT_POLICY": "passive"}
# The recordings that are broken off: by steps the threads' accesses reach the log in turns, from the code cache in batches
# of thousands, of which the last ones die with the process.
STEPPED = ["--engine=step"]
LIMIT = 120  # seconds for one command

# Recorded and replayed: at least one of each kind of synchronisation and of memory event. Behind a colon: built so.
RECORDED = """
    threads/create_race.c threads/two_readers_one_writer.c threads/many_race.c sync/mutex_forgotten.c sync/mutex_clean.c
    sync/rwlock_read_writes.c sync/barrier_forgotten.c sync/condition_late_write.c sync/semaphore_race.c
    atomics/fetch_add_race.c atomics/cas_spinlock_clean.c memory/heap_race.c memory/mremap_race.c memory/reuse_clean.c
    memory/use_after_free_race.c memory/sizes_race.c libc/memcpy_race.c cpp/vector_race.cpp cpp/linked_libstdcxx_clean.cpp patterns/queue_late_write_race.c
    runtimes/fibers_race.c runtimes/fiber_moves_race.c runtimes/copy_history_race.c runtimes/copy_history_lock_clean.c
    options/met_atomic_clean.c options/met_atomic_race.c rust/flag_clean.rs:rust-O2-nodebug
""".split()
ACCULOCK = "sync/mutex_different.c sync/mutex_clean.c threads/create_race.c sync/mutex_forgotten.c".split()
NEEDED = """
    threads/create_race.c sync/mutex_clean.c sync/mutex_forgotten.c sync/barrier_forgotten.c sync/rwlock_read_writes.c memory/heap_race.c
    memory/reuse_clean.c atomics/repeated_loads_race.c atomics/repeated_loads_clean.c patterns/last_repeat_race.c
    patterns/long_copy_of_repeats_clean.c patterns/queue_late_write_race.c cpp/vector_race.cpp
""".split()
FILTERED = "threads/create_race.c sync/mutex_forgotten.c memory/heap_race.c sync/barrier_forgotten.c memory/mremap_race.c".split()


class Failure(Exception):
    """What is wrong, for the user."""


def expect(condition, *what):
    if not condition:
        raise Failure("\n".join(str(line) for line in what))


def text(data):
    return data.decode(errors="replace")


class Suite:
    def __init__(self, options):
        self.options = options
        self.trapline = str(options.trapline)
        self.results = harness.Results("log-online")
        self.scratch = Path(tempfile.mkdtemp(prefix="trapline-log-online-"))
        self.binaries = options.directory
        self.builds = races_run.Builds()

    # --- helpers

    def directory(self, name):
        path = self.scratch / name.replace("/", "_")
        path.mkdir()
        return path

    def run(self, command, cwd, **more):
        more.setdefault("timeout", LIMIT)
        outcome = harness.run([str(word) for word in command], cwd=cwd, env=ENVIRONMENT, marker=f"log-{os.getpid()}-{cwd.name}", **more)
        expect(not outcome.timed_out, f"{command} did not end within {more['timeout']} s", text(outcome.stderr))
        expect(not outcome.left_behind, f"{command} left behind {outcome.left_behind}")
        return outcome

    def offline(self, cwd, *command):
        outcome = self.run([self.trapline, *command], cwd)
        expect(outcome.status == 0, f"trapline {' '.join(map(str, command))}: {outcome.status_text()}", text(outcome.stdout), text(outcome.stderr))
        return text(outcome.stdout)

    def own(self, name):
        """A program of this directory."""
        return self.binaries / name

    def build_own(self):
        self.binaries.mkdir(parents=True, exist_ok=True)
        for source in sorted((HERE / "programs").glob("*.c")):
            if self.own(source.stem).exists() and self.own(source.stem).stat().st_mtime > source.stat().st_mtime:
                continue
            result = subprocess.run(["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", str(source), "-o",
                                     str(self.own(source.stem))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    timeout=120, check=False)
            if result.returncode != 0:
                sys.exit(result.stdout)

    def race_case(self, source, variant=None):
        source, _, named = str(source).partition(":")
        program = read_program(RACES / source, RACES)
        variant = variant or named or ("O2" if "O2" in program.variants else program.variants[0])
        case = races_run.Case(program, variant, self.binaries / "races")
        complaint = self.builds.build(case)
        expect(not complaint, "does not compile", complaint)
        return case

    @staticmethod
    def online_pairs(path, case):
        return sorted({race.lines for race in reports.from_json(json.loads(path.read_text()), case)})

    @staticmethod
    def replayed(path, detector):
        [entry] = [entry for entry in json.loads(path.read_text())["detectors"] if entry["name"] == detector]
        return entry["races"]

    def replayed_pairs(self, path, case, detector):
        def line_of(frame):
            file, number = frame.get("file", ""), frame.get("line", 0)
            if case.strip is not None:
                own = os.path.basename(frame.get("module", "")) == case.binary.name
                return reports.source_line(str(case.whole), frame["offset"], case.program.source.name) if own else 0
            return number if os.path.basename(file) == case.program.source.name else 0

        def line(access):
            return next(filter(None, map(line_of, [access["place"], *access.get("stack", [])])), 0)
        return sorted({tuple(sorted((line(race["earlier"]), line(race["later"])))) for race in self.replayed(path, detector)})

    def replay(self, cwd, log, detector):
        """The report of one replay as text and as JSON."""
        path = cwd / "replay.json"
        report = self.offline(cwd, "replay", log, f"--detector={detector}", "--quiet", f"--json={path}")
        return report, path.read_text()

    def check_repeatable(self, cwd, log, detector):
        """A second replay, and one of the log cut into pieces and put together again, give the same bytes."""
        first = self.replay(cwd, log, detector)
        expect(self.replay(cwd, log, detector) == first, "two replays differ")
        last = int(re.search(r"^sequence +up to (\d+)$", self.offline(cwd, "log", "info", log), re.M)[1])
        if last < 2:
            return
        threads = sorted({int(number) for number in re.findall(r"^\d+ T(\d+) ", self.offline(cwd, "log", "dump", log), re.M)})
        cuts = [["--sequence", 0, last // 2], ["--sequence", last // 2 + 1, last, "--threads", threads[0]]]
        if len(threads) > 1:
            cuts.append([*cuts[1][:-1], *threads[1:]])
        pieces = []
        for number, cut in enumerate(cuts):
            pieces.append(cwd / f"piece-{number}")
            self.offline(cwd, "log", "cut", log, *cut, "-o", pieces[-1])
        merged = cwd / "merged"
        self.offline(cwd, "log", "merge", *reversed(pieces), "-o", merged)
        expect(self.replay(cwd, merged, detector) == first, "the replay of the log that was cut and merged differs")
        for path in (*pieces, merged):
            path.unlink()

    def record(self, cwd, case, *options):
        native = self.run([case.binary], cwd)
        log, report = cwd / "log", cwd / "online.json"
        outcome = self.run([self.trapline, "run", f"--log={log}", *options, *case.program.options, "--", case.binary], cwd)
        expect(outcome.status == native.status and outcome.stdout == native.stdout,
               f"recorded: {outcome.status_text()}, {outcome.stdout!r}; natively: {native.status_text()}, {native.stdout!r}",
               text(outcome.stderr))
        return log, report, outcome

    def lines_of(self, name, *tags):
        """Line numbers of the tags in a program of this directory."""
        found = {}
        for number, line in enumerate((HERE / "programs" / f"{name}.c").read_text().splitlines(), 1):
            tag = re.search(r"// \[(\w+)\]", line)
            if tag:
                found[tag[1]] = number
        return [found[tag] for tag in tags]

    def races_in(self, cwd, log, name):
        """Pairs of lines of name.c that race in the log, by FastTrack."""
        report = cwd / (log.name + ".replayed.json")
        self.offline(cwd, "replay", log, "--detector=fasttrack", "--quiet", f"--json={report}")
        def line(access):
            return access["place"].get("line", 0) if os.path.basename(access["place"].get("file", "")) == f"{name}.c" else 0
        return {tuple(sorted((line(race["earlier"]), line(race["later"])))) for race in self.replayed(report, "fasttrack")}

    # --- recording and replaying

    def logs_of(self, cwd, log):
        """The logs of all processes, once they are whole."""
        logs = sorted(path for path in cwd.iterdir() if path == log or path.name.startswith(log.name + "."))
        for path in logs:
            if path != log:
                self.await_drain(int(path.name.split(".")[1]))
            self.offline(cwd, "log", "check", path)
        return logs

    def same_races(self, source, detector="fasttrack", variant=None):
        """What the detector finds online it finds in the logs, however often and however they are cut."""
        case = self.race_case(source, variant)
        cwd = self.directory(f"{case.name}-{detector}")
        lack = races_run.lacking(case)
        if lack:
            return lack
        log, report, outcome = self.record(cwd, case, f"--json={cwd / 'online.json'}", f"--detector={detector}")
        online, offline = self.online_pairs(report, case), set()
        for path in self.logs_of(cwd, log):
            offline.update(self.replayed_pairs_of(cwd, path, case, detector))
            self.check_repeatable(cwd, path, detector)
        offline = sorted(offline)
        expect(online == offline, f"online {online}, replayed {offline}", text(outcome.stderr))
        if detector == "fasttrack" and not case.program.limit(case.variant) and not case.program.may_miss.get("exact"):
            expect(case.program.clean == (not offline), f"replayed {offline}")
        shutil.rmtree(cwd)
        return None

    def replayed_pairs_of(self, cwd, log, case, detector):
        self.replay(cwd, log, detector)
        return self.replayed_pairs(cwd / "replay.json", case, detector)

    def compared(self):
        cwd = self.directory("compared")
        log, _, _ = self.record(cwd, self.race_case("sync/mutex_forgotten.c"))
        names = ("fasttrack", "acculock", "djit+", "eraser")
        table = self.offline(cwd, "replay", log, f"--detector={','.join(names)}", "--compare", "--quiet")
        for name in names:
            expect(re.search(rf"^{re.escape(name)} ", table, re.M), f"{name} is not in the comparison", table)

    def metadata(self):
        cwd = self.directory("metadata")
        case = self.race_case("threads/create_race.c")
        log, _, _ = self.record(cwd, case)
        info = self.offline(cwd, "log", "info", log)
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", str(case.binary)], stdout=subprocess.PIPE, text=True,
                                                                timeout=60, check=True).stdout)[1]
        for expected in (rf"^program +{re.escape(str(case.binary))}$", r"^policy +exact$", r"^accesses +all$", r"^clock +monotonic$",
                         r"^host kind +(hardware|shadow paging)$", r"^started +20", r"^missing +nothing$",
                         rf"^module .* {re.escape(str(case.binary))} {build_id}$", r"^module .*libc.so.6 \w{40}$"):
            expect(re.search(expected, info, re.M), f"no {expected}", info)

    def first_filter(self, source):
        cwd = self.directory(f"filter-{source}")
        case = self.race_case(source)
        log, report, _ = self.record(cwd, case, f"--json={cwd / 'online.json'}", "--log-filter=first")
        expect(re.search(r"^accesses +first$", self.offline(cwd, "log", "info", log), re.M), "the log does not say that it is filtered")
        online, offline = self.online_pairs(report, case), self.replayed_pairs_of(cwd, log, case, "fasttrack")
        expect(online == offline, f"online {online}, replayed from the filtered log {offline}")

    def needed(self, source, variant=None):
        """What FastTrack finds online it finds in a log of what it was told then, and, behind a filter, with late repeats in their places."""
        case = self.race_case(source, variant)
        cwd = self.directory(f"needed-{case.name}")
        lack = races_run.lacking(case)
        if lack:
            return lack
        log, report, outcome = self.record(cwd, case, f"--json={cwd / 'online.json'}", "--log-filter=fasttrack", "--repeats-after=0")
        online, offline, straight = self.online_pairs(report, case), set(), set()
        for path in self.logs_of(cwd, log):
            expect(re.search(r"^accesses +fasttrack$", self.offline(cwd, "log", "info", path), re.M), "the log does not say what it holds")
            offline.update(self.replayed_pairs_of(cwd, path, case, "fasttrack"))
            straight.update(self.replayed_pairs_of(cwd, path, case, "tree-exact+fasttrack"))
            for detector in ("fasttrack", "djit+"):
                self.check_repeatable(cwd, path, detector)
        expect(online == sorted(offline), f"online {online}, replayed {sorted(offline)}", text(outcome.stderr))
        expect(bool(offline) == bool(straight), f"told late {sorted(offline)}, in their places {sorted(straight)}")
        shutil.rmtree(cwd)
        return None

    def filter_is_shorter(self):
        cwd = self.directory("filter-size")
        counts = []
        for filtered in ("all", "first"):
            log = cwd / filtered
            self.run([self.trapline, "run", "--record-only", f"--log={log}", f"--log-filter={filtered}", "--", self.own("counter"), "2000"], cwd)
            counts.append(int(re.search(r"^events +(\d+),", self.offline(cwd, "log", "info", log), re.M)[1]))
        expect(counts[0] >= 8000 and counts[1] < 0.8 * counts[0], f"events: all {counts[0]}, first {counts[1]}")

    def late_repeats(self):
        """What is repeated in epoch after epoch is once in the log, and late."""
        cwd = self.directory("late-repeats")
        case = self.race_case("patterns/last_repeat_race.c")
        counts = {}
        for filtered in ("first", "fasttrack"):
            log, _, _ = self.record(cwd, case, "--record-only", f"--log-filter={filtered}", "--repeats-after=0")
            kinds = re.findall(r"^\d+ T\d+ (\S+)", self.offline(cwd, "log", "dump", log), re.M)
            counts[filtered] = {kind: kinds.count(kind) for kind in ("write", "earlier-write")}
        expect(counts["first"]["earlier-write"] == 0 < counts["fasttrack"]["earlier-write"] and
               counts["fasttrack"]["write"] < 0.5 * counts["first"]["write"], counts)
        # Text that other tools read has no such events.
        self.offline(cwd, "log", "export", log, "-o", cwd / "text")
        expect("w(" in (cwd / "text").read_text(), "no write in the exported text")

    def join_begin(self):
        """Who waits for a thread says so, nothing else, and joins it next; text that other tools read has no word for it."""
        cwd = self.directory("join-begin")
        log = cwd / "log"
        self.run([self.trapline, "run", "--record-only", f"--log={log}", "--", self.own("waiter")], cwd)
        events = re.findall(r"^\d+ (T\d+) (.*)", self.offline(cwd, "log", "dump", log), re.M)
        begins = [(i, thread, event.split()) for i, (thread, event) in enumerate(events) if event.startswith("join-begin")]
        expect(begins, "nobody waits")
        for i, thread, event in begins:
            following = next(other.split() for who, other in events[i + 1:] if who == thread)
            expect(following[:2] == ["join", event[1]], event, following)
        self.offline(cwd, "log", "export", log, "-o", cwd / "text")
        exported = (cwd / "text").read_text()
        expect("join(" in exported and "begin" not in exported, exported)

    def repeats_before_a_wait(self):
        """What a thread has repeated is told before it waits for another one, and not when that one comes for it."""
        cwd = self.directory("repeats-before-a-wait")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={log}", "--log-filter=fasttrack", "--repeats-after=0", "--", self.own("waiter")], cwd)
        expect(outcome.status == 0, outcome.status_text(), text(outcome.stderr))
        value = text(outcome.stdout).strip()
        dump = self.offline(cwd, "log", "dump", log)
        told = re.findall(rf"^\d+ T0 (join-begin|earlier-write (?={value}\+8 ))", dump, re.M)
        expect([event.strip() for event in told] == ["earlier-write", "join-begin"], told, dump)

    def record_only(self):
        cwd = self.directory("record-only")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={log}", "--", self.own("counter"), "50"], cwd)
        expect(outcome.status == 7 and outcome.stdout == b"begin\nend\n" and outcome.stderr == b"",
               outcome.status_text(), outcome.stdout, outcome.stderr)
        [line] = self.lines_of("counter", "counter")
        races = self.races_in(cwd, log, "counter")
        expect((line, line) in races, f"replayed races: {races}")

    def aborted(self):
        cwd = self.directory("aborted")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", f"--log={log}", "--", self.own("counter"), "50", "abort"], cwd)
        expect(outcome.status == -signal.SIGABRT and re.search(rb"^trapline: \d+ races? ", outcome.stderr, re.M), outcome.status_text(), outcome.stderr)
        self.offline(cwd, "log", "check", log)

    def one_thread(self):
        cwd = self.directory("one-thread")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", f"--log={log}", "--", "/bin/echo", "hello"], cwd)
        expect(outcome.status == 0 and outcome.stdout == b"hello\n" and outcome.stderr == b"", outcome)
        expect("0 events" in self.offline(cwd, "log", "check", log), "the log of a program with one thread is not empty")
        expect(sorted(path.name for path in cwd.iterdir()) == ["log"], list(cwd.iterdir()))

    # Paths and arguments need be no text.
    def any_bytes(self):
        cwd = self.directory("any-bytes")
        log, program = cwd / "log", cwd / "counter\udcff"
        shutil.copy(self.own("counter"), program)
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={log}", "--", program, "50"], cwd)
        expect(outcome.status == 7 and outcome.stderr == b"", outcome.status_text(), outcome.stderr)
        self.offline(cwd, "log", "check", log)
        expect("\ufffd" in self.offline(cwd, "log", "info", log), "the program is not named")

    # --- processes

    def family(self):
        cwd = self.directory("family")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={log}", "--", self.own("family")], cwd)
        pids = dict(line.split() for line in text(outcome.stdout).splitlines())
        expect(outcome.status == 0 and set(pids) == {"parent", "child", "last", "spawned"}, outcome.status_text(), outcome)
        expect(pids["child"] == pids["last"], pids)
        time.sleep(0.5)  # the drain of a process that ended is not waited for by others
        paths = {"parent": log, "child": cwd / f"log.{pids['child']}", "last": cwd / f"log.{pids['child']}.2",
                 "spawned": cwd / f"log.{pids['spawned']}"}
        expect({path.name for path in cwd.iterdir()} == {path.name for path in paths.values()}, sorted(cwd.iterdir()), pids)
        for name, path in paths.items():
            self.offline(cwd, "log", "check", path)
            [line] = self.lines_of("family", name)
            races = self.races_in(cwd, path, "family")
            expect(races == {(line, line)}, f"{name}: replayed {races}, expected line {line}", text(outcome.stderr))

    def native_exec(self):
        """With --follow=none what execve starts is not recorded, and what came before it is whole."""
        cwd = self.directory("native-exec")
        log = cwd / "log"
        outcome = self.run([self.trapline, "run", "--follow=none", "--record-only", f"--log={log}", "--", self.own("family")], cwd)
        pids = dict(line.split() for line in text(outcome.stdout).splitlines())
        expect(outcome.status == 0 and set(pids) == {"parent", "child", "last", "spawned"}, outcome.status_text(), outcome)
        time.sleep(0.5)  # the drain of a process that ended is not waited for by others
        child = cwd / f"log.{pids['child']}"
        expect(sorted(cwd.iterdir()) == [log, child], list(cwd.iterdir()), pids)
        for path, name in ((log, "parent"), (child, "child")):
            self.offline(cwd, "log", "check", path)
            [line] = self.lines_of("family", name)
            expect(self.races_in(cwd, path, "family") == {(line, line)}, name)

    def shell_exec(self):
        cwd = self.directory("shell-exec")
        log = cwd / "log"
        command = f"exec {self.own('counter')} 20"
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={log}", "--", "sh", "-c", command], cwd)
        expect(outcome.status == 7 and outcome.stderr == b"", outcome)
        expect([path.name for path in cwd.iterdir()] == ["log"], list(cwd.iterdir()))
        info = self.offline(cwd, "log", "info", log)
        expect(re.search(rf"^program +{self.own('counter')}$", info, re.M), info)
        expect(self.races_in(cwd, log, "counter"), "no race in the log of what the shell has become")

    def alone(self):
        cwd = self.directory("alone")
        outcome = self.run([self.trapline, "run", "--record-only", f"--log={cwd / 'log'}", "--", self.own("alone")], cwd)
        expect(outcome.status == 0 and outcome.stdout == b"parent 0\nchild 0\n", "the program noticed its recording", outcome)
        expect(len(list(cwd.iterdir())) == 2, list(cwd.iterdir()))

    # --- what goes wrong

    def start_endless(self, cwd, log):
        process = subprocess.Popen([self.trapline, "run", *STEPPED, "--record-only", f"--log={log}", "--", str(self.own("counter"))], cwd=cwd,
                                   env=dict(ENVIRONMENT), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        expect(process.stdout.readline() == b"begin\n", "the program did not start")
        return process

    @staticmethod
    def drain_of(pid):
        for entry in os.listdir("/proc"):
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--attended" in words and any(word.startswith(f"trapline-{pid}-".encode()) for word in words):
                return int(entry)
        return 0

    def await_drain(self, pid):
        deadline = time.monotonic() + 20
        while self.drain_of(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        expect(not self.drain_of(pid), "the drain goes on without its producer")
        left = [name for name in os.listdir("/dev/shm") if name.startswith(f"trapline-{pid}-")]
        expect(not left, f"shared memory is left: {left}")

    @staticmethod
    def until(condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            expect(time.monotonic() < deadline, f"waited 30 s for {what}")
            time.sleep(0.01)

    def killed_monitor(self):
        generator = random.Random(5)
        for kill in range(self.options.kills):
            cwd = self.directory(f"killed-monitor-{kill}")
            log = cwd / "log"
            process = self.start_endless(cwd, log)
            try:
                self.until(lambda: log.stat().st_size > 2000, "the log to grow")
                time.sleep(generator.random() * 0.3)
            finally:
                process.kill()
                process.communicate(timeout=30)
            self.await_drain(process.pid)
            info = self.offline(cwd, "log", "info", log)
            expect(re.search(r"^missing .*killed", info, re.M), info)
            expect(int(re.search(r"^events +(\d+),", info, re.M)[1]) > 20, info)
            [line] = self.lines_of("counter", "counter")
            races = self.races_in(cwd, log, "counter")
            expect((line, line) in races, f"replayed {races}", info)

    def killed_drain(self):
        generator = random.Random(6)
        for kill in range(self.options.kills):
            self.kill_drain(self.directory(f"killed-drain-{kill}"), generator.random() * 0.3)

    def kill_drain(self, cwd, delay):
        log = cwd / "log"
        with subprocess.Popen([self.trapline, "run", *STEPPED, "--record-only", f"--log={log}", "--", str(self.own("counter")), "8000"], cwd=cwd,
                              env=dict(ENVIRONMENT), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            expect(process.stdout.readline() == b"begin\n", "the program did not start")
            self.until(lambda: log.stat().st_size > 2000, "the log to grow")
            time.sleep(delay)
            drain = self.drain_of(process.pid)
            expect(drain, "no drain found")
            os.kill(drain, 9)
            out, err = process.communicate(timeout=LIMIT)
            err = text(err)
            expect(process.returncode == 7 and out == b"end\n", f"status {process.returncode}", out, err)
            saved = re.search(r"^trapline: .*was killed; `trapline log drain (\S+) (\S+)` saves", err)
            expect(saved and saved[2] == str(log) and err.count("\n") == 1, err)
        self.offline(cwd, "log", "drain", saved[1], saved[2])
        self.offline(cwd, "log", "check", log)
        events = int(re.search(r"^events +(\d+),", self.offline(cwd, "log", "info", log), re.M)[1])
        expect(events >= 8000, f"{events} events")
        expect(not os.path.exists("/dev/shm/" + saved[1]), "the segment is still there")

    def both_killed(self):
        generator = random.Random(7)
        for kill in range(self.options.kills):
            self.kill_both(self.directory(f"both-killed-{kill}"), generator)

    def kill_both(self, cwd, generator):
        log = cwd / "log"
        process = self.start_endless(cwd, log)
        try:
            self.until(lambda: log.stat().st_size > 2000, "the log to grow")
            time.sleep(generator.random() * 0.3)
            os.kill(self.drain_of(process.pid), 9)
            time.sleep(generator.random() * 0.05)
        finally:
            process.kill()
            process.communicate(timeout=30)
        [segment] = [name for name in os.listdir("/dev/shm") if name.startswith(f"trapline-{process.pid}-")]
        self.offline(cwd, "log", "info", log)
        self.offline(cwd, "log", "drain", segment, log)
        expect(self.races_in(cwd, log, "counter"), "no race in the saved log")

    def check_full(self, outcome):
        err = text(outcome.stderr)
        expect(outcome.status == 7 and outcome.stdout == b"begin\nend\n", outcome.status_text(), outcome.stdout, err)
        expect(err.count("\n") == 1 and re.search(r"^trapline: cannot write .*log: .*valid up to byte \d+; make room", err), err)

    def full_disk(self):
        cwd = self.directory("full-disk")
        place = cwd / "small"
        place.mkdir()
        script = 'mount -t tmpfs -o size=16k none "$1" && "$2" run --engine=step --record-only --log="$1/log" -- "$3" 5000; status=$?; cp "$1/log" "$4"; exit $status'
        words = ["unshare", "--mount", "--user", "--map-root-user"]
        probe = subprocess.run([*words, "sh", "-c", f"mount -t tmpfs -o size=16k none {place} && test -w /dev/kvm"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=30, check=False)
        if probe.returncode != 0:
            return "cannot mount a small file system in a name space of its own"
        outcome = self.run([*words, "sh", "-c", script, "sh", place, self.trapline, self.own("counter"), cwd / "copy"], cwd)
        self.check_full(outcome)
        # What is there, is whole.
        expect(self.races_in(cwd, cwd / "copy", "counter"), "no race in what was written")
        return None

    def file_size_limit(self):
        cwd = self.directory("file-size-limit")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        outcome = self.run([self.trapline, "run", *STEPPED, "--record-only", f"--log={cwd / 'log'}", "--", self.own("counter"), "5000"], cwd,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (15000, hard)))
        self.check_full(outcome)
        expect(self.races_in(cwd, cwd / "log", "counter"), "no race in what was written")
        outcome = self.run([self.trapline, "run", f"--log={cwd / 'none'}", "--", "/bin/echo", "started"], cwd,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (15000, 15000)))
        expect(outcome.status == 125 and outcome.stdout == b"" and outcome.stderr.count(b"\n") == 1 and b"ulimit" in outcome.stderr, outcome)

    def unwritable(self):
        cwd = self.directory("unwritable")
        (cwd / "directory").mkdir()
        for path in (cwd / "nowhere" / "log", cwd / "directory", Path("/proc/version")):
            outcome = self.run([self.trapline, "run", f"--log={path}", "--", "/bin/echo", "started"], cwd)
            err = text(outcome.stderr)
            expect(outcome.status == 125 and outcome.stdout == b"" and err.count("\n") == 1 and str(path) in err,
                   outcome.status_text(), outcome.stdout, err)
        expect([path.name for path in cwd.iterdir()] == ["directory"], list(cwd.iterdir()))

    def refused(self):
        cwd = self.directory("refused")
        for options, message in ((["--detector=eraser"], "trapline replay FILE --detector eraser"),
                                 (["--detector=tree+fasttrack"], "recorded executions only"),
                                 (["--detector=fastrack"], "there is no detector 'fastrack'"),
                                 (["--record-only"], "--record-only needs --log"),
                                 (["--log-filter=first"], "--log-filter needs --log"),
                                 (["--record-only", "--log=log", "--json=json"], "leave"),
                                 (["--track=none", "--log=log"], "--track=none")):
            outcome = self.run([self.trapline, "run", *options, "--", "/bin/echo", "started"], cwd)
            err = text(outcome.stderr)
            expect(outcome.status == 125 and outcome.stdout == b"" and err.count("\n") == 1 and message in err, options, outcome)
        expect(not list(cwd.iterdir()), list(cwd.iterdir()))

    # --- all of them

    def tests(self):
        yield "metadata", self.metadata
        if self.options.all:
            for program in read_programs(RACES):
                source = program.source.relative_to(RACES)
                for variant in program.variants:
                    yield f"all/{program.name}.{variant}", lambda s=source, v=variant: self.same_races(s, variant=v)
                    yield f"needed/{program.name}.{variant}", lambda s=source, v=variant: self.needed(s, v)
            return
        for source in RECORDED:
            yield f"fasttrack/{source}", lambda source=source: self.same_races(source)
        for source in ACCULOCK:
            yield f"acculock/{source}", lambda source=source: self.same_races(source, "acculock")
        for source in FILTERED:
            yield f"filter/{source}", lambda source=source: self.first_filter(source)
        for source in NEEDED:
            yield f"needed/{source}", lambda source=source: self.needed(source)
        for name in ("compared", "filter_is_shorter", "late_repeats", "join_begin", "repeats_before_a_wait", "record_only", "aborted", "one_thread", "any_bytes", "family", "native_exec", "shell_exec", "alone", "killed_monitor", "killed_drain",
                     "both_killed", "full_disk", "file_size_limit", "unwritable", "refused"):
            yield name, getattr(self, name)

    def test(self, name, function):
        started = time.monotonic()
        try:
            lack = function()
        except (Failure, OSError, ValueError, KeyError, subprocess.SubprocessError) as problem:
            self.results.fails(name, f"({time.monotonic() - started:.2f} s)", f"{type(problem).__name__}: {problem}")
            return
        if lack:
            self.results.skips(name, lack)
        else:
            self.results.passes(name, f"({time.monotonic() - started:.2f} s)")

    def build_all(self):
        self.build_own()
        for source in sorted({*RECORDED, *ACCULOCK, *FILTERED, *NEEDED}):
            self.race_case(source)
        self.results.passes("build")
        return self.results.finish()

    def run_all(self):
        self.build_own()
        wanted = [(name, function) for name, function in self.tests()
                  if any(fnmatch.fnmatch(name, pattern) for pattern in self.options.filter.split(","))]
        if not wanted:
            sys.exit("no test matches")
        try:
            with ThreadPoolExecutor(self.options.jobs) as pool:
                for future in [pool.submit(self.test, *test) for test in wanted]:
                    future.result()
        finally:
            if not self.results.failed:
                shutil.rmtree(self.scratch, ignore_errors=True)
        return self.results.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE, help="the trapline command")
    parser.add_argument("--filter", default="*", help="only tests that match one of these patterns, as 'fasttrack/*,family'")
    parser.add_argument("--all", action="store_true", help="only record and replay, but all programs of tests/races in all their builds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests to run at once")
    parser.add_argument("--kills", type=int, default=3, help="times to kill a recording monitor, its drain, and both")
    parser.add_argument("--build-only", action="store_true", help="build what is run without --all, and run nothing")
    parser.add_argument("--directory", type=Path, default=harness.ROOT / "build" / "log-online", help="where the programs are built")
    options = parser.parse_args()
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
    options.trapline = options.trapline.resolve()
    options.directory = options.directory.resolve()
    suite = Suite(options)
    return suite.build_all() if options.build_only else suite.run_all()


if __name__ == "__main__":
    sys.exit(main())
