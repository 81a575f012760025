// SPDX-License-Identifier: Apache-2.0
// plot.ts - the side of chart.tsx that knows uPlot; loaded when the first curve is seen.
import { effect } from "@preact/signals";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { printedAt } from "../base/prefs";
import { drawnAt } from "./drawn";

export interface Line {
    label: string;
    x: number[];
    y: (number | null)[];
    /** Of tokens.css: "--c1". */
    color: string;
    dashed?: boolean;
    faint?: boolean;
    /** One of many that lie behind those that are read. */
    isThin?: boolean;
    /** What the others are held against. */
    isBold?: boolean;
    /** Steps that were run again: grey, behind the others. */
    isOld?: boolean;
}
export type MarkKind = "restart" | "checkpoint" | "finding" | "alert" | "alert_end";
export interface Mark {
    x: number;
    label: string;
    kind: MarkKind;
    /** Shown under the pointer. */
    says?: string;
}
export interface PlotOptions {
    lines: Line[];
    height: number;
    sync: string;
    isTime: boolean;
    isLog: boolean;
    /** Where the x axis is marked, with a word. */
    marks: Mark[];
    say: (v: number) => string;
    /** The index under the pointer, of the joined x; null: the pointer is elsewhere. */
    onCursor: (values: (number | null)[] | null, x: number | null) => void;
}

const token = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** One x for all lines: uPlot wants that. */
export function joined(lines: Line[]): uPlot.AlignedData {
    const xs = [...new Set(lines.flatMap((l) => l.x))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, i) => [x, i]));
    const ys = lines.map((l) => {
        const y = new Array<number | null | undefined>(xs.length).fill(undefined);
        l.x.forEach((x, i) => (y[at.get(x)!] = l.y[i] ?? null));
        return y;
    });
    return [xs, ...ys] as uPlot.AlignedData;
}

const TONES: Record<MarkKind, { line: string; text: string }> = {
    restart: { line: "--warn-fill", text: "--warn" },
    checkpoint: { line: "--text-3", text: "--text-3" },
    finding: { line: "--bad-fill", text: "--bad" },
    alert: { line: "--bad-fill", text: "--bad" },
    alert_end: { line: "--ok-fill", text: "--ok" },
};

/** A line with a flag at its top, full or empty. */
function flag(ctx: CanvasRenderingContext2D, x: number, top: number, bottom: number, isFull: boolean) {
    const size = 4 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.moveTo(x, bottom);
    ctx.lineTo(x, top);
    ctx.lineTo(x + 2 * size, top + size);
    ctx.lineTo(x, top + 2 * size);
    ctx.stroke();
    if (isFull) ctx.fill();
}

function marked(marks: PlotOptions["marks"]): uPlot.Plugin {
    return {
        hooks: {
            draw: (u) => {
                const { ctx, bbox } = u;
                const px = devicePixelRatio;
                const bottom = bbox.top + bbox.height;
                let free = bbox.left; // where a word has room, from the left
                ctx.save();
                ctx.font = `${11 * px}px ${token("--sans")}`;
                for (const m of marks) {
                    const x = Math.round(u.valToPos(m.x, "x", true));
                    if (x < bbox.left || x > bbox.left + bbox.width) continue; // zoomed away
                    const tone = TONES[m.kind];
                    ctx.beginPath();
                    if (m.kind === "checkpoint") {
                        ctx.fillStyle = token(tone.line);
                        ctx.moveTo(x, bottom - 6 * px);
                        ctx.lineTo(x - 3 * px, bottom);
                        ctx.lineTo(x + 3 * px, bottom);
                        ctx.fill();
                        continue;
                    }
                    ctx.strokeStyle = token(tone.line);
                    ctx.fillStyle = token(tone.text);
                    if (m.kind === "alert" || m.kind === "alert_end") {
                        flag(ctx, x, bbox.top, bottom, m.kind === "alert");
                        continue;
                    }
                    ctx.setLineDash([3 * px, 2 * px]);
                    ctx.moveTo(x, bbox.top);
                    ctx.lineTo(x, bottom);
                    ctx.stroke();
                    const wide = ctx.measureText(m.label).width + 4 * px;
                    const left = x - wide >= free;
                    if (!left && (x < free || x + wide > bbox.left + bbox.width)) continue; // it would lie on another
                    ctx.textAlign = left ? "right" : "left";
                    ctx.fillText(m.label, left ? x - 4 * px : x + 4 * px, bbox.top + 10 * px);
                    free = left ? x : x + wide;
                }
                ctx.restore();
            },
        },
    };
}

