# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The test runner's own verdicts: what skips, fails, or proves nothing."""
import argparse
import collections
import contextlib
import io
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import run  # noqa: E402
from ibscope import until  # noqa: E402


def process(rc, stdout='', stderr=''):
    return subprocess.CompletedProcess(['x'], rc, stdout, stderr)


class Verdicts(unittest.TestCase):
    def verdict(self, judge, *args, strict=False):
        with unittest.mock.patch.object(run, 'STRICT', strict), contextlib.redirect_stdout(io.StringIO()):
            t = judge(*args)
        return t.passed, t.failed, t.skipped

    def cmocka(self, *args, **kw):
        return self.verdict(run.judge_cmocka, 'test_x', process(*args), **kw)

    def test_cmocka_counts(self):
        self.assertEqual((2, 0, 0), self.cmocka(0, '1..2\nok 1 - a\nok 2 - b\n'))
        self.assertEqual((1, 1, 0), self.cmocka(1, '1..2\nok 1 - a\nnot ok 2 - b\n'))

    def test_a_crash_without_a_verdict_fails(self):
        self.assertEqual((1, 1, 0), self.cmocka(-11, 'ok 1 - a\n'))
        self.assertEqual((0, 1, 0), self.cmocka(0, ''))

    def test_a_skip_needs_a_reason(self):
        self.assertEqual((0, 0, 1), self.cmocka(77, 'root is needed\n'))
        self.assertEqual((0, 1, 0), self.cmocka(77, ''))
        self.assertEqual((1, 0, 1), self.cmocka(0, 'no cgroup v2\nok 1 - a\nnot ok 2 # SKIP b\n'))
        self.assertEqual((1, 1, 1), self.cmocka(0, 'ok 1 - a\nnot ok 2 # SKIP b\n'))

    def test_in_ci_a_module_must_not_skip_as_a_whole(self):
        self.assertEqual((0, 1, 1), self.cmocka(77, 'root is needed\n', strict=True))
        module = '0 passed, 0 failed, 3 skipped\n'
        self.assertEqual((0, 0, 3), self.verdict(run.judge_module, 'm', process(0, module)))
        self.assertEqual((0, 1, 3), self.verdict(run.judge_module, 'm', process(0, module), strict=True))

    def test_in_ci_an_upgrade_needs_the_release_before(self):
        script = os.path.join(os.path.dirname(os.path.abspath(run.__file__)), 'system', 'upgrade.sh')
        for ci, status, out, err in (('', 0, 'skip upgrade: ', ''), ('true', 1, '', 'no history with 0123456789ab: fetch all of it')):
            p = subprocess.run([script, '0123456789ab', '/nonexistent'], env={**os.environ, 'CI': ci}, capture_output=True, text=True)
            self.assertEqual(p.returncode, status, p)
            self.assertTrue(p.stdout.startswith(out) and bool(p.stdout) == bool(out), p)
            self.assertIn(err, p.stderr)

    def test_a_module_without_tests_fails(self):
        self.assertEqual((0, 1, 0), self.verdict(run.judge_module, 'm', process(0, '0 passed, 0 failed, 0 skipped\n')))
        self.assertEqual((0, 1, 0), self.verdict(run.judge_module, 'm', process(1, 'Traceback')))

    def test_a_corpus_must_have_inputs(self):
        self.assertEqual((1, 0, 0), self.verdict(run.judge_corpus, 'fuzz_x', ['a'], process(0, 'a\n1 inputs, 2 MiB\n')))
        self.assertEqual((0, 1, 0), self.verdict(run.judge_corpus, 'fuzz_x', [], process(0, '0 inputs\n')))
        self.assertEqual((0, 1, 0), self.verdict(run.judge_corpus, 'fuzz_x', ['a'], process(-6, 'a\n')))

    def again(self, failing, passes_alone=True):
        """Runs all modules, of which those in @failing fail the first time, or also when they are repeated alone.
        Returns the hints, the number of failures, and how often modules ran."""
        ran, lock = collections.Counter(), threading.Lock()

        def start(_args, path):
            with lock:
                ran[path] += 1
            bad = os.path.basename(path) in failing and (ran[path] == 1 or not passes_alone)
            return process(bad, f'{int(not bad)} passed, {int(bad)} failed, 0 skipped\n')

        layers = {name: run.Tally() for name in ('cli', 'system')}
        with unittest.mock.patch.object(run, 'start_module', start), contextlib.redirect_stdout(io.StringIO()) as out:
            jobs = [job for job in run.list_jobs(argparse.Namespace(san=''), '1') if job.path.endswith('.py')]
            run.run_jobs(jobs, layers)
        hints = re.findall(r'^# (test_\w+\.py (?:passes|fails) alone.*)', out.getvalue(), re.M)
        return hints, sum(l.failed for l in layers.values()), sorted(ran.values())[-4:]

    def test_what_runs_beside_what(self):
        """Nothing beside what measures; no more that sample than there are CPUs, and one more once nothing else runs."""
        jobs, lock, now, most = run.list_jobs(argparse.Namespace(san=''), '1'), threading.Lock(), [], {}
        left, cpus = collections.Counter(job.kind for job in jobs), os.cpu_count()

        def start(job):
            with lock:
                now.append(job.kind)
                self.assertFalse('alone' in now and len(now) > 1, now)
                at = job.kind, left['other'] > 0
                most[at] = max(most.get(at, 0), now.count(job.kind))
            if job.kind == 'other':
                until(lambda: most.get(('sampling', True), 0) >= cpus, 5)
            elif job.kind == 'sampling':
                time.sleep(0.01)
                until(lambda: left['other'] or most.get(('sampling', False), 0) > cpus, 5)
            with lock:
                now.remove(job.kind)
                left[job.kind] -= 1

        for job in jobs:
            job.start, job.judge = (lambda _, job=job: start(job)), lambda *_: run.Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            run.run_jobs(jobs, {job.layer: run.Tally() for job in jobs})
        self.assertFalse(+left)
        self.assertLessEqual(most['other', True], cpus)
        self.assertEqual(most['sampling', True], cpus)
        self.assertEqual(most['sampling', False], cpus + 1)

    def test_order(self):
        a, b, c = ([job.path for job in run.list_jobs(argparse.Namespace(san=''), seed)] for seed in ('1', '1', '2'))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        self.assertEqual(sorted(a), sorted(c))
        n = len(run.LONG)
        for paths in a, c:
            self.assertEqual(sorted(os.path.basename(path) for path in paths[:n]), sorted(run.LONG))
        self.assertNotEqual(a[:n], c[:n])
        self.assertNotEqual(a[n:], sorted(a[n:]))

    def test_a_second_run_alone_is_only_a_hint(self):
        names = [f'test_{name}.py' for name in ('man', 'report', 'pipes', 'rooms', 'merge', 'export', 'numa')]
        one, many = names[:1], names[:run.HINTS + 1]
        self.assertLess(run.HINTS, len(names))
        self.assertEqual((['test_man.py passes alone'], 1, [1, 1, 1, 2]), self.again(one))
        self.assertEqual((['test_man.py fails alone too'], 1, [1, 1, 1, 2]), self.again(one, passes_alone=False))
        self.assertEqual(([], len(many), [1, 1, 1, 1]), self.again(many))


if __name__ == '__main__':
    unittest.main()
