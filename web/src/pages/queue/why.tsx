// SPDX-License-Identifier: Apache-2.0
// why.tsx - the drawer of a job that waits: its reason, what would start it, when it is expected, what each pool has.
import { useState } from "preact/hooks";
import type { Hint, JobChange, Pool } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { useAsk } from "../../api/use";
import { shape, visible } from "../../base/say";
import { query } from "../../base/url";
import { words } from "../../base/words";
import { Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { ask, Drawer } from "../../kit/over";
import { Cli, Dash, Meter, shell, State, Text, Time, toast } from "../../kit/parts";
import { t } from "../../words/shared";
import { Flags, isOver, jobName } from "../jobs/columns";
import { begunWith, changeOf } from "./asked";
import { Ends, Looks } from "./looks";
import { WhatIf } from "./whatif";

const w = words({
    why: ["Why it waits", "为什么等待"],
    now: ["Why it is where it is", "当前原因"],
    change: ["Would start it now", "这样可立即启动"],
    no_change: ["No change of this job alone would start it now.", "仅修改此作业无法使其立即启动。"],
    when: ["Expected start", "预计启动"],
    p50: ["half likely by then", "五成把握"],
    p90: ["90% likely by then", "九成把握"],
    no_eta: ["Nobody can tell yet: no run like it has ended here.", "暂无法预计：还没有同类作业结束。"],
    pools: ["What the pools have", "资源池现状"],
    free_of: ["{0} of {1} free", "空闲 {0} / {1}"],
    largest: ["fits a job of {0}", "最大可启动 {0}"],
    next: ["next free", "下次空闲"],
    stop_title: ["Stop {0}?", "停止 {0}？"],
    stop_text: [
        "It leaves the queue and holds no GPUs yet, so nothing is lost but its place. It can be submitted again.",
        "它将离开队列。尚未占用 GPU，只失去排队位次，可重新提交。",
    ],
    stop_go: ["Stop the job", "停止作业"],
    set: ["Set", "设置"],
    done: ["Done", "已完成"],
    open: ["Open the job", "打开作业"],
    change_so: ["Change it so", "按此更改"],
    try_so: ["What would come of it?", "看看结果"],
});

/** The smallest change that helps, as keys of the spec. */
function hintKeys(h: Hint): string[] {
    const keys: string[] = [];
    if (h.pool) keys.push(`pool: ${h.pool}`);
    if (h.nnodes) keys.push(`nnodes: ${h.nnodes}`);
    if (h.n_gpus_per_node) keys.push(`n_gpus_per_node: ${h.n_gpus_per_node}`);
    if (h.timeout) keys.push(`timeout: ${h.timeout}s`);
    if (h.priority) keys.push(`priority: ${h.priority}`);
    return keys;
}

export function Why(p: { id: string; pools: Pool[]; may: boolean; close: () => void }) {
    const about = (id: string) => id === p.id;
    const job = useAsk("GET /v1/jobs/{id}", { path: { id: p.id } }, { topics: ["jobs"], about });
    const why = useAsk("GET /v1/jobs/{id}/why", { path: { id: p.id } }, { topics: ["jobs", "pools"] });
    const [prio, setPrio] = useState<string | null>(null);
    const [begin, setBegin] = useState<JobChange | null>(begunWith(query.value));
    const j = job.data;
    const again = () => {
        job.again();
        why.again();
    };
    const act = async (does: () => Promise<unknown>) => {
        try {
            await does();
            toast(w("done"));
        } catch (e) {
            toast(e instanceof Refusal ? visible(e.detail) : String(e));
        }
        again();
    };
    const path = { id: p.id };
    const held = j?.flags.includes("HELD");
    const change = why.data?.hint ? changeOf(why.data.hint) : null;
    const stop = () =>
        ask({
            title: w("stop_title", j ? jobName(j) : p.id),
            isBad: true,
            act: w("stop_go"),
            cli: `argus stop ${shell(p.id)}`,
            body: <p>{w("stop_text")}</p>,
            does: async () => {
                await call("POST /v1/jobs/{id}:stop", { path });
                p.close();
            },
        });
    return (
        <Drawer
            label={w("why")}
            onClose={p.close}
            head={
                <>
                    <div class="row">
                        {j && <State of={j.state} />}
                        {!!why.data?.position && <span class="dim">#{why.data.position}</span>}
                        <Cli line={`argus why ${shell(p.id)}`} />
                    </div>
                    <h2 class="cut">
                        <Text of={j ? jobName(j) : p.id} />
                    </h2>
                    {j && (
                        <div class="small dim row wrap">
                            <a class="link mono" href={`/jobs/${encodeURIComponent(j.id)}`}>
                                {visible(j.id)}
                            </a>
                            <span>
                                · <Text of={j.user} /> · <Text of={j.project} /> · {shape(j)}
                                {j.pool && (
                                    <>
                                        {" "}
                                        · <Text of={j.pool} />
                                    </>
                                )}
                            </span>
                            <Flags of={j} />
                        </div>
                    )}
                </>
            }
            foot={
                p.may &&
                j &&
                !isOver(j) && (
                    <>
                        {j.state === "QUEUED" && (
                            <>
                                <button
                                    type="button"
                                    class="btn"
                                    onClick={() =>
                                        void act(() =>
                                            held
                                                ? call("POST /v1/jobs/{id}:release", { path })
                                                : call("POST /v1/jobs/{id}:hold", { path }),
                                        )
                                    }
                                >
                                    <Icon name={held ? "running" : "held"} />
                                    {held ? t("release") : t("hold")}
                                </button>
                                <form
                                    class="prio"
                                    onSubmit={(e) => {
                                        e.preventDefault();
                                        void act(() =>
                                            call("POST /v1/jobs/{id}:priority", {
                                                path,
                                                body: { priority: Number(prio ?? j.priority) },
                                            }),
                                        );
                                    }}
                                >
                                    <label for="prio" class="dim">
                                        {t("priority")}
                                    </label>
                                    <input
                                        id="prio"
                                        class="field"
                                        type="number"
                                        min={0}
                                        max={100}
                                        value={prio ?? String(j.priority)}
                                        onInput={(e) => setPrio(e.currentTarget.value)}
                                    />
                                    {prio !== null && Number(prio) !== j.priority && (
                                        <button type="submit" class="btn">
                                            {w("set")}
                                        </button>
                                    )}
                                </form>
                            </>
                        )}
                        <span class="grow" />
                        <button type="button" class="btn bad" onClick={stop}>
                            {t("stop")}
                        </button>
                    </>
                )
            }
        >
            {why.why || !why.data ? (
                <Pending of={why} lines={3} />
            ) : (
                <>
                    <section>
                        <h2>
                            {why.data.state === "QUEUED" ? w("why") : w("now")}
                            <small class="mono">{visible(why.data.code)}</small>
                        </h2>
                        <p class="why-text said">{visible(why.data.text) || <Dash />}</p>
                    </section>
                    {why.data.state === "QUEUED" && (
                        <>
                            <section>
                                <h2>{w("change")}</h2>
                                {why.data.hint || why.data.hint_text ? (
                                    <>
                                        <p class="said">{visible(why.data.hint_text)}</p>
                                        {why.data.hint && (
                                            <div class="patch hint">
                                                {hintKeys(why.data.hint).map((k) => (
                                                    <div>{visible(k)}</div>
                                                ))}
                                            </div>
                                        )}
                                        {p.may && change && (
                                            <div class="row act">
                                                <button
                                                    type="button"
                                                    class="btn main"
                                                    onClick={() =>
                                                        void act(() =>
                                                            call("POST /v1/jobs/{id}:change", { path, body: change }),
                                                        )
                                                    }
                                                >
                                                    {w("change_so")}
                                                </button>
                                                <button
                                                    type="button"
                                                    class="btn"
                                                    onClick={() => {
                                                        setBegin({ ...change });
                                                        document
                                                            .getElementById("whatif")
                                                            ?.scrollIntoView({ block: "nearest" });
                                                    }}
                                                >
                                                    {w("try_so")}
                                                </button>
                                            </div>
                                        )}
                                    </>
                                ) : (
                                    <p class="dim">{w("no_change")}</p>
                                )}
                            </section>
                            <section>
                                <h2>{w("when")}</h2>
                                {why.data.eta ? (
                                    <div class="ladder">
                                        <div>
                                            <b>
                                                <Time at={why.data.eta.p50} />
                                            </b>
                                            <span>{w("p50")}</span>
                                            <span class="dim">
                                                <Time at={why.data.eta.p50} as="until" />
                                            </span>
                                        </div>
                                        <div>
                                            <b>
                                                <Time at={why.data.eta.p90} />
                                            </b>
                                            <span>{w("p90")}</span>
                                            <span class="dim">
                                                <Time at={why.data.eta.p90} as="until" />
                                            </span>
                                        </div>
                                    </div>
                                ) : (
                                    <p class="dim">{w("no_eta")}</p>
                                )}
                            </section>
                            <Ends of={why.data} />
                            {p.may && j && <WhatIf job={j} pools={p.pools} begin={begin} done={again} />}
                            <Looks of={why.data} />
                            <section>
                                <h2>{w("pools")}</h2>
                                <div class="pools">
                                    {p.pools
                                        .filter((x) => x.pool === null || !j?.pool || x.pool === j.pool)
                                        .map((x) => (
                                            <div>
                                                <div class="row">
                                                    <span class="strong">
                                                        {x.pool ? <Text of={x.pool} /> : t("all")}
                                                    </span>
                                                    <span class="grow" />
                                                    <span>{w("free_of", x.gpus.free, x.gpus.total)}</span>
                                                </div>
                                                <Meter
                                                    part={
                                                        x.gpus.total ? (x.gpus.total - x.gpus.free) / x.gpus.total : 0
                                                    }
                                                />
                                                <div class="small dim row">
                                                    <span>{w("largest", x.largest_gang)}</span>
                                                    {x.next_free && (
                                                        <span>
                                                            · {w("next")} <Time at={x.next_free} />
                                                        </span>
                                                    )}
                                                </div>
                                            </div>
                                        ))}
                                </div>
                            </section>
                        </>
                    )}
                </>
            )}
        </Drawer>
    );
}
