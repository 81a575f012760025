// SPDX-License-Identifier: Apache-2.0
// verdict.tsx - what is wrong with a training, above its curves: one sentence, since when, how sure, which key changes it;
// and what nobody measures, which is never said to be fine.
import type { Job } from "../../made/api";
import { figure, num, visible } from "../../base/say";
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
    blind: ["Not measured", "未测量"],
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

export function VerdictPanel({ job }: { job: Job }) {
    const of = job.verdict;
    if (!of) return null;
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
