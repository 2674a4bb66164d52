# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON of running samplers, against tools/schemas."""
import http.server
import json
import os
import tempfile
import threading
import unittest

import ibscope
import schemas
import test_exporter
from ibscope import Busy, Collector, run, until

OK, WHY = ibscope.can_bpf()
PINS = f'/sys/fs/bpf/ibscope-schemas-{os.getpid()}'
TWO = ('-e', 'ibs_op/cnt_ctl=1/,ibs_fetch//')


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server of profiles that wants none."""
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_error(500)

    def log_message(self, *args):
        pass


@schemas.needed
@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = schemas.Schemas()

    def setUp(self):
        busy = Busy(0)
        self.addCleanup(busy.stop)

    def check(self, schema, *args, statuses=(0,)):
        p = run(*args, '--json')
        self.assertIn(p.returncode, statuses, f'{args}: {p.stderr}')
        values = self.schemas.check_text(schema, p.stdout)
        self.assertTrue(values, f'{args}: {p.stderr}')
        return values

    def strict(self, *names, lack=()):
        """These schemas describe nothing that was not seen, but for what is said, and accept no other members."""
        self.assertEqual(self.schemas.unseen(*names) - set(lack), set())
        for name in set(names) & set(self.schemas.schema):
            with self.subTest(name):
                self.assertEqual(self.schemas.lax(name), [])

    def collector(self, *args, least=100):
        c = Collector(PINS, '-c', '300000', *args)
        self.addCleanup(lambda: (c.stop(), run('serve', '--unpin', '--pin-dir', PINS)))
        until(lambda: json.loads(run('ctl', 'status', '--json', '--pin-dir', PINS).stdout)['ledger']['seen'] > least)
        return c

    def test_hist(self):
        sim = ('--source', 'sim', '0.3', '2')
        for args in ((), ('--by', 'container,pid,comm,cpu,node,mem_node,distance,mode,src,op'), ('--min-lat', '100'), (*TWO, '-c', '300000,300000'),
                     ('-e', 'ibs_fetch//'), ('--metric', 'tlb_refill_lat'), ('--cgroup', '/')):
            self.check('hist', 'hist', *args, *sim)
        self.check('hist', 'numa', '--live', '--source', 'sim', '0.3', '1')
        # those of files of top, of open requests, and of a collector
        self.strict('hist', lack={'hist: ' + name for name in ('end', 'counted_since', 'recorded', 'whole', 'lost', 'ledger', 'samples', 'sum')} | schemas.STRATA)

    def test_record(self):
        p = run('record', '--source', 'sim', '--json', '-o', '-', '--', 'sleep', '0.3')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(self.schemas.check_text('dump', p.stdout))

    def test_lines(self):
        text = run('c2c', '--live', '--source', 'sim', '--sim-ops', 'random', '-F', '5000', '--json', '0.5', '2').stdout
        decoder, n = json.JSONDecoder(), 0
        while text:
            value, at = decoder.raw_decode(text)
            self.schemas.check('c2c', value)
            text, n = text[at:].lstrip(), n + 1
        self.assertEqual(n, 2)
        self.assertFalse({x for x in self.schemas.unseen('c2c') if x.split(': ')[1] in ('hot', 'feed', 'fed', 'kept', 'lack', 'replaced')})
        self.assertEqual(self.schemas.lax('c2c'), [])

    def test_collector(self):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Refusing)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with tempfile.TemporaryDirectory() as d:
            control = d + '/socket'
            c = self.collector('--control', control, *ibscope.NOT_DEAR, '--push', f'http://127.0.0.1:{server.server_port}/', '--push-interval', '1s',
                               '--push-duration', '0.3s')
            # the collector itself says more than its pins
            until(lambda: self.check('ctl-status', 'ctl', 'status', '--control', control)[0]['push']['failure'])
            for at in ('--pin-dir', PINS), ('--control', control):
                for verb in 'status', 'ledger':
                    self.check('ctl-' + verb, 'ctl', verb, *at)
            c.stop()
            self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS, statuses=(0, 1))
            self.assertEqual(run('ctl', 'unpin', '--pin-dir', PINS).returncode, 0)
            both = self.collector(*TWO)
            self.assertIn('fetch', self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS)[0])
            self.assertEqual(len(self.check('ctl-ledger', 'ctl', 'ledger', '--pin-dir', PINS)), 2)
            for args in ((), ('-e', 'ibs_fetch'), ('--by', 'container')):
                self.check('hist', 'ctl', 'snapshot', '--pin-dir', PINS, *args)
            self.assertEqual(both.stop(), 0)
            # a busy machine does not stop it
            c = self.collector('--strata', 'on', '--max-overhead', 'off', '--max-bpf-time', 'off', '--unpin')
            self.assertTrue(self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS)[0]['strata']['on'])
            self.check('hist', 'ctl', 'snapshot', '--pin-dir', PINS, '--by', 'src')
            c.stop()
            self.collector('--flight', '60s', '--by', 'container,ccx', '--unpin')
            # pinned in the first turn of its loop, which may come after it said that it collects
            flight = until(lambda: self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS)[0].get('flight'))
            self.assertEqual(flight, {'written': 0, 'failed': 0, 'skipped': 0})
            until(lambda: 'neighbours' in self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS)[0])
        self.strict('ctl-status', 'ctl-ledger', 'collector', 'served_stratum', 'push', 'governor', lack={'governor: retry_s'})

    def test_stopped(self):
        """A governor that stopped sampling says when it tries again."""
        self.collector('--nmi-cost', '100us', '--max-overhead', '0.001%', least=0)
        until(lambda: 'retry_s' in self.check('ctl-status', 'ctl', 'status', '--pin-dir', PINS)[0]['governor'])

    def exporter(self, *args):
        """Return: a function that gets and checks one of its documents."""
        e = test_exporter.Exporter('--history', '10m', '--history-interval', '1s', *args, pin_dir=PINS)
        self.addCleanup(e.stop)

        def get(name):
            status, _, text = e.get(f'/api/{name}.json')
            self.assertEqual(status, 200)
            return self.schemas.check_text('exporter-' + name, text)[0]
        return get

    def test_exporter(self):
        get = self.exporter()
        self.assertEqual((get('snapshot')['collector'], get('history')['intervals']), (False, []))
        c = self.collector(*TWO, '--by', 'cgroup,src,comm')
        until(lambda: len(get('history')['intervals']) > 2)
        self.assertTrue(get('snapshot')['containers'])
        c.stop()
        self.assertEqual(run('ctl', 'unpin', '--pin-dir', PINS).returncode, 0)
        until(lambda: 'gap' in get('history')['intervals'][-1])
        # of counters that cannot be read, and of a gap that has ended
        self.strict('exporter-snapshot', 'exporter-history', lack={'exporter-snapshot: why', 'exporter-history: number'})

    def test_doctor(self):
        self.check('doctor', 'doctor', statuses=(0, 1))
        self.check('doctor-cost', 'doctor', '--cost')
        self.strict('doctor', 'doctor-cost')


if __name__ == '__main__':
    unittest.main()
