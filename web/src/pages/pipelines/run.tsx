// SPDX-License-Identifier: Apache-2.0
// run.tsx - one run of a pipeline, as it goes: its graph, what each step read and left behind, why it is where it is, and
// the runs before and after. ?step= is the step that is looked at.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { PipelineRun, PipelineRunItem, PipelineStep } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useActs } from "../../base/acts";
import { useKeys } from "../../base/keys";
import { figure, gpuHours, num, span, visible } from "../../base/say";
import { go, query, setQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, CopyCsv, Panel, shell, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { cancelRun, hasDeployed, retryRun, rollbackRun } from "./deeds";
import { StepGraph, usesSays } from "./graph";
import { LIVE, pipeHref, runHref, RunTable, stateLook, tookOf } from "./parts";
import { w } from "./words";

const OVER = ["SUCCEEDED", "FAILED", "CANCELLED"];
const textOf = (v: unknown): string =>
    typeof v === "number" ? figure(v) : typeof v === "string" ? visible(v) : visible(JSON.stringify(v) ?? "–");

/** A value as it is: a path, a figure, what is known of a checkpoint. */
function Value({ of: v }: { of: unknown }) {
    if (v === null || v === undefined) return <span class="dim">{w("s_not_known")}</span>;
    return (
        <span class={typeof v === "number" || typeof v === "boolean" ? "strong" : "mono pipe-value"}>{textOf(v)}</span>
    );
}

const JobLink = ({ id }: { id: string }) => (
    <a class="link mono" href={`/jobs/${encodeURIComponent(id)}`}>
        {visible(id)}
    </a>
);

/** A mapping of what there is, mappings in it one level deeper under their keys. */
function flat(of: unknown, under = ""): [string, unknown][] {
    if (!of || typeof of !== "object" || Array.isArray(of)) return under ? [[under, of]] : [];
    return Object.entries(of as Record<string, unknown>).flatMap(([k, v]) =>
        v && typeof v === "object" && !Array.isArray(v) && Object.keys(v).length
            ? flat(v, under ? `${under}.${k}` : k)
            : [[under ? `${under}.${k}` : k, v] as [string, unknown]],
    );
}

function linked(key: string, v: unknown): ComponentChildren {
    if (typeof v !== "string" || !v) return <Value of={v} />;
    if (key === "job") return <JobLink id={v} />;
    if (key === "model")
        return (
            <a class="link mono" href={`/models/${encodeURIComponent(v)}`}>
                {visible(v)}
            </a>
        );
    if (key === "service")
        return (
            <a class="link mono" href={`/services/${encodeURIComponent(v)}`}>
                {visible(v)}
            </a>
        );
    if (key === "dataset")
        return (
            <a class="link mono" href={`/data/${encodeURIComponent(v)}`}>
                {visible(v)}
            </a>
        );
    return <Value of={v} />;
}

function Facts({ title, of, name }: { title: string; of: [string, unknown][]; name: string }) {
    if (!of.length) return null;
    return (
        <section>
            <h2>
                {title}
                <small>
                    <CopyCsv
                        head={["step", "name", "value"]}
                        rows={() => of.map(([k, v]) => [name, k, typeof v === "string" ? v : JSON.stringify(v)])}
                    />
                </small>
            </h2>
            <dl class="kv pipe-kv">
                {of.map(([k, v]) => (
                    <>
                        <dt>
                            <code>{visible(k)}</code>
                        </dt>
                        <dd>{linked(k, v)}</dd>
                    </>
                ))}
            </dl>
        </section>
    );
}

function StepBody({ of: s }: { of: PipelineStep }) {
    const took = tookOf(s);
    return (
        <>
            <section>
                <dl class="kv">
                    <dt>{t("state")}</dt>
                    <dd>
                        <State of={s.state} />
                    </dd>
                    {s.reason && (
                        <>
                            <dt>{t("why")}</dt>
                            <dd class="said">
                                {s.cached && s.earlier ? (
                                    <>
                                        {w("s_cached", visible(s.earlier))} ·{" "}
                                        <a class="link" href={`/pipelines/-/${encodeURIComponent(s.earlier)}`}>
                                            {t("open")}
                                        </a>
                                    </>
                                ) : (
                                    visible(s.reason.text)
                                )}
                            </dd>
                        </>
                    )}
                    {s.job && (
                        <>
                            <dt>{w("s_job")}</dt>
                            <dd>
                                <JobLink id={s.job} />
                            </dd>
                        </>
                    )}
                    {s.started_at && (
                        <>
                            <dt>{w("started")}</dt>
                            <dd>
                                <Time at={s.started_at} />
                                {took !== null && <span class="dim"> · {span(took)}</span>}
                            </dd>
                        </>
                    )}
                    {s.gpu_hours > 0 && (
                        <>
                            <dt>{t("gpu_hours")}</dt>
                            <dd>{gpuHours(s.gpu_hours)}</dd>
                        </>
                    )}
                    {s.tries > 1 && (
                        <>
                            <dt>{w("s_tries")}</dt>
                            <dd>{num(s.tries)}</dd>
                        </>
                    )}
                    {s.again_at && (
                        <>
                            <dt>{w("s_again")}</dt>
                            <dd>
                                <Time at={s.again_at} as="until" />
                            </dd>
                        </>
                    )}
                    {s.if && (
                        <>
                            <dt>{w("s_if")}</dt>
                            <dd>
                                <code>{visible(s.if)}</code> {w("s_is")} <Value of={s.if_value} />
                            </dd>
                        </>
                    )}
                    <dt>{w("s_needs")}</dt>
                    <dd>{s.needs.length ? s.needs.map((n) => visible(n)).join(", ") : w("s_nothing")}</dd>
                </dl>
            </section>
            <Facts title={w("s_reads")} of={Object.entries(s.values ?? {})} name={s.name} />
            <Facts title={w("s_inputs")} of={flat(s.inputs)} name={s.name} />
            <Facts title={w("s_left")} of={flat(s.left)} name={s.name} />
            {s.hash && (
                <section>
                    <p class="small dim">
                        {w("s_hash")} <code class="pipe-value">{visible(s.hash)}</code>
                    </p>
                </section>
            )}
        </>
    );
}

function StepDrawer({ run, name, may }: { run: PipelineRun; name: string; may: boolean }) {
    const items = run.steps.filter((s) => s.step === name || s.name === name);
    const one = items.length === 1 ? items[0]! : null;
    const step = items[0]?.step ?? name;
    const close = () => setQuery({ step: null });
    return (
        <Drawer
            label={visible(name)}
            onClose={close}
            head={
                <>
                    <h2 class="cut">
                        <Text of={name} />
                    </h2>
                    <p class="small mid">{items[0] ? usesSays(items[0].uses) : ""}</p>
                </>
            }
            foot={
                may &&
                items.length > 0 &&
                run.ended_at && (
                    <>
                        <Cli line={`argus pipe retry ${shell(run.id)} --from ${shell(step)}`} />
                        <span class="grow" />
                        <button type="button" class="btn act" onClick={() => void retryRun(run, step)}>
                            <Icon name="restarting" />
                            {w("retry_from", visible(step))}
                        </button>
                    </>
                )
            }
        >
            {!items.length ? (
                <Blank title={t("nothing_matches")} icon="unknown" />
            ) : one ? (
                <>
                    {one.matrix && <Facts title={w("s_matrix")} of={flat(one.matrix)} name={one.name} />}
                    <StepBody of={one} />
                </>
            ) : (
                <section>
                    <h2>{w("s_matrix")}</h2>
                    <table class="mini">
                        <tbody>
                            {items.map((s) => (
                                <tr key={s.name}>
                                    <td>
                                        <a class="link" href={runHref(run, s.name)}>
                                            <Text of={s.name} />
                                        </a>
                                    </td>
                                    <td>
                                        <State of={s.state} />
                                    </td>
                                    <td class="mid">
                                        {flat(s.matrix)
                                            .map(([k, v]) => `${visible(k)} ${textOf(v)}`)
                                            .join(" · ")}
                                    </td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </section>
            )}
        </Drawer>
    );
}

function StepMore({ of: items }: { of: PipelineStep[] }) {
    const s = items[0]!;
    if (items.length > 1) {
        const done = items.filter((i) => OVER.includes(i.state) || i.state === "SKIPPED").length;
        return <>{w("steps_done", done, items.length)}</>;
    }
    if (s.cached && s.earlier) return <>{`= ${visible(s.earlier)}`}</>;
    if (s.reason && s.state !== "SUCCEEDED") return <span class="said">{visible(s.reason.text)}</span>;
    const took = tookOf(s);
    return <>{took === null ? "\u00a0" : span(took)}</>;
}

function History({ run, rows }: { run: PipelineRun; rows: PipelineRunItem[] | undefined }) {
    const all = rows ?? [];
    const at = all.findIndex((r) => r.id === run.id);
    const step = (by: number) => {
        const to = all[at + by];
        if (at >= 0 && to) go(runHref(to, query.value.get("step")));
    };
    useKeys(
        [
            { keys: "[", says: () => w("k_runs"), does: () => step(1) },
            { keys: "]", says: () => w("k_runs"), does: () => step(-1) },
        ],
        [all.map((r) => r.id).join(), at],
    );
    return (
        <Panel bare title={w("history")} count={all.length || undefined}>
            {all.length ? <RunTable rows={all} current={run.id} withPipe /> : <Blank title={w("no_runs")} />}
        </Panel>
    );
}

function RunHead({ run, may }: { run: PipelineRun; may: boolean }) {
    const took = tookOf(run);
    const pipe = { name: run.pipeline, owner: run.owner };
    const params = Object.entries((run.params ?? {}) as Record<string, unknown>);
    const again = pipeHref(pipe, Object.fromEntries(params.map(([k, v]) => [`p.${k}`, String(v)])));
    const live = !run.ended_at;
    useActs(
        [
            may && live && { says: w("cancel"), does: () => cancelRun(run) },
            may && !live && { says: w("retry_go"), does: () => void retryRun(run, null) },
            may && hasDeployed(run) && { says: w("rollback"), does: () => rollbackRun(run) },
        ],
        [run, may],
    );
    return (
        <div class="head pipe-head">
            <div class="grow">
                <div class="row">
                    <h1 class="cut">
                        <Text of={run.id} />
                    </h1>
                    <State of={run.state} />
                </div>
                <div class="small dim row wrap">
                    <a class="link" href={pipeHref(pipe)}>
                        <Text of={run.pipeline} />
                    </a>
                    <span>
                        <Text of={run.user} />
                        {run.by_schedule && ` · ${w("by_schedule")}`}
                        {run.project && ` · ${visible(run.project)}`}
                    </span>
                    <span>
                        <Time at={run.started_at ?? run.created_at} /> · {took === null ? w("waits_turn") : span(took)}
                    </span>
                    <span>{w("steps_done", run.done, run.total)}</span>
                    {run.gpu_hours > 0 && (
                        <span class="pipe-cost">
                            {gpuHours(run.gpu_hours)} {t("gpu_hours")}
                        </span>
                    )}
                </div>
            </div>
            <div class="acts">
                <Cli line={`argus pipe show ${shell(run.id)}`} isPage />
                {may && (
                    <a class="btn act" href={again}>
                        {w("again")}
                    </a>
                )}
                {may && !live && (
                    <button type="button" class="btn act" onClick={() => void retryRun(run, null)}>
                        <Icon name="restarting" />
                        {w("retry")}
                    </button>
                )}
                {may && hasDeployed(run) && (
                    <button type="button" class="btn act" onClick={() => rollbackRun(run)}>
                        {w("rollback")}
                    </button>
                )}
                {may && live && !run.cancelled && (
                    <button type="button" class="btn bad act" onClick={() => cancelRun(run)}>
                        <Icon name="stopped" />
                        {w("cancel")}
                    </button>
                )}
            </div>
        </div>
    );
}

export function RunPage({ id, pipeline }: { id: string; pipeline: string }) {
    const jobs = new Set<string>();
    const about = (x: string) => x === id || jobs.has(x);
    const asked = useAsk("GET /v1/pipeline-runs/{run}", { path: { run: id } }, { ...LIVE, about });
    const run = asked.data;
    for (const s of run?.steps ?? []) if (s.job) jobs.add(s.job);
    const before = useAsk(
        run ? "GET /v1/pipeline-runs" : null,
        { query: { pipeline: run?.pipeline ?? pipeline, owner: run?.owner, limit: 30 } },
        { topics: ["pipelines"] },
    );
    const step = query.value.get("step");
    const me = session.value;
    const may = !!run && me?.role !== "viewer" && (me?.role === "admin" || run.user === me?.user);
    useEffect(() => {
        document.title = `${visible(id)} · Argus`;
    }, [id]);
    if (asked.why || !run)
        return (
            <section class="panel">
                {asked.why?.status === 404 ? (
                    <Blank
                        whole
                        title={w("no_run")}
                        act={
                            <a class="btn" href="/pipelines?view=runs">
                                {w("v_runs")}
                            </a>
                        }
                    >
                        {visible(asked.why.detail)}
                    </Blank>
                ) : (
                    <Pending whole of={asked} lines={6} />
                )}
            </section>
        );
    const params = Object.entries((run.params ?? {}) as Record<string, unknown>);
    return (
        <>
            <RunHead run={run} may={may} />
            <div class="cols">
                <Panel
                    title={w("steps")}
                    count={w("steps_done", run.done, run.total)}
                    end={
                        <CopyCsv
                            head={["step", "state", "job", "cached", "started_at", "ended_at", "reason"]}
                            rows={() =>
                                run.steps.map((s) => [
                                    s.name,
                                    s.state,
                                    s.job,
                                    s.cached ? (s.earlier ?? "yes") : "",
                                    s.started_at,
                                    s.ended_at,
                                    s.reason?.text ?? "",
                                ])
                            }
                        />
                    }
                >
                    <StepGraph
                        items={run.steps}
                        wordOf={(s) => s.state}
                        lookOf={stateLook}
                        more={(items) => <StepMore of={items} />}
                        href={(s) => runHref(run, s)}
                        current={run.steps.find((s) => s.name === step || s.step === step)?.step}
                    />
                </Panel>
                {params.length > 0 && (
                    <Panel title={w("params")}>
                        <dl class="kv">
                            {params.map(([k, v]) => (
                                <>
                                    <dt>
                                        <code>{visible(k)}</code>
                                    </dt>
                                    <dd>
                                        <Value of={v} />
                                    </dd>
                                </>
                            ))}
                        </dl>
                    </Panel>
                )}
                <History run={run} rows={before.data?.runs} />
                <Panel title={w("text")}>
                    <pre class="lib-pre" tabIndex={0}>
                        {visible(run.text)}
                    </pre>
                </Panel>
            </div>
            {step && <StepDrawer run={run} name={step} may={may} />}
        </>
    );
}
