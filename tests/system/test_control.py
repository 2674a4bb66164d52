# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Options of a running collector: set, unset, errors, permissions, and robustness."""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest
import urllib.request

import clock
import ibscope
from ibscope import IBSCOPE, Busy, Cgroup, can_bpf, cgroup2_mount, keep_busy, residual, run, until

OK, WHY = can_bpf()
DIR = '/sys/fs/bpf/ibscope-control-%d' % os.getpid()
LIVE = 'changed while sampling'
ANEW = 'reopened'


class Collector(ibscope.Collector):
    def __init__(self, *args, **kw):
        super().__init__(DIR, '-c', '200000', '--max-overhead', 'off', '--nmi-cost', '1us', *args, **kw)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-control-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.path = os.path.join(self.dir, 'run', 'control.sock')

    def collector(self, *args):
        c = Collector('--control', self.path, '--unpin', *args)
        self.addCleanup(self.end, c)
        return c

    def end(self, c):
        """Stop cleanly, so that leaks are reported; except for a collector that a test killed."""
        said = '' if c.err.closed else c.said()
        if c.stop() != 0:
            self.assertEqual(c.p.returncode, -signal.SIGKILL, said)
            # the next one begins anew
            shutil.rmtree(DIR, True)

    def ctl(self, *args, code=0, **kw):
        p = run('ctl', '--pin-dir', DIR, *args, **kw)
        self.assertEqual(p.returncode, code, (args, p.stdout, p.stderr))
        return p.stderr if code else p.stdout

    def set(self, how, *args, verb='set', wait=False):
        out = self.ctl(*['--wait'][:wait], verb, *args)
        self.assertTrue(out.startswith(how), (args, out))
        return out

    def status(self):
        """As the collector itself says, without a process; test_status compares it with what the pins say."""
        return ibscope.ask_json(self.path, 'status')

    def snapshot(self, by='cgroup,src,op'):
        o = json.loads(self.ctl('--json', '--by', by, 'snapshot'))
        self.assertEqual(residual(o['ledger']), 0, o['ledger'])
        self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
        return o

    def reasons(self, least=frozenset()):
        """What becomes of samples from now on; so many that all of `least` can be there."""
        before = self.snapshot()['ledger']
        for _ in range(300):
            now = self.status()['ledger']
            grew = {k for k, n in now['filtered'].items() if n > before['filtered'].get(k, 0)}
            grew |= {'aggregated'} if now['aggregated'] > before['aggregated'] else set()
            if now['seen'] > before['seen'] + 200 and grew >= least:
                break
            time.sleep(0.15)
        self.assertGreater(now['seen'], before['seen'] + 200)
        self.assertGreaterEqual(self.snapshot()['ledger']['seen'], now['seen'])
        return grew

    def becomes(self, *what):
        self.assertEqual(self.reasons(set(what)), set(what))

    def ask(self, request):
        return ibscope.ask(self.path, request)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Setting(Case):
    def setUp(self):
        super().setUp()
        keep_busy(self)

    def test_thresholds(self):
        self.collector()
        self.becomes('aggregated')
        # the first opens the program that tests for one
        out = self.set(ANEW, 'min-lat=65535')
        self.assertIn('resuming counters', out)
        self.becomes('latency')
        self.set(LIVE, 'min-lat=')
        self.becomes('aggregated')
        self.set(LIVE, 'max-lat=1')
        self.becomes('latency')
        self.set(LIVE, 'min-lat=100', 'max-lat=200')
        self.becomes('latency', 'aggregated')
        self.set('nothing changed', 'min-lat=100')
        self.set(LIVE, 'max-lat', verb='unset')
        self.set(LIVE, verb='reset')
        self.becomes('aggregated')
        self.set('nothing changed', verb='reset')
        self.assertEqual(self.status()['live'], '')

    def test_what_is_tested_anyway_is_live_at_once(self):
        self.collector('--min-lat', '1', '-p', '1')
        self.set(LIVE, 'min-lat=2')
        self.set(LIVE, 'pid=')

    def test_what_fails_leaves_the_old(self):
        busy = Busy(min(os.sched_getaffinity(0)))
        self.addCleanup(busy.stop)
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write(f'pid = {busy.pid}\ncgroup-hierarchy = auto\ncomm = python3\n')
            f.flush()
            self.collector('--config', f.name)
            # what was copied points to its own, not to where it was before
            for _ in range(3):
                self.ctl('reload')
                self.assertIn('--max-memory', self.ctl('set', 'max-memory=1', code=1))
                self.assertEqual(self.reasons({'pid', 'aggregated'}) - {'comm'}, {'pid', 'aggregated'})

    def test_what_cannot_go_on_ends_in_order(self):
        c = Collector('--control', self.path, under=('unshare', '--mount'))
        self.addCleanup(c.stop, signal.SIGKILL)
        self.addCleanup(shutil.rmtree, DIR, True)
        self.set(ANEW, 'cgroup=/ibscope-nowhere', wait=True)
        self.assertIn('65535', self.ctl('--wait', 'set', 'cgroup=/ibscope-nowhere:99999', code=2))
        # without BTF it can begin neither with other options nor with those it had
        subprocess.run(['nsenter', '-t', str(c.p.pid), '-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/sys/kernel/btf'], check=True)
        self.ctl('--control', self.path, 'set', 'op=load', code=1)
        # a start is worth a try: what was refused long ago is not why it ends
        self.assertEqual(c.p.wait(60), 1, c.said())

    def test_what_fails_keeps_the_counters(self):
        with open('/proc/sys/kernel/pid_max') as f:
            pid = int(f.read()) * 2
        if pid >= 2 ** 22:
            self.skipTest('any pid that can be given can be')
        self.collector()
        self.becomes('aggregated')
        before, starts = self.snapshot()['ledger'], self.status()['starts']
        # other slots fit the counters no more, and such a process cannot be
        self.assertIn(str(pid), self.ctl('set', 'max-groups=20', f'pid={pid}', code=1))
        self.becomes('aggregated')
        after = self.snapshot()['ledger']
        self.assertGreater(after['seen'], before['seen'])
        self.assertGreater(after['aggregated'], before['aggregated'])
        self.assertEqual(self.status()['starts'], starts)
        self.assertIn('starting from zero', self.set(ANEW, 'max-groups=20'))
        self.assertEqual(self.status()['starts'], 1)

    def test_other_cgroups_keep_the_counters(self):
        """Which hierarchy `auto` chooses depends on all cgroups of the machine; a running collector has chosen."""
        with open('/proc/self/mountinfo', encoding='utf-8') as f:
            mounts = [line.split(' - ') for line in f]
        v1 = [m for m in mounts if m[1].startswith('cgroup ') and 'memory' in m[1].split()[2].split(',')]
        if not v1 or not cgroup2_mount():
            self.skipTest('not both of v2 and the v1 hierarchy of memory are mounted')
        container = Cgroup(f'/ibscope-control-{os.getpid()}/docker-{os.urandom(32).hex()}.scope')
        self.addCleanup(Cgroup(os.path.dirname(container.path)).remove)
        without_v2 = ''.join(f'umount -l {m[0].split()[4]} && ' for m in mounts if m[1].startswith('cgroup2 '))
        c = Collector('--control', self.path, '--unpin', under=('unshare', '--mount', 'sh', '-c', without_v2 + 'exec "$@"', 'sh'))
        self.addCleanup(self.end, c)
        before = until(lambda: (now := self.snapshot()['ledger'])['aggregated'] and now)
        v2 = os.path.join(self.dir, 'v2')
        os.mkdir(v2)
        subprocess.run(['nsenter', '-t', str(c.p.pid), '-m', 'mount', '-t', 'cgroup2', 'cgroup2', v2], check=True)
        self.assertIn('resuming counters', self.set(ANEW, 'src=!l1'))
        self.ctl('set', 'max-memory=1', code=1)
        self.assertNotIn('starting from zero', c.said())
        self.assertIn(', 1 changes', self.ctl('status'))
        self.assertGreater(self.snapshot()['ledger']['seen'], before['seen'])

    def test_processes(self):
        self.collector()
        busy = Busy(min(os.sched_getaffinity(0)))
        self.addCleanup(busy.stop)
        self.set(ANEW, 'pid=%d' % (2 ** 22 - 1 if busy.pid == 1 else 1))
        self.becomes('pid')
        self.set(LIVE, f'pid={busy.pid}')
        self.becomes('pid', 'aggregated')
        self.set(LIVE, f'pid=!{busy.pid}')
        self.becomes('pid', 'aggregated')
        self.set(LIVE, 'pid', verb='unset')
        self.becomes('aggregated')

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_cgroups(self):
        cg = Cgroup(f'/ibscope-control-{os.getpid()}')
        self.addCleanup(cg.remove)
        busy = Busy(max(os.sched_getaffinity(0)), cg)
        self.addCleanup(busy.stop)
        self.collector()
        # a name that does not exist is an error, unless it is to be waited for
        before = self.status()
        said = self.ctl('set', 'cgroup=/ibscope-nowhere', code=2)
        self.assertIn("'/ibscope-nowhere'", said)
        self.assertIn('--wait', said)
        self.ctl('set', f'cgroup={cg.path},/ibscope-nowhere', code=2)
        self.ctl('set', 'container=ibscope-nowhere', code=2)
        self.assertEqual(self.status()['live'], before['live'])
        self.becomes('aggregated')
        out = self.set(ANEW, 'cgroup=/ibscope-nowhere', wait=True)
        self.assertIn('waiting for: --cgroup /ibscope-nowhere', out)
        self.assertEqual(self.status()['unresolved'], 1)
        # which is no reason to refuse anything else; and cgroups of others that died without a name end in "other" after a second
        self.set(LIVE, 'grace=1')
        self.becomes('cgroup')
        self.set(LIVE, f'cgroup={cg.path}')

        def cgroups():
            return {s['labels']['cgroup']: s['samples'] for s in self.snapshot('cgroup')['series']}
        # names come with the ticks; cgroups that died before that end in "other"
        before = until(lambda: (now := cgroups()).get(cg.path) and
                       all(c[0] == '/' or c == 'other' for c in now) and now, 120)
        self.becomes('cgroup', 'aggregated')
        self.assertEqual(self.status()['unresolved'], 0)
        after = cgroups()
        self.assertEqual({c for c in after if after[c] > before.get(c, 0) and c != 'other'}, {cg.path})
        # one that comes later is met, as at the start
        later = Cgroup(f'/ibscope-control-{os.getpid()}-later')
        self.addCleanup(later.remove)
        self.set(LIVE, f'cgroup={later.path}*', wait=True)
        other = Busy(max(os.sched_getaffinity(0)), later)
        self.addCleanup(other.stop)
        self.becomes('cgroup', 'aggregated')
        # several, and those to leave out
        self.set(LIVE, 'cgroup=/', f'cgroup=!{cg.path},{later.path}')
        self.becomes('cgroup', 'aggregated')
        # a threshold of its own takes a test of thresholds
        self.set(ANEW, f'cgroup={cg.path}:65535')
        self.becomes('cgroup', 'latency')
        self.set(LIVE, verb='reset')
        self.becomes('aggregated')

    def test_period(self):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        self.collector('--web.listen-address', f'127.0.0.1:{port}').wait('listening on')

        def metric(name):
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60) as f:
                return float(re.search(rf'^{name} (\S+)$', f.read().decode(), re.M)[1])
        self.assertEqual(metric('ibscope_sampling_period'), 200000)
        self.assertEqual(metric('ibscope_live_changes_total'), 0)
        before = self.snapshot()['ledger']
        self.set(LIVE, 'period=150000')
        self.becomes('aggregated')
        self.assertEqual(self.status()['period'], 150000)
        self.assertGreater(self.snapshot()['ledger']['seen'], before['seen'])
        until(lambda: metric('ibscope_sampling_period') == 150000)     # a scrape is shared for a while
        self.assertEqual(metric('ibscope_live_changes_total'), 1)
        # the frequency takes its place, and goes
        self.set(ANEW, 'freq=2000')
        self.assertIsNone(self.status()['period'])
        self.becomes('aggregated')
        # nor has an event that has one of its own both
        self.assertIn('conflicts with', self.ctl('set', 'event=ibs_op/cnt_ctl=1,period=150000/', code=2))
        self.set(ANEW, 'event=ibs_op/cnt_ctl=1,period=150000/', 'freq=', 'period=')
        self.assertEqual(self.status()['period'], 150000)
        self.assertIn('conflicts with', self.ctl('set', 'period=160000', code=2))
        self.set(ANEW, 'event', 'freq', 'period', verb='unset')
        self.set(ANEW, 'freq=2000')
        self.set(ANEW, 'period=100000')
        self.assertNotIn('freq', self.status()['live'])
        self.assertIn("-c (period): invalid number 'abc': must be from 10000 to 2^40 ns", self.ctl('set', 'period=abc', code=2))
        self.set(LIVE, verb='reset')
        self.assertEqual(self.status()['period'], 200000)

    def test_budget(self):
        self.collector()
        self.becomes('aggregated')
        self.assertEqual(self.status()['period'], 200000)
        self.set(LIVE, 'max-overhead=0.05%', 'nmi-cost=10us')
        until(lambda: self.status()['period'] > 1000000)
        # another budget goes on from there, as what was needed is known
        self.set(LIVE, 'max-overhead=0.06%')
        self.assertGreater(self.status()['period'], 1000000)
        self.set(LIVE, 'max-overhead', verb='unset')
        self.assertEqual(self.status()['period'], 200000)
        self.set(LIVE, 'period=100000')
        self.assertEqual(self.status()['period'], 100000)
        self.assertIn('--max-overhead', self.ctl('set', 'max-overhead=51%', code=2))
        self.becomes('aggregated')

    def test_layers(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('op = load\nkernel\nuser\n')
            f.flush()
            self.collector('--config', f.name, '--src', 'l1')
            self.assertLessEqual({'op', 'src'}, self.reasons({'op', 'src'}))
            self.set(ANEW, 'op=')
            self.assertEqual(self.reasons({'src'}) & {'op', 'src'}, {'src'})
            # what is edited meanwhile is not taken in
            f.write('bogus\n')
            f.flush()
            self.set(ANEW, 'src=')
            self.assertEqual(self.reasons() & {'op', 'src'}, set())
            self.assertIn('bogus', self.ctl('reload', code=2))
            self.set(ANEW, 'op', verb='unset')
            self.assertEqual(self.reasons({'op'}) & {'op', 'src'}, {'op'})
            self.set(ANEW, 'kernel=', 'user=')
            self.set(ANEW, 'user')
            self.assertEqual([x.split(' (')[0] for x in self.status()['live'].split(', ') if '=' in x or 'user' in x],
                             ['src=', 'kernel=', 'user'])
            self.set(ANEW, verb='reset')
            self.assertLessEqual({'op', 'src'}, self.reasons({'op', 'src'}))

    def test_status(self):
        c = self.collector()
        self.assertNotIn('set live', self.ctl('status'))
        self.set(ANEW, 'min-lat=5', 'max-lat=50000')
        text = self.ctl('status')
        self.assertRegex(text, r'set live: min-lat=5 \(uid 0, 20.* UTC\), max-lat=50000 \(uid 0, ')
        self.assertIn(f'control: {self.path}, 1 changes', text)
        self.assertIn(f'process {c.p.pid}', text)
        self.assertRegex(text, r'machine: 0 CPUs went offline, 0 came online, clock set \d+ times, ')
        c.wait('set min-lat=5 max-lat=50000: reopened')
        # the collector itself says the same
        asked = self.ctl('--control', self.path, 'status')
        self.assertEqual([x.split(':')[0] for x in asked.splitlines()], [x.split(':')[0] for x in text.splitlines()])
        pinned, own = (json.loads(self.ctl('--json', 'status', *args)) for args in ((), ('--control', self.path)))
        for key in 'live', 'period', 'starts', 'unresolved':
            self.assertEqual(pinned[key], own[key], key)
        for args in ((), ('--control', self.path)):
            self.assertEqual(residual(json.loads(self.ctl('--json', 'ledger', *args))), 0)
            self.assertRegex(self.ctl('ledger', *args), r'^seen [\d,]+ = aggregated [\d,]+ \+ filtered [\d,]+')
            status = json.loads(self.ctl('--json', 'status', *args))
            self.assertEqual(status['pid'], c.p.pid)
            self.assertEqual([status[k] for k in ('cpus_went_offline', 'cpus_came_online', 'groups_displaced',
                                                  'pmu_shared', 'suspends')], [0] * 5)

    def test_long_values(self):
        self.collector()
        self.set(ANEW, 'cgroup=/' + 'x' * 300, wait=True)
        self.assertRegex(self.status()['live'], r'^cgroup=/x{299} \.\. \(uid 0, [^()]* UTC\)$')
        self.set(LIVE, *['cgroup=/' + 'x' * 200] * 5, wait=True)
        live = self.status()['live']
        self.assertEqual((len(live), live[-3:]), (1023, ' ..'))

    def test_log_of_many_changes(self):
        c = self.collector('--max-overhead', 'off')
        for k in range(25):
            self.set('changed while sampling', f'period={400000 + 16 * k}')
        c.p.terminate()
        c.p.wait(60)
        said = c.said()
        self.assertEqual(said.count(': set period='), 10, said)
        self.assertIn('15 more changes by requests', said)

    def test_grace(self):
        self.collector()
        before = self.status()['starts']
        self.set(LIVE, 'grace=7', 'verbose')
        self.assertEqual(self.status()['starts'], before)

    @unittest.skipIf(os.getuid(), 'as root')
    @clock.every(20000)
    def test_hot_lines(self):
        def c2c(*args, **kw):
            return run('c2c', '--control', self.path, *args, **kw)
        c = self.collector('--hot-lines', '--feed', 'stores,caches,dram', '--control-mode', '0666', '-c', '20000')
        until(lambda: self.snapshot()['ledger']['aggregated'] > 40000)   # a line gets details with its fourth sample
        self.assertIn('restart the collector', self.ctl('set', 'hot-lines', code=2))
        self.assertIn('--min-lat', self.ctl('set', 'min-lat=200', code=2))
        said = until(lambda: (now := json.loads(c2c('--json').stdout))['hot']['kept'] and now)
        hot, lines = said['hot'], said['lines']
        self.assertEqual(sum(line['loads'] + line['stores'] > 0 for line in lines), len(lines))
        self.assertTrue(0 < hot['kept'] <= hot['fed'], hot)
        self.assertEqual(hot['feed'], ['stores', 'caches', 'dram'])
        self.assertEqual(said['total']['samples'], hot['kept'])
        self.assertGreater(len(c2c('--csv').stdout.splitlines()), 1)
        self.assertIn('SIMULATED', c2c('--top', '1').stdout)
        one = until(lambda: (p := c2c('--line', lines[0]['line'], '--json')).returncode == 0 and json.loads(p.stdout))
        self.assertEqual(sum(s['stores'] for s in one['line']['slots']), sum(r['stores'] for r in one['accesses']))
        self.assertIn('slots     ', c2c('--line', lines[0]['line']).stdout)
        p = c2c('--line', '7fff00000000')
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, r'0x7fff00000000 is not among the \d+ hottest lines')
        fed = r'^ibscope_hot_lines_samples_total\S* (\d+)$'
        once = [IBSCOPE + '-exporter', '--once', '--pin-dir', DIR]

        def is_fed():       # the status is written once a second
            found = re.search(fed, subprocess.run(once, capture_output=True, text=True).stdout, re.M)
            return found and int(found[1]) >= hot['fed']
        until(is_fed)
        p = subprocess.run([IBSCOPE, 'c2c', '--control', self.path], user=65534, capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('only root', p.stderr)
        self.assertEqual(c.stop(), 0)

    def test_refusals(self):
        c = self.collector()
        self.set(ANEW, 'min-lat=3')
        before = self.status()
        for args, said in (
                (['min-lat=x'], "--min-lat: invalid number 'x'"),
                (['min-lat=70000'], 'must be from 1 to 65535'),
                (['min-lat=5', 'max-lat=4'], '--min-lat 5 is above --max-lat 4'),
                (['max-lat=2'], '--min-lat 3 is above --max-lat 2'),
                (['min-lat'], "'min-lat' needs a value"),
                (['user=1'], "'user' takes no value"),
                (['no-such=1'], "unknown option 'no-such'"),
                (['period=1'], '-c (period): invalid period 1: must be from 10000'),
                (['period=200000', 'freq=100'], 'mutually exclusive'),
                (['pid=0'], '-p'),
                (['pid=1,!2'], '-p'),
                (['pid=4194303', 'grace=0'], '--grace'),
                (['op=lod'], 'lod'),
                (['filter=('], '--filter: column 2'),
                (['cpu=4000'], '-C'),
                (['cpu=x'], '-C'),
                (['container=a b'], '--container'),
                (['cgroup-hierarchy=bogus'], '--cgroup-hierarchy'),
                (['max-memory=1'], 'allow more with --max-memory'),
                (['config=/x'], 'ctl reload'),
                (['config-check'], 'cannot be set live'),
                (['explain'], 'cannot be set live'),
                (['hot-lines'], 'restart the collector'),
                (['feed=stores,caches'], 'restart the collector'),
                (['source=sim'], 'restart the collector'),
                (['pin-dir=/x'], 'restart the collector'),
                (['control=/x'], 'restart the collector'),
                (['control-mode=0666'], 'restart the collector'),
                (['web.listen-address=:80'], 'restart the collector'),
                (['min-lat=1\nmax-lat=2'], 'several lines'),
                ([''], 'an argument is empty'),
                (['=3'], 'missing name'),
                (['min-lat=\x1b[1m'], 'invalid character 0x1b'),
                (['x=' + 'y' * 70000], 'exceeds 65536 bytes'),
                ([], 'NAME=VALUE'),
        ):
            with self.subTest(args=[a[:40] for a in args]):
                code = 1 if 'max-memory=1' in args else 2
                said_now = self.ctl('set', *args, code=code)
                self.assertIn(said, said_now)
                self.assertEqual(self.status()['live'], before['live'])
        for args, said in ((['unset', 'max-lat'], 'not set live'), (['unset'], 'NAME'),
                           (['unset', 'min-lat=3'], 'without a value'), (['unset', 'min-lat', 'x'], 'not set live'),
                           (['reset', 'x'], 'takes no arguments'), (['set', '--json', 'min-lat=1'], 'does not take --json'),
                           (['unset', '--wait', 'min-lat'], 'does not take --wait'),
                           (['bogus'], "unknown verb 'bogus': must be one of status, ledger"), ([], 'missing verb')):
            self.assertIn(said, self.ctl(*args, code=2), args)
        after = self.status()
        self.assertEqual((after['pid'], after['live']), (c.p.pid, before['live']))
        self.becomes('latency', 'aggregated')
        self.assertIn(', 1 changes', self.ctl('status'))
        for request, said in ((b'', ''), (b'bogus\n', "error usage\nunknown verb 'bogus'"), (b'\n', 'error usage\n'),
                              (b'help\nx\n', 'error usage\n'), (b'status\ntext\n', 'error usage\n'),
                              (b'unset\na=b\n', 'error usage\n')):
            self.assertTrue(self.ask(request).startswith(said), request)
        self.assertEqual({x.split()[0] for x in self.ask(b'help\n').splitlines()[1:]},
                         {'status', 'dump', 'hot-lines', 'ledger', 'set', 'unset', 'reset', 'reload', 'stop', 'help'})

    def test_snapshot_by_what_is_counted(self):
        self.collector('--by', 'comm,src')
        table = self.ctl('snapshot')
        self.assertIn('COMM', table)
        self.assertNotIn('CONTAINER', table)
        self.assertTrue(all(set(s['labels']) == {'comm', 'src', 'op'}
                            for s in json.loads(self.ctl('--json', 'snapshot'))['series']))
        for key in 'pid', 'container':
            self.assertIn(f'--by {key}: not counted; available keys: comm',
                          self.ctl('--by', f'comm,{key}', 'snapshot', code=2))

    def test_counts_are_conserved(self):
        self.collector()
        rng = random.Random(1)
        seen = aggregated = 0
        ways = set()
        for _ in range(25):
            pick = rng.choice([f'min-lat={rng.randint(1, 3000)}', f'max-lat={rng.randint(3000, 60000)}', 'min-lat=',
                               f'pid={rng.randint(1, 4000)}', 'pid=', 'cgroup=/', 'cgroup=/nowhere',
                               f'period={rng.randrange(20000, 300000, 16)}', rng.choice(['op=load', 'op=', 'src=!l1'])])
            ways.add(self.ctl('--wait', 'set', pick).split(':')[0].split('\n')[0])
            now = self.snapshot()['ledger']
            self.assertGreaterEqual(now['seen'], seen)
            self.assertGreaterEqual(now['aggregated'], aggregated)
            seen, aggregated = now['seen'], now['aggregated']
        self.assertLessEqual({LIVE, ANEW}, ways)
        self.set(ANEW, verb='reset')
        self.becomes('aggregated')


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Socket(Case):
    def test_mode(self):
        # the group is that of the directory, as of one with the set-group-ID bit
        os.mkdir(os.path.dirname(self.path))
        os.chown(os.path.dirname(self.path), -1, 65532)
        os.chmod(os.path.dirname(self.path), 0o2755)
        c = self.collector('--control-mode', '0660', '--pin-mode', '0644')
        st = os.stat(self.path)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_gid), (0o660, 65532))

        def as_user(groups):
            return subprocess.run(['setpriv', '--reuid', '65533', '--regid', '65533', *groups, IBSCOPE, 'ctl',
                                   '--control', self.path, 'set', 'grace=9'], capture_output=True, text=True)
        p = as_user(['--clear-groups'])
        self.assertEqual(p.returncode, 1)
        self.assertIn('mode 660', p.stderr)
        p = as_user(['--groups', '65532'])
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('uid 65533', self.ctl('status'))
        c.stop()
        self.assertFalse(os.path.exists(self.path))
        for mode in ('8', '07777', '-1', 'x', '', '0x1'):
            p = run('serve', '--config-check', '--control-mode', mode)
            self.assertEqual(p.returncode, 2, mode)
        for path, code in (('run/x', 2), ('/' + 'x' * 102, 0), ('/' + 'x' * 103, 2)):
            self.assertEqual(run('serve', '--config-check', '--control', path).returncode, code)

    def test_default_mode(self):
        self.collector()
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(self.path)).st_mode), 0o755)

    def test_none(self):
        c = Collector('--control', 'none', '--unpin')
        self.addCleanup(self.end, c)
        self.assertIn('has no control socket', self.ctl('set', 'min-lat=1', code=1))
        self.assertNotIn('control:', self.ctl('status'))
        c.stop()
        self.assertIn('no collector', self.ctl('--control', self.path, 'set', 'min-lat=1', code=1))
        self.assertIn('no collector', self.ctl('set', 'min-lat=1', code=1))

    def test_stale_and_live_sockets(self):
        c = self.collector()
        c.stop(signal.SIGKILL)
        self.assertTrue(stat.S_ISSOCK(os.stat(self.path).st_mode))
        self.assertIn('nobody listens', self.ctl('--control', self.path, 'set', 'grace=3', code=1))
        self.assertIn('no collector is running', self.ctl('set', 'grace=3', code=1))
        self.collector()
        self.assertEqual(self.status()['live'], '')
        self.set(LIVE, 'grace=3')
        p = run('serve', '--source', 'sim', '--pin-dir', DIR + '-2', '--control', self.path)
        self.assertEqual(p.returncode, 1)
        self.assertIn('another process listens', p.stderr)
        os.rmdir(DIR + '-2/links')
        os.rmdir(DIR + '-2')
        self.set(LIVE, 'grace=4')

    def test_sighup_keeps_what_is_set(self):
        keep_busy(self)
        c = self.collector()
        self.set(ANEW, 'op=load')
        c.p.send_signal(signal.SIGHUP)
        c.wait('options reloaded')
        self.assertIn('op=load', self.status()['live'])
        self.becomes('op', 'aggregated')
        self.ctl('reload')
        self.becomes('op', 'aggregated')
        fds = len(os.listdir(f'/proc/{c.p.pid}/fd'))
        for _ in range(5):
            self.ctl('reload')
        self.assertLess(len(os.listdir(f'/proc/{c.p.pid}/fd')), fds + 3)

    def test_many_at_once(self):
        self.collector()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            jobs = [pool.submit(self.ctl, 'set', f'grace={n + 10}') for n in range(40)]
            jobs += [pool.submit(self.ctl, '--control', self.path, 'status') for _ in range(40)]
            answers = [j.result() for j in jobs]
        self.assertEqual({a.strip() for a in answers[:40]}, {LIVE})
        self.assertIn(', 40 changes', self.ctl('status'))

    def test_stopped_collector(self):
        """What its client believes failed is not applied half a minute later; who still waits is served."""
        c = self.collector()
        self.set(LIVE, 'grace=7')
        c.p.send_signal(signal.SIGSTOP)
        self.addCleanup(c.p.send_signal, signal.SIGCONT)

        def start(*args):
            p = self.enterContext(subprocess.Popen([IBSCOPE, 'ctl', '--pin-dir', DIR, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                   text=True))
            self.addCleanup(p.kill)
            return p

        def connections():
            """The socket, and those that are not accepted yet."""
            with open('/proc/net/unix', encoding='ascii') as f:
                return sum(self.path in line for line in f)
        self.assertEqual(connections(), 1)
        late, killed = start('set', 'period=400000'), start('set', 'min-lat=100')
        out, err = late.communicate(timeout=60)
        self.assertEqual((late.returncode, out), (1, ''), err)
        self.assertIn('failed: no answer from the collector within 30 s', err)
        killed.kill()
        killed.communicate()
        waits = start('set', 'grace=9')
        until(lambda: connections() == 4)
        c.p.send_signal(signal.SIGCONT)
        self.assertEqual(waits.communicate(timeout=60)[0].strip(), LIVE)
        # served in the order of their arrival, so the others would have been
        self.assertRegex(self.status()['live'], r'^grace=9 \(uid 0, [^()]*\)$')
        self.assertIn(', 2 changes', self.ctl('status'))

    def test_hostile_clients(self):
        keep_busy(self)
        c = self.collector()
        held = []
        for i in range(40):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.setblocking(False)
            s.connect(self.path)
            if i % 3 == 1:
                s.send(b'set\n')
            elif i % 3 == 2:
                s.send(b'status\n\n')     # and never reads
            held.append(s)
        began = time.time()
        self.set(LIVE, 'grace=5')
        self.assertLess(time.time() - began, 15)
        rng = random.Random(2)
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(self.path)
                try:
                    s.sendall(rng.randbytes(1 << 20))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertTrue(s.recv(1000).startswith(b'error usage\n'))
        # collection has gone on, and its ticks with it
        self.becomes('aggregated')
        until(lambda: json.loads(self.ctl('--json', 'status'))['age_s'] < 3)
        for s in held:
            s.close()
        self.set(LIVE, 'grace=6')
        self.assertLess(sum(f.startswith('socket:') for f in ibscope.open_files(c.p.pid)), 8)
        self.assertEqual(c.stop(), 0)

    def test_by_hand(self):
        self.collector()
        self.assertTrue(self.ask(b'set\r\ngrace = 8\r\n').startswith('ok\n' + LIVE))
        self.assertTrue(self.ask(b'# a file\nset\n# more\ngrace = 9\n').startswith('ok\n' + LIVE))
        self.assertIn('grace=9', self.ask(b'status'))
        self.assertEqual(residual(json.loads(self.ask(b'ledger\njson\n').split('\n', 1)[1])), 0)


if __name__ == '__main__':
    unittest.main()
