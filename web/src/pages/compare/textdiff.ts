// SPDX-License-Identifier: Apache-2.0
// textdiff.ts - two texts line by line: what goes, what comes, and three lines about each change. Pure.

export interface DiffLine {
    /** "…" stands for lines that are the same and left out. */
    sign: "-" | "+" | " " | "…";
    text: string;
}

const CONTEXT = 3;
/** Beyond this the table of the longest common lines would be too large for a page. */
export const LINES_MOST = 1500;

/** null: one of them is too long. */
export function textDiff(a: string, b: string): DiffLine[] | null {
    const x = a.split("\n");
    const y = b.split("\n");
    let from = 0;
    while (from < x.length && from < y.length && x[from] === y[from]) from++;
    let end = 0;
    while (end < x.length - from && end < y.length - from && x[x.length - 1 - end] === y[y.length - 1 - end]) end++;
    const p = x.slice(from, x.length - end);
    const q = y.slice(from, y.length - end);
    if (p.length > LINES_MOST || q.length > LINES_MOST) return null;
    const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ sign: " ", text }));
    return shortened([...same(x.slice(0, from)), ...middle(p, q), ...same(x.slice(x.length - end))]);
}

/** By the longest common lines. */
function middle(p: string[], q: string[]): DiffLine[] {
    const wide = q.length + 1;
    const best = new Uint16Array((p.length + 1) * wide);
    for (let i = p.length - 1; i >= 0; i--)
        for (let k = q.length - 1; k >= 0; k--)
            best[i * wide + k] =
                p[i] === q[k]
                    ? best[(i + 1) * wide + k + 1]! + 1
                    : Math.max(best[(i + 1) * wide + k]!, best[i * wide + k + 1]!);
    const out: DiffLine[] = [];
    let i = 0;
    let k = 0;
    while (i < p.length || k < q.length)
        if (i < p.length && k < q.length && p[i] === q[k]) {
            out.push({ sign: " ", text: p[i++]! });
            k++;
        } else if (k >= q.length || (i < p.length && best[(i + 1) * wide + k]! >= best[i * wide + k + 1]!))
            out.push({ sign: "-", text: p[i++]! });
        else out.push({ sign: "+", text: q[k++]! });
    return out;
}

/** Far from every change a run of equal lines is one "…". */
function shortened(all: DiffLine[]): DiffLine[] {
    const near = new Uint8Array(all.length);
    all.forEach((l, i) => {
        if (l.sign === " ") return;
        near.fill(1, Math.max(0, i - CONTEXT), Math.min(all.length, i + CONTEXT + 1));
    });
    const out: DiffLine[] = [];
    all.forEach((l, i) => {
        if (near[i]) out.push(l);
        else if (out.at(-1)?.sign !== "…") out.push({ sign: "…", text: "" });
    });
    return out;
}
