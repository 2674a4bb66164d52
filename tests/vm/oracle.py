#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""oracle.py LOG GEN: what `ibscope hist` must report of the samples in the rig's log.

Written from the documents, not from ibscope's sources, to be a second opinion.
"""
import argparse
import collections
import json

ZEN4, STRMST_RMTSOCKET, PGSIZE = 1 << 11, 1 << 16, 1 << 19
L3MISSONLY = 1 << 16
CNT_CTL = 1 << 19
LDLAT = 1 << 63


class Cpu(collections.namedtuple('Cpu', 'family model caps')):
    @property
    def zen4(self):
        return bool(self.caps & ZEN4)

    @property
    def zen6(self):
        return bool(self.caps & STRMST_RMTSOCKET)

    @property
    def page_size_coded(self):
        return bool(self.caps & PGSIZE)

    @property
    def erratum_1293(self):
        return self.family == 0x19 and self.model <= 0x0f

    @property
    def bad_ic_miss(self):
        """Errata 1238 and 1347: no IcMiss, and page sizes 4K, 16K, 2M, 1G."""
        return self.family == 0x19 and self.model <= 0x0f

    @property
    def fetch_needs_address(self):
        """Status bits of a fetch mean something only with a physical address."""
        return self.family > 0x1a or (self.family == 0x1a and (
            self.model in range(0x50, 0x60) or self.model in range(0x80, 0xb0) or
            self.model in range(0xc0, 0xd0)))

    @property
    def tells_state(self):
        """CacheHitSt means something: not on Zen 3."""
        return self.family != 0x19 or self.model in range(0x10, 0x20) or self.model > 0x5f


GENS = {
    'zen2': Cpu(0x17, 0x31, 0x3ff),
    'zen3': Cpu(0x19, 0x01, 0x3ff),
    'zen4': Cpu(0x19, 0x11, 0xbff),
    'zen5': Cpu(0x1a, 0x02, 0x1bff),
    'zen6': Cpu(0x1a, 0x50, 0x9fbff),
}

COLUMNS = ('vcpu seq virtual_ns ctl rip data data2 data3 linad physad brtarget '
           'cpl cr3 data4 real_rip tid tgid cgroup kind').split()


def bit(value, n):
    return value >> n & 1


def field(value, low, width):
    return value >> low & ((1 << width) - 1)


class Sample:
    """One line of the log and what its registers mean on a CPU. comm and uid are not in the log:
    whoever knows them sets them."""

    def __init__(self, columns, cpu):
        for name, text in zip(COLUMNS, columns):
            setattr(self, name, text if name == 'kind' else int(text, 0) if text else None)
        self.cpu, self.comm, self.uid, self.node, self.mem_node, self.distance = cpu, None, None, 0, None, None
        self.load, self.store = bit(self.data3, 0), bit(self.data3, 1)
        self.mem = self.load or self.store
        self.uncached = self.mem and bit(self.data3, 14)
        self.dc_miss = self.mem and not self.uncached and bit(self.data3, 7)
        self.mab = bit(self.data3, 16)
        self.prefetch = bit(self.data3, 21)
        # erratum 1293: these two, on these parts, come with a wrong L2Miss and OP_DATA2
        self.bad_l2 = cpu.erratum_1293 and (self.prefetch or self.mab)
        self.op = self._op()
        known = self.mem and bit(self.data3, 18) and (bit(self.data3, 17) or not cpu.zen4)
        self.phys = self.physad if known and self.physad else None
        # of an op whose address is not known nothing is known
        self.mode = 'unknown' if bit(self.data, 38) else 'kernel' if bit(self.rip, 63) else 'user'
        self.src = self._src(cpu)
        self.misses = self._misses(cpu)
        self.metrics = {
            'dc_miss_lat': self._dc_miss_lat(),
            'tlb_refill_lat': self._tlb_refill_lat(cpu),
            'tag_to_ret': field(self.data, 16, 16),
            'comp_to_ret': field(self.data, 0, 16),
        }

    def _op(self):
        if self.mem:
            # SwPf qualifies any memory op: what it marks has no latency, locked or not
            if self.prefetch:
                return 'prefetch'
            if bit(self.data3, 15):
                return 'locked'
            return 'load' if self.load else 'store'
        return 'branch' if bit(self.data, 37) else 'other'

    def _src(self, cpu):
        if not self.mem:
            return 'none'
        # OP_DATA2 belongs to loads
        known = self.load and not self.bad_l2
        data_src = field(self.data2, 0, 3) if known else 0
        if cpu.zen4 and known:
            data_src |= field(self.data2, 6, 2) << 3
        if self.uncached:
            return 'io' if data_src == 7 else 'uncached'
        if not self.dc_miss:
            return 'l1'
        if not self.bad_l2 and not bit(self.data3, 20):
            return 'l2'
        remote = bit(self.data2, 4)
        if cpu.zen4:
            memory = {3: 'dram', 6: 'pmem', 8: 'cxl'}
            other = {1: 'l3', 2: 'near-cache', 5: 'remote-cache', 7: 'io', 12: 'peer'}
        else:
            memory = {3: 'dram'}
            other = {2: 'local-cache', 4: 'remote-cache', 7: 'io'}
        if data_src in memory:
            return ('remote-' if remote else '') + memory[data_src]
        if data_src in other:
            return other[data_src]
        return 'mab' if self.mab else 'unknown'

    def _misses(self, cpu):
        """What a load that missed tells besides: how many requests were open, and the cycles if the
        line was modified in another cache."""
        latency, found = self._dc_miss_lat(), collections.Counter()
        if latency is None or self.bad_l2:
            return found
        if field(self.data3, 26, 6):
            found.update(open_n=1, open=field(self.data3, 26, 6))
        caches = ('l3', 'near-cache', 'local-cache') + (('remote-cache',) if cpu.zen4 else ())
        if cpu.tells_state and bit(self.data3, 20) and self.src in caches and not bit(self.data2, 5):
            found['hitm'] += latency
        return found

    def _dc_miss_lat(self):
        if self.load and self.dc_miss and not self.prefetch:
            return field(self.data3, 32, 16)
        return None

    def _tlb_refill_lat(self, cpu):
        lin, phys = bit(self.data3, 17), bit(self.data3, 18)
        if not self.mem or not lin or not bit(self.data3, 2):
            return None
        if (cpu.zen4 or cpu.caps & PGSIZE) and not phys:
            return None
        return field(self.data3, 48, 16)

    def below_ldlat(self, threshold):
        """Linux >= 6.15 drops it in software, after it has read the registers."""
        return not self.load or not bit(self.data3, 7) or field(self.data3, 32, 16) <= threshold

    def label(self, key):
        return {'cgroup': self.cgroup, 'pid': self.tgid, 'tid': self.tid, 'comm': self.comm,
                'cpu': self.vcpu, 'ccx': self.vcpu, 'node': self.node, 'src': self.src, 'op': self.op,
                'mode': self.mode, 'mem_node': self.mem_node, 'distance': self.distance}[key]


class Fetch:
    """The same of a line of ibs_fetch."""

    def __init__(self, columns, cpu):
        for name, text in zip(COLUMNS, columns):
            setattr(self, name, text if name == 'kind' else int(text, 0) if text else None)
        self.cpu, self.comm, self.uid, self.misses = cpu, None, None, collections.Counter()
        bits = {name: bit(self.ctl, n) for name, n in (
            ('comp', 50), ('ic', 51), ('phys', 52), ('l1tlb', 55), ('l2tlb', 56), ('l2', 58),
            ('oc', 60), ('l3', 61))}
        self.__dict__.update(bits)
        self.known = bool(self.phys or not cpu.fetch_needs_address)
        self.page = self._page()
        self.fetch, self.itlb = self._fetch(), self._itlb()
        self.mode = 'kernel' if bit(self.linad, 63) else 'user' if self.linad else 'unknown'
        self.metrics = {
            'fetch_lat': field(self.ctl, 32, 16) if self.comp and self.known else None,
            'itlb_refill_lat': field(self.data, 0, 16) if self.known and self.l1tlb else None,
        }

    def _fetch(self):
        if not self.comp:
            met = self.phys or self.l1tlb or self.l2tlb or (self.ic and not self.cpu.bad_ic_miss)
            return 'aborted' if met or not self.known else 'killed'
        if not self.known:
            return 'unknown'
        if self.cpu.bad_ic_miss:
            return 'l2-miss' if self.l2 else 'l1-l2'
        if not self.ic:
            return 'op-cache' if self.cpu.zen4 and not self.oc else 'l1'
        if not self.l2:
            return 'l2'
        if not self.cpu.zen4:
            return 'l2-miss'
        return 'l3-miss' if self.l3 else 'l3'

    def _page(self):
        if not self.phys:
            return None
        sizes = ('4k', '16k', '2m', '1g') if self.cpu.bad_ic_miss else ('4k', '2m', '1g', None)
        return sizes[field(self.ctl, 53, 2)]

    def _itlb(self):
        if not self.known or not (self.l1tlb or self.phys):
            return 'unknown'
        if not self.l1tlb:
            return 'l1'
        if not self.l2tlb:
            return 'l2'
        return 'walk-' + self.page if self.page else 'walk'

    def label(self, key):
        return {'cgroup': self.cgroup, 'pid': self.tgid, 'cpu': self.vcpu, 'fetch': self.fetch,
                'itlb': self.itlb, 'mode': self.mode}[key]


class Line:
    """One line of the log, parsed lazily, since there are many."""
    __slots__ = ('text', 'virtual_ns', 'maxcnt', 'dropped', 'kind')

    def __init__(self, text, dropped, kind):
        columns = text.split(',', 4)
        ctl = int(columns[3], 0)
        self.text, self.dropped, self.virtual_ns, self.kind = text, dropped, int(columns[2]), kind
        self.maxcnt = (field(ctl, 20, 7) * (kind is Sample) << 16 | field(ctl, 0, 16)) << 4

    def sample(self, cpu):
        return self.kind(self.text.split(','), cpu)


def read_log(path, kind=Sample):
    """The samples of a kind, oldest first; .dropped says that the guest did not read it."""
    lines, end = [], ',op\n' if kind is Sample else ',fetch\n'
    with open(path) as f:
        for text in f:
            dropped = text.startswith('#dropped,')
            if text.endswith(end) and (dropped or text[0] != '#'):
                lines.append(Line(text[9:-1] if dropped else text[:-1], dropped, kind))
    return sorted(lines, key=lambda s: s.virtual_ns)


FEW = 10    # samples


def runs(samples, periods=(), pause=100000000):
    """{period: samples}: the runs of a profiler, each with its own period and a pause (in ns)
    before it. MaxCnt tells the period, but not of every sample: when the kernel stops and starts
    an event, it is what was left. Where a host is busy there may be pauses within a run, too: a FEW
    samples behind one of which none has any of the `periods` belong to the run before."""
    found, part, last = collections.defaultdict(list), [], None
    for s, following in zip(samples, samples[1:] + [None]):
        part.append(s)
        if not following or following.virtual_ns - s.virtual_ns > pause:
            few = len(part) < FEW and last is not None and periods
            known = [x.maxcnt for x in part if x.maxcnt in periods]
            if known or not few:
                last = collections.Counter(known if few else [x.maxcnt for x in part]).most_common(1)[0][0]
            found[last] += part
            part = []
    return found


def le(cycles):
    """Upper edge of the bucket: exact to 8, then 8 equal steps an octave."""
    if cycles <= 8:
        return cycles
    octave = 8
    while cycles > 2 * octave:
        octave *= 2
    step = octave // 8
    return min(-(-cycles // step) * step, 65535)


EDGES = sorted({le(x) for x in range(65536)})


def lower_edge(edge):
    """The largest value that is below this edge's bucket."""
    i = EDGES.index(edge)
    return EDGES[i - 1] if i else -1


