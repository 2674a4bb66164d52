# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --by type,field`: what the instructions of programs access, against what their sources say."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = os.path.join(TESTS, 'system'), os.path.join(TESTS, 'bench')
import ibscope  # noqa: E402
import types_perf  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_types')
EXPECTED = re.compile(r'/\* -> (.*) \*/|// -> (.*)')


def accesses(program, source):
    """Addresses of instructions that access memory, by line of the source."""
    text = subprocess.run(['objdump', '-dl', '--no-show-raw-insn', program], check=True, capture_output=True,
                          text=True).stdout
    lines, at = {}, None
    for line in text.splitlines():
        if m := re.match(r'(.*):(\d+)(?: \(discriminator \d+\))?$', line):
            at = int(m[2]) if m[1].endswith(source) else None
        elif re.match('[0-9a-f]+ <', line):
            at = None
        elif at and (m := re.match(r' +([0-9a-f]+):\t(\S+) +(.*)', line)) and '(' in m[3] and \
                not re.match('lea|nop|call|jmp|cs|data16', m[2]):
            lines.setdefault(at, []).append(int(m[1], 16))
    return lines


def expected(path):
    """By line: the sets of answers that are right."""
    want = {}
    with open(path, encoding='ascii') as f:
        for number, line in enumerate(f, 1):
            if m := EXPECTED.search(line):
                want[number] = [set(s.split('; ')) for s in (m[1] or m[2]).split(' or ')]
    return want


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def compile(self, cc, source, *options):
        if not shutil.which(cc):
            self.skipTest(f'no {cc}')
        program = self.path(os.path.basename(source) + '-' + cc + ''.join(options).replace('/', ''))
        command = {'rustc': ['rustc', '-g', '-O', '--edition=2021', '-A', 'warnings'], 'go': ['go', 'build']}.get(
            cc, [cc, '-g', '-O2', '-w'])
        subprocess.run([*command, *options, '-o', program, os.path.join(TESTS, 'data', source)], check=True,
                       env=dict(os.environ, GOCACHE=self.path('go'), GO111MODULE='off'))
        return program

    def record(self, program, samples, *args):
        file = self.path('a.ibs')
        subprocess.run([MAKE, file, program, *args], check=True, text=True,
                       input=''.join(f'{ip:x} {data:x} {op} {n}\n' for ip, data, op, n in samples))
        return file

    def report(self, file, *args):
        p = run('report', file, '--json', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        r = json.loads(p.stdout)
        if '--type' not in args:
            self.assertEqual(sum(r['types'].values()), r['total']['samples'])
        return r

    def answers(self, program, addresses):
        r = self.report(self.record(program, [(a, 0, 'load', 1) for a in addresses]), '--by', 'ip,type,field')
        return {int(row['labels']['ip'], 16) - 0x555500000000: ' '.join(filter(None, (
            row['labels']['type'], row['labels']['field']))) for row in r['rows']}, r['types']

    def check(self, cc, source, *options):
        program = self.compile(cc, source, *options)
        want = expected(os.path.join(TESTS, 'data', source))
        at = {line: a for line, a in accesses(program, 'data/' + source).items() if line in want}
        self.assertGreater(len(at), len(want) * 0.8, sorted(set(want) - set(at)))
        answers, types = self.answers(program, [a for v in at.values() for a in v])
        for line, addresses in sorted(at.items()):
            with self.subTest(cc=cc, options=options, line=line):
                self.assertIn({answers[a] for a in addresses}, want[line], [hex(a) for a in addresses])
        return types

    def test_c(self):
        for cc, options in (('gcc', ()), ('clang', ()), ('gcc', ('-fno-pie', '-no-pie', '-O1', '-fno-omit-frame-pointer'))):
            self.check(cc, 'types.c', *options)

    def test_cxx(self):
        for cc in ('g++', 'clang++'):
            self.check(cc, 'types.cpp')

    def test_rust(self):
        self.check('rustc', 'types.rs')

    def test_go(self):
        self.check('go', 'types.go')

    def symbols(self, program):
        out = subprocess.run(['nm', program], check=True, capture_output=True, text=True).stdout
        return {f[2]: int(f[0], 16) for f in map(str.split, out.splitlines()) if len(f) == 3}

    def test_by_data_address(self):
        """Code without debug information that accesses a variable with some; and what no variable has."""
        program = self.compile('gcc', 'types.c')
        at = self.symbols(program)
        samples = [(at['_start'], at['nodes'] + 80 * 7 + 12, 'load', 3), (at['_start'], at['counter'], 'store', 2),
                   (at['_start'], at['_start'], 'load', 1)]
        r = self.report(self.record(program, samples), '--by', 'type,field')
        self.assertEqual({(w['labels']['type'], w['labels']['field']): w['samples'] for w in r['rows']},
                         {('struct node', 'at.y'): 3, ('long int', ''): 2, ('[no_function]', None): 1})
        self.assertEqual({k: n for k, n in r['types'].items() if n}, {'variable': 5, 'no_function': 1})

    def test_layout(self):
        """All fields of one type, including unused ones, and the functions that read and write them."""
        program = self.compile('gcc', 'types.c')
        want = expected(os.path.join(TESTS, 'data', 'types.c'))
        at = {'; '.join(sorted(want[n][0])): a[0] for n, a in accesses(program, 'types.c').items() if n in want}
        nodes = self.symbols(program)['nodes']
        file = self.record(program, [(at['struct node far; struct node next; struct point y'], nodes + 96, 'load', 4),
                                     (at['struct node at.x'], nodes + 88, 'store', 2), (at['long int'], 0, 'load', 9),
                                     (at['struct node low|high'], nodes + 144, 'load', 1)])
        r = self.report(file, '--type', 'struct node')
        rows = [(int(w['labels']['field_offset']), int(w['labels']['field_size']), w['labels']['field'], w['loads'],
                 w['stores'], w['hitm']) for w in r['rows']]
        self.assertEqual(rows, [
            (0, 8, 'key', 0, 0, None), (8, 4, 'at.x', 0, 2, None), (12, 4, 'at.y', 0, 0, None),
            (16, 8, 'next', 4, 0, 1), (24, 4, 'corner[].x', 0, 0, None), (28, 4, 'corner[].y', 0, 0, None),
            (56, 2, 'small', 0, 0, None), (56, 8, 'number', 0, 0, None), (64, 1, 'low|high', 1, 0, 1),
            (64, 1, 'high', 0, 0, None), (64, 1, 'low', 0, 0, None), (65, 1, 'pad', 0, 0, None), (72, 8, 'far', 0, 0, None)])
        self.assertEqual((r['total']['samples'], sum(r['types'].values())), (7, 16))
        text = run('report', file, '--type', 'struct node', env=dict(os.environ, COLUMNS='80')).stdout
        self.assertRegex(text, r'(?m)^OFFSET +SIZE +FIELD +SAMPLES +LOADS +STORES +DRAM +HITM +p50 +p99$')
        self.assertLessEqual(max(map(len, text.split('\n\n', 1)[1].splitlines())), 80)
        self.assertRegex(text, r'(?m)^next +get_far 4; none$')
        self.assertRegex(text, r'(?m)^at.x +none; \w+ 2$')
        self.assertRegex(text, r'(?m)^0 +\.{8}wwww\.{4}rrrrrrrr\.{40}\n64 +r\.{15}$')
        self.assertIn(f'objects begin {(0x555500000000 + nodes + 80) % 64} bytes into a cache line', text)
        other = run('report', file, '--type', 'struct nobody', '--json')
        self.assertIn("no accesses to 'struct nobody'", other.stderr)
        self.assertEqual(run('report', file, '--type', 'int', '--html', self.path('x')).returncode, 2)

    def test_reasons(self):
        program = self.compile('gcc', 'types.c')
        line = next(n for n, want in expected(os.path.join(TESTS, 'data', 'types.c')).items()
                    if {'struct node key'} in want)
        ip = accesses(program, 'types.c')[line][0]
        samples = [(ip, 0, 'load', 4), (ip, 0, 'none', 3), (1 << 32, 0, 'load', 2)]

        def kinds(program, *args, warns=''):
            p = run('report', self.record(program, samples, *args), '--by', 'type', '--json')
            self.assertIn(warns, p.stderr)
            return {k: n for k, n in json.loads(p.stdout)['types'].items() if n}
        others = {'no_access': 3, 'no_file': 2}
        self.assertEqual(kinds(program), {'pointer': 4} | others)
        self.assertEqual(kinds(program, 'wrong', warns='is not the recorded'), {'no_object': 4} | others)
        text = run('report', self.record(program, samples), '--by', 'type,field').stdout
        self.assertRegex(text, r'(?m)^struct node +key ')
        self.assertIn('types     9 samples = 4 pointer + 3 no_access + 2 no_file\n'
                      '          known of 66.7 % of 6 accesses', text)
        self.assertNotIn('types   ', run('report', self.path('a.ibs')).stdout)
        p = run('report', self.record(program, samples), '--by', 'type,field', '--csv')
        self.assertIn('types     9 samples = 4 pointer + 3 no_access + 2 no_file\n'
                      'ibscope:           known of 66.7 % of 6 accesses\n', p.stderr)
        self.assertNotIn('no_access', p.stdout.splitlines()[0])
        stripped = self.path('stripped')
        shutil.copy(program, stripped)
        subprocess.run(['strip', stripped], check=True)
        self.assertEqual(kinds(stripped), {'no_debug_info': 4} | others)

    def test_perf(self):
        """No type that perf knows and we do not, where each instruction of types.c counts once; `make types-perf` has more."""
        perf = types_perf.find_perf()
        if not perf:
            self.skipTest('no perf that knows data types (6.8 or later)')
        program = self.compile('gcc', 'types.c')
        types_perf.record(MAKE, program, types_perf.once(program), {})
        n = types_perf.count(os.path.join(ibscope.BUILD, 'ibscope'), perf, program)
        self.assertEqual((n['perf'], n['type']), (0, 0), n)
        self.assertGreater(n['same'], 10, n)
        self.assertGreater(n['us'], 0, n)

    def test_address_that_is_not_valid(self):
        """No type by the instruction of the interrupt; by the address of data still."""
        program = self.compile('gcc', 'types.c')
        at = self.symbols(program)
        file = self.record(program, [(at['get_key'], 0, 'invalid', 3), (at['get_key'], at['nodes'] + 12, 'invalid', 2)])
        for path in (file, file + '.data'):
            if path != file:
                self.assertEqual(run('export', '-i', file, '--perf-data', path).returncode, 0)
            r = self.report(path, '--by', 'type,field')
            self.assertEqual({k: n for k, n in r['types'].items() if n}, {'no_address': 3, 'variable': 2})

    def damaged(self, suffix, cc, text, edit):
        """A program with debug information edited in the compiler's assembly."""
        source = self.path('self' + suffix)
        with open(source, 'w') as f:
            f.write(text)
        text = subprocess.run([cc, '-g', '-gdwarf-5', '-O1', '-dA', '-w', '-S', '-o', '-', source], check=True,
                              capture_output=True, text=True).stdout
        edited = edit(text)
        self.assertNotEqual(edited, text)
        with open(source + '.s', 'w') as f:
            f.write(edited)
        program = self.path('self')
        subprocess.run(['gcc', '-o', program, source + '.s'], check=True)
        return program, accesses(program, 'self' + suffix)

    def survives(self, program, addresses):
        at = self.symbols(program)
        file = self.record(program, [(at['_start'], at['a'] + 8, 'load', 1)] + [(c, 0, 'load', 1) for c in addresses])
        p = run('report', file, '--by', 'type,field', '--json', timeout=20)
        self.assertEqual(p.returncode, 0, p.stderr)
        r = json.loads(p.stdout)
        self.assertEqual(sum(r['types'].values()), 1 + len(addresses))
        return {row['labels']['type'] for row in r['rows']}

    def test_types_of_themselves(self):
        """Arrays and typedefs that are made of themselves, and pointers to them."""
        refer = r'(\(DIE \((0x[0-9a-f]+)\) DW_TAG_%s\)(?:\n(?!.*DIE).*)*?\n\t\.long\t)0x[0-9a-f]+(?=\t# DW_AT_type)'
        for tag, text in (('array_type', 'int a[4][4]; int (*p)[4] = a;\nint main(int n) { return p[n][n] + a[n][n]; }\n'),
                          ('typedef', 'typedef int t; t a[4]; t *p = a;\nint main(int n) { return p[n] + a[n]; }\n')):
            program, at = self.damaged('.c', 'gcc', text, lambda s: re.sub(refer % tag, r'\1\2', s))
            self.survives(program, at[2])

    def test_deep_nesting(self):
        """Namespaces in namespaces, as deep as the stack of a program that follows them would not be."""
        n = 300000

        def edit(text):
            text = re.sub(r'0x([0-9a-f]+)(?=\t# Length of Compilation)', lambda m: hex(int(m[1], 16) + 2 * n), text)
            text = re.sub(r'0x([0-9a-f]+)(?=\t# DW_AT_(type|sibling)\n)', lambda m: hex(int(m[1], 16) + 2 * n), text)
            text = re.sub(r'(?=.*DW_TAG_namespace)', f'\t.rept {n}\n\t.byte 127\n\t.endr\n\t.zero {n}\n', text, count=1)
            return re.sub(r'(\.section\t\.debug_abbrev.*\n.*\n)', r'\1\t.byte 127, 0x39, 1, 0, 0\n', text)
        program, at = self.damaged('.cpp', 'g++', 'namespace n { struct s { int x, y; }; }\nn::s a[4];\n'
                                   'int main(int n) { return a[n & 3].y; }\n', edit)
        self.assertIn('n::s', self.survives(program, at[3]))

    def test_truncated(self):
        """With truncated sections, the result is a reason, or an answer without some of its names."""
        program = self.compile('gcc', 'types.c', '-gdwarf-5')
        at = [a for v in accesses(program, 'types.c').values() for a in v]
        whole = self.answers(program, at)[0]
        with open(program, 'rb') as f:
            image = f.read()
        table, = struct.unpack_from('<Q', image, 40)
        headers = {m[2]: table + 64 * int(m[1]) for m in re.finditer(r'\[ *(\d+)\] (\.debug_\S+)', subprocess.run(
            ['readelf', '-SW', program], check=True, capture_output=True, text=True).stdout)}
        self.assertIn('.debug_loclists', headers)
        for section, header in headers.items():
            with self.subTest(section=section), open(program, 'r+b') as f:
                f.seek(header + 32)
                f.write(struct.pack('<Q', struct.unpack_from('<Q', image, header + 32)[0] // 2))
                f.flush()
                for a, answer in self.answers(program, at)[0].items():
                    # without the names of fields, or of types, where there are no strings
                    names = [] if answer.startswith('[') else answer.replace('(anonymous)', '').split()
                    self.assertTrue(all(name in whole[a] for name in names), (hex(a), answer, whole[a]))
            with open(program, 'wb') as f:
                f.write(image)

    def test_split(self):
        """Debug information in a file of its own, which then is missing."""
        whole = self.compile('gcc', 'types.c')
        at = [a for v in accesses(whole, 'types.c').values() for a in v]
        want = self.answers(whole, at)
        for version in ('4', '5'):
            program = self.compile('gcc', 'types.c', '-gsplit-dwarf', '-gdwarf-' + version)
            self.assertEqual(self.answers(program, at), want)
            for name in os.listdir(self.dir.name):
                if name.endswith('.dwo'):
                    os.remove(self.path(name))
            types = self.answers(program, at)[1]
            self.assertEqual({k: n for k, n in types.items() if n}, {'no_split_file': len(at)})
            os.mkfifo(program + '.dwp')
            self.assertEqual(self.answers(program, at)[1], types)
            os.remove(program + '.dwp')
            shutil.copy(program, program + '.dwp')
            types = self.answers(program, at)[1]
            self.assertEqual({k: n for k, n in types.items() if n}, {'split_package': len(at)})


if __name__ == '__main__':
    unittest.main()
