// SPDX-License-Identifier: Apache-2.0
// page.tsx - snapshots of code: which there are, what is in one, what differs between two. ?name= is the one that is
// looked at, ?with= what it is compared with.
import { useState } from "preact/hooks";
import type { Snapshot } from "../../made/api";
import { call, session } from "../../api/client";
import { sendBytes } from "../../api/upload";
import { useAsk } from "../../api/use";
import { packed } from "../../base/anchor";
import { bytes, num, visible } from "../../base/say";
import { scalar } from "../../base/spectext";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { List, ListCsv, type Column } from "../../kit/list";
import { ask, Drawer } from "../../kit/over";
import { Cli, CopyCsv, Head, Meter, shell, Text, Time } from "../../kit/parts";
import { Asks, Text1, Tick } from "../../library/asks";
import { t } from "../../words/shared";

const w = words({
    title: ["Snapshots", "快照"],
    empty: ["No snapshots yet", "还没有快照"],
    empty_text: [
        "A snapshot is code that never changes again. Send an archive here, or a directory with the command line.",
        "快照是不再变化的代码。在此上传压缩包，或用命令行提交目录。",
    ],
    add: ["Add", "添加"],
    a_title: ["A snapshot of an archive", "从压缩包创建快照"],
    a_name: ["Name and version", "名称与版本"],
    a_hint: ["mine@1: a version is made once and never changes", "如 mine@1：每个版本只创建一次，不再变化"],
    a_file: ["A .tar, .tar.gz, .zip or git bundle", ".tar、.tar.gz、.zip 或 git bundle"],
    a_common: ["For everybody", "公共"],
    a_go: ["Make the snapshot", "创建快照"],
    a_done: ["Snapshot made", "已创建快照"],
    owner: ["Owner", "所有者"],
    files: ["Files", "文件数"],
    size: ["Size", "大小"],
    made: ["Made", "创建于"],
    hash: ["Hash", "哈希"],
    path: ["Path", "路径"],
    needs: ["Needs", "依赖"],
    no_needs: ["nothing of its machine", "对机器无要求"],
    tree: ["What is in it", "内容"],
    n_files: ["{0} {0|file|files}", "{0} 个文件"],
    up: ["Up", "上一级"],
    common: ["common", "公共"],
    diff: ["Differences", "差异"],
    diff_with: ["Compare with", "比较对象"],
    diff_pick: ["Pick another snapshot", "选择另一个快照"],
    same: ["They are the same, byte for byte", "逐字节相同"],
    added: ["added", "新增"],
    removed: ["removed", "删除"],
    changed: ["changed", "修改"],
    sums: ["{0} added, {1} removed, {2} changed", "新增 {0}，删除 {1}，更改 {2}"],
    more: ["Only the first are shown", "仅显示前面的"],
    use: ["New job with it", "用于新作业"],
    rm: ["Remove", "删除"],
    rm_title: ["Remove {0}?", "删除 {0}？"],
    rm_text: [
        "{0} {0|file|files}, {1}, {0|goes|go} from the shared root and cannot be brought back. A job that names the snapshot cannot be retried.",
        "共享根目录上的 {0} 个文件（{1}）将被删除且无法恢复。引用它的作业无法再重试。",
    ],
    rm_go: ["Remove the snapshot", "删除快照"],
    rm_done: ["Removed", "已删除"],
});

/** Several people may have one of a name: whose it is belongs to it. */
const keyOf = (s: Snapshot) => `${s.common ? "" : s.user}:${s.name}`;
const whose = (s: Snapshot) => (s.common ? { common: true } : s.user === session.value?.user ? {} : { user: s.user });
const cliOf = (s: Snapshot) => (s.common ? " --common" : "");

const columns = (): Column<Snapshot>[] => [
    {
        key: "name",
        title: t("name"),
        width: 0,
        rank: 0,
        draw: (s) => (
            <span class="row">
                <a class="name cut" href={withQuery("/snapshots", { name: keyOf(s) })} tabIndex={-1}>
                    <Text of={s.name} />
                </a>
                {s.common && <span class="flag quiet">{w("common")}</span>}
            </span>
        ),
        sort: (s) => s.name,
        csv: (s) => s.name,
    },
    {
        key: "verl",
        title: "verl",
        width: 80,
        rank: 3,
        draw: (s) => <Text of={s.verl} />,
        sort: (s) => s.verl,
        csv: (s) => s.verl,
    },
    {
        key: "user",
        title: w("owner"),
        width: 110,
        rank: 4,
        draw: (s) => <Text of={s.user} />,
        sort: (s) => s.user,
        csv: (s) => s.user,
    },
    {
        key: "files",
        title: w("files"),
        width: 80,
        rank: 5,
        num: true,
        draw: (s) => num(s.files),
        sort: (s) => s.files,
        csv: (s) => s.files,
    },
    {
        key: "bytes",
        title: w("size"),
        width: 100,
        rank: 1,
        num: true,
        draw: (s) => bytes(s.bytes),
        sort: (s) => s.bytes,
        csv: (s) => s.bytes,
    },
    {
        key: "created_at",
        title: w("made"),
        width: 120,
        rank: 2,
        draw: (s) => <Time at={s.created_at} />,
        sort: (s) => (s.created_at ? Date.parse(s.created_at) : null),
        csv: (s) => s.created_at,
    },
];

