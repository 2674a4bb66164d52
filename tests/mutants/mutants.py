#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mutants.py --build DIR [FILE or ROOM ...]: do the tests fail when the code is wrong?

Builds the programs once more, with all mutants of the files in them (schemata.py), and runs for each mutant the tests
that reach it, the fastest first, until one fails. Without files: a sample of all, chosen by --seed.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time

from bpf import BpfBuild
from builds import MUTANTS_MAX, Build

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import run  # noqa: E402

EQUIVALENT = os.path.join(HERE, 'equivalent.txt')
BPF_ONLY = 'BPF '           # before a file there
SAMPLE, PER_FILE = 60, 10   # mutants of a sample, and of each of its files
PER_FILE_OF_ROOM = 4        # of a sample of a room
# What is sampled: rooms of which tests in C alone kill 95 %. No headers: all files that include one would have to be compiled.
SAMPLED = 'src/core/select', 'src/core/counts', 'src/data/recording', 'src/data/perf_data', 'src/data/replay', 'src/face/metrics'
WATCHED = *SAMPLED, 'src/face/web/web_auth.c'   # with a limit of their own
MODULE_S = 300              # in which a module runs without a mutant
PYTHON_S = 0.3              # until Python has begun a test
STATES = 'killed', 'alive', 'equivalent', 'not reached', 'invalid'


def mutate(build, path, first, only):
    """Compile a file with its mutants, without those that are invalid C. Return: mutants, invalid ones.

    A header is compiled with one of its users, which also gives the tree; the others come later.
    """
    obj = build.object_of(path)
    if path.endswith('.h'):     # the decision core needs what its user defines
        users = sorted(build.users(path), key=lambda o: (not o.endswith(('/replay/engine.o', '/ibs_op.bpf.o')), o))
        if not users:
            return [], []
        obj = users[0]
    tree = build.parse(obj)
    dropped, invalid = set(), []
    if only:
        every = build.file(path, tree).mutate(0)[1]
        dropped |= set(every) - set(only(every))
    while True:
        mutants, errors = build.mutate(path, obj, tree, first, dropped)
        lines = {int(n) for n in re.findall(rf'{re.escape(path)}:(\d+):\d+: error', errors)}
        bad = [m for m in mutants if m.line in lines]
        if not errors:
            return mutants, invalid
        if not bad:
            sys.exit(errors)
        dropped |= set(bad)
        invalid += bad


class Test:
    """A program, or a test of a Python module: @case is its name for unittest."""

    def __init__(self, build, path, case=''):
        self.path, self.case = path, case
        self.name = case or os.path.basename(path)
        self.seconds, self.reached, self.memory = 0, b'', build.memory
        self.command = [os.path.join(build.out, path)]
        if path.endswith('.py'):
            self.command = [sys.executable, '-m', 'unittest', '-f', case]
        elif self.name.startswith('fuzz_'):
            self.command += run.inputs_of(path)
        self.env = {'IBSCOPE_BUILD': os.path.abspath(os.path.join(build.out, build.build)),
                    'IBSCOPE_SAN': os.path.abspath(os.path.join(build.out, build.build)), **build.env}

    def call(self, command, seconds, **env):
        if self.path.endswith('.py'):
            command = ['sh', '-c', 'cd "$0" && exec "$@"', os.path.abspath(os.path.dirname(self.path)), *command]
        # a loop of a mutant ends also if nobody is left to end it
        command = ['prlimit', f'--cpu={int(2 * seconds) + 5}', *self.memory, '--', *command]
        return run.run_limited(command, seconds, {**os.environ, **run.CMOCKA_ENV, **self.env, **env})

    def run(self, seconds, **env):
        """Return: exit status, -1 if it takes longer."""
        p = self.call(self.command, seconds, **env)
        return -1 if 'not done after' in p.stderr[-40:] else p.returncode

    def measure(self, number):
        """Run it without a mutant. Return: did it pass?"""
        with tempfile.NamedTemporaryFile() as f:
            os.chmod(f.name, 0o666)
            f.truncate(MUTANTS_MAX)
            began = time.monotonic()
            status = self.run(300, MUTANT_REACHED=f.name)
            self.seconds = time.monotonic() - began
            self.reached = f.read(number)
        return status == 0

    def kills(self, number):
        limit = 3 + 5 * self.seconds
        env = {'MUTANT': str(number), 'CMOCKA_TEST_ABORT': '1'}     # one failure says enough
        status = self.run(limit, **env)
        # a test that fails now and then kills nothing
        return status == -1 or (status != 0 and self.run(limit, **env) != 0)


def measure_program(build, path, number, longest):
    """Return: the program, if it passes in time."""
    test = Test(build, path)
    ok = test.measure(number)
    if ok and test.seconds <= longest:
        return [test]
    print(f'not used: {test.name}: {f"takes {test.seconds:.0f} s" if ok else "fails or skips"}', flush=True)
    return []


