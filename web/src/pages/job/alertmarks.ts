// SPDX-License-Identifier: Apache-2.0
// alertmarks.ts - where an alert of a metric fired and where it ended, as marks on the curve of that metric. Pure.
import type { Job, Series } from "../../made/api";
import { figure, visible } from "../../base/say";
import { words } from "../../base/words";
import type { Mark } from "../../kit/plot";

export const said = words({
    fired: ["{0}: fired at step {1} with {2}, true since step {3}", "{0}：第 {1} 步触发，值为 {2}，自第 {3} 步起成立"],
    ended: ["{0}: ended at step {1}", "{0}：第 {1} 步结束"],
    alert: ["an alert of the metric fires", "指标告警触发"],
    alert_end: ["it ends", "告警结束"],
});

type Alerts = Job["metric_alerts"];

/** Where a step lies on the axis: at the step itself, or at the moment of the first step from there on that has one; a
 * step beyond the curve's end lies at its end. null: the curve is empty, or has no moments. */
function placeOf(step: number, s: Series, isTime: boolean): number | null {
    if (!isTime) return s.step.length ? Math.min(step, s.step.at(-1)!) : null;
    return s.time.find((at, i) => at !== null && s.step[i]! >= step) ?? s.time.findLast((at) => at !== null) ?? null;
}

/** The metrics of which an alert ever held, each once. */
export const alerted = (alerts: Alerts): string[] => [
    ...new Set((alerts ?? []).flatMap((a) => (a.spans ?? []).map((x) => x.metric))),
];

/** Marks on the curve with this name, in the order of the axis; each says what it is. */
export function alertMarks(key: string, alerts: Alerts, s: Series | undefined, isTime: boolean): Mark[] {
    const marks: Mark[] = [];
    const add = (step: number, kind: Mark["kind"], says: string) => {
        const x = s ? placeOf(step, s, isTime) : null;
        if (x !== null) marks.push({ x, label: "", kind, says });
    };
    for (const a of alerts ?? [])
        for (const x of a.spans ?? []) {
            if (x.metric !== key) continue;
            const name = visible(a.alert);
            add(x.seen_at, "alert", said("fired", name, x.seen_at, figure(x.value), x.step));
            if (x.ended_at) add(x.ended_at, "alert_end", said("ended", name, x.ended_at));
        }
    return marks.sort((a, b) => a.x - b.x);
}
