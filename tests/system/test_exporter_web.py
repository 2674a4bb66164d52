# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exporter's HTTP server: refused requests, authentication, certificates. Needs no collector."""
import concurrent.futures
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import ibscope
from test_exporter import DIR, EXPORTER, HASH, Case, Exporter, needs, samples

HOST = b'Host: localhost\r\n'


def hashed(password, cost):
    """A bcrypt hash, made with crypt(3)."""
    import ctypes
    crypt = ctypes.CDLL('libcrypt.so.1').crypt
    crypt.restype = ctypes.c_char_p
    return crypt(password.encode(), b'$2y$%02d$abcdefghijklmnopqrstuu' % cost).decode()


class Web(Case):
    def exporter(self, *args, **kw):
        return self.start(Exporter, *args, pin_dir=DIR + '-none', **kw)

    def raw(self, e, data):
        """The status of a request given byte by byte as it is; 0 if the connection is closed."""
        with socket.create_connection(('127.0.0.1', e.port), timeout=60) as s:
            s.sendall(data)
            got = s.recv(1000)
        return int(got.split(b' ')[1]) if got else 0


class Strict(Web):
    def test_requests(self):
        e = self.exporter()
        get = b'GET /-/healthy HTTP/1.1\r\n'
        for status, data in (
                (200, get + HOST + b'\r\n'),
                (200, get + HOST + b'X:\r\nAccept:  */* \r\n\r\n'),
                (200, b'GET /-/healthy?a=%20 HTTP/1.0\r\n\r\n'),
                (400, get.replace(b'\r', b'') + b'Host: localhost\n\n'),
                (400, get + b'Host: localhost\n\r\n'),
                (400, get + b'Host: localhost\r\n\n'),
                (400, get + HOST + b'X: a\nY: b\r\n\r\n'),
                (400, get + HOST + b'X: a\r\n b\r\n\r\n'),
                (400, get + HOST + b'X: a\rb\r\n\r\n'),
                (400, get + HOST + b'X: a\0b\r\n\r\n'),
                (400, get + HOST + b'X : a\r\n\r\n'),
                (400, get + b'Host : localhost\r\n\r\n'),
                (400, get + HOST + b': a\r\n\r\n'),
                (400, get + HOST + b'Content-Length: 0\r\nContent-Length: 0\r\n\r\n'),
                (400, get + HOST + b'Content-Length: 5\r\n\r\nabcde'),
                (400, get + HOST + b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
                (400, get + b'\r\n'),
                (400, get + HOST + HOST + b'\r\n'),
                (400, b'GET  /-/healthy HTTP/1.1\r\n' + HOST + b'\r\n'),
                (400, b'GET /-/healthy HTTP/1.9\r\n' + HOST + b'\r\n')):
            self.assertEqual(self.raw(e, data), status, data)
        # in pieces, and long, as far as there is room
        with socket.create_connection(('127.0.0.1', e.port), timeout=60) as s:
            for part in (get[:9], get[9:], HOST[:3], HOST[3:], b'X: ' + b'a' * 9000, b'\r\n', b'\r', b'\n'):
                s.sendall(part)
                time.sleep(.01)
            self.assertIn(b' 200 ', s.recv(100))

    def test_what_is_refused_ends_the_connection(self):
        """So that a proxy that reads it otherwise does not get a second answer."""
        e = self.exporter()
        with socket.create_connection(('127.0.0.1', e.port), timeout=60) as s:
            s.sendall(b'GET /-/healthy HTTP/1.1\r\n' + HOST + b'Content-Length: 50\r\n\r\n' +
                      b'GET /-/healthy HTTP/1.1\r\n' + HOST + b'\r\n')
            got = b''
            while chunk := s.recv(1000):
                got += chunk
        self.assertEqual(got.count(b'HTTP/1.1'), 1, got)

    def test_names(self):
        """DNS rebinding: a page with a name that resolves to loopback cannot read our responses."""
        for listen in '127.0.0.1:0', ':0':
            e = self.exporter(listen=listen)
            for host, status in (('localhost', 200), ('127.0.0.1:80', 200), ('[::1]', 200), (socket.gethostname() + ':9950', 200),
                                 ('evil.example', 421), ('localhost.evil.example:9950', 421)):
                got, _, text = e.get('/metrics', Host=host)
                self.assertEqual(got, status, host)
        self.assertIn('localhost', text)

    def test_pipelines_take_turns(self):
        """Who sends thousands of requests at once does not keep others waiting."""
        e = self.exporter()
        many = b'GET /metrics HTTP/1.1\r\n' + HOST + b'\r\n'

        begun = threading.Barrier(21)

        def flood():
            with socket.create_connection(('127.0.0.1', e.port), timeout=60) as s:
                s.sendall(many * 300)
                s.setblocking(False)
                begun.wait(60)
                end = time.time() + 3
                while time.time() < end:
                    for f in lambda: s.send(many * 300), lambda: s.recv(1 << 20):
                        try:
                            f()
                        except BlockingIOError:
                            time.sleep(.001)
                        except ConnectionError:
                            return
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            floods = [pool.submit(flood) for _ in range(20)]
            begun.wait(60)
            waits = []
            while not all(f.done() for f in floods):
                begin = time.time()
                self.assertEqual(e.get('/-/healthy')[0], 200)
                waits.append(time.time() - begin)
        self.assertGreater(len(waits), 3)
        self.assertLess(sorted(waits)[len(waits) // 2], 1)
        self.assertEqual(e.stop(), 0, e.said())


class Passwords(Web):
    def config(self, text):
        d = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, d)
        os.chmod(d, 0o755)      # the exporter reads it again as nobody
        path = d + '/web.yml'
        with open(path, 'w') as f:
            f.write(text)
        return path

    def status(self, e, password, timeout=60):
        p = subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-m', str(timeout), '-u', f'alice:{password}',
                            e.url + '/metrics'], capture_output=True, text=True)
        return p.stdout

    @needs('curl')
    def test_guessers_do_not_lock_out(self):
        """The right password is let in while 20 guess, and then costs nothing again."""
        path = self.config('basic_auth_users:\n  alice: ' + hashed('secret', 10) + '\n')
        e = self.exporter('--web.config.file', path)
        stop = False

        def guess(i):
            n = 0
            while not stop:
                n += 1
                if self.status(e, f'guess{i}.{n}') not in ('401', '000'):
                    return 'let in'
            return n
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            guessers = [pool.submit(guess, i) for i in range(20)]
            try:
                got = [self.status(e, 'secret') for _ in range(30)]
            finally:
                stop = True
            guesses = [g.result() for g in guessers]
        self.assertEqual(got, ['200'] * 30)
        self.assertNotIn('let in', guesses)
        self.assertGreater(sum(guesses), 10)
        p = subprocess.run(['curl', '-s', '-u', 'alice:secret', e.url + '/metrics'], capture_output=True, text=True)
        s = samples(p.stdout)
        # 30 answers took one hash; and guessing took at most about a quarter of a CPU
        self.assertLessEqual(s['ibscope_exporter_passwords_checked_total'] - s['ibscope_exporter_passwords_wrong_total'], 1)
        self.assertGreater(s['ibscope_exporter_passwords_wrong_total'], 5)
        alive = time.time() - s['process_start_time_seconds']
        self.assertLess(s['process_cpu_seconds_total'], .4 * alive + 1)

    @needs('curl')
    def test_reload(self):
        """Users change without a restart; a file that is wrong changes nothing."""
        path = self.config('basic_auth_users:\n  alice: ' + HASH + '\n')
        e = self.exporter('--web.config.file', path)
        self.assertEqual(self.status(e, 'secret'), '200')
        with open(path, 'w') as f:
            f.write('basic_auth_users:\n  alice: ' + hashed('other', 4) + '\n')
        os.chmod(path, 0o644)
        self.until(lambda: self.status(e, 'other') == '200')
        self.assertEqual(self.status(e, 'secret'), '401')
        with open(path, 'w') as f:
            f.write('nonsense: 1\n')
        self.until(lambda: self.status(e, 'other') == '200' and 'old certificates and passwords stay' in e.said())
        self.assertIn('nonsense: unknown key', e.said())
        self.assertEqual(self.status(e, 'secret'), '401')
        self.assertEqual(self.status(e, 'other'), '200')


