# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of npm, for tests that look at what we make with what others have."""
import os
import shutil
import subprocess
import unittest


def unpack(spec, directory):
    """Return: the directory of the package, below @directory. Skips the test without npm or its registry."""
    if not shutil.which('npm'):
        raise unittest.SkipTest('npm is not installed')
    try:
        p = subprocess.run(['npm', 'pack', '--silent', '--cache', os.path.join(directory, 'cache'), spec], cwd=directory,
                           capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest('no answer from the registry of npm') from None
    if p.returncode:
        raise unittest.SkipTest(f'npm cannot get {spec}: {p.stderr.strip()[-200:]}')
    subprocess.run(['tar', 'xzf', p.stdout.split()[-1]], cwd=directory, check=True)
    return os.path.join(directory, 'package')
