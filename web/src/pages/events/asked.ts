// SPDX-License-Identifier: Apache-2.0
// asked.ts - which events the address asks for: filters, a time, and the same as a file. Pure.
import { address } from "../../api/client";

export const FILTERS = ["kind", "actor", "object", "job", "from", "to"] as const;
type Filter = (typeof FILTERS)[number];

export function filtersOf(q: URLSearchParams): Partial<Record<Filter, string>> {
    return Object.fromEntries(FILTERS.flatMap((f) => (q.get(f) ? [[f, q.get(f)!]] : [])));
}

/** All events that match, not only those that are shown. */
export const exportHref = (q: URLSearchParams, format: "csv" | "ndjson") =>
    address("GET /v1/events:export", { query: { format, ...filtersOf(q) } });

const digits = (n: number, most: number) => String(n).padStart(most, "0");

/** A moment as <input type=datetime-local> has it, by the reader's clock; "" for what is none. */
export function localOf(iso: string | null): string {
    const d = new Date(iso ?? "");
    if (Number.isNaN(d.getTime())) return "";
    // The year has four digits even while it is typed, or the field would forget what stands in it.
    const day = [digits(d.getFullYear(), 4), digits(d.getMonth() + 1, 2), digits(d.getDate(), 2)].join("-");
    return `${day}T${digits(d.getHours(), 2)}:${digits(d.getMinutes(), 2)}`;
}

/** And back; null: nothing is chosen. */
export function isoOf(local: string): string | null {
    const d = new Date(local);
    return local && !Number.isNaN(d.getTime()) ? d.toISOString() : null;
}
