// SPDX-License-Identifier: Apache-2.0
// What computes, without a browser: addresses, CSV, times, columns, the cutter of event streams.
import { describe, expect, it } from "vitest";
import { csv } from "../src/base/csv";
import { bytes, figure, parameters, span, visible } from "../src/base/say";
import { match, withQuery } from "../src/base/url";
import { words } from "../src/base/words";
import { Cutter } from "../src/api/stream";
import { fitting, sorted, type Column } from "../src/kit/list";

describe("addresses", () => {
    it("match by names, whole", () => {
        expect(match("/jobs/{id}", "/jobs/a%2Fb")).toEqual({ id: "a/b" });
        expect(match("/jobs/{id}", "/jobs")).toBeNull();
        expect(match("/jobs", "/jobs/")).toEqual({});
        expect(match("/", "/")).toEqual({});
        expect(match("/", "/jobs")).toBeNull();
        expect(match("/jobs/{id}", "/jobs/%E0%A4%A")).toBeNull();
    });
    it("leave out what is not set", () => {
        expect(withQuery("/jobs", { state: "live", user: "" })).toBe("/jobs?state=live");
        expect(withQuery("/jobs", {})).toBe("/jobs");
    });
});

describe("csv", () => {
    it("quotes, and disarms formulas of strangers", () => {
        expect(
            csv(
                ["a", "b"],
                [
                    ['x"y', 1],
                    ["=1+1", null],
                    ["two\nlines", -2],
                ],
            ),
        ).toBe('a,b\r\n"x""y",1\r\n\'=1+1,\r\n"two\nlines",-2');
    });
});

describe("what people read", () => {
    it("spans", () => {
        expect(span(12_000)).toBe("12s");
        expect(span((3 * 60 + 12) * 60_000)).toBe("3h 12m");
        expect(span(49 * 3600_000)).toBe("2d 1h");
        expect(span(-5)).toBe("0s");
    });
    it("a model is as large as people say", () => {
        const said = [300, 999_999, 1e6, 9.94e6, 494e6, 999.4e6, 999.6e6, 7.6e9, 9.96e9, 72.7e9].map(parameters);
        expect(said).toEqual(["300", "999,999", "1.0M", "9.9M", "494M", "999M", "1.0B", "7.6B", "10B", "73B"]);
    });
    it("figures never say 0.0000 and never null", () => {
        expect(figure(0.000012)).toBe("1.20e-5");
        expect(figure(0.41234)).toBe("0.412");
        expect(figure(0)).toBe("0");
        expect(figure(12345)).toBe("12,345");
        expect(figure(null)).toBe("–");
        expect(figure(NaN)).toBe("–");
    });
    it("bytes", () => {
        expect(bytes(0)).toBe("0 B");
        expect(bytes(1536)).toBe("1.5 KiB");
        expect(bytes(2.6 * 2 ** 40)).toBe("2.6 TiB");
    });
    it("names cannot turn the line around or hide in it", () => {
        expect(visible("a\u202egpj.exe")).toBe("a\ufffdgpj.exe");
        expect(visible("\u001b[31mred")).toBe("\u241b[31mred");
        expect(visible("客服 <b>x</b>")).toBe("客服 <b>x</b>");
    });
});

describe("words", () => {
    it("take their arguments", () => {
        const t = words({ n: ["{0} of {1}", "{1} 中的 {0}"] });
        expect(t("n", 1, 2)).toBe("1 of 2");
    });
});

describe("event streams", () => {
    it("are cut wherever the bytes break", () => {
        const c = new Cutter();
        expect(c.take(': hello\n\nid: 1-5\nevent: jobs\ndata: {"ids"')).toEqual([]);
        expect(c.take(':["a"]}\n')).toEqual([]);
        expect(c.take("\nid: 1-6\ndata: x\ndata: y\n\n")).toEqual([
            { id: "1-5", event: "jobs", data: '{"ids":["a"]}' },
            { id: "1-6", event: "message", data: "x\ny" },
        ]);
        expect(c.id).toBe("1-6");
    });
});

describe("lists", () => {
    const columns: Column<{ a: number | null }>[] = [
        { key: "a", title: "A", width: 100, rank: 0, draw: (r) => r.a, sort: (r) => r.a },
        { key: "b", title: "B", width: 300, rank: 1, draw: () => "" },
        { key: "c", title: "C", width: 300, rank: 2, draw: () => "" },
    ];
    it("sort, what is not known last either way, and keep the order of equals", () => {
        const rows = [{ a: 2 }, { a: null }, { a: 1 }];
        expect(sorted(rows, columns, "a").map((r) => r.a)).toEqual([1, 2, null]);
        expect(sorted(rows, columns, "-a").map((r) => r.a)).toEqual([2, 1, null]);
        expect(sorted(rows, columns, "b")).toBe(rows);
    });
    it("lose columns by rank, and none that was chosen", () => {
        expect(fitting(columns, 1000, null).length).toBe(3);
        expect(fitting(columns, 500, null).map((c) => c.key)).toEqual(["a", "b"]);
        expect(fitting(columns, 50, null).map((c) => c.key)).toEqual(["a"]);
        expect(fitting(columns, 50, ["c"]).map((c) => c.key)).toEqual(["a", "c"]);
    });
});
