# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What people see of the exporter: its page in a browser, rules and dashboard in a real Prometheus."""
import contextlib
import http.server
import json
import os
import re
import tempfile
import subprocess
import threading
import unittest
import urllib.parse
import urllib.request

import browser
import test_exporter
import test_monitoring
from ibscope import Busy, Cgroup, cgroup2_mount, free_port, run
from test_exporter import DIR, NOBODY, OK, WHY

# of the software clock, whose samples may lack open requests and with them exposed cycles; against a time before the test
MAY_RECORD_NOTHING = {'instance:ibscope_unseen:share5m',
                      'container:ibscope_load_exposed_cycles:rate5m',
                      'namespace_container:ibscope_load_exposed_cycles:rate5m',
                      'namespace_container:ibscope_load_miss_cycles:change1d',
                      'namespace_container:ibscope_load_miss_cycles:change1w',
                      'namespace_container:ibscope_load_cost_cycles:change1d',
                      'namespace_container:ibscope_load_cost_cycles:change1w',
                      'namespace_container:ibscope_load_exposed_cycles:rate1h',
                      'namespace_container:ibscope_load_exposed_cycles:per_op1h'}
# with classic and with native histograms
ONLY_NATIVE = {'namespace_container_src:ibscope_load_miss_latency_cycles:rate5m'}
ONLY_CLASSIC = {'namespace_container_src:ibscope_load_miss_latency_cycles_bucket:rate5m'}
MAY_SHOW_NOTHING = {'Containers with most page walks: share of ops', 'Exposed cycles per op: change since yesterday (miss cycles where not known)',
                    'Containers slowed by a neighbour on the same L3 (collectors that group by container and ccx)'}


def find_prometheus3():
    p = subprocess.run([os.path.join(test_monitoring.ROOT, 'tests/system/prometheus3.sh'), '--find'], capture_output=True, text=True)
    return p.stdout.strip()


