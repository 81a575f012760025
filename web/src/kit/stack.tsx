// SPDX-License-Identifier: Apache-2.0
// stack.tsx - what GPUs were over time: a column per point, its parts in the patterns of the slots. What stands under the
// pointer, or under the focus, is told in figures above it.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Cell } from "../base/csv";
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

/** The frame of a picture over time: what its colours mean and what is told beside that, its axis up to `top`, and
 * below it the first, the middle and the last of its points. */
export function StackBox<P>(p: {
    points: P[];
    legend: ComponentChildren;
    told: string;
    end?: ComponentChildren;
    csvHead: string[];
    csvRow: (point: P) => Cell[];
    top: number;
    foot: (point: P) => string;
    children: ComponentChildren;
}) {
    const last = p.points.length - 1;
    return (
        <div class="stackbox">
            <div class="row wrap">
                <div class="legend">{p.legend}</div>
                <span class="grow" />
                <span class="small dim nowrap">{p.told}</span>
                {p.end}
                <CopyCsv head={p.csvHead} rows={() => p.points.map((x) => p.csvRow(x))} />
            </div>
            <div class="stackplot">
                <div class="stackaxis" aria-hidden="true">
                    <i>{short(p.top)}</i>
                    <i>{short(p.top / 2)}</i>
                    <i>0</i>
                </div>
                {p.children}
                <div class="axis12 stackfoot" aria-hidden="true">
                    {last >= 0 && [0, 0.5, 1].map((f) => <i>{p.foot(p.points[Math.round(last * f)]!)}</i>)}
                </div>
            </div>
        </div>
    );
}

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
    return (
        <StackBox
            points={p.points}
            legend={seen.map((k) => (
                <span>
                    <i class={`slot ${k.slot}`} />
                    {k.says}
                    {shown && <b>{shown.parts[k.i] === null ? "–" : short(shown.parts[k.i]!)}</b>}
                </span>
            ))}
            told={shown ? clock(shown.at) : p.unit}
            end={p.end}
            csvHead={["at", ...p.csvHead]}
            csvRow={(x) => [new Date(x.at).toISOString(), ...x.parts]}
            top={top}
            foot={(x) => clock(x.at)}
        >
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
                            <i class={`slot ${k.slot}`} style={{ height: `${((x.parts[k.i] ?? 0) / top) * 100}%` }} />
                        ))}
                    </span>
                ))}
            </div>
        </StackBox>
    );
}
