#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""selections.py [--random N] [--seed S] [KERNEL...]: random selections of ibscope against the
hardware's log.

A selection is some rows of KINDS, each an option and what it means, and random --by and --metric.
Those that would accept or reject next to nothing, as a rough model of the rig has it, are drawn
again, so that the comparison means something.
"""
import collections
import os
import random
import re
import subprocess
import sys

import expr
import guest
import oracle

ID_1, ID_2 = '0a1b2c3d' * 8, 'f00dcafe' * 8       # of containers
# name: cgroup, cpu, comm, uid, kind
WORKERS = {
    'k': ('/s/k', 0, 'krn', 1000, 'kernel'),
    'm': ('/m1/x', 1, 'mem.one', 0, 'spin'),
    'n': ('/m2', 0, 'mem.two', 1001, 'kernel'),
    'f': ('/a/f', 1, 'forker', 0, 'fork'),
    'c': ('/docker/' + ID_1, 0, 'boxed', 0, 'spin'),
    'e': ('/k8s/cri-containerd-%s.scope/y' % ID_2, 1, 'boxed', 1000, 'kernel'),
}
ALL_WORKERS = dict(WORKERS, d=('/a/b/c/d', 0, 'work', 0, 'spin'), s=('/s', 1, 'work', 0, 'spin'),
                   a=('/a', 1, 'work', 0, 'spin'))
CGROUPS = ['/', '/a', '/a/b', '/a/b/c', '/a/b/c/d', '/a/f', '/s', '/s/k', '/m1', '/m1/x', '/m2',
           '/docker', WORKERS['c'][0], '/k8s', WORKERS['e'][0][:-2], WORKERS['e'][0]]
CONTAINERS = {ID_1[:12]: WORKERS['c'][0], ID_2[:16]: WORKERS['e'][0][:-2]}
PATTERNS = ['/m*', '/a/*', '/a/**', '/*/k', '/a/[bf]', '/**/x', '/?', '/a/b/?/*', '/m[!1]']
TREE = guest.Facts({}, dict(enumerate(CGROUPS, 1)), {})
SOURCES = ['unknown', 'none'] + expr.SOURCES
METRICS = ['dc_miss_lat', 'dc_miss_lat', 'tlb_refill_lat', 'tag_to_ret', 'comp_to_ret']
BY = ['cgroup', 'pid', 'tid', 'comm', 'cpu', 'ccx', 'node', 'mode', 'src', 'op']

# options: text; reasons: {reason: function(facts) -> what oracle.Filter takes}; cpus: of -C
Part = collections.namedtuple('Part', 'options reasons cpus', defaults=({}, None))
Selection = collections.namedtuple('Selection', 'options filters by metric cpus')


def some(rng, what, most=3):
    return rng.sample(what, rng.randint(1, min(most, len(what))))


def but(rng):
    return '!' if rng.random() < 0.3 else ''


def complement(negated, chosen, key):
    """A predicate: key(sample) is in chosen, or is not."""
    return lambda s: (key(s) in chosen) != bool(negated)


# --- kinds of selections: function(rng, the program's options) -> Part

def processes(rng, _):
    names, no, follow = some(rng, sorted(ALL_WORKERS)), but(rng), rng.random() < 0.4

    def selected(facts):
        pids = {facts.workers[n].pid for n in names}
        return complement(no, facts.family(pids) if follow else pids, lambda s: s.tgid)
    return Part('-p "%s%s"%s' % (no, ','.join('$P_' + n for n in names), ' --follow' * follow),
                {'pid': selected})


def threads(rng, _):
    names, follow = some(rng, sorted(ALL_WORKERS), 4), rng.random() < 0.3
    # where one thread forks it is the first, whose number is the process's
    texts = ['$%s_%s' % ('P' if n == 'f' else 'T', n) for n in names]

    def selected(facts):
        tids = {facts.workers[n].pid if n == 'f' else facts.workers[n].tid for n in names}
        return facts.family(tids) if follow else tids
    return Part('-t "%s"%s' % (','.join(texts), ' --follow' * follow), {'tid': selected})


def comms(rng, _):
    known = sorted({c for w in ALL_WORKERS.values() for c in (w[2], w[2][:12] + '.t')})
    names, no = some(rng, known), but(rng)
    return Part('--comm "%s%s"' % (no, ','.join(names)),
                {'comm': lambda facts: complement(no, set(names), lambda s: s.comm)})


def cgroups(rng, _):
    """The deepest cgroup that is named decides, on the threshold too."""
    entries, taken = [], set()
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        text = rng.choice(CGROUPS + PATTERNS)
        paths = TREE.matching(text) if text in PATTERNS else [text]
        if taken & set(paths):
            continue
        taken |= set(paths)
        out = rng.random() < 0.25
        entries.append((text, paths, out, 0 if out or rng.random() < 0.6 else rng.choice(expr.LAT)))
    keep = any(not out for _, _, out, _ in entries)

    def ruling(facts, s):
        """(path, out, threshold) of the deepest ancestor that is named."""
        own = (facts.path.get(s.cgroup, '/').rstrip('/') + '/')
        found = [(len(p.rstrip('/')), out, least) for _, paths, out, least in entries for p in paths
                 if own.startswith(p.rstrip('/') + '/')]
        return max(found) if found else None

    def selected(facts):
        def test(s):
            rule = ruling(facts, s)
            return not rule[1] if rule else not keep
        return test

    def least(facts):
        return lambda s: (ruling(facts, s) or (0, 0, 0))[2]

    texts = []
    for text, paths, out, threshold in entries:
        if text in C_NAMES and rng.random() < 0.3:
            text = '$C_' + C_NAMES[text]        # by id
        texts.append('--cgroup "%s%s%s"' % ('!' * out, text, ':%d' % threshold if threshold else ''))
    # those that are kept may be one list
    if len(entries) > 1 and not any(e[2] for e in entries) and rng.random() < 0.5:
        texts = ['--cgroup "%s"' % ','.join(t[10:-1] for t in texts)]
    return Part(' '.join(texts), {'cgroup': selected, 'latency of cgroup': least})


C_NAMES = {w[0]: n for n, w in ALL_WORKERS.items()}


def containers(rng, _):
    ids, no = some(rng, list(CONTAINERS), 2), but(rng)
    return Part('--container "%s%s"' % (no, ','.join(ids)), {'cgroup': lambda facts: complement(
        no, facts.below(*(CONTAINERS[i] for i in ids)), lambda s: s.cgroup)})


def latency(rng, _):
    low, high = rng.choice((0,) + expr.LAT[:8]), rng.choice((0, 0, 100, 300, 900, 2000))
    if not low and not high:
        low = 30
    if high and high < low:
        low, high = high, low
    return Part(' '.join(['--min-lat %d' % low] * bool(low) + ['--max-lat %d' % high] * bool(high)),
                {'latency': lambda facts: (low, high or 65535)})


def names_option(option, key, names):
    def kind(rng, _):
        chosen, no = some(rng, names, 4), but(rng)
        return Part('--%s "%s%s"' % (option, no, ','.join(chosen)),
                    {option: lambda facts: complement(no, set(chosen), key)})
    return kind


def cpus(rng, _):
    cpu = rng.choice((0, 1))
    return Part('-C %d' % cpu, cpus={cpu})


def mode(rng, _):
    which = rng.choice(('user', 'kernel'))
    return Part('--' + which, {'mode': lambda facts: lambda s: expr.mode(s, which == 'kernel') == 1})


def present(value, holds):
    """A predicate: what is absent never matches, nor what is to be left out."""
    return lambda facts: lambda s: value(s) is not None and bool(holds(value(s)))


def tlb_level(s):
    code = expr.mem_dtlb(s)
    return code and {10: 'l1', 18: 'l2', 20: 'walk'}[code]


def tlb(rng, _):
    """Without the L2's bit, which is there after a miss in L1 only, a hit in L1 is still a hit."""
    names, no = some(rng, ['l1', 'l2', 'walk'], 2), but(rng)
    return Part('--tlb "%s%s"' % (no, ','.join(names)),
                {'tlb': present(tlb_level, lambda v: (v in names) != bool(no))})


