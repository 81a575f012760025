// SPDX-License-Identifier: Apache-2.0
// page.tsx - two to eight jobs side by side: how they ended, what their specs differ in, their curves over steps or over
// training time. one of them is the reference. ?jobs= ?ref= ?axis= ?smooth= ?find= ?all= are its state.
import { useEffect, useState } from "preact/hooks";
import type { Job, JobMetrics } from "../../made/api";
import { call, isAway, Refusal } from "../../api/client";
import { onBack, onChange } from "../../api/live";
import { useAsk } from "../../api/use";
import { figure, num, shape, span, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Chart } from "../../kit/chart";
import { Icon } from "../../kit/icons";
import { CopyCsv, Head, Panel, Seg, shell, State, Text } from "../../kit/parts";
import type { Line } from "../../kit/plot";
import { t } from "../../words/shared";
import { firstKeys } from "../job/curves";
import { useSeries, type Told } from "../job/series";
import { useShown } from "../job/shown";
import { Flags, isOver, jobName, ranFor } from "../jobs/columns";
import { Code } from "./code";
import { differences, sinceStart, trainingTime, usedBy } from "./differ";
import "./page.css";

const w = words({
    n_jobs: ["{0} {0|job|jobs}", "{0} 个作业"],
    pick: ["Pick two to eight jobs", "请选择 2 至 8 个作业"],
    pick_text: [
        "Choose them in the list of jobs, by their boxes or by x, and press Compare.",
        "在作业列表中勾选（或按 x），然后点“比较”。",
    ],
    to_jobs: ["To the jobs", "前往作业"],
    outcome: ["Outcome", "结果"],
    spec: ["Specs", "作业规格"],
    n_differ: ["{0} keys differ", "{0} 项不同"],
    only: ["What differs", "仅不同项"],
    every: ["Every key", "全部"],
    equal: ["The specs are the same", "规格完全相同"],
    no_specs: ["No resolved spec is there to compare", "没有可比较的规格"],
    curves: ["Curves", "曲线"],
    no_curves: ["No curves yet", "还没有曲线"],
    no_curves_text: ["None of these jobs wrote a step.", "这些作业还没有写出任何一步。"],
    find_key: ["Find a metric", "查找指标"],
    smooth: ["Smooth", "平滑"],
    training_time: ["Training time", "训练时间"],
    since_start: ["Since the start", "启动后"],
    axis: ["Axis", "横轴"],
    no_time: ["{0} does not tell how long its steps take, and is left out", "{0} 未记录每步耗时，未绘出"],
    no_clock: ["{0} does not tell when its steps ended, and is left out", "{0} 未记录各步的时刻，未绘出"],
    says: ["{0} of {1}", "{1} 的 {0}"],
    reward: ["Reward", "奖励"],
    finding: ["Ended by", "结束原因"],
    key: ["Key", "键"],
    remove: ["Leave {0} out", "移除 {0}"],
    more_keys: ["{0} more", "另有 {0} 项"],
    fewer: ["Fewer", "收起"],
    unset: ["not set", "未设置"],
    pin: ["Make {0} the reference", "以 {0} 为基准"],
    is_ref: ["reference", "基准"],
    unknown: ["Not every job could be read", "部分作业无法读取"],
});

const COLORS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c1", "--c2"];
const MOST = 8;
/** By it steps become training time. */
const STEP_TIME = "timing_s/step";

/** Each job with the names of its curves; asked again when one of them changed. */
function useRuns(ids: string[]) {
    const [runs, setRuns] = useState<{ key: string; jobs: Job[]; metrics: (JobMetrics | null)[]; why?: Refusal }>();
    const [round, again] = useState(0);
    const key = ids.join();
    useEffect(() => {
        const control = new AbortController();
        const load = async () => {
            const { signal } = control;
            const names = (id: string) =>
                call("GET /v1/jobs/{id}/metrics", { path: { id }, query: { series: false }, signal }).catch(() => null);
            const found = await Promise.allSettled(
                ids.map(async (id) => {
                    const told = names(id);
                    return [await call("GET /v1/jobs/{id}", { path: { id }, signal }), await told] as const;
                }),
            );
            const here = found.flatMap((f) => (f.status === "fulfilled" ? [f.value] : []));
            const lost = found.find((f) => f.status === "rejected")?.reason as Refusal | undefined;
            const jobs = here.map(([job]) => job);
            const metrics = here.map(([, told]) => told);
            if (signal.aborted) return;
            setRuns((old) => (isAway(lost) && old?.key === key ? old : { key, jobs, metrics, why: lost }));
            if (isAway(lost) && lost?.status) timer = setTimeout(() => again((n) => n + 1), 1000);
        };
        let timer: ReturnType<typeof setTimeout> | undefined;
        void load();
        return () => {
            control.abort();
            clearTimeout(timer);
        };
    }, [key, round]);
    useEffect(() => onBack(() => again((n) => n + 1)), []);
    useEffect(() => {
        let timer = 0;
        const off = onChange("jobs", (changed) => {
            if (timer || (changed && !changed.some((id) => ids.includes(id)))) return;
            timer = setTimeout(() => {
                timer = 0;
                again((n) => n + 1);
            }, 2000) as unknown as number;
        });
        return () => {
            off();
            clearTimeout(timer);
        };
    }, [key]);
    return { runs: runs?.key === key ? runs : undefined, again: () => again((n) => n + 1) };
}

