# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --allocs: allocations of known programs, with their stacks, and what cannot be recorded."""
import collections
import glob
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import ibscope

OK, WHY = ibscope.can_bpf()
HERE = os.path.dirname(os.path.abspath(__file__))
SIM = '--source', 'sim', '-c', '1000000', '--max-loss', '100%'
MEAN = 4096 * 128  # bytes for each small allocation that is sampled


class Symbols:
    """Functions of a program that is not position independent."""

    def __init__(self, program):
        self.at = []
        for line in subprocess.run(['nm', '-S', program], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in 'tTW':
                self.at.append((int(words[0], 16), int(words[1], 16), words[3]))

    def name(self, address):
        for start, size, name in self.at:
            if start < address <= start + size:  # a return address is behind its call
                return name
        return None

    def names(self, stack):
        return [self.name(int(a, 16)) for a in stack]


class Truth:
    """What a program says of itself, in its own order in each process."""

    def __init__(self, text):
        self.steps = collections.defaultdict(list)  # by process: what happened to an address
        self.small = None
        self.functions = collections.Counter()
        for line in text.splitlines():
            word, *rest = line.split()
            if word == 'alloc':
                kind, pid, address, size, function = rest
                self.steps[int(pid), address].append(('alloc', kind == 'mmap', int(size)))
                self.functions[function] += 1
            elif word == 'free':
                self.steps[int(rest[0]), rest[1]].append(('free',))
            elif word == 'small':
                self.small = int(rest[0])


class Got:
    def __init__(self, file):
        p = ibscope.run('dump', '--events', '--json', file)
        assert p.returncode == 0, p.stderr
        self.events = [e for e in map(json.loads, p.stdout.splitlines()) if e['type'] in ('alloc', 'free')]
        self.allocs = [e for e in self.events if e['type'] == 'alloc']
        self.steps = collections.defaultdict(list)
        for e in self.events:
            step = ('alloc', e['mapped'], e['size']) if e['type'] == 'alloc' else ('free',)
            self.steps[e['pid'], e['addr']].append(step)


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-allocs.')
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, 'ibscope.data')

    def build(self, source='allocs_load.c', *options):
        program = os.path.join(self.dir, 'load')
        compiler = 'g++' if source.endswith('pp') else 'gcc'
        p = subprocess.run([compiler, '-D_GNU_SOURCE', '-O2', '-fomit-frame-pointer', '-no-pie', '-w', '-o', program,
                            os.path.join(HERE, source), '-pthread', *options], capture_output=True, text=True)
        if p.returncode:
            self.skipTest(f'{compiler}: ' + (p.stderr.splitlines() or [''])[-1])
        return program

    def record(self, *command, args=('--allocs',), status=0, **kw):
        p = ibscope.run('record', *SIM, *args, '--', *command, cwd=self.dir, **kw)
        self.assertEqual(p.returncode, status, p.stderr)
        for line in p.stdout.splitlines():
            if line.startswith('dir '):
                self.assertRegex(line, r'^dir /\S+/ibscope-regions\.\w+\.\w+$')
                self.assertFalse(os.path.exists(line.split()[1]))
        return p

    def check(self, truth, got):
        """All that the program says is there, in its order; only unknown addresses have more."""
        self.assertGreater(len(truth.steps), 5)
        for (pid, address), steps in truth.steps.items():
            self.assertEqual(got.steps[pid, address][:len(steps)], steps, (pid, address))


