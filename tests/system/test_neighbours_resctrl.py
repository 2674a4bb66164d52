# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ibscope neighbours beside emulated files of resctrl, mounted where the kernel's are."""
import hashlib
import json
import os
import subprocess
import tempfile
import unittest

import ibscope
import schemas
from ibscope import IBSCOPE, Cgroup

OK, WHY = ibscope.can_bpf()
TOP = f'/ibscope-test-resctrl-{os.getpid()}'
# sysfs has that directory only on machines with resctrl; the others in there are still needed
MOUNT = '''set -e
mkdir "$0/keep" && mount -t tmpfs none "$0/keep"
for d in cgroup bpf; do mkdir "$0/keep/$d" && mount --rbind /sys/fs/$d "$0/keep/$d"; done
mount -t tmpfs none /sys/fs
for d in cgroup bpf; do mkdir /sys/fs/$d && mount --rbind "$0/keep/$d" /sys/fs/$d; done
cp -r "$0/resctrl" /sys/fs/resctrl
before=$(cd /sys/fs/resctrl && find . | sort)
"$@"
test "$before" = "$(cd /sys/fs/resctrl && find . | sort)"'''


def initial_pid_namespace():
    return os.readlink('/proc/self/ns/pid') == 'pid:[4026531836]'


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Resctrl(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.addCleanup(Cgroup(TOP).remove)

    def group(self, name, *pids):
        d = os.path.join(self.tmp.name, 'resctrl', name)
        os.makedirs(os.path.join(d, 'mon_groups'))
        for file, text in ('tasks', ''.join(f'{pid}\n' for pid in pids)), ('cpus_list', '\n' if name else '0\n'):
            with open(os.path.join(d, file), 'w') as f:
                f.write(text)
        os.makedirs(os.path.join(d, 'mon_data', 'mon_L3_00'))

    def container(self, name):
        cgroup = Cgroup(f'{TOP}/docker-{hashlib.sha256(name.encode()).hexdigest()}.scope')
        p = subprocess.Popen(['sleep', '600'], preexec_fn=lambda: cgroup.add(os.getpid()))
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p.pid

    def neighbours(self, *args):
        p = subprocess.run(['unshare', '-m', 'sh', '-c', MOUNT, self.tmp.name, IBSCOPE, 'neighbours', '--own', '--source', 'sim',
                            '--duration', '1', *args], capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_groups(self):
        """Groups of a container are found, and nothing is created in there."""
        a, b = self.container('a'), self.container('b')
        self.group('', 1)
        self.group('own', a)
        self.group('shared', b, os.getpid())
        out = json.loads(self.neighbours('--json'))
        if schemas.jsonschema:
            schemas.Schemas().check('neighbours', out)
        self.assertEqual(out.get('resctrl'), {'groups': 3, 'owned': 1} if initial_pid_namespace() else None)


if __name__ == '__main__':
    unittest.main()
