#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fetch.py [--build DIR] [KERNEL:GEN...]: ibs_fetch, against the hardware's own list of delivered samples.

vmtest.py runs a few of these; this is all of them, by default on all pairs.
"""
import json
import sys

import guest
import oracle
import records
from guest import need

FETCH = 'ibs_fetch//'


def has_address(rows):
    """Linux drops samples without one (erratum 1197)."""
    return [s for s in rows if s.linad]


def scenarios(g, long=True):
    # a CPU may be stopped between the end of a period and its sample: the kernel counts the period
    run = lambda name, options='', event=FETCH, **more: g.hist(
        'fetch-' + name, options, event=event, rows=has_address, due=g.smp, **more)

    run('all', window='1 1', also=lambda rows, series: classes(g, rows))
    run('walks', '--tlb walk --page-size 4k --min-lat 3', by=('cpu', 'fetch', 'itlb'),
        filters=lambda: oracle.Filter(latency=(3, 65535), tlb=lambda s: bool(s.known and s.l1tlb and s.l2tlb),
                                      page_size=lambda s: s.page == '4k'))
    # one NMI can carry both
    periods = [g.new_period(about) for about in (100000, 60000)]
    g.do('run fetch-both ibscope hist --json --max-groups 256 -e ibs_op//,ibs_fetch// -c %d,%d 1 1' % tuple(periods))
    for pmu, period, more in zip(('ibs_op', 'ibs_fetch'), periods, ({}, {'rows': has_address, 'due': g.smp})):
        g.check('both events at once: ' + pmu, g.check_hist, 'fetch-both', period, None, None, '1 1', more, pmu)
    record_both(g, 'fetch-record', '')
    if long or g.kernel == '6.12':
        serve_both(g)
    if not long:
        return
    record_both(g, 'fetch-record-raw', '--raw')
    governed(g)
    below_a = lambda: g.facts.below('/a')
    run('refill', event='ibs_fetch/rand_en=1/', metric='itlb_refill_lat', by=('fetch', 'itlb'), unseen='any')
    run('mode', '--cgroup /a --user --max-lat 30', by=('cgroup', 'mode', 'fetch'),
        filters=lambda: oracle.Filter(cgroup=below_a(), mode=lambda s: s.mode == 'user', latency=(0, 30)))
    for i, (text, holds) in enumerate(FILTERS.items()):
        run('filter-%d' % i, "--filter '%s'" % text, by=('fetch',), window='0.3 1', all=True,
            filters=lambda holds=holds: oracle.Filter(filter=lambda s: bool(holds(s))))
    zen4 = g.cpu.zen4 and g.kernel != '5.10'
    if zen4:
        run('l3missonly', event='ibs_fetch/l3missonly=1/', about=20000, window='1 1', ctl=1 << 59, unseen='any')
    else:
        g.bad('fetch-l3missonly', '-e ibs_fetch/l3missonly=1/', None, 'l3missonly', 'kernel|Zen 4')
    zen6 = g.cpu.zen6 and g.kernel == '7.2'
    if zen6:
        run('fetchlat', '--plan hw --min-lat 300', about=20000, window='2 1', unseen='any', all=True,
            filters=lambda: oracle.Filter(latency=(300, 65535)), also=lambda *_: planned(g))
    else:
        g.bad('fetch-fetchlat', '-e ibs_fetch/fetchlat=256/', None, 'fetchlat', 'kernel|Zen 6')
    for what, options, said in BAD:
        g.bad('fetch-' + what, '-e ibs_fetch// ' + options, 2, said, '')


def record_both(g, name, options):
    periods = [g.new_period(about) for about in (100000, 60000)]
    g.do('run %s ibscope record -e ibs_op// -e ibs_fetch// -c %d,%d --duration 0.7 -o $O/%s.data %s' % (
        name, *periods, name, options))
    g.check('record both events %s' % options, records.check_two, g, name, periods, bool(options))
    g.do('run %s-replay ibscope replay --json -e ibs_fetch// --cgroup /a --max-lat 30 $O/%s.data' % (name, name))
    g.check('replay of them %s' % options, g.check_hist, name + '-replay', periods[1], None, None, '1 1', {
        'rows': has_address, 'source': 'replay', 'unseen': 'null',
        'filters': lambda: oracle.Filter(cgroup=g.facts.below('/a'), latency=(0, 30))}, 'ibs_fetch')


def serve_both(g):
    """One collector of both events."""
    periods = [g.new_period(about) for about in (100000, 60000)]
    g.do(r'''D=/sys/fs/bpf/serve-both
ibscope serve -e ibs_op//,ibs_fetch// -c %d,%d --max-groups 256 --pin-dir $D --control none --max-overhead off \
    --nmi-cost 1us --max-bpf-time off 2> $O/serve-both.err & S=$!
sampling serve-both; sleep 0.7; kill $S; quiet 1; wait $S
ibscope ctl --pin-dir $D --json snapshot > $O/serve-both.out 2>> $O/serve-both.err
echo $? > $O/serve-both.rc; rm -r $D''' % tuple(periods))
    for pmu, period, more in zip(('ibs_op', 'ibs_fetch'), periods, ({}, {'rows': has_address, 'due': g.smp})):
        g.check('a collector of both events: ' + pmu, g.check_hist, 'serve-both', period, None, None, '1 1', more, pmu)


def governed(g):
    """The longest period of ibs_fetch is shorter than that of ibs_op: a governor must not go beyond it."""
    g.do(r'''D=/sys/fs/bpf/governed
ibscope serve -e ibs_fetch// -c 100000 --max-groups 256 --pin-dir $D --control none --max-overhead 0.1% \
    --nmi-cost 12us --max-bpf-time off 2> $O/fetch-governed.err & S=$!
sampling fetch-governed
for i in $(seq 100); do grep -q 'budget' $O/fetch-governed.err && grep -q 'next try' $O/fetch-governed.err && break; sleep 0.1; done
ibscope ctl --pin-dir $D --json status > $O/fetch-governed.out
kill $S; quiet 1; wait $S; echo $? > $O/fetch-governed.rc; rm -r $D''')
    g.check('a collector above its budget', check_governed, g)


def check_governed(g):
    o = json.loads(g.stdout('fetch-governed'))
    need(o['governor']['state'] == 'stopped' and o['period'] <= 1048560, '%s: %s' % (
        {k: o[k] for k in ('period', 'governor')}, g.read('fetch-governed.err')))
    return 'sampling stopped, period %d' % o['period']


# what a filter says -> the same of a sample
FILTERS = {
    'fetch == l2-miss || fetch == l3-miss || fetch == l3': lambda s: s.fetch in ('l2-miss', 'l3-miss', 'l3'),
    'fetch != l1 && itlb == l1': lambda s: s.fetch not in ('l1', 'unknown') and s.itlb == 'l1',
    'itlb_refill_lat >= 30 || !fetch_comp': lambda s: (s.metrics['itlb_refill_lat'] or 0) >= 30 or not s.comp,
    'ic_miss': lambda s: s.known and s.ic and not s.cpu.bad_ic_miss,
    '!ic_miss && fetch_lat < 9': lambda s: s.known and not s.ic and not s.cpu.bad_ic_miss and s.comp and (
        s.metrics['fetch_lat'] < 9),
    'l2_miss && !l3_miss': lambda s: s.known and s.comp and s.l2 and s.cpu.zen4 and not s.l3,
    '!oc_miss': lambda s: s.known and s.comp and s.cpu.zen4 and not s.oc,
    '!l1tlb_miss, kernel': lambda s: s.itlb == 'l1' and s.mode == 'kernel',
    'page_size >= 2m || !phy_addr_valid': lambda s: s.page in ('2m', '1g') or not s.phys,
    'phys_addr > 0x8000000 && cpu == 1': lambda s: s.phys and s.physad > 0x8000000 and s.vcpu == 1,
}

BAD = (
    ('term', '--filter dc_miss', 'dc_miss.*ibs_op'),
    ('addr', '--addr 0-10', 'addr.*ibs_op'),
    ('src', '--src dram', 'src'),
    ('metric', '--metric dc_miss_lat', 'dc_miss_lat.*fetch_lat'),
    ('by', '--by op', 'op.*itlb'),
    ('period', '-c 16000000', '16000000.*1048560'),
)


def classes(g, rows):
    """Those that are frequent on this processor must occur."""
    want = {'aborted', 'l1-l2' if g.cpu.bad_ic_miss else 'l1'} | ({'op-cache'} if g.cpu.zen4 else set())
    met = {s.fetch for s in rows}
    need(want <= met, 'classes %s' % met)
    return ', '.join('%s %d' % (c, sum(s.fetch == c for s in rows)) for c in sorted(met))


def planned(g):
    need('fetchlat=256' in g.stdout('fetch-fetchlat'), 'fetchlat is not used')
    return 'fetchlat used'


def main():
    import vmtest
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=vmtest.MATRIX)
    args = ap.parse_args()

    def make(work, report):
        guests = [vmtest.Guest(*p.split(':'), work, report, '-fetch') for p in args.pairs]
        for g in guests:
            g.check('the kernel did not complain', g.check_console)
            scenarios(g)
        return guests

    return guest.run_guests(args, make)


if __name__ == '__main__':
    sys.exit(main())