def tlb_latency(rng, _):
    low, high = rng.choice(((0, 100), (0, 300), (5, 0), (15, 0), (60, 0), (10, 200), (100, 400)))
    return Part(' '.join(['--min-tlb-lat %d' % low] * bool(low) +
                         ['--max-tlb-lat %d' % high] * bool(high)),
                {'tlb_latency': present(lambda s: s.metrics['tlb_refill_lat'],
                                        lambda v: low <= v <= (high or 65535))})


def pages(rng, _):
    sizes = {'4k': expr.KIB4, '2m': expr.MIB2, '1g': expr.GIB1}
    names, no = some(rng, list(sizes), 2), but(rng)
    wanted = {sizes[n] for n in names}
    return Part('--page-size "%s%s"' % (no, ','.join(names)),
                {'page_size': present(expr.page_size, lambda v: (v in wanted) != bool(no))})


def remote_node(rng, _):
    word = rng.choice(('yes', 'no', '!yes', 'yes,no'))
    wanted = {'yes': (1,), 'no': (0,), '!yes': (0,), 'yes,no': (0, 1)}[word]
    return Part('--remote-node "%s"' % word, {'remote_node': present(
        expr.TERMS['rmt_node'].value, lambda v: v in wanted)})


def addresses(option, edges):
    def kind(rng, _):
        ranges, texts, no = [], [], but(rng)
        for _ in range(rng.choice((1, 1, 2, 3))):
            low, high = sorted(rng.sample(edges, 2))
            ranges.append((low, high))
            texts.append(rng.choice(('%x-%x' % (low, high), '%#x-0x%x' % (low, high),
                                     '%x+%x' % (low, high - low))))
        return Part('--%s "%s%s"' % (option, no, ','.join(texts)), {option: present(
            expr.TERMS[option].value,
            lambda v: any(low <= v < high for low, high in ranges) != bool(no))})
    return kind


