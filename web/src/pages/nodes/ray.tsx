// SPDX-License-Identifier: Apache-2.0
// ray.tsx - what Ray has on these machines: actors, placement groups, jobs of others; and the network between them.
import type { Actor, Foreign, NetworkPair, Node, PlacementGroup } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, visible } from "../../base/say";
import { query, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Dash, Panel, State, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { adoptJob, checkNetwork } from "./deeds";
import { w } from "./words";

const EVERY = { every: 15_000 };

const JobLink = ({ id, hidden }: { id: string | null; hidden?: boolean }) =>
    id ? (
        <a class="link mono" href={`/jobs/${encodeURIComponent(id)}`}>
            {visible(id)}
        </a>
    ) : (
        <span class="dim">{hidden ? w("hidden") : <Dash />}</span>
    );

const NodeLink = ({ name }: { name: string | null }) =>
    name ? (
        <a class="link" href={withQuery("/nodes", { ...Object.fromEntries(query.value), node: name })}>
            <Text of={name} />
        </a>
    ) : (
        <Dash />
    );

/** Words of Ray: ALIVE, PENDING_CREATION, DEAD. */
const RayState = ({ of }: { of: string }) => (
    <span class={/DEAD|FAILED/.test(of) ? "c-bad" : /ALIVE|CREATED|RUNNING/.test(of) ? "" : "mid"}>
        <code>{visible(of)}</code>
    </span>
);

const needs = (r: Record<string, number>) =>
    Object.entries(r)
        .filter(([name]) => !name.includes("node:") && !name.startsWith("argus_node") && !name.includes("_group_"))
        .map(([name, v]) => `${name} ${Number(v.toPrecision(3))}`)
        .join(" · ") || "–";

const ACTORS = (): Col<Actor>[] => [
    {
        key: "class_name",
        title: w("actor"),
        draw: (a) => (
            <>
                <Text of={a.class_name ?? a.actor_id} />
                {a.name && (
                    <span class="dim">
                        {" "}
                        <Text of={a.name} />
                    </span>
                )}
            </>
        ),
        csv: (a) => a.class_name,
    },
    { key: "state", title: t("state"), width: 150, draw: (a) => <RayState of={a.state} />, csv: (a) => a.state },
    {
        key: "job",
        title: t("job"),
        width: 190,
        draw: (a) => <JobLink id={a.job} hidden={a.job_hidden} />,
        csv: (a) => a.job,
    },
    { key: "node", title: w("node"), width: 110, draw: (a) => <NodeLink name={a.node} />, csv: (a) => a.node },
    {
        key: "resources",
        title: t("gpus"),
        width: 150,
        wide: "very",
        draw: (a) => <span class="mid">{needs(a.resources)}</span>,
        csv: (a) => needs(a.resources),
    },
    {
        key: "pid",
        title: w("pid"),
        width: 84,
        num: true,
        wide: true,
        draw: (a) => a.pid || <Dash />,
        csv: (a) => a.pid,
    },
    {
        key: "is_detached",
        title: "",
        width: 92,
        wide: "very",
        draw: (a) => (a.is_detached ? <span class="c-warn">{w("detached")}</span> : ""),
        csv: (a) => a.is_detached,
    },
];

const GROUPS = (): Col<PlacementGroup>[] => [
    {
        key: "placement_group_id",
        title: w("group"),
        draw: (g) => <Text of={g.name || g.placement_group_id} mono={!g.name} />,
        csv: (g) => g.placement_group_id,
    },
    { key: "state", title: t("state"), width: 150, draw: (g) => <RayState of={g.state} />, csv: (g) => g.state },
    {
        key: "job",
        title: t("job"),
        width: 190,
        draw: (g) => <JobLink id={g.job} hidden={g.job_hidden} />,
        csv: (g) => g.job,
    },
    {
        key: "bundles",
        title: w("bundles"),
        draw: (g) => {
            const nodes = [...new Set(g.bundles.map((b) => b.node).filter((n) => n !== null))];
            return (
                <span class="mid">
                    {g.bundles.length} · {nodes.length ? nodes.map((n) => visible(n)).join(", ") : "–"}
                </span>
            );
        },
        csv: (g) => g.bundles.length,
    },
];

const FOREIGN = (cluster: string, projects: string[]): Col<Foreign>[] => [
    { key: "ray_id", title: w("ray_id"), draw: (f) => <Text of={f.ray_id} mono />, csv: (f) => f.ray_id },
    { key: "state", title: t("state"), width: 120, draw: (f) => <RayState of={f.state} />, csv: (f) => f.state },
    { key: "node", title: w("node"), width: 110, draw: (f) => <NodeLink name={f.node} />, csv: (f) => f.node },
    {
        key: "started_at",
        title: t("started_at"),
        width: 110,
        wide: true,
        draw: (f) => <Time at={f.started_at} />,
        csv: (f) => f.started_at,
    },
    {
        key: "owner",
        title: w("owner"),
        width: 170,
        draw: (f) =>
            f.is_adopted ? (
                <span>
                    <Text of={f.owner} />{" "}
                    <span class="dim">
                        · <Text of={f.project} />
                    </span>
                </span>
            ) : (
                <span class="dim">{w("nobody")}</span>
            ),
        csv: (f) => f.owner,
    },
    ...(session.value?.role === "admin"
        ? [
              {
                  key: "deed",
                  title: "",
                  width: 96,
                  wide: true,
                  draw: (f: Foreign) =>
                      f.is_adopted ? null : (
                          <button type="button" class="btn act" onClick={() => adoptJob(cluster, f, projects)}>
                              {w("adopt")}
                          </button>
                      ),
              },
          ]
        : []),
];

export function Actors({ cluster }: { cluster: string }) {
    const asked = useAsk("GET /v1/clusters/{cluster}/actors", { path: { cluster } }, EVERY);
    const rows = asked.data?.actors;
    return (
        <Panel
            bare
            title={w("actors")}
            count={rows?.length}
            end={!!rows?.length && <TableCsv rows={rows} cols={ACTORS()} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={5} />
            ) : rows.length ? (
                <>
                    <Table label={w("actors")} rows={rows} cols={ACTORS()} keyOf={(a) => a.actor_id} />
                    {asked.data?.is_partial && <p class="note-row dim">{w("partial")}</p>}
                </>
            ) : (
                <Blank title={w("no_actors")}>{w("no_actors_text")}</Blank>
            )}
        </Panel>
    );
}

