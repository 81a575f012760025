// SPDX-License-Identifier: Apache-2.0
// beside.test.ts - two jobs' samples by step, and which step is compared with which.
import { expect, test } from "vitest";
import { besideRows, scoreTyped, sinceStep } from "../src/pages/job/beside";

test("two jobs stand beside each other by step, the newest first", () => {
    const ours = [
        { step: 3, says: "a" },
        { step: 3, says: "b" },
        { step: 1, says: "c" },
    ];
    const theirs = [
        { step: 2, says: "d" },
        { step: 3, says: "e" },
    ];
    expect(besideRows(ours, theirs)).toEqual([
        { step: 3, ours: ours.slice(0, 2), theirs: theirs.slice(1) },
        { step: 2, ours: [], theirs: theirs.slice(0, 1) },
        { step: 1, ours: ours.slice(2), theirs: [] },
    ]);
    expect(besideRows([], [])).toEqual([]);
    const steps = (more: { ours: boolean; theirs: boolean }) => besideRows(ours, theirs, more).map((row) => row.step);
    expect(steps({ ours: false, theirs: true })).toEqual([3, 2]); // of step 1 the other job may have some, too
    expect(steps({ ours: true, theirs: false })).toEqual([3, 2, 1]);
});

test("a step is compared with the one that was chosen, else with the one before", () => {
    expect(sinceStep([30, 20, 10], "", "")).toBe(20);
    expect(sinceStep([30, 20, 10], "", "10")).toBe(10);
    expect(sinceStep([30, 20, 10], "20", "20")).toBe(10); // a step has not changed since itself
    expect(sinceStep([30, 20, 10], "10", "")).toBe(20); // there is none before
    expect(sinceStep([30, 20, 10], "30", "7")).toBe(20); // it is not kept
    expect(sinceStep([30], "", "")).toBe(null);
    expect(sinceStep([], "", "3")).toBe(null);
});

test("a score is a number or is not asked for", () => {
    expect(["0.5", " -1 ", "", " ", "x", "1e-3"].map(scoreTyped)).toEqual([
        "0.5",
        "-1",
        undefined,
        undefined,
        undefined,
        "1e-3",
    ]);
});
