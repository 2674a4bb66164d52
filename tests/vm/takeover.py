#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""takeover.py [--steps N] [--seed N] [KERNEL:GEN ...]: a collector that is killed, replaced, restarted
and changed in random order, on emulated hardware: its ledger has every sample that the hardware
delivered, to the unit.

Meanwhile another program reads maps, during which the kernel runs no program on a CPU: some samples are
unseen, also while no collector runs. What events of a killed collector have counted is known where its
links outlive it: on 5.10 nothing else reads maps.

Only the collector samples, so every line of the log is its own. The hardware may latch a sample that
the kernel discards unread when it stops an event: it is not delivered, and the kernel counts no period
for it, so it is not unseen either.
"""
import bisect
import json
import random
import sys

import guest
from guest import need

PERIOD = 100000
KINDS = 'kill kill early holding ending term hup period plan event lines latency cgroup reset lease stopped'.split()

SCRIPT = r'''
D=/sys/fs/bpf/takeover
conf() {        # PERIOD [OPTION]
    printf 'period = %d\nmax-overhead = off\nnmi-cost = 1us\nmax-bpf-time = off\nlease = 5s\n%s\n' $1 $2 > /tmp/conf
}
conf $PERIOD
serve() {       # in the background, until it samples
    : > $O/takeover.last
    ibscope serve --config /tmp/conf -e ibs_op// --pin-dir $D --control /run/ibscope/control 2>> $O/takeover.last & S=$!
    for i in $(seq 200); do
        grep -q 'ibscope: .* CPUs' $O/takeover.last && break
        kill -0 $S 2> /dev/null || break
        [ $1 ] && return
        sleep 0.05
    done
}
ended() { cat $O/takeover.last >> $O/takeover.err; }
kill_() { kill -KILL $S; wait $S; ended; sleep $1; serve; sleep 0.4; }
again() { kill -KILL $S; wait $S; ended; serve; sleep 0.4; }
early() { kill -KILL $S; wait $S; ended; serve early; sleep $1; again; }
holding() {     # killed once its child begins to end the links that another left
    kill -KILL $S; wait $S; ended; serve early
    while kill -0 $S && ! grep -q 'ibscope: .* CPUs' $O/takeover.last; do
        read child < /proc/$S/task/$S/children
        [ -z "$child" ] || break
    done
    again
}
ending() {      # killed once the links that another left are unpinned, before their events end
    kill -KILL $S; wait $S; ended; serve early
    while kill -0 $S && set -- $D/links/* && [ -e "$1" ]; do :; done
    again
}
ledger() { ibscope ctl --pin-dir $D -e ibs_op --json ledger | tr -d '\n'; }
lapsed() {      # both ledgers must have the same counts, but for samples that are dropped
    sleep 8
    echo "[$(ledger), $(sleep 1; ledger)]" >> $O/takeover.lapsed
}
lease() { kill -KILL $S; wait $S; ended; lapsed; serve; sleep 0.4; }
stopped() { kill -STOP $S; lapsed; kill -CONT $S; sleep 2.5; ledger >> $O/takeover.resumed; echo >> $O/takeover.resumed; }
term() { kill -TERM $S; wait $S || echo "exit $?" >> $O/takeover.failed; ended; serve; sleep 0.4; }
hup() { conf $1; kill -HUP $S; sleep 0.6; }
set_() {        # on a busy host the answer may be late
    said=$(ibscope ctl --pin-dir $D "$@" 2>&1) || case $said in *'no answer'*) sleep 9;; *) echo "$*: $said" >> $O/takeover.failed;; esac
    sleep 0.4
}
state() { echo "$(cut -d' ' -f1 /proc/uptime) $* $(ledger)" >> $O/takeover.states; }
'''

READ_MAPS = r'''
while [ ! -e $O/takeover.out ]; do
    bpftool map show | sed -n 's/^\([0-9]*\): .*/\1/p' | while read i; do bpftool map dump id $i > /dev/null 2>&1; done
done &
'''

END = r'''
kill -TERM $S; wait $S; ended; sleep 0.3
state end
run takeover ibscope ctl --pin-dir $D -e ibs_op --json ledger
rm -r $D
'''


class Steps:
    """Random steps, each with a way back to the options before."""

    def __init__(self, guest, seed, only):
        self.guest, self.rng, self.kinds = guest, random.Random(seed), only or KINDS

    def period(self):
        return self.guest.new_period(self.rng.choice((60000, 100000, 200000)))

    def one(self):
        pick = self.rng.choice
        kind = pick(self.kinds)
        return {
            'kill': lambda: 'kill_ %.2f' % self.rng.choice((0, 0.02, 0.5, 1.2)),
            'early': lambda: 'early %.2f' % self.rng.uniform(0.02, 1),
            'holding': lambda: 'holding',
            'ending': lambda: 'ending',
            'term': lambda: 'term',
            'hup': lambda: 'hup %d' % self.period(),
            'period': lambda: 'set_ set period=%d' % self.period(),
            'plan': lambda: 'set_ set plan=%s' % pick(('off', 'hw', 'sched', 'hw,sched')),
            'event': lambda: 'set_ set %s' % pick(('event=ibs_op//,ibs_fetch// period=%d,1000000' % self.period(), 'event= period=')),
            'lines': lambda: 'conf %d %s; term' % (self.period(), pick(('hot-lines', ''))),
            'latency': lambda: 'set_ set %s' % pick(('min-lat=20', 'min-lat=', 'max-lat=600')),
            'cgroup': lambda: 'set_ set %s' % pick(('cgroup=/a', 'cgroup=/s', 'cgroup=')),
            'reset': lambda: 'set_ reset',
            'lease': lambda: 'lease',
            'stopped': lambda: 'stopped',
        }[kind]()


def scenarios(guest, steps, seed, only=()):
    """Append @steps random steps to the guest's script, and the check of the ledger."""
    random_steps = Steps(guest, seed, only)
    plan = ['kill_ 0'] + [random_steps.one() for _ in range(steps - 1)]
    guest.do('PERIOD=%d' % guest.new_period(PERIOD) + SCRIPT)
    if guest.kernel != '5.10':
        guest.do(READ_MAPS)
    guest.do('touch $O/takeover.failed $O/takeover.lapsed $O/takeover.resumed; quiet 0; serve; sleep 0.5')
    for step in plan:
        guest.do('%s\nstate "%s"' % (step, step))
    guest.do(END)
    guest.check('takeover: seed %d, %d steps' % (seed, steps), check, guest)


