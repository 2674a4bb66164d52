#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""strata.py [--build DIR] [--served] [KERNEL:GEN ...]: hist, top or serve --strata against the hardware's log: each sample in the ledger of
its stratum, estimates within their intervals, and intervals narrower than those of one event.
"""
import json
import os
import re
import sys

import guest
import oracle
import plans
from guest import need

sys.path.insert(0, os.path.join(guest.HERE, '../system'))
import schemas

PAIRS = '5.10:zen4', '6.12:zen4', '7.2:zen5', '7.2:zen6'
WINDOWS = 10
FAR = plans.FAR


def check_schema(g, name):
    n = len(schemas.Schemas().check_text('hist', g.stdout(name)))
    need(n == WINDOWS, '%d lines' % n)


def lines(g, name):
    return [json.loads(x) for x in g.stdout(name).splitlines()]


def far_rows(line):
    return [s for s in line['series'] if s['labels']['src'] in FAR]


def check_ledgers(g, name, period, seen):
    """Of the full stratum the log has as many samples of this period; adds those of the miss stratum to `seen`."""
    full, slices = 0, [0, 0]
    for line in lines(g, name):
        total = 0
        for i, s in enumerate(line['strata']):
            ledger = s['ledger']
            rest = sum(ledger['filtered'].values()) + sum(ledger['lost'].values())
            need(ledger['seen'] == ledger['aggregated'] + rest, '%s does not balance: %s' % (s['name'], ledger))
            need(not ledger['lost'], '%s lost %s' % (s['name'], ledger['lost']))
            slices[i] += s['slices']
            total += ledger['seen']
            full += ledger['seen'] * (i == 0)
            seen[0] += ledger['seen'] * (i == 1)
        need(total == line['ledger']['seen'], 'the sum is %d, not %d' % (line['ledger']['seen'], total))
        need(sum(s['samples'] for s in line['series']) <= line['ledger']['aggregated'], 'too many samples in rows')
    log = sum(not miss for miss, maxcnt in logged(g) if maxcnt == period)
    need(full == log, 'seen %d, the log has %d' % (full, log))
    return 'seen %d in %d and %d slices, all that the log has' % (full, *slices)


def logged(g):
    """Of each sample that the guest read whether it is of a miss stratum, and its period."""
    for rows in g.lines.values():
        for x in rows:
            if not x.dropped:
                yield is_miss(x), x.maxcnt


def is_miss(line):
    return int(line.text.split(',', 4)[3], 0) & oracle.L3MISSONLY > 0


def later(g, period):
    """Of each sample after the last one of this period: whether it is of a miss stratum, and its period."""
    read = [x for rows in g.lines.values() for x in rows if not x.dropped]
    end = max(x.virtual_ns for x in read if x.maxcnt == period)
    return [(is_miss(x), x.maxcnt) for x in read if x.virtual_ns > end]


def check_miss(g, seen, last=0):
    """Periods of miss strata vary, so all runs count together, but those after that of period @last."""
    log = sum(miss for miss, _ in logged(g))
    log -= sum(miss for miss, _ in later(g, last)) if last else 0
    need(seen[0] == log, 'seen %d, the log has %d' % (seen[0], log))
    return 'seen %d, all that the log has' % log


def check_estimates(g, name):
    """What the emulation made DRAM accesses of all ops, in each window and in all."""
    covered, ops, estimate, n, kept = 0, 0, 0, 0, 0
    for line in lines(g, name):
        truth = plans.P_FAR * sum(s['ops'] for s in line['strata'])
        rows = far_rows(line)
        low, high, mean = (sum(f(s) for s in rows) for f in (
            lambda s: s['estimated_ops_interval']['low'], lambda s: s['estimated_ops_interval']['high'],
            lambda s: s['estimated_ops']))
        covered += low <= truth <= high
        kept += sum(s['samples'] for s in rows)
        n += 1
        ops += truth
        estimate += mean
    error = estimate / ops - 1
    need(covered >= n - 2, '%d of %d intervals have the truth' % (covered, n))
    need(abs(error) < 4 / kept ** 0.5, 'estimated ops are off by %.2f %%' % (100 * error))
    return '%d of %d intervals have the truth; all of them: %+.2f %%, of %d samples' % (covered, n, 100 * error, kept)


def one_event(line):
    """Half of the interval of an unstratified row, relative to its miss cycles."""
    rows = far_rows(line)
    squares = sum(n * le * le for s in rows for le, n in s['buckets'])
    return 1.96 * squares ** 0.5 / sum(s['sum'] for s in rows)


def check_width(g, name, alone):
    width, interrupts = [], []
    for line in lines(g, name):
        rows = far_rows(line)
        half = sum(((s['high'] - s['low']) / 2) ** 2 for s in rows) ** 0.5
        width.append(half / sum(s['miss_cycles'] for s in rows))
        interrupts.append(line['ledger']['seen'] / line['interval_s'])
    one = lines(g, alone)
    of_one = sum(map(one_event, one)) / len(one)
    rate = sum(x['ledger']['seen'] / x['interval_s'] for x in one) / len(one)
    width, rate_strata = sum(width) / len(width), sum(interrupts) / len(interrupts)
    need(width < of_one * 0.5, 'DRAM: +-%.1f %%, of one event +-%.1f %%' % (100 * width, 100 * of_one))
    need(rate_strata < 1.3 * rate, '%.0f interrupts/s, of one event %.0f' % (rate_strata, rate))
    return 'miss cycles from DRAM +-%.1f %% at %.0f interrupts/s; of one event +-%.1f %% at %.0f' % (
        100 * width, rate_strata, 100 * of_one, rate)


def check_table(g, name, seen):
    out = g.stdout(name)
    for text in '+-95%', 'est. ops', '\nfull stratum, ', '\nmiss stratum, ', 'l3missonly=1/, period ':
        need(text in out, '%r is not in %s' % (text, out))
    seen[0] += int(re.search(r'^miss stratum, .*: seen ([\d,]+) =', out, re.M)[1].replace(',', ''))


def number(text):
    """A number of a table, such as 1,234 or 0.98 G."""
    n, unit = re.fullmatch(r'[~<]?([\d,.]+)(?: ([kMGTP]))?', text).groups()
    return float(n.replace(',', '')) * 1000 ** (' kMGTP'.index(unit or ' '))


def check_top(g, name, period, alone):
    """Its frame has all samples of the log but the last ones, and estimates what the emulation made."""
    out = g.stdout(name)
    seconds = re.search(r'   strata: full ([\d.]+) s, miss ([\d.]+) s', out)
    need(seconds and all(0.5 < float(x) < 3 for x in seconds.groups()), 'no strata in %s' % out)
    seen = int(re.search(r'^seen ([\d,]+) = ', out, re.M)[1].replace(',', ''))
    log = later(g, alone)
    need(all(miss or maxcnt == period for miss, maxcnt in log), 'samples of another run')
    n_miss = sum(miss for miss, _ in log)
    late = len(log) - seen
    need(0 <= late <= len(log) / 10 and n_miss > 100, 'seen %d, the log has %d and %d' % (seen, len(log) - n_miss, n_miss))
    rows = {x[0]: [number(n) for n in x[1:]] for x in (re.split(r'  +', line) for line in out.splitlines()) if x[0] in FAR + ('total',)}
    far = [rows[x] for x in FAR if x in rows]
    kept = sum(x[0] for x in far)
    error = sum(x[1] for x in far) / (plans.P_FAR * rows['total'][1]) - 1
    need(abs(error) < 4 / kept ** 0.5 + 0.01, 'estimated ops are off by %.2f %%, of %d samples' % (100 * error, kept))
    need(all(low < cycles < high for _, _, cycles, low, high in far), 'intervals: %s' % rows)
    return 'seen %d, the log has %d and %d; ops from DRAM %+.2f %%, of %d samples; miss cycles +-%.1f %%' % (
        seen, len(log) - n_miss, n_miss, 100 * error, kept, 50 * sum(x[4] - x[3] for x in far) / sum(x[2] for x in far))


COST_RUNS = (1, 6), (6, 1)     # windows, seconds of each


def check_cost(g, seen):
    """CPU time of the program in as many seconds with more and fewer slices, less that without strata."""
    us = {(strata, n): int(g.read('cost-%s-%d.err' % (strata, n)).split()[-2]) for strata in ('on', 'off') for n, _ in COST_RUNS}
    turns = [sum(s['slices'] for x in lines(g, 'cost-on-%d' % n) for s in x['strata']) for n, _ in COST_RUNS]
    seen[0] += sum(x['strata'][1]['ledger']['seen'] for n, _ in COST_RUNS for x in lines(g, 'cost-on-%d' % n))
    more = us['on', 6] - us['on', 1] - (us['off', 6] - us['off', 1])
    need(turns[1] > turns[0] + 50, '%s slices' % turns)
    each = more / (turns[1] - turns[0])
    need(each < 2000, '%.0f us' % each)
    return '%.0f us a turn on 1 CPU of 1 instruction/ns, with one group: %.4f %% with slices of a second' % (each, each / 1e4)


def check_recording(g, name, period, seen):
    """Ledgers of both strata against the log, and estimates of report and replay against what the emulation made."""
    report = json.loads(g.stdout(name + '-report'))
    schemas.Schemas().check_text('report', g.stdout(name + '-report'))
    full, miss = (e['ledger'] for e in report['events'])
    for ledger in full, miss:
        need(ledger['seen'] == ledger['forwarded'] + ledger['filtered'] + ledger['lost'], 'does not balance: %s' % ledger)
        need(not ledger['lost'], 'lost %d' % ledger['lost'])
    need(report['ledger']['seen'] == full['seen'] + miss['seen'], 'the sum is %d' % report['ledger']['seen'])
    need(report['samples']['op'] == full['forwarded'] + miss['forwarded'], 'the file has %d' % report['samples']['op'])
    seen[0] += miss['seen']
    log = sum(not of_miss for of_miss, maxcnt in logged(g) if maxcnt == period)
    need(full['seen'] == log, 'seen %d, the log has %d' % (full['seen'], log))
    far = [r for r in report['rows'] if r['labels']['src'] in FAR]
    hist = json.loads(g.stdout(name + '-replay'))
    ops = sum(s['ops'] for s in hist['strata'])
    kept = sum(r['samples'] for r in far)
    errors = [sum(x['estimated_ops'] for x in rows) / (plans.P_FAR * ops) - 1 for rows in (far, far_rows(hist))]
    need(sum(s['samples'] for s in far_rows(hist)) == kept, 'replay and report have different samples')
    need(all(abs(e) < 4 / kept ** 0.5 for e in errors), 'report and replay are off by %.2f and %.2f %%' % tuple(100 * e for e in errors))
    need(abs(report['total']['estimated_ops'] / ops - 1) < 0.03, 'all ops are %d of %d' % (report['total']['estimated_ops'], ops))
    low, high = (sum(r[k] for r in far) for k in ('low', 'high'))
    miss_cycles = sum(r['miss_cycles'] for r in far)
    need(low < miss_cycles < high, '%s' % far)
    return 'seen %d and %d; ops from DRAM: report %+.2f %%, replay %+.2f %%, of %d samples; miss cycles +-%.1f %%' % (
        full['seen'], miss['seen'], 100 * errors[0], 100 * errors[1], kept, 50 * (high - low) / miss_cycles)


def check_refused(g, name, why):
    need(why in g.read(name + '.err'), g.read(name + '.err'))
    return g.read(name + '.err').strip().splitlines()[-1]


def scenarios(g):
    seen = [0]
    g.do('start a /a 0')
    period = g.new_period(200000)
    hist = 'ibscope hist --json --by src -e ibs_op/cnt_ctl=1/ -c %d '
    g.do('run explain ibscope hist --explain --strata auto')
    if g.kernel == '5.10':
        g.do('run refused ' + hist % period + '--strata on 1 1')
        g.check('no filters: says why', check_refused, g, 'refused', 'l3missonly requires Linux')
        g.do('run auto ' + hist % period + '--strata auto 0.5 1')
        g.check('auto without filters: one event', lambda: need('strata' not in lines(g, 'auto')[0], 'strata'))
        return
    g.do('run strata ' + hist % period + '--strata on 1 %d' % WINDOWS)
    g.do('run table ibscope hist --by src --histogram --top 3 -e ibs_op/cnt_ctl=1/ -c %d --strata auto 1 1' % g.new_period(100000))
    recorded = g.new_period(150000)
    g.do('run record ibscope record -o $O/strata.data -e ibs_op/cnt_ctl=1/ -c %d --strata on --duration 4' % recorded)
    g.do('run record-report ibscope report --by src --json $O/strata.data')
    g.do('run record-replay ibscope replay --by src --json $O/strata.data')
    g.check('a recording: ledgers of its strata, and what report and replay estimate', check_recording, g, 'record', recorded, seen)
    for n, seconds in COST_RUNS:
        for strata in 'on', 'off':
            # nearly no sample
            g.do('run cost-%s-%d work -time ibscope hist --json --by src -e ibs_op/cnt_ctl=1/ -c 134217712 --strata %s %d %d' % (
                strata, n, strata, seconds, n))
    g.check('cost of a turn', check_cost, g, seen)
    alone, top = g.new_period(200000), g.new_period(150000)
    g.do('run alone ' + hist % alone + '1 %d' % WINDOWS)
    g.do('run top ibscope top --own --once --by src --columns samples,estimated_ops,cycles,low,high --size 120x19 '
         '-e ibs_op/cnt_ctl=1/ -c %d --strata on -d 3' % top)
    g.check('each sample in the ledger of its stratum', check_ledgers, g, 'strata', period, seen)
    g.check('estimated ops from DRAM', check_estimates, g, 'strata')
    g.check('the schema', check_schema, g, 'strata')
    g.check('a table with both ledgers', check_table, g, 'table', seen)
    g.check('each sample of the miss strata in their ledgers', check_miss, g, seen, alone)
    g.check('intervals narrower than of one event', check_width, g, 'strata', 'alone')
    g.check('top: a frame of both strata', check_top, g, 'top', top, alone)
    g.check('the kernel did not complain', g.check_console)


SERVED_S = 30


def served(g):
    """A collector that is killed and resumed, and an exporter's view of its counters."""
    period = g.new_period(100000)
    g.do(r'''
D=/sys/fs/bpf/strata
serve() {
    ibscope serve -e ibs_op/cnt_ctl=1/ -c %d --by cgroup,src --max-groups 256 --pin-dir $D --control /run/ibscope/control \
        --max-overhead off --nmi-cost 1us --max-bpf-time off --strata on 2> $O/$1.err & S=$!
    sampling $1
}
start a /a 0
serve served; sleep %d; kill -KILL $S; wait $S
serve resumed; sleep %d
kill -TERM $S; quiet 1; wait $S; echo $? > $O/resumed.rc
work -u 65534 ibscope-exporter --once --pin-dir $D > $O/served-metrics.out 2> $O/served-metrics.err
ibscope ctl --pin-dir $D --json status > $O/served-status.out 2> $O/served-status.err
ibscope ctl --pin-dir $D --json --by cgroup,src snapshot > $O/served.out 2> $O/served.err2
rm -r $D''' % (period, SERVED_S / 2, SERVED_S / 2))
    g.check('served: each sample in the ledger of its stratum', check_served_ledgers, g, period)
    g.check('served: estimated ops from DRAM', check_served, g, period)
    g.check('the kernel did not complain', g.check_console)


