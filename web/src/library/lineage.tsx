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
    /** The first letters of the hash. */
    hash?: string;
    /** Nothing is made of it: it leads nowhere. */
    isLeaf?: boolean;
}
interface From {
    ref?: string;
    path?: string;
    name?: string;
    key?: string;
    hash?: string;
}
interface Lineage {
    job?: string;
    step?: number;
    merge?: string;
    snapshot?: From[] | From | string;
    data?: (From | string)[];
    model?: From | string;
    more_data?: number;
    eval?: { job?: string; values?: Record<string, number> };
}

const SHOWN = 6;
const EVALS_SHOWN = 3;
const HASH_SHOWN = 8;
const WIDTH = 176;
const HEIGHT = 44;

const textOf = (f: From | string | undefined): string =>
    typeof f === "string" ? f : (f?.ref ?? f?.name ?? f?.path ?? "");
const listOf = <T,>(x: T | T[] | undefined): T[] => (x === undefined ? [] : Array.isArray(x) ? x : [x]);

const hashOf = (f: From | string | undefined) =>
    typeof f === "object" && typeof f.hash === "string" ? f.hash.slice(0, HASH_SHOWN) : undefined;

/** What judged the checkpoint: beside what was made of it. A person may have written something else there. */
function evalsOf(l: Lineage, column: number, row: number): Box[] {
    const values = l.eval && typeof l.eval === "object" ? l.eval.values : undefined;
    if (!values || typeof values !== "object") return [];
    const job = typeof l.eval?.job === "string" ? l.eval.job : undefined;
    return Object.entries(values)
        .filter(([, v]) => typeof v === "number")
        .slice(0, EVALS_SHOWN)
        .map(([metric, v], i) => ({
            what: w("l_eval"),
            says: `${metric} ${Number(v.toPrecision(4))}`,
            href: job && `/jobs/${encodeURIComponent(job)}`,
            column,
            row: row + 1 + i,
            isLeaf: true,
        }));
}

/** Boxes in columns; every box but a leaf leads to all of the next column. Pure. */
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
                hash: hashOf(typeof s === "object" ? s : undefined),
                href: isSnapshot ? `/snapshots?name=${encodeURIComponent(says)}` : undefined,
            });
    }
    const data = listOf(l.data);
    for (const d of data.slice(0, SHOWN)) {
        const says = textOf(d);
        const known = typeof d === "string" || !!d.ref;
        if (says)
            first.push({
                what: w("l_data"),
                says,
                hash: hashOf(d),
                href: known ? `/data/${encodeURIComponent(says)}` : undefined,
            });
    }
    const more = Math.max(0, data.length - SHOWN) + (l.more_data ?? 0);
    if (more) first.push({ what: w("l_data"), says: w("l_more", more) });
    const base = textOf(l.model);
    if (base)
        first.push({
            what: w("l_base"),
            says: base,
            hash: hashOf(l.model),
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
    const evals = l.job ? evalsOf(l, column, row) : [];
    if (l.merge)
        out.push({
            what: w("l_merge"),
            says: String(l.merge),
            href: `/jobs/${encodeURIComponent(String(l.merge))}`,
            column: column++,
            row,
        });
    if (out.length) out.push({ what: w("l_model"), says: name, column, row, isEnd: true });
    // The model stays the last one.
    out.splice(out.length - 1, 0, ...evals);
    return out;
}

export function LineageGraph({ name, of }: { name: string; of: unknown }) {
    const boxes = boxesOf(name, of);
    if (!boxes.length) return <p class="mid">{w("no_lineage")}</p>;
    const keyOf = (b: Box) => `${b.column}/${b.row}`;
    const wires = boxes.flatMap((a) =>
        boxes.filter((b) => !a.isLeaf && b.column === a.column + 1).map((b) => [keyOf(a), keyOf(b)] as const),
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
                            <span>
                                {b.what}
                                {b.hash && <code class="dim"> {visible(b.hash)}</code>}
                            </span>
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
