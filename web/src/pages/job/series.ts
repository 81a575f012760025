// SPDX-License-Identifier: Apache-2.0
// series.ts - the curves of jobs by their names: a job may have thousands, so only those that are shown are asked for.
import { useEffect, useRef, useState } from "preact/hooks";
import type { JobMetrics } from "../../made/api";
import { call, isAway } from "../../api/client";

export type Told = Pick<JobMetrics, "series" | "superseded">;

/** Of the names in one address; argusd takes 4096 bytes of all of it. */
const NAMES_BYTES = 3000;
const LATER_MS = 1000;

/** The `keys` of as many requests as these names need. A comma is asked for as "?", which stands for any character. */
export function asksOf(keys: string[]): string[] {
    const out: string[] = [];
    let bytes = 0;
    for (const key of keys) {
        const name = key.replaceAll(",", "?");
        const more = new URLSearchParams([[name, ""]]).toString().length + 3;
        bytes += more;
        if (out.length && bytes <= NAMES_BYTES) {
            out[out.length - 1] += `,${name}`;
        } else {
            out.push(name);
            bytes = more;
        }
    }
    return out;
}

/** What was known, with what an answer tells. */
export function merged(old: Told | undefined, add: Told): Told {
    const superseded = add.superseded.map((v) => {
        const was = old?.superseded.find((o) => o.attempt === v.attempt && o.from_step === v.from_step);
        return { ...v, series: { ...was?.series, ...v.series } };
    });
    return { series: { ...old?.series, ...add.series }, superseded };
}

async function tell(id: string, keys: string[], superseded: boolean, signal?: AbortSignal): Promise<Told> {
    let told: Told = { series: {}, superseded: [] };
    for (const names of asksOf(keys)) {
        const query = { points: 512, superseded, keys: names };
        told = merged(told, await call("GET /v1/jobs/{id}/metrics", { path: { id }, query, signal }));
    }
    return told;
}

/** Of each job what is known of these keys; they are asked for when they come, and all of them again with another stamp.
 * What was there stays until the new answer is there. */
export function useSeries(ids: string[], keys: string[], stamp: unknown, superseded = false) {
    const [known, setKnown] = useState(new Map<string, Told>());
    const [round, again] = useState(0);
    const now = useRef({
        stamp: undefined as unknown,
        of: "",
        asked: new Set<string>(),
        control: new AbortController(),
    });
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const of = ids.join();
    useEffect(() => {
        if (now.current.stamp !== stamp || now.current.of !== of) {
            now.current.control.abort();
            now.current = { stamp, of, asked: new Set(), control: new AbortController() };
        }
        const { asked, control } = now.current;
        for (const key of asked) if (!keys.includes(key)) asked.delete(key); // it is asked for when it comes back
        const missing = keys.filter((k) => !asked.has(k));
        if (!missing.length || !ids.length) return;
        for (const key of missing) asked.add(key);
        const load = async () => {
            const each = await Promise.allSettled(ids.map((id) => tell(id, missing, superseded, control.signal)));
            if (control.signal.aborted) return;
            setKnown((old) => {
                const all = new Map(ids.flatMap((id) => (old.has(id) ? [[id, old.get(id)!]] : [])));
                each.forEach((e, i) => {
                    if (e.status === "fulfilled") all.set(ids[i]!, merged(all.get(ids[i]!), e.value));
                });
                return all;
            });
            const lost = each.find((e) => e.status === "rejected");
            if (!lost || !isAway(lost.reason)) return;
            for (const key of missing) asked.delete(key);
            timer.current = setTimeout(() => again((n) => n + 1), LATER_MS);
        };
        void load();
    }, [of, keys.join("\n"), stamp, round]);
    useEffect(
        () => () => {
            now.current.control.abort();
            clearTimeout(timer.current);
        },
        [],
    );
    return {
        told: ids.map((id): Told => known.get(id) ?? { series: {}, superseded: [] }),
        /** Of all of these keys, shown or not. */
        all: (of: string[]) => Promise.all(ids.map((id) => tell(id, of, superseded))),
    };
}
