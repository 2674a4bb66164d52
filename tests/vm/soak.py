#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""soak.py [--seconds S] [KERNEL:GEN ...]: a collector that goes on for ever, on emulated hardware,
while all that can change about a machine does, against the hardware's own list of samples.

CPUs go offline and come back, thousands of cgroups are made and removed, another user of the PMU comes
and goes, the clock is set, the machine is suspended; the collector is killed, restarted and told to
read its options again, the exporter is killed. Each life of the collector has a period of its own,
so that the MaxCnt field of a line in the log tells which life the sample belongs to.
"""
import collections
import itertools
import os
import re
import sys

import guest
import oracle
import soak_guest
from guest import Hist, need

CPUS = 4
OTHERS_PERIOD = 3200000

# A life has begun where a line of its period is followed by another one among so many.
AHEAD = 16

# Lines of a life that come at most so many lines after the next one has begun.
LATE = 200

COLUMNS = 'time rss anon files exporter_rss exporter_anon exporter_files pins cgroups groups slots ' \
    'progs maps links'.split()


class Life:
    """One stretch of sampling: from a start to an end."""

    def __init__(self, call):
        self.call, self.period = call, call.period
        self.delivered = self.dropped = 0
        self.began = None       # seen and unseen when it began, if it came so far


class Stretch:
    """Lives of which is known what was counted in them: one, and those that were killed before they said
    what they went on with."""

    def __init__(self, lives, end, before):
        """end: seen and unseen then; before: the stretch before, or None"""
        self.lives = lives
        self.name = '+'.join('%d%s' % (l.call.number, l.call.end[0]) for l in lives)
        self.seen, self.unseen = (b - a for a, b in zip(lives[0].began, end))
        self.delivered = sum(l.delivered for l in lives)
        self.dropped = sum(l.dropped for l in lives)
        self.rest = self.delivered - self.seen - self.unseen
        # of one that was killed, which this one may have seen: on each CPU an interrupt can be on its way
        self.of_before = min(CPUS, max(0, before.rest)) if before else 0
        # while the PMU is shared the collector cannot know what is unseen
        self.unknown = sum(3 * (l.call.activity == 'share') for l in lives)


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
        self.check('what samples stand for', self.check_estimated_ops)
        self.check('nothing grows', self.check_growth)
        self.check('what happened was counted', self.check_counted)

    # --- what the guest wrote, and the log

    def load(self):
        self.lives = [Life(c) for c in self.plan.lives]
        self.steps = [x.split() for x in self.read('steps').splitlines()]
        self.read_collectors()
        self.paths = {int(i): p.replace('/sys/fs/cgroup', '') for i, p in
                      (x.split() for x in self.read('cgroups').splitlines())}
        shared = self.read('shared').splitlines()
        self.others = collections.Counter(x for x in shared if not x.startswith('lost'))
        self.others_n = sum(self.others.values())
        self.others_lost = sum(int(x.split()[1]) for x in shared if x.startswith('lost'))
        self.total = collections.defaultdict(oracle.Series)   # (src, op)
        self.own = collections.defaultdict(oracle.Series)     # (path, src, op) of those that live on
        self.strangers = 0
        self.read_log()

    def times(self, what):
        return [float(s[0]) for s in self.steps if s[1] == what]

    def read_collectors(self):
        """What had been counted when each life began."""
        parts = re.split(r'^== life (\d+)$', self.read('collector.err'), flags=re.M)
        for number, text in zip(parts[1::2], parts[2::2]):
            said = re.search(r'([\d,]+) samples seen, ([\d,]+) unseen', text)
            if said:
                self.lives[int(number) - 1].began = tuple(int(n.replace(',', '')) for n in said.groups())
        self.lives[0].began = 0, 0
        self.last = dict(x.rsplit(' ', 1) for x in self.stdout('last').splitlines() if x and x[0] != '#')
        self.got = Hist(self.stdout('final'))
        self.seen, self.unseen = self.got.ledger['seen'], int(self.last.get('ibscope_samples_unseen_total', 0))

    def log_lines(self):
        """(line, columns, life) of the log without the other user's samples. The life is the one that the period
        belongs to: what is left of a period when an event is taken off the PMU belongs to none, or by chance to any."""
        by_period = {l.period: l for l in self.lives}
        with open(os.path.join(self.dir, 'log')) as f:
            for text in f:
                dropped = text.startswith('#dropped,')
                if not text.endswith(',op\n') or (text[0] == '#' and not dropped):
                    continue
                line = oracle.Line(text[9:-1] if dropped else text[:-1], dropped, oracle.Sample)
                columns = line.text.split(',')
                if not dropped and self.others[as_shared(columns)]:
                    self.others[as_shared(columns)] -= 1
                elif line.maxcnt != OTHERS_PERIOD:
                    yield line, columns, by_period.get(line.maxcnt)

    def read_log(self):
        now, since = None, 0
        stay = {i: p for i, p in self.paths.items() if p.startswith('/load/')}
        lines = self.log_lines()
        ahead = collections.deque(itertools.islice(lines, AHEAD))
        while ahead:
            line, columns, life = ahead.popleft()
            ahead.extend(itertools.islice(lines, 1))
            since += 1
            later = life and (not now or life.call.number > now.call.number)
            if later and any(x[2] is life for x in ahead):
                now, since = life, 0
            elif life is not now and (later or since > LATE):
                life = None
            life = life or now
            if not life or line.dropped:
                self.strangers += not line.dropped
                if life:
                    life.dropped += 1
                continue
            s = oracle.Sample(columns, self.cpu)
            latency = s.metrics['dc_miss_lat']
            life.delivered += 1
            self.total[s.src, s.op].add(latency)
            if s.cgroup in stay:
                self.own[stay[s.cgroup], s.src, s.op].add(latency)
        groups = []
        for l in self.lives:
            if l.began:
                groups.append([])
            groups[-1].append(l)
        ends = [g[0].began for g in groups[1:]] + [(self.seen, self.unseen)]
        self.stretches = []
        for g, end in zip(groups, ends):
            self.stretches.append(Stretch(g, end, self.stretches[-1] if self.stretches else None))

    # --- checks

    def check_plan(self):
        need(self.steps[-1][1] == 'done', 'the script ended early: %s' % self.read('script.log')[-2000:])
        need(not self.times('failed'), [s for s in self.steps if s[1] == 'failed'])
        churn = self.read('churn')
        made = re.match(r'(\d+) cgroups', churn)
        need(made and int(made.group(1)) > self.plan.seconds * 2.5, 'churn: %s' % churn)
        count = collections.Counter(l.call.end for l in self.lives)
        done = collections.Counter(s[1] for s in self.steps)
        return '%s; %d lives: %d killed, %d of those while they began, %d restarted, %d reloaded; ' \
            '%d times a CPU went; %d exporters; %d times shared, %d clock steps, %d suspends' % (
                churn.strip(), len(self.lives), count['kill'] + count['early'], count['early'],
                count['term'] - 1, count['hup'], done['offline'], done['exporter'], done['share'],
                done['clock'], done['suspend'])

    def check_scrapes(self):
        lines = self.read('scrapes.out').splitlines()
        last = re.match(r'scrapes (\d+)', lines[-1])
        need(last, 'no summary: %s' % lines[-3:])
        bad = [x for x in lines if x.startswith(('back', 'unbalanced'))]
        need(not bad, '%d complaints: %s' % (len(bad), '; '.join(bad[:8])))
        failed = [float(x.split()[1]) for x in lines if x.startswith('failed')]
        answered = {s[2]: float(s[0]) for s in self.steps if s[1] == 'answers'}
        killed = self.times('killed')
        # a scrape that began before an exporter was killed may fail with it
        no_exporter, took = [(t - 1.5, 1e9) for t in killed[-1:]], []
        for s, before, end in zip([s for s in self.steps if s[1] == 'exporter'], [0] + killed, killed):
            need(s[2] in answered or end is killed[-1], 'the exporter of %s never answered' % s[0])
            no_exporter.append((before - 1.5, answered.get(s[2], end)))
            took.append(no_exporter[-1][1] - float(s[0]))
        odd = [t for t in failed if not any(a <= t <= b for a, b in no_exporter)]
        need(not odd, 'scrapes failed while there was an exporter, at %s' % odd)
        ok = int(last.group(1))
        need(ok > self.plan.seconds / 8, 'only %d scrapes' % ok)
        rows = [x.split() for x in self.read('scrapes').splitlines()]
        slow = sorted(float(r[-1]) for r in rows)
        return '%d scrapes, each balanced, no series went back; %d more without an exporter, which took up ' \
            'to %.1f s to answer; %d to %d bytes, median %.3f s' % (
                ok, len(failed), max(took[1:], default=0), min(int(r[-2]) for r in rows),
                max(int(r[-2]) for r in rows), slow[len(slow) // 2])

    def check_sums(self):
        """Bucket by bucket, what was counted is in the log, and what is in the log was counted, but for as
        many as are reported as unseen."""
        need(self.others_lost == 0, 'the other user lost %d samples' % self.others_lost)
        left = sum(self.others.values())
        need(left == 0, '%d of %d samples of the other user are not in the log' % (left, self.others_n))
        for o in self.got.lines:
            o['period'] = None      # each life has another one: check_estimated_ops()
        series = self.got.series(('cgroup', 'src', 'op'))
        sums = guest.merged(((src, op), v) for (_, src, op), v in series.items())
        missing = within(sums, self.total)
        own = within({k: v for k, v in series.items() if k[0].startswith('/load/')}, self.own)
        delivered = sum(l.delivered for l in self.lives)
        need(self.got.ledger['lost'] == 0, 'lost %d' % self.got.ledger['lost'])
        need(delivered - self.seen == missing, 'delivered %d, seen %d, but %d are missing in series' % (
            delivered, self.seen, missing))
        need(missing <= self.unseen + sum(st.unknown for st in self.stretches),
             '%d samples are missing, %d are reported as unseen' % (missing, self.unseen))
        return '%d delivered, %d seen, %d unseen; %d missing; all %d series within ' \
            'the log\'s; of cgroups that lived on %d missing of %d; %d of the other user, %d of nobody' % (
                delivered, self.seen, self.unseen, missing, len(self.total) + len(self.own), own,
                sum(v.samples for v in self.own.values()), self.others_n, self.strangers)

    def check_estimated_ops(self):
        """Each sample represents the period of its life, and those taken beside another user what that user's represent, too."""
        weight = sum(s['estimated_ops'] for o in self.got.lines for s in o['series'])
        periods = [[l.period for l in s.lives if l.delivered] or [0] for s in self.stretches]
        least, most = (sum(s.seen * of(p) for s, p in zip(self.stretches, periods)) for of in (min, max))
        # turns are of some milliseconds, weights of half a second: both users may have had other ops
        most += 2 * self.others_n * OTHERS_PERIOD
        need(least <= weight <= most, '%d estimated ops; %d to %d expected' % (weight, least, most))
        return '%d, of [%d, %d]' % (weight, least, most)

    def check_lives(self):
        """delivered = seen + unseen, also of lives that were killed."""
        bad = ['life %s: delivered %d, seen %d, unseen %d: %d are missing; dropped %d' % (
            s.name, s.delivered, s.seen, s.unseen, s.rest, s.dropped)
            for s in self.stretches if not -s.dropped - s.of_before <= s.rest <= s.unknown]
        print('#    life, delivered = seen + unseen + rest: ' + ', '.join('%s %d=%d+%d%+d' % (
            s.name, s.delivered, s.seen, s.unseen, s.rest) for s in self.stretches), flush=True)
        need(not bad, '; '.join(bad))
        return '%d of %d exact, the others but for %s' % (
            sum(s.rest == 0 for s in self.stretches), len(self.stretches),
            '/'.join(str(s.rest) for s in self.stretches if s.rest))

    def check_growth(self):
        """Of the whole the last quarter against the second, of the last life the last third against
        the first. Memory by the median: 3 % and 256 KiB; cgroups in maps, of which those that end while
        there is no collector stay for a moment, by the median, and kernel objects by the greatest: a
        quarter and eight; files: two, since now and then one is open for a second; pins: none. Of different
        lives only what is anonymous is compared: the rest is maps, as far as they were touched. In the last
        life the exporter is judged only if it never restarted, since a new one has answered once. It keeps
        the text of a scrape, which is as long as there are series: that is left out."""
        rows = [dict(zip(COLUMNS, map(float, x.split()))) for x in self.read('sizes').splitlines()]
        self.subtract_texts(rows)
        last_life = self.times('life')[-1] + 3
        final = self.times('term')[-1]
        text, bad = [], []
        for what, begin, end, early, late in (('all', rows[0]['time'], final, (1, 2), (3, 4)),
                                              ('last life', last_life, final, (0, 4 / 3), (8 / 3, 4))):
            figures = []
            for name in COLUMNS[1:]:
                a, b = ([r[name] for r in rows if r[name] >= 0 and
                         begin + (end - begin) * lo / 4 <= r['time'] < begin + (end - begin) * hi / 4]
                        for lo, hi in (early, late))
                if name.startswith('exporter') and not self.plan.unprivileged:
                    continue        # it is started for each scrape
                if name.startswith('exporter') and what != 'all' and any(begin < t < end for t in self.times('exporter')):
                    continue
                if name.endswith('rss') and what == 'all':
                    continue
                need(a and b, 'no figures of %s' % name)
                if name == 'pins':      # a CPU that is offline has none
                    a = [r[name] for r in rows if r['time'] < begin + (end - begin) * late[0] / 4]
                if name.endswith(('rss', 'anon', 'groups', 'slots')):
                    a, b = sorted(a)[len(a) // 2], sorted(b)[len(b) // 2]
                    most = a * 1.03 + 256 if name.endswith(('rss', 'anon')) else a * 1.25 + 8
                else:
                    a, b = max(a), max(b)
                    most = a if name == 'pins' else a + 2 if name.endswith('files') else a * 1.25 + 8
                figures.append('%s %d %d' % (name, a, b))
                if b > most:
                    bad.append('%s: %s grew from %d to %d' % (what, name, a, b))
            text.append('%s: %s' % (what, ', '.join(figures)))
        need(not bad, '; '.join(bad))
        return '; '.join(text)

    def subtract_texts(self, rows):
        """From the exporter's memory the text it gave last; unknown (-1) until it gave one."""
        texts = [(float(x[0]), int(x[-2]) / 1024) for x in
                 (line.split() for line in self.read('scrapes').splitlines())]
        started = self.times('exporter')
        for r in rows:
            since = max([t for t in started if t <= r['time']], default=0)
            given = [size for t, size in texts if since < t < r['time']]
            for name in 'exporter_rss', 'exporter_anon':
                r[name] = r[name] - given[-1] if given and r[name] >= 0 else -1

    def check_counted(self):
        got = {k: int(float(self.last.get('ibscope_%s_total' % k, -1))) for k in (
            'clock_steps', 'pmu_shared', 'suspends', 'config_reloads', 'collector_starts',
            'cpus_went_offline', 'cpus_came_online')}
        for name, step in ('clock_steps', 'clock'), ('pmu_shared', 'share'), ('suspends', 'suspend'), (
                'config_reloads', 'hup'):
            happened = len(self.times(step))
            need(got[name] == happened, '%s: %d counted, %d happened' % (name, got[name], happened))
        # on SIGHUP a collector goes on
        started = [l for before, l in zip([None] + self.lives, self.lives)
                   if not before or before.call.end != 'hup']
        spoke = sum(l.began is not None for l in started)
        need(spoke <= got['collector_starts'] <= len(started), '%d starts of %d' % (
            got['collector_starts'], len(started)))
        asleep = len(self.times('suspend')) * (CPUS - 1)
        least, most = self.offline_within() + asleep, len(self.times('offline')) + asleep
        need(least <= got['cpus_went_offline'] <= most, '%d CPUs went; %d to %d expected' % (
            got['cpus_went_offline'], least, most))
        return ', '.join('%s %d' % x for x in got.items()) + '; CPUs that went: %d, %d of them while a ' \
            'collector certainly watched' % (most, least)

    def offline_within(self):
        """CPUs that went, and came back, while a collector certainly watched."""
        n, since, away = 0, None, []
        for time, what, *_ in self.steps:
            if what == 'life':
                since = float(time)
            elif what in ('kill', 'term', 'hup'):
                n += sum(since + 1 < t < float(time) - 3 for t in away)
                since, away = None, []
            elif what == 'offline' and since:
                away.append(float(time))
        return n


def as_shared(columns):
    """How soak_load.c writes a sample. Samples of a loop can have the same registers but for the control register's counter."""
    return ','.join(columns[:1] + columns[3:10])


def within(got, want):
    """Samples of want that got has not."""
    missing = 0
    for key in sorted(set(got) | set(want)):
        g, w = (x.get(key, oracle.Series()) for x in (got, want))
        over = {b: n - w.buckets[b] for b, n in g.buckets.items() if n > w.buckets[b]}
        need(not over and g.samples <= w.samples and g.valid <= w.valid and g.sum <= w.sum,
             '%s: more was counted than the log has: %r; %r' % (' '.join(key), g, w))
        missing += w.samples - g.samples
    return missing


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
