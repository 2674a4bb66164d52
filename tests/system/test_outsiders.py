# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Other users make cgroups and send requests without end: that costs them, not sampling."""
import json
import os
import signal
import socket
import threading
import time
import unittest

import ibscope
from ibscope import Cgroup, can_bpf, cgroup2_mount, cpu_seconds, free_port, keep_busy, run, until

OK, WHY = can_bpf()
PIN_DIR = '/sys/fs/bpf/ibscope-outsiders-%d' % os.getpid()
SECONDS = 8
# of one CPU: 2 % for each kind of work that others cause, and the collector's own
CPU_LIMIT = 0.12


class Outsider(threading.Thread):
    """Does something over and over until stop() is set."""

    def __init__(self, test, stop, work):
        super().__init__(daemon=True)
        self.stop, self.work, self.n = stop, work, 0
        self.start()
        test.addCleanup(self.join)
        test.addCleanup(stop.set)

    def run(self):
        while not self.stop.is_set():
            self.n += self.work()


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
class Outsiders(unittest.TestCase):
    def status(self):
        p = run('ctl', '--pin-dir', PIN_DIR, '--json', 'status')
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_sampling_goes_on(self):
        keep_busy(self)
        port = free_port()
        # some hundred samples a second and CPU, at a fraction of the budget: a program takes up to 50 us, and the
        # collector's own time counts half of the budget
        c = ibscope.Collector(PIN_DIR, '-c', '10000000', '--nmi-cost', '1us', '--max-overhead', '2%', '--unpin',
                              '--control', 'none', '--max-rss', '1G',  # sanitizers keep what was freed
                              '--web.listen-address', f'127.0.0.1:{port}')
        self.addCleanup(c.stop, signal.SIGKILL)
        c.wait('listening on')
        top = Cgroup(f'/ibscope-outsiders-{os.getpid()}')
        self.addCleanup(top.remove)
        stop = threading.Event()

        def churn(k):
            names = [os.path.join(top.dir, f'{k}-{i}') for i in range(50)]
            for name in names:
                os.mkdir(name)
            for name in names:
                os.rmdir(name)
            stop.wait(0.05)     # some 1,500 a second are made; more only load the kernel
            return len(names)

        def flood():
            """Requests in a row on one connection, without a pause."""
            try:
                with socket.create_connection(('127.0.0.1', port), 2) as s:
                    s.settimeout(2)
                    while not stop.is_set():
                        s.sendall(b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' * 50)
                        answers = 0
                        while answers < 50 and (got := s.recv(1 << 20)):
                            answers += got.count(b'HTTP/1.1 ')
                        if not answers:
                            break
            except OSError:
                pass
            return 1
        outsiders = [Outsider(self, stop, lambda k=k: churn(k)) for k in range(2)]
        outsiders += [Outsider(self, stop, flood) for _ in range(8)]
        # what they get at once is used up
        until(lambda: self.status()['work']['web']['delayed_s'] > 0.5)
        before, cpu, began = self.status(), cpu_seconds(c.p.pid), time.monotonic()
        while time.monotonic() < began + SECONDS:
            now = self.status()
            self.assertEqual(now['governor']['state'], 'at_rate', now)
            self.assertEqual(now['period'], 10000000)
            time.sleep(0.5)     # a look now and then, for SECONDS
        now = self.status()
        took = time.monotonic() - began
        cpu = (cpu_seconds(c.p.pid) - cpu) / took
        made = sum(o.n for o in outsiders[:2])
        delayed = now['work']['web']['delayed_s'] - before['work']['web']['delayed_s']
        samples = now['ledger']['seen'] - before['ledger']['seen']
        print(f'# {made} cgroups, requests delayed for {delayed:.1f} of {took:.1f} s: {cpu:.1%} of a CPU, '
              f'{samples / took:.0f} samples a second')
        self.assertGreater(made, 100)
        self.assertLess(cpu, CPU_LIMIT)
        self.assertGreater(delayed, 0.3 * took)
        # the clock of a CPU ticks each 10 ms of its time, when it is not taken by other guests of the host
        self.assertGreater(samples, 10 * took)
        self.assertEqual(now['governor']['changes'], {})
        c.wait('HTTP requests: delayed for')
        stop.set()
        for o in outsiders:
            o.join()
        # and it serves again
        with socket.create_connection(('127.0.0.1', port), 60) as s:
            s.settimeout(60)
            s.sendall(b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
            self.assertTrue(s.recv(100).startswith(b'HTTP/1.1 200'))
        self.assertEqual(c.stop(), 0)


if __name__ == '__main__':
    unittest.main()
