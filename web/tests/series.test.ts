// SPDX-License-Identifier: Apache-2.0
// The names of many curves as requests, and their answers as one.
import { describe, expect, it } from "vitest";
import { asksOf, merged } from "../src/pages/job/series";

const series = (value: number[]) => ({ step: value, value, min: value, max: value, time: value.map(() => null) });

describe("the names of many curves", () => {
    it("are as many requests as their addresses take", () => {
        const keys = Array.from({ length: 1500 }, (_, i) => `model/layer ${i}/grad(norm)~'中文'`);
        const asks = asksOf(keys);
        expect(asks.join(",").split(",")).toEqual(keys);
        for (const a of asks) expect(new URLSearchParams({ keys: a }).toString().length).toBeLessThan(3100);
        expect(asks.length).toBeGreaterThan(10);
    });
    it("may have a comma, or be long", () => {
        expect(asksOf(["a,b", "c"])).toEqual(["a?b,c"]);
        expect(asksOf(["x", "中".repeat(200), "y".repeat(2990)])).toHaveLength(2);
        expect(asksOf([])).toEqual([]);
    });
});

describe("answers", () => {
    const gone = { attempt: 1, from_step: 3, to_step: 5 };
    it("add curves, and replace those that were there", () => {
        const first = merged(undefined, { series: { a: series([1]), b: series([1]) }, superseded: [] });
        expect(merged(first, { series: { b: series([1, 2]) }, superseded: [] }).series).toEqual({
            a: series([1]),
            b: series([1, 2]),
        });
    });
    it("keep what was run again where it is the same steps", () => {
        const old = { series: {}, superseded: [{ ...gone, series: { a: series([3]) } }] };
        const add = { series: {}, superseded: [{ ...gone, series: { b: series([4]) } }] };
        expect(merged(old, add).superseded).toEqual([{ ...gone, series: { a: series([3]), b: series([4]) } }]);
        const other = { series: {}, superseded: [{ ...gone, attempt: 2, series: {} }] };
        expect(merged(old, other).superseded[0]!.series).toEqual({});
        expect(merged(old, { series: {}, superseded: [] }).superseded).toEqual([]);
    });
});
