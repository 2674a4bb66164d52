# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ibscope record` on the rig: every sample of the hardware's log is a record, field by field, or is
counted as lost."""
import collections
import json
import os
import subprocess

import oracle
from guest import DEFAULT_BY, Hist, merged

# registers in the order of the raw record, as the log names them
REGS = ('ctl', 'rip', 'data', 'data2', 'data3', 'linad', 'physad', 'brtarget', 'data4')
USER = 2**64 - 512  # PERF_CONTEXT_USER
BRTARGET, OPDATA4, FETCHCTLEXTD = 1 << 5, 1 << 10, 1 << 9
# what the 64-byte record keeps of a register
KEPT = {'ctl': 0, 'data': (1 << 41) - 1, 'data2': (1 << 10) - 1, 'brtarget': 0, 'data4': 0}


def need(condition, what):
    if not condition:
        raise AssertionError(what)


def lines(guest, name):
    """All of a recording, in its order."""
    p = subprocess.run([os.path.join(guest.work, 'trace_cat'),
                        os.path.join(guest.out, name + '.data')], capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    events = [json.loads(line) for line in p.stdout.splitlines()]
    need(events[-1]['whole'] == 1, events[-1]['missing'])
    return events


def read(guest, name):
    """(info, samples, other events, end) of a recording."""
    events = lines(guest, name)
    return (events[0], [e for e in events if e['kind'] == 'sample'],
            [e for e in events[1:-1] if e['kind'] != 'sample'], events[-1])


def wanted(s, cpu, raw):
    """What a record of this sample holds."""
    regs = [getattr(s, name) or 0 for name in REGS]
    if not raw:
        regs = [r & KEPT.get(name, -1) for name, r in zip(REGS, regs)]
    else:
        regs[7] = regs[7] if cpu.caps & BRTARGET else 0
        regs[8] = regs[8] if cpu.caps & OPDATA4 else 0
    return (s.tgid, s.tid, s.cgroup, regs)


def got(e):
    return (e['tgid'], e['tid'], e['cgroup'], e['regs'])


def check(guest, name, period, raw=False, filters=None, lossy=False, skips=False):
    """lossy: the ring gets full. skips: reading call chains keeps the program from some samples."""
    need(guest.status(name) == 0, guest.read(name + '.err'))
    info, samples, _, end = read(guest, name)
    rows, _ = guest.samples(period)
    need(rows, 'the hardware delivered no sample')
    need(info['period'] == period and info['raw'] == raw, 'info is %s' % info)
    keep = [s for s in rows if not filters or not filters().reason(s, 'dc_miss_lat')]
    need(end['residual'] == 0, 'the ledger does not balance')
    unseen = len(rows) - end['seen']
    need(unseen == 0 or skips and 0 < unseen < len(rows) / 50,
         'seen %d, the log has %d' % (end['seen'], len(rows)))
    need(end['forwarded'] == len(samples), 'forwarded %d, %d records' % (end['forwarded'], len(samples)))
    need(len(samples) + end['ring_full'] + unseen == len(keep), '%d records and %d lost of %d' % (
        len(samples), end['ring_full'], len(keep)))
    need((end['ring_full'] > 0) == lossy, 'lost %d' % end['ring_full'])
    need({e['caps'] for e in samples} == {guest.cpu.caps}, 'caps of records')
    for vcpu in {s.vcpu for s in rows}:
        log = iter(wanted(s, guest.cpu, raw) for s in keep if s.vcpu == vcpu)
        for n, e in enumerate(e for e in samples if e['cpu'] == vcpu):
            # where some are lost the others are still in the log's order
            at = next((w for w in log if not (lossy or skips) or w == got(e)), None)
            need(at == got(e), 'cpu %d, record %d: %s, the log has %s' % (vcpu, n, got(e), at))
        times = [e['time'] for e in samples if e['cpu'] == vcpu]
        need(times == sorted(times), 'records are not in the order of time')
    return '%d records equal the log, %d lost, %d unseen, %d rejected' % (
        len(samples), end['ring_full'], unseen, len(rows) - len(keep))


REPLAY = '--cgroup /a --src dram,l3,local-cache --min-lat 20'


def check_replay(guest, name, period):
    """In the guest and here the same bytes, and what hist would have counted."""
    p = subprocess.run([os.path.join(guest.work, 'overlay/usr/bin/ibscope'), 'replay', '--json',
                        *REPLAY.split(), os.path.join(guest.out, name + '.data')],
                       capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    need(guest.stdout(name + '-replay') == p.stdout, 'guest and host differ')
    got = Hist(p.stdout, source='replay')
    filters = oracle.Filter(cgroup=guest.facts.below('/a'), latency=(20, 65535),
                            src={'dram', 'l3', 'local-cache'})
    rows, _ = guest.samples(period)
    rejected, want = oracle.expect(rows, DEFAULT_BY, 'dc_miss_lat', filters)
    want = merged((tuple(guest.label(b, k) for b, k in zip(DEFAULT_BY, key)), v)
                  for key, v in want.items())
    series = merged((guest.known(DEFAULT_BY, key), v) for key, v in got.series(DEFAULT_BY).items())
    need(+got.filtered == rejected, 'filtered %s, expected %s' % (dict(got.filtered), dict(rejected)))
    need(rejected and want, 'nothing is kept, or nothing is left out')
    need(series == want, 'series differ')
    return '%d samples, %d series, rejected %s' % (len(rows), len(want), dict(rejected))


def check_size(guest, ours, perfs, share):
    """Bytes on disk for a sample of either; perf's has time, cpu, pid, ip and registers too. What a file
    has once, names, maps and topology, may take 32 KiB."""
    _, samples, _, _ = read(guest, ours)
    size = os.path.getsize(os.path.join(guest.out, ours + '.data'))
    mine = max(size - 32768, 0) / len(samples)
    p = subprocess.run([os.path.join(guest.work, 'overlay/usr/bin/ibscope'), 'report', '--json', '--by', 'event',
                        os.path.join(guest.out, perfs)], capture_output=True, text=True)
    need(p.returncode == 0, p.stderr)
    n = sum(r['samples'] for r in json.loads(p.stdout)['rows'])
    theirs = os.path.getsize(os.path.join(guest.out, perfs)) / n
    need(mine <= theirs * share, '%.1f bytes a record (%d in all), %.1f of perf' % (mine, size, theirs))
    return '%.1f bytes a record and 32 KiB, %.1f of perf record --raw-samples' % (mine, theirs)


def check_two(guest, name, periods, raw):
    """Every sample of both events is a record, and each event has its ledger."""
    need(guest.status(name) == 0, guest.read(name + '.err'))
    _, samples, events, end = read(guest, name)
    times = [e['time'] for e in lines(guest, name) if e['kind'] in ('sample', 'fetch')]
    need(times == sorted(times), 'records are not in the order of time')
    told = []
    for pmu, period, ledger in zip(('ibs_op', 'ibs_fetch'), periods, end['events']):
        fetch = pmu == 'ibs_fetch'
        rows, _ = guest.samples(period, pmu)
        if fetch:  # Linux drops samples without an address (erratum 1197)
            rows = [s for s in rows if s.linad]
        records = [e for e in events if e['kind'] == 'fetch'] if fetch else samples
        need(rows and ledger == {'seen': len(rows), 'forwarded': len(records), 'ring_full': 0},
             '%s: the log has %d, %d records, the ledger %s' % (pmu, len(rows), len(records), ledger))
        for vcpu in {s.vcpu for s in rows}:
            want = [wanted_fetch(s, guest.cpu) if fetch else wanted(s, guest.cpu, raw) for s in rows
                    if s.vcpu == vcpu]
            have = [got(e) for e in records if e['cpu'] == vcpu]
            need(have == want, '%s, cpu %d: %s' % (pmu, vcpu, next((p for p in zip(have, want) if p[0] != p[1]), '')))
        told.append('%d of %s' % (len(rows), pmu))
    return ' and '.join(told) + ' equal the log'


def wanted_fetch(s, cpu):
    extd = s.data or 0 if cpu.caps & FETCHCTLEXTD else 0
    return (s.tgid, s.tid, s.cgroup, [s.ctl, s.linad, s.physad or 0, extd])


def check_names(guest, name):
    """The file knows the processes that were busy, and their cgroups."""
    _, samples, events, _ = read(guest, name)
    named = {e['tid']: e['name'] for e in events if e['kind'] == 'comm'}
    cgroups = {e['id']: e['path'] for e in events if e['kind'] == 'cgroup'}
    for tid, (comm, _) in guest.facts.threads.items():
        if tid in {e['tid'] for e in samples}:
            need(named.get(tid) == comm, '%d is %s, not %s' % (tid, named.get(tid), comm))
    for e in samples:
        need(cgroups.get(e['cgroup']) == guest.facts.path[e['cgroup']],
             'cgroup %d is %s' % (e['cgroup'], cgroups.get(e['cgroup'])))
    kernel = [e for e in events if e['kind'] == 'mmap' and e['kernel']]
    need(kernel and kernel[0]['build_id'] == 20, 'the kernel is not told: %s' % kernel)
    return '%d threads, %d cgroups' % (len(named), len(cgroups))


def check_stacks(guest, name):
    """Samples have call chains, those in user space of what is mapped there."""
    _, samples, events, _ = read(guest, name)
    pid = guest.facts.workers['s'].pid
    text = [(e['start'], e['start'] + e['len']) for e in events
            if e['kind'] == 'mmap' and e['tgid'] == pid]
    samples = [e for e in samples if e['tgid'] == pid]     # those of kernel threads have no chain of user space
    with_stack = [e for e in samples if len(e['stack']) > 1]
    need(len(with_stack) > 0.9 * len(samples) > 0, '%d of %d have a stack' % (len(with_stack), len(samples)))
    user = [e['stack'][e['stack'].index(USER) + 1] for e in with_stack
            if e['tgid'] == pid and USER in e['stack'][:-1]]
    known = [a for a in user if any(low <= a < high for low, high in text)]
    need(len(known) > 0.9 * len(user) > 0, '%d of %d are in %s' % (len(known), len(user), text))
    return '%d stacks of %d samples, %d of %d in the text of the process' % (
        len(with_stack), len(samples), len(known), len(user))


def check_callers(guest, name, root=None):
    """leaf() has no frame, and is called by scan() three times as often as by query(), and these by `root`."""
    chains = collections.Counter()
    for line in guest.stdout(name + '-folded').splitlines():
        stack, n = line.rsplit(' ', 1)
        if ';leaf' in stack and '_[k]' not in stack:
            callers = stack.split(';leaf')[0].split(';')
            need(not root or callers[-1] not in ('scan', 'query') or callers[-2] == root, stack)
            chains[callers[-1]] += int(n)
    n = sum(chains.values())
    need(n > 100, chains)
    need(chains['scan'] + chains['query'] > 0.9 * n, chains)
    need(0.6 < chains['scan'] / (chains['scan'] + chains['query']) < 0.9, chains)
    return str(dict(chains))


def check_slabs(guest, name, can):
    """The caches of kernel data, all of them by name, where the kernel lets programs find them, and of no other data."""
    if not can:
        need(guest.status('slabs') == 1 and 'requires Linux 6.13' in guest.read('slabs.err'), guest.read('slabs.err'))
        return 'refused'
    _, samples, events, end = read(guest, name)
    names = {e['id']: e['name'] for e in events if e['kind'] == 'slab'}
    need({'task_struct', 'dentry', 'filp'} <= set(names.values()), sorted(names.values()))
    need(end['ring_full'] == 0, '%d lost' % end['ring_full'])
    data3, linad = REGS.index('data3'), REGS.index('linad')
    kernel = [e for e in samples if e['regs'][data3] >> 17 & 1 and e['regs'][linad] >> 63]
    found = [e for e in kernel if e['slab']]
    need(all(e['slab'] & ~3 in names for e in found), 'an unknown cache among %d' % len(found))
    need(sum(bool(e['slab']) for e in samples) == len(found), 'a cache of data that is not the kernel\'s')
    return '%d caches, %d samples of kernel data, %d in one' % (len(names), len(kernel), len(found))


def check_by_slab(guest, name, period, can):
    """hist counts kernel data by the cache that it is in, and looks nothing else up."""
    if not can:
        need(guest.status(name) == 1 and '--by slab: ' in guest.read(name + '.err'), guest.read(name + '.err'))
        return 'refused'
    got = {key[0]: s.samples for key, s in Hist(guest.stdout(name)).series(('slab',)).items()}
    want = collections.Counter()
    for s in guest.samples(period)[0]:
        known = s.mem and s.data3 >> 17 & 1
        want['kernel' if known and s.linad >> 63 else '[user]' if known else 'unknown'] += 1
    outside = got.pop('[user]', 0), got.pop('unknown', 0)
    need(outside == (want['[user]'], want['unknown']), 'not of the kernel: %s, the log has %s' % (outside, want))
    need(sum(got.values()) == want['kernel'], 'of the kernel: %s, the log has %s' % (got, want))
    need({'[gone]', ''}.isdisjoint(got) and set(got) - {'[no slab]'}, 'names: %s' % sorted(got))
    return '%s, the rest in %d rows' % (dict(want), len(got))


def scenarios(guest, brief=False):
    periods = {}

    def record(name, options='', **expected):
        period = periods[name] = guest.new_period(100000)
        guest.do('run %s ibscope record -c %d --duration 0.7 -o $O/%s.data %s' % (
            name, period, name, options))
        guest.check('%s: record %s' % (name, options), check, guest, name, period,
                    expected.get('raw', False), expected.get('filters'), False,
                    expected.get('skips', False))

    record('record')
    guest.do('run record-replay ibscope replay --json %s $O/record.data' % REPLAY)
    guest.check('replay = hist', check_replay, guest, 'record', periods['record'])
    record('record-filter', '--cgroup /a --op load --src dram,l3,local-cache --min-lat 20',
           filters=lambda: oracle.Filter(cgroup=guest.facts.below('/a'), latency=(20, 65535),
                                         op={'load'}, src={'dram', 'l3', 'local-cache'}))
    guest.check('record: names', check_names, guest, 'record')
    if brief:
        return
    record('record-compressed', '-z')
    record('record-raw', '--raw', raw=True)
    slabs = guest.kernel == '7.2'
    if slabs:  # somebody is to use slabs of the kernel
        guest.do('{ while :; do find /proc/[0-9]* /sys/class; done; } > /dev/null 2>&1 & F=$!')
    else:
        guest.do('run slabs ibscope record -c 100000 --duration 0.1 -o $O/none.data --slabs')
    period = guest.new_period(50000)
    guest.do('run by-slab ibscope hist --json --max-groups 256 --by slab -c %d 1 1' % period)
    guest.check('hist --by slab', check_by_slab, guest, 'by-slab', period, slabs)
    record('record-stacks', '-g --slabs' if slabs else '-g', skips=True)
    guest.check('record-stacks: call chains', check_stacks, guest, 'record-stacks')
    guest.do('run record-callers ibscope record -g -c 100000 -o $O/record-callers.data -- callers 400\n'
             'run record-callers-folded ibscope report --folded samples $O/record-callers.data')
    guest.check('record -g: callers of a function without a frame', check_callers, guest, 'record-callers')
    for name, limit in ('dwarf', ',64K'), ('dwarf-cut', ',512 --raw'):
        guest.do('run record-%s ibscope record --call-graph dwarf%s -c 100000 -o $O/record-%s.data -- callers-nofp 400\n'
                 'run record-%s-folded ibscope report --folded samples $O/record-%s.data' % (name, limit, name, name, name))
        guest.check('record --call-graph dwarf%s: callers in code without frame pointers' % limit,
                    check_callers, guest, 'record-' + name, 'main')
    guest.check('record --slabs', check_slabs, guest, 'record-stacks', slabs)
    if slabs:
        guest.do('kill $F')
    period = while_recording(guest, 'record-stopped', 50000, '--ring-size 16K --max-loss 90%',
                             'sleep 0.3; kill -STOP $(pidof ibscope); sleep 1; kill -CONT $(pidof ibscope); sleep 0.5')
    guest.check('record: a reader that stands still for a second', check, guest,
                'record-stopped', period, False, None, True)
    c = '/sys/devices/system/cpu/cpu1/online'
    period = while_recording(guest, 'record-hotplug', 100000, '',
                             f'sleep 0.5; echo 0 > {c}; sleep 1; echo 1 > {c}; sleep 1.5\n'
                             f'echo 0 > {c}; echo 1 > {c}; sleep 2')
    guest.check('record: a CPU goes and comes, for long and for a moment', check_hotplug, guest,
                'record-hotplug', period)


def while_recording(guest, name, about, options, script):
    """The script begins when sampling has; the period."""
    period = guest.new_period(about)
    guest.do("cat > /tmp/%s <<'END'\n%s\nEND\n"
             'run %s ibscope record -a -c %d -o $O/%s.data %s -- sh /tmp/%s' % (
                 name, script, name, period, name, options, name))
    return period


def check_hotplug(guest, name, period):
    said = check(guest, name, period)
    samples = read(guest, name)[1]
    times = [e['time'] for e in samples if e['cpu'] == 1]
    need(max(times) > max(e['time'] for e in samples) - 1.5e9, 'CPU 1 is not sampled in the end')
    need(max(b - a for a, b in zip(times, times[1:])) > 5e8, 'CPU 1 was never away')
    need(guest.read(name + '.err').count('went offline') == 2, guest.read(name + '.err'))
    return said
