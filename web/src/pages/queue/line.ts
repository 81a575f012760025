// SPDX-License-Identifier: Apache-2.0
// line.ts - the jobs that wait, the first in line first. The API lists them in any order but that of the line, which is of
// the moment: of a line longer than a page, those that wait longest are asked for, and those that priority puts before
// them.
import { useMemo } from "preact/hooks";
import type { JobItem } from "../../made/api";
import { useAsk } from "../../api/use";
import { ms } from "../../base/say";

/** Rows of one answer, at most; the API's own limit. */
export const MOST = 1000;
/** The states in which a job holds machines. */
export const RUNS = "STARTING,RUNNING,STOPPING";

/** The first of the line. ranked: the highest priorities first, cut somewhere within the priority of its last row, so that
 * of this one some are missing: its oldest are among the others. */
export function firstInLine(oldest: JobItem[], ranked: JobItem[]): JobItem[] {
    const least = ranked.at(-1)?.priority ?? 0;
    const known = new Set(oldest.map((j) => j.id));
    const before = ranked.filter((j) => j.priority > least && !known.has(j.id));
    return [...before, ...oldest]
        .sort((a, b) => (a.position ?? 1e9) - (b.position ?? 1e9) || ms(a.queued_at) - ms(b.queued_at))
        .slice(0, MOST);
}

type Whose = { all?: boolean; pool?: string };
const COUNTED = { every: 30_000 }; // a count looks at every job

/** How many there are of a list that was cut; undefined: not known yet, or it was not. */
export function useTotal(state: string, whose: Whose, isCut: boolean): number | undefined {
    const query = { ...whose, state, limit: 1, count: true };
    return useAsk(isCut ? "GET /v1/jobs" : null, { query }, COUNTED).data?.total;
}

/** The line of the pool, or of all; one's own jobs in it, or everybody's. */
export function useLine(whose: Whose) {
    const query = { ...whose, state: "QUEUED", limit: MOST };
    const live = { topics: ["jobs" as const] };
    const oldest = useAsk("GET /v1/jobs", { query: { ...query, sort: "queued_at", order: "asc" } }, live);
    const isCut = !!oldest.data?.next_cursor;
    const ranked = useAsk(isCut ? "GET /v1/jobs" : null, { query: { ...query, sort: "priority" } }, live);
    const total = useTotal("QUEUED", whose, isCut);
    const rows = useMemo(
        () => oldest.data && firstInLine(oldest.data.jobs, ranked.data?.jobs ?? []),
        [oldest.data, ranked.data],
    );
    return { asked: oldest, rows, isCut, total: isCut ? total : rows?.length };
}
