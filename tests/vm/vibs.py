#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""vibs.py [--build DIR] [KERNEL:GEN]: a guest that reads every physical address as 0 although it is said to be
valid, as KVM's guests do. What needs one is unknown or goes by virtual addresses, and agrees with the hardware's log."""
import collections
import json
import sys

import guest
from guest import Hist, need


def hist(g, key, period):
    got, (samples, _) = Hist(g.stdout('vibs-' + key)), g.samples(period)
    labels = {s['labels'][key] for o in got.lines for s in o['series']}
    need(labels == {'unknown'}, '%s: %s' % (key, labels))
    need(got.ledger['seen'] == got.ledger['aggregated'] == len(samples), '%s, the log has %d' % (got.ledger, len(samples)))
    return '%d samples' % len(samples)


def rows(g, name):
    return json.loads(g.stdout(name))['rows']


def memory_ops(g, period):
    samples = [s for s in g.samples(period)[0] if s.mem]
    need(sum(s.data3 >> 18 & 1 for s in samples) > len(samples) // 2, 'no address is said to be valid')
    need(not any(s.phys for s in samples), 'there are physical addresses')
    return samples


def check_unknown(g, name, key, period):
    found = rows(g, name)
    need(len(found) == 1 and found[0]['labels'][key] is None, '%s: %s' % (key, found[:2]))
    need(found[0]['samples'] == len(g.samples(period)[0]), found[0])


def check_virtual(g, name, key, size, period):
    """Each page or line has the samples that the log says."""
    log = collections.Counter(s.linad & -size for s in memory_ops(g, period) if s.data3 >> 17 & 1)
    got = collections.Counter()
    for r in rows(g, name):
        if r['labels'][key] is not None:
            got[int(r['labels'][key], 16)] += r['samples']
    need(got == log, '%d of %s, the log has %d' % (len(got), key, len(log)))
    return '%d of %d samples' % (len(log), sum(log.values()))


def check_c2c(g, period):
    text = g.stdout('vibs-c2c')
    need('by VIRTUAL address: no physical one is recorded' in text, text)
    out = json.loads(g.stdout('vibs-c2c-live'))
    need(not out['lines'] and out['addresses']['none'] == out['hot']['fed'] > 0, '%s, %s' % (out['addresses'], out['lines'][:2]))
    text = g.stdout('vibs-c2c-text') + g.read('vibs-c2c-text.err')
    need('physical address' in text, text)
    return '%d accesses live, none with an address' % out['hot']['fed']


def check_numa(g):
    found = rows(g, 'vibs-numa')
    need(found and all(r['labels']['mem_node'] is None for r in found), found[:2])
    need(all(r['pages'] in (None, 0) and not r.get('misplaced') for r in found), found[:2])
    return '%d rows' % len(found)


def check_dump(g):
    names, *lines = [x.split(',') for x in g.stdout('vibs-dump').splitlines()]
    valid, phys = (names.index(x) for x in ('dc_phy_addr_valid', 'dc_phys_ad'))
    need(sum(x[valid] == '1' for x in lines) > 20, 'no address is said to be valid')
    need({x[phys] for x in lines} == {''}, 'there are addresses')


def check_doctor(g):
    check = {c['id']: c for c in json.loads(g.read('vibs-doctor.out'))['checks']}
    need('read as 0' in check['physical']['value'], check['physical'])
    return check['physical']['value']


def scenario(g):
    g.env = {'QEMU_IBS_VIBS': '1'}
    g.do('run vibs-doctor ibscope doctor --json')
    g.check('vIBS: doctor sees it', check_doctor, g)
    for key in 'mem_node', 'distance':
        period = g.new_period(50000)
        g.do('run vibs-%s ibscope hist --json --plan sched --by %s -e ibs_op// -c %d 0.5 1' % (key, key, period))
        g.check('vIBS: hist --by %s: unknown' % key, hist, g, key, period)
    period = g.new_period(30000)
    g.do('run vibs-record ibscope record -e ibs_op// -c %d -o $O/vibs.data --duration 1' % period)
    for key in 'mem_node', 'phys_page', 'page', 'line':
        g.do('run vibs-by-%s ibscope report --json --by %s $O/vibs.data' % (key, key))
    for key in 'mem_node', 'phys_page':
        g.check('vIBS: report --by %s: unknown' % key, check_unknown, g, 'vibs-by-' + key, key, period)
    for key, size in ('page', 4096), ('line', 64):
        g.check('vIBS: report --by %s: virtual, as the log has them' % key, check_virtual, g, 'vibs-by-' + key, key, size,
                period)
    g.do('run vibs-c2c ibscope c2c $O/vibs.data; run vibs-numa ibscope numa --json $O/vibs.data\n'
         'run vibs-dump ibscope dump --csv $O/vibs.data; run vibs-top ibscope top --once --own --by mem_node\n'
         'run vibs-c2c-live ibscope c2c --live -a --json -e ibs_op// -c %d 1 1' % g.new_period(30000))
    g.do('run vibs-c2c-text ibscope c2c --live -a -e ibs_op// -c %d 0.5 1' % g.new_period(30000))
    g.check('vIBS: c2c: by virtual address', check_c2c, g, period)
    g.check('vIBS: numa: nodes are unknown', check_numa, g)
    g.check('vIBS: dump: no addresses, though they are valid', check_dump, g)
    g.check('vIBS: top: nodes are unknown', lambda: need('unknown' in g.stdout('vibs-top'), g.stdout('vibs-top')))
    g.check('the kernel did not complain', g.check_console)


def make_guest(kernel, gen, work, report):
    g = guest.Guest(kernel, gen, work, report, '-vibs', nodes=2)
    scenario(g)
    return g


if __name__ == '__main__':
    sys.exit(guest.run_pair(__doc__, make_guest))
