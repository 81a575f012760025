// SPDX-License-Identifier: Apache-2.0
// differ.ts - what differs between specs, key by key; steps as training time and as time by the clock. Pure.
import type { Series } from "../../made/api";

/** A spec as keys with dots; an override is a key of its own. */
export function flattened(spec: unknown): Map<string, string> {
    const out = new Map<string, string>();
    const walk = (value: unknown, key: string) => {
        if (key === "overrides" && Array.isArray(value))
            for (const item of value as unknown[]) {
                const text = String(item);
                const cut = text.indexOf("=");
                if (cut < 0) out.set(text, "");
                else out.set(text.slice(0, cut).replace(/^\++/, ""), text.slice(cut + 1));
            }
        else if (Array.isArray(value))
            out.set(key, value.map((v) => (typeof v === "object" ? JSON.stringify(v) : String(v))).join(" "));
        else if (value && typeof value === "object")
            for (const [k, v] of Object.entries(value)) walk(v, key ? `${key}.${k}` : k);
        else if (value !== null && value !== undefined) out.set(key, String(value));
    };
    walk(spec, "");
    return out;
}

export interface Difference {
    key: string;
    /** Of each spec; null: it is not set there. */
    values: (string | null)[];
    same: boolean;
}

interface Used {
    resolved_spec: unknown;
    verl: string | null;
    snapshots: { key: string; name: string; hash: string }[];
    inputs: unknown;
    nodes: { name: string }[];
}

const short = (hash: string | null | undefined) => (hash ? ` ${hash.slice(0, 12)}` : "");

/** What a job really used, beside what its spec says: names of code and data with their hashes, versions, nodes. */
export function usedBy(j: Used): Record<string, unknown> {
    const out: Record<string, unknown> = {};
    for (const s of j.snapshots) out[`hash of ${s.key}`] = `${s.name}${short(s.hash)}`;
    const inputs = Array.isArray(j.inputs) ? (j.inputs as { key: string; ref?: string; hash?: string | null }[]) : [];
    for (const i of inputs) out[`hash of ${i.key}`] = `${i.ref ?? ""}${short(i.hash)}`;
    if (j.verl) out["version of verl"] = j.verl;
    if (j.nodes.length) out["nodes"] = j.nodes.map((n) => n.name).join(" ");
    return out;
}

/** Keys in the order in which they first come up. What is only a name of the run itself is left out. */
export function differences(specs: unknown[]): Difference[] {
    const maps = specs.map(flattened);
    const keys = [...new Set(maps.flatMap((m) => [...m.keys()]))].filter((k) => k !== "submission_id");
    return keys.map((key) => {
        const values = maps.map((m) => m.get(key) ?? null);
        return { key, values, same: values.every((v) => v === values[0]) };
    });
}

/** Seconds of training until each step: the time of the steps, summed up; a point stands for the steps since the last
 * one. null: the run does not tell how long its steps take. */
export function trainingTime(steps: Series | undefined): ((step: number) => number) | null {
    if (!steps?.step.length) return null;
    const at: number[] = [];
    let sum = 0;
    let last = steps.step[0]! - 1;
    steps.step.forEach((step, i) => {
        sum += (steps.value[i] ?? 0) * (step - last);
        last = step;
        at.push(sum);
    });
    return (step) => {
        let lo = 0;
        let hi = steps.step.length - 1;
        while (lo < hi) {
            const mid = (lo + hi) >> 1;
            if (steps.step[mid]! < step) lo = mid + 1;
            else hi = mid;
        }
        return at[lo]!;
    };
}

/** A curve over the hours since the job started, by the clock: waits between two attempts are in it. Points whose moment
 * nobody wrote down are left out; without a start the first point is at 0. */
export function sinceStart(s: Series, started: string | null): { x: number[]; y: (number | null)[] } {
    const first = started ? Date.parse(started) / 1000 : s.time.find((at) => at !== null);
    const x: number[] = [];
    const y: (number | null)[] = [];
    s.time.forEach((at, i) => {
        if (at === null || first === undefined || first === null) return;
        x.push((at - first) / 3600);
        y.push(s.value[i] ?? null);
    });
    return { x, y };
}
