// SPDX-License-Identifier: Apache-2.0
// page.tsx - one job, whole: how far, does it learn, is it well. Sections are one below the other, so that a search in the
// page finds everything; keys 1 to 9 go to them. ?attempt= ?log= ?smooth= are its state.
import { useEffect } from "preact/hooks";
import type { Checkpoint, Job } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useActs } from "../../base/acts";
import { addKeys } from "../../base/keys";
import { lang } from "../../base/prefs";
import { bytes, figure, gpuHours, ms, now, num, shape, span, until, visible } from "../../base/say";
import { packed } from "../../base/anchor";
import { scalar } from "../../base/spectext";
import { go, query, setQuery } from "../../base/url";
import { Blank, Loading, Pending, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { CopyCsv, Dash, Cli, Meter, Panel, Seg, shell, State, Text, Time, Toned } from "../../kit/parts";
import { t } from "../../words/shared";
import { Flags, isOver, jobName, ranFor, TRAINS } from "../jobs/columns";
import { Anatomy } from "./anatomy";
import { AttemptList } from "./attemptlist";
import { Curves } from "./curves";
import { logPlaceOf } from "./evidence";
import { FindingPanel, isWhole, retry } from "./finding";
import { Opinions } from "./opinions";
import { Gpus } from "./gpus";
import { canRest } from "./idle";
import { IdleNote, justify, justifySays } from "./idlenote";
import { Load } from "./loadpanel";
import { TimeLine } from "./line";
import { Log } from "./log";
import { Place } from "./place";
import { hasTimes } from "./recovery";
import { RecoveryPanel } from "./recoverypanel";
import { Samples } from "./samples";
import { StopPlanned } from "./stopplan";
import { exportModel, hasModel, publish, serveStep } from "./publish";
import { Trackers } from "./trackers";
import { VerdictPanel } from "./verdict";
import { w } from "./words";
import "./page.css";

function Fig({ says, of, more, part }: { says: string; of: string; more?: string; part?: number }) {
    return (
        <div class="fig">
            <dt>{says}</dt>
            <dd>
                {of}
                {more && <small>{more}</small>}
                {part !== undefined && <Meter part={part} />}
            </dd>
        </div>
    );
}

function Figures({ job }: { job: Job }) {
    const m = job.metrics;
    const ran = ranFor(job);
    const figs = [];
    if (job.state === "QUEUED") {
        figs.push(<Fig says={w("waits_since")} of={job.queued_at ? span(now.value - ms(job.queued_at)) : "–"} />);
        if (job.position) figs.push(<Fig says={w("position")} of={`#${job.position}`} />);
        if (job.eta) figs.push(<Fig says={t("eta")} of={until(job.eta.p50)} />);
    }
    if (m) {
        const done = m.total_steps ? m.step / m.total_steps : undefined;
        figs.push(
            <Fig
                says={t("step")}
                of={num(m.step)}
                more={m.total_steps ? w("of_n", num(m.total_steps)) : ""}
                part={done}
            />,
        );
    }
    if (ran !== null)
        figs.push(
            <Fig
                says={t("ran")}
                of={span(ran)}
                more={!isOver(job) && m?.eta_s ? w("left", span(m.eta_s * 1000)) : ""}
            />,
        );
    if (m?.reward) figs.push(<Fig says={w("reward")} of={figure(m.reward.value)} />);
    else if (m?.loss) figs.push(<Fig says="Loss" of={figure(m.loss.value)} />);
    if (m?.step_seconds) figs.push(<Fig says={w("per_step")} of={figure(m.step_seconds)} more={w("sec")} />);
    if (m?.tokens_per_s)
        figs.push(
            <Fig says={w("tokens")} of={num(m.tokens_per_s)} more={m.mfu ? `MFU ${Math.round(m.mfu * 100)}%` : ""} />,
        );
    if (job.gpu_util !== null) figs.push(<Fig says={t("util")} of={`${Math.round(job.gpu_util)}%`} />);
    if (job.goodput?.ratio !== null && job.goodput?.ratio !== undefined)
        figs.push(<Fig says={w("goodput")} of={`${Math.round(job.goodput.ratio * 100)}%`} />);
    figs.push(<Fig says={t("gpu_hours")} of={gpuHours(job.gpu_hours)} />);
    return figs.length ? <dl class="panel figs">{figs}</dl> : null;
}

function stop(job: Job, checkpoints: Checkpoint[]) {
    const best = checkpoints.filter((c) => c.state !== "partial" && c.state !== "broken").at(-1);
    const says =
        job.state === "QUEUED"
            ? w("stop_wait")
            : best
              ? w("stop_run", job.gpus, w("at_step", num(best.step)))
              : w("stop_none", job.gpus, num(job.step ?? 0));
    ask({
        title: w("stop_title", jobName(job)),
        isBad: true,
        act: w("stop_go"),
        cli: `argus stop ${shell(job.id)}`,
        body: (
            <>
                <p>{says}</p>
                <StopPlanned id={job.id} />
            </>
        ),
        does: () => call("POST /v1/jobs/{id}:stop", { path: { id: job.id } }),
        done: w("stopping"),
    });
}

const compareHref = (...ids: string[]) => `/compare?jobs=${ids.map(encodeURIComponent).join(",")}`;

function JobHead({ job, checkpoints, may }: { job: Job; checkpoints: Checkpoint[]; may: boolean }) {
    const stops = may && !isOver(job) && job.state !== "STOPPING";
    useActs(
        [
            stops && { says: w("stop_go"), does: () => stop(job, checkpoints) },
            may && isOver(job) && { says: w("retry_go"), does: () => retry(job, false, checkpoints) },
            may && hasModel(job) && { says: w("publish_go"), does: () => publish(job) },
            may && canRest(job) && { says: justifySays(), does: () => justify(job) },
            may && { says: w("edit"), does: () => go(`/submit?from=${encodeURIComponent(job.id)}`) },
        ],
        [job, checkpoints, may],
    );
    return (
        <div class="head job-head">
            <div class="grow">
                <div class="row">
                    <h1 class="cut">
                        <Text of={jobName(job)} />
                    </h1>
                    <State of={job.state} />
                    <Flags of={job} />
                </div>
                <div class="small dim row wrap job-sub">
                    <span class="mono">{visible(job.id)}</span>
                    <span>
                        <Text of={job.user} /> · <Text of={job.project} /> · <Text of={job.workload} /> · {shape(job)}
                        {job.pool && (
                            <>
                                {" "}
                                · <Text of={job.pool} />
                            </>
                        )}
                    </span>
                    {job.nodes.length > 0 && (
                        <span>
                            {job.nodes.map((n, i) => (
                                <>
                                    {i > 0 && ", "}
                                    <a class="link" href={`/nodes?node=${encodeURIComponent(n.name)}`}>
                                        <Text of={n.name} />
                                    </a>
                                </>
                            ))}
                        </span>
                    )}
                    {job.hold_until && (
                        <span>
                            {w("held_until")} <Time at={job.hold_until} as="until" />
                        </span>
                    )}
                    {job.retry_of && (
                        <span>
                            {w("retry_of")}{" "}
                            <a class="link mono" href={`/jobs/${encodeURIComponent(job.retry_of)}`}>
                                {visible(job.retry_of)}
                            </a>{" "}
                            ·{" "}
                            <a class="link" href={compareHref(job.retry_of, job.id)}>
                                {t("compare")}
                            </a>
                        </span>
                    )}
                </div>
            </div>
            <div class="acts">
                <Cli line={`argus status ${shell(job.id)}`} isPage />
                <a
                    class="link act"
                    href={`/v1/jobs/${encodeURIComponent(job.id)}/report?format=html&language=${lang.value}`}
                    target="_blank"
                    rel="noopener"
                >
                    {w("report")}
                </a>
                <a
                    class="link act"
                    href={`/v1/jobs/${encodeURIComponent(job.id)}/report?format=md&language=${lang.value}`}
                    download={`${job.id}.md`}
                    title={w("report_md")}
                >
                    Markdown
                </a>
                <a class="link act" href={`/jobs/${encodeURIComponent(job.id)}/family`}>
                    {w("family")}
                </a>
                {may && (
                    <a class="btn act" href={`/submit?from=${encodeURIComponent(job.id)}`}>
                        {w("edit")}
                    </a>
                )}
                {may && hasModel(job) && (
                    <button type="button" class="btn act" onClick={() => publish(job)}>
                        <Icon name="models" />
                        {w("publish")}
                    </button>
                )}
                {may && isOver(job) && (
                    <button type="button" class="btn act" onClick={() => retry(job, false, checkpoints)}>
                        <Icon name="restarting" />
                        {t("retry")}
                    </button>
                )}
                {stops && (
                    <button type="button" class="btn bad act" onClick={() => stop(job, checkpoints)}>
                        <Icon name="stopped" />
                        {t("stop")}
                    </button>
                )}
            </div>
        </div>
    );
}

/** A checkpoint of verl's as one model: a job of its own, to be looked at before it is submitted. */
function mergeHref(job: Job, c: Checkpoint): string {
    const at = `${job.output_dir}/checkpoints/global_step_${c.step}${job.workload === "sft" ? "" : "/actor"}`;
    let text = `workload: merge\nname: ${scalar(`${jobName(job)} step ${c.step}`)}\nnnodes: 1\nmodel_id: ${scalar(at)}\n`;
    const r = job.resolved_spec;
    for (const [key, value] of [
        ["code", r?.code],
        ["code_path", r?.code ? undefined : r?.code_path],
        ["project", job.project],
    ])
        if (value) text += `${key}: ${scalar(value)}\n`;
    return `/submit#spec=${packed(text)}`;
}

function resume(job: Job, step: number) {
    ask({
        title: w("resume_title", num(step)),
        act: w("resume_go", num(step)),
        cli: `argus retry ${shell(job.id)} --from ${step}`,
        body: <p>{w("resume_text", visible(jobName(job)))}</p>,
        does: async () => {
            const made = await call("POST /v1/jobs/{id}:retry", {
                path: { id: job.id },
                body: { from: String(step) },
            });
            if ("id" in made && typeof made.id === "string") go(`/jobs/${encodeURIComponent(made.id)}`);
        },
        done: t("retry"),
    });
}

/** Kept by hand, or left to the retention again. */
function pin(job: Job, c: Checkpoint) {
    const path = { id: job.id, step: String(c.step) };
    ask({
        title: w(c.pinned ? "unpin_title" : "pin_title", num(c.step)),
        act: w(c.pinned ? "unpin" : "pin"),
        cli: `argus ckpt ${c.pinned ? "unpin" : "pin"} ${shell(job.id)} ${c.step}`,
        body: <p>{w(c.pinned ? "unpin_text" : "pin_text")}</p>,
        does: () =>
            c.pinned
                ? call("POST /v1/jobs/{id}/checkpoints/{step}:unpin", { path })
                : call("POST /v1/jobs/{id}/checkpoints/{step}:pin", { path }),
        done: w(c.pinned ? "unpin_done" : "pin_done", num(c.step)),
    });
}

function CheckpointActs({ job, of: c }: { job: Job; of: Checkpoint }) {
    const pins = (
        <button type="button" class="link" onClick={() => pin(job, c)}>
            {w(c.pinned ? "unpin" : "pin")}
        </button>
    );
    if (!isWhole(c)) return c.pinned ? pins : null;
    return (
        <span class="row act">
            {isOver(job) && (
                <button type="button" class="link" onClick={() => resume(job, c.step)}>
                    {w("resume")}
                </button>
            )}
            {(c.pinned || c.state === "verified") && pins}
            {TRAINS.includes(job.workload) && (
                <button type="button" class="link" onClick={() => exportModel(job, c.step)}>
                    {w("export")}
                </button>
            )}
            {TRAINS.includes(job.workload) && (
                <button type="button" class="link" onClick={() => serveStep(job, c.step)}>
                    {w("serve")}
                </button>
            )}
            {TRAINS.includes(job.workload) && (
                <a class="link" href={mergeHref(job, c)} title={w("merge_title")}>
                    {w("merge")}
                </a>
            )}
        </span>
    );
}

/** What validation told at a checkpoint's step, one metric a line. */
const toldAt = (c: Checkpoint) =>
    Object.entries(c.values ?? {})
        .map(([name, v]) => `${visible(name)} ${figure(v)}`)
        .join("\n");

/** The job of `eval_on_save` that judges it, and what became of that. */
function Judged({ by: c }: { by: Checkpoint }) {
    if (!c.eval) return null;
    const tone = c.eval === "done" ? "ok" : c.eval === "submitted" ? "run" : "bad";
    const says = w(`eval_${c.eval}`);
    return c.eval_job ? (
        <a class={`c-${tone}`} href={`/jobs/${encodeURIComponent(c.eval_job)}`} title={visible(c.eval_job)}>
            {says}
        </a>
    ) : (
        <span class={`c-${tone}`}>{says}</span>
    );
}

interface Saved {
    job: Job;
    rows: Checkpoint[];
    total: number;
    /** Whose values they are, and the step with the best one. */
    metric: string | null;
    best: number | null;
    may: boolean;
}

const SAVED_LOOKS = {
    verified: { tone: "ok", icon: "succeeded" },
    broken: { tone: "bad", icon: "failed" },
    other: { tone: "quiet", icon: "queued" },
} as const;
const savedLook = (state: string) => SAVED_LOOKS[state === "verified" || state === "broken" ? state : "other"];

function Checkpoints({ job, rows, total, metric, best, may }: Saved) {
    const hasValues = rows.some((c) => c.value !== null);
    const isJudged = rows.some((c) => c.eval);
    return (
        <Panel
            id="checkpoints"
            bare
            title={w("s_ckpt")}
            count={rows.length ? `${rows.length} · ${bytes(total)}` : undefined}
            end={
                rows.length > 0 && (
                    <CopyCsv
                        head={["step", "state", "bytes", "at", metric ?? "value"]}
                        rows={() => rows.map((c) => [c.step, c.state, c.bytes, c.at, c.value])}
                    />
                )
            }
        >
            {rows.length ? (
                <div class="tbl-wrap">
                    <table class="tbl auto">
                        <thead>
                            <tr>
                                <th>{t("step")}</th>
                                <th>{t("state")}</th>
                                {hasValues && (
                                    <th class="num" title={visible(metric ?? "")}>
                                        {metric ? visible(metric) : w("c_value")}
                                    </th>
                                )}
                                {isJudged && <th>{w("c_eval")}</th>}
                                <th>{w("c_saved")}</th>
                                <th class="num">{w("c_size")}</th>
                                {may && <th class="act">{w("c_acts")}</th>}
                            </tr>
                        </thead>
                        <tbody>
                            {[...rows].reverse().map((c) => (
                                <tr key={c.step}>
                                    <td class="strong">{num(c.step)}</td>
                                    <td>
                                        <Toned {...savedLook(c.state)} title={c.why ?? ""}>
                                            {w(c.state)}
                                        </Toned>{" "}
                                        {c.pinned && <span class="flag">{w("pinned")}</span>}
                                        {c.kept && c.kept !== "pinned" && (
                                            <span class="small dim nowrap">{w(`kept_${c.kept}`)}</span>
                                        )}
                                    </td>
                                    {hasValues && (
                                        <td class="num" title={toldAt(c)}>
                                            {c.step === best && <span class="flag ok best">{w("c_best")}</span>}{" "}
                                            {figure(c.value)}
                                        </td>
                                    )}
                                    {isJudged && (
                                        <td>
                                            <Judged by={c} />
                                        </td>
                                    )}
                                    <td>
                                        <Time at={c.at} as="ago" />
                                    </td>
                                    <td class="num">{bytes(c.bytes)}</td>
                                    {may && (
                                        <td class="act">
                                            <CheckpointActs job={job} of={c} />
                                        </td>
                                    )}
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : (
                <Blank title={w("no_ckpt")} />
            )}
        </Panel>
    );
}

function pretty(text: string): string {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

function Spec({ job }: { job: Job }) {
    const asGiven = query.value.get("spec") === "given";
    const text = asGiven || !job.resolved_spec ? pretty(job.spec) : JSON.stringify(job.resolved_spec, null, 2);
    return (
        <Panel
            id="spec"
            title={w("s_spec")}
            bare
            end={
                job.resolved_spec && (
                    <Seg
                        label={w("s_spec")}
                        value={asGiven ? "given" : ""}
                        onChange={(v) => setQuery({ spec: v })}
                        of={[
                            { value: "", says: w("resolved") },
                            { value: "given", says: w("as_given") },
                        ]}
                    />
                )
            }
        >
            <pre class="spec" tabIndex={0}>
                {visible(text)}
            </pre>
        </Panel>
    );
}

function Events({ id }: { id: string }) {
    const asked = useAsk(
        "GET /v1/jobs/{id}/events",
        { path: { id }, query: { newest_first: true, limit: 50 } },
        { topics: ["jobs"], about: (x) => x === id },
    );
    return (
        <Panel id="events" title={w("s_events")} bare>
            {asked.why || !asked.data ? (
                <Pending of={asked} lines={3} />
            ) : (
                <ol class="events">
                    {asked.data.events.map((e) => (
                        <li key={e.seq}>
                            <span class="dim">
                                <Time at={e.at} />
                            </span>
                            <code>{visible(e.kind)}</code>
                            <span class="ev-text">{visible(e.text)}</span>
                            <span class="dim">
                                <Text of={e.actor} />
                            </span>
                        </li>
                    ))}
                </ol>
            )}
        </Panel>
    );
}

function Sections({ ids }: { ids: [string, string][] }) {
    const jump = (id: string) => document.getElementById(id)?.scrollIntoView({ block: "start" });
    useEffect(
        () =>
            addKeys(
                ids.slice(0, 9).map(([id, says], i) => ({
                    keys: String(i + 1),
                    says: () => `${w("k_section")}: ${says}`,
                    does: () => jump(id),
                })),
            ),
        [ids.map(([id]) => id).join()],
    );
    return (
        <nav class="jump views" aria-label={t("job")}>
            {ids.map(([id, says]) => (
                <a href={`#${id}`}>{says}</a>
            ))}
        </nav>
    );
}

function Attempts({ job, attempt }: { job: Job; attempt: number }) {
    const all = job.attempts.map((a) => a.k);
    const step = (by: number) => {
        const k = all[all.indexOf(attempt) + by];
        if (k !== undefined) setQuery({ attempt: String(k), line: null });
    };
    useEffect(
        () =>
            all.length < 2
                ? undefined
                : addKeys([
                      { keys: "[", says: () => w("k_attempt"), does: () => step(-1) },
                      { keys: "]", says: () => w("k_attempt"), does: () => step(1) },
                  ]),
        [all.join(), attempt],
    );
    if (job.attempts.length < 2) return null;
    return (
        <Seg
            label={t("attempt")}
            value={String(attempt)}
            onChange={(v) => setQuery({ attempt: v })}
            of={job.attempts.map((a) => ({ value: String(a.k), says: w("attempt_n", a.k) }))}
        />
    );
}

/** They come without a word, the last ones shortly after the end. 0: no more will come. */
function looksAtCheckpoints(job: Job | undefined): number {
    if (!job || !isOver(job)) return 15_000;
    return job.ended_at && Date.now() - ms(job.ended_at) < 120_000 ? 3_000 : 0;
}

/** ppo and grpo keep what the model writes, unless their spec says not to. */
const hasSamples = (job: Job) => ["ppo", "grpo"].includes(job.workload) && job.resolved_spec?.samples !== false;

export default function JobPage({ names }: { names: Record<string, string> }) {
    const id = names.id!;
    const about = (x: string) => x === id;
    const asked = useAsk("GET /v1/jobs/{id}", { path: { id } }, { topics: ["jobs"], about });
    const job = asked.data;
    const found = useAsk(
        job && (isOver(job) || job.attempt > 1 || job.flags.length > 0) ? "GET /v1/jobs/{id}/findings" : null,
        { path: { id } },
        { topics: ["jobs"], about },
    );
    const saved = useAsk(
        job ? "GET /v1/jobs/{id}/checkpoints" : null,
        { path: { id } },
        { topics: ["jobs"], about, every: looksAtCheckpoints(job) },
    );
    useEffect(() => {
        if (job) document.title = `${jobName(job)} · Argus`;
    }, [job?.name]);
    if (asked.why && !job)
        return (
            <section class="panel">
                {(asked.why as Refusal).status === 404 ? (
                    <Blank whole title={w("no_job")}>
                        {visible(asked.why.detail)}
                    </Blank>
                ) : (
                    <Refused whole why={asked.why} again={asked.again} />
                )}
            </section>
        );
    if (!job)
        return (
            <section class="panel">
                <Loading rows={8} />
            </section>
        );
    const may = session.value?.role !== "viewer";
    const attempt = Number(query.value.get("attempt") ?? job.attempt) || job.attempt || 1;
    const findings = (found.data?.findings ?? []).filter((f) => f.class !== "none"); // a hang that is over
    const finding = findings.find((f) => f.attempt === attempt) ?? (isOver(job) ? findings.at(-1) : undefined);
    const firstQuote = finding?.attempt === attempt ? finding.evidence[0] : undefined;
    const firstError = firstQuote ? logPlaceOf(firstQuote) : null;
    const checkpoints = saved.data?.checkpoints ?? [];
    const sections: [string, string][] = [
        ...(finding ? ([["finding", w("s_finding")]] as [string, string][]) : []),
        ...(job.verdict || job.slow_rank ? ([["verdict", w("s_verdict")]] as [string, string][]) : []),
        ["curves", w("s_curves")],
        ...(hasSamples(job) ? ([["samples", w("s_samples")]] as [string, string][]) : []),
        ["gpus", w("s_gpus")],
        ...(job.state === "RUNNING" ? ([["load", w("s_load")]] as [string, string][]) : []),
        ["log", w("s_log")],
        ["checkpoints", w("s_ckpt")],
        ["place", w("s_place")],
        ...(job.attempts.length ? ([["attempts", w("s_attempts")]] as [string, string][]) : []),
        ...(hasTimes(job.recovery) ? ([["recovery", w("s_recovery")]] as [string, string][]) : []),
        ...(job.trackers?.length ? ([["trackers", w("s_trackers")]] as [string, string][]) : []),
        ["spec", w("s_spec")],
        ["events", w("s_events")],
    ];
    return (
        <>
            <JobHead job={job} checkpoints={checkpoints} may={may} />
            <div class="cols job-cols">
                <Figures job={job} />
                {job.reason.text && !finding && (
                    <p
                        class={`note ${job.state === "FAILED" ? "bad" : job.flags.includes("HUNG") ? "warn" : "quiet"} said`}
                    >
                        {visible(job.reason.text)}
                    </p>
                )}
                <IdleNote job={job} may={may} />
                <section class="panel">
                    <div class="body line-body">
                        <TimeLine job={job} checkpoints={checkpoints} />
                        <Attempts job={job} attempt={attempt} />
                    </div>
                </section>
                <Sections ids={sections} />
                {finding && <FindingPanel job={job} of={finding} checkpoints={checkpoints} may={may} />}
                <Opinions of={found.data?.opinions ?? []} />
                <VerdictPanel job={job} />
                <Curves job={job} checkpoints={checkpoints} findings={findings} />
                {hasSamples(job) && <Samples job={job} />}
                <Anatomy job={job} />
                <Gpus job={job} may={may} />
                {job.state === "RUNNING" && <Load job={job} />}
                {job.attempt > 0 ? (
                    <Log
                        id={id}
                        attempt={attempt}
                        live={!isOver(job) && attempt === job.attempt}
                        firstError={firstError}
                    />
                ) : (
                    <Panel id="log" title={w("s_log")} bare>
                        <Blank title={w("log_empty")}>{job.state === "QUEUED" ? <Dash /> : null}</Blank>
                    </Panel>
                )}
                <div class="cols gk">
                    <Checkpoints
                        job={job}
                        rows={checkpoints}
                        total={saved.data?.bytes ?? 0}
                        metric={saved.data?.metric ?? null}
                        best={saved.data?.best ?? null}
                        may={may}
                    />
                    <Place job={job} />
                </div>
                <AttemptList job={job} shown={attempt} />
                <RecoveryPanel job={job} />
                <Trackers job={job} />
                <Spec job={job} />
                <Events id={id} />
            </div>
        </>
    );
}
