# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Containers by name: cgroups named like those of runtimes, names from the logs of a kubelet.

/var/log of the program is a directory of the test, by a mount that nobody else sees.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import ibscope
from ibscope import Busy, Cgroup, residual, until

OK, WHY = ibscope.can_bpf()
CPUS = sorted(os.sched_getaffinity(0))
SIM = ('--source', 'sim', '--sim-ops', 'random', '-c', '100000')
TOP = f'/ibscope-test-containers-{os.getpid()}'
# The machine may have containers, and other tests with the same: names, pods and ids are of this process.
OURS = os.getpid() & 0xfffff
WEB, DB, NS = f'web{OURS}', f'd{OURS:05x}', f'shop{OURS}'
UID = f'12345678-9abc-def0-1234-{OURS:012x}'
POD = f'{TOP}/kubepods/burstable/pod{UID}'


# The first process of a container: a root directory and mounts of its own. With a second argument, a
# directory in there is a file system that answers once and never again (fuse_init_out of linux/fuse.h).
INIT = '''
import ctypes, os, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, data):
    if libc.mount(source, target.encode(), kind, flags, data):
        sys.exit(target + ": " + os.strerror(ctypes.get_errno()))
assert not libc.unshare(0x20000)
mount(b"none", "/", None, 0x44000, None)
if len(sys.argv) > 2:
    fuse = os.open("/dev/fuse", os.O_RDWR)
    mount(b"fuse", sys.argv[1] + sys.argv[2], b"fuse", 6, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse)
    unique, = struct.unpack_from("Q", os.read(fuse, 1 << 17), 8)
    os.write(fuse, struct.pack("IiQ", 80, 0, unique) + struct.pack("IIIIHHIIHHI", 7, 31, 0, 0, 8, 8, 4096, 1, 8, 0, 0) + bytes(28))
os.chroot(sys.argv[1])
print("ready", flush=True)
if len(sys.argv) > 2:
    os.read(fuse, 1 << 17)
signal.pause()
'''


def can_mount():
    p = subprocess.run(['unshare', '-m', 'true'], capture_output=True)
    return p.returncode == 0


