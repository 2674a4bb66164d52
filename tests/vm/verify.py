#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""verify.py [--build DIR] [KERNEL:GEN]: doctor --verify finds nothing wrong with the emulated processor, and what is
wrong with it when it has faults. One boot: a program in the guest sets the faults."""
import json
import sys

import guest
from guest import need

# ops are instructions, of 16 ns: then the handler's are a tenth to a third of a period
KNOBS = {'IBSRIG_ICOUNT_SHIFT': '4', 'QEMU_IBS_NS_PER_COUNT': '16', 'QEMU_IBS_FETCH_NS_PER_COUNT': '16'}
SOURCE, LATENCY, HANDLER, DROPPED = 1, 2, 4, 8
COUNTS = {'branches', 'stores', 'loads'}
# two faults at a time, which show in different figures: what is set, figure -> least error in which direction
FAULTS = (SOURCE | HANDLER, {'source_l3': -0.5, 'source_dram': -0.5, 'branches': 0.2}), (
    LATENCY | DROPPED, {'latency_l3': 0.5, 'latency_dram': 0.5, 'branches': -0.15})
UNMODELLED = {'sharing'}


def run(g, name, faults):
    g.do('work -fault %d; run %s ibscope doctor --verify=0.2 --json' % (faults, name))


def loops(g, name):
    return {x['id']: x for x in json.loads(g.read(name + '.out'))['loops']}


def said(f):
    return ', '.join('%s %s' % (k, '%+.1f %%' % (100 * x['error']) if x['error'] is not None else '-')
                     for k, x in f.items())


def check_right(g):
    f = loops(g, 'verify-right')
    need(g.status('verify-right') == 0, 'exit %d: %s' % (g.status('verify-right'), f))
    wrong = [x for x in f.values() if x['agrees'] is not (None if x['id'] in UNMODELLED else True)]
    need(not wrong, 'wrong or unknown: %s' % wrong)
    return said(f)


def check_fault(g, name, expected):
    f = loops(g, name)
    need(g.status(name) == 1, 'exit %d: %s' % (g.status(name), f))
    for key, least in expected.items():
        need(f[key]['agrees'] is False and f[key]['error'] / least >= 1, '%s: %s' % (key, f[key]))
    others = [x for x in f.values() if x['agrees'] is False and x['id'] not in expected and x['id'] not in COUNTS]
    allowed = {'latency_l3', 'latency_dram', 'node_local', 'node_remote'} if 'source_l3' in expected else {'latency_l2'}
    need({x['id'] for x in others} <= allowed, 'others: %s' % others)
    return said({k: f[k] for k in expected})


def check_lost(g, period):
    """What never interrupts is no sample for anybody, but a core counter knows of it."""
    ledger = json.loads(g.stdout('verify-lost'))['ledger']
    lost = ledger['tagged_undelivered']
    need(ledger['unseen'] == 0 and ledger['seen'] == len(g.samples(period)[0]), ledger)
    need(ledger['seen'] > 300 and 0.18 < lost / (lost + ledger['seen']) < 0.32, ledger)
    return '%d of %d' % (lost, lost + ledger['seen'])


def scenario(g):
    g.env = KNOBS
    period = g.new_period(20000)
    g.do('work -fault %d; run verify-lost ibscope hist --json --core-counters --plan sched -e ibs_op/cnt_ctl=1/ -c %d 0.5 1 -- '
         'work -loop 8000000' % (DROPPED, period))
    g.check('hist --core-counters: a quarter of the samples is said to be lost', check_lost, g, period)
    run(g, 'verify-right', 0)
    g.check('doctor --verify: nothing is wrong', check_right, g)
    for faults, expected in FAULTS:
        name = 'verify-%d' % faults
        run(g, name, faults)
        g.check('doctor --verify: finds faults %d' % faults, check_fault, g, name, expected)
    g.check('the kernel did not complain', g.check_console)


def make_guest(kernel, gen, work, report):
    g = guest.Guest(kernel, gen, work, report, '-verify', workers=False, rig=['--icount', '--pmu'], nodes=2)
    scenario(g)
    return g


if __name__ == '__main__':
    sys.exit(guest.run_pair(__doc__, make_guest))
