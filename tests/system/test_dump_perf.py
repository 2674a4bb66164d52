# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ibscope dump` of recordings of perf, against `perf report -D` of the same files."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'vm'))
import dumps  # noqa: E402
from ibscope import IBSCOPE  # noqa: E402

# of a perf that was killed perf itself reads nothing
FILES = sorted(f for f in glob.glob(os.path.join(HERE, '../data/perf/*.data.zst'))
               if '-killed' not in f)
LEAST = 500     # samples that perf 6.1 decodes too


class DumpPerf(unittest.TestCase):
    @unittest.skipUnless(FILES, 'no recordings of perf in tests/data')
    @unittest.skipUnless(shutil.which('zstd'), 'no zstd')
    def test_same_as_perf(self):
        perf = dumps.best_perf()
        if not shutil.which(perf[0]):
            self.skipTest('no perf')
        samples = 0
        with tempfile.TemporaryDirectory() as d:
            for f in FILES:
                data = os.path.join(d, os.path.basename(f)[:-4])
                subprocess.run(['zstd', '-dq', f, '-o', data], check=True)
                with self.subTest(file=os.path.basename(f)):
                    try:
                        samples += dumps.compare(IBSCOPE, data, perf)[0]
                    except dumps.NoOracle:
                        pass
        self.assertGreater(samples, LEAST)


if __name__ == '__main__':
    unittest.main()
