# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --by allocation`: samples of a recording whose allocations are known (tests/unit/make_heap.c)."""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_heap')
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'unit', 'make_heap.c')
# samples by allocation, and those of them in the child
WANT = {'make_table': 11, 'make_index': 25, 'map_pages': 10, '[heap, not noted]': 12, '[stack]': 9, '[global data]': 8, '[unmapped]': 11}
OF_CHILD = 5


def lines_of(function):
    """Lines of the source that a function has."""
    with open(SOURCE, encoding='utf-8') as f:
        lines = f.read().split('\n')
    first = next(i for i, line in enumerate(lines) if re.search(rf'\b{function}\(__u64', line))
    return range(first + 1, lines.index('}', first) + 2)


class Allocations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'a.ibs')
        subprocess.run([MAKE, cls.file], check=True)

    def report(self, *args):
        p = run('report', '--json', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr, '')
        r = json.loads(p.stdout)
        self.assertEqual(sum(row['samples'] for row in r['rows']), r['total']['samples'])
        return r

    def test_rows(self):
        rows = {}
        for row in self.report(self.file, '--by', 'allocation')['rows']:
            name, place = row['labels']['allocation'], ''
            if name[0] != '[':
                name, place = name.split()
                file, line = place.split(':')
                self.assertEqual(file, 'make_heap.c')
                self.assertIn(int(line), lines_of(name))
            rows[name] = row['samples']
        self.assertEqual(rows, WANT)

    def test_keys(self):
        """With other keys: the child has what it inherited; threads, nodes, sources and functions."""
        rows = self.report(self.file, '--by', 'allocation,pid')['rows']
        of_index = [(int(r['labels']['pid']), r['samples']) for r in rows if r['labels']['allocation'].startswith('make_index')]
        self.assertEqual(sorted(n for _, n in of_index), [OF_CHILD, WANT['make_index'] - OF_CHILD])
        self.assertEqual(max(of_index)[1], OF_CHILD)
        for key in ('src', 'mem_node', 'tid', 'thread_role', 'symbol', 'page_size'):
            rows = self.report(self.file, '--by', f'allocation,{key}')['rows']
            found = {}
            for r in rows:
                name = r['labels']['allocation'].split(' make_heap')[0]
                found[name] = found.get(name, 0) + r['samples']
            self.assertEqual(found, WANT, key)

    def test_formats(self):
        text = run('report', self.file, '--by', 'allocation').stdout
        self.assertRegex(text, r'(?m)^make_table make_heap.c:\d+ +11 ')
        p = run('report', self.file, '--by', 'allocation', '--csv')
        rows = {r['allocation'].split(' make_heap')[0]: int(r['samples']) for r in csv.DictReader(p.stdout.splitlines())}
        self.assertEqual(rows, WANT)
        profile = os.path.join(self.dir.name, 'p.pb.gz')
        self.assertEqual(run('report', self.file, '--by', 'allocation', '--pprof', profile).stderr, '')
        with subprocess.Popen(['gzip', '-dc', profile], stdout=subprocess.PIPE) as p:
            self.assertIn(b'make_table make_heap.c:', p.stdout.read())

    def test_several(self):
        other = os.path.join(self.dir.name, 'b.ibs')
        subprocess.run([MAKE, other], check=True)
        rows = self.report(self.file, other, '--by', 'allocation')['rows']
        self.assertEqual({r['labels']['allocation'].split(' make_heap')[0]: r['samples'] for r in rows}, {k: 2 * n for k, n in WANT.items()})

    def test_folded(self):
        """The chains that allocated the data, with as many samples as the table has."""
        p = run('report', self.file, '--folded', 'samples', '--by', 'allocation')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        got = {chain.removeprefix('SIMULATED;make_heap;'): int(n) for chain, n in (line.rsplit(' ', 1) for line in p.stdout.splitlines())}
        # the allocator is innermost
        self.assertEqual(got, {k + ';xmalloc_of' * k.startswith('make_'): n for k, n in WANT.items()})
        self.assertIn('no call chains', run('report', self.file, '--folded', 'samples').stderr)

    def test_diff(self):
        file = os.path.join(self.dir.name, 'much.ibs')
        subprocess.run([MAKE, file, 'much'], check=True)
        p = run('diff', file, file, '--by', 'allocation')
        self.assertEqual((p.returncode, p.stderr), (0, ''))

    def test_lines(self):
        """c2c names the allocation of a hot line, and where in it the line is."""
        file = os.path.join(self.dir.name, 'share.ibs')
        subprocess.run([MAKE, file, 'share'], check=True)
        text = run('c2c', file).stdout
        self.assertRegex(text, r'^1 falsely shared line: memory from make_table make_heap\.c:\d+, bytes 0 and 8, ')
        line = json.loads(run('c2c', file, '--json').stdout)['lines'][0]
        site = line['variables'][0]['name']
        self.assertRegex(site, r'^make_table make_heap\.c:\d+$')
        self.assertEqual([s['variables'][0]['name'] for s in line['slots'][:2]], [f'{site} + 64', f'{site} + 72'])
        detail = run('c2c', file, '--line', line['line']).stdout
        self.assertRegex(detail, rf'(?m)^in        4,160 bytes from {re.escape(site)} \+ 0x40, allocated by thread \d+$')

    def test_nodes(self):
        """numa names the allocation on the wrong node, and the thread that touched it first; nothing without nodes."""
        file = os.path.join(self.dir.name, 'share.ibs')
        subprocess.run([MAKE, file, 'share'], check=True)
        p = run('numa', file)
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        below = p.stdout.split('allocations used most from another node than the one of their memory:\n')[1]
        self.assertRegex(below, r'^  make_table make_heap\.c:\d+: 200 of 301 accesses from node 1, 301 to memory of node 0;\n'
                                r'    first seen touched by thread \d+ \(make_heap\) on node 0\n$')
        self.assertNotIn('allocations used', run('numa', self.file).stdout)
        rows = {(r['labels']['node'], r['labels']['mem_node']): r['samples']
                for r in json.loads(run('numa', file, '--by', 'allocation', '--json').stdout)['rows']}
        self.assertEqual(rows, {('0', '0'): 101, ('1', '0'): 200})

    def test_none(self):
        bare = os.path.join(self.dir.name, 'none.ibs')
        subprocess.run([MAKE, bare, 'none'], check=True)
        for args in (('report', bare, '--by', 'allocation'), ('diff', bare, bare, '--by', 'allocation'),
                     ('report', bare, '--by', 'allocation', '--pprof', '-'), ('report', bare, bare, '--by', 'src,allocation')):
            p = run(*args)
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(f'--by allocation: {bare} has no allocations; record with --allocs', p.stderr)


if __name__ == '__main__':
    unittest.main()
