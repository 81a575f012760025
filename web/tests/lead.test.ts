// SPDX-License-Identifier: Apache-2.0
// lead.test.ts - what a lead reads first, computed.
import { expect, test } from "vitest";
import type { JobItem, JobWaste, Quota, UsageDealings } from "../src/made/api";
import {
    accounts,
    behindClass,
    behindNode,
    behindPart,
    behindSize,
    limited,
    poolShares,
    waitingBySize,
    wholes,
    worstLoss,
} from "../src/pages/usage/lead";
import { monthsUntil, periodOf } from "../src/pages/usage/period";
import { series } from "./made";

const H = 3600;

test("whole per cent are always 100 together", () => {
    expect(wholes([1, 1, 1])).toEqual([34, 33, 33]);
    expect(wholes([0, 0])).toEqual([0, 0]);
    for (let seed = 1; seed < 500; seed++) {
        const of = Array.from({ length: 7 }, (_, i) => (seed * (i + 3) * 7919) % (i * 97 + 11));
        if (of.some((v) => v > 0)) expect(wholes(of).reduce((a, b) => a + b)).toBe(100);
    }
});

test("a pool's bar is its capacity, beside the time before", () => {
    const day = (used: number, free: number) =>
        series("h20", { capacity: [(used + free) * H], used: [used * H], free: [free * H] });
    const [one] = poolShares([day(61, 39), series("gone", {})], [day(40, 60)]);
    expect(one!.parts.reduce((sum, x) => sum + x.hours, 0)).toBeCloseTo(one!.capacity);
    expect(one!.parts.find((x) => x.part === "used")!.percent).toBe(61);
    expect([one!.held, one!.heldBefore]).toEqual([61, 40]);
    expect(poolShares([day(1, 1)], [])[0]!.heldBefore).toBeNull();
    expect(one!.heldWeekBefore).toBeNull();
    expect(poolShares([day(61, 39)], [day(40, 60)], [day(55, 45)])[0]!.heldWeekBefore).toBeCloseTo(55);
});

test("who held nothing is not told, and what nobody measured is no nought", () => {
    const told = accounts("user", [
        series("bob", { used: [2 * H], held_idle: [0], unknown: [2 * H], busy: [0] }),
        series("alice", { used: [6 * H], held_idle: [2 * H], unknown: [0], busy: [3 * H] }),
        series("carol", { used: [0], held_idle: [0] }),
    ]);
    expect(told.map((a) => [a.name, a.held, a.computed])).toEqual([
        ["alice", 8, 3],
        ["bob", 2, null],
    ]);
});

test("what projects had of each other stands beside what they held", () => {
    const dealings = (project: string, more: Partial<UsageDealings>): UsageDealings => ({
        project,
        wait_taken_gpu_s: 0,
        wait_own_gpu_s: 0,
        wait_given_gpu_s: 0,
        lent_gpu_s: 0,
        borrowed_gpu_s: 0,
        lent: [],
        borrowed: [],
        ...more,
    });
    const part = (project: string, h: number) => ({ project, gpu_s: h * H });
    const told = accounts(
        "project",
        [series("vision", { used: [8 * H], held_idle: [0] }), series("speech", { used: [0], held_idle: [0] })],
        [
            dealings("rl", {
                wait_taken_gpu_s: 4 * H,
                lent_gpu_s: 9 * H,
                lent: [part("vision", 6), part("*", 3)],
            }),
            dealings("vision", { wait_given_gpu_s: 4 * H, borrowed_gpu_s: 6 * H, borrowed: [part("rl", 6)] }),
            dealings("speech", {}),
        ],
    );
    // One that held nothing is there for what it lent; one that had nothing of anybody is not.
    expect(told.map((a) => [a.name, a.held, a.dealt?.waitTaken, a.dealt?.waitGiven, a.dealt?.lent])).toEqual([
        ["vision", 8, 0, 4, 0],
        ["rl", 0, 4, 0, 9],
    ]);
    expect(told[1]!.dealt!.to).toEqual([
        { project: "vision", hours: 6 },
        { project: "*", hours: 3 },
    ]);
    // What is not told is not nothing.
    expect(accounts("project", [series("llm", { used: [H], held_idle: [0] })])[0]!.dealt).toBeUndefined();
    // Nobody lends to a person.
    expect(accounts("user", [series("bob", { used: [H], held_idle: [0] })])[0]!.dealt).toBeUndefined();
});

test("who waits is told by the size of the gang", () => {
    const now = Date.parse("2026-11-01T12:00:00Z");
    const job = (id: string, gpus: number, hours: number) =>
        ({
            id,
            nnodes: Math.max(1, gpus / 8),
            n_gpus_per_node: Math.min(8, gpus),
            queued_at: new Date(now - hours * 3600_000).toISOString(),
        }) as JobItem;
    const told = waitingBySize([job("a", 1, 1), job("b", 8, 2), job("c", 8, 5), job("d", 128, 3), job("e", 0, 9)], now);
    expect(told.map((x) => [x.least, x.most, x.jobs, x.gpus, x.id])).toEqual([
        [0, 0, 1, 0, "e"],
        [1, 1, 1, 1, "a"],
        [5, 8, 2, 16, "c"],
        [65, null, 1, 128, "d"],
    ]);
    expect(told[2]).toMatchObject({ median: 2 * 3600_000, longest: 5 * 3600_000 });
});

