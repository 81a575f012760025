// SPDX-License-Identifier: Apache-2.0
// asked.ts - a waiting job otherwise: from a hint or a form to the change, its command line, and how much later others
// would start. Pure.
import type { Hint, JobChange, JobItem, Plan } from "../../made/api";
import { ms } from "../../base/say";

/** What of a hint can be asked for; null: somebody else has to do something. */
export function changeOf(h: Pick<Hint, "kind"> & Partial<Hint>): JobChange | null {
    if (h.kind === "pool") return { pool: h.pool };
    if (h.kind === "shape") return { nnodes: h.nnodes, n_gpus_per_node: h.n_gpus_per_node };
    if (h.kind === "timeout") return { timeout: `${h.timeout}s` };
    if (h.kind === "priority") return { priority: h.priority };
    return null;
}

/** What the address says that the form begins with: ?timeout=50m, from an advice. null: nothing. */
export const begunWith = (q: URLSearchParams): JobChange | null => {
    const timeout = q.get("timeout");
    return timeout ? { timeout } : null;
};

/** The form's texts; "" and what is so already is no change. */
export interface Wish {
    pool: string;
    nnodes: string;
    n_gpus_per_node: string;
    timeout: string;
    priority: string;
}

type Asked = Pick<JobItem, "pool" | "nnodes" | "n_gpus_per_node" | "priority">;
export const wishOf = (j: Asked): Wish => ({
    pool: j.pool ?? "",
    nnodes: String(j.nnodes),
    n_gpus_per_node: String(j.n_gpus_per_node),
    timeout: "",
    priority: String(j.priority),
});

export function changed(j: Asked, to: Wish): JobChange | null {
    const was = wishOf(j);
    const change: Record<string, string | number> = {};
    for (const key of Object.keys(was) as (keyof Wish)[]) {
        const value = to[key].trim();
        if (!value || value === was[key]) continue;
        change[key] = key === "pool" || key === "timeout" ? value : Number(value);
    }
    return Object.keys(change).length ? (change as JobChange) : null;
}

const OPTION: Record<string, string> = { n_gpus_per_node: "gpus" };
export function changeCli(id: string, change: JobChange, shell: (word: string) => string): string {
    const words = Object.entries(change).map(([k, v]) => `--${OPTION[k] ?? k} ${shell(String(v))}`);
    return ["argus change", ...words, shell(id)].join(" ");
}

/** Those that would start later first, then those that would start sooner; in milliseconds. */
export function pushedBack(others: Plan["others"]) {
    return others
        .map((o) => ({ ...o, by: o.before && o.after ? ms(o.after) - ms(o.before) : o.before ? Infinity : -Infinity }))
        .sort((a, b) => b.by - a.by);
}
