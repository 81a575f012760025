// SPDX-License-Identifier: Apache-2.0
// people.test.ts - the bar of an account: held, borrowed, guarantee and ceiling in one length.
import { expect, test } from "vitest";
import type { Limits, Usage } from "../src/made/api";
import { partsOf } from "../src/pages/people/bar";

const quota = (gpus_guaranteed: number | null, gpus_ceiling: number | null) =>
    ({ gpus_guaranteed, gpus_ceiling }) as Limits;
const usage = (gpus: number, gpus_borrowed = 0) => ({ gpus, gpus_borrowed }) as Usage;

test("the ceiling is the whole length, or the cluster where there is none", () => {
    expect(partsOf(quota(8, 16), usage(12, 4), 64)).toEqual({ sure: 0.5, borrowed: 0.25, mark: 0.5 });
    expect(partsOf(quota(null, null), usage(16, 16), 64)).toEqual({ sure: 0.25, borrowed: 0, mark: null });
});

test("an account beyond its ceiling fills the bar and no more", () => {
    expect(partsOf(quota(0, 8), usage(16, 16), 64)).toEqual({ sure: 0, borrowed: 1, mark: 0 });
    expect(partsOf(quota(null, null), usage(0), 0)).toEqual({ sure: 0, borrowed: 0, mark: null });
});
