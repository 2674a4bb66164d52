# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`diff`: sums against report, files of counts against recordings, sentences of constructed changes, and bad input."""
import csv
import html.parser
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
PERIOD = 100000
EDGES = list(range(1, 9)) + [(9 + i % 8) << i // 8 for i in range(104)]
# how often, of a thousand ops, and how many cycles
USUAL = {'l2': (40, 16), 'l3': (30, 60), 'dram': (20, 400), 'remote-dram': (10, 700)}

USAGE = [
    (['A'], '1 file given: give two, A and B'),
    (['A', 'B', 'A'], '3 files given'),
    (['A', '--a', 'cpu == 1'], '--a and --b belong together'),
    (['A', '--a', 'cpu == 1', '--b', 'cpu = 1'], '--b: column'),
    (['A', '--filter', 'cpu != 2', '--a', 'cpu == 1', '--b', 'cpu = 1'], '--b: column'),
    (['-i', 'A', 'B'], 'already given with -i'),
    (['A', 'B', '--per', 'minute'], "'minute'"),
    (['A', 'B', '--by', 'cause'], "'cause'"),
    (['A', 'B', '--by', 'fetch'], 'fetch'),
    (['A', 'B', '--causes', 'comm'], 'what the hardware did'),
    (['A', 'B', '--causes', 'line'], 'what the hardware did'),
    (['A', 'B', '--csv', '--json'], 'exclude each other'),
    (['A', 'B', '--html', '/dev/null', '--json'], '--html excludes'),
    (['A', 'B', '--top', '0'], '--top'),
    (['COUNTS', 'COUNTS', '--comm', 'web'], 'nothing can be selected'),
    (['COUNTS', '--a', 'cpu == 1', '--b', 'cpu == 2'], 'nothing can be selected'),
]
FAILED = [
    (['A', 'B', '--html', '/no/such/dir/x'], '/no/such/dir/x'),
    (['A', '/no/such/file'], 'cannot open /no/such/file'),
    (['/dev/null', 'A'], 'empty'),
    (['A', '--a', 'cpu == 1', '--b', 'cpu == 4000'], 'B has 0 samples with a latency: at least 100'),
    (['A', 'COUNTS'], "simulated is 'yes' in A and 'no' in B"),
    (['COUNTS', 'FETCHES'], "the metric is 'dc_miss_lat' in A and 'fetch_lat' in B"),
    (['FILTERED', 'COUNTS'], 'what the period counts'),
]


def counts(intervals, seed, usual=USUAL, row=lambda r: {'container': 'web'}, **head):
    """Lines of hist --json with `intervals` objects, of random samples."""
    r, out = random.Random(seed), []
    for _ in range(intervals):
        series = {}
        for _ in range(2000):
            labels = row(r)
            at, src = r.uniform(0, 1000), 'l1'
            for name, (n, _) in usual.items():
                at -= n
                if at < 0:
                    src = name
                    break
            s = series.setdefault((*labels.items(), src), {'labels': {**labels, 'src': src, 'op': 'load'}, 'samples': 0, 'valid': 0,
                                                            'sum': 0, 'buckets': {}})
            s['samples'] += 1
            if src == 'l1':
                continue
            lat = max(1, int(usual[src][1] * r.lognormvariate(-.04, .3)))
            edge = next(e for e in EDGES if lat <= e)
            s['valid'] += 1
            s['sum'] += lat
            s['buckets'][edge] = s['buckets'].get(edge, 0) + 1
        for s in series.values():
            s.update(buckets=sorted(s['buckets'].items()), estimated_ops=s['samples'] * PERIOD, miss_cycles=s['sum'] * PERIOD)
        out.append(json.dumps({'event': 'ibs_op/cnt_ctl=1/', 'source': 'ibs', 'simulated': False, 'period': PERIOD, 'interval_s': 1.0,
                               'metric': 'dc_miss_lat', 'series': list(series.values()), **head}))
    return '\n'.join(out) + '\n'


class Page(html.parser.HTMLParser):
    """The title, cells of tables, and rectangles of pictures."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.h1, self.rows, self.rects, self.tags, self.titles, self.frames = [], '', [], [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        assert not any(a.startswith('on') or a in ('style', 'href', 'src') for a in attrs), attrs
        if tag == 'rect':
            self.rects.append((self.tags_of('figure'), attrs.get('class', ''), int(float(attrs.get('y', 0)))))
            if self.inside[-1:] == ['g']:
                self.frames.append((int(attrs['y']), ''.join(self.titles)))
        elif tag == 'g':
            self.titles = []
        elif tag == 'figure':
            self.figures = getattr(self, 'figures', 0) + 1
        elif tag == 'tr':
            self.rows.append([])
        elif tag in ('td', 'th'):
            self.rows[-1].append('')
        if tag not in ('meta', 'rect', 'path', 'circle'):
            self.inside.append(tag)

    def tags_of(self, tag):
        return self.figures if tag in self.inside else 0

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data):
        if 'h1' in self.inside:
            self.h1 += data
        if 'td' in self.inside or 'th' in self.inside:
            self.rows[-1][-1] += data
        if self.inside[-1:] == ['title'] and 'svg' in self.inside:
            self.titles.append(data)


class Diff(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='ibscope-diff.')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for name, how in (('A', 'stacks'), ('B', 'bare')):
            subprocess.run([MAKE, cls.path(name), '20000', how], check=True)
        cls.write('COUNTS', counts(10, 1))
        cls.write('FETCHES', counts(10, 1, event='ibs_fetch//', metric='fetch_lat'))
        cls.write('FILTERED', counts(10, 1, event='ibs_op//'))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    @classmethod
    def write(cls, name, text):
        with open(cls.path(name), 'w') as f:
            f.write(text)
        return cls.path(name)

    def diff(self, *args, status=0, **kwargs):
        p = run('diff', *(self.path(a) if re.fullmatch('[A-Z]+', a) else a for a in args), **kwargs)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stdout if not status else p.stderr

    def json(self, *args):
        d = json.loads(self.diff('--json', *args))
        for part, other in (('causes', 'other_causes'), ('where', 'other_where')):
            found = sum(r['change']['change'] for r in d[part] if r['change']['finding'])
            self.assertAlmostEqual(found + d[other]['change'], d['b']['value'] - d['a']['value'],
                                   delta=1e-6 * (d['a']['value'] + d['b']['value']), msg=part)
        self.assertAlmostEqual(sum(r['change']['change'] for r in d['causes']), d['change']['change'], delta=1e-6 * d['a']['value'])
        return d

    def test_sums_are_those_of_report(self):
        """Values, and the terms of each cause, are worked out again from what report prints."""
        rnd = random.Random(7)
        for _ in range(8):
            select = rnd.choice(([], ['--cpu', '0-1'], ['--op', 'load'], ['--min-lat', '40'], ['--filter', 'cpu != 2']))
            causes = rnd.choice(('src', 'src,op', 'op', 'mode'))
            per = rnd.choice(('ops', 'access'))
            with self.subTest(select=select, causes=causes, per=per):
                d = self.json('A', 'B', '--by', 'comm', '--causes', causes, '--per', per, *select)
                side = {}
                for name in 'AB':
                    r = json.loads(run('report', '--json', '--by', causes, *select, self.path(name)).stdout)
                    t, rows = r['total'], {}
                    for row in r['rows']:
                        key = ' '.join(v or 'unknown' for v in row['labels'].values())
                        rows[key] = [a + b for a, b in zip(rows.get(key, (0, 0)), (row['valid'], row['total'] or 0))]
                    base = t['valid'] if per == 'access' else t['samples']
                    side[name] = {k: (n / base, total / n) for k, (n, total) in rows.items() if n}
                    self.assertAlmostEqual(d[name.lower()]['value'], t['total'] / base, delta=1e-6 * t['total'] / base)
                for row in d['causes']:
                    i = row['kind'] in ('slower', 'faster')
                    for name in 'AB':
                        want = side[name].get(row['cause'], (0, None))[i]
                        if want is None:
                            self.assertIsNone(row[name.lower()])
                        else:
                            self.assertAlmostEqual(row[name.lower()], want, delta=1e-6 * (want + 1))
                where = {r['labels']['comm']: r['a'] for r in d['where']}
                r = json.loads(run('report', '--json', '--by', 'comm', *select, self.path('A')).stdout)
                for row in r['rows']:
                    base = r['total']['valid' if per == 'access' else 'samples']
                    self.assertAlmostEqual(where[row['labels']['comm']], (row['total'] or 0) / base, delta=1e-6 * ((row['total'] or 0) / base + 1))

    def test_counts_are_those_of_a_recording(self):
        """replay prints what hist would have: the same values, if not the same intervals."""
        for name in 'AB':
            p = run('replay', '--json', '--by', 'comm,src,op', self.path(name))
            self.assertEqual(p.returncode, 0, p.stderr)
            self.write('REPLAYED' + name, p.stdout)
        got = self.json('REPLAYEDA', 'REPLAYEDB')
        want = self.json('A', 'B', '--by', 'comm')
        for side in 'ab':
            self.assertAlmostEqual(got[side]['value'], want[side]['value'], delta=1e-6 * want[side]['value'])
            self.assertEqual(got[side]['samples'], want[side]['samples'])
        key = lambda r: (r['cause'], r['kind'] in ('slower', 'faster'))  # noqa: E731
        mixed = self.json('REPLAYEDA', 'B')
        for other in (got, mixed):
            terms = {key(r): r for r in other['causes']}
            self.assertEqual(set(terms), {key(r) for r in want['causes']})
            for r in want['causes']:
                self.assertAlmostEqual(terms[key(r)]['change']['change'], r['change']['change'], delta=1e-6 * want['a']['value'])
        self.assertEqual({r['labels']['comm'] for r in got['where']}, {r['labels']['comm'] or '' for r in want['where']})

    def test_turned_round(self):
        one, other = self.json('A', 'B', '--by', 'comm'), self.json('B', 'A', '--by', 'comm')
        self.assertAlmostEqual(one['change']['change'], -other['change']['change'], delta=1e-9 * one['a']['value'])

    def test_itself(self):
        for file in ('A', 'COUNTS'):
            d = self.json(file, file)
            self.assertEqual(d['change']['change'], 0)
            self.assertFalse(any(r['change']['finding'] for r in d['causes'] + d['where']))
            text = self.diff(file, file)
            self.assertRegex(text, r'No difference that is more than noise: \+0.0 % ± [0-9]+\.[0-9] % miss cycles per thousand ops\.\n')
            self.assertRegex(text, r'\(A change of [0-9.]+ % would have been seen with these [0-9,]+ samples; 1 % needs about ')
            self.assertNotIn('CAUSE', text)

    def test_close(self):
        """A change that is probably real and still no finding: the headline says why, and how long to measure."""
        self.write('CLOSE', counts(10, 42, {'l2': (42, 16), 'l3': (31, 60), 'dram': (21, 400), 'remote-dram': (10.4, 705)}))
        d = self.json('COUNTS', 'CLOSE')
        self.assertGreater(d['change']['low'], 0)
        self.assertFalse(any(c['finding'] for c in (d['change'], *(r['change'] for r in d['causes'] + d['where']))))
        text = self.diff('COUNTS', 'CLOSE')
        tests = re.search(r'\nNo finding: \+\d+ % ± \d+ % miss cycles per thousand ops\. By chance alone 1 of 20 such intervals '
                          r'does\s+not contain 0, and (\d+) changes were tested at once, so this one can be noise\.\n', text)
        # the sum, two of each cause, one row, and the percentile with its factors
        self.assertIn(int(tests[1]), range(1 + 2 * 4 + 1, 1 + 2 * 5 + 1 + 2 + 7))
        times, more = re.search(r'\(To find a change of this size, measure ([\d.]+) times as long: about ([\d,]+) samples on each side', text).groups()
        self.assertAlmostEqual(int(more.replace(',', '')), float(times) * 20000, delta=1100)
        self.assertNotIn('would have been seen', text)
        self.assertNotIn('No difference', text)
        page = os.path.join(self.dir, 'close.html')
        self.diff('COUNTS', 'CLOSE', '--html', page)
        with open(page, encoding='utf-8') as f:
            self.assertIn('so this one can be noise', f.read())
        # as much longer as it says
        self.write('LONG', counts(40, 1))
        self.write('LONGB', counts(40, 42, {'l2': (42, 16), 'l3': (31, 60), 'dram': (23.3, 400), 'remote-dram': (11.6, 705)}))
        self.assertTrue(self.json('LONG', 'LONGB')['change']['finding'])

    def test_renamed(self):
        """A program that has another name is one line, not a table; what two rows exchange is not `no difference`."""
        old, new = ((lambda r, comm=comm: {'container': 'web', 'comm': comm, 'symbol': r.choice(('f', 'g'))}) for comm in ('old', 'new'))
        self.write('OLD', counts(20, 3, row=old))
        self.write('NEW', counts(20, 8, row=new))
        text = self.diff('OLD', 'NEW', '--by', 'container,comm')
        self.assertRegex(text, r'No difference that is more than noise')
        self.assertRegex(text, r'\nmoved, not counted: [\d,]+ from comm old to new\n')
        self.assertNotIn('MOST OF IT', text)
        web, db = ({**USUAL, 'dram': (n, 400)} for n in (40, 20))
        for name, of in (('SWAPA', (web, db)), ('SWAPB', (db, web))):
            both = [counts(20, 5 + i, usual, row=lambda r, i=i: {'container': ('web', 'db')[i]}).splitlines() for i, usual in enumerate(of)]
            lines = []
            for x, y in zip(*both):
                x, y = json.loads(x), json.loads(y)
                x['series'] += y['series']
                lines.append(json.dumps(x))
            self.write(name, '\n'.join(lines) + '\n')
        # of one key, rows that exchange as much are other names of the same
        self.assertIn('moved, not counted', self.diff('SWAPA', 'SWAPB'))
        text = self.diff('SWAPA', 'SWAPB', '--by', 'container,comm')
        self.assertRegex(text, r'Miss cycles per thousand ops: .*: as a sum this can be noise, but 2\s+rows\s+are\s+findings\n')
        self.assertRegex(text, r'(?m)^web +.*dram less often$')
        self.assertNotIn('No difference', text)
        self.assertNotIn('would have been seen', text)

    def test_sentences(self):
        """One cause is changed at a time."""
        for name, (change, want) in {
                'OFTEN': ({'dram': (40, 400)}, r' +\+\d+ points  dram more often \([0-9.]+ → [0-9.]+ of a thousand ops\)'),
                'LESS': ({'dram': (8, 400)}, r' +−\d+ points  dram less often \('),
                'SLOWER': ({'dram': (20, 600)}, r' +\+\d+ points  dram answered more slowly \(mean [34]\d\d → [56]\d\d cycles\)'),
                'FASTER': ({'remote-dram': (10, 300)}, r' +−\d+ points  remote-dram answered faster \('),
                'NEW': ({'cxl': (5, 2000)}, r' +\+\d+ points  cxl more often \(0.00 → '),
        }.items():
            for intervals in (3, 20):
                with self.subTest(name, intervals=intervals):
                    self.write(name, counts(intervals, 2, {**USUAL, **change}))
                    lines = re.sub(r'(as a sum[^\n]*)\n(?=[^ ])', r'\1 ', self.diff('COUNTS', name)).splitlines()
                    self.assertRegex(lines[3], r'^Miss cycles per thousand ops: [0-9,]+ → [0-9,]+, [+−][0-9.]+ % ± [0-9.]+ %(: as a sum this can be noise, the causes below are findings)?$')
                    self.assertRegex(lines[4], '^' + want)
                    sums = next(x.split() for x in lines if x.startswith('sum '))
                    self.assertEqual(sums[-1], '100%')

    def test_points(self):
        """What points are is said wherever there are some, and what the rest is."""
        self.write('ONE', counts(20, 2, {**USUAL, 'dram': (20, 600)}))
        says = '1 point is 1 % of the first value. ~: causes that are within noise one by one.'
        text = self.diff('COUNTS', 'ONE')
        self.assertEqual(text.count('~ everything else'), 1)
        self.assertIn(f'\n{says}\n', text)
        self.assertNotIn('1 point', self.diff('COUNTS', 'COUNTS'))
        d = self.json('COUNTS', 'ONE')
        errors = [(c['high'] - c['low']) / 2 / abs(c['change']) * 100 for c in (r['change'] for r in d['causes'] + d['where']) if c['finding']]
        trust = re.search(r'\n95% intervals of changes: ±(\d+)%(?: \(first cause\) to ±(\d+)%)?; ~ within noise\n', text)
        self.assertAlmostEqual(float(trust[1]), errors[0], delta=.51)
        self.assertAlmostEqual(float(trust[2] or trust[1]), max(errors), delta=.51)
        self.assertNotIn('95% intervals', self.diff('COUNTS', 'COUNTS'))
        page = os.path.join(self.dir, 'points.html')
        self.diff('COUNTS', 'ONE', '--html', page)
        with open(page, encoding='utf-8') as f:
            html_text = f.read()
        self.assertIn(f'<li>{says}</li>', html_text)
        self.assertIn(f'<p>{trust[0].strip()}</p>', html_text)
        self.write('MANY', counts(20, 2, {name: (2 * n, 2 * latency) for name, (n, latency) in USUAL.items()}))
        text = self.diff('COUNTS', 'MANY')
        self.assertRegex(text, r'points  everything else\n')
        self.assertRegex(text, r'\n1 point is 1 % of the first value\. Everything else: smaller causes, and noise\.\n')

    def test_where(self):
        """The container that changed, and not the other."""
        usual = lambda r: {'container': r.choice(('web', 'db'))}  # noqa: E731
        self.write('WHEREA', counts(20, 3, row=usual))
        a, b = counts(20, 4, row=lambda r: {'container': 'web'}), counts(20, 5, {**USUAL, 'dram': (60, 400)}, row=lambda r: {'container': 'db'})
        merged = []
        for x, y in zip(a.splitlines(), b.splitlines()):
            x, y = json.loads(x), json.loads(y)
            x['series'] += y['series']
            merged.append(json.dumps(x))
        self.write('WHEREB', '\n'.join(merged) + '\n')
        d = self.json('WHEREA', 'WHEREB')
        found = [r for r in d['where'] if r['change']['finding']]
        self.assertEqual([(r['labels'], r['cause'], r['kind']) for r in found], [({'container': 'db'}, 'dram', 'more often')])
        self.assertRegex(self.diff('WHEREA', 'WHEREB'), r'(?m)^CONTAINER +CHANGE +95 % +MOST OF IT\ndb +\+[0-9,]+ .* dram more often$')

    def test_no_keys(self):
        self.write('NOKEYS', counts(10, 1, row=lambda r: {}))
        self.write('NOKEYSB', counts(10, 1, {**USUAL, 'dram': (60, 400)}, row=lambda r: {}))
        self.assertIn('dram more often', self.diff('NOKEYS', 'NOKEYSB'))
        d = self.json('NOKEYS', 'NOKEYSB')
        self.assertEqual([r['labels'] for r in d['where']], [{}])

    def test_two_events(self):
        """hist prints an object of each event in turn: only those of one are compared, by default of the first."""
        ops, fetches = counts(10, 1), counts(10, 2, event='ibs_fetch//', metric='fetch_lat')
        self.write('BOTH', ''.join(f'{a}\n{b}\n' for a, b in zip(ops.splitlines(), fetches.splitlines())))
        one, both = self.json('COUNTS', 'COUNTS'), self.json('BOTH', 'COUNTS')
        for key in ('samples', 'value', 'seconds', 'blocks'):
            self.assertEqual(both['a'][key], one['a'][key])
        self.write('SECOND', fetches)
        both = self.json('BOTH', 'SECOND', '-e', 'ibs_fetch//', '--causes', 'fetch')
        self.assertEqual(both['a']['value'], both['b']['value'])
        self.assertIn('has no intervals of ibs_fetch', self.diff('-e', 'ibs_fetch//', 'COUNTS', 'SECOND', status=1))
        self.write('MIXED', ops + counts(1, 3, metric='tlb_refill_lat'))
        self.assertIn("object 11 has the metric 'tlb_refill_lat'", self.diff('MIXED', 'COUNTS', status=1))

    def test_overlap(self):
        """Of two snapshots of the same counters, the later one is compared without what the other has."""
        since = '2026-11-24T03:11:07.512Z'
        a, new = json.loads(counts(1, 3)), json.loads(counts(1, 4, {**USUAL, 'dram': (60, 400)}))
        key = lambda s: json.dumps(s['labels'], sort_keys=True)  # noqa: E731
        b = json.loads(json.dumps(new))
        of = {key(s): s for s in b['series']}
        for s in a['series']:
            n = of.setdefault(key(s), {**s, 'samples': 0, 'valid': 0, 'sum': 0, 'estimated_ops': 0, 'miss_cycles': 0, 'buckets': []})
            if n not in b['series']:
                b['series'].append(n)
            for k in 'samples', 'valid', 'sum', 'estimated_ops', 'miss_cycles':
                n[k] += s[k]
            buckets = dict(map(tuple, n['buckets']))
            for le, count in s['buckets']:
                buckets[le] = buckets.get(le, 0) + count
            n['buckets'] = sorted(map(list, buckets.items()))
        a |= {'counted_since': since, 'ledger': {'seen': 1000}, 'interval_s': 100}
        b |= {'counted_since': since, 'ledger': {'seen': 2000}, 'interval_s': 160}
        for name, o in (('EARLY', a), ('LATE', b), ('NEW', new), ('OTHER', {**b, 'counted_since': since.replace('512', '513')})):
            self.write(name, json.dumps(o))
        want, got = self.json('EARLY', 'NEW'), self.json('EARLY', 'LATE')
        for k in 'samples', 'valid', 'value':
            self.assertAlmostEqual(got['b'][k], want['b'][k], delta=1e-6 * want['b'][k])
        self.assertAlmostEqual(got['b']['seconds'], 60)
        self.assertEqual((got['a']['selection'], got['b']['selection']), (None, 'since A'))
        back = self.json('LATE', 'EARLY')
        self.assertEqual((back['a']['samples'], back['a']['selection']), (want['b']['samples'], 'since B'))
        self.assertEqual(self.json('EARLY', 'OTHER')['b']['samples'], sum(s['samples'] for s in b['series']))
        self.assertAlmostEqual(self.json('LATE', 'LATE')['change']['change'], 0)
        # groups that ended
        less = json.loads(json.dumps(b))
        less['series'][0]['samples'] = less['series'][0]['valid'] = less['series'][0]['sum'] = 0
        less['series'][0] |= {'estimated_ops': 0, 'miss_cycles': 0, 'buckets': []}
        self.write('LESS', json.dumps(less))
        self.assertIn('a counter decreased', self.diff('EARLY', 'LESS', status=1))
        gone = less['series'].pop(0)
        self.write('ENDED', json.dumps(less))
        p = run('diff', self.path('EARLY'), self.path('ENDED'))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, r'[\d,]+ samples that .*EARLY has of groups that ended', gone)

    def test_incomplete(self):
        """As in the other commands: what is there is compared, and the status says so."""
        subprocess.run([MAKE, self.path('CUT'), '20000', 'cut'], check=True)
        p = run('diff', '--by', 'comm', self.path('CUT'), self.path('B'))
        self.assertEqual(p.returncode, 1)
        self.assertIn('CUT is incomplete', p.stderr)
        self.assertIn('miss cycles per thousand ops', p.stdout.lower())

    def test_formats(self):
        d = self.json('A', 'B', '--by', 'comm,pid')
        rows = list(csv.DictReader(io.StringIO(self.diff('--csv', 'A', 'B', '--by', 'comm,pid'))))
        self.assertEqual([r['table'] for r in rows], ['cause'] * len(d['causes']) + ['where'] * len(d['where']))
        for row, want in zip(rows, d['causes'] + d['where']):
            self.assertAlmostEqual(float(row['change']), want['change']['change'], delta=1e-6)
            self.assertEqual(row['kind'], want['kind'])
        self.assertTrue(self.diff('--markdown', 'A', 'B').startswith('```'))

    def test_fits_the_screen(self):
        self.write('SLOW', counts(20, 2, {**USUAL, 'dram': (90, 600), 'l3': (90, 60)},
                                   row=lambda r: {'container': 'namespace/pod-' + '0123456789' * 4 + '/name-' + str(r.randrange(3))}))
        self.write('FAST', counts(20, 2, row=lambda r: {'container': 'namespace/pod-' + '0123456789' * 4 + '/name-' + str(r.randrange(3))}))
        for width in (70, 80, 120):
            text = self.diff('FAST', 'SLOW', env={**os.environ, 'COLUMNS': str(width)})
            tables = text[text.index('CAUSE'):].splitlines()
            for line in tables:
                self.assertLessEqual(len(line), width, text)
        self.assertIn('name-1', text)
        ascii = self.diff('FAST', 'SLOW', env={**os.environ, 'LC_ALL': 'C', 'LANG': 'C'})
        self.assertTrue(ascii.isascii(), ascii)

    def page(self, *args):
        self.diff('--html', self.path('page'), *args)
        with open(self.path('page')) as f:
            page = Page(f.read())
        self.assertNotIn('script', page.tags)
        return page

    def test_html(self):
        """Tables say what JSON says; the third map shows latencies that moved up."""
        a = self.write('SLOWA', counts(20, 3))
        b = self.write('SLOWB', counts(30, 4, {**USUAL, 'dram': (20, 1600)}))
        d, page = self.json(a, b), self.page(a, b)
        self.assertRegex(page.h1, r'^Miss cycles per thousand ops: .*\+\d+ %')
        causes = [r for r in d['causes'] if r['change']['change']]
        rows = page.rows[1:1 + len(causes)]
        self.assertEqual([(r[0], r[1]) for r in rows], [(c['cause'], c['kind']) for c in causes])
        self.assertEqual([r[-1] == '~' for r in rows], [not c['change']['finding'] for c in causes])
        self.assertEqual(page.rows[1 + len(causes)][:2], ['sum', ''])
        self.assertEqual(page.figures, 3)
        for figure in 1, 2:
            self.assertGreater(sum(f == figure and c in ('a6', 'a7', 'a8') for f, c, _ in page.rects), 40)

        def height(kind):
            steps = [(y, int(c[-1])) for f, c, y in page.rects if f == 3 and re.fullmatch(kind + '[1-4]', c)]
            self.assertGreater(len(steps), 10)
            return sum(y * n for y, n in steps) / sum(n for _, n in steps)
        self.assertLess(height('up'), height('down') - 8)     # the top of a map is slow
        self.assertFalse(page.frames)

    def test_html_callers(self):
        """The outermost frames of both sides add up to the sides."""
        args = ('--a', 'cpu < 2', '--b', 'cpu >= 2', 'A')
        d, page = self.json(*args), self.page(*args)
        self.assertGreater(len(page.frames), 5)
        tops = [re.search(r'^(.*)\nA (\S+)  B (\S+)  change', t, re.S) for y, t in page.frames if not y]
        for name, at in ('a', 2), ('b', 3):
            self.assertAlmostEqual(sum(float(m[at]) for m in tops), d[name]['value'] * 1000, delta=d[name]['value'] * 1000 * .02)

    def test_bad_usage(self):
        for args, want in USAGE:
            with self.subTest(args):
                self.assertIn(want, self.diff(*args, status=2))

    def test_failures(self):
        for args, want in FAILED:
            with self.subTest(args):
                self.assertIn(want, self.diff(*args, status=1))

    def test_hostile_counts(self):
        """What hist does not print is refused, whatever it is, with the file and the object."""
        good = json.loads(counts(1, 1))
        series = good['series'][0]

        def broken(**change):
            return json.dumps({**good, 'series': [{**series, **change}]})
        bad = {
            'cut': counts(9, 1)[:-100], 'list': '{"series": 1}', 'text': '{"a"', 'no series': '{}', 'deep': '{"series":' + '[' * 100000,
            'negative': broken(samples=-1), 'float': broken(valid=0.5), 'more valid': broken(valid=series['samples'] + 1),
            'infinite': broken(miss_cycles=1e308), 'bool': broken(samples=True), 'edge': broken(buckets=[[17, series['valid']]]),
            'sums': broken(buckets=[]), 'big': broken(buckets=[[16, 2 ** 62], [20, 2 ** 62]]), 'labels': broken(labels=[]),
            'often': broken(buckets=[[16, 1e15]] * 20000),
            'pairs': broken(buckets=[16, 20]), 'huge edge': broken(buckets=[[2 ** 40, series['valid']]]),
        }
        if not series['valid']:  # of l1
            del bad['edge'], bad['sums'], bad['pairs'], bad['huge edge']
        for name, text in bad.items():
            with self.subTest(name):
                self.write('BAD', text)
                err = self.diff('BAD', 'COUNTS', status=1)
                self.assertRegex(err, r'BAD: object \d+ ')
        names = broken(labels={'container': '\x1b[31m</script>\u202e', 'src': 'dr\nam'})
        self.write('NAMES', names + '\n' + counts(20, 3, {**USUAL, 'dr\nam\x1b[0m': (100, 900)}))
        text = self.diff('COUNTS', 'NAMES')
        self.assertNotIn('\x1b', text)
        self.assertIn('dr\\x0aam\\x1b[0m', text)
        self.assertIn('dr\nam\x1b[0m', [r['cause'] for r in self.json('COUNTS', 'NAMES')['causes']])


if __name__ == '__main__':
    unittest.main()
