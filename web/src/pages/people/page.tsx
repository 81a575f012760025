// SPDX-License-Identifier: Apache-2.0
// page.tsx - projects and people: what each is guaranteed, may borrow up to, and holds now. ?view=users lists people;
// ?project= or ?user= opens a drawer.
import type { ComponentChildren } from "preact";
import type { Limits, Project, Usage, User } from "../../made/api";
import { session } from "../../api/client";
import { useAsk, type Asked } from "../../api/use";
import { useDo } from "../../base/acts";
import { bytes, num, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, Dash, Head, Panel, Seg, shell, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { Bar, partsOf } from "./bar";
import { addProject, addUser, editProject, editUser, removeProject, removeUser, setQuota } from "./deeds";
import { SessionsOf, TokensOf } from "./opens";
import { route } from "./route";
import { AlertsOf } from "./watched";
import { w } from "./words";

const LIVE = { topics: ["jobs" as const, "events" as const] };
type Account = { name: string; quota: Limits; usage: Usage };

const here = (change: Record<string, string | null>) =>
    withQuery("/people", { ...Object.fromEntries(query.value), project: null, user: null, ...change });
const limit = (v: number | null) => (v === null ? w("unlimited") : num(v));

const GpuBar = ({ of, most }: { of: Account; most: number }) => (
    <Bar
        of={partsOf(of.quota, of.usage, most)}
        says={w(
            "bar",
            num(of.usage.gpus),
            num(of.usage.gpus_borrowed),
            limit(of.quota.gpus_guaranteed),
            limit(of.quota.gpus_ceiling),
        )}
    />
);

function accountCols<A extends Account>(most: number): Col<A>[] {
    return [
        { key: "bar", title: w("gpus_now"), wide: "very", draw: (a) => <GpuBar of={a} most={most} /> },
        {
            key: "gpus",
            title: t("gpus"),
            num: true,
            width: 96,
            draw: (a) => (
                <>
                    <b>{num(a.usage.gpus)}</b>
                    <span class="dim"> / {a.quota.gpus_ceiling === null ? "∞" : num(a.quota.gpus_ceiling)}</span>
                </>
            ),
            csv: (a) => a.usage.gpus,
        },
        {
            key: "gpus_guaranteed",
            title: w("guaranteed"),
            num: true,
            wide: "very",
            width: 96,
            draw: (a) => a.quota.gpus_guaranteed ?? <Dash />,
            csv: (a) => a.quota.gpus_guaranteed,
        },
        {
            key: "gpus_ceiling",
            title: w("ceiling"),
            num: true,
            wide: "very",
            width: 76,
            draw: (a) => a.quota.gpus_ceiling ?? <Dash />,
            csv: (a) => a.quota.gpus_ceiling,
        },
        {
            key: "gpus_borrowed",
            title: w("borrowed"),
            num: true,
            wide: true,
            width: 88,
            draw: (a) => (a.usage.gpus_borrowed ? <span class="c-warn">{num(a.usage.gpus_borrowed)}</span> : <Dash />),
            csv: (a) => a.usage.gpus_borrowed,
        },
        {
            key: "running",
            title: w("running"),
            num: true,
            wide: "very",
            width: 80,
            draw: (a) => a.usage.running,
            csv: (a) => a.usage.running,
        },
        {
            key: "queued",
            title: w("queued"),
            num: true,
            width: 80,
            draw: (a) => a.usage.queued,
            csv: (a) => a.usage.queued,
        },
        {
            key: "gpu_hours",
            title: w("hours"),
            num: true,
            wide: true,
            width: 130,
            draw: (a) => num(a.usage.gpu_hours_this_month, 1),
            csv: (a) => a.usage.gpu_hours_this_month,
        },
    ];
}

function LimitTable({ of: a }: { of: Account }) {
    const rows: [string, string, number | null, (v: number) => string][] = [
        [t("gpus"), num(a.usage.gpus), a.quota.gpus_ceiling, num],
        [w("cpus"), num(a.usage.cpus), a.quota.cpus, num],
        [w("memory"), bytes(a.usage.memory), a.quota.memory, bytes],
        [w("running"), num(a.usage.running), a.quota.running, num],
        [w("queued"), num(a.usage.queued), a.quota.queued, num],
        [w("hours"), num(a.usage.gpu_hours_this_month, 1), a.quota.gpu_hours_per_month, num],
        [w("storage"), bytes(a.usage.storage), a.quota.storage, bytes],
    ];
    return (
        <table class="mini">
            <thead>
                <tr>
                    <th scope="col">{w("limits")}</th>
                    <th scope="col" class="num">
                        {w("used")}
                    </th>
                    <th scope="col" class="num">
                        {w("limit")}
                    </th>
                </tr>
            </thead>
            <tbody>
                {rows.map(([says, used, most, say]) => (
                    <tr>
                        <td>{says}</td>
                        <td class="num">{used}</td>
                        <td class="num dim">{most === null ? w("unlimited") : say(most)}</td>
                    </tr>
                ))}
                <tr>
                    <td>{w("guaranteed")}</td>
                    <td class="num">{num(Math.max(0, a.usage.gpus - a.usage.gpus_borrowed))}</td>
                    <td class="num dim">{a.quota.gpus_guaranteed ?? "–"}</td>
                </tr>
            </tbody>
        </table>
    );
}

const Gone = ({ close }: { close: () => void }) => (
    <Drawer label={w("gone")} onClose={close} head={<h2>{w("gone")}</h2>}>
        <Blank title={w("gone")} icon="unknown" />
    </Drawer>
);

interface Kind<A extends Account> {
    kind: "project" | "user";
    title: string;
    cols: Col<A>[];
    /** Above its name in the drawer. */
    head: (of: A) => ComponentChildren;
    facts: (of: A) => ComponentChildren;
    /** Further sections of the drawer, for who may change it; done: the list is asked for again. */
    opens?: (of: A, done: () => void) => ComponentChildren;
    /** Further sections of the drawer, for whoever sees it; may: whoever sees it may change them, too. */
    more?: (of: A, may: boolean, done: () => void) => ComponentChildren;
    adds: string;
    add: (done: () => void) => void;
    edit: (of: A, done: () => void) => void;
    remove: (of: A, done: () => void) => void;
    stays: (of: A) => boolean;
}

function Shown<A extends Account>(p: {
    of: A;
    kind: Kind<A>;
    most: number;
    may: boolean;
    close: () => void;
    again: () => void;
}) {
    const { of, kind } = p;
    return (
        <Drawer
            label={of.name}
            onClose={p.close}
            foot={
                p.may && (
                    <>
                        <button
                            type="button"
                            class="btn"
                            onClick={() => setQuota(kind.kind, of.name, of.quota, p.again)}
                        >
                            {w("quota")}
                        </button>
                        <button type="button" class="btn" onClick={() => kind.edit(of, p.again)}>
                            {w("edit")}
                        </button>
                        <span class="grow" />
                        {!kind.stays(of) && (
                            <button type="button" class="btn bad" onClick={() => kind.remove(of, p.again)}>
                                {w("rm")}
                            </button>
                        )}
                    </>
                )
            }
            head={
                <>
                    <div class="row">
                        {kind.head(of)}
                        <Cli line={`argus quota show --${kind.kind} ${shell(of.name)}`} />
                    </div>
                    <h2 class="cut">
                        <Text of={of.name} />
                    </h2>
                </>
            }
        >
            <section>
                <GpuBar of={of} most={p.most} />
            </section>
            <section>
                <LimitTable of={of} />
            </section>
            <section>
                <dl class="kv">{kind.facts(of)}</dl>
            </section>
            {kind.more?.(of, p.may, p.again)}
            {p.may && kind.opens?.(of, p.again)}
            <section class="row">
                <a class="link" href={withQuery("/jobs", { [kind.kind]: of.name })}>
                    {w("of_them")}
                </a>
                <a class="link" href={withQuery("/usage", { by: kind.kind, for: "30d" })}>
                    {w("usage")}
                </a>
            </section>
        </Drawer>
    );
}

/** Projects, or people: the same panel of accounts, with a drawer for the one that the address names. */
function Accounts<A extends Account>(p: {
    of: Asked<unknown>;
    rows: A[] | undefined;
    kind: Kind<A>;
    most: number;
    may: boolean;
}) {
    const { rows, kind, may } = p;
    const chosen = query.value.get(kind.kind);
    const one = rows?.find((x) => x.name === chosen);
    const close = () => setQuery({ [kind.kind]: null });
    const add = () => kind.add(p.of.again);
    useDo({ [kind.kind]: may && add });
    return (
        <>
            <Panel
                bare
                title={kind.title}
                count={rows?.length}
                end={
                    <>
                        {may && (
                            <button type="button" class="btn act" onClick={add}>
                                <Icon name="plus" />
                                {kind.adds}
                            </button>
                        )}
                        {!!rows?.length && <TableCsv rows={rows} cols={kind.cols} />}
                    </>
                }
            >
                {p.of.why || !rows ? (
                    <Pending of={p.of} lines={5} />
                ) : rows.length ? (
                    <Table label={kind.title} rows={rows} cols={kind.cols} keyOf={(x) => x.name} current={chosen} />
                ) : (
                    <Blank title={w("none")}>{w("none_text")}</Blank>
                )}
            </Panel>
            {chosen && rows && !one && <Gone close={close} />}
            {one && (
                <Shown key={one.name} of={one} kind={kind} most={p.most} may={may} close={close} again={p.of.again} />
            )}
        </>
    );
}

const Note = ({ of }: { of: string | null | undefined }) =>
    of ? (
        <>
            <dt>{w("note")}</dt>
            <dd>{visible(of)}</dd>
        </>
    ) : null;

const namesOf = (list: string[]) => (list.length ? list.map((x) => visible(x)).join(", ") : t("none"));

function projectKind(most: number, users: string[]): Kind<Project> {
    return {
        kind: "project",
        title: w("projects"),
        adds: w("add_project"),
        add: addProject,
        edit: (p, done) => editProject(p, users, done),
        remove: removeProject,
        stays: (p) => p.name === "default",
        more: (p, may, done) => <AlertsOf project={p} may={may} done={done} />,
        head: () => <span class="dim">{t("project")}</span>,
        facts: (p) => (
            <>
                <dt>{w("members")}</dt>
                <dd>{namesOf(p.members)}</dd>
                <dt>{w("share")}</dt>
                <dd>{p.share}</dd>
                <dt>{w("priority")}</dt>
                <dd>{p.priority_ceiling}</dd>
                {p.pool && (
                    <>
                        <dt>{t("pool")}</dt>
                        <dd>
                            <Text of={p.pool} />
                        </dd>
                    </>
                )}
                <Note of={p.note} />
            </>
        ),
        cols: [
            {
                key: "name",
                title: t("project"),
                draw: (p) => (
                    <a class="name" href={here({ project: p.name })}>
                        <Text of={p.name} />
                    </a>
                ),
                csv: (p) => p.name,
            },
            {
                key: "members",
                title: w("members"),
                num: true,
                wide: true,
                width: 84,
                draw: (p) => p.members.length,
                csv: (p) => p.members.join(" "),
            },
            ...accountCols<Project>(most),
        ],
    };
}

function userKind(most: number): Kind<User> {
    return {
        kind: "user",
        title: w("users"),
        adds: w("add_user"),
        add: addUser,
        edit: editUser,
        remove: removeUser,
        stays: (u) => u.name === session.value?.user,
        opens: (u, done) => (
            <>
                <TokensOf user={u.name} done={done} />
                <SessionsOf user={u.name} />
            </>
        ),
        head: (u) => <span class={u.disabled ? "c-warn" : "dim"}>{u.disabled ? w("disabled") : u.role}</span>,
        facts: (u) => (
            <>
                <dt>{w("projects")}</dt>
                <dd>{namesOf(u.projects)}</dd>
                <dt>{w("tokens")}</dt>
                <dd>{u.tokens}</dd>
                <dt>{w("last_use")}</dt>
                <dd>
                    <Time at={u.last_use_at} as="ago" />
                </dd>
                <Note of={u.note} />
            </>
        ),
        cols: [
            {
                key: "name",
                title: t("user"),
                draw: (u) => (
                    <a class="name" href={here({ user: u.name })}>
                        <Text of={u.name} />
                        {u.disabled && <span class="dim"> · {w("disabled")}</span>}
                    </a>
                ),
                csv: (u) => u.name,
            },
            { key: "role", title: w("role"), width: 76, draw: (u) => u.role, csv: (u) => u.role },
            ...accountCols<User>(most),
            {
                key: "last_use_at",
                title: w("last_use"),
                width: 110,
                wide: true,
                draw: (u) => <Time at={u.last_use_at} as="ago" />,
                csv: (u) => u.last_use_at,
            },
        ],
    };
}

function Projects({ most, may }: { most: number; may: boolean }) {
    const asked = useAsk("GET /v1/projects", {}, LIVE);
    const users = useAsk(may ? "GET /v1/users" : null, {});
    const kind = projectKind(most, users.data?.users.map((u) => u.name) ?? []);
    return <Accounts of={asked} rows={asked.data?.projects} kind={kind} most={most} may={may} />;
}

function People({ most, may }: { most: number; may: boolean }) {
    const asked = useAsk("GET /v1/users", {}, LIVE);
    return <Accounts of={asked} rows={asked.data?.users} kind={userKind(most)} most={most} may={may} />;
}

export default function PeoplePage() {
    const q = query.value;
    const view = q.get("view") === "users" || q.get("user") ? "users" : "projects";
    const may = session.value?.role === "admin";
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools"] });
    const most = pools.data?.pools.find((p) => p.pool === null)?.gpus.total ?? 0;
    return (
        <>
            <Head title={route.title()} cli={view === "users" ? "argus user ls" : "argus project ls"} />
            <div class="filters bar-of n-views">
                <Seg
                    label={w("view")}
                    value={view}
                    onChange={(v) => setQuery({ view: v === "users" ? v : null, project: null, user: null })}
                    of={[
                        { value: "projects", says: w("projects") },
                        { value: "users", says: w("users") },
                    ]}
                />
                <span class="legend">
                    <span>
                        <i class="slot used" />
                        {w("l_sure")}
                    </span>
                    <span>
                        <i class="slot idle" />
                        {w("borrowed")}
                    </span>
                    <span>
                        <i class="quotamark" />
                        {w("l_mark")}
                    </span>
                </span>
            </div>
            {view === "users" ? <People most={most} may={may} /> : <Projects most={most} may={may} />}
        </>
    );
}
