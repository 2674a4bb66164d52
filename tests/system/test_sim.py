# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The whole way from the software clock to the output, with simulated registers."""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import clock
import ibscope
from ibscope import Busy, Cgroup, cpu_seconds, hist, residual, run, stalled, until, wait_sampling

OK, WHY = ibscope.can_bpf()
BPFTOOL = shutil.which('bpftool', path=os.environ['PATH'] + ':/usr/sbin')
CPUS = sorted(os.sched_getaffinity(0))
TOP = f'/ibscope-test-{os.getpid()}'


def by_labels(objects, *labels):
    """Samples by the values of labels, over all intervals."""
    n = collections.Counter()
    for o in objects:
        for s in o['series']:
            n[tuple(s['labels'][label] for label in labels)] += s['samples']
    return n


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Sim(unittest.TestCase):
    def test_period_of_faults(self):
        p = ibscope.run('hist', '--source', 'sim', '--sim-event', 'faults', '--json', '0.1', '1')
        self.assertEqual(json.loads(p.stdout)['period'], 16, p.stderr)

    def test_is_labelled_simulated(self):
        p = run('hist', '-v', '--source', 'sim', '0.2', '1')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('SIMULATED', p.stdout.splitlines()[0])
        self.assertIn('SIMULATED', p.stderr)
        o, = hist('--source', 'sim', '0.2', '1')
        self.assertEqual((o['source'], o['simulated']), ('sim', True))

    def test_name_that_was_longer(self):
        """The kernel's copy of a name is read in place: what the name before had at its end is not part of it."""
        p = subprocess.Popen([sys.executable, '-c', 'import ctypes; set = ctypes.CDLL(None).prctl\n'
                              "set(15, b'fifteen-letters'); set(15, b'ibs-short'); print(flush=True)\nwhile True: pass"],
                             stdout=subprocess.PIPE)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        p.stdout.readline()
        for names, has in (('ibs-short', True), ('fifteen-letters', False), ('none,ibs-short', True), ('ibs-sho', False)):
            o, = hist('--source', 'sim', '-c', '1000000', '-p', str(p.pid), '--by', 'comm', '--comm', names, '0.3', '1')
            self.assertEqual(set(by_labels([o], 'comm')), {('ibs-short',)} if has else set(), (names, o['ledger']))
            self.assertEqual(residual(o['ledger']), 0)

    def test_equals_the_model(self):
        """Each CPU's n-th sample is known; so is every count, for the n that were seen."""
        for seed, event, labels in (('1', 'op', ('src', 'op')), ('77', 'op', ('src', 'op')),
                                    ('2', 'fetch', ('fetch', 'itlb'))):
            o, = hist('--source', 'sim', '--sim-ops', 'random', '-e', f'ibs_{event}//', '-c', '100000', '--seed', seed,
                      '--by', ','.join(('cpu', *labels)), '1', '1')
            per_cpu = by_labels([o], 'cpu')
            self.assertEqual(sum(per_cpu.values()), o['ledger']['seen'])
            self.assertGreater(o['ledger']['seen'], 200)
            args = [f'{cpu[0]}:{n}' for cpu, n in per_cpu.items()]
            text = subprocess.run([os.path.join(ibscope.SAN, 'tests/unit/ibs_sim'), event, seed, '0xbff',
                                   *args], capture_output=True, text=True, check=True).stdout
            want, got = collections.Counter(), collections.Counter()
            for line in text.splitlines():
                src, op, what, n = line.split()
                want[src, op, what] += int(n)
            for s in o['series']:
                key = [s['labels'][x] for x in labels]
                got[(*key, '-')] += s['samples'] - s['valid']
                got[(*key, 'sum')] += s['sum']
                for le, n in s['buckets']:
                    got[(*key, str(le))] += n
            self.assertEqual(+got, +want)

    def test_two_events(self):
        """Each with its own period, ledger and keys; an object for each interval and event."""
        objects = hist('--source', 'sim', '-e', 'ibs_op//,ibs_fetch//', '-c', '800000,200000',
                       '--by', 'cpu,src,itlb', '0.3', '2')
        self.assertEqual([(o['event'], o['period'], o['metric']) for o in objects],
                         [('ibs_op//', 800000, 'dc_miss_lat'), ('ibs_fetch//', 200000, 'fetch_lat')] * 2)
        for o, key in zip(objects, ('src', 'itlb') * 2):
            self.assertEqual(residual(o['ledger']), 0)
            self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
            self.assertGreater(o['ledger']['seen'], 20)
            self.assertEqual({tuple(s['labels']) for s in o['series']}, {('cpu', key)})

    def test_two_events_of_a_command(self):
        """Both select the command, and hist returns its exit status."""
        p = run('hist', '--source', 'sim', '-e', 'ibs_op//,ibs_fetch//', '-c', '100000', '--json', '--',
                'sh', '-c', 'for i in $(seq 20000); do :; done; exit 7')
        self.assertEqual(p.returncode, 7, p.stderr)
        for o in map(json.loads, p.stdout.splitlines()):
            self.assertEqual(residual(o['ledger']), 0)
            self.assertGreater(o['ledger']['filtered']['cgroup'], 0)
        self.assertEqual(len(p.stdout.splitlines()), 2)

    @clock.every(50000)
    def test_intervals_add_up(self):
        objects = hist('--source', 'sim', '-c', '50000', '0.2', '5')
        self.assertEqual(len(objects), 5)
        for o in objects:
            self.assertEqual(residual(o['ledger']), 0)
            self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
            for s in o['series']:
                self.assertEqual(sum(n for _, n in s['buckets']), s['valid'])
                # of a sample that comes while an interval is read there may be a part, the rest in the next one
                self.assertLessEqual(abs((s['estimated_ops'] or 0) - 50000 * s['samples']), 50000 * o['cpus'])
        ops, n = (sum(s[key] or 0 for o in objects for s in o['series']) for key in ('estimated_ops', 'samples'))
        self.assertEqual(ops, 50000 * n)

    def test_estimated_ops_of_a_frequency(self):
        """Each sample represents the time since the last one, whatever period the kernel chose."""
        o, = hist('--source', 'sim', '-F', '500', '2', '1')
        self.assertIsNone(o['period'])
        weight = sum(s['estimated_ops'] for s in o['series'])
        self.assertGreater(weight, 0.5 * 2e9)
        self.assertLess(weight, 1.2 * o['interval_s'] * 1e9 * o['cpus'])

    def test_two_cgroups(self):
        """Each CPU runs a busy process of one cgroup, and all its samples belong to that cgroup."""
        a, b = Cgroup(TOP + '/a'), Cgroup(TOP + '/b')
        cpus = [CPUS[0], CPUS[-1]]
        busy = [Busy(cpus[0], a, share=0.3), Busy(cpus[1], b, share=0.3)]
        try:
            o, = hist('--source', 'sim', '-c', '200000', '--by', 'cgroup,cpu', '2', '1')
        finally:
            for x in busy:
                x.stop()
            a.remove(), b.remove(), Cgroup(TOP).remove()
        n = by_labels([o], 'cgroup', 'cpu')
        self.assertGreater(n[a.path, str(cpus[0])], 100)
        self.assertGreater(n[b.path, str(cpus[1])], 100)
        if cpus[0] != cpus[1]:
            self.assertNotIn((a.path, str(cpus[1])), n)
            self.assertNotIn((b.path, str(cpus[0])), n)
        total = sum(n.values())
        # on a busy machine they get little of it
        self.assertGreater(n[a.path, str(cpus[0])] + n[b.path, str(cpus[1])], 0.02 * total)

    def test_cgroup_that_died_keeps_its_path(self):
        p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '-v', '--source', 'sim', '-c', '100000', '--json',
                              '--by', 'cgroup', '--cgroup-hierarchy', 'v2'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_sampling(p)
        c = Cgroup(TOP + '/child')
        busy = Busy(CPUS[0], c)
        busy.runs()
        busy.stop()
        c.remove(), Cgroup(TOP).remove()
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        n = by_labels([json.loads(out)], 'cgroup')
        self.assertGreater(n[(c.path,)], 0, n)

    def test_selects_process(self):
        busy = Busy(CPUS[0])
        try:
            o, = hist('--source', 'sim', '-c', '100000', '-p', str(busy.pid), '--by', 'pid',
                      '1', '1')
        finally:
            busy.stop()
        self.assertEqual(residual(o['ledger']), 0)
        self.assertEqual([s['labels'] for s in o['series']], [{'pid': str(busy.pid)}])
        self.assertGreater(o['ledger']['aggregated'], 5)
        self.assertGreater(o['ledger']['filtered']['pid'], 5)

    def test_selects_cgroup_with_descendants(self):
        top, deep = Cgroup(TOP), Cgroup(TOP + '/1/2/3')
        sibling = Cgroup(TOP + '2')
        busy = [Busy(CPUS[0], deep), Busy(CPUS[-1], sibling)]
        try:
            o, = hist('--source', 'sim', '-c', '100000', '--cgroup', top.path, '1', '1')
        finally:
            for x in busy:
                x.stop()
            top.remove(), sibling.remove()
        self.assertEqual({s['labels']['cgroup'] for s in o['series']}, {deep.path})
        self.assertGreater(o['ledger']['aggregated'], 5)
        self.assertGreater(o['ledger']['filtered']['cgroup'], 5)
        self.assertEqual(residual(o['ledger']), 0)

    def test_follows_children(self):
        """--follow selects a shell and the children that it starts later, but not another new process."""
        p = subprocess.Popen(['sh', '-c', f'read x; for i in 1 2 3; do {sys.executable} -c "while True: pass" & done; '
                              'wait'], start_new_session=True, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        sampler = subprocess.Popen([ibscope.IBSCOPE, 'hist', '-v', '--json', '--source', 'sim', '-c', '100000', '-p', str(p.pid),
                                    '--follow', '--by', 'pid,comm'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_sampling(sampler)
        other = Busy(CPUS[0])
        try:
            p.stdin.close()

            def children():
                with open(f'/proc/{p.pid}/task/{p.pid}/children') as f:
                    return f.read().split()
            until(lambda: len(children()) == 3 and min(map(cpu_seconds, children())) > 0.2)
            other.runs()
            sampler.send_signal(signal.SIGINT)
            o = json.loads(sampler.communicate(timeout=60)[0])
        finally:
            other.stop()
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        pids = {s['labels']['pid'] for s in o['series']}
        self.assertGreaterEqual(len(pids), 3, o['series'])
        self.assertNotIn(str(other.pid), pids)
        self.assertEqual(residual(o['ledger']), 0)

    def test_negated(self):
        busy = Busy(CPUS[0])
        try:
            o, = hist('--source', 'sim', '-c', '100000', '-p', f'!{busy.pid}', '--op',
                      '!load,store', '--by', 'pid,op', '0.7', '1')
        finally:
            busy.stop()
        self.assertNotIn(str(busy.pid), {s['labels']['pid'] for s in o['series']})
        self.assertFalse({'load', 'store'} & {s['labels']['op'] for s in o['series']})
        self.assertGreater(o['ledger']['filtered']['pid'], 5)

    def test_cgroup_patterns(self):
        a, b = Cgroup(TOP + '/a1'), Cgroup(TOP + '/b1')
        busy = [Busy(CPUS[0], a), Busy(CPUS[-1], b)]
        try:
            o, = hist('--source', 'sim', '-c', '100000', '--cgroup', TOP + '/a*',
                      '0.7', '1')
            n, = hist('--source', 'sim', '-c', '100000', '--cgroup', f'!{TOP}/a1',
                      '0.7', '1')
        finally:
            for x in busy:
                x.stop()
            a.remove(), b.remove(), Cgroup(TOP).remove()
        self.assertEqual({s['labels']['cgroup'] for s in o['series']}, {a.path})
        self.assertIn(b.path, {s['labels']['cgroup'] for s in n['series']})
        self.assertNotIn(a.path, {s['labels']['cgroup'] for s in n['series']})

    @clock.every(50000)
    def test_selects_registers(self):
        # whatever runs here: an idle machine has few loads
        o, = hist('--source', 'sim', '--sim-ops', 'random', '-c', '50000', '--src', 'dram,l3', '--op', 'load',
                  '--min-lat', '50', '--max-lat', '400', '1', '1')
        self.assertEqual({(s['labels']['src'], s['labels']['op']) for s in o['series']},
                         {('dram', 'load'), ('l3', 'load')})
        for s in o['series']:
            self.assertEqual(s['samples'], s['valid'])
            self.assertTrue(all(48 <= le <= 416 for le, _ in s['buckets']))
        self.assertEqual(residual(o['ledger']), 0)
        self.assertEqual(set(o['ledger']['filtered']), {'src', 'op', 'latency'})

    def test_interrupt_prints_the_interval(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '-v', '--source', 'sim', '--json'],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_sampling(p)
            busy = Busy(CPUS[0])
            busy.runs()
            busy.stop()
            p.send_signal(sig)
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, 0, err)
            self.assertGreater(json.loads(out)['ledger']['seen'], 10)

    def test_user_and_kernel(self):
        """All addresses that are drawn at random are of user space; those of tasks are of both."""
        random = ('--source', 'sim', '--sim-ops', 'random')
        o, = hist(*random, '--user', '0.3', '1')
        self.assertNotIn('mode', o['ledger']['filtered'])
        o, = hist(*random, '--kernel', '0.3', '1')
        self.assertEqual(o['ledger']['filtered'], {'mode': o['ledger']['seen']})
        busy = Busy(CPUS[0])
        try:
            o, = hist('--source', 'sim', '-c', '100000', '-p', str(busy.pid), '--by', 'mode', '1', '1')
        finally:
            busy.stop()
        modes = {s['labels']['mode']: s['samples'] for s in o['series']}
        self.assertGreater(modes['user'], modes.get('kernel', 0), modes)
        o, = hist(*random, '--by', 'mode', '0.3', '1')
        self.assertEqual([s['labels'] for s in o['series']], [{'mode': 'user'}])

    @unittest.skipUnless(os.access('/sys/fs/cgroup/memory/cgroup.procs', os.W_OK),
                         'the memory controller is not mounted as cgroup v1')
    def test_cgroup_v1(self):
        """A process is in the cgroup that the v1 hierarchy says, whatever v2 says."""
        path = '/sys/fs/cgroup/memory' + TOP
        os.makedirs(path + '/a/b')
        spin = subprocess.Popen(['sh', '-c', f'echo $$ > {path}/a/b/cgroup.procs; '
                                             'while :; do :; done'])
        try:
            def ready():
                with open(f'{path}/a/b/cgroup.procs') as f:
                    return f.read()
            until(ready)
            v1 = ('--source', 'sim', '--cgroup-hierarchy', 'memory', '--by', 'cgroup')
            o, = hist(*v1, '0.5', '1')
            labels = [s['labels']['cgroup'] for s in o['series']]
            self.assertIn(TOP + '/a/b', labels)
            o, = hist(*v1, '--cgroup', path, '0.5', '1')
            self.assertEqual([s['labels'] for s in o['series']], [{'cgroup': TOP + '/a/b'}])
            self.assertGreater(o['ledger']['filtered']['cgroup'], 0)
        finally:
            spin.kill()
            spin.wait()
            for d in ('/a/b', '/a', ''):
                os.rmdir(path + d)

    def test_interrupt_when_late(self):
        """Late intervals and a stalled reader do not prevent it from exiting."""
        with tempfile.TemporaryFile() as out:
            p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '--source', 'sim', '--json', '0.01'],
                                 stdout=out, stderr=subprocess.DEVNULL)
            until(lambda: os.fstat(out.fileno()).st_size)
            p.terminate()
            self.assertEqual(p.wait(timeout=60), 0)
        p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '--source', 'sim', '--json', '0.01'],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pipesize=4096)
        until(lambda: stalled(p.stdout))  # nobody reads: the pipe is full
        p.terminate()
        self.assertIn(p.wait(timeout=60), (0, 1))
        p.stdout.close()

    def test_reader_that_goes_away(self):
        p = subprocess.run(f'{ibscope.IBSCOPE} hist --source sim --json 0.1 50 | head -n 1',
                           shell=True, capture_output=True, text=True, timeout=30)
        self.assertEqual(len(p.stdout.splitlines()), 1)

    def test_full_disk(self):
        with open('/dev/full', 'w') as full:
            p = subprocess.run([ibscope.IBSCOPE, 'hist', '--source', 'sim', '0.1', '1'], stdout=full,
                               stderr=subprocess.PIPE, text=True, timeout=30)
        self.assertEqual(p.returncode, 1)
        self.assertIn('cannot write', p.stderr)

    @unittest.skipUnless(BPFTOOL, 'no bpftool to ask for the programs that are loaded')
    def test_nothing_is_left(self):
        def programs():
            p = subprocess.run([BPFTOOL, 'prog', 'show', '-j'], capture_output=True, text=True)
            return {x['id'] for x in json.loads(p.stdout) if x.get('name', '').startswith('ibs_')}

        def loaded(pid):
            """Its programs: other tests have some, too."""
            texts = []
            for name in glob.glob(f'/proc/{pid}/fdinfo/*'):
                with contextlib.suppress(FileNotFoundError), open(name) as f:    # files come and go
                    texts.append(f.read())
            return set(map(int, re.findall(r'^prog_id:\t(\d+)$', '\n'.join(texts), re.M))) & programs()
        p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '-v', '--source', 'sim'], text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_sampling(p)
        ours = loaded(p.pid)
        self.assertTrue(ours, 'a program that samples is not seen')
        p.kill()
        p.communicate()
        until(lambda: not programs() & ours)  # the kernel frees them a moment later

    @clock.every(50000)
    def test_groups_beyond_the_limit_are_other(self):
        cgroups = [Cgroup(f'{TOP}/{i}') for i in range(4)]
        busy = [Busy(CPUS[i % len(CPUS)], c) for i, c in enumerate(cgroups)]
        try:
            o, = hist('--source', 'sim', '-c', '50000', '--max-groups', '2', '1', '1')
        finally:
            for x in busy:
                x.stop()
            Cgroup(TOP).remove()
        names = {s['labels']['cgroup'] for s in o['series']}
        self.assertIn('other', names)
        self.assertEqual(len(names), 3)
        self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])


if __name__ == '__main__':
    unittest.main()
