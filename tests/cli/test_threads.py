# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads change no output: each command that reads a recording, on one CPU and on two, whole and damaged files."""
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SAMPLES = 150000  # more than a batch of each kind
AHEAD_BYTES = 1 << 20  # smaller recordings are read by one thread: recording_read.c
CPUS = sorted(os.sched_getaffinity(0))


@unittest.skipIf(len(CPUS) < 2, 'one CPU: there are no threads')
class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='ibscope-threads.')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.whole = os.path.join(cls.dir, 'whole')
        subprocess.run([MAKE, cls.whole, str(SAMPLES), 'node:0:4:0:1'], check=True)
        assert os.path.getsize(cls.whole) > AHEAD_BYTES

    def output(self, cpus, args, file):
        """Exit status, both outputs and the file that the command wrote, if any."""
        out = os.path.join(self.dir, 'out')
        if os.path.exists(out):
            os.unlink(out)
        p = subprocess.run([os.path.join(ibscope.BUILD, 'ibscope'), *[out if a == 'OUT' else a for a in args], file],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                           preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        written = b''
        if os.path.exists(out):
            with open(out, 'rb') as f:
                written = f.read()
        return p.returncode, p.stdout, p.stderr, written

    def same(self, file, *commands, status=0):
        for args in commands:
            with self.subTest(args=args, file=os.path.basename(file)):
                one, two = self.output({CPUS[0]}, args, file), self.output(set(CPUS[:2]), args, file)
                self.assertEqual(one[0], status, one[2])
                self.assertEqual(one[:3], two[:3])
                if '--pprof' in args:
                    self.assertEqual(gzip.decompress(one[3]), gzip.decompress(two[3]))
                else:
                    self.assertEqual(one[3], two[3])

    def test_whole(self):
        self.same(self.whole, ['report', '--csv', '--by', 'symbol,src,comm', '--top', '100000'],
                  ['report', '--csv', '--by', 'line', '--top', '100000'], ['c2c', '--all'], ['c2c', '--json'],
                  ['report', '--html', 'OUT'], ['report', '--pprof', 'OUT'], ['dump', '--csv'])

    def test_damaged(self):
        """A block that was decoded ahead and is damaged is skipped and described as by one thread."""
        with open(self.whole, 'rb') as f:
            data = bytearray(f.read())
        for name, at in ('early', len(data) // 10), ('middle', len(data) // 2), ('late', len(data) * 9 // 10):
            damaged = os.path.join(self.dir, name)
            with open(damaged, 'wb') as f:
                f.write(data[:at] + bytes(b ^ 0x55 for b in data[at:at + 8]) + data[at + 8:])
            self.same(damaged, ['report', '--csv', '--by', 'src'], ['report', '--by', 'src'], status=1)
        cut = os.path.join(self.dir, 'cut')
        with open(cut, 'wb') as f:
            f.write(data[:len(data) * 2 // 3])
        self.same(cut, ['report', '--csv', '--by', 'src'], ['c2c', '--json'], status=1)

    def test_memory(self):
        """Too little memory for a thread's part ends with the message, not with a crash."""
        failed = set()
        for limit in '16M', '20M', '24M', '32M':
            for args in ['c2c'], ['report', '--pprof', 'OUT'], ['report', '--html', 'OUT']:
                with self.subTest(args=args, limit=limit):
                    status, _, err, written = self.output(set(CPUS[:2]), [*args, '--max-memory', limit], self.whole)
                    self.assertIn(status, (0, 1))
                    self.assertEqual(b'--max-memory' in err, status == 1, err)
                    self.assertEqual(bool(written), status == 0 and 'OUT' in args)
                    failed |= {args[-1]} if status else set()
        self.assertTrue(failed)

    def test_full_disk(self):
        status, _, err, _ = self.output(set(CPUS[:2]), ['report', '--pprof', '/dev/full'], self.whole)
        self.assertEqual(status, 1)
        self.assertIn(b'No space left on device', err)
        self.assertEqual(err.count(b'\n'), 1, err)


if __name__ == '__main__':
    unittest.main()
