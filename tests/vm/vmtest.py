#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""vmtest.py [--build DIR] [KERNEL:GEN...]: ibscope on the kernel's own IBS driver, on emulated
hardware, against the hardware's own list of delivered samples (rig/README.md).

One boot a pair runs everything. Each run of a profiler in it has a period of its own, so
that the MaxCnt field of a line in the log tells which run the sample belongs to.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import dumps
import oracle
import records

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = ('5.10', '6.1', '6.12', '7.2')
ZENS = ('zen2', 'zen3', 'zen4', 'zen5')
MATRIX = ['%s:%s' % (k, g) for k in KERNELS for g in ZENS] + ['7.2:zen6']
QUANTILES = {'p50': 2, 'p90': 10, 'p99': 100}   # name -> samples that it needs
DEFAULT_BY = ('cgroup', 'src', 'op')

SETUP = r'''
O=/tmp/out cg=/sys/fs/cgroup
mkdir -p $O $cg/a/b/c/d $cg/s
exec 3>&1 > $O/script.log 2>&1
for w in a/b/c/d:0 s:1 a:1; do
    work $cg/${w%:*} ${w#*:} &
    echo "$! /${w%:*}"
done > $O/pids
read PA x < $O/pids
find $cg -type d -exec stat -c '%i %n' {} + > $O/cgroups
run() {     # NAME COMMAND...
    n=$1; shift
    read t x < /proc/uptime; echo $t $n >> $O/times
    timeout -s KILL 60 "$@" > $O/$n.out 2> $O/$n.err
    echo $? > $O/$n.rc
}
'''


def need(condition, what):
    if not condition:
        raise AssertionError(what)


class Skip(Exception):
    pass


class Report:
    def __init__(self):
        self.count = collections.Counter()
        self.lock = threading.Lock()

    def line(self, result, where, what, why=''):
        with self.lock:
            self.count[result] += 1
            print('%-4s %s %s%s' % (result, where, what, ': ' + why if why else ''), flush=True)


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
        for o in self.lines:
            for s in o['series']:
                need(set(s['labels']) == set(by), 'labels are %s' % list(s['labels']))
                t = total[tuple(str(s['labels'][k]) for k in by)]
                t.samples += s['samples']
                t.valid += s['valid']
                t.sum += s['sum']
                t.buckets.update(dict(s['buckets']))
        return dict(total)


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


# --- one boot

