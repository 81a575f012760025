// SPDX-License-Identifier: Apache-2.0
// page.tsx - who did what, and what happened by itself: live, filtered by the address, each change with before and after,
// and the check of the chain that holds them together.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Event, Verified } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { fullTime, num, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, copy, Dash, Head, shell, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { exportHref, FILTERS, filtersOf, isoOf, localOf } from "./asked";
import { changesOf } from "./diff";

const w = words({
    sub: ["the newest {0}", "最新 {0} 条"],
    at: ["At", "时间"],
    actor: ["By", "操作者"],
    kind: ["Kind", "类别"],
    object: ["Object", "对象"],
    what: ["What happened", "内容"],
    new_n: ["{0} new", "{0} 条新事件"],
    from: ["Earliest", "最早"],
    to: ["Latest", "最晚"],
    export_csv: ["All as CSV", "全部导出为 CSV"],
    export_json: ["All as JSON lines", "全部导出为 JSON 行"],
    export_text: ["All events that match, not only those shown", "导出所有匹配的事件，不限于当前显示"],
    older: ["Show older ones", "显示更早的"],
    none: ["No events yet", "还没有事件"],
    none_text: [
        "Whatever changes here leaves an event: who, what, before and after.",
        "任何变更都会留下事件：谁、做了什么、前后内容。",
    ],
    check: ["Check the chain", "校验链"],
    checking: ["Checking…", "校验中…"],
    whole: [
        "The chain is whole: {0} {0|event|events}, the newest {1} with hash {2}",
        "链完整：{0} 条事件，最新 {1}，哈希 {2}",
    ],
    broken: ["The chain is broken at event {0}", "链在事件 {0} 处断裂"],
    copy_hash: ["Copy the hash, to be kept elsewhere", "复制哈希以便另行保存"],
    event: ["Event", "事件"],
    change: ["What it changed", "变更内容"],
    key: ["Key", "键"],
    before: ["Before", "之前"],
    after: ["After", "之后"],
    same: ["Before and after are the same.", "前后相同。"],
    data: ["Data", "数据"],
    from_to: ["State", "状态"],
    reason: ["Reason", "原因"],
    gone: ["This event is not among those shown", "该事件不在当前列表中"],
});

const PAGE = 200;
const MOST = 1000;

function cliOf(q: URLSearchParams): string {
    const parts = ["argus events"];
    for (const f of FILTERS) if (q.get(f)) parts.push(`--${f} ${shell(q.get(f)!)}`);
    return parts.join(" ");
}

const here = (change: Record<string, string | null>) =>
    withQuery("/events", { ...Object.fromEntries(query.value), seq: null, ...change });

function ObjectLink({ of: object }: { of: string | null }) {
    if (!object) return <Dash />;
    const [kind, ...rest] = object.split("/");
    const name = rest.join("/");
    const to =
        kind === "job"
            ? `/jobs/${encodeURIComponent(name)}`
            : kind === "node"
              ? withQuery("/nodes", { node: name })
              : here({ object });
    return (
        <a class="link" href={to}>
            <Text of={object} />
        </a>
    );
}

const moved = (e: Event) => e.from !== e.to;

const columns = (): Col<Event>[] => [
    { key: "at", title: w("at"), width: 112, draw: (e) => <Time at={e.at} />, csv: (e) => e.at },
    {
        key: "kind",
        title: w("kind"),
        width: 190,
        draw: (e) => (
            <a class="mono" href={here({ seq: String(e.seq) })}>
                {visible(e.kind)}
            </a>
        ),
        csv: (e) => e.kind,
    },
    {
        key: "object",
        title: w("object"),
        width: 220,
        wide: true,
        draw: (e) => <ObjectLink of={e.object} />,
        csv: (e) => e.object,
    },
    {
        key: "text",
        title: w("what"),
        draw: (e) => (
            <span class="mid reads" title={visible(e.text)}>
                {moved(e) ? `${e.from ?? "–"} → ${e.to ?? "–"} ` : ""}
                {visible(e.text || e.reason.text)}
            </span>
        ),
        csv: (e) => e.text || e.reason.text,
    },
    {
        key: "actor",
        title: w("actor"),
        width: 100,
        wide: true,
        draw: (e) => (
            <a href={here({ actor: e.actor })}>
                <Text of={e.actor} />
            </a>
        ),
        csv: (e) => e.actor,
    },
    {
        key: "seq",
        title: "#",
        width: 72,
        num: true,
        wide: true,
        draw: (e) => <span class="dim">{e.seq}</span>,
        csv: (e) => e.seq,
    },
];

