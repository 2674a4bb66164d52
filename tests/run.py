#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""run.py --build DIR --san DIR: all tests that this machine can run.

C tests (cmocka) and the corpora of the fuzz targets run instrumented, from the --san directory; the
others run the programs of --build. A test program that exits with 77 is skipped, its last line says why.
Most of them run beside others, of which no more sample than there are CPUs until all that do not sample have ended. One that
fails has failed; a second run alone only prints a hint, `# NAME passes alone` or `# NAME fails alone too`.
They begin in a random order, which SEED=N in the environment repeats.
With CI=true in the environment a module or a layer of which everything is skipped has failed: there,
whatever the tests need is installed.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import io
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'system'))
import clock  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

# They measure, or look at what each CPU does, or sample what all processes do: they run first, one after the other.
ALONE = ('test_doctor_cost.py', 'test_governor.py', 'test_neighbours_live.py', 'test_perf_ring', 'test_period', 'test_sample_cost')
# They take longest, and begin before the others, in any order.
LONG = ('test_compare', 'test_container_names', 'test_containers.py', 'test_control.py', 'test_diff_history.py', 'test_exporter.py',
        'test_exporter_history.py', 'test_exporter_seen.py', 'test_exporter_web.py', 'test_fleet.py', 'test_flight.py',
        'test_governor_live.py', 'test_hist_command.py', 'test_hostile_names.py', 'test_html.py', 'test_many.py', 'test_next.py',
        'test_pins.py', 'test_pins_repair.py', 'test_push.py', 'test_push_names.py', 'test_record.py', 'test_schemas.py',
        'test_schemas_live.py', 'test_serve.py', 'test_sim.py', 'test_top.py', 'test_top_command.py', 'test_why.py')
# System tests that sample little, and measure nothing: they run beside those that do.
OFFLINE = ('test_hostile_names.py', 'test_html.py', 'test_packaging.py', 'test_monitoring.py', 'test_mpi.py', 'test_addresses.py')
CMOCKA_S, MODULE_S = 600, 1800  # time limits of one program, one module
NICE = 10       # of those that do not sample, beside those that do
HINTS = 3       # more failures than that are not repeated
STRICT = os.environ.get('CI') == 'true'

running = set()     # sessions
TOOK = []           # (seconds, CPU time, name) of each test of this module
SLOW_S = 5          # tests that take longer are printed: seconds (of them CPU time)


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def must_not_skip(self, name):
        """In CI, what skips as a whole proves nothing."""
        if STRICT and self.skipped and not self.passed and not self.failed:
            print(f'FAIL {name}: skipped as a whole')
            self.failed += 1

    def __str__(self):
        return f'{self.passed} passed, {self.failed} failed, {self.skipped} skipped'


def kill_session(sid):
    """What a test started is in its session, but not always in its process group."""
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        try:
            if os.getsid(pid) == sid:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


# A bpffs for each program and module: pins that it leaves end with its mount namespace, and with them what they
# sample. /run only where others could write into it, which `serve` refuses; cgroup v2 where a container lacks it.
PRIVATE = ['unshare', '--mount', 'sh', '-c', '''mount -t bpf -o mode=755 bpf /sys/fs/bpf || exit
case $(stat -c %A /run) in d???????w?) mount -t tmpfs -o mode=755 tmpfs /run;; esac
grep -q ' cgroup2 ' /proc/mounts || mount -t cgroup2 cgroup2 /mnt 2>/dev/null
exec "$@"''', 'sh']


def private():
    """PRIVATE, where this user may have it: not in a container without privileges, where nothing is pinned anyway."""
    p = subprocess.run([*PRIVATE, 'true'], capture_output=True, text=True)
    if os.geteuid() == 0 and p.returncode:
        print(f'# tests have no mounts of their own here: {p.stderr.strip()}', flush=True)
    return PRIVATE if os.geteuid() == 0 and not p.returncode else []


def run_limited(command, seconds, env=None):
    """As subprocess.run() with what was printed, without what the command left running; after that time all is
    killed, and the output says so."""
    # files, as a pipe ends only when nobody has it any more
    with tempfile.TemporaryFile('w+', errors='replace') as out, tempfile.TemporaryFile('w+', errors='replace') as err:
        p = subprocess.Popen([*PRIVATE, *command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True)
        running.add(p.pid)
        try:
            p.wait(seconds)
            late = ''
        except subprocess.TimeoutExpired:
            kill_session(p.pid)
            p.wait()
            late = f'\nnot done after {seconds} s\n'
        kill_session(p.pid)
        running.discard(p.pid)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, p.returncode, out.read(), err.read() + late)


def stop(signum, _frame):
    """^C does not reach sessions of their own; threads would begin the next."""
    for sid in list(running):
        kill_session(sid)
    os._exit(128 + signum)


# each fork() of a test copies the page tables of what the sanitizer keeps of freed memory
CMOCKA_ENV = dict(CMOCKA_MESSAGE_OUTPUT='TAP', ASAN_OPTIONS='detect_leaks=1:quarantine_size_mb=16',
                  UBSAN_OPTIONS='print_stacktrace=1')


