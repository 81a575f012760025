// SPDX-License-Identifier: Apache-2.0
// chart.tsx - a curve as a card: its name and newest value, the key it has, the smoothed line over its raw shade. The
// value under the pointer stands in the head, and the crosshair is one for all charts of a page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { shownTheme } from "../base/prefs";
import { clock, figure, visible, NOTHING } from "../base/say";
import type { Line, Mark, plot as Plot } from "./plot";
import { useView } from "./view";

/** An exponential mean that begins at the first value. weight 0: as it is. */
export function smooth(y: (number | null)[], weight: number): (number | null)[] {
    let last: number | null = null;
    return y.map((v) => {
        if (v === null || !Number.isFinite(v)) return null;
        last = last === null ? v : last * weight + v * (1 - weight);
        return last;
    });
}

/** A logarithm has no place for what is not above 0. */
export const takesLog = (lines: Line[]) => {
    const known = lines.flatMap((l) => l.y.filter((v) => v !== null && Number.isFinite(v)) as number[]);
    return known.length > 0 && known.every((v) => v > 0);
};

export function Chart(p: {
    title: string;
    keyName?: string;
    lines: Line[];
    smoothing?: number;
    isTime?: boolean;
    isLog?: boolean;
    /** What is said where a logarithm was asked for and cannot be. */
    noLog?: string;
    height?: number;
    marks?: Mark[];
    sync?: string;
    /** What it shows, for who does not see it. */
    says: string;
    end?: ComponentChildren;
    /** Drawn while it is in view alone: of very many. */
    isLazy?: boolean;
    onView?: (isIn: boolean) => void;
}) {
    const box = useRef<HTMLDivElement>(null);
    const card = useRef<HTMLElement>(null);
    const isDrawn = useView(card, !!p.isLazy, p.onView) || !p.isLazy;
    const [under, setUnder] = useState<{ y: (number | null)[]; x: number } | null>(null);
    const isLog = !!p.isLog && takesLog(p.lines);
    const now = p.lines.filter((l) => !l.isOld && !l.isThin);
    const newest = p.lines[0]?.y.findLast((v) => v !== null) ?? null;
    const shape = JSON.stringify([
        p.lines.map((l) => [l.label, l.x.length, l.x.at(-1), l.y.at(-1)]),
        p.smoothing,
        p.isTime,
        isLog,
        p.marks,
    ]);
    useEffect(() => {
        let made: ReturnType<typeof Plot> | null = null;
        let gone = false;
        if (!isDrawn || !p.lines.length) return;
        const weight = p.smoothing ?? 0;
        const few = p.lines.every((l) => l.x.length <= 24);
        const lines =
            weight && !few
                ? p.lines.flatMap((l) =>
                      l.isOld
                          ? [{ ...l, y: smooth(l.y, weight) }]
                          : [
                                { ...l, y: smooth(l.y, weight) },
                                { ...l, label: `${l.label} raw`, faint: true },
                            ],
                  )
                : p.lines;
        void import("./plot").then(({ plot }) => {
            if (gone || !box.current) return;
            made = plot(box.current, {
                lines,
                height: p.height ?? 128,
                sync: p.sync ?? "page",
                isTime: !!p.isTime,
                isLog,
                marks: p.marks ?? [],
                say: figure,
                onCursor: (values, x) => setUnder(values && x !== null ? { y: values, x } : null),
            });
        });
        return () => {
            gone = true;
            made?.destroy();
        };
    }, [shape, shownTheme.value, p.height, isDrawn]);
    const place = (x: number) => (p.isTime ? clock(x * 1000) : String(Number(x.toPrecision(6))));
    /** Of several lines each one's value; a smoothed one is followed by its raw shade, old and thin ones are the last. */
    const others = (y: (number | null)[]) => {
        const each = (y.length - (p.lines.length - now.length)) / now.length;
        if (now.length < 2) return "";
        return ` · ${now.map((l, i) => `${l.label} ${figure(y[i * each])}`).join(", ")}`;
    };
    return (
        <figure class="chart" ref={card}>
            <header>
                <h3>{visible(p.title)}</h3>
                <span class="v">{under ? figure(under.y[0]) : newest === null ? NOTHING : figure(newest)}</span>
                {p.end}
            </header>
            {p.keyName && (
                <div class="key">
                    {under ? `${visible(p.keyName)} · ${place(under.x)}${others(under.y)}` : visible(p.keyName)}
                    {p.isLog && !isLog && p.noLog && ` · ${p.noLog}`}
                </div>
            )}
            <div
                class="plot"
                ref={box}
                role="img"
                aria-label={visible(p.says)}
                style={{ height: `${p.height ?? 128}px` }}
            />
        </figure>
    );
}
