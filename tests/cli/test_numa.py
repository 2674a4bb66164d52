# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`numa` against an oracle over what `dump` prints, and the ranges of memory that files have."""
import collections
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import can_bpf, run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_lines')
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'perf')
PERIOD = 1000
PHYS = 0x100000000
GIB = 1 << 30
RANGES = [(PHYS, PHYS + GIB, 0), (PHYS + GIB, PHYS + 2 * GIB, 1), (PHYS + 4 * GIB, PHYS + 5 * GIB, 2)]
OK, WHY = can_bpf()
LEVELS = {'dram': 'dram', 'remote-dram': 'dram', 'pmem': 'pmem', 'remote-pmem': 'pmem', 'cxl': 'cxl',
          'remote-cxl': 'cxl'}


def memory_node(phys):
    return next((str(n) for start, end, n in RANGES if phys and start <= int(phys, 16) < end), '')


class Numa(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)

    def make(self, *args):
        path = os.path.join(self.dir.name, 'a')
        subprocess.run([MAKE, path, *args], check=True)
        return path

    def numa(self, *args):
        p = run('numa', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p

    def oracle(self, path, ranges=True):
        """{(container, node, mem_node): [samples, valid, cycles, price]}, and the price as `price` has it."""
        rows = collections.defaultdict(lambda: [0, 0, 0, 0.0])
        local, all_nodes, remote = {}, {}, []
        for r in csv.DictReader(io.StringIO(run('dump', '--csv', path).stdout)):
            if r['ld_op'] != '1' and r['st_op'] != '1':
                continue
            node, mem = str(int(r['cpu']) // 24), memory_node(r['dc_phys_ad']) if ranges else ''
            key = ['web', 'db', 'batch'][int(r['pid']) - 100], node, mem
            rows[key][0] += 1
            if r['dc_miss_lat'] == '':
                continue
            cycles = int(r['dc_miss_lat']) * PERIOD
            rows[key][1] += 1
            rows[key][2] += cycles
            if r['src'] not in LEVELS:
                continue
            level = LEVELS[r['src']]
            if node != mem if mem else r['src'].startswith('remote'):
                remote.append((key, node, level, cycles))
                continue
            for sums, at in (local, (node, level)), (all_nodes, level):
                c, n = sums.get(at, (0, 0))
                sums[at] = c + cycles, n + PERIOD
        for key, node, level, cycles in remote:
            c, n = local.get((node, level)) or all_nodes.get(level) or (0, 0)
            rows[key][3] += cycles - PERIOD * c / n if n else float('nan')
        return rows

    def compare(self, path, *options, ranges=True):
        want = self.oracle(path, ranges)
        got = list(csv.DictReader(io.StringIO(self.numa(path, '--by', 'container', '--csv', *options).stdout)))
        self.assertEqual({(r['container'], r['node'], r['mem_node']) for r in got}, set(want))
        for r in got:
            w = want[r['container'], r['node'], r['mem_node']]
            self.assertEqual([int(r[c]) for c in ('samples', 'valid', 'miss_cycles')], w[:3])
            if r['remote_price'] == '':
                self.assertNotEqual(w[3], w[3])
            else:
                self.assertAlmostEqual(float(r['remote_price']), w[3], delta=1 + abs(w[3]) * 1e-9)
        return got, want

    def test_random(self):
        unknown = known = 0
        for seed in range(8):
            with self.subTest(seed=seed):
                got, want = self.compare(self.make('numa', str(40 + 400 * seed), str(seed)))
                unknown += sum(r['remote_price'] == '' for r in got)
                known += sum(float(r['remote_price'] or 0) > 0 for r in got)
        self.assertTrue(unknown and known, (unknown, known))
        for seed in range(30):  # so few that a node may lack local memory, and is compared with all nodes
            with self.subTest(few=seed):
                self.compare(self.make('numa', '60', str(seed)))

    def test_matrix(self):
        path = self.make('numa', '5000', '1')
        j = json.loads(self.numa(path, '--json').stdout)
        self.assertEqual(j['by'], ['node', 'mem_node'])
        self.assertEqual({(r['labels']['node'], r['labels']['mem_node']) for r in j['rows']},
                         {(n, m) for n in '01' for m in ('0', '1', '2', None)})
        self.assertEqual(sum(r['samples'] for r in j['rows']), j['total']['samples'])
        for r in j['rows']:
            if r['labels']['node'] == r['labels']['mem_node']:
                self.assertEqual(r['remote_price'], 0)
        # further away in make_lines costs more
        prices = {(r['labels']['node'], r['labels']['mem_node']): r['remote_price'] for r in j['rows']}
        self.assertGreater(prices['0', '2'], prices['0', '1'])
        one = json.loads(run('report', path, '--by', 'mem_node', '--columns', 'remote_price', '--json').stdout)
        self.assertAlmostEqual(sum(r['remote_price'] for r in one['rows']), j['total']['remote_price'], delta=4)

    def test_pages(self):
        """The pages of each row, and those that another node uses most."""
        path = self.make('random', '6000', '3')
        pages, uses = collections.defaultdict(set), collections.defaultdict(collections.Counter)
        for r in csv.DictReader(io.StringIO(run('dump', '--csv', path).stdout)):
            if r['dc_phys_ad'] and '1' in (r['ld_op'], r['st_op']):
                page, node = int(r['dc_phys_ad'], 16) >> 12, str(int(r['cpu']) // 24)
                pages[node, memory_node(r['dc_phys_ad'])].add(page)
                uses[page][node] += 1
        bad = {p for p, u in uses.items() if memory_node('%x' % (p << 12)) and max(u.values()) > u[memory_node('%x' % (p << 12))]}
        self.assertTrue(0 < len(bad) < len(uses), (len(bad), len(uses)))
        j = json.loads(self.numa('--json', path).stdout)
        rows = {(r['labels']['node'], r['labels']['mem_node'] or ''): r for r in j['rows'] if r['pages']}
        self.assertEqual(set(rows), set(pages))
        for at, r in rows.items():
            self.assertEqual((r['pages'], r['misplaced']), (len(pages[at]), len(pages[at] & bad) if at[1] else None), at)
        self.assertEqual((j['total']['pages'], j['total']['misplaced']), (len(uses), len(bad)))
        self.assertRegex(run('numa', path, env=dict(os.environ, COLUMNS='150')).stdout, r' PAGES +MISPLACED ')
        # without the memory of each node nothing is misplaced
        j = json.loads(self.numa('--json', self.make('known', 'bare')).stdout)
        self.assertEqual({r['misplaced'] for r in j['rows'] + [j['total']]}, {None})

    def test_distance(self):
        path = self.make('numa', '5000', '1')
        far = {('0', '0'): '10', ('0', '1'): '21', ('0', '2'): '40', ('1', '0'): '21', ('1', '1'): '10'}
        head = json.loads(run('dump', '--events', '--json', path).stdout.splitlines()[0])
        self.assertEqual({(str(d['node']), str(d['mem_node'])): str(d['distance']) for d in head['distance']}, far)
        want = collections.Counter()
        for r in csv.DictReader(io.StringIO(self.numa(path, '--by', 'distance', '--csv').stdout)):
            self.assertEqual(r['distance'], far.get((r['node'], r['mem_node']), ''))
            want[r['distance']] += int(r['samples'])
        rows = csv.DictReader(io.StringIO(run('report', '--by', 'distance', '--csv', path).stdout))
        self.assertEqual({r['distance']: int(r['samples']) for r in rows}, want)
        # the same through counters
        want['unknown'] = want.pop('')
        got = collections.Counter()
        for r in json.loads(run('replay', path, '--by', 'distance', '--json').stdout)['series']:
            got[r['labels']['distance']] += r['samples']
        self.assertEqual(got, want)
        shown = run('top', '-i', path, '--once', '--by', 'distance').stdout
        self.assertEqual(set(re.findall(r'^(\d+|unknown) .*%', shown, re.M)), set(want))
        # files of before have none
        path = self.make('known', 'old')
        self.assertNotIn('"distance"', run('dump', '--events', '--json', path).stdout.splitlines()[0])
        self.assertIn('[unknown]', run('report', '--by', 'distance', path).stdout)
        rows = csv.DictReader(io.StringIO(run('report', '--by', 'distance', '--csv', path).stdout))
        self.assertEqual({r['distance'] for r in rows}, {''})
        p = run('replay', '-e', 'ibs_fetch//', '--by', 'distance', path)
        self.assertEqual(p.returncode, 2)
        self.assertIn('--by distance: samples of ibs_fetch do not have that', p.stderr)

    def test_page_tells_groups_apart(self):
        """By all keys that serve counts, but for those of the workload, and `distance`, which the nodes have."""
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
        with open(os.path.join(top, 'src/core/rows/rows.h')) as f:
            keys = re.findall(r'X\([A-Z_]+, "(\w+)", IBS_BY_(?!CGROUP|SLAB)\w+, ', f.read())
        with open(os.path.join(top, 'src/face/web/page/page.js')) as f:
            shown = re.findall(r"'(\w+)'", re.search(r'^const OTHERS = (.*);', f.read(), re.M)[1])
        self.assertEqual(shown, keys)

    def test_ledger(self):
        """What share of the samples has nodes, and why the rest has none."""
        for args, ranges in (('numa', '3000', '2'), True), (('known', 'bare'), False), (('known', 'virtual'), True):
            path = self.make(*args)
            want = dict.fromkeys(('known', 'no_address', 'no_range', 'no_cpu'), 0)
            for r in csv.DictReader(io.StringIO(run('dump', '--csv', path).stdout)):
                if '1' in (r['ld_op'], r['st_op']):
                    known = ranges and memory_node(r['dc_phys_ad'])
                    want['known' if known else 'no_range' if r['dc_phys_ad'] else 'no_address'] += 1
            j = json.loads(self.numa('--json', path).stdout)
            self.assertEqual(j['nodes'], want, args)
            line = ' + '.join(f'{n:,} {k}' for k, n in want.items() if n or k == 'known')
            self.assertIn(f'nodes     {sum(want.values()):,} samples = {line}\n', self.numa(path).stdout)
            self.assertIsNone(json.loads(run('report', '--json', path).stdout)['nodes'])

    def test_text(self):
        path = self.make('numa', '5000', '1')
        for width, there in ((60, 'MISS CYCLES'), (80, 'REMOTE PRICE')):
            text = run('numa', path, env=dict(os.environ, COLUMNS=str(width))).stdout
            self.assertIn('SIMULATED', text)
            table = text[text.index('\nNODE'):].split('\n\n')[0]
            self.assertIn(there, table)
            self.assertIn('[unknown]', table)
            self.assertLessEqual(max(map(len, table.splitlines())), width)

    def test_no_ranges(self):
        path = self.make('known', 'bare')
        p = self.numa(path, '--csv')
        self.assertIn('has no memory ranges of the nodes', p.stderr)
        self.assertEqual({r['mem_node'] for r in csv.DictReader(io.StringIO(p.stdout))}, {''})
        self.assertNotIn('"memory"', run('dump', '--events', '--json', '--limit', '1', path).stdout)
        self.compare(path, ranges=False)

    def test_ranges_of_a_recording(self):
        path = self.make('numa', '10', '1')
        head = json.loads(run('dump', '--events', '--json', path).stdout.splitlines()[0])
        self.assertEqual(head['memory'], [{'node': n, 'start': s, 'end': e} for s, e, n in RANGES])
        self.assertIn('# memory: 0x100000000 to 0x140000000 is of node 0\n', run('dump', path).stdout)

    def test_ranges_of_perf(self):
        for name in ('5.10-zen2-graph', '6.12-zen4-mem', '6.12-zen4-pipe', '7.2-zen5-op'):
            with self.subTest(name):
                path = os.path.join(self.dir.name, name)
                with open(path, 'wb') as f:
                    subprocess.run(['zstd', '-dqc', os.path.join(DATA, name + '.data.zst')], stdout=f, check=True)
                head = json.loads(run('dump', '--events', '--json', path).stdout.splitlines()[0])
                self.assertEqual(head['memory'], [{'node': 0, 'start': 0, 'end': 16 << 27}])
                piped = 'pipe' in name  # perf leaves the topology of CPUs out there
                if not piped:
                    self.assertEqual((head['node'], len(head['ccx'])), ([0, 0], 2))
                rows = list(csv.DictReader(io.StringIO(self.numa(path, '--csv').stdout)))
                self.assertEqual({r['node'] for r in rows}, {'' if piped else '0'})
                self.assertIn('0', {r['mem_node'] for r in rows})

    @unittest.skipUnless(OK, f'no BPF here: {WHY}')
    def test_live(self):
        for args in (['--live', '--json', '0.5', '1'], ['--json', '-a', '--', 'sleep', '0.5']):
            p = self.numa('--source', 'sim', '--seed', '3', *args)
            j = json.loads(p.stdout)
            self.assertEqual({r['labels']['node'] for r in j['series']}, {'0'})
            self.assertGreater(sum(r['samples'] for r in j['series']), 0)
            self.assertEqual(list(j['ledger']['filtered']), ['op'])     # neither loads nor stores
            self.assertEqual(set(j['series'][0]['labels']), {'node', 'mem_node'})
            self.assertIn('remote_price', j['series'][0])
        text = self.numa('--source', 'sim', '--live', '--by', 'src', '0.3', '1').stdout
        self.assertIn('SIMULATED', text)
        self.assertRegex(text, r'\nSOURCE +NODE +MEM_NODE +MISS CYCLES/s +REMOTE PRICE/s +MEAN +SAMPLES +SHARE\n')
        # distances are those of this machine
        with open('/sys/devices/system/node/node0/distance') as f:
            near = f.read().split()[0]
        j = json.loads(self.numa('--source', 'sim', '--live', '--by', 'distance', '--json', '0.3', '1').stdout)
        self.assertEqual({r['labels']['distance'] for r in j['series'] if r['labels']['mem_node'] == '0'}, {near})
        # without nodes the source says what is remote, and the rows add up to the price
        for seconds in '0.5', '2', '8':     # few samples are from there
            j = json.loads(run('hist', '--source', 'sim', '--by', 'src', '--json', seconds, '1').stdout)
            rows = {r['labels']['src']: r for r in j['series']}
            if 'remote-dram' in rows:
                break
        near, far = rows['dram'], rows['remote-dram']
        want = far['miss_cycles'] - far['valid'] * j['period'] * near['sum'] / near['valid']
        self.assertAlmostEqual(far['remote_price'], want, delta=want * 1e-7)
        self.assertEqual(near['remote_price'], 0)

    def test_usage(self):
        path = self.make('numa', '10', '1')
        for args, text in ((['--html', 'x'], "unknown option"), (['--by', 'nodes'], "unknown key 'nodes'"),
                           (['--sort', 'price'], 'remote_price')):
            p = run('numa', path, *args)
            self.assertEqual((p.returncode, p.stdout), (2, ''), args)
            self.assertIn(text, p.stderr)


if __name__ == '__main__':
    unittest.main()
