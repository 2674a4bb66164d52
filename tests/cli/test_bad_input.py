# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bad input: one line that says what, why and what to do; the right exit status; no output."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

SIM = ('--source', 'sim')

# arguments, exit status, what the message must name
USAGE = [
    (['frobnicate'], 'frobnicate'),
    (['hist', '--nonsense'], '--nonsense'),
    (['hist', '-Z'], '-Z'),
    (['hist', '-c'], "'-c' needs a value"),
    (['hist', '-e', 'cycles'], 'ibs_op'),
    (['hist', '-e', 'ibs_op/cnt_ctl=1'], 'closing /'),
    (['hist', '-e', 'ibs_op/,/'], 'column 8'),
    (['hist', *SIM, '-e', 'ibs_op/ldlat=256/'], 'ldlat'),
    (['hist', *SIM, '-c', '0'], '10000'),
    (['hist', *SIM, '-c', '1'], '10000'),
    (['hist', *SIM, '-c', '99999999999999999999'], '-c'),
    (['hist', *SIM, '-c', 'ten'], "'ten'"),
    (['hist', *SIM, '-F', '0'], 'Hz'),
    (['hist', *SIM, '-c', '100000', '-F', '100'], 'exclude'),
    (['hist', *SIM, '-C', '9999'], '9999'),
    (['hist', *SIM, '-C', '3-1'], '3-1'),
    (['hist', *SIM, '-C', ''], '-C'),
    (['hist', *SIM, '-p', '0'], '-p'),
    (['hist', *SIM, '-p', 'x'], "'x'"),
    (['hist', *SIM, '-p', '1,x'], "'x'"),
    (['hist', *SIM, '-p', '1', '-p', '!2'], 'not both'),
    (['hist', *SIM, '-t', '!2'], 'leave out'),
    (['hist', *SIM, '--comm', 'sixteen-bytes-xx'], '15'),
    (['hist', *SIM, '--comm', 'a,,b'], '15'),
    (['hist', *SIM, '--comm', 'a,b,c,d,e,f,g,h,i'], '8'),
    (['hist', *SIM, '--op', '!load,store,locked,prefetch,branch,other'], 'leaves nothing'),
    (['hist', *SIM, '--src', 'dram,ramm'], "column 6: 'ramm'"),
    (['hist', *SIM, '--src', ''], 'dram'),
    (['hist', *SIM, '--op', 'lode'], 'load'),
    (['hist', *SIM, '--metric', 'x'], 'dc_miss_lat'),
    (['hist', *SIM, '--metric', 'dc_miss_lat,tag_to_ret'], 'one metric'),
    (['hist', *SIM, '--by', 'cgrp'], 'cgroup'),
    (['hist', *SIM, '--min-lat', '70000'], '65535'),
    (['hist', *SIM, '--min-lat', '300', '--max-lat', '200'], 'above'),
    (['hist', *SIM, '--cgroup', ','], 'no cgroup'),
    (['hist', *SIM, '--cgroup-hierarchy', 'v3'], "--cgroup-hierarchy: 'v3' is no controller"),
    (['hist', *SIM, '--filter', 'mem_lvl == ramm'], "column 12: 'ramm'"),
    (['hist', *SIM, '--filter', 'mem_lvl == ram &&'], 'column'),
    (['hist', *SIM, '--filter', ''], 'column'),
    (['hist', *SIM, '--container', ','], 'no container'),
    (['hist', *SIM, '--container', 'a b'], "'a b'"),
    (['hist', *SIM, '--container', 'a/b/c/d'], 'NAMESPACE/POD/CONTAINER'),
    (['hist', *SIM, '--container', 'web:70000'], '65535'),
    (['hist', '--explain'], '--filter'),
    (['hist', *SIM, '--tlb', 'l1,hit'], "--tlb: column 4: 'hit' is none of l1, l2, walk"),
    (['hist', *SIM, '--tlb', '!l1,l2,walk'], 'leaves nothing'),
    (['hist', *SIM, '--page-size', '64k'], '4k, 2m, 1g'),
    (['hist', *SIM, '--page-size', '4k', '--page-size', '!2m'], 'not both'),
    (['hist', *SIM, '--remote-node', '1'], 'yes, no'),
    (['hist', *SIM, '--min-tlb-lat', '0'], '65535'),
    (['hist', *SIM, '--min-tlb-lat', '9', '--max-tlb-lat', '8'], 'above'),
    (['hist', *SIM, '--addr', '7f00-8000,g'], "--addr: column 11: expected a hexadecimal"),
    (['hist', *SIM, '--addr', '8000-7f00'], 'empty'),
    (['hist', *SIM, '--ip', '1+ffffffffffffffff0'], '64 bits'),
    (['hist', *SIM, '--ip', ','.join(f'{i:x}-{i + 1:x}' for i in range(0x10, 0x24, 2)),
      '--addr', ','.join(f'{i:x}-{i + 1:x}' for i in range(0x10, 0x20, 2))],
     '--addr, --ip: the filter comes to 36 tests; 24'),
    (['hist', *SIM, '-e', 'ibs_fetch//'], 'only ibs_op'),
    (['hist', '--source', 'magic'], 'auto, ibs, sim'),
    (['hist', *SIM, '0'], 'interval'),
    (['hist', *SIM, 'nan'], 'interval'),
    (['hist', *SIM, '1', '0'], 'count'),
    (['hist', *SIM, '1', '-5'], '-5'),
    (['hist', *SIM, '1', '2', '3'], "'3'"),
    (['doctor', 'now'], 'now'),
]
FAILED = [
    (['hist', *SIM, '--max-memory', '1'], '--max-memory'),
    (['hist', *SIM, '--cgroup', '/no/such/cgroup'], '/no/such/cgroup'),
    (['hist', *SIM, '--container', 'no-such-container'], "'no-such-container'"),
    (['hist', *SIM, '--container', 'no/such/container'], "'no/such/container'"),
    (['hist', *SIM, '--filter', 'cgroup == /no/such/cgroup'], '--filter'),
    (['hist', *SIM, '--filter', 'container == no-such'], '--filter'),
]


