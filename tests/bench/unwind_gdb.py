#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""unwind_gdb.py BUILD N COMMAND..: frames of N stacks of a command that runs for long, against gdb's.

gdb stops it now and then; registers and 64 KiB of the stack go to bench-unwind, and its chains are compared with those of
gdb, without the frames that gdb adds for inlined functions and tail calls, and those that it makes of random words: behind where
a goroutine or a thread of Go begins, and where Go's runtime came from another stack. A frame is the same if the address is: that of the
instruction, or the one before the return address. SYMBOLS=FILE in the environment: gdb reads that file, of which the command
is a stripped copy.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading

ORDER = 'r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi rax rip cs eflags rsp ss'.split()
ROOM, STEP = 65536, 512
LAST = tuple('runtime.' + name for name in ('goexit', 'mstart', 'rt0_go', 'mcall', 'morestack', 'systemstack', 'asmcgocall', 'gogo'))


def copy_stack(gdb, path):
    regs = [0x33 if r in ('cs', 'ss', 'eflags') else int(gdb.parse_and_eval('(long)$' + r)) % 2**64 for r in ORDER]
    data, sp = b'', regs[ORDER.index('rsp')]
    try:
        while len(data) < ROOM:
            data += bytes(gdb.selected_inferior().read_memory(sp + len(data), STEP))
    except gdb.MemoryError:
        pass
    with open(path, 'wb') as f:
        f.write(struct.pack(f'<{len(regs)}Q', *regs) + data)


def frames(gdb):
    out, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            out.append(frame.pc())
        if frame.name() in LAST:
            break
        try:
            frame = frame.older()
        except gdb.error:
            break
    return out


def inside():
    """In gdb's own Python."""
    import gdb  # pylint: disable=import-error
    work, tool, n = (os.environ[x] for x in ('WORK', 'TOOL', 'N'))
    for line in ('set pagination off', 'set confirm off', 'set language c', 'set backtrace past-main on', 'handle SIGUSR1 stop nopass',
                 'handle SIGCHLD nostop noprint', 'starti'):
        gdb.execute(line, to_string=True)
    if 'SYMBOLS' in os.environ:
        gdb.execute('symbol-file ' + os.environ['SYMBOLS'], to_string=True)
    pid, rng, theirs, files = gdb.selected_inferior().pid, random.Random(1), [], []
    for i in range(int(n)):
        # the first one once it has loaded its libraries
        timer = threading.Timer((0 if i else 1) + rng.uniform(0.02, 0.05), os.kill, (pid, 10))
        timer.start()
        gdb.execute('continue', to_string=True)
        timer.join()
        files.append(os.path.join(work, str(i)))
        copy_stack(gdb, files[-1])
        theirs.append(frames(gdb))
    ours = subprocess.run([tool, str(pid), *files], capture_output=True, text=True, check=True).stdout.splitlines()
    with open(os.path.join(work, 'result'), 'w', encoding='ascii') as f:
        json.dump([theirs, [[int(x, 16) for x in line.split()] for line in ours]], f)
    gdb.execute('kill')


def main():
    build, n, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, 'WORK': work, 'TOOL': os.path.abspath(os.path.join(build, 'bench-unwind')), 'N': n,
               'DEBUGINFOD_URLS': '', 'SHELL': '/bin/sh'}
        p = subprocess.run(['gdb', '-q', '-batch', '-nx', '-x', os.path.abspath(__file__), '--args', *command], env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        try:
            with open(os.path.join(work, 'result'), encoding='ascii') as f:
                theirs, ours = json.load(f)
        except FileNotFoundError:
            sys.exit(p.stdout.decode(errors='replace')[-2000:])
    total = same = whole = 0
    for want, got in zip(theirs, ours):
        got += [0] * len(want)
        equal = sum(a in (b, b - 1) for a, b in zip(got, want))
        total, same, whole = total + len(want), same + equal, whole + (equal == len(want))
    print(f'{command[0]}: {same} of {total} frames ({100 * same / total:.2f}%), {whole} of {len(theirs)} stacks')


if 'WORK' in os.environ:
    inside()
elif __name__ == '__main__':
    main()
