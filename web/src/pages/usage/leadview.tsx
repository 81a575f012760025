// SPDX-License-Identifier: Apache-2.0
// leadview.tsx - what a lead reads first: three sentences with what to do, a bar per pool that is exactly 100 %, who had what
// and of whom, what each may hold, and who waits for how many GPUs. Figures open the jobs behind them, where a filter of
// the jobs says which those are.
import type { ComponentChildren } from "preact";
import type { JobWaste, UsageSeries, UsageTime } from "../../made/api";
import { useAsk, type Asked } from "../../api/use";
import { now, num, span, visible } from "../../base/say";
import { withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Panel, Text } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { MOST, useTotal } from "../queue/line";
import "./lead.css";
import { Act } from "./act";
import { adviceOf } from "./advice";
import {
    accounts,
    behindPart,
    behindSize,
    OTHERS,
    poolShares,
    waitingBySize,
    worstLoss,
    type Account,
    type Dealt,
    type PoolShare,
    type Waiting,
} from "./lead";
import { ranIn, type Period } from "./period";
import { Quotas } from "./quotas";
import { held, hours, partWord, SLOT_OF, worked } from "./sums";

const w = words({
    short: ["In short", "概要"],
    computed: ["Of {0} GPU-hours {1}% computed, {2}% were held.", "{0} GPU 时中 {1}% 在计算，{2}% 被占用。"],
    held: ["Of {0} GPU-hours {1}% were held; their use was not measured.", "{0} GPU 时中 {1}% 被占用；未测量利用率。"],
    more: ["{0} points more than the time before.", "比上一时段多 {0} 个百分点。"],
    less: ["{0} points less than the time before.", "比上一时段少 {0} 个百分点。"],
    same: ["As much as the time before.", "与上一时段持平。"],
    week_more: ["{0} points more than a week ago.", "比一周前同一时段多 {0} 个百分点。"],
    week_less: ["{0} points less than a week ago.", "比一周前同一时段少 {0} 个百分点。"],
    week_same: ["As much as a week ago.", "与一周前同一时段持平。"],
    see_jobs: ["Show the jobs", "查看作业"],
    loss: ["The largest avoidable loss: {0} GPU-hours of {1}, by {2}.", "最大的可避免损失：{2} 的 {1}，{0} GPU 时。"],
    no_loss: [
        "No job held GPUs idle, and no step was run again or lost to a failure.",
        "没有闲置占用，也没有重做或因故障丢失的步数。",
    ],
    see_job: ["Open the job", "打开作业"],
    waits: [
        "{0} {0|job waits|jobs wait} for {1} {1|GPU|GPUs}, the longest since {2}; {3} {3|is|are} free.",
        "{0} 个作业在等 {1} 张 GPU，最久已等 {2}；空闲 {3} 张。",
    ],
    waits_cut: [
        "{0} jobs wait; the {1} that wait longest want {2} GPUs, the longest since {3}; {4} {4|is|are} free.",
        "{0} 个作业在等待；等待最久的 {1} 个共需 {2} 张 GPU，最久已等 {3}；空闲 {4} 张。",
    ],
    oldest: ["Of {1} jobs, the {0} that wait longest.", "共 {1} 个作业，仅统计等待最久的 {0} 个。"],
    oldest_only: ["The {0} jobs that wait longest; there are more.", "仅统计等待最久的 {0} 个作业，后面还有。"],
    no_waits: ["No job waits.", "没有作业在等待。"],
    see_queue: ["See why", "查看原因"],
    pools: ["Pools", "资源池"],
    was: ["{0}% held, {1}% the time before", "占用 {0}%，上一时段 {1}%"],
    was_new: ["{0}% held", "占用 {0}%"],
    was_week: ["{0}% a week ago", "一周前 {0}%"],
    pool_bar: ["{0}: {1}", "{0}：{1}"],
    no_pools: ["No GPUs were there in that time", "该时段内没有 GPU"],
    who: ["Who", "归属"],
    people: ["Projects and people", "项目与用户"],
    no_people: ["Nobody held a GPU in that time", "该时段内无人占用 GPU"],
    had: ["GPU-hours", "GPU 时"],
    worked: ["Computed", "计算"],
    idle: ["Idle", "闲置"],
    wait_taken: ["Waited", "已等待"],
    wait_given: ["Made wait", "致他人等待"],
    lent_to: ["Lent to", "借给"],
    lent_others: ["others", "其他"],
    lent_more: ["{0} more", "另 {0} 个"],
    waiting: ["Waiting, by size", "按规模统计的等待"],
    size: ["GPUs of a job", "作业 GPU 数"],
    size_0: ["none (CPU alone)", "无（仅 CPU）"],
    size_more: ["{0} and more", "{0} 及以上"],
    n_jobs: ["Jobs", "作业"],
    wants: ["GPUs wanted", "所需 GPU"],
    median: ["Half wait longer than", "中位等待"],
    longest: ["Longest", "最久"],
    what_if: ["What would more nodes change?", "增加节点会怎样？"],
});

