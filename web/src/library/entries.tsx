// SPDX-License-Identifier: Apache-2.0
// entries.tsx - the page of data sets and the page of models: one list, one drawer with what was found in an entry, and
// what is done with it. ?q= ?sort= are the list's state, the entry's name is in the path.
import { useMemo, useRef, useState } from "preact/hooks";
import type { Dataset, DatasetItem, Model, ModelItem } from "../made/api";
import { call, Refusal, session } from "../api/client";
import { useAsk } from "../api/use";
import { useDo } from "../base/acts";
import { bytes, num, parameters, visible } from "../base/say";
import { scalar } from "../base/spectext";
import { packed } from "../base/anchor";
import { go, query, setQuery, withQuery } from "../base/url";
import { Blank, Pending } from "../kit/blank";
import { useDrop } from "../kit/drop";
import { Icon } from "../kit/icons";
import { List, ListCsv, type Column } from "../kit/list";
import { ask, Drawer } from "../kit/over";
import { Cli, Head, Meter, shell, Text, Time, toast, Toned } from "../kit/parts";
import { Rows } from "../kit/rows";
import { t } from "../words/shared";
import { Asks, Text1, Tick } from "./asks";
import { Breaks, looking } from "./breaks";
import { LineageGraph } from "./lineage";
import { Onward } from "./onward";
import { lastOfEachName, placeOf, sendAll, type Place } from "./sending";
import { w } from "./words";
import "./library.css";

const FILES_SHOWN = 8;

export type Kind = "data" | "models";
type Item = DatasetItem | ModelItem;
type Whole = Dataset | Model;
const noun = (kind: Kind) => (kind === "data" ? "data" : "model");
const isData = (e: Item): e is DatasetItem => "fit" in e;
const hrefOf = (kind: Kind, e: Item) => `/${kind}/${encodeURIComponent(e.ref)}${location.search}`;

interface Fit {
    fit?: boolean;
    missing?: string[];
}
const fits = (e: Item): [string, Fit][] =>
    isData(e) && e.fit ? (Object.entries(e.fit) as [string, Fit][]).filter(([, f]) => f && typeof f === "object") : [];

function EntryState({ of: e }: { of: Item }) {
    const p = e.progress as { bytes?: number; total?: number } | null;
    const tone = e.state === "ready" ? "ok" : e.state === "importing" ? "run" : "quiet";
    return (
        <Toned tone={tone} icon={e.state === "ready" ? "succeeded" : e.state === "importing" ? "pending" : "stopping"}>
            {w(e.state)}
            {e.state === "importing" && p?.total ? (
                <span class="util">
                    <Meter part={(p.bytes ?? 0) / p.total} />
                </span>
            ) : null}
        </Toned>
    );
}

