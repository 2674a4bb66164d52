# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every ibscope command of ibscope-from-perf(7) is run: on a recording, or with --explain of a machine."""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
PERF_DATA = os.path.join(TOP, 'tests', 'data', 'perf', '6.12-zen4-mem.data.zst')


def lines(page):
    with open(page) as f:
        return re.findall(r'^\.Dl (.*)$', f.read(), re.M)


class Pages(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        subprocess.run([MAKE, 'ibscope.data', '2000', 'stacks'], cwd=self.dir.name, check=True)
        with open(os.path.join(self.dir.name, 'perf.data'), 'wb') as f:
            subprocess.run(['zstd', '-dc', PERF_DATA], stdout=f, check=True)

    def run_line(self, line):
        words = shlex.split(line)
        env = os.environ | {'NO_COLOR': '1'}
        if words[0] == 'mpirun':
            words = words[1:]
            env |= {'PMI_RANK': '0', 'PMI_SIZE': '1', 'MPI_LOCALRANKID': '0', 'MPI_LOCALNRANKS': '1'}
        self.assertEqual(words[0], 'ibscope')
        if words[1] == 'record':  # a plan needs no IBS: what is in `--explain` was parsed and resolved
            words = ['true' if w == 'COMMAND' else w for w in words]
            words.insert(2, '--explain=zen4:6.12')
        return subprocess.run([ibscope.IBSCOPE, *words[1:]], cwd=self.dir.name, env=env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    def test_lines(self):
        pages = glob.glob(os.path.join(TOP, 'tools', 'man', 'ibscope-from-*.7'))
        self.assertTrue(pages)
        for page in pages:
            self.assertGreater(len(lines(page)), 20)
            for line in lines(page):
                with self.subTest(line):
                    p = self.run_line(line)
                    self.assertEqual(p.returncode, 0, p.stderr)
                    self.assertTrue(p.stdout or 'perf.out' in line)
                    self.assertNotIn('no sample is selected', p.stderr)

    def test_a_wrong_line_fails(self):
        self.assertNotEqual(self.run_line('ibscope record --no-such -- COMMAND').returncode, 0)
        self.assertNotEqual(self.run_line('ibscope report --by nothing').returncode, 0)


if __name__ == '__main__':
    unittest.main()
