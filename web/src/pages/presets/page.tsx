// SPDX-License-Identifier: Apache-2.0
// page.tsx - presets: a spec with holes to fill, shipped with Argus or a project's own. ?name= is the one that is looked
// at; a project's own can be changed here.
import { useState } from "preact/hooks";
import type { Preset, PresetItem } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import type { Spot } from "../../kit/editor";
import { List, ListCsv, type Column } from "../../kit/list";
import { ask, Drawer } from "../../kit/over";
import { Cli, Head, shell, Text, Time, toast } from "../../kit/parts";
import { Yaml } from "../../kit/yaml";
import { Breaks, looking } from "../../library/breaks";
import "../../library/library.css";
import { t } from "../../words/shared";

const w = words({
    title: ["Presets", "预设"],
    empty: ["No presets", "没有预设"],
    empty_text: ["Save a spec as a preset on the page of a new job.", "在“新建作业”页将规格存为预设。"],
    about: ["What it is for", "用途"],
    shipped: ["shipped", "自带"],
    changed: ["Changed", "修改于"],
    by: ["By", "由"],
    holes: ["Holes", "参数"],
    hole: ["Hole", "参数"],
    type: ["Type", "类型"],
    dflt: ["Default", "默认"],
    needed: ["needed", "必填"],
    none: ["It has none: it is submitted as it stands.", "没有参数，可直接提交。"],
    text: ["Text", "内容"],
    use: ["New job from it", "以此新建作业"],
    edit: ["Change", "修改"],
    save: ["Save", "保存"],
    saved: ["Saved", "已保存"],
    rm: ["Remove", "删除"],
    rm_title: ["Remove preset {0}?", "删除预设 {0}？"],
    rm_text: [
        "Members of {0} find it no more. Jobs that were made from it stay as they are; its text cannot be brought back.",
        "{0} 的成员将不再看到它。已由它创建的作业不受影响；内容无法恢复。",
    ],
    rm_go: ["Remove the preset", "删除预设"],
    rm_done: ["Removed", "已删除"],
});

const keyOf = (p: PresetItem) => `${p.project ?? ""}:${p.name}`;

const columns = (): Column<PresetItem>[] => [
    {
        key: "name",
        title: t("name"),
        width: 200,
        rank: 0,
        draw: (p) => (
            <a class="name cut" href={withQuery("/presets", { name: keyOf(p) })} tabIndex={-1}>
                <Text of={p.name} />
            </a>
        ),
        sort: (p) => p.name,
        csv: (p) => p.name,
    },
    {
        key: "workload",
        title: t("workload"),
        width: 90,
        rank: 1,
        draw: (p) => <Text of={p.workload} />,
        sort: (p) => p.workload,
        csv: (p) => p.workload,
    },
    {
        key: "project",
        title: t("project"),
        width: 130,
        rank: 3,
        draw: (p) => (p.shipped ? <span class="flag quiet">{w("shipped")}</span> : <Text of={p.project} />),
        sort: (p) => p.project,
        csv: (p) => p.project,
    },
    {
        key: "description",
        title: w("about"),
        width: 0,
        rank: 2,
        draw: (p) => <span class="cut said">{visible(p.description)}</span>,
        csv: (p) => p.description,
    },
    {
        key: "holes",
        title: w("holes"),
        width: 80,
        rank: 4,
        num: true,
        draw: (p) => p.holes.length,
        sort: (p) => p.holes.length,
        csv: (p) => p.holes.length,
    },
    {
        key: "changed_at",
        title: w("changed"),
        width: 110,
        rank: 5,
        draw: (p) => <Time at={p.changed_at} />,
        sort: (p) => (p.changed_at ? Date.parse(p.changed_at) : null),
        csv: (p) => p.changed_at,
    },
];

