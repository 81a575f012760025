// SPDX-License-Identifier: Apache-2.0
// stack.tsx - what GPUs were over time: a column per point, its parts in the patterns of the slots. What stands under the
// pointer, or under the focus, is told in figures above it.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { clock, num } from "../base/say";
import { CopyCsv } from "./parts";

export interface StackPoint {
    at: number;
    /** In the order of `kinds`; null: nobody knows. */
    parts: (number | null)[];
}
export interface StackKind {
    /** Of a slot: used, idle, blocked, free, draining, broken, foreign, lost. */
    slot: string;
    says: string;
}

/** The least round number that holds them all: 1, 2, 4, 5, 8 times a power of ten. */
export function ceilingOf(values: number[]): number {
    const most = Math.max(0, ...values);
    if (most <= 0) return 1;
    const ten = 10 ** Math.floor(Math.log10(most));
    return ten * ([1, 2, 4, 5, 8, 10].find((n) => n * ten >= most - 1e-9) ?? 10);
}

/** Few figures that count: "412", "61.3", "0.042". */
export const short = (v: number) =>
    v >= 100 ? num(v) : v >= 1 ? String(Number(v.toFixed(1))) : String(Number(v.toPrecision(2)));

export function Stack(p: {
    kinds: StackKind[];
    points: StackPoint[];
    says: string;
    unit: string;
    height?: number;
    end?: ComponentChildren;
    csvHead: string[];
}) {
    const [under, setUnder] = useState<number | null>(null);
    const sums = p.points.map((x) => x.parts.reduce<number>((sum, v) => sum + (v ?? 0), 0));
    const top = ceilingOf(sums);
    const shown = under === null ? null : p.points[under];
    const seen = p.kinds.map((k, i) => ({ ...k, i })).filter((k) => p.points.some((x) => (x.parts[k.i] ?? 0) > 0));
    const last = p.points.length - 1;
    return (
        <div class="stackbox">
            <div class="row wrap">
                <div class="legend">
                    {seen.map((k) => (
                        <span>
                            <i class={`slot ${k.slot}`} />
                            {k.says}
                            {shown && <b>{shown.parts[k.i] === null ? "–" : short(shown.parts[k.i]!)}</b>}
                        </span>
                    ))}
                </div>
                <span class="grow" />
                <span class="small dim nowrap">{shown ? clock(shown.at) : p.unit}</span>
                {p.end}
                <CopyCsv
                    head={["at", ...p.csvHead]}
                    rows={() => p.points.map((x) => [new Date(x.at).toISOString(), ...x.parts])}
                />
            </div>
            <div class="stackplot">
                <div class="stackaxis" aria-hidden="true">
                    <i>{short(top)}</i>
                    <i>{short(top / 2)}</i>
                    <i>0</i>
                </div>
                <div
                    class="stack"
                    role="img"
                    aria-label={p.says}
                    style={{ height: `${p.height ?? 160}px` }}
                    onMouseLeave={() => setUnder(null)}
                >
                    {p.points.map((x, n) => (
                        <span class={under === n ? "under" : undefined} onMouseEnter={() => setUnder(n)}>
                            {seen.map((k) => (
                                <i
                                    class={`slot ${k.slot}`}
                                    style={{ height: `${((x.parts[k.i] ?? 0) / top) * 100}%` }}
                                />
                            ))}
                        </span>
                    ))}
                </div>
                <div class="axis12 stackfoot" aria-hidden="true">
                    {[0, 0.5, 1].map(
                        (f) => p.points[Math.round(last * f)] && <i>{clock(p.points[Math.round(last * f)]!.at)}</i>,
                    )}
                </div>
            </div>
        </div>
    );
}
