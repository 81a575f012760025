// SPDX-License-Identifier: Apache-2.0
// The marks that the alerts of a metric leave on its curve.
import { describe, expect, it } from "vitest";
import { alerted, alertMarks } from "../src/pages/job/alertmarks";

const T0 = 1_790_000_000;
const text = "actor/* < 0.5 for 3 steps";
const span = (metric: string, step: number, seen_at: number, ended_at: number, value: number | null = 0.25) => ({
    metric,
    step,
    seen_at,
    ended_at,
    value,
});
const alerts = [
    {
        alert: text,
        spans: [span("actor/entropy", 6, 8, 10), span("actor/kl", 1, 3, 0), span("actor/entropy", 12, 14, 0)],
    },
    { alert: "actor/entropy is nan" },
    { alert: "actor/entropy < 9", spans: [span("actor/entropy", 9, 9, 0, null)] },
] as never;
const series = (steps: number[], times: (number | null)[]) =>
    ({
        step: steps,
        value: steps,
        min: steps,
        max: steps,
        time: times.map((t) => (t === null ? null : T0 + t)),
    }) as never;
const whole = series(
    Array.from({ length: 15 }, (_, i) => i + 1),
    Array.from({ length: 15 }, (_, i) => 10 * (i + 1)),
);

describe("the marks of alerts", () => {
    it("stand where each span of this metric fired and ended", () => {
        const marks = alertMarks("actor/entropy", alerts, whole, false);
        expect(marks.map((m) => [m.x, m.kind])).toEqual([
            [8, "alert"],
            [9, "alert"],
            [10, "alert_end"],
            [14, "alert"], // it holds: there is no end
        ]);
        expect(marks[0]!.says).toBe(`${text}: fired at step 8 with 0.25, true since step 6`);
        expect(marks[1]!.says).toBe("actor/entropy < 9: fired at step 9 with –, true since step 9");
        expect(marks[2]!.says).toBe(`${text}: ended at step 10`);
        expect(alertMarks("actor/kl", alerts, whole, false).map((m) => m.x)).toEqual([3]);
        expect(alertMarks("actor/loss", alerts, whole, false)).toEqual([]);
    });
    it("stand by the clock where that step was told, or the next one that has a moment", () => {
        const thin = series([1, 8, 9, 11], [10, null, 90, 110]);
        expect(alertMarks("actor/entropy", alerts, thin, true).map((m) => m.x - T0)).toEqual([90, 90, 110, 110]);
    });
    it("are none where there is no curve, or no moment", () => {
        expect(alertMarks("actor/entropy", alerts, undefined, false)).toEqual([]);
        expect(alertMarks("actor/entropy", alerts, series([], []), false)).toEqual([]);
        expect(alertMarks("actor/entropy", alerts, series([1, 9], [null, null]), true)).toEqual([]);
        expect(alertMarks("actor/entropy", null, whole, false)).toEqual([]);
    });
    it("stay on a curve that has not come as far", () => {
        expect(alertMarks("actor/kl", alerts, series([1, 2], [10, 20]), false).map((m) => m.x)).toEqual([2]);
    });
});

describe("the metrics of alerts", () => {
    it("are those of which one ever held, each once", () => {
        expect(alerted(alerts)).toEqual(["actor/entropy", "actor/kl"]);
        expect(alerted(null)).toEqual([]);
    });
});
