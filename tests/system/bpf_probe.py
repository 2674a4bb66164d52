# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Can this machine run BPF programs on perf events? Asked of the kernel alone, so that a broken
ibscope makes tests fail and not skip."""
import ctypes
import errno
import os
import platform
import struct

SYS = {'x86_64': {'bpf': 321, 'perf_event_open': 298}, 'aarch64': {'bpf': 280, 'perf_event_open': 241}}
# linux/bpf.h
BPF_MAP_CREATE, BPF_PROG_LOAD = 0, 5
BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE = 2, 1 << 10
BPF_PROG_TYPE_PERF_EVENT = 7
# linux/perf_event.h
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 1, 0
PERF_EVENT_IOC_SET_BPF = 0x40042408

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """A system call that returns a file descriptor."""
    fd = libc.syscall(SYS[platform.machine()][name], *args)
    if fd < 0:
        err = ctypes.get_errno()
        raise OSError(err, f'{name}: {os.strerror(err)}')
    return fd


def bpf(cmd, attr):
    buf = ctypes.create_string_buffer(attr, max(len(attr), 128))
    return call('bpf', cmd, buf, len(buf))


def probe():
    program = struct.pack('<BBhi', 0xb7, 0, 0, 0) + struct.pack('<BBhi', 0x95, 0, 0, 0)    # r0 = 0; exit
    insns = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b'GPL')
    fds = []
    try:
        fds.append(bpf(BPF_MAP_CREATE, struct.pack('<5I', BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE)))
        fds.append(bpf(BPF_PROG_LOAD, struct.pack('<IIQQ', BPF_PROG_TYPE_PERF_EVENT, len(program) // 8,
                                                  ctypes.addressof(insns), ctypes.addressof(licence))))
        attr = struct.pack('<IIQQ', PERF_TYPE_SOFTWARE, 112, PERF_COUNT_SW_CPU_CLOCK, 1000000)
        event = ctypes.create_string_buffer(attr, 112)
        fds.append(call('perf_event_open', event, -1, min(os.sched_getaffinity(0)), -1, 0))
        if libc.ioctl(fds[2], PERF_EVENT_IOC_SET_BPF, fds[1]):
            err = ctypes.get_errno()
            raise OSError(err, f'PERF_EVENT_IOC_SET_BPF: {os.strerror(err)}')
        if not os.path.exists('/sys/kernel/btf/vmlinux'):
            raise OSError(errno.ENOENT, 'the kernel has no BTF')
    finally:
        for fd in fds:
            os.close(fd)


def can_bpf():
    """(True, '') or (False, why not)"""
    if platform.machine() not in SYS:
        return False, f'unknown system call numbers on {platform.machine()}'
    try:
        probe()
    except OSError as e:
        return False, e.strerror
    return True, ''


if __name__ == '__main__':
    print(can_bpf())
