#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""run.py --build DIR --san DIR: all tests that this machine can run.

C tests (cmocka) run instrumented, from the --san directory; the others run the programs of --build.
A test program that exits with 77 is skipped, its last line says why.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

# They look at what each CPU does.
ALONE = ('test_sim', 'test_hist_command')


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def __str__(self):
        return f'{self.passed} passed, {self.failed} failed, {self.skipped} skipped'


def start_cmocka(path):
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT='TAP',
               ASAN_OPTIONS='detect_leaks=1', UBSAN_OPTIONS='print_stacktrace=1')
    return subprocess.run([path], capture_output=True, text=True, env=env, errors='replace',
                          timeout=600, stdin=subprocess.DEVNULL)


def judge_cmocka(path, p, tally):
    name = os.path.basename(path)
    if p.returncode == 77:
        tally.skipped += 1
        reason = (p.stdout + p.stderr).strip().splitlines()
        print(f'skip {name}: {reason[-1] if reason else "no reason given"}')
        return
    # cmocka 1.1 says "not ok N # SKIP name" of a skipped test, and its reason before
    ok = len(re.findall(r'^ok \d+(?!.*# SKIP)', p.stdout, re.M))
    skipped = re.findall(r'^(?:not )?ok \d+ # SKIP (.*)', p.stdout, re.M)
    bad = len(re.findall(r'^not ok \d+(?! # SKIP)', p.stdout, re.M))
    said = [x for x in (p.stdout + p.stderr).splitlines() if not re.match(r'(not )?ok |#|1\.\.', x)]
    if p.returncode and not bad:
        bad = 1
    if not ok and not bad and not skipped:
        bad = 1
    tally.passed += ok
    tally.failed += bad
    tally.skipped += len(skipped)
    for line in skipped:
        print(f'skip {name}: {line}: {said[-1] if said else "no reason given"}')
    print(f'{"FAIL" if bad else "ok  "} {name}: {ok} passed' + (f', {bad} failed' if bad else ''))
    if bad:
        print(p.stdout + p.stderr)


class Result(unittest.TextTestResult):
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f'skip {test.id()}: {reason}')


def run_module(path):
    """What one process does: the tests of a module. Returns a Tally."""
    tally = Tally()
    sys.path.insert(0, os.path.dirname(path))
    suite = unittest.TestLoader().loadTestsFromName(os.path.basename(path)[:-3])
    r = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    bad = len(r.failures) + len(r.errors)
    tally.failed = bad
    tally.skipped = len(r.skipped)
    tally.passed = r.testsRun - bad - len(r.skipped)
    return tally


def start_module(args, path):
    return subprocess.run([sys.executable, os.path.join(HERE, 'run.py'), '--build', args.build, '--san', args.san,
                           '--module', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace', timeout=900, stdin=subprocess.DEVNULL)


def judge_module(path, p, tally):
    print(p.stdout, end='')
    m = re.search(r'^(\d+) passed, (\d+) failed, (\d+) skipped\n\Z', p.stdout, re.M)
    if not m:
        print(f'FAIL {path}: ended with {p.returncode}')
        tally.failed += 1
        return
    tally.passed += int(m[1])
    tally.failed += int(m[2])
    tally.skipped += int(m[3])


def run_python(args, tally):
    """Those of system/ALONE have the machine to themselves, the others run beside each other."""
    paths = [p for d in ('cli', 'system') for p in sorted(glob.glob(os.path.join(HERE, d, 'test_*.py')))]
    alone = [p for p in paths if os.path.basename(p)[:-3] in ALONE]
    for group, workers in ((alone, 1), ([p for p in paths if p not in alone], os.cpu_count())):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for path, p in zip(group, pool.map(lambda path: start_module(args, path), group)):
                judge_module(path, p, tally)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--san', required=True)
    ap.add_argument('--module', help=argparse.SUPPRESS)
    args = ap.parse_args()
    os.chdir(os.path.dirname(HERE))
    os.environ['IBSCOPE_BUILD'] = os.path.abspath(args.build)
    os.environ['IBSCOPE_SAN'] = os.path.abspath(args.san)
    if args.module:
        tally = run_module(args.module)
        print(tally)
        return 1 if tally.failed else 0
    tally = Tally()
    for d in ('unit', 'bpf', 'system'):
        paths = [os.path.join(args.san, 'tests', d, os.path.basename(path)[:-2])
                 for path in sorted(glob.glob(os.path.join(HERE, d, 'test_*.c')))]
        # what needs the kernel has it to itself
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if d == 'unit' else 1) as pool:
            for path, p in zip(paths, pool.map(start_cmocka, paths)):
                judge_cmocka(path, p, tally)
    sys.stdout.flush()
    run_python(args, tally)
    print(tally)
    return 1 if tally.failed or not tally.passed else 0


sys.exit(main())