function columnsOf(kind: Kind): Column<Item>[] {
    const own: Column<Item>[] =
        kind === "data"
            ? [
                  {
                      key: "rows",
                      title: w("rows"),
                      width: 96,
                      rank: 3,
                      num: true,
                      draw: (e) => (isData(e) && e.rows !== null ? num(e.rows) : "–"),
                      sort: (e) => (isData(e) ? e.rows : null),
                      csv: (e) => (isData(e) ? e.rows : null),
                  },
                  {
                      key: "fits",
                      title: w("fits"),
                      width: 140,
                      rank: 4,
                      draw: (e) => (
                          <span class="lib-fits">
                              {fits(e)
                                  .filter(([, f]) => f.fit)
                                  .map(([k]) => (
                                      <span class="flag ok">{visible(k)}</span>
                                  ))}
                          </span>
                      ),
                      csv: (e) =>
                          fits(e)
                              .filter(([, f]) => f.fit)
                              .map(([k]) => k)
                              .join(" "),
                  },
              ]
            : [
                  {
                      key: "parameters",
                      title: w("parameters"),
                      width: 110,
                      rank: 3,
                      num: true,
                      draw: (e) => (!isData(e) && e.parameters ? parameters(e.parameters) : "–"),
                      sort: (e) => (isData(e) ? null : e.parameters),
                      csv: (e) => (isData(e) ? null : e.parameters),
                  },
                  {
                      key: "architecture",
                      title: w("architecture"),
                      width: 190,
                      rank: 5,
                      draw: (e) => <Text of={isData(e) ? null : e.architecture} />,
                      csv: (e) => (isData(e) ? null : e.architecture),
                  },
              ];
    return [
        {
            key: "name",
            title: t("name"),
            width: 0,
            rank: 0,
            draw: (e) => (
                <span class="row">
                    <a class="name cut" href={hrefOf(kind, e)} tabIndex={-1}>
                        <Text of={e.ref} />
                    </a>
                    {e.common && <span class="flag quiet">{w("common")}</span>}
                </span>
            ),
            sort: (e) => e.ref.toLowerCase(),
            csv: (e) => e.ref,
        },
        {
            key: "state",
            title: t("state"),
            width: 130,
            rank: 1,
            draw: (e) => <EntryState of={e} />,
            sort: (e) => e.state,
            csv: (e) => e.state,
        },
        ...own,
        {
            key: "bytes",
            title: w("size"),
            width: 96,
            rank: 2,
            num: true,
            draw: (e) => bytes(e.bytes),
            sort: (e) => e.bytes,
            csv: (e) => e.bytes,
        },
        {
            key: "owner",
            title: w("owner"),
            width: 100,
            rank: 6,
            draw: (e) => <Text of={e.owner} />,
            sort: (e) => e.owner,
            csv: (e) => e.owner,
        },
        {
            key: "uses",
            title: w("uses"),
            width: 70,
            rank: 8,
            num: true,
            draw: (e) => e.uses,
            sort: (e) => e.uses,
            csv: (e) => e.uses,
        },
        {
            key: "created_at",
            title: w("made"),
            width: 110,
            rank: 7,
            draw: (e) => <Time at={e.created_at} />,
            sort: (e) => (e.created_at ? Date.parse(e.created_at) : null),
            csv: (e) => e.created_at,
        },
    ];
}

function Chosen({ files, sent, stop }: { files: File[]; sent: number; stop?: () => void }) {
    const total = files.reduce((sum, f) => sum + f.size, 0);
    return (
        <>
            <ul class="lib-files mono small">
                {files.slice(0, FILES_SHOWN).map((f) => (
                    <li class="cut">{visible(f.name)}</li>
                ))}
                {files.length > FILES_SHOWN && <li class="dim">{w("l_more", files.length - FILES_SHOWN)}</li>}
            </ul>
            <p class="small mid row" role="status">
                <Meter part={total ? sent / total : 0} /> {w("progress", bytes(sent), bytes(total))}
                {stop && (
                    <button type="button" class="btn" onClick={stop}>
                        {w("i_stop")}
                    </button>
                )}
            </p>
        </>
    );
}

