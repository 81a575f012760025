// SPDX-License-Identifier: Apache-2.0
// page.tsx - the list of jobs: views, filters, columns, and what is done to the chosen ones. The address holds it all.
// The example for a page: a route.ts, a page.tsx whose default export is the page, and words beside it.
import { useMemo, useState } from "preact/hooks";
import type { JobItem } from "../../made/api";
import { session } from "../../api/client";
import { ownSetting, setOwn } from "../../api/own";
import { useAsk } from "../../api/use";
import { shape, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { ColumnMenu, List, ListCsv } from "../../kit/list";
import { Head, shell, State, Text } from "../../kit/parts";
import { t } from "../../words/shared";
import { Flags, isOver, jobColumns, jobName } from "./columns";
import { archiveChosen, MOST, retryChosen, stopChosen } from "./many";

const w = words({
    v_live: ["Live", "进行中"],
    v_failed: ["Failed this week", "本周失败"],
    search: ["Name or id", "名称或编号"],
    f_state: ["State", "状态"],
    empty: ["No jobs yet", "还没有作业"],
    empty_text: [
        "A job starts from a preset: pick a model and a data set, and the page says when it would start.",
        "从预设开始：选择模型和数据集，页面会给出预计启动时间。",
    ],
    n_jobs: ["{0} jobs", "{0} 个作业"],
    more: ["The newest {0} are shown. Filter to see older ones.", "显示最新的 {0} 个。用筛选查看更早的。"],
    none_live: ["None of the chosen jobs is live", "所选作业均已结束"],
    none_over: ["None of the chosen jobs has ended", "所选作业均未结束"],
    too_many: ["At most {0} at once", "一次最多 {0} 个"],
    view_save: ["Save this view", "保存此视图"],
    view_name: ["Name of the view", "视图名称"],
    view_keep: ["Save", "保存"],
    view_forget: ["Forget view {0}", "删除视图 {0}"],
    since: ["Submitted in", "提交于"],
    last_7d: ["the last 7 days", "近 7 天"],
});

const FILTERS = ["state", "user", "project", "pool", "workload", "since"] as const;
const LIMIT = 1000;

/** The command line that prints the same list. */
function cliOf(q: URLSearchParams): string {
    const parts = ["argus ls"];
    if (q.get("mine") !== "1") parts.push("-a");
    for (const f of FILTERS) if (q.get(f)) parts.push(`--${f} ${shell(q.get(f)!)}`);
    return parts.join(" ");
}

interface View {
    says: string;
    search: string;
}

/** All of a view but the sort of the moment: its filters and its search. */
const searchOf = (q: URLSearchParams) => {
    const out = new URLSearchParams();
    for (const k of [...FILTERS, "mine", "q", "sort"]) if (q.get(k)) out.set(k, q.get(k)!);
    return out.toString();
};

/** Views that a person named: they follow him from browser to browser. */
function Saved({ q }: { q: URLSearchParams }) {
    const views = ownSetting<View[]>("jobs.views", []);
    const [name, setName] = useState<string | null>(null);
    const search = searchOf(q);
    const put = (next: View[]) => setOwn("jobs.views", next);
    const save = (e: Event) => {
        e.preventDefault();
        if (name?.trim()) put([...views.filter((v) => v.says !== name.trim()), { says: name.trim(), search }]);
        setName(null);
    };
    const own = views.find((v) => v.search === search);
    return (
        <>
            {views.map((v) => (
                <a href={`/jobs?${v.search}`} aria-current={v === own ? "true" : undefined}>
                    <Text of={v.says} />
                </a>
            ))}
            {own ? (
                <button
                    type="button"
                    class="link act view-save"
                    onClick={() => put(views.filter((v) => v !== own))}
                    aria-label={w("view_forget", own.says)}
                >
                    {w("view_forget", visible(own.says))}
                </button>
            ) : name === null ? (
                search && (
                    <button type="button" class="link act view-save" onClick={() => setName("")}>
                        {w("view_save")}
                    </button>
                )
            ) : (
                <form class="row view-save" onSubmit={save}>
                    <input
                        class="field"
                        aria-label={w("view_name")}
                        placeholder={w("view_name")}
                        value={name}
                        maxLength={40}
                        ref={(el) => el?.focus()}
                        onInput={(e) => setName(e.currentTarget.value)}
                        onKeyDown={(e) => e.key === "Escape" && setName(null)}
                    />
                    <button type="submit" class="btn" disabled={!name.trim()}>
                        {w("view_keep")}
                    </button>
                </form>
            )}
        </>
    );
}

function Views({ q }: { q: URLSearchParams }) {
    const now = ["state", "since", "mine"].map((k) => q.get(k) ?? "").join("|");
    const views = [
        { says: t("all"), set: {} },
        { says: w("v_live"), set: { state: "live" } },
        { says: t("mine"), set: { mine: "1" } },
        { says: w("v_failed"), set: { state: "FAILED,TIMEOUT", since: "7d" } },
    ] as { says: string; set: Record<string, string> }[];
    return (
        <nav class="views" aria-label={t("jobs")}>
            {views.map((v) => {
                const own = ["state", "since", "mine"].map((k) => v.set[k] ?? "").join("|");
                return (
                    <a href={withQuery("/jobs", v.set)} aria-current={own === now ? "true" : undefined}>
                        {v.says}
                    </a>
                );
            })}
            <Saved q={q} />
        </nav>
    );
}

function Filters({ q }: { q: URLSearchParams }) {
    return (
        <>
            <label class="search">
                <Icon name="search" />
                <input
                    type="search"
                    aria-label={w("search")}
                    placeholder={w("search")}
                    value={q.get("q") ?? ""}
                    onInput={(e) => setQuery({ q: e.currentTarget.value })}
                />
            </label>
            {FILTERS.map((f) => {
                const value = q.get(f);
                if (!value) return null;
                const states = value.split(",");
                return (
                    <span class="fchip">
                        <span>
                            {f === "since" ? w("since") : t(f === "state" ? "state" : f)}{" "}
                            <b>
                                {f === "state" && value !== "live" ? (
                                    states.map((s) => <State of={s} />)
                                ) : f === "state" ? (
                                    w("v_live")
                                ) : value === "7d" ? (
                                    w("last_7d")
                                ) : (
                                    <Text of={value} />
                                )}
                            </b>
                        </span>
                        <button
                            type="button"
                            aria-label={`${t("clear_filters")}: ${f}`}
                            onClick={() => setQuery({ [f]: null })}
                        >
                            <Icon name="close" />
                        </button>
                    </span>
                );
            })}
        </>
    );
}

function PickBar(p: { rows: JobItem[]; chosen: Set<string>; done: (ids: string[]) => void; clear: () => void }) {
    const { rows, chosen, done, clear } = p;
    const picked = rows.filter((j) => chosen.has(j.id));
    if (!picked.length) return null;
    const live = picked.some((j) => !isOver(j));
    const over = picked.filter(isOver).length;
    const whyNot = over > MOST ? w("too_many", MOST) : over ? undefined : w("none_over");
    const may = session.value?.role !== "viewer";
    return (
        <div class="pickbar act" role="region" aria-label={t("chosen", picked.length)}>
            <span>{t("chosen", picked.length)}</span>
            {picked.length >= 2 && picked.length <= 8 && (
                <a class="btn" href={withQuery("/compare", { jobs: picked.map((j) => j.id).join(",") })}>
                    <Icon name="compare" />
                    {t("compare")}
                </a>
            )}
            {may && (
                <button
                    type="button"
                    class="btn"
                    disabled={!live}
                    title={live ? undefined : w("none_live")}
                    onClick={() => stopChosen(picked, clear)}
                >
                    <Icon name="stopped" />
                    {t("stop")}
                </button>
            )}
            {may && (
                <button
                    type="button"
                    class="btn"
                    disabled={!!whyNot}
                    title={whyNot}
                    onClick={() => retryChosen(picked, done)}
                >
                    <Icon name="restarting" />
                    {t("retry")}
                </button>
            )}
            {may && (
                <button
                    type="button"
                    class="btn"
                    disabled={!!whyNot}
                    title={whyNot}
                    onClick={() => archiveChosen(picked, done)}
                >
                    <Icon name="archive" />
                    {t("archive")}
                </button>
            )}
            <button type="button" class="btn icon" aria-label={t("close")} onClick={clear}>
                <Icon name="close" />
            </button>
        </div>
    );
}

const Card = ({ of: j }: { of: JobItem }) => (
    <>
        <span class="row">
            <State of={j.state} />
            <span class="end dim">{shape(j)}</span>
        </span>
        <span class="name cut">
            <Text of={jobName(j)} />
        </span>
        <span class="row small dim">
            <Text of={j.user} />
            <Flags of={j} />
        </span>
    </>
);

export default function Jobs() {
    const q = query.value;
    const [chosen, setChosen] = useState(new Set<string>());
    const shown = ownSetting<string[] | null>("jobs.columns", null);
    const asked = useAsk(
        "GET /v1/jobs",
        {
            query: {
                limit: LIMIT,
                all: q.get("mine") !== "1",
                q: q.get("q") ?? undefined,
                state: q.get("state") ?? undefined,
                user: q.get("user") ?? undefined,
                project: q.get("project") ?? undefined,
                pool: q.get("pool") ?? undefined,
                workload: q.get("workload") ?? undefined,
                since: q.get("since") ?? undefined,
            },
        },
        { topics: ["jobs"] },
    );
    const columns = jobColumns();
    const rows = asked.data?.jobs;
    const filters = [...FILTERS, "q"].filter((f) => q.get(f)).length;
    const known = useMemo(() => columns, [document.documentElement.lang]);
    return (
        <>
            <Head title={t("jobs")} sub={rows && w("n_jobs", rows.length)} cli={cliOf(q)} />
            <Views q={q} />
            <div class="filters bar-of">
                <Filters q={q} />
                <span class="end row">
                    <ColumnMenu columns={known} shown={shown} onChange={(s) => setOwn("jobs.columns", s)} />
                    {rows && <ListCsv rows={rows} columns={known} />}
                </span>
            </div>
            {asked.why || !rows ? (
                <Pending of={asked} lines={10} framed />
            ) : rows.length === 0 ? (
                <section class="panel">
                    {filters ? (
                        <Blank
                            title={t("nothing_matches")}
                            act={
                                <a class="btn" href="/jobs">
                                    {t("clear_filters")}
                                </a>
                            }
                        >
                            {t("filters_set", filters)}
                        </Blank>
                    ) : (
                        <Blank title={w("empty")}>{w("empty_text")}</Blank>
                    )}
                </section>
            ) : (
                <List
                    label={t("jobs")}
                    rows={rows}
                    columns={known}
                    shown={shown}
                    keyOf={(j) => j.id}
                    nameOf={jobName}
                    href={(j) => `/jobs/${encodeURIComponent(j.id)}`}
                    sort={q.get("sort")}
                    onSort={(sort) => setQuery({ sort })}
                    chosen={chosen}
                    onChoose={setChosen}
                    card={(j) => <Card of={j} />}
                    foot={asked.data?.next_cursor ? <div class="listfoot">{w("more", LIMIT)}</div> : undefined}
                />
            )}
            {rows && (
                <PickBar
                    rows={rows}
                    chosen={chosen}
                    done={(ids) => setChosen((now) => new Set([...now].filter((id) => !ids.includes(id))))}
                    clear={() => setChosen(new Set())}
                />
            )}
        </>
    );
}
