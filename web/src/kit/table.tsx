// SPDX-License-Identifier: Apache-2.0
// table.tsx - a table of a few rows: what a panel or a drawer lists. Long lists are `List`.
import type { ComponentChildren } from "preact";
import type { Cell } from "../base/csv";
import { useRowKeys } from "../base/keys";
import { t } from "../words/shared";
import { CopyCsv } from "./parts";

export interface Col<R> {
    key: string;
    title: ComponentChildren;
    /** Pixels; without it, it takes its part of what is left. */
    width?: number;
    num?: boolean;
    /** Not on a phone; "very": only beside much room. */
    wide?: boolean | "very";
    draw: (row: R) => ComponentChildren;
    csv?: (row: R) => Cell;
}

export function Table<R>(p: {
    label: string;
    rows: R[];
    cols: Col<R>[];
    keyOf: (row: R) => string;
    current?: string | null;
    foot?: ComponentChildren;
}) {
    useRowKeys(".tbl tbody tr", () => t("k_rows"));
    const name = (c: Col<R>) =>
        `${c.num ? "num" : ""}${c.wide === "very" ? " very-wide" : c.wide ? " wide-only" : ""}`.trim() || undefined;
    return (
        <div class="tbl-wrap" role="region" aria-label={p.label} tabIndex={0}>
            <table class="tbl">
                <thead>
                    <tr>
                        {p.cols.map((c) =>
                            c.title ? (
                                <th scope="col" class={name(c)} style={c.width ? { width: `${c.width}px` } : undefined}>
                                    {c.title}
                                </th>
                            ) : (
                                <td class={name(c)} style={c.width ? { width: `${c.width}px` } : undefined} />
                            ),
                        )}
                    </tr>
                </thead>
                <tbody>
                    {p.rows.map((row) => (
                        <tr key={p.keyOf(row)} class={p.current === p.keyOf(row) ? "is-current" : undefined}>
                            {p.cols.map((c) => (
                                <td class={name(c)}>{c.draw(row)}</td>
                            ))}
                        </tr>
                    ))}
                </tbody>
                {p.foot}
            </table>
        </div>
    );
}

export const TableCsv = <R,>({ rows, cols }: { rows: R[]; cols: Col<R>[] }) => {
    const told = cols.filter((c) => c.csv);
    return <CopyCsv head={told.map((c) => c.key)} rows={() => rows.map((r) => told.map((c) => c.csv!(r)))} />;
};
