// SPDX-License-Identifier: Apache-2.0
// moment.ts - which figure an alert is about, and the time around the moment at which it opened. Pure.

/** Facts of rules, as the figures of nodes call them. */
const FIGURE_OF: Record<string, Record<string, string>> = {
    node: { disk_free: "disk_free_bytes" },
    gpu: {
        use: "gpu_util_ratio",
        temperature: "gpu_temperature_celsius",
        slowdown_temperature: "gpu_temperature_celsius",
        throttled: "gpu_temperature_celsius",
        xid: "gpu_xid",
        ecc_uncorrected: "gpu_ecc_uncorrected",
    },
};
/** What is looked at where the rule names none of them: whether the thing worked. */
const USUAL: Record<string, string> = { node: "cpu_util_ratio", gpu: "gpu_util_ratio", job: "gpu_util_ratio" };

/** when: the condition of its rule; "": not known. null: there is no curve of such a thing. */
export function figureOf(kind: string, when: string): string | null {
    const known = FIGURE_OF[kind] ?? {};
    const named = when.match(/[a-z_]+/g)?.find((word) => Object.hasOwn(known, word));
    return named ? known[named]! : (USUAL[kind] ?? null);
}

const MINUTE = 60_000;
const BEFORE = 30 * MINUTE;
const AFTER = 30 * MINUTE;
const AFTER_END = 10 * MINUTE;
const MOST = 6 * 60 * MINUTE;

export interface Around {
    since: string;
    /** Not there: up to now. */
    until?: string;
}

/** Half an hour before it opened, until a while after it opened and ended. */
export function around(opened: string, ended: string | null, now: number): Around {
    const at = Date.parse(opened);
    const last = Math.max(at + AFTER, ended ? Date.parse(ended) + AFTER_END : 0);
    const to = Math.min(last, at + MOST);
    return {
        since: new Date(at - BEFORE).toISOString(),
        ...(to < now && { until: new Date(to).toISOString() }),
    };
}

/** What the axis counts: percent of a ratio, GiB of bytes. */
export function scaleOf(figure: string): { by: number; unit: string } {
    if (figure.endsWith("_ratio")) return { by: 100, unit: "%" };
    if (figure.endsWith("_bytes")) return { by: 1 / 1024 ** 3, unit: "GiB" };
    if (figure.endsWith("_celsius")) return { by: 1, unit: "°C" };
    return { by: 1, unit: "" };
}
