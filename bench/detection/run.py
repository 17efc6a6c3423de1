#!/usr/bin/python3
"""What detection costs a program that shares little: time and memory, as ratios to native runs in the same session.

Threads compute on private memory under --policy (adaptive), alternating with native runs; then one large private and one
small shared array show how much memory detection adds; then a program makes short threads, one after the other, while it
works on memory of its own. Prints medians and the spread of the ratios.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def measure(command):
    """(seconds of work, peak memory in KiB) as the program prints them."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    seconds, kibibytes = done.stdout.split()
    return float(seconds), int(kibibytes)


def build(name):
    program = ROOT / "build" / f"bench-{name.replace('_', '-')}"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, HERE / f"{name}.c"], check=True)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, default=ROOT / "build" / "bin" / "trapline")
    parser.add_argument("--policy", default="adaptive", help="trapline's policy (default: adaptive)")
    parser.add_argument("--rounds", type=int, default=9, help="pairs of runs")
    options = parser.parse_args()
    program = build("private_memory")
    monitor = [options.trapline, "run", f"--policy={options.policy}", "--"]

    work = [program, "2", "16", "1600", "64"]
    ratios = []
    for round_number in range(options.rounds):
        native, monitored = measure(work)[0], measure([*monitor, *work])[0]
        ratios.append(monitored / native)
        print(f"pair {round_number + 1}: native {native:.3f} s, with detection {monitored:.3f} s, "
              f"ratio {ratios[-1]:.3f}", flush=True)
    print(f"private compute, --policy={options.policy}: ratio {statistics.median(ratios):.3f} "
          f"(from {min(ratios):.3f} to {max(ratios):.3f}); the aim is at most 1.05")

    memory = [program, "2", "1024", "1", "1024"]
    native, monitored = measure(memory)[1], measure([*monitor, *memory])[1]
    print(f"1 GiB private and 1 MiB shared: native {native / 1024:.0f} MiB, with detection {monitored / 1024:.0f} MiB, "
          f"{(monitored - native) / 1024:.1f} MiB more; the aim is at most 40")

    threads = 200
    work = [build("short_threads"), str(threads), "64", "20000"]
    times = [(measure(work)[0], measure([*monitor, *work])[0]) for _ in range(max(1, options.rounds // 3))]
    native, monitored = (statistics.median(column) / threads * 1000 for column in zip(*times))
    print(f"short threads beside work in 64 MiB: native {native:.2f} ms, with detection {monitored:.2f} ms for each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
