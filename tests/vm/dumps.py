#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dumps.py [--perf COMMAND] IBSCOPE FILE...: is `ibscope dump` of a perf.data what `perf report -D`
says of it, sample by sample and field by field?

perf 7.1 and later must print the same lines. What older ones are known to print otherwise is in
OLD_PERF_ONLY and OLD_PERF_LACKS; all else must be equal there too. Exits 1 on a difference.
"""
import argparse
import collections
import itertools
import os
import re
import shlex
import subprocess
import sys

REGISTER = re.compile(r'((?:ibs_|ic_ibs_|Ibs)\w+):\t([0-9a-f]{16})(.*)')
PERF_HEAD = re.compile(r'(?:(-?\d+) )?(?:(\d+) )?0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(.*?\): '
                       r'(-?\d+)/(-?\d+): (0x[0-9a-f]+|0) ')
PERF_COMM = re.compile(r'(?:\d+ )?(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_COMM(?: exec)?: (.*):\d+/(\d+)$')
PERF_THREAD = re.compile(r' \.\.\. thread: (.*):(-?\d+)$')
OUR_HEAD = re.compile(r'ibs_(?:op|fetch) sample(?: SIMULATED)?(?: time (\d+)\.(\d{9}))?(?: cpu (\d+))?'
                      r'(?: pid (\d+)/(\d+))?(?: comm ("(?:[^"\\]|\\.)*"))?')
IP = re.compile(r' ip ([0-9a-f]+)$')

# What perf before 7.1 has too much: fields that mean nothing there, or not what their name says.
OLD_PERF_ONLY = {
    'DcL1TlbHit2M', 'DcL1TlbHit1G', 'DcL2TlbHit2M', 'DcL2TlbHit1G', # page size encoding (6.16)
    'DcL1TlbMiss', 'DcL2TlbMiss',                                   # without physical address (6.16)
    'TlbRefillLat',                                                 # without physical address (7.1)
    'IbsDCPhysAd',                                                  # zeroed or without linear one (7.1)
    # fetch status without physical address on Zen 6 (7.1)
    'Lat', 'IcMiss', 'L1TlbMiss', 'L2TlbMiss', 'L2Miss', 'FetchOcMiss', 'FetchL3Miss',
    'ic_ibs_ext_ctl', 'L3MissOnly', 'IbsItlbRefillLat',
}
# What it does not know yet.
OLD_PERF_LACKS = {'LdLatThrsh', 'LdLatEn', 'DcPageSize', 'RmtSocket', 'StrmSt', 'L3MissOnly'}

Sample = collections.namedtuple('Sample', 'time cpu pid tid ip comm lines')


class Difference(Exception):
    pass


class NoOracle(Exception):
    """perf knows the processor from the head of a file, which a pipe or a newer perf's lacks."""


def perf_samples(lines, named):
    """Samples with IBS registers; those of other events have none.

    To `named` it adds (time, tid, name) of what a thread was called by a record with a time."""
    registers, sample = [], None
    for line in lines:
        line = line.rstrip('\n')
        if REGISTER.match(line):
            registers.append(line)
            continue
        head = PERF_HEAD.match(line)
        if head:
            if sample:
                yield sample
            sample = None
            if registers:
                cpu, time, pid, tid, ip = head.groups()
                sample = Sample(int(time or 0), int(cpu or -1), int(pid), int(tid), int(ip, 16), None,
                                registers)
            registers = []
            continue
        comm = PERF_COMM.match(line)
        if comm:
            named.add((int(comm.group(1)), int(comm.group(3)), comm.group(2)))
            continue
        thread = PERF_THREAD.match(line)
        if thread and sample and sample.comm is None:
            sample = sample._replace(comm=thread.group(1))
    if sample:
        yield sample


def our_samples(lines):
    sample = None
    for line in lines:
        line = line.rstrip('\n')
        head = OUR_HEAD.match(line)
        if head:
            if sample and sample.lines:
                yield sample
            s, ns, cpu, pid, tid, comm = head.groups()
            ip = IP.search(line)
            sample = Sample(int(s or 0) * 10**9 + int(ns or 0), int(cpu or -1),
                            int(pid or -1), int(tid or -1), # perf's numbers of a task that is gone
                            int(ip.group(1), 16) if ip else None, comm[1:-1] if comm else None, [])
        elif sample and not line.startswith('#'):
            sample.lines.append(line)
    if sample and sample.lines:
        yield sample


def fields(line):
    """A register's line as its name, its value and the fields in it."""
    name, value, rest = REGISTER.match(line).groups()
    out = {}
    src = re.search(r' DataSrc (\d+)=', rest)
    if src:
        out['DataSrc'] = src.group(1)       # the words for it changed with 6.12
        rest = rest[:src.start()]
    words = rest.replace(' bytes', '').split()
    out.update(zip(words[::2], words[1::2]))
    return name, value, out


