#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""lines.py [--build DIR] [--names] [KERNEL:GEN ...]: the cache lines and pages that a sample touches,
on the rig: of code and data, by our program, by what it calls, and by the rest of the NMI.

Each variant of bench-insitu is run once; figures are medians over its samples. Functions of programs
are counted as if each began a line. It fails if the figures cannot be right: see check().
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

import lines_names

HERE = os.path.dirname(os.path.abspath(__file__))
RIG = os.path.join(HERE, 'rig')
LINE, PAGE = 64, 4096
ALL = (1 << LINE) - 1
REST, OURS, HELPER = range(3)
LOOPS = 2000000         # about 80 samples a variant
FEWEST = 30             # samples

Entry = collections.namedtuple('Entry', 'code party line bytes pc writes')

# title -> what is counted of a sample
COLUMNS = (
    ('NMI code', lambda s: s.count(True)),
    ('data', lambda s: s.count(False)),
    ('pages', lambda s: s.count(unit=PAGE)),
    ('program code', lambda s: s.count(True, (OURS,))),
    ('data', lambda s: s.count(False, (OURS,))),
    ('helpers code', lambda s: s.count(True, (HELPER,))),
    ('data', lambda s: s.count(False, (HELPER,), besides=(OURS,))),
    ('pages', lambda s: s.count(None, (OURS, HELPER), unit=PAGE)),
    ('alone lines', lambda s: s.count(None, (OURS, HELPER), besides=(REST,))),
    ('pages', lambda s: s.count(None, (OURS, HELPER), PAGE, (REST,))),
    ('dirty', lambda s: s.count(False, (OURS, HELPER), besides=(REST,), writes=True)),
)


