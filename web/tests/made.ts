// SPDX-License-Identifier: Apache-2.0
// made.ts - what tests make of the API's own types.
import type { UsageSeries } from "../src/made/api";

/** A series of this name with no point in it, but for these members. */
export const series = (name: string, more: Partial<UsageSeries>): UsageSeries => ({
    name,
    capacity: [],
    used: [],
    held_idle: [],
    blocked: [],
    free: [],
    draining: [],
    broken: [],
    foreign: [],
    unknown: [],
    busy: [],
    redone: [],
    ...more,
});
