// SPDX-License-Identifier: Apache-2.0
// What the pages of the library compute: parquet files, lines of JSON, the graph of a model's lineage.
import { describe, expect, it } from "vitest";
import { cellText, columnsOf } from "../src/kit/rows";
import { boxesOf } from "../src/library/lineage";
import { readParquet } from "../src/pages/files/parquet";

describe("a parquet file", () => {
    it("that is none is null, and no bytes of it are looked at twice", async () => {
        const asked: string[] = [];
        const part = async (range: string) => (asked.push(range), new Uint8Array(500).fill(0x1c));
        expect(await readParquet(500, part)).toBeNull();
        expect(asked.length).toBe(new Set(asked).size);
    });
});

describe("rows", () => {
    it("have the columns of all of them, and cells that are texts", () => {
        expect(columnsOf([{ a: 1 }, { b: [1] }, null, "x"])).toEqual(["a", "b"]);
        expect([cellText({ x: 1 }), cellText(null), cellText("\u202ea")]).toEqual(['{"x":1}', "", "\ufffda"]);
    });
});

describe("the lineage of a model", () => {
    it("goes from what was read to the model", () => {
        const lineage = {
            job: "grpo-1",
            step: 10,
            merge: "merging",
            snapshot: [{ name: "mine@1" }, { path: "/x" }],
            data: [{ ref: "sums@1" }, "plain@2"],
            more_data: 3,
            model: { ref: "base@1" },
        };
        const boxes = boxesOf("tuned@1", lineage);
        expect(boxes.map((b) => b.column)).toEqual([0, 0, 0, 0, 0, 0, 1, 2, 3]);
        expect(boxes.map((b) => b.href)).toEqual([
            "/snapshots?name=mine%401", undefined, "/data/sums%401", "/data/plain%402", undefined, "/models/base%401",
            "/jobs/grpo-1", "/jobs/merging", undefined,
        ]); // prettier-ignore
        expect(boxes.at(-1)).toMatchObject({ says: "tuned@1", isEnd: true });
    });
    it("is empty where nothing is known, and takes what a person wrote", () => {
        expect(boxesOf("x", null)).toEqual([]);
        expect(boxesOf("x", { eval: 1 })).toEqual([]);
        expect(boxesOf("x", { data: "a" }).length).toBe(2);
    });
});
