# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`export` against `dump` of what it was made of, and what stock perf says of it."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'system'), os.path.join(HERE, '..', 'vm')]
import dumps  # noqa: E402
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SAMPLES = 2000
# What perf.data has no place for; what depends on registers that a recording does not have.
NO_PLACE = ('container', 'pod', 'namespace', 'ccx', 'node', 'socket', 'caps', 'format', 'selection', 'alloc_bytes', 'alloc_probes')
LOOP = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)

    def make(self, *args):
        path = os.path.join(self.dir.name, '-'.join(('make', *args)) + '.ibs')
        subprocess.run([MAKE, path, str(SAMPLES), *args], check=True)
        return path

    def export(self, file, *args):
        p = run('export', '--perf-data', file + '.data', file, *args)
        self.assertEqual((p.returncode, p.stdout), (0, ''), p.stderr)
        return file + '.data'

    def dump(self, file, *args):
        p = run('dump', '--json', '--events', file, *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        out = []
        for line in p.stdout.splitlines():
            event = json.loads(line)
            if event['type'] in ('rank', 'region', 'slab', 'alloc', 'free', 'slice'):    # perf.data has no place for them
                continue
            # -1 is perf's number of a task that is gone
            task = ('pid', 'tid', 'comm') if event.get('tid', 0xffffffff) == 0xffffffff else ()
            out.append({k: v for k, v in event.items() if k not in (*NO_PLACE, *task)})
        return out

    def same(self, file, other):
        for a, b in zip(self.dump(file), self.dump(other), strict=True):
            self.assertEqual(a, b)

    def test_round_trip(self):
        for kind in ([], ['stacks'], ['self'], ['random']):
            with self.subTest(kind=kind):
                file = self.make(*kind)
                self.same(file, self.export(file))

    def test_selection(self):
        file = self.make()
        p = run('dump', '--json', file, '--src', 'dram')
        q = run('dump', '--json', self.export(file, '--src', 'dram'))
        self.assertEqual(len(p.stdout.splitlines()), len(q.stdout.splitlines()))
        self.assertNotIn('"src":"l3"', q.stdout)

    def test_pipe(self):
        file = self.make('stacks')
        p = subprocess.run(f'{ibscope.IBSCOPE} export -o - {file} | {ibscope.IBSCOPE} dump --json --events - > '
                           f'{file}.json', shell=True, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        q = run('dump', '--json', '--events', self.export(file))
        with open(file + '.json', encoding='utf-8', errors='surrogateescape') as f:
            self.assertEqual(f.read(), q.stdout)
        p = subprocess.run(f'{ibscope.IBSCOPE} export -o - {file} > {file}.out', shell=True)
        with open(file + '.out', 'rb') as a, open(self.export(file), 'rb') as b:
            self.assertEqual(a.read(), b.read())

    def test_refusals(self):
        file = self.make()
        data = self.export(file)
        for args, status, says in (([file], 2, '--perf-data'), (['-o', 'x', '--perf-data', 'x', file], 2, 'give one'),
                                   (['-o', data + '2', data], 1, 'already a perf.data file'),
                                   (['-o', '/dev/full', file], 1, 'No space left'),
                                   (['-o', '/no/dir/x', file], 1, '/no/dir/x'),
                                   (['-o', data + '2', '/dev/null'], 1, 'empty')):
            with self.subTest(args=args):
                p = run('export', *args)
                self.assertEqual((p.returncode, p.stdout), (status, ''), p.stderr)
                self.assertIn(says, p.stderr)
        p = subprocess.run(['script', '-qec', f'{ibscope.IBSCOPE} export -o - {file}', '/dev/null'],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(p.returncode, 1, p.stdout)
        self.assertIn('is a terminal', p.stdout)

    def test_cut(self):
        path = os.path.join(self.dir.name, 'cut.ibs')
        subprocess.run([MAKE, path, '2000', 'cut'], check=True)
        p = run('export', '-o', path + '.data', path)
        self.assertEqual(p.returncode, 1)
        self.assertIn('incomplete', p.stderr)
        self.assertIn('selected 2,000', run('report', '-v', path + '.data').stdout)

    @unittest.skipUnless(shutil.which(dumps.best_perf()[0]), 'no perf')
    def test_perf(self):
        file = self.make('stacks')
        data = self.export(file)
        perf = dumps.best_perf()
        samples = [s for s in self.dump(file) if s['type'] == 'ibs_op']
        p = subprocess.run([*perf, 'script', '-i', data, '-F', 'tid,cpu,time,addr,weight,phys_addr', '--ns'],
                           capture_output=True, text=True, errors='replace')
        self.assertEqual(p.returncode, 0, p.stderr)
        got = []
        for line in p.stdout.splitlines():
            words = line.split()
            if words:
                got.append((int(words[0]), int(words[1][1:4]), words[2], int(words[3], 16), int(words[4])))
        want = [(s['tid'], s['cpu'], f'{s["time_ns"] // 10**9}.{s["time_ns"] % 10**9:09d}:',
                 int(s.get('dc_lin_ad', '0'), 16), s.get('dc_miss_lat', 0)) for s in samples]
        self.assertEqual(len(got), len(want))
        self.assertEqual(sorted(got), sorted(want))
        p = subprocess.run([*perf, 'report', '-D', '-i', data], capture_output=True, text=True, errors='replace')
        self.assertEqual(p.stdout.count('IbsOpRip:'), SAMPLES)
        p = subprocess.run([*perf, 'mem', 'report', '--stdio', '-s', 'mem', '-i', data], capture_output=True, text=True)
        dram = sum(s['src'] == 'dram' for s in samples)
        self.assertRegex(p.stdout, rf' {dram} +(Local )?RAM')
        self.assertIn('SIMULATED:', subprocess.run([*perf, 'report', '--header-only', '-i', data],
                                                   capture_output=True, text=True).stdout)

    @unittest.skipUnless(shutil.which(dumps.best_perf()[0]), 'no perf')
    @unittest.skipUnless(*ibscope.can_bpf())
    def test_all_registers(self):
        """Nothing is missing of `record --raw`, and perf decodes every register as we do."""
        file = os.path.join(self.dir.name, 'raw.ibs')
        p = run('record', '--source', 'sim', '--raw', '-c', '50000', '-o', file, '--', 'sh', '-c', LOOP)
        self.assertEqual(p.returncode, 0, p.stderr)
        data = self.export(file)
        self.assertEqual(run('dump', file).stdout.split('ibs_op sample')[1:],
                         run('dump', data).stdout.split('ibs_op sample')[1:])
        self.assertGreater(dumps.compare(ibscope.IBSCOPE, data, dumps.best_perf())[0], 100)


class Hwloc(unittest.TestCase):
    """The topology of make_recording's machine, as hwloc has it."""
    TREE = [('Package', 0, 0), ('NUMANode', 0, 0), ('L3Cache', 0, 0), ('PU', 0, 0), ('PU', 0, 1), ('L3Cache', 0, 1),
            ('PU', 0, 2), ('Package', 1, 1), ('NUMANode', 1, 1), ('L3Cache', 1, 2), ('PU', 1, 3)]

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def export(self, *make):
        subprocess.run([MAKE, self.path('a'), str(SAMPLES), *make], check=True)
        p = run('export', '--hwloc', self.path('a.xml'), self.path('a'))
        self.assertEqual((p.returncode, p.stdout), (0, ''), p.stderr)
        return xml.etree.ElementTree.parse(self.path('a.xml')).getroot()

    def objects(self, root):
        return [o for o in root.iter('object') if o.get('type') not in ('Machine', 'Group')]

    def test_topology(self):
        root = self.export()
        of = {int(o.get('os_index')): {i.get('name'): int(i.get('value')) for i in o.iter('info')}
              for o in root.iter('object') if o.get('type') == 'PU'}
        p = run('report', '--json', '--by', 'cpu', self.path('a'))
        self.assertEqual(of, {int(r['labels']['cpu']): {'ibscope.samples': r['samples'],
                                                        'ibscope.miss_cycles': r['miss_cycles']}
                              for r in json.loads(p.stdout)['rows']})
        node = {'0x00000001': 0, '0x00000002': 1}
        self.assertEqual(sorted((o.get('type'), node[o.get('nodeset')], int(o.get('os_index')))
                                for o in self.objects(root)), sorted(self.TREE))
        for parent in root.iter('object'):
            for o in parent.findall('object'):
                self.assertEqual(int(o.get('cpuset'), 16) & ~int(parent.get('cpuset'), 16), 0)
        self.assertIn(('ibscope.source', 'SIMULATED'), [(i.get('name'), i.get('value')) for i in root.iter('info')])

    def test_lstopo_reads_it(self):
        if not shutil.which('lstopo-no-graphics'):
            self.skipTest('no lstopo: apt-get install hwloc-nox')
        root = self.export()
        p = subprocess.run(['lstopo-no-graphics', '-i', self.path('a.xml'), '--of', 'xml', '-'], capture_output=True,
                           text=True, check=True)
        self.assertEqual(p.stderr, '')
        again = xml.etree.ElementTree.fromstring(p.stdout)
        self.assertEqual([(o.get('type'), o.get('os_index'), o.get('cpuset')) for o in self.objects(root)],
                         [(o.get('type'), o.get('os_index'), o.get('cpuset')) for o in self.objects(again)])
        self.assertEqual([i.get('value') for i in root.iter('info') if i.get('name') == 'ibscope.samples'],
                         [i.get('value') for i in again.iter('info') if i.get('name') == 'ibscope.samples'])

    def test_hostile_names(self):
        self.assertNotIn('\033', json.dumps([i.get('value') for i in self.export('markup').iter('info')]))

    def test_nodes_of_a_job(self):
        for node in 0, 1:
            subprocess.run([MAKE, self.path(f'n{node}'), str(SAMPLES), f'node:{node}:4:0:0'], check=True)
        run('merge', '-o', self.path('all'), self.path('n0'), self.path('n1'))
        p = run('export', '--hwloc', '-', self.path('all') + '#2')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('<info name="HostName" value="node1"/>', p.stdout)

    def test_refusals(self):
        subprocess.run([MAKE, self.path('bare'), '10', 'bare'], check=True)
        p = run('export', '--hwloc', self.path('x'), self.path('bare'))
        self.assertEqual(p.returncode, 1)
        self.assertIn('bare has no valid topology', p.stderr)
        p = run('export', '--hwloc', self.path('x'), '--perf-data', self.path('y'), self.path('bare'))
        self.assertEqual(p.returncode, 2)
        self.assertIn('give one of -o, --perf-data and --hwloc', p.stderr)
        self.assertFalse(os.path.exists(self.path('x')))


if __name__ == '__main__':
    unittest.main()
