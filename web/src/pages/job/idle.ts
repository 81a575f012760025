// SPDX-License-Identifier: Apache-2.0
// idle.ts - whether a job's idle GPUs are justified, and whether its owner may be asked to say why they rest. Pure.
import type { Job } from "../../made/api";
import { ms } from "../../base/say";

type Idle = Pick<Job, "state" | "gpus" | "idle_until" | "idle_reason">;

/** GPUs of a job that has none, or does not run, cannot rest. */
export const canRest = (j: Pick<Idle, "state" | "gpus">) => j.state === "RUNNING" && j.gpus > 0;

/** Up to when and why, while that holds; null: it does not, or no longer. */
export function restsUntil(j: Idle, now: number): { until: string; why: string } | null {
    if (!canRest(j) || !j.idle_until || ms(j.idle_until) <= now) return null;
    return { until: j.idle_until, why: j.idle_reason ?? "" };
}

export const WHY_MOST = 300; // bytes, as the server counts

/** What keeps the reason from being sent. */
export function whyWrong(why: string): "none" | "long" | null {
    const bytes = new TextEncoder().encode(why.trim()).length;
    return bytes === 0 ? "none" : bytes > WHY_MOST ? "long" : null;
}