const Mark = ({ i }: { i: number }) => <i class={`mark m${i % MOST}`} aria-hidden="true" />;

/** With its sign, against the reference. */
function Delta({ of, to }: { of: number | null | undefined; to: number | null | undefined }) {
    if (of === null || of === undefined || to === null || to === undefined || of === to) return null;
    return (
        <span class="small dim">
            {" "}
            {of > to ? "+" : "−"}
            {figure(Math.abs(of - to))}
        </span>
    );
}

function Outcome({ jobs, ids, reference }: { jobs: Job[]; ids: string[]; reference: Job }) {
    const leave = (id: string) => setQuery({ jobs: ids.filter((x) => x !== id).join(",") });
    return (
        <Panel
            title={w("outcome")}
            bare
            end={
                <CopyCsv
                    head={["id", "name", "state", "user", "gpus", "step", "run_s", "gpu_hours", "reward", "reason"]}
                    rows={() =>
                        jobs.map((j) => [
                            j.id,
                            j.name,
                            j.state,
                            j.user,
                            j.gpus,
                            j.step,
                            Math.round((ranFor(j) ?? 0) / 1000),
                            j.gpu_hours,
                            j.metrics?.reward?.value,
                            j.reason.code,
                        ])
                    }
                />
            }
        >
            <div class="tbl-wrap" tabIndex={0} role="region" aria-label={w("outcome")}>
                <table class="tbl auto">
                    <thead>
                        <tr>
                            <th>{t("job")}</th>
                            <th>{t("state")}</th>
                            <th>{t("user")}</th>
                            <th class="num">{t("gpus")}</th>
                            <th class="num">{t("step")}</th>
                            <th class="num">{t("ran")}</th>
                            <th class="num">{t("gpu_hours")}</th>
                            <th class="num">{w("reward")}</th>
                            <th>{w("finding")}</th>
                            <td />
                        </tr>
                    </thead>
                    <tbody>
                        {jobs.map((j, i) => {
                            const ran = ranFor(j);
                            return (
                                <tr key={j.id}>
                                    <td>
                                        <span class="row">
                                            <Mark i={i} />
                                            <a class="name cut" href={`/jobs/${encodeURIComponent(j.id)}`}>
                                                <Text of={jobName(j)} />
                                            </a>
                                            {j === reference ? (
                                                <span class="chip small">{w("is_ref")}</span>
                                            ) : (
                                                <button
                                                    type="button"
                                                    class="btn bare icon act"
                                                    aria-label={w("pin", visible(jobName(j)))}
                                                    title={w("pin", visible(jobName(j)))}
                                                    onClick={() => setQuery({ ref: j.id })}
                                                >
                                                    <Icon name="pin" />
                                                </button>
                                            )}
                                        </span>
                                    </td>
                                    <td>
                                        <span class="row">
                                            <State of={j.state} />
                                            <Flags of={j} />
                                        </span>
                                    </td>
                                    <td>
                                        <Text of={j.user} />
                                    </td>
                                    <td class="num nowrap">{shape(j)}</td>
                                    <td class="num">{j.step === null ? "–" : num(j.step)}</td>
                                    <td class="num nowrap">{ran === null ? "–" : span(ran)}</td>
                                    <td class="num">{num(j.gpu_hours, 1)}</td>
                                    <td class="num nowrap">
                                        {figure(j.metrics?.reward?.value)}
                                        <Delta of={j.metrics?.reward?.value} to={reference.metrics?.reward?.value} />
                                    </td>
                                    <td>
                                        {isOver(j) && j.state !== "SUCCEEDED" ? (
                                            <code>{visible(j.reason.code)}</code>
                                        ) : (
                                            "–"
                                        )}
                                    </td>
                                    <td>
                                        <button
                                            type="button"
                                            class="btn bare icon act"
                                            aria-label={w("remove", visible(jobName(j)))}
                                            title={w("remove", visible(jobName(j)))}
                                            onClick={() => leave(j.id)}
                                        >
                                            <Icon name="close" />
                                        </button>
                                    </td>
                                </tr>
                            );
                        })}
                    </tbody>
                </table>
            </div>
        </Panel>
    );
}

