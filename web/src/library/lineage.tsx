// SPDX-License-Identifier: Apache-2.0
// lineage.tsx - where a model comes from, as a graph from left to right: code, data and base model, the training that
// read them, the merge, the model. What is not a link is a path.
import { visible } from "../base/say";
import { Graph } from "../kit/graph";
import { w } from "./words";

export interface Box {
    what: string;
    says: string;
    href?: string;
    column: number;
    row: number;
    isEnd?: boolean;
}
interface From {
    ref?: string;
    path?: string;
    name?: string;
    key?: string;
}
interface Lineage {
    job?: string;
    step?: number;
    merge?: string;
    snapshot?: From[] | From | string;
    data?: (From | string)[];
    model?: From | string;
    more_data?: number;
}

const SHOWN = 6;
const WIDTH = 176;
const HEIGHT = 44;

const textOf = (f: From | string | undefined): string =>
    typeof f === "string" ? f : (f?.ref ?? f?.name ?? f?.path ?? "");
const listOf = <T,>(x: T | T[] | undefined): T[] => (x === undefined ? [] : Array.isArray(x) ? x : [x]);

/** Boxes in columns; every box leads to all of the next column. Pure. */
export function boxesOf(name: string, raw: unknown): Box[] {
    const l = (raw && typeof raw === "object" ? raw : {}) as Lineage;
    const out: Box[] = [];
    const first: Omit<Box, "column" | "row">[] = [];
    for (const s of listOf(l.snapshot)) {
        const says = textOf(s);
        const isSnapshot = typeof s === "string" || !!s.name;
        if (says)
            first.push({
                what: w("l_code"),
                says,
                href: isSnapshot ? `/snapshots?name=${encodeURIComponent(says)}` : undefined,
            });
    }
    const data = listOf(l.data);
    for (const d of data.slice(0, SHOWN)) {
        const says = textOf(d);
        const known = typeof d === "string" || !!d.ref;
        if (says)
            first.push({ what: w("l_data"), says, href: known ? `/data/${encodeURIComponent(says)}` : undefined });
    }
    const more = Math.max(0, data.length - SHOWN) + (l.more_data ?? 0);
    if (more) first.push({ what: w("l_data"), says: w("l_more", more) });
    const base = textOf(l.model);
    if (base)
        first.push({
            what: w("l_base"),
            says: base,
            href: typeof l.model === "string" || l.model?.ref ? `/models/${encodeURIComponent(base)}` : undefined,
        });
    first.forEach((b, row) => out.push({ ...b, column: 0, row }));
    let column = first.length ? 1 : 0;
    const middle = (first.length - 1) / 2;
    const row = Math.max(0, middle);
    if (l.job)
        out.push({
            what: l.step === undefined ? w("l_job") : `${w("l_job")} · ${w("l_step", l.step)}`,
            says: String(l.job),
            href: `/jobs/${encodeURIComponent(String(l.job))}`,
            column: column++,
            row,
        });
    if (l.merge)
        out.push({
            what: w("l_merge"),
            says: String(l.merge),
            href: `/jobs/${encodeURIComponent(String(l.merge))}`,
            column: column++,
            row,
        });
    if (out.length) out.push({ what: w("l_model"), says: name, column, row, isEnd: true });
    return out;
}

export function LineageGraph({ name, of }: { name: string; of: unknown }) {
    const boxes = boxesOf(name, of);
    if (!boxes.length) return <p class="mid">{w("no_lineage")}</p>;
    const keyOf = (b: Box) => `${b.column}/${b.row}`;
    const wires = boxes.flatMap((a) =>
        boxes.filter((b) => b.column === a.column + 1).map((b) => [keyOf(a), keyOf(b)] as const),
    );
    return (
        <div class="lineage">
            <Graph
                label={w("lineage")}
                width={WIDTH}
                height={HEIGHT}
                wires={wires}
                boxes={boxes.map((b) => ({
                    key: keyOf(b),
                    column: b.column,
                    row: b.row,
                    href: b.href,
                    class: b.isEnd ? "end" : "",
                    draw: (
                        <>
                            <span>{b.what}</span>
                            <b class="cut" title={visible(b.says)}>
                                {visible(b.says)}
                            </b>
                        </>
                    ),
                }))}
            />
        </div>
    );
}
