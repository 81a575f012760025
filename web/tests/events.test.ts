// SPDX-License-Identifier: Apache-2.0
// Which events the page of events asks for: filters and a time of the address, and the same as a file.
import { describe, expect, it } from "vitest";
import { exportHref, filtersOf, isoOf, localOf } from "../src/pages/events/asked";

describe("what the address asks for", () => {
    it("is what it says, and nothing of what else stands there", () => {
        const q = new URLSearchParams("kind=stop&actor=&from=2026-01-01T00:00:00.000Z&seq=3&limit=9");
        expect(filtersOf(q)).toEqual({ kind: "stop", from: "2026-01-01T00:00:00.000Z" });
        expect(exportHref(q, "csv")).toBe("/v1/events:export?format=csv&kind=stop&from=2026-01-01T00%3A00%3A00.000Z");
        expect(exportHref(new URLSearchParams("object=node/a b&job=x"), "ndjson")).toBe(
            "/v1/events:export?format=ndjson&object=node%2Fa+b&job=x",
        );
    });
    it("has a time by the reader's clock, to the minute", () => {
        const at = isoOf("2026-03-04T05:06")!;
        expect(at).toMatch(/^2026-03-0[345]T.*Z$/);
        expect(localOf(at)).toBe("2026-03-04T05:06");
        expect(localOf(isoOf("0002-03-04T05:06"))).toBe("0002-03-04T05:06");
        expect([isoOf(""), isoOf("x"), localOf(null), localOf("2h")]).toEqual([null, null, "", ""]);
    });
});
