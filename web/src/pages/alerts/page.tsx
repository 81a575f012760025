// SPDX-License-Identifier: Apache-2.0
// page.tsx - what is wrong, who looks at it, and who is told. ?view= picks the list, ?alert= or ?incident= a drawer.
import type { Alert, AlertRule, IncidentItem, Receiver, Silence } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Dash, Head, Panel, Seg, Text, Time, toast } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { short } from "../../kit/stack";
import { t } from "../../words/shared";
import { addSilence, editRule, endSilence, removeRule } from "./deeds";
import { AlertDrawer, IncidentDrawer } from "./drawers";
import { here, SeverityMark, Subject, textOf, titleOf } from "./parts";
import { w } from "./words";

const VIEWS = ["open", "silenced", "past", "incidents", "silences", "rules", "receivers"] as const;
type View = (typeof VIEWS)[number];
const LIVE = { topics: ["events" as const], every: 30_000 };

const CLI: Record<View, string> = {
    open: "argus alert ls",
    silenced: "argus alert ls --state silenced",
    past: "argus alert ls --state past",
    incidents: "argus incident ls",
    silences: "argus alert silences",
    rules: "argus alert rules",
    receivers: "argus alert receivers",
};

type Look<T> = { why: unknown; data: T[] | undefined; again: () => void };

/** A list in a panel with its states. */
function Listed<R>(p: {
    title: string;
    look: Look<R>;
    cols: Col<R>[];
    keyOf: (row: R) => string;
    none: string;
    noneText?: string;
    current?: string | null;
    end?: preact.ComponentChildren;
}) {
    const rows = p.look.data;
    return (
        <Panel
            bare
            title={p.title}
            count={rows?.length}
            end={
                <>
                    {p.end}
                    {!!rows?.length && <TableCsv rows={rows} cols={p.cols} />}
                </>
            }
        >
            {p.look.why ? (
                <Refused why={p.look.why} again={p.look.again} />
            ) : !rows ? (
                <Loading rows={5} />
            ) : rows.length ? (
                <Table label={p.title} rows={rows} cols={p.cols} keyOf={p.keyOf} current={p.current} />
            ) : (
                <Blank title={p.none}>{p.noneText}</Blank>
            )}
        </Panel>
    );
}

const alertCols = (past: boolean): Col<Alert>[] => [
    {
        key: "severity",
        title: w("severity"),
        width: 108,
        draw: (a) => <SeverityMark of={a.severity} />,
        csv: (a) => a.severity,
    },
    {
        key: "text",
        title: w("says"),
        draw: (a) => (
            <a class="cut said-block" href={here({ alert: a.id })} title={textOf(a)}>
                {textOf(a)}
            </a>
        ),
        csv: (a) => a.text,
    },
    {
        key: "name",
        title: w("subject"),
        width: 220,
        wide: true,
        draw: (a) => <Subject of={a} />,
        csv: (a) => `${a.kind}/${a.name}`,
    },
    {
        key: "rule",
        title: w("rule"),
        width: 140,
        wide: "very",
        draw: (a) => <Text of={a.rule} mono />,
        csv: (a) => a.rule,
    },
    {
        key: "acked_by",
        title: w("acked"),
        width: 130,
        wide: "very",
        draw: (a) => <Text of={a.acked_by} />,
        csv: (a) => a.acked_by,
    },
    past
        ? {
              key: "ended_at",
              title: w("ended"),
              width: 100,
              draw: (a) => <Time at={a.ended_at} as="ago" />,
              csv: (a) => a.ended_at,
          }
        : {
              key: "since",
              title: w("since"),
              width: 100,
              draw: (a) => <Time at={a.since} as="ago" />,
              csv: (a) => a.since,
          },
];

