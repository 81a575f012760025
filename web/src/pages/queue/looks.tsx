// SPDX-License-Identifier: Apache-2.0
// looks.tsx - each node that was looked at for a waiting job and why it does not serve, and what has to end before it.
import type { Why } from "../../made/api";
import { visible } from "../../base/say";
import { words } from "../../base/words";
import { CopyCsv, Text, Time } from "../../kit/parts";

const w = words({
    nodes: ["Nodes that were looked at", "逐个节点"],
    all_serve: ["every node has room", "每个节点都有空位"],
    serve: ["{0} of {1} have room", "{1} 个中 {0} 个有空位"],
    planned: ["promised to this job", "已承诺给此作业"],
    ends: ["What has to end before", "需要先结束"],
    gpus: ["{0} {0|GPU|GPUs}", "{0} 块 GPU"],
    no_timeout: ["no timeout", "没有运行上限"],
    leaves: ["was told to go", "已通知让出"],
    another: ["another's job", "他人的作业"],
    promise: ["It starts at the latest", "最晚启动"],
    no_promise: [
        "No latest start can be promised: not all of them have a timeout.",
        "无法承诺最晚启动时间：其中有作业没有时限。",
    ],
    more: ["{0} more", "另有 {0} 个"],
});

const SHOWN = 24;
/** Those that are of use first: room, then the earliest. */
export function inOrder(nodes: Why["nodes"]): Why["nodes"] {
    const rank = (n: Why["nodes"][number]) => (n.code === "look_serves" ? 0 : n.planned ? 1 : n.until ? 2 : 3);
    return [...nodes].sort(
        (a, b) => rank(a) - rank(b) || (a.until ?? "").localeCompare(b.until ?? "") || a.name.localeCompare(b.name),
    );
}

export function Looks({ of }: { of: Why }) {
    const nodes = inOrder(of.nodes);
    const serve = nodes.filter((n) => n.code === "look_serves").length;
    if (!nodes.length) return null;
    return (
        <section>
            <h2>
                {w("nodes")}
                <small class="dim">{serve === nodes.length ? w("all_serve") : w("serve", serve, nodes.length)}</small>
                <CopyCsv
                    head={["node", "code", "free", "needs", "until", "planned"]}
                    rows={() => nodes.map((n) => [n.name, n.code, n.free, n.needs, n.until, String(n.planned)])}
                />
            </h2>
            <ul class="lines looks">
                {nodes.slice(0, SHOWN).map((n) => (
                    <li>
                        <span class="row">
                            <a class="link mono cut" href={`/nodes?node=${encodeURIComponent(n.name)}`}>
                                {visible(n.name)}
                            </a>
                            {n.planned && <span class="chip small">{w("planned")}</span>}
                            <span class="end num dim">
                                {n.free} / {n.needs}
                            </span>
                        </span>
                        <span class={`small said ${n.code === "look_serves" ? "c-ok" : "mid"}`}>{visible(n.text)}</span>
                    </li>
                ))}
            </ul>
            {nodes.length > SHOWN && <p class="small dim">{w("more", nodes.length - SHOWN)}</p>}
        </section>
    );
}

export function Ends({ of }: { of: Why }) {
    if (!of.frees.length && !of.promise) return null;
    return (
        <section>
            <h2>{w("ends")}</h2>
            <ul class="lines">
                {of.frees.map((f) => (
                    <li class="row">
                        {f.job ? (
                            <a class="link mono cut" href={`/jobs/${encodeURIComponent(f.job)}`}>
                                {visible(f.job)}
                            </a>
                        ) : (
                            <span class="dim">{w("another")}</span>
                        )}
                        {f.user && (
                            <span class="small dim">
                                <Text of={f.user} />
                            </span>
                        )}
                        <span class="small dim">{w("gpus", f.gpus)}</span>
                        <span class="end small">
                            {f.leaves ? w("leaves") : f.at ? <Time at={f.at} as="until" /> : w("no_timeout")}
                        </span>
                    </li>
                ))}
            </ul>
            <p class="small">
                {of.promise ? (
                    <>
                        {w("promise")}: <Time at={of.promise} />
                    </>
                ) : (
                    <span class="dim">{w("no_promise")}</span>
                )}
            </p>
        </section>
    );
}
