// SPDX-License-Identifier: Apache-2.0
// lead.ts - what a lead reads first, computed: what each pool did in whole per cent that are 100 together, the same of the
// period before and a week ago, who had what and of whom, what each may hold, and who waits for how many GPUs. Nothing is
// drawn here.
import type { JobItem, JobWaste, Quota, UsageDealings, UsageSeries } from "../../made/api";
import { ms } from "../../base/say";
import { ranIn, type Period } from "./period";
import { held, hours, PARTS, pointsOf, worked, type Part } from "./sums";

/** Whole numbers that are `sum` together: what is left over goes to the largest remainders. */
export function wholes(values: number[], sum = 100): number[] {
    const total = values.reduce((a, b) => a + b, 0);
    if (total <= 0) return values.map(() => 0);
    const exact = values.map((v) => (v / total) * sum);
    const out = exact.map(Math.floor);
    const left = sum - out.reduce((a, b) => a + b, 0);
    const order = exact.map((v, i) => ({ i, rest: v - Math.floor(v) })).sort((a, b) => b.rest - a.rest);
    for (const { i } of order.slice(0, left)) out[i]!++;
    return out;
}

export interface PoolShare {
    name: string;
    capacity: number;
    /** In the order of PARTS: GPU-hours, and whole per cent that are 100 together. */
    parts: { part: Part; hours: number; percent: number }[];
    /** Per cent held; null: not known. */
    held: number | null;
    heldBefore: number | null;
    heldWeekBefore: number | null;
    /** 0 to 1, of what was measured. */
    works: number | null;
}

function heldShare(s: UsageSeries | undefined): number | null {
    const capacity = s ? hours(s.capacity) : null;
    return s && capacity ? (held(s) / capacity) * 100 : null;
}

/** Pools without capacity are left out: there is no bar of nothing. */
export function poolShares(now: UsageSeries[], before: UsageSeries[], weekBefore: UsageSeries[] = []): PoolShare[] {
    return now
        .filter((s) => (hours(s.capacity) ?? 0) > 0)
        .map((s) => {
            const of = PARTS.map((k) => Math.max(0, hours(pointsOf(s, k)) ?? 0));
            const percent = wholes(of);
            return {
                name: s.name,
                capacity: hours(s.capacity)!,
                parts: PARTS.map((part, i) => ({ part, hours: of[i]!, percent: percent[i]! })),
                held: heldShare(s),
                heldBefore: heldShare(before.find((b) => b.name === s.name)),
                heldWeekBefore: heldShare(weekBefore.find((b) => b.name === s.name)),
                works: worked(s),
            };
        })
        .sort((a, b) => b.capacity - a.capacity);
}

/** Filters of /jobs: what held slots in that time, the most GPU-hours first. */
const mostIn = (period: Pick<Period, "from" | "to">) => ({ sort: "-gpu_hours", ...ranIn(period) });

/** Filters of /jobs that show whose hours a part of a pool's bar are; null: no job has them, or no filter says which. */
export function behindPart(part: Part, pool: string, period: Pick<Period, "from" | "to">) {
    if (!pool) return null; // machines without a label: no job can name them
    if (part === "blocked") return { state: "QUEUED", pool, sort: "-gpus" };
    const isHeld = part === "used" || part === "redone" || part === "held_idle";
    return isHeld ? { pool, ...mostIn(period) } : null;
}

/** Filters of /jobs that show which jobs failed by this class and held slots in that time. */
export const behindClass = (name: string | null, period: Pick<Period, "from" | "to">) => ({
    failure: name ?? undefined,
    ...mostIn(period),
});

/** The same of those for whose failure this node may be at fault. */
export const behindNode = (name: string | null, period: Pick<Period, "from" | "to">) => ({
    failure_node: name ?? undefined,
    ...mostIn(period),
});

/** The same of those that wait for so many GPUs, the oldest first. */
export function behindSize({ least, most }: Pick<Waiting, "least" | "most">) {
    const gpus = most === null ? `${least}-` : least === most ? `${least}` : `${least}-${most}`;
    return { state: "QUEUED", gpus, sort: "queued_at" };
}

/** Several projects together, in what projects had of each other. */
export const OTHERS = "*";

