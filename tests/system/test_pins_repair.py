# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each pin removed, replaced or damaged, under a running collector and before one starts."""
import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request

import ibscope
from bpf_probe import bpf
from ibscope import free_port, residual, run, until
from test_pins import BPFTOOL, OK, WHY, Directory

MAPS = 'series', 'slot_owners', 'state', 'cgroups', 'groups', 'slots', 'meta', 'names'
NOTICED_S = 10
BPF_OBJ_GET, BPF_OBJ_GET_INFO_BY_FD = 7, 15    # linux/bpf.h


def bpftool(*args):
    return subprocess.run([BPFTOOL, '-j', *args], check=True, capture_output=True, text=True).stdout


def kernel_id(path):
    """Of a map or a link; None: there is none, or something else. Without bpftool, which would be started thousands of times."""
    name, info = ctypes.create_string_buffer(path.encode()), ctypes.create_string_buffer(256)
    try:
        fd = bpf(BPF_OBJ_GET, struct.pack('QII', ctypes.addressof(name), 0, 0))
    except OSError:
        return None
    try:
        kind = os.readlink(f'/proc/self/fd/{fd}').removeprefix('anon_inode:').strip('[]').replace('-', '_')
        if kind not in ('bpf_map', 'bpf_link'):
            return None
        bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack('IIQ', fd, len(info), ctypes.addressof(info)))
        return kind, struct.unpack_from('II', info)[1]  # type, id
    finally:
        os.close(fd)


def put(path):
    """What is at PATH-new takes the place of a pin, which the collector may just have repaired."""
    while True:
        try:
            os.rename(path + '-new', path)
            return
        except NotADirectoryError:
            os.unlink(path)


def by_map(path):
    bpftool('map', 'create', path + '-new', 'type', 'array', 'key', '4', 'value', '8', 'entries', '2', 'name', 'foreign')
    put(path)


def by_program(path):
    bpftool('prog', 'pin', 'id', str(json.loads(bpftool('prog', 'show'))[0]['id']), path + '-new')
    put(path)


def by_directory(path):
    os.makedirs(path + '-new/full')
    put(path)


def by_symlink(path):
    os.symlink('/dev/null', path + '-new')
    put(path)


