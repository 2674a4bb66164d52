# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recording from the software clock, and reading back what was recorded."""
import collections
import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import clock
import ibscope
from ibscope import Busy, Cgroup, stalled, until

OK, WHY = ibscope.can_bpf()
CPUS = sorted(os.sched_getaffinity(0))
CAT = os.path.join(ibscope.SAN, 'tests/unit/trace_cat')
SIM = ('--source', 'sim', '--sim-ops', 'random')    # as many loads whatever runs
SIM_CAPS = 0xbff
USER = 2**64 - 512  # PERF_CONTEXT_USER


def while_busy(cpu_s):
    """While each CPU is busy for this CPU time: a busy host may stop all for longer than a duration."""
    spin = shlex.join(ibscope.spin(cpu_s))
    return ['-a', '--', 'sh', '-c', ''.join(f'taskset -c {cpu} {spin} & ' for cpu in CPUS) + 'wait']


class Recorded:
    """A recording, read back."""

    def __init__(self, path):
        p = subprocess.run([CAT, path], capture_output=True, text=True)
        if p.returncode:
            raise AssertionError(p.stderr)
        self.events = [json.loads(line) for line in p.stdout.splitlines()]
        self.info, self.end = self.events[0], self.events[-1]
        self.kinds = collections.Counter(e['kind'] for e in self.events)

    def of(self, kind):
        return [e for e in self.events if e['kind'] == kind]


