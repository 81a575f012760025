// SPDX-License-Identifier: Apache-2.0
// usage.test.ts - GPU-hours of series, the picture of them, and what a change changed.
import { expect, test } from "vitest";
import type { UsageTime } from "../src/made/api";
import { ceilingOf } from "../src/kit/stack";
import { changesOf } from "../src/pages/events/diff";
import { nearest } from "../src/pages/job/verdict";
import { hours, PARTS, pointsOf, spans, stackOf, worked } from "../src/pages/usage/sums";
import { series } from "./made";

const time = (until: string): UsageTime => ({
    by: "cluster",
    from: "2026-11-01T00:00:00Z",
    to: "2026-11-01T03:00:00Z",
    until,
    step_s: 3600,
    points: 3,
    dealings: [],
    series: [],
});

test("hours of what is known, and nothing for what is not", () => {
    expect(hours([3600, null, 7200])).toBe(3);
    expect(hours([null, null])).toBeNull();
    expect(hours([])).toBeNull();
});

test("what worked is told of what was measured alone", () => {
    expect(worked(series("h20", { used: [7200], held_idle: [3600], unknown: [3600], busy: [3600] }))).toBe(0.5);
    expect(worked(series("h20", { used: [3600], held_idle: [0], unknown: [3600], busy: [0] }))).toBeNull();
});

test("what ran again is a part of its own, and used has the rest", () => {
    const s = series("h20", { used: [7200, null, 1800], redone: [1800, null, 1800], held_idle: [3600, null, 0] });
    expect(pointsOf(s, "used")).toEqual([5400, null, 0]);
    expect(pointsOf(s, "redone")).toEqual([1800, null, 1800]);
    expect(pointsOf(s, "held_idle")).toEqual([3600, null, 0]);
});

test("the last point is as long as it has lasted", () => {
    const u = time("2026-11-01T01:30:00Z");
    expect(spans(u)).toEqual([3600, 1800, 0]);
    const points = stackOf(u, series("h20", { used: [7200, 1800, 0], free: [7200, null, 0] }));
    expect(points.map((p) => [p.parts[0], p.parts[PARTS.indexOf("free")]])).toEqual([
        [2, 2],
        [1, null],
    ]);
});

test("an axis ends at a round number", () => {
    expect([[0], [0.3], [3], [7], [8], [61], [412]].map(ceilingOf)).toEqual([1, 0.4, 4, 8, 8, 80, 500]);
});

test("a change is told by the members that are not the same", () => {
    const data = {
        before: { spec: { user: "a", port: 22 }, want: "online" },
        after: { spec: { user: "b", port: 22 } },
    };
    expect(changesOf(data)).toEqual([
        { path: "spec.user", from: "a", to: "b" },
        { path: "want", from: "online", to: null },
    ]);
    expect(changesOf({ before: null, after: { note: "<b>" } })).toEqual([{ path: "note", from: null, to: "<b>" }]);
    expect(changesOf({ steps: 3 })).toBeNull();
    expect(changesOf(null)).toBeNull();
});

test("samples of a step that was not kept are those of the next one that was", () => {
    expect(nearest([1, 10, 20], 12)).toBe(20);
    expect(nearest([1, 10, 20], 10)).toBe(10);
    expect(nearest([1, 10], 30)).toBe(10);
    expect(nearest([], 3)).toBeNull();
});