# What rejects, in ibscope's order, and what of a sample it looks at.
REASONS = {
    'pid': lambda s: s.tgid,
    'tid': lambda s: s.tid,
    'comm': lambda s: s.comm,
    'cgroup': lambda s: s.cgroup,
    'latency': None,
    'op': lambda s: s.op,
    'src': lambda s: s.src,
    'mode': None,
    'tlb': None,
    'tlb_latency': None,
    'page_size': None,
    'remote_node': None,
    'addr': None,
    'ip': None,
    'filter': None,
}


class Filter:
    """Filter(reason=what is selected, ...): a set, or a function of the sample that says if it
    passes. latency is (least, greatest) of the metric, or a function of the sample that returns
    that; None selects everything."""

    def __init__(self, **selected):
        assert set(selected) <= set(REASONS), selected
        self.selected = [(r, selected[r]) for r in REASONS if selected.get(r) is not None]

    def reason(self, s, metric):
        """Why the sample is rejected, or None."""
        for reason, selected in self.selected:
            if reason == 'latency':
                limits, value = selected, s.metrics[metric]
                if callable(selected):
                    limits = selected(s)
                passes = not limits or (value is not None and limits[0] <= value <= limits[1])
            elif callable(selected):
                passes = selected(s)
            else:
                passes = REASONS[reason](s) in selected
            if not passes:
                return reason
        return None


