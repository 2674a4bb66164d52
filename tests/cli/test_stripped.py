# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of functions of stripped programs: by MiniDebugInfo, and by the table that Go's runtime has."""
import json
import lzma
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_types')
CPU_S = 8 if 'san' in os.path.basename(ibscope.SAN) else 2

SOURCE = r'''
static __attribute__((noinline)) int hidden(int x) { asm volatile(""); return x * 3; }
__attribute__((noinline)) int shown(int x) { asm volatile(""); return hidden(x) + 1; }
int main(int argc, char **argv) { (void)argv; return shown(argc); }
'''

GO = r'''
package main

CGO
type pair[T any] struct{ a, b T }

//go:noinline
func (p *pair[T]) swap() { p.a, p.b = p.b, p.a }

type stack struct{ n int }

//go:noinline
func (s *stack) push(n int) { s.n += n }

func main() {
	p, s := &pair[string]{"a", "b"}, &stack{}
	p.swap()
	s.push(len(p.a))
	func() { defer recover(); s.push(2) }()
	println(s.n, p.a, EXTRA)
}
'''
CGO = '''// static int triple(int n) { return 3 * n; }
import "C"
'''


def functions(path):
    """Addresses of all functions by name."""
    out = subprocess.run(['nm', path], check=True, capture_output=True, text=True).stdout
    return {f[2]: int(f[0], 16) for f in map(str.split, out.splitlines()) if len(f) == 3 and f[1] in 'tT'}


class Stripped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        d = tempfile.TemporaryDirectory()
        cls.addClassCleanup(d.cleanup)
        cls.dir = d.name

    def path(self, name):
        return os.path.join(self.dir, name)

    def report(self, program, lines, *args):
        """Samples by name, the ledger of symbols, and warnings."""
        file = self.path('recording.ibs')
        subprocess.run([MAKE, file, program], check=True, text=True, input=''.join(f'{at:x} 0 none {n}\n' for at, n in lines))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = run('report', file, '--json', '--by', 'symbol', *args)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, CPU_S)
        j = json.loads(p.stdout)
        return ({r['labels']['symbol']: r['samples'] for r in j['rows']}, {k: n for k, n in j['symbols'].items() if n},
                p.stderr)


