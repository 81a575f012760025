// SPDX-License-Identifier: Apache-2.0
// panels.tsx - what a service did: curves of five minutes, its last requests, what its leases cost, its events.
import type { JobItem, Service, ServiceRequest, ServiceSpan } from "../../made/api";
import { useAsk } from "../../api/use";
import { bytes, figure, gpuHours, ms, span, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Chart } from "../../kit/chart";
import { Cli, CopyCsv, Dash, Panel, Seg, shell, State, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { tookSays } from "./parts";
import { w } from "./words";

const PER_MINUTE = 6; // spans of ten seconds
const CURVES = [
    { key: "requests", title: "rate_title", of: (s: ServiceSpan) => s.requests * PER_MINUTE, color: "--c1" },
    { key: "p95_ms", title: "p95_title", of: (s: ServiceSpan) => s.p95_ms, color: "--c2" },
    { key: "errors", title: "errors_title", of: (s: ServiceSpan) => s.errors * PER_MINUTE, color: "--c4" },
    { key: "tokens_out", title: "tokens_title", of: (s: ServiceSpan) => s.tokens_out / 10, color: "--c3" },
] as const;

export function Traffic({ of: s }: { of: Service }) {
    const any = s.spans.some((x) => x.requests || x.refused);
    const x = s.spans.map((p) => ms(p.at) / 1000);
    return (
        <Panel
            bare
            title={w("traffic")}
            end={
                any && (
                    <CopyCsv
                        head={["at", "requests", "errors", "refused", "tokens_in", "tokens_out", "p50_ms", "p95_ms"]}
                        rows={() =>
                            s.spans.map((p) => [
                                p.at,
                                p.requests,
                                p.errors,
                                p.refused,
                                p.tokens_in,
                                p.tokens_out,
                                p.p50_ms,
                                p.p95_ms,
                            ])
                        }
                    />
                )
            }
        >
            {any ? (
                <div class="charts svc-charts">
                    {CURVES.map((c) => {
                        const y = s.spans.map(c.of);
                        const most = Math.max(0, ...y.map((v) => v ?? 0));
                        return (
                            <Chart
                                key={c.key}
                                title={w(c.title)}
                                keyName={c.key}
                                isTime
                                height={112}
                                lines={[{ label: c.key, x, y, color: c.color }]}
                                says={w("chart_says", w(c.title), figure(y.at(-1) ?? null), figure(most))}
                            />
                        );
                    })}
                </div>
            ) : (
                <Blank title={w("no_traffic")}>{w("no_traffic_text")}</Blank>
            )}
        </Panel>
    );
}

// ---- the last requests ----

function Status({ of: status }: { of: number }) {
    if (!status) return <span class="c-bad">{w("st_none")}</span>;
    if (status === 499) return <span class="c-warn">{w("st_left")}</span>;
    return <span class={status >= 500 ? "c-bad" : status >= 400 ? "c-warn" : undefined}>{status}</span>;
}

/* As `argus service requests` has it: prompt and answer, "~" where both are a guess. */
function tokensSay(r: ServiceRequest) {
    if (r.tokens_out < 0) return "";
    return r.tokens_in < 0 ? `${r.tokens_out}` : `${r.tokens_estimated ? "~" : ""}${r.tokens_in}+${r.tokens_out}`;
}

const callCols = (): Col<ServiceRequest>[] => [
    { key: "at", title: w("at"), width: 84, draw: (r) => <Time at={r.at} />, csv: (r) => r.at },
    { key: "user", title: t("user"), width: 96, wide: true, draw: (r) => <Text of={r.user} />, csv: (r) => r.user },
    {
        key: "key",
        title: w("by_key"),
        width: 104,
        wide: "very",
        draw: (r) => (r.key ? <code>{visible(r.key)}</code> : <Dash />),
        csv: (r) => r.key,
    },
    {
        key: "path",
        title: w("request"),
        draw: (r) => (
            <code class="cut svc-path" title={visible(`${r.method} ${r.path}`)}>
                {visible(`${r.method} ${r.path}`)}
            </code>
        ),
        csv: (r) => `${r.method} ${r.path}`,
    },
    { key: "status", title: w("status"), width: 84, draw: (r) => <Status of={r.status} />, csv: (r) => r.status },
    { key: "took_ms", title: w("took"), width: 76, num: true, draw: (r) => tookSays(r.took_ms), csv: (r) => r.took_ms },
    { key: "tokens", title: w("counted"), width: 96, num: true, wide: "very", draw: tokensSay, csv: tokensSay },
    {
        key: "bytes_out",
        title: w("answer"),
        width: 84,
        num: true,
        wide: "very",
        draw: (r) => bytes(r.bytes_out),
        csv: (r) => r.bytes_out,
    },
];

export function Calls({ name }: { name: string }) {
    const failed = query.value.get("calls") === "failed";
    const asked = useAsk(
        "GET /v1/services/{name}:requests",
        { path: { name }, query: { failed: failed || undefined } },
        { every: 5000 },
    );
    const rows = asked.data?.requests;
    return (
        <Panel
            bare
            title={w("calls")}
            count={rows?.length || undefined}
            end={
                <>
                    <Seg
                        label={w("calls")}
                        value={failed ? "failed" : ""}
                        onChange={(v) => setQuery({ calls: v })}
                        of={[
                            { value: "", says: w("calls_all") },
                            { value: "failed", says: w("calls_failed") },
                        ]}
                    />
                    {!!rows?.length && <TableCsv rows={rows} cols={callCols()} />}
                </>
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={4} />
            ) : rows.length ? (
                <div class="svc-calls">
                    <Table
                        label={w("calls")}
                        rows={rows}
                        cols={callCols()}
                        keyOf={(r) => `${r.at}/${r.user}/${r.took_ms}/${r.bytes_out}`}
                    />
                </div>
            ) : (
                <Blank title={failed ? w("no_failed") : w("no_calls")} />
            )}
            <p class="listfoot">
                {w("calls_text")}
                <span class="grow" />
                <Cli line={`argus service requests ${shell(name)}${failed ? " --failed" : ""}`} />
            </p>
        </Panel>
    );
}

