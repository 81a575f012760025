// SPDX-License-Identifier: Apache-2.0
// parquet.ts - columns and first rows of a parquet file, read by hyparquet from the parts of the file that hold them. A
// file whose first rows lie in pieces that are too large to bring here, or are packed otherwise, has its columns alone;
// what is no parquet at all is null.
import { parquetMetadataAsync, parquetReadObjects, parquetSchema, toJson, type AsyncBuffer } from "hyparquet";

export interface Parquet {
    rows: number;
    columns: { name: string; type: string }[];
    /** Empty: they could not be read. */
    first: unknown[];
}

const ROWS = 20;
const MOST = 32 << 20;
const COLUMNS_MAX = 2000;

type Column = ReturnType<typeof parquetSchema>["children"][number];

const typeOf = (c: Column) =>
    (
        c.element.logical_type?.type ??
        c.element.converted_type ??
        c.element.type ??
        (c.children.length ? "struct" : "?")
    ).toLowerCase();

function fileOf(size: number, part: (range: string) => Promise<Uint8Array>): AsyncBuffer {
    let brought = 0;
    return {
        byteLength: size,
        async slice(start, end = size) {
            const from = start < 0 ? size + start : start;
            if ((brought += end - from) > MOST) throw new RangeError("too large");
            const bytes = await part(`bytes=${from}-${end - 1}`);
            return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
        },
    };
}

export async function readParquet(size: number, part: (range: string) => Promise<Uint8Array>): Promise<Parquet | null> {
    const file = fileOf(size, part);
    try {
        const metadata = await parquetMetadataAsync(file);
        const columns = parquetSchema(metadata)
            .children.slice(0, COLUMNS_MAX)
            .map((c) => ({ name: c.element.name, type: typeOf(c) }));
        const rows = Number(metadata.num_rows);
        const first = await parquetReadObjects({ file, metadata, rowStart: 0, rowEnd: Math.min(rows, ROWS) }).then(
            (read) => toJson(read) as unknown[],
            () => [],
        );
        return { rows, columns, first };
    } catch (e) {
        // What the server refuses is told as such; all else is the file's.
        if (e instanceof Error && e.name !== "RangeError" && "status" in e) throw e;
        return null;
    }
}
