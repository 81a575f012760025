// SPDX-License-Identifier: Apache-2.0
// weigh.ts - what the policies of a simulation come to beside each other. Nothing is drawn here.
import type { SimulationPolicy, SimulationResult } from "../../made/api";

export const POLICIES = ["fair", "easy", "fifo"] as const;
export type Policy = (typeof POLICIES)[number];
export const COLOR: Record<Policy, string> = { fair: "--c1", easy: "--c2", fifo: "--c3" };

export interface Row {
    policy: Policy;
    of: SimulationPolicy;
}
/** In one order everywhere. */
export const rowsOf = (r: SimulationResult): Row[] =>
    POLICIES.flatMap((policy) => (r.policies[policy] ? [{ policy, of: r.policies[policy] }] : []));

export interface Verdict {
    best: Row;
    /** The worst, and by how many per cent of its mean wait the best is below it; null: there is no other, or nobody
     * waits longer than a minute anywhere. */
    worst: Row | null;
    percent: number;
}
export function verdictOf(rows: Row[]): Verdict | null {
    const byWait = [...rows].sort((a, b) => a.of.wait.mean - b.of.wait.mean);
    const best = byWait[0];
    const last = byWait.at(-1);
    if (!best || !last) return null;
    const percent = last.of.wait.mean > 0 ? Math.round(100 * (1 - best.of.wait.mean / last.of.wait.mean)) : 0;
    const counts = last !== best && last.of.wait.mean >= 60 && percent >= 1;
    return { best, worst: counts ? last : null, percent: counts ? percent : 0 };
}

/** Of a column: is this the best there is, where they differ? */
export function isBest(rows: Row[], row: Row, value: (r: Row) => number, least: boolean): boolean {
    const all = rows.map(value);
    const best = least ? Math.min(...all) : Math.max(...all);
    return value(row) === best && all.some((v) => v !== best);
}

/** Moments of the buckets, in seconds since 1970. */
export function timesOf(r: SimulationResult, n: number): number[] {
    const from = Date.parse(r.start) / 1000;
    return Array.from({ length: n }, (_, i) => from + i * r.bucket);
}

export interface Sizes {
    size: string;
    jobs: number;
    rows: { policy: Policy; mean: number; p95: number }[];
}
/** Classes of size in which there are jobs, and the longest wait of all, for the scale. */
export function sizesOf(rows: Row[]): { sizes: Sizes[]; most: number } {
    const names = Object.keys(rows[0]?.of.gangs ?? {});
    const sizes = names
        .map((size) => ({
            size,
            jobs: Math.max(0, ...rows.map((r) => r.of.gangs[size]?.jobs ?? 0)),
            rows: rows.map((r) => ({
                policy: r.policy,
                mean: r.of.gangs[size]?.mean ?? 0,
                p95: r.of.gangs[size]?.p95 ?? 0,
            })),
        }))
        .filter((s) => s.jobs > 0);
    return { sizes, most: Math.max(0, ...sizes.flatMap((s) => s.rows.map((r) => Math.max(r.mean, r.p95)))) };
}
