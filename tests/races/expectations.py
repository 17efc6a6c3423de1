"""What a program of this suite says about itself in its comments, and whether a report agrees.

The directives are described in README.md.
"""

import re
from dataclasses import dataclass, field

KINDS = ("write-write", "read-write", "atomic-plain", "any")
LOCATIONS = ("global", "heap", "stack", "tls", "mapping", "-")
POLICIES = ("exact", "shared", "adaptive", "write-shared")
DIRECTIVE = re.compile(r"^// ([A-Z][A-Z-]+)(?: (.*))?$")
TAGGED = re.compile(r"//.*?\[(\w+)\]\s*$")


class BadProgram(Exception):
    """A program whose directives cannot be understood."""


@dataclass
class Expected:
    """One race: kind, what is raced for, and the two lines, in either order."""

    kind: str
    location: str  # kind of the location, or "-"
    symbol: str    # of a global, stack or TLS variable; empty: any
    offset: object  # in the symbol, or None
    size: object   # of a heap block, or None
    lines: tuple   # sorted

    def matches(self, race):
        if self.kind not in ("any", race.kind) or self.lines != race.lines:
            return False
        if self.location == "-" or race.location is None:
            return True
        return (self.location == race.location and (not self.symbol or race.symbol in ("", self.symbol))
                and (self.offset is None or race.offset in (None, self.offset))
                and (self.size is None or race.size in (None, self.size)))

    def __str__(self):
        what = self.location + (f":{self.symbol}" if self.symbol else "") + (f":{self.size}" if self.size else "")
        return f"{self.kind} race for {what} between lines {self.lines[0]} and {self.lines[1]}"


@dataclass
class Reported:
    """One race of a report, in the terms of the expectations."""

    kind: str
    lines: tuple       # sorted; the innermost places in the program's source, 0 if a stack has none
    location: object = None  # None: the report does not say
    symbol: str = ""
    offset: object = None
    size: object = None
    locks: dict = field(default_factory=dict)  # line: locks held there
    text: str = ""

    def __str__(self):
        what = f"{self.location or '?'}:{self.symbol or self.size or ''}"
        return f"{self.kind} race for {what} between lines {self.lines[0]} and {self.lines[1]}"


@dataclass
class Program:
    source: object
    name: str
    required: list = field(default_factory=list)   # every one of these is reported
    one_of: list = field(default_factory=list)     # at least one of these
    also: list = field(default_factory=list)       # pairs of lines that may be reported besides
    clean: bool = False
    variants: tuple = ("O0", "O2")
    flags: list = field(default_factory=list)
    link: list = field(default_factory=list)
    options: list = field(default_factory=list)
    needs: list = field(default_factory=list)
    tags: set = field(default_factory=set)
    may_miss: dict = field(default_factory=dict)   # policy: reason
    limits: dict = field(default_factory=dict)     # variant ("" for all): reason
    locks: dict = field(default_factory=dict)      # line: how many locks a report of it names
    tsan_differs: str = ""                         # why ThreadSanitizer's verdict is another one
    says: list = field(default_factory=list)       # lines' beginnings on standard error
    shared: int = 0                                # pieces of memory that processes share, in the report
    exit_status: int = 0
    seconds: float = 30

    def may_be_missed(self, policy):
        """What exact may miss, others may miss, too; and write-shared what shared may."""
        return bool(self.may_miss.keys() & {policy, "exact", policy.removeprefix("write-")})

    def judge(self, races, policy, variant):
        """What is wrong with the reported races, as lines; empty if nothing is."""
        problems = []
        excused = self.may_be_missed(policy)
        for expected in self.required:
            if not any(expected.matches(race) for race in races) and not excused:
                problems.append(f"missed: {expected}")
        if self.one_of and not excused and not any(e.matches(race) for e in self.one_of for race in races):
            problems.append("missed: " + " or ".join(str(expected) for expected in self.one_of))
        known = {expected.lines for expected in self.required + self.one_of} | set(self.also)
        for race in races:
            if race.lines not in known:
                problems.append(f"{'false alarm' if self.clean else 'unexpected'}: {race}")
            for line, count in self.locks.items():
                if line in race.locks and race.locks[line] != count:
                    problems.append(f"line {line}: {race.locks[line]} locks held, reported by {race}; expected {count}")
        if problems and races:
            problems += [f"reported: {race}" for race in races]
        return problems

    def limit(self, variant):
        """The reason of the limit for the variant, or for what its name is made of."""
        parts = set(variant.split("-"))
        return next((reason for name, reason in self.limits.items() if not name or set(name.split("-")) <= parts), None)


