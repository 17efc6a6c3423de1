#!/usr/bin/python3
"""What the monitor costs: each measure natively and under the monitor by turns in one run, medians, ratio, bound."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURE = ROOT / "build" / "bench" / "monitor" / "measure"

# name, arguments of `measure` (None: the run time of a dynamic `true`, from outside), unit, bound on ratio or difference
MEASURES = [
    ("private compute, 1 thread", ["compute", "1"], "s", ("ratio", 1.03)),
    ("private compute, 2 threads", ["compute", "2"], "s", ("ratio", 1.03)),
    ("start and end of true", None, "ms", ("difference", 60)),
    ("first touch, 4 KiB pages", ["touch"], "ns/page", ("ratio", 6)),
    ("first touch, as the host likes", ["touch-default"], "ns/page", None),
    ("system call (getppid)", ["syscall"], "ns", ("exit", 0)),
    ("clock_gettime", ["clock"], "ns", ("ratio", 3)),
    ("mmap, touch, munmap of 64 KiB", ["map"], "ns", None),
    ("thread create and join", ["thread"], "ns", None),
    ("fork, exit, wait", ["fork"], "ns", None),
]


def once(prefix, arguments):
    started = time.perf_counter()
    command = [*prefix, *(["/usr/bin/true"] if arguments is None else [str(MEASURE), *arguments])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=300, check=True)
    return (time.perf_counter() - started) * 1000 if arguments is None else float(done.stdout)


def costs_of_host(trapline):
    """Nanoseconds of an exit and of a vCPU ioctl as `trapline doctor --json` measured them; None where it does not say."""
    done = subprocess.run([trapline, "doctor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        facts = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None, None
    found = {}

    def visit(value, name=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, key)
        elif isinstance(value, (int, float)):
            found[name] = value

    visit(facts)
    return found.get("exit_ns"), found.get("ioctl_ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trapline", type=Path, default=ROOT / "build" / "bin" / "trapline")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--filter", default="")
    parser.add_argument("--json", type=Path, help="also write the samples there")
    options = parser.parse_args()
    prefix = [str(options.trapline), "run", "--track=none", "--"]
    exit_ns, ioctl_ns = costs_of_host(options.trapline)
    print(f"{'measure':<34}{'native':>12}{'monitor':>12}{'ratio':>8}{'spread':>8}  bound")
    samples = {}
    for name, arguments, unit, bound in MEASURES:
        if options.filter not in name:
            continue
        native, monitored = [], []
        for _ in range(options.repeat):
            native.append(once([], arguments))
            monitored.append(once(prefix, arguments))
        a, b = statistics.median(native), statistics.median(monitored)
        # Median over the pairs too: what the machine did to both sides of a pair cancels out.
        pairs = sorted(y / x for x, y in zip(native, monitored))
        ratio = statistics.median(pairs)
        verdict = ""
        if bound and bound[0] == "ratio":
            verdict = f"ratio <= {bound[1]}: {'holds' if ratio <= bound[1] else 'MISSED'}"
        elif bound and bound[0] == "difference":
            verdict = f"<= {bound[1]} {unit} more: {b - a:.1f} {'holds' if b - a <= bound[1] else 'MISSED'}"
        elif bound and bound[0] == "exit":
            verdict = "the host's exit and two vCPU ioctls"
            if exit_ns and ioctl_ns:
                most = exit_ns + 2 * ioctl_ns
                verdict += f" = {most:.0f}: {'holds' if b <= most else 'MISSED'}"
            elif exit_ns:
                verdict += f"; an exit is {exit_ns:.0f}"
        print(f"{name + ', ' + unit:<34}{a:>12.4g}{b:>12.4g}{ratio:>8.3f}{pairs[-1] / pairs[0]:>8.2f}  {verdict}", flush=True)
        samples[name] = {"unit": unit, "native": native, "monitor": monitored}
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