@unittest.skipUnless(shutil.which('openssl') and shutil.which('curl'), 'openssl or curl is not installed')
class Tls(Web):
    def setUp(self):
        self.d = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.d)
        os.chmod(self.d, 0o755)     # the exporter reads it again as nobody
        self.make('ca', 'ibscope test CA', ca=True)
        self.make('server', 'localhost', 'DNS:localhost,IP:127.0.0.1')
        self.make('client', 'prometheus', 'DNS:prometheus')
        self.make('stranger', 'stranger', 'DNS:prometheus', signed=False)

    def openssl(self, *args):
        subprocess.run(['openssl', *args], check=True, capture_output=True, cwd=self.d)

    def make(self, name, cn, san=None, ca=False, signed=True, key=('ec', '-pkeyopt', 'ec_paramgen_curve:P-256')):
        ext = ['-addext', f'subjectAltName={san}'] if san else []
        by = ['-CA', 'ca.pem', '-CAkey', 'ca.key'] if signed and not ca else []
        self.openssl('req', '-x509', '-newkey', *key, '-nodes', '-days', '2', '-subj', f'/CN={cn}', *ext, *by,
                     *([] if ca else ['-addext', 'basicConstraints=critical,CA:FALSE']), '-keyout', name + '.key', '-out', name + '.new')
        os.chmod(f'{self.d}/{name}.key', 0o644 if name == 'open' else 0o600)
        os.rename(f'{self.d}/{name}.new', f'{self.d}/{name}.pem')

    def config(self, *lines, cert='server', users=''):
        path = self.d + '/web.yml'
        with open(path, 'w') as f:
            f.write('tls_server_config:\n' + ''.join(f'  {x}\n' for x in (f'cert_file: {cert}.pem', f'key_file: {cert}.key', *lines)) + users)
        return path

    def curl(self, e, *args):
        p = subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--cacert', 'ca.pem', *args, f'https://localhost:{e.port}/metrics'],
                           capture_output=True, text=True, timeout=60, cwd=self.d)
        return p.stdout

    def client(self, e, name, *args):
        return self.curl(e, '--cert', name + '.pem', '--key', name + '.key', *args)

    def test_client_certificates(self):
        verify = ('client_ca_file: ca.pem', 'client_auth_type: RequireAndVerifyClientCert')
        for lines, none, client, stranger in (
                ((), '200', '200', '200'),
                (('client_auth_type: RequestClientCert',), '200', '200', '200'),
                (('client_auth_type: RequireAnyClientCert',), '000', '200', '200'),
                (('client_ca_file: ca.pem', 'client_auth_type: VerifyClientCertIfGiven'), '200', '200', '000'),
                (verify, '000', '200', '000'),
                ((*verify, 'client_allowed_sans: [prometheus]'), '000', '200', '000'),
                ((*verify, 'client_allowed_sans: [grafana, 10.0.0.1]'), '000', '000', '000')):
            for tls in ('--tls-max', '1.2'), ('--tlsv1.3',):
                with self.subTest(lines=lines, tls=tls):
                    e = self.exporter('--web.config.file', self.config(*lines))
                    self.assertEqual(self.curl(e, *tls), none)
                    self.assertEqual(self.client(e, 'client', *tls), client)
                    self.assertEqual(self.client(e, 'stranger', *tls), stranger)
                    self.assertEqual(e.stop(), 0, e.said())

    def test_versions_and_ciphers(self):
        e = self.exporter('--web.config.file', self.config('min_version: TLS13'))
        self.assertEqual(self.curl(e), '200')
        self.assertEqual(self.curl(e, '--tls-max', '1.2'), '000')
        e = self.exporter('--web.config.file', self.config('max_version: TLS12', 'cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]',
                                                           'curve_preferences: [CurveP384]'))
        self.assertEqual(self.curl(e), '200')
        self.assertEqual(self.curl(e, '--ciphers', 'ECDHE-ECDSA-AES128-GCM-SHA256'), '000')
        self.assertEqual(self.curl(e, '--ciphers', 'ECDHE-ECDSA-AES256-GCM-SHA384'), '200')
        self.assertEqual(self.curl(e, '--curves', 'X25519'), '000')
        self.assertEqual(self.curl(e, '--tlsv1.3'), '000')
        p = self.check(self.config('cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]'))
        self.assertEqual(p.returncode, 2)
        self.assertIn('none of them fits the certificate, which has an ECDSA key', p.stderr)

    def test_handshakes_that_stop(self):
        """Strangers who send the beginning of a handshake take no CPU, and keep nobody out."""
        e = self.exporter('--web.config.file', self.config())
        hello = bytes.fromhex('1603010200010001fc0303')
        for n in 1, 200:
            before, began = ibscope.cpu_seconds(e.p.pid), time.monotonic()
            with contextlib.ExitStack() as stack:
                for _ in range(n):
                    stack.enter_context(socket.create_connection(('127.0.0.1', e.port), timeout=60)).sendall(hello)
                while time.monotonic() < began + 3:
                    time.sleep(0.1)
                took = (ibscope.cpu_seconds(e.p.pid) - before) / (time.monotonic() - began)
                began = time.monotonic()
                self.assertEqual(self.curl(e), '200')
                print(f'# {n} handshakes that stop: {100 * took:.0f} % of a CPU, a request beside them {time.monotonic() - began:.2f} s')
            self.assertLess(took, 0.3)
        self.assertEqual(e.stop(), 0, e.said())

    def after_handshake(self, e, line):
        """What s_client prints after a handshake and that line, until the connection ends or there is an answer; "R" asks for another."""
        p = subprocess.Popen(['openssl', 's_client', '-tls1_2', '-msg', '-connect', f'127.0.0.1:{e.port}'], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.d)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        with contextlib.closing(p.stdin):
            said = b''
            for until in b'Extended master secret: yes', b'HTTP/1.1 ':
                while until not in said and (more := p.stdout.readline()):
                    said += more
                if until != b'HTTP/1.1 ':
                    self.assertIn(b'Secure Renegotiation IS supported', said)
                    self.assertEqual(said.count(b', ServerHello\n'), 1, said)
                    p.stdin.write(line)
                    p.stdin.flush()
                    said = b''
        return said.decode(errors='replace')

    def test_renegotiation(self):
        """A client that asks for another handshake gets none: the connection ends, others are served."""
        e = self.exporter('--web.config.file', self.config('max_version: TLS12'))
        get = b'GET /-/healthy HTTP/1.1\r\n' + HOST + b'\r\n'
        self.assertIn('HTTP/1.1 200 OK', self.after_handshake(e, get))
        for _ in range(20):
            said = self.after_handshake(e, b'R\n')
            self.assertIn(', ClientHello\n', said)
            self.assertNotIn(', ServerHello\n', said)
            self.assertNotIn('HTTP/1.1', said)
        self.assertEqual(self.curl(e), '200')
        self.assertEqual(e.stop(), 0, e.said())

    def check(self, path):
        return subprocess.run([EXPORTER, '--web.config.file', path, '--config-check'], capture_output=True, text=True, timeout=30)

    def test_key_of_others(self):
        self.make('open', 'localhost', 'DNS:localhost')
        p = self.check(self.config(cert='open'))
        self.assertEqual(p.returncode, 2)
        self.assertIn('mode 0644, so that other users can read the key', p.stderr)
        self.assertEqual(self.check(self.config()).returncode, 0)

    def test_certificate_is_reloaded(self):
        """By whoever can read the files after privileges are dropped."""
        for f in 'server.key', 'server.pem':
            shutil.chown(f'{self.d}/{f}', 'nobody')
        e = self.exporter('--web.config.file', self.config())

        def serial():
            p = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{e.port}', '-servername', 'localhost'],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
            pem = re.search(r'-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----', p.stdout, re.S).group()
            return subprocess.run(['openssl', 'x509', '-noout', '-serial'], input=pem, capture_output=True, text=True).stdout
        old = serial()
        # a connection that is open keeps the old one
        with tempfile.TemporaryFile() as out:
            held = subprocess.Popen(['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{e.port}'], stdin=subprocess.PIPE, stdout=out,
                                    stderr=subprocess.DEVNULL)
            self.addCleanup(held.kill)

            def asks(n):
                held.stdin.write(b'GET /-/healthy HTTP/1.1\r\n' + HOST + b'\r\n')
                held.stdin.flush()

                def answered():
                    out.seek(0)
                    return out.read().count(b'200 OK') == n
                self.until(answered)
            asks(1)
            self.make('server', 'localhost', 'DNS:localhost,IP:127.0.0.1')
            shutil.chown(self.d + '/server.key', 'nobody')
            self.until(lambda: serial() != old)
            self.assertEqual(self.curl(e), '200')
            asks(2)
            held.kill()
            held.wait(60)
            held.stdin.close()
        # what is wrong leaves the one there is
        with open(self.d + '/server.pem', 'w') as f:
            f.write('nonsense')
        self.until(lambda: self.curl(e) == '200' and 'not a PEM certificate' in e.said())

        def errors():
            p = subprocess.run(['curl', '-s', '--cacert', self.d + '/ca.pem', f'https://localhost:{e.port}/metrics'],
                               capture_output=True, text=True, timeout=30)
            return samples(p.stdout)['ibscope_exporter_config_reload_errors_total']
        self.until(lambda: errors() == 1)       # once, not with each connection
        self.assertEqual(e.stop(), 0, e.said())


if __name__ == '__main__':
    unittest.main()
