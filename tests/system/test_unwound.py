# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Call chains of code without frame pointers: copies of stacks, unwound by the reader."""
import collections
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import ibscope
from ibscope import run

OK, WHY = ibscope.can_bpf()
HERE = os.path.dirname(os.path.abspath(__file__))


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipUnless(shutil.which('gcc') and shutil.which('objcopy'), 'no gcc or binutils')
class Unwound(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory(prefix='ibscope-unwound.')
        cls.addClassCleanup(cls.dir.cleanup)
        cls.program = os.path.join(cls.dir.name, 'unwound')
        subprocess.run(['gcc', '-O2', '-fomit-frame-pointer', '-fno-optimize-sibling-calls', '-fno-ipa-cp', '-fno-ipa-sra',
                        '-o', cls.program, os.path.join(HERE, 'unwound.c')], check=True)
        cls.whole = cls.record('whole.ibs', 'dwarf,40K', ms=250, period='120000')

    @classmethod
    def record(cls, name, how, ms=150, period='100000'):
        path = os.path.join(cls.dir.name, name)
        p = run('record', '--source', 'sim', '-c', period, '--max-loss', '50%', '--call-graph', how, '-o', path, '--', cls.program, str(ms))
        if p.returncode:
            raise AssertionError(p.stderr)
        return path

    def chains(self, path, **kw):
        """Samples of leaf() by their callers, the outermost first; the messages."""
        p = run('report', '--folded', 'samples', path, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        out = collections.Counter()
        for line in p.stdout.splitlines():
            stack, n = line.rsplit(' ', 1)
            frames = [f for f in stack.split(';')[2:] if not f.endswith('_[k]')]
            if frames and frames[-1] == 'leaf':
                out[tuple(frames[:-1])] += int(n)
        return out, p.stderr

    def of(self, chains, name):
        return {c: n for c, n in chains.items() if name in c}

    def test_kinds(self):
        """Every frame between main() and leaf() is there, and no other; outside of main() are functions of libc."""
        chains, _ = self.chains(self.whole)
        want = {('plain', 'scan'), ('plain', 'query'), ('aligned',), ('sized',), ('deep',) * 32}
        found, returned = collections.Counter(), 0
        for chain, n in chains.items():
            with self.subTest(chain):
                self.assertIn('main', chain)
                self.assertFalse({'[cut]', '[unknown]'} & set(chain))
                inner = chain[chain.index('main') + 1:]
                if inner[0] == 'sorted':
                    self.assertRegex(';'.join(inner), r'^sorted;(\S*(sort|msort)\S*;)+compare$')
                elif inner[0] == 'signalled':
                    self.assertRegex(';'.join(inner), r'^signalled;.*;on_signal$')
                elif inner not in want:     # leaf() returned between op and interrupt: that was in a function before it
                    self.assertIn(inner, {w[:i] for w in want for i in range(1, len(w))})
                    returned += n
                found[inner[0]] += n
        self.assertLess(returned, 0.05 * sum(found.values()))
        self.assertEqual(set(found), {'plain', 'aligned', 'sized', 'sorted', 'signalled', 'deep'})
        self.assertGreater(min(found.values()), 20, found)

    def test_shares(self):
        """scan() calls leaf() three times as often as query()."""
        chains, _ = self.chains(self.whole)
        scan, query = (sum(self.of(chains, name).values()) for name in ('scan', 'query'))
        self.assertGreater(scan + query, 100)
        self.assertLess(abs(scan / (scan + query) - 0.75), 0.15, (scan, query))
        rows = run('report', '--by', 'caller', '--csv', self.whole)
        self.assertEqual(rows.returncode, 0, rows.stderr)
        for name in 'scan', 'query', 'aligned', 'deep':
            self.assertRegex(rows.stdout, rf'(?m)\b{name},')

    def test_cut(self):
        """What the copy lacks is said, and what it has is there."""
        chains, err = self.chains(self.record('cut.ibs', 'dwarf,4K', 60))
        deep = self.of(chains, 'deep')
        self.assertGreater(sum(deep.values()), 20)
        for chain in deep:
            self.assertEqual(chain[0], '[cut]')
            self.assertIn(len(chain), (4, 5), chain)
            self.assertEqual(set(chain[1:]), {'deep'})
        self.assertTrue(any(c[-2:] == ('plain', 'scan') and 'main' in c for c in chains), chains)
        share = re.search(r'\(\[cut\]\), in (\S+)% of the call chains', err)
        self.assertTrue(share and 5 < float(share[1]) < 60, err)

    def test_damaged(self):
        """Tables are missing, or hold anything: chains end, and nothing else happens."""
        path, kept = self.record('damaged.ibs', 'dwarf', 30), self.program + '.kept'
        section = self.program + '.eh_frame'
        shutil.copy(self.program, kept)
        self.addCleanup(shutil.copy, kept, self.program)
        subprocess.run(['objcopy', '-O', 'binary', '--only-section=.eh_frame', kept, section], check=True)
        with open(section, 'rb') as f:
            table = f.read()
        with open(kept, 'rb') as f:
            whole = f.read()
        at = whole.index(table)
        rng = random.Random(30)
        for kind in 'zeros', 'noise', 'bits', 'bits':
            new = bytearray(table)
            if kind == 'zeros':
                new = bytes(len(table))
            elif kind == 'noise':
                new = rng.randbytes(len(table))
            for _ in range(20 if kind == 'bits' else 0):
                new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
            with self.subTest(kind):
                with open(self.program, 'wb') as f:
                    f.write(whole[:at] + new + whole[at + len(table):])
                chains, _ = self.chains(path, timeout=60)
                self.assertGreater(sum(chains.values()), 10)
                if kind == 'zeros':
                    self.assertEqual({c[0] for c in chains}, {'[unknown]'})
                    self.assertLessEqual(max(map(len, chains)), 2)     # the op's function, and that of the interrupt

    def test_views(self):
        """With -z, by stack, pprof and annotate."""
        path = os.path.join(self.dir.name, 'z.ibs')
        p = run('record', '--source', 'sim', '-z', '-c', '100000', '--call-graph', 'dwarf', '-o', path, '--', self.program, '30')
        self.assertEqual(p.returncode, 0, p.stderr)
        p = run('report', '--by', 'stack', '--csv', path)
        self.assertRegex(p.stdout, r'main;plain;scan;leaf')
        p = run('annotate', 'leaf', '-i', path)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stdout, r'(?m)^called by .*(compare|on_signal) \d+ %')
        pprof = os.path.join(self.dir.name, 'z.pb.gz')
        p = run('report', '--pprof', pprof, path)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_left_out(self):
        """Other formats do without, and say so."""
        out = os.path.join(self.dir.name, 'perf.data')
        p = run('export', '--perf-data', out, self.whole)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('leaves out the copies of user stacks', p.stderr)
        self.assertIn('copies of user stacks up to 40960 bytes (not shown)', run('dump', self.whole).stdout)
        merged = os.path.join(self.dir.name, 'merged.ibs')
        p = run('merge', '-o', merged, self.whole, self.record('other.ibs', 'dwarf', 10))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.chains(merged + '#1')[0], self.chains(self.whole)[0])

    def test_options(self):
        for arg, word in (('dwarf,', "''"), ('dwarf,100K', '64K'), ('dwarf,1', '512'), ('dwarf,x', "'x'"), ('dwar', 'dwarf'),
                          ('dwarf8K', 'dwarf')):
            with self.subTest(arg):
                p = run('record', '--source', 'sim', '--call-graph', arg, '--duration', '0.1')
                self.assertEqual(p.returncode, 2)
                self.assertIn(word, p.stderr)


