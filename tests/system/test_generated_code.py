# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of code that real runtimes generate: by the lists that node, CPython and OpenJDK write."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import ibscope
from ibscope import can_bpf, run

OK, WHY = can_bpf()
SECONDS = 1     # of CPU time; java measures time, of which it may get a part, and begins slowly
JAVA_SECONDS = 2
JS = r'^(JS|LazyCompile|Function):'     # as newer and older V8 begin names

NODE = '''
function inner(n, i) { let s = i; for (let k = 0; k < n; k++) s = (s * 31 + k) | 0; return s; }
function outer() {
    let t = 0;
    for (let i = 0; i % 64 || process.cpuUsage().user < SECONDS * 1e6; i++) t ^= inner(8192, i);
    return t;
}
console.log(process.pid, outer());
'''
PYTHON = '''
import os, time
def leaf(): pass
def loop():
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        leaf(); leaf(); leaf(); leaf(); leaf(); leaf(); leaf(); leaf()
loop()
print(os.getpid())
'''
JAVA = '''
public class Busy {
    static int[] a = new int[1 << 16];
    static int hot(int k) { int s = 0; for (int i = 0; i < a.length; i++) s += a[i] ^ k; return s; }
    public static void main(String[] x) {
        long end = System.currentTimeMillis() + JAVA_SECONDS * 1000;
        int t = 0;
        for (int k = 0; System.currentTimeMillis() < end; k++) t += hot(k);
        System.out.println(ProcessHandle.current().pid() + " " + t);
    }
}
'''


