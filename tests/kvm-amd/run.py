#!/usr/bin/python3
"""Runs tests on hardware KVM's code (kvm_amd) inside an emulated machine, natively and under the monitor.

The smallest machine there is: busybox and what is tested, in memory. The verdicts are the lines its init prints.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT_OF_TESTS = HERE.parent
sys.path.insert(0, str(ROOT_OF_TESTS / "harness"))

import emulated  # noqa: E402
import harness  # noqa: E402

PROGRAMS = ["true", "bash", "pigz", "xz"]  # dynamic programs of this machine, as /guest-bin/NAME

# Guest programs (tests/guest/list.txt) of the fast part: what differs between the kinds of host.
GUEST_PROGRAMS = ["threads_(create_join|cancel_async|condvar_pingpong|tls_initial_exec|exit_from_thread|robust_mutex|signal_masks)",
                  "memory_(brk|fault_context|cross_thread_protect|file_shared|fork_protect|fixed_over|jit_same_page|mremap.*)",
                  "signals_.*(frame|vector|avx|nest|altstack|fault|tgkill|timer|restart|step|trap).*",
                  "processes_(fork_[^w]|vfork|spawn_a|exec_[^el]|wait).*"]

# Those that go over to the code cache by themselves, and those that are in partial code.
SHARING = ["threads_shared_pages_registers", "threads_condvar_pingpong"]

# Detection: programs of tests/races, clean or not as their names say. Debug information does not fit into the machine,
# so none that need it.
RACE_PROGRAMS = ["sync/mutex_*", "sync/barrier_*", "sync/rwlock_read_*", "sync/semaphore_clean", "threads/create_*",
                 "threads/join_*", "instructions/*_race", "memory/page_crossing_*", "memory/stack_race", "memory/reuse_*",
                 "libc/memcpy_*", "system/pipe_*", "system/fork_*", "system/signal_handler_clean",
                 "atomics/xchg_spinlock_clean", "patterns/partial_*"]

def guest_list(path):
    """(name, tags, exit status as a shell has it, variants) of each guest program."""
    programs = []
    for line in path.read_text().splitlines() if path.exists() else []:
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            name, tags, end, variants = fields
            status = int(end) if end.isdigit() else 128 + signal.Signals[end]
            programs.append((name, tags.split(","), status, variants.split(",")))
    return programs


def test_list(options):
    """Lines for the init, and the programs (source, path inside) they need."""
    lines = ["doctor 60 0 /bin/trapline doctor", "redirects 60 0 /bin/redirects_test"]
    programs = [(options.trapline, "/bin/trapline"), (options.trapline.parent / "redirects_test", "/bin/redirects_test")]
    programs += [(Path(shutil.which(name, path="/usr/bin:/bin") or name), f"/guest-bin/{name}") for name in PROGRAMS]
    programs += [(path, f"/workloads/{path.name}") for path in sorted((HERE / "workloads").iterdir())]
    for name, tags, status, variants in guest_list(options.guest_dir / "list.txt"):
        if options.all or ("fast" in tags and any(re.fullmatch(pattern, name) for pattern in GUEST_PROGRAMS)):
            for variant in variants:
                file = name if variant == "dynamic" else f"{name}.{variant}"
                if re.search(options.filter, f"guest-{file}"):
                    programs.append((options.guest_dir / file, f"/guest/{file}"))
                    lines.append(f"guest-{file} {options.limit} {status} /guest/{file}")
    programs += [(path, f"/guest/{path.name}") for path in sorted(options.guest_dir.glob("*.so"))]
    programs += [(options.guest_dir / name, f"/guest/{name}") for name in SHARING]
    lines += [f"{how}-{name} {options.limit} 0 /guest/{name}" for how in ("redirected", "partial") for name in SHARING]
    patterns = ",".join(f"{pattern}.O0" for pattern in RACE_PROGRAMS)
    subprocess.run([ROOT_OF_TESTS / "races" / "run.py", "--build-only", f"--filter={patterns}",
                    f"--directory={options.race_dir}"], check=True, stdout=subprocess.DEVNULL)
    variant = "gcc-O0"  # as its files are called
    built = set()
    for pattern in RACE_PROGRAMS:
        found = set(options.race_dir.glob(f"{pattern}.{variant}"))
        if not found:
            sys.exit(f"{options.race_dir}: no {pattern}.{variant}, which tests/races/run.py was to build")
        built |= found
    for path in sorted(built):
        name = f"{path.parent.name}-{path.stem}"
        if re.search(options.filter, f"race-{name}"):
            programs.append((path, f"/race/{name}"))
            lines.append(f"race-{name} {options.limit} {0 if 'clean' in name else 1} /race/{name}")
    programs.append((options.trapline.parent / "libtrapline-preload.so", "/bin/libtrapline-preload.so"))
    for line in (HERE / "tests.list").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    return [line for line in lines if re.search(options.filter, line.split()[0])], programs


def run_machine(options, lines, programs, results, attempt, is_last):
    """Runs the lines in a machine. Returns the names of those that failed, which count if this is the last one."""
    outstanding = [line.split()[0] for line in lines]
    failed, detail, tail, finished = [], [], [], []

    def fails(name, note, text=""):
        failed.append(name)
        if is_last:
            results.fails(name, note, text)
        else:
            print(f"kvm-amd: {name} fails, will be tried once more: {note}\n{text}", flush=True)

    def on_line(line):
        line = line.decode(errors="replace").rstrip()
        if options.console:
            print(line, flush=True)
        tail.append(line)
        del tail[:-30]
        match = re.search(r"LANE (UP|NOKVM|PASS|FAIL|SKIP|DONE|\|) ?(.*)", line)
        if not match:
            return
        kind, rest = match.groups()
        name, _, note = rest.partition(" ")
        if kind == "|":
            detail.append(rest)
            return
        if kind in ("UP", "NOKVM", "DONE"):
            print(f"kvm-amd: {kind} {rest}", flush=True)
            finished.append(kind)
        elif name in outstanding:
            outstanding.remove(name)
            if kind == "PASS":
                results.passes(name, note + (" (not the first attempt)" if attempt > 0 else ""))
                if name == "doctor":
                    print("\n".join("          " + text for text in detail))
            elif kind == "SKIP":
                results.skips(name, note)
            else:
                fails(name, note, "\n".join(detail))
        detail.clear()

    with tempfile.TemporaryDirectory(prefix="trapline-kvm-amd-") as directory:
        listing, initramfs = Path(directory, "tests"), Path(directory, "initramfs")
        listing.write_text("\n".join(lines) + "\n")
        emulated.make_initramfs(options.cache, initramfs, HERE / "init", emulated.KVM_MODULES, [(listing, "/tests"), *programs])
        in_time = emulated.boot(options.cache, initramfs, ["-smp", "2", "-m", "1024", "-serial", "stdio"], options.timeout, on_line)
    if outstanding or "DONE" not in finished:
        why = "the machine ended early" if in_time else f"the machine was stopped after {options.timeout} s"
        for name in outstanding:
            fails(name, f"no verdict: {why}")
        print("last console lines:\n" + "\n".join("          " + line for line in tail[-15:]))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trapline", type=Path, default=harness.DEFAULT_TRAPLINE)
    parser.add_argument("--guest-dir", type=Path, default=harness.ROOT / "build" / "bin" / "guest",
                        help="directory of guest test programs")
    parser.add_argument("--race-dir", type=Path, default=harness.ROOT / "build" / "races", help="where race programs are built")
    parser.add_argument("--cache", type=Path, default=harness.ROOT / "build" / "kvm-amd")
    parser.add_argument("--all", action="store_true", help="all guest programs, not only the fast part")
    parser.add_argument("--filter", default="", help="regular expression on the test names")
    parser.add_argument("--limit", type=int, default=40, help="seconds of emulated time for a guest program")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for the whole machine")
    parser.add_argument("--attempts", type=int, default=1, help="what fails is tried so many times, each time in a machine of its own")
    parser.add_argument("--console", action="store_true", help="show the whole console")
    options = parser.parse_args()
    results = harness.Results("kvm-amd")
    missing = harness.installed(["qemu-system-x86", "cpio", "xz-utils", "pigz", "gcc"])
    if missing:
        results.skips("all", f"not installed: {' '.join(missing)}; tools/setup test installs them")
        return results.finish()
    if not os.access(options.trapline, os.X_OK):
        sys.exit(f"no executable {options.trapline}: build first, or say --trapline PATH")
    emulated.fetch(options.cache)
    lines, programs = test_list(options)
    for attempt in range(options.attempts):
        again = run_machine(options, lines, programs, results, attempt, attempt + 1 == options.attempts)
        if not again:
            break
        lines = [line for line in lines if line.split()[0] in again]
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
