#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""estimates.py [--build DIR] [KERNEL:GEN ...]: estimated ops under hardware filters, at 20,000 samples, within 2 %
of what the emulation counted.

A clock that counts instructions makes the host's load no part of the result.
"""
import json
import sys

import guest
import oracle
import plans
from guest import need

PAIRS = '6.12:zen4', '7.2:zen5', '7.2:zen6'
SAMPLES, LIMIT = 20000, 0.02


def check(g, name, p):
    kept = json.loads(g.stdout(name))['ledger']['aggregated']
    need(kept >= SAMPLES, '%d samples' % kept)
    return plans.check_estimate(g, name, p, LIMIT)


def scenarios(g):
    g.do('start a /a 0')
    # DRAM is 1.8 % of ops, 300 cycles and more have 2.6 %
    far, slow = '--src ' + ','.join(plans.FAR), '--min-lat 300'
    for name, options, p, ctl, gens in (
            ('far', far, plans.P_FAR, oracle.L3MISSONLY, None),
            # on Zen 5 ldlat drops L2 and L3 hits as well (erratum 1606): a filter only of what excludes them
            ('far-lat', far + ' ' + slow, None, oracle.L3MISSONLY | oracle.LDLAT, ('zen5',)),
            ('lat', slow, None, oracle.LDLAT, ('zen6',))):
        if gens and g.gen not in gens:
            continue
        g.hist(name, options, plan='auto', event='ibs_op/cnt_ctl=1/', about=2000, window='7 1', by=('src',),
               unseen='any', all=True, ctl=ctl, filters=lambda options=options: oracle.Filter(
                   **({'src': set(plans.FAR)} if far in options else {}), **({'latency': (300, 65535)} if slow in options else {})),
               rows=lambda rows, ctl=ctl: [s for s in rows if not ctl & oracle.LDLAT or not s.below_ldlat(256)])
        g.check(name + ': estimated ops', check, g, name, p)


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=PAIRS)
    args = ap.parse_args()

    def make(work, report):
        guests = [guest.Guest(*pair.split(':'), work, report, '-estimates', smp=1, workers=False,
                              rig=['--pmu', '--icount']) for pair in args.pairs]
        for g in guests:
            scenarios(g)
        return guests

    return guest.run_guests(args, make)


if __name__ == '__main__':
    sys.exit(main())
