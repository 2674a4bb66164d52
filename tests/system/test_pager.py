# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Output that does not fit the terminal goes through the pager without loss."""
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

import ibscope
from test_top import Terminal

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
OK, WHY = ibscope.can_bpf()
WIDE = 200


class Pager(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'x.ibs')
        cls.pager = os.path.join(cls.dir.name, 'pager')
        cls.seen = os.path.join(cls.dir.name, 'seen')
        subprocess.run([MAKE, cls.file, '3000'], check=True)
        with open(cls.pager, 'w') as f:
            f.write('#!/bin/sh\n(echo "LESS=$LESS"; cat) > "$0.new" && mv "$0.new" "${0%pager}seen"\n')
        os.chmod(cls.pager, 0o755)

    def run_on(self, *argv, height=24, width=WIDE, unset=(), **env):
        """What a program prints on a terminal."""
        fd, tty = os.openpty()
        fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack('HHHH', height, width, 0, 0))
        if os.path.exists(self.seen):
            os.remove(self.seen)
        env = {**os.environ, 'TERM': 'xterm', 'NO_COLOR': '1', 'IBSCOPE_PAGER': self.pager, **env}
        p = subprocess.Popen([ibscope.IBSCOPE, *argv], stdin=tty, stdout=tty, stderr=subprocess.PIPE,
                             env={k: v for k, v in env.items() if k not in unset}, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(tty)
        self.addCleanup(p.kill)
        out = b''
        while True:
            try:
                out += os.read(fd, 65536)
            except OSError:    # nobody has it open any more
                break
        os.close(fd)
        self.assertEqual((p.wait(), p.stderr.read().count(b'error')), (0, 0), out)
        p.stderr.close()
        return out.decode().replace('\r\n', '\n')

    def paged(self):
        if not os.path.exists(self.seen):
            return None
        with open(self.seen) as f:
            return f.read()

    def test_words_are_wrapped(self):
        """Lines of words are broken between words; those of tables never are too wide."""
        for args in ('report', self.file), ('report', '-v', '--by', 'comm', '--top', '5', self.file), ('diff', self.file, self.file):
            p = subprocess.run([ibscope.IBSCOPE, *args], capture_output=True, text=True, env={**os.environ, 'COLUMNS': '70'})
            shown = self.run_on(*args, width=70, height=200)
            lines = [line for line in shown.splitlines() if not line.startswith('Next: ')]
            self.assertGreater(max(map(len, p.stdout.splitlines())), 70)
            self.assertLessEqual(max(map(len, lines)), 70, shown)
            self.assertEqual(' '.join(lines).split(), p.stdout.split())
            self.assertEqual([x for x in lines if x.startswith('total')], [x for x in p.stdout.splitlines() if x.startswith('total')])

    def report(self, *args, **kw):
        return self.run_on('report', '--by', 'ip', *args, self.file, **kw)

    def whole(self, top):
        """The same in a pipe, and what only a terminal gets."""
        text = ibscope.run('report', '--by', 'ip', '--top', top, self.file,
                           env={**os.environ, 'COLUMNS': str(WIDE), 'NO_COLOR': '1'}).stdout
        return text + ''.join(f'Next: ibscope report {self.file} --by {by}\n' for by in ('symbol,src', 'type,field'))

    def test_long(self):
        whole = self.whole('60')
        self.assertGreater(len(whole.splitlines()), 60)
        self.assertEqual(self.report('--top', '60'), '')
        self.assertEqual(self.paged(), 'LESS=FRX\n' + whole)
        self.report('--top', '60', LESS='S')
        self.assertTrue(self.paged().startswith('LESS=S\n'))

    def test_fits(self):
        whole = self.whole('5')
        lines = len(whole.splitlines())
        for height in lines + 1, lines:
            self.assertEqual(self.report('--top', '5', height=height), whole if height > lines else '')
            self.assertEqual(self.paged() is None, height > lines)
        # lines that are wrapped count as several
        self.report('--top', '5', height=lines + 1, width=60)
        self.assertIsNotNone(self.paged())
        # by default as many rows as fit
        self.report()
        self.assertIsNone(self.paged())

    def test_which(self):
        for env in {'IBSCOPE_PAGER': ''}, {'IBSCOPE_PAGER': 'cat'}, {'IBSCOPE_PAGER': '', 'PAGER': self.pager}:
            self.assertIn('\ntotal ', self.report('--top', '60', **env))
            self.assertIsNone(self.paged())
        self.assertEqual(self.report('--top', '60', PAGER=self.pager, unset=['IBSCOPE_PAGER']), '')
        self.assertIn('\ntotal ', self.paged())

    def test_of_sudo(self):
        """less offers a shell, which is more than a user was allowed who may run this program as root."""
        for env, want in ({}, '-'), ({'SUDO_UID': '1000'}, '1'):
            out = self.report('--top', '60', IBSCOPE_PAGER='echo "<${LESSSECURE--}>"', unset=['SUDO_UID'][len(env):], **env)
            self.assertIn(f'<{want}>', out)

    def test_nothing_is_lost(self):
        """Of more than a pipe holds, too."""
        for top in '60', '2000':
            whole = self.whole(top)
            for pager in ('/no/such/pager', 'exit 3', 'kill -9 $$', 'head -c 100 >/dev/null; exit 1'):
                with self.subTest(pager=pager, top=top):
                    self.assertTrue(self.report('--top', top, IBSCOPE_PAGER=pager).endswith(whole))
            self.assertEqual(self.report('--top', top, IBSCOPE_PAGER='head -n 3'),
                             ''.join(whole.splitlines(True)[:3]))

    def test_not_for_programs(self):
        for form in '--csv', '--json':
            self.assertIn('samples', self.report(form, '--top', '60'))
            self.assertIsNone(self.paged())

    def test_in_the_background(self):
        """Where a pager would be stopped."""
        t = Terminal(['bash', '--norc', '-i'], WIDE, PS1='shell> ', IBSCOPE_PAGER=self.pager)
        self.addCleanup(t.close)
        t.until('shell>')
        t.keys(f'{ibscope.IBSCOPE} report --by ip --top 60 {self.file} & wait; echo end$((40 + 2))\n')
        t.until('end42')
        self.assertIn('total  ', t.all)

    @unittest.skipUnless(shutil.which('less'), 'less is not installed')
    def test_less(self):
        t = Terminal([ibscope.IBSCOPE, 'report', '--by', 'ip', '--top', '60', self.file], WIDE, IBSCOPE_PAGER='less')
        self.addCleanup(t.close)
        t.until(lambda s: s.splitlines()[-1:] == [':'])
        t.keys('\x03')    # ends neither
        t.until(lambda s: t.keys('G') or '(END)' in s)
        t.keys('q')
        self.assertEqual(t.wait(), 0)
        self.assertTrue(t.echoes())

    def test_replay(self):
        self.assertEqual(self.run_on('replay', '--histogram', self.file), '')
        self.assertIn('distribution', self.paged())

    @unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
    def test_hist(self):
        ibscope.keep_busy(self)
        for args, pages in (['0.5', '1'], True), (['-a', '--', 'sleep', '0.5'], True), (['0.3', '2'], False):
            with self.subTest(args=args):
                out = self.run_on('hist', '--source', 'sim', '--histogram', '-c', '100000', *args)
                self.assertEqual('distribution' in out, not pages)
                self.assertEqual('distribution' in (self.paged() or ''), pages)


if __name__ == '__main__':
    unittest.main()
