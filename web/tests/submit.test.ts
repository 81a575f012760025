// SPDX-License-Identifier: Apache-2.0
// submit.test.ts - what a newer check of a spec takes away.
import { expect, test } from "vitest";
import { Refusal } from "../src/api/client";
import { newerCheck, type Checked } from "../src/pages/submit/plan";

const checked = (text: string, why: Refusal | null): Checked => ({ text, at: 0, plan: null, problems: [], why });
const refusal = (status: number) => new Refusal(status, "", "", undefined, null);

test("what was known of a spec stays while nobody answers", () => {
    const was = checked("a: 1", null);
    for (const status of [0, 503]) expect(newerCheck(was, checked("a: 1", refusal(status)))).toBe(was);
});

test("a word about it, or about another spec, takes its place", () => {
    const was = checked("a: 1", null);
    for (const c of [checked("a: 1", null), checked("a: 1", refusal(429)), checked("a: 2", refusal(0))])
        expect(newerCheck(was, c)).toBe(c);
    const first = checked("a: 1", refusal(0));
    expect(newerCheck(null, first)).toBe(first);
});
