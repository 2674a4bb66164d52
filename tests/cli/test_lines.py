# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How `make lines` counts what the plugin reports, and finds maps in machine code."""
import os
import struct
import sys
import tempfile
import types
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, 'vm'))
import lines  # noqa: E402
import lines_names  # noqa: E402

# the kernel, a program and its helper; the stack line is everyone's, the map's line is the program's
OUTPUT = '''S 7
c 0 ffffffff81000000 ff ffffffff81000000 0
d 0 ffffc90000003f00 ff ffffffff81000000 1
c 1 ffffffffc0000040 f0 ffffffffc0000044 0
c 1 ffffffffc0000080 f ffffffffc0000044 0
d 1 ffffc90000003f00 f ffffffffc0000044 1
d 1 ffffc90000106200 ff ffffffffc0000048 1
c 2 ffffffff81000000 f00 ffffffff81000008 0
c 2 ffffffff81002000 f ffffffff81002000 0
d 2 ffff888000000000 ff ffffffff81002000 0
S 7
c 0 ffffffff81000000 ff ffffffff81000000 0
'''


def program(functions):
    p = lines_names.Program.__new__(lines_names.Program)
    p.name, p.functions, p.maps, p.values = 'prog', functions, {}, {}
    return p


class Counting(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile('w') as f:
            f.write(OUTPUT)
            f.flush()
            self.runs = lines.read_samples(f.name)

    def test_parties(self):
        self.assertEqual([7], list(self.runs))
        sample, short = self.runs[7]
        names = ['NMI code', 'data', 'pages', 'program code', 'data', 'helpers code', 'data', 'pages',
                 'alone lines', 'pages', 'dirty']
        self.assertEqual(names, [t for t, _ in lines.COLUMNS])
        # alone: the program's two lines of code, the map's, the helper's of code and of data
        self.assertEqual([4, 3, 6, 2, 2, 2, 1, 6, 5, 4, 1], [what(sample) for _, what in lines.COLUMNS])
        self.assertEqual([1, 0, 1] + 8 * [0], [what(short) for _, what in lines.COLUMNS])

    def test_align(self):
        # 4 bytes of each of two lines, which begin 0x44 bytes into a page, are one line of 64 bytes
        sample = self.runs[7][0]
        others = [e for e in sample.entries if not (e.code and e.party == lines.OURS)]
        sample.align([(0xffffffffc0000044, 0x44)])
        code = [(e.line, e.bytes) for e in sample.entries if e.code and e.party == lines.OURS]
        self.assertEqual([(0xffffffffc0000040, 0xf), (0xffffffffc0000040, 0xf << 60)], code)
        self.assertEqual(1, sample.count(True, (lines.OURS,)))
        self.assertEqual(others, [e for e in sample.entries if not (e.code and e.party == lines.OURS)])

    def problems(self, variant, functions, aggregated=0):
        boot = types.SimpleNamespace(
            samples={7: self.runs[7][:1] * lines.FEWEST},
            names={7: types.SimpleNamespace(programs=[program(functions)], data=lambda e: 'stack')})
        return list(lines.check(boot, {'run': 7, 'variant': variant, 'aggregated': aggregated}))

    def test_check(self):
        ours = [(0xffffffffc0000044, 100)]
        self.assertEqual([], self.problems('rejected: pid', ours))
        for variant, functions, aggregated, want in (
                ('event, no program', ours, 0, 'none is attached'),
                ('empty program', ours, 0, 'the empty program has 2 lines'),
                ('rejected: pid', [(0xffffffffc0001000, 100)], 0, 'outside of the program: 0xffffffffc0000044'),
                ('aggregated: in one', ours, 30, '0 samples wrote to series, 30 were aggregated')):
            with self.subTest(variant):
                self.assertRegex(' '.join(self.problems(variant, functions, aggregated)), want)


class Immediates(unittest.TestCase):
    def test_maps(self):
        def load(kind, low, high):
            return struct.pack('<BBhiBBhi', 0x18, kind << 4, 0, low, 0, 0, 0, high)

        def movabs(opcode, value):
            return opcode + struct.pack('<Q', value)

        # a map's header, a plain number, a map's value with an offset; the compiler's own bound
        xlated = load(1, 30, 0) + struct.pack('<BBhi', 0x95, 0, 0, 0) + load(0, 5, 0) + load(2, 31, 0x40)
        jited = (movabs(b'\x48\xbf', 0xffff888004f59c00) + b'\xb8\5\0\0\0' +
                 movabs(b'\x49\xbb', 0xffff800000000000) + movabs(b'\x49\xbd', 0xffffc90000106040))
        p = program([])
        p.find_maps(jited, xlated)
        self.assertEqual(({30: 0xffff888004f59c00}, {31: 0xffffc90000106000}), (p.maps, p.values))


if __name__ == '__main__':
    unittest.main()