def _location(text):
    kind, _, what = text.partition(":")
    if kind not in LOCATIONS:
        raise BadProgram(f"unknown location {text}")
    if kind == "heap":
        return kind, "", None, int(what) if what else None
    symbol, _, offset = what.partition("+")
    return kind, symbol, int(offset) if offset else None, None


def read_program(source, root):
    """The program of one source file."""
    program = Program(source, str(source.relative_to(root).with_suffix("")))
    text = source.read_text().splitlines()
    tagged = {}
    for number, line in enumerate(text, 1):
        found = TAGGED.search(line)
        if found:
            if found[1] in tagged:
                raise BadProgram(f"{program.name}: two lines are tagged [{found[1]}]")
            tagged[found[1]] = number

    def lines(first, second):
        for tag in (first, second):
            if tag not in tagged:
                raise BadProgram(f"{program.name}: no line is tagged [{tag}]")
        return tuple(sorted((tagged[first], tagged[second])))

    for line in text:
        found = DIRECTIVE.match(line)
        if not found:
            if not line.startswith("//"):
                break
            continue
        word, rest = found[1], (found[2] or "").split()
        if word in ("RACE", "ONE-OF"):
            kind, location, first, second = rest
            if kind not in KINDS:
                raise BadProgram(f"{program.name}: unknown kind of race {kind}")
            expected = Expected(kind, *_location(location), lines(first, second))
            (program.required if word == "RACE" else program.one_of).append(expected)
        elif word == "ALSO":
            program.also.append(lines(*rest[-2:]))
        elif word == "CLEAN":
            program.clean = True
        elif word == "BUILD":
            program.variants = tuple(rest)
        elif word == "FLAGS":
            program.flags = rest
        elif word == "LINK":
            program.link = rest
        elif word == "OPTIONS":
            program.options = rest
        elif word == "NEEDS":
            program.needs = rest
        elif word == "TAGS":
            program.tags = set(rest)
        elif word == "SAYS":
            program.says.append(found[2])
        elif word == "SHARED":
            program.shared = int(rest[0])
        elif word == "EXIT":
            program.exit_status = int(rest[0])
        elif word == "SECONDS":
            program.seconds = float(rest[0])
        elif word == "LOCKS":
            program.locks[lines(rest[0], rest[0])[0]] = int(rest[1])
        elif word == "TSAN-DIFFERS":
            program.tsan_differs = found[2]
        elif word == "MAY-MISS":
            policy, _, reason = found[2].partition(": ")
            if policy not in POLICIES or not reason:
                raise BadProgram(f"{program.name}: MAY-MISS POLICY: REASON")
            program.may_miss[policy] = reason
        elif word == "LIMIT":
            variant, _, reason = found[2].partition(": ")
            if not reason:
                raise BadProgram(f"{program.name}: LIMIT VARIANT|all: REASON")
            program.limits["" if variant == "all" else variant] = reason
        else:
            raise BadProgram(f"{program.name}: unknown directive {word}")
    if program.clean == bool(program.required or program.one_of):
        raise BadProgram(f"{program.name}: either CLEAN or RACE")
    return program


def read_programs(root):
    """All programs below root, by name."""
    sources = sorted([source for ending in ("c", "cpp", "rs") for source in root.glob(f"*/*.{ending}")])
    return [read_program(source, root) for source in sources]