def measure_module(build, path, number, longest):
    """Return: its tests that pass in time."""
    tests = []
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        p = Test(build, path).call([sys.executable, os.path.join(HERE, 'each_test.py'), os.path.basename(path)[:-3], d, str(MUTANTS_MAX)],
                                   MODULE_S)

        def reached(name):
            with open(os.path.join(d, name), 'rb') as f:
                return int.from_bytes(f.read(number), 'little')
        for name, seconds in re.findall(r'^(test_\S+) ([\d.]+)$', p.stdout, re.M):
            test = Test(build, path, name)
            test.seconds = float(seconds) + PYTHON_S
            test.reached = (reached(name) | reached('between')).to_bytes(number, 'little')
            tests += [test] if test.seconds <= longest else []
    print(f'{os.path.basename(path)}: {len(tests)} tests', flush=True)
    return tests


def find_tests(programs, build, args):
    """Return: programs and modules by layer, in the order in which they meet the mutants."""
    alone = '|'.join(map(re.escape, run.ALONE))
    layers = {'C': [p for p in programs if re.search(build.tests, p) or (args.system and '/tests/system/test_' in p)]}
    for layer in ['cli'] * args.cli + ['system'] * args.system:
        layers[layer] = sorted(glob.glob(f'tests/{layer}/test_*.py'))
    return {layer: [p for p in paths if (not args.tests or re.search(args.tests, p))
                    and not re.search(f'^({alone})$', os.path.basename(p)) and not re.search(args.skip, os.path.basename(p))]
            for layer, paths in layers.items()}


def measure_tests(paths, build, number, args):
    """Return: tests that pass in time: programs by their time, then those of modules, first those that reach little."""
    def measure(path):
        if path.endswith('.py'):
            return measure_module(build, path, number, args.longest_test)
        return measure_program(build, path, number, args.longest)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        tests = [t for found in pool.map(measure, paths) for t in found]
    return sorted(tests, key=lambda t: (bool(t.case), t.seconds * (sum(t.reached) if t.case else 1)))


def read_equivalent(bpf):
    """(file, label, source line): reason. @bpf: also those of BPF programs alone"""
    out = {}
    with open(EQUIVALENT) as f:
        for line in f:
            if line.strip() and not line.startswith(('#', '\t')):
                key = tuple(line.rstrip('\n').split(' :: ', 2))
                if bpf:
                    key = (key[0].removeprefix(BPF_ONLY), *key[1:])
                out[key] = ''
            elif line.startswith('\t'):
                out[key] += line.strip()
    return out


def files_of(name, without=()):
    """The files to mutate."""
    files = [name] if os.path.isfile(name) else sorted(glob.glob(f'{name}/*.[ch]' if name.startswith('include')
                                                                  else f'{name}/*.c'))
    files = [path for path in files if path not in without]
    if not files:
        sys.exit(f'mutants: {name}: no file and no room: give a path as src/base/num.c or src/core/counts')
    return files


def rooms_elsewhere():
    """Rooms that are not in WATCHED."""
    rooms = {os.path.dirname(path) for path in glob.glob('src/**/*.c', recursive=True)}
    return sorted(rooms - set(WATCHED))


