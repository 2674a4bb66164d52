# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an expression of --filter says of a sample of the log, and random expressions.

Written from the grammar and the list of terms that `ibscope help filter` prints and from AMD's
documents, not from ibscope's sources.
"""
import re

from oracle import bit, field

KIB4, MIB2, GIB1 = 1 << 12, 1 << 21, 1 << 30
MEM_LVL = {'l1': 1, 'l2': 2, 'l3': 3, 'unc': 8, 'cxl': 9, 'io': 10, 'any_cache': 11, 'lfb': 12,
           'mab': 12, 'ram': 13, 'pmem': 14}
LEVEL_OF = {'l1': 1, 'l2': 2, 'l3': 3, 'local-cache': 11, 'near-cache': 11, 'remote-cache': 11,
            'dram': 13, 'remote-dram': 13, 'pmem': 14, 'remote-pmem': 14, 'cxl': 9, 'remote-cxl': 9,
            'io': 10, 'uncached': 8, 'mab': 12}
NEAR = ('local-cache', 'near-cache')
FAR = ('remote-cache', 'remote-dram', 'remote-pmem', 'remote-cxl')
SOURCES = list(LEVEL_OF) + ['peer']
OPS = ['load', 'store', 'locked', 'prefetch', 'branch', 'other']


# --- values; None is absent

def tlb_known(s):
    """The dTLB bits need a linear address, with coded page sizes a physical one too."""
    return s.mem and bit(s.data3, 17) and (not s.cpu.page_size_coded or bit(s.data3, 18))


def mem_dtlb(s):
    if not tlb_known(s):
        return None
    if not bit(s.data3, 2):
        return 8 | 2
    return 16 | (4 if bit(s.data3, 3) else 2)


def page_size(s):
    if s.cpu.page_size_coded:
        if not (s.mem and bit(s.data3, 18)):
            return None
        return {0: KIB4, 1: MIB2, 2: GIB1}.get(field(s.data3, 4, 2))
    if not tlb_known(s) or (bit(s.data3, 2) and bit(s.data3, 3)):
        return None
    two, one = (bit(s.data3, 6), bit(s.data3, 19)) if bit(s.data3, 2) else (
        bit(s.data3, 4), bit(s.data3, 5))
    return {(0, 0): KIB4, (1, 0): MIB2, (0, 1): GIB1}.get((two, one))


def missed(s):
    """Bits about a miss, where erratum 1293 does not spoil them."""
    return s.dc_miss and not s.bad_l2


def data2_known(s):
    return s.load and missed(s) and bit(s.data3, 20)


def data_src(s):
    if not data2_known(s):
        return None
    return field(s.data2, 0, 3) | (field(s.data2, 6, 2) << 3 if s.cpu.zen4 else 0)


def from_memory(s):
    return data_src(s) in ((3, 6, 8) if s.cpu.zen4 else (3,))


def cache_hit_st(s):
    """1 owned, 0 modified: of caches; Zen 3 does not tell."""
    zen3 = s.cpu.family == 0x19 and (s.cpu.model <= 0x0f or 0x20 <= s.cpu.model <= 0x5f)
    if zen3 or data_src(s) not in ((1, 2, 5) if s.cpu.zen4 else (2,)):
        return None
    return bit(s.data2, 5)


def when(condition, value):
    return value if condition else None


def named(table, key):
    return table.get(key)


def phys(s):
    known = s.mem and bit(s.data3, 18) and (bit(s.data3, 17) or not s.cpu.zen4)
    return when(known and s.physad, s.physad)


def rip(s):
    return when(not bit(s.data, 38), s.rip)


def mode(s, kernel):
    ip = rip(s)
    return None if ip is None else int((ip >> 63) == kernel)


class Term:
    """value(sample); the names of values; numbers that split what the rig makes."""

    def __init__(self, value, names=None, numbers=(), order=True, also=(), flag=False):
        self.value, self.names, self.numbers = value, names or {}, list(numbers)
        self.order, self.also, self.flag = order, also, flag


def flag(value):
    return Term(value, numbers=(0, 1), flag=True)


def mem_flag(n):
    return flag(lambda s: when(s.mem, bit(s.data3, n)))


def branch_flag(n):
    return flag(lambda s: when(bit(s.data, 37), bit(s.data, n)))


def lat(name):
    return lambda s: s.metrics[name]


LAT = (1, 5, 20, 60, 100, 128, 200, 300, 500, 900)
TERMS = {
    'dc_miss_lat': Term(lat('dc_miss_lat'), numbers=LAT, also=('weight', 'weight1')),
    'ins_lat': Term(lambda s: when(s.metrics['dc_miss_lat'] is not None, s.metrics['tag_to_ret']),
                    numbers=LAT, also=('weight2',)),
    'tlb_refill_lat': Term(lat('tlb_refill_lat'), numbers=LAT),
    'tag_to_ret': Term(lat('tag_to_ret'), numbers=LAT, also=('tag_to_ret_ctr',)),
    'comp_to_ret': Term(lat('comp_to_ret'), numbers=LAT, also=('comp_to_ret_ctr',)),
    'mem_op': Term(lambda s: 2 if s.load else 4 if s.store else 1,
                   {'na': 1, 'load': 2, 'store': 4}, (1, 6)),
    'mem_lvl': Term(lambda s: LEVEL_OF.get(s.src), MEM_LVL, (2, 11), also=('mem_lvlnum',)),
    'mem_remote': Term(lambda s: when(s.src in LEVEL_OF, int(s.src in FAR or s.src == 'near-cache')),
                       {'remote': 1}, (0, 1)),
    'mem_hops': Term(lambda s: 1 if s.src in NEAR else 2 if s.src in FAR else None,
                     {'hops0': 1, 'hops1': 2}, (1, 2)),
    'mem_snoop': Term(lambda s: 16 if cache_hit_st(s) == 0 else None, {'hitm': 16}, (16,)),
    'mem_lock': Term(lambda s: when(s.mem, 1 + bit(s.data3, 15)), {'na': 1, 'locked': 2}, (1, 2)),
    'mem_dtlb': Term(mem_dtlb, {'l1_hit': 10, 'l2_hit': 18, 'l2_miss': 20, 'any_hit': 2,
                                'any_miss': 4}, (10, 18)),
    'page_size': Term(page_size, {'4k': KIB4, '2m': MIB2, '1g': GIB1}, (KIB4, MIB2),
                      also=('data_pgsz',)),
    'ip': Term(rip, numbers=(0x400000, 0x401800, 1 << 63, 0xffffffff81000000), also=('rip',)),
    'kernel': flag(lambda s: mode(s, 1)),
    'user': flag(lambda s: mode(s, 0)),
    'addr': Term(lambda s: when(s.mem and bit(s.data3, 17), s.linad), also=('dc_lin_ad',),
                 numbers=(0x1000, 1 << 32, 0x600000000000, 0x7f8000000000, 1 << 63)),
    'phys_addr': Term(phys, numbers=(0x1000, 1 << 29, 1 << 30, 0x4000000000, 0xfd00000000),
                      also=('dc_phys_ad',)),
    'pid': Term(lambda s: s.tgid),
    'tid': Term(lambda s: s.tid),
    'uid': Term(lambda s: s.uid, numbers=(0, 1000, 1001)),
    'gid': Term(lambda s: s.uid, numbers=(0, 1000, 1001)),     # the workers' are the same
    'cpu': Term(lambda s: s.vcpu, numbers=(0, 1)),
    'op': Term(lambda s: OPS.index(s.op), dict((n, i) for i, n in enumerate(OPS)), order=False),
    'data_src': Term(lambda s: when(s.src in SOURCES, s.src), dict((n, n) for n in SOURCES),
                     order=False, also=('src',)),
    'data_src_raw': Term(data_src, numbers=(1, 2, 3, 8)),
    'rmt_node': flag(lambda s: when(from_memory(s), bit(s.data2, 4))),
    'rmt_socket': flag(lambda s: when(s.cpu.zen6 and from_memory(s), bit(s.data2, 9))),
    'cache_hit_st': flag(cache_hit_st),
    'strm_st': flag(lambda s: when(s.cpu.zen6 and s.store, bit(s.data2, 8))),
    'ld_op': flag(lambda s: s.load),
    'st_op': flag(lambda s: s.store),
    'dc_miss': flag(lambda s: when(s.mem and not s.uncached, bit(s.data3, 7))),
    'l2_miss': flag(lambda s: when(missed(s), bit(s.data3, 20))),
    'l1tlb_miss': Term(lambda s: when(tlb_known(s), bit(s.data3, 2)), numbers=(0, 1), flag=True,
                       also=('dc_l1tlb_miss',)),
    'l2tlb_miss': flag(lambda s: when(tlb_known(s) and bit(s.data3, 2), bit(s.data3, 3))),
    'misaligned': mem_flag(8),
    'wc': mem_flag(13),
    'uncached': mem_flag(14),
    'locked': mem_flag(15),
    'no_mab': mem_flag(16),
    'swpf': mem_flag(21),
    'mem_width': Term(lambda s: when(s.mem and field(s.data3, 22, 4), 1 << field(s.data3, 22, 4) >> 1),
                      numbers=(1, 4, 8, 16, 32)),
    'open_reqs': Term(lambda s: when(missed(s) and field(s.data3, 26, 6), field(s.data3, 26, 6)),
                      numbers=(1, 8, 16, 40)),
    'brn_ret': flag(lambda s: bit(s.data, 37)),
    'brn_taken': branch_flag(35),
    'brn_misp': branch_flag(36),
    'brn_return': branch_flag(34),
    'brn_fuse': flag(lambda s: bit(s.data, 39)),
    'microcode': flag(lambda s: bit(s.data, 40)),
}
BY_NAME = {name: t for n, t in TERMS.items() for name in (n,) + tuple(t.also)}

COMPARE = {
    '==': lambda a, b: a == b, '!=': lambda a, b: a != b,
    '<': lambda a, b: a < b, '<=': lambda a, b: a <= b,
    '>': lambda a, b: a > b, '>=': lambda a, b: a >= b,
    '&': lambda a, b: bool(a & b),
}


# --- from text to a function of (sample, negated)

class Parser:
    """"," binds weakest, then "||", "&&", "!"."""

    TOKEN = re.compile(r'\s*(&&|\|\||==|!=|<=|>=|=~|[<>&!(),]|"[^"]*"|[\w./*?\[\]-]+)')

    def __init__(self, text, cgroups=None):
        self.cgroups = cgroups
        self.tokens = self.TOKEN.findall(text)
        if ''.join(self.tokens) != re.sub(r'\s', '', text):
            raise ValueError('not an expression: %r' % text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def parse(self):
        f = self.chain((',', '||', '&&'))
        if self.peek() is not None:
            raise ValueError('%r is left' % self.tokens[self.at:])
        return lambda s: f(s, False)

    def chain(self, ops):
        if not ops:
            return self.unary()
        parts = [self.chain(ops[1:])]
        while self.peek() == ops[0]:
            self.next()
            parts.append(self.chain(ops[1:]))
        every = ops[0] != '||'

        # under "!" the parts are negated one by one, so that what is absent stays false
        return lambda s, no: (all if every != no else any)(p(s, no) for p in parts)

    def unary(self):
        token = self.next()
        if token == '!':
            f = self.unary()
            return lambda s, no: f(s, not no)
        if token == '(':
            f = self.chain((',', '||', '&&'))
            if self.next() != ')':
                raise ValueError('no )')
            return f
        if token in ('cgroup', 'container'):
            return self.group(token, self.next(), self.next().strip('"'))
        term = BY_NAME[token.lower()]
        if self.peek() not in COMPARE:
            op, value = '==', 1
        else:
            op, text = self.next(), self.next().lower().replace('-', '_')
            names = {n.replace('-', '_'): v for n, v in term.names.items()}
            value = names[text] if text in names else int(text, 0)
        compare = COMPARE[op]

        def test(s, no):
            v = term.value(s)
            return v is not None and compare(v, value) != no
        return test

    def group(self, kind, op, text):
        ids = self.cgroups(kind, op == '=~', text)
        return lambda s, no: (s.cgroup in ids) != (no != (op == '!='))


def parse(text, cgroups=None):
    """cgroups(kind, is a pattern, text) -> ids, for terms about cgroups."""
    return Parser(text, cgroups).parse()


# --- random texts

def comparison(rng, more):
    """more: {term: [text of a value]} of things that only the guest knows."""
    name = rng.choice([n for n, t in TERMS.items() if t.names or t.numbers or n in more])
    term = TERMS[name]
    if term.flag and rng.random() < 0.6:
        return rng.choice((name,) + tuple(term.also))
    values = [str(n) for n in term.numbers] + [rng.choice((n, n.upper())) for n in term.names]
    values += [hex(n) for n in term.numbers if n > 4096] + more.get(name, [])
    value = rng.choice(values)
    ops = ['==', '!=', '<', '<=', '>', '>='] if term.order else ['==', '!=']
    if len(term.numbers) > 3:
        ops = ops[2:] * 4 + ops     # equality of a latency holds for too few
    if value.lower() in ('any_hit', 'any_miss'):
        ops = ['&']
    elif term.order and not term.flag and value != '0':
        ops.append('&')
    return '%s %s %s' % (rng.choice((name,) + tuple(term.also)), rng.choice(ops), value)


def random_text(rng, more, texts=(), size=None):
    """texts: whole comparisons besides."""
    size = size or rng.choice((1, 1, 2, 2, 3, 4, 6, 9))
    if size == 1:
        text = rng.choice(texts) if texts and rng.random() < 0.2 else comparison(rng, more)
        return '!(%s)' % text if rng.random() < 0.25 else text
    left = rng.randrange(1, size)
    parts = [random_text(rng, more, texts, n) for n in (left, size - left)]
    op = rng.choice(('&&', '&&', '||', '||', '||', ','))
    text = (' %s ' % op).join('(%s)' % p if rng.random() < 0.5 else p for p in parts)
    return '!(%s)' % text if rng.random() < 0.2 else text
