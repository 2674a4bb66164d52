#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compare what perf decodes of raw IBS samples with what our decoder does.

DUMP is the text of `perf report -D --header -i F`, F made with
`perf record -e ibs_op// -c N -a --raw-samples` (or ibs_fetch//), raw data last in a sample.
DECODER is tests/unit/ibs_decode.c, built; it gets each sample's bytes from perf's hex dump.
Exits 1 on a difference or too few samples.
"""
import argparse
import itertools
import re
import struct
import subprocess
import sys

PERF_RECORD_SAMPLE = 9
HEX_LINE = re.compile(r'\.  ([0-9a-f]{4,}):  ((?:[0-9a-f]{2} ?)+)')
DECODED = re.compile(r'(?:ibs_|ic_ibs_|Ibs)\w+:\t')
CPUID = re.compile(r'# cpuid : AuthenticAMD,(\d+),(\d+),')


def raw_record(event):
    """The raw record (caps and registers) at the end of a perf sample, or None."""
    for offset in range(8, len(event) - 8, 4):
        size, caps = struct.unpack_from('<II', event, offset)
        if offset + 4 + size == len(event) and caps & 1 and size % 8 == 4 and size >= 28:
            return bytes(event[offset + 4:])
    return None


def samples(dump):
    """Yield (raw record, lines that perf printed of it)."""
    event, raw, text = None, None, []
    for line in dump:
        hexes = HEX_LINE.match(line)
        if hexes:
            if int(hexes.group(1), 16) == 0:
                if raw:
                    yield raw, text
                event, raw, text = bytearray(), None, []
            if event is not None:
                event += bytes.fromhex(hexes.group(2))
            continue
        if event:
            if struct.unpack_from('<I', event)[0] == PERF_RECORD_SAMPLE:
                raw = raw_record(event)
            event = None
        if raw and DECODED.match(line):
            text.append(line.rstrip('\n'))
    if raw:
        yield raw, text


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('dump')
    ap.add_argument('decoder')
    ap.add_argument('--cpu', metavar='FAMILY,MODEL', help='if the dump has no "# cpuid" line')
    ap.add_argument('--min', type=int, default=1000, help='least number of samples')
    ap.add_argument('--newest', action='store_true', help='do not ask for the text of perf 6.1')
    args = ap.parse_args()

    with open(args.dump, errors='replace') as f:
        dump = f.readlines()
    cpu = next(filter(None, map(CPUID.match, dump)), None)
    if args.cpu:
        family, model = (int(x, 0) for x in args.cpu.split(','))
    elif cpu:
        family, model = int(cpu.group(1)), int(cpu.group(2))
    else:
        sys.exit('check_decode: no "# cpuid" line in the dump: use --header or --cpu')

    got = list(samples(dump))
    lines = ['%s %#x %#x %s\n' % ('op' if len(raw) >= 60 else 'fetch', family, model, raw.hex())
             for raw, _ in got]
    cmd = [args.decoder] + ([] if args.newest else ['--perf-6.1'])
    out = subprocess.run(cmd, input=''.join(lines), text=True, stdout=subprocess.PIPE, check=True)
    # an answer is its lines and an empty one
    ours, answer = [], []
    for line in out.stdout.splitlines():
        if line:
            answer.append(line)
        else:
            ours.append(answer)
            answer = []
    if len(ours) != len(got):
        sys.exit('check_decode: %d samples, %d answers' % (len(got), len(ours)))

    compared = differences = 0
    for (raw, theirs), mine in zip(got, ours):
        for a, b in itertools.zip_longest(theirs, mine):
            compared += 1
            if a != b:
                differences += 1
                if differences <= 10:
                    print('raw  %s\nperf %s\nours %s' % (raw.hex(), a, b))
    print('%d samples, %d lines compared, %d differences' % (len(got), compared, differences))
    return 1 if differences or len(got) < args.min else 0


sys.exit(main())