function Specs({ jobs, reference }: { jobs: Job[]; reference: Job }) {
    const every = query.value.get("spec") === "all";
    const rows = differences(jobs.map((j) => ({ ...usedBy(j), ...(j.resolved_spec ?? {}) })));
    const pinned = jobs.indexOf(reference);
    const differ = rows.filter((r) => !r.same);
    const shown = every ? rows : differ;
    return (
        <Panel
            title={w("spec")}
            bare
            count={w("n_differ", differ.length)}
            end={
                <>
                    <Seg
                        label={w("spec")}
                        value={every ? "all" : ""}
                        onChange={(v) => setQuery({ spec: v })}
                        of={[
                            { value: "", says: w("only") },
                            { value: "all", says: w("every") },
                        ]}
                    />
                    <CopyCsv
                        head={["key", ...jobs.map((j) => j.id)]}
                        rows={() => shown.map((r) => [r.key, ...r.values])}
                    />
                </>
            }
        >
            {!shown.length ? (
                <Blank title={rows.length ? w("equal") : w("no_specs")} />
            ) : (
                <div class="tbl-wrap" tabIndex={0} role="region" aria-label={w("spec")}>
                    <table class="tbl auto difftbl">
                        <thead>
                            <tr>
                                <th>{w("key")}</th>
                                {jobs.map((j, i) => (
                                    <th>
                                        <span class="row">
                                            <Mark i={i} />
                                            <span class="cut">
                                                <Text of={jobName(j)} />
                                            </span>
                                            {j === reference && <span class="chip small">{w("is_ref")}</span>}
                                        </span>
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {shown.map((r) => (
                                <tr key={r.key}>
                                    <th scope="row">
                                        <code>{visible(r.key)}</code>
                                    </th>
                                    {r.values.map((v, i) => (
                                        <td
                                            class={
                                                v !== r.values[pinned]
                                                    ? "other"
                                                    : i !== pinned && every
                                                      ? "dim"
                                                      : undefined
                                            }
                                        >
                                            {v === null ? (
                                                <span class="dim">{w("unset")}</span>
                                            ) : (
                                                <bdi class="val">{visible(v)}</bdi>
                                            )}
                                        </td>
                                    ))}
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    );
}

function Curves({ jobs, metrics }: { jobs: Job[]; metrics: (JobMetrics | null)[] }) {
    const q = query.value;
    const axis = q.get("axis") ?? "";
    const isTime = axis === "time";
    const isClock = axis === "clock";
    const smoothing = Number(q.get("smooth") ?? "0.6");
    const find = q.get("find") ?? "";
    const keys = [...new Set(metrics.flatMap((m) => m?.keys ?? []))];
    const first = firstKeys(keys);
    const found = find ? keys.filter((k) => k.toLowerCase().includes(find.toLowerCase())) : q.get("all") ? keys : first;
    const { shown, isLazy, wanted, onView, end } = useShown(found, `${find} ${q.get("all")}`);
    const curves = useSeries(
        jobs.map((j) => j.id),
        isTime && keys.includes(STEP_TIME) ? [...new Set([STEP_TIME, ...wanted])] : wanted,
        metrics,
    );
    const told = curves.told;
    const times = told.map((m) => trainingTime(m.series[STEP_TIME]));
    const isTold = (m: Told) => Object.keys(m.series).length > 0;
    const hasClock = (m: Told) => Object.values(m.series).some((s) => s.time.some((at) => at !== null));
    const silent = jobs.filter(
        (_, i) => isTold(told[i]!) && ((isTime && !times[i]) || (isClock && !hasClock(told[i]!))),
    );
    const linesOf = (key: string): Line[] =>
        jobs.flatMap((j, i) => {
            const s = told[i]!.series[key];
            const time = times[i];
            if (!s || (isTime && !time)) return [];
            if (isClock) {
                const { x, y } = sinceStart(s, j.started_at);
                return x.length ? [{ label: jobName(j), x, y, color: COLORS[i % MOST]!, dashed: i >= 6 }] : [];
            }
            const x = isTime ? s.step.map((step) => time!(step) / 3600) : s.step;
            return [{ label: jobName(j), x, y: s.value, color: COLORS[i % MOST]!, dashed: i >= 6 }];
        });
    return (
        <Panel
            title={w("curves")}
            bare
            end={
                <>
                    <label class="search keyfind act">
                        <Icon name="search" />
                        <input
                            type="search"
                            placeholder={w("find_key")}
                            aria-label={w("find_key")}
                            value={find}
                            onInput={(e) => setQuery({ find: e.currentTarget.value })}
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
                        value={axis}
                        onChange={(v) => setQuery({ axis: v })}
                        of={[
                            { value: "", says: t("by_step") },
                            { value: "time", says: w("training_time") },
                            { value: "clock", says: w("since_start") },
                        ]}
                    />
                    <CopyCsv
                        head={["job", "key", "step", "time_s", "value"]}
                        rows={async () => {
                            const every = await curves.all(found);
                            return found.flatMap((k) =>
                                jobs.flatMap((j, i) =>
                                    (every[i]!.series[k]?.step ?? []).map((s, n) => [
                                        j.id,
                                        k,
                                        s,
                                        every[i]!.series[k]!.time[n],
                                        every[i]!.series[k]!.value[n],
                                    ]),
                                ),
                            );
                        }}
                    />
                </>
            }
        >
            {!keys.length ? (
                <Blank title={w("no_curves")}>{w("no_curves_text")}</Blank>
            ) : (
                <>
                    <ul class="legend compare-legend">
                        {jobs.map((j, i) => (
                            <li>
                                <Mark i={i} />
                                <Text of={jobName(j)} />
                            </li>
                        ))}
                    </ul>
                    {silent.map((j) => (
                        <p class="note quiet compare-note">
                            {w(isClock ? "no_clock" : "no_time", visible(jobName(j)))}
                        </p>
                    ))}
                    <div class="charts">
                        {shown.map((k) => (
                            <Chart
                                key={k}
                                title={k}
                                keyName={
                                    isTime || isClock
                                        ? `${w(isTime ? "training_time" : "since_start")}, h`
                                        : t("by_step")
                                }
                                smoothing={smoothing}
                                sync="compare"
                                height={160}
                                lines={linesOf(k)}
                                says={w(
                                    "says",
                                    k,
                                    linesOf(k)
                                        .map((l) => `${visible(l.label)} ${figure(l.y.at(-1))}`)
                                        .join(", "),
                                )}
                                isLazy={isLazy}
                                onView={(isIn) => onView(k, isIn)}
                            />
                        ))}
                    </div>
                    {end}
                    {!find && keys.length > first.length && (
                        <button type="button" class="more" onClick={() => setQuery({ all: q.get("all") ? null : "1" })}>
                            {q.get("all") ? w("fewer") : w("more_keys", keys.length - first.length)}
                            <Icon name={q.get("all") ? "up" : "down"} />
                        </button>
                    )}
                </>
            )}
        </Panel>
    );
}

/** Who comes without jobs gets the newest that wrote curves, to pick from. */
function Pick() {
    const asked = useAsk("GET /v1/jobs", { query: { limit: 8 } }, { topics: ["jobs"] });
    const jobs = asked.data?.jobs ?? [];
    return (
        <section class="panel">
            <Blank
                title={w("pick")}
                act={
                    <>
                        <a class="btn" href="/jobs">
                            {w("to_jobs")}
                        </a>
                        {jobs.length >= 2 && (
                            <a
                                class="btn"
                                href={`/compare?jobs=${jobs.map((j) => encodeURIComponent(j.id)).join(",")}`}
                            >
                                {w("n_jobs", jobs.length)}
                            </a>
                        )}
                    </>
                }
            >
                {w("pick_text")}
            </Blank>
        </section>
    );
}

export default function Compare() {
    const ids = [...new Set((query.value.get("jobs") ?? "").split(",").filter(Boolean))].slice(0, MOST);
    const { runs, again } = useRuns(ids);
    const pinned = query.value.get("ref");
    const reference = runs?.jobs.find((j) => j.id === pinned) ?? runs?.jobs[0];
    const cli = ids.length ? `for j in ${ids.map(shell).join(" ")}; do argus status $j; done` : undefined;
    return (
        <>
            <Head title={t("compare")} sub={ids.length > 0 && w("n_jobs", ids.length)} cli={cli} />
            {!ids.length ? (
                <Pick />
            ) : !runs ? (
                <section class="panel">
                    <Loading rows={8} />
                </section>
            ) : (
                <div class="cols">
                    {runs.why && (
                        <section class="panel">
                            <Refused why={runs.why} again={again} />
                        </section>
                    )}
                    {reference && (
                        <>
                            <Outcome jobs={runs.jobs} ids={ids} reference={reference} />
                            <Curves jobs={runs.jobs} metrics={runs.metrics} />
                            <Specs jobs={runs.jobs} reference={reference} />
                            <Code reference={reference} others={runs.jobs.filter((j) => j !== reference)} />
                        </>
                    )}
                </div>
            )}
        </>
    );
}
