// SPDX-License-Identifier: Apache-2.0
// outlook.ts - how many GPUs each pool will need, computed for the picture and for the sentence above it: when a pool is
// full, what its weeks are in the mean, and where the band and its curve lie. Nothing is drawn here.
import type { ForecastDay, ForecastPool } from "../../made/api";
import { ceilingOf } from "../../kit/stack";

export const WEEKS = ["4", "8", "13"] as const;
export type Weeks = (typeof WEEKS)[number];
export const MORE_MAX = 1000;
const WEEK = 7;
const DAY = 86_400_000;

export const weeksAsked = (text: string | null): Weeks => WEEKS.find((n) => n === text) ?? WEEKS[0];

/** Nodes more, or, below 0, fewer; null: nothing that can be asked. */
export function moreAsked(text: string | null): number | null {
    const n = /^[+-]?\d{1,4}$/.test(text ?? "") ? Number(text) : 0;
    return n !== 0 && Math.abs(n) <= MORE_MAX ? n : null;
}

/** A day of UTC, "12-07": the server counts by those, whatever the zone of who reads. */
export const dayOf = (at: string) => at.slice(5, 10);

export type Filled =
    /** Too short a history: nothing is foretold. */
    | { kind: "short"; days: number; needed: number }
    /** No node of it is there. */
    | { kind: "away" }
    /** It is full on that day, and by the upper end of the band on `early`, where that is another day. */
    | { kind: "full"; day: string; in: number; early: string | null }
    /** By the upper end of the band alone. */
    | { kind: "maybe"; day: string }
    | { kind: "never" };

/** today: as the server says it. */
export function filledOf(p: ForecastPool, today: string): Filled {
    if (!p.enough) return { kind: "short", days: p.days, needed: p.days_needed };
    if (p.capacity_gpus <= 0) return { kind: "away" };
    if (p.full_at)
        return {
            kind: "full",
            day: dayOf(p.full_at),
            in: Math.round((Date.parse(p.full_at) - Date.parse(today)) / DAY),
            early: p.full_early_at && p.full_early_at !== p.full_at ? dayOf(p.full_early_at) : null,
        };
    return p.full_early_at ? { kind: "maybe", day: dayOf(p.full_early_at) } : { kind: "never" };
}

/** All nodes first, then what is full soonest; what no node is in comes last. */
export function bySoonest(pools: ForecastPool[]): ForecastPool[] {
    const soon = (at: string | null) => (at ? Date.parse(at) : Infinity);
    const order = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
    return [...pools].sort(
        (a, b) =>
            Number(a.pool !== null) - Number(b.pool !== null) ||
            Number(a.capacity_gpus <= 0) - Number(b.capacity_gpus <= 0) ||
            order(soon(a.full_at), soon(b.full_at)) ||
            order(soon(a.full_early_at), soon(b.full_early_at)) ||
            (a.pool ?? "").localeCompare(b.pool ?? ""),
    );
}

export interface Week {
    from: string;
    gpus: number;
    low: number;
    high: number;
}

/** Means of the whole weeks. */
export function weeksOf(points: ForecastDay[]): Week[] {
    return Array.from({ length: Math.floor(points.length / WEEK) }, (_, i) => {
        const days = points.slice(i * WEEK, (i + 1) * WEEK);
        const mean = (key: "gpus" | "low" | "high") => days.reduce((sum, d) => sum + d[key], 0) / WEEK;
        return { from: dayOf(days[0]!.at), gpus: mean("gpus"), low: mean("low"), high: mean("high") };
    });
}

export interface Picture {
    /** GPUs at its upper edge. */
    top: number;
    /** Points of an SVG of 100 by 100: the band around, the curve in its middle. */
    band: string;
    curve: string;
    /** How far down the capacity's line lies. */
    capacity: number;
}

const round = (v: number) => Math.round(v * 100) / 100;

/** null: there is nothing to draw. */
export function pictureOf({ points, capacity_gpus }: Pick<ForecastPool, "points" | "capacity_gpus">): Picture | null {
    if (points.length < 2) return null;
    const top = ceilingOf([capacity_gpus, ...points.map((p) => p.high)]);
    const down = (gpus: number) => round(100 - (gpus / top) * 100);
    const places = (gpus: (p: ForecastDay) => number) =>
        points.map((p, i) => `${round((i / (points.length - 1)) * 100)},${down(gpus(p))}`);
    return {
        top,
        band: [...places((p) => p.high), ...places((p) => p.low).reverse()].join(" "),
        curve: places((p) => p.gpus).join(" "),
        capacity: down(capacity_gpus),
    };
}
