# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Neighbours of a running collector: containers of which one slows the other, in a simulation that is known to have it so.

The loads use half of two CPUs with real-time priority, because what a container gets must not depend on what else runs.
"""
import glob
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import ibscope
import schemas
from test_neighbours_resctrl import MOUNT, initial_pid_namespace
from ibscope import IBSCOPE, SAN, Cgroup, Collector, run, until

OK, WHY = ibscope.can_bpf()
CPUS = sorted(os.sched_getaffinity(0))
DIR = '/sys/fs/bpf/ibscope-neighbours-%d' % os.getpid()
TOP = f'/ibscope-test-neighbours-{os.getpid()}'
# KiB, share of the time, seconds on, seconds off, so that seconds of the collector begin anywhere in it; the decoy has the suspect's schedule, and finds its data in the cache
LOADS = {'victim': (CPUS[0], 65536, 0.5, 1000, 0), 'suspect': (CPUS[-1], 65536, 0.7, 2.3, 3.4), 'decoy': (CPUS[-1], 16, 0.1, 2.3, 3.4)}
BY = ('--by', 'container,pod,ccx,src,op', '-F', '2000')

FOUND_S = 150
TRAFFIC = 3_000_000_000     # bytes a second
# always as many digits, so that a reader finds a whole number
COUNT = '''import os, sys, time
files = [os.open(path, os.O_WRONLY) for path in sys.argv[2:]]
began = time.monotonic()
while True:
    for f in files:
        os.pwrite(f, b"%d\\n" % (10 ** 15 + int((time.monotonic() - began) * int(sys.argv[1]))), 0)
    time.sleep(0.01)
'''


def identity(name):
    return hashlib.sha256(f'{name} {os.getpid()}'.encode()).hexdigest()


ID = {name: identity(name)[:12] for name in LOADS}


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(len(CPUS) > 1, 'containers that run at once need two CPUs')
class Live(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.load = self.tmp.name + '/load'
        subprocess.run(['cc', '-O2', '-o', self.load, os.path.join(os.path.dirname(__file__), 'neighbour_load.c'), '-lm'], check=True)
        self.addCleanup(Cgroup(TOP).remove)

    def start(self, name):
        cpu, *args = LOADS[name]
        cgroup = Cgroup(f'{TOP}/docker-{identity(name)}.scope')

        def enter():
            cgroup.add(os.getpid())
            os.sched_setaffinity(0, {cpu})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        p = subprocess.Popen([self.load, *map(str, args)], preexec_fn=enter, stdin=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p.pid

    def resctrl(self, pid):
        """Emulated files, in which the process has a group; its traffic is unknown, and it has 3 MiB of each L3."""
        for name, tasks, cpus in ('', '1\n', '0\n'), ('own', f'{pid}\n', '\n'):
            group = os.path.join(self.tmp.name, 'resctrl', name)
            files = {'tasks': tasks, 'cpus_list': cpus}
            for l3 in range(4):
                files[f'mon_data/mon_L3_{l3:02}/llc_occupancy'] = f'{3 << 20}\n'
                files[f'mon_data/mon_L3_{l3:02}/mbm_total_bytes'] = 'Unavailable\n'
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(group, path)), exist_ok=True)
                with open(os.path.join(group, path), 'w') as f:
                    f.write(text)
            os.makedirs(os.path.join(group, 'mon_groups'))
        return 'unshare', '-m', 'sh', '-c', MOUNT.split('before=')[0] + 'exec "$@"', self.tmp.name

    def traffic(self, collector, group):
        """Let its counters grow by TRAFFIC a second in the files that the collector sees, which are in its mount namespace."""
        files = glob.glob(f'/proc/{collector}/root/sys/fs/resctrl/{group}/mon_data/*/mbm_total_bytes')
        self.assertEqual(len(files), 4)
        p = subprocess.Popen(['chrt', '-f', '3', sys.executable, '-c', COUNT, str(TRAFFIC), *files])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

    def collector(self, name, ops, *under):
        c = Collector(f'{DIR}-{name}', '--unpin', '--sim-ops', ops, '--control', f'{self.tmp.name}/{name}', *BY, under=(*under, 'chrt', '-f', '2'))
        self.addCleanup(lambda: c.err.closed or c.stop())
        return c

    def check_traffic(self, collector):
        """The highest of the readings, each of a second or so, in the status and for Prometheus."""
        self.traffic(collector, 'own')
        pair = until(lambda: (now := self.status('coupled', '--json')['pairs']) and 'memory_traffic' in now[0] and now[0], 60)
        self.assertLess(abs(pair['memory_traffic'] / TRAFFIC - 1), 0.15, pair)
        said = re.search(r'the suspect had up to ([\d.]+) GB/s of memory traffic, 3.0 MiB of the L3 \(resctrl\)', self.status('coupled'))
        self.assertLess(abs(float(said[1]) * 1e9 / TRAFFIC - 1), 0.15)
        value = re.search(r'^ibscope_neighbour_memory_bytes_per_second\{.*suspect_container="(\w+)".*\} (\S+)$', self.metrics(), re.M)
        self.assertEqual(value[1], ID['suspect'])
        self.assertLess(abs(float(value[2]) / TRAFFIC - 1), 0.15)

    def status(self, name, *args):
        p = run('ctl', '--control', f'{self.tmp.name}/{name}', 'status', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        if args and schemas.jsonschema:
            schemas.Schemas().check('ctl-status', json.loads(p.stdout))
        return p.stdout if not args else json.loads(p.stdout)['neighbours']

    def pairs(self, all_of):
        return {(p['victim'], p['suspect']) if isinstance(p['victim'], str) else (p['victim']['container'], p['suspect']['container'])
                for p in all_of['pairs']}

    def metrics(self):
        p = subprocess.run([os.path.join(SAN, 'ibscope-exporter'), '--pin-dir', f'{DIR}-coupled', '--once'], capture_output=True, text=True,
                           timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_pair(self):
        """Named by the collector, by the command that reads it, and to Prometheus; not where nobody slows anybody."""
        pid = {name: self.start(name) for name in LOADS}
        self.collector('apart', 'tasks')
        coupled = self.collector('coupled', 'contended', *self.resctrl(pid['suspect']))
        reader = subprocess.Popen(['chrt', '-f', '2', IBSCOPE, 'neighbours', '--pin-dir', f'{DIR}-coupled', '--duration', '5m', '--json'],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: reader.stdout.closed or reader.communicate())
        self.addCleanup(reader.kill)
        try:
            found = until(lambda: (now := self.status('coupled', '--json'))['pairs'] and now, FOUND_S)
        except AssertionError:
            self.fail(f'nobody named in {FOUND_S} s: {self.status("coupled", "--json")}')
        true = {(ID['victim'], ID['suspect'])}
        if initial_pid_namespace():
            found = until(lambda: (now := self.status('coupled', '--json'))['pairs'] and 'l3_occupancy' in now['pairs'][0] and now, 60)
            self.assertEqual(found['pairs'][0]['l3_occupancy'], 3 << 20)
            self.assertIn('the suspect had up to 3.0 MiB of the L3 (resctrl)', self.status('coupled'))
        self.assertNotIn('memory_traffic', found['pairs'][0])
        text = self.metrics()
        self.assertNotIn('ibscope_neighbour_memory_bytes_per_second{', text)
        self.assertEqual('ibscope_neighbour_l3_bytes{' in text, initial_pid_namespace())
        reader.send_signal(signal.SIGINT)
        read, err = reader.communicate(timeout=60)
        self.assertEqual((reader.returncode, self.pairs(found)), (0, true), err)
        pair, = found['pairs']
        self.assertGreater(pair['latency'], 1.15 * pair['baseline'])
        self.assertGreaterEqual(pair['runs'], 2)
        self.assertLessEqual(pair['chance'], 1e-6)
        # the command began a little later, and may need another run of the suspect
        self.assertLessEqual(self.pairs(json.loads(read)), true)
        self.assertRegex(self.status('coupled'), rf'neighbours: \d containers judged, 1 pair\n  ccx \d+: {ID["victim"]} is \d+ % slower while '
                                                 rf'{ID["suspect"]} is busy')
        labels = re.search(r'^ibscope_neighbour_slowdown_ratio\{(.*)\} (0\.\d+|[1-9].*)$', text, re.M)
        self.assertEqual(dict(re.findall(r'(\w+)="([^"]*)"', labels[1])), {
            'namespace': '', 'pod': '', 'container': ID['victim'], 'suspect_namespace': '', 'suspect_pod': '',
            'suspect_container': ID['suspect'], 'ccx': str(pair['ccx'])})
        self.assertIn('\nibscope_neighbour_pairs 1\n', text)
        if initial_pid_namespace():
            self.check_traffic(coupled.p.pid)
        self.assertRegex(text, r'\nibscope_neighbour_chance_ratio\{[^}]*\} \S*(e-|0$)')
        apart = self.status('apart', '--json')
        self.assertGreaterEqual(apart['judged'], 1)
        self.assertEqual((apart['named'], apart['pairs']), (0, []))

    def test_needs_keys(self):
        """Without the keys nothing is said, rather than that nobody slows anybody."""
        c = Collector(f'{DIR}-keys', '--unpin', '--by', 'container', '--control', self.tmp.name + '/keys')
        self.addCleanup(lambda: c.err.closed or c.stop())
        p = run('ctl', '--control', self.tmp.name + '/keys', 'status', '--json')
        self.assertNotIn('neighbours', json.loads(p.stdout))


if __name__ == '__main__':
    unittest.main()
