#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
types_perf.py [--build DIR] [--perf PERF] [--once] [-v] [SOURCE...]

The types and fields of `ibscope report --by type,field` beside those of `perf report -s typeoff`, for the same perf.data
and binaries: each SOURCE of tests/data is built and runs under valgrind, which names each instruction that accesses
memory, and how often. With --once all such instructions count the same, and nothing runs. PERF must know data types
(6.8 or later); by default it is the perf of Debian's unstable suite, fetched into the rig's cache. -v lists where both
name something else.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ['orders.c', 'orders.cpp', 'types.rs']
COMPILERS = {'.c': ['gcc', '-g', '-O2', '-w'], '.cpp': ['g++', '-g', '-O2', '-w'],
             '.rs': ['rustc', '-g', '-O', '--edition=2021', '-A', 'warnings']}
BASE = 0x555500000000       # of make_types.c
VALGRIND_BASE = 0x108000    # of a program that can be moved
SAMPLES = 20000
PERF_STACK = '(stack operation)', '(stack canary)'


def need(condition, text):
    if not condition:
        sys.exit('types_perf.py: ' + text)


def output(*args, **kw):
    p = subprocess.run(args, capture_output=True, text=True, errors='replace', **kw)
    need(p.returncode == 0, f'{" ".join(args)}: {p.stderr[-500:]}')
    return p.stdout


def knows_types(perf):
    """Does a perf know data types? Then its help has the key."""
    p = subprocess.run([*perf, 'report', '-h'], capture_output=True, text=True)
    return 'typeoff' in p.stdout + p.stderr


def find_perf(fetch=False):
    """As a command, or None. The rig's cache keeps a perf with its libraries."""
    cache = os.environ.get('IBSRIG_CACHE') or os.path.join(
        os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'qemu-ibs')
    if fetch:
        output(os.path.join(TESTS, 'vm/rig/perf-tree.sh'), '7.2')
    found = [['perf']] if shutil.which('perf') else []
    for version in ('6.12', '7.2'):
        tree = os.path.join(cache, 'perf', version, 'opt/perf')
        if os.path.exists(tree):
            found.insert(0, [tree + '/ld-linux-x86-64.so.2', '--library-path', tree, tree + '/perf'])
    return next(filter(knows_types, found), None)


def build(source, folder):
    program = os.path.join(folder, source)
    output(*COMPILERS[os.path.splitext(source)[1]], '-o', program, os.path.join(TESTS, 'data', source))
    return program


def once(program):
    """All instructions that access memory, once each, as of run_counted()."""
    found = {}
    for m in re.finditer(r'(?m)^ +([0-9a-f]+):\t(\S+) +([^#\n]*)', output('objdump', '-d', '--no-show-raw-insn', program)):
        if '(' in m[3] and not re.match('lea|nop|call|jmp|cs|data16|notrack|bnd', m[2]):
            found[int(m[1], 16), 'store' if m[3].rstrip().endswith(')') and m[2].startswith('mov') else 'load', 0] = 1
    return found


def run_counted(program):
    """Accesses of a program that runs: (instruction, load or store, bytes) to how often, and an address of data."""
    counts, data, at = collections.Counter(), {}, 0
    end = VALGRIND_BASE + os.path.getsize(program)
    p = subprocess.Popen(['valgrind', '--tool=lackey', '--trace-mem=yes', program], stderr=subprocess.PIPE,
                         stdout=subprocess.DEVNULL)
    for line in p.stderr:
        if line.startswith(b'I'):
            at = int(line[3:line.index(b',')], 16)
            continue
        if not VALGRIND_BASE <= at < end or line[1:2] not in b'LSM' or line[:1] != b' ':
            continue
        where, size = line[3:].split(b',')
        key = at - VALGRIND_BASE, 'load' if line[1:2] == b'L' else 'store', int(size)
        counts[key] += 1
        data[key] = int(where, 16)
    need(p.wait() == 0 and counts, f'{program} does not run in valgrind')
    return counts, {k: v - VALGRIND_BASE if VALGRIND_BASE <= v < end else 0 for k, v in data.items()}


def record(make, program, counts, data):
    scale = min(1, SAMPLES / sum(counts.values()))
    lines = [f'{ip:x} {data.get((ip, op, size), 0):x} {op} {round(n * scale)} 0 {size.bit_length()}'
             for (ip, op, size), n in sorted(counts.items()) if round(n * scale)]
    subprocess.run([make, program + '.ibs', program], input='\n'.join(lines) + '\n', text=True, check=True)


