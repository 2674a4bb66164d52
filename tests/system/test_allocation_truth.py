# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
`report --by allocation` against the malloc trace of the program itself, joined with the samples here. SHOW=1 prints samples by
function: joined here, and reported.
"""
import collections
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import ibscope

OK, WHY = ibscope.can_bpf()
HERE = os.path.dirname(os.path.abspath(__file__))
FEWEST = 300  # samples of allocations that prove something
TOP = 10


class Trace:
    """What had an address when, by the lines of the program."""

    def __init__(self, text):
        self.spans = collections.defaultdict(list)  # by process: first and last address, begin and end, function
        self.parent = {}
        for line in text.splitlines():
            word, pid, time, *rest = line.split()
            pid, time = int(pid), int(time)
            if word == 'alloc':
                start = int(rest[0], 16)
                self.spans[pid].append([start, start + int(rest[1]), time, 1 << 64, rest[2]])
            elif word == 'free':
                next(s for s in reversed(self.spans[pid]) if s[0] == int(rest[0], 16) and s[3] == 1 << 64)[3] = time
            else:
                self.parent[int(rest[0])] = pid

    def site(self, pid, address, time):
        pid = self.parent.get(pid, pid)
        for start, end, begin, over, function in self.spans[pid]:
            if start <= address < end and begin <= time < over:
                return function
        return None


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Truth(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-truth.')
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, 'ibscope.data')
        self.program = os.path.join(self.dir, 'load')
        subprocess.run(['gcc', '-D_GNU_SOURCE', '-g', '-O2', '-o', self.program, os.path.join(HERE, 'allocation_load.c')], check=True)

    def record(self, *args):
        """Rounds until there are enough samples, on however busy a machine."""
        for rounds in (3, 12, 48):
            p = ibscope.run('record', '--max-loss', '100%', '--allocs', *args, '-o', self.file, '--', self.program, str(rounds))
            self.assertEqual(p.returncode, 0, p.stderr)
            rows = json.loads(ibscope.run('report', '--json', self.file, '--by', 'allocation').stdout)
            sites = {r['labels']['allocation']: r['samples'] for r in rows['rows'] if (r['labels']['allocation'] or '').startswith('site_')}
            if sum(sites.values()) >= FEWEST and len(sites) >= TOP:
                break
        self.assertEqual(sum(r['samples'] for r in rows['rows']), rows['total']['samples'])
        return Trace(p.stdout), sites

    def compare(self, trace, sites):
        want = collections.Counter()
        for line in ibscope.run('dump', '--json', self.file).stdout.splitlines():
            s = json.loads(line)
            if s['type'] == 'ibs_op' and s.get('dc_lin_ad'):
                site = trace.site(s['pid'], int(s['dc_lin_ad'], 16), s['time_ns'])
                if site:
                    want[site] += 1
        got = collections.Counter()
        for name, samples in sites.items():
            function, place = name.split()
            self.assertRegex(place, r'^allocation_load\.c:\d+$')
            got[function] += samples
        self.assertGreaterEqual(sum(want.values()), FEWEST)
        table = [(f, want[f], got[f]) for f, _ in want.most_common()]
        self.assertGreaterEqual(len(table), TOP)
        if os.environ.get('SHOW'):
            print(*table, sep='\n')
        for function, truth, reported in table[:TOP]:
            self.assertLessEqual(abs(reported - truth), max(0.05 * truth, 1), (function, table))

    def test_simulated(self):
        """Of the simulated source, whose addresses are those that the program is about to access."""
        self.compare(*self.record('--source', 'sim', '-c', '20000'))


if __name__ == '__main__':
    unittest.main()
