"""The tests of other race detectors: what to build, how to run it, and which verdict its own suite expects."""

import re
from dataclasses import dataclass, field

RACE, NONE, OUTSIDE = "race", "none", "outside"

# What configure would find on Debian 12.
CONFIG_H = "".join(f"#define {name} 1\n" for name in (
    "HAVE_ASM_UNISTD_H", "HAVE_BUILTIN_ATOMIC", "HAVE_PTHREAD_CONDATTR_SETCLOCK", "HAVE_PTHREAD_MUTEX_ERRORCHECK_NP",
    "HAVE_PTHREAD_MUTEX_RECURSIVE_NP", "HAVE_PTHREAD_MUTEX_TIMEDLOCK", "HAVE_PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP",
    "HAVE_PTHREAD_RWLOCK_TIMEDRDLOCK", "HAVE_PTHREAD_RWLOCK_TIMEDWRLOCK", "HAVE_PTHREAD_YIELD", "HAVE_TLS"))

PLATFORM = ("-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1")

# Empty definitions for annotations that a test expects its tool to bring; a preloaded library comes before them.
ANNOTATIONS_C = """void AnnotateBenignRaceSized(const char* file, int line, const volatile void* address, long size, const char* why) {}
void WTFAnnotateBenignRaceSized(const char* file, int line, const volatile void* address, long size, const char* why) {}
"""

# From the Makefile.am of both directories.
VALGRIND_FLAGS = {
    "condvar": ["-std=c++0x"], "shared_timed_mutex": ["-std=c++1y"], "timed_mutex": ["-std=c++0x"],
    "std_atomic": ["-std=c++0x"], "std_list": ["-std=c++0x"], "std_mutex": ["-std=c++0x"], "std_string": ["-std=c++0x"],
    "std_thread": ["-std=c++0x", "-Wl,--no-as-needed"], "std_thread2": ["-std=c++0x", "-Wl,--no-as-needed"],
    "omp_matinv": ["-fopenmp"], "omp_prime": ["-fopenmp"], "omp_printf": ["-fopenmp"],
    "tsan_unittest": ['-DTHREAD_WRAPPERS="tsan_thread_wrappers_pthread.h"'],
}


@dataclass
class Test:
    suite: str        # helgrind, drd, gcc
    name: str
    expected: str     # RACE, NONE or OUTSIDE
    reason: str = ""  # why outside, or why the expectation is not the suite's own
    build: tuple = () # compiler, flags, sources, libraries
    shared: tuple = ()  # the same for a shared object that must lie beside, and its name
    binary: str = ""  # file name of the program; several tests may share one
    arguments: list = field(default_factory=list)
    also: list = field(default_factory=list)  # names of tests that are the same run
    note: str = ""    # why the verdict is wrong

    @property
    def full_name(self):
        return f"{self.suite}/{self.name}"


def _expected_output(test):
    """The expected standard error of a valgrind test, for Linux on x86-64 as far as there are several."""
    base = test.with_suffix(".stderr.exp")
    if base.exists():
        return base.read_text(errors="replace")
    variants = sorted(test.parent.glob(test.stem + ".stderr.exp*"))
    for wanted in ("-64bit", "-x86", "-linux-x86", "-glibc2.8", "-linux", "1"):
        for variant in variants:
            if variant.name.endswith(".exp" + wanted):
                return variant.read_text(errors="replace")
    return variants[0].read_text(errors="replace") if variants else ""


