# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""serve --user-socket: users see the cgroups that belong to them, whatever they try."""
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import ibscope
from ibscope import IBSCOPE, Busy, Cgroup, can_bpf, cgroup2_mount, residual, until

OK, WHY = can_bpf()
PINS = '/sys/fs/bpf/ibscope-users-%d' % os.getpid()
TOP = f'/ibscope-users-{os.getpid()}'
ALICE, BOB = 61001, 61002
GONE = (ConnectionError, BrokenPipeError)


def fork(what, uid, cgroup):
    """Let a process of a user in a cgroup do something; its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if cgroup:
            cgroup.add(os.getpid())
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        ctypes.CDLL(None).prctl(ibscope.PR_SET_PDEATHSIG, signal.SIGKILL)
        what()
    finally:
        os._exit(0)


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path)
    return s


def ask(s, request=b'snapshot\n\n'):
    """The answer; b'' if the collector has hung up."""
    answer = b''
    try:
        s.sendall(request)
        while more := s.recv(1 << 16):
            answer += more
    except GONE:
        pass
    return answer


def groups(answer):
    """Samples by cgroup."""
    first, *lines = answer.decode().splitlines()
    assert first == 'ok', answer[:300]
    head, *of, end = map(json.loads, lines)
    assert head['format'] == 1 and end == {'end': True, 'left_out': 0}, (head, end)
    samples = {}
    for g in of:
        samples[g['cgroup']] = samples.get(g['cgroup'], 0) + sum(s['words'][2] for s in g['series'])
    return samples


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='ibscope-users-')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        os.chmod(cls.dir, 0o755)
        cls.path, cls.control = (os.path.join(cls.dir, 'run', name) for name in ('users.sock', 'control.sock'))
        top = Cgroup(TOP)
        cls.addClassCleanup(top.remove)
        cls.alice, cls.inner, cls.job1, cls.step, cls.job2 = (
            Cgroup(TOP + name) for name in ('/alice', '/alice/in', '/jobs/job_1', '/jobs/job_1/step', '/jobs/job_10'))
        os.chown(cls.alice.dir, ALICE, ALICE)
        for k, cgroup in enumerate((cls.inner, cls.step, cls.job2)):
            b = Busy(k % os.cpu_count(), cgroup)
            cls.addClassCleanup(b.stop)
        cls.c = ibscope.Collector(PINS, '-c', '200000', '--max-overhead', 'off', '--nmi-cost', '1us', '--unpin', '--by', 'cgroup,src',
                                  '--control', cls.control, '--user-socket', cls.path, '--user-jobs', TOP + '/jobs/job_*')
        cls.addClassCleanup(cls.c.stop)
        # a process of root sees a job that it is in, as any other does
        for cgroup, path in ((cls.step, cls.step.path), (cls.job2, cls.job2.path)):
            until(lambda c=cgroup, p=path: p in cls.seen(0, c))
        until(lambda: cls.inner.path in cls.seen(ALICE, None))

    @classmethod
    def as_user(cls, what, uid, cgroup):
        """The bytes that @what returns there."""
        r, w = os.pipe()

        def child():
            os.close(r)
            with os.fdopen(w, 'wb') as f:
                f.write(what())
        pid = fork(child, uid, cgroup)
        os.close(w)
        with os.fdopen(r, 'rb') as f:
            got = f.read()
        os.waitpid(pid, 0)
        return got

    @classmethod
    def asked(cls, uid, cgroup):
        def what():
            with connect(cls.path) as s:
                return ask(s)
        # while the limit of the work for users holds, connections wait; in a crowd the last ones are closed
        return until(lambda: cls.as_user(what, uid, cgroup))

    @classmethod
    def seen(cls, uid, cgroup):
        return groups(cls.asked(uid, cgroup))

    def test_what_belongs_to_whom(self):
        alices, bobs, job2 = self.inner.path, self.step.path, self.job2.path
        for uid, cgroup, *want in ((ALICE, None, alices), (ALICE, self.alice, alices), (ALICE, self.job2, alices, job2),
                                   (BOB, None), (BOB, self.alice), (BOB, self.inner), (BOB, self.job1, bobs), (BOB, self.step, bobs),
                                   (0, None), (0, self.alice), (0, self.job1, bobs)):
            got = set(self.seen(uid, cgroup))
            self.assertLessEqual(set(want), got)
            # those who ask are sampled, too, in the cgroup above
            tops = {'/'.join(path.split('/')[:2 + ('/jobs/' in path) + 1]) for path in want}
            for path in got:
                self.assertTrue(any(path == top or path.startswith(top + '/') for top in tops), (uid, path, tops))

    def test_nothing_but_snapshots(self):
        for request in (b'status\n\n', b'set\nperiod=160000\n\n', b'snapshot\njson\n\n', b'reset\n\n', b'\0\n\n', b'help\n\n'):
            got = self.as_user(lambda r=request: ask(connect(self.path), r), BOB, None)
            self.assertTrue(got.startswith(b'error usage\n'), (request, got))
        self.assertTrue(self.as_user(lambda: b'refused' if self.refused(self.control) else b'', BOB, None))
        for d, _, files in os.walk(PINS):
            for name in files:
                self.assertFalse(os.stat(os.path.join(d, name)).st_mode & 0o077, name)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o666)

    @staticmethod
    def refused(path):
        try:
            connect(path)
        except PermissionError:
            return True

    def alice_runs(self, *args):
        """What Alice's command prints."""
        program = os.path.join(self.dir, 'ibscope')
        if not os.path.exists(program):
            shutil.copy(IBSCOPE, program)    # where other users may read
        return self.as_user(lambda: subprocess.run([program, *args], capture_output=True, check=False,
                                                   env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'}).stdout, ALICE, None).decode()

    def top(self, path, *args):
        return self.alice_runs('top', *args, '--user-socket', path, '--once', '-d', '.3', '--size', '160x40')

    def test_ctl(self):
        """The tables and numbers of `ctl snapshot`, and a ledger of nothing else."""
        def ctl(*args):
            return self.alice_runs('ctl', '--control', self.path, *args)
        o = json.loads(ctl('--json', '--by', 'cgroup', 'snapshot'))
        self.assertEqual({s['labels']['cgroup'] for s in o['series']}, {self.inner.path})
        self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['seen'])
        self.assertEqual(residual(o['ledger']), 0)
        text = ctl('snapshot')
        self.assertIn('SIMULATED', text)
        self.assertNotIn('job_', text)
        text = until(lambda: (lambda t: 'alice' in t and t)(self.top(self.path)))
        self.assertIn('own cgroups', text)
        self.assertNotIn('job_', text)

    def test_fetches(self):
        """Of a collector of both events every outcome and translation of fetches gets through, and ops beside them."""
        path = os.path.join(self.dir, 'run', 'fetches.sock')
        c = ibscope.Collector(PINS + '-fetch', '--unpin', '-e', 'ibs_op//,ibs_fetch//', '-c', '200000,20000', '--max-overhead', 'off', '--nmi-cost', '1us',
                              '--by', 'cgroup,fetch,itlb', '--control', path + '.control', '--user-socket', path)
        self.addCleanup(c.stop)

        def seen():
            text = self.alice_runs('ctl', '--control', path, '--json', '--by', 'fetch,itlb', 'snapshot')
            return {f'{k}={v}' for s in json.loads(text)['series'] for k, v in s['labels'].items()} if text else set()
        until(lambda: seen() >= {'fetch=l1', 'fetch=l3', 'fetch=aborted', 'itlb=l1', 'itlb=walk-2m', 'itlb=walk'})
        self.assertIn('by outcome of fetches', until(lambda: (lambda t: 'alice' in t and t)(self.top(path, '-e', 'ibs_fetch//'))))
        self.assertIn('ibs_op//', self.top(path))
        both = [json.loads(line) for line in self.alice_runs('ctl', '--control', path, '--json', 'snapshot').splitlines()]
        self.assertEqual([o['event'] for o in both], ['ibs_op//', 'ibs_fetch//'])

    def test_process_that_is_gone(self):
        """The connection of a process in a job is useless after the process has exited, even if its pid is reused."""
        for reuse in False, True:
            ours, theirs = socket.socketpair()

            def first():
                s = connect(self.path)
                socket.send_fds(theirs, [b'x'], [s.fileno()])
            pid = fork(first, BOB, self.job1)
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
            os.waitpid(pid, 0)
            if reuse:
                self.take_pid(pid)
            with socket.socket(fileno=fds[0]) as s:
                s.settimeout(30)
                self.assertEqual(groups(ask(s)), {})
            ours.close()
            theirs.close()

    def take_pid(self, pid):
        """Start a process of another user in another job with the same number, unless somebody else is faster."""
        for _ in range(20):
            with open('/proc/sys/kernel/ns_last_pid', 'w') as f:
                f.write(str(pid - 1))
            other = fork(signal.pause, ALICE, self.job2)
            self.addCleanup(os.waitpid, other, 0)
            self.addCleanup(os.kill, other, signal.SIGKILL)
            if other == pid:
                with open(f'/proc/{pid}/cgroup') as f:
                    until(lambda: f.seek(0) or TOP in f.read())
                return

    def test_moved_while_asking(self):
        """Of one job or the other, never both; and of neither outside."""
        r, w = os.pipe()

        def what():
            for _ in range(60):
                with connect(self.path) as s:
                    os.write(w, b','.join(sorted(p.encode() for p in groups(ask(s)))) + b'\n')
        pid = fork(what, BOB, None)
        os.close(w)
        done = threading.Event()

        def move():
            while not done.is_set():
                for cgroup in self.job1, self.job2:
                    try:
                        cgroup.add(pid)
                    except OSError:
                        return
        mover = threading.Thread(target=move)
        mover.start()
        with os.fdopen(r, 'rb') as f:
            answers = set(f.read().decode().splitlines())
        done.set()
        mover.join()
        os.waitpid(pid, 0)
        for answer in answers:
            jobs = {p.split('/')[3] for p in answer.split(',') if p}
            self.assertLessEqual(len(jobs), 1, answers)
        self.assertTrue(answers)

    def test_a_path_that_was_made_again(self):
        """Nobody gets the counters of a job that has ended, not even the next job of that name."""
        job = Cgroup(TOP + '/jobs/job_3')
        b = Busy(0, job)
        until(lambda: job.path in self.seen(BOB, job))
        b.stop()
        job.remove()
        job = Cgroup(job.path)
        self.addCleanup(job.remove)
        answer = self.asked(ALICE, job)
        ids = {g['id'] for g in map(json.loads, answer.decode().splitlines()[2:-1]) if g['cgroup'] == job.path}
        self.assertLessEqual(ids, {job.id()})

    def test_directory_of_root(self):
        d = os.path.join(self.dir, 'private')
        os.mkdir(d, 0o750)
        c = ibscope.Collector(PINS + '-private', '--unpin', '--control', d + '/c', '--user-socket', d + '/u')
        self.addCleanup(c.stop)
        c.wait(f'--user-socket: other users do not reach it, as {d} has mode 0750')

    def test_third_connection(self):
        def what():
            with connect(self.path) as a, connect(self.path) as b, connect(self.path) as third:
                try:
                    closed = not third.recv(1)    # though nothing was asked, and before the first two are given up
                    for s in a, b:
                        s.setblocking(False)
                        self.assertRaises(BlockingIOError, s.recv, 1)
                    return b'x' * closed
                except (*GONE, AssertionError):
                    return b''
        until(lambda: self.as_user(what, BOB, None))

    def test_many_and_slow_clients(self):
        """One user takes all connections there are, and reads nothing: others and root get their answers."""
        def crowd():
            held = []
            while len(held) < 60:
                s = socket.socket(socket.AF_UNIX)
                s.setblocking(False)
                try:
                    s.connect(self.path)
                    s.send((b'snapshot\n', b'snapshot\n\n')[len(held) % 2])
                except GONE + (BlockingIOError,):
                    time.sleep(0.01)
                held.append(s)
            os.write(w, b'x')
            signal.pause()
        r, w = os.pipe()
        pid = fork(crowd, BOB, self.job1)
        os.read(r, 1)
        try:
            for _ in range(3):
                self.assertIn(self.inner.path, self.seen(ALICE, None))
            with connect(self.control) as s:
                self.assertTrue(ask(s, b'status\n\n').startswith(b'ok\n'))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(r)
            os.close(w)
        until(lambda: self.step.path in self.seen(BOB, self.job1))    # his connections are given back


if __name__ == '__main__':
    unittest.main()