function Import(p: { kind: Kind; files: File[]; close: () => void; done: () => void }) {
    const { kind } = p;
    const mine = useAsk("GET /v1/whoami").data?.projects ?? [];
    const [name, setName] = useState("");
    const [source, setSource] = useState("");
    const [project, setProject] = useState("");
    const [inPlace, setInPlace] = useState(false);
    const [common, setCommon] = useState(false);
    const [files, setFiles] = useState(lastOfEachName(p.files));
    const [sent, setSent] = useState(0);
    const [control, setControl] = useState<AbortController | null>(null);
    const place = useRef<Place | null>(null);
    const isAdmin = session.value?.role === "admin";
    const drop = useDrop(kind === "data" && !control, (more) => setFiles((had) => lastOfEachName([...had, ...more])));
    // The import was asked for and not refused: the files may be a data set's by now, whether its answer came or not.
    const mayBeTaken = useRef(false);
    /** What was sent for nothing does not stay on the shared root. */
    const leave = (of: Place | null) => {
        if (of?.there.size && !mayBeTaken.current)
            void call("DELETE /v1/files", { query: { path: of.at, recursive: true } }).catch(() => undefined);
    };
    const close = () => {
        control?.abort();
        leave(place.current);
        p.close();
    };
    const sendFiles = async () => {
        const stop = new AbortController();
        const to = placeOf(place.current, session.value?.user ?? "", name, files);
        if (to !== place.current) {
            leave(place.current);
            mayBeTaken.current = false;
        }
        place.current = to;
        setControl(stop);
        try {
            await sendAll(files, to, setSent, stop.signal);
        } catch (e) {
            throw stop.signal.aborted ? new Refusal(0, "stopped", w("i_stopped"), undefined, null) : e;
        } finally {
            setControl(null);
        }
        return `\${SHARED_ROOT}/${to.at}`;
    };
    const does = async () => {
        const from = files.length ? await sendFiles() : source.trim();
        const stays = files.length > 0 || inPlace;
        const before = mayBeTaken.current;
        mayBeTaken.current = true;
        await call(kind === "data" ? "POST /v1/datasets" : "POST /v1/models", {
            body: {
                name,
                source: from,
                ...(stays ? { in_place: true } : {}),
                ...(common ? { common: true } : project ? { project } : {}),
            },
        }).catch((e) => {
            mayBeTaken.current = before || !(e instanceof Refusal && e.status >= 400 && e.status < 500);
            throw e;
        });
        place.current = null;
        toast(w("i_started", name));
        p.done();
    };
    const cli = files.length
        ? `argus data upload ${files.map((f) => shell(f.name)).join(" ")} --name ${shell(name || "NAME")}`
        : `argus ${noun(kind)} import ${shell(source || "SOURCE")} --name ${shell(name || "NAME")}${inPlace ? " --in-place" : ""}${common ? " --common" : ""}${project && !common ? ` --project ${shell(project)}` : ""}`;
    return (
        <Asks
            title={w(kind === "data" ? "i_title_data" : "i_title_models")}
            act={w("i_go")}
            cli={cli}
            text={w("i_text")}
            off={!name || (!source.trim() && !files.length)}
            close={close}
            does={does}
        >
            <Text1 says={w("i_name")} value={name} set={setName} first needed />
            {!files.length && <Text1 says={w("i_source")} value={source} set={setSource} hint={w("i_source_hint")} />}
            {kind === "data" && (
                <div class={`lib-drop ${drop.over ? "dropping" : ""}`} {...drop.on}>
                    <label>
                        {w("i_upload")}
                        <input
                            type="file"
                            multiple
                            disabled={!!control}
                            onChange={(e) => setFiles([...(e.currentTarget.files ?? [])])}
                        />
                    </label>
                </div>
            )}
            {files.length > 0 && (
                <Chosen files={files} sent={sent} stop={control ? () => control.abort() : undefined} />
            )}
            <Text1 says={w("i_project")} value={project} set={setProject} choices={mine} />
            {!files.length && <Tick says={w("i_in_place")} on={inPlace} set={setInPlace} />}
            {isAdmin && <Tick says={w("i_common")} on={common} set={setCommon} />}
        </Asks>
    );
}

function Prepare({ of: e, close, done }: { of: Item; close: () => void; done: () => void }) {
    const [script, setScript] = useState("gsm8k");
    const [as, setAs] = useState(`${e.name}-verl`);
    return (
        <Asks
            title={w("p_title", visible(e.ref))}
            act={w("p_go")}
            cli={`argus data prepare ${shell(e.ref)} --with ${shell(script || "SCRIPT")} --as ${shell(as)}`}
            text={w("p_text")}
            off={!script || !as}
            close={close}
            does={async () => {
                await call("POST /v1/datasets:prepare", { body: { name: e.ref, with: script, as } });
                done();
            }}
            done={w("i_started", as)}
        >
            <Text1 says={w("p_with")} value={script} set={setScript} hint={w("p_with_hint")} first needed />
            <Text1 says={w("p_as")} value={as} set={setAs} needed />
        </Asks>
    );
}

const split = (text: string) =>
    text
        .split(/[,\s]+/)
        .map((x) => x.trim())
        .filter(Boolean);

