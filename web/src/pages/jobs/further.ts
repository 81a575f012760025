// SPDX-License-Identifier: Apache-2.0
// further.ts - the pages of the list behind the one that its address names: each is asked for when one scrolls to the end
// of those that are here, and stays, so that one scrolls back over them as well. What changes in them comes by itself.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobItem, JobList } from "../../made/api";
import { call } from "../../api/client";
import { onChange } from "../../api/live";
import { askOf } from "./asked";

export interface FurtherPage {
    /** By which it was asked for: next_cursor of the page before. */
    cursor: string;
    jobs: JobItem[];
    next: string | null;
}

/** So many pages are kept, the first one too; what is behind them has a link. */
export const PAGES_MAX = 20;
const FRESH_MS = 1500; // for each page that is asked for anew
const NONE: FurtherPage[] = [];
type AskPage = (cursor: string) => Promise<JobList>;

const pageOf = (cursor: string, of: JobList): FurtherPage => ({ cursor, jobs: of.jobs, next: of.next_cursor ?? null });

/** All rows, each job once: one that moved while pages were asked for stands where it came first. */
export function joined(first: JobItem[], further: FurtherPage[]): JobItem[] {
    if (!further.length) return first;
    const seen = new Set<string>();
    return [first, ...further.map((p) => p.jobs)].flatMap((jobs) =>
        jobs.filter((j) => !seen.has(j.id) && !!seen.add(j.id)),
    );
}

/** Up to n pages from this cursor on, one after the other. */
export async function chained(ask: AskPage, from: string | null, n: number): Promise<FurtherPage[]> {
    const out: FurtherPage[] = [];
    for (let cursor = from; cursor && out.length < n; cursor = out.at(-1)!.next)
        out.push(pageOf(cursor, await ask(cursor)));
    return out;
}

export interface Further {
    rows: JobItem[] | undefined;
    /** Of the page behind all that are here. */
    next: string | null;
    /** Is any page here but the first? */
    hasMore: boolean;
    more: () => void;
}

export function useFurther(first: JobList | undefined, q: URLSearchParams): Further {
    const [state, setState] = useState<{ key: string; pages: FurtherPage[] }>({ key: "", pages: NONE });
    const ask = askOf(q);
    const key = JSON.stringify(ask);
    const pages = state.key === key ? state.pages : NONE;
    const begin = first?.next_cursor ?? null;
    const next = pages.length ? pages.at(-1)!.next : begin;
    const rows = useMemo(() => first && joined(first.jobs, pages), [first, pages]);
    const ids = useMemo(() => new Set(pages.flatMap((p) => p.jobs.map((j) => j.id))), [pages]);
    const now = useRef({ key, ask, pages, begin, next, ids });
    now.current = { key, ask, pages, begin, next, ids };
    const busy = useRef(false);
    const timer = useRef(0);

    /** What it brings is for the list that was shown when it was asked for. A refusal is passed over: the next scroll or
     * change asks again. */
    const load = async (get: (ask: AskPage) => Promise<FurtherPage[]>) => {
        if (busy.current) return;
        busy.current = true;
        const { key, ask } = now.current;
        const got = await get((cursor) => call("GET /v1/jobs", { query: { ...ask, cursor } })).catch(() => null);
        busy.current = false;
        if (got && now.current.key === key) setState({ key, pages: got });
    };
    const more = () => {
        const { pages, next } = now.current;
        if (!next || pages.length + 1 >= PAGES_MAX) return;
        void load(async (ask) => [...pages, ...(await chained(ask, next, 1))]);
    };
    const anew = () => {
        timer.current = 0;
        const { pages, begin } = now.current;
        // What is on its way may have been told before the change: it is asked for after it.
        if (busy.current) soon();
        else if (pages.length) void load((ask) => chained(ask, begin, pages.length));
    };
    const soon = () => {
        const wait = FRESH_MS * now.current.pages.length;
        if (wait) timer.current ||= setTimeout(anew, wait) as unknown as number;
    };
    useEffect(() => {
        // The first page was asked for again and ends elsewhere: what stood at its end is on none now.
        if (pages.length && pages[0]!.cursor !== begin) soon();
    }, [begin, pages]);
    useEffect(
        () => onChange("jobs", (changed) => (!changed || changed.some((id) => now.current.ids.has(id))) && soon()),
        [],
    );
    useEffect(() => () => clearTimeout(timer.current), []);
    return { rows, next, hasMore: pages.length > 0, more };
}
