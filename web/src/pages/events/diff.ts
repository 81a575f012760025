// SPDX-License-Identifier: Apache-2.0
// diff.ts - what a change changed: the members of before and after that are not the same, by their path.

export interface Change {
    path: string;
    from: string | null;
    to: string | null;
}

const isObject = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);

function flat(v: unknown, path: string, out: Map<string, string>) {
    if (isObject(v)) for (const [k, x] of Object.entries(v)) flat(x, path ? `${path}.${k}` : k, out);
    else if (v !== undefined) out.set(path, typeof v === "string" ? v : JSON.stringify(v));
}

/** data of an event; null: it has no before and after. */
export function changesOf(data: unknown): Change[] | null {
    if (!isObject(data) || !("before" in data || "after" in data)) return null;
    const from = new Map<string, string>();
    const to = new Map<string, string>();
    if (data.before !== null) flat(data.before, "", from);
    if (data.after !== null) flat(data.after, "", to);
    return [...new Set([...from.keys(), ...to.keys()])]
        .filter((k) => from.get(k) !== to.get(k))
        .map((path) => ({ path, from: from.get(path) ?? null, to: to.get(path) ?? null }));
}
