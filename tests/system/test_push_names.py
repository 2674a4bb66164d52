# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""serve --push beside a tenant whose programs are dear to name: the others keep their names, and profiles come."""
import contextlib
import errno
import gzip
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request

import ibscope
from ibscope import Busy, cpu_seconds, limited_cgroup, run, until
import test_push

# Just below the limit of symbols. That of one file is 10 s of CPU time, that of a profile 20 s.
SYMBOLS, NAME_BYTES, DEAR, HOGS = 1_900_000, 8000, 8, 6
QUOTA_US, PERIOD_US = 12_500, 100_000   # of a CPU, as much as HOGS would leave
PROFILE_S = 3       # of CPU time that a profile takes without them
PROGRAM = '''
#include <time.h>
volatile long n;
__attribute__((noinline)) void %s(void) { for (int i = 0; i < 300000; i++) n++; }
int main(void) { for (;;) { %s(); nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, 0); } }
'''


def removed(cgroup):
    """With what a test that failed left in it; False: something there has not ended yet."""
    with open(cgroup + '/cgroup.procs') as f:
        for pid in f:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    try:
        os.rmdir(cgroup)
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False
    return True


@unittest.skipUnless(test_push.OK, f'no BPF on this machine: {test_push.WHY}')
class PushNames(unittest.TestCase):
    SELECT = ()
    setUp, server, collector, status, until = (getattr(test_push.Push, name) for name in
                                                     ('setUp', 'server', 'collector', 'status', 'until'))
    failed, form = staticmethod(test_push.Push.failed), staticmethod(test_push.Push.form)

    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.mkdtemp(prefix='ibscope-push-')
        cls.addClassCleanup(shutil.rmtree, cls.programs)
        os.chmod(cls.programs, 0o755)
        cls.dear, cls.victim = cls.dear_files(), cls.program('victim')

    @classmethod
    def program(cls, name, more=''):
        path = f'{cls.programs}/{name}'
        subprocess.run(['gcc', '-O1', '-x', 'c', '-o', path, '-'], input=(PROGRAM % (name, name) + more).encode(), check=True)
        return path

    @classmethod
    def dear_files(cls):
        """Programs whose symbols have one address and one long name, so that sorting them is what takes time. All have the name that
        collectors of other tests leave out."""
        path = cls.program('dear', f'__asm__(".globl {"x" * NAME_BYTES}\\n{"x" * NAME_BYTES} = 1\\n");')
        with open(path, 'rb') as f:
            data = bytearray(f.read())
        at, n = struct.unpack_from('<Q', data, 40)[0], struct.unpack_from('<H', data, 60)[0]
        sections = [list(struct.unpack_from('<IIQQQQIIQQ', data, at + 64 * i)) for i in range(n)]
        table = next(s for s in sections if s[1] == 2)
        name = data.index(b'x' * NAME_BYTES, sections[table[6]][4]) - sections[table[6]][4]
        symbol = struct.pack('<IBBHQQ', name, 0x12, 0, 1, 0x100, 1)
        table[4], table[5] = len(data), 24 * SYMBOLS
        struct.pack_into('<Q', data, 40, len(data) + 24 * SYMBOLS)
        with open(path, 'wb') as f:
            f.write(data + symbol * SYMBOLS + b''.join(struct.pack('<IIQQQQIIQQ', *s) for s in sections))
        paths = [path] + [f'{cls.programs}/{i}/dear' for i in range(1, DEAR)]
        for copy in paths[1:]:
            os.mkdir(os.path.dirname(copy))
            shutil.copy(path, copy)
        return paths

    def run_as(self, path, user):
        cpu = min(os.sched_getaffinity(0))
        p = subprocess.Popen([path], preexec_fn=lambda: (Busy.start(cpu), os.setgroups([]), os.setuid(user)))
        self.addCleanup(lambda: (p.kill(), p.wait()))

    def neighbours(self):
        """The collector is started first: what ran before is named by what it found in /proc, in the order of pids."""
        for path in self.dear:
            self.run_as(path, 65533)
        self.run_as(self.victim, 65532)

    def little_cpu(self):
        """What leaves a process, and those that it starts, little of a CPU: a quota, which makes no other test wait, or hogs."""
        cgroup = limited_cgroup(f'ibscope-hogs-{os.getpid()}', 'cpu', ('cpu.cfs_quota_us', str(QUOTA_US)), ('cpu.max', f'{QUOTA_US} {PERIOD_US}'))
        if cgroup:
            self.addCleanup(until, lambda: removed(cgroup))

            def leave(pid):
                with open(cgroup + '/cgroup.procs', 'w') as f:
                    f.write(str(pid))
            return leave
        cpu = min(os.sched_getaffinity(0))
        for _ in range(HOGS):
            b = Busy(cpu, share=1)
            self.addCleanup(b.stop)
        return lambda pid: os.sched_setaffinity(pid, {cpu})

    def texts(self, post):
        """What a profile has, strings of functions among it."""
        return gzip.decompress(self.form(*post[1:])['profile'])

    @staticmethod
    def children_s(c):
        """CPU time of processes that the collector has waited for, and theirs."""
        return cpu_seconds(c.p.pid, children=True)

    def delivered(self, n):
        o = self.until(lambda p: p['profiles']['delivered'] + p['profiles']['late'] >= n, 200)
        self.assertEqual(self.failed(o['push']['profiles']), o['push']['profiles']['late'])
        return o['push']

    def test_dear_neighbour(self):
        """What one tenant's files take is missing in its own names only, is counted, and is not taken for each profile."""
        self.neighbours()
        s = self.server()
        began = time.monotonic()
        c = self.collector('--push', s.url, '--push-duration', '1s', '--web.listen-address', '127.0.0.1:0')
        push = self.delivered(1)
        first_s, first = time.monotonic() - began, self.children_s(c)
        # files of what else runs on this machine may be dear, too
        self.assertGreater(push['unnamed_files'], 0)
        self.assertGreater(push['unnamed_samples'], 0)
        push = self.delivered(3)
        elapsed, used = time.monotonic() - began, self.children_s(c)
        print(f'# first profile after {first_s:.1f} s and {first:.1f} s of CPU time, two more with {used - first:.1f} s')
        # 20 s once, a share of the time after that, and what the profiles themselves take
        self.assertLess(used, 20 + 0.05 * elapsed + 3 * PROFILE_S)
        for post in s.posts[:3]:
            self.assertIn(b'\x06victim', self.texts(post))
            self.assertRegex(self.texts(post), rb'symbols: \d+ named .*[1-9]\d* no_time')
        self.assertIn('functions of', c.said())
        self.assertEqual(c.said().count('for lack of time'), 1)
        self.assertRegex(run('ctl', '--control', self.dir + '/run/sock', 'status').stdout,
                         r'(?m)^push: .*; for lack of time [1-9]\d* files with [1-9][\d,]* samples not named$')
        port = re.search(r'listening on \S+:(\d+)', c.said())[1]
        text = urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60).read().decode()
        for what in 'files', 'samples':
            [n] = re.findall(rf'(?m)^ibscope_push_unnamed_{what}_total (\d+)$', text)
            self.assertGreaterEqual(int(n), push[f'unnamed_{what}'])

    def test_dear_neighbour_and_hogs(self):
        """Without a free CPU a profile has fewer names, and comes."""
        self.neighbours()
        leave_little = self.little_cpu()
        s = self.server()
        began = time.monotonic()
        c = self.collector('--push', s.url, '--push-duration', '1s')
        leave_little(c.p.pid)
        push = self.delivered(1)
        print(f'# first profile after {time.monotonic() - began:.1f} s and {self.children_s(c):.1f} s of CPU time')
        self.assertIn(b'\x06victim', self.texts(s.posts[0]))
        self.assertGreaterEqual(push['unnamed_files'], DEAR)


if __name__ == '__main__':
    unittest.main()
