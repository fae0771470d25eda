import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT, type LogText } from "#core/log.ts";
import { apiApp } from "../../test/support/api-app.ts";

const QUERY = Buffer.from("000001000001000000000000076578616d706c6503636f6d0000010001", "hex");
const TYPE = "application/dns-message";

test("GET and POST answer with a DNS message, without the secret", async () => {
  const { app } = await apiApp({ secret: "s", dohPath: "/dns-query" });
  const got = await app.inject(`/dns-query?dns=${QUERY.toString("base64url")}`);
  const posted = await app.inject({
    method: "POST",
    url: "/dns-query",
    payload: QUERY,
    headers: { "content-type": `${TYPE}; x=y` },
  });
  for (const answer of [got, posted]) {
    assert.equal(answer.statusCode, 200);
    assert.equal(answer.headers["content-type"], TYPE);
    assert.equal(answer.headers["cache-control"], "max-age=300");
    assert.equal(answer.rawPayload.length, QUERY.length);
    assert.equal(answer.rawPayload[2], 0x81);
  }
});

test("nonsense is 500 in plain text, too much is 413, other methods are 405", async () => {
  const { app, control } = await apiApp({ dohPath: "/dns:query" });
  const url = "/dns:query";
  const post = async (payload: Buffer, type = TYPE) =>
    (await app.inject({ method: "POST", url, payload, headers: { "content-type": type } })).statusCode;
  assert.equal((await app.inject(url)).statusCode, 500);
  assert.equal((await app.inject(`${url}?dns=`)).statusCode, 500);
  assert.equal((await app.inject(`${url}?dns=AA==`)).statusCode, 500);
  assert.equal((await app.inject(`${url}?dns=AA&dns=AA`)).statusCode, 500);
  assert.equal(await post(QUERY, "application/json"), 500);
  assert.equal(await post(Buffer.alloc(3)), 500);
  assert.equal(await post(Buffer.alloc(65_535)), 200);
  assert.equal(await post(Buffer.alloc(65_536)), 413);
  assert.equal((await app.inject({ method: "PUT", url })).statusCode, 405);
  control.dnsEnabled = false;
  const off = await app.inject(`${url}?dns=${QUERY.toString("base64url")}`);
  assert.deepEqual([off.statusCode, off.body], [500, "DNS section is disabled\n"]);
  assert.match(String(off.headers["content-type"]), /^text\/plain/);
});

test("a path that is taken, or none, opens no endpoint", async () => {
  for (const dohPath of ["/version", "dns-query", "/dns*"]) {
    const { app } = await apiApp({ dohPath });
    assert.equal((await app.inject("/version")).json<{ meta: boolean }>().meta, true);
    assert.equal((await app.inject("/dns-query")).statusCode, 404);
  }
});

test("a fault of the core is in the log, not in the client's answer", async () => {
  const faults: string[] = [];
  const log = { ...SILENT, error: (text: LogText) => void faults.push(String(text)) };
  const { app, control } = await apiApp({ secret: "s", dohPath: "/dns-query" }, { log });
  control.dns.exchange = () => Promise.reject(new TypeError("https://dns.example/private is not open"));
  const answer = await app.inject(`/dns-query?dns=${QUERY.toString("base64url")}`);
  assert.equal(answer.statusCode, 500);
  assert.doesNotMatch(answer.body, /private/);
  assert.deepEqual(faults, ["controller: GET /dns-query: https://dns.example/private is not open"]);
});