class Known(Case):
    def test_all(self):
        """Threads, fork, exec, chains of realloc, mappings: each address has the history that the program says."""
        program = self.build()
        p = self.record(program)
        self.assertNotIn('frees were lost', p.stderr)
        truth, got = Truth(p.stdout), Got(self.file)
        # of the small ones, those that are sampled may have had an address before
        got.steps = collections.defaultdict(list)
        small = {(e['pid'], e['addr']) for e in got.allocs if e['size'] < 4096}
        for e in got.events:
            if (e['pid'], e['addr']) not in small:
                step = ('alloc', e['mapped'], e['size']) if e['type'] == 'alloc' else ('free',)
                got.steps[e['pid'], e['addr']].append(step)
        for k in [k for k in truth.steps if k in small]:
            del truth.steps[k]
        self.check(truth, got)
        self.assertEqual(sum(truth.functions.values()), 12 + 3 + 4 * 50 + 3)

    def test_stacks(self):
        """Without frame pointers: the function that called malloc, and its callers up to main or the thread."""
        program = self.build()
        p = self.record(program)
        symbols, truth, got = Symbols(program), Truth(p.stdout), Got(self.file)
        certain = [e for e in got.allocs if e['size'] >= 4096]
        functions = collections.Counter(symbols.name(int(e['stack'][0], 16)) for e in certain)
        for name, n in truth.functions.items():
            self.assertEqual(functions[name], n, (name, functions))
        for e in certain:
            names = symbols.names(e['stack'])
            if names[0] in truth.functions:
                self.assertTrue({'main', 'thread'} & set(names[1:3]), names)
        self.assertTrue(any(symbols.names(e['stack'])[1:2] == ['thread'] for e in certain))
        self.assertEqual({e['weight'] == e['size'] for e in certain}, {True})

    def test_small(self):
        """Their weights add up to all small ones, within four standard errors."""
        program = self.build()
        p = self.record(program)
        symbols, truth, got = Symbols(program), Truth(p.stdout), Got(self.file)
        small = [e for e in got.allocs if e['size'] < 4096 and symbols.name(int(e['stack'][0], 16)) == 'small']
        self.assertGreater(len(small), 400)
        error = math.sqrt(sum(e['weight'] ** 2 * math.exp(-e['size'] / MEAN) for e in small))
        self.assertLess(error, 0.06 * truth.small)
        self.assertLess(abs(sum(e['weight'] for e in small) - truth.small), 4 * error)
        freed = collections.Counter(e['addr'] for e in got.events if e['type'] == 'free')
        self.assertTrue(all(freed[e['addr']] for e in small))

    def test_bytes(self):
        """With 1 all allocations are certain; with 1 MiB only the mappings are."""
        program = self.build()
        self.record(program, 'again', args=('--allocs=1',))
        got = Got(self.file)
        self.assertTrue(all(e['weight'] == e['size'] for e in got.allocs))
        self.record(program, args=('--allocs=1M',))
        sizes = {e['size'] for e in Got(self.file).allocs if e['weight'] == e['size']}
        self.assertEqual(sizes, {1 << 20, 4 << 20})

    def test_killed(self):
        """What a process wrote before SIGKILL is there."""
        program = self.build()
        p = self.record(program, 'killed', status=128 + 9)
        self.assertEqual(sum(e['size'] == 9000 for e in Got(self.file).allocs), 1000)
        self.assertEqual(Truth(p.stdout).functions, {'by_malloc': 1000})

    def check_new(self, program, **kw):
        p = self.record(program, **kw)
        symbols, got = Symbols(program), Got(self.file)
        truth = Truth(p.stdout)
        self.assertEqual(len(truth.functions), 5)
        for address, steps in truth.steps.items():
            self.assertEqual(got.steps[address][:len(steps)], steps)
        functions = {20000: '_ZL6by_newv', 40000: '_ZL9by_vectorv', 12000: 'main', 12800: '_ZL10by_alignedv', 15000: '_ZL10by_nothrowv'}
        sizes = collections.Counter(e['size'] for e in got.allocs)
        self.assertEqual({sizes[size] for size in functions}, {1}, 'each is noted once')
        for e in got.allocs:
            if e['size'] in functions:
                names = symbols.names(e['stack'])
                self.assertIn('main', names)
                self.assertIn(functions[e['size']], names[:3])

    def test_new(self):
        self.check_new(self.build('allocs_load.cpp'))

    def jemalloc(self):
        libraries = glob.glob('/usr/lib/*/libjemalloc.so.2')
        if not libraries:
            self.skipTest('no libjemalloc.so.2: install libjemalloc2')
        return '-Wl,--no-as-needed', libraries[0]

    def test_jemalloc(self):
        """malloc and its family, and jemalloc's own functions, each noted once, and their frees."""
        program = self.build('allocs_load.c', '-DJEMALLOC', *self.jemalloc())
        p = self.record(program)
        self.assertNotIn('defined malloc', p.stderr)
        symbols, truth, got = Symbols(program), Truth(p.stdout), Got(self.file)
        functions = collections.Counter(symbols.name(int(e['stack'][0], 16)) for e in got.allocs)
        for name, n in truth.functions.items():
            self.assertEqual(functions[name], n, name)
        freed = collections.Counter(key for key, steps in got.steps.items() for step in steps if step[0] == 'free')
        of_jemalloc = {e['size']: (e['pid'], e['addr']) for e in got.allocs if e['size'] in (5005, 50050, 5006)}
        self.assertEqual(len(of_jemalloc), 3)
        for size, key in of_jemalloc.items():
            self.assertTrue(freed[key], size)

    def test_jemalloc_new(self):
        """Operators that jemalloc defines, lazily bound or not, and of a program that was not linked with it."""
        linked = self.jemalloc()
        for options in ['-Wl,-z,lazy'], ['-Wl,-z,now,-z,relro', '-fno-plt']:
            with self.subTest(options):
                self.check_new(self.build('allocs_load.cpp', *options, *linked))
        self.check_new(self.build('allocs_load.cpp'), env=dict(os.environ, LD_PRELOAD=linked[-1]))

    def test_pid_namespace(self):
        """Ids are those that samples have, whatever the processes see."""
        program = self.build()
        try:
            subprocess.run(['unshare', '-pf', 'true'], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest('unshare -pf does not work here')
        p = self.record('unshare', '-pf', program, 'seen')
        self.assertEqual([pid for pid, _ in Truth(p.stdout).steps], [1])
        pids = {e['pid'] for e in Got(self.file).allocs if e['size'] == 7000}
        self.assertEqual(len(pids), 1)
        forks = [e['pid'] for e in map(json.loads, ibscope.run('dump', '--events', '--json', self.file).stdout.splitlines())
                 if e['type'] == 'fork']
        self.assertIn(pids.pop(), forks)


class Probes(Case):
    """Programs that report their allocations by USDT probes."""

    def setUp(self):
        super().setUp()
        # frame pointers: the kernel walks these stacks
        self.program = self.build('probes_load.c', '-fno-omit-frame-pointer', '-g')

    def check_probes(self, output, processes):
        truth, got = collections.defaultdict(list), collections.defaultdict(list)
        for line in output.splitlines():
            word, *rest = line.split()
            if word in ('alloc', 'free'):
                truth[int(rest[0]), rest[1]].append((word, *map(int, rest[2:])))
        events = Got(self.file).events
        for e in events:
            got[e['pid'], e['addr']].append(('alloc', e['size']) if e['type'] == 'alloc' else ('free',))
        self.assertEqual(len({pid for pid, _ in truth}), processes)
        self.assertEqual(got, truth)
        symbols = Symbols(self.program)
        for e in events:
            if e['type'] == 'alloc':
                self.assertEqual(e['weight'], 10 * e['size'])
                self.assertEqual(symbols.names(e['stack'])[:3], ['je_sampled', 'by_probe', 'main'])

    def start(self, *command):
        """Something that runs the program with `wait`."""
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.dir)
        for close in p.stdin.close, p.stdout.close, p.stderr.close, p.wait, p.kill:
            self.addCleanup(close)
        return p

    def ready(self, p):
        self.assertEqual(p.stdout.readline(), 'ready\n')
        return p

    def go(self, p):
        """Let it allocate. Return: what it said."""
        p.stdin.write('\n')
        p.stdin.flush()
        lines = []
        while not lines or lines[-1] != 'done\n':
            lines.append(p.stdout.readline())
            self.assertTrue(lines[-1])
        return ''.join(lines)

    def check_command(self):
        """Of the command, by its interpreter, and its children, and not of a process that runs beside them."""
        script = os.path.join(self.dir, 'script')
        with open(script, 'w') as f:
            f.write(f'#! {self.program} wait\n')
        os.chmod(script, 0o755)
        other = self.ready(self.start(self.program, 'wait'))
        record = self.ready(self.start(os.path.join(ibscope.BUILD, 'ibscope'), 'record', *SIM, '--allocs', '--', script, 'fork'))
        self.go(other)
        output = self.go(record)
        record.stdin.close()
        errors = record.stderr.read()
        self.assertEqual(record.wait(), 0, errors)
        self.assertIn('150 allocations and frees by probes of 1 file', errors)
        self.check_probes(output, 2)

    def test_command(self):
        self.check_command()
        text = ibscope.run('dump', '--events', self.file).stdout
        self.assertIn('# allocations: those that programs report by probes\n', text)

    def test_static(self):
        """No library could be loaded into it."""
        self.program = self.build('probes_load.c', '-fno-omit-frame-pointer', '-g', '-static')
        self.check_command()

    def test_running(self):
        """A process that runs already: no library is loaded into it."""
        for follow in [], ['--follow']:
            if os.path.exists(self.file):
                os.unlink(self.file)
            program, other = (self.ready(self.start(self.program, 'wait')) for _ in range(2))
            record = self.start(os.path.join(ibscope.BUILD, 'ibscope'), 'record', *SIM, '--allocs', '-p', str(program.pid), *follow)
            while not os.path.exists(self.file):
                self.assertIsNone(record.poll())
                time.sleep(0.02)
            self.go(other)
            output = self.go(program)
            record.send_signal(signal.SIGINT)
            self.assertEqual(record.wait(), 0, record.stderr.read())
            self.check_probes(output, 1)

    def test_report(self):
        """The site is the function that called the allocator."""
        p = ibscope.run('record', '--source', 'sim', '-c', '20000', '--max-loss', '100%', '--allocs', '--', self.program, cwd=self.dir)
        self.assertEqual(p.returncode, 0, p.stderr)
        p = ibscope.run('report', '--json', '--by', 'allocation', self.file)
        rows = {r['labels']['allocation']: r['samples'] for r in json.loads(p.stdout)['rows']}
        sites = [site for site in rows if site and 'by_probe' in site]
        self.assertEqual(len(sites), 1, rows)
        self.assertRegex(sites[0], r'^by_probe probes_load\.c:\d+$')
        self.assertGreater(rows[sites[0]], 10, rows)

    def test_none(self):
        with subprocess.Popen(['sleep', '60']) as program:
            self.addCleanup(program.kill)
            p = ibscope.run('record', *SIM, '--allocs', '-p', str(program.pid), cwd=self.dir)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(f'process {program.pid} has no file with the USDT probe otel_memory:alloc', p.stderr)
            self.assertFalse(os.path.exists(self.file))
            program.kill()

    def test_unreadable(self):
        """Root without CAP_SYS_PTRACE may not look into processes that have it."""
        less = 'setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace'
        with subprocess.Popen(['sleep', '60']) as program:
            self.addCleanup(program.kill)
            if not subprocess.run([*less, 'ls', f'/proc/{program.pid}/root/'], capture_output=True).returncode:
                self.skipTest('this root has no CAP_SYS_PTRACE to lack')
            p = subprocess.run([*less, os.path.join(ibscope.BUILD, 'ibscope'), 'record', *SIM, '--allocs', '-p', str(program.pid)],
                               cwd=self.dir, capture_output=True, text=True, timeout=60)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr, rf'cannot look for probes in process {program.pid}: /proc/{program.pid}/\S+: Permission denied; '
                                       r'run this as root, or give it CAP_SYS_PTRACE')
            self.assertFalse(os.path.exists(self.file))
            program.kill()