class Guest:
    def __init__(self, kernel, gen, work, report):
        self.kernel, self.gen, self.work, self.report = kernel, gen, work, report
        self.where = '%s:%s' % (kernel, gen)
        self.cpu = oracle.GENS.get(gen)
        self.dir = os.path.join(work, self.where.replace(':', '-'))
        self.out = os.path.join(self.dir, 'out')
        self.script, self.checks, self.period = [SETUP], [], 0

    def do(self, script):
        self.script.append(script)

    def check(self, what, function, *args):
        self.checks.append((what, function, args))

    def new_period(self, about):
        """A multiple of 16 that no other run of this boot has."""
        self.period += 16
        return about // 16 * 16 + self.period

    def read(self, name):
        with open(os.path.join(self.out, name), errors='replace') as f:
            return f.read()

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
            f.write('\n'.join(self.script + ['tar -C $O -c . >&3\n']))
        tar = os.path.join(self.dir, 'out.tar')
        cmd = [os.path.join(HERE, 'rig/run.sh'), '--kernel', self.kernel, '--gen', self.gen,
               '--overlay', os.path.join(self.work, 'overlay'),
               '--overlay', os.path.join(self.dir, 'overlay'),
               '--console', os.path.join(self.dir, 'console'), '--timeout', '400',
               '--log', os.path.join(self.dir, 'log'), '--', 'sh', '/vmtest.sh']
        for _ in range(2):
            with open(tar, 'wb') as f:
                r = subprocess.run(cmd, stdout=f, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            if r.returncode != 125:
                break
        said = r.stderr.decode(errors='replace')
        need(r.returncode == 0, 'run.sh: exit %d: %s' % (r.returncode, said))
        with tarfile.open(tar) as t:
            t.extractall(self.out)

    def check_console(self):
        with open(os.path.join(self.dir, 'console'), errors='replace') as f:
            said = re.findall('.*(?:WARNING:|BUG:|Oops|unknown reason|Uhhuh|stall).*', f.read())
        need(not said, said)

    def load(self):
        """What the guest and the hardware say of the boot."""
        self.path = {1: '/'}
        for line in self.read('cgroups').splitlines():
            ident, path = line.split()
            self.path[int(ident)] = path.replace('/sys/fs/cgroup', '') or '/'
        self.pid = {path: int(pid) for pid, path in map(str.split, self.read('pids').splitlines())}
        self.rows = oracle.runs(oracle.read_log(os.path.join(self.dir, 'log'), self.cpu))

    def run(self):
        start = time.monotonic()
        try:
            self.boot()
            if self.cpu:
                self.load()
        except AssertionError as e:
            self.report.line('FAIL', self.where, 'boot', str(e))
            return
        booted = time.monotonic()
        for what, function, args in self.checks:
            try:
                self.report.line('ok', self.where, what, function(*args) or '')
            except Skip as e:
                self.report.line('skip', self.where, what, str(e))
            except AssertionError as e:
                self.report.line('FAIL', self.where, what, str(e))
            except Exception as e:      # a wrong output is a failed check, not the end of the test
                self.report.line('FAIL', self.where, what, repr(e))
        print('#    %s boot %.0f s, checks %.0f s' % (
            self.where, booted - start, time.monotonic() - booted), flush=True)

    # --- a run of ibscope hist that is compared with the log

    def hist(self, name, options='', event='ibs_op//', about=100000, window='0.5 1', by=None,
             metric=None, **expected):
        period = self.new_period(about)
        options = [options] if options else []
        options += ['--by ' + ','.join(by)] if by else []
        options += ['--metric ' + metric] if metric else []
        command = ' '.join(['-e', event] + options + [window])
        self.do('run %s ibscope hist --json -c %d %s' % (name, period, command))
        self.check('%s: %s' % (name, command), self.check_hist, name, period, by or DEFAULT_BY,
                   metric or 'dc_miss_lat', window, expected)

    def check_hist(self, name, period, by, metric, window, expected):
        """expected: filters() -> oracle.Filter, rows(list) -> list, unseen: exact|any|null, ctl."""
        got = Hist(self.stdout(name), metric)
        for o in got.lines:
            need(o['period'] == period, 'period is %d' % o['period'])
        count = int(window.split()[1])
        need(len(got.lines) == count, '%d lines' % len(got.lines))
        delivered = [s for s in self.rows[period] if not s.dropped]
        dropped = len(self.rows[period]) - len(delivered)
        need(delivered, 'the hardware delivered no sample')
        mask = expected.get('ctl', 0)
        need(all(s.ctl & mask == mask for s in delivered), 'the control MSR lacks %#x' % mask)
        rows = expected.get('rows', lambda x: x)(delivered)
        filters = expected.get('filters', oracle.Filter)()
        rejected, want = oracle.expect(rows, by, metric, filters)
        want = {tuple(self.path.get(k, '?') if b == 'cgroup' else str(k) for b, k in zip(by, key)): v
                for key, v in want.items()}
        need(all(s.cgroup is not None for s in rows), 'the log does not know the task')
        need(got.ledger['seen'] == len(rows), 'seen %d (unseen %s), the log has %d, and %d dropped unread' % (
            got.ledger['seen'], got.unseen, len(rows), dropped))
        need(+got.filtered == rejected,
             'filtered %s, expected %s' % (dict(+got.filtered), dict(rejected)))
        need(got.ledger['lost'] == 0, 'lost %d' % got.ledger['lost'])
        series = got.series(by)
        for key in sorted(set(want) | set(series)):
            need(series.get(key) == want.get(key),
                 '%s: got %r; expected %r' % (' '.join(key), series.get(key), want.get(key)))
        unseen = expected.get('unseen', 'exact')
        if unseen == 'null':
            need(got.unseen is None, 'unseen is %s' % got.unseen)
        elif unseen == 'exact' or got.unseen is not None:
            explained = dropped + len(delivered) - len(rows)
            need(got.unseen is not None, 'unseen is null: %s' % self.read(name + '.err'))
            need(0 <= got.unseen <= explained, 'unseen %d, explained %d' % (got.unseen, explained))
        need(rejected if 'filters' in expected else True, 'the filter had nothing to reject')
        return '%d samples, %d series, rejected %s, unseen %s' % (
            len(rows), len(want), dict(rejected), got.unseen)

    # --- scenarios

    def scenarios(self):
        self.check('the kernel did not complain', self.check_console)
        zen4 = self.cpu.zen4
        self.do('run version ibscope --version')
        self.do('run before bpftool prog show -j')

        # a: windows
        self.hist('intervals', window='1 3')
        self.hist('long', window='3 1')

        # b: metrics, events
        self.hist('by-pid', by=('pid', 'src'), metric='tlb_refill_lat')
        self.hist('by-cpu', '-C 1', by=('cpu', 'op'), metric='comp_to_ret')
        self.check('by-cpu: only CPU 1 sampled', self.check_cpus, {1})
        self.hist('uops', event='ibs_op/cnt_ctl=1/', ctl=oracle.CNT_CTL)
        if zen4 and self.kernel != '5.10':
            self.hist('l3missonly', event='ibs_op/l3missonly=1/', about=50000, window='1 1',
                      ctl=oracle.L3MISSONLY, unseen='any')
        else:
            self.bad('l3missonly', '-e ibs_op/l3missonly=1/', None, 'l3missonly',
                     'kernel|5.19' if zen4 else 'Zen 4|CPU|processor|hardware')
        if self.gen in ('zen5', 'zen6') and self.kernel == '7.2':
            self.hist('ldlat', event='ibs_op/ldlat=256/', about=20000, window='2 1',
                      ctl=oracle.LDLAT, unseen='any',
                      rows=lambda rows: [s for s in rows if not s.below_ldlat(256)])
        else:
            self.bad('ldlat', '-e ibs_op/ldlat=256/', None, 'ldlat', 'kernel|6.15|Zen 5|CPU|hardware')
        self.do('run sim ibscope hist --source sim --json 0.5 1')
        self.check('sim: labelled', self.check_sim)

        # c: filters
        below_a = lambda: {i for i, p in self.path.items() if p == '/a' or p.startswith('/a/')}
        below_s = lambda: {i for i, p in self.path.items() if p == '/s'}
        self.hist('filter-pid', '-p $PA', filters=lambda: oracle.Filter(pid={self.pid['/a/b/c/d']}))
        self.hist('filter-cgroup', '--cgroup /a', filters=lambda: oracle.Filter(cgroup=below_a()))
        self.hist('filter-op', '--op load,locked', filters=lambda: oracle.Filter(op={'load', 'locked'}))
        self.hist('filter-src', '--src dram,l2', filters=lambda: oracle.Filter(src={'dram', 'l2'}))
        self.hist('filter-lat', '--min-lat 100 --max-lat 900',
                  filters=lambda: oracle.Filter(latency=(100, 900)))
        self.hist('filter-cgroup-lat', '--cgroup /a:200,/s --min-lat 50',
                  filters=lambda: oracle.Filter(cgroup=below_a() | below_s(), latency=lambda s: (
                      200 if s.cgroup in below_a() else 50, 65535)))
        self.hist('filter-tag', '--min-lat 40', metric='tag_to_ret',
                  filters=lambda: oracle.Filter(latency=(40, 65535)))
        self.hist('filter-all', '--cgroup /a -p $PA --op load --src dram,l3,local-cache --min-lat 20',
                  filters=lambda: oracle.Filter({self.pid['/a/b/c/d']}, below_a(), (20, 65535),
                                                {'load'}, {'dram', 'l3', 'local-cache'}))

        records.scenarios(self)

        # d: perf decodes
        period = self.new_period(300000)
        self.do('run perf perf record -q -e ibs_op// -c %d -a --raw-samples -o $O/perf.data -- '
                'sleep 1' % period)
        self.check('decode: same as perf', self.check_decode)
        dumps.scenario(self)

        # e: refusals
        usage = 2
        self.bad('term', '-e ibs_op/bogus=1/', usage, 'bogus', 'cnt_ctl')
        self.bad('pmu', '-e ibs_bogus//', usage, 'ibs_bogus', 'ibs_op')
        self.bad('period-0', '-c 0', usage, 'period', r'\d')
        self.bad('period-small', '-c 16', usage, 'period', r'\b(144|0x90)\b')
        self.bad('period-large', '-c 99999999999999984', usage, 'period', r'\d')
        self.bad('period-range', '-c 99999999999999999999', usage, '99999999999999999999', r'\d')
        self.bad('period-16', '-c 100001', usage, 'period', '16')
        self.bad('period-text', '-c 10x', usage, '10x', '')
        self.bad('cpu', '-C 99', None, '99', '0-1')
        self.bad('cpu-range', '-C 9999', None, '9999', '')
        self.bad('source', '--source foo', usage, 'foo', 'sim')
        self.bad('metric', '--metric foo', usage, 'foo', 'dc_miss_lat')
        self.bad('by', '--by foo', usage, 'foo', 'cgroup')
        self.bad('op', '--op foo', usage, 'foo', 'load')
        self.bad('src', '--src foo', usage, 'foo', 'dram')
        self.bad('range', '--min-lat 9 --max-lat 8', usage, 'lat', '')
        self.bad('no-cgroup', '--cgroup /nowhere', None, '/nowhere', '')
        self.bad('interval', '', usage, 'interval', '', window='0 1')
        self.bad('privilege', '', 1, 'ermi', 'CAP_PERFMON|root', prefix='work -u 65534')
        self.do('mkdir -p /tmp/empty; mount --bind /tmp/empty /sys/kernel/btf')
        self.bad('btf', '', 1, 'BTF', 'CONFIG_DEBUG_INFO_BTF|/sys/kernel/btf')
        self.do('umount /sys/kernel/btf')

        # f
        self.do('run doctor ibscope doctor --json')
        self.check('doctor: can_sample', self.check_doctor, True)

        # h, g: what is loaded, what is left
        self.do('bg() {      # NAME COMMAND...: in the background, until it has shown an interval\n'
                '    n=$1; shift; timeout -s KILL 60 "$@" > $O/$n.out 2> $O/$n.err & BG=$!\n'
                '    for i in $(seq 60); do [ -s $O/$n.out ] && break; sleep 0.2; done\n}')
        self.do('bg killed ibscope hist --json -c %d 0.2' % self.new_period(100000))
        self.do('run during bpftool prog show -j; cat /proc/$BG/fdinfo/* > $O/fdinfo')
        self.check('programs', self.check_programs)
        self.do('kill -9 $BG; wait $BG; sleep 0.3; run after bpftool prog show -j')
        self.check('no program is left after SIGKILL', self.check_leftover)
        self.hist('after-kill')
        period = self.new_period(100000)
        self.do('(for i in $(seq 60); do grep -q "on 2 CPUs" $O/sigint.err && break; sleep 0.2; done\n'
                ' sleep 1; kill -INT $(pidof ibscope)) 2> /dev/null &\n'
                'run sigint ibscope hist -c %d --json; wait $!' % period)
        self.check('sigint: prints what it has, exit 0', self.check_hist, 'sigint', period, DEFAULT_BY,
                   'dc_miss_lat', '1 1', {})
        self.do('run closed sh -c "ibscope hist -c %d --json 0.2 9 | head -n 1"' % self.new_period(100000))
        self.check('closed pipe: ends quietly', self.check_closed)

        # the log says little of these: MaxCnt varies
        self.do('perf record -q -e ibs_op// -c %d -a -o /tmp/x -- '
                'sh -c "touch /tmp/sampling; exec sleep 60" > /dev/null 2>&1 & BG=$!\n'
                'for i in $(seq 100); do [ -e /tmp/sampling ] && break; sleep 0.2; done'
                % self.new_period(400000))
        self.do('run shared ibscope hist -c %d --json 1 2; kill $BG; wait $BG' % self.new_period(100000))
        self.check('shared with perf: reported', self.check_partial, 'shared', 'perf|another|shar|multiplex')
        self.do('run freq ibscope hist -F 1000 --json 1 2')
        self.check('freq', self.check_freq)
        period = self.new_period(100000)
        self.do('(sleep 1; echo 0 > /sys/devices/system/cpu/cpu1/online; sleep 1\n'
                ' echo 1 > /sys/devices/system/cpu/cpu1/online) &\n'
                'run hotplug ibscope hist --json -c %d 0.5 10; wait $!' % period)
        self.check('hotplug: a CPU that returns is sampled', self.check_hotplug, period)
        self.do('sysctl -q kernel.perf_cpu_time_max_percent=25\n'
                'sysctl -q kernel.perf_event_max_sample_rate=1000')
        self.do('run throttled ibscope hist -c %d --json 1 2' % self.new_period(20000))
        self.check('throttled: reported', self.check_partial, 'throttled', 'throttl')

    def check_hotplug(self, period):
        lines = [json.loads(x) for x in self.stdout('hotplug').splitlines()]
        need([sum(o[k] for o in lines) for k in ('cpus_went_offline', 'cpus_came_online')] == [1, 1],
             'CPUs that went and came: %s' % lines)
        need([min(o['cpus'] for o in lines), lines[-1]['cpus']] == [1, 2], 'CPUs: %s' % lines)
        late = [s for s in self.rows[period] if s.vcpu == 1][-1].virtual_ns
        first = [s for s in self.rows[period] if s.vcpu == 0][0].virtual_ns
        need(late - first > 3.5e9, 'CPU 1 was not sampled again')
        return self.check_hist('hotplug', period, DEFAULT_BY, 'dc_miss_lat', '0.5 10', {'unseen': 'any'})

    def no_ibs(self):
        self.bad('no-ibs', '', 1, 'IBS', 'bare-metal|sim|doctor')
        self.do('run doctor ibscope doctor --json')
        self.check('doctor: cannot sample', self.check_doctor, False)
        self.do('run sim ibscope hist --source sim --json 0.5 1')
        self.do('run sim-table ibscope hist --source sim 0.5 1')
        self.check('sim: labelled', self.check_sim, True)

    def bad(self, name, options, status, reason, remedy, window='1 1', prefix=''):
        name = 'bad-' + name
        if '-e ' not in options:
            options = '-e ibs_op// ' + options
        if '-c ' not in options:
            options = '-c 100000 ' + options
        self.do('run %s %s ibscope hist --json %s %s' % (name, prefix, options, window))
        self.check('%s: %s' % (name, options), self.check_bad, name, status, reason, remedy)

    def check_bad(self, name, status, reason, remedy):
        err, rc = self.read(name + '.err').strip(), self.status(name)
        said = [x for x in err.splitlines() if x.startswith('ibscope: error:')]
        need(rc == status if status else rc in (1, 2), 'exit %d: %s' % (rc, err))
        need(not self.read(name + '.out'), 'prints to stdout')
        need(len(said) == 1, '%d error lines: %s' % (len(said), err))
        need(re.search(reason, said[0]), 'no reason /%s/: %s' % (reason, err))
        need(re.search(remedy, err), 'no remedy /%s/: %s' % (remedy, err))
        return '%d %s' % (rc, err.replace('\n', ' | '))

    def check_cpus(self, cpus):
        name = 'by-cpu'
        period = json.loads(self.stdout(name).splitlines()[0])['period']
        need({s.vcpu for s in self.rows[period]} == cpus, 'the log has other CPUs')

    def check_sim(self, table=False):
        got = Hist(self.stdout('sim'), source='sim')
        need(got.ledger['seen'] > 0, 'saw nothing')
        need(not table or 'SIMULATED' in self.stdout('sim-table'), 'the table does not say SIMULATED')
        return '%d samples' % got.ledger['seen']

    def check_decode(self):
        if self.kernel == '5.10' and self.cpu.zen4:
            raise Skip('perf learns of the Zen 4 fields from caps/ in sysfs, which 5.10 lacks')
        self.stdout('perf')
        dump = os.path.join(self.dir, 'perf.txt')
        with open(dump, 'w') as f:
            subprocess.run(['perf', 'report', '-D', '--header', '-i', self.out + '/perf.data'],
                           stdout=f, stderr=subprocess.DEVNULL)
        r = subprocess.run([sys.executable, os.path.join(HERE, 'check_decode.py'), dump,
                            os.path.join(self.work, 'ibs_decode')], capture_output=True, text=True)
        need(r.returncode == 0, r.stdout + r.stderr)
        os.unlink(dump)
        return r.stdout.strip()

    def check_doctor(self, can):
        out = json.loads(self.read('doctor.out'))
        need(self.status('doctor') == (0 if can else 1), 'exit %d' % self.status('doctor'))
        need(out['can_sample'] is can, 'can_sample is %s' % out['can_sample'])

    def programs(self, name):
        return {p['id']: p for p in json.loads(self.stdout(name))}

    def check_programs(self):
        before, during = self.programs('before'), self.programs('during')
        ours = [p for i, p in during.items() if i not in before]
        need(ours, 'no program while it runs')
        verified = {int(i): n for i, n in re.findall(
            r'^prog_id:\s*(\d+)(?:\n.*)*?\nverified_insns:\s*(\d+)', self.read('fdinfo'), re.M)}
        return ', '.join('%s %s: %d bytes, verified insns %s' % (
            p['type'], p.get('name'), p['bytes_xlated'], verified.get(i, 'not told'))
            for i, p in sorted(during.items()) if i not in before)

    def check_leftover(self):
        before = self.programs('before')
        left = [p.get('name') for i, p in self.programs('after').items() if i not in before]
        need(not left, 'left: %s' % left)

    def check_closed(self):
        need(len(self.read('closed.out').splitlines()) == 1, 'no line')
        need('error' not in self.read('closed.err'), self.read('closed.err'))

    def check_partial(self, name, word):
        """The PMU was not ours all the time: a warning, and no claim about unseen samples."""
        got = Hist(self.stdout(name))
        err = self.read(name + '.err')
        need(re.search('warning:.*(%s)' % word, err, re.I), 'no warning /%s/: %r' % (word, err))
        # a throttled event does not count, so nothing is unseen
        need(got.unseen is None or name == 'throttled', 'unseen is %s' % got.unseen)
        return err.strip().replace('\n', ' | ')

    def check_freq(self):
        got = Hist(self.stdout('freq'))
        need(got.ledger['seen'] > 100, 'saw %d' % got.ledger['seen'])
        return 'seen %d, unseen %s' % (got.ledger['seen'], got.unseen)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('--build', default='build', help='where make put the programs (default build)')
    ap.add_argument('--keep', metavar='DIR', help='keep what the guests wrote there')
    ap.add_argument('-j', type=int, default=2, help='guests at a time (default 2)')
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=MATRIX)
    args = ap.parse_args()
    pairs = [p.split(':') for p in args.pairs]
    for p in pairs:
        if len(p) != 2 or p[0] not in KERNELS or p[1] not in oracle.GENS:
            ap.error('no such pair: %s' % ':'.join(p))

    start = time.monotonic()
    work = args.keep or tempfile.mkdtemp(prefix='vmtest.')
    os.makedirs(work, exist_ok=True)
    report = Report()
    try:
        subprocess.run(['cc', '-static', '-O1', '-pthread', '-o', os.path.join(work, 'work'),
                        os.path.join(HERE, 'work.c')], check=True)
        for name in 'ibs_decode', 'trace_cat':
            shutil.copy(os.path.join(args.build, 'tests/unit', name), work)
        shutil.rmtree(os.path.join(work, 'overlay'), ignore_errors=True)
        subprocess.run([os.path.join(HERE, 'rig/mkoverlay.sh'), '-o', os.path.join(work, 'overlay'),
                        'perf:/usr/bin/perf', 'bpftool:/usr/bin/bpftool',
                        os.path.join(args.build, 'ibscope') + ':/usr/bin/ibscope',
                        os.path.join(work, 'work') + ':/usr/bin/work'], check=True)
        guests = []
        for kernel, gen in pairs:
            g = Guest(kernel, gen, work, report)
            g.scenarios()
            guests.append(g)
        g = Guest(pairs[-1][0], 'none', work, report)
        g.no_ibs()
        guests.append(g)
        with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
            list(pool.map(Guest.run, guests))
    finally:
        if not args.keep:
            shutil.rmtree(work)
    n = report.count
    print('# %.0f s' % (time.monotonic() - start))
    print('%d passed, %d failed, %d skipped' % (n['ok'], n['FAIL'], n['skip']))
    return 1 if n['FAIL'] or not n['ok'] else 0


if __name__ == '__main__':
    sys.exit(main())
