// SPDX-License-Identifier: Apache-2.0
// page.tsx - files below the shared root that one may see: looked through, looked into, uploaded by drag and drop,
// removed. ?path= is the directory, ?show= the file that is looked into.
import { useRef, useState } from "preact/hooks";
import type { File as Entry } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { putFile } from "../../api/upload";
import { useAsk } from "../../api/use";
import { bytes, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { useDrop } from "../../kit/drop";
import { Icon } from "../../kit/icons";
import { List, type Column } from "../../kit/list";
import { ask, Drawer } from "../../kit/over";
import { Cli, Head, Meter, Panel, shell, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { contentHref, Preview } from "./preview";
import { w } from "./words";
import "./page.css";

type Row = NonNullable<Entry["entries"]>[number];
const join = (path: string, name: string) => (path ? `${path}/${name}` : name);
const isDir = (r: Row) => r.kind === "directory";

function Crumbs({ path }: { path: string }) {
    // "users/<name>" is one root: nothing can be seen between.
    const parts = path ? path.split("/") : [];
    const steps =
        parts[0] === "users" || parts[0] === "jobs" ? [parts.slice(0, 2).join("/"), ...parts.slice(2)] : parts;
    let at = "";
    return (
        <nav class="crumbs" aria-label={w("root")}>
            <a href="/files">{w("root")}</a>
            {steps.map((s, i) => {
                at = join(at, s);
                return (
                    <>
                        <Icon name="right" />
                        {i === steps.length - 1 ? (
                            <b aria-current="page">
                                <Text of={s} />
                            </b>
                        ) : (
                            <a href={withQuery("/files", { path: at })}>
                                <Text of={s} />
                            </a>
                        )}
                    </>
                );
            })}
        </nav>
    );
}

function remove(path: string, dir: boolean, done: () => void) {
    ask({
        title: w("rm_title", visible(path.split("/").pop()!)),
        isBad: true,
        act: w("rm_go"),
        cli: `argus files rm ${dir ? "-r " : ""}${shell(path)}`,
        body: <p>{w(dir ? "rm_dir" : "rm_file", visible(path))}</p>,
        done: w("removed"),
        does: async () => {
            await call("DELETE /v1/files", { query: { path, recursive: dir || undefined } });
            done();
        },
    });
}

interface Sending {
    file: File;
    path: string;
    sent: number;
    state: "going" | "done" | "failed";
    why?: Refusal;
    control: AbortController;
}

function useSending(into: string, done: () => void) {
    const [all, setAll] = useState<Sending[]>([]);
    const change = (s: Sending, to: Partial<Sending>) => {
        Object.assign(s, to);
        setAll((list) => [...list]);
    };
    const start = async (s: Sending, replace: boolean) => {
        change(s, { state: "going", why: undefined, control: new AbortController() });
        try {
            await putFile(s.file, s.path, replace, (sent) => change(s, { sent }), s.control.signal);
            change(s, { state: "done", sent: s.file.size });
            done();
        } catch (e) {
            change(s, { state: "failed", why: e instanceof Refusal ? e : undefined });
        }
    };
    const add = (files: Iterable<File>) => {
        const more = [...files].map((file): Sending => ({
            file,
            path: join(into, file.name),
            sent: 0,
            state: "going",
            control: new AbortController(),
        }));
        setAll((list) => [...list.filter((s) => s.state === "going"), ...more]);
        // One after the other: the wire is one.
        void more.reduce((before, s) => before.then(() => start(s, false)), Promise.resolve());
    };
    return { all, add, start };
}

function SendingPanel({ all, start }: { all: Sending[]; start: (s: Sending, replace: boolean) => void }) {
    if (!all.length) return null;
    return (
        <Panel title={w("upload")} bare>
            <ul class="sending">
                {all.map((s) => (
                    <li>
                        <span class="cut">
                            <Text of={s.path} mono />
                        </span>
                        <Meter
                            part={s.file.size ? s.sent / s.file.size : 1}
                            tone={s.state === "failed" ? "bad" : s.state === "done" ? "ok" : undefined}
                        />
                        <span class="small mid nowrap" role="status">
                            {s.state === "done" ? w("sent") : w("sending", bytes(s.sent), bytes(s.file.size))}
                        </span>
                        <span>
                            {s.state === "going" ? (
                                <button type="button" class="btn bare" onClick={() => s.control.abort()}>
                                    {w("stop")}
                                </button>
                            ) : s.state === "failed" ? (
                                <button type="button" class="btn" onClick={() => start(s, s.why?.status === 409)}>
                                    {s.why?.status === 409 ? w("replace") : t("retry")}
                                </button>
                            ) : null}
                        </span>
                        {s.state === "failed" && (
                            <p class="small c-bad said">{s.why ? visible(s.why.detail) : w("gave_up")}</p>
                        )}
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

const columnsOf = (path: string, may: boolean, again: () => void): Column<Row>[] => [
    {
        key: "name",
        title: t("name"),
        width: 0,
        rank: 0,
        draw: (r) => (
            <span class="row">
                <Icon name={isDir(r) ? "files" : "notebooks"} />
                <a class="name cut" href={hrefOf(path, r)} tabIndex={-1}>
                    <Text of={r.name} />
                </a>
                {r.odd && <span class="flag warn">{w("odd")}</span>}
            </span>
        ),
        sort: (r) => `${isDir(r) ? 0 : 1}${(r.name ?? "").toLowerCase()}`,
        csv: (r) => r.name,
    },
    {
        key: "kind",
        title: w("kind"),
        width: 100,
        rank: 3,
        draw: (r) => w(r.kind),
        sort: (r) => r.kind,
        csv: (r) => r.kind,
    },
    {
        key: "bytes",
        title: w("size"),
        width: 100,
        rank: 1,
        num: true,
        draw: (r) => (r.bytes === undefined ? "–" : bytes(r.bytes)),
        sort: (r) => r.bytes ?? null,
        csv: (r) => r.bytes,
    },
    {
        key: "changed_at",
        title: w("changed"),
        width: 120,
        rank: 2,
        draw: (r) => <Time at={r.changed_at} />,
        sort: (r) => (r.changed_at ? Date.parse(r.changed_at) : null),
        csv: (r) => r.changed_at,
    },
    ...(may && path
        ? [
              {
                  key: "acts",
                  title: "",
                  width: 100,
                  rank: 4,
                  draw: (r: Row) => (
                      <button
                          type="button"
                          class="link act"
                          aria-label={`${w("remove")}: ${visible(r.name ?? "")}`}
                          onClick={() => remove(join(path, r.name ?? ""), isDir(r), again)}
                      >
                          {w("remove")}
                      </button>
                  ),
              },
          ]
        : []),
];

const hrefOf = (path: string, r: Row) =>
    isDir(r)
        ? withQuery("/files", { path: join(path, r.name ?? "") })
        : withQuery("/files", { path, show: r.name ?? "" });

function Shown({ path, row, may, again }: { path: string; row: Row; may: boolean; again: () => void }) {
    const whole = join(path, row.name ?? "");
    const close = () => setQuery({ show: null });
    return (
        <Drawer
            label={visible(row.name ?? "")}
            onClose={close}
            head={
                <>
                    <h2 class="cut">
                        <Text of={row.name} />
                    </h2>
                    <p class="small dim">
                        {bytes(row.bytes ?? 0)} · <Time at={row.changed_at} as="ago" />
                    </p>
                </>
            }
            foot={
                <>
                    <Cli line={`argus files get ${shell(whole)}`} />
                    <span class="grow" />
                    {may && (
                        <button
                            type="button"
                            class="btn bad act"
                            onClick={() =>
                                remove(whole, false, () => {
                                    close();
                                    again();
                                })
                            }
                        >
                            {w("remove")}
                        </button>
                    )}
                    <a class="btn" href={contentHref(whole)} download={row.name}>
                        {w("download")}
                    </a>
                </>
            }
        >
            <section>
                <Preview path={whole} size={row.bytes ?? 0} />
            </section>
        </Drawer>
    );
}

export default function Files() {
    const path = query.value.get("path") ?? "";
    const show = query.value.get("show");
    const pick = useRef<HTMLInputElement>(null);
    const asked = useAsk("GET /v1/files", { query: { path: path || undefined, limit: 1000 } });
    const rows = asked.data?.entries;
    const sending = useSending(path, asked.again);
    const may = session.value?.role !== "viewer";
    const canPut = may && !!path && asked.data?.kind === "directory";
    const shown = rows?.find((r) => r.name === show && !isDir(r));
    const drop = useDrop(canPut, sending.add);
    return (
        <div class={`files ${drop.over ? "dropping" : ""}`} {...drop.on}>
            <Head title={t("files")} cli={`argus files ls ${path ? shell(path) : ""}`.trim()}>
                {canPut && (
                    <>
                        <input
                            ref={pick}
                            type="file"
                            multiple
                            hidden
                            aria-label={w("upload")}
                            onChange={(e) => {
                                sending.add(e.currentTarget.files ?? []);
                                e.currentTarget.value = "";
                            }}
                        />
                        <button type="button" class="btn act" onClick={() => pick.current?.click()}>
                            <Icon name="up" />
                            {w("upload")}
                        </button>
                    </>
                )}
            </Head>
            <Crumbs path={path} />
            {drop.over && <p class="drop-note">{w("drop", visible(path))}</p>}
            <div class="cols">
                <SendingPanel all={sending.all} start={(s, replace) => void sending.start(s, replace)} />
                {asked.why || !rows ? (
                    <Pending of={asked} lines={8} framed />
                ) : !rows.length ? (
                    <section class="panel">
                        <Blank title={w("empty")}>{canPut ? w("empty_text") : null}</Blank>
                    </section>
                ) : (
                    <List
                        label={t("files")}
                        rows={rows}
                        columns={columnsOf(path, may, asked.again)}
                        keyOf={(r) => r.name ?? ""}
                        nameOf={(r) => r.name ?? ""}
                        href={(r) => hrefOf(path, r)}
                        sort={query.value.get("sort") ?? "name"}
                        onSort={(sort) => setQuery({ sort })}
                        current={show}
                        card={(r) => (
                            <span class="row">
                                <Icon name={isDir(r) ? "files" : "notebooks"} />
                                <span class="cut grow">
                                    <Text of={r.name} />
                                </span>
                                <span class="dim">{r.bytes === undefined ? "" : bytes(r.bytes)}</span>
                            </span>
                        )}
                    />
                )}
            </div>
            {shown && <Shown path={path} row={shown} may={may && !!path} again={asked.again} />}
        </div>
    );
}
