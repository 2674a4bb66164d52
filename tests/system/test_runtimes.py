# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Real container runtimes: ibscope shows the names that they give their containers.

Everything runs in a mount namespace of its own, with temporary directories over those where runtimes
keep their state, so that those of the machine are neither seen nor changed; and in a PID namespace, so
that no container outlives a test that is killed. Images are made from busybox. With RUNTIMES=all
(make runtimes) each runtime goes through each case, and a table is printed; otherwise each is only
started, once, and named. With CGROUPS=v2 there is no v1 hierarchy, whatever the machine has.
"""
import contextlib
import ctypes
import fcntl
import glob
import io
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request

try:
    import yaml
except ImportError:
    yaml = None

import ibscope
from ibscope import Collector, until

OK, WHY = ibscope.can_bpf()
ALL = os.environ.get('RUNTIMES') == 'all'
SIM = ('--source', 'sim', '-c', '200000')
MS_BIND = 0x1000
# Our number where others see us. Names hold it, as the machine may have containers, too.
OURS = int(os.environ.setdefault('IBSCOPE_RUNTIMES', str(os.getpid())))
STATE = ('/var/lib/docker', '/run/docker', '/var/lib/containers', '/run/containers', '/run/libpod',
         '/var/lib/containerd', '/run/containerd', '/run/runc')
PINS = f'/sys/fs/bpf/ibscope-runtimes-{OURS}'
BUSY = '/bin/busy'
QUICK = 'docker', 'podman pod', 'containerd (CRI)', 'lxc'
CASES = ('name', 'id', 'pod', 'rename', 'restart', 'removed', 'same name', 'metrics', 'mounts')
table = {}
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, flags):
    if libc.mount(source.encode(), target.encode(), None, flags, None):
        raise OSError(ctypes.get_errno(), target)


def enter_namespaces():
    """Begin again as the first process of a PID namespace."""
    unshare = ['unshare', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child']
    if os.geteuid() or subprocess.run([*unshare, 'true'], capture_output=True).returncode:
        raise unittest.SkipTest('no mount and PID namespace of its own')
    os.execvp(unshare[0], [*unshare, *sys.orig_argv])


def reap():
    """A child runs the tests. What the first process of a namespace does besides is to wait for orphans."""
    child = os.fork()
    while child:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def make_dir():
    """Also removes what earlier tests left that were killed: directories, users, empty cgroups."""
    global tmp, lock
    for d in glob.glob('/tmp/ibscope-runtimes-*'):
        with contextlib.suppress(OSError), open(d + '/lock') as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_dir(d, int(d.rsplit('-', 1)[1]))
    tmp = f'/tmp/ibscope-runtimes-{OURS}'
    os.mkdir(tmp, 0o755)
    lock = open(tmp + '/lock', 'w')
    fcntl.flock(lock, fcntl.LOCK_EX)


def remove_dir(d, ours):
    ids = {name for _, dirs, _ in os.walk(d) for name in dirs if re.fullmatch('[0-9a-f]{64}', name)}
    for path, _, _ in os.walk('/sys/fs/cgroup', topdown=False):
        name = os.path.basename(path)
        if f'rt{ours}' in path or f'-{ours}.' in name or ids.intersection(re.split(r'[-.:_]', name)):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                if '/libpod_parent/' in os.path.dirname(path):  # the pod's
                    os.rmdir(os.path.dirname(path))
    call('userdel', '-r', f'ibsrt{ours}', check=False)
    shutil.rmtree(d, ignore_errors=True)


def setUpModule():
    if not OK:
        raise unittest.SkipTest(f'no BPF on this machine: {WHY}')
    busybox = shutil.which('busybox')
    if not busybox or not subprocess.run(['ldd', busybox], capture_output=True).returncode:
        raise unittest.SkipTest('no busybox that is linked statically')
    if OURS == os.getpid():
        enter_namespaces()
    reap()
    if os.environ.get('CGROUPS') == 'v2':
        call('sh', '-c', V2 + 'true')
    make_dir()
    for d in STATE:
        os.makedirs(tmp + '/state' + d)
        os.makedirs(d, exist_ok=True)
        mount(tmp + '/state' + d, d, MS_BIND)
    make_image(busybox)


def tearDownModule():
    if table:
        width = max(map(len, table))
        print('\n' + ' ' * width, *(f'{c:9}' for c in CASES))
        for runtime, cells in table.items():
            print(f'{runtime:{width}}', *(f'{cells.get(c, "-"):9}' for c in CASES))
    with open('/proc/self/mountinfo') as f:
        lines = f.readlines()
    for line in reversed(lines):
        at = line.split()[4]
        if at.startswith((*STATE, tmp)):
            libc.umount2(at.encode(), 2)
    remove_dir(tmp, OURS)


def make_image(busybox):
    """A root file system, as a directory, and as what `docker load` takes."""
    root = tmp + '/rootfs'
    for d in 'bin', 'proc', 'sys', 'dev', 'etc', 'tmp', 'usr', 'var', 'run', 'root':
        os.makedirs(f'{root}/{d}')
    shutil.copy(busybox, root + '/bin/busybox')
    for applet in 'sh', 'sleep':
        os.symlink('busybox', f'{root}/bin/{applet}')
    open(root + '/etc/os-release', 'w').close()
    with open(root + '/bin/busy', 'w') as f:
        f.write('#!/bin/sh\nwhile :; do :; done\n')
    os.chmod(root + '/bin/busy', 0o755)
    with tarfile.open(tmp + '/layer.tar', 'w') as t:
        t.add(root, '.')
    digest = subprocess.run(['sha256sum', tmp + '/layer.tar'], capture_output=True, text=True).stdout.split()[0]
    parts = {'config.json': {'architecture': 'amd64', 'os': 'linux', 'config': {'Cmd': ['/bin/sleep', '100000']},
                             'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + digest]}},
             'manifest.json': [{'Config': 'config.json', 'RepoTags': ['localhost/bb:latest'], 'Layers': ['layer.tar']}]}
    with tarfile.open(tmp + '/image.tar', 'w') as t:
        t.add(tmp + '/layer.tar', 'layer.tar')
        for name, what in parts.items():
            data = json.dumps(what).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))


def call(*args, check=True, **kw):
    p = subprocess.run(args, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **kw)
    if check and p.returncode:
        raise AssertionError(f'{args}: {p.stdout}{p.stderr}')
    return p.stdout.strip()


# A hierarchy that is v2 alone, as newer systems have it, for what follows.
V2 = 'umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && '


class Runtime:
    """What differs between them. Each start() makes a busy container and returns its id, if any."""
    needs = ()
    daemon = None
    prefix = pod = ''   # of the names, as they are shown; of the name of a pod

    def begin(self):
        pass

    def spawn(self, ready, *args):
        path = f'{tmp}/{type(self).__name__}.log'
        with open(path, 'w') as log:
            self.daemon = subprocess.Popen(args, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def is_up():
            with open(path) as log:
                text = log.read()
            assert self.daemon.poll() is None, text
            return ready in text
        until(is_up)

    def end(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait(60)


class Docker(Runtime):
    needs = 'dockerd', 'docker', 'runc', 'containerd'
    root = '/var/lib/docker'

    def begin(self):
        self.dir = tempfile.mkdtemp(dir=tmp)
        self.spawn('API listen on', 'dockerd', '--exec-root', self.dir + '/exec', '-H', f'unix://{self.dir}/s', '--bridge', 'none', '--iptables=false',
                   '--pidfile', self.dir + '/pid', *(['--data-root', self.root] if self.root != Docker.root else []))
        self.docker('load', '-i', tmp + '/image.tar')

    def docker(self, *args, **kw):
        return call('docker', '-H', f'unix://{self.dir}/s', *args, **kw)

    def start(self, name):
        return self.docker('run', '-d', '--name', name, '--network', 'none', 'localhost/bb', BUSY)

    def rename(self, old, new):
        self.docker('rename', old, new)

    def restart(self, name):
        self.docker('restart', '-t', '0', name)

    def remove(self, name):
        self.docker('rm', '-f', name, check=False)


class DockerMoved(Docker):
    @property
    def root(self):
        return tmp + '/docker-moved'


class DockerInDocker(Docker):
    """With the host's programs, and the capabilities that are needed, as all of them can be more than the test has."""
    inner = None
    outer = f'rt{OURS}outer'
    prefix = outer + '/'

    def begin(self):
        super().begin()
        outer = super().docker
        name = outer('run', '-d', '--name', self.outer, '--network', 'none', '--tmpfs', '/var/lib/docker:exec', '--tmpfs', '/run:exec',
                     *('--cap-add=' + c for c in ('SYS_ADMIN', 'NET_ADMIN', 'SYS_PTRACE', 'DAC_READ_SEARCH')),
                     *('--security-opt=' + o for o in ('seccomp=unconfined', 'apparmor=unconfined', 'systempaths=unconfined')),
                     *(a for d in ('/usr', '/lib', '/lib64', '/etc/alternatives') for a in ('-v', f'{d}:{d}:ro')),
                     '-v', '/sys/fs/cgroup:/sys/fs/cgroup', '-v', tmp + '/image.tar:/image.tar:ro', 'localhost/bb', '/bin/sleep', '100000')
        daemon = self.daemon
        self.spawn('API listen on', 'docker', '-H', f'unix://{self.dir}/s', 'exec', self.outer, '/usr/sbin/dockerd', '-s', 'vfs',
                   '--bridge', 'none', '--iptables=false', '--cgroup-parent', f'/docker/{name}/docker')
        self.inner, self.daemon = self.daemon, daemon
        self.docker('load', '-i', '/image.tar')

    def docker(self, *args, **kw):
        return super().docker(*(['exec', self.outer, shutil.which('docker')] if self.inner else []), *args, **kw)

    def end(self):
        super().docker('rm', '-f', self.outer, check=False)
        if self.inner:
            self.inner.wait(60)
        super().end()


