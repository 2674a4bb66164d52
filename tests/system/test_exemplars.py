# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Exemplars: from a bucket of a histogram to a sample in a recording of the flight recorder."""
import csv
import json
import os
import re
import shutil
import signal
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import ibscope
from ibscope import Collector, free_port, keep_busy, run, until
from test_exporter import Exporter, NOBODY, OPENMETRICS, Program, needs

OK, WHY = ibscope.can_bpf()
DIR = '/sys/fs/bpf/ibscope-exemplars-%d' % os.getpid()
LINE = re.compile(r'^ibscope_load_miss_latency_cycles_bucket\{(.*)le="([^"]+)"\} (\d+) # \{(.*)\} (\d+) (\d+\.\d{3})$')


def labels(text):
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipIf(os.getuid(), 'only root may write recordings')
class Exemplars(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-exemplars-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.kept = self.dir + '/kept'
        keep_busy(self)

    def collector(self, *args):
        c = Collector(DIR, '--unpin', '-c', '100000', '--max-overhead', 'off', '--control', self.dir + '/run/sock', '--flight', '60s',
                      '--flight-dir', self.kept, *args)
        self.addCleanup(lambda: c.err.closed or self.assertEqual(c.stop(), 0))
        return c

    def exporter(self):
        e = Exporter(prefix=NOBODY, pin_dir=DIR)
        self.addCleanup(e.stop, signal.SIGKILL)
        return e

    def exemplars(self, e):
        """(labels, le, of the exemplar, latency, time) of each, of a new reading."""
        e.fresh()
        text = e.get(Accept=OPENMETRICS)[2]
        lines = [line for line in text.splitlines() if ' # {' in line]
        found = [LINE.match(line) for line in lines]
        self.assertTrue(all(found), lines)
        return [(labels(m[1]), float(m[2]), labels(m[4]), int(m[5]), float(m[6])) for m in found]

    def record(self, c, n):
        c.p.send_signal(signal.SIGUSR2)
        until(lambda: json.loads(run('ctl', '--control', self.dir + '/run/sock', '--json', 'status').stdout)['flight']['written'] == n)

    def test_lead_to_samples(self):
        c, e = self.collector(), self.exporter()
        until(lambda: e.fresh()['ibscope_samples_seen_total'] > 5000)
        self.assertEqual(self.exemplars(e), [])
        for n in 1, 2:
            self.record(c, n)
            newest = sorted(os.listdir(self.kept))[-1]
            list = until(lambda: [x for x in self.exemplars(e) if x[2]['recording'] == newest])
            rows = [*csv.DictReader(run('dump', '--csv', f'{self.kept}/{newest}').stdout.splitlines())]
            slowest = {}
            for r in rows:
                if r['dc_miss_lat']:
                    slowest[r['cgroup']] = max(slowest.get(r['cgroup'], 0), int(r['dc_miss_lat']))
            for series, le, exemplar, latency, taken in list:
                self.assertEqual(set(exemplar), {'recording', 'cpu'})     # nothing of the process
                self.assertLessEqual(sum(len(k) + len(v) for k, v in exemplar.items()), 128)
                self.assertLessEqual(latency, le)
                self.assertLess(abs(time.time() - taken), 120)
                self.assertTrue(any(r['cpu'] == exemplar['cpu'] and r['dc_miss_lat'] == str(latency) for r in rows), (exemplar, latency))
            # the slowest of a cgroup is one of them
            self.assertEqual(max(x[3] for x in list if x[0].get('cgroup') == '/'), slowest['/'])
            self.assertLessEqual(len(list), 3 * len(slowest))
        # those of the first recording have gone
        self.assertEqual({x[2]['recording'] for x in self.exemplars(e)}, {newest})
        self.assertNotIn(' # {', e.get()[2])
        # the command that the man page gives
        _, _, exemplar, latency, _ = list[0]
        p = run('dump', '--cpu', exemplar['cpu'], '--min-lat', str(latency), '--max-lat', str(latency), f'{self.kept}/{exemplar["recording"]}')
        self.assertIn(str(latency), p.stdout)
        run('ctl', '--control', self.dir + '/run/sock', 'set', 'flight=off')
        until(lambda: not self.exemplars(e))

    def test_keys(self):
        """Samples of other CPUs are in other series; by what a record lacks there are none."""
        for by in 'container,cpu,src', 'container,comm,src':
            c, e = self.collector('--by', by), self.exporter()
            until(lambda: e.fresh()['ibscope_samples_seen_total'] > 5000)
            self.record(c, 1)
            if 'cpu' in by:
                list = until(lambda: self.exemplars(e))
                self.assertTrue(all(series['cpu'] == exemplar['cpu'] for series, _, exemplar, *_ in list), list)
            else:
                self.assertEqual(self.exemplars(e), [])
            e.stop()
            self.assertEqual(c.stop(), 0)

    @needs('prometheus')
    def test_prometheus_keeps_them(self):
        c, e = self.collector(), self.exporter()
        until(lambda: e.fresh()['ibscope_samples_seen_total'] > 5000)
        self.record(c, 1)
        want = until(lambda: self.exemplars(e))
        with open(self.dir + '/p.yml', 'w') as f:
            json.dump({'global': {'scrape_interval': '1s'},
                       'scrape_configs': [{'job_name': 'x', 'static_configs': [{'targets': [f'127.0.0.1:{e.port}']}]}]}, f)
        port = free_port()
        p = Program(['prometheus', f'--config.file={self.dir}/p.yml', f'--storage.tsdb.path={self.dir}/data',
                     '--enable-feature=exemplar-storage', f'--web.listen-address=127.0.0.1:{port}'], 'ready to receive|Server is ready')
        self.addCleanup(p.stop)

        def query():
            q = urllib.parse.urlencode({'query': 'ibscope_load_miss_latency_cycles_bucket', 'start': time.time() - 600, 'end': time.time() + 60})
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/query_exemplars?{q}') as f:
                return [x for s in json.load(f)['data'] for x in s['exemplars']]
        got = until(lambda: (q := query()) and len(q) >= len(want) and q)
        key = lambda labels, value: (labels['recording'], labels['cpu'], value)  # noqa: E731
        self.assertEqual({key(x['labels'], float(x['value'])) for x in got}, {key(x[2], x[3]) for x in want})


if __name__ == '__main__':
    unittest.main()
