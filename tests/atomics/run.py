#!/usr/bin/python3
"""Builds the programs of this directory by two compilers, at two levels, with debug info and without, and compares verdicts.

The runner of tests/races with other programs and variants; it takes the same options.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "races"))

import run  # noqa: E402

VARIANTS = [f"{compiler}-{level}{suffix}" for compiler in ("gcc", "clang") for level in ("O0", "O2") for suffix in ("", "-nodebug")]

if __name__ == "__main__":
    sys.argv[1:1] = ["--programs", str(HERE), "--variants", ",".join(VARIANTS)]
    sys.exit(run.main())
