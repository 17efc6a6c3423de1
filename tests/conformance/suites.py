"""The tests of other race detectors: what to build, how to run it, and which verdict its own suite expects."""

import re
from dataclasses import dataclass, field
from pathlib import Path

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
    suite: str        # helgrind, drd, gcc, llvm
    name: str
    expected: str     # RACE, NONE or OUTSIDE
    reason: str = ""  # why outside, or why the expectation is not the suite's own
    build: tuple = () # compiler, flags, sources, libraries
    shared: list = field(default_factory=list)  # the same for shared objects that must lie beside, each with its name
    runtime: tuple = ()  # likewise what stands for ThreadSanitizer's runtime, and the options that link it
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
            test.shared = [(["gcc", "-g", "-shared", "-fPIC", str(source.with_name("dlopen_lib.c"))], "dlopen_lib.so")]
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
                test.shared = [(["gcc", "-shared", "-fPIC", "-w", str(root.parent / "annotations.c")], "libannotations.so")]
                libraries += ["-L{binaries}", "-Wl,-rpath,{binaries}", "-lannotations"]
            test.build = (compiler, level, "-g", "-w", *flags, str(source), *more, "-pthread", "-ldl", *libraries)
            yield test


# Files of these names are never about the races of a program that is run.
LLVM_OUTSIDE = {
    "bench_*": "a benchmark",
    "debug_*": "a test of ThreadSanitizer's interface for debuggers",
    "ignore_lib*": "a race, and libraries of which ThreadSanitizer is told to see nothing",
    "ignorelist*": "a test of the compiler's list of functions to leave alone",
}

# What only ThreadSanitizer has: its questions, its hooks, accesses that are told and not made, and what its compiler pass calls.
LLVM_INTERFACE = re.compile(r"""\b(__tsan_(?:atomic\d+_\w+|default_options|flush_memory|func_entry|get_\w*(?:report|alloc)\w*|java_find|
    locate_address|on_(?:initialize|finalize|report)|(?:read|write)\w*_pc|test_only_on_fork|unaligned_\w+)|__interceptor_\w+|
    __sanitizer_unaligned_\w+)\s*\(""", re.X)

# What REQUIRES may ask for and finds here.
LLVM_REQUIRES = {"linux", "x86_64-target-arch", "stable-runtime", "glibc-2.30", "android-30"}

# Options of ThreadSanitizer that change which races it tells of.
LLVM_QUIET = re.compile(r"suppressions=|ignore_noninstrumented_modules=1|report_atomic_races=0")


def _llvm_expectation(text, prefixes):
    """RACE or NONE by the lines that FileCheck looks for, and why where their error is no race."""
    errors = re.findall(rf"\b(?:{'|'.join(prefixes)})(?:-NEXT|-SAME|-DAG)?:\s.*?"
                        r"(?:WARNING: ThreadSanitizer: (.*)|(data race|reported \d+ warnings))", text)
    errors = [first or second for first, second in errors]
    if any(error.startswith(("data race", "heap-use-after-free", "reported")) for error in errors):
        return RACE, ""
    return NONE, f"its error is no race: {errors[0].strip()}" if errors else ""


