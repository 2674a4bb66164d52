# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The collector: its counters outlive it, one collector at a time, options read again."""
import collections
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ibscope
from ibscope import IBSCOPE, Busy, Cgroup, can_bpf, cgroup2_mount, cpu_seconds, free_port, keep_busy, residual, run, until

OK, WHY = can_bpf()
DIR = '/sys/fs/bpf/ibscope-test-%d' % os.getpid()
EXPORTER = os.path.join(ibscope.SAN, 'ibscope-exporter')
CONTROL = f'/run/ibscope-test-{os.getpid()}/control.sock'


def ctl(*args, **kw):
    return run('ctl', '--pin-dir', DIR, *args, **kw)


def snapshot(by='cgroup,src,op'):
    p = run('ctl', '--pin-dir', DIR, '--json', '--by', by, 'snapshot')
    if p.returncode:
        raise AssertionError(p.stderr)
    o = json.loads(p.stdout)
    assert residual(o['ledger']) == 0, o['ledger']
    assert sum(s['samples'] for s in o['series']) == o['ledger']['aggregated']
    return o


def hierarchies():
    """As --cgroup-hierarchy has them, of those that are mounted alone."""
    found = []
    with open('/proc/self/mountinfo') as f:
        for line in f:
            kind, _, options = line.split(' - ')[1].split()[:3]
            names = [x for x in options.split(',') if x in ('memory', 'pids', 'cpu', 'freezer')]
            found += ['v2'] if kind == 'cgroup2' else names[:1] if kind == 'cgroup' else []
    return sorted(set(found))