function Filters({ q, events }: { q: URLSearchParams; events: Event[] }) {
    const known: Record<string, string[]> = {
        kind: [...new Set(events.map((e) => e.kind))].sort(),
        actor: [...new Set(events.map((e) => e.actor))].sort(),
        object: [],
    };
    return (
        <>
            {(["kind", "actor", "object"] as const).map((f) => (
                <label class="search e-filter">
                    <span class="small">{w(f)}</span>
                    <input
                        type="search"
                        aria-label={w(f)}
                        value={q.get(f) ?? ""}
                        list={known[f]!.length ? `known-${f}` : undefined}
                        onChange={(e) => setQuery({ [f]: e.currentTarget.value.trim() })}
                    />
                    {known[f]!.length > 0 && (
                        <datalist id={`known-${f}`}>
                            {known[f]!.map((v) => (
                                <option value={v} />
                            ))}
                        </datalist>
                    )}
                </label>
            ))}
            {(["from", "to"] as const).map((f) => (
                <label class="search e-filter e-time">
                    <span class="small">{w(f)}</span>
                    <input
                        type="datetime-local"
                        aria-label={w(f)}
                        value={localOf(q.get(f))}
                        onChange={(e) => setQuery({ [f]: isoOf(e.currentTarget.value) })}
                    />
                </label>
            ))}
            {q.get("job") && (
                <span class="fchip">
                    <span>
                        {t("job")} <b>{visible(q.get("job")!)}</b>
                    </span>
                    <button
                        type="button"
                        aria-label={`${t("clear_filters")}: job`}
                        onClick={() => setQuery({ job: null })}
                    >
                        <Icon name="close" />
                    </button>
                </span>
            )}
        </>
    );
}

function Chain() {
    const [busy, setBusy] = useState(false);
    const [found, setFound] = useState<Verified | null>(null);
    const [why, setWhy] = useState("");
    const check = async () => {
        setBusy(true);
        setWhy("");
        try {
            setFound(await call("GET /v1/events:verify", {}));
        } catch (e) {
            setWhy(e instanceof Refusal ? e.detail : String(e));
        }
        setBusy(false);
    };
    return (
        <>
            <button type="button" class="btn act" disabled={busy} onClick={() => void check()}>
                {busy ? w("checking") : w("check")}
            </button>
            {(found || why) && (
                <div class={`note e-chain ${found?.ok ? "ok" : "bad"}`} role="status">
                    <Icon name={found?.ok ? "succeeded" : "failed"} />
                    <span class="grow">
                        {why
                            ? visible(why)
                            : found!.ok
                              ? w("whole", num(found!.count), found!.head.seq, (found!.head.hash ?? "").slice(0, 12))
                              : `${w("broken", found!.broken_seq ?? "?")}. ${visible(found!.reason.text)}`}
                    </span>
                    {found?.ok && found.head.hash && (
                        <button
                            type="button"
                            class="btn bare icon"
                            title={w("copy_hash")}
                            aria-label={w("copy_hash")}
                            onClick={() => void copy(`${found.head.seq}:${found.head.hash}`)}
                        >
                            <Icon name="copy" />
                        </button>
                    )}
                </div>
            )}
        </>
    );
}

function One({ e, close }: { e: Event | undefined; close: () => void }) {
    const changes = e ? changesOf(e.data) : null;
    return (
        <Drawer
            label={w("event")}
            onClose={close}
            head={
                e ? (
                    <>
                        <div class="row">
                            <span class="dim">#{e.seq}</span>
                            <Cli line={`argus events --since ${Math.max(0, e.seq - 1)} -o json`} />
                        </div>
                        <h2 class="mono">{visible(e.kind)}</h2>
                        <div class="small dim">
                            {fullTime(e.at)} · <Text of={e.actor} />
                        </div>
                    </>
                ) : (
                    <h2>{w("event")}</h2>
                )
            }
        >
            {!e ? (
                <Blank title={w("gone")} icon="unknown" />
            ) : (
                <>
                    <section>
                        <dl class="kv">
                            <dt>{w("object")}</dt>
                            <dd>
                                <ObjectLink of={e.object} />
                            </dd>
                            {moved(e) && (
                                <>
                                    <dt>{w("from_to")}</dt>
                                    <dd>
                                        {visible(e.from ?? "–")} → {visible(e.to ?? "–")}
                                    </dd>
                                </>
                            )}
                            {e.text && (
                                <>
                                    <dt>{w("what")}</dt>
                                    <dd>{visible(e.text)}</dd>
                                </>
                            )}
                            {e.reason.text && e.reason.text !== e.text && (
                                <>
                                    <dt>{w("reason")}</dt>
                                    <dd>
                                        {visible(e.reason.text)} <code class="dim">{visible(e.reason.code)}</code>
                                    </dd>
                                </>
                            )}
                        </dl>
                    </section>
                    {changes ? (
                        <section>
                            <h2>{w("change")}</h2>
                            {changes.length ? (
                                <table class="mini e-diff">
                                    <thead>
                                        <tr>
                                            <th scope="col">{w("key")}</th>
                                            <th scope="col">{w("before")}</th>
                                            <th scope="col">{w("after")}</th>
                                        </tr>
                                    </thead>
                                    <tbody>
                                        {changes.map((c) => (
                                            <tr>
                                                <td>
                                                    <code>{visible(c.path)}</code>
                                                </td>
                                                <td class="c-bad">{c.from === null ? <Dash /> : visible(c.from)}</td>
                                                <td class="c-ok">{c.to === null ? <Dash /> : visible(c.to)}</td>
                                            </tr>
                                        ))}
                                    </tbody>
                                </table>
                            ) : (
                                <p class="dim">{w("same")}</p>
                            )}
                        </section>
                    ) : (
                        e.data !== null &&
                        e.data !== undefined && (
                            <section>
                                <h2>{w("data")}</h2>
                                <pre class="e-data" tabIndex={0}>
                                    {visible(JSON.stringify(e.data, null, 2)).replaceAll("␊", "\n")}
                                </pre>
                            </section>
                        )
                    )}
                </>
            )}
        </Drawer>
    );
}

