# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A running collector whose options change, against the hardware's log: up to some sample of each
CPU the old selection holds, from there on the new one, and none is lost between. A change of
cgroups calls bpf(), and the kernel runs no program on a CPU whose task is inside that call, also
while it is preempted there: the samples of such a time slice are told as unseen, to the unit.
"""
import collections
import json
import re

import oracle
import records
from guest import Hist, need

BY = ('cpu', 'cgroup', 'src', 'op')
NEAR_NS = 50e6      # between the moments at which two CPUs go over, on emulated processors
LIVE, ANEW = 'changed while sampling', 'reopened'


def scenarios(guest):
    below = lambda *paths: guest.facts.below(*paths)
    pids = lambda *names: {guest.facts.workers[n].pid for n in names}
    guest.do(r'''
D=/sys/fs/bpf/live
live() {        # NAME OPTIONS -- VERB ARGUMENTS: change them when it has sampled for a while
    n=$1; shift; opts=
    while [ "$1" != -- ]; do opts="$opts $1"; shift; done; shift
    ibscope serve -e ibs_op// --by cpu,cgroup,src,op --pin-dir $D --control /run/ibscope/control --plan sched $opts \
        --max-overhead off --nmi-cost 1us --max-bpf-time off \
        2> $O/$n.err & S=$!
    sampling $n; sleep 0.7
    ibscope ctl --pin-dir $D "$@" > $O/$n.how 2>&1
    sleep 0.7; kill $S; quiet 1; wait $S; echo $? > $O/$n.rc
    ibscope ctl --pin-dir $D --json --by cpu,cgroup,src,op snapshot > $O/$n.out 2>> $O/$n.err
    rm -r $D
}
OPTS="-e ibs_op// --pin-dir $D --control /run/ibscope/control --nmi-cost 1us --max-bpf-time off \
    --max-overhead off"
finish() {      # NAME: end the collector, tell its ledger
    kill $S; quiet 1; wait $S; echo $? > $O/$1.rc
    ibscope ctl --pin-dir $D --json ledger > $O/$1.out 2>> $O/$1.err
    rm -r $D
}
again() {       # NAME PERIOD PERIOD: go on with pinned counters, and change the period
    n=$1
    ibscope serve $OPTS -c $2 2> $O/$n.first & S=$!
    for i in $(seq 100); do grep -q 'ibscope: .* CPUs' $O/$n.first && break; sleep 0.1; done
    quiet 0; sleep 0.5; kill $S; quiet 1; wait $S
    ibscope serve $OPTS -c $2 2> $O/$n.err & S=$!
    sampling $n; sleep 0.5
    ibscope ctl --pin-dir $D set max-overhead=50% > $O/$n.how 2>&1; sleep 0.3
    ibscope ctl --pin-dir $D set period=$3 >> $O/$n.how 2>&1; sleep 0.5
    finish $n
}
away() {        # NAME PERIOD...: a CPU goes and comes, and another period follows at once
    n=$1 c=/sys/devices/system/cpu/cpu1/online
    ibscope serve $OPTS -c $2 2> $O/$n.err & S=$!
    sampling $n; shift 2
    for p; do
        sleep 1.3; echo 0 > $c; echo 1 > $c
        ibscope ctl --pin-dir $D set period=$p >> $O/$n.how 2>&1
    done
    sleep 2.5; finish $n
}
asleep() {      # NAME PERIOD: the machine is suspended, which takes all CPUs but the first offline
    n=$1
    ibscope serve $OPTS -c $2 2> $O/$n.err & S=$!
    sampling $n; sleep 1.3
    echo core > /sys/power/pm_test; echo mem > /sys/power/state    # all but the sleep, of 5 s
    sleep 2.5
    ibscope ctl --pin-dir $D --json status > $O/$n.status
    finish $n
}
shared() {      # NAME PERIOD PERIOD: perf has the PMU, with the other period, and leaves it
    n=$1
    ibscope serve $OPTS -c $2 2> $O/$n.err & S=$!
    sampling $n; sleep 1.3
    perf record -q -N -e ibs_op// -c $3 -a -o /tmp/shared.data -- sleep 1.5 > $O/$n.perf 2>&1
    rm -f /tmp/shared.data
    for i in $(seq 100); do grep -q 'no longer shared' $O/$n.err && break; sleep 0.1; done
    sleep 1.2
    ibscope ctl --pin-dir $D --json ledger > $O/$n.alone
    finish $n
}
pushes() {      # NAME PERIOD: samples are counted, and copied for a profile of which nothing is delivered
    n=$1
    ibscope serve $OPTS -c $2 --push http://127.0.0.1:9 --push-interval 1m --push-duration 1m 2> $O/$n.err & S=$!
    sampling $n; sleep 2.5; finish $n
}
flies() {       # NAME PERIOD SIZE: the last samples are kept, and written twice while sampling goes on
    n=$1
    ibscope serve $OPTS -c $2 --flight 60s:$3 2> $O/$n.err & S=$!
    sampling $n; sleep 1
    for i in 1 2; do
        ibscope ctl --pin-dir $D dump -o $O/$n-$i.data >> $O/$n.how 2>&1; sleep 0.7
    done
    finish $n
}''')

    def case(name, options, change, how, *steps, about=100000, period=False, verb='set'):
        periods = [guest.new_period(about)] + ([guest.new_period(about // 2)] if period else [])
        words = change + (' period=%d' % periods[1] if period else '')
        guest.do('live live-%s -c %d %s -- %s %s' % (name, periods[0], options, verb, words))
        guest.check('live-%s: %s -- %s %s' % (name, options, verb, words), check, guest,
                    'live-' + name, periods, how, steps)

    def lat(low, high=65535, **more):
        return lambda: oracle.Filter(latency=(low, high), **{k: f() for k, f in more.items()})

    every = oracle.Filter
    in_a = lambda: below('/a')
    in_s = lambda: below('/s')
    case('latency', '--min-lat 20', 'min-lat=300', LIVE, lat(20), lat(300))
    case('latency-off', '--min-lat 300', 'min-lat=', LIVE, lat(300), every)
    case('latency-first', '', 'max-lat=150', ANEW, every, lat(0, 150))
    case('cgroup', '--cgroup /a', 'cgroup=/s', LIVE,
         lambda: oracle.Filter(cgroup=in_a()), lambda: oracle.Filter(cgroup=in_s()))
    case('cgroup-first', '', 'cgroup=/a/b', ANEW, every,
         lambda: oracle.Filter(cgroup=below('/a/b')))
    case('pid', '-p $P_d', 'pid=$P_s', LIVE,
         lambda: oracle.Filter(pid=pids('d')), lambda: oracle.Filter(pid=pids('s')))
    case('pid-but', '-p $P_d', 'pid=!$P_s', LIVE, lambda: oracle.Filter(pid=pids('d')),
         lambda: oracle.Filter(pid=lambda s: s.tgid not in pids('s')))
    case('latency-below', '--min-lat 300 --max-lat 600', 'min-lat=20 max-lat=150', LIVE,
         lat(300, 600), lat(20, 150))
    case('period', '', '', LIVE, every, every, period=True)
    case('all', '--cgroup /a --min-lat 20', 'cgroup=/s min-lat=200', LIVE, lat(20, cgroup=in_a),
         lat(20, cgroup=in_s), lat(200, cgroup=in_s), period=True)
    case('op', '--op load', 'op=store', ANEW,
         lambda: oracle.Filter(op={'load'}), lambda: oracle.Filter(op={'store'}))
    periods = [guest.new_period(100000), guest.new_period(50000)]
    guest.do('again live-again %d %d' % tuple(periods))
    guest.check('live-again: counters of a collector before, sampling started anew', check_again, guest,
                'live-again', periods)
    periods = [guest.new_period(100000) for _ in range(4)]
    guest.do('away live-away %s' % ' '.join(map(str, periods)))
    guest.check('live-away: CPUs that went and came for a moment', check_away, guest, 'live-away',
                periods)
    periods = [guest.new_period(100000)]
    guest.do('asleep live-asleep %d' % periods[0])
    guest.check('live-asleep: CPUs that went and came while the machine was suspended', check_asleep,
                guest, 'live-asleep', periods)
    periods = [guest.new_period(100000), guest.new_period(400000)]
    guest.do('shared live-shared %d %d' % tuple(periods))
    guest.check('live-shared: what is unseen is known again when perf has left the PMU', check_shared,
                guest, 'live-shared', periods[0])
    periods = [guest.new_period(100000)]
    guest.do('pushes live-pushes %d' % periods[0])
    guest.check('live-pushes: counted samples are copied', check_pushes, guest, 'live-pushes', periods)
    for size, lossy in ('16M', False), ('64K', True):
        periods, name = [guest.new_period(100000)], 'live-flight-' + size
        guest.do('flies %s %d %s' % (name, periods[0], size))
        guest.check(name + ': dumps have the last samples', check_flight, guest, name, periods[0], lossy)
    guest.check('live: the kernel did not complain', guest.check_console)


def check_pushes(guest, name, periods):
    lines = guest.lines.get(periods[0], ())
    ledger, dropped = json.loads(guest.stdout(name)), sum(x.dropped for x in lines)
    need(ledger['seen'] == ledger['aggregated'] == len(lines) - dropped, '%s; the log has %d and %d dropped' % (
        ledger, len(lines) - dropped, dropped))
    copied = re.search(r'([\d,]+) samples of an unfinished profile', guest.read(name + '.err'))
    need(copied, guest.read(name + '.err'))
    need(0 < int(copied[1].replace(',', '')) <= ledger['aggregated'], '%s copied of %s' % (copied[1], ledger))
    return '%s of %d copied' % (copied[1], ledger['aggregated'])


def check_flight(guest, name, period, lossy):
    """On each CPU a dump has samples that follow each other in the log; those of the log before are the overwritten ones."""
    rows, _ = guest.samples(period)
    ledger, told = json.loads(guest.stdout(name)), []
    need(ledger['seen'] == ledger['aggregated'] == len(rows), '%s; the log has %d' % (ledger, len(rows)))
    for n in '12':
        _, samples, events, end = records.read(guest, '%s-%s' % (name, n))
        seen = 0
        for vcpu in {s.vcpu for s in rows}:
            log = [records.wanted(s, guest.cpu, False) for s in rows if s.vcpu == vcpu]
            mine = [records.got(e) for e in samples if e['cpu'] == vcpu]
            ends = [i + 1 for i in range(len(mine) - 1, len(log)) if log[i] == mine[-1] and log[i + 1 - len(mine):i + 1] == mine]
            need(len(mine) > 0 < len(ends), 'cpu %d: %d records are not in the log one after the other' % (vcpu, len(mine)))
            seen += ends[0]
        need(end['residual'] == 0 and end['forwarded'] == len(samples), end)
        need(end['seen'] == seen, 'seen %d, the log has %d until then' % (end['seen'], seen))
        need((seen > len(samples)) == lossy, '%d of %d overwritten' % (seen - len(samples), seen))
        need(any(e['kind'] == 'comm' for e in events), 'no names')
        told.append('%d of %d' % (len(samples), seen))
    need(not re.search('error|warning', guest.read(name + '.how')), guest.read(name + '.how'))
    return ', '.join(told)


class Sums:
    """The difference between counted and reported samples of one CPU, and where they differ."""

    def __init__(self, told):
        self.left = collections.Counter()
        for key, s in told.items():
            self.add((key, 'samples'), -s.samples)
            self.add((key, 'sum'), -s.sum)
            for edge, n in s.buckets.items():
                self.add((key, edge), -n)

    def add(self, entry, n):
        self.left[entry] += n
        if not self.left[entry]:
            del self.left[entry]

    def near(self, unseen):
        """All but so many samples are reported."""
        few = sum(n for (_, what), n in self.left.items() if what == 'samples')
        return not self.left or (few <= unseen and min(self.left.values()) > 0)

    def sample(self, key, value, sign):
        self.add((key, 'samples'), sign)
        if value:
            self.add((key, 'sum'), sign * value)
        if value is not None:
            self.add((key, oracle.le(value)), sign)


def cuts(guest, rows, told, steps, unseen=0):
    """Indexes of samples at which one CPU can have gone over. With three selections the last comes
    some samples later."""
    filters = [step() for step in steps]
    passes = [[not f.reason(s, 'dc_miss_lat') for s in rows] for f in filters]
    key = [tuple(guest.label(k, s.label(k)) for k in BY) for s in rows]
    sums, found = Sums(told), []

    def move(i, have, want):
        if have != want:
            sums.sample(key[i], rows[i].metrics['dc_miss_lat'], 1 if want else -1)

    for i in range(len(rows)):
        move(i, False, passes[-1][i])
    for first in range(len(rows) + 1):
        later = range(first, min(first + 64, len(rows)) if len(filters) > 2 else first)
        if sums.near(unseen):
            found.append(first)
        for i in later:     # those between are judged by the selection in the middle
            move(i, passes[-1][i], passes[1][i])
            if sums.near(unseen):
                found.append(first)
        for i in later:
            move(i, passes[1][i], passes[-1][i])
        if first < len(rows):
            move(first, passes[-1][first], passes[0][first])
    return found


def check_estimated_ops(series, rows):
    """Each sample represents the period that it was taken with."""
    want, got = collections.Counter(), {tuple(s['labels'][k] for k in BY): s['estimated_ops'] for s in series}
    for key, s in rows:
        want[key] += s.weight
    need(got == want, 'estimated ops %s, expected %s' % (got, dict(want)))


def check_again(guest, name, periods):
    said = guest.read(name + '.how')
    need(said.count(LIVE) == 2, said)
    need('resuming counters' in guest.read(name + '.err'), guest.read(name + '.err'))
    ledger = json.loads(guest.stdout(name))
    lines = [x for p in periods for x in guest.lines.get(p, ())]
    for p in periods:
        need(sum(x.maxcnt == p for x in lines) > 20, 'few samples of period %d' % p)
    dropped = sum(x.dropped for x in lines)
    need(ledger['seen'] == len(lines) - dropped, '%d seen, the log has %d and %d dropped' % (
        ledger['seen'], len(lines) - dropped, dropped))
    need(0 <= ledger['unseen'] <= dropped, '%s unseen, %d dropped' % (ledger['unseen'], dropped))
    return '%d samples, unseen %d of %d dropped' % (len(lines) - dropped, ledger['unseen'], dropped)


def check_sampled(lines, guest):
    """All CPUs were sampled to the end."""
    end = max(x.virtual_ns for x in lines)
    for cpu in range(guest.smp):
        late = [x for x in lines if x.sample(guest.cpu).vcpu == cpu and x.virtual_ns > end - 1e9]
        need(len(late) > 20, 'CPU %d: %d samples in the last second' % (cpu, len(late)))


def check_shared(guest, name, period):
    err = guest.read(name + '.err')
    need(re.search(r'shares the PMU \(.*perf \(\d+\).*\); sampling pauses', err) and 'the PMU is no longer shared' in err, err)
    before, after = json.loads(guest.read(name + '.alone')), json.loads(guest.stdout(name))
    need(None not in (before['unseen'], after['unseen']), 'unseen: %s' % [before, after])
    lines = [x for x in guest.lines.get(period, ()) if x.maxcnt == period]
    check_sampled(lines, guest)
    return 'unseen %d, then %d of %d' % (before['unseen'], after['unseen'], after['seen'])


def check_away(guest, name, periods):
    said = guest.read(name + '.how')
    need(said.count(LIVE) == len(periods) - 1, said)
    err = guest.read(name + '.err')
    need([err.count(x) for x in ('went offline', 'came online')] == [len(periods) - 1] * 2, err)
    ledger = json.loads(guest.stdout(name))
    lines = [x for p in periods for x in guest.lines.get(p, ())]
    check_sampled(lines, guest)
    need(ledger['unseen'] is not None, 'what is unseen is not known')
    return '%d seen, unseen %d, the log has %d' % (ledger['seen'], ledger['unseen'], len(lines))


def check_asleep(guest, name, periods):
    status, ledger = json.loads(guest.read(name + '.status')), json.loads(guest.stdout(name))
    got = {k: status[k] for k in ('suspends', 'cpus_went_offline', 'cpus_came_online')}
    need(list(got.values()) == [1, guest.smp - 1, guest.smp - 1], got)
    lines = guest.lines.get(periods[0], ())
    check_sampled(lines, guest)
    need(ledger['unseen'] is not None, 'what is unseen is not known')
    return '%s; %d seen, unseen %d, the log has %d' % (got, ledger['seen'], ledger['unseen'], len(lines))


def check(guest, name, periods, how, steps):
    said = guest.read(name + '.how')
    need(said.startswith(how), said)
    got = Hist(guest.stdout(name))
    told = got.lines[0]
    need(len(got.lines) == 1 and told['period'] == periods[-1], 'period is %s' % told['period'])
    # the pause that tells runs from each other is not there between two periods
    lines = sorted((x for p in periods for x in guest.lines.get(p, ())), key=lambda x: x.virtual_ns)
    rows = []
    for x in lines:
        if not x.dropped:
            rows.append(x.sample(guest.cpu))
            rows[-1].weight = x.maxcnt
            guest.facts.complete(rows[-1])
    need(len(rows) > 200, 'only %d samples' % len(rows))
    unseen = len(rows) - got.ledger['seen']
    in_bpf = len(rows) // 100 if 'cgroup' in name or 'all' in name else 0     # a few time slices
    need(0 <= unseen <= in_bpf and not got.ledger['lost'],
         'seen %s, the log has %d' % (dict(got.ledger), len(rows)))
    need(unseen <= got.unseen <= unseen + len(lines) - len(rows),
         '%d were not seen, %s told' % (unseen, got.unseen))
    for p in periods:
        need(sum(x.maxcnt == p for x in lines) > 20, 'few samples of period %d' % p)
    if len(periods) > 1:
        if len(steps) == 2:
            check_estimated_ops(told['series'],
                          [(tuple(guest.label(k, s.label(k)) for k in BY), s) for s in rows])
        told['period'] = None   # one does not explain all estimated ops
    series, moments, text = got.series(BY), [], []
    for cpu in range(guest.smp):
        mine = [s for s in rows if s.vcpu == cpu]
        counted = {k: v for k, v in series.items() if k[0] == str(cpu)}
        found = cuts(guest, mine, counted, steps, unseen)
        need(found, 'CPU %d: no moment explains what was counted' % cpu)
        first, last = found[0], found[-1]
        if len(periods) == 1:
            need(0 < first and last < len(mine), 'CPU %d: nothing changed' % cpu)
            moments.append((mine[first - 1].virtual_ns, mine[last].virtual_ns))
        text.append('CPU %d: %d of %d before' % (cpu, first, len(mine)))
    for a, b in zip(moments, moments[1:]):
        need(how == ANEW or (a[0] - b[1] < NEAR_NS and b[0] - a[1] < NEAR_NS),
             'one at %s, one at %s' % (a, b))
    return '%d samples; %s; filtered %s, unseen %d' % (
        len(rows), ', '.join(text), dict(+got.filtered), unseen)
