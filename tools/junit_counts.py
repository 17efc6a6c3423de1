#!/usr/bin/python3
"""junit_counts.py [--names|--lines] FILE: what a JUnit file of ctest says.

Its counts (tests failures disabled skipped); --names: who did not pass; --lines: the same as a runner of tests/ ends with.
"""

import sys
import xml.etree.ElementTree as ElementTree

suite = ElementTree.parse(sys.argv[-1]).getroot()
others = [("failed" if case.get("status") == "fail" else "skipped", case.get("name"))
          for case in suite.iter("testcase") if case.get("status") != "run"]
tests, *rest = (int(suite.get(key, "0")) for key in ("tests", "failures", "disabled", "skipped"))
if "--names" in sys.argv:
    for verdict, name in others:
        print(verdict, name)
elif "--lines" in sys.argv:
    for verdict, name in others:
        print("FAIL" if verdict == "failed" else "SKIP", f"{name}: reason above")
    print(f"{tests - sum(rest)} passed, {rest[0]} failed, {rest[1] + rest[2]} skipped")
else:
    print(tests, *rest)
