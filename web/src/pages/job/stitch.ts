// SPDX-License-Identifier: Apache-2.0
// stitch.ts - one curve over all attempts of a job: what was run again stands grey beside it, and what happened to the
// job stands on it as marks. Pure.
import type { Checkpoint, Finding, Job, JobMetrics, Series } from "../../made/api";
import { ms } from "../../base/say";
import type { Line, Mark } from "../../kit/plot";

/** A curve by the clock: points whose moment nobody wrote down are left out. */
export function byTime(s: Series): { x: number[]; y: (number | null)[] } {
    const known = s.time.flatMap((at, i) => (at === null ? [] : [{ at, value: s.value[i] ?? null }]));
    return { x: known.map((p) => p.at), y: known.map((p) => p.value) };
}

const placed = (s: Series, isTime: boolean) => (isTime ? byTime(s) : { x: s.step, y: s.value });

/** The newest line first; each attempt whose steps were run again is one more, grey. */
export function linesOf(key: string, m: Pick<JobMetrics, "series" | "superseded">, isTime: boolean): Line[] {
    const s = m.series[key];
    if (!s) return [];
    const old = m.superseded.flatMap((v) => {
        const was = v.series?.[key];
        return was ? [{ label: `${key} ${v.attempt}`, ...placed(was, isTime), color: "--c1", isOld: true }] : [];
    });
    return [{ label: key, ...placed(s, isTime), color: "--c1" }, ...old];
}

/** The last step that had been told by then (seconds since 1970); null: none had. */
export function stepAt(of: Pick<Series, "step" | "time">, at: number): number | null {
    let found: number | null = null;
    of.time.forEach((t, i) => {
        if (t !== null && t <= at) found = of.step[i]!;
    });
    return found;
}

/** The curve with the most moments: by it a moment becomes a step. */
function clockOf(m: Pick<JobMetrics, "series" | "superseded">): Pick<Series, "step" | "time"> {
    const all = Object.values(m.series);
    const most = all.reduce<Series | null>((a, b) => (a && a.step.length >= b.step.length ? a : b), null);
    return most ?? { step: [], time: [] };
}

export interface Happened {
    restart: (attempt: number) => string;
    job: Pick<Job, "attempts">;
    checkpoints: Pick<Checkpoint, "step" | "at">[];
    findings: Pick<Finding, "attempt" | "class">[];
}

/** In the order of the axis. What happened before the first step was told has no place on a curve of steps. */
export function marksOf(h: Happened, m: Pick<JobMetrics, "series" | "superseded">, isTime: boolean): Mark[] {
    const clock = clockOf(m);
    if (!clock.step.length) return [];
    const first = isTime ? (clock.time.find((t) => t !== null) ?? Infinity) : clock.step[0]!;
    const last = isTime ? (clock.time.findLast((t) => t !== null) ?? -Infinity) : clock.step.at(-1)!;
    const place = (at: string | null | undefined) =>
        !at ? null : isTime ? ms(at) / 1000 : stepAt(clock, ms(at) / 1000);
    const marks: Mark[] = [];
    const add = (x: number | null, label: string, kind: Mark["kind"]) => {
        if (x !== null) marks.push({ x: Math.min(Math.max(x, first), last), label, kind });
    };
    for (const a of h.job.attempts) {
        // An attempt that repeated steps began at the first of them.
        const again = m.superseded.find((v) => v.attempt === a.k - 1);
        if (a.k > 1) add(!isTime && again ? again.from_step : place(a.started_at), h.restart(a.k), "restart");
        // It ended where it stood, though those steps were run again.
        const own = m.superseded.find((v) => v.attempt === a.k);
        const end = !isTime && own ? own.to_step : place(a.ended_at);
        for (const f of h.findings) if (f.attempt === a.k) add(end, f.class, "finding");
    }
    for (const c of h.checkpoints) {
        const x = isTime ? place(c.at) : c.step;
        if (x !== null && x >= first && x <= last) add(x, "", "checkpoint");
    }
    return marks.sort((a, b) => a.x - b.x);
}
