#!/usr/bin/python3
"""Time and size of recording against online detection, on a program whose two threads race or on one that is named.

Eight runs a round, in turns: detector alone, with the policy of recordings (exact) and with its own default; --record-only; detector
and log together; both also with --log-filter=first and =fasttrack. Ratios are to the detector with the policy of recordings.
Processor time is that of `trapline run` with the program in it, without the drain's: on a busy machine the better measure.
Logs of --record-only are replayed through FastTrack: events for each second of processor time, of the whole command.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODES = {
    "fasttrack, exact": ["--detector=fasttrack", "--policy=exact"],
    "fasttrack": ["--detector=fasttrack"],
    "record only": ["--record-only", "--log={log}"],
    "record only, first": ["--record-only", "--log={log}", "--log-filter=first"],
    "record only, needed": ["--record-only", "--log={log}", "--log-filter=fasttrack"],
    "fasttrack and log": ["--detector=fasttrack", "--log={log}"],
    "the same, first": ["--detector=fasttrack", "--log={log}", "--log-filter=first"],
    "the same, needed": ["--detector=fasttrack", "--log={log}", "--log-filter=fasttrack"],
}


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def replay_speed(trapline, log, events):
    """Million events for each second of processor time."""
    before = processor_seconds()
    subprocess.run([str(trapline), "replay", str(log), "--detector=fasttrack", "--no-symbols"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600, check=False)
    return events / (processor_seconds() - before) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trapline", type=Path, default=ROOT / "build" / "bin" / "trapline")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=12000, help="of each thread's loop, which makes some 5 accesses")
    parser.add_argument("--stdin", type=Path, default=Path(os.devnull), help="file that the program reads")
    parser.add_argument("program", nargs="*", help="with its arguments, after --; otherwise tests/log-online's counter.c")
    options = parser.parse_args()
    source = ROOT / "tests" / "log-online" / "programs" / "counter.c"
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as scratch:
        command = options.program
        if not command:
            command = [str(Path(scratch, "counter")), str(options.iterations)]
            subprocess.run(["gcc", "-std=gnu11", "-g", "-O1", "-pthread", str(source), "-o", command[0]], check=True, timeout=120)

        def run(words):
            with open(options.stdin, "rb") as stdin:
                return subprocess.run([*words, *command], stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      timeout=600, check=False).returncode

        status = run([])
        seconds = {mode: [] for mode in MODES}
        processor = {mode: [] for mode in MODES}
        info = {}
        replayed = {mode: [] for mode in MODES}
        for _ in range(options.rounds):
            for mode, words in MODES.items():
                log = Path(scratch, "log")
                words = [word.format(log=log) for word in words]
                started = time.monotonic()
                processor_started = processor_seconds()
                monitored = run([str(options.trapline), "run", *words, "--"])
                seconds[mode].append(time.monotonic() - started)
                processor[mode].append(processor_seconds() - processor_started)
                if monitored != status:
                    sys.exit(f"{mode}: status {monitored}, natively {status}")
                if log.exists():
                    text = subprocess.run([str(options.trapline), "log", "info", str(log)], stdout=subprocess.PIPE, text=True,
                                          timeout=60, check=True).stdout
                    info[mode] = re.search(r"^events +(.*)$", text, re.M)[1]
                    if mode.startswith("record only"):
                        replayed[mode].append(replay_speed(options.trapline, log, int(re.match(r"\d+", info[mode])[0])))
                    log.unlink()
        online = statistics.median(seconds["fasttrack, exact"])
        online_processor = statistics.median(processor["fasttrack, exact"])
        print(f"{os.cpu_count()} processors, {options.rounds} rounds, medians")
        for mode, times in seconds.items():
            median = statistics.median(times)
            spent = statistics.median(processor[mode])
            replay = f"; replayed {max(replayed[mode]):.0f} Mevent/s" if replayed[mode] else ""
            print(f"{mode:<20}{median:8.2f} s {median / online:6.2f}x, processor {spent:8.2f} s {spent / online_processor:6.2f}x"
                  f"  {info.get(mode, '')}{replay}")


if __name__ == "__main__":
    main()
