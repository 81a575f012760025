// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what is done to a plan: it is approved, and applied. Each names what the plan touches.
import { signal } from "@preact/signals";
import type { OpsPlan } from "../../made/api";
import { call } from "../../api/client";
import { gpuHours, visible } from "../../base/say";
import { Field } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { fateSays, w } from "./words";

export const titleOf = (p: { action: string; target: string | null }) =>
    visible(p.target ? `${p.action} ${p.target}` : p.action);

export const Touched = ({ of: p }: { of: OpsPlan }) => (
    <ul class="named">
        {p.jobs.map((j) => (
            <li key={j.job}>
                <span class="mono">{visible(j.job)}</span>
                <span class="small mid">
                    {visible(j.user)} · {fateSays(j.fate)}
                </span>
            </li>
        ))}
        {p.things.map((x) => (
            <li key={x.thing}>
                <span class="mono">{visible(x.thing)}</span>
                <span class="said">{visible(fateSays(x.fate))}</span>
            </li>
        ))}
    </ul>
);

const Impact = ({ of: p }: { of: OpsPlan }) => (
    <>
        <p>
            {w("apply_text", p.jobs.length, visible(p.users.join(", ")) || w("nobody"), gpuHours(p.at_risk_gpu_hours))}
        </p>
        <Touched of={p} />
    </>
);

export function applyPlan(p: OpsPlan, done: () => void) {
    const typed = signal("");
    const word = p.confirm;
    ask({
        title: w("apply_title", titleOf(p)),
        act: w("apply"),
        isBad: true,
        missing: () => (word && typed.value.trim() !== word ? w("type_it", visible(word)) : ""),
        cli: () => `argus ops apply ${shell(p.id)}${word ? ` --confirm ${shell(word)}` : ""}`,
        body: (
            <>
                <Impact of={p} />
                {word && (
                    <div class="form in-dialog">
                        <fieldset>
                            <Field wide={12} label={w("type_it", visible(word))} code="confirm" of={typed} first />
                        </fieldset>
                    </div>
                )}
            </>
        ),
        does: async () => {
            await call("POST /v1/ops/plans/{plan}:apply", {
                path: { plan: p.id },
                body: word ? { confirm: typed.value.trim() } : {},
            });
            done();
        },
        done: w("apply_done"),
    });
}

export function approvePlan(p: OpsPlan, done: () => void) {
    ask({
        title: w("approve_title", titleOf(p)),
        act: w("approve"),
        cli: `argus ops approve ${shell(p.id)}`,
        body: (
            <>
                <p>{w("approve_text")}</p>
                <Impact of={p} />
            </>
        ),
        does: async () => {
            await call("POST /v1/ops/plans/{plan}:approve", { path: { plan: p.id } });
            done();
        },
        done: w("approve_done"),
    });
}
