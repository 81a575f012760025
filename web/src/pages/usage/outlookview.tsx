// SPDX-License-Identifier: Apache-2.0
// outlookview.tsx - what comes: how many GPUs each pool will need in the next weeks with the band around it, when a pool
// is full, and what it would be like with more nodes or fewer. ?pool= ?weeks= ?nodes= hold what is shown.
import type { ForecastNodes, ForecastPool } from "../../made/api";
import { useAsk } from "../../api/use";
import { num, span, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Cli, Dash, Panel, Seg, shell, Text } from "../../kit/parts";
import { short, StackBox } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import "./outlook.css";
import { bySoonest, dayOf, filledOf, MORE_MAX, moreAsked, pictureOf, WEEKS, weeksAsked, weeksOf } from "./outlook";
import type { Week } from "./outlook";

const w = words({
    title: ["What will be needed", "需求预测"],
    ahead: ["Weeks ahead", "预测周数"],
    n_weeks: ["{0} weeks", "{0} 周"],
    all: ["All nodes", "全部节点"],
    capacity: ["Capacity", "总量"],
    last_week: ["Last week", "上周"],
    next_week: ["Next week", "下周"],
    full: ["Full", "将满"],
    early: ["Earliest", "最早"],
    week_from: ["Week from", "周始"],
    gpus: ["GPUs needed", "所需 GPU"],
    band: ["Four in five days", "五天中的四天"],
    by_week: ["Week by week", "逐周"],
    none: ["No pools", "没有资源池"],
    short: [
        "{0}: too short a history to foretell anything, {1} of {2} days.",
        "{0}：历史不足，无法预测（{1}/{2} 天）。",
    ],
    away: ["{0}: none of its nodes is there now.", "{0}：目前没有节点。"],
    full_today: ["{0}: full today.", "{0}：今天已满。"],
    full_on: ["{0}: full on {1}, in {2} {2|day|days}.", "{0}：{1}（{2} 天后）将满。"],
    full_early: [
        "{0}: full on {1}, in {2} {2|day|days}; by the upper end of the band on {3} already.",
        "{0}：{1}（{2} 天后）将满；按区间上限，{3} 即满。",
    ],
    maybe: [
        "{0}: not full in the next {1} weeks; by the upper end of the band it is on {2}.",
        "{0}：未来 {1} 周内不会满；按区间上限，{2} 会满。",
    ],
    never: [
        "{0}: not full in the next {1} weeks, not even by the upper end of the band.",
        "{0}：未来 {1} 周内不会满，按区间上限也不会。",
    ],
    saturated: [
        "It was full on {0} of the last 28 days: more may have been wanted than is known.",
        "最近 28 天有 {0} 天已满：实际需求可能更高。",
    ],
    fewer_weeks: ["The history allows {0} of the {1} weeks asked for.", "现有历史只够预测 {0} 周（所选为 {1} 周）。"],
    error: [
        'Such forecasts were {0} GPUs off in the mean, "as last week" {1}: tried on {2} days, of which {3}% lay in the band.',
        "此类预测平均偏差 {0} 张 GPU，“与上周相同”为 {1}：在 {2} 天上回测，{3}% 落在区间内。",
    ],
    unit: ["GPUs, means of days (UTC)", "GPU 数，日均值（UTC）"],
    picture: [
        "{0}: {1} GPUs needed in the first week, {2} in the last; the capacity is {3}",
        "{0}：首周需 {1} 张 GPU，末周需 {2} 张；总量 {3} 张",
    ],
    what_if: ["With so many nodes more", "增加节点数"],
    what_if_text: ["below 0: fewer", "负数为减少"],
    sides: ["As it is, and with other nodes", "现状与更改节点后"],
    mean_wait: ["Mean wait", "平均等待"],
    p95: ["P95", "P95"],
    too_large: ["Too large", "规模超限"],
    played: [
        "The {0} {0|job|jobs} queued since {1} {0|is|are} played again through the scheduler, with the nodes there are and with the others.",
        "将 {1} 以来排队的 {0} 个作业按两种节点数各重放一次。",
    ],
});

const nameOf = (p: ForecastPool) => (p.pool === null ? w("all") : visible(p.pool));
const linkOf = (p: ForecastPool) =>
    withQuery("/usage", { ...Object.fromEntries(query.value), pool: p.pool, nodes: null });
const day = (at: string | null) => (at ? dayOf(at) : <Dash />);

