#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""hwtest.py [--rig KERNEL:GEN] [--build DIR] [-o FILE]: what ibscope does on real IBS hardware, in one report.

Runs collect.sh on this machine as root, or in a guest of the rig, judges what it collected, and writes
a text that can be sent to anybody: names of hosts and users are replaced, and there are no names of
processes, containers or files in it.
"""
import argparse
import csv
import io
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RIG = os.path.join(HERE, '../vm/rig')
DECODE = os.path.join(HERE, '../vm/check_decode.py')
PLANS = 'src', 'lat', 'user', 'kernel'
FEWEST = 200    # samples for a comparison

QUESTIONS = """\
1. When a hardware filter (l3missonly, ldlat) drops a tagged op, where does the counter (CurCnt) continue: at zero, at a
   random value, or where it was? Above is what a sample stands for under the filters. If you can read MSR C001_1033
   while a filter is active (rdmsr -p 0 0xc0011033, many times), please send the values. The same of fetches: MSR
   C001_1030, bits 31:16, while ibs_fetch/l3missonly=1/ is sampled.
2. PMCx1CF with unit mask 04h: AMD lists "rollovers" for some Zen generations, not for Zen 4. Does the figure
   above, counted on your machine, look like anything you know?
3. Are data addresses of stores (IbsDcLinAd) right while the other thread of the core is busy (SMT on)? If you have a
   program that stores to one known buffer only, compare: ibscope record --op store, then ibscope dump.
4. What does an interrupt cost on your machine besides the figures above: does a latency-sensitive program of yours
   notice sampling at the default period?
