#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""compare.py REPORT...: hold reports of `make hwtest` against ibscope's tables and what the rig assumes.

Lines begin with `FAIL` if a sample contradicts a table, if a test failed on the machine, or if a part of the report is
missing; with `differs` if the machine is not as the rig assumes, which is no error. Exit status: 1 if anything failed.
"""
import argparse
import csv
import io
import json
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../vm'))
import oracle  # noqa: E402

FEWEST = 30         # samples for a figure
FACTOR = 2          # by which a figure may be off the rig's
UNKNOWN = 0.02      # of loads, whose source no table has
ORDER = 'l2', 'l3', 'dram', 'remote-dram'      # each takes longer than the one before
DATA3 = {'ld_op': 0, 'st_op': 1, 'dc_miss': 7, 'dc_uc_mem_acc': 14, 'dc_locked_op': 15, 'dc_miss_no_mab_alloc': 16,
         'dc_lin_addr_valid': 17, 'dc_phy_addr_valid': 18, 'l2_miss': 20, 'sw_pf': 21, 'dc_miss_lat': 32,
         'tlb_refill_lat': 48}
DATA2 = {'data_src_lo': 0, 'rmt_node': 4, 'cache_hit_st': 5, 'data_src_hi': 6}
DATA = {'comp_to_ret_ctr': 0, 'tag_to_ret_ctr': 16, 'op_brn_ret': 37, 'op_rip_invalid': 38}
PAGES = {'0': '4096', '1': '2097152', '2': '1073741824'}
# of the rig (../vm/rig/README.md): shares of all ops, of loads that are served, per mille of tags, ns
KINDS = {'load': 0.38, 'store': 0.15, 'branch': 0.21}
SERVED = {'l1': 0.71, 'l2': 0.12, 'l3': 0.07}
FLUSHED, SAMPLE_NS = 0.030, 2900


class Damaged(Exception):
    pass


class Archive:
    def __init__(self, text):
        head, found, data = text.partition('\nDATA\n')
        end = re.search(r'^END: (\d+) parts\n?\Z', data, re.M)
        if not text.startswith('REPORT OF IBS HARDWARE\n') or not found:
            raise Damaged('not a report of `make hwtest`')
        self.head, self.parts = head, {}
        for part in re.split('^--- ', data[:end.start()] if end else data, flags=re.M)[1:]:
            name, _, said = part.partition('\n')
            self.parts[name] = said
        if not end:
            raise Damaged('it ends in the middle of %s' % (list(self.parts) or ['its data'])[-1])
        if len(self.parts) != int(end[1]):
            raise Damaged('it has %d parts of %s' % (len(self.parts), end[1]))
        self.results = re.findall(r'^(ok|FAIL|unknown) +(.*)', head.partition('\nRESULTS\n')[2], re.M)

    def cpu(self):
        of = dict(re.findall(r'^(cpu family|model) : (\d+)$', self.head, re.M))
        caps = 0x3ff | (oracle.ZEN4 if re.search(r'^ibs_op/caps/zen4_ibs_extensions 1$', self.head, re.M) else 0)
        if len(of) < 2:
            raise Damaged('it does not name the processor')
        return oracle.Cpu(int(of['cpu family']), int(of['model']), caps)

    def table(self, name):
        """Rows of samples; none if the part is missing, as in a report of an older version."""
        rows = list(csv.DictReader(io.StringIO(self.parts.get(name, ''))))
        for n, r in enumerate(rows, 2):
            if None in r or None in r.values():
                raise Damaged('%s: line %d has a wrong number of columns' % (name, n))
        return rows

    def json(self, name):
        try:
            return json.JSONDecoder().raw_decode(self.parts[name])[0] if name in self.parts else None
        except ValueError as e:
            raise Damaged('%s: %s' % (name, e)) from e


def packed(row, fields):
    value = 0
    for name, low in fields.items():
        text = row.get(name) or '0'
        if not text.isdecimal():
            raise Damaged('%s is %r' % (name, text))
        value |= int(text) << low
    return value


def registers(row, cpu):
    """The sample that has these fields, as the oracle of the rig reads it."""
    of = {'data': DATA, 'data2': DATA2, 'data3': DATA3}
    return oracle.Sample([str(packed(row, of[c])) if c in of else 'op' if c == 'kind' else '0' for c in oracle.COLUMNS], cpu)


def check_results(a):
    failed = [text for verdict, text in a.results if verdict == 'FAIL']
    return bool(a.results) and not failed, '; '.join(failed) or '%d results' % len(a.results)


def check_ops(rows, cpu):
    """Kind and source as the documents have them."""
    wrong = []
    for n, r in enumerate(rows, 2):
        want = registers(r, cpu)
        # of an uncached access, dump prints no DataSrc
        sources = ('io', 'uncached') if want.uncached and not r['data_src_lo'] else (want.src,)
        if want.op != r['op'] or r['src'] not in sources:
            wrong.append('line %d: %s from %s, should be %s from %s' % (n, r['op'], r['src'], want.op, want.src))
    return not wrong, wrong[0] if wrong else '%d samples' % len(rows)


def check_sources(rows):
    loads = [r for r in rows if r['op'] == 'load' and r['src'] != 'none']
    unknown = [r for r in loads if r['src'] == 'unknown']
    if len(loads) < FEWEST:
        return None, '%d loads' % len(loads)
    text = '%d of %d loads' % (len(unknown), len(loads))
    codes = {8 * int(r['data_src_hi'] or 0) + int(r['data_src_lo'] or 0) for r in unknown}
    return len(unknown) <= UNKNOWN * len(loads), text + (': DataSrc %s' % sorted(codes)) * bool(unknown)


def check_latencies(rows):
    """Farther is later; and retirement cannot wait less from the tag on than from completion on."""
    lat = {s: [int(r['dc_miss_lat']) for r in rows if r['src'] == s and r['op'] == 'load' and r['dc_miss_lat']
               and not int(r['dc_miss_no_mab_alloc'] or 0)] for s in ORDER}
    known = [(s, statistics.median(v)) for s, v in lat.items() if len(v) >= FEWEST]
    hasty = [r for r in rows if int(r['tag_to_ret_ctr'] or 0) < int(r['comp_to_ret_ctr'] or 0)]
    text = ', '.join('%s %d' % x for x in known) + '; %d retired before they completed' % len(hasty)
    if len(known) < 2:
        return None if not hasty else False, text
    return all(a[1] < b[1] for a, b in zip(known, known[1:])) and not hasty, text


def check_fetches(rows):
    wrong = [n for n, r in enumerate(rows, 2) if r.get('l1tlb_pgsz') in PAGES and r['page_size']
             and r['page_size'] != PAGES[r['l1tlb_pgsz']]]
    return not wrong, 'line %d: its page size' % wrong[0] if wrong else '%d samples' % len(rows)


def near(name, got, want):
    """A figure beside the rig's."""
    return want / FACTOR <= got <= want * FACTOR, '%s %s (rig %g)' % (
        name, '%.0f' % got if got >= 10 else '%.3g' % got, want)


