#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long commands take that read a recording, and how long perf takes on the same samples.

offline.py [--samples N] [--runs N] [--no-perf] BUILD

All commands take turns, RUNS times, so that a busy machine slows down all of them; medians are printed, and
ratios to perf's median. Peak memory is that of the largest process of a command.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# name, options of ibscope, options of perf on the exported file (None: perf has nothing like it)
COMMANDS = [
    ("by symbol", ["report", "--by", "symbol"], ["report", "--sort", "symbol"]),
    ("by line", ["report", "--by", "line"], ["mem", "report", "--sort", "mem,symbol_daddr,dso_daddr"]),
    ("c2c", ["c2c"], ["c2c", "report", "--stdio"]),
    ("html", ["report", "--html", "OUT"], None),
    ("pprof", ["report", "--pprof", "OUT"], None),
    ("diff", ["diff", "OWN"], None),
]


def measure(argv):
    """Return: seconds, CPU seconds, and MiB of the largest process; None if the command failed."""
    start = time.monotonic()
    with open(os.devnull, "r+b") as null:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, null.fileno(), fd) for fd in (0, 1, 2)])
        _, status, usage = os.wait4(pid, 0)
    if status:
        print("offline.py: '%s' failed" % " ".join(argv), file=sys.stderr)
        return None
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def medians(rows):
    return [statistics.median(column) for column in zip(*rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--samples", type=int, default=2000000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-perf", action="store_true")
    args = parser.parse_args()
    ibscope = os.path.join(args.build, "ibscope")
    perf = None if args.no_perf else shutil.which("perf")

    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        own, exported, out = (os.path.join(work, name) for name in ("own.data", "perf.data", "out"))
        subprocess.run([os.path.join(args.build, "bench-offline"), str(args.samples), own], check=True)
        if perf:
            subprocess.run([ibscope, "export", "--perf-data", exported, own], check=True, stderr=subprocess.DEVNULL)
        times = {}
        for _ in range(args.runs):
            for name, ours, theirs in COMMANDS:
                ours = [{"OUT": out, "OWN": own}.get(word, word) for word in ours]
                run = measure([ibscope, *ours, "--max-memory", "8G", own])
                if not run:
                    return 1
                times.setdefault((name, "ibscope"), []).append(run)
                run = perf and theirs and measure([perf, *theirs, "-i", exported])
                if run:
                    times.setdefault((name, "perf"), []).append(run)
    print("%d samples, medians of %d runs" % (args.samples, args.runs))
    print("%-10s %8s %8s %8s %10s %8s %8s" % ("", "seconds", "CPU s", "MiB", "perf s", "MiB", "perf/own"))
    for name, _, theirs in COMMANDS:
        row = "%-10s %8.2f %8.2f %8.0f" % (name, *medians(times[name, "ibscope"]))
        if (name, "perf") in times:
            s, _, mib = medians(times[name, "perf"])
            row += " %10.2f %8.0f %8.1f" % (s, mib, s / medians(times[name, "ibscope"])[0])
        print(row)
    if not perf:
        print("perf was not run%s" % ("" if args.no_perf else ": it is not installed (Debian: linux-perf)"))


if __name__ == "__main__":
    sys.exit(main())
