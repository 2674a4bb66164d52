# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every command and output while files, threads, cgroups and symbols have names that control terminals,
forge lines of a log, or are formulas of spreadsheets."""
import csv
import ctypes
import http.server
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.error
import urllib.request

import ibscope
import test_diff_history as past
from ibscope import Cgroup, IBSCOPE, can_bpf, cgroup2_mount
from test_push import Server

OK, WHY = can_bpf()
MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SIM = ('--source', 'sim')
# ESC, BEL, a new line, C1's CSI and what turns text around, in 15 bytes as the name of a thread has
COMMS = (b'\x1b[31m\nibscope:', b'\xc2\x9b31m\a\xe2\x80\xae\xff', b'=1+1', b'@a,b;"c\t\x7f')
# a cgroup cannot have a new line in its name
CGROUPS = tuple(name.replace(b'\n', b'\r') for name in COMMS)
ERROR = b'\n\x1b]0;owned\aibscope: error: forged\xc2\x9b31m'
TEXT, CSV, JSON, METRICS, BINARY = 'text', 'csv', 'json', 'metrics', 'binary'
HOSTILE = rb'\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}'    # as it may be printed
# Options that change neither which names are printed nor how. Each other one that --help has, besides what
# samples and selects, has to be walked through below, with success.
QUIET = set('help version top sort reverse interval input output speed own size duration max-size rotate ring-size compress '
            'max-loss limit min-samples max-memory kallsyms debug-dir debuginfod config config-check pin-mode grace unpin '
            'control control-mode max-overhead nmi-cost max-bpf-time max-rss wait user detail edges max-groups web.telemetry-path '
            'web.config.file web.listen-address push-interval push-duration push-credentials push-ca code-maps strata omp lease at window'.split())
SHARED = ('Sampling', 'Selection', 'Measurement')


def forbidden(data):
    """Bytes and characters of output that no name may bring there."""
    text = data.decode('utf-8', 'surrogateescape')
    return re.findall('[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]',
                      text)


def busy(path, cgroup):
    """A program and thread of a name that is busy in a cgroup, some ms of each 200 while it is not stopped, until the end of this process."""
    def start():
        ctypes.CDLL(None).prctl(ibscope.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.nice(10)
    code = 'while :; do i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; sleep 0.2; done'
    p = subprocess.Popen([path, '-c', code], preexec_fn=start, stdout=subprocess.DEVNULL)
    with open(os.path.join(cgroup, b'cgroup.procs'), 'w') as f:
        f.write(str(p.pid))
    return p


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
class HostileNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.walked, cls.busy = set(), []
        d = tempfile.TemporaryDirectory(prefix='ibscope-names-')
        cls.addClassCleanup(d.cleanup)
        cls.dir = d.name
        cls.top = Cgroup(f'/ibscope-names-{os.getpid()}')
        cls.addClassCleanup(cls.top.remove)
        with open('/bin/sh', 'rb') as f:
            shell = f.read()
        for comm, name in zip(COMMS, CGROUPS):
            path = os.path.join(cls.dir.encode(), comm.replace(b'/', b''))
            with open(path, 'wb') as f:
                f.write(shell)
            os.chmod(path, 0o755)
            cgroup = os.path.join(cls.top.dir.encode(), name)
            os.mkdir(cgroup)
            p = busy(path, cgroup)
            cls.addClassCleanup(p.wait)
            cls.addClassCleanup(p.kill)
            cls.busy.append(p)
        cls.signal_busy(signal.SIGSTOP)
        cls.made = os.path.join(cls.dir, '=made\x1b[31m')
        subprocess.run([MAKE, cls.made, '1500', 'stacks'], check=True)
        cls.live = os.path.join(cls.dir, 'live')

    @classmethod
    def signal_busy(cls, signum):
        for p in cls.busy:
            p.send_signal(signum)

    def keep_busy(self):
        """Until the end of a test that samples: the others need nobody."""
        self.signal_busy(signal.SIGCONT)
        self.addCleanup(self.signal_busy, signal.SIGSTOP)

    def start(self, *words, **kw):
        """Run a command and check its stderr. Returns (exit status, stdout, stderr)."""
        p = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, cwd=self.dir, **kw)
        self.check_log(p.stderr, words)
        if not p.returncode or words[1] == 'doctor':    # which finds no IBS here
            name = 'exporter' if 'exporter' in words[0] else words[1]
            self.walked.update((name, word.removeprefix('--').split('=')[0]) for word in ('', *words[1:]) if isinstance(word, str))
        return p.returncode, p.stdout

    def check_log(self, data, where):
        self.assertEqual(forbidden(data), [], (where, data))
        for line in data.splitlines():
            self.assertRegex(line, rb'^ibscope(-exporter)?: (?!error: forged)', where)

    def check(self, data, kind, where):
        if kind == BINARY:
            return
        self.assertEqual(forbidden(data), [], where)
        self.assertNotRegex(data, rb'(?m)^ibscope: ', where)
        if kind == JSON:
            text, at = data.decode(), 0
            while at < len(text):
                _, at = json.JSONDecoder().raw_decode(text, at)
                at += len(text) - at - len(text[at:].lstrip())
        if kind == CSV:
            rows = list(csv.reader(io.StringIO(data.decode())))
            self.assertEqual(len({len(row) for row in rows}), 1, where)
            for cell in sum(rows, []):
                self.assertNotRegex(cell, r'^ *[=+@-](?!\d+(\.\d+)?$)', where)

    def run_it(self, kind, *args, status=0, hostile=True):
        got, out = self.start(IBSCOPE, *args)
        self.assertIn(got, (0, 1) if status is None else (status,), (args, out))
        self.check(out, kind, args)
        if hostile and kind not in (BINARY, CSV):
            self.assertRegex(out, HOSTILE, args)
        return out

    def test_live(self):
        under = ('--cgroup', self.top.path + '/*')
        self.keep_busy()
        for by in ('cgroup,comm', 'container,pod,comm,src'):
            for kind, option in (TEXT, ()), (TEXT, ('--markdown',)), (TEXT, ('--histogram',)), (CSV, ('--csv',)), (JSON, ('--json',)):
                self.run_it(kind, 'hist', *SIM, '-c', '1000000', *under, '--by', by, *option, '1', '1')
        self.run_it(TEXT, 'hist', *SIM, '-v', *under, '--strata', 'auto', '--timestamp', '0.5', '1', hostile=False)
        self.run_it(TEXT, 'hist', *SIM, *under, '--columns', 'samples,histogram', '0.5', '1', hostile=False)
        # names of pairs: test_neighbours.py
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'neighbours', *SIM, '--own', *under, '--duration', '1', *option, hostile=False)
        page = os.path.join(self.dir, 'hist.html')
        self.run_it(BINARY, 'hist', *SIM, '-c', '1000000', *under, '--html', page, '1', '1')
        with open(page, 'rb') as f:
            self.assertEqual(forbidden(f.read()), [])
        for by in 'cgroup', 'comm':
            top = ('top', *SIM, '-c', '1000000', *under, '--by', by, '--once', '-d', '1', '--size', '160x30')
            for html in (), ('--html',):
                out = ibscope.until(lambda: (o := self.run_it(TEXT, *top, *html, hostile=False)) and b'\\x' in o and o)
                self.assertNotIn(b'<script', out)
        self.run_it(TEXT, *top, '--match', COMMS[0].decode(), '--columns', 'samples', hostile=False)
        self.run_it(BINARY, 'record', *SIM, *under, '--duration', '0.2', '--stacks', '-o', self.live)
        for kind, *option in (BINARY, '-o', '-'), (CSV, '--csv'), (JSON, '--json'), (CSV, '--csv', '--raw', '-o', '-'):
            out = self.run_it(kind, 'record', *SIM, '-c', '1000000', *under, '--duration', '0.5', *option)
            self.assertTrue(out)
        self.run_it(BINARY, 'record', *SIM, '-c', '1000000', *under, '--duration', '0.5', '--call-graph', 'kernel', '-o', self.live)
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'numa', '--live', *SIM, '-c', '1000000', *under, '--by', 'comm,cgroup', *option, '1', '1')
        self.run_it(TEXT, 'c2c', '--live', '--feed', 'stores,caches,walks', *SIM, '-c', '1000000', *under, '0.5', '1', hostile=False)
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'c2c', '--live', '--line', '100000000', *SIM, '--sim-ops', 'random', '-F', '2000', *option, '2', '1', hostile=False)
        self.run_it(BINARY, 'record', *SIM, '--slabs', '-o', self.live + '.slabs', '--markers', '--allocs=64', '--', 'true')
        rank = dict(os.environ, OMPI_COMM_WORLD_RANK='0', OMPI_COMM_WORLD_SIZE='1', OMPI_COMM_WORLD_LOCAL_RANK='0',
                    OMPI_COMM_WORLD_LOCAL_SIZE='1', PMIX_NAMESPACE='\x1b[31m')
        status, _ = self.start(IBSCOPE, 'record', *SIM, '--per-rank', '-o', self.live + '.%r', '--', 'sleep', '0.2', env=rank)
        self.assertEqual(status, 0)
        merged = self.live + '.merged'
        self.run_it(BINARY, 'merge', '-o', merged, self.live, self.made)
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'report', '--by', 'host,rank,comm,cgroup', '--top', '1000', *option, '-i', merged)
        for raw in (), ('--raw',):
            self.run_it(TEXT, 'record', *SIM, '-c', '1000000', *under, '--duration', '0.2', *raw,
                        '-o', self.live + '\x1b[31m', hostile=False)
        self.signal_busy(signal.SIGSTOP)
        self.recorded(self.live)

    def recorded(self, file):
        keys = 'comm,cgroup,container,symbol,dso,srcline'
        for kind, *args in ((TEXT, 'report', '--by', keys, '--top', '1000'),
                            (TEXT, 'report', '--by', 'symbol,comm', '-v'),
                            (TEXT, 'report', '--by', keys, '--no-demangle', '--no-inline'),
                            (TEXT, 'numa', '--by', keys, '--no-demangle', '--no-inline'),
                            (TEXT, 'report', '--by', keys, '--markdown'), (TEXT, 'numa', '--by', keys, '--markdown'),
                            (TEXT, 'replay', '--by', 'comm,cgroup', '--markdown'),
                            (CSV, 'report', '--by', keys, '--csv'),
                            (JSON, 'report', '--by', keys, '--json'),
                            (TEXT, 'report', '--by', 'comm,page', '--phys', '--columns', 'samples'),
                            (TEXT, 'numa', '--by', 'comm,page', '--phys', '--columns', 'samples'),
                            (CSV, 'numa', '--by', keys, '--csv'), (JSON, 'numa', '--by', keys, '--json'),
                            (TEXT, 'c2c'), (TEXT, 'c2c', '--all'), (TEXT, 'c2c', '--no-demangle', '--no-inline'), (CSV, 'c2c', '--csv'), (JSON, 'c2c', '--json'),
                            (BINARY, 'report', '--pprof', os.path.join(self.dir, 'pb')),
                            (BINARY, 'report', '--html', os.path.join(self.dir, 'html')),
                            (BINARY, 'export', '--perf-data', os.path.join(self.dir, 'perf.data')),
                            (TEXT, 'dump', '--events'), (JSON, 'dump', '--json', '--events'),
                            (TEXT, 'dump'), (JSON, 'dump', '--json'), (CSV, 'dump', '--csv'),
                            (TEXT, 'replay', '--by', 'comm,cgroup'), (TEXT, 'replay', '--by', 'comm', '--histogram'),
                            (CSV, 'replay', '--by', 'comm,cgroup', '--csv'),
                            (TEXT, 'replay', '--by', 'comm,cgroup', '--columns', 'samples'),
                            (JSON, 'replay', '--by', 'comm,cgroup', '--json')):
            # the table of lines has functions only, which may be unknown
            self.run_it(kind, *args, '-i', file, hostile=args not in (['c2c'], ['c2c', '--all'], ['c2c', '--no-demangle', '--no-inline']))
        for kind, *args in ((TEXT, '--top', '100'), (TEXT, '--markdown'), (CSV, '--csv'), (JSON, '--json')):
            few = file != self.made  # too few samples, maybe: then nothing is printed
            for more in ((),) if few else ((), ('--no-demangle', '--no-inline', '--btf', '/sys/kernel/btf/vmlinux')):
                args = '--by', keys, '--causes', 'src,op', '--per', 'access', *args, *more
                how = {'status': None if few else 0, 'hostile': not few}
                self.run_it(BINARY if few else kind, 'diff', *args, file, file, **how)
                how['hostile'] = False
                self.run_it(BINARY if few else kind, 'diff', *args, '--a', 'op == load', '--b', 'cpu != 0', file, **how)
        self.run_it(BINARY, 'diff', '--html', '-', '--by', keys, file, file, status=0 if file == self.made else None)
        self.run_it(CSV, 'dump', '--csv', '--fetch', '-i', file)
        for kind in 'csv', 'damon':
            self.run_it(BINARY, 'report', '--by', 'page', '--format', kind, '-i', file)
        for command in ('c2c',), ('numa',), ('report', '--by', 'slab,type,comm'):
            self.run_it(TEXT, *command, '--btf', '/sys/kernel/btf/vmlinux', '-i', file, hostile=False)
        self.run_it(BINARY, 'export', '--hwloc', os.path.join(self.dir, 'hwloc'), '-i', file)
        with open(os.path.join(self.dir, 'hwloc'), 'rb') as f:
            self.assertEqual(forbidden(f.read()), [])
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'report', '--by', 'mapping,variable,region,omp_region,thread_role', *option, '-i', file,
                        hostile=False)
        line = ibscope.run('c2c', '--csv', '-i', file).stdout.splitlines()[1].split(',')[0]
        for kind, *args in (TEXT, '--columns', 'stores'), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'c2c', '--line', line, *args, '-i', file, hostile=False)
        # the same names behind a second format
        perf = os.path.join(self.dir, 'perf.data')
        for kind, *args in ((TEXT, 'dump', '--events'), (CSV, 'report', '--csv', '--by', 'comm,dso'), (TEXT, 'report', '--by', 'comm')):
            self.run_it(kind, *args, '-i', perf)
        with open(os.path.join(self.dir, 'html'), 'rb') as f:
            page = f.read()
        self.assertEqual(forbidden(page), [])
        self.assertEqual(page.count(b'<script'), page.count(b'</script>'))

    def test_recorded(self):
        self.recorded(self.made)
        self.run_it(TEXT, 'report', '--folded', 'samples', '-i', self.made)
        self.run_it(TEXT, 'top', '-i', self.made, '--once', '--by', 'symbol,comm', '--no-demangle', '--size', '160x30', hostile=False)

    def test_daemon(self):
        pins = f'/sys/fs/bpf/ibscope-names-{os.getpid()}'
        socket = os.path.join(self.dir, 'socket')
        port = ibscope.free_port()
        server = Server([400] * 1000, says=ERROR)
        self.addCleanup(server.stop)
        self.keep_busy()
        c = ibscope.Collector(pins, '-v', '-c', '1000000', '--control', socket, '--unpin', '--by', 'cgroup,comm,ccx,src',
                              '--grace', '1', '--cgroup', self.top.path + '/**', '--web.listen-address', f'127.0.0.1:{port}',
                              '--hot-lines', '--feed', 'stores,caches', '--push', server.url, '--push-name', '\x1b[31m', '--push-format', 'parca',
                              '--push-interval', '1s', '--push-duration', '0.3s', '--stacks', '--strata', 'auto')
        self.addCleanup(c.stop, signal.SIGKILL)
        c.wait('listening on')
        self.walked.update(('serve', word.removeprefix('--')) for word in c.p.args)
        # names come and go, with series and without
        for name in CGROUPS:
            path = os.path.join(self.top.dir.encode(), name + b'2')
            os.mkdir(path)
            subprocess.run(['sh', '-c', f'echo $$ >"$0/cgroup.procs"; head -c 20000000 /dev/zero | md5sum'.encode(), path],
                           check=True, stdout=subprocess.DEVNULL)
            for _ in range(100):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)
        ctl = ('ctl', '--pin-dir', pins, '--control', socket)
        end = time.monotonic() + 30
        while self.start(IBSCOPE, *ctl, '--csv', '--by', 'comm', 'snapshot')[1].count(b'x1b') < 1:
            self.assertLess(time.monotonic(), end)
        ibscope.until(lambda: b'answers 400' in self.start(IBSCOPE, *ctl, 'status')[1])
        for kind, *args in ((TEXT, 'status'), (JSON, '--json', 'status'), (TEXT, 'ledger'), (JSON, '--json', 'ledger')):
            self.run_it(kind, *ctl, *args, hostile=False)
        for kind, *args in ((TEXT, '--event', 'ibs_op', '--by', 'cgroup,comm'), (TEXT, '--by', 'comm', '--histogram'),
                            (TEXT, '--by', 'comm', '--markdown'),
                            (CSV, '--by', 'cgroup,comm', '--csv'), (JSON, '--by', 'cgroup,comm', '--json')):
            self.run_it(kind, *ctl, *args, 'snapshot')
        self.run_it(TEXT, *ctl, '--by', 'cgroup,comm', '--columns', 'samples', 'snapshot')
        self.run_it(TEXT, 'neighbours', '--pin-dir', pins, '--duration', '2', hostile=False)
        ibscope.until(lambda: b'\\x' in self.run_it(TEXT, 'top', '--pin-dir', pins, '--once', '-d', '1', '--size', '160x30',
                                                   hostile=False))
        for kind, *args in ((TEXT,), (CSV, '--csv'), (JSON, '--json')):
            self.run_it(kind, 'c2c', '--control', socket, *args, hostile=False)
        # what was set live is shown, and refused, with the names in it
        for setting in (f'cgroup={self.top.path}/' + CGROUPS[0].decode(), 'comm=\x1b[31m', 'container=\x1b', '\x1b=3'):
            self.start(IBSCOPE, *ctl, 'set', '--wait', setting)
            self.start(IBSCOPE, *ctl, 'unset', setting)
            self.run_it(TEXT, *ctl, 'status', hostile=False)
        for verb in ('set', 'grace=1'), ('unset', 'grace'), ('reload',), ('reset',):
            self.run_it(TEXT, *ctl, *verb, hostile=False)
        exporter = IBSCOPE + '-exporter'
        for kind, *args in ((METRICS, '--once'), (METRICS, '--once', '--format', 'openmetrics'),
                            (JSON, '--once', '--format', 'json'), (TEXT, '--list-metrics')):
            status, out = self.start(exporter, '--pin-dir', pins, *args)
            self.assertEqual(status, 0)
            self.check(out, kind, args)
        self.history(exporter, '--pin-dir', pins, '--history', '1m', '--history-interval', '1s')
        for path in '/', '/metrics', '/api/snapshot.json', '/-/healthy', '/-/ready':
            with urllib.request.urlopen(f'http://127.0.0.1:{port}{path}', timeout=30) as r:
                self.check(r.read(), TEXT, path)
        self.assertEqual(c.p.poll(), None)
        c.p.send_signal(signal.SIGHUP)
        self.run_it(TEXT, *ctl, 'stop', hostile=False)
        c.p.wait(60)
        left = ibscope.Collector(pins, '--control', socket, '--cgroup', self.top.path + '/**', '--flight', '60s',
                                 '--flight-on', "cgroup != '\x1b[31m' && samples > 0", '--flight-dir', os.path.join(self.dir, 'kept'),
                                 '--flight-every', '1s', '--flight-keep', '2', '--flight-keep-bytes', '1M')
        self.walked.update(('serve', word.removeprefix('--')) for word in left.p.args)
        last = os.path.join(self.dir, 'last.data')

        def dumped():
            self.run_it(TEXT, *ctl, 'dump', '-o', last, hostile=False)
            return b'\\x' in self.run_it(TEXT, 'report', '--by', 'comm,cgroup', last, hostile=False)
        ibscope.until(dumped)
        self.run_it(JSON, 'report', '--by', 'comm,cgroup', '--json', last)
        ibscope.until(lambda: os.listdir(os.path.join(self.dir, 'kept')))
        self.check_log(left.said().encode(), 'serve')
        self.run_it(TEXT, *ctl, 'unpin', hostile=False)
        self.assertEqual(left.stop(), 0)
        self.assertFalse(os.path.exists(pins))
        self.check_log(os.pread(c.err.fileno(), 1 << 20, 0), 'serve')

    def test_why(self):
        """Of a collector that counts enough."""
        self.keep_busy()
        pins = f'/sys/fs/bpf/ibscope-why-names-{os.getpid()}'
        c = ibscope.Collector(pins, '--unpin', '-c', '200000', '--max-overhead', 'off', '--nmi-cost', '1us', '--cgroup', self.top.path + '/**')
        self.addCleanup(c.stop)
        path = os.path.join(self.top.dir.encode(), CGROUPS[0] + b'3')
        os.mkdir(path)
        busy = ibscope.Busy(max(os.sched_getaffinity(0)))
        self.addCleanup(busy.stop)
        with open(os.path.join(path, b'cgroup.procs'), 'w') as f:
            f.write(str(busy.pid))

        def why():
            got, out = self.start(IBSCOPE, 'why', '--pin-dir', pins, '--duration', '10s')
            self.check(out, TEXT, 'why')
            return got == 0 and re.search(HOSTILE, out)
        time.sleep(4)
        # on a busy machine ten seconds may have too few samples, or more of a group whose name needs no escapes
        ibscope.until(why, 180)

    def history(self, *words):
        at = f'127.0.0.1:{ibscope.free_port()}'
        p = subprocess.Popen([*words, '--web.listen-address', at], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

        def answer():
            try:
                with urllib.request.urlopen(f'http://{at}/api/history.json', timeout=30) as r:
                    return r.read()
            except urllib.error.URLError:   # not yet
                return b''
        self.check(ibscope.until(lambda: b'\\u001b' in (text := answer()) and text), JSON, words)
        p.terminate()
        self.check_log(p.communicate()[1], words)
        self.walked.update(('exporter', word.removeprefix('--')) for word in words)

    def test_errors(self):
        """Arguments are names, too: those of scripts, or of files that a shell found."""
        bad = ERROR.decode('utf-8', 'surrogateescape')
        no_bpf = tempfile.mkdtemp(prefix='\x1b[31m=', dir=self.dir)
        for args in ((bad,), ('help', bad), ('hist', '--' + bad), ('hist', *SIM, bad), ('hist', *SIM, '--comm', bad),
                     ('hist', *SIM, '--cgroup', bad), ('hist', *SIM, '--cgroup', '/' + bad), ('hist', *SIM, '--filter', bad),
                     ('hist', *SIM, '--container', bad), ('hist', *SIM, '--by', bad), ('hist', *SIM, '--sort', bad),
                     ('hist', *SIM, '--src', bad), ('hist', *SIM, '-c', bad), ('hist', '-e', bad), ('hist', *SIM, '--', bad),
                     ('hist', *SIM, '--explain', '--filter', bad), ('record', *SIM, '--explain', '--filter', 'x ' + bad),
                     ('report', '--explain', '--filter', bad), ('top', '--explain', '--filter', bad),
                     ('export', '--explain', '--filter', bad), ('export', '--perf-data', f'/no/{bad}', self.made),
                     ('export', bad), ('dump', '--explain', '--filter', bad),
                     ('replay', '--explain', '--filter', bad), ('serve', '--explain', '--filter', bad),
                     ('record', *SIM, '-o', f'/no/{bad}'), ('record', *SIM, '-o', no_bpf), ('report', bad), ('dump', bad),
                     ('replay', bad), ('report', '/bin/sh', '--kallsyms', bad), ('report', self.made, '--kallsyms', bad),
                     ('report', self.made, '--debug-dir', bad), ('report', self.made, '--html', f'/no/{bad}'),
                     ('report', self.made, '--pprof', f'/no/{bad}'), ('report', self.made, '--folded', bad),
                     ('dump', self.made, '--limit', bad), ('serve', *SIM, '--config', bad), ('serve', *SIM, '--pin-dir', bad),
                     ('serve', *SIM, '--pin-dir', no_bpf), ('serve', *SIM, '--control', f'/no/{bad}', '--config-check'),
                     ('serve', *SIM, '--web.listen-address', bad, '--config-check'),
                     ('serve', *SIM, '--web.config.file', bad, '--config-check'),
                     ('ctl', bad), ('ctl', '--control', bad, 'status'), ('ctl', '--pin-dir', f'/no/{bad}', 'snapshot'),
                     ('serve', *SIM, '--lease', bad, '--config-check'),
                     ('diff', '--prometheus', bad, '--at', '-1h', '--at', 'now'), ('diff', '--prometheus', 'http://[::1]:1', '--at', bad),
                     ('diff', '--prometheus', 'http://[::1]:1/' + bad, '--at', '-1h', '--at', 'now', '--window', '1h', '--match', bad),
                     ('diff', '--prometheus', 'http://[::1]:1', '--at', '-1h', '--at', 'now', '--window', bad),
                     ('diff', self.made, self.made, '--html', f'/no/{bad}'),
                     ('c2c', '--control', bad), ('doctor', bad), ('doctor', '--json', bad)):
            with self.subTest(args=args):
                status, out = self.start(IBSCOPE, *args)
                self.assertIn(status, (0, 1, 2, 127))
                self.check(out, TEXT, args)
        config = os.path.join(self.dir, 'config')
        for text in (ERROR, b'by = ' + ERROR, b'\x1b[31m = 3', b'tls_server_config:\n  \x1b: \x07'):
            with open(config, 'wb') as f:
                f.write(text)
            self.start(IBSCOPE, 'serve', *SIM, '--config', config, '--config-check')
            for option in '--config', '--web.config.file', '--edges', '--pin-dir', '--web.telemetry-path', '--format', '--user':
                value = config if 'config' in option else bad
                status, out = self.start(IBSCOPE + '-exporter', option, value, '--config-check')
                self.check(out, TEXT, option)
        self.run_it(TEXT, 'doctor', status=None, hostile=False)     # this machine may have no IBS
        self.run_it(JSON, 'doctor', '--json', status=None, hostile=False)
        self.run_it(TEXT, 'doctor', '--cost', hostile=False)
        self.run_it(TEXT, 'doctor', '--verify', status=None, hostile=False)
        self.run_it(TEXT, 'doctor', '--verify', '--no-loops', status=None, hostile=False)

    def test_prometheus(self):
        """A server is a stranger, and so are those whose names it has."""
        name, rnd = ERROR.decode('utf-8', 'surrogateescape').replace('\udcff', ''), random.Random(3)

        def says(body):
            asked = {k: float(v) for k, v in urllib.parse.parse_qsl(body.decode()) if k != 'query'}
            times = [asked['start'] + asked['step'] * i for i in range(round((asked['end'] - asked['start']) / asked['step']) + 1)]
            series = []
            for metric, step, more in (('ibscope_samples_total', 1000, {}), ('ibscope_estimated_ops_total', 10 ** 8, {}),
                                       ('ibscope_load_miss_latency_cycles_sum', 20000, {'src': name}),
                                       ('ibscope_load_miss_latency_cycles_count', 50, {'src': name})):
                values = [[t, str(step * i + rnd.randrange(step // 10))] for i, t in enumerate(times)]
                series.append({'metric': {'__name__': metric, 'container': name, 'cgroup': name, **more}, 'values': values})
            return json.dumps({'status': 'success', 'data': {'result': series}}).encode()
        server = Server(says=says)
        self.addCleanup(server.stop)
        for kind, *args in (TEXT,), (TEXT, '--markdown'), (CSV, '--csv'), (JSON, '--json'), (BINARY, '--html', '-'):
            self.run_it(kind, 'diff', '--prometheus', server.url, '--at', '1600', '--at', '1600', '--window', '10m',
                        '--match', f'x="{name}"'.replace('\n', ''), *args, hostile=kind == JSON)
        for kind, *args in (TEXT,), (JSON, '--json'):
            self.run_it(kind, 'why', '--prometheus', server.url, '--at', '1600', '--duration', '2m', '--match', f'x="{name}"'.replace('\n', ''), *args,
                        hostile=kind == JSON)

    def test_history(self):
        name = ERROR.decode('utf-8', 'surrogateescape').replace('\udcff', '')
        h = past.history({}, {})
        h['intervals'][0]['names'] = [{'id': i, 'namespace': name, 'pod': name, 'container': f'{name}{i}', 'runtime': name, 'cgroup': name}
                                      for i in (1, 2)]
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), past.Handler)
        server.answer = 200, json.dumps(h).encode()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        for kind, *args in (TEXT,), (TEXT, '--markdown'), (CSV, '--csv'), (JSON, '--json'), (BINARY, '--html', '-'):
            self.run_it(kind, 'diff', '--exporter', f'http://127.0.0.1:{server.server_port}', '--at', '-300s', '--at', '-0s', '--window', '280s', *args,
                        hostile=kind == JSON)
        for kind, *args in (TEXT,), (JSON, '--json'):
            self.run_it(kind, 'why', '--exporter', f'http://127.0.0.1:{server.server_port}', '--at', '-300s', '--duration', '280s',
                        '--flight-dir', self.dir, *args)

    def test_planted(self):
        """What others put in the place of a file that is written: links are refused, files replaced."""
        d = os.path.join(self.dir, 'theirs')
        os.mkdir(d)
        os.chown(d, 65534, 65534)
        victim = os.path.join(d, 'victim')
        for args in (('record', *SIM, '--duration', '0.1', '-o'), ('record', *SIM, '--duration', '0.1', '--csv', '-o'),
                     ('hist', *SIM, '0.1', '1', '--html'), ('report', self.made, '--html'), ('report', self.made, '--pprof'),
                     ('export', self.made, '--perf-data'), ('export', self.made, '-o')):
            with self.subTest(args=args):
                planted = os.path.join(d, 'planted')
                with open(victim, 'w') as f:
                    f.write('old')
                os.symlink(victim, planted)
                self.assertEqual(self.start(IBSCOPE, *args, planted)[0], 1)
                os.unlink(planted)
                os.link(victim, planted)
                os.chown(victim, 65534, 65534)
                os.chmod(victim, 0o666)
                self.run_it(BINARY, *args, planted)
                st = os.stat(planted)
                self.assertEqual((st.st_uid, st.st_mode & 0o777, st.st_nlink), (os.geteuid(), 0o600, 1))
                with open(victim) as f:
                    self.assertEqual(f.read(), 'old')
                self.assertEqual(set(os.listdir(d)) - {'planted.old'}, {'planted', 'victim'})
                os.unlink(planted)

    def test_annotated(self):
        """The name of a program is anybody's."""
        program, file = os.path.join(self.dir, '\x1b[31m=annotated'), os.path.join(self.dir, 'annotated')
        shutil.copy(os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_annotated'), program)
        subprocess.run([program, file], check=True)
        page = os.path.join(self.dir, 'annotated.html')
        for kind, *args in (TEXT, '--all'), (TEXT, '--intel', '--btf', '/sys/kernel/btf/vmlinux'), (JSON, '--json'), (TEXT, '--object', program), (BINARY, '--html', page), \
                (TEXT, '--no-demangle', '--no-inline', '--columns', 'samples,mean'):
            self.run_it(kind, 'annotate', 'annotated', *args, '-i', file, hostile=False)
        with open(page, 'rb') as f:
            self.assertEqual(forbidden(f.read()), [])
        for kind, *option in (TEXT,), (CSV, '--csv'), (JSON, '--json'):
            self.run_it(kind, 'report', '--type', 'struct shelf', *option, '-i', file, hostile=False)

    def test_users(self):
        self.keep_busy()
        pins, control, users = f'/sys/fs/bpf/ibscope-names-users-{os.getpid()}', *(os.path.join(self.dir, x) for x in ('c', 'u'))
        c = ibscope.Collector(pins, '-c', '1000000', '--control', control, '--unpin', '--by', 'cgroup,comm,src', '--cgroup',
                              self.top.path + '/**', '--pin-mode', '0600', '--user-socket', users, '--user-jobs', self.top.path + '/*')
        self.addCleanup(c.stop, signal.SIGKILL)
        self.walked.update(('serve', word.removeprefix('--')) for word in c.p.args)
        # root, who asks, owns nothing there; those of its job do
        job = os.path.join(self.top.dir.encode(), CGROUPS[0], b'cgroup.procs')
        words = 'sh', '-c', b'echo $$ >"$0"; exec "$@"', job, IBSCOPE
        ask = lambda *args: subprocess.run([*words, *args], capture_output=True, timeout=60)
        ibscope.until(lambda: b'x1b' in ask('ctl', '--control', users, '--by', 'comm', '--csv', 'snapshot').stdout)
        for kind, *args in ((TEXT, 'ctl', '--control', users, '--by', 'cgroup,comm', 'snapshot'),
                            (JSON, 'ctl', '--control', users, '--json', 'snapshot'),
                            (TEXT, 'top', '--user-socket', users, '--once', '-d', '1', '--size', '160x30')):
            p = ask(*args)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.check_log(p.stderr, args)
            self.check(p.stdout, kind, args)
            self.walked.update((args[0], word.removeprefix('--')) for word in args)
        self.assertEqual(c.stop(), 0)

    @classmethod
    def tearDownClass(cls):
        """A command, an option or a verb that came since is not forgotten here."""
        missing = [('ctl', verb) for verb in re.findall(r'^  ([a-z]+) ', ibscope.run('ctl', '--help').stdout.split('\nOptions:')[0], re.M)]
        for command in [*re.findall(r'^  ([a-z0-9]+) ', ibscope.run('--help').stdout, re.M), 'exporter']:
            words = [IBSCOPE + '-exporter', '--help'] if command == 'exporter' else [IBSCOPE, command, '--help']
            text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            missing.append((command, ''))
            for section, part in re.findall(r'(?ms)^(\S[^\n]*):\n(.*?)(?=^\S|\Z)', 'Options:\n' + text):
                missing += [(command, option) for option in re.findall(r'^ +(?:-., )?--([a-z.-]+)', part, re.M)
                            if section not in SHARED and option not in QUIET]
        missing = set(missing) - cls.walked
        assert not missing, f'not walked through: {sorted(missing)}'


if __name__ == '__main__':
    unittest.main()
