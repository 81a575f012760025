// SPDX-License-Identifier: Apache-2.0
// ranks.ts - the use of each rank's GPU as one picture: the chosen one, the median of all, and behind them those that
// differ most from the median. Pure.
//
// A curve is one GPU's: where two groups of workers count their ranks from 0 each, two GPUs have a rank 0, and a mean of
// the two would hide both.
import type { JobGpu, JobGpus } from "../../made/api";
import type { Cell } from "../../base/csv";

export type RankRow = Pick<JobGpu, "node" | "gpu" | "rank" | "mean">;

/** So many curves are drawn at once, with the chosen one: more thin lines are one grey surface. */
export const CURVES_MAX = 48;

/** Of each minute over those that are known then: what a GPU is held against. */
export function medians(rows: (number | null)[][]): (number | null)[] {
    return Array.from({ length: Math.max(0, ...rows.map((r) => r.length)) }, (_, i) => {
        const known = rows.flatMap((r) => r[i] ?? []).sort((a, b) => a - b);
        const half = known.length / 2;
        if (!known.length) return null;
        return known.length % 2 ? known[Math.floor(half)]! : (known[half - 1]! + known[half]!) / 2;
    });
}

/** How far a curve lies from another on the average, wherever both are known; 0 where nowhere. */
export function distance(a: (number | null)[], b: (number | null)[]): number {
    const apart = a.flatMap((v, i) => (v === null || b[i] == null ? [] : Math.abs(v - b[i]!)));
    return apart.length ? apart.reduce((sum, v) => sum + v, 0) / apart.length : 0;
}

/** What names a curve in the address of the page. */
export const keyOfRank = (r: Pick<RankRow, "node" | "gpu">) => `${r.node}/${r.gpu}`;

const NO_RANK = 1e9;
/** By rank; those without one are the last, as the API has them. */
const byRank = (rows: RankRow[]) => [...rows].sort((a, b) => (a.rank ?? NO_RANK) - (b.rank ?? NO_RANK));

export interface RankPicture {
    chosen: RankRow;
    median: (number | null)[];
    /** Those that differ most from the median are the first. */
    others: RankRow[];
    /** Every one of which anything is known, by rank: those that are not drawn, too. */
    all: RankRow[];
}

/** null: nothing is known of any. Where none is chosen, or it is not there, it is the one that differs most. */
export function rankPicture(rows: RankRow[], chosen: string | null): RankPicture | null {
    const all = byRank(rows.filter((r) => r.gpu !== null && r.mean.some((v) => v !== null)));
    const median = medians(all.map((r) => r.mean));
    const apart = new Map(all.map((r) => [r, distance(r.mean, median)]));
    const farthest = [...all].sort((a, b) => apart.get(b)! - apart.get(a)!);
    const lead = all.find((r) => keyOfRank(r) === chosen) ?? farthest[0];
    if (!lead) return null;
    const others = farthest.filter((r) => r !== lead).slice(0, CURVES_MAX - 1);
    return { chosen: lead, median, others, all };
}

/** When each point began, in seconds of the wall clock. */
export const timesOf = (of: Pick<JobGpus, "from" | "step_s" | "points">) =>
    Array.from({ length: of.points }, (_, i) => Date.parse(of.from) / 1000 + i * of.step_s);

/** The picture as a table, made when it is copied: a row a point, a column a curve. */
export function rankCsv(
    of: RankPicture,
    times: number[],
    name: (r: RankRow) => string,
): { head: string[]; rows: () => Cell[][] } {
    const curves = [of.chosen, ...of.others];
    return {
        head: ["time", "median", ...curves.map(name)],
        rows: () =>
            times.map((x, i) => [
                new Date(x * 1000).toISOString(),
                of.median[i] ?? null,
                ...curves.map((c) => c.mean[i] ?? null),
            ]),
    };
}
