// SPDX-License-Identifier: Apache-2.0
// deeds.ts - what of a command these pages do: a plan that a button makes, or the page that shows or does the same. Pure.
import type { Value } from "./sop";

/** What the operator wrote in the place of the examples; a name without a value is not set yet. */
export type Given = Record<string, string | undefined>;

const ACTIONS = ["drain_node", "remove_node", "restart_ray_head", "cleanup_job_artifacts", "stop_many"] as const;
export type Action = (typeof ACTIONS)[number];
const TEXTS = ["node", "deadline", "then", "job", "user", "project", "pool", "cluster"];

/** What argusd is asked for: its action and the members of the body. */
export interface Planned {
    action: Action;
    body: Record<string, string | boolean | string[]>;
    /** Values that the operator has not set. */
    missing: string[];
}

const WORD = /"([^"]*)"|'([^']*)'|(\S+)/g;
const NAME = /\$\{?(\w+)\}?/g;

/** Variables of a text that nobody has set. */
export const missingOf = (text: string, given: Given) => [
    ...new Set([...text.matchAll(NAME)].map((m) => m[1]!).filter((name) => !given[name])),
];
export const filled = (text: string, given: Given) => text.replace(NAME, (all, name: string) => given[name] || all);

/** The words of a line that is one command alone; null: a shell would make more of it. */
export const wordsOf = (line: string): string[] | null =>
    /[|;&<>`\\]|\$\(/.test(line) ? null : [...line.matchAll(WORD)].map((m) => m[1] ?? m[2] ?? m[3]!);

/** The plan of a line "argus ops plan ACTION --option VALUE"; null: it is another one, or says what no plan has. */
export function planOf(line: string, given: Given): Planned | null {
    const words = line.startsWith("argus ops plan ") ? wordsOf(line)?.slice(3) : null;
    if (!words) return null;
    const action = ACTIONS.find((a) => a === words[0]);
    if (!action) return null;
    const body: Planned["body"] = {};
    for (let i = 1; i < words.length; i++) {
        const name = /^--(\w+)$/.exec(words[i]!)?.[1];
        if (name === "force") body.force = true;
        else if (name === "jobs" && words[i + 1]) body.jobs = filled(words[++i]!, given).split(",");
        else if (name && TEXTS.includes(name) && words[i + 1]) body[name] = filled(words[++i]!, given);
        else return null;
    }
    return { action, body, missing: missingOf(line, given) };
}

export type PageName = "ops" | "nodes" | "users" | "events";
export interface Place {
    page: PageName;
    path: string;
    query: Record<string, string>;
}

/** Where a page does or shows what a command does: its beginning, the page, and the query by the variable it names. */
const PLACES: [begins: RegExp, page: PageName, path: string, query: Record<string, string>, of?: string][] = [
    [/^argus ops (apply|approve|ls)\b/, "ops", "/ops", {}],
    [/^argus node add\b/, "nodes", "/nodes", { do: "add" }],
    [/^argus node (drain|undrain|rm|check)\b/, "nodes", "/nodes", {}, "node"],
    [/^argus (node ls|gpus)\b/, "nodes", "/nodes", {}],
    [/^argus (user set|token|session)\b/, "users", "/people", { view: "users" }, "user"],
    [/^argus events\b/, "events", "/events", {}, "actor"],
];

/** By the first line of a command that a page has; null: none has one. */
export function placeOf(command: string, given: Given): Place | null {
    for (const line of command.split("\n"))
        for (const [begins, page, path, query, of] of PLACES) {
            if (!begins.test(line)) continue;
            const named = of && given[/\$\{?(\w+)/.exec(line)?.[1] ?? ""];
            return { page, path, query: named ? { ...query, [of]: named } : query };
        }
    return null;
}

/** The lines that set the values: the example as it stands, or what the operator wrote, quoted by `quote`. */
export const exportsOf = (values: Value[], given: Given, quote: (text: string) => string): string =>
    values.map((v) => `export ${v.name}=${given[v.name] ? quote(given[v.name]!) : v.value}`).join("\n");
