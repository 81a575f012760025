// SPDX-License-Identifier: Apache-2.0
// plan.tsx - what would happen if the spec were submitted now: start, end, cost, what is wrong, what would serve it
// better, and the trial on a worker. All of it is the server's answer to a dry run.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Plan, SpecProblem } from "../../made/api";
import { call, isAway, Refusal } from "../../api/client";
import { bytes, clock, ms, now, num, until, visible } from "../../base/say";
import { Blank, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { w } from "./words";

export interface Checked {
    /** The text that this is about. */
    text: string;
    at: number;
    plan: Plan | null;
    problems: SpecProblem[];
    /** Refused for another reason than the spec: a quota, a lost connection. */
    why: Refusal | null;
}

export const problemsOf = (why: Refusal): SpecProblem[] => why.problem?.problems ?? [];

export async function check(text: string, signal: AbortSignal): Promise<Checked> {
    const out: Checked = { text, at: Date.now(), plan: null, problems: [], why: null };
    try {
        const plan = (await call("POST /v1/jobs", { raw: text, query: { suggest: true }, signal })) as Plan;
        return { ...out, at: Date.now(), plan, problems: plan.problems };
    } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        const problems = problemsOf(e);
        return { ...out, at: Date.now(), problems, why: problems.length ? null : e };
    }
}

/** What was known of this very text stays while nobody answers. */
export const newerCheck = (was: Checked | null, c: Checked) => (isAway(c.why) && was?.text === c.text ? was : c);

function Fig({ says, of, more }: { says: string; of: ComponentChildren; more?: ComponentChildren }) {
    return (
        <div class="fig">
            <dt>{says}</dt>
            <dd>
                {of}
                <small class="cut">{more ?? "\u00a0"}</small>
            </dd>
        </div>
    );
}

function Figures({ plan }: { plan: Plan }) {
    const starts = plan.placement ? now.value : plan.eta ? ms(plan.eta.p50) : null;
    const late = plan.placement ? now.value : plan.eta ? ms(plan.eta.p90) : null;
    const run = plan.run;
    const gpus = plan.demand.gpus;
    const at = plan.placement?.nodes.map((n) => visible(n.name)).join(", ");
    return (
        <dl class="figs stackfigs">
            <Fig
                says={w("starts")}
                of={plan.placement ? w("at_once") : plan.eta ? clock(plan.eta.p50) : "–"}
                more={at ? w("on_nodes", at) : plan.eta ? until(plan.eta.p50) : undefined}
            />
            <Fig
                says={w("ends")}
                of={run && starts !== null ? clock(starts + run.p50_s * 1000) : "–"}
                more={run && late !== null ? w("p90", clock(late + run.p90_s * 1000)) : w("unknown_end")}
            />
            <Fig
                says={w("takes")}
                of={w("n_gpus", gpus)}
                more={run && gpus ? w("gpu_h", num((gpus * run.p50_s) / 3600, 1)) : undefined}
            />
            <Fig
                says={w("saves")}
                of={plan.checkpoint_bytes === null ? "–" : bytes(plan.checkpoint_bytes)}
                more={plan.free_bytes === null ? undefined : w("n_free", bytes(plan.free_bytes))}
            />
        </dl>
    );
}

function Row(p: {
    icon: "succeeded" | "failed" | "unhealthy" | "bolt";
    tone: string;
    children: ComponentChildren;
    end?: ComponentChildren;
}) {
    return (
        <li>
            <span class={`c-${p.tone}`}>
                <Icon name={p.icon} />
            </span>
            <span>{p.children}</span>
            <span>{p.end}</span>
        </li>
    );
}

export function Problems({ of, goTo }: { of: SpecProblem[]; goTo: (line: number) => void }) {
    return (
        <ul class="checks plan-part">
            {of.map((p) => (
                <Row
                    icon={p.level === "error" ? "failed" : "unhealthy"}
                    tone={p.level === "error" ? "bad" : "warn"}
                    end={
                        p.line > 0 && (
                            <button type="button" class="link nowrap" onClick={() => goTo(p.line)}>
                                {w("line", p.line)}
                            </button>
                        )
                    }
                >
                    {p.field && <code>{visible(p.field)} </code>}
                    <span class="said">{visible(p.detail)}</span>
                    {p.hint && <span class="mid said hint">{visible(p.hint)}</span>}
                </Row>
            ))}
        </ul>
    );
}

const quotaSays = (q: Plan["quota"]["user"]) =>
    q.gpus_ceiling === undefined
        ? w("q_free", visible(q.name), q.gpus_after)
        : w("q_user", visible(q.name), q.gpus_after, q.gpus_ceiling);

function Fine({ plan }: { plan: Plan }) {
    const all = plan.checks.length;
    const fine = plan.checks.filter((c) => c.ok).length;
    return (
        <details class="okays plan-part">
            <summary class="row">
                <span class={fine === all ? "c-ok" : "c-warn"}>
                    <Icon name={fine === all ? "succeeded" : "unhealthy"} />
                </span>
                <span class="grow">{fine === all ? w("all_fine") : w("some_fine", fine, all)}</span>
                <Icon name="down" />
            </summary>
            <ul class="checks">
                {plan.checks.map((c) => (
                    <Row icon={c.ok ? "succeeded" : "unhealthy"} tone={c.ok ? "ok" : "warn"}>
                        <span class={c.ok ? "said" : "said dim"}>{visible(c.text)}</span>
                    </Row>
                ))}
                <Row icon="succeeded" tone="ok">
                    {quotaSays(plan.quota.project)}
                </Row>
                <Row icon="succeeded" tone="ok">
                    {quotaSays(plan.quota.user)}
                </Row>
                <Row icon="succeeded" tone="ok">
                    {plan.queue_length ? w("q_line", plan.queue_length) : w("q_empty")}
                </Row>
                {plan.verl && (
                    <Row icon="succeeded" tone="ok">
                        verl {visible(plan.verl)}
                    </Row>
                )}
            </ul>
        </details>
    );
}

