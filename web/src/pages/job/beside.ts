// SPDX-License-Identifier: Apache-2.0
// beside.ts - samples of two jobs by the same step, and the step with which another one is compared. Pure.

export interface BesideRow<T> {
    step: number;
    ours: T[];
    theirs: T[];
}

/** The oldest step of a list that goes on: of those before it nothing is known yet. */
function knownFrom(of: { step: number }[], goesOn: boolean): number {
    return goesOn ? of.reduce((least, x) => Math.min(least, x.step), Infinity) : -Infinity;
}

/** The samples of one prompt in two jobs, a row for each step that one of them has, the newest first. more: a list goes
 * on; steps before its oldest one have no row, which would say that the job has none of them. */
export function besideRows<T extends { step: number }>(
    ours: T[],
    theirs: T[],
    more = { ours: false, theirs: false },
): BesideRow<T>[] {
    const from = Math.max(knownFrom(ours, more.ours), knownFrom(theirs, more.theirs));
    const all = [...new Set([...ours, ...theirs].map((x) => x.step))].sort((a, b) => b - a);
    const steps = all.filter((step) => step >= from);
    return steps.map((step) => ({
        step,
        ours: ours.filter((x) => x.step === step),
        theirs: theirs.filter((x) => x.step === step),
    }));
}

/** The step since which changes are told: the wanted one where it is kept and is another than the shown one ("" is the
 * newest), else the one before that, else the first behind it; null: no other one is kept. */
export function sinceStep(kept: number[], at: string, wanted: string): number | null {
    const shown = at ? Number(at) : Math.max(...kept);
    const others = kept.filter((x) => x !== shown);
    if (wanted && others.includes(Number(wanted))) return Number(wanted);
    const before = others.filter((x) => x < shown);
    if (before.length) return Math.max(...before);
    return others.length ? Math.min(...others) : null;
}

/** What was typed as a score; undefined: nothing, or no number. */
export function scoreTyped(text: string): string | undefined {
    const typed = text.trim();
    return typed && Number.isFinite(Number(typed)) ? typed : undefined;
}
