// SPDX-License-Identifier: Apache-2.0
// own.ts - of which jobs the first page tells: those that need a hand, however long ago they were submitted, and one's
// own, what works first. Pure.
import type { JobItem } from "../../made/api";
import { ms } from "../../base/say";

const DAY_MS = 864e5;
/** Of live jobs: the flags that ask for a person. */
export const ALARMING = ["UNKNOWN", "HUNG"];

export const alarmOf = (j: Pick<JobItem, "flags">) => ALARMING.find((f) => j.flags.includes(f));
export const failedLately = (j: Pick<JobItem, "state" | "ended_at">, now: number) =>
    (j.state === "FAILED" || j.state === "TIMEOUT") && ms(j.ended_at) > now - DAY_MS;

/** Each job once, in the order given. */
export const once = (...lists: JobItem[][]) => [...new Map(lists.flat().map((j) => [j.id, j])).values()];

const placeOf = (j: JobItem) => (j.state === "QUEUED" ? 1 : j.ended_at ? 2 : 0);

/** What runs, what waits, and what is over: each the newest first, as they came. */
export const ownInOrder = (live: JobItem[], newest: JobItem[]) =>
    once(live, newest).sort((a, b) => placeOf(a) - placeOf(b));
