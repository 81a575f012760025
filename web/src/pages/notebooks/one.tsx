// SPDX-License-Identifier: Apache-2.0
// one.tsx - the drawer of one notebook: why it does not run, how it is opened, what happens in it, its settings.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Notebook, NotebookItem, Snapshot } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useActs } from "../../base/acts";
import { bytes, figure, num, spanSays, visible } from "../../base/say";
import { setQuery, withQuery } from "../../base/url";
import { Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, Dash, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { extendNotebook, freezeNotebook, openNotebook, removeNotebook, startNotebook, stopNotebook } from "./deeds";
import { isMine, isOver, line, PHASES, whose } from "./parts";
import { w } from "./words";

const Fact = ({ says, children }: { says: string; children: ComponentChildren }) => (
    <>
        <dt>{says}</dt>
        <dd>{children}</dd>
    </>
);

export function OpenButton({ of: n, isMain }: { of: NotebookItem; isMain?: boolean }) {
    return (
        <button type="button" class={`btn act ${isMain ? "main" : ""}`} onClick={() => void openNotebook(n)}>
            {t("open")}
        </button>
    );
}

/** What a start goes through, and where this one is. */
function Phases({ of: n }: { of: NotebookItem }) {
    const at = PHASES.findIndex((p) => p === n.phase);
    if (at < 0 || n.state === "READY") return null;
    return (
        <section>
            <h2>{w("start_of")}</h2>
            <ol class="nb-phases">
                {PHASES.map((p, i) => (
                    <li
                        key={p}
                        class={i < at ? "past" : i === at ? "now" : "next"}
                        aria-current={i === at ? "step" : undefined}
                    >
                        {w(`phase_${p}`)}
                    </li>
                ))}
            </ol>
        </section>
    );
}

function Interruption({ of: n }: { of: NotebookItem }) {
    if (!n.interruption) return null;
    return (
        <section>
            <h2>{w("interrupted")}</h2>
            <p class="said">{visible(n.interruption.text)}</p>
            <p class="small mid">
                <Time at={n.interrupted_at} />
            </p>
        </section>
    );
}

function Now({ of: n }: { of: NotebookItem }) {
    return (
        <section>
            <h2>{w("facts")}</h2>
            <dl class="kv">
                <Fact says={w("node")}>{n.node ? <Text of={n.node} /> : <Dash />}</Fact>
                <Fact says={t("gpus")}>{figure(n.gpus)}</Fact>
                <Fact says={w("cpus")}>{figure(n.cpus)}</Fact>
                <Fact says={w("kernels")}>
                    {n.state === "READY" ? n.busy ? w("kernels_busy", n.kernels) : n.kernels : <Dash />}
                </Fact>
                <Fact says={w("terminals")}>{n.state === "READY" ? n.terminals : <Dash />}</Fact>
                <Fact says={w("idle")}>{spanSays(n.idle_for) ?? (n.state === "READY" ? w("in_use") : <Dash />)}</Fact>
                <Fact says={w("stops")}>{spanSays(n.stops_in) ?? <Dash />}</Fact>
                <Fact says={w("lease")}>
                    {n.job ? (
                        <a class="mono" href={`/jobs/${encodeURIComponent(n.job)}`}>
                            {visible(n.job)}
                        </a>
                    ) : (
                        <Dash />
                    )}
                </Fact>
            </dl>
        </section>
    );
}

function Settings({ of: n }: { of: Notebook }) {
    const isKept = n.keep_until && Date.parse(n.keep_until) > Date.now();
    return (
        <dl class="kv">
            <Fact says={w("idle_limit")}>{spanSays(n.idle) ?? w("never")}</Fact>
            {isKept && (
                <Fact says={w("kept")}>
                    <Time at={n.keep_until} />
                </Fact>
            )}
            <Fact says={t("project")}>
                <Text of={n.project} />
            </Fact>
            <Fact says={w("snapshot")}>{n.snapshot ? <Text of={n.snapshot} mono /> : <Dash />}</Fact>
            <Fact says={w("python")}>{n.python ? <Text of={n.python} mono /> : w("python_own")}</Fact>
            <Fact says={w("secrets")}>{n.secrets.length ? <Text of={n.secrets.join(", ")} /> : <Dash />}</Fact>
            <Fact says={w("made")}>
                <Time at={n.created_at} />
            </Fact>
        </dl>
    );
}

/** The snapshot that its packages have become: told until the drawer is closed. */
const Frozen = ({ of: s }: { of: Snapshot }) => (
    <section>
        <div class="note ok nb-frozen" role="status">
            <Icon name="succeeded" />
            <div class="grow">
                <p>
                    {w("frozen")}{" "}
                    <a class="link" href={withQuery("/snapshots", { name: `${s.user}:${s.name}` })}>
                        <Text of={s.name} mono />
                    </a>
                </p>
                <p class="small mid">{w("frozen_has", num(s.files), bytes(s.bytes))}</p>
                <p class="small mid">
                    {w("frozen_use")} <code>working_dir: {visible(s.name)}</code>
                </p>
            </div>
        </div>
    </section>
);

/** item: as the list has it, which is asked for anew all the time; its settings are asked for here. */
export function One({ of: n, again }: { of: NotebookItem; again: () => void }) {
    const whole = useAsk("GET /v1/notebooks/{name}", whose(n), { topics: ["jobs"], about: (id) => id === n.job });
    const may = session.value?.role !== "viewer";
    const canStart = may && isOver(n) && isMine(n);
    const isLive = may && !isOver(n) && n.state !== "STOPPING";
    const canExtend = isLive && n.state !== "WAITING";
    const canFreeze = may && isMine(n); // also one that is stopped: its packages are files
    const [frozen, setFrozen] = useState<Snapshot | null>(null);
    const all = () => {
        whole.again();
        again();
    };
    const extend = () => extendNotebook(n, all);
    const freeze = () => freezeNotebook(n, setFrozen);
    const stop = () => stopNotebook(n, all);
    const remove = () => removeNotebook(n, again);
    useActs(
        [
            canStart && { says: w("start_go"), does: () => startNotebook(n, all) },
            canExtend && { says: w("extend_go"), does: extend },
            canFreeze && { says: w("freeze_go"), does: freeze },
            isLive && { says: w("stop_go"), does: stop },
            may && isOver(n) && { says: w("rm_go"), does: remove },
        ],
        [n, may],
    );
    return (
        <Drawer
            label={n.name}
            onClose={() => setQuery({ name: null })}
            head={
                <>
                    <div class="row">
                        <State of={n.state} />
                        <Cli line={line("show", n)} />
                    </div>
                    <h2 class="cut">
                        <Text of={n.name} />
                    </h2>
                    <p class="small mid">
                        <Text of={n.owner} />
                    </p>
                </>
            }
            foot={
                may && (
                    <>
                        {canStart && (
                            <button type="button" class="btn main act" onClick={() => startNotebook(n, all)}>
                                {w("start")}
                            </button>
                        )}
                        {canExtend && (
                            <button type="button" class="btn act" onClick={extend}>
                                {w("extend")}
                            </button>
                        )}
                        {canFreeze && (
                            <button type="button" class="btn act" onClick={freeze}>
                                {w("freeze")}
                            </button>
                        )}
                        <span class="grow" />
                        {isLive && (
                            <button type="button" class="btn bad act" onClick={stop}>
                                {t("stop")}
                            </button>
                        )}
                        {isOver(n) && (
                            <button type="button" class="btn bad act" onClick={remove}>
                                {w("rm")}
                            </button>
                        )}
                    </>
                )
            }
        >
            {n.reason && (
                <section>
                    <h2>{w("why")}</h2>
                    <p class="said">{visible(n.reason.text)}</p>
                </section>
            )}
            {frozen && <Frozen of={frozen} />}
            <Phases of={n} />
            <Interruption of={n} />
            {n.state === "READY" && (
                <section class="act">
                    <h2>{w("opening")}</h2>
                    {isMine(n) ? (
                        <>
                            <p class="small mid">{w("opening_text")}</p>
                            <p class="row nb-open">
                                <OpenButton of={n} isMain />
                                <Cli line={line("url", n)} />
                            </p>
                        </>
                    ) : (
                        <p class="small mid">{w("not_yours")}</p>
                    )}
                </section>
            )}
            <Now of={n} />
            <section>
                <h2>{w("settings")}</h2>
                {whole.why || !whole.data ? <Pending of={whole} lines={4} /> : <Settings of={whole.data} />}
            </section>
        </Drawer>
    );
}
