// SPDX-License-Identifier: Apache-2.0
// result.tsx - what a simulation found: one sentence, the policies side by side, pictures over time and by size.
import { useEffect, useState } from "preact/hooks";
import type { Simulation, SimulationResult } from "../../made/api";
import { call } from "../../api/client";
import { useAsk } from "../../api/use";
import { clock, figure, num, span, visible } from "../../base/say";
import { go } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Chart } from "../../kit/chart";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { CopyCsv, Dash, Head, Meter, Panel, shell, Text, Time, Toned } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { queryOf } from "./form";
import { COLOR, isBest, rowsOf, sizesOf, timesOf, verdictOf, type Policy, type Row } from "./weigh";
import { w } from "./words";

/** Milliseconds between two looks at one that goes on. */
const LOOK_AGAIN = 700;
export const isGoing = (s: { state: string }) => s.state === "waiting" || s.state === "running";
const percent = (v: number | null, digits = 1) => (v === null ? <Dash /> : `${num(100 * v, digits)}%`);
const wait = (seconds: number) => span(seconds * 1000);

export const PolicyMark = ({ of }: { of: Policy }) => <i class={`pmark ${of}`} aria-hidden="true" />;

const STATE_ICON = {
    waiting: ["queued", "quiet"],
    running: ["running", "run"],
    done: ["succeeded", "ok"],
    failed: ["failed", "bad"],
    cancelled: ["stopped", "quiet"],
} as const;
export function SimState({ of }: { of: Simulation["state"] }) {
    const [icon, tone] = STATE_ICON[of];
    return (
        <Toned tone={tone} icon={icon}>
            {w(`s_${of}`)}
        </Toned>
    );
}

function sentence(rows: Row[]): string {
    const v = verdictOf(rows);
    if (!v) return "";
    if (rows.length === 1) return w("says_one", v.best.policy, wait(v.best.of.wait.mean));
    if (!v.worst) return w("says_same");
    return w("says_sooner", v.best.policy, wait(v.best.of.wait.mean), v.percent, v.worst.policy);
}

function sideCols(rows: Row[]): Col<Row>[] {
    const best = (r: Row, value: (r: Row) => number, least: boolean, says: string) =>
        isBest(rows, r, value, least) ? <b class="c-ok">{says}</b> : says;
    const waits = (key: "mean" | "p50" | "p95" | "max", wide = false): Col<Row> => ({
        key: `wait_${key}_s`,
        title: w(key),
        num: true,
        wide,
        draw: (r) => best(r, (x) => x.of.wait[key], true, wait(r.of.wait[key])),
        csv: (r) => r.of.wait[key],
    });
    return [
        {
            key: "policy",
            title: w("policy"),
            draw: (r) => (
                <span class="row" title={w(`${r.policy}_text`)}>
                    <PolicyMark of={r.policy} />
                    <b>{r.policy}</b>
                </span>
            ),
            csv: (r) => r.policy,
        },
        {
            key: "utilisation",
            title: t("util"),
            num: true,
            width: 110,
            draw: (r) => best(r, (x) => x.of.utilisation, false, `${num(100 * r.of.utilisation, 1)}%`),
            csv: (r) => r.of.utilisation,
        },
        { ...waits("mean"), width: 110 },
        { ...waits("p50", true), width: 90 },
        { ...waits("p95"), width: 100 },
        { ...waits("max", true), width: 100 },
        {
            key: "bounded_slowdown",
            title: w("slowdown"),
            num: true,
            wide: true,
            width: 90,
            draw: (r) => num(r.of.bounded_slowdown, 1),
            csv: (r) => r.of.bounded_slowdown,
        },
        {
            key: "fragmentation",
            title: w("fragmented"),
            num: true,
            wide: "very",
            width: 100,
            draw: (r) => percent(r.of.fragmentation),
            csv: (r) => r.of.fragmentation,
        },
        {
            key: "p90_covers",
            title: w("eta"),
            num: true,
            wide: "very",
            width: 90,
            draw: (r) => percent(r.of.eta.p90_covers, 0),
            csv: (r) => r.of.eta.p90_covers,
        },
        {
            key: "never_started",
            title: w("never"),
            num: true,
            wide: "very",
            width: 100,
            draw: (r) => num(r.of.never_started),
            csv: (r) => r.of.never_started,
        },
    ];
}

