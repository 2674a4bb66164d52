# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands on recordings while an allocation or a system call fails: two of each command's. `make inject` has all."""
import os
import random
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'system'), os.path.join(HERE, '..', 'inject')]
import ibscope  # noqa: E402
import inject  # noqa: E402

SEED, MOST = os.environ.get('INJECT_SEED', '1'), 2


class Inject(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.driver = inject.Driver(os.path.abspath(ibscope.BUILD), inject.build_library(cls.dir.name), cls.dir.name)

    def check(self, case, what, rng=None, most=None):
        good = [inject.Run(self.driver, case)]
        faults = self.driver.faults(case, what, rng, most)
        self.assertTrue(faults)
        for n, all_ in faults:
            r = inject.Run(self.driver, case, what, n, all_)
            with self.subTest(case=case.name, what=what, n=n, all=all_):
                problem = self.driver.judge(good, r)
                if problem and len(good) < 2:   # does its output vary?
                    good.append(inject.Run(self.driver, case))
                    problem = self.driver.judge(good, r)
                self.assertIsNone(problem, (r.stack[:8], r.stderr))

    def test_some_of_each(self):
        rng = random.Random(SEED)
        for case in inject.OFFLINE:
            self.check(case, rng.choice(('alloc', 'calls')), rng, MOST)

    def test_every_write(self):
        """No error of a write is forgotten before the file is complete."""
        for case in inject.OFFLINE:
            if case.files():
                self.check(case, 'write,writev,pwrite64,linkat,renameat')

    def test_judge(self):
        """A program that ignores what fails is found."""
        case = inject.Case('report @shop')
        good = [inject.Run(self.driver, case)] * 2
        for change, problem in ((dict(status=0, stdout=b'', stderr=b''), 'another output'), (dict(status=-11), 'signal 11'),
                                (dict(status=None), 'hangs'), (dict(status=1, stderr=b''), 'without a message'),
                                (dict(status=99), 'exit status 99'), (dict(left=['.ibscope-1']), 'leaves')):
            r = inject.Run(self.driver, case, 'alloc', 1, True)
            self.assertTrue(r.failed and r.status == 1, r.stderr)
            self.assertIsNone(self.driver.judge(good, r))
            vars(r).update(change)
            self.assertIn(problem, self.driver.judge(good, r))


if __name__ == '__main__':
    unittest.main()
