/** Request bodies as clients may send them on purpose. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { skipLarge } from "../../test/support/runs.ts";
import { MAX_BODY_BYTES, readBody } from "./body.ts";

test("a body of single bytes takes no more memory than its size calls for", { skip: skipLarge }, async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heapBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const head = { headers: { "transfer-encoding": "chunked" }, httpVersionMajor: 1 };
  const request = Object.assign(new PassThrough(), head);
  const body = readBody(
    request as unknown as IncomingMessage,
    {} as ServerResponse,
    MAX_BODY_BYTES,
    "too large",
  );
  const beforeBytes = heapBytes();
  for (let at = 0; at < 300_000; at++) {
    request.write(Buffer.from([0x30 + (at % 10)]));
    if (at % 10_000 === 0) await setImmediate();
  }
  await setImmediate();
  const keptBytes = heapBytes() - beforeBytes;
  request.end();
  assert.equal(Buffer.from(await body).toString(), "0123456789".repeat(30_000));
  assert.ok(keptBytes < 10_000_000, `${keptBytes} bytes were kept`);
});
