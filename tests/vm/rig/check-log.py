#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""check-log.py LOG: the totals probe/ibscount prints, from the ground truth."""
import sys
n = loads = xor3 = sumlat = dropped = 0
for line in open(sys.argv[1]):
    f = line.strip().split(',')
    if f[0] == '#dropped':
        dropped += f[-1] == 'op'
    elif f[-1] == 'op':
        d3 = int(f[7], 0)
        n += 1
        xor3 ^= d3
        if d3 & 1:
            loads += 1
            if d3 & 0x80:
                sumlat += d3 >> 32 & 0xffff
print('samples=%d loads=%d xor3=%016x sumlat=%d dropped=%d' % (
    n, loads, xor3, sumlat, dropped))
