// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { chosenWith, placesOf, shortEdit, shortEdits } from "../src/pages/family/tree";

const job = (id: string, parent: string | null = null) => ({ id, parent });

test("a generation to a column, the first child beside its parent, no two in one place", () => {
    const placed = placesOf([job("a"), job("b", "a"), job("c", "b"), job("d", "b"), job("e", "a"), job("f", "e")]);
    expect(Object.fromEntries(placed.map((p) => [p.id, `${p.column}/${p.row}`]))).toEqual({
        a: "0/0",
        b: "1/0",
        c: "2/0",
        d: "2/1",
        e: "1/2",
        f: "2/2",
    });
});

test("a hundred forks stand one below the other", () => {
    const placed = placesOf([job("a"), ...Array.from({ length: 100 }, (_, i) => job(`f${i}`, "a"))]);
    expect(placed.at(-1)).toEqual({ id: "f99", column: 1, row: 99 });
    expect(new Set(placed.map((p) => `${p.column}/${p.row}`)).size).toBe(101);
});

test("what a server should never say is placed all the same", () => {
    const placed = placesOf([job("a", "b"), job("b", "a"), job("c", "gone"), job("d", "d")]);
    expect(placed).toHaveLength(4);
    expect(new Set(placed.map((p) => `${p.column}/${p.row}`)).size).toBe(4);
    expect(placesOf([])).toEqual([]);
});

test("a difference in short", () => {
    expect(shortEdit({ key: "overrides.actor_rollout_ref.actor.optim.lr", old: "1e-6", new: "5e-7" })).toBe(
        "optim.lr 1e-6 → 5e-7",
    );
    expect(shortEdit({ key: "nnodes", old: null, new: "2" })).toBe("+nnodes 2");
    expect(shortEdit({ key: "pool", old: "a", new: null })).toBe("−pool");
    const edits = ["x", "y", "z"].map((key) => ({ key, old: "1", new: "2" }));
    expect(shortEdits(edits, 2)).toEqual({ says: "x 1 → 2; y 1 → 2", more: 1 });
    expect(shortEdits(edits, 3).more).toBe(0);
});

test("two are chosen at most", () => {
    expect(chosenWith([], "a")).toEqual(["a"]);
    expect(chosenWith(["a", "b"], "c")).toEqual(["b", "c"]);
    expect(chosenWith(["a", "b"], "a")).toEqual(["b"]);
});
