# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --by slab,type,field`: objects of the kernel, against the layout of structs that a compiler wrote."""
import json
import os
import subprocess
import tempfile
import unittest

from test_types import MAKE, run

SOURCE = """
typedef unsigned long size_t;
struct lockref { union { unsigned long both; struct { int lock; int count; }; }; };
struct dentry { unsigned int flags; struct lockref ref; struct { void *next, *prev; } list[2]; char name[24]; unsigned a:3, b:7; };
struct file { void *private; struct dentry *dentry; };
struct twice { int x; };
struct mm_struct { long pgd; };
struct dentry a; struct file b; struct twice c; struct mm_struct d;
"""
# of a struct dentry: offset, log2 of bytes accessed and 1: field
FIELDS = {(0, 3): 'flags', (4, 1): '[padding]', (8, 4): 'ref.both|[unnamed]', (8, 3): 'ref.lock', (12, 3): 'ref.count', (8, 2): 'ref.lock',
          (8, 0): 'ref.both|[unnamed]', (16, 4): 'list[].next', (40, 4): 'list[].prev', (50, 1): 'name[]', (72, 3): 'a|b', (73, 1): 'b'}
BASE, CACHE = 0xffff888100000000, 0xffff888000001000
KNOWN, LEAST = 1, 2     # bits of the order


