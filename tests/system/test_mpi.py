# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --per-rank: with the environments of MPI launchers, and with launchers that are installed."""
import collections
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import ibscope
from ibscope import until
from test_record import Recorded, ledger
import test_regions
from test_regions import LOAD, SIM, Log

OK, WHY = ibscope.can_bpf()
HOST = os.uname().nodename
SPIN = '/usr/bin/python3', '-c', '''
import sys, time
end = time.thread_time() + float(sys.argv[1])
while time.thread_time() < end: pass
'''
WAIT = '/usr/bin/python3', '-c', '''
import os, sys, time
open(sys.argv[1], 'w').close()
# until the test says so, or is over
while os.path.exists(sys.argv[1]) and not os.path.exists(sys.argv[2]): time.sleep(0.02)
'''


def open_mpi(rank, ranks, job):
    return {'OMPI_COMM_WORLD_RANK': rank, 'OMPI_COMM_WORLD_SIZE': ranks, 'PMIX_NAMESPACE': job,
            'OMPI_COMM_WORLD_LOCAL_RANK': rank, 'OMPI_COMM_WORLD_LOCAL_SIZE': ranks,
            'SLURM_PROCID': 0}  # of the batch script, in which mpirun was called


def mpich(rank, ranks, job):
    return {'PMI_RANK': rank, 'PMI_SIZE': ranks, 'MPI_LOCALRANKID': rank, 'MPI_LOCALNRANKS': ranks}


def slurm(rank, ranks, job, node=2):
    """The third node: four ranks on each of two before it."""
    return {'SLURM_PROCID': 8 + rank, 'SLURM_STEP_NUM_TASKS': 8 + ranks, 'SLURM_LOCALID': rank,
            'SLURM_STEP_TASKS_PER_NODE': f'4(x2),{ranks}', 'SLURM_NODEID': node,
            'SLURM_JOB_ID': job, 'SLURM_STEP_ID': 0, 'PMI_RANK': 8 + rank, 'PMI_SIZE': 8 + ranks}


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-mpi.')
        self.addCleanup(shutil.rmtree, self.dir)
        self.job = f'{os.getpid()}-{time.monotonic_ns()}'

    def path(self, name):
        return os.path.join(self.dir, name)

    def recorded(self, rank=0):
        return Recorded(self.path(f'ibscope.{HOST}.{rank}.data'))

    def check_ranks(self, stderr, ranks, first=0):
        """Every sample is of a rank, and the ranks' samples add up to the ledger."""
        got = self.recorded(first)
        self.assertEqual((got.end['whole'], got.end['residual']), (1, 0), got.end)
        self.assertEqual({e['rank'] for e in got.of('rank')}, set(ranks))
        self.assertEqual({e['rank']: e['status'] for e in got.of('rank') if e['ended']},
                         dict.fromkeys(ranks, 0))
        p = ibscope.run('report', '--json', '--by', 'rank,host', self.path(f'ibscope.{HOST}.{first}.data'))
        table = json.loads(p.stdout)
        of = {r['labels']['rank']: r['samples'] for r in table['rows']}
        self.assertEqual(set(of), {str(r) for r in ranks}, p.stdout)
        self.assertEqual({r['labels']['host'] for r in table['rows']}, {HOST})
        self.assertEqual(sum(of.values()), got.end['forwarded'])
        self.assertEqual(ledger(stderr)['forwarded'], got.end['forwarded'])
        return got


