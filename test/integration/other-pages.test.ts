/** Without a secret: every route of the router's own table × method × Origin × Sec-Fetch-Site × what the file says of origins. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../support/api-app.ts";
import { everyRoute } from "../support/api-document.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { MemoryUsers } from "../support/memory-users.ts";
import { EITHER_SECRET, OWN_SECRET, routeTable, STREAMS } from "../support/route-table.ts";

const PANEL = "https://panel.example";
const HOST = "127.0.0.1:9090";
const CORS = {
  "nothing said": { allowOrigins: ["*"], allowPrivateNetwork: true, isDefault: true },
  "every origin said": { allowOrigins: ["*"], allowPrivateNetwork: true },
  "one origin said": { allowOrigins: [PANEL], allowPrivateNetwork: true },
} as const;
const ORIGINS = [null, `http://${HOST}`, PANEL, "https://evil.example", "http://127.0.0.1:3000", "null"];
const SITES = [null, "none", "same-origin", "same-site", "cross-site"];
/** GETs that do something. */
const ACTING = /delay$|healthcheck$|^\/dns\/query$/;

for (const [title, cors] of Object.entries(CORS))
  test(`no secret, ${title}`, async (context) => {
    const routes = everyRoute(new MemoryControl(), new MemoryUsers());
    const { app } = await apiApp({ cors, ...routes });
    let asked = 0;
    for (const { method, pattern, url } of routeTable(app)) {
      // endless; with checks of its own
      if (STREAMS.has(pattern) || OWN_SECRET.test(pattern) || EITHER_SECRET.test(pattern)) continue;
      const isOpen = /^\/(ui|sub|dns-query|api\/svc\/session\/code$)/.test(pattern);
      for (const origin of ORIGINS)
        for (const site of SITES) {
          const headers: Record<string, string> = { host: HOST };
          if (origin !== null) headers["origin"] = origin;
          if (site !== null) headers["sec-fetch-site"] = site;
          const answer = await app.inject({ method, url, headers });
          asked++;
          const isTrusted =
            title === "every origin said" ||
            (origin === PANEL && title === "one origin said") ||
            origin === `http://${HOST}`;
          const acts = !["GET", "HEAD"].includes(method) || ACTING.test(pattern);
          const isSilent = origin === null && site !== null && site.endsWith("-site");
          const isRefused = !isTrusted && (origin === null ? isSilent && acts : true);
          const what = `${method} ${url} from ${origin}, ${site}: ${answer.statusCode}`;
          if (isOpen || answer.statusCode === 405) continue;
          assert.equal(answer.statusCode === 403, isRefused, what);
          if (isRefused && method !== "HEAD")
            assert.match(
              answer.json<{ message: string }>().message,
              /set secret, or list the page's origin/,
              what,
            );
        }
    }
    context.diagnostic(`${asked} requests`);
    assert.ok(asked > 1000);
  });

test("a page of another origin can read why, and may ask with the secret", async () => {
  const cors = CORS["nothing said"];
  const headers = { host: HOST, origin: "https://evil.example" };
  const refused = await (await apiApp({ cors })).app.inject({ url: "/version", headers });
  assert.deepEqual([refused.statusCode, refused.headers["access-control-allow-origin"]], [403, "*"]);
  const { app } = await apiApp({ cors, secret: "s3cret" });
  const admitted = await app.inject({
    url: "/version",
    headers: { ...headers, authorization: "Bearer s3cret" },
  });
  assert.equal(admitted.statusCode, 200);
});

test("a WebSocket without a secret is a page's own", async () => {
  const { app } = await apiApp({ cors: CORS["nothing said"] });
  const headers = { host: HOST, origin: "https://evil.example", connection: "upgrade", upgrade: "websocket" };
  assert.equal((await app.inject({ url: "/traffic", headers })).statusCode, 403);
});
