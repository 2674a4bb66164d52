# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""serve --push: what arrives at a server, read by pprof, against what the collector says was delivered."""
import base64
import contextlib
import email
import email.policy
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
import ibscope
import test_pprof
from ibscope import Busy, Collector, run, until

OK, WHY = ibscope.can_bpf()
DIR = '/sys/fs/bpf/ibscope-push-%d' % os.getpid()
QUICK = ('--push-interval', '1s', '--push-duration', '0.3s')

# Publishes a process context as OpenTelemetry has it, and is busy.
SERVICE = '''
import ctypes, mmap, os, struct, time
fd = os.memfd_create('OTEL_CTX')
os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
text = b'shop-checkout'
value = b'\\x0a' + bytes([len(text)]) + text
pair = b'\\x0a\\x0cservice.name\\x12' + bytes([len(value)]) + value
resource = b'\\x0a' + bytes([len(pair)]) + pair
payload = b'\\x0a' + bytes([len(resource)]) + resource
m[64:64 + len(payload)] = payload
m[:32] = struct.pack('<8sIIQQ', b'OTEL_CTX', 2, len(payload), 1, at + 64)
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        pass
    time.sleep(0.03)
'''


# Two ways to the same function, a fifth of the time.
CHAIN = '''
#include <time.h>
static volatile unsigned long n, big[1 << 20];
__attribute__((noinline)) void innermost(unsigned long at) { for (int i = 0; i < 20000; i++) n += big[(at + i * 64) % (1 << 20)]; }
__attribute__((noinline)) void middle(unsigned long at) { innermost(at); n++; }
__attribute__((noinline)) void one(unsigned long at) { middle(at); n++; }
__attribute__((noinline)) void other(unsigned long at) { middle(at); n++; }
int main(void)
{
	for (unsigned long i = 1;; i++) {
		one(i);
		other(i);
		if (i % 100 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, 0);
	}
}
'''


