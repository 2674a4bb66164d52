#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""neighbours.py IBSCOPE [SECONDS [CONTAINERS]]: what judging neighbours costs `serve`, in percent of one CPU.

Two collectors see the same containers at the same time. One groups by complex and judges, the other does not; both
have warmed up for as many windows as the judge keeps. The difference of their CPU times is the cost, with what reading
the counters of a window takes. SIMULATED samples; a process goes from container to container, a millisecond in each.
"""
import hashlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HISTORY_S = 130     # NEIGHBOURS_HISTORY windows, and some
PART_S = 10
VISITOR = '''import os, sys, time
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])    # on one complex
files = [open(path + '/cgroup.procs', 'wb', 0) for path in sys.argv[1:]]
while True:
    began = time.monotonic()
    for f in files:
        f.write(b'0')
        until = time.thread_time() + .001
        while time.thread_time() < until:
            pass
    time.sleep(max(0, began + 1 - time.monotonic()))
'''


def cgroup2():
    with open('/proc/mounts') as f:
        return next(line.split()[1] for line in f if line.split()[2] == 'cgroup2')


def cpu_s(pid):
    total = 0
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/schedstat') as f:
            total += int(f.read().split()[0])
    return total / 1e9


def main():
    ibscope, seconds, n = sys.argv[1], float((sys.argv[2:] or [60])[0]), int((sys.argv[3:] or [200])[0])
    top = f'{cgroup2()}/ibscope-bench-{os.getpid()}'
    paths = [f'{top}/docker-{hashlib.sha256(b"%d" % i).hexdigest()}.scope' for i in range(n)]
    processes = []
    with tempfile.TemporaryDirectory() as d:
        try:
            for path in paths:
                os.makedirs(path)
            processes.append(subprocess.Popen([sys.executable, '-c', VISITOR, *paths]))
            for name, by in ('with', 'container,ccx,src,op'), ('without', 'container,src,op'):
                processes.append(subprocess.Popen([ibscope, 'serve', '--source', 'sim', '--pin-dir', f'/sys/fs/bpf/ibscope-bench-{os.getpid()}-{name}',
                                                   '--unpin', '--by', by, '-F', '20000', '--control', f'{d}/{name}']))
            _, judges, other = processes
            time.sleep(HISTORY_S)
            parts = []
            for _ in range(int(seconds / PART_S)):
                before, began = [cpu_s(p.pid) for p in (judges, other)], time.monotonic()
                time.sleep(PART_S)
                after, passed = [cpu_s(p.pid) for p in (judges, other)], time.monotonic() - began
                parts.append([100 * (b - a) / passed for a, b in zip(before, after)])
            costs = [a - b for a, b in parts]
            print(f'{n} containers, {len(parts)} times {PART_S} s: {statistics.median(a for a, _ in parts):.3f} % of one CPU with neighbours, '
                  f'{statistics.median(b for _, b in parts):.3f} % without, {statistics.median(costs):.3f} % more '
                  f'({min(costs):.3f} to {max(costs):.3f})')
            for name in 'with', 'without':
                status = subprocess.run([ibscope, 'ctl', '--control', f'{d}/{name}', 'status'], capture_output=True, text=True).stdout
                print('\n'.join(line for line in status.splitlines() if 'neighbours' in line or 'groups' in line))
        finally:
            for p in processes[::-1]:
                p.send_signal(signal.SIGTERM)
            for p in processes[::-1]:
                p.wait()
            time.sleep(.2)
            for path in paths + [top]:
                if os.path.isdir(path):
                    os.rmdir(path)


if __name__ == '__main__':
    main()
