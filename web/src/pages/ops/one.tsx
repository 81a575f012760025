// SPDX-License-Identifier: Apache-2.0
// one.tsx - the drawer of one plan: what it touches, its steps with the expected and the real answer, what is done to it.
import type { OpsPlan, OpsStep } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { gpuHours, visible } from "../../base/say";
import { setQuery } from "../../base/url";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Drawer } from "../../kit/over";
import { Cli, Dash, shell, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { applyPlan, approvePlan, titleOf, Touched } from "./deeds";
import { stateSays, w } from "./words";

const Step = ({ of: s }: { of: OpsStep }) => (
    <li>
        <p class="strong">
            <span class="mono">{visible(s.step)}</span> · {visible(stateSays(s.state))}
        </p>
        <p class="said">
            {w("expected")}: {visible(s.expected.text)}
        </p>
        {s.real && (
            <p class={s.state === "failed" || s.state === "broken_off" ? "said c-bad" : "said"}>
                {w("found")}: {visible(s.real.text)}
            </p>
        )}
    </li>
);

const Facts = ({ of: p }: { of: OpsPlan }) => (
    <dl class="kv">
        <dt>{w("by")}</dt>
        <dd>
            <Text of={p.user} /> · <Time at={p.created_at} as="ago" />
        </dd>
        <dt>{w("approvals")}</dt>
        <dd>
            {p.approvals.length}/{p.needs} {visible(p.approvals.map((x) => x.user).join(", "))}
        </dd>
        <dt>{w("risk")}</dt>
        <dd>{gpuHours(p.at_risk_gpu_hours)}</dd>
        <dt>{w("expires")}</dt>
        <dd>{p.state === "waiting" ? <Time at={p.expires_at} as="until" /> : <Dash />}</dd>
    </dl>
);

const Whole = ({ of: p }: { of: OpsPlan }) => (
    <>
        {p.difference.length > 0 && (
            <div class="note bad" role="alert">
                <div class="grow">
                    <p class="strong">{w("changed")}</p>
                    {p.difference.map((d) => (
                        <p class="said" key={d.fact}>
                            {visible(`${d.fact}: ${d.planned ?? "–"} → ${d.now ?? "–"}`)}
                        </p>
                    ))}
                </div>
            </div>
        )}
        <section>
            <Facts of={p} />
        </section>
        <section>
            <h2>{w("jobs")}</h2>
            {p.jobs.length + p.things.length ? <Touched of={p} /> : <p class="dim">{w("no_jobs")}</p>}
        </section>
        <section>
            <h2>{w("steps")}</h2>
            <ol class="ops-steps">
                {p.steps.map((s) => (
                    <Step key={s.step} of={s} />
                ))}
            </ol>
        </section>
    </>
);

export function One({ id, again }: { id: string; again: () => void }) {
    const asked = useAsk(
        "GET /v1/ops/plans/{plan}",
        { path: { plan: id } },
        { topics: ["events", "jobs", "nodes"], every: 5000 },
    );
    const p = asked.data;
    const own = session.value;
    const isAdmin = own?.role === "admin";
    const both = () => (asked.again(), again());
    const waits = p?.state === "waiting" && p.difference.length === 0;
    const mayApprove = waits && isAdmin && p.user !== own.user && !p.approvals.some((x) => x.user === own.user);
    const mayApply =
        waits && p.approvals.length >= p.needs && (isAdmin || (own?.role === "user" && own.user === p.user));
    return (
        <Drawer
            label={id}
            onClose={() => setQuery({ plan: null })}
            head={
                <>
                    <Cli line={`argus ops show ${shell(id)}`} />
                    <h2 class="cut">{p ? titleOf(p) : visible(id)}</h2>
                    {p && (
                        <p class="small">
                            {t("state")}: {visible(stateSays(p.state))}
                        </p>
                    )}
                </>
            }
            foot={
                (mayApprove || mayApply) && (
                    <>
                        {mayApprove && (
                            <button type="button" class="btn" onClick={() => approvePlan(p, both)}>
                                {w("approve")}
                            </button>
                        )}
                        {mayApply && (
                            <button type="button" class="btn" onClick={() => applyPlan(p, both)}>
                                {w("apply")}
                            </button>
                        )}
                    </>
                )
            }
        >
            {asked.why ? (
                asked.why.status === 404 ? (
                    <Blank title={w("gone")} icon="unknown" />
                ) : (
                    <Refused why={asked.why} again={asked.again} />
                )
            ) : p ? (
                <Whole of={p} />
            ) : (
                <Loading rows={4} />
            )}
        </Drawer>
    );
}