def choose_files(draw, files, n, per_file):
    """Files for @n mutants, by the number of their lines."""
    lines = []
    for path in files:
        with open(path) as f:
            lines.append(sum(1 for _ in f))
    chosen = set()
    while len(chosen) < min(len(files), max(1, n // per_file)):
        chosen |= set(draw.choices(files, lines))
    return sorted(chosen)


def choose(args, draw):
    """The files to mutate, each with the number of its mutants, 0 for all."""
    rooms = []
    for name in args.names:
        rooms += [files_of(r, WATCHED) for r in rooms_elsewhere()] if name == 'elsewhere' else [files_of(name)]
    if rooms and not args.sample:
        return {path: 0 for files in rooms for path in files}
    samples = [(files, args.sample, PER_FILE_OF_ROOM) for files in rooms] or \
        [([path for name in SAMPLED for path in files_of(name)], args.sample or SAMPLE, PER_FILE)]
    out = {}
    for files, n, per_file in samples:
        chosen = choose_files(draw, files, n, per_file)
        out |= {path: -(-n // len(chosen)) for path in chosen}
    return out


def within(tests, seconds):
    """All programs, and those of the tests of modules that take so long together."""
    for t in tests:
        seconds -= t.seconds if t.case else 0
        if seconds < 0:
            return
        yield t


def judge(mutants, tests, equivalent, args, states):
    """Set the state of each mutant that was not killed before."""
    lock, done = threading.Lock(), 0
    todo = [n for n in range(1, len(mutants)) if states.get(n) not in ('killed', 'equivalent')]

    def one(number):
        nonlocal done
        m = mutants[number]
        reach = [t for t in tests if t.reached[number]]
        state = states.get(number, 'not reached')
        if (m.file, m.label, m.source) in equivalent:
            state = 'equivalent'
        elif reach:
            state = 'killed' if any(t.kills(number) for t in within(reach, args.most)) else 'alive'
        with lock:
            states[number] = state
            done += 1
            if done % 200 == 0:
                print(f'# {done} of {len(todo)}', file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, todo))


def print_live(mutants, states):
    for number in sorted(states):
        if states[number] in ('alive', 'not reached'):
            m = mutants[number]
            print(f'{m.file}:{m.line}: {states[number]}: {m.label}: {m.source}')


def print_table(mutants, states, invalid, row):
    """@row: of a file. Return: the share of valid mutants that were killed."""
    rooms = collections.defaultdict(collections.Counter)
    for number, state in states.items():
        for room in row(mutants[number].file), 'total':
            rooms[room][state] += 1
    for m in invalid:
        for room in row(m.file), 'total':
            rooms[room]['invalid'] += 1

    def score(of):
        valid = of['killed'] + of['alive'] + of['not reached']
        return 100 * of['killed'] / valid if valid else 100

    print(f'{"":40}' + ''.join(f'{s:>13}' for s in STATES) + f'{"score":>9}')
    for room in sorted(rooms, key=lambda r: (r == 'total', r)):
        print(f'{room:40}' + ''.join(f'{rooms[room][s]:13}' for s in STATES) + f'{score(rooms[room]):8.1f}%')
    return score(rooms['total'])


def check_stale(equivalent, files, mutants):
    """Entries that match nothing hide nothing today, and something else tomorrow."""
    known = {(m.file, m.label, m.source) for m in mutants[1:]}
    stale = [key for key in equivalent if key[0] in files and key not in known]
    for key in stale:
        print(f'{EQUIVALENT}: no such mutant: {" :: ".join(key)}')
    return bool(stale)


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='*', metavar='FILE or ROOM', help='elsewhere: all rooms of src without a limit of their own')
    p.add_argument('--build', default='build', help='where programs and tests were built')
    p.add_argument('--make', default='', help='variables of make that it was built with')
    p.add_argument('--out', default='build-mutants')
    p.add_argument('--cc', default='cc')
    p.add_argument('--clang', default='clang')
    p.add_argument('--bpf', action='store_true', help='mutants in the BPF programs, for the tests that load them')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--sample', type=int, default=0, help=f'so many mutants of each file or room; by default all, or {SAMPLE} if none is given')
    p.add_argument('--seed', default='', help='of the sample, for example a commit')
    p.add_argument('--cli', action='store_true', help='run the modules of tests/cli, too')
    p.add_argument('--system', action='store_true', help='run the programs and modules of tests/system, too')
    p.add_argument('--tests', default='', help='only tests whose path matches')
    p.add_argument('--skip', default='^$', help='tests whose name matches are not run')
    p.add_argument('--longest', type=float, default=40, help='seconds of a program without mutants')
    p.add_argument('--longest-test', type=float, default=15, help='seconds of a test of a module without mutants')
    p.add_argument('--most', type=float, default=120, help='seconds of all tests of modules for one mutant')
    p.add_argument('--least', type=float, default=0, help='fail below this score, in percent')
    return p.parse_args()


def main():
    args = parse_args()
    sys.setrecursionlimit(20000)
    for sig in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(sig, run.stop)
    draw = random.Random(args.seed)
    files = choose(args, draw)
    if args.system:
        run.PRIVATE = run.private()
        run.clock.interrupt_us()
    build = (BpfBuild if args.bpf else Build)(args)
    mutants, invalid = [None], []
    for path, n in files.items():
        only = n and (lambda every, n=n: draw.sample(every, min(len(every), n)))
        new, bad = mutate(build, path, len(mutants), only)
        mutants += new
        invalid += bad
    if len(mutants) > build.most:
        sys.exit(f'mutants: {len(mutants)} are too many at once: give fewer files or SAMPLE=')
    programs = build.make_users(files, args.jobs)
    build.make_programs(programs, args.jobs)
    print(f'{len(mutants) - 1} mutants in {len(files)} files')
    equivalent, states = read_equivalent(args.bpf), {}
    for layer, paths in find_tests(programs, build, args).items():
        judge(mutants, measure_tests(paths, build, len(mutants), args), equivalent, args, states)
        print_live(mutants, states)
        print(f'tests of {layer}:')
        score = print_table(mutants, states, invalid, build.row)
        sys.stdout.flush()
    build.print_more(states)
    # user space has functions that BPF programs have not
    stale = not any(files.values()) and not args.bpf and check_stale(equivalent, files, mutants)
    sys.exit(stale or score < args.least)


if __name__ == '__main__':
    main()
