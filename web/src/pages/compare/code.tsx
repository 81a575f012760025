// SPDX-License-Identifier: Apache-2.0
// code.tsx - what differs between the code of the reference and of each other job: its files, and a file's lines when it
// is opened. Snapshots never change, so nothing is asked twice.
import { useEffect, useState } from "preact/hooks";
import type { Job, SnapshotUse } from "../../made/api";
import { send } from "../../api/client";
import { useAsk } from "../../api/use";
import { visible } from "../../base/say";
import { words } from "../../base/words";
import { Loading, Pending } from "../../kit/blank";
import { Panel, Text } from "../../kit/parts";
import { jobName } from "../jobs/columns";
import { textDiff, type DiffLine } from "./textdiff";

const w = words({
    code: ["Code", "代码"],
    against: ["{0} against {1}", "{0} 对比 {1}"],
    same: ["The same files", "文件相同"],
    other_owner: [
        "One of the two is common and the other is not: they are compared on the page Snapshots.",
        "两者一个公共一个私有：请在快照页比较。",
    ],
    too_long: ["Too long to be shown line by line", "过长，无法逐行显示"],
    unread: ["It could not be read", "无法读取"],
    more: ["There are more", "还有更多"],
    added: ["added", "新增"],
    removed: ["removed", "删除"],
    changed: ["changed", "修改"],
});

const BYTES_MOST = 256 << 10;

export interface CodePair {
    key: string;
    a: SnapshotUse;
    b: SnapshotUse;
    other: Job;
}

/** Snapshots of the other jobs that are not the reference's, each pair once. */
export function codePairs(ref: Job, others: Job[]): CodePair[] {
    const seen = new Set<string>();
    return others.flatMap((other) =>
        other.snapshots.flatMap((b) => {
            const a = ref.snapshots.find((x) => x.key === b.key);
            const id = `${a?.hash} ${b.hash}`;
            if (!a || a.hash === b.hash || seen.has(id)) return [];
            seen.add(id);
            return [{ key: b.key, a, b, other }];
        }),
    );
}

/** A path as the API takes it: below the shared root. */
export function belowRoot(job: Job, path: string): string {
    const root = job.output_dir.replace(/\/jobs\/[^/]*$/, "");
    return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

async function textOf(path: string, signal: AbortSignal): Promise<string> {
    const reply = await send("GET /v1/files/content", { query: { path }, range: `bytes=0-${BYTES_MOST}`, signal });
    return new TextDecoder().decode(await reply.arrayBuffer());
}

function Lines({ pair, of: ref, path, how }: { pair: CodePair; of: Job; path: string; how: string }) {
    const [lines, setLines] = useState<DiffLine[] | "long" | "unread" | null>(null);
    useEffect(() => {
        const gone = new AbortController();
        const read = (job: Job, of: SnapshotUse, isThere: boolean) =>
            isThere ? textOf(`${belowRoot(job, of.path)}/${path}`, gone.signal) : Promise.resolve("");
        Promise.all([read(ref, pair.a, how !== "added"), read(pair.other, pair.b, how !== "removed")]).then(
            ([a, b]) => gone.signal.aborted || setLines(textDiff(a, b) ?? "long"),
            () => gone.signal.aborted || setLines("unread"),
        );
        return () => gone.abort();
    }, [path, pair.a.hash, pair.b.hash]);
    if (lines === null) return <Loading rows={2} />;
    if (lines === "long" || lines === "unread")
        return <p class="small dim">{w(lines === "long" ? "too_long" : "unread")}</p>;
    return (
        <pre class="textdiff" tabIndex={0}>
            {lines.map((l) => (
                <span class={l.sign === "+" ? "new" : l.sign === "-" ? "old" : undefined}>
                    {l.sign} {visible(l.text)}
                    {"\n"}
                </span>
            ))}
        </pre>
    );
}

function Pair({ pair, of: ref }: { pair: CodePair; of: Job }) {
    const { a, b } = pair;
    const [open, setOpen] = useState<string | null>(null);
    const asked = useAsk(a.common === b.common ? "GET /v1/snapshots/{name}:diff" : null, {
        path: { name: a.name },
        query: a.common ? { with: b.name, common: true } : { with: b.name, user: ref.user },
    });
    const d = asked.data;
    const tone = { added: "c-ok", removed: "c-bad", changed: "c-warn" };
    return (
        <div class="code-pair">
            <h3>
                <code>{visible(pair.key)}</code>{" "}
                <span class="dim">{w("against", visible(b.name), visible(a.name))}</span> ·{" "}
                <Text of={jobName(pair.other)} />
            </h3>
            {a.common !== b.common ? (
                <p class="small dim">{w("other_owner")}</p>
            ) : asked.why || !d ? (
                <Pending of={asked} lines={2} />
            ) : d.differences.length === 0 ? (
                <p class="small dim">{w("same")}</p>
            ) : (
                <ul class="code-files">
                    {d.differences.map((x) => (
                        <li>
                            <button
                                type="button"
                                class="link"
                                aria-expanded={open === x.path}
                                onClick={() => setOpen(open === x.path ? null : x.path)}
                            >
                                <code>{visible(x.path)}</code>
                            </button>{" "}
                            <span class={`small ${tone[x.how]}`}>{w(x.how)}</span>
                            {open === x.path && <Lines pair={pair} of={ref} path={x.path} how={x.how} />}
                        </li>
                    ))}
                    {d.more && <li class="small dim">{w("more")}</li>}
                </ul>
            )}
        </div>
    );
}

export function Code({ reference, others }: { reference: Job; others: Job[] }) {
    const pairs = codePairs(reference, others);
    if (!pairs.length) return null;
    return (
        <Panel title={w("code")} id="code">
            {pairs.map((p) => (
                <Pair key={`${p.a.hash}${p.b.hash}`} pair={p} of={reference} />
            ))}
        </Panel>
    );
}