UNSEEN = 2
# When a collector is killed, its program ends before its event does: what is sampled in between is in the log only
KILLED_NS = 50000000


class Killed:
    """What the log has around the kill: no sample comes until the next collector starts."""
    def __init__(self, g, period):
        rows = sorted((x.virtual_ns, miss) for rows in g.lines.values() for x in rows if not x.dropped
                      for miss in [is_miss(x)] if miss or x.maxcnt == period)
        self.n = max(range(1, len(rows)), key=lambda i: rows[i][0] - rows[i - 1][0])
        before = rows[:self.n]
        end_ns, self.miss = before[-1]
        last = [miss for ns, miss in before if ns > end_ns - KILLED_NS]
        self.late = {'full': last.count(False), 'miss': last.count(True)}
        # samples of its last slice
        self.slice = next((i for i, (_, miss) in enumerate(reversed(before)) if miss != self.miss), self.n)
        self.seen = int(re.search(r'resuming counters pinned in .*: ([\d,]+) samples seen', g.read('resumed.err'))[1].replace(',', ''))


def check_served_ledgers(g, period):
    need(g.read('resumed.rc') == '0\n', g.read('resumed.err'))
    status = json.loads(g.read('served-status.out'))
    schemas.Schemas().check_text('ctl-status', g.read('served-status.out'))
    log = [sum(miss for miss, _ in logged(g)), sum(not miss and maxcnt == period for miss, maxcnt in logged(g))]
    out, total = [], 0
    killed = Killed(g, period)
    for name, want in ('full', log[1]), ('miss', log[0]):
        s = status['strata'][name]
        ledger = s['ledger']
        rest = sum(ledger['filtered'].values()) + sum(ledger['lost'].values())
        need(ledger['seen'] == ledger['aggregated'] + rest, '%s does not balance: %s' % (name, ledger))
        need(not ledger['lost'], '%s lost %s' % (name, ledger['lost']))
        # those on their way when a collector is killed or ends are unseen, which is unknown with a filter
        need(0 <= want - ledger['seen'] <= UNSEEN + killed.late[name], '%s: seen %d, the log has %d' % (name, ledger['seen'], want))
        out.append('%s: %d of %d in %d slices and %.1f s' % (name, ledger['seen'], want, s['slices'], s['seconds']))
        total += ledger['seen']
    need(total == status['ledger']['seen'], 'the sum is %d: %s' % (total, status['ledger']))
    after = sum(log) - killed.n - (total - killed.seen)
    need(0 <= after <= UNSEEN, 'after the kill, %d are missing' % after)
    return '; '.join(out) + ' of the log; of the collector that was killed, %d are missing' % (killed.n - killed.seen)


