// SPDX-License-Identifier: Apache-2.0
// window.ts - the lines of a log that are in the page: a window over a file of any size, that grows at either end and lets
// go of the other. Pure.

export interface Row {
    at: number;
    text: string;
    /** Of a hit in another log than the one that is shown: which. */
    from?: string;
    /** That log as ?from= names it; null: the driver's. */
    of?: string | null;
    /** Of a line of several logs merged, where `at` only counts: where it stands in its own. */
    offset?: number;
}

export interface Window {
    rows: Row[];
    /** Bytes of the file that it begins and ends at; `isEnd`: nothing is known behind it. */
    start: number;
    end: number;
    isEnd: boolean;
}

export const EMPTY: Window = { rows: [], start: 0, end: 0, isEnd: true };
/** So many lines are in the page at most: a browser draws these at once. */
export const LINES_MAX = 4000;

/** Lines before those of now; what is too many at the end goes, and then the end is no longer here. */
export function before(w: Window, lines: Row[], start: number): Window {
    const rows = [...lines, ...w.rows];
    const kept = rows.slice(0, LINES_MAX);
    const cut = rows.length > kept.length;
    return { rows: kept, start, end: cut ? rows[LINES_MAX]!.at : w.end, isEnd: w.isEnd && !cut };
}

/** Lines behind those of now. */
export function behind(w: Window, lines: Row[], end: number, isEnd: boolean): Window {
    const rows = [...w.rows, ...lines];
    const kept = rows.slice(-LINES_MAX);
    return { rows: kept, start: rows.length > kept.length ? kept[0]!.at : w.start, end, isEnd };
}

/** "12.4 MB of 1.0 GB": where in the file one looks, as a part of it. */
export const share = (w: Window, size: number) => (size > 0 ? Math.min(1, Math.max(0, w.start / size)) : 0);
