#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""coverage.py --build DIR [--layers unit,cli,system]: run tests of a build that is instrumented for llvm-cov, and print the
lines, branches and functions that they reach, by room. DIR/coverage gets pages of the source, and least.txt: the functions
with the most lines that no test reaches.

Each process adds to one of a few files of its program (%m in LLVM_PROFILE_FILE), which it locks, so tests may run at the
same time. Processes that are killed, and the one that reads names, which has no files, are not counted.
"""
import argparse
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
LEAST = 60      # functions in least.txt


def programs(build):
    """The instrumented ones, first those that users run."""
    found = [os.path.join(build, name) for name in ('ibscope', 'ibscope-exporter', 'tests/cli/run_each')]
    for layer in 'unit', 'bpf', 'fuzz', 'system':
        found += sorted(p for p in glob.glob(os.path.join(build, 'tests', layer, '*')) if '.' not in os.path.basename(p))
    return [p for p in found if os.access(p, os.X_OK)]


def room_of(path):
    """src/data/report/x.c: data/report; src/base/x.c: base; None: not the program's."""
    parts = os.path.relpath(path, TOP).split('/')
    if parts[0] == 'src':
        return '/'.join(parts[1:-1][:2])
    return '/'.join(parts[:2]) if parts[0] in ('include', 'tools') else None


def export(llvm_cov, objects, profile):
    """What llvm-cov knows: {path: summary}, and (lines not reached, lines, name, path) of functions."""
    command = [llvm_cov, 'export', '-instr-profile', profile, objects[0]]
    for path in objects[1:]:
        command += ['-object', path]
    data = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)['data'][0]
    files = {f['filename']: f['summary'] for f in data['files'] if room_of(f['filename'])}
    # a function of a header or of a library is in each program once
    lines = collections.defaultdict(dict)
    for f in data['functions']:
        path = f['filenames'][0]
        if not room_of(path):
            continue
        reached = lines[path, re.sub('.*:', '', f['name'])]
        for first, _, last, _, count, file, _, kind in f['regions']:
            if file == 0 and kind == 0:
                for n in range(first, last + 1):
                    # of regions inside each other the innermost, the later one, counts
                    reached.setdefault((n, id(f)), 0)
                    reached[n, id(f)] = count
    functions = []
    for (path, name), reached in lines.items():
        best = collections.Counter()
        for (n, _), count in reached.items():
            best[n] = max(best[n], count)
        functions.append((sum(not c for c in best.values()), len(best), name, path))
    return files, sorted(functions, reverse=True)


def table(files):
    """Rows of (room, lines, reached, branches, reached, functions, reached)."""
    rooms = collections.defaultdict(lambda: [0] * 6)
    for path, summary in files.items():
        for name in room_of(path), 'all':
            for i, what in enumerate(('lines', 'branches', 'functions')):
                rooms[name][2 * i] += summary[what]['count']
                rooms[name][2 * i + 1] += summary[what]['covered']
    return sorted((name, *v) for name, v in rooms.items() if name != 'all') + [('all', *rooms['all'])]


def percent(part, whole):
    return f'{100 * part / whole:.1f}' if whole else '-'


def print_table(rows):
    print(f'{"room":24} {"lines":>7} {"%":>6} {"branches":>9} {"%":>6} {"functions":>10} {"%":>6}')
    for name, lines, l_in, branches, b_in, functions, f_in in rows:
        print(f'{name:24} {lines:7} {percent(l_in, lines):>6} {branches:9} {percent(b_in, branches):>6} '
              f'{functions:10} {percent(f_in, functions):>6}')


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--layers', default='unit,cli,system')
    ap.add_argument('--llvm-cov', default='llvm-cov')
    ap.add_argument('--llvm-profdata', default='llvm-profdata')
    ap.add_argument('--keep', action='store_true', help='print what the last run reached')
    args = ap.parse_args()
    build = os.path.abspath(args.build)
    raw, pages = os.path.join(build, 'profiles'), os.path.join(build, 'coverage')
    status = 0
    if not args.keep:
        shutil.rmtree(raw, True)
        os.makedirs(raw)
        os.chmod(raw, 0o1777)   # tests run programs as other users
        env = {**os.environ, 'LLVM_PROFILE_FILE': os.path.join(raw, '%4m.profraw')}
        status = subprocess.run([os.path.join(HERE, 'run.py'), '--build', build, '--san', build, '--layers', args.layers], env=env).returncode
    profile = os.path.join(build, 'coverage.profdata')
    merge = [args.llvm_profdata, 'merge', '-sparse', '-failure-mode=all', '-o', profile, *sorted(glob.glob(os.path.join(raw, '*.profraw')))]
    subprocess.run(merge, check=True)
    objects = programs(build)
    files, functions = export(args.llvm_cov, objects, profile)
    os.makedirs(pages, exist_ok=True)
    with open(os.path.join(pages, 'least.txt'), 'w') as f:
        for missed, lines, name, path in functions[:LEAST]:
            f.write(f'{missed:4} of {lines:4} lines not reached: {name} ({os.path.relpath(path, TOP)})\n')
    show = [args.llvm_cov, 'show', '-format=html', '-output-dir', pages, '-instr-profile', profile, objects[0]]
    for path in objects[1:]:
        show += ['-object', path]
    subprocess.run([*show, *sorted(files)], check=True)
    print_table(table(files))
    print(f'pages: {os.path.relpath(pages)}/index.html; functions that tests reach least: {os.path.relpath(pages)}/least.txt')
    if status:
        print('some tests failed')
    return status


if __name__ == '__main__':
    sys.exit(main())
