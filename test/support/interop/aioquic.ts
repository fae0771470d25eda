/** aioquic as the other side of QUIC: the program is beside this file. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, startPeer } from "../peer.ts";
import { quicCertificate } from "../quic-tls.ts";

/** Of an environment that has it; `.ci/run` makes one. */
const PYTHON = process.env["AIOQUIC_PYTHON"] ?? "python3";
const PROGRAM = join(import.meta.dirname, "quic-peer.py");
const MOST_CLIENT_MS = 300_000;
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;

export function aioquicAbsent(): string | false {
  const found = spawnSync(PYTHON, ["-c", "import aioquic"]).status === 0;
  return found
    ? false
    : "SKIP aioquic: not installed (pip install aioquic, and AIOQUIC_PYTHON names that Python)";
}

function certificateFiles(): { readonly cert: string; readonly key: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), "weir-aioquic-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, quicCertificate.cert);
  writeFileSync(key, quicCertificate.key);
  return { cert, key, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

/** An echo server, which asks each client to show its address (`retry`), or knows one cipher alone (`chacha20`). */
export async function startAioquic(
  ...how: readonly ("retry" | "chacha20")[]
): Promise<{ readonly port: number } & AsyncDisposable> {
  const files = certificateFiles();
  const port = await freePort();
  const args = ["server", String(port), files.cert, files.key, ...how];
  const peer = await startPeer([PYTHON, PROGRAM, ...args], port, "udp");
  return {
    port,
    async [Symbol.asyncDispose]() {
      await peer[Symbol.asyncDispose]();
      files[Symbol.dispose]();
    },
  };
}

/** Runs these cases of the client against an echo server: a line for each, its name where all was well. */
export async function runAioquic(port: number, cases: readonly string[]): Promise<readonly string[]> {
  return (await run("client", port, cases)).split("\n");
}

/** Asks a web server for `/` by HTTP/3: the status, and behind it the body. */
export function visitByAioquic(port: number): Promise<string> {
  return run("visit", port);
}

/** Posts `body` to a path of a web server by HTTP/3, or gets it where that is empty: the status, and the answer's body. */
export async function askHttpByAioquic(
  port: number,
  path: string,
  {
    fields = {},
    body = Buffer.alloc(0),
  }: { readonly fields?: Record<string, string>; readonly body?: Buffer } = {},
): Promise<{ readonly status: string; readonly body: Buffer }> {
  const words = Object.entries(fields).map((pair) => pair.join("="));
  const [status = "", answer = ""] = (await run("http", port, [path, ...words], body)).split(" ");
  return { status, body: Buffer.from(answer, "hex") };
}

/** The answer to a message by DNS over QUIC. */
export async function askDoqByAioquic(port: number, message: Uint8Array): Promise<Buffer> {
  return Buffer.from(await run("doq", port, [], Buffer.from(message)), "hex");
}

async function run(
  what: "client" | "visit" | "http" | "doq",
  port: number,
  more: readonly string[] = [],
  input: Buffer = Buffer.alloc(0),
): Promise<string> {
  using files = certificateFiles();
  const options = { timeout: MOST_CLIENT_MS, maxBuffer: MOST_OUTPUT_BYTES };
  const running = promisify(execFile)(PYTHON, [PROGRAM, what, String(port), files.cert, ...more], options);
  running.child.stdin?.end(input);
  return (await running).stdout.trim();
}
