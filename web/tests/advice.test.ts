// SPDX-License-Identifier: Apache-2.0
// advice.test.ts - what would have spared a job its waste: the words, the changed spec, and the jobs behind a figure.
import { expect, test } from "vitest";
import type { AdviceTaken, JobWaste } from "../src/made/api";
import { textOfJob } from "../src/base/spectext";
import { actOf, advised, adviceOf, canTake, isLittle, medianOf, shapeOf, tookOf } from "../src/pages/usage/advice";
import { periodOf, ranIn } from "../src/pages/usage/period";

const waste = (more: Partial<JobWaste>) =>
    ({
        id: "a",
        workload: "grpo",
        advice: "none",
        gain_hours: 0,
        advised_gpus: null,
        save_freq: null,
        advised_timeout_s: null,
        ...more,
    }) as JobWaste;
const job = { n_gpus_per_node: 8 };

test("fewer GPUs are on as few nodes as they take", () => {
    expect(shapeOf(12, 8)).toEqual({ nnodes: 2, each: 6 });
    expect(shapeOf(13, 8)).toEqual({ nnodes: 2, each: 7 });
    expect(shapeOf(3, 8)).toEqual({ nnodes: 1, each: 3 });
    expect(shapeOf(2, 0.5)).toEqual({ nnodes: 4, each: 0.5 });
    const text = advised(
        "nnodes: 2 # a gang\nn_gpus_per_node: 8\n",
        waste({ advice: "fewer_gpus", advised_gpus: 5 }),
        job,
    );
    expect(text).toBe("nnodes: 1 # a gang\nn_gpus_per_node: 5\n");
});

test("the key of saves is the one that the spec has", () => {
    const of = waste({ advice: "save_more_often", save_freq: 20, gain_hours: 3 });
    expect(advised("workload: grpo\n", of, job)).toContain("save_freq: 20");
    expect(advised("overrides: [trainer.save_freq=100]\n", of, job)).toContain("trainer.save_freq=20");
    const ray = { ...of, workload: "ray" }; // it has no such key
    expect(advised("workload: ray\n", ray, job)).toBe("workload: ray\n");
    expect([of, ray, waste({}), waste({ advice: "faster_data" })].map(canTake)).toEqual([true, false, false, false]);
    expect(canTake({ ...ray, advice: "shorter_time_limit" })).toBe(true);
    expect(adviceOf(of)).toContain("3 GPU-h");
});

test("a shorter timeout tells no gain; data has no key", () => {
    const of = waste({ advice: "shorter_time_limit", advised_timeout_s: 3000, gain_hours: null });
    expect(advised("timeout: 1d\n", of, job)).toBe("timeout: 50m\n");
    expect(adviceOf(of)).not.toContain("GPU-h");
    expect(advised("nnodes: 1\n", waste({ advice: "faster_data", gain_hours: 2 }), job)).toBe("nnodes: 1\n");
    expect(adviceOf(waste({}))).toBe("");
});

test("the button of an advice does what can be done about it", () => {
    const gpus = waste({ advice: "fewer_gpus", state: "SUCCEEDED" });
    expect(actOf(gpus, false)).toBe("submit");
    // One that waits again keeps its shape; its timeout may change.
    expect(actOf({ ...gpus, state: "QUEUED" }, false)).toBe("submit");
    expect(actOf({ ...gpus, state: "QUEUED", advice: "shorter_time_limit" }, false)).toBe("change");
    expect(actOf(gpus, true)).toBeNull(); // a viewer submits nothing
    expect(actOf(waste({ advice: "faster_data" }), true)).toBe("steps");
    expect(actOf(waste({}), false)).toBeNull();
    expect(actOf(waste({ advice: "save_more_often", workload: "ray" }), false)).toBeNull(); // it has no such key
});

test("what one digit shows as none is little", () => {
    expect([0, 0.04, 0.05, 3].map(isLittle)).toEqual([true, true, false, false]);
});

test("an advice that was taken says what it was, and its error only where there is one", () => {
    const took = (more: Partial<AdviceTaken>) => ({ advised_gpus: null, save_freq: null, ...more }) as AdviceTaken;
    expect(tookOf(took({ advised_gpus: 1 }))).toBe("1 GPU");
    expect(tookOf(took({ advised_gpus: 4 }))).toBe("4 GPUs");
    expect(tookOf(took({ save_freq: 20 }))).toBe("save every 20 steps");
    expect(tookOf(took({}))).toBe("–");
    expect(medianOf({ taken_error: 0.124 })).toBe("12%");
    expect(medianOf({ taken_error: 0 })).toBe("0%");
    expect(medianOf({ taken_error: null })).toBe("–");
});

test("a spec without what belongs to one job alone", () => {
    expect(textOfJob('{"submission_id":"x","nnodes":1}')).toBe("nnodes: 1\n");
    expect(textOfJob("nnodes: 1 # text\n")).toBe("nnodes: 1 # text\n");
});

test("the jobs behind a figure are those that held slots in that time", () => {
    const now = Date.parse("2026-11-15T12:00:00Z");
    expect(ranIn(periodOf("7d", now))).toEqual({ ran_since: "7d", ran_until: undefined });
    expect(ranIn(periodOf("2026-10", now))).toEqual({
        ran_since: "2026-10-01T00:00:00Z",
        ran_until: "2026-11-01T00:00:00Z",
    });
});