interface Sums {
    now: UsageSeries | undefined;
    before: UsageSeries | undefined;
    weekBefore: UsageSeries | undefined;
}

/** Points of a hundred that more was held than then; null: that is not known. */
function pointsMore(s: UsageSeries, then: UsageSeries | undefined): number | null {
    const [capacity, was] = [hours(s.capacity), then ? hours(then.capacity) : null];
    return then && was && capacity ? Math.round((held(s) / capacity - held(then) / was) * 100) : null;
}

function Line({ children, act }: { children: ComponentChildren; act?: ComponentChildren }) {
    return (
        <li class="note-row">
            <span class="grow">{children}</span>
            {act}
        </li>
    );
}

function heldSays({ now: s, before, weekBefore }: Sums): string {
    const capacity = s ? hours(s.capacity) : null;
    if (!s || !capacity) return "";
    const percent = (held(s) / capacity) * 100;
    const busy = worked(s) === null ? null : ((hours(s.busy) ?? 0) / capacity) * 100;
    const said = [
        busy === null
            ? w("held", short(capacity), num(percent))
            : w("computed", short(capacity), num(busy), num(percent)),
    ];
    const points = pointsMore(s, before);
    if (points !== null) said.push(points > 0 ? w("more", points) : points < 0 ? w("less", -points) : w("same"));
    const week = pointsMore(s, weekBefore);
    if (week !== null) said.push(week > 0 ? w("week_more", week) : week < 0 ? w("week_less", -week) : w("week_same"));
    return said.join(" ");
}

function InShort(p: {
    of: Sums;
    waste: JobWaste[] | undefined;
    waiting: Waiting[] | undefined;
    /** How many wait, where those are the oldest of them alone. */
    total: number | undefined;
    free: number;
    period: Period;
}) {
    const worst = p.waste && worstLoss(p.waste);
    const jobs = p.waiting?.reduce((n, x) => n + x.jobs, 0) ?? 0;
    const gpus = p.waiting?.reduce((n, x) => n + x.gpus, 0) ?? 0;
    const longest = Math.max(0, ...(p.waiting ?? []).map((x) => x.longest));
    return (
        <Panel bare title={w("short")}>
            <ul class="lead-lines">
                <Line
                    act={
                        <a class="btn small" href={withQuery("/jobs", { sort: "-gpu_hours", ...ranIn(p.period) })}>
                            {w("see_jobs")}
                        </a>
                    }
                >
                    {heldSays(p.of)}
                </Line>
                {p.waste && (
                    <Line
                        act={
                            worst && (
                                <Act
                                    of={worst}
                                    otherwise={
                                        <a class="btn small" href={`/jobs/${encodeURIComponent(worst.id)}`}>
                                            {w("see_job")}
                                        </a>
                                    }
                                />
                            )
                        }
                    >
                        {worst
                            ? `${w("loss", short(worst.waste_hours), visible(worst.name || worst.id), visible(worst.user))} ${adviceOf(worst)}`
                            : w("no_loss")}
                    </Line>
                )}
                {p.waiting && (
                    <Line
                        act={
                            jobs > 0 && (
                                <a class="btn small" href="/queue">
                                    {w("see_queue")}
                                </a>
                            )
                        }
                    >
                        {p.total
                            ? w("waits_cut", num(p.total), num(jobs), short(gpus), span(longest), short(p.free))
                            : jobs
                              ? w("waits", jobs, short(gpus), span(longest), short(p.free))
                              : w("no_waits")}
                    </Line>
                )}
            </ul>
        </Panel>
    );
}

/** jobs: filters of those that made the part; null: it leads nowhere. */
function PartSays({ of: x, jobs }: { of: PoolShare["parts"][number]; jobs: ReturnType<typeof behindPart> }) {
    return (
        <span>
            <i class={`slot ${SLOT_OF[x.part]}`} aria-hidden="true" />
            {jobs ? (
                <a class="link" href={withQuery("/jobs", jobs)}>
                    {partWord(x.part)}
                </a>
            ) : (
                partWord(x.part)
            )}{" "}
            <b>{x.percent}%</b>
        </span>
    );
}

