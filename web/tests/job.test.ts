// SPDX-License-Identifier: Apache-2.0
// The time for which the GPUs of a job are asked for, what its attempts came to, and where the evidence of a finding
// stands.
import { describe, expect, it } from "vitest";
import { placesOf, ranOf, waitedOf, whyEnded } from "../src/pages/job/attempts";
import { logPlaceOf } from "../src/pages/job/evidence";
import { attemptUses, kwh } from "../src/pages/job/gpuuse";
import { hasEnded, spanAsked } from "../src/pages/job/lately";
import { askOf, inTurn, standings } from "../src/pages/job/standing";

type Attempts = Parameters<typeof spanAsked>[0]["attempts"];
const tried = (...spans: [string | null, string | null][]) => ({
    attempts: spans.map(([started_at, ended_at], i) => ({ k: i + 1, started_at, ended_at })) as unknown as Attempts,
});
const at = (hour: number) => new Date(hour * 3_600_000).toISOString();

describe("the use of a job's GPUs", () => {
    it("is that of the last hour while an attempt runs", () => {
        expect(spanAsked(tried([at(0), null]))).toEqual({ since: "1h", step: "1m" });
        expect(hasEnded(tried([at(0), at(1)], [at(2), null]))).toBe(false);
    });
    it("is that of the whole attempt once it has ended, in as many points as one can see", () => {
        expect(spanAsked(tried([at(0), at(0.5)]))).toEqual({ step: "1m" });
        expect(spanAsked(tried([at(0), at(240)]))).toEqual({ step: "240m" });
    });
    it("does not end where a job waits for its next attempt, or never began", () => {
        expect(spanAsked(tried([at(0), at(10)]))).toEqual({ step: "10m" });
        expect(spanAsked(tried([null, at(10)]))).toEqual({ step: "1m" });
    });
});

describe("an attempt", () => {
    const times = (...[queued_at, accepted_at, started_at, ended_at]: (string | null)[]) => ({
        queued_at: queued_at!,
        accepted_at: accepted_at!,
        started_at: started_at!,
        ended_at: ended_at!,
    });
    const now = 10 * 3_600_000;
    const hours = (millis: number | null) => (millis === null ? null : millis / 3_600_000);
    it("waits until Ray has it, and goes on waiting while nobody has", () => {
        expect(hours(waitedOf(times(at(1), at(3), at(4), at(5)), now))).toBe(2);
        expect(hours(waitedOf(times(at(1), null, at(4), null), now))).toBe(3);
        expect(hours(waitedOf(times(at(1), null, null, at(6)), now))).toBe(5);
        expect(hours(waitedOf(times(at(1), null, null, null), now))).toBe(9);
        expect(waitedOf(times(null, at(3), at(4), at(5)), now)).toBeNull();
    });
    it("runs from its start to its end, or to now; a clock that was set back makes no time less than none", () => {
        expect(hours(ranOf(times(at(1), at(3), at(4), at(5)), now))).toBe(1);
        expect(hours(ranOf(times(at(1), at(3), at(4), null), now))).toBe(6);
        expect(ranOf(times(at(1), at(3), null, at(5)), now)).toBeNull();
        expect(ranOf(times(at(1), at(3), at(11), null), now)).toBe(0);
    });
    it("names its nodes with the GPUs that it held there", () => {
        const nodes = [
            { name: "w1", gpu_ids: [0, 1] },
            { name: "w2", gpu_ids: [] },
        ];
        expect(placesOf(nodes)).toBe("w1 (0 1), w2");
        expect(placesOf([])).toBe("");
    });
    it("says the class of its failure once, and without a finding how it ended", () => {
        const why = (name: string, sentence: string, end: string | null = null) =>
            whyEnded({ finding: { class: name, sentence, node: null, advice: null }, end });
        expect(why("gpu_oom", "gpu_oom: it was full")).toEqual({ class: "gpu_oom", says: "it was full" });
        expect(why("gpu_oom", "gpu_oom on w1: full")).toEqual({ class: "gpu_oom", says: "on w1: full" });
        expect(why("gpu_oom", "显存不足")).toEqual({ class: "gpu_oom", says: "显存不足" });
        expect(why("gpu_oom", "", "exit code 1")).toEqual({ class: "gpu_oom", says: "exit code 1" });
        expect(whyEnded({ finding: null, end: "exit code 0" })).toEqual({ class: null, says: "exit code 0" });
    });
});

