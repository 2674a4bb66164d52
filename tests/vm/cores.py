#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""cores.py [--build DIR] [--check] [--json FILE] [CPUS[xCOMPLEXES]...]: ibscope on many emulated CPUs.

A boot a size: the counts of `ibscope hist` against the hardware's log, with work on several CPUs in
several cgroups; which cache lines samples write; what a sample, starting and reading cost. The
guest's clock counts the instructions of all CPUs together (--icount). model.py says what is to be
expected of that, and of larger machines.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import guest
import model
import oracle
import records
from guest import HERE, need

# 255 is what the emulated interrupt controller can number
SIZES = ('2', '16x4', '64x8', '255x32')
BUSY = 8            # CPUs that work, at most, and that now and then: who waits for a CPU's answer
                    # waits in the emulator until all that are busy had their turn
PERIOD = 100000
BRIEF = 32          # more CPUs are much work for the emulator, so less is asked of them
WINDOW = '0.1 1'
# calibrated once, not for each CPU
APPEND = 'lpj=4003340 tsc=reliable'


class Cores(guest.Guest):
    def __init__(self, size, kernel, gen, work, report):
        cpus, complexes = (size.split('x') + ['1'])[:2]
        self.cpus, self.complexes = int(cpus), int(complexes)
        super().__init__(kernel, gen, work, report, '-' + size, workers=False, smp=cpus, rig=[
            '--icount', '--mem', '4096', '--append', APPEND])
        self.timeout = 7200
        self.where += ' %s CPUs' % size
        self.busy = sorted({i * (self.cpus - 1) // (BUSY - 1) for i in range(BUSY)})
        self.rows = []

    def scenarios(self, rounds, millions, brief):
        self.check('the kernel did not complain', self.check_console)
        self.check('all CPUs are there', self.check_machine)
        about, window, brief = PERIOD, WINDOW, brief or self.cpus > BRIEF
        self.do('nproc > $O/nproc; work -l3 %d' % self.complexes)
        for i, cpu in enumerate(self.busy):
            self.do('start w%d /w%d/x %d work 0 pulse' % (i, i % 4, cpu))
        self.hist('all', about=about, window=window, also=self.worked)
        self.hist('by-cpu', about=about, window=window, by=('cgroup', 'cpu'), also=self.worked)
        if not brief:
            self.hist('by-ccx', about=about, window=window, by=('ccx', 'op'), also=self.worked)
            self.hist('cgroup', '--cgroup /w1', about=about, window=window, by=('cgroup',),
                      filters=lambda: oracle.Filter(cgroup=self.facts.below('/w1')))
        period = self.new_period(about)
        self.do('run record ibscope record -a -c %d -o $O/record.data -- sleep 0.1' % period)
        self.check('record', records.check, self, 'record', period)
        self.do('for p in $(cut -d" " -f2 $O/workers); do kill -9 $p; wait $p; done')
        if not brief:
            self.do('run lines test_lines')
            self.check('lines: no two complexes write the same', self.check_lines)
        self.do('sleep 1; timeout 7200 bench-cores %s --rounds %d --instructions %d > $O/cores.json '
                '2> $O/cores.err; echo $? > $O/cores.rc' % ('--brief' * brief, rounds, millions))
        self.check('costs', self.check_costs)

    def check_machine(self):
        need(int(self.read('nproc')) == self.cpus, 'the guest has ' + self.read('nproc'))
        need(len(set(self.l3)) == self.complexes, 'L3 caches: %d' % len(set(self.l3)))

    def worked(self, accepted, series):
        seen = {s.vcpu for s in accepted}
        need(seen >= set(self.busy), 'no sample of CPUs %s' % (set(self.busy) - seen))
        cgroups = {s.cgroup for s in accepted}
        need(len(cgroups) >= min(4, len(self.busy)), 'cgroups: %s' % cgroups)
        return 'of %d CPUs, %d cgroups' % (len(seen), len(cgroups))

    def check_lines(self):
        out, status = self.read('lines.out') + self.read('lines.err'), self.status('lines')
        need(status == 0, 'exit %d: %s' % (status, out))
        return next(x for x in out.splitlines() if x.startswith('by 0x1'))

    def check_costs(self):
        need(self.status('cores') == 0, 'exit %d: %s' % (self.status('cores'), self.read('cores.err')))
        self.rows = [json.loads(x) for x in self.read('cores.json').splitlines()]
        for r in self.rows:
            if r['kind'] == 'sample':
                need(r['lost'] == 0 or r['variant'] == 'forwarded', 'lost %d: %s' % (r['lost'], r))
        return '%d figures' % len(self.rows)


def overlay(build, work):
    subprocess.run(['cc', '-static', '-O1', '-pthread', '-o', os.path.join(work, 'work'),
                    os.path.join(HERE, 'work.c')], check=True)
    shutil.copy(os.path.join(build, 'tests/unit/trace_cat'), work)
    tree = os.path.join(work, 'overlay')
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run([os.path.join(HERE, 'rig/mkoverlay.sh'), '-o', tree,
                    os.path.join(work, 'work') + ':/usr/bin/work'] +
                   [os.path.join(build, path) + ':/usr/bin/' + os.path.basename(path)
                    for path in ('ibscope', 'bench-cores', 'tests/bpf/test_lines')], check=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('--build', default='build')
    ap.add_argument('--keep', metavar='DIR', help='keep what the guests wrote there')
    ap.add_argument('--check', action='store_true', help='fail if costs are not as the model says')
    ap.add_argument('--json', metavar='FILE', help='write the figures there')
    ap.add_argument('--guest', default='6.12:zen4', metavar='KERNEL:GEN')
    ap.add_argument('--brief', action='store_true', help='measure less, as above %d CPUs' % BRIEF)
    ap.add_argument('--rounds', type=int, default=3, help='of each measurement (default 3)')
    ap.add_argument('--instructions', type=int, default=20, metavar='MILLIONS',
                    help='that a measurement lasts without sampling (default 20)')
    ap.add_argument('sizes', nargs='*', default=SIZES)
    args = ap.parse_args()
    work = args.keep or tempfile.mkdtemp(prefix='cores.')
    os.makedirs(work, exist_ok=True)
    report, rows = guest.Report(), []
    try:
        overlay(args.build, work)
        for size in args.sizes:
            g = Cores(size, *args.guest.split(':'), work, report)
            g.scenarios(args.rounds, args.instructions, args.brief)
            g.run()
            rows += g.rows
    finally:
        if not args.keep:
            shutil.rmtree(work)
    if args.json:
        with open(args.json, 'w') as f:
            f.writelines(json.dumps(r) + '\n' for r in rows)
    misses = model.check(rows) if rows else 1
    n = report.count
    print('%d passed, %d failed; %d figures are not as the model says' % (n['ok'], n['FAIL'], misses))
    return 1 if n['FAIL'] or not n['ok'] or (args.check and misses) else 0


if __name__ == '__main__':
    sys.exit(main())
