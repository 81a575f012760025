// SPDX-License-Identifier: Apache-2.0
// parts.tsx - what the pages of services share: addresses, command lines, the version that counts, figures as words.
import type { Service, ServiceItem, ServiceVersion } from "../../made/api";
import { figure, NOTHING } from "../../base/say";
import { w } from "./words";

export const serviceHref = (name: string) => `/services/${encodeURIComponent(name)}`;
export const endpointOf = (s: Pick<Service, "endpoint">) => location.origin + s.endpoint;

/** The number of the version that has the traffic, or is to get it. */
export const trafficOf = (s: Pick<ServiceItem, "current" | "wanted">) => s.current || s.wanted;
export const versionOf = (s: Service): ServiceVersion | undefined =>
    s.versions.find((v) => v.n === trafficOf(s)) ?? s.versions[0];
export const isModel = (s: Service) => !!versionOf(s)?.spec.model;
export const replicasOf = (s: Service) => s.versions.flatMap((v) => v.replicas.map((r) => ({ ...r, n: v.n })));

/** Numbers of the versions that can be asked, the newest first. */
export const readyOf = (s: Service): number[] =>
    s.versions.filter((v) => v.replicas.some((r) => r.state === "READY")).map((v) => v.n);

export function versionSays(s: Pick<ServiceItem, "current" | "wanted">): string {
    if (s.current && s.wanted) return w("goes_to", s.current, s.wanted);
    return trafficOf(s) ? `v${trafficOf(s)}` : NOTHING;
}

/** Bounds of a percentile: "≤ 128 ms", "≤ 2.05 s". */
export function within(ms: number | null): string {
    if (ms === null) return NOTHING;
    return ms < 1000 ? `≤ ${figure(ms)} ms` : `≤ ${figure(ms / 1000)} s`;
}
export const tookSays = (ms: number) => (ms < 1000 ? `${figure(ms)} ms` : `${figure(ms / 1000)} s`);
