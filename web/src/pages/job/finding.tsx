// SPDX-License-Identifier: Apache-2.0
// finding.tsx - why an attempt ended: its first error with its place, what only followed, what to do, and the fix.
import { signal, type Signal } from "@preact/signals";
import type { Checkpoint, Finding, Job, Quote, SpecChange } from "../../made/api";
import { call } from "../../api/client";
import { num, visible } from "../../base/say";
import { go } from "../../base/url";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { Panel, shell } from "../../kit/parts";
import { t } from "../../words/shared";
import { isOver, jobName, TRAINS } from "../jobs/columns";
import { DryRun } from "./dryrun";
import { logPlaceOf, type LogPlace } from "./evidence";
import { goToLine } from "./log";
import { Stacks } from "./stacks";
import { w } from "./words";

const short = (key: string) => key.replace(/^overrides\./, "").replace(/^actor_rollout_ref\./, "");

function Change({ of: c }: { of: SpecChange }) {
    const to = c.set ?? (c.scale ? w("scale", c.scale) : c.add ? (c.add.startsWith("-") ? c.add : `+${c.add}`) : "");
    const from = Number(c.from);
    const computed =
        Number.isFinite(from) && c.scale
            ? from * Number(c.scale)
            : Number.isFinite(from) && c.add
              ? from + Number(c.add)
              : null;
    const says = computed === null ? to : String(Number(computed.toPrecision(6)));
    return (
        <div>
            <span class="cut" title={c.key}>
                {visible(short(c.key))}
            </span>
            <span>
                {c.from !== undefined && (
                    <>
                        <del>{visible(c.from)}</del> →{" "}
                    </>
                )}
                <ins>{visible(says)}</ins>
            </span>
        </div>
    );
}

const Patch = ({ of }: { of: SpecChange[] }) => (
    <div class="patch">
        {of.map((c) => (
            <Change of={c} />
        ))}
    </div>
);

/** The workloads whose checkpoints one goes on from. */
export const isWhole = (c: Checkpoint) => c.state === "complete" || c.state === "verified";

/** Where the new job begins: "" is anew, else a step. */
const Begins = ({ of, steps }: { of: Signal<string>; steps: number[] }) => (
    <label class="begins">
        {w("begins")}
        <select class="field" value={of.value} onChange={(e) => (of.value = e.currentTarget.value)}>
            {steps.map((s) => (
                <option value={String(s)}>{w("begins_at", num(s))}</option>
            ))}
            <option value="">{w("begins_anew")}</option>
        </select>
    </label>
);

/** Asked anew when another place to begin at is chosen. */
const Planned = (p: { id: string; fix: boolean; from: Signal<string> }) => (
    <DryRun id={p.id} fix={p.fix} from={p.from.value} />
);

/** A job that failed goes on from its newest whole checkpoint, unless another place is chosen. */
export function retry(job: Job, fix: boolean, checkpoints: Checkpoint[]) {
    const steps = TRAINS.includes(job.workload)
        ? checkpoints
              .filter(isWhole)
              .map((c) => c.step)
              .sort((a, b) => b - a)
        : [];
    const from = signal(steps.length && job.state !== "SUCCEEDED" ? String(steps[0]) : "");
    ask({
        title: w(fix ? "apply_title" : "retry_title", jobName(job)),
        act: w(fix ? "apply" : "retry_go"),
        cli: () =>
            `argus retry ${shell(job.id)}${fix ? " --apply-fix" : ""}${from.value ? ` --from ${from.value}` : ""}`,
        body: (
            <>
                <p>{w(fix ? "apply_text" : "retry_text")}</p>
                {steps.length > 0 && <Begins of={from} steps={steps} />}
                <Planned id={job.id} fix={fix} from={from} />
            </>
        ),
        does: async () => {
            const made = await call("POST /v1/jobs/{id}:retry", {
                path: { id: job.id },
                body: { ...(fix ? { apply_fix: true } : {}), ...(from.value ? { from: from.value } : {}) },
            });
            if ("id" in made && typeof made.id === "string") go(`/jobs/${encodeURIComponent(made.id)}`);
        },
        done: t("retry"),
    });
}

const placeOf = (q: Quote) =>
    q.line ? w("at_line", visible(q.source ?? "log"), num(q.line)) : q.source ? visible(q.source) : null;

/** isTrial: it has no log that is shown here, what it found says which line of the user's code it is. */
function Evidence({ of: q, isTrial }: { of: Quote; isTrial: boolean }) {
    const says = placeOf(q);
    const at = isTrial ? null : logPlaceOf(q);
    const look = (to: LogPlace) => {
        goToLine(to.offset, to.from);
        document.getElementById("log")?.scrollIntoView({ block: "start" });
    };
    return (
        <>
            <pre class="quote">{visible(q.text)}</pre>
            {says && (
                <p class="small mid">
                    {at ? (
                        <button type="button" class="link" onClick={() => look(at)}>
                            {says}
                        </button>
                    ) : (
                        says
                    )}
                </p>
            )}
        </>
    );
}

export function FindingPanel(p: { job: Job; of: Finding; checkpoints: Checkpoint[]; may: boolean }) {
    const { job, of: f, may } = p;
    const first = f.evidence[0];
    const where = [f.rank !== null && `rank ${f.rank}`, f.node, f.time].filter(Boolean).join(" · ");
    return (
        <Panel
            id="finding"
            bare
            title={
                <span class="row">
                    <span class="c-bad">
                        <Icon name="failed" />
                    </span>
                    <code class="strong">{visible(f.class)}</code>
                    <span class="finding-says said">{visible(f.meaning)}</span>
                </span>
            }
            end={
                <span class="small dim endtext">
                    {w("sure", Math.round(f.confidence * 100))} ·{" "}
                    {f.attempt > 0 ? w("found_in", f.attempt) : w("found_in_trial")}
                </span>
            }
        >
            <div class="finding-body">
                {first && (
                    <>
                        <h3>
                            {w("first_error")}
                            {where && <> · {visible(where)}</>}
                        </h3>
                        {f.evidence.map((q) => (
                            <Evidence of={q} isTrial={f.attempt === 0} />
                        ))}
                    </>
                )}
                <Stacks job={job} of={f} />
                {f.after.length > 0 && (
                    <details>
                        <summary class="small mid">{w("after", f.after.length)}</summary>
                        {f.after.map((q) => (
                            <pre class="quote quiet">{visible(q.text)}</pre>
                        ))}
                    </details>
                )}
                {f.second && (
                    <>
                        <h3>{w("second", Math.round(f.second.confidence * 100))}</h3>
                        <p class="said">
                            <code>{visible(f.second.class)}</code> {visible(f.second.meaning)}
                        </p>
                        {f.second.quote && <pre class="quote quiet">{visible(f.second.quote.text)}</pre>}
                    </>
                )}
                {f.advice && (
                    <>
                        <h3>{w("advice")}</h3>
                        <p class="said advice">{visible(f.advice)}</p>
                    </>
                )}
                {f.patch.length > 0 && (
                    <>
                        <h3>{w("fix")}</h3>
                        <Patch of={f.patch} />
                    </>
                )}
                {may && isOver(job) && (
                    <div class="row finding-acts act">
                        {f.patch.length > 0 && (
                            <button type="button" class="btn main" onClick={() => retry(job, true, p.checkpoints)}>
                                <Icon name="succeeded" />
                                {w("apply")}
                            </button>
                        )}
                        <button type="button" class="btn" onClick={() => retry(job, false, p.checkpoints)}>
                            {t("retry")}
                        </button>
                    </div>
                )}
            </div>
        </Panel>
    );
}