function Share({ kind, of: e, close, done }: { kind: Kind; of: Item; close: () => void; done: () => void }) {
    const [users, setUsers] = useState("");
    const [projects, setProjects] = useState("");
    return (
        <Asks
            title={w("s_title", visible(e.ref))}
            act={w("s_go")}
            cli={`argus ${noun(kind)} share ${shell(e.ref)}${split(users)
                .map((u) => ` --user ${shell(u)}`)
                .join("")}${split(projects)
                .map((u) => ` --project ${shell(u)}`)
                .join("")}`}
            off={!users && !projects}
            close={close}
            done={w("s_done")}
            does={async () => {
                await call(kind === "data" ? "POST /v1/datasets/{name}:share" : "POST /v1/models/{name}:share", {
                    path: { name: e.ref },
                    body: { users: split(users), projects: split(projects) },
                });
                done();
            }}
        >
            <Text1 says={w("s_users")} value={users} set={setUsers} first />
            <Text1 says={w("s_projects")} value={projects} set={setProjects} />
        </Asks>
    );
}

/** What a removal is, whatever its dialog says. */
const removal = (kind: Kind, e: Item, done: () => void) => ({
    isBad: true,
    cli: `argus ${noun(kind)} rm ${shell(e.ref)}`,
    does: async () => {
        await call(kind === "data" ? "DELETE /v1/datasets/{name}" : "DELETE /v1/models/{name}", {
            path: { name: e.ref },
        });
        done();
    },
});

/** An import ends with its job, and leaves nothing. */
function cancelImport(kind: Kind, e: Item, done: () => void) {
    ask({
        ...removal(kind, e, done),
        title: w("c_title", visible(e.ref)),
        act: w("c_go"),
        done: w("c_done"),
        body: <p>{w("c_text", visible(e.job ?? ""))}</p>,
    });
}

function remove(kind: Kind, e: Item, done: () => void) {
    const stands = looking();
    ask({
        ...removal(kind, e, done),
        title: w("r_title", visible(e.ref)),
        act: w("r_go"),
        done: w("r_done"),
        missing: () => stands.value,
        body: (
            <>
                <p>{e.in_place ? w("r_in_place", visible(e.path)) : w("r_copied", bytes(e.bytes))}</p>
                <Breaks kind={kind} name={e.ref} stands={stands} />
            </>
        ),
    });
}

function About({ of: e }: { of: Whole }) {
    const about = (e.about ?? {}) as {
        columns?: { name: string; type: string }[] | null;
        sample?: unknown[];
        splits?: Record<string, string[]>;
    };
    const columns = Array.isArray(about.columns) ? about.columns : [];
    const sample = Array.isArray(about.sample) ? about.sample : [];
    const lacks = fits(e).filter(([, f]) => f.fit === false);
    return (
        <>
            {(columns.length > 0 || lacks.length > 0) && (
                <section>
                    <h3>{w("columns")}</h3>
                    <div class="lib-cols">
                        {columns.map((c) => (
                            <span>
                                <code>{visible(String(c.name))}</code>{" "}
                                <span class="dim">{visible(String(c.type))}</span>
                            </span>
                        ))}
                    </div>
                    {lacks.map(([k, f]) => (
                        <p class="small c-warn">
                            {w("lacks", visible(k), visible((f.missing ?? []).join(", ") || "–"))}
                        </p>
                    ))}
                </section>
            )}
            {sample.length > 0 && (
                <section>
                    <h3>{w("sample")}</h3>
                    <Rows rows={sample} label={w("sample")} />
                </section>
            )}
        </>
    );
}

/** Where it lies, as the page of files has it; null: not below a root that it shows. */
const filesPath = (path: string) => /\/((?:users\/[^/]+|common)\/.*)$/.exec(path)?.[1] ?? null;

