# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exporter: unprivileged, read by a real Prometheus, a browser, and by those who mean harm."""
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from ibscope import BUILD, IBSCOPE, SAN, Busy, Cgroup, can_bpf, cgroup2_mount, free_port, log_file, memory_cgroup, populate_cgroup2, read_log, run, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPORTER = os.path.join(SAN, 'ibscope-exporter')
FILL = os.path.join(BUILD, 'tests/unit/fill_pins')
NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
DIR = '/sys/fs/bpf/ibscope-exporter-%d' % os.getpid()
OPENMETRICS = 'application/openmetrics-text; version=1.0.0'
HASH = '$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW'
OK, WHY = can_bpf()


def needs(program):
    return unittest.skipUnless(shutil.which(program), f'{program} is not installed')


class Program:
    """One that says on stderr when it is ready."""

    def __init__(self, argv, ready, **kw):
        populate_cgroup2()
        self.err = log_file()
        self.p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.err, **kw)
        end = time.time() + 60
        while not re.search(ready, self.said()):
            if self.p.poll() is not None or time.time() > end:
                self.stop(signal.SIGKILL)
                raise AssertionError(f'{argv[0]}: {self.last}')
            time.sleep(0.05)

    def said(self):
        if self.err.closed:
            return self.last
        return read_log(self.err)

    def stop(self, sig=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            return self.p.wait(60)
        finally:
            self.last = self.said() if not self.err.closed else ''
            self.err.close()

    def status(self):
        with open(f'/proc/{self.p.pid}/status') as f:
            return dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)


class Exporter(Program):
    def __init__(self, *args, prefix=(), pin_dir=DIR, listen='127.0.0.1:0', program=EXPORTER):
        super().__init__([*prefix, program, '--pin-dir', pin_dir, '--web.listen-address', listen, *args], r'listening on .*\n')
        self.port = int(re.search(r':(\d+)[,\n]', self.said() + '\n').group(1))
        self.url = f'http://127.0.0.1:{self.port}'

    def get(self, path='/metrics', **headers):
        """Status, headers, text."""
        r = urllib.request.Request(self.url + path, headers={k.replace('_', '-'): v for k, v in headers.items()})
        try:
            with urllib.request.urlopen(r, timeout=30) as a:
                return a.status, a.headers, a.read().decode()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.headers, e.read().decode()

    def fresh(self):
        """Metrics that were read after now."""
        def scrape():
            return samples(self.get()[2])
        before = scrape()['ibscope_exporter_reads_total']
        return until(lambda: (s := scrape())['ibscope_exporter_reads_total'] > before and s)


def samples(text):
    out = {}
    for line in text.splitlines():
        if line and not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            assert name not in out, f'twice: {name}'
            out[name] = float(value)
    return out


def not_loopback(port):
    """URLs of the metrics at other addresses of this machine."""
    out = subprocess.run(['hostname', '-I'], capture_output=True, text=True).stdout.split()
    return [f'http://{f"[{a}]" if ":" in a else a}:{port}/metrics' for a in out]


def counters(s):
    return {k: v for k, v in s.items() if re.match(r'ibscope_.*(_total|_bucket|_sum|_count)($|\{)', k) and
            not k.startswith('ibscope_exporter_')}


def collector(*args, pin_dir=DIR):
    return Program([IBSCOPE, 'serve', '--source', 'sim', '-c', '500000', '--max-overhead', 'off', '--max-bpf-time', 'off',
                    '--pin-dir', pin_dir, *args], 'kernel memory')


class Case(unittest.TestCase):
    def start(self, make, *args, **kw):
        p = make(*args, **kw)
        self.addCleanup(p.stop, signal.SIGKILL)
        return p

    @staticmethod
    def until(what, seconds=60):
        return until(what, seconds)

    def grown(self, old, new, cgroup='/'):
        """Counters only go up; of others' cgroups and containers, which may end or be made again, nothing is said."""
        known = 0
        for k, v in counters(old).items():
            name = re.search(r'\b(?:cgroup|container)="([^"]*)"', k)
            if not name or name[1] == 'other' or name[1] in cgroup:     # the path of a container has its id
                self.assertGreaterEqual(new.get(k, -1), v, k)
                known += 1
        self.assertGreater(known, 50)


