// SPDX-License-Identifier: Apache-2.0
// graph.tsx - the steps of a pipeline as a graph: each behind all that it needs, a step with a matrix as one box.
import type { ComponentChildren } from "preact";
import { visible } from "../../base/say";
import { Graph } from "../../kit/graph";
import type { IconName } from "../../kit/icons";
import { Toned, type Tone } from "../../kit/parts";
import { w } from "./words";

export interface GraphStep {
    step: string;
    uses: string;
    needs: string[];
}
export interface Placed<S> {
    step: string;
    column: number;
    row: number;
    items: S[];
}

/** Items by their step, in columns: a step stands one to the right of the last that it needs, and as near as it can to
 * the height of what it needs. Pure. */
export function layersOf<S extends GraphStep>(items: S[]): Placed<S>[] {
    const by = new Map<string, S[]>();
    for (const i of items) by.set(i.step, [...(by.get(i.step) ?? []), i]);
    const columns = new Map<string, number>();
    const columnOf = (step: string, on: string[]): number => {
        const known = columns.get(step);
        if (known !== undefined) return known;
        const needs = (by.get(step)?.[0]?.needs ?? []).filter((n) => by.has(n) && !on.includes(n));
        const at = Math.max(-1, ...needs.map((n) => columnOf(n, [...on, step]))) + 1;
        columns.set(step, at);
        return at;
    };
    for (const step of by.keys()) columnOf(step, []);
    const rows = new Map<string, number>();
    const last = Math.max(-1, ...columns.values());
    for (let c = 0; c <= last; c++) {
        const here = [...by.keys()].filter((s) => columns.get(s) === c);
        const wish = (s: string) => {
            const needs = (by.get(s)![0]!.needs ?? []).map((n) => rows.get(n)).filter((r) => r !== undefined);
            return needs.length ? needs.reduce((a, b) => a + b, 0) / needs.length : 0;
        };
        let next = 0;
        for (const s of here.map((s, i) => ({ s, i, at: wish(s) })).sort((a, b) => a.at - b.at || a.i - b.i)) {
            const row = Math.max(next, Math.round(s.at));
            rows.set(s.s, row);
            next = row + 1;
        }
    }
    return [...by].map(([step, all]) => ({ step, column: columns.get(step)!, row: rows.get(step)!, items: all }));
}

export interface Look {
    icon: IconName;
    tone: Tone;
    says: string;
}

const WIDTH = 168;
const HEIGHT = 62;
const DOTS_MAX = 16;
const USES = ["job", "check", "publish", "prepare", "deploy"] as const;
type Uses = (typeof USES)[number];

export const usesSays = (uses: string) =>
    (USES as readonly string[]).includes(uses) ? w(`u_${uses as Uses}`) : visible(uses);

/** What of several stands for them all: the first of these words that one of them has. */
const FIRST = ["FAILED", "RUNNING", "CANCELLED", "WAITING", "SKIPPED", "fail", "run", "depends", "skip"];
export const worstOf = (words: string[]) => FIRST.find((f) => words.includes(f)) ?? words[0] ?? "WAITING";

export function StepGraph<S extends GraphStep & { name: string }>(p: {
    items: S[];
    wordOf: (item: S) => string;
    lookOf: (word: string) => Look;
    more?: (items: S[]) => ComponentChildren;
    href?: (step: string) => string;
    current?: string | null;
}) {
    const placed = layersOf(p.items);
    const known = new Set(placed.map((s) => s.step));
    const wires = placed.flatMap((s) =>
        (s.items[0]?.needs ?? []).filter((n) => known.has(n)).map((n) => [n, s.step] as const),
    );
    return (
        <Graph
            label={w("graph")}
            width={WIDTH}
            height={HEIGHT}
            wires={wires}
            boxes={placed.map((s) => {
                const look = p.lookOf(worstOf(s.items.map(p.wordOf)));
                return {
                    key: s.step,
                    column: s.column,
                    row: s.row,
                    href: p.href?.(s.step),
                    isCurrent: p.current === s.step,
                    class: `pipe-box t-${look.tone}`,
                    draw: (
                        <>
                            <span class="pipe-top">
                                <b class="cut" title={visible(s.step)}>
                                    {visible(s.step)}
                                </b>
                                <i>{usesSays(s.items[0]!.uses)}</i>
                            </span>
                            <Toned tone={look.tone} icon={look.icon}>
                                {look.says}
                                {s.items.length > 1 && (
                                    <span class="pipe-dots" aria-hidden="true">
                                        {s.items.slice(0, DOTS_MAX).map((i) => (
                                            <i class={`d-${p.lookOf(p.wordOf(i)).tone}`} />
                                        ))}
                                    </span>
                                )}
                            </Toned>
                            <span class="cut">{p.more?.(s.items) ?? "\u00a0"}</span>
                        </>
                    ),
                };
            })}
        />
    );
}
