// SPDX-License-Identifier: Apache-2.0
// samples.tsx - what a training wrote: the answers to one prompt side by side, by step or over the steps, with their
// scores, and what another job answered. ?samples= ?at= ?sort= ?prompt= ?beside= ?said= are its state. A text is shown as
// text, whatever is in it.
import { useRef, useState } from "preact/hooks";
import type { Job, Sample, Samples as Page } from "../../made/api";
import { useAsk } from "../../api/use";
import { figure, num, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Dash, Panel, Seg } from "../../kit/parts";
import { t } from "../../words/shared";
import { isOver } from "../jobs/columns";
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
    tool_call: ["Tool call", "工具调用"],
    tool_call_of: ["Tool call: {0}", "工具调用：{0}"],
    tool_result: ["Tool result", "工具结果"],
    beside: ["Beside the job…", "与其他作业对比…"],
    beside_of: ["The same prompt in {0}", "{0} 中的同一提示词"],
    beside_none: ["It has no sample of this prompt", "其中没有该提示词的样本"],
});

const PAGE = 32;

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

/** Another job's answers to the prompt that is shown. */
function Beside({ job, kind, prompt }: { job: Job; kind: string; prompt: string }) {
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
                <ol class="sample-answers">
                    {asked.data.samples.map((a) => (
                        <Answer key={`${a.step}.${a.rank}`} of={a} withStep />
                    ))}
                </ol>
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
    const [limit, setLimit] = useState(PAGE);
    const asked = useAsk(
        job.attempt > 0 ? "GET /v1/jobs/{id}/samples" : null,
        {
            path: { id: job.id },
            query: {
                kind: kind || "rollout",
                order: (!prompt && sort) || "dumped",
                limit,
                ...(at && !prompt ? { step: Number(at) } : {}),
                ...(prompt ? { prompt } : {}),
                ...(said ? { grep: said } : {}),
            },
        },
        isOver(job) ? {} : { every: 15_000 },
    );
    const page = asked.data;
    const steps = useRef<Page["steps"]>([]); // stay while the next answer comes, or is a refusal
    if (page) steps.current = page.steps;
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
                        onChange={(v) => setQuery({ samples: v, at: null, prompt: null })}
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
                        ]}
                    />
                    <Steps of={steps.current} at={at} />
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
                    {groups(page.samples).map((g) => (
                        <Group key={`${g[0]!.step}.${g[0]!.rank}`} of={g} over={prompt !== ""} />
                    ))}
                    {prompt && <Beside job={job} kind={kind || "rollout"} prompt={prompt} />}
                    {page.next_cursor !== null && limit < 100 && (
                        <button type="button" class="btn" onClick={() => setLimit(100)}>
                            {s("more")}
                        </button>
                    )}
                </div>
            )}
        </Panel>
    );
}
