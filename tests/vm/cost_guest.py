# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One boot of the rig with clocks that count instructions, for a script that times commands.

A line that the script writes to descriptor 3 is a JSON object, or a note behind a '#'.
"""
import json
import os
import subprocess
import sys

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
RIG = os.path.join(HERE, 'rig')

SHELL = r'''
exec 3>&1 > /tmp/log 2>&1
t() {       # NAME COMMAND...: its CPU time in us, and that of all tasks meanwhile in ns
    n=$1; shift
    work -time "$@" > /dev/null 2> /tmp/$n.err; rc=$?
    set -- $(tail -n 1 /tmp/$n.err)
    printf '{"name":"%s","rc":%d,"us":%s,"busy":%s}\n' $n $rc $1 $2 >&3
    [ $rc = 0 ] || sed 's/^/# /' /tmp/$n.err >&3
}
sleep 3     # kernel threads still run after boot, and there is one CPU
'''


def make_tree(build, tmp):
    """What the guests get beside their kernel's perf; its directory."""
    tree, work = os.path.join(tmp, 'tree'), os.path.join(tmp, 'work')
    subprocess.run(['cc', '-static', '-O1', '-pthread', '-o', work,
                    os.path.join(HERE, 'work.c')], check=True)
    subprocess.run([os.path.join(RIG, 'mkoverlay.sh'), '-o', tree, work + ':/usr/bin/work',
                    os.path.join(build, 'ibscope') + ':/usr/bin/ibscope',
                    os.path.join(build, 'bench-insitu') + ':/usr/bin/bench-insitu'], check=True)
    return tree


class Boot:
    """What it printed: variants {name: row} of bench-insitu, timed {name: row} of t(), other
    objects, notes; and runs {period: samples} of the hardware's log."""

    def __init__(self, pair, tree, script, append='', perf=True):
        """@perf: with the guest kernel's own perf"""
        kernel, gen = pair.split(':')
        overlays = ['--overlay', tree]
        if perf:
            overlays += ['--overlay', subprocess.run([os.path.join(RIG, 'perf-tree.sh'), kernel], check=True, text=True,
                                                     stdout=subprocess.PIPE).stdout.strip()]
        with open(os.path.join(tree, 'cost.sh'), 'w') as f:
            f.write(SHELL + script)
        log = os.path.join(tree, '..', 'log')
        p = subprocess.run([os.path.join(RIG, 'run.sh'), '--kernel', kernel, '--gen', gen,
                            '--icount', '--smp', '1', '--timeout', '900', '--append', append,
                            *overlays, '--log', log, '--', 'sh', '/cost.sh'], stdout=subprocess.PIPE, text=True)
        lines = p.stdout.splitlines()
        rows = [json.loads(x) for x in lines if x.startswith('{')]
        if p.returncode or not rows:
            sys.exit('%s: exit %d: %s' % (pair, p.returncode, p.stdout))
        self.variants = {r['variant']: r for r in rows if 'variant' in r}
        self.timed = {r['name']: r for r in rows if 'name' in r}
        self.others = [r for r in rows if 'variant' not in r and 'name' not in r]
        self.notes = [x for x in lines if x.startswith('#')]
        self.runs = oracle.runs(oracle.read_log(log))
        self.direct = any(r['direct'] for r in self.variants.values())

    def each(self, name, samples, what='busy'):
        """Instructions a sample of the command NAME-1 less those of NAME-0, which had next to no
        samples; None if one of the two failed."""
        rare, often = self.timed.get(name + '-0'), self.timed.get(name + '-1')
        if not samples or not rare or not often or rare['rc'] or often['rc']:
            return None
        return (often[what] - rare[what]) * {'us': 1000, 'busy': 1}[what] / samples
