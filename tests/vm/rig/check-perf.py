#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""check-perf.py LOG DUMP [op|fetch]: compare `perf report -D` output with the ground truth.

DUMP is the text of `perf report -D` of a file recorded with
`perf record -e ibs_op// -c N -a --raw-samples` (raw data last in a sample).
Every raw sample must be a line of the log (else exit 1) and vice versa (exit 2:
lost in the ring buffer, or filtered by the driver).
"""
import collections
import re
import struct
import sys


def log_rows(path, kind):
    for line in open(path):
        if line.startswith('#') or not line.strip():
            continue
        f = line.strip().split(',')
        if f[-1] == kind:
            yield [int(x, 0) for x in f[3:11]] + [int(f[13], 0)]


def fetch_regs(r, caps):
    return [r[0], r[1], r[6]] + ([r[2]] if caps & 0x200 else [])


def op_regs(r, caps):
    return r[:7] + ([r[7]] if caps & 0x20 else []) + \
        ([r[8]] if caps & 0x400 else [])


def raw_samples(path):
    """Yield (caps, [registers], repeated) from the hex dumps.

    perf record can write an event to the file twice (perf_mmap__push reads
    the ring's head again after it has read it once); same bytes, same time.
    So can two fetch samples be, whose registers vary little: a repeated one
    may be missing from the log, but need not be.
    """
    buf = None
    seen = set()
    for line in open(path, errors='replace'):
        m = re.match(r'\.  ([0-9a-f]{4,}):  ((?:[0-9a-f]{2} ?)+)', line)
        if m:
            if int(m.group(1), 16) == 0:
                buf = bytearray()
            if buf is not None:
                buf += bytes.fromhex(m.group(2))
            continue
        if buf and struct.unpack_from('<I', buf)[0] == 9:       # SAMPLE
            repeated = bytes(buf) in seen
            seen.add(bytes(buf))
            for o in range(8, len(buf) - 8, 4):
                size, caps = struct.unpack_from('<II', buf, o)
                if o + 4 + size == len(buf) and caps & 1 and size % 8 == 4:
                    yield caps, struct.unpack_from(
                        '<%dQ' % ((size - 4) // 8), buf, o + 8), repeated
                    break
        buf = None


def main():
    log, dump = sys.argv[1:3]
    kind = sys.argv[3] if len(sys.argv) > 3 else 'op'
    truth = collections.Counter()
    d3_truth = collections.Counter()
    samples = list(raw_samples(dump))
    if not samples:
        sys.exit('no raw samples in the dump')
    caps, regs, _ = samples[0]
    n = len(regs)
    for r in log_rows(log, kind):
        d3_truth[r[4] if kind == 'op' else r[0]] += 1
        truth[tuple((op_regs if kind == 'op' else fetch_regs)(r, caps))] += 1
    got = collections.Counter(r for _, r, _ in samples)
    once = collections.Counter(r for _, r, repeated in samples if not repeated)
    text = open(dump, errors='replace').read()
    d3 = collections.Counter(
        int(x, 16) for x in re.findall(
            r'^ibs_%s:\s+([0-9a-f]+)' % ('op_data3' if kind == 'op'
                                         else 'fetch_ctl'), text, re.M))
    missing, extra = truth - got, once - truth
    print('caps 0x%x, %d registers, raw size %d' % (caps, n, 4 + 8 * n))
    print('log %d, perf raw %d, decoded by perf %d' % (
        sum(truth.values()), len(samples), sum(d3.values())))
    print('in the log but not in perf: %d; in perf but not in the log: %d' % (
        sum(missing.values()), sum(extra.values())))
    bad3 = sum(n for v, n in d3.items() if v not in d3_truth)
    print('decoded values not in the log: %d' % bad3)
    for name, c in (('missing', missing), ('extra', extra)):
        for r in list(c)[:3]:
            print(name, ' '.join('%x' % x for x in r))
    return 1 if extra or bad3 or not d3 else 2 if missing else 0


sys.exit(main())
