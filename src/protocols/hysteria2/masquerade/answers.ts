import type { Field } from "#transport/http3/qpack.ts";
import type { Http3Answer } from "#transport/http3/server.ts";

const NOT_FOUND = Buffer.from("404 page not found\n");

/** As most servers have it. */
export function dateField(): Field {
  return ["date", new Date().toUTCString()];
}

export function text(status: number, body: Buffer, type = "text/plain; charset=utf-8"): Http3Answer {
  const fields: Field[] = [["content-type", type], ["content-length", String(body.length)], dateField()];
  return { status, fields, body };
}

export function notFound(): Http3Answer {
  return text(404, NOT_FOUND);
}

export function bare(status: number, fields: readonly Field[] = []): Http3Answer {
  return { status, fields: [...fields, ["content-length", "0"], dateField()], body: null };
}
