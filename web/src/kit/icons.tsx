// SPDX-License-Identifier: Apache-2.0
// icons.tsx - one set, drawn on 16 × 16 with a line of 1.5. Each state's shape can be told without its colour.
import type { JSX } from "preact";

const dot = { fill: "currentColor", stroke: "none" };
const full = { fill: "currentColor" };
const SHAPES = {
    queued: <circle cx="8" cy="8" r="5.25" />,
    held: [<circle cx="8" cy="8" r="5.75" />, <path d="M6.6 6v4M9.4 6v4" />],
    starting: [<circle cx="8" cy="8" r="5.25" />, <path d="M8 2.75a5.25 5.25 0 0 1 0 10.5z" {...dot} />],
    running: <path d="M4.5 3v10l8.5-5z" {...full} />,
    stopping: <rect x="3.5" y="3.5" width="9" height="9" rx="1" />,
    succeeded: <path d="M3 8.6l3.4 3.4L13 4.8" stroke-width="2" />,
    failed: <path d="M4 4l8 8M12 4l-8 8" stroke-width="2" />,
    stopped: <rect x="3.5" y="3.5" width="9" height="9" rx="1" {...full} />,
    skipped: [<path d="M2.500 11.500c1.500-6 9.500-6 11 0" />, <path d="M13.800 7.500v4h-4" />],
    timeout: [<circle cx="8" cy="8" r="5.75" />, <path d="M8 4.8V8l2.3 1.6" />],
    unknown: [
        <path d="M5.4 5.9c0-1.6 1.2-2.6 2.7-2.6s2.6 1 2.6 2.4c0 1.9-2.6 2-2.6 3.9" />,
        <circle cx="8.1" cy="12.6" r=".6" {...full} />,
    ],
    restarting: [<path d="M12.9 6.2A5.3 5.3 0 1 0 13.3 9" />, <path d="M13.4 2.9v3.4H10" />],
    hung: <path d="M1.2 8h2.2l1.5-4.2 2.4 8.4L8.8 8h6" />,
    idle: <path d="M12.9 9.6A5.4 5.4 0 1 1 6.5 3.2a4.3 4.3 0 0 0 6.4 6.4z" />,
    online: <circle cx="8" cy="8" r="4" {...dot} />,
    pending: <circle cx="8" cy="8" r="5" stroke-dasharray="2 2.2" />,
    draining: <path d="M8 2.5v7M5 6.8l3 3 3-3M3 13.2h10" />,
    offline: [<circle cx="8" cy="8" r="5.25" />, <path d="M4.4 11.6l7.2-7.2" />],
    unhealthy: [<path d="M8 2.4l6.2 11H1.8z" />, <path d="M8 6.4v3.2M8 11.4v.1" />],
    archive: [<rect x="2" y="3" width="12" height="3.2" rx=".8" />, <path d="M3.2 6.2v6.6h9.6V6.2M6.5 9h3" />],
    overview: [
        <rect x="2.5" y="2.5" width="4.5" height="6" rx="1" />,
        <rect x="9" y="2.5" width="4.5" height="3.5" rx="1" />,
        <rect x="9" y="8" width="4.5" height="5.5" rx="1" />,
        <rect x="2.5" y="10.5" width="4.5" height="3" rx="1" />,
    ],
    queue: [<path d="M2.5 4h11M2.5 8h11M2.5 12h6" />, <path d="M11 10.5l2 1.5-2 1.5z" {...full} />],
    jobs: [
        <path d="M6 4h7.5M6 8h7.5M6 12h7.5" />,
        <path d="M2.6 3v2l1.6-1zM2.6 7v2l1.6-1zM2.6 11v2l1.6-1z" stroke-width="1" {...full} />,
    ],
    nodes: [
        <rect x="2.5" y="2.5" width="11" height="4.6" rx="1" />,
        <rect x="2.5" y="8.9" width="11" height="4.6" rx="1" />,
        <path d="M5 4.8h.1M5 11.2h.1M8 4.8h3M8 11.2h3" />,
    ],
    usage: <path d="M2.5 13.5h11M4.5 13.5V9M8 13.5V3.5M11.5 13.5V6.5" />,
    simulator: <path d="M2.5 13.5h11M2.5 10.5l3.2-3.6 3 2.4 4.8-5.8M10.4 3.5h3.1v3.1" />,
    data: [
        <ellipse cx="8" cy="4" rx="5" ry="1.9" />,
        <path d="M3 4v8c0 1 2.2 1.9 5 1.9s5-.9 5-1.9V4M3 8c0 1 2.2 1.9 5 1.9S13 9 13 8" />,
    ],
    models: [<path d="M8 1.8l5.4 3v6.4L8 14.2l-5.4-3V4.8z" />, <path d="M2.8 5L8 7.9 13.2 5M8 7.9v6" />],
    services: [
        <circle cx="8" cy="8" r="1.6" {...full} />,
        <path d="M4.8 11.2a4.5 4.5 0 0 1 0-6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.8 13.2a7.3 7.3 0 0 1 0-10.4M13.2 2.8a7.3 7.3 0 0 1 0 10.4" />,
    ],
    pipelines: [
        <circle cx="3.7" cy="8" r="1.7" />,
        <circle cx="12.3" cy="4" r="1.7" />,
        <circle cx="12.3" cy="12" r="1.7" />,
        <path d="M5.4 8h1.4c1.5 0 1.3-4 3.8-4M6.8 8c1.5 0 1.3 4 3.8 4" />,
    ],
    notebooks: [
        <rect x="4" y="2" width="9.5" height="12" rx="1.2" />,
        <path d="M2.3 4.6h2.6M2.3 8h2.6M2.3 11.4h2.6M7.5 5.5h3.2" />,
    ],
    alerts: (
        <path d="M3.4 11.5h9.2c-.9-.9-1.2-1.9-1.2-4 0-2.4-1.3-4.2-3.4-4.2S4.6 5.1 4.6 7.5c0 2.1-.3 3.1-1.2 4zM6.8 13.6h2.4" />
    ),
    events: [
        <path d="M4 2.5v11" />,
        <circle cx="4" cy="4.5" r="1.4" {...full} />,
        <circle cx="4" cy="11" r="1.4" {...full} />,
        <path d="M7.5 4.5h6M7.5 11h6M7.5 7.7h3.5" />,
    ],
    ops: [
        <path d="M9.7 3.2a3.3 3.3 0 0 1 3.9 4.3l-1.9-.5-1.5-1.5z" />,
        <path d="M9.4 6.6l-6.2 6.2" />,
        <path d="M2.6 11.9l1.5 1.5" />,
    ],
    users: [<circle cx="8" cy="5.4" r="2.6" />, <path d="M2.9 13.6c.5-2.7 2.5-4.1 5.1-4.1s4.6 1.4 5.1 4.1" />],
    settings: [
        <circle cx="8" cy="8" r="2.2" />,
        <path d="M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6l1.4 1.4M11 11l1.4 1.4M12.4 3.6L11 5M5 11l-1.4 1.4" />,
    ],
    files: <path d="M3 3.5h4l1.4 1.7H13v7.3H3z" />,
    plus: <path d="M8 3v10M3 8h10" />,
    search: [<circle cx="7" cy="7" r="4.3" />, <path d="M10.2 10.2l3.3 3.3" />],
    copy: [
        <rect x="5.5" y="5.5" width="8" height="8" rx="1.2" />,
        <path d="M10.5 3.5v-.3a.7.7 0 0 0-.7-.7H3.2a.7.7 0 0 0-.7.7v6.6c0 .4.3.7.7.7h.3" />,
    ],
    download: <path d="M8 2.5v7.5M4.8 7l3.2 3.2L11.2 7M2.8 13.3h10.4" />,
    sun: [
        <circle cx="8" cy="8" r="2.7" />,
        <path d="M8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1" />,
    ],
    moon: <path d="M12.9 9.6A5.4 5.4 0 1 1 6.5 3.2a4.3 4.3 0 0 0 6.4 6.4z" />,
    system: [<rect x="2" y="3" width="12" height="8" rx="1" />, <path d="M5.5 13.5h5" />],
    right: <path d="M6 3.5L10.5 8 6 12.5" />,
    down: <path d="M3.5 6L8 10.5 12.5 6" />,
    up: <path d="M3.5 10L8 5.5 12.5 10" />,
    close: <path d="M4 4l8 8M12 4l-8 8" />,
    columns: [<rect x="2.5" y="3" width="11" height="10" rx="1" />, <path d="M6.2 3v10M9.8 3v10" />],
    pin: <path d="M9.5 2.5l4 4-2 .5-2.5 2.5-.5 3-6-6 3-.5 2.5-2.5zM5.5 10.5l-3 3" />,
    filter: <path d="M2.5 4h11M4.5 8h7M6.5 12h3" />,
    compare: <path d="M2.5 11l3-4 2.5 2.500 5-6M2.500 13.500l3-2 3 1 5-3" />,
    wrap: <path d="M2.5 4h11M2.5 8h8.500a2 2 0 0 1 0 4H8.500M10 10.500L8.500 12l1.500 1.500M2.500 12h3" />,
    dots: <path d="M3.5 8h.1M8 8h.1M12.5 8h.1" stroke-width="2.2" />,
    menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />,
    bolt: <path d="M8.8 1.8L3.5 9h3.8l-.6 5.2L12.5 7H8.6z" />,
    flag: <path d="M4 14V2.5h8l-2 3 2 3H4" />,
    out: <path d="M9.500 3H13v10H9.500M2.500 8h7M6.500 5l3 3-3 3" />,
} satisfies Record<string, JSX.Element | JSX.Element[]>;

export type IconName = keyof typeof SHAPES;

export const Icon = ({ name }: { name: IconName }) => (
    <svg class="ic" viewBox="0 0 16 16" aria-hidden="true">
        {SHAPES[name]}
    </svg>
);

export const Mark = () => (
    <svg viewBox="0 0 18 18" fill="currentColor" aria-hidden="true">
        {[
            [3, 3],
            [9, 3],
            [15, 3],
            [3, 9],
            [15, 9],
            [3, 15],
            [9, 15],
            [15, 15],
        ].map(([x, y]) => (
            <circle cx={x} cy={y} r="1.5" />
        ))}
        <circle cx="9" cy="9" r="3" fill="none" stroke="currentColor" stroke-width="1.7" />
    </svg>
);
