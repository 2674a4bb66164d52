# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mutants of a C file, all in one text: each has a number, and the environment chooses which one is active.

Clang's syntax tree says where expressions begin and end. An expression `a < b` with two mutants becomes

    (mutant(7) ? (a <= b) : mutant(8) ? (a > b) : (a < b))

and lines keep their numbers. Expressions within it have mutants only in the last copy, as no two are active at once.
What comes from macros is left alone.
"""
import collections
import json
import os
import re
import subprocess

Mutant = collections.namedtuple('Mutant', 'file line source label')

SWAPS = {'<': ('<=', '>='), '>': ('>=', '<='), '<=': ('<', '>'), '>=': ('>', '<'), '==': ('!=',), '!=': ('==',),
         '&&': ('||',), '||': ('&&',), '+': ('-',), '-': ('+',), '*': ('/',), '/': ('*',), '%': ('*',),
         '&': ('|',), '|': ('&',), '^': ('&',), '<<': ('>>',), '>>': ('<<',),
         '+=': ('-=',), '-=': ('+=',), '*=': ('/=',), '/=': ('*=',), '|=': ('&=',), '&=': ('|=',), '^=': ('|=',),
         '<<=': ('>>=',), '>>=': ('<<=',), '++': ('--',), '--': ('++',)}
DECIDES = ('<', '>', '<=', '>=', '==', '!=', '&&', '||', '!')
# constant expressions, or not evaluated
SKIPPED = {'ConstantExpr', 'UnaryExprOrTypeTraitExpr', 'OffsetOfExpr', 'StaticAssertDecl', 'EnumDecl', 'FieldDecl',
           'RecordDecl', 'GenericSelectionExpr', 'GCCAsmStmt'}
SILENT = 'explicit_bzero',    # nobody sees what it forgets
RUNTIME = '''#ifndef MUTANT_RUNTIME
#define MUTANT_RUNTIME
extern int mutant_number;
extern unsigned char *mutant_reached;
static inline __attribute__((unused)) int mutant(int n)
{
	mutant_reached[n] = 1;
	return mutant_number == n;
}
#endif
#line 1 "%s"
'''
# The loader sets mutant_number; runtime_bpf.c says how. One read, since a constant costs instructions until it is folded.
BPF_RUNTIME = '''#ifndef MUTANT_RUNTIME
#define MUTANT_RUNTIME
const volatile int mutant_number = 0;
unsigned char mutant_reached[BPF_MUTANTS] __attribute__((section(".data.mutants"))) = {};
static inline __attribute__((unused, always_inline)) int mutant(int n)
{
	const int active = mutant_number;

	if (active < 0)
		mutant_reached[n] = 1;
	return active == n;
}
#endif
#line 1 "%s"
'''
BRANCHES = {'IfStmt': (1, 2), 'ForStmt': (4,), 'WhileStmt': (1,), 'DoStmt': (0,), 'CaseStmt': (-1,),
            'DefaultStmt': (-1,), 'LabelStmt': (-1,)}
CONDITIONS = {'IfStmt': 0, 'WhileStmt': 0, 'DoStmt': 1, 'ForStmt': 2, 'ConditionalOperator': 0}


def functions(tree, path):
    """The bodies of functions that are defined in @path. Places in the tree name a file only where it changes."""
    at = None

    def follow(node):
        nonlocal at
        for key, value in node.items():
            if key == 'file':
                at = value
            elif key == 'inner' or key == 'includedFrom':
                continue
            elif isinstance(value, dict):
                follow(value)
        for child in node.get('inner', ()):
            follow(child)

    for decl in tree['inner']:
        follow({'loc': decl.get('loc', {})})
        inside = at == path
        follow({k: v for k, v in decl.items() if k != 'loc'})
        if inside and decl['kind'] == 'FunctionDecl':
            yield from (n for n in decl.get('inner', ()) if n['kind'] == 'CompoundStmt')


class File:
    """@tree: clang's, of a file that includes @path, or is it. @spared: a pattern; expressions that contain it have no mutants."""

    def __init__(self, path, tree, dropped=(), spared=None):
        self.path, self.dropped, self.spared = path, dropped, spared
        with open(path, 'rb') as f:
            self.text = f.read()
        self.lines = self.text.decode().split('\n')
        self.found = []     # (begin, end, [(label, text)], is a statement)
        for body in functions(tree, path):
            self.walk(body, None, 0)
        self.seen = collections.Counter()

    def span(self, node):
        """Where a node begins and ends, or None if a macro makes it."""
        begin, end = node.get('range', {}).get('begin', {}), node.get('range', {}).get('end', {})
        if 'offset' not in begin or 'offset' not in end:
            return None
        return begin['offset'], end['offset'] + end['tokLen']

    def walk(self, node, parent, index):
        kind = node.get('kind')
        if not kind or kind in SKIPPED or (kind == 'VarDecl' and node.get('storageClass') == 'static'):
            return
        span = self.span(node)
        if span and self.spared and not kind.endswith(('Stmt', 'Decl')) and re.search(self.spared, self.text[slice(*span)]):
            return
        if span:
            variants = list(self.variants(node, kind, parent, *span))
            statement = self.is_statement(node, parent, index)
            if statement and kind in ('CallExpr', 'BinaryOperator', 'CompoundAssignOperator') and (
                    kind != 'BinaryOperator' or node['opcode'] == '=') and self.callee(node, span) not in SILENT:
                variants.append(('removed', None))
            if parent and CONDITIONS.get(parent['kind']) == index and node.get('opcode') not in DECIDES and \
                    kind != 'ParenExpr':
                variants.append(('negated', b'!(' + self.text[slice(*span)] + b')'))
            if variants:
                self.found.append((*span, variants, statement))
        for i, child in enumerate(node.get('inner', ())):
            self.walk(child, node, i)

    @staticmethod
    def is_statement(node, parent, index):
        if not parent or not node['kind'].endswith(('Expr', 'Operator')):
            return False
        places = BRANCHES.get(parent['kind'], ())
        return parent['kind'] == 'CompoundStmt' or index in places or (
            -1 in places and index == len(parent['inner']) - 1)

    def callee(self, node, span):
        m = re.match(rb'\w+', self.text[span[0]:span[1]]) if node['kind'] == 'CallExpr' else None
        return m.group().decode() if m else ''

    def operator(self, node, op):
        """Where the operator of a binary node is, or None."""
        left, right = self.span(node['inner'][0]), self.span(node['inner'][-1])
        op = op.encode()
        if left:
            m = re.compile(rb'\s*').match(self.text, left[1])
            if self.text.startswith(op, m.end()):
                return m.end()
        if right:
            before = self.text[:right[0]].rstrip()
            if before.endswith(op):
                return len(before) - len(op)
        return None

    def variants(self, node, kind, parent, begin, end):
        text = self.text
        if kind in ('BinaryOperator', 'CompoundAssignOperator'):
            op = node['opcode']
            pointers = ['*' in n.get('type', {}).get('qualType', '') for n in node['inner']]
            at = self.operator(node, op) if op in SWAPS and not (op in '+-' and pointers[1]) else None
            for other in SWAPS[op] if at else ():
                yield f'{op} -> {other}', text[begin:at] + other.encode() + text[at + len(op):end]
        elif kind == 'BinaryConditionalOperator':
            at = self.operator(node, '?:')
            if at:
                yield '?: -> left', text[begin:at]
                yield '?: -> right', text[at + 2:end]
        elif kind == 'UnaryOperator':
            op = node['opcode']
            at = end - len(op) if node.get('isPostfix') else begin
            rest = text[begin:at] + text[at + len(op):end]
            if op in ('++', '--'):
                yield f'{op} -> {SWAPS[op][0]}', text[begin:at] + SWAPS[op][0].encode() + text[at + len(op):end]
            elif op in ('-', '~'):
                yield f'{op} dropped', rest
            elif op == '!':
                yield '! dropped', b'!!(' + rest + b')'
        elif kind == 'IntegerLiteral' and not (parent or {}).get('castKind') == 'NullToPointer' and \
                not text[:begin].endswith(b'xcalloc('):     # which makes room for one rather than for none
            value, written = int(node['value']), text[begin:end].decode()
            yield f'{written} -> {int(not value)}' if value < 2 else f'{written} -> {value + 1}', \
                b'1' if not value else b'0' if value == 1 else b'(' + text[begin:end] + b' + 1)'
        if parent and parent['kind'] == 'ReturnStmt':
            yield from self.returned(node, kind, text[begin:end])

    @staticmethod
    def returned(node, kind, text):
        qual = node.get('type', {}).get('desugaredQualType', node.get('type', {}).get('qualType', ''))
        if kind == 'IntegerLiteral' or node.get('opcode') in DECIDES or text in (b'0', b'NULL', b'true', b'false'):
            return
        if qual in ('bool', '_Bool'):
            yield 'returns the opposite', b'!(' + text + b')'
        elif '*' in qual or re.fullmatch(r'(const |unsigned |signed |long |short )*(int|long|char|short)', qual):
            yield 'returns 0', b'0'

    def mutate(self, first, runtime=RUNTIME):
        """The text with the mutants, the first of which has number @first, and these; without those dropped."""
        found = sorted(self.found, key=lambda f: (f[0], -f[1]))
        mutants, number, taken = [], first, {}
        for begin, end, variants, statement in found:
            for label, text in variants:
                line = self.text.count(b'\n', 0, begin) + 1
                source = self.lines[line - 1].strip()
                self.seen[source, label] += 1
                again = self.seen[source, label]
                m = Mutant(self.path, line, source, label if again == 1 else f'{label} #{again}')
                if m in self.dropped:
                    continue
                mutants.append(m)
                taken.setdefault((begin, end, statement), []).append((number, text))
                number += 1
        self.seen.clear()
        todo = [(*key, value) for key, value in taken.items()]
        return runtime.encode() % self.path.encode() + self.render(0, len(self.text), todo), mutants

    def render(self, begin, end, todo):
        """The text from @begin to @end, with the expressions in @todo, of which each may have others within it."""
        out, at = b'', begin
        while todo:
            b, e, statement, variants = todo.pop(0)
            inner = []
            while todo and todo[0][0] < e:
                inner.append(todo.pop(0))
            original = self.render(b, e, inner)
            out += self.text[at:b] + b'('
            for number, text in variants:
                flat = b'(void)0' if text is None else text.replace(b'\n', b' ')
                if statement and text is not None:
                    flat = b'(void)(' + flat + b')'
                out += b'mutant(%d) ? (%s) : ' % (number, flat)
            out += (b'(void)(' if statement else b'(') + original + b'))'
            at = e
        return out + self.text[at:end]


def parse(compiler, flags, path):
    # ccache would have the compiler read the output of the preprocessor, where places are others
    p = subprocess.run([*compiler.split(), '-fsyntax-only', '-w', '-Xclang', '-ast-dump=json', *flags, path],
                       capture_output=True, env={**os.environ, 'CCACHE_DISABLE': '1'})
    return json.loads(p.stdout) if not p.returncode else None