def compare_old(theirs, ours):
    """perf before 7.1: how many fields were compared."""
    n = 0
    mine = {name: (value, f) for name, value, f in map(fields, ours)}
    for name, value, f in map(fields, theirs):
        if name not in mine:
            if name in OLD_PERF_ONLY:
                continue
            raise Difference('%s is missing' % name)
        my_value, my_fields = mine.pop(name)
        if value != my_value:
            raise Difference('%s: %s' % (name, my_value))
        for k in f.keys() | my_fields.keys():
            if k not in my_fields and k in OLD_PERF_ONLY or k not in f and k in OLD_PERF_LACKS:
                continue
            if f.get(k) != my_fields.get(k):
                raise Difference('%s: %s is %s, not %s' % (name, k, my_fields.get(k), f.get(k)))
            n += 1
    if mine:
        raise Difference('%s is too much' % ', '.join(mine))
    return n


def compare_new(theirs, ours):
    for a, b in itertools.zip_longest(theirs, ours):
        if a != b:
            raise Difference('%r, not %r' % (b, a))
    return sum(len(fields(x)[2]) for x in theirs)


def cut_ldlat(lines):
    return [re.sub(r' LdLatThrsh +\d+ LdLatEn \d', '', x) for x in lines]


def same_head(a, b, named):
    for name in ('time', 'cpu', 'pid', 'tid', 'ip'):
        if getattr(a, name) != getattr(b, name):
            raise Difference('%s is %s, not %s' % (name, getattr(b, name), getattr(a, name)))
    # perf makes up a name, ":PID", where it was told none. The clock of a guest may stand still
    # during a whole exec: then the order in the file says the name to perf, the time to us.
    if (a.comm is not None and not a.comm.startswith(':') and a.comm != b.comm and
            (b.time, b.tid, b.comm) not in named):
        raise Difference('comm is %s, not %s' % (b.comm, a.comm))


def order(s):
    return s.time, s.cpu, s.lines


def best_perf():
    """The newest perf of the rig's cache, else that of this machine."""
    cache = os.environ.get('IBSRIG_CACHE', os.path.expanduser('~/.cache/qemu-ibs'))
    d = os.path.join(cache, 'perf/7.2/opt/perf')
    if os.path.exists(os.path.join(d, 'perf')):
        return [os.path.join(d, 'ld-linux-x86-64.so.2'), '--library-path', d, os.path.join(d, 'perf')]
    return ['perf']


def release(perf):
    said = subprocess.run(perf + ['--version'], capture_output=True, text=True).stdout
    found = re.search(r'version (\d+)\.(\d+)', said)
    if not found:
        raise Difference('no perf: %s' % said)
    return int(found.group(1)), int(found.group(2))


def compare(ibscope, data, perf):
    """Samples and fields compared. Raises Difference."""
    new, named = release(perf) >= (7, 1), set()
    with subprocess.Popen(perf + ['report', '-D', '-i', data], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, errors='replace') as p:
        theirs = sorted(perf_samples(p.stdout, named), key=order)
    r = subprocess.run([ibscope, 'dump', data], capture_output=True, text=True)
    if r.returncode:
        raise Difference('ibscope: exit %d: %s' % (r.returncode, r.stderr))
    ours = sorted(our_samples(r.stdout.splitlines()), key=order)
    if ours and not theirs:
        raise NoOracle('perf shows no registers')
    if len(theirs) != len(ours):
        raise Difference('%d samples, not %d' % (len(ours), len(theirs)))
    # perf knows of these two fields only if the kernel says so in caps/ldlat (6.15)
    no_ldlat = not any('LdLatEn' in x.lines[0] for x in theirs)
    n = 0
    for a, b in zip(theirs, ours):
        if no_ldlat:
            b = b._replace(lines=cut_ldlat(b.lines))
        try:
            same_head(a, b, named)
            n += compare_new(a.lines, b.lines) if new else compare_old(a.lines, b.lines)
        except Difference as e:
            raise Difference('sample at %d on cpu %d: %s\nperf: %s\nours: %s' % (
                a.time, a.cpu, e, '\n      '.join(a.lines), '\n      '.join(b.lines)))
    return len(theirs), n


# --- in vmtest.py

LEAST = 1000    # samples a guest; on a busy machine five times that


def scenario(guest):
    guest.do('run_perf dumps 1 -e ibs_op/cnt_ctl=1/ -c %d -d --raw-samples' % guest.new_period(25000))
    guest.check('dump: same as perf', check, guest)


def check(guest):
    if guest.kernel == '5.10' and guest.cpu.zen4:
        return 'not compared: perf learns of the Zen 4 fields from caps/ in sysfs, which 5.10 lacks'
    guest.stdout('dumps')
    try:
        samples, n = compare(os.path.join(guest.work, 'overlay/usr/bin/ibscope'),
                             os.path.join(guest.out, 'dumps.data'), best_perf())
    except (Difference, NoOracle) as e:
        raise AssertionError(str(e))
    if samples < LEAST:
        raise AssertionError('only %d samples' % samples)
    return '%d samples, %d fields' % (samples, n)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('--perf', help='command (default: the newest there is)')
    ap.add_argument('ibscope')
    ap.add_argument('files', nargs='+')
    args = ap.parse_args()
    perf = shlex.split(args.perf) if args.perf else best_perf()
    failed = False
    for f in args.files:
        try:
            print('%s: %d samples, %d fields' % ((f,) + compare(args.ibscope, f, perf)))
        except NoOracle as e:
            print('%s: %s' % (f, e))
        except Difference as e:
            print('%s: %s' % (f, e))
            failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
