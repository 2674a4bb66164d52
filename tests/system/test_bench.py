# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ibscope bench`: every measurement has a figure or a reason, and nothing is left behind."""
import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
import uuid

from ibscope import IBSCOPE, can_bpf, run

OK, WHY = can_bpf()
HAS_IBS = os.path.exists('/sys/bus/event_source/devices/ibs_op')
NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
FROM_CLOCK = 'software clock: interrupt, not NMI; SIMULATED registers'
FROM_TWIN = 'run on request: no interrupt; SIMULATED registers'

CASES = {
    'program': 'rejected-pid rejected-cgroup rejected-cgroup-1000 rejected-latency rejected-op rejected-src '
               'aggregated-one aggregated aggregated-pid aggregated-cgroup-comm forwarded forwarded-raw '
               'copy-rejected-latency copy-aggregated',
    'situ': 'empty rejected-pid rejected-cgroup rejected-latency rejected-op rejected-src aggregated-one aggregated '
            'aggregated-pid forwarded forwarded-raw',
    'sample.4000': 'empty event rejected-pid rejected-cgroup rejected-latency aggregated forwarded',
    'peer': 'empty event rejected aggregated record perf-record-file perf-script perf-record-pipe '
            'perf-record-filter perf-mem-record',
    'ratio': 'rejected perf-record perf-record-script perf-filter',
    'rings': 'take take-z take-raw rate',
}
CASES['cold'] = CASES['program']
CASES['sample.16000'] = CASES['sample.4000']


def names():
    """What --help says can be measured."""
    text = run('bench', '--help').stdout.split('Measurements:\n')[1].split('\n\n')[0]
    return re.findall(r'^  (\w+)', text, re.M)


