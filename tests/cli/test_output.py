# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Output that cannot be written: one error, and exit status 1."""
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

EXPORTER = os.path.join(ibscope.SAN, 'ibscope-exporter')
SHOP = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_shop')
# of a recording
VIEWS = ('report', 'numa', 'replay', 'c2c', 'dump', 'annotate', 'report --json', 'report --csv', 'replay --json', 'dump --json',
         'top --once -i')
PLAIN = ('--help', '--version', 'help filter', 'hist --help', 'report --help', 'doctor', 'doctor --json',
         'hist --explain=zen4:6.12')


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'shop.ibs')
        subprocess.run([SHOP, cls.file, '500'], check=True)

    def refused(self, command, to, says, name='ibscope'):
        with self.subTest(command=command, to=to):
            p = subprocess.run(f'exec {command} {to}', shell=True, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               text=True, timeout=60)
            errors = [line for line in p.stderr.splitlines() if 'error' in line]
            self.assertEqual((p.returncode, errors), (1, [f'{name}: error: cannot write the output: {says}']), p.stderr)

    def test_stdout(self):
        for to, says in (('>/dev/full', 'No space left on device'), ('>&-', 'Bad file descriptor')):
            for args in VIEWS:
                self.refused(f'{ibscope.IBSCOPE} {args} {self.file}', to, says)
            for args in PLAIN:
                self.refused(f'{ibscope.IBSCOPE} {args}', to, says)
            for args in ('--help', '--list-metrics'):
                self.refused(f'{EXPORTER} {args}', to, says, 'ibscope-exporter')

    def test_files_are_not_mixed(self):
        """A file that is opened while standard output is closed does not get what is printed."""
        html = os.path.join(self.dir.name, 'x.html')
        p = subprocess.run(f'exec {ibscope.IBSCOPE} report --html {html} {self.file} >&- 2>&- <&-', shell=True, timeout=60)
        self.assertEqual(p.returncode, 0)
        with open(html, encoding='utf-8') as f:
            self.assertTrue(f.read(15).startswith('<!doctype html>'))

    def test_progress(self):
        """How far a recording is read, on a terminal that can erase it, and never in what is printed."""
        big = os.path.join(self.dir.name, 'big.ibs')
        subprocess.run([os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording'), big, '3000000'], check=True)
        for term, shown in (('xterm', True), ('dumb', False)):
            ours, theirs = pty.openpty()
            p = subprocess.run([ibscope.IBSCOPE, 'report', '--by', 'pid,symbol', big], stdout=subprocess.PIPE, stderr=theirs,
                               env={**os.environ, 'TERM': term}, stdin=subprocess.DEVNULL)
            said = ibscope.read_terminal(ours, theirs)
            self.assertEqual(p.returncode, 0)
            self.assertNotIn(b'reading', p.stdout)
            if shown:
                self.assertRegex(said, r'^(\r\x1b\[Kreading: \d+%)+\r\x1b\[K')
            self.assertEqual('reading: ' in said, shown, said)
            self.assertNotRegex(said.split('\r\x1b[K')[-1], 'reading')

    def test_progress_killed(self):
        """Nothing of the line is left, also where the terminal wrote ^C."""
        big = os.path.join(self.dir.name, 'big.ibs')
        subprocess.run([os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording'), big, '3000000'], check=True)
        for sig in signal.SIGINT, signal.SIGTERM:
            ours, theirs = pty.openpty()
            p = subprocess.Popen([ibscope.IBSCOPE, 'report', '--by', 'pid,symbol', big], stdout=subprocess.PIPE, stderr=theirs,
                                 env={**os.environ, 'TERM': 'xterm'}, stdin=subprocess.DEVNULL)
            said = b''
            while b'reading: ' not in said:
                said += os.read(ours, 65536)
            os.write(theirs, b'^C')
            p.send_signal(sig)
            self.assertEqual((p.communicate()[0], p.returncode), (b'', -sig))
            said = said.decode() + ibscope.read_terminal(ours, theirs)
            self.assertTrue(said.endswith('\r\x1b[K'), said)

    def results(self):
        """Commands that write a result into `out` of a directory."""
        file = self.file
        return (['report', file, '--html'], ['report', file, '--pprof'], ['annotate', '-i', file, '--html'],
                ['diff', file, file, '--html'], ['merge', file, file, '-o'], ['export', file, '-o'])

    def keeps(self, args, directory, status, **kw):
        path = os.path.join(directory, 'out')
        with open(path, 'w') as f:
            f.write('before')
        p = subprocess.run([ibscope.IBSCOPE, *args, path], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)
        with self.subTest(args=args), open(path) as f:
            self.assertEqual(p.returncode, status, p.stderr)
            self.assertEqual((f.read(), os.listdir(directory)), ('before', ['out']))
        return p.stderr

    def test_killed_while_writing(self):
        """The file of before stays, and nothing is left beside it."""
        with tempfile.TemporaryDirectory() as directory:
            def limit():
                resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
            for args in self.results():
                self.keeps(args, directory, -signal.SIGXFSZ, preexec_fn=limit)
            for sig in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
                for ms in range(0, 100, 5):
                    with open(os.path.join(directory, 'out'), 'w') as f:
                        f.write('before')
                    p = subprocess.Popen([ibscope.IBSCOPE, *self.results()[0], os.path.join(directory, 'out')],
                                         stderr=subprocess.DEVNULL)
                    try:
                        p.wait(ms / 1000)
                    except subprocess.TimeoutExpired:
                        p.send_signal(sig)
                        p.wait()
                    with open(os.path.join(directory, 'out')) as f:
                        text = f.read()
                    # a signal may also come after the file is in place
                    self.assertTrue(text.rstrip().endswith('</html>') or p.returncode and text == 'before', text[-100:])
                    self.assertEqual(os.listdir(directory), ['out'])

    @unittest.skipUnless(os.geteuid() == 0, 'mounting needs root')
    def test_full_disk(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4k', 'none', directory], check=True)
            try:
                for args in self.results():
                    self.assertIn('No space left on device', self.keeps(args, directory, 1))
            finally:
                subprocess.run(['umount', directory], check=True)

    def test_exporter_name(self):
        p = subprocess.run([EXPORTER, '--foo'], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr), (2, "ibscope-exporter: error: unknown option '--foo'; see --help\n"))

    def test_files_before_sampling(self):
        for path in ('/no/such/x', '/'):
            p = ibscope.run('record', '--source', 'sim', '-c', '1000000', '-o', path, '--', 'true')
            self.assertEqual((p.returncode, p.stderr.count('\n')), (1, 1), p.stderr)
            self.assertIn(path, p.stderr)

    def test_terminal_before_sampling(self):
        p = subprocess.run(['script', '-qec', f'{ibscope.IBSCOPE} top --source sim -c 10000000', '/dev/null'],
                           env={**os.environ, 'TERM': 'nonsense'}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual((p.returncode, p.stdout), (
            1, "ibscope: error: unknown terminal type 'nonsense': set TERM to one that is in terminfo, such as vt100\n"))


if __name__ == '__main__':
    unittest.main()
