// SPDX-License-Identifier: Apache-2.0
// types.mjs - prints TypeScript types of openapi.json: types.mjs OPENAPI
//
// Each schema becomes a type of its name, and each route a member of Routes, "GET /v1/jobs/{id}", with the names of
// its path, the types of its query, its body, its reply and of a message of its stream. Only what argusd's own
// document uses is read; anything else ends with an error.
import { readFileSync } from "node:fs";

const api = JSON.parse(readFileSync(process.argv[2], "utf8"));
const KNOWN = new Set(
    "type properties required additionalProperties items enum anyOf $ref description format minimum maximum pattern default contentMediaType contentSchema".split(
        " ",
    ),
);
const PLAIN = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function objectOf(s) {
    const must = new Set(s.required ?? []);
    const members = Object.entries(s.properties ?? {}).map(
        ([name, m]) => `${JSON.stringify(name)}${must.has(name) ? "" : "?"}: ${typeOf(m)}`,
    );
    const more =
        typeof s.additionalProperties === "object" ? [`[name: string]: ${typeOf(s.additionalProperties)}`] : [];
    if (members.length && more.length) return `{ ${members.join("; ")} } & { ${more} }`;
    return members.length || more.length ? `{ ${[...members, ...more].join("; ")} }` : "Record<string, never>";
}

function typeOf(s) {
    const odd = Object.keys(s).find((k) => !KNOWN.has(k));
    if (odd) throw new Error(`types: a schema has the unknown key '${odd}': ${JSON.stringify(s).slice(0, 200)}`);
    if (s.contentSchema) return typeOf(s.contentSchema); // the JSON text of a message, parsed
    if (s.$ref) return s.$ref.split("/").pop();
    if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" | ");
    // Forms say in anyOf which members go together: the types are in the properties.
    if (s.anyOf && !s.properties) return [...new Set(s.anyOf.map(typeOf))].map((t) => `(${t})`).join(" | ");
    const kinds = [s.type ?? []].flat();
    if (!kinds.length) return s.properties ? objectOf(s) : "unknown";
    return kinds
        .map((k) => {
            if (k === "object") return objectOf(s);
            if (k === "array") return `Array<${typeOf(s.items ?? {})}>`;
            if (!PLAIN[k]) throw new Error(`types: unknown type '${k}'`);
            return PLAIN[k];
        })
        .join(" | ");
}

const schemaOf = (content) => {
    const types = Object.entries(content ?? {});
    const found = types.filter(([, c]) => c.schema && !(c.schema.type === "string")).map(([, c]) => typeOf(c.schema));
    return found.length ? [...new Set(found)].join(" | ") : types.length ? "string" : "null";
};

function routeOf(path, method, op) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map((m) => `${m[1]}: string`);
    const query = (op.parameters ?? [])
        .filter((p) => p.in === "query")
        .map((p) => `${JSON.stringify(p.name)}?: ${typeOf(p.schema)}`);
    const done = Object.entries(op.responses).filter(([code]) => code.startsWith("2"));
    const events = done.map(([, r]) => r.content?.["text/event-stream"]).find(Boolean);
    const replies = done.map(([, r]) => {
        const { "text/event-stream": _, ...rest } = r.content ?? {};
        return schemaOf(rest);
    });
    return [
        `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {`,
        `    path: { ${names.join("; ")} };`,
        `    query: { ${query.join("; ")} };`,
        `    body: ${op.requestBody ? schemaOf(op.requestBody.content) : "null"};`,
        `    reply: ${[...new Set(replies)].join(" | ") || "null"};`,
        `    message: ${events ? typeOf(events.schema ?? {}) : "never"};`,
        "  };",
    ].join("\n");
}

const out = ["// SPDX-License-Identifier: Apache-2.0", "// Made of openapi.json by scripts/types.mjs."];
for (const [name, s] of Object.entries(api.components.schemas)) out.push(`export type ${name} = ${typeOf(s)};`);
out.push("export interface Routes {");
for (const [path, item] of Object.entries(api.paths))
    for (const [method, op] of Object.entries(item)) out.push(routeOf(path, method, op));
out.push("}");
console.log(out.join("\n"));