function poolCols(): Col<ForecastPool>[] {
    const next = (p: ForecastPool) => weeksOf(p.points)[0];
    return [
        {
            key: "pool",
            title: t("pool"),
            draw: (p) => (
                <a class="name cut" href={linkOf(p)}>
                    {p.pool === null ? w("all") : <Text of={p.pool} />}
                </a>
            ),
            csv: (p) => p.pool,
        },
        {
            key: "capacity_gpus",
            title: w("capacity"),
            num: true,
            width: 84,
            wide: true,
            draw: (p) => short(p.capacity_gpus),
            csv: (p) => p.capacity_gpus,
        },
        {
            key: "last_week_gpus",
            title: w("last_week"),
            num: true,
            width: 96,
            wide: true,
            draw: (p) => short(p.last_week_gpus),
            csv: (p) => p.last_week_gpus,
        },
        {
            key: "next_week_gpus",
            title: w("next_week"),
            num: true,
            width: 96,
            draw: (p) => {
                const of = next(p);
                return of ? <b>{short(of.gpus)}</b> : <Dash />;
            },
            csv: (p) => next(p)?.gpus ?? null,
        },
        { key: "full_at", title: w("full"), num: true, width: 72, draw: (p) => day(p.full_at), csv: (p) => p.full_at },
        {
            key: "full_early_at",
            title: w("early"),
            num: true,
            width: 84,
            draw: (p) => day(p.full_early_at),
            csv: (p) => p.full_early_at,
        },
    ];
}

const weekCols = (): Col<Week>[] => [
    { key: "week_from", title: w("week_from"), draw: (x) => x.from, csv: (x) => x.from },
    { key: "gpus", title: w("gpus"), num: true, draw: (x) => <b>{short(x.gpus)}</b>, csv: (x) => x.gpus },
    {
        key: "band",
        title: w("band"),
        num: true,
        draw: (x) => `${short(x.low)} – ${short(x.high)}`,
        csv: (x) => `${x.low} ${x.high}`,
    },
];

/** When is it full? The sentence above the picture. */
function saysFull(p: ForecastPool, today: string): string {
    const of = filledOf(p, today);
    const name = nameOf(p);
    if (of.kind === "short") return w("short", name, of.days, of.needed);
    if (of.kind === "away") return w("away", name);
    if (of.kind === "maybe") return w("maybe", name, p.weeks, of.day);
    if (of.kind === "never") return w("never", name, p.weeks);
    if (of.in <= 0) return w("full_today", name);
    return of.early ? w("full_early", name, of.day, of.in, of.early) : w("full_on", name, of.day, of.in);
}

function Band({ of: p }: { of: ForecastPool }) {
    const picture = pictureOf(p);
    const weeks = weeksOf(p.points);
    if (!picture || !weeks.length) return null;
    return (
        <StackBox
            points={p.points}
            legend={
                <>
                    <span>
                        <i class="outlook-key curve" />
                        {w("gpus")}
                    </span>
                    <span>
                        <i class="outlook-key" />
                        {w("band")}
                    </span>
                    <span>
                        <i class="outlook-key capacity" />
                        {w("capacity")}
                    </span>
                </>
            }
            told={w("unit")}
            csvHead={["day", "gpus", "low", "high"]}
            csvRow={(x) => [x.at.slice(0, 10), x.gpus, x.low, x.high]}
            top={picture.top}
            foot={(x) => dayOf(x.at)}
        >
            <svg
                class="outlook-band"
                role="img"
                aria-label={w(
                    "picture",
                    nameOf(p),
                    short(weeks[0]!.gpus),
                    short(weeks.at(-1)!.gpus),
                    short(p.capacity_gpus),
                )}
                viewBox="0 0 100 100"
                preserveAspectRatio="none"
                height="150"
            >
                <polygon class="band" points={picture.band} />
                <polyline class="curve" points={picture.curve} />
                {p.capacity_gpus > 0 && (
                    <line class="capacity" x1="0" x2="100" y1={picture.capacity} y2={picture.capacity} />
                )}
            </svg>
        </StackBox>
    );
}

const wait = (seconds: number | null) => (seconds === null ? <Dash /> : span(seconds * 1000));

const sideCols = (): Col<ForecastNodes>[] => [
    { key: "nodes", title: t("nodes"), num: true, width: 72, draw: (x) => <b>{num(x.nodes)}</b>, csv: (x) => x.nodes },
    {
        key: "utilisation",
        title: t("util"),
        num: true,
        draw: (x) => (x.utilisation === null ? <Dash /> : `${num(x.utilisation * 100)}%`),
        csv: (x) => x.utilisation,
    },
    {
        key: "wait_mean_s",
        title: w("mean_wait"),
        num: true,
        draw: (x) => wait(x.wait_mean_s),
        csv: (x) => x.wait_mean_s,
    },
    {
        key: "wait_p95_s",
        title: w("p95"),
        num: true,
        wide: true,
        draw: (x) => wait(x.wait_p95_s),
        csv: (x) => x.wait_p95_s,
    },
    { key: "never", title: w("too_large"), num: true, wide: true, draw: (x) => num(x.never), csv: (x) => x.never },
    { key: "full_at", title: w("full"), num: true, draw: (x) => day(x.full_at), csv: (x) => x.full_at },
    {
        key: "full_early_at",
        title: w("early"),
        num: true,
        wide: true,
        draw: (x) => day(x.full_early_at),
        csv: (x) => x.full_early_at,
    },
];

