# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Inlined functions: `report --by symbol`, pprof, folded stacks and `annotate`, against addr2line."""
import collections
import csv
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402
from test_pprof import fields, packed, Profile  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_types')
TEXT = dict(os.environ, COLUMNS='120', LC_ALL='C.UTF-8')

C = r'''
#define INLINE static inline __attribute__((always_inline))
volatile long data[64];
INLINE long inner(long i) { return data[i & 63] * 3; }
INLINE long mid(long i)
{
	long sum = inner(i);

	return sum + inner(i * 7) + 1;
}
__attribute__((noinline)) long outer(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += mid(i);
	return sum;
}
__attribute__((noinline)) long other(long n) { return inner(n) + 1; }
int main(int argc, char **argv)
{
	long sum = 0;

	for (long i = 0; i < argc * 20000L; i++)
		sum += outer(1000) + other(i);
	return argc > 9 ? (int)sum : 0;
}
'''
CPP = r'''
#define INLINE inline __attribute__((always_inline))
volatile long data[64];
namespace shop {
struct Cart {
	INLINE long get(long i) { return data[i & 63] * 3; }
	INLINE long get(long i, long k) { return get(i) + get(i + k); }
};
namespace { INLINE long hidden(long i) { return data[i & 31] - 5; } }
}
__attribute__((noinline)) long outer(long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += shop::Cart().get(i, n) + shop::hidden(i);
	return sum;
}
int main(int argc, char **) { return outer(argc) == 7; }
'''


def frames_of(program, addresses):
    """{address: (functions from the innermost on, their calls as (file, line))} of addr2line"""
    out = subprocess.run(['addr2line', '-a', '-i', '-f', '-e', program, *map(hex, addresses)], check=True,
                         capture_output=True, text=True).stdout
    frames = {}
    for part in re.split('^(?=0x)', out, flags=re.M)[1:]:
        at, *lines = part.splitlines()
        places = [re.sub(r' \(.*', '', line).rsplit(':', 1) for line in lines[1::2]]
        frames[int(at, 16)] = lines[::2], [(file, int(line)) for file, line in places[1:] if line.isdigit()]
    return frames


class Stacks(Profile):
    """All functions of each location."""
    def __init__(self, path):
        super().__init__(path)
        self.path = path

    def stacks(self):
        with gzip.open(self.path) as f:
            top = fields(f.read())
        text = [s.decode() for s in top[6]]
        functions = {f[1][0]: (text[f[2][0]], text[f[3][0]]) for f in map(fields, top[5])}
        locations = {loc[1][0]: [functions[fields(line)[1][0]] for line in loc[4]] for loc in map(fields, top[4])}
        return [([f for i in packed(s[1][0]) for f in locations[i]], packed(s[2][0])[0]) for s in map(fields, top[2])]


