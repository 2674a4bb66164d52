# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an address of a guest's kernel means: function, source line of a BPF program, map and member."""
import bisect
import collections
import gzip
import json
import os
import struct
import subprocess
import tempfile

LINE, PAGE = 64, 4096
STACK_BYTES = 16384                 # of a task, aligned
MAP_FD, MAP_VALUE = 1, 2            # what an immediate is, in the dump of a program
MAP_HEADER = 512                    # at most, of a struct bpf_map with what its kind adds
CPU_ENTRY_AREA = range(0xfffffe0000000000, 0xffffff0000000000)
WRAP = 1 << 64
HIGH = 0xffff000000000000
# movabs to registers that stand for none of BPF's: bounds and bases that the compiler adds
SCRATCH = (b'\x49\xb9', b'\x49\xbb', b'\x49\xbc')
ARRAY = 2                           # BPF_MAP_TYPE_ARRAY
# what the value of a map holds, where its declaration does not say
KINDS = {'state': 'ibs_state'}
TYPES = '#include <ibscope/config.h>\n' + ''.join(
    'struct %s a_%s;\n' % (kind, kind) for kind in KINDS.values())


class Symbols:
    """/proc/kallsyms, gzipped."""

    def __init__(self, path):
        self.address, found = {}, []
        with gzip.open(path, 'rt') as f:
            for line in f:
                value, _, name = line.split()[:3]
                value = int(value, 16)
                found.append((value, name))
                self.address.setdefault(name, value)
        found.sort()
        self.values, self.names = [v for v, _ in found], [n for _, n in found]

    def at(self, address):
        """(name, offset), or None."""
        i = bisect.bisect(self.values, address) - 1
        if i < 0 or address - self.values[i] > 1 << 20:
            return None
        return self.names[i], address - self.values[i]


