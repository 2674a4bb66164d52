# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings through pipes: every command that reads or writes them, and no terminal at an end."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
READERS = [['report'], ['report', '--csv', '--by', 'comm,cgroup'], ['report', '--folded', 'samples'],
           ['dump', '--json', '--events'], ['replay', '--csv'], ['export', '-o', '-'],
           ['report', '--pprof', '-', '--by', 'src'], ['report', '--html', '-']]
WRITERS = [['export', '-o', '-'], ['export', '--perf-data', '-'], ['report', '--pprof', '-'], ['report', '--html', '-']]


class Pipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'a.ibs')
        subprocess.run([MAKE, cls.file, '3000', 'stacks'], check=True)

    def out(self, args, **kw):
        p = subprocess.run([ibscope.IBSCOPE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_input(self):
        with open(self.file, 'rb') as f:
            bytes_ = f.read()
        for args in READERS:
            with self.subTest(args=args):
                want = self.out([*args, '-i', self.file], stdin=subprocess.DEVNULL)
                for name in (['-'], ['-i', '-']):
                    got = self.out([*args, *name], input=bytes_)
                    if '--pprof' in args:   # compressed, with the name of the file in it
                        self.assertEqual(got[:2], want[:2])
                    else:   # commands of a page read it again as "-"
                        got = got.replace(b'standard input', self.file.encode())
                        self.assertEqual(got.replace(b'"-"', f'"{self.file}"'.encode()) if '--html' in args else got, want)

    def test_fifo(self):
        """It is opened once: a second time there would be no writer."""
        fifo = os.path.join(self.dir.name, 'fifo')
        os.mkfifo(fifo)
        for args in READERS:
            if '--pprof' in args:
                continue
            with self.subTest(args=args), subprocess.Popen(['dd', f'if={self.file}', f'of={fifo}', 'status=none']) as writer:
                got = self.out([*args, fifo], stdin=subprocess.DEVNULL, timeout=60)
                self.assertEqual(writer.wait(), 0)
                want = self.out([*args, self.file], stdin=subprocess.DEVNULL)
                self.assertEqual(got.replace(fifo.encode(), self.file.encode()), want)

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_record(self):
        p = subprocess.run(f'{ibscope.IBSCOPE} record --source sim -c 1000000 -o - -- sleep 0.2 | '
                           f'{ibscope.IBSCOPE} report -v -i -', shell=True, capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('standard input (ibscope 1), complete', p.stdout)

    def test_reader_that_ends(self):
        for args in WRITERS:
            with self.subTest(args=args):
                p = subprocess.run(f'set -o pipefail; {ibscope.IBSCOPE} {" ".join(args)} {self.file} 2>/dev/null | true',
                                   shell=True, executable='/bin/bash', capture_output=True, text=True)
                self.assertEqual(p.stdout + p.stderr, '')
                self.assertIn(p.returncode, (0, 141))

    def on_terminal(self, *args):
        p = subprocess.run(['script', '-qec', ' '.join([ibscope.IBSCOPE, *args]), '/dev/null'],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn('terminal', p.stdout)
        self.assertEqual(p.stdout.count('\n'), 1)

    def test_terminal(self):
        for args in WRITERS:
            with self.subTest(args=args):
                self.on_terminal(*args, self.file)
        for args in (['report'], ['c2c'], ['numa'], ['dump'], ['replay'], ['export', '-o', '/dev/null']):
            with self.subTest(args=args):
                self.on_terminal(*args, '-i', '-')

    def test_page_has_its_own_views(self):
        for args in (['--by', 'comm'], ['--sort', 'samples'], ['--columns', 'p99'], ['--top', '3'], ['--min-samples', '9']):
            p = subprocess.run([ibscope.IBSCOPE, 'report', '--html', '-', *args, self.file], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout), (2, ''))
            self.assertIn('--html has fixed views', p.stderr)

    def test_packed(self):
        for program, magic in ('zstd', b'\x28\xb5\x2f\xfd'), ('gzip', b'\x1f\x8b'), ('xz', b'\xfd7zXZ\0'):
            path = os.path.join(self.dir.name, program)
            with open(path, 'wb') as f:
                f.write(magic + bytes(100))
            p = subprocess.run([ibscope.IBSCOPE, 'report', path], capture_output=True, text=True)
            self.assertEqual(p.returncode, 1)
            self.assertIn(f'{path} is compressed with {program}; unpack it, or pipe it: {program} -dc {path} |', p.stderr)

    def test_empty(self):
        p = subprocess.run([ibscope.IBSCOPE, 'report', '-'], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn('standard input: it is empty', p.stderr)


if __name__ == '__main__':
    unittest.main()
