# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One boot of the rig that runs many commands, and checks of what they printed.

Each run of a profiler has a period of its own, so that the MaxCnt field of a line in the log tells
which run the sample belongs to.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = {  # of programs that are built in another way
    'callers': ['-O1', '-fno-omit-frame-pointer'],
    'callers-nofp': ['-O2', '-fomit-frame-pointer'],
}
QUANTILES = {'p50': 2, 'p90': 10, 'p99': 100}   # name -> samples that it needs
DEFAULT_BY = ('cgroup', 'src', 'op')
FETCH_BY = ('cgroup', 'fetch', 'itlb')

# Workers sleep but while a profiler samples: when it starts, and loads its programs, they would only take
# the host's time.
SETUP = r'''
O=/tmp/out cg=/sys/fs/cgroup
mkdir -p $O
printf '\1' > /tmp/quiet; chmod 666 /tmp/quiet
exec 3>&1 > $O/script.log 2>&1
start() {   # NAME CGROUP CPU [COMM [UID [KIND]]]: $P_NAME, $T_NAME, $C_NAME are its pid, tid, cgroup
    [ -d $cg$2 ] || mkdir -p $cg$2
    work $cg$2 $3 ${4:-work} ${5:-0} $6 &
    p=$!
    while [ ! -e /tmp/ready.$p ]; do sleep 0.02; done
    for t in $(ls /proc/$p/task); do [ $t = $p ] || break; done
    eval "P_$1=$p T_$1=$t C_$1=$(stat -c %i $cg$2)"
    echo "$1 $p $t $2 ${4:-work} ${5:-0}" >> $O/workers
}
run() {     # NAME COMMAND..., for at most RUN_S seconds
    n=$1; shift
    [ $1 != ibscope ] || [ ! -x /usr/bin/work ] || set -- work -quiet $O/$n.err "$@"
    timeout -s KILL ${RUN_S:-60} "$@" > $O/$n.out 2> $O/$n.err
    echo $? > $O/$n.rc
}
quiet() { printf "\\$1" 1<> /tmp/quiet; }      # 1: workers sleep, 0: they work
run_perf() {    # NAME SECONDS OPTION...: perf record, of workers that work only while it samples
    n=$1 s=$2; shift 2
    run $n perf record -q -N -a -o $O/$n.data "$@" -- work -loud sleep $s
}
sampling() {    # NAME: until the run in the background samples; then workers work
    for i in $(seq 100); do grep -q 'ibscope: .* CPUs' $O/$1.err && break; sleep 0.1; done
    quiet 0
}
'''

WORKERS = '''
start d /a/b/c/d 0
start s /s 1
start a /a 1
'''

# Behind all else: what there was.
FACTS = r'''
find $cg -type d -exec stat -c '%i %n' {} + > $O/cgroups
cat $(for i in $(seq 0 $(($(nproc) - 1))); do
    echo /sys/devices/system/cpu/cpu$i/cache/index3/id
done) > $O/l3 2> /dev/null
tar -C $O -c . >&3
'''


def need(condition, what):
    if not condition:
        raise AssertionError(what)


class Skip(Exception):
    pass


class Report:
    def __init__(self, hint=False):
        self.count = collections.Counter()
        self.lock = threading.Lock()
        self.prefix = '# ' if hint else ''

    def line(self, result, where, what, why=''):
        with self.lock:
            self.count[result] += 1
            print(self.prefix + '%-4s %s %s%s' % (result, where, what, ': ' + why if why else ''), flush=True)


# --- what a run of `ibscope hist --json` printed

