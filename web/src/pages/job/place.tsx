// SPDX-License-Identifier: Apache-2.0
// place.tsx - where a job runs and what proves it: its driver's node, its GPUs, what its processes really imported and
// whether that is its snapshot, its directory.
import type { Imports, Job } from "../../made/api";
import { visible } from "../../base/say";
import { withQuery } from "../../base/url";
import { Icon } from "../../kit/icons";
import { Panel, shell, Text } from "../../kit/parts";
import { t } from "../../words/shared";
import { w } from "./words";

const Proven = ({ ok, says }: { ok: boolean; says: string }) => (
    <span class={`st ${ok ? "c-ok" : "c-bad"}`}>
        <Icon name={ok ? "succeeded" : "failed"} />
        {says}
    </span>
);

/** The processes that told, the ones that are wrong first. */
function Processes({ of }: { of: Imports["processes"] }) {
    const rows = [...of].sort((a, b) => Number(a.ok) - Number(b.ok));
    return (
        <details>
            <summary class="small mid">{w("imp_processes", rows.length)}</summary>
            <ul class="imports small">
                {rows.map((p) => (
                    <li>
                        <Proven ok={p.ok} says={`${visible(p.kind ?? "?")} · ${visible(p.node ?? "?")} · ${p.pid}`} />
                        {p.file && (
                            <span class="mono">
                                {p.verl && `${visible(p.verl)} · `}
                                {visible(p.file)}
                            </span>
                        )}
                    </li>
                ))}
            </ul>
        </details>
    );
}

/** What was imported from where, and whether that is what the job was given. */
function Imported({ of: i }: { of: Imports }) {
    const what = i.verl ? w("imp_verl", visible(i.verl)) : w("imp_code");
    const is = i.snapshot ? w("imp_snapshot", visible(i.snapshot)) : i.ok ? w("imp_asked") : "";
    const versions = [
        i.python && `Python ${visible(i.python)}`,
        i.torch && `PyTorch ${visible(i.torch)}`,
        i.ray && `Ray ${visible(i.ray)}`,
    ].filter(Boolean);
    return (
        <>
            <dt>{w("imports")}</dt>
            <dd>
                <Proven ok={i.ok} says={i.ok ? [what, is].filter(Boolean).join(" · ") : w("imp_wrong")} />
                {i.mismatch && <p class="said">{visible(i.mismatch)}</p>}
                {i.file && <p class="mono small">{visible(i.file)}</p>}
                {i.hash && <p class="mono small dim">{visible(i.hash)}</p>}
                {i.reward && (
                    <p class="small">
                        {w("imp_reward")} <span class="mono">{visible(i.reward)}</span>
                    </p>
                )}
                {versions.length > 0 && <p class="small mid">{versions.join(" · ")}</p>}
                {i.processes.length > 0 && <Processes of={i.processes} />}
            </dd>
        </>
    );
}

export function Place({ job }: { job: Job }) {
    const p = job.proof;
    return (
        <Panel id="place" title={w("s_place")}>
            <dl class="kv">
                {p?.driver_node && (
                    <>
                        <dt>{w("driver_at")}</dt>
                        <dd>
                            <Proven
                                ok={!!p.driver_on_worker}
                                says={p.driver_on_worker ? w("on_worker", visible(p.driver_node)) : w("on_head")}
                            />
                        </dd>
                    </>
                )}
                {p?.imports && <Imported of={p.imports} />}
                {job.nodes.map((n) => (
                    <>
                        <dt>
                            <Text of={n.name} />
                        </dt>
                        <dd>
                            {w("slots")} {n.gpu_ids.join(" ")}
                        </dd>
                    </>
                ))}
                {job.snapshot && (
                    <>
                        <dt>{w("snapshot")}</dt>
                        <dd>
                            <Text of={job.snapshot.name} mono />
                        </dd>
                    </>
                )}
                <dt>{w("dir")}</dt>
                <dd>
                    <span class="mono">{visible(job.output_dir)}</span>{" "}
                    <a class="link" href={withQuery("/files", { path: `jobs/${job.id}` })}>
                        {t("files")}
                    </a>
                </dd>
                {job.argv && (
                    <>
                        <dt>{w("argv")}</dt>
                        <dd>
                            <pre class="argv">{visible(job.argv.map(shell).join(" "))}</pre>
                        </dd>
                    </>
                )}
            </dl>
        </Panel>
    );
}
