// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what is done to pipelines and runs: stored, removed, scheduled, run again, cancelled.
import { effect, signal, untracked } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Pipeline, PipelinePlan, PipelineRun } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { visible } from "../../base/say";
import { go } from "../../base/url";
import type { Spot } from "../../kit/editor";
import { Field, Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { Yaml } from "../../kit/yaml";
import { paramWords, pipeHref, Plan } from "./parts";
import { w } from "./words";

const FIRST = `name: sft-to-model
description: train, check, merge, publish
params:
  model: {required: true, description: a registered model or a path}
  data: {required: true, description: a registered data set's file or a path}
steps:
  train:
    with:
      preset: sft-0.5b
      model_id: "\${{ params.model }}"
      train_file: "\${{ params.data }}"
      val_file: "\${{ params.data }}"
  good:
    uses: check
    with: {that: "\${{ steps.train.metrics['train/loss'] <= 2 }}", else: the loss is too large}
  merge:
    needs: [good]
    with: {preset: merge, checkpoint: "\${{ steps.train.checkpoint.best_path }}"}
  publish:
    uses: publish
    with: {name: my-sft, source: "\${{ steps.merge.dir }}/output/model"}
`;

const nameOf = (text: string) => /^name:[ \t]*["']?([\w.-]+)/m.exec(text)?.[1] ?? "pipeline";

const spotsOf = (why: Refusal | null): Spot[] =>
    (why?.problem?.problems ?? []).map((x) => ({
        line: x.line,
        column: x.column,
        isError: x.level === "error",
        says: visible(x.detail),
    }));

/** Its text, with what is wrong at its lines. */
export function PipeText(p: { text: string; onChange: (text: string) => void; why: Refusal | null }) {
    const problems = p.why?.problem?.problems ?? [];
    return (
        <>
            <div class="lib-editor">
                <Yaml text={p.text} label={w("text")} spots={spotsOf(p.why)} onChange={p.onChange} />
            </div>
            {p.why && (
                <ul class="note bad pipe-problems" role="alert">
                    {problems.length ? (
                        problems.map((x) => (
                            <li class="said">
                                {x.line > 0 && (
                                    <code>
                                        {x.line}:{x.column}{" "}
                                    </code>
                                )}
                                {visible(x.detail)}
                                {x.hint && <span class="mid"> {visible(x.hint)}</span>}
                            </li>
                        ))
                    ) : (
                        <li class="said">{visible(p.why.detail)}</li>
                    )}
                </ul>
            )}
        </>
    );
}

export const store = (text: string, project?: string) =>
    call("PUT /v1/pipelines/{name}", { path: { name: nameOf(text) }, query: { project }, raw: text });

export function addPipeline() {
    const text = signal(FIRST);
    const why = signal<Refusal | null>(null);
    ask({
        title: w("add_title"),
        act: w("save"),
        cli: "argus pipe add FILE",
        body: (
            <>
                <p>{w("add_text")}</p>
                <Editing text={text} why={why} />
            </>
        ),
        does: async () => {
            try {
                const made = await store(text.value);
                go(pipeHref(made));
            } catch (e) {
                if (e instanceof Refusal) why.value = e;
                throw e;
            }
        },
        done: w("saved"),
    });
}

function Editing(p: { text: { value: string }; why: { value: Refusal | null } }) {
    const [text, setText] = useState(p.text.value);
    return (
        <PipeText
            text={text}
            why={p.why.value}
            onChange={(to) => {
                p.text.value = to;
                setText(to);
            }}
        />
    );
}

export const whose = (p: { owner: string }) => (p.owner === session.value?.user ? {} : { user: p.owner });
export const whoseWords = (p: { owner: string }) => ("user" in whose(p) ? ` --user ${shell(p.owner)}` : "");

export function removePipeline(p: Pipeline) {
    ask({
        title: w("rm_title", visible(p.name)),
        isBad: true,
        act: w("rm_go"),
        cli: `argus pipe rm ${shell(p.name)}${whoseWords(p)}`,
        body: <p>{w("rm_text")}</p>,
        does: async () => {
            await call("DELETE /v1/pipelines/{name}", { path: { name: p.name }, query: whose(p) });
            go("/pipelines");
        },
        done: w("rm_done"),
    });
}

const zones = () => ["UTC", Intl.DateTimeFormat().resolvedOptions().timeZone, "Asia/Shanghai", "Europe/Berlin"];

export function schedulePipeline(p: Pipeline, params: Record<string, string>, done: () => void) {
    const cron = signal(p.cron ?? "0 2 * * *");
    const zone = signal(p.zone ?? zones()[1] ?? "UTC");
    ask({
        title: w("s_title", visible(p.name)),
        act: w("s_go"),
        missing: () => (cron.value.trim() ? "" : w("s_must")),
        cli: () =>
            `argus pipe schedule ${shell(p.name)}${whoseWords(p)} --cron ${shell(cron.value.trim())} --zone ${shell(zone.value.trim())}${paramWords(params)}`,
        body: (
            <>
                <p>{w("s_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={w("s_cron")} code="cron" of={cron} first />
                        <Field label={w("s_zone")} code="zone" of={zone} list={[...new Set(zones())]} />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/pipelines/{name}:schedule", {
                path: { name: p.name },
                query: whose(p),
                body: { cron: cron.value.trim(), zone: zone.value.trim() || null, params },
            });
            done();
        },
        done: w("s_set"),
    });
}

export function unschedulePipeline(p: Pipeline, done: () => void) {
    ask({
        title: w("s_off"),
        act: w("s_off"),
        isBad: true,
        cli: `argus pipe schedule ${shell(p.name)}${whoseWords(p)} --off`,
        body: <p>{w("s_off_text")}</p>,
        does: async () => {
            await call("POST /v1/pipelines/{name}:schedule", {
                path: { name: p.name },
                query: whose(p),
                body: { cron: null },
            });
            done();
        },
        done: w("s_set"),
    });
}

/** The parameters of a run, as fields; what of them was changed is sent with the retry. */
const paramFields = (run: PipelineRun) =>
    Object.entries((run.params ?? {}) as Record<string, unknown>).map(([name, v]) => {
        const before = v === null ? "" : String(v);
        return { name, before, of: signal(before) };
    });
type ParamField = ReturnType<typeof paramFields>[number];

/** What a retry would do stands in the dialog before it is done, and follows what is chosen there. */
export async function retryRun(run: PipelineRun, from: string | null) {
    const path = { run: run.id };
    const force = signal(false);
    const plan = signal<PipelinePlan | null>(null);
    const why = signal<Refusal | null>(null);
    const fields = paramFields(run);
    const edits = () =>
        Object.fromEntries(fields.filter((x) => x.of.value !== x.before).map((x) => [x.name, x.of.value]));
    const chosen = () => ({ from, force: force.value, params: edits() });
    let asked = 0;
    const look = async (body: ReturnType<typeof chosen>) => {
        const mine = ++asked; // an answer that comes late is of an older choice
        try {
            const got = await call("POST /v1/pipeline-runs/{run}:retry", { path, body: { ...body, dry_run: true } });
            if (mine !== asked) return;
            plan.value = got as PipelinePlan;
            why.value = null;
        } catch (e) {
            if (mine !== asked || !(e instanceof Refusal)) return;
            plan.value = null;
            why.value = e;
        }
    };
    // Only what is chosen here asks again, and not the session or the language that a request reads.
    effect(() => {
        const body = chosen();
        untracked(() => void look(body));
    });
    ask({
        title: from ? w("retry_from", visible(from)) : w("retry_title", visible(run.id)),
        act: w("retry_go"),
        cli: () =>
            `argus pipe retry ${shell(run.id)}${from ? ` --from ${shell(from)}` : ""}${paramWords(edits(), "--set")}${force.value ? " --force" : ""}`,
        body: <RetryBody from={from} plan={plan} why={why} force={force} fields={fields} />,
        does: () => call("POST /v1/pipeline-runs/{run}:retry", { path, body: chosen() }),
        done: w("retried"),
    });
}

function RetryBody(p: {
    from: string | null;
    plan: { value: PipelinePlan | null };
    why: { value: Refusal | null };
    force: ReturnType<typeof signal<boolean>>;
    fields: ParamField[];
}) {
    const why = p.why.value;
    const problems = why?.problem?.problems ?? [];
    return (
        <>
            <p>{p.from ? w("retry_from_text", visible(p.from)) : w("retry_text")}</p>
            {p.fields.length > 0 && (
                <div class="form in-dialog">
                    <fieldset>
                        {p.fields.map((x) => (
                            <Field key={x.name} label={visible(x.name)} of={x.of} />
                        ))}
                    </fieldset>
                </div>
            )}
            <Tick label={w("force")} of={p.force as Parameters<typeof Tick>[0]["of"]} />
            {why && (
                <p class="note bad said">
                    {problems.length ? problems.map((x) => visible(x.detail)).join("; ") : visible(why.detail)}
                </p>
            )}
            {p.plan.value && <Plan of={p.plan.value} />}
        </>
    );
}

export function cancelRun(run: PipelineRun) {
    const running = run.steps.filter((s) => s.state === "RUNNING").length;
    ask({
        title: w("cancel_title", visible(run.id)),
        act: w("cancel"),
        isBad: true,
        cli: `argus pipe cancel ${shell(run.id)}`,
        body: <p>{w("cancel_text", running)}</p>,
        does: () => call("POST /v1/pipeline-runs/{run}:cancel", { path: { run: run.id } }),
        done: w("cancelled"),
    });
}

/** Has it deployed something by itself? */
export const hasDeployed = (run: PipelineRun) =>
    run.steps.some((s) => s.uses === "deploy" && s.state === "SUCCEEDED" && !s.cached);

export function rollbackRun(run: PipelineRun) {
    ask({
        title: w("rollback_title", visible(run.id)),
        act: w("rollback"),
        isBad: true,
        cli: `argus pipe rollback ${shell(run.id)}`,
        body: <p>{w("rollback_text")}</p>,
        does: () => call("POST /v1/pipeline-runs/{run}:rollback", { path: { run: run.id } }),
        done: w("rolled_back"),
    });
}
