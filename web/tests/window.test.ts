// SPDX-License-Identifier: Apache-2.0
// A window over a log: what is drawn stays bounded, and its ends are known to the byte.
import { describe, expect, it } from "vitest";
import { before, behind, EMPTY, LINES_MAX, share, type Row } from "../src/pages/job/window";

const lines = (from: number, n: number): Row[] =>
    Array.from({ length: n }, (_, i) => ({ at: from + i * 10, text: "x" }));

describe("a window over a log", () => {
    it("grows at its end", () => {
        const w = behind({ ...EMPTY, start: 500, end: 500 }, lines(500, 3), 530, true);
        expect([w.rows.length, w.start, w.end, w.isEnd]).toEqual([3, 500, 530, true]);
    });
    it("lets the first lines go when it is full, and begins at the first that is left", () => {
        const w = behind(behind(EMPTY, lines(0, LINES_MAX), LINES_MAX * 10, true), lines(LINES_MAX * 10, 5), 0, true);
        expect([w.rows.length, w.start, w.rows[0]!.at]).toEqual([LINES_MAX, 50, 50]);
    });
    it("lets the last lines go when one looks back, and then ends where they began", () => {
        const full = behind({ ...EMPTY, start: 1000, end: 1000 }, lines(1000, LINES_MAX), 1000 + LINES_MAX * 10, true);
        const w = before(full, lines(900, 10), 900);
        expect([w.rows.length, w.start, w.isEnd]).toEqual([LINES_MAX, 900, false]);
        expect(w.end).toBe(w.rows.at(-1)!.at + 10);
        expect(before(EMPTY, [], 0).isEnd).toBe(true);
    });
    it("says where it is", () => {
        expect(share({ ...EMPTY, start: 250 }, 1000)).toBe(0.25);
        expect(share(EMPTY, 0)).toBe(0);
    });
});