class Collector(ibscope.Collector):
    def __init__(self, *args, rate=('-c', '200000')):
        super().__init__(DIR, *rate, '--control', CONTROL, *args)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Serve(unittest.TestCase):
    def collector(self, *args):
        c = Collector(*args)
        self.addCleanup(c.stop, signal.SIGKILL)
        return c

    def setUp(self):
        keep_busy(self)
        self.addCleanup(self.remove)

    def remove(self):
        if os.path.exists(DIR):
            p = ctl('unpin')
            self.assertEqual((p.returncode, p.stderr, os.path.exists(DIR)), (0, '', False))
        shutil.rmtree(os.path.dirname(CONTROL), True)

    def grows(self):
        before = snapshot()['ledger']['seen']
        until(lambda: snapshot()['ledger']['seen'] > before)

    def test_counters_outlive_it(self):
        seen = 0
        for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            c = self.collector()
            if seen:
                c.wait('resuming counters')
            self.grows()
            now = snapshot()['ledger']['seen']
            self.assertGreater(now, seen)
            seen = now
            c.stop(sig)
            now = snapshot()['ledger']['seen']
            self.assertGreaterEqual(now, seen)
            seen = now
            if sig == signal.SIGKILL:
                self.grows()    # the links are pinned
            else:
                self.assertEqual(seen, snapshot()['ledger']['seen'])
        # a collector that removes existing pins
        self.assertEqual(self.collector('--unpin').stop(), 0)
        self.assertFalse(os.path.exists(DIR))

    def strata(self):
        status = json.loads(ctl('--json', 'status').stdout)
        strata = status['strata']
        for name in 'full', 'miss':
            self.assertEqual(residual(strata[name]['ledger']), 0)
        return status['ledger']['seen'], strata

    def test_strata(self):
        """By turns, in the same counters; killed in a slice, whose samples are in the ledger of its stratum all the same."""
        c = self.collector('--strata', 'on', '--max-overhead', 'off', '--max-bpf-time', 'off', '--by', 'src')
        until(lambda: min(self.strata()[1][x]['slices'] for x in ('full', 'miss')) >= 3)
        rows = {s['labels']['src']: s for s in snapshot('src')['series']}
        weight = {src: rows[src]['estimated_ops'] / rows[src]['samples'] for src in ('l1', 'l3', 'dram')}
        # both strata take what comes from memory, at the same period here: twice as many samples
        self.assertAlmostEqual(weight['l1'] / weight['l3'], 1, delta=0.05)
        self.assertTrue(1.3 < weight['l1'] / weight['dram'] < 3, weight)
        total = sum(s['estimated_ops'] for s in rows.values())
        seconds = json.loads(ctl('--json', 'status').stdout)['enabled_s']
        self.assertTrue(0.6 < total / seconds / 1e9 < 1.4, (total, seconds))    # it takes 1 ns for an op
        out = subprocess.run([EXPORTER, '--once', '--pin-dir', DIR], capture_output=True, text=True, timeout=60).stdout
        for name in 'strata_seconds_total{stratum="miss"}', 'strata_samples_total{stratum="full"}', 'effective_samples_total':
            self.assertGreater(float(re.search(rf'^ibscope_{re.escape(name)} (\S+)', out, re.M)[1]), 1)
        self.assertIn('miss stratum: ', ctl('status').stdout)
        # what a governor does
        p = ctl('set', 'period=2000000')
        self.assertIn('changed while sampling', p.stdout, p.stderr)
        self.assertEqual([self.strata()[1][x]['period'] for x in ('full', 'miss')], [2000000] * 2)
        c.stop(signal.SIGKILL)
        seen = snapshot('src')['ledger']['seen']
        self.assertEqual(snapshot('src')['ledger']['seen'], seen)    # one stratum alone does not sample on
        c = self.collector('--max-overhead', 'off', '--by', 'src')
        c.wait('resuming counters')
        until(lambda: self.strata()[0] > seen)
        strata = self.strata()[1]
        self.assertFalse(strata['on'])
        self.assertEqual(sum(strata[x]['ledger']['seen'] for x in ('full', 'miss')), seen)
        c.stop()
        # and in strata again, which do not claim what was sampled without
        c = self.collector('--strata', 'auto', '--max-overhead', 'off', '--by', 'src')
        until(lambda: self.strata()[1]['full']['slices'] > strata['full']['slices'])
        self.assertEqual(c.stop(), 0)
        all_seen, after = self.strata()
        self.assertGreater(all_seen, sum(after[x]['ledger']['seen'] for x in ('full', 'miss')))

    def test_no_strata(self):
        """Where they cannot be, `auto` says why, and samples as without."""
        c = self.collector('--strata', 'auto', '--hot-lines')
        c.wait('--strata: --hot-lines counts samples, of which each must stand for as many ops')
        self.grows()
        self.assertNotIn('strata', json.loads(ctl('--json', 'status').stdout))
        c.stop()
        for option, why in ('-eibs_fetch//', 'only ibs_op can be sampled in strata'), ('-F100', 'with -F the period varies'):
            p = run('serve', '--source', 'sim', '--pin-dir', DIR, '--control', 'none', '--strata', 'on', option)
            self.assertEqual((p.returncode, f'--strata: {why}' in p.stderr), (2, True), p.stderr)

    def test_memory_of_its_cgroup(self):
        """A limit that is too low for the maps is named, with a remedy."""
        cgroup = ibscope.memory_cgroup(f'ibscope-memory-{os.getpid()}', 32 << 20)    # of which the program takes up to 24
        if not cgroup:
            self.skipTest('no memory controller')
        self.addCleanup(os.rmdir, cgroup)
        program = os.path.join(ibscope.BUILD, 'ibscope')  # sanitizers take more memory than that
        p = subprocess.run(['sh', '-ec', f'echo $$ > {cgroup}/cgroup.procs; exec "$@"', '-', program, 'serve', '--source', 'sim', '--pin-dir',
                            DIR, '--control', 'none'], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr, r'error: cannot allocate \d+\.\d MiB for the BPF maps: raise the memory limit of the cgroup')

    def test_killed_for_memory(self):
        """By the kernel, for what another process of its cgroup took: no sample is lost, and another one goes on."""
        cgroup = ibscope.memory_cgroup(f'ibscope-oom-{os.getpid()}', 160 << 20)
        if not cgroup:
            self.skipTest('no memory controller')
        self.addCleanup(lambda: until(lambda: not os.rmdir(cgroup)))
        enter = 'sh', '-ec', f'echo $$ > {cgroup}/cgroup.procs; echo $0 > /proc/$$/oom_score_adj; exec "$@"'
        c = ibscope.Collector(DIR, '-c', '200000', '--control', CONTROL, under=(*enter, '1000'))
        self.addCleanup(c.stop, signal.SIGKILL)
        self.grows()
        before = snapshot()['ledger']['seen']
        eater = subprocess.Popen([*enter, '0', sys.executable, '-c', 'import time; x = b"x" * (512 << 20); time.sleep(60)'])
        self.addCleanup(eater.wait)
        self.addCleanup(eater.kill)
        self.assertEqual(c.p.wait(60), -signal.SIGKILL)
        eater.kill()
        self.grows()    # maps and program outlive it
        until(lambda: json.loads(ctl('--json', 'status').stdout)['orphaned'])
        c = self.collector()
        c.wait('resuming counters')
        self.grows()
        self.assertEqual(c.stop(), 0)
        self.assertGreater(snapshot()['ledger']['seen'], before)

    def test_lease(self):
        """A collector that was killed samples on until its lease ends; another one resumes."""
        both = ('-e', 'ibs_op//,ibs_fetch//', '--source', 'sim', '-c', '1000000,1000000', '--lease', '5s')
        c = self.collector(*both)
        self.grows()
        self.assertLess(json.loads(ctl('--json', 'status').stdout)['lease_s'], 5)
        c.stop(signal.SIGKILL)
        self.grows()    # the lease has not ended

        def ledgers():
            return [json.loads(ctl('-e', e, '--json', 'ledger').stdout) for e in ('ibs_op', 'ibs_fetch')]

        def ended():
            before = ledgers()
            time.sleep(1)
            return before == ledgers() and before
        ends = until(ended, 30)
        for ledger in ends:
            self.assertEqual(residual(ledger), 0, ledger)
        until(lambda: 'it was killed, and sampling ended with its lease' in ctl('status').stdout)
        metrics = self.metrics()
        self.assertIn('\nibscope_collector_orphaned 0\n', metrics)
        self.assertIn('\nibscope_collector_lease_seconds 0\n', metrics)
        # another one renews it, beyond its first end
        c = self.collector(*both)
        c.wait('resuming counters')
        began = time.monotonic()
        self.grows()
        until(lambda: time.monotonic() > began + 7)
        self.grows()
        # a collector that was stopped for longer goes on as well
        c.p.send_signal(signal.SIGSTOP)
        ends = until(ended, 30)
        c.p.send_signal(signal.SIGCONT)
        c.wait('this process did not run for longer than its lease')
        until(lambda: all(a['seen'] > b['seen'] for a, b in zip(ledgers(), ends)))
        self.assertEqual(c.stop(), 0)
        for ledger in ledgers():
            self.assertEqual(residual(ledger), 0, ledger)
        c = self.collector('--lease', 'never')
        self.assertIsNone(json.loads(ctl('--json', 'status').stdout)['lease_s'])
        self.assertNotIn('ibscope_collector_lease_seconds ', self.metrics())

    def test_orphan(self):
        """A collector that was killed samples on: everybody says so, and it can be ended."""
        c = self.collector('-e', 'ibs_op//,ibs_fetch//', '--source', 'sim')
        self.grows()
        web = self.exporter()
        c.stop(signal.SIGKILL)
        self.grows()
        until(lambda: json.loads(ctl('--json', 'status').stdout)['orphaned'])
        until(lambda: web('/-/ready') == 'the collector was killed, and sampling continues without a governor: '
                                         'start it again, or run `ibscope ctl stop`\n', 20)
        page = json.loads(web('/api/snapshot.json'))
        self.assertEqual((page['alive'], page['orphaned']), (False, True))
        p = ctl('status')
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stdout, r'collector: orphaned for \d+ s: it was killed, and sampling continues '
                                   r'without a governor for another \d+ s \(--lease\); resume it')
        self.assertIn('\nibscope_collector_orphaned 1\n', self.metrics())
        p = ctl('stop')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        self.assertEqual(os.listdir(DIR + '/links') + os.listdir(DIR + '/ibs_fetch/links'), [])
        self.assertEqual(os.listdir(os.path.dirname(CONTROL)), [])     # neither its socket nor a lock
        until(lambda: web('/-/ready') == 'the collector is not running; its counters are kept and do not change\n')
        seen = snapshot()['ledger']['seen']
        self.assertIn('collector: not running', ctl('status').stdout)
        self.assertIn('\nibscope_collector_orphaned 0\n', self.metrics())
        self.assertEqual(snapshot()['ledger']['seen'], seen)
        # with a collector, and the pins of one that was killed
        c = self.collector('-e', 'ibs_op//,ibs_fetch//', '--source', 'sim')
        c.wait('resuming counters')
        self.grows()
        p = ctl('stop')
        self.assertEqual((p.returncode, p.stderr, c.stop()), (0, '', 0))
        self.assertGreater(snapshot()['ledger']['seen'], seen)
        self.assertEqual(os.path.exists(CONTROL), False)
        c = self.collector('-e', 'ibs_op//,ibs_fetch//', '--source', 'sim')
        self.grows()    # then its pins have its control socket, which it says that it samples before
        c.stop(signal.SIGKILL)
        p = ctl('unpin')
        self.assertEqual((p.returncode, p.stderr, os.path.exists(DIR)), (0, '', False))
        self.assertEqual(os.listdir(os.path.dirname(CONTROL)), [])
        p = ctl('unpin')
        self.assertEqual(p.returncode, 1)
        self.assertIn(f'no collector has pinned anything in {DIR}', p.stderr)

    def test_fetches(self):
        """Of the other event: counters, metrics and the screen have its samples, and are resumed."""
        c = self.collector('-e', 'ibs_fetch//')
        until(lambda: json.loads(ctl('--json', 'ledger').stdout)['seen'] > 500)
        self.assertIn('changed while sampling', ctl('set', 'period=300000').stdout)
        p = ctl('--by', 'src', 'snapshot')
        self.assertEqual((p.returncode, 'use fetch or itlb' in p.stderr), (2, True), p.stderr)
        self.assertEqual(c.stop(), 0)
        now = snapshot('cgroup,fetch,itlb')
        self.assertEqual(now['metric'], 'fetch_lat')
        self.assertLess({'l1', 'op-cache', 'aborted'}, {s['labels']['fetch'] for s in now['series']})
        text = self.metrics()
        self.assertIn(f'ibscope_samples_seen_total{{event="ibs_fetch"}} {now["ledger"]["seen"]}\n', text)
        got = collections.Counter()
        for itlb, fetch, n in re.findall(r'^ibscope_fetch_samples_total\{.*itlb="(.*?)",fetch="(.*?)"\} (\d+)$',
                                         text, re.M):
            got[itlb, fetch] += int(n)
        want = collections.Counter()
        for s in now['series']:
            want[s['labels']['itlb'], s['labels']['fetch']] += s['samples']
        self.assertEqual(got, want)
        c = self.collector('-e', 'ibs_fetch//')
        c.wait('resuming counters')
        screen = run('top', '--once', '--pin-dir', DIR, '--size', '110x30').stdout
        self.assertIn('by outcome of fetches', screen)
        c.stop()
        self.collector().wait('starting from zero')

    def exporter(self):
        """Asks a running one for a path."""
        port = free_port()
        p = subprocess.Popen([EXPORTER, '--pin-dir', DIR, '--web.listen-address', f'127.0.0.1:{port}'], stderr=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.terminate)
        return lambda path: subprocess.run(['curl', '-s', '-m', '20', f'http://127.0.0.1:{port}{path}'],
                                           capture_output=True, text=True).stdout

    def metrics(self):
        return subprocess.run([EXPORTER, '--once', '--pin-dir', DIR, '--detail', 'full'], capture_output=True, text=True).stdout

    def test_both_events(self):
        """One collector, budget and exporter: each event has its period, counters, ledger and metrics."""
        both = ('-e', 'ibs_fetch//,ibs_op//', '--nmi-cost', '1us', '-c', '100000,200000')
        c = self.collector(*both)

        def snapshots(*args):
            return [json.loads(line) for line in ctl('--json', *args, 'snapshot').stdout.splitlines()]
        until(lambda: len(s := snapshots()) == 2 and all(o['ledger']['seen'] > 1000 for o in s))
        op, fetch = snapshots()
        self.assertEqual((op['event'], fetch['event']), ('ibs_op//', 'ibs_fetch//'))

        def estimate(o):
            return sum(s['estimated_ops'] for s in o['series'])
        self.assertLess(abs(estimate(op) / estimate(fetch) - 1), 0.3)    # both count the ns that CPUs ran
        self.assertEqual([o['event'] for o in snapshots('--by', 'fetch')], ['ibs_fetch//'])
        self.assertEqual([o['event'] for o in snapshots('-e', 'ibs_op')], ['ibs_op//'])
        for event in 'ibs_op//', 'ibs_fetch//':
            self.assertIn(event, run('top', '--once', '-d', '.2', '--pin-dir', DIR, '-e', event, '--size', '110x30').stdout)
        self.assertIn('changed while sampling', ctl('set', 'period=200000,400000').stdout)

        # what one of the events cannot do changes neither; what both can do leaves their counters as they are
        live = json.loads(ctl('--json', 'status').stdout)['live']
        for option, says in (('src=dram', '--src: samples of ibs_fetch'), ('filter=mem_lvl == ram', "'mem_lvl' is a term of ibs_op"),
                             ('period=200000,1', 'invalid period 1: must be from 10000 to 2^40 ns in the simulation'),
                             ('event=ibs_fetch/fetchlat=128/,ibs_op//', "the simulation has no 'fetchlat'")):
            p = ctl('set', option)
            self.assertEqual((p.returncode, says in p.stderr), (2, True), p.stderr)
            self.assertEqual(json.loads(ctl('--json', 'status').stdout)['live'], live)
        for change in ('set', 'min-lat=100'), ('set', 'filter=user'), ('unset', 'min-lat', 'filter'):
            before = snapshots()
            p = ctl(*change)
            self.assertEqual(p.returncode, 0, p.stderr)
            until(lambda: all(o['ledger']['seen'] > x['ledger']['seen'] for o, x in zip(snapshots(), before)))
            for o, x in zip(snapshots(), before):
                self.assertEqual(residual(o['ledger']), 0)
                self.assertGreaterEqual(estimate(o), estimate(x))
        self.assertIn('changed while sampling', ctl('set', 'max-overhead=0.2%', 'nmi-cost=100us').stdout)

        def periods():    # of the order in -e
            status = json.loads(ctl('--json', 'status').stdout)
            return status['fetch']['period'] > 200000 and status['period'] > 400000
        until(periods)
        ledgers = [json.loads(line) for line in ctl('--json', '--control', CONTROL, 'ledger').stdout.splitlines()]
        self.assertEqual([(x['event'], residual(x)) for x in ledgers], [('ibs_op', 0), ('ibs_fetch', 0)])
        self.assertEqual(c.stop(), 0)
        op, fetch = snapshots()
        text = self.metrics()
        for o, label, name in (op, '', 'estimated_ops'), (fetch, '{event="ibs_fetch"}', 'estimated_fetches'):
            self.assertIn(f'ibscope_samples_seen_total{label} {o["ledger"]["seen"]}\n', text)
            self.assertEqual(sum(map(int, re.findall(r'^ibscope_%s_total.* (\d+)$' % name, text, re.M))), estimate(o))
        self.assertEqual(len(re.findall('^# TYPE ibscope_samples_seen_total', text, re.M)), 1)
        self.assertEqual(re.findall('^ibscope_collector_up.*', text, re.M), ['ibscope_collector_up 0'])

        # resumed; then one event alone takes the pins of the other one away, and both are possible again
        c = self.collector(*both)
        until(lambda: all(o['ledger']['seen'] > x['ledger']['seen'] for o, x in zip(snapshots(), (op, fetch))))
        self.assertIn('reopened', ctl('set', 'event=ibs_op//', 'period=200000').stdout)
        self.assertNotIn('ibs_fetch', self.metrics())
        self.assertEqual(ctl('-e', 'ibs_fetch', 'snapshot').returncode, 1)
        self.assertGreater(snapshots()[0]['ledger']['seen'], op['ledger']['seen'])
        self.assertIn('reopened', ctl('unset', 'event', 'period').stdout)
        until(lambda: len(s := snapshots()) == 2 and s[1]['ledger']['seen'] > 0)
        self.assertLess(snapshots()[1]['ledger']['seen'], fetch['ledger']['seen'])
        c.stop()

    def test_one_at_a_time(self):
        c = self.collector()
        p = run('serve', '--source', 'sim', '--pin-dir', DIR)
        self.assertEqual(p.returncode, 1)
        self.assertIn(f'process {c.p.pid}', p.stderr)
        self.grows()

    @unittest.skipUnless(shutil.which('setpriv'), 'setpriv is not here')
    def test_few_open_files(self):
        """A limit that only root could raise is named, with one that is enough; that is true."""
        args = '-e', 'ibs_op//,ibs_fetch//', '-c', '200000,200000', '--hot-lines', '--web.listen-address', '127.0.0.1:0'

        def under(n):
            return 'setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource', 'prlimit', f'--nofile={n}:{n}'
        for n in 10, 20, 64:
            p = subprocess.run([*under(n), IBSCOPE, 'serve', '--source', 'sim', '--pin-dir', DIR, '--control', 'none', *args],
                               capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(p.returncode, 1, p.stderr)
            m = re.search(rf'the limit of open files \(nofile\) is {n}; at least (\d+) are needed: raise it with `ulimit -n (\d+)`, '
                          'or LimitNOFILE= of a unit', p.stderr)
            self.assertTrue(m, p.stderr)
            self.assertGreater(int(m[1]), n)
            c = ibscope.Collector(DIR, '--control', CONTROL, *args, under=under(m[2]))
            self.addCleanup(c.stop, signal.SIGKILL)
            self.grows()
            self.assertEqual(c.stop(), 0)

    def test_other_meaning_begins_anew(self):
        c = self.collector()
        self.grows()
        c.stop()
        c = self.collector('--max-groups', '20')
        c.wait('starting from zero')
        self.grows()

    def test_ids_of_another_hierarchy(self):
        names = hierarchies()
        if len(names) < 2:
            self.skipTest('cgroups have one hierarchy')
        self.collector('--cgroup-hierarchy', names[0]).stop()
        c = self.collector('--cgroup-hierarchy', names[0])
        c.wait('resuming counters')
        c.stop()
        c = self.collector('--cgroup-hierarchy', names[1])
        c.wait('they have another cgroup hierarchy')
        self.grows()
        c.stop()
        # where no cgroup is told none is confused
        self.collector('--cgroup-hierarchy', names[0], '--by', 'cpu').stop()
        self.collector('--cgroup-hierarchy', names[1], '--by', 'cpu').wait('resuming counters')

    def test_reload(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('# a comment\n\nop = load\n')
            f.flush()
            c = self.collector('--config', f.name)
            self.grows()
            before = snapshot()['ledger']
            self.assertGreater(before['filtered']['op'], 0)
            f.write('bogus = 1\n')
            f.flush()
            c.p.send_signal(signal.SIGHUP)
            c.wait(f'{f.name}:4')
            self.grows()
            f.seek(0)
            f.truncate()
            f.write('cpu = 4000\n')
            f.flush()
            c.p.send_signal(signal.SIGHUP)
            c.wait('cpu 4000 is not online')
            # neither has stopped what is sampled
            self.assertEqual(c.said().count('kernel memory'), 1)
            self.grows()
            f.seek(0)
            f.truncate()
            f.write('src = l1\n')
            f.flush()
            c.p.send_signal(signal.SIGHUP)
            c.wait('options reloaded')
            self.grows()
            after = snapshot()['ledger']
            self.assertGreater(after['filtered']['src'], 0)
            self.assertGreaterEqual(after['aggregated'], before['aggregated'])
            self.assertEqual(c.stop(), 0)

    def test_reader_of_the_log_goes_away(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            # as `serve 2>&1 | head -1`
            p = subprocess.Popen([IBSCOPE, 'serve', '--source', 'sim', '--pin-dir', DIR, '--control', CONTROL,
                                  '-c', '200000', '--config', f.name], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            p.stdout.readline()
            p.stdout.close()
            until(lambda: ctl('status').returncode == 0)
            f.write('bogus\n')
            f.flush()
            # writes to the log
            self.assertEqual(ctl('reload').returncode, 2)
            self.grows()
            self.assertIsNone(p.poll())
            p.terminate()
            self.assertEqual(p.wait(60), 0)

    def test_log_that_accepts_nothing(self):
        """A full disk, or a pipe that nobody reads, as of a logger that hangs: sampling and requests go on."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(write, False)
        for log in os.open('/dev/full', os.O_WRONLY), write:
            p = subprocess.Popen([IBSCOPE, 'serve', '--source', 'sim', '--pin-dir', DIR, '--control', CONTROL, '-c', '200000',
                                  '--max-bpf-time', 'off'], stdin=subprocess.DEVNULL, stderr=log)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            until(lambda: ctl('status').returncode == 0)
            if log == write:
                with self.assertRaises(BlockingIOError):
                    while True:
                        os.write(write, b'x' * 512)
                os.set_blocking(write, True)
            for n in range(8):
                self.assertEqual(ctl('set', f'period={300000 + 16 * n}').returncode, 0)
            self.assertEqual(ctl('reload').returncode, 0)
            self.grows()
            if log == write:    # read again
                self.assertNotIn(b'not written', os.read(read, 65536))
                self.assertEqual(ctl('set', 'period=400000').returncode, 0)
                self.assertRegex(os.read(read, 65536), rb'^ibscope: warning: [1-9]\d* messages? before this one w(as|ere) not written')
            p.terminate()
            self.assertEqual(p.wait(60), 0)
            os.close(log)

    def status(self):
        return json.loads(ctl('--json', 'status').stdout)

    def becomes(self, **want):
        until(lambda: want.items() <= self.status().items())

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_says_what_it_waits_for(self):
        path = f'/ibscope-late-{os.getpid()}'
        c = self.collector('--container', 'ibscope-typo', '--cgroup', path)
        c.wait(f'waiting for 2 names of the selection: ')
        self.becomes(unresolved=2)
        for args in (), ('--control', CONTROL):
            self.assertRegex(ctl('status', *args).stdout, f'waiting for: .*--cgroup {path}')
            self.assertRegex(ctl('status', *args).stdout, 'waiting for: .*--container ibscope-typo')
        p = subprocess.run([EXPORTER, '--once', '--pin-dir', DIR], capture_output=True, text=True)
        self.assertIn('\nibscope_selection_unresolved 2\n', p.stdout, p.stderr)
        cg = Cgroup(path)
        self.addCleanup(cg.remove)
        self.becomes(unresolved=1, waiting_for='--container ibscope-typo')
        c.wait('waiting for 1 name of the selection: --container ibscope-typo')
        self.assertEqual(ctl('set', 'container=').returncode, 0)
        c.wait('all names of the selection exist now')
        self.becomes(unresolved=0, waiting_for='')
        self.assertNotIn('waiting', ctl('status').stdout)

    def test_config_check(self):
        for text, said in (('op = lod', 'lod'), ('verbose = 1', 'takes no value'), ('op', 'needs a value'),
                           ('= 3', "''"), ('\0', 'NUL')):
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
                f.write(text + '\n')
                f.flush()
                p = run('serve', '--config-check', '--config', f.name)
                self.assertEqual(p.returncode, 2, text)
                self.assertIn(f'{f.name}:1', p.stderr)
                self.assertIn(said, p.stderr)
        p = run('serve', '--config-check', '--op', 'load')
        self.assertEqual(p.returncode, 0, p.stderr)
        args = ['--op', 'load', '--filter', 'weight1 > 300', '--explain']
        p = run('serve', *args)
        self.assertEqual((p.returncode, p.stdout), (0, run('hist', *args).stdout))
        self.assertIn('dc_miss_lat > 300 ?', p.stdout)
        p = run('serve', '--config', '/nonexistent')
        self.assertEqual(p.returncode, 2)

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_dead_cgroups_are_folded(self):
        # others that run here would keep the slots
        self.collector('--grace', '1', '--max-groups', '8', '--cgroup', f'/ibscope-fold-{os.getpid()}-*')
        names = set()
        for i in range(9):
            cg = Cgroup(f'/ibscope-fold-{os.getpid()}-{i}')
            try:
                busy = Busy(1, cg)
                # it has a slot of its own, unless those of its predecessors are still taken
                until(lambda: cg.path in self.cgroups() or cpu_seconds(busy.pid) > 1)
                busy.stop()
                names |= self.cgroups()
            finally:
                cg.remove()
        until(lambda: not any('ibscope-fold' in n for n in self.cgroups()))
        self.assertIn('other', self.cgroups())
        self.assertGreater(len([n for n in names if 'ibscope-fold' in n]), 4, names)
        # the slots serve again
        cg = Cgroup(f'/ibscope-fold-{os.getpid()}-x')
        self.addCleanup(cg.remove)
        busy = Busy(1, cg)
        self.addCleanup(busy.stop)
        self.sees(cg.path)

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_dead_cgroups_stay_across_restarts(self):
        c = self.collector('--grace', '8')
        cg = Cgroup(f'/ibscope-grace-{os.getpid()}')
        try:
            busy = Busy(1, cg)
            self.sees(cg.path)
            busy.stop()
        finally:
            ended = time.monotonic()
            cg.remove()
        c.stop(signal.SIGKILL)
        c = self.collector('--grace', '8')
        c.wait('resuming counters')

        def gone():
            if cg.path in self.cgroups():
                return False
            self.assertGreater(time.monotonic(), ended + 5)
            return True
        until(gone)

    @staticmethod
    def cgroups():
        return {s['labels']['cgroup'] for s in snapshot('cgroup')['series']}

    def sees(self, path):
        until(lambda: path in self.cgroups())

    def test_readers(self):
        self.collector()
        nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
        p = subprocess.run([*nobody, IBSCOPE, 'ctl', '--pin-dir', DIR, 'status'], capture_output=True, text=True)
        if 'before 5.19' in p.stderr:
            self.skipTest('this kernel lets nobody read maps without CAP_BPF')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('SIMULATED', p.stdout)
        p = run('ctl', '--pin-dir', '/sys/fs/bpf/nowhere', 'status')
        self.assertEqual(p.returncode, 1)
        self.assertIn('ibscope serve', p.stderr)
        p = ctl('bogus')
        self.assertEqual(p.returncode, 2)


if __name__ == '__main__':
    unittest.main()