/** What is in a snapshot, a directory at a time: ?at= is the directory. */
function Tree({ of: s }: { of: Snapshot }) {
    const at = query.value.get("at") ?? "";
    const asked = useAsk("GET /v1/snapshots/{name}:files", {
        path: { name: s.name },
        query: { below: at || undefined, ...whose(s) },
    });
    const up = at.split("/").slice(0, -1).join("/");
    const below = (name: string) => (at ? `${at}/${name}` : name);
    return (
        <section>
            <h3>
                {w("tree")} {at && <code class="dim">{visible(at)}/</code>}
            </h3>
            {asked.why || !asked.data ? (
                <Pending of={asked} lines={3} />
            ) : (
                <ul class="snap-tree">
                    {at && (
                        <li>
                            <button type="button" class="link" onClick={() => setQuery({ at: up })}>
                                {w("up")}
                            </button>
                        </li>
                    )}
                    {asked.data.entries.map((e) => (
                        <li>
                            {e.kind === "directory" ? (
                                <button type="button" class="link" onClick={() => setQuery({ at: below(e.name) })}>
                                    <Text of={`${e.name}/`} mono />
                                </button>
                            ) : (
                                <Text of={e.name} mono />
                            )}
                            <span class="dim nowrap">
                                {e.kind === "directory" && `${w("n_files", num(e.files))} · `}
                                {bytes(e.bytes)}
                            </span>
                        </li>
                    ))}
                    {asked.data.more && <li class="small dim">{w("more")}</li>}
                </ul>
            )}
        </section>
    );
}

function Diff({ of: s, all }: { of: Snapshot; all: Snapshot[] }) {
    const other = query.value.get("with") ?? "";
    const asked = useAsk(other ? "GET /v1/snapshots/{name}:diff" : null, {
        path: { name: s.name },
        query: { with: other, ...whose(s) },
    });
    const d = asked.data;
    const tone = { added: "c-ok", removed: "c-bad", changed: "c-warn" };
    return (
        <section>
            <h3>{w("diff")}</h3>
            <div class="row">
                <select
                    class="field grow"
                    aria-label={w("diff_with")}
                    value={other}
                    onChange={(e) => setQuery({ with: e.currentTarget.value })}
                >
                    <option value="">{w("diff_pick")}</option>
                    {[...new Set(all.map((x) => x.name))]
                        .filter((name) => name !== s.name)
                        .map((name) => (
                            <option value={name}>{visible(name)}</option>
                        ))}
                </select>
                {d && <CopyCsv head={["path", "how"]} rows={() => d.differences.map((x) => [x.path, x.how])} />}
            </div>
            {asked.why ? (
                <Refused why={asked.why} again={asked.again} />
            ) : d ? (
                <>
                    <p class="small mid snap-sums">
                        {d.differences.length ? w("sums", d.added, d.removed, d.changed) : w("same")}
                    </p>
                    <ul class="lib-diff">
                        {d.differences.map((x) => (
                            <li>
                                <span class={tone[x.how]}>{w(x.how)}</span>
                                <Text of={x.path} mono />
                            </li>
                        ))}
                    </ul>
                    {d.more && <p class="small dim">{w("more")}</p>}
                    <Cli line={`argus snapshot diff ${shell(s.name)} ${shell(other)}`} />
                </>
            ) : null}
        </section>
    );
}

