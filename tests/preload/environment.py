#!/usr/bin/env python3
"""A program that runs under the monitor does not find the preload library in its environment; one that does not run
under the monitor finds what its user set."""

import subprocess
import sys

library, program = sys.argv[1:]
failures = 0


def expect(preload, agent, output):
    global failures
    environment = {"A": "1", "LD_PRELOAD": preload, "Z": "2"}
    if agent:
        environment["WITH_AGENT"] = "1"
    found = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=20)
    if found.stdout != output or found.stderr or found.returncode:
        failures += 1
        print(f"LD_PRELOAD={preload} agent {agent}: expected {output!r}, found {found}")


expect(library, False, f"LD_PRELOAD {library}\n3 variables, reports did not come\n")
expect(library, True, "LD_PRELOAD is not set\n3 variables, reports came\n")
expect(f"{library}:libdl.so.2", True, "LD_PRELOAD libdl.so.2\n4 variables, reports came\n")
expect("libdl.so.2", False, "LD_PRELOAD libdl.so.2\n3 variables, reports did not come\n")
expect(f"libdl.so.2 {library}", True, "LD_PRELOAD libdl.so.2 \n4 variables, reports came\n")
expect(f"libdl.so.2:{library}:libm.so.6", True, "LD_PRELOAD libdl.so.2:libm.so.6\n4 variables, reports came\n")
expect(f"{library}:", True, "LD_PRELOAD \n4 variables, reports came\n")
sys.exit(1 if failures else 0)
