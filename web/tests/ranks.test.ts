// SPDX-License-Identifier: Apache-2.0
// ranks.test.ts - which curves of a job's GPUs are drawn, in which order, and as which table.
import { expect, test } from "vitest";
import { drawnAt } from "../src/kit/drawn";
import {
    CURVES_MAX,
    distance,
    keyOfRank,
    medians,
    rankCsv,
    rankPicture,
    timesOf,
    type RankRow,
} from "../src/pages/job/ranks";

const row = (gpu: number | null, mean: (number | null)[], rank: number | null = gpu, node = "gpu-01"): RankRow => ({
    node,
    gpu,
    rank,
    mean,
});

test("the median is of those that are known at that minute", () => {
    expect(
        medians([
            [0.1, null],
            [0.5, null],
            [0.9, 0.4],
        ]),
    ).toEqual([0.5, 0.4]);
    expect(
        medians([
            [0.1, null, 0.2],
            [0.9, 0.4],
            [0.5, 0.6, null],
        ]),
    ).toEqual([0.5, 0.5, 0.2]);
    expect(medians([[null], [null]])).toEqual([null]);
    expect(medians([])).toEqual([]);
});

test("the distance is over the minutes that both know", () => {
    expect(distance([0.5, null, 0.9], [0.7, 0.1, 0.9])).toBeCloseTo(0.1);
    expect(distance([null], [0.5])).toBe(0);
});

test("without a choice it is the one that differs most; a choice stands; a choice that is not there does not", () => {
    const rows = [row(0, [0.8, 0.8]), row(1, [0.2, 0.2]), row(2, [0.82, 0.8]), row(3, [0.5, 0.7])];
    expect(rankPicture(rows, null)!.chosen.gpu).toBe(1);
    const picture = rankPicture(rows, keyOfRank(rows[0]!))!;
    expect(picture.chosen.gpu).toBe(0);
    expect(picture.others.map((r) => r.gpu)).toEqual([1, 2, 3]);
    expect(rankPicture(rows, "gpu-99/0")!.chosen.gpu).toBe(1);
});

test("the node's own row, and a GPU of which nothing is known, are no curves", () => {
    expect(rankPicture([row(null, [0.5]), row(0, [null, null])], null)).toBeNull();
    expect(rankPicture([row(0, [null]), row(1, [0.3])], null)!.all.map((r) => r.gpu)).toEqual([1]);
});

test("they are chosen from by rank, and those without a rank are the last", () => {
    const rows = [row(0, [0.5], 3), row(1, [0.5], null), row(2, [0.5], 0)];
    expect(rankPicture(rows, null)!.all.map((r) => r.rank)).toEqual([0, 3, null]);
});

test("two GPUs whose workers have the same rank stay two curves", () => {
    const rows = [row(0, [0.1], 0), row(0, [0.9], 0, "gpu-02")];
    expect(rankPicture(rows, "gpu-02/0")!.chosen.node).toBe("gpu-02");
    expect(rankPicture(rows, null)!.all.length).toBe(2);
});

test("of very many those that differ most are drawn, and the median is of all", () => {
    const rows = Array.from({ length: 512 }, (_, i) => row(i, [i < 500 ? 0.8 : 0.1 + i / 10_000]));
    const picture = rankPicture(rows, "gpu-01/3")!;
    expect(picture.others.length).toBe(CURVES_MAX - 1);
    expect(picture.others.slice(0, 12).every((r) => r.gpu! >= 500)).toBe(true);
    expect(picture.all.length).toBe(512);
    expect(picture.median).toEqual([0.8]);
});

test("the table has a row a point, and a column a curve that is drawn", () => {
    const of = { from: "2026-07-28T10:00:00Z", step_s: 60, points: 2 };
    const picture = rankPicture([row(0, [0.5, null]), row(1, [0.7, 0.9])], "gpu-01/0")!;
    const table = rankCsv(picture, timesOf(of), (r) => `rank ${r.rank}`);
    expect(table.head).toEqual(["time", "median", "rank 0", "rank 1"]);
    expect(table.rows()).toEqual([
        ["2026-07-28T10:00:00.000Z", 0.6, 0.5, 0.7],
        ["2026-07-28T10:01:00.000Z", 0.9, null, 0.9],
    ]);
});

test("thin lines are drawn first, and each keeps its own place among its kind", () => {
    const at = (...thin: boolean[]) => drawnAt(thin.map((isThin) => ({ isThin })));
    expect(at(false, false, true, true)).toEqual([2, 3, 0, 1]);
    expect(at(true, false, true)).toEqual([0, 2, 1]);
    expect(drawnAt([])).toEqual([]);
});