function Shown({ of: s, all, again }: { of: Snapshot; all: Snapshot[]; again: () => void }) {
    const close = () => setQuery({ name: null, with: null, at: null });
    const me = session.value;
    const may = me?.role === "admin" || (me?.role === "user" && s.user === me.user && !s.common);
    const remove = () =>
        ask({
            title: w("rm_title", visible(s.name)),
            isBad: true,
            act: w("rm_go"),
            cli: `argus snapshot rm ${shell(s.name)}${cliOf(s)}`,
            done: w("rm_done"),
            body: <p>{w("rm_text", num(s.files), bytes(s.bytes))}</p>,
            does: async () => {
                await call("DELETE /v1/snapshots/{name}", { path: { name: s.name }, query: whose(s) });
                close();
                again();
            },
        });
    const key = s.verl ? "code" : "working_dir";
    return (
        <Drawer
            label={visible(s.name)}
            onClose={close}
            head={
                <h2 class="cut">
                    <Text of={s.name} />
                </h2>
            }
            foot={
                <>
                    <Cli line={`argus snapshot show ${shell(s.name)}${cliOf(s)}`} />
                    <span class="grow" />
                    {may && (
                        <button type="button" class="btn bad act" onClick={remove}>
                            {w("rm")}
                        </button>
                    )}
                    {me?.role !== "viewer" && (
                        <a
                            class="btn act"
                            href={`/submit#spec=${packed(`workload: ${s.verl ? "grpo" : "ray"}\nnnodes: 1\n${key}: ${scalar(s.name)}\n`)}`}
                        >
                            {w("use")}
                        </a>
                    )}
                </>
            }
        >
            <div class="lib-body">
                <section>
                    <dl class="kv">
                        <dt>{w("owner")}</dt>
                        <dd>
                            <Text of={s.user} />
                        </dd>
                        {s.verl && (
                            <>
                                <dt>verl</dt>
                                <dd>
                                    <Text of={s.verl} />
                                </dd>
                            </>
                        )}
                        <dt>{w("files")}</dt>
                        <dd>
                            {num(s.files)} · {bytes(s.bytes)}
                        </dd>
                        <dt>{w("hash")}</dt>
                        <dd class="mono">{visible(s.hash.slice(0, 16))}</dd>
                        <dt>{w("path")}</dt>
                        <dd class="mono">{visible(s.path)}</dd>
                        <dt>{w("needs")}</dt>
                        <dd>{s.needs.length ? <Text of={s.needs.join(", ")} mono /> : w("no_needs")}</dd>
                    </dl>
                </section>
                <Tree of={s} />
                <Diff of={s} all={all} />
            </div>
        </Drawer>
    );
}

function Add({ close, done }: { close: () => void; done: () => void }) {
    const [name, setName] = useState("");
    const [file, setFile] = useState<File | null>(null);
    const [common, setCommon] = useState(false);
    const [sent, setSent] = useState(0);
    return (
        <Asks
            title={w("a_title")}
            act={w("a_go")}
            cli={`argus snapshot add ${shell(file?.name ?? "DIR")} --name ${shell(name || "NAME@VERSION")}${common ? " --common" : ""}`}
            off={!name || !file}
            close={close}
            done={w("a_done")}
            does={async () => {
                const upload = await sendBytes(file!, `snapshot ${name}`, setSent, new AbortController().signal);
                await call("POST /v1/snapshots", { body: { name, upload, ...(common ? { common } : {}) } });
                done();
            }}
        >
            <Text1 says={w("a_name")} value={name} set={setName} hint={w("a_hint")} first needed />
            <label>
                {w("a_file")}
                <input type="file" onChange={(e) => setFile(e.currentTarget.files?.[0] ?? null)} />
            </label>
            {file && sent > 0 && <Meter part={file.size ? sent / file.size : 1} />}
            {session.value?.role === "admin" && <Tick says={w("a_common")} on={common} set={setCommon} />}
        </Asks>
    );
}

export default function Snapshots() {
    const asked = useAsk("GET /v1/snapshots");
    const rows = asked.data?.snapshots;
    const name = query.value.get("name");
    const [adds, setAdds] = useState(false);
    const shown = rows?.find((s) => keyOf(s) === name) ?? rows?.find((s) => s.name === name);
    const may = session.value?.role !== "viewer";
    const known = columns();
    const act = may && (
        <button type="button" class="btn act" onClick={() => setAdds(true)}>
            <Icon name="plus" />
            {w("add")}
        </button>
    );
    return (
        <>
            <Head title={w("title")} sub={rows && num(rows.length)} cli="argus snapshot ls">
                {rows && <ListCsv rows={rows} columns={known} />}
                {act}
            </Head>
            {asked.why || !rows ? (
                <Pending of={asked} lines={8} framed />
            ) : !rows.length ? (
                <section class="panel">
                    <Blank title={w("empty")} act={act}>
                        {w("empty_text")}
                    </Blank>
                </section>
            ) : (
                <List
                    label={w("title")}
                    rows={rows}
                    columns={known}
                    keyOf={keyOf}
                    nameOf={(s) => s.name}
                    href={(s) => withQuery("/snapshots", { name: keyOf(s) })}
                    sort={query.value.get("sort")}
                    onSort={(sort) => setQuery({ sort })}
                    current={shown ? keyOf(shown) : null}
                    card={(s) => (
                        <span class="row">
                            <span class="name cut grow">
                                <Text of={s.name} />
                            </span>
                            <span class="dim">{bytes(s.bytes)}</span>
                        </span>
                    )}
                />
            )}
            {shown && rows && <Shown key={keyOf(shown)} of={shown} all={rows} again={asked.again} />}
            {adds && <Add close={() => setAdds(false)} done={asked.again} />}
        </>
    );
}
