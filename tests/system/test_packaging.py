# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is installed: units, manifest, image, sample of the options, package."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from ibscope import BUILD, IBSCOPE, can_bpf, run

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, 'tools')
UNITS = ('ibscope.service', 'ibscope-exporter.service')
PROGRAM = os.path.join(BUILD, 'ibscope')
PIN_DIR = '/sys/fs/bpf/ibscope-package-%d' % os.getpid()


def read(*path):
    with open(os.path.join(TOOLS, *path)) as f:
        return f.read()


def call(*args, **kw):
    return subprocess.run(args, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, **kw)


def settings(text):
    """A unit's settings, all values of each."""
    out = {}
    for m in re.finditer(r'^(\w+)=(.*)$', text, re.M):
        out.setdefault(m[1], []).append(m[2])
    return out


def capabilities():
    return settings(read('systemd', UNITS[0]))['CapabilityBoundingSet'][0].split()


def config_check(text):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write(text)
        f.flush()
        return run('serve', '--config', f.name, '--config-check')


class Version(unittest.TestCase):
    def test_one_everywhere(self):
        """Its minor number is the schema of the pins: builds that cannot share counters differ in version."""
        with open(os.path.join(ROOT, 'include/ibscope/pin_layout.h')) as f:
            schema = re.search(r'^#define IBS_PIN_SCHEMA\s+(\d+)$', f.read(), re.M)[1]
        version = re.match(r'ibscope (\S+)', run('--version').stdout)[1]
        self.assertRegex(version, rf'^0\.{schema}\.\d+$')
        found = {}
        for path, pattern in (
                (('Dockerfile',), r'ibscope:([0-9.]+)'), (('debian', 'changelog'), r'^ibscope \(([^)]+)\)'),
                (('kubernetes', 'ibscope.yaml'), r'image: ibscope:(\S+)'), (('kubernetes', 'chart', 'values.yaml'), r'ibscope:([0-9.]+)'),
                (('kubernetes', 'chart', 'templates', 'ibscope.yaml'), r'"image: ibscope:([0-9.]+)"'),
                (('kubernetes', 'chart', 'Chart.yaml'), r'^(?:appV|v)ersion: "?([0-9.]+)')):
            found['/'.join(path)] = set(re.findall(pattern, read(*path), re.M))
        self.assertEqual(found, {path: {version} for path in found})


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd-analyze is not here')
    def test_systemd_takes_them(self):
        # systemd-analyze wants the program where the unit has it
        with tempfile.TemporaryDirectory() as d:
            paths = []
            for unit in UNITS:
                text = re.sub(r'^ExecStart=\S+', 'ExecStart=/bin/true', read('systemd', unit), flags=re.M)
                paths.append(os.path.join(d, unit))
                with open(paths[-1], 'w') as f:
                    f.write(text)
            os.mkdir(os.path.join(d, UNITS[0] + '.d'))
            for drop_in in 'sys-admin.conf', 'nested-names.conf', 'shared-machine.conf':
                shutil.copy(os.path.join(TOOLS, 'systemd', drop_in), os.path.join(d, UNITS[0] + '.d'))
            p = call('systemd-analyze', 'verify', '--man=no', *paths)
            said = [x for x in p.stderr.splitlines() if 'ibscope' in x]
            self.assertEqual((p.returncode, said), (0, []))

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd-analyze is not here')
    def test_exposure(self):
        for unit, limit in zip(UNITS, (17, 14)):
            p = call('systemd-analyze', 'security', '--offline=true', '--no-pager', f'--threshold={limit}',
                     os.path.join(TOOLS, 'systemd', unit))
            if 'unrecognized option' in p.stderr:
                self.skipTest('systemd-analyze is too old')
            self.assertEqual(p.returncode, 0, p.stdout[-200:] + p.stderr)

    def test_exporter_has_no_power(self):
        s = settings(read('systemd', UNITS[1]))
        self.assertEqual(s['CapabilityBoundingSet'], [''])
        self.assertEqual(s['DynamicUser'], ['yes'])
        # what it is started with is what is bound
        there = s['BindReadOnlyPaths'][0].split(':')[1]
        self.assertIn(f'--pin-dir={there} ', s['ExecStart'][0])
        self.assertIn(s['BindReadOnlyPaths'][0].split(':')[0].lstrip('-'), s['ExecStartPre'][0].split())

    def test_collector_may_write_its_pins(self):
        s = settings(read('systemd', UNITS[0]))
        self.assertEqual(s['ReadWritePaths'], ['-' + re.search(r'in DIR of a bpffs; default\s+(\S+)', run('serve', '--help').stdout)[1]])
        self.assertIn(s['ReadWritePaths'][0][1:], s['ExecStartPre'][0].split())

    def collector(self, caps):
        names = ','.join('+' + c[4:].lower() for c in caps)
        # timeout passes its signal on, and its own status is 124
        return call('timeout', '--preserve-status', '2', 'setpriv', f'--bounding-set=-all,{names}',
                    '--inh-caps=-all', '--no-new-privs', IBSCOPE, 'serve', '--source', 'sim', '-c', '2000000',
                    '--pin-dir', PIN_DIR, '--unpin')

    @unittest.skipUnless(shutil.which('setpriv'), 'setpriv is not here')
    @unittest.skipUnless(can_bpf()[0], 'no BPF here')
    def test_capabilities_are_those_it_takes(self):
        with open('/proc/sys/kernel/perf_event_paranoid') as f:
            if int(f.read()) > 2:
                self.skipTest('kernel.perf_event_paranoid is above 2')
        p = self.collector(capabilities())
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('kernel memory', p.stderr)
        for one in ('CAP_BPF', 'CAP_PERFMON'):
            p = self.collector([c for c in capabilities() if c != one])
            self.assertEqual(p.returncode, 1, f'without {one}: {p.stderr}')

    def test_memory(self):
        s = settings(read('systemd', UNITS[0]))
        default = int(re.search(r'kernel memory limit,.*default (\d+)M', run('serve', '--help').stdout)[1])
        self.assertGreaterEqual(int(s['MemoryMax'][0].rstrip('M')), default + 32)

    def test_sample_of_the_options(self):
        text = read('systemd', 'ibscope.conf')
        p = config_check(text)
        self.assertEqual(p.returncode, 0, p.stderr)
        options = re.sub(r'^# ([a-z-]+ = )', r'\1', text, flags=re.M)
        self.assertGreater(len(re.findall(r'^[a-z-]+ = ', options, re.M)), 8)
        p = config_check(options)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(config_check(options + 'no-such = 1\n').returncode, 2)