class Hist:
    """The objects that a run printed, and what is true of each alone."""

    def __init__(self, text, metric='dc_miss_lat', source='ibs'):
        self.lines = [json.loads(x) for x in text.splitlines()]
        need(self.lines, 'no output')
        self.ledger = collections.Counter()
        self.filtered = collections.Counter()
        self.unseen = 0
        for o in self.lines:
            need(o['source'] == source, 'source is %r' % o['source'])
            need(o['metric'] == metric, 'metric is %r' % o['metric'])
            self.add_ledger(o['ledger'])
            for s in o['series']:
                check_series(s)
            samples = sum(s['samples'] for s in o['series'])
            need(samples == o['ledger']['aggregated'],
                 '%d samples in series, %d aggregated' % (samples, o['ledger']['aggregated']))

    def add_ledger(self, l):
        filtered, lost = sum(l['filtered'].values()), sum(l['lost'].values())
        need(l['seen'] == l['aggregated'] + l['forwarded'] + filtered + lost, 'ledger does not balance: %s' % l)
        self.filtered.update(l['filtered'])
        self.ledger.update(seen=l['seen'], aggregated=l['aggregated'], lost=lost)
        if l['unseen'] is None or self.unseen is None:
            self.unseen = None
        else:
            self.unseen += l['unseen']

    def series(self, by):
        """The intervals added up: {labels: oracle.Series}."""
        total = collections.defaultdict(oracle.Series)
        in_flight = collections.Counter()   # ops that the intervals so far have too many of
        for o in self.lines:
            for s in o['series']:
                need(set(s['labels']) == set(by), 'labels are %s' % list(s['labels']))
                t = total[tuple(str(s['labels'][k]) for k in by)]
                t.samples += s['samples']
                t.valid += s['valid']
                fixed = o['period'] is not None and not filtered(o['event'])
                # what is bound to a cgroup may wait for the PMU, where a host is busy
                running = o['running'] if o['ledger']['unseen'] is None and o['running'] else 1
                want = fixed and o['period'] * s['samples'] / running
                if fixed:
                    # of a sample that comes while an interval is read there may be a part, the rest in the next one
                    key = tuple(s['labels'].values())
                    in_flight[key] += (s['estimated_ops'] or 0) - want
                    part = (len(self.lines) > 1) * o['cpus'] * o['period']
                    need(abs(in_flight[key]) <= part + (running < 1) * (1 + want / 10000),
                         'estimated_ops of %s: %s' % (s, want))
                known = s['estimated_ops'] is not None or (s['miss_cycles'] is not None and s['sum'])
                need(not filtered(o['event']) or known == (o['ledger']['dropped_by_hardware'] is not None),
                     'estimates under a hardware filter: %s' % s)
                t.sum += s['sum']
                t.buckets.update(dict(s['buckets']))
                if not fixed:
                    t.misses = None
                elif t.misses is not None:
                    t.misses['hitm'] += round((s['hitm_cycles'] or 0) * running / o['period'])
                    t.misses.update({'open_n': s['open_requests']['samples'], 'open': s['open_requests']['sum']}
                                    if s['open_requests'] else {})
        return dict(total)


Total = collections.namedtuple('Total', 'ops tagged retired filtered valid')


def filtered(event):
    """Does the hardware drop ops before it takes a sample?"""
    return re.search('l3missonly=1|ldlat=|strmst=1|fetchlat=', event) or (
        event[-1] in 'uk' and 'swfilt=1' not in event)


def check_series(s):
    need(s['samples'] > 0, 'a series without samples: %s' % s)
    need(s['valid'] == sum(n for _, n in s['buckets']), 'valid is not the buckets: %s' % s)
    edges = [edge for edge, _ in s['buckets']]
    need(set(edges) <= set(oracle.EDGES), 'not an edge: %s' % (set(edges) - set(oracle.EDGES)))
    need(edges == sorted(set(edges)) and all(n > 0 for _, n in s['buckets']), 'buckets: %s' % s)
    for name, least in QUANTILES.items():
        got, q = s[name], int(name[1:])
        if s['valid'] < least:
            need(got is None, '%s of %d values is %s' % (name, s['valid'], got))
            continue
        need(got is not None, '%s of %d values is null' % (name, s['valid']))
        below = 0
        for edge, n in s['buckets']:
            below += n
            if below * 100 >= s['valid'] * q:
                break
        need(oracle.lower_edge(edge) <= got <= edge,
             '%s is %s, its bucket is (%d, %d]: %s' % (name, got, oracle.lower_edge(edge), edge, s))


# --- who ran where

Worker = collections.namedtuple('Worker', 'pid tid cgroup comm uid')


