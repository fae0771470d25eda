/**
 * Who gets in: Host × Origin × Sec-Fetch-Site × credential, for requests, WebSockets and the admin API. A browser sets the
 * first three and a page cannot forge them; the credential it may not know.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { adminRoutes } from "#api/admin/index.ts";
import { liveController } from "../support/live-controller.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { ADMIN_SECRET, MemoryUsers } from "../support/memory-users.ts";
import { RawClient } from "../support/raw-http.ts";
import { startCore } from "../support/start-core.ts";

const SECRET = "s3cret";
const PANEL = "https://panel.example";
const ANY = { allowOrigins: ["*"], allowPrivateNetwork: true };
const RESTRICTED = { allowOrigins: [PANEL], allowPrivateNetwork: true };
const SITES = [null, "none", "same-origin", "same-site", "cross-site"] as const;
const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n";

type Credential = "none" | "right" | "wrong" | "the other API's";

interface Case {
  readonly host: string;
  readonly origin: string | null;
  readonly site: (typeof SITES)[number];
  readonly credential: Credential;
}

const CREDENTIALS: readonly Credential[] = ["none", "right", "wrong", "the other API's"];

function* cases(own: string): Generator<Case> {
  const origins = [null, `http://${own}`, `https://${own}`, PANEL, "https://evil.example", "null"];
  for (const host of [own, "localhost", "panel.example", "evil.example", "127.0.0.1.evil.example"])
    for (const origin of origins)
      for (const site of SITES)
        for (const credential of CREDENTIALS) yield { host, origin, site, credential };
}

interface Answer {
  readonly status: number;
  readonly allowOrigin: string | null;
}

async function ask(
  port: number,
  path: string,
  one: Case,
  token: string | null,
  extra: string,
): Promise<Answer> {
  using client = await RawClient.open({ host: "127.0.0.1", port });
  const lines = [
    `GET ${path} HTTP/1.1\r\nHost: ${one.host}\r\n`,
    one.origin === null ? "" : `Origin: ${one.origin}\r\n`,
    one.site === null ? "" : `Sec-Fetch-Site: ${one.site}\r\n`,
    token === null ? "" : `Authorization: Bearer ${token}\r\n`,
    extra,
  ];
  client.send(`${lines.join("")}\r\n`);
  const head = await client.until(/\r\n\r\n/);
  const allowOrigin = /^access-control-allow-origin: (.*)\r$/im.exec(head)?.[1] ?? null;
  return { status: client.statuses[0] as number, allowOrigin };
}

/** Names that cannot be rebound; `panel.example` is the host of an exact allow-origins entry. */
function isOurs(host: string, own: string, cors: typeof ANY): boolean {
  return host === own || host === "localhost" || (host === "panel.example" && cors === RESTRICTED);
}

function tokenOf(credential: Credential, right: string, others: string): string | null {
  if (credential === "none") return null;
  if (credential === "right") return right;
  return credential === "wrong" ? "guess" : others;
}

/** `Origin: null` has none. */
function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

for (const cors of [ANY, RESTRICTED])
  for (const secret of ["", SECRET]) {
    const title = `${cors === ANY ? "any origin" : "one origin"}, ${secret === "" ? "no secret" : "a secret"}`;

    test(`the Controller, ${title}`, async (context) => {
      await using live = await liveController({ cors, secret });
      const own = `127.0.0.1:${live.port}`;
      let asked = 0;
      for (const one of cases(own)) {
        const { host, origin, credential } = one;
        const isAllowed = origin !== null && (cors === ANY || origin === PANEL);
        const echoed = cors === ANY ? "*" : origin;
        const isForeign = origin !== null && !isAllowed && hostOf(origin) !== host;
        const isShut = isForeign || !isOurs(host, own, cors);
        const refused = secret === "" ? (isShut ? 403 : null) : credential === "right" ? null : 401;
        const token = tokenOf(credential, SECRET, ADMIN_SECRET);

        const plain = await ask(live.port, "/version", one, token, "");
        const wanted = { status: refused ?? 200, allowOrigin: isAllowed ? echoed : null };
        assert.deepEqual(plain, wanted, JSON.stringify(one));

        const socket = await ask(live.port, "/traffic", one, token, UPGRADE);
        const opened = refused === 403 || isForeign ? 403 : (refused ?? 101);
        assert.equal(socket.status, opened, `WebSocket ${JSON.stringify(one)}`);
        asked += 2;
      }
      context.diagnostic(`${asked} requests`);
    });

    test(`the admin API, ${title}`, async (context) => {
      const users = new MemoryUsers();
      const mounts = () => adminRoutes(users, new MemoryControl(), { kind: "http", isLocal: true });
      await using live = await liveController({ cors, secret, mounts });
      const own = `127.0.0.1:${live.port}`;
      let asked = 0;
      for (const one of cases(own)) {
        const { host, origin, site, credential } = one;
        const isRebound = secret === "" && !isOurs(host, own, cors);
        const isElsewhere = site === "cross-site" || (origin !== null && origin !== `http://${host}`);
        const wanted = isRebound || isElsewhere ? 403 : credential === "right" ? 200 : 401;
        const token = tokenOf(credential, ADMIN_SECRET, SECRET);
        const { status } = await ask(live.port, "/api/admin/users", one, token, "");
        assert.equal(status, wanted, JSON.stringify(one));
        asked++;
      }
      context.diagnostic(`${asked} requests`);
    });
  }

test("a file that says nothing of origins is for pages of its own; one that says every origin is warned of", async () => {
  const outcome = async (written: string): Promise<readonly [number, boolean]> => {
    await using core = await startCore(
      `external-controller: 127.0.0.1:0\n${written}\nrules: ["MATCH,DIRECT"]\n`,
    );
    const port = await core.controllerPort();
    const host = `127.0.0.1:${port}`;
    const one: Case = { host, origin: "https://evil.example", site: "cross-site", credential: "none" };
    const { status } = await ask(port, "/configs", one, null, "");
    return [status, /allow-origins: .*every web page/.test(core.output())];
  };
  assert.deepEqual(await outcome(""), [403, false]);
  assert.deepEqual(await outcome("external-controller-cors: { allow-origins: [] }"), [403, false]);
  assert.deepEqual(await outcome("external-controller-cors: { allow-private-network: true }"), [403, false]);
  assert.deepEqual(await outcome('external-controller-cors: { allow-origins: ["*"] }'), [200, true]);
});
