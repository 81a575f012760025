// SPDX-License-Identifier: Apache-2.0
// service.tsx - one service: how it is, where it answers, a box to try it, its last five minutes, its replicas on their
// machines, its versions, what it costs, what was asked of it, what happened to it. ?calls=failed
import type { Reason, Service, ServiceVersion } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useActs } from "../../base/acts";
import { figure, gpuHours, num, visible } from "../../base/say";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Head, shell, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { deployService, keepVersions, removeService, rollBack, scaleService, stopService, wakeService } from "./deeds";
import { Calls, Cost, Happened, Traffic } from "./panels";
import { Endpoint } from "./endpoint";
import { Keys } from "./keys";
import { versionOf, versionSays, within } from "./parts";
import { Replicas, Settings, Versions } from "./versions";
import { TryIt } from "./tryit";
import { w } from "./words";

const EVERY = 5000;

function Fig({ title, value, tone }: { title: string; value: string; tone?: string }) {
    return (
        <div class="fig">
            <dt>{title}</dt>
            <dd class={tone}>{value}</dd>
        </div>
    );
}

function Figures({ of: s }: { of: Service }) {
    return (
        <dl class="figs panel svc-figs">
            <Fig title={w("version")} value={versionSays(s)} />
            <Fig title={w("ready")} value={w("n_ready", s.ready, s.replicas)} />
            <Fig title={w("rate")} value={figure(s.requests_per_minute)} />
            <Fig title={w("in_flight")} value={num(s.in_flight)} />
            <Fig title={w("waiting")} value={num(s.waiting)} tone={s.waiting > 0 ? "c-warn" : undefined} />
            <Fig title={w("p50")} value={within(s.p50_ms)} />
            <Fig title={w("p95")} value={within(s.p95_ms)} />
            <Fig title={w("p99")} value={within(s.p99_ms)} />
            <Fig
                title={w("errors")}
                value={figure(s.errors_per_minute)}
                tone={s.errors_per_minute > 0 ? "c-bad" : undefined}
            />
            {s.refused_per_minute > 0 && (
                <Fig title={w("refused")} value={figure(s.refused_per_minute)} tone="c-warn" />
            )}
            <Fig title={w("tokens")} value={figure(s.tokens_per_second)} />
            <Fig title={t("gpus")} value={figure(s.gpus)} />
            <Fig title={t("gpu_hours")} value={gpuHours(s.gpu_hours)} />
        </dl>
    );
}

const Because = ({ of: r }: { of: Reason }) => <span class="said">{visible(r.text)}</span>;

/** Its model, which is still being made, or what a replica of it says. */
const waitsFor = (v: ServiceVersion): Reason | null | undefined =>
    v.reason ?? v.replicas.find((r) => r.reason && r.state !== "READY")?.reason;

/** Why it does not answer, or why the newest version is none: a sentence above everything. */
function Why({ of: s }: { of: Service }) {
    const v = versionOf(s);
    const failed = s.versions.find((x) => x.state === "FAILED");
    const newest = failed && failed.n === s.versions[0]?.n ? failed : null;
    const reason = v && waitsFor(v);
    if (newest)
        return (
            <div class="note bad" role="status">
                <Icon name="failed" />
                <div>
                    <p class="strong">{w(s.current ? "v_failed" : "v_failed_all", newest.n)}</p>
                    {newest.reason && (
                        <p>
                            <Because of={newest.reason} />
                        </p>
                    )}
                </div>
            </div>
        );
    const next = s.current && s.versions.find((x) => x.n === s.wanted);
    const waits = next && waitsFor(next);
    if (next && s.state === "READY")
        return (
            <div class="note run" role="status">
                <Icon name="starting" />
                <div>
                    <p class="strong">{w("next_waits", next.n)}</p>
                    {waits && (
                        <p>
                            <Because of={waits} />
                        </p>
                    )}
                </div>
            </div>
        );
    if (s.state === "READY" || !reason) return null;
    return (
        <div class={`note ${s.ready ? "warn" : "quiet"}`} role="status">
            <Icon name={s.ready ? "unhealthy" : "queued"} />
            <div>
                <p class="strong">{w(s.state === "SLEEPING" ? "asleep" : "why_waits")}</p>
                <p>
                    <Because of={reason} />
                </p>
            </div>
        </div>
    );
}