function Holes({ of: p }: { of: PresetItem }) {
    if (!p.holes.length) return <p class="mid">{w("none")}</p>;
    return (
        <div class="tbl-wrap" tabIndex={0} role="region" aria-label={w("holes")}>
            <table class="tbl auto">
                <thead>
                    <tr>
                        <th>{w("hole")}</th>
                        <th>{w("type")}</th>
                        <th>{w("dflt")}</th>
                    </tr>
                </thead>
                <tbody>
                    {p.holes.map((h) => (
                        <tr>
                            <td title={visible(h.description)}>
                                <code>{visible(h.name)}</code>
                                <br />
                                <span class="small dim">{visible(h.description)}</span>
                            </td>
                            <td>{visible(h.type)}</td>
                            <td>
                                {h.required ? (
                                    <span class="c-warn">{w("needed")}</span>
                                ) : (
                                    <code>{visible(h.default === null ? "–" : String(h.default))}</code>
                                )}
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function Edit({ of: p, done }: { of: Preset; done: () => void }) {
    const [text, setText] = useState(p.text);
    const [why, setWhy] = useState<Refusal | null>(null);
    const spots: Spot[] = (why?.problem?.problems ?? []).map((x) => ({
        line: x.line,
        column: x.column,
        isError: x.level === "error",
        says: visible(x.detail),
    }));
    const save = async () => {
        try {
            await call("PUT /v1/presets/{name}", {
                path: { name: p.name },
                query: { project: p.project ?? undefined },
                raw: text,
            });
            toast(w("saved"));
            done();
        } catch (e) {
            if (e instanceof Refusal) setWhy(e);
        }
    };
    return (
        <>
            <div class="lib-editor">
                <Yaml text={text} label={w("text")} spots={spots} onChange={setText} />
            </div>
            {why && (
                <p class="note bad said" role="alert">
                    <span>{visible(why.detail)}</span>
                </p>
            )}
            <p class="row">
                <span class="grow" />
                <button type="button" class="btn" onClick={done}>
                    {t("cancel")}
                </button>
                <button type="button" class="btn main" disabled={text === p.text} onClick={() => void save()}>
                    {w("save")}
                </button>
            </p>
        </>
    );
}

function Shown({ of: p, again }: { of: PresetItem; again: () => void }) {
    const asked = useAsk("GET /v1/presets/{name}", {
        path: { name: p.name },
        query: { project: p.project ?? undefined },
    });
    const [edits, setEdits] = useState(false);
    const close = () => setQuery({ name: null });
    const may = !p.shipped && session.value?.role !== "viewer";
    const remove = () => {
        const stands = looking();
        ask({
            title: w("rm_title", visible(p.name)),
            isBad: true,
            act: w("rm_go"),
            cli: `argus preset rm ${shell(p.name)}`,
            done: w("rm_done"),
            missing: () => stands.value,
            body: (
                <>
                    <p>{w("rm_text", visible(p.project ?? ""))}</p>
                    <Breaks kind="presets" name={p.name} project={p.project ?? undefined} stands={stands} />
                </>
            ),
            does: async () => {
                await call("DELETE /v1/presets/{name}", {
                    path: { name: p.name },
                    query: { project: p.project ?? undefined },
                });
                close();
                again();
            },
        });
    };
    return (
        <Drawer
            label={visible(p.name)}
            onClose={close}
            head={
                <>
                    <h2 class="cut">
                        <Text of={p.name} />
                    </h2>
                    <p class="small mid said">{visible(p.description)}</p>
                </>
            }
            foot={
                <>
                    <Cli line={`argus preset show ${shell(p.name)}`} />
                    <span class="grow" />
                    {may && (
                        <button type="button" class="btn bad act" onClick={remove}>
                            {w("rm")}
                        </button>
                    )}
                    {session.value?.role !== "viewer" && (
                        <a class="btn act" href={withQuery("/submit", { preset: p.name })}>
                            {w("use")}
                        </a>
                    )}
                </>
            }
        >
            <div class="lib-body">
                <section>
                    <h3>{w("holes")}</h3>
                    <Holes of={p} />
                </section>
                <section>
                    <h3 class="row">
                        <span class="grow">{w("text")}</span>
                        {may && asked.data && !edits && (
                            <button type="button" class="btn act" onClick={() => setEdits(true)}>
                                {w("edit")}
                            </button>
                        )}
                    </h3>
                    {asked.why || !asked.data ? (
                        <Pending of={asked} lines={4} />
                    ) : edits ? (
                        <Edit
                            of={asked.data}
                            done={() => {
                                setEdits(false);
                                asked.again();
                                again();
                            }}
                        />
                    ) : (
                        <pre class="lib-pre" tabIndex={0}>
                            {visible(asked.data.text)}
                        </pre>
                    )}
                </section>
            </div>
        </Drawer>
    );
}

export default function Presets() {
    const asked = useAsk("GET /v1/presets");
    const rows = asked.data?.presets;
    const name = query.value.get("name");
    const shown = rows?.find((p) => keyOf(p) === name) ?? rows?.find((p) => p.name === name);
    const known = columns();
    return (
        <>
            <Head title={w("title")} sub={rows && num(rows.length)} cli="argus preset ls">
                {rows && <ListCsv rows={rows} columns={known} />}
            </Head>
            {asked.why || !rows ? (
                <Pending of={asked} lines={8} framed />
            ) : !rows.length ? (
                <section class="panel">
                    <Blank title={w("empty")}>{w("empty_text")}</Blank>
                </section>
            ) : (
                <List
                    label={w("title")}
                    rows={rows}
                    columns={known}
                    keyOf={keyOf}
                    nameOf={(p) => p.name}
                    href={(p) => withQuery("/presets", { name: keyOf(p) })}
                    sort={query.value.get("sort")}
                    onSort={(sort) => setQuery({ sort })}
                    current={shown ? keyOf(shown) : null}
                    card={(p) => (
                        <>
                            <span class="name cut">
                                <Text of={p.name} />
                            </span>
                            <span class="small dim cut">{visible(p.description)}</span>
                        </>
                    )}
                />
            )}
            {shown && <Shown key={keyOf(shown)} of={shown} again={asked.again} />}
        </>
    );
}
