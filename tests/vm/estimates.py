#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""estimates.py [--build DIR] [--shared] [KERNEL:GEN ...]: estimated ops under hardware filters, at 20,000 samples,
within 2 % of what the emulation counted; and while perf has the PMU for half of the time, within 1 % of those without.

A clock that counts instructions makes the host's load no part of the result.
"""
import collections
import json
import sys

import guest
import oracle
import plans
from guest import need

PAIRS = '6.12:zen4', '7.2:zen5', '7.2:zen6'
SAMPLES, LIMIT = 20000, 0.02
# each stands for ops that were counted, so that fewer do; and interrupts, whose ops are not, must be few
SHARED_SAMPLES, SHARED_LIMIT = 2000, 0.01
SHARED_ONLY = '--shared'


def check(g, name, p):
    kept = json.loads(g.stdout(name))['ledger']['aggregated']
    need(kept >= SAMPLES, '%d samples' % kept)
    return plans.check_estimate(g, name, p, LIMIT)


# A processor that is always busy, at so many instructions a second, that another user takes none away
SHARED = r'''
OPTS='--json --plan program -e ibs_op/cnt_ctl=1/ -c 400000'
sleep 3
run alone ibscope hist $OPTS 8 1
perf record -q -N -e ibs_op/cnt_ctl=1/ -c 1600000 -a -o /tmp/other.data -- sleep 1000 > $O/other.perf 2>&1 & OTHER=$!
for i in $(seq 100); do [ -s /tmp/other.data ] && break; sleep 0.1; done
run shared ibscope hist $OPTS 8 1
ibscope doctor --json > $O/doctor.out 2> $O/doctor.err
kill -INT $OTHER; wait $OTHER
rm -f /tmp/other.data
'''


def ops_rate(j):
    return sum(s['estimated_ops'] for s in j['series']) / j['interval_s']


def check_shared(g):
    alone, shared = (json.loads(g.stdout(name)) for name in ('alone', 'shared'))
    need(alone['running'] == 1 and 0.4 < shared['running'] < 0.6, [alone['running'], shared['running']])
    n = shared['ledger']['aggregated']
    need(n >= SHARED_SAMPLES, '%d samples' % n)
    error = ops_rate(shared) / ops_rate(alone) - 1
    need(abs(error) < SHARED_LIMIT, 'off by %.2f %%' % (100 * error))
    said = g.read('shared.err')
    need('perf (' in said and 'estimates are scaled up' in said, said)
    other = {c['id']: c for c in json.loads(g.read('doctor.out'))['checks']}['other_user']
    need(other['status'] == 'warn' and 'perf (' in other['why'], other)
    return '%d samples at %.1f %% of the time, off by %.2f %%' % (n, 100 * shared['running'], 100 * error)


# The same with two processors, of which another user takes half of one: each has a container. The two execute in
# turns, some of the kernel's turns without having executed: they are made longer.
SHARED_CPU = r'''
echo 20 > /sys/bus/event_source/devices/ibs_op/perf_event_mux_interval_ms
OPTS='--json --plan program -e ibs_op/cnt_ctl=1/ -c 400000'
sleep 3
run alone ibscope hist $OPTS 8 1
perf record -q -N -e ibs_op/cnt_ctl=1/ -c 1600000 -C 1 -o /tmp/other.data -- sleep 1000 > $O/other.perf 2>&1 & OTHER=$!
for i in $(seq 100); do [ -s /tmp/other.data ] && break; sleep 0.1; done
run shared ibscope hist $OPTS 12 1
kill -INT $OTHER; wait $OTHER
rm -f /tmp/other.data
'''


def rates(j):
    """Estimated ops a second of each container."""
    rate = collections.Counter()
    for s in j['series']:
        rate[s['labels']['cgroup']] += s['estimated_ops'] / j['interval_s']
    return rate


def check_shared_cpu(g):
    alone, shared = (json.loads(g.stdout(name)) for name in ('alone', 'shared'))
    need(alone['running'] == 1 and 0.7 < shared['running'] < 0.8, [alone['running'], shared['running']])
    want, got = rates(alone), rates(shared)
    error = {c: got[c] / want[c] - 1 for c in ('/a', '/b')}
    need(all(abs(e) < SHARED_LIMIT for e in error.values()), 'off by %s' % error)
    need('estimates are scaled up' in g.read('shared.err'), g.read('shared.err'))
    return '%d samples at %.1f %% of the time, off by %s' % (
        shared['ledger']['aggregated'], 100 * shared['running'],
        ', '.join('%.2f %% in %s' % (100 * e, c) for c, e in error.items()))


def scenario_shared_cpu(g):
    g.do('start a /a 0; start b /b 1')
    g.do(SHARED_CPU)
    g.check('ops of two containers, one with half of the time', check_shared_cpu, g)


def scenarios(g):
    g.do('start a /a 0')
    if g.gen == 'zen4':
        g.do(SHARED)
        g.check('ops with half of the time', check_shared, g)
    if SHARED_ONLY in sys.argv:
        return
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
    ap.add_argument(SHARED_ONLY, action='store_true', help='only with another user of the PMU')
    return guest.run_pairs(ap, PAIRS, '-estimates', scenarios, two=scenario_shared_cpu)


if __name__ == '__main__':
    sys.exit(main())