def filter_expr(rng, options):
    more = {'pid': ['$P_' + n for n in ALL_WORKERS], 'tid': ['$T_' + n for n in ALL_WORKERS]}
    texts = []
    if 'container' in options:
        texts = ['cgroup %s %s' % (op, p) for op in ('==', '!=') for p in CGROUPS[1:8]]
        texts += ['cgroup =~ ' + p for p in PATTERNS if '!' not in p]
        texts += ['container %s %s' % (op, i) for op in ('==', '!=') for i in CONTAINERS]
    text = expr.random_text(rng, more, texts)

    def cgroups(facts):
        def ids(kind, pattern, word):
            if kind == 'container':
                return facts.below(CONTAINERS[word])
            return facts.below(*(facts.matching(word) if pattern else [word]))
        return ids
    return Part('--filter "%s"' % text, {
        'filter': lambda facts: expr.parse(numbered(text, facts), cgroups(facts))})


def numbered(text, facts):
    for n, w in facts.workers.items():
        text = text.replace('$P_%s' % n, str(w.pid)).replace('$T_%s' % n, str(w.tid))
    return text


# What can be selected, and how often it is drawn.
KINDS = {
    processes: 3,
    threads: 2,
    comms: 2,
    cgroups: 5,
    containers: 2,
    cpus: 1,
    latency: 3,
    names_option('op', lambda s: s.op, expr.OPS): 2,
    names_option('src', lambda s: s.src, SOURCES): 3,
    mode: 2,
    tlb: 2,
    tlb_latency: 1,
    pages: 2,
    remote_node: 1,
    addresses('addr', [0, 0x10000, 0x600000000000, 0x7f8000000000, 1 << 47, 1 << 63,
                       0xffffa00000000000, (1 << 64) - 1]): 2,
    addresses('ip', [0, 0x400000, 0x401700, 0x401800, 0x402000, 1 << 47, 0xffffffff81000000,
                     0xffffffff81200000, 0xffffffff81500000, 0xffffffff81580000, 0xffffffff82000000]): 2,
    filter_expr: 6,
}


