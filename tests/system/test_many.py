# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""More cgroups than there are counters for, all with samples, and cgroups that come and go.

IBSCOPE_CGROUPS is how many (default 700), IBSCOPE_CHURN_S how long they come and go (default 10):
`make many` takes 10,000 and ten minutes.
"""
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

from ibscope import BUILD, IBSCOPE, SAN, Cgroup, cgroup2_mount, memory_cgroup, until
from test_containers import CPUS, OK, WHY
from test_exporter import NOBODY, ROOT, Case, Exporter, Program, samples

N = int(os.environ.get('IBSCOPE_CGROUPS', 700))
CHURN_S = float(os.environ.get('IBSCOPE_CHURN_S', 10))
RATE = 200
PINS = f'/sys/fs/bpf/ibscope-many-{os.getpid()}'
TOP = f'ibscope-test-many-{os.getpid()}'
PERIOD = 500000     # ns

# in each cgroup busy for SPIN seconds; with RATE > 0 so many a second, a quarter of them at least, and each is removed after it
VISITOR = r'''
import os, sys, time
top, cpu, first, end, step, spin, rate, seconds = sys.argv[1], *map(float, sys.argv[2:])
os.sched_setaffinity(0, [int(cpu)])
start, n = time.monotonic(), 0
for i in range(int(first), int(end), int(step)):
    path = f'{top}/c{i}'
    os.makedirs(path, exist_ok=True)
    with open(path + '/cgroup.procs', 'w') as f:
        f.write('0')
    until = time.thread_time() + spin
    while time.thread_time() < until:
        pass
    n += 1
    if rate:
        with open(top + '/rest/cgroup.procs', 'w') as f:
            f.write('0')
        os.rmdir(path)
        if time.monotonic() > start + seconds and n > rate * seconds / 4:
            break
        time.sleep(max(0, start + n / rate - time.monotonic()))
print(n)
'''


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
class Many(Case):
    def setUp(self):
        self.top = f'{cgroup2_mount()}/{TOP}'
        self.addCleanup(Cgroup(TOP).remove)
        os.makedirs(self.top + '/rest')
        self.last = {}

    def visit(self, cpu, first, end, step=1, spin=0.003, rate=0, seconds=0):
        p = subprocess.Popen([sys.executable, '-c', VISITOR, self.top, *map(str, (cpu, first, end, step, spin, rate, seconds))],
                             text=True, stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def visited(self, visitors):
        n = sum(int(p.stdout.read()) for p in visitors)
        self.assertEqual([p.wait() for p in visitors], [0] * len(visitors))
        return n

    def serve(self, *args):
        c = self.start(Program, [IBSCOPE, 'serve', '--source', 'sim', '-c', str(PERIOD), '--max-overhead', 'off', '--max-bpf-time', 'off',
                                 '--pin-dir', PINS, '--unpin', '--cgroup', '/' + TOP, '--by', 'cgroup', '--control', 'none', '--max-memory', '1G', *args],
                       'kernel memory')
        self.addCleanup(shutil.rmtree, PINS, True)
        return c

    def exporter(self):
        """In a cgroup of its unit's memory, where there are such."""
        with open(os.path.join(ROOT, 'tools/systemd/ibscope-exporter.service')) as f:
            limit = int(re.search(r'^MemoryMax=(\d+)M$', f.read(), re.M).group(1)) << 20
        cgroup = memory_cgroup(f'ibscope-many-{os.getpid()}-{time.monotonic_ns()}', limit)
        enter = ['sh', '-ec', f'echo $$ > {cgroup}/cgroup.procs; exec "$@"', '-'] if cgroup else []
        if cgroup:
            self.addCleanup(os.rmdir, cgroup)
        e = self.start(Exporter, pin_dir=PINS, prefix=[*enter, *NOBODY], program=os.path.join(BUILD, 'ibscope-exporter'))
        until(lambda: e.get('/-/ready')[0] == 200)
        return e, cgroup

    def scrape(self, e):
        """One whose sums are right, and in which nothing fell."""
        s = samples(e.get()[2])
        self.assertIn('ibscope_samples_ended', s, e.said())
        now = {k: v for k, v in s.items() if k.startswith('ibscope_samples_total{')}
        self.assertEqual(sum(now.values()) + s['ibscope_samples_ended'], s['ibscope_samples_aggregated_total'])
        self.assertEqual(s['ibscope_samples_seen_total'], sum(v for k, v in s.items() if re.match(
            r'ibscope_samples_(aggregated|forwarded|filtered|lost)_total', k)))
        for k in now.keys() & self.last.keys():
            self.assertGreaterEqual(now[k], self.last[k], k)
        self.last = now
        return s

    def own(self):
        return sum('cgroup="other"' not in k for k in self.last)

    def kib(self, pid, what='RssAnon'):
        with open(f'/proc/{pid}/status') as f:
            return int(re.search(rf'{what}:\s+(\d+)', f.read()).group(1))

    def test_each_has_samples(self):
        """With counters for all, each is a series; with counters for fewer, the others have samples all the same."""
        for limit in N + 10, N // 3:
            with self.subTest(limit=limit):
                self.each_has_samples(limit)

    def each_has_samples(self, limit):
        self.last = {}
        c = self.serve('--max-groups', str(limit))
        e, cgroup = self.exporter()
        try:
            visitors = [self.visit(cpu, i, N, len(CPUS[:2]), spin=0.006) for i, cpu in enumerate(CPUS[:2])]
            while any(p.poll() is None for p in visitors):
                self.scrape(e)
                time.sleep(0.5)
            self.assertEqual(self.visited(visitors), N)
            # a visit of twelve periods brings a sample, where timers are on time; at times one leaves before another comes;
            # groups without a name, which are one series, get theirs in the next second
            s = until(lambda: (s := self.scrape(e)) and self.own() > min(N, limit) * 0.9 and s)
            own = self.own()
            self.assertGreater(s['ibscope_samples_aggregated_total'], N)
            self.assertLessEqual(s['ibscope_groups'], limit)
            peak = self.kib(e.p.pid) / 1024
            for name in 'memory.max_usage_in_bytes', 'memory.peak':
                if cgroup and os.path.exists(f'{cgroup}/{name}'):
                    with open(f'{cgroup}/{name}') as f:
                        peak = int(f.read()) / (1 << 20)
            print(f'{N} cgroups, counters for {limit}: {own} series, {s["ibscope_samples_aggregated_total"]:.0f} samples, '
                  f'{s["ibscope_groups_displaced_total"]:.0f} displaced, collector {self.kib(c.p.pid) / 1024:.1f} MiB anonymous, '
                  f'exporter {peak:.1f} MiB')
        finally:
            e.stop()
            self.ends(c)

    def ends(self, c):
        self.assertEqual(c.stop(), 0)
        until(lambda: not os.path.exists(PINS))

    def test_they_come_and_go(self):
        """Nothing grows, no counter falls, and every scrape adds up."""
        c = self.serve('--grace', '2s', '--max-groups', '2000')
        e, _ = self.exporter()
        cpus = CPUS[:2]
        visitors = [self.visit(cpu, i, 1 << 30, len(cpus), rate=RATE / len(cpus), seconds=CHURN_S) for i, cpu in enumerate(cpus)]
        rows = []
        while any(p.poll() is None for p in visitors):
            s = self.scrape(e)
            rows.append((self.kib(c.p.pid), self.kib(e.p.pid), s['ibscope_groups']))
            time.sleep(0.5)
        n = self.visited(visitors)
        quarter = max(1, len(rows) // 4)
        early, late = (sorted(rows[a:b]) for a, b in ((quarter, 2 * quarter), (-quarter, None)))
        early, late = early[len(early) // 2], late[len(late) // 2]
        s = until(lambda: (s := self.scrape(e)) and s['ibscope_groups'] < 10 and s)
        print(f'{n} cgroups in {CHURN_S:.0f} s, {s["ibscope_groups_folded_total"]:.0f} folded, {len(rows)} scrapes; KiB of collector and '
              f'exporter, groups: {early}, then {late}')
        self.assertGreater(n, RATE * CHURN_S / 4)
        self.assertGreater(s['ibscope_groups_folded_total'], n / 2)
        # the names of 65,536 that ended are kept
        if SAN == BUILD:    # sanitizers keep what was freed
            self.assertLess(late[0], rows[0][0] + min(n, 65536) * 0.33 + 1024)
        self.assertLess(late[1], early[1] * 1.25 + 2048)
        self.ends(c)


if __name__ == '__main__':
    unittest.main()
