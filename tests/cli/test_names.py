# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of C++ and Rust as people write them, and for programs also as the linker has them."""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402
from test_pprof import Profile  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_types')
TEXT = dict(os.environ, COLUMNS='80', LC_ALL='C.UTF-8')

SOURCE = r'''
#include <map>
#include <string>
namespace shop {
struct Cart {
    long sum;
    __attribute__((noinline)) void add(long n) { sum += n; asm volatile("" ::: "memory"); }
    __attribute__((noinline)) void add(double n) { sum += (long)n * 2; asm volatile("" ::: "memory"); }
};
Cart carts[16];
template <typename T> struct Shelf {
    T v;
    __attribute__((noinline)) void put(T t) { v = t; asm volatile("" ::: "memory"); }
};
}
__attribute__((noinline)) long rust_v0(long n) __asm__("_RNvCs1234_7mycrate3foo");
long rust_v0(long n) { asm volatile("" ::: "memory"); return n + 1; }
__attribute__((noinline)) long rust_legacy(long n) __asm__("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE");
long rust_legacy(long n) { asm volatile("" ::: "memory"); return n + 2; }
extern "C" __attribute__((noinline)) long plain(long n) { asm volatile("" ::: "memory"); return n + 3; }
int main(int argc, char **) {
    shop::Shelf<std::map<std::string, std::map<std::string, long>>> shelf;
    shelf.put({});
    shop::carts[1].add((long)argc);
    shop::carts[2].add(1.0 * argc);
    return (int)(rust_v0(argc) + rust_legacy(argc) + plain(argc));
}
'''
ADD = {'_ZN4shop4Cart3addEl': 5, '_ZN4shop4Cart3addEd': 4}
RUST = {'_RNvCs1234_7mycrate3foo': ('mycrate::foo', 3),
        '_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE': ('core::fmt::Write::write_fmt', 2)}


