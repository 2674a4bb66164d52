#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sharing.py [--build DIR] [--cpus N,..] [--steps N] [KERNEL:GEN...]: hot lines of programs that share cache
lines in known ways (sharing.c), live, served and recorded, against the hardware's log; and stacks of threads (stacks.c).

The rig samples the real addresses of these programs and answers their loads by a model of coherence.
"""
import collections
import json
import os
import re
import subprocess
import sys

import guest
from guest import HERE, need

sys.path.insert(0, os.path.join(HERE, '../cli'))
import line_oracle  # noqa: E402

SHARING = ['stores', 'caches']
ALL = SHARING + ['dram', 'walks']
CACHES = {'l3', 'local-cache', 'near-cache', 'remote-cache'}
MEMORY = {x + y for x in ('', 'remote-') for y in ('dram', 'pmem', 'cxl')}
# name -> verdict, slots
KINDS = {
    'false_sharing': ('false sharing', 'ww......'),
    'true_sharing': ('true sharing', '...W....'),
    'seqlock': ('true sharing', 'WW......'),
    'per_cpu': ('private', 'w.......'),
    'locked_counter': ('true sharing', 'WW......'),
    'shared_memory': ('true sharing', '..W.....'),
    'huge_page': ('false sharing', 'w...r...'),
}
TOP = 20
LEAST = 4       # samples of a line on a CPU that give it details
COLUMNS = 'samples', 'loads', 'stores', 'hitm_ccx', 'hitm_near', 'hitm_remote', 'hitm_socket', 'owned', 'transfers'


def objects(text):
    """The JSON objects of a run of several intervals."""
    out, at = [], 0
    while at < len(text.rstrip()):
        j, at = json.JSONDecoder().raw_decode(text, at)
        out.append(j)
        at += 1
    return out


def is_fed(s, feed):
    if s.store:
        return True
    if not s.load or s.op == 'prefetch':
        return False
    known = s.data3 >> 17 & 1 and (not s.cpu.page_size_coded or s.data3 >> 18 & 1)
    return s.src in CACHES or ('dram' in feed and s.src in MEMORY) or (
        'walks' in feed and bool(known and s.data3 >> 3 & 1))


def hit(s):
    """The column that counts the answer of a load, of those that have one."""
    if not s.load or s.src not in CACHES:
        return None
    if not s.cpu.tells_state or (s.src == 'remote-cache' and not s.cpu.zen4):
        return None if s.src == 'l3' else 'transfers'
    if s.data2 >> 5 & 1:
        return 'owned'
    if s.src in ('l3', 'local-cache') or not s.cpu.zen4:
        return 'hitm_ccx'
    return {'near-cache': 'hitm_near'}.get(s.src, 'hitm_socket' if s.cpu.zen6 and s.data2 >> 9 & 1 else 'hitm_remote')


def counts(samples):
    n = collections.Counter()
    for s in samples:
        n.update({'samples': 1, 'loads': s.load, 'stores': s.store, hit(s): 1})
    return n


def slots_of(row):
    return ''.join('W' if s['shared'] else 'w' if s['stores'] else 'r' if s['loads'] else '.' for s in row['slots'])


def access(s, live):
    """For line_oracle: live, only the first byte and 5 bits of the thread's number are known."""
    width = s.data3 >> 22 & 15
    return {'load': s.load, 'store': s.store, 'prefetch': s.op == 'prefetch', 'cpu': s.vcpu,
            'tid': s.tid & 31 if live else s.tid, 'addr': 0, 'phys': s.phys,
            'width': 1 if live or not 0 < width < 8 else 1 << width - 1}