def check_served(g, period):
    series = json.loads(g.read('served.out'))['series']
    far = [s for s in series if s['labels']['src'] in FAR]
    n, ops, far_ops = sum(s['samples'] for s in far), sum(s['estimated_ops'] for s in series), sum(s['estimated_ops'] for s in far)
    strata = json.loads(g.read('served-status.out'))['strata']
    # of the slice in which it was killed, samples are known and tags are not
    killed = Killed(g, period)
    of = strata['miss' if killed.miss else 'full']
    lost = killed.slice * of['tags'] / (of['ledger']['seen'] - killed.slice)
    found = n / (strata['effective_samples'] + lost) / plans.P_FAR - 1
    need(abs(found) < 3 / n ** 0.5 + 0.01, 'samples of tags are off by %.2f %%, of %d' % (100 * found, n))
    error = far_ops / (plans.P_FAR * ops) - 1
    # weights are those of the slices before, so that the last two of each of the two collectors stand for themselves alone
    slices = strata['full']['slices'] + strata['miss']['slices']
    need(abs(error) < 3 / n ** 0.5 + 4 / slices, 'estimated ops are off by %.2f %%, of %d samples' % (100 * error, n))
    effective = float(re.search(r'^ibscope_effective_samples_total (\S+)', g.read('served-metrics.out'), re.M)[1])
    seen = json.loads(g.read('served-status.out'))['ledger']['seen']
    need(effective == strata['effective_samples'] and effective > 4 * seen, '%d effective samples of %d' % (effective, seen))
    return 'tags %+.2f %%, estimate %+.2f %%, of %d samples; %d samples are as good as %d of one event' % (
        100 * found, 100 * error, n, seen, effective)


