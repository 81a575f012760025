// SPDX-License-Identifier: Apache-2.0
// page.tsx - where the GPU-hours went: what a lead reads first, capacity split over time, by whom, what will
// be needed, which jobs wasted them with what would have spared it, and what advice that was taken brought. ?by= ?for=
// ?of=NAME hold what is shown.
import type { UsageSeries } from "../../made/api";
import { useAsk } from "../../api/use";
import { now, num } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Head, Panel, Seg, shell, Text } from "../../kit/parts";
import { short, Stack } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { Failures } from "./failures";
import { Lead } from "./leadview";
import { Outlook } from "./outlookview";
import { monthsUntil, periodOf, ranIn, type Period } from "./period";
import { held, hours, partWord, PARTS, pointsOf, SLOT_OF, stackOf, worked, type Part } from "./sums";
import { Taken } from "./taken";
import { Waste } from "./waste";

const w = words({
    by: ["By", "按"],
    cluster: ["Cluster", "集群"],
    period: ["Period", "时段"],
    d1: ["24 h", "24 小时"],
    d7: ["7 days", "7 天"],
    d30: ["30 days", "30 天"],
    d90: ["90 days", "90 天"],
    sub: ["{0} of {1} GPU-hours used, {2}%", "已用 {0} / {1} GPU 时，{2}%"],
    sub_held: ["{0} GPU-hours held", "占用 {0} GPU 时"],
    capacity: ["Capacity", "总量"],
    unknown: ["Not measured", "未测量"],
    works: ["GPU use", "GPU 利用率"],
    over_time: ["GPUs over time", "GPU 随时间"],
    over_of: ["{0} over time", "{0} 随时间"],
    gpus_unit: ["GPUs, mean of each point", "GPU 数，各时段均值"],
    picture: ["{0}: {1} of capacity used, {2} held idle, {3} free", "{0}：使用 {1}，占而未用 {2}，空闲 {3}"],
    who: ["Who", "归属"],
    split: ["GPU-hours by {0}", "按{0}统计的 GPU 时"],
    none: ["Nothing was held in that time", "该时段内没有占用"],
    none_text: [
        "GPU-hours are counted from the first minute that a job holds a GPU.",
        "作业占用 GPU 的第一分钟起开始计量。",
    ],
    month: ["Month", "月份"],
    a_month: ["Month (UTC)…", "月份（UTC）…"],
    two: ["A node with two labels counts in both pools.", "有两个标签的节点在两个池中各计一次。"],
});

const BY = ["cluster", "pool", "project", "user", "workload"] as const;
type By = (typeof BY)[number];
const byWord = (b: By) => (b === "cluster" ? w("cluster") : t(b));
const h = (v: number | null) => (v === null ? <Dash /> : short(v));

function sumOf(all: UsageSeries[], k: Part | "capacity" | "unknown"): number | null {
    const told = all.map((s) => hours(pointsOf(s, k))).filter((v) => v !== null);
    return told.length ? told.reduce((a, b) => a + b, 0) : null;
}

function Share({ s, most }: { s: UsageSeries; most: number }) {
    const of = (k: Part) => ({ width: `${((hours(s[k]) ?? 0) / (most || 1)) * 100}%` });
    return (
        <span class="sharebar" aria-hidden="true">
            <i class="used" style={of("used")} />
            <i class="idle" style={of("held_idle")} />
        </span>
    );
}

function seriesCols(by: By, all: UsageSeries[], chosen: string | null, period: Period): Col<UsageSeries>[] {
    const whole = by === "cluster" || by === "pool";
    const most = Math.max(0, ...all.map((s) => (whole ? (hours(s.capacity) ?? held(s)) : held(s))));
    const part = (k: Part, wide = true): Col<UsageSeries> => ({
        key: k,
        title: partWord(k),
        num: true,
        wide,
        width: 96,
        draw: (s) => h(hours(pointsOf(s, k))),
        csv: (s) => hours(pointsOf(s, k)),
    });
    return [
        {
            key: by,
            title: w("who"),
            draw: (s) =>
                whole || chosen === s.name ? (
                    <a
                        class="name"
                        href={withQuery("/usage", {
                            ...Object.fromEntries(query.value),
                            of: chosen === s.name ? null : s.name,
                        })}
                        aria-current={chosen === s.name ? "true" : undefined}
                    >
                        <Text of={s.name} />
                    </a>
                ) : (
                    <a class="name" href={withQuery("/jobs", { [by]: s.name, sort: "-gpu_hours", ...ranIn(period) })}>
                        <Text of={s.name} />
                    </a>
                ),
            csv: (s) => s.name,
        },
        { key: "share", title: "", draw: (s) => <Share s={s} most={most} />, wide: true },
        part("used", false),
        ...(sumOf(all, "redone") ? [part("redone")] : []),
        part("held_idle", false),
        ...(whole
            ? (["blocked", "free", "draining", "broken", "foreign"] as const)
                  .filter((k) => sumOf(all, k))
                  .map((k) => part(k))
            : []),
        {
            key: "unknown",
            title: w("unknown"),
            num: true,
            wide: true,
            width: 104,
            draw: (s) => h(hours(s.unknown)),
            csv: (s) => hours(s.unknown),
        },
        {
            key: "works",
            title: w("works"),
            num: true,
            width: 96,
            draw: (s) => {
                const v = worked(s);
                return v === null ? <Dash /> : <span class={v < 0.3 ? "c-slow" : ""}>{num(v * 100)}%</span>;
            },
            csv: worked,
        },
    ];
}