class Podman(Runtime):
    needs = 'podman', 'runc', 'conmon'
    args = ()

    def begin(self):
        conf = tmp + '/containers.conf'
        with open(conf, 'w') as f:
            f.write('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\npids_limit = 0\nnetns = "none"\n'
                    '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n')
        self.env = dict(os.environ, CONTAINERS_CONF=conf)
        self.podman('load', '-i', tmp + '/image.tar')

    def podman(self, *args, **kw):
        return call('podman', *self.args, *args, env=self.env, **kw)

    def start(self, name, *more):
        return self.podman('run', '-d', '--name', name, *more, 'localhost/bb', BUSY)

    def rename(self, old, new):
        self.podman('rename', old, new)

    def restart(self, name):
        self.podman('restart', '-t', '0', name)

    def remove(self, name):
        self.podman('rm', '-f', '-t', '0', name, check=False)

    def end(self):
        self.podman('rm', '-f', '-t', '0', '-a', check=False)
        self.podman('pod', 'rm', '-f', '-a', check=False)


class PodmanMoved(Podman):
    @property
    def args(self):
        return '--root', tmp + '/podman-moved', '--runroot', tmp + '/podman-run'


class PodmanPod(Podman):
    pod = 'pod-'

    def start(self, name):
        call('podman', 'pod', 'create', '--name', 'pod-' + name, '--infra-image', 'localhost/bb',
             '--infra-command', '/bin/sleep 1000', '--network', 'none', env=self.env)
        return super().start(name, '--pod', 'pod-' + name)


