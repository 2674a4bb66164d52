#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""cost_flight.py [--build DIR] [--check] [KERNEL:GEN ...]: what a dump of 16 MiB of the flight recorder costs, on the rig.

The one CPU samples on meanwhile. Its clocks count instructions: the CPU time of the process that writes is its instructions,
in user space and in the kernel. Each dump's ledger is compared with the collector's before and after it.
"""
import argparse
import json
import sys
import tempfile

import cost_guest

DUMPS = 2
RECORDS = (16 << 20) // 64      # of the ring of the one CPU
LIMIT = 1e9                     # instructions: a second of a CPU that runs one in each nanosecond

SCRIPT = r'''
D=/sys/fs/bpf/flight O="--pin-dir $D"
mount -t bpf bpf /sys/fs/bpf 2> /dev/null
echo '{"variant":"none","direct":true}' >&3
ibscope serve $O --unpin -c %d --max-overhead off --max-bpf-time off --flight 1h:16M 2> /tmp/serve.err & S=$!
for i in $(seq 100); do grep -q 'kernel memory' /tmp/serve.err && break; sleep 0.1; done
work -loop 4000000000 & W=$!
ledger() { ibscope ctl $O --json ledger | tr -d '\n'; }
seen() { ledger | sed 's/.*"aggregated": *\([0-9]*\).*/\1/'; }
while [ "$(seen)" -lt %d ]; do sleep 0.5; done
for i in $(seq %d); do
    before=$(ledger)
    said=$(ibscope ctl $O dump -o /tmp/last.data 2>&1)
    printf '{"dump":"%%s","before":%%s,"after":%%s,"report":%%s}\n' "$said" "$before" "$(ledger)" \
        "$(ibscope report --json /tmp/last.data | tr -d '\n')" >&3
done
kill $W; kill $S; wait $S; echo "{\"rc\":$?}" >&3
sed 's/^/# /' /tmp/serve.err >&3
'''


def rows_of(boot):
    """One for each dump; its problem, if any."""
    for o in (o for o in boot.others if 'dump' in o):
        ledger = o['report']['ledger']
        written = o['report']['samples']['op']
        words = o['dump'].split()
        cpu = float(words[words.index('CPU') - 3])
        wrong = None
        if ledger['seen'] != written + ledger['lost']:
            wrong = 'the ledger of the file does not balance: %s' % ledger
        elif not o['before']['aggregated'] <= ledger['seen'] <= o['after']['aggregated']:
            wrong = 'the file has seen %d, the collector %d before and %d after' % (
                ledger['seen'], o['before']['aggregated'], o['after']['aggregated'])
        elif written < 0.9 * RECORDS:
            wrong = 'only %d samples' % written
        elif o['after']['aggregated'] == o['before']['aggregated']:
            wrong = 'nothing was sampled meanwhile'
        elif cpu * 1e9 > LIMIT:
            wrong = 'it costs too much'
        yield written, ledger['lost'], o['after']['aggregated'] - o['before']['aggregated'], cpu, wrong


def figures(pair, tree):
    boot = cost_guest.Boot(pair, tree, SCRIPT % (4112, RECORDS * 11 // 10, DUMPS), perf=False)
    rows = list(rows_of(boot))
    print('%s: dumps of 16 MiB' % pair)
    for written, lost, meanwhile, cpu, wrong in rows:
        print('  %d samples, %d overwritten, %d taken meanwhile: %.0f million instructions%s' % (
            written, lost, meanwhile, cpu * 1e3, '; FAIL ' + wrong if wrong else ''))
    good = len(rows) == DUMPS and not any(r[-1] for r in rows) and {'rc': 0} in boot.others
    if not good:
        print('\n'.join(boot.notes))
    sys.stdout.flush()
    return good


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', default='build')
    ap.add_argument('--check', action='store_true', help='fail if one costs more than %d million' % (LIMIT / 1e6))
    ap.add_argument('pairs', nargs='*')
    args = ap.parse_args()
    pairs = args.pairs or ['5.10:zen2', '6.1:zen4', '6.12:zen4', '7.2:zen5']
    with tempfile.TemporaryDirectory() as tmp:
        tree = cost_guest.make_tree(args.build, tmp)
        passed = sum([figures(pair, tree) for pair in pairs])
    print('%d passed, %d failed' % (passed, len(pairs) - passed))
    return 1 if args.check and passed < len(pairs) else 0


sys.exit(main())
