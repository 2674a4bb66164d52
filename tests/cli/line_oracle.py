# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `c2c` must say of a line, from all its accesses."""
import collections

VERDICT = {'false': 'false sharing', 'true': 'true sharing', 'mixed': 'true and false sharing'}


class Line:
    def __init__(self):
        self.accesses = []
        self.n = collections.Counter()
        self.cycles = self.sum = self.known = self.hitm = 0


def share(a, b):
    return a['tid'] != b['tid'] and a['cpu'] != b['cpu']


def slots_of(a):
    offset = (a['addr'] or a['phys']) % 64
    return range(offset // 8, min(offset + a['width'] - 1, 63) // 8 + 1)


def slot_users(line):
    out = [([], []) for _ in range(8)]
    for a in line.accesses:
        if a['prefetch']:
            continue
        for s in slots_of(a):
            out[s][0].append(a)
            if a['store']:
                out[s][1].append(a)
    return out


def verdict(key, line):
    """(verdict, likely, slots)"""
    users = slot_users(line) if key[0] else [([], [])] * 8
    shared = [any(share(w, a) for w in writers for a in everyone) for everyone, writers in users]
    slots = ''.join('W' if shared[s] else 'w' if users[s][1] else 'r' if any(a['load'] for a in users[s][0]) else '.'
                    for s in range(8))
    real = [a for a in line.accesses if not a['prefetch']]
    hits = sum(n for k, n in line.n.items() if k.startswith('hitm') or k == 'owned')
    if not real or not key[0]:
        return 'unknown', '0', slots
    if not any(share(a, b) for a in real for b in real):
        return 'private', '0', slots
    if not line.n['store']:
        return 'read-only', '0', slots
    apart = any(share(w, a) for s in range(8) for t in range(8) if s != t and not (shared[s] and shared[t])
                for w in users[s][1] for a in users[t][0])
    if not (any(shared) or apart) or not (hits or line.n['transfers']):
        return 'shared', '0', slots
    kind = 'false' if not any(shared) else 'mixed' if apart else 'true'
    return VERDICT[kind], '0' if hits else '1', slots
