// SPDX-License-Identifier: Apache-2.0
// list.tsx - the services, and what others have put into Ray Serve.
import type { ServeApplication, ServiceItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useDo } from "../../base/acts";
import { figure, visible } from "../../base/say";
import { query } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Cli, Dash, Head, Panel, State, Text } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { addService } from "./deeds";
import { serviceHref, versionSays, within } from "./parts";
import { w } from "./words";

const EVERY = 5000;

const cols = (): Col<ServiceItem>[] => [
    {
        key: "name",
        title: w("service"),
        draw: (s) => (
            <>
                <a class="name" href={serviceHref(s.name)}>
                    <Text of={s.name} />
                </a>
                <span class="dim"> · {visible(s.what)}</span>
            </>
        ),
        csv: (s) => s.name,
    },
    { key: "state", title: t("state"), width: 118, draw: (s) => <State of={s.state} />, csv: (s) => s.state },
    {
        key: "version",
        title: w("version"),
        width: 84,
        wide: true,
        draw: versionSays,
        csv: (s) => s.current || s.wanted,
    },
    {
        key: "ready",
        title: w("ready"),
        width: 70,
        num: true,
        draw: (s) => w("n_ready", s.ready, s.replicas),
        csv: (s) => s.ready,
    },
    {
        key: "requests_per_minute",
        title: w("rate"),
        width: 104,
        num: true,
        wide: true,
        draw: (s) => figure(s.requests_per_minute),
        csv: (s) => s.requests_per_minute,
    },
    {
        key: "p95_ms",
        title: w("p95"),
        width: 96,
        num: true,
        wide: true,
        draw: (s) => within(s.p95_ms),
        csv: (s) => s.p95_ms,
    },
    {
        key: "errors_per_minute",
        title: w("errors"),
        width: 92,
        num: true,
        wide: true,
        draw: (s) => <span class={s.errors_per_minute ? "c-bad" : undefined}>{figure(s.errors_per_minute)}</span>,
        csv: (s) => s.errors_per_minute,
    },
    {
        key: "gpus",
        title: t("gpus"),
        width: 60,
        num: true,
        wide: true,
        draw: (s) => figure(s.gpus),
        csv: (s) => s.gpus,
    },
    {
        key: "owner",
        title: t("user"),
        width: 110,
        wide: "very",
        draw: (s) => <Text of={s.owner} />,
        csv: (s) => s.owner,
    },
    {
        key: "project",
        title: t("project"),
        width: 110,
        wide: "very",
        draw: (s) => <Text of={s.project} />,
        csv: (s) => s.project,
    },
];

const MADE = { list: "m_list", program: "m_program", argusd: "m_argusd" } as const;
const foreignCols = (): Col<ServeApplication>[] => [
    { key: "name", title: t("name"), draw: (a) => <Text of={a.name} />, csv: (a) => a.name },
    {
        key: "route",
        title: w("route"),
        draw: (a) => (a.route ? <code>{visible(a.route)}</code> : <Dash />),
        csv: (a) => a.route,
    },
    {
        key: "status",
        title: t("state"),
        width: 140,
        draw: (a) => <code>{visible(a.status)}</code>,
        csv: (a) => a.status,
    },
    {
        key: "made_by",
        title: w("made_by"),
        wide: true,
        draw: (a) => (a.made_by in MADE ? w(MADE[a.made_by as keyof typeof MADE]) : visible(a.made_by)),
        csv: (a) => a.made_by,
    },
];

function Foreign() {
    const asked = useAsk("GET /v1/service-applications", {}, { topics: ["services"], every: 30_000 });
    const rows = asked.data?.applications.filter((a) => a.made_by !== "argusd") ?? [];
    if (!rows.length) return null;
    return (
        <Panel
            bare
            title={w("foreign")}
            count={rows.length}
            end={
                <>
                    <Cli line="argus service applications" />
                    <TableCsv rows={rows} cols={foreignCols()} />
                </>
            }
        >
            <p class="mid small note-row">{w("foreign_text")}</p>
            <Table label={w("foreign")} rows={rows} cols={foreignCols()} keyOf={(a) => a.name} />
        </Panel>
    );
}

export function Services() {
    const asked = useAsk("GET /v1/services", {}, { topics: ["services"], every: EVERY });
    const rows = asked.data?.services;
    const may = session.value?.role !== "viewer";
    const add = () => addService(query.value.get("model") ?? "");
    useDo({ add: may && add });
    const act = may && (
        <button type="button" class="btn act" onClick={add}>
            <Icon name="plus" />
            {t("a_service")}
        </button>
    );
    return (
        <>
            <Head title={t("services")} cli="argus service ls">
                {act}
            </Head>
            <div class="cols">
                <Panel
                    bare
                    title={t("services")}
                    count={rows?.length}
                    end={!!rows?.length && <TableCsv rows={rows} cols={cols()} />}
                >
                    {asked.why || !rows ? (
                        <Pending of={asked} lines={5} />
                    ) : rows.length ? (
                        <Table label={t("services")} rows={rows} cols={cols()} keyOf={(s) => s.name} />
                    ) : (
                        <Blank title={w("none")} act={act}>
                            {w("none_text")}
                        </Blank>
                    )}
                </Panel>
                <Foreign />
            </div>
        </>
    );
}
