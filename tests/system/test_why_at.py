# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ibscope why --at: of the history of an exporter in which one cause changes, and of one that has nothing of that time."""
import json
import os
import re
import tempfile
import time
import unittest

import schemas
from ibscope import run
from test_diff_history import Server, history

CHANGE = {'dram': (40, 768)}
ROUTE = {'COLUMNS': '80', 'LC_ALL': 'C.UTF-8'}


class At(Server):
    """Five minutes as usual, and five in which db waits twice as long for DRAM."""

    def serve(self, *parts, **head):
        self.server.answer = 200, json.dumps(history(*parts, **head)).encode()

    def why(self, ago, *args, status=0):
        p = run('why', '--exporter', self.url, '--at', f'-{ago}s', *args, env={**os.environ, **ROUTE})
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        self.assertEqual(bool(p.stderr), bool(status), p.stderr)
        return p.stderr if status else p.stdout

    def test_changed(self):
        self.serve({}, CHANGE)
        for args in [], ['db'], ['db-1/db']:    # by itself the one that waits most
            out = self.why(300, *args)
            self.assertEqual(out.splitlines()[0], 'db-1/db')
            self.assertLessEqual(len(out.splitlines()), 12, out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
            # of a thousand accesses 40 wait 384 or 768 cycles, 60 wait 64 and 20 wait 704: 33.3 or 48.6 each
            change = re.search(r'Miss cycles per thousand ops: .*, \+([\d.]+) % ± ([\d.]+) %', out)
            self.assertAlmostEqual(float(change[1]), 46, delta=1.5 * float(change[2]))
            self.assertLess(float(change[2]), 20)
            self.assertRegex(out, r'\+\d+ points  dram answered more slowly \(mean 384 → 768 cycles\)')
            self.assertIn('DRAM answers more slowly when', out)
            share = re.search(r'Its share of all miss cycles: ([\d.]+)% then, ([\d.]+)% before', out)
            self.assertAlmostEqual(float(share[1]), 59.3, delta=2)
            self.assertAlmostEqual(float(share[2]), 50, delta=2)
            # 12 intervals of the change and the 30 before it
            self.assertRegex(out, r'Then: (2m|120s|2min) from 20\S+Z, 12,000 samples; before: \S+, \d\d,000 samples')
            self.assertIn('Others: no other container waited more', out)

    def test_other_container(self):
        self.serve({}, CHANGE)
        out = self.why(300, 'web')
        self.assertIn('No difference that is more than noise', out)
        self.assertNotIn('points', out)
        self.assertRegex(out, r'Others: db-1/db waited more, too: (59|6\d)(\.\d)?% then, (49|5\d)(\.\d)?% before')

    def test_nothing_changed(self):
        self.serve({}, {})
        out = self.why(300)
        self.assertIn('No difference that is more than noise', out)
        self.assertIn('would have been seen', out)

    def test_namespaces(self):
        """Only the container that is meant is compared, though another has the same pod and name."""
        h = history({}, CHANGE)
        names = h['intervals'][0]['names']
        for name, space in zip(names, ('stage', 'shop')):
            name.update(namespace=space, pod='p', container='c')
        self.server.answer = 200, json.dumps(h).encode()
        self.assertIn("several containers are called 'p/c'", self.why(300, 'p/c', status=1))
        self.assertIn('dram answered more slowly', self.why(300, 'shop/p/c'))
        self.assertIn('more than noise', self.why(300, 'stage/p/c'))
        # of groups outside containers there is the path of the cgroup
        names[0].update(namespace='', pod='', container='', cgroup='/system.slice/web.service')
        self.server.answer = 200, json.dumps(h).encode()
        out = self.why(300, '/system.slice/web.service')
        self.assertEqual(out.splitlines()[0], '/system.slice/web.service')
        self.assertIn('more than noise', out)

    def test_json(self):
        self.serve({}, CHANGE)
        d = json.loads(self.why(300, 'db', '--json'))
        if schemas.jsonschema:
            schemas.Schemas().check('diff', d)
        self.assertEqual([(c['cause'], c['kind']) for c in d['causes'] if c['change']['finding']], [('dram', 'slower')])
        self.assertEqual(d['b']['samples'], 12000)
        self.assertRegex(d['a']['selection'] + d['b']['selection'], r'^db-1/db before (20\S+Z)db-1/db from \1$')
        d = json.loads(self.why(300, 'db', '--json', '--duration', '4m'))
        self.assertEqual(d['b']['samples'], 24000)

    def test_without_periods(self):
        h = history({}, CHANGE)
        h['intervals'][40]['groups'][1]['sources']['dram'][4] = None
        self.server.answer = 200, json.dumps(h).encode()
        self.assertIn('dram answered more slowly', self.why(300, 'db'))

    def test_no_such_container(self):
        self.serve({}, {})
        self.assertRegex(self.why(300, 'dbb', status=1), r"nothing of 'dbb' around 20\S+Z; did you mean 'db'\?; `ibscope diff --exporter` shows all")
        self.assertIn("nothing of ''", self.why(300, '', status=1))

    def test_no_such_time(self):
        """What span is kept, and what would have kept that time; a recording is named even so."""
        self.serve({})
        self.assertRegex(self.why(7200, status=1), r'0 intervals before the time of --at, at least 8 are needed: choose a longer --duration, or another time; '
                         r'there are intervals from 20\S+Z to 20\S+Z, and a longer --history of the exporter keeps more')
        self.assertRegex(self.why(20, status=1), r': [1-3] intervals from the time of --at on, at least 8')
        self.serve(length_s=0)
        self.assertIn('start it with --history 1h', self.why(7200, status=1))
        self.server.answer = 404, b''
        self.assertIn('what has passed is kept by an ibscope-exporter that ran then', self.why(7200, status=1))
        self.server.answer = 200, b'{"intervals": 3'
        self.assertIn('is not the history of an ibscope-exporter', self.why(7200, status=1))

    def test_recording(self):
        self.serve({}, CHANGE)
        with tempfile.TemporaryDirectory() as d:
            def stamp(ago):
                return os.path.join(d, time.strftime('flight-%Y%m%dT%H%M%S.000Z.data', time.gmtime(time.time() - ago)))
            for ago in 330, 100:    # before it, and long after it
                open(stamp(ago), 'w').close()
            open(os.path.join(d, 'flight-.data'), 'w').close()
            self.assertNotIn('recording', self.why(300, '--flight-dir', d))
            for ago in 270, 250:
                open(stamp(ago), 'w').close()
            names = sorted(os.listdir(d))
            out = self.why(300, '--flight-dir', d)
            self.assertIn(f'Flight recording of then: {d}/{names[2]}\n', out)
            self.server.answer = 404, b''
            self.assertIn(f'there is a flight recording of then: {d}/{names[2]}', self.why(300, '--flight-dir', d, status=1))
        self.serve({}, CHANGE)
        self.assertNotIn('recording', self.why(300, '--flight-dir', d))     # none


if __name__ == '__main__':
    unittest.main()