class Sample:
    """What one NMI touched."""

    def __init__(self):
        self.entries = []

    def align(self, functions):
        """Move the functions of programs to the beginning of a line: the kernel puts them anywhere, and
        another count would come of each boot."""
        moved = []
        for e in self.entries:
            at = e.line + (e.bytes & -e.bytes).bit_length() - 1
            start = next((f for f, n in functions if e.party == OURS and e.code and f <= at < f + n), 0)
            bits = e.bytes << LINE - start % LINE       # of the line before and of this one
            for line, part in (e.line - LINE, bits & ALL), (e.line, bits >> LINE):
                if part:
                    moved.append(e._replace(line=line, bytes=part))
        self.entries = moved

    def touched(self, code, parties, unit, writes=False):
        return {(e.code, e.line // unit) for e in self.entries
                if e.party in parties and code in (None, e.code) and (e.writes or not writes)}

    def count(self, code=None, parties=(REST, OURS, HELPER), unit=LINE, besides=(), writes=False):
        """Distinct units that the parties touched, without those that `besides` touched, too."""
        return len(self.touched(code, parties, unit, writes) - self.touched(code, besides, unit))


def read_samples(path):
    """{run: [Sample]} of what the plugin wrote."""
    runs = collections.defaultdict(list)
    with open(path) as f:
        for text in f:
            w = text.split()
            if w[0] == 'S':
                sample = Sample()
                runs[int(w[1], 16)].append(sample)
            else:
                sample.entries.append(Entry(w[0] == 'c', int(w[1]), int(w[2], 16), int(w[3], 16),
                                            int(w[4], 16), w[5] == '1'))
    return runs


def output(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout.strip()


class Boot:
    """rows: what bench-insitu printed of each variant; samples {run: [Sample]}; names {run: Names}."""

    def __init__(self, pair, tree, plugin, tmp, only, timeout, types):
        kernel, gen = pair.split(':')
        symbols = lines_names.Symbols(output(os.path.join(RIG, 'symbols.sh'), kernel))
        out = os.path.join(tmp, 'lines')
        bench = 'bench-insitu --json --once %d --hook jitted' % LOOPS
        if only:
            bench += " --only '%s'" % only
        p = subprocess.run([os.path.join(RIG, 'run.sh'), '--kernel', kernel, '--gen', gen, '--icount',
                            '--smp', '1', '--timeout', str(timeout), '--overlay', tree, '--plugin',
                            '%s,nmi=%x,out=%s' % (plugin, symbols.address['asm_exc_nmi'], out),
                            '--', 'sh', '-c', 'sleep 3; ' + bench], stdout=subprocess.PIPE, text=True)
        objects = [json.loads(x) for x in p.stdout.splitlines() if x.startswith('{')]
        self.rows = [o for o in objects if 'variant' in o]
        if p.returncode or not self.rows:
            sys.exit('%s: exit %d: %s' % (pair, p.returncode, p.stdout[-2000:]))
        self.samples = read_samples(out)
        offsets = output('sh', '-c', '. "$1/lib.sh"; cat "$cache/kernel/task-$2"', 'sh', RIG, kernel)
        offsets = [int(x, 16) for x in offsets.split(',')[:3]]
        self.names = {}
        task, votes = None, collections.Counter()
        for r in self.rows:
            run = r['run']
            names = lines_names.Names(symbols, [o for o in objects if o.get('of') == run], offsets, types)
            functions = [f for p in names.programs for f in p.functions]
            for s in self.samples[run]:
                names.learn(s.entries)
                s.align(functions)
            self.names[run] = names
            task = names.task or task
            votes.update(names.votes)
        for names in self.names.values():       # one process on one CPU has all samples
            names.task = task
            names.per_cpu = max(votes, key=votes.get) if votes else None


def check(boot, row):
    """What must hold of a variant's samples; what does not."""
    samples, names = boot.samples[row['run']], boot.names[row['run']]
    if len(samples) < FEWEST:
        yield '%d samples' % len(samples)
        return
    ours = [s.count(True, (OURS,)) for s in samples]
    if row['variant'].startswith('event'):
        if any(ours):
            yield 'lines of a program, but none is attached'
        return
    most = sum(n // LINE + 2 for _, n in names.programs[0].functions)
    if not 1 <= statistics.median(ours) <= most:
        yield '%g lines of code of a program of %d bytes' % (statistics.median(ours),
                                                            names.programs[0].bytes())
    if row['variant'] == 'empty program' and statistics.median(ours) > 1:
        yield 'the empty program has %g lines of code' % statistics.median(ours)
    strangers = {e.pc for s in samples for e in s.entries
                 if e.party == OURS and e.code and not any(p.holds(e.pc) for p in names.programs)}
    if strangers:
        yield 'code outside of the program: %s' % ', '.join(map(hex, sorted(strangers)[:4]))
    if row['variant'].startswith('aggregated'):
        series = sum(any(names.data(e).startswith('series ') for e in s.entries
                         if not e.code and e.writes) for s in samples)
        if series < row['aggregated'] * 0.9:
            yield '%d samples wrote to series, %d were aggregated' % (series, row['aggregated'])


def print_table(pair, boot):
    print('%s: distinct lines of %d bytes, and pages, a sample touches (medians)' % (pair, LINE))
    print('  %-32s %7s %s' % ('', 'samples', ' '.join(t for t, _ in COLUMNS)))
    for r in boot.rows:
        samples = boot.samples[r['run']]
        cells = []
        for _, what in COLUMNS:
            values = [what(s) for s in samples] or [0]
            cells.append('%g' % statistics.median(values))
        print('  %-32s %7d ' % (r['variant'], len(samples)) +
              ' '.join('%*s' % (len(t), c) for (t, _), c in zip(COLUMNS, cells)))


def print_names(boot):
    """The lines that at least half of a variant's samples touch."""
    for r in boot.rows:
        samples, names = boot.samples[r['run']], boot.names[r['run']]
        if not samples:
            continue
        print('\n  %s' % r['variant'])
        seen, first = collections.Counter(), {}
        for s in samples:
            for key, e in {(e.party, e.code, e.line): e for e in s.entries}.items():
                seen[key] += 1
                old = first.get(key)
                first[key] = e if old is None else old._replace(bytes=old.bytes | e.bytes,
                                                                writes=old.writes or e.writes)
        often = [first[k] for k, n in seen.items() if 2 * n >= len(samples)]
        others = {(e.code, e.line) for e in often if e.party == REST}
        for party, title in (OURS, 'program'), (HELPER, 'helpers'), (REST, 'rest of the NMI'):
            mine = [e for e in often if e.party == party]
            code = collections.Counter(names.function(e.pc) for e in mine if e.code)
            print('    %s, code: %s' % (title, ', '.join('%s %d' % x for x in code.most_common())))
            if party == REST:
                where = collections.Counter(names.data(e).split(' +')[0] for e in mine if not e.code)
                print('    %s, data: %s' % (title, ', '.join('%s %d' % x for x in where.most_common())))
                continue
            for e in sorted(mine, key=lambda e: e.line):
                if not e.code:
                    print('    %s, data: %x %s%s %s (%s)' % (
                        title, e.line, 'w' if e.writes else 'r',
                        '+' if (False, e.line) in others else ' ', names.data(e), names.who(e.pc)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', default='build')
    ap.add_argument('--names', action='store_true', help='print which lines; + also touched by the '
                    'rest of the NMI')
    ap.add_argument('--only', default='', help='variants, as bench-insitu takes them')
    ap.add_argument('--timeout', type=int, default=1800, help='seconds a boot may take')
    ap.add_argument('pairs', nargs='*')
    args = ap.parse_args()
    pairs = args.pairs or ['5.10:zen2', '6.1:zen4', '6.12:zen4', '7.2:zen5']
    failed = checked = 0
    with tempfile.TemporaryDirectory() as tmp:
        jitted, tree, plugin = (os.path.join(tmp, x) for x in ('jitted', 'tree', 'lines.so'))
        subprocess.run(['cc', '-static', '-O1', '-o', jitted, os.path.join(HERE, 'jitted.c')],
                       check=True)
        qemu = output(os.path.join(RIG, 'build.sh'), '--plugins')
        flags = output('pkg-config', '--cflags', 'glib-2.0').split()
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-I', os.path.dirname(qemu), *flags, '-o',
                        plugin, os.path.join(RIG, 'lines-plugin.c')], check=True)
        subprocess.run([os.path.join(RIG, 'mkoverlay.sh'), '-o', tree, jitted + ':/usr/bin/jitted',
                        os.path.join(args.build, 'bench-insitu') + ':/usr/bin/bench-insitu'], check=True)
        declared = os.path.join(tmp, 'types.o')
        subprocess.run(['clang', '-target', 'bpf', '-g', '-O1', '-I', os.path.join(HERE, '../../include'),
                        '-I', os.path.join('/usr/include', output('cc', '-print-multiarch')), '-x', 'c',
                        '-c', '-o', declared, '-'], input=lines_names.TYPES, text=True, check=True)
        types = lines_names.Btf(declared)
        for pair in pairs:
            boot = Boot(pair, tree, plugin, tmp, args.only, args.timeout, types)
            print_table(pair, boot)
            if args.names:
                print_names(boot)
            for r in boot.rows:
                for problem in check(boot, r):
                    print('FAIL %s: %s: %s' % (pair, r['variant'], problem))
                    failed += 1
                checked += 1
            sys.stdout.flush()
    print('%d passed, %d failed' % (checked - min(failed, checked), failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