class Btf:
    def __init__(self, path):
        text = subprocess.run(['bpftool', '-j', 'btf', 'dump', 'file', path], check=True,
                              stdout=subprocess.PIPE).stdout
        self.types = {t['id']: t for t in json.loads(text)['types']}
        self.by_name = {t['name']: t['id'] for t in self.types.values()
                        if t['kind'] in ('STRUCT', 'DATASEC')}
        with open(path, 'rb') as f:
            data = f.read()
        if data[:2] == b'\x9f\xeb':        # not an object file
            header, at = struct.unpack_from('<I', data, 4)[0], struct.unpack_from('<I', data, 16)[0]
            self.strings = data[header + at:]

    def string(self, offset):
        return self.strings[offset:self.strings.index(b'\0', offset)].decode()

    def plain(self, ident):
        t = self.types.get(ident, {'kind': 'VOID'})
        while t['kind'] in ('TYPEDEF', 'CONST', 'VOLATILE', 'VAR', 'RESTRICT', 'TYPE_TAG'):
            t = self.types.get(t['type_id'], {'kind': 'VOID'})
        return t

    def size(self, ident):
        t = self.plain(ident)
        if t['kind'] == 'ARRAY':
            return t['nr_elems'] * self.size(t['type_id'])
        return 8 if t['kind'] == 'PTR' else t.get('size', 0)

    def element(self, ident):
        return self.size(self.plain(ident)['type_id'])

    def member(self, ident, offset):
        """The path of the member at an offset."""
        t = self.plain(ident)
        if t['kind'] == 'ARRAY' and self.size(t['type_id']):
            i, rest = divmod(offset, self.size(t['type_id']))
            return '[%d]%s' % (i, self.member(t['type_id'], rest))
        if t['kind'] == 'DATASEC':
            parts = [(v['offset'], self.types[v['type_id']]['name'], v['type_id']) for v in t['vars']]
        elif t['kind'] in ('STRUCT', 'UNION'):
            parts = [(m['bits_offset'] // 8, m['name'], m['type_id']) for m in t['members']]
        else:
            return ''
        for at, name, ident in parts:
            open_end = self.plain(ident)['kind'] == 'ARRAY' and not self.size(ident)
            if open_end and offset >= at and self.element(ident):
                i, rest = divmod(offset - at, self.element(ident))
                return '.%s[%d]%s' % (name, i, self.member(self.plain(ident)['type_id'], rest))
            if at <= offset < at + self.size(ident):
                name = '' if name == '(anon)' else '.' + name
                return name + self.member(ident, offset - at)
        return ''


class Program:
    """What jitted.c prints of a program, with addresses of maps: values {start: (map id, offset)}."""

    def __init__(self, o):
        raw = {k: bytes.fromhex(o[k]) for k in ('jited', 'xlated', 'ksyms', 'lens', 'lines', 'at', 'btf')
               if k in o}
        self.name = o['program']
        words = lambda b, fmt: [x[0] for x in struct.iter_unpack(fmt, b)]
        self.functions = list(zip(words(raw['ksyms'], '<Q'), words(raw['lens'], '<I')))
        with tempfile.NamedTemporaryFile() as f:
            f.write(raw['btf'])
            f.flush()
            self.btf = Btf(f.name)
        at = words(raw['at'], '<Q')
        self.lines = sorted(zip(at, struct.iter_unpack('<IIII', raw['lines'])))
        self.maps, self.values = {}, {}
        self.find_maps(raw['jited'], raw['xlated'])

    def find_maps(self, jited, xlated):
        """The n-th immediate of 64 bits of the program is the n-th of its machine code."""
        want, i = [], 0
        while i < len(xlated):
            code, regs, _, low = struct.unpack_from('<BBhi', xlated, i)
            i += 8
            if code != 0x18:
                continue
            high = struct.unpack_from('<i', xlated, i + 4)[0]
            i += 8
            value = (high << 32 | low & 0xffffffff) & (1 << 64) - 1
            if regs >> 4 in (MAP_FD, MAP_VALUE):
                want.append((regs >> 4, low, high))
            elif HIGH <= value < 0xffffffff80000000:
                want.append((0, 0, 0))
        found = []
        for i in range(len(jited) - 9):
            if jited[i] in (0x48, 0x49) and 0xb8 <= jited[i + 1] <= 0xbf:
                value = struct.unpack_from('<Q', jited, i + 2)[0]
                if value >= HIGH and jited[i:i + 2] not in SCRATCH:
                    found.append(value)
        if len(want) != len(found):
            print('# %s: %d immediates, but %d in its machine code: maps stay unnamed' % (
                self.name, len(want), len(found)))
            return
        for (kind, ident, offset), value in zip(want, found):
            if kind == MAP_VALUE:
                self.values[ident] = value - offset
            elif kind == MAP_FD:
                self.maps[ident] = value

    def bytes(self):
        return sum(n for _, n in self.functions)

    def holds(self, pc):
        return any(start <= pc < start + n for start, n in self.functions)

    def source(self, pc):
        """FILE:LINE, or ''."""
        i = bisect.bisect(self.lines, (pc + 1,)) - 1
        if i < 0:
            return ''
        _, name, _, where = self.lines[i][1]
        return '%s:%d' % (os.path.basename(self.btf.string(name)), where >> 10)


class Names:
    """Of one run: its programs and maps, and the addresses that its samples tell.

    task_offsets: of the current task among what is per CPU, of pid and of tgid in it; types: Btf."""

    def __init__(self, symbols, objects, task_offsets, types):
        self.symbols, self.types = symbols, types
        self.programs = [Program(o) for o in objects if 'program' in o]
        self.maps = {o['id']: o for o in objects if 'map' in o}
        self.stack = self.task = self.per_cpu = None
        self.votes = collections.Counter()
        self.task_offsets = task_offsets
        for p in self.programs:
            for ident, header in p.maps.items():
                # all of ours can be mapped, so values begin with the page behind the header
                if ident in self.maps and self.maps[ident]['type'] == ARRAY:
                    p.values.setdefault(ident, (header + PAGE - 1) // PAGE * PAGE)

    def learn(self, entries):
        """Where stack, task and the CPU's own variables are, from what is known to touch them."""
        self.vote(entries)
        for e in entries:
            if e.code:
                continue
            function = self.function(e.pc)
            if function == 'asm_exc_nmi' and e.writes and e.line not in CPU_ENTRY_AREA:
                self.stack = e.line // STACK_BYTES * STACK_BYTES
            if function == 'bpf_get_current_pid_tgid' and not self.task:
                first = e.line + (e.bytes & -e.bytes).bit_length() - 1
                if bin(e.bytes).count('1') == 8 and first not in CPU_ENTRY_AREA:
                    self.task = first - min(self.task_offsets[1:])

    def vote(self, entries):
        """What to add to the value of a symbol that is per CPU: what is touched like the current task
        may be it; the right base has most other lines among the variables."""
        lines = {e.line for e in entries if not e.code}
        start, end = (self.symbols.address['__per_cpu_' + x] for x in ('start', 'end'))
        current = self.task_offsets[0]
        for e in entries:
            base = (e.line - current // LINE * LINE) % WRAP
            if not e.code and e.bytes >> current % LINE & 0xff == 0xff and base % PAGE == 0:
                self.votes[base] += sum(start <= (x - base) % WRAP < end for x in lines)

    def function(self, pc):
        for p in self.programs:
            if p.holds(pc):
                return p.name
        found = self.symbols.at(pc)
        return found[0] if found else '%#x' % pc

    def who(self, pc):
        for p in self.programs:
            if p.holds(pc):
                return '%s %s' % (p.name, p.source(pc))
        return self.function(pc)

    def data(self, e):
        """The name of a line of data."""
        if self.stack is not None and self.stack <= e.line < self.stack + STACK_BYTES:
            return 'stack'
        if e.line in CPU_ENTRY_AREA:
            return 'cpu_entry_area (stacks of exceptions)'
        for p in self.programs:
            for ident, start in p.values.items():
                m = self.maps.get(ident)
                if m and start <= e.line + LINE - 1 and e.line < start + m['value_size'] * m['max_entries']:
                    return self.value(p, m, e, start)
            for ident, start in p.maps.items():
                if start <= e.line < start + MAP_HEADER:
                    return 'struct bpf_map of %s +%d' % (self.maps[ident]['map'], e.line - start)
        if self.task and self.task <= e.line + LINE - 1 < self.task + STACK_BYTES:
            return 'task_struct +%d' % (e.line - self.task)
        first = e.line + (e.bytes & -e.bytes).bit_length() - 1
        if self.per_cpu:
            own = (first - self.per_cpu) % WRAP
            if self.symbols.address['__per_cpu_start'] <= own < self.symbols.address['__per_cpu_end']:
                return 'per CPU: %s +%d' % self.symbols.at(own)
        if e.line >= 0xffffffff80000000:
            found = self.symbols.at(first)
            if found:
                return '%s +%d' % found
        return 'memory of ' + self.function(e.pc)

    def value(self, program, m, e, start):
        offsets = [e.line + i - start for i in range(LINE) if e.bytes >> i & 1]
        name, size = m['map'], m['value_size']
        btf = self.types if name in KINDS else program.btf
        kind = KINDS.get(name) or name[name.find('.'):]
        if kind in btf.by_name:
            stride = size if name == 'state' else btf.size(btf.by_name[kind])
            members = [btf.member(btf.by_name[kind], o % (stride or size)) or '+%d' % o for o in offsets]
        else:
            members = ['value %d, word %d' % (o // size, o % size // 8) for o in offsets]
        return '%s %s' % (name, ' '.join(collections.OrderedDict.fromkeys(members)))
