#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Print QEMU_IBS_TASK for a kernel: current,pid,tgid,cgroups,dfl_cgrp,kn,id.

Standard input: the lines of /proc/kallsyms for current_task and pcpu_hot, an
empty line, the gzipped /sys/kernel/btf/vmlinux.
"""
import gzip
import struct
import sys

STRUCT, UNION = 4, 5
# u32s after a type's header; the kinds with a vlen have so many per member
FIXED = {1: 1, 3: 3, 14: 1, 17: 1}
PER_MEMBER = {4: 3, 5: 3, 6: 2, 13: 2, 15: 3, 19: 3}


def parse_btf(data):
    """Return [(name, kind, members)] by type id; members: (name, type, byte)."""
    magic, _, _, hdr, type_off, type_len, str_off, _ = struct.unpack_from('<HBBIIIII', data)
    if magic != 0xeb9f:
        raise ValueError('not BTF')

    def string(off):
        start = hdr + str_off + off
        return data[start:data.index(b'\0', start)].decode()

    types = [('void', 0, [])]
    pos, end = hdr + type_off, hdr + type_off + type_len
    while pos < end:
        name, info, _ = struct.unpack_from('<III', data, pos)
        kind, vlen, bitfields = info >> 24 & 0x1f, info & 0xffff, info >> 31
        pos += 12
        members = []
        if kind in (STRUCT, UNION):
            for i in range(vlen):
                mname, mtype, bits = struct.unpack_from('<III', data, pos + 12 * i)
                if bitfields:
                    bits &= 0xffffff
                members.append((string(mname), mtype, bits // 8))
        pos += 4 * (FIXED.get(kind, 0) + PER_MEMBER.get(kind, 0) * vlen)
        types.append((string(name), kind, members))
    return types


def offset(types, members, name):
    """The byte offset of a member, also inside anonymous structs and unions."""
    for mname, mtype, off in members:
        if mname == name:
            return off
        if not mname:
            inner = offset(types, types[mtype][2], name)
            if inner is not None:
                return off + inner
    return None


def main():
    text, _, packed = sys.stdin.buffer.read().partition(b'\n\n')
    symbols = {}
    for line in text.decode().splitlines():
        f = line.split()
        symbols[f[2]] = int(f[0], 16)
    types = parse_btf(gzip.decompress(packed))
    structs = {n: m for n, k, m in types if n and k == STRUCT}

    def member(struct_name, name):
        off = offset(types, structs[struct_name], name)
        if off is None:
            sys.exit('no %s in struct %s' % (name, struct_name))
        return off

    if 'current_task' in symbols:
        current = symbols['current_task']
    else:
        current = symbols['pcpu_hot'] + member('pcpu_hot', 'current_task')
    print(','.join(map(hex, (
        current, member('task_struct', 'pid'), member('task_struct', 'tgid'),
        member('task_struct', 'cgroups'), member('css_set', 'dfl_cgrp'),
        member('cgroup', 'kn'), member('kernfs_node', 'id')))))


if __name__ == '__main__':
    main()