class PodmanBarePod(Podman):
    pod = 'pod-'

    def start(self, name):
        call('podman', 'pod', 'create', '--name', 'pod-' + name, '--infra=false', env=self.env)
        return super().start(name, '--pod', 'pod-' + name)


class PodmanSplit(Podman):
    """As Quadlet's units have it. On v2 only."""
    rename = restart = None
    unit = f'ibscope-runtimes-{OURS}.service'

    def end(self):
        super().end()
        ibscope.Cgroup(self.unit).remove()

    def start(self, name):
        return call('unshare', '-m', 'sh', '-c', V2 + f'd=/sys/fs/cgroup/{self.unit}; mkdir -p $d; '
                    'echo $$ > $d/cgroup.procs; exec "$@"', 'sh', 'podman', 'run', '-d', '--name', name, '--cgroups=split',
                    'localhost/bb', BUSY, env=self.env)


class PodmanUser(Podman):
    """A user's. On v2 only."""
    needs = (*Podman.needs, 'newuidmap', 'useradd', 'su')
    rename = restart = None
    user = f'ibsrt{OURS}'

    def begin(self):
        call('useradd', '-m', self.user)
        os.makedirs(self.run_dir(), exist_ok=True)
        os.chown(self.run_dir(), self.uid(), self.uid())
        os.chmod(tmp + '/image.tar', 0o644)
        super().begin()

    def uid(self):
        return pwd.getpwnam(self.user).pw_uid

    def run_dir(self):
        return f'/run/user/{self.uid()}'

    def podman(self, *args, **kw):
        script = V2 + (f'd=/sys/fs/cgroup/user.slice/user-{self.uid()}.slice/s; mkdir -p $d/me; chown -R {self.uid()} $d; '
                       f'echo $$ > $d/me/cgroup.procs; exec su {self.user} -c "$0"')
        line = f'cd; export XDG_RUNTIME_DIR={self.run_dir()} CONTAINERS_CONF={tmp}/containers.conf; podman ' + shlex.join(args)
        return call('unshare', '-m', 'sh', '-c', script, line, **kw)

    def end(self):
        super().end()
        run_dir = self.run_dir()
        for p in os.listdir('/proc'):
            with contextlib.suppress(OSError):
                if p.isdigit() and os.stat('/proc/' + p).st_uid == self.uid():
                    os.kill(int(p), 9)
        call('userdel', '-r', self.user, check=False)
        shutil.rmtree(run_dir, ignore_errors=True)