function Curves({ r, rows }: { r: SimulationResult; rows: Row[] }) {
    const times = timesOf(r, rows[0]?.of.used.length ?? 0);
    const pictures = [
        { key: "used", title: w("used"), note: w("used_of", num(rows[0]?.of.gpus ?? 0)), of: (x: Row) => x.of.used },
        { key: "queue", title: w("queue"), note: w("queue_note"), of: (x: Row) => x.of.queue },
    ];
    const mean = (v: (number | null)[]) => v.reduce<number>((sum, y) => sum + (y ?? 0), 0) / (v.length || 1);
    return (
        <Panel
            title={w("over_time")}
            bare
            end={
                <ul class="legend sim-legend">
                    {rows.map((x) => (
                        <li class="row">
                            <PolicyMark of={x.policy} />
                            {x.policy}
                        </li>
                    ))}
                </ul>
            }
        >
            <div class="charts sim-charts">
                {pictures.map((p) => (
                    <Chart
                        key={p.key}
                        title={p.title}
                        keyName={p.note}
                        lines={rows.map((x) => ({ label: x.policy, x: times, y: p.of(x), color: COLOR[x.policy] }))}
                        isTime
                        height={190}
                        sync="simulation"
                        says={w("curve", p.title, rows.map((x) => `${x.policy} ${figure(mean(p.of(x)))}`).join(", "))}
                        end={
                            <CopyCsv
                                head={["time", ...rows.map((x) => x.policy)]}
                                rows={() =>
                                    times.map((at, i) => [
                                        new Date(at * 1000).toISOString(),
                                        ...rows.map((x) => p.of(x)[i] ?? null),
                                    ])
                                }
                            />
                        }
                    />
                ))}
            </div>
        </Panel>
    );
}

const sizeWord = (size: string) => (size === "1" ? w("one_gpu") : w("gpus", size));

/** A bar of the mean and a line to the 95th of a hundred, on one scale for all. */
function Sizes({ rows }: { rows: Row[] }) {
    const { sizes, most } = sizesOf(rows);
    const at = (v: number) => ({ width: `${most ? (100 * v) / most : 0}%` });
    return (
        <Panel
            title={w("by_size")}
            count={w("mean_p95")}
            end={
                <CopyCsv
                    head={["gpus", "jobs", "policy", "wait_mean_s", "wait_p95_s"]}
                    rows={() => sizes.flatMap((s) => s.rows.map((r) => [s.size, s.jobs, r.policy, r.mean, r.p95]))}
                />
            }
        >
            <div class="sim-sizes">
                {sizes.map((s) => (
                    <div class="sim-size" role="group" aria-label={sizeWord(s.size)}>
                        <div class="sim-size-name">
                            <b>{sizeWord(s.size)}</b>
                            <span class="small dim">{w("n_jobs", num(s.jobs))}</span>
                        </div>
                        <ul class="sim-bars">
                            {s.rows.map((r) => (
                                <li>
                                    <span class="small sim-bar-name">{r.policy}</span>
                                    <span class="sim-bar" aria-hidden="true">
                                        <i class={`fill ${r.policy}`} style={at(r.mean)} />
                                        <i class={`whisker ${r.policy}`} style={at(r.p95)} />
                                    </span>
                                    <span class="small num nowrap">
                                        {wait(r.mean)} <span class="dim">{wait(r.p95)}</span>
                                    </span>
                                </li>
                            ))}
                        </ul>
                    </div>
                ))}
            </div>
        </Panel>
    );
}

interface PoolRow {
    name: string;
    policy: Policy;
    of: Row["of"]["pools"][string];
}

function Pools({ r, rows }: { r: SimulationResult; rows: Row[] }) {
    const names = Object.keys(rows[0]?.of.pools ?? {});
    if (names.length < 2) return null;
    const all = names.flatMap((name) => rows.map((x): PoolRow => ({ name, policy: x.policy, of: x.of.pools[name]! })));
    const cols: Col<PoolRow>[] = [
        {
            key: "pool",
            title: w("pool"),
            draw: (x) => (x.policy === rows[0]!.policy ? <Text of={x.name} /> : ""),
            csv: (x) => x.name,
        },
        {
            key: "gpus",
            title: t("gpus"),
            num: true,
            wide: true,
            width: 110,
            draw: (x) => (x.policy === rows[0]!.policy ? `${num(x.of.nodes)} × ${num(r.options.gpus_per_node)}` : ""),
            csv: (x) => x.of.gpus,
        },
        {
            key: "load",
            title: w("offered"),
            num: true,
            wide: "very",
            width: 80,
            draw: (x) => (x.policy === rows[0]!.policy ? num(x.of.load, 2) : ""),
            csv: (x) => x.of.load,
        },
        {
            key: "policy",
            title: w("policy"),
            width: 90,
            draw: (x) => (
                <span class="row">
                    <PolicyMark of={x.policy} />
                    {x.policy}
                </span>
            ),
            csv: (x) => x.policy,
        },
        {
            key: "utilisation",
            title: t("util"),
            num: true,
            width: 110,
            draw: (x) => percent(x.of.utilisation),
            csv: (x) => x.of.utilisation,
        },
        {
            key: "wait_mean_s",
            title: w("mean"),
            num: true,
            width: 110,
            draw: (x) => wait(x.of.wait.mean),
            csv: (x) => x.of.wait.mean,
        },
        {
            key: "wait_p95_s",
            title: w("p95"),
            num: true,
            wide: true,
            width: 110,
            draw: (x) => wait(x.of.wait.p95),
            csv: (x) => x.of.wait.p95,
        },
    ];
    return (
        <Panel title={w("pools")} count={num(names.length)} bare end={<TableCsv rows={all} cols={cols} />}>
            <Table label={w("pools")} rows={all} cols={cols} keyOf={(x) => `${x.name} ${x.policy}`} />
        </Panel>
    );
}

