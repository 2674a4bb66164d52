# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command that `y` and the end of `top` print, run again: it shows the rows that were on the screen."""
import os
import re
import shlex
import subprocess
import tempfile
import unittest

import ibscope
from test_top import Terminal

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SIZE = 100, 40
DOWN, ENTER = '\x1bOB', '\r'


def rows(text):
    """Names and figures of the table; its lines begin below the heading and end with a blank one."""
    lines = [x.rstrip() for x in text.splitlines()]
    first, head = next((i, m) for i, x in enumerate(lines) if (m := re.search(r'\bSAMPLES\b', x)))
    end = next(i for i, x in enumerate(lines) if i > first and not x)
    return [re.sub(r' {2,}', '  ', x[:head.end()]) for x in lines[first + 1:end]]


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'samples.ibs')
        subprocess.run([MAKE, cls.file, '3000'], check=True, stdout=subprocess.DEVNULL)

    def screen(self, args, keys):
        """What is on the screen after the keys, what `y` says then, and the command at the end."""
        t = Terminal([ibscope.IBSCOPE, 'top', '-i', self.file, '-d', '0.2', '--columns', 'samples', *args], *SIZE)
        try:
            t.until(lambda s: '[END]' in s and 'aggregated' in s)
            for key in keys:
                t.keys(key)
                t.feed(0.1)
            t.feed(0.4)
            t.until(lambda s: 'aggregated' in s and 'no samples in' not in s and (ENTER not in keys or '/' in keys or '  in ' in s.splitlines()[1]))
            shown = rows(t.text())
            t.keys('y')
            t.until('ibscope top -i')
            said = [x for x in t.text().splitlines() if x.startswith('ibscope top -i')][0].rstrip()
            t.keys('q')
            self.assertEqual(t.wait(), 0)
            command = [x for x in re.split(r'[\r\n]+', t.all) if 'ibscope top -i' in x][-1]
            command = command[command.index('ibscope top -i'):]
        finally:
            t.close()
        self.assertTrue(command.startswith(said[:SIZE[0] - 1]), (said, command))
        return shown, command

    def again(self, command):
        words = shlex.split(command, comments=True)
        p = subprocess.run([ibscope.IBSCOPE, *words[1:], '--once', '--size', '%dx%d' % SIZE], capture_output=True, text=True,
                           env={**os.environ, 'LC_ALL': 'C.UTF-8'}, timeout=60)
        self.assertEqual(p.returncode, 0, (command, p.stderr))
        return rows(p.stdout)

    def test_file(self):
        """A recording without -i, as in the commands that read one."""
        size = '--size', '%dx%d' % SIZE
        of = [subprocess.run([ibscope.IBSCOPE, 'top', '--once', *size, *words], capture_output=True, text=True, check=True).stdout
              for words in ([self.file], ['-i', self.file])]
        self.assertEqual(*of)
        self.assertIn('seen ', of[0])

    def test_rows(self):
        """Each kind of row, and within its first two; with what was selected before, a text and an order."""
        views = [], ['--by', 'cgroup'], ['--by', 'container'], ['--by', 'pod'], ['--by', 'comm'], ['--by', 'cpu'], ['--by', 'pid,comm']
        given = [], ['--container', '*'], ['--filter', 'dc_miss_lat > 100 || l2_miss == 1', '--comm=!none']
        done = 0
        for view in views:
            for n in range(3) if view != ['--by', 'pid,comm'] else (0, 1):
                for select in given if n == 1 else given[:1]:
                    keys = [DOWN] * (n - 1) + [ENTER] * (n > 0)
                    with self.subTest(view=view, n=n, select=select):
                        shown, command = self.screen([*view, *select], keys)
                        if '#' in command.replace('/#', ''):
                            self.assertRegex(command, r'  # not only of .*, which no option selects$')
                            continue
                        self.assertEqual(self.again(command), shown, command)
                        done += n > 0
        self.assertGreater(done, 8)

    def test_deep(self):
        """A row within a row: the inner option is enough."""
        shown, command = self.screen(['--by', 'pod'], [DOWN, ENTER, ENTER])
        self.assertEqual(command.count('--container'), 1, command)
        self.assertEqual(self.again(command), shown)

    def test_some_cpus(self):
        """What is read again for other rows ends where it ended before, also if the last sample is not selected."""
        shown, _ = self.screen(['-C', '0,1,2'], [ENTER])
        self.assertRegex(shown[-1], r'^total  \d{3}$')

    def test_order(self):
        for keys in ('s',), ('r',), ('S', 'r'), ('/', 'd', 'b', ENTER), ('/', ' ', ENTER):
            for view in [], ['--by', 'comm']:
                with self.subTest(keys=keys, view=view):
                    shown, command = self.screen(view, keys)
                    self.assertEqual(self.again(command), shown, command)


if __name__ == '__main__':
    unittest.main()
