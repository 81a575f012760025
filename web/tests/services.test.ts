// SPDX-License-Identifier: Apache-2.0
// The box that asks a service: which versions the address names, and how fast an answer came.
import { afterEach, describe, expect, it, vi } from "vitest";
import { added, ask, nothing, speed, type Answered } from "../src/pages/services/answer";
import { lanesOf, offeredOf, saidOf } from "../src/pages/services/lanes";

describe("the versions that are asked", () => {
    it("are those of the address that are ready, two at most", () => {
        expect(lanesOf(null, [2, 1])).toEqual({ asked: [], gone: [] });
        expect(lanesOf("2,1", [2, 1])).toEqual({ asked: [2, 1], gone: [] });
        expect(lanesOf("1,2,3", [3, 2, 1])).toEqual({ asked: [1, 2], gone: [] });
        expect(lanesOf("2,2", [2, 1])).toEqual({ asked: [2], gone: [] });
        expect(lanesOf("2,7", [2, 1])).toEqual({ asked: [2], gone: [7] });
        expect(lanesOf("x,-1,0,1e3,<b>", [2, 1])).toEqual({ asked: [], gone: [] });
    });
    it("are offered where there is a choice, also while the one that has the traffic is not ready", () => {
        expect(offeredOf([2], 2, [])).toEqual([]);
        expect(offeredOf([], 2, [])).toEqual([]);
        expect(offeredOf([2, 1], 2, [])).toEqual([2, 1]);
        expect(offeredOf([1], 2, [])).toEqual([2, 1]);
        expect(offeredOf([3, 1], 2, [])).toEqual([3, 2, 1]);
        expect(offeredOf([1], 2, [1])).toEqual([2, 1]);
        expect(offeredOf([2], 2, [2])).toEqual([2]);
        expect(offeredOf([1], 0, [])).toEqual([1]);
    });
    it("are in the address unless a client that names none asks the same", () => {
        expect(saidOf(2, null, 2)).toBeNull();
        expect(saidOf(1, null, 2)).toBe("1");
        expect(saidOf(2, 1, 2)).toBe("2,1");
        expect(saidOf(1, 1, 2)).toBe("1");
    });
});

describe("an answer", () => {
    afterEach(() => vi.unstubAllGlobals());
    it("has a speed once it is whole and has two tokens", () => {
        expect(speed({ word: 100, whole: 1100, tokens: 11 })).toBe(10);
        expect(speed({ word: 100, whole: 1100, tokens: 1 })).toBeNull();
        expect(speed({ word: 100, whole: null, tokens: 11 })).toBeNull();
        expect(speed({ word: null, whole: 5, tokens: 11 })).toBeNull();
        expect(speed({ word: 5, whole: 5, tokens: 11 })).toBeNull();
    });
    it("is read event by event", () => {
        expect(added('{"choices":[{"delta":{"content":"4"}}]}').text).toBe("4");
        expect(added('{"choices":[],"usage":{"completion_tokens":4}}').tokens).toBe(4);
        expect(added("[DONE]")).toEqual({ text: "", tokens: null, why: "" });
    });
    it("is of the version that the header names, and of none where none is named", async () => {
        const sent: (string | undefined)[] = [];
        vi.stubGlobal("fetch", (_: string, init: { headers: Record<string, string> }) => {
            sent.push(init.headers["Argus-Version"]);
            const body = '{"detail":"no replica of version 1 is ready"}';
            return Promise.resolve(new Response(body, { status: 409 }));
        });
        let last: Answered = nothing;
        const signal = new AbortController().signal;
        for (const version of [1, null]) await ask({ path: "/x", version, body: {}, signal }, (a) => (last = a));
        expect(sent).toEqual(["1", undefined]);
        expect([last.status, last.text, last.why]).toEqual([409, "", "no replica of version 1 is ready"]);
    });
});
