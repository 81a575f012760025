// SPDX-License-Identifier: Apache-2.0
// attempts.ts - what each attempt of a job came to: how long it waited and ran, on which nodes, and why it ended. Pure.
import type { Attempt } from "../../made/api";
import { ms } from "../../base/say";

type Times = Pick<Attempt, "queued_at" | "accepted_at" | "started_at" | "ended_at">;

/** Milliseconds, to `at` where it is not over. null: nobody kept when it began. */
function between(began: string | null | undefined, ended: string | null | undefined, at: number): number | null {
    const from = ms(began);
    const to = ms(ended);
    return Number.isFinite(from) ? Math.max(0, (Number.isFinite(to) ? to : at) - from) : null;
}

/** Milliseconds until Ray had it, to its end if Ray never had it, or to `at`. null: nobody kept when its wait began. */
export const waitedOf = (a: Times, at: number) => between(a.queued_at, a.accepted_at ?? a.started_at ?? a.ended_at, at);

/** Milliseconds from its start to its end, or to `at` while it runs. null: it never started. */
export const ranOf = (a: Times, at: number) => between(a.started_at, a.ended_at, at);

/** "w1 (0 1), w2 (3)"; a node whose GPUs nobody kept, or of which none was held, is its name alone. */
export const placesOf = (nodes: Attempt["nodes"]): string =>
    nodes.map((n) => (n.gpu_ids.length ? `${n.name} (${n.gpu_ids.join(" ")})` : n.name)).join(", ");

/** Its class of failure, and what is said of it: a sentence that begins with the class does not say that again. */
export function whyEnded(a: Pick<Attempt, "finding" | "end">): { class: string | null; says: string } {
    const f = a.finding;
    if (!f) return { class: null, says: a.end ?? "" };
    const isTwice = f.sentence.startsWith(f.class);
    const says = isTwice ? f.sentence.slice(f.class.length).replace(/^[:：]?\s*/, "") : f.sentence;
    return { class: f.class, says: says || a.end || "" };
}