@unittest.skipUnless(yaml, 'python3-yaml is not here')
class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.docs = {d['kind']: d for d in yaml.safe_load_all(read('kubernetes', 'ibscope.yaml'))}
        self.pod = self.docs['DaemonSet']['spec']['template']
        self.by_name = {c['name']: c for c in self.pod['spec']['containers']}

    def test_names_fit(self):
        ds, service = self.docs['DaemonSet'], self.docs['Service']
        labels = self.pod['metadata']['labels']
        for selector in (ds['spec']['selector']['matchLabels'], service['spec']['selector']):
            self.assertTrue(selector)
            self.assertEqual({k: labels.get(k) for k in selector}, selector)
        space = self.docs['Namespace']['metadata']['name']
        for d in self.docs.values():
            if d['kind'] != 'Namespace':
                self.assertEqual(d['metadata']['namespace'], space, d['kind'])
        self.assertEqual(self.pod['spec']['serviceAccountName'], self.docs['ServiceAccount']['metadata']['name'])
        volumes = {v['name']: v for v in self.pod['spec']['volumes']}
        used = {m['name'] for c in self.by_name.values() for m in c['volumeMounts']}
        self.assertEqual(used, set(volumes))
        self.assertEqual(volumes['config']['configMap']['name'], self.docs['ConfigMap']['metadata']['name'])
        port = service['spec']['ports'][0]['targetPort']
        self.assertEqual(self.pod['metadata']['annotations']['prometheus.io/port'], str(port))
        self.assertIn(f'web.listen-address = 127.0.0.1:{port}\n', self.docs['ConfigMap']['data']['exporter.conf'])
        for kind, api in (('DaemonSet', 'apps/v1'), ('Service', 'v1'), ('ConfigMap', 'v1'),
                          ('ServiceAccount', 'v1'), ('Namespace', 'v1'), ('NetworkPolicy', 'networking.k8s.io/v1')):
            self.assertEqual(self.docs[kind]['apiVersion'], api)

    @unittest.skipUnless(shutil.which('go'), 'go is not here')
    def test_chart(self):
        """The Helm chart is the manifest with some values, but for the namespace, which has to be there."""
        chart = os.path.join(ROOT, 'tools', 'kubernetes', 'chart')
        with open(chart + '/values.yaml') as f:
            values = yaml.safe_load(f)

        def render(namespace, **changes):
            p = subprocess.run(['go', 'run', os.path.join(ROOT, 'tests/system/render_chart.go'), chart,
                                json.dumps({**values, **changes}), namespace], capture_output=True, text=True, timeout=120)
            self.assertEqual(p.returncode, 0, p.stderr)
            return {d['kind']: d for d in yaml.safe_load_all(p.stdout) if d}
        docs = render('ibscope')
        want = {k: v for k, v in self.docs.items() if k != 'Namespace'}
        want['ConfigMap']['data']['exporter.conf'] += 'detail = low\n'
        self.assertEqual(docs, want)
        docs = render('slow', image='r.example/ibscope:9', listen=':9950', monitor='PodMonitor', detail='full', maxGroups=100,
                      maxOverhead='1%', nestedNames=True, nodeSelector={'zone': 'a'}, prometheus={'namespace': 'mon', 'name': 'prom'})
        self.assertEqual({d['metadata']['namespace'] for d in docs.values()}, {'slow'})
        self.assertEqual(docs.keys(), want.keys() | {'PodMonitor'})
        pod = docs['DaemonSet']['spec']['template']['spec']
        self.assertEqual({c['image'] for c in pod['containers']}, {'r.example/ibscope:9'})
        self.assertEqual(pod['nodeSelector']['zone'], 'a')
        added = [c['securityContext']['capabilities'].get('add', []) for c in pod['containers']]
        more = settings(read('systemd', 'nested-names.conf'))['CapabilityBoundingSet'][0].split()
        self.assertEqual([['CAP_' + c for c in caps] for caps in added], [capabilities() + more, []])
        data = docs['ConfigMap']['data']
        self.assertIn('web.listen-address = :9950\ndetail = full\n', data['exporter.conf'])
        self.assertRegex(data['ibscope.conf'], r'(?s)max-groups = 100\n.*max-overhead = 1%\n')
        [peer] = docs['NetworkPolicy']['spec']['ingress'][0]['from']
        self.assertEqual([*peer['namespaceSelector']['matchLabels'].values(), *peer['podSelector']['matchLabels'].values()],
                         ['mon', 'prom'])
        self.assertIn('ServiceMonitor', render('ibscope', monitor='ServiceMonitor'))

    def test_monitors(self):
        """They find what the manifest makes."""
        monitors = {d['kind']: d for d in yaml.safe_load_all(read('kubernetes', 'monitors.yaml'))}
        service = self.docs['Service']
        [pod_end] = monitors['PodMonitor']['spec']['podMetricsEndpoints']
        [service_end] = monitors['ServiceMonitor']['spec']['endpoints']
        self.assertEqual([{'name': service_end['port'], 'port': pod_end['portNumber']}],
                         [{k: p[k] for k in ('name', 'port')} for p in service['spec']['ports']])
        self.assertEqual(pod_end['relabelings'], service_end['relabelings'])
        for labels, m in ((self.pod['metadata']['labels'], 'PodMonitor'), (service['metadata']['labels'], 'ServiceMonitor')):
            want = monitors[m]['spec']['selector']['matchLabels']
            self.assertEqual({k: labels.get(k) for k in want}, want)
            self.assertEqual(monitors[m]['metadata']['namespace'], service['metadata']['namespace'])

    def test_no_port_is_open(self):
        """By default nobody can connect to the exporter; when it is opened, only Prometheus can."""
        for c in self.by_name.values():
            self.assertNotIn('ports', c)
            self.assertNotRegex(' '.join(c['command']), r'listen-address')
        self.assertNotIn('hostNetwork', self.pod['spec'])
        self.assertEqual(re.findall(r'web.listen-address = (\S+):', self.docs['ConfigMap']['data']['exporter.conf']), ['127.0.0.1'])
        self.assertEqual(self.pod['metadata']['annotations']['prometheus.io/scrape'], 'false')
        policy = self.docs['NetworkPolicy']['spec']
        self.assertEqual((policy['podSelector'], policy['egress']), ({}, []))
        self.assertEqual(set(policy['policyTypes']), {'Ingress', 'Egress'})
        [rule] = policy['ingress']
        for peer in rule['from']:
            self.assertEqual(set(peer), {'namespaceSelector', 'podSelector'})
            self.assertTrue(peer['namespaceSelector']['matchLabels'] and peer['podSelector']['matchLabels'])
        self.assertEqual([p['port'] for p in rule['ports']], [self.docs['Service']['spec']['ports'][0]['targetPort']])

    def test_mounts(self):
        """Runtimes look for the mount around a path by the first characters of its name."""
        private = '/var/lib/containers/storage/overlay'     # podman makes it
        for c in self.by_name.values():
            for m in c['volumeMounts']:
                if m['mountPath'].startswith(private):
                    self.assertNotIn('mountPropagation', m)

    def test_powers(self):
        self.assertTrue(self.pod['spec']['hostPID'])
        for c in self.by_name.values():
            s = c['securityContext']
            self.assertFalse(s['allowPrivilegeEscalation'])
            self.assertTrue(s['readOnlyRootFilesystem'])
            self.assertEqual(s['capabilities']['drop'], ['ALL'])
            self.assertNotIn('privileged', s)
        added = self.by_name['collector']['securityContext']['capabilities']['add']
        self.assertEqual(['CAP_' + c for c in added], capabilities())
        self.assertEqual(self.by_name['collector']['securityContext']['seccompProfile'], {'type': 'RuntimeDefault'})
        s = self.by_name['exporter']['securityContext']
        self.assertNotIn('add', s['capabilities'])
        self.assertTrue(s['runAsNonRoot'])
        writable = [(c['name'], m['name']) for c in self.by_name.values() for m in c['volumeMounts']
                    if not m.get('readOnly')]
        self.assertEqual(writable, [('collector', 'pins'), ('collector', 'control')])

    def test_limits(self):
        def mib(text):
            return int(re.fullmatch(r'(\d+)Mi', text)[1])
        conf = self.docs['ConfigMap']['data']['ibscope.conf']
        for c in self.by_name.values():
            r = c['resources']
            self.assertLessEqual(mib(r['requests']['memory']), mib(r['limits']['memory']))
            self.assertIn('cpu', r['limits'])
        limit = mib(self.by_name['collector']['resources']['limits']['memory'])
        self.assertGreaterEqual(limit, int(re.search(r'max-memory = (\d+)', conf)[1]) + 32)
        # before it is killed it ends by itself
        self.assertGreaterEqual(limit, int(re.search(r'max-rss = (\d+)', conf)[1]) + 16)

    def test_options(self):
        conf = self.docs['ConfigMap']['data']['ibscope.conf']
        p = config_check(conf)
        self.assertEqual(p.returncode, 0, p.stderr)
        pins = re.search(r'pin-dir = (\S+)', conf)[1]
        for c in self.by_name.values():
            self.assertIn(pins, [m['mountPath'] for m in c['volumeMounts'] if m['name'] == 'pins'])
        conf = self.docs['ConfigMap']['data']['exporter.conf']
        self.assertIn(f'pin-dir = {pins}\n', conf)
        self.assertEqual(self.by_name['exporter']['command'][1:], ['--config=/etc/ibscope/exporter.conf'])
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write(conf)
            f.flush()
            p = call(os.path.join(BUILD, 'ibscope-exporter'), '--config', f.name, '--config-check')
        self.assertEqual(p.returncode, 0, p.stderr)


