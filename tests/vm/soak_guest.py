# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What soak.py has happen in the guest."""
import collections
import random

# One of each in so many seconds; a short soak has at least the second number.
EVERY_S = {'kill': (90, 3), 'early': (450, 1), 'term': (300, 1), 'hup': (300, 2)}
CGROUP_MS = 300     # between two that are made
FINAL = 0.25        # the last life is that part of the whole

SCRIPT = r'''
mkdir -p $cg/load $cg/churn
echo 'nobody:x:65534:65534:nobody:/:/bin/false' >> /etc/passwd
now() { cut -d' ' -f1 /proc/uptime; }
step() { echo "$(now) $*" >> $O/steps; }
fail() { step failed "$*"; }
cpu() {
    for i in $(seq 50); do
        echo $2 > /sys/devices/system/cpu/cpu$1/online && return
        sleep 0.1   # EBUSY while the machine is being suspended
    done
    fail cpu $1 $2
}

for c in $(seq 0 $((CPUS - 1))); do
    mkdir $cg/load/$c
    soak_load cpu $cg/load/$c $c 40 &
done
soak_load churn $cg/churn $CGROUP_MS /tmp/end > $O/churn 2>&1 & CHURN=$!

hotplug() {     # all but the first CPU, each for another while
    c=0
    while [ ! -e /tmp/end ]; do
        if [ -e /tmp/calm ]; then touch /tmp/is-calm; sleep 0.3; continue; fi
        rm -f /tmp/is-calm
        c=$((c % (CPUS - 1) + 1))
        set -- 0.4 0 1.2 2.6     # also for less than a tick of the collector's
        shift $((c % 4))
        step offline $c
        cpu $c 0
        sleep $1
        cpu $c 1
        step online $c
        sleep 1.1
    done
}
answers() {     # PID: until that exporter gives counters
    for i in $(seq 300); do
        if $FETCH 2> /dev/null | grep -q ^ibscope_samples_seen_total; then
            step answers $1
            return
        fi
        kill -0 $1 2> /dev/null || return
        sleep 0.1
    done
    fail exporter $1 gives no counters
}
exporter() {
    while [ ! -e /tmp/end ]; do
        ibscope-exporter 2>> $O/exporter.err & E=$!
        step exporter $E
        answers $E &
        for i in $(seq $EXPORTER_S); do [ -e /tmp/end ] || sleep 1; done
        kill -$1 $E
        step killed
        wait $E
        set -- $2 $1
    done
}
FETCH='wget -q -O - http://127.0.0.1:9950/metrics'
if [ $UNPRIVILEGED = 1 ]; then exporter KILL TERM & EXPORTERS=$!; else FETCH='ibscope-exporter --once'; fi
soak_watch sizes $O/sizes /sys/fs/bpf/ibscope & SIZES=$!
soak_watch scrape $O/scrapes "$FETCH" > $O/scrapes.out & SCRAPES=$!
hotplug & HOTPLUG=$!

sampling() {    # N: until that life has begun
    for i in $(seq 600); do
        sed -n "/^== life $1\$/,\$p" $O/collector.err | grep -q 'kernel memory' && return
        sleep 0.1
    done
    fail no collector
}
calm() {        # until no CPU comes or goes
    touch /tmp/calm
    while [ ! -e /tmp/is-calm ]; do sleep 0.1; done
    sleep 1.5
}
life() {        # NUMBER SECONDS PERIOD CALM ACTIVITY END
    [ $4 = 1 ] && calm
    printf 'period = %d\ngrace = 5\nmax-overhead = off\nnmi-cost = 1us\nmax-bpf-time = off\n' $3 > /tmp/conf
    echo "== life $1" >> $O/collector.err
    if [ "$LAST" = hup ]; then
        kill -HUP $COLLECTOR
    else
        ibscope serve --config /tmp/conf 2>> $O/collector.err & COLLECTOR=$!
    fi
    LAST=$6
    if [ $6 = early ]; then
        sleep $2
        step early $1
        kill -KILL $COLLECTOR
        wait $COLLECTOR
        return
    fi
    sampling $1
    step life $1
    sleep 2
    case $5 in
    clock) step clock $CLOCK; date -s @$(($(date +%s) + CLOCK)); CLOCK=$((- CLOCK));;
    share) step share $1; soak_load share 2.5 $OTHERS_PERIOD $O/shared || fail share; step shared;;
    suspend)
        touch /tmp/calm     # a CPU that was offline before stays so
        while [ ! -e /tmp/is-calm ]; do sleep 0.1; done
        sleep 1.5
        step suspend $1
        # all but the sleep, of 5 s: an alarm that comes before it, on a slow host, would wake nobody
        echo core > /sys/power/pm_test
        echo mem > /sys/power/state || fail suspend
        step resumed
        [ $4 = 1 ] || rm -f /tmp/calm;;
    esac
    sleep $2
    sleep 2
    step $6 $1
    case $6 in
    kill) kill -KILL $COLLECTOR; wait $COLLECTOR;;
    term) kill -TERM $COLLECTOR; wait $COLLECTOR || fail collector $1 exit $?;;
    esac
    rm -f /tmp/calm
}
CLOCK=3600
touch $O/collector.err $O/shared
'''

END = r'''
touch /tmp/end $O/sizes.stop $O/scrapes.stop
wait $HOTPLUG $SIZES $SCRAPES $CHURN $EXPORTERS
run final ibscope ctl --json --by cgroup,src,op snapshot
run last ibscope-exporter --once
step done
'''

Call = collections.namedtuple('Call', 'number seconds period calm activity end')


class Plan:
    """The lives of the collector: when and how each ends, and the events in between."""

    def __init__(self, kernel, seconds, cpus, others_period):
        self.seconds, self.cpus, self.others_period = seconds, cpus, others_period
        self.unprivileged = kernel != '5.10'
        rng = random.Random(1)
        ends = [e for e, (every, least) in EVERY_S.items() if e != 'early'
                for _ in range(max(least, round(seconds / every)))]
        rng.shuffle(ends)
        period = (1000000 if seconds < 600 else 2000000) // 16 * 16
        each = max(3, int(seconds * (1 - FINAL) / len(ends)) - 8)
        early = max(EVERY_S['early'][1], round(seconds / EVERY_S['early'][0]))
        self.lives = []
        activities = ['clock', 'share', '-', 'suspend']     # every fourth is calm
        for i, end in enumerate(ends):
            self.add(each, period, i % 4 == 2, activities[i % 4], end)
            if end != 'hup' and early:
                self.add(round(rng.uniform(0.05, 1.2), 2), period, False, '-', 'early')
                early -= 1
        self.add(int(seconds * FINAL), period, False, '-', 'term')

    def add(self, seconds, period, *more):
        n = len(self.lives)
        self.lives.append(Call(n + 1, seconds, period + 16 * n, *more))

    def script(self):
        calls = ['life %d %s %d %d %s %s' % (c.number, c.seconds, c.period, c.calm, c.activity, c.end)
                 for c in self.lives]
        return '\n'.join(['CPUS=%d CGROUP_MS=%d EXPORTER_S=%d OTHERS_PERIOD=%d UNPRIVILEGED=%d' % (
            self.cpus, CGROUP_MS, max(8, self.seconds // 20),
            self.others_period, self.unprivileged), SCRIPT, *calls, END])