class Server:
    """
    Keeps what is posted; answers with the next of @answers, and with 200 after the last.
    @says: the body, or a function of what was posted that returns it
    """

    def __init__(self, answers=(), context=None, says=b'says the server\n'):
        self.posts, self.answers, outer = [], list(answers), self
        self.wait = threading.Event()
        self.wait.set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                outer.posts.append((self.path, self.headers, body))
                outer.wait.wait(60)
                with contextlib.suppress(OSError):  # a collector that ended meanwhile
                    self.send_response(outer.answers.pop(0) if outer.answers else 200)
                    self.end_headers()
                    self.wfile.write(says(body) if callable(says) else says)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.http.daemon_threads = True
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f'http{"s" if context else ""}://localhost:{self.http.server_port}'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self):
        self.wait.set()
        self.http.shutdown()
        self.http.server_close()


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Push(unittest.TestCase):
    SELECT = ibscope.NOT_DEAR

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-push-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)

    def busy(self):
        b = Busy(min(os.sched_getaffinity(0)))
        self.addCleanup(b.stop)
        return b

    def server(self, *answers, context=None):
        s = Server(answers, context)
        self.addCleanup(s.stop)
        return s

    def collector(self, *args, period='200000', unpin=('--unpin',)):
        c = Collector(DIR, *unpin, '-c', period, '--max-overhead', 'off', '--nmi-cost', '1us',
                      '--control', self.dir + '/run/sock', *QUICK, *self.SELECT, *args)
        self.addCleanup(lambda: c.err.closed or c.stop())
        return c

    def status(self):
        o = ibscope.ask_json(self.dir + '/run/sock', 'status')
        self.assertEqual(ibscope.residual(o['ledger']), 0)
        return o

    def until(self, what, seconds=60):
        """The status, once @what is true of its part about pushing."""
        return until(lambda: (o := self.status()) and what(o['push']) and o, seconds)

    @staticmethod
    def failed(counts):
        return sum(n for outcome, n in counts.items() if outcome not in ('delivered', 'dropped'))

    def file(self, name, text, mode=0o600):
        path = f'{self.dir}/{name}'
        with open(path, 'w', opener=lambda p, f: os.open(p, f, mode)) as f:
            f.write(text)
        return path

    @staticmethod
    def form(headers, body):
        head = f'Content-Type: {headers["Content-Type"]}\n\n'.encode()
        parts = email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts()
        return {p.get_param('name', header='content-disposition'): p.get_payload(decode=True) for p in parts}

    def go(self, profile, *args):
        path = self.dir + '/profile.pb.gz'
        with open(path, 'wb') as f:
            f.write(profile)
        p = subprocess.run(['go', 'tool', 'pprof', '-symbolize=none', *args, path], capture_output=True, text=True,
                           timeout=60, env=dict(os.environ, HOME=self.dir))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def total(self, profile):
        """How many samples a profile has."""
        if not shutil.which('go'):
            self.skipTest('go is not installed')
        return int(re.search(r'Total samples = (\d+)', self.go(profile, '-sample_index=samples', '-top'))[1])

    def test_pyroscope(self):
        p = subprocess.Popen([sys.executable, '-c', SERVICE], preexec_fn=lambda: Busy.start(max(os.sched_getaffinity(0))))
        self.addCleanup(lambda: (p.kill(), p.wait()))
        s = self.server()
        c = self.collector('--push', s.url + '/', '--push-name', 'node.memory')
        began = time.time()
        o = self.until(lambda p: p['profiles']['delivered'] >= 2)
        self.assertEqual((self.failed(o['push']['profiles']), self.failed(o['push']['samples'])), (0, 0))
        self.assertIsNone(o['push']['failure'])
        self.assertRegex(run('ctl', '--control', self.dir + '/run/sock', 'status').stdout,
                         r'(?m)^push: profiles [\d,]+ delivered; samples [\d,]+ delivered(, [\d,]+ dropped)?; 0 tries again$')
        c.stop()
        profiles = []
        for path, headers, body in s.posts[:o['push']['profiles']['delivered']]:
            url = urllib.parse.urlsplit(path)
            query = dict(urllib.parse.parse_qsl(url.query))
            self.assertEqual((url.path, query['format'], query['name']),
                             ('/ingest', 'pprof', f'node.memory{{hostname={os.uname().nodename}}}'))
            self.assertLess(began - 5, int(query['from']))
            self.assertLess(int(query['from']), int(query['until']))
            self.assertLess(int(query['until']), time.time() + 5)
            form = self.form(headers, body)
            self.assertEqual(set(json.loads(form['sample_type_config'])),
                             {'samples', 'miss_cycles', 'remote_miss_cycles', 'estimated_ops', 'dram'})
            profiles.append(form['profile'])
        # copies are counted where they are, too: no sample is in two profiles
        self.assertEqual(sum(map(self.total, profiles)), o['push']['samples']['delivered'])
        self.assertLess(o['push']['samples']['delivered'], o['ledger']['aggregated'])
        tags = '\n'.join(self.go(p, '-tags', '-sample_index=samples') for p in profiles)
        self.assertIn('shop-checkout', tags)
        for label in 'service', 'source', 'op', 'pid', 'thread':
            self.assertRegex(tags, rf'(?m)^ *{label}: ')
        self.assertIn('SIMULATED', self.go(profiles[0], '-comments'))

    def test_parca(self):
        s = self.server()
        self.collector('--push', s.url, '--push-format', 'parca')
        o = self.until(lambda p: p['profiles']['delivered'])
        path, headers, body = s.posts[0]
        self.assertEqual((path, headers['Content-Type']), ('/profiles/writeraw', 'application/json'))
        series, = json.loads(body)['series']
        self.assertEqual({x['name']: x['value'] for x in series['labels']['labels']},
                         {'__name__': 'ibscope', 'instance': os.uname().nodename})
        if o['push']['profiles']['delivered'] == 1:
            self.assertEqual(self.total(base64.b64decode(series['samples'][0]['rawProfile'], validate=True)),
                             o['push']['samples']['delivered'])

    @unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
    def test_tls_and_credentials(self):
        key, cert = self.dir + '/key', self.dir + '/cert'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                        '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        s = self.server(context=context)
        for text, want in ('Bearer to-ken\n', 'Bearer to-ken'), ('a:b:c', 'Basic ' + base64.b64encode(b'a:b:c').decode()):
            secret = self.file('secret', text)
            c = self.collector('--push', s.url, '--push-ca', cert, '--push-credentials', secret)
            self.until(lambda p: p['profiles']['delivered'])
            c.stop()
            self.assertEqual(s.posts[-1][1]['Authorization'], want)
            self.assertNotIn(text.strip(), c.p.args)
        # a certificate that nobody trusts: nothing is posted, and the user learns why
        n = len(s.posts)
        c = self.collector('--push', s.url, '--push-credentials', secret)
        o = self.until(lambda p: '--push-ca' in (p['failure'] or ''))
        self.assertEqual((o['push']['profiles']['delivered'], len(s.posts)), (0, n))

    def test_refused_and_tried_again(self):
        s = self.server(503, 429)
        c = self.collector('--push', s.url, '--web.listen-address', '127.0.0.1:0')
        o = self.until(lambda p: p['profiles']['delivered'])
        self.assertEqual((self.failed(o['push']['profiles']), o['push']['retries']), (0, 2))
        self.assertEqual(len({body for _, headers, body in s.posts[:3]
                              for body in [self.form(headers, body)['profile']]}), 1)
        s.answers[:] = [400] * 100
        o = self.until(lambda p: p['profiles']['refused'] >= 2)
        self.assertRegex(o['push']['failure'], 'answers 400: says the server')
        self.assertGreater(o['push']['samples']['refused'], 0)
        self.assertEqual(c.said().count('answers 400'), 1)  # not at each interval
        s.answers.clear()
        o = self.until(lambda p: not p['failure'])
        self.assertIn('accepts profiles again', c.said())
        self.check_metrics(o['push'], c)

    def check_metrics(self, push, c):
        """The exporter has what the status says, though it has no part in it."""
        port = re.search(r'listening on \S+:(\d+)', c.said())[1]
        text = urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60).read().decode()
        for what in 'profiles', 'samples':
            got = {k: int(v) for k, v in re.findall(rf'(?m)^ibscope_push_{what}_total{{outcome="(\w+)"}} (\d+)$', text)}
            self.assertEqual(got.keys(), push[what].keys() - ({'dropped'} if what == 'profiles' else set()))
            for outcome, n in got.items():
                self.assertGreaterEqual(n, push[what][outcome])
        self.assertIn('\nibscope_push_retries_total 2\n', text)

    def test_slow_server(self):
        """While it lets us wait, samples are counted, requests answered; at the end all is accounted for."""
        s = self.server()
        s.wait.clear()
        c = self.collector('--push', s.url, unpin=())
        until(lambda: s.posts)
        before = self.status()
        self.busy().runs(0.5)
        o = self.status()
        self.assertGreater(o['ledger']['aggregated'], before['ledger']['aggregated'])
        self.assertEqual((o['push']['profiles']['delivered'], o['push']['pending'], len(s.posts)), (0, True, 1))
        c.p.send_signal(signal.SIGTERM)
        c.p.wait(60)
        [lost] = re.findall(r'([\d,]+) samples of an unfinished profile are not delivered', c.said())
        # and the next collector goes on with the counts
        s.wait.set()
        self.collector('--push', s.url)
        o = self.until(lambda p: p['profiles']['delivered'])
        self.assertEqual((o['push']['profiles']['unfinished'], o['push']['samples']['unfinished']), (1, int(lost.replace(',', ''))))

    def test_hostile_server(self):
        """A server that sends elsewhere, or without end: credentials stay here, and neither time nor memory is its own."""
        other = self.server()
        secret = self.file('secret', 'Bearer to-ken')
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)
        ends, cleared = [], b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'

        def endless(conn, head, chunk):
            began, sent = time.monotonic(), 0
            with contextlib.suppress(OSError):
                conn.sendall(head)
                while time.monotonic() < began + 60:
                    conn.sendall(chunk)
                    sent += len(chunk)
            ends.append((time.monotonic() - began, sent))

        answers = [
            lambda conn: conn.sendall(f'HTTP/1.1 307 No\r\nLocation: {other.url}/ingest\r\nContent-Length: 0\r\n\r\n'.encode()),
            lambda conn: endless(conn, b'HTTP/1.1 400 No\r\n\r\n', b'x' * 65536),
            lambda conn: endless(conn, b'HTTP/1.1 200 OK\r\n\r\n', b'x' * 65536),
            lambda conn: endless(conn, b'HTTP/1.1 400 No\r\n', b'X-Long: ' + b'x' * 8000 + b'\r\n'),
        ]
        posts = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    conn, _ = listener.accept()
                    with conn:
                        conn.settimeout(30)
                        with contextlib.suppress(OSError):
                            head = b''
                            while b'\r\n\r\n' not in head:
                                head += conn.recv(65536)
                            head, body = head.split(b'\r\n\r\n', 1)
                            left = int(re.search(rb'(?i)content-length: (\d+)', head)[1]) - len(body)
                            if b'100-continue' in head:
                                conn.sendall(b'HTTP/1.1 100 Continue\r\n\r\n')
                            while left > 0:
                                left -= len(conn.recv(65536))
                            posts.append(head)
                            if answers:
                                answers.pop(0)(conn)
                            else:
                                conn.sendall(cleared)
        threading.Thread(target=serve, daemon=True).start()
        c = self.collector('--push', f'http://localhost:{listener.getsockname()[1]}', '--push-credentials', secret)
        o = self.until(lambda p: p['profiles']['delivered'] >= 2, 120)
        # whose status says that a profile is accepted has accepted it
        self.assertEqual((o['push']['profiles']['refused'], o['push']['retries'], len(ends)), (3, 0, 3), o['push'])
        self.assertIn('answers 307', c.said())
        self.assertEqual(other.posts, [])
        for seconds, sent in ends:
            self.assertLess(seconds, 10, ends)
            self.assertLess(sent, 16 << 20, ends)     # what fits into the buffers of the kernel
        self.assertEqual(o['ledger']['lost'], {})
        print(f'# {len(ends)} answers without end: given up after {max(s for s, _ in ends):.2f} s, '
              f'{max(n for _, n in ends) >> 10} KiB sent')

    def test_dropped(self):
        """A stalled reader loses copies, which are counted, but no sample."""
        s = self.server()
        c = self.collector('--push', s.url, '--push-duration', '1s', period='20000')    # copies most of the time
        busy = self.busy()

        def dropped():
            c.p.send_signal(signal.SIGSTOP)
            busy.runs(0.3)  # more than the ring holds, even if an interrupt takes 70 us
            c.p.send_signal(signal.SIGCONT)
            return self.status()['push']['samples']['dropped']

        until(dropped, 120)
        o = self.until(lambda p: p['profiles']['delivered'])
        self.assertEqual(o['ledger']['lost'], {})
        self.assertEqual(self.failed(o['push']['profiles']), 0)

    def hostile(self, symbols):
        """A program whose table of symbols is what costs its reader time and memory."""
        path = self.dir + '/hostile'
        code = '''#include <time.h>
__asm__(".text\\n.fill 33554432,1,0x90\\n"); volatile int n;
int main(void) { for (;;) if (!(++n % 1000000)) nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, 0); }
'''
        subprocess.run(['gcc', '-no-pie', '-x', 'c', '-o', path, '-'], input=code.encode(), check=True)
        with open(path, 'rb') as f:
            head = bytearray(f.read())
        at, n = struct.unpack_from('<Q', head, 40)[0], struct.unpack_from('<H', head, 60)[0]
        sections = [list(struct.unpack_from('<IIQQQQIIQQ', head, at + 64 * i)) for i in range(n)]
        table = next(s for s in sections if s[1] == 2)
        table[4], table[5] = len(head), 24 * symbols
        million = struct.pack('<IBBHQQ', 1, 0x12, 0, 1, 0x401000, 1) * (1 << 20)
        with open(path, 'wb') as f:
            f.write(head)
            for done in range(0, symbols, 1 << 20):
                f.write(million[:24 * min(1 << 20, symbols - done)])
            end = f.tell()
            f.write(b''.join(struct.pack('<IIQQQQIIQQ', *s) for s in sections))
            f.seek(40)
            f.write(struct.pack('<Q', end))
        os.chmod(path, 0o755)
        return path

    def test_hostile_neighbour(self):
        """A tenant's program that nobody can read in time costs the others nothing but its own names."""
        path = self.hostile(15_000_000)
        s = self.server()
        c = self.collector('--push', s.url)
        p = subprocess.Popen([path], preexec_fn=lambda: (Busy.start(min(os.sched_getaffinity(0))), os.setgroups([]), os.setuid(65534)))
        self.addCleanup(lambda: (p.kill(), p.wait()))
        # a profile may end before the reader has had its 10 s of CPU time
        o = self.until(lambda p: p['files_given_up'] and p['profiles']['delivered'] >= 2, 200)
        self.assertEqual(self.failed(o['push']['profiles']), 0)
        self.assertIn(f'functions of {path} are not named: it has 15000000 symbols', c.said())
        until(lambda: self.status()['push']['profiles']['delivered'] >= o['push']['profiles']['delivered'] + 2)
        self.assertEqual(c.said().count('are not named'), 1)
        self.assertEqual(self.status()['push']['files_given_up'], 1)

    def test_hogs(self):
        """Profiles of a machine without a free CPU arrive."""
        s = self.server()
        c = self.collector('--push', s.url)
        cpu = min(os.sched_getaffinity(0))
        os.sched_setaffinity(c.p.pid, {cpu})
        for _ in range(4):
            b = Busy(cpu, share=1)
            self.addCleanup(b.stop)
        before = self.status()['push']['profiles']['delivered']
        o = self.until(lambda p: p['profiles']['delivered'] + p['profiles']['late'] > before + 1, 150)
        self.assertEqual(self.failed(o['push']['profiles']) - o['push']['profiles']['late'], 0)

    def test_stacks(self):
        """Profiles of --stacks have the callers of a container's functions; no sample is counted otherwise."""
        path, name = self.dir + '/chain', os.urandom(32).hex()
        subprocess.run(['gcc', '-O1', '-fno-omit-frame-pointer', '-x', 'c', '-o', path, '-'],
                       input=CHAIN.encode(), check=True)
        container = ibscope.Cgroup(f'/ibscope-push-{os.getpid()}/docker-{name}.scope')
        self.addCleanup(ibscope.Cgroup(os.path.dirname(container.path)).remove)
        self.addCleanup(container.remove)
        p = subprocess.Popen([path], preexec_fn=lambda: Busy.start(max(os.sched_getaffinity(0))))
        self.addCleanup(lambda: (p.kill(), p.wait()))
        container.add(p.pid)
        s = self.server()
        c = self.collector('--push', s.url, '--push-duration', '1s', '--stacks', '--cgroup', container.path, '--web.listen-address', '127.0.0.1:0')
        ways = {(*chain, dram) for chain in (('innermost', 'middle', 'one'), ('innermost', 'middle', 'other'))
                for dram in (False, True)}
        found, read = set(), 0
        while not ways <= found:
            until(lambda: len(s.posts) > read, 60)
            found |= self.chains(s.posts[read], name[:12])
            read += 1
            self.assertLess(read, 30, found)
        o = self.until(lambda p: p['profiles']['delivered'] >= read)
        self.assertEqual((self.failed(o['push']['profiles']), o['ledger']['lost']), (0, {}))
        # most of these chains differ only by the address that was interrupted
        self.assertLess(o['push']['chains_lost'], 0.05 * o['push']['samples']['delivered'])
        self.check_lost(o['push']['chains_lost'], c)

    def chains(self, post, container):
        """The frames of a profile's samples below main(), and whether their data came from DRAM."""
        path = self.file('profile.pb.gz', '')
        with open(path, 'wb') as f:
            f.write(self.form(*post[1:])['profile'])
        profile = test_pprof.Profile(path)
        self.assertEqual(profile.types, test_pprof.VALUES)
        self.assertIn('SIMULATED samples', profile.comments)
        found = set()
        for frames, values, labels in profile.samples:
            from_dram = labels.get('source') in ('dram', 'remote-dram')
            self.assertEqual(labels['container'], container)
            self.assertEqual(values[test_pprof.VALUES.index('dram')], values[0] * from_dram, labels)
            if 'main' in frames:
                found.add((*frames[:frames.index('main')], from_dram))
        return found

    def check_lost(self, at_least, c):
        port = re.search(r'listening on \S+:(\d+)', c.said())[1]
        text = urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=20).read().decode()
        self.assertGreaterEqual(int(re.search(r'(?m)^ibscope_push_chains_lost_total (\d+)$', text)[1]), at_least)

    def test_other_options_meanwhile(self):
        """Sampling is opened again: the profile ends before that, and is delivered."""
        s = self.server()
        self.collector('--push', s.url, '--push-interval', '3s', '--push-duration', '3s')
        self.until(lambda p: p['pending'])
        busy = self.busy()
        busy.runs(0.3)
        busy.stop()
        p = run('ctl', '--control', self.dir + '/run/sock', 'set', 'by=container')
        self.assertEqual(p.returncode, 0, p.stderr)
        o = self.until(lambda p: p['profiles']['delivered'] >= 2)
        self.assertEqual(self.failed(o['push']['profiles']), 0)


if __name__ == '__main__':
    unittest.main()
