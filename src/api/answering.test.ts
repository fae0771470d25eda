import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { SILENT } from "#core/log.ts";
import { Answering } from "./answering.ts";

const request = {} as IncomingMessage;

function response(codes: number[]): ServerResponse {
  const made = { writeHead: (code: number) => (codes.push(code), made), end: () => made };
  return made as unknown as ServerResponse;
}

test("requests wait for the answers, which are made once; disposal ends them, also while they are made", async () => {
  const made = Promise.withResolvers<void>();
  const log: string[] = [];
  const answering = new Answering(async () => {
    log.push("making");
    await made.promise;
    return { serve: () => void log.push("served"), [Symbol.dispose]: () => void log.push("ended") };
  }, SILENT);
  answering.serve(request, response([]));
  answering.serve(request, response([]));
  assert.deepEqual(log, ["making"]);
  answering[Symbol.dispose]();
  made.resolve();
  await setImmediate();
  assert.deepEqual(log, ["making", "ended", "served", "served"]);
});

test("what could not be made is said, and made with the next request", async () => {
  let attempts = 0;
  const codes: number[] = [];
  const answering = new Answering(async () => {
    if (++attempts === 1) throw new Error("no memory");
    return { serve: () => void codes.push(200), [Symbol.dispose]() {} };
  }, SILENT);
  answering.serve(request, response(codes));
  await setImmediate();
  answering.serve(request, response(codes));
  await setImmediate();
  assert.deepEqual(codes, [500, 200]);
});
