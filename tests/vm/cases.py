# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Named cases of what is selected, against the hardware's log."""
import collections

import oracle
from guest import Hist, need

# of the command that hops: a look for each three hops
HOPS, LOOKS = 17, 5
ABSENT = {      # filter -> (value of a sample, its comparison)
    '!(dc_miss_lat > 100)': (lambda s: s.metrics['dc_miss_lat'], lambda v: v <= 100),
    'dc_miss_lat != 0': (lambda s: s.metrics['dc_miss_lat'], lambda v: v != 0),
    '!(tlb_refill_lat < 1)': (lambda s: s.metrics['tlb_refill_lat'], lambda v: v >= 1),
    '!brn_misp': (lambda s: s.data >> 36 & 1 if s.data >> 37 & 1 else None, lambda v: not v),
    '!(data_src == dram || data_src == l1)': (
        lambda s: None if s.src in ('none', 'unknown') else s.src, lambda v: v not in ('dram', 'l1')),
    '!(addr == 0)': (lambda s: s.linad if s.mem and s.data3 >> 17 & 1 else None, lambda v: v != 0),
}


class Cases:
    """For guest.Guest."""

    def cases(self):
        below = lambda *paths: self.facts.below(*paths)
        # three levels below; its sibling, and a name that only begins the same, are not
        self.do('start ab /ab 0; start a2 /a2/b 1')
        self.hist('nested', '--cgroup /a', by=('cgroup',), also=self.nested,
                  filters=lambda: oracle.Filter(cgroup=below('/a')))
        self.do('kill -9 $P_ab $P_a2; wait $P_ab $P_a2')
        self.hist('late-cgroup', '--cgroup /a', window='2 1', by=('cgroup',), also=self.late,
                  meanwhile='start late /a/late/x 0; sleep 1; kill -9 $P_late',
                  filters=lambda: oracle.Filter(cgroup=below('/a')))
        self.do('start first /first 0; mkdir $cg/second')
        self.hist('pid-reused', '-p $P_first', window='3 1', by=('cgroup',), meanwhile='''
sleep 0.5; kill -9 $P_first; wait $P_first
for i in $(seq 20); do
    rm -f /tmp/ready.*
    echo $((P_first - 1)) > /proc/sys/kernel/ns_last_pid
    start second /second 0
    [ $P_second -ne $P_first ] || break
    kill -9 $P_second; wait $P_second
done
sleep 0.5; kill -9 $P_second
''', also=self.reused, filters=lambda: oracle.Filter(pid=lambda s: (
            s.tgid == self.facts.workers['first'].pid and s.cgroup == self.facts.ids['/first'])))
        for i, (text, (value, holds)) in enumerate(ABSENT.items()):
            self.hist('absent-%d' % i, '--filter "%s"' % text, window='0.3 1', by=('op',),
                      filters=lambda value=value, holds=holds: oracle.Filter(
                          filter=lambda s: value(s) is not None and holds(value(s))))
        period = self.new_period(30000)
        self.do('run unseen ibscope hist --json -c %d 1 1 & H=$!; sampling unseen\n'
                'work -bpf 1; wait $H' % period)
        self.check('unseen: samples while BPF programs may not run', self.unseen, period)

    def nested(self, accepted, series):
        for path in ('/a', '/a/b/c/d'):
            need((path,) in series, 'no sample of %s' % path)
        mine = collections.Counter(s.cgroup for s in accepted)
        for path in ('/ab', '/a2/b', '/s'):
            need(self.facts.ids[path] not in mine and (path,) not in series, path + ' is in')
        return 'of /a/b/c/d %d' % mine[self.facts.ids['/a/b/c/d']]

    def late(self, accepted, series):
        new = [s for s in accepted if s.cgroup == self.facts.ids['/a/late/x']]
        need(new and ('/a/late/x',) in series, 'no sample of the new cgroup')
        return 'of the new cgroup %d' % len(new)

    def reused(self, accepted, series):
        pid, second = self.facts.workers['first'].pid, self.facts.ids['/second']
        need(self.facts.workers['second'].pid == pid, 'the pid was not used again')
        other = sum(s.tgid == pid and s.cgroup == second
                    for lines in self.lines.values() for s in map(self.sample, lines))
        need(accepted and other, '%d samples of the first, %d of the second' % (len(accepted), other))
        return 'pid %d: %d of the first, %d of the second process' % (pid, len(accepted), other)

    def sample(self, line):
        return line.sample(self.cpu)

    def unseen(self, period):
        """The number of delivered samples that were not seen is reported exactly."""
        got = Hist(self.stdout('unseen'))
        delivered, dropped = self.samples(period)
        missing = len(delivered) - got.ledger['seen']
        need(missing > 0, 'the program saw all %d' % len(delivered))
        need(got.unseen is not None, 'unseen is null: %s' % self.read('unseen.err'))
        need(missing <= got.unseen <= missing + dropped,
             'unseen %d; delivered %d, seen %d, dropped %d' % (
                 got.unseen, len(delivered), got.ledger['seen'], dropped))
        return 'delivered %d, seen %d, unseen %d; dropped by the driver %d' % (
            len(delivered), got.ledger['seen'], got.unseen, dropped)

    # --- a command that hops between CPUs, in a boot of its own

    def hops(self):
        self.hist('hop', window='', command='sh -c "exec work -hop %d 7 > $O/hopper"' % HOPS, by=('pid', 'cpu'),
                  filters=lambda: oracle.Filter(cgroup={self.own_cgroup()}), also=self.hopped)
        self.check('the kernel did not complain', self.check_console)

    def hopper(self):
        pid = int(self.read('hopper'))
        samples = [s for lines in self.lines.values() for s in map(self.sample, lines)
                   if s.tgid == pid]
        need(len(samples) > 200, 'only %d samples of the command' % len(samples))
        return samples

    def own_cgroup(self):
        found = collections.Counter(s.cgroup for s in self.hopper())
        need(len(found) == 1, 'the command was in %s' % found)
        return list(found)[0]

    def hopped(self, accepted, series):
        mine = self.hopper()
        ours = sum(s.samples for (pid, _), s in series.items() if int(pid) == mine[0].tgid)
        need(ours == len(mine), '%d of the command\'s %d samples' % (ours, len(mine)))
        cpus = {s.vcpu for s in mine}
        need(len(cpus) == self.smp, 'it was only on %s' % cpus)
        moves = sum(a.vcpu != b.vcpu for a, b in zip(mine, mine[1:]))
        chased = chase(mine)
        need(chased <= 0.3 * len(mine), 'who chases it gets %.0f of %d' % (chased, len(mine)))
        return '%d moves, 0 of %d samples lost; who looks for it %d times loses %.1f %%' % (
            moves, len(mine), LOOKS, 100 - 100 * chased / len(mine))


def chase(samples, starts=20):
    """How many a collector gets that samples one CPU, and now and then looks which one the process is on: LOOKS times, at
    equal distances in the work of the process, on average over when it begins to."""
    total, every = 0, len(samples) / LOOKS
    for i in range(starts):
        cpu, due = samples[0].vcpu, every * (i + 1) / starts
        for n, s in enumerate(samples):
            if n >= due:
                cpu, due = s.vcpu, due + every
            total += s.vcpu == cpu
    return total / starts
