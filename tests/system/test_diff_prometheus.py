# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`diff --prometheus`: constructed changes that a real Prometheus has, and servers that lie."""
import http.server
import json
import os
import random
import subprocess
import tempfile
import threading
import unittest

import schemas
from ibscope import BUILD, free_port, run
from test_exporter import Program, needs

START = 1_700_000_000
STEP_S = 10
HOURS = 3
PERIOD = 100_000
# a second and container: samples of loads, those with a latency by source, and how many cycles they take
USUAL = {'near': (40, 60), 'dram': (20, 400), 'remote': (10, 700)}
SAMPLES = 1000
LATENCY = 'ibscope_load_miss_latency_cycles'
EDGES = 32, 64, 128, 192, 256, 384, 512, 640, 768, 1024, 1536, 2048     # those of --detail medium up to here
SLOW = .1, 3    # this share of dram takes so many times the mean; the 99th percentile is one of them
SIMULATED_FROM = 9700


def changed(container, hour):
    """Each hour is another truth."""
    if hour == 1 and container == 'db':
        return {**USUAL, 'dram': (20, 600)}
    if hour == 2 and container == 'web':
        return {**USUAL, 'remote': (30, 700)}
    return USUAL


def series(rnd):
    """OpenMetrics of HOURS hours, a sample each STEP_S; the collector starts again in the third, and simulates at last."""
    out = {f'{LATENCY}': [], 'ibscope_samples': [], 'ibscope_estimated_ops': []}
    out['ibscope_simulated'] = [f'ibscope_simulated{{instance="host:9950"}} {int(at >= SIMULATED_FROM)} {START + at}'
                                for at in range(0, HOURS * 3600, STEP_S)]
    for container in ('db', 'web', 'idle'):
        labels = f'container="{container}",instance="host:9950"' + (',namespace="shop",pod="db-1"' if container == 'db' else '')
        total = {}
        for at in range(0, HOURS * 3600, STEP_S):
            if at == int(2.5 * 3600):
                total = {}
            truth = changed(container, at // 3600)
            scale = STEP_S * (.02 if container == 'idle' else 1) * rnd.lognormvariate(0, .2)
            n = int(SAMPLES * scale)
            total['n'] = total.get('n', 0) + n
            for src, (often, cycles) in truth.items():
                k = sum(rnd.random() < .5 for _ in range(int(2 * often * scale)))
                total[src] = total.get(src, 0) + k
                total[src, 'sum'] = total.get((src, 'sum'), 0) + int(k * rnd.gauss(cycles, cycles * .3 / max(k, 1) ** .5))
                share, times = SLOW if src == 'dram' else (0, 1)
                slow = int(k * share)
                for n_of, of in (slow, cycles * times), (k - slow, cycles * (1 - share * times) / (1 - share)):
                    for le in EDGES:
                        total[src, le] = total.get((src, le), 0) + (n_of if of <= le else 0)
            when = f'{START + at}'
            out['ibscope_samples'].append(f'ibscope_samples_total{{{labels},op="load"}} {total["n"]} {when}')
            out['ibscope_estimated_ops'].append(f'ibscope_estimated_ops_total{{{labels},op="load"}} {total["n"] * PERIOD} {when}')
            for src in USUAL:
                for name, v in (('sum', total[src, 'sum']), ('count', total[src])):
                    out[LATENCY].append(f'{LATENCY}_{name}{{{labels},src="{src}"}} {v} {when}')
                for le in EDGES:
                    out[LATENCY].append(f'{LATENCY}_bucket{{{labels},src="{src}",le="{le}"}} {total[src, le]} {when}')
                out[LATENCY].append(f'{LATENCY}_bucket{{{labels},src="{src}",le="+Inf"}} {total[src]} {when}')
    text = ''
    for name, lines in out.items():
        lines.sort(key=lambda x: (x.rsplit(' ', 2)[0].split('{')[1], x.split('{')[0], int(x.rsplit(' ', 1)[1])))
        kind = {LATENCY: 'histogram', 'ibscope_simulated': 'gauge'}.get(name, 'counter')
        text += f'# TYPE {name} {kind}\n' + '\n'.join(lines) + '\n'
    return text + '# EOF\n'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        status, body = self.server.answer
        self.send_response(status)
        if status == 302:
            self.send_header('Location', 'http://127.0.0.1:1/')
        self.end_headers()
        try:
            while True:
                self.wfile.write(body)
                if status != 299:
                    break
        except OSError:
            pass

    def log_message(self, *args):
        pass


class DiffPrometheus(unittest.TestCase):
    def diff(self, url, *args, status=0):
        p = run('diff', '--prometheus', url, *args)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stderr if status else p.stdout

    @needs('prometheus')
    @needs('promtool')
    def test_constructed(self):
        with tempfile.TemporaryDirectory(prefix='ibscope-diffprom.') as d:
            with open(d + '/text', 'w') as f:
                f.write(series(random.Random(5)))
            subprocess.run(['promtool', 'tsdb', 'create-blocks-from', 'openmetrics', d + '/text', d + '/data'], check=True,
                           stdout=subprocess.DEVNULL)
            with open(d + '/p.yml', 'w') as f:
                f.write('global: {}\n')
            port = free_port()
            p = Program(['prometheus', f'--config.file={d}/p.yml', f'--storage.tsdb.path={d}/data', '--storage.tsdb.retention.time=100y',
                         f'--web.listen-address=127.0.0.1:{port}'], 'ready to receive|Server is ready')
            self.addCleanup(p.stop)
            url = f'http://127.0.0.1:{port}'
            for at, want, container in ((3500, None, None), (7100, ('dram', 'slower'), 'db'), (8900, ('remote', 'more often'), 'web'),
                                        (9600, ('remote', 'more often'), 'web')):  # the counters began again in the last one
                with self.subTest(at=at):
                    got = json.loads(self.diff(url, '--at', str(START + 1700), '--at', str(START + at), '--window', '20m', '--json'))
                    found = [(r['cause'], r['kind']) for r in got['causes'] if r['change']['finding']]
                    where = [r['labels']['container'] for r in got['where'] if r['change']['finding']]
                    self.assertEqual(found[:1], [want] if want else [])
                    self.assertEqual(where, [container] if container else [])
                    self.assertAlmostEqual(got['a']['value'], sum(n * c for n, c in USUAL.values()) / SAMPLES, delta=2)
                    self.assertEqual((got['a']['simulated'], got['b']['simulated']), (False, False))
                    self.check_p99(got['p99'], 600 if container == 'db' else 400)
            text = self.diff(url, '--at', '2023-11-14T22:40:00Z', '--at', '2023-11-15T00:10:00Z', '--match', 'container="db"')
            self.assertIn('until 2023-11-14T22:40:00Z', text)
            self.assertIn('dram answered more slowly', text)
            self.assertRegex(text, r'\n  in buckets: 1,024 to 1,536 (→|->) 1,536 to 2,048 cycles\n')
            self.assertRegex(text, r'\n +\+\d+ points  dram slower\n')
            self.ask_why(url)
            self.ask_simulated(url)
            self.assertIn('no series of', self.diff(url, '--at', '0600', '--at', '1200', status=1))
            self.assertIn('parse error', self.diff(url, '--at', '-1h', '--at', '-2h', '--match', 'x=', status=1))

    def check_p99(self, got, cycles):
        """The true one of both sides is within its edges, the change within its interval, and a finding if it cannot be zero."""
        for side, truth in ('a', 400 * SLOW[1]), ('b', cycles * SLOW[1]):
            low, high = got[side + '_edges']
            self.assertTrue(low < truth <= high and low <= got[side] <= high, (side, got))
        change = got['change']
        self.assertTrue(change['low'] <= (cycles - 400) * SLOW[1] <= change['high'], change)
        self.assertEqual(change['finding'], cycles != 400)
        self.assertAlmostEqual(sum(f['change']['change'] for f in got['factors']), change['change'], places=5)
        self.assertEqual([(f['factor'], f['cause']) for f in got['factors'] if f['change']['finding']],
                         [('latency', 'dram')] if cycles != 400 else [])

    def ask_simulated(self, url):
        """Which only a series of the exporter knows, without the labels of containers."""
        at = ['--at', str(START + 10100), '--at', str(START + 10500), '--window', '5m', '--match', 'container="db"']
        self.assertEqual(self.diff(url, *at).count('SIMULATED'), 2)
        got = json.loads(self.diff(url, *at, '--json'))
        self.assertEqual((got['a']['simulated'], got['b']['simulated']), (True, True))
        self.assertIn("simulated is 'no' in A and 'yes' in B", self.diff(url, '--at', str(START + 1700), *at[2:], status=1))
        out = self.why(url, '--at', str(START + 10300), '--duration', '150s', '--match', 'container="db"')
        self.assertTrue(out.startswith('SIMULATED samples, not measurements\nshop/db-1/db\n'), out)

    def why(self, url, *args, status=0):
        p = run('why', '--prometheus', url, *args, env={**os.environ, 'COLUMNS': '80', 'LC_ALL': 'C.UTF-8'})
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stderr if status else p.stdout

    def ask_why(self, url):
        """The same truths, asked by the moment at which they began."""
        hour = [str(START + 3600 * n) for n in range(HOURS)]
        for args in [], ['db'], ['db-1/db'], ['shop/db-1/db'], ['--match', 'instance="host:9950"']:     # alone: the one that waits most
            with self.subTest(args):
                out = self.why(url, '--at', hour[1], *args)
                self.assertEqual(out.splitlines()[0], 'shop/db-1/db')
                self.assertLessEqual(len(out.splitlines()), 14, out)
                self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
                self.assertRegex(out, r'Then: 5m from 2023-11-14T23:13:20Z, [\d,]+ samples;\sbefore: 30m, [\d,]+\s+samples')
                self.assertRegex(out, r'dram answered more slowly \(mean (39|40)\d → (59|60)\d cycles\)')
                self.assertRegex(out, r'p99 of latency: 1,\d{3} → 1,\d{3} cycles, \+\d+ % ± \S+ %\n  in buckets: 1,024 to 1,536 → 1,536 to 2,048 cycles\n')
                self.assertIn('Others: no other container waited more', out)
        out = self.why(url, '--at', hour[1], 'web')
        self.assertIn('No difference that is more than noise', out)
        self.assertIn('Others: shop/db-1/db waited more, too', out)
        self.assertRegex(self.why(url, '--at', hour[2], 'web'), r'remote more often \((9|10)\.\d → (29|30|31)\.\d of a thousand ops\)')
        got = json.loads(self.why(url, '--at', hour[2], 'web', '--json'))
        if schemas.jsonschema:
            schemas.Schemas().check('diff', got)
        self.assertEqual([(r['cause'], r['kind']) for r in got['causes'] if r['change']['finding']][:1], [('remote', 'more often')])
        self.assertEqual(got['b']['selection'], 'web from 2023-11-15T00:13:20Z')
        self.assertIn("nothing of 'dbb' around 2023-11-14T23:13:20Z; did you mean 'db'?; `ibscope diff --prometheus` shows all",
                      self.why(url, '--at', hour[1], 'dbb', status=1))
        self.assertIn('no series of', self.why(url, '--at', hour[1], '--match', 'instance="other:9950"', status=1))
        self.assertIn('parse error', self.why(url, '--at', hour[1], '--match', 'x=', status=1))

    def test_names_are_those_of_the_exporter(self):
        names = subprocess.run([os.path.join(BUILD, 'ibscope-exporter'), '--list-metrics'], capture_output=True, text=True, check=True).stdout
        for name in (LATENCY, 'ibscope_samples_total', 'ibscope_estimated_ops_total', 'ibscope_fetch_latency_cycles',
                     'ibscope_fetch_samples_total', 'ibscope_estimated_fetches_total'):
            self.assertRegex(names, rf'(?m)^{name} ')

    def test_bad_usage(self):
        for args, want in ((['--at', '-1h'], '--at twice'), (['--at', 'noon', '--at', '-1h'], "invalid time 'noon'"),
                           (['--at', '-1h', '--at', '-2h', '--at', '-3h'], 'give two'), (['--at', '-1h', '--at', '-2h', 'FILE'], 'neither files'),
                           (['--at', '-1h', '--at', '-2h', '--window', '1s'], '--window'),
                           (['--at', '-1h', '--at', '-2h', '--causes', 'op'], 'only data sources')):
            with self.subTest(args):
                self.assertIn(want, self.diff('http://127.0.0.1:1', *args, status=2))
        self.assertIn('must be as in http', self.diff('file:///etc/passwd', '--at', '-1h', '--at', '-2h', status=2))
        p = run('diff', '--at', '-1h', '--at', '-2h')
        self.assertEqual((p.returncode, '--prometheus URL' in p.stderr), (2, True))

    @staticmethod
    def histogram(edges):
        """The series of a container, 100 samples a step, of which 50 are up to the first of these edges and all up to the others."""
        def series(name, each, **labels):
            return {'metric': {'__name__': name, 'container': 'x', **labels},
                    'values': [[START + 20 * i, str(each * i)] for i in range(31)]}
        counts = [50, 100, 100, 100]
        return [series('ibscope_samples_total', 100, op='load'), series('ibscope_estimated_ops_total', 100 * PERIOD, op='load'),
                series(LATENCY + '_sum', 20000, src='dram'), series(LATENCY + '_count', 100, src='dram'),
                *(series(LATENCY + '_bucket', n, src='dram', le=le) for n, le in zip(counts, edges))]

    def test_lying_servers(self):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f'http://127.0.0.1:{server.server_port}'

        def result(*series):
            return 200, json.dumps({'status': 'success', 'data': {'result': list(series)}}).encode()
        metric = {'__name__': LATENCY + '_sum', 'src': 'dram', 'container': 'x'}
        for name, answer, want in (
                ('nothing', (200, b''), 'is not one of Prometheus'), ('html', (200, b'<html>'), 'is not one of Prometheus'),
                ('error', (400, b'{"status":"error","error":"no such thing\x1b[31m"}'), 'no such thing'), ('teapot', (418, b''), 'answers 418'),
                ('redirect', (302, b''), 'answers 302'), ('endless', (299, b'[1,' * 100000), 'longer than 256 MiB'),
                ('empty', result(), 'no series of'),
                ('native', result({'metric': {**metric, '__name__': 'ibscope_samples_total'}, 'values': [[START, '0'], [START + STEP_S, '1000']]}),
                 'no series of %s_count ' % LATENCY),
                ('list', (200, b'[]'), 'no list of series'), ('numbers', result(1, 2), 'no name'),
                ('text', result({'metric': metric, 'values': [[0, 'NaN']]}), 'not that of a counter'),
                ('far', result({'metric': metric, 'values': [[1e300, '1']]}), 'not that of a counter'),
                ('negative', result({'metric': metric, 'values': [[START, '-1']]}), 'not that of a counter'),
                ('many', result(*[{'metric': metric, 'values': [[START, '0'], [START + STEP_S, '9e17']]}] * 30), 'not that of a counter'),
                ('deep', (200, b'{"data":' + b'[' * 100000), 'is not one of Prometheus')):
            with self.subTest(name):
                server.answer = answer
                err = self.diff(url, '--at', str(START + 600), '--at', str(START + 600), status=1)
                self.assertRegex(err, want)
                self.assertNotIn('\x1b', err)
                if name != 'endless':   # it is read in the same way, which takes a while
                    err = self.why(url, '--at', str(START + 600), status=1)
                    self.assertIn(want, err)
                    self.assertNotIn('\x1b', err)
        for name, le, known in (('whole', ['64', '512.0', '+Inf'], True), ('no buckets', [], False), ('no edge', ['+Inf'], False),
                                ('no sum', ['64', '512'], False), ('not of the exporter', ['64', '100', '+Inf'], False),
                                ('no number', ['64', '5x', '+Inf'], False), ('infinite', ['64', '1e999', '+Inf'], False),
                                ('NaN', ['NaN', '64', '+Inf'], False), ('of two with other edges', ['64', '64', '512', '+Inf'], False)):
            with self.subTest('edges: ' + name):
                server.answer = result(*self.histogram(le))
                got = json.loads(self.diff(url, '--at', str(START + 600), '--at', str(START + 600), '--json'))
                self.assertEqual(got['p99'] is not None, known)
                if known:
                    self.assertEqual(got['p99']['a_edges'], [64, 512])
        # counters that contradict each other
        server.answer = result(*self.histogram(['512', '64', '+Inf']))
        self.assertEqual(json.loads(self.diff(url, '--at', str(START + 600), '--at', str(START + 600), '--json'))['a']['samples'], 3000)
        self.assertIn('127.0.0.1:1', self.diff('http://127.0.0.1:1', '--at', '-1h', '--at', '-2h', status=1))
        self.assertIn('127.0.0.1:1', self.why('http://127.0.0.1:1', '--at', '-1h', status=1))
        # names that a server invents are quoted in what it is asked next
        hostile = {'__name__': LATENCY + '_sum', 'src': 'dram', 'container': 'x"\\\n\x1b[31m'}
        server.answer = result({'metric': hostile, 'values': [[START, '0'], [START + STEP_S, '10']]})
        self.assertNotIn('\x1b', self.why(url, '--at', str(START), status=1))


if __name__ == '__main__':
    unittest.main()
