#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""vmtest.py [--build DIR] [KERNEL:GEN...]: ibscope on the kernel's own IBS driver, on emulated
hardware, against the hardware's own list of delivered samples (rig/README.md).

One boot a pair runs everything. Each run of a profiler in it has a period of its own, so
that the MaxCnt field of a line in the log tells which run the sample belongs to.
"""
import collections
import json
import os
import re
import subprocess
import sys

import cases
import collapse
import contention
import dumps
import fetch
import guest
import live
import oracle
import pages
import plans
import ranks
import records
import selections
import sharing
import takeover
import verify
import vibs
from guest import DEFAULT_BY, HERE, Hist, Skip, need

KERNELS = ('5.10', '6.1', '6.12', '7.2')
ZENS = ('zen2', 'zen3', 'zen4', 'zen5')
MATRIX = ['%s:%s' % (k, g) for k in KERNELS for g in ZENS] + ['7.2:zen6']


class Guest(cases.Cases, guest.Guest):
    """The scenarios of a boot."""

    def scenarios(self, random, seed, options, brief):
        """What may differ by kernel and processor; and, unless brief, all the rest."""
        self.check('the kernel did not complain', self.check_console)
        self.do('run version ibscope --version')
        self.do('run before bpftool prog show -j')
        self.hist('intervals', window='0.5 3')
        self.hist('by-pid', by=('pid', 'src'), metric='tlb_refill_lat')
        self.hardware_filters()
        below_a = lambda: self.facts.below('/a')
        self.hist('filter-cgroup', '--cgroup /a', filters=lambda: oracle.Filter(cgroup=below_a()))
        self.hist('filter-all', '--cgroup /a -p $P_d --op load --src dram,l3,local-cache --min-lat 20',
                  filters=lambda: oracle.Filter(
                      pid={self.facts.workers['d'].pid}, cgroup=below_a(), latency=(20, 65535),
                      op={'load'}, src={'dram', 'l3', 'local-cache'}))
        if not brief:
            self.windows()
            self.filters()
            self.cases()
        # the matrix of these is fetch.py's
        if (self.kernel, self.gen) in (('5.10', 'zen2'), ('6.12', 'zen4')):
            fetch.scenarios(self, long=False)
        selections.add(self, random, seed, options)
        records.scenarios(self, brief)

        period = self.new_period(100000)
        self.do('run_perf perf 3 -e ibs_op// -c %d --raw-samples' % period)
        self.check('decode: same as perf', self.check_decode)
        if not brief:
            dumps.scenario(self)
            for name in 'record', 'record-hotplug':
                self.check('%s: at most 0.4 of perf\'s bytes' % name, records.check_size, self, name, 'perf.data', 0.4)
            self.check('with -z a quarter', records.check_size, self, 'record-compressed', 'perf.data', 0.25)
            self.refusals()
        self.do('run doctor ibscope doctor --json')
        self.check('doctor: can_sample', self.check_doctor, True)
        self.leftovers()
        if not brief:
            self.ends()
            self.sharing()
        self.hotplug()
        if not brief:
            self.do('sysctl -q kernel.perf_cpu_time_max_percent=25\n'
                    'sysctl -q kernel.perf_event_max_sample_rate=1000')
            self.do('run throttled ibscope hist -c %d --json 1 2' % self.new_period(20000))
            self.check('throttled: reported', self.check_partial, 'throttled', 'throttl')

    def windows(self):
        self.hist('long', window='1.5 1')
        self.hist('timed', about=40000, window='2 1',
                  title='timed: counts are right while the timing of programs goes on and off',
                  meanwhile='F=/proc/sys/kernel/bpf_stats_enabled\n'
                            'while kill -0 $H 2> /dev/null; do echo 1 > $F; echo 0 > $F; done')
        self.hist('by-cpu', '-C 1', by=('cpu', 'op'), metric='comp_to_ret')
        self.check('by-cpu: only CPU 1 sampled', self.check_cpus, {1})
        self.hist('uops', event='ibs_op/cnt_ctl=1/', ctl=oracle.CNT_CTL)
        self.exposed()
        self.do('run sim ibscope hist --source sim --json 0.5 1')
        self.check('sim: labelled', self.check_sim)

    def exposed(self):
        """Exposed cycles are those of the log, and only an event that counts ops has them."""
        for name, event, known in ('exposed', 'ibs_op/cnt_ctl=1/', True), ('exposed-cycles', 'ibs_op//', False):
            period = self.new_period(20000)
            # without the filter, a load without a number of open requests makes the sum unknown
            self.do("run %s ibscope hist --json --plan program --filter 'open_reqs > 0' -e '%s' -c %d 2 1" % (name, event, period))
            self.check('%s: %s' % (name, 'as in the log' if known else 'unknown'), self.check_exposed, name, period, known)

    def check_exposed(self, name, period, known):
        o, want, got = json.loads(self.stdout(name)), collections.Counter(), collections.Counter()
        for s in self.samples(period)[0]:
            latency, open_requests = s.metrics['dc_miss_lat'], oracle.field(s.data3, 26, 6)
            if latency is not None and s.metrics['comp_to_ret'] <= 2 and open_requests and not s.bad_l2:
                want[s.op, s.src] += latency // open_requests * period
        need(len(+want) > 2, 'nothing to compare: %s' % want)
        for s in o['series']:
            need(known or s['exposed_cycles'] is None, s)
            got[s['labels']['op'], s['labels']['src']] += s['exposed_cycles'] or 0
        need(o['running'] == 1 and (+got == +want if known else not +got), '%s, not %s' % (got, want))
        return '%d million of %d sources and ops' % (sum(got.values()) // 10**6, len(+got))

    def hardware_filters(self):
        zen4 = self.cpu.zen4
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

    def filters(self):
        pid_d = lambda: {self.facts.workers['d'].pid}
        below_a = lambda: self.facts.below('/a')
        below_s = lambda: self.facts.below('/s')
        self.hist('filter-pid', '-p $P_d', filters=lambda: oracle.Filter(pid=pid_d()))
        self.hist('filter-op', '--op load,locked', filters=lambda: oracle.Filter(op={'load', 'locked'}))
        self.hist('filter-src', '--src dram,l2', filters=lambda: oracle.Filter(src={'dram', 'l2'}))
        self.hist('filter-lat', '--min-lat 100 --max-lat 900',
                  filters=lambda: oracle.Filter(latency=(100, 900)))
        self.hist('filter-cgroup-lat', '--cgroup /a:200,/s --min-lat 50',
                  filters=lambda: oracle.Filter(cgroup=below_a() | below_s(), latency=lambda s: (
                      200 if s.cgroup in below_a() else 50, 65535)))
        self.hist('filter-tag', '--min-lat 40', metric='tag_to_ret',
                  filters=lambda: oracle.Filter(latency=(40, 65535)))

    def refusals(self):
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
        if self.kernel == '5.10':       # later ones charge the memory of BPF to the cgroup
            self.bad('memlock', '', 1, 'limit is 64 KiB', 'ulimit -l unlimited.*LimitMEMLOCK=infinity', prefix=(
                '/usr/bin/setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource '
                '''sh -c 'ulimit -l 64; exec "$@"' -'''))

    def leftovers(self):
        """What is loaded while it runs, and when it was killed."""
        self.do('bg() {      # NAME COMMAND...: in the background, until it has shown an interval\n'
                '    n=$1; shift; timeout -s KILL 60 "$@" > $O/$n.out 2> $O/$n.err & BG=$!\n'
                '    for i in $(seq 60); do [ -s $O/$n.out ] && break; sleep 0.2; done\n}')
        self.do('bg killed ibscope hist --json -c %d 0.2' % self.new_period(100000))
        self.do('run during bpftool prog show -j; cat /proc/$BG/fdinfo/* > $O/fdinfo')
        self.check('programs', self.check_programs)
        self.do('kill -9 $BG; wait $BG; sleep 0.3; run after bpftool prog show -j')
        self.check('no program is left after SIGKILL', self.check_leftover)
        self.hist('after-kill')

    def ends(self):
        period = self.new_period(100000)
        self.do('(for i in $(seq 60); do grep -q "on 2 CPUs" $O/sigint.err && break; sleep 0.2; done\n'
                ' sleep 1; kill -INT $(pidof ibscope)) 2> /dev/null &\n'
                'run sigint ibscope hist -v -c %d --json; wait $!' % period)
        self.check('sigint: prints what it has, exit 0', self.check_hist, 'sigint', period, DEFAULT_BY,
                   'dc_miss_lat', '1 1', {})
        self.do('run closed sh -c "ibscope hist -c %d --json 0.2 9 | head -n 1"' % self.new_period(100000))
        self.check('closed pipe: ends quietly', self.check_closed)

    def sharing(self):
        # the log says little of these: MaxCnt varies
        self.do('perf record -q -N -e ibs_op// -c %d -a -o /tmp/x -- '
                'sh -c "touch /tmp/sampling; exec sleep 120" > /dev/null 2>&1 & BG=$!\n'
                'for i in $(seq 100); do [ -e /tmp/sampling ] && break; sleep 0.2; done'
                % self.new_period(400000))
        period = self.new_period(20000)
        self.do('run shared-lines ibscope c2c --live --json --plan program -c %d 2 1' % period)
        self.check('shared with perf: cycles of lines are scaled up', self.check_shared_lines, period)
        served = self.new_period(20000)
        self.do('D=/sys/fs/bpf/shared; ibscope serve -c %d --pin-dir $D --control none --unpin --max-overhead off > /dev/null 2> $O/serve.err & S=$!\n'
                'for i in $(seq 50); do grep -q "on 2 CPUs" $O/serve.err && break; sleep 0.2; done; sleep 5\n'
                'run shared-first ibscope ctl snapshot --json --pin-dir $D; sleep 10\n'
                'run shared-serve ibscope ctl snapshot --json --pin-dir $D; kill $S; wait $S' % served)
        self.check('shared with perf: counters of serve are scaled up', self.check_shared_serve, served)
        self.do('run shared ibscope hist -c %d --json 1 2; kill $BG; wait $BG' % self.new_period(100000))
        self.check('shared with perf: reported', self.check_partial, 'shared', 'perf|another|shar|multiplex')
        self.do('run freq ibscope hist -F 1000 --json 1 2')
        self.check('freq', self.check_freq)

    def check_shared_lines(self, period):
        lines = json.loads(self.stdout('shared-lines'))['lines']
        running = float(re.search(r'on the PMU ([\d.]+)% of the time', self.read('shared-lines.err'))[1]) / 100
        # latencies times the period, made up for the time off the PMU: there is a whole number of them
        n = [x['miss_cycles'] / x['mean'] / period * running for x in lines if x['mean']]
        need(0.3 < running < 0.7 and n and all(round(x) > 0 and abs(x / round(x) - 1) < 0.01 for x in n), '%s: %s' % (running, n))
        return '%d lines at %.1f %%' % (len(n), 100 * running)

    def check_shared_serve(self, period):
        # the samples of the first seconds after another user is noticed stand for what those before lacked
        first, o = (json.loads(self.stdout(name)) for name in ('shared-first', 'shared-serve'))
        n, ops = (sum(s[key] for s in o['series']) - sum(s[key] for s in first['series']) for key in ('samples', 'estimated_ops'))
        made_up = ops / n / period * o['running']
        need(n > 100 and 0.3 < o['running'] < 0.7 and abs(made_up - 1) < 0.1, '%s of %d samples, running %s' % (made_up, n, o['running']))
        return '%.1f %% of the time with %d samples: %.3f of what all of it would have' % (100 * o['running'], n, made_up)

    def hotplug(self):
        period = self.new_period(100000)
        self.do('run hotplug ibscope hist --json -c %d 0.5 & H=$!; sampling hotplug\n'
                'sleep 1; echo 0 > /sys/devices/system/cpu/cpu1/online; sleep 1\n'
                'echo 1 > /sys/devices/system/cpu/cpu1/online; sleep 1.5; kill -INT $(pidof ibscope); wait $H' % period)
        self.check('hotplug: a CPU that returns is sampled', self.check_hotplug, period)

    def check_hotplug(self, period):
        lines = [json.loads(x) for x in self.stdout('hotplug').splitlines()]
        need([sum(o[k] for o in lines) for k in ('cpus_went_offline', 'cpus_came_online')] == [1, 1],
             'CPUs that went and came: %s' % lines)
        need([min(o['cpus'] for o in lines), lines[-1]['cpus']] == [1, 2], 'CPUs: %s' % lines)
        samples = self.samples(period)[0]
        times = [s.virtual_ns for s in samples if s.vcpu == 1]
        need(times[-1] > samples[-1].virtual_ns - 1e9, 'CPU 1 was not sampled again')
        # a second of the guest; the log's clock has been four times as slow on a busy host
        need(max(b - a for a, b in zip(times, times[1:])) > 0.1e9, 'CPU 1 was never away')
        return self.check_hist('hotplug', period, DEFAULT_BY, 'dc_miss_lat', '0.5', {'unseen': 'any'})

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
        need({s.vcpu for s in self.samples(period)[0]} == cpus, 'the log has other CPUs')

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
        physical = [c['value'] for c in out['checks'] if c['id'] == 'physical']
        need(not can or physical == ['yes'], 'physical addresses: %s' % physical)

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
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=MATRIX)
    ap.add_argument('--live', metavar='KERNELS', default=','.join(KERNELS),
                    help='kernels whose further guests run: options change while sampling, plans, hops (default %(default)s)')
    ap.add_argument('--brief', metavar='PAIRS', default='',
                    help='of these only what may differ by kernel and processor')
    args = ap.parse_args()
    for k in args.live.split(','):
        if k not in KERNELS:
            ap.error('no such kernel: %s' % k)
    pairs = [p.split(':') for p in args.pairs]
    for p in pairs:
        if len(p) != 2 or p[0] not in KERNELS or p[1] not in oracle.GENS:
            ap.error('no such pair: %s' % ':'.join(p))

    def make(work, report):
        guests = [Guest(kernel, gen, work, report) for kernel, gen in pairs]
        for g in guests:
            g.scenarios(args.random, args.seed, selections.known_options(args.build),
                        '%s:%s' % (g.kernel, g.gen) in args.brief.split(','))
        for kernel, gen in {k: (k, g) for k, g in pairs}.values():
            if kernel in args.live.split(','):
                hopper = Guest(kernel, gen, work, report, '-hop', smp=8, workers=False)
                hopper.hops()
                lively = Guest(kernel, gen, work, report, '-live')
                live.scenarios(lively)
                taken = Guest(kernel, gen, work, report, '-takeover')
                takeover.scenarios(taken, 6, args.seed)
                planned = Guest(kernel, gen, work, report, '-plan', smp=4, workers=False, rig=['--pmu'],
                                nodes=4 if kernel in ('6.1', '7.2') else 2)
                plans.scenarios(planned)
                if kernel == '6.1':
                    sharing.stacks(hopper, 3000000)
                if kernel == '6.12':
                    contended = contention.new_guest(kernel, gen, work, report)
                    contention.scenarios(contended)
                    guests.append(contended)
                    sharing.live(hopper, 'all', sharing.ALL, 400000, False)
                    job = ranks.Job(work)
                    for g in hopper, planned:
                        job.add(g)
                    pages.scenario(hopper, every=24)
                    guests += [x.make_guest(kernel, 'zen4', work, report) for x in (verify, vibs, collapse)]
                guests += [hopper, lively, taken, planned]
        none = Guest(pairs[-1][0], 'none', work, report)
        none.no_ibs()
        for g in guests + [none]:
            g.timeout = 600     # a kernel that crashed may print for ever
        return guests + [none]

    return guest.run_guests(args, make, programs=('work', 'sharing', 'stacks', 'callers', 'callers-nofp', 'contend'), tools=[*pages.tools(args.build), '/usr/bin/setpriv'], again=2)


if __name__ == '__main__':
    sys.exit(main())