def cid(n):
    return (n if isinstance(n, str) else f'{OURS << 12 | n:08x}') + '0' * 56


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipUnless(can_mount(), 'no mount namespace of its own')
class Containers(unittest.TestCase):
    def setUp(self):
        self.log = tempfile.mkdtemp(prefix='ibscope-test-')
        os.makedirs(self.log + '/containers')
        os.makedirs(self.log + '/pods')
        self.busy = []
        self.program = None

    def tearDown(self):
        for b in self.busy:
            b.stop()
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.communicate()
        Cgroup(TOP).remove()
        shutil.rmtree(self.log)

    def name(self, container_id, container, pod='pod-0', ns=NS):
        open(f'{self.log}/containers/{pod}_{ns}_{container}-{container_id}.log', 'w').close()

    def run_busy(self, path, cpu=0):
        cgroup = Cgroup(path)
        self.busy.append(Busy(CPUS[cpu % len(CPUS)], cgroup, share=0.12))
        return cgroup

    def start(self, *args, command=('hist', '-v', '--json')):
        self.program = subprocess.Popen(
            ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /var/log && exec "$@"', self.log,
             ibscope.IBSCOPE, *command, *SIM, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self.program

    def wait_begun(self):
        return ibscope.wait_sampling(self.program)

    def finish(self):
        out, self.err = self.program.communicate(timeout=60)
        self.assertEqual(self.program.returncode, 0, self.err)
        return [self.interval(line) for line in out.splitlines()]

    def interval(self, line=None):
        """The next one that is printed."""
        o = json.loads(line or self.program.stdout.readline())
        self.assertEqual(residual(o['ledger']), 0)
        return o

    def interrupt(self):
        self.program.send_signal(signal.SIGINT)
        return self.finish()

    def hist(self, *args):
        """Until each busy container has run so long that it has some hundred samples."""
        self.start(*args)
        said = self.wait_begun()
        ends = [(b.pid, ibscope.cpu_seconds(b.pid) + 0.06) for b in self.busy]
        until(lambda: all(ibscope.cpu_seconds(pid) >= end for pid, end in ends))
        o, = self.interrupt()
        self.err = said + self.err
        return o

    def refused(self, *args):
        out, err = self.start(*args, '0.3', '1').communicate(timeout=60)
        self.assertEqual((self.program.returncode, out), (1, ''), err)
        return err

    @staticmethod
    def labels(o, *names):
        return {tuple(s['labels'][n] for n in names) for s in o['series']}

    def test_labels(self):
        self.name(cid(1), WEB)
        self.name(cid(2), WEB, 'pod-1')
        self.run_busy(f'{POD}/{cid(1)}/below')
        self.run_busy(f'{TOP}/docker/{cid(2)}', 1)
        self.run_busy(f'{TOP}/docker/{cid(3)}')
        self.run_busy(f'{TOP}/plain', 1)
        got = self.labels(self.hist('--by', 'container,pod'), 'container', 'pod')
        for want in (WEB, NS + '/pod-0'), (WEB, NS + '/pod-1'), (cid(3)[:12], ''), ('', ''):
            self.assertIn(want, got)
        # the same name: one row, that of both
        o = self.hist('--cgroup', TOP, '--by', 'container')
        self.assertEqual(sorted(s['labels']['container'] for s in o['series']),
                         ['', cid(3)[:12], WEB])
        self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
        # a recording has the same names, and the topology
        keys, file = ('container', 'pod', 'node', 'ccx'), os.path.join(self.log, 'recording')
        want = self.labels(self.hist('--cgroup', TOP, '--by', ','.join(keys)), *keys)

        def recorded():
            self.start('--cgroup', TOP, '--duration', '0.5', '--max-loss', '100%', '-o', file, command=('record',))
            self.assertEqual(self.program.communicate(timeout=60)[0], '')
            rows = json.loads(ibscope.run('report', '--json', '--by', ','.join((*keys, 'mode')), file).stdout)['rows']
            return {tuple(row['labels'][k] for k in keys) for row in rows}
        until(lambda: (got := recorded()) == want or self.assertLessEqual(got, want))

    @unittest.skipIf(os.geteuid(), 'giving a cgroup away needs root')
    def test_spoofed(self):
        """A user's cgroup is named like a container of root's: it gets neither name nor selection."""
        self.name(cid(1), WEB)
        real = self.run_busy(f'{POD}/{cid(1)}')
        self.run_busy(f'{TOP}/theirs', 1)  # made before, so that it is met with its owner
        for theirs in (f'{TOP}/theirs/docker-{cid(1)}.scope',
                       f'{TOP}/theirs/kubepods/burstable/pod{UID}/{cid(1)}'):
            self.run_busy(theirs, 1)
            path = theirs
            while path != TOP:
                os.chown(ibscope.cgroup2_mount() + path, 65534, 65534)
                path = os.path.dirname(path)
        rows = self.hist('--cgroup', TOP, '--by', 'cgroup,container,pod')['series']
        got = {r['labels']['cgroup']: (r['labels']['container'], r['labels']['pod']) for r in rows}
        self.assertEqual(got.pop(real.path), (WEB, NS + '/pod-0'))
        self.assertEqual(len(got), 3)
        for path, labels in got.items():
            self.assertIn('theirs', path)
            self.assertNotIn(WEB, labels)
            self.assertNotIn(NS + '/pod-0', labels)
        for term in WEB, NS + '/pod-0', cid(1), cid(1)[:12]:
            rows = self.hist('--container', term, '--by', 'cgroup')['series']
            self.assertEqual({r['labels']['cgroup'] for r in rows}, {real.path}, term)

    def container_init(self, path, root, *args):
        p = subprocess.Popen([sys.executable, '-c', INIT, root, *args], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        Cgroup(path).add(p.pid)
        self.assertEqual(p.stdout.readline(), 'ready\n')

    def inner(self, root, n, name):
        d = f'{root}/var/lib/docker/containers/{cid(n)}'
        os.makedirs(d)
        with open(d + '/config.v2.json', 'w') as f:
            json.dump({'Name': '/' + name}, f)

    @unittest.skipIf(os.geteuid(), 'a root directory of its own needs root')
    def test_nested(self):
        """Containers inside others are named by the files in there, unless reading them takes for ever."""
        self.name(cid(1), WEB)
        self.name(cid(2), DB)
        roots = tempfile.mkdtemp(prefix='ibscope-test-')
        self.addCleanup(shutil.rmtree, roots)
        self.inner(roots + '/a', 3, 'job')
        self.inner(roots + '/b', 4, 'no')
        outer, silent = f'{TOP}/docker/{cid(1)}', f'{TOP}/docker/{cid(2)}'
        self.container_init(outer + '/init', roots + '/a')
        self.run_busy(f'{outer}/docker/{cid(3)}')
        job = f'{WEB}/job', ''
        want = {job}
        if os.path.exists('/dev/fuse'):
            self.container_init(silent + '/init', roots + '/b', '/var/lib/docker')
            self.run_busy(f'{silent}/docker/{cid(4)}', 1)
            want.add((cid(4)[:12], ''))
        self.assertEqual(self.labels(self.hist('--cgroup', TOP, '--by', 'container,pod'), 'container', 'pod'), want)
        self.assertEqual(self.labels(self.hist('--container', f'{WEB}/j*', '--by', 'container'), 'container'), {job[:1]})
        self.refused('--container', 'job')

    def test_pod_without_name(self):
        self.run_busy(f'{POD}/{cid(1)}')
        got = self.labels(self.hist('--cgroup', TOP, '--by', 'pod'), 'pod')
        self.assertEqual(got, {(UID,)})

    def test_text_says_none(self):
        self.run_busy(f'{TOP}/plain')
        for by, want in ((('--by', 'container,src'), r'(?s)^CONTAINER +SOURCE .*^host, no container +\S+ +\d'), ((), r'^(?:…|/)\S*/plain ')):
            until(lambda: re.search('(?m)' + want, ibscope.run('hist', *SIM, '--cgroup', TOP, *by, '0.4', '1').stdout))

    def test_other_stays_other(self):
        for i in range(3):
            self.run_busy(f'{TOP}/docker/{cid(i)}', i)
        got = self.labels(self.hist('--cgroup', TOP, '--max-groups', '1', '--by', 'container,pod'),
                          'container', 'pod')
        self.assertIn(('other', 'other'), got)

    def test_selects(self):
        self.name(cid(1), WEB)
        self.name(cid(2), DB)  # which the id of another begins with
        third = cid(DB + '03')
        self.name(third, WEB, 'pod-9', 'stage')
        web, db, stage = f'{POD}/{cid(1)}', f'{POD}/{cid(2)}', f'{TOP}/docker/{third}'
        for i, path in enumerate((web + '/a/b', db, stage)):
            self.run_busy(path, i)
        for args, want in (
                ([WEB], {web + '/a/b', stage}), ([DB], {db}), ([f'w*{OURS},?{DB[1:]}'], {web + '/a/b', db, stage}),
                ([NS + '/pod-0'], {web + '/a/b', db}), ([f'{NS}/pod-0/{WEB}'], {web + '/a/b'}),
                (['*/*/' + WEB], {web + '/a/b', stage}), ([cid(2)[:8]], {db}), ([DB + '0'], {stage}), ([third], {stage}),
                ([UID], {web + '/a/b', db}), (['!' + WEB, '--cgroup', TOP], {db}),
                ([WEB, '--cgroup', f'{TOP}/kubepods'], {web + '/a/b'}),
                ([WEB, '--cgroup', f'!{web}/a'], {stage}),
                ([NS + '/pod-0', '--container', '!' + DB], {web + '/a/b'})):
            with self.subTest(args=args):
                o = self.hist('--container', *args, '--by', 'cgroup')
                self.assertEqual(self.labels(o, 'cgroup'), {(x,) for x in want})
                self.assertGreater(o['ledger']['filtered']['cgroup'], 0)

    def test_least_latency(self):
        self.name(cid(1), WEB)
        self.run_busy(f'{POD}/{cid(1)}')
        o = self.hist('--container', WEB + ':300', '--by', 'container')
        self.assertEqual(self.labels(o, 'container'), {(WEB,)})
        self.assertTrue(all(le > 256 for s in o['series'] for le, _ in s['buckets']))
        self.assertGreater(o['ledger']['filtered']['latency'], 0)

    def test_refuses(self):
        self.name(cid(1), WEB + '-ui')
        Cgroup(f'{POD}/{cid(1)}')
        Cgroup(f'{POD}/{cid(2)}')
        err = self.refused('--container', WEB)
        self.assertIn(f"'{WEB}'", err)
        self.assertIn(f'{NS}/pod-0/{WEB}-ui', err)
        self.assertRegex(err, r'[1-9]\d* of \d+ containers have a known name')
        err = self.refused('--container', f'{OURS:05x}')
        self.assertIn('several containers', err)
        self.assertIn(cid(1)[:12], err)
        self.assertIn(cid(2)[:12], err)
        self.assertIn('--filter', self.refused('--filter', 'container == ' + WEB))

    def test_unreadable(self):
        """If the state of a runtime cannot be read, a message names the runtime and the remedy."""
        d = '/run/containerd/io.containerd.runtime.v2.task'
        caps = '+bpf,+perfmon,+sys_admin'
        nobody = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /run && mkdir -m 700 -p /run/containerd && mkdir $0 && exec "$@"', d,
                  'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=' + caps, '--ambient-caps=' + caps,
                  ibscope.IBSCOPE]
        p = subprocess.run([*nobody, 'hist', *SIM, '--container', 'no-such-*', '0.1', '1'], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, f'cannot read {d}; run as root or with CAP_DAC_READ_SEARCH')
        p = subprocess.run([*nobody, 'doctor', '--json'], capture_output=True, text=True, timeout=60)
        rows = {r['id']: r for r in json.loads(p.stdout)['checks']}
        self.assertIn(d, rows['names']['why'])
        self.assertIn('CAP_DAC_READ_SEARCH', rows['names']['remedy'])
        self.assertIn('CAP_SYS_PTRACE and CAP_SYS_CHROOT', rows['nested_names']['value'])

    def follow(self, args, make, path):
        """Started before @path is there, the program counts its samples."""
        Cgroup(TOP)
        self.start(*args, '--by', 'cgroup', '0.5')
        self.said = self.wait_begun()
        objects = [self.interval()]
        make()
        until(lambda: objects.append(self.interval()) or (path,) in self.labels(objects[-1], 'cgroup'))
        objects += self.interrupt()
        self.assertNotIn((path,), self.labels(objects[0], 'cgroup'))
        for o in objects:
            self.assertLessEqual(self.labels(o, 'cgroup'), {(path,)})
        return objects

    def test_follows_names(self):
        path = f'{POD}/{cid(7)}'

        def make():
            self.run_busy(path)
            self.run_busy(f'{POD}/{cid(8)}', 1)
            self.busy[-1].runs()
            self.name(cid(7), f'late{OURS}')  # only then, as runtimes do

        o = self.follow(['--container', f'l[a]te{OURS}'], make, path)
        self.assertIn('waiting', self.said)
        self.assertEqual(o[0]['ledger']['aggregated'], 0)
        self.assertGreater(sum(x['ledger']['filtered'].get('cgroup', 0) for x in o), 0)

    def test_follows_patterns(self):
        path = f'{TOP}/svc-1/x'
        self.follow(['--cgroup', f'{TOP}/svc-*'], lambda: self.run_busy(path), path)

    def test_follows_filters(self):
        path = f'{TOP}/svc-1/x'
        self.follow(['--filter', f'cgroup =~ {TOP}/svc-* && (op == load || op == store)'],
                    lambda: self.run_busy(path), path)

    def test_follows_a_restart(self):
        """The same path, as of a service, is another cgroup."""
        path = f'{TOP}/service'
        first = Cgroup(path)
        old = first.id()
        self.start('--cgroup', path, '--by', 'cgroup', '0.5')
        self.wait_begun()
        self.assertFalse(self.labels(self.interval(), 'cgroup'))
        first.remove()
        self.assertNotEqual(self.run_busy(path).id(), old)
        until(lambda: self.labels(self.interval(), 'cgroup') == {(path,)})
        self.interrupt()

    def test_filter_terms(self):
        self.name(cid(1), WEB)
        self.name(cid(2), DB)
        web, db = f'{POD}/{cid(1)}', f'{POD}/{cid(2)}'
        self.run_busy(web + '/deep')
        self.run_busy(db, 1)
        for expr, want in (
                ('container == ' + WEB, {web + '/deep'}), (f'container =~ "?{DB[1:]}"', {db}),
                (f'cgroup == {POD} && container != {WEB}', {db}),
                (f'cgroup == {web} || container == {DB}', {web + '/deep', db}),
                (f'!(cgroup == {TOP}) && container == {WEB}', set())):
            with self.subTest(expr=expr):
                o = self.hist('--filter', expr, '--by', 'cgroup')
                self.assertEqual(self.labels(o, 'cgroup'), {(x,) for x in want})
                self.assertNotIn('cgroup', o['ledger']['filtered'])
        o = self.hist('--filter', 'container == ' + WEB, '--container', DB)
        self.assertEqual(o['ledger']['aggregated'], 0)
        self.assertGreater(o['ledger']['filtered']['filter'], 0)

    def test_name_outlives_the_container(self):
        self.name(cid(1), WEB)
        cgroup = self.run_busy(f'{TOP}/docker/{cid(1)}')
        self.start('--by', 'container', '1')
        self.wait_begun()
        until(lambda: (WEB,) in self.labels(self.interval(), 'container'))
        self.busy[-1].runs()
        self.busy.pop().stop()
        os.unlink(f'{self.log}/containers/pod-0_{NS}_{WEB}-{cid(1)}.log')
        cgroup.remove()
        labels = set().union(*(self.labels(o, 'container') for o in self.interrupt()))
        self.assertIn((WEB,), labels)
        self.assertNotIn((cid(1)[:12],), labels)

    def test_many_come_and_go(self):
        """With a thousand containers in a row, sampling continues, and ends cleanly when interrupted."""
        self.start('--container', f'no{OURS}*', '--by', 'container', '--max-groups', '64')
        self.wait_begun()
        for i in range(1000):
            Cgroup(f'{TOP}/docker/{cid(i)}')
            if i >= 20:
                os.rmdir(ibscope.cgroup2_mount() + f'{TOP}/docker/{cid(i - 20)}')
        o = self.interrupt()
        self.assertEqual(o[0]['ledger']['aggregated'], 0)


if __name__ == '__main__':
    unittest.main()