class Facts:
    """Facts that are not in the log: names of cgroups and workers, parents of processes."""

    def __init__(self, workers, path, children):
        """workers: {name: Worker}; path: {cgroup id: path}; children: {pid: its children}."""
        self.workers, self.path, self.children = workers, path, children
        self.ids = {p: i for i, p in path.items()}
        self.threads = {}
        for w in workers.values():
            for pid in [w.pid] + children.get(w.pid, []):
                self.threads[pid] = (w.comm, w.uid)
            self.threads[w.tid] = (w.comm[:12] + '.t', w.uid)

    def complete(self, s):
        """Of others than workers no name is known, and they are root's."""
        s.comm, s.uid = self.threads.get(s.tid, ('?', 0))

    def below(self, *paths):
        """The ids of these cgroups and of all below."""
        return {i for i, p in self.path.items() for top in paths
                if p == top or p.startswith(top.rstrip('/') + '/')}

    def matching(self, pattern):
        """Paths that a pattern names: as fnmatch name by name, "**" for any number of names."""
        def match(want, have):
            if not want:
                return not have
            if want[0] == '**':
                return any(match(want[1:], have[i:]) for i in range(len(have) + 1))
            return bool(have) and fnmatch.fnmatchcase(have[0], want[0]) and match(want[1:], have[1:])

        names = pattern.strip('/').split('/')
        return [p for p in self.ids if match(names, [x for x in p.split('/') if x])]

    def family(self, pids):
        """They and their children."""
        return set(pids) | {c for p in pids for c in self.children.get(p, [])}


def merged(series):
    total = {}
    for key, v in series:
        total.setdefault(key, oracle.Series()).merge(v)
    return total


# --- one boot

