#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""soak.py [--seconds S] [KERNEL:GEN ...]: a collector that goes on for ever, on emulated hardware,
while all that can change about a machine does, against the hardware's own list of samples.

CPUs go offline and come back, thousands of cgroups are made and removed, another user of the PMU comes
and goes, the clock is set; the collector is killed, restarted and told to read its options again, the
exporter is killed. Each life of the collector has a period of its own, so that the MaxCnt field of
a line in the log tells which life the sample belongs to.
"""
import collections
import json
import os
import re
import sys

import guest
import oracle
import soak_guest
from guest import Hist, need

CPUS = 4
OTHERS_PERIOD = 3200000


class Life:
    """One stretch of sampling: from a start to an end."""

    def __init__(self, number, end, calm, period):
        self.number, self.end, self.calm, self.period = number, end, calm, period
        self.delivered = self.dropped = 0
        self.seen = self.unseen = None


class Soak(guest.Guest):
    def __init__(self, kernel, gen, work, report, seconds):
        super().__init__(kernel, gen, work, report, '-soak', smp=CPUS, workers=False)
        self.plan = soak_guest.Plan(kernel, seconds, CPUS, OTHERS_PERIOD)
        self.script = [guest.SETUP, self.plan.script()]
        self.timeout = seconds * 2 + 600
        self.check('the kernel did not complain', self.check_console)
        self.check('the plan was carried out', self.check_plan)
        self.check('ledger at each scrape', self.check_scrapes)
        self.check('sums are those of the log', self.check_sums)
        self.check('samples of each life', self.check_lives)
        self.check('nothing grows', self.check_sizes)
        self.check('what happened was counted', self.check_counted)

    # --- the log

    def load(self):
        self.lives = [Life(*x) for x in self.plan.lives]
        self.read_adopted()
        self.paths = {int(i): p.replace('/sys/fs/cgroup', '') for i, p in
                      (x.split() for x in self.read('cgroups').splitlines())}
        self.others, self.others_lost = collections.Counter(), 0
        for line in self.read('shared').splitlines():
            if line.startswith('lost'):
                self.others_lost += int(line.split()[1])
            else:
                self.others[line] += 1
        self.shared_samples = sum(self.others.values())
        self.total = collections.defaultdict(oracle.Series)   # (src, op)
        self.own = collections.defaultdict(oracle.Series)     # (path, src, op) of those that live on
        self.strangers = 0
        self.read_log()

    def read_log(self):
        by_period = {l.period: l for l in self.lives}
        now = [None] * CPUS
        stay = {i: p for i, p in self.paths.items() if p.startswith('/load/')}
        with open(os.path.join(self.dir, 'log')) as f:
            for text in f:
                dropped = text.startswith('#dropped,')
                if not text.endswith(',op\n') or (text[0] == '#' and not dropped):
                    continue
                line = oracle.Line(text[9:-1] if dropped else text[:-1], dropped)
                columns = line.text.split(',')
                cpu = int(columns[0])
                if not dropped and self.others:
                    registers = ','.join(columns[4:10])
                    if self.others[registers]:
                        self.others[registers] -= 1
                        continue
                if line.maxcnt in by_period:
                    now[cpu] = by_period[line.maxcnt]
                if dropped:
                    if now[cpu] and line.maxcnt != OTHERS_PERIOD:
                        now[cpu].dropped += 1
                    continue
                if not now[cpu]:
                    self.strangers += 1
                    continue
                now[cpu].delivered += 1
                s = oracle.Sample(columns, self.cpu)
                self.total[s.src, s.op].add(s.metrics['dc_miss_lat'])
                if s.cgroup in stay:
                    self.own[stay[s.cgroup], s.src, s.op].add(s.metrics['dc_miss_lat'])

    def read_adopted(self):
        """What each life had counted: the next one says so when it begins."""
        said = re.findall(r'(\d+) samples seen, (\d+) unseen', self.read('collector.err'))
        totals = [(0, 0)] + [(int(s), int(u)) for s, u in said]
        final = json.loads(self.stdout('final'))['ledger']
        self.final = final
        status = re.search(r'^ibscope_samples_unseen_total (\d+)', self.read('last.out'), re.M)
        totals.append((final['seen'], int(status.group(1)) if status else totals[-1][1]))
        need(len(totals) == len(self.lives) + 1, '%d lives of %d said what they went on with' % (
            len(said), len(self.lives) - 1))
        for l, before, after in zip(self.lives, totals, totals[1:]):
            l.seen, l.unseen = after[0] - before[0], after[1] - before[1]

    # --- checks

    def check_plan(self):
        steps = self.read('steps')
        need('done' in steps, 'the script ended early: %s' % self.read('script.log')[-2000:])
        need('failed' not in steps, steps)
        churn = self.read('churn')
        need(re.match(r'\d+ cgroups', churn), 'churn: %s' % churn)
        count = collections.Counter(l.end for l in self.lives)
        return '%s; %d lives: %d killed, %d restarted, %d reloaded; %d times a CPU went; %d exporters; ' \
            '%d times shared, %d clock steps' % (
                churn.strip(), len(self.lives), count['kill'], count['term'], count['hup'],
                steps.count('offline'), steps.count('exporter'), steps.count(' share '), steps.count(' clock '))

    def check_scrapes(self):
        lines = self.read('scrapes.out').splitlines()
        last = re.match(r'scrapes (\d+) failed (\d+)', lines[-1])
        need(last, 'no summary: %s' % lines[-3:])
        bad = [x for x in lines if x.startswith(('back', 'unbalanced'))]
        need(not bad, '%d complaints: %s' % (len(bad), '; '.join(bad[:8])))
        ok, failed = int(last.group(1)), int(last.group(2))
        need(ok > self.plan.seconds / 8, 'only %d scrapes' % ok)
        rows = [x.split() for x in self.read('scrapes').splitlines()]
        slow = sorted(float(r[-1]) for r in rows)
        return '%d scrapes, each balanced, none of their series went back; %d failed; %d to %d bytes, ' \
            'median %.3f s' % (ok, failed, min(int(r[-2]) for r in rows), max(int(r[-2]) for r in rows),
                               slow[len(slow) // 2])

    def check_sums(self):
        """What was counted is a part of what the log has, bucket by bucket; check_lives() says what
        the rest is."""
        need(self.others_lost == 0, 'the other user lost %d samples' % self.others_lost)
        left = sum(self.others.values())
        need(left == 0, '%d of %d samples of the other user are not in the log' % (left, self.shared_samples))
        got = Hist(self.read('final.out'))
        missing = self.compare(got.series(('cgroup', 'src', 'op')), self.total, self.own)
        delivered = sum(l.delivered for l in self.lives)
        need(delivered - got.ledger['seen'] == missing + got.ledger['lost'],
             'delivered %d, seen %d, but %d are missing in series' % (delivered, got.ledger['seen'], missing))
        return '%d delivered, %d seen, all %d series and their buckets within the log\'s; %d of others, ' \
            '%d of nobody' % (delivered, got.ledger['seen'], len(self.total) + len(self.own),
                              self.shared_samples, self.strangers)

    def compare(self, series, total, own):
        sums = guest.merged(((src, op), v) for (_, src, op), v in series.items())
        missing = 0
        for got, want, what in ((sums, total, 'all'), ({k: v for k, v in series.items() if k in own}, own, 'cgroups')):
            for key in sorted(set(got) | set(want)):
                g, w = got.get(key, oracle.Series()), want.get(key, oracle.Series())
                over = {b: n - w.buckets[b] for b, n in g.buckets.items() if n > w.buckets[b]}
                need(not over and g.samples <= w.samples and g.valid <= w.valid and g.sum <= w.sum,
                     '%s: more was counted than the log has: %r; %r' % (' '.join(key), g, w))
                if what == 'all':
                    missing += w.samples - g.samples
        return missing

    def check_lives(self):
        """delivered = seen + unseen + what is explained: see soak_guest.Plan.slack()."""
        text, bad, exact, rest = [], [], 0, 0
        for l in self.lives:
            more = l.delivered - l.seen - l.unseen
            least, most = self.plan.slack(l)
            least -= l.dropped
            text.append('%d%s%s %d-%d-%d=%d(%d)' % (l.number, l.end[0], 'c' * l.calm, l.delivered, l.seen, l.unseen,
                                               more, l.dropped))
            if not least <= more <= most:
                bad.append('life %d, period %d, ended by %s: delivered %d, seen %d, unseen %d, dropped %d; '
                           'the rest of %d is not in [%d, %d]' % (l.number, l.period, l.end, l.delivered, l.seen, l.unseen,
                                                                   l.dropped, more, least, most))
            exact += more == 0
            rest += more
        print('#    lives: ' + ' '.join(text), flush=True)
        need(not bad, '; '.join(bad))
        return '%d of %d lives exact, %d samples in all in windows that are known' % (exact, len(self.lives), rest)

    def check_sizes(self):
        names = 'time rss files exporter_rss exporter_files pins cgroups groups slots progs maps links'.split()
        rows = [dict(zip(names, map(float, x.split()))) for x in self.read('sizes').splitlines()]
        begin, end = rows[0]['time'], rows[-1]['time']
        quarter = lambda n: [r for r in rows if begin + (end - begin) * (n - 1) / 4 <= r['time'] <=
                             begin + (end - begin) * n / 4]
        text, bad = [], []
        for name in names[1:]:
            early, late = ([r[name] for r in quarter(n) if r[name] >= 0] for n in (2, 4))
            if not early and not late:
                continue
            need(early and late, 'no figures of %s' % name)
            if 'rss' in name:       # KiB; of many processes in turn
                early, late = sorted(early)[len(early) // 2], sorted(late)[len(late) // 2]
                most = early * 1.03 + 256
            else:
                early, late = max(early), max(late)
                most = early if name in ('pins', 'files', 'exporter_files') else early * 1.25 + 8
            text.append('%s %d %d' % (name, early, late))
            if late > most:
                bad.append('%s grew from %d to %d' % (name, early, late))
        need(not bad, '; '.join(bad))
        return 'second and last quarter: ' + ', '.join(text)

    def check_counted(self):
        last = dict(x.rsplit(' ', 1) for x in self.read('last.out').splitlines() if x and x[0] != '#')
        steps, got, want = self.read('steps'), {}, {}
        for name, metric in (('clock', 'ibscope_clock_steps_total'), ('share', 'ibscope_pmu_shared_total'),
                             ('suspend', 'ibscope_suspends_total')):
            got[name] = int(float(last.get(metric, -1)))
            want[name] = steps.count(' %s ' % name)
        got['starts'] = int(last['ibscope_collector_starts_total'])
        want['starts'] = len(self.lives)
        got['reloads'] = int(last['ibscope_config_reloads_total'])
        want['reloads'] = sum(l.end == 'hup' for l in self.lives)
        went, came = (int(last['ibscope_cpus_' + x]) for x in ('went_offline_total', 'came_online_total'))
        need(got == want, 'got %s, happened %s' % (got, want))
        inside = self.plan.offline_within(steps)
        need(inside <= went <= steps.count(' offline '), '%d CPUs went, %d to %d expected' % (
            went, inside, steps.count(' offline ')))
        return '%s; %d CPUs went, %d came, of %d' % (
            ', '.join('%s %d' % x for x in got.items()), went, came, steps.count(' offline '))


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('--seconds', type=int, default=1800, metavar='S', help='how long (default 1800)')
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=['6.12:zen4'])
    args = ap.parse_args()

    def make(work, report):
        return [Soak(*p.split(':'), work, report, args.seconds) for p in args.pairs]

    return guest.run_guests(args, make, programs=('soak_load', 'soak_watch'),
                            tools=[os.path.join(args.build, 'ibscope-exporter') + ':/usr/bin/ibscope-exporter'])


if __name__ == '__main__':
    sys.exit(main())