class Refused(Case):
    def refuse(self, words, *args):
        p = ibscope.run('record', *SIM, *args, cwd=self.dir)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn(words, p.stderr)
        self.assertFalse(os.path.exists(self.file))

    def test_options(self):
        self.refuse("--allocs: put the program after '--', or choose processes", '--allocs')
        self.refuse("--allocs: put the program after '--', or choose processes", '--allocs', '--csv', '--', 'true')
        self.refuse('--rotate exclude each other', '--allocs', '--rotate', '3', '--max-size', '1M', '--', 'true')
        self.refuse('--allocs', '--allocs=0', '--', 'true')
        self.refuse('--allocs', '--allocs=many', '--', 'true')

    def test_programs(self):
        program = self.build('allocs_load.c', '-static')
        self.refuse('is statically linked, so that libibscope-alloc.so cannot be loaded into it', '--allocs', '--', program)
        script = os.path.join(self.dir, 'script')
        with open(script, 'w') as f:
            f.write(f'#! {program} again\n')
        os.chmod(script, 0o755)
        self.refuse('is statically linked', '--allocs', '--', script)
        program = self.build()
        os.chown(program, 12345, 12345)
        os.chmod(program, 0o4755)
        self.refuse('is setuid or setgid or has capabilities', '--allocs', '--', program)
        with open(program, 'r+b') as f:
            f.seek(4)
            f.write(b'\1')  # ELFCLASS32
        self.refuse('is not a 64-bit x86 program', '--allocs', '--', program)

    def test_other_programs(self):
        """Programs that the command runs and whose allocations cannot be noted are counted."""
        still = os.path.join(self.dir, 'still.c')
        with open(still, 'w') as f:
            f.write('#include <unistd.h>\nint main(void) { return getppid() == 0 || pause(); }\n')
        static = self.build(still, '-static')
        p = self.record('sh', '-c', f'timeout 0.5 {static}; timeout 0.5 {static}; setpriv --reuid=12345 --clear-groups sleep 0.5; true')
        self.assertIn('2 processes could not load libibscope-alloc.so', p.stderr)
        self.assertIn('1 process ran as another user', p.stderr)
        p = self.record('sh', '-c', 'sleep 0.1')
        self.assertNotIn('could not load', p.stderr)
        self.assertNotIn('ran as another user', p.stderr)

    def test_own_malloc(self):
        """A program that defines malloc: only its mappings, and a warning."""
        source = os.path.join(self.dir, 'own.c')
        with open(source, 'w') as f:
            f.write('#include <stddef.h>\n#include <sys/mman.h>\nstatic char heap[1 << 20]; static size_t used;\n'
                    'void *malloc(size_t n) { void *p = heap + used; used += n + 15 & ~15; return p; }\n'
                    'void free(void *p) {}\n'
                    'int main(void) { malloc(5000); return mmap(0, 77824, 3, 0x22, -1, 0) == MAP_FAILED; }\n')
        program = self.build(source, '-rdynamic')
        p = self.record(program)
        self.assertIn('1 program defined malloc: only mappings of such a program are recorded', p.stderr)
        self.assertIn(77824, {e['size'] for e in Got(self.file).allocs})

    def test_library_missing(self):
        program = os.path.join(self.dir, 'ibscope')
        shutil.copy(os.path.join(ibscope.BUILD, 'ibscope'), program)
        p = subprocess.run([program, 'record', *SIM, '--allocs', '--', 'true'], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn('cannot find libibscope-alloc.so in', p.stderr)


if __name__ == '__main__':
    unittest.main()
