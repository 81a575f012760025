// SPDX-License-Identifier: Apache-2.0
// recovery.test.ts - where a job's time went, and whether its GPUs may rest.
import { describe, expect, it } from "vitest";
import type { Recovery } from "../src/made/api";
import { canRest, restsUntil, WHY_MOST, whyWrong } from "../src/pages/job/idle";
import { hasTimes, timeRows } from "../src/pages/job/recovery";

const recovery = (more: Partial<Recovery>): Recovery => ({
    ettr: null,
    mttr_s: null,
    failures: 0,
    interruptions: 0,
    repaired: 0,
    held_s: 0,
    waited_s: 0,
    first_wait_s: 0,
    productive_s: 0,
    detect_s: 0,
    diagnose_s: 0,
    queue_s: 0,
    start_s: 0,
    redo_s: 0,
    other_s: 0,
    ...more,
});

describe("a job's time", () => {
    it("is told part by part, of what was held and waited for", () => {
        const r = recovery({ ettr: 0.5, held_s: 3000, waited_s: 600, productive_s: 1800, redo_s: 1200, queue_s: 600 });
        expect(timeRows(r, 2).map((x) => [x.part, x.seconds, x.gpuHours])).toEqual([
            ["productive", 1800, 1],
            ["redo", 1200, 2 / 3],
            ["queue", 600, 1 / 3],
        ]);
        expect(timeRows(r, 2).reduce((sum, x) => sum + x.share, 0)).toBeCloseTo(1);
    });
    it("names training even where there was none", () => {
        const r = recovery({ failures: 1, held_s: 100, start_s: 100 });
        expect(timeRows(r, 1).map((x) => [x.part, x.share])).toEqual([
            ["productive", 0],
            ["start", 1],
        ]);
    });
    it("is not told of a job that told of no step and never failed, or held nothing", () => {
        expect(hasTimes(null)).toBe(false);
        expect(hasTimes(recovery({ held_s: 100, other_s: 100 }))).toBe(false);
        expect(hasTimes(recovery({ failures: 1 }))).toBe(false);
        expect(hasTimes(recovery({ ettr: 0.9, held_s: 100 }))).toBe(true);
        expect(hasTimes(recovery({ failures: 1, held_s: 100 }))).toBe(true);
    });
});

describe("the GPUs of a job", () => {
    const now = Date.parse("2026-11-01T12:00:00Z");
    const job = {
        state: "RUNNING" as const,
        gpus: 2,
        idle_until: "2026-11-01T14:00:00Z",
        idle_reason: "a judge scores on CPUs",
    };
    it("may rest up to the time that its owner said", () => {
        expect(restsUntil(job, now)).toEqual({ until: job.idle_until, why: job.idle_reason });
        expect(restsUntil(job, Date.parse(job.idle_until))).toBeNull();
        expect(restsUntil({ ...job, idle_until: null }, now)).toBeNull();
        expect(restsUntil({ ...job, state: "SUCCEEDED" }, now)).toBeNull();
    });
    it("cannot rest where it has none or does not run", () => {
        expect(canRest(job)).toBe(true);
        expect(canRest({ ...job, gpus: 0 })).toBe(false);
        expect(canRest({ ...job, state: "QUEUED" })).toBe(false);
    });
    it("need a reason, as long as the server takes in bytes", () => {
        expect(whyWrong("  ")).toBe("none");
        expect(whyWrong("x".repeat(WHY_MOST))).toBeNull();
        expect(whyWrong("因".repeat(WHY_MOST / 3 + 1))).toBe("long");
    });
});
