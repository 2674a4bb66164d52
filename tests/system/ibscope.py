# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of the program share: running it, cgroups, busy processes."""
import array
import atexit
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from bpf_probe import can_bpf  # noqa: F401: for the modules that import it from here

BUILD = os.environ.get('IBSCOPE_BUILD', os.path.abspath('build'))
SAN = os.environ.get('IBSCOPE_SAN', BUILD)
PR_SET_PDEATHSIG = 1     # linux/prctl.h
# Memory that was freed, and that the sanitizer keeps, counts for --max-rss.
os.environ.setdefault('ASAN_OPTIONS', 'quarantine_size_mb=8')
# Sanitizers slow no kernel, so the instrumented program is the one to test.
IBSCOPE = os.path.join(SAN, 'ibscope')
# Selects what is not of test_push_names.py, which may run beside: each reader of its programs' symbols takes up to 10 s of CPU time for one.
NOT_DEAR = '--comm', '!dear'


def run(*args, timeout=180, **kw):
    return subprocess.run([IBSCOPE, *args], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **kw)


def run_each(out, words, files, timeout=600):
    """Run a command on each file, in one process: tests/cli/run_each.c. Returns its exit status, (exit status, file) of each, stderr."""
    p = subprocess.run([os.path.join(SAN, 'tests', 'cli', 'run_each'), out, *words, '--', *files], capture_output=True, text=True,
                       errors='replace', timeout=timeout, stdin=subprocess.DEVNULL)
    done = [line.split(' ', 1) for line in p.stdout.splitlines()]
    return p.returncode, [(int(status), path) for status, path in done], p.stderr


@functools.cache
def turn(n):
    """Whose turn it is of @n parts of what takes long, chosen by the commit: all of them with ALL=1 in the environment. Returns a set of 0 to n - 1."""
    if os.environ.get('ALL'):
        return set(range(n))
    p = subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    return {int(p.stdout or '0', 16) % n}


def hist(*args, **kw):
    """The objects that `hist --json` printed."""
    p = run('hist', '--json', *args, **kw)
    if p.returncode:
        raise AssertionError(f'exit {p.returncode}: {p.stderr}')
    return [json.loads(line) for line in p.stdout.splitlines()]


def residual(ledger):
    return ledger['seen'] - ledger['aggregated'] - ledger['forwarded'] - \
        sum(ledger['filtered'].values()) - sum(ledger['lost'].values())


def until(what, seconds=60):
    """What @what returns, soon after that is true. It is often a program, so that it is called less and less often."""
    end, pause = time.monotonic() + seconds, 0.02
    while not (found := what()):
        if time.monotonic() > end:
            raise AssertionError(f'after {seconds} s still {found!r}')
        time.sleep(pause)
        pause = min(pause * 1.3, 0.4)
    return found


