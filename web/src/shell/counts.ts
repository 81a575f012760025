// SPDX-License-Identifier: Apache-2.0
// counts.ts - the numbers beside entries of the rail: who waits, what is wrong. Nothing else has one.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useAsk } from "../api/use";

export const counts = signal({ waiting: 0, alerts: 0 });

export function useCounts() {
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools"], every: 30_000 }).data;
    const alerts = useAsk("GET /v1/alerts", { query: { state: "open" } }, { every: 30_000 }).data;
    const waiting = pools?.pools.find((p) => p.pool === null)?.queued ?? 0;
    const open = alerts?.alerts.filter((a) => a.severity !== "info").length ?? 0;
    useEffect(() => void (counts.value = { waiting, alerts: open }), [waiting, open]);
}
