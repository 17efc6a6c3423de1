#!/usr/bin/env python3
"""Runs programs natively, under the preload library alone, and under the library with a double of the agent that
takes every report. All three must write the same and end the same; also with other allocators, where they are
installed. One PASS, FAIL or SKIP line each, then `N passed, N failed, N skipped`; status 0 only if none failed."""

import argparse
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--library", required=True, help="libtrapline-preload.so")
parser.add_argument("--double", required=True, help="libpreload_double.so")
parser.add_argument("--programs", required=True, help="directory of the programs built for this test")
arguments = parser.parse_args()
programs = pathlib.Path(arguments.programs).resolve()
LIBRARY = str(pathlib.Path(arguments.library).resolve())
DOUBLE = str(pathlib.Path(arguments.double).resolve())


def program(name, *rest):
    return [str(programs / f"preload_{name}"), *rest]


def plugin(name):
    return str(programs / f"preload_{name}.so")


PYTHON_THREADS = """
import threading, queue, ctypes, hashlib, json
q = queue.Queue()
def work():
    while (item := q.get()) is not None: results.append(hashlib.sha256(str(item).encode()).hexdigest())
results = []
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for i in range(200): q.put(i)
for t in threads: q.put(None)
for t in threads: t.join()
print(json.dumps(sorted(results)))
libc = ctypes.CDLL(None)
print(libc.strlen(b"five!"), libc.abs(-3))
"""

C_SCRIPT = r"""
cd "$(mktemp -d)"
printf '#include <stdio.h>\nint main(void) { puts("built"); return 3; }' > p.c
gcc -O2 p.c -o p && ./p; echo $?
"""

COMMANDS = {
    "early": program("early"),
    "fresh_heap": program("fresh_heap"),
    "plugin": program("plugin_host", plugin("plugin"), plugin("plugin")),
    "openmp_plugin": program("plugin_host", plugin("openmp_plugin"), plugin("plugin"), plugin("openmp_plugin")),
    "own_malloc": program("own_malloc"),
    "own_c11": program("own_c11"),
    "sanitized": program("sanitized"),
    "own_new": program("own_new"),
    "new_handler": program("new_handler"),
    "free_twice": program("corrupt", "twice"),
    "free_inside": program("corrupt", "inside"),
    "free_stack": program("corrupt", "stack"),
    "free_huge": program("corrupt", "huge"),
    "ending_threads": program("ending_threads"),
    "forks": program("forks"),
    "signals": program("signals"),
    "ls": ["ls", "-l", "/usr/lib"],
    "bash": ["bash", "-c", "for i in 1 2 3; do echo $(echo $i | cat | tr 1 x); done; exit 7"],
    "sh_kill": ["sh", "-c", "kill -SEGV $$"],
    "awk": ["awk", 'BEGIN { for (i = 0; i < 1000; ++i) a[i % 7] = a[i % 7] i; for (k in a) print k, a[k] }'],
    "sort": ["bash", "-c", "seq 20000 -1 1 | sort --parallel=4 -n | md5sum"],
    "xz": ["bash", "-c", "seq 200000 | xz -T4 --block-size=65536 -1 | xz -dc | md5sum"],
    "perl": ["perl", "-e", 'printf("%s %5.2f %-5s|\\n", "a" x 10, 3.14159, "left")'],
    "python": [sys.executable, "-c", PYTHON_THREADS],
    "python_imports": [sys.executable, "-c", "import ssl, sqlite3, decimal, ctypes; print(decimal.Decimal(1) / 7)"],
    "compiler": ["bash", "-c", C_SCRIPT],
    "git": ["git", "--version"],
}
# What the allocator says of errors, or how it was replaced, is its own affair.
OF_LIBC_ALLOCATOR = {"sanitized", "fresh_heap", "free_twice", "free_inside", "free_stack", "free_huge", "own_malloc"}

passed = failed = skipped = 0


def run(command, preload, environment):
    settings = dict(os.environ, LC_ALL="C", **environment)
    if preload:
        settings["LD_PRELOAD"] = ":".join(preload)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=settings,
                                   start_new_session=True)
        try:
            status = process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            status = process.wait()
            return "out of time", b"", b""
        output.seek(0)
        errors.seek(0)
        return status, output.read(), re.sub(rb"line \d+: +\d+ ", b"line N: PID ", errors.read())


def check(name, command, allocator, environment):
    global passed, failed, skipped
    if not shutil.which(command[0]):
        print(f"SKIP {name}: no {command[0]} here")
        skipped += 1
        return
    native = run(command, allocator, environment)
    for variant, preload in (("alone", [LIBRARY]), ("double", [LIBRARY, DOUBLE])):
        found = run(command, preload + allocator, environment)
        if found == native:
            print(f"PASS {name} {variant}")
            passed += 1
        else:
            failed += 1
            print(f"FAIL {name} {variant}")
            for what, expected, actual in zip(("status", "output", "errors"), native, found):
                if expected != actual:
                    print(f"  {what} natively: {expected!r:.600}\n  {what} with it:  {actual!r:.600}")


def allocator_library(name):
    return sorted(glob.glob(f"/usr/lib/x86_64-linux-gnu/{name}") + glob.glob(f"/usr/local/lib/{name}"))


for name, command in COMMANDS.items():
    check(name, command, [], {})
check("early, bound at start", COMMANDS["early"], [], {"LD_BIND_NOW": "1"})
check("plugin, bound at start", COMMANDS["plugin"], [], {"LD_BIND_NOW": "1"})

tcmalloc = os.environ.get("TRAPLINE_TEST_TCMALLOC")
for allocator, pattern in (("jemalloc", "libjemalloc.so.2"), ("tcmalloc", "libtcmalloc_minimal.so.4")):
    found = [tcmalloc] if allocator == "tcmalloc" and tcmalloc else allocator_library(pattern)
    if not found:
        print(f"SKIP {allocator}: {pattern} IS NOT INSTALLED, NOTHING IS KNOWN OF IT")
        skipped += 1
        continue
    for name, command in COMMANDS.items():
        if name not in OF_LIBC_ALLOCATOR:
            check(f"{name} with {allocator}", command, found[:1], {})

print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)