# --- putting together

def combine(parts, facts):
    """The oracle.Filter of all; a cgroup's own threshold replaces the general one."""
    reasons = {}
    for part in parts:
        for reason, f in part.reasons.items():
            test, before = f(facts), reasons.get(reason)
            if before:      # of cgroups and containers both must hold
                reasons[reason] = lambda s, a=before, b=test: a(s) and b(s)
            else:
                reasons[reason] = test
    own, general = reasons.pop('latency of cgroup', None), reasons.get('latency')
    if own:
        def limits(s):
            low, high = general or (0, 65535)
            low = own(s) or low
            return (low, high) if low or general else None
        reasons['latency'] = limits
    return oracle.Filter(**reasons)


def known_options(build):
    """The long options of the program that is tested."""
    text = subprocess.run([os.path.join(build, 'ibscope'), 'hist', '--help'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r'--([\w-]+)', text))


def draw(rng, options):
    kinds = [k for k in KINDS if k is not containers or 'container' in options]
    chosen, wanted = [], rng.choice((1, 1, 2, 2, 2, 3, 4))
    while len(chosen) < wanted:
        kind = rng.choices(kinds, [KINDS[k] for k in kinds])[0]
        if kind not in chosen:
            chosen.append(kind)
    parts = [k(rng, options) for k in chosen]
    metric = rng.choice(METRICS)
    labels = some(rng, BY)
    by = None if rng.random() < 0.3 else tuple(b for b in BY if b in labels)
    named = [p.cpus for p in parts if p.cpus]
    return Selection(' '.join(p.options for p in parts),
                     lambda facts: combine(parts, facts), by, metric,
                     named[0] if named else {0, 1})


# --- a rough model of what the rig makes (rig/README.md)

def model(gen, n=1500):
    """(Facts, samples) of a guest that never ran."""
    cpu, rng = oracle.GENS[gen], random.Random(gen)
    path = dict(enumerate(CGROUPS, 1))
    workers = {n: guest.Worker(100 + 10 * i, 101 + 10 * i, *(w[j] for j in (0, 2, 3)))
               for i, (n, w) in enumerate(sorted(ALL_WORKERS.items()))}
    facts = guest.Facts(workers, path, {workers['f'].pid: [500]})
    found = []
    for i in range(n):
        name = rng.choice(sorted(workers) + [None])
        w = workers.get(name)
        tgid = tid = 0
        cgroup = facts.ids[w.cgroup if w else '/']
        if w:
            tgid, tid = w.pid, rng.choice((w.pid, w.tid))
        if name == 'f' and rng.random() < 0.3:
            tgid = tid = 500
        in_kernel = name in ('k', 'n', None) or rng.random() < 0.1
        columns = registers(rng, cpu, in_kernel) + [tid, tgid, cgroup, 'op']
        vcpu = ALL_WORKERS[name][1] if w else rng.choice((0, 1))
        s = oracle.Sample([str(c) for c in [vcpu, i, i] + columns], cpu)
        facts.complete(s)
        found.append(s)
    return facts, found


