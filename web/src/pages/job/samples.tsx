// SPDX-License-Identifier: Apache-2.0
// samples.tsx - what a training wrote: the answers to one prompt side by side, by step or over the steps, with their
// scores, and what another job answered in the same step. ?samples= ?at= ?sort= ?since= ?least= ?most= ?prompt= ?beside=
// ?said= are its state. A text is shown as text, whatever is in it.
import { useEffect, useState } from "preact/hooks";
import type { Job, Sample, Samples as Page } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { useAsk } from "../../api/use";
import { figure, num, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Dash, Panel, Seg } from "../../kit/parts";
import { t } from "../../words/shared";
import { isOver } from "../jobs/columns";
import { besideRows, scoreTyped, sinceStep } from "./beside";
import { marked } from "./repeats";
import { turnsOf } from "./turns";
import { w } from "./words";
import "./samples.css";

const s = words({
    rollout: ["Training", "训练"],
    validation: ["Validation", "验证"],
    order: ["Order", "顺序"],
    dumped: ["As dumped", "原始顺序"],
    worst: ["Worst", "最差"],
    best: ["Best", "最好"],
    changed: ["Most changed", "变化最大"],
    since: ["Since step", "自该步起"],
    since_n: ["since step {0}", "自第 {0} 步"],
    since_none: ["Only one step is kept: nothing can be compared", "只保留了一步：无法比较"],
    score_from: ["Score from", "得分从"],
    score_to: ["to", "到"],
    newest: ["Newest step", "最新一步"],
    step_n: ["Step {0}", "第 {0} 步"],
    over_steps: ["Over the steps", "跨步对比"],
    one_step: ["Back to the step", "返回该步"],
    prompt: ["Prompt", "提示词"],
    answers: ["{0} answers", "{0} 个回答"],
    repeats: ["{0}% repeats", "重复 {0}%"],
    truth: ["expected", "期望"],
    cut: ["A text is cut", "文本已截断"],
    none: ["No samples yet", "还没有样本"],
    none_text: ["They come with the first step that the training writes.", "训练写出第一步后即会显示。"],
    no_match: ["Nothing matches", "没有匹配"],
    flat: [
        "{0} of {1} prompts: all answers have the same score, so nothing is learned from them",
        "{1} 个提示词中有 {0} 个：所有回答得分相同，学不到东西",
    ],
    more: ["Show more", "显示更多"],
    most: ["The first {0} are shown: choose fewer by score or words", "显示前 {0} 个：请按得分或文字缩小范围"],
    tool_call: ["Tool call", "工具调用"],
    tool_call_of: ["Tool call: {0}", "工具调用：{0}"],
    tool_result: ["Tool result", "工具结果"],
    beside: ["Beside the job…", "与其他作业对比…"],
    beside_of: ["The same prompt in {0}", "{0} 中的同一提示词"],
    beside_none: ["It has no sample of this prompt", "其中没有该提示词的样本"],
    beside_step: ["None of this step", "该步没有"],
    this_job: ["This job", "本作业"],
});

const PAGE = 32;
const MORE = 100; // of each further page
const MOST = 2000; // samples on the page: a browser holds no more of them well

const Marked = ({ of }: { of: string }) => (
    <pre class="sample-text" tabIndex={0}>
        {marked(of).map((p) => (p.again ? <mark>{visible(p.text)}</mark> : visible(p.text)))}
    </pre>
);

/** One text, turn by turn; what it had said before is marked. */
function Said({ of }: { of: string | null }) {
    if (of === null) return <Dash />;
    return (
        <>
            {turnsOf(of).map((turn) =>
                turn.kind === "said" ? (
                    <Marked of={turn.text} />
                ) : (
                    <div class={`sample-turn ${turn.kind}`}>
                        <p class="small dim">
                            {turn.kind === "result"
                                ? s("tool_result")
                                : turn.tool
                                  ? s("tool_call_of", visible(turn.tool))
                                  : s("tool_call")}
                        </p>
                        <Marked of={turn.text} />
                    </div>
                ),
            )}
        </>
    );
}