/** Where a rollback without a choice goes. */
const goesBackTo = (s: Service): ServiceVersion | undefined =>
    s.versions.find((v) => v.n === s.previous) ??
    (s.stopped ? s.versions.find((v) => v.n === s.current) : undefined) ??
    (s.stopped ? s.versions[0] : undefined);

function Acts({ of: s, again }: { of: Service; again: () => void }) {
    const back = goesBackTo(s);
    return (
        <>
            <button type="button" class="btn act" onClick={() => deployService(s, again)}>
                <Icon name="up" />
                {w("d_deploy")}
            </button>
            {!s.stopped && (
                <button type="button" class="btn act" onClick={() => scaleService(s, again)}>
                    {w("scale")}
                </button>
            )}
            {s.state === "SLEEPING" && (
                <button type="button" class="btn act" onClick={() => wakeService(s, again)}>
                    {w("wake")}
                </button>
            )}
            {back && (
                <button type="button" class="btn act" onClick={() => rollBack(s, back, again)}>
                    {w("back")}
                </button>
            )}
            {s.stopped ? (
                <button type="button" class="btn bad act" onClick={() => removeService(s)}>
                    {w("rm")}
                </button>
            ) : (
                <button type="button" class="btn bad act" onClick={() => stopService(s, again)}>
                    <Icon name="stopped" />
                    {t("stop")}
                </button>
            )}
        </>
    );
}

export function ServicePage({ name }: { name: string }) {
    const asked = useAsk(
        "GET /v1/services/{name}",
        { path: { name } },
        { topics: ["services"], about: (id) => id === name, every: EVERY },
    );
    const s = asked.data;
    const may = !!s && session.value?.role !== "viewer";
    const again = asked.again;
    useActs(
        [
            may && !!s && { says: w("d_deploy"), does: () => deployService(s, again) },
            may && !!s && !s.stopped && { says: w("scale_go"), does: () => scaleService(s, again) },
            may && s?.state === "SLEEPING" && { says: w("wake_go"), does: () => wakeService(s, again) },
            may && !!s && !s.stopped && { says: w("stop_go"), does: () => stopService(s, again) },
            may && !!s && { says: w("rm_go"), does: () => removeService(s) },
        ],
        [s, may],
    );
    if (asked.why || !s)
        return (
            <section class="panel">
                {asked.why?.status === 404 ? (
                    <Blank
                        whole
                        title={w("no_service")}
                        act={
                            <a class="btn" href="/services">
                                {t("services")}
                            </a>
                        }
                    >
                        {visible(asked.why.detail)}
                    </Blank>
                ) : (
                    <Pending whole of={asked} lines={8} />
                )}
            </section>
        );
    return (
        <>
            <Head
                title={
                    <span class="row svc-title">
                        <Text of={s.name} /> <State of={s.state} />
                    </span>
                }
                sub={
                    <>
                        <Text of={s.what} /> · <Text of={s.owner} /> · <Text of={s.project} />
                        {s.switched_at && (
                            <>
                                {" "}
                                · {w("has_traffic")} <Time at={s.switched_at} />
                            </>
                        )}
                    </>
                }
                cli={`argus service status ${shell(s.name)}`}
            >
                {may && <Acts of={s} again={again} />}
            </Head>
            <div class="cols">
                <Why of={s} />
                <Figures of={s} />
                <div class={`cols ${may ? "svc-try" : ""}`}>
                    <Endpoint of={s} />
                    {may && <TryIt of={s} />}
                </div>
                <Traffic of={s} />
                <div class="cols svc-two">
                    <Replicas of={s} />
                    <Versions of={s} may={may} again={again} />
                </div>
                <div class="cols svc-two svc-left">
                    <div class="cols">
                        <Calls name={s.name} />
                        <Keys name={s.name} may={may} />
                    </div>
                    <div class="cols">
                        <Cost of={s} />
                        <Settings of={s} change={may ? () => keepVersions(s, again) : undefined} />
                    </div>
                </div>
                <Happened name={s.name} />
            </div>
        </>
    );
}
