#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ranks.py [--build DIR] [KERNEL:GEN]: an MPI job of OpenMP programs on two guests, and their recordings merged.

Each guest has two ranks of two threads, which change CPUs; the script gives the ranks the variables that Open MPI
does. What ibscope recorded, and the merged file's report, are compared with the hardware's logs of both guests.
"""
import collections
import json
import os
import subprocess
import sys
import threading

import guest
import oracle
import pages
import records
from guest import HERE, Skip, need

LOAD = os.path.normpath(os.path.join(HERE, '../system/omp_load.c'))
BUILD_ID = '1b5c09e0' * 5
RANKS, THREADS = 2, 2   # of a node, of a rank
COMPILERS = ('clang', '-fopenmp=libomp'), ('gcc', '-fopenmp')   # only LLVM's runtime has OMPT


class Job:
    """Nodes of a job: guests of one boot of run_guests()."""

    def __init__(self, work):
        self.work, self.nodes, self.lock = work, [], threading.Lock()
        program = os.path.join(work, 'omp_load')
        for compiler in COMPILERS:
            if not subprocess.run([*compiler, '-g', '-O1', '-D_GNU_SOURCE', '-Wl,--build-id=0x' + BUILD_ID, '-o', program, LOAD,
                                   '-I', os.path.join(HERE, '../../include')], stderr=subprocess.DEVNULL).returncode:
                break
        self.ompt = compiler[0] == 'clang'
        debug = os.path.join(work, 'debug/.build-id', BUILD_ID[:2])
        os.makedirs(debug, exist_ok=True)
        os.link(program, os.path.join(debug, BUILD_ID[2:]))
        subprocess.run([os.path.join(HERE, 'rig/mkoverlay.sh'), '-o', os.path.join(work, 'overlay'),
                        program + ':/usr/bin/omp_load'], check=True)

    def add(self, g):
        """One more node."""
        node = len(self.nodes)
        g.ranks = range(node * RANKS, (node + 1) * RANKS)
        g.recorded = 'job.node%d.%d' % (node, g.ranks[0])
        period = g.new_period(100000)
        g.do('hostname node%d' % node)
        for local, rank in enumerate(g.ranks):
            env = {'RANK': rank, 'SIZE': 2 * RANKS, 'LOCAL_RANK': local, 'LOCAL_SIZE': RANKS}
            g.do('run %s env PMIX_NAMESPACE=1 %s ibscope record --per-rank --omp -c %d -o $O/job.%%h.%%r.data -- '
                 'omp_load %d & R%d=$!' % (g.recorded if not local else 'rank%d' % rank, ' '.join(
                     'OMPI_COMM_WORLD_%s=%d' % x for x in env.items()), period, THREADS, local))
        g.do('wait ' + ' '.join('$R%d' % local for local in range(RANKS)))
        g.inside = None
        g.check('ranks: the recording of node%d' % node, self.check_node, g, period)
        g.check('ranks: the merged recordings', self.check_merged)
        self.nodes.append(g)

    def threads(self, g):
        """[(rank, tid, number in the team, function, begin, end)], as the program says."""
        return [(rank, int(tid), number, function, int(begin), int(end)) for rank in g.ranks
                for number, tid, function, begin, end in map(str.split, g.stdout(
                    g.recorded if rank == g.ranks[0] else 'rank%d' % rank).splitlines())]

    def check_node(self, g, period):
        """Every sample of a rank is a record, and of the others none; g.samples and g.inside say how many."""
        g.inside = None
        _, samples, events, _ = records.read(g, g.recorded)
        rank_of = {e['tgid']: e['rank'] for e in events if e['kind'] == 'rank'}
        need(set(rank_of.values()) == set(g.ranks), 'ranks are %s' % rank_of)
        said = records.check(g, g.recorded, period, filters=lambda: oracle.Filter(pid=set(rank_of)))
        log = [s for s in g.samples(period)[0] if s.tgid in rank_of]
        g.of_thread = collections.Counter((rank_of[s.tgid], s.tid) for s in log)
        times = {tid: [e['time'] for e in samples if e['tid'] == tid] for _, tid in g.of_thread}
        g.inside = {(rank, tid, number, function): sum(begin < t < end for t in times[tid])
                    for rank, tid, number, function, begin, end in self.threads(g)}
        need(len(g.inside) == 2 * RANKS * THREADS, 'threads in regions: %s' % list(g.inside))
        moves = 0
        for _, tid, _, _ in g.inside:
            cpus = [s.vcpu for s in sorted(log, key=lambda s: s.virtual_ns) if s.tid == tid]
            moves += sum(a != b for a, b in zip(cpus, cpus[1:]))
        need(moves, 'no thread was on several CPUs')
        return '%s; %d moves to other CPUs' % (said, moves)

    def ibscope(self, *args):
        p = subprocess.run([os.path.join(self.work, 'overlay/usr/bin/ibscope'), *args], capture_output=True, text=True)
        need(p.returncode == 0, p.stderr)
        return p

    def check_merged(self):
        """Each row of a thread has what the logs say, and those in a region the samples from in there.

        Each node checks; the one that ends first has nothing to merge yet."""
        with self.lock:
            if any(g.inside is None for g in self.nodes):
                return 'once the other node has ended'
            return self.merge()

    def merge(self):
        merged = os.path.join(self.work, 'job.ibscope')
        said = self.ibscope('merge', '-o', merged, *[os.path.join(g.out, g.recorded + '.data') for g in self.nodes]).stderr
        need('2 of 2 recordings merged, %d ranks' % (2 * RANKS) in said, said)
        keys = 'rank', 'host', 'tid', 'thread_role', 'omp_region', 'region'
        out = json.loads(self.ibscope('report', '--json', '--debug-dir', os.path.join(self.work, 'debug'),
                                      '--by', ','.join(keys), merged).stdout)
        need(out['ledger']['lost'] == 0, 'ledger is %s' % out['ledger'])
        of_thread, of_region = collections.Counter(), collections.Counter()
        for r in out['rows']:
            rank, host, tid, role, omp, region = (r['labels'][k] for k in keys)
            of_thread[int(rank), host, int(tid)] += r['samples']
            if omp or region:
                of_region[int(rank), int(tid), role, omp and omp.split()[0], region] += r['samples']
        need(of_thread == {(rank, 'node%d' % node, tid): n for node, g in enumerate(self.nodes)
                           for (rank, tid), n in g.of_thread.items()}, 'samples of threads are %s' % of_thread)
        if not self.ompt:
            raise Skip('no clang with libomp here: make mpi installs it')
        for g in self.nodes:
            for (rank, tid, number, function), n in g.inside.items():
                got = of_region[rank, tid, 'omp ' + number, function, 'solver' if function == 'solve' else None]
                need(n <= got, 'rank %d, thread %s in %s: %d, not %d' % (rank, number, function, got, n))
        need({where[3] for where in of_region} >= {'solve', 'smooth'}, 'regions are %s' % of_region)
        return '%d samples of %d threads as in the logs, %d of them in regions, 0 lost' % (
            sum(of_thread.values()), len(of_thread), sum(of_region.values()))


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pair', nargs='?', metavar='KERNEL:GEN', default='6.12:zen4')
    args = ap.parse_args()

    def make(work, report):
        nodes = [guest.Guest(*args.pair.split(':'), work, report, '-node%d' % n, smp=2 + 2 * n, workers=False,
                             nodes=1 + n) for n in range(2)]
        job = Job(work)
        for g in nodes:
            job.add(g)
        return nodes

    return guest.run_guests(args, make, tools=pages.tools(args.build))


if __name__ == '__main__':
    sys.exit(main())