class Environments(Case):
    """The test launches the ranks, with the variables that launchers set."""

    def start(self, rank, *command, ranks=3, launcher=open_mpi, args=('-c', '100000'), stdout=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('OMPI_', 'PMI', 'SLURM_', 'MPI_'))}
        env |= {k: str(v) for k, v in launcher(rank, ranks, self.job).items()}
        p = subprocess.Popen([ibscope.IBSCOPE, 'record', '--source', 'sim', '--max-loss', '100%', '--per-rank', *args,
                              '--', *command], cwd=self.dir, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def end(self, p, status=0):
        err = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, status, err)
        return err

    def waiting(self, ranks=3):
        """Ranks with commands that run until release() is called."""
        p = [self.start(r, *WAIT, self.path(f'runs{r}'), self.path('go'), ranks=ranks) for r in range(ranks)]
        until(lambda: all(os.path.exists(self.path(f'runs{r}')) for r in range(ranks)))
        return p

    def release(self):
        open(self.path('go'), 'w').close()

    def test_launchers(self):
        for launcher, first in (open_mpi, 0), (mpich, 0), (slurm, 8):
            with self.subTest(launcher.__name__):
                p = [self.start(r, *SPIN, '0.3', launcher=launcher) for r in range(3)]
                err = [self.end(x) for x in p]
                got = self.check_ranks(err[0], range(first, first + 3), first)
                self.assertEqual(got.info['ranks'], first + 3)
                self.assertEqual(got.info['job'], {'open_mpi': self.job, 'mpich': '', 'slurm': self.job + '.0'}
                                 [launcher.__name__])
                self.assertIn(f'rank {first + 1} is sampled by the first rank of this node', err[1])
                self.assertEqual([f for f in os.listdir(self.dir) if f.endswith('.data')],
                                 [f'ibscope.{HOST}.{first}.data'])
                os.remove(self.path(f'ibscope.{HOST}.{first}.data'))

    def test_regions_of_all_ranks(self):
        """The one that collects reads those of the others, each to the unit."""
        p = [self.start(r, 'sh', '-c', f'{LOAD} 2 2 >{self.path(f"log{r}")}') for r in range(3)]
        err = [self.end(x) for x in p]
        self.check_ranks(err[0], range(3))
        p = ibscope.run('report', '--json', '--by', 'rank,tid,region', self.path(f'ibscope.{HOST}.0.data'))
        rows = {(r['labels']['rank'], r['labels']['tid'], r['labels']['region']) for r in json.loads(p.stdout)['rows']}
        for rank in range(3):
            with open(self.path(f'log{rank}')) as f:
                for tid in Log(f.read()).at:
                    for region in 'outer', 'outer/inner', None:
                        self.assertIn((str(rank), str(tid), region), rows)
        self.assertEqual(len([e for e in self.recorded().of('region')]), 3 * 2 * 2 * 4)

    def allocations(self, source):
        """Those of each rank in one recording, and their sites by rank."""
        program = self.path('load')
        p = subprocess.run(['gcc', '-D_GNU_SOURCE', '-O2', '-g', '-fno-omit-frame-pointer', '-o', program,
                            os.path.join(os.path.dirname(os.path.abspath(__file__)), source)], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        with contextlib.ExitStack() as files:
            out = [files.enter_context(open(self.path(f'out{r}'), 'w')) for r in range(3)]
            p = [self.start(r, program, args=('-c', '20000', '--allocs'), stdout=out[r]) for r in range(3)]
            err = [self.end(x) for x in p]
        got = collections.Counter(e['tgid'] for e in self.recorded().of('alloc'))
        truth = collections.Counter()
        for r in range(3):
            with open(self.path(f'out{r}')) as f:
                truth.update(int(line.split()[1]) for line in f if line.startswith('alloc '))
        self.assertEqual(len(truth), 3)
        rows = json.loads(ibscope.run('report', '--json', '--by', 'rank,allocation', self.path(f'ibscope.{HOST}.0.data')).stdout)['rows']
        sites = collections.defaultdict(set)
        for r in rows:
            sites[r['labels']['rank']].add((r['labels']['allocation'] or '-').split()[0])
        return got, truth, sites, err[0]

    def test_allocations_of_all_ranks(self):
        got, truth, sites, err = self.allocations('allocation_load.c')
        self.assertIn('allocations and frees of 3 programs', err)
        for pid, n in truth.items():
            self.assertGreaterEqual(got[pid], n)
        for rank in '012':
            self.assertTrue([s for s in sites[rank] if s.startswith('site_')], sites)

    def test_probes_of_all_ranks(self):
        got, truth, sites, err = self.allocations('probes_load.c')
        self.assertIn('225 allocations and frees by probes of 1 file', err)
        self.assertEqual(got, truth)
        for rank in '012':
            self.assertIn('by_probe', sites[rank])

    def test_children_have_the_rank(self):
        """The one that works is a grandchild."""
        p = [self.start(r, 'sh', '-c', '"$@"; true', 'sh', 'sh', '-c', '"$@"; true', 'sh', *SPIN, '0.3')
             for r in range(2 + 1)]
        err = [self.end(x) for x in p]
        self.check_ranks(err[0], range(3))

    def test_a_rank_dies(self):
        """Its end has the signal, and the launcher sees the signal when the recording is complete."""
        p = self.waiting()
        pid = next(e['tgid'] for e in until(lambda: self.ranks_written(3)) if e['rank'] == 1)
        os.kill(pid, signal.SIGSEGV)
        self.end(p[1], -signal.SIGSEGV)
        got = self.recorded()
        self.assertEqual(got.end['whole'], 1)
        self.assertEqual({e['rank']: e['status'] for e in got.of('rank') if e['ended']}, {1: 11})
        self.release()
        self.assertIn('rank 1 was killed by signal 11: recording ends on this node', self.end(p[0]))
        self.assertNotIn('was killed', self.end(p[2]))

    def ranks_written(self, n):
        try:
            of = self.recorded().of('rank')
        except AssertionError:  # nothing is written yet
            return None
        return of if len(of) == n else None

    def test_a_rank_and_its_ibscope_are_killed(self):
        p = self.waiting()
        p[2].kill()
        self.release()
        err = self.end(p[0])
        self.end(p[1])
        self.assertIn('rank 2 was killed by signal 9', err)

    def test_the_first_rank_fails(self):
        """The others may wait for it, so its end is the end of the recording, not that of the others."""
        p = [self.start(r, *WAIT, self.path(f'runs{r}'), self.path('go')) for r in (1, 2)]
        first = self.start(0, 'sh', '-c', f'while [ ! -e {self.path("runs1")} ]; do sleep 0.1; done; exit 3')
        err = self.end(first, 3)
        self.assertIn('rank 0 failed with exit status 3: recording ends on this node', err)
        self.assertEqual(self.recorded().end['whole'], 1)
        self.release()
        for x in p:
            self.assertNotIn('was killed', self.end(x))

    def test_the_collector_is_killed(self):
        p = self.waiting()
        p[0].kill()
        for x in p[1:]:
            line = x.stderr.readline() + x.stderr.readline()
            self.assertIn('the first rank of this node was killed', line)
        self.release()
        for x in p[1:]:
            self.end(x)

    def test_a_launcher_that_ends_the_job(self):
        """It sends SIGTERM to its children only: commands get it, and the recording is complete."""
        p = self.waiting()
        for x in p:
            x.send_signal(signal.SIGTERM)
        for x in p:
            self.end(x, -signal.SIGTERM)
        self.assertEqual(self.recorded().end['whole'], 1)

    def test_refusals(self):
        def refused(*args, env, command=('true',)):
            clean = {k: v for k, v in os.environ.items() if not k.startswith(('OMPI_', 'PMI', 'SLURM_', 'MPI_'))}
            p = ibscope.run('record', '--source', 'sim', '--per-rank', *args, *(('--', *command) if command else ()),
                            env=clean | {k: str(v) for k, v in env.items()}, cwd=self.dir)
            self.assertEqual(p.returncode, 2, p.stderr)
            return p.stderr
        one = open_mpi(0, 1, self.job)
        self.assertIn('no rank of Open MPI, MPICH or Slurm in the environment', refused(env={}))
        self.assertIn("put the program of the MPI job after '--'", refused(env=one, command=()))
        self.assertIn('%x', refused('-o', 'x.%x', env=one) + '%x')
        self.assertIn("'%' must be part of %h (host), %r (rank) or %%", refused('-o', 'x.%x', env=one))
        two = open_mpi(0, 2, self.job) | {'OMPI_COMM_WORLD_LOCAL_SIZE': 1}
        self.assertIn('all nodes would write the same file', refused('-o', 'x', env=two))
        self.assertIn('a rank must be below the number of ranks', refused(env=open_mpi(3, 3, self.job)))
        self.assertIn('OMPI_COMM_WORLD_RANK', refused(env=one | {'OMPI_COMM_WORLD_RANK': 'x'}))
        bad = slurm(0, 1, self.job, node=7)
        self.assertIn('no number of tasks for node 7', refused(env=bad))
        self.assertEqual(os.listdir(self.dir), [])


class Launchers(Case):
    """mpirun itself, which waits for seconds when a rank dies."""
    RANKS = 4

    def mpirun(self, which, *command, status=0):
        program = shutil.which(f'mpirun.{which}')
        if not os.environ.get('IBSCOPE_MPI') or not program:
            self.skipTest('make mpi installs it and runs this')
        own = ['--oversubscribe'] if which == 'openmpi' else []
        env = os.environ | {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
        p = subprocess.run([program, *own, '-n', str(self.RANKS), *command], cwd=self.dir, env=env, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        self.assertEqual(p.returncode == 0, status == 0, p.stderr)
        return p.stderr

    def record(self, which, *command, status=0):
        return self.mpirun(which, ibscope.IBSCOPE, 'record', '--source', 'sim', '-c', '100000', '--max-loss', '100%',
                           '--per-rank', '--', *command, status=status)

    def check(self, which):
        err = self.record(which, *SPIN, '0.3')
        got = self.check_ranks(err, range(self.RANKS))
        self.assertEqual(got.info['ranks'], self.RANKS)

    def check_death(self, which, rank):
        """One rank dies, the launcher ends the others, and the recording is complete."""
        err = self.record(which, 'sh', '-c', f'''
            [ "$PMI_RANK$OMPI_COMM_WORLD_RANK" != {rank} ] || kill -SEGV $$; exec sleep 60''', status=1)
        got = self.recorded()
        self.assertEqual(got.end['whole'], 1, err)
        ended = collections.Counter(e['rank'] for e in got.of('rank') if e['ended'] and e['status'] == 11)
        self.assertEqual(ended, {rank: 1}, err)

    def test_open_mpi(self):
        self.check('openmpi')

    def test_mpich(self):
        self.check('mpich')

    def test_start(self):
        """Sampling adds at most half a second: of CPU time, whatever else runs here."""
        def seconds(run):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run('openmpi', 'true')
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        more = min(seconds(self.record) - seconds(self.mpirun) for _ in range(3))
        print(f'record under mpirun: {more:.2f} s of CPU time more')
        self.assertLess(more, 0.5)

    def hybrid(self, which):
        """Four ranks of two threads: every sample of theirs has its rank, host, thread, and region."""
        load = test_regions.OpenMP.build(self, 'clang', '-fopenmp=libomp')
        err = self.mpirun(which, ibscope.IBSCOPE, 'record', *SIM, '--per-rank', '--omp', '--', load, '2')
        self.check_ranks(err, range(self.RANKS))
        keys = 'rank', 'host', 'thread_role', 'omp_region', 'region'
        p = ibscope.run('report', '--json', '--by', ','.join(keys), self.path(f'ibscope.{HOST}.0.data'))
        rows = {tuple(r['labels'][k] for k in keys): r['samples'] for r in json.loads(p.stdout)['rows']}
        self.assertEqual(sum(rows.values()), self.recorded().end['forwarded'])
        inside = {(rank, host, role, omp.split()[0], region) for rank, host, role, omp, region in rows if omp}
        self.assertEqual(inside, {(str(rank), HOST, f'omp {thread}', *where) for rank in range(self.RANKS)
                                  for thread in range(2) for where in (('solve', 'solver'), ('smooth', None))})

    def test_open_mpi_hybrid(self):
        self.hybrid('openmpi')

    def test_mpich_hybrid(self):
        self.hybrid('mpich')

    def test_open_mpi_rank_dies(self):
        self.check_death('openmpi', 2)

    def test_open_mpi_first_rank_dies(self):
        self.check_death('openmpi', 0)

    def test_mpich_rank_dies(self):
        self.check_death('mpich', 2)

    def test_mpich_first_rank_dies(self):
        self.check_death('mpich', 0)


if __name__ == '__main__':
    unittest.main()
