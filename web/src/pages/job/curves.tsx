// SPDX-License-Identifier: Apache-2.0
// curves.tsx - what a training wrote, as curves: the ones that tell whether it learns first, the rest by name.
import { useState } from "preact/hooks";
import type { Job, Series } from "../../made/api";
import { useAsk } from "../../api/use";
import { figure } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Chart } from "../../kit/chart";
import { Icon } from "../../kit/icons";
import { CopyCsv, Panel, Seg } from "../../kit/parts";
import { t } from "../../words/shared";
import { isOver } from "../jobs/columns";
import { w } from "./words";

/** What each kind of training is looked at by, in this order; the first that is there of each line. */
const FIRST = [
    /^critic\/(score|rewards)\/mean$/,
    /^val-core\/.*(mean@1|acc|win)/,
    /^(actor\/)?kl(_loss)?$|kl_loss$/,
    /^actor\/entropy/,
    /^response_length\/mean$/,
    /max_memory_allocated_gb$/,
    /^(train|val)\/loss$/,
    /^actor\/grad_norm$/,
    /^timing_s\/step$/,
];

export function firstKeys(keys: string[]): string[] {
    const out: string[] = [];
    for (const like of FIRST) {
        const found = keys.find((k) => like.test(k) && !out.includes(k));
        if (found) out.push(found);
    }
    return out.length ? out : keys.slice(0, 6);
}

const titleOf = (key: string) => {
    const parts = key.split("/");
    const last = parts.at(-1)!.replace(/@.*$/, "").replaceAll("_", " ");
    const name = last === "mean" && parts.length > 1 ? parts.at(-2)!.replaceAll("_", " ") : last;
    return name.charAt(0).toUpperCase() + name.slice(1);
};

/** A curve by the clock: points whose moment nobody wrote down are left out. */
function byTime(s: Series): { x: number[]; y: (number | null)[] } {
    const known = s.time.flatMap((at, i) => (at === null ? [] : [{ at, value: s.value[i] ?? null }]));
    return { x: known.map((p) => p.at), y: known.map((p) => p.value) };
}

export function Curves({ job }: { job: Job }) {
    const smoothing = Number(query.value.get("smooth") ?? "0.6");
    const isTime = query.value.get("axis") === "time";
    const [find, setFind] = useState("");
    const [all, setAll] = useState(false);
    const asked = useAsk(
        "GET /v1/jobs/{id}/metrics",
        { path: { id: job.id }, query: { points: 512 } },
        isOver(job) ? {} : { topics: ["jobs"], about: (id) => id === job.id, every: 15_000 },
    );
    const keys = asked.data?.keys ?? [];
    const first = firstKeys(keys);
    const found = find ? keys.filter((k) => k.toLowerCase().includes(find.toLowerCase())) : all ? keys : first;
    const shown = found.slice(0, 60);
    const series = asked.data?.series ?? {};
    return (
        <Panel
            id="curves"
            title={w("s_curves")}
            bare
            end={
                keys.length > 0 && (
                    <>
                        <label class="search keyfind act">
                            <Icon name="search" />
                            <input
                                type="search"
                                placeholder={w("find_key")}
                                aria-label={w("find_key")}
                                value={find}
                                onInput={(e) => setFind(e.currentTarget.value)}
                            />
                        </label>
                        <label class="smooth act">
                            <span class="small mid">{w("smooth")}</span>
                            <input
                                type="range"
                                min="0"
                                max="0.98"
                                step="0.02"
                                value={smoothing}
                                onInput={(e) => setQuery({ smooth: e.currentTarget.value })}
                            />
                        </label>
                        <Seg
                            label={w("axis")}
                            value={isTime ? "time" : ""}
                            onChange={(v) => setQuery({ axis: v })}
                            of={[
                                { value: "", says: t("by_step") },
                                { value: "time", says: t("by_time") },
                            ]}
                        />
                        <CopyCsv
                            head={["step", ...shown]}
                            rows={() => {
                                const steps = [...new Set(shown.flatMap((k) => series[k]?.step ?? []))].sort(
                                    (a, b) => a - b,
                                );
                                const at = shown.map(
                                    (k) => new Map((series[k]?.step ?? []).map((s, i) => [s, series[k]!.value[i]])),
                                );
                                return steps.map((s) => [s, ...at.map((m) => m.get(s) ?? null)]);
                            }}
                        />
                    </>
                )
            }
        >
            {asked.why || !asked.data ? (
                <Pending of={asked} lines={3} />
            ) : !keys.length ? (
                <Blank title={w("no_curves")}>{w("no_curves_text")}</Blank>
            ) : (
                <>
                    <div class="charts">
                        {shown.map((k) => {
                            const s = series[k];
                            if (!s) return null;
                            const line = isTime ? byTime(s) : { x: s.step, y: s.value };
                            return (
                                <Chart
                                    key={k}
                                    title={titleOf(k)}
                                    keyName={k}
                                    smoothing={smoothing}
                                    sync={job.id}
                                    isTime={isTime}
                                    marks={
                                        job.state === "FAILED" && line.x.length
                                            ? [{ x: line.x.at(-1)!, label: job.reason.code }]
                                            : []
                                    }
                                    lines={[{ label: k, ...line, color: "--c1" }]}
                                    says={w("curve_says", k, figure(s.value.at(-1)), s.step.at(-1) ?? 0)}
                                />
                            );
                        })}
                    </div>
                    {!find && keys.length > first.length && (
                        <button type="button" class="more" onClick={() => setAll(!all)}>
                            {all ? w("fewer") : w("more_keys", keys.length - first.length)}
                            <Icon name={all ? "up" : "down"} />
                        </button>
                    )}
                </>
            )}
        </Panel>
    );
}
