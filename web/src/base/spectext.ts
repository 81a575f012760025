// SPDX-License-Identifier: Apache-2.0
// spectext.ts - the text of a JobSpec, read and changed key by key, so that a form and an editor can share one text:
// comments, order and whatever the form does not know stay as they were. Pure.
//
// It knows the YAML that specs are written in: keys at the left edge, scalars, lists in brackets or in dashes. What it
// cannot read it leaves alone and calls null; whether a spec is right is said by argusd.

interface Block {
    key: string;
    /** Its first line, and the line after its last. */
    from: number;
    to: number;
}

const KEY = /^([A-Za-z_][\w.-]*)\s*:(?=\s|$)/;

/** Each key at the left edge, with the lines that belong to it. */
export function blocksOf(lines: string[]): Block[] {
    const out: Block[] = [];
    lines.forEach((line, i) => {
        const key = KEY.exec(line)?.[1];
        if (key) out.push({ key, from: i, to: i + 1 });
        else if (out.length && (/^\s+\S/.test(line) || /^- /.test(line)) && !/^\s*#/.test(line)) out.at(-1)!.to = i + 1;
    });
    return out;
}

const find = (lines: string[], key: string) => blocksOf(lines).find((b) => b.key === key);
export const hasKey = (text: string, key: string) => !!find(text.split("\n"), key);
export const lineOf = (text: string, key: string) => (find(text.split("\n"), key)?.from ?? -1) + 1;

/** What stands after the colon, without the comment that follows. */
function rawOf(line: string): { head: string; raw: string; tail: string } {
    const head = KEY.exec(line)?.[0] ?? "";
    const rest = line.slice(head.length);
    let quote = "";
    for (let i = 0; i < rest.length; i++) {
        const c = rest[i]!;
        if (quote) {
            if (c === "\\" && quote === '"') i++;
            else if (c === quote) quote = "";
        } else if ((c === '"' || c === "'") && /[\s[,{:]/.test(rest[i - 1] ?? " ")) quote = c;
        else if (c === "#" && /\s/.test(rest[i - 1] ?? " ")) {
            const end = rest.slice(0, i).trimEnd().length;
            return { head, raw: rest.slice(0, end).trim(), tail: rest.slice(end) };
        }
    }
    return { head, raw: rest.trim(), tail: "" };
}

export function unquoted(raw: string): string {
    if (/^".*"$/.test(raw))
        try {
            return JSON.parse(raw) as string;
        } catch {
            return raw.slice(1, -1);
        }
    if (/^'.*'$/.test(raw)) return raw.slice(1, -1).replaceAll("''", "'");
    return raw;
}

const PLAIN = /^[\p{L}\p{N}_./$+~][\p{L}\p{N}_./$+~{}@=<>()% ;-]*(:[\p{L}\p{N}_./$+~{}@=-]+)*$/u;
const OTHER_TYPE = /^([-+]?[\d.][\d_.]*(e[-+]?\d+)?|0x[\da-f]+|true|false|yes|no|on|off|null|~)$/i;

/** A value as YAML. A text that YAML would take for something else is quoted. */
export function scalar(value: string, isText = true): string {
    if (value === "") return '""';
    if (!isText && OTHER_TYPE.test(value)) return value;
    if (PLAIN.test(value) && !OTHER_TYPE.test(value) && value === value.trim()) return value;
    return JSON.stringify(value);
}

/** Parts of "[a, 'b, c']". */
function flowParts(raw: string): string[] {
    const out: string[] = [];
    let quote = "";
    let part = "";
    for (const c of raw.slice(1, -1)) {
        if (quote) quote = c === quote ? "" : quote;
        else if ((c === '"' || c === "'") && !part.trim()) quote = c;
        else if (c === ",") {
            out.push(part);
            part = "";
            continue;
        }
        part += c;
    }
    if (part.trim()) out.push(part);
    return out.map((p) => unquoted(p.trim()));
}

const DASH = /^(\s*- )(.*)$/;
const isAside = (line: string) => /^\s*(#|$)/.test(line);

/** A list, or a scalar as a list of one; null: there is none, or it is something else. */
export function listOf(text: string, key: string): string[] | null {
    const lines = text.split("\n");
    const b = find(lines, key);
    if (!b) return null;
    const { raw } = rawOf(lines[b.from]!);
    if (/^\[.*\]$/.test(raw)) return flowParts(raw);
    if (raw) return /^[[{|>&*!]/.test(raw) || b.to > b.from + 1 ? null : [unquoted(raw)];
    const items = lines
        .slice(b.from + 1, b.to)
        .filter((l) => !isAside(l))
        .map((l) => DASH.exec(l)?.[2]);
    return items.every((x) => x !== undefined) ? items.map((x) => unquoted(rawOf(`x: ${x}`).raw)) : null;
}

/** A scalar, or the parts of a list with commas; null: there is none, or it is something else. */
export function valueOf(text: string, key: string): string | null {
    const list = listOf(text, key);
    return list && list.join(", ");
}

function put(lines: string[], key: string, yaml: string): string {
    const b = find(lines, key);
    const out = [...lines];
    if (b) {
        const { head, tail } = rawOf(lines[b.from]!);
        out.splice(b.from, b.to - b.from, `${head} ${yaml}${tail}`);
        return out.join("\n");
    }
    while (out.length && !out.at(-1)!.trim()) out.pop();
    // New keys come before the lists at the end, which are long.
    const long = blocksOf(out).find((x) => x.to - x.from > 2);
    out.splice(long ? long.from : out.length, 0, `${key}: ${yaml}`);
    return `${out.join("\n")}\n`;
}

export function removeKey(text: string, key: string): string {
    const lines = text.split("\n");
    const b = find(lines, key);
    if (!b) return text;
    lines.splice(b.from, b.to - b.from);
    return lines.join("\n");
}

/** value "": the key goes. Several values: a list. */
export function setValue(text: string, key: string, value: string | string[], isText = true): string {
    const all = Array.isArray(value) ? value.filter((v) => v !== "") : [value];
    if (!all.length || all[0] === "") return removeKey(text, key);
    const now = listOf(text, key);
    if (now && now.join("\n") === all.join("\n")) return text;
    const yaml = Array.isArray(value) && all.length > 1 ? flow(all, isText) : scalar(all[0]!, isText);
    return put(text.split("\n"), key, yaml);
}

const flow = (all: string[], isText: boolean) =>
    `[${all.map((v) => (/[,[\]{}]/.test(v) ? JSON.stringify(v) : scalar(v, isText))).join(", ")}]`;

const overrideLike = (key: string) => {
    const tail = key.replace(/^[+~]+/, "");
    return (item: string) => item.replace(/^[+~]+/, "").startsWith(`${tail}=`);
};

/** The value of an override, "a.b.c=value". */
export function overrideOf(text: string, key: string): string | null {
    const item = (listOf(text, "overrides") ?? []).findLast(overrideLike(key));
    return item === undefined ? null : item.slice(item.indexOf("=") + 1);
}

/** value "": the override goes. */
export function setOverride(text: string, key: string, value: string): string {
    const lines = text.split("\n");
    const items = listOf(text, "overrides");
    if (items === null && hasKey(text, "overrides")) return text;
    const is = overrideLike(key);
    const item = (old?: string) => `${old ? old.slice(0, old.indexOf("=")) : key}=${value}`;
    const b = find(lines, "overrides");
    const isBlock = b && b.to > b.from + 1;
    const at = (items ?? []).findLastIndex(is);
    if (b && isBlock) {
        const all = Array.from({ length: b.to - b.from - 1 }, (_, i) => b.from + 1 + i);
        const dashes = all.filter((i) => !isAside(lines[i]!));
        const line = dashes[at];
        const dash = DASH.exec(lines[dashes[0]!]!)![1]!;
        if (line === undefined) {
            if (value !== "") lines.splice(b.to, 0, dash + scalar(item()));
        } else if (value === "") {
            lines.splice(line, 1);
            if (dashes.length === 1) lines.splice(b.from, 1);
        } else lines[line] = dash + scalar(item(items![at]));
        return lines.join("\n");
    }
    const next = [...(items ?? [])];
    if (value === "") {
        if (at >= 0) next.splice(at, 1);
    } else if (at >= 0) next[at] = item(next[at]);
    else next.push(item());
    const rest = removeKey(text, "overrides");
    if (!next.length) return rest;
    return `${rest.trimEnd()}\noverrides:\n${next.map((x) => `  - ${scalar(x)}`).join("\n")}\n`.trimStart();
}

/** Takes over one advice or change: a key of the spec, or one of the training's own settings. */
export function setAny(text: string, key: string, value: string): string {
    const bare = key.replace(/^overrides\./, "");
    return bare !== key || (bare.includes(".") && !bare.startsWith("checkpoint."))
        ? setOverride(text, bare, value)
        : setValue(text, bare, value, false);
}

/** A value as YAML: of a spec that is kept as JSON. */
export function toYaml(value: unknown, indent = ""): string {
    const flat = (v: unknown): string =>
        typeof v === "string"
            ? scalar(v)
            : v === null || typeof v !== "object"
              ? String(v)
              : Array.isArray(v)
                ? `[${v.map((x) => (typeof x === "string" && /[,[\]{}]/.test(x) ? JSON.stringify(x) : flat(x))).join(", ")}]`
                : `{${Object.entries(v)
                      .map(
                          ([k, x]) =>
                              `${scalar(k)}: ${typeof x === "string" && /[,[\]{}]/.test(x) ? JSON.stringify(x) : flat(x)}`,
                      )
                      .join(", ")}}`;
    if (value === null || typeof value !== "object" || Array.isArray(value)) return flat(value);
    return Object.entries(value)
        .map(([k, v]) => {
            const one = flat(v);
            if (Array.isArray(v) && one.length > 60)
                return `${indent}${scalar(k)}:\n${v.map((x) => `${indent}  - ${flat(x)}\n`).join("")}`;
            return v && typeof v === "object" && !Array.isArray(v) && one.length > 60
                ? `${indent}${scalar(k)}:\n${toYaml(v, `${indent}  `)}`
                : `${indent}${scalar(k)}: ${one}\n`;
        })
        .join("");
}

/** The spec of a job that was submitted, without what belongs to that job alone. */
export function textOfJob(spec: string): string {
    try {
        const { submission_id: _, ...keys } = JSON.parse(spec) as Record<string, unknown>;
        return toYaml(keys);
    } catch {
        return spec;
    }
}
