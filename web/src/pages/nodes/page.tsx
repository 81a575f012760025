// SPDX-License-Identifier: Apache-2.0
// page.tsx - the machines: every GPU drawn, who holds it, what is out of order. ?node=NAME opens its drawer, ?view= the
// table, Ray's actors and placement groups, the network, foreign jobs.
import { useMemo, useState } from "preact/hooks";
import type { JobItem, Node, Pool } from "../../made/api";
import { session } from "../../api/client";
import { MOST, RUNS } from "../queue/line";
import { useAsk } from "../../api/use";
import { useDo } from "../../base/acts";
import { useRowKeys } from "../../base/keys";
import { bytes, visible } from "../../base/say";
import { go, query, setQuery, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { List, ListCsv, type Column } from "../../kit/list";
import { CopyCsv, Dash, Head, Panel, Seg, shell, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { jobName } from "../jobs/columns";
import { addNode } from "./deeds";
import { NodeDrawer, shownState, slotWord } from "./node";
import { Actors, ForeignJobs, Groups, Network } from "./ray";
import { bracketsOf, isHidden, slotsOf, SLOT_KINDS, type Bracket, type Slot } from "./slots";
import { w } from "./words";
import "./page.css";

type Jobs = Map<string, JobItem>;
const VIEWS = ["grid", "table", "actors", "groups", "network", "foreign"] as const;
type View = (typeof VIEWS)[number];

const CLI: Record<View, (cluster: string) => string> = {
    grid: () => "argus node ls",
    table: () => "argus node ls",
    actors: (c) => `argus cluster actors ${shell(c)}`,
    groups: (c) => `argus cluster groups ${shell(c)}`,
    network: (c) => `argus cluster network ${shell(c)}`,
    foreign: (c) => `argus cluster foreign ${shell(c)}`,
};

const hrefOf = (name: string) => withQuery("/nodes", { ...Object.fromEntries(query.value), node: name });
const takes = (n: Node) => n.state === "online" && n.health === "ok" && !n.is_head;

const ICON = { lost: "unknown", held: "held", idle: "idle" } as const;

function Label({
    b,
    jobs,
    hot,
    onHot,
}: {
    b: Bracket;
    jobs: Jobs;
    hot: string | null;
    onHot: (id: string | null) => void;
}) {
    const place = { gridColumn: `${b.from + 1} / span ${b.n}` };
    if (b.kind === "foreign")
        return (
            <span class="lease foreign" style={place}>
                <span>{t("s_foreign")}</span>
            </span>
        );
    const id = b.jobs[0]!;
    const j = jobs.get(id);
    const tone = b.kind === "used" ? "run" : b.kind;
    const icon = j?.flags.includes("HUNG") ? "hung" : ICON[b.kind as keyof typeof ICON];
    const more = b.jobs.length > 1 ? ` +${b.jobs.length - 1}` : "";
    if (isHidden(id))
        return (
            <span class={`lease ${tone}`} style={place} title={w("hidden")}>
                <span>{w("hidden")}</span>
            </span>
        );
    return (
        <a
            class={`lease ${tone} ${hot === id ? "hot" : ""}`}
            style={place}
            href={`/jobs/${encodeURIComponent(id)}`}
            title={visible(j ? `${jobName(j)} · ${j.user}` : id)}
            onMouseEnter={() => onHot(id)}
            onMouseLeave={() => onHot(null)}
            onFocus={() => onHot(id)}
            onBlur={() => onHot(null)}
        >
            {icon && <Icon name={icon} />}
            <span>
                <Text of={j ? jobName(j) : id} />
                {more}
            </span>
            {j && b.n > 2 && (
                <span class="dim">
                    <Text of={j.user} />
                </span>
            )}
        </a>
    );
}

function Slots({
    node,
    slots,
    jobs,
    hot,
    onHot,
}: {
    node: Node;
    slots: Slot[];
    jobs: Jobs;
    hot: string | null;
    onHot: (id: string | null) => void;
}) {
    if (!slots.length) return <div class="leases none dim" />;
    const columns = { gridTemplateColumns: `repeat(${Math.max(8, slots.length)}, minmax(0, 1fr))` };
    const says = slots.map(slotSays).join(", ");
    return (
        <div class="leases" style={columns}>
            {bracketsOf(slots).map((b) => (
                <Label b={b} jobs={jobs} hot={hot} onHot={onHot} />
            ))}
            {slots.map((s) => {
                const util = s.kind === "used" ? (s.now?.util ?? null) : null;
                const level = util === null ? "" : util < 0.6 ? "level low" : "level";
                return (
                    <span
                        class={`slot ${level || s.kind} ${hot && s.jobs.includes(hot) ? "hot" : ""}`}
                        style={{
                            gridColumn: s.i + 1,
                            ...(util !== null && { "--u": String(Math.round(util * 100)) }),
                        }}
                        title={slotSays(s)}
                    >
                        {util !== null && <b>{Math.round(util * 100)}</b>}
                    </span>
                );
            })}
            <span class="sr">{`${visible(node.name)}: ${says}`}</span>
        </div>
    );
}

/** "GPU 3 · Working · 87% · 61 / 80 GiB": what is not told is left out. */
function slotSays(s: Slot): string {
    const told = s.now;
    return [
        `GPU ${s.i}`,
        slotWord(s.kind),
        told && told.util !== null && `${Math.round(told.util * 100)}%`,
        told?.mem_total_bytes && `${bytes(told.mem_used_bytes ?? 0)} / ${bytes(told.mem_total_bytes)}`,
        told?.temperature_celsius && `${Math.round(told.temperature_celsius)} °C`,
        told?.xid && `Xid ${told.xid}`,
    ]
        .filter(Boolean)
        .join(" · ");
}

function Right({ node, slots }: { node: Node; slots: Slot[] }) {
    const free = slots.filter((s) => s.kind === "free").length;
    return (
        <div class="n-right">
            <State of={shownState(node)} />
            <div class="small dim said n-why" title={visible(node.reason.text)}>
                {node.drain ? (
                    node.drain.deadline ? (
                        <>
                            {w("draining_until")} <Time at={node.drain.deadline} />
                        </>
                    ) : (
                        w("draining_wait")
                    )
                ) : node.reason.text ? (
                    visible(node.reason.text)
                ) : free ? (
                    w("free_n", free)
                ) : (
                    slots.length > 0 && w("full")
                )}
            </div>
        </div>
    );
}

function Group(p: {
    label: string | null;
    pool: Pool | undefined;
    nodes: Node[];
    jobs: Jobs;
    chosen: string | null;
    hot: string | null;
    onHot: (id: string | null) => void;
}) {
    const pool = p.pool;
    return (
        <Panel
            bare
            class="n-pool"
            title={p.label ? <Text of={p.label} /> : w("no_label")}
            count={pool?.type && visible(pool.type)}
            end={
                pool && (
                    <span class="n-sum small mid">
                        <span>
                            {t("s_free")} <b>{pool.gpus.free}</b>
                        </span>
                        <span class="wide-only">{w("fits", pool.largest_gang)}</span>
                        {pool.next_free && (
                            <span class="wide-only">
                                {w("next_free")}{" "}
                                <b>
                                    <Time at={pool.next_free} />
                                </b>
                            </span>
                        )}
                        <span>
                            {w("waiting")} <b>{pool.queued}</b>
                        </span>
                    </span>
                )
            }
        >
            <ul class="n-list">
                {p.nodes.map((n) => {
                    const slots = slotsOf(n, p.jobs);
                    return (
                        <li
                            key={n.name}
                            class={`n-row ${p.chosen === n.name ? "is-chosen" : ""}`}
                            onClick={(e) => (e.target as Element).closest("a, button") || go(hrefOf(n.name))}
                        >
                            <div class="n-name">
                                <a
                                    class="name cut"
                                    href={hrefOf(n.name)}
                                    aria-current={p.chosen === n.name ? "true" : undefined}
                                >
                                    <Text of={n.name} />
                                </a>
                                <div class="small dim cut n-ip">
                                    {n.is_head ? "head · " : ""}
                                    <Text of={n.ip} />
                                </div>
                                <span class="n-narrow">
                                    <State of={shownState(n)} />
                                </span>
                            </div>
                            <Slots node={n} slots={slots} jobs={p.jobs} hot={p.hot} onHot={p.onHot} />
                            <Right node={n} slots={slots} />
                        </li>
                    );
                })}
            </ul>
        </Panel>
    );
}

function Grid({ nodes, pools, jobs, chosen }: { nodes: Node[]; pools: Pool[]; jobs: Jobs; chosen: string | null }) {
    const [hot, setHot] = useState<string | null>(null);
    useRowKeys(".n-row", () => t("k_rows"));
    const groups = new Map<string | null, Node[]>();
    for (const n of nodes) {
        const label = n.pool || null;
        groups.set(label, [...(groups.get(label) ?? []), n]);
    }
    const all = nodes.flatMap((n) => slotsOf(n, jobs).map((s) => ({ n, s })));
    const count = (k: string) => all.filter((x) => x.s.kind === k).length;
    const whole = pools.find((p) => p.pool === null);
    return (
        <>
            <div class="row wrap n-legend">
                <div class="legend">
                    {SLOT_KINDS.filter((k) => count(k) || k === "used" || k === "free").map((k) => (
                        <span>
                            <i class={`slot ${k}`} />
                            {slotWord(k)} <b>{count(k)}</b>
                        </span>
                    ))}
                </div>
                <span class="grow" />
                <CopyCsv
                    head={["node", "pool", "gpu", "state", "jobs", "util", "mem_used_bytes", "mem_total_bytes"]}
                    rows={() =>
                        all.map(({ n, s }) => [
                            n.name,
                            n.pool,
                            s.i,
                            s.kind,
                            s.jobs.join(" "),
                            s.now?.util,
                            s.now?.mem_used_bytes,
                            s.now?.mem_total_bytes,
                        ])
                    }
                />
            </div>
            <div class="cols">
                {[...groups].map(([label, own]) => (
                    <Group
                        key={label}
                        label={label}
                        pool={label ? pools.find((p) => p.pool === label) : groups.size === 1 ? whole : undefined}
                        nodes={own}
                        jobs={jobs}
                        chosen={chosen}
                        hot={hot}
                        onHot={setHot}
                    />
                ))}
            </div>
        </>
    );
}

const nodeColumns = (): Column<Node>[] => [
    {
        key: "state",
        title: t("state"),
        width: 112,
        rank: 0,
        draw: (n) => <State of={shownState(n)} />,
        sort: shownState,
        csv: (n) => n.state,
    },
    {
        key: "name",
        title: w("node"),
        width: 0,
        rank: 0,
        draw: (n) => (
            <a class="name cut" href={hrefOf(n.name)} tabIndex={-1}>
                <Text of={n.name} />
            </a>
        ),
        sort: (n) => n.name,
        csv: (n) => n.name,
    },
    {
        key: "pool",
        title: t("pool"),
        width: 110,
        rank: 4,
        draw: (n) => <Text of={n.pool} />,
        sort: (n) => n.pool,
        csv: (n) => n.pool,
    },
    {
        key: "total",
        title: t("gpus"),
        width: 72,
        rank: 1,
        num: true,
        draw: (n) => n.gpus.total,
        sort: (n) => n.gpus.total,
        csv: (n) => n.gpus.total,
    },
    {
        key: "used",
        title: t("s_used"),
        width: 80,
        rank: 3,
        num: true,
        draw: (n) => n.gpus.used,
        sort: (n) => n.gpus.used,
        csv: (n) => n.gpus.used,
    },
    {
        key: "free",
        title: t("s_free"),
        width: 72,
        rank: 2,
        num: true,
        draw: (n) => n.gpus.free,
        sort: (n) => n.gpus.free,
        csv: (n) => n.gpus.free,
    },
    {
        key: "foreign",
        title: t("s_foreign"),
        width: 84,
        rank: 8,
        num: true,
        draw: (n) => n.gpus.foreign ?? <Dash />,
        sort: (n) => n.gpus.foreign ?? null,
        csv: (n) => n.gpus.foreign,
    },
    {
        key: "jobs",
        title: t("jobs"),
        width: 72,
        rank: 6,
        num: true,
        draw: (n) => n.jobs.length + n.jobs_hidden,
        sort: (n) => n.jobs.length + n.jobs_hidden,
        csv: (n) => n.jobs.join(" "),
    },
    {
        key: "ip",
        title: "IP",
        width: 130,
        rank: 7,
        draw: (n) => <Text of={n.ip} mono />,
        sort: (n) => n.ip,
        csv: (n) => n.ip,
    },
    {
        key: "type",
        title: w("a_type"),
        width: 150,
        rank: 10,
        draw: (n) => <Text of={n.gpu_type} />,
        sort: (n) => n.gpu_type ?? null,
        csv: (n) => n.gpu_type,
    },
    {
        key: "driver",
        title: "driver",
        width: 110,
        rank: 11,
        draw: (n) => <Text of={n.facts?.driver} mono />,
        sort: (n) => n.facts?.driver ?? null,
        csv: (n) => n.facts?.driver,
    },
    {
        key: "torch",
        title: "torch",
        width: 110,
        rank: 12,
        draw: (n) => <Text of={n.facts?.torch} mono />,
        sort: (n) => n.facts?.torch ?? null,
        csv: (n) => n.facts?.torch,
    },
    {
        key: "reason",
        title: t("why"),
        width: 240,
        rank: 5,
        draw: (n) => <span class="mid said">{visible(n.reason.text)}</span>,
        csv: (n) => n.reason.text,
    },
];

function NodeTable({ nodes, chosen }: { nodes: Node[]; chosen: string | null }) {
    const columns = useMemo(nodeColumns, [document.documentElement.lang]);
    const sort = query.value.get("sort");
    return (
        <>
            <div class="row n-legend">
                <span class="grow" />
                <ListCsv rows={nodes} columns={columns} />
            </div>
            <List
                label={t("nodes")}
                rows={nodes}
                columns={columns}
                keyOf={(n) => n.name}
                nameOf={(n) => n.name}
                href={(n) => hrefOf(n.name)}
                sort={sort}
                onSort={(s) => setQuery({ sort: s })}
                current={chosen}
                card={(n) => (
                    <>
                        <span class="row">
                            <State of={shownState(n)} />
                            <span class="end dim">
                                {n.gpus.used} / {n.gpus.total}
                            </span>
                        </span>
                        <span class="name cut">
                            <Text of={n.name} />
                        </span>
                        <span class="small dim cut">{visible(n.reason.text) || visible(n.ip)}</span>
                    </>
                )}
            />
        </>
    );
}

export default function Nodes() {
    const q = query.value;
    const view = (VIEWS as readonly string[]).includes(q.get("view") ?? "") ? (q.get("view") as View) : "grid";
    const chosen = q.get("node");
    const pool = q.get("pool") ?? "";
    const asked = useAsk("GET /v1/nodes", {}, { topics: ["nodes", "jobs", "pools"] });
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools", "jobs"] });
    const live = useAsk("GET /v1/jobs", { query: { state: RUNS, all: true, limit: MOST } }, { topics: ["jobs"] });
    const jobs = useMemo(() => new Map((live.data?.jobs ?? []).map((j) => [j.id, j])), [live.data]);
    const every = asked.data?.nodes;
    const nodes = useMemo(() => (every ?? []).filter((n) => !pool || n.labels.includes(pool)), [every, pool]);
    const cluster = every?.[0]?.cluster ?? "default";
    const named = pools.data?.pools.filter((p) => p.pool !== null) ?? [];
    const may = session.value?.role === "admin";
    const workers = nodes.filter((n) => !n.is_head);
    useDo({ add: may && addNode });
    return (
        <>
            <Head
                title={t("nodes")}
                sub={every && w("sub", workers.filter(takes).length, workers.length)}
                cli={chosen ? undefined : CLI[view](cluster)}
            >
                {may && (
                    <button type="button" class="btn act" onClick={addNode}>
                        <Icon name="plus" />
                        {w("add")}
                    </button>
                )}
            </Head>
            <div class="filters bar-of n-views">
                <Seg
                    label={w("view")}
                    value={view}
                    onChange={(v) => setQuery({ view: v === "grid" ? null : v, sort: null })}
                    of={VIEWS.map((v) => ({ value: v, says: w(v) }))}
                />
                {named.length > 1 && (
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
            </div>
            {asked.data?.stale && (
                <p class="note warn n-stale">
                    <Icon name="unknown" />
                    <span>
                        {w("ray_away")} {asked.data.reason && <span class="said">{visible(asked.data.reason)}</span>}
                    </span>
                </p>
            )}
            {view === "actors" ? (
                <Actors cluster={cluster} />
            ) : view === "groups" ? (
                <Groups cluster={cluster} />
            ) : view === "network" ? (
                <Network cluster={cluster} nodes={nodes} pool={pool} />
            ) : view === "foreign" ? (
                <ForeignJobs cluster={cluster} />
            ) : asked.why || !every ? (
                <Pending of={asked} lines={8} framed />
            ) : !workers.length ? (
                <section class="panel">
                    <Blank
                        title={w("empty")}
                        act={
                            may && (
                                <button type="button" class="btn main" onClick={addNode}>
                                    {w("add")}
                                </button>
                            )
                        }
                    >
                        {w("empty_text")}
                    </Blank>
                </section>
            ) : view === "table" ? (
                <NodeTable nodes={nodes} chosen={chosen} />
            ) : (
                <Grid nodes={nodes} pools={pools.data?.pools ?? []} jobs={jobs} chosen={chosen} />
            )}
            {chosen && <NodeDrawer name={chosen} key={chosen} jobs={jobs} close={() => setQuery({ node: null })} />}
        </>
    );
}
