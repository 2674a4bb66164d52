# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""diff --exporter: two windows of the history of an exporter, of which one cause is changed at a time."""
import http.server
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest

import ibscope
from ibscope import BUILD, run, until
from test_exporter import Exporter

OK, WHY = ibscope.can_bpf()
DIR = '/sys/fs/bpf/ibscope-history-%d' % os.getpid()
STEP_S = 10
SAMPLES = 1000      # an interval and container
PERIOD = 100000
USUAL = {'l3': (60, 64), 'dram': (40, 384), 'remote-dram': (20, 704)}    # samples of an interval, cycles


def source(n, cycles):
    """With latencies in one bucket, whose edge is @cycles."""
    return [n, n, n * cycles, n * PERIOD, n * cycles * PERIOD, [cycles, n] if n else []]


def interval(rnd, i, change=None, of='db'):
    groups = []
    for id, name in (1, 'web'), (2, 'db'):
        mix = {**USUAL, **(change or {})} if name == of else USUAL
        sources = {s: source(sum(rnd.random() < n / SAMPLES for _ in range(SAMPLES)), c) for s, (n, c) in mix.items()}
        left = SAMPLES - sum(s[0] for s in sources.values())
        groups.append({'id': id, 'tlb': [0] * 6, 'sources': {**sources, 'none': [left, 0, 0, left * PERIOD, 0, []]}})
    return {'number': i + 1, 'begin_s': i * STEP_S, 'end_s': (i + 1) * STEP_S, 'partial': False, 'groups': groups, 'left_out': 0, 'names': []}


def history(*parts, **head):
    """Each part is 30 intervals with a change."""
    rnd = random.Random(3)
    list = [interval(rnd, i + 30 * k, p) for k, p in enumerate(parts) for i in range(30)]
    if not list:
        return {'length_s': 3600, 'now_s': 1, 'intervals': [], **head}
    list[0] |= {'names': [{'id': i, 'namespace': '', 'pod': n + '-1', 'container': n, 'runtime': '', 'cgroup': ''} for i, n in ((1, 'web'), (2, 'db'))],
                'collector': [{'event': 'ibs_op/cnt_ctl=1/', 'metric': 'dc_miss_lat', 'simulated': False, 'coarse_histograms': False}]}
    return {'length_s': 3600, 'interval_s': STEP_S, 'now_s': len(list) * STEP_S, 'intervals': list, **head}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = self.server.answer if self.path == '/api/history.json' else (404, b'')
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(unittest.TestCase):
    """Answers as an exporter does."""

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f'http://127.0.0.1:{self.server.server_port}'


