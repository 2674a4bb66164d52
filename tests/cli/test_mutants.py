# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/mutants/equivalent.txt: a row that matches nothing hides nothing today, and something else tomorrow."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path[:0] = [os.path.join(ROOT, 'tests'), os.path.join(ROOT, 'tests', 'mutants')]
import mutants  # noqa: E402


def stale(rows):
    """Rows whose file has no such line, or that have no reason."""
    lines = {}
    for path in {path for path, _, _ in rows}:
        with open(os.path.join(ROOT, path), encoding='utf-8') as f:
            lines[path] = {line.strip() for line in f}
    return [row for row, reason in rows.items() if row[2] not in lines[row[0]] or not reason]


class Equivalent(unittest.TestCase):
    def test_rows(self):
        rows = mutants.read_equivalent(True)
        self.assertGreater(len(rows), 200)
        self.assertEqual(stale(rows), [])

    def test_what_is_stale(self):
        (path, label, _), *_ = mutants.read_equivalent(True)
        gone, bare = (path, label, 'no such line;'), (path, label, '}')
        self.assertEqual(stale({gone: 'A reason.', bare: ''}), [gone, bare])


if __name__ == '__main__':
    unittest.main()
