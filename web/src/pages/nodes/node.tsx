// SPDX-License-Identifier: Apache-2.0
// node.tsx - the drawer of one machine: what is wrong and what to do, its health, each GPU, what the check saw.
import { useState } from "preact/hooks";
import type { JobItem, Node as NodeRow, NodeFigures } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { ago, bytes, clock, now, num, span, visible } from "../../base/say";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, CopyCsv, Dash, shell, State, Text, Time, toast } from "../../kit/parts";
import { t } from "../../words/shared";
import { jobName } from "../jobs/columns";
import { drainNode, removeNode } from "./deeds";
import { gbps } from "./ray";
import { healthCells, healthNow, isHidden, slotsOf } from "./slots";
import { w } from "./words";

const CELLS = 48;
const DAY = 864e5;

export const shownState = (n: NodeRow) => (n.health === "unhealthy" ? "unhealthy" : n.state);

function Reason({ node }: { node: NodeRow }) {
    if (!node.reason.text) return null;
    const bad = shownState(node) === "unhealthy" || node.state === "offline";
    return (
        <section>
            <div class={`note ${bad ? "bad" : node.is_head ? "quiet" : "warn"}`}>
                <Icon name={bad ? "unhealthy" : node.state === "draining" ? "draining" : "flag"} />
                <div>
                    <p class="said">{visible(node.reason.text)}</p>
                    {node.reason.fix && (
                        <p class="mid small">
                            {w("fix")}: {visible(node.reason.fix)}
                        </p>
                    )}
                </div>
            </div>
        </section>
    );
}

/** The steps of a machine that joins, each as it happens. */
function Steps({ node }: { node: NodeRow }) {
    const looked = !!node.checked_at || !!node.facts?.at;
    const ray = !!node.ray_node_id;
    const takes = node.state === "online";
    const steps = [
        { says: w("j_registered"), done: true },
        { says: w("j_probed"), done: looked || ray },
        { says: w("j_ray"), done: ray },
        { says: w("j_takes"), done: takes },
    ];
    const at = steps.findIndex((s) => !s.done);
    return (
        <section>
            <h2>{w("joining")}</h2>
            <ol class="steps" aria-live="polite">
                {steps.map((s, i) => (
                    <li class={s.done ? "c-ok" : i === at ? (node.reason.fix ? "c-bad" : "c-run") : "dim"}>
                        <Icon
                            name={
                                s.done ? "succeeded" : i === at ? (node.reason.fix ? "failed" : "starting") : "pending"
                            }
                        />
                        <span>{s.says}</span>
                    </li>
                ))}
            </ol>
        </section>
    );
}

function Health({ node }: { node: NodeRow }) {
    const asked = useAsk(
        "GET /v1/events",
        { query: { object: `node/${node.name}`, newest_first: true, limit: 100 } },
        { topics: ["events", "nodes"] },
    );
    const events = asked.data?.events ?? [];
    const to = now.value;
    const cells = asked.data ? healthCells(events, healthNow(node), to - DAY, to, CELLS) : [];
    const count = (k: string) => cells.filter((c) => c === k).length;
    const recent = events.filter((e) => e.kind !== "node_checked").slice(0, 5);
    return (
        <>
            <section>
                <h2>
                    {w("health")}
                    <small class="row">
                        {node.checked_at && w("checked", ago(node.checked_at))}
                        <CopyCsv
                            head={["from", "health"]}
                            rows={() => cells.map((c, i) => [new Date(to - DAY + (i * DAY) / CELLS).toISOString(), c])}
                        />
                    </small>
                </h2>
                <div class="hist" role="img" aria-label={w("health_says", count("ok"), count("warn"), count("bad"))}>
                    {cells.map((c) => (
                        <i class={c} />
                    ))}
                </div>
                <div class="axis12">
                    <i>{clock(to - DAY)}</i>
                    <i>{clock(to)}</i>
                </div>
            </section>
            <section>
                <h2>{w("events")}</h2>
                {recent.length ? (
                    <ul class="happened">
                        {recent.map((e) => (
                            <li>
                                <Time at={e.at} />
                                <span>
                                    <code>{visible(e.kind)}</code> <span class="mid">{visible(e.text)}</span>
                                </span>
                            </li>
                        ))}
                    </ul>
                ) : (
                    <p class="dim">{w("no_events")}</p>
                )}
                <a class="link small" href={`/events?object=${encodeURIComponent(`node/${node.name}`)}`}>
                    {t("all")}
                </a>
            </section>
        </>
    );
}

const newest = (f: NodeFigures | undefined, gpu: number) =>
    f?.series.find((s) => s.gpu === gpu)?.mean.findLast((v) => v !== null) ?? null;

