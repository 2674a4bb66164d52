#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPU time of programs under record --allocs, divided by that without it.

Pairs of runs alternate, with and without --allocs, both under record with a slow simulated clock. The ratio is that of
the fastest runs, which others on the machine disturbed least; the line has the quartiles of the pairs, too."""
import argparse
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# the most that each may cost, in percent; None: no limit
LIMITS = {'names': 3, 'trees': None, 'buffers': None, 'pairs': None, 'sorting': 1}


def seconds(build, directory, program, kind, options):
    p = subprocess.run([os.path.join(build, 'ibscope'), 'record', '--source', 'sim', '-c', '1000000000', *options,
                        '-o', os.path.join(directory, 'data'), '--', program, kind], capture_output=True, text=True, check=True)
    if 'frees were lost' in p.stderr:
        print(f'# {kind}: ' + next(line for line in p.stderr.splitlines() if 'frees were lost' in line))
    return float(p.stdout)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument('build')
    a.add_argument('--runs', type=int, default=15, help='pairs of runs of each program')
    a.add_argument('--check', action='store_true', help='fail if a program is above its limit')
    a.add_argument('--only', help='programs, separated by commas')
    args = a.parse_args()
    above = []
    with tempfile.TemporaryDirectory(prefix='ibscope-bench.') as d:
        program = os.path.join(d, 'load')
        subprocess.run(['g++', '-O2', '-o', program, os.path.join(HERE, 'allocs_load.cpp')], check=True)
        for kind in args.only.split(',') if args.only else LIMITS:
            ratios, times = [], {True: [], False: []}
            for i in range(args.runs):
                pair = {}
                for noted in (True, False) if i % 2 else (False, True):
                    pair[noted] = seconds(args.build, d, program, kind, ['--allocs'] if noted else [])
                    times[noted].append(pair[noted])
                ratios.append(pair[True] / pair[False])
            cost = 100 * (min(times[True]) / min(times[False]) - 1)
            pairs = (100 * (x - 1) for x in statistics.quantiles(ratios, n=4))
            print(f'{kind:8}  {cost:+6.1f} % of {min(times[False]):.3f} s; pairs {", ".join(f"{x:+.1f}" for x in pairs)} %', flush=True)
            if LIMITS[kind] is not None and cost > LIMITS[kind]:
                above.append(kind)
    if args.check and above:
        raise SystemExit('above the limit: ' + ' '.join(above))


if __name__ == '__main__':
    main()
