# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The report of `make hwtest`: verdicts, unknown results, and no names; and what compare.py says of it."""
import argparse
import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get('IBSCOPE_BUILD', os.path.abspath('build'))
HW = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../hw')
spec = importlib.util.spec_from_file_location('hwtest', os.path.join(HW, 'hwtest.py'))
hwtest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hwtest)


def interval(event='ibs_op/cnt_ctl=1/', seen=1000, kept=400, each=1000, **ledger):
    return {'event': event, 'period': 1000, 'cpus': 2, 'interval_s': 1.0,
            'series': [{'samples': kept, 'estimated_ops': each and kept * each, 'labels': {'op': 'load'}}],
            'ledger': {'seen': seen, 'aggregated': kept, 'forwarded': 0, 'filtered': {'src': seen - kept}, 'lost': {},
                       'unseen': 0, 'dropped_by_hardware': 0, 'tagged_undelivered': 0, **ledger}}


class Report(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix='ibscope-hwtest-')
        self.addCleanup(self.dir.cleanup)
        self.c = hwtest.Collected(self.dir.name)

    def put(self, name, o, rc=0):
        for end, text in ('.out', json.dumps(o) if o else ''), ('.rc', str(rc)), ('.err', 'why'):
            with open(os.path.join(self.dir.name, name + end), 'w') as f:
                f.write(text)

    def test_ledger(self):
        for want, ledger in ((True, {}), (False, {'unseen': 1}), (False, {'aggregated': 401}), (True, {'unseen': None}),
                             (False, {'lost': {'ring_full': 1}}), (False, {'tagged_undelivered': 50})):
            self.put('all', interval(**ledger))
            self.assertIs(hwtest.check_ledger(self.c, 'all')[0], want, ledger)
        self.assertIsNone(hwtest.check_ledger(self.c, 'fetch')[0])
        self.put('all', None, rc=1)
        report = hwtest.Report()
        report.check('x', hwtest.check_ledger, self.c, 'all')
        self.assertEqual((report.failed, report.passed), (1, 0))
        self.assertIn('exit 1', report.lines[0])

    def test_plan(self):
        with_filter = 'ibs_op/cnt_ctl=1,l3missonly=1/'
        for want, on in ((True, interval(with_filter, 500, 100, 4000)), (False, interval(with_filter, 500, 400, 4000)),
                         (None, interval(with_filter, 500, 400, None)), (None, interval())):
            on['series'][0]['samples'] = 400
            self.put('src-off', interval())
            self.put('src-hw,driver', on)
            self.assertIs(hwtest.check_plan(self.c, 'src')[0], want, on)

    def test_shares(self):
        self.assertIsNone(hwtest.check_shares(self.c)[0])
        self.put('some', interval())
        for op, want in ('load', True), ('store', False):
            self.put('perf-report', {'rows': [{'samples': 400, 'labels': {'op': op}}]})
            self.assertIs(hwtest.check_shares(self.c)[0], want)

    def test_names(self):
        host = os.uname().nodename
        text = hwtest.anonymous('on %s, x%sx, %s: ' % (host, host, host.split('.')[0]))
        self.assertEqual(text, 'on (name), x%sx, (name): ' % host)
        self.assertEqual(hwtest.PATH.sub('(path)', 'below /user.slice/a-1, "/proc/sys/kernel/x": ibs_op/cnt_ctl=1/'),
                         'below (path), "/proc/sys/kernel/x": ibs_op/cnt_ctl=1/')

    def test_verify(self):
        figures = [{'id': 'samples', 'agrees': True, 'difference': 0.0}, {'id': 'ops', 'agrees': False, 'difference': 1.0}]
        for n, rig, want in (2, None, False), (2, '6.12:zen4', True), (1, None, True), (0, None, None):
            self.put('verify', {'figures': figures[:n]}, rc=1)
            self.assertIs(hwtest.check_verify(self.c, rig)[0], want)

    def test_loops(self):
        loops = [{'id': 'loads', 'agrees': True, 'error': 0.01}, {'id': 'sharing', 'agrees': None, 'error': None},
                 {'id': 'source_l3', 'agrees': False, 'error': -1.0}]
        for n, rig, want in (3, None, False), (3, '6.12:zen4', None), (2, None, True), (0, None, None):
            self.put('verify', {'figures': [], 'loops': loops[:n]}, rc=1)
            self.assertIs(hwtest.check_loops(self.c, rig)[0], want)

    @unittest.skipIf(os.path.exists('/sys/bus/event_source/devices/ibs_op'), 'this machine has IBS')
    def test_without_ibs(self):
        p = subprocess.run([sys.executable, os.path.join(HW, 'hwtest.py'), '--build', BUILD, '-o', self.dir.name + '/r'],
                           capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertRegex(p.stderr, '^hwtest: (IBS sampling does not work here: .*make hwtest-rig|must run as root)')
        self.assertFalse(os.path.exists(self.dir.name + '/r'))

    # --- compare.py

    def collect(self):
        """What collect.sh leaves, of simulated samples."""
        for path, fetch in ('samples-op', []), ('samples-fetch', ['--fetch']):
            recording = os.path.join(self.dir.name, 'recording')
            subprocess.run([os.path.join(BUILD, 'tests/unit/make_recording'), recording, '4000',
                            'only-fetch' if fetch else 'stacks'], check=True)
            p = subprocess.run([os.path.join(BUILD, 'ibscope'), 'dump', '--csv', '--limit', '2000', *fetch, recording],
                               capture_output=True, text=True, check=True)
            self.write(path + '.csv', p.stdout)
            os.unlink(recording)
        self.write('machine', 'kernel 6.12.0\ncpu family : 25\nmodel : 17\nibs_op/caps/zen4_ibs_extensions 1\n')
        self.put('cost', {'samples': [{'outcome': 'aggregated', 'ns': 2500}]})
        self.write('stat', '1000,,r1000001cf\n970,,r1000002cf\n0,,r1000004cf\n')
        for plan in hwtest.PLANS:
            self.put(plan + '-hw,driver', interval())

    def write(self, name, text):
        with open(os.path.join(self.dir.name, name), 'w') as f:
            f.write(text)

    def archive(self, results=('ok       ledger of all               seen 1000',)):
        return hwtest.whole(self.c, argparse.Namespace(build=BUILD, rig=None), results)

    def compare(self, text):
        self.write('report', text)
        p = subprocess.run([sys.executable, os.path.join(HW, 'compare.py'), os.path.join(self.dir.name, 'report')],
                           capture_output=True, text=True, check=False)
        self.assertEqual(p.stderr, '')
        return p.returncode, p.stdout

    def change(self, text, column, value, **where):
        """The first sample of ibs_op with these values has another one."""
        name = '--- samples-op.csv\n'
        at = text.index(name) + len(name)
        head = next(csv.reader([text[at:].partition('\n')[0]]))
        for line in text[at:].partition('\n--- ')[0].splitlines()[1:]:
            row = next(csv.reader([line]))
            if all(row[head.index(k)] == v for k, v in where.items()):
                row[head.index(column)] = value
                return text.replace(line, ','.join(row), 1)
        return self.fail('no such sample')

    def test_compare(self):
        self.collect()
        text = self.archive()
        self.assertNotRegex(text.partition('--- samples-op.csv')[2], '0x[0-9a-f]|bash|service')
        status, said = self.compare(text)
        self.assertEqual(status, 0, said)
        for line in ('ok       report: own results: 1 results', 'ok       report: kind and source: 2000 samples',
                     'ok       report: fetches: 2000 samples', 'ok       report: as on the rig: ns a sample 2500 (rig 2900)',
                     'ok       report: as on the rig: tags that do not retire 0.03 (rig 0.03)'):
            self.assertIn(line, said.splitlines())
        # dump prints no DataSrc of an uncached access, whose source may be io all the same
        for src, status in ('io', 0), ('dram', 1):
            changed = self.change(text, 'src', src, op='load', src='l1', data_src_lo='')
            changed = self.change(changed, 'dc_uc_mem_acc', '1', op='load', src=src, data_src_lo='')
            self.assertEqual(self.compare(changed)[0], status, src)
        self.assertRegex(said, r'(?m)^ok       report: latencies: l2 \d+, l3 \d+.*; 0 retired before they completed$')

    def test_compare_finds(self):
        """What contradicts the tables, and what is not as on the rig."""
        self.collect()
        text = self.archive()
        for changed, line in (
                (self.change(text, 'data_src_lo', '3', op='load', src='l3'), 'kind and source: line \\d+: load from l3, should be '),
                (self.change(text, 'op', 'store', op='load'), 'kind and source: line \\d+: store from '),
                (self.change(text, 'comp_to_ret_ctr', '60000', op='load'), 'latencies: .*; 1 retired before'),
                (re.sub('(?m)^(ibs_fetch,.*),4096,', r'\1,2097152,', text, count=1), 'fetches: line \\d+: its page size'),
                (self.archive(['FAIL     both events at once          only one']), 'own results: both events at once ')):
            status, said = self.compare(changed)
            self.assertEqual(status, 1, said)
            self.assertRegex(said, '(?m)^FAIL     report: ' + line)
            self.assertEqual(said.count('FAIL'), 1, said)
        self.put('cost', {'samples': [{'outcome': 'aggregated', 'ns': 9000}]})
        status, said = self.compare(self.archive())
        self.assertEqual(status, 0, said)
        self.assertIn('differs  report: as on the rig: ns a sample 9000 (rig 2900)', said)

    def test_compare_damaged(self):
        self.collect()
        text = self.archive()
        for damaged, why in ((text[:len(text) // 2], 'it ends in the middle of samples-'),
                             (text.partition('\nDATA\n')[0], 'not a report of `make hwtest`'),
                             ('', 'not a report of `make hwtest`'),
                             (text.replace('--- cost.out\n', ''), 'it has '),
                             (text.replace('"ns": 2500', '"ns": '), 'cost.out: '),
                             (text.replace('model : 17', ''), 'it does not name the processor'),
                             (self.change(text, 'dc_miss', '1,1', op='load'), 'samples-op.csv: line '),
                             (self.change(text, 'dc_miss', 'x', op='load'), "dc_miss is 'x'")):
            status, said = self.compare(damaged)
            self.assertEqual(status, 1, said)
            self.assertIn('FAIL     report: damaged: ' + why, said)


if __name__ == '__main__':
    unittest.main()
