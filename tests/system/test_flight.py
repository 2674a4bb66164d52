# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""serve --flight and ctl dump: the last samples as a recording, and how many were overwritten."""
import concurrent.futures
import csv
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import clock
import ibscope
from ibscope import BUILD, Busy, Cgroup, Collector, cgroup2_mount, cpu_seconds, keep_busy, residual, run, until

OK, WHY = ibscope.can_bpf()
DIR = '/sys/fs/bpf/ibscope-flight-%d' % os.getpid()
SLOTS = 256     # of a ring of 16 KiB


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipIf(os.getuid(), 'only root may dump')
class Flight(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-flight-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.socket = self.dir + '/run/sock'
        self.file = self.dir + '/last.data'
        keep_busy(self)

    def collector(self, *args, period='100000'):
        c = Collector(DIR, '--unpin', '-c', period, '--max-overhead', 'off', '--nmi-cost', '1us', '--control', self.socket, *args)
        self.addCleanup(lambda: c.err.closed or self.assertEqual(c.stop(), 0))
        return c

    def busy(self):
        b = Busy(min(os.sched_getaffinity(0)), share=0.4)
        self.addCleanup(b.stop)
        return b

    def ctl(self, *args, code=0, **kw):
        p = run('ctl', '--control', self.socket, *args, **kw)
        self.assertEqual(p.returncode, code, (args, p.stdout, p.stderr))
        return p.stderr if code else p.stdout

    def ledger(self):
        o = json.loads(self.ctl('--json', 'ledger'))
        self.assertEqual(residual(o), 0)
        return o

    def sampled(self, n):
        until(lambda: ibscope.ask_json(self.socket, 'ledger')['aggregated'] > n)

    def dump(self):
        """The events of a dump; its ledger is that of its samples."""
        said = self.ctl('dump', '-o', self.file)
        self.assertIn(' overwritten; ', said)
        p = subprocess.run([BUILD + '/tests/unit/trace_cat', self.file], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        events = [json.loads(line) for line in p.stdout.splitlines()]
        end = events[-1]
        self.assertTrue(end['whole'], end)
        self.assertEqual(end['residual'], 0)
        samples = [e for e in events if e['kind'] == 'sample']
        self.assertEqual(end['forwarded'], len(samples))
        times = [e['time'] for e in samples]
        self.assertEqual(times, sorted(times))
        return events[1:-1], samples, end

    def ask(self, request, *files):
        return ibscope.ask(self.socket, request, *files)

    def test_whole_flight(self):
        """All samples since the start, each once, while sampling goes on."""
        busy = self.busy()
        self.collector('--flight', '1h:64M', period='1000000')    # more than a slow machine needs
        self.sampled(2000)
        # a ring that is full is resident, and --max-memory does not limit it
        p = subprocess.run([BUILD + '/ibscope-exporter', '--once', '--pin-dir', DIR], capture_output=True, text=True)
        self.assertGreater(int(re.search(r'(?m)^ibscope_collector_resident_memory_limit_bytes (\d+)$', p.stdout)[1]), 128 << 20)
        for _ in range(3):
            before = self.ledger()['aggregated']
            events, samples, end = self.dump()
            after = self.ledger()['aggregated']
            self.assertTrue(before <= end['seen'] <= after, (before, end, after))
            self.assertEqual(end['seen'], end['forwarded'])
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertTrue(any(s['tgid'] == busy.pid for s in samples))
        self.assertTrue(any(e['kind'] == 'comm' and e['tgid'] == busy.pid for e in events))
        self.assertTrue(any(e['kind'] == 'mmap' and e['tgid'] == busy.pid for e in events))
        self.assertTrue(any(e['kind'] == 'cgroup' for e in events))
        # processes without samples have no names in it
        self.assertLessEqual({e['tgid'] for e in events if e['kind'] == 'comm'}, {s['tgid'] for s in samples})

    def test_commands_read_it(self):
        self.busy()
        self.collector('--flight', '60s', *ibscope.NOT_DEAR)
        self.sampled(3000)
        self.dump()
        head = run('report', self.file).stdout.splitlines()
        self.assertIn(' samples', head[0])
        self.assertIn('SIMULATED', head[1])
        rows = json.loads(run('report', '--json', '--by', 'comm', self.file).stdout)
        self.assertIn('python3', json.dumps(rows))
        for command in ('c2c',), ('numa',), ('dump', '--csv'), ('report', '--by', 'symbol', '--csv'):
            p = run(*command, self.file)
            self.assertEqual((p.returncode, bool(p.stdout)), (0, True), (command, p.stderr))
        symbols = [r['symbol'] for r in csv.DictReader(p.stdout.splitlines()) if r['symbol'] and r['symbol'][0] != '[']
        self.assertTrue(any(run('annotate', '-i', self.file, s).returncode == 0 for s in symbols), symbols)

    def test_overwritten(self):
        cpus = os.cpu_count()
        self.collector('--flight', f'60s:{16 * cpus}K', period='20000')
        self.sampled(4 * SLOTS * cpus)
        for _ in range(3):
            before = self.ledger()['aggregated']
            _, samples, end = self.dump()
            after = self.ledger()['aggregated']
            # what is not in the file was overwritten, and was counted
            self.assertTrue(before <= end['seen'] <= after, (before, end, after))
            self.assertTrue(0 < len(samples) < SLOTS * cpus, len(samples))
        lost = json.loads(run('report', '--json', self.file).stdout)
        self.assertIn(str(end['seen'] - end['forwarded']), json.dumps(lost))
        self.assertIn(f'lost: {end["seen"] - end["forwarded"]:,} of {end["seen"]:,}', run('report', self.file).stdout)

    def test_window(self):
        self.collector('--flight', '2s')
        self.sampled(1000)
        time.sleep(5)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        _, samples, end = self.dump()
        self.assertEqual(end['seen'], len(samples))
        # a window begins at a mark, which the collector sets once a second; it was written some time after `now`
        self.assertGreater(samples[0]['time'], now - 4.5e9)
        self.assertLess(samples[0]['time'], time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 1.5e9)
        self.assertLess(end['seen'], self.ledger()['aggregated'])

    def test_refused(self):
        with open(self.file, 'w') as f:
            f.write('before')
        c = self.collector()
        self.assertIn('start it with --flight', self.ctl('dump', '-o', self.file, code=1))
        with open(self.file) as f:
            self.assertEqual(f.read(), 'before')
        self.assertEqual(set(os.listdir(self.dir)), {'last.data', 'run'})
        # turned on while it runs
        self.assertIn('reopened', self.ctl('set', 'flight=60s'))
        self.sampled(500)
        self.assertTrue(self.dump()[1])
        self.assertIn('no file to write to', self.ask(b'dump\n'))
        with open(self.file) as f:
            self.assertIn('no file to write to', self.ask(b'dump\n', f.fileno()))
        with open(self.dir + '/other', 'wb') as f:
            self.assertRegex(self.ask(b'dump\n', f.fileno()), r'^ok\n[\d,]+ samples')
            self.assertIn('error usage', self.ask(b'dump\nx\n', f.fileno()))
        with open('/dev/full', 'wb') as f:
            self.assertRegex(until(lambda: (a := self.ask(b'dump\n', f.fileno())) and 'another' not in a and a),
                             'error failed\n.*No space left')
        for options in ('-o', self.file, 'status'), ('dump', 'x'), ('--json', 'dump'):
            self.ctl(*options, code=2)
        self.assertIn('directory', self.ctl('dump', '-o', self.dir, code=1))
        # none of the files passed stays open; the collector opens some of its own now and then
        files = f'/proc/{c.p.pid}/fd'
        n = len(os.listdir(files))
        for _ in range(10):
            with open('/dev/null') as f:
                self.ask(b'dump\n', f.fileno(), f.fileno())
                self.ask(b'status\n', f.fileno())
        self.assertLess(len(os.listdir(files)), n + 10)

    def recordings(self, dir):
        return sorted(glob.glob(dir + '/flight-*.data'))

    def status(self):
        return ibscope.ask_json(self.socket, 'status')['flight']

    def check_flight(self, path):
        p = run('report', '--json', path)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_condition(self):
        """One recording when it has been true for its time; the next one after it was false, and not too early."""
        dir = self.dir + '/kept'
        path = Cgroup('/ibscope-flight-%d' % os.getpid()) if cgroup2_mount() else None
        key = f"cgroup == '{path.path}' && " if path else ''
        most = 20 if path else 300      # in a second; of its cgroup there are none before
        c = self.collector('--flight', '60s', '--flight-dir', dir, '--flight-every', '1s', '--flight-on', key + f'samples > {most} for 3s',
                           '--flight-on', key + 'samples > 1000G', '--flight-on', 'samples_lost > 1000G')
        if path:
            self.addCleanup(path.remove)
        until(lambda: os.path.isdir(dir))
        self.assertEqual(stat.S_IMODE(os.stat(dir).st_mode), 0o700)
        for n in 1, 2:
            began = time.monotonic()
            busy = Busy(1, *[path] if path else [])
            self.addCleanup(busy.stop)
            until(lambda: len(self.recordings(dir)) == n)
            self.assertGreater(time.monotonic() - began, 2)
            time.sleep(4)     # still true
            busy.stop()
            self.assertEqual(len(self.recordings(dir)), n, c.said())
            time.sleep(3)
        for file in self.recordings(dir):
            self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
            self.check_flight(file)
        until(lambda: self.status() == {'written': 2, 'failed': 0, 'skipped': 0})
        self.assertRegex(self.ctl('status'), r'flight recorder: recordings 2 written, 0 failed, 0 skipped')
        said = c.said()
        self.assertEqual(len(re.findall(rf'samples > {most} for 3s \(samples [\d,]+\): [\d,]+ samples of the last .* to ' + dir, said)), 2, said)

    def test_signal_and_rotation(self):
        dir = self.dir + '/kept'
        os.mkdir(dir)
        others = {'flight-2.data', 'flight-20200101T000000.000Z.data.bak', 'note'}
        for name in others:
            with open(f'{dir}/{name}', 'w') as f:
                f.write('x')
        # of the pattern, but no file: stays, and does not count
        os.symlink('/etc/passwd', dir + '/flight-20200101T000000.001Z.data')
        with open(dir + '/flight-20200101T000000.002Z.data', 'w') as f:
            f.write('oldest')
        c = self.collector('--flight', '60s', '--flight-dir', dir, '--flight-keep', '3')
        self.sampled(500)
        for n in range(1, 6):
            c.p.send_signal(signal.SIGUSR2)
            until(lambda: self.status()['written'] == n)
        left = self.recordings(dir)
        self.assertTrue(others < set(os.listdir(dir)))
        self.assertEqual(len(left), 5, left)       # 3, the link, and flight-2.data
        self.assertIn(dir + '/flight-20200101T000000.001Z.data', left)
        self.assertNotIn(dir + '/flight-20200101T000000.002Z.data', left)
        self.check_flight(left[-1])

    def test_cannot_write(self):
        """A full disk, a missing directory: logged and counted, and nothing else is lost."""
        dir = self.dir + '/kept'
        os.mkdir(dir)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16k', 'none', dir], check=True)
        self.addCleanup(lambda: os.path.ismount(dir) and subprocess.run(['umount', dir], check=True))
        c = self.collector('--flight', '60s', '--flight-dir', dir)
        self.sampled(5000)
        c.p.send_signal(signal.SIGUSR2)
        until(lambda: self.status()['failed'] == 1)
        self.assertEqual(os.listdir(dir), [])
        subprocess.run(['umount', dir], check=True)
        os.rmdir(dir)
        os.symlink('/nowhere', dir)
        c.p.send_signal(signal.SIGUSR2)
        until(lambda: self.status()['failed'] == 2)
        self.assertRegex(c.said(), r'flight: SIGUSR2: .*No space left')
        self.assertRegex(c.said(), r'flight: SIGUSR2: cannot create .*/kept')
        os.unlink(dir)
        c.p.send_signal(signal.SIGUSR2)     # is made again
        until(lambda: self.status()['written'] == 1)
        self.ledger()

    def test_fixed(self):
        c = self.collector('--flight', '60s')
        for option in f'flight-dir={self.dir}', 'flight-keep=1', 'flight-keep-bytes=1M':
            self.assertIn('cannot be set live', self.ctl('set', option, code=2))
        self.ctl('set', 'flight=off')
        c.p.send_signal(signal.SIGUSR2)
        until(lambda: 'no flight recorder' in c.said())

    def test_no_directory(self):
        for dir, why in ('/proc/x/y', 'cannot create'), ('/proc', 'cannot create'):
            p = subprocess.run([ibscope.IBSCOPE, 'serve', '--source', 'sim', '--pin-dir', DIR, '--unpin', '--control', self.socket,
                                '--flight', '60s', '--flight-dir', dir, '--flight-on', 'p99 > 1'], capture_output=True, text=True)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(why, p.stderr)

    def test_only_root(self):
        self.collector('--flight', '60s', '--control-mode', '0666')
        p = subprocess.run([ibscope.IBSCOPE, 'ctl', '--control', self.socket, 'dump', '-o', '-'], user=65534,
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn('only root', p.stderr)

    def test_slow_reader(self):
        """A reader that takes nothing keeps one dump waiting, and nothing else."""
        kept = self.dir + '/kept'
        c = self.collector('--flight', '60s', '--by', 'comm,src', '--flight-dir', kept, '--flight-on', 'comm == flightload && samples > 0')
        self.sampled(50000)
        reader, writer = os.pipe()
        with concurrent.futures.ThreadPoolExecutor() as pool, open(reader, 'rb') as r:
            first = pool.submit(self.ask, b'dump\n', writer)
            until(lambda: ibscope.stalled(reader))
            before = self.ledger()['aggregated']
            self.assertIn('another dump is being written', self.ctl('dump', '-o', self.file, code=1))
            self.sampled(before + 1000)
            # a condition that becomes true meanwhile waits
            os.symlink(sys.executable, self.dir + '/flightload')
            self.addCleanup(Busy(0, program=self.dir + '/flightload').stop)
            time.sleep(4)
            self.assertEqual((self.recordings(kept), self.status()['skipped']), ([], 0))
            os.close(writer)
            size = len(r.read())
            self.assertTrue(first.result().startswith('ok\n'))
        self.assertGreater(size, 65536)
        until(lambda: 'samples of the last' in c.said())
        until(lambda: self.recordings(kept))
        until(lambda: self.status() == {'written': 2, 'failed': 0, 'skipped': 0})

    @clock.every(10000)
    def test_large(self):
        """16 MiB within a second of CPU time, whatever else wants the CPUs; a child of the collector takes them."""
        c = self.collector('--flight', '60s:16M', period='10000')
        self.sampled(200000)
        began = cpu_seconds(c.p.pid, children=True)
        for _ in range(3):
            before = self.ledger()['aggregated']
            said = self.ctl('dump', '-o', self.file)
            self.assertGreater(self.ledger()['aggregated'], before)
            self.assertRegex(said, r'written in [\d.]+ s, 0\.\d+ s of CPU time')
        # at least two of the children were waited for
        used = until(lambda: cpu_seconds(c.p.pid, children=True) - began)
        print(f'# three dumps of 16 MiB: {used:.2f} s of CPU time; {said}')
        self.assertLess(used, 3)


if __name__ == '__main__':
    unittest.main()