const incidentCols = (): Col<IncidentItem>[] => [
    {
        key: "severity",
        title: w("severity"),
        width: 108,
        draw: (i) => <SeverityMark of={i.severity} />,
        csv: (i) => i.severity,
    },
    {
        key: "title",
        title: w("incident"),
        draw: (i) => (
            <a class="cut said-block" href={here({ incident: i.id })}>
                {titleOf(i)}
            </a>
        ),
        csv: (i) => i.title,
    },
    { key: "id", title: t("id"), width: 72, wide: true, draw: (i) => <Text of={i.id} mono />, csv: (i) => i.id },
    { key: "jobs", title: w("jobs_hit"), width: 72, num: true, wide: true, draw: (i) => i.jobs, csv: (i) => i.jobs },
    {
        key: "gpu_hours",
        title: w("gpu_hours"),
        width: 96,
        num: true,
        wide: true,
        draw: (i) => short(i.gpu_hours),
        csv: (i) => i.gpu_hours,
    },
    {
        key: "opened_at",
        title: w("opened"),
        width: 110,
        draw: (i) => <Time at={i.opened_at} />,
        csv: (i) => i.opened_at,
    },
    {
        key: "closed_at",
        title: w("closed"),
        width: 110,
        draw: (i) => (i.open ? <span class="c-slow">{w("is_open")}</span> : <Time at={i.closed_at} />),
        csv: (i) => i.closed_at,
    },
];

const covers = (s: Silence) =>
    [s.alert, ...s.rules, ...s.kinds, ...s.projects, ...s.users, ...s.names]
        .filter(Boolean)
        .map((x) => visible(x!))
        .join(" · ") || t("all");

function Alerts({ state }: { state: "open" | "silenced" | "past" }) {
    const q = query.value;
    const severity = q.get("severity") ?? "";
    const asked = useAsk("GET /v1/alerts", { query: { state, severity } }, LIVE);
    const none = { open: w("none_open"), silenced: w("none_silenced"), past: w("none_past") }[state];
    return (
        <Listed
            title={w(state)}
            look={{ ...asked, data: asked.data?.alerts }}
            cols={alertCols(state === "past")}
            keyOf={(a) => a.id}
            current={q.get("alert")}
            none={severity ? t("nothing_matches") : none}
            noneText={state === "open" && !severity ? w("none_open_text") : undefined}
        />
    );
}

function Incidents() {
    const q = query.value;
    const all = q.get("over") === "1";
    const asked = useAsk("GET /v1/incidents", { query: { all } }, LIVE);
    return (
        <Listed
            title={w("incidents")}
            look={{ ...asked, data: asked.data?.incidents }}
            cols={incidentCols()}
            keyOf={(i) => i.id}
            current={q.get("incident")}
            none={w("none_incidents")}
            noneText={w("none_open_text")}
            end={
                <label class="row small">
                    <input
                        type="checkbox"
                        class="check"
                        checked={all}
                        onChange={() => setQuery({ over: all ? null : "1" })}
                    />
                    {w("open_too")}
                </label>
            }
        />
    );
}

function Silences() {
    const asked = useAsk("GET /v1/silences", {}, LIVE);
    const may = session.value?.role === "admin";
    const rules = useAsk(may ? "GET /v1/alert_rules" : null, {}).data?.rules.map((r) => r.name) ?? [];
    const cols: Col<Silence>[] = [
        { key: "id", title: t("id"), width: 72, draw: (s) => <Text of={s.id} mono />, csv: (s) => s.id },
        { key: "covers", title: w("covers"), draw: covers, csv: covers },
        { key: "note", title: w("note"), wide: true, draw: (s) => <Text of={s.note} />, csv: (s) => s.note },
        { key: "by", title: w("by"), width: 100, draw: (s) => <Text of={s.by} />, csv: (s) => s.by },
        { key: "until", title: w("until"), width: 110, draw: (s) => <Time at={s.until} />, csv: (s) => s.until },
        {
            key: "deed",
            title: "",
            width: 120,
            wide: true,
            draw: (s) =>
                may && (
                    <button type="button" class="btn act" onClick={() => endSilence(s, asked.again)}>
                        {w("unsilence")}
                    </button>
                ),
        },
    ];
    return (
        <Listed
            title={w("silences")}
            look={{ ...asked, data: asked.data?.silences }}
            cols={cols}
            keyOf={(s) => s.id}
            none={w("none_silences")}
            noneText={w("none_silences_text")}
            end={
                may && (
                    <button type="button" class="btn act" onClick={() => addSilence(rules, asked.again)}>
                        <Icon name="plus" />
                        {w("add_silence")}
                    </button>
                )
            }
        />
    );
}