describe("what attempts used", () => {
    const used = (watched_s: number | null, busy_s: number | null, used_joules: number | null) => ({
        watched_s,
        busy_s,
        used_joules,
    });
    const row = (attempt: number, ...of: Parameters<typeof used>) => ({
        ...{ node: "a", gpu: 0, uuid: "", rank: null, by_processes: false, mem_peak_bytes: null },
        attempt,
        ...used(...of),
    });
    it("is added up over the GPUs of each, the newest last", () => {
        const earlier = [row(2, 10, 5, 100), row(1, 10, 1, 50), row(2, 10, 10, 100)];
        expect(attemptUses({ series: [used(20, 5, 7)], earlier }, 3)).toEqual([
            { attempt: 1, gpus: 1, joules: 50, busy: 0.1 },
            { attempt: 2, gpus: 2, joules: 200, busy: 0.75 },
            { attempt: 3, gpus: 1, joules: 7, busy: 0.25 },
        ]);
    });
    it("leaves out what was not measured", () => {
        const series = [used(null, null, null), used(null, null, null)];
        expect(attemptUses({ series, earlier: [] }, 1)).toEqual([]);
        const part = attemptUses({ series: [used(10, null, null), used(10, 5, 3)], earlier: [] }, 1);
        expect(part).toEqual([{ attempt: 1, gpus: 2, joules: 3, busy: 0.5 }]);
    });
    it("is said in kilowatt-hours", () => {
        expect([kwh(3.6e6), kwh(9000), kwh(0)]).toEqual(["1 kWh", "0.0025 kWh", "0 kWh"]);
    });
});

describe("evidence", () => {
    const quote = (source: string | null, line = 7) => ({ source, line, offset: 90 });
    it("stands in the driver's log, or in one that was copied from a node", () => {
        expect(logPlaceOf(quote(null))).toEqual({ offset: 90, from: null });
        expect(logPlaceOf(quote("logs/driver.log"))).toEqual({ offset: 90, from: null });
        expect(logPlaceOf(quote("logs/workers/gpu-01/w.out"))).toEqual({ offset: 90, from: "worker:gpu-01/w.out" });
    });
    it("stands in no log where argusd says it itself, or a node answered", () => {
        expect(logPlaceOf(quote(null, 0))).toBeNull();
        expect(logPlaceOf(quote("stacks/2/w1.json"))).toBeNull();
        expect(logPlaceOf(quote("/shared/code/rewards.py"))).toBeNull();
    });
});

describe("the answer of a node", () => {
    const frames = [{ function: "all_reduce", file: "c10d.py", line: 28 }];
    const answer = [
        { pid: 1, rank: "10", threads: [{ name: "MainThread", active: true, frames }] },
        { pid: 2, rank: "9", text: "Thread MainThread (idle)" },
        { pid: 3, rank: null, state: "T", threads: "no list" },
        { rank: "1" },
        "no process",
    ];
    it("is read with what is strange left out, from its text too", () => {
        const read = standings(JSON.stringify(answer))!;
        expect(read.map((s) => s.text)).toEqual([
            "Thread MainThread (active)\n    all_reduce (c10d.py:28)",
            "Thread MainThread (idle)",
            "",
        ]);
        expect(standings(answer)).toEqual(read);
        expect([standings("{"), standings({}), standings("7")]).toEqual([null, null, null]);
    });
    it("has the odd process first, the others by rank", () => {
        const turn = (node: string) => inTurn(standings(answer)!, node, { node: "w1", pid: "3" }).map((s) => s.pid);
        expect([turn("w1"), turn("w2")]).toEqual([
            [3, 2, 1],
            [2, 1, 3],
        ]);
    });
    it("is found by what the finding quotes", () => {
        const quotes = [null, "stacks/12/w1.json"].map((source) => ({ source, offset: 0, line: 0, text: "" }));
        expect(askOf({ evidence: quotes })).toBe(12);
        expect(askOf({ evidence: quotes.slice(0, 1) })).toBeNull();
    });
});
