# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command that `y` and the end of `top` print, run again: it shows the rows that were on the screen."""
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import ibscope
from ibscope import Busy, Cgroup, can_bpf, run
from test_top import Terminal

OK, WHY = can_bpf()

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

    def screen(self, args, keys, file=None):
        """What is on the screen after the keys, what `y` says then, and the command at the end."""
        t = Terminal([ibscope.IBSCOPE, 'top', '-i', file or self.file, '-d', '0.2', '--columns', 'samples', *args], *SIZE)
        try:
            t.until(lambda s: '[END]' in s and 'aggregated' in s)
            for key in keys:
                t.keys(key)
                t.feed(0.1)
            t.keys('y')     # what it says comes when all keys before it were taken
            t.until('ibscope top -i')
            said = [x for x in t.text().splitlines() if x.startswith('ibscope top -i')][0].rstrip()
            t.feed(0.4)
            t.until(lambda s: 'aggregated' in s and 'no samples in' not in s and (ENTER not in keys or '/' in keys or '  in ' in s.splitlines()[1]))
            shown = rows(t.text())
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

    def test_places(self):
        """Nodes and L3 complexes are lists of CPUs, of those that were selected before."""
        for by, args, keys, cpus in (('node', [], [ENTER], '0-2'), ('node', [], [DOWN, ENTER], '3'), ('node', ['-C', '1,2,3'], [ENTER], '1-2'),
                                     ('node', ['--cpu=1-3'], [DOWN, ENTER, ENTER, ENTER], '3'), ('ccx', [], [ENTER], '0-1'),
                                     ('ccx,comm', ['--sort', 'name'], [ENTER], '0-1'), ('node,ccx', ['--sort', 'name'], [DOWN, ENTER], '2')):
            with self.subTest(by=by, args=args, keys=keys):
                shown, command = self.screen(['--by', by, *args], keys)
                self.assertIn(f' -C {cpus} ', command)
                self.assertEqual(command.count(' -C '), 1, command)
                self.assertNotIn('# not only', command)
                self.assertEqual(self.again(command), shown, command)

    def test_symbols(self):
        """Functions of all, and of a thread."""
        file = os.path.join(self.dir.name, 'annotated.ibs')
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_annotated'), file], check=True, stdout=subprocess.DEVNULL)
        for by, keys, words in (('symbol', [], ' --by symbol '), ('tid', [ENTER, 'c', 'c', 'c'], ' -t 100 ')):
            with self.subTest(by=by):
                shown, command = self.screen(['--by', by], keys, file)
                self.assertIn(words, command)
                self.assertIn(' --by symbol ', command)
                self.assertRegex(shown[0], r'^annotated  \d+$')
                self.assertEqual(self.again(command), shown, command)

    def test_function(self):
        """The instructions of a function, of all threads and of one, by the options that annotate takes."""
        file = os.path.join(self.dir.name, 'function.ibs')
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_annotated'), file], check=True, stdout=subprocess.DEVNULL)
        for args, keys, given in ((['--by', 'symbol', '--sort', 'samples', '--metric', 'dc_miss_lat', '-C0-1', '--speed', '1e6'], '',
                                   ' --metric dc_miss_lat -C0-1'),
                                  (['--by', 'tid', '--columns', 'samples', '--filter', 'dc_miss_lat >= 0 || ld_op == 1', '--pid=!5'], ENTER + 'ccc',
                                   " --filter 'dc_miss_lat >= 0 || ld_op == 1' '--pid=!5' -t 100")):
            with self.subTest(args=args):
                t = Terminal([ibscope.IBSCOPE, 'top', '-i', file, '-d', '0.2', *args], *SIZE)
                try:
                    t.until(lambda s: '[END]' in s and 'aggregated' in s)
                    t.keys(keys)
                    t.until(lambda s: re.search(r'(?m)^annotated ', s))
                    t.keys(ENTER)
                    screen = t.until('Enter, Esc back')
                    total, = re.findall(r'(\d+) samples of ops in it', screen)
                    t.keys('y')
                    t.until('ibscope annotate -i')
                    t.keys('q')
                    self.assertEqual(t.wait(), 0)
                    command = t.all[t.all.rindex('ibscope annotate -i'):].splitlines()[0]
                finally:
                    t.close()
                self.assertEqual(command, f'ibscope annotate -i {file}{given} annotated')
                p = run(*shlex.split(command)[1:])
                self.assertEqual(p.returncode, 0, (command, p.stderr))
                self.assertIn(f', {total} in annotated; ', p.stdout)

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


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Live(unittest.TestCase):
    """On a running system, whose samples never come again: the same processes."""

    def setUp(self):
        self.cgroup = Cgroup(f'ibscope-test-top-{os.getpid()}')
        self.addCleanup(self.cgroup.remove)
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        self.name = f'busy{os.getpid()}'[:15]    # of processes, on a machine that runs others
        link = os.path.join(d.name, self.name)
        os.symlink(sys.executable, link)
        with unittest.mock.patch('sys.executable', link):
            self.inside, self.outside = Busy(0, self.cgroup, share=0.5), Busy(max(os.sched_getaffinity(0)), share=0.5)
        for b in self.inside, self.outside:
            self.addCleanup(b.stop)

    def pids(self, text):
        return set(map(int, re.findall(rf'(?m)^(\d+) +{self.name}', text)))

    def zoom(self, args, keys, want):
        """The command after a zoom to processes; when it runs again, too, those of the test on the screen become what want(command) says."""
        t = Terminal([ibscope.IBSCOPE, 'top', '--source', 'sim', '-d', '0.5', '-c', '100000', '--columns', 'samples', *args], *SIZE)
        try:
            t.until('aggregated')
            t.keys(keys + f'/\x15{self.name}\r')
            t.keys('y')
            t.until(lambda s: 'by process' in s and 'ibscope top --source sim' in s)
            said = [x for x in t.text().splitlines() if x.startswith('ibscope top --source sim')][0]
            t.until(lambda s: self.pids(s) == want(said))
            t.keys('q')
            self.assertEqual(t.wait(), 0)
            command = t.all[t.all.rindex('ibscope top --source sim'):].splitlines()[0]
        finally:
            t.close()

        def again():
            p = run(*shlex.split(command, comments=True)[1:], '--once', '--size', '%dx%d' % SIZE, env={**os.environ, 'LC_ALL': 'C.UTF-8'})
            self.assertEqual(p.returncode, 0, (command, p.stderr))
            return self.pids(p.stdout) == want(command)
        ibscope.until(again)
        return command

    def test_rows(self):
        """A cgroup; what is in no container: directly in the root cgroup, or in all cgroups of none."""
        host = '/host, no\r\r'
        for args, keys, words, want in ((['--by', 'cgroup'], f'/{self.cgroup.path}\r\r', f' --cgroup {self.cgroup.path} ', [self.inside]),
                                        ([], host, " --cgroup / --cgroup '!/*' ", [self.outside]),
                                        (['--by', 'container'], host, " --container '!*' ", [self.inside, self.outside])):
            with self.subTest(args=args):
                for _ in range(5):
                    command = self.zoom(args, keys, lambda _: {b.pid for b in want})
                    # a cgroup of others that is gone already may have been a container
                    if '# not only' not in command:
                        break
                self.assertIn(words, command)

    def test_places(self):
        """A CPU, and all CPUs of a node or an L3 complex."""
        last = max(os.sched_getaffinity(0))

        def want(command):
            cpus = [part.split('-') for part in re.search(r' -C (\S+)', command)[1].split(',')]
            return {self.inside.pid} | {self.outside.pid for part in cpus if int(part[0]) <= last <= int(part[-1])}

        for by, cs in ('cpu', 0), ('node', 5), ('ccx', 6):
            with self.subTest(by=by):
                command = self.zoom(['--by', by, '--sort', 'name'], ENTER + 'c' * cs, want)
                self.assertIn(' -C 0 ' if by == 'cpu' else ' -C 0', command)

    def test_late(self):
        """After an interval that took long comes one that is long enough to have rows."""
        t = Terminal([ibscope.IBSCOPE, 'top', '--source', 'sim', '-d', '0.5', '-c', '100000', '--by', 'cpu'], *SIZE)
        try:
            t.until('aggregated')
            os.killpg(t.p.pid, signal.SIGSTOP)
            time.sleep(1.6)
            os.killpg(t.p.pid, signal.SIGCONT)
            t.until(lambda s: re.search(r'every 0.5 s \((1\.[4-9]|[2-9]\.\d) s\)', s))
            screens = []
            for _ in range(12):
                t.feed(0.1)
                screens.append(t.text())
        finally:
            t.close()
        self.assertFalse([s for s in screens if re.search(r'every 0.5 s \(0\.[01] s\)', s)])

    def test_answer(self):
        """A warning of what a key did waits until the next key, while the line says what that key led to."""
        blind = '''mount -t tmpfs tmpfs /run && mkdir -p /run/containerd/io.containerd.runtime.v2.task && chmod 0 /run/containerd &&
chown nobody /run/containerd && exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"'''
        t = Terminal(['unshare', '--mount', 'sh', '-c', blind, 'sh', ibscope.IBSCOPE, 'top', '--source', 'sim', '-d', '0.5', '-c', '100000',
                      '--by', 'container', '--sort', 'name'], *SIZE)
        command, warning = 'ibscope top --source sim', 'warning: containers may lack their names'
        try:
            t.until('aggregated')
            t.keys(ENTER + 'y')
            t.until(lambda s: 'by process' in s and command in s)
            for _ in range(12):     # two intervals
                t.feed(0.1)
                self.assertIn(command, t.text())
            t.keys('j')
            t.until(warning)
            self.assertNotIn(command, t.text())
        finally:
            t.close()

    def test_collector(self):
        """No option selects from a collector's counters."""
        pins = f'/sys/fs/bpf/ibscope-test-top-{os.getpid()}'
        self.addCleanup(subprocess.run, ['rm', '-rf', pins])
        c = ibscope.Collector(pins, '--control', 'none', '--by', 'cgroup,pid,comm', '-c', '200000', '--max-overhead', 'off')
        self.addCleanup(c.stop)
        t = Terminal([ibscope.IBSCOPE, 'top', '-d', '0.5', '--pin-dir', pins], *SIZE)
        self.addCleanup(t.close)
        t.until('aggregated')
        t.keys(ENTER)
        t.until('by process')
        t.keys('q')
        self.assertEqual(t.wait(), 0)
        command = t.all[t.all.rindex('ibscope top'):].splitlines()[0]
        self.assertRegex(command, r' --by pid,comm -d 0.5  # not only of .*, which no option selects from a collector$')
        p = run(*shlex.split(command, comments=True)[1:], '--once')
        self.assertEqual(p.returncode, 0, (command, p.stderr))
        self.assertRegex(p.stdout, r'(?m)^by process .*  collector \d+')
        p = run('top', '--pin-dir', pins, '--by', 'cpu', '--once')
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn('--by cpu: not counted; available keys: cgroup, ', p.stderr)


if __name__ == '__main__':
    unittest.main()