5. In which unit is the L3's sampled latency, ns or core clocks? Is there anything else in this report that
   contradicts what you know of the machine?"""


class Collected:
    def __init__(self, path):
        self.path = path

    def read(self, name):
        try:
            with open(os.path.join(self.path, name), errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def json(self, name):
        """The first object that a run printed; None if it was not run; raises ValueError if it failed."""
        rc = self.read(name + '.rc').strip()
        if not rc:
            return None
        text = self.read(name + '.out').strip()
        if rc != '0' and not text.startswith('{'):
            raise ValueError('exit %s: %s' % (rc, self.read(name + '.err').strip().splitlines()[-1:]))
        return json.JSONDecoder().raw_decode(text)[0]


class Report:
    def __init__(self):
        self.lines, self.failed, self.passed = [], 0, 0

    def judge(self, name, ok, text):
        """@ok: None if it could not be told."""
        self.failed += ok is False
        self.passed += ok is True
        self.lines.append('%-8s %-28s %s' % ({True: 'ok', False: 'FAIL', None: 'unknown'}[ok], name, text))

    def check(self, name, function, *args):
        try:
            self.judge(name, *function(*args))
        except (ValueError, KeyError, TypeError, IndexError) as e:
            self.judge(name, False, '%s: %s' % (type(e).__name__, e))


def selected(o):
    """Samples and the ops they stand for, None if unknown."""
    ops = [s['estimated_ops'] for s in o['series']]
    return sum(s['samples'] for s in o['series']), None if None in ops else sum(ops)


def check_ledger(c, name):
    o = c.json(name)
    if o is None:
        return None, 'not run'
    led = o['ledger']
    if name == 'fetch-far' and not led['seen']:
        return None, 'no code came from beyond the L3'
    parts = led['aggregated'] + led['forwarded'] + sum(led['filtered'].values()) + sum(led['lost'].values())
    ok = led['seen'] == parts and led['seen'] > 0 and not led['unseen'] and not led['lost']
    extra = led.get('tagged_undelivered')
    if extra is not None and not o['event'].startswith('ibs_op/cnt_ctl=1,ldlat'):
        ok = ok and extra <= 2 * o['cpus'] + led['seen'] / 200      # with ldlat the driver discards some
    return ok, 'seen %d, unseen %s, dropped by hardware %s, tagged but undelivered %s, throttled %s' % (
        led['seen'], led['unseen'], led['dropped_by_hardware'], extra, o.get('throttled'))


def check_verify(c, rig):
    o = c.json('verify')
    # emulated ops are time, of which an emulated NMI takes too much
    ok = [f['agrees'] for f in o['figures'] if f['agrees'] is not None and not (rig and f['id'] == 'ops')]
    return all(ok) if ok else None, '; '.join('%s %s' % (f['id'], 'unknown' if f['difference'] is None else
                                             '%+.2f %%' % (100 * f['difference'])) for f in o['figures'])


def check_loops(c, rig):
    """Loops whose every access is known; the rig of this report has no caches."""
    loops = None if rig else c.json('verify').get('loops')
    if not loops:
        return None, 'not run'
    known = [x for x in loops if x['agrees'] is not None]
    return all(x['agrees'] for x in known) if known else None, '; '.join(
        '%s %s' % (x['id'], 'unknown' if x['error'] is None else '%+.1f %%' % (100 * x['error'])) for x in loops)


def check_plan(c, name):
    """The same selection in the program and before it, one after the other under the same load."""
    off, on = c.json(name + '-off'), c.json(name + '-hw,driver')
    if on['event'] == off['event']:
        return None, 'this machine has no earlier stage for it'
    (n0, ops0), (n1, ops1) = selected(off), selected(on)
    text = '%s: %d interrupts for %d samples, without a plan %d for %d' % (
        on['event'], on['ledger']['seen'], n1, off['ledger']['seen'], n0)
    if ops1 is None or ops0 is None or min(n0, n1) < FEWEST:
        return None, text + '; ops %s, %s' % (ops1, ops0)
    ratio = ops1 / on['interval_s'] / (ops0 / off['interval_s'])
    return abs(ratio - 1) < 0.25, text + '; estimated ops a second: %.2f of those without' % ratio


def check_decode(c, decoder):
    if not c.read('decode.txt'):
        return None, 'no perf'
    newest = [] if 'perf version 6.1.' in c.read('machine') else ['--newest']
    p = subprocess.run([sys.executable, DECODE, '--min', '100', *newest, os.path.join(c.path, 'decode.txt'), decoder],
                       capture_output=True, text=True, check=False)
    return p.returncode == 0, (p.stdout + p.stderr).strip().splitlines()[-1]


def check_shares(c):
    ours, perf = c.json('some'), c.json('perf-report')
    if perf is None:
        return None, 'no perf'
    def shares(rows):
        n, total = {}, sum(r['samples'] for r in rows)
        for r in rows:
            n[r['labels']['op']] = n.get(r['labels']['op'], 0) + r['samples'] / total
        return n, total
    (a, n_a), (b, n_b) = shares(ours['series']), shares(perf['rows'])
    worst = max(abs(a.get(k, 0) - b.get(k, 0)) for k in {*a, *b})
    text = 'kinds of op differ by at most %.1f points (%d and %d samples)' % (100 * worst, n_a, n_b)
    return None if min(n_a, n_b) < FEWEST else worst < 0.03 + 3 / min(n_a, n_b) ** 0.5, text


def check_two(c):
    names = [json.loads(x)['event'].split('/')[0] for x in c.read('both.out').splitlines()]
    return sorted(names) == ['ibs_fetch', 'ibs_op'], ', '.join(names) or c.read('both.err').strip()


def measured(c):
    """Answers to questions that only hardware has."""
    rows = {}
    for name in 'cost', 'cost-counter':
        o = c.json(name)
        rows[name] = {r['outcome']: r['ns'] for r in o['samples']} if o else {}
    for outcome, ns in rows['cost'].items():
        yield 'A sample, %s: %s ns; with an active core counter: %s ns' % (
            outcome, ns and round(ns), rows['cost-counter'].get(outcome) and round(rows['cost-counter'][outcome]))
    for name in PLANS:
        o = c.json(name + '-hw,driver')
        n, ops = selected(o)
        if o['event'].count(',') and ops and n:
            yield ('Under %s a sample stands for %.3f periods of ops (1: a tag that was dropped started the counter '
                   'anew)' % (o['event'], ops / n / o['period']))
    stat = [x.split(',')[:3:2] for x in c.read('stat').splitlines() if ',' in x]
    if stat:
        yield 'PMCx1CF while sampling, unit masks 01h, 02h, 04h: ' + ', '.join(x[0] for x in stat)


# paths but those that all machines have
PATH = re.compile(r'(?<![\w/])/(?!(?:sys/bus|sys/kernel|sys/devices|proc/sys|dev)/)[\w.@-][^\s",:;]*')


NAMES = {'time_ns', 'pid', 'tid', 'comm', 'cgroup', 'cgroup_id'}


def samples(text):
    """A table of `ibscope dump --csv` without names, times and addresses, which are all that is hexadecimal."""
    head, *rows = csv.reader(io.StringIO(text))
    kept = [i for i, name in enumerate(head)
            if name not in NAMES and not any(r[i].startswith('0x') for r in rows)]
    out = io.StringIO()
    csv.writer(out, lineterminator='\n').writerows([r[i] for i in kept] for r in [head, *rows])
    return out.getvalue().rstrip()


def anonymous(text):
    names = {os.uname().nodename, os.uname().nodename.split('.')[0], os.environ.get('SUDO_USER', '')}
    names |= {p.pw_name for p in pwd.getpwall() if 1000 <= p.pw_uid < 65534}
    for n in sorted(filter(None, names), key=len, reverse=True):
        text = re.sub(r'(?<![\w])%s(?![\w])' % re.escape(n), '(name)', text)
    return text


def whole(c, args, results):
    """The text of the report."""
    version = subprocess.run([os.path.join(args.build, 'ibscope'), '--version'], capture_output=True,
                             text=True, check=False).stdout.strip()
    text = ['REPORT OF IBS HARDWARE', version, 'EMULATED: ' + args.rig if args.rig else '', c.read('machine'),
            'RESULTS', *results, '', 'MEASURED HERE', *measured(c), '',
            'QUESTIONS: please answer what you can, below each', QUESTIONS, '', 'KERNEL LOG', c.read('dmesg'), 'DATA']
    for name in sorted(os.listdir(c.path)):
        if name == 'explain' or name.endswith(('.out', '.err')) and c.read(name).strip():
            said = c.read(name).strip()
            text.append('--- %s\n%s' % (name, said if name.endswith('.out') and name != 'doctor.out' else
                                        PATH.sub('(path)', said)))
        elif name.endswith('.csv') and c.read(name).strip():
            text.append('--- %s\n%s' % (name, samples(c.read(name))))
    text.append('END: %d parts' % sum(x.startswith('--- ') for x in text))     # compare.py: is it whole?
    return anonymous('\n'.join(text)) + '\n'


def write(c, args):
    r = Report()
    for name in ('all', 'op', *[p + x for p in PLANS for x in ('-off', '-hw,driver')], 'fetch', 'fetch-far', 'command'):
        r.check('ledger of ' + name, check_ledger, c, name)
    r.check('doctor --verify', check_verify, c, args.rig)
    r.check('loops of doctor --verify', check_loops, c, args.rig)
    for name in PLANS:
        r.check('plan of ' + name, check_plan, c, name)
    r.check('both events at once', check_two, c)
    r.check('decoded as perf does', check_decode, c, os.path.join(args.build, 'tests/unit/ibs_decode'))
    r.check('shares as in perf.data', check_shares, c)
    with open(args.o, 'w') as f:
        f.write(whole(c, args, r.lines))
    print('\n'.join(r.lines))
    print('%d ok, %d failed, %d unknown; the report is %s' % (
        r.passed, r.failed, len(r.lines) - r.passed - r.failed, args.o))
    return 1 if r.failed or not r.passed else 0


def on_rig(args, work, load):
    overlay = os.path.join(work, 'overlay')
    kernel, gen = args.rig.split(':')
    subprocess.run([RIG + '/mkoverlay.sh', '-o', overlay, 'perf:/usr/bin/perf', load + ':/usr/bin/load',
                    os.path.join(args.build, 'ibscope') + ':/usr/bin/ibscope'], check=True)
    shutil.copy(os.path.join(HERE, 'collect.sh'), overlay)
    tar = os.path.join(work, 'out.tar')
    with open(tar, 'wb') as f:
        subprocess.run([RIG + '/run.sh', '--kernel', kernel, '--gen', gen, '--smp', '2', '--pmu', '--console', os.path.join(work, 'console'),
                        '--overlay', overlay, '--timeout', '1800', '--', 'sh', '-c',
                        'sh /collect.sh /tmp/out %g 8 --no-loops 2> /dev/console; tar -c -C /tmp/out .' % (args.seconds or 1)],
                       stdout=f, check=True)
    with tarfile.open(tar) as t:
        t.extractall(os.path.join(work, 'out'))


def on_hardware(args, work, load):
    ibscope = os.path.join(args.build, 'ibscope')
    doctor = subprocess.run([ibscope, 'doctor', '--json'], capture_output=True, text=True, check=False)
    o = json.loads(doctor.stdout)
    if os.geteuid():
        return 'must run as root: sudo make hwtest'
    if not o['can_sample']:
        no = next(x for x in o['checks'] if x['status'] == 'no')
        return 'IBS sampling does not work here: %s: %s; %s. `make hwtest-rig` runs it in an emulated machine' % (
            no['title'], no['why'], no['remedy'])
    os.makedirs(os.path.join(work, 'bin'))
    for src, name in (ibscope, 'ibscope'), (load, 'load'):
        shutil.copy(src, os.path.join(work, 'bin', name))
    subprocess.run(['sh', os.path.join(HERE, 'collect.sh'), os.path.join(work, 'out'), '%g' % (args.seconds or 20), '64'],
                   check=True, env=dict(os.environ, PATH=os.path.join(work, 'bin') + ':' + os.environ['PATH']))
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('--build', default='build', help='where make put the programs (default build)')
    ap.add_argument('--rig', metavar='KERNEL:GEN', help='in a guest of the rig, where a figure takes a minute')
    ap.add_argument('--seconds', type=float, help='of each run (default 20, on the rig 1)')
    ap.add_argument('-o', default='hwtest-report.txt', metavar='FILE', help='default hwtest-report.txt')
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="hwtest.") as work:
        load = os.path.join(work, 'load')
        subprocess.run(['cc', '-static', '-O1', '-pthread', '-D_GNU_SOURCE', '-o', load, os.path.join(HERE, 'load.c')],
                       check=True)
        problem = (on_rig if args.rig else on_hardware)(args, work, load)
        if problem:
            print('hwtest: ' + problem, file=sys.stderr)
            return 1
        return write(Collected(os.path.join(work, 'out')), args)


if __name__ == '__main__':
    sys.exit(main())
