// SPDX-License-Identifier: Apache-2.0
// recovery.ts - where all of a job's time went, part by part: training, and what its failures took. Pure.
import type { Recovery } from "../../made/api";

export const TIME_PARTS = ["productive", "redo", "detect", "diagnose", "queue", "start", "other"] as const;
export type TimePart = (typeof TIME_PARTS)[number];

export interface TimeRow {
    part: TimePart;
    seconds: number;
    gpuHours: number;
    /** 0 to 1, of what its attempts held and what was waited for between them. */
    share: number;
}

/** Nothing is to be told of a job that told of no step and never failed. */
export const hasTimes = (r: Recovery | null): r is Recovery =>
    !!r && (r.ettr !== null || r.failures > 0) && r.held_s + r.waited_s > 0;

/** Parts that took no time are left out, but training: that there was none is the worst that can be told. */
export function timeRows(r: Recovery, gpus: number): TimeRow[] {
    const whole = r.held_s + r.waited_s;
    return TIME_PARTS.map((part) => {
        const seconds = r[`${part}_s`];
        return { part, seconds, gpuHours: (seconds * gpus) / 3600, share: whole > 0 ? seconds / whole : 0 };
    }).filter((x) => x.part === "productive" || x.seconds > 0);
}