function Rules() {
    const asked = useAsk("GET /v1/alert_rules", {}, LIVE);
    const may = session.value?.role === "admin";
    const cols: Col<AlertRule>[] = [
        {
            key: "severity",
            title: w("severity"),
            width: 108,
            draw: (r) => <SeverityMark of={r.severity} />,
            csv: (r) => r.severity,
        },
        {
            key: "name",
            title: w("rule"),
            width: 190,
            draw: (r) => (
                <>
                    <span class={r.off ? "dim" : "name"}>
                        <Text of={r.name} />
                    </span>
                    {r.off && <span class="dim"> · {w("off")}</span>}
                </>
            ),
            csv: (r) => r.name,
        },
        { key: "of", title: w("of"), width: 76, wide: "very", draw: (r) => r.of, csv: (r) => r.of },
        {
            key: "when",
            title: w("when"),
            draw: (r) => (
                <code class="reads" title={visible(r.when)}>
                    {visible(r.when)}
                </code>
            ),
            csv: (r) => r.when,
        },
        {
            key: "for",
            title: w("lasts"),
            width: 64,
            wide: true,
            draw: (r) => (r.for && r.for !== "0s" ? r.for : <Dash />),
            csv: (r) => r.for,
        },
        {
            key: "from",
            title: w("from"),
            width: 92,
            wide: "very",
            draw: (r) => <Text of={r.from} />,
            csv: (r) => r.from,
        },
        ...(may
            ? [
                  {
                      key: "deed",
                      title: "",
                      width: 150,
                      wide: true,
                      draw: (r: AlertRule) => (
                          <span class="row act">
                              <button
                                  type="button"
                                  class="btn bare"
                                  aria-label={`${w("edit")} ${r.name}`}
                                  onClick={() => editRule(r, asked.again)}
                              >
                                  {w("edit")}
                              </button>
                              {r.changed_at && (
                                  <button
                                      type="button"
                                      class="btn bare bad"
                                      aria-label={`${w("rm")} ${r.name}`}
                                      onClick={() => removeRule(r, asked.again)}
                                  >
                                      {w("rm")}
                                  </button>
                              )}
                          </span>
                      ),
                  },
              ]
            : []),
    ];
    return (
        <Listed
            title={w("rules")}
            look={{ ...asked, data: asked.data?.rules }}
            cols={cols}
            keyOf={(r) => r.name}
            none={t("none")}
            end={
                may && (
                    <button type="button" class="btn act" onClick={() => editRule(null, asked.again)}>
                        <Icon name="plus" />
                        {w("add_rule")}
                    </button>
                )
            }
        />
    );
}