class Image(unittest.TestCase):
    def test_has_the_libraries(self):
        """Each library that a program names is of a package that the image installs."""
        text = read('Dockerfile')
        for program in ('ibscope', 'ibscope-exporter'):
            path = os.path.join(BUILD, program)
            if not os.path.exists(path):
                continue
            needed = re.findall(r'\(NEEDED\).*\[(.*)\]', call('readelf', '-d', path).stdout)
            self.assertIn('libc.so.6', needed)
            for lib in needed:
                p = call('dpkg-query', '-S', f'*/x86_64-linux-gnu/{lib}')
                if p.returncode:
                    self.skipTest(f'dpkg does not know {lib}')
                package = p.stdout.split(':')[0]
                if package in ('libc6', 'libcrypt1'):     # of every image
                    continue
                self.assertRegex(text, rf'[ \n]{re.escape(package)}[ \n]', f'{lib} of {package}')

    def test_stages(self):
        text = read('Dockerfile')
        # by hand, it takes what the unit has; an older docker knows only the capability that was before two of them
        new, old = text.split('# Docker 20.10', 1)
        self.assertEqual(['CAP_' + c for c in re.findall(r'--cap-add=(\w+)', new)], capabilities())
        self.assertEqual(re.findall(r'--cap-add=(\w+)', old), ['SYS_ADMIN'])
        self.assertEqual(re.findall(r'^FROM (\S+)(?: AS (\w+))?$', text, re.M),
                         [('debian:${DEBIAN}', 'build'), ('debian:${DEBIAN}', '')])
        for stage in re.findall(r'--from=(\w+)', text):
            self.assertEqual(stage, 'build')
        for update in re.findall(r'^RUN (apt-get update.*?[^\\])$', text, re.M | re.S):
            self.assertIn('--no-install-recommends', update)
            self.assertIn('rm -rf /var/lib/apt/lists', update)


