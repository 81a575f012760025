// SPDX-License-Identifier: Apache-2.0
// lines.ts - bytes of a log as lines, and a line as pieces: colours by ANSI, hits of a search, the rest as it is. Pure.
import { visible } from "../../base/say";

export interface Cut {
    lines: { at: number; text: string }[];
    /** What stands after the last newline, and where. */
    rest: Uint8Array;
    at: number;
}

const LINE_MAX = 16 << 10; // characters of a line that are shown
const decoder = new TextDecoder();

/** Of a bar that was drawn over itself what stood there last. */
export function overdrawn(line: string): string {
    const text = line.replace(/\r$/, "");
    return text.slice(text.lastIndexOf("\r") + 1);
}

export function splitLines(bytes: Uint8Array, from: number): Cut {
    const lines: Cut["lines"] = [];
    let start = 0;
    for (let i = bytes.indexOf(10); i >= 0; i = bytes.indexOf(10, start)) {
        const raw = bytes.subarray(start, Math.min(i, start + LINE_MAX));
        const cut = i - start > LINE_MAX ? ` … ${i - start - LINE_MAX} bytes more` : "";
        lines.push({ at: from + start, text: overdrawn(decoder.decode(raw)) + cut });
        start = i + 1;
    }
    return { lines, rest: bytes.slice(start), at: from + start };
}

export interface Piece {
    text: string;
    tone?: string;
    hit?: boolean;
}

const TONES: Record<number, string> = {
    31: "bad",
    32: "ok",
    33: "warn",
    34: "run",
    35: "lost",
    36: "foreign",
    90: "dim",
    91: "bad",
    92: "ok",
    93: "warn",
    94: "run",
    95: "lost",
    96: "foreign",
};
// Colours are read; what moves the cursor, clears, or names the window is left out.
// oxlint-disable-next-line no-control-regex
const ESCAPE = /\u001b(?:\[([0-9;]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;

function colours(line: string): Piece[] {
    const out: Piece[] = [];
    let tone: string | undefined;
    let at = 0;
    for (const m of line.matchAll(ESCAPE)) {
        if (m.index > at) out.push({ text: line.slice(at, m.index), tone });
        at = m.index + m[0].length;
        if (m[2] !== "m") continue;
        for (const n of (m[1] || "0").split(";").map(Number)) {
            if (n === 0 || n === 39) tone = undefined;
            else tone = TONES[n] ?? tone;
        }
    }
    if (at < line.length) out.push({ text: line.slice(at), tone });
    return out;
}

export function pieces(line: string, needle: RegExp | null): Piece[] {
    return colours(line).flatMap((p) => {
        const text = visible(p.text);
        if (!needle) return [{ ...p, text }];
        const out: Piece[] = [];
        let at = 0;
        for (const m of text.matchAll(needle)) {
            if (!m[0]) break;
            if (m.index > at) out.push({ text: text.slice(at, m.index), tone: p.tone });
            out.push({ text: m[0], hit: true });
            at = m.index + m[0].length;
        }
        if (at < text.length) out.push({ text: text.slice(at), tone: p.tone });
        return out;
    });
}

export const looksBad = (line: string) => /\b(?:\w*Error|Exception|CRITICAL|FATAL|Traceback)\b/.test(line);

/** "- key: old" and "+ key: new"; a text of several lines is a line each. */
export function diffLines(edits: { key: string; old: string | null; new: string | null }[]) {
    const lines = (sign: "-" | "+", key: string, value: string | null) =>
        value === null ? [] : `${key}: ${value}`.split("\n").map((text) => ({ sign, text }));
    return edits.flatMap((e) => [...lines("-", e.key, e.old), ...lines("+", e.key, e.new)]);
}