function Receivers() {
    const asked = useAsk("GET /v1/receivers", {}, LIVE);
    const may = session.value?.role === "admin";
    const test = async (r: Receiver) => {
        try {
            await call("POST /v1/receivers/{receiver}:test", { path: { receiver: r.name } });
            toast(w("test_done", r.name));
        } catch (e) {
            toast(e instanceof Refusal ? visible(e.detail) : String(e));
        }
        asked.again();
    };
    const cols: Col<Receiver>[] = [
        {
            key: "name",
            title: t("name"),
            draw: (r) => (
                <span class="name">
                    <Text of={r.name} />
                </span>
            ),
            csv: (r) => r.name,
        },
        { key: "kind", title: w("kind"), width: 92, draw: (r) => r.kind, csv: (r) => r.kind },
        { key: "taken", title: w("taken"), width: 76, num: true, draw: (r) => num(r.taken), csv: (r) => r.taken },
        {
            key: "refused",
            title: w("refused"),
            width: 76,
            num: true,
            draw: (r) => <span class={r.refused ? "c-bad" : ""}>{num(r.refused)}</span>,
            csv: (r) => r.refused,
        },
        {
            key: "waiting",
            title: w("waits"),
            width: 76,
            num: true,
            wide: true,
            draw: (r) => num(r.waiting),
            csv: (r) => r.waiting,
        },
        {
            key: "taken_at",
            title: w("last"),
            width: 110,
            wide: true,
            draw: (r) => <Time at={r.taken_at} as="ago" />,
            csv: (r) => r.taken_at,
        },
        {
            key: "trouble",
            title: w("trouble"),
            draw: (r) =>
                r.trouble ? (
                    <span class="c-bad" title={visible(r.trouble)}>
                        {visible(r.trouble)}
                    </span>
                ) : (
                    <Dash />
                ),
            csv: (r) => r.trouble,
        },
        ...(may
            ? [
                  {
                      key: "deed",
                      title: "",
                      width: 130,
                      wide: true,
                      draw: (r: Receiver) => (
                          <button
                              type="button"
                              class="btn act"
                              title={`argus alert test ${r.name}`}
                              onClick={() => void test(r)}
                          >
                              {w("test")}
                          </button>
                      ),
                  },
              ]
            : []),
    ];
    return (
        <Listed
            title={w("receivers")}
            look={{ ...asked, data: asked.data?.receivers }}
            cols={cols}
            keyOf={(r) => r.name}
            none={w("none_receivers")}
            noneText={w("none_receivers_text")}
        />
    );
}

export default function AlertsPage() {
    const q = query.value;
    const view = (VIEWS as readonly string[]).includes(q.get("view") ?? "") ? (q.get("view") as View) : "open";
    const open = useAsk("GET /v1/alerts", { query: { state: "open" } }, LIVE);
    const alert = q.get("alert");
    const incident = q.get("incident");
    const critical = open.data?.alerts.filter((a) => a.severity === "critical").length ?? 0;
    const severity = q.get("severity") ?? "";
    const close = () => setQuery({ alert: null, incident: null });
    return (
        <>
            <Head
                title={t("alerts")}
                sub={open.data && w("sub", open.data.alerts.length, critical)}
                cli={
                    CLI[view] +
                    (severity && (view === "open" || view === "silenced" || view === "past")
                        ? ` --severity ${severity}`
                        : "")
                }
            />
            <div class="filters bar-of n-views">
                <Seg
                    label={w("view")}
                    value={view}
                    onChange={(v) => setQuery({ view: v === "open" ? null : v, alert: null, incident: null })}
                    of={VIEWS.map((v) => ({ value: v, says: w(v) }))}
                />
                {(view === "open" || view === "silenced" || view === "past") && (
                    <Seg
                        label={w("severity")}
                        value={severity}
                        onChange={(v) => setQuery({ severity: v })}
                        of={[
                            { value: "", says: t("all") },
                            { value: "critical", says: w("critical") },
                            { value: "warning", says: w("warning") },
                        ]}
                    />
                )}
            </div>
            {view === "incidents" ? (
                <Incidents />
            ) : view === "silences" ? (
                <Silences />
            ) : view === "rules" ? (
                <Rules />
            ) : view === "receivers" ? (
                <Receivers />
            ) : (
                <Alerts state={view} />
            )}
            {alert ? (
                <AlertDrawer id={alert} key={alert} close={close} />
            ) : (
                incident && <IncidentDrawer id={incident} key={incident} close={close} />
            )}
        </>
    );
}
