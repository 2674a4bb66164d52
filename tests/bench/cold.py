#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""cold.py NEW OLD [PAIRS [CASE..]]: what a sample costs with cold caches in two builds of bench-twin.

Both run in turn, PAIRS times (15). Where the kernel puts a program and its maps changes the figure by a
tenth and more, and does so each time that they are loaded: hence many short runs. Prints medians above
the twin's own entry, and the median of the ratios of neighbouring runs with its quartiles.
"""
import json
import statistics
import subprocess
import sys

CASES = ('rejected-pid', 'rejected-cgroup', 'rejected-latency', 'aggregated-cgroup', 'forwarded',
         'copy-aggregated-cgroup')


def run(program, cases):
    p = subprocess.run([program, '--json', '--rounds', '9', *cases], check=True,
                       stdout=subprocess.PIPE, text=True)
    rows = map(json.loads, p.stdout.splitlines())
    return {r['case']: r['cold_ns'] for r in rows}


def main():
    new, old = sys.argv[1:3]
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    cases = sys.argv[4:] or CASES
    runs = [(run(new, cases), run(old, cases)) for _ in range(pairs)]
    print('%-26s %8s %8s %8s %15s' % ('ns, cold', 'new', 'old', 'ratio', 'quartiles'))
    for case in cases:
        a, b = ([pair[side][case] for pair in runs] for side in (0, 1))
        low, mid, high = statistics.quantiles((x / max(y, 1) for x, y in zip(a, b)), n=4)
        print('%-26s %8.0f %8.0f %8.2f %9.2f, %.2f' % (case, statistics.median(a), statistics.median(b),
                                                      mid, low, high))


if __name__ == '__main__':
    main()
