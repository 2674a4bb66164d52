# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The live screen on a pseudo-terminal: keys, resizes, signals, and the shell's screen afterwards."""
import codecs
import collections
import fcntl
import json
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import clock
import ibscope
from ibscope import run

OK, WHY = ibscope.can_bpf()
SECONDS = 30    # for what a loaded host does late
CSI = re.compile(r'\x1b\[([?>=]?)([\d;]*)([@-~])')


class Terminal:
    """What an xterm would show: as much of it as curses uses."""

    def __init__(self, argv, width=80, height=24, **env):
        self.width, self.height = width, height
        self.clear()
        self.rest, self.all = '', ''
        self.decode = codecs.getincrementaldecoder('utf-8')('replace').decode   # a read may end within a character
        self.fd, tty = os.openpty()
        self.size(width, height)
        env = {**os.environ, 'TERM': 'xterm-256color', 'LC_ALL': 'C.UTF-8', **env}
        self.p = subprocess.Popen(argv, stdin=tty, stdout=tty, stderr=tty, env=env, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.tty = tty    # kept, for its modes

    def clear(self):
        self.row = self.column = 0
        self.cell = [[' '] * self.width for _ in range(self.height)]
        self.region = 0, self.height    # lines that scroll

    def scroll(self, n):
        """Up by @n lines, or down."""
        first, end = self.region
        lines = self.cell[first:end]
        empty = [[' '] * self.width for _ in range(min(abs(n), len(lines)))]
        self.cell[first:end] = lines[n:] + empty if n > 0 else empty + lines[:n]

    def size(self, width, height):
        self.width, self.height = width, height
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', height, width, 0, 0))
        self.clear()

    def put(self, c):
        if c == '\r':
            self.column = 0
        elif c == '\n':
            if self.row == self.region[1] - 1:
                self.scroll(1)
            else:
                self.row = min(self.row + 1, self.height - 1)
        elif c == '\b':
            self.column = max(self.column - 1, 0)
        elif c == '\t':
            self.column = min(self.column // 8 * 8 + 8, self.width - 1)
        elif c >= ' ' and self.row < self.height and self.column < self.width:
            self.cell[self.row][self.column] = c
            self.column += 1

    def control(self, private, text, final):
        n = [int(x or 0) for x in text.split(';')]
        one = n[0] or 1
        # after a resize, what is on its way is for the old size
        self.row, self.column = min(self.row, self.height - 1), min(self.column, self.width - 1)
        if final in 'Hf':
            self.row, self.column = one - 1, (n + [1])[1] - 1 if len(n) > 1 else 0
        elif final == 'd':
            self.row = one - 1
        elif final == 'G':
            self.column = one - 1
        elif final in 'ABCD':
            self.row += {'A': -one, 'B': one}.get(final, 0)
            self.column += {'C': one, 'D': -one}.get(final, 0)
        elif final == 'J':
            first = 0 if n[0] == 2 else self.row + 1
            for y in range(first, self.height):
                self.cell[y] = [' '] * self.width
            if n[0] == 0:
                self.cell[self.row][self.column:] = [' '] * (self.width - self.column)
        elif final == 'K':
            a, b = (0, self.column + 1) if n[0] == 1 else (self.column, self.width)
            self.cell[self.row][a:b] = [' '] * (b - a)
        elif final == 'X':
            b = min(self.column + one, self.width)
            self.cell[self.row][self.column:b] = [' '] * (b - self.column)
        elif final == 'b':
            for _ in range(one):
                self.put(self.cell[self.row][self.column - 1])
        elif final == 'P':
            line = self.cell[self.row]
            self.cell[self.row] = line[:self.column] + line[self.column + one:] + [' '] * one
        elif final == '@':
            line = self.cell[self.row]
            self.cell[self.row] = (line[:self.column] + [' '] * one + line[self.column:])[:self.width]
        elif final == 'r':
            self.region = one - 1, min((n + [0])[1] or self.height, self.height)
            self.row = self.column = 0
        elif final in 'ST':
            self.scroll(one if final == 'S' else -one)
        elif final in 'LM':
            lines = [[' '] * self.width for _ in range(one)]
            below = self.cell[self.row:]
            below = lines + below if final == 'L' else below[one:] + lines
            self.cell = self.cell[:self.row] + below[:self.height - self.row]

    def feed(self, seconds):
        end = time.time() + seconds
        while True:
            if not select.select([self.fd], [], [], max(0, end - time.time()))[0]:
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            data = self.decode(data)
            self.all += data
            data = self.rest + data
            i = 0
            while i < len(data):
                m = CSI.match(data, i)
                if m:
                    self.control(*m.groups())
                    i = m.end()
                elif data[i] == '\x1b':
                    if len(data) < i + 3 or (data[i + 1] == '[' and len(data) - i < 20):
                        break
                    if data[i + 1] == 'M' and self.row == self.region[0]:
                        self.scroll(-1)
                    elif data[i + 1] == 'M':
                        self.row = max(self.row - 1, 0)
                    i += 3 if data[i + 1] in '()' else 2
                else:
                    self.put(data[i])
                    i += 1
            self.rest = data[i:]
            if time.time() > end:
                return

    def text(self):
        return '\n'.join(''.join(line).rstrip() for line in self.cell)

    def until(self, what):
        """Wait for a text, or for what a function says of the screen."""
        end = time.time() + SECONDS
        while not (what(self.text()) if callable(what) else what in self.text()):
            if time.time() > end:
                raise AssertionError(f'{what!r} is not on the screen:\n{self.text()}')
            self.feed(0.1)
        return self.text()

    def keys(self, text):
        os.write(self.fd, text.encode())

    def echoes(self):
        flags = termios.tcgetattr(self.tty)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def wait(self):
        end = time.time() + SECONDS
        while self.p.poll() is None and time.time() < end:
            self.feed(0.1)
        self.feed(0.1)
        return self.p.wait(1)

    def close(self):
        if self.p.poll() is None:
            os.killpg(self.p.pid, signal.SIGKILL)
            self.p.wait()
        os.close(self.fd)
        os.close(self.tty)


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as f:
        return [int(x) for x in f.read().split()]


def private_bytes(pid):
    """Of memory that is this process's alone."""
    with open(f'/proc/{pid}/status') as f:
        return sum(int(n) << 10 for n in re.findall(r'^RssAnon:\s+(\d+)', f.read(), re.M))


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Top(unittest.TestCase):
    def start(self, *args, width=80, height=24, **kw):
        t = Terminal([ibscope.IBSCOPE, 'top', '--source', 'sim', '-d', '0.2', *args], width, height, **kw)
        self.addCleanup(t.close)
        return t

    def test_keys(self):
        ibscope.keep_busy(self)
        with tempfile.TemporaryDirectory() as d:
            t = Terminal([ibscope.IBSCOPE, 'top', '--source', 'sim', '-d', '0.2', '-c', '100000'])
            self.addCleanup(t.close)
            os.makedirs(d, exist_ok=True)
            t.until('MISS CYC/s')
            screen = t.until('aggregated')
            for always in ('SIMULATED', 'cost', 'seen', '[LIVE]', 'by container'):
                self.assertIn(always, screen)
            t.keys('ccc')
            t.until(lambda s: 'by process' in s and re.search(r'^\d+ +python3', s, re.M))
            # zoom in and out
            t.keys('/python3\n')
            t.until(lambda s: 'filter: python3' in s and re.search(r'^\d+ +python3.*\n\d+ ', s, re.M) is not None
                    or 'other (' in s)
            t.keys('\n')
            t.until(lambda s: 'by thread' in s and ' in ' in s)
            t.keys('\x1b')
            t.until('by process')
            t.keys('\x1b')
            t.until(lambda s: 'filter' not in s.splitlines()[1])
            # time
            t.keys(' ')
            t.until('[FROZEN -00:')
            t.keys('\x1bOD' * 8)
            t.until(lambda s: re.search(r'FROZEN -00:0[1-9]', s))
            frozen = t.until('aggregated').splitlines()[-2]
            t.feed(0.5)
            self.assertEqual(t.text().splitlines()[-2], frozen)
            t.keys('s')
            t.until(lambda s: 'sort cycles' not in s)
            self.assertEqual(t.text().splitlines()[-2], frozen)
            t.keys(' ')
            t.until('[LIVE]')
            # what it says
            t.keys('y')
            t.until('ibscope top --source sim')
            t.keys('?')
            t.until('select the row above')
            t.keys('??h')    # two pages
            t.until('distribution')
            t.keys('hq')
            self.assertEqual(t.wait(), 0)
            self.assertTrue(t.echoes())
            self.assertIn('\x1b[?1049l', t.all)
            self.assertIn('--by pid,comm', t.all.splitlines()[-1])

    def test_click_sorts(self):
        """Rows are CPUs: the longest name of whatever runs would move the columns between a look and a click."""
        t = self.start('--by', 'cpu')
        for said in 'sort share', 'sort share ▲':
            t.until(lambda s: re.search('^CPU .*SHARE.*TREND', s, re.M) and 'aggregated' in s)
            line, = [s for s in t.text().splitlines() if s.startswith('CPU ')]
            y, x = t.text().splitlines().index(line), line.index('SHARE') + 2
            t.keys(f'\x1b[<0;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}m')
            t.until(said)

    def test_writes_json(self):
        with tempfile.TemporaryDirectory() as d:
            t = Terminal(['sh', '-c', f'cd {d} && exec {ibscope.IBSCOPE} top --source sim -d 0.2'])
            self.addCleanup(t.close)
            t.until('aggregated')
            t.feed(0.6)
            t.keys('wh')
            t.until('wrote ibscope-top-')
            name, = os.listdir(d)
            with open(os.path.join(d, name)) as f:
                objects = [json.loads(line) for line in f]
        self.assertGreater(len(objects), 1)
        for o in objects:
            self.assertTrue(o['simulated'])
            self.assertEqual(ibscope.residual(o['ledger']), 0)
            self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
        self.assertEqual([o['end'] for o in objects], sorted(o['end'] for o in objects))

    def test_storm_of_resizes(self):
        t = self.start()
        t.until('aggregated')
        sizes = random.Random(1)
        for _ in range(150):
            t.size(sizes.randint(1, 200), sizes.randint(1, 60))
            t.feed(0.01)
        t.size(1, 1)
        t.feed(0.5)
        t.size(100, 30)
        t.until(lambda s: 'SIMULATED' in s and 'aggregated' in s.splitlines()[-2])
        t.keys('q')
        self.assertEqual(t.wait(), 0)
        self.assertTrue(t.echoes())

    def test_signals_restore_the_terminal(self):
        for sig, of, status in ((signal.SIGTERM, 'parent', 0), (signal.SIGHUP, 'parent', 0),
                                (signal.SIGKILL, 'child', 128 + 9), (signal.SIGABRT, 'child', 128 + 6),
                                # sanitizers catch it, and exit
                                (signal.SIGSEGV, 'child', None)):
            with self.subTest(sig=sig):
                t = self.start()
                t.until('aggregated')
                self.assertFalse(t.echoes())
                child, = children(t.p.pid)
                os.kill(t.p.pid if of == 'parent' else child, sig)
                ended = t.wait()
                self.assertIn(ended, [status] if status is not None else [1, 128 + 11])
                self.assertTrue(t.echoes())
                self.assertIn('\x1b[?1049l', t.all)
                self.assertFalse(os.path.exists(f'/proc/{child}'))

    def test_parent_is_killed(self):
        t = self.start()
        t.until('aggregated')
        child, = children(t.p.pid)
        os.kill(t.p.pid, signal.SIGKILL)
        end = time.time() + SECONDS
        while os.path.exists(f'/proc/{child}') and time.time() < end:
            t.feed(0.1)
        self.assertFalse(os.path.exists(f'/proc/{child}'))
        self.assertTrue(t.echoes())

    def test_stop_and_continue(self):
        t = Terminal(['bash', '--norc', '-i'], PS1='shell> ')
        self.addCleanup(t.close)
        t.until('shell>')
        t.keys(f'{ibscope.IBSCOPE} top --source sim -d 0.2\n')
        t.until('aggregated')
        t.keys('\x1a')
        t.until('Stopped')
        t.keys('echo still$((40 + 2))\n')
        t.until('still42')
        t.clear()
        t.keys('fg\n')
        t.until(lambda s: '[LIVE]' in s and 'aggregated' in s)
        t.keys('q')
        t.until('shell>')

    def test_terminals_that_cannot(self):
        for term, says in ('dumb', "a terminal of type 'dumb' cannot move its cursor"), ('nothing', "unknown terminal type 'nothing'"):
            t = Terminal([ibscope.IBSCOPE, 'top', '--source', 'sim'], 200, 10, TERM=term)
            self.addCleanup(t.close)
            t.until(says)
            self.assertEqual(t.wait(), 1)

    def test_once(self):
        p = run('top', '--source', 'sim', '--once', '-d', '0.5', '--size', '90x22')
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = p.stdout.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 90)
        self.assertLessEqual(len(lines), 22)
        self.assertIn('SIMULATED', p.stdout)
        self.assertNotIn('\x1b', p.stdout)
        # nothing of what needs a second frame, or keys
        for absent in ('TREND', 'last 10 min', '? help'):
            self.assertNotIn(absent, p.stdout)
        html = run('top', '--source', 'sim', '--once', '-d', '0.3', '--html').stdout
        self.assertTrue(html.startswith('<!DOCTYPE html>'))
        self.assertNotIn('<script', html)

    def test_strata(self):
        """A simulation has no filters: one event, for which intervals may not be shorter either."""
        p = run('top', '--source', 'sim', '--strata', 'auto', '--once', '-d', '1', '--size', '100x22')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('--strata: a simulation has no hardware filters', p.stderr)
        self.assertNotIn('strata: full', p.stdout)
        self.assertIn('seen ', p.stdout)
        t = self.start('--strata', 'auto', '-d', '2')
        t.until(lambda s: 'every 2 s' in s)
        t.keys('-')
        t.until(lambda s: 'every 1 s' in s)
        t.keys('-')
        t.until(lambda s: '--strata needs intervals of 1 s or longer' in s and 'every 1 s' in s)
        t.keys('y')
        t.until(lambda s: 'ibscope top --source sim --strata auto -d 1' in s)

    @clock.every(16000)
    def test_once_waits_for_samples(self):
        """One frame of nothing answers nothing: here the first samples come after many intervals."""
        cpu = max(os.sched_getaffinity(0))
        p = subprocess.Popen([ibscope.IBSCOPE, 'top', '--once', '-v', '-d', '0.1', '--source', 'sim', '--sim-event', 'faults',
                              '-c', '16000', '-C', str(cpu), '--size', '100x20'], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.kill)
        ibscope.wait_sampling(p)
        time.sleep(0.5)     # five intervals without a sample
        fault = 'import mmap\nwhile True: m = mmap.mmap(-1, 1 << 24); m.write(bytes(1 << 24)); m.close()'
        faults = subprocess.Popen(['taskset', '-c', str(cpu), sys.executable, '-c', fault])
        self.addCleanup(lambda: (faults.kill(), faults.wait()))
        out, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 0, err)
        self.assertRegex(out, r'seen [1-9]')

    def test_reads_a_collector(self):
        """Reads the same counters without opening events; rows are the collector's groups."""
        pins = f'/sys/fs/bpf/ibscope-test-top-{os.getpid()}'
        c = ibscope.Collector(pins, '--control', 'none', '--by', 'comm', '-c', '200000', '--max-overhead', 'off')
        self.addCleanup(subprocess.run, ['rm', '-rf', pins])
        self.addCleanup(c.stop)
        t = Terminal([ibscope.IBSCOPE, 'top', '-d', '0.3', '--pin-dir', pins])
        self.addCleanup(t.close)
        screen = t.until(lambda s: 'aggregated' in s and re.search('^total', s, re.M))
        self.assertIn('by comm', screen)
        self.assertIn(f'collector {c.p.pid}', screen)
        self.assertIn('SIMULATED', screen)
        child, = children(t.p.pid)
        self.assertFalse([fd for fd in ibscope.open_files(child) if 'perf_event' in fd or 'bpf-prog' in fd])
        c.stop()
        t.until('the collector is not running')
        t.keys('q')
        self.assertEqual(t.wait(), 0)

    def test_replays_a_recording(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'data')
            p = run('record', '-a', '--source', 'sim', '-c', '500000', '-o', path, '--', 'sleep', '2')
            self.assertEqual(p.returncode, 0, p.stderr)
            seen = int(re.search(r'forwarded ([\d,]+)', p.stderr)[1].replace(',', ''))
            once = run('top', '-i', path, '--once')
            self.assertEqual(once.returncode, 0, once.stderr)
            self.assertIn(f'seen {seen:,} = aggregated {seen:,} ', once.stdout)
            self.assertIn('[END]', once.stdout)
            t = Terminal(['sh', '-c', f'cd {d} && exec {ibscope.IBSCOPE} top -i {path} --speed 1 -d 0.1'])
            self.addCleanup(t.close)
            t.until('1x')
            t.until('[END]')
            t.keys('ccc')
            t.until(lambda s: 'by process' in s and re.search(r'^\d+ +\S', s, re.M))
            t.keys('wh')
            t.until('wrote ')
            name, = (n for n in os.listdir(d) if n.endswith('.json'))
            with open(os.path.join(d, name)) as f:
                objects = [json.loads(line) for line in f]
        self.assertGreater(len(objects), 2)
        self.assertEqual(sum(o['ledger']['seen'] for o in objects), seen)
        self.assertTrue(all('pid' in s['labels'] for o in objects for s in o['series']))

    def test_symbols_of_a_recording(self):
        """As many samples of each function as `report` finds (top has no inlined ones), and zooming into a thread's."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'data')
            p = run('record', '--source', 'sim', '-c', '500000', '-o', path, '--',
                    sys.executable, '-c', 'import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass')
            self.assertEqual(p.returncode, 0, p.stderr)
            t = Terminal(['sh', '-c', f'cd {d} && exec {ibscope.IBSCOPE} top -i {path} --speed 4 -d 0.1 --by symbol'])
            self.addCleanup(t.close)
            t.until('[END]')
            t.until('by symbol')
            t.keys('wh')
            t.until('wrote ')
            name, = (n for n in os.listdir(d) if n.endswith('.json'))
            with open(os.path.join(d, name)) as f:
                objects = [json.loads(line) for line in f]
            # what has passed is read again with other rows
            t.keys('cc')
            t.until('by L3 complex')
            t.keys('ccccc')
            t.until(lambda s: 'by process' in s and re.search(r'^\d+ +python', s, re.M))
            t.keys('\n')
            t.until('by thread')
            t.keys('\n')
            t.until('by symbol')
            want = collections.Counter()    # overloaded functions have one row each
            for r in json.loads(run('report', path, '--by', 'symbol', '--no-inline', '--json').stdout)['rows']:
                want[r['labels']['symbol'] or '[unknown]'] += r['samples']
        got = collections.Counter()
        for series in (s for o in objects for s in o['series']):
            got[series['labels']['symbol']] += series['samples']
        self.assertGreater(sum(want.values()), 0)
        self.assertEqual(got, want)

    def test_instructions_of_a_symbol(self):
        """Those that `annotate` prints; of a process, only its samples."""
        make = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_annotated')
        with tempfile.TemporaryDirectory() as d:
            path, copy = os.path.join(d, 'a.ibs'), os.path.join(d, 'copy')
            shutil.copy(make, copy)
            subprocess.run([make, path, 'copy', copy], check=True)
            want = run('annotate', 'annotated', '-v', '-i', path, env=dict(os.environ, COLUMNS='80', LC_ALL='C.UTF-8')).stdout
            want = want[want.index('function  '):].splitlines()
            t = Terminal([ibscope.IBSCOPE, 'top', '-i', path, '--speed', '1e6', '-d', '0.1', '--by', 'symbol'])
            self.addCleanup(t.close)
            t.until(lambda s: '[END]' in s and re.search(r'^annotated ', s, re.M))
            t.keys('\n')
            screen = t.until('Enter, Esc back').splitlines()
            self.assertIn(' samples of ops in it + ', '\n'.join(screen))
            heading, = (line for line in want if line.endswith('CODE'))
            at = screen.index(heading)
            self.assertEqual(screen[at:at + 8], want[want.index(heading):][:8])
            # the heading stays while the rest scrolls, to the end
            t.keys('G')
            screen = t.until(lambda s: re.search(r'  total$', s, re.M)).splitlines()
            types, = (line for line in want if line.startswith('types '))
            self.assertIn(types, screen)
            self.assertRegex('\n'.join(screen), r'(?m)^ +known of [\d.]+ % of [\d,]+ accesses$')
            self.assertIn(heading, screen)
            self.assertEqual([line for line in screen if line.endswith('  total')],
                             [line for line in want if line.endswith('  total')])
            t.keys('g\x1b')
            t.until(lambda s: 'Enter zoom' in s and re.search(r'^annotated ', s, re.M))
            t.keys('ccccc')    # CPUs, containers, pods, cgroups
            t.until(lambda s: re.search(r'^101 ', s, re.M))
            t.keys('G\n')
            t.until('by thread')
            t.keys('\n')
            t.until(lambda s: 'by symbol' in s and re.search(r'^annotated ', s, re.M))
            t.keys('\n')
            t.until('2 samples of ops in it + 0 elsewhere')
            t.keys('\n')
            t.until('Enter zoom')
            t.keys('q')
            self.assertEqual(t.wait(), 0)

    def test_symbols_need_a_recording(self):
        for command in ('top --own --once', 'hist', 'replay', 'ctl snapshot', 'serve'):
            p = run(*command.split(), '--by', 'pid,symbol')
            self.assertEqual(p.returncode, 2, command)
            self.assertIn('ibscope top -i FILE', p.stderr)
        t = self.start('--by', 'tid,comm')
        t.until('aggregated')
        t.keys('\n')
        t.until('counters keep no symbols: make a recording with `ibscope record`')

    @unittest.skipIf(ibscope.SAN != ibscope.BUILD, 'sanitizers take memory of their own')
    def test_memory(self):
        """Never more than the collector and 16 MiB, here with a thousand short processes."""
        pins = f'/sys/fs/bpf/ibscope-test-top-{os.getpid()}'
        self.addCleanup(subprocess.run, ['rm', '-rf', pins])
        churn = subprocess.Popen(['sh', '-c', 'while :; do /bin/true; done'])
        self.addCleanup(lambda: (churn.kill(), churn.wait()))
        common = ('--by', 'pid,comm', '-c', '100000', '-a')
        c = ibscope.Collector(pins, '--control', 'none', '--max-overhead', 'off', *common)
        self.addCleanup(c.stop)
        t = self.start('--own', '-d', '0.1', *common)
        t.until('other (')
        t.feed(5)
        most = {pid: private_bytes(pid) for pid in (c.p.pid, t.p.pid, *children(t.p.pid))}
        self.assertLess(sum(most.values()) - most[c.p.pid], most[c.p.pid] + (16 << 20), most)

    def test_wrong_usage(self):
        for args, word in ((['--size', '80x'], '80x24'), (['--html'], '--once'), (['sleep', '1'], 'hist'),
                           (['-d', '0'], '100ms'), (['--sort', 'none'], 'p99'),
                           (['--speed', '2'], '-i'), (['-i', 'x'], 'recordings'), (['--pin-dir', '/x'], 'collector'),
                           (['-i', 'x', '--own'], 'exclude')):
            p = run('top', '--source', 'sim', *args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(word, p.stderr)
        self.assertIn('--once', run('top', '--source', 'sim').stderr)    # no terminal


if __name__ == '__main__':
    unittest.main()