class Install(unittest.TestCase):
    def files(self, d):
        return {os.path.relpath(os.path.join(p, f), d) for p, _, fs in os.walk(d) for f in fs}

    def test_install(self):
        with tempfile.TemporaryDirectory() as d:
            for _ in range(2):
                p = call(os.path.join(TOOLS, 'install.sh'), BUILD, d, '/opt/x')
                self.assertEqual((p.returncode, p.stderr), (0, ''))
                with open(f'{d}/etc/ibscope/ibscope.conf', 'a') as f:
                    f.write('# mine\n')
            with open(f'{d}/etc/ibscope/ibscope.conf') as f:
                self.assertEqual(f.read().count('# mine'), 2)
            p = call(f'{d}/opt/x/bin/ibscope', '--version')
            self.assertEqual(p.returncode, 0)
            there = self.files(d)
            commands = re.findall(r'^  ([a-z0-9]+) ', run('--help').stdout, re.M)
            self.assertGreater(len(commands), 5)
            for c in commands:
                self.assertIn(f'opt/x/share/man/man1/ibscope-{c}.1', there)
            for f in ('lib/systemd/system/ibscope.service', 'share/man/man5/ibscope-recording.5', 'share/man/man7/ibscope-metrics.7',
                      'share/man/man7/ibscope-tutorial.7', 'share/doc/ibscope/examples/pointer_chase.c',
                      'share/man/man1/ibscope.1',
                      'share/bash-completion/completions/ibscope', 'share/zsh/site-functions/_ibscope', 'share/ibscope/prometheus/rules.yml',
                      'share/ibscope/grafana/ibscope.json', 'share/ibscope/kubernetes/ibscope.yaml',
                      'share/ibscope/schemas/ibscope-common.schema.json', 'share/ibscope/schemas/ibscope-report.schema.json',
                      'share/doc/ibscope/examples/notebook/memory_latency.py',
                      'share/ibscope/systemd/nested-names.conf', 'share/ibscope/systemd/shared-machine.conf'):
                self.assertIn('opt/x/' + f, there)
            with open(f'{d}/opt/x/lib/systemd/system/ibscope.service') as f:
                self.assertIn('ExecStart=/opt/x/bin/ibscope serve ', f.read())
            with_unit = {f[len('opt/x/bin/'):] for f in there if f.startswith('opt/x/bin/')}
            self.assertEqual({os.path.basename(f)[:-8] for f in there if f.endswith('.service')}, with_unit)

    def test_uninstall(self):
        install = os.path.join(TOOLS, 'install.sh')
        for prefix in '/usr', '/usr/local':
            with tempfile.TemporaryDirectory() as d:
                os.makedirs(d + prefix + '/bin')
                with open(d + prefix + '/bin/other', 'w'):
                    pass
                self.assertEqual(call(install, BUILD, d, prefix).returncode, 0)
                with open(f'{d}/etc/ibscope/ibscope.conf', 'a') as f:
                    f.write('# mine\n')
                p = call(install, '--uninstall', BUILD, d, prefix)
                self.assertEqual((p.returncode, p.stderr, p.stdout), (0, '', d + '/etc/ibscope/ibscope.conf: changed, so it stays\n'))
                self.assertEqual(self.files(d), {prefix[1:] + '/bin/other', 'etc/ibscope/ibscope.conf'})

    @unittest.skipUnless(shutil.which('zsh') and shutil.which('fish'), 'zsh or fish is not here')
    def test_shells_find_completions(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith('XDG_')}
        paths = call('zsh', '-fc', 'print -l $fpath', env=env).stdout.split() + \
            call('fish', '-c', 'string join \\n $fish_complete_path', env=env).stdout.split()
        for prefix in '/usr', '/usr/local':
            with tempfile.TemporaryDirectory() as d:
                self.assertEqual(call(os.path.join(TOOLS, 'install.sh'), BUILD, d, prefix).returncode, 0)
                found = {name for path in paths for name in ('_ibscope', 'ibscope.fish') if os.path.exists(f'{d}{path}/{name}')}
                self.assertEqual(found, {'_ibscope', 'ibscope.fish'}, prefix)

    def test_package_says_what_it_takes_to_build(self):
        want = re.search(r"^build='(.*)'", read('deps.sh'), re.M)[1].split()
        self.assertIn('clang', want)
        have = re.split(r'[,\s]+', re.search(r'^Build-Depends: (.*(?:\n .*)*)', read('debian', 'control'), re.M)[1])
        self.assertEqual([p for p in want if p not in have + ['gcc', 'libc6-dev', 'make']], [])

    def test_package(self):
        debs = glob.glob(os.path.join(BUILD, 'deb', 'ibscope_*.deb'))
        if not debs or not shutil.which('dpkg-deb'):
            self.skipTest('make deb has not run')
        pages = glob.glob(os.path.join(TOOLS, 'man', '*'))
        if max(map(os.path.getmtime, pages)) > os.path.getmtime(debs[0]):
            self.skipTest('make deb has not run since')
        with tempfile.TemporaryDirectory() as d:
            call('dpkg-deb', '-R', debs[0], d, check=True)
            there = self.files(d)
            with open(f'{d}/DEBIAN/conffiles') as f:
                self.assertEqual(set(f.read().split()), {'/etc/ibscope/ibscope.conf', '/etc/default/ibscope-exporter'})
            self.assertIn('lib/systemd/system/ibscope.service.d/sys-admin.conf', there)
            for f in ('usr/bin/ibscope', 'usr/bin/ibscope-exporter', 'lib/systemd/system/ibscope.service',
                      'lib/systemd/system/ibscope-exporter.service', 'usr/share/bash-completion/completions/ibscope',
                      'usr/share/bash-completion/completions/ibscope-exporter', 'usr/share/man/man1/ibscope-ctl.1.gz'):
                self.assertIn(f, there)
            for page in pages:
                self.assertIn(f'usr/share/man/man{page[-1]}/{os.path.basename(page)}.gz', there)
            self.assertEqual(call(f'{d}/usr/bin/ibscope', '--version').returncode, 0)
            with open(f'{d}/DEBIAN/postinst') as f:
                self.assertIn('ibscope.service', f.read())


if __name__ == '__main__':
    unittest.main()