def two_cpus(g):
    """Turns while tasks come and go on two CPUs, whose clocks are the host's."""
    seen = [0]
    for name, options in ('all', ''), ('selected', '--cgroup /a '):
        period = g.new_period(100000)
        g.do('run %s ibscope hist --json --by cgroup,src -e ibs_op/cnt_ctl=1/ -c %d --strata on %s2 3' % (name, period, options))
        g.check('%s: each sample in the ledger of its stratum' % name, check_ledgers, g, name, period, seen)
    g.check('each sample of the miss strata in their ledgers', check_miss, g, seen)
    g.check('the kernel did not complain', g.check_console)


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('--served', action='store_true', help='collectors instead: ten minutes')
    ap.add_argument('--two', action='store_true', help='only what runs on two CPUs')
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=PAIRS)
    args = ap.parse_args()

    def make(work, report):
        guests = [guest.Guest(*pair.split(':'), work, report, '-strata', smp=1, workers=False,
                              rig=['--pmu', '--icount']) for pair in args.pairs]
        for g in guests:
            scenarios(g)
        more = [guest.Guest(g.kernel, g.gen, work, report, '-strata-2', rig=['--pmu']) for g in guests if g.kernel != '5.10']
        for g in more:
            two_cpus(g)
        collectors = [guest.Guest(g.kernel, g.gen, work, report, '-strata-served', smp=1, workers=False, rig=['--pmu', '--icount'])
                      for g in guests if g.kernel != '5.10']
        for g in collectors:
            served(g)
        return more if args.two else collectors if args.served else guests + more

    exporter = os.path.join(args.build, 'ibscope-exporter') + ':/usr/bin/ibscope-exporter'
    return guest.run_guests(args, make, tools=[exporter])


if __name__ == '__main__':
    sys.exit(main())