class Truth:
    """Of each line, what the log says of samples that feed."""

    def __init__(self, samples, feed=None):
        self.samples = [s for s in samples if s.mem and (feed is None or is_fed(s, feed))]
        self.line, self.live = collections.defaultdict(list), feed is not None
        for s in self.samples:
            if s.phys:
                self.line[s.phys >> 6].append(s)
        self.known = sum(map(len, self.line.values()))

    def detailed(self, line):
        """Without what each CPU had before it gave details to the line."""
        had, out = collections.Counter(), []
        for s in self.line[line]:
            had[s.vcpu] += 1
            if had[s.vcpu] >= LEAST:
                out.append(s)
        return out

    def check(self, rows, lack):
        """No row has more than there was, or lacks more than is said. What was found: a Counter."""
        found = collections.Counter()
        for r in rows:
            line = int(r['line'], 16) >> 6
            n = counts(self.line[line])
            for column in COLUMNS:
                less = n[column] - (r[column] or 0)
                need(0 <= less <= lack, '%s of %s: %s, the log has %d, lacking at most %d' % (
                    column, r['line'], r[column], n[column], lack))
            found['lack'] = max(found['lack'], n['samples'] - r['samples'])
            found['lack %'] = max(found['lack %'], 100 * (n['samples'] - r['samples']) / max(n['samples'], 100))
            of = self.detailed(line) if self.live else self.line[line]
            found['exact'] += self.is_exact(r, of)
        return found

    def is_exact(self, r, of):
        """Verdict and slots are those of the same samples, if the row has them all."""
        n = counts(of)
        if any(n[c] != (r[c] or 0) for c in COLUMNS):
            return 0
        line = line_oracle.Line()
        line.accesses = [access(s, self.live) for s in of]
        line.n.update({k: v for k, v in n.items() if k}, store=n['stores'])
        verdict, _, slots = line_oracle.verdict(('physical',), line)
        need((r['verdict'], slots_of(r)) == (verdict, slots), '%s: %s %s, the log says %s %s' % (
            r['line'], r['verdict'], slots_of(r), verdict, slots))
        return 1

    def recall(self, rows):
        """(how many of those lines that had most samples have a row, how many there are)"""
        have = {int(r['line'], 16) >> 6 for r in rows}
        top = sorted(self.line, key=lambda l: -len(self.line[l]))[:TOP]
        top = [l for l in top if len(self.detailed(l)) >= LEAST]
        return sum(l in have for l in top), len(top)


def lines_of(g, name):
    """{physical line: name} of sharing.c, by what the log says of its addresses."""
    of = {}
    for text in g.read(name + '.lines').splitlines():
        kind, address, pid = text.split()
        of[int(address, 16) >> 6, int(pid)] = kind
    return of


def check_kinds(g, name, samples, rows, all_known):
    """How many of the lines of sharing.c have the verdict and slots that they must have."""
    of, found = lines_of(g, name), {}
    for s in samples:
        kind = of.get((s.linad >> 6, s.tgid)) if s.phys and s.mem else None
        if kind:
            found[s.phys >> 6] = kind
    by, good = {int(r['line'], 16) >> 6: r for r in rows}, set()
    for line, kind in found.items():
        r = by.get(line)
        if r and (r['verdict'], slots_of(r)) == KINDS[kind]:
            good.add(kind)
            need(r['likely'] != (g.cpu.tells_state or r['verdict'] == 'private'), '%s: likely is %s' % (kind, r['likely']))
        else:
            need(not all_known, '%s at %#x: %s' % (kind, line << 6, r and (r['verdict'], slots_of(r))))
    need(len(good) >= 2, 'known answers: only %s' % good)
    return len(good)


def check_live(g, name, period, feed, all_known):
    samples, dropped = g.samples(period)
    truth, out = Truth(samples, feed), objects(g.stdout(name))
    hot = [j['hot'] for j in out]
    need(all(h['feed'] == feed for h in hot), hot)
    seen, fed = sum(j['ledger']['seen'] for j in out), sum(h['fed'] for h in hot)
    need(seen == len(samples), '%d seen, the log has %d and %d dropped' % (seen, len(samples), dropped))
    need(sum(j['ledger']['lost'] for j in out) == 0, 'lost samples')
    need(fed == len(truth.samples), '%d fed, the log has %d' % (fed, len(truth.samples)))
    need(fed - sum(j['addresses']['none'] for j in out) == truth.known, 'addresses: %d of %d' % (fed, truth.known))
    if len(out) > 1:
        return '%d samples, %d fed in %d tables, none in two or in none' % (seen, fed, len(out))
    found = truth.check(out[0]['lines'], hot[0]['lack'])
    have, top = truth.recall(out[0]['lines'])
    need(have == top, '%d of the first %d lines' % (have, top))
    good = check_kinds(g, name, samples, out[0]['lines'], all_known)
    return ('%d samples of %d CPUs, %d fed, of %d lines; %d kept, in %d rows, %d of them exact; recall %d of %d; lack %d of '
            'at most %d, %.1f %%; %d of %d known answers' % (
                seen, hot[0]['cpus'], fed, len(truth.line), hot[0]['kept'], len(out[0]['lines']), found['exact'], have, top,
                found['lack'], hot[0]['lack'], found['lack %'], good, len(KINDS)))


