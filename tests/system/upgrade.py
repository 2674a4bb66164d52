# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counters across an upgrade and a downgrade between this build and the release before it.

`make upgrade` builds that release (RELEASE, a commit) and runs this. Collectors of both take turns under load,
ended by TERM and by KILL, while an exporter of each build is scraped: no counter falls, except with a new start
of the counters. If the schema of the pins changed in between, this build reads and resumes both, and the one before
starts from zero and says so; its readers refuse what they do not know.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from ibscope import BUILD, Busy, Cgroup, can_bpf, log_file, read_log, residual, until

OK, WHY = can_bpf()
BEFORE = os.environ.get('IBSCOPE_BEFORE', '')
DIR = '/sys/fs/bpf/ibscope-upgrade-%d' % os.getpid()
SOCKET = '/run/ibscope-upgrade-%d/control.sock' % os.getpid()
START = 'ibscope_counters_start_time_seconds'
COUNTER = re.compile(r'^(ibscope_\w+(?:_total|_bucket|_count|_sum)(?:\{[^}]*\})?) (\S+)$', re.M)


REFUSED = 'do not match: install the same version of both'


def call(build, program, *args):
    return subprocess.run([os.path.join(build, program), *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def schema(build):
    """The minor version is that of the pins."""
    return int(re.search(r'0\.(\d+)\.', call(build, 'ibscope', '--version').stdout)[1])


class Scraper(threading.Thread):
    """Scrapes with the exporter of one build until stop(); `falls` has what it saw fall."""

    def __init__(self, build):
        super().__init__(daemon=True)
        self.build, self.falls, self.scrapes, self.failed, self.refused = build, [], 0, [], 0
        self.last, self.start_time = {}, None
        self.anew = False
        self.done = threading.Event()
        self.start()

    def run(self):
        while not self.done.wait(0.3):
            p = call(self.build, 'ibscope-exporter', '--once', '--pin-dir', DIR)
            found = dict(COUNTER.findall(p.stdout))
            if not found and REFUSED in p.stdout + p.stderr:
                self.refused += 1
                continue
            # one that starts from zero removes the pins before it makes its own
            if not found and self.anew and 'no collector has pinned its maps' in p.stderr:
                continue
            if not found:
                self.failed.append(p.stdout[:200] + p.stderr)
                continue
            start = re.search(rf'^{START} (\S+)$', p.stdout, re.M)[1]
            if start == self.start_time:
                self.falls += [(k, v, found[k]) for k, v in self.last.items()
                               if not k.startswith(('ibscope_exporter', 'ibscope_scrape')) and
                               float(found.get(k, 'nan')) < float(v)]
                # "#ID" labels a group until it has a name
                self.falls += [(k, v, 'gone') for k, v in self.last.items()
                               if k.startswith('ibscope_samples') and '"#' not in k and k not in found]
            self.last, self.start_time = found, start
            self.scrapes += 1

    def stop(self):
        self.done.set()
        self.join()


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
class Upgrade(unittest.TestCase):
    def setUp(self):
        self.assertTrue(BEFORE, 'IBSCOPE_BEFORE: the directory of the build before this; run `make upgrade`')
        self.cgroup = Cgroup(f'ibscope-upgrade-{os.getpid()}')
        self.addCleanup(self.cgroup.remove)
        for cpu in sorted(os.sched_getaffinity(0))[:2]:
            self.addCleanup(Busy(cpu, self.cgroup, share=0.3).stop)
        self.addCleanup(self.unpin)

    def serve(self, build, text):
        """A collector that has said this."""
        err = log_file()
        self.addCleanup(err.close)
        c = subprocess.Popen([os.path.join(build, 'ibscope'), 'serve', '--source', 'sim', '-c', '200000', '--pin-dir', DIR,
                              '--control', SOCKET, '--max-bpf-time', 'off', '--by', 'cgroup'], stderr=err, stdin=subprocess.DEVNULL)
        self.addCleanup(c.wait)
        self.addCleanup(c.kill)

        def said():
            self.assertIsNone(c.poll(), read_log(err))
            return text in read_log(err)
        until(said)
        return c

    def unpin(self):
        p = call(BUILD, 'ibscope', 'ctl', '--pin-dir', DIR, 'unpin')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertFalse(os.path.exists(DIR))
        shutil.rmtree(os.path.dirname(SOCKET))

    def snapshot(self, build):
        p = call(build, 'ibscope', 'ctl', '--pin-dir', DIR, '--json', 'snapshot')
        self.assertEqual(p.returncode, 0, p.stderr)
        o = json.loads(p.stdout)
        self.assertEqual(residual(o['ledger']), 0, o['ledger'])
        self.assertEqual(sum(s['samples'] for s in o['series']), o['ledger']['aggregated'])
        return o

    def grow(self, build):
        before = self.snapshot(build)['ledger']['seen']
        until(lambda: self.snapshot(build)['ledger']['seen'] > before + 100)

    def scraped(self, scrapers, reads, n=2):
        """Wait until those that can read the collector that runs have scraped n times more."""
        want = [(s, s.scrapes + n) for s in scrapers if reads(s.build)]
        until(lambda: all(s.scrapes >= w or s.falls or s.failed for s, w in want))

    def turns(self, sig):
        """Before, this, before, this: two upgrades and a downgrade. Each reader reads each collector of its schema, this one all."""
        same = schema(BEFORE) == schema(BUILD)
        self.assertLessEqual(schema(BUILD) - schema(BEFORE), 1)
        c = self.serve(BEFORE, 'kernel memory')
        scrapers = [Scraper(BEFORE), Scraper(BUILD)]
        began, seen, running = time.monotonic(), 0, BEFORE
        for build in BUILD, BEFORE, BUILD:
            def reads(reader, running=running):
                return same or reader == BUILD or running == BEFORE
            for reader in BEFORE, BUILD:
                if reads(reader):
                    self.grow(reader)
            self.scraped(scrapers, reads)
            c.send_signal(sig)
            c.wait(60)
            last = self.snapshot(BUILD)['ledger']
            self.assertGreater(last['seen'], seen)
            resumes = same or build == BUILD
            for s in scrapers:
                s.anew = not resumes
            c = self.serve(build, 'resuming counters' if resumes else 'starting from zero: they are from another version')
            seen = self.snapshot(BUILD)['ledger']['seen']
            self.assertGreaterEqual(seen, last['seen'] if resumes else 0)
            running = build
        self.grow(BUILD)
        for s in scrapers:
            s.stop()
            self.assertEqual((s.falls, s.failed), ([], []))
            self.assertGreater(s.scrapes, 2)
            self.assertEqual(s.refused > 0, not same and s.build == BEFORE)
        c.send_signal(signal.SIGTERM)
        self.assertEqual(c.wait(60), 0)
        o = self.snapshot(BUILD)['ledger']
        print(f'{signal.Signals(sig).name}: {o["seen"]} samples seen, {o["unseen"]} unseen by 4 collectors in '
              f'{time.monotonic() - began:.0f} s, {sum(s.scrapes for s in scrapers)} scrapes, no counter fell')

    def test_term(self):
        self.turns(signal.SIGTERM)

    def test_kill(self):
        self.turns(signal.SIGKILL)


if __name__ == '__main__':
    unittest.main(verbosity=2)
