// SPDX-License-Identifier: Apache-2.0
// asked.ts - what the list of jobs is asked for, from its address: filters, order and page. The server filters and sorts;
// figures that it measures and keeps nowhere (GPU use, the expected start) order the rows that are here.

export const FILTERS = [
    "state",
    "flag",
    "failure",
    "failure_node",
    "gpus",
    "user",
    "project",
    "pool",
    "workload",
    "since",
    "ran_since",
    "ran_until",
] as const;
export type Filter = (typeof FILTERS)[number];
export const FLAGS = ["HUNG", "UNKNOWN", "IDLE", "RESTARTING", "HELD", "HOLDING"];
export const LIMIT = 1000;

/** Columns by which the server sorts. */
const SORTS = new Set(
    (
        "queued_at started_at ended_at ran name id user project workload pool state priority gpus restarts step " +
        "gpu_hours"
    ).split(" "),
);

/** "-step": by step, the greatest first. Undefined where the server cannot. */
export function orderOf(sort: string | null): { sort: string; order: "asc" | "desc" } | undefined {
    const key = sort?.replace("-", "") ?? "";
    return SORTS.has(key) ? { sort: key, order: sort!.startsWith("-") ? "desc" : "asc" } : undefined;
}

export function askOf(q: URLSearchParams) {
    const filters = Object.fromEntries(FILTERS.map((f) => [f, q.get(f) ?? undefined]));
    return {
        ...(filters as Record<Filter, string | undefined>),
        ...orderOf(q.get("sort")),
        q: q.get("q") ?? undefined,
        cursor: q.get("after") ?? undefined,
        all: q.get("mine") !== "1",
        limit: LIMIT,
    };
}

/** How many there are on all pages. Every job that fits is looked at: it is asked for now and then, not at each change. */
export const countsOf = (q: URLSearchParams) => ({
    ...askOf(q),
    cursor: undefined,
    sort: undefined,
    order: undefined,
    limit: 1,
    count: true,
});

/** Words with commas, one more or one less. */
export function toggled(list: string | null, word: string): string {
    const words = (list ?? "").split(",").filter((w) => w && w !== "live");
    return (words.includes(word) ? words.filter((w) => w !== word) : [...words, word]).join(",");
}

/** The command line that prints the same list. */
export function cliOf(q: URLSearchParams, shell: (word: string) => string): string {
    const parts = ["argus ls"];
    const order = orderOf(q.get("sort"));
    if (q.get("mine") !== "1") parts.push("-a");
    for (const f of FILTERS) if (q.get(f)) parts.push(`--${f.replace("_", "-")} ${shell(q.get(f)!)}`);
    if (order) parts.push(`--sort ${order.sort}`);
    if (order?.order === "asc") parts.push("--order asc");
    return parts.join(" ");
}