def check_hotplug(g, name, period):
    said = check_live(g, name, period, SHARING, False)
    cpus = [j['hot']['cpus'] for j in objects(g.stdout(name))]
    need((cpus[0], cpus[-1]) == (g.smp - 1, g.smp), 'CPUs that feed: %s' % cpus)
    return said + '; CPUs %s' % cpus


def check_served(g, name, period):
    samples, _ = g.samples(period)
    truth, out = Truth(samples, ALL), json.loads(g.read(name + '.json'))
    hot = out['hot']
    need(hot['feed'] == ALL, hot['feed'])
    need(0 < hot['kept'] <= hot['fed'] <= len(truth.samples), '%s, the log has %d' % (hot, len(truth.samples)))
    truth.check(out['lines'], len(truth.samples))       # what came after the answer is not lacking
    return '%d fed, %d kept, the log has %d' % (hot['fed'], hot['kept'], len(truth.samples))


def check_recorded(g, name, period, all_known):
    """Exact, of all loads and stores."""
    samples, _ = g.samples(period)
    truth = Truth(samples)
    p = subprocess.run([os.path.join(g.work, 'overlay/usr/bin/ibscope'), 'c2c', '--json', os.path.join(g.out, name + '.data')],
                       capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    rows = [r for r in json.loads(p.stdout)['lines'] if r['address'] == 'physical']
    need(sum(r['samples'] for r in rows) == truth.known, 'the log has %d samples with an address' % truth.known)
    alone = [r for r in rows if not r['moved']]         # on pages that moved, lines are joined
    exact = truth.check(alone, 0)['exact']
    need(exact == len(alone), '%d of %d rows are exact' % (exact, len(alone)))
    return '%d rows, %d exact; %d known answers' % (len(rows), exact, check_kinds(g, name, samples, rows, all_known))


def perf_c2c(data):
    """(totals, {address of a line: (samples, HITM)}) that `perf c2c report` prints."""
    p = subprocess.run(['perf', 'c2c', 'report', '--stdio', '--no-source', '-i', data], capture_output=True, text=True)
    totals = {k: int(n) for k, n in re.findall(r'^  (\w[^:\n]*?) *: *(\d+)$', p.stdout, re.M)}
    need(totals, p.stderr)
    rows = re.findall(r'^ +\d+ +(0x[0-9a-f]+) +(?:\d+|N/A) +\d+ +[0-9.]+% +(\d+) +\d+ +\d+ +(\d+) ', p.stdout, re.M)
    lines = collections.defaultdict(lambda: (0, 0))     # private lines of several processes have a row each
    for address, hitm, samples in rows:
        had = lines[int(address, 16)]
        lines[int(address, 16)] = had[0] + int(samples), had[1] + int(hitm)
    return totals, dict(lines)


def check_perf(g, name, period):
    """`perf c2c report` and c2c of one perf.data, each against the log; ibscope-c2c(1) explains the differences."""
    samples, _ = g.samples(period)
    data = os.path.join(g.out, name + '.data')
    totals, lines = perf_c2c(data)
    mapped = [s for s in samples if s.load and s.data3 >> 17 & 1]
    column = collections.Counter(map(hit, mapped))
    want = {'Total records': len(samples), 'Load Operations': sum(s.load for s in samples),
            'Store Operations': sum(s.store and not s.load for s in samples),
            'Loads - no mapping': sum(s.load and not s.data3 >> 17 & 1 for s in samples),
            'Load Local HITM': column['hitm_ccx'],
            'Load Remote HITM': column['hitm_near'] + column['hitm_remote'] + column['hitm_socket'],
            'Load Remote HIT': 0, 'Store L1D Miss': 0}
    got = {k: totals.get(k) for k in want}
    need(got == want, 'perf has %s, the log %s' % (got, want))
    # only one process of the memory that two share loads from it, so that perf's row has the address there
    hitm = collections.Counter(s.linad >> 6 << 6 for s in mapped if (hit(s) or '').startswith('hitm'))
    # perf leaves out lines with less than 0.1 % of all HITM
    few = sum(hitm.values()) / 1000
    wrong = {hex(a): (lines.get(a, (0, 0))[1], hitm[a]) for a in lines.keys() | hitm
             if lines.get(a, (0, 0))[1] != hitm[a] and (a in lines or hitm[a] >= few)}
    need(not wrong, 'HITM by virtual line (perf, the log): %s' % wrong)
    truth = Truth(samples)
    p = subprocess.run([os.path.join(g.work, 'overlay/usr/bin/ibscope'), 'c2c', '--json', data], capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    out = json.loads(p.stdout)
    rows = [r for r in out['lines'] if r['address'] == 'physical']
    need(out['total']['loads'] == got['Load Operations'] and
         out['total']['stores'] == got['Store Operations'] + sum(s.store and s.load for s in samples), out['total'])
    alone = [r for r in rows if not r['moved']]
    need(truth.check(alone, 0)['exact'] == len(alone), 'rows that differ from the log')
    of, by = lines_of(g, name), {int(r['line'], 16) >> 6: r for r in rows}
    told = {}
    for s in samples:
        kind = of.get((s.linad >> 6, s.tgid)) if s.phys and s.mem else None
        if kind:
            told.setdefault(kind, (set(), set()))
            told[kind][0].add(s.linad >> 6 << 6)
            told[kind][1].add(s.phys >> 6)
    print('# %s: rows of perf c2c, samples and HITM; rows of c2c, the same and the verdict' % g.where)
    for kind, (virtual, physical) in sorted(told.items()):
        print('# %-15s perf %-24s ibscope %s' % (
            kind, ' + '.join('%d/%d' % lines[a] if a in lines else 'none' for a in sorted(virtual)),
            ' + '.join('%d/%d %s' % (r['samples'], sum(r[c] or 0 for c in COLUMNS if c.startswith('hitm')), r['verdict'])
                       for r in (by.get(l) for l in sorted(physical)) if r)))
    return '%d samples; perf: %d lines, %d with HITM; here %d lines, %d known answers' % (
        len(samples), len(lines), len(hitm), len(rows), check_kinds(g, name, samples, rows, False))


def live(g, name, feed, steps, all_known, about=20000):
    period = g.new_period(about)
    g.do('run c2c-%s ibscope c2c --live -a --json -c %d --feed %s -- sharing $O/c2c-%s.lines %d' % (
        name, period, ','.join(feed), name, steps))
    g.check('c2c-%s: lines fed by %s' % (name, ','.join(feed)), check_live, g, 'c2c-' + name, period, feed, all_known)


def check_stacks(g, name):
    """What is called the stack of a thread is in it, and the rows of its variable, but for a few samples, are that."""
    stacks, local, block = {}, {}, None
    for text in g.read(name + '.facts').splitlines():
        kind, *numbers = text.split()
        first, *rest = [int(x, 0) for x in numbers]
        if kind == 'stack':
            stacks[first] = rest
        elif kind == 'local':
            local[rest[0] >> 12] = first
        else:
            block = range(first >> 12, (rest[0] >> 12) + 1)
    need(g.status(name) == 0, g.read(name + '.err'))
    n = collections.Counter()
    for row in json.loads(g.read(name + '.json'))['rows']:
        mapping, page = row['labels']['mapping'] or '', row['labels']['page']
        page = int(page, 0) >> 12 if page else 0
        if mapping.startswith('[stack:'):
            first, last = stacks[int(mapping[len('[stack:'):-1])]
            need(first >> 12 <= page <= last >> 12, '%s: page %#x, not from %#x to %#x' % (mapping, page, first, last))
        if page in block:
            need(mapping == '[anon]', 'the block is %s' % mapping)
            n['block'] += row['samples']
            first, last = (int(x, 16) >> 12 for x in row['labels']['range'].split('-'))
            n['beside'] |= any(first <= page < last for page in local)
        elif page in local:
            n['named' if mapping == '[stack:%d]' % local[page] else 'not named'] += row['samples']
            n['threads'] += mapping == '[stack:%d]' % local[page]
    need(n['block'] and n['threads'] == len(stacks), n)
    need(n['not named'] * 20 < n['named'], n)
    return '%d threads, %d samples named, %d not; %d of a block, %s a stack' % (
        n['threads'], n['named'], n['not named'], n['block'], 'in one mapping with' if n['beside'] else 'not mapped with')


def stacks(g, steps, about=20000):
    """A process whose kernel, before 6.7, has the first stack and the block of memory above it as one mapping."""
    period = g.new_period(about)
    g.do('''run stacks ibscope record -c %d -o /tmp/stacks.data -- stacks $O/stacks.facts %d
ibscope report --by mapping,range,page --json /tmp/stacks.data > $O/stacks.json 2>> $O/stacks.err''' % (period, steps))
    g.check('stacks: of threads are named', check_stacks, g, 'stacks')


def scenario(g, steps, about=20000):
    stacks(g, steps, about)
    long = steps >= 3000000
    live(g, 'default', SHARING, steps, long)
    live(g, 'all', ALL, steps, long)
    period = g.new_period(about)
    g.do('run c2c-record ibscope record -c %d -a -o $O/c2c-record.data -- sharing $O/c2c-record.lines %d' % (
        period, steps))
    g.check('c2c-record: the same of a recording', check_recorded, g, 'c2c-record', period, long)
    if g.kernel not in ('5.10', '6.1'):     # their drivers give perf no sources of data
        period = g.new_period(about)
        g.do('run c2c-perf perf record -q -N -a -m 4M -e ibs_op// -c %d -d --phys-data -W --raw-samples '
             '-o $O/c2c-perf.data -- sharing $O/c2c-perf.lines %d' % (period, steps))
        g.check('c2c-perf: the same of perf.data, beside perf c2c', check_perf, g, 'c2c-perf', period)
    period, cpu = g.new_period(about), g.smp - 1
    g.do('''sharing /dev/null 999999999 & B=$!
c=/sys/devices/system/cpu/cpu%d/online; echo 0 > $c
run c2c-hotplug ibscope c2c --live -a --json --top 1 -c %d 0.3 & H=$!
sampling c2c-hotplug; sleep 0.4; echo 1 > $c; sleep 1; kill -INT $(pidof ibscope); wait $H; kill $B; wait $B''' % (cpu, period))
    g.check('c2c-hotplug: a CPU that comes online feeds; every sample is in one table', check_hotplug, g, 'c2c-hotplug', period)
    period = g.new_period(about)
    g.do('''D=/sys/fs/bpf/lines
ibscope serve --hot-lines --feed %s -a -c %d --pin-dir $D --control /run/ibscope/control --max-overhead off \\
    --nmi-cost 1us --max-bpf-time off 2> $O/c2c-served.err & S=$!
sampling c2c-served; sharing $O/c2c-served.lines %d
timeout 20 ibscope c2c --control /run/ibscope/control --json > $O/c2c-served.json 2>> $O/c2c-served.err
kill $S; wait $S
rm -r $D''' % (','.join(ALL), period, steps))
    g.check('c2c-served: hot lines of serve', check_served, g, 'c2c-served', period)
    g.check('c2c: the kernel did not complain', g.check_console)


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.add_argument('--cpus', default='8,16', help='of the guests (default %(default)s)')
    ap.add_argument('--steps', type=int, default=5000000, help='of each thread (default %(default)s)')
    ap.add_argument('pairs', nargs='*', metavar='KERNEL:GEN', default=['5.10:zen2', '6.1:zen3', '6.12:zen4', '7.2:zen5', '7.2:zen6'])
    args = ap.parse_args()

    def make(work, report):
        guests = []
        for pair in args.pairs:
            for smp in map(int, args.cpus.split(',')):
                g = guest.Guest(*pair.split(':'), work, report, '-sharing%d' % smp, smp=smp, workers=False)
                scenario(g, args.steps)
                guests.append(g)
        return guests

    return guest.run_guests(args, make, programs=('work', 'sharing', 'stacks'))


if __name__ == '__main__':
    sys.exit(main())
