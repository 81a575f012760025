// SPDX-License-Identifier: Apache-2.0
// idlenote.tsx - the owner says why the GPUs of a job rest: for that time it is neither called idle nor ended for it. What
// was said stands on its page until then.
import { signal } from "@preact/signals";
import type { Job } from "../../made/api";
import { call } from "../../api/client";
import { clock, now, visible } from "../../base/say";
import { words } from "../../base/words";
import { Field } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { jobName } from "../jobs/columns";
import { canRest, restsUntil, WHY_MOST, whyWrong } from "./idle";

const w = words({
    says: ["Its GPUs may rest until {0}: {1}", "其 GPU 可空闲至 {0}：{1}"],
    again: ["Change the reason", "修改说明"],
    title: ["Why do the GPUs of {0} rest?", "{0} 的 GPU 为何空闲？"],
    text: [
        "For that time the job is neither called idle nor, where its spec has idle.action stop, ended for it. The reason stands on this page and among its events.",
        "在此期间，作业不会被标为闲置；即使规格中 idle.action 为 stop，也不会因闲置被结束。说明会显示在本页和事件中。",
    ],
    act: ["Justify the idle GPUs", "说明 GPU 空闲原因"],
    why: ["Reason", "原因"],
    span: ["For, from now on", "时长（从现在起）"],
    none: ["Say why they rest", "请说明原因"],
    long: ["At most {0} bytes", "最多 {0} 字节"],
    no_span: ["Say for how long, 7d at most", "请填写时长，最多 7d"],
    done: ["Its GPUs may rest", "已说明"],
});

export const justifySays = () => w("act");

export function justify(job: Job) {
    const why = signal(restsUntil(job, now.value)?.why ?? "");
    const span = signal("4h");
    ask({
        title: w("title", visible(jobName(job))),
        act: w("act"),
        missing: () => {
            const wrong = whyWrong(why.value);
            return wrong ? w(wrong, WHY_MOST) : span.value.trim() ? "" : w("no_span");
        },
        cli: () =>
            `argus justify --for ${shell(span.value.trim() || "4h")} ${shell(job.id)} ${shell(why.value.trim())}`,
        body: (
            <>
                <p>{w("text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field wide={8} label={w("why")} code="reason" of={why} first />
                        <Field wide={4} label={w("span")} code="for" of={span} list={["1h", "4h", "1d", "7d"]} />
                    </fieldset>
                </div>
            </>
        ),
        does: () =>
            call("POST /v1/jobs/{id}:justify", {
                path: { id: job.id },
                body: { reason: why.value.trim(), for: span.value.trim() },
            }),
        done: w("done"),
    });
}

/** What was said, while it holds, or a button to say it where the job is called idle. */
export function IdleNote({ job, may }: { job: Job; may: boolean }) {
    const rests = restsUntil(job, now.value);
    const isAsked = may && canRest(job) && job.flags.includes("IDLE");
    if (!rests && !isAsked) return null;
    return (
        <div class="note quiet idle-note">
            {rests && <span class="said">{w("says", clock(rests.until), visible(rests.why))}</span>}
            {may && (
                <button type="button" class="btn small act" onClick={() => justify(job)}>
                    {rests ? w("again") : w("act")}
                </button>
            )}
        </div>
    );
}