export function Groups({ cluster }: { cluster: string }) {
    const asked = useAsk("GET /v1/clusters/{cluster}/placement_groups", { path: { cluster } }, EVERY);
    const rows = asked.data?.placement_groups;
    return (
        <Panel
            bare
            title={w("groups")}
            count={rows?.length}
            end={!!rows?.length && <TableCsv rows={rows} cols={GROUPS()} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={5} />
            ) : rows.length ? (
                <>
                    <Table label={w("groups")} rows={rows} cols={GROUPS()} keyOf={(g) => g.placement_group_id} />
                    {asked.data?.is_partial && <p class="note-row dim">{w("partial")}</p>}
                </>
            ) : (
                <Blank title={w("no_groups")}>{w("no_actors_text")}</Blank>
            )}
        </Panel>
    );
}

export function ForeignJobs({ cluster }: { cluster: string }) {
    const asked = useAsk("GET /v1/clusters/{cluster}/foreign", { path: { cluster } }, { ...EVERY, topics: ["events"] });
    const projects = useAsk("GET /v1/projects", {});
    const rows = asked.data?.foreign;
    const cols = FOREIGN(cluster, projects.data?.projects.map((p) => p.name) ?? []);
    return (
        <Panel
            bare
            title={w("foreign")}
            count={rows?.length}
            end={!!rows?.length && <TableCsv rows={rows} cols={cols} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={3} />
            ) : rows.length ? (
                <Table label={w("foreign")} rows={rows} cols={cols} keyOf={(f) => f.ray_id} />
            ) : (
                <Blank title={w("no_foreign")}>{w("no_foreign_text")}</Blank>
            )}
        </Panel>
    );
}

export const gbps = (mbps: number | null) => (mbps === null ? "–" : `${num(mbps / 1000, 1)} Gb/s`);

const PAIRS = (): Col<NetworkPair>[] => [
    {
        key: "pair",
        title: w("pair"),
        draw: (p) => (
            <span class="strong">
                <Text of={p.a} /> – <Text of={p.b} />
            </span>
        ),
        csv: (p) => `${p.a} ${p.b}`,
    },
    {
        key: "mbps",
        title: w("speed"),
        width: 120,
        num: true,
        draw: (p) => <span class={p.slow ? "c-slow strong" : ""}>{gbps(p.mbps)}</span>,
        csv: (p) => p.mbps,
    },
    {
        key: "percent",
        title: w("base"),
        width: 150,
        num: true,
        draw: (p) =>
            p.percent === null ? (
                <Dash />
            ) : (
                <span class={p.slow ? "c-slow" : "mid"}>
                    {num(p.percent)}% · {gbps(p.baseline_mbps)}
                </span>
            ),
        csv: (p) => p.baseline_mbps,
    },
    {
        key: "usec",
        title: w("latency"),
        width: 96,
        num: true,
        wide: true,
        draw: (p) => `${num(p.usec)} µs`,
        csv: (p) => p.usec,
    },
    {
        key: "at",
        title: w("measured"),
        width: 120,
        wide: true,
        draw: (p) => <Time at={p.at} as="ago" />,
        csv: (p) => p.at,
    },
    { key: "job", title: t("job"), width: 190, wide: "very", draw: (p) => <JobLink id={p.job} />, csv: (p) => p.job },
];

export function Network({ cluster, nodes, pool }: { cluster: string; nodes: Node[]; pool: string }) {
    const asked = useAsk(
        "GET /v1/clusters/{cluster}/network",
        { path: { cluster } },
        { topics: ["nodes"], every: 60_000 },
    );
    const rows = asked.data?.pairs;
    const may = session.value?.role === "admin";
    const running = asked.data?.checks?.find((c) => c.state === "running");
    const button = may && (
        <button type="button" class="btn act" onClick={() => checkNetwork(nodes, pool)}>
            {w("net_run")}
        </button>
    );
    return (
        <Panel
            bare
            title={w("network")}
            count={rows?.length}
            end={
                <>
                    {running && (
                        <a class="row small" href={`/jobs/${encodeURIComponent(running.job)}`}>
                            <State of="RUNNING" />
                        </a>
                    )}
                    {!!rows?.length && button}
                    {!!rows?.length && <TableCsv rows={rows} cols={PAIRS()} />}
                </>
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={4} />
            ) : rows.length ? (
                <Table label={w("network")} rows={rows} cols={PAIRS()} keyOf={(p) => `${p.a} ${p.b}`} />
            ) : (
                <Blank title={w("no_pairs")} act={button}>
                    {w("no_pairs_text")}
                </Blank>
            )}
            {asked.data?.checks
                ?.flatMap((c) => c.troubles)
                .slice(0, 6)
                .map((x) => (
                    <p class="note-row said">
                        <Icon name="unhealthy" />
                        {visible(x.text)}
                    </p>
                ))}
        </Panel>
    );
}
