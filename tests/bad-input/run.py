#!/usr/bin/python3
"""Hostile input: every case ends in time, with the native outcome or with one clear message and status 125, 126 or 127.

125: the monitor itself failed; 126: the program cannot be executed; 127: it was not found (as env(1) and timeout(1)).
"""

import argparse
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import harness  # noqa: E402
from broken_elf import corpus  # noqa: E402

ENV = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
LIMIT = 30.0

# What programs/hostile.c can do to itself, and how it ends natively.
HOSTILE = {
    "ud2": -4, "jump-null": -11, "hlt": -11, "noncanonical": -11, "bad-stack": -11, "munmap-all": -11, "munmap-stack": -11,
    "munmap-libc": -11, "mprotect-all": -11, "mprotect-code": -11, "huge-mmap": 0, "huge-mmap-touch": 0,
    "negative-mmap": 0, "wild-pointers": 0, "signal-bad-stack": -11, "exit-in-thread-leader": 5, "robust-list-wild": 3,
    "kill-self-9": -9, "stop-deep": 0, "close-all": 0, "rlimit-as": 0, "sigreturn-garbage": -11, "read-into-readonly": 0,
    "syscall-sweep": 0,
}


class Suite:
    def __init__(self, trapline, pattern, base):
        self.pattern = pattern
        self.base = base
        self.results = harness.Results("bad-input")
        # A copy that every user may run, wherever the build directory lies.
        self.trapline = self.install(trapline, base)
        base.chmod(0o755)
        self.sequence = 0

    @staticmethod
    def install(trapline, directory, library=True):
        """Copies the command, and what belongs beside it."""
        for name in ["trapline", *(["libtrapline-preload.so"] if library else [])]:
            shutil.copy(trapline.with_name(name), directory)
        return directory / "trapline"

    def run(self, argv, limit=LIMIT, **keywords):
        self.sequence += 1
        return harness.run(argv, cwd=self.base, env=ENV, timeout=limit, marker=f"bad-input-{os.getpid()}-{self.sequence}", **keywords)

    def under(self, *program, shell="", **keywords):
        """Runs the program under the monitor; `shell` is put before the command, e.g. to set limits."""
        argv = [str(self.trapline), "run", "--track=none", "--", *map(str, program)]
        if shell:
            argv = ["bash", "-c", f"{shell}; exec \"$@\"", "bash", *argv]
        return self.run(argv, **keywords)

    def wanted(self, name):
        return re.search(self.pattern, name)

    def judge(self, name, problem, outcome):
        if outcome.timed_out:
            problem = outcome.status_text()
        elif outcome.left_behind:
            problem = (problem or "") + f"; left running: {outcome.left_behind}"
        if problem:
            self.results.fails(name, problem, outcome.stderr.decode(errors="replace")[-800:])
        else:
            first = outcome.stderr.decode(errors="replace").strip().split("\n")[0]
            self.results.passes(name, f"{outcome.status_text()}{': ' + first[:110] if first else ''}")

    def expect_error(self, name, outcome, statuses, mention=""):
        self.judge(name, error_problem(outcome, statuses, mention), outcome)

    def expect_native(self, name, *program, shell="", allow_error=(), limit=LIMIT, native_status=None):
        """The monitor must give the native outcome, or (allow_error) one of these statuses with a clear message."""
        argv = ["bash", "-c", f"{shell}; exec \"$@\"", "bash", *map(str, program)] if shell else list(map(str, program))
        native = self.run(argv, limit)
        outcome = self.under(*program, shell=shell, limit=limit)
        problem = None
        if native.timed_out:
            problem = f"natively: {native.status_text()}"
        elif native_status is not None and native.status != native_status:
            problem = f"natively: {native.status_text()}, the test expects {native_status}"
        elif (outcome.status, outcome.stdout) != (native.status, native.stdout):
            lines = difflib.unified_diff(native.stdout.decode(errors="replace").splitlines(),
                                         outcome.stdout.decode(errors="replace").splitlines(), "native", "monitor", "", "", 0, "")
            problem = "\n          ".join([f"native: {native.status_text()}, monitor: {outcome.status_text()}", *list(lines)[:30]])
            if outcome.status in allow_error and not error_problem(outcome, allow_error, ""):
                problem = None
        self.judge(name, problem, outcome)


