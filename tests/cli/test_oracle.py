# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The decision core against the oracle that judges the emulated hardware: they read the same documents, and agree on
every combination of the bits that decide."""
import os
import random
import struct
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'system'), os.path.join(HERE, '..', 'vm')]
import ibscope  # noqa: E402
import oracle  # noqa: E402

DECODE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'ibs_decode')
# IBS_OP_DATA3: load, store, dTLB misses, DcMiss, uncached, locked, no MAB, valid addresses, L2Miss, SwPf
DATA3_BITS = (0, 1, 2, 7, 14, 15, 16, 17, 18, 20, 21)
LOAD, STORE, LOCKED, SW_PF = 1 << 0, 1 << 1, 1 << 15, 1 << 21
METRICS = 'dc_miss_lat', 'tlb_refill_lat', 'tag_to_ret', 'comp_to_ret'


def sample(cpu, data, data2, data3, rip=0x401000):
    regs = dict.fromkeys(oracle.COLUMNS, '0') | {'rip': hex(rip), 'data': hex(data), 'data2': hex(data2),
                                                 'data3': hex(data3), 'kind': 'op'}
    return oracle.Sample([regs[name] for name in oracle.COLUMNS], cpu)


def line(cpu, data, data2, data3, rip=0x401000):
    raw = struct.pack('<I7Q', cpu.caps & ~(1 << 5 | 1 << 10), 0, rip, data, data2, data3, 0, 0)
    return f'class {cpu.family:#x} {cpu.model:#x} {raw.hex()}'


class Oracle(unittest.TestCase):
    def classes(self, cases):
        p = subprocess.run([DECODE], input='\n'.join(line(*c) for c in cases) + '\n', capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        answers = p.stdout.split('\n\n')[:-1]
        self.assertEqual(len(answers), len(cases))
        return [a.split() for a in answers]

    def compare(self, cases):
        for case, answer in zip(cases, self.classes(cases)):
            s = sample(*case)
            want = [s.op, s.src, s.mode] + ['-' if s.metrics[m] is None else str(s.metrics[m]) for m in METRICS]
            self.assertEqual(answer, want, f'{case[0]} data {case[1]:#x} data2 {case[2]:#x} data3 {case[3]:#x}')

    def test_all_bits(self):
        draw = random.Random(1)
        for name, cpu in oracle.GENS.items():
            with self.subTest(gen=name):
                cases = []
                for k in range(1 << len(DATA3_BITS)):
                    data3 = sum(1 << b for i, b in enumerate(DATA3_BITS) if k >> i & 1) | draw.getrandbits(32) << 32
                    data2 = draw.getrandbits(3) | draw.getrandbits(1) << 4 | draw.getrandbits(5) << 5
                    data = draw.getrandbits(32) | draw.getrandbits(1) << 37 | draw.getrandbits(1) << 38
                    cases.append((cpu, data, data2, data3, draw.getrandbits(64)))
                self.compare(cases)

    def test_sources(self):
        """Each code of DataSrc, near and far."""
        for cpu in oracle.GENS.values():
            self.compare([(cpu, 0, code & 7 | (code & 0x18) << 3 | far << 4, 1 << 0 | 1 << 7 | 1 << 20 | more)
                          for code in range(32) for far in (0, 1) for more in (0, 1 << 16, 1 << 21)])

    def test_prefetches(self):
        """SwPf qualifies a load or a store, locked or not: AMD defines the other bits for those only, and Linux takes
        an op with neither for no memory access."""
        zen4 = oracle.GENS['zen4']
        kinds = {SW_PF: 'other', SW_PF | LOCKED: 'other', SW_PF | LOAD: 'prefetch', SW_PF | STORE: 'prefetch',
                 SW_PF | LOAD | LOCKED: 'prefetch', SW_PF | STORE | LOCKED: 'prefetch', LOAD | LOCKED: 'locked',
                 STORE | LOCKED: 'locked'}
        for (data3, kind), answer in zip(kinds.items(), self.classes([(zen4, 0, 0, d) for d in kinds])):
            self.assertEqual((answer[0], sample(zen4, 0, 0, data3).op), (kind, kind), hex(data3))
            self.assertEqual(answer[1], 'none' if kind == 'other' else 'l1')


if __name__ == '__main__':
    unittest.main()
