#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a fleet costs: arithmetic from what the real exporter exports, and a simulation with a real Prometheus.

    fleet.py table                  series, bytes and samples a second, as in tools/prometheus/FLEET.md
    fleet.py simulate [--prometheus PROGRAM] [--native] [--hosts 200] [--containers 30] [--seconds 60]

One exporter, of counters that grow, is scraped as many hosts. Prometheus 3 has native histograms: see
tests/system/prometheus3.sh. As root, after `make all tests`.
"""
import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get('IBSCOPE_BUILD', ROOT + '/build'))
EXPORTER = os.path.join(BUILD, 'ibscope-exporter')
FILL = os.path.join(BUILD, 'tests/unit/fill_pins')
DETAILS = ('low', 'medium', 'full')
INTERVAL_S = 30     # of scrapes
HOSTS, CONTAINERS = 10_000, 30


@contextlib.contextmanager
def filled(groups, *args):
    """A directory of pins that look as if a collector counted."""
    d = f'/sys/fs/bpf/ibscope-fleet-{os.getpid()}'
    p = subprocess.Popen([FILL, d, str(groups), *args], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline()
        yield d
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait()
        p.stdout.close()


def exported(pin_dir, *args):
    return subprocess.run([EXPORTER, '--pin-dir', pin_dir, '--once', *args], capture_output=True, text=True, check=True).stdout


def lines(text):
    return [x for x in text.splitlines() if not x.startswith('#')]


def per_group(small, large, more):
    """Of two texts, where the second has so many groups more: series of a group and of the rest, bytes of a group."""
    a, b = lines(small), lines(large)
    group = round((len(b) - len(a)) / more)
    return group, len(a) - group, (len(large) - len(small)) / more


def arithmetic():
    """By detail and form of histograms: series of a group and of the rest, bytes of a group in a scrape."""
    out = {}
    texts = {}
    for groups in (1, 51):
        with filled(groups) as d:
            for detail in DETAILS:
                for form in ('text', 'openmetrics2'):
                    texts[groups, detail, form] = exported(d, '--detail', detail, '--format', form)
    for detail in DETAILS:
        for form in ('text', 'openmetrics2'):
            out[detail, form] = per_group(texts[1, detail, form], texts[51, detail, form], 50)
    return out


def table(rows):
    head = ('--detail', 'histograms', 'series a container', 'series a host', f'series of {HOSTS:,} hosts', 'samples a second',
            'KB a scrape', 'MB/s of scrapes')
    out = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    for (detail, form), (group, rest, _) in rows.items():
        # a scrape is in the classic form, whatever Prometheus makes of it
        scraped, scraped_rest, size = rows[detail, 'text']
        host = rest + CONTAINERS * group
        kb = size * CONTAINERS / 1e3 + scraped_rest * 0.12
        out.append(f'| {detail} | {"classic" if form == "text" else "native"} | {group} | {host:,} | {host * HOSTS / 1e6:.1f} M '
                   f'| {host * HOSTS / INTERVAL_S:,.0f} | {kb:,.0f} | {kb * HOSTS / INTERVAL_S / 1e3:,.0f} |')
    return '\n'.join(out)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def metrics(port):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=30) as a:
        text = a.read().decode()
    return {k: float(v) for k, v in (x.rsplit(' ', 1) for x in lines(text)) if '{' not in k}


def results(port, q):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/query?' + urllib.parse.urlencode({'query': q}), timeout=60) as a:
        return json.load(a)['data']['result']


def query(port, q):
    got = results(port, q)
    return float(got[0]['value'][1]) if got else 0


def wait_for(what, seconds=120):
    end = time.time() + seconds
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, IndexError):
            if got := what():
                return got
        if time.time() > end:
            raise SystemExit(f'fleet.py: nothing after {seconds} s')
        time.sleep(0.2)


def config(directory, hosts, exporter, native, interval):
    """One target under many names: their labels make them targets of their own."""
    with open(directory + '/rules.yml', 'w') as f, open(ROOT + '/tools/prometheus/rules.yml') as rules:
        f.write(rules.read())
    with open(directory + '/p.yml', 'w') as f:
        f.write(f'global: {{scrape_interval: {interval}s, evaluation_interval: {interval}s}}\nrule_files: [rules.yml]\n'
                'scrape_configs:\n- job_name: ibscope\n  honor_labels: true\n'
                + ('  convert_classic_histograms_to_nhcb: true\n' if native else '') + '  static_configs:\n')
        for i in range(hosts):
            f.write(f'  - {{targets: ["127.0.0.1:{exporter}"], labels: {{instance: "host{i}"}}}}\n')


def simulate(o):
    with filled(o.containers, str(o.containers + 2), 'grow') as d, tempfile.TemporaryDirectory() as t:
        exporter, port = free_port(), free_port()
        config(t, o.hosts, exporter, o.native, o.interval)
        quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        e = subprocess.Popen([EXPORTER, '--pin-dir', d, '--web.listen-address', f'127.0.0.1:{exporter}'], **quiet)
        p = subprocess.Popen([o.prometheus, f'--config.file={t}/p.yml', f'--storage.tsdb.path={t}/data',
                              f'--web.listen-address=127.0.0.1:{port}',
                              *(['--enable-feature=native-histograms'] if o.native else [])], **quiet)
        try:
            wait_for(lambda: query(port, 'count(up == 1)') == o.hosts, 60 + 4 * o.interval)
            before, began = metrics(port), time.time()
            time.sleep(o.seconds)
            after, length = metrics(port), time.time() - began
            missed = o.hosts - query(port, f'count(min_over_time(up[{o.seconds}s]) == 1)')
            scraped = query(port, 'sum(scrape_samples_scraped)')
            slowest = query(port, 'max(scrape_duration_seconds)')
            wal = sum(os.path.getsize(os.path.join(x, n)) for x, _, names in os.walk(t + '/data/wal') for n in names)
        finally:
            for x in (p, e):
                x.terminate()
                x.wait()

    def change(name):
        return (after[name] - before[name]) / length
    series = after['prometheus_tsdb_head_series']
    rules = len(re.findall(r'- record:', open(ROOT + '/tools/prometheus/rules.yml').read()))
    appended = sum(v - before[k] for k, v in after.items() if k.startswith('prometheus_tsdb_head_samples_appended_total')) / length
    print(f'{o.hosts} hosts with {o.containers} containers each, a scrape every {o.interval} s, {rules} recording rules, '
          f'{"native" if o.native else "classic"} histograms, {length:.0f} s')
    print(f'series {series:,.0f}; scraped {scraped:,.0f} values a round; CPU {change("process_cpu_seconds_total"):.2f} of one; '
          f'resident {after["process_resident_memory_bytes"] / 2**20:,.0f} MiB '
          f'({after["process_resident_memory_bytes"] / series / 1024:.1f} KiB a series); '
          f'WAL {wal / 2**20:.0f} MiB; slowest scrape {slowest * 1000:.0f} ms; targets that missed a scrape {missed:.0f}'
          + (f'; appended {appended:,.0f}/s' if appended else ''))
    return missed


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('what', choices=('table', 'simulate'))
    a.add_argument('--prometheus', default='prometheus')
    a.add_argument('--native', action='store_true')
    a.add_argument('--hosts', type=int, default=200)
    a.add_argument('--containers', type=int, default=CONTAINERS)
    a.add_argument('--seconds', type=int, default=60)
    a.add_argument('--interval', type=int, default=15)
    o = a.parse_args()
    if o.what == 'table':
        print(table(arithmetic()))
        return 0
    return 1 if simulate(o) else 0


if __name__ == '__main__':
    raise SystemExit(main())
