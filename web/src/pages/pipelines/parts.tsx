// SPDX-License-Identifier: Apache-2.0
// parts.tsx - what the pages of pipelines share: addresses, states as looks, a table of runs, the plan of a run.
import type { PipelinePlan, PipelinePlanStep, PipelineRunItem } from "../../made/api";
import { gpuHours, ms, now, span, visible, wholeSeconds } from "../../base/say";
import { withQuery } from "../../base/url";
import { shell, State, Text, Time, toneOf } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { StepGraph, type Look } from "./graph";
import { w } from "./words";

export const LIVE = { topics: ["pipelines" as const, "jobs" as const] };
export const runHref = (r: { pipeline: string; id: string }, step?: string | null) =>
    withQuery(`/pipelines/${encodeURIComponent(r.pipeline)}/${encodeURIComponent(r.id)}`, { step });
/** With its owner: two people may have pipelines of one name, and an address is handed on. */
export const pipeHref = (p: { name: string; owner: string }, more: Record<string, string> = {}) =>
    withQuery(`/pipelines/${encodeURIComponent(p.name)}`, { user: p.owner, ...more });

const ICONS = {
    WAITING: "queued",
    RUNNING: "running",
    SUCCEEDED: "succeeded",
    FAILED: "failed",
    SKIPPED: "skipped",
    CANCELLED: "stopped",
} as const;
export function stateLook(state: string): Look {
    const known = state in ICONS ? (state as keyof typeof ICONS) : null;
    return { icon: known ? ICONS[known] : "unknown", tone: toneOf(state), says: known ? t(known) : visible(state) };
}
const WOULD: Record<PipelinePlanStep["would"], Omit<Look, "says">> = {
    run: { icon: "running", tone: "run" },
    reuse: { icon: "copy", tone: "ok" },
    keep: { icon: "succeeded", tone: "ok" },
    pass: { icon: "succeeded", tone: "ok" },
    skip: { icon: "skipped", tone: "quiet" },
    fail: { icon: "failed", tone: "bad" },
    depends: { icon: "unknown", tone: "warn" },
};
const wouldLook = (would: string): Look => {
    const word = would as PipelinePlanStep["would"];
    return { ...WOULD[word], says: w(`w_${word}`) };
};

/** How long it ran, or has been running. */
export function tookOf(r: { started_at: string | null; ended_at: string | null }): number | null {
    return r.started_at ? (r.ended_at ? ms(r.ended_at) : now.value) - ms(r.started_at) : null;
}

export function runCols(withPipe: boolean): Col<PipelineRunItem>[] {
    return [
        {
            key: "id",
            title: w("run"),
            draw: (r) => (
                <a class="name" href={runHref(r)}>
                    <Text of={r.id} />
                </a>
            ),
            csv: (r) => r.id,
        },
        { key: "state", title: t("state"), width: 120, draw: (r) => <State of={r.state} />, csv: (r) => r.state },
        {
            key: "done",
            title: w("steps"),
            width: 80,
            num: true,
            draw: (r) => `${r.done} / ${r.total}`,
            csv: (r) => r.done,
        },
        ...(withPipe
            ? [
                  {
                      key: "user",
                      title: w("by"),
                      width: 130,
                      wide: true,
                      draw: (r: PipelineRunItem) => (
                          <>
                              <Text of={r.user} />
                              {r.by_schedule && <span class="dim"> · {w("by_schedule")}</span>}
                          </>
                      ),
                      csv: (r: PipelineRunItem) => r.user,
                  },
              ]
            : []),
        {
            key: "started_at",
            title: w("started"),
            width: 100,
            wide: true,
            draw: (r) => <Time at={r.started_at ?? r.created_at} />,
            csv: (r) => r.started_at,
        },
        {
            key: "took",
            title: w("took"),
            width: 90,
            num: true,
            wide: true,
            draw: (r) => {
                const took = tookOf(r);
                return took === null ? w("waits_turn") : span(took);
            },
            csv: (r) => wholeSeconds(tookOf(r)),
        },
        {
            key: "gpu_hours",
            title: t("gpu_hours"),
            width: 90,
            num: true,
            wide: true,
            draw: (r) => (r.gpu_hours > 0 ? gpuHours(r.gpu_hours) : "–"),
            csv: (r) => r.gpu_hours,
        },
    ];
}

export const RunTable = ({
    rows,
    current,
    withPipe,
}: {
    rows: PipelineRunItem[];
    current?: string;
    withPipe: boolean;
}) => <Table label={w("v_runs")} rows={rows} cols={runCols(withPipe)} keyOf={(r) => r.id} current={current} />;

/** "-p lr=1e-5 -p name=x" */
export const paramWords = (params: Record<string, unknown>, option = "-p") =>
    Object.entries(params)
        .map(([name, v]) => ` ${option} ${shell(`${name}=${String(v)}`)}`)
        .join("");

/** What would run, what not, and what is other than before. */
export function Plan({ of }: { of: PipelinePlan }) {
    const fails = of.steps.find((s) => s.would === "fail");
    const why = of.steps.filter((s) => s.reason || s.changes.length || s.paths.length);
    return (
        <>
            <p class={`strong ${fails ? "c-bad" : ""}`}>
                {fails
                    ? w("would_fail", visible(fails.name))
                    : of.to_run
                      ? w("would_n", of.to_run, of.steps.length)
                      : w("would_none")}
            </p>
            <StepGraph items={of.steps} wordOf={(s) => s.would} lookOf={wouldLook} />
            <ul class="pipe-why">
                {why.map((s) => {
                    const look = wouldLook(s.would);
                    return (
                        <li key={s.name}>
                            <span class="row wrap">
                                <code class="strong">{visible(s.name)}</code>
                                <span class={`c-${look.tone}`}>{look.says}</span>
                                {s.reason && <span class="mid said">{visible(s.reason.text)}</span>}
                                {s.would !== "run" && s.job && (
                                    <a class="link mono" href={`/jobs/${encodeURIComponent(s.job)}`}>
                                        {visible(s.job)}
                                    </a>
                                )}
                            </span>
                            {s.changes.length > 0 && (
                                <dl class="patch">
                                    {s.changes.map((c) => (
                                        <div>
                                            <dt class="cut" title={visible(c.key ?? "")}>
                                                {visible(c.key ?? "")}
                                            </dt>
                                            <dd>
                                                {c.from !== null && c.from !== undefined && (
                                                    <del>{visible(c.from)}</del>
                                                )}{" "}
                                                → <ins>{c.to === null || c.to === undefined ? "–" : visible(c.to)}</ins>
                                            </dd>
                                        </div>
                                    ))}
                                </dl>
                            )}
                            {s.paths.map((x) => (
                                <div key={x.path} class="small dim said">
                                    {visible(x.path)} · {w(`path_${x.state}`, x.files)}
                                </div>
                            ))}
                        </li>
                    );
                })}
            </ul>
        </>
    );
}
