// SPDX-License-Identifier: Apache-2.0
// verdict.tsx - what is wrong with a training, above its curves: one sentence, since when, how sure, which key changes it;
// and what nobody measures, which is never said to be fine.
import type { Job } from "../../made/api";
import { useAsk } from "../../api/use";
import { figure, num, visible } from "../../base/say";
import { query, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Icon } from "../../kit/icons";
import { Panel } from "../../kit/parts";
import { w } from "./words";
import "./training.css";

const v = words({
    since: ["since step {0}", "自第 {0} 步"],
    over: ["steps {0} to {1}, over", "第 {0} 至 {1} 步，已结束"],
    usual: ["{0} is {1}, {2} was usual", "{0} 为 {1}，通常为 {2}"],
    is: ["{0} is {1}", "{0} 为 {1}"],
    change: ["Key to change", "要改的参数"],
    more: ["Also seen", "另外看到"],
    alerts: ["Its alerts", "它的告警"],
    project: ["a rule of the project", "项目的规则"],
    blind: ["Not measured", "未测量"],
    looks: ["Samples of step {0}", "第 {0} 步的样本"],
    all: ["All samples of the step", "该步的全部样本"],
});

const LOOKS: Record<string, string> = { bad: "c-bad", warn: "c-warn", fine: "c-ok" };

type Verdict = NonNullable<Job["verdict"]>;
type Item = Verdict["items"][number];

function evidence(i: Item): string | null {
    if (i.value === null) return null;
    const metric = visible(i.metric);
    return i.baseline === null
        ? v("is", metric, figure(i.value))
        : v("usual", metric, figure(i.value), figure(i.baseline));
}

const span = (i: Item) => (i.stands ? v("since", num(i.step)) : v("over", num(i.step), num(i.ended_at)));

function Other({ of: i }: { of: Item }) {
    return (
        <li>
            <span class={`st ${!i.stands ? "c-quiet" : i.severity === "bad" ? "c-bad" : "c-warn"}`}>
                <Icon name={i.stands ? "failed" : "succeeded"} />
                {visible(i.text)}
            </span>{" "}
            <span class="dim nowrap">{span(i)}</span>
        </li>
    );
}

const FEW = 5;
const BEGINNING = 160;

/** Of the steps whose samples are kept, the first from then on, else the last before; null: there is none. */
export function nearest(steps: number[], at: number): number | null {
    const after = steps.filter((x) => x >= at);
    return after.length ? Math.min(...after) : steps.length ? Math.max(...steps) : null;
}

/** What it wrote when that began: the answers that were scored worst, or best where the score is what nobody believes. */
function Looks({ job, of }: { job: Job; of: Item }) {
    const order = /reward/.test(of.kind) ? "best" : "worst";
    const path = { id: job.id };
    const kept = useAsk("GET /v1/jobs/{id}/samples", { path, query: { kind: "rollout", limit: 1, text: 1 } });
    const step = nearest(kept.data?.steps.map((x) => x.step) ?? [], of.step);
    const asked = useAsk(step === null ? null : "GET /v1/jobs/{id}/samples", {
        path,
        query: { kind: "rollout", step: step ?? 0, order, limit: FEW, text: BEGINNING },
    });
    if (step === null || !asked.data?.samples.length) return null; // samples are off, or none is there yet
    const more = { ...Object.fromEntries(query.value), at: String(step), sort: order, prompt: null };
    return (
        <>
            <h3 class="verdict-head">{v("looks", num(step))}</h3>
            <ul class="verdict-more">
                {asked.data.samples.map((x) => (
                    <li class="verdict-sample">
                        <b class="num">{x.score === null ? "–" : figure(x.score)}</b>
                        <span class="cut mono">{visible((x.output ?? "").slice(0, BEGINNING))}</span>
                    </li>
                ))}
            </ul>
            <a class="link small" href={`${withQuery(location.pathname, more)}#samples`}>
                {v("all")}
            </a>
        </>
    );
}

/** The rank for which the others wait, and what to do. */
function SlowRank({ job }: { job: Job }) {
    const slow = job.slow_rank;
    if (!slow) return null;
    return (
        <>
            <p class="verdict-says st c-bad">
                <Icon name="failed" />
                <span>{visible(slow.text)}</span>
            </p>
            {slow.fix && <p class="advice small">{visible(slow.fix)}</p>}
        </>
    );
}

export function VerdictPanel({ job }: { job: Job }) {
    const of = job.verdict;
    if (!of)
        return job.slow_rank ? (
            <Panel id="verdict" title={w("s_verdict")}>
                <SlowRank job={job} />
            </Panel>
        ) : null;
    const first = of.items[0]?.stands ? of.items[0] : null;
    const others = first ? of.items.slice(1) : of.items;
    const looks = LOOKS[of.state] ?? "c-quiet";
    const shown = first && evidence(first);
    return (
        <Panel
            id="verdict"
            title={w("s_verdict")}
            count={first ? `${span(first)} · ${w("sure", Math.round(first.certainty * 100))}` : undefined}
        >
            <SlowRank job={job} />
            <p class={`verdict-says st ${looks}`}>
                <Icon name={of.state === "fine" ? "succeeded" : first ? "failed" : "queued"} />
                <span>{visible(of.text)}</span>
            </p>
            {first && (
                <dl class="kv verdict-why">
                    {shown && (
                        <>
                            <dt>{w("s_curves")}</dt>
                            <dd>{shown}</dd>
                        </>
                    )}
                    {first.fix && (
                        <>
                            <dt>{w("advice")}</dt>
                            <dd class="advice">{visible(first.fix)}</dd>
                        </>
                    )}
                    <dt>{v("change")}</dt>
                    <dd class="mono">{visible(first.key)}</dd>
                </dl>
            )}
            {first && <Looks job={job} of={first} />}
            {others.length > 0 && (
                <>
                    <h3 class="verdict-head">{v("more")}</h3>
                    <ul class="verdict-more">
                        {others.map((i) => (
                            <Other of={i} />
                        ))}
                    </ul>
                </>
            )}
            {(job.metric_alerts ?? []).length > 0 && (
                <>
                    <h3 class="verdict-head">{v("alerts")}</h3>
                    <ul class="verdict-more">
                        {job.metric_alerts!.map((x) => (
                            <li>
                                <span class={`st ${x.stands ? "c-bad" : "c-quiet"}`}>
                                    <Icon name={x.stands ? "failed" : "queued"} />
                                    {visible(x.text)}
                                </span>{" "}
                                {x.of_project && <span class="dim nowrap">({v("project")}) </span>}
                                <span class="mono dim" aria-hidden="true">
                                    {x.stands ? x.curve : ""}
                                </span>
                            </li>
                        ))}
                    </ul>
                </>
            )}
            {of.not_measured.length > 0 && (
                <p class="small dim">
                    {v("blind")}: {of.not_measured.map((x) => visible(x.text)).join("; ")}
                </p>
            )}
        </Panel>
    );
}