class Usage(Case):
    def exporter(self, *args):
        return subprocess.run([EXPORTER, *args], capture_output=True, text=True, timeout=30)

    def test_wrong(self):
        for args, said in (
                (['--edges', '100'], 'nearest edges are 96 and 104'), (['--edges', '128,64'], 'ascend'),
                (['--pin-dir', 'x'], 'absolute'), (['--web.listen-address', '1.2.3.4'], 'HOST:PORT'),
                (['--web.listen-address', '::1:80'], '[IPV6]'), (['--web.listen-address', ':70000'], 'HOST:PORT'),
                (['--web.telemetry-path', '/-/x'], '/-/'), (['--detail', 'high'], 'low, medium, full'),
                (['--web.config.file', '/nonexistent'], '/nonexistent'), (['--user', 'root', '--web.listen-address', ':0'], 'root'),
                (['--history', '1s'], '--history'), (['--history-interval', 'off'], '--history-interval'),
                (['--history', '24h', '--history-interval', '10s'], 'more than 1440'),
                (['--format', 'xml'], 'openmetrics'), (['x'], "'x'"), (['--config', '/nonexistent'], '/nonexistent')):
            p = self.exporter(*args)
            self.assertIn(said, p.stderr, args)
            # what is not there may be there later
            self.assertEqual(p.returncode, 1 if args[0] == '--web.config.file' else 2, args)
            self.assertEqual(p.stdout, '')

    def test_config(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('# comment\nweb.listen-address = [::1]:0\nedges = 128,256\nweb.telemetry-path = /m\n')
            f.flush()
            p = self.exporter('--config', f.name, '--config-check')
            self.assertEqual((p.returncode, p.stdout), (0, ''), p.stderr)
            f.write('nonsense = 1\n')
            f.flush()
            p = self.exporter('--config', f.name, '--config-check')
            self.assertEqual(p.returncode, 2)
            self.assertIn(f'{f.name}:5', p.stderr)

    def test_help(self):
        for args in (['--help'], ['--version'], ['--list-metrics']):
            p = self.exporter(*args)
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            self.assertIn('ibscope', p.stdout)

    def test_no_loader(self):
        """bpf() is for opening and looking up alone."""
        p = subprocess.run(['nm', os.path.join(BUILD, 'ibscope-exporter')], capture_output=True, text=True)
        if p.returncode:
            self.skipTest(f'nm: {p.stderr}')
        used = set(re.findall(r'U (bpf_\w+)', p.stdout))
        self.assertEqual(used, {'bpf_obj_get_opts', 'bpf_obj_get_info_by_fd', 'bpf_map_lookup_elem', 'bpf_map_lookup_batch'})
        self.assertNotRegex(p.stdout, r'\bsampler_|_skel|bpf_object__|bpf_program__')


class Collected(Case):
    """With a collector that samples."""
    ARGS = ()

    @classmethod
    def setUpClass(cls):
        cls.busy = [Busy(0, share=0.15)]
        cls.collector = collector(*cls.ARGS)

    @classmethod
    def tearDownClass(cls):
        cls.collector.stop()
        for b in cls.busy:
            b.stop()
        c = collector('--unpin')
        assert c.stop() == 0


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Served(Collected):
    def restart(self, sig):
        type(self).collector.stop(sig)
        type(self).collector = collector(*self.ARGS)

    def test_endpoints(self):
        e = self.start(Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        for path, status, kind, said in (
                ('/', 200, 'text/html', '<title>ibscope'), ('/-/healthy', 200, 'text/plain', 'OK'),
                ('/-/ready', 200, 'text/plain', 'is running'), ('/metrics', 200, 'version=0.0.4', 'ibscope_collector_up 1'),
                ('/metrics?x=1', 200, 'version=0.0.4', 'ibscope_'), ('/api/snapshot.json', 200, 'application/json', '"alive":true'),
                ('/nothing', 404, 'text/plain', 'not found'), ('/metrics/', 404, 'text/plain', ''), ('/../etc/passwd', 404, '', '')):
            got, headers, text = e.get(path)
            self.assertEqual(got, status, path)
            self.assertIn(kind, headers['Content-Type'])
            self.assertIn(said, text)
            self.assertEqual(headers['X-Content-Type-Options'], 'nosniff')
        self.assertIn("default-src 'none'", e.get('/')[1]['Content-Security-Policy'])
        for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH', 'BREW'):
            c = http.client.HTTPConnection('127.0.0.1', e.port, timeout=60)
            c.request(method, '/metrics')
            r = c.getresponse()
            self.assertEqual((r.status, r.headers['Allow']), (405, 'GET, HEAD'), method)
            c.close()
        # one connection serves many, and HEAD has no body
        c = http.client.HTTPConnection('127.0.0.1', e.port, timeout=60)
        c.request('HEAD', '/metrics')
        r = c.getresponse()
        self.assertEqual((r.status, r.read()), (200, b''))
        sock = c.sock
        self.assertIsNotNone(sock, 'the connection was closed')
        c.request('GET', '/-/healthy')
        self.assertEqual(c.getresponse().status, 200)
        self.assertIs(c.sock, sock)
        c.close()
        self.assertEqual(e.stop(), 0)

    def test_other_address_and_path(self):
        e = self.start(Exporter, '--web.telemetry-path', '/m', '--edges', '128,2048', listen='[::1]:0')
        with urllib.request.urlopen(f'http://[::1]:{e.port}/m') as a:
            edges = set(re.findall(r'le="([^"]*)"', a.read().decode()))
        self.assertEqual(edges, {'128', '2048', '+Inf'})
        with self.assertRaises(AssertionError):
            Exporter(listen=f'[::1]:{e.port}')

    def test_unprivileged(self):
        """Started as root, it maps the counters and switches to nobody; started as nobody, it uses map lookups."""
        seen = []
        for prefix, mapped in ((), 1), (NOBODY, 0):
            e = self.start(Exporter, prefix=prefix)
            self.assertEqual(e.get('/-/healthy')[0], 200)   # it answers nobody before
            st = e.status()
            self.assertEqual(set(st['Uid'].split()), {'65534'})
            self.assertEqual(set(st['Gid'].split()), {'65534'})
            self.assertEqual(st['Groups'].strip(), '')
            for cap in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb') + (() if prefix else ('CapBnd',)):
                self.assertEqual(int(st[cap], 16), 0, cap)
            self.assertEqual(st['NoNewPrivs'], '1')
            self.assertEqual(st['Seccomp'], '2')
            status, _, text = e.get()
            self.assertEqual(status, 200, text)
            s = samples(text)
            self.assertEqual(s['ibscope_exporter_maps_mapped'], mapped)
            self.assertGreater(s['process_open_fds'], 3)
            self.assertLess(s['process_open_fds'], 40)
            self.assertLess(abs(s['process_start_time_seconds'] - time.time()), 60)
            seen.append(s['ibscope_samples_seen_total'])
        self.assertGreaterEqual(seen[1], seen[0])

    def test_ledger(self):
        e = self.start(Exporter)
        s = samples(e.get()[2])
        parts = sum(v for k, v in s.items() if re.match(r'ibscope_samples_(aggregated|forwarded|filtered|lost)_total', k))
        self.assertEqual(s['ibscope_samples_seen_total'], parts)
        # cgroups of other tests end meanwhile
        self.assertEqual(s['ibscope_samples_aggregated_total'], s['ibscope_samples_ended'] +
                         sum(v for k, v in s.items() if k.startswith('ibscope_samples_total{')))
        self.assertEqual(s['ibscope_simulated'], 1)

    @needs('promtool')
    def test_promtool(self):
        e = self.start(Exporter)
        p = subprocess.run(['promtool', 'check', 'metrics'], input=e.get()[2], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout + p.stderr), (0, ''))

    @needs('bpftool')
    def test_pins_of_another_version(self):
        """Whose entries are larger than ours: nothing is read of them."""
        d = DIR + '-other'
        os.makedirs(d, exist_ok=True)
        self.addCleanup(shutil.rmtree, d)
        for name in os.listdir(DIR):
            if os.path.isdir(os.path.join(DIR, name)):
                continue
            subprocess.run(['bpftool', 'map', 'create', os.path.join(d, name), 'type', 'array', 'key', '4', 'value', '65536',
                            'entries', '4', 'name', 'other', 'flags', '1024'], check=True)
            os.chmod(os.path.join(d, name), 0o644)
        for prefix in (), NOBODY:
            p = subprocess.run([*prefix, EXPORTER, '--once', '--pin-dir', d], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout), (1, ''), p.stderr)
            self.assertIn('install the same', p.stderr)

    def test_once(self):
        for prefix in (), NOBODY:
            p = subprocess.run([*prefix, EXPORTER, '--once', '--pin-dir', DIR], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            self.assertGreater(samples(p.stdout)['ibscope_samples_seen_total'], 0)
        p = subprocess.run([EXPORTER, '--once', '--pin-dir', DIR, '--format', 'json'], capture_output=True, text=True)
        self.assertTrue(json.loads(p.stdout)['simulated'])
        p = subprocess.run([EXPORTER, '--once', '--pin-dir', '/sys/fs/bpf/nowhere'], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('ibscope serve', p.stderr)

    def test_openmetrics(self):
        e = self.start(Exporter)
        _, headers, text = e.get(Accept=OPENMETRICS)
        self.assertIn('application/openmetrics-text; version=1.0.0', headers['Content-Type'])
        self.assertTrue(text.endswith('# EOF\n'))
        self.assertEqual(text.count('# EOF'), 1)
        types = dict(re.findall(r'^# TYPE (\S+) (\S+)$', text, re.M))
        units = dict(re.findall(r'^# UNIT (\S+) (\S+)$', text, re.M))
        suffixes = {'counter': ['_total'], 'gauge': [''], 'info': ['_info'],
                    'histogram': ['_bucket', '_sum', '_count'], 'summary': ['_sum', '_count']}
        for name in samples(text.replace('# EOF\n', '')):
            base = name.split('{')[0]
            self.assertTrue(any(base == t + s for t, k in types.items() for s in suffixes[k]), name)
        for name, unit in units.items():
            self.assertTrue(name.endswith('_' + unit), name)
        for le in re.findall(r'le="([^"]*)"', text):
            self.assertRegex(le, r'^(\d+\.0|\+Inf)$')

    def test_reads_are_shared(self):
        e = self.start(Exporter)
        began = time.monotonic()
        texts = {e.get()[2] for _ in range(50)}
        self.assertLess(len(texts), 3 + time.monotonic() - began)     # one a second
        s = e.fresh()
        self.assertLess(s['ibscope_exporter_reads_total'], 5 + time.monotonic() - began)
        self.assertGreaterEqual(s['ibscope_exporter_scrapes_total'], 51)

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_restarts(self):
        """Counters go on when either program begins again, also after SIGKILL."""
        container = 'f' * 63 + '0'
        cg = Cgroup(f'/ibscope-{os.getpid()}/docker-{container}.scope')
        self.addCleanup(Cgroup(f'/ibscope-{os.getpid()}').remove)
        busy = Busy(1, cg)
        self.addCleanup(busy.stop)
        e = self.start(Exporter)
        self.until(lambda: container[:12] in e.get()[2])
        old = e.fresh()
        for sig in signal.SIGKILL, signal.SIGTERM, signal.SIGKILL:
            self.restart(sig)
            new = e.fresh()
            self.grown(old, new, cg.path)
            self.assertGreater(new['ibscope_samples_seen_total'], old['ibscope_samples_seen_total'])
            self.assertGreater(new['ibscope_collector_starts_total'], old['ibscope_collector_starts_total'])
            old = new
            e.stop(sig)
            e = self.start(Exporter, prefix=NOBODY)
            new = e.fresh()
            self.grown(old, new, cg.path)
            old = new
        self.assertIn(f'container="{container[:12]}"', '\n'.join(new))

    @unittest.skipUnless(cgroup2_mount(), 'no cgroup v2 is mounted')
    def test_no_collector(self):
        e = self.start(Exporter)
        old = e.fresh()
        type(self).collector.stop(signal.SIGTERM)
        try:
            new = e.fresh()
            self.assertEqual(new['ibscope_collector_up'], 0)
            self.grown(old, new)
            status, _, text = e.get('/-/ready')
            self.assertEqual(status, 503)
            self.assertIn('not running', text)
            self.assertEqual(e.get('/-/healthy')[0], 200)
        finally:
            type(self).collector = collector(*self.ARGS)
        self.until(lambda: e.get('/-/ready')[0] == 200)

    def test_inside_of_the_collector(self):
        type(self).collector.stop()
        c = type(self).collector = collector('--web.listen-address', '127.0.0.1:0')
        self.until(lambda: 'listening on' in c.said())
        url = re.search(r'http://\S+', c.said()).group()
        for _ in range(2):
            with urllib.request.urlopen(url + '/metrics', timeout=60) as a:
                s = samples(a.read().decode())
            self.assertEqual(s['ibscope_collector_up'], 1)
            self.assertEqual(s['ibscope_exporter_maps_mapped'], 1)
            c.p.send_signal(signal.SIGHUP)
            self.until(lambda: 'options reloaded' in c.said())
        p = run('serve', '--config-check', '--web.config.file', '/nonexistent')
        self.assertEqual(p.returncode, 2)
        self.assertEqual(c.stop(), 0, c.said())
        type(self).collector = collector(*self.ARGS)

    def test_nothing_pinned(self):
        e = self.start(Exporter, prefix=NOBODY, pin_dir=DIR + '-none')
        status, _, text = e.get()
        self.assertEqual(status, 200)
        self.assertEqual(samples(text)['ibscope_collector_up'], 0)
        self.assertNotIn('ibscope_samples_seen', text)
        status, _, text = e.get('/-/ready')
        self.assertEqual(status, 503)
        self.assertIn('ibscope serve', text)
        self.assertIn('ibscope serve', json.loads(e.get('/api/snapshot.json')[2])['why'])

    def test_hostile(self):
        """Slow and wrong clients do not keep others out, and cost no memory that stays."""
        e = self.start(Exporter, prefix=NOBODY)
        e.get()
        with contextlib.ExitStack() as stack:
            def connect():
                s = stack.enter_context(socket.create_connection(('127.0.0.1', e.port), timeout=60))
                return s
            slow = [connect() for _ in range(200)]
            for s in slow:
                s.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\nX-')
            self.assertEqual(e.get()[0], 200)
            big = connect()
            with contextlib.suppress(OSError):
                big.sendall(b'GET / HTTP/1.1\r\nHost: x\r\nX: ' + b'a' * (1 << 20) + b'\r\n\r\n')
            with contextlib.suppress(OSError):
                self.assertNotIn(b' 200 ', big.recv(100))
            many = connect()
            with contextlib.suppress(OSError):
                many.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n' + b'A: b\r\n' * 200000 + b'\r\n')
            for garbage in (b'\0' * 1000, os.urandom(5000), b'\r\n' * 5000, b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n',
                            b'GET /%00%ff%zz HTTP/1.1\r\nHost: x\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
                            b'POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n' + b'x' * 10000,
                            b'GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
                            b'GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: ' + b',;"\\' * 2000 + b'\r\n\r\n'):
                s = connect()
                with contextlib.suppress(OSError):
                    s.sendall(garbage)
                self.assertEqual(e.get('/-/healthy')[0], 200)
            # more than there are places for: who was slow longest makes room, at once
            begin = time.time()
            slow = [connect() for _ in range(500)]
            for _ in range(3):
                self.assertEqual(e.get()[0], 200)
            self.assertLess(time.time() - begin, 10)    # when the first of them has to end anyway
            begin = time.time()
            # a byte now and then does not help
            slow = slow[-50:]
            while time.time() - begin < 13:
                for s in slow:
                    with contextlib.suppress(OSError):
                        s.sendall(b'a')
                time.sleep(0.5)
            closed = 0
            for s in slow:
                s.settimeout(2)
                with contextlib.suppress(TimeoutError):
                    try:
                        closed += s.recv(1) == b''
                    except ConnectionError:
                        closed += 1
            self.assertEqual(closed, 50)
        self.until(lambda: e.fresh()['ibscope_exporter_connections'] < 10)
        if SAN == BUILD:
            self.assertLess(e.fresh()['process_resident_memory_bytes'], 32 << 20)
        self.assertEqual(e.stop(), 0, e.said())

    def test_200_clients(self):
        e = self.start(Exporter, prefix=NOBODY)
        n = len(e.get()[2])
        clients = []
        for _ in range(200):
            s = socket.create_connection(('127.0.0.1', e.port), timeout=30)
            self.addCleanup(s.close)
            clients.append(s)
        for s in clients:
            s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        for s in clients:
            got = b''
            while chunk := s.recv(65536):
                got += chunk
            self.assertTrue(got.startswith(b'HTTP/1.1 200') or got.startswith(b'HTTP/1.0 200'), got[:50])
            self.assertGreater(len(got), n * .9)
        self.assertEqual(e.stop(), 0, e.said())

    def test_gzip(self):
        """For others than ourselves."""
        e = self.start(Exporter, listen=':0')
        url = next(iter(not_loopback(e.port)), None)
        if not url:
            self.skipTest('there is no address but loopback')
        for encoding, zipped in ('gzip', True), ('gzip;q=0, *', False), ('identity', False):
            r = urllib.request.Request(url, headers={'Accept-Encoding': encoding})
            with urllib.request.urlopen(r) as a:
                self.assertEqual(a.headers['Content-Encoding'] == 'gzip', zipped, encoding)
                body = a.read()
            text = (gzip.decompress(body) if zipped else body).decode()
            self.assertIn('ibscope_samples_seen_total', samples(text))
        self.assertIsNone(e.get(Accept_Encoding='gzip')[1]['Content-Encoding'])

    @needs('openssl')
    @needs('curl')
    def test_tls_and_passwords(self):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                            '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
                            '-keyout', d + '/key.pem', '-out', d + '/cert.pem'], check=True, capture_output=True)
            os.chmod(d + '/key.pem', 0o600)     # root's, who opens it before it becomes nobody
            with open(d + '/web.yml', 'w') as f:
                # of "secret", at the lowest cost
                f.write('tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n'
                        '  alice: ' + HASH + '\n')
            e = self.start(Exporter, '--web.config.file', d + '/web.yml')
            self.assertIn('https://', e.said())

            def curl(*args):
                p = subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--cacert', d + '/cert.pem', *args,
                                    f'https://localhost:{e.port}/metrics'], capture_output=True, text=True, timeout=60)
                return p.returncode, p.stdout
            self.assertEqual(curl('-u', 'alice:secret'), (0, '200'))
            self.assertEqual(curl(), (0, '401'))
            for wrong in 'alice:', 'alice:Secret', 'bob:secret', 'alice:' + 'x' * 100, ':':
                self.assertEqual(curl('-u', wrong)[1], '401', wrong)
            self.assertEqual(curl('-u', 'alice:secret'), (0, '200'))
            self.assertEqual(curl('--tls-max', '1.1', '-u', 'alice:secret')[1], '000')
            with socket.create_connection(('127.0.0.1', e.port)) as s:
                s.sendall(b'GET / HTTP/1.1\r\n\r\n')
                self.assertNotIn(b'200', s.recv(100))
            self.assertEqual(curl('-u', 'alice:secret'), (0, '200'))
            # a key that does not belong to the certificate
            subprocess.run(['openssl', 'ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', d + '/key.pem'], check=True)
            os.chmod(d + '/key.pem', 0o600)
            p = subprocess.run([EXPORTER, '--web.config.file', d + '/web.yml', '--web.listen-address', '127.0.0.1:0'],
                               capture_output=True, text=True, timeout=20)
            self.assertEqual(p.returncode, 2)
            self.assertIn('do not belong together', p.stderr)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class PrivateBpffs(Case):
    """bpffs as systemd mounts it, with mode 0700: only root can reach the pins, whatever their modes."""

    def setUp(self):
        self.bpffs = tempfile.mkdtemp(dir='/run')
        self.addCleanup(os.rmdir, self.bpffs)
        os.chmod(self.bpffs, 0o755)     # so that it is the mount's own mode that counts
        p = subprocess.run(['mount', '-t', 'bpf', '-o', 'mode=0700', 'bpf', self.bpffs], capture_output=True, text=True)
        if p.returncode:
            self.skipTest(f'cannot mount bpffs: {p.stderr}')
        self.addCleanup(subprocess.run, ['umount', '-l', self.bpffs], check=True)
        self.dir = self.bpffs + '/ibscope'
        busy = Busy(0)
        self.addCleanup(busy.stop)

    def serve(self, *args):
        return self.start(collector, '--control', 'none', *args, pin_dir=self.dir)

    def seen(self, e):
        return samples(e.get()[2]).get('ibscope_samples_seen_total', 0)

    def test_exporter_of_root(self):
        c = self.serve()
        e = self.start(Exporter, pin_dir=self.dir)
        self.assertEqual(e.get('/-/ready')[0], 200)
        first = self.until(lambda: self.seen(e))
        self.until(lambda: self.seen(e) > first)
        s = samples(e.get()[2])
        self.assertEqual(s['ibscope_collector_up'], 1)
        self.assertEqual(s['ibscope_exporter_read_failing'], 0)
        self.assertEqual(s['ibscope_exporter_maps_mapped'], 1)
        self.assertEqual(set(e.status()['Uid'].split()), {'65534'})
        # the collector resumes the same pins
        c.stop()
        self.assertEqual(e.get('/-/ready')[0], 503)
        self.until(lambda: samples(e.get()[2])['ibscope_collector_up'] == 0)
        c = self.serve()
        self.until(lambda: samples(e.get()[2])['ibscope_collector_up'] == 1)
        # others, which it cannot reach: an error, and not "no collector"
        c.stop()
        self.assertEqual(self.serve('--unpin').stop(), 0)
        self.serve()
        self.failing(e, 'restart the exporter')
        e = self.start(Exporter, pin_dir=self.dir)
        self.until(lambda: self.seen(e))
        os.chmod(self.bpffs, 0o711)     # user nobody gets there, and others could have
        os.chmod(self.dir, 0o777)
        self.failing(e, 'has mode 0777')

    def failing(self, e, said):
        text = self.until(lambda: (lambda a: a[2] if a[0] == 503 and said in a[2] else None)(e.get('/-/ready')))
        self.assertIn(self.dir, text)
        s = self.until(lambda: (lambda s: s if s['ibscope_exporter_read_failing'] else None)(samples(e.get()[2])))
        self.assertNotIn('ibscope_collector_up', s)
        self.assertNotIn('ibscope_samples_seen_total', s)
        self.assertGreater(s['ibscope_exporter_read_errors_total'], 0)
        self.assertRegex(e.said(), 'error: .*' + re.escape(self.dir))
        self.assertIsNone(json.loads(e.get('/api/snapshot.json')[2])['collector'])

    def test_exporter_of_nobody(self):
        self.serve()
        self.failing(self.start(Exporter, prefix=NOBODY, pin_dir=self.dir), 'Permission denied')

    def test_exporter_first(self):
        e = self.start(Exporter, pin_dir=self.dir)
        self.failing(e, 'start `ibscope serve` first')
        self.serve()
        self.failing(e, 'start `ibscope serve` first')


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Grouped(Case):
    """The series have every label of --by; the cgroup replaces missing names."""

    KEYS = {'cgroup': 'cgroup', 'container': '(container|cgroup)', 'pod': '(pod|container|cgroup)', 'pid': 'pid', 'tid': 'tid', 'comm': 'comm', 'cpu': 'cpu',
            'ccx': 'ccx', 'node': 'node', 'mode': 'mode', 'src': 'src', 'op': 'op'}
    PAIRS = ('comm,src', 'cgroup,cpu', 'pid,mode', 'ccx,node', 'pod,comm', 'op,tid')

    def test_labels(self):
        busy = Busy(0)
        self.addCleanup(busy.stop)
        for by in 'cgroup', 'container', 'pod', 'src', *self.PAIRS:     # keys that are one label each are in a pair
            with self.subTest(by=by):
                c = self.start(collector, '--by', by, '--detail', 'full', '--unpin', '--web.listen-address', '127.0.0.1:0', pin_dir=DIR + '-by')
                url = self.until(lambda: re.search(r'http://\S+', c.said())).group()

                def scrape():
                    with urllib.request.urlopen(url + '/metrics', timeout=60) as a:
                        return samples(a.read().decode())

                def series():
                    return {k: v for k, v in scrape().items() if k.startswith('ibscope_samples_total{')}
                self.until(series)
                s = scrape()
                got = {k: v for k, v in s.items() if k.startswith('ibscope_samples_total{')}
                for key in by.split(','):
                    for k in got:
                        self.assertRegex(k, rf'[{{,]{self.KEYS[key]}="')
                self.assertEqual(sum(got.values()) + s['ibscope_samples_ended'], s['ibscope_samples_aggregated_total'])
                self.assertEqual(c.stop(), 0)


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(os.path.exists(FILL), 'fill_pins is not built')
class Thousand(Case):
    """A thousand containers with all sources, that no one samples."""

    @staticmethod
    def cpu_ms(e):
        """CPU time of a scrape that reads the counters."""
        def now():
            with open(f'/proc/{e.p.pid}/schedstat') as f:
                return int(f.read().split()[0]) / 1e6
        reads = samples(e.get()[2])['ibscope_exporter_reads_total']
        while True:
            before = now()
            if samples(e.get()[2])['ibscope_exporter_reads_total'] > reads:
                return now() - before
            time.sleep(0.1)

    def fill(self, n):
        """The directory of the pins, and samples in all."""
        d = DIR + '-fill'
        fill = subprocess.Popen([FILL, d, str(n)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(fill.wait, 60)
        self.addCleanup(fill.terminate)
        total = int(fill.stdout.readline().split()[0])
        self.addCleanup(fill.stdout.close)
        return d, total

    def whole(self, e, *args, **headers):
        """An answer of many megabytes, which is cut where a busy machine has newer counters before it is read."""
        for _ in range(3):
            try:
                return e.get(*args, **headers)[2]
            except http.client.IncompleteRead as short:
                print(f'# {short}')
        self.fail('three answers were cut')

    def test_memory_of_its_unit(self):
        """Twelve thousand with all buckets: text, packed text, histograms of the next format, page, and who reads slowly."""
        with open(os.path.join(ROOT, 'tools/systemd/ibscope-exporter.service')) as f:
            limit = int(re.search(r'^MemoryMax=(\d+)M$', f.read(), re.M).group(1))
        cgroup = memory_cgroup(f'ibscope-exporter-{os.getpid()}', limit << 20)
        if not cgroup:
            self.skipTest('no memory controller')
        self.addCleanup(os.rmdir, cgroup)
        d, total = self.fill(12000)
        e = self.start(Exporter, prefix=['sh', '-ec', f'echo $$ > {cgroup}/cgroup.procs; exec "$@"', '-', *NOBODY], pin_dir=d,
                       listen=':0', program=os.path.join(BUILD, 'ibscope-exporter'))    # sanitizers take more memory than that
        slow = []
        for path in '/metrics', '/api/snapshot.json', '/metrics':
            slow.append(socket.create_connection(('127.0.0.1', e.port)))
            self.addCleanup(slow[-1].close)
            slow[-1].sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\n\r\n'.encode())
            slow[-1].recv(1000)
            text = e.get()[2]   # of 200,000 lines, of which not all are read each time
            self.assertEqual(sum(map(int, re.findall(r'(?m)^ibscope_samples_total\{.* (\d+)$', text))), total)
            time.sleep(4)
        s = samples(text)
        self.assertEqual((s['ibscope_groups'], s['ibscope_exporter_coarse_histograms']), (12000, 1))
        self.assertEqual(sum(v for k, v in s.items() if 'latency_cycles_count{' in k and 'load_miss' in k),
                         sum(v for k, v in s.items() if 'latency_cycles_bucket{' in k and 'load_miss' in k and 'le="+Inf"' in k))
        for url in not_loopback(e.port)[:1]:
            with urllib.request.urlopen(urllib.request.Request(url, headers={'Accept-Encoding': 'gzip'}), timeout=60) as a:
                self.assertEqual(gzip.decompress(a.read()).count(b'\nibscope_samples_total{'), 12000)
        native = self.whole(e, Accept='application/openmetrics-text;version=2.0.0')
        self.assertIn(native.count('pod="checkout-7d9f8b6c5d-11999"'), range(10, 13))
        page = json.loads(self.whole(e, '/api/snapshot.json'))
        self.assertEqual(sum(src['samples'] for c in page['containers'] for src in c['sources'].values()), total)
        widths = [[le for le, _ in src['buckets']] for c in page['containers'] for src in c['sources'].values() if src['buckets']]
        self.assertEqual(max(widths, key=len), [64, 128, 256, 384, 512, 1024, 2048, 65535])
        self.assertEqual({src['p50'] for c in page['containers'] for src in c['sources'].values()}, {None})
        self.assertIn('histograms have only the exported edges', e.said())
        for peak in 'memory.max_usage_in_bytes', 'memory.peak':
            if os.path.exists(f'{cgroup}/{peak}'):
                with open(f'{cgroup}/{peak}') as f:
                    print(f'{int(f.read()) / (1 << 20):.1f} of {limit} MiB')
        self.assertEqual(e.stop(), 0)

    def test_bounds(self):
        d, total = self.fill(1000)
        e = self.start(Exporter, prefix=NOBODY, pin_dir=d)
        status, headers, text = e.get()
        s = samples(text)
        self.assertEqual(status, 200)
        # what ibscope-metrics(7) says of the default
        of_one = [k for k in s if 'pod="checkout-7d9f8b6c5d-00500"' in k]
        self.assertIn(len(of_one), range(30, 41))
        self.assertLess(len(text), 6e6)
        native = e.get(Accept='application/openmetrics-text;version=2.0.0')
        self.assertIn('version=2.0.0', native[1]['Content-Type'])
        self.assertIn(native[2].count('pod="checkout-7d9f8b6c5d-00500"'), range(10, 13))
        if SAN == BUILD:    # else it is sanitizers that take the time
            ms = min(self.cpu_ms(e) for _ in range(5))
            print(f'{len(of_one)} series a group, {ms:.0f} ms of CPU a scrape')
            self.assertLess(ms, 50)
        # sent as it is made, and yet of a size that is told before
        self.assertEqual(int(headers['Content-Length']), len(text))
        self.assertEqual(s['ibscope_groups'], 1000)
        self.assertEqual(sum(v for k, v in s.items() if k.startswith('ibscope_samples_total{')), total)
        self.assertEqual(s['ibscope_samples_seen_total'], total)
        self.assertEqual(sum(int(v) for k, v in s.items() if k.startswith('ibscope_estimated_ops_total{')), total * 100003)
        with open(f'/proc/{e.p.pid}/status') as f:
            peak = int(re.search(r'VmHWM:\s+(\d+)', f.read()).group(1)) / 1024
        print(f'{len(text)} bytes, at most {peak:.1f} MiB resident')
        if SAN == BUILD:
            self.assertLess(peak, 40)
        e = self.start(Exporter, '--detail', 'full', prefix=NOBODY, pin_dir=d)
        s = samples(e.get()[2])
        self.assertEqual(len([k for k in s if re.match(r'ibscope_samples_total.*op="load",src="dram"', k)]), 1000)
        self.assertEqual(sum(v for k, v in s.items() if k.startswith('ibscope_samples_total{')), total)


if __name__ == '__main__':
    unittest.main()
