// SPDX-License-Identifier: Apache-2.0
// stacks.tsx - where each process of a job stood when it hung, beneath the finding: the answers of its nodes, which are
// files of the attempt. Asked for when it is opened, a node's when that is.
import { useState } from "preact/hooks";
import type { Finding, Job } from "../../made/api";
import { useAsk } from "../../api/use";
import { bytes, visible } from "../../base/say";
import { withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { askOf, inTurn, isOdd, standings } from "./standing";

const k = words({
    title: ["Where each process stood", "各进程所处位置"],
    none: ["No node has answered", "没有节点应答"],
    strange: ["This is no answer of a node", "不是节点的应答"],
    large: ["{0}: too large to be shown here.", "{0}，过大，无法在此显示。"],
    stopped: ["stopped", "已停止"],
    odd: ["stands elsewhere", "与其他不同"],
});

const MOST_BYTES = 4 << 20;
const END = ".json";

function Node({ path, name, size, at, of: f }: NodeProps) {
    const [isOpen, setOpen] = useState(f.node === name);
    const fits = size <= MOST_BYTES;
    const asked = useAsk(isOpen && fits ? "GET /v1/files/content" : null, { query: { path } });
    const rows = asked.data === undefined ? undefined : standings(asked.data);
    return (
        <details open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
            <summary>
                <Text of={name} /> · <Time at={at} /> · {bytes(size)}
            </summary>
            {!fits ? (
                <p class="small">
                    {k("large", bytes(size))}{" "}
                    <a class="link" href={withQuery("/files", { path: path.slice(0, path.lastIndexOf("/")) })}>
                        {t("files")}
                    </a>
                </p>
            ) : asked.why ? (
                <Refused why={asked.why} again={asked.again} />
            ) : rows === undefined ? (
                <Loading rows={2} />
            ) : rows === null ? (
                <Blank title={k("strange")} />
            ) : (
                <ul>
                    {inTurn(rows, name, f).map((s) => (
                        <li key={s.pid}>
                            <details open={isOdd(s, name, f)}>
                                <summary>
                                    {s.rank !== null && <b>rank {visible(s.rank)} </b>}
                                    {s.actor && `${visible(s.actor)} `}
                                    <span class="dim">pid {s.pid}</span>
                                    {s.state === "T" && <span class="flag bad">{k("stopped")}</span>}
                                    {isOdd(s, name, f) && <span class="flag warn">{k("odd")}</span>}
                                </summary>
                                <pre class="quote quiet">{visible(s.text)}</pre>
                            </details>
                        </li>
                    ))}
                </ul>
            )}
        </details>
    );
}
interface NodeProps {
    path: string;
    name: string;
    size: number;
    at: string | null;
    of: Finding;
}

function Nodes({ dir, of: f }: { dir: string; of: Finding }) {
    const cited = askOf(f);
    // A finding that accuses nobody quotes no answer: it is made of the newest ones.
    const asks = useAsk(cited === null ? "GET /v1/files" : null, { query: { path: dir, limit: 1000 } });
    const made = (asks.data?.entries ?? []).filter((e) => e.kind === "directory" && /^\d+$/.test(e.name ?? ""));
    const n = cited ?? Math.max(0, ...made.map((e) => Number(e.name)));
    const path = `${dir}/${n}`;
    const asked = useAsk(n ? "GET /v1/files" : null, { query: { path, limit: 1000 } });
    const answers = (asked.data?.entries ?? []).filter((e) => e.name?.endsWith(END) && !e.name.startsWith("."));
    const nodes = answers.map((e) => ({ ...e, node: e.name!.slice(0, -END.length) }));
    nodes.sort((a, b) => Number(b.node === f.node) - Number(a.node === f.node) || a.node.localeCompare(b.node));
    const why = [asks, asked].find((x) => x.why)?.why;
    if (why && why.status !== 404) return <Refused why={why} />;
    if (!why && (n ? !asked.data : !asks.data)) return <Loading rows={2} />;
    if (!nodes.length) return <p class="small dim">{k("none")}</p>;
    return (
        <>
            {nodes.map((e) => (
                <Node
                    key={e.node}
                    path={`${path}/${e.name}`}
                    name={e.node}
                    size={e.bytes ?? 0}
                    at={e.changed_at}
                    of={f}
                />
            ))}
        </>
    );
}

export function Stacks({ job, of: f }: { job: Job; of: Finding }) {
    const [isOpen, setOpen] = useState(false);
    if (f.class !== "timeout_or_hang" || !f.attempt) return null;
    return (
        <details class="stacks" onToggle={(e) => e.target === e.currentTarget && setOpen(e.currentTarget.open)}>
            <summary class="small mid">{k("title")}</summary>
            {isOpen && <Nodes dir={`jobs/${job.id}/attempts/${f.attempt}/stacks`} of={f} />}
        </details>
    );
}