/** Two replays of the last weeks, which the server makes anew for each question. */
function Sides({ pool, more, weeks }: { pool: string | null; more: number; weeks: number }) {
    const asked = useAsk("GET /v1/forecast", { query: { pool: pool ?? undefined, nodes: more, weeks } });
    const of = asked.data?.pools.find((p) => p.pool === pool)?.what_if;
    if (asked.why || !asked.data) return <Pending of={asked} lines={2} />;
    if (!of) return null;
    const rows = [of.now, of.then];
    return (
        <>
            <Table label={w("sides")} rows={rows} cols={sideCols()} keyOf={(x) => String(x.nodes)} />
            <p class="note-row small dim">{w("played", of.jobs, dayOf(of.from))}</p>
        </>
    );
}

function Pool({ of: p, today, asked }: { of: ForecastPool; today: string; asked: string }) {
    const more = moreAsked(query.value.get("nodes"));
    const weeks = weeksOf(p.points);
    return (
        <section aria-label={nameOf(p)}>
            <p class="outlook-says strong">{saysFull(p, today)}</p>
            {p.saturated_days > 0 && <p class="outlook-says small mid">{w("saturated", p.saturated_days)}</p>}
            {p.enough && p.weeks < Number(asked) && (
                <p class="outlook-says small mid">{w("fewer_weeks", p.weeks, asked)}</p>
            )}
            <Band of={p} />
            {weeks.length > 0 && <Table label={w("by_week")} rows={weeks} cols={weekCols()} keyOf={(x) => x.from} />}
            {p.enough && p.trials > 0 && (
                <p class="note-row small dim">
                    {w("error", short(p.error_gpus), short(p.naive_error_gpus), p.trials, num(p.covered * 100))}
                </p>
            )}
            {p.capacity_gpus > 0 && (
                <>
                    <div class="outlook-asks labelled">
                        <label>
                            <span>{w("what_if")}</span>
                            <input
                                class="field"
                                type="number"
                                name="more"
                                min={-MORE_MAX}
                                max={MORE_MAX}
                                placeholder={w("what_if_text")}
                                value={query.value.get("nodes") ?? ""}
                                onChange={(e) => setQuery({ nodes: e.currentTarget.value })}
                            />
                        </label>
                        <Cli
                            line={`argus forecast${p.pool ? ` --pool ${shell(p.pool)}` : ""}${
                                asked === WEEKS[0] ? "" : ` --weeks ${asked}`
                            }${more ? ` --nodes ${more}` : ""}`}
                        />
                    </div>
                    {more !== null && <Sides pool={p.pool} more={more} weeks={Number(asked)} />}
                </>
            )}
        </section>
    );
}

/** What is foretold changes with the day; the capacity with the nodes. */
const AGAIN = 600_000;

export function Outlook() {
    const weeks = weeksAsked(query.value.get("weeks"));
    const asked = useAsk("GET /v1/forecast", { query: { weeks: Number(weeks) } }, { every: AGAIN });
    const pools = asked.data && bySoonest(asked.data.pools);
    const name = query.value.get("pool");
    const shown = pools?.find((p) => p.pool === name) ?? pools?.[0];
    return (
        <Panel
            bare
            id="outlook"
            title={w("title")}
            end={
                <>
                    <Seg
                        label={w("ahead")}
                        value={weeks}
                        onChange={(v) => setQuery({ weeks: v === WEEKS[0] ? null : v })}
                        of={WEEKS.map((n) => ({ value: n, says: w("n_weeks", n) }))}
                    />
                    {!!pools?.length && <TableCsv rows={pools} cols={poolCols()} />}
                </>
            }
        >
            {asked.why || !asked.data || !pools ? (
                <Pending of={asked} lines={4} />
            ) : !shown ? (
                <Blank title={w("none")} />
            ) : (
                <>
                    {pools.length > 1 && (
                        <Table
                            label={w("title")}
                            rows={pools}
                            cols={poolCols()}
                            keyOf={(p) => p.pool ?? ""}
                            current={shown.pool ?? ""}
                        />
                    )}
                    <Pool key={shown.pool ?? ""} of={shown} today={asked.data.from} asked={weeks} />
                </>
            )}
        </Panel>
    );
}
