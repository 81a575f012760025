// SPDX-License-Identifier: Apache-2.0
// lately.ts - of which time the GPUs of a job are asked for: the last hour while its newest attempt runs, and all of that
// attempt once it has ended. Pure.
import type { Job } from "../../made/api";
import { ms } from "../../base/say";

/** Strips of more minutes than this would be too fine to see. */
const POINTS = 60;

const endOf = (job: Pick<Job, "attempts">) => {
    const last = job.attempts.at(-1);
    return last?.ended_at ? last : null;
};

/** A job that waits for its next attempt has no newer figures than its last one. */
export const hasEnded = (job: Pick<Job, "attempts">) => endOf(job) !== null;

export function spanAsked(job: Pick<Job, "attempts">): { since?: string; step: string } {
    const over = endOf(job);
    if (!over) return { since: "1h", step: "1m" };
    const ran = over.started_at ? ms(over.ended_at) - ms(over.started_at) : 0;
    return { step: `${Math.max(1, Math.ceil(ran / 60_000 / POINTS))}m` };
}
