// SPDX-License-Identifier: Apache-2.0
// curves.tsx - what a training wrote, as curves: the ones that tell whether it learns first, the rest by name.
import { useState } from "preact/hooks";
import type { Checkpoint, Finding, Job } from "../../made/api";
import { useAsk } from "../../api/use";
import { figure } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Chart } from "../../kit/chart";
import { Icon } from "../../kit/icons";
import { CopyCsv, Panel, Seg } from "../../kit/parts";
import { t } from "../../words/shared";
import { isOver } from "../jobs/columns";
import { alerted, alertMarks, said } from "./alertmarks";
import { useSeries } from "./series";
import { useShown } from "./shown";
import { linesOf, marksOf } from "./stitch";
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

/** What the marks mean, of those that are there. */
function Legend({ kinds, isOld }: { kinds: Set<string>; isOld: boolean }) {
    if (!kinds.size && !isOld) return null;
    return (
        <p class="legend small mid">
            {kinds.has("restart") && <span class="k-restart">{w("m_restart")}</span>}
            {kinds.has("checkpoint") && <span class="k-checkpoint">{w("m_checkpoint")}</span>}
            {kinds.has("finding") && <span class="k-finding">{w("m_finding")}</span>}
            {kinds.has("alert") && <span class="k-alert">{said("alert")}</span>}
            {kinds.has("alert_end") && <span class="k-alert-end">{said("alert_end")}</span>}
            {isOld && <span class="k-old">{w("m_old")}</span>}
        </p>
    );
}

export function Curves(p: { job: Job; checkpoints: Checkpoint[]; findings: Finding[] }) {
    const { job } = p;
    const isLog = query.value.get("scale") === "log";
    const smoothing = Number(query.value.get("smooth") ?? "0.6");
    const isTime = query.value.get("axis") === "time";
    const [find, setFind] = useState("");
    const [all, setAll] = useState(false);
    const asked = useAsk(
        "GET /v1/jobs/{id}/metrics",
        { path: { id: job.id }, query: { series: false } },
        isOver(job) ? {} : { topics: ["jobs"], about: (id) => id === job.id, every: 15_000 },
    );
    const keys = asked.data?.keys ?? [];
    const first = firstKeys(keys);
    first.push(...alerted(job.metric_alerts).filter((k) => keys.includes(k) && !first.includes(k)));
    const found = find ? keys.filter((k) => k.toLowerCase().includes(find.toLowerCase())) : all ? keys : first;
    const { shown, isLazy, wanted, onView, end } = useShown(found, `${find} ${all}`);
    const curves = useSeries([job.id], wanted, asked.data, true);
    const told = curves.told[0]!;
    const { series } = told;
    const marks = marksOf({ ...p, restart: (k) => w("m_restart_n", k) }, told, isTime);
    const ofAlerts = new Map(shown.map((k) => [k, alertMarks(k, job.metric_alerts, series[k], isTime)]));
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
                        <Seg
                            label={w("y_scale")}
                            value={isLog ? "log" : ""}
                            onChange={(v) => setQuery({ scale: v })}
                            of={[
                                { value: "", says: w("linear") },
                                { value: "log", says: w("log") },
                            ]}
                        />
                        <CopyCsv
                            head={["step", ...found]}
                            rows={async () => {
                                const every = (await curves.all(found))[0]!.series;
                                const steps = [...new Set(found.flatMap((k) => every[k]?.step ?? []))].sort(
                                    (a, b) => a - b,
                                );
                                const at = found.map(
                                    (k) => new Map((every[k]?.step ?? []).map((s, i) => [s, every[k]!.value[i]])),
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
                            const own = ofAlerts.get(k)!;
                            const newest = w("curve_says", k, figure(s?.value.at(-1)), s?.step.at(-1) ?? 0);
                            return (
                                <Chart
                                    key={k}
                                    title={titleOf(k)}
                                    keyName={k}
                                    smoothing={smoothing}
                                    sync={job.id}
                                    isTime={isTime}
                                    isLog={isLog}
                                    noLog={w("no_log")}
                                    marks={[...marks, ...own]}
                                    lines={linesOf(k, told, isTime)}
                                    says={[newest, ...own.map((x) => x.says)].join("; ")}
                                    isLazy={isLazy}
                                    onView={(isIn) => onView(k, isIn)}
                                />
                            );
                        })}
                    </div>
                    {end}
                    <Legend
                        kinds={new Set([...marks, ...[...ofAlerts.values()].flat()].map((x) => x.kind))}
                        isOld={told.superseded.some((v) => v.series && Object.keys(v.series).length)}
                    />
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
