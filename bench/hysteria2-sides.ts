/** The two sides of hysteria2 in programs of their own: ours, sing-box, and hysteria itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeCertificate } from "../test/support/certificate.ts";
import { freePort, missing } from "../test/support/peer.ts";
import { endOf, listening } from "./relay-subjects.ts";

/** The programs to compare with; they are looked for on the PATH otherwise. */
const SING_BOX = process.env["SING_BOX"] ?? "sing-box";
const HYSTERIA = process.env["HYSTERIA"] ?? "hysteria";
const PASSWORD = "bench";
const HOST = "127.0.0.1";
const START_MS = 3_000;
const FLAGS = process.env["BENCH_FLAGS"]?.split(" ") ?? [];

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A program of one side of hysteria2, and the port at which it is dialled. */
export interface Side extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

/** `{}` in the command and in the files is a folder that holds the files. */
async function start(
  port: number,
  command: readonly string[],
  files: Readonly<Record<string, string>>,
): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const filled = (text: string): string => text.replaceAll("{}", folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), filled(text));
  const [program = "", ...args] = command.map(filled);
  const child = spawn(program, args, { stdio: "ignore" });
  await once(child, "spawn");
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} does not start`);
  return {
    pid,
    port,
    async [Symbol.asyncDispose]() {
      await endOf(child);
      rmSync(folder, { recursive: true });
    },
  };
}

const singBox = (port: number, config: object, files: Readonly<Record<string, string>> = {}): Promise<Side> =>
  start(port, [SING_BOX, "run", "-c", "{}/config.json"], { ...files, "config.json": JSON.stringify(config) });

async function singBoxServer(): Promise<Side> {
  const port = await freePort();
  const { cert, key } = makeCertificate({ names: ["server.test"] });
  const tls = { enabled: true, alpn: ["h3"], certificate_path: "{}/cert", key_path: "{}/key" };
  const users = [{ password: PASSWORD }];
  const inbound = { type: "hysteria2", listen: HOST, listen_port: port, users, tls };
  const config = { log: { disabled: true }, inbounds: [inbound], outbounds: [{ type: "direct" }] };
  const side = await singBox(port, config, { cert, key });
  await delay(START_MS); // nothing tells when a UDP port is served
  return side;
}

async function weirServer(): Promise<Side> {
  const port = await freePort();
  const { cert, key } = makeCertificate({ names: ["server.test"] });
  const config = `
log-level: warning
listeners:
  - { name: in, type: hysteria2, listen: ${HOST}, port: ${port}, users: { bench: ${PASSWORD} }, certificate: ./cert, private-key: ./key }
rules:
  - MATCH,DIRECT
`;
  const side = await weir(port, config, { cert, key });
  await delay(START_MS);
  return side;
}

const weir = (port: number, config: string, files: Readonly<Record<string, string>> = {}): Promise<Side> => {
  const boot = join(root, "src", "boot.mjs");
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", ...FLAGS, boot];
  const place = ["-d", "{}", "-f", "{}/config.yaml"];
  return start(port, [...command, ...place], { ...files, "config.yaml": config });
};

async function singBoxClient(server: number): Promise<Side> {
  const port = await freePort();
  const tls = { enabled: true, alpn: ["h3"], server_name: "server.test", insecure: true };
  const side = await singBox(port, {
    log: { disabled: true },
    inbounds: [{ type: "socks", listen: HOST, listen_port: port }],
    outbounds: [{ type: "hysteria2", server: HOST, server_port: server, password: PASSWORD, tls }],
  });
  await listening(port);
  return side;
}

async function weirClient(server: number): Promise<Side> {
  const port = await freePort();
  const config = `
mixed-port: ${port}
log-level: warning
proxies:
  - { name: node, type: hysteria2, server: ${HOST}, port: ${server}, password: ${PASSWORD}, sni: server.test, skip-cert-verify: true }
rules:
  - MATCH,node
`;
  const side = await weir(port, config);
  await listening(port);
  return side;
}

async function hysteriaServer(): Promise<Side> {
  const port = await freePort();
  const { cert, key } = makeCertificate({ names: ["server.test"] });
  const config = `
listen: ${HOST}:${port}
tls: { cert: "{}/cert", key: "{}/key" }
auth: { type: password, password: ${PASSWORD} }
`;
  const command = [HYSTERIA, "server", "--disable-update-check", "-l", "error", "-c", "{}/config.yaml"];
  const side = await start(port, command, { cert, key, "config.yaml": config });
  await delay(START_MS);
  return side;
}

async function hysteriaClient(server: number): Promise<Side> {
  const port = await freePort();
  const config = `
server: ${HOST}:${server}
auth: ${PASSWORD}
tls: { sni: server.test, insecure: true }
socks5: { listen: "${HOST}:${port}" }
`;
  const command = [HYSTERIA, "client", "--disable-update-check", "-l", "error", "-c", "{}/config.yaml"];
  const side = await start(port, command, { "config.yaml": config });
  await listening(port);
  return side;
}

export interface Pair {
  readonly title: string;
  readonly client: Side;
  readonly server: Side;
}

const OTHERS = [
  { name: "sing-box", program: SING_BOX, server: singBoxServer, client: singBoxClient },
  { name: "hysteria", program: HYSTERIA, server: hysteriaServer, client: hysteriaClient },
];

/** Ours alone, before those that are there, and each of these alone. All are ended with `undo`. */
export async function openPairs(
  undo: AsyncDisposableStack,
  out: (line: string) => void,
): Promise<readonly Pair[]> {
  const server = undo.use(await weirServer());
  const pairs = [{ title: "weir and weir", client: undo.use(await weirClient(server.port)), server }];
  for (const { name, program, ...open } of OTHERS) {
    const absent = missing(program);
    if (absent !== false) {
      out(absent);
      continue;
    }
    const other = undo.use(await open.server());
    const [ours, theirs] = [undo.use(await weirClient(other.port)), undo.use(await open.client(other.port))];
    pairs.push({ title: `weir and ${name}`, client: ours, server: other });
    pairs.push({ title: `${name} and ${name}`, client: theirs, server: other });
  }
  return pairs;
}
