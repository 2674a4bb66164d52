#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""each_test.py MODULE DIR SIZE: runs the tests of a module, and prints the name and the seconds of each that passes.

The file DIR/NAME gets a byte for each mutant, which is set if the test reaches it: runtime.c. What is reached between tests,
by setUpClass and others, goes to DIR/between.
"""
import collections
import os
import sys
import time
import unittest

MODULE, DIR, SIZE = sys.argv[1], sys.argv[2], int(sys.argv[3])


def note_in(name):
    path = os.path.join(DIR, name)
    if not os.path.exists(path):
        with open(path, 'wb') as f:
            f.truncate(SIZE)
        os.chmod(path, 0o666)   # some programs run as nobody
    os.environ['MUTANT_REACHED'] = path


class Result(unittest.TestResult):
    before = collections.Counter()      # seconds before the first test of a class
    ended = time.monotonic()
    passed = False

    def startTest(self, test):
        super().startTest(test)
        self.began, self.passed = time.monotonic(), False
        self.before[type(test)] = max(self.before[type(test)], self.began - self.ended)
        note_in(test.id())

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed = True

    def stopTest(self, test):
        super().stopTest(test)
        self.ended = time.monotonic()
        if self.passed:
            print(test.id(), f'{self.ended - self.began + self.before[type(test)]:.3f}', flush=True)
        note_in('between')


sys.path.insert(0, os.getcwd())
note_in('between')
unittest.TestLoader().loadTestsFromName(MODULE).run(Result())
