# SPDX-License-Identifier: Apache-2.0
"""Holds what argusd says against its own openapi.json: every reply that a test gets, not only those that it looks at.

Schemas are compiled to functions, for thousands of replies are judged; what these refuse jsonschema explains."""

import functools
import json
import re
import threading

import jsonschema

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
KNOWN = {
    "$ref", "type", "enum", "required", "properties", "additionalProperties", "items", "anyOf", "minimum", "maximum",
    "format", "description", "pattern", "default",
}  # fmt: skip
PATIENCE_BYTES = 4 << 20  # a larger reply is not read twice


def types_of(schema):
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def open_places(schema, where=""):
    """Objects of which the schema does not say what they may hold, and values of which it says nothing."""
    inner = {"anyOf", "$ref", "enum"} & set(schema)
    if not schema or (not inner and not types_of(schema) and "description" not in schema):
        yield where
    if "object" in types_of(schema) and "additionalProperties" not in schema:
        yield where
    if "array" in types_of(schema) and "items" not in schema:
        yield where
    for name, member in schema.get("properties", {}).items():
        yield from open_places(member, f"{where}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from open_places(schema[name], f"{where}.{name}")
    for i, choice in enumerate(schema.get("anyOf", [])):
        if set(choice) != {"required"}:
            yield from open_places(choice, f"{where}.{i}")


@functools.cache
def contract_of(text):
    """One for all programs that say so."""
    return Contract(json.loads(text))


class Contract:
    def __init__(self, api):
        self.api = api
        self.seen = set()  # (method, pattern) of replies that were judged
        self.compiled = {}
        self.compiling = threading.RLock()  # tests follow streams in many threads
        self.routes = []
        for pattern, item in api["paths"].items():
            regex = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(pattern))
            literal = len(re.sub(r"\{\w+\}", "", pattern))
            for method, operation in item.items():
                self.routes.append((literal, method.upper(), pattern, re.compile(regex), operation))
        self.routes.sort(key=lambda r: -r[0])
        self.find = functools.lru_cache(4096)(self.find_route)

    def find_route(self, method, path):
        for _, verb, pattern, regex, operation in self.routes:
            if verb == method and regex.fullmatch(path):
                return pattern, operation
        return None, None

    # -- a schema as a function ------------------------------------------------------

    def compile(self, schema):
        key = json.dumps(schema, sort_keys=True)
        with self.compiling:
            if key not in self.compiled:
                self.compiled[key] = None  # a schema that names itself is looked up when it is used
                self.compiled[key] = self.build(schema)
            return self.compiled[key] or (lambda v: self.compiled[key](v))

    def build(self, schema):
        assert set(schema) <= KNOWN, f"a word of schemas that contract.py does not know: {set(schema) - KNOWN}"
        if "$ref" in schema:
            return self.compile(self.api["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        checks = [*self.build_plain(schema), *self.build_nested(schema)]
        return checks[0] if len(checks) == 1 else lambda v: all(check(v) for check in checks)

    @staticmethod
    def build_plain(schema):
        """What a schema says of a value alone: types, words, bounds."""
        if types_of(schema):
            kinds = [TYPES[kind] for kind in types_of(schema)]
            yield kinds[0] if len(kinds) == 1 else lambda v: any(kind(v) for kind in kinds)
        if "enum" in schema:
            yield lambda v: v in schema["enum"]
        if "minimum" in schema:
            yield lambda v: not TYPES["number"](v) or schema["minimum"] <= v
        if "maximum" in schema:
            yield lambda v: not TYPES["number"](v) or v <= schema["maximum"]

    def build_nested(self, schema):
        """What a schema says through other schemas: choices, members, items."""
        if "anyOf" in schema:
            choices = [self.compile(choice) for choice in schema["anyOf"]]
            yield lambda v: any(choice(v) for choice in choices)
        if {"properties", "required", "additionalProperties"} & set(schema):
            yield self.build_object(schema)
        if "items" in schema:
            item = self.compile(schema["items"])
            yield lambda v: not isinstance(v, list) or all(map(item, v))

    def build_object(self, schema):
        members = {name: self.compile(member) for name, member in schema.get("properties", {}).items()}
        required = set(schema.get("required", []))
        rest = schema.get("additionalProperties", True)
        other = self.compile(rest) if isinstance(rest, dict) else lambda v: rest

        def check(v):
            if not isinstance(v, dict):
                return True
            return required <= v.keys() and all(members.get(name, other)(member) for name, member in v.items())

        return check

    # -- what was said ---------------------------------------------------------------

    def holds(self, instance, schema, what):
        if self.compile(schema)(instance):
            return
        whole = {**schema, "components": self.api["components"]}
        errors = jsonschema.Draft202012Validator(whole).iter_errors(instance)
        deepest = max(errors, key=lambda e: len(e.absolute_path), default=None)
        raise AssertionError(f"{what} is not as openapi.json has it: {deepest and deepest.message}: {deepest}")

    @staticmethod
    def content_of(operation, status):
        answers = operation["responses"]
        good = answers.get(str(status)) or next(v for k, v in answers.items() if k.startswith("2"))
        return good.get("content", {})

    def judge(self, method, path, sent, reply):
        """One reply, and the form that was sent when it was taken."""
        kind = reply.headers.get("Content-Type", "").split(";")[0]
        pattern, operation = self.find(method, path.partition("?")[0])
        if not reply.body or len(reply.body) > PATIENCE_BYTES or method == "HEAD":
            return
        if kind == "application/problem+json":
            self.holds(reply.json(), {"$ref": "#/components/schemas/Problem"}, f"{method} {path}: {reply}")
            return
        if operation is None or kind != "application/json":
            return
        schema = self.content_of(operation, reply.status).get(kind, {}).get("schema")
        if schema:
            self.seen.add((method, pattern))
            self.holds(reply.json(), schema, f"{method} {path}: {reply}")
        form = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if form and sent is not None and reply.status < 300:
            self.holds(sent, form, f"{method} {path}, sent {sent!r}")

    def judge_message(self, path, data):
        """What one message of an event stream carries."""
        _, operation = self.find("GET", path.partition("?")[0])
        message = self.content_of(operation, 200).get("text/event-stream", {}).get("schema", {})
        schema = message.get("properties", {}).get("data", {}).get("contentSchema")
        assert schema, f"GET {path} is no event stream in openapi.json"
        self.holds(data, schema, f"a message of GET {path}: {data!r}")
