#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""cost_record.py [--build DIR] [--check] [KERNEL:GEN ...]: guest instructions that a sample costs
that is recorded to a file, with the guest kernel's own perf and with ibscope, in one boot of the
rig, beyond the event alone: opened, enabled, without program, buffer and reader.

All that the one CPU does counts: programs, readers, compression, writing to a tmpfs. What the
command costs that samples for a moment and keeps next to nothing is taken off, and so is the loop
that is sampled. What a sample costs that is rejected is told beside it, against events that nobody
reads.
"""
import argparse
import re
import sys
import tempfile

import cost_guest

RARELY, PERIOD = 134217712, 50080     # of the first command; each has its own
LOOPS, MOMENT = 400000000, 4000000
# perf record to ours, beyond the event alone: where registers are read in place, and by copy
LEAST_RATIO = (1.6, 1.3)
OURS, PERF = 'ibscope record', 'perf record'
# name -> command
COMMANDS = {
    OURS: 'ibscope record -a -c {c} -o {f} -- {w}',
    'ibscope record --raw': 'ibscope record -a --raw -c {c} -o {f} -- {w}',
    'ibscope record -z': 'ibscope record -a -z -c {c} -o {f} -- {w}',
    'ibscope record to /dev/null': 'ibscope record -a -c {c} -o /dev/null -- {w}',
    PERF: 'perf record {o} --raw-samples -o {f} -- {w}',
    'perf record | cat': 'sh -c "perf record {o} --raw-samples -o - -- {w} | cat > {f}"',
    'perf record -z': 'perf record {o} --raw-samples -z -o {f} -- {w}',
    'perf record -d -W': 'perf record {o} -d -W -o {f} -- {w}',
    'perf mem record': 'perf mem record {m} -o {f} -- {w}',
}
OPTIONS = {'o': '-q -B -N -e ibs_op/cnt_ctl=1/ -c {c} -a', 'm': '-q -B -N -c {c} -a'}


def script():
    lines = ['bench-insitu --json --only ": pid,aggregated: by cgroup,forwarded" >&3']
    lines += ['t loop-%d work -loop %d' % (i, n) for i, n in enumerate((MOMENT, LOOPS))]
    for i, command in enumerate(COMMANDS.values()):
        for often in 0, 1:
            c = PERIOD + 32 * i if often else RARELY - 32 * i
            words = {'c': c, 'f': '/tmp/data',
                     'w': 'work -loop %d' % (LOOPS if often else MOMENT)}
            words.update((k, v.format(c=c)) for k, v in OPTIONS.items())
            lines += ['sleep 0.3', 't r%d-%d %s' % (i, often, command.format(**words))]
        lines += ['touch /tmp/data',
                  'stat -c \'{"run":%d,"bytes":%%s}\' /tmp/data >&3' % i,
                  'tail -n 2 /tmp/r%d-1.err | grep -E "seen|notices" | sed "s/^/# /" >&3' % i,
                  'report=$(ibscope report --json /tmp/data | tr -d "\\n")',
                  'printf \'{"run":%d,"report":%%s}\\n\' "${report:-null}" >&3' % i,
                  'rm -f /tmp/data*']
    return '\n'.join(lines) + '\n'


def figures(pair, tree, append):
    """Print the table; True if it is as it should be."""
    b = cost_guest.Boot(pair, tree, script(), append)
    told = {}
    for o in b.others:
        told.setdefault(o['run'], {}).update(o)
    alone = b.variants['event, no program, no buffer']['per_sample']
    print('%s%s, registers read %s: guest instructions a sample, beyond %.0f of the event alone' % (
        pair, ' ' + append if append else '', 'in place' if b.direct else 'by copy', alone))
    for name, v in b.variants.items():
        print('  %-34s %8.0f' % (name, v['per_sample'] - alone))
    cost, wrong = {}, []
    for i, name in enumerate(COMMANDS):
        samples = sum(not x.dropped for x in b.runs.get(PERIOD + 32 * i, []))
        report = told.get(i, {}).get('report') or {}
        kept = report.get('samples', {}).get('op')
        lost = report.get('lost', {})
        cost[name] = b.each('r%d' % i, samples)
        if cost[name] is None:
            print('  %-34s %8s' % (name, 'cannot'))
            if name in (OURS, PERF):
                wrong.append((name, 'it failed'))
            continue
        if kept is None and name == OURS:
            wrong.append((name, 'its recording cannot be read'))
        if kept is not None and (kept != samples or lost.get('samples')):
            wrong.append((name, 'it lost samples'))
        cost[name] -= alone + b.each('loop', samples)
        print('  %-34s %8.0f  %s of %d samples, lost %s; %.1f bytes each; CPU time of it alone '
              '%.0f; starting and ending %.1f million' % (
                  name, cost[name], kept, samples, lost.get('samples'),
                  told[i]['bytes'] / samples,
                  b.each('r%d' % i, samples, 'us') - alone - b.each('loop', samples, 'us'),
                  (b.timed['r%d-0' % i]['busy'] - b.timed['loop-0']['busy']) / 1e6))
    for x in b.notes:
        print('  ' + x)
    wrong = [name + ': ' + why for name, why in wrong]
    if cost.get(OURS) and cost.get(PERF):
        ratio = cost[PERF] / cost[OURS]
        print('  %s to %s: %.2f' % (PERF, OURS, ratio))
        if ratio < LEAST_RATIO[0 if b.direct else 1]:
            wrong.append('%s costs too much' % OURS)
    rejected = b.variants['rejected: pid']['per_sample']
    for name in 'event, no program', 'event, no program, overwritten':
        if rejected >= b.variants[name]['per_sample']:
            wrong.append('a rejected sample costs more than: ' + name)
    for x in wrong:
        print('  FAIL ' + x)
    sys.stdout.flush()
    return not wrong


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', default='build')
    ap.add_argument('--append', default='', help='kernel arguments')
    ap.add_argument('--only', default='', help='commands whose names match this')
    ap.add_argument('--check', action='store_true',
                    help='fail if perf record does not cost %s times ours' % LEAST_RATIO[0])
    ap.add_argument('pairs', nargs='*')
    args = ap.parse_args()
    pairs = args.pairs or ['6.12:zen4']
    for name in list(COMMANDS):
        if args.only and not re.search(args.only, name):
            del COMMANDS[name]
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        tree = cost_guest.make_tree(args.build, tmp)
        for pair in pairs:
            failed += not figures(pair, tree, args.append)
    print('%d passed, %d failed' % (len(pairs) - failed, failed))
    return 1 if args.check and failed else 0


if __name__ == '__main__':
    sys.exit(main())
