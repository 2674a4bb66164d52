#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make.py BUILD [DIR]: the README's pictures, of a simulated machine (tests/unit/make_shop).

table.txt and table.svg are what `hist` prints, report.png and page.png what a browser shows of
`report --html` and of the exporter. Needs chromium. Every picture says SIMULATED.
"""
import collections
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

SAMPLES = 100000
READINGS, EVERY_S = 120, 5      # of the exporter: ten minutes
LIMIT = 150 * 1024              # bytes of a picture
START_S = 1766318400


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, 'COLUMNS': '104'}).stdout.decode()


def readings(samples):
    """The responses of /api/snapshot.json for all readings, from samples sorted by time."""
    groups, begin = {}, samples[0]['time_ns']
    length = samples[-1]['time_ns'] - begin + 1
    at = 0
    for i in range(READINGS):
        while at < len(samples) and (samples[at]['time_ns'] - begin) * READINGS <= length * (i + 1):
            s = samples[at]
            at += 1
            labels, sources = groups.setdefault(s['cgroup'], (s['labels'], {}))
            src = sources.setdefault(s['src'], collections.Counter())
            src['samples'] += 1
            if s['dc_miss_lat'] is not None:
                src['valid'] += 1
                src['sum'] += s['dc_miss_lat']
                src[le(s['dc_miss_lat'])] += 1
        containers = [{**labels, 'tlb': dict.fromkeys(('l2_hit', 'l2_miss', 'l2_hit_ops', 'l2_miss_ops', 'refills', 'refill_cycles'), 0),
                       'sources': {name: {'samples': c['samples'], 'valid': c['valid'], 'sum': c['sum'], 'estimated_ops': c['samples'] * 10 ** 7,
                                          'buckets': sorted((k, n) for k, n in c.items() if isinstance(k, int))}
                                   for name, c in sources.items()}} for labels, sources in groups.values()]
        yield {'collector': True, 'alive': True, 'simulated': True, 'host': 'db-host-07', 'version': '', 'time_s': 1000 + i * EVERY_S,
               'start_s': START_S, 'event': 'ibs_op/cnt_ctl=1/', 'metric': 'dc_miss_lat', 'period': 10 ** 7, 'cpus': 96, 'pid': 1, 'starts': 1,
               'groups': len(containers), 'groups_limit': 1023, 'map_bytes': 57 << 20, 'rss_bytes': 21 << 20, 'running_s': 1, 'enabled_s': 1,
               'throttled': 0, 'waiting_for': '', 'selection': '', 'live': '', 'governor': {'state': 'at_rate', 'overhead': .0021, 'budget': .005},
               'ledger': {'seen': at, 'aggregated': at, 'forwarded': 0, 'filtered': {}, 'lost': {}, 'unseen': 0}, 'containers': containers}


def le(v):
    """The upper edge of the bucket of a latency."""
    if v <= 16:
        return v
    step = 1 << (v - 1).bit_length() - 4
    return -(-v // step) * step


def samples_of(ibscope, file):
    names, out = {}, []
    for line in run(ibscope, 'dump', '--json', '--events', file).splitlines():
        e = json.loads(line)
        if e['type'] == 'cgroup':
            names[e['path']] = {'cgroup': e['path'], **({'container': e['container'], 'pod': e['pod'], 'namespace': e['namespace']} if e.get('pod') else {})}
        elif e['type'] == 'ibs_op':
            out.append({**{k: e.get(k) for k in ('time_ns', 'cgroup', 'src', 'dc_miss_lat')}, 'labels': names[e['cgroup']]})
    return out


class Exporter(http.server.ThreadingHTTPServer):
    """The exporter's page, with readings five seconds apart."""
    def __init__(self, page, snapshots):
        super().__init__(('127.0.0.1', 0), self.Handler)
        self.page, self.snapshots, self.last = page, iter(snapshots), None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if 'snapshot' in self.path:
                self.server.last = next(self.server.snapshots, self.server.last)
            self.send_response(404 if 'history' in self.path else 200)    # as without --history: the page keeps what it reads
            self.end_headers()
            self.wfile.write(json.dumps(self.server.last).encode() if 'snapshot' in self.path else self.server.page)

        def log_message(self, *args):
            pass


def screenshot(url, path, width, height, *options):
    with tempfile.TemporaryDirectory() as home:
        subprocess.run(['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
                        '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
                        f'--virtual-time-budget={(READINGS + 2) * EVERY_S * 1000}', f'--user-data-dir={home}', f'--screenshot={path}',
                        f'--window-size={width},{height}', *options, url], check=True, stderr=subprocess.DEVNULL, timeout=300)
    shrink(path)