def start_cmocka(path):
    return run_limited([path], CMOCKA_S, {**os.environ, **CMOCKA_ENV})


def judge_cmocka(path, p):
    name = os.path.basename(path)
    tally = Tally()
    if p.returncode == 77:
        reason = (p.stdout + p.stderr).strip().splitlines()
        if reason:
            tally.skipped += 1
        else:
            tally.failed += 1
        print(f'skip {name}: {reason[-1]}' if reason else f'FAIL {name}: skipped without a reason')
        tally.must_not_skip(name)
        return tally
    # cmocka 1.1 says "not ok N # SKIP name" of a skipped test, and its reason before
    ok = len(re.findall(r'^ok \d+\b(?!.*# SKIP)', p.stdout, re.M))
    skipped = re.findall(r'^(?:not )?ok \d+ # SKIP (.*)', p.stdout, re.M)
    bad = len(re.findall(r'^not ok \d+\b(?! # SKIP)', p.stdout, re.M))
    said = [x for x in (p.stdout + p.stderr).splitlines() if not re.match(r'(not )?ok |#|1\.\.', x)]
    if p.returncode and not bad:
        bad = 1
    if not ok and not bad and not skipped:
        bad = 1
    if skipped and not said:
        print(f'FAIL {name}: skipped without a reason: {", ".join(skipped)}')
        bad += 1
    tally.passed, tally.failed, tally.skipped = ok, bad, len(skipped)
    for line in skipped:
        print(f'skip {name}: {line}: {said[-1] if said else ""}')
    print(f'{"FAIL" if bad else "ok  "} {name}: {ok} passed' + (f', {bad} failed' if bad else ''))
    if bad:
        print(p.stdout + p.stderr)
    tally.must_not_skip(name)
    return tally


def start_corpus(path):
    """A fuzz target, on the inputs that `make check` has for it."""
    return run_limited([path, *inputs_of(path)], CMOCKA_S)


def inputs_of(path):
    name = os.path.basename(path).removeprefix('fuzz_')
    return sorted(glob.glob(os.path.join(HERE, 'fuzz/corpus', name, '*')))


def judge_corpus(path, inputs, p):
    tally = Tally()
    if p.returncode or not inputs:
        tally.failed = 1
        print(f'FAIL {os.path.basename(path)}: exit {p.returncode} on {len(inputs)} inputs')
        print(p.stdout[-2000:] + p.stderr)
    else:
        tally.passed = 1
        print(f'ok   {os.path.basename(path)}: {p.stdout.splitlines()[-1]}')
    return tally