/** What a mark says, as the title of an element that lies over it. */
function saying(marks: PlotOptions["marks"]): uPlot.Plugin {
    const spots = marks.flatMap((m) => {
        if (!m.says) return [];
        const el = document.createElement("i");
        el.className = "spot";
        el.title = m.says;
        return [{ x: m.x, el }];
    });
    return {
        hooks: {
            init: (u) => u.over.append(...spots.map((s) => s.el)),
            draw: (u) => {
                const width = u.bbox.width / devicePixelRatio;
                for (const s of spots) {
                    const x = u.valToPos(s.x, "x");
                    s.el.hidden = !(x >= 0 && x <= width); // zoomed away
                    s.el.style.left = `${x}px`;
                }
            },
        },
    };
}

const widthOf = (l: Line) => (l.isBold ? 2.5 : l.faint || l.isThin ? 1 : 1.5);

export function plot(el: HTMLElement, o: PlotOptions): { destroy: () => void } {
    const font = `${token("--t-micro").split("/")[0]} ${token("--sans")}`;
    const axis = {
        stroke: () => token("--text-3"),
        font,
        grid: { stroke: () => token("--grid"), width: 1 },
        ticks: { show: false },
        border: { show: false },
    };
    const few = o.lines.every((l) => l.y.filter((v) => v !== null).length <= 24);
    const at = drawnAt(o.lines);
    const drawn = o.lines.map((_, i) => o.lines[at.indexOf(i)]!);
    const u = new uPlot(
        {
            width: el.clientWidth || 300,
            height: o.height,
            padding: [8, 10, 0, 0],
            legend: { show: false },
            cursor: { sync: { key: o.sync }, drag: { x: true, y: false }, points: { size: 6 }, y: false },
            scales: {
                x: { time: o.isTime },
                y: o.isLog
                    ? { distr: 3, range: (_u, lo, hi) => uPlot.rangeLog(lo, hi, 10, false) }
                    : { range: (_u, lo, hi) => (lo === hi ? (lo === 0 ? [0, 1] : [lo - 1, hi + 1]) : [lo, hi]) },
            },
            axes: [
                // A day is a second line below its hours, a year below its days.
                { ...axis, grid: { show: false }, size: o.isTime ? 36 : 22, gap: 4, space: 60 },
                {
                    ...axis,
                    size: 46,
                    gap: 6,
                    space: 34,
                    values: (_u, vs) => vs.map((v) => (v === null ? "" : o.say(v))),
                },
            ],
            series: [
                {},
                ...drawn.map((l) => ({
                    label: l.label,
                    stroke: () => token(l.isOld ? "--text-3" : l.color) + (l.faint || l.isThin || l.isOld ? "59" : ""),
                    width: widthOf(l),
                    dash: l.dashed ? [4, 3] : undefined,
                    spanGaps: true,
                    points: { show: few && !l.faint && !l.isThin, size: 5 },
                })),
            ],
            plugins: [marked(o.marks), saying(o.marks)],
            hooks: {
                setCursor: [
                    (me) => {
                        const i = me.cursor.idx;
                        if (i === null || i === undefined) o.onCursor(null, null);
                        else
                            o.onCursor(
                                at.map((k) => (me.data[k + 1]![i] as number | null | undefined) ?? null),
                                me.data[0][i] ?? null,
                            );
                    },
                ],
            },
        },
        joined(drawn),
        el,
    );
    const seen = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height: o.height }));
    seen.observe(el);
    const unprint = effect(() => {
        void printedAt.value; // its colours are others then
        u.redraw(false);
    });
    return {
        destroy: () => {
            unprint();
            seen.disconnect();
            u.destroy();
        },
    };
}
