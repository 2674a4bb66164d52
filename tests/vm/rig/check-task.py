#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""check-task.py LOG GUEST: the log's task columns against what the guest said.

GUEST has a line "NAME tids=T[,T...] tgid=N cgroup=N" per busy process and the
/proc/kallsyms lines of __cpuidle_text_start and __cpuidle_text_end.
"""
import collections
import re
import sys

MIN_LINES = 300


def main():
    log, guest = sys.argv[1:3]
    procs, idle = [], {}
    for line in open(guest):
        m = re.match(r'(\w+) tids=([\d,]+) tgid=(\d+) cgroup=(\d+)$', line.strip())
        if m:
            procs.append((m[1], m[2].split(','), m[3], m[4]))
        m = re.match(r'([0-9a-f]+) \w (__cpuidle_text_(?:start|end))$', line.strip())
        if m:
            idle[m[2]] = int(m[1], 16)
    if not procs or len(idle) != 2:
        sys.exit('check-task: the guest did not say enough')
    rows = [line.strip().split(',') for line in open(log) if line[0] != '#']
    bad = []

    def expect(ok, what):
        if not ok:
            bad.append(what)

    expect(all(len(f) == 19 for f in rows), 'lines without 19 columns')
    unknown = sum(f[15:18] == ['', '', ''] for f in rows)
    print('log %d lines, %d without a task' % (len(rows), unknown))
    expect(not unknown, 'lines without a task')

    # which CR3 is a process's: the one most of its user-mode lines have
    user = [f for f in rows if f[11] == '3']
    for name, tids, tgid, cgroup in procs:
        own = collections.Counter(f[12] for f in user if f[16] == tgid)
        cr3 = own.most_common(1)[0][0] if own else None
        seen = collections.Counter(tuple(f[15:18]) for f in user if f[12] == cr3)
        print('%s: tids %s tgid %s cgroup %s; user-mode lines of its CR3 %s: %s' % (
            name, ','.join(tids), tgid, cgroup, cr3,
            ', '.join('%s/%s/%s %d' % (k + (n,)) for k, n in sorted(seen.items()))))
        expect(len(own) == 1, '%s: its tgid with %d CR3s' % (name, len(own)))
        expect(set(seen) == {(t, tgid, cgroup) for t in tids},
               '%s: other tasks than it has' % name)
        expect(sum(seen.values()) >= MIN_LINES, '%s: too few lines' % name)

    start, end = idle['__cpuidle_text_start'], idle['__cpuidle_text_end']
    seen = collections.Counter(tuple(f[15:18]) for f in rows
                               if start <= int(f[14], 16) < end)
    print('idle: %s' % ', '.join('%s/%s/%s %d' % (k + (n,))
                                 for k, n in sorted(seen.items())))
    expect(set(seen) == {('0', '0', '1')}, 'idle: not 0/0/1 (root cgroup)')
    expect(sum(seen.values()) >= MIN_LINES, 'idle: too few lines')
    for what in bad:
        print('BAD ' + what)
    return 1 if bad else 0


sys.exit(main())