function Figures({ all }: { all: UsageSeries[] }) {
    const told = (["capacity", ...PARTS, "unknown"] as const)
        .map((k) => [k, sumOf(all, k)] as const)
        .filter(([k, v]) => v !== null && (v > 0 || k === "used" || k === "held_idle"));
    return (
        <dl class="figs">
            {told.map(([k, v]) => (
                <div class="fig">
                    <dt>{k === "capacity" ? w("capacity") : k === "unknown" ? w("unknown") : partWord(k)}</dt>
                    <dd>
                        {short(v!)}
                        <small>GPU-h</small>
                    </dd>
                </div>
            ))}
        </dl>
    );
}

function Months({ value }: { value: string }) {
    const months = monthsUntil(now.value);
    return (
        <select
            class="field"
            aria-label={w("month")}
            value={months.includes(value) ? value : ""}
            onChange={(e) => setQuery({ for: e.currentTarget.value || null })}
        >
            <option value="">{w("a_month")}</option>
            {months.map((m) => (
                <option value={m}>{m}</option>
            ))}
        </select>
    );
}

export default function Usage() {
    const q = query.value;
    const by = (BY as readonly string[]).includes(q.get("by") ?? "") ? (q.get("by") as By) : "cluster";
    const period = periodOf(q.get("for"), now.value);
    const { from, to, step } = period;
    const of = q.get("of");
    const asked = useAsk("GET /v1/usage", { query: { by, from, to, step } }, { every: 60_000 });
    const waste = useAsk("GET /v1/usage/jobs", { query: { from, to, limit: 50 } }, { topics: ["jobs"], every: 60_000 });
    const all = asked.data?.series;
    const shown = all?.find((s) => s.name === of) ?? (by === "cluster" ? all?.[0] : undefined);
    const sums = all ?? [];
    const used = sums.reduce((sum, s) => sum + held(s), 0);
    const capacity = sumOf(sums, "capacity");
    const cols = seriesCols(by, sums, of, period);
    return (
        <>
            <Head
                title={t("usage")}
                sub={
                    all &&
                    (by === "cluster" && capacity
                        ? w("sub", short(used), short(capacity), num((used / capacity) * 100))
                        : w("sub_held", short(used)))
                }
                cli={`argus report gpu --by ${by} --from ${shell(from)}${to ? ` --to ${shell(to)}` : ""} --step ${step}`}
            />
            <div class="filters bar-of n-views">
                <Seg
                    label={w("by")}
                    value={by}
                    onChange={(v) => setQuery({ by: v === "cluster" ? null : v, of: null })}
                    of={BY.map((b) => ({ value: b, says: byWord(b) }))}
                />
                <Seg
                    label={w("period")}
                    value={period.word}
                    onChange={(v) => setQuery({ for: v === "1d" ? null : v })}
                    of={[
                        { value: "1d", says: w("d1") },
                        { value: "7d", says: w("d7") },
                        { value: "30d", says: w("d30") },
                        { value: "90d", says: w("d90") },
                    ]}
                />
                <Months value={period.word} />
            </div>
            <div class="cols">
                {by === "cluster" && <Lead period={period} whole={asked} waste={waste} />}
                {asked.why || !all ? (
                    <Pending of={asked} lines={8} framed />
                ) : !all.length ? (
                    <section class="panel">
                        <Blank title={w("none")}>{w("none_text")}</Blank>
                    </section>
                ) : (
                    <>
                        {shown && asked.data && (
                            <Panel bare title={by === "cluster" ? w("over_time") : w("over_of", shown.name)}>
                                <Figures all={[shown]} />
                                <Stack
                                    kinds={PARTS.map((k) => ({ slot: SLOT_OF[k], says: partWord(k) }))}
                                    points={stackOf(asked.data, shown)}
                                    unit={w("gpus_unit")}
                                    csvHead={[...PARTS]}
                                    says={w(
                                        "picture",
                                        shown.name,
                                        `${short(hours(shown.used) ?? 0)} GPU-h`,
                                        `${short(hours(shown.held_idle) ?? 0)} GPU-h`,
                                        `${short(hours(shown.free) ?? 0)} GPU-h`,
                                    )}
                                />
                            </Panel>
                        )}
                        {by !== "cluster" && (
                            <Panel
                                bare
                                title={w("split", byWord(by).toLowerCase())}
                                count={all.length}
                                end={<TableCsv rows={all} cols={cols} />}
                            >
                                <Table
                                    label={w("split", byWord(by))}
                                    rows={all}
                                    cols={cols}
                                    keyOf={(s) => s.name}
                                    current={of}
                                />
                                {by === "pool" && <p class="note-row small dim">{w("two")}</p>}
                            </Panel>
                        )}
                    </>
                )}
                {(by === "cluster" || by === "pool") && <Outlook />}
                <Waste asked={waste} />
                <Taken of={waste.data} />
                {by === "cluster" && <Failures period={period} />}
            </div>
        </>
    );
}