function PoolBar({ of, period }: { of: PoolShare; period: Period }) {
    const told = of.parts.filter((x) => x.hours > 0);
    const parts = told.map((x) => `${partWord(x.part)} ${x.percent}%`).join(", ");
    return (
        <div class="leadpool">
            <a class="name cut" href={withQuery("/usage", { by: "pool", of: of.name, for: period.word })}>
                <Text of={of.name || "–"} />
            </a>
            <div class="leadbar" role="img" aria-label={w("pool_bar", visible(of.name), parts)}>
                {told.map((x) => (
                    <i
                        class={`slot ${SLOT_OF[x.part]}`}
                        style={{ flexGrow: x.hours }}
                        title={`${partWord(x.part)}: ${short(x.hours)} GPU-h`}
                    />
                ))}
            </div>
            <span class="small dim nowrap">
                {of.heldBefore === null
                    ? w("was_new", num(of.held ?? 0))
                    : w("was", num(of.held ?? 0), num(of.heldBefore))}
                {of.heldWeekBefore !== null && ` · ${w("was_week", num(of.heldWeekBefore))}`}
            </span>
            <span class="leadparts small">
                {told.map((x) => (
                    <PartSays of={x} jobs={behindPart(x.part, of.name, period)} />
                ))}
            </span>
        </div>
    );
}

function Pools({ of, period }: { of: PoolShare[]; period: Period }) {
    return (
        <Panel bare title={w("pools")} count={of.length}>
            {of.length ? (
                <div class="leadpools">
                    {of.map((x) => (
                        <PoolBar of={x} period={period} />
                    ))}
                </div>
            ) : (
                <Blank title={w("no_pools")} />
            )}
        </Panel>
    );
}

const MOST_LENT = 2;

/** "vision 12, speech 3.5, 2 more". */
function lentSays(to: Dealt["to"], most = to.length): string {
    const told = to
        .slice(0, most)
        .map((x) => `${x.project === OTHERS ? w("lent_others") : visible(x.project)} ${short(x.hours)}`);
    return [...told, ...(to.length > most ? [w("lent_more", to.length - most)] : [])].join(", ");
}

const lentCol = (): Col<Account> => ({
    key: "lent_to",
    title: w("lent_to"),
    wide: true,
    draw: (a) =>
        a.dealt?.to.length ? (
            <span class="cut" title={lentSays(a.dealt.to)}>
                {lentSays(a.dealt.to, MOST_LENT)}
            </span>
        ) : (
            <Dash />
        ),
    csv: (a) => (a.dealt ? lentSays(a.dealt.to) : null),
});

function accountCols(period: Period): Col<Account>[] {
    const behind = (a: Account) => withQuery("/jobs", { [a.kind]: a.name, sort: "-gpu_hours", ...ranIn(period) });
    const figure = (
        key: string,
        title: string,
        of: (a: Account) => number | null | undefined,
        wide: Col<Account>["wide"] = true,
    ): Col<Account> => ({
        key,
        title,
        num: true,
        width: 92,
        wide,
        draw: (a) => {
            const v = of(a);
            return v === null || v === undefined ? <Dash /> : short(v);
        },
        csv: (a) => of(a) ?? null,
    });
    return [
        {
            key: "name",
            title: w("who"),
            draw: (a) => (
                <span class="row">
                    <a class="name cut" href={behind(a)}>
                        <Text of={a.name} />
                    </a>
                    <span class="small dim">{t(a.kind)}</span>
                </span>
            ),
            csv: (a) => `${a.kind}:${a.name}`,
        },
        figure("held", w("had"), (a) => a.held, false),
        figure("computed", w("worked"), (a) => a.computed),
        figure("idle", w("idle"), (a) => a.idle),
        figure("wait_taken", w("wait_taken"), (a) => a.dealt?.waitTaken),
        figure("wait_given", w("wait_given"), (a) => a.dealt?.waitGiven),
        lentCol(),
    ];
}

const sizeOf = (x: Waiting) =>
    x.most === 0
        ? w("size_0")
        : x.most === null
          ? w("size_more", x.least)
          : x.least === x.most
            ? `${x.least}`
            : `${x.least}–${x.most}`;