def registers(rng, cpu, in_kernel):
    """Columns ctl to real_rip."""
    def chance(p):
        return rng.random() < p

    kind, data3, data2, data = rng.random(), 0, rng.getrandbits(10), 0
    lat = rng.choice((rng.randint(11, 60), rng.randint(40, 900)))
    if kind < 0.57:
        data3 = 1 if kind < 0.38 else 2 if kind < 0.53 else 3
        miss = chance(0.3)
        for n, p in ((2, 0.09), (3, 0.3), (4, 0.1), (6, 0.1), (8, 0.02), (13, 0.02), (14, 0.012),
                     (15, 0.6 if data3 == 3 else 0), (16, 0.1 * miss), (17, 0.97), (18, 0.95),
                     (20, 0.6), (21, 0.05)):
            data3 |= chance(p) << n
        data3 |= miss << 7 | rng.randint(0, 5) << 22 | rng.randint(0, 23) << 26 | lat << 32
        data3 |= rng.randint(6, 600) << 48
        data2 = rng.choice((1, 1, 1, 2, 3, 3, 5, 64, 7)) | chance(0.25) << 4 | chance(0.3) << 5
    elif kind < 0.78:
        data = 1 << 37 | rng.getrandbits(3) << 34
    data |= chance(0.01) << 38 | chance(0.1) << 39 | chance(0.05) << 40
    comp = rng.randint(1, 40)
    data |= comp | (comp + rng.randint(8, 60) + lat * (kind < 0.1)) << 16
    rip = 0xffffffff81000000 + rng.getrandbits(23) if in_kernel else 0x401000 + rng.getrandbits(12)
    return [0, rip, data, data2, data3, rng.choice((0x7fff00001000, 0x7f1000000000, 0x555500000000, 0xffff888000001000)),
            rng.choice((0x10000000, 0x30000000, 0x4000000000)), 0, 0 if in_kernel else 3, 0, 0, rip]


def telling(selection, facts, samples):
    """It accepts some and rejects some."""
    mine = [s for s in samples if s.vcpu in selection.cpus]
    passes = selection.filters(facts)
    accepted = sum(passes.reason(s, selection.metric) is None for s in mine)
    return 0.015 * len(mine) < accepted < 0.985 * len(mine) or not passes.selected


def generate(kernel, gen, n, seed, options):
    facts, samples = model(gen)
    for i in range(n):
        rng = random.Random('%s %s %d %d' % (kernel, gen, seed, i))
        for _ in range(200):
            selection = draw(rng, options)
            if telling(selection, facts, samples):
                break
        yield i, selection


def add(g, n, seed, options, first=0, last=None):
    """Runs for these selections, number first to last of n, to a guest."""
    if not n:
        return
    for name, (cgroup, cpu, comm, uid, kind) in WORKERS.items():
        g.do('start %s %s %d %s %d %s' % (name, cgroup, cpu, comm, uid, kind))
    for i, sel in generate(g.kernel, g.gen, n, seed, options):
        if not first <= i < (n if last is None else last):
            continue
        g.hist('random-%d' % i, sel.options, by=sel.by, metric=sel.metric, window='0.25 1',
               **(dict(plan='auto', unseen='any') if g.gen == 'zen4' and i % 2 else {}), filters=lambda sel=sel: sel.filters(g.facts), all=True,
               title='random %d of seed %d: %s by %s of %s' % (
                   i, seed, sel.options, ','.join(sel.by or guest.DEFAULT_BY), sel.metric))
    g.do('kill -9 %s' % ' '.join('$P_' + name for name in WORKERS))


# --- all of them, in several boots a kernel, each of another processor

BOOTS = {'5.10': ('zen2', 'zen3', 'zen2', 'zen3'), '6.1': ('zen3', 'zen4', 'zen3', 'zen4'),
         '6.12': ('zen4', 'zen5', 'zen4', 'zen5'), '7.2': ('zen5', 'zen6', 'zen5', 'zen6')}


def main():
    ap = guest.options(__doc__.splitlines()[0])
    ap.set_defaults(random=200)
    ap.add_argument('kernels', nargs='*', metavar='KERNEL', default=list(BOOTS))
    args = ap.parse_args()

    def make(work, report):
        guests = []
        for i in range(4):
            for kernel in args.kernels:
                g = guest.Guest(kernel, BOOTS[kernel][i], work, report, '-%d' % i)
                g.check('the kernel did not complain', g.check_console)
                add(g, args.random, args.seed, known_options(args.build),
                    args.random * i // 4, args.random * (i + 1) // 4)
                guests.append(g)
        return guests

    return guest.run_guests(args, make)


if __name__ == '__main__':
    sys.exit(main())