PROMETHEUS3 = find_prometheus3()


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Seen(test_exporter.Collected):
    ARGS = ('-e', 'ibs_op//,ibs_fetch//')

    def dom(self, url):
        """Of a page, as a browser has it after a while."""
        return browser.browse().dom(url, 25000)[0]

    @test_exporter.needs('chromium')
    def test_page(self):
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        self.until(lambda: all(f'ibscope_estimated_{x}_total{{' in e.get('/metrics')[2] for x in ('ops', 'fetches')))
        self.until(lambda: json.loads(e.get('/api/snapshot.json')[2])['governor']['overhead'])    # after a second
        dom = self.dom(e.url + '/')
        self.assertRegex(dom, r'>collecting</span>')
        self.assertRegex(dom, rf'<h1 id="host">{re.escape(os.uname().nodename)}<')
        self.assertRegex(dom, r'<div id="band" class="band" role="alert"><p>SIMULATED')
        self.assertIn('aggregated', dom)
        self.assertIn('Memory is DRAM, CXL and persistent memory of any node.', dom)
        # without a governor the cost is said, and that nothing bounds it
        self.assertRegex(re.sub('<[^>]*>', ' ', dom), r'cost (?!0 %)[\d.<\xa0\u202f ]+%, not controlled')
        self.assertRegex(dom, r'title="/"[^>]*><b>host, no container</b>')
        self.assertNotRegex(e.get('/')[2], r'(src|href)="(https?:)?//|style="')
        rows = re.findall(r'<tr data-samples="(\d+)"([^>]*)>(.*?)</tr>', dom, re.S)
        # of each container: name, samples, miss cycles, share, trend, change, memory, remote, TLB walks, p50, p99
        cells = re.findall(r'<td[^>]*>(.*?)</td>', rows[0][2])
        self.assertEqual(len(cells), 11)
        self.assertRegex(' '.join(cells[i] for i in (1, 2, 6, 7, 8)), r'^[\d,]+ ~?[\d.]+ [\d.]+ [\d.]+ [\d.<\xa0 ]+$')
        self.assertRegex(dom, r'id="trust">(95% intervals of cycles: ±[\d.]+%|every row has fewer than 20 samples)')
        self.assertIn('total', rows[-1][1])
        self.assertEqual(sum(int(n) for n, _, _ in rows[:-1]), int(rows[-1][0]))
        # of fetches: name, samples, fetches a second, six outcomes, page walks, mean latency
        rows = re.findall(r'<tr data-fetches="(\d+)"([^>]*)>(.*?)</tr>', dom, re.S)
        cells = re.findall(r'<td[^>]*>(.*?)</td>', rows[-1][2])
        self.assertEqual(len(cells), 11)
        self.assertAlmostEqual(sum(map(float, cells[3:9])), 100, delta=0.4)
        self.assertIn('total', rows[-1][1])
        self.assertEqual(sum(int(n) for n, _, _ in rows[:-1]), int(rows[-1][0]))
        self.assertRegex(dom, r'One sample per [\d,]+ fetches')

    def start_with_latencies(self):
        """Returns an exporter, and a snapshot of it in which more than ten samples have a latency."""
        e, d = self.start(test_exporter.Exporter), {}

        def counted():
            d.update(json.loads(e.get('/api/snapshot.json')[2]))
            return sum(s['valid'] for c in d['containers'] for s in c['sources'].values()) > 10
        self.until(counted)
        return e, d

    @test_exporter.needs('chromium')
    def test_page_shows_the_miss_cycles_of_hist(self):
        """Miss cycles of the page are those that the code of hist worked out for the snapshot."""
        e, d = self.start_with_latencies()
        # all of them are shown; those of tests that run beside this one are removed and made again, which are one row, as are
        # those that were gone before their names were read
        d['containers'] = list({self.labels(c): c for c in d['containers'] if c['sources'] and c['cgroup'][:1] != '#'}.values())[:10]
        rows = re.findall(r'<tr data-samples="(\d+)" data-cycles="([\d.e+]+)"[^>]*>', self.dom(self.serve_page(e.get('/')[2].encode(), d)))
        miss = [sum(s['miss_cycles'] or 0 for s in c['sources'].values()) for c in d['containers']]
        self.assertEqual(len(miss), len(rows) - 1)
        for shown, known in zip(sorted((float(c) for _, c in rows[:-1])), sorted(miss)):
            self.assertAlmostEqual(shown, known, delta=len(d['containers']) * 20)    # whole numbers of each source

    @test_exporter.needs('chromium')
    def test_page_ranks_by_exposed_cycles(self):
        """As hist does: where they are known of all containers, else by miss cycles."""
        e, d = self.start_with_latencies()
        one = max(d['containers'], key=lambda c: sum(s['valid'] for s in c['sources'].values()))
        more = {'dram': next(s for s in one['sources'].values() if s['valid'])}
        most = {'dram': more['dram'], 'l3': more['dram']}
        for unknown in 0, 1:
            with self.subTest(unknown=unknown):
                d['containers'] = [{**one, 'cgroup': name, 'sources': sources, 'exposed': {'cycles': cycles, 'unknown_samples': n}} for name, sources, cycles, n in (
                    ('/most', most, 1000000, 0), ('/half', more, 2000000, 0), ('/none', more, 0, unknown))]
                dom = self.dom(self.serve_page(e.get('/')[2].encode(), d))
                rows = [re.sub('<[^>]*>', '', name) for name in re.findall(r'<tr data-samples="\d+"[^>]*><td>(.*?)</td>', dom, re.S)]
                self.assertRegex(dom, r'aria-sort="descending"><button[^>]*><span>%s, ' % ('Miss cycles' if unknown else 'Exposed'))
                self.assertEqual(rows[:3], ['/most', '/half', '/none'] if unknown else ['/half', '/most', '/none'])
                self.assertEqual('Exposed' in dom.split('<script')[0], not unknown)

    def kept(self, e):
        """The history, as soon as it has groups."""
        got = {}

        def has_groups():
            got.update(json.loads(e.get('/api/history.json')[2]))
            return any(i.get('groups') for i in got['intervals'])
        self.until(has_groups)
        return got

    @staticmethod
    def labels(group):
        return tuple(group[k] for k in ('namespace', 'pod', 'container', 'cgroup'))

    @test_exporter.needs('chromium')
    def test_page_says_what_the_history_left_out(self):
        """Groups that a full history has no room for are said in words, and only then."""
        e = self.start(test_exporter.Exporter)
        got = self.kept(e)
        snapshot = json.loads(e.get('/api/snapshot.json')[2])
        for n, says in (0, None), (1, '1 group has no row of its own and is in'), (3, 'Up to 3 groups in an interval have no rows of their own and are in'):
            for i in got['intervals']:
                i['left_out'] = n
            dom = self.dom(self.serve_page(e.get('/')[2].encode(), snapshot, got))
            text = re.sub('<[^>]*>', ' ', re.sub(r'(?s)<(script|style)\b.*?</\1>', '', dom))
            if says:
                self.assertIn(says, text)
            else:
                self.assertNotIn('of their own', text)
                self.assertRegex(text, r'The last \d')

    @test_exporter.needs('chromium')
    def test_page_of_ended_groups(self):
        """They keep their names; those that never had one are one row."""
        e = self.start(test_exporter.Exporter)
        got = self.kept(e)
        d = {**json.loads(e.get('/api/snapshot.json')[2]), 'alive': True, 'groups_displaced': 0, 'start_s': 1}
        d.pop('fetch')
        [old, *_] = [i for i in got['intervals'] if i.get('groups')]
        row = old['groups'][0]
        names = {'/here': '/here', '/gone/db': '/gone/db (ended)', '#77': None, '#78': None, 'other': 'other'}
        old['names'] = [{'id': n, 'cgroup': name} for n, name in enumerate(names, 1)]
        old['groups'] = [{**row, 'id': n} for n in range(1, len(names) + 1)]
        old.pop('fetch')
        got['intervals'] = [old, {**old, 'number': old['number'] + 1, 'begin_s': old['end_s'], 'end_s': 2 * old['end_s'] - old['begin_s'], 'names': []}]
        d['containers'] = [{'cgroup': '/here', 'tlb': d['containers'][0]['tlb'], 'sources': {}}]
        for displaced, says in (0, ' (ended)'), (1, ' (ended or in other)'):
            d['groups_displaced'] = displaced
            dom = self.dom(self.serve_page(e.get('/')[2].encode(), d, got))
            rows = re.findall(r'<tr data-samples="(\d+)"[^>]*><td><button class="name[^"]*" title="([^"]*)"', dom)
            want = [name.replace(' (ended)', says) for name in names.values() if name] + ['unnamed (2)']
            self.assertEqual(sorted(name for _, name in rows), sorted(want))
            count = {name: int(n) for n, name in rows}
            self.assertEqual(count['unnamed (2)'], 2 * count['/here'])
            self.assertIn('Unnamed are groups that were gone', dom)
            self.assertNotRegex(dom, '>[^<]*#7[78]')
        d['start_s'] = 1e10    # the counters are younger than the history
        self.assertIn('title="/gone/db"', self.dom(self.serve_page(e.get('/')[2].encode(), d, got)))

    def serve_page(self, page, d, history=None):
        """Serve the page with snapshot @d, which may change or be a function."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):      # a browser may go away
                    now = history if history and 'history' in self.path else d() if callable(d) else d
                    self.wfile.write(json.dumps(now).encode() if 'json' in self.path else page)

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f'http://127.0.0.1:{server.server_port}/'

    @test_exporter.needs('chromium')
    def test_page_of_labels_and_problems(self):
        """Labels of --by, names that nothing has yet, and counters that cannot be read."""
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        self.until(lambda: json.loads(e.get('/api/snapshot.json')[2])['containers'])
        d = {**json.loads(e.get('/api/snapshot.json')[2]), 'alive': True, 'waiting_for': '--container web, --cgroup /x'}
        group = d['containers'][0]
        d['containers'] = [{k: v for k, v in group.items() if k not in ('namespace', 'pod', 'container', 'cgroup')} |
                           {'comm': comm, 'node': '1'} for comm in ('postgres', 'nginx', 'a-name-of-many-letters-7', 'a-name-of-many-letters-8')]
        d['containers'].append({**d['containers'][0], 'cgroup': '/', 'comm': 'sshd', 'node': '1'})
        url = self.serve_page(e.get('/')[2].encode(), d)
        dom = self.dom(url)
        self.assertRegex(dom, r'title="/, comm sshd, node 1"[^>]*><b>no [^<]*node 1</b></button>')
        for comm in 'postgres', 'nginx':
            self.assertRegex(dom, rf'title="comm {comm}, node 1"[^>]*><b>com[^<]* 1</b></button>')
        for n in 7, 8:    # what is cut is the middle of a name, and it is read in full
            self.assertRegex(dom, rf'title="(comm a-name-of-many-letters-{n}, node 1)"[^>]* aria-label="\1"[^>]*><b>comm[^<]*…[^<]*{n}, node 1</b></button>')
        self.assertIn('>Waiting for --container web, --cgroup /x: nothing matches yet.<', dom)
        d.clear()
        d.update(collector=None, why='cannot open /x', containers=[])
        dom = self.dom(url)
        self.assertIn('>the counters cannot be read<', dom)
        self.assertIn('>cannot open /x<', dom)

    @test_exporter.needs('chromium')
    def test_page_of_time(self):
        """Ten minutes of readings: the page has trends, and where in time the latencies were."""
        tlb = dict.fromkeys(('l2_hit', 'l2_miss', 'l2_hit_ops', 'l2_miss_ops', 'refills', 'refill_cycles'), 0)
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        d = {**json.loads(e.get('/api/snapshot.json')[2]), 'alive': True}

        def reading():
            d['time_s'] += 5
            n = int(d['time_s'] / 5) * 500
            dram = {'samples': n, 'valid': n, 'sum': n * 400, 'estimated_ops': n * 1000, 'buckets': [[416, n]]}
            return {**d, 'containers': [{'cgroup': '/a', 'tlb': tlb, 'sources': {'dram': dram}}]}
        dom = self.dom(self.serve_page(e.get('/')[2].encode(), reading))
        self.assertRegex(dom, r'aria-label="Latency of /a over the last')
        self.assertIn('<path class="spark"', dom)
        # of n equal samples 1.96 / sqrt(n); a minute has 6,000
        self.assertRegex(dom, r'id="trust">95% intervals of cycles: ±2\.[4-7]%<')
        # 500 samples of 1,000 ops in 5 s, of 400 cycles each: 40 million cycles/s
        self.assertRegex(dom, r'<tr data-samples="\d+"[^>]*>.*?<td class="">40.0</td>')

    @test_exporter.needs('chromium')
    def test_page_of_too_many(self):
        """Buckets that are too wide for percentiles yield none, and the page says why."""
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        dram = {'samples': 500, 'valid': 500, 'sum': 200000, 'estimated_ops': 500000, 'miss_cycles': 200000000, 'buckets': [[512, 499], [65535, 1]]}
        tlb = dict.fromkeys(('l2_hit', 'l2_miss', 'l2_hit_ops', 'l2_miss_ops', 'refills', 'refill_cycles'), 0)
        for coarse, cells in (False, ['512', '512']), (True, ['–', '–']):
            d = {**json.loads(e.get('/api/snapshot.json')[2]), 'alive': True, 'coarse_histograms': coarse,
                 'containers': [{'cgroup': '/a', 'tlb': tlb, 'sources': {'dram': dram}}]}
            dom = self.dom(self.serve_page(e.get('/')[2].encode(), d))
            row = re.search(r'<tr data-samples="500".*?</tr>', dom, re.S).group()
            self.assertEqual(re.findall(r'<td[^>]*>([^<]*)</td>', row)[-2:], cells, row)
            self.assertEqual('>Too many containers to keep all latencies' in dom, coarse)

    @test_exporter.needs('chromium')
    def test_page_of_a_governor(self):
        """What the page says when less is sampled than asked for."""
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        d = {**json.loads(e.get('/api/snapshot.json')[2]), 'alive': True, 'period': 500000}
        page = e.get('/')[2].encode()

        url = self.serve_page(page, d)
        asked = {'budget': 0.005, 'overhead': 0.0011, 'period_asked': d['period'], 'changes': {}}
        for governor, said, hidden in (
                ({'state': 'at_rate', 'reason': 'none'}, '>collecting</span>', True),
                ({'state': 'off', 'reason': 'none', 'budget': None}, '>collecting</span>', True),
                ({'state': 'off', 'reason': 'none', 'budget': None, 'overhead': None}, 'cost not known yet, not controlled', True),
                ({'state': 'backed_off', 'reason': 'throttled', 'period_asked': 1234}, 'throttled sampling): 500,000 instead of 1,234', False),
                ({'state': 'stopped', 'reason': 'budget', 'retry_s': 61.5}, 'exceeded the budget); next try in 61.5 s', False)):
            d['governor'] = {**asked, **governor}
            dom = self.dom(url)
            band = re.search(r'<div id="band".*?</div>', dom, re.S).group()
            self.assertTrue(said in dom, band)
            self.assertEqual('Longer period' not in band and 'stopped' not in band, hidden, governor)
            self.assertEqual('>sampling is stopped<' in dom, governor['state'] == 'stopped')
            self.assertEqual('0.11 % now, budget 0.50 %' in dom, governor['state'] != 'off')

    @test_exporter.needs('prometheus')
    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_prometheus(self):
        """histogram_quantile of each container and source is hist's percentile, within a bucket."""
        cg = Cgroup(f'/ibscope-prom-{os.getpid()}')
        self.addCleanup(cg.remove)
        busy = Busy(1, cg)
        self.addCleanup(busy.stop)
        edges = [64, 80, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1536, 2048]
        e = self.start(test_exporter.Exporter, '--detail', 'full', '--edges', ','.join(map(str, edges)), prefix=NOBODY)
        self.until(lambda: cg.path in e.get()[2])
        self.until(lambda: len(self.percentiles(edges)) > 20)
        type(self).collector.stop()     # what is counted stays, for both to read
        busy.stop()
        try:
            self.compare(e, edges)
        finally:
            type(self).collector = test_exporter.collector(*self.ARGS)

    @contextlib.contextmanager
    def prometheus(self, *exporters, rules='', native=None, feature=False):
        """A Prometheus that scrapes as job ibscope; yields a query function. native: a program that converts to native histograms; feature: it can have them."""
        targets = json.dumps([f'127.0.0.1:{e.port}' for e in exporters])
        with tempfile.TemporaryDirectory() as d:
            with open(d + '/rules.yml', 'w') as f:
                f.write(rules)
            with open(d + '/p.yml', 'w') as f:
                f.write('global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n'
                        'scrape_configs:\n- job_name: ibscope\n  honor_labels: true\n'
                        + ('  convert_classic_histograms_to_nhcb: true\n' if native else '') + '  static_configs:\n'
                        f'  - targets: {targets}\n')
            port = free_port()
            p = self.start(test_exporter.Program, [native or 'prometheus', *(['--enable-feature=native-histograms'] if native or feature else []),
                                     f'--config.file={d}/p.yml', f'--storage.tsdb.path={d}/data',
                                     f'--web.listen-address=127.0.0.1:{port}'], 'ready to receive|Server is ready')

            def query(q):
                r = urllib.request.Request(f'http://127.0.0.1:{port}/api/v1/query', data=('query=' + urllib.parse.quote(q)).encode())
                with urllib.request.urlopen(r) as a:
                    return json.load(a)['data']['result']
            query.url = f'http://127.0.0.1:{port}'
            self.until(lambda: len(query('up == 1')) == len(exporters))
            yield query
            p.stop()

    @test_exporter.needs('prometheus')
    def test_rules_and_dashboard(self):
        """Of what is really scraped, each rule records something, and each panel shows something."""
        self.rules_and_dashboard(MAY_RECORD_NOTHING | ONLY_NATIVE)

    @test_exporter.needs('prometheus')
    def test_native_by_protobuf(self):
        """Prometheus 2 makes native histograms of protobuf only, which the exporter does not have: buckets stay, and diff reads them."""
        e = self.start(test_exporter.Exporter)
        accept = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1'
        self.until(lambda: 'ibscope_load_miss_latency_cycles_bucket' in e.get('/metrics')[2])
        self.assertIn('application/openmetrics-text; version=1.0.0', e.get(Accept=accept)[1]['Content-Type'])
        with self.prometheus(e, feature=True) as query:
            self.until(lambda: query('ibscope_load_miss_latency_cycles_bucket'))
            self.assertEqual(query('ibscope_load_miss_latency_cycles'), [])
            got = []    # enough seconds have been scraped
            self.until(lambda: got.append(run('diff', '--prometheus', query.url, '--at', 'now', '--at', 'now', '--window', '10s', '--json'))
                       or got[-1].returncode == 0 and json.loads(got[-1].stdout)['p99'])
            p99 = json.loads(got[-1].stdout)['p99']
            self.assertLess(p99['a_edges'][0], p99['a_edges'][1])

    @unittest.skipUnless(PROMETHEUS3, 'no Prometheus with native histograms: tests/system/prometheus3.sh fetches one')
    def test_native(self):
        """The same where the scraper makes native histograms of ours."""
        self.rules_and_dashboard(MAY_RECORD_NOTHING | ONLY_CLASSIC, PROMETHEUS3)

    def rules_and_dashboard(self, may_record_nothing, native=None):
        rules = test_monitoring.rules().replace('5m]', '10s]')
        board = json.loads(test_monitoring.read(test_monitoring.DASHBOARD))
        low = self.start(test_exporter.Exporter)
        full = self.start(test_exporter.Exporter, '--detail', 'full')
        fills = {'$job': 'ibscope', '$namespace': '.*', '$pod': '.*', '$container': '.*', '$source': '.*',
                 '${latency}': 'ibscope_load_miss_latency_cycles', '$__rate_interval': '8s', '$__range': '10s'}
        with self.prometheus(low, full, rules=rules, native=native) as query:
            for name in set(re.findall(r'record: (\S+)', rules)) - may_record_nothing:
                nan = 'NaN' if not re.search(r':p\d+_', name) else ''      # where there were no samples
                with self.subTest(name):
                    self.until(lambda: (got := query(name)) and nan not in {v.get('value', [0, ''])[1] for v in got})
            # samples a second
            self.until(lambda: query('sum(container:ibscope_estimated_ops:rate5m) / 500000 > 10'))
            seen = 0
            for panel in board['panels']:
                if panel['type'] == 'row':
                    continue
                queries = [t['expr'] for t in panel['targets']]
                needs = full if '--detail medium or full' in panel['title'] else low
                for name, value in {**fills, '$instance': f'127.0.0.1:{needs.port}'}.items():
                    queries = [q.replace(name, value) for q in queries]

                def shown():
                    return any(map(query, queries))
                seen += shown() if panel['title'] in MAY_SHOW_NOTHING else self.until(shown)
            self.assertGreater(seen, 25)
            # groups have as few series as the manual page says
            for names, classic in ('load|samples_total|estimated_ops|dtlb', 40), ('fetch|estimated_fetches|itlb', 30):
                most = query('max by (instance) (count by (instance, namespace, pod, container, runtime, cgroup) '
                             '({__name__=~"ibscope_(%s).*",instance="127.0.0.1:%d"}))' % (names, low.port))
                self.assertLessEqual(int(most[0]['value'][1]), 12 if native else classic)

    @staticmethod
    def percentiles(edges):
        """[(labels, share, value)] of what ctl knows, as far as the edges tell more than +Inf."""
        p = run('ctl', '--pin-dir', DIR, '--json', '--by', 'cgroup,container,src', 'snapshot')
        # those of tests that run beside this one are removed and made again, and with them their counts; metrics of
        # containers, as of one in which this runs, have no label of the cgroup
        series = [s for s in json.loads(p.stdout)['series']
                  if not s['labels']['container'] and not re.match('/ibscope-(?!prom-)', s['labels']['cgroup'])]
        return [(s['labels'], q, s[name]) for s in series
                for q, name in ((.5, 'p50'), (.9, 'p90'), (.99, 'p99'))
                if s[name] is not None and s[name] <= edges[-1]]

    def compare(self, e, edges):
        with self.prometheus(e) as query:
            self.until(lambda: query('ibscope_load_miss_latency_cycles_count'))
            found = self.percentiles(edges)
            self.assertGreater(len(found), 20)
            for labels, q, percentile in found:
                where = f'cgroup="{labels["cgroup"]}",src="{labels["src"]}"'
                got = query(f'histogram_quantile({q}, ibscope_load_miss_latency_cycles_bucket{{{where}}})')
                self.assertEqual(len(got), 1, where)
                value = float(got[0]['value'][1])
                at = next(i for i, edge in enumerate(edges) if percentile <= edge)
                self.assertLessEqual(value, edges[at] + 1e-6, (where, q))
                self.assertGreaterEqual(value, (edges[at - 1] if at else 0) - 1e-6, (where, q))


if __name__ == '__main__':
    unittest.main()