def error_problem(outcome, statuses, mention):
    text = outcome.stderr.decode(errors="replace").strip()
    if outcome.status not in statuses:
        return f"{outcome.status_text()}, expected {' or '.join(map(str, statuses))}"
    if not text:
        return "no message"
    if len(text.split("\n")) > 4:
        return "more than one clear message"
    if mention and mention not in text:
        return f"the message does not mention {mention}"
    if re.search(r"terminate called|Assertion|core dumped|std::", text):
        return "a crash rather than a message"
    return None


def native_start(path, cwd):
    """errno of execve, or the outcome of the run."""
    try:
        process = subprocess.Popen([path], cwd=cwd, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        return error.errno, None
    try:
        process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    return 0, process.returncode


def broken_files(suite):
    good = Path("/usr/bin/true").read_bytes()
    folder = suite.base / "broken"
    folder.mkdir()
    for name, content in corpus(good).items():
        if not suite.wanted("elf-" + name):
            continue
        path = folder / name
        path.write_bytes(content)
        path.chmod(0o755)
        errno, status = native_start(path, suite.base)
        outcome = suite.under(path)
        if errno:
            suite.expect_error("elf-" + name, outcome, [126, 127] if "interp" in name else [126], name)
        elif outcome.status == status:
            suite.judge("elf-" + name, None, outcome)
        elif status < 0:  # the kernel or the loader gave up half-way; a message instead is fine
            suite.expect_error("elf-" + name, outcome, [126], name)
        else:
            suite.judge("elf-" + name, f"native status {status}, monitor: {outcome.status_text()}", outcome)


def broken_paths(suite):
    base = suite.base
    (base / "directory").mkdir()
    (base / "plain").write_text("#!/bin/sh\necho ran\n")
    (base / "dangling").symlink_to("nowhere")
    (base / "loop").symlink_to("loop")
    scripts = {
        "script-missing-interpreter": "#!/no/such/interpreter\n", "script-empty-interpreter": "#!\n", "script-only-spaces": "#!   \n",
        "script-directory": "#!/usr\n", "script-long-line": "#!/" + "x" * 5000 + "\n", "script-itself": f"#!{base}/script-itself\n",
    }
    for name, text in scripts.items():
        (base / name).write_text(text)
        (base / name).chmod(0o755)
    cases = {
        "missing": ("./missing", [127]), "missing-on-path": ("no-such-command-here", [127]), "directory": ("./directory", [126]),
        "not-executable": ("./plain", [126]), "dangling-link": ("./dangling", [127]), "link-loop": ("./loop", [126, 127]),
        "through-a-file": ("./plain/x", [126, 127]), "empty-name": ("", [126, 127]), "name-too-long": ("./" + "n" * 5000, [126, 127]),
        "script-missing-interpreter": ("./script-missing-interpreter", [126, 127]), "script-directory": ("./script-directory", [126]),
        "script-empty-interpreter": ("./script-empty-interpreter", [126]), "script-only-spaces": ("./script-only-spaces", [126]),
        "script-long-line": ("./script-long-line", [126, 127]), "script-itself": ("./script-itself", [126]),
    }
    for name, (program, statuses) in cases.items():
        if suite.wanted(name):
            suite.expect_error(name, suite.under(program), statuses, program[:60])


def command_line(suite):
    trapline = str(suite.trapline)
    cases = {
        "option-unknown": ([trapline, "run", "--no-such-option", "--", "true"], "--no-such-option"),
        "option-bad-policy": ([trapline, "run", "--policy=nonsense", "--", "true"], "nonsense"),
        "option-bad-detector": ([trapline, "run", "--detector=nonsense", "--", "true"], "nonsense"),
        "option-bad-exit-code": ([trapline, "run", "--error-exitcode=300", "--", "true"], "300"),
        "json-not-writable": ([trapline, "run", "--json=/nonexistent/races.json", "--", "true"], "/nonexistent"),
        "no-suppressions": ([trapline, "run", "--suppressions=/nonexistent", "--", "true"], "/nonexistent"),
        "option-bad-follow": ([trapline, "run", "--follow=nonsense", "--", "true"], "nonsense"),
        "no-program": ([trapline, "run"], ""), "no-program-after-dashes": ([trapline, "run", "--"], ""),
        "option-no-range": ([trapline, "run", "--atomic=0x10+999999999999999999999", "--", "true"], "no ADDRESS+LENGTH"),
        "command-unknown": ([trapline, "nonsense"], ""), "no-command": ([trapline], ""),
        # What would be written over.
        "json-is-program": ([trapline, "run", "--json=program", "--", "./program"], "it is the program"),
        "log-is-program": ([trapline, "run", "--log=program", "--", "./program"], "it is the program"),
        "json-is-log": ([trapline, "run", "--json=new", "--log=./new", "--", "true"], "it is that of --json"),
        "json-is-suppressions": ([trapline, "run", "--suppressions=program", "--json=program", "--", "true"], "--suppressions"),
    }
    shutil.copy("/bin/true", suite.base / "program")
    for name, (argv, mention) in cases.items():
        if suite.wanted(name):
            outcome = suite.run(argv)
            problem = None
            if outcome.status not in (125, 2):
                problem = f"{outcome.status_text()}, expected 125"
            elif not outcome.stderr.strip() or mention.encode() not in outcome.stderr:
                problem = f"the message does not mention {mention!r}"
            suite.judge(name, problem, outcome)
    for name, argv in {"help": [trapline, "--help"], "run-help": [trapline, "run", "--help"], "version": [trapline, "--version"]}.items():
        if suite.wanted(name):
            outcome = suite.run(argv)
            suite.judge(name, None if outcome.status == 0 and outcome.stdout else "no help on standard output", outcome)
    if suite.wanted("not-written-over"):
        same = (suite.base / "program").read_bytes() == Path("/bin/true").read_bytes()
        suite.results.passes("not-written-over", "") if same else suite.results.fails("not-written-over", "the program is another one", "")
    # The limit holds for the file that standard error goes to here, as well.
    limited = '(ulimit -f 0; exec "$@") 2>&1 | cat >&2; exit ${PIPESTATUS[0]}'
    for name, (option, status, mention) in {"json": ("--json=new", 125, "File too large"), "log": ("--log=new", 125, "ulimit -H -f"),
                                            "run": ("--verbose", 0, "no races")}.items():
        if suite.wanted(f"file-size-limit-{name}"):
            outcome = suite.run(["bash", "-c", limited, "bash", trapline, "run", option, "--", "true"])
            problem = None if outcome.status == status else f"{outcome.status_text()}, expected {status}"
            if mention.encode() not in outcome.stderr:
                problem = f"the message does not mention {mention!r}"
            suite.judge(f"file-size-limit-{name}", problem, outcome)
    # The exit status is all that is left to tell.
    for name, where in {"stderr-full": "2>/dev/full", "stderr-closed": "2>&-"}.items():
        for what, arguments, status in (("program", "run -- /nonexistent", 127), ("command", "nonsense", 125), ("usage", "run", 125),
                                        ("replay", "replay /nonexistent", 125)):  # which is not beside this copy
            case = f"{name}-{what}"
            if suite.wanted(case):
                outcome = suite.run(["bash", "-c", f'"$0" {arguments} {where}', trapline])
                suite.judge(case, None if outcome.status == status else f"{outcome.status_text()}, expected {status}", outcome)
    suite.expect_error("thread-makers", suite.run([trapline, "run", "--track=libc.so.6", "--", "true"]), [125], "--track=libc.so.6")
    if suite.wanted("stdout-full"):
        outcome = suite.run(["bash", "-c", '"$@" >/dev/full', "bash", trapline, "doctor"])
        suite.judge("stdout-full", None if outcome.status >= 0 else outcome.status_text(), outcome)


def runtime_library(suite):
    """The library beside the command missing, or where it cannot be preloaded from."""
    cases = {
        "no-runtime-library": ("alone", False, "libtrapline-preload.so': No such file"),
        "runtime-library-with-space": ("a directory", True, "a space or a colon"),
    }
    for name, (place, library, mention) in cases.items():
        if suite.wanted(name):
            directory = suite.base / place
            directory.mkdir()
            trapline = suite.install(suite.trapline, directory, library)
            suite.expect_error(name, suite.run([str(trapline), "run", "--", "true"]), [125], mention)


def devices(suite):
    """The KVM device missing, not to be opened, not a KVM device."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if suite.run([*unshare, "true"]).status != 0:
        for name in ("no-kvm-device", "kvm-not-kvm"):
            suite.results.skips(name, "this user may not make a mount namespace; run as root")
    else:
        scripts = {
            "no-kvm-device": "mkdir -p d; touch d/null; mount --bind /dev/null d/null; mount --rbind d /dev",
            "kvm-not-kvm": "mount --bind /dev/zero /dev/kvm",
        }
        for name, script in scripts.items():
            for command, arguments in {"run": ["run", "--", "true"], "doctor": ["doctor"]}.items():
                if suite.wanted(f"{name}-{command}"):
                    outcome = suite.run([*unshare, "sh", "-euc", script + '; exec "$@"', "sh", str(suite.trapline), *arguments])
                    if command == "doctor":
                        text = outcome.stdout + outcome.stderr
                        suite.judge(f"{name}-doctor", None if outcome.status > 0 and b"/dev/kvm" in text else
                                    f"{outcome.status_text()}, expected failure that names /dev/kvm: {text[-300:]!r}", outcome)
                    else:
                        suite.expect_error(f"{name}-run", outcome, [125], "/dev/kvm")
    if suite.wanted("kvm-no-permission"):
        if os.geteuid() != 0 or os.stat("/dev/kvm").st_mode & 0o006:
            suite.results.skips("kvm-no-permission", "needs root, and a /dev/kvm that not everybody may open")
        else:
            as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            outcome = suite.run([*as_nobody, str(suite.trapline), "run", "--", "true"])
            suite.expect_error("kvm-no-permission", outcome, [125], "/dev/kvm")


def programs(suite):
    for source in sorted((HERE / "programs").glob("*.c")):
        built = suite.run(["gcc", "-O1", "-w", "-pthread", "-o", str(suite.base / source.stem), str(source)], 120)
        if built.status != 0:
            suite.results.fails(f"build-{source.stem}", built.stderr.decode()[-500:])
    sweep = suite.base / "hostile"
    for what, status in HOSTILE.items():
        if suite.wanted(what):
            suite.expect_native(what, sweep, what, native_status=status)
    if suite.wanted("musl-loader"):
        # glibc's loader by the name of musl's, which a machine need not have.
        loader = suite.base / "ld-musl-x86_64.so.1"
        shutil.copy("/lib64/ld-linux-x86-64.so.2", loader)
        source = suite.base / "musl.c"
        source.write_text("int main(void) { return 0; }\n")
        program = suite.base / "musl"
        suite.run(["gcc", f"-Wl,--dynamic-linker={loader}", "-o", str(program), str(source)], 120)
        suite.expect_error("musl-loader", suite.run([str(suite.trapline), "run", "--", str(program)]), [125], "musl")
    if suite.wanted("map-over-all"):
        suite.results.skips("map-over-all", "known limit: MAP_FIXED over the monitor's own memory is refused with ENOMEM")
    if suite.wanted("out-of-memory"):
        suite.expect_native("out-of-memory", sweep, "allocate", shell="ulimit -v 4000000", allow_error=[125])
    for kilobytes in (50000, 300000):
        if suite.wanted(f"little-address-space-{kilobytes}"):
            suite.expect_native(f"little-address-space-{kilobytes}", "true", shell=f"ulimit -v {kilobytes}", allow_error=[125, 126, 127])
    for count in (3, 5, 8, 12, 20):
        if suite.wanted(f"few-descriptors-{count}"):
            suite.expect_native(f"few-descriptors-{count}", "true", shell=f"ulimit -n {count}", allow_error=[125, 127])
    if suite.wanted("few-processes"):
        # KVM's own threads count too, so the shell's fork may fail.
        few = "ulimit -u 1; exec setpriv --reuid=65534 --clear-groups sh -c 'echo $(echo inner) outer'"
        suite.expect_native("few-processes", "bash", "-c", few, allow_error=[0, 2, 125])
    if suite.wanted("small-stack"):
        suite.expect_native("small-stack", "true", shell="ulimit -s 64", allow_error=[125])
    if suite.wanted("file-size-zero"):
        suite.expect_native("file-size-zero", "true", shell="ulimit -f 0", allow_error=[125])
    if suite.wanted("long-arguments"):
        suite.expect_native("long-arguments", "sh", "-c", "echo $# ${#1} ${#15}", "sh", *["x" * 100000] * 15)
    if suite.wanted("too-many-threads"):
        outcome = suite.under(sweep, "threads", limit=120)
        good = outcome.status == 0 and re.search(rb"created (1\d\d\d|9\d\d)", outcome.stdout)
        suite.judge("too-many-threads", None if good else f"{outcome.status_text()} {outcome.stdout[-200:]!r}", outcome)


def warnings(suite):
    """What goes on, but not as its user may think, is said once."""
    if suite.wanted("writable-code"):
        # Under exact, each access of its code is a step.
        argv = [str(suite.trapline), "run", "--policy=exact", "--", str(suite.base / "writable_code")]
        outcome = suite.run(argv, 120)
        told = outcome.stderr.count(b"trapline: warning: the program runs code that can be written while it can be executed")
        good = outcome.status == 0 and outcome.stdout == b"50000\n" and told == 1
        suite.judge("writable-code", None if good else f"{outcome.status_text()} {outcome.stdout!r}, told {told} times", outcome)


def error_output(suite):
    """The program's own files and its exit status stay what they are wherever the reports go, or do not."""
    for name, where in {"report-closed": "2>&-", "report-no-reader": "2> >(true)"}.items():
        if not suite.wanted(name):
            continue
        written = suite.base / f"{name}.txt"
        # Time for the reader to go.
        outcome = suite.run(["bash", "-c", f'"$@" {where}', "bash", "bash", "-c", 'sleep 0.3; exec "$@"', "bash",
                             suite.trapline, "run", "--policy=exact", "--", str(suite.base / "writes_file"), str(written)])
        got = written.read_bytes() if written.exists() else b"no file"
        problem = None if (outcome.status, got) == (3, b"data\n") else f"{outcome.status_text()}, written: {got[:100]!r}"
        suite.judge(name, problem, outcome)


def killed_monitor(suite):
    """SIGKILL for the monitor at any moment leaves no process behind."""
    rng = random.Random(4)
    if suite.wanted("kill-9-of-monitor"):
        for attempt in range(25):
            marker = f"killed-{os.getpid()}-{attempt}"
            env = dict(ENV, **{harness.MARKER: marker})
            monitor = subprocess.Popen([suite.trapline, "run", "--track=none", "--", suite.base / "hostile", "spin-threads"], env=env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * (0.12 if attempt < 20 else 0.6))
            monitor.kill()
            monitor.wait()
            left = harness.end_processes_with(marker, 2.0)
            if left:
                suite.results.fails("kill-9-of-monitor", f"attempt {attempt}: left running: {left}")
                return
        suite.results.passes("kill-9-of-monitor", "25 times")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE)
    parser.add_argument("--filter", default="", help="regular expression on the names")
    options = parser.parse_args()
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
    with tempfile.TemporaryDirectory(prefix="trapline-bad-input-") as base:
        suite = Suite(options.trapline, options.filter, Path(base))
        for part in (command_line, broken_paths, broken_files, runtime_library, devices, programs, warnings, error_output, killed_monitor):
            part(suite)
        return suite.results.finish()


if __name__ == "__main__":
    sys.exit(main())
