# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exporter's history: it fills without readers, outlives the collector, and the page selects in it."""
import gzip
import json
import shutil
import signal
import unittest
import urllib.request

import browser
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
        if shutil.which('chromium'):
            self.dead_page(e)
        type(self).collector = test_exporter.collector(*self.ARGS)
        new = self.until(lambda: next((i for i in counted(self.history(e)['intervals'][len(after):]) if groups(i)), None))
        self.assertGreater(new['begin_s'], gap['begin_s'])

    def dead_page(self, e):
        """Opened after the death: the last minute that was sampled, not the totals since the start."""
        with browser.browse().page() as b:
            b.open(e.url + '/')
            b.until("document.querySelector('#time svg') !== null")
            # the collector counts as running for ten seconds after its last update
            b.until("!document.getElementById('state').textContent.includes('collecting')")
            note = b.js("document.getElementById('span').textContent")
            self.assertRegex(note, r'that were sampled, up to \d\d:\d\d:\d\d')
            samples = sum(i['ledger']['aggregated'] for i in counted(self.history(e)['intervals']))
            self.assertEqual(b.js("+document.querySelector('#rows tr.total').dataset.samples"), samples)
            self.assertIn('The history ends at', b.js("document.getElementById('band').textContent"))
            # what is selected of the menu is what is shown
            b.js("(e => { e.value = '0'; e.onchange(); })(document.getElementById('window'))")
            self.assertIn('Since the counters began.', b.js("document.getElementById('span').textContent"))
            self.assertGreater(b.js("+document.querySelector('#rows tr.total').dataset.samples"), samples)

    def total(self, b, e):
        """Samples of the selected range, as the page has them and as the endpoint has them."""
        begin, end = json.loads(b.js('JSON.stringify(range)'))
        inside = [i for i in counted(self.history(e)['intervals']) if begin <= i['begin_s'] and i['end_s'] <= end]
        self.assertEqual((inside[0]['begin_s'], inside[-1]['end_s']), (begin, end))
        self.assertEqual(b.js("+document.querySelector('#rows tr.total').dataset.samples"), sum(s[0] for i in inside for s in groups(i)))
        cycles = sum(s[2] * s[3] / s[0] for i in inside for s in groups(i))
        self.assertAlmostEqual(b.js("+document.querySelector('#rows tr.total').dataset.cycles") / cycles, 1, delta=1e-9)
        self.assertEqual(b.js("+document.querySelector('#fetch-rows tr.total').dataset.fetches"), sum(s[0] for i in inside for s in groups(i, 'fetches')))
        return len(inside)

    @test_exporter.needs('chromium')
    def test_select(self):
        """By dragging and by keys: all tables show the range, with the change against the time before."""
        e = self.exporter()
        self.until(lambda: len([i for i in counted(self.history(e)['intervals']) if groups(i)]) >= 6)
        with browser.browse().page() as b:
            b.open(e.url + '/')
            b.until("document.querySelector('#time svg') !== null && shown().length >= 6")
            x, y, width = json.loads(b.js("(r => JSON.stringify([r.x, r.y, r.width]))(document.querySelector('#time .hit').getBoundingClientRect())"))
            for kind, at in (('mousePressed', .55), ('mouseMoved', .7), ('mouseMoved', .9), ('mouseReleased', .9)):
                b.call('Input.dispatchMouseEvent', type=kind, x=x + width * at, y=y + 20, button='left', buttons=1, clickCount=1)
            b.until('range !== null && !dragging')
            self.assertGreater(self.total(b, e), 1)
            self.assertIn('Esc clears', b.js("document.getElementById('time-read').textContent"))
            self.assertIn('Change is against', b.js("document.getElementById('span').textContent"))
            self.assertRegex(b.js("document.querySelector('#rows tr.total td:nth-child(6)').textContent"), r'^(~|. [+\u2212](> )?\d+)$')
            self.assertTrue(b.js("document.getElementById('window').disabled"))
            b.key('Escape')
            b.until('range === null')
            b.tab_to("e.closest('#time') !== null")
            for _ in range(2):
                b.key('ArrowLeft')
            b.key('ArrowLeft', shift=True)
            b.key('ArrowLeft', shift=True)
            b.until('range !== null')
            self.assertEqual(self.total(b, e), 3)
            self.assertTrue(b.js("document.activeElement.closest('#time') !== null"))
            for width in 390, 1400:
                b.size(width, 900)
                b.until(f"innerWidth === {width} && document.querySelector('#time svg').getBoundingClientRect().width < {width}")
                self.assertLessEqual(b.js('document.documentElement.scrollWidth'), width)
        self.assertEqual(e.stop(), 0, e.said())


if __name__ == '__main__':
    unittest.main()