def cpu_s():
    """CPU time of this process and those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Result(unittest.TextTestResult):
    succeeded = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic(), cpu_s()

    def stopTest(self, test):
        super().stopTest(test)
        TOOK.append((time.monotonic() - self.began[0], cpu_s() - self.began[1], unittest.TestCase.id(test).rsplit('.', 1)[1]))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.succeeded += 1

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f'skip {unittest.TestCase.id(test)}: {reason}')


def run_module(path):
    """What one process does: the tests of a module. Returns a Tally."""
    tally, began = Tally(), time.monotonic()
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())   # in order
    sys.path.insert(0, os.path.dirname(path))
    suite = unittest.TestLoader().loadTestsFromName(os.path.basename(path)[:-3])
    r = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    tally.passed = r.succeeded
    tally.failed = len(r.failures) + len(r.errors) + len(r.unexpectedSuccesses)
    tally.skipped = len(r.skipped)
    slowest = ', '.join(f'{name} {s:.0f} s ({cpu:.0f})' for s, cpu, name in sorted(TOOK, reverse=True)[:3] if s > SLOW_S)
    print(f'{os.path.basename(path)}: {time.monotonic() - began:.0f} s, {cpu_s():.0f} s of CPU time{slowest and f"; {slowest}"}')
    return tally


def start_module(args, path):
    return run_limited([sys.executable, os.path.join(HERE, 'run.py'), '--build', args.build, '--san', args.san,
                        '--module', path], MODULE_S)


def judge_module(path, p):
    tally = Tally()
    print(p.stdout + p.stderr, end='')
    m = re.search(r'^(\d+) passed, (\d+) failed, (\d+) skipped\n\Z', p.stdout, re.M)
    if not m:
        print(f'FAIL {path}: exit {p.returncode}')
        tally.failed += 1
        return tally
    if m.group() == f'{Tally()}\n':
        print(f'FAIL {path}: it has no test')
        tally.failed += 1
    tally.passed += int(m[1])
    tally.failed += int(m[2])
    tally.skipped += int(m[3])
    tally.must_not_skip(os.path.basename(path))
    return tally


class Job:
    """A program or module of a layer: what runs it, and what makes a Tally of that."""

    def __init__(self, layer, path, start, judge):
        self.layer, self.path, self.start, self.judge = layer, path, start, judge
        self.name = os.path.basename(path)
        samples = layer in ('bpf', 'system') and self.name not in OFFLINE
        self.kind = 'alone' if self.name in ALONE else 'sampling' if samples else 'other'


def list_jobs(args, seed):
    """All of them, in the order in which they begin: the long ones first, else as the seed says. No test may depend on it."""
    jobs, rng = [], random.Random(seed)
    for layer, pattern, start, judge in (
            ('system', 'system/test_*.c', start_cmocka, judge_cmocka), ('unit', 'unit/test_*.c', start_cmocka, judge_cmocka),
            ('bpf', 'bpf/test_*.c', start_cmocka, judge_cmocka),
            ('fuzz', 'fuzz/fuzz_*.c', start_corpus, lambda path, p: judge_corpus(path, inputs_of(path), p)),
            ('cli', 'cli/test_*.py', lambda path: start_module(args, path), judge_module),
            ('system', 'system/test_*.py', lambda path: start_module(args, path), judge_module)):
        for path in sorted(glob.glob(pattern, root_dir=HERE)):
            path = os.path.join(HERE, path) if path.endswith('.py') else os.path.join(args.san, 'tests', path[:-2])
            jobs.append(Job(layer, path, start, judge))
    rng.shuffle(jobs)
    return sorted(jobs, key=lambda job: job.name not in LONG)


@contextlib.contextmanager
def timed(what):
    began = time.monotonic()
    yield
    print(f'# {time.monotonic() - began:.0f} s for {what}', flush=True)


def run_jobs(jobs, layers):
    """Adds what they are worth to the layers."""
    us = clock.interrupt_us()
    if us > clock.DEAR_US:
        print(f'# a timer interrupt costs {us:.0f} us here: tests at the highest rates are skipped', flush=True)
    tallies = {}
    alone, sampling, others = ([job for job in jobs if job.kind == kind] for kind in ('alone', 'sampling', 'other'))
    said = threading.Lock()

    def work(jobs, nice=0):
        """Run the next of them, which other threads take from, too, until there is none."""
        os.nice(nice)   # of this thread, in Linux, and of the processes that it starts
        for job in jobs:
            p = job.start(job.path)
            with said:
                tallies[job] = job.judge(job.path, p)
                sys.stdout.flush()
    with timed('what runs alone'):
        work(alone)
    # The simulated source takes up to 10,000 interrupts of a timer a second and CPU in each module. On a virtual machine
    # one costs up to 50 us, and five modules leave no CPU for anything else. They wait more than they compute, though
    # (0.45 s of CPU time a second): as many as there are CPUs run beside those that compute, and one more after these.
    cpus, to_sample, rest = os.cpu_count(), iter(sampling), iter(others)
    with timed('what runs beside others'), concurrent.futures.ThreadPoolExecutor(cpus + 1) as samplers, concurrent.futures.ThreadPoolExecutor(cpus) as beside:
        began = [samplers.submit(work, to_sample) for _ in range(cpus)]
        for worker in [beside.submit(work, rest, NICE) for _ in range(cpus)]:
            worker.result()
        began.append(samplers.submit(work, to_sample))
        for worker in began:
            worker.result()
    for job, tally in tallies.items():
        layers[job.layer].add(tally)
    failed = [job for job in sampling + others if tallies[job].failed]
    for job in failed if len(failed) <= HINTS else []:
        with contextlib.redirect_stdout(io.StringIO()):     # its first run has said what fails
            again = job.judge(job.path, job.start(job.path)).failed
        print(f'# {job.name} {"fails alone too" if again else "passes alone"}', flush=True)


def main():
    global PRIVATE
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--san', required=True)
    ap.add_argument('--only', metavar='NAME', help='this program or module')
    ap.add_argument('--layers', default='unit,bpf,fuzz,cli,system', help='with commas between them')
    ap.add_argument('--module', help=argparse.SUPPRESS)
    args = ap.parse_args()
    os.chdir(os.path.dirname(HERE))
    os.environ['IBSCOPE_BUILD'] = os.path.abspath(args.build)
    os.environ['IBSCOPE_SAN'] = os.path.abspath(args.san)
    if args.module:
        tally = run_module(args.module)
        print(tally)
        return 1 if tally.failed else 0
    PRIVATE = private()
    for signum in signal.SIGINT, signal.SIGTERM:
        signal.signal(signum, stop)
    layers = {name: Tally() for name in args.layers.split(',')}
    seed = os.environ.get('SEED') or str(random.randrange(10000))
    print(f'# order of modules: SEED={seed}', flush=True)
    run_jobs([j for j in list_jobs(args, seed) if j.layer in layers and args.only in (None, j.name)], layers)
    tally = Tally()
    for name, layer in layers.items():
        if not args.only:
            layer.must_not_skip(f'layer {name}')
        print(f'{name}: {layer}')
        tally.add(layer)
    print(tally)
    return 1 if tally.failed or not tally.passed else 0


if __name__ == '__main__':
    sys.exit(main())