function Answer({ of: a, withStep }: { of: Sample; withStep: boolean }) {
    const parts = Object.entries(a.parts ?? {});
    return (
        <li class="sample">
            <p class="small row wrap">
                {withStep && <span class="dim">{s("step_n", num(a.step))}</span>}
                <b class="num">{a.score === null ? <Dash /> : figure(a.score)}</b>
                {parts.map(([key, value]) => (
                    <span class="dim">
                        {visible(key)} {typeof value === "number" ? figure(value) : visible(String(value ?? "–"))}
                    </span>
                ))}
                {a.change !== null && (
                    <span class={a.change < 0 ? "c-bad" : "c-ok"}>
                        {a.change >= 0 ? "+" : ""}
                        {figure(a.change)}
                    </span>
                )}
                {a.repeats >= 0.05 && <span class="flag warn">{s("repeats", Math.round(a.repeats * 100))}</span>}
                {a.cut && <span class="dim">{s("cut")}</span>}
            </p>
            <Said of={a.output} />
        </li>
    );
}

/** Samples that follow each other and answer the same prompt. */
function groups(of: Sample[]): Sample[][] {
    const all: Sample[][] = [];
    for (const x of of) {
        const last = all.at(-1);
        if (last && last[0]!.prompt === x.prompt) last.push(x);
        else all.push([x]);
    }
    return all;
}

function Group({ of, over }: { of: Sample[]; over: boolean }) {
    const first = of[0]!;
    return (
        <section class="sample-group">
            <header class="row wrap small">
                <span class="dim">
                    {s("prompt")} · {s("answers", of.length)}
                </span>
                <button type="button" class="link" onClick={() => setQuery({ prompt: over ? null : first.prompt })}>
                    {over ? s("one_step") : s("over_steps")}
                </button>
            </header>
            <pre class="sample-text prompt" tabIndex={0}>
                {visible(first.input ?? "")}
            </pre>
            {first.gts !== null && (
                <p class="small dim">
                    {s("truth")} <code>{visible(first.gts)}</code>
                </p>
            )}
            <ol class="sample-answers">
                {of.map((a) => (
                    <Answer key={`${a.step}.${a.rank}`} of={a} withStep={over} />
                ))}
            </ol>
        </section>
    );
}

function Answers({ of }: { of: Sample[] }) {
    if (!of.length) return <p class="small dim">{s("beside_step")}</p>;
    return (
        <ol class="sample-answers">
            {of.map((a) => (
                <Answer key={`${a.step}.${a.rank}`} of={a} withStep={false} />
            ))}
        </ol>
    );
}

interface BesideOf {
    job: Job;
    kind: string;
    prompt: string;
    ours: Sample[];
    more: boolean; // this job has older ones that are not shown yet
}

/** Another job's answers to the prompt that is shown, each step of it beside the same step of this job. */
function Beside({ job, kind, prompt, ours, more }: BesideOf) {
    const other = query.value.get("beside") ?? "";
    const jobs = useAsk("GET /v1/jobs", { query: { workload: job.workload, all: true, limit: 30 } });
    const asked = useAsk(other ? "GET /v1/jobs/{id}/samples" : null, {
        path: { id: other },
        query: { kind, prompt, limit: 100 },
    });
    const others = (jobs.data?.jobs ?? []).filter((j) => j.id !== job.id);
    return (
        <section class="sample-group">
            <header class="row wrap small">
                <select
                    class="field"
                    aria-label={s("beside")}
                    value={other}
                    onChange={(e) => setQuery({ beside: e.currentTarget.value || null })}
                >
                    <option value="">{s("beside")}</option>
                    {others.map((j) => (
                        <option value={j.id}>{visible(j.name || j.id)}</option>
                    ))}
                </select>
                {other && <span class="dim">{s("beside_of", visible(other))}</span>}
            </header>
            {!other ? null : asked.why ? (
                <Refused why={asked.why} again={asked.again} />
            ) : !asked.data ? (
                <Loading rows={2} />
            ) : asked.data.samples.length ? (
                besideRows(ours, asked.data.samples, {
                    ours: more,
                    theirs: asked.data.next_cursor !== null,
                }).map((row) => (
                    <div class="sample-beside" key={row.step}>
                        <h3 class="small dim">{s("step_n", num(row.step))}</h3>
                        <div>
                            <p class="small dim">{s("this_job")}</p>
                            <Answers of={row.ours} />
                        </div>
                        <div>
                            <p class="small dim">{visible(other)}</p>
                            <Answers of={row.theirs} />
                        </div>
                    </div>
                ))
            ) : (
                <p class="small dim">{s("beside_none")}</p>
            )}
        </section>
    );
}

