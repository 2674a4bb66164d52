# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report` against sums over what `dump` says of the same samples, and its formats."""
import collections
import csv
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SAMPLES = 3000
COMMS = ['plain', 'two|`<i> *w_', 'esc\x1b[31m', 'new\nline', 'sémi;colon,"q"', 'bad??',
         '=1+1', '-bash', '\x9b2J\a\u202e']

KEYS = ['src', 'op', 'cgroup', 'container', 'pod', 'pid', 'tid', 'comm', 'cpu', 'ccx', 'node', 'mem_node', 'mode', 'symbol', 'dso',
        'srcline', 'ip', 'page', 'line', 'space', 'page_size',
        'event']

USAGE = [
    (['FILE', '-i', 'FILE'], 'already given with -i'),
    (['-i', ''], 'empty'),
    (['FILE', '--max-memory', '1'], '--max-memory'),
    (['FILE', '--debug-dir', '/no/such/dir'], 'cannot use /no/such/dir: No such file'),
    (['FILE', '--debug-dir', '/etc/passwd'], 'not a directory'),
    (['FILE', '--by', 'source'], "unknown key 'source': must be one of cgroup, container"),
    (['FILE', '--by', ''], "unknown key ''"),
    (['FILE', '--by', 'src,'], 'column 5'),
    (['FILE', '--sort', 'src'], 'p99'),
    (['FILE', '--sort', 'p50,p99'], "unknown column 'p50,p99'"),
    (['FILE', '--columns', 'mean,avg'], "column 6: unknown column 'avg'"),
    (['FILE', '--top', '0'], '--top'),
    (['FILE', '--limit', 'ten'], "'ten'"),
    (['FILE', '--min-samples', '-1'], '--min-samples'),
    (['FILE', '--csv', '--json'], 'exclude each other'),
    (['FILE', '--folded', 'cycles'], 'samples or total'),
    (['FILE', '--folded', 'total', '--json'], 'exclude each other'),
    (['FILE', '--min-lat', '300', '--max-lat', '200'], 'above'),
    (['FILE', '--metric', 'x'], 'dc_miss_lat'),
    (['FILE', '--src', 'ram'], 'dram'),
    (['FILE', '--filter', 'x == 1'], 'column 1'),
    (['FILE', '--follow'], '--follow'),
    (['FILE', '--by', 'line', '--format', 'csv'], '--by page alone'),
    (['FILE', '--by', 'page', '--format', 'yaml'], 'damon or csv'),
]
FAILED = [
    (['/no/such/file'], '/no/such/file'),
    (['/dev/null'], 'empty'),
    (['/etc/passwd'], 'recording'),
    (['FILE', '--folded', 'samples'], 'no call chains'),
    (['FILE', '--by', 'symbol', '--kallsyms', '/no/such/file'], '/no/such/file'),
    (['FILE', '--cgroup', '/not/there'], '/not/there'),
    (['FILE', '--container', 'not-there'], 'not-there'),
    (['FILE', '--filter', 'uid == 0'], 'uid'),
]


