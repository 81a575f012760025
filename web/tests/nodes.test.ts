// SPDX-License-Identifier: Apache-2.0
// nodes.test.ts - the GPUs of a machine one by one, and what its health was.
import { expect, test } from "vitest";
import type { Event, JobItem, Node } from "../src/made/api";
import { bracketsOf, healthCells, healthNow, slotsOf } from "../src/pages/nodes/slots";

type Held = Pick<Node, "gpus" | "leases" | "state">;
const node = (more: Partial<Held>): Held => ({
    gpus: { total: 8, used: 0, free: 8, bad: 0 },
    leases: [],
    state: "online",
    ...more,
});
const job = (id: string, ...flags: string[]) => [id, { id, flags } as unknown as JobItem] as const;
const kinds = (n: Held, jobs = new Map<string, JobItem>()) => slotsOf(n, jobs).map((s) => s.kind);

test("each GPU has one slot, and what others hold stands last", () => {
    const n = node({
        gpus: { total: 8, used: 3, free: 3, bad: 0, foreign: 2, held: 1 },
        leases: [
            { job: "a", gpu_ids: [0, 1], gpus: 2 },
            { job: "b", gpu_ids: [3], gpus: 1 },
        ],
    });
    expect(kinds(n, new Map([job("a"), job("b", "HUNG")]))).toEqual([
        "used", "used", "free", "idle", "free", "held", "foreign", "foreign",
    ]); // prettier-ignore
});

test("a flag of the job tells what its slots are", () => {
    const n = node({ leases: [{ job: "a", gpu_ids: [0], gpus: 1 }] });
    const first = (...flags: string[]) => kinds(n, new Map([job("a", ...flags)]))[0];
    expect([first(), first("IDLE"), first("UNKNOWN", "HUNG"), first("HOLDING")]).toEqual([
        "used", "idle", "lost", "held",
    ]); // prettier-ignore
});

test("what is left of a node that drains or is out of order is not free", () => {
    const leases = [{ job: "a", gpu_ids: [0], gpus: 1 }];
    expect(kinds(node({ leases, state: "draining" })).filter((k) => k === "draining")).toHaveLength(7);
    const bad = node({ leases, gpus: { total: 8, used: 1, free: 0, bad: 7 } });
    expect(kinds(bad).filter((k) => k === "broken")).toHaveLength(7);
    expect(kinds(node({ gpus: { total: 0, used: 0, free: 0, bad: 0 } }))).toEqual([]);
});

test("neighbours of one job are one bracket, also where the job may not be seen", () => {
    const n = node({
        leases: [
            { job: null, gpu_ids: [0, 1], gpus: 2 },
            { job: null, gpu_ids: [2], gpus: 1 },
            { job: "a", gpu_ids: [4, 5], gpus: 1.5 },
            { job: "b", gpu_ids: [5], gpus: 0.5 },
        ],
    });
    expect(bracketsOf(slotsOf(n, new Map())).map((b) => [b.from, b.n, b.jobs.length])).toEqual([
        [0, 2, 1],
        [2, 1, 1],
        [4, 1, 1],
        [5, 1, 2],
    ]);
});

const event = (minutes: number, kind: string) => ({ at: new Date(minutes * 60_000).toISOString(), kind }) as Event;

test("a cell of the health strip is the worst that it saw", () => {
    const events = [event(70, "node_healthy"), event(65, "node_unhealthy"), event(62, "node_check")];
    expect(healthCells(events, "ok", 0, 120 * 60_000, 4)).toEqual(["ok", "ok", "bad", "ok"]);
    expect(healthCells([], "ok", 0, 60_000, 3)).toEqual(["ok", "ok", "ok"]);
    expect(healthCells([event(90, "node_added")], "warn", 0, 120 * 60_000, 4)).toEqual([
        "none", "none", "none", "warn",
    ]); // prettier-ignore
    expect(healthNow({ health: "unhealthy", state: "online" })).toBe("bad");
    expect(healthNow({ health: "ssh_unreachable", state: "online" })).toBe("warn");
});