def ask(path, request, *files, timeout=60):
    """What a collector's control socket answers, as socat would have it: no process, which would take more CPU time than the answer."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(path)
        s.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', files))] if files else [])
        s.shutdown(socket.SHUT_WR)
        out = b''
        while chunk := s.recv(65536):
            out += chunk
    return out.decode()


def ask_json(path, verb):
    """The object that `ctl --json` with this verb prints."""
    return json.loads(ask(path, f'{verb}\njson\n'.encode()).split('\n', 1)[1])


def open_files(pid):
    """What a process has open, as links in /proc have it; without what it closes meanwhile."""
    files = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
    return files


def spin(seconds):
    """A command that needs so much CPU time, as that gives samples."""
    return [sys.executable, '-ISc', f'import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass']


def cpu_seconds(pid, children=False):
    """The CPU time that a process has used, or that of its children that have ended."""
    with open(f'/proc/{pid}/stat') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return sum(map(int, fields[13:15] if children else fields[11:13])) / os.sysconf('SC_CLK_TCK')


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def cgroup2_mount():
    with open('/proc/self/mountinfo') as f:
        lines = f.readlines()
    for line in lines:
        left, right = line.split(' - ')
        if right.split()[0] == 'cgroup2':
            return left.split()[4]
    return None


@functools.cache
def populate_cgroup2():
    """Until the end of this process. Where v1 is mounted, too, a collector chooses the first hierarchy that has cgroups
    when it starts: let that be v2, in which tests make theirs later."""
    if cgroup2_mount() and os.geteuid() == 0:
        atexit.register(Cgroup(f'/ibscope-tests-{os.getpid()}').remove)


def limited_cgroup(name, controller, v1, v2):
    """A cgroup in which one file of a controller of v1 or v2 has a text, each a pair; the caller removes it. None: there is no
    such controller here."""
    with open('/proc/mounts') as f:
        mount = next((at for _, at, kind, options, *_ in map(str.split, f) if kind == 'cgroup' and controller in options.split(',')), None)
    file, text = v1 if mount else v2
    cgroup = f'{mount or cgroup2_mount()}/{name}'
    os.mkdir(cgroup)
    if not os.path.exists(f'{cgroup}/{file}'):
        os.rmdir(cgroup)
        return None
    with open(f'{cgroup}/{file}', 'w') as f:
        f.write(text)
    return cgroup


def memory_cgroup(name, limit):
    """A cgroup with a limit of memory in bytes, which the caller removes; None: no memory controller is here."""
    return limited_cgroup(name, 'memory', ('memory.limit_in_bytes', str(limit)), ('memory.max', str(limit)))


class Cgroup:
    """A cgroup of a test, removed with those below it when done."""

    def __init__(self, path):
        self.path = '/' + path.strip('/')
        if not cgroup2_mount():
            raise unittest.SkipTest('no cgroup v2 is mounted')
        self.dir = cgroup2_mount() + self.path
        os.makedirs(self.dir, exist_ok=True)

    def id(self):
        return os.stat(self.dir).st_ino

    def add(self, pid):
        with open(os.path.join(self.dir, 'cgroup.procs'), 'w') as f:
            f.write(str(pid))

    def remove(self):
        for d, _, _ in os.walk(self.dir, topdown=False):
            for _ in range(50):
                try:
                    os.rmdir(d)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)  # a killed process takes a moment to leave


class Busy:
    """A process that keeps one CPU busy, in a cgroup, for this @share of each 50 ms: tests run beside others. Its name is that of @program."""

    def __init__(self, cpu, cgroup=None, share=0.2, program=None):
        code = 'while True: pass' if share == 1 else f'''import time
while True:
    end = time.monotonic() + {0.05 * share}
    while time.monotonic() < end:
        pass
    time.sleep({0.05 * (1 - share)})'''
        self.p = subprocess.Popen([program or sys.executable, '-IS', '-c', code], preexec_fn=lambda: self.start(cpu))
        if cgroup:
            cgroup.add(self.p.pid)
        self.pid = self.p.pid

    @staticmethod
    def start(cpu):
        os.sched_setaffinity(0, {cpu})
        # a test that is killed must not leave a CPU busy for the others
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def runs(self, seconds=0.2):
        """Until it has used so much more CPU time."""
        end = cpu_seconds(self.pid) + seconds
        until(lambda: cpu_seconds(self.pid) >= end)

    def stop(self):
        self.p.kill()
        self.p.wait()


def wait_sampling(p):
    """Wait until a program with --source sim reports that it samples, as hist and top do with -v; return its messages."""
    said = ''
    while 'SIMULATED' not in said:
        line = p.stderr.readline()
        assert line, said
        said += line
    return said


def read_terminal(ours, theirs):
    """Close both ends of a terminal, and return what programs wrote to it before they ended: it comes in parts, and later."""
    said = b''
    os.write(theirs, b'\0')
    while not said.endswith(b'\0'):
        said += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    return said[:-1].decode()


def stalled(pipe):
    """Something is in it, and no more is written."""
    def unread():
        return struct.unpack('i', fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    before = unread()
    time.sleep(0.5)     # in which nothing may come
    return before and unread() == before


def keep_busy(test):
    """Until the end of a test no CPU idles: the software clock of one that does is throttled after
    some hundred samples, and nothing ends that before its next tick."""
    for cpu in sorted(os.sched_getaffinity(0)):
        b = Busy(cpu, share=0.05)
        os.sched_setscheduler(b.pid, os.SCHED_IDLE, os.sched_param(0))
        test.addCleanup(b.stop)


def log_file():
    """For what a program says: its writes go to the end, wherever this process reads."""
    f = tempfile.TemporaryFile('w+')
    fcntl.fcntl(f, fcntl.F_SETFL, fcntl.fcntl(f, fcntl.F_GETFL) | os.O_APPEND)
    return f


def read_log(f):
    """All of a log_file(): its position is the writer's, too, which moves it in the middle of a read."""
    return os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0).decode(errors='replace')


class Collector:
    """A `serve` with pins of its own, terminated by stop()."""

    def __init__(self, pin_dir, *args, under=()):
        """@under: a command that runs it, such as setpriv"""
        populate_cgroup2()
        self.err = log_file()
        # a machine that is not ours alone may take its time in the middle of a program
        self.p = subprocess.Popen([*under, IBSCOPE, 'serve', '--source', 'sim', '--pin-dir', pin_dir, '--max-bpf-time', 'off', *args],
                                  stderr=self.err, stdin=subprocess.DEVNULL)
        try:
            self.wait('kernel memory')
        except AssertionError:
            self.kill()
            raise

    def said(self):
        return read_log(self.err)

    def wait(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.said():
            if self.p.poll() is not None or time.monotonic() > end:
                raise AssertionError(f'missing {text!r}: {self.said()}')
            time.sleep(0.05)

    def stop(self, sig=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            status = self.p.wait(60)
            if status and not self.err.closed:
                print(f'# serve ended with {status}: {self.said()}', flush=True)
            return status
        finally:
            self.kill()

    def kill(self):
        """It must not sample on beside the tests that follow."""
        self.p.kill()
        self.p.wait()
        self.err.close()
