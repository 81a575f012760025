// SPDX-License-Identifier: Apache-2.0
// act.tsx - the button of an advice, which does what the advice says: a new job with the key changed, the change of one
// that waits, or where the time goes in its steps. Nothing is submitted before its plan was looked at.
import type { ComponentChildren } from "preact";
import type { JobWaste } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { packed } from "../../base/anchor";
import { textOfJob } from "../../base/spectext";
import { go, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { toast } from "../../kit/parts";
import { actOf, advised, timeoutOf } from "./advice";

const w = words({
    change: ["Change it", "更改"],
    submit: ["Submit so", "按此提交"],
    steps: ["Show its steps", "查看各步"],
});

/** A new job of this one's spec, with the advice taken; it is looked at before it is submitted. */
async function takeAdvice(j: JobWaste) {
    try {
        const job = await call("GET /v1/jobs/{id}", { path: { id: j.id } });
        const text = advised(textOfJob(job.spec), j, job);
        go(`${withQuery("/submit", { from: j.id })}#spec=${packed(text)}`);
    } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        toast(e.message);
    }
}

/** otherwise: what stands there where the advice asks for nothing that this reader can do. */
export function Act({ of: j, otherwise = null }: { of: JobWaste; otherwise?: ComponentChildren }) {
    const act = actOf(j, session.value?.role === "viewer");
    if (act === "steps")
        return (
            <a class="btn small" href={`/jobs/${encodeURIComponent(j.id)}#steps`}>
                {w("steps")}
            </a>
        );
    if (act === "change" && j.advised_timeout_s !== null)
        return (
            <a class="btn small act" href={withQuery("/queue", { why: j.id, timeout: timeoutOf(j.advised_timeout_s) })}>
                {w("change")}
            </a>
        );
    if (act === "submit")
        return (
            <button type="button" class="btn small act" onClick={() => void takeAdvice(j)}>
                {w("submit")}
            </button>
        );
    return <>{otherwise}</>;
}