export default function Events() {
    const q = query.value;
    const limit = Math.min(MOST, Math.max(PAGE, Number(q.get("limit")) || PAGE));
    const asked = useAsk(
        "GET /v1/events",
        {
            query: {
                newest_first: true,
                limit,
                ...filtersOf(q),
            },
        },
        { topics: ["events"] },
    );
    const all = asked.data?.events;
    const filter = FILTERS.map((f) => q.get(f) ?? "").join("|");
    // Rows keep their places while one reads: what is new waits behind a button.
    const [top, setTop] = useState<{ filter: string; seq: number } | null>(null);
    const newest = all?.[0]?.seq ?? 0;
    const first = useRef("");
    useEffect(() => {
        if (!all || first.current === filter) return;
        first.current = filter;
        setTop({ filter, seq: newest });
    }, [all, filter]);
    const shownTop = top?.filter === filter ? top.seq : newest;
    const rows = (all ?? []).filter((e) => e.seq <= shownTop);
    const fresh = (all ?? []).length - rows.length;
    const filters = FILTERS.filter((f) => q.get(f)).length;
    const seq = q.get("seq");
    const cols = columns();
    return (
        <>
            <Head title={t("events")} sub={all && w("sub", rows.length)} cli={cliOf(q)} />
            <div class="filters bar-of">
                <Filters q={q} events={all ?? []} />
                <span class="end row">
                    {session.value?.role === "admin" && <Chain />}
                    {all && <TableCsv rows={rows} cols={cols} />}
                    <a class="btn act" href={exportHref(q, "csv")} download title={w("export_text")}>
                        {w("export_csv")}
                    </a>
                    <a class="btn act" href={exportHref(q, "ndjson")} download title={w("export_text")}>
                        {w("export_json")}
                    </a>
                </span>
            </div>
            {fresh > 0 && (
                <p class="e-new" role="status">
                    <button type="button" class="btn" onClick={() => setTop({ filter, seq: newest })}>
                        <Icon name="up" />
                        {w("new_n", fresh)}
                    </button>
                </p>
            )}
            <section class="panel">
                {asked.why || !all ? (
                    <Pending of={asked} lines={10} />
                ) : rows.length ? (
                    <>
                        <Table label={t("events")} rows={rows} cols={cols} keyOf={(e) => String(e.seq)} current={seq} />
                        {all.length >= limit && limit < MOST && (
                            <p class="note-row">
                                <button type="button" class="btn" onClick={() => setQuery({ limit: String(MOST) })}>
                                    {w("older")}
                                </button>
                            </p>
                        )}
                    </>
                ) : filters ? (
                    <Blank
                        title={t("nothing_matches")}
                        act={
                            <button
                                type="button"
                                class="btn"
                                onClick={() => setQuery(Object.fromEntries(FILTERS.map((f) => [f, null])))}
                            >
                                {t("clear_filters")}
                            </button>
                        }
                    >
                        {t("filters_set", filters)}
                    </Blank>
                ) : (
                    <Blank title={w("none")}>{w("none_text")}</Blank>
                )}
            </section>
            {seq && <One e={all?.find((e) => String(e.seq) === seq)} key={seq} close={() => setQuery({ seq: null })} />}
        </>
    );
}
