// SPDX-License-Identifier: Apache-2.0
// outlook.test.ts - when a pool is full, its weeks, and where the band and its curve lie.
import { expect, test } from "vitest";
import type { ForecastDay, ForecastPool } from "../src/made/api";
import { bySoonest, filledOf, moreAsked, pictureOf, weeksAsked, weeksOf } from "../src/pages/usage/outlook";

const TODAY = "2026-11-30T00:00:00Z";
const days = (gpus: number[], width = 1): ForecastDay[] =>
    gpus.map((g, i) => ({
        at: new Date(Date.parse(TODAY) + i * 86_400_000).toISOString(),
        gpus: g,
        low: Math.max(0, g - width),
        high: g + width,
    }));

const pool = (more: Partial<ForecastPool>): ForecastPool => ({
    pool: null,
    enough: true,
    days: 70,
    days_needed: 35,
    weeks: 4,
    capacity_gpus: 8,
    last_week_gpus: 4,
    saturated_days: 0,
    method: "trend",
    trials: 56,
    error_gpus: 0.2,
    naive_error_gpus: 0.4,
    covered: 0.8,
    full_at: null,
    full_early_at: null,
    points: [],
    what_if: null,
    ...more,
});

test("when a pool is full is told by the curve, then by the upper end of the band", () => {
    const full = { full_at: "2026-12-04T00:00:00Z", full_early_at: "2026-12-01T00:00:00Z" };
    expect(filledOf(pool(full), TODAY)).toEqual({ kind: "full", day: "12-04", in: 4, early: "12-01" });
    expect(filledOf(pool({ full_at: TODAY, full_early_at: TODAY }), TODAY)).toEqual({
        kind: "full",
        day: "11-30",
        in: 0,
        early: null,
    });
    expect(filledOf(pool({ full_early_at: full.full_early_at }), TODAY)).toEqual({ kind: "maybe", day: "12-01" });
    expect(filledOf(pool({}), TODAY)).toEqual({ kind: "never" });
});

test("nothing is foretold of too short a history, nor of a pool without nodes", () => {
    expect(filledOf(pool({ enough: false, days: 12, capacity_gpus: 0 }), TODAY)).toEqual({
        kind: "short",
        days: 12,
        needed: 35,
    });
    expect(filledOf(pool({ capacity_gpus: 0 }), TODAY)).toEqual({ kind: "away" });
});

test("what is full soonest comes first, behind all nodes; what no node is in comes last", () => {
    const pools = [
        pool({ pool: "away", capacity_gpus: 0, full_at: "2026-12-01T00:00:00Z" }),
        pool({ pool: "b" }),
        pool({ pool: "a" }),
        pool({ pool: "early", full_early_at: "2026-12-03T00:00:00Z" }),
        pool({ pool: "late", full_at: "2026-12-20T00:00:00Z", full_early_at: "2026-12-02T00:00:00Z" }),
        pool({ pool: "soon", full_at: "2026-12-10T00:00:00Z", full_early_at: "2026-12-09T00:00:00Z" }),
        pool({}),
    ];
    expect(bySoonest(pools).map((p) => p.pool)).toEqual([null, "soon", "late", "early", "a", "b", "away"]);
    expect(pools[0]!.pool).toBe("away");
});

test("weeks are the means of seven days; what is left of a week is none", () => {
    expect(weeksOf(days([1, 2, 3, 4, 5, 6, 7, 14, 14, 14, 14, 14, 14, 14, 99]))).toEqual([
        { from: "11-30", gpus: 4, low: 3, high: 5 },
        { from: "12-07", gpus: 14, low: 13, high: 15 },
    ]);
    expect(weeksOf(days([1, 2]))).toEqual([]);
});

test("the band goes along its upper edge and back along the lower one", () => {
    expect(pictureOf(pool({ points: days([1, 4, 7]), capacity_gpus: 8 }))).toEqual({
        top: 8,
        band: "0,75 50,37.5 100,0 100,25 50,62.5 0,100",
        curve: "0,87.5 50,50 100,12.5",
        capacity: 0,
    });
    const over = pictureOf(pool({ points: days([9, 9], 0), capacity_gpus: 4 }))!;
    expect([over.top, over.curve, over.capacity]).toEqual([10, "0,10 100,10", 60]);
    expect(pictureOf(pool({ points: days([1]) }))).toBeNull();
});

test("an address asks for what can be asked", () => {
    expect(["8", "5", null].map(weeksAsked)).toEqual(["8", "4", "4"]);
    expect(["2", "-3", "+4", "0", "1001", "1e3", "x", "", null].map(moreAsked)).toEqual([
        2,
        -3,
        4,
        null,
        null,
        null,
        null,
        null,
        null,
    ]);
});
