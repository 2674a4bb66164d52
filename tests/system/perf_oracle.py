# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What perf says of a perf.data, in the lines of tests/unit/perf_data_dump.c.

    perf_oracle.py [--perf PERF] FILE > TEXT
"""
import argparse
import re
import subprocess
import sys

EVENT = re.compile(r'(-?\d+) (\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_(\w+)(.*)')
DECODED = re.compile(r'(?:ibs_|ic_ibs_|Ibs)\w+:\t')
CHAIN = re.compile(r'\.\.\.\.\. *\d+: ([0-9a-f]{16})( \(PERF_CONTEXT_\w+\))?$')
SAMPLE = re.compile(r'\(IP, (0x[0-9a-f]+)\): (-?\d+)/(-?\d+): (0x[0-9a-f]+|0) period')
MMAP = re.compile(r' (-?\d+)/(-?\d+): \[(\w+)\((\w+)\) @ (\w+)(?: <(\w*)>| \S+ \S+ \S+)?\]: (\S+) (.*)')
COMM = re.compile(r'( exec)?: (.*):(-?\d+)/(-?\d+)$')
TASK = re.compile(r'\((-?\d+):(-?\d+)\):\((-?\d+):(-?\d+)\)')
KERNEL = 1


def header(perf, path):
    """The line of the machine, if perf reports it."""
    text = subprocess.run(perf + ['report', '--header-only', '-i', path], stdout=subprocess.PIPE,
                          text=True, stderr=subprocess.DEVNULL).stdout
    names = ('hostname', 'os release', 'cmdline', 'nrcpus online', 'cpuid')
    found = [re.search(r'^# %s : (.*?) ?$' % name, text, re.M) for name in names]
    if all(found):
        yield 'info ' + '|'.join(m.group(1) for m in found)


def events(perf, path):
    """Event and cgroup of each sample, in the order in which perf has them."""
    for fields in 'pid,tid,time,event,cgroup', 'pid,tid,time,event':
        p = subprocess.run(perf + ['script', '--ns', '-F', fields, '-i', path], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if p.returncode == 0:
            break
    else:
        raise RuntimeError('perf script -i %s: exit %d' % (path, p.returncode))
    for line in p.stdout.splitlines():
        m = re.match(r'\s*-?\d+/-?\d+ +\S+: +(\S+): *(\S*)$', line)
        if m:
            yield m.group(1), '-' if m.group(2) in ('', 'unknown') else m.group(2)


def hexadecimal(text):
    return '%#x' % int(text, 16) if int(text, 16) else '0'


def build_ids(perf, path):
    """{path: build id} of the header."""
    text = subprocess.run(perf + ['buildid-list', '-i', path], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=True).stdout
    found = re.findall(r'^\s*([0-9a-f]+) (.*)$', text, re.M)
    return {name: ident for ident, name in found}


def mmap_line(time, rest, misc, ids):
    tgid, tid, start, length, offset, ident, prot, path = MMAP.match(rest).groups()
    kernel = 'kernel ' if misc & 7 == KERNEL else ''
    executable = 'x' if not misc & 1 << 13 else '-'
    if not ident:
        known = '[kernel.kallsyms]' if path.startswith('[kernel.kallsyms]') else path
        ident = ids.get(known, '')
    return 'mmap %s %s/%s %s %s %s %s%s %s %s' % (
        time, tgid, tid, hexadecimal(start), hexadecimal(length), hexadecimal(offset), kernel,
        executable, ident, path)


def sample_lines(time, cpu, rest, decoded, event, cgroup):
    misc, tgid, tid, ip = SAMPLE.match(rest).groups()
    kernel = 'kernel' if int(misc, 16) & 7 == KERNEL else 'user'
    yield from decoded
    yield 'sample %s cpu %s %s/%s ip %s cgroup %s event %s %s' % (
        time, cpu, tgid, tid, hexadecimal(ip), cgroup, event, kernel)


def lines(perf, path):
    """The oracle's lines."""
    ids = build_ids(perf, path)
    samples = list(events(perf, path))
    ibs_only = all('ibs_' in event for event, _ in samples)
    names = iter(samples)
    yield from header(perf, path)
    dump = subprocess.Popen(perf + ['report', '-D', '-i', path], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors='replace')
    decoded, misc, ours = [], 0, False
    for line in dump.stdout:
        line = line.rstrip('\n')
        if line.startswith('.  0000:'):
            misc = int.from_bytes(bytes.fromhex(line[22:27]), 'little')
            decoded, ours = [], False
            continue
        if DECODED.match(line):
            decoded.append(line)
            continue
        chain = CHAIN.match(line)
        if chain and ours:
            yield '  ' + chain.group(1)
            continue
        event = EVENT.match(line)
        if not event:
            continue
        cpu, time, kind, rest = event.groups()
        ours = False
        if kind == 'SAMPLE':
            # of a pipe perf decodes nothing
            name = next(names)
            ours = decoded or ibs_only
            if ours:
                yield from sample_lines(time, cpu, rest, decoded, *name)
        elif kind in ('MMAP', 'MMAP2'):
            yield mmap_line(time, rest, misc, ids)
        elif kind == 'COMM':
            executed, name, tgid, tid = COMM.match(rest).groups()
            yield 'comm %s %s/%s%s %s' % (time, tgid, tid, executed or '', name)
        elif kind in ('FORK', 'EXIT'):
            yield '%s %s %s/%s of %s/%s' % ((kind.lower(), time) + TASK.match(rest).groups())
        elif kind == 'CGROUP':
            yield 'cgroup %s %s' % (time, rest.split(':', 1)[1].strip())
        elif kind == 'LOST':
            yield 'lost %s %s' % (time, rest.split('lost:')[1].strip())
        decoded = []
    if dump.wait():
        raise RuntimeError('perf report -D %s: exit %d' % (path, dump.returncode))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('--perf', default='perf', help='command, with its arguments')
    ap.add_argument('file')
    args = ap.parse_args()
    for line in lines(args.perf.split(), args.file):
        print(line)


if __name__ == '__main__':
    sys.exit(main())