class Containerd(Runtime):
    needs = 'containerd', 'ctr', 'runc'
    rename = None
    state = '/run/containerd'

    def begin(self):
        self.dir = tempfile.mkdtemp(dir=tmp)
        with open(self.dir + '/config.toml', 'w') as f:
            f.write(f'version = 2\nroot = "{self.dir}/root"\nstate = "{self.state}"\n[grpc]\naddress = "{self.dir}/s"\n')
        self.spawn('successfully booted', 'containerd', '-c', self.dir + '/config.toml')
        self.ctr('image', 'import', tmp + '/image.tar')

    def ctr(self, *args, **kw):
        return call('ctr', '-a', self.dir + '/s', *args, **kw)

    def start(self, name):
        self.ctr('run', '-d', 'localhost/bb:latest', name, BUSY)

    def remove(self, name):
        self.ctr('task', 'rm', '-f', name, check=False)
        self.ctr('container', 'rm', name, check=False)

    def restart(self, name):
        self.remove(name)
        self.start(name)


class ContainerdMoved(Containerd):
    @property
    def state(self):
        return tmp + '/containerd-moved'


def message(*fields):
    """A message of protocol buffers: pairs of a number and an integer, a text, or bytes."""
    out = b''
    for number, value in fields:
        data = value.encode() if isinstance(value, str) else value
        number = number << 3 | 2 * isinstance(data, bytes)
        for n in (number, len(data)) if isinstance(data, bytes) else (number, data):
            while n > 127:
                out += bytes([n & 127 | 128])
                n >>= 7
            out += bytes([n])
        out += data if isinstance(data, bytes) else b''
    return out