@unittest.skipUnless(shutil.which('g++'), 'no g++')
class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.program = os.path.join(cls.dir.name, 'program')
        source = cls.program + '.cpp'
        with open(source, 'w', encoding='ascii') as f:
            f.write(SOURCE)
        subprocess.run(['g++', '-O1', '-g', '-o', cls.program, source], check=True)
        out = subprocess.run(['nm', cls.program], check=True, capture_output=True, text=True).stdout
        cls.at = {f[2]: int(f[0], 16) for f in map(str.split, out.splitlines()) if len(f) == 3}
        cls.put = next(name for name in cls.at if re.match('_ZN4shop5ShelfI.*E3putE', name))
        cls.samples = {**ADD, **{k: n for k, (_, n) in RUST.items()}, 'plain': 1, cls.put: 6}
        cls.file = cls.program + '.ibs'
        lines = ''.join(f'{cls.at[name]:x} {cls.at["_ZN4shop5cartsE"]:x} store {n}\n' for name, n in cls.samples.items())
        subprocess.run([MAKE, cls.file, cls.program], check=True, text=True, input=lines)

    def run_ok(self, *args, **kw):
        p = run(*args, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def rows(self, *args):
        return json.loads(self.run_ok('report', self.file, '--json', *args))['rows']

    def test_json(self):
        got = {(r['labels']['symbol'], r['mangled']['symbol']): r['samples'] for r in self.rows('--by', 'symbol')}
        put = next(name for name, mangled in got if mangled == self.put)
        self.assertRegex(put, r'^shop::Shelf<std::map<std::.*string.*> >::put$')
        # overloads are printed alike, but have rows of their own
        self.assertEqual(got, {**{('shop::Cart::add', k): n for k, n in ADD.items()},
                               **{(name, k): n for k, (name, n) in RUST.items()}, ('plain', None): 1,
                               (put, self.put): 6})
        row, = self.rows('--by', 'variable')
        self.assertEqual((row['labels'], row['mangled']),
                         ({'variable': 'shop::carts'}, {'variable': '_ZN4shop5cartsE'}))
        self.assertEqual(self.rows('--by', 'dso')[0]['mangled'], {})

    def test_mangled(self):
        got = {(r['labels']['symbol'], r['mangled']['symbol']): r['samples']
               for r in self.rows('--by', 'symbol', '--no-demangle')}
        self.assertEqual(got, {(k, None): n for k, n in self.samples.items()})

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.run_ok('report', self.file, '--csv', '--by', 'symbol,variable'))))
        got = {(r['symbol'], r['symbol_mangled'], r['variable'], r['variable_mangled']) for r in rows}
        self.assertIn(('shop::Cart::add', '_ZN4shop4Cart3addEd', 'shop::carts', '_ZN4shop5cartsE'), got)
        self.assertIn(('plain', '', 'shop::carts', '_ZN4shop5cartsE'), got)

    def test_text(self):
        text = self.run_ok('report', self.file, '--by', 'symbol', env=TEXT)
        self.assertEqual(len(re.findall(r'^shop::Cart::add  ', text, re.M)), 2, text)
        self.assertRegex(text, '(?m)^shop::Shelf<…>::put  ')
        self.assertRegex(text, '(?m)^mycrate::foo  ')
        self.assertNotRegex(text, '_ZN|_RN')
        self.assertIn('_ZN4shop4Cart3addEl', self.run_ok('report', self.file, '--by', 'symbol', '--no-demangle'))

    def test_pprof(self):
        path = self.file + '.pb.gz'
        self.run_ok('report', self.file, '--pprof', path)
        functions = Profile(path).functions
        self.assertEqual({system for _, system in functions}, {*self.samples, 'SIMULATED'})
        self.assertLess({*(('shop::Cart::add', k) for k in ADD), *((name, k) for k, (name, _) in RUST.items()),
                         ('plain', 'plain'), ('SIMULATED', 'SIMULATED')}, functions)
        if shutil.which('go'):
            top = subprocess.run(['go', 'tool', 'pprof', '-top', '-sample_index=samples', path], check=True,
                                 capture_output=True, text=True, env=dict(os.environ, HOME=self.dir.name)).stdout
            self.assertIn('  shop::Cart::add\n', top)
        self.run_ok('report', self.file, '--pprof', path, '--no-demangle')
        self.assertEqual(Profile(path).functions, {(name, name) for name in [*self.samples, 'SIMULATED']})

    def test_folded_and_html(self):
        add, main = (self.at[name] for name in ('_ZN4shop4Cart3addEl', 'main'))
        chains = self.program + '-stacks.ibs'
        subprocess.run([MAKE, chains, self.program, 'stacks'], check=True, text=True,
                       input=f'stack {add:x} {main + 5:x}\n{add:x} 0 load 3\n')
        self.assertEqual(self.run_ok('report', chains, '--folded', 'samples'),
                         'SIMULATED;[unknown];main;[unknown];shop::Cart::add 3\n')
        self.assertEqual(self.run_ok('report', chains, '--folded', 'samples', '--no-demangle'),
                         'SIMULATED;[unknown];main;[unknown];_ZN4shop4Cart3addEl 3\n')
        path = self.file + '.html'
        self.run_ok('report', self.file, '--html', path)
        with open(path, encoding='utf-8') as f:
            page = f.read()
        self.assertIn('shop::Cart::add', page)
        self.assertNotIn('_ZN4shop', page)

    def test_annotate(self):
        def annotate(name, *args):
            return json.loads(self.run_ok('annotate', name, '-i', self.file, '--json', *args))

        for name in ('mycrate::foo', '_RNvCs1234_7mycrate3foo'):
            j = annotate(name)
            self.assertEqual((j['function'], j['mangled'], j['attribution']['function']),
                             ('mycrate::foo', '_RNvCs1234_7mycrate3foo', 3))
        j = annotate('_ZN4shop4Cart3addEd')
        self.assertEqual((j['attribution']['function'], j['attribution']['namesakes']), (4, 0))
        j = annotate('shop::Cart::add')
        self.assertEqual((j['attribution']['function'], j['attribution']['namesakes'], j['others'][0]['mangled']),
                         (5, 4, '_ZN4shop4Cart3addEd'))
        self.assertEqual(annotate('_ZN4shop4Cart3addEl', '--no-demangle')['mangled'], None)
        p = run('annotate', 'shop::Cart::ad', '-i', self.file)
        self.assertEqual(p.returncode, 1)
        self.assertIn("did you mean 'shop::Cart::add'", p.stderr)

    def test_c2c(self):
        line, = json.loads(self.run_ok('c2c', self.file, '--json'))['lines']
        self.assertEqual({(w['name'], w['mangled']): w['samples'] for w in line['writers'] if 'Cart' in w['name']},
                         {('shop::Cart::add', k): n for k, n in ADD.items()})
        self.assertEqual([(v['name'], v['mangled']) for v in line['variables']], [('shop::carts', '_ZN4shop5cartsE')])
        row, = csv.DictReader(io.StringIO(self.run_ok('c2c', self.file, '--csv')))
        names = dict(zip(row['writers_mangled'].split(';'), row['writers'].split(';')))
        self.assertEqual(set(names), set(self.samples))
        self.assertEqual(names['_ZN4shop4Cart3addEl'], 'shop::Cart::add')
        access = json.loads(self.run_ok('c2c', self.file, '--json', '--line', line['line']))['accesses']
        self.assertEqual({(a['function'], a['function_mangled']) for a in access if 'Cart' in a['function']},
                         {('shop::Cart::add', k) for k in ADD})
        self.assertNotRegex(self.run_ok('c2c', self.file, env=TEXT), '_ZN|_RN')

    def test_top(self):
        def top(*args):
            return self.run_ok('top', '-i', self.file, '--once', '--by', 'symbol', '--size', '120x30', *args, env=TEXT)

        self.assertRegex(top(), '(?m)^shop::Cart::add ')
        self.assertNotRegex(top(), '_ZN|_RN')
        self.assertIn('_ZN4shop4Cart3addEl ', top('--no-demangle'))
        p = run('top', '--source', 'sim', '--once', '--no-demangle')
        self.assertEqual(p.returncode, 2)
        self.assertIn('--no-demangle works with -i only', p.stderr)


if __name__ == '__main__':
    unittest.main()
