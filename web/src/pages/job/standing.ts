// SPDX-License-Identifier: Apache-2.0
// standing.ts - where the processes of a job stood, from what a node answered (a file that the job could write, too: a
// member that is missing or strange is left out). Pure.
import type { Finding } from "../../made/api";

export interface Standing {
    pid: number;
    rank: string | null;
    actor: string | null;
    /** Of /proc: "T" is stopped. */
    state: string | null;
    /** Its threads with their frames, the innermost first. */
    text: string;
}

const PROCESSES = 256;
const record = (x: unknown) => (x && typeof x === "object" ? (x as Record<string, unknown>) : {});
const list = (x: unknown): unknown[] => (Array.isArray(x) ? x : []);
const said = (x: unknown) => (typeof x === "string" && x ? x : null);

function textOf(p: Record<string, unknown>): string {
    const whole = said(p.text);
    if (whole) return whole;
    const threads = list(p.threads).map(record);
    return threads
        .flatMap((t) => [
            `Thread ${said(t.name) ?? "?"} (${t.active === true ? "active" : "idle"})`,
            ...list(t.frames).map((x) => {
                const f = record(x);
                return `    ${said(f.function) ?? "?"} (${said(f.file) ?? "?"}:${typeof f.line === "number" ? f.line : 0})`;
            }),
        ])
        .join("\n");
}

/** The answer as it was read: its text, or what was made of it. Null: it is none. */
export function standings(answer: unknown): Standing[] | null {
    let all = answer;
    if (typeof answer === "string")
        try {
            all = JSON.parse(answer) as unknown;
        } catch {
            return null;
        }
    if (!Array.isArray(all)) return null;
    return all.slice(0, PROCESSES).flatMap((x: unknown) => {
        const p = record(x);
        if (typeof p.pid !== "number") return [];
        return [{ pid: p.pid, rank: said(p.rank), actor: said(p.actor), state: said(p.state), text: textOf(p) }];
    });
}

type Odd = Pick<Finding, "node" | "pid">;
export const isOdd = (s: Standing, node: string, f: Odd) => f.node === node && f.pid === String(s.pid);

/** The odd one first, then by rank; what has none is last. */
export function inTurn(all: Standing[], node: string, f: Odd): Standing[] {
    const place = (s: Standing) => (isOdd(s, node, f) ? -1 : s.rank === null ? Infinity : Number(s.rank) || 0);
    return [...all].sort((a, b) => (place(a) === place(b) ? a.pid - b.pid : place(a) - place(b)));
}

/** Which question to the nodes a finding quotes: "stacks/2/w1.json" is of the second; null: none. */
export function askOf(f: Pick<Finding, "evidence">): number | null {
    for (const q of f.evidence) {
        const n = /^stacks\/(\d{1,5})\/[^/]+\.json$/.exec(q.source ?? "")?.[1];
        if (n) return Number(n);
    }
    return null;
}