function Steps({ of, at }: { of: Page["steps"]; at: string }) {
    return (
        <select
            class="field"
            aria-label={t("step")}
            value={at}
            onChange={(e) => setQuery({ at: e.currentTarget.value || null, prompt: null })}
        >
            <option value="">{s("newest")}</option>
            {of.map((x) => (
                <option value={String(x.step)}>
                    {s("step_n", num(x.step))}
                    {x.score_mean === null ? "" : ` · ${figure(x.score_mean)}`}
                </option>
            ))}
        </select>
    );
}

/** The step since which the change is told. */
function Since({ of, at, since }: { of: Page["steps"]; at: string; since: number | null }) {
    if (since === null) return null;
    return (
        <select
            class="field"
            aria-label={s("since")}
            value={String(since)}
            onChange={(e) => setQuery({ since: e.currentTarget.value })}
        >
            {of
                .filter((x) => (at ? String(x.step) !== at : x !== of[0]))
                .map((x) => (
                    <option value={String(x.step)}>{s("since_n", num(x.step))}</option>
                ))}
        </select>
    );
}

function Score({ name, says }: { name: "least" | "most"; says: string }) {
    const typed = query.value.get(name) ?? "";
    return (
        <input
            class="field sample-score"
            inputMode="decimal"
            placeholder={says}
            aria-label={says}
            aria-invalid={typed !== "" && scoreTyped(typed) === undefined}
            value={typed}
            onInput={(e) => setQuery({ [name]: e.currentTarget.value })}
        />
    );
}

interface Further {
    key: string; // what the first page was asked for
    samples: Sample[];
    cursor: string | null;
}

type Query = NonNullable<Parameters<typeof call<"GET /v1/jobs/{id}/samples">>[1]>["query"];

/** The pages behind the first one, each by the cursor of the one before it; gone once something else is asked for. */
function useFurther(job: Job, asked: Query) {
    const key = JSON.stringify([job.id, asked]);
    const [has, setHas] = useState<Further | null>(null);
    const [why, setWhy] = useState<Refusal | null>(null);
    const [busy, setBusy] = useState(false);
    const mine = has?.key === key ? has : null;
    const load = async (first: string | null) => {
        const cursor = mine ? mine.cursor : first;
        if (cursor === null || busy) return;
        setBusy(true);
        setWhy(null);
        try {
            const path = { id: job.id };
            const of = await call("GET /v1/jobs/{id}/samples", { path, query: { ...asked, limit: MORE, cursor } });
            setHas({ key, samples: [...(mine?.samples ?? []), ...of.samples], cursor: of.next_cursor });
        } catch (e) {
            if (!(e instanceof Refusal)) throw e;
            setWhy(e);
        } finally {
            setBusy(false);
        }
    };
    return { has: mine, why, busy, load };
}

/** Of the step that is shown: how many prompts teach nothing. */
function Flat({ page, at }: { page: Page; at: string }) {
    const step = page.steps.find((x) => !at || String(x.step) === at);
    if (!step?.flat_groups) return null;
    return <p class="small mid">{s("flat", num(step.flat_groups), num(step.groups))}</p>;
}