class BadInput(unittest.TestCase):
    def check(self, args, status, says):
        p = run(*args)
        self.assertEqual(p.returncode, status, f'{args}: {p.stderr}')
        self.assertEqual(p.stdout, '', args)
        errors = [line for line in p.stderr.splitlines() if line.startswith('ibscope: error: ')]
        self.assertEqual(len(errors), 1, f'{args}: {p.stderr}')
        self.assertIn(says, errors[0], args)

    def test_usage(self):
        for args, says in USAGE:
            with self.subTest(args=args):
                self.check(args, 2, says)

    def test_failure(self):
        for args, says in FAILED:
            with self.subTest(args=args):
                self.check(args, 1, says)

    def test_no_command(self):
        p = run()
        self.assertEqual((p.returncode, p.stdout), (2, ''))
        self.assertIn('usage:', p.stderr)

    def test_help(self):
        for args in (['--help'], ['hist', '--help'], ['doctor', '--help']):
            p = run(*args)
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            self.assertIn('usage:', p.stdout)

    def test_explain_round_trip(self):
        text = 'mem_lvl == ram && weight1 > 300 || swpf'
        first = run('hist', '--filter', text, '--explain')
        self.assertEqual(first.returncode, 0, first.stderr)
        canonical = first.stdout.splitlines()[0].removeprefix('filter: ')
        second = run('hist', '--filter', canonical, '--explain')
        self.assertEqual(second.stdout, first.stdout)

    def test_explain_parts(self):
        p = run('hist', '--explain', '--filter', 'swpf', '--ip', '401000-402000', '--tlb', '!walk',
                '--user')
        self.assertEqual(p.stdout.splitlines()[:5], [
            'mode: user == 1', 'tlb: l1tlb_miss != 1 || l2tlb_miss != 1',
            'ip: ip >= 0x401000 && ip < 0x402000', 'filter: swpf == 1',
            'in the kernel, 6 tests of 24:'], p.stderr)

    @unittest.skipIf(os.path.exists('/sys/bus/event_source/devices/ibs_op'), 'this machine has IBS')
    def test_no_ibs(self):
        p = run('hist', '0.1', '1')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('ibs_op', p.stderr)
        p = run('doctor')
        self.assertEqual(p.returncode, 1)

    @unittest.skipUnless(os.geteuid() == 0, 'not root, so there is no privilege to drop')
    def test_no_privilege(self):
        p = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                            ibscope.IBSCOPE, 'hist', *SIM, '0.1', '1'], capture_output=True,
                           text=True)
        if 'Permission denied' in p.stderr and 'setpriv' in p.stderr:
            self.skipTest('the build directory is not open to other users')
        self.assertEqual((p.returncode, p.stdout), (1, ''), p.stderr)
        self.assertIn('CAP_BPF', p.stderr)


if __name__ == '__main__':
    unittest.main()
