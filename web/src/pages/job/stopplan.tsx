// SPDX-License-Identifier: Apache-2.0
// stopplan.tsx - what would end with a job, as argusd plans it, in the dialog that stops it.
import type { StopPlan } from "../../made/api";
import { useAsk } from "../../api/use";
import { num } from "../../base/say";
import { State, Text } from "../../kit/parts";
import { w } from "./words";

/** Nothing where argusd does not tell: the dialog says the most of it by itself. */
export function StopPlanned({ id }: { id: string }) {
    const asked = useAsk("POST /v1/jobs/{id}:stop", { path: { id }, query: { dry_run: true } });
    const plan = asked.data as StopPlan | undefined;
    if (!plan) return null;
    return (
        <div>
            {plan.at_risk_gpu_hours > 0 && <p class="note warn">{w("stop_lost", num(plan.at_risk_gpu_hours, 1))}</p>}
            {plan.jobs.length + plan.steps.length > 0 && (
                <>
                    <h3>{w("stop_with")}</h3>
                    <ul class="named">
                        {plan.jobs.map((j) => (
                            <li>
                                <State of={j.state} />
                                <a class="link cut" href={`/jobs/${encodeURIComponent(j.job)}`}>
                                    <Text of={j.job} />
                                </a>
                                <span class="end nowrap dim">{w("stop_names")}</span>
                            </li>
                        ))}
                        {plan.steps.map((s) => (
                            <li>
                                <span class="cut">
                                    <Text of={`${s.run}/${s.step}`} />
                                </span>
                                <span class="end nowrap c-warn">{w(`stop_${s.fate}`)}</span>
                            </li>
                        ))}
                    </ul>
                </>
            )}
            {plan.hidden > 0 && <p class="dim">{w("stop_hidden", plan.hidden)}</p>}
        </div>
    );
}
