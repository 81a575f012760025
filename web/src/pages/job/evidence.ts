// SPDX-License-Identifier: Apache-2.0
// evidence.ts - where a quote of a finding stands: in the driver's log, in a log that was copied from a node, or in neither
// (an answer of a node, a sentence of argusd's own). Pure.
import type { Quote } from "../../made/api";

export interface LogPlace {
    offset: number;
    /** As the log's own choice names it; null: the driver's. */
    from: string | null;
}

const DRIVER = "logs/driver.log";

/** Null: in no log that is shown. */
export function logPlaceOf(q: Pick<Quote, "source" | "offset" | "line">): LogPlace | null {
    if (!q.line) return null;
    if (!q.source || q.source === DRIVER) return { offset: q.offset, from: null };
    // "logs/workers/gpu-01/worker-01.out"
    const [, kind, file] = /^(?:logs\/)?(worker|scene)s?\/(.+)$/.exec(q.source) ?? [];
    return kind && file ? { offset: q.offset, from: `${kind}:${file}` } : null;
}