def cmdline(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as f:
            return f.read()
    except OSError:
        return b''


class Case(unittest.TestCase):
    """Processes and files of a run are found by a mark in their environment, and by TMPDIR."""

    def setUp(self):
        self.mark = 'IBSCOPE_TEST_MARK=' + uuid.uuid4().hex
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        os.chmod(self.tmp, 0o777)
        self.env = dict(os.environ, TMPDIR=self.tmp, **dict([self.mark.split('=')]))
        self.addCleanup(self.clean)

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/environ', 'rb') as f:
                    if self.mark.encode() in f.read():
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def clean(self):
        for _ in range(20):  # what was killed takes a moment to be gone
            if not self.processes():
                break
            time.sleep(0.1)
        self.assertEqual(self.processes(), [])
        self.assertEqual(os.listdir(self.tmp), [])

    def bench(self, *args, timeout=300, env=None, prefix=()):
        return subprocess.run([*prefix, IBSCOPE, 'bench', *args], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env=dict(self.env, **(env or {})))

    def report(self, *args, **kw):
        p = self.bench('--json', '--quick', *args, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        o = json.loads(p.stdout)
        return o, self.rows(o)

    def rows(self, o):
        for r in o['measurements']:
            self.assertTrue(r['name'] and r['what'] and r['from'], r)
            self.assertNotEqual('value' in r, 'unavailable' in r, r)
            if 'unavailable' in r:
                self.assertTrue(r['unavailable'].strip(), r)
                continue
            self.assertTrue(r['unit'], r)
            for k, v in r.items():
                if not isinstance(v, str):
                    self.assertTrue(math.isfinite(v), r)
            self.assertGreater(r['value'], 0, r)
            self.assertEqual('spread' in r, 'rounds' in r, r)
            if 'rounds' in r:
                self.assertGreaterEqual(r['spread'], 0, r)
                self.assertGreater(r['value'], r['spread'], r)
                self.assertGreaterEqual(r['rounds'], 5, r)
        rows = {r['name']: r for r in o['measurements']}
        self.assertEqual(len(rows), len(o['measurements']))
        return rows


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Whole(Case):
    def test_every_row(self):
        begin = time.time()
        o, rows = self.report(timeout=600)
        print(f'{len(rows)} rows, {sum("value" in r for r in rows.values())} with figures, '
              f'in {time.time() - begin:.0f} s')
        self.assertEqual(o['source'], 'ibs' if HAS_IBS else 'sim')
        self.assertEqual(o['simulated'], not HAS_IBS)
        self.assertEqual((o['unit'], o['instructions'], o['quick'], o['interrupted']), ('ns', False, True, False))
        for m in names():
            mine = [n for n in rows if n == m or n.startswith(m + '.')]
            self.assertTrue(mine, m)
        for prefix, cases in CASES.items():
            for c in cases.split():
                self.assertIn(f'{prefix}.{c}', rows)
        for name, r in rows.items():
            if name.startswith('memory.'):
                self.assertEqual(r['from'], 'computed')
            elif name.split('.')[0] in ('program', 'cold', 'instructions', 'rings', 'snapshot', 'scrape'):
                self.assertEqual(r['from'], FROM_TWIN)
            elif not HAS_IBS:
                self.assertEqual(r['from'], FROM_CLOCK)
        value = {n: r['value'] for n, r in rows.items() if 'value' in r}
        # in the kernel, all in one run, with room for a machine that does other things
        self.assertLess(value['program.rejected-latency'], value['program.forwarded'])
        self.assertLess(value['program.aggregated'], value['program.aggregated-cgroup-comm'])
        self.assertLess(value['program.aggregated'], value['cold.aggregated'])
        self.assertLess(value['situ.empty'], value['situ.forwarded'])
        self.assertGreater(rows['situ.aggregated']['runs'], 500)
        self.assertGreater(value['rings.take'], 5)
        self.assertGreaterEqual(rows['snapshot']['series'], 10000)
        self.assertGreater(rows['scrape']['bytes'], 1e7)
        self.assertGreater(rows['scrape']['memory_bytes'], 1e5)
        self.assertLess(value['memory.default'], 64 << 20)
        self.assertLess(value['memory.768-cpus'], 64 << 20)
        self.assertGreater(value['memory.768-cpus-unbounded'], value['memory.768-cpus'])
        for n in 'memory.records', 'memory.768-cpus-records':
            self.assertGreater(rows[n]['rings_bytes'], 0)
        if shutil.which('perf') and 'peer.perf-record-file' in value:
            r = rows['peer.perf-record-file']
            self.assertGreater(r['samples'], 100)
            self.assertGreaterEqual(r['bytes_per_sample'], 40)
            self.assertGreater(r['reader'], 0)
            self.assertAlmostEqual(r['loop'] + r['reader'], r['value'], delta=r['value'] / 1000)
            # the rate of the clock is the same for all, but not what other processes leave them
            self.assertLess(abs(math.log(r['samples'] / rows['peer.event'].get('samples', r['samples']))),
                            math.log(4))


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Some(Case):
    def test_only(self):
        for wanted in 'memory', 'ratio,memory', 'memory,memory', 'snapshot,scrape':
            _, rows = self.report('--only', wanted)
            self.assertEqual({n.split('.')[0] for n in rows}, set(wanted.split(',')))

    def test_text_is_labelled(self):
        """Each line, of each kind; those of perf and bpftrace, which are not there, have a reason."""
        p = self.bench('--quick', '--only', 'peer,bpftrace,ratio,snapshot,memory', env={'PATH': '/nonexistent'})
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = [x for x in p.stdout.splitlines() if x.startswith('  ')]
        self.assertGreater(len(lines), 25)
        for line in lines:
            self.assertRegex(line, r'^  [a-z0-9._-]+ +\S.* \[(computed|run on request: .*SIMULATED.*|ibs_op: NMI|' +
                             re.escape(FROM_CLOCK) + r')\]$')
            if re.match(r'  (peer\.perf-(record|mem)|bpftrace)', line):
                self.assertRegex(line, ' cannot be had: there is no (perf|bpftrace) in PATH ')
        self.assertGreater(sum(' +-' in x for x in lines), 3)
        self.assertEqual(p.stderr, '')

    def test_ratio_without_figures(self):
        _, rows = self.report('--only', 'ratio')
        self.assertEqual(set(rows), {'ratio.' + c for c in CASES['ratio'].split()})
        for r in rows.values():
            self.assertIn('peer.', r['unavailable'])

    def test_cpu(self):
        o, _ = self.report('--only', 'memory', '-C', '0')
        self.assertEqual(o['loop_cpu'], 0)
        p = subprocess.run(['taskset', '-c', '0', IBSCOPE, 'bench', '--json', '--quick', '--only', 'rings'],
                           capture_output=True, text=True, timeout=60, env=self.env)
        o = json.loads(p.stdout)
        self.assertEqual((o['loop_cpu'], o['reader_cpu']), (0, 0))
        rows = self.rows(o)
        self.assertIn('value', rows['rings.take'])
        self.assertIn('two CPUs', rows['rings.rate']['unavailable'])

    def test_without_privilege(self):
        p = self.bench('--json', '--quick', prefix=NOBODY)
        if p.returncode and not p.stdout and 'setpriv' in p.stderr:
            self.skipTest('nobody cannot run the program where it is')
        self.assertEqual(p.returncode, 0, p.stderr)
        rows = self.rows(json.loads(p.stdout))
        self.assertEqual({n.split('.')[0] for n in rows}, set(names()))
        self.assertIn('value', rows['memory.default'])
        for n, r in rows.items():
            if not n.startswith('memory.'):
                self.assertIn('unavailable', r)

    def test_broken_output(self):
        with open('/dev/full', 'w') as full:
            for args in ([], ['--json']):
                p = subprocess.run([IBSCOPE, 'bench', '--only', 'memory', *args], stdout=full, stderr=subprocess.PIPE,
                                   text=True, timeout=60, env=self.env)
                self.assertEqual(p.returncode, 1)
                self.assertIn('cannot write the report', p.stderr)
        # what nobody reads is not measured
        p = subprocess.run(f'{IBSCOPE} bench --quick --only situ,rings,peer | (head -n 1; sleep 1); '
                           'echo ${PIPESTATUS[0]}', shell=True, executable='/bin/bash', capture_output=True, text=True,
                           timeout=120, env=self.env)
        self.assertRegex(p.stdout, r'^ibscope .*\n1\n$')
        self.assertIn('cannot write the report', p.stderr)


class Wrong(Case):
    def test_usage(self):
        for args, said in ((['--only', 'nonsense'], 'program, cold'), (['--only', ''], "''"),
                           (['--only', 'memory,'], "''"), (['--only', 'memory,,program'], "''"),
                           (['--only'], 'needs a value'), (['--source', 'perf'], 'auto, ibs, sim'),
                           (['extra'], 'extra'), (['-C', '8191'], 'online'), (['-C', '9999'], '8191'),
                           (['-C', 'x'], '-C'), (['--seconds', '1'], '--seconds'), (['--json=1'], '--json')):
            p = self.bench(*args)
            self.assertEqual((p.returncode, p.stdout), (2, ''), args)
            self.assertIn(said, p.stderr, args)

    @unittest.skipIf(HAS_IBS, 'there is IBS here')
    def test_no_ibs(self):
        p = self.bench('--source', 'ibs', '--only', 'memory')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('ibs_op', p.stderr)

    def test_clock_of_time(self):
        p = self.bench('--instructions', '--only', 'memory')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('--icount', p.stderr)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Ends(Case):
    def start(self, *args, env=None):
        p = subprocess.Popen([IBSCOPE, 'bench', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             stdin=subprocess.DEVNULL, env=dict(self.env, **(env or {})))
        self.addCleanup(p.wait, 10)
        self.addCleanup(p.kill)
        return p

    def wait_for_child(self, p):
        for _ in range(600):
            others = [x for x in self.processes() if x != p.pid]
            if others:
                return others
            self.assertIsNone(p.poll())
            time.sleep(0.05)
        self.fail('no child came')

    def interrupt(self, p, sig=signal.SIGINT):
        begin = time.time()
        p.send_signal(sig)
        out, err = p.communicate(timeout=30)
        self.assertLess(time.time() - begin, 10)
        self.assertEqual(p.returncode, 1, err)
        return out

    def test_early(self):
        for delay in 0.05, 0.4, 1.5:
            p = self.start('--json')
            time.sleep(delay)
            if delay < 0.1:     # before signals are handled it just dies
                p.send_signal(signal.SIGINT)
                p.communicate(timeout=30)
                continue
            o = json.loads(self.interrupt(p))
            self.assertTrue(o['interrupted'])
            self.assertEqual(self.rows(o)[o['measurements'][-1]['name']]['unavailable'], 'interrupted')

    def test_text(self):
        p = self.start('--only', 'program,sample')
        time.sleep(1)
        self.assertIn('\ninterrupted: ', self.interrupt(p, signal.SIGTERM))

    @unittest.skipUnless(shutil.which('perf'), 'there is no perf')
    def test_beside_perf(self):
        for delay in 0, 0.3, 1.3:
            p = self.start('--json', '--only', 'peer')
            self.wait_for_child(p)
            time.sleep(delay)
            self.assertTrue(json.loads(self.interrupt(p))['interrupted'])
            self.clean()

    @unittest.skipUnless(shutil.which('perf'), 'there is no perf')
    def test_killed(self):
        p = self.start('--json', '--only', 'peer')
        self.wait_for_child(p)
        p.kill()
        p.communicate(timeout=30)

    def fake_perf(self, script):
        d = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, d)
        path = os.path.join(d, 'perf')
        with open(path, 'w') as f:
            f.write('#!/bin/sh\n' + script)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return {'PATH': d + ':/usr/bin:/bin'}

    def test_perf_that_hangs(self):
        p = self.start('--json', '--only', 'peer', env=self.fake_perf('trap "" INT TERM; sleep 100 & wait\n'))
        self.wait_for_child(p)
        time.sleep(0.5)
        self.assertTrue(json.loads(self.interrupt(p))['interrupted'])

    @unittest.skipUnless(shutil.which('perf'), 'there is no perf')
    def test_perf_that_fails(self):
        """Some at once, one that is killed while all are measured: the others keep their figures."""
        p = self.start('--json', '--quick', '--only', 'peer', env=self.fake_perf(
            f'case "$*" in *"-o - "*) exec {shutil.which("perf")} "$@";; esac\n'
            'head -c 100000 /dev/zero | tr "\\0" "-" | fold >&2; echo "no such luck" >&2; echo " Usage: perf" >&2\n'
            'exit 129\n'))
        piped = []
        for _ in range(600):
            piped = [pid for pid in self.processes() if b'\0-o\0-\0' in cmdline(pid)]
            if piped:
                break
            time.sleep(0.05)
        self.assertEqual(len(piped), 1)
        time.sleep(2)
        os.kill(piped[0], signal.SIGKILL)
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 0, err)
        rows = self.rows(json.loads(out))
        for n in 'perf-record-file', 'perf-record-filter', 'perf-mem-record':
            self.assertIn('no such luck', rows['peer.' + n]['unavailable'])
        self.assertIn('perf record', rows['peer.perf-script']['unavailable'])
        self.assertIn('perf ended', rows['peer.perf-record-pipe']['unavailable'])
        for n in 'aggregated', 'record':    # measured, even if the machine was too busy for a figure
            row = rows['peer.' + n]
            if 'samples' not in row:
                self.assertRegex(row['unavailable'], r'^too disturbed to tell: .* in \d+ rounds$')


if __name__ == '__main__':
    unittest.main()
