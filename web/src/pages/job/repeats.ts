// SPDX-License-Identifier: Apache-2.0
// repeats.ts - which parts of a text stood in it before: runs of four words, of letters in a script without blanks, as
// argusd counts them (src/core/sample/sample.c).
const RUN = 4;
const LONG_WORD = 24;
const UNITS_MAX = 16384;

export interface Part {
    text: string;
    again: boolean;
}

/** Where each unit begins and ends. */
function units(text: string): [number, number][] {
    const words = [...text.matchAll(/\S+/g)];
    const pattern = words.length && text.length / words.length > LONG_WORD ? /\S/gu : /\S+/g;
    const found: [number, number][] = [];
    for (const m of text.matchAll(pattern)) {
        if (found.length === UNITS_MAX) break;
        found.push([m.index, m.index + m[0].length]);
    }
    return found;
}

/** The text in parts, in its order; joined they are the text. */
export function marked(text: string): Part[] {
    const at = units(text);
    const seen = new Set<string>();
    const again = new Uint8Array(at.length);
    for (let i = 0; i + RUN <= at.length; i++) {
        const key = at
            .slice(i, i + RUN)
            .map(([from, to]) => text.slice(from, to))
            .join(" ");
        if (seen.has(key)) again.fill(1, i, i + RUN);
        seen.add(key);
    }
    const parts: Part[] = [];
    let from = 0;
    for (let i = 0; i < at.length; i++) {
        if (!again[i]) continue;
        let last = i;
        while (again[last + 1]) last++;
        if (at[i]![0] > from) parts.push({ text: text.slice(from, at[i]![0]), again: false });
        parts.push({ text: text.slice(at[i]![0], at[last]![1]), again: true });
        from = at[last]![1];
        i = last;
    }
    if (from < text.length) parts.push({ text: text.slice(from), again: false });
    return parts;
}