function Facts({ of: e }: { of: Whole }) {
    const at = filesPath(e.path);
    const rows: [string, preact.ComponentChildren][] = [
        [w("source"), e.source && <Text of={e.source} mono />],
        [
            w("path"),
            <>
                {at ? (
                    <a class="link mono" href={withQuery("/files", { path: at })}>
                        {visible(e.path)}
                    </a>
                ) : (
                    <Text of={e.path} mono />
                )}
                {e.in_place && <span class="dim"> · {w("in_place")}</span>}
            </>,
        ],
        [w("files"), `${num(e.files)} · ${bytes(e.bytes)}`],
        [w("format"), e.format && <Text of={e.format} />],
        [w("rows"), isData(e) && e.rows !== null ? num(e.rows) : null],
        [w("parameters"), !isData(e) && e.parameters ? num(e.parameters) : null],
        [w("architecture"), !isData(e) && e.architecture ? <Text of={e.architecture} /> : null],
        [w("revision"), e.revision && <Text of={e.revision} mono />],
        [w("hash"), e.hash && <Text of={e.hash.slice(0, 16)} mono />],
        [
            w("job"),
            e.job && (
                <a class="link mono" href={`/jobs/${encodeURIComponent(e.job)}`}>
                    {visible(e.job)}
                </a>
            ),
        ],
        [t("project"), e.project && <Text of={e.project} />],
        [w("shared"), e.shared.length > 0 && <Text of={e.shared.join(", ")} />],
        [w("note"), e.note && <span class="said">{visible(e.note)}</span>],
    ];
    return (
        <dl class="kv">
            {rows.map(([says, what]) =>
                what ? (
                    <>
                        <dt>{says}</dt>
                        <dd>{what}</dd>
                    </>
                ) : null,
            )}
        </dl>
    );
}

function useHref(kind: Kind, e: Item): string {
    const key = kind === "data" ? "train_file" : "model_id";
    return `/submit#spec=${packed(`workload: grpo\nnnodes: 1\nn_gpus_per_node: 1\n${key}: ${scalar(e.ref)}\n`)}`;
}

function Shown({ kind, name, again }: { kind: Kind; name: string; again: () => void }) {
    const route = kind === "data" ? "GET /v1/datasets/{name}" : "GET /v1/models/{name}";
    const asked = useAsk(route as "GET /v1/datasets/{name}", { path: { name } }, { topics: ["jobs"] });
    const e = asked.data as Whole | undefined;
    const [open, setOpen] = useState<"" | "prepare" | "share">("");
    const close = () => go(`/${kind}${location.search}`);
    const me = session.value;
    const may = !!e && me?.role !== "viewer" && (me?.role === "admin" || e.owner === me?.user);
    const changed = () => {
        asked.again();
        again();
    };
    return (
        <Drawer
            label={visible(name)}
            onClose={close}
            head={
                <>
                    <h2 class="cut">
                        <Text of={name} />
                    </h2>
                    {e && <EntryState of={e} />}
                </>
            }
            foot={
                e && (
                    <>
                        <Cli line={`argus ${noun(kind)} show ${shell(e.ref)}`} />
                        <span class="grow" />
                        {me?.role !== "viewer" && (
                            <a class="btn act" href={useHref(kind, e)}>
                                {w("use")}
                            </a>
                        )}
                    </>
                )
            }
        >
            {asked.why || !e ? (
                <Pending of={asked} lines={6} />
            ) : (
                <div class="lib-body">
                    {me?.role !== "viewer" && (
                        <section class="lib-head act">
                            {kind === "data" && (
                                <button type="button" class="btn" onClick={() => setOpen("prepare")}>
                                    {w("prepare")}
                                </button>
                            )}
                            {may && (
                                <>
                                    <button type="button" class="btn" onClick={() => setOpen("share")}>
                                        {w("share")}
                                    </button>
                                    <button
                                        type="button"
                                        class="btn bad"
                                        onClick={() =>
                                            (e.state === "importing" ? cancelImport : remove)(kind, e, () => {
                                                close();
                                                again();
                                            })
                                        }
                                    >
                                        {w(e.state === "importing" ? "c_import" : "remove")}
                                    </button>
                                </>
                            )}
                        </section>
                    )}
                    <section>
                        <Facts of={e} />
                    </section>
                    {kind === "models" || e.lineage ? (
                        <section>
                            <h3>
                                {w("lineage")}
                                {e.lineage_by === "importer" && <span class="dim small"> · {w("l_said")}</span>}
                            </h3>
                            <LineageGraph name={e.ref} of={e.lineage} />
                        </section>
                    ) : null}
                    {kind === "models" && (
                        <section>
                            <h3>{w("onward")}</h3>
                            <Onward name={e.ref} />
                        </section>
                    )}
                    <About of={e} />
                    {open === "prepare" && <Prepare of={e} close={() => setOpen("")} done={changed} />}
                    {open === "share" && <Share kind={kind} of={e} close={() => setOpen("")} done={changed} />}
                </div>
            )}
        </Drawer>
    );
}