def ours(ibscope, file):
    """By address: type or None, field or None, what the table has for a type, samples."""
    j = json.loads(output(ibscope, 'report', file, '--by', 'ip,type,field', '--json'))
    answers = {}
    for row in j['rows']:
        label = row['labels']
        name = None if label['type'].startswith('[') else label['type']
        answers[int(label['ip'], 16) - BASE] = name, label['field'], label['type'], row['samples']
    return answers


def theirs(perf, file, program):
    """By address: type or None, field or None, whether it is called an operation of the stack."""
    at = {}
    for m in re.finditer(r'(?m)^([0-9a-f]+) [tTwWiI] (.*)$', output('nm', '-C', program)):
        at.setdefault(m[2], int(m[1], 16))
    text = output(*perf, 'report', '-i', file, '--stdio', '-s', 'symoff,typeoff', '-n')
    answers = {}
    for line in text.splitlines():
        m = re.match(r' *[0-9.]+% +(\d+) +\[\.\] (.*?)\+(0x[0-9a-f]+) +(\([^()]*\)|(.*) \+(?:0x[0-9a-f]+|0) \((.*)\))$', line.rstrip())
        if m and m[2] in at:
            name = m[5] or m[4]
            answers[at[m[2]] + int(m[3], 16)] = None if name.startswith('(') else name, m[6], name in PERF_STACK
    return answers


def plain(name):
    """A type as both write it: without namespaces, `struct` and typedefs of numbers."""
    name = re.sub(r'\b(struct|class|union|enum|const) ', '', name or '')
    return re.sub(r'(\w|\{[^}]*\})+::', '', name).replace(' ', '').removesuffix('[]')


def compare(a, b):
    """Of two answers with types, whether they agree."""
    if plain(a[0]) != plain(b[0]):
        return 'type'
    mine, other = (re.sub(r'\[\]|:\d+$|no field', '', x or '').split('.')[-1] for x in (a[1], b[1]))
    return 'same' if mine == other else 'field'


def count(ibscope, perf, program, verbose=False):
    """
    Samples of the program's recording by who names a type: both the same type and field, both but another field or type,
    only us or perf; and those that we or perf call stack.
    """
    file = program + '.ibs'
    output(ibscope, 'export', '-i', file, '--perf-data', file + '.data')
    other = theirs(perf, file + '.data', program)
    n = collections.Counter()
    for ip, (name, field, label, samples) in sorted(ours(ibscope, file + '.data').items()):
        b = other.get(ip, (None, None, False))
        kind = compare((name, field), b) if name and b[0] else 'us' if name else 'perf' if b[0] else 'none'
        n += collections.Counter({kind: samples, 'all': samples, 'perf stack': samples * b[2],
                                  'our stack': samples * (label == '[stack_slot]')})
        if verbose and kind != 'same':
            print(f'  {kind:5} {samples:6} {ip:#8x}  {label}: {field}  |  {b[0]}: {b[1]}')
    return n


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--perf')
    p.add_argument('--once', action='store_true')
    p.add_argument('-v', action='store_true')
    p.add_argument('sources', nargs='*', default=SOURCES)
    opts = p.parse_args()
    perf = [opts.perf] if opts.perf else find_perf() or find_perf(fetch=True)
    need(perf, 'no perf with data types')
    print(f'{"program":12}{"samples":>9}{"ibscope":>9}{"+ stack":>9}{"perf":>9}{"+ stack":>9}{"same":>9}{"field":>9}'
          f'{"type":>9}{"only us":>9}{"only perf":>10}')
    with tempfile.TemporaryDirectory() as folder:
        for source in opts.sources:
            program = build(source, folder)
            counts, data = (once(program), {}) if opts.once else run_counted(program)
            make, ibscope = (os.path.join(opts.build, name) for name in ('tests/unit/make_types', 'ibscope'))
            record(make, program, counts, data)
            n = count(ibscope, perf, program, opts.v)
            both = n['same'] + n['field'] + n['type']
            shares = (both + n['us'], both + n['us'] + n['our stack'], both + n['perf'], both + n['perf'] + n['perf stack'],
                      n['same'], n['field'], n['type'], n['us'], n['perf'])
            print(f'{source:12}{n["all"]:9}' + ''.join(f'{100 * v / n["all"]:8.1f}%' for v in shares))


if __name__ == '__main__':
    main()