@unittest.skipUnless(shutil.which('gcc') and shutil.which('objcopy'), 'no gcc or objcopy')
class MiniDebugInfo(Stripped):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.full = os.path.join(cls.dir, 'full')
        with open(cls.full + '.c', 'w', encoding='ascii') as f:
            f.write(SOURCE)
        # shown() is in .dynsym, too
        subprocess.run(['gcc', '-O1', '-rdynamic', '-o', cls.full, cls.full + '.c'], check=True)
        cls.at = functions(cls.full)
        # as Fedora makes it: a file of symbols that .dynsym has not
        with open(cls.full + '.keep', 'w', encoding='ascii') as f:
            f.write('hidden\n')
        subprocess.run(['objcopy', '-S', '--keep-symbols', cls.full + '.keep', cls.full, cls.full + '.mini'], check=True)
        with open(cls.full + '.mini', 'rb') as f:
            cls.mini = f.read()

    def make(self, name, section):
        """The stripped program with such a section, or without."""
        path = self.path(name)
        subprocess.run(['strip', '-o', path, self.full], check=True)
        if section is not None:
            with open(path + '.section', 'wb') as f:
                f.write(section)
            subprocess.run(['objcopy', '--add-section', f'.gnu_debugdata={path}.section', path], check=True)
        return path

    def names(self, name, section):
        return self.report(self.make(name, section), [(self.at['hidden'] + 1, 5), (self.at['shown'] + 1, 3)])

    def test_names(self):
        self.assertEqual(self.names('good', lzma.compress(self.mini)),
                         ({'hidden': 5, 'shown': 3}, {'named': 8}, ''))
        program = self.make('bare', None)
        self.assertEqual(self.report(program, [(self.at['hidden'] + 1, 5), (self.at['shown'] + 1, 3)])[:2],
                         ({f'[{program}]': 5, 'shown': 3}, {'named': 3, 'no_symbol': 5}))

    def test_annotate(self):
        program = self.make('annotated', lzma.compress(self.mini))
        self.report(program, [(self.at['hidden'], 5)])
        p = run('annotate', 'hidden', '-i', self.path('recording.ibs'), '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        j = json.loads(p.stdout)
        self.assertEqual((j['function'], j['attribution']['function']), ('hidden', 5))

    def test_damaged(self):
        """As if there were no section."""
        good = lzma.compress(self.mini)
        for i, section in enumerate((b'', good[:-40], good[:20], b'\xff' * 5000, good[:200] + b'\0' * 50 + good[250:],
                                     lzma.compress(self.mini, lzma.FORMAT_ALONE)[:-9], lzma.compress(b'\x7fELF'),
                                     lzma.compress(self.mini[:64] + b'\xff' * 4096), lzma.compress(b''))):
            with self.subTest(i):
                names, why, _ = self.names(f'damaged{i}', section)
                self.assertEqual((names.get('shown'), why['named']), (3, 3))

    def test_bombs(self):
        zeros = lzma.compress(bytes((64 << 20) + 1), preset=0)
        # the first block says that it needs a dictionary of 4 GiB
        head = bytearray(lzma.compress(self.mini)[12:])
        size = (head[0] + 1) * 4
        at = head.index(b'\x21\x01') + 2
        head[at] = 40
        head[size - 4:size] = struct.pack('<I', zlib.crc32(head[:size - 4]))
        for name, section, why in (('zeros', zeros, 'its .gnu_debugdata expands to more than 64 MiB'),
                                   ('dictionary', lzma.compress(self.mini)[:12] + bytes(head),
                                    'expanding its .gnu_debugdata takes more than 128 MiB')):
            with self.subTest(name):
                self.assertLess(len(section), 1 << 20)
                names, ledger, warning = self.names(name, section)
                self.assertEqual((list(names.values()), ledger), ([8], {'given_up': 8}))
                self.assertIn(f'no symbols for {self.path(name)}: {why}', warning)


@unittest.skipUnless(shutil.which('go'), 'no go')
class Go(Stripped):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.env = dict(os.environ, HOME=cls.dir, GOCACHE=os.path.join(cls.dir, 'cache'), GOFLAGS='-mod=mod', GO111MODULE='off')

    def build(self, name, *args, cgo=False):
        source, path = self.path(f'program{int(cgo)}.go'), self.path(name)
        with open(source, 'w', encoding='ascii') as f:
            f.write(GO.replace('CGO', CGO if cgo else '').replace('EXTRA', 'C.triple(3)' if cgo else '3'))
        subprocess.run(['go', 'build', *args, '-o', path, source], check=True, cwd=self.dir,
                       env=dict(self.env, CGO_ENABLED=str(int(cgo))))
        return path

    def check(self, stripped, full):
        """All functions of Go have the names that the symbols of the same program say."""
        self.assertNotIn('.symtab', subprocess.run(['readelf', '-SW', stripped], check=True, capture_output=True, text=True).stdout)
        at = {n: a for n, a in functions(full).items() if n.startswith(('main.', 'runtime.(', 'runtime.m'))}
        names, ledger, warning = self.report(stripped, [(a, 1) for a in at.values()])
        self.assertEqual((warning, ledger), ('', {'named': len(at)}))
        self.assertLess({'main.main', 'main.(*stack).push', 'main.(*pair[...]).swap', 'main.main.func1', 'runtime.mallocgc'}, set(names))
        self.assertGreater(len(names), 100)
        # the table has neither types of generic functions nor calling conventions, and one name for each address
        plain = {n.removesuffix('.abi0') for n in at if '[' not in n and list(at.values()).count(at[n]) == 1}
        self.assertEqual(plain - set(names), set())

    def test_linker(self):
        self.check(self.build('small', '-ldflags=-s -w'), self.build('full'))

    def test_position_independent(self):
        self.check(self.build('pie-small', '-buildmode=pie', '-ldflags=-s -w'), self.build('pie-full', '-buildmode=pie'))

    @unittest.skipUnless(shutil.which('gcc') and shutil.which('strip'), 'no gcc or strip')
    def test_cgo(self):
        """Linked by gcc, which puts start-up code before that of Go, and the table among other data."""
        full = self.build('cgo', '-buildmode=pie', cgo=True)
        subprocess.run(['strip', '-o', full + '-small', full], check=True)
        self.check(full + '-small', full)

    def test_annotate(self):
        program = self.build('annotated', '-ldflags=-s -w')
        at = functions(self.build('annotated-full'))['main.(*stack).push']
        self.report(program, [(at, 5)])
        p = run('annotate', 'main.(*stack).push', '-i', self.path('recording.ibs'), '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(json.loads(p.stdout)['attribution']['function'], 5)

    def test_damaged(self):
        """Any bytes in the header of the table: names are missing, and nothing else happens."""
        good = self.build('good', '-ldflags=-s -w')
        out = subprocess.run(['readelf', '-SW', good], check=True, capture_output=True, text=True).stdout
        table = next(f for f in map(str.split, out.splitlines()) if '.gopclntab' in f)
        offset = int(table[table.index('.gopclntab') + 3], 16)
        at = functions(self.build('good-full'))['main.main']
        with open(good, 'rb') as f:
            data = f.read()
        for i, (where, what) in enumerate([(0, bytes(4)), (7, b'\x04'), (0, b'\xff' * 72)] +
                                          [(8 * k, struct.pack('<Q', v)) for k in (1, 3, 4, 8)
                                           for v in (0, 1, 1 << 31, 1 << 63, (1 << 64) - 1)]):
            with self.subTest(i):
                path = self.path('bad')
                with open(path, 'wb') as f:
                    f.write(data[:offset + where] + what + data[offset + where + len(what):])
                self.report(path, [(at, 1)])



if __name__ == '__main__':
    unittest.main()