class Served(Server):
    def diff(self, a_ago, b_ago, *args, status=0, url=None):
        p = run('diff', '--exporter', url or self.url, '--at', f'-{a_ago}s', '--at', f'-{b_ago}s', *args)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stderr if status else p.stdout

    def compare(self, *args):
        """The second part with the last one."""
        d = json.loads(self.diff(300, 0, '--window', '280s', '--json', *args))
        found = [(r['cause'], r['kind']) for r in d['causes'] if r['change']['finding']]
        return d, found, [r['labels'] for r in d['where'] if r['change']['finding']]

    def test_constructed(self):
        for change, want in (({}, []), ({'dram': (80, 384)}, [('dram', 'more often')]), ({'dram': (40, 768)}, [('dram', 'slower')]),
                             ({'dram': (20, 384), 'remote-dram': (40, 704)}, [('remote-dram', 'more often'), ('dram', 'less often')])):
            with self.subTest(change):
                self.server.answer = 200, json.dumps(history({}, {}, change)).encode()
                d, found, where = self.compare()
                self.assertEqual(found, want)
                self.assertEqual([w['container'] for w in where], ['db'] if want else [])
                self.assertEqual(d['b']['samples'], 28 * 2 * SAMPLES)
                self.assertEqual((d['a']['event'], d['metric'], d['unit']), ('ibs_op/cnt_ctl=1/', 'dc_miss_lat', 'ops'))
                self.assertAlmostEqual(d['a']['value'], sum(n * c for n, c in USUAL.values()) / SAMPLES, delta=2)
                self.assertGreater(d['p99']['a'], 384)
                # one container by itself
                d, found, where = self.compare('--match', 'container="web"')
                self.assertEqual((found, where, d['b']['samples']), ([], [], 28 * SAMPLES))
                d, found, where = self.compare('--match', 'pod="db-1",container="db"', '--by', 'pod')
                self.assertEqual((found, where), (want, [{'pod': 'db-1'}] if want else []))
        text = self.diff(300, 0, '--window', '280s')
        self.assertRegex(text, r'(?m)^CONTAINER +CHANGE +95 % +MOST OF IT\ndb ')

    def test_other_and_unknown(self):
        """Groups without a row; estimates that are not known; buckets that are too wide for a percentile."""
        h = history({}, {})
        for i in h['intervals']:
            i['groups'][0]['id'] = 0
        self.server.answer = 200, json.dumps(h).encode()
        d = json.loads(self.diff(300, 0, '--window', '250s', '--json'))
        self.assertEqual({r['labels']['container'] for r in d['where']}, {'db', 'other'})
        h['intervals'][40]['groups'][1]['sources']['dram'][4] = None
        h['intervals'][0]['collector'][0]['coarse_histograms'] = True
        self.server.answer = 200, json.dumps(h).encode()
        d = json.loads(self.diff(300, 0, '--window', '250s', '--json'))
        self.assertEqual((d['per'], d['p99']), ('access', None))
        self.assertIn('use --per access', self.diff(300, 0, '--window', '250s', '--per', 'ops', status=1))

    def test_not_comparable(self):
        h = history({}, {})
        h['intervals'][30]['collector'] = [{'event': 'ibs_op/cnt_ctl=1/', 'metric': 'tlb_refill_lat', 'simulated': False, 'coarse_histograms': False}]
        self.server.answer = 200, json.dumps(h).encode()
        self.assertIn("the metric is 'dc_miss_lat' in A and 'tlb_refill_lat' in B", self.diff(310, 0, '--window', '250s', status=1))
        self.assertIn('choose a shorter --window', self.diff(0, 0, '--window', '500s', status=1))
        self.assertIn('did not sample ibs_fetch', self.diff(310, 0, '--window', '250s', '-e', 'ibs_fetch//', status=1))

    def test_too_few(self):
        self.server.answer = 200, json.dumps(history({})).encode()
        self.assertRegex(self.diff(3600, 0, '--window', '200s', status=1),
                         r'0 intervals until \S+, at least 8 are needed: .* there are intervals from 20\S+Z to 20\S+Z')
        self.assertIn('7 intervals', self.diff(0, 0, '--window', '70s', status=1))
        for head, want in ({'length_s': 0}, 'start it with --history'), ({}, 'still empty'):
            self.server.answer = 200, json.dumps({**history(), **head}).encode()
            self.assertIn(want, self.diff(0, 0, status=1))

    def test_lying_servers(self):
        def one(**change):
            h = history({})
            h['intervals'][25] |= change
            return 200, json.dumps(h).encode()

        def with_source(s):
            return one(groups=[{'id': 1, 'sources': {'dram': s}}])
        good = source(10, 384)
        for name, answer, want in (
                ('nothing', (200, b''), 'is not the history of'), ('html', (200, b'<html>'), 'is not the history of'),
                ('teapot', (418, b''), 'answers 418'), ('list', (200, b'[]'), 'no intervals'), ('deep', (200, b'{"a":' + b'[' * 100000), 'is not the history'),
                ('no time', one(begin_s=None), 'no times'), ('backwards', one(begin_s=1e6), 'no times'), ('no groups', one(groups=3), 'no groups'),
                ('no list', with_source({}), 'add up'), ('short', with_source(good[:5]), 'add up'), ('text', with_source(['1', *good[1:]]), 'add up'),
                ('negative', with_source([-1, *good[1:]]), 'add up'), ('half', with_source([10.5, *good[1:]]), 'add up'),
                ('more valid', with_source([9, *good[1:]]), 'add up'), ('bucket', with_source([*good[:5], [383, 10]]), 'add up'),
                ('sum', with_source([*good[:5], [384, 9]]), 'add up'), ('odd', with_source([*good[:5], [384, 10, 416]]), 'add up'),
                ('huge', with_source([1e300, *good[1:]]), 'add up'), ('collector', one(collector=[{'event': 7}]), 'did not sample')):
            with self.subTest(name):
                self.server.answer = answer
                err = self.diff(0, 0, '--window', '250s', status=1)
                self.assertIn(want, err)
        h = history({}, {}, {'dram': (90, 384)})
        h['intervals'][0]['names'][1]['container'] = '\x1b[31m\u202e</script>'
        self.server.answer = 200, json.dumps(h).encode()
        self.assertNotIn('\x1b', self.diff(300, 0, '--window', '280s'))
        self.assertIn('127.0.0.1:1', self.diff(0, 0, status=1, url='http://127.0.0.1:1'))

    def test_bad_usage(self):
        for args, want in ((['--match', 'container'], "--match: invalid 'container'"), (['--match', 'a="b" and'], '--match: invalid'),
                           (['--match', 'a=~"b"'], '--match: invalid'), (['--prometheus', 'http://x'], 'excludes --exporter'),
                           (['--causes', 'op'], 'only data sources'), (['FILE'], 'neither files'), (['--at', '-3s'], 'give two')):
            with self.subTest(args):
                self.assertIn(want, self.diff(0, 0, *args, status=2))
        self.assertIn('localhost:9950', self.diff(0, 0, status=2, url='ftp://x'))

    def test_time_of_day(self):
        """HH:MM is the last time that clocks here showed it."""
        self.server.answer = 200, json.dumps(history({})).encode()
        for ago in 3600, 82800:
            then = time.time() - ago
            at = time.strftime('%H:%M', time.localtime(then))
            p = run('diff', '--exporter', self.url, '--at', at, '--at', 'now', '--window', '100s')
            self.assertIn('0 intervals until ' + time.strftime('%Y-%m-%dT%H:%M:00Z', time.gmtime(then)), p.stderr)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Live(unittest.TestCase):
    def test_exporter(self):
        """What a real exporter keeps of counters whose story is known."""
        fill = subprocess.Popen([os.path.join(BUILD, 'tests/unit/fill_pins'), DIR, '3', '8', 'same'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(fill.stdout.close)
        self.addCleanup(fill.wait, 60)
        self.addCleanup(fill.terminate)
        fill.stdout.readline()
        e = Exporter('--history', '10m', '--history-interval', '1s', pin_dir=DIR)
        self.addCleanup(e.stop, signal.SIGKILL)

        def intervals():
            return len([i for i in json.loads(e.get('/api/history.json')[2])['intervals'] if 'gap' not in i])
        until(lambda: intervals() >= 10)
        changed = time.time()
        fill.send_signal(signal.SIGUSR1)
        n = intervals()
        until(lambda: intervals() >= n + 11)
        p = run('diff', '--exporter', e.url, '--at', f'{changed:.3f}', '--at', 'now', '--window', '10s', '--match',
                'container="checkout",pod="checkout-7d9f8b6c5d-00001"')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        self.assertRegex(p.stdout, r'A .*SIMULATED, ')
        self.assertRegex(p.stdout, r'\+\d+ points  dram answered more slowly \(mean (39|40)\d → (5[89]|60)\d cycles\)')
        self.assertAlmostEqual(float(re.search(r', \+([\d.]+) % ±', p.stdout)[1]), 31, delta=7)


if __name__ == '__main__':
    unittest.main()
