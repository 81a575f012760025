// SPDX-License-Identifier: Apache-2.0
// merged.ts - the driver's log and those of all workers as one row of lines, as the server merges them: look after look,
// each from the cursor of the one before, so that a lost connection loses and doubles no line.
import { isAway } from "../../api/client";
import type { LogMerged } from "../../made/api";
import { overdrawn } from "./lines";
import type { Row } from "./window";

const PAUSE_MS = 2000;
type Source = LogMerged["sources"][number];

/** A log of several as ?from= names it; null: the driver's. */
export const fromOf = (s: { source: string; file: string | null }) => (s.file ? `${s.source}:${s.file}` : null);

/** Rows of a look. They are counted from `at` on: offsets are of different logs. */
export function mergedRows(page: LogMerged, at: number, says: (s: Source) => string): Row[] {
    const names = page.sources.map((s) => ({ from: says(s), of: fromOf(s) }));
    return page.lines.map((line, i) => ({
        at: at + i,
        text: overdrawn(line.text) + (line.cut ? " …" : ""),
        offset: line.offset,
        from: names[line.source]?.from ?? "",
        of: names[line.source]?.of ?? null,
    }));
}

export interface Looks {
    ask: (cursor: string | undefined) => Promise<LogMerged>;
    hear: (page: LogMerged) => void;
    /** False: its attempt is over, though the job may go on with another one. */
    live: boolean;
    /** Until the next look; one that says more needs none. */
    pause: () => Promise<void>;
    signal: AbortSignal;
}

/** Ends with the job, or with the signal. Throws what refuses the first look, and any refusal but of a server that is away. */
export async function followMerged(p: Looks): Promise<void> {
    let cursor: string | undefined;
    while (!p.signal.aborted) {
        let page: LogMerged | null = null;
        try {
            page = await p.ask(cursor);
        } catch (e) {
            if (p.signal.aborted) return;
            if (cursor === undefined || !isAway(e)) throw e;
        }
        if (p.signal.aborted) return;
        if (page) {
            cursor = page.cursor;
            p.hear(page);
            if (page.ended || !(p.live || page.more)) return;
        }
        if (!page?.more) await p.pause();
    }
}

/** A while, and for as long as nobody looks at the page. */
export function pauseUnseen(signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
        const look = () => {
            if (document.hidden && !signal.aborted) return;
            document.removeEventListener("visibilitychange", look);
            signal.removeEventListener("abort", look);
            done();
        };
        setTimeout(() => {
            document.addEventListener("visibilitychange", look);
            look();
        }, PAUSE_MS);
        signal.addEventListener("abort", look);
    });
}
