// SPDX-License-Identifier: Apache-2.0
// Which jobs the first page tells of.
import { expect, it } from "vitest";
import type { JobItem } from "../src/made/api";
import { alarmOf, failedLately, once, ownInOrder } from "../src/pages/overview/own";

const job = (id: string, more: Partial<JobItem> = {}) => ({ id, state: "RUNNING", flags: [], ...more }) as JobItem;
const ids = (jobs: JobItem[]) => jobs.map((j) => j.id);

it("puts what runs before what waits, and that before what is over", () => {
    const old = job("old");
    const line = ["q1", "q2"].map((id) => job(id, { state: "QUEUED" }));
    const over = job("over", { state: "FAILED", ended_at: "2026-01-01T00:00:00Z" });
    expect(ids(ownInOrder([...line, old], [over, ...line]))).toEqual(["old", "q1", "q2", "over"]);
});

it("tells a job once, however many lists have it", () => {
    expect(ids(once([job("a"), job("b")], [job("b"), job("c")]))).toEqual(["a", "b", "c"]);
});

it("knows the flags that ask for a person, and failures of the last day", () => {
    expect(alarmOf(job("x", { flags: ["IDLE", "HUNG"] }))).toBe("HUNG");
    expect(alarmOf(job("x", { flags: ["HELD"] }))).toBeUndefined();
    const now = Date.parse("2026-01-02T00:00:00Z");
    const ended = (ended_at: string) => failedLately({ state: "FAILED", ended_at }, now);
    expect(ended("2026-01-01T01:00:00Z")).toBe(true);
    expect(ended("2025-12-31T23:00:00Z")).toBe(false);
});
