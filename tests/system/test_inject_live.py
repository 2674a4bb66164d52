# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands that sample, and those that ask a collector, while an allocation or a system call fails: one or two of each
command's. `make inject` has all."""
import os
import random
import sys
import tempfile
import unittest

import ibscope

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'inject'))
import inject  # noqa: E402

SEED = os.environ.get('INJECT_SEED', '1')


@unittest.skipUnless(*ibscope.can_bpf())
class Live(unittest.TestCase):
    def test_some_of_each(self):
        rng = random.Random(SEED)
        with tempfile.TemporaryDirectory() as directory:
            driver = inject.Driver(os.path.abspath(ibscope.BUILD), inject.build_library(directory), directory)
            self.addCleanup(driver.end)
            driver.collect()
            for case in inject.LIVE:
                if case.waits:      # for seconds in each run: only in make inject
                    continue
                good = [inject.Run(driver, case)]
                for what in 'alloc', 'calls':
                    for n, all_ in driver.faults(case, what, rng, 1):
                        r = inject.Run(driver, case, what, n, all_)
                        with self.subTest(case=case.name, what=what, n=n, all=all_):
                            self.assertIsNone(driver.judge(good, r), (r.stack[:8], r.stderr))

    def test_directories_of_pins(self):
        """What `serve` has created is gone if it cannot look at it."""
        case = next(c for c in inject.LIVE if c.name.startswith('serve '))
        with tempfile.TemporaryDirectory() as directory:
            driver = inject.Driver(os.path.abspath(ibscope.BUILD), inject.build_library(directory), directory)
            for n in range(1, 50):
                r = inject.Run(driver, case, 'fstat', n)
                with self.subTest(n=n):
                    self.assertFalse(r.pins, (r.stack[:8], r.stderr))
                # the last thing that is looked at
                if 'make_links_dir' in driver.symbols.stack(r.stack):
                    break
            else:
                self.fail('it never looks at the directory of links')


if __name__ == '__main__':
    unittest.main()
