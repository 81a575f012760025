// SPDX-License-Identifier: Apache-2.0
// A request to a server that has just started: it is asked again while it says not_yet, and no longer than ten seconds.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { call, Refusal } from "../src/api/client";

function refuse(type: string, status = 503, headers: Record<string, string> = { "Retry-After": "1" }): Response {
    const problem = {
        type: `urn:argus:problem:${type}`,
        title: "t",
        status,
        detail: "d",
        code: "shared_root_not_seen",
    };
    return new Response(JSON.stringify(problem), { status, headers });
}
const good = () => new Response(JSON.stringify({ user: "alice" }), { headers: { "Content-Type": "application/json" } });

describe("a request that comes too early", () => {
    const asked: number[] = []; // when, in milliseconds
    let answers: (() => Response)[] = [];
    beforeEach(() => {
        vi.useFakeTimers();
        asked.length = 0;
        vi.stubGlobal("fetch", () => {
            asked.push(performance.now());
            const next = answers.length > 1 ? answers.shift()! : answers[0]!;
            return Promise.resolve(next());
        });
    });
    afterEach(() => {
        vi.useRealTimers();
        vi.unstubAllGlobals();
    });
    const spans = () => asked.slice(1).map((at, i) => at - asked[i]!);

    it("is sent again when Retry-After says, until it is answered", async () => {
        answers = [
            () => refuse("not_yet"),
            () => refuse("not_yet", 503, { "Retry-After": "3" }),
            () => refuse("not_yet", 503, {}),
            good,
        ];
        const reply = call("GET /v1/session");
        await vi.runAllTimersAsync();
        expect(await reply).toEqual({ user: "alice" });
        expect(spans()).toEqual([1000, 3000, 1000]);
    });
    it("is refused after ten seconds", async () => {
        answers = [() => refuse("not_yet")];
        const why = call("GET /v1/session").catch((e: unknown) => e as Refusal);
        await vi.runAllTimersAsync();
        expect(await why).toMatchObject({ status: 503, code: "shared_root_not_seen", isNotYet: true });
        expect(asked.at(-1)! - asked[0]!).toBe(10_000);
    });
    it("is refused at once when the server says anything else", async () => {
        for (const other of [() => refuse("unavailable"), () => refuse("conflict", 409)]) {
            answers = [other];
            asked.length = 0;
            await expect(call("GET /v1/session")).rejects.toMatchObject({ isNotYet: false });
            expect(asked).toHaveLength(1);
        }
    });
    it("is not sent again once it is given up", async () => {
        answers = [() => refuse("not_yet")];
        const given = new AbortController();
        const why = call("GET /v1/session", { signal: given.signal }).catch((e: unknown) => e as Error);
        await vi.advanceTimersByTimeAsync(500);
        given.abort();
        expect((await why) as Error).toMatchObject({ name: "AbortError" });
        await vi.runAllTimersAsync();
        expect(asked).toHaveLength(1);
    });
});
