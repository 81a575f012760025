// SPDX-License-Identifier: Apache-2.0
// What differs between specs, and steps as training time.
import { describe, expect, it } from "vitest";
import { belowRoot, codePairs } from "../src/pages/compare/code";
import { differences, flattened, sinceStart, trainingTime, usedBy } from "../src/pages/compare/differ";
import { LINES_MOST, textDiff } from "../src/pages/compare/textdiff";

describe("specs side by side", () => {
    it("are keys with dots, overrides too", () => {
        const flat = flattened({ a: 1, b: { c: [1, "x"] }, overrides: ["+x.y=2", "z=a=b"], n: null });
        expect([...flat]).toEqual([
            ["a", "1"],
            ["b.c", "1 x"],
            ["x.y", "2"],
            ["z", "a=b"],
        ]);
    });
    it("tell what is not set, and what is the same", () => {
        const rows = differences([
            { submission_id: "a", lr: 1, x: 1 },
            { submission_id: "b", lr: 2, x: 1, y: 0 },
            null,
        ]);
        expect(rows).toEqual([
            { key: "lr", values: ["1", "2", null], same: false },
            { key: "x", values: ["1", "1", null], same: false },
            { key: "y", values: [null, "0", null], same: false },
        ]);
        expect(differences([{ x: 1 }, { x: 1 }])[0]!.same).toBe(true);
    });
});

describe("training time", () => {
    const series = (step: number[], value: (number | null)[]) => ({
        step,
        value,
        min: value,
        max: value,
        time: step.map(() => null),
    });
    it("is the sum of the steps, also where points stand for several", () => {
        const at = trainingTime(series([1, 2, 4, 8], [10, 10, 20, 5]))!;
        expect([1, 2, 3, 4, 8, 99].map(at)).toEqual([10, 20, 60, 60, 80, 80]);
    });
    it("is not known where no step tells it", () => {
        expect(trainingTime(undefined)).toBeNull();
        expect(trainingTime(series([], []))).toBeNull();
    });
});

describe("time since the start", () => {
    const series = { step: [1, 2, 3], value: [1, null, 3], min: [1, 2, 3], max: [1, 2, 3] };
    it("counts hours by the clock and leaves out what has no moment", () => {
        const s = { ...series, time: [3600, null, 10800] };
        expect(sinceStart(s, "1970-01-01T00:30:00Z")).toEqual({ x: [0.5, 2.5], y: [1, 3] });
    });
    it("begins at the first point where no start is known", () => {
        expect(sinceStart({ ...series, time: [null, 7200, 10800] }, null)).toEqual({ x: [0, 1], y: [null, 3] });
        expect(sinceStart({ ...series, time: [null, null, null] }, null)).toEqual({ x: [], y: [] });
    });
});

describe("what was used", () => {
    const code = (hash: string) => ({ key: "code", name: "mine@1", common: false, hash, path: "/r/x", verl: null });
    const job = (hash: string) => ({ id: hash, output_dir: "/r/jobs/a", snapshots: [code(hash)] });
    it("has hashes, versions and nodes", () => {
        const inputs = [{ key: "train_file", ref: "sums@2", hash: "f".repeat(64) }];
        const nodes = [{ name: "n1" }, { name: "n2" }];
        expect(usedBy({ resolved_spec: {}, verl: "0.9.1", snapshots: [code("a".repeat(64))], inputs, nodes })).toEqual({
            "hash of code": `mine@1 ${"a".repeat(12)}`,
            "hash of train_file": `sums@2 ${"f".repeat(12)}`,
            "version of verl": "0.9.1",
            nodes: "n1 n2",
        });
    });
    it("is compared once for each pair of snapshots", () => {
        const pairs = codePairs(job("a") as never, [job("a"), job("b"), job("b")] as never);
        expect(pairs.map((p) => [p.a.hash, p.b.hash])).toEqual([["a", "b"]]);
        expect(belowRoot(job("a") as never, "/r/common/code/x")).toBe("common/code/x");
        expect(belowRoot(job("a") as never, "/elsewhere")).toBe("/elsewhere");
    });
});

describe("two texts", () => {
    const says = (a: string, b: string) => textDiff(a, b)?.map((l) => l.sign + l.text);
    it("are told by the lines that differ, with three about them", () => {
        const lines = "abcdefghij".split("");
        const other = lines.map((x) => (x === "f" ? "F" : x));
        expect(says(lines.join("\n"), other.join("\n"))).toEqual([
            "…",
            " c",
            " d",
            " e",
            "-f",
            "+F",
            " g",
            " h",
            " i",
            "…",
        ]);
    });
    it("keep the longest common lines", () => {
        expect(says("a\nb\nc", "b\nc\nd")).toEqual(["-a", " b", " c", "+d"]);
        expect(says("", "new")).toEqual(["-", "+new"]);
        expect(says("x", "x")).toEqual(["…"]);
    });
    it("are not compared when they are too long", () => {
        const many = (x: string) => Array.from({ length: LINES_MOST + 1 }, (_, i) => x + i).join("\n");
        expect(textDiff(many("a"), many("b"))).toBeNull();
    });
});
