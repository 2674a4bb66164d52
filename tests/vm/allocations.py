#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""allocations.py [--build DIR] [KERNEL:GEN]: report --by allocation against the malloc trace of the program itself.

The load is that of tests/system/test_allocation_truth.py, which joins its trace with the samples: the top ten functions must
have the same number of samples within 5 %.
"""
import collections
import json
import os
import subprocess
import sys

import guest
from guest import need

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'system'))
import test_allocation_truth as truth  # noqa: E402

ROUNDS, PERIOD, FEWEST = 14, 20000, 200


def check(g):
    trace, want, got = truth.Trace(g.stdout('record')), collections.Counter(), collections.Counter()
    for s in map(json.loads, g.stdout('samples').splitlines()):
        site = s['type'] == 'ibs_op' and s.get('dc_lin_ad') and trace.site(s['pid'], int(s['dc_lin_ad'], 16), s['time_ns'])
        if site:
            want[site] += 1
    for row in json.loads(g.stdout('report'))['rows']:
        name = row['labels']['allocation'] or ''
        if name.startswith('site_'):
            got[name.split()[0]] += row['samples']
    said = ', '.join('%s %d %d' % (f, n, got[f]) for f, n in want.most_common())
    need(sum(want.values()) >= FEWEST and len(want) >= truth.TOP, 'only ' + said)
    for f, n in want.most_common(truth.TOP):
        need(abs(got[f] - n) <= max(0.05 * n, 1), said)
    return said


def main():
    args = guest.options(__doc__.splitlines()[0])
    args.add_argument('pair', nargs='?', metavar='KERNEL:GEN', default='6.12:zen4')
    args = args.parse_args()

    def make(work, report):
        # dynamic, since the library is loaded into it; the guest has it where it was built
        subprocess.run(['cc', '-D_GNU_SOURCE', '-g', '-O1', '-o', os.path.join(work, 'overlay/usr/bin/allocation_load'),
                        os.path.join(HERE, '../system/allocation_load.c')], check=True)
        g = guest.Guest(*args.pair.split(':'), work, report, '-allocations')
        g.do('run record ibscope record --allocs --max-loss 100%% -c %d -o $O/allocations.data -- allocation_load %d marked\n'
             'run samples ibscope dump --json $O/allocations.data\n'
             'run report ibscope report --json --by allocation $O/allocations.data' % (PERIOD, ROUNDS))
        g.check('allocations of the samples', check, g)
        g.check('the kernel did not complain', g.check_console)
        return [g]

    library = os.path.join(args.build, 'libibscope-alloc.so')
    return guest.run_guests(args, make, tools=[library + ':/usr/bin/libibscope-alloc.so'])


if __name__ == '__main__':
    sys.exit(main())