def ledger(stderr):
    """The numbers of the summary's ledger."""
    line = [x for x in stderr.splitlines() if x.startswith('ibscope: seen ')][-1]
    found = {name: int(n.replace(',', '')) for name, n in re.findall(r'(\w+) (\d[\d,]*)', line)}
    return found


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Record(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-record.')
        self.addCleanup(shutil.rmtree, self.dir)
        ibscope.keep_busy(self)

    def path(self, name):
        return os.path.join(self.dir, name)

    def written(self):
        """The ledger that was written last to the file of a program that runs: flushed now and then."""
        p = subprocess.run([CAT, self.path('ibscope.data'), 'end'], capture_output=True, text=True)
        return {} if p.returncode else json.loads(p.stdout.splitlines()[-1])

    def start(self, *args):
        p = subprocess.Popen([ibscope.IBSCOPE, 'record', *SIM, *args], cwd=self.dir,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def test_storm_before_the_command(self):
        """What others map while record starts does not cost the command its names: the buffers are empty when it starts."""
        storm = 'import mmap\nfor i in range(12000): mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()'
        maps, storms = [], 0
        while not maps and storms < 3:    # stopped between the two steps, it loses them all the same
            p = self.start('-c', '100000', '-o', self.path('x'), '--', 'sh', '-c', 'i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done')
            while not os.listdir(self.dir) and p.poll() is None:
                pass
            p.send_signal(signal.SIGSTOP)
            ran = subprocess.run(['pgrep', '-P', str(p.pid), '-x', 'sh'], stdout=subprocess.DEVNULL).returncode == 0
            for cpu in () if ran else CPUS:
                subprocess.run(['taskset', '-c', str(cpu), sys.executable, '-IS', '-c', storm], check=True)
            p.send_signal(signal.SIGCONT)
            err = p.communicate(timeout=60)[1]
            self.assertEqual(p.returncode, 0, err)
            if not ran:
                storms += 1
                # in the same words; where nothing is mapped after a loss, the kernel writes no record of it
                for text in err, ibscope.run('report', '--csv', self.path('x')).stderr:
                    self.assertRegex(text, r'(?m)[0-9,]+ records of process names and mappings were lost; some samples have no names$')
                maps = [e for e in Recorded(self.path('x')).of('mmap') if re.search('/(da|ba)?sh$', e['path'])]
            os.remove(self.path('x'))
        self.assertTrue(maps, 'the program of the command has no name')

    def test_lost_at_the_end(self):
        """What nothing follows is never told by the kernel in a record: the file has it all the same, to the unit."""
        storm = 'import mmap\nfor i in range(12000): mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()'
        p = self.start('-c', '1000000')
        self.until_written(p, lambda l: l.get('forwarded'))
        p.send_signal(signal.SIGSTOP)
        for cpu in CPUS:
            subprocess.run(['taskset', '-c', str(cpu), sys.executable, '-IS', '-c', storm], check=True)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        self.finish(p, sig=signal.SIGCONT)
        lost = r'(?m)([0-9,]+) records of process names and mappings were lost'
        said = re.search(lost, p.stderr).group(1)
        self.assertEqual(re.search(lost, ibscope.run('report', '--csv', self.path('ibscope.data')).stderr).group(1), said)

    def until_written(self, p, done):
        until(lambda: p.poll() is not None or done(self.written()))

    def finish(self, p, status=0, sig=signal.SIGINT):
        if p.poll() is None:
            p.send_signal(sig)
        p.stderr = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def record_until(self, n, *args):
        """With so many samples in the file, or more."""
        p = self.start('--max-loss', '100%', *args)
        self.until_written(p, lambda l: l.get('forwarded', 0) >= n)
        return self.finish(p)

    def record(self, *args, status=0, **kw):
        """The instrumented program on a busy machine may lose a lot, which is a failure by default."""
        p = ibscope.run('record', *SIM, '--max-loss', '100%', *args, cwd=self.dir, **kw)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def check_whole(self, got, p):
        """The file, its ledger and the summary agree to the unit."""
        told = ledger(p.stderr)
        self.assertEqual(got.end['whole'], 1, got.end['missing'])
        self.assertEqual(got.end['residual'], 0)
        self.assertEqual(got.end['forwarded'], got.kinds['sample'])
        self.assertEqual(told['forwarded'], got.kinds['sample'])
        self.assertEqual(told['seen'], got.end['seen'])

    def test_maps_of_data(self):
        """Maps of an existing process, of a new one, and none of data with --code-maps."""
        sleeper = subprocess.Popen(['sleep', '60'])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        until(lambda: os.readlink(f'/proc/{sleeper.pid}/exe').endswith('sleep'))
        for args in ([], ['--code-maps']):
            # others begin processes meanwhile, whose maps may fill the ring; that is told
            until(lambda: 'mappings were lost' not in self.record(*args, '-a', '-o', self.path('m'), '--', 'sleep', '0.2').stderr)
            p = ibscope.run('dump', '--events', self.path('m'))
            maps = [line for line in p.stdout.splitlines() if line.startswith('mmap')]
            heaps = [line for line in maps if '"[heap]"' in line]
            self.assertEqual(any(f'pid {sleeper.pid}/' in line for line in heaps), not args)
            began = set(re.findall(r'^comm .* pid (\d+)/.* exec .*"sleep"', p.stdout, re.M))
            # perf says [heap] only of a heap that has grown before
            self.assertEqual(any(re.search(r'pid (\d+)/', line)[1] in began and ' exec ' not in line for line in maps),
                             not args)
            self.assertEqual(all(' exec ' in line for line in maps), bool(args))

    def test_equals_the_model(self):
        """Each CPU's n-th sample is known: every record is, register by register."""
        p = self.record_until(2000, '-c', '100000', '--seed', '5', '--raw')
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertEqual((got.info['simulated'], got.info['source'], got.info['period']),
                         (1, 'sim', 100000))
        self.assertGreater(got.kinds['sample'], 1000)
        self.assertEqual(got.kinds['sample'], got.end['seen'])
        for cpu in {s['cpu'] for s in got.of('sample')}:
            regs = [s['regs'] for s in got.of('sample') if s['cpu'] == cpu]
            # seen is counted before the model is asked, so a CPU's first sample is number 1 or 0
            first = next(n for n in (0, 1) if model(5, cpu, n) == regs[0][:7])
            for n, r in enumerate(regs):
                self.assertEqual(r[:7], model(5, cpu, n + first))

    def test_packed_equals_raw(self):
        """The same simulated samples in both kinds of record."""
        fields = {}
        for kind in (), ('--raw',):
            self.record('-c', '200000', '-o', 'x', *kind, *while_busy(0.2))
            got = Recorded(self.path('x'))
            fields[kind] = collections.defaultdict(list)
            for s in got.of('sample'):
                fields[kind][s['cpu']].append(s['regs'][1:7])
                self.assertEqual(s['caps'], SIM_CAPS)
        for cpu in fields[()]:
            n = min(len(f[cpu]) for f in fields.values())
            self.assertGreater(n, 100)
            self.assertEqual(fields[()][cpu][:n], fields[('--raw',)][cpu][:n])

    @clock.every(20000)
    def test_order(self):
        self.record('-c', '20000', *while_busy(0.2))
        times = [s['time'] for s in Recorded(self.path('ibscope.data')).of('sample')]
        self.assertEqual(times, sorted(times))

    def test_duration_is_kept(self):
        """At the highest rate and with the smallest ring; the machine goes on, whatever its clock costs."""
        def record(*args):
            began = time.monotonic()
            p = self.record(*args, '--ring-size', '16K', '--duration', '1')
            return time.monotonic() - began, p
        # beside whatever else runs here
        usual, _ = record('-c', '100000000')
        for args in ('-c', '10000'), ('-F', '100000'), ('-e', 'ibs_op//,ibs_fetch//', '-c', '20000,20000'):
            with self.subTest(args=args):
                took, p = record(*args)
                self.assertLess(took, 4 * usual + 1)
                m = re.search(r'a sample each (\d+) ns instead of 10000: an interrupt of the clock takes (\d+) ns', p.stderr)
                print(f'# {args}: {took:.1f} s, {m[0] if m else "the rate asked for"}')
                if m:
                    self.assertGreaterEqual(int(m[1]), 2 * int(m[2]))
                if '-e' not in args:
                    self.check_whole(Recorded(self.path('ibscope.data')), p)

    def test_task_and_cgroup(self):
        """Samples of a busy process have its ids, and the file has its name and cgroup."""
        cgroup = Cgroup(f'ibscope-test-{os.getpid()}/record')
        busy = Busy(CPUS[0], cgroup)
        try:
            busy.runs()
            p = self.record_until(200, '-c', '200000', '--cgroup', cgroup.path)
        finally:
            busy.stop()
            cgroup.remove()
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertGreater(got.kinds['sample'], 100)
        self.assertEqual({(s['tgid'], s['tid'], s['cgroup'], s['cpu']) for s in got.of('sample')},
                         {(busy.pid, busy.pid, got.of('cgroup')[0]['id'], CPUS[0])})
        self.assertEqual([e['path'] for e in got.of('cgroup')], [cgroup.path])
        names = {e['name'] for e in got.of('comm') if e['tid'] == busy.pid}
        self.assertEqual(names, {os.path.basename(sys.executable)[:15]})
        maps = {e['path'] for e in got.of('mmap') if e['tgid'] == busy.pid}
        self.assertIn(os.path.realpath(sys.executable), maps)
        self.assertIn('cgroup', got.info['filter'])

    def test_command(self):
        """A command is recorded from its first instruction, with its forks, execs and maps."""
        p = self.record('-c', '100000', '--code-maps', '--', 'sh', '-c',
                        'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; ls -d /; exit 7',
                        status=7)
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertIn('/\n', p.stdout)
        names = {e['tid']: e['name'] for e in got.of('comm') if e['exec']}
        sampled = collections.Counter(s['tid'] for s in got.of('sample'))
        shell = sampled.most_common(1)[0][0]
        self.assertEqual(names.get(shell), 'sh', (names, sampled, p.stderr))
        self.assertIn('ls', names.values())
        execs = [e for e in got.of('mmap') if e['tgid'] == shell]
        self.assertTrue(any(e['path'].endswith(('sh', 'dash')) for e in execs), execs)
        self.assertTrue(any(e['build_id'] == 20 for e in execs), execs)
        self.assertTrue(any(e['tid'] == shell for e in got.of('exit')))
        # what others run and map is theirs
        self.assertNotIn(os.getpid(), {e['tgid'] for e in got.of('comm') + got.of('mmap')})

    def test_only_what_concerns_the_process(self):
        busy = Busy(CPUS[0])
        try:
            busy.runs()
            self.record_until(20, '-p', str(busy.pid))
        finally:
            busy.stop()
        got = Recorded(self.path('ibscope.data'))
        # in a PID namespace, 0 is all that is outside
        self.assertEqual({e['tgid'] for e in got.of('comm') if e['name'] != '[outside]'}, {busy.pid})
        self.assertEqual({s['tgid'] for s in got.of('sample')}, {busy.pid})

    def test_stacks(self):
        """Call chains lead into what the process has mapped."""
        busy = Busy(CPUS[0])
        try:
            busy.runs()
            p = self.record_until(100, '-g', '-c', '100000', '-p', str(busy.pid))
        finally:
            busy.stop()
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        text = [(e['start'], e['start'] + e['len']) for e in got.of('mmap')]
        user = [s['stack'][s['stack'].index(USER) + 1:] for s in got.of('sample')
                if USER in s['stack'][:-1]]
        self.assertGreater(len(user), 0.8 * got.kinds['sample'])
        self.assertGreater(len(user), 20)
        known = sum(any(low <= stack[0] < high for low, high in text) for stack in user)
        self.assertGreater(known, 0.9 * len(user))

    def test_stacks_and_all_registers(self):
        # a task in system calls, whose chains are long; idle CPUs and programs without frame pointers have short ones
        p = self.record('-g', '--raw', '-a', '-c', '1000000', '--', 'sh', '-c', 'echo $$; exec dd if=/dev/zero of=/dev/null bs=1M count=4000 status=none')
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertTrue(all(s['caps'] == SIM_CAPS for s in got.of('sample')))
        its = [s for s in got.of('sample') if s['tid'] == int(p.stdout)]
        self.assertGreater(len(its), 20)
        self.assertGreater(sum(len(s['stack']) > 1 for s in its), 0.9 * len(its))

    def test_json(self):
        p = self.record('--json', '-c', '500000', *while_busy(0.2))
        lines = [json.loads(x) for x in p.stdout.splitlines()]
        self.assertEqual(len(lines), ledger(p.stderr)['forwarded'])
        self.assertGreater(len(lines), 100)
        for o in lines:
            self.assertEqual(o['source'], 'sim')
            self.assertIn('cgroup', o)
        self.assertFalse(os.listdir(self.dir))

    def test_two_events(self):
        """Both in one recording, in the order of time, each with its ledger; a fetch is what the model says."""
        for kind in (), ('--raw', '-g'):
            p = self.record('-e', 'ibs_op//', '-e', 'ibs_fetch//', '-c', '200000,100000', '--seed', '5',
                            *kind, *while_busy(0.2))
            got = Recorded(self.path('ibscope.data'))
            self.assertEqual((got.end['whole'], got.end['residual']), (1, 0))
            times = [e['time'] for e in got.events if e['kind'] in ('sample', 'fetch')]
            self.assertEqual(times, sorted(times))
            self.assertEqual([e['forwarded'] for e in got.end['events']], [got.kinds['sample'], got.kinds['fetch']])
            for pmu, events in zip(('ibs_op', 'ibs_fetch'), got.end['events']):
                line = next(x for x in p.stderr.splitlines() if f'ibscope: {pmu}: seen' in x)
                self.assertIn(f'seen {events["seen"]:,} = aggregated 0 + forwarded {events["forwarded"]:,} ', line)
                self.assertEqual(events['seen'], events['forwarded'] + events['ring_full'])
            if got.end['ring_full']:
                continue
            per_cpu = collections.Counter(e['cpu'] for e in got.of('fetch'))
            self.assertGreater(sum(per_cpu.values()), 100)
            want = subprocess.run([os.path.join(ibscope.SAN, 'tests/unit/ibs_sim'), 'fetch', '5', hex(SIM_CAPS),
                                   *(f'{cpu}:{n}' for cpu, n in per_cpu.items())], capture_output=True, text=True)
            latencies = sum(int(x.split()[3]) for x in want.stdout.splitlines() if ' sum ' in x)
            # completed ones have a latency
            self.assertEqual(sum(e['regs'][0] >> 32 & 0xffff for e in got.of('fetch') if e['regs'][0] >> 50 & 1), latencies)

    @clock.every(50000)
    def test_fetch_csv(self):
        p = self.record('-e', 'ibs_fetch//', '-c', '50000', '--csv', '--filter', 'fetch == l3-miss', *while_busy(0.2))
        rows = list(csv.DictReader(io.StringIO(p.stdout)))
        self.assertEqual(len(rows), ledger(p.stderr)['forwarded'])
        self.assertEqual({(r['type'], r['fetch_l3_miss']) for r in rows}, {('ibs_fetch', '1')})

    def test_csv_to_a_file(self):
        p = self.record('--csv', '-o', 'x.csv', '--op', 'load', *while_busy(0.2))
        with open(self.path('x.csv')) as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), ledger(p.stderr)['forwarded'])
        self.assertEqual({r['op'] for r in rows}, {'load'})
        self.assertEqual(p.stdout, '')

    def test_stdout(self):
        with open(self.path('x'), 'wb') as f:
            p = subprocess.run([ibscope.IBSCOPE, 'record', '--source', 'sim', '-o', '-', *while_busy(0.2)],
                               stdout=f, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.check_whole(Recorded(self.path('x')), p)

    def test_no_recording_on_a_terminal(self):
        ours, theirs = pty.openpty()
        p = subprocess.run([ibscope.IBSCOPE, 'record', '--source', 'sim', '-o', '-'],
                           stdout=theirs, stderr=subprocess.PIPE, text=True)
        os.close(theirs)
        os.close(ours)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn('terminal', p.stderr)

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        subprocess.run([ibscope.IBSCOPE, 'record', '--source', 'sim', '--duration', '1.4', '-o',
                        self.path('x')], stderr=theirs, check=True)
        said = ibscope.read_terminal(ours, theirs)
        self.assertRegex(said, r'\d+/s  kept [\d,]+  rejected 0  lost 0')

    def test_keeps_an_old_file(self):
        for text in 'first', 'second':
            with open(self.path('ibscope.data'), 'w') as f:
                f.write(text)
            p = self.record('--duration', '0.1')
            self.assertIn('ibscope.data.old', p.stderr)
            with open(self.path('ibscope.data.old')) as f:
                self.assertEqual(f.read(), text)

    @clock.every(50000)
    def test_signals_end_in_order(self):
        for sig in signal.SIGINT, signal.SIGTERM:
            p = self.start('-c', '50000', '--max-loss', '100%')
            self.until_written(p, lambda l: l.get('forwarded'))
            self.finish(p, sig=sig)
            self.check_whole(Recorded(self.path('ibscope.data')), p)
            os.unlink(self.path('ibscope.data'))    # else the next one seems to have written it

    @clock.every(50000)
    def test_killed(self):
        """What was flushed is there, and the file says that the end is missing."""
        p = self.start('-c', '50000')
        self.until_written(p, lambda l: l.get('forwarded', 0) > 1000)
        self.finish(p, -signal.SIGKILL, signal.SIGKILL)
        got = Recorded(self.path('ibscope.data'))
        self.assertGreater(got.kinds['sample'], 1000)
        self.assertEqual((got.end['whole'], got.end['residual']), (0, 0))
        # the last ledger is older than the last block
        self.assertGreater(got.end['forwarded'], 1000)
        self.assertLessEqual(got.end['forwarded'], got.kinds['sample'])

    def stopped_reader(self, enough, *args, status, seconds):
        """A reader that stands still now and then, until `enough` of its ledger holds: what did not
        fit is counted, to the unit."""
        p = self.start(*args)
        self.until_written(p, lambda l: l.get('forwarded'))
        while p.poll() is None and not enough(now := self.written()):
            p.send_signal(signal.SIGSTOP)
            time.sleep(seconds)     # a ring cannot be looked at
            p.send_signal(signal.SIGCONT)
            self.until_written(p, lambda l: l.get('seen', 0) > now['seen'])
            seconds *= 1.5
        self.finish(p, status)
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertTrue(enough(got.end))
        self.assertEqual(got.end['seen'], got.kinds['sample'] + got.end['ring_full'])
        times = [s['time'] for s in got.of('sample')]
        self.assertEqual(times, sorted(times))
        os.unlink(self.path('ibscope.data'))
        return p.stderr

    def stopped_with_much_lost(self, *args, status):
        return self.stopped_reader(lambda l: l['ring_full'] > 1000, '-c', '100000', '--ring-size', '64K', *args,
                                   status=status, seconds=1)

    def test_stopped_reader(self):
        said = self.stopped_with_much_lost('--max-loss', '99.9%', status=0)
        self.assertNotIn('--max-loss', said)

    def test_too_much_is_lost(self):
        said = self.stopped_with_much_lost('--max-loss', '0.1%', status=1)
        self.assertRegex(said, r'warning: [0-9.]+% of the last samples were lost because a buffer was full')
        self.assertRegex(said, r'error: [0-9.]+% of the samples .*--max-loss allows \(0.1%\)')

    def test_few_are_lost(self):
        """A reader that stalls until the ring of 256 is full, and little longer."""
        for allowed, status in (('0%', 1), ('2%', 1), ('99%', 0)):
            self.stopped_reader(lambda l: l['ring_full'] > 0.03 * l['seen'] > 10, '-C', '0', '-c', '5000000',
                                '--ring-size', '16K', '--max-loss', allowed, status=status, seconds=1.6)

    @clock.every(20000)
    def test_nothing_lost_at_a_high_rate(self):
        """50,000 samples a second and CPU, in rings that hold more than all of them."""
        p = self.record('-c', '20000', '--duration', '0.7', '--ring-size', '16M')
        got = Recorded(self.path('ibscope.data'))
        self.check_whole(got, p)
        self.assertEqual(got.end['ring_full'], 0)

    @clock.every(50000)
    def test_compressed(self):
        bytes_each = []
        for options in (), ('-z',):
            p = self.record('-c', '50000', '-o', 'x', *options, *while_busy(0.2))
            got = Recorded(self.path('x'))
            self.check_whole(got, p)
            bytes_each.append(os.path.getsize(self.path('x')) / got.kinds['sample'])
        self.assertLess(bytes_each[1], 0.8 * bytes_each[0])

    @clock.every(20000)
    def test_max_size(self):
        for kind in (), ('--json',):
            self.record('-c', '20000', '--max-size', '300K', '-o', 'x', '--ring-size', '64K', *kind)
            size = os.stat(self.path('x')).st_size
            self.assertGreater(size, 280 << 10)
            # it is looked at after all that came was written, which is what rings hold
            self.assertLess(size, 4 << 20 if kind else 1 << 20)

    @clock.every(20000)
    def test_rotate(self):
        """Ledgers of the files add up; each is whole and knows names of its own."""
        p = self.start('-c', '20000', '--max-size', '200K', '--rotate', '50', '--max-loss', '100%', '--ring-size', '256K')
        until(lambda: p.poll() is not None or os.path.exists(self.path('ibscope.data.2')))
        self.finish(p)
        names = sorted(os.listdir(self.dir))
        self.assertGreater(len(names), 2, names)
        files = [Recorded(self.path(n)) for n in names]
        total = collections.Counter()
        for f in files:
            self.assertEqual((f.end['whole'], f.end['residual']), (1, 0))
            self.assertEqual(f.end['forwarded'], f.kinds['sample'])
            self.assertGreater(f.kinds['comm'], 10)
            if f.kinds['sample']:       # the last one may have been begun just before the end
                self.assertGreater(f.kinds['cgroup'], 0)
            total.update(seen=f.end['seen'], forwarded=f.end['forwarded'])
        told = ledger(p.stderr)
        self.assertEqual(total['seen'], told['seen'])
        self.assertEqual(total['forwarded'], told['forwarded'])
        order = [self.path('ibscope.data' + (f'.{n}' if n else ''))
                 for n in reversed(range(len(names)))]
        times = [s['time'] for f in order for s in Recorded(f).of('sample')]
        self.assertEqual(times, sorted(times))

    @clock.every(20000)
    def test_rotate_keeps_n(self):
        def inode(name):
            return os.path.exists(self.path(name)) and os.stat(self.path(name)).st_ino
        p = self.start('-c', '20000', '--max-size', '100K', '--rotate', '2', '--max-loss', '100%')
        first = until(lambda: p.poll() is not None or inode('ibscope.data.1'))
        until(lambda: p.poll() is not None or inode('ibscope.data.1') != first)
        self.finish(p)
        self.assertEqual(sorted(os.listdir(self.dir)), ['ibscope.data', 'ibscope.data.1'])

    def test_without_proc(self):
        """Where proc is not mounted, samples are recorded, and one line says what is missing."""
        program = os.path.join(ibscope.BUILD, 'ibscope')  # sanitizers need /proc
        p = subprocess.run(['unshare', '-m', 'sh', '-ec', 'mount -t tmpfs none /proc; exec "$@"', '-', program, 'record', *SIM,
                            '-o', self.path('x'), '--duration', '1'], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr.count('proc is not mounted on /proc'), 1, p.stderr)
        self.assertGreater(Recorded(self.path('x')).kinds['sample'], 0)

    def test_full_device(self):
        for kind in (), ('--json',):
            p = self.record('-o', '/dev/full', '--duration', '3', *kind, status=1)
            self.assertIn('/dev/full', p.stderr)
            self.assertIn('No space left', p.stderr)

    @unittest.skipUnless(os.geteuid() == 0, 'mounting needs root')
    @clock.every(20000)
    def test_full_disk(self):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=2m', 'none', self.dir], check=True)
        try:
            p = ibscope.run('record', '--source', 'sim', '-c', '20000', '-o', self.path('x'),
                            '--duration', '20')
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn('No space left', p.stderr)
            self.assertGreater(ledger(p.stderr)['seen'], 10000)
            got = Recorded(self.path('x'))
            self.assertGreater(got.kinds['sample'], 10000)
            self.assertEqual((got.end['whole'], got.end['residual']), (0, 0))
        finally:
            subprocess.run(['umount', self.dir], check=True)

    @unittest.skipUnless(os.geteuid() == 0, 'mounting needs root')
    def test_disk_is_full_before(self):
        """The recording of before keeps its name if there is no place for a new one."""
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4k', 'none', self.dir], check=True)
        try:
            with open(self.path('x'), 'wb') as f:
                f.write(bytes(4096))
            p = ibscope.run('record', '--source', 'sim', '-c', '1000000', '-o', self.path('x'), '--', 'true')
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn('No space left', p.stderr)
            self.assertEqual(os.listdir(self.dir), ['x'])
            self.assertEqual(os.stat(self.path('x')).st_size, 4096)
        finally:
            subprocess.run(['umount', self.dir], check=True)

    @clock.every(20000)
    def test_stalled_pipe(self):
        """Nobody reads: the end does not wait for ever."""
        ours, theirs = os.pipe()
        p = subprocess.Popen([ibscope.IBSCOPE, 'record', '--source', 'sim', '-c', '20000', '--json'],
                             stdout=theirs, stderr=subprocess.PIPE, text=True)
        os.close(theirs)
        until(lambda: stalled(ours))
        p.terminate()
        said = p.communicate(timeout=60)[1]
        os.close(ours)
        self.assertEqual(p.returncode, 1, said)
        self.assertIn('the reader of the output is blocked', said)

    def test_usage_of_two_events(self):
        for args, said in ((('-e', 'ibs_op//,ibs_fetch//', '--csv'), 'two events have different columns'),
                           (('-e', 'ibs_op//', '-e', 'ibs_op/cnt_ctl=1/'), 'two events of ibs_op'),
                           (('-e', 'ibs_op//', '-e', 'ibs_fetch//', '-e', 'ibs_op//'), 'at most two events'),
                           (('-e', 'ibs_op//,ibs_fetch//', '--src', 'dram'), 'samples of ibs_fetch do not have that')):
            self.assertIn(said, self.record(*args, status=2).stderr)

    def test_usage(self):
        for args, why in (
                (('--csv', '--json'), 'exclude'),
                (('-g', '--csv'), 'call chains'),
                (('--rotate', '3'), '--max-size'),
                (('--rotate', '1', '--max-size', '1M'), '--rotate'),
                (('--rotate', '3', '--max-size', '1M', '--json'), 'standard output'),
                (('--ring-size', '3X'), 'K, M or G'), (('--max-loss', '5'), '0.5%'),
                (('--max-loss', '101%'), '100%'),
                (('--ring-size', '1K'), '16K'),
                (('--max-size', ''), 'K, M or G'),
                (('--duration', '0'), '1ms'), (('--duration', '5x'), 'invalid duration'),
                (('--by', 'pid'), '--by'),
                (('sleep', '1'), "after '--'")):
            with self.subTest(args):
                p = self.record(*args, status=2)
                self.assertIn(why, p.stderr)
                self.assertFalse(os.listdir(self.dir))

    def test_command_not_found(self):
        self.record('--', '/nonexistent/x', status=127)

    def test_not_enough_memory(self):
        p = self.record('--max-memory', '4', '--ring-size', '4M', status=1)
        self.assertIn('--max-memory', p.stderr)

    def test_help(self):
        p = ibscope.run('record', '--help')
        self.assertEqual(p.returncode, 0)
        for o in '--raw', '--ring-size', '--rotate', '--max-size', '--filter', '--csv':
            self.assertIn(o, p.stdout)
        self.assertNotRegex(p.stdout, r'(?m)^ +--by ')


MASK = (1 << 64) - 1


def mix(z):
    z = (z + 0x9e3779b97f4a7c15) & MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def model(seed, cpu, n):
    """What <ibscope/sim.h> says of a CPU's n-th sample, on Zen 4."""
    rows = ((150, 1, 0, 45, 63), (166, 2, 0, 120, 127), (182, 5, 0, 200, 255), (230, 3, 0, 280, 255),
            (246, 3, 1, 400, 511), (250, 8, 0, 650, 1023), (253, 7, 0, 1500, 4095),
            (256, 0, 0, 40, 255))
    r = mix((mix(seed ^ cpu << 32) + n) & MASK)
    r2 = mix(r)
    kind, draw = r & 255, r >> 32 & 255
    data, data2, data3, lat = (r2 & 31) + 1, 0, 0, 0
    if kind < 97:
        data3 = 1
    elif kind < 138:
        data3 = 2
    elif kind < 148:
        data3 = 3 | 1 << 15
    elif kind < 202:
        data |= 1 << 37
    if data3:
        data3 |= 1 << 17 | 1 << 18
        if r >> 8 & 255 < 23:
            data3 |= 1 << 2 | 8 + (r2 >> 8 & 255) << 48
        if r >> 16 & 255 < 72:
            data3 |= 1 << 7
    if data3 & 1 << 7 and r >> 24 & 255 < 140:
        data3 |= 1 << 20
        _, code, rmt, least, mask = next(x for x in rows if draw < x[0])
        lat = least + (r2 >> 16 & mask)
        if data3 & 1:
            data2 = code & 7 | rmt << 4 | code >> 3 << 6
    elif data3 & 1 << 7:
        lat = 11 + (r2 >> 16 & 15)
    if data3 & 1:
        data3 |= lat << 32
    return [1 << 17 | 1 << 18, 0x400000 + (r2 >> 40), data | (data & 0xffff) + 20 + lat << 16, data2,
            data3, 0x7f0000000000 | r2 >> 24 & r >> 40 & 0xffffff if data3 else 0,
            0x100000000 | r2 >> 24 & r >> 40 & 0xffffff if data3 else 0]


if __name__ == '__main__':
    unittest.main()