class Slabs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.file, self.btf, source = (os.path.join(self.dir.name, n) for n in ('a.ibs', 'types.o', 'types.c'))
        with open(source, 'w', encoding='ascii') as f:
            f.write(SOURCE)
        subprocess.run(['clang', '-target', 'bpf', '-g', '-O1', '-c', '-o', self.btf, source], check=True)

    def rows(self, lines, *args):
        subprocess.run([MAKE, self.file, '/bin/true'], check=True, text=True, input=''.join(line + '\n' for line in lines))
        p = run('report', self.file, '--json', '--btf', self.btf, *(args or ('--by', 'slab,type,field')))
        self.assertEqual(p.returncode, 0, p.stderr)
        r = json.loads(p.stdout)
        self.warnings = p.stderr
        return {tuple(row['labels'].values()): row['samples'] for row in r['rows']}, r

    @staticmethod
    def cache(name, size, *, object_size=None, pad=0, order=0, least=0, merged=0, nr=0):
        return f'cache {CACHE + nr * 0x100:x} {object_size or size} {size} {pad} {order} {least} {merged} {name}'

    @staticmethod
    def load(offset, order=KNOWN, nr=0, n=1, width=4):
        return f'ffffffff81000000 {BASE + offset:x} load {n} {CACHE + nr * 0x100 + order:x} {width}'

    def test_fields(self):
        """In each object of a slab, behind what finds overruns, in slabs of any size."""
        for pad, order in ((0, 0), (8, 0), (64, 1)):
            size = 128
            for at, want in ((16, 'list[].next'), (0, 'flags'), (50, 'name[]')):
                lines = [self.cache('dentry', size, object_size=80, pad=pad, order=order)]
                lines += [self.load(pad + k * size + at) for k in range(4096 * (1 << order) // size - 1)]
                rows, r = self.rows(lines)
                self.assertEqual(rows, {('dentry', 'struct dentry', want): len(lines) - 1}, (pad, order))
                self.assertEqual(r['types']['slab'], len(lines) - 1)
        for (at, width), want in FIELDS.items():
            rows, _ = self.rows([self.cache('dentry', 128, object_size=80), self.load(at, width=width)])
            self.assertEqual(rows, {('dentry', 'struct dentry', want): 1}, (at, width))
        rows, _ = self.rows([self.cache('dentry', 128, object_size=80), self.load(100)])
        self.assertEqual(rows, {('dentry', '[slab dentry]', None): 1}, 'between objects')

    def test_order(self):
        """The place of an object depends on the size of its slab; where that is unknown it is not guessed."""
        at = 4096 + 16     # the second page of a slab of two: 4112 % 96 = 80; of one: 16
        for order, want in ((LEAST, ('dentry', 'struct dentry', 'list[].next')), (KNOWN, ('dentry', '[slab dentry]', None)),
                            (0, ('dentry', '[slab dentry]', None))):
            rows, _ = self.rows([self.cache('dentry', 96, object_size=80, order=1), self.load(at, order)])
            self.assertEqual(rows, {want: 1}, order)
        rows, _ = self.rows([self.cache('dentry', 96, object_size=80, order=1), self.load(16, 0)])
        self.assertEqual(rows, {('dentry', 'struct dentry', 'list[].next'): 1}, 'the same in both')

    def test_never_a_wrong_name(self):
        lines = [self.cache('kmalloc-64', 64), self.load(0),
                 self.cache('dentry', 80, merged=1, nr=1), self.load(0, nr=1, n=2),        # of others, too
                 self.cache('file', 24, nr=2), self.load(0, nr=2, n=3),                    # not the size of the struct
                 self.cache('filp', 16, nr=3), self.load(8, nr=3, n=4),                    # a known alias
                 self.cache('mm_struct', 64, nr=4), self.load(40, nr=4, n=5),              # longer than its struct
                 self.cache('one', 8, nr=5), self.cache('other', 8, nr=5), self.load(0, nr=5, n=6),  # one after the other
                 self.load(0, nr=6, n=7),                                                  # in no list
                 f'ffffffff81000000 {BASE:x} load 8', '1000 1000 load 9']
        rows, r = self.rows(lines)
        self.assertEqual(rows, {
            ('kmalloc-64', '[slab kmalloc-64]', None): 1, ('dentry', '[slab dentry]', None): 2,
            ('file', '[slab file]', None): 3, ('filp', 'struct file', 'dentry'): 4,
            ('mm_struct', 'struct mm_struct', '[behind the struct]'): 5, ('[gone]', '[kernel]', None): 13,
            ('[no slab]', '[kernel]', None): 8, ('[user]', '[no_debug_info]', None): 9})
        self.assertEqual({k: n for k, n in r['types'].items() if n},
                         {'slab': 9, 'slab_unknown': 6, 'kernel': 21, 'no_debug_info': 9})

    def test_layout(self):
        lines = [self.cache('dentry', 128, object_size=80), self.load(16, n=3)]
        _, r = self.rows(lines, '--type', 'struct dentry')
        rows = {(w['labels']['field'], w['labels']['field_offset'], w['labels']['field_size']): w['samples'] for w in r['rows']}
        self.assertEqual(rows.pop(('list[].next', '16', '8')), 3)
        for field in (('flags', '0', '4'), ('ref.both', '8', '8'), ('ref.count', '12', '4'), ('name[]', '48', '1')):
            self.assertEqual(rows.pop(field), 0)

    def test_without_types(self):
        """Of another kernel nothing but the names of caches is believed, and the warning says what to do."""
        lines = [self.cache('dentry', 128, object_size=80), self.load(16)]
        self.rows(lines)
        p = run('report', self.file, '--by', 'slab,type')
        self.assertIn('--btf FILE', p.stderr)
        self.assertIn('[slab dentry]', p.stdout)
        for bad in ('/nonexistent', '/etc/passwd'):
            p = run('report', self.file, '--by', 'slab,type', '--btf', bad)
            self.assertIn(f'{bad}: cannot read type information', p.stderr)
        p = run('report', self.file, '--by', 'slab')
        self.assertEqual(p.stderr, '')

    def test_counters(self):
        """What counts by the same decisions as hist has the same rows; where a key cannot be counted, that is said."""
        rows, _ = self.rows([self.cache('dentry', 128), self.cache('filp', 64, nr=1), self.load(16, n=3), self.load(32, nr=1),
                             self.load(0, nr=7, n=2), f'ffffffff81000000 {BASE:x} load 4 0 4', '1000 2000 load 5 0 4'], '--by', 'slab')
        self.assertEqual(rows, {('dentry',): 3, ('filp',): 1, ('[gone]',): 2, ('[no slab]',): 4, ('[user]',): 5})
        p = run('replay', self.file, '--by', 'slab', '--json')
        self.assertEqual({(r['labels']['slab'],): r['samples'] for r in json.loads(p.stdout)['series']}, rows, p.stderr)
        text = run('top', '-i', self.file, '--once', '--by', 'slab').stdout
        for name, in rows:
            self.assertIn('\n' + name, text)
        for args, why in ((['replay', self.file, '--by', 'slab,comm'], '--by slab,comm'),
                          (['serve', '--source', 'sim', '--by', 'slab'], 'must not have kernel addresses'),
                          (['hist', '-e', 'ibs_fetch//', '--by', 'slab'], '--by slab: samples of ibs_fetch')):
            p = run(*args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(why, p.stderr)
        self.rows(['ffffffff81000000 2000 load 1 0 4'], '--by', 'op')
        p = run('replay', self.file, '--by', 'slab')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('has no slab caches', p.stderr)


if __name__ == '__main__':
    unittest.main()