def _valgrind_tests(root, tool):
    runs = {}
    for description in sorted((root / tool / "tests").glob("*.vgtest")):
        # A field may have white space before its colon.
        fields = dict(re.findall(r"^(\w+)[ \t]*:[ \t]*(.*)$", description.read_text(), re.M))
        words = fields["prog"].split() + fields.get("args", "").split()
        source = (description.parent / words[0]).resolve()
        output = _expected_output(description)
        racy = re.search(r"Possible data race|Conflicting (load|store)|<kind>(Race|ConflictingAccess)</kind>", output)
        test = Test(tool, description.stem, RACE if racy else NONE, arguments=words[1:])
        code = next((path for path in (source.with_suffix(".c"), source.with_suffix(".cpp")) if path.exists()), None)
        if source.name == "dlopen_main":
            test.shared = (["gcc", "-g", "-shared", "-fPIC", str(source.with_name("dlopen_lib.c"))], "dlopen_lib.so")
        if code is None:
            test.expected, test.reason = OUTSIDE, "a program of another directory of tests"
        else:
            flags = VALGRIND_FLAGS.get(source.name, [])
            test.binary = f"{source.parents[1].name}-{source.name}"
            test.build = ("gcc" if code.suffix == ".c" else "g++", "-O0", "-g", "-w", *PLATFORM, "-I", str(root), "-I", str(root / "include"),
                          *flags, str(code), "-pthread", "-lm", "-ldl", "-lrt")
        runs[test.name] = test
    return runs.values()


def _gcc_tests(root):
    sources = sorted([*(root / "c-c++-common/tsan").glob("*.c"), *(root / "g++.dg/tsan").glob("*.C"),
                      *(root / "gcc.dg/tsan").glob("*.c")])
    for source in sources:
        text = source.read_text(errors="replace")
        compiler = "g++" if source.suffix == ".C" else "gcc"
        flags = " ".join(re.findall(r'dg-(?:additional-)?options\s+"([^"]*)"\s*(?:}|{ target \*)', text)).split()
        flags = [flag for flag in flags if not flag.startswith(("-fsanitize", "-fdump", "--param"))]
        libraries = [flag for flag in flags if flag.startswith("-l")]
        flags = [flag for flag in flags if flag not in libraries]
        more = [str(source.parent / name) for name in re.findall(r"dg-additional-sources\s+(\S+)", text)]
        output = " ".join(re.findall(r"dg-output.*", text))
        for level in ("-O0", "-O2"):
            test = Test("gcc", source.stem + level.replace("-", "."), NONE)
            if re.search(r"dg-do\s+compile", text):
                test.expected, test.reason = OUTSIDE, "a test of the compiler alone; the program is not run"
            elif "dg-final" in text:
                test.expected, test.reason = OUTSIDE, "a test of the code that the sanitizer's compiler pass makes"
            elif "data race" in output:
                test.expected = RACE
            test.binary = f"gcc-{test.name}"
            if "AnnotateBenignRaceSized" in text:
                test.shared = (["gcc", "-shared", "-fPIC", "-w", str(root.parent / "annotations.c")], "libannotations.so")
                libraries += ["-L{binaries}", "-Wl,-rpath,{binaries}", "-lannotations"]
            test.build = (compiler, level, "-g", "-w", *flags, str(source), *more, "-pthread", "-ldl", *libraries)
            yield test


def read_tests(sources, notes):
    """All tests, with what the notes say about them; tests that are the same run of the same program are one."""
    tests = [*_valgrind_tests(sources / "valgrind", "helgrind"), *_valgrind_tests(sources / "valgrind", "drd"),
             *_gcc_tests(sources / "gcc")]
    unused = set(notes)
    for test in tests:
        for key in (test.full_name, re.sub(r"\.O[02]$", "", test.full_name)):
            if key in notes:
                unused.discard(key)
                entry = notes[key]
                test.expected = entry.get("expected", test.expected)
                test.reason = entry.get("why", test.reason)
                test.note = entry.get("note", test.note)
    if unused:
        raise ValueError("notes about tests that do not exist: " + " ".join(sorted(unused)))
    merged = {}
    for test in tests:
        key = (test.binary or test.full_name, tuple(test.arguments))
        twin = merged.setdefault(key, test)
        if twin is test:
            continue
        twin.also.append(test.full_name)
        twin.note = twin.note or test.note
        if {twin.expected, test.expected} == {RACE, NONE}:
            twin.expected = RACE
            twin.reason = twin.reason or test.reason or f"only one of {twin.full_name}, {test.full_name} looks for this race"
        elif test.expected == OUTSIDE and twin.expected != OUTSIDE and test.reason and "format" not in test.reason:
            twin.expected, twin.reason = OUTSIDE, test.reason
    return list(merged.values())