def python_since(minor):
    """A python3 that can list its functions, maybe installed beside the one that runs this; or None."""
    beside = os.path.join(os.path.dirname(sys.base_prefix), '*', 'bin', 'python3')
    candidates = ['python3', *(f'python3.{m}' for m in range(20, minor - 1, -1)),
                  *sorted(glob.glob(beside), reverse=True)]
    for path in filter(None, map(shutil.which, candidates)):
        p = subprocess.run([path, '-c', 'import sys; print(sys.version_info[1])'], capture_output=True, text=True, check=False)
        if p.returncode == 0 and int(p.stdout) >= minor:
            return path
    return None


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class GeneratedCode(unittest.TestCase):
    def setUp(self):
        d = tempfile.TemporaryDirectory(prefix='ibscope-generated.')
        self.addCleanup(d.cleanup)
        self.dir = d.name

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, 'w', encoding='ascii') as f:
            f.write(text.replace('JAVA_SECONDS', str(JAVA_SECONDS)).replace('SECONDS', str(SECONDS)))
        return path

    def record(self, *command, period=1000000, options=()):
        """Run it. Return: its pid."""
        self.file = os.path.join(self.dir, 'recording')
        p = subprocess.run([ibscope.IBSCOPE, 'record', '--source', 'sim', '-c', str(period), *options, '-o', self.file, '--', *command],
                           cwd=self.dir, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(p.returncode, 0, p.stderr + p.stdout)
        pid = int(p.stdout.split()[0])
        self.addCleanup(lambda: [os.unlink(f) for f in glob.glob(f'/tmp/perf-{pid}.map') + glob.glob(f'/tmp/jit-{pid}.dump')])
        return pid

    def report(self):
        """Samples by name, the ledger of symbols, and warnings."""
        p = run('report', self.file, '--by', 'symbol', '--top', '100000', '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        j = json.loads(p.stdout)
        return {r['labels']['symbol']: r['samples'] for r in j['rows']}, j['symbols'], p.stderr

    def assert_named(self, pattern, share):
        names, ledger, warning = self.report()
        found = sum(n for name, n in names.items() if re.search(pattern, name))
        # the rest is the start of the runtime, which takes longer beside other tests
        self.assertGreater(found, share * sum(names.values()), names)
        self.assertEqual((ledger['jit_without_map'], warning), (0, ''), names)
        return names

    @unittest.skipUnless(shutil.which('node'), 'no node')
    def test_node_dump(self):
        pid = self.record('node', '--perf-prof', self.write('busy.js', NODE))
        names = self.assert_named(JS + r'.*(inner|outer) .*busy\.js:\d', 0.2)
        dump = os.path.join(self.dir, f'jit-{pid}.dump')
        self.assertEqual(glob.glob(f'/tmp/perf-{pid}.map'), [])
        self.hostile(dump, pid, names)

    def hostile(self, dump, pid, names):
        """What the owner of the process may put in the place of the file afterwards."""
        good, other = dump + '.good', os.path.join(self.dir, 'other')
        os.rename(dump, good)
        with open(good, 'rb') as f:
            data = f.read()

        def put(data):
            with open(dump, 'wb') as f:
                f.write(data)

        def theirs():
            put(data)
            os.chown(dump, 12345, 12345)

        def huge():
            put(data)
            os.truncate(dump, (2 << 30) + 1)

        for make, why in ((lambda: None, 'No such file'), (lambda: os.mkfifo(dump), 'not a regular file'),
                          (lambda: os.symlink(good, dump), 'not a regular file'), (lambda: os.mkdir(dump), 'not a regular file'),
                          (lambda: put(b'\x7fELF' + data[4:]), 'not a jitdump of the process'),
                          (lambda: put(data[:20] + b'\1\0\0\0' + data[24:]), 'not a jitdump of the process'),
                          (lambda: put(data[:44] + bytes(4) + data[48:]), 'a record has a length of 0'),
                          (theirs, 'belongs to another user'), (huge, 'larger than 2 GiB')):
            with self.subTest(why):
                make()
                got, ledger, warning = self.report()
                self.assertIn(f'jit-PID.dump of process {pid}: ', warning)
                self.assertIn(why, warning)
                self.assertGreater(ledger['jit_without_map'], 0)
                self.assertEqual([n for n in got if re.search(JS, n)], [])
                if os.path.isdir(dump):
                    os.rmdir(dump)
                elif os.path.lexists(dump):
                    os.unlink(dump)
        # before its code was there, an address has no name
        at, moved = 40, bytearray(data)
        while at + 16 <= len(data):
            size = int.from_bytes(data[at + 4:at + 8], sys.byteorder)
            moved[at + 8:at + 16] = (1 << 62).to_bytes(8, sys.byteorder)
            at += size
        put(moved)
        got, ledger, warning = self.report()
        self.assertEqual(([n for n in got if re.search(JS, n)], warning), ([], ''))
        self.assertGreater(ledger['no_symbol'], 0)
        os.rename(good, dump)
        self.assertEqual(self.report()[0], names)

    @unittest.skipUnless(shutil.which('node'), 'no node')
    def test_node_map(self):
        self.record('node', '--perf-basic-prof', self.write('busy.js', NODE))
        self.assert_named(JS + r'.*(inner|outer) .*busy\.js:\d', 0.2)
        self.record('node', self.write('busy.js', NODE))
        names, ledger, _ = self.report()
        self.assertGreater(ledger['jit_without_map'], sum(names.values()) / 5)

    @unittest.skipUnless(shutil.which('node'), 'no node')
    def test_node_stacks(self):
        """Through generated code, V8's builtins and C++, from the innermost function to the first."""
        self.record('node', '--perf-basic-prof', '--interpreted-frames-native-stack', '--no-turbo-inlining',
                    self.write('busy.js', NODE), options=('--call-graph', 'dwarf,16K'))
        p = run('report', '--folded', 'samples', self.file)
        self.assertEqual(p.returncode, 0, p.stderr)
        inner = [line.rsplit(' ', 1) for line in p.stdout.splitlines() if re.search(r'\w:[*]inner [^;]*busy\.js:[\d:]+ \d+$', line)]
        # a stripped V8 is not known as such
        first = ';node::Start;' if 'Builtins_' in p.stdout else ';'
        total = sum(int(n) for _, n in inner)
        whole = sum(int(n) for stack, n in inner if re.search(
            first + r'.*Module\._compile [^;]*;[^;]*busy\.js:[\d:]+;\w+:.outer [^;]*busy\.js:[\d:]+;[^;]*inner [^;]*$', stack))
        self.assertGreater(total, 20)
        # an interrupt at the begin of a function, before its frame is there, finds the caller of its caller
        self.assertGreater(whole, 0.8 * total, p.stdout)

    def python(self, minor, option):
        path = python_since(minor)
        if not path:
            self.skipTest(f'no python3 >= 3.{minor}')
        p = subprocess.run([path, '-X', option, '-c', ''], capture_output=True, text=True, check=False)
        if p.returncode:
            self.skipTest(f'{path} cannot: {p.stderr.strip()}')
        # the generated code is a few instructions that call the interpreter
        pid = self.record(path, '-X', option, self.write('busy.py', PYTHON), period=250000)
        self.assert_named(r'^py::(leaf|loop):.*busy\.py$', 0)
        return pid

    def test_python_map(self):
        self.python(12, 'perf')

    def test_python_dump(self):
        pid = self.python(13, 'perf_jit')
        self.assertEqual(glob.glob(f'/tmp/perf-{pid}.map'), [])

    @unittest.skipUnless(shutil.which('javac') and shutil.which('java'), 'no JDK')
    def test_java(self):
        subprocess.run(['javac', '-d', self.dir, self.write('Busy.java', JAVA)], check=True)
        self.record('java', '-XX:+UnlockDiagnosticVMOptions', '-XX:+DumpPerfMapAtExit', '-cp', self.dir, 'Busy')
        self.assert_named(r'Busy\.(hot|main)\(', 0.2)


if __name__ == '__main__':
    unittest.main()