class Guest:
    def __init__(self, kernel, gen, work, report, name='', smp=2, workers=True, rig=(), nodes=0):
        self.kernel, self.gen, self.work, self.report = kernel, gen, work, report
        self.where, self.name = '%s:%s' % (kernel, gen), name
        self.cpu = oracle.GENS.get(gen)
        self.dir = os.path.join(work, self.where.replace(':', '-') + name)
        self.out = os.path.join(self.dir, 'out')
        self.smp, self.rig = smp, list(rig)     # rig: more options of run.sh
        self.nodes = nodes                      # equal shares of 1 GiB, and of CPUs
        if nodes:
            self.rig += ['--nodes', str(nodes), '--mem', '1024']
        self.script, self.checks, self.periods = [SETUP] + [WORKERS] * workers, [], []
        self.runs, self.count, self.failed = collections.Counter(), collections.Counter(), []
        self.timeout, self.env = 1800, {}       # env: knobs of the rig

    def do(self, script):
        self.script.append(script)

    def check(self, what, function, *args):
        self.checks.append((what, function, args))

    def new_period(self, about):
        """A multiple of 16 that no other run of this boot has."""
        self.periods.append(about // 16 * 16 + 16 * (len(self.periods) + 1))
        return self.periods[-1]

    def read(self, name):
        with open(os.path.join(self.out, name), errors='replace') as f:
            return f.read()

    def total(self, period, ctl=0, engine='op'):
        """What the emulated hardware counted while it sampled with a period, and these bits of the control
        MSR; for guests with --pmu."""
        sums, extended = [0] * len(Total._fields), 0x7f0000 * (engine == 'op')
        with open(os.path.join(self.dir, 'log')) as f:
            for line in f:
                if line.startswith('#total,%s,' % engine):
                    has, *counts = line.split(',')[3:]
                    has = int(has, 16)
                    if has & ctl == ctl and ((has & 0xffff) | (has >> 4 & extended)) << 4 == period:
                        sums = [a + int(b) for a, b in zip(sums, counts)]
        return Total(*sums)

    def status(self, name):
        return int(self.read(name + '.rc'))

    def stdout(self, name):
        """What a run printed that had to succeed."""
        status = self.status(name)
        need(status == 0, 'exit %d: %s' % (status, self.read(name + '.err').strip()))
        return self.read(name + '.out')

    def boot(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(os.path.join(self.dir, 'overlay'))
        with open(os.path.join(self.dir, 'overlay/vmtest.sh'), 'w') as f:
            f.write('\n'.join(self.script + [FACTS]))
        tar = os.path.join(self.dir, 'out.tar')
        cmd = [os.path.join(HERE, 'rig/run.sh'), '--kernel', self.kernel, '--gen', self.gen,
               '--smp', str(self.smp), *self.rig,
               '--overlay', os.path.join(self.work, 'overlay'),
               '--overlay', os.path.join(self.dir, 'overlay'),
               '--console', os.path.join(self.dir, 'console'), '--timeout', str(self.timeout),
               '--log', os.path.join(self.dir, 'log'), '--', 'sh', '/vmtest.sh']
        for _ in range(2):
            with open(tar, 'wb') as f, open(os.path.join(self.dir, 'rig'), 'w+', errors='replace') as err:
                p = subprocess.Popen(cmd, stdout=f, stderr=err, stdin=subprocess.DEVNULL, env={**os.environ, **self.env})
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.waitstatus_to_exitcode(status)
                err.seek(0)
                said = err.read()
            self.cpu_s = usage.ru_utime + usage.ru_stime
            if p.returncode != 125:
                break
        need(p.returncode == 0, 'run.sh: exit %d: %s' % (p.returncode, said))
        with tarfile.open(tar) as t:
            t.extractall(self.out)

    def check_console(self):
        with open(os.path.join(self.dir, 'console'), errors='replace') as f:
            said = re.search('.*(?:WARNING:|BUG:|Oops|unknown reason|Uhhuh|stall)(?:.*\n){0,30}', f.read())
        need(not said, said and said[0])

    def load(self):
        """What the guest and the hardware say of the boot."""
        path, workers, children = {1: '/'}, {}, collections.defaultdict(list)
        for line in self.read('cgroups').splitlines():
            ident, p = line.split()
            path[int(ident)] = p.replace('/sys/fs/cgroup', '') or '/'
        open(os.path.join(self.out, 'workers'), 'a').close()
        for line in self.read('workers').splitlines():
            name, pid, tid, cgroup, comm, uid = line.split()
            workers[name] = Worker(int(pid), int(tid), cgroup, comm, int(uid))
        if os.path.exists(os.path.join(self.out, 'children')):
            for line in self.read('children').splitlines():
                parent, child = map(int, line.split())
                children[parent].append(child)
        self.facts = Facts(workers, path, dict(children))
        self.l3 = self.read('l3').split()
        log = os.path.join(self.dir, 'log')
        self.lines = oracle.runs(oracle.read_log(log), self.periods)
        self.fetches = oracle.runs(oracle.read_log(log, oracle.Fetch), self.periods)

    def samples(self, period, pmu='ibs_op'):
        """Of the run with this period those that the guest read, oldest first, and how many it
        did not."""
        lines = (self.fetches if pmu == 'ibs_fetch' else self.lines)[period]
        found = [x.sample(self.cpu) for x in lines if not x.dropped]
        for s in found:
            self.facts.complete(s)
            if self.nodes and pmu == 'ibs_op':
                node = s.phys and s.phys // ((1 << 30) // self.nodes)
                s.node = s.vcpu * self.nodes // self.smp
                s.mem_node = node if node is not None and node < self.nodes else 'unknown'
                s.distance = 'unknown' if s.mem_node == 'unknown' else 10 + 11 * abs(s.node - node)
        return found, len(lines) - len(found)

    def tell(self, result, what, why=''):
        self.count[result] += 1
        if result == 'FAIL':
            self.failed.append(what)
        self.report.line(result, self.where, what, why)

    def run_again(self):
        """Alone, after it failed beside others: a hint, which changes no count."""
        first, kept = ', '.join(self.failed), self.runs
        self.report, self.runs, self.count, self.failed = Report(True), collections.Counter(), collections.Counter(), []
        self.run()
        self.runs = kept
        print('# %s%s %s (failed before: %s)' % (self.where, self.name, 'fails alone too: ' + ', '.join(self.failed)
                                               if self.failed else 'passes alone', first), flush=True)

    def run(self):
        start = time.monotonic()
        try:
            self.boot()
            if self.cpu:
                self.load()
        except AssertionError as e:
            self.tell('FAIL', 'boot', str(e))
            return
        booted, before = time.monotonic(), time.thread_time()
        for what, function, args in self.checks:
            try:
                self.tell('ok', what, function(*args) or '')
            except Skip as e:
                self.tell('skip', what, str(e))
            except AssertionError as e:
                self.tell('FAIL', what, str(e))
            except Exception as e:      # a wrong output is a failed check, not the end of the test
                self.tell('FAIL', what, repr(e))
        print('#    %s%s: %.0f s, %.0f s of CPU time; its checks: %.0f s, %.0f s' % (
            self.where, self.name, booted - start, self.cpu_s, time.monotonic() - booted,
            time.thread_time() - before), flush=True)
        self.lines = self.fetches = None

    # --- a run of ibscope hist that is compared with the log

    def hist(self, name, options='', event='ibs_op//', about=100000, window='0.5 1', by=None,
             metric=None, title=None, meanwhile='', command='', plan='sched', **expected):
        """Run ibscope hist, of a command perhaps, and while it samples the script `meanwhile`;
        plan: of --plan, unless the options have one; expected: check_hist()."""
        period = self.new_period(about)
        options = [options] if options else []
        options += ['--plan ' + plan] if '--plan' not in ''.join(options) else []
        options += ['--by ' + ','.join(by)] if by else []
        options += ['--metric ' + metric] if metric else []
        command = ' '.join(['-e', event] + options + [window, '-- ' * bool(command) + command])
        # few groups, as the emulator takes long to fill memory with zeros
        run = 'run %s ibscope hist --json --max-groups 256 -c %d %s' % (name, period, command)
        if meanwhile:
            run += ' & H=$!; sampling %s\n%s\nwait $H' % (name, meanwhile)
        self.do(run)
        self.check(title or '%s: %s' % (name, command), self.check_hist, name, period,
                   by, metric, window, expected, event.split('/')[0])
        return period

    def label(self, key, value):
        """As the program prints it. Names of others than workers are not known to the log."""
        if key == 'cgroup':
            return self.facts.path.get(value, '?')
        if key == 'ccx':        # numbered in the order of their first CPU
            return str(list(dict.fromkeys(self.l3)).index(self.l3[value]) if self.l3 else 0)
        return str(value)

    def known(self, by, key):
        """The program's labels, as far as the log can know them."""
        names = {comm for comm, _ in self.facts.threads.values()}
        return tuple('?' if b == 'comm' and k not in names else k for b, k in zip(by, key))

    def check_hist(self, name, period, by, metric, window, expected, pmu='ibs_op'):
        """expected: source, filters() -> oracle.Filter, rows(list) -> list, unseen: exact|any|null, ctl,
        due: periods that may be counted without a sample,
        all: that nothing is rejected is right too, also(accepted samples, series) -> text: what
        else is to hold."""
        by = by or (FETCH_BY if pmu == 'ibs_fetch' else DEFAULT_BY)
        metric = metric or ('fetch_lat' if pmu == 'ibs_fetch' else 'dc_miss_lat')
        got = Hist('\n'.join(x for x in self.stdout(name).splitlines() if '"event":"%s/' % pmu in x), metric,
                   expected.get('source', 'ibs'))
        for o in got.lines:
            need(o['period'] == period, 'period is %d' % o['period'])
        if len(window.split()) != 1:    # else it runs until it is interrupted
            count = int((window.split() + ['1', '1'])[1])
            need(len(got.lines) == count, '%d lines' % len(got.lines))
        delivered, dropped = self.samples(period, pmu)
        need(delivered, 'the hardware delivered no sample')
        mask = expected.get('ctl', 0)
        need(all(s.ctl & mask == mask for s in delivered), 'the control MSR lacks %#x' % mask)
        rows = expected.get('rows', lambda x: x)(delivered)
        filters = expected.get('filters', oracle.Filter)()
        rejected, want = oracle.expect(rows, by, metric, filters)
        want = merged((tuple(self.label(b, k) for b, k in zip(by, key)), v)
                      for key, v in want.items())
        need(all(s.cgroup is not None for s in rows), 'the log does not know the task')
        need(got.ledger['seen'] == len(rows), 'seen %d (unseen %s), the log has %d, and %d dropped unread' % (
            got.ledger['seen'], got.unseen, len(rows), dropped))
        need(+got.filtered == rejected,
             'filtered %s, expected %s' % (dict(+got.filtered), dict(rejected)))
        need(got.ledger['lost'] == 0, 'lost %d' % got.ledger['lost'])
        series = merged((self.known(by, key), v) for key, v in got.series(by).items())
        for key in sorted(set(want) | set(series)):
            need(series.get(key) == want.get(key),
                 '%s: got %r; expected %r' % (' '.join(key), series.get(key), want.get(key)))
        unseen = expected.get('unseen', 'exact')
        if unseen == 'null':
            need(got.unseen is None, 'unseen is %s' % got.unseen)
        elif unseen == 'exact' or got.unseen is not None:
            discarded = len(delivered) - len(rows)
            explained = dropped + discarded + expected.get('due', 0)
            need(got.unseen is not None, 'unseen is null: %s' % self.read(name + '.err'))
            need(discarded <= got.unseen <= explained, 'unseen %d, explained %d to %d' % (
                got.unseen, discarded, explained))
        need(rejected or 'filters' not in expected or expected.get('all'),
             'the filter had nothing to reject')
        self.runs['rejected'] += bool(rejected)
        self.runs['accepted'] += bool(want)
        self.runs['both'] += bool(rejected and want)
        self.runs.update('rejected by ' + r for r in rejected)
        more = ''
        if 'also' in expected:
            more = '; ' + expected['also']([s for s in rows if not filters.reason(s, metric)], want)
        return '%d samples, %d series, rejected %s, unseen %s%s' % (
            len(rows), len(want), dict(rejected), got.unseen, more)


# --- all of them

def run_pair(doc, make_guest, pair='6.12:zen4'):
    """What a script does that boots one guest, made by make_guest(kernel, gen, work directory, report)."""
    ap = options(doc.splitlines()[0])
    ap.add_argument('pair', nargs='?', metavar='KERNEL:GEN', default=pair)
    args = ap.parse_args()
    return run_guests(args, lambda work, report: [make_guest(*args.pair.split(':'), work, report)])


def run_pairs(ap, pairs, name, scenarios):
    """What a script does that boots guests of one CPU whose clock counts instructions, each with scenarios(guest)."""
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=pairs)
    args = ap.parse_args()

    def make(work, report):
        guests = [Guest(*pair.split(':'), work, report, name, smp=1, workers=False, rig=['--pmu', '--icount']) for pair in args.pairs]
        for g in guests:
            scenarios(g)
        return guests

    return run_guests(args, make)


def run_guests(args, make, programs=('work',), tools=(), again=0):
    """Boot the guests that make(work directory, report) returns; the exit status.

    Guests have the programs whose sources are here and, as mkoverlay.sh takes them, `tools`. If no more than
    `again` guests fail, those run once more, each alone, which only prints whether they pass then."""
    start = time.monotonic()
    work = args.keep or tempfile.mkdtemp(prefix='vmtest.')
    os.makedirs(work, exist_ok=True)
    report = Report()
    try:
        for name in programs:
            subprocess.run(['cc', '-static', *FLAGS.get(name, ['-O1']), '-pthread', '-o', os.path.join(work, name),
                            os.path.join(HERE, name.split('-')[0] + '.c')], check=True)
        for name in 'ibs_decode', 'trace_cat':
            shutil.copy(os.path.join(args.build, 'tests/unit', name), work)
        shutil.rmtree(os.path.join(work, 'overlay'), ignore_errors=True)
        subprocess.run([os.path.join(HERE, 'rig/mkoverlay.sh'), '-o', os.path.join(work, 'overlay'),
                        'perf:/usr/bin/perf', 'bpftool:/usr/bin/bpftool',
                        os.path.join(args.build, 'ibscope') + ':/usr/bin/ibscope', *tools,
                        *[os.path.join(work, x) + ':/usr/bin/' + x for x in programs]], check=True)
        guests = make(work, report)
        with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
            list(pool.map(Guest.run, guests))
        failed = [g for g in guests if g.failed]
        for g in failed if len(failed) <= again else []:
            g.run_again()
    finally:
        if not args.keep:
            shutil.rmtree(work)
    runs = sum((g.runs for g in guests), collections.Counter())
    for what, n in sorted(runs.items()):
        print('# %5d runs: %s' % (n, what))
    n = report.count
    print('# %.0f s' % (time.monotonic() - start))
    print('%d passed, %d failed, %d skipped' % (n['ok'], n['FAIL'], n['skip']))
    return 1 if n['FAIL'] or not n['ok'] else 0


def options(description):
    ap = argparse.ArgumentParser(description=description)
    ap.add_argument('--build', default='build', help='where make put the programs (default build)')
    ap.add_argument('--keep', metavar='DIR', help='keep what the guests wrote there')
    ap.add_argument('-j', type=int, default=min(os.cpu_count() + 1, 8),
                    help='guests at a time (default %(default)s: they wait, too)')
    ap.add_argument('--random', type=int, default=0, metavar='N',
                    help='N random selections a kernel (default 0)')
    ap.add_argument('--seed', type=int, default=1, help='of those (default 1)')
    return ap
