#!/usr/bin/python3
"""junit_counts.py [--names] FILE: counts of a JUnit file of ctest (tests failures disabled skipped), or who failed."""

import sys
import xml.etree.ElementTree as ElementTree

suite = ElementTree.parse(sys.argv[-1]).getroot()
if "--names" in sys.argv:
    for case in suite.iter("testcase"):
        status = case.get("status")
        if status != "run":
            print("failed" if status == "fail" else "skipped", case.get("name"))
else:
    print(*(suite.get(key, "0") for key in ("tests", "failures", "disabled", "skipped")))
