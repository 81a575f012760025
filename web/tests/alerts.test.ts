// SPDX-License-Identifier: Apache-2.0
// What the page of alerts computes: the figure and the span of an alert's curve, and what a silence covers.
import { describe, expect, it } from "vitest";
import { matchOf } from "../src/pages/alerts/match";
import { around, figureOf, scaleOf } from "../src/pages/alerts/moment";

describe("the curve of an alert", () => {
    it("is of the figure that its rule names, else of whether the thing worked", () => {
        expect(figureOf("node", "disk_free < 50GiB")).toBe("disk_free_bytes");
        expect(figureOf("gpu", "temperature > 90")).toBe("gpu_temperature_celsius");
        expect(figureOf("node", "clock_skew > 1")).toBe("cpu_util_ratio");
        expect(figureOf("job", "")).toBe("gpu_util_ratio");
        expect(figureOf("quota", "used > 1")).toBeNull();
        expect(figureOf("node", "constructor > 1")).toBe("cpu_util_ratio");
    });
    it("begins half an hour before, and ends now or a while after", () => {
        const opened = "2026-01-01T12:00:00.000Z";
        const at = (time: string) => Date.parse(`2026-01-01T${time}:00.000Z`);
        expect(around(opened, null, at("12:05"))).toEqual({ since: "2026-01-01T11:30:00.000Z" });
        expect(around(opened, null, at("15:00")).until).toBe("2026-01-01T12:30:00.000Z");
        expect(around(opened, "2026-01-01T14:00:00.000Z", at("15:00")).until).toBe("2026-01-01T14:10:00.000Z");
        expect(around(opened, "2026-01-02T14:00:00.000Z", at("15:00") + 1e9).until).toBe("2026-01-01T18:00:00.000Z");
    });
    it("counts in what people read", () => {
        expect(scaleOf("gpu_util_ratio")).toEqual({ by: 100, unit: "%" });
        expect(scaleOf("disk_free_bytes").by * 1024 ** 3).toBe(1);
        expect(scaleOf("gpu_xid").unit).toBe("");
    });
});

describe("a silence of what matches", () => {
    it("has the patterns of each field that says something", () => {
        const texts = { rules: "disk_*, node_offline", projects: " ", users: "", kinds: "node", names: "" };
        expect(matchOf(texts)).toEqual({ rules: ["disk_*", "node_offline"], kinds: ["node"] });
    });
});
