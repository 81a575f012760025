// SPDX-License-Identifier: Apache-2.0
// graph.tsx - boxes in columns from left to right, with wires between them: where a model comes from, the steps of a
// pipeline.
import type { ComponentChildren } from "preact";

export interface GraphBox {
    key: string;
    column: number;
    row: number;
    draw: ComponentChildren;
    href?: string;
    class?: string;
    /** It is the one that is looked at. */
    isCurrent?: boolean;
}

const GAP_X = 40;
const GAP_Y = 12;

export function Graph(p: {
    label: string;
    boxes: GraphBox[];
    /** Keys: from, to. */
    wires: (readonly [string, string])[];
    width: number;
    height: number;
}) {
    const x = (b: GraphBox) => b.column * (p.width + GAP_X);
    const y = (b: GraphBox) => b.row * (p.height + GAP_Y);
    const wide = Math.max(...p.boxes.map(x)) + p.width;
    const high = Math.max(...p.boxes.map(y)) + p.height;
    const at = new Map(p.boxes.map((b) => [b.key, b]));
    const path = (a: GraphBox, b: GraphBox) => {
        const [x1, y1, x2, y2] = [x(a) + p.width, y(a) + p.height / 2, x(b), y(b) + p.height / 2];
        const bend = Math.min(GAP_X, (x2 - x1) / 2);
        return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
    };
    return (
        <div class="graph" tabIndex={0} role="region" aria-label={p.label}>
            <div style={{ position: "relative", width: `${wide}px`, height: `${high}px` }}>
                <svg class="wires" width={wide} height={high} aria-hidden="true">
                    {p.wires.map(([from, to]) => {
                        const [a, b] = [at.get(from), at.get(to)];
                        return a && b && <path d={path(a, b)} />;
                    })}
                </svg>
                {p.boxes.map((b) => {
                    const place = {
                        left: `${x(b)}px`,
                        top: `${y(b)}px`,
                        width: `${p.width}px`,
                        height: `${p.height}px`,
                    };
                    const name = `box ${b.class ?? ""}`;
                    return b.href ? (
                        <a
                            key={b.key}
                            class={name}
                            href={b.href}
                            style={place}
                            aria-current={b.isCurrent ? "true" : undefined}
                        >
                            {b.draw}
                        </a>
                    ) : (
                        <div key={b.key} class={name} style={place}>
                            {b.draw}
                        </div>
                    );
                })}
            </div>
        </div>
    );
}