export function Entries({ kind, name }: { kind: Kind; name?: string }) {
    const q = query.value.get("q") ?? "";
    // The files that the form of an import begins with; null: it is not open.
    const [adds, setAdds] = useState<File[] | null>(null);
    const route = kind === "data" ? "GET /v1/datasets" : "GET /v1/models";
    const asked = useAsk(route as "GET /v1/datasets", { query: { q: q || undefined } }, { topics: ["jobs"] });
    const reply = asked.data as { datasets?: Item[]; models?: Item[] } | undefined;
    const rows = reply?.datasets ?? reply?.models;
    const columns = useMemo(() => columnsOf(kind), [kind, document.documentElement.lang]);
    const may = session.value?.role !== "viewer";
    const drop = useDrop(may && kind === "data" && !adds, setAdds);
    useDo({ import: may && (() => setAdds([])) });
    const act = may && (
        <button type="button" class="btn act" onClick={() => setAdds([])}>
            <Icon name="plus" />
            {w("import")}
        </button>
    );
    return (
        <div class={`entries ${drop.over ? "dropping" : ""}`} {...drop.on}>
            {drop.over && <p class="drop-note">{w("i_drop")}</p>}
            <Head title={t(kind)} sub={rows && num(rows.length)} cli={`argus ${noun(kind)} ls`}>
                {act}
            </Head>
            <div class="filters bar-of">
                <label class="search">
                    <Icon name="search" />
                    <input
                        type="search"
                        aria-label={w("search")}
                        placeholder={w("search")}
                        value={q}
                        onInput={(e) => setQuery({ q: e.currentTarget.value })}
                    />
                </label>
                <span class="end row">{rows && <ListCsv rows={rows} columns={columns} />}</span>
            </div>
            {asked.why || !rows ? (
                <Pending of={asked} lines={8} framed />
            ) : !rows.length ? (
                <section class="panel">
                    {q ? (
                        <Blank
                            title={t("nothing_matches")}
                            act={
                                <button type="button" class="btn" onClick={() => setQuery({ q: null })}>
                                    {t("clear_filters")}
                                </button>
                            }
                        />
                    ) : (
                        <Blank title={w(`${kind}_empty`)} act={act}>
                            {w(`${kind}_empty_text`)}
                        </Blank>
                    )}
                </section>
            ) : (
                <List
                    label={t(kind)}
                    rows={rows}
                    columns={columns}
                    keyOf={(e) => e.ref}
                    nameOf={(e) => e.ref}
                    href={(e) => hrefOf(kind, e)}
                    sort={query.value.get("sort")}
                    onSort={(sort) => setQuery({ sort })}
                    current={name}
                    card={(e) => (
                        <>
                            <span class="row">
                                <EntryState of={e} />
                                <span class="end dim">{bytes(e.bytes)}</span>
                            </span>
                            <span class="name cut">
                                <Text of={e.ref} />
                            </span>
                        </>
                    )}
                />
            )}
            {name && <Shown key={name} kind={kind} name={name} again={asked.again} />}
            {adds && <Import kind={kind} files={adds} close={() => setAdds(null)} done={asked.again} />}
        </div>
    );
}
