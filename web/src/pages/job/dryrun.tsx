// SPDX-License-Identifier: Apache-2.0
// dryrun.tsx - what a retry would be: the spec's lines before and after as the server would write them, what is wrong with
// it, and when it would start. Nothing is submitted.
import { useEffect, useState } from "preact/hooks";
import type { Plan, SpecEdit } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { visible } from "../../base/say";
import { words } from "../../base/words";
import { Loading } from "../../kit/blank";
import { Text, Time } from "../../kit/parts";
import { diffLines } from "./lines";

const w = words({
    same: ["The same spec, unchanged.", "规格不变。"],
    at_once: ["It would start at once on {0}.", "将立即在 {0} 上启动。"],
    half: ["Half likely to start by", "五成把握在此之前启动："],
    diff: ["What changes in its spec", "规格的变化"],
});

/** Lines that go and lines that come, as a diff. */
export const Diff = ({ of }: { of: SpecEdit[] }) => (
    <div class="diff" role="group" aria-label={w("diff")}>
        {diffLines(of).map((l) => (
            <div class={l.sign === "+" ? "new" : "old"}>
                <span aria-hidden="true">{l.sign}</span>
                {l.sign === "+" ? <ins>{visible(l.text)}</ins> : <del>{visible(l.text)}</del>}
            </div>
        ))}
    </div>
);

function Start({ of: p }: { of: Plan }) {
    if (p.placement)
        return <p class="small c-ok">{w("at_once", visible(p.placement.nodes.map((n) => n.name).join(", ")))}</p>;
    return (
        <>
            {p.why && <p class="small mid said">{visible(p.why.text)}</p>}
            {p.eta && (
                <p class="small">
                    {w("half")} <Time at={p.eta.p50} />
                </p>
            )}
        </>
    );
}

export function DryRun(p: { id: string; fix: boolean; from: string }) {
    const [seen, setSeen] = useState<{ plan?: Plan; why?: Refusal } | null>(null);
    useEffect(() => {
        const gone = new AbortController();
        setSeen(null);
        call("POST /v1/jobs/{id}:retry", {
            path: { id: p.id },
            query: { dry_run: true, no_trial: true },
            body: { ...(p.fix ? { apply_fix: true } : {}), ...(p.from ? { from: p.from } : {}) },
            signal: gone.signal,
        }).then(
            (plan) => gone.signal.aborted || setSeen({ plan: plan as Plan }),
            (why) => gone.signal.aborted || !(why instanceof Refusal) || setSeen({ why }),
        );
        return () => gone.abort();
    }, [p.id, p.fix, p.from]);
    if (!seen) return <Loading rows={2} />;
    if (seen.why)
        return (
            <p class="note bad said" role="alert">
                {visible(seen.why.problem?.problems?.[0]?.detail ?? seen.why.detail)}
            </p>
        );
    const plan = seen.plan!;
    return (
        <div class="dryrun">
            {plan.changes?.length ? <Diff of={plan.changes} /> : <p class="small dim">{w("same")}</p>}
            {plan.problems.map((x) => (
                <p class={`small said ${x.level === "error" ? "c-bad" : "mid"}`}>
                    <Text of={x.field} mono /> {visible(x.detail)}
                </p>
            ))}
            <Start of={plan} />
        </div>
    );
}
