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
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

import schemata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import run  # noqa: E402

EQUIVALENT = os.path.join(HERE, 'equivalent.txt')
SAMPLE, PER_FILE = 60, 10   # mutants of a sample, and of each of its files
# What is sampled: rooms of which tests in C alone kill 95 %. No headers: all files that include one would have to be compiled.
SAMPLED = 'src/data/recording', 'src/data/perf_data', 'src/face/metrics'
MUTANTS_MAX = 1 << 17       # in one build
MEMORY_MAX = 4 << 30
STATES = 'killed', 'alive', 'equivalent', 'not reached', 'invalid'


class Build:
    """A copy of the programs and tests of args.build, made with the same commands, in args.out."""

    def __init__(self, args):
        self.build, self.out, self.cc, self.clang = args.build, args.out, args.cc, args.clang
        # address space; a sanitizer reserves far more than it uses
        self.memory = [] if re.search(r'SAN=\S', args.make) else [f'--as={MEMORY_MAX}']
        text = subprocess.run(['make', '-Bn', 'V=1', *args.make.split(), f'O={args.build}', 'CC=cc', 'all', 'tests'],
                              capture_output=True, text=True, check=True).stdout
        self.compile, self.link = {}, {}
        for line in text.splitlines():
            if not line.startswith('cc ') or ' -shared ' in line:
                continue
            words = [w for w in line.split(' ') if w]
            (self.compile if '-c' in words else self.link)[words[words.index('-o') + 1]] = words[1:]
        self.objects = {}       # of the mutated build, by the usual one

    def flags(self, obj):
        """For the compiler to read the file as for this object."""
        words = shlex.split(' '.join(self.compile[obj]))
        return [w for w in words[:words.index('-c')] if w not in ('-MMD', '-MP')]

    def object_of(self, path):
        return os.path.join(self.build, path[:-2] + '.o')

    def source(self, obj):
        return self.compile[obj][self.compile[obj].index('-c') + 1]

    def users(self, header):
        """Objects that were compiled with a header."""
        for obj in self.compile:
            try:
                with open(obj[:-2] + '.d') as f:
                    if re.search(rf'(^|\s){re.escape(header)}(\s|:|$)', f.read()):
                        yield obj
            except FileNotFoundError:
                continue

    def make_object(self, obj, text=None):
        """Return: what the compiler says of errors. @text: instead of the source."""
        source, to = self.source(obj), os.path.join(self.out, obj)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if text is not None:
            source = to[:-2] + '.mutants.c'
            with open(source, 'wb') as f:
                f.write(text)
        # -O2 takes minutes for a function with a thousand mutants.
        # From a command line alone, ccache does not see that a header is before another one now.
        p = subprocess.run([*shlex.split(self.cc), '-w', f'-I{self.out}/include', *self.flags(obj), '-O1', '-g0', '-iquote',
                            os.path.dirname(self.source(obj)), '-c', source, '-o', to], capture_output=True, text=True,
                           env={**os.environ, 'CCACHE_NODIRECT': '1'})
        if not p.returncode:
            self.objects[obj] = to
        return p.stderr if p.returncode else ''

    def make_header(self, path, user, text):
        to = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, 'wb') as f:
            f.write(text)
        return self.make_object(user)

    def make_program(self, path):
        words, to = [], os.path.join(self.out, path)
        for w in shlex.split(' '.join(self.link[path])):
            words.append(to if w == path else os.path.join(self.out, 'lib.a') if w.endswith('/libibscope.a')
                         else self.objects.get(w, w))
        if os.path.lexists(to):
            os.remove(to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        # once more, for the runtime: objects of a program's own may be the only ones that have mutants
        words.append(os.path.join(self.out, 'lib.a'))
        subprocess.run([*shlex.split(self.cc), *words], check=True)

    def programs(self, sources):
        """Programs with functions of these sources."""
        names = set()
        for path in sources:
            out = subprocess.run(['nm', '-g', '--defined-only', '-P', self.object_of(path)], capture_output=True,
                                 text=True, check=True).stdout
            names |= {line.split(' ')[0].encode() for line in out.splitlines()}
        for path in self.link:
            with open(path, 'rb') as f:
                if not names.isdisjoint(f.read().split(b'\0')):
                    yield path

    def make_programs(self, programs, jobs):
        """These programs and tests, and links to what else tests look for there."""
        lib = os.path.join(self.out, 'lib.a')
        runtime = os.path.join(self.out, 'runtime.o')
        subprocess.run([*shlex.split(self.cc), '-O2', '-fPIE', f'-DMUTANTS_MAX={MUTANTS_MAX}', '-c',
                        os.path.join(HERE, 'runtime.c'), '-o', runtime], check=True)
        if os.path.exists(lib):
            os.remove(lib)
        members = [self.objects.get(o, o) for o in self.compile if o.startswith(os.path.join(self.build, 'src/'))]
        subprocess.run(['ar', 'rcs', lib, runtime, *members], check=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.make_program, programs))
        for path in [p for p in self.link if p not in programs] + [
                p for name in ('*.so', '*.html', 'tests/*/*.bpf.o') for p in glob.glob(f'{self.build}/{name}')]:
            to = os.path.join(self.out, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if os.path.lexists(to):
                os.remove(to)
            os.symlink(os.path.abspath(path), to)


def mutate(build, path, first, only):
    """Compile a file with its mutants, without those that are invalid C. Return: mutants, invalid ones.

    A header is compiled with one of its users, which also gives the tree; the others come later.
    """
    header = path.endswith('.h')
    obj = build.object_of(path)
    if header:  # the decision core needs what its user defines
        users = sorted(build.users(path), key=lambda o: (not o.endswith('/replay/engine.o'), o))
        if not users:
            return [], []
        obj = users[0]
    tree = schemata.parse(build.clang, build.flags(obj), build.source(obj))
    dropped, invalid = set(), []
    if only:
        every = schemata.File(path, tree).mutate(0)[1]
        dropped |= set(every) - set(only(every))
    while True:
        text, mutants = schemata.File(path, tree, dropped).mutate(first)
        errors = build.make_header(path, obj, text) if header else build.make_object(obj, text)
        lines = {int(n) for n in re.findall(rf'{re.escape(path)}:(\d+):\d+: error', errors)}
        bad = [m for m in mutants if m.line in lines]
        if not errors:
            return mutants, invalid
        if not bad:
            sys.exit(errors)
        dropped |= set(bad)
        invalid += bad


class Test:
    def __init__(self, build, path):
        self.path, self.module = path, path.endswith('.py')
        self.name = os.path.basename(path)
        self.seconds, self.reached, self.memory = 0, b'', build.memory
        self.command = [os.path.join(build.out, path)]
        if self.module:
            self.command = [sys.executable, '-m', 'unittest', '-f', self.name[:-3]]
        elif self.name.startswith('fuzz_'):
            self.command += run.inputs_of(path)
        self.env = {'IBSCOPE_BUILD': os.path.abspath(os.path.join(build.out, build.build)),
                    'IBSCOPE_SAN': os.path.abspath(os.path.join(build.out, build.build))}

    def run(self, seconds, **env):
        """Return: exit status, -1 if it takes longer."""
        where = os.path.abspath(os.path.dirname(self.path)) if self.module else None
        command = self.command if not where else ['sh', '-c', 'cd "$0" && exec "$@"', where, *self.command]
        # a loop of a mutant ends also if nobody is left to end it
        command = ['prlimit', f'--cpu={int(2 * seconds) + 5}', *self.memory, '--', *command]
        p = run.run_limited(command, seconds, {**os.environ, **run.CMOCKA_ENV, **self.env, **env})
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


def find_tests(programs, build, args):
    programs = [p for p in programs if re.search(r'/tests/(unit|bpf)/test_|/tests/fuzz/fuzz_', p)]
    modules = sorted(glob.glob('tests/cli/test_*.py')) if args.cli else []
    return [Test(build, p) for p in programs + modules
            if not re.search(args.skip, os.path.basename(p)) and (not args.tests or re.search(args.tests, p))]


def measure_tests(tests, number, jobs, longest):
    """Return: those that pass in time, by their time."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        passed = list(pool.map(lambda t: t.measure(number), tests))
    for t, ok in zip(tests, passed):
        if not ok or t.seconds > longest:
            print(f'not used: {t.name}: {"fails or skips" if not ok else f"takes {t.seconds:.0f} s"}')
    return sorted((t for t, ok in zip(tests, passed) if ok and t.seconds <= longest), key=lambda t: t.seconds)


def read_equivalent():
    """(file, label, source line): reason"""
    out = {}
    with open(EQUIVALENT) as f:
        for line in f:
            if line.strip() and not line.startswith(('#', '\t')):
                key = tuple(line.rstrip('\n').split(' :: ', 2))
                out[key] = ''
            elif line.startswith('\t'):
                out[key] += line.strip()
    return out


def files_of(args):
    """The files to mutate."""
    names, files = args.names, []
    for name in names:
        files += [name] if os.path.isfile(name) else sorted(glob.glob(f'{name}/*.[ch]' if name.startswith('include')
                                                                      else f'{name}/*.c'))
        if not files:
            sys.exit(f'mutants: {name}: no file and no room: give a path as src/base/num.c or src/core/counts')
    return files


def choose_files(draw, n):
    """Files for @n mutants, by the number of their lines."""
    files = sorted(path for name in SAMPLED for path in glob.glob(f'{name}/*.c'))
    lines = []
    for path in files:
        with open(path) as f:
            lines.append(sum(1 for _ in f))
    chosen = set()
    while len(chosen) < max(1, n // PER_FILE):
        chosen |= set(draw.choices(files, lines))
    return sorted(chosen)


def judge(mutants, tests, equivalent, jobs):
    """The state of each mutant; prints those that live."""
    states, lock, done = {}, threading.Lock(), 0

    def one(number):
        nonlocal done
        m = mutants[number]
        reach = [t for t in tests if t.reached[number]]
        if (m.file, m.label, m.source) in equivalent:
            state = 'equivalent'
        elif not reach:
            state = 'not reached'
        else:
            state = 'killed' if any(t.kills(number) for t in reach) else 'alive'
        with lock:
            states[number] = state
            done += 1
            if state in ('alive', 'not reached'):
                print(f'{m.file}:{m.line}: {state}: {m.label}: {m.source}', flush=True)
            if done % 200 == 0:
                print(f'# {done} of {len(mutants) - 1}', file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, range(1, len(mutants))))
    return states


def print_table(mutants, states, invalid):
    """Return: the share of valid mutants that were killed."""
    rooms = collections.defaultdict(collections.Counter)
    for number, state in states.items():
        for room in os.path.dirname(mutants[number].file), 'total':
            rooms[room][state] += 1
    for m in invalid:
        for room in os.path.dirname(m.file), 'total':
            rooms[room]['invalid'] += 1

    def score(of):
        valid = of['killed'] + of['alive'] + of['not reached']
        return 100 * of['killed'] / valid if valid else 100

    print(f'{"room":24}' + ''.join(f'{s:>13}' for s in STATES) + f'{"score":>9}')
    for room in sorted(rooms, key=lambda r: (r == 'total', r)):
        print(f'{room:24}' + ''.join(f'{rooms[room][s]:13}' for s in STATES) + f'{score(rooms[room]):8.1f}%')
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
    p.add_argument('names', nargs='*', metavar='FILE or ROOM')
    p.add_argument('--build', default='build', help='where programs and tests were built')
    p.add_argument('--make', default='', help='variables of make that it was built with')
    p.add_argument('--out', default='build-mutants')
    p.add_argument('--cc', default='cc')
    p.add_argument('--clang', default='clang')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--sample', type=int, default=0, help=f'so many mutants; by default all, or {SAMPLE} if no file is given')
    p.add_argument('--seed', default='', help='of the sample, for example a commit')
    p.add_argument('--cli', action='store_true', help='run the modules of tests/cli, too')
    p.add_argument('--tests', default='', help='only tests whose path matches')
    p.add_argument('--skip', default='^$', help='tests whose name matches are not run')
    p.add_argument('--longest', type=float, default=40, help='seconds of a test without mutants')
    p.add_argument('--least', type=float, default=0, help='fail below this score, in percent')
    return p.parse_args()


def main():
    args = parse_args()
    sys.setrecursionlimit(20000)
    for sig in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(sig, run.stop)
    draw, only = random.Random(args.seed), None
    sample = args.sample or (0 if args.names else SAMPLE)
    files = files_of(args) if args.names else choose_files(draw, sample)
    if sample:
        def only(mutants):
            return draw.sample(mutants, min(len(mutants), -(-sample // len(files))))
    build = Build(args)
    mutants, invalid, headers = [None], [], []
    for path in files:
        new, bad = mutate(build, path, len(mutants), only)
        mutants += new
        invalid += bad
        headers += [path] if path.endswith('.h') else []
    if len(mutants) > MUTANTS_MAX:
        sys.exit(f'mutants: {len(mutants)} are too many at once: give fewer files')
    users = {obj for h in headers for obj in build.users(h)}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for errors in pool.map(build.make_object, sorted(users)):
            if errors:
                sys.exit(errors)
    programs = build.link if headers else list(build.programs(files))
    build.make_programs(programs, args.jobs)
    print(f'{len(mutants) - 1} mutants in {len(files)} files')
    tests = measure_tests(find_tests(programs, build, args), len(mutants), args.jobs, args.longest)
    equivalent = read_equivalent()
    score = print_table(mutants, judge(mutants, tests, equivalent, args.jobs), invalid)
    stale = not only and check_stale(equivalent, files, mutants)
    sys.exit(stale or score < args.least)


if __name__ == '__main__':
    main()