def upper_edge(cycles):
    """Of its bucket (include/ibscope/histogram.h): eight steps an octave."""
    step = 1
    while cycles > 16 * step:
        step *= 2
    return min(-(-cycles // step) * step, 65535)


def percentile(values, percent):
    n = len(values)
    if n * (100 - percent) < 100:
        return None
    return min(upper_edge(sorted(values)[-(-n * percent // 100) - 1]), max(values))


class Filtered(unittest.TestCase):
    """With a hardware filter a sample represents more than its period: shares are known, sums are not."""

    def test_estimates(self):
        make = os.path.join(os.path.dirname(MAKE), 'make_lines')
        for event, known in (('cnt_ctl=1/', True), ('l3missonly=1/', False), ('ldlat=256/', False), ('/k', False),
                             ('swfilt=1/k', True), ('cnt_ctl=1,l3missonly=0/', True)):
            with self.subTest(event), tempfile.NamedTemporaryFile() as f:
                subprocess.run([make, f.name, 'known', 'ibs_op/' + event], check=True)
                rows = [json.loads(run(*words, '--json', '--by', 'src', f.name).stdout)
                        for words in (['report'], ['replay'])]
                for row in rows[0]['rows'] + rows[1]['series']:
                    self.assertEqual(row['estimated_ops'] is not None, known, row)
                    self.assertEqual(row['miss_cycles'] is not None, known or not row['valid'], row)
                share = {x['labels']['src']: x['share'] for x in rows[0]['rows'] if x['share']}
                self.assertAlmostEqual(share['near-cache'], 470 / 720, 6)
                for command in 'report', 'replay':
                    table = run(command, '--by', 'src', '--columns', 'share', f.name).stdout
                    self.assertRegex(table, r'near-cache +65\.3%')


class Exposed(unittest.TestCase):
    """All loads of this recording retired at once; four requests were open, or no number of them is known."""

    def report(self, event, *more, args=('--json',), command='report'):
        make = os.path.join(os.path.dirname(MAKE), 'make_lines')
        with tempfile.NamedTemporaryFile() as f:
            subprocess.run([make, f.name, 'known', event, *more], check=True)
            p = run(command, '--by', 'src', *args, f.name, env=dict(os.environ, COLUMNS='200'))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_known(self):
        r = json.loads(self.report('ibs_op/cnt_ctl=1/', 'open'))
        for row in r['rows'] + [r['total']]:
            self.assertEqual(row['exposed'], row['miss_cycles'] / 4 if row['valid'] else None, row)
            self.assertEqual(row['blocking'], 1 if row['valid'] else None, row)
        self.assertEqual(r['total']['exposed'], 720 * 200 * 1000 / 4)

    def test_text(self):
        """Where it is known, the text has it beside the miss cycles."""
        text = self.report('ibs_op/cnt_ctl=1/', 'open', args=())
        self.assertRegex(text, r'(?m)^SOURCE +SAMPLES +MISS CYCLES +EXPOSED ')
        self.assertRegex(text, r'(?m)^near-cache +470 +94\.0 M +23\.5 M ')
        self.assertRegex(text, r'(?m)^total +1,403 +144 M +36\.0 M ')

    def test_order(self):
        """Rows are ranked by it where it is known, and then by miss cycles: those of another complex waited for older ops."""
        args = '--columns', 'miss_cycles,exposed'
        first, *rest = self.report('ibs_op/cnt_ctl=1/', 'late', args=args).split('SOURCE')[1].splitlines()[1:]
        self.assertNotIn('near-cache', first)
        self.assertRegex('\n'.join(rest), r'near-cache +94\.0 M +0\b')
        by_cycles = self.report('ibs_op/cnt_ctl=1/', 'late', args=(*args, '--sort', 'miss_cycles'))
        self.assertRegex(by_cycles.split('SOURCE')[1].splitlines()[1], r'^near-cache ')
        unknown = self.report('ibs_op/cnt_ctl=0/', 'late', args=args)
        self.assertRegex(unknown.split('SOURCE')[1].splitlines()[1], r'^near-cache ')

    def test_replay(self):
        """hist, top and the collector count what a report adds up."""
        r = {row['labels']['src']: row for row in json.loads(self.report('ibs_op/cnt_ctl=1/', 'late'))['rows']}
        series = json.loads(self.report('ibs_op/cnt_ctl=1/', 'late', args=('--json',), command='replay'))['series']
        self.assertGreater(len(series), 3)
        for s in series:
            self.assertEqual(s['exposed_cycles'], r[s['labels']['src']]['exposed'], s)
        text = self.report('ibs_op/cnt_ctl=1/', 'late', args=(), command='replay')
        self.assertRegex(text, r'(?m)^SOURCE .* MISS CYCLES/s +EXPOSED/s ')
        self.assertNotRegex(text.split('SOURCE')[1].splitlines()[1], '^near-cache ')
        text = self.report('ibs_op/cnt_ctl=1/', 'late', args=('--sort', 'cycles'), command='replay')
        self.assertRegex(text.split('SOURCE')[1].splitlines()[1], '^near-cache ')
        for event, more in (('ibs_op/cnt_ctl=0/', 'open'), ('ibs_op/cnt_ctl=1,l3missonly=1/', 'open'), ('ibs_op/cnt_ctl=1/', 'none')):
            with self.subTest(event, more=more):
                series = json.loads(self.report(event, more, args=('--json',), command='replay'))['series']
                self.assertEqual({s['exposed_cycles'] for s in series}, {None})
                self.assertNotIn('EXPOSED', self.report(event, more, args=(), command='replay'))

    def test_unknown(self):
        for event, more in (('ibs_op/cnt_ctl=0/', ['open']), ('ibs_op//', ['open']),
                            ('ibs_op/cnt_ctl=1,l3missonly=1/', ['open']), ('ibs_op/cnt_ctl=1/', [])):
            with self.subTest(event, more=more):
                r = json.loads(self.report(event, *more))
                self.assertEqual({row['exposed'] for row in r['rows'] + [r['total']]}, {None})
                self.assertEqual(r['total']['blocking'], 1)
                self.assertNotIn('EXPOSED', self.report(event, *more, args=()))


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'a.ibs')
        subprocess.run([MAKE, cls.file, str(SAMPLES)], check=True)
        p = run('dump', cls.file, '--json')
        cls.samples = [json.loads(line) for line in p.stdout.splitlines()]
        assert len(cls.samples) == SAMPLES, p.stderr

    def report(self, *args, file=None):
        p = run('report', file or self.file, '--json', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_usage(self):
        for args, says in USAGE:
            with self.subTest(args=args):
                self.check_error(args, 2, says)

    def test_failure(self):
        for args, says in FAILED:
            with self.subTest(args=args):
                self.check_error(args, 1, says)

    def check_error(self, args, status, says):
        p = run('report', *[self.file if a == 'FILE' else a for a in args])
        self.assertEqual((p.returncode, p.stdout), (status, ''), p.stderr)
        errors = [line for line in p.stderr.splitlines() if 'error: ' in line]
        self.assertEqual(len(errors), 1, p.stderr)
        self.assertIn(says, errors[0])

    def sums(self, keys, samples):
        rows = collections.defaultdict(list)
        for s in samples:
            labels = tuple(None if s.get(k) is None else str(s[k]) for k in keys)
            rows[labels].append(s)
        return rows

    def check_rows(self, by, of_dump, samples, *args, metric='dc_miss_lat'):
        r = self.report('--by', by, *args)
        want = self.sums(of_dump, samples)
        got = {tuple(row['labels'].values()): row for row in r['rows']}
        self.assertEqual(set(got), set(want), by)
        total = sum(s[metric] for s in samples if metric in s)
        for labels, row in got.items():
            lat = [s[metric] for s in want[labels] if metric in s]
            n = len(want[labels])
            with self.subTest(by=by, labels=labels):
                self.assertEqual(row['samples'], n)
                self.assertAlmostEqual(row['sample_share'], n / len(samples), 6)
                self.assertEqual(row['estimated_ops'], n * 100000)
                self.assertEqual(row['valid'], len(lat))
                self.assertEqual(row['total'], sum(lat) if lat else None)
                self.assertEqual(row['max'], max(lat, default=None))
                if lat:
                    self.assertAlmostEqual(row['mean'], sum(lat) / len(lat), delta=0.051)
                    self.assertAlmostEqual(row['share'], sum(lat) / total, 6)
                else:
                    self.assertIsNone(row['mean'])
                for p in (50, 90, 99):
                    self.assertEqual(row[f'p{p}'], percentile(lat, p))
                if 'loads' in row:
                    self.assertEqual(row['loads'], sum(s['ld_op'] for s in want[labels]))
                    self.assertEqual(row['stores'], sum(s['st_op'] for s in want[labels]))
        self.assertEqual(sum(row['samples'] for row in r['rows']), len(samples))
        self.assertEqual(r['total']['samples'], len(samples))
        self.assertEqual(r['samples']['selected'], len(samples))
        return r

    def test_keys(self):
        for by, of_dump in (('src', ['src']), ('op,src', ['op', 'src']), ('pid', ['pid']),
                            ('tid,cpu', ['tid', 'cpu']), ('comm', ['comm']),
                            ('cgroup', ['cgroup'])):
            samples = self.samples
            if by == 'cgroup':
                samples = [dict(s, cgroup=s.get('cgroup', f'#{s["cgroup_id"]}'))
                           for s in self.samples]
            self.check_rows(by, of_dump, samples)

    def test_misses(self):
        samples = [dict(s, miss=('primary', 'secondary')[s['dc_miss_no_mab_alloc']] if s.get('dc_miss') else None)
                   for s in self.samples]
        r = self.check_rows('op,miss', ['op', 'miss'], samples)
        pairs = {tuple(row['labels'].values()) for row in r['rows']}
        self.assertGreaterEqual(pairs, {('load', 'primary'), ('load', None), ('branch', None)})
        # no recording has a load that joined a miss: make one of the first that missed, before its address in the file
        packed = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'perf', '6.12-zen4-mem.data.zst')
        data = bytearray(subprocess.run(['zstd', '-dqc', packed], capture_output=True, check=True).stdout)
        path = os.path.join(self.dir.name, 'joined.data')
        with open(path, 'wb') as f:
            f.write(data)
        load = next(s for s in map(json.loads, run('dump', '--json', path).stdout.splitlines())
                    if s.get('ld_op') and s.get('dc_miss') and not s['st_op'])
        address = int(load['dc_lin_ad'], 16).to_bytes(8, 'little')
        latency = load['dc_miss_lat'].to_bytes(2, 'little')
        at = [m.start() - 8 for m in re.finditer(re.escape(address), data) if data[m.start() - 4:m.start() - 2] == latency]
        self.assertEqual(len(at), 1)
        data[at[0] + 2] |= 1
        with open(path, 'wb') as f:
            f.write(data)
        rows = {row['labels']['miss']: row for row in json.loads(run('report', '--json', '--by', 'miss', path).stdout)['rows']}
        self.assertEqual((rows['secondary']['samples'], rows['secondary']['loads']), (1, 1))

    def test_prefetches(self):
        samples = [dict(s, prefetch=('none', 'software')[s['sw_pf']] if 'sw_pf' in s else None) for s in self.samples]
        r = self.check_rows('op,prefetch', ['op', 'prefetch'], samples)
        pairs = {tuple(row['labels'].values()) for row in r['rows']}
        self.assertGreaterEqual(pairs, {('load', 'none'), ('store', 'none'), ('branch', None)})
        self.assertEqual({p for op, p in pairs if op in ('branch', 'other')}, {None})
        p = run('report', '-e', 'ibs_fetch//', '--by', 'prefetch', self.file)
        self.assertEqual(p.returncode, 2)
        self.assertIn('--by prefetch: samples of ibs_fetch do not have that', p.stderr)

    def test_exposed(self):
        """The recording's loads that retired at once have no count of open requests: those rows are not known."""
        r = self.report('--by', 'op,src')
        known = 0
        for labels, samples in self.sums(['op', 'src'], self.samples).items():
            row = next(row for row in r['rows'] if tuple(row['labels'].values()) == labels)
            misses = [s for s in samples if 'dc_miss_lat' in s]
            waited = [s for s in misses if s['comp_to_ret_ctr'] <= 2]
            with self.subTest(labels):
                self.assertFalse([s for s in waited if 'op_dc_miss_open_mem_reqs' in s])
                self.assertEqual(row['exposed'], 0 if misses and not waited else None)
                if not misses:
                    self.assertIsNone(row['blocking'])
                    continue
                self.assertAlmostEqual(row['blocking'], sum(s['dc_miss_lat'] for s in waited) /
                                       sum(s['dc_miss_lat'] for s in misses), 6)
                known += row['exposed'] is not None
        self.assertGreater(known, 1)
        text = run('report', self.file, '--by', 'src', '--columns', 'exposed,blocking', '--sort', 'exposed').stdout
        self.assertRegex(text, r'(?m)^SOURCE +EXPOSED +BLOCKING$')

    def test_order_of_keys(self):
        for by in ('op,src', 'src,op', 'cpu,src,comm'):
            self.assertEqual(self.report('--by', by)['by'], by.split(','))
            head = run('report', self.file, '--csv', '--by', by).stdout.splitlines()[0]
            self.assertTrue(head.startswith(by + ','), head)
            text = run('report', self.file, '--by', by).stdout.split('\n\n')[1].splitlines()[0]
            keys = by.upper().replace('SRC', 'SOURCE').split(',')
            self.assertEqual(text.split()[:len(keys)], keys)
            text = run('replay', self.file, '--by', by).stdout.split('\n\n')[1]
            self.assertEqual(text.split()[:len(keys)], keys)
            self.assertIn(f',{by},samples', run('replay', self.file, '--csv', '--by', by).stdout)
            o = json.loads(run('replay', self.file, '--json', '--by', by).stdout)
            self.assertEqual(list(o['series'][0]['labels']), by.split(','))

    def test_percentiles_are_at_most_the_maximum(self):
        r = self.report('--by', 'src,op')
        at_max = 0
        for row in [*r['rows'], r['total']]:
            for p in ('p50', 'p90', 'p99'):
                if row[p] is not None:
                    self.assertLessEqual(row[p], row['max'])
                    at_max += row[p] == row['max'] != upper_edge(row['max'])
        self.assertGreater(at_max, 0)

    def test_metrics(self):
        self.check_rows('src', ['src'], self.samples, '--metric', 'tlb_refill_lat',
                        metric='tlb_refill_lat')
        self.check_rows('op', ['op'], self.samples, '--metric', 'tag_to_ret',
                        metric='tag_to_ret_ctr')

    def test_selections(self):
        def lat(s):
            return s.get('dc_miss_lat', -1)
        for args, keep in (
                (['--src', 'dram,l3'], lambda s: s['src'] in ('dram', 'l3')),
                (['--op', 'store'], lambda s: s['op'] == 'store'),
                (['--min-lat', '100', '--max-lat', '400'], lambda s: 100 <= lat(s) <= 400),
                (['-C', '1-2'], lambda s: s['cpu'] in (1, 2)),
                (['-p', '101'], lambda s: s['pid'] == 101),
                (['--comm', 'plain'], lambda s: s.get('comm') == 'plain'),
                (['--cgroup', '/kubepods'], lambda s: s.get('cgroup', '').startswith('/kube')),
                (['--container', '01234567'], lambda s: 'docker-0123' in s.get('cgroup', '')),
                (['--filter', 'mem_lvl == ram && weight1 > 300'],
                 lambda s: s['src'] in ('dram', 'remote-dram') and lat(s) > 300)):
            with self.subTest(args=args):
                samples = [s for s in self.samples if keep(s)]
                self.assertTrue(samples)
                self.check_rows('src', ['src'], samples, *args)

    def test_kinds_are_anded_and_an_exclusion_wins(self):
        for args in (['--cgroup', '/kubepods', '--container', '01234567'],
                     ['--cgroup', '!/', '--cgroup', '/'],
                     ['--cgroup', '!/kubepods', '--cgroup', '/kubepods/*'],
                     ['--container', '01234567', '--comm', 'nobody']):
            with self.subTest(args=args):
                self.assertEqual(self.report(*args)['samples']['selected'], 0)
                p = run('replay', self.file, '--json', *args)
                self.assertEqual(json.loads(p.stdout)['ledger']['aggregated'], 0, p.stderr)

    def test_nothing_selected(self):
        r = self.report('--min-lat', '65000')
        self.assertEqual((r['rows'], r['total']['samples'], r['total']['sample_share']), ([], 0, None))
        p = run('report', self.file, '--min-lat', '65000')
        self.assertEqual(p.returncode, 0)
        self.assertIn(' 0 selected; ', p.stdout)
        for command in (['report'], ['dump'], ['replay']):
            for option, part in ((['--min-lat', '65000'], 'latency'), (['-p', '4000'], 'pid'),
                                 (['--comm', 'nobody'], 'comm'), (['-C', '77'], 'cpu')):
                with self.subTest(command=command, option=option):
                    p = run(*command, self.file, *option)
                    self.assertEqual(p.returncode, 0, p.stderr)
                    self.assertIn('no sample is selected', p.stderr)
                    self.assertIn(f': {part} {SAMPLES:,}', p.stderr)

    def test_default_file(self):
        for command in ('report', 'c2c', 'numa', 'dump', 'replay'):
            with self.subTest(command=command), tempfile.TemporaryDirectory() as empty:
                want = run(command, self.file).stdout
                self.assertEqual(run(command, '-i', self.file).stdout, want)
                p = subprocess.run([ibscope.IBSCOPE, command], cwd=empty,
                                   capture_output=True, text=True)
                self.assertEqual(p.returncode, 1)
                self.assertIn('no file ibscope.data here', p.stderr)
                os.symlink(self.file, os.path.join(empty, 'ibscope.data'))
                p = subprocess.run([ibscope.IBSCOPE, command], cwd=empty,
                                   capture_output=True, text=True)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(p.stdout.replace('ibscope.data', self.file), want)

    def test_lines(self):
        rows = collections.defaultdict(list)
        for s in self.samples:
            addr = s.get('dc_lin_ad')
            addr = int(addr, 16) if isinstance(addr, str) else addr
            space = None if addr is None else 'kernel' if addr >> 63 else str(s['pid'])
            rows[None if addr is None else hex(addr & ~63), space].append((s, addr))
        r = self.report('--by', 'line')
        self.assertEqual(r['by'], ['line', 'space'])
        for row in r['rows']:
            mine = rows.pop(tuple(row['labels'].values()))
            self.assertEqual(row['samples'], len(mine))
            self.assertEqual(row['cpus'], len({s['cpu'] for s, _ in mine}))
            self.assertEqual(row['threads'], len({s['tid'] for s, _ in mine}))
            if row['labels']['line']:
                self.assertEqual(row['offsets'], len({addr & 63 for _, addr in mine}))
        self.assertEqual(rows, {})
        phys = self.report('--by', 'page', '--phys')
        self.assertEqual(phys['by'], ['page'])
        self.assertEqual({row['labels']['page'] for row in phys['rows']},
                         {None, '0x100000000', '0x100001000'})

    def test_less_than_shown(self):
        """One sign says that a number is not exact."""
        text = run('report', self.file, '--by', 'pid,comm,src,cpu', '--top', '200').stdout
        self.assertRegex(text, r' <0\.01 [A-Z] ')
        self.assertIn(' ~', text)
        self.assertNotIn('~<', text)

    def test_hot_pages(self):
        """Physical pages as regions for damo, and both addresses of each for others."""
        pages = {row['labels']['page']: row for row in self.report('--by', 'page', '--phys')['rows']}
        p = run('report', self.file, '--by', 'page', '--format', 'damon')
        self.assertEqual(p.stdout, f'{0x100000000}-{0x100002000}\n', 'neighbours are one region')
        self.assertIn(f"{pages[None]['samples']:,} samples without a physical address", p.stderr)
        p = run('report', self.file, '--by', 'page', '--format', 'damon', '--top', '2', '--sort', 'samples')
        top, = set(sorted(pages, key=lambda k: -pages[k]['samples'])[:2]) - {None}
        self.assertEqual(p.stdout, f'{int(top, 16)}-{int(top, 16) + 4096}\n')
        rows = list(csv.DictReader(io.StringIO(run('report', self.file, '--by', 'page', '--format', 'csv').stdout)))
        self.assertEqual(list(rows[0])[:4], ['page', 'phys_page', 'mem_node', 'space'])
        for page, row in pages.items():
            mine = [r for r in rows if r['phys_page'] == (page or '')]
            for column in 'samples', 'miss_cycles':
                self.assertEqual(sum(int(r[column] or 0) for r in mine), row[column] or 0, (page, column))
            self.assertEqual(row['last_seen'], max((float(r['last_seen']) for r in mine if r['last_seen']), default=None))

    def test_containers(self):
        """Names of the runtime; ids if an older file has none, as hist shows containers without a name."""
        bare = os.path.join(self.dir.name, 'bare.ibs')
        subprocess.run([MAKE, bare, str(SAMPLES), 'bare'], check=True)
        uid = '01234567-89ab-cdef-0123-456789abcdef'
        unknown = max(s['cgroup_id'] for s in self.samples)
        for path, want in ((self.file, {('web', ''), ('db', 'shop/db-0')}),
                           (bare, {('0123456789ab', ''), ('fedcba987654', uid)})):
            r = self.report('--by', 'container,pod', file=path)
            rows = {tuple(row['labels'].values()): row['samples'] for row in r['rows']}
            self.assertEqual(set(rows), want | {('', ''), (f'#{unknown}',) * 2})
            p = run('replay', path, '--json', '--by', 'container,pod')
            hist = {(s['labels']['container'], s['labels']['pod']): s['samples']
                    for s in json.loads(p.stdout)['series']}
            self.assertEqual(hist, rows)
        text = run('report', self.file, '--by', 'container').stdout
        self.assertIn('host, no container', text)
        n = sum(s['samples'] for s in self.report('--by', 'container')['rows']
                if s['labels']['container'] == 'db')
        for name in ('db', 'shop/db-0', 'shop/db-0/db', 'fedcba98'):
            self.assertEqual(self.report('--container', name)['samples']['selected'], n, name)
        self.assertEqual(run('report', bare, '--container', 'db').returncode, 1)
        events = [json.loads(line) for line in run('dump', self.file, '--json', '--events').stdout.splitlines()]
        self.assertIn(('db', 'db-0', 'shop'), [(e.get('container'), e.get('pod'), e.get('namespace'))
                                               for e in events if e['type'] == 'cgroup'])

    def test_topology(self):
        ccx, node = [0, 0, 1, 2], [0, 0, 0, 1]
        samples = [dict(s, ccx=ccx[s['cpu']], node=node[s['cpu']],
                        mode='kernel' if int(s['ip'], 16) >> 63 else 'user') for s in self.samples]
        self.check_rows('ccx,node,mode', ['ccx', 'node', 'mode'], samples)
        bare = os.path.join(self.dir.name, 'bare.ibs')
        subprocess.run([MAKE, bare, str(SAMPLES), 'bare'], check=True)
        r = self.report('--by', 'ccx,node', file=bare)
        self.assertEqual([row['labels'] for row in r['rows']], [{'ccx': None, 'node': None}])
        # replay knows them too
        p = run('replay', self.file, '--json', '--by', 'ccx,node')
        hist = {(s['labels']['ccx'], s['labels']['node']): s['samples'] for s in json.loads(p.stdout)['series']}
        self.assertEqual(hist, collections.Counter((str(s['ccx']), str(s['node'])) for s in samples))
        screen = run('top', '-i', self.file, '--once', '--by', 'ccx', '--size', '100x24').stdout.splitlines()
        self.assertEqual({row.split()[0] for row in screen[4:7]}, {'0', '1', '2'}, screen)
        p = run('replay', bare, '--by', 'cgroup,ccx')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn("lacks the topology", p.stderr)
        head = json.loads(run('dump', self.file, '--json', '--events').stdout.splitlines()[0])
        self.assertEqual((head['ccx'], head['node'], head['socket']), (ccx, node, node))

    def test_estimates_are_exact(self):
        """Also those that 24 bits do not hold: 8,283 times 100,000."""
        path = os.path.join(self.dir.name, 'more.ibs')
        subprocess.run([MAKE, path, '20000'], check=True)
        r = self.report('--by', 'src', file=path)
        for row in r['rows'] + [r['total']]:
            self.assertEqual(row['estimated_ops'], row['samples'] * r['events'][0]['period'])

    def test_text_fits_one_screen(self):
        """Without --top a pipe gets 20 rows and the sum of the others; addresses without a name are one row a file."""
        lines = run('report', '--by', 'ip', self.file).stdout.split('\n\n')[1].splitlines()
        self.assertEqual(len(lines), 1 + 20 + 2)
        self.assertRegex(lines[-2], r'^other \([\d,]+\)')
        names = [r['labels']['symbol'] for r in self.report('--by', 'symbol')['rows']]
        self.assertEqual(names.count('[/no/such/program]'), 1)

    def test_top(self):
        whole = self.report('--by', 'ip', '--sort', 'samples')
        samples = [row['samples'] for row in whole['rows']]
        self.assertEqual(samples, sorted(samples, reverse=True))
        r = self.report('--by', 'ip', '--sort', 'samples', '--top', '5')
        self.assertEqual(r['rows'], whole['rows'][:5])
        self.assertEqual(r['rest']['rows'], len(whole['rows']) - 5)
        self.assertEqual(r['rest']['samples'], sum(samples[5:]))
        r = self.report('--by', 'ip', '--sort', 'samples', '--min-samples', '3')
        self.assertEqual([row['samples'] for row in r['rows']], [n for n in samples if n >= 3])
        self.assertEqual(r['rest']['samples'], sum(n for n in samples if n < 3))

    def test_same_rows_as_hist(self):
        """`replay` counts in the kernel's structures and prints as hist does: both must agree, in CSV and text."""
        for by in 'src', 'op,src', 'pid', 'comm,cpu', 'cgroup', 'container,pod':
            with self.subTest(by=by):
                n = by.count(',') + 1
                mine = run('report', self.file, '--by', by, '--csv').stdout.splitlines()
                hist = run('replay', self.file, '--by', by, '--csv').stdout.splitlines()
                want = [dict(zip(hist[0].split(','), row)) for row in csv.reader(hist[1:])]
                got = [dict(zip(mine[0].split(','), row)) for row in csv.reader(mine[1:])]
                self.assertEqual(len(got), len(want))
                self.assertEqual(sum(float(r['share'] or 0) > 0 for r in got), sum(float(r['share']) > 0 for r in want))
                want = {tuple(list(r.values())[2:2 + n]): r for r in want}
                for row in got:
                    key = tuple(list(row.values())[:n])
                    hist = want.pop(key)
                    for c in 'samples', 'valid', 'estimated_ops', 'miss_cycles':
                        self.assertEqual(row[c], hist[c], (key, c))
                    for c in 'dram', 'remote', 'mean', 'share':
                        self.assertAlmostEqual(float(row[c] or 0), float(hist[c] or 0), delta=0.051, msg=(key, c))
                    for c in 'p50', 'p90', 'p99':
                        self.assertEqual(row[c], hist[c] and str(min(int(hist[c]), int(row['max']))), (key, c))
        columns = 'samples,share,dram,remote'
        for by in 'src', 'pid':
            hist = run('replay', self.file, '--by', by, '--columns', columns).stdout.split('\n\n')[1]
            mine = run('report', self.file, '--by', by, '--columns', columns).stdout.split('\n\n')[1]
            self.assertEqual(mine.splitlines(), hist.splitlines())

    def test_rows_without_miss_cycles(self):
        """For people they are in the rest, of hist, too, unless they are asked for; programs get all."""
        rows = list(csv.DictReader(io.StringIO(run('report', self.file, '--by', 'symbol,src', '--csv').stdout)))
        idle = [r for r in rows if r['miss_cycles'] == '0']
        self.assertGreater(len(idle), 1)
        self.assertGreater(len(rows), len(idle))
        for command in 'report', 'replay':
            with self.subTest(command):
                text = run(command, self.file, '--by', 'src').stdout.split('\n\n')[1]
                self.assertNotRegex(text, r'(?m)^(none|l1) ')
                self.assertRegex(text, r'(?m)^other \(\d+\) ')
                for option in ('--top', '50'), ('--sort', 'samples'):
                    self.assertRegex(run(command, self.file, '--by', 'src', *option).stdout, r'(?m)^none .* 0 ')
        text = run('report', self.file, '--by', 'symbol,src').stdout
        self.assertNotRegex(text, r'(?m)^\S.*  (none|l1)  ')

    def test_addresses_are_whole(self):
        """At 80 columns, too: numbers give way."""
        for by in 'line', 'page', 'ip', 'ip,src':
            text = run('report', self.file, '--by', by, env={**os.environ, 'COLUMNS': '80'}).stdout.split('\n\n')[1]
            self.assertNotIn('…', text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 80)
            self.assertIn('MISS CYCLES', text)

    def test_head(self):
        r = self.report('--src', 'dram')
        self.assertEqual((r['source'], r['simulated'], r['whole']), ('sim', True, True))
        ledger = {'seen': SAMPLES + 7, 'forwarded': SAMPLES, 'filtered': 0, 'unseen': None, 'lost': 7}
        self.assertEqual(r['events'], [{'name': 'ibs_op/cnt_ctl=1/', 'period': 100000,
                                        'freq': None, 'pmu': 'ibs_op', 'ledger': ledger}])
        self.assertEqual(r['cpu']['generation'], 'Zen 4')
        self.assertEqual(r['lost'], {'samples': 7, 'records': 0})
        self.assertEqual(r['ledger']['seen'], SAMPLES + 7)
        self.assertEqual(r['options'], '--json --src dram')
        text = run('report', self.file, '--src', 'dram', '-v').stdout
        for part in ('Zen 4, family', '4 CPUs', 'host host', 'Linux 6.1.0', 'period 100,000', 'complete',
                     f'file      {self.file} (ibscope 1)',
                     f'samples   {SAMPLES:,}, selected ', 'SIMULATED', '7 of'):
            self.assertIn(part, text)
        head = run('report', self.file, '--src', 'dram').stdout.split('\n\n')[0].splitlines()
        self.assertEqual(len(head), 2, head)
        self.assertIn(f'{self.file}: {SAMPLES:,} samples, ', head[0])
        self.assertIn('7 of 3,007 samples seen', head[0])
        self.assertRegex(head[1], '^SIMULATED samples: Zen 4, 4 CPUs, host host; .*, period 100,000$')

    def test_two_events(self):
        """Each with its ledger; dump, export and merge have the samples of both."""
        both = os.path.join(self.dir.name, 'both')
        subprocess.check_call([MAKE, both, '30', 'fetch'])
        r = self.report('--by', 'event', file=both)
        self.assertEqual(r['samples'], {'op': 20, 'fetch': 10, 'selected': 20})
        self.assertEqual([(e['pmu'], e['ledger']['seen'], e['ledger']['lost']) for e in r['events']],
                         [('ibs_op', 27, 7), ('ibs_fetch', 10, 0)])
        self.assertEqual((r['ledger']['seen'], r['ledger']['lost']), (37, 7))
        for event, samples in ('ibs_op/cnt_ctl=1/', 20), ('ibs_fetch//', 10):
            rows = self.report('--by', 'event', '-e', event, file=both)['rows']
            self.assertEqual([(row['labels']['event'], row['samples']) for row in rows], [(event, samples)])
        self.assertIn('7 of 27 samples of ibs_op seen; 0 of 10 samples of ibs_fetch seen', run('report', both).stdout)
        times = [json.loads(x)['time_ns'] for x in run('dump', '--json', both).stdout.splitlines()]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(times), 30)
        exported = os.path.join(self.dir.name, 'both.perf')
        run('export', '--perf-data', exported, both)
        self.assertEqual(self.report('--by', 'event', file=exported)['samples'], r['samples'])
        merged, other = (os.path.join(self.dir.name, x) for x in ('both.merged', 'both.other'))
        subprocess.check_call([MAKE, other, '60', 'fetch'])
        run('merge', '-o', merged, both, other)
        r = self.report('--by', 'event', file=merged)
        self.assertEqual([e['ledger']['seen'] for e in r['events']], [27 + 47, 10 + 20])

    def test_replay_fetches(self):
        """What replay counts of fetches is what dump prints of them, also selected; top -i shows them."""
        both = os.path.join(self.dir.name, 'fetches')
        subprocess.check_call([MAKE, both, '3000', 'fetch'])
        fetches = [o for o in map(json.loads, run('dump', '--json', both).stdout.splitlines()) if o['type'] == 'ibs_fetch']
        missed = [o for o in fetches if o['fetch_comp'] and o['ic_miss'] and o['fetch_l2_miss'] and o['fetch_l3_miss']]
        for options, want in ((), fetches), (('--filter', 'fetch == l3-miss'), missed), (
                ('--min-lat', '100'), [o for o in fetches if o.get('fetch_lat', 0) >= 100 and o['fetch_comp']]):
            p = run('replay', '--json', '-e', 'ibs_fetch//', *options, both)
            r = json.loads(p.stdout)
            self.assertIn('2,000 samples of ibs_op are left out', p.stderr)
            self.assertEqual((r['event'], r['metric'], r['period']), ('ibs_fetch//', 'fetch_lat', 50000))
            self.assertEqual((r['ledger']['seen'], r['ledger']['aggregated']), (1000, len(want)))
            self.assertEqual(r['recorded']['ledger']['forwarded'], 1000)
            self.assertEqual(sum(s['samples'] for s in r['series']), len(want))
            self.assertEqual(sum(s['sum'] or 0 for s in r['series']),
                             sum(o['fetch_lat'] for o in want if o['fetch_comp']))
        self.assertGreater(len(fetches), len(missed))
        self.assertTrue(missed)
        self.assertIn('at most one event', run('replay', '-e', 'ibs_op//,ibs_fetch//', both).stderr)
        screen = run('top', '-i', both, '--once', '-e', 'ibs_fetch//', '--size', '120x30').stdout
        self.assertIn('by outcome of fetches', screen)
        self.assertIn('seen 1,000 = aggregated 1,000', screen)

    def check_fetches(self, path, *args, metric='fetch_lat'):
        """Of each class and translation what replay counts, and no op among them."""
        got = self.report(*args, '--by', 'fetch,itlb', file=path)
        counted = json.loads(run('replay', path, '--json', '-e', 'ibs_fetch', '--metric', metric, '--by', 'fetch,itlb').stdout)
        want = {(s['labels']['fetch'], s['labels']['itlb']): (s['samples'], s['valid'], s['sum'] or None, s['estimated_ops'])
                for s in counted['series']}
        self.assertEqual({tuple(row['labels'].values()): (row['samples'], row['valid'], row['total'] or None, row['estimated_ops'])
                          for row in got['rows']}, want)
        total, rows = got['total'], got['rows']
        self.assertEqual((got['metric'], got['estimated_unit'], total['samples']), (metric, 'fetches', got['samples']['selected']))
        self.assertEqual(total['samples'], got['samples']['fetch'])
        self.assertAlmostEqual(total['aborted'], sum(r['samples'] for r in rows if r['labels']['fetch'] in ('aborted', 'killed'))
                               / total['samples'])
        self.assertAlmostEqual(total['walk'], sum(r['samples'] for r in rows if r['labels']['itlb'].startswith('walk'))
                               / sum(r['samples'] for r in rows if r['labels']['itlb'] != 'unknown'))
        self.assertAlmostEqual(total['l3_miss'], sum(r['total'] or 0 for r in rows if r['labels']['fetch'] == 'l3-miss')
                               / total['total'])
        return got

    def test_fetches(self):
        """-e, a key or a metric of fetches shows them; alone in a file they need none; never among ops."""
        both, only, merged = (os.path.join(self.dir.name, x) for x in ('fetch.both', 'fetch.only', 'fetch.merged'))
        subprocess.check_call([MAKE, both, '3000', 'fetch'])
        subprocess.check_call([MAKE, only, '1000', 'only-fetch'])
        for args in ('-e', 'ibs_fetch//'), (), ('--metric', 'itlb_refill_lat'):
            self.check_fetches(both, *args, metric=args[-1] if '--metric' in args else 'fetch_lat')
        self.check_fetches(only)
        r = self.report(file=only)
        self.assertEqual((r['by'], r['metric'], r['total']['samples']), (['fetch'], 'fetch_lat', 1000))
        self.assertNotIn('dram', r['total'])
        self.assertEqual(json.loads(run('replay', '--json', only).stdout)['metric'], 'fetch_lat')
        ops = run('report', both)
        self.assertEqual(ops.stdout.splitlines()[-1], '1,000 samples of ibs_fetch are left out; -e ibs_fetch shows them')
        self.assertNotIn('[unknown]', ops.stdout)
        self.assertRegex(ops.stdout, r'total +2,000 +[0-9.]+ [MG]')
        self.assertEqual(sum(row['samples'] for row in self.report(file=both)['rows']), 2000)
        for args in ('--csv',), ('--html', '/dev/null'), ('--pprof', '/dev/null'):
            p = run('report', both, *args)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn('1,000 samples of ibs_fetch are left out; -e ibs_fetch shows them', p.stderr)
        page = run('report', both, '--html', '-').stdout
        self.assertIn('1,000 samples of ibs_fetch are not shown here: ibscope report -e ibs_fetch shows them', page)
        run('merge', '-o', merged, only, both)
        r = self.report(file=merged)
        self.assertEqual((r['metric'], r['total']['samples'], r['samples']['selected']), ('fetch_lat', 2000, 2000))
        with open(only) as f:
            p = subprocess.run([os.path.join(ibscope.BUILD, 'ibscope'), 'report', '-'], stdin=f, capture_output=True, text=True)
        self.assertIn('1,000 samples of ibs_fetch are left out', p.stdout)
        for args, says in (
                ((both, '-e', 'ibs_fetch', '--by', 'src'), '--by src: samples of ibs_fetch do not have that; use fetch or itlb'),
                ((both, '-e', 'ibs_op', '--by', 'itlb'), '--by itlb: samples of ibs_op do not have that'),
                ((both, '-e', 'ibs_op', '--metric', 'fetch_lat'), 'use -e ibs_fetch//'),
                ((both, '-e', 'ibs_fetch', '--src', 'dram'), "use --filter 'fetch == ..'"),
                ((both, '-e', 'cycles'), 'cycles'),
                ((only, '--html', 'x'), '--html: the page shows samples of ibs_op only')):
            self.check_error(args, 2, says)
        filtered = self.report('--filter', 'fetch == l3-miss', file=only)
        self.assertEqual([row['labels'] for row in filtered['rows']], [{'fetch': 'l3-miss'}])

    def test_functions_of_missed_fetches(self):
        """Where functions are known, and the samples are enough."""
        path = os.path.join(self.dir.name, 'self-fetch')
        for samples, said in (90000, 'L3-miss code fetches come from 1 function: main 100.0%\n'), (900, ''):
            subprocess.check_call([MAKE, path, str(samples), 'self-fetch'])
            text = run('report', '-e', 'ibs_fetch', '--by', 'symbol', path).stdout
            self.assertEqual(''.join(x for x in text.splitlines(True) if 'code fetches' in x), said)
        self.assertNotIn('code fetches', run('report', '-e', 'ibs_fetch', path).stdout)

    def test_hostile_names(self):
        p = run('report', self.file, '--by', 'comm,cgroup', '--top', '100')
        self.assertNotRegex(p.stdout, r'[\x00-\x09\x0b-\x1f\x7f]')
        table = p.stdout.split('\n\n')[1]
        self.assertIn('new\\x0aline', table)
        self.assertIn('bad\\xff\\xfe', table)
        self.assertIn('sémi;colon,"q"', table)
        names = {row['labels']['comm'] for row in self.report('--by', 'comm')['rows']}
        self.assertEqual(names, {None, *COMMS})

    def test_intervals(self):
        """Each estimate has an interval, in report, replay and their formats; the line below the table has the widest."""
        widest = 0
        rows = self.report('--by', 'src')['rows']
        for r in rows:
            if not r['valid']:
                continue
            self.assertTrue(0 < r['low'] < r['miss_cycles'] < r['high'], r)
            self.assertTrue(0 < r['share_low'] < r['share'] < r['share_high'] < 1, r)
            if r['valid'] >= 20:
                widest = max(widest, (r['high'] - r['low']) / 2 / r['miss_cycles'])
        self.assertGreater(widest, 0)
        text = run('report', '--by', 'src', self.file).stdout
        error = f'{100 * widest:.{int(widest < 0.1)}f}%'
        self.assertRegex(text, rf'\n\n95% intervals of cycles: .*{re.escape(error)}(; ~ (fewer than|last: under) 20 samples)?\n')
        by_src = {r['labels']['src']: r for r in rows}
        for r in csv.DictReader(io.StringIO(run('replay', self.file, '--by', 'src', '--csv').stdout)):
            mine = by_src[r['src']]
            if mine['valid']:
                # from buckets rather than latencies, and with the number of all samples
                self.assertAlmostEqual(float(r['low']) / mine['low'], 1, delta=0.06)
                self.assertAlmostEqual(float(r['high']) / mine['high'], 1, delta=0.06)
                self.assertAlmostEqual(float(r['share_low']) / mine['share_low'], 1, delta=0.02)
        for r in json.loads(run('replay', self.file, '--by', 'src', '--json').stdout)['series']:
            self.assertEqual(r['high'] is None, not r['valid'])

    def test_csv(self):
        p = run('report', self.file, '--csv', '--by', 'comm,cgroup')
        table = list(csv.reader(io.StringIO(p.stdout)))
        want = self.report('--by', 'comm,cgroup')
        self.assertEqual(table[0][:2] + table[0][-1:], ['comm', 'cgroup', 'source'])
        self.assertEqual({len(line) for line in table}, {len(table[0])})
        self.assertEqual(len(table) - 1, len(want['rows']))
        self.assertEqual({line[-1] for line in table[1:]}, {'sim'})
        for line, row in zip(table[1:], want['rows']):
            for name, cell in zip(table[0][2:-1], line[2:-1]):
                self.assertEqual(None if cell == '' else float(cell), row[name], name)
        self.assertIn('sémi;colon,"q"', {line[0] for line in table})
        p = run('report', self.file, '--csv', '--by', 'src', '--top', '1')
        table = list(csv.reader(io.StringIO(p.stdout)))
        self.assertEqual([line[0] for line in table[2:]], ['[rest]'])
        self.assertEqual(sum(int(line[1]) for line in table[1:]), SAMPLES)

    def markdown(self, *args):
        """The cells of the table, without what is Markdown; the text above and below."""
        p = run(*args, '--markdown')
        self.assertEqual(p.returncode, 0, p.stderr)
        above, table, below = re.fullmatch(r'```\n(.*?)\n```\n\n(\|.*?\|)\n\n(?:```\n(.*)\n```\n)?', p.stdout, re.S).groups()
        lines = [[cell.strip(' ') for cell in re.split(r'(?<!\\)\|', line)[1:-1]] for line in table.splitlines()]
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})
        self.assertLessEqual(set(lines.pop(1)), {':---', '---:'})
        return lines, above, below

    def test_markdown(self):
        for args in (('report', self.file, '--by', 'comm', '--top', '20'), ('replay', self.file, '--by', 'comm', '--top', '20')):
            wide = run(*args, env=dict(os.environ, COLUMNS='300')).stdout
            head, table, *rest = wide.split('\n\n')
            table = table.replace('~ under 20 samples:\n', '')    # markdown has rows only
            lines, above, below = self.markdown(*args)
            self.assertEqual(above.replace(' --markdown', ''), head)
            self.assertEqual(lines[0][0], 'COMM')
            names = [line[0] for line in lines[1:-1]]
            self.assertIn('`plain`', names)
            self.assertIn('`` two\\|`<i> *w_ ``', names)
            self.assertIn('`sémi;colon,"q"`', names)
            self.assertIn('`esc\\x1b[31m`', names)
            self.assertEqual(lines[-1][0], 'total')
            self.assertEqual(len(lines), len(table.splitlines()))
            for line, text in zip(lines[1:-1], table.splitlines()[1:-1]):
                self.assertTrue(text.startswith(line[0].strip('` ').replace('\\|', '|')), text)
                self.assertIn(line[1], text)
        self.assertIn('seen', below)
        p = run('replay', self.file, '--markdown', '--json')
        self.assertEqual(p.returncode, 2)
        self.assertIn('--json exclude each other', p.stderr)
        lines, _, below = self.markdown('replay', self.file, '--by', 'src', '--columns', 'dram,samples', '--histogram')
        self.assertEqual(lines[0], ['SOURCE', 'DRAM', 'SAMPLES'])
        self.assertIn('distribution', below)

    def test_one_name_for_one_thing(self):
        """Names that perf has for latency, source and process, and codes for sizes, are in no output."""
        names = set()

        def collect(o):
            for key, value in o.items() if isinstance(o, dict) else ((None, v) for v in o):
                names.update({key} - {None})
                if isinstance(value, (dict, list)):
                    collect(value)
        for args in (['dump', '--limit', '99'], ['dump', '--events', '--limit', '99'], ['report', '--by', 'ip,src'],
                     ['replay', '--by', 'comm,src'], ['c2c'], ['numa']):
            out = run(*args, self.file, '--json').stdout
            self.assertTrue(out, args)
            for text in out.splitlines() if args[0] == 'dump' else [out]:
                collect(json.loads(text))
            if '--events' not in args:
                names.update(run(*args, self.file, '--csv').stdout.splitlines()[0].split(','))
        self.assertFalse(names & {'weight', 'weight1', 'data_src', 'tgid', 'estimated', 'est_cycles', 'op_mem_width'})
        self.assertGreaterEqual(names, {'dc_miss_lat', 'src', 'pid', 'estimated_ops', 'miss_cycles', 'mem_width', 'event',
                                        'ledger', 'series', 'samples', 'valid', 'sum', 'buckets'})

    def test_columns(self):
        p = run('report', self.file, '--csv', '--columns', 'p99,samples')
        self.assertEqual(p.stdout.splitlines()[0], 'src,p99,samples,source')
        text = run('report', self.file, '--columns', 'mean').stdout
        self.assertEqual(text.split('\n\n')[1].splitlines()[0].split(), ['SOURCE', 'MEAN'])

    def test_stdin(self):
        with open(self.file, 'rb') as f:
            p = subprocess.run([ibscope.IBSCOPE, 'report', '-', '--by', 'comm', '--csv'],
                               stdin=f, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout, run('report', self.file, '--by', 'comm', '--csv').stdout)

    def test_cut(self):
        cut = os.path.join(self.dir.name, 'cut.ibs')
        subprocess.run([MAKE, cut, '5000', 'cut'], check=True)
        p = run('report', cut)
        self.assertEqual(p.returncode, 1)
        self.assertIn('INCOMPLETE', p.stdout)
        self.assertIn('is incomplete', p.stderr)
        self.assertIn(': 5,000 samples; ', p.stdout)
        self.assertFalse(json.loads(run('report', cut, '--json').stdout)['whole'])

    def limited(self, *args, seconds=60):
        """Run with 64 MiB for reading; sanitizers need memory of their own. Return: (status, stderr, peak MiB)"""
        plain = os.path.join(ibscope.BUILD, 'ibscope')
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen(['timeout', str(seconds), plain, *args, '--max-memory', '64'],
                                 stdout=subprocess.DEVNULL, stderr=err)
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return p.returncode, err.read().decode(), used.ru_maxrss / 1024

    def test_bomb(self):
        """A file that needs 300 MB for its names ends with an error that says how far it came."""
        bomb = os.path.join(self.dir.name, 'bomb.ibs')
        subprocess.run([MAKE, bomb, '100', 'bomb'], check=True)
        self.assertLess(os.path.getsize(bomb), 30 << 20)
        out = os.path.join(self.dir.name, 'out')
        for args in (['report', '--by', 'comm'], ['report', '--by', 'symbol'], ['dump'],
                     ['report', '--pprof', out], ['report', '--html', out], ['replay', '--by', 'comm']):
            with self.subTest(args=args):
                status, err, peak = self.limited(*args, bomb)
                self.assertEqual(status, 1, err)
                self.assertRegex(err, r'needs more than the 64 MiB of --max-memory; '
                                      r'reading stopped at byte [1-9]\d* of \d+')
                self.assertLess(peak, 64 + 40)

    def test_bomb_in_an_object(self):
        """.gnu_debugdata that unpacks to 400 MB: its names stay unknown, and memory stays bounded."""
        program = os.path.join(self.dir.name, 'program')
        packed = os.path.join(self.dir.name, 'packed')
        path = os.path.join(self.dir.name, 'object.ibs')
        with open(packed, 'wb') as f:
            f.write(lzma.compress(bytes(400 << 20), preset=0))
        subprocess.run(['strip', '-o', program, MAKE], check=True)
        subprocess.run([program, path, '100', 'self'], check=True)
        plain = self.limited('report', '--by', 'symbol', path)
        subprocess.run(['objcopy', '--add-section', f'.gnu_debugdata={packed}', program], check=True)
        status, err, peak = self.limited('report', '--by', 'symbol', path)
        self.assertEqual((status, plain[0]), (0, 0), err)
        # of the process that reads object files, which --max-memory does not limit
        self.assertLess(peak, 512)

    def test_folded(self):
        stacks = os.path.join(self.dir.name, 'stacks.ibs')
        subprocess.run([MAKE, stacks, str(SAMPLES), 'stacks'], check=True)
        p = run('report', stacks, '--folded', 'samples')
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = [line.rsplit(' ', 1) for line in p.stdout.splitlines()]
        self.assertEqual(sum(int(n) for _, n in lines), SAMPLES)
        chains = {chain.split(';', 2)[2] for chain, _ in lines}
        frame = '[/no/such/program]'
        user = {';'.join((frame, frame, frame)), ';'.join(('[unknown]', frame, frame))}
        # of ops of the kernel, called from there
        self.assertEqual(chains, user | {chain + ';[kernel]_[k]' for chain in user})
        self.assertEqual({chain.split(';')[0] for chain, _ in lines}, {'SIMULATED'})
        p = run('report', stacks, '--folded', 'total')
        self.assertEqual(sum(int(line.rsplit(' ', 1)[1]) for line in p.stdout.splitlines()),
                         self.report(file=stacks)['total']['total'])

    def test_symbols(self):
        """The generator's own main(), with the line that it begins in."""
        path = os.path.join(self.dir.name, 'self.ibs')
        subprocess.run([MAKE, path, '100', 'self'], check=True)
        r = self.report('--by', 'symbol,dso,srcline', file=path)
        self.assertEqual(len(r['rows']), 1)
        labels = r['rows'][0]['labels']
        self.assertEqual((labels['symbol'], os.path.basename(labels['dso'])),
                         ('main', 'make_recording'))
        self.assertRegex(labels['srcline'], r'make_recording\.c:\d+$')

    def test_random(self):
        """With random fields, samples add up and outputs are valid."""
        path = os.path.join(self.dir.name, 'random.ibs')
        for n in (1, 500):
            subprocess.run([MAKE, path, str(n), 'random'], check=True)
            for by in KEYS:
                for more in ([], ['--top', '3', '--phys']):
                    r = self.report('--by', by, *more, file=path)
                    rows = sum(row['samples'] for row in r['rows'])
                    self.assertEqual(rows + r['rest']['samples'], n)
            for args in (['--by', ','.join(KEYS)], ['--by', 'comm,cgroup,dso', '--csv'],
                         ['--folded', 'samples']):
                p = run('report', path, *args)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertNotRegex(p.stdout, r'[\x00-\x09\x0b-\x1f\x7f]')
            self.assertEqual(sum(int(line.rsplit(' ', 1)[1]) for line in p.stdout.splitlines()), n)
            p = run('report', path, '--by', 'comm,cgroup,dso', '--csv')
            table = list(csv.reader(io.StringIO(p.stdout)))
            self.assertEqual({len(line) for line in table}, {len(table[0])})
            self.assertEqual(sum(int(line[3]) for line in table[1:]), n)

    def test_replay_agrees(self):
        """The same percentiles and sums as a histogram of the same samples."""
        hist = json.loads(run('replay', self.file, '--json', '--by', 'src').stdout)
        rows = {row['labels']['src']: row for row in self.report()['rows']}
        self.assertEqual({s['labels']['src'] for s in hist['series']}, set(rows))
        for s in hist['series']:
            row = rows[s['labels']['src']]
            self.assertEqual(row['samples'], s['samples'])
            self.assertEqual(row['total'] or 0, s['sum'])
            for p in ('p50', 'p90', 'p99'):
                self.assertEqual(row[p], None if s[p] is None else min(s[p], row['max']))


if __name__ == '__main__':
    unittest.main()
