/** The Controller does not say whose programs run: the block `update` is changed in the file alone. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startCore, type Core } from "../support/start-core.ts";

const SECRET = "a secret of the controller";

function textWith(byController: boolean): string {
  const { publicKey } = generateKeyPairSync("ed25519");
  const key = publicKey.export({ type: "spki", format: "pem" });
  return `external-controller: 127.0.0.1:0
secret: ${SECRET}
update: { url: "http://127.0.0.1:1/", public-key: ${JSON.stringify(key)}, by-controller: ${byController} }
`;
}

async function answerOf(core: Core, method: string, path: string, body?: string | Buffer<ArrayBuffer>) {
  const url = `http://127.0.0.1:${await core.controllerPort()}${path}`;
  const headers = { authorization: `Bearer ${SECRET}` };
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
}

async function ask(core: Core, method: string, path: string, body?: object) {
  const answer = await answerOf(core, method, path, body === undefined ? undefined : JSON.stringify(body));
  return { status: answer.status, text: await answer.text() };
}

test("a configuration by the API keeps the block of the file, in force and in the file", async () => {
  const text = textWith(false);
  await using core = await startCore(text);
  const refused = async (): Promise<void> => {
    const { status, text: said } = await ask(core, "POST", "/upgrade");
    assert.equal(status, 500);
    assert.match(said, /update error: update\.by-controller is not set/);
  };
  await refused();
  const opened = textWith(true).replace("127.0.0.1:0", `127.0.0.1:${await core.controllerPort()}`);
  assert.equal((await ask(core, "PUT", "/configs?force=true", { payload: opened })).status, 204);
  await refused();

  const file = join(core.home, "config.yaml");
  const hash = async () =>
    (JSON.parse((await ask(core, "GET", "/api/svc/config")).text) as { hash: string }).hash;
  const kept = await ask(core, "PUT", "/configs?persist=true", { payload: opened, hash: await hash() });
  assert.equal(kept.status, 403, kept.text);
  assert.match(kept.text, /update: the Controller does not change this block/);
  assert.equal(readFileSync(file, "utf8"), text);
  const other = `mode: direct\n${text}`;
  const mode = await ask(core, "PUT", "/configs?persist=true", { payload: other, hash: await hash() });
  assert.ok(mode.status < 300, mode.text);
  assert.equal(readFileSync(file, "utf8"), other);

  const backup = await (await answerOf(core, "GET", "/api/svc/backup")).arrayBuffer();
  await core.reload(textWith(true));
  const restored = await answerOf(core, "POST", "/api/svc/restore/check", Buffer.from(backup));
  assert.equal(restored.status, 403);
  assert.match(await restored.text(), /the backup has another, which weir restore brings back/);
  assert.match((await ask(core, "POST", "/upgrade")).text, /this is a checkout: git pull/);
});

test("without the block the Controller and the command name what is missing", async () => {
  await using core = await startCore(`external-controller: 127.0.0.1:0\nsecret: ${SECRET}\n`);
  const { status, text } = await ask(core, "POST", "/upgrade");
  assert.deepEqual(
    [status, (JSON.parse(text) as { message: string }).message],
    [
      500,
      "update error: the configuration has no block update: set update.url, where releases are, and update.public-key, whose they are",
    ],
  );
});
