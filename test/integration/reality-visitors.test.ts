/** People who come upon a REALITY server see the site that it stands for, and its certificate. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { missing } from "../support/peer.ts";
import { listening, openReality, SITE, site } from "../support/reality.ts";

const PAGE = "<!doctype html><title>the site</title><p>welcome";

/** With h2 and HTTP/1.1, and a page that is larger than a record. */
async function openWebSite() {
  const server = createSecureServer(
    { cert: site.cert, key: site.key, allowHTTP1: true },
    (request, response) => {
      response.writeHead(request.url === "/" ? 200 : 404, { "content-type": "text/html" });
      response.end(PAGE + " again".repeat(10_000));
    },
  );
  return await listening(server.on("sessionError", () => {}));
}

test("curl, by HTTP/1.1 and h2", { skip: missing("curl") }, async () => {
  await using web = await openWebSite();
  await using server = await openReality({ dest: web.port });
  const folder = mkdtempSync(join(tmpdir(), "visitors-"));
  const authority = join(folder, "site.pem");
  writeFileSync(authority, site.cert);
  try {
    for (const version of ["--http1.1", "--http2"]) {
      const visit = async (port: number): Promise<string> => {
        const place = ["--resolve", `${SITE}:${port}:127.0.0.1`, `https://${SITE}:${port}/`];
        const format = "\n%{http_version} %{http_code} %{ssl_verify_result} %{certs}";
        const args = ["-sS", "--noproxy", "*", version, "--cacert", authority, "-w", format, ...place];
        return (await promisify(execFile)("curl", args)).stdout;
      };
      const seen = await visit(server.port);
      assert.match(seen, /<title>the site<\/title>/);
      assert.match(seen, /\n(1\.1|2) 200 0 /);
      assert.equal(seen, await visit(web.port));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a browser", { skip: noBrowser, timeout: 60_000 }, async () => {
  await using web = await openWebSite();
  await using server = await openReality({ dest: web.port });
  await using browser = await openBrowser();
  const visit = async (port: number) => {
    await using watched = await browser.open({ anyCertificate: true });
    const response = await watched.page.goto(`https://127.0.0.1:${port}/`);
    const details = await response?.securityDetails();
    const { protocol, subjectName, issuer, validFrom } = details ?? {};
    return [await watched.page.title(), response?.status(), protocol, subjectName, issuer, validFrom];
  };
  const seen = await visit(server.port);
  assert.deepEqual(seen.slice(0, 4), ["the site", 200, "TLS 1.3", SITE]);
  assert.deepEqual(seen, await visit(web.port));
});
