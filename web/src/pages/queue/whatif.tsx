// SPDX-License-Identifier: Apache-2.0
// whatif.tsx - what if it asked for something else? The scheduler is run ahead with and without the change: its start
// before and after, and who starts later. A button makes it so.
import { useEffect, useState } from "preact/hooks";
import type { JobChange, JobItem, Plan, Pool } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { span, visible } from "../../base/say";
import { words } from "../../base/words";
import { Loading } from "../../kit/blank";
import { Cli, shell, Text, Time, toast } from "../../kit/parts";
import { t } from "../../words/shared";
import { changeCli, changed, pushedBack, wishOf, type Wish } from "./asked";

const w = words({
    title: ["What if it asked otherwise", "换一种申请"],
    nodes: ["Nodes", "节点数"],
    each: ["GPUs on each", "每节点 GPU"],
    timeout: ["Timeout", "运行上限"],
    timeout_as: ["as it is; 90m, 6h, 2d", "不变；如 90m、6h、2d"],
    any: ["any", "任意"],
    before: ["As it is", "现在"],
    after: ["Then", "更改后"],
    at_once: ["at once", "立即启动"],
    not_known: ["cannot be told", "无法预计"],
    half: ["half likely", "五成把握"],
    most: ["90% likely", "九成把握"],
    others: ["Who would start at another time", "受影响的作业"],
    none: ["No other job would start at another time.", "不影响其他作业的启动时间。"],
    later: ["{0} later", "推迟 {0}"],
    sooner: ["{0} sooner", "提前 {0}"],
    nobody_knows: ["cannot be told any more", "无法再预计"],
    another: ["another's job", "他人的作业"],
    go: ["Change the job", "更改作业"],
    done: ["It waits so now", "已按新的申请排队"],
});

/** One moment of two plans. */
function Moment({ eta, now }: { eta: Plan["eta"]; now: boolean }) {
    if (now) return <b class="c-ok">{w("at_once")}</b>;
    if (!eta) return <span class="dim">{w("not_known")}</span>;
    return (
        <>
            <b>
                <Time at={eta.p50} />
            </b>{" "}
            <span class="small dim">{w("half")}</span> · <Time at={eta.p90} />{" "}
            <span class="small dim">{w("most")}</span>
        </>
    );
}

function Others({ of }: { of: Plan["others"] }) {
    const rows = pushedBack(of);
    if (!rows.length) return <p class="small dim">{w("none")}</p>;
    return (
        <>
            <h3>{w("others")}</h3>
            <ul class="lines">
                {rows.slice(0, 20).map((o) => (
                    <li class="row">
                        {o.job ? (
                            <a class="link cut mono" href={`/jobs/${encodeURIComponent(o.job)}`}>
                                {visible(o.job)}
                            </a>
                        ) : (
                            <span class="dim">{w("another")}</span>
                        )}
                        {o.user && (
                            <span class="small dim">
                                <Text of={o.user} />
                            </span>
                        )}
                        <span class={`end ${o.by > 0 ? "c-bad" : "c-ok"}`}>
                            {Number.isFinite(o.by)
                                ? w(o.by > 0 ? "later" : "sooner", span(Math.abs(o.by)))
                                : w("nobody_knows")}
                        </span>
                    </li>
                ))}
            </ul>
        </>
    );
}

type Tried = { plan?: Plan; why?: Refusal } | "asking";

function Answer({ of }: { of: Tried }) {
    if (of === "asking") return <Loading rows={2} />;
    if (of.why)
        return (
            <p class="note bad said" role="alert">
                {visible(of.why.problem?.problems?.[0]?.detail ?? of.why.detail)}
            </p>
        );
    const p = of.plan!;
    const bad = p.problems.filter((x) => x.level === "warning");
    return (
        <>
            <dl class="kv">
                <dt>{w("before")}</dt>
                <dd>
                    <Moment eta={p.before} now={false} />
                </dd>
                <dt>{w("after")}</dt>
                <dd>
                    <Moment eta={p.eta} now={!!p.placement} />
                </dd>
            </dl>
            {!p.placement && p.why && <p class="small mid said">{visible(p.why.text)}</p>}
            {bad.map((x) => (
                <p class="small mid said">{visible(x.detail)}</p>
            ))}
            <Others of={p.others} />
        </>
    );
}

const SOON = 400;

export function WhatIf(p: { job: JobItem; pools: Pool[]; begin: JobChange | null; done: () => void }) {
    const { job } = p;
    const [wish, setWish] = useState<Wish>(wishOf(job));
    const [tried, setTried] = useState<Tried | null>(null);
    useEffect(() => {
        const from = p.begin && Object.fromEntries(Object.entries(p.begin).map(([k, v]) => [k, String(v)]));
        if (from) setWish({ ...wishOf(job), ...from });
    }, [JSON.stringify(p.begin)]);
    const change = changed(job, wish);
    const key = JSON.stringify(change);
    useEffect(() => {
        if (!change) return setTried(null);
        const gone = new AbortController();
        const soon = setTimeout(() => {
            setTried("asking");
            call("POST /v1/jobs/{id}:change", {
                path: { id: job.id },
                query: { dry_run: true, no_trial: true },
                body: change,
                signal: gone.signal,
            }).then(
                (plan) => gone.signal.aborted || setTried({ plan: plan as Plan }),
                (why) => gone.signal.aborted || !(why instanceof Refusal) || setTried({ why }),
            );
        }, SOON);
        return () => {
            clearTimeout(soon);
            gone.abort();
        };
    }, [key, job.id]);
    const make = async () => {
        try {
            await call("POST /v1/jobs/{id}:change", { path: { id: job.id }, body: change! });
            toast(w("done"));
            p.done();
        } catch (e) {
            if (e instanceof Refusal) setTried({ why: e });
        }
    };
    const field = (key: keyof Wish, says: string, more: object = {}) => (
        <label>
            <span>{says}</span>
            <input
                class="field"
                value={wish[key]}
                onInput={(e) => setWish({ ...wish, [key]: e.currentTarget.value })}
                {...more}
            />
        </label>
    );
    const names = p.pools.flatMap((x) => (x.pool ? [x.pool] : []));
    const ran = job.attempt > 0;
    return (
        <section class="whatif act" id="whatif">
            <h2>{w("title")}</h2>
            <div class="whatif-form labelled">
                <label>
                    <span>{t("pool")}</span>
                    <select
                        class="field"
                        value={wish.pool}
                        onChange={(e) => setWish({ ...wish, pool: e.currentTarget.value })}
                    >
                        {!job.pool && <option value="">{w("any")}</option>}
                        {[...new Set([...(job.pool ? [job.pool] : []), ...names])].map((n) => (
                            <option value={n}>{visible(n)}</option>
                        ))}
                    </select>
                </label>
                {field("nnodes", w("nodes"), { type: "number", min: 1, disabled: ran })}
                {field("n_gpus_per_node", w("each"), { type: "number", min: 0, disabled: ran })}
                {field("timeout", w("timeout"), { placeholder: w("timeout_as") })}
                {field("priority", t("priority"), { type: "number", min: 0, max: 100 })}
            </div>
            {tried && <Answer of={tried} />}
            {change && (
                <div class="row wrap">
                    <button
                        type="button"
                        class="btn main"
                        disabled={tried === "asking" || !tried || !tried.plan}
                        onClick={() => void make()}
                    >
                        {w("go")}
                    </button>
                    <Cli line={changeCli(job.id, change, shell)} />
                </div>
            )}
        </section>
    );
}
