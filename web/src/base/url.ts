// SPDX-License-Identifier: Apache-2.0
// url.ts - the address is the state of a page: its path, and its query as signals that pages read and set.
//
// A change by `setQuery` replaces the entry of the history (a filter is no step back), `go` adds one. A link that is
// clicked plainly stays in this document; everything else is the browser's.
import { computed, signal } from "@preact/signals";

export const path = signal(location.pathname);
const search = signal(location.search);
export const query = computed(() => new URLSearchParams(search.value));

function take() {
    path.value = location.pathname;
    search.value = location.search;
}

export function go(to: string) {
    if (to === location.pathname + location.search + location.hash) return;
    history.pushState(null, "", to);
    take();
    scrollTo(0, 0);
}

/** null or "" takes a name away. */
export function setQuery(change: Record<string, string | null | undefined>) {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(change)) {
        if (value === null || value === undefined || value === "") next.delete(name);
        else next.set(name, value);
    }
    const text = next.toString();
    history.replaceState(null, "", location.pathname + (text ? `?${text}` : "") + location.hash);
    take();
}

export const withQuery = (to: string, values: Record<string, string | null | undefined>) => {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value) q.set(name, value);
    const text = q.toString();
    return text ? `${to}?${text}` : to;
};

/** "/jobs/{id}" against a path: the names, or null. */
export function match(pattern: string, at: string): Record<string, string> | null {
    const want = pattern.split("/");
    const have = at.replace(/\/$/, "").split("/");
    if (at === "/" ? pattern !== "/" : want.length !== have.length) return null;
    const names: Record<string, string> = {};
    for (let i = 0; at !== "/" && i < want.length; i++) {
        const w = want[i]!;
        const h = have[i]!;
        if (w.startsWith("{")) {
            try {
                names[w.slice(1, -1)] = decodeURIComponent(h);
            } catch {
                return null;
            }
        } else if (w !== h) return null;
    }
    return names;
}

export function followLinks() {
    addEventListener("popstate", take);
    document.addEventListener("click", (e) => {
        const a = (e.target as Element).closest?.("a[href]") as HTMLAnchorElement | null;
        if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
        if (a.origin !== location.origin || a.target || a.hasAttribute("download") || a.pathname.startsWith("/v1/"))
            return;
        if (a.hash && a.pathname === location.pathname && a.search === location.search) return;
        e.preventDefault();
        go(a.pathname + a.search + a.hash);
    });
}
