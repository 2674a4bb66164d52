# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What other users may read of a collector, and profiles for them, have no address of the kernel and no physical one."""
import ctypes
import gzip
import json
import mmap
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import bpf_probe
import ibscope
from ibscope import IBSCOPE, can_bpf, free_port, keep_busy, run, until
from test_pins import BPFTOOL, NOBODY

OK, WHY = can_bpf()
PINS = '/sys/fs/bpf/ibscope-addresses-%d' % os.getpid()
KERNEL = 0xffff_8000_0000_0000
BPF_OBJ_GET = 7
UNKNOWN = 0xffff_ffff_ffff_ffff     # of this, too, there is nothing in text
# each begins with letters, which makes the search fast in megabytes of text
HEX = re.compile(r'ffff[89a-f][0-9a-f]{11}(?![0-9a-z])')
DECIMAL = re.compile(r'18446\d{15}(?![0-9])')
ROUNDED = re.compile(r'1\.8446\d*e\+?19')
PHYSICAL = re.compile(r'phys[a-z_]*"?\s*[:=]\s*"?(?:0x)?[0-9a-f]+')
# calls that have the kernel work, with addresses of its own
LOAD = '''import os, sys, time
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    os.listdir("/proc")
'''


def found(text):
    """Addresses of the kernel, and fields of physical ones."""
    text = text.lower()

    def whole(m, also=''):
        before = text[max(m.start() - 2, 0):m.start()]
        return not before[-1:].isalnum() or before == also
    numbers = [m[0] for m in HEX.finditer(text) if whole(m, '0x')]
    numbers += [m[0] for m in DECIMAL.finditer(text) if KERNEL <= int(m[0]) <= UNKNOWN and whole(m)]
    return numbers + ROUNDED.findall(text) + PHYSICAL.findall(text)


def varints(data):
    """Each number that any field of a protobuf message can be; its strings say nothing."""
    n, shift = 0, 0
    for b in data:
        n |= (b & 0x7f) << shift
        shift += 7
        if not b & 0x80 or shift > 63:
            yield n
            n = shift = 0