const waits = (x: Waiting, says: ComponentChildren) => <a href={withQuery("/jobs", behindSize(x))}>{says}</a>;
const waitingCols = (): Col<Waiting>[] => [
    { key: "gpus_of_a_job", title: w("size"), draw: (x) => waits(x, sizeOf(x)), csv: sizeOf },
    { key: "jobs", title: w("n_jobs"), num: true, width: 72, draw: (x) => waits(x, num(x.jobs)), csv: (x) => x.jobs },
    {
        key: "gpus",
        title: w("wants"),
        num: true,
        width: 112,
        draw: (x) => waits(x, short(x.gpus)),
        csv: (x) => x.gpus,
        wide: true,
    },
    {
        key: "median_s",
        title: w("median"),
        num: true,
        width: 168,
        wide: true,
        draw: (x) => waits(x, span(x.median)),
        csv: (x) => Math.round(x.median / 1000),
    },
    {
        key: "longest_s",
        title: w("longest"),
        num: true,
        width: 112,
        draw: (x) => <a href={`/jobs/${encodeURIComponent(x.id)}`}>{span(x.longest)}</a>,
        csv: (x) => Math.round(x.longest / 1000),
    },
];

const LIVE = { every: 60_000 };

/** whole: the cluster's usage in this period, in one point or many. */
export function Lead({
    period,
    whole,
    waste,
}: {
    period: Period;
    whole: Asked<UsageTime>;
    waste: Asked<{ jobs: JobWaste[] }>;
}) {
    const range = { from: period.from, to: period.to };
    const old = period.before;
    const week = period.weekBefore;
    const wholeOld = useAsk(old ? "GET /v1/usage" : null, { query: old ?? {} }, LIVE);
    const wholeWeek = useAsk(week ? "GET /v1/usage" : null, { query: week ?? {} }, LIVE);
    const pools = useAsk("GET /v1/usage", { query: { ...range, by: "pool" } }, LIVE);
    const poolsOld = useAsk(old ? "GET /v1/usage" : null, { query: { ...old, by: "pool" } }, LIVE);
    const poolsWeek = useAsk(week ? "GET /v1/usage" : null, { query: { ...week, by: "pool" } }, LIVE);
    const projects = useAsk("GET /v1/usage", { query: { ...range, by: "project" } }, LIVE);
    const users = useAsk("GET /v1/usage", { query: { ...range, by: "user" } }, LIVE);
    const quotas = useAsk("GET /v1/quotas", {}, LIVE);
    const queue = useAsk(
        "GET /v1/jobs",
        { query: { state: "QUEUED", all: true, limit: MOST, sort: "queued_at", order: "asc" } },
        { topics: ["jobs"], ...LIVE },
    );
    const isCut = !!queue.data?.next_cursor;
    const total = useTotal("QUEUED", { all: true }, isCut);
    const machines = useAsk("GET /v1/pools", {}, LIVE);
    const waiting = queue.data && waitingBySize(queue.data.jobs, now.value);
    const free = machines.data?.pools.find((p) => p.pool === null)?.gpus.free ?? 0; // of the whole cluster
    const who = [
        ...accounts("project", projects.data?.series ?? [], projects.data?.dealings),
        ...accounts("user", users.data?.series ?? []),
    ];
    return (
        <>
            {whole.data ? (
                <InShort
                    of={{
                        now: whole.data.series[0],
                        before: wholeOld.data?.series[0],
                        weekBefore: wholeWeek.data?.series[0],
                    }}
                    waste={waste.data?.jobs}
                    waiting={waiting}
                    total={isCut ? total : undefined}
                    free={free}
                    period={period}
                />
            ) : (
                <Pending of={whole} lines={3} framed />
            )}
            {pools.data ? (
                <Pools
                    of={poolShares(pools.data.series, poolsOld.data?.series ?? [], poolsWeek.data?.series)}
                    period={period}
                />
            ) : (
                <Pending of={pools} lines={3} framed />
            )}
            <Panel
                bare
                title={w("people")}
                count={who.length}
                end={!!who.length && <TableCsv rows={who} cols={accountCols(period)} />}
            >
                {!projects.data || !users.data ? (
                    <Pending of={projects.data ? users : projects} lines={4} />
                ) : who.length ? (
                    <Table
                        label={w("people")}
                        rows={who}
                        cols={accountCols(period)}
                        keyOf={(a) => `${a.kind}:${a.name}`}
                    />
                ) : (
                    <Blank title={w("no_people")} />
                )}
            </Panel>
            <Quotas asked={quotas} />
            {!!waiting?.length && (
                <Panel bare title={w("waiting")} end={<TableCsv rows={waiting} cols={waitingCols()} />}>
                    {isCut && (
                        <p class="note-row small mid cut-says">
                            {total ? w("oldest", num(MOST), num(total)) : w("oldest_only", num(MOST))}
                        </p>
                    )}
                    <Table label={w("waiting")} rows={waiting} cols={waitingCols()} keyOf={(x) => `${x.least}`} />
                    <p class="note-row small">
                        <a class="link" href="/simulator">
                            {w("what_if")}
                        </a>
                    </p>
                </Panel>
            )}
        </>
    );
}
