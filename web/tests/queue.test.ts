// SPDX-License-Identifier: Apache-2.0
// A waiting job that asks otherwise, and the order in which its nodes are told.
import { describe, expect, it } from "vitest";
import type { JobItem } from "../src/made/api";
import { begunWith, changeCli, changed, changeOf, pushedBack, wishOf } from "../src/pages/queue/asked";
import { firstInLine, MOST } from "../src/pages/queue/line";
import { inOrder } from "../src/pages/queue/looks";

const job = { pool: "a100", nnodes: 2, n_gpus_per_node: 8, priority: 50 };

describe("a change", () => {
    it("is made of a hint that its owner can follow", () => {
        expect(changeOf({ kind: "shape", nnodes: 1, n_gpus_per_node: 16 })).toEqual({ nnodes: 1, n_gpus_per_node: 16 });
        expect(changeOf({ kind: "timeout", timeout: 3600 })).toEqual({ timeout: "3600s" });
        expect(changeOf({ kind: "job_end", job: "x" })).toBeNull();
    });
    it("begins with what an advice put into the address", () => {
        expect(begunWith(new URLSearchParams("why=a&timeout=50m"))).toEqual({ timeout: "50m" });
        expect(begunWith(new URLSearchParams("why=a"))).toBeNull();
    });
    it("is what differs, and nothing else", () => {
        expect(changed(job, wishOf(job))).toBeNull();
        expect(changed(job, { ...wishOf(job), nnodes: "1", timeout: " 6h ", priority: "" })).toEqual({
            nnodes: 1,
            timeout: "6h",
        });
    });
    it("has a command line", () => {
        const line = changeCli("j 1", { nnodes: 1, n_gpus_per_node: 4, pool: "h20" }, (w) =>
            / /.test(w) ? `'${w}'` : w,
        );
        expect(line).toBe("argus change --nnodes 1 --gpus 4 --pool h20 'j 1'");
    });
    it("names those first who wait longest for it", () => {
        const at = (minute: number) => new Date(60_000 * minute).toISOString();
        const rows = pushedBack([
            { job: "sooner", user: "a", before: at(9), after: at(4) },
            { job: "later", user: "a", before: at(1), after: at(31) },
            { job: "lost", user: "a", before: at(1), after: null },
        ]);
        expect(rows.map((r) => [r.job, r.by])).toEqual([
            ["lost", Infinity],
            ["later", 1_800_000],
            ["sooner", -300_000],
        ]);
    });
});

describe("the nodes", () => {
    it("stand by their use", () => {
        const node = (name: string, more: object) => ({
            name,
            code: "look_gpus",
            until: null,
            planned: false,
            ...more,
        });
        const all = [
            node("d", { code: "look_away" }),
            node("c", { until: "2026-01-02" }),
            node("b", { until: "2026-01-01" }),
            node("a", { planned: true }),
            node("z", { code: "look_serves" }),
        ];
        expect(inOrder(all as never).map((n) => n.name)).toEqual(["z", "a", "b", "c", "d"]);
    });
});

describe("a line that is longer than a page", () => {
    const waits = (id: string, position: number, priority = 50) =>
        ({ id, position, priority, queued_at: "2026-01-01T00:00:00Z" }) as JobItem;
    it("has those before it that priority puts there", () => {
        const oldest = [waits("o1", 2), waits("o2", 3)];
        // Some of the last priority are missing, and its oldest are known.
        const ranked = [waits("urgent", 1, 90), waits("newest", 900), waits("newer", 899)];
        expect(firstInLine(oldest, ranked).map((j) => j.id)).toEqual(["urgent", "o1", "o2"]);
    });
    it("is the first of it, and no more than a page", () => {
        const oldest = Array.from({ length: MOST }, (_, i) => waits(`o${i}`, i + 2));
        const rows = firstInLine(oldest, [waits("urgent", 1, 90), waits("x", 5000)]);
        expect([rows.length, rows[0]?.id, rows.at(-1)?.id]).toEqual([MOST, "urgent", `o${MOST - 2}`]);
    });
    it("is as it came where nothing is cut", () => {
        expect(firstInLine([waits("b", 2), waits("a", 1)], []).map((j) => j.id)).toEqual(["a", "b"]);
    });
});
