# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Series that last: restarts, equal names, groups that make way."""
import os
import re
import sys
import shutil
import tempfile
import unittest
import urllib.request

from ibscope import IBSCOPE, Busy, Cgroup, free_port, until
from test_containers import CPUS, OK, WHY, can_mount, cid
from test_exporter import FILL, Case, Exporter, Program, needs, samples
from test_monitoring import ROOT, read

sys.path.append(os.path.join(ROOT, 'tests/bench'))
import fleet  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

TOP = f'/ibscope-test-fleet-{os.getpid()}'
PINS = f'/sys/fs/bpf/ibscope-fleet-{os.getpid()}'


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipUnless(can_mount(), 'no mount namespace of its own')
class Restarts(unittest.TestCase):
    def setUp(self):
        self.log = tempfile.mkdtemp(prefix='ibscope-test-')
        os.makedirs(self.log + '/containers')
        self.addCleanup(shutil.rmtree, self.log)
        self.addCleanup(Cgroup(TOP).remove)
        self.running = {}
        self.addCleanup(lambda: [self.stop(n) for n in list(self.running)])
        self.last = {}

    def run_container(self, n, name, path):
        """Of a name in the files of a kubelet, as every runtime of it has."""
        open(f'{self.log}/containers/pod-0_shop_{name}-{cid(n)}.log', 'w').close()
        cgroup = Cgroup(f'{TOP}/{path}{cid(n)}')
        self.running[n] = Busy(CPUS[n % len(CPUS)], cgroup, 0.2), cgroup

    def stop(self, n):
        busy, cgroup = self.running.pop(n)
        busy.stop()
        cgroup.remove()

    def serve(self, *args):
        c = Program(['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /var/log && exec "$@"', self.log,
                     IBSCOPE, 'serve', '--source', 'sim', '-c', '500000', '--max-overhead', 'off', '--max-bpf-time', 'off',
                     '--pin-dir', PINS, '--unpin', '--cgroup', TOP, '--grace', '1s', '--control', 'none',
                     '--web.listen-address', '127.0.0.1:0', *args], 'http://')
        self.addCleanup(c.stop)
        self.url = re.search(r'http://[^\s,]+?(?=[,/\s])', c.said()).group() + '/metrics'

    def scrape(self):
        """Series of samples by their labels, after the checks that hold for every scrape."""
        with urllib.request.urlopen(self.url, timeout=60) as a:
            s = samples(a.read().decode())
        now = {k[len('ibscope_samples_total'):]: v for k, v in s.items() if k.startswith('ibscope_samples_total{')}
        self.assertEqual(sum(now.values()) + s['ibscope_samples_ended'], s['ibscope_samples_aggregated_total'])
        for labels in now.keys() & self.last.keys():
            self.assertGreaterEqual(now[labels], self.last[labels], labels)
        # samples come one by one: what has ended is no new sample of another
        self.assertLess(now.get('{container="other"}', 0), 1 + s['ibscope_samples_aggregated_total'] / 100)
        self.last = now
        return now, s

    def wait(self, condition):
        return until(lambda: (lambda now, s: condition(now, s) and (now, s))(*self.scrape()))

    @staticmethod
    def web(runtime=''):
        return '{namespace="shop",pod="pod-0",container="web"%s}' % (runtime and f',runtime="{runtime}"')

    def test_restart(self):
        """The same series continues, even when the old cgroup is forgotten; then it ends."""
        self.run_container(1, 'web', 'docker/')
        self.serve()
        first, _ = self.wait(lambda now, s: now.get(self.web(), 0) > 100)
        self.stop(1)
        self.run_container(2, 'web', 'docker/')
        now, s = self.wait(lambda now, s: s['ibscope_groups_folded_total'] and now.get(self.web(), 0) > first[self.web()] + 100)
        self.assertEqual((len(now), s['ibscope_samples_ended']), (1, 0))
        self.stop(2)
        now, s = self.wait(lambda now, s: self.web() not in now)
        self.assertEqual(now, {})
        self.assertGreater(s['ibscope_samples_ended'], first[self.web()] + 100)

    def test_equal_names(self):
        """Of two runtimes, they are two series, and stay two; cgroups inside a container are one."""
        self.run_container(1, 'web', 'docker/')
        self.run_container(2, 'web', 'libpod-')
        self.serve()
        self.wait(lambda now, s: now.keys() >= {self.web('docker'), self.web('podman')})
        inner = Busy(CPUS[0], Cgroup(f'{TOP}/docker/{cid(1)}/inner'), 0.2)
        self.addCleanup(inner.stop)
        self.wait(lambda now, s: s['ibscope_groups'] == 3)
        self.stop(2)
        now, s = self.wait(lambda now, s: s['ibscope_groups_folded_total'] == 1)
        self.assertEqual(set(now), {self.web('docker')})
        self.assertGreater(s['ibscope_samples_ended'], 0)

    def test_paths(self):
        """On request, the path of each cgroup is a label."""
        self.run_container(1, 'web', 'docker/')
        self.serve('--by', 'cgroup')
        want = self.web().replace('}', f',cgroup="{TOP}/docker/{cid(1)}"}}')
        self.wait(lambda now, s: want in now)

    def test_makes_way(self):
        """With one group, the busiest has it; what that displaces ends, and no series goes back."""
        self.run_container(1, 'idle', 'docker/')
        self.serve('--max-groups', '1')
        self.wait(lambda now, s: now.get(self.web().replace('web', 'idle'), 0) > 10)
        self.running[1][0].stop()
        self.run_container(2, 'web', 'docker/')
        self.last = {}
        end = until(lambda: (lambda s: s.get('ibscope_samples_total' + self.web()) and s)(self.unchecked()))
        self.assertEqual(end['ibscope_groups_displaced_total'], 1)
        self.assertGreater(end['ibscope_samples_ended'], 10)
        self.assertEqual(sum(v for k, v in end.items() if k.startswith('ibscope_samples_total{')) + end['ibscope_samples_ended'],
                         end['ibscope_samples_aggregated_total'])

    def unchecked(self):
        with urllib.request.urlopen(self.url, timeout=60) as a:
            return samples(a.read().decode())


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipUnless(os.path.exists(FILL), 'fill_pins is not built')
class Fleet(Case):
    def test_arithmetic(self):
        """The page says what the exporter exports."""
        page = read(os.path.join(ROOT, 'tools/prometheus/FLEET.md'))

        def numbers(text):
            rows = [re.findall(r'[^|]+', x) for x in re.findall(r'^\| (?:low|medium|full) .*$', text, re.M)]
            return [[float(n) for n in re.findall(r'[\d.]+', ' '.join(r[2:]).replace(',', ''))] for r in rows]
        said, want = numbers(page), numbers(fleet.table(fleet.arithmetic()))
        self.assertEqual(len(said), 6)
        for a, b in zip(said, want):
            self.assertEqual(a[0], b[0])
            for x, y in zip(a, b):      # what a machine has of its own differs a little
                self.assertLess(abs(x - y), 0.05 * y, (said, want))
        self.assertLessEqual(said[0][0], 40)
        self.assertLessEqual(said[1][0], 12)

    @needs('prometheus')
    @unittest.skipUnless(yaml, 'python3-yaml is not here')
    def test_relabelling(self):
        """Without honor_labels, after the operator labelled the target, series have the labels of workloads."""
        spec = next(yaml.safe_load_all(read(os.path.join(ROOT, 'tools/kubernetes/monitors.yaml'))))['spec']
        [end] = spec['podMetricsEndpoints']
        relabel = [{re.sub('[A-Z]', lambda m: '_' + m[0].lower(), k): v for k, v in r.items()} for r in end['relabelings']]
        labels = {'namespace': 'ibscope', 'pod': 'ibscope-x2k', 'container': 'exporter', 'endpoint': 'metrics',
                  '__meta_kubernetes_pod_node_name': 'node-7'}
        with fleet.filled(1) as d, tempfile.TemporaryDirectory() as t:
            e = Exporter(pin_dir=d)
            self.addCleanup(e.stop)
            with open(t + '/p.yml', 'w') as f:
                yaml.safe_dump({'global': {'scrape_interval': '1s'}, 'scrape_configs': [{
                    'job_name': 'podMonitor/ibscope/ibscope/0', 'relabel_configs': relabel,
                    'static_configs': [{'targets': [f'127.0.0.1:{e.port}'], 'labels': labels}]}]}, f)
            port = free_port()
            p = self.start(Program, ['prometheus', f'--config.file={t}/p.yml', f'--storage.tsdb.path={t}/data',
                                     f'--web.listen-address=127.0.0.1:{port}'], 'ready to receive')
            found = self.until(lambda: fleet.results(port, 'ibscope_samples_total'))
            self.assertEqual([r['metric'] for r in found], [{
                '__name__': 'ibscope_samples_total', 'instance': f'127.0.0.1:{e.port}', 'job': 'ibscope', 'node': 'node-7',
                'namespace': 'production-1', 'pod': 'checkout-7d9f8b6c5d-00001', 'container': 'checkout'}])
            p.stop()


if __name__ == '__main__':
    unittest.main()
