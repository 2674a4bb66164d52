# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exporter's history: it fills without readers, outlives the collector, and the page selects in it."""
import gzip
import json
import signal
import unittest
import urllib.request

import test_exporter
from test_exporter import OK, WHY, not_loopback, samples

TLB, SOURCE = 6, ['samples', 'valid', 'sum', 'estimated', 'miss_cycles', 'buckets']


def counted(intervals):
    return [i for i in intervals if 'gap' not in i]


def groups(interval, event='sources'):
    """Members of the sources of all groups."""
    return [s for g in (interval if event == 'sources' else interval['fetch'])['groups'] for s in g[event].values()]


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class History(test_exporter.Collected):
    ARGS = ('-e', 'ibs_op//,ibs_fetch//', '--lease', '5s')

    def exporter(self, *args, **kw):
        return self.start(test_exporter.Exporter, '--history', '1m', '--history-interval', '1s', *args, **kw)

    def history(self, e, after=0):
        status, headers, text = e.get(f'/api/history.json?after={after}')
        self.assertEqual((status, headers['Content-Type']), (200, 'application/json'))
        self.assertEqual(int(headers['Content-Length']), len(text.encode()))
        d = json.loads(text)
        self.assertEqual((d['source_members'], len(d['tlb_members'])), (SOURCE, TLB))
        return d

    def test_fills_unread(self):
        """Nobody scrapes; each interval begins where the one before ended, and its groups add up to what was counted."""
        e = self.exporter(listen=':0')
        d = self.until(lambda: (d := self.history(e)) and len(counted(d['intervals'])) >= 4 and d)
        ids, last = set(), None
        for i in d['intervals']:
            self.assertEqual(i['begin_s'], last or i['begin_s'])
            last = i['end_s']
        for i in counted(d['intervals']):
            ids |= {n['id'] for n in i['names']}
            self.assertLessEqual({g['id'] for g in i['groups']} - {0}, ids)
            for event, of in ('sources', i), ('fetches', i['fetch']):
                self.assertEqual(sum(s[0] for s in groups(i, event)), of['ledger']['aggregated'])
                for s in groups(i, event):
                    self.assertEqual(sum(s[5][1::2]), s[1])
        self.assertTrue(any(map(groups, counted(d['intervals']))))
        self.assertLess(d['bytes'], d['bytes_limit'])
        self.assertEqual(samples(e.get()[2])['ibscope_exporter_scrapes_total'], 0)
        self.assertGreater(e.fresh()['ibscope_exporter_history_seconds'], 3)
        # the page asks for what it lacks
        number = d['intervals'][1]['number']
        rest = self.history(e, number)
        self.assertEqual((rest['after'], rest['opened_s']), (number, d['opened_s']))
        self.assertEqual(rest['intervals'][:2], d['intervals'][2:4])
        for url in not_loopback(e.port)[:1]:
            r = urllib.request.Request(url.replace('/metrics', '/api/history.json'), headers={'Accept-Encoding': 'gzip'})
            with urllib.request.urlopen(r, timeout=60) as a:
                self.assertEqual(a.headers['Content-Encoding'], 'gzip')
                again = json.loads(gzip.decompress(a.read()))
            self.assertEqual(again['intervals'][:4], d['intervals'][:4])
        self.assertEqual(e.stop(), 0, e.said())

    def test_off(self):
        e = self.start(test_exporter.Exporter, '--history', 'off')
        d = self.history(e)
        self.assertEqual((d['length_s'], d['intervals']), (0, []))
        self.assertEqual(samples(e.get()[2])['ibscope_exporter_history_bytes'], 0)

    def test_outlives_the_collector(self):
        """After SIGKILL all of it is there; when sampling ends there is a gap, not zeros; and then it goes on."""
        e = self.exporter()
        before = self.until(lambda: (d := counted(self.history(e)['intervals'])) and any(map(groups, d)) and len(d) > 2 and d)
        type(self).collector.stop(signal.SIGKILL)
        gap = self.until(lambda: 'gap' in (i := self.history(e)['intervals'][-1]) and i)
        self.assertEqual(gap['gap'], 'the collector is not running')
        after = self.history(e)['intervals']
        self.assertEqual(counted(after)[:len(before)], before)
        type(self).collector = test_exporter.collector(*self.ARGS)
        new = self.until(lambda: next((i for i in counted(self.history(e)['intervals'][len(after):]) if groups(i)), None))
        self.assertGreater(new['begin_s'], gap['begin_s'])


if __name__ == '__main__':
    unittest.main()
