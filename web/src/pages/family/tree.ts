// SPDX-License-Identifier: Apache-2.0
// tree.ts - the family of a job as places of a drawing, and differences in short. Pure.
import type { FamilyMember, SpecEdit } from "../../made/api";

export interface Place {
    id: string;
    column: number;
    row: number;
}

/** A generation to a column; each leaf has a row of its own, and a parent stands beside its first child. The list has
 * each job behind its parent, children together; what a server should never say is placed all the same. */
export function placesOf(jobs: Pick<FamilyMember, "id" | "parent">[]): Place[] {
    const columns = new Map<string, number>();
    const out: Place[] = [];
    let row = -1;
    let last: string | null = null;
    for (const j of jobs) {
        const above = j.parent === null ? undefined : columns.get(j.parent);
        const column = above === undefined ? 0 : above + 1;
        if (above === undefined || last !== j.parent) row++; // else it is the first child: beside its parent
        columns.set(j.id, column);
        out.push({ id: j.id, column, row });
        last = j.id;
    }
    return out;
}

const short = (key: string) => key.replace(/^overrides\./, "").replace(/^.*\.(?=[^.]+\.[^.]+$)/, "");

/** One change in a few words: "lr 1e-6 → 5e-7", "+nnodes 2", "−pool". */
export function shortEdit(e: SpecEdit): string {
    if (e.old === null) return `+${short(e.key)} ${e.new ?? ""}`.trimEnd();
    if (e.new === null) return `−${short(e.key)}`;
    return `${short(e.key)} ${e.old} → ${e.new}`;
}

/** The first of them, and how many there are besides. */
export const shortEdits = (edits: SpecEdit[], most: number) => ({
    says: edits.slice(0, most).map(shortEdit).join("; "),
    more: Math.max(0, edits.length - most),
});

/** The two that are chosen: a third takes the place of the older one. */
export const chosenWith = (chosen: string[], id: string) =>
    chosen.includes(id) ? chosen.filter((x) => x !== id) : [...chosen, id].slice(-2);
