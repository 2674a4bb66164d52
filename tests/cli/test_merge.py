# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""merge, and report over several recordings: equal to the sum of each, whatever is wrong with some."""
import collections
import csv
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
PERF_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'perf', '6.12-zen4-mem.data.zst')
RANKS = 8


class Merge(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-merge.')
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, name, how, samples=2000):
        subprocess.run([MAKE, self.path(name), str(samples), how], check=True)
        return self.path(name)

    def nodes(self, n=RANKS // 2, samples=2000):
        """Of node k with different numbers of samples, so that ranks differ."""
        return [self.make(f'n{k}', f'node:{k}:{2 * n}:0:0', samples * (k + 1)) for k in range(n)]

    def merge(self, *files, status=0):
        p = run('merge', '-o', self.path('all'), *files)
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stderr

    def report(self, *args, status=0):
        p = run('report', '--json', *args)
        self.assertEqual(p.returncode, status, p.stderr)
        return json.loads(p.stdout)

    def test_equals_the_parts(self):
        nodes = self.nodes()
        self.assertIn('4 of 4 recordings merged, 8 ranks', self.merge(*nodes))
        by = '--by', 'rank,host,src,comm'
        whole = self.report(*by, self.path('all'))
        want = {}
        for f in nodes:
            for r in self.report(*by, f)['rows']:
                want[tuple(r['labels'].items())] = r['samples'], r['miss_cycles'], r['p90']
        got = {tuple(r['labels'].items()): (r['samples'], r['miss_cycles'], r['p90']) for r in whole['rows']}
        self.assertEqual(got, want)
        self.assertEqual(whole['samples']['op'], sum(2000 * (k + 1) for k in range(4)))
        self.assertEqual(whole['ledger']['seen'], whole['ledger']['forwarded'] + whole['ledger']['lost'])
        self.assertEqual(whole['ranks'], RANKS)
        self.assertEqual([h['host'] for h in whole['recordings']], [f'node{k}' for k in range(4)])
        several = self.report(*by, *nodes)
        for j in whole, several:
            del j['file']
            for k, h in enumerate(j['recordings']):
                self.assertEqual(os.path.basename(h.pop('file')), f'n{k}')
        self.assertEqual(whole, several)

    def test_parts_are_unchanged(self):
        """Also those of merged files that were merged."""
        nodes = self.nodes()
        self.merge(*nodes[:2], status=1)  # half of the ranks
        os.rename(self.path('all'), self.path('two'))
        self.merge(self.path('two'), *nodes[2:])
        for k, f in enumerate(nodes):
            self.assertEqual(run('dump', f'{self.path("all")}#{k + 1}', '--events').stdout,
                             run('dump', f, '--events').stdout)
            self.assertEqual(run('numa', '--csv', f'{self.path("all")}#{k + 1}').stdout, run('numa', '--csv', f).stdout)
        p = run('dump', self.path('all'))
        self.assertEqual(p.returncode, 1)
        self.assertIn('holds 4 recordings, which `ibscope report` adds up; other commands read one of them', p.stderr)
        p = run('dump', self.path('all') + '#5')
        self.assertIn('all holds 4 recordings', p.stderr)

    def test_one_recording(self):
        """Alone, or because its duplicate was left out: every command reads it as that recording."""
        one = self.make('one', 'node:0:2:0:0')
        shutil.copy(one, self.path('copy'))
        for files, status in ((one,), 0), ((one, self.path('copy')), 1):
            self.merge(*files, status=status)
            for args in (['report', '--csv'], ['dump'], ['replay', '--json'], ['c2c', '--json'], ['numa', '--csv'],
                         ['report', '--csv', '--by', 'src,comm']):
                with self.subTest(files=files, args=args):
                    got, want = run(*args, self.path('all')), run(*args, one)
                    self.assertEqual((got.returncode, got.stdout.replace(self.path('all'), one)),
                                     (want.returncode, want.stdout), got.stderr)

    def test_imbalance(self):
        """Largest over mean of the ranks' miss cycles, those without samples included."""
        nodes = self.nodes()
        cycles = collections.defaultdict(lambda: [0] * RANKS)
        for r in self.report('--by', 'rank,src', *nodes)['rows']:
            for src in r['labels']['src'], None:
                cycles[src][int(r['labels']['rank'])] += r['miss_cycles']
        j = self.report('--by', 'src', *nodes)
        for r in j['rows'] + [{'labels': {'src': None}} | j['total']]:
            of = cycles[r['labels']['src']]
            if not sum(of):
                self.assertIsNone(r['imbalance'])
                continue
            self.assertAlmostEqual(r['imbalance'], max(of) * RANKS / sum(of), places=3)
        self.assertEqual(cycles[None][j['busiest_rank']], max(cycles[None]))
        self.assertGreater(j['total']['imbalance'], 1.2)
        self.assertIn(f'imbalance {j["total"]["imbalance"]:.2f} over 8 ranks: rank {j["busiest_rank"]} has',
                      run('report', *nodes).stdout)
        self.assertTrue(all(r['imbalance'] is None for r in self.report('--by', 'rank', *nodes)['rows']))

    def test_numbers_of_hosts(self):
        """CPU 0 of two hosts is two CPUs."""
        nodes = self.nodes(2)
        got = self.report('--by', 'cpu', *nodes)
        self.assertEqual(got['by'], ['host', 'cpu'])
        self.assertEqual(len(got['rows']), 2 * len(self.report('--by', 'cpu', nodes[0])['rows']))
        cpus = [self.report('--by', 'op', '--columns', 'cpus,threads', *f)['rows'][0] for f in ([nodes[0]], nodes)]
        self.assertEqual(cpus[1]['cpus'], 2 * cpus[0]['cpus'])
        self.assertEqual(cpus[1]['threads'], 2 * cpus[0]['threads'])

    def test_csv_and_pandas(self):
        nodes = self.nodes()
        text = run('report', '--csv', '--by', 'rank,host,comm', *nodes).stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(sum(int(r['samples']) for r in rows), 20000)
        self.assertEqual({r['source'] for r in rows}, {'sim'})
        code = '''
import sys, pandas
t = pandas.read_csv(sys.stdin)
assert t["rank"].dtype.kind == "i" and t["miss_cycles"].dtype.kind in "if", t.dtypes
of = t.groupby("rank")["miss_cycles"].sum()
print(t["samples"].sum(), round(of.max() / of.mean(), 4))'''
        if subprocess.run(['/usr/bin/python3', '-c', 'import pandas'], capture_output=True).returncode:
            self.skipTest('python3-pandas is not installed: make mpi')
        p = subprocess.run(['/usr/bin/python3', '-c', code], input=text, capture_output=True, text=True)
        self.assertEqual(p.stdout, f'20000 {self.report(*nodes)["total"]["imbalance"]}\n', p.stderr)

    def test_csv_and_r(self):
        """Both tables: of report, and of single samples."""
        if not shutil.which('Rscript'):
            self.skipTest('r-base-core is not installed: make mpi')
        nodes = self.nodes()
        for name, *args in ('table', 'report', '--csv', '--by', 'rank,host,comm', *nodes), ('samples', 'dump', '--csv', nodes[1]):
            with open(self.path(name), 'w') as f:
                f.write(run(*args).stdout)
        code = '''
t <- read.csv("table")
s <- read.csv("samples")
stopifnot(is.integer(t$rank), is.numeric(t$miss_cycles), is.numeric(s$dc_miss_lat), is.character(s$comm))
of <- tapply(t$miss_cycles, t$rank, sum)
cat(sum(t$samples), nrow(s), round(max(of) / mean(of), 4), "\\n")'''
        p = subprocess.run(['Rscript', '--vanilla', '-e', code], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(p.stdout, f'20000 4000 {self.report(*nodes)["total"]["imbalance"]} \n', p.stderr)

    def refused_part(self, bad, says, status=1):
        """The others are merged, and report says the same."""
        good = self.make('good', 'node:0:4:0:0'), self.make('more', 'node:1:4:0:0')
        err = self.merge(good[0], bad, good[1], status=status)
        self.assertIn(says, err)
        self.assertIn('2 of 3 recordings merged', err)
        p = run('report', '--json', good[0], bad, good[1])
        self.assertIn(says, p.stderr)
        self.assertEqual((p.returncode, json.loads(p.stdout)['samples']['op']), (status, 4000))
        self.assertEqual(self.report(self.path('all'))['samples']['op'], 4000)

    def test_not_a_recording(self):
        with open(self.path('text'), 'w') as f:
            f.write('no recording\n')
        self.refused_part(self.path('text'), 'text: unknown format')

    def test_missing_file(self):
        self.refused_part(self.path('absent'), 'absent: No such file or directory: left out')

    def test_other_version(self):
        path = self.make('new', 'node:1:4:0:0')
        with open(path, 'r+b') as f:
            head = bytearray(f.read(28))
            head[12] = 4
            import zlib
            head[24:] = zlib.crc32(head[:24]).to_bytes(4, 'little')
            f.seek(0)
            f.write(head)
        self.refused_part(path, 'version')

    def test_duplicate_rank(self):
        self.refused_part(self.make('again', 'node:0:4:0:1', samples=10), 'again: rank 0 is already in ')

    def test_same_recording(self):
        path = self.make('good', 'node:0:4:0:0')
        shutil.copy(path, self.path('copy'))
        self.refused_part(self.path('copy'), 'copy is the same recording as')

    def test_missing_ranks(self):
        files = [self.make(f'n{k}', f'node:{k}:20:0:0', 10) for k in (0, 3, 4)]
        says = '14 of 20 ranks of the job are missing from the recordings: 2-5,10-19'
        self.assertIn(says, self.merge(*files, status=1))
        self.assertIn(says, run('report', *files).stderr)

    def test_dead_ranks(self):
        files = [self.make('a', 'node:0:4:9:0', 10), self.make('b', f'node:1:4:{3 << 8}:0', 10)]
        err = self.merge(*files)
        self.assertIn('a: rank 1 of host node0 was killed by signal 9', err)
        self.assertIn('b: rank 3 of host node1 failed with exit status 3', err)

    def test_clocks(self):
        err = self.merge(self.make('a', 'node:0:4:0:0', 10), self.make('b', 'node:1:4:0:-3600', 10))
        self.assertIn('recordings of one job start 3600 s apart', err)
        self.assertNotIn('apart', self.merge(self.make('a', 'node:0:4:0:0', 10), self.make('b', 'node:1:4:0:9', 10)))

    def test_other_job(self):
        err = self.merge(self.make('a', 'node:0:2:0:0', 10), self.make('b', 'node:1:4:0:0', 10))
        self.assertIn("to MPI job '77' with 4 ranks", err)

    def test_cut(self):
        files = [self.make('a', 'node:0:4:0:0'), self.make('b', 'node:1:4:0:0')]
        with open(files[1], 'r+b') as f:
            f.truncate(os.path.getsize(files[1]) - 40)
        self.assertIn('b is incomplete: the file ends', self.merge(*files, status=1))
        p = run('report', '-v', self.path('all'))
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stdout, r'file      b \(.*INCOMPLETE')
        j = self.report(self.path('all'), status=1)
        self.assertEqual(([r['whole'] for r in j['recordings']], j['whole'], j['missing']),
                         ([True, False], False, 'some of the recordings are incomplete'))
        # the merged file itself is cut, inside its last recording and before it
        size = os.path.getsize(self.path('all'))
        for keep, left in (size - 200, 4000), (os.path.getsize(files[0]) + 200, 2000):
            with open(self.path('all'), 'r+b') as f:
                f.truncate(keep)
            self.assertEqual(self.report(self.path('all'), status=1)['samples']['op'], left if left == 2000 else 4000)

    def test_damaged_index(self):
        self.merge(*self.nodes(2, 10))
        with open(self.path('all'), 'rb') as f:
            whole = f.read()
        for at, says in (9, 'the head of the merged file is damaged'), (40, 'the index of the merged file is damaged'):
            with open(self.path('bad'), 'wb') as f:
                f.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            for args in ['report', self.path('bad')], ['dump', self.path('bad')], ['merge', '-o', self.path('x'), self.path('bad')]:
                p = run(*args)
                self.assertEqual(p.returncode, 1)
                self.assertIn(says, p.stderr)

    def test_perf_data(self):
        with open(self.path('perf.data'), 'wb') as f:
            subprocess.run(['zstd', '-dc', PERF_DATA], stdout=f, check=True)
        err = self.merge(self.make('a', 'node:0:2:0:0', 10), self.path('perf.data'), status=1)
        self.assertIn('which cannot be merged; pass the files to `ibscope report` instead', err)
        both = self.report('--by', 'host', self.path('a'), self.path('perf.data'))
        self.assertEqual(both['samples']['op'], 10 + self.report(self.path('perf.data'))['samples']['op'])

    def test_usage(self):
        for args, says in ((['merge', 'x'], 'missing -o'), (['merge', '-o', 'x'], 'missing recordings'),
                           (['report', '--pprof', 'x', *self.nodes(2, 10)], '--pprof works on one recording'),
                           (['numa', *self.nodes(2, 10)], '(remote_price, numa) works on one recording')):
            p = run(*args)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(says, p.stderr)

    def test_hostile_names(self):
        self.merge(self.make('a', 'markup', 50), self.make('b', 'node:0:2:0:0', 50))
        for args in ['--by', 'host,comm'], ['--csv', '--by', 'host,comm'], ['--json', '--by', 'host,comm']:
            p = run('report', *args, self.path('all'))
            self.assertEqual([c for c in p.stdout + p.stderr if c < ' ' and c != '\n' or '\x7f' <= c < '\xa0'], [])

    def test_many(self):
        """64 nodes: seconds and MiB; with IBSCOPE_MPI of 100,000 samples each."""
        full = os.environ.get('IBSCOPE_MPI')
        files = [self.make(f'n{k}', f'node:{k}:128:0:0', 100000 if full else 1000) for k in range(64)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.merge(*files)
        self.assertEqual(self.report('--by', 'rank,host,src', self.path('all'))['ranks'], 128)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if ibscope.SAN == ibscope.BUILD:
            self.assertLess(seconds, 10)
            self.assertLess(after.ru_maxrss, 512 << 10)
        if full:
            print(f'merge and report of 64 recordings: {seconds:.1f} s of CPU time, {after.ru_maxrss >> 10} MiB')


if __name__ == '__main__':
    unittest.main()