// ---- what it costs ----

const LEASES = 200;
const leaseCols = (): Col<JobItem>[] => [
    {
        key: "id",
        title: t("job"),
        draw: (j) => (
            <a class="name" href={`/jobs/${encodeURIComponent(j.id)}`}>
                <Text of={j.name ?? j.id} />
            </a>
        ),
        csv: (j) => j.id,
    },
    { key: "state", title: t("state"), width: 104, draw: (j) => <State of={j.state} />, csv: (j) => j.state },
    {
        key: "ran",
        title: t("ran"),
        width: 90,
        num: true,
        wide: true,
        draw: (j) => (j.started_at ? span((j.ended_at ? ms(j.ended_at) : Date.now()) - ms(j.started_at)) : <Dash />),
        csv: (j) => j.started_at,
    },
    {
        key: "gpu_hours",
        title: t("gpu_hours"),
        width: 90,
        num: true,
        draw: (j) => gpuHours(j.gpu_hours),
        csv: (j) => j.gpu_hours,
    },
];

/** Is this job the lease of a replica of the service? "sums-v2", "sums-v2-r3" */
export const isLeaseOf = (service: string, job: string | null) =>
    !!job?.startsWith(`${service}-v`) && /^\d+(-r\d+)?$/.test(job.slice(service.length + 2));

export function Cost({ of: s }: { of: Service }) {
    const q = `${s.name}-v`;
    const asked = useAsk(
        "GET /v1/jobs",
        { query: { workload: "serve", q, limit: LEASES } },
        { topics: ["services"], about: (id) => id === s.name, every: 60_000 },
    );
    const rows = asked.data?.jobs.filter((j) => isLeaseOf(s.name, j.name));
    return (
        <Panel
            bare
            title={w("cost")}
            end={
                <>
                    {!!rows?.length && <TableCsv rows={rows} cols={leaseCols()} />}
                    <a class="link small" href={withQuery("/jobs", { workload: "serve", q })}>
                        {t("all")}
                    </a>
                </>
            }
        >
            <dl class="figs svc-cost">
                <div class="fig">
                    <dt>{w("cost_now")}</dt>
                    <dd>{figure(s.gpus)}</dd>
                </div>
                <div class="fig">
                    <dt>{w("cost_sum")}</dt>
                    <dd>{gpuHours(s.gpu_hours)}</dd>
                </div>
            </dl>
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : rows.length ? (
                <div class="svc-leases">
                    <Table label={w("leases")} rows={rows} cols={leaseCols()} keyOf={(j) => j.id} />
                </div>
            ) : (
                <p class="dim note-row">{w("no_leases")}</p>
            )}
            {asked.data?.next_cursor && <p class="listfoot">{w("older")}</p>}
        </Panel>
    );
}

// ---- what happened ----

export function Happened({ name }: { name: string }) {
    const object = `service/${name}`;
    const asked = useAsk(
        "GET /v1/events",
        { query: { object, newest_first: true, limit: 20 } },
        { topics: ["events"] },
    );
    const rows = asked.data?.events;
    return (
        <Panel
            title={w("happened")}
            end={
                <>
                    <Cli line={`argus events --object ${shell(object)}`} />
                    <a class="link small" href={withQuery("/events", { object })}>
                        {t("all")}
                    </a>
                </>
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={3} />
            ) : rows.length ? (
                <ul class="happened">
                    {rows.map((e) => (
                        <li key={e.seq}>
                            <Time at={e.at} />
                            <span>
                                <code>{visible(e.kind)}</code>{" "}
                                {(e.from || e.to) && (
                                    <span class="strong">
                                        {[e.from, e.to]
                                            .filter(Boolean)
                                            .map((x) => visible(x!))
                                            .join(" → ")}{" "}
                                    </span>
                                )}
                                <span class="mid">{visible(e.text)}</span> <span class="dim">{visible(e.actor)}</span>
                            </span>
                        </li>
                    ))}
                </ul>
            ) : (
                <p class="dim">{w("no_events")}</p>
            )}
        </Panel>
    );
}
