"""What the test runners share: bounded process runs, clean-up of what a run leaves behind, result lines.

Every runner ends with one line `N passed, N failed, N skipped`, which tools/test adds up.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_TRAPLINE = ROOT / "build" / "bin" / "trapline"
MARKER = "TRAPLINE_TEST_MARKER"  # environment variable by which processes of a run are found again


def signal_name(number):
    """Those that the C library keeps for itself, 32 and 33, have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass
class Outcome:
    """How one process ended. `status` is negative for death by a signal, as in subprocess."""

    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    left_behind: list = field(default_factory=list)  # command lines of processes that outlived it

    def status_text(self):
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s (time limit)"
        if self.status < 0:
            return f"killed by {signal_name(-self.status)}"
        return f"exit status {self.status}"


def is_alive(pid):
    """Whether any thread of the process runs; the first may have ended before the others."""
    for task in Path("/proc", pid, "task").iterdir():
        if (task / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
            return True
    return False


def processes_with(marker):
    """{pid: command line} of the live processes whose initial environment holds the marker."""
    wanted = f"{MARKER}={marker}".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            tasks = [task for task in os.listdir(f"/proc/{entry}/task") if task != entry]
            environ = Path("/proc", entry, "environ").read_bytes()
            if not environ and tasks:  # the first thread has ended, the process has not
                environ = Path("/proc", entry, "task", tasks[0], "environ").read_bytes()
            if wanted in environ.split(b"\0") and is_alive(entry):
                cmdline = Path("/proc", entry, "cmdline").read_bytes()
                found[int(entry)] = cmdline.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile
    return found


def end_processes_with(marker, patience=0.0):
    """Kills what a run left behind, after `patience` seconds; returns the command lines of the killed."""
    deadline = time.monotonic() + patience
    left = processes_with(marker)
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = processes_with(marker)
    killed = list(left.values())
    for _ in range(50):
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
        left = processes_with(marker)
    return killed


def run(argv, *, cwd, env, timeout, marker, stdin=b"", patience=0.3, preexec_fn=None):
    """Runs argv to its end or its time limit and collects everything a user could see of it.

    Output goes through files, so a process left behind that keeps a pipe open cannot hold the runner.
    """
    env = dict(env, **{MARKER: marker})
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as inp:
        inp.write(stdin)
        inp.seek(0)
        started = time.monotonic()
        process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=inp, stdout=out, stderr=err,
                                   start_new_session=True, restore_signals=True, preexec_fn=preexec_fn)
        expired = threading.Event()

        def expire():
            expired.set()
            process.kill()
            end_processes_with(marker)

        limit = threading.Timer(timeout, expire)  # Popen.wait with a time limit would poll, and blur the times
        limit.start()
        process.wait()
        seconds = time.monotonic() - started
        limit.cancel()
        limit.join()
        timed_out = expired.is_set()
        left = end_processes_with(marker, 0 if timed_out else patience)
        out.seek(0)
        err.seek(0)
        return Outcome(process.returncode, out.read(), err.read(), seconds, timed_out, [] if timed_out else left)


def installed(packages):
    """The packages of the list that are not installed."""
    if not packages:
        return []
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    present = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in present]


class Results:
    """Counts and prints one line per test; safe to use from several threads."""

    def __init__(self, suite):
        self.suite = suite
        self.passed = 0
        self.failed = []
        self.skipped = []
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def _line(self, verdict, name, note):
        elapsed = time.monotonic() - self._started
        print(f"[{elapsed:6.1f}s] {verdict} {self.suite}/{name}{'  ' + note if note else ''}", flush=True)

    def passes(self, name, note=""):
        with self._lock:
            self.passed += 1
            self._line("PASS", name, note)

    def fails(self, name, note="", detail=""):
        with self._lock:
            self.failed.append(name)
            self._line("FAIL", name, note)
            for line in detail.splitlines():
                print("          " + line)
            sys.stdout.flush()

    def skips(self, name, why):
        with self._lock:
            self.skipped.append((name, why))
            self._line("SKIP", name, f"({why})")

    def finish(self):
        """Prints the closing line; the value is the runner's exit status."""
        if self.failed:
            print(f"{self.suite}: failed: {' '.join(sorted(self.failed))}")
        for name, why in self.skipped:
            print(f"{self.suite}: SKIPPED {name}: {why}")
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped", flush=True)
        return 1 if self.failed else 0
