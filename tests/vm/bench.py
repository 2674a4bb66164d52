#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench.py [--build DIR] [--no-peers] [--json FILE] [KERNEL:GEN ...]: `ibscope bench` on the rig, in
guest instructions, with the guest kernel's own perf beside it.

It fails where figures do not repeat, or differ from those that bench-insitu finds with another loop
in the same boot.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RIG = os.path.join(HERE, 'rig')

# The loop of each is interrupted at other places, by other ticks of the guest's kernel.
REPEATS = {'program.': 0.01, 'situ.': 0.02, 'sample.16000.': 0.02}
AGREES = 0.05
AGREES_ABOVE = 15       # instructions, of what the program adds to an empty one

# of bench-insitu -> of ibscope bench
SAME = {
    'event, no program': 'event',
    'empty program': 'empty',
    'rejected: pid': 'rejected-pid',
    'rejected: cgroup': 'rejected-cgroup',
    'rejected: latency': 'rejected-latency',
    'aggregated: by cgroup': 'aggregated',
    'forwarded': 'forwarded',
}

GUEST = '''
sleep 3
ibscope bench --instructions --quick --json %s
ibscope bench --instructions --quick --json --only program,situ,sample
bench-insitu --json
'''


def boot(pair, tmp, peers):
    kernel, gen = pair.split(':')
    overlays = ['--overlay', tmp]
    if peers:
        overlays += ['--overlay', subprocess.run(
            [os.path.join(RIG, 'perf-tree.sh'), kernel], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()]
    script = GUEST % ('' if peers else '--only program,situ,sample')
    p = subprocess.run([os.path.join(RIG, 'run.sh'), '--kernel', kernel, '--gen', gen, '--icount', '--smp', '1',
                        '--timeout', '1800', *overlays, '--', 'sh', '-c', script],
                       stdout=subprocess.PIPE, text=True)
    objects = [json.loads(line) for line in p.stdout.splitlines() if line.startswith('{')]
    reports = [o for o in objects if 'measurements' in o]
    if p.returncode or len(reports) != 2:
        sys.exit(f'{pair}: exit {p.returncode}: {p.stdout}')
    return reports, {o['variant']: o for o in objects if 'variant' in o}


def table(pair, report):
    print(f'{pair}, Linux {report["kernel"]}, {report["from"]}: {report["unit"]}')
    for r in report['measurements']:
        if 'unavailable' in r:
            print(f'  {r["name"]:34} cannot be had: {r["unavailable"]}')
            continue
        more = ', '.join(f'{k} {v:.4g}' for k, v in r.items()
                         if k not in ('name', 'what', 'from', 'unit', 'value', 'spread', 'rounds'))
        spread = f'+-{r["spread"]:.1f}' if 'spread' in r else ''
        print(f'  {r["name"]:34} {r["value"]:12.1f} {spread:9} {r["unit"]:13} {r["what"]}{"; " if more else ""}{more}')


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def near(self, what, a, b, share, least=0):
        ok = abs(a - b) <= max(share * max(abs(a), abs(b)), least)
        self.passed += ok
        self.failed += not ok
        if not ok:
            print(f'FAIL {what}: {a:.1f} and {b:.1f}')

    def true(self, what, ok):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(f'FAIL {what}')


def check(pair, reports, insitu, c):
    first, second = ({r['name']: r for r in report['measurements']} for report in reports)
    c.true(f'{pair}: the clock counts instructions', reports[0]['instructions'] and reports[0]['source'] == 'ibs')
    compared = 0
    for name, r in first.items():
        share = next((v for k, v in REPEATS.items() if name.startswith(k)), None)
        if share is None or 'value' not in r:
            continue
        compared += 1
        c.true(f'{pair}: {name} is there again', 'value' in second.get(name, {}))
        if 'value' in second.get(name, {}):
            c.near(f'{pair}: {name} repeats', r['value'], second[name]['value'], share)
    c.true(f'{pair}: {compared} figures were compared', compared >= 25)
    for variant, case in SAME.items():
        sample, situ = first['sample.16000.' + case], first.get('situ.' + case)
        c.true(f'{pair}: {sample["name"]} is there', 'value' in sample)
        if 'value' not in sample:
            continue
        c.near(f'{pair}: {case} by bench-insitu', sample['value'], insitu[variant]['per_sample'], AGREES)
        if situ and 'above_empty' in situ:
            c.near(f'{pair}: {case} above empty by bench-insitu', situ['above_empty'], insitu[variant]['above_empty'],
                   AGREES, AGREES_ABOVE)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', default='build')
    ap.add_argument('--no-peers', action='store_true', help='neither perf nor what needs no event')
    ap.add_argument('--json', help='keep the first report of each guest here')
    ap.add_argument('pairs', nargs='*')
    args = ap.parse_args()
    c = Checks()
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([os.path.join(RIG, 'mkoverlay.sh'), '-o', tmp,
                        *(os.path.join(args.build, x) + ':/usr/bin/' + x for x in ('ibscope', 'bench-insitu'))],
                       check=True)
        for pair in args.pairs or ['6.12:zen4']:
            reports, insitu = boot(pair, tmp, not args.no_peers)
            table(pair, reports[0])
            check(pair, reports, insitu, c)
            sys.stdout.flush()
            if args.json:
                with open(args.json, 'a') as f:
                    f.write(json.dumps(reports[0]) + '\n')
    print(f'{c.passed} passed, {c.failed} failed')
    return 1 if c.failed else 0


if __name__ == '__main__':
    sys.exit(main())
