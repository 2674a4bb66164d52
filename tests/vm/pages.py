#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pages.py [--build DIR] [KERNEL:GEN]: each command of ibscope-from-toolkit(7) and ibscope-from-perf(7) that
samples, on the emulated hardware. tests/cli/test_from_pages.py runs those that read recordings."""
import glob
import os
import re
import sys

import guest
from guest import HERE, need

COMMAND = 'work -loop 30000000'


def commands():
    """The lines, in the order of the pages."""
    found = []
    for page in sorted(glob.glob(os.path.join(HERE, '../../tools/man/ibscope-from-*.7'))):
        with open(page) as f:
            found += re.findall(r'^\.Dl ((?:mpirun )?ibscope (?:record|hist) .*)$', f.read(), re.M)
    return list(dict.fromkeys(found))


def tools(build):
    """What the commands need in a guest; busybox has no env -C."""
    return ['env'] + [os.path.join(build, x) + ':/usr/bin/' + x for x in ('libibscope-omp.so', 'libibscope-markers.so')]


def scenario(g, every=1):
    """Run each of them, or each n-th."""
    g.do('mkdir -p /tmp/pages/DIR; cd /tmp/pages; [ "$P_a" ] || start a /a 0')
    for n, line in enumerate(commands()[::every]):
        name, said = 'page-%d' % n, line
        line = re.sub(r'--duration \S+', '--duration 0.5', line.replace('PID', '$P_a').replace('COMMAND', COMMAND))
        if line.startswith('mpirun '):
            line = line.replace('mpirun', 'env PMI_RANK=0 PMI_SIZE=1 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1', 1)
        g.do('run %s %s' % (name, line))
        g.check('page: ' + said, check, g, name)


def check(g, name):
    need(g.status(name) == 0, g.read(name + '.err'))
    ledgers = re.findall(r'seen ([\d,]+) = .* lost ([\d,]+)', g.read(name + '.err'))
    need(ledgers, g.read(name + '.err'))
    need(all(int(seen.replace(',', '')) and lost == '0' for seen, lost in ledgers), g.read(name + '.err'))
    return g.read(name + '.err').strip().splitlines()[-1]


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('pair', nargs='?', metavar='KERNEL:GEN', default='6.12:zen4')
    args = ap.parse_args()

    def make(work, report):
        g = guest.Guest(*args.pair.split(':'), work, report, '-pages', workers=False)
        scenario(g)
        return [g]

    return guest.run_guests(args, make, tools=tools(args.build))


if __name__ == '__main__':
    sys.exit(main())
