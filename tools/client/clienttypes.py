# SPDX-License-Identifier: Apache-2.0
"""argus/types.py of the Python client, made of openapi.json: a TypedDict for each object that the API takes or gives.

A member that may be missing is NotRequired, words of a fixed list are a Literal, what the description leaves open is
Any. An object without a name of its own is named after where it stands (JobMetrics_superseded).
"""

import json
import re

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""What the API of Argus {version} takes and gives, made from its openapi.json: for editors and type checkers."""

import sys
from typing import Any, Literal, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypedDict
else:
    from typing_extensions import NotRequired, TypedDict

'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Types:
    def __init__(self, schemas):
        self.schemas, self.texts, self.begun = schemas, {}, set()

    def union(self, parts):
        parts = list(dict.fromkeys(parts))
        if "Any" in parts:
            return "Any"
        return parts[0] if len(parts) == 1 else f"Union[{', '.join(parts)}]"

    def object_of(self, schema, where):
        """A class of its own where members are named, else a dict."""
        if "properties" not in schema:
            more = schema.get("additionalProperties", True)
            return f"dict[str, {self.of(more, f'{where}_value') if isinstance(more, dict) else 'Any'}]"
        required, members = schema.get("required", ()), []
        for key, member in schema["properties"].items():
            text = self.of(member, f"{where}_{key}" if key.isidentifier() else f"{where}_{len(members)}")
            text = json.dumps(text)  # read later: it may name what comes below
            text = text if key in required else f"NotRequired[{text}]"  # read at once, or it would count as required
            members.append(f"    {json.dumps(key)}: {text},\n")
        self.texts[where] = f"{where} = TypedDict({json.dumps(where)}, {{\n{''.join(members)}}})\n"
        return where

    def of_kind(self, kind, schema, where):
        if kind == "object":
            return self.object_of(schema, where)
        if kind == "array":
            return f"list[{self.of(schema.get('items', {}), f'{where}_item')}]"
        return PLAIN[kind]

    def of(self, schema, where):
        """The type as Python writes it; objects in it are added to the texts."""
        if "$ref" in schema:
            return schema["$ref"].rpartition("/")[2]
        if "enum" in schema:
            return f"Literal[{', '.join('None' if v is None else json.dumps(v) for v in schema['enum'])}]"
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.union([self.of(x, f"{where}_{i}") for i, x in enumerate(schema[several], 1)])
        kinds = schema.get("type", ())
        if not kinds:
            return "Any"
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return self.union([self.of_kind(kind, schema, where) for kind in kinds])

    def add(self, name):
        if name in self.begun:
            return
        self.begun.add(name)
        text = self.of(self.schemas[name], name)
        if name not in self.texts:  # no object with members: another name, which Python reads after what it is made of
            for other in sorted(set(re.findall(r"\w+", text)) & set(self.schemas)):
                self.add(other)
            self.texts[name] = f"{name} = {text}\n"


def client_types(openapi):
    """The text of the module. It is in the order of the names, so that equal descriptions make equal texts."""
    types = Types(openapi["components"]["schemas"])
    for name in sorted(types.schemas):
        types.add(name)
    classes = [t for t in types.texts.values() if " = TypedDict(" in t]
    others = [t for t in types.texts.values() if " = TypedDict(" not in t]
    return HEAD.format(version=openapi["info"]["version"]) + "".join(classes) + "".join(others)