export function Samples({ job }: { job: Job }) {
    const get = (key: string) => query.value.get(key) ?? "";
    const kind = get("samples");
    const at = get("at");
    const sort = get("sort");
    const prompt = get("prompt");
    const said = get("said");
    // They stay while the next answer comes, or is a refusal; those of another kind are of no use.
    const [known, setKnown] = useState<{ kind: string; steps: Page["steps"] }>({ kind, steps: [] });
    const steps = known.kind === kind ? known.steps : [];
    const isChanged = sort === "changed" && !prompt;
    const kept = steps.map((x) => x.step);
    const since = isChanged && kept.length ? sinceStep(kept, at, get("since")) : null;
    const least = scoreTyped(get("least"));
    const most = scoreTyped(get("most"));
    const of: Query = {
        kind: kind || "rollout",
        order: prompt || (isChanged && since === null) ? "dumped" : sort || "dumped",
        ...(since === null ? {} : { since }),
        ...(at && !prompt ? { step: Number(at) } : {}),
        ...(prompt ? { prompt } : {}),
        ...(said ? { grep: said } : {}),
        ...(least === undefined ? {} : { min: least }),
        ...(most === undefined ? {} : { max: most }),
    };
    const further = useFurther(job, of);
    const asked = useAsk(
        job.attempt > 0 ? "GET /v1/jobs/{id}/samples" : null,
        { path: { id: job.id }, query: { ...of, limit: PAGE } },
        isOver(job) || further.has ? {} : { every: 15_000 }, // the pages behind it are of the first one as it is
    );
    const page = asked.data;
    useEffect(() => {
        if (page) setKnown({ kind, steps: page.steps });
    }, [page]);
    const shown = page ? [...page.samples, ...(further.has?.samples ?? [])] : [];
    const cursor = further.has ? further.has.cursor : (page?.next_cursor ?? null);
    return (
        <Panel
            id="samples"
            title={w("s_samples")}
            bare
            end={
                <span class="row wrap">
                    <Seg
                        label={w("s_samples")}
                        value={kind}
                        onChange={(v) => setQuery({ samples: v, at: null, since: null, prompt: null })}
                        of={[
                            { value: "", says: s("rollout") },
                            { value: "validation", says: s("validation") },
                        ]}
                    />
                    <Seg
                        label={s("order")}
                        value={sort}
                        onChange={(v) => setQuery({ sort: v, prompt: null })}
                        of={[
                            { value: "", says: s("dumped") },
                            { value: "worst", says: s("worst") },
                            { value: "best", says: s("best") },
                            { value: "changed", says: s("changed") },
                        ]}
                    />
                    <Steps of={steps} at={at} />
                    {isChanged && <Since of={steps} at={at} since={since} />}
                    <Score name="least" says={s("score_from")} />
                    <Score name="most" says={s("score_to")} />
                    <label class="search">
                        <Icon name="search" />
                        <input
                            type="search"
                            placeholder={w("grep")}
                            aria-label={w("grep")}
                            value={said}
                            onChange={(e) => setQuery({ said: e.currentTarget.value })}
                        />
                    </label>
                </span>
            }
        >
            {asked.why ? (
                <Refused why={asked.why} again={asked.again} />
            ) : job.attempt > 0 && !page ? (
                <Loading rows={4} />
            ) : !page?.samples.length ? (
                <Blank title={page?.steps.length ? s("no_match") : s("none")}>
                    {page?.steps.length ? null : s("none_text")}
                </Blank>
            ) : (
                <div class="body samples">
                    {!prompt && <Flat page={page} at={at} />}
                    {isChanged && since === null && <p class="small mid">{s("since_none")}</p>}
                    {groups(shown).map((g) => (
                        <Group key={`${g[0]!.step}.${g[0]!.rank}`} of={g} over={prompt !== ""} />
                    ))}
                    {prompt && (
                        <Beside
                            job={job}
                            kind={kind || "rollout"}
                            prompt={prompt}
                            ours={shown}
                            more={cursor !== null}
                        />
                    )}
                    {further.why && <Refused why={further.why} again={() => void further.load(cursor)} />}
                    {cursor !== null && shown.length < MOST && (
                        <button
                            type="button"
                            class="btn"
                            disabled={further.busy}
                            onClick={() => void further.load(cursor)}
                        >
                            {s("more")}
                        </button>
                    )}
                    {cursor !== null && shown.length >= MOST && <p class="small dim">{s("most", num(MOST))}</p>}
                </div>
            )}
        </Panel>
    );
}
