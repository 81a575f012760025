// SPDX-License-Identifier: Apache-2.0
// A waiting job that asks otherwise, and the order in which its nodes are told.
import { describe, expect, it } from "vitest";
import { changeCli, changed, changeOf, pushedBack, wishOf } from "../src/pages/queue/asked";
import { inOrder } from "../src/pages/queue/looks";

const job = { pool: "a100", nnodes: 2, n_gpus_per_node: 8, priority: 50 };

describe("a change", () => {
    it("is made of a hint that its owner can follow", () => {
        expect(changeOf({ kind: "shape", nnodes: 1, n_gpus_per_node: 16 })).toEqual({ nnodes: 1, n_gpus_per_node: 16 });
        expect(changeOf({ kind: "timeout", timeout: 3600 })).toEqual({ timeout: "3600s" });
        expect(changeOf({ kind: "job_end", job: "x" })).toBeNull();
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
