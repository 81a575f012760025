// SPDX-License-Identifier: Apache-2.0
// rows.tsx - rows of data as a table: what columns they have is seen from them. Values are texts, however they look.
import { visible } from "../base/say";
import { CopyCsv } from "./parts";
import "./rows.css";

const CELL_MAX = 400;

export const cellText = (v: unknown): string => {
    const text = v === null || v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v);
    return visible(text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text);
};

export function columnsOf(rows: unknown[]): string[] {
    const out = new Set<string>();
    for (const row of rows)
        if (row && typeof row === "object" && !Array.isArray(row)) for (const key of Object.keys(row)) out.add(key);
    return [...out].slice(0, 60);
}

export function Rows({ rows, label }: { rows: unknown[]; label: string }) {
    const columns = columnsOf(rows);
    const of = (row: unknown, key: string) => (row as Record<string, unknown> | null)?.[key];
    return (
        <>
            <div class="tbl-wrap rows-wrap" tabIndex={0} role="region" aria-label={label}>
                <table class="tbl auto rows">
                    <thead>
                        <tr>
                            {columns.map((c) => (
                                <th>{visible(c)}</th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {rows.map((row) => (
                            <tr>
                                {columns.map((c) => (
                                    <td>
                                        <bdi class="val">{cellText(of(row, c))}</bdi>
                                    </td>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            <div class="rows-foot">
                <CopyCsv
                    head={columns}
                    rows={() =>
                        rows.map((r) =>
                            columns.map((c) =>
                                typeof of(r, c) === "object" ? JSON.stringify(of(r, c)) : (of(r, c) as string),
                            ),
                        )
                    }
                />
            </div>
        </>
    );
}
