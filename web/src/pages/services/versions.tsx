// SPDX-License-Identifier: Apache-2.0
// versions.tsx - the replicas of a service, each drawn on the machine that was leased for it; its versions; its settings.
import type { Service, ServiceVersion } from "../../made/api";
import { figure, ms, num, span, spanSays, visible } from "../../base/say";
import { withQuery } from "../../base/url";
import { Blank } from "../../kit/blank";
import { CopyCsv, Dash, Panel, State, Text, Time, toneOf } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { rollBack } from "./deeds";
import { replicasOf, versionOf } from "./parts";
import { w } from "./words";

type Replica = ReturnType<typeof replicasOf>[number];

function One({ of: r }: { of: Replica }) {
    return (
        <li class={`rep t-${toneOf(r.state)}`}>
            <span class="rep-top">
                {r.job ? (
                    <a class="link" href={`/jobs/${encodeURIComponent(r.job)}`} title={w("lease")}>
                        {w("replica_of", r.n, r.replica)}
                    </a>
                ) : (
                    w("replica_of", r.n, r.replica)
                )}
                <State of={r.state} />
            </span>
            {r.requests > 0 && <span class="small dim">{w("n_requests", num(r.requests))}</span>}
            {r.reason && r.state !== "READY" && <span class="small mid said">{visible(r.reason.text)}</span>}
        </li>
    );
}

export function Replicas({ of: s }: { of: Service }) {
    const all = replicasOf(s);
    const nodes = [...new Set(all.map((r) => r.node))].sort((a, b) => (a ?? "\uffff").localeCompare(b ?? "\uffff"));
    return (
        <Panel
            title={w("replicas")}
            count={all.length || undefined}
            end={
                !!all.length && (
                    <CopyCsv
                        head={["version", "replica", "state", "node", "job", "requests"]}
                        rows={() => all.map((r) => [r.n, r.replica, r.state, r.node, r.job, r.requests])}
                    />
                )
            }
        >
            {all.length ? (
                <ul class="reps">
                    {nodes.map((node) => (
                        <li key={node ?? ""} class={node ? "" : "reps-none"}>
                            <p class="reps-node">
                                {node ? (
                                    <a class="link strong" href={withQuery("/nodes", { node })}>
                                        <Text of={node} />
                                    </a>
                                ) : (
                                    <span class="mid">{w("on_none")}</span>
                                )}
                            </p>
                            <ul class="reps-of">
                                {all
                                    .filter((r) => r.node === node)
                                    .map((r) => (
                                        <One key={`${r.n}/${r.replica}`} of={r} />
                                    ))}
                            </ul>
                        </li>
                    ))}
                </ul>
            ) : (
                <Blank title={w("no_replicas")}>{s.stopped && w("no_replicas_text")}</Blank>
            )}
        </Panel>
    );
}

const sameWhat = (v: ServiceVersion) => v.spec.model ?? v.spec.app ?? "";
function role(s: Service, v: ServiceVersion): string {
    if (v.n === s.current) return s.stopped ? "" : w("has_traffic");
    if (v.n === s.wanted) return w("gets_traffic");
    return v.n === s.previous ? w("was_before") : "";
}

const versionCols = (s: Service, may: boolean, again: () => void): Col<ServiceVersion>[] => [
    {
        key: "n",
        title: w("version"),
        width: 64,
        draw: (v) => <b>v{v.n}</b>,
        csv: (v) => v.n,
    },
    {
        key: "what",
        title: w("serves"),
        draw: (v) => (
            <>
                {v.spec.model ? (
                    <a class="link mono" href={`/models/${encodeURIComponent(v.spec.model)}`}>
                        <Text of={v.spec.model} />
                    </a>
                ) : (
                    <Text of={sameWhat(v)} mono />
                )}
                {role(s, v) && <span class="dim"> · {role(s, v)}</span>}
                {v.model_job && v.state !== "FAILED" && (
                    <>
                        {" "}
                        ·{" "}
                        <a class="link" href={`/jobs/${encodeURIComponent(v.model_job)}`}>
                            {w("being_made")}
                        </a>
                    </>
                )}
            </>
        ),
        csv: sameWhat,
    },
    { key: "state", title: t("state"), width: 104, draw: (v) => <State of={v.state} />, csv: (v) => v.state },
    {
        key: "created_at",
        title: w("deployed"),
        width: 132,
        wide: true,
        draw: (v) => (
            <span title={w("by", visible(v.user))}>
                <Time at={v.created_at} /> · <Text of={v.user} />
            </span>
        ),
        csv: (v) => v.created_at,
    },
    {
        key: "ready_in",
        title: w("ready_in"),
        width: 74,
        num: true,
        wide: true,
        draw: (v) => (v.ready_at ? span(ms(v.ready_at) - ms(v.created_at)) : <Dash />),
        csv: (v) => (v.ready_at ? Math.round((ms(v.ready_at) - ms(v.created_at)) / 1000) : null),
    },
    ...(may
        ? [
              {
                  key: "back",
                  title: "",
                  width: 112,
                  wide: true as const,
                  draw: (v: ServiceVersion) =>
                      (v.n !== s.current || s.stopped) &&
                      v.n !== s.wanted && (
                          <button
                              type="button"
                              class="btn act"
                              aria-label={w("back_go", v.n)}
                              onClick={() => rollBack(s, v, again)}
                          >
                              {w("back")}
                          </button>
                      ),
              },
          ]
        : []),
];

export function Versions({ of: s, may, again }: { of: Service; may: boolean; again: () => void }) {
    return (
        <Panel bare title={w("versions")} count={s.versions.length}>
            <Table
                label={w("versions")}
                rows={s.versions}
                cols={versionCols(s, may, again)}
                keyOf={(v) => String(v.n)}
                current={String(s.current)}
            />
        </Panel>
    );
}

export function Settings({ of: s, change }: { of: Service; change: (() => void) | undefined }) {
    const spec = versionOf(s)?.spec;
    if (!spec) return null;
    const limit = (n: number) => (n ? num(n) : w("unlimited"));
    const after = spanSays(s.idle);
    return (
        <Panel
            title={w("settings")}
            end={
                change && (
                    <button type="button" class="btn act" onClick={change}>
                        {w("s_change")}
                    </button>
                )
            }
        >
            <dl class="kv">
                <dt>{w("s_keep")}</dt>
                <dd>{w(`k_${s.keep}`)}</dd>
                <dt>{w("s_one")}</dt>
                <dd>{w("s_size", figure(spec.gpus), figure(spec.cpus))}</dd>
                <dt>{w("s_scale")}</dt>
                <dd>
                    {spec.max_replicas
                        ? w("s_auto", spec.min_replicas, spec.max_replicas, figure(spec.target_requests))
                        : w("s_fixed")}
                </dd>
                <dt>{w("s_idle")}</dt>
                <dd>{after ? w("s_idle_after", after) : w("s_idle_never")}</dd>
                <dt>{w("s_limits")}</dt>
                <dd>{w("s_limit", limit(spec.requests_per_minute), limit(spec.tokens_per_minute))}</dd>
                {spec.model && (
                    <>
                        <dt>{w("s_engine")}</dt>
                        <dd>{spec.engine}</dd>
                    </>
                )}
                {spec.model_hash && (
                    <>
                        <dt>{w("s_hash")}</dt>
                        <dd>
                            <code title={spec.model_hash}>{visible(spec.model_hash.slice(0, 16))}</code>
                        </dd>
                    </>
                )}
            </dl>
        </Panel>
    );
}