function Advised({ plan, use }: { plan: Plan; use: (key: string, value: string) => void }) {
    const advice = plan.advice ?? [];
    if (!advice.length) return null;
    return (
        <div class="plan-section">
            <h3>{w("advice")}</h3>
            <ul class="checks">
                {advice.map((a) => (
                    <Row
                        icon="bolt"
                        tone="run"
                        end={
                            a.key && a.value !== null ? (
                                <button type="button" class="link" onClick={() => use(a.key!, a.value!)}>
                                    {w("use")}
                                </button>
                            ) : null
                        }
                    >
                        {a.key && a.value !== null && (
                            <>
                                <code>{visible(a.key.split(".").pop()!)}</code> → <b>{visible(a.value)}</b>{" "}
                            </>
                        )}
                        <span class="mid said">{visible(a.text)}</span>
                    </Row>
                ))}
            </ul>
        </div>
    );
}

/** Asked for by hand: it takes a worker for some seconds. */
function Trial({ text }: { text: string }) {
    const [busy, setBusy] = useState(0);
    const [, tick] = useState(0);
    const [got, setGot] = useState<{ text: string; plan?: Plan; why?: Refusal } | null>(null);
    const control = useRef<AbortController | null>(null);
    useEffect(() => () => control.current?.abort(), []);
    useEffect(() => {
        if (!busy) return;
        const each = setInterval(() => tick((n) => n + 1), 1000);
        return () => clearInterval(each);
    }, [busy]);
    const go = async () => {
        const c = (control.current = new AbortController());
        setBusy(Date.now());
        try {
            const plan = (await call("POST /v1/jobs", {
                raw: text,
                query: { dry_run: true },
                signal: c.signal,
            })) as Plan;
            setGot({ text, plan });
        } catch (e) {
            if (e instanceof Refusal) setGot({ text, why: e });
        }
        if (!c.signal.aborted) setBusy(0);
    };
    const trial = got?.plan?.trial;
    const found = trial?.result?.findings ?? [];
    return (
        <div class="plan-section">
            <div class="row">
                <h3 class="grow">{w("trial")}</h3>
                <button type="button" class="btn act" disabled={!!busy} onClick={() => void go()}>
                    {w("trial_go")}
                </button>
            </div>
            <p class="small mid" role="status">
                {busy
                    ? w("trial_runs", Math.round((Date.now() - busy) / 1000))
                    : got && got.text !== text
                      ? w("trial_old")
                      : !got
                        ? w("trial_text")
                        : null}
            </p>
            {!busy && got?.text === text && (
                <ul class="checks">
                    {got.why && (
                        <Row icon="failed" tone="bad">
                            <span class="said">{visible(got.why.detail)}</span>
                        </Row>
                    )}
                    {trial && !found.length && (
                        <Row
                            icon={trial.state === "passed" ? "succeeded" : "unhealthy"}
                            tone={trial.state === "passed" ? "ok" : "warn"}
                            end={trial.result?.seconds ? w("trial_took", num(trial.result.seconds, 1)) : null}
                        >
                            <span class="said">{trial.state === "passed" ? w("trial_ok") : visible(trial.text)}</span>
                        </Row>
                    )}
                    {found.map((f) => (
                        <Row icon="failed" tone="bad">
                            <code>{visible(f.field || f.class)}</code> <span class="said">{visible(f.detail)}</span>
                            {f.hint && <span class="mid said hint">{visible(f.hint)}</span>}
                        </Row>
                    ))}
                </ul>
            )}
        </div>
    );
}

export function PlanPanel(p: {
    text: string;
    checked: Checked | null;
    busy: boolean;
    goTo: (line: number) => void;
    use: (key: string, value: string) => void;
    again: () => void;
    children: ComponentChildren;
}) {
    const c = p.checked;
    const errors = c?.problems.filter((x) => x.level === "error").length ?? 0;
    const plan = c?.plan;
    return (
        <section class="panel" aria-labelledby="h-plan">
            <header>
                <h2 id="h-plan">{w("plan")}</h2>
                <span class="end small dim endtext" role="status">
                    {p.busy ? w("checking") : c ? w("checked", clock(c.at)) : ""}
                </span>
            </header>
            {!c ? (
                <Blank title={w("not_yet")}>{w("not_yet_text")}</Blank>
            ) : c.why ? (
                <Refused why={c.why} again={p.again} />
            ) : (
                <>
                    {plan && <Figures plan={plan} />}
                    {plan?.why && (
                        <div class="note quiet plan-why">
                            <Icon name="queued" />
                            <p class="grow said">
                                {visible(plan.why.text)}
                                {plan.why.hint_text && <span class="mid said hint">{visible(plan.why.hint_text)}</span>}
                            </p>
                        </div>
                    )}
                    {errors > 0 && <p class="plan-part strong c-bad">{w("wrong_n", errors)}</p>}
                    <Problems of={c.problems} goTo={p.goTo} />
                    {plan && <Fine plan={plan} />}
                    {plan && <Advised plan={plan} use={p.use} />}
                    {plan?.argv && plan.verl !== null && <Trial text={p.text} />}
                </>
            )}
            {p.children}
        </section>
    );
}
