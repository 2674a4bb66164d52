# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bombs.py NAME FILE: write a small recording or perf.data that would take minutes or gigabytes of a careless reader."""
import ctypes
import functools
import json
import random
import struct
import sys
import zlib

BLOCK_MAX = 1 << 20
BATCH = 8192
META, SAMPLES, EVENTS, STACKS, LEDGER, END = range(1, 7)
COMM, MMAP, FORK, EXIT, CGROUP, LOST, RANK, REGION, SLAB = range(1, 10)
M64 = (1 << 64) - 1

zstd = ctypes.CDLL('libzstd.so.1')     # find_library() would start a compiler
zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
zstd.ZSTD_compressBound.argtypes = (ctypes.c_size_t,)
zstd.ZSTD_compress.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)


@functools.lru_cache(2)     # the same block again and again
def pack(data):
    out = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(data)))
    n = zstd.ZSTD_compress(out, len(out), data, len(data), 3)
    return out.raw[:n]


# --- our format: ibscope-recording(5)

class Recording:
    def __init__(self, **meta):
        head = struct.pack('<8sIHHII', b'IBSCOPE\n', 0x01020304, 1, 5, 40, 7)
        self.data = [head, struct.pack('<I', zlib.crc32(head))]
        self.seq = 0
        cpu = {'vendor': 'AuthenticAMD', 'family': 25, 'model': 17, 'ibs': True, 'ibs_caps': 0xbff}
        self.block(META, json.dumps({'source': 'sim', 'simulated': True, 'host': 'h', 'cpus': 4, 'cpu': cpu,
                                     'events': [{'name': 'ibs_op//', 'pmu': 'ibs_op', 'period': 100000, 'physical': True}], **meta}))

    def block(self, kind, raw, entries=1):
        raw = raw.encode() if isinstance(raw, str) else raw
        stored = pack(raw)
        head = struct.pack('<IIQHHIIII', 0x4b4c4289, 7, self.seq, kind, 1, len(stored), len(raw), entries,
                           zlib.crc32(stored))
        self.data += [head, struct.pack('<I', zlib.crc32(head)), stored]
        self.seq += 1

    def repeat(self, event, times):
        """As events() with one event so many times."""
        most = BLOCK_MAX // len(event)
        full = event * most
        for _ in range(times // most):
            self.block(EVENTS, full, most)
        if times % most:
            self.block(EVENTS, event * (times % most), times % most)

    def events(self, events):
        """Blocks as full as they may be."""
        block, n, size = [], 0, 0
        for e in events:
            if size + len(e) > BLOCK_MAX:
                self.block(EVENTS, b''.join(block), n)
                block, n, size = [], 0, 0
            block.append(e)
            n += 1
            size += len(e)
        if block:
            self.block(EVENTS, b''.join(block), n)

    def samples(self, n=BATCH, user_stack=0, **columns):
        """Each column a list of 8-byte values, or one value for all. user_stack: key of a chain + 1."""
        ids = {'time': 0, 'cgroup': 1, 'tgid': 2, 'tid': 3, 'cpu': 4, 'user': 8, 'reg1': 17, 'reg4': 20, 'reg5': 21,
               'reg6': 22}
        heads, planes = [], []
        data3 = 1 | 1 << 7 | 3 << 17 | 300 << 32  # a load that missed, with both addresses
        for name, v in {'time': 1000, 'cgroup': 1, 'tgid': 100, 'tid': 100, 'cpu': 0, 'reg1': 0x400000,
                        'reg4': data3, 'reg5': 0x7f0000000000, 'reg6': 0x1000000, **({'user': user_stack} if user_stack else {}),
                        **columns}.items():
            many = isinstance(v, list)
            heads.append(struct.pack('<BBBBBB2xQ', ids[name], 0, 0, 8 if many else 0, 0, 0, 0 if many else v))
            if many:
                words = struct.pack(f'<{n}Q', *v)
                planes += [words[k::8] for k in range(8)]
        heads.append(struct.pack('<BBBBBB2xQ', 0xff, 0, 0, 0, 0, 0, 0))
        self.block(SAMPLES, b''.join(heads + planes), n)

    def bytes(self):
        return b''.join(self.data)


def event(kind, fixed, *strings, flags=0, time=0):
    body = fixed + b''.join(s + b'\0' for s in strings)
    return struct.pack('<IHHQ', 16 + len(body), kind, flags, time) + body


def fork(tgid, tid, parent, parent_tid):
    return event(FORK, struct.pack('<IIII', tgid, tid, parent, parent_tid))


def comm(tid, name, tgid=None):
    return event(COMM, struct.pack('<II', tgid or tid, tid), name)


def mmap(tgid, start, size, path, flags=1, time=0):
    return event(MMAP, struct.pack('<IIQQQB20s3x', tgid, tgid, start, size, 0, 0, b''), path, flags=flags, time=time)


def cgroup(i, path, *names):
    return event(CGROUP, struct.pack('<Q', i), path, *names)


def region(tid, name, end=False, team=0, addr=0, number=0, omp=False):
    return event(REGION, struct.pack('<IIQII', tid, team, addr, number, 0), name,
                 flags=(8 if end else 0) | (16 if omp else 0))


def rank(tgid, n):
    return event(RANK, struct.pack('<IIiI', tgid, n, 0, 0))


INVERSE = [pow(factor, -1, 1 << 64) for factor in (0xbf58476d1ce4e5b9, 0x9e3779b97f4a7c15)]


def unhash(h):
    """The key whose hash in src/base/u64_map.h would be h, were it not seeded."""
    h ^= h >> 32
    h = h * INVERSE[0] & M64
    h ^= (h >> 29) ^ (h >> 58)
    h = h * INVERSE[1] & M64
    return h ^ h >> 32


def forks():
    r = Recording()
    r.repeat(fork(101, 101, 100, 100), 3000000)
    return r.bytes()


def constant_samples():
    r = Recording()
    for _ in range(3000):
        r.samples()
    return r.bytes()


def chains():
    """Few samples, each with the longest chain."""
    r = Recording(events=[{'name': 'ibs_op//', 'pmu': 'ibs_op', 'period': 100000, 'physical': True, 'stacks': True}])
    for key in range(4):
        r.block(STACKS, struct.pack('<iHHQ', key, 127, 0, 0) + b''.join(
            struct.pack('<Q', 0x400000 + (i * 977 + key) % 65536) for i in range(127)))
    for i in range(3000):
        r.samples(user_stack=1 + i % 4)
    return r.bytes()


def ranks():
    r = Recording(mpi={'ranks': 0xffffffff, 'job': '1'})
    r.events([rank(100, 0), rank(101, 0xfffffffe)])
    r.samples(100)
    return r.bytes()


def many_ranks():
    rng = random.Random(1)
    r = Recording(mpi={'ranks': 0xffffffff, 'job': '1'})
    r.events(rank(100 + i, rng.getrandbits(32)) for i in range(100000))
    r.samples(100)
    return r.bytes()


def regions():
    """Deep in regions with long names, one begins and ends again and again."""
    r = Recording()
    r.events([region(100, bytes([65 + i % 26]) * 8000) for i in range(31)] +
             [region(100, b'x'), region(100, b'', end=True)] * 300000)
    r.samples(100)
    return r.bytes()


def new_regions():
    """The same, of ever new names."""
    r = Recording()
    r.events([region(100, bytes([65 + i % 26]) * 8000) for i in range(31)] +
             [e for i in range(100000) for e in (region(100, b'%d' % i), region(100, b'', end=True))])
    r.samples(100)
    return r.bytes()


def deep_regions():
    r = Recording()
    r.repeat(region(100, b'r'), 400000)
    r.samples(100)
    return r.bytes()


def colliding_cgroups():
    r = Recording()
    ids = [unhash(i << 32) for i in range(200000)]
    r.events(cgroup(i, b'/a') for i in ids)
    for at in range(0, len(ids), BATCH):
        r.samples(len(ids[at:at + BATCH]), cgroup=ids[at:at + BATCH])
    return r.bytes()


def many_cgroups():
    r = Recording()
    r.events(cgroup(i + 1, b'/kubepods/pod%d/%064x' % (i, i), b'c%d' % i, b'p%d' % i, b'n') for i in range(200000))
    r.samples(100)
    return r.bytes()


def deep_cgroups():
    r = Recording()
    r.events(cgroup(i + 1, b'/a' * 4000 + b'/%d' % i) for i in range(20000))
    r.samples(100)
    return r.bytes()


def maps():
    """A process of many maps, whose many children each change one."""
    r = Recording()
    r.events([mmap(100, 0x10000 * i, 0x1000, b'/lib%d' % (i % 10), time=1) for i in range(100000)] +
             [e for i in range(100000) for e in
              (event(FORK, struct.pack('<IIII', 200 + i, 200 + i, 100, 100), time=2),
               mmap(200 + i, 0x10000 * i, 0x800, b'/x', time=2))])
    r.samples(100, time=3)
    return r.bytes()


def kernel_maps():
    """Samples of the kernel, whose map comes after very many."""
    r = Recording()
    r.events([mmap(100, 0x1000, 0x1000, b'/a')] * 300000 +
             [mmap(0, 0xffffffff81000000, 0x1000000, b'[kernel.kallsyms]', flags=3)])
    for _ in range(20):
        r.samples(reg1=[(0xffffffff81000000 + 16 * i) & M64 for i in range(BATCH)])
    return r.bytes()


def many_names():
    """Of no bomb: a recording that needs memory."""
    rng = random.Random(1)
    r = Recording()
    r.events(comm(100 + i, b'%016x' % rng.getrandbits(64)) for i in range(500000))
    r.samples(100)
    return r.bytes()


def addresses():
    """Samples that all touch other lines, pages and functions, of other threads."""
    rng = random.Random(1)
    r = Recording()
    for _ in range(8):
        r.samples(time=[rng.getrandbits(30) for _ in range(BATCH)], reg5=[rng.getrandbits(46) for _ in range(BATCH)],
                  reg1=[0x400000 + rng.getrandbits(20) for _ in range(BATCH)],
                  tgid=[rng.getrandbits(31) for _ in range(BATCH)], tid=[rng.getrandbits(31) for _ in range(BATCH)],
                  cpu=[rng.getrandbits(32) for _ in range(BATCH)])
    return r.bytes()


def times():
    """One sample at the beginning of time and one at its end."""
    r = Recording(clock={'monotonic_ns': 1, 'realtime_ns': 1})
    r.samples(2, time=[1, M64 >> 1])
    return r.bytes()


def metas():
    """A long description, again and again."""
    r = Recording()
    nested, long = '[' * 60000, json.dumps({'a': 'x' * 60000})
    for _ in range(3000):
        r.block(META, nested)
        r.block(META, long)
    r.samples(100)
    return r.bytes()


def ledgers():
    r = Recording()
    ledger = json.dumps({'seen': 1, 'filtered': {f'k{i}': 0 for i in range(5000)}})
    for _ in range(200):
        r.block(LEDGER, ledger)
    r.samples(100)
    return r.bytes()


def heads():
    """Heads of blocks with a length, one behind the other: each is read up to its end, which is not there."""
    r = Recording()
    r.samples(100)
    head = b''
    for i in range(20000):
        h = struct.pack('<IIQHHIIII', 0x4b4c4289, 7, 2 + i, EVENTS, 0, BLOCK_MAX, BLOCK_MAX, 1, 0)
        head += h + struct.pack('<I', zlib.crc32(h))
    return r.bytes() + head


RECORDINGS = {f.__name__: f for f in (forks, constant_samples, chains, ranks, many_ranks, regions, new_regions,
                                      deep_regions, colliding_cgroups, many_cgroups, deep_cgroups, maps, kernel_maps,
                                      addresses, times, metas, ledgers, heads)}


def merged(index, data=b''):
    index = index.encode() if isinstance(index, str) else index
    head = struct.pack('<8sIHHII', b'IBSMERG\n', 0x01020304, 1, 0, len(index), zlib.crc32(index))
    return head + struct.pack('<I', zlib.crc32(head)) + index + data


def parts(ranges, data):
    return merged(json.dumps({'recordings': [{'name': f'n{i}', 'offset': o, 'bytes': n}
                                             for i, (o, n) in enumerate(ranges)]}, separators=(',', ':')), data)


def small():
    r = Recording()
    r.samples(10)
    return r.bytes()


def overlapping_parts(n=16000):
    return parts([(0, len(small()))] * n, small())


def too_many_parts(n=50000):
    return parts([(i, 1) for i in range(n)], bytes(n))


def most_parts():
    data = [Recording(host=f'h{i}', clock={'monotonic_ns': 1 + i, 'realtime_ns': 1}).bytes() for i in range(16384)]
    at = 0
    ranges = []
    for d in data:
        ranges.append((at, len(d)))
        at += len(d)
    return parts(ranges, b''.join(data))


def long_index():
    """300,000 recordings of the same bytes: 11.5 MB."""
    return parts([(0, len(small()))] * 300000, small())


def nested_index():
    return merged('{"recordings":' + '[' * 3000000)


MERGED = {f.__name__: f for f in (overlapping_parts, too_many_parts, long_index, nested_index)}


# --- perf.data, as perf writes it to a pipe

def record(kind, body, misc=0):
    body += bytes(-len(body) % 8)
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


P_MMAP, P_LOST, P_COMM, P_EXIT, P_FORK, P_SAMPLE, P_MMAP2 = 1, 2, 3, 4, 7, 9, 10
P_ATTR, P_ROUND, P_UPDATE, P_FEATURE, P_COMPRESSED = 64, 68, 78, 80, 81
RAW, TIME, TID, IP, IDENTIFIER = 1 << 10, 4, 2, 1, 1 << 16


class Perf:
    def __init__(self, sample_type=IP | TID | TIME | RAW):
        attr = struct.pack('<IIQQQQQ', 10, 128, 0, 100000, sample_type, 0, 1 << 18).ljust(128, b'\0')
        self.data = [struct.pack('<QQ', 0x32454c4946524550, 16), record(P_ATTR, attr + struct.pack('<Q', 1)),
                     record(P_FEATURE, struct.pack('<QIII8s', 16, 1, 10, 8, b'ibs_op'))]

    def compressed(self, records):
        """As large as a record can be."""
        data = pack(records if isinstance(records, bytes) else b''.join(records))
        for at in range(0, len(data), 65000):
            self.data.append(struct.pack('<IHH', P_COMPRESSED, 0, 8 + len(data[at:at + 65000])) + data[at:at + 65000])

    def plain(self, records):
        self.data += records

    def bytes(self):
        return b''.join(self.data)


def p_tail(time):
    return struct.pack('<IIQ', 1, 1, time)


def p_sample(time):
    return record(P_SAMPLE, struct.pack('<QIIQI', 0x400000, 1, 1, time, 4 + 8 * 8) +
                  struct.pack('<I8Q', 0xbff, 1 << 18, 0x400000, 0, 0, 1 | 1 << 7 | 300 << 32, 0x7f0000, 0x1000, 0))


def p_forks():
    p = Perf()
    p.compressed(record(P_FORK, struct.pack('<IIIIQ', 2, 1, 2, 1, 0) + p_tail(1000)) * 4000000)
    return p.bytes()


def p_samples():
    p = Perf()
    p.compressed(p_sample(1000) * 1500000)
    return p.bytes()


def p_backwards():
    """Each record is older than the one before, so each is a run of its own."""
    p = Perf()
    p.compressed(p_sample(1000000 - i) for i in range(300000))
    return p.bytes()


def p_rounds():
    p = Perf()
    p.compressed(record(P_ROUND, b'') * 10000000)
    return p.bytes()


def p_names():
    """Names for events with as many ids as there may be."""
    attr = struct.pack('<IIQQQQQ', 10, 128, 0, 100000, IDENTIFIER | IP | TID | TIME | RAW, 0, 1 << 18).ljust(128, b'\0')
    p = Perf(IDENTIFIER | IP | TID | TIME | RAW)
    for i in range(60):
        p.plain([record(P_ATTR, attr + struct.pack('<4000Q', *(range(i * 4000, i * 4000 + 4000))))])
    p.plain([record(P_UPDATE, struct.pack('<QQ8s', 2, 1 << 40, b'name'))] * 200000)
    p.plain([p_sample(1000)])
    return p.bytes()


def p_features():
    """The memory of nodes, as often as there is room for it."""
    p = Perf()
    for _ in range(50):
        p.plain([record(P_FEATURE, struct.pack('<QQQQQQQ', 22, 1, 1 << 20, 1, 0, 8 * 65000, 8 * 65000) + bytes(65000))])
    p.plain([p_sample(1000)])
    return p.bytes()


def p_mappings():
    """PMUs by the million: each number of them is believed only as far as there are bytes."""
    p = Perf()
    p.plain([record(P_FEATURE, struct.pack('<QI', 16, 0xffffffff) + struct.pack('<II8s', 10, 8, b'ibs_op') * 4000)] * 3)
    p.plain([p_sample(1000)])
    return p.bytes()


PERF = {f.__name__: f for f in (p_forks, p_samples, p_backwards, p_rounds, p_names, p_features, p_mappings)}


if __name__ == '__main__':
    with open(sys.argv[2], 'wb') as out:
        out.write(globals()[sys.argv[1]]())