/** What a project had of others, in GPU-hours. */
export interface Dealt {
    waitTaken: number;
    waitGiven: number;
    lent: number;
    /** To whom, most first. */
    to: { project: string; hours: number }[];
}

export interface Account {
    kind: "project" | "user";
    name: string;
    held: number;
    /** GPU-hours that worked; null: nobody measured. */
    computed: number | null;
    idle: number;
    /** Of projects alone: nobody lends to a person; undefined, too, where this reader is not told. */
    dealt: Dealt | undefined;
}

function dealtOf(d: UsageDealings): Dealt {
    return {
        waitTaken: d.wait_taken_gpu_s / 3600,
        waitGiven: d.wait_given_gpu_s / 3600,
        lent: d.lent_gpu_s / 3600,
        to: d.lent.map((x) => ({ project: x.project, hours: x.gpu_s / 3600 })),
    };
}

/** Whoever held something in that time, or lent or waited, most first. */
export function accounts(kind: Account["kind"], of: UsageSeries[], dealings: UsageDealings[] = []): Account[] {
    const names = new Set([...of.map((s) => s.name), ...dealings.map((d) => d.project)]);
    return [...names]
        .map((name) => {
            const s = of.find((x) => x.name === name);
            const told = dealings.find((d) => d.project === name);
            return {
                kind,
                name,
                held: s ? held(s) : 0,
                computed: !s || worked(s) === null ? null : hours(s.busy),
                idle: (s && hours(s.held_idle)) ?? 0,
                dealt: told && dealtOf(told),
            };
        })
        .filter((a) => a.held > 0 || (a.dealt && a.dealt.waitTaken + a.dealt.waitGiven + a.dealt.lent > 0))
        .sort((a, b) => b.held - a.held);
}

/** Those who have a limit of GPUs or of GPU-hours, or hold or wait for some now, projects first; each kind by who held
 * most this month. */
export function limited(quotas: Quota[]): Quota[] {
    const has = ({ quota: q, usage: u }: Quota) =>
        q.gpus_guaranteed !== null ||
        q.gpus_ceiling !== null ||
        q.gpu_hours_per_month !== null ||
        u.gpus + u.queued + u.gpu_hours_this_month > 0;
    return quotas
        .filter(has)
        .sort(
            (a, b) =>
                a.kind.localeCompare(b.kind) ||
                b.usage.gpu_hours_this_month - a.usage.gpu_hours_this_month ||
                a.name.localeCompare(b.name),
        );
}

export interface Waiting {
    /** GPUs of a job: from, to; to null: and more. */
    least: number;
    most: number | null;
    jobs: number;
    gpus: number;
    /** Milliseconds. */
    median: number;
    longest: number;
    /** Who waits longest. */
    id: string;
}
const SIZES: [number, number | null][] = [
    [0, 0],
    [1, 1],
    [2, 4],
    [5, 8],
    [9, 16],
    [17, 64],
    [65, null],
];
const gpusOf = (j: JobItem) => j.nnodes * j.n_gpus_per_node;

/** Those that wait, by the size of their gang; sizes that nobody waits for are left out. */
export function waitingBySize(jobs: JobItem[], now: number): Waiting[] {
    return SIZES.flatMap(([least, most]) => {
        const mine = jobs
            .filter((j) => Math.ceil(gpusOf(j)) >= least && (most === null || Math.ceil(gpusOf(j)) <= most))
            .map((j) => ({ j, waits: Math.max(0, now - ms(j.queued_at)) }))
            .sort((a, b) => a.waits - b.waits);
        const last = mine[mine.length - 1];
        if (!last) return [];
        return [
            {
                least,
                most,
                jobs: mine.length,
                gpus: mine.reduce((sum, x) => sum + gpusOf(x.j), 0),
                median: mine[Math.floor((mine.length - 1) / 2)]!.waits,
                longest: last.waits,
                id: last.j.id,
            },
        ];
    });
}

/** The job whose waste could have been spared most: by its advice, else the largest waste at all; null: none. */
export function worstLoss(jobs: JobWaste[]): JobWaste | null {
    const spared = (j: JobWaste) => j.gain_hours ?? 0;
    const told = jobs.filter((j) => j.waste_hours > 0);
    const best = [...told].sort((a, b) => spared(b) - spared(a) || b.waste_hours - a.waste_hours)[0];
    return best ?? null;
}
