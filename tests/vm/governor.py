#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""governor.py [--build DIR] [KERNEL:GEN...]: a collector with a budget, on emulated hardware, while
what the CPUs do changes a hundredfold, against the hardware's own list of delivered samples.

The guest's clock counts its instructions, 2 ns each, so that a busy host changes nothing. That is
far slower than a processor, so the collector is told what a sample costs, and what it then spends is
worked out from the list. A CPU that is busy has an op a nanosecond, one that idles none. On 6.12 ops
and fetches share the budget.
"""
import os
import re
import sys

import guest
import oracle
from guest import need

FLOOR = 100000
FETCHES = 400000    # the period of fetches, which can be raised less: their share of the budget must suffice for its longest
NMI_S = 50e-6
NMI_BOTH_S = 5e-6
BUDGET = 0.02
PHASES = ((0.4, 5), (100, 13), (0.4, 12), (100, 13), (0.4, 8))     # percent of the time, seconds
LIMIT = 1.1 * BUDGET
WINDOW_S = 0.1


class Guest(guest.Guest):
    def scenario(self):
        work = '; '.join('work -duty $1 %g %d' % p for p in PHASES)
        # v5.10 lets only root read maps, who then becomes nobody
        self.both = self.kernel == '6.12'
        self.nmi_s = NMI_BOTH_S if self.both else NMI_S
        self.do("echo 'nobody:x:65534:65534:nobody:/:/bin/false' >> /etc/passwd")
        exporter = ('' if self.kernel == '5.10' else 'work -u 65534 ') + 'ibscope-exporter'
        self.do('sleep 3')       # kernel threads are busy after boot
        self.do('phases() { %s; }' % work)
        self.do('timeout -s KILL 200 ibscope serve -v -e ibs_op/cnt_ctl=1/%s -c %d%s --max-overhead %g%% --nmi-cost %dus '
                '--max-bpf-time off --unpin > $O/serve.out 2> $O/serve.err & S=$!\nsampling serve' % (
                    *((',ibs_fetch//', FLOOR, ',%d' % FETCHES) if self.both else ('', FLOOR, '')), 100 * BUDGET,
                    round(self.nmi_s * 1e6)))
        self.do('phases 0')
        # what is pinned is looked at when nothing is sampled any more
        self.do('sleep 1\n'
                'run status ibscope ctl status; run metrics %s --once\n'
                'kill -TERM $S; wait $S; echo $? > $O/serve.rc' % exporter)
        # interrupts are too slow here for the kernel, if it looks
        self.do('sysctl -q kernel.perf_cpu_time_max_percent=25')
        self.do('timeout -s KILL 100 ibscope serve -e ibs_op/cnt_ctl=1/ -c %d --max-overhead 50%% --nmi-cost 12us '
                '--max-bpf-time off --unpin > $O/slow.out 2> $O/slow.err & S=$!\nsampling slow' % (FLOOR + 16))
        self.do('work -duty 0 100 13; run slow-metrics %s --once\n'
                'kill -TERM $S; wait $S; echo $? > $O/slow.rc' % exporter)
        self.check('the kernel did not complain', self.check_console)
        self.check('the budget holds while the load jumps', self.check_budget)
        self.check('estimates are what there was', self.check_estimates)
        self.check('a limit that the kernel lowers is told and kept', self.check_lowered)

    def load(self):
        super().load()
        lines = oracle.read_log(self.dir + '/log')
        # the collectors are told apart by the first one's end: a pause, and another period
        start = next((i for i, s in enumerate(lines) if s.maxcnt == FLOOR + 16), len(lines))
        self.all, self.slow = lines[:start], lines[start:]
        self.fetches = [s for s in oracle.read_log(self.dir + '/log', oracle.Fetch) if s.virtual_ns >= self.all[0].virtual_ns]

    def metric(self, file, name, labels='(?:{.*})?'):
        """The sum over its lines."""
        found = re.findall(r'^%s%s (\S+)$' % (name, labels), self.read(file + '.out'), re.M)
        need(found, 'no %s' % name)
        return sum(map(float, found))

    def windows(self):
        """[(start in s, cost as a share of the CPUs' time, ops a second)]."""
        rows, width = [], WINDOW_S * 1e9
        start, end = self.all[0].virtual_ns, self.all[-1].virtual_ns
        count = [[0, 0] for _ in range(int((end - start) / width) + 1)]
        for s in self.all:
            w = count[int((s.virtual_ns - start) / width)]
            w[0] += 1
            w[1] += s.maxcnt
        for s in self.fetches:
            if s.virtual_ns < end:
                count[int((s.virtual_ns - start) / width)][0] += 1
        for i, (n, ops) in enumerate(count):
            rows.append((i * WINDOW_S, n * self.nmi_s / (WINDOW_S * self.smp), ops / WINDOW_S))
        return rows

    def check_budget(self):
        need(self.status('serve') == 0, self.read('serve.err'))
        rows = self.windows()
        # where the load jumps up: what a long period stands for comes in lumps, so several windows
        busy = [sum(ops for _, _, ops in rows[i:i + 5]) / 5 > 0.3e9 * self.smp for i in range(len(rows))]
        jumps, last = [], -1e9
        for i in range(1, len(rows)):
            if busy[i] and not any(busy[max(0, i - 30):i]):
                jumps.append(rows[i][0])
        need(len(jumps) >= 2, 'jumps at %s' % jumps)
        jumps = jumps[:2]       # then status and metrics are asked for, which is work too
        said = []
        for at in jumps:
            slow = [r for r in rows if at - 4 <= r[0] < at - 1]
            fast = [r for r in rows if at + 2 <= r[0] < at + 11]
            ratio = mean(fast, 2) / max(mean(slow, 2), 1)
            over = WINDOW_S * sum(r[1] > LIMIT for r in rows if at - 1 <= r[0] < at + 12)
            late = WINDOW_S * sum(r[1] > LIMIT for r in rows if at + 10 <= r[0] < at + 12)
            need(ratio > 100, 'ops only grew x%.0f' % ratio)
            need(over <= 1, 'above 110 %% of the budget for %.1f s' % over)
            need(late == 0 and mean(fast, 1) <= BUDGET, 'not settled: %s' % fast)
            said.append('ops x%.0f: cost up to %.0f%% of the budget, above 110%% for %.1f s, then %.0f%%' % (
                ratio, 100 * max(r[1] for r in rows if at - 1 <= r[0] < at + 12) / BUDGET, over,
                100 * mean(fast, 1) / BUDGET))
        calm = [r[1] for r in rows if jumps[0] - 4 <= r[0] < jumps[0] - 1]
        need(max(calm) < LIMIT, 'over the budget although nothing happened')
        periods = sorted({s.maxcnt for s in self.all if s.maxcnt % 16 == 0})
        need(periods[-1] > (1 if self.both else 5) * FLOOR, 'periods up to %d' % periods[-1])
        need(self.metric('metrics', 'ibscope_sampling_period_asked', '') == FLOOR, 'period asked')
        need('governor: ' in self.read('status.out'), self.read('status.out'))
        return '; '.join(said) + '; changes: %s' % ', '.join(
            '%s %s' % x for x in re.findall(r'governor_changes_total{reason="(\w+)"} ([1-9]\d*)', self.read('metrics.out')))

    def check_estimates(self):
        said = []
        for rows, name, labels in ((self.all, 'ibscope_estimated_ops_total', ''),
                                   (self.fetches, 'ibscope_estimated_fetches_total', '{event="ibs_fetch"}')):
            if not rows:
                continue
            truth = sum(s.maxcnt for s in rows if not s.dropped)
            counted = self.metric('metrics', 'ibscope_pmu_ops_total', labels)
            estimated = self.metric('metrics', name)
            for what, n in ('log', truth), ('count', counted):
                need(abs(estimated / n - 1) < 0.02, '%s %.0f, by the %s %.0f' % (name, estimated, what, n))
            said.append('%s %.4g, the log has %+.2f %%, the PMU counted %+.2f %%, %d samples' % (
                name, estimated, 100 * (truth / estimated - 1), 100 * (counted / estimated - 1), len(rows)))
        need(len(said) == 1 + self.both, 'no fetches')
        return '; '.join(said)

    def check_lowered(self):
        need(self.status('slow') == 0, self.read('slow.err'))
        said = self.read('slow.err')
        need('set kernel.perf_event_max_sample_rate to' in said, 'not told before: %s' % said)
        need(re.search('the kernel lowered kernel.perf_event_max_sample_rate to', said), 'not told: %s' % said)
        lowered = self.metric('slow-metrics', 'ibscope_kernel_rate_lowered_total')
        limit = self.metric('slow-metrics', 'ibscope_kernel_max_sample_rate')
        need(lowered >= 1 and limit < 100000, 'lowered %g times, to %g' % (lowered, limit))
        end = self.slow[-1].virtual_ns
        rate = sum(s.virtual_ns > end - 1e9 for s in self.slow)
        need(0 < rate <= 0.55 * limit, '%d samples in the last second, the limit is %g' % (rate, limit))
        return 'to %g, then %d samples a second' % (limit, rate)


def mean(rows, column):
    return sum(r[column] for r in rows) / max(len(rows), 1)


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=['6.1:zen4', '6.12:zen4'])
    args = ap.parse_args()
    os.environ['IBSRIG_ICOUNT_SHIFT'] = '1'

    def make(work, report):
        guests = [Guest(*p.split(':'), work, report, '-governor', smp=1, workers=False) for p in args.pairs]
        for g in guests:
            g.rig = ['--icount']
            g.scenario()
        return guests

    exporter = os.path.join(args.build, 'ibscope-exporter') + ':/usr/bin/ibscope-exporter'
    return guest.run_guests(args, make, tools=[exporter])


if __name__ == '__main__':
    sys.exit(main())