function Found({ s, r }: { s: Simulation; r: SimulationResult }) {
    const rows = rowsOf(r);
    const cols = sideCols(rows);
    const last = new Date(Date.parse(r.start) + r.span * 1000).toISOString();
    return (
        <div class="cols">
            <Panel title={w("side")} bare end={<TableCsv rows={rows} cols={cols} />} class="sim-side">
                <div class="sim-says">
                    <p class="sim-verdict">{sentence(rows)}</p>
                    <p class="small mid">
                        {w("facts", num(s.jobs), clock(r.start), clock(last), num(rows[0]?.of.gpus ?? 0))}
                    </p>
                </div>
                <Table label={w("side")} rows={rows} cols={cols} keyOf={(x) => x.policy} />
                {s.is_cut && <p class="note quiet sim-note">{w("cut", num(s.jobs))}</p>}
            </Panel>
            <Curves r={r} rows={rows} />
            <Sizes rows={rows} />
            <Pools r={r} rows={rows} />
            <p class="small dim sim-method">
                {w("method")} <code title={w("hash")}>{r.hash}</code>
            </p>
        </div>
    );
}

function Going({ s, again }: { s: Simulation; again: () => void }) {
    const done = Math.floor(100 * s.progress);
    const cancel = async () => {
        await call("POST /v1/simulations/{simulation}:cancel", { path: { simulation: s.id } }).catch(() => null);
        again();
    };
    return (
        <section class="panel">
            <div class="blank" aria-live="polite">
                <p class="blank-title row">
                    <SimState of={s.state} />
                </p>
                <div class="sim-progress">
                    <Meter part={s.progress} />
                    <p>{s.state === "waiting" ? w("waits_text") : w("running_text", done)}</p>
                </div>
                <div class="row">
                    <button type="button" class="btn act" onClick={() => void cancel()}>
                        <Icon name="stopped" />
                        {w("cancel")}
                    </button>
                </div>
            </div>
        </section>
    );
}

const forget = (s: Simulation) =>
    ask({
        title: w("forget_title", visible(s.name)),
        act: w("forget_go"),
        isBad: true,
        cli: `argus simulate rm ${shell(s.id)}`,
        body: <p>{w("forget_text")}</p>,
        does: async () => {
            await call("DELETE /v1/simulations/{simulation}", { path: { simulation: s.id } });
            go("/simulator");
        },
        done: w("forgotten"),
    });

export function Result({ id, may }: { id: string; may: boolean }) {
    const [every, setEvery] = useState<number | undefined>(LOOK_AGAIN);
    const asked = useAsk("GET /v1/simulations/{simulation}", { path: { simulation: id } }, { every });
    const state = asked.data?.state;
    useEffect(() => {
        if (state) setEvery(isGoing({ state }) ? LOOK_AGAIN : undefined);
    }, [state]);
    return (
        <>
            <Head
                title={<Text of={asked.data?.name ?? id} />}
                sub={
                    asked.data && (
                        <span class="row nowrap">
                            <SimState of={asked.data.state} />
                            <span class="nowrap">
                                <Text of={asked.data.user} /> · <Time at={asked.data.created_at} />
                            </span>
                        </span>
                    )
                }
                cli={`argus simulate show ${shell(id)}`}
            >
                <a class="btn act" href="/simulator">
                    {w("kept")}
                </a>
                {asked.data && may && (
                    <>
                        <a class="btn act" href={`/simulator?${queryOf(asked.data)}`}>
                            <Icon name="restarting" />
                            {w("again")}
                        </a>
                        <button type="button" class="btn act" onClick={() => forget(asked.data!)}>
                            {w("forget")}
                        </button>
                    </>
                )}
            </Head>
            {asked.why || !asked.data ? (
                <Pending of={asked} lines={8} framed />
            ) : isGoing(asked.data) ? (
                <Going s={asked.data} again={asked.again} />
            ) : asked.data.result ? (
                <Found s={asked.data} r={asked.data.result} />
            ) : (
                <section class="panel">
                    <Blank
                        title={w("no_result")}
                        icon={STATE_ICON[asked.data.state][0]}
                        bad={asked.data.state === "failed"}
                        act={
                            may && (
                                <a class="btn" href={`/simulator?${queryOf(asked.data)}`}>
                                    {w("again")}
                                </a>
                            )
                        }
                    >
                        <p class="said">{visible(asked.data.reason?.text ?? "")}</p>
                        <p class="small dim">
                            <code>{asked.data.reason?.code}</code>
                        </p>
                    </Blank>
                </section>
            )}
        </>
    );
}
