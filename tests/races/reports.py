"""Reads race reports, trapline's JSON and ThreadSanitizer's text, in terms of the expectations."""

import os
import re
import subprocess
from functools import lru_cache

from expectations import Reported


@lru_cache(maxsize=None)
def source_line(binary, address, source):
    """The line of the source that the code at this address of the file comes from, 0 if none."""
    text = subprocess.run(["addr2line", "-i", "-e", binary, hex(address)], stdout=subprocess.PIPE, text=True, timeout=300, check=True).stdout
    for place in text.splitlines():
        file, _, line = place.partition(":")
        if os.path.basename(file) == source:
            return int(re.match(r"\d+", line)[0])
    return 0


def _line(stack, case):
    """The line of the innermost frame in the program's source, 0 if there is none."""
    source = case.program.source.name
    for index, frame in enumerate(stack):
        if case.strip is not None:
            if os.path.basename(frame.get("module") or "") == case.binary.name:
                if frame.get("file"):
                    raise ValueError(f"source {frame['file']} named, though the program has no debug info")
                offset = frame["offset"]
                offset = int(offset, 0) if isinstance(offset, str) else offset
                line = source_line(str(case.whole), offset - (1 if index > 0 else 0), source)
                if line:
                    return line
        elif os.path.basename(frame.get("file") or "") == source:
            return int(frame["line"])
    return 0


def _races(document):
    races = document["races"]
    if document["summary"]["races"] != len(races):
        raise ValueError(f"summary says {document['summary']['races']} races, the list has {len(races)}")
    return races


def from_json(document, case):
    """The races of trapline's JSON report, checked for the form that docs/report.md promises."""
    if document["version"] != 1:
        raise ValueError(f"version {document['version']}")
    found = []
    for race in _races(document):
        first, second = race["accesses"]
        for access in (first, second):
            if access["op"] not in ("read", "write", "atomic") or access["size"] < 1 or not access["stack"]:
                raise ValueError(f"access {access}")
            if "id" not in access["thread"] or not isinstance(access["locks"], list):
                raise ValueError(f"access {access}")
        operations = {first["op"], second["op"]}
        kind = race["kind"]
        fitting = ("atomic-plain" if "atomic" in operations else "write-write" if operations == {"write"} else "read-write")
        if kind != fitting:
            raise ValueError(f"kind {kind} with operations {first['op']} and {second['op']}")
        starts = [int(access["address"], 16) for access in (first, second)]
        if race["location"]["kind"] == "mapping":  # may have moved, or be mapped twice
            starts = [start % 4096 for start in starts]
        if max(starts) >= min(starts[0] + first["size"], starts[1] + second["size"]):
            raise ValueError(f"accesses of {first['size']} and {second['size']} bytes do not overlap: {first} {second}")
        lines = [_line(access["stack"], case) for access in (first, second)]
        location = race["location"]
        symbol = location.get("symbol") or location.get("variable") or ""
        found.append(Reported(kind, tuple(sorted(lines)), location["kind"], symbol if case.strip is None else "",
                              location.get("offset") if location["kind"] == "global" else None, location.get("size"),
                              {line: len(access["locks"]) for line, access in zip(lines, (first, second))}))
    return found


def from_tsan(text, case):
    """The data races in ThreadSanitizer's output."""
    source = case.program.source.name
    found = []
    for block in re.split(r"^={18,}$", text, flags=re.M):
        if "WARNING: ThreadSanitizer: " not in block or "lock-order" in block:
            continue
        places, operations = [], []
        for part in re.split(r"\n\s*\n", block):
            access = re.search(r"(Atomic |Previous atomic |\[failed)?(read|write|Read|Write|atomic).* of size \d+ at", part)
            if not access or "#0" not in part:
                continue
            operations.append("atomic" if "tomic" in part.split(" of size")[0] else access[2].lower())
            lines = [int(line) for file, line in re.findall(r"#\d+ .* (\S+?):(\d+)", part) if os.path.basename(file) == source]
            places.append(lines[0] if lines else 0)
        if len(places) != 2:
            continue
        kind = "atomic-plain" if "atomic" in operations else "write-write" if operations == ["write"] * 2 else "read-write"
        found.append(Reported(kind, tuple(sorted(places)), text=block))
    return found