class Cri(Containerd):
    """As kubelet asks for pods, by gRPC; without a network, and with the image of the test as that of sandboxes."""
    needs = (*Containerd.needs, 'curl')
    pod = 'shop/pod-'

    def begin(self):
        self.sandbox = {}
        self.dir = tempfile.mkdtemp(dir=tmp)
        with open(self.dir + '/config.toml', 'w') as f:
            f.write(f'version = 2\nroot = "{self.dir}/root"\nstate = "{self.state}"\n[grpc]\naddress = "{self.dir}/s"\n'
                    '[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "localhost/bb:latest"\nrestrict_oom_score_adj = true\n'
                    'disable_apparmor = true\n[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"\n')
        # mounts are shared, as systemd has them, and podman has been used
        overlay = '/var/lib/containers/storage/overlay'
        os.makedirs(overlay, exist_ok=True)
        self.spawn('successfully booted', 'unshare', '-m', 'sh', '-c', f'mount --make-rshared / && mount --bind {overlay} {overlay} && '
                   f'mount --make-private {overlay} && exec containerd -c {self.dir}/config.toml')
        self.ctr('-n', 'k8s.io', 'image', 'import', '--snapshotter', 'native', tmp + '/image.tar')

    def cri(self, method, *fields):
        """Return: the first field of the answer, which is a text."""
        data = message(*fields)
        with open(self.dir + '/request', 'wb') as f:
            f.write(bytes(1) + len(data).to_bytes(4, 'big') + data)
        p = subprocess.run(['curl', '-sS', '--http2-prior-knowledge', '--unix-socket', self.dir + '/s', '-D', self.dir + '/headers',
                            '-H', 'content-type: application/grpc', '-H', 'te: trailers', '--data-binary', f'@{self.dir}/request',
                            'http://localhost/runtime.v1.RuntimeService/' + method], capture_output=True, timeout=60)
        with open(self.dir + '/headers') as f:
            headers = f.read()
        if 'grpc-status: 0' not in headers:
            raise AssertionError(f'{method}: {headers}{p.stderr}')
        return p.stdout[7:].decode()

    def start(self, name, *mounts):
        uid = f'12345678-9abc-def0-1234-{OURS:06d}{len(self.sandbox):06d}'
        host = message((1, message((1, 2), (2, 1), (3, 2))))     # network and IPC of the host
        config = message((1, message((1, self.pod[5:] + name), (2, uid), (3, 'shop'))),
                         (8, message((1, f'/rt{OURS}/kubepods/pod{uid}'), (2, host))))
        self.sandbox[name] = sandbox = until(lambda: self.try_sandbox(config))
        container = self.cri('CreateContainer', (1, sandbox), (3, config), (2, message(
            (1, message((1, name))), (2, message((1, 'localhost/bb:latest'))), (3, BUSY), *((7, message(*m)) for m in mounts))))
        self.cri('StartContainer', (1, container))
        return container

    def try_sandbox(self, config):
        """The plugin learns of the image some time after its import."""
        try:
            return self.cri('RunPodSandbox', (1, config))
        except AssertionError as e:
            if 'pull' not in str(e):
                raise

    def remove(self, name):
        if name in self.sandbox:
            self.cri('StopPodSandbox', (1, self.sandbox[name]))
            self.cri('RemovePodSandbox', (1, self.sandbox.pop(name)))


class Lxc(Runtime):
    needs = 'lxc-start', 'lxc-stop'
    rename = None

    def start(self, name):
        d = f'{tmp}/lxc/{name}'
        os.makedirs(d, exist_ok=True)
        with open(d + '/config', 'w') as f:
            f.write(f'lxc.rootfs.path = dir:{tmp}/rootfs\nlxc.uts.name = {name}\nlxc.net.0.type = empty\n'
                    f'lxc.apparmor.profile = unconfined\nlxc.init.cmd = {BUSY}\n')
        call('lxc-start', '-P', tmp + '/lxc', '-n', name, '-d')

    def remove(self, name):
        call('lxc-stop', '-P', tmp + '/lxc', '-n', name, '-k', check=False)

    def restart(self, name):
        self.remove(name)
        self.start(name)


