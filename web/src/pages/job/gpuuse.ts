// SPDX-License-Identifier: Apache-2.0
// gpuuse.ts - what each attempt of a job used of its GPUs, added up over these. Pure.
import type { JobGpu, JobGpus, JobGpuUse } from "../../made/api";
import { figure } from "../../base/say";

type Used = Pick<JobGpuUse, "watched_s" | "busy_s" | "used_joules">;

export interface AttemptUse {
    attempt: number;
    gpus: number;
    joules: number | null;
    /** Part of the watched time in which its GPUs worked; null: nobody watched. */
    busy: number | null;
}

const sum = (rows: Used[], key: keyof Used): number | null => {
    const known = rows.flatMap((r) => r[key] ?? []);
    return known.length ? known.reduce((a, b) => a + b, 0) : null;
};

function useOf(attempt: number, rows: Used[]): AttemptUse {
    const told = rows.filter((r) => r.busy_s !== null);
    const watched = sum(told, "watched_s");
    const busy = sum(told, "busy_s");
    return {
        attempt,
        gpus: rows.length,
        joules: sum(rows, "used_joules"),
        busy: watched && busy !== null ? busy / watched : null,
    };
}

/** The newest attempt, of which the series are, is the last; one of which nothing was measured is left out. */
export function attemptUses(
    of: { series: Pick<JobGpu, keyof Used>[]; earlier: JobGpus["earlier"] },
    newest: number,
): AttemptUse[] {
    const before = [...new Set(of.earlier.map((r) => r.attempt))].sort((a, b) => a - b);
    const all = before.map((k) =>
        useOf(
            k,
            of.earlier.filter((r) => r.attempt === k),
        ),
    );
    return [...all, useOf(newest, of.series)].filter((u) => u.joules !== null || u.busy !== null);
}

export const kwh = (joules: number) => `${figure(joules / 3.6e6)} kWh`;
