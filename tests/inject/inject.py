#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""inject.py --build DIR [NAME..]: run every command while one of its allocations or system calls fails (preload.c).

A call is known by its stack: of the calls with one stack, the first and the last fail, each in a run of its own, and then
all from the first one on. After each run:
  - no signal ended the command, and it did not hang
  - exit status 0: the output is the same as without a failure, or a message says what is missing
  - other exit status: a message says why
  - the result file is complete, or what it was before; nothing else is left in its directory
"""
import argparse
import collections
import concurrent.futures
import json
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STACK, LOG, LOG_MAX = 16, 16 + 8192, 1 << 20     # struct state of preload.c
LIMIT_S = 60
PINS = f'/sys/fs/bpf/ibscope-inject-{os.getpid()}'
BEFORE = b'a file of before\n'
# What an output says of something that it lacks, such as a source.
TOLD = re.compile(b'Input/output error|Too many open files|Cannot allocate memory|No space left|Function not implemented')
# Rules that do not hold: (words of the command, function that the stack has, problem), and the reason.
EXCEPTIONS = {
    ('export --perf-data', function, 'exit status 0 with another result and no message'):
        'a file of which the position is unknown gets the format for pipes, which is as complete'
    for function in ('perf_writer_open', 'lseek64 < open_file')
} | {
    ('serve', 'control_leave', "leaves {'socket'}"): 'it may be the socket of another collector; the next one replaces it',
    ('+-exporter', '__nss_database_get', 'ended by signal 11'): 'getpwnam() of glibc 2.36 uses the state that it could not allocate'
}


class Case:
    """A command; '@NAME' in it is an input, '@out' the result."""

    def __init__(self, words, check=None):
        self.words, self.check = words.split(), check
        self.waits = '--duration' in words
        self.name = words

    def files(self):
        return '@out' in self.words


def all_checks(good, r):
    """Of doctor: there are the same lines or checks, whatever they say now."""
    if r.status == 1 and (b'out of memory' in r.stderr or b'error: cannot write the output' in r.stderr):
        return None
    if '--json' in r.case.words:
        want, got = ([x['id'] for x in json.loads(x.stdout)['checks']] for x in (good, r))
    else:
        want, got = (len(re.findall(r'^  \S+ +\S', x.stdout.decode(), re.M)) for x in (good, r))
    return None if got == want else f'checks {got} instead of {want}'


OFFLINE = [Case(words) for words in (
    'report @shop', 'report --json @shop', 'report --csv @shop', 'report --by symbol,line,type @places',
    'report --markdown @shop', 'report --folded samples @rec', 'report --pprof @out @rec', 'report --html @out @shop',
    'report --top 2 --sort samples @shop', 'report @fetch', 'report @perf',
    'c2c @lines', 'c2c --json @places', 'numa @shop', 'numa --json @shop', 'annotate -i @ann annotated', 'annotate --json -i @ann annotated',
    'annotate --html @out -i @ann annotated', 'diff @shop @shop2', 'diff --json @shop @shop2', 'diff --html @out @shop @shop2',
    'diff @json @json', 'merge -o @out @shop @rec', 'dump @rec', 'dump --json --events @rec', 'dump --csv @perf', 'export --perf-data @out @rec',
    'export --hwloc @out @shop', 'replay @shop', 'replay --json --by cgroup,comm @shop', 'neighbours @nb', 'neighbours --json @nb', 'why -i @moved postgres', 'why --json -i @moved postgres',
    'top --once -i @shop', 'top --once --html -i @shop', 'hist --explain=zen4:6.12', 'why --pin-dir /sys/fs/bpf/none',
    'ctl status --pin-dir /sys/fs/bpf/none', 'help filter', '+-exporter --once --pin-dir /sys/fs/bpf/none', '+-exporter --list-metrics')]
OFFLINE += [Case('doctor', all_checks), Case('doctor --json', all_checks)]


def failed_with_message(r):
    return None if b'error: ' in r.stderr or b'out of memory' in r.stderr else f'exit status {r.status} without a message'


def balanced(_good, r):
    """Of --json: each ledger that was printed balances."""
    if r.status:
        return failed_with_message(r)
    for line in r.stdout.decode().splitlines():
        j = json.loads(line)
        for x in [e['ledger'] for e in j.get('events', [j]) if 'ledger' in e]:
            rest = x['seen'] - x['aggregated'] - x['forwarded'] - sum(x['filtered'].values()) - sum(x['lost'].values())
            if rest:
                return f'the ledger does not balance: {x}'
    return None if r.stdout else 'exit status 0 without output'


def readable(_good, r):
    """Of record: what was written can be read; if it ended without an error, it is complete."""
    if r.file != BEFORE and r.dump.returncode not in ((0,) if not r.status else (0, 1)):
        return f'exit status {r.status}, but the recording is not readable: {r.dump.stderr}'
    return failed_with_message(r) if r.status else 'exit status 0 without a recording' if r.file == BEFORE else None


def answered(_good, r):
    """Of what varies: output or a message."""
    return failed_with_message(r) if r.status else None if r.stdout or r.file not in (None, BEFORE) else 'exit status 0 without output'


def said_why(_good, r):
    """Of what may have no output: a message, if it failed."""
    return failed_with_message(r) if r.status else None


SIM = '--source sim -c 1000000'
LIVE = [Case(f'hist {SIM} --json --max-groups 16 -- true', balanced), Case(f'hist {SIM} --max-groups 16 0.1 1', answered),
        Case(f'record {SIM} -o @out -- true', readable), Case(f'record {SIM} --json -- true', said_why),
        Case(f'top --once -d 0.1 {SIM}', answered), Case(f'neighbours {SIM} --own --duration 2 --json', answered),
        Case(f'serve {SIM} --pin-dir @pins --control @socket --unpin', balanced), Case('ctl status --pin-dir @live', answered),
        Case('ctl status --json --pin-dir @live', answered), Case('ctl ledger --json --pin-dir @live', answered),
        Case('ctl snapshot --json --pin-dir @live', balanced), Case('ctl set period=1100000 --pin-dir @live', answered),
        Case('ctl dump -o @out --pin-dir @live', readable), Case('top --once -d 0.1 --pin-dir @live', answered),
        Case('why --duration 10s --pin-dir @live', answered), Case('neighbours --duration 2 --pin-dir @live', answered),
        Case('c2c --control @live.sock', answered),
        Case('+-exporter --once --pin-dir @live', answered), Case('+-exporter --once --format json --pin-dir @live', answered)]


class Inputs:
    """Recordings that commands read, in a directory."""

    def __init__(self, build, directory):
        self.dir = directory
        make = os.path.join(build, 'tests/unit')
        for name, command in (('shop', 'make_shop @ 300'), ('shop2', 'make_shop @ 400'), ('moved', 'make_shop @ 3000'), ('rec', 'make_recording @ 200 stacks'),
                              ('fetch', 'make_recording @ 200 fetch'), ('lines', 'make_lines @ random 200 1'),
                              ('places', 'make_places @ sharing'), ('nb', 'make_neighbours @ short 1'), ('ann', 'make_annotated @')):
            program, *args = command.split()
            subprocess.run([os.path.join(make, program), *(self.path(name) if x == '@' else x for x in args)], check=True)
        ibscope = os.path.join(build, 'ibscope')
        subprocess.run([ibscope, 'export', '--perf-data', self.path('perf'), self.path('rec')], check=True, stderr=subprocess.DEVNULL)
        with open(self.path('json'), 'wb') as f:
            subprocess.run([ibscope, 'replay', '--json', self.path('shop')], check=True, stdout=f)

    def path(self, name):
        return os.path.join(self.dir, name)


def ask(p, err, command, pins):
    """The counters of a collector, once it samples, before it is asked to end."""
    end = time.monotonic() + LIMIT_S
    while p.poll() is None and time.monotonic() < end:
        with open(err, 'rb') as f:
            if b'kernel memory' in f.read():
                break
        time.sleep(0.02)
    said = subprocess.run([command[0], 'ctl', 'snapshot', '--json', '--pin-dir', pins], capture_output=True) if p.poll() is None else None
    p.send_signal(signal.SIGTERM)
    return said.stdout if said else b''


class Run:
    """A run of a case, in a directory of its own."""

    def __init__(self, driver, case, what=None, n=0, all_=False):
        self.case, self.what, self.n, self.all = case, what, n, all_
        with tempfile.TemporaryDirectory(dir=driver.dir) as d:
            out, state = os.path.join(d, 'out'), os.path.join(driver.dir, os.path.basename(d) + '.state')
            if case.files():
                with open(out, 'wb') as f:
                    f.write(BEFORE)
            env = {**os.environ, 'LC_ALL': 'C.UTF-8', 'COLUMNS': '120', 'MALLOC_PERTURB_': '165'}
            if what:
                with open(state, 'wb') as f:
                    f.truncate(LOG + 4 * LOG_MAX)
                env |= dict(LD_PRELOAD=driver.library, INJECT_STATE=state, INJECT_WHAT=what, INJECT_N=str(n))
                env |= dict(INJECT_ALL='1') if all_ else {}
            words = [out if x == '@out' else driver.input(x[1:]) if x[0] == '@' else x for x in case.words]
            command = [driver.program + words[0][1:], *words[1:]] if words[0][0] == '+' else [driver.program, *words]
            pins = f'{PINS}-{os.path.basename(d)}'
            command = [{'@pins': pins, '@socket': os.path.join(d, 'socket')}.get(x, x) for x in command]
            self.start(command, env, d, pins if '@pins' in case.words else None)
            self.left = sorted(os.listdir(d))
            self.file = None
            if os.path.exists(out):
                with open(out, 'rb') as f:
                    self.file = f.read()
                if case.check is readable and self.file != BEFORE:
                    self.dump = subprocess.run([driver.program, 'dump', '--json', out], capture_output=True)
            self.stdout = self.stdout.replace(d.encode(), b'DIR')
            self.read_state(state) if what else None

    def start(self, command, env, d, pins):
        """With pins, a collector: it is asked for its counters, and ended."""
        with open(os.path.join(d, 'stderr'), 'w+b') as err:
            p = subprocess.Popen(command, env=env, cwd=d, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, start_new_session=True)
            try:
                asked = ask(p, err.name, command, pins) if pins else b''
                self.stdout = p.communicate(timeout=LIMIT_S)[0] + asked
                self.status = p.returncode
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, 9)
                self.stdout = p.communicate()[0]
                self.status = None
            err.seek(0)
            self.stderr = err.read()
        os.unlink(err.name)
        self.pins = bool(pins) and os.path.exists(pins)
        if self.pins:
            subprocess.run([command[0], 'ctl', 'unpin', '--pin-dir', pins], capture_output=True)

    def read_state(self, state):
        with open(state, 'rb') as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            self.calls, self.failed = struct.unpack_from('QQ', m)
            self.stack = m[STACK:LOG].split(b'\0')[0].decode().splitlines()
            self.log = struct.unpack_from(f'{min(self.calls, LOG_MAX)}I', m, LOG) if not self.n else ()
        os.unlink(state)


class Driver:
    def __init__(self, build, library, directory):
        self.symbols = Symbols(os.path.join(build, 'ibscope'))
        self.program, self.library, self.dir = os.path.join(build, 'ibscope'), library, directory
        os.mkdir(os.path.join(directory, 'in'))
        self.inputs, self.live = Inputs(build, os.path.join(directory, 'in')), None

    def input(self, name):
        """A path: of a recording, or of the pins or the socket of a collector."""
        if name in ('live', 'live.sock'):
            return f'{PINS}-live' if name == 'live' else os.path.join(self.dir, 'live', 'sock')
        return self.inputs.path(name) if name not in ('pins', 'socket') else f'@{name}'

    def collect(self):
        """Start the collector that commands read."""
        os.mkdir(os.path.join(self.dir, 'live'))
        err = os.path.join(self.dir, 'live', 'stderr')
        with open(err, 'wb') as f:
            self.live = subprocess.Popen([self.program, 'serve', *SIM.split(), '--pin-dir', f'{PINS}-live', '--control', self.input('live.sock'),
                                          '--unpin', '--flight', '10s:1M', '--hot-lines', '--max-groups', '64', '--by', 'container,src,ccx', '--max-overhead', 'off'],
                                         stdin=subprocess.DEVNULL, stderr=f)
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and self.live.poll() is None:
            with open(err, 'rb') as f:
                said = f.read()
            if b'kernel memory' in said:
                return
            time.sleep(0.05)
        raise RuntimeError(f'no collector: {said}')

    def end(self):
        if self.live:
            self.live.terminate()
            self.live.wait(LIMIT_S)
            self.live = None

    def faults(self, case, what, rng=None, most=None):
        """(n, all) of the runs of a case: the first and the last call of each stack; or @most of them, chosen by @rng."""
        r = Run(self, case, what)
        seen = {}
        for n, h in enumerate(r.log, 1):
            seen[h] = (seen.get(h, (n,))[0], n)
        once = sorted({n for pair in seen.values() for n in pair})
        every = sorted(pair[0] for pair in seen.values())
        found = [(n, False) for n in once] + [(n, True) for n in every]
        return found if most is None or len(found) <= most else rng.sample(found, most)

    def judge(self, good, r):
        """What is wrong with a run; @good: runs without a failure."""
        problem = self.problem(good, r)
        stack = self.symbols.stack(r.stack) if problem else ''
        return None if any(problem == p and r.case.name.startswith(words) and function in stack
                           for words, function, p in EXCEPTIONS) else problem

    def problem(self, good, r):
        try:
            return self.broken_rule(good, r)
        except ValueError as e:
            return f'output is not JSON: {e}'

    def broken_rule(self, good, r):
        first, case = good[0], r.case
        if r.status is None:
            return 'hangs'
        if r.status < 0 or r.status > 2:
            return f'ended by signal {-r.status}' if r.status < 0 else f'exit status {r.status}'
        if not r.failed:
            return None
        # what has no memory ends as if it were killed: the next collector takes its pins; and without any descriptor nothing is removed
        killed = r.all or b'out of memory' in r.stderr
        left = set(r.left) - set(first.left) - ({'socket'} if killed else set())
        if left or (r.pins and not killed):
            return f'leaves {left or "pins"}'
        if case.check:
            return case.check(first, r)
        before = first.stderr.decode().splitlines()
        says = '\n'.join(x for x in r.stderr.decode(errors='replace').splitlines() if x not in before)
        incomplete = 'incomplete' in says or 'left out' in says     # of what could be read there is a result
        # complete, if only what follows failed, such as advice
        whole = r.file == first.file or first.file != good[-1].file
        if case.files() and r.status and r.file != BEFORE and not whole and not incomplete:
            return f'exit status {r.status}, but the result has {len(r.file)} bytes'
        if r.status:
            return None if 'error: ' in says or 'out of memory' in says or incomplete or r.status == first.status and r.stderr \
                else f'exit status {r.status} without a message'
        for a, b, mine, name in ((first.stdout, good[-1].stdout, r.stdout, 'output'), (first.file, good[-1].file, r.file, 'result')):
            if (mine != a if a == b else bool(mine) != bool(a)) and not says and not TOLD.search(mine or b''):
                return f'exit status 0 with another {name} and no message'
        return None


class Symbols:
    def __init__(self, program):
        self.program, self.known = program, {}

    def name(self, line):
        at, _, symbol = line.partition(' ')
        module, _, offset = at.rpartition('+')
        if module:
            return symbol or os.path.basename(module)
        if offset not in self.known:
            address = hex(int(offset, 16) - 1)
            p = subprocess.run(['addr2line', '-fie', self.program, address], capture_output=True, text=True)
            lines = p.stdout.splitlines()
            self.known[offset] = f'{lines[0]} ({os.path.basename(lines[1]).split(" ")[0]})' if len(lines) > 1 else offset
        return self.known[offset]

    def stack(self, lines):
        """The innermost functions, without those of preload.c."""
        inner = [x for x in lines[1:] if 'inject' not in x.split('+')[0] and 'preload' not in x.split('+')[0]]
        names = [self.name(x) for x in inner[:14]]
        names = [x for x in names if x not in ('libc.so.6', '')]
        return f'{lines[0]}: ' + ' < '.join(names[:8]) if lines else '?'


def build_library(directory, cc='cc'):
    library = os.path.join(directory, 'preload.so')
    subprocess.run([*cc.split(), '-std=gnu11', '-D_GNU_SOURCE', '-O2', '-fPIC', '-fexceptions', '-shared', '-o', library,
                    os.path.join(HERE, 'preload.c')], check=True)
    return library


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--seed', default='1')
    ap.add_argument('--most', type=int, help='failures of each command and kind')
    ap.add_argument('--jobs', type=int, default=os.cpu_count())
    ap.add_argument('--what', default='alloc,calls')
    ap.add_argument('--live', action='store_true', help='the commands that sample, and those that ask a collector')
    ap.add_argument('names', nargs='*', help='only commands that contain this')
    args = ap.parse_args()
    rng, count, found = random.Random(args.seed), 0, collections.OrderedDict()
    with tempfile.TemporaryDirectory() as d, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        driver = Driver(os.path.abspath(args.build), build_library(d), d)
        if args.live:
            driver.collect()
        for case in LIVE if args.live else OFFLINE:
            if args.names and not any(x in case.name for x in args.names):
                continue
            good = [Run(driver, case), Run(driver, case)]
            began, runs = time.monotonic(), 0
            for what in args.what.split(','):
                faults = driver.faults(case, what, rng, args.most)
                for r in pool.map(lambda f: Run(driver, case, what, *f), faults):
                    runs += 1
                    problem = driver.judge(good, r)
                    if problem:
                        key = (case.name, problem, driver.symbols.stack(r.stack))
                        if key not in found:
                            found[key] = r
                            print(f'FAIL {case.name}: {what} {r.n}{" on" if r.all else ""}: {problem}\n     {key[2]}\n'
                                  f'     {r.stderr.decode(errors="replace")[-300:].strip()}', flush=True)
            count += runs
            print(f'{case.name}: {runs} failures injected, {time.monotonic() - began:.0f} s (exit {good[0].status}'
                  f'{"" if good[0].stdout == good[1].stdout and good[0].file == good[1].file else ", output varies"})', flush=True)
    driver.end()
    print(f'{count} failures injected, {len(found)} problems')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
