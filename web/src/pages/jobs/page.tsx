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
import { askOf, cliOf, countsOf, FILTERS, LIMIT, orderOf } from "./asked";
import { Flags, isOver, jobColumns, jobName } from "./columns";
import { Filters, States } from "./filters";
import { useFurther } from "./further";
import { archiveChosen, MOST, retryChosen, stopChosen } from "./many";

const w = words({
    v_live: ["Live", "进行中"],
    v_failed: ["Failed this week", "本周失败"],
    empty: ["No jobs yet", "还没有作业"],
    empty_text: [
        "A job starts from a preset: pick a model and a data set, and the page says when it would start.",
        "从预设开始：选择模型和数据集，页面会给出预计启动时间。",
    ],
    n_jobs: ["{0} {0|job|jobs}", "{0} 个作业"],
    some_of: ["{0} of {1} {1|job|jobs}", "{1} 个作业中的 {0} 个"],
    sorted_here: ["Only these {0} rows are in that order.", "仅这 {0} 行按此排序。"],
    next_page: ["Next {0}", "后 {0} 个"],
    first_page: ["To the first", "回到开头"],
    none_live: ["None of the chosen jobs is live", "所选作业均已结束"],
    none_over: ["None of the chosen jobs has ended", "所选作业均未结束"],
    too_many: ["At most {0} at once", "一次最多 {0} 个"],
    view_save: ["Save this view", "保存此视图"],
    view_name: ["Name of the view", "视图名称"],
    view_keep: ["Save", "保存"],
    view_forget: ["Forget view {0}", "删除视图 {0}"],
});

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

/** Of a list that is longer than a page: the pages beside this one. */
function Foot({ q, next, shown }: { q: URLSearchParams; next: string | null | undefined; shown: number }) {
    const to = (after: string | null) => withQuery("/jobs", { ...Object.fromEntries(q), after });
    return (
        <div class="listfoot">
            {q.get("sort") && !orderOf(q.get("sort")) && w("sorted_here", n(shown))}
            {q.has("after") && (
                <a class="link" href={to(null)}>
                    {w("first_page")}
                </a>
            )}
            {next && (
                <a class="link" href={to(next)}>
                    {w("next_page", n(LIMIT))}
                </a>
            )}
        </div>
    );
}

const n = (x: number) => x.toLocaleString("en-US");

export default function Jobs() {
    const q = query.value;
    const [chosen, setChosen] = useState(new Set<string>());
    const shown = ownSetting<string[] | null>("jobs.columns", null);
    const asked = useAsk(
        "GET /v1/jobs",
        {
            query: askOf(q),
        },
        { topics: ["jobs"] },
    );
    const columns = jobColumns();
    const further = useFurther(asked.data, q);
    const rows = further.rows;
    const counts = useAsk("GET /v1/jobs", { query: countsOf(q) }, { every: 15_000 }).data;
    const isPart = !!further.next || q.has("after");
    const total = (isPart ? counts?.total : undefined) ?? rows?.length ?? 0;
    const sort = q.get("sort");
    const filters = [...FILTERS, "q"].filter((f) => q.get(f)).length;
    const known = useMemo(() => columns, [document.documentElement.lang]);
    return (
        <>
            <Head
                title={t("jobs")}
                sub={rows && (isPart ? w("some_of", n(rows.length), n(total)) : w("n_jobs", n(total)))}
                cli={cliOf(q, shell)}
            />
            <Views q={q} />
            <div class="filters bar-of">
                <Filters q={q} />
                <span class="end row">
                    <ColumnMenu columns={known} shown={shown} onChange={(s) => setOwn("jobs.columns", s)} />
                    {rows && <ListCsv rows={rows} columns={known} />}
                </span>
            </div>
            {rows && <States of={counts?.states} />}
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
                    sort={sort}
                    isSorted={(isPart || further.hasMore) && !!orderOf(sort)}
                    onSort={(sort) => setQuery({ sort, after: null })}
                    chosen={chosen}
                    onChoose={setChosen}
                    onNearEnd={further.more}
                    card={(j) => <Card of={j} />}
                    foot={isPart ? <Foot q={q} next={further.next} shown={rows.length} /> : undefined}
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
