// SPDX-License-Identifier: Apache-2.0
// page.tsx - the first page: does anything need me, do the GPUs work, is there a line.
import { useMemo } from "preact/hooks";
import type { Alert, JobItem, Pool } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { lang } from "../../base/prefs";
import { ms, now, num, shape, span, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Pending, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { CopyCsv, Dash, Flag, Head, Panel, Seg, State, Text, Time, Toned } from "../../kit/parts";
import { short, Stack } from "../../kit/stack";
import { t } from "../../words/shared";
import { Flags, jobName, ranFor } from "../jobs/columns";
import { useLine } from "../queue/line";
import { hours, partWord, PARTS, SLOT_OF, stackOf } from "../usage/sums";
import { alarmOf, ALARMING, failedLately, once, ownInOrder } from "./own";
import "./page.css";

const w = words({
    sub: ["{0} {0|node|nodes} · {1} {1|GPU|GPUs}", "{0} 个节点 · {1} 张 GPU"],
    needs: ["Needs a hand", "需要处理"],
    none_needs: ["Nothing needs a hand", "没有需要处理的事项"],
    none_needs_text: [
        "No job failed, hangs or is lost, no machine is out of order, no alert is open.",
        "没有失败、卡死或失联的作业，没有异常的机器，也没有未处理的告警。",
    ],
    of_gpus: ["of {0} {0|GPU|GPUs} leased", "/ {0} 张 GPU 已分配"],
    fits: ["fits a job of {0}", "最大可启动 {0}"],
    next_free: ["next free", "下次空闲"],
    free_n: ["Free {0}", "空闲 {0}"],
    whole: ["Cluster", "集群"],
    my_jobs: ["My jobs", "我的作业"],
    no_jobs: ["No jobs of yours yet", "你还没有作业"],
    no_jobs_text: ["Submit one with the command line: argus submit", "用命令行提交：argus submit"],
    waiting_n: ["{0} waiting", "{0} 个排队"],
    longest: ["Longest wait {0}", "最长等待 {0}"],
    next_up: ["Next to start", "即将启动"],
    none_waits: ["Nothing waits", "队列为空"],
    none_waits_text: ["What is submitted now starts when its GPUs are free.", "现在提交的作业会在 GPU 空闲时启动。"],
    see_finding: ["See finding", "查看诊断"],
    all_alerts: ["All alerts", "全部告警"],
    used: ["Leased", "已分配"],
    trend: ["GPUs, last 24 hours", "近 24 小时 GPU"],
    trend_unit: ["GPUs, mean of each hour", "GPU 数，每小时均值"],
    trend_says: ["{0} GPU-hours used of {1}, {2} held idle", "使用 {0} / {1} GPU 时，占而未用 {2}"],
    no_gpus: ["No GPUs yet", "还没有 GPU"],
    no_gpus_text: [
        "Add machines first: argus node add NAME --host HOST",
        "先添加机器：argus node add NAME --host HOST",
    ],
});

type Need = {
    key: string;
    rank: number;
    mark: preact.ComponentChildren;
    name: string;
    to: string;
    says: string;
    at: string | null;
    act: string;
};

function needsOf(
    jobs: JobItem[],
    alerts: Alert[],
    nodes: { name: string; health: string; since: string | null; reason: { text: string } }[],
): Need[] {
    const found: Need[] = [];
    for (const j of jobs) {
        const failed = failedLately(j, now.value);
        const flag = alarmOf(j);
        if (!failed && !flag) continue;
        found.push({
            key: `job/${j.id}`,
            rank: flag === "UNKNOWN" ? 1 : flag ? 2 : 3,
            mark: flag ? <Flag of={flag} /> : <State of={j.state} />,
            name: jobName(j),
            to: `/jobs/${encodeURIComponent(j.id)}`,
            says: j.reason.text,
            at: failed ? j.ended_at : (j.unknown_since ?? j.started_at),
            act: failed ? w("see_finding") : t("open"),
        });
    }
    for (const n of nodes)
        if (n.health !== "ok" && n.health !== "")
            found.push({
                key: `node/${n.name}`,
                rank: 0,
                mark: <State of="unhealthy" />,
                name: n.name,
                to: withQuery("/nodes", { node: n.name }),
                says: n.reason.text,
                at: n.since,
                act: t("open"),
            });
    const named = new Set(found.map((n) => n.key));
    for (const a of alerts)
        if (!named.has(`${a.kind}/${a.name}`))
            found.push({
                key: `alert/${a.id}`,
                rank: a.severity === "critical" ? 0 : 4,
                mark: (
                    <Toned
                        tone={a.severity === "critical" ? "bad" : a.severity === "warning" ? "warn" : "quiet"}
                        icon="alerts"
                    >
                        {visible(a.rule)}
                    </Toned>
                ),
                name: a.name,
                to: withQuery("/alerts", { alert: a.id }),
                says: a.text,
                at: a.since,
                act: t("open"),
            });
    return found.sort((a, b) => a.rank - b.rank || ms(b.at) - ms(a.at));
}

const CELLS = ["used", "held", "foreign", "draining", "bad", "free"] as const;
type CellKind = (typeof CELLS)[number];
const SLOT: Record<CellKind, string> = {
    used: "used",
    held: "held",
    foreign: "foreign",
    draining: "draining",
    bad: "broken",
    free: "free",
};
const cellWord = (k: CellKind) => (k === "used" ? w("used") : t(`s_${k === "bad" ? "broken" : k}` as "s_free"));

/** Every GPU of a pool is a cell. More than 512 would be a wall: they are told as a number. */
function PoolRow({ pool, name }: { pool: Pool; name: string }) {
    const g = pool.gpus;
    const cells = CELLS.flatMap((k) => Array.from({ length: Math.round(g[k]) }, () => k));
    return (
        <div class="poolrow">
            <div class="row wrap">
                <span class="strong">
                    <Text of={name} />
                </span>
                {pool.type && (
                    <span class="dim">
                        <Text of={pool.type} />
                    </span>
                )}
                <span class="grow" />
                <span class="small mid">
                    {w("free_n", g.free)} · {w("fits", pool.largest_gang)}
                    {pool.next_free && (
                        <>
                            {" "}
                            · {w("next_free")}{" "}
                            <b>
                                <Time at={pool.next_free} />
                            </b>
                        </>
                    )}
                </span>
            </div>
            {cells.length <= 512 && (
                <div class="cells" role="img" aria-label={CELLS.map((k) => `${cellWord(k)} ${g[k]}`).join(", ")}>
                    {cells.map((k) => (
                        <span class={`slot ${SLOT[k]}`} />
                    ))}
                </div>
            )}
        </div>
    );
}

function Gpus({ pools }: { pools: Pool[] }) {
    const whole = pools.find((p) => p.pool === null);
    const named = pools.filter((p) => p.pool !== null);
    if (!whole || !whole.gpus.total) return <Blank title={w("no_gpus")}>{w("no_gpus_text")}</Blank>;
    const shown = named.length ? named : [whole];
    return (
        <div class="body gpus-body">
            <div class="row bignum">
                <b>{whole.gpus.used}</b>
                <span class="mid">{w("of_gpus", whole.gpus.total)}</span>
                <span class="grow" />
                <CopyCsv
                    head={["pool", "type", "total", ...CELLS]}
                    rows={() => pools.map((p) => [p.pool, p.type, p.gpus.total, ...CELLS.map((k) => p.gpus[k])])}
                />
            </div>
            {shown.map((p) => (
                <PoolRow pool={p} name={p.pool ?? w("whole")} />
            ))}
            <div class="legend even">
                {CELLS.filter((k) => whole.gpus[k] || k === "used" || k === "free").map((k) => (
                    <span>
                        <i class={`slot ${SLOT[k]}`} />
                        {cellWord(k)} <b>{whole.gpus[k]}</b>
                    </span>
                ))}
            </div>
        </div>
    );
}

function MyJobs({ rows }: { rows: JobItem[] }) {
    if (!rows.length) return <Blank title={w("no_jobs")}>{w("no_jobs_text")}</Blank>;
    return (
        <ul class="rows">
            {rows.slice(0, 8).map((j) => {
                const ran = ranFor(j);
                return (
                    <li key={j.id}>
                        <a href={`/jobs/${encodeURIComponent(j.id)}`} class="jrow">
                            <State of={j.state} />
                            <span class="row">
                                <span class="name cut">
                                    <Text of={jobName(j)} />
                                </span>
                                <Flags of={j} />
                            </span>
                            <span class="num wide-only">{shape(j)}</span>
                            <span class="cut dim wide-only">
                                {j.step !== null ? (
                                    <span class="text">
                                        {t("step")} {j.step.toLocaleString("en-US")}
                                        {j.ends && (
                                            <>
                                                {" · "}
                                                {t("ends")} <Time at={j.ends.p50} as="until" />
                                            </>
                                        )}
                                    </span>
                                ) : (
                                    visible(j.reason.text) || <Dash />
                                )}
                            </span>
                            <span class="num">{ran === null ? <Dash /> : span(ran)}</span>
                        </a>
                    </li>
                );
            })}
        </ul>
    );
}

function Line({ rows }: { rows: JobItem[] }) {
    if (!rows.length) return <Blank title={w("none_waits")}>{w("none_waits_text")}</Blank>;
    return (
        <ul class="rows">
            {rows.slice(0, 6).map((j) => (
                <li key={j.id}>
                    <a href={withQuery("/queue", { why: j.id })} class="qrow">
                        <span class="name cut">
                            <Text of={jobName(j)} />
                        </span>
                        <span class="num">{shape(j)}</span>
                        <span class="num">
                            {j.eta ? (
                                <Time at={j.eta.p50} as="until" />
                            ) : (
                                <span class="dim">{j.queued_at ? span(now.value - ms(j.queued_at)) : ""}</span>
                            )}
                        </span>
                    </a>
                </li>
            ))}
        </ul>
    );
}

/** What was leased, and what of that really worked, over the last day. */
function Trend() {
    const asked = useAsk("GET /v1/usage", { query: { by: "cluster", from: "1d", step: "1h" } }, { every: 60_000 });
    const series = asked.data?.series[0];
    if (asked.why) return <Refused why={asked.why} again={asked.again} />;
    if (!asked.data) return <Loading rows={3} />;
    if (!series) return <Blank title={w("no_gpus")} />;
    const of = (k: "used" | "held_idle" | "capacity") => short(hours(series[k]) ?? 0);
    return (
        <Stack
            kinds={PARTS.map((k) => ({ slot: SLOT_OF[k], says: partWord(k) }))}
            points={stackOf(asked.data, series)}
            unit={w("trend_unit")}
            csvHead={[...PARTS]}
            height={96}
            says={w("trend_says", of("used"), of("capacity"), of("held_idle"))}
        />
    );
}

/** Those with a flag that asks for a person, those that failed, one's own that are not over, and one's own newest: an age
 * is no bound of any, for a training may run for weeks. Which failed last costs a look at all jobs: by the clock. */
const FAILED = "FAILED,TIMEOUT";
function useJobs() {
    const live = { topics: ["jobs" as const] };
    return [
        useAsk("GET /v1/jobs", { query: { state: "live", flag: ALARMING.join(), all: true, limit: 1000 } }, live),
        useAsk("GET /v1/jobs", { query: { state: FAILED, all: true, limit: 500 } }, live),
        useAsk(
            "GET /v1/jobs",
            { query: { state: FAILED, all: true, limit: 100, sort: "ended_at" } },
            { every: 60_000 },
        ),
        useAsk("GET /v1/jobs", { query: { state: "live", all: false, limit: 100 } }, live),
        useAsk("GET /v1/jobs", { query: { all: false, limit: 50 } }, live),
    ] as const;
}

export default function Overview() {
    const mine = query.value.get("needs") === "mine";
    const me = session.value?.user ?? "";
    const [flagged, failed, lastFailed, running, newest] = useJobs();
    const line = useLine({ all: true });
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools", "jobs"] });
    const nodes = useAsk("GET /v1/nodes", {}, { topics: ["nodes"] });
    const alerts = useAsk("GET /v1/alerts", { query: { state: "open" } }, { topics: ["events"] });
    const needs = useMemo(
        () =>
            needsOf(
                once(flagged.data?.jobs ?? [], failed.data?.jobs ?? [], lastFailed.data?.jobs ?? []).filter(
                    (j) => !mine || j.user === me,
                ),
                (alerts.data?.alerts ?? []).filter((a) => !mine || a.user === me),
                mine ? [] : (nodes.data?.nodes ?? []),
            ),
        [flagged.data, failed.data, lastFailed.data, alerts.data, nodes.data, mine, lang.value],
    );
    const queued = (line.rows ?? []).filter((j) => !j.flags.includes("HELD"));
    const waiting = queued.length + Math.max(0, (line.total ?? 0) - (line.rows?.length ?? 0));
    const own = useMemo(
        () => ownInOrder(running.data?.jobs ?? [], newest.data?.jobs ?? []),
        [running.data, newest.data],
    );
    const more = running.data?.next_cursor || newest.data?.next_cursor;
    const oldest = queued.reduce((min, j) => Math.min(min, ms(j.queued_at)), Infinity);
    const whole = pools.data?.pools.find((p) => p.pool === null);
    return (
        <>
            <Head title={t("overview")} sub={whole && w("sub", whole.nodes, whole.gpus.total)} cli="argus gpus" />
            <div class="cols over">
                <Panel
                    title={w("needs")}
                    count={needs.length || undefined}
                    bare
                    end={
                        <Seg
                            label={w("needs")}
                            value={mine ? "mine" : ""}
                            onChange={(v) => setQuery({ needs: v })}
                            of={[
                                { value: "mine", says: t("mine") },
                                { value: "", says: t("everybody") },
                            ]}
                        />
                    }
                >
                    {!flagged.data || !failed.data ? (
                        <Pending of={flagged.why ? flagged : failed} lines={3} />
                    ) : needs.length ? (
                        <ul class="needs">
                            {needs.slice(0, 6).map((n) => (
                                <li key={n.key}>
                                    <span>{n.mark}</span>
                                    <a class="name cut" href={n.to}>
                                        <Text of={n.name} />
                                    </a>
                                    <span class="cut mid said" title={visible(n.says)}>
                                        {visible(n.says)}
                                    </span>
                                    <span class="dim nowrap">
                                        <Time at={n.at} as="ago" />
                                    </span>
                                    <a class="link nowrap" href={n.to}>
                                        {n.act}
                                    </a>
                                </li>
                            ))}
                        </ul>
                    ) : (
                        <Blank icon="succeeded" title={w("none_needs")}>
                            {w("none_needs_text")}
                        </Blank>
                    )}
                </Panel>
                <div class="cols two">
                    <Panel bare>
                        {pools.why ? (
                            <Refused why={pools.why} again={pools.again} />
                        ) : pools.data ? (
                            <Gpus pools={pools.data.pools} />
                        ) : (
                            <Loading rows={3} />
                        )}
                    </Panel>
                    <Panel
                        bare
                        title={t("queue")}
                        count={line.rows && w("waiting_n", num(waiting))}
                        end={
                            <span class="small dim endtext">
                                {Number.isFinite(oldest) && w("longest", span(now.value - oldest))}
                            </span>
                        }
                    >
                        {line.rows ? <Line rows={queued} /> : <Pending of={line.asked} lines={3} />}
                    </Panel>
                </div>
                <Panel
                    bare
                    title={w("trend")}
                    end={
                        <a class="btn bare" href="/usage">
                            {t("usage")}
                            <Icon name="right" />
                        </a>
                    }
                >
                    <Trend />
                </Panel>
                <Panel
                    bare
                    title={w("my_jobs")}
                    count={own.length ? `${own.length}${more ? "+" : ""}` : undefined}
                    end={
                        own.length > 8 && (
                            <a class="btn bare" href="/jobs?mine=1">
                                {t("all")}
                                <Icon name="right" />
                            </a>
                        )
                    }
                >
                    {running.data && newest.data ? (
                        <MyJobs rows={own} />
                    ) : (
                        <Pending of={running.why ? running : newest} lines={4} />
                    )}
                </Panel>
            </div>
        </>
    );
}