WAYS = os.unlink, by_map, by_program, by_directory, by_symlink


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Repair(Directory):
    def setUp(self):
        super().setUp()
        self.mount('0700')
        self.control = os.path.join(self.dir, 'control')

    def start(self, *args):
        c = self.c = ibscope.Collector(self.pins, '-c', '1000000', '--max-overhead', 'off', '--nmi-cost', '1us', '--control', self.control, *args)
        self.addCleanup(lambda: [os.unlink(f) for f in (self.control, self.control + '.lock') if os.path.exists(f)])
        self.addCleanup(c.stop, signal.SIGKILL)
        # it answers as soon as everything is pinned
        until(lambda: run('ctl', '--control', self.control, 'status').returncode == 0)
        return c

    def paths(self, top=''):
        links = os.path.join(self.pins, top, 'links')
        return [os.path.join(self.pins, top, m) for m in MAPS] + [os.path.join(links, f) for f in sorted(os.listdir(links))]

    def status(self, *args):
        return json.loads(run('ctl', '--pin-dir', self.pins, *args, '--json', 'status').stdout or '{}')

    def ledger(self):
        """From the pins, which a reader opens anew."""
        ledgers = [json.loads(line) for line in run('ctl', '--pin-dir', self.pins, '--json', 'ledger').stdout.splitlines()]
        for ledger in ledgers:
            self.assertEqual(residual(ledger), 0)
        return ledgers[0]

    def repaired(self, before):
        try:
            until(lambda: {p: kernel_id(p) for p in before} == before, NOTICED_S)
        except AssertionError:
            self.assertEqual({p: kernel_id(p) for p in before}, before, self.c.said())
        # links come after maps
        until(lambda: self.status().get('pins_missing') == 0, NOTICED_S)

    def test_live(self):
        c = self.start('-e', 'ibs_op//,ibs_fetch//', '-c', '1000000,100000')
        before = {p: kernel_id(p) for top in ('', 'ibs_fetch') for p in self.paths(top)}
        self.assertNotIn(None, before.values())
        os.chmod(os.path.join(self.pins, 'series'), 0o640)
        os.chown(os.path.join(self.pins, 'series'), 0, 7)
        os.unlink(os.path.join(self.pins, 'slots'))
        self.repaired(before)       # mode and group were noted, too
        starts, seen, n = self.status()['starts'], self.ledger()['seen'], 1
        until(lambda: self.ledger()['seen'] > seen)
        for turn in range(len(WAYS)):
            for i, path in enumerate(before):
                WAYS[(i + turn) % len(WAYS)](path)
            n += len(before)
            self.repaired(before)
            now = self.ledger()['seen']
            self.assertGreaterEqual(now, seen)
            seen = now
        st = os.stat(os.path.join(self.pins, 'series'))
        self.assertEqual((st.st_mode & 0o777, st.st_gid), (0o640, 7))
        now = self.status()
        self.assertEqual((now['starts'], now['pins_missing']), (starts, 0))
        self.assertGreaterEqual(now['pins_repaired'], n)
        said = c.said()
        for path in before:
            if path.endswith(MAPS):
                self.assertGreaterEqual(said.count(f'{path} was removed or replaced'), len(WAYS), path)
            self.assertEqual(said.count(f'{path} was not pinned by a collector: moved to'), len(WAYS) - 1, path)
        # what was moved is out of the way of the next collector, and options still change
        self.assertIn('reopened', run('ctl', '--pin-dir', self.pins, 'set', 'user').stdout)
        self.assertEqual(c.stop(), 0)
        self.start('-e', 'ibs_op//,ibs_fetch//', '-c', '1000000,100000').wait('resuming counters')
        self.assertGreaterEqual(self.ledger()['seen'], seen)

    def test_directories(self):
        c = self.start()
        before = {p: kernel_id(p) for p in self.paths()}
        seen = self.ledger()['seen']
        shutil.rmtree(os.path.join(self.pins, 'links'))
        self.repaired(before)
        os.rename(self.pins, self.pins + '-moved')
        self.repaired(before)
        shutil.rmtree(self.pins + '-moved')
        shutil.rmtree(self.pins)
        self.repaired(before)
        self.assertGreaterEqual(self.ledger()['seen'], seen)
        # the lock is that of the new directory
        self.refused(f'already running as process {c.p.pid}')
        # gone just before the options change
        shutil.rmtree(self.pins)
        self.assertIn('reopened', run('ctl', '--control', self.control, 'set', 'op=load').stdout)
        self.assertEqual({p: kernel_id(p) for p in before if 'links' not in p}, {p: i for p, i in before.items() if 'links' not in p})
        self.assertGreaterEqual(self.ledger()['seen'], seen)

    def test_meta_is_overwritten(self):
        c = self.start()
        seen = self.ledger()['seen']
        selection = self.status()['selection']
        self.overwrite('meta')
        until(lambda: self.status().get('pins_repaired') == 1, NOTICED_S)
        c.wait('meta was overwritten')
        self.assertEqual(self.status()['selection'], selection)
        self.assertGreaterEqual(self.ledger()['seen'], seen)

    def overwrite(self, pin):
        path = os.path.join(self.pins, pin)
        size = json.loads(bpftool('map', 'show', 'pinned', path))['bytes_value']
        bpftool('map', 'update', 'pinned', path, 'key', '0', '0', '0', '0', 'value', *['255'] * size)

    def value(self, pin, key=0):
        path = os.path.join(self.pins, pin)
        said = bpftool('map', 'lookup', 'pinned', path, 'key', *map(str, struct.pack('<I', key)))
        return bytearray(int(b, 16) for b in json.loads(said)['value'])

    def change(self, pin, words, key=0):
        """@words: by their place in the value"""
        path, value = os.path.join(self.pins, pin), self.value(pin, key)
        for at, n in words.items():
            struct.pack_into('<I', value, 4 * at, n)
        bpftool('map', 'update', 'pinned', path, 'key', *map(str, struct.pack('<I', key)), 'value', *map(str, value))

    def test_what_is_dropped_is_counted(self):
        """In a downgrade, too, as long as the sizes of the maps say where the counts are."""
        schema, state_bytes, meta_bytes = 1, 14, 15
        labels = 'they have other labels (--by) or another metric (--metric)'
        self.start()
        until(lambda: self.ledger()['seen'] > 0)
        self.c.stop()
        for args, words, why, known in (
                (('--by', 'cpu'), {}, labels, True),
                ((), {}, labels, True),
                ((), {schema: 99}, 'they are from another version', True),
                ((), {schema: 99, state_bytes: 4096}, 'they are from another version', False),
                ((), {schema: 99, meta_bytes: 4096}, 'they are from another version', False)):
            with self.subTest(why=why, words=words):
                seen = self.ledger()['seen']
                self.change('meta', words)
                c = self.start(*args)
                c.wait(f'starting from zero: {why}; their ' + (f'{seen:,} samples are dropped' if known else
                                                               'samples are dropped, and their number is unknown'))
                until(lambda: self.ledger()['seen'] > 0)
                c.stop()

    def test_unmounted(self):
        """Sampling continues, what is missing is said everywhere, once, and the next bpffs gets the same maps."""
        port = free_port()
        c = self.start('--web.listen-address', f'127.0.0.1:{port}')
        c.wait('listening on')
        before = {p: kernel_id(p) for p in self.paths()}
        seen = self.ledger()['seen']
        subprocess.run(['umount', '-l', self.bpffs], check=True)
        until(lambda: self.status('--control', self.control)['pins_missing'] == len(MAPS), NOTICED_S)
        self.assertIn('pins: 8 are missing', run('ctl', '--control', self.control, 'status').stdout)
        with self.assertRaises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(f'http://127.0.0.1:{port}/-/ready', timeout=60)
        e.exception.close()
        p = run('ctl', '--control', self.control, 'set', 'op=load')
        self.assertEqual(p.returncode, 1)
        self.assertIn('mount -t bpf', p.stderr)
        c.p.send_signal(signal.SIGHUP)
        c.wait('options not reloaded')
        self.assertEqual(os.listdir(self.bpffs), [])
        subprocess.run(['mount', '-t', 'bpf', '-o', 'mode=0700', 'bpf', self.bpffs], check=True)
        self.repaired(before)
        c.wait('all pins are in place again')
        self.assertEqual(c.said().count('do not find all counters'), 1, c.said())
        self.assertGreater(self.ledger()['seen'], seen)
        until(lambda: urllib.request.urlopen(f'http://127.0.0.1:{port}/-/ready', timeout=60).status == 200)
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60) as f:
            text = f.read().decode()
        self.assertIn('\nibscope_pins_missing 0\n', text)
        self.assertRegex(text, r'\nibscope_pins_repaired_total [1-9]')
        self.assertIn('reopened', run('ctl', '--control', self.control, 'set', 'op=load').stdout)

    def test_at_start(self):
        # not sanitized: there are many of them
        self.enterContext(unittest.mock.patch('ibscope.IBSCOPE', os.path.join(ibscope.BUILD, 'ibscope')))
        self.start().stop(signal.SIGKILL)
        for name in (os.path.relpath(p, self.pins) for p in self.paths()):
            for way in WAYS:
                path = os.path.join(self.pins, name)
                way(path)
                c = self.start()
                said = c.said()
                if way != os.unlink:
                    self.assertIn(f'{path} was not pinned by a collector: moved to', said, (name, way))
                self.assertIn('starting from zero' if name in MAPS else 'resuming counters', said, (name, way))
                seen = self.ledger()['seen']
                until(lambda: self.ledger()['seen'] > seen)
                c.stop(signal.SIGKILL)

    def test_hundreds_set_aside(self):
        """Whoever pins under our names again and again cannot keep a collector from starting: the oldest go."""
        self.start().stop()
        path = os.path.join(self.pins, 'meta')
        aside = [f'{path}-foreign{n}' for n in range(1, 101)]
        os.makedirs(aside[6] + '/full')     # older than all others, but not ours to empty
        time.sleep(0.05)                    # the kernel's clock of files has ticks
        bpftool('map', 'create', aside[41], 'type', 'array', 'key', '4', 'value', '8', 'entries', '2', 'name', 'foreign')
        time.sleep(0.05)
        for name in aside:
            if not os.path.exists(name):
                os.mkdir(name)
        oldest = [aside[41], *(a for a in aside if a not in (aside[6], aside[41]))][:3]
        for gone in oldest:
            by_map(path)
            found = kernel_id(path)
            c = self.start()
            c.wait(f'removed {gone}, the oldest of 100')
            c.wait(f'{path} was not pinned by a collector: moved to {gone};')
            c.stop()
            self.assertEqual(kernel_id(gone), found)
        self.assertEqual(sorted(n for n in os.listdir(self.pins) if '-foreign' in n), sorted(map(os.path.basename, aside)))
        self.assertTrue(os.path.isdir(aside[6] + '/full'))

    def test_directories_at_start(self):
        self.start('-e', 'ibs_op//,ibs_fetch//').stop()
        for name in 'links', 'ibs_fetch', 'ibs_fetch/links':
            path = os.path.join(self.pins, name)
            os.rename(path, path + '-right')
            bpftool('map', 'create', path, 'type', 'array', 'key', '4', 'value', '8', 'entries', '2', 'name', 'foreign')
            c = self.start('-e', 'ibs_op//,ibs_fetch//')
            c.wait(f'{path} was not pinned by a collector: moved to')
            c.stop()

    def test_killed_while_folding(self):
        """Between the moment at which a slot has no owner any more and that at which its counts are elsewhere."""
        self.start()
        until(lambda: self.ledger()['aggregated'] > 0)
        self.c.stop()
        before, fold, used = self.ledger(), 1, len(self.value('slot_owners')) // 4 - 2
        slots = [s for s in range(1, 20) if self.value('slot_owners', s)[4 * used] == 1]
        self.assertTrue(slots)
        for slot in slots:
            self.change('slot_owners', {used: 0}, slot)
        self.change('state', {fold: struct.unpack_from('<I', self.value('state'), 4 * fold)[0] + 1})
        c = self.start()
        self.assertIn(f"resuming counters pinned in {self.pins}: {before['seen']:,} samples seen", c.said())
        after = self.ledger()
        self.assertGreaterEqual(after['seen'], before['seen'])
        self.assertGreaterEqual(after['aggregated'], before['aggregated'])

    def test_contents_are_damaged_at_start(self):
        for pin in 'meta', 'state', 'series', 'slot_owners', 'names':
            self.start().stop()
            self.overwrite(pin)
            with self.subTest(pin=pin):
                c = self.start()
                seen = self.ledger()['seen']
                until(lambda: self.ledger()['seen'] > seen)
                self.assertEqual(c.stop(), 0)


if __name__ == '__main__':
    unittest.main()
