/** Runs the matrix and prints it: `node scripts/interop.mjs --help`. */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Network } from "#core/session.ts";
import { freePort, missing } from "../peer.ts";
import { startPeerWithFiles } from "../peer-folder.ts";
import { anytlsGo } from "./anytls-go.ts";
import { type Cell, CELLS } from "./cells.ts";
import { mihomo, weir } from "./clash.ts";
import { shadowsocksLibev, trojan } from "./debian.ts";
import { openDest } from "./reality.ts";
import { grpcio } from "./grpcio.ts";
import { v2ray, xray } from "./ray.ts";
import { singBox } from "./sing-box.ts";
import type { Launch, Speaker } from "./speaker.ts";
import { type Amounts, drive, type Results } from "./traffic.ts";

export const PEERS: readonly Speaker[] = [
  singBox,
  xray,
  mihomo,
  v2ray,
  anytlsGo,
  trojan,
  shadowsocksLibev,
  grpcio,
];

const HELP = `Talks to other programs on loopback, each as our server and as our client, and prints a table.
  --peers a,b       of ${PEERS.map(({ program }) => program).join(", ")}; taken from the PATH
  --cells text      only cells whose name holds the text
  --sides out,in    out: our client, their server; in: the reverse
  --mib n           bulk each way, in MiB (64)
  --connections n   short connections (1000)`;

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
export const ours = weir(join(root, "bin", "weir"));

export type Side = "out" | "in";

/** Runs one cell against one peer; a text in place of results: why it was not run. */
export async function runCell(
  peer: Speaker,
  cell: Cell,
  side: Side,
  amounts: Amounts,
): Promise<Results | string> {
  await using site = cell.reality === null ? null : await openDest(cell.reality);
  return await runAt(peer, site === null ? cell : withDest(cell, site.port), side, amounts);
}

function withDest(cell: Cell, dest: number): Cell {
  return { ...cell, reality: cell.reality && { ...cell.reality, dest } };
}

async function runAt(peer: Speaker, cell: Cell, side: Side, amounts: Amounts): Promise<Results | string> {
  const [port, socksPort] = [await freePort(), await freePort()];
  const [far, near] = side === "out" ? [peer, ours] : [ours, peer];
  const server = far.server(cell, port);
  const client = near.client(cell, socksPort, port);
  if (server === null || client === null) return "–";
  try {
    await using _server = await start(server, port, networkOf(cell));
    await using _client = await start(client, socksPort);
    return await drive(socksPort, amounts, destinationsOf(cell));
  } catch (error) {
    return `FAIL ${(error as Error).message.replaceAll(/\s+/g, " ").slice(-300)}`;
  }
}

/** A plain UDP request of vless and vmess names one destination for the whole flow. */
function destinationsOf({ protocol, udp }: Cell): number {
  if (udp === "none") return 0;
  return udp === "native" && (protocol === "vless" || protocol === "vmess") ? 1 : 2;
}

const networkOf = ({ protocol, alpn }: Cell): Network =>
  protocol === "hysteria2" || protocol === "tuic" || alpn?.[0] === "h3" ? "udp" : "tcp";

const start = (
  { command, files }: Launch,
  port: number,
  network: Network = "tcp",
): Promise<AsyncDisposable> => startPeerWithFiles(command, port, files, network);

function versionOf({ program, version }: Speaker): string {
  if (version.length === 0) return "";
  const { stdout } = spawnSync(program, version, { encoding: "utf8" });
  return stdout.split("\n")[0] ?? "";
}

export async function main(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      peers: { type: "string" },
      cells: { type: "string", default: "" },
      sides: { type: "string", default: "out,in" },
      mib: { type: "string", default: "64" },
      connections: { type: "string", default: "1000" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const amounts = { bulkBytes: Number(values.mib) << 20, connections: Number(values.connections) };
  const wanted = values.peers?.split(",");
  for (const peer of PEERS) {
    if (wanted?.includes(peer.program) === false) continue;
    const absent = missing(peer.program) || (peer.absent?.() ?? false);
    if (absent !== false) {
      console.log(absent);
      continue;
    }
    console.log(`\n${peer.program} ${versionOf(peer)}\n`);
    console.log("| Cell | Side | Bulk | Short | Half-close | Late | UDP |\n|---|---|---|---|---|---|---|");
    for (const cell of CELLS)
      for (const side of values.sides.split(",") as Side[])
        if (cell.name.includes(values.cells)) printRow(cell, side, await runCell(peer, cell, side, amounts));
  }
}

function printRow({ name }: Cell, side: Side, results: Results | string): void {
  if (results === "–") return;
  const words = typeof results === "string" ? [results, "", "", "", ""] : Object.values(results);
  console.log(`| ${[name, side, ...words].join(" | ")} |`);
}
