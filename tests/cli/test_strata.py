# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands that read recordings with strata use the weights of samples, or refuse: against a machine that is known."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'system')]
import ibscope  # noqa: E402
import schemas  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_strata')
SLICES = 192


class Strata(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file, cls.truth = cls.make(1)

    @classmethod
    def make(cls, seed, *how, slices=SLICES):
        path = os.path.join(cls.dir.name, '-'.join((str(seed), str(slices), *how)) + '.data')
        return path, json.loads(subprocess.run([MAKE, path, str(seed), str(slices), *how], check=True, capture_output=True).stdout)

    def out(self, *args, status=0):
        p = run(*args)
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stdout

    def json(self, *args):
        return json.loads(self.out(*args, '--json'))

    def samples(self, file):
        lines = [json.loads(x) for x in self.out('dump', '--json', '--events', file).splitlines()]
        return [x for x in lines if x['type'] == 'ibs_op'], [x for x in lines if x['type'] == 'slice']

    def near(self, value, truth, part=0.05):
        self.assertLess(abs(value / truth - 1), part, (value, truth))

    def test_report(self):
        text = self.out('report', '--by', 'src', '--json', self.file)
        report = json.loads(text)
        schemas.Schemas().check_text('report', text)
        rows = {r['labels']['src']: r for r in report['rows']}
        dram = self.truth['dram']
        self.near(rows['dram']['estimated_ops'], dram['ops'])
        self.near(rows['dram']['miss_cycles'], dram['cycles'])
        self.near(report['total']['estimated_ops'], dram['ops'] + self.truth['other']['ops'])
        self.near(rows['dram']['share'], dram['cycles'] / (dram['cycles'] + self.truth['other']['cycles']), 0.05)
        self.near(rows['dram']['mean'], dram['cycles'] / dram['ops'])
        self.assertLess(rows['dram']['low'], rows['dram']['miss_cycles'])
        self.assertLess(rows['dram']['miss_cycles'], rows['dram']['high'])
        self.assertEqual([e['stratum'] for e in report['events']], ['full', 'miss'])
        self.assertEqual([e['ledger']['seen'] for e in report['events']], [self.truth['samples'][s] for s in ('full', 'miss')])
        self.assertEqual(report['ledger']['seen'], sum(self.truth['samples'].values()))
        self.assertEqual(sum(r['samples'] for r in report['rows']) + (report['rest'] or {}).get('samples', 0), sum(self.truth['samples'].values()))

    def test_table(self):
        text = self.out('report', self.file)
        for line in ('strata    samples of different weights, as good as ', 'full      seen ', 'miss      seen ', 'residual 0\n',
                     'l3missonly=1/, period varies'):
            self.assertIn(line, text)

    def test_percentiles(self):
        """The median of all ops with a latency is not one from memory, though most samples are."""
        report = self.json('report', '--by', 'src', self.file)
        samples, _ = self.samples(self.file)
        timed = sorted((s['dc_miss_lat'], s['weight']) for s in samples if s.get('dc_miss_lat'))
        half, upto = sum(w for _, w in timed) / 2, 0
        for lat, weight in timed:
            upto += weight
            if upto >= half:
                break
        self.assertLessEqual(lat, report['total']['p50'])
        self.assertLessEqual(report['total']['p50'], lat * 9 / 8 + 1)
        self.assertGreater(timed[len(timed) // 2][0], report['total']['p50'])

    def test_dump(self):
        file, truth = self.make(5, slices=24)
        samples, slices = self.samples(file)
        few, _ = self.make(5, slices=2)
        schemas.Schemas().check_text('dump', self.out('dump', '--json', '--events', '--limit', '50', few))
        self.assertEqual(len(slices), 24)
        for of in 'full', 'miss':
            self.assertEqual(sum(s['stratum'] == of for s in samples), truth['samples'][of])
        self.near(sum(s['weight'] for s in samples), sum(s['ops'] for s in slices))
        for s in slices:
            of = {x['stratum'] for x in samples if s['start_ns'] < x['time_ns'] <= s['end_ns']}
            self.assertLessEqual(of, {s['stratum']})
        head, first = self.out('dump', '--csv', '--limit', '1', file).splitlines()
        row = dict(zip(head.split(','), first.split(',')))
        self.assertEqual((row['stratum'], int(row['weight'])), (samples[0]['stratum'], samples[0]['weight']))

    def test_replay(self):
        hist = self.json('replay', '--by', 'src', self.file)
        schemas.Schemas().check_text('hist', json.dumps(hist))
        _, slices = self.samples(self.file)
        for i, of in enumerate(('full', 'miss')):
            s = hist['strata'][i]
            self.assertEqual((s['name'], s['ledger']['seen']), (of, self.truth['samples'][of]))
            self.assertEqual(s['ledger']['seen'], s['ledger']['aggregated'])
            self.near(s['ops'], sum(x['ops'] for x in slices if x['stratum'] == of), 1e-6)
        self.assertEqual(hist['ledger']['seen'], sum(self.truth['samples'].values()))
        self.assertEqual(hist['ledger']['seen'], sum(s['samples'] for s in hist['series']))
        for s in hist['series']:
            for p, least in ('p50', 6), ('p90', 36), ('p99', 368):
                interval = s[p + '_interval']
                self.assertEqual(interval is None, s['valid'] < least, s)
                if interval:
                    self.assertLessEqual(interval['low'], s[p])
                    self.assertLessEqual(s[p], interval['high'])
        selected = self.json('replay', '--by', 'src', '--src', 'dram', self.file)
        of_dram = sum(s['samples'] for s in hist['series'] if s['labels']['src'] == 'dram')
        self.assertEqual(selected['ledger']['aggregated'], of_dram)
        self.assertEqual([s['labels']['src'] for s in selected['series']], ['dram'])

    def test_replay_agrees(self):
        """Both weigh samples by slices, whatever the number of windows."""
        for slices in 2, 24, 47, 48, 77, 191, 400, 1031:
            file, _ = self.make(7, slices=slices)
            rows = {r['labels']['src']: r for r in self.json('report', '--by', 'src', file)['rows']}
            series = self.json('replay', '--by', 'src', file)['series']
            self.assertEqual({s['labels']['src'] for s in series}, set(rows))
            for src, row in rows.items():
                mine = [s for s in series if s['labels']['src'] == src]
                for key in 'samples', 'estimated_ops', 'miss_cycles':
                    value = sum(s[key] or 0 for s in mine)
                    self.assertLessEqual(abs(value - (row[key] or 0)), 1e-4 * value, (slices, src, key))
                if len(mine) == 1:
                    # a report knows the highest latency, counters its bucket
                    self.assertEqual([mine[0][p] and min(mine[0][p], row['max']) for p in ('p50', 'p90', 'p99')], [row[p] for p in ('p50', 'p90', 'p99')])

    def test_pprof(self):
        path = os.path.join(self.dir.name, 'pprof.gz')
        self.out('report', '--pprof', path, self.file)
        self.assertGreater(os.path.getsize(path), 100)

    def test_perf_data(self):
        path = self.file + '.perf'
        self.out('export', '--perf-data', path, self.file)
        samples, _ = self.samples(self.file)
        helper = os.path.join(ibscope.BUILD, 'tests', 'unit', 'perf_data_dump')
        self.assertTrue(os.path.exists(helper) and samples)
        if not shutil.which('perf'):
            return
        p = subprocess.run(['perf', 'script', '-i', path, '-F', 'period'], capture_output=True, text=True)
        self.assertEqual([int(x) for x in p.stdout.split()], [s['weight'] for s in samples], p.stderr)

    def test_c2c(self):
        c2c = self.json('c2c', self.file)
        samples, _ = self.samples(self.file)
        cycles = sum(s['dc_miss_lat'] * s['weight'] for s in samples if s.get('dc_miss_lat'))
        self.near(c2c['total']['miss_cycles'], cycles, 1e-3)
        self.assertIsNone(c2c['total']['mean'])

    def test_merge(self):
        other, truth = self.make(2, 'miss-first')
        merged = os.path.join(self.dir.name, 'merged.data')
        self.out('merge', '-o', merged, self.file, other)
        report = self.json('report', '--by', 'src', merged)
        dram = next(r for r in report['rows'] if r['labels']['src'] == 'dram')
        self.near(dram['estimated_ops'], self.truth['dram']['ops'] + truth['dram']['ops'])
        self.assertEqual(report['ledger']['seen'], sum(self.truth['samples'].values()) + sum(truth['samples'].values()))
        for i, of in enumerate(('full', 'miss')):
            self.assertEqual(report['events'][i]['ledger']['seen'], self.truth['samples'][of] + truth['samples'][of])
        plain = os.path.join(self.dir.name, 'plain.data')
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_recording'), plain, '1000'], check=True, capture_output=True)
        p = run('report', self.file, plain)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn('was recorded without --strata, unlike', p.stderr)

    def test_cut(self):
        cut, truth = self.make(3, 'cut')
        p = run('report', '--by', 'src', '--json', cut)
        self.assertEqual(p.returncode, 1)
        report = json.loads(p.stdout)
        self.assertFalse(report['whole'])
        dram = next(r for r in report['rows'] if r['labels']['src'] == 'dram')
        self.near(dram['estimated_ops'], truth['dram']['ops'])
        first, _ = self.make(3, 'miss-first', slices=1)
        p = run('report', first)
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('has no complete slice of the full stratum', p.stderr)
        self.assertEqual(run('dump', first).returncode, 0)

    def test_half_a_file(self):
        """Cut at any byte, estimates are those of what is left."""
        with open(self.file, 'rb') as f:
            data = f.read()
        half = os.path.join(self.dir.name, 'half.data')
        with open(half, 'wb') as f:
            f.write(data[:len(data) // 2])
        p = run('report', '--by', 'src', '--json', half)
        self.assertEqual(p.returncode, 1, p.stderr)
        report = json.loads(p.stdout)
        lines = [json.loads(x) for x in run('dump', '--json', '--events', half).stdout.splitlines()]
        slices = [x for x in lines if x['type'] == 'slice']
        self.near(report['total']['estimated_ops'], sum(s['ops'] for s in slices), 0.1)

    def test_diff(self):
        """Of one machine nothing is found; of another one what it does, per op, per access and per second."""
        a, truth = self.make(11, slices=600)
        b, _ = self.make(12, slices=600)
        more, of_more = self.make(13, 'more', slices=600)
        sums = [sum(t[k]['cycles'] for k in ('dram', 'other')) / sum(t[k]['ops'] for k in ('dram', 'other')) for t in (truth, of_more)]
        same = self.json('diff', a, b)
        schemas.Schemas().check_text('diff', json.dumps(same))
        self.assertFalse(same['change']['finding'])
        for per in 'ops', 'access', 'second':
            other = self.json('diff', '--per', per, a, more)
            self.assertTrue(other['change']['finding'], per)
            self.assertEqual(other['causes'][0]['cause'], 'dram', per)
        other = self.json('diff', a, more)
        for side, value in zip('ab', sums):
            self.near(other[side]['value'], value)
        self.assertGreater(other['change']['high'], sums[1] - sums[0])
        self.assertLess(other['change']['low'], sums[1] - sums[0])
        # blocks are windows of slices, in which weights make up for what each stratum saw of them
        self.assertEqual(other['a']['blocks'], 600 // 24)

    def test_diff_of_short_ones(self):
        a, _ = self.make(14, slices=60)
        self.assertEqual(self.json('diff', a, self.file)['a']['blocks'], 30)

    def test_top(self):
        """Percentiles and shares of the whole recording are those of a report."""
        report = self.json('report', self.file)['total']
        text = self.out('top', '--once', '--size', '120x30', '-i', self.file)
        line = next(x for x in text.splitlines() if x.startswith('#1'))
        n, share, dram, p50, p90 = [line.split()[i] for i in (1, 4, 5, 9, 10)]
        self.assertEqual((int(n.replace(',', '')), share), (report['samples'], '100.0%'), line)
        self.assertLess(abs(float(dram[:-1]) / 100 - report['dram']), 0.002, line)
        self.assertEqual((int(p50), int(p90)), (report['p50'], report['p90']), line)


if __name__ == '__main__':
    unittest.main()