class Series:
    def __init__(self):
        self.samples = self.valid = self.sum = 0
        self.buckets = collections.Counter()
        self.misses = collections.Counter()     # None: not known

    def add(self, value, misses=()):
        self.samples += 1
        if value is not None:
            self.valid += 1
            self.sum += value
            self.buckets[le(value)] += 1
            self.misses.update(misses)

    def merge(self, other):
        self.samples += other.samples
        self.valid += other.valid
        self.sum += other.sum
        self.buckets.update(other.buckets)
        self.misses = (None if self.misses is None or other.misses is None
                       else self.misses + other.misses)

    def __eq__(self, other):
        if not isinstance(other, Series):
            return False
        if self.misses is not None and other.misses is not None and +self.misses != +other.misses:
            return False
        return all(vars(self)[k] == vars(other)[k] for k in ('samples', 'valid', 'sum', 'buckets'))

    def __repr__(self):
        return 'samples %d, valid %d, sum %d, misses %s, buckets %s' % (
            self.samples, self.valid, self.sum, self.misses and dict(+self.misses),
            sorted(self.buckets.items()))


def expect(rows, by=('cgroup', 'src', 'op'), metric='dc_miss_lat', filters=Filter()):
    """(Counter of rejections by reason, {labels: Series})."""
    rejected, series = collections.Counter(), collections.defaultdict(Series)
    for s in rows:
        reason = filters.reason(s, metric)
        if reason:
            rejected[reason] += 1
        else:
            series[tuple(s.label(k) for k in by)].add(
                s.metrics[metric], s.misses if metric == 'dc_miss_lat' else ())
    return rejected, dict(series)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('log')
    ap.add_argument('gen', choices=GENS)
    ap.add_argument('--by', default='cgroup,src,op')
    ap.add_argument('--metric', default='dc_miss_lat')
    args = ap.parse_args()
    by = args.by.split(',')
    for period, samples in runs(read_log(args.log)).items():
        run = [s.sample(GENS[args.gen]) for s in samples if not s.dropped]
        _, series = expect(run, by, args.metric)
        print(json.dumps({'period': period, 'seen': len(run), 'dropped': len(samples) - len(run),
                          'series': [{'labels': dict(zip(by, k)), 'samples': v.samples,
                                      'valid': v.valid, 'sum': v.sum,
                                      'buckets': sorted(v.buckets.items())}
                                     for k, v in sorted(series.items(), key=str)]}))


if __name__ == '__main__':
    main()
