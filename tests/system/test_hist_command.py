# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`hist -- COMMAND`: what is measured, how long, and how it ends."""
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from ibscope import IBSCOPE, Busy, can_bpf, cgroup2_mount, residual, run, spin, until

OK, WHY = can_bpf()


def left():
    """Leftover cgroups of commands whose ibscope has exited; other tests may have running ones."""
    found = ((d, re.fullmatch(r'ibscope-(\d+)-\d+', os.path.basename(d))) for d, _, _ in os.walk(cgroup2_mount()))
    return {d for d, m in found if m and not os.path.exists(f'/proc/{m[1]}')}


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
class HistCommand(unittest.TestCase):
    def sim(self, *args, **kw):
        p = run('hist', '--json', '--source', 'sim', '-c', '100000', *args, **kw)
        lines = [json.loads(x) for x in p.stdout.splitlines()]
        for o in lines:
            self.assertEqual(residual(o['ledger']), 0)
        return p, lines

    def setUp(self):
        self.others = [Busy(c, share=0.1) for c in range(os.cpu_count())]
        self.addCleanup(lambda: [b.stop() for b in self.others])
        before = left()
        self.addCleanup(lambda: until(lambda: left() <= before))

    def test_only_the_command(self):
        p, (o,) = self.sim('--by', 'cgroup,comm', '--', *spin(0.5))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreater(o['ledger']['aggregated'], 0)
        self.assertGreater(o['ledger']['filtered']['cgroup'], 0)
        for s in o['series']:
            self.assertRegex(s['labels']['cgroup'], r'/ibscope-\d+-\d+$')

    def test_its_cgroup_is_no_container(self):
        """The cgroup that was made for the command has the name that a comparison or a report by container has for it."""
        with tempfile.TemporaryDirectory() as d:
            file, page = os.path.join(d, 'x'), os.path.join(d, 'x.html')
            p = run('record', '--source', 'sim', '-c', '100000', '-o', file, '--', *spin(0.5))
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertRegex(run('report', '--by', 'cgroup', file).stdout, r'(?m)^\S*/ibscope-\d+-\d+ ')
            p = run('report', '--html', page, file)
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(page, encoding='utf-8') as f:
                self.assertNotRegex(f.read(), r'/ibscope-\d+-\d+')
            text = run('replay', file).stdout
        self.assertNotRegex(text, r'/ibscope-\d+-\d+')
        p = run('hist', '--source', 'sim', '-c', '100000', '--', *spin(0.5))
        with open('/proc/self/cgroup', encoding='utf-8') as f:
            parent = f.read().strip().rsplit(':', 1)[1]
        for text in text, p.stdout:
            row = text.split('CONTAINER', 1)[1].splitlines()[1]
            self.assertTrue(row.startswith(('host, no container', parent)), (row, parent))
            self.assertNotRegex(text, r'/ibscope-\d+-\d+')

    def test_descendants(self):
        inner = shlex.join(spin(0.5))
        p, (o,) = self.sim('--by', 'pid', '--', 'sh', '-c', f'{inner} & setsid {inner} & wait')
        self.assertEqual(p.returncode, 0, p.stderr)
        busy = [s for s in o['series'] if s['samples'] > 30]
        self.assertGreaterEqual(len(busy), 2, o['series'])

    @unittest.skipUnless(shutil.which('setpriv'), 'setpriv is not here')
    def test_few_open_files(self):
        """A limit that only root could raise is named, with one that is enough; that is true."""
        def limited(n):
            return subprocess.run(['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource', 'prlimit', f'--nofile={n}:{n}',
                                   IBSCOPE, 'hist', '--source', 'sim', '-c', '1000000', '0.1', '1'], capture_output=True, text=True)
        for n in 8, 20, 40:
            p = limited(n)
            self.assertEqual(p.returncode, 1, p.stderr)
            m = re.search(rf'the limit of open files \(nofile\) is {n}; at least (\d+) are needed: raise it with `ulimit -n (\d+)`', p.stderr)
            self.assertTrue(m, p.stderr)
            self.assertGreater(int(m[1]), n)
        self.assertEqual(limited(int(m[1])).returncode, 0)

    def test_what_else_is_selected_wins(self):
        pid = self.others[0].pid
        p, (o,) = self.sim('--by', 'pid', '-p', str(pid), '--', 'sleep', '0.3')
        self.assertEqual({s['labels']['pid'] for s in o['series']}, {str(pid)})
        p, (o,) = self.sim('--by', 'pid', '-a', '--', 'sleep', '1')
        self.assertLessEqual({str(b.pid) for b in self.others}, {s['labels']['pid'] for s in o['series']})
        self.assertTrue(0.9 < o['interval_s'] < 4, o['interval_s'])

    def test_intervals_end_with_the_command(self):
        """The last one is cut, and the others are whole, however late a busy machine ends the command."""
        began = time.monotonic()
        p, lines = self.sim('0.2', '--', 'sleep', '0.5')
        took = [o['interval_s'] for o in lines]
        self.assertTrue(0.5 < sum(took) < time.monotonic() - began, took)
        self.assertGreaterEqual(len(took), 2)
        self.assertGreater(min(took[:-1]), 0.15, took)

    def test_command_outlives_the_last_interval(self):
        start = time.monotonic()
        p, lines = self.sim('0.1', '2', '--', 'sh', '-c', 'sleep 2; exit 7')
        self.assertEqual(len(lines), 2)
        self.assertEqual(p.returncode, 7, p.stderr)
        self.assertGreater(time.monotonic() - start, 2)
        with tempfile.TemporaryDirectory() as d:
            p = run('record', '--source', 'sim', '--duration', '0.2', '-o', d + '/x', '--', 'sh',
                    '-c', 'sleep 2; exit 7')
            self.assertEqual(p.returncode, 7, p.stderr)

    def test_status(self):
        for command, status in ((['sh', '-c', 'exit 7'], 7), (['sh', '-c', 'kill -9 $$'], 137),
                                (['/nonexistent'], 127), (['/etc/passwd'], 126)):
            p, _ = self.sim('--', *command)
            self.assertEqual(p.returncode, status, p.stderr)
            self.assertEqual('error' in p.stderr, status in (126, 127), p.stderr)

    def test_head(self):
        """On a terminal: what it waits for, erased; two lines, then the table; messages about itself only with -v."""
        for verbose in (), ('-v',):
            with self.subTest(verbose=verbose):
                command = shlex.join([IBSCOPE, 'hist', '--source', 'sim', '-c', '1000000', *verbose, '0.5', '1'])
                p = subprocess.run(['script', '-qec', command, '/dev/null'], capture_output=True, stdin=subprocess.DEVNULL,
                                   env={**os.environ, 'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', 'IBSCOPE_PAGER': 'cat'}, timeout=60)
                self.assertEqual(p.returncode, 0, p.stdout)
                before, waiting, after = p.stdout.decode().replace('\r\n', '\n').split('\r\x1b[K', 2)
                self.assertEqual(waiting.splitlines()[0], 'sampling, result in 0.5 s; Ctrl-C prints what there is by then')
                self.assertEqual(b'kernel memory' in p.stdout, bool(verbose), p.stdout)
                lines = after.splitlines()
                self.assertEqual(lines[0], 'SIMULATED samples, not measurements')
                self.assertRegex(lines[1], r'^\d\.\d s on \d+ CPUs?, ibs_op/cnt_ctl=1/, period 1,000,\d+$')
                self.assertEqual(lines[2], '')
                self.assertRegex(lines[3], '^(\x1b\\[1m)?CONTAINER ')

    def test_bad(self):
        p = run('hist', '--')
        self.assertEqual(p.returncode, 2)
        self.assertIn("after '--'", p.stderr)
        p = run('hist', '--source', 'sim', '--op', 'lod', '--', 'touch', '/tmp/ran')
        self.assertEqual(p.returncode, 2)

    def test_without_a_cgroup(self):
        """Where none can be made forks are followed."""
        mount = cgroup2_mount()
        inner = shlex.join(spin(0.5))
        p = subprocess.run(['unshare', '-m', '--propagation', 'unchanged', 'sh', '-c', f'mount -o remount,bind,ro {mount} && exec "$@"', 'x',
                            IBSCOPE, 'hist', '--json', '--source', 'sim', '-c', '100000', '--by', 'pid', '--',
                            'sh', '-c', f'{inner} & wait'], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('followed', p.stderr)
        o = json.loads(p.stdout)
        self.assertEqual(residual(o['ledger']), 0)
        self.assertGreater(o['ledger']['filtered']['pid'], 0)
        self.assertGreater(max(s['samples'] for s in o['series']), 30)
        self.assertFalse({str(b.pid) for b in self.others} & {s['labels']['pid'] for s in o['series']})

    def interrupted(self, sig, command, *more):
        """One signal ends sampling, not the command; @more are sent after the output."""
        with tempfile.TemporaryFile('w+') as out:
            p = subprocess.Popen([IBSCOPE, 'hist', '--json', '--source', 'sim', '--', *command],
                                 stdout=out, stderr=subprocess.PIPE, text=True)
            until(lambda: p.poll() is not None or os.path.exists(self.started))
            p.send_signal(sig)
            until(lambda: p.poll() is not None or os.fstat(out.fileno()).st_size)
            self.assertIsNone(p.poll())
            open(self.started + '.printed', 'w').close()
            for s in more:
                p.send_signal(s)
            err = p.communicate(timeout=60)[1]
            out.seek(0)
            self.assertEqual(len(out.read().splitlines()), 1)
        os.unlink(self.started)
        return p.returncode, err

    def test_interrupted(self):
        with tempfile.TemporaryDirectory() as d:
            self.started = d + '/started'
            for sig in signal.SIGINT, signal.SIGTERM:
                script = f'rm -f {self.started}.printed; touch {self.started}; until [ -e {self.started}.printed ]; do sleep 0.05; done; exit 7'
                self.assertEqual(self.interrupted(sig, ['sh', '-c', script])[0], 7)
                script = f'touch {self.started}; exec sleep 60'
                status, _ = self.interrupted(sig, ['sh', '-c', script], sig)
                self.assertEqual(status, 128 + sig)
            script = f'trap "" TERM; touch {self.started}; for i in 1 2 3 4 5 6; do sleep 1; done'
            status, err = self.interrupted(signal.SIGTERM, ['sh', '-c', script], signal.SIGTERM)
            self.assertEqual(status, 128 + signal.SIGTERM)
            self.assertIn('does not exit on SIGTERM; it continues', err)

    def test_second_signal_while_printing(self):
        """The reader has stalled: the output ends, and the command gets the signal."""
        with tempfile.TemporaryDirectory() as d, tempfile.TemporaryFile('w+') as err:
            r, w = os.pipe()
            self.addCleanup(os.close, r)
            os.write(w, bytes(fcntl.fcntl(w, fcntl.F_GETPIPE_SZ)))
            started, ended = d + '/started', d + '/ended'
            p = subprocess.Popen([IBSCOPE, 'hist', '--json', '--source', 'sim', '--', 'sh', '-c',
                                  f'trap "touch {ended}; exit" INT; touch {started}; while :; do sleep 0.1; done'], stdout=w, stderr=err)
            os.close(w)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            until(lambda: os.path.exists(started))
            p.send_signal(signal.SIGINT)
            with open(f'/proc/{p.pid}/syscall') as call:
                until(lambda: call.seek(0) or call.read().startswith('1 0x1 '))   # write() to the pipe
            self.assertFalse(os.path.exists(ended))
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(60), 1)
            self.assertTrue(os.path.exists(ended))
            err.seek(0)
            self.assertIn('cannot write the output: Interrupted', err.read())


if __name__ == '__main__':
    unittest.main()
