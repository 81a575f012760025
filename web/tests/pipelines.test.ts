// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { layersOf, worstOf } from "../src/pages/pipelines/graph";

const step = (name: string, ...needs: string[]) => ({ step: name, name, uses: "job", needs });

test("a step stands behind all that it needs, items of a matrix in one place", () => {
    const placed = layersOf([
        step("last", "good", "first"),
        step("good", "many"),
        { ...step("many"), name: "many-1" },
        { ...step("many"), name: "many-2" },
        step("first"),
    ]);
    const at = Object.fromEntries(placed.map((s) => [s.step, s.column]));
    expect(at).toEqual({ last: 2, good: 1, many: 0, first: 0 });
    expect(placed.find((s) => s.step === "many")!.items).toHaveLength(2);
    const cells = placed.map((s) => `${s.column}/${s.row}`);
    expect(new Set(cells).size).toBe(placed.length);
});

test("what a server should never say does not hang the page", () => {
    expect(layersOf([step("a", "b"), step("b", "a"), step("c", "gone")])).toHaveLength(3);
    expect(layersOf([])).toEqual([]);
});

test("one word stands for several items", () => {
    expect(worstOf(["SUCCEEDED", "RUNNING", "FAILED"])).toBe("FAILED");
    expect(worstOf(["SUCCEEDED", "SUCCEEDED"])).toBe("SUCCEEDED");
    expect(worstOf(["reuse", "run"])).toBe("run");
});