def missing(guest, lines):
    """Of each step, what is in no ledger when it ends: near that moment a few samples are on their way."""
    began = [x.virtual_ns for x in lines if not x.dropped]
    text, before = [], 0
    for line in guest.read('takeover.states').splitlines():
        at, rest = line.split(' ', 1)
        step, ledger = rest[:rest.rindex(' {')], json.loads(rest[rest.rindex(' {'):])
        now = bisect.bisect(began, float(at) * 1e9) - ledger['seen'] - ledger['unseen']
        text.append('%s %+d' % (step, now - before))
        before = now
    return ', '.join(text)


def check(guest):
    failed = guest.read('takeover.failed')
    need(not failed, failed)
    ledger = json.loads(guest.stdout('takeover'))
    lines = sorted((x for run in guest.lines.values() for x in run), key=lambda x: x.virtual_ns)
    dropped = sum(x.dropped for x in lines)
    delivered = len(lines) - dropped
    counted = ledger['seen'] + ledger['unseen']
    need(delivered == counted, 'delivered %d, %d in the ledger (%d seen, %d unseen); discarded unread %d; by step: %s' % (
        delivered, counted, ledger['seen'], ledger['unseen'], dropped, missing(guest, lines)))
    lapsed = [json.loads(line) for line in guest.read('takeover.lapsed').splitlines()]
    for at, later in lapsed:
        need(at['aggregated'] == later['aggregated'], 'after the lease, %s and then %s' % (at, later))
    lost = ledger['lost'].get('lease', 0)
    need(not lost or lapsed, '%d samples lost without end of a lease' % lost)
    return '%d delivered = %d seen + %d unseen; %d discarded unread; %d leases ended, %d samples lost' % (
        delivered, ledger['seen'], ledger['unseen'], dropped, len(lapsed), lost)


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('--steps', type=int, default=40, metavar='N', help='how many (default 40)')
    ap.add_argument('--only', nargs='+', default=(), choices=KINDS, metavar='KIND', help='only steps of these kinds')
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=['5.10:zen3', '6.1:zen4', '6.12:zen4', '7.2:zen5'])
    args = ap.parse_args()

    def make(work, report):
        guests = []
        for p in args.pairs:
            g = guest.Guest(*p.split(':'), work, report, '-takeover')
            scenarios(g, args.steps, args.seed, args.only)
            guests.append(g)
        return guests

    return guest.run_guests(args, make)


if __name__ == '__main__':
    sys.exit(main())