def pixels(png):
    """Width, height and rows of RGB triples of a PNG as Chromium writes them."""
    at, data = 8, b''
    while at < len(png):
        size, kind = struct.unpack('>I4s', png[at:at + 8])
        if kind == b'IHDR':
            width, height, depth, color = struct.unpack('>IIBB', png[at + 8:at + 18])
        elif kind == b'IDAT':
            data += png[at + 8:at + 8 + size]
        at += 12 + size
    n, data, rows = {2: 3, 6: 4}[color], zlib.decompress(data), []
    assert depth == 8
    line = bytes(width * n)
    for y in range(height):
        how, cur = data[y * (width * n + 1)], bytearray(data[y * (width * n + 1) + 1:(y + 1) * (width * n + 1)])
        for i in range(len(cur)) if how else ():
            a, b, c = cur[i - n] if i >= n else 0, line[i], line[i - n] if i >= n else 0
            if how == 4:
                p = a + b - c
                pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
                pick = a if pa <= pb and pa <= pc else b if pb <= pc else c
            else:
                pick = (0, a, b, (a + b) // 2)[how]
            cur[i] = cur[i] + pick & 255
        line = bytes(cur)
        rows.append([line[i:i + 3] for i in range(0, len(line), n)])
    return width, height, rows


FREQUENT, PATCH = 160, 40   # colours; pixels of a mark in a legend


def apart(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def shrink(path):
    """Reduce the picture to 256 colours, replacing others by the nearest: frequent ones, and those least like these."""
    with open(path, 'rb') as f:
        width, height, rows = pixels(f.read())
    colors = collections.Counter(p for row in rows for p in row)
    palette = [c for c, _ in colors.most_common(FREQUENT)]
    away = {c: min(apart(c, p) for p in palette) for c, n in colors.items() if n >= PATCH}
    while away and len(palette) < 256:
        palette.append(max(away, key=away.get))
        away = {c: min(d, apart(c, palette[-1])) for c, d in away.items()}
    nearest = {c: min(range(len(palette)), key=lambda i: apart(c, palette[i])) for c in colors}
    data = b''.join(b'\0' + bytes(nearest[p] for p in row) for row in rows)

    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 3, 0, 0, 0)) +
                chunk(b'PLTE', b''.join(palette)) + chunk(b'IDAT', zlib.compress(data, 9)) + chunk(b'IEND', b''))


def terminal(text, path):
    """Text as a terminal shows it: an SVG with one element per line."""
    lines = text.rstrip('\n').split('\n')
    width, height = max(map(len, lines)) * 8 + 32, len(lines) * 18 + 28

    def line(i, t):
        t = t.replace('&', '&amp;').replace('<', '&lt;')
        bold = ' font-weight="bold"' if t.startswith(('CONTAINER', 'total', '$')) else ''
        return f'<text x="16" y="{28 + 18 * i}"{bold} textLength="{len(lines[i]) * 8}" xml:space="preserve">{t}</text>' if t else ''
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="13" fill="#e6e9ed">'
                f'<rect width="{width}" height="{height}" rx="6" fill="#12151a"/>' + '\n'.join(line(i, t) for i, t in enumerate(lines)) + '</svg>\n')


def main():
    build = os.path.abspath(sys.argv[1])
    out = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(__file__))
    ibscope = os.path.join(build, 'ibscope')
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)    # the pictures show file names
        file, page = 'shop.ibscope', 'report.html'
        subprocess.run([os.path.join(build, 'tests', 'unit', 'make_shop'), file, str(SAMPLES)], check=True)
        text = '$ ibscope replay shop.ibscope\n' + run(ibscope, 'replay', file).split('\nwhile recording')[0] + '\n'
        with open(os.path.join(out, 'table.txt'), 'w', encoding='utf-8') as f:
            f.write(text)
        terminal(text, os.path.join(out, 'table.svg'))
        run(ibscope, 'report', file, '--html', page)
        screenshot(f'file://{d}/{page}', os.path.join(out, 'report.png'), 1400, 900)
        with open(os.path.join(build, 'web_page.html'), 'rb') as f:
            exporter = Exporter(f.read(), readings(samples_of(ibscope, file)))
        screenshot(f'http://127.0.0.1:{exporter.server_port}/', os.path.join(out, 'page.png'), 1400, 760)
        exporter.shutdown()
        os.chdir('/')
    for name in 'table.txt', 'table.svg', 'report.png', 'page.png':
        size = os.path.getsize(os.path.join(out, name))
        print(f'{name}: {size / 1024:.0f} KiB')
        assert size < LIMIT, f'{name} is larger than {LIMIT} bytes'


if __name__ == '__main__':
    main()
