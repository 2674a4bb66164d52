# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A user with a delegated cgroup does what he can against a collector for HOSTILE_S seconds (6), while it
samples, is scraped, and root records into a directory where he may create files."""
import base64
import concurrent.futures
import ctypes
import fcntl
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import ibscope
from ibscope import Busy, Cgroup, can_bpf, cgroup2_mount, cpu_seconds, free_port, residual, until

OK, WHY = can_bpf()
SECONDS = int(os.environ.get('HOSTILE_S', '6'))
NOBODY = 65534
# sanitizers keep what was freed, and memory is measured here
ibscope.IBSCOPE = PLAIN = os.path.join(ibscope.BUILD, 'ibscope')
ID = '0123abcd' * 8
RSS_MIB = 96        # --max-memory and 64 MiB would be 128
CPU_LIMIT = 0.25    # of one CPU; 2 % for each kind of work that others cause, and what root asks for here
NAMES = (b'\x1b]0;owned\a', b'ibscope: error: forged', b'\xc2\x9b31m\xff', b'=1+1', b'n' * 255)
HASH = '$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW'    # of "secret"
CONTROL_REQUESTS = (b'', b'set\n', b'set period=16\n', b'reset\n' * 1000, os.urandom(4096), b'\0' * 70000)
DENIED = (PermissionError, BlockingIOError, FileNotFoundError, ConnectionError, TimeoutError)


class Hostile:
    """What the user has: each method is tried again and again by a process of his."""

    def __init__(self, delegated, pins, control, port, out, victim):
        self.delegated, self.pins, self.control, self.port = delegated, pins, control, port
        self.out, self.victim = out, victim
        self.got = {}

    def go_on(self, method, done, end):
        """The body of the process, which runs as nobody until it is killed."""
        ctypes.CDLL(None).prctl(ibscope.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # who leaves a cgroup must own one that is around both
        with open(os.path.join(self.delegated, 'cgroup.procs'), 'w') as f:
            f.write('0')
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        while time.monotonic() < end:
            n = getattr(self, method)()
            with done.get_lock():
                done.value += n

    def dir(self, *names):
        return os.path.join(self.delegated.encode(), *names)

    def depth(self):
        """As deep as the kernel lets: names of 200 bytes, so that the path is long, too."""
        top = fd = os.open(self.dir(b'deep'), os.O_RDONLY)
        fds, name = [], b'd' * 200
        try:
            while len(fds) < 400:
                os.mkdir(name, dir_fd=fd)
                fds.append(fd)
                fd = os.open(name, os.O_RDONLY, dir_fd=fd)
        except OSError:
            pass
        n = len(fds)
        while fds:
            os.close(fd)
            fd = fds.pop()
            try:
                os.rmdir(name, dir_fd=fd)
            except OSError:
                break
        for one in {fd, *fds}:
            os.close(one)
        return n

    def churn(self):
        names = [self.dir(b'churn', b'%d-%d' % (os.getpid(), i)) for i in range(100)]
        for name in names:
            os.mkdir(name)
        for name in names:
            os.rmdir(name)
        return len(names)

    def names(self):
        """Processes come and go in cgroups of names that control terminals."""
        for name in NAMES:
            d = self.dir(b'names', name)
            os.makedirs(d, exist_ok=True)
            pid = os.fork()
            if not pid:
                try:
                    with open(os.path.join(d, b'cgroup.procs'), 'w') as f:
                        f.write('0')
                    sum(range(200000))
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        return len(NAMES)

    def spoof(self):
        """Samples in a cgroup that is named like another's container."""
        with open(self.dir(b'docker-%s.scope' % ID.encode(), b'cgroup.procs'), 'w') as f:
            f.write('0')
        sum(range(2000000))
        return 1

    def pinned(self):
        """Locks of whatever opens, and other files in its place."""
        held = []
        for path in (self.pins, *(os.path.join(self.pins, name) for name in ('meta', 'links', 'state', 'names'))):
            try:
                held.append(os.open(path, os.O_RDONLY))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pass
            for attack in (lambda: os.rename(path, path + '-'), lambda: os.unlink(path), lambda: os.mkdir(path + '-'),
                           lambda: os.chmod(path, 0o777)):
                try:
                    attack()
                    raise SystemExit(f'{path} can be changed')
                except OSError:
                    pass
        time.sleep(0.5)     # the collector has to do its work beside the locks
        for fd in held:
            os.close(fd)
        return 1

    def sockets(self):
        for request in CONTROL_REQUESTS:
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(self.control)
                    s.sendall(request)
                except OSError:
                    continue
                raise SystemExit('the control socket is open')
        return 1

    def links(self):
        """In the place of what root writes, a link to what root has."""
        for name in 'out', 'out.old', 'page':
            path = os.path.join(self.out, name)
            for make in (lambda: os.symlink(self.victim, path), lambda: os.mkfifo(path), lambda: os.link(self.victim, path)):
                try:
                    make()
                    time.sleep(0.02)
                    os.unlink(path)
                except OSError:
                    pass
        return 1

    def guess(self):
        """Requests in a row, with passwords; and one that never ends."""
        with socket.create_connection(('127.0.0.1', self.port), 5) as s, \
                socket.create_connection(('127.0.0.1', self.port), 5) as slow:
            s.settimeout(5)
            slow.sendall(b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-')
            for i in range(20):
                word = base64.b64encode(b'alice:%d' % i)
                s.sendall(b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic ' + word + b'\r\n\r\n')
            n = 0
            while n < 20 and (data := s.recv(1 << 16)):
                n += data.count(b'HTTP/1.1 ')
                if b'HTTP/1.1 200' in data:
                    raise SystemExit('a wrong password was taken')
        return n

    def guess_often(self):
        try:
            return self.guess()
        except OSError:
            return 0


ATTACKS = ('depth', 'churn', 'churn', 'names', 'spoof', 'pinned', 'sockets', 'links', *['guess_often'] * 6)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
@unittest.skipUnless(os.geteuid() == 0, 'not root, who is attacked')
class HostileUser(unittest.TestCase):
    def ctl(self, *args):
        p = ibscope.subprocess.run([PLAIN, 'ctl', '--pin-dir', self.pins, '--control', self.control, '--json', *args],
                                   capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def memory(self):
        with open(f'/proc/{self.c.p.pid}/status') as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith('VmHWM'))

    def scrape(self):
        """With the right password: (seconds, whether it was let in)."""
        begun = time.monotonic()
        word = base64.b64encode(b'alice:secret').decode()
        p = subprocess.run(['curl', '-s', '-m', '60', '-o', '/dev/null', '-w', '%{http_code}', '-H',
                            f'Authorization: Basic {word}', f'http://127.0.0.1:{self.port}/metrics'],
                           capture_output=True, text=True)
        return time.monotonic() - begun, p.stdout == '200'

    def record(self):
        """As root, into the directory of everybody."""
        path = os.path.join(self.out, 'out')
        p = subprocess.run([PLAIN, 'record', '--source', 'sim', '-c', '10000000', '--duration', '0.2', '-o', path],
                           capture_output=True, text=True, timeout=60)
        with open(self.victim) as f:
            self.assertEqual(f.read(), 'old\n')
        self.assertEqual(os.stat(self.victim).st_mode & 0o7777, 0o600)
        return p.returncode == 0

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-hostile-', dir='/run')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.out, self.victim = os.path.join(self.dir, 'out'), os.path.join(self.dir, 'victim')
        os.mkdir(self.out)
        os.chmod(self.out, 0o1777)
        with open(self.victim, 'w', opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write('old\n')
        log = os.path.join(self.dir, 'log')
        os.makedirs(log + '/containers')
        open(f'{log}/containers/payments-0_prod_main-{ID}.log', 'w').close()
        web = os.path.join(self.dir, 'web.yml')
        with open(web, 'w', opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(f'basic_auth_users:\n  alice: {HASH}\n')
        # root's container, and what a user was given
        self.top = Cgroup(f'/ibscope-hostile-{os.getpid()}')
        self.addCleanup(self.top.remove)
        self.honest = Cgroup(f'{self.top.path}/kubepods/burstable/pod12345678-9abc-def0-1234-56789abcdef0/{ID}')
        self.delegated = Cgroup(f'{self.top.path}/user')
        for name in ('', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'):
            os.chown(os.path.join(self.delegated.dir, name), NOBODY, NOBODY)
        for name in 'deep', 'churn', 'names', f'docker-{ID}.scope':
            path = os.path.join(self.delegated.dir, name)
            os.mkdir(path)
            for own in ('', 'cgroup.procs'):
                os.chown(os.path.join(path, own), NOBODY, NOBODY)
        self.pins = f'/sys/fs/bpf/ibscope-hostile-{os.getpid()}'
        self.control = os.path.join(self.dir, 'control.sock')
        self.port = free_port()
        script = os.path.join(self.dir, 'ibscope')
        with open(script, 'w') as f:
            f.write(f'#!/bin/sh\nexec unshare -m sh -c \'mount --bind {log} /var/log && exec "$@"\' - {PLAIN} "$@"\n')
        os.chmod(script, 0o755)
        self.addCleanup(setattr, ibscope, 'IBSCOPE', PLAIN)
        ibscope.IBSCOPE = script
        self.c = ibscope.Collector(self.pins, '-c', '10000000', '--nmi-cost', '1us', '--max-overhead', '2%', '--unpin',
                                   '--control', self.control, '--by', 'cgroup,src',
                                   '--web.listen-address', f'127.0.0.1:{self.port}', '--web.config.file', web)
        self.addCleanup(self.c.stop, signal.SIGKILL)
        self.c.wait('listening on')

    def attack(self, seconds):
        hostile = Hostile(self.delegated.dir, self.pins, self.control, self.port, self.out, self.victim)
        '127.0.0.1'.encode('idna')    # loads a module that nobody may not read
        fork = multiprocessing.get_context('fork')
        done = [(name, fork.Value('q', 0)) for name in ATTACKS]
        end = time.monotonic() + seconds
        self.attackers = [fork.Process(target=hostile.go_on, args=(name, n, end), daemon=True) for name, n in done]
        for p in self.attackers:
            p.start()
            self.addCleanup(p.join)
            self.addCleanup(p.kill)
        return done

    def labels(self):
        """Samples by container; of the cgroups of the user and of root's container."""
        series = self.ctl('--by', 'cgroup,container', 'snapshot')['series']
        return [(s['labels']['cgroup'], s['labels']['container'], s['samples']) for s in series]

    @staticmethod
    def again(work, end):
        results = [work()]
        while time.monotonic() < end:
            results.append(work())
        return results

    def watch(self, end):
        """The ledger is exact and the period stays. Return: the longest time without a sample."""
        seen, longest, last = 0, 0, time.monotonic()
        while time.monotonic() < end:
            now = self.ctl('status')
            self.assertEqual(residual(now['ledger']), 0, now)
            self.assertEqual((now['governor']['state'], now['period']), ('at_rate', 10000000), now)
            longest = max(longest, time.monotonic() - last)
            if now['ledger']['seen'] > seen:
                seen, last = now['ledger']['seen'], time.monotonic()
            time.sleep(0.2)
        return longest

    def test_hostile_user(self):
        for cpu in sorted(os.sched_getaffinity(0)):
            b = Busy(cpu, self.honest)
            os.setpriority(os.PRIO_PROCESS, b.pid, 10)
            self.addCleanup(b.stop)
        until(lambda: any('main' in name for _, name, _ in self.labels()))
        begun, cpu = time.monotonic(), cpu_seconds(self.c.p.pid)
        done = self.attack(SECONDS)
        end = begun + SECONDS
        with concurrent.futures.ThreadPoolExecutor() as pool:
            scrapes, records = (pool.submit(self.again, work, end) for work in (self.scrape, self.record))
            longest = self.watch(end)
            waits, recorded = scrapes.result(), sum(records.result())
        took = time.monotonic() - begun
        cpu = (cpu_seconds(self.c.p.pid) - cpu) / took
        for p in self.attackers:
            p.join(30)
            self.assertEqual(p.exitcode, 0, 'what was refused always was not')
        tried = {name: sum(n.value for other, n in done if other == name) for name in ATTACKS}
        now = self.ctl('status')
        print(f'# SIMULATED; {took:.0f} s, tried {tried}; {now["ledger"]["seen"]} samples, none for {longest:.1f} s at most; '
              f'{cpu:.1%} of a CPU, {self.memory():.0f} MiB; {len(waits)} scrapes, {sum(ok for _, ok in waits)} answered, '
              f'{max(s for s, _ in waits):.1f} s at most; {recorded} recordings')
        for name in ATTACKS:
            self.assertGreater(tried[name], 0, name)
        self.assertEqual(residual(now['ledger']), 0, now)
        self.assertLess(longest, 30)    # a loaded host stops all of this for seconds
        self.assertGreater(now['ledger']['seen'], 10 * took)
        self.assertLess(cpu, CPU_LIMIT)
        self.assertLess(self.memory(), RSS_MIB)
        self.assertTrue(all(ok for _, ok in waits), waits)
        self.assertGreater(recorded, 0)
        rows = self.labels()
        self.assertEqual({name for cgroup, name, _ in rows if cgroup.startswith(self.delegated.path)} & {'main', ID[:12]},
                         set(), rows)
        self.assertEqual({cgroup for cgroup, name, _ in rows if name == 'main'}, {self.honest.path}, rows)
        self.assertTrue(any(n for cgroup, _, n in rows if 'docker-' in cgroup), rows)
        self.assertNotIn('\nibscope: error: forged', self.c.said())
        self.assertEqual(self.c.stop(), 0)


if __name__ == '__main__':
    unittest.main()
