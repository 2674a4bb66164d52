#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""cost_perf.py [--build DIR] [--check] [KERNEL:GEN ...]: guest instructions a sample costs with the
guest kernel's own perf and with ibscope, in one boot of the rig, beyond the NMI, the kernel's
driver and a BPF program that does nothing; and the ratio with these, the floor of each sample.

Of perf: the CPU time of a command and its children less that of the same with next to no samples,
divided by the samples in the hardware's log. Of ibscope: bench-insitu, and snapshots of hist.
"""
import argparse
import sys
import tempfile

import cost_guest

PERIOD, RARELY = 100160, 134217712     # bench-insitu has 100000
LEAST_RATIO = 30        # perf record and script to ours, where registers are read in place
READINGS = 40

GUEST = r'''
rec() {     # NAME PERIOD LOOPS OPTION...
    n=$1 c=$2 l=$3; shift 3
    t $n perf record -q -B -N -e ibs_op/cnt_ctl=1/ -c $c -a --raw-samples "$@" \
        -o /tmp/$n.data -- work -loop $l
}
bench-insitu --json >&3
sleep 1
rec record-0 RARELY LOOPS
rec record-1 PERIOD LOOPS
sleep 0.5
rec typed-0 RARELY+16 LOOPS -d -W
rec typed-1 PERIOD+16 LOOPS -d -W
sleep 0.5
rec short-1 PERIOD+32 SHORT
for i in 0 1; do
    t script-$i perf script -i /tmp/record-$i.data
    t fields-$i perf script -F pid,ip,addr,weight,data_src -i /tmp/typed-$i.data
done
t dump-0 perf report -D -i /tmp/record-0.data
t dump-1 perf report -D -i /tmp/short-1.data
t hist-0 ibscope hist --json -c RARELY 0.05 1
t hist-1 ibscope hist --json -c RARELY 0.05 READINGS+1
perf version --build-options 2>&1 | grep -E 'perf version|bpf_skel' | sed 's/^/# /' >&3
perf record -q -e ibs_op// -c PERIOD -a --filter 'ip > 3' -o /tmp/x -- true 2>&1 |
    grep -iE 'bpf|support|fail|only' | head -2 | sed 's/^/# perf record --filter: /' >&3
'''
VALUES = {'RARELY+16': RARELY - 16, 'RARELY': RARELY, 'PERIOD+16': PERIOD + 16,
          'PERIOD+32': PERIOD + 32, 'PERIOD': PERIOD, 'LOOPS': 200000000, 'SHORT': 20000000,
          'READINGS+1': READINGS + 1}


def figures(pair, tree):
    """Print the table; True if ours is as much below perf as it should be."""
    script = GUEST
    for name, value in VALUES.items():
        script = script.replace(name, str(value))
    b = cost_guest.Boot(pair, tree, script)
    bench = list(b.variants.values())
    empty = b.variants['empty program']['per_sample']
    ours = b.variants['aggregated: by cgroup']['above_empty']
    n = {'record': len(b.runs[PERIOD]), 'typed': len(b.runs[PERIOD + 16]),
         'short': len(b.runs[PERIOD + 32])}

    def each(name, samples, less=0):
        cost = b.each(name, samples, 'us')
        return cost and cost - less

    table = [('perf record --raw-samples', each('record', n['record'], empty)),
             ('perf record --raw-samples -d -W', each('typed', n['typed'], empty)),
             ('perf script', each('script', n['record'])),
             ('perf script -F ...,weight,data_src', each('fields', n['typed'])),
             ('perf report -D', each('dump', n['short']))]
    parts = dict(table)
    for how in ('perf script', 'perf report -D'):
        if None not in (parts[how], table[0][1]):
            table.append(('perf record, then ' + how, table[0][1] + parts[how]))
    table += [('ibscope ' + r['variant'], r['above_empty']) for r in bench
              if r['variant'].startswith(('rejected', 'aggregated'))]
    print('%s, registers read %s: guest instructions a sample, beyond %.0f of NMI, driver and an '
          'empty program' % (pair, 'in place' if b.direct else 'by copy', empty))
    print('  %-40s %10s %28s %14s' % ('', 'a sample', 'times ibscope aggregating', 'with the floor'))
    for name, v in table:
        print('  %-40s %10s %28s %14s' % (name, 'cannot' if v is None else '%.0f' % v,
                                          '' if v is None else '%.1f' % (v / ours),
                                          '' if v is None else '%.2f' % ((empty + v) / (empty + ours))))
    print('  %-40s %10.0f instructions a reading (hist, one CPU, no series)' % (
        'ibscope hist', b.each('hist', READINGS, 'us')))
    print('  samples: %s' % n)
    for x in b.notes:
        print('  ' + x)
    sys.stdout.flush()
    both = dict(table).get('perf record, then perf script')
    return not b.direct or (both is not None and both >= LEAST_RATIO * ours)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', default='build')
    ap.add_argument('--check', action='store_true',
                    help='fail if perf record and script cost less than %d times ours' % LEAST_RATIO)
    ap.add_argument('pairs', nargs='*')
    args = ap.parse_args()
    pairs = args.pairs or ['5.10:zen2', '6.1:zen4', '6.12:zen4', '7.2:zen5']
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        tree = cost_guest.make_tree(args.build, tmp)
        for pair in pairs:
            failed += not figures(pair, tree)
    print('%d passed, %d failed' % (len(pairs) - failed, failed))
    return 1 if args.check and failed else 0


if __name__ == '__main__':
    sys.exit(main())
