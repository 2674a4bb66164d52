# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ibscope why FILE: of recordings in which one thing changes at a known time, and of files that are none."""
import collections
import csv
import functools
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import schemas
from ibscope import BUILD, run

UNIT = os.path.join(BUILD, 'tests', 'unit')
HALF = '2025-12-21T12:00:30Z'    # the database of make_shop moves away from its memory
ROUTE = {**os.environ, 'COLUMNS': '80', 'LC_ALL': 'C.UTF-8'}


class WhyFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        d = tempfile.TemporaryDirectory(prefix='ibscope-why-')
        cls.addClassCleanup(d.cleanup)
        cls.dir = d.name
        for name, args in (('shop.data', ('make_shop', 60000)), ('coupled.data', ('make_neighbours', 'coupled', 1)),
                           ('quiet.data', ('make_neighbours', 'quiet', 1)), ('few.data', ('make_shop', 100)), ('fetch.data', ('make_recording', 300, 'only-fetch')),
                           ('lines.data', ('make_lines', 'known')), ('nodes.data', ('make_lines', 'numa', 20000, 2))):
            program, *rest = map(str, args)
            subprocess.run([os.path.join(UNIT, program), cls.path(name), *rest], check=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def why(self, *args, status=0, names=('-i', 'shop.data')):
        p = run('why', *(self.path(a) if a.endswith('.data') else a for a in (*names, *args)), env=ROUTE)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        self.assertEqual(bool(p.stderr), bool(status), p.stderr)
        return p.stderr if status else p.stdout

    def test_changed(self):
        for args in [], ['postgres'], ['db-0/postgres'], ['shop/db-0/postgres'], ['--at', HALF], ['--duration', '30s']:
            with self.subTest(args):
                out = self.why(*args)
                self.assertEqual(out.splitlines()[:2], ['SIMULATED samples, not measurements', 'shop/db-0/postgres'])
                self.assertLessEqual(len(out.splitlines()), 16, out)
                self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
                self.assertRegex(out, r'Now: 30s, 7,\d{3} samples; before: 30s, 7,\d{3} samples\nIts share of all miss cycles: [\d.]+% now, [\d.]+% before\n')
                self.assertRegex(out, r'\+\d\d points  remote-dram more often \(\d\.\d → 5\d\.\d of a thousand ops\)')
                self.assertRegex(out, r'−\d\d points  dram less often')
                self.assertRegex(out, r'p99 of latency: \d+ → \d+ cycles, \+')
                self.assertIn('Its data is in memory of another node', out)
                self.assertIn('Neighbours: nobody on the same L3 is shown to slow it in 60 s\n', out)
        self.assertEqual(self.why(names=['shop.data']), self.why())     # the argument is a file
        self.assertRegex(self.why(names=['nowhere.data'], status=1), 'cannot open .*nowhere.data: No such file')

    def test_unchanged(self):
        out = self.why('web')
        self.assertEqual(out.splitlines()[1], 'shop/web-7f9c/web')
        self.assertIn('No difference that is more than noise', out)
        self.assertIn('would have been seen', out)
        self.assertNotIn('points', out)

    def test_length(self):
        """Now is at most half of what there is; all from --at on, or so much of it."""
        for args, now, before in (['--duration', '10s'], 10, 50), (['--duration', '1h'], 30, 30), (['--at', '2025-12-21T12:00:20Z'], 40, 20), \
                (['--at', '2025-12-21T12:00:20Z', '--duration', '15s'], 15, 20):
            self.assertRegex(self.why(*args), f'Now: {now}s, .* before: {before}s, ', args)

    def test_neighbours(self):
        out = self.why('web', names=['-i', 'coupled.data'])
        self.assertRegex(out, r'\nNeighbours: slowed \d+ % by batch on complex 1 \(busy \d+ times, \d+ s against \d+ s\)\n')
        self.assertIn('nobody on the same L3', self.why('batch', names=['-i', 'coupled.data']))
        self.assertIn('nobody on the same L3', self.why('web', names=['-i', 'quiet.data']))

    def test_json(self):
        d = json.loads(self.why('postgres', '--json'))
        if schemas.jsonschema:
            schemas.Schemas().check('diff', d)
        self.assertEqual((d['a']['selection'], d['b']['selection']), ('shop/db-0/postgres before', 'shop/db-0/postgres now'))
        self.assertTrue(d['a']['simulated'] and d['b']['simulated'])
        self.assertEqual({(c['cause'], c['kind']) for c in d['causes'] if c['change']['finding']} & {('dram', 'less often'), ('remote-dram', 'more often')},
                         {('dram', 'less often'), ('remote-dram', 'more often')})
        # the same samples as two selections of report have
        p = run('report', self.path('shop.data'), '--container', 'postgres', '--by', 'container', '--json')
        self.assertEqual(d['a']['samples'] + d['b']['samples'], sum(r['samples'] for r in json.loads(p.stdout)['rows']))

    @classmethod
    @functools.cache
    def rows(cls, name):
        return list(csv.DictReader(io.StringIO(run('dump', '--csv', cls.path(name)).stdout)))

    def now(self, name, pid):
        """The samples of a process that are "now"."""
        rows = self.rows(name)
        first, last = (f(int(r['time_ns']) for r in rows) for f in (min, max))
        begin = last - int(min(30, (last - first) / 1e9 / 2) * 1e9)
        return [r for r in rows if int(r['time_ns']) >= begin and r['pid'] == pid and '1' in (r['ld_op'], r['st_op'])]

    def with_warning(self, *args):
        """Data has names only where maps of data were recorded, as not by make_lines."""
        p = run('why', *args, env=ROUTE)
        self.assertEqual((p.returncode, p.stderr.count('\n'), 'maps of code only' in p.stderr), (0, 1, True), p.stderr)
        return p.stdout

    def test_hot_line(self):
        hitm = collections.Counter()
        for r in self.now('lines.data', '100'):
            if r['cache_hit_st'] == '0' and r['dc_miss_lat']:    # of another cache, also on the same L3
                hitm[int(r['dc_phys_ad'], 16) & ~63 if r['dc_phys_ad'] else None] += int(r['dc_miss_lat'])
        [(line, most), _] = hitm.most_common(2)
        share = most / sum(hitm.values())
        file = self.path('lines.data')
        out = self.with_warning('-i', file, 'web')
        self.assertIn(f' Falsely shared line 0x{line:x}: [unmapped], bytes 0 and 32, by take_lock; {100 * share:.1f}% of HITM ', ' '.join(out.split()))
        self.assertNotIn('Remote memory', out)
        self.assertLessEqual(len(out.splitlines()), 16, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
        d = json.loads(self.with_warning('-i', file, 'web', '--json'))
        if schemas.jsonschema:
            schemas.Schemas().check('diff', d)
        self.assertIsNone(d['remote_memory'])
        got = d['hot_line']
        self.assertAlmostEqual(got.pop('share'), share, places=6)
        self.assertTrue(.05 <= got.pop('miss_cycles_share') <= share)
        self.assertEqual(got, {'line': hex(line), 'verdict': 'true and false sharing', 'likely': False, 'name': '[unmapped], bytes 0 and 32',
                               'function': 'take_lock', 'share_of': 'hitm'})
        # what c2c says of the whole recording
        p = run('c2c', '--container', 'web', '--json', file)
        self.assertEqual(max(json.loads(p.stdout)['lines'], key=lambda x: x['miss_cycles'] if 'sharing' in x['verdict'] else 0)['line'], hex(line))
        # a recording that cannot say who shares a line, and one whose processor does not report states
        for how, want in ('ibs_op/cnt_ctl=1,l3missonly=1/', ''), ('zen3', 'Probably falsely shared line 0x'):
            with self.subTest(how):
                subprocess.run([os.path.join(UNIT, 'make_lines'), self.path('other.data'), 'known', how], check=True)
                p = run('why', self.path('other.data'), env=ROUTE)
                self.assertEqual((p.returncode, 'shared line' in p.stdout, want in p.stdout), (0, bool(want), True), p.stdout + p.stderr)

    def price(self, samples):
        """(price, that of the dearest pair, the pair, share of accesses to other nodes): what numa prints"""
        gib, phys = 1 << 30, 1 << 32
        local, remote, other, cycles = collections.defaultdict(list), [], 0, 0
        for r in samples:
            at = int(r['dc_phys_ad'] or '0', 16)
            node = int(r['cpu']) // 24
            mem = next((n for n, start in ((0, phys), (1, phys + gib), (2, phys + 4 * gib)) if start <= at < start + gib), None)
            other += mem not in (None, node)
            if not r['dc_miss_lat']:
                continue
            cycles += int(r['dc_miss_lat'])
            level = r['src'].replace('remote-', '')
            if level not in ('dram', 'pmem', 'cxl'):
                continue
            if mem == node or (mem is None and level == r['src']):
                local[node, level].append(int(r['dc_miss_lat']))
            else:
                remote.append(((node, mem), (node, level), int(r['dc_miss_lat'])))
        pairs = collections.Counter()
        for pair, at, lat in remote:
            pairs[pair] += lat - sum(local[at]) / len(local[at])
        [(worst, most), _] = pairs.most_common(2)
        return sum(pairs.values()) / cycles, most / cycles, worst, other / len(samples)

    def test_remote_memory(self):
        found = 0
        for name, pid in ('web', '100'), ('db', '101'), ('batch', '102'):
            with self.subTest(name):
                total, most, (node, mem), other = self.price(self.now('nodes.data', pid))
                d = json.loads(self.why(name, '--json', names=['-i', 'nodes.data']))
                out = self.why(name, names=['-i', 'nodes.data'])
                self.assertIsNone(d['hot_line'])
                self.assertNotIn('shared line', out)
                if total < .05:
                    self.assertIsNone(d['remote_memory'])
                    self.assertNotIn('Remote memory', out)
                    continue
                found += 1
                if schemas.jsonschema:
                    schemas.Schemas().check('diff', d)
                got = d['remote_memory']
                for key, want in ('price_share', total), ('pair_share', most), ('accesses_share', other):
                    self.assertAlmostEqual(got[key], want, places=5)
                self.assertEqual((got['node'], got['mem_node']), (str(node), None if mem is None else str(mem)))
                self.assertIn(f'\nRemote memory: {100 * other:.1f}% of accesses, costs {100 * total:.1f}% of miss cycles '
                              f'(node {node}{"" if mem is None else f" to {mem}"}: {100 * most:.1f}%)\n', out)
        self.assertTrue(found)
        # without ranges of memory, the processor says what was remote
        self.assertRegex(self.why('postgres'), r'\nRemote memory: costs 2\d\.\d% of miss cycles \(node 2: 2\d\.\d%\)\n')
        self.assertNotIn('Remote memory', self.why('web'))

    def test_refused(self):
        for args, want in ((['wbe'], "has no samples of 'wbe'; did you mean 'web'?"), ([''], "has no samples of ''"),
                           (['--at', '-1h'], 'has samples from 2025-12-21T12:00:00Z to 2025-12-21T12:00:59Z: give a time in between'),
                           (['--at', '2025-12-21T11:00:00Z'], 'give a time in between')):
            self.assertIn(want, self.why(*args, status=1))
        self.assertRegex(self.why(names=['few.data'], status=1),
                         r'few.data: too few samples to compare: at least 100 with a latency are needed before and now, and there are \d+ and \d+.*; record longer')
        self.assertIn('no samples of ibs_op', self.why(names=['fetch.data'], status=1))
        self.assertIn('is read several times', self.why(names=['-i', '-'], status=1))
        for option in (['--pin-dir', '/x'], ['--exporter', 'http://x'], ['--prometheus', 'http://x'], ['--match', 'x="y"'], ['--flight-dir', '/x']):
            self.assertIn('is a recording: it excludes', self.why(*option, status=2))

    def test_bad_files(self):
        with open(self.path('shop.data'), 'rb') as f:
            good = f.read()
        for name, data, want in (('empty', b'', 'it is empty'), ('text', b'{"series": []}', 'unknown format'), ('head', good[:3000], ''),
                                 ('zeros', good[:200] + bytes(len(good) - 200), ''), ('absent', None, 'No such file')):
            with self.subTest(name):
                if data is not None:
                    with open(self.path(name + '.data'), 'wb') as f:
                        f.write(data)
                self.assertIn(want, self.why(names=['-i', name + '.data'], status=1))
        # of a cut one the answer is that of what there is, and the status says so
        with open(self.path('cut.data'), 'wb') as f:
            f.write(good[:len(good) * 3 // 4])
        p = run('why', '-i', self.path('cut.data'), env=ROUTE)
        self.assertEqual((p.returncode, p.stderr.count('\n')), (1, 1), p.stderr)
        self.assertIn('is incomplete: ', p.stderr)
        self.assertRegex(p.stdout, r'shop/db-0/postgres\nNow: ')

    def test_hostile_name(self):
        subprocess.run([os.path.join(UNIT, 'make_neighbours'), self.path('hostile.data'), 'coupled', '1', 'x\x1b[31m\n'], check=True)
        for args in [], ['--json']:
            out = self.why(*args, names=['-i', 'hostile.data'])
            self.assertFalse(re.search(r'[^\n\x20-\x7e→±−]', out), out)


if __name__ == '__main__':
    unittest.main()