test("the worst loss is the one that its advice would have spared most of", () => {
    const job = (id: string, waste_hours: number, gain_hours: number) => ({ id, waste_hours, gain_hours }) as JobWaste;
    expect(worstLoss([job("a", 9, 0), job("b", 4, 3), job("c", 2, 2)])!.id).toBe("b");
    expect(worstLoss([job("a", 1, 0), job("b", 4, 0)])!.id).toBe("b");
    expect(worstLoss([job("a", 0, 0)])).toBeNull();
});

test("a period is days back from now, or a month in UTC with the month before it", () => {
    const now = Date.parse("2026-01-15T08:00:00Z");
    expect(monthsUntil(now, 3)).toEqual(["2026-01", "2025-12", "2025-11"]);
    expect(periodOf("2025-12", now)).toEqual({
        word: "2025-12",
        from: "2025-12-01T00:00:00Z",
        to: "2026-01-01T00:00:00Z",
        step: "1d",
        before: { from: "2025-11-01T00:00:00Z", to: "2025-12-01T00:00:00Z" },
        weekBefore: null,
    });
    expect(periodOf("2026-01", now).to).toBeUndefined();
    expect(periodOf("7d", now).before).toEqual({ from: "14d", to: "7d" });
    // A day has the same hours a week ago; the time before a week is those already.
    expect(periodOf("1d", now).weekBefore).toEqual({ from: "8d", to: "7d" });
    expect(["7d", "30d", "90d"].map((word) => periodOf(word, now).weekBefore)).toEqual([null, null, null]);
    for (const odd of [null, "", "2031-01", "2025-13", "3d", "constructor"]) expect(periodOf(odd, now).word).toBe("1d");
});

test("a part of a pool's bar leads to jobs where a filter says which they are", () => {
    const day = { from: "1d" };
    const held = { pool: "h20", sort: "-gpu_hours", ran_since: "1d", ran_until: undefined };
    expect(["used", "redone", "held_idle"].map((part) => behindPart(part as "used", "h20", day))).toEqual([
        held,
        held,
        held,
    ]);
    expect(behindPart("blocked", "h20", day)).toEqual({ state: "QUEUED", pool: "h20", sort: "-gpus" });
    expect(behindPart("used", "", day)).toBeNull();
    for (const part of ["free", "draining", "broken", "foreign"] as const)
        expect(behindPart(part, "h20", day)).toBeNull();
});

test("a class of failure and a size of gang lead to the jobs behind them", () => {
    const month = { from: "2026-10-01T00:00:00Z", to: "2026-11-01T00:00:00Z" };
    expect(behindClass("gpu_oom", month)).toEqual({
        failure: "gpu_oom",
        sort: "-gpu_hours",
        ran_since: month.from,
        ran_until: month.to,
    });
    expect(behindNode("node-1", month)).toEqual({
        failure_node: "node-1",
        sort: "-gpu_hours",
        ran_since: month.from,
        ran_until: month.to,
    });
    const gpus = ([least, most]: [number, number | null]) => behindSize({ least, most }).gpus;
    expect(
        (
            [
                [0, 0],
                [1, 1],
                [5, 8],
                [65, null],
            ] as [number, number | null][]
        ).map(gpus),
    ).toEqual(["0", "1", "5-8", "65-"]);
    expect(behindSize({ least: 1, most: 1 })).toEqual({ state: "QUEUED", gpus: "1", sort: "queued_at" });
});

test("quotas are of those who have a limit or hold something", () => {
    const of = (kind: Quota["kind"], name: string, quota: Partial<Quota["quota"]>, usage: Partial<Quota["usage"]>) =>
        ({
            kind,
            name,
            quota: { gpus_guaranteed: null, gpus_ceiling: null, gpu_hours_per_month: null, ...quota },
            usage: { gpus: 0, queued: 0, gpu_hours_this_month: 0, ...usage },
        }) as Quota;
    const told = limited([
        of("user", "carol", {}, {}),
        of("user", "bob", {}, { gpus: 2 }),
        of("user", "dave", {}, { queued: 1 }),
        of("project", "rl", { gpus_guaranteed: 0 }, {}),
        of("project", "vision", {}, { gpu_hours_this_month: 5 }),
        of("project", "speech", { gpu_hours_per_month: 100 }, { gpu_hours_this_month: 7 }),
        of("project", "llm", { gpus_ceiling: 8 }, {}),
    ]);
    expect(told.map((q) => q.name)).toEqual(["speech", "vision", "llm", "rl", "bob", "dave"]);
});