class Finding(unittest.TestCase):
    def test_found(self):
        for text in ('0xffffffff81000000', 'FFFF888004F59C00 x', '{"a":18446744071578845184}', 'x{le="1"} 1.8446744071578845e+19',
                     '{"phys_addr": 4096}', 'phys=0x1000', str(UNKNOWN)):
            self.assertTrue(found(text), text)
        for text in ('0x7fffffffffff', 'id 0123456789abcdef', '1000000000000000000', 'physical addresses are not counted', 'ffff8',
                     'cafeffffffff81000000'):
            self.assertFalse(found(text), text)
        self.assertIn(0xffffffff81000000, varints(b'\x18\x80\x80\x80\x88\xf8\xff\xff\xff\xff\x01'))


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Addresses(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-addresses-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        for name in 'ibscope', 'ibscope-exporter':
            shutil.copy(os.path.join(os.path.dirname(IBSCOPE), name), self.dir)     # where other users may read
        keep_busy(self)
        p = subprocess.Popen([sys.executable, '-IS', '-c', LOAD, '600'])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

    def collector(self, *args):
        c = ibscope.Collector(PINS, '-c', '200000', '--max-overhead', 'off', '--nmi-cost', '1us', '--unpin',
                              '--control', os.path.join(self.dir, 'control.sock'), *args)
        self.addCleanup(c.stop)     # which removes the pins
        return c

    def nobody(self, program, *args):
        p = subprocess.run([os.path.join(self.dir, program), *args], capture_output=True, text=True, timeout=60, check=False, user=NOBODY,
                           group=NOBODY, extra_groups=[], stdin=subprocess.DEVNULL, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
        self.assertEqual(p.returncode, 0, (args, p.stderr))
        return p.stdout

    def clean(self, what, text):
        self.assertGreater(len(text), 20, what)
        self.assertEqual(found(text), [], what)

    def check_map(self, path):
        """Return: the bytes read."""
        info = json.loads(subprocess.run([BPFTOOL, '-j', 'map', 'show', 'pinned', path], check=True, capture_output=True).stdout)
        size = (info['bytes_value'] + 7) // 8 * 8 * info['max_entries']
        name = ctypes.create_string_buffer(path.encode())
        fd = bpf_probe.bpf(BPF_OBJ_GET, struct.pack('<QII', ctypes.addressof(name), 0, 0))
        with mmap.mmap(fd, (size + 4095) // 4096 * 4096, mmap.MAP_SHARED, mmap.PROT_READ) as m, memoryview(m)[:size].cast('Q') as words:
            self.assertEqual([hex(w) for w in words if KERNEL <= w < UNKNOWN], [], path)
        os.close(fd)
        return size

    def test_counters(self):
        port = free_port()
        c = self.collector('-e', 'ibs_op//,ibs_fetch//', '-c', '200000,200000', '--by', 'cgroup,comm,cpu,mode,src,op', '--detail', 'full', '--max-groups', '200',
                           '--web.listen-address', f'127.0.0.1:{port}', '--hot-lines')
        pins = ('--pin-dir', PINS)
        until(lambda: json.loads(self.nobody('ibscope', 'ctl', *pins, '-e', 'ibs_op', '--json', 'ledger'))['seen'] > 1000)
        outputs = {
            **{f'ctl {verb} {j}': self.nobody('ibscope', 'ctl', *pins, *j, verb)
               for verb in ('status', 'ledger', 'snapshot') for j in ((), ('--json',))},
            'top': self.nobody('ibscope', 'top', '--once', *pins, '--size', '200x50'),
            'exporter': self.nobody('ibscope-exporter', '--once', *pins, '--detail', 'full'),
            'log': c.said(),
        }
        for path in '/', '/metrics', '/-/ready', '/-/healthy', '/api/snapshot.json':
            for accept in 'text/plain', 'application/openmetrics-text; version=1.0.0':
                r = urllib.request.Request(f'http://127.0.0.1:{port}{path}', headers={'Accept': accept})
                with urllib.request.urlopen(r, timeout=30) as f:
                    outputs[path, accept] = f.read().decode().ljust(21)
        for what, text in outputs.items():
            self.clean(what, text)
        # whatever programs of others make of the maps
        read = 0
        for top in '', 'ibs_fetch':
            for name in sorted(os.listdir(os.path.join(PINS, top))):
                path = os.path.join(PINS, top, name)
                if not stat.S_ISREG(os.stat(path).st_mode) or not os.stat(path).st_mode & stat.S_IROTH:
                    continue
                read += self.check_map(path)
        self.assertGreater(read, 1 << 20)

    def test_users(self):
        """Those who see only their own cgroups."""
        users = os.path.join(self.dir, 'users.sock')
        self.collector('--by', 'cgroup,src', '--user-socket', users)
        for args in (('ctl', '--control', users, 'snapshot'), ('ctl', '--control', users, '--json', 'snapshot'),
                     ('top', '--user-socket', users, '--once', '-d', '.3')):
            self.clean(args, self.nobody('ibscope', *args))
        for name in os.listdir(PINS):
            self.assertFalse(os.stat(os.path.join(PINS, name)).st_mode & (stat.S_IROTH | stat.S_IWOTH) and
                             not os.path.isdir(os.path.join(PINS, name)), name)

    def test_recordings(self):
        """A recording has addresses, and is its owner's; profiles of it have places in objects."""
        path, out = os.path.join(self.dir, 'r.data'), os.path.join(self.dir, 'out')
        self.addCleanup(os.umask, os.umask(0))
        p = run('record', '--source', 'sim', '-g', '-c', '100000', '-o', path, '--', sys.executable, '-IS', '-c', LOAD, '1.5')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(os.stat(path).st_mode & 0o077, 0)
        self.assertTrue(any(map(found, run('dump', path).stdout.splitlines())))     # so there are some to find
        self.assertEqual(run('report', '--pprof', out, path).returncode, 0)
        with gzip.open(out) as f:
            data = f.read()
        self.assertEqual([hex(n) for n in varints(data) if KERNEL <= n <= UNKNOWN], [])
        self.clean('folded', run('report', '--folded', 'samples', path).stdout)
        p = run('report', '--html', out, path)
        self.assertEqual(p.returncode, 0, p.stderr)
        with open(out, encoding='utf8') as f:
            self.clean('html', f.read())


if __name__ == '__main__':
    unittest.main()
