// SPDX-License-Identifier: Apache-2.0
// filters.tsx - what the list of jobs is narrowed by: a search, how many there are in each state, what is set, and a menu
// of the rest. All of it is in the address.
import type { JobList } from "../../made/api";
import { visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Icon } from "../../kit/icons";
import { State, Text } from "../../kit/parts";
import { t } from "../../words/shared";
import { FILTERS, FLAGS, toggled, type Filter } from "./asked";
import { STATE_ORDER } from "./columns";
import "./page.css";

const w = words({
    search: ["Name or id", "名称或编号"],
    filter: ["Filter", "筛选"],
    flag: ["Flag", "标记"],
    failure: ["Failed by", "故障类别"],
    failure_node: ["Node at fault", "故障节点"],
    gpus: ["GPUs", "GPU 数"],
    since: ["Submitted in", "提交于"],
    ran_since: ["Held slots in", "占用资源于"],
    ran_until: ["Held slots before", "占用资源早于"],
    any: ["any time", "不限"],
    last_1d: ["the last day", "近 1 天"],
    last_7d: ["the last 7 days", "近 7 天"],
    last_30d: ["the last 30 days", "近 30 天"],
    v_live: ["Live", "进行中"],
    several: ["one, or several with commas", "一个，或用逗号分隔多个"],
    by_state: ["By state", "按状态"],
});

/** A filter that is changed begins at the first page. */
const set = (change: Record<string, string | null>) => setQuery({ ...change, after: null });
const SPANS: Record<string, () => string> = {
    "1d": () => w("last_1d"),
    "7d": () => w("last_7d"),
    "30d": () => w("last_30d"),
};
const NAMED = ["user", "project", "pool", "workload", "failure", "failure_node", "gpus"] as const;
const OWN = ["since", "flag", "failure", "failure_node", "gpus", "ran_since", "ran_until"] as const;
type Own = (typeof OWN)[number];
const isOwn = (f: Filter): f is Own => (OWN as readonly string[]).includes(f);
const titleOf = (f: Filter) => (isOwn(f) ? w(f) : t(f));
const TIMES = ["since", "ran_since"] as const;

/** How many jobs are in each state, of all that fit the other filters; a click filters by it. */
export function States({ of }: { of: JobList["states"] }) {
    const chosen = (query.value.get("state") ?? "").split(",");
    const shown = STATE_ORDER.filter((s) => of?.[s] || chosen.includes(s));
    if (!shown.length) return null;
    return (
        <div class="facets" role="group" aria-label={w("by_state")}>
            {shown.map((s) => (
                <button
                    type="button"
                    class="facet"
                    aria-pressed={chosen.includes(s)}
                    onClick={() => set({ state: toggled(query.value.get("state"), s) })}
                >
                    <State of={s} />
                    <b class="num">{(of?.[s] ?? 0).toLocaleString("en-US")}</b>
                </button>
            ))}
        </div>
    );
}

function Value({ of, value }: { of: Filter; value: string }) {
    if (of === "state" && value === "live") return <>{w("v_live")}</>;
    if (of === "state")
        return (
            <>
                {value.split(",").map((s) => (
                    <State of={s} />
                ))}
            </>
        );
    if (of === "flag") return <>{value.split(",").map(visible).join(", ")}</>;
    return SPANS[value] && (TIMES as readonly string[]).includes(of) ? <>{SPANS[value]!()}</> : <Text of={value} />;
}

function Menu({ q }: { q: URLSearchParams }) {
    const flags = (q.get("flag") ?? "").split(",");
    return (
        <details class="menu">
            <summary class="btn">
                <Icon name="filter" />
                {w("filter")}
            </summary>
            <div class="menu-body filter-body">
                {NAMED.map((f) => (
                    <label>
                        <span>{titleOf(f)}</span>
                        <input
                            class="field"
                            value={q.get(f) ?? ""}
                            placeholder={f === "gpus" ? "8, 5-8, 65-" : w("several")}
                            onChange={(e) => set({ [f]: e.currentTarget.value.replaceAll(" ", "") })}
                        />
                    </label>
                ))}
                {TIMES.map((f) => (
                    <label>
                        <span>{w(f)}</span>
                        <select
                            class="field"
                            value={q.get(f) ?? ""}
                            onChange={(e) => set({ [f]: e.currentTarget.value })}
                        >
                            <option value="">{w("any")}</option>
                            {Object.entries(SPANS).map(([span, says]) => (
                                <option value={span}>{says()}</option>
                            ))}
                        </select>
                    </label>
                ))}
                <fieldset>
                    <legend>{w("flag")}</legend>
                    {FLAGS.map((f) => (
                        <label>
                            <input
                                type="checkbox"
                                class="check"
                                checked={flags.includes(f)}
                                onChange={() => set({ flag: toggled(query.value.get("flag"), f) })}
                            />
                            {t(f as "HUNG")}
                        </label>
                    ))}
                </fieldset>
            </div>
        </details>
    );
}

export function Filters({ q }: { q: URLSearchParams }) {
    return (
        <>
            <label class="search">
                <Icon name="search" />
                <input
                    type="search"
                    aria-label={w("search")}
                    placeholder={w("search")}
                    value={q.get("q") ?? ""}
                    onInput={(e) => set({ q: e.currentTarget.value })}
                />
            </label>
            <Menu q={q} />
            {FILTERS.map((f) => {
                const value = q.get(f);
                if (!value) return null;
                return (
                    <span class="fchip">
                        <span>
                            {titleOf(f)}{" "}
                            <b>
                                <Value of={f} value={value} />
                            </b>
                        </span>
                        <button
                            type="button"
                            aria-label={`${t("clear_filters")}: ${titleOf(f)}`}
                            onClick={() => set({ [f]: null })}
                        >
                            <Icon name="close" />
                        </button>
                    </span>
                );
            })}
        </>
    );
}
