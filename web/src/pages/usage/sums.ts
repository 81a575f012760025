// SPDX-License-Identifier: Apache-2.0
// sums.ts - what /v1/usage tells, in GPU-hours and in GPUs, and what its parts are called. Nothing is drawn here.
import type { UsageSeries, UsageTime } from "../../made/api";
import type { StackPoint } from "../../kit/stack";
import { words } from "../../base/words";

export const PARTS = ["used", "redone", "held_idle", "blocked", "free", "draining", "broken", "foreign"] as const;
export type Part = (typeof PARTS)[number];
const w = words({
    p_used: ["Used", "使用"],
    p_redone: ["Redone", "重做"],
    p_held_idle: ["Held idle", "占而未用"],
    p_blocked: ["Kept for a gang", "为大作业预留"],
    p_free: ["Free", "空闲"],
    p_draining: ["Draining", "排空"],
    p_broken: ["Out of order", "不可用"],
    p_foreign: ["Foreign", "外部"],
});
export const partWord = (k: Part) => w(`p_${k}`);

/** How a slot of that part looks. */
export const SLOT_OF: Record<Part, string> = {
    used: "used",
    redone: "lost",
    held_idle: "idle",
    blocked: "blocked",
    free: "free",
    draining: "draining",
    broken: "broken",
    foreign: "foreign",
};

/** GPU-seconds of a part or of what goes beside the parts, point by point. What is used has two parts: steps that ran
 * again after a failure, and the rest. */
export function pointsOf(s: UsageSeries, k: Part | "capacity" | "unknown"): (number | null)[] {
    if (k !== "used") return s[k];
    return s.used.map((v, i) => (v === null ? null : Math.max(0, v - (s.redone[i] ?? 0))));
}

/** GPU-hours of a list of GPU-seconds; null where no point is known. */
export function hours(points: (number | null)[]): number | null {
    const told = points.filter((v) => v !== null);
    return told.length ? told.reduce((sum, v) => sum + v, 0) / 3600 : null;
}

/** GPU-hours that jobs held, used or not. */
export const held = (s: UsageSeries): number => (hours(s.used) ?? 0) + (hours(s.held_idle) ?? 0);

/** 0 to 1: how much of what was used and measured worked; null: nobody measured. */
export function worked(s: UsageSeries): number | null {
    const busy = hours(s.busy) ?? 0;
    const measured = held(s) - (hours(s.unknown) ?? 0);
    return measured > 1e-9 ? Math.min(1, busy / measured) : null;
}

/** Seconds of each point: the last one ends where what is told ends. */
export function spans(u: Pick<UsageTime, "from" | "until" | "step_s" | "points">): number[] {
    const from = Date.parse(u.from) / 1000;
    const until = Date.parse(u.until) / 1000;
    return Array.from({ length: u.points }, (_, i) => Math.max(0, Math.min(u.step_s, until - from - i * u.step_s)));
}

/** How many GPUs were what, on the average of each point. */
export function stackOf(u: UsageTime, s: UsageSeries): StackPoint[] {
    const from = Date.parse(u.from);
    const points = PARTS.map((k) => pointsOf(s, k));
    return spans(u).flatMap((span, i) =>
        span > 0
            ? [
                  {
                      at: from + i * u.step_s * 1000,
                      parts: points.map((part) => {
                          const v = part[i];
                          return v === null || v === undefined ? null : v / span;
                      }),
                  },
              ]
            : [],
    );
}
