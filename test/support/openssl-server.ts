/** `openssl s_server` as a peer of tests, which types what it sends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "./certificate.ts";
import { freePort } from "./peer.ts";
import { until } from "./until.ts";

const own = makeCertificate({ names: ["server.test"] });
/** In the file `client.pem` of the server. */
export const opensslClient = makeCertificate({ names: ["client.test"] });

export interface OpensslServer extends AsyncDisposable {
  readonly port: number;
  /** Its output so far. */
  said(): string;
  /** Types at its console: a line for its client, or a command. */
  write(text: string): void;
}

/** TLS 1.3 with the certificate of `server.test`; `more`: further arguments. */
export async function openssl(...more: readonly string[]): Promise<OpensslServer> {
  const folder = mkdtempSync(join(tmpdir(), "tls13-"));
  for (const [name, text] of [
    ["c.pem", own.cert],
    ["k.pem", own.key],
    ["client.pem", opensslClient.cert],
  ] as const)
    writeFileSync(join(folder, name), text);
  const port = await freePort();
  const args = [
    "s_server",
    "-accept",
    `127.0.0.1:${port}`,
    "-cert",
    "c.pem",
    "-key",
    "k.pem",
    "-tls1_3",
    ...more,
  ];
  const child = spawn("openssl", args, { cwd: folder });
  const closed = once(child, "close");
  let said = "";
  for (const out of [child.stdout, child.stderr]) out.on("data", (bytes: Buffer) => (said += String(bytes)));
  await until("the server listens", () => said.includes("ACCEPT"));
  return {
    port,
    said: () => said,
    write: (text: string) => child.stdin.write(text),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
}
