# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a budget does in a collector, whatever else runs: its options, its states, its limits."""
import re
import time
import unittest

import clock
import test_governor
import test_serve
from ibscope import keep_busy, run, until
from test_governor import metrics, one, state


@unittest.skipUnless(test_governor.OK, f'no BPF here: {test_governor.WHY}')
class Governor(unittest.TestCase):
    setUp, collector = test_governor.Governor.setUp, test_governor.Governor.collector

    @clock.every(10000)
    def test_budget_that_cannot_be_held(self):
        keep_busy(self)
        # a sample a second and CPU at most, and each takes a ten-thousandth of it
        c = self.collector('-c', '10000', '--nmi-cost', '100us', '--max-overhead', '0.001%')
        c.wait('sampling stopped')
        c.wait('next try in 60 s')
        m = until(lambda: one(m := metrics(), 'ibscope_sampling_stopped') and m)
        self.assertEqual(state(m), ['stopped'])
        before = test_serve.snapshot()['ledger']['seen']
        time.sleep(1)   # in which nothing may come
        self.assertEqual(test_serve.snapshot()['ledger']['seen'], before)
        self.assertRegex(test_serve.ctl('status').stdout, r'governor: stopped \(budget\), next try in \d+ s')

    def test_changed_live(self):
        keep_busy(self)
        c = self.collector('--nmi-cost', '20us', '--max-overhead', '1%', '--verbose')
        c.wait('instead of 200000')
        until(lambda: one(metrics(), 'ibscope_sampling_period') > 400000)
        period = one(metrics(), 'ibscope_sampling_period')

        def change(word, states, of=lambda now: True):
            """Wait until it is in one of @states, with a period that satisfies @of."""
            p = test_serve.ctl('set', *word.split())
            self.assertEqual(p.returncode, 0, p.stderr)
            return until(lambda: state(m := metrics())[0] in states.split() and
                         of(one(m, 'ibscope_sampling_period')) and m)

        m = change('max-overhead=0.5%', 'backed_off', lambda now: now > 1.5 * period)
        self.assertEqual(one(m, 'ibscope_overhead_budget_ratio'), 0.005)
        change('max-overhead=off', 'off', lambda now: now == 200000)
        change('max-overhead=50%', 'at_rate', lambda now: now == 200000)
        change('period=400000', 'at_rate', lambda now: now == 400000)
        # a sample a second and CPU, at that cost, is five times the budget
        change('nmi-cost=100us max-overhead=0.001%', 'backed_off stopped')
        c.wait('sampling stopped')
        before = test_serve.snapshot()['ledger']['seen']
        change('max-overhead=50%', 'backed_off returning at_rate')
        until(lambda: test_serve.snapshot()['ledger']['seen'] > before)
        # what a sample costs is measured once, while nothing else is sampled
        for words, how in ((['max-overhead=40%'], 'changed while sampling'),
                           (['nmi-cost='], 'changed: sampling paused'),
                           (['max-overhead=50%'], 'changed while sampling')):
            self.assertTrue(test_serve.ctl('set', *words).stdout.startswith(how), words)
        before = test_serve.snapshot()['ledger']['seen']
        until(lambda: test_serve.snapshot()['ledger']['seen'] > before)

    def test_slow_program(self):
        keep_busy(self)
        c = self.collector('--max-bpf-time', '50ns', '--max-overhead', '50%')
        c.wait('--max-bpf-time')
        m = until(lambda: state(m := metrics()) == ['stopped'] and m)
        self.assertEqual(m['ibscope_governor_changes_total']['reason="bpf_slow"'], 1)

    def test_memory(self):
        c = self.collector('--max-rss', '16')
        self.assertEqual(c.p.wait(60), 1)
        self.assertIn('--max-rss', c.said())
        m = metrics()
        self.assertEqual(state(m), ['stopped'])
        self.assertEqual(m['ibscope_governor_changes_total']['reason="memory"'], 1)
        self.assertGreater(one(m, 'ibscope_samples_seen_total'), 0)

    def test_off(self):
        for rate in ('-c', '100000', '--max-overhead', 'off'), ('-F', '2000'):
            c = self.collector(rate=rate)
            # the first status comes after the first samples
            m = until(lambda: one(m := metrics(), 'ibscope_samples_seen_total') and
                      one(m, 'ibscope_collector_age_seconds') < 30 and
                      ('ibscope_sampling_period_asked' in m) == (rate[0] == '-c') and m)
            self.assertEqual(state(m), ['off'])
            self.assertNotIn('ibscope_overhead_budget_ratio', m)
            self.assertEqual('no budget: with -F' in c.said(), rate[0] == '-F')
            # known after a second
            until(lambda: re.search(r'(?m)^overhead: \d+\.\d+% of CPU time, not controlled;', test_serve.ctl('status').stdout))
            self.assertEqual(c.stop(), 0)

    def test_options(self):
        for args, said in ((('--max-overhead', '0.5'), '0.5%'), (('--max-overhead', '0%'), 'off'),
                           (('--max-overhead', '51%'), '50%'), (('--max-overhead', 'nan%'), 'share'),
                           (('--max-overhead', ''), 'share'), (('--max-overhead', '%'), 'share'),
                           (('--nmi-cost', '0'), 'auto'), (('--nmi-cost', '2ms'), 'auto'),
                           (('--nmi-cost', '1s'), 'auto'), (('--nmi-cost', '1us2'), 'auto'),
                           (('--nmi-cost', ''), 'auto'), (('--max-bpf-time', 'auto'), 'off'), (('--max-rss', '1'), '16M'),
                           (('--sim-event', 'x'), 'clock'),
                           (('-F', '100', '--max-overhead', '1%'), '-c')):
            p = run('serve', '--source', 'sim', '--config-check', *args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(said, p.stderr)
        for args in (('--max-overhead', '0.5%'), ('--max-overhead', 'off', '-F', '100'), ('-F', '100'),
                     ('--nmi-cost', '1500'), ('--nmi-cost', '1.5us'), ('--nmi-cost', '900ns'),
                     ('--nmi-cost', 'auto'), ('--max-rss', '64')):
            p = run('serve', '--source', 'sim', '--config-check', *args)
            self.assertEqual(p.returncode, 0, (args, p.stderr))


if __name__ == '__main__':
    unittest.main()