function Gpus({ node, jobs }: { node: NodeRow; jobs: Map<string, JobItem> }) {
    const path = { name: node.name };
    const ask = (figure: string) => ({ path, query: { figure, since: "15m", step: "1m" } });
    const every = { every: 15_000 };
    const util = useAsk("GET /v1/nodes/{name}/figures", ask("gpu_util_ratio"), every).data;
    const used = useAsk("GET /v1/nodes/{name}/figures", ask("gpu_mem_used_bytes"), every).data;
    const heat = useAsk("GET /v1/nodes/{name}/figures", ask("gpu_temperature_celsius"), every).data;
    const slots = slotsOf(node, jobs);
    if (!slots.length) return null;
    const rows = slots.map((s) => ({ s, util: newest(util, s.i), used: newest(used, s.i), heat: newest(heat, s.i) }));
    return (
        <section>
            <h2>
                {w("gpus")}
                <small>
                    <CopyCsv
                        head={["gpu", "state", "job", "util", "mem_used_bytes", "temperature_celsius"]}
                        rows={() => rows.map((r) => [r.s.i, r.s.kind, r.s.jobs.join(" "), r.util, r.used, r.heat])}
                    />
                </small>
            </h2>
            <table class="mini slots">
                <thead>
                    <tr>
                        <th scope="col" class="num">
                            #
                        </th>
                        <th scope="col">
                            <span class="sr">{t("state")}</span>
                        </th>
                        <th scope="col">{t("job")}</th>
                        <th scope="col" class="num">
                            {t("util")}
                        </th>
                        <th scope="col" class="num">
                            GiB
                        </th>
                        <th scope="col" class="num">
                            °C
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {rows.map(({ s, ...f }) => (
                        <tr>
                            <td class="num dim">{s.i}</td>
                            <td>
                                <span class={`slot ${s.kind}`} />
                            </td>
                            <td class="cut">
                                {s.jobs.length ? (
                                    s.jobs.map((id, i) => (
                                        <>
                                            {i > 0 && ", "}
                                            {!isHidden(id) ? (
                                                <a class="link" href={`/jobs/${encodeURIComponent(id)}`}>
                                                    <Text of={jobs.has(id) ? jobName(jobs.get(id)!) : id} />
                                                </a>
                                            ) : (
                                                <span class="dim">{w("hidden")}</span>
                                            )}
                                        </>
                                    ))
                                ) : (
                                    <span class="dim">{slotWord(s.kind)}</span>
                                )}
                            </td>
                            <td class="num">{f.util === null ? <Dash /> : `${Math.round(f.util * 100)}%`}</td>
                            <td class="num mid">{f.used === null ? <Dash /> : num(f.used / 2 ** 30, 1)}</td>
                            <td class="num mid">{f.heat === null ? <Dash /> : num(f.heat)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
            {util?.why_not && !rows.some((r) => r.util !== null) && (
                <p class="small dim said n-wrap">{visible(util.why_not)}</p>
            )}
        </section>
    );
}

export const slotWord = (k: string) => (k === "idle" || k === "lost" ? w(k) : t(`s_${k}` as "s_free"));

function Facts({ node }: { node: NodeRow }) {
    const f = node.facts;
    if (!f?.at) return null;
    const pair = (...of: (string | undefined)[]) =>
        of
            .filter(Boolean)
            .map((x) => visible(x!))
            .join(" · ");
    const rows: [string, string][] = [
        ["Ray", pair(f.ray)],
        ["Python · torch", pair(f.python, f.torch)],
        ["verl · vLLM · SGLang", pair(f.verl, f.vllm, f.sglang)],
        ["CUDA · driver", pair(f.cuda, f.driver)],
        ["CPU", f.cpus ? String(f.cpus) : ""],
        [w("memory"), f.memory_bytes ? bytes(f.memory_bytes) : ""],
        ["/dev/shm", f.shm_free_bytes ? bytes(f.shm_free_bytes) : ""],
        [w("disk"), f.disk_free_bytes ? bytes(f.disk_free_bytes) : ""],
        [
            w("link"),
            pair(
                f.interface,
                f.interface_mbps ? gbps(f.interface_mbps) : "",
                f.rdma_gbps ? `RDMA ${f.rdma_gbps} Gb/s` : "",
            ),
        ],
        [w("skew"), Math.abs(f.skew_usec) > 1e6 ? span(Math.abs(f.skew_usec) / 1000) : ""],
    ];
    return (
        <section>
            <h2>{w("facts")}</h2>
            <dl class="kv small">
                {rows
                    .filter(([, v]) => v)
                    .map(([k, v]) => (
                        <>
                            <dt>{k}</dt>
                            <dd>{v}</dd>
                        </>
                    ))}
            </dl>
        </section>
    );
}

function Acts({ node, jobs, again }: { node: NodeRow; jobs: Map<string, JobItem>; again: () => void }) {
    const [busy, setBusy] = useState(false);
    const path = { name: node.name };
    const act = async (does: () => Promise<unknown>, done: string) => {
        setBusy(true);
        try {
            await does();
            toast(done);
        } catch (e) {
            toast(e instanceof Refusal ? visible(e.detail) : String(e));
        }
        setBusy(false);
        again();
    };
    const away = node.want === "drained" || node.state === "draining";
    return (
        <>
            <button
                type="button"
                class="btn"
                disabled={busy}
                onClick={() =>
                    void act(() => call("POST /v1/nodes/{name}:check", { path, body: {} }), w("check_done", node.name))
                }
            >
                {busy ? w("checking") : w("check")}
            </button>
            {away ? (
                <button
                    type="button"
                    class="btn"
                    onClick={() =>
                        void act(() => call("POST /v1/nodes/{name}:undrain", { path }), w("undrain_done", node.name))
                    }
                >
                    {w("undrain")}
                </button>
            ) : (
                <button type="button" class="btn" onClick={() => drainNode(node, jobs)}>
                    {w("drain")}
                </button>
            )}
            <span class="grow" />
            <button type="button" class="btn bad" onClick={() => removeNode(node, jobs)}>
                {w("remove")}
            </button>
        </>
    );
}

export function NodeDrawer(p: { name: string; jobs: Map<string, JobItem>; close: () => void }) {
    const asked = useAsk(
        "GET /v1/nodes/{name}",
        { path: { name: p.name } },
        { topics: ["nodes", "jobs"], every: 15_000 },
    );
    const n = asked.data;
    const type = n?.gpu_type ?? n?.facts?.gpu_type;
    const may = session.value?.role === "admin";
    return (
        <Drawer
            label={p.name}
            onClose={p.close}
            foot={may && n?.registered && !n.is_head && <Acts node={n} jobs={p.jobs} again={asked.again} />}
            head={
                <>
                    <div class="row">
                        {n && <State of={shownState(n)} />}
                        {n?.since && (
                            <span class="dim nowrap">
                                {w("since")} <Time at={n.since} />
                            </span>
                        )}
                        <Cli line={`argus node show ${shell(p.name)}`} />
                    </div>
                    <h2 class="cut">
                        <Text of={p.name} />
                    </h2>
                    {n && (
                        <div class="small dim row wrap">
                            <span class="mono">{visible(n.ip)}</span>
                            {n.pool && (
                                <span>
                                    · <Text of={n.pool} />
                                </span>
                            )}
                            {n.gpus.total > 0 && (
                                <span>
                                    · {n.gpus.total} {type ? `× ${visible(type)}` : "GPU"}
                                </span>
                            )}
                        </div>
                    )}
                </>
            }
        >
            {asked.why ? (
                asked.why.status === 404 ? (
                    <Blank title={w("gone")} icon="unknown" />
                ) : (
                    <Refused why={asked.why} again={asked.again} />
                )
            ) : !n ? (
                <Loading rows={5} />
            ) : (
                <>
                    <Reason node={n} />
                    {n.registered && n.state === "pending" && <Steps node={n} />}
                    {!!n.findings?.length && (
                        <section>
                            <h2>{w("findings")}</h2>
                            <ul class="happened">
                                {n.findings.map((f) => (
                                    <li>
                                        <code>{visible(f.code)}</code>
                                        <span class="said">
                                            {visible(f.text)}
                                            {f.fix && <span class="mid"> {visible(f.fix)}</span>}
                                        </span>
                                    </li>
                                ))}
                            </ul>
                        </section>
                    )}
                    <Gpus node={n} jobs={p.jobs} />
                    <Health node={n} />
                    {!!n.network_peers?.length && (
                        <section>
                            <h2>{w("peers")}</h2>
                            <table class="mini">
                                <tbody>
                                    {n.network_peers.map((x) => (
                                        <tr>
                                            <td>
                                                <Text of={x.node} />
                                            </td>
                                            <td class={`num ${x.slow ? "c-slow" : ""}`}>{gbps(x.mbps)}</td>
                                            <td class="num dim">
                                                {x.percent === null ? <Dash /> : w("baseline", num(x.percent))}
                                            </td>
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                        </section>
                    )}
                    <Facts node={n} />
                    {!n.registered && (
                        <section>
                            <p class="small dim">{w("attached")}</p>
                        </section>
                    )}
                </>
            )}
        </Drawer>
    );
}