class Inline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.compiled = {}

    def compile(self, name, source, *args):
        if (name, *args) not in self.compiled:
            self.compiled[name, *args] = self.compile_it(name, source, *args)
        return self.compiled[name, *args]

    def compile_it(self, name, source, *args):
        """The program, and the addresses of all instructions of outer() and other(), without padding."""
        program = os.path.join(self.dir.name, re.sub('[^a-z0-9]', '', '-'.join((name, *args))))
        path = f'{program}.{"c" if name == "gcc" else "cpp"}'
        with open(path, 'w', encoding='ascii') as f:
            f.write(source)
        subprocess.run([name, '-O2', '-g', *args, '-o', program, path], check=True, cwd=self.dir.name)
        symbols = subprocess.run(['nm', '-S', program], check=True, capture_output=True, text=True).stdout
        at = []
        for start, size in re.findall(r'^(\w+) (\w+) T (?:outer|other|_Z5outerl)$', symbols, re.M):
            code = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '--start-address', '0x' + start, '--stop-address',
                                   hex(int(start, 16) + int(size, 16)), program], check=True, capture_output=True, text=True)
            at += [int(a, 16) for a in re.findall(r'^ +([0-9a-f]+):\t(?!.*nop|xchg +%ax)', code.stdout, re.M)]
        self.assertGreater(len(at), 10)
        return program, at

    def record(self, program, addresses, chains=False):
        """@chains: the functions have no frame, so that their caller is only at the top of the stack."""
        file = program + '.ibs'
        lines = f'top {self.return_to(program):x}\n' if chains else ''
        lines += ''.join((f'stack {a:x} {addresses[-1] + 1:x}\n' if chains else '') + f'{a:x} 0 none {1 + n % 3}\n'
                        for n, a in enumerate(addresses))
        subprocess.run([MAKE, file, program, *(('stacks',) if chains else ())], check=True, text=True, input=lines)
        return file, {a: 1 + n % 3 for n, a in enumerate(addresses)}

    @staticmethod
    def return_to(program):
        """Where main() goes on after it has called outer()."""
        code = subprocess.run(['objdump', '-d', '--no-show-raw-insn', program], check=True, capture_output=True, text=True)
        return int(re.search(r'call +\w+ <outer>\n +(\w+):', code.stdout)[1], 16)

    def run_ok(self, *args, **kw):
        p = run(*args, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def rows(self, file, *args):
        out = collections.Counter()
        for r in json.loads(self.run_ok('report', file, '--json', '--by', 'symbol', *args))['rows']:
            into = r['inlined_into'] or {'symbol': None, 'mangled': None}
            out[r['mangled']['symbol'] or r['labels']['symbol'], into['mangled'] or into['symbol']] += r['samples']
        return out

    def wanted(self, program, samples):
        out = collections.Counter()
        for a, (names, _) in frames_of(program, samples).items():
            out[names[0], names[1] if len(names) > 1 else None] += samples[a]
        return out

    def check(self, name, source, *args):
        program, at = self.compile(name, source, *args)
        file, samples = self.record(program, at)
        want = self.wanted(program, samples)
        self.assertEqual(self.rows(file), want)
        return program, file, samples, want

    def test_rows(self):
        program, file, samples, want = self.check('gcc', C)
        self.assertLess({('inner', 'mid'), ('mid', 'outer'), ('outer', None), ('inner', 'other')}, want.keys())
        for version in ('4', '5'):
            self.check('gcc', C, '-gdwarf-' + version)
        table = list(csv.DictReader(io.StringIO(self.run_ok('report', file, '--csv', '--by', 'symbol'))))
        self.assertEqual({(r['symbol'], r['inlined_into'] or None): int(r['samples']) for r in table}, want)
        self.assertRegex(self.run_ok('report', file, '--by', 'symbol', env=TEXT), r'(?m)^inner \(inlined into mid\)  ')
        self.assertEqual(set(self.rows(file, '--no-inline')), {('outer', None), ('other', None)})
        # without debug information as if nothing were inlined
        shutil.copy(program, program + '-stripped')
        subprocess.run(['strip', '-g', program + '-stripped'], check=True)
        file, _ = self.record(program + '-stripped', list(samples))
        self.assertEqual(self.rows(file), self.rows(file, '--no-inline'))

    @unittest.skipUnless(shutil.which('g++'), 'no g++')
    def test_cpp(self):
        program, at = self.compile('g++', CPP)
        file, samples = self.record(program, at)
        got = self.rows(file)
        # addr2line has no scope for what only the file itself sees, or no name
        own = ('shop::(anonymous namespace)::hidden', '_Z5outerl')
        want = self.wanted(program, samples)
        want[own] = want.pop(('hidden', '_Z5outerl'), 0) + want.pop(('_Z5outerl', '_Z5outerl'), 0)
        self.assertGreater(want[own], 0)
        self.assertLess({('_ZN4shop4Cart3getEl', '_ZN4shop4Cart3getEll'), ('_Z5outerl', None)}, want.keys())
        self.assertEqual(got, want)
        row = next(r for r in json.loads(self.run_ok('report', file, '--json', '--by', 'symbol'))['rows']
                   if r['mangled']['symbol'] == '_ZN4shop4Cart3getEl')
        self.assertEqual((row['labels'], row['inlined_into']),
                         ({'symbol': 'shop::Cart::get'}, {'symbol': 'shop::Cart::get', 'mangled': '_ZN4shop4Cart3getEll'}))
        table = csv.DictReader(io.StringIO(self.run_ok('report', file, '--csv', '--by', 'symbol')))
        self.assertIn(('shop::Cart::get', '_ZN4shop4Cart3getEl', 'shop::Cart::get', '_ZN4shop4Cart3getEll'),
                      [tuple(r[k] for k in ('symbol', 'symbol_mangled', 'inlined_into', 'inlined_into_mangled')) for r in table])
        row = next(r for r in json.loads(self.run_ok('report', file, '--json', '--by', 'symbol', '--no-demangle'))['rows']
                   if r['labels']['symbol'] == '_ZN4shop4Cart3getEl')
        self.assertEqual((row['mangled'], row['inlined_into']),
                         ({'symbol': None}, {'symbol': '_ZN4shop4Cart3getEll', 'mangled': None}))

    def test_split_and_shared(self):
        """Debug information in .dwo files, and with the parts that two programs share in a third file."""
        whole, at = self.compile('gcc', C)
        for version in ('4', '5'):
            program, same = self.compile('gcc', C, '-gsplit-dwarf', '-gdwarf-' + version)
            self.assertEqual(same, at)
            file, samples = self.record(program, at)
            self.assertEqual(self.rows(file), self.wanted(whole, samples))
        for name in os.listdir(self.dir.name):
            if name.endswith('.dwo'):
                os.remove(os.path.join(self.dir.name, name))
        self.assertEqual(self.rows(file), self.rows(file, '--no-inline'))
        if not shutil.which('dwz'):
            return
        program = whole + '-dwz'
        for path in (program, program + '2'):
            shutil.copy(whole, path)
        subprocess.run(['dwz', '-m', program + '.shared', program, program + '2'], check=True)
        file, samples = self.record(program, at)
        self.assertEqual(self.rows(file), self.wanted(whole, samples))
        os.remove(program + '.shared')
        self.assertEqual(self.rows(file), self.rows(file, '--no-inline'))

    def test_frames(self):
        program, at = self.compile('gcc', C)
        file, samples = self.record(program, at, chains=True)
        frames = frames_of(program, at)
        caller = ['main', *frames[at[-1]][0]]
        want, folded = collections.Counter(), collections.Counter()
        for a, n in samples.items():
            stack = [*frames[a][0], *caller]
            want[tuple(stack)] += n
            marked = [caller[-1], *(f'{f}_[i]' for f in reversed(caller[1:-1])), 'main', frames[a][0][-1],
                      *(f'{f}_[i]' for f in reversed(frames[a][0][:-1]))]
            folded[';'.join(['SIMULATED', '[unknown]', *marked])] += n
        self.assertGreater(max(map(len, want)), len(caller) + 2)
        path = file + '.pb.gz'
        self.run_ok('report', file, '--pprof', path)
        got = collections.Counter()
        for stack, n in Stacks(path).stacks():
            self.assertEqual(stack[-1][0], 'SIMULATED')
            got[tuple(system for _, system in stack[:-1])] += n
        self.assertEqual(got, want)
        if shutil.which('go'):
            top = subprocess.run(['go', 'tool', 'pprof', '-top', '-sample_index=samples', path], check=True, text=True,
                                 capture_output=True, env=dict(os.environ, HOME=self.dir.name)).stdout
            self.assertRegex(top, r'(?m) inner \(inline\)$')
            self.assertRegex(top, r'(?m) outer$')
        lines = self.run_ok('report', file, '--folded', 'samples').splitlines()
        self.assertEqual({k: int(n) for k, n in (line.rsplit(' ', 1) for line in lines)}, folded)
        self.assertNotIn('_[i]', self.run_ok('report', file, '--folded', 'samples', '--no-inline'))
        html = file + '.html'
        self.run_ok('report', file, '--html', html)
        with open(html, encoding='utf-8') as f:
            self.assertIn('"inner"', f.read())

    def test_annotate(self):
        program, at = self.compile('gcc', C)
        file, _ = self.record(program, at)
        seen = 0
        for name in ('outer', 'other'):
            j = json.loads(self.run_ok('annotate', name, '-i', file, '--json'))
            frames = frames_of(program, [r['address'] for r in j['instructions']])
            for r in j['instructions']:
                names, calls = frames[r['address']]
                self.assertEqual([f['function'] for f in r['inlined']], names[:-1], hex(r['address']))
                self.assertEqual([(f['call_file'], f['call_line']) for f in r['inlined']], calls)
                seen += len(calls) > 1
        self.assertGreater(seen, 2)
        text = self.run_ok('annotate', 'outer', '-i', file, env=dict(TEXT, COLUMNS='200'))
        source = C.splitlines()
        lines = [next(n for n, line in enumerate(source, 1) if words in line) for words in ('sum = inner(i)', '+= mid(i)')]
        self.assertIn('[inner, inlined at gcc.c:{} in mid, at gcc.c:{} in outer]\n'.format(*lines), text)
        self.assertRegex(text, r'(?m) \[outer\]$')
        self.assertNotIn('inlined', self.run_ok('annotate', 'outer', '-i', file, '--no-inline', env=TEXT))
        p = run('annotate', 'mid', '-i', file)
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn("'mid' has no code of its own: it is inlined into 'outer'; annotate that", p.stderr)
        html = file + '.html'
        self.run_ok('annotate', 'outer', '-i', file, '--html', html)
        with open(html, encoding='utf-8') as f:
            self.assertIn('[inner, inlined at gcc.c:', f.read())

    def test_lines(self):
        """c2c names what accesses a line as `report --by symbol` does: in JSON, CSV, text and the HTML report."""
        program, at = self.compile('gcc', C)
        frames = frames_of(program, at)
        data = int(re.search(r'^(\w+) \w data$', subprocess.run(['nm', program], check=True, capture_output=True, text=True).stdout, re.M)[1], 16)
        inner = [a for a in at if frames[a][0][:3] == ['inner', 'mid', 'outer']]
        own = next(a for a in at if frames[a][0] == ['outer'])
        other = next(a for a in at if frames[a][0] == ['inner', 'other'])
        file = program + '-lines.ibs'
        subprocess.run([MAKE, file, program], check=True, text=True, input=''.join(
            [f'{a:x} {data + 8:x} load 10\n' for a in inner] + ['thread 1\n', f'{other:x} {data:x} store 7\n', f'{own:x} {data:x} store 2\n']))
        inner = 10 * len(inner)

        def tally(functions):
            return [(f['name'], f['inlined_into'] and f['inlined_into']['symbol'], f['samples']) for f in functions]

        line, = json.loads(self.run_ok('c2c', file, '--json'))['lines']
        self.assertEqual(tally(line['readers']), [('inner', 'mid', inner)])
        self.assertEqual(tally(line['writers']), [('inner', 'other', 7), ('outer', None, 2)])
        slots = [tally(s['readers']) + tally(s['writers']) for s in line['slots']]
        self.assertIn(tally(line['readers']), slots)
        self.assertIn(tally(line['writers']), slots)
        row, = csv.DictReader(io.StringIO(self.run_ok('c2c', file, '--csv')))
        self.assertEqual((row['readers'], row['writers']), ('inner (inlined into mid)', 'inner (inlined into other);outer'))
        writer, reader = 'inner (inlined into other)', 'inner (inlined into mid)'
        text = self.run_ok('c2c', file, env=dict(TEXT, COLUMNS='200'))
        self.assertIn(f' {writer} → {reader} ', text)
        self.assertIn(f'written by {writer} at gcc.c:', text)
        one = '--line', line['line']
        want = {('inner', 'mid', inner), ('inner', 'other', 7), ('outer', None, 2)}
        rows = json.loads(self.run_ok('c2c', file, '--json', *one))['accesses']
        self.assertEqual({(r['function'], r['inlined_into'], r['samples']) for r in rows}, want)
        rows = csv.DictReader(io.StringIO(self.run_ok('c2c', file, '--csv', *one)))
        self.assertEqual({(r['function'], r['inlined_into'] or None, int(r['samples'])) for r in rows}, want)
        text = self.run_ok('c2c', file, *one, env=dict(TEXT, COLUMNS='200'))
        self.assertRegex(text, r'(?m)^ *8 .* inner \(inlined into mid\) ')
        # what has the code is the caller
        p = subprocess.run(['script', '-qec', f'{ibscope.IBSCOPE} c2c {file}', '/dev/null'], env=dict(TEXT, IBSCOPE_PAGER='cat'),
                           capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertRegex(p.stdout, f'Next: .* annotate -i {file} other\r?\n')
        html = file + '.html'
        self.run_ok('report', file, '--html', html)
        with open(html, encoding='utf-8') as f:
            line, = json.loads(re.search(r'id="facts-data">(.*?)</script>', f.read(), re.S)[1])['lines']
        self.assertEqual([line[k] for k in ('writer', 'other_writers', 'reader', 'other_readers')], [writer, 1, reader, 0])
        line, = json.loads(self.run_ok('c2c', file, '--json', '--no-inline'))['lines']
        self.assertEqual(tally(line['readers'] + line['writers']), [('outer', None, inner), ('other', None, 7), ('outer', None, 2)])

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_recorded(self):
        """A program that runs."""
        program, at = self.compile('gcc', C)
        file = program + '.run.ibs'
        p = run('record', '--source', 'sim', '-c', '1000000', '-o', file, '--', program)
        self.assertEqual(p.returncode, 0, p.stderr)
        out = collections.Counter()
        for r in json.loads(self.run_ok('report', file, '--json', '--by', 'symbol,dso,ip'))['rows']:
            if r['labels']['dso'] == program:
                ip = int(r['labels']['ip'], 16) & 0xfff
                out[ip, r['labels']['symbol'], (r['inlined_into'] or {}).get('symbol')] += r['samples']
        self.assertGreater(sum(n for k, n in out.items() if k[1:] == ('inner', 'mid')), 0, out)
        start = min(at) & ~0xfff
        frames = frames_of(program, [start | ip for ip, _, _ in out])
        for ip, symbol, into in out:
            names = frames[start | ip][0]
            self.assertEqual((symbol, into), (names[0], names[1] if len(names) > 1 else None), hex(ip))

    def test_damaged(self):
        """Each byte of debug information may be another one: no crash, no endless loop, and the functions of symbols."""
        whole, at = self.compile('gcc', C, '-gdwarf-4')
        program = whole + '-damaged'
        file, samples = self.record(shutil.copy(whole, program), at)
        with open(program, 'rb') as f:
            image = f.read()
        sections = subprocess.run(['objdump', '-h', program], check=True, capture_output=True, text=True).stdout
        size, offset = (int(x, 16) for x in re.search(r' \.debug_info +(\w+) +\w+ +\w+ +(\w+)', sections).groups())
        outer = {'outer', 'other'}
        for step in range(4):
            damaged = bytearray(image)
            for i in range(offset + step, offset + size, 4):
                damaged[i] = (damaged[i] * 7 + step * 37) & 255 if i % 3 else 255
            with open(program, 'wb') as f:
                f.write(damaged)
            rows = json.loads(self.run_ok('report', file, '--json', '--by', 'symbol'))
            self.assertEqual(rows['total']['samples'], sum(samples.values()))
            self.assertEqual({r['labels']['symbol'] for r in rows['rows'] if not r['inlined_into']} - outer, set())
        # a unit whose length is that of the whole address space
        with open(program, 'wb') as f:
            f.write(image[:offset] + struct.pack('<I', 0xfffffff0) + image[offset + 4:])
        self.assertEqual(self.rows(file), self.rows(file, '--no-inline'))


if __name__ == '__main__':
    unittest.main()
