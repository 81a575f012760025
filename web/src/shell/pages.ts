// SPDX-License-Identifier: Apache-2.0
// pages.ts - which pages there are: each folder of pages/ that has a route.ts. A page adds itself by being there.
import type { ComponentType } from "preact";
import type { IconName } from "../kit/icons";
import { match } from "../base/url";

export interface PageRoute {
    /** "/jobs/{id}"; the first one is where the rail leads. */
    paths: string[];
    title: () => string;
    icon: IconName;
    /** Where it stands in the rail; without it, it is reached by links alone. */
    nav?: { group: "" | "machines" | "library" | "work" | "watch"; order: number; count?: () => number; hot?: boolean };
    /** "g q" goes there. */
    key?: string;
    /** What can be done there, for the find box: an address with ?do= (base/acts.ts). */
    acts?: { to: string; says: () => string; least?: "admin" }[];
    /** The rail marks this path's entry: "/jobs" for a job. */
    under?: string;
    load: () => Promise<{ default: ComponentType<{ names: Record<string, string> }> }>;
}

const found = import.meta.glob<{ route: PageRoute }>("../pages/*/route.ts", { eager: true });
export const pages: PageRoute[] = Object.values(found)
    .map((m) => m.route)
    .sort((a, b) => (a.nav?.order ?? 99) - (b.nav?.order ?? 99));

export function pageAt(path: string): { route: PageRoute; names: Record<string, string> } | null {
    for (const route of pages)
        for (const pattern of route.paths) {
            const names = match(pattern, path);
            if (names) return { route, names };
        }
    return null;
}
