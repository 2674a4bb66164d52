# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The report of `make hwtest`: verdicts, unknown results, and no names."""
import importlib.util
import json
import os
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


if __name__ == '__main__':
    unittest.main()
