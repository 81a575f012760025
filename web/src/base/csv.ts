// SPDX-License-Identifier: Apache-2.0
// csv.ts - rows as CSV (RFC 4180) for a spreadsheet. A cell that a spreadsheet would run as a formula is told as text.
export type Cell = string | number | boolean | null | undefined;

function cell(v: Cell): string {
    if (v === null || v === undefined) return "";
    let text = String(v);
    if (typeof v === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (head: string[], rows: Cell[][]) => [head, ...rows].map((r) => r.map(cell).join(",")).join("\r\n");
