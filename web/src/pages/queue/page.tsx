// SPDX-License-Identifier: Apache-2.0
// page.tsx - the queue: who waits, why and until when; who starts and runs; who has just ended. ?why=ID opens the drawer
// with the whole reason.
import type { ComponentChildren } from "preact";
import type { JobItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useRowKeys } from "../../base/keys";
import { ms, now, num, shape, span, visible } from "../../base/say";
import { go, query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Cut } from "../../kit/cut";
import { CopyCsv, Dash, Head, Panel, Seg, shell, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { Flags, jobName, ranFor } from "../jobs/columns";
import { MOST, RUNS, useLine, useTotal } from "./line";
import { Why } from "./why";
import "./page.css";

const w = words({
    waiting: ["Waiting", "排队"],
    running: ["Starting and running", "启动与运行"],
    ended: ["Just ended", "刚结束"],
    nothing: ["Nothing waits", "队列为空"],
    nothing_text: [
        "Every job that was submitted has its GPUs. {0} {0|GPU is|GPUs are} free: a job of up to {1} on one node would start now.",
        "所有作业都已分到 GPU。还有 {0} 张空闲：单节点 {1} 张以内的作业可立即启动。",
    ],
    none_runs: ["Nothing runs", "没有运行中的作业"],
    none_ended: ["Nothing ended in the last hours", "最近几小时没有作业结束"],
    eta: ["ETA", "预计"],
    no_eta: ["no estimate", "无法预计"],
    free: ["{0} Free {1}", "{0} 空闲 {1}"],
    whole: ["All pools", "全部资源池"],
    now: ["now", "现在"],
});

const HOURS = 12;

/** The expected start on an axis of the next 12 hours: a tick at P50, a bar to P90. */
function Range({ eta }: { eta: { p50: string; p90: string } }) {
    const at = (x: string) => Math.max(0, Math.min(100, ((ms(x) - now.value) / (HOURS * 36e5)) * 100));
    return (
        <span class="range" aria-hidden="true">
            <i style={{ left: `${at(eta.p50)}%`, width: `${Math.max(1, at(eta.p90) - at(eta.p50))}%` }} />
            <b style={{ left: `${at(eta.p50)}%` }} />
        </span>
    );
}

/** What both lists say of a job: its name with the line below, whose it is, its place and size. */
function JobCells({ of: j, below }: { of: JobItem; below: ComponentChildren }) {
    return (
        <>
            <span>
                <span class="row">
                    <State of={j.state} wordless />
                    <span class="name cut">
                        <Text of={jobName(j)} />
                    </span>
                    <Flags of={j} />
                </span>
                <span class="why cut" title={visible(j.reason.text)}>
                    {below}
                </span>
            </span>
            <span class="q-user">
                <Text of={j.user} />
            </span>
            <span class="q-pool">
                <Text of={j.pool} />
            </span>
            <span class="num">{shape(j)}</span>
        </>
    );
}

function Waiting({ rows, why }: { rows: JobItem[]; why: string | null }) {
    return (
        <>
            <div class="gr gh">
                <span class="num">#</span>
                <span>{t("job")}</span>
                <span class="q-user">{t("user")}</span>
                <span class="q-pool">{t("pool")}</span>
                <span class="num">{t("gpus")}</span>
                <span class="num">{t("waited")}</span>
                <span class="etacell">
                    <span>{w("eta")}</span>
                    <span class="axis12">
                        <i>{w("now")}</i>
                        <i>+6h</i>
                        <i>+12h</i>
                    </span>
                </span>
            </div>
            {rows.map((j) => (
                <a
                    key={j.id}
                    class="gr two"
                    href={withQuery("/queue", { ...Object.fromEntries(query.value), why: j.id, timeout: null })}
                    aria-current={why === j.id ? "true" : undefined}
                >
                    <span class="num dim">{j.position ?? <Dash />}</span>
                    <JobCells of={j} below={visible(j.reason.text) || <Dash />} />
                    <span class="num">{j.queued_at ? span(now.value - ms(j.queued_at)) : <Dash />}</span>
                    {j.eta ? (
                        <span class="etacell">
                            <Time at={j.eta.p50} />
                            <Range eta={j.eta} />
                        </span>
                    ) : (
                        <span class="dim">{w("no_eta")}</span>
                    )}
                </a>
            ))}
        </>
    );
}

function Others({ rows, ended }: { rows: JobItem[]; ended?: boolean }) {
    return (
        <>
            <div class="gr gh">
                <span class="num" />
                <span>{t("job")}</span>
                <span class="q-user">{t("user")}</span>
                <span class="q-pool">{t("pool")}</span>
                <span class="num">{t("gpus")}</span>
                <span class="num">{t("ran")}</span>
                <span>{ended ? t("ended_at") : t("step")}</span>
            </div>
            {rows.map((j) => {
                const ran = ranFor(j);
                return (
                    <a key={j.id} class="gr two" href={`/jobs/${encodeURIComponent(j.id)}`}>
                        <span />
                        <JobCells
                            of={j}
                            below={[t(j.state as "RUNNING"), visible(j.reason.text)].filter(Boolean).join(" · ")}
                        />
                        <span class="num">{ran === null ? <Dash /> : span(ran)}</span>
                        <span>
                            {ended ? <Time at={j.ended_at} as="ago" /> : (j.step?.toLocaleString("en-US") ?? <Dash />)}
                        </span>
                    </a>
                );
            })}
        </>
    );
}

const csvRows = (rows: JobItem[]) =>
    rows.map((j) => [
        j.position,
        j.id,
        j.name,
        j.user,
        j.state,
        j.nnodes,
        j.n_gpus_per_node,
        j.reason.text,
        j.eta?.p50,
        j.eta?.p90,
    ]);
const CSV_HEAD = [
    "position",
    "id",
    "name",
    "user",
    "state",
    "nnodes",
    "n_gpus_per_node",
    "reason",
    "eta_p50",
    "eta_p90",
];

export default function Queue() {
    const q = query.value;
    const mine = q.get("mine") === "1";
    const pool = q.get("pool") ?? "";
    const why = q.get("why");
    const whose = { all: !mine, pool };
    const line = useLine(whose);
    const live = useAsk("GET /v1/jobs", { query: { ...whose, state: RUNS, limit: MOST } }, { topics: ["jobs"] });
    const over = useAsk(
        "GET /v1/jobs",
        { query: { state: "SUCCEEDED,FAILED,STOPPED,TIMEOUT", all: !mine, limit: 10, since: "1d", pool } },
        { topics: ["jobs"] },
    );
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools", "jobs"] });
    useRowKeys("a.gr", () => t("k_rows"));
    const waiting = line.rows ?? [];
    const running = live.data?.jobs ?? [];
    const isCut = !!live.data?.next_cursor;
    const runs = useTotal(RUNS, whose, isCut);
    const refused = [line.asked, live].find((x) => x.why && !x.data);
    const whole = pools.data?.pools.find((p) => p.pool === null);
    const named = pools.data?.pools.filter((p) => p.pool !== null) ?? [];
    return (
        <>
            <Head
                title={t("queue")}
                sub={
                    named.length
                        ? named.map((p) => w("free", p.pool ?? "", p.gpus.free)).join(" · ")
                        : whole && w("free", "", whole.gpus.free).trim()
                }
                cli={`argus queue${pool ? ` --pool ${shell(pool)}` : ""}`}
            />
            <div class="filters bar-of">
                {named.length > 0 && (
                    <Seg
                        label={t("pool")}
                        value={pool}
                        onChange={(p) => setQuery({ pool: p })}
                        of={[
                            { value: "", says: t("all") },
                            ...named.map((p) => ({ value: p.pool!, says: <Text of={p.pool} /> })),
                        ]}
                    />
                )}
                <Seg
                    label={t("user")}
                    value={mine ? "1" : ""}
                    onChange={(v) => setQuery({ mine: v })}
                    of={[
                        { value: "", says: t("everybody") },
                        { value: "1", says: t("mine") },
                    ]}
                />
            </div>
            {refused ? (
                <section class="panel">
                    <Refused why={refused.why} again={refused.again} />
                </section>
            ) : !line.rows || !live.data ? (
                <section class="panel">
                    <Loading rows={8} />
                </section>
            ) : (
                <div class="cols">
                    <Panel
                        title={w("waiting")}
                        count={num(line.total ?? waiting.length)}
                        class="glist"
                        bare
                        end={waiting.length > 0 && <CopyCsv head={CSV_HEAD} rows={() => csvRows(waiting)} />}
                    >
                        <Cut isCut={line.isCut} shown={waiting.length} total={line.total} />
                        {waiting.length ? (
                            <Waiting rows={waiting} why={why} />
                        ) : (
                            <Blank title={w("nothing")}>
                                {whole && w("nothing_text", whole.gpus.free, whole.largest_gang)}
                            </Blank>
                        )}
                    </Panel>
                    <Panel
                        title={w("running")}
                        count={num(runs ?? running.length)}
                        class="glist"
                        bare
                        end={running.length > 0 && <CopyCsv head={CSV_HEAD} rows={() => csvRows(running)} />}
                    >
                        <Cut isCut={isCut} shown={running.length} total={runs} />
                        {running.length ? <Others rows={running} /> : <Blank title={w("none_runs")} />}
                    </Panel>
                    <Panel title={w("ended")} count={over.data?.jobs.length} class="glist" bare>
                        {over.data?.jobs.length ? (
                            <Others rows={over.data.jobs} ended />
                        ) : (
                            <Blank title={w("none_ended")} />
                        )}
                    </Panel>
                </div>
            )}
            {why && (
                <Why
                    id={why}
                    key={why}
                    pools={pools.data?.pools ?? []}
                    may={session.value?.role !== "viewer"}
                    close={() => go(withQuery("/queue", { ...Object.fromEntries(q), why: null, timeout: null }))}
                />
            )}
        </>
    );
}
