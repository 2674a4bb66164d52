# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What soak.py has happen in the guest, and which differences from the log that explains."""
import random
import re

# A short soak has less of everything, but something of each.
KILLS_S, TERMS_S, HUPS_S = 90, 300, 300     # one of each so many seconds
CGROUPS_S = 0.36
FINAL = 0.25        # the last life is that part of the whole

SCRIPT = r'''
mkdir -p $cg/load $cg/churn
echo 'nobody:x:65534:65534:nobody:/:/bin/false' >> /etc/passwd
now() { cut -d' ' -f1 /proc/uptime; }
step() { echo "$(now) $*" >> $O/steps; }
fail() { step failed "$*"; }
cpu() { echo $2 > /sys/devices/system/cpu/cpu$1/online || fail cpu $1 $2; }

for c in $(seq 0 $((CPUS - 1))); do
    mkdir $cg/load/$c
    soak_load cpu $cg/load/$c $c 40 &
done
soak_load churn $cg/churn $CGROUPS $S > $O/churn 2>&1 & CHURN=$!

hotplug() {     # all but the first CPU, each for another while
    c=0 away=
    while [ ! -e /tmp/end ]; do
        if [ -e /tmp/calm ]; then touch /tmp/is-calm; sleep 0.3; continue; fi
        rm -f /tmp/is-calm
        c=$((c % (CPUS - 1) + 1))
        set -- 0.1 0.4 1.2 2.6
        shift $((c % 4))
        step offline $c
        cpu $c 0
        sleep $1
        cpu $c 1
        step online $c
        sleep 1.1
    done
}
exporter() {
    while [ ! -e /tmp/end ]; do
        ibscope-exporter 2>> $O/exporter.err & E=$!
        step exporter $E
        for i in $(seq $EXPORTER_S); do [ -e /tmp/end ] || sleep 1; done
        kill -$1 $E
        wait $E
        set -- $2 $1
    done
}
FETCH='wget -q -O - http://127.0.0.1:9950/metrics'
if [ $UNPRIVILEGED = 1 ]; then exporter KILL TERM & else FETCH='ibscope-exporter --once'; fi
soak_watch sizes $O/sizes /sys/fs/bpf/ibscope & SIZES=$!
soak_watch scrape $O/scrapes "$FETCH" > $O/scrapes.out & SCRAPES=$!
hotplug & HOTPLUG=$!

sampling() {    # N: until the collector has begun for the Nth time
    for i in $(seq 600); do
        [ $(grep -c 'kernel memory' $O/collector.err) -ge $1 ] && return
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
    printf 'period = %d\ngrace = 5\n' $3 > /tmp/conf
    if [ "$LAST" = hup ]; then
        kill -HUP $COLLECTOR
    else
        ibscope serve --config /tmp/conf 2>> $O/collector.err & COLLECTOR=$!
    fi
    sampling $1
    step life $1
    sleep 2
    case $5 in
    clock) step clock $CLOCK; date -s @$(($(date +%s) + CLOCK)); CLOCK=$((- CLOCK));;
    share) step share $1; soak_load share 2.5 $OTHERS_PERIOD $O/shared || fail share; step shared;;
    esac
    sleep $(($2 - 4))
    sleep 2
    step $6 $1
    case $6 in
    kill) kill -KILL $COLLECTOR; wait $COLLECTOR;;
    term) kill -TERM $COLLECTOR; wait $COLLECTOR || fail collector $1 exit $?;;
    esac
    LAST=$6
    rm -f /tmp/calm
}
CLOCK=3600
touch $O/collector.err $O/shared
'''

END = r'''
touch /tmp/end $O/sizes.stop $O/scrapes.stop
wait $HOTPLUG $SIZES $SCRAPES $CHURN
run final ibscope ctl --json --by cgroup,src,op snapshot
run last ibscope-exporter --once
step done
'''


class Plan:
    """When the collector ends, and how, and what happens meanwhile."""

    def __init__(self, kernel, seconds, cpus, others_period):
        self.seconds, self.cpus, self.others_period = seconds, cpus, others_period
        self.links_pinned = kernel != '5.10'
        self.unprivileged = kernel != '5.10'
        count = lambda every, least: max(least, round(seconds / every))
        ends = ['kill'] * count(KILLS_S, 3) + ['term'] * count(TERMS_S, 1) + ['hup'] * count(HUPS_S, 2)
        random.Random(1).shuffle(ends)
        self.base = 1000000 if seconds < 600 else 2000000
        each = max(6, int(seconds * (1 - FINAL) / len(ends)) - 3)
        self.lives, self.calls = [], []
        for i, end in enumerate(ends + ['term']):
            calm, activity = i % 4 == 3, {1: 'clock', 2: 'share'}.get(i % 3, '-')
            if calm:
                activity = '-'
            final = i == len(ends)
            period = self.base // 16 * 16 + 16 * i
            self.lives.append((i + 1, end, calm, period))
            self.calls.append('life %d %d %d %d %s %s' % (
                i + 1, int(seconds * FINAL) if final else each, period, calm, '-' if final else activity, end))

    def script(self):
        return '\n'.join(['CPUS=%d S=%d CGROUPS=%d EXPORTER_S=%d OTHERS_PERIOD=%d UNPRIVILEGED=%d' % (
            self.cpus, self.seconds, self.seconds / CGROUPS_S, max(8, self.seconds // 20),
            self.others_period, self.unprivileged), SCRIPT, *self.calls, END])

    def slack(self, life):
        """Least and most that may be delivered of a life beyond seen and unseen."""
        most = 0
        if life.end == 'kill':
            # unseen since the last tick of a collector is known to nobody; between the end of its
            # link and that of the event samples reach no program
            most += self.cpus * 4
        if not life.calm:
            most += 8
        return 0, most

    def offline_within(self, steps):
        """CPUs that went while a collector certainly watched."""
        n, since, at = 0, None, []
        for line in steps.splitlines():
            time, what = line.split()[:2]
            time = float(time)
            if what == 'life':
                since = time
            elif what in ('kill', 'term', 'hup'):
                n += sum(since + 1 < t < time - 3 for t in at)
                since, at = None, []
            elif what == 'offline' and since is not None:
                at.append(time)
        return n
