// SPDX-License-Identifier: Apache-2.0
// match.ts - what a silence covers: lists of patterns, as they are typed. Pure.

export const MATCHES = ["rules", "projects", "users", "kinds", "names"] as const;
export type Match = (typeof MATCHES)[number];
/** The options of `argus alert silence-match`. */
export const OPTION: Record<Match, string> = {
    rules: "--rule",
    projects: "--project",
    users: "--user",
    kinds: "--kind",
    names: "--name",
};

/** "a*, b" of each field that says something. Pure. */
export function matchOf(texts: Record<Match, string>): Partial<Record<Match, string[]>> {
    const lists = MATCHES.map((m) => [m, texts[m].split(/[\s,]+/).filter(Boolean)] as const);
    return Object.fromEntries(lists.filter(([, list]) => list.length));
}
