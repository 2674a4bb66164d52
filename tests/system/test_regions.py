# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Regions of programs, of their threads and of OpenMP, in recordings from the software clock."""
import bisect
import collections
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import clock
import ibscope
from test_record import Recorded

OK, WHY = ibscope.can_bpf()
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOAD = os.path.join(ibscope.BUILD, 'tests/unit/region_load')
SIM = '--source', 'sim', '-c', '200000', '--max-loss', '100%'


class Log:
    """What region_load printed: where a thread was at a time."""

    def __init__(self, text):
        self.at = collections.defaultdict(list)  # by thread: (time, where it is from then on)
        for line in text.splitlines():
            tid, path, *t = line.split()
            inner = '/' in path
            outside = 'outer' if inner else None
            for time, where in zip(map(int, t), (False, path, False, outside)):
                self.at[int(tid)].append((time, where))
        for changes in self.at.values():
            changes.sort(key=lambda c: c[0])

    def where(self, tid, time):
        """The path, None outside of regions, False for an instant in between."""
        changes = self.at[tid]
        i = bisect.bisect_right(changes, time, key=lambda c: c[0])
        return changes[i - 1][1] if i else None


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-regions.')
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, 'ibscope.data')

    def record(self, *command, args=(), **kw):
        p = ibscope.run('record', *SIM, *args, '--', *command, cwd=self.dir, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn('records of regions were lost', p.stderr)
        return p

    def report(self, keys, file=None):
        """{labels: samples}"""
        p = ibscope.run('report', '--json', '--by', ','.join(keys), file or self.file)
        self.assertEqual(p.returncode, 0, p.stderr)
        return {tuple(r['labels'][k] for k in keys): r['samples'] for r in json.loads(p.stdout)['rows']}


class Threads(Case):
    def test_threads_that_change_cpus(self):
        """Every sample of a thread is in the region that the thread says, to the unit."""
        p = self.record(LOAD, '3', '4')
        log = Log(p.stdout)
        self.assertEqual(len(log.at), 3)
        got = Recorded(self.file)
        self.assertEqual((got.end['whole'], got.end['residual']), (1, 0))
        self.assertEqual(len(got.of('region')), 3 * 4 * 4)
        want, between, cpus = collections.Counter(), collections.Counter(), collections.defaultdict(set)
        for s in got.of('sample'):
            where = log.where(s['tid'], s['time']) if s['tid'] in log.at else None
            if where is False:
                between[s['tid']] += 1
            else:
                want[str(s['tid']), where] += 1
            cpus[s['tid']].add(s['cpu'])
        if len(os.sched_getaffinity(0)) > 1:
            self.assertTrue(all(len(cpus[tid]) > 1 for tid in log.at), cpus)
        rows = self.report(['tid', 'region'])
        self.assertEqual(sum(rows.values()), got.end['forwarded'])
        self.assertEqual({r for _, r in rows}, {'outer', 'outer/inner', None})
        for tid in log.at:
            off = {where: rows.get((str(tid), where), 0) - want[str(tid), where]
                   for where in ('outer', 'outer/inner', None)}
            self.assertTrue(all(n >= 0 for n in off.values()), off)
            self.assertEqual(sum(off.values()), between[tid], off)
            self.assertGreater(want[str(tid), 'outer/inner'], 20)
        self.assertLess(sum(between.values()), got.end['forwarded'] / 20)
        self.check_start(rows, log)

    def check_start(self, rows, log):
        """Without OpenMP's interface threads have the order in which they started."""
        roles = self.report(['tid', 'thread_role'])
        of = {tid: role for tid, role in roles}
        self.assertEqual([of[str(tid)] for tid in sorted(log.at)], ['start 1', 'start 2', 'start 3'])
        self.assertEqual(sum(roles.values()), sum(rows.values()))

    @clock.every(20000)
    def test_rotated_files(self):
        """A file has the regions that began in an earlier one."""
        self.record('true')
        size = os.path.getsize(self.file) * 3 // 2 + 100000  # each file begins with the processes of the machine
        os.remove(self.file)
        self.record(LOAD, '1', '1', '250', args=('--max-size', str(size), '--rotate', '100', '-c', '20000'))
        files = len(glob.glob(self.file + '*'))
        self.assertGreater(files, 2)
        # three quarters of the time are in the region, so the second file, of three or more, is at least in part
        self.assertIn(('outer',), {(str(r).split('/')[0],) for (r,) in self.report(['region'], f'{self.file}.{files - 2}')})

    def test_nothing_is_left(self):
        before = set(glob.glob('/dev/shm/ibscope-regions.*') + glob.glob('/tmp/ibscope-regions.[0-9]*'))
        for args, command in (((), (LOAD, '1', '1')), (('--csv',), (LOAD, '1', '1')), ((), ('false',))):
            p = ibscope.run('record', *SIM, *args, '--', *command, cwd=self.dir)
            self.assertIn(p.returncode, (0, 1), p.stderr)
        p = ibscope.run('record', *SIM, '-e', 'nonsense', '--', 'true', cwd=self.dir)
        self.assertEqual(p.returncode, 2)
        after = set(glob.glob('/dev/shm/ibscope-regions.*') + glob.glob('/tmp/ibscope-regions.[0-9]*'))
        mine = [d for d in after - before if os.path.exists(d) and not self.alive(d)]
        self.assertEqual(mine, [])

    @staticmethod
    def alive(path):
        """Tests of others record at the same time."""
        return os.path.exists(f'/proc/{path.split(".")[1]}')


class OpenMP(Case):
    THREADS = 3

    def build(self, *compiler):
        if not shutil.which(compiler[0]):
            self.skipTest(f'no {compiler[0]}')
        program = os.path.join(self.dir, 'load')
        p = subprocess.run([*compiler, '-g', '-O1', '-D_GNU_SOURCE', '-I', os.path.join(TOP, 'include'), '-o', program,
                            os.path.join(TOP, 'tests/system/omp_load.c')], capture_output=True, text=True)
        if p.returncode:
            self.skipTest(f'{" ".join(compiler)}: ' + (p.stderr.splitlines() or [''])[-1])
        return program

    def run_load(self, *compiler):
        """{thread: number in its team}"""
        p = self.record(self.build(*compiler), str(self.THREADS), args=('--omp',))
        return {tid: number for number, tid, *_ in map(str.split, p.stdout.splitlines())}

    def test_llvm(self):
        team = self.run_load('clang', '-fopenmp=libomp')
        self.assertEqual(len(team), self.THREADS)
        rows = self.report(['tid', 'thread_role', 'omp_region', 'region'])
        self.assertEqual(sum(rows.values()), Recorded(self.file).end['forwarded'])
        line = {}
        with open(os.path.join(TOP, 'tests/system/omp_load.c')) as f:
            for n, text in enumerate(f, 1):
                line.setdefault('solve' if 'solve(int' in text else 'smooth' if 'smooth(int' in text else n, n)
        for tid, number in team.items():
            of = {(omp.split()[0], region): omp for t, role, omp, region in rows
                  if t == tid and role == f'omp {number}' and omp}
            # all threads of the team are in the region in which it began
            self.assertEqual(set(of), {('solve', 'solver'), ('smooth', None)}, rows)
            for function in ('solve', 'smooth'):
                where = next(omp for (name, _), omp in of.items() if name == function)
                # a compiler may name it from the directory where it ran
                self.assertRegex(where, rf'^{function} (|.*/)tests/system/omp_load\.c:{line[function] + 3}$')

    def test_gnu(self):
        """Its runtime has no OMPT: the order of start, and no regions of OpenMP."""
        team = self.run_load('gcc', '-fopenmp')
        rows = self.report(['tid', 'thread_role', 'omp_region'])
        self.assertEqual({omp for _, _, omp in rows}, {None})
        of = {tid: role for tid, role, _ in rows}
        self.assertEqual({tid: of[tid] for tid in team}, {tid: f'start {n}' for tid, n in team.items()})

    def test_refusals(self):
        for option in '--omp', '--markers':
            for args in (option,), (option, '--csv', '--', 'true'):
                p = ibscope.run('record', *SIM, *args, cwd=self.dir)
                self.assertEqual(p.returncode, 2)
                self.assertIn(f"{option}: put the program after '--' and record to a file", p.stderr)


class Markers(Case):
    """Regions of programs that are marked for LIKWID or Caliper."""
    SOURCE = os.path.join(TOP, 'tests/system/markers_load.cpp')

    def build(self, name, *options):
        program = os.path.join(self.dir, name)
        p = subprocess.run(['g++', '-O1', '-o', program, self.SOURCE, *options], capture_output=True, text=True)
        if p.returncode:
            self.skipTest('g++: ' + (p.stderr.splitlines() or [''])[-1])
        return program

    def regions(self, program):
        said = self.record(program, args=('--markers',)).stdout
        rows = self.report(['comm', 'region'])
        self.assertEqual(sum(rows.values()), Recorded(self.file).end['forwarded'])
        return {region for comm, region in rows if comm == os.path.basename(program)}, said

    def test_calls(self):
        """In each region there are samples, and the libraries get each call."""
        library = self.build('lib.so', '-DLIBRARY', '-shared', '-fPIC')
        program = self.build('load', library)
        regions, said = self.regions(program)
        self.assertEqual(regions - {'scope/function'},  # all of it but an instant is in the loop
                         {None, 'likwid', 'scope', 'scope/function/loop', 'scope/region'})
        self.assertEqual(said, '10 calls\n')
        os.remove(self.file)
        self.record(program)
        self.assertEqual({region for (region,) in self.report(['region'])}, {None})

    def test_likwid(self):
        """Its own library."""
        regions, _ = self.regions(self.build('load', '-DLIKWID', '-llikwid'))
        self.assertEqual(regions, {None, 'likwid'})


if __name__ == '__main__':
    unittest.main()
