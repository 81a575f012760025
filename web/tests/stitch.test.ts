// SPDX-License-Identifier: Apache-2.0
// A curve over all attempts of a job.
import { describe, expect, it } from "vitest";
import { takesLog } from "../src/kit/chart";
import { diffLines } from "../src/pages/job/lines";
import { linesOf, marksOf, stepAt } from "../src/pages/job/stitch";

const T0 = 1_790_000_000;
const at = (s: number) => new Date((T0 + s) * 1000).toISOString();
const series = (steps: number[], times: (number | null)[], value = 1) => ({
    step: steps,
    value: steps.map((s) => s * value),
    min: [],
    max: [],
    time: times.map((t) => (t === null ? null : T0 + t)),
});
const metrics = {
    series: { loss: series([1, 2, 3, 4], [10, 20, 130, 140]) },
    superseded: [{ attempt: 1, from_step: 3, to_step: 4, series: { loss: series([3, 4], [30, 40], 9) } }],
};
const happened = {
    restart: (k: number) => `attempt ${k}`,
    job: {
        attempts: [
            { k: 1, started_at: at(0), ended_at: at(50) },
            { k: 2, started_at: at(100), ended_at: null },
        ] as never,
    },
    checkpoints: [
        { step: 2, at: at(25) },
        { step: 9, at: at(900) },
    ],
    findings: [{ attempt: 1, class: "gpu_oom" }],
};

describe("the lines", () => {
    it("are the newest, and grey what was run again", () => {
        const [now, old] = linesOf("loss", metrics as never, false);
        expect([now!.x, now!.isOld]).toEqual([[1, 2, 3, 4], undefined]);
        expect([old!.x, old!.y, old!.isOld]).toEqual([[3, 4], [27, 36], true]);
        expect(linesOf("nothing", metrics as never, false)).toEqual([]);
    });
    it("stand by the clock without what has no moment", () => {
        const odd = { series: { loss: series([1, 2], [null, 20]) }, superseded: [] };
        expect(linesOf("loss", odd as never, true)[0]!.x).toEqual([T0 + 20]);
    });
});

describe("the marks", () => {
    it("have a place on the steps", () => {
        expect(marksOf(happened as never, metrics as never, false)).toEqual([
            { x: 2, label: "", kind: "checkpoint" },
            { x: 3, label: "attempt 2", kind: "restart" }, // at the first step that it ran again
            { x: 4, label: "gpu_oom", kind: "finding" }, // where the first one stood
        ]);
    });
    it("have a place by the clock", () => {
        const marks = marksOf(happened as never, metrics as never, true);
        expect(marks.map((m) => [m.kind, m.x - T0])).toEqual([
            ["checkpoint", 25],
            ["finding", 50],
            ["restart", 100],
        ]);
    });
    it("are none without a curve", () => {
        expect(marksOf(happened as never, { series: {}, superseded: [] }, false)).toEqual([]);
    });
    it("find the step of a moment", () => {
        expect(stepAt(metrics.series.loss, T0 + 25)).toBe(2);
        expect(stepAt(metrics.series.loss, T0)).toBeNull();
    });
});

describe("a logarithm", () => {
    it("takes what is above 0", () => {
        const line = (y: (number | null)[]) => ({ label: "", x: [], y, color: "--c1" });
        expect(takesLog([line([1, null, 2])])).toBe(true);
        expect(takesLog([line([1]), line([0, 2])])).toBe(false);
        expect(takesLog([line([null])])).toBe(false);
    });
});

describe("a diff", () => {
    it("has a line for what goes and what comes", () => {
        const edits = [
            { key: "nnodes", old: "2", new: "1" },
            { key: "env.X", old: null, new: "a\nb" },
            { key: "name", old: "x", new: null },
        ];
        expect(diffLines(edits).map((l) => l.sign + l.text)).toEqual([
            "-nnodes: 2",
            "+nnodes: 1",
            "+env.X: a",
            "+b",
            "-name: x",
        ]);
    });
});