def assumptions(a, rows):
    loads = [r for r in rows if r['op'] == 'load']
    for op, share in KINDS.items() if len(rows) >= FEWEST else ():
        yield near('ops: %s' % op, sum(r['op'] == op for r in rows) / len(rows), share)
    for src, share in SERVED.items() if len(loads) >= FEWEST else ():
        yield near('loads: from %s' % src, sum(r['src'] == src for r in loads) / len(loads), share)
    stat = re.search(r'unit masks 01h, 02h, 04h: (\d+), (\d+)', a.head)
    if stat and int(stat[1]):
        yield near('tags that do not retire', 1 - int(stat[2]) / int(stat[1]), FLUSHED)
    cost = a.json('cost.out')
    ns = {r['outcome']: r['ns'] for r in cost['samples']} if cost else {}
    if ns.get('aggregated'):
        yield near('ns a sample', ns['aggregated'], SAMPLE_NS)


def judge(path):
    """Lines of (verdict, what, text)."""
    with open(path, errors='replace') as f:
        a = Archive(f.read())
    cpu, ops, fetches = a.cpu(), a.table('samples-op.csv'), a.table('samples-fetch.csv')
    checks = [('own results', check_results, a)]
    if ops:
        checks += [('kind and source', check_ops, ops, cpu), ('sources in the table', check_sources, ops),
                   ('latencies', check_latencies, ops)]
    if fetches and not cpu.bad_ic_miss:
        checks.append(('fetches', check_fetches, fetches))
    for what, function, *args in checks:
        ok, text = function(*args)
        yield {True: 'ok', False: 'FAIL', None: 'unknown'}[ok], what, text
    for ok, text in assumptions(a, ops):
        yield 'ok' if ok else 'differs', 'as on the rig', text


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('report', nargs='+', help='of make hwtest')
    failed = False
    for path in ap.parse_args().report:
        try:
            for verdict, what, text in judge(path):
                print('%-8s %s: %s: %s' % (verdict, os.path.basename(path), what, text))
                failed |= verdict == 'FAIL'
        except (Damaged, OSError, KeyError, ValueError) as e:
            print('%-8s %s: damaged: %s' % ('FAIL', os.path.basename(path), e))
            failed = True
    return failed


if __name__ == '__main__':
    sys.exit(main())
