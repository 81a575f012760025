// SPDX-License-Identifier: Apache-2.0
// people.test.ts - the bar of an account: held, borrowed, guarantee and ceiling in one length; and on which jobs the
// alerts of a project hold.
import { expect, test } from "vitest";
import type { Limits, Usage } from "../src/made/api";
import { shell } from "../src/kit/parts";
import { partsOf } from "../src/pages/people/bar";
import { alertOptions, firingJobs, holdsOn } from "../src/pages/people/firing";

const quota = (gpus_guaranteed: number | null, gpus_ceiling: number | null) =>
    ({ gpus_guaranteed, gpus_ceiling }) as Limits;
const usage = (gpus: number, gpus_borrowed = 0) => ({ gpus, gpus_borrowed }) as Usage;

test("the ceiling is the whole length, or the cluster where there is none", () => {
    expect(partsOf(quota(8, 16), usage(12, 4), 64)).toEqual({ sure: 0.5, borrowed: 0.25, mark: 0.5 });
    expect(partsOf(quota(null, null), usage(16, 16), 64)).toEqual({ sure: 0.25, borrowed: 0, mark: null });
});

test("an account beyond its ceiling fills the bar and no more", () => {
    expect(partsOf(quota(0, 8), usage(16, 16), 64)).toEqual({ sure: 0, borrowed: 1, mark: 0 });
    expect(partsOf(quota(null, null), usage(0), 0)).toEqual({ sure: 0, borrowed: 0, mark: null });
});

test("the jobs of a project on which an alert of a metric is open are asked, each once", () => {
    const alert = (name: string, more = {}) => ({ rule: "job_metric", project: "rl", name, open: true, ...more });
    const alerts = [
        alert("a"),
        alert("b", { open: false }),
        alert("c", { project: "other" }),
        alert("d", { rule: "job_verdict" }),
        alert("a"),
    ];
    expect(firingJobs("rl", alerts)).toEqual(["a"]);
});

test("an alert holds on the jobs that say so, whoever asked for it", () => {
    const said = (alert: string, stands: boolean) => ({ alert, stands });
    const jobs = [
        { id: "a", metric_alerts: [said("x > 1", true), said("y > 1", false)] },
        { id: "b", metric_alerts: [said("x > 1", false)] },
        { id: "c", metric_alerts: null },
    ] as never[];
    expect(holdsOn("x > 1", jobs)).toEqual([jobs[0]]);
    expect(holdsOn("y > 1", jobs)).toEqual([]);
});

test("the command line gives a project all of its alerts anew", () => {
    expect(alertOptions(["x > 1", "y is nan"], shell)).toBe(" --alert 'x > 1' --alert 'y is nan'");
    expect(alertOptions([], shell)).toBe(" --no-alerts");
});
