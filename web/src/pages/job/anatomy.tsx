// SPDX-License-Identifier: Apache-2.0
// anatomy.tsx - where a training's steps go: a bar for each few steps, what the GPUs waited for, the slowest sample, and
// what would make a step shorter.
import { useState } from "preact/hooks";
import type { Job } from "../../made/api";
import { useAsk } from "../../api/use";
import { figure, num, visible } from "../../base/say";
import { query, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { CopyCsv, Panel } from "../../kit/parts";
import { isOver } from "../jobs/columns";
import { w } from "./words";
import "./training.css";

const a = words({
    generate: ["Answers", "生成回答"],
    tools: ["Tools", "工具"],
    reward: ["Reward", "奖励"],
    old_log_prob: ["Log-probabilities", "对数概率"],
    reference: ["Reference", "参考模型"],
    values: ["Values", "价值"],
    advantage: ["Advantages", "优势"],
    update: ["Update", "更新"],
    weights: ["Weights", "权重"],
    save: ["Saving", "保存"],
    validate: ["Validation", "验证"],
    rest: ["Rest", "其余"],
    each: ["{0} s a step, {1} steps", "每步 {0} 秒，共 {1} 步"],
    bar: ["Steps {0} to {1}: {2} s each", "第 {0} 至 {1} 步：每步 {2} 秒"],
    says: ["Seconds of a step by stage, over the run", "运行过程中每步各阶段的秒数"],
    bubble: ["GPUs waited", "GPU 空等"],
    bubble_is: ["at least {0} GPU-hours, {1}%", "至少 {0} GPU 小时，{1}%"],
    bubble_none: ["not measured", "未测量"],
    bubble_beside: ["not measured: stages run beside each other", "未测量：各阶段并行"],
    slowest: ["Slowest sample", "最慢样本"],
    slowest_is: ["step {0}: {1} s, of them {2} s in tools", "第 {0} 步：{1} 秒，其中 {2} 秒在工具中"],
    slowest_open: ["Samples of this step", "该步的样本"],
    slowest_long: ["{0} tokens answered to {1}", "对 {1} 个词元回答了 {0} 个词元"],
    trend: ["Trend", "趋势"],
    trend_is: ["{0} s at first, {1} s now; {2} {3} s", "最初 {0} 秒，现在 {1} 秒；{2} {3} 秒"],
    levers: ["What would make it shorter", "如何缩短"],
    stage: ["Stage", "阶段"],
    seconds: ["Seconds", "秒数"],
    part: ["Of the time", "占比"],
    usual: ["Usual", "通常"],
    usual_is: [
        "{0} s a step in {1} jobs of the same workload and pool that ended",
        "同一工作负载和池中已结束的 {1} 个作业每步 {0} 秒",
    ],
});

const STAGES = [
    "generate",
    "tools",
    "reward",
    "old_log_prob",
    "reference",
    "values",
    "advantage",
    "update",
    "weights",
    "save",
    "validate",
    "rest",
] as const;

const percent = (x: number) => Math.round(100 * x);
/** All samples of a step of training, on this page: what was chosen among others does not hide them. */
const ALL_SAMPLES = { samples: null, sort: null, since: null, prompt: null, said: null, least: null, most: null };
const samplesAt = (step: number) => {
    const of = { ...Object.fromEntries(query.value), ...ALL_SAMPLES, at: String(step) };
    return `${withQuery(location.pathname, of)}#samples`;
};
const signed = (x: number) => `${x >= 0 ? "+" : ""}${figure(x)}`;

export function Anatomy({ job }: { job: Job }) {
    const [under, setUnder] = useState<number | null>(null);
    const asked = useAsk(
        job.verdict ? "GET /v1/jobs/{id}/steps" : null,
        { path: { id: job.id } },
        isOver(job) ? {} : { topics: ["jobs"], about: (id) => id === job.id, every: 15_000 },
    );
    const of = asked.data?.anatomy;
    if (!of) return null;
    const most = Math.max(...of.bars.map((b) => b.seconds), 1e-9);
    const there = STAGES.filter((s) => of.bars.some((b) => b[s] > 0));
    const usual = asked.data?.usual;
    const usually = new Map(usual?.stages.map((s) => [s.stage, s.share]));
    const bar = under === null ? null : of.bars[under];
    return (
        <Panel
            id="steps"
            title={w("s_steps")}
            count={a("each", figure(of.step_seconds), num(of.steps))}
            end={
                <CopyCsv
                    head={["first", "last", "seconds", ...STAGES]}
                    rows={() => of.bars.map((b) => [b.first, b.last, b.seconds, ...STAGES.map((s) => b[s])])}
                />
            }
        >
            <div class="legend">
                {there.map((s) => (
                    <span>
                        <i class={`stage g-${s}`} />
                        {a(s)}
                        {bar && <b>{figure(bar[s])}</b>}
                    </span>
                ))}
            </div>
            <div class="bars" role="img" aria-label={a("says")} onMouseLeave={() => setUnder(null)}>
                {of.bars.map((b, i) => (
                    <div
                        class="stepbar"
                        title={a("bar", num(b.first), num(b.last), figure(b.seconds))}
                        onMouseEnter={() => setUnder(i)}
                    >
                        {there.map((s) => (
                            <i class={`g-${s}`} style={{ height: `${(100 * b[s]) / most}%` }} />
                        ))}
                    </div>
                ))}
            </div>
            <dl class="kv">
                <dt>{a("bubble")}</dt>
                <dd>
                    {of.bubble
                        ? a("bubble_is", figure(of.bubble.gpu_hours), percent(of.bubble.share))
                        : a(of.overlaps ? "bubble_beside" : "bubble_none")}
                </dd>
                {usual && (
                    <>
                        <dt>{a("usual")}</dt>
                        <dd>{a("usual_is", figure(usual.step_seconds), num(usual.jobs))}</dd>
                    </>
                )}
                {of.slowest && (
                    <>
                        <dt>{a("slowest")}</dt>
                        <dd>
                            {a(
                                "slowest_is",
                                num(of.slowest.step),
                                figure(of.slowest.seconds),
                                figure(of.slowest.tools ?? 0),
                            )}
                            {of.slowest.response_tokens !== null && (
                                <>
                                    {"; "}
                                    {a(
                                        "slowest_long",
                                        num(of.slowest.response_tokens),
                                        num(of.slowest.prompt_tokens ?? 0),
                                    )}
                                </>
                            )}{" "}
                            <a class="link small" href={samplesAt(of.slowest.step)}>
                                {a("slowest_open")}
                            </a>
                        </dd>
                    </>
                )}
                {of.trend && (
                    <>
                        <dt>{a("trend")}</dt>
                        <dd>
                            {a(
                                "trend_is",
                                figure(of.trend.early_seconds),
                                figure(of.trend.late_seconds),
                                a((of.trend.stage ?? "rest") as (typeof STAGES)[number]),
                                signed(of.trend.stage_seconds),
                            )}
                        </dd>
                    </>
                )}
            </dl>
            <div class="cols gk">
                <div class="tbl-wrap">
                    <table class="tbl auto">
                        <thead>
                            <tr>
                                <th>{a("stage")}</th>
                                <th class="num">{a("seconds")}</th>
                                <th class="num">{a("part")}</th>
                                {usual && <th class="num">{a("usual")}</th>}
                            </tr>
                        </thead>
                        <tbody>
                            {of.stages
                                .filter((s) => s.share > 0)
                                .map((s) => (
                                    <tr key={s.stage}>
                                        <td>{a(s.stage as (typeof STAGES)[number])}</td>
                                        <td class="num">{figure(s.seconds)}</td>
                                        <td class="num">{percent(s.share)}%</td>
                                        {usual && <td class="num">{percent(usually.get(s.stage) ?? 0)}%</td>}
                                    </tr>
                                ))}
                        </tbody>
                    </table>
                </div>
                {of.levers.length > 0 && (
                    <div>
                        <h3 class="verdict-head">{a("levers")}</h3>
                        <ul class="verdict-more">
                            {of.levers.map((l) => (
                                <li>
                                    {visible(l.text)}
                                    {l.fix && <p class="small dim">{visible(l.fix)}</p>}
                                </li>
                            ))}
                        </ul>
                    </div>
                )}
            </div>
        </Panel>
    );
}
