# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers that drip, never end, or answer nonsense, asked by `diff` and `why`: each a clear error, soon and in bounded memory."""
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n'
EMPTY = b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'
MIB = 1 << 20
# with a time limit of the test in place of the program's, which is written to the file
SHIM = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT 13 /* CURLOPT_TIMEOUT */

int curl_easy_setopt(void *curl, int option, ...)
{
	int (*real)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(RTLD_NEXT, "curl_easy_setopt");
	va_list args;
	void *value;

	va_start(args, option);
	value = va_arg(args, void *);
	va_end(args);
	if (option == TIMEOUT) {
		FILE *f = fopen(getenv("SEEN"), "a");

		fprintf(f, "%ld\n", (long)value);
		fclose(f);
		return real(curl, option, 2L);
	}
	return real(curl, option, value);
}
'''


def with_length(body, head=HEAD, more=0):
    return head + b'Content-Length: %d\r\n\r\n' % (len(body) + more) + body


class Server:
    """What answers every request with `answer`: the bytes, or a function that writes them to the connection."""
    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'http://127.0.0.1:%d' % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self.reply(connection)
                except OSError:     # it was hung up on
                    pass

    def reply(self, connection):
        request = b''
        while b'\r\n\r\n' not in request:
            request += connection.recv(65536)
        if callable(self.answer):
            self.answer(connection)
            return
        connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def drip(connection):
    connection.sendall(HEAD + b'\r\n{')
    while True:
        time.sleep(.2)
        connection.sendall(b' ')


def drip_head(connection):
    connection.sendall(b'HTTP/1.1 200 OK\r\nX: ')
    while True:
        time.sleep(.2)
        connection.sendall(b' ')


def endless(connection):
    connection.sendall(HEAD + b'\r\n')
    while True:
        connection.sendall(b'[1,' * 100000)


def endless_head(connection):
    connection.sendall(b'HTTP/1.1 200 OK\r\n')
    while True:
        connection.sendall(b'X: ' + b'y' * 10000 + b'\r\n')


def frame(kind, body):
    """A frame of HTTP/2, of stream 0."""
    return len(body).to_bytes(3, 'big') + bytes([kind, 0]) + bytes(4) + body


class Servers(unittest.TestCase):
    def commands(self, url):
        return (['diff', '--prometheus', url, '--at', '1700000600', '--at', '1700000600'], ['why', '--prometheus', url, '--at', '1700000600'],
                ['diff', '--exporter', url, '--at', '-2m', '--at', '-1m', '--window', '30s'], ['why', '--exporter', url, '--at', '-10m'])

    def refused(self, args, url, want):
        p = ibscope.run(*args, timeout=60)
        self.assertEqual((p.returncode, p.stdout), (1, ''), p.stderr)
        self.assertRegex(p.stderr, f'^ibscope: error: {url}[^\n]*: [^\n]*{want}[^\n]*\n$')
        self.assertNotIn('\x1b', p.stderr)

    def test_nonsense(self):
        json_of_text = with_length(EMPTY, HEAD.replace(b'application/json', b'text/plain'))
        h2 = frame(4, b'\0\3\0\0\0\x64') + frame(7, b'\0\0\0\0\0\0\0\1nonsense')
        moved = b'HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n'
        for name, answer, want in (
                ('wrong type', with_length(b'<html>hello', HEAD.replace(b'application/json', b'text/html\x1b; charset=x')), 'answers with text/html.*, not with JSON'),
                ('binary type', with_length(b'\x7fELF\0\0', HEAD.replace(b'application/json', b'application/octet-stream')), 'not with JSON'),
                ('redirect to a file', moved, 'the server answers 302'),
                ('redirect with a body', moved.replace(b'Length: 0', b'Length: %d' % len(EMPTY)) + EMPTY, 'the server answers 302'),
                ('cut JSON', with_length(EMPTY[:-20]), '(is not one of Prometheus|is not the history of an ibscope-exporter)'),
                ('cut transfer', with_length(EMPTY[:-20], more=20), 'transfer closed with 20 bytes remaining'),
                ('no answer', b'', 'Empty reply from server'),
                ('HTTP/2 at once', h2, 'HTTP/0.9'),
                ('HTTP/2 in a body', with_length(h2), '(is not one of Prometheus|is not the history of an ibscope-exporter)'),
                ('upgrade to HTTP/2', b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n' + h2, ''),
                ('status of HTTP/2', b'HTTP/2 200\r\ncontent-type: application/json\r\n\r\n' + h2, ''),
                ('HTTP/9', b'HTTP/9.9 200 OK\r\n\r\n', ''),
                ('no gzip', with_length(b'hello', HEAD + b'Content-Encoding: gzip\r\n'), ''),
                ('unknown encoding', with_length(b'hello', HEAD + b'Content-Encoding: rot13\r\n'), ''),
                ('length that is none', HEAD + b'Content-Length: -1\r\n\r\n' + EMPTY, ''),
                ('chunks that are none', HEAD + b'Transfer-Encoding: chunked\r\n\r\nxyz\r\n', ''),
                ('endless header', endless_head, '[Hh]eader')):
            with Server(answer) as server:
                for args in self.commands(server.url):
                    with self.subTest(name, args=args[:2]):
                        self.refused(args, server.url, want)
        # JSON is JSON, whatever a proxy calls it
        with Server(json_of_text) as server:
            for args in self.commands(server.url)[:2]:
                self.refused(args, server.url, 'no series of ibscope_load_miss_latency_cycles')

    def test_endless(self):
        """Neither a body without an end nor one that unpacks to 320 MiB takes more memory than the limit of an answer, and some."""
        packer = zlib.compressobj(1, wbits=31)
        packed = b''.join(packer.compress(bytes([32]) * MIB) for _ in range(320)) + packer.flush()
        bomb = with_length(packed, HEAD + b'Content-Encoding: gzip\r\n')
        for name, answer, at in ('endless', endless, 0), ('bomb', bomb, 3):
            with self.subTest(name), Server(answer) as server:
                self.refused(self.commands(server.url)[at], server.url, 'the answer is longer than 256 MiB; choose a shorter')
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 700)

    @unittest.skipUnless(shutil.which('cc'), 'no cc')
    def test_drip(self):
        """A server that sends a byte now and then for ever: the time of the whole request is limited, not that between bytes."""
        with tempfile.TemporaryDirectory(prefix='ibscope-servers.') as d:
            subprocess.run(['cc', '-shared', '-fPIC', '-o', d + '/shim.so', '-x', 'c', '-', '-ldl'], input=SHIM, text=True, check=True)
            env = {**os.environ, 'LD_PRELOAD': d + '/shim.so', 'SEEN': d + '/seen', 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}
            for answer in drip, drip_head:
                with Server(answer) as server:
                    commands = self.commands(server.url)[1:3]
                    programs = [subprocess.Popen([ibscope.IBSCOPE, *args], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                                for args in commands[:1 if answer is drip_head else 2]]
                    for p in programs:
                        out, err = p.communicate(timeout=60)
                        self.assertEqual((p.returncode, out), (1, ''), err)
                        self.assertRegex(err, rf'^ibscope: error: {server.url}\S*: .*timed out after 2\d\d\d milliseconds')
            with open(d + '/seen', encoding='ascii') as f:
                self.assertEqual({int(line) for line in f}, {60})


if __name__ == '__main__':
    unittest.main()
