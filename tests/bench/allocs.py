#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPU time of programs under record --allocs, divided by that without it.

Pairs of runs alternate, with and without --allocs, both under record with a slow simulated clock. The ratio is that of
the fastest runs, which others on the machine disturbed least; the line has the quartiles of the pairs, too.

--instructions: instructions of the programs with the library, divided by those without it, counted by valgrind. The
work is a part of that above; starting the program and loading the library are left out."""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# the most that each may cost, in percent; None: no limit
LIMITS = {'names': 3, 'trees': None, 'buffers': None, 'pairs': None, 'sorting': 1}
DIVISORS = {'names': 7, 'trees': 15, 'buffers': 50, 'pairs': 30, 'sorting': 10}  # of the work, under valgrind


def seconds(build, directory, program, kind, options):
    p = subprocess.run([os.path.join(build, 'ibscope'), 'record', '--source', 'sim', '-c', '1000000000', *options,
                        '-o', os.path.join(directory, 'data'), '--', program, kind], capture_output=True, text=True, check=True)
    if 'frees were lost' in p.stderr:
        print(f'# {kind}: ' + next(line for line in p.stderr.splitlines() if 'frees were lost' in line))
    return float(p.stdout)


def instructions(build, directory, program, kind, noted):
    """Of the work alone: those of a run without work are subtracted."""
    environment = dict(os.environ)
    if noted:
        regions = os.path.join(directory, 'regions')
        os.makedirs(regions, exist_ok=True)
        environment.update(LD_PRELOAD=os.path.abspath(os.path.join(build, 'libibscope-alloc.so')),
                           IBSCOPE_ALLOC_BYTES='4096', IBSCOPE_REGIONS=regions)
    counts = []
    for divisor in DIVISORS[kind], 0:
        p = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', program, kind, str(divisor)],
                           env=environment, capture_output=True, text=True, check=True)
        counts.append(int(re.search(r'Collected : (\d+)', p.stderr).group(1)))
    return counts[0] - counts[1]


def count(args, directory, program, kind):
    without, noted = (instructions(args.build, directory, program, kind, noted) for noted in (False, True))
    cost = 100 * (noted / without - 1)
    print(f'{kind:8}  {cost:+6.1f} % of {without:,} instructions', flush=True)
    return cost


def measure(args, directory, program, kind):
    ratios, times = [], {True: [], False: []}
    for i in range(args.runs):
        pair = {}
        for noted in (True, False) if i % 2 else (False, True):
            pair[noted] = seconds(args.build, directory, program, kind, ['--allocs'] if noted else [])
            times[noted].append(pair[noted])
        ratios.append(pair[True] / pair[False])
    cost = 100 * (min(times[True]) / min(times[False]) - 1)
    pairs = (100 * (x - 1) for x in statistics.quantiles(ratios, n=4))
    print(f'{kind:8}  {cost:+6.1f} % of {min(times[False]):.3f} s; pairs {", ".join(f"{x:+.1f}" for x in pairs)} %', flush=True)
    return cost


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument('build')
    a.add_argument('--runs', type=int, default=15, help='pairs of runs of each program')
    a.add_argument('--instructions', action='store_true', help='count instructions, which no load on the machine changes')
    a.add_argument('--check', action='store_true', help='fail if a program is above its limit')
    a.add_argument('--only', help='programs, separated by commas')
    args = a.parse_args()
    above = []
    with tempfile.TemporaryDirectory(prefix='ibscope-bench.') as d:
        program = os.path.join(d, 'load')
        subprocess.run(['g++', '-O2', '-o', program, os.path.join(HERE, 'allocs_load.cpp')], check=True)
        for kind in args.only.split(',') if args.only else LIMITS:
            cost = (count if args.instructions else measure)(args, d, program, kind)
            if LIMITS[kind] is not None and cost > LIMITS[kind]:
                above.append(kind)
    if args.check and above:
        raise SystemExit('above the limit: ' + ' '.join(above))


if __name__ == '__main__':
    main()
