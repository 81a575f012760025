// SPDX-License-Identifier: Apache-2.0
// lanes.ts - which versions of a service the box asks: one, or two side by side, as the address has them (?try=2,1).
// Pure.

export interface Lanes {
    /** The versions that are asked; empty: the one that has the traffic, as a client that names none. */
    asked: number[];
    /** What the address names and has no replica that is ready. */
    gone: number[];
}

/** "2,1" against the versions that can be asked. */
export function lanesOf(said: string | null, ready: readonly number[]): Lanes {
    const named = (said ?? "").split(",").filter((x) => /^[1-9]\d{0,8}$/.test(x));
    const numbers = [...new Set(named.map(Number))].slice(0, 2);
    return { asked: numbers.filter((n) => ready.includes(n)), gone: numbers.filter((n) => !ready.includes(n)) };
}

/** What there is to choose from, the newest first: those that can be asked, and the one that has the traffic, which
 *  whoever names none asks. Empty: there is no choice. */
export function offeredOf(ready: readonly number[], current: number, asked: readonly number[]): number[] {
    if (!asked.length && !ready.some((n) => n !== current)) return [];
    return [...new Set(current ? [...ready, current] : ready)].sort((a, b) => b - a);
}

/** What the address has then: null where it is as a client asks that names no version. */
export function saidOf(first: number, other: number | null, current: number): string | null {
    if (other !== null && other !== first) return `${first},${other}`;
    return first === current ? null : String(first);
}
