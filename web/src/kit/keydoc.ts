// SPDX-License-Identifier: Apache-2.0
// keydoc.ts - the keys of a YAML text as a JSON schema names them: which are meant where the cursor stands. Pure.

export interface KeyDoc {
    key: string;
    says: string;
    words?: string[];
    /** Of a map: its own keys. */
    of?: KeyDoc[];
}

/** A JSON schema, as far as it is looked at. */
export interface Shape {
    description?: string;
    type?: string | string[];
    enum?: unknown[];
    const?: unknown;
    default?: unknown;
    anyOf?: Shape[];
    properties?: Record<string, Shape>;
}

const wordsOf = (s: Shape): string[] => [
    ...(s.enum ?? []).map(String),
    ...(s.const === undefined ? [] : [String(s.const)]),
    ...(s.type === "boolean" ? ["true", "false"] : []),
    ...(s.anyOf ?? []).flatMap(wordsOf),
];

/** Those of the first of its forms that has any, however deep the forms stand in one another. */
function propertiesOf(s: Shape): Record<string, Shape> | undefined {
    if (s.properties) return s.properties;
    for (const form of s.anyOf ?? []) {
        const found = propertiesOf(form);
        if (found) return found;
    }
    return undefined;
}

export function keysOf(s: Shape): KeyDoc[] {
    return Object.entries(propertiesOf(s) ?? {}).map(([key, of]) => {
        const words = wordsOf(of);
        const inner = keysOf(of);
        const dflt = of.default === undefined ? "" : ` [${String(of.default)}]`;
        return {
            key,
            says: (of.description ?? inner.map((k) => k.key).join(", ")) + dflt,
            ...(words.length ? { words } : {}),
            ...(inner.length ? { of: inner } : {}),
        };
    });
}

const KEY = /^(\s*)([\w.]+):/;
const depth = (line: string) => line.length - line.trimStart().length;

/** The keys that may stand at this depth below these lines; null: within something that the schema does not know. */
export function keysAt(keys: KeyDoc[], above: string[], indent: number): KeyDoc[] | null {
    const path: string[] = [];
    let inside = indent;
    for (let i = above.length - 1; i >= 0 && inside > 0; i--) {
        const line = above[i]!;
        if (!line.trim() || line.trimStart().startsWith("#") || depth(line) >= inside) continue;
        const key = KEY.exec(line);
        if (!key) return null; // an item of a list, or a text of several lines
        path.unshift(key[2]!);
        inside = depth(line);
    }
    let now: KeyDoc[] | null = keys;
    for (const name of path) now = now?.find((k) => k.key === name)?.of ?? null;
    return now;
}
