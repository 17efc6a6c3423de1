#!/usr/bin/env python3
"""The preload library exports what it stands in front of, with the hook for its tests, and nothing else: every name is
also one of libc's, the C++ library's, libgcc's, libgomp's, libomp's, libc++'s or an allocator's, or an annotation. And it needs libc alone."""

import re
import subprocess
import sys

LIBOMP = re.compile(r"__kmpc_\w+|ompt_start_tool")
LIBCXX = re.compile(r"_ZNSt3__1\w+|__cxa_(in|de)crement_exception_refcount")
ANNOTATIONS = re.compile(r"(WTF)?Annotate[A-Z]\w*|__tsan_(acquire|release|mutex_\w+|\w+_fiber|set_fiber_name|"
                         r"switch_to_fiber|java_\w+)")
ALLOCATORS = re.compile(r"(mi|je|tc|omp|kmp)_\w+|(m|r|sd|d)allocx")
HOOK = "trapline_preload_set_interface"


def names(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


def library(name):
    return subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()


preload = sys.argv[1]
known = set().union(*(names(library(name)) for name in ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1")))
unknown = sorted(name for name in names(preload) if name not in known and name != HOOK
                 and not LIBOMP.fullmatch(name) and not LIBCXX.fullmatch(name) and not ANNOTATIONS.fullmatch(name) and not ALLOCATORS.fullmatch(name))
needed = re.findall(r"NEEDED.*\[(.*)\]",
                    subprocess.run(["readelf", "-d", preload], check=True, capture_output=True, text=True).stdout)
# Calls of its own that go to its own wrappers, or to whoever stands in front of them.
relocations = subprocess.run(["readelf", "-rW", preload], check=True, capture_output=True, text=True).stdout
called = set(re.findall(r"R_X86_64_(?:JUMP_SLOT|GLOB_DAT) +\S+ +(\w+)", relocations))
own = sorted(called & names(preload))
failures = []
if unknown:
    failures.append(f"exports unknown names: {unknown}")
if HOOK not in names(preload):
    failures.append(f"lacks {HOOK}")
if needed != ["libc.so.6"]:
    failures.append(f"needs {needed}, not libc alone")
if own:
    failures.append(f"calls its own wrappers: {own}")
for failure in failures:
    print(f"{preload}: {failure}")
print(f"{len(names(preload))} names")
sys.exit(1 if failures else 0)
