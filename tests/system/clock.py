# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an interrupt of the software clock costs, which drives the simulated source."""
import ctypes
import os
import statistics
import struct
import time
import unittest

DEAR_US = 15
SYS_PERF_EVENT_OPEN = 298   # of x86-64
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 1, 0
PERIOD_NS = 200000


def open_clock():
    """The clock of this thread, which interrupts it and stores nothing."""
    attr = struct.pack('IIQQQQQIIQ', PERF_TYPE_SOFTWARE, 64, PERF_COUNT_SW_CPU_CLOCK, PERIOD_NS, 0, 0, 0, 0, 0, 0)
    return ctypes.CDLL(None).syscall(SYS_PERF_EVENT_OPEN, attr, 0, -1, -1, 0)


def spin(seconds=0.05):
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        n += 1
    return n


def measure():
    """Return: microseconds of CPU time, or 0 if it cannot be measured."""
    pairs = []
    for _ in range(7):
        without = spin()
        fd = open_clock()
        if fd < 0:
            return 0
        pairs.append(max(0, 1 - spin() / without) * PERIOD_NS / 1000)
        os.close(fd)
    return statistics.median(pairs)


def interrupt_us():
    """Measured once, with all CPUs at it, and then in the environment; 0 if it cannot be."""
    if 'IBSCOPE_CLOCK_US' in os.environ:
        return float(os.environ['IBSCOPE_CLOCK_US'])
    # CPUs of a virtual machine may be slower, and their timers dearer, when none is idle
    beside = []
    for _ in range(len(os.sched_getaffinity(0)) - 1):
        beside.append(os.fork())
        if not beside[-1]:
            try:
                measure()
            finally:
                os._exit(0)
    us = measure()
    for pid in beside:
        os.waitpid(pid, 0)
    os.environ['IBSCOPE_CLOCK_US'] = f'{us:.1f}'
    return us


def every(ns):
    """A decorator of tests that need an interrupt each so many nanoseconds on each CPU, and CPU time beside them."""
    us = interrupt_us()
    return unittest.skipIf(us > DEAR_US and us * 1000 > ns / 2,
                           f'a timer interrupt costs {us:.0f} us here, too much for one each {ns / 1000:.0f} us')