def _llvm_runs(text):
    """What the RUN lines do: programs' compilers and flags, shared objects' with the ends of their names, and runs: number of
    the program, its arguments, and what is expected."""
    programs, shared, runs = [], [], []
    flag = re.compile(r"-(O\d|-?std=|[DlL]\S|f(?!sanitize|no-sanitize)|m(?!llvm)|pie|shared|rdynamic)")
    current = None
    for command in re.split(r"\n|&&", "\n".join(re.findall(r"RUN:(.*)", text)).replace("\\\n", " ")):
        words = command.split()
        if "%clang" in command:
            flags = [word for word in words if flag.match(word)]
            if not any(word.startswith("-O") for word in flags):
                flags.insert(0, "-O1")
            line = ("clang++" if "%clangxx_tsan" in command else "clang", *flags)
            if "-shared" in flags:
                shared.append((line, words[words.index("-o") + 1].removeprefix("%t")))
            elif "-mllvm" in words or "-fno-sanitize-thread" in command:
                current = None  # without a part of ThreadSanitizer, which so finds less than there is
            else:
                if line not in programs:
                    programs.append(line)
                current = programs.index(line)
        elif "%run" in command and current is not None:
            arguments = re.search(r"%run(?: setarch \S+ -R)? %t\S*(.*?)(?:\s2?>|\||$)", command)[1].split()
            prefixes = ",".join(re.findall(r"-check-prefix(?:es)?[= ]([\w,%-]+)", command) or ["CHECK"]).split(",")
            run = (current, arguments, _llvm_expectation(text, prefixes))
            quiet = run[2][0] == NONE and LLVM_QUIET.search(command)
            if not quiet and not any(run[:2] == other[:2] for other in runs):
                runs.append(run)
    return programs, shared, runs


def _llvm_outside(source, text, runs):
    """Why the test is not about the races of a normal program, or nothing."""
    reason = next((reason for pattern, reason in LLVM_OUTSIDE.items() if source.match(pattern)), "")
    unmet = [word for word in re.findall(r"[\w.-]+", " ".join(re.findall(r"REQUIRES:(.*)", text))) if word not in LLVM_REQUIRES]
    interface = LLVM_INTERFACE.search(text)
    if reason:
        return reason
    if unmet:
        return f"not for this system, as its REQUIRES says: {unmet[0]}"
    if interface:
        return f"about {interface[1]}, which only ThreadSanitizer has"
    if re.search(r"XFAIL: \*", text):
        return "ThreadSanitizer is expected to fail"
    if not runs:
        return "an error, and an option of ThreadSanitizer to keep quiet about it"
    return ""


def _llvm_tests(root):
    directory = root / "test" / "tsan"
    support = Path(__file__).with_name("tsan_support.c")
    for source in sorted(path for pattern in ("*.c", "*.cpp", "Linux/*.c", "Linux/*.cpp") for path in directory.glob(pattern)):
        text = source.read_text(errors="replace")
        name = str(source.relative_to(directory))
        programs, shared, runs = _llvm_runs(text)
        outside = _llvm_outside(source, text, runs)
        if outside:
            yield Test("llvm", name, OUTSIDE, outside)
            continue

        def command(line):
            standard = ["-std=c++11"] if source.suffix == ".cpp" else []
            return (line[0], "-g", "-w", *standard, *line[1:], "-I", str(root / "test"), "-I", str(root / "include"), str(source))

        for number, (program, arguments, (expected, reason)) in enumerate(runs, 1):
            test = Test("llvm", name + (f".{number}" if number > 1 else ""), expected, reason, arguments=arguments)
            test.binary = "llvm-" + name.replace("/", "-") + (f".{program + 1}" if program > 0 else "")
            test.shared = [(command(line), test.binary + end) for line, end in shared]
            test.build = (*command(programs[program]), "-pthread", "-ldl", "-lrt")
            test.runtime = (["gcc", "-O2", "-w", "-shared", "-fPIC", str(support)], "libtsan.so.0",
                            ["-L{binaries}", "-Wl,-rpath,{binaries}", "-l:libtsan.so.0"])
            yield test


def read_tests(sources, notes):
    """All tests, with what the notes say about them; tests that are the same run of the same program are one."""
    tests = [*_valgrind_tests(sources / "valgrind", "helgrind"), *_valgrind_tests(sources / "valgrind", "drd"),
             *_gcc_tests(sources / "gcc"), *_llvm_tests(sources / "llvm")]
    unused = set(notes)
    for test in tests:
        for key in dict.fromkeys((re.sub(r"\.(O[02]|\d)$", "", test.full_name), test.full_name)):  # the last one wins
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
