// SPDX-License-Identifier: Apache-2.0
// keys.ts - the keyboard map. Whoever shows something registers its keys while it is shown; `?` lists them all.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { letters } from "./prefs";

export interface Key {
    /** "j", "g q" (one after the other), "mod+k" (Ctrl or Cmd), "Escape". */
    keys: string;
    says: () => string;
    does: (e: KeyboardEvent) => void;
    /** Also while a field has the focus. */
    inFields?: boolean;
}

export const shownKeys = signal<Key[]>([]);
let before = "";
let beforeAt = 0;

const isField = (x: EventTarget | null) =>
    x instanceof HTMLElement &&
    (x.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(x.tagName)) &&
    !(x instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(x.type));

function nameOf(e: KeyboardEvent): string {
    return (e.ctrlKey || e.metaKey ? "mod+" : "") + (e.key.length === 1 ? e.key : e.key);
}

function onKey(e: KeyboardEvent) {
    if (e.isComposing || e.altKey || e.defaultPrevented) return;
    const name = nameOf(e);
    const inField = isField(e.target);
    const pair = performance.now() - beforeAt < 1200 ? `${before} ${name}` : "";
    const all = [...shownKeys.value].reverse(); // what came last is on top
    const hit = all.find((k) => k.keys === pair) ?? all.find((k) => k.keys === name);
    before = name;
    beforeAt = performance.now();
    if (!hit || (inField && !hit.inFields)) return;
    if (!letters.value && hit.keys.replace(/\w+\+/, "").length === 1 && !hit.keys.startsWith("mod+")) return;
    before = "";
    e.preventDefault();
    hit.does(e);
}

export function listenToKeys() {
    addEventListener("keydown", onKey);
}

export function addKeys(keys: Key[]): () => void {
    shownKeys.value = [...shownKeys.value, ...keys];
    return () => (shownKeys.value = shownKeys.value.filter((k) => !keys.includes(k)));
}

export function useKeys(keys: Key[], deps: unknown[] = []) {
    useEffect(() => addKeys(keys), deps);
}

/** The row with the focus, and the one a step from it: its link, or what else of it can have the focus. */
function moveFocus(of: string, step: number) {
    const rows = [...document.querySelectorAll<HTMLElement>(of)];
    const at = rows.findIndex((r) => r.contains(document.activeElement));
    const row = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    (row?.matches("a, button") ? row : row?.querySelector<HTMLElement>("a, button"))?.focus();
}

/** j and k go from row to row. of: a selector of rows; says: what the map says. */
export function useRowKeys(of: string, says: () => string) {
    useKeys(
        [
            { keys: "j", says, does: () => moveFocus(of, 1) },
            { keys: "k", says, does: () => moveFocus(of, -1) },
        ],
        [of],
    );
}