GO = '''package main

import (
	"os"
	"strconv"
	"time"
)

var data = make([]int, 1<<16)

//go:noinline
func leaf(n int) (sum int) {
	for i := 0; i < 20000; i++ {
		sum += data[(i*n)&(1<<16-1)]
	}
	return
}

//go:noinline
func deep(n int) int {
	var room [100]int
	room[n] = n
	if n == 0 {
		return leaf(7) + room[0]
	}
	return deep(n-1) + room[n]
}

//go:noinline
func plain() int { return leaf(3) + 1 }

func main() {
	ms, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	done := make(chan int)
	sum := 0
	go func() {
		for time.Now().Before(end) {
			sum += deep(8)
		}
		done <- sum
	}()
	own := 0
	for time.Now().Before(end) {
		own += plain()
	}
	println(own + <-done)
}
'''


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
@unittest.skipUnless(shutil.which('go'), 'no go')
class Go(unittest.TestCase):
    """A stripped program of Go has no tables but that of its runtime."""
    def test_stripped(self):
        with tempfile.TemporaryDirectory(prefix='ibscope-unwound.') as work:
            source, program, path = (os.path.join(work, name) for name in ('main.go', 'program', 'data'))
            with open(source, 'w', encoding='ascii') as f:
                f.write(GO)
            subprocess.run(['go', 'build', '-ldflags=-s -w', '-o', program, source], check=True, cwd=work,
                           env=dict(os.environ, HOME=work, GOCACHE=os.path.join(work, 'cache'), GOFLAGS='-mod=mod', CGO_ENABLED='0'))
            p = run('record', '--source', 'sim', '-c', '100000', '--max-loss', '50%', '--call-graph', 'dwarf,16K', '-o', path, '--', program, '300')
            self.assertEqual(p.returncode, 0, p.stderr)
            found = collections.Counter()
            p = run('report', '--folded', 'samples', path)
            self.assertEqual(p.returncode, 0, p.stderr)
            for line in p.stdout.splitlines():
                stack, n = line.rsplit(' ', 1)
                frames = [f for f in stack.split(';')[2:] if not f.endswith('_[k]')]
                if frames and frames[-1] == 'main.leaf':
                    found[tuple(frames)] += int(n)
            whole = {('runtime.goexit', 'runtime.main', 'main.main', 'main.plain', 'main.leaf'),
                     ('runtime.goexit', 'main.main.func1', *['main.deep'] * 9, 'main.leaf')}
            # leaf() returned between op and interrupt in the others
            self.assertGreater(sum(found[w] for w in whole), 0.9 * sum(found.values()), found)
            self.assertGreater(min(found[w] for w in whole), 20, found)
            self.assertFalse([c for c in found if {'[cut]', '[unknown]'} & set(c)], found)


if __name__ == '__main__':
    unittest.main()
