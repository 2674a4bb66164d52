# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of perf on emulated hardware, against what perf says of them.

tests/data/perf has files KERNEL-GENERATION-SHAPE.data.zst, which tests/vm/perf_data.sh recorded with
perf 6.1, or with perf 7.2 where the kernel is 7.2; the .txt.xz beside each is what perf_oracle.py
made of it with perf 7.2.
"""
import glob
import lzma
import os
import re
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), 'data', 'perf')
SAMPLE = re.compile(r'sample (\d+) (.*) cgroup (\d+) pmu (\d+)')


def ours(path):
    """Lines as perf_oracle.py has them, and the line of the end."""
    dump = os.path.join(os.environ.get('IBSCOPE_SAN', os.environ['IBSCOPE_BUILD']),
                        'tests/unit/perf_data_dump')
    p = subprocess.run([dump, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors='replace')
    if p.returncode:
        raise AssertionError('%s: exit %d: %s' % (path, p.returncode, p.stderr))
    events, cgroups, lines, end = [], {}, [], ''
    for line in p.stdout.splitlines():
        kind, _, rest = line.partition(' ')
        if kind == 'pmu':
            events.append(rest.split('|')[0])
        elif kind == 'end':
            end = line
        elif kind == 'cgroup':
            _, ident, name = rest.split(' ', 2)
            cgroups[ident] = name
        sample = SAMPLE.match(line)
        if sample:
            time, where, cgroup, pmu = sample.groups()
            line = 'sample %s %s cgroup %s event %s%s' % (
                time, where, cgroups.get(cgroup, '-'), events[int(pmu)], line[sample.end():])
        if kind not in ('pmu', 'end'):
            lines.append(line)
    return lines, end


class PerfData(unittest.TestCase):
    maxDiff = 2000

    def check(self, path):
        with lzma.open(path.replace('.data.zst', '.txt.xz'), 'rt', errors='replace') as f:
            want = f.read().splitlines()
        got, end = ours(path)
        self.assertGreaterEqual(sum(line.startswith('sample') for line in got), 10)
        if not any('_ctl:' in line for line in want):   # perf does not decode what a pipe gave it
            got = [line for line in got if not re.match(r'(ic_)?[iI]bs_?\w+:\t', line)]
        if not want[0].startswith('info'):
            got = got[1:]
        for n, (a, b) in enumerate(zip(want, got)):
            self.assertEqual(a, b, 'line %d of %s' % (n + 1, path))
        self.assertEqual(len(want), len(got), path)
        self.assertTrue(end.startswith('end whole'), '%s: %s' % (path, end))
        self.assertIn('skipped 0', end)


def add(path):
    name = os.path.basename(path)[:-len('.data.zst')]

    def test(self):
        self.check(path)
    setattr(PerfData, 'test_' + re.sub(r'\W', '_', name), test)


for found in sorted(glob.glob(os.path.join(DATA, '*.data.zst'))):
    if 'killed' not in found:
        add(found)


class Killed(unittest.TestCase):
    """perf itself reads nothing of these."""

    def test_killed(self):
        lines, end = ours(os.path.join(DATA, '5.10-zen2-killed.data.zst'))
        samples = [line for line in lines if line.startswith('sample')]
        self.assertEqual({'ibs_op', 'ibs_fetch'},
                         {re.search(r' event (\S+)', line).group(1) for line in samples})
        self.assertGreater(len(samples), 100)
        self.assertTrue(end.startswith('end not whole'), end)
        self.assertIn('killed', end)


if __name__ == '__main__':
    unittest.main()