class Nspawn(Runtime):
    """Without a systemd that registers it; its scope is made by hand. On v2 only."""
    needs = ('systemd-nspawn',)
    rename = None
    running = {}

    def start(self, name):
        root = f'{tmp}/nspawn-{name}'
        if not os.path.exists(root):
            shutil.copytree(tmp + '/rootfs', root, symlinks=True)
        script = V2 + (f'd=/sys/fs/cgroup/machine.slice/machine-{name}.scope; mkdir -p $d; echo $$ > $d/cgroup.procs; exec "$@"')
        self.running[name] = subprocess.Popen(
            ['unshare', '-m', 'sh', '-c', script, 'sh', 'systemd-nspawn', '-q', '-D', root, '--register=no',
             '--keep-unit', '-M', name, BUSY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def remove(self, name):
        p = self.running.pop(name, None)
        if p:
            p.terminate()
            p.communicate(timeout=60)
            ibscope.Cgroup(f'machine.slice/machine-{name}.scope').remove()

    def restart(self, name):
        self.remove(name)
        self.start(name)


RUNTIMES = {
    'docker': Docker, 'docker --data-root': DockerMoved, 'docker in docker': DockerInDocker, 'podman': Podman, 'podman --root': PodmanMoved,
    'podman pod': PodmanPod, 'podman pod, no infra': PodmanBarePod, 'podman --cgroups=split': PodmanSplit,
    'podman rootless': PodmanUser, 'containerd (ctr)': Containerd, 'containerd, state moved': ContainerdMoved,
    'containerd (CRI)': Cri,
    'lxc': Lxc, 'nspawn': Nspawn,
}


class Runtimes(unittest.TestCase):
    def hist(self, *args, seconds='0.5'):
        return ibscope.hist(*SIM, *args, seconds, '1')[0]

    def shown(self, by, *args):
        o = self.hist('--by', by, *args)
        self.assertEqual(ibscope.residual(o['ledger']), 0)
        return {tuple(s['labels'][k] for k in by.split(',')) for s in o['series']}

    def case(self, what, check):
        try:
            check()
        except BaseException:
            self.cells[what] = 'FAIL'
            raise
        self.cells[what] = 'ok'

    def run_one(self, title):
        if not ALL and title not in QUICK:
            self.skipTest('make runtimes runs it')
        r = self.runtime = RUNTIMES[title]()
        missing = [n for n in r.needs if not shutil.which(n)]
        self.cells = table.setdefault(title, {})
        if missing:
            self.cells['name'] = 'skipped'
            self.skipTest(f'not installed: {", ".join(missing)}')
        self.addCleanup(r.end)
        r.begin()
        own = f'rt{OURS}{type(r).__name__.lower()}'
        for n in own, own + 'x':
            self.addCleanup(r.remove, n)
        self.id = r.start(own)
        if isinstance(r, Cri) and yaml:
            self.case('mounts', lambda: self.check_manifest(r, own + 'x'))
        name = r.prefix + own
        pod = r.pod and r.pod + own
        self.case('name', lambda: until(lambda: (name,) in self.shown('container', '--container', name + '*')))
        if pod:
            self.case('pod', lambda: self.check_pod(name, pod))
        if not ALL:
            return
        if self.id:
            self.case('id', lambda: self.assertEqual(self.shown('container', '--container', self.id[:12]), {(name,)}))
        self.case('metrics', lambda: self.check_metrics(name, pod))
        if not r.prefix:
            self.case('same name', lambda: self.check_same(name))
        if r.restart:
            self.case('restart', lambda: (
                r.restart(own), until(lambda: (name,) in self.shown('container', '--container', name + '*'))))
        if r.rename:
            self.case('rename', lambda: self.check_rename(r, own, own + 'x'))
            own += 'x'
        r.remove(own)
        name = r.prefix + own
        self.case('removed', lambda: until(lambda: 'is running' in ibscope.run('hist', *SIM, '--container', name, '0.1', '1').stderr))

    def check_manifest(self, r, name):
        """The DaemonSet starts on a node where root used podman, which leaves a private mount."""
        with open(os.path.join(os.path.dirname(__file__), '../../tools/kubernetes/ibscope.yaml')) as f:
            pod = next(d for d in yaml.safe_load_all(f) if d['kind'] == 'DaemonSet')['spec']['template']['spec']
        paths = {v['name']: v['hostPath']['path'] for v in pod['volumes'] if 'hostPath' in v}
        mounts = []
        for m in pod['containers'][0]['volumeMounts']:
            path = paths.get(m['name'], '')
            if path.startswith(STATE):
                os.makedirs(path, exist_ok=True)
                mounts.append([(1, m['mountPath']), (2, path), (3, int(m.get('readOnly', False))),
                               (5, ('None', 'HostToContainer', 'Bidirectional').index(m.get('mountPropagation', 'None')))])
        self.assertGreaterEqual(len(mounts), 4)
        r.start(name, *mounts)  # one that ends by itself makes StopPodSandbox fail if it does so meanwhile
        r.remove(name)
        if ALL:     # the mounts are such as they were meant to be
            with self.assertRaisesRegex(AssertionError, 'not a shared or slave mount'):
                r.start(name, *([*m[:3], (5, 1)] for m in mounts))
            r.remove(name)

    def check_pod(self, name, pod):
        until(lambda: (name, pod) in self.shown('container,pod', '--container', name))
        self.assertEqual(self.shown('pod', '--container', pod), {(pod,)})

    def check_metrics(self, name, pod):
        c = Collector(PINS, '--web.listen-address', '127.0.0.1:0', '--unpin')
        try:
            port = re.search(r'listening on \S+:(\d+)', until(lambda: 'listening on' in c.said() and c.said()))[1]
            want = re.compile(rf'ibscope_\w+\{{(?=[^}}]*container="{name}")' + (rf'(?=[^}}]*pod="{pod.split("/")[-1]}")' if pod else ''))
            until(lambda: want.search(urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60).read().decode()))
        finally:
            c.stop()

    def check_same(self, name):
        """Another container of that name, of plain cgroups as docker makes them."""
        other = f'{OURS:064x}'
        d = f'/var/lib/docker/containers/{other}'
        os.makedirs(d)
        with open(d + '/config.v2.json', 'w') as f:
            json.dump({'Name': '/' + name}, f)
        cgroup = ibscope.Cgroup(f'/docker/{other}')
        busy = ibscope.Busy(min(os.sched_getaffinity(0)), cgroup)
        try:
            until(lambda: len(self.shown('cgroup,container', '--container', name)) >= 2)
            if 'docker' not in type(self.runtime).__name__.lower() and not isinstance(self.runtime, Cri):
                self.assertIn(f"have the same name '{name}'", ibscope.run('hist', *SIM, '--by', 'container', '0.5', '1').stderr)
        finally:
            busy.stop()
            cgroup.remove()
            shutil.rmtree(d)

    def check_rename(self, r, old, new):
        """A running collector sees it."""
        p = subprocess.Popen([ibscope.IBSCOPE, 'hist', '-v', '--json', *SIM, '--by', 'container', '1'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ibscope.wait_sampling(p)
            seen = lambda: {s['labels']['container'] for s in json.loads(p.stdout.readline())['series']}
            until(lambda: r.prefix + old in seen())
            r.rename(old, new)
            until(lambda: r.prefix + new in seen())
        finally:
            p.kill()
            p.communicate()


def make_test(title):
    return lambda self: self.run_one(title)


for title in RUNTIMES:
    setattr(Runtimes, 'test_' + re.sub(r'\W+', '_', title), make_test(title))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], '-v', *sys.argv[1:]])
