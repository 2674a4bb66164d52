# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Directories of pins that other users could write to, and pins that are not ours."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import ibscope
from ibscope import can_bpf, run

OK, WHY = can_bpf()
BPFTOOL = shutil.which('bpftool') or '/usr/sbin/bpftool'
NOBODY = 65534
EXPORTER = os.path.join(ibscope.SAN, 'ibscope-exporter')
# A library that makes the N-th mapping of a map that is only read fail.
NO_MAPPING = r'''
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	static int maps;
	char path[64], to[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (flags == MAP_SHARED && prot == PROT_READ && readlink(path, to, sizeof(to) - 1) > 0 && strstr(to, "bpf-map") &&
	    ++maps == atoi(getenv("NO_MAPPING"))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}
void *mmap(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap64")));
'''


class Directory(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-pins-', dir='/run')
        self.addCleanup(os.rmdir, self.dir)
        os.chmod(self.dir, 0o755)
        self.bpffs = os.path.join(self.dir, 'bpf')
        os.mkdir(self.bpffs)
        self.addCleanup(os.rmdir, self.bpffs)
        self.pins = os.path.join(self.bpffs, 'ibscope')

    def mount(self, mode):
        subprocess.run(['mount', '-t', 'bpf', '-o', f'mode={mode}', 'bpf', self.bpffs], check=True)
        self.addCleanup(subprocess.run, ['umount', self.bpffs], check=True)

    def collector(self, *args):
        c = ibscope.Collector(self.pins, '--control', 'none', *args)
        self.addCleanup(c.stop, signal.SIGKILL)
        return c

    def refused(self, *texts):
        p = run('serve', '--source', 'sim', '--pin-dir', self.pins, '--control', 'none')
        self.assertEqual(p.returncode, 1, p.stderr)
        for text in texts:
            self.assertIn(text, p.stderr)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Pins(Directory):
    def test_bpffs_that_everybody_may_write_to(self):
        """The kernel's default mode, 1777: in a sticky directory what belongs to root is safe."""
        self.mount('1777')
        self.collector().stop()
        self.assertEqual(run('ctl', '--pin-dir', self.pins, 'ledger').returncode, 0)
        p = run('ctl', '--pin-dir', self.pins, 'unpin')
        self.assertEqual((p.returncode, p.stderr, os.path.exists(self.pins)), (0, '', False))
        os.chmod(self.bpffs, 0o777)
        self.refused(f'{self.bpffs} has mode 0777', '`chmod go-w` it')
        self.assertFalse(os.path.exists(self.pins))
        os.chmod(self.bpffs, 0o1777)
        # as somebody who was there first
        os.mkdir(self.pins)
        os.chown(self.pins, NOBODY, NOBODY)
        self.refused(f'{self.pins} belongs to uid {NOBODY}')
        os.chown(self.pins, 0, 0)
        os.chmod(self.pins, 0o777)
        self.refused(f'{self.pins} has mode 0777')
        os.chmod(self.pins, 0o755)
        os.mkdir(os.path.join(self.pins, 'links'))
        os.chown(os.path.join(self.pins, 'links'), NOBODY, NOBODY)
        self.refused(f'{self.pins}/links belongs to uid {NOBODY}')
        os.rmdir(os.path.join(self.pins, 'links'))
        self.collector()

    def test_doctor_says_what_is_refused(self):
        bpffs = '/sys/fs/bpf'
        mode = os.stat(bpffs).st_mode & 0o7777
        self.addCleanup(os.chmod, bpffs, mode)
        for mode, want in (0o755, 'ok'), (0o1777, 'ok'), (0o777, 'warn'):
            os.chmod(bpffs, mode)
            checks = json.loads(run('doctor', '--json').stdout)['checks']
            row = next(c for c in checks if c['id'] == 'bpffs')
            self.assertEqual(row['status'], want, row)
        self.assertIn(f'{bpffs} has mode 0777', row['why'])
        self.assertIn('root only write', row['remedy'])

    def test_remedy_of_doctor(self):
        """Followed as it is printed, in a mount namespace of its own, and `serve` starts there."""
        code = '''import json, subprocess, sys
ibscope, prepare = sys.argv[1:]
subprocess.run(prepare, shell=True, check=True)
def row():
    checks = json.loads(subprocess.run([ibscope, 'doctor', '--json'], capture_output=True, check=False).stdout)['checks']
    return next(c for c in checks if c['id'] == 'bpffs')
before = row()
subprocess.run(before['remedy'], shell=True, check=True)
serve = subprocess.Popen([ibscope, 'serve', '--source', 'sim', '--control', 'none', '--unpin'], stderr=subprocess.PIPE, text=True)
said = ''
while 'kernel memory' not in said and (line := serve.stderr.readline()):
    said += line
serve.terminate()
serve.wait()
print(json.dumps([before, row(), said]))
'''
        none = 'while grep -q "^[^ ]* [^ ]* bpf " /proc/mounts; do umount -l $(awk \'$3 == "bpf" { print $2 }\' /proc/mounts); done'
        for prepare, value in ((none, 'no'), ('mount -t bpf bpf /sys/fs/bpf && mount -t tmpfs none /sys/fs/bpf', 'hidden')):
            with self.subTest(value):
                p = subprocess.run(['unshare', '-m', sys.executable, '-c', code, ibscope.IBSCOPE, prepare], capture_output=True, text=True,
                                   timeout=120)
                self.assertEqual(p.returncode, 0, p.stderr)
                before, after, said = json.loads(p.stdout)
                self.assertEqual((before['status'], before['value']), ('warn', value), before)
                self.assertIn("'serve' cannot pin its maps", before['why'])
                self.assertEqual((after['status'], after['value']), ('ok', '/sys/fs/bpf'), after)
                self.assertIn('kernel memory', said)

    def test_readers_of_what_others_could_write(self):
        self.mount('0711')
        self.collector()
        readers = (ibscope.IBSCOPE, 'ctl', '--pin-dir', self.pins, 'snapshot'), \
            (ibscope.IBSCOPE, 'top', '--once', '--pin-dir', self.pins), \
            (EXPORTER, '--once', '--pin-dir', self.pins)

        def read(*texts, status):
            for command in readers:
                p = subprocess.run(command, capture_output=True, text=True, timeout=30)
                self.assertEqual(p.returncode, status, (command, p.stderr))
                for text in texts:
                    self.assertIn(text, p.stderr)
        read(status=0)
        os.chmod(self.pins, 0o777)
        read(f'{self.pins} has mode 0777', status=1)
        os.chmod(self.pins, 0o755)
        os.chown(self.pins, NOBODY, NOBODY)
        read(f'{self.pins} belongs to uid {NOBODY}', status=1)
        os.chown(self.pins, 0, 0)
        os.chown(self.bpffs, NOBODY, NOBODY)
        read(f'{self.bpffs} belongs to uid {NOBODY}', status=1)
        os.chown(self.bpffs, 0, 0)
        read(status=0)

    def test_no_bpffs(self):
        self.refused('mount -t bpf bpf ')
        # what was there stays
        os.mkdir(self.pins)
        self.refused('is not on a bpffs')
        os.rmdir(self.pins)

    def test_modes_do_not_depend_on_the_umask(self):
        self.mount('0700')
        self.addCleanup(os.umask, os.umask(0o077))
        self.collector()
        self.assertEqual(os.stat(self.pins).st_mode & 0o777, 0o755)
        self.assertEqual(os.stat(os.path.join(self.pins, 'links')).st_mode & 0o777, 0o700)
        self.assertEqual(os.stat(os.path.join(self.pins, 'meta')).st_mode & 0o777, 0o644)

    @unittest.skipUnless(shutil.which('cc'), 'no compiler')
    def test_resumed_pins_that_cannot_be_mapped(self):
        """The start fails, and keeps the counters for the next one."""
        self.mount('0755')
        c = self.collector()
        ibscope.until(lambda: self.seen() > 100)
        c.stop()
        before = self.seen()
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(['cc', '-shared', '-fPIC', '-o', d + '/x.so', '-x', 'c', '-'], input=NO_MAPPING, text=True, check=True)
            for n in 1, 2, 3:   # counters, their owners, the state
                p = subprocess.run([os.path.join(ibscope.BUILD, 'ibscope'), 'serve', '--source', 'sim', '--pin-dir', self.pins, '--control',
                                    'none'], capture_output=True, text=True, timeout=60, env={**os.environ, 'LD_PRELOAD': d + '/x.so',
                                                                                              'NO_MAPPING': str(n)})
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertIn(f'error: cannot map a pin in {self.pins}: Cannot allocate memory', p.stderr)
                self.assertEqual(self.seen(), before)
        self.collector().wait('resuming counters')

    def seen(self):
        return json.loads(run('ctl', '--pin-dir', self.pins, '--json', 'ledger').stdout)['seen']

    def test_lock_of_another_user(self):
        """The directory of pins is readable, so anybody can hold a lock of it."""
        self.mount('0755')
        self.collector().stop()
        holder = subprocess.Popen(['setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups',
                                   'flock', '-n', self.pins, 'sh', '-c', 'echo locked; read x'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.stdin.close)
        self.assertEqual(holder.stdout.readline(), b'locked\n')
        fd = os.open(self.pins, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        with self.assertRaises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        c = self.collector()
        # but there is one collector at a time
        self.refused(f'already running as process {c.p.pid}')

    def test_lock_that_outlives_a_killed_collector(self):
        """A child of it may still be ending links. The next collector waits for it, and never says that the dead one runs."""
        self.mount('0755')
        killed = self.collector()
        links = os.path.join(self.pins, 'links')
        fd = os.open(links, os.O_RDONLY)
        killed.stop(signal.SIGKILL)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        release = threading.Timer(0.7, os.close, (fd,))
        release.start()
        self.collector().stop()
        self.assertFalse(release.is_alive())
        fd = os.open(links, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.refused(f'{links} is locked by another process', 'fuser -v', 'waiting 22 s at most for the lock')


if __name__ == '__main__':
    unittest.main()
