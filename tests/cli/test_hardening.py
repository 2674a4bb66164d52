# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plain `make` hardens the programs: they run as root and read files that others wrote."""
import os
import subprocess
import unittest

BUILD = os.environ.get('IBSCOPE_BUILD', os.path.abspath('build'))
PROGRAMS = ('ibscope', 'ibscope-exporter')


def readelf(name, *options):
    return subprocess.run(['readelf', '-W', *options, os.path.join(BUILD, name)], capture_output=True, text=True,
                          check=True, timeout=60).stdout


class Hardening(unittest.TestCase):
    def test_position_independent(self):
        for name in PROGRAMS:
            self.assertRegex(readelf(name, '-h'), r'Type: +DYN', name)
            self.assertRegex(readelf(name, '-d'), r'FLAGS_1.*\bPIE\b', name)

    def test_relocations_are_read_only(self):
        for name in PROGRAMS:
            self.assertIn('GNU_RELRO', readelf(name, '-l'), name)
            self.assertRegex(readelf(name, '-d'), r'\bBIND_NOW\b|FLAGS_1.*\bNOW\b', name)

    def test_stack_is_not_executable(self):
        for name in PROGRAMS:
            self.assertRegex(readelf(name, '-l'), r'GNU_STACK(?: +0x[0-9a-f]+){5} RW ', name)

    def test_stack_and_buffers_are_checked(self):
        for name in PROGRAMS:
            symbols = readelf(name, '--dyn-syms')
            self.assertIn('__stack_chk_fail', symbols, name)
            self.assertRegex(symbols, r'__\w*printf_chk', name)
            # where the compiler knows the size of what is written to, it calls the checked one only
            self.assertNotRegex(symbols, r' (sprintf|vsprintf|gets)@', name)


if __name__ == '__main__':
    unittest.main()
