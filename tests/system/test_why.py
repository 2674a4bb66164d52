# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ibscope why: what changed in a container, of counters whose story is known, and of a real collector."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import ibscope
import schemas
from ibscope import BUILD, Busy, Collector, run, until

OK, WHY = ibscope.can_bpf()
FILL = os.path.join(BUILD, 'tests/unit/fill_pins')
DIR = '/sys/fs/bpf/ibscope-why-%d' % os.getpid()
FIRST = 'production-1/checkout-7d9f8b6c5d-00001/checkout'


def why(*args, env=None, **kw):
    return subprocess.Popen([ibscope.IBSCOPE, 'why', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, 'LC_ALL': 'C.UTF-8', 'COLUMNS': '80', **(env or {})}, **kw)


def end(p):
    out, err = p.communicate(timeout=60)
    return p.returncode, out, err


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Story(unittest.TestCase):
    """Three containers, of which the first changes."""

    def story(self, name):
        d = f'{DIR}-{name}'
        p = subprocess.Popen([FILL, d, '3', '8', name], stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.wait, 60)
        self.addCleanup(p.terminate)
        self.addCleanup(p.stdout.close)
        p.stdout.readline()
        return d

    def test_stories(self):
        dirs = {name: self.story(name) for name in ('same', 'slower', 'remote')}
        asked = {(name, of): why('--pin-dir', d, '--duration', '15s', *of)
                 for name, d in dirs.items() for of in ((FIRST,), ('checkout-7d9f8b6c5d-00002/checkout',), ())}
        said = {}
        for (name, of), p in asked.items():
            code, out, err = end(p)
            self.assertEqual((code, err), (0, ''), (name, of))
            self.assertEqual(out.splitlines()[0], 'SIMULATED samples, not measurements')
            self.assertLessEqual(len(out.splitlines()), 14, out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
            said[name, of[0] if of else None] = out
        for key, out in said.items():
            name, of = key
            if name == 'same' or (of and of != FIRST):
                self.assertIn('No difference that is more than noise', out, key)
                self.assertRegex(out, r'A change of [1-9]\.\d % would have been seen')
                self.assertNotIn('points', out)
                continue
            # by itself it takes the one that waits most, which is the one that changed
            self.assertEqual(out.splitlines()[1], FIRST)
            # an hour in which nobody sampled is not part of it
            self.assertRegex(out, r'\nNow: 15 s, [\d,]+ samples; before: 10m sampled of 70m, [\d,]+ samples\n')
            share = re.search(r'Its share of all miss cycles: ([\d.]+)% now, ([\d.]+)% before', out)
            self.assertGreater(float(share[1]), float(share[2]) + 2)
        # of the thousand accesses 18 wait 400 cycles, 4 wait 700 and 93 wait 20: 11.7 cycles each
        self.assertRegex(said['slower', FIRST], r'\+\d+\.?\d* % ± .*\n +\+\d+ points  dram answered more slowly \(mean 40\d → 60\d cycles\)')
        change = float(re.search(r', \+([\d.]+) % ±', said['slower', FIRST])[1])
        self.assertAlmostEqual(change, 31, delta=4)
        self.assertIn('DRAM answers more slowly when', said['slower', FIRST])
        self.assertRegex(said['remote', FIRST], r'\+\d+ points  remote-dram more often \(3\.\d → 12\.\d of')
        self.assertRegex(said['remote', FIRST], r'−\d+ points  dram less often')
        self.assertIn('Its data is in memory of another node', said['remote', FIRST])
        for out in said.values():
            self.assertIn('Neighbours: unknown, as the collector does not group by ccx', out)

    def test_json(self):
        d = self.story('slower')
        code, out, err = end(why('--pin-dir', d, '--duration', '15s', '--json', FIRST))
        self.assertEqual((code, err), (0, ''))
        got = json.loads(out)
        if schemas.jsonschema:
            schemas.Schemas().check('diff', got)
        self.assertEqual((got['a']['selection'], got['b']['selection']), (FIRST + ' before', FIRST + ' now'))
        self.assertTrue(got['a']['simulated'] and got['b']['simulated'])
        self.assertEqual([(r['cause'], r['kind']) for r in got['causes'] if r['change']['finding']][:1], [('dram', 'slower')])

    def test_names(self):
        d = self.story('same')
        for name, said in (('checkout', "several containers are called 'checkout': give production-1/checkout-7d9f8b6c5d-00001/checkout or"),
                           ('nobody', "the collector has counted nothing of 'nobody'"),
                           ('chekout', "nothing of 'chekout'; did you mean 'checkout'?"),
                           ('out', 'nothing of'), ('', 'nothing of'), ('/', 'nothing of')):
            # before it waits: end() has less patience
            code, out, err = end(why('--pin-dir', d, '--duration', '1h', name))
            self.assertEqual((code, out), (1, ''), name)
            self.assertIn(said, err)

    def test_ends(self):
        """An interrupt ends the time early; the end of the collector is said."""
        d = self.story('slower')
        p = why('--pin-dir', d, '--duration', '1h', FIRST)
        until(lambda: any('signalfd' in f for f in ibscope.open_files(p.pid)))
        began = time.monotonic()
        time.sleep(14)      # it is to have compared so many seconds
        p.send_signal(signal.SIGINT)
        code, out, err = end(p)
        self.assertEqual((code, err), (0, ''))
        self.assertTrue(10 < int(re.search(r'Now: (\d+) s, ', out)[1]) <= time.monotonic() - began + 1, out)
        p = why('--pin-dir', d, '--duration', '1h', FIRST)
        until(lambda: any('signalfd' in f for f in ibscope.open_files(p.pid)))
        time.sleep(3)
        p.send_signal(signal.SIGINT)
        code, out, err = end(p)
        self.assertEqual((code, out), (1, ''))
        self.assertRegex(err, r'too few moments: at least 8 are needed before and now, and there are \d+ and [1-7]; use a longer --duration')
        # it meets the signal when it begins to read signals
        p = why('--pin-dir', d, '--duration', '1h', FIRST,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}))
        p.send_signal(signal.SIGINT)
        code, out, err = end(p)
        self.assertEqual((code, out), (1, ''))
        self.assertIn('interrupted', err)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Real(unittest.TestCase):
    def test_collector(self):
        def with_latency():
            p = run('ctl', '--pin-dir', DIR, '--json', '--by', 'cgroup', 'snapshot')
            self.assertEqual(p.returncode, 0, p.stderr)
            return sum(s['valid'] for s in json.loads(p.stdout)['series'] if s['labels']['cgroup'] == '/')
        # what runs in containers meanwhile has its part of each CPU, and this has, too
        for cpu in os.sched_getaffinity(0):
            self.addCleanup(Busy(cpu).stop)
        with tempfile.TemporaryDirectory() as run_dir:
            c = Collector(DIR, '--unpin', '-c', '200000', '--max-overhead', 'off', '--by', 'container,ccx,comm,src,op',
                          '--control', run_dir + '/run/sock', '--flight', '60s')
            self.addCleanup(lambda: c.err.closed or c.stop())
            until(lambda: with_latency() > 500)
            code, out, err = end(why('--pin-dir', DIR, '--duration', '12s', '/'))
            self.assertEqual((code, err), (0, ''), out)
            self.assertEqual(out.splitlines()[:2], ['SIMULATED samples, not measurements', 'host, no container'])
            self.assertRegex(out, r'before: (\d+s|\dm) sampled, ')
            self.assertIn('Neighbours: 12 s are too few to judge', out)
            c.stop()
        code, out, err = end(why('--pin-dir', DIR))
        self.assertEqual((code, out), (1, ''))
        self.assertIn('no collector', err)

    def test_refused(self):
        for by, said in ('comm,src', 'does not group by container'), ('container,fetch', 'samples instruction fetches only'):
            c = Collector(DIR, '--unpin', '--by', by, *(('-e', 'ibs_fetch//') if 'fetch' in by else ()))
            self.addCleanup(lambda c=c: c.err.closed or c.stop())
            p = run('why', '--pin-dir', DIR)
            self.assertEqual(p.returncode, 1)
            self.assertIn(said, p.stderr)
            self.assertEqual(c.stop(), 0)


if __name__ == '__main__':
    unittest.main()
