# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""JSON against the schemas in tools/schemas, and which of their members it has."""
import glob
import json
import os
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

DIR = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..', 'tools', 'schemas'))
BEGIN, END = 'ibscope-', '.schema.json'

LINES = 'hist', 'dump', 'ctl-ledger', 'explain'    # one object per line
EXAMPLE_MAX = 20000
# members that only strata have, which need a hardware filter: tests/vm/strata.py
STRATA = {f'hist: {x}' for x in ('strata', 'name', 'event', 'period', 'slices', 'seconds', 'ops', 'tagged', 'ledger',
                                 'estimated_ops_interval', 'low', 'high', 'ops_buckets')}

needed = unittest.skipUnless(jsonschema, 'python3-jsonschema is not installed')


def objects(value):
    """All objects in a value."""
    if isinstance(value, dict):
        yield value
    for x in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(x)


class Schemas:
    def __init__(self):
        self.schema, self.seen, self.example = {}, set(), {}
        for path in glob.glob(os.path.join(DIR, BEGIN + '*' + END)):
            with open(path, encoding='utf-8') as f:
                # definitions of the other file as if they were of this one: versions of jsonschema find files in different ways
                text = f.read().replace(f'"{BEGIN}common{END}#', '"#')
            self.schema[os.path.basename(path)[len(BEGIN):-len(END)]] = json.loads(text)
        common = self.schema['common']['$defs']
        self.whole = {name: {**s, '$defs': {**common, **s.get('$defs', {})}} for name, s in self.schema.items()}
        self.draft = jsonschema.Draft202012Validator
        self.counting = jsonschema.validators.extend(self.draft, {'properties': self.properties})

    def properties(self, validator, properties, instance, schema):
        """As the draft has it, and remembers which of them there were."""
        if isinstance(instance, dict):
            consts = {name: p['const'] for name, p in properties.items() if isinstance(p, dict) and 'const' in p}
            if all(instance.get(name) == const for name, const in consts.items()):   # else it is another alternative
                self.seen |= {(id(properties), name) for name in properties if name in instance}
        yield from self.draft.VALIDATORS['properties'](validator, properties, instance, schema)

    def check(self, name, value):
        """Raise AssertionError unless the schema accepts the value."""
        error = jsonschema.exceptions.best_match(self.counting(self.whole[name]).iter_errors(value))
        if error:
            raise AssertionError(f'{name}: /{"/".join(map(str, error.absolute_path))}: {error.message[:1000]}')
        text = json.dumps(value)
        if len(self.example.get(name, '')) < len(text) < EXAMPLE_MAX:
            self.example[name] = text

    def check_text(self, name, text):
        """The same of an object, or of one in each line. Return: all."""
        values = [json.loads(text)] if text.startswith('{\n') or name not in LINES else [json.loads(line) for line in text.splitlines()]
        for value in values:
            self.check(name, value)
        return values

    def lax(self, name):
        """The objects of the longest example in which the schema accepts a member that it does not describe."""
        validator, value, out = self.draft(self.whole[name]), json.loads(self.example[name]), []
        for o in objects(value):
            o['surplus'] = None
            if validator.is_valid(value):
                out.append(list(o))
            del o['surplus']
        return out

    def unseen(self, *names):
        """What no value had of the members that these schemas, or definitions, describe."""
        of = {**self.schema['common']['$defs'], **self.schema}
        return {f'{name}: {key}' for name in names for o in objects(of[name])
                for key, p in (o['properties'].items() if isinstance(o.get('properties'), dict) else ())
                if isinstance(p, dict) and (id(o['properties']), key) not in self.seen}
