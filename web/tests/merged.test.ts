// SPDX-License-Identifier: Apache-2.0
// Logs merged by the server as rows of the page, look after look.
import { describe, expect, it } from "vitest";
import { Refusal } from "../src/api/client";
import type { LogMerged } from "../src/made/api";
import { followMerged, mergedRows } from "../src/pages/job/merged";

const source = {
    source: "worker" as const,
    node: "w1",
    rank: 0,
    actor: null,
    file: "w1/worker-a.out",
    skipped_bytes: 0,
};
const look = (texts: string[], more: Partial<LogMerged> = {}): LogMerged => ({
    id: "j",
    attempt: 1,
    sources: [{ ...source, source: "driver", node: null, rank: null, file: null }, source],
    lines: texts.map((text, i) => ({ source: i % 2, offset: 10 * i, cut: false, text })),
    left_out: 0,
    more: false,
    ended: false,
    cursor: "1~",
    ...more,
});

describe("rows of a look", () => {
    it("say of which log they are and where they stand in it", () => {
        const rows = mergedRows(look(["a", "0%\r50%\r"]), 7, (s) => s.node ?? "driver");
        expect(rows).toEqual([
            { at: 7, text: "a", offset: 0, from: "driver", of: null },
            { at: 8, text: "50%", offset: 10, from: "w1", of: "worker:w1/worker-a.out" },
        ]);
    });
});

describe("following them", () => {
    it("goes on from each cursor to the end, waits only when there is no more, and outlives a server that is away", async () => {
        const answers = [
            look(["a"], { cursor: "1~x", more: true }),
            look(["b"], { cursor: "1~y" }),
            new Refusal(503, "unavailable", "", undefined, null),
            look(["c"], { cursor: "1~z", ended: true }),
        ];
        const asked: (string | undefined)[] = [];
        const heard: string[] = [];
        let pauses = 0;
        await followMerged({
            ask: async (cursor) => {
                asked.push(cursor);
                const answer = answers[asked.length - 1]!;
                if (answer instanceof Refusal) throw answer;
                return answer;
            },
            hear: (page) => heard.push(page.lines[0]!.text),
            live: true,
            pause: async () => void pauses++,
            signal: new AbortController().signal,
        });
        expect(heard).toEqual(["a", "b", "c"]);
        expect(asked).toEqual([undefined, "1~x", "1~y", "1~y"]);
        expect(pauses).toBe(2);
    });
    it("ends with an attempt that is over, once there is no more of it", async () => {
        const answers = [look(["a"], { more: true }), look(["b"])];
        const heard: string[] = [];
        await followMerged({
            ask: async () => answers[heard.length]!,
            hear: (page) => heard.push(page.lines[0]!.text),
            live: false,
            pause: () => Promise.reject(new Error("it waits")),
            signal: new AbortController().signal,
        });
        expect(heard).toEqual(["a", "b"]);
    });
    it("tells what refuses its first look", async () => {
        const no = new Refusal(404, "not_found", "", undefined, null);
        const refused = followMerged({
            ask: () => Promise.reject(no),
            hear: () => undefined,
            live: true,
            pause: async () => undefined,
            signal: new AbortController().signal,
        });
        await expect(refused).rejects.toBe(no);
    });
});
