#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""model.py FIGURES [SNAPSHOTS]: what ibscope costs as a function of the number of CPUs.

FIGURES is of `cores.py --json`, SNAPSHOTS of `bench-snapshot --json`. The model:

  a sample    the same number of instructions, however many CPUs there are
  starting    a + b x CPUs sampled + c x CPUs there are, in instructions
  reading     the same with other numbers (asking each CPU), and the table: ms for each MiB
  memory      of maps: from the options and the core complexes alone; files: two a CPU

It is fitted to the smaller machines (up to FIT CPUs), and what it says of all of them is compared
with what was measured there.
"""
import json
import sys

FIT = 64                # CPUs
TOLERANCE = 0.25        # of what is predicted
MOST_RATIO = 1.5        # the dearest sample of an outcome to the cheapest, from 2 CPUs on
LARGE = 768             # CPUs of the machine that is not here


def solve(a, b):
    """x of a x = b."""
    n = len(b)
    rows = [list(r) + [y] for r, y in zip(a, b)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                f = rows[r][i] / rows[i][i]
                rows[r] = [x - f * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def fit(points):
    """Coefficients k of y = sum of k x, relative errors least squared; points: [(xs, y)]."""
    n = len(points[0][0])
    scaled = [([x / y for x in xs], 1) for xs, y in points]
    a = [[sum(xs[i] * xs[j] for xs, _ in scaled) for j in range(n)] for i in range(n)]
    return solve(a, [sum(xs[i] * y for xs, y in scaled) for i in range(n)])


def predict(k, xs):
    return sum(a * b for a, b in zip(k, xs))


class Linear:
    """A quantity that grows with the CPUs."""

    def __init__(self, rows, what, of):
        self.what, self.of = what, of
        self.points = [((1, r['sampled'], r['cpus']), of(r)) for r in rows]
        self.k = fit([p for p in self.points if p[0][2] <= FIT])

    def at(self, cpus):
        return predict(self.k, (1, cpus, cpus))

    def check(self):
        misses = 0
        print('\n%s: %.0f + %.0f x CPUs sampled + %.0f x CPUs (fitted up to %d CPUs)' % (
            self.what, *self.k, FIT))
        print('  %6s %8s %12s %12s %7s' % ('CPUs', 'sampled', 'model', 'measured', 'off'))
        for xs, y in self.points:
            if xs[1] not in (1, xs[2]):
                continue
            said = predict(self.k, xs)
            bad = abs(said / y - 1) > TOLERANCE
            misses += bad
            print('  %6d %8d %12.0f %12.0f %6.1f%%%s' % (
                xs[2], xs[1], said, y, 100 * (said / y - 1), '  MISSED' if bad else ''))
        print('  %6d %8d %12.0f' % (LARGE, LARGE, self.at(LARGE)))
        return misses


def check_samples(rows):
    rows = [r for r in rows if r['kind'] == 'sample']
    sizes = sorted({r['cpus'] for r in rows})
    misses = 0
    print('a sample: instructions, all CPUs sampled; the same above an empty program')
    print('  %-24s%s %8s' % ('CPUs', ''.join('%16d' % n for n in sizes), 'ratio'))
    for variant in dict.fromkeys(r['variant'] for r in rows):
        mine = {r['cpus']: r for r in rows if r['variant'] == variant}
        cost = [r['per_sample'] for r in mine.values()]
        ratio = max(cost) / min(cost)
        bad = ratio > MOST_RATIO
        misses += bad
        print('  %-24s%s %8.2f%s' % (variant, ''.join(
            '%8.0f %7.0f' % (mine[n]['per_sample'], mine[n]['above_empty']) if n in mine else ' ' * 16
            for n in sizes), ratio, '  MISSED' if bad else ''))
    return misses


def check_exact(rows):
    """What must be right to the unit, and the kernel's own account of memory."""
    misses = 0
    print('\nmemory and files, CPUs all sampled')
    print('  %6s %10s %7s %12s %14s %6s' % ('CPUs', 'complexes', 'shards', 'maps, MiB',
                                           'kernel says', 'files'))
    rows = [r for r in rows if r['sampled'] == r['cpus']]
    extra = rows[0]['files'] - 2 * rows[0]['cpus']
    for r in rows:
        bad = (r['files'] != 2 * r['cpus'] + extra or
               abs(r['kernel_memory'] / r['memory'] - 1) > 0.05)
        misses += bad
        print('  %6d %10d %7d %12.1f %14.1f %6d%s' % (
            r['cpus'], r['complexes'], r['shards'], r['memory'] / 2**20, r['kernel_memory'] / 2**20,
            r['files'], '  MISSED' if bad else ''))
    print('  %6d %31s %21d' % (LARGE, '', 2 * LARGE + extra))
    return misses


FIT_MIB = 450           # tables up to this are fitted


def check_tables(rows):
    """Cost of reading the table: creating groups for the caller, and scanning each MiB."""
    misses = 0
    for spread in ('every shard', 'no sample'):
        mine = [r for r in rows if r['samples_in'] == spread]
        xs = {id(r): (r['groups'], r['mib']) for r in mine}
        k = fit([(xs[id(r)], r['snapshot_ms']) for r in mine if r['mib'] <= FIT_MIB])
        print('\nreading the table, samples in %s, ms: %.4f x groups + %.4f x MiB (fitted up to %d MiB)' % (
            spread, *k, FIT_MIB))
        print('  %6s %8s %8s %8s %10s %10s %7s' % (
            'CPUs', 'shards', 'groups', 'MiB', 'model', 'measured', 'off'))
        for r in mine:
            said = predict(k, xs[id(r)])
            # small ones are within a scheduler's tick
            bad = abs(said / r['snapshot_ms'] - 1) > 2 * TOLERANCE and said > 5
            misses += bad
            print('  %6d %8d %8d %8.0f %10.1f %10.1f %6.0f%%%s' % (
                r['cpus'], r['shards'], r['groups'], r['mib'], said, r['snapshot_ms'],
                100 * (said / r['snapshot_ms'] - 1), '  MISSED' if bad else ''))
    return misses


def check(rows, snapshots=()):
    """Print what the model says and what was measured; how many figures are not as it says."""
    starts = [r for r in rows if r['kind'] == 'start']
    misses = check_samples(rows) + check_exact(starts)
    if len({r['cpus'] for r in starts if r['cpus'] <= FIT}) < 2:
        print('\n(two sizes of at most %d CPUs are needed to fit the rest)' % FIT)
        return misses
    for what, of in (('opening and starting', lambda r: r['cpu_ns']),
                     ('a snapshot of few groups', lambda r: r['snapshot_ns']),
                     ('of it, the counters of CPUs', lambda r: r['counts_ns'])):
        misses += Linear(starts, what + ', instructions', of).check()
    return misses + (check_tables(snapshots) if snapshots else 0)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        rows = [json.loads(line) for line in f]
    snapshots = []
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as f:
            snapshots = json.load(f)
    return 1 if check(rows, snapshots) else 0


if __name__ == '__main__':
    sys.exit(main())
